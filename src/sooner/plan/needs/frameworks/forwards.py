"""What PyTorch runs of the tests in their own process: `forward` of modules, functions that it is given.

Those of autograd's (`Function.apply`), and what checkpointing, gradient checks and tracing are given.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Args,
    Bound,
    Cls,
    Func,
    Function,
    Inst,
    Kwargs,
    Native,
    Unknown,
    Wrapped,
    hard,
)

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_OF_KERAS: Final = ("Layer", "Model", "Sequential", "AbstractRNNCell", "Loss")
"""Base classes of Keras's, whose instances are called by `call`."""
SEQUENCE: Final = "Sequential"
PARTS: Final = "__items__"
"""What an instance goes over, among its attributes."""
_OF_CHECKPOINTS: Final = (
    "use_reentrant", "context_fn", "determinism_check", "debug", "preserve_rng_state", "early_stop", "function",
)  # fmt: skip
"""What `checkpoint` is told by name, and does not give on."""
_INPUTS: Final = ("inputs", "args", "example_inputs", "primals")


def forward_of(machine: "Machine", value: Inst) -> Bound | Native | None:
    """What a call of a module of the tests runs, which inherits its call from elsewhere; None where it is none."""
    forward = MISSING if value.cls.is_of_tests_alone else value.cls.find("forward")
    if forward is MISSING and value.cls.is_open and value.cls.is_a(*_OF_KERAS):
        forward = value.cls.find("call")
    if forward is MISSING and value.cls.is_a(SEQUENCE) and PARTS in value.attrs:
        return Native("forward", lambda args, _kwargs: run_parts(machine, value.attrs[PARTS], args))
    return Bound(forward, value) if isinstance(forward, Func) and forward.module.is_test_code else None


def run_parts(machine: "Machine", parts: list[Any], args: Args) -> Any:
    """One part after the other, each given what the one before gave."""
    given = args
    for each in parts:
        given = [machine.call(each, given, {})]
    return given[0] if given else UNKNOWN


def applied(machine: "Machine", cls: Cls) -> Native | None:
    """`apply` of a function of autograd's of the tests: `forward`, with a context where none is set up apart."""
    forward = cls.find("forward") if cls.is_a("Function") else MISSING
    function = forward.func if isinstance(forward, Wrapped) else forward
    if not isinstance(function, Func) or not function.module.is_test_code:
        return None
    context = [UNKNOWN] if cls.find("setup_context") is MISSING else []
    return Native("apply", lambda args, kwargs: machine.call(function, [*context, *args], kwargs))


def _checkpoint(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`checkpoint(function, *args)`."""
    given = {name: each for name, each in kwargs.items() if name not in _OF_CHECKPOINTS}
    function = kwargs.get("function", args[0] if args else UNKNOWN)
    return machine.call(function, args[1:], given)


def _either_way(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`cond(condition, one, other, operands)`, and loops (`while_loop(condition, body, operands)`)."""
    given = hard(kwargs.get("operands", args[-1] if args else ()))
    for each in (*args[:-1], *kwargs.values()):
        if isinstance(each, Func):
            machine.call(each, list(given) if isinstance(given, tuple | list) else [UNKNOWN], {})
    return Unknown("torch.cond()")


def _packing(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`saved_tensors_hooks(pack, unpack)`: what is kept for the way back is packed, and unpacked on it."""
    for each in args:
        machine.call(each, [UNKNOWN], {})
    return Unknown("torch.autograd.graph.saved_tensors_hooks()")


def _checkpoints(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`checkpoint_sequential(functions, segments, input)`: one function after the other."""
    functions, given = (args[0] if args else UNKNOWN), kwargs.get("input", args[2] if len(args) > 2 else UNKNOWN)  # noqa: PLR2004
    return run_parts(machine, machine.items_of(functions) or [functions], [given])


def _parametrized(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`register_parametrization(module, name, parametrization)`: it is run at once."""
    machine.call(kwargs.get("parametrization", args[2] if len(args) > 2 else UNKNOWN), [UNKNOWN], {})  # noqa: PLR2004
    return args[0] if args else UNKNOWN


def _given_all(name: str) -> Function:
    """A function that is given another, and its inputs one by one (`vjp(function, *inputs)`)."""
    return _running(name, lambda args, _kwargs: args[1:])


def _given_inputs(name: str, place: int = 1) -> Function:
    """The same with a tuple of the inputs, or the only one."""

    def inputs(args: Args, kwargs: Kwargs) -> Args:
        named = next((kwargs[each] for each in _INPUTS if each in kwargs), UNKNOWN)
        given = hard(args[place]) if len(args) > place else hard(named)
        return list(given) if isinstance(given, tuple | list) else [given]

    return _running(name, inputs)


def _running(name: str, inputs: Callable[[Args, Kwargs], Args]) -> Function:
    def run(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
        if args:
            machine.call(args[0], inputs(args, kwargs), {})
        return Unknown(f"{name}()")  # what is done with it later is seen by its name

    return run


_WAYS: Final = (
    "torch.cond", "torch.while_loop", "torch._higher_order_ops.cond", "torch._higher_order_ops.while_loop",
    "torch._higher_order_ops.cond.cond", "torch._higher_order_ops.while_loop.while_loop",
    "functorch.experimental.control_flow.cond",
)  # fmt: skip
_OF_ALL: Final = ("func.vjp", "func.linearize", "jit.fork")
_OF_INPUTS: Final = (
    "autograd.gradcheck", "autograd.gradgradcheck", "autograd.gradcheck.gradcheck", "autograd.gradcheck.gradgradcheck",
    "autograd.functional.jacobian", "autograd.functional.hessian", "autograd.functional.vjp", "autograd.functional.jvp",
    "autograd.functional.hvp", "autograd.functional.vhp", "func.jvp", "jit.trace", "export.export",
)  # fmt: skip
FORWARDS: Final[dict[str, Function]] = {
    "torch.utils.checkpoint.checkpoint": _checkpoint,
    "torch.nn.utils.parametrize.register_parametrization": _parametrized,
    "torch.utils.checkpoint.checkpoint_sequential": _checkpoints,
    "torch.autograd.graph.saved_tensors_hooks": _packing,
    **dict.fromkeys(_WAYS, _either_way),
    "torch.func.functional_call": _given_inputs("torch.func.functional_call", 2),
    **{f"torch.{name}": _given_all(f"torch.{name}") for name in _OF_ALL},
    **{f"torch.{name}": _given_inputs(f"torch.{name}") for name in _OF_INPUTS},
}
"""Functions by their names."""
