"""Special methods of classes of the tree: what operators and loops make of their instances."""

import ast
import re
from abc import ABC, abstractmethod
from typing import Any, Final

from sooner.plan.needs.evaluator.enumerations import plain_of
from sooner.plan.needs.evaluator.values import MISSING, UNKNOWN, Bound, Cls, Func, Inst, Raised, Unknown, Wrapped, hard

_OPERATORS: Final[dict[type, str]] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.MatMult: "matmul",
    ast.LShift: "lshift", ast.RShift: "rshift", ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert",
}  # fmt: skip
_MIRRORED: Final[dict[type, tuple[str, str]]] = {
    ast.Lt: ("__lt__", "__gt__"),
    ast.Gt: ("__gt__", "__lt__"),
    ast.LtE: ("__le__", "__ge__"),
    ast.GtE: ("__ge__", "__le__"),
}
_ELSE: Final[dict[type, type]] = {ast.Lt: ast.GtE, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.GtE: ast.Lt}
"""Where `functools.total_ordering` takes a comparison from: it holds where the other one does not."""

_UNWRITTEN: Final = re.compile(r"\b(ClassVar|InitVar)\b|\brepr=False\b")
FACTORY: Final = "factory"
"""The kind of what makes a field of a record for each of its instances (`field(default_factory=...)`)."""
_MOST_ITEMS: Final = 64
"""Of an iterator that may have no end."""


class SpecialMethods(ABC):
    """The part of the machine that knows of `__eq__`, `__lt__`, `__iter__`, `__add__`, ..."""

    @abstractmethod
    def call(self, func: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST | None = None) -> Any:
        """The result of a call."""

    @abstractmethod
    def truth(self, value: Any) -> bool | None:
        """Whether a value is true; None where that is not known."""

    def default_of(self, cls: Cls, name: str) -> Any:
        """What a field of a record is where nobody gives it."""
        default = cls.find(name)
        if isinstance(default, Wrapped) and default.kind == FACTORY:
            return self.call(default.func, [], {})
        return UNKNOWN if default is MISSING else default

    def special(self, value: Any, name: str, *args: Any) -> Any:
        """What a special method of an instance says, or MISSING."""
        method = value.cls.find(name) if isinstance(value, Inst) else MISSING
        return self.call(Bound(method, value), list(args), {}) if isinstance(method, Func) else MISSING

    def as_index(self, value: Any) -> Any:
        """The number that something is as an index."""
        told = self.special(value, "__index__")
        return plain_of(value) if told is MISSING else hard(told)

    def equal_by_method(self, left: Any, right: Any) -> Any:
        """`left == right` by `__eq__` of either, or MISSING."""
        told = self.special(left, "__eq__", right)
        return self.special(right, "__eq__", left) if told is MISSING else told

    def ordered_by_method(self, kind: type, left: Any, right: Any) -> Any:
        """`left < right` and its like by a method of either, or MISSING."""
        for each, negated in ((kind, False), (_ELSE[kind], True)):
            own, other = _MIRRORED[each]
            told = self.special(left, own, right)
            told = self.special(right, other, left) if told is MISSING else told
            if told is not MISSING:
                truth = self.truth(told)
                return UNKNOWN if truth is None else truth is not negated
        return MISSING

    def operated(self, kind: type, left: Any, right: Any, *, in_place: bool = False) -> Any:
        """`left + right` and its like by a method of either, or MISSING."""
        name = _OPERATORS[kind]
        told = self.special(left, f"__i{name}__", right) if in_place else MISSING
        told = self.special(left, f"__{name}__", right) if told is MISSING else told
        return self.special(right, f"__r{name}__", left) if told is MISSING else told

    def unary_by_method(self, kind: type, value: Any) -> Any:
        """`-value` and its like, or MISSING."""
        return self.special(value, f"__{_OPERATORS[kind]}__")

    def iterated(self, value: Inst) -> list[Any] | None:
        """What `__iter__` and `__next__` give one after the other; None where that is not known."""
        made = hard(self.special(value, "__iter__"))
        if isinstance(made, Inst):
            return self._all_of(made)
        return list(made) if isinstance(made, list | tuple | dict | set | range | str) else None

    def _all_of(self, value: Inst) -> list[Any] | None:
        """What `__next__` gives until it says that this is the end; None where that is not known."""
        found: list[Any] = []
        try:
            while len(found) < _MOST_ITEMS:
                found.append(self.special(value, "__next__"))
                if found[-1] is MISSING:
                    return None
        except Raised as raised:
            if raised.kind != "StopIteration":
                raise
            return found
        return None


def field_values(value: Any) -> list[Any] | None:
    """The values of a record (a dataclass, a named tuple), by which it is compared; None for any other instance."""
    names = value.cls.find("__record__") if isinstance(value, Inst) else MISSING
    if not isinstance(names, list):
        return None
    return [value.attrs.get(name, Unknown(name)) for name in names]


def is_named_tuple(value: Any) -> bool:
    """Whether something is a tuple whose items have names."""
    return isinstance(value, Inst) and value.cls.find("__tuple__") is not MISSING


def written_fields(cls: Cls) -> list[str] | None:
    """The fields that the text of a record names: those with a type that are not kept out of it; None if not known."""
    names = cls.find("__record__")
    if not isinstance(names, list):
        return None
    nodes = [each.node for each in cls.mro if isinstance(each, Cls) and each.node is not None]
    if any("repr=" in ast.unparse(each) for node in nodes for each in node.decorator_list):
        return None
    parts = [each for node in nodes for each in node.body if isinstance(each, ast.AnnAssign)]
    is_written = {ast.unparse(each.target): not _UNWRITTEN.search(ast.unparse(each)) for each in reversed(parts)}
    if not nodes:
        return names
    return [name for name in names if is_written.get(name)] if is_written else None


def set_plainly(args: list[Any]) -> None:
    """`object.__setattr__(instance, name, value)`: whatever the class says of it, the attribute is set."""
    if len(args) == 3 and isinstance(hard(args[0]), Inst) and isinstance(hard(args[1]), str):  # noqa: PLR2004
        hard(args[0]).attrs[hard(args[1])] = args[2]
