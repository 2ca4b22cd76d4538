"""Tests that never run with what a framework is taken to be built for, and run where it is built for the host."""

from small_projects import needs_of


def test_tests_of_a_build_for_the_host_run_on_the_host():
    text = """
    import pytest
    import torch
    from vllm import LLM
    from vllm.platforms import current_platform

    @pytest.mark.skipif(not current_platform.is_cpu(), reason="on the host")
    def test_host():
        torch.ones(1)

    @pytest.mark.skipif(not current_platform.is_cpu(), reason="on the host")
    def test_engine():
        LLM("small", tensor_parallel_size=2)

    @pytest.mark.skipif(current_platform.is_cpu(), reason="on devices")
    def test_devices():
        torch.ones(1, device="cuda")

    @pytest.mark.skipif(current_platform.is_cpu(), reason="on devices")
    def test_engine_of_devices():
        LLM("small", tensor_parallel_size=2)

    @pytest.mark.skipif(not current_platform.is_rocm(), reason="another vendor's")
    def test_others():
        torch.ones(1, device="cuda")

    def test_either():
        if current_platform.is_cpu():
            pytest.skip("slow")
        torch.ones(1, device="cuda")
    """
    found = needs_of("test_it.py", {"test_it.py": text})
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_host": (0, None, 0),
        "test_engine": (0, None, 0),
        "test_devices": (1, 1, 1),
        "test_engine_of_devices": (2, 2, 2),
        "test_others": (None, None, None),
        "test_either": (1, 1, 1),
    }


def test_a_file_of_a_build_for_the_host_is_collected_there():
    text = """
    import pytest
    import torch
    from vllm.platforms import current_platform

    if not current_platform.is_cpu() or not current_platform.is_zen_cpu():
        pytest.skip("on the host", allow_module_level=True)

    @pytest.mark.parametrize("size", [1, 2])
    def test_host(size):
        torch.ones(size)
    """
    found = needs_of("test_it.py", {"test_it.py": text})
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_host[1]": (0, None, 0),
        "test_host[2]": (0, None, 0),
    }


def test_a_file_of_another_vendors_devices_is_not_collected_anywhere():
    text = """
    import pytest
    from vllm.platforms import current_platform

    if not current_platform.is_xpu() or current_platform.is_cpu():
        pytest.skip("another vendor's", allow_module_level=True)

    def test_others():
        pass
    """
    assert needs_of("test_it.py", {"test_it.py": text}) == {}
