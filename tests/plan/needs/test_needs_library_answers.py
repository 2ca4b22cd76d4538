"""What the library under test is asked: flags of what is installed, sizes that it works out, tensors of the host."""

from small_projects import devices_of, needs_of

LIBRARY = {
    "acme/__init__.py": "",
    "acme/backends.py": """
        class Backends:
            is_installed = False
            fast = False
            experimental = False
            limit = 2

            @staticmethod
            def set_version(version):
                Backends.is_installed = True
                Backends.fast = version >= (3, 0)
                Backends.limit = 4
        """,
}


def test_a_flag_that_the_library_sets_when_it_finds_a_package_may_be_on():
    found = devices_of(
        "tests/test_it.py",
        LIBRARY
        | {
            "tests/test_it.py": """
            import pytest, torch
            from acme.backends import Backends

            @pytest.mark.skipif(not Backends.is_installed, reason="not installed")
            @pytest.mark.skipif(torch.cuda.device_count() < 4, reason="devices")
            def test_installed():
                torch.ones(1, device="cuda:3")

            def test_fast():
                if not Backends.fast:
                    pytest.skip("too old")
                torch.ones(1, device="cuda")

            @pytest.mark.skipif(not Backends.experimental, reason="never on")
            def test_never():
                pass
            """
        },
    )
    assert found == {"test_installed": (4, 4, 4), "test_fast": (1, 1, 1), "test_never": (None, None, None)}


def test_a_flag_that_the_library_sets_for_its_module_may_be_on():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/compiler.py": """
            has_cuda = has_more = 0
            is_slow = False
            count = 0

            def check():
                global has_cuda, has_more, count
                has_cuda = 1
                count += 1
            """,
            "tests/test_it.py": """
            import pytest, torch
            from acme import compiler

            @pytest.mark.skipif(not compiler.has_cuda, reason="no CUDA")
            def test_found():
                torch.ones(1, device="cuda")

            @pytest.mark.skipif(not compiler.has_more, reason="nobody sets it")
            def test_never():
                pass

            @pytest.mark.skipif(not compiler.is_slow, reason="nobody sets it")
            def test_slow():
                pass

            def test_count():
                if compiler.count == 0:
                    torch.ones(1, device="cuda:1")
            """,
        },
    )
    assert found == {
        "test_found": (1, 1, 1),
        "test_never": (None, None, None),
        "test_slow": (None, None, None),
        "test_count": (2, 2, 2),
    }


def test_a_name_that_a_module_makes_when_it_is_asked_may_be_another_where_an_if_binds_it():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": """
            import os

            def __getattr__(name):
                if name in ("WITHOUT_EXTENSION", "PLAIN"):
                    return bool(int(os.environ.get(name) or 0))
                raise AttributeError(name)

            if os.uname().machine == "wasm32":
                WITHOUT_EXTENSION = True

            if False:
                PLAIN = True
            """,
            "acme/magma.py": """
            from acme import WITHOUT_EXTENSION

            found = False
            if not WITHOUT_EXTENSION:
                from _acme.magma import *
                found = True

            if not found:
                def is_available():
                    return False
            """,
            "tests/test_it.py": """
            import pytest, torch
            from acme import PLAIN, WITHOUT_EXTENSION, magma

            @pytest.mark.skipif(not magma.is_available(), reason="no magma")
            def test_magma():
                torch.ones(1, device="cuda:1")

            def test_extension():
                if WITHOUT_EXTENSION:
                    pytest.skip("no extension")
                torch.ones(1, device="cuda")

            def test_plain():
                if PLAIN:
                    pytest.skip("plain")
                torch.ones(1, device="cuda")
            """,
        },
    )
    assert found == {"test_magma": (2, 2, 2), "test_extension": (1, 1, 1), "test_plain": (1, 1, 1)}


def test_what_other_modules_register_in_a_table_of_the_library_may_be_there():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": """
            import torch
            if torch.cuda.is_available():
                from .cuda import *
            """,
            "acme/cuda.py": """
            from .extensions import register_extension
            __all__ = []
            register_extension("acme_cuda")
            """,
            "acme/extensions.py": """
            _extensions = {}
            _seen = {}

            def register_extension(name):
                assert name not in _extensions
                _extensions[name] = True

            def is_extension_available(name):
                return name in _extensions

            def is_seen(name):
                found = name in _seen
                _seen[name] = True
                return found
            """,
            "tests/test_it.py": """
            import pytest, torch
            from acme.extensions import is_extension_available, is_seen

            @pytest.mark.skipif(not is_extension_available("acme_cuda"), reason="not built")
            def test_built():
                torch.ones(1, device="cuda")

            @pytest.mark.skipif(
                not is_extension_available("acme_cuda") or torch.cuda.get_device_capability()[0] < 8, reason="too old"
            )
            def test_new():
                torch.ones(1, device="cuda")

            def test_host():
                assert torch.ones(1).sum() == 1

            @pytest.mark.skipif(not is_seen("acme"), reason="nobody registers it")
            def test_kept():
                pass
            """,
        },
    )
    assert found == {
        "test_built": (1, 1, 1),
        "test_new": (1, 1, 1),
        "test_host": (0, None, 0),
        "test_kept": (None, None, None),
    }


def test_a_flag_of_the_tests_own_is_what_they_set_it_to():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import pytest

            class Flags:
                slow = False

                @staticmethod
                def enable():
                    Flags.slow = True

            @pytest.mark.skipif(not Flags.slow, reason="slow")
            def test_slow():
                pass
            """
        },
    )
    assert found == {"test_slow": (None, None, None)}


ENGINE = {
    "transformer_engine/__init__.py": "",
    "transformer_engine/pytorch/__init__.py": "",
    "transformer_engine/pytorch/attention.py": """
        def checked_window(mask, window=None):
            if "causal" in mask and (window is None or window == (-1, -1)):
                window = (-1, 0)
            return window
        """,
    "transformer_engine/pytorch/jit.py": """
        import torch

        def fused(x, eps):
            return torch.ops.fused(x, eps)
        """,
}


def test_what_a_function_of_the_library_says_of_plain_values_is_its_own_answer():
    found = needs_of(
        "tests/test_it.py",
        ENGINE
        | {
            "tests/test_it.py": """
            import pytest, torch
            from transformer_engine.pytorch.attention import checked_window

            WINDOWS = {"all": checked_window("causal"), "near": checked_window("causal", (128, 0))}

            @pytest.mark.parametrize("name", ["all", "near"])
            def test_window(name):
                if torch.cuda.device_count() < 2:
                    pytest.skip("devices")
                if WINDOWS[name] != (-1, 0):
                    pytest.skip("windows are not supported")
                torch.ones(1, device="cuda:1")
            """
        },
    )
    assert {name: each.min for name, each in found.items()} == {"test_window[all]": 2, "test_window[near]": None}


def test_a_tensor_that_is_made_on_the_host_by_name_is_one_of_the_host():
    found = devices_of(
        "tests/test_it.py",
        ENGINE
        | {
            "tests/test_it.py": """
            import torch
            from transformer_engine.pytorch.jit import fused

            def test_host():
                fused(torch.randn(4, 4, device="cpu"), 1e-6)

            def test_nothing_named():
                fused(torch.randn(4, 4, device=None), 1e-6)

            def test_where_there_is_a_device():
                device = "cuda" if torch.cuda.is_available() else "cpu"
                fused(torch.randn(4, 4, device=device), 1e-6)

            def test_device():
                fused(torch.randn(4, 4, device="cuda"), 1e-6)
            """
        },
    )
    assert found == {
        "test_host": (0, None, 0),
        "test_nothing_named": (0, None, 0),
        "test_where_there_is_a_device": (0, 1, 1),
        "test_device": (1, 1, 1),
    }


