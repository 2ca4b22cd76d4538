"""Functions and methods of several forms, chosen by the type of their first argument (`functools.singledispatch`)."""

from typing import TYPE_CHECKING, Any

from sooner.plan.needs.evaluator.values import UNKNOWN, Args, Cls, Func, Kwargs, Native, hard

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine


class Dispatched(Native):
    """A function of several forms.

    Args:
        machine: Evaluates.
        default: What is called where no form fits.
    """

    __slots__ = ("default", "forms", "machine")
    place = 0
    """Where the argument stands that decides."""

    def __init__(self, machine: "Machine", default: Any) -> None:
        super().__init__(default.name, self._called)
        self.machine, self.default = machine, default
        self.forms: list[tuple[Any, Any]] = []

    def attribute(self, name: str) -> Any:
        """`register` adds a form, `dispatch` gives the one for a class."""
        if name == "register":
            return Native(name, lambda args, _kwargs: self._registered(args))
        return self.name if name in ("__name__", "__qualname__") else UNKNOWN

    def _registered(self, args: Args) -> Any:
        """`register(kind, form)`, `register(kind)(form)`, `register(form)` whose first parameter says its type."""
        first = args[0] if args else UNKNOWN
        if len(args) > 1:
            return self._keep(first, args[1])
        if isinstance(first, Func):
            named = [*first.node.args.posonlyargs, *first.node.args.args][self.place :]
            told = named[0].annotation if named else None
            return self._keep(UNKNOWN if told is None else self.machine.ev(told, first.env), first)
        return Native("register", lambda inner, _kwargs: self._keep(first, inner[0]) if inner else UNKNOWN)

    def _keep(self, kind: Any, form: Any) -> Any:
        self.forms.append((hard(kind), form))
        return form

    def _called(self, args: Args, kwargs: Kwargs) -> Any:
        is_a = self.machine.natives.builtin("isinstance")
        given = args[self.place : self.place + 1]
        answers = [self.machine.truth(self.machine.call(is_a, [*given, kind], {})) for kind, _ in self.forms if given]
        fitting = [form for form, answer in zip(self.forms, answers, strict=False) if answer]
        self.machine.guesses += None in answers and not fitting and not self.machine.quiet
        for kind, form in reversed(fitting):
            if not any(_is_narrower(other, kind) for other, _ in fitting):
                return self.machine.call(form, list(args), dict(kwargs))
        return self.machine.call(self.default, list(args), dict(kwargs))


class DispatchedMethod(Dispatched):
    """A method of several forms, chosen by the type of what follows the object."""

    __slots__ = ()
    place = 1


def _is_narrower(kind: Any, than: Any) -> bool:
    return isinstance(kind, Cls) and isinstance(than, Cls) and kind is not than and than in kind.mro


def single_dispatch(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`functools.singledispatch(function)`."""
    return Dispatched(machine, args[0]) if args and isinstance(args[0], Func) else UNKNOWN


def single_dispatch_method(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`functools.singledispatchmethod(function)`."""
    return DispatchedMethod(machine, args[0]) if args and isinstance(args[0], Func) else UNKNOWN
