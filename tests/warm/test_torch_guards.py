import contextlib
import functools
import gc
import importlib
import os
import subprocess
import sys
import types
import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sooner.warm.guards import GuardSet, Threads
from sooner.warm.torch_guards import everything, torch_guards
from sooner.warm.torch_witnesses import torch_witnesses

torch: Any = pytest.importorskip("torch")
numpy: Any = pytest.importorskip("numpy")

GUARDS = GuardSet(torch_guards(), torch_witnesses())
KEPT: dict[str, Any] = {}


@pytest.fixture(scope="module", autouse=True)
def _torch_as_it_was():
    """What these tests import and leave must not reach tests of other files."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("numpy.random", "torch._dynamo", "torch._functorch.config", "torch._inductor.config"):
            importlib.import_module(name)
        yield
    KEPT.clear()


def identity(x, *_):
    return x


def nothing(*_, **__):
    return None


class Node:
    """Registered where a test needs something to register."""


def top_hooks():
    return torch._C._autograd._top_saved_tensors_default_hooks(True)


def enter(context):
    KEPT[type(context).__name__] = context
    context.__enter__()


def set_precision(backend, operation, value):
    torch._C._set_fp32_precision_setter(backend, operation, value)


def module_hooks():
    return torch.nn.modules.module._global_forward_hooks


def optimizer_hooks():
    return sys.modules["torch.optim.optimizer"]._global_optimizer_pre_hooks


# Each: the guard that restores it, what a test does, and how another test would see it.
RESTORED = {
    "default dtype": (
        "torch defaults",
        lambda: torch.set_default_dtype(torch.float64),
        lambda: torch.get_default_dtype() is torch.float64,
    ),
    "threads": ("torch defaults", lambda: torch.set_num_threads(3), lambda: torch.get_num_threads() == 3),
    "warn always": ("torch defaults", lambda: torch.set_warn_always(True), torch.is_warn_always_enabled),
    "denormals": (
        "torch defaults",
        lambda: torch.set_flush_denormal(True),
        lambda: torch.tensor(sys.float_info.min, dtype=torch.float64).div(2).item() == 0.0,
    ),
    "no grad": ("torch gradients", lambda: torch.no_grad().__enter__(), lambda: not torch.is_grad_enabled()),
    "anomaly mode": (
        "torch gradients",
        lambda: torch.autograd.set_detect_anomaly(True, check_nan=False),
        lambda: torch.is_anomaly_enabled() or not torch.is_anomaly_check_nan_enabled(),
    ),
    "one thread of gradients": (
        "torch gradients",
        lambda: torch.autograd.set_multithreading_enabled(False),
        lambda: not torch._C._is_multithreading_enabled(),
    ),
    "autocast": (
        "torch autocast",
        lambda: enter(torch.autocast("cpu", torch.bfloat16)),
        lambda: torch.is_autocast_enabled("cpu"),
    ),
    "autocast of CUDA": (
        "torch autocast",
        lambda: torch.set_autocast_enabled("cuda", True),
        lambda: torch.is_autocast_enabled("cuda"),
    ),
    "autocast dtype": (
        "torch autocast",
        lambda: torch.set_autocast_dtype("cpu", torch.float16),
        lambda: torch.get_autocast_dtype("cpu") is torch.float16,
    ),
    "autocast cache": (
        "torch autocast",
        lambda: torch.set_autocast_cache_enabled(False),
        lambda: not torch.is_autocast_cache_enabled(),
    ),
    "determinism": (
        "torch determinism",
        lambda: torch.use_deterministic_algorithms(True, warn_only=True),
        lambda: torch.are_deterministic_algorithms_enabled() or torch.is_deterministic_algorithms_warn_only_enabled(),
    ),
    "memory not filled": (
        "torch determinism",
        lambda: setattr(torch.utils.deterministic, "fill_uninitialized_memory", False),
        lambda: not torch.utils.deterministic.fill_uninitialized_memory,
    ),
    "cuDNN benchmark": (
        "torch backends",
        lambda: setattr(torch.backends.cudnn, "benchmark", True),
        lambda: torch.backends.cudnn.benchmark,
    ),
    "cuDNN deterministic": (
        "torch backends",
        lambda: setattr(torch.backends.cudnn, "deterministic", True),
        lambda: torch.backends.cudnn.deterministic,
    ),
    "cuDNN off": (
        "torch backends",
        lambda: setattr(torch.backends.cudnn, "enabled", False),
        lambda: not torch.backends.cudnn.enabled,
    ),
    "cuDNN TF32": (
        "torch backends",
        lambda: setattr(torch.backends.cudnn, "allow_tf32", False),
        lambda: not torch.backends.cudnn.allow_tf32,
    ),
    "matmul TF32": (
        "torch backends",
        lambda: setattr(torch.backends.cuda.matmul, "allow_tf32", True),
        lambda: torch.backends.cuda.matmul.allow_tf32,
    ),
    "reduced precision": (
        "torch backends",
        lambda: setattr(torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction", False),
        lambda: not torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction,
    ),
    "matmul precision": (
        "torch backends",
        lambda: torch.set_float32_matmul_precision("medium"),
        lambda: torch.get_float32_matmul_precision() == "medium",
    ),
    "precision of everything": (
        "torch backends",
        lambda: set_precision("generic", "all", "tf32"),
        lambda: torch._C._get_fp32_precision_getter("mkldnn", "conv") == "tf32",
    ),
    "precision of one operation": (
        "torch backends",
        lambda: set_precision("mkldnn", "conv", "bf16"),
        lambda: torch._C._get_fp32_precision_getter("mkldnn", "conv") == "bf16",
    ),
    "mkldnn": (
        "torch backends",
        lambda: torch._C._set_mkldnn_enabled(False),
        lambda: not torch._C._get_mkldnn_enabled(),
    ),
    "attention kernels": (
        "torch backends",
        lambda: torch.backends.cuda.enable_math_sdp(False),
        lambda: not torch.backends.cuda.math_sdp_enabled(),
    ),
    "order of attention kernels": (
        "torch backends",
        lambda: torch._C._set_sdp_priority_order([0, 1, 2, 3, 4]),
        lambda: torch._C._get_sdp_priority_order() == [0, 1, 2, 3, 4],
    ),
    "print options": (
        "torch print options",
        lambda: torch.set_printoptions(precision=1, sci_mode=True),
        lambda: torch._tensor_str.PRINT_OPTS.precision == 1,
    ),
    "sharing strategy": (
        "torch processes",
        lambda: torch.multiprocessing.set_sharing_strategy("file_system"),
        lambda: torch.multiprocessing.get_sharing_strategy() == "file_system",
    ),
    "start method": (
        "torch processes",
        lambda: torch.multiprocessing.set_start_method("spawn", force=True),
        lambda: torch.multiprocessing.get_start_method(allow_none=True) == "spawn",
    ),
    "hub folder": (
        "torch defaults",
        lambda: torch.hub.set_dir("/leak"),
        lambda: torch.hub.get_dir() == "/leak",
    ),
    "safe globals": (
        "torch registries",
        lambda: torch.serialization.add_safe_globals([Node]),
        lambda: Node in torch.serialization.get_safe_globals(),
    ),
    "hook on all modules": (
        "torch registries",
        lambda: torch.nn.modules.module.register_module_forward_hook(nothing),
        lambda: len(module_hooks()) > 0,
    ),
    "hook on all optimizers": (
        "torch registries",
        lambda: sys.modules["torch.optim.optimizer"].register_optimizer_step_pre_hook(nothing),
        lambda: len(optimizer_hooks()) > 0,
    ),
    "numpy print options": (
        "numpy settings",
        lambda: numpy.set_printoptions(precision=1),
        lambda: numpy.get_printoptions()["precision"] == 1,
    ),
    "numpy errors": ("numpy settings", lambda: numpy.seterr(all="raise"), lambda: numpy.geterr()["divide"] == "raise"),
    "numpy error function": (
        "numpy settings",
        lambda: numpy.seterrcall(nothing),
        lambda: numpy.geterrcall() is nothing,
    ),
    "default device": (
        "torch modes",
        lambda: torch.set_default_device("meta"),
        lambda: torch.empty(1).is_meta,
    ),
    "device context": ("torch modes", lambda: enter(torch.device("meta")), lambda: torch.empty(1).is_meta),
    "function mode": (
        "torch modes",
        lambda: enter(torch.overrides.BaseTorchFunctionMode()),
        lambda: torch._C._len_torch_function_stack() > 0,
    ),
    "dispatch mode": (
        "torch modes",
        lambda: enter(torch.utils._python_dispatch.BaseTorchDispatchMode()),
        lambda: torch._C._len_torch_dispatch_stack() > 0,
    ),
    "hooks of saved tensors": (
        "torch modes",
        lambda: enter(torch.autograd.graph.saved_tensors_hooks(identity, identity)),
        lambda: top_hooks() is not None,
    ),
    "forward gradients": (
        "torch modes",
        lambda: enter(torch.autograd.forward_ad.dual_level()),
        lambda: torch.autograd.forward_ad._current_level >= 0,
    ),
    "function of torch": ("names in torch", lambda: setattr(torch, "relu", identity), lambda: torch.relu is identity),
    "function that was deleted": (
        "names in torch",
        lambda: delattr(torch, "sigmoid"),
        lambda: not hasattr(torch, "sigmoid"),
    ),
    "function of a module": (
        "names in torch",
        lambda: setattr(torch.nn.functional, "gelu", identity),
        lambda: torch.nn.functional.gelu is identity,
    ),
    "method of modules": (
        "names in torch",
        lambda: setattr(torch.nn.Module, "forward", identity),
        lambda: torch.nn.Module.forward is identity,
    ),
    "method of tensors": (
        "names in torch",
        lambda: setattr(torch.Tensor, "leak", identity),
        lambda: hasattr(torch.Tensor, "leak"),
    ),
    "dynamo configuration": (
        "torch.compile",
        lambda: setattr(torch._dynamo.config, "recompile_limit", 77),
        lambda: torch._dynamo.config.recompile_limit == 77,
    ),
    "key that is not hashed": (
        "torch.compile",
        lambda: setattr(torch._dynamo.config, "verbose", True),
        lambda: torch._dynamo.config.verbose,
    ),
    "inductor configuration": (
        "torch.compile",
        lambda: setattr(torch._inductor.config.triton, "unique_kernel_names", "leak"),
        lambda: torch._inductor.config.triton.unique_kernel_names == "leak",
    ),
    "functorch configuration": (
        "torch.compile",
        lambda: setattr(torch._functorch.config, "debug_partitioner", "leak"),
        lambda: torch._functorch.config.debug_partitioner == "leak",
    ),
    "numpy random": (
        "numpy random",
        lambda: numpy.random.seed(4711),
        lambda: numpy.random.rand() == 0.10426057205604655,
    ),
    "torch random": (
        "torch random",
        lambda: torch.manual_seed(0),
        lambda: torch.random.initial_seed() == 0,
    ),
}
EXCLUSIVE = {"default device", "device context"}
"""torch itself refuses to enter one of these within the other."""


@pytest.mark.parametrize("name", RESTORED)
def test_what_a_test_changed_is_put_back(name):
    guard, leak, seen = RESTORED[name]
    before = GUARDS.capture()
    leak()
    assert seen(), "the leak does nothing"
    cleaned = GUARDS.clean(before)
    assert (cleaned.discard, guard in cleaned.restored) == ("", True)
    assert not seen()
    GUARDS.clean(before)  # looking for a random number changes the generator
    assert GUARDS.clean(before).restored == ()


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(names=st.lists(st.sampled_from(sorted(RESTORED)), unique=True, min_size=2, max_size=12))
def test_leaks_are_put_back_whatever_else_leaked(names):
    if set(names) >= EXCLUSIVE:
        names.remove("device context")
    before = GUARDS.capture()
    for name in names:
        RESTORED[name][1]()
    assert GUARDS.clean(before).discard == ""
    assert [name for name in names if RESTORED[name][2]()] == []
    GUARDS.clean(before)
    assert GUARDS.clean(before).restored == ()


def test_a_test_that_changes_nothing_needs_no_restoration():
    before = GUARDS.capture()
    assert torch.ones(2).sum().item() == 2
    cleaned = GUARDS.clean(before)
    assert (cleaned.restored, cleaned.discard) == ((), "")


def test_drawing_a_number_is_put_back_in_both_libraries():
    before = GUARDS.capture()
    drawn = torch.rand(1).item(), numpy.random.rand()
    assert set(GUARDS.clean(before).restored) == {"torch random", "numpy random"}
    assert (torch.rand(1).item(), numpy.random.rand()) == drawn


def test_generators_are_read_outside_of_a_mode_that_spans_tests():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        before = GUARDS.capture()
        torch._C._autograd  # noqa: B018 - anything but a number
        torch.default_generator.manual_seed(77)
        assert GUARDS.clean(before).restored == ("torch random",)


def test_a_default_device_of_the_suite_is_put_back():
    torch.set_default_device("meta")
    try:
        before = GUARDS.capture()
        torch.set_default_device(None)
        assert GUARDS.clean(before).restored == ("torch modes",)
        assert torch.empty(1).is_meta
        before = GUARDS.capture()
        torch.set_default_device("cpu")
        GUARDS.clean(before)
        assert torch.empty(1).is_meta
    finally:
        torch.set_default_device(None)
    assert not torch.empty(1).is_meta


def test_contradicting_switches_of_precision_are_a_state_that_is_put_back():
    before = GUARDS.capture()
    torch.backends.cuda.matmul.allow_tf32 = True
    set_precision("cuda", "matmul", "ieee")
    set_precision("cuda", "conv", "tf32")
    set_precision("cuda", "rnn", "ieee")
    cleaned = GUARDS.clean(before)
    assert (cleaned.restored, cleaned.discard) == (("torch backends",), "")


def test_compiled_code_is_forgotten_but_not_that_of_before():
    from torch._dynamo import convert_frame

    compiled = torch.compile(identity, backend="eager")
    compiled(torch.ones(1))
    before = GUARDS.capture()
    compiled(torch.ones(1))
    assert GUARDS.clean(before).restored == ()
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1))
    assert GUARDS.clean(before).restored == ("torch.compile",)
    assert convert_frame.FRAME_COUNTER == 0


def test_a_key_that_was_set_and_compiled_under_is_put_back():
    before = GUARDS.capture()
    torch._dynamo.config.verbose = True
    torch.compile(lambda x: x + 2, backend="eager")(torch.ones(1))
    assert "torch.compile" in GUARDS.clean(before).restored
    assert not torch._dynamo.config.verbose


def test_helpers_of_the_compiler_are_ended():
    from torch._inductor.async_compile import AsyncCompile

    threads = Threads()
    before = GUARDS.capture(), threads.capture()
    assert AsyncCompile.pool().submit(int).result() == 0
    assert threads.doubt(before[1]) != ""
    assert GUARDS.clean(before[0]).restored == ("torch.compile",)
    assert threads.doubt(before[1]) == ""
    assert AsyncCompile.pool().submit(int).result() == 0
    before = GUARDS.capture()
    assert GUARDS.clean(before).restored == ()
    AsyncCompile.pool().shutdown()
    AsyncCompile.pool.cache_clear()


def test_processes_of_the_compiler_are_ended(monkeypatch):
    from torch._inductor import async_compile

    monkeypatch.setattr(async_compile.AsyncCompile, "process_pool", functools.lru_cache(dict))
    monkeypatch.setattr(async_compile, "shutdown_compile_workers", async_compile.AsyncCompile.process_pool.cache_clear)
    before = GUARDS.capture()
    async_compile.AsyncCompile.process_pool()
    assert GUARDS.clean(before).restored == ("torch.compile",)
    assert async_compile.AsyncCompile.process_pool.cache_info().currsize == 0


def test_a_configuration_that_a_fixture_set_between_tests_stays():
    GUARDS.clean(GUARDS.capture())
    original = torch._dynamo.config.recompile_limit
    torch._dynamo.config.recompile_limit = 55
    try:
        before = GUARDS.capture()
        torch._dynamo.config.recompile_limit = 66
        GUARDS.clean(before)
        assert torch._dynamo.config.recompile_limit == 55
    finally:
        torch._dynamo.config.recompile_limit = original


def test_what_an_imported_module_puts_into_torch_stays(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    text = "import torch\ndef leaky(): pass\ntorch.nn.init.leaky = torch.nn.init.zeros_ = leaky\n"
    (tmp_path / "patches_torch.py").write_text(text, encoding="utf-8")
    original, before = torch.nn.init.zeros_, GUARDS.capture()
    import patches_torch

    try:
        assert GUARDS.clean(before).restored == ()
        assert torch.nn.init.leaky is torch.nn.init.zeros_ is patches_torch.leaky
    finally:
        del torch.nn.init.leaky
        torch.nn.init.zeros_ = original


def in_a_fork(leak, seen=nothing):
    """What cleaning says after a leak, in a process that ends: for what nothing can put back."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # forking beside torch's idle threads is what the workers do too
        pid = os.fork()
    if pid == 0:
        said = "the leak raised"
        with contextlib.suppress(Exception):
            before = GUARDS.capture()
            leak()
            said = GUARDS.clean(before).discard
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    with os.fdopen(reader, encoding="utf-8") as file:
        return file.read()