def test_a_private_function_of_the_library_is_asked_by_its_own_name():
    found = devices_of(
        "tests/test_it.py",
        ENGINE
        | {
            "transformer_engine/pytorch/choice.py": """
            def _choose(policy, asked): return policy or asked
            def choose(policy, asked): return policy or asked
            """,
            "tests/test_it.py": """
            from transformer_engine.pytorch import choice

            def test_private():
                assert choice._choose({"a": object()}, {"b": object()})

            def test_by_another_name():
                chosen = choice._choose
                chosen({"a": object()}, {"b": object()})

            def test_public():
                choice.choose({"a": object()}, {"b": object()})
            """,
        },
    )
    assert found == {"test_private": (0, None, 0), "test_by_another_name": (0, None, 0), "test_public": (1, 1, 1)}


def test_a_device_that_is_named_by_a_number_alone_fails_where_there_is_none():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import pytest, torch

            def test_number():
                assert torch.device(1).type == "cuda"

            def test_name():
                assert torch.device("cuda", 1).index == 1
            """
        },
    )
    assert found == {"test_number": (1, 1, 1), "test_name": (0, None, 0)}


def test_a_library_that_counts_devices_by_nvml_itself_counts_those_that_are_visible():
    found = devices_of(
        "tests/test_it.py",
        {
            "bolt/cuda.py": """
            import torch
            from functools import lru_cache
            from bolt.versions import _TORCH_IS_NEW

            @lru_cache(1)
            def num_cuda_devices():
                if _TORCH_IS_NEW:
                    return torch.cuda.device_count()
                count = _device_count_nvml()
                return torch.cuda.device_count() if count < 0 else count

            def _device_count_nvml():
                try:
                    raw = _raw_device_count_nvml()
                except OSError:
                    return -1
                return 0 if raw <= 0 else raw

            def _raw_device_count_nvml():
                from ctypes import CDLL, byref, c_int

                library = CDLL("libnvidia-ml.so.1")
                if library.nvmlInit() != 0:
                    return -1
                count = c_int(-1)
                library.nvmlDeviceGetCount_v2(byref(count))
                return count.value
            """,
            "bolt/versions.py": """
            import operator
            from lightning_utilities.core.imports import compare_version

            _TORCH_IS_NEW = compare_version("torch", operator.ge, "2.0.0")
            """,
            "tests/test_it.py": """
            from unittest import mock

            import pytest
            from bolt.cuda import num_cuda_devices

            @pytest.mark.skipif(any([num_cuda_devices() < 3]), reason="devices")
            def test_many():
                pass

            @mock.patch("bolt.cuda._device_count_nvml", return_value=-1)
            @mock.patch("torch.cuda.device_count", return_value=100)
            def test_patched(*_):
                assert num_cuda_devices() == 100
            """,
        },
    )
    assert found == {"test_many": (3, 3, 3), "test_patched": (0, None, 0)}


def test_what_one_way_sets_for_others_is_not_set_on_the_other_way():
    found = needs_of(
        "tests/test_it.py",
        {
            "lib/__init__.py": "",
            "lib/nvml.py": """
            import pynvml
            from elsewhere import configured

            STATE = "new"

            def init_once():
                global STATE
                if STATE == "off":
                    return
                elif STATE == "new" and not configured():
                    STATE = "off"
                    return
                elif STATE == "new":
                    try:
                        pynvml.nvmlInit()
                    except (pynvml.NVMLError_LibraryNotFound, pynvml.NVMLError_Unknown):
                        STATE = "off"
                        return
                    STATE = "on"
                else:
                    raise RuntimeError("what else")

            def device_get_count():
                init_once()
                if STATE != "on":
                    return 0
                return pynvml.nvmlDeviceGetCount()
            """,
            "tests/test_it.py": """
            import pytest
            from elsewhere import is_there
            from lib import nvml

            SIZE = 1

            def test_one():
                if nvml.device_get_count() < 1:
                    pytest.skip("no device")

            def test_two():
                if nvml.device_get_count() < 2:
                    pytest.skip("two devices")

            def test_of_its_own():
                global SIZE
                if is_there():
                    SIZE = 4
                else:
                    assert SIZE == 1
                if nvml.device_get_count() < SIZE:
                    pytest.skip("devices")
            """,
        },
    )
    assert {name: (each.min, each.gpu_min) for name, each in found.items()} == {
        "test_one": (1, 1),
        "test_two": (2, 2),
        "test_of_its_own": (1, 1),
    }


CALLING = {
    "acme/__init__.py": "",
    "acme/calling.py": """
        import torch

        def padded(wrapped, width=1):
            def wrapper(*args):
                sizes = set()
                for each in args:
                    sizes |= {one.shape[0] for one in [each]}
                return wrapped(*args, width)
            return wrapper

        def apply(function, *args):
            torch.ones(1, device="cuda:7")
            return twice(function, *args)

        def twice(function, *args):
            function(*args)
            return function(*args)

        def swallow(function):
            try:
                function()
            except RuntimeError:
                pass
        """,
}


def test_what_the_library_calls_back_is_the_tests_own_work():
    found = devices_of(
        "tests/test_it.py",
        CALLING
        | {
            "tests/test_it.py": """
            from functools import partial
            import pytest, torch
            from acme import calling

            def two(*given):
                torch.ones(1, device="cuda:1")

            def test_decorated():
                @partial(calling.padded, width=2)
                def add(first, second, width):
                    return first.cuda() + second

                add(torch.ones(4), torch.ones(4))

            def test_given():
                calling.apply(two, 3)

            def test_skipped():
                calling.twice(lambda: torch.cuda.device_count() > 3 or pytest.skip("four devices"))

            def test_swallowed():
                calling.swallow(two)

            def test_host():
                calling.twice(lambda: torch.ones(1))
            """
        },
    )
    assert found == {
        "test_decorated": (1, 1, 1),
        "test_given": (8, 8, 8),
        "test_skipped": (4, 4, 4),
        "test_swallowed": (0, 2, 2),
        "test_host": (0, None, 0),
    }


REGISTERED = """
    _all = []
    SIZES = {}
    SIZES["four"] = 4

    def register(name):
        def keep(cls):
            _all.append((name, cls))
            return cls
        return keep

    def cases():
        return ((name, cls) for name, cls in list(_all))

    def nothing():
        return []

    def more(name, size):
        SIZES[name] = size

    more("two", 2)

    @register("linear")
    class Linear:
        pass

    @register("mlp")
    class Mlp:
        pass
"""


def test_what_a_library_registers_in_its_lists_are_cases_of_the_tests():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/goldens.py": REGISTERED,
            "tests/test_it.py": """
            import pytest, torch
            from absl.testing import parameterized
            from acme import goldens

            class Test(parameterized.TestCase):
                @parameterized.named_parameters(goldens.cases())
                def test_golden(self, cls):
                    torch.ones(1, device="cuda")

                @parameterized.named_parameters(goldens.nothing())
                def test_of_nothing_known(self, cls):
                    torch.ones(1, device="cuda")

            @pytest.mark.parametrize("size", [each for each in goldens.SIZES.values()])
            def test_size(size):
                torch.ones(1, device=f"cuda:{size - 1}")
            """,
        },
    )
    assert found == {
        "Test::test_golden_linear": (1, 1, 1),
        "Test::test_golden_mlp": (1, 1, 1),
        "Test::test_of_nothing_known": (1, 1, 1),
        "test_size[4]": (4, 4, 4),
        "test_size[2]": (2, 2, 2),
    }


def test_arrays_that_the_library_makes_are_where_jax_puts_them():
    arrays = {
        "acme/__init__.py": "",
        "acme/arrays.py": """
            import jax.numpy as jnp
            import numpy as np
            import torch

            def total(values):
                return jnp.sum(_arranged(values))

            def _arranged(values):
                return jnp.reshape(values, -1)

            def size(values):
                return np.prod(values.shape)

            def either(values):
                if hasattr(values, "device"):
                    return jnp.sum(values)
                return np.sum(values)

            def tensor():
                return torch.ones(2, device="cuda")

            TABLE = jnp.ones(3)
        """,
    }
    tests = "\n".join(f"            def test_again_{i}():\n                total(read({i}))\n" for i in range(12))
    found = devices_of(
        "tests/test_it.py",
        arrays
        | {
            "tests/test_it.py": f"""
            from acme.arrays import TABLE, either, size, tensor, total
            from outside import read

