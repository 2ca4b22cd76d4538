"""Comparisons of values: what is known of `==`, `is`, `<` and `in` where not everything is known."""

import ast
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

from sooner.plan.needs.evaluator.enumerations import is_enumeration, is_member, is_mixed_member, plain_of
from sooner.plan.needs.evaluator.generators import one_by_one
from sooner.plan.needs.evaluator.lazy_values import Generator
from sooner.plan.needs.evaluator.special_methods import SpecialMethods, field_values, is_named_tuple
from sooner.plan.needs.evaluator.values import (
    MISSING,
    PLAIN,
    UNKNOWN,
    Cls,
    Decided,
    Dev,
    Enough,
    Ext,
    Func,
    Inst,
    Made,
    Mod,
    OneOf,
    Soft,
    Text,
    Unknown,
    hard,
    is_plain,
    name_of,
)

_ORDER: Final[dict[type, Callable[[Any, Any], Any]]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_TURNED: Final[dict[type, type]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
HOST_ERRORS: Final = (
    TypeError, ValueError, ArithmeticError, LookupError, AttributeError, AssertionError, RuntimeError, MemoryError,
)  # fmt: skip

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine
    from sooner.plan.needs.rules import Rules

_OF_THE_MACHINE: Final = (
    *("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "CUDA_HOME"),
    *("HOME", "PATH", "USER", "PWD", "SHELL", "LANG", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH", "HOSTNAME", "CI"),
    *("PYTEST_CURRENT_TEST", "PYTEST_VERSION", "PYTEST_XDIST_WORKER", "VIRTUAL_ENV", "CONDA_PREFIX"),
)
"""Variables that a machine, its masks of devices, its shell or pytest may have set."""
_RUNNERS: Final = ("pytest", "_pytest", "unittest")
"""Modules that are imported where pytest runs the tests."""


class Comparisons(SpecialMethods):
    """The part of the machine that compares."""

    def compare(self, kind: type, left: Any, right: Any) -> Any:
        """One comparison."""
        soft = isinstance(left, Soft) or isinstance(right, Soft)
        if isinstance(right, Ext) and right.path == "os.environ" and isinstance(hard(left), str):
            there = self.is_set(hard(left))
            left, right = 1, [1] if there else [] if there is not None else UNKNOWN
            soft |= there is False
        left, right = plain_of(hard(left)), plain_of(hard(right))
        if kind in _ORDER and isinstance(left, Enough) is not isinstance(right, Enough):
            return Soft(isinstance(left, Enough) is (kind in (ast.Gt, ast.GtE)))
        result = self._compared(kind, left, right)
        return Soft(result) if soft and isinstance(result, bool) else result

    def _compared(self, kind: type, left: Any, right: Any) -> Any:
        if kind in (ast.Is, ast.IsNot):
            same = self.same(left, right, identity=True)
            return UNKNOWN if same is None else same is (kind is ast.Is)
        if kind in (ast.Eq, ast.NotEq):
            same = self.equal(left, right)
            return UNKNOWN if same is None else same is (kind is ast.Eq)
        if kind in (ast.In, ast.NotIn):
            inside = self.contains(right, left)
            return UNKNOWN if inside is None else inside is (kind is ast.In)
        if isinstance(left, OneOf) or isinstance(right, OneOf):
            return _bounded(kind, left, right)
        if not (is_plain(left) and is_plain(right)):
            told = self.ordered_by_method(kind, left, right)
            return UNKNOWN if told is MISSING else told
        try:
            return bool(_ORDER[kind](left, right))
        except HOST_ERRORS:
            return UNKNOWN

    def equal(self, left: Any, right: Any) -> bool | None:
        """Whether two values are equal, by their own methods where they have them."""
        told = self.equal_by_method(left, right)
        if told is not MISSING:
            return self.truth(told)
        if is_named_tuple(left) or is_named_tuple(right):
            first, second = (
                tuple(field_values(each) or ()) if is_named_tuple(each) else each for each in (left, right)
            )
            return self.same(first, second)
        ours, theirs = field_values(left), field_values(right)
        if ours is None or theirs is None or left.cls is not right.cls:
            return self.same(left, right)
        answers = [self.equal(hard(one), hard(other)) for one, other in zip(ours, theirs, strict=True)]
        return False if False in answers else None if None in answers else True

    def same(self, left: Any, right: Any, *, identity: bool = False) -> bool | None:
        """Whether two values are equal (or the same object); None where that is not known."""
        if left is right and not isinstance(left, Unknown):
            return True
        if left is None or right is None:
            other = right if left is None else left
            is_something = isinstance(other, Made) or (isinstance(other, Decided) and other.truth)
            return None if isinstance(other, Unknown) and not is_something else False
        if isinstance(left, Text) and isinstance(right, Text) and type(left) is type(right):
            left, right = left.known(), right.known()  # texts only if nothing in them is not known
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return None
        if isinstance(left, Ext) or isinstance(right, Ext):
            return _same_outside(left, right)
        if isinstance(left, Dev) or isinstance(right, Dev):
            return _same_device(left, right)
        if isinstance(left, Inst) or isinstance(right, Inst):
            return self._same_instance(left, right)
        if is_plain(left) and is_plain(right):
            return left is right if identity and not isinstance(left, int | str) else bool(left == right)
        return self._same_containers(left, right, identity=identity)

    def _same_containers(self, left: Any, right: Any, *, identity: bool) -> bool | None:
        if isinstance(left, list | tuple) and isinstance(right, list | tuple):
            return self._same_items(left, right)
        if isinstance(left, dict) and isinstance(right, dict) and not identity:
            return self._same_tables(left, right)
        return None if isinstance(left, list | dict | tuple | set) else False

    def _same_items(self, left: Any, right: Any) -> bool | None:
        if len(left) != len(right):
            return False
        answers = [self.same(a, b) for a, b in zip(left, right, strict=True)]
        return False if False in answers else None if None in answers else True

    def _same_tables(self, left: dict[Any, Any], right: dict[Any, Any]) -> bool | None:
        if not left or not right:
            is_filled = self.truth(left or right)
            return None if is_filled is None else not is_filled
        if left.keys() != right.keys() or not is_plain(list(left)):
            return None
        return self._same_items(list(left.values()), [right[each] for each in left])

    def _same_instance(self, left: Any, right: Any) -> bool | None:
        if is_mixed_member(left) or is_mixed_member(right):
            return self.same(plain_of(left), plain_of(right))
        members = [each for each in (left, right) if is_member(each)]
        if len(members) == 2 and left.cls.name == right.cls.name:  # noqa: PLR2004 - both
            return self.same(left.attrs["_value_"], right.attrs["_value_"])
        others = [each for each in (left, right) if not is_member(each)]
        if any(_is_like_no_other(each) for each in members) and all(isinstance(each, PLAIN) for each in others):
            return False
        return None

    environment: dict[str, Any]
    of_any_length: dict[int, Any]
    rules: "Rules"

    def is_set(self, name: str) -> bool | None:
        """Whether a variable of the environment is there: by default it is not, if no rule and no shell sets it."""
        if name in self.environment:
            return self.environment[name] is not MISSING
        return None if name in self.rules.environment or name in _OF_THE_MACHINE else False

    def contains(self, container: Any, item: Any) -> bool | None:
        """Whether a container holds an item; one of any length may hold it further on."""
        found = self._contains(container, item)
        return None if found is False and id(container) in self.of_any_length else found

    def _contains(self, container: Any, item: Any) -> bool | None:
        if isinstance(container, Inst):
            told = self.special(container, "__contains__", item)
            if told is not MISSING:
                return self.truth(told)
            asked = one_by_one(cast("Machine", self), container)
            items = asked if isinstance(asked, Generator) else self.iterated(container)
            return None if items is None else self.contains(items, item)
        if isinstance(container, Generator):
            return self._is_given(container, item)
        if isinstance(container, Cls) and is_member(item) and is_enumeration(container):
            return container in item.cls.mro
        if is_plain(container) and is_plain(item):
            try:
                return bool(item in container)
            except HOST_ERRORS:
                return None
        if isinstance(container, dict) and isinstance(item, str | int):
            return item in container or (None if UNKNOWN in container else False)
        if isinstance(container, list | tuple | set | frozenset | dict):
            answers = [self.equal(hard(each), item) for each in container]
            return True if True in answers else None if None in answers else False
        is_runner = isinstance(container, Ext) and container.path == "sys.modules" and item in _RUNNERS
        return True if is_runner else None

    def _is_given(self, source: Generator, item: Any) -> bool | None:
        """Whether what is asked one after the other comes to an item; what is behind that is not asked for."""
        answers = set()
        for each in source.values(cast("Machine", self)):
            answers.add(self.equal(hard(each), item))
            if True in answers:
                return True
        return None if None in answers or source.unknown is not MISSING else False


def _is_like_no_other(member: Inst) -> bool:
    """Whether a member of an enumeration equals nothing but itself: it is no number or text besides."""
    outside = [name_of(each) for each in member.cls.mro if not isinstance(each, Cls)]
    return member.cls.find("__eq__") is MISSING and set(outside) <= {"Enum", "Flag", "ABC", "object"}


def _same_outside(left: Any, right: Any) -> bool | None:
    if isinstance(left, Ext) and isinstance(right, Ext):
        if left.path == right.path:
            return True
        return False if left.path.rpartition(".")[0] == right.path.rpartition(".")[0] else None
    other = right if isinstance(left, Ext) else left
    return False if other is None or isinstance(other, Cls | Func | Mod) else None


def _same_device(left: Any, right: Any) -> bool | None:
    pair = [(each.kind, each.index) if isinstance(each, Dev) else each for each in (left, right)]
    if any(not isinstance(each, tuple) for each in pair):
        return False
    return pair[0] == pair[1]


def _bounded(kind: type, left: Any, right: Any) -> Any:
    """What holds of one of several numbers because it holds of all, of the most (`<`), or does not of that (`>`)."""
    if not isinstance(left, OneOf):
        left, right, kind = right, left, _TURNED[kind]
    if not (isinstance(right, int | float) and isinstance(left.most, int)):
        return UNKNOWN
    holds = _ORDER[kind](left.most, right)
    is_of_all = left.least is not None and bool(_ORDER[kind](left.least, right)) is bool(holds)
    return bool(holds) if is_of_all or bool(holds) is (kind in (ast.Lt, ast.LtE)) else UNKNOWN
