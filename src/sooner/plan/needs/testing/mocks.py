"""`unittest.mock.Mock` and its family: what one is asked for is another one, and none of them uses a device."""

from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import (
    UNKNOWN,
    Args,
    Cls,
    Ext,
    Inst,
    Kwargs,
    Native,
    Raised,
    Unknown,
    exception_name,
    hard,
)

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_NO_ATTRIBUTES: Final = (
    "spec", "spec_set", "name", "wraps", "unsafe", "new", "new_callable", "autospec", "create", "instance"
)  # fmt: skip
"""Arguments that say how a mock is made."""
_RECORDS: Final = ("called", "call_count", "call_args", "call_args_list", "mock_calls", "method_calls")
_OF_TRUTH: Final = ("__bool__", "__len__")
"""A mock is true, unless it is told of one of these."""
_ERRORS: Final = ("Error", "Exception", "Exit", "Interrupt", "Iteration")
"""Ends of names of what is raised instead of being called."""


class Mocked(Unknown):
    """What a mock is: an object with the attributes that it is given, others as they are asked for.

    Args:
        kwargs: What it is made with.
    """

    __slots__ = ("attrs", "effect")

    def __init__(self, kwargs: Kwargs) -> None:
        super().__init__("mock")
        self.attrs: dict[str, Any] = {}
        self.truth = None if "new_callable" in kwargs else True
        self.effect: Any = hard(kwargs.get("wraps"))
        """What a call does instead of returning something."""
        for name, value in kwargs.items():
            if name not in _NO_ATTRIBUTES:
                self.set(name, value)

    def set(self, name: str, value: Any) -> None:
        """`mock.name = value`; the name may have dots, as an argument has them (`**{"get.return_value": 2}`)."""
        first, _, rest = name.partition(".")
        inner = self.child(first) if rest else None
        self.truth = None if first in _OF_TRUTH else self.truth
        if isinstance(inner, Mocked):
            inner.set(rest, value)
        elif name == "side_effect":
            self.effect = hard(value)
        else:
            self.attrs[name] = value

    def child(self, name: str) -> Any:
        """What an attribute, a call or an item gives that nobody has set."""
        return self.attrs.setdefault(name, Mocked({}))

    def attribute(self, _machine: "Machine", name: str) -> Any:
        """An attribute; of what it keeps of calls nothing is known."""
        if name in self.attrs:
            return self.attrs[name]
        if name == "configure_mock" or name.startswith("assert_"):
            return Native(name, lambda _args, kwargs: self._configured(kwargs))
        self.truth = None if name in _OF_TRUTH else self.truth
        return UNKNOWN if name in _RECORDS or name.startswith("__") else self.child(name)

    def _configured(self, kwargs: Kwargs) -> None:
        for name, value in kwargs.items():
            self.set(name, value)

    def item(self, _machine: "Machine", _index: Any) -> Any:
        """`mock[index]`."""
        return self.child("__getitem__")

    def call(self, machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
        """`mock(...)`: its effect, or what it returns.

        Raises:
            Raised: Its effect is an exception.
        """
        effect = self.effect
        if isinstance(effect, list | tuple) and effect:  # one for each call
            self.effect, effect = effect[1:], hard(effect[0])
            if not _is_error(effect):
                return effect
        if _is_error(effect):
            raised = Raised(exception_name(effect), "", *machine.current)
            raised.value = effect
            raise raised
        is_function = effect is not None and not isinstance(effect, list | tuple)
        return self._called_through(machine, effect, args, kwargs) if is_function else self.child("return_value")

    def _called_through(self, machine: "Machine", effect: Any, args: Args, kwargs: Kwargs) -> Any:
        """Its effect, as it was before the mock took its place (`patch("lib.run", Mock(wraps=lib.run))`)."""
        overrides = machine.overrides
        machine.overrides = {path: value for path, value in overrides.items() if value is not self}
        try:
            return machine.call(effect, args, kwargs)
        finally:
            machine.overrides = overrides


def mocked(_machine: "Machine", _args: Args, kwargs: Kwargs) -> Any:
    """`Mock(...)`."""
    return Mocked(kwargs)


def _is_error(effect: Any) -> bool:
    return isinstance(effect, Cls | Ext | Inst | Unknown) and exception_name(effect).endswith(_ERRORS)


MOCKS: Final = {
    f"{module}.{name}": mocked
    for module in ("unittest.mock", "mock", "mocker")
    for name in ("Mock", "MagicMock", "NonCallableMock", "NonCallableMagicMock", "AsyncMock", "create_autospec", "stub")
}