{tests}
            def test_size():
                assert size(read(0)) == TABLE.size

            def test_not_known():
                either(read(0))

            def test_chosen():
                tensor()
            """
        },
    )
    assert found == {
        **{f"test_again_{i}": (0, 1, 1) for i in range(12)},
        "test_size": (0, None, 0),
        "test_not_known": (0, None, 0),
        "test_chosen": (1, 1, 1),
    }


def test_what_a_function_of_the_library_does_with_a_device_is_done_for_the_test():
    files = {
        "acme/__init__.py": "",
        "acme/core.py": """
            import torch
            from outside import setting

            def use_gpu(number=0):
                try:
                    device = torch.device("cuda:" + str(number))
                    _ = torch.zeros([1, 2]).to(device)
                    return True
                except:
                    return False

            def total(values):
                device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
                return _sum(values, device)

            def _sum(values, device):
                return torch.tensor([1, 2], device=device).sum()

            def warmed():
                torch.ones(1).cuda()

            def perhaps():
                if setting():
                    torch.ones(1).cuda()

            def with_the_second():
                torch.ones(1, device="cuda:1")

            def loader(dataset, pin_memory=True):
                return torch.utils.data.DataLoader(dataset, pin_memory=pin_memory)
        """,
        "tests/test_it.py": """
            import pytest, torch
            from unittest import mock
            from acme import core

            def test_is_there():
                core.use_gpu()

            def test_is_asked_for():
                if not core.use_gpu():
                    pytest.skip("no device")

            def test_total():
                core.total([1, 2])

            def test_warmed():
                core.warmed()

            def test_refused():
                with pytest.raises(ValueError):
                    core.warmed()

            def test_replaced():
                with mock.patch("acme.core.warmed"):
                    core.warmed()

            def test_perhaps():
                core.perhaps()

            def test_with_the_second():
                core.with_the_second()

            def test_loader():
                core.loader([1, 2])
        """,
    }
    found = needs_of("tests/test_it.py", files)
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_is_there": (0, 1, 1),
        "test_is_asked_for": (1, 1, 1),
        "test_total": (0, 1, 1),
        "test_warmed": (1, 1, 1),
        "test_refused": (1, 1, 1),
        "test_replaced": (0, None, 0),
        "test_perhaps": (0, None, 0),
        "test_with_the_second": (2, 2, 2),
        "test_loader": (0, None, 0),
    }
    unsure = {"test_perhaps", "test_loader"}
    assert {name for name, each in found.items() if each.confidence != "high"} == unsure


def test_a_class_of_the_library_that_puts_itself_on_the_first_device_does_so_for_the_test():
    files = {
        "acme/__init__.py": """
        import torch
        device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        """,
        "acme/models.py": """
        import acme
        import torch

        class Model(torch.nn.Module):
            def __init__(self, size):
                super().__init__()
                self.layer = torch.nn.Linear(size, size)
                self.to(acme.device)

        class Wide(Model):
            def __init__(self, size, depth=2):
                self.depth = depth
                super().__init__(size * 2)

        class Loader:
            def __init__(self, device=torch.device("cuda")):
                self.mean = torch.zeros(1).to(device)

        class Later:
            def __init__(self, size):
                self.size = size

            def place(self):
                return torch.ones(self.size).to(acme.device)
        """,
        "tests/test_it.py": """
        from acme.models import Later, Loader, Model, Wide
        import torch

        def test_model():
            Model(2)

        def test_wide():
            Wide(2)

        def test_loader():
            Loader()

        def test_loader_on_the_host():
            Loader(device=torch.device("cpu"))

        def test_later():
            Later(2)
        """,
    }
    found = needs_of("tests/test_it.py", files)
    assert {name: (each.min, each.gpu_min, each.full, each.confidence.name) for name, each in found.items()} == {
        "test_model": (0, 1, 1, "HIGH"),
        "test_wide": (0, 1, 1, "HIGH"),
        "test_loader": (1, 1, 1, "HIGH"),
        "test_loader_on_the_host": (0, None, 0, "HIGH"),
        "test_later": (0, None, 0, "HIGH"),
    }


def test_a_program_that_the_library_starts_is_not_the_tests_work():
    found = needs_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/peers.py": """
            import subprocess, sys, torch

            def can_reach():
                return subprocess.run([sys.executable, __file__]).returncode == 0

            if __name__ == "__main__":
                torch.ones(1, device="cuda:1")
            """,
            "tests/test_it.py": """
            from acme.peers import can_reach

            def test_reach():
                can_reach()
            """,
        },
    )
    assert [(each.min, each.gpu_min, str(each.confidence)) for each in found.values()] == [(0, None, "high")]


def test_a_library_that_is_told_to_use_a_device_does_where_there_is_one():
    found = needs_of(
        "tests/test_it.py",
        {
            "lib/__init__.py": """
            class Simulation:
                def __init__(self, steps, use_cuda=False):
                    self.use_cuda = use_cuda and is_installed()

            class SimulationConfig:
                def __init__(self, use_cuda=False):
                    self.use_cuda = use_cuda

            def run(use_gpu=False):
                return make(use_gpu)
            """,
            "tests/test_it.py": """
            import other
            from lib import Simulation, SimulationConfig, run

            def test_class():
                Simulation(3, use_cuda=True)

            def test_function():
                run(use_gpu=True)

            def test_outside():
                other.Trainer(use_gpu=True)

            def test_host():
                Simulation(3, use_cuda=False)
                SimulationConfig(use_cuda=True)
                run()
            """,
        },
    )
    said = {name: (each.min, each.gpu_min, each.full, each.confidence.value) for name, each in found.items()}
    told = dict.fromkeys(("test_class", "test_function", "test_outside"), (0, 1, 1, "medium"))
    assert said == told | {"test_host": (0, None, 0, "high")}


def test_what_the_library_makes_of_a_class_that_the_rules_know_is_made_as_that_is():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/trainers.py": """
            from transformers import Trainer, TrainingArguments

            class Arguments(TrainingArguments):
                pass

            class RewardTrainer(Trainer):
                def __init__(self, model, args=None, **more):
                    self.reward = unheard_of(model, args)
                    super().__init__(model=model, args=args)

            class OtherTrainer(Trainer):
                def __init__(self, *, teacher):
                    super().__init__(teacher.student, teacher.arguments)
            """,
            "tests/test_it.py": """
            from acme.trainers import Arguments, OtherTrainer, RewardTrainer

            def test_trained():
                RewardTrainer("model", args=Arguments(output_dir="x")).train()

            def test_on_the_host():
                RewardTrainer("model", args=Arguments(output_dir="x", use_cpu=True)).train()

            def test_only_told():
                Arguments(output_dir="x")

            def test_made_of_something_else():
                assert OtherTrainer(teacher=None)
            """,
        },
    )
    assert found == {
        "test_trained": (0, 1, 8),
        "test_on_the_host": (0, None, 0),
        "test_only_told": (0, 1, 1),
        "test_made_of_something_else": (0, 1, 1),
    }


def test_the_current_device_of_an_accelerator_is_used_by_what_is_put_on_it():
    library = {
        "acme/__init__.py": "",
        "acme/accelerator.py": """
        from .kinds import Cuda, Host

        _CHOSEN = None

        def get_accelerator():
            global _CHOSEN
            if _CHOSEN is None:
                _CHOSEN = Cuda() if Cuda().is_available() else Host()
            return _CHOSEN
        """,
        "acme/utils.py": """
        from .accelerator import get_accelerator

        def get_current_device():
            return get_accelerator().get_current_device()
        """,
    }
    found = devices_of(
        "tests/test_it.py",
        library
        | {
            "tests/test_it.py": """
            import torch
            from acme.utils import get_current_device

            def test_it():
                device = get_current_device()
                torch.randint(low=5, high=10, size=(1, 6)).to(device)

            def test_asked():
                assert get_current_device().type == "cuda"
            """
        },
    )
    assert found == {"test_it": (0, 1, 1), "test_asked": (1, 1, 1)}


def test_a_name_behind_stars_of_many_packages_comes_from_the_file_that_makes_it():
    library = {
        "acme/__init__.py": """
        from typing import TYPE_CHECKING

        from .lazy import LazyModule

        if TYPE_CHECKING:
            from .models import *
        else:
            import sys
            sys.modules[__name__] = LazyModule(__name__)
        """,
        "acme/lazy.py": "class LazyModule: ...",
        "acme/base.py": """
        class Configuration:
            plan = None

            def __init__(self, **options):
                for name, value in options.items():
                    setattr(self, name, value)
        """,
        "acme/models/__init__.py": """
        from typing import TYPE_CHECKING

        if TYPE_CHECKING:
            from .llama import *
            from .wide import *
        """,
        "acme/models/llama/__init__.py": """
        from typing import TYPE_CHECKING

        if TYPE_CHECKING:
            from .configuration import *
        """,
        "acme/models/llama/configuration.py": """
        from ...base import Configuration

        class LlamaConfig(Configuration):
            kind = "llama"
        """,
        "acme/models/wide.py": """
        from ..base import Configuration

        class WideConfig(Configuration):
            kind = "wide"
            plan = {"layers": "split"}

        NARROW = 1
        WIDE: int = 4
        """,
    }
    found = needs_of(
        "tests/test_it.py",
        library
        | {
            "tests/test_it.py": """
            import unittest

            import torch
            from acme import LlamaConfig, NoConfig, WideConfig, WIDE

            class Tester:
                made = LlamaConfig

                def configuration(self):
                    return self.made(**unheard_of())

            class WideTester(Tester):
                made = WideConfig

            class Mixin:
                tester = None

                def test_planned(self):
                    configuration = self.tester().configuration()
                    if configuration.kind not in {"wide", "wider"}:
                        self.skipTest(f"not enabled for {configuration.kind}")
                    if configuration.plan is None:
                        self.skipTest("no plan")
                    for number in range(WIDE):
                        torch.ones(1, device=f"cuda:{number}")

            class TestLlama(Mixin, unittest.TestCase):
                tester = Tester

            class TestWide(Mixin, unittest.TestCase):
                tester = WideTester

            def test_what_nobody_makes():
                if NoConfig().kind == "llama":
                    torch.ones(1, device="cuda:0")
            """
        },
    )
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "TestLlama::test_planned": (None, None, None),
        "TestWide::test_planned": (4, 4, 4),
        "test_what_nobody_makes": (0, 1, 1),
    }


def test_ranks_take_devices_of_the_accelerator_that_pytorch_has():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import os

            import pytest
            import torch
            import torch.distributed as dist
            import torch.multiprocessing as mp

            def kind():
                found = torch._C._get_accelerator().type
                return "cpu" if found == "mps" else found

            def workers():
                return (os.cpu_count() or 1) if kind() == "cpu" else torch.cuda.device_count()

            def work(rank, world_size):
                backend = {"cpu": "gloo", "cuda": "nccl"}.get(kind(), "gloo")
                if kind() == "cuda":
                    torch.cuda.set_device(rank)
                dist.init_process_group(backend, rank=rank, world_size=world_size)

            @pytest.mark.parametrize("world_size", [2, 4])
            def test_it(world_size):
                if workers() < world_size:
                    pytest.skip("too few")
                mp.spawn(work, args=(world_size,), nprocs=world_size)
            """
        },
    )
    assert found == {"test_it[2]": (0, 2, 2), "test_it[4]": (0, 4, 4)}


