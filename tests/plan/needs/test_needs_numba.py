"""Numba's devices, and the devices of the host that chex asks for."""

from small_projects import needs_of


def said(found):
    return {name: (each.min, each.gpu_min, each.full) for name, each in found.items()}


def test_numba_counts_enters_and_selects_devices():
    found = needs_of(
        "test_numba.py",
        {
            "test_numba.py": """
            import unittest
            from numba import cuda
            from numba.cuda.testing import CUDATestCase, skip_on_cudasim

            class TestDevices(CUDATestCase):
                @unittest.skipIf(len(cuda.gpus) < 2, "need more than 1 gpus")
                @skip_on_cudasim("a device is needed")
                def test_two(self):
                    with cuda.gpus[0]:
                        with cuda.gpus[1]:
                            cuda.to_device([1])

                def test_one(self):
                    cuda.select_device(0)

                def test_each(self):
                    for device in cuda.list_devices():
                        with cuda.gpus[device.id]:
                            pass
            """
        },
    )
    assert said(found) == {
        "TestDevices::test_two": (2, 2, 2),
        "TestDevices::test_one": (1, 1, 1),
        "TestDevices::test_each": (1, 1, 8),
    }


def test_chex_makes_several_devices_of_the_host_but_no_more_of_those_that_are_there():
    found = needs_of(
        "test_chex.py",
        {
            "test_chex.py": """
            import chex
            import jax
            import numpy as np

            def test_mesh():
                chex.set_n_cpu_devices(8)
                jax.sharding.Mesh(np.array(jax.devices()).reshape((4, 2)), ("x", "y"))
            """
        },
    )
    assert said(found) == {"test_mesh": (0, 8, 8)}


def test_kernels_of_numba_use_a_device_when_they_are_launched():
    found = needs_of(
        "test_kernels.py",
        {
            "test_kernels.py": """
            import numpy as np
            from numba import cuda

            @cuda.jit
            def double(values):
                values[cuda.grid(1)] *= 2

            @cuda.jit(fastmath=True)
            def halve(values):
                values[cuda.grid(1)] /= 2

            def test_launched():
                double[1, 4](np.ones(4))

            def test_launched_elsewhere():
                with cuda.gpus[1]:
                    halve.forall(4)(np.ones(4))

            def test_not_launched():
                assert double.py_func
            """
        },
    )
    assert said(found) == {
        "test_launched": (1, 1, 1),
        "test_launched_elsewhere": (2, 2, 2),
        "test_not_launched": (0, None, 0),
    }


def test_in_numbas_own_tree_its_devices_are_those_of_the_rules_too():
    found = needs_of(
        "numba/cuda/tests/test_gpus.py",
        {
            "numba/__init__.py": "",
            "numba/cuda/__init__.py": "from numba.cuda.device_init import *",
            "numba/cuda/device_init.py": "gpus = []",
            "numba/cuda/tests/__init__.py": "",
            "numba/cuda/tests/test_gpus.py": """
            import unittest
            import numba.cuda
            from numba import cuda

            class TestGpus(unittest.TestCase):
                @unittest.skipIf(len(cuda.gpus) < 2, "need more than 1 gpus")
                def test_two(self):
                    with cuda.gpus[1]:
                        pass

                def test_one(self):
                    numba.cuda.to_device([1])
            """,
        },
    )
    assert said(found) == {"TestGpus::test_two": (2, 2, 2), "TestGpus::test_one": (1, 1, 1)}


def test_a_kernel_of_numba_with_a_signature_is_compiled_at_once_for_the_device_that_is_there():
    found = needs_of(
        "test_kernels.py",
        {
            "test_kernels.py": """
            from numba import cuda

            def add(values):
                values[0] += 1

            def test_signature():
                assert cuda.jit("void(float32[::1])", fastmath=True)(add).inspect_asm()

            def test_lazily():
                assert cuda.jit(fastmath=True)(add).py_func is add

            def test_part_of_a_kernel():
                assert cuda.jit("float32(float32)", device=True)(add)
            """
        },
    )
    assert said(found) == {
        "test_signature": (1, 1, 1),
        "test_lazily": (0, None, 0),
        "test_part_of_a_kernel": (0, None, 0),
    }
