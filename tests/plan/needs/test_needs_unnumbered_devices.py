"""Devices of which not all is known: their number, or that they come from a module that is not there."""

import pytest
from small_projects import devices_of, needs_of

WRITTEN = """
import torch
from elsewhere import DEVICE, count, settings, things

def test_it():
    {}
"""


def profile_of(call):
    return needs_of("test_it.py", {"test_it.py": WRITTEN.format(call)})["test_it"]


@pytest.mark.parametrize(
    "call",
    [
        "torch.ones(1, device=f'cuda:{count()}')",
        "for i in range(count()): torch.ones(1, device=f'cuda:{i}')",
        "for i, x in enumerate(things()): x.to(i)",
        "[torch.ones(1, device=i) for i, x in enumerate(torch.ones(4))]",
        "i, x = next(enumerate(things()))\n    x.cuda(i)",
    ],
)
def test_a_device_of_which_the_number_is_not_known_is_one_and_less_sure(call):
    profile = profile_of(call)
    assert (profile.min, profile.gpu_min, profile.full, profile.confidence) == (1, 1, 1, "medium")


@pytest.mark.parametrize(
    ("call", "confidence"),
    [
        ("torch.ones(1, device=DEVICE)", "medium"),
        ("torch.ones(1).to(DEVICE)", "medium"),
        ("torch.ones(1).to(settings.device)", "medium"),
        ("torch.ones(1).to(torch.float32)", "high"),
        ("torch.ones(1, device=f'cpu:{count()}')", "medium"),
    ],
)
def test_a_device_of_a_module_that_is_not_there_is_less_sure(call, confidence):
    profile = profile_of(call)
    assert (profile.full, profile.confidence) == (0, confidence)


def test_what_stands_beside_all_devices_is_there_for_each():
    files = {
        "test_it.py": """
        import jax, numpy as np
        from elsewhere import things

        def test_rows():
            for device, row in zip(jax.devices(), np.ones((8, 2))):
                jax.device_put(row, device)

        def test_unknown():
            for device, thing in zip(jax.devices(), things()):
                jax.device_put(thing, device)

        def test_numbers():
            for device, number in zip(jax.devices(), np.ones(2)):
                jax.device_put(number, device)
        """
    }
    found = {name: (each.min, each.full, each.confidence) for name, each in needs_of("test_it.py", files).items()}
    assert found == {"test_rows": (0, 8, "high"), "test_unknown": (0, 8, "medium"), "test_numbers": (0, 2, "high")}


def test_what_is_deleted_from_a_list_is_no_longer_there():
    files = {
        "test_it.py": """
        import torch

        def test_first():
            devices = ["cpu", "cuda"]
            del devices[0]
            torch.ones(1, device=devices[0])

        def test_slice():
            devices = ["cuda:3", "cpu", "cuda:1"]
            del devices[:2]
            [torch.ones(1, device=each) for each in devices]

        class Without:
            def __init__(self):
                self.device = "cuda"
            def __delitem__(self, index):
                self.device = "cpu"

        def test_own():
            own = Without()
            del own[0]
            torch.ones(1, device=own.device)
        """
    }
    found = {name: (each.min, each.full, each.confidence) for name, each in needs_of("test_it.py", files).items()}
    assert found == {"test_first": (1, 1, "high"), "test_slice": (2, 2, "high"), "test_own": (0, 0, "high")}


def test_a_number_that_a_type_is_called_with_is_no_device():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import numpy
            import pytest
            from acme import make_array

            @pytest.mark.parametrize("dtype", ["float32", "uint8"])
            def test_of_numpys(dtype):
                assert numpy.dtype(dtype).type(3) == 3

            def test_of_what_is_not_known():
                assert make_array().dtype.type(3) == 3

            def test_a_kind_of_tensor():
                make_array().type("torch.cuda.FloatTensor")
            """
        },
    )
    assert found == {
        "test_of_numpys[float32]": (0, None, 0),
        "test_of_numpys[uint8]": (0, None, 0),
        "test_of_what_is_not_known": (0, None, 0),
        "test_a_kind_of_tensor": (1, 1, 1),
    }


def test_pytorch_says_for_what_it_was_built_and_has_no_other_vendors_devices():
    found = devices_of(
        "test_it.py",
        {
            "conftest.py": """
            import pytest, torch, elsewhere

            IS_BUILT = hasattr(torch.version, "cuda") and torch.version.cuda is not None
            HAS_CUDA = IS_BUILT and torch.cuda.device_count() > 0
            HAS_NEURON = hasattr(torch, "neuron") and torch.neuron.device_count() > 0
            HAS_TPU = hasattr(torch, "tpu") and torch.tpu.device_count() > 0
            HAS_NPU = elsewhere.backend_name() == "npu"

            @pytest.fixture
            def device():
                if HAS_CUDA:
                    return "cuda"
                elif HAS_NPU:
                    return "npu"
                elif HAS_TPU or HAS_NEURON:
                    return "tpu"
                return "cpu"
            """,
            "test_it.py": """
            import torch

            def test_on_the_first(device):
                torch.arange(10, device=device)

            def test_hip():
                if hasattr(torch.version, "hip") and torch.version.hip:
                    torch.ones(1, device="cuda")
            """,
        },
    )
    assert found == {"test_on_the_first": (0, 1, 1), "test_hip": (0, None, 0)}


def test_a_text_that_is_no_device_needs_none():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import pytest
            import torch

            def test_that_is_refused():
                with pytest.raises(RuntimeError, match="Invalid device string"):
                    torch.ones(1, device="cuda:first")
            """
        },
    )
    assert found == {"test_that_is_refused": (0, None, 0)}