def test_what_a_compiled_module_of_the_library_does_is_not_known_for_certain():
    found = needs_of(
        "tests/test_it.py",
        {
            "lib/__init__.py": """
            from . import _fast
            from ._compiled import Context, version
            from lib._ops import total

            def summed(values):
                return total(values)

            def plain(values):
                return sum(values)

            def quick(values):
                return _fast.run(values)

            def __getattr__(name):
                import importlib

                return getattr(importlib.import_module("._chosen", __name__), name)
            """,
            "tests/test_it.py": """
            import math

            import acme.cuda.streams as streams
            import fast_cuda
            import lib
            from pandas import cuda_version
            from torch.backends import cuda

            def test_outside():
                streams.wait()

            def test_outside_by_name():
                fast_cuda.run(1)

            def test_asked():
                assert cuda_version() or cuda.matmul_is_fast()

            def test_called():
                lib.Context().finalize()

            def test_by_the_library():
                assert lib.summed([1, 2]) == 3

            def test_by_its_module():
                lib.quick([1])

            def test_by_its_name():
                lib.Session().finalize()

            def test_plain():
                assert lib.plain([1, 2]) == math.floor(3.1)

            def test_named():
                assert lib.version
            """,
        },
    )
    assert {name: (each.min, each.full, each.confidence.value) for name, each in found.items()} == {
        "test_outside": (0, 0, "medium"),
        "test_outside_by_name": (0, 0, "medium"),
        "test_asked": (0, 0, "high"),
        "test_called": (0, 0, "medium"),
        "test_by_the_library": (0, 0, "medium"),
        "test_by_its_module": (0, 0, "medium"),
        "test_by_its_name": (0, 0, "medium"),
        "test_plain": (0, 0, "high"),
        "test_named": (0, 0, "high"),
    }


def test_a_name_is_what_it_is_after_all_of_a_module_whichever_of_its_names_is_asked_for_first():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/found.py": """
            import importlib.util, os
            available = False
            if os.environ.get("USE_FLOW") != "no":
                available = importlib.util.find_spec("flow") is not None
                version = 2 if available else None

            def is_available():
                return available
            """,
            "tests/test_it.py": """
            import unittest, torch
            from acme.found import version
            from acme.found import is_available

            @unittest.skipUnless(is_available(), "needs flow")
            def test_it():
                torch.ones(1, device="cuda")
            """,
        },
    )
    assert found == {"test_it": (1, 1, 1)}


def test_one_of_many_names_that_a_package_tells_only_type_checkers_is_known():
    many = "\n".join(f"        from .models.other{each} import Other{each}" for each in range(300))
    library = {
        f"acme/models/other{each}.py": f"class Other{each}:\n    kind = [{each} + one for one in range(99)]\n"
        for each in range(300)
    }
    library |= {
        "acme/__init__.py": f"""
from typing import TYPE_CHECKING

from .lazy import SLOW_IMPORT, LazyModule, NotThere, is_there

if TYPE_CHECKING or SLOW_IMPORT:
    try:
        if not is_there():
            raise NotThere()
    except NotThere:
        from .dummies import *
    else:
{many}
        from .models.one import Model
    from .models.one import Model as Renamed
else:
    import sys
    sys.modules[__name__] = LazyModule(__name__)