def leak_fake_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode

    enter(FakeTensorMode())


def leak_own_function_mode():
    class Own(torch.overrides.TorchFunctionMode):
        def __exit__(self, *_):
            raise RuntimeError("not like this")

    enter(Own())


def leak_popped_mode():
    torch._C._pop_torch_dispatch_stack(None)


def leak_vmap():
    torch._C._functorch._vmap_increment_nesting(2, "error")


def leak_library():
    KEPT["library"] = torch.library.Library("leaky", "DEF")
    KEPT["library"].define("operation(Tensor x) -> Tensor")


def leak_empty_library():
    KEPT["library"] = torch.library.Library("leaky", "DEF")


def leak_implementation():
    KEPT["library"] = torch.library.Library("aten", "IMPL")
    KEPT["library"].impl("special_zeta", nothing, "Meta", allow_override=True)


def leak_custom_operation():
    torch.library.custom_op("leaky::same", mutates_args=(), schema="(Tensor x) -> Tensor")(identity)


def leak_process_group():
    import torch.distributed as dist

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


DISCARDED = {
    leak_fake_tensors: "torch modes cannot be restored: RuntimeError('FakeTensorMode was left entered')",
    leak_own_function_mode: "torch modes cannot be restored: RuntimeError('Own was left entered')",
    leak_vmap: "torch modes cannot be restored: RuntimeError('a mode stays, or is missing')",
    leak_library: "left 1 torch libraries: leaky::operation",
    leak_empty_library: "left 1 torch libraries: one without operators",
    leak_implementation: "left 1 torch libraries: aten/special_zeta/Meta",
    leak_custom_operation: "left 1 torch libraries: leaky::same",
    leak_process_group: "left 1 process groups",
}


