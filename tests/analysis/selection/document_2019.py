"""Facts of "PyTorch CI deduplication" (2019): the labels of its two charts, the clusters that it reads off them, the
jobs that it recommends; and a history that is made to have this structure."""

import numpy as np

from sooner.analysis.selection.facts import State, recorded

COMBINED = [
    "binary_linux_conda_3.7_cu100",
    "caffe2_py2_ios_macos10_13",
    "binary_macos_conda_3.5_cpu",
    "pytorch-win-ws2016-cuda9-cudnn7-py3",
    "py2-clang7-rocmdeb-ubuntu16.04",
    "caffe2-py2-devtoolset7-rocmrpm-centos7.5",
    "caffe2-py2-clang7-rocmdeb-ubuntu16.04",
    "caffe2-py2-cuda9.0-cudnn7-windows",
    "pytorch_linux_trusty_py3_5",
    "pytorch_linux_trusty_py2_7_9",
    "pytorch_linux_trusty_py3_6_gcc4_8",
    "pytorch_linux_trusty_py2_7",
    "pytorch_linux_trusty_pynightly",
    "pytorch_linux_xenial_cuda9_cudnn7_py3",
    "pytorch_linux_xenial_cuda9_cudnn7_py2",
    "pytorch_linux_xenial_cuda9_2_cudnn7_py3_gcc7",
    "pytorch_linux_xenial_cuda8_cudnn7_py3",
    "pytorch_linux_xenial_py3_clang5_asan",
    "pytorch_linux_trusty_py3_6_gcc5_4",
    "pytorch_linux_trusty_py3_6_gcc7",
    "pytorch_macos_10_13_py3",
    "caffe2_py2_clang7_ubuntu16_04",
    "caffe2_py2_clang3_8_ubuntu16_04",
    "caffe2_py2_clang3_9_ubuntu16_04",
    "binary_linux_manywheel_2.7mu_cpu",
    "caffe2_py2_cuda9_0_cudnn7_centos7",
    "caffe2_py2_cuda9_1_cudnn7_ubuntu16_04",
    "caffe2_py2_cuda9_0_cudnn7_ubuntu16_04",
    "caffe2_py2_cuda8_0_cudnn7_ubuntu16_04",
    "caffe2_cmake_cuda9_0_cudnn7_ubuntu16_04",
    "pytorch_macos_10_13_cuda9_2_cudnn7_py3",
    "pytorch_linux_xenial_cuda10_cudnn7_py3_gcc7",
    "caffe2_py2_mkl_ubuntu16_04",
    "caffe2_py2_gcc4_8_ubuntu14_04",
    "caffe2_onnx_py2_gcc5_ubuntu16_04",
    "caffe2_py2_android_ubuntu16_04",
    "caffe2_py2_system_macos10_13",
    "pytorch_short_perf_test_gpu",
    "pytorch_doc_push",
    "travis-ci",
]
"""40 jobs, builds and tests together."""

COMBINED_CLUSTERS = {
    "macOS and iOS": (1, 3), "ROCm": (4, 6), "PyTorch CPU": (8, 12), "PyTorch CUDA": (13, 16),
    "PyTorch newer compilers": (17, 20), "Caffe2 clang and manywheel": (21, 24), "Caffe2 CUDA": (25, 29),
    "PyTorch, miscellaneous": (30, 31), "Caffe2, miscellaneous": (33, 36),
}  # fmt: skip
"""First and last label of each cluster that is larger than one job."""

