"""What PyTorch runs of the tests in their own process: `forward` of modules, functions that it is given.

Those of autograd's (`Function.apply`), and what checkpointing, gradient checks and tracing are given.
"""

from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.values import MISSING, UNKNOWN, Args, Bound, Cls, Func, Function, Inst, Kwargs, Native, hard

if TYPE_CHECKING:
    from sooner.plan.needs.machine import Machine

_MODULES: Final = ("Module", "LightningModule")
_OF_CHECKPOINTS: Final = (
    "use_reentrant",
    "context_fn",
    "determinism_check",
    "debug",
    "preserve_rng_state",
    "early_stop",
)


def forward_of(value: Inst) -> Bound | None:
    """What a call of a module of the tests runs; None where it is none, or the library's."""
    forward = value.cls.find("forward") if value.cls.is_a(*_MODULES) else MISSING
    return Bound(forward, value) if isinstance(forward, Func) and forward.module.is_test_code else None


def applied(machine: "Machine", cls: Cls) -> Native | None:
    """`apply` of a function of autograd's of the tests: `forward`, with a context where none is set up apart."""
    forward = cls.find("forward") if cls.is_a("Function") else MISSING
    function = forward.func if hasattr(forward, "func") else forward
    if not isinstance(function, Func) or not function.module.is_test_code:
        return None
    context = [UNKNOWN] if cls.find("setup_context") is MISSING else []
    return Native("apply", lambda args, kwargs: machine.call(function, [*context, *args], kwargs))


def _checkpoint(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`checkpoint(function, *args)`."""
    given = {name: each for name, each in kwargs.items() if name not in (*_OF_CHECKPOINTS, "function")}
    function = kwargs.get("function", args[0] if args else UNKNOWN)
    return machine.call(function, args[1:], given)


def _with_all(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`vjp(function, *inputs)`: what it gives is not followed."""
    if args:
        machine.call(args[0], args[1:], {})
    return UNKNOWN


def _with_inputs(place: int) -> Function:
    """Of a function and a tuple of its inputs, or its only one."""

    def called(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
        inputs = hard(args[place]) if len(args) > place else next(iter(kwargs.values()), UNKNOWN)
        if args:
            machine.call(args[0], list(inputs) if isinstance(inputs, tuple | list) else [inputs], {})
        return UNKNOWN

    return called


FORWARDS: Final[dict[str, Function]] = {
    "torch.utils.checkpoint.checkpoint": _checkpoint,
    "torch.func.vjp": _with_all, "torch.func.linearize": _with_all, "torch.jit.fork": _with_all,
    "torch.func.functional_call": _with_inputs(2),
    **{
        f"torch.{name}": _with_inputs(1)
        for name in (
            "autograd.gradcheck", "autograd.gradgradcheck", "autograd.gradcheck.gradcheck",
            "autograd.gradcheck.gradgradcheck", "autograd.functional.jacobian", "autograd.functional.hessian",
            "autograd.functional.vjp", "autograd.functional.jvp", "autograd.functional.hvp", "autograd.functional.vhp",
            "func.jvp", "jit.trace", "export.export",
        )
    },
}  # fmt: skip
"""Functions by their names."""