""",
        "acme/lazy.py": """
        import os

        SLOW_IMPORT = os.environ.get("SLOW_IMPORT", "").upper() in {"1", "ON"}
        class LazyModule: ...
        class NotThere(Exception): ...
        def is_there(): return True
        """,
        "acme/dummies.py": "class Model:\n    spread = 4\n",
        "acme/models/one.py": "class Model:\n    spread = 2\n",
        "acme/models/two.py": "class Chosen:\n    spread = 3\n",
    }
    found = needs_of(
        "tests/test_it.py",
        library
        | {
            "tests/test_it.py": """
            import torch
            from acme import Model, Renamed

            def use(number):
                for each in range(number):
                    torch.ones(1, device=f"cuda:{each}")

            def test_model():
                use(Model.spread)

            def test_renamed():
                use(Renamed.spread if Renamed.spread == 2 else 8)
            """
        },
    )
    said = {name: (each.min, each.gpu_min, each.full) for name, each in found.items()}
    assert said["test_model"] == said["test_renamed"] == (2, 2, 2)
    assert found["test_model"].confidence == "high"


def test_what_a_condition_binds_anew_is_what_it_binds_for_the_rest_of_its_body():
    """The first binding comes before the statement that binds the name again, whichever name of it is asked for."""
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/settings.py": """
            from .found import is_fast_available

            KINDS = {}

            if is_fast_available():
                KINDS = {"static": 1, "offloaded": 2}
                ALL = list(KINDS) + ["dynamic"]
            """,
            "acme/found.py": """
            def is_fast_available():
                return _is_found
            """,
            "tests/test_it.py": """
            import pytest, torch
            from acme.settings import ALL

            @pytest.mark.parametrize("kind", ALL)
            def test_kind(kind):
                if kind == "offloaded":
                    torch.ones(1, device="cuda:1")
            """,
        },
    )
    host = (0, None, 0)
    assert found == {"test_kind[static]": host, "test_kind[offloaded]": (2, 2, 2), "test_kind[dynamic]": host}


def test_a_copy_of_a_function_does_what_the_function_does():
    """What a library's classes are given by a copy of it (`types.FunctionType`), to have another text, is theirs."""
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/auto.py": """
            import functools, types

            class _Auto:
                @classmethod
                def from_pretrained(cls, name, **options):
                    return _loaded(name)

            def _copied(function):
                made = types.FunctionType(
                    function.__code__, function.__globals__, name=function.__name__, argdefs=function.__defaults__
                )
                made = functools.update_wrapper(made, function)
                made.__kwdefaults__ = function.__kwdefaults__
                return made

            def _named(cls):
                load = _copied(_Auto.from_pretrained)
                load.__doc__ = f"Makes a {cls.__name__}."
                cls.from_pretrained = classmethod(load)
                return cls

            class AutoModel(_Auto):
                pass

            AutoModel = _named(AutoModel)
            """,
            "tests/test_it.py": """
            import types
            import torch
            from acme.auto import AutoModel

            def work(count=2):
                torch.ones(1, device=f"cuda:{count - 1}")

            def test_put():
                AutoModel.from_pretrained("small").to("cuda:1")

            def test_mapped():
                AutoModel.from_pretrained("small", device_map="auto")

            def test_host():
                AutoModel.from_pretrained("small")

            def test_own():
                types.FunctionType(work.__code__, globals(), argdefs=(2,))(4)
            """,
        },
    )
    assert found == {
        "test_put": (2, 2, 2),
        "test_mapped": (0, 1, 1),
        "test_host": (0, None, 0),
        "test_own": (4, 4, 4),
    }


def test_what_the_library_enters_and_does_not_get_to_leave_is_left():
    """A library that makes its models without memory may take more steps than it is given before it has left that."""
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": """
            import contextlib
            import torch

            class Contexts:
                def __init__(self, managers):
                    self.managers, self.stack = managers, contextlib.ExitStack()

                def __enter__(self):
                    for each in self.managers:
                        self.stack.enter_context(each)

                def __exit__(self, *details):
                    self.stack.__exit__(*details)

            def loaded():
                with Contexts([torch.device("meta")]):
                    for number in range(100000):
                        str(number)
            """,
            "tests/test_it.py": """
            import torch
            from acme import loaded

            def test_after():
                loaded()
                torch.ones(1, device="cuda")
            """,
        },
    )
    assert found == {"test_after": (1, 1, 1)}


def test_what_the_library_is_told_to_take_and_is_not_seen_to_take_is_not_known_for_certain():
    found = needs_of(
        "tests/test_it.py",
        {
            "fabric/__init__.py": """
            class Fabric:
                def __init__(self, accelerator="auto", devices="auto", precision=32):
                    self.devices = _choose(accelerator, devices)

                def run(self):
                    return 1

            def _choose(accelerator, devices):
                return []

            class Quiet(Fabric):
                def __init__(self, accelerator="cpu", precision=32):
                    self.devices = []
            """,
            "tests/test_it.py": """
            import pytest
            from fabric import Fabric, Quiet

            class Mine(Fabric):
                def more(self):
                    return 2

            def test_devices():
                Mine(devices=2).run()

            def test_kind():
                Fabric(accelerator="gpu").run()

            def test_host():
                Mine(accelerator="cpu", devices=2).run()

            def test_plain():
                Fabric(precision=16).run()

            def test_of_the_host():
                Quiet(precision=16).run()
            """,
        },
    )
    assert {name: (each.min, each.full, each.confidence.value) for name, each in found.items()} == {
        "test_devices": (0, 0, "medium"),
        "test_kind": (0, 0, "medium"),
        "test_host": (0, 0, "high"),
        "test_plain": (0, 0, "medium"),
        "test_of_the_host": (0, 0, "high"),
    }


def test_accelerates_state_in_its_own_tree_is_of_the_device_unless_it_is_told_the_host():
    found = devices_of(
        "tests/test_it.py",
        {
            "src/accelerate/__init__.py": """
            from .accelerator import Accelerator
            from .state import PartialState
            """,
            "src/accelerate/state.py": """
            import torch

            class PartialState:
                _shared_state = {}

                def __init__(self, cpu: bool = False, **kwargs):
                    self.__dict__ = self._shared_state
                    if not self.initialized:
                        self.device = torch.device("cpu") if cpu else self.default_device

                @property
                def default_device(self):
                    return torch.device(found_by_many_vendors())

            class AcceleratorState:
                def __init__(self, mixed_precision=None, cpu: bool = False, **kwargs):
                    self.__dict__ = self._shared_state
            """,
            "src/accelerate/accelerator.py": """
            from .state import AcceleratorState

            class Accelerator:
                def __init__(self, device_placement=True, split_batches=None, mixed_precision=None, steps=1, cpu=False):
                    self.state = AcceleratorState(mixed_precision=mixed_precision, cpu=cpu)

                @property
                def device(self):
                    return self.state.device

                def prepare(self, *args):
                    return self.prepare_all(args)
            """,
            "src/accelerate/data_loader.py": """
            from torch.utils.data import DataLoader

            class DataLoaderDispatcher(DataLoader):
                def __iter__(self):
                    yield from self.fetched_and_sent()
            """,
            "tests/test_it.py": """
            import torch
            from accelerate import Accelerator, PartialState
            from accelerate.data_loader import DataLoaderDispatcher
            from accelerate.state import AcceleratorState

            def test_batches():
                for index, _ in enumerate(DataLoaderDispatcher(range(16), batch_size=4)):
                    assert index >= 0

            def test_loader():
                assert DataLoaderDispatcher(range(16), batch_size=4) is not None

            def test_state():
                state = PartialState()
                torch.zeros(2).to(state.device)

            def test_whole_state():
                torch.zeros(2, device=AcceleratorState().device)

            def test_accelerator():
                torch.zeros(2).to(Accelerator().device)

            def test_its_state():
                torch.zeros(2).to(Accelerator().state.device)

            def test_prepared():
                Accelerator().prepare(torch.nn.Linear(2, 2))

            def test_state_of_the_host():
                torch.zeros(2).to(PartialState(cpu=True).device)

            def test_state_of_the_host_by_position():
                torch.zeros(2).to(PartialState(True).device)

            def test_accelerator_of_the_host():
                torch.zeros(2).to(Accelerator(cpu=True).device)

            def test_prepared_on_the_host():
                accelerator = Accelerator(mixed_precision="no", cpu=True)
                accelerator.prepare(torch.nn.Linear(2, 2))
            """,
        },
    )
    on_a_device = {
        "test_state",
        "test_whole_state",
        "test_accelerator",
        "test_its_state",
        "test_prepared",
        "test_batches",
    }
    assert found == {name: (0, 1, 1) if name in on_a_device else (0, None, 0) for name in found}
    assert len(found) == 11


def test_what_a_base_from_elsewhere_makes_of_a_class_of_the_library_is_not_sure():
    files = {
        "acme/__init__.py": "",
        "acme/models.py": """
        from huggingface_hub import PyTorchModelHubMixin

        class Model(PyTorchModelHubMixin):
            @classmethod
            def _from_pretrained(cls, name, device=None):
                return cls()

        class Own:
            @classmethod
            def from_pretrained(cls, name):
                return cls()
        """,
        "tests/test_it.py": """
        import torch
        from acme.models import Model, Own

        def test_of_a_base():
            Model.from_pretrained("small")

        def test_its_own():
            Own.from_pretrained("small")

        def test_placed():
            Model.from_pretrained("small", device="cuda")
        """,
    }
    found = needs_of("tests/test_it.py", files)
    assert {name: (each.min, each.gpu_min, each.full, each.confidence.name) for name, each in found.items()} == {
        "test_of_a_base": (0, None, 0, "MEDIUM"),
        "test_its_own": (0, None, 0, "HIGH"),
        "test_placed": (1, 1, 1, "HIGH"),
    }


def test_what_is_put_on_a_device_of_a_librarys_object_that_is_not_known_is_not_sure():
    found = needs_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": """
            class State:
                def __init__(self):
                    self.device = found_by_trying_many_vendors()
            """,
            "tests/test_it.py": """
            import torch
            from acme import State

            def test_moved():
                torch.zeros(1).to(State().device)

            def test_made_there():
                torch.zeros(1, device=State().device)

            def test_state():
                State()
            """,
        },
    )
    assert {name: each.confidence.name for name, each in found.items()} == {
        "test_moved": "MEDIUM",
        "test_made_there": "MEDIUM",
        "test_state": "HIGH",
    }


def test_a_method_of_the_librarys_that_is_given_a_device_without_its_name_uses_it():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/model.py": """
            import torch

            class Model:
                def longest(self, text, device):
                    return int(torch.tensor([len(text)], device=device).item())

                def _get_longest(self, text, device):
                    return torch.tensor([len(text)]).to(device)

                def get_name(self, device):
                    return str(device)

            model = Model()
            """,
            "tests/test_it.py": """
            import torch
            from acme.model import model

            def test_given():
                if torch.cuda.device_count() > 1:
                    model.longest("a", "cuda")

            def test_given_to_one_that_is_named_as_if_it_asked():
                if torch.cuda.device_count() > 1:
                    model._get_longest("a", "cuda")

            def test_asked():
                model.get_name("cuda")
            """,
        },
    )
    assert found == {
        "test_given": (0, 2, 2),
        "test_given_to_one_that_is_named_as_if_it_asked": (0, 2, 2),
        "test_asked": (0, None, 0),
    }


def test_a_record_that_inherits_from_one_has_its_fields():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/model.py": """
            from typing import Callable, NamedTuple
            import jax.numpy as jnp

            class Transformation(NamedTuple):
                init: Callable

            class More(Transformation):
                \"\"\"Takes more arguments.\"\"\"

            def scaled():
                def init(params):
                    return {"count": jnp.zeros([]), "params": params}
                return Transformation(init)

            def more(transformation):
                return More(transformation.init)
            """,
            "tests/test_it.py": """
            from acme.model import more, scaled

            def test_it():
                more(scaled()).init({})
            """,
        },
    )
    assert found == {"test_it": (0, 1, 1)}


def test_a_method_of_the_librarys_makes_arrays_where_its_module_has_a_framework_of_arrays():
    found = needs_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/model.py": """
            import jax.numpy as jnp

            class Model:
                def __init__(self, size):
                    self.size = size

                def predict(self, times):
                    return [jnp.zeros(self.size)] * times

                def get_size(self):
                    return self.size

                def load(self, path):
                    return _native.load(path)
            """,
            "tests/test_it.py": """
            from acme.model import Model

            def test_made():
                Model(3).predict(2)

            def test_asked():
                assert Model(3).get_size() == 3

            def test_unknown():
                Model(3).load("a")
            """,
        },
    )
    assert {name: (each.gpu_min, each.confidence.value) for name, each in found.items()} == {
        "test_made": (1, "high"),
        "test_asked": (None, "high"),
        "test_unknown": (None, "medium"),
    }


def test_what_a_class_of_the_tests_inherits_from_the_library_may_choose_a_device():
    found = {
        name: (each.min, each.gpu_min, each.full, each.confidence)
        for name, each in needs_of(
            "tests/test_it.py",
            {
                "lib/__init__.py": """
                import torch

                class Runner:
                    def __init__(self, accelerator="auto", devices="auto"):
                        has_device = torch.cuda.is_available() and accelerator != "cpu"
                        self.device = torch.device("cuda" if has_device else "cpu")
                        self.state = torch.zeros(1).to(self.device)

                class Connecting:
                    def __init__(self, accelerator="auto", devices="auto"):
                        self.connector = _Connector(accelerator=accelerator, devices=devices)
                """,
                "tests/test_it.py": """
                from lib import Connecting, Runner

                class Plain(Runner):
                    def run(self):
                        pass

                class Calling(Runner):
                    def __init__(self, **more):
                        self.more = 1
                        super().__init__(**more)

                class Connected(Connecting):
                    pass

                def test_inherited():
                    Plain().run()

                def test_called():
                    Calling()

                def test_in_a_test():
                    class Mine(Runner):
                        pass

                    Mine()

                def test_told_the_host():
                    Calling(accelerator="cpu")

                def test_behind():
                    Connected(devices=1)

                def test_behind_on_the_host():
                    Connected(accelerator="cpu")
                """,
            },
        ).items()
    }
    assert found == {
        "test_inherited": (0, 1, 1, "high"),
        "test_called": (0, 1, 1, "high"),
        "test_in_a_test": (0, 1, 1, "high"),
        "test_told_the_host": (0, None, 0, "high"),
        "test_behind": (0, None, 0, "medium"),
        "test_behind_on_the_host": (0, None, 0, "high"),
    }


def test_of_a_default_that_a_record_of_the_library_changes_when_it_is_made_nothing_is_known():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/config.py": """
            from dataclasses import dataclass
            from typing import Optional

            @dataclass
            class Config:
                kind: Optional[str] = None
                size: int = 1

            @dataclass
            class Wide(Config):
                def __post_init__(self):
                    self.kind = "wide"
            """,
            "tests/test_it.py": """
            import pytest
            import torch
            from acme.config import Wide

            def test_it():
                config = Wide(size=2)
                if config.kind not in ("wide", "narrow"):
                    pytest.skip("of another kind")
                torch.ones(config.size, device=f"cuda:{config.size - 1}")
            """,
        },
    )
    assert found == {"test_it": (2, 2, 2)}


def test_what_the_library_does_with_other_devices_than_the_first_is_done_for_the_test_too():
    library = """
    import torch

    def pick(count):
        picked = []
        for _ in range(count):
            picked.append(pick_one(picked))
        return picked

    def pick_one(taken):
        for index in range(torch.cuda.device_count()):
            if index not in taken:
                torch.ones(1).to(f"cuda:{index}")
                return index

    def work():
        return torch.ones(1).to("cuda:0")
    """
    tests = """
    import torch
    from acme import pick, work

    def test_all():
        assert pick(torch.cuda.device_count()) == list(range(torch.cuda.device_count()))

    def test_one():
        assert pick(1) == [0]

    def test_work():
        work()
    """
    found = needs_of("tests/test_it.py", {"tests/test_it.py": tests, "acme/__init__.py": library})
    said = {name: (each.gpu_min, each.full, each.confidence.value) for name, each in found.items()}
    assert said == {"test_all": (1, 8, "high"), "test_one": (1, 1, "high"), "test_work": (1, 1, "high")}


def test_what_the_library_itself_says_of_missing_devices_may_be_the_one_that_is_asked_for():
    library = """
    import torch

    class Misuse(Exception):
        pass

    def pick(count):
        there = torch.cuda.device_count()
        if count > there:
            raise Misuse(f"You asked for {count} devices but there are {there}.")

    def take(count):
        if count > torch.cuda.device_count():
            raise ValueError(f"You asked for {count} devices.")

    def hold(count, text=unknown()):
        if count > torch.cuda.device_count():
            raise ValueError(text)
    """
    tests = """
    import unittest
    import pytest
    from acme import Misuse, hold, pick, take

    class TestIt(unittest.TestCase):
        def test_pick(self):
            with self.assertRaisesRegex(Misuse, "asked for 30 devices"):
                pick(30)

        def test_called(self):
            self.assertRaisesRegex(ValueError, "asked for 3 devices", take, 3)

    def test_take():
        with pytest.raises(ValueError, match="asked for 3"):
            take(3)

    def test_other():
        with pytest.raises(ValueError, match="shapes differ"):
            take(3)

    def test_hold():
        with pytest.raises(ValueError, match="shapes differ"):
            hold(3)
    """
    found = needs_of("tests/test_it.py", {"tests/test_it.py": tests, "acme/__init__.py": library})
    said = {
        name: (each.min, "".join(verdict.value[0] for verdict in each.profile.values()), each.confidence.value)
        for name, each in found.items()
    }
    assert said == {
        "TestIt::test_pick": (0, "rrrrrr", "high"),
        "TestIt::test_called": (0, "rrrrrr", "high"),
        "test_take": (0, "rrrrrr", "high"),
        "test_other": (3, "fffrrr", "high"),
        "test_hold": (0, "rrrrrr", "medium"),
    }


def test_functions_of_the_library_whose_names_say_that_they_move_something_to_a_device_need_one():
    library = """
    def to_cudf(array):
        return array._to_cudf()

    def to_backend(array, backend):
        return array._to(backend)
    """
    text = """
    import acme

    def test_by_name():
        assert acme.to_cudf(acme.made())

    def test_told():
        acme.to_backend(acme.made(), "cuda")

    def test_told_the_host():
        acme.to_backend(acme.made(), "cpu")
    """
    found = needs_of("tests/test_it.py", {"tests/test_it.py": text, "acme/__init__.py": library})
    assert {name: each.min for name, each in found.items()} == {
        "test_by_name": 1,
        "test_told": 1,
        "test_told_the_host": 0,
    }


def test_a_count_of_devices_that_fails_without_one_fails_whoever_calls_the_library():
    library = """
    import cupy

    def devices():
        return list(range(cupy.cuda.runtime.getDeviceCount()))
    """
    text = """
    import acme

    def test_devices():
        assert acme.devices() is not None
    """
    found = needs_of("tests/test_it.py", {"tests/test_it.py": text, "acme/__init__.py": library})
    assert found["test_devices"].min == 1


def test_a_helper_that_cannot_be_read_leaves_a_doubt():
    text = """
    import torch
    from helpers import gpu_test

    @gpu_test
    def test_it():
        assert torch.ones(1) is not None
    """
    found = needs_of("test_it.py", {"test_it.py": text, "helpers.py": "def gpu_test[[T](test):\n    return test\n"})
    assert found["test_it"].confidence.value == "medium"


def test_what_the_library_puts_into_the_environment_around_the_tests_function_is_there_for_it():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/around.py": """
            import os
            from contextlib import contextmanager

            @contextmanager
            def patched(**variables):
                for name, value in variables.items():
                    os.environ[name] = str(value)
                yield
                for name in variables:
                    os.environ.pop(name, None)

            def called(function):
                with patched(ADDRESS="localhost"):
                    function()
            """,
            "tests/test_it.py": """
            import os
            import torch
            from acme.around import called

            def work():
                if not os.environ.get("ADDRESS"):
                    raise RuntimeError("no address")
                torch.ones(1, device="cuda:1")

            def test_inside():
                called(work)
            """,
        },
    )
    assert found == {"test_inside": (2, 2, 2)}


def test_a_library_that_refuses_fewer_devices_than_it_is_asked_for_is_believed_where_it_has_listed_them():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/pipe.py": """
            import torch

            def split(parts, devices):
                if parts > len(devices):
                    raise IndexError("too few devices")
                return devices[:parts]

            class Pipe(torch.nn.Module):
                def __init__(self, parts, devices=None):
                    super().__init__()
                    if devices is None:
                        devices = range(torch.cuda.device_count())
                    self.devices = split(parts, [torch.device(each) for each in devices])
            """,
            "tests/test_it.py": """
            import torch
            from acme.pipe import Pipe, split

            def test_of_all():
                Pipe(2)

            def test_of_a_list():
                split(3, list(range(torch.cuda.device_count())))

            def test_of_the_host():
                Pipe(2, devices=["cpu", "cpu"])
            """,
        },
    )
    assert found == {"test_of_all": (2, 2, 2), "test_of_a_list": (3, 3, 3), "test_of_the_host": (0, None, 0)}


def test_what_the_library_raises_wherever_there_is_a_device_is_not_believed():
    found = needs_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": """
            import torch

            def current(tag):
                if torch.cuda.is_available():
                    raise ValueError(f"no context of {tag}")

            def pair():
                if torch.cuda.device_count() > 2:
                    raise ValueError("two at most")
            """,
            "tests/test_it.py": """
            import acme

            def test_wherever():
                acme.current("jit")

            def test_with_more():
                acme.pair()
            """,
        },
    )
    profiles = {name: "".join(each.profile[size][0] for size in each.profile) for name, each in found.items()}
    assert profiles == {"test_wherever": "rrrrrr", "test_with_more": "rrrfff"}


def test_a_module_of_the_library_that_takes_a_device_while_it_is_imported_is_not_imported_without_one():
    library = {
        "acme/__init__.py": "",
        "acme/ready.py": """
        import pycuda.autoinit
        import pycuda.driver as driver

        def size():
            return 3
        """,
        "acme/behind.py": """
        from acme.ready import (
            size,
        )

        def twice():
            return 6
        """,
        "acme/held.py": """
        import torch

        ZERO = torch.zeros(1, device="cuda")

        def size():
            return 3
        """,
        "acme/fast/__init__.py": "from ..ready import size",
        "acme/fast/plain.py": "def size():\n    return 3",
        "acme/guarded.py": """
        import torch

        try:
            import pycuda.autoinit
        except ImportError:
            pass
        ZERO = torch.zeros(1, device="cuda") if torch.cuda.is_available() else None

        def later():
            import pycuda.autoinit
            return torch.cuda.current_stream()

        def size():
            return 3
        """,
    }
    texts = {
        "tests/test_whole.py": "from acme.ready import size",
        "tests/test_by_name.py": "import acme.ready",
        "tests/test_module.py": "from acme import ready",
        "tests/test_behind.py": "from acme.behind import twice",
        "tests/test_held.py": "from acme.held import size",
        "tests/test_package.py": "import acme.fast.plain",
        "tests/test_guarded.py": "from acme.guarded import size",
    }
    files = library | {path: f"{text}\n\ndef test_it():\n    pass\n" for path, text in texts.items()}
    files["tests/test_inside.py"] = """
    def test_it():
        from acme.behind import twice

    def test_another():
        pass
    """
    found = {
        f"{path[11:-3]}::{name}": (each.min, each.gpu_min, each.full, str(each.confidence.value))
        for path in (*texts, "tests/test_inside.py")
        for name, each in needs_of(path, files).items()
    }
    assert found == {
        "whole::test_it": (1, 1, 1, "medium"),
        "by_name::test_it": (1, 1, 1, "medium"),
        "module::test_it": (1, 1, 1, "medium"),
        "behind::test_it": (1, 1, 1, "medium"),
        "held::test_it": (1, 1, 1, "medium"),
        "package::test_it": (1, 1, 1, "medium"),
        "guarded::test_it": (0, None, 0, "high"),
        "inside::test_it": (1, 1, 1, "medium"),
        "inside::test_another": (0, None, 0, "high"),
    }


DECORATORS = """
    import functools

    import elsewhere
    import torch

    def logged(func):
        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            return func(*args, **kwargs)
        return wrapper

    def bare(func):
        def wrapper(*args, **kwargs):
            return func(*args, **kwargs)
        return wrapper