TESTS = [
    "pytorch_linux_trusty_py2_7_test",
    "pytorch_linux_trusty_py2_7_9_test",
    "pytorch_linux_trusty_py3_5_test",
    "pytorch_linux_trusty_pynightly_test",
    "pytorch_linux_trusty_py3_6_gcc4_8_test",
    "pytorch_linux_xenial_cuda8_cudnn7_py3_N0_AVX2_test",
    "pytorch_linux_xenial_cuda8_cudnn7_py3_test",
    "pytorch_linux_xenial_cuda8_cudnn7_py3_N0_AVX_N0_AVX2_test",
    "pytorch_linux_xenial_cuda9_2_cudnn7_py3_gcc7_test",
    "pytorch_linux_xenial_cuda9_cudnn7_py2_test",
    "pytorch_linux_xenial_py3_clang5_asan_test",
    "pytorch_linux_trusty_py3_6_gcc5_4_test",
    "caffe2-py2-devtoolset7-rocmrpm-centos7.5-test",
    "caffe2-py2-clang7-rocmdeb-ubuntu16.04-test",
    "caffe2_py2_mkl_ubuntu16_04_test",
    "caffe2_py2_gcc4_8_ubuntu14_04_test",
    "caffe2_onnx_py2_gcc5_ubuntu16_04_test",
    "caffe2_py2_cuda8_0_cudnn7_ubuntu16_04_test",
    "caffe2_py2_cuda9_1_cudnn7_ubuntu16_04_test",
    "caffe2_py2_cuda9_0_cudnn7_ubuntu16_04_test",
    "caffe2_py2_cuda9_0_cudnn7_centos7_test",
    "pytorch_linux_xenial_cuda8_cudnn7_py3_multigpu_test",
    "caffe2_cmake_cuda9_0_cudnn7_ubuntu16_04_test",
    "binary_linux_manywheel_2.7mu_cpu_test",
]
"""24 jobs, failures of tests only."""

TEST_CLUSTERS = {
    "PyTorch CPU": (0, 4), "PyTorch CUDA": (5, 9), "ROCm": (12, 13), "Caffe2 CPU": (14, 15), "Caffe2 CUDA": (17, 20),
}  # fmt: skip

RECOMMENDED = [
    "pytorch_linux_trusty_py2_7_9",
    "pytorch_linux_xenial_cuda9_cudnn7_py3",
    "pytorch_linux_xenial_py3_clang5_asan",
    "pytorch_linux_trusty_py3_6_gcc5_4",
    "caffe2-py2-devtoolset7-rocmrpm-centos7.5",
    "py2-clang7-rocmdeb-ubuntu16.04",
    "caffe2_py2_mkl_ubuntu16_04",
    "caffe2_py2_cuda9_1_cudnn7_ubuntu16_04",
    "caffe2_onnx_py2_gcc5_ubuntu16_04",
    "caffe2_py2_clang7_ubuntu16_04",
    "caffe2_cmake_cuda9_0_cudnn7_ubuntu16_04",
    "binary_linux_manywheel_2.7mu_cpu",
    "caffe2_py2_android_ubuntu16_04",
    "caffe2_py2_system_macos10_13",
    "pytorch_macos_10_13_cuda9_2_cudnn7_py3",
    "pytorch-win-ws2016-cuda9-cudnn7-py3",
    "pytorch_short_perf_test_gpu",
    "pytorch_doc_push",
    "travis-ci",
]
"""Recommendation 1, the jobs that its first chart knows (its further ones are variants: multigpu, ...)."""


def blocks(clusters, count):
    """The clusters and, each by itself, the jobs that are in none."""
    ranges = [tuple(range(first, last + 1)) for first, last in clusters.values()]
    inside = {job for some in ranges for job in some}
    return sorted(ranges + [(job,) for job in range(count) if job not in inside])


def history(labels, clusters, seed=1, commits=1500, noise=0.002):
    """Blocks break together, each now and then; within a block hardly anything breaks alone; no repeats."""
    chance = np.random.default_rng(seed)
    red = chance.random((commits, len(labels))) < noise
    for block in blocks(clusters, len(labels)):
        hit = chance.random(commits) < 0.06
        red[np.ix_(hit, list(block))] = True
    commit, job = np.divmod(np.arange(commits * len(labels)), len(labels))
    asked = commit * 3600.0
    return recorded(
        [f"{i:040x}" for i in range(commits)],
        labels,
        commit=commit,
        job=job,
        state=np.where(red.ravel(), State.FAILED, State.PASSED).astype(np.int8),
        asked=asked,
        known=asked + 1800.0,
        minutes=np.full(len(commit), 30.0),
    )