@pytest.mark.parametrize(("leak", "reason"), DISCARDED.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_what_cannot_be_put_back_discards(leak, reason):
    assert in_a_fork(leak) == reason


def test_an_inference_mode_that_is_held_discards():
    said = in_a_fork(lambda: enter(torch.inference_mode()))
    assert said == "torch gradients cannot be restored: RuntimeError('inference mode cannot be set back')"


def test_disabled_torch_functions_that_are_held_discard():
    said = in_a_fork(lambda: enter(torch._C.DisableTorchFunctionSubclass()))
    assert (
        said == "torch gradients cannot be restored: RuntimeError('the switch of torch functions cannot be set back')"
    )


def test_threads_between_operations_discard():
    assert "inter-op threads" in in_a_fork(lambda: torch.set_num_interop_threads(7))


def test_a_renamed_backend_discards():
    assert "'leaky'" in in_a_fork(lambda: torch.utils.rename_privateuse1_backend("leaky"))


def test_a_pytree_node_discards():
    said = in_a_fork(lambda: torch.utils._pytree.register_pytree_node(Node, identity, identity))
    assert said == "registered 1 pytree nodes: Node"


def test_another_kind_of_generator_discards():
    said = in_a_fork(lambda: numpy.random.set_bit_generator(numpy.random.PCG64()))
    assert said.startswith("numpy random cannot be restored")


def test_a_dispatch_mode_that_was_taken_away_discards():
    with torch.utils._python_dispatch.BaseTorchDispatchMode():
        assert "a mode stays, or is missing" in in_a_fork(leak_popped_mode)


@pytest.mark.parametrize("stand_in", [None, types.ModuleType("torch")])
def test_a_torch_that_was_replaced_discards(stand_in):
    def leak():
        if stand_in is None:
            del sys.modules["torch"]
        else:
            sys.modules["torch"] = stand_in

    assert "torch was removed" in in_a_fork(leak)


def test_a_library_that_is_garbage_does_not_discard():
    before = GUARDS.capture()
    library = torch.library.Library("leaky_garbage", "DEF")
    library.define("operation(Tensor x) -> Tensor")
    library.itself = library
    del library
    assert GUARDS.clean(before).discard == ""


def test_works_that_are_left_discard(monkeypatch):
    registry = types.ModuleType("torch._C._distributed_c10d")
    registry._get_work_registry_size = lambda: len(KEPT.get("works", ()))
    monkeypatch.setitem(sys.modules, "torch._C._distributed_c10d", registry)
    before = GUARDS.capture()
    monkeypatch.setitem(KEPT, "works", ["one", "two"])
    assert GUARDS.clean(before).discard == "left 2 collective works"


def test_a_work_of_a_real_collective_that_is_left_discards():
    def leak():
        import torch.distributed as dist

        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        KEPT["work"] = torch.ops._c10d_functional.all_reduce(torch.ones(1), "sum", dist.group.WORLD.group_name)
        torch.distributed.distributed_c10d._world.pg_map.clear()

    assert in_a_fork(leak) == "left 1 collective works"


def test_what_importing_more_of_torch_registers_stays_and_does_not_discard():
    program = """
import torch, sys
from sooner.warm.guards import GuardSet
from sooner.warm.torch_guards import torch_guards; from sooner.warm.torch_witnesses import torch_witnesses
guards = GuardSet(torch_guards(), torch_witnesses())
before = guards.capture()
import torch._dynamo, torch._inductor.compile_fx, torch.distributed.tensor
print(guards.clean(before))
"""
    assert run(program).strip() == "Cleaned(restored=(), discard='')"


def run(program):
    command = [sys.executable, "-W", "ignore", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def test_nothing_is_imported_and_nothing_happens_while_the_suite_has_not():
    program = """
import sys
from sooner.warm.torch_guards import everything
guards = everything()
print(guards.clean(guards.capture()))
print([name for name in sys.modules if name.partition(".")[0] in ("torch", "numpy")])
"""
    assert run(program).split("\n")[:2] == ["Cleaned(restored=(), discard='')", "[]"]


def test_what_was_imported_during_the_test_is_left_as_it_is_but_leaks_are_counted():
    program = """
import sys
from sooner.warm.guards import GuardSet
from sooner.warm.torch_guards import torch_guards; from sooner.warm.torch_witnesses import torch_witnesses
guards = GuardSet(torch_guards(), torch_witnesses())
before = guards.capture()
import numpy.random, torch
torch.set_default_dtype(torch.float64)
numpy.random.seed(0)
cleaned = guards.clean(before)
print(cleaned.restored, repr(cleaned.discard), torch.get_default_dtype())
before = guards.capture()
import torch.distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
print(guards.clean(before).discard)
"""
    assert run(program).split("\n")[:2] == ["() '' torch.float64", "left 1 process groups"]


def test_a_stand_in_for_torch_is_not_looked_at(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    cleaned = GUARDS.clean(GUARDS.capture())
    assert (cleaned.restored, cleaned.discard) == ((), "")


class Generator:
    """A pretended generator: its state is a number."""

    def __init__(self):
        self.number = 0

    def get_state(self):
        return torch.tensor([self.number])

    def set_state(self, state):
        self.number = state.item()


class Cuda:
    """A pretended torch.cuda with two devices."""

    def __init__(self):
        self.device = 0
        self.streams = ["default of 0", "default of 1"]
        self.default_generators = [Generator(), Generator()]
        self.initialised = True
        self.broken = False

    def is_initialized(self):
        return self.initialised

    def device_count(self):
        return 2

    def current_device(self):
        return self.device

    def set_device(self, device):
        self.device = device

    def current_stream(self, device):
        return self.streams[device]

    def set_stream(self, stream):
        self.device = int(stream[-1])
        self.streams[self.device] = stream

    def synchronize(self, device):
        if self.broken and device == 1:
            raise RuntimeError("CUDA error: device-side assert triggered\nmore")


@pytest.fixture
def cuda(monkeypatch):
    pretended = Cuda()
    monkeypatch.setitem(sys.modules, "torch.cuda", pretended)
    monkeypatch.setattr(torch._C, "_cuda_hasPrimaryContext", lambda _: True, raising=False)
    return pretended


def test_device_and_streams_are_selected_again(cuda):
    before = GUARDS.capture()
    cuda.set_stream("side stream of 1")
    assert GUARDS.clean(before).restored == ("CUDA device and streams",)
    assert (cuda.device, cuda.streams) == (0, ["default of 0", "default of 1"])


def test_generators_of_devices_are_put_back(cuda):
    before = GUARDS.capture()
    cuda.default_generators[1].number = 7
    assert GUARDS.clean(before).restored == ("CUDA random",)
    assert cuda.default_generators[1].number == 0


def test_a_sticky_error_discards(cuda):
    before = GUARDS.capture()
    cuda.broken = True
    assert GUARDS.clean(before).discard == "a CUDA device is in error: CUDA error: device-side assert triggered"


def test_a_device_that_was_initialised_during_the_test_is_left_but_its_errors_count(cuda):
    cuda.initialised = False
    before = GUARDS.capture()
    cuda.initialised = True
    cuda.set_device(1)
    assert GUARDS.clean(before).restored == ()
    assert cuda.device == 1
    cuda.broken = True
    assert "device-side assert" in GUARDS.clean(before).discard


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_real_device_is_put_back():
    torch.cuda.init()
    before = GUARDS.capture()
    torch.cuda.set_stream(torch.cuda.Stream())
    torch.cuda.manual_seed(7)
    assert GUARDS.clean(before).restored == ("CUDA device and streams", "CUDA random")
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


def test_everything_restores_random_generators_last():
    names = [guard.name for guard in everything()._guards]
    assert names[0] == "signals"
    assert names[-4:] == ["random", "numpy random", "torch random", "CUDA random"]
    assert names.index("torch modes") < names.index("torch defaults") < names.index("torch.compile")


def test_everything_limits_memory():
    guards = everything(memory_limit_mib=1.0)
    assert "MiB" in guards.clean(guards.capture()).discard


def test_versions_of_names_are_seen_by_interpreters_without_them(monkeypatch):
    from sooner.warm import torch_names as module

    monkeypatch.setattr(module, "_HAS_VERSIONS", False)
    guards = GuardSet([module.Names()], [])
    before = guards.capture()
    assert guards.clean(before).restored == ()
    torch.nn.functional.leak = identity
    assert guards.clean(before).restored == ("names in torch",)
    assert not hasattr(torch.nn.functional, "leak")


def test_guards_hold_no_tensor_of_a_test_alive():
    before = GUARDS.capture()
    tensors = [torch.ones(1)]
    torch.leaked_tensor = tensors[0]
    try:
        GUARDS.clean(before)
    finally:
        del torch.leaked_tensor
    GUARDS.clean(GUARDS.capture())
    assert len(gc.get_referrers(tensors[0])) == 1