"""

WRAPPED = {
    "acme/__init__.py": "",
    "acme/wrapped.py": DECORATORS
    + """
    @logged
    def nothing(x):
        return elsewhere.thing(x)

    @logged
    def number(x):
        return x + 1

    @logged
    def outer(x):
        return inner(x)

    @logged
    def inner(x):
        torch.ones(1, device="cuda")
        return x

    @bare
    def bare_nothing(x):
        return elsewhere.thing(x)

    @bare
    def bare_number(x):
        return x + 2

    class Stage:
        @logged
        def stay(self):
            for number in range(1000):
                x = [each + other for each in range(60) for other in range(60)][:9]
            return x

        @logged
        def work(self):
            return torch.ones(1, device="cuda:1")
    """,
}


def test_what_one_function_gives_says_nothing_of_another_that_the_same_decorator_has_wrapped():
    given_up = "".join(f"    def test_nothing_{n}():\n        nothing({n}), bare_nothing({n})\n\n" for n in range(10))
    text = f"""
    import elsewhere
    import torch
    from acme.wrapped import Stage, bare_nothing, bare_number, nothing, number, outer

    def test_stay():
        Stage().stay()

{given_up}
    def test_number():
        torch.ones(1, device=f"cuda:{{number(1)}}")

    def test_bare_number():
        torch.ones(1, device=f"cuda:{{bare_number(1)}}")

    def test_outer():
        outer(elsewhere.thing())

    def test_work():
        Stage().work()
    """
    found = devices_of("tests/test_it.py", WRAPPED | {"tests/test_it.py": text})
    assert {name: each for name, each in found.items() if "nothing" not in name} == {
        "test_stay": (0, None, 0),
        "test_number": (3, 3, 3),
        "test_bare_number": (4, 4, 4),
        "test_outer": (1, 1, 1),
        "test_work": (2, 2, 2),
    }


def test_a_function_that_calls_another_with_the_same_decorator_does_not_call_itself():
    text = (
        DECORATORS
        + """
    @logged
    def inner(x):
        torch.ones(1, device="cuda")

    @logged
    def outer(x):
        inner(x)

    @bare
    def bare_inner(x):
        torch.ones(1, device="cuda:1")

    @bare
    def bare_outer(x):
        bare_inner(x)

    @logged
    def again(x):
        again(x)

    def test_logged():
        outer(elsewhere.thing())

    def test_bare():
        bare_outer(elsewhere.thing())

    def test_again():
        again(elsewhere.thing())
    """
    )
    found = devices_of("test_it.py", {"test_it.py": text})
    assert found == {"test_logged": (1, 1, 1), "test_bare": (2, 2, 2), "test_again": (0, None, 0)}


def test_a_function_that_is_wrapped_is_told_what_it_takes_inside():
    library = """
    import functools

    import elsewhere
    import torch

    def logged(func):
        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            return func(*args, **kwargs)
        return wrapper

    @logged
    def put(x, device="cpu"):
        return elsewhere.put(x, device)

    @logged
    def join(rank, world_size, backend="nccl"):
        return elsewhere.join(rank, world_size, backend)

    @logged
    def init_dist():
        elsewhere.join()
        torch.cuda.set_device(elsewhere.number())

    class Store:
        @logged
        def put(self, x, device="cpu"):
            return elsewhere.put(x, device)
    """
    text = """
    import torch.multiprocessing as mp
    from acme.store import Store, init_dist, join, put

    def test_by_place():
        put(3, "cuda:1")

    def test_on_the_host():
        put(3, "cpu")

    def test_method():
        Store().put(3, "cuda:2")

    def joined(rank):
        join(rank, 3)

    def test_ranks():
        mp.spawn(joined, nprocs=3)

    def initialized(rank):
        init_dist()

    def test_ranks_that_choose():
        mp.spawn(initialized, nprocs=4)
    """
    found = devices_of("tests/test_it.py", {"acme/__init__.py": "", "acme/store.py": library, "tests/test_it.py": text})
    assert found == {
        "test_by_place": (2, 2, 2),
        "test_on_the_host": (0, None, 0),
        "test_method": (3, 3, 3),
        "test_ranks": (3, 3, 3),
        "test_ranks_that_choose": (4, 4, 4),
    }


def test_what_a_function_does_that_is_told_otherwise_is_asked_again():
    library = """
    import elsewhere
    import torch

    def measured(x, fast=False, where="cpu"):
        if fast:
            torch.ones(1, device="cuda")
        return elsewhere.thing(x).put(where)

    class Stage:
        device = "cuda"

        def run(self, fast=False):
            if fast:
                return torch.ones(1, device="cuda:1")
            for number in range(1000):
                x = [each + other for each in range(60) for other in range(60)][:9]
            return x
    """
    given_up = "".join(
        f"    def test_slow_{n}():\n        measured({n}, fast=False), Stage().run()\n\n" for n in range(10)
    )
    text = f"""
    from acme.measuring import Stage, measured

{given_up}
    def test_fast():
        measured(1, fast=True)

    def test_by_place():
        measured(1, True)

    def test_method():
        Stage().run(fast=True)
    """
    files = {"acme/__init__.py": "", "acme/measuring.py": library, "tests/test_it.py": text}
    found = devices_of("tests/test_it.py", files)
    assert {name: each for name, each in found.items() if "slow" not in name} == {
        "test_fast": (1, 1, 1),
        "test_by_place": (1, 1, 1),
        "test_method": (2, 2, 2),
    }


def test_functions_that_are_around_each_other_are_looked_at_once():
    library = """
    import elsewhere

    def ring():
        def first(x):
            return second(x)

        def around(func):
            def called(x):
                return elsewhere.thing(x) if x is None else func(None)
            return called

        second = around(first)
        return first

    work = ring()
    """
    text = """
    from acme.rings import work

    def test_ring():
        work(1)
    """
    found = needs_of("tests/test_it.py", {"acme/__init__.py": "", "acme/rings.py": library, "tests/test_it.py": text})
    assert list(found) == ["test_ring"]
