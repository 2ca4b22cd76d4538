"""Expressions, evaluated with what is known: a plain value where everything is known, `Unknown` where not."""

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from sooner.plan.needs.evaluator.comparisons import HOST_ERRORS
from sooner.plan.needs.evaluator.comprehensions import Comprehensions
from sooner.plan.needs.evaluator.counted import uncounted, uncounted_in
from sooner.plan.needs.evaluator.enumerations import is_enumeration, is_mixed_member, members, plain_of, same_key
from sooner.plan.needs.evaluator.generators import one_by_one
from sooner.plan.needs.evaluator.growth import has_wide_field, would_explode
from sooner.plan.needs.evaluator.lazy_values import Generator
from sooner.plan.needs.evaluator.operators import BINARY, CONVERSIONS, UNARY, absorbed, is_shallow, pieces_of, types_of
from sooner.plan.needs.evaluator.suspending import Suspended, pass_on
from sooner.plan.needs.evaluator.trace import ANY, OF_ANY, Trace, asks_for_any, asks_for_rank, parts_ranks
from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    AnyOf,
    Bound,
    Cls,
    Decided,
    Dev,
    Env,
    Ext,
    Frame,
    Func,
    Inst,
    Mark,
    Native,
    OneOf,
    OutOfFuel,
    Raised,
    Soft,
    Stream,
    Text,
    Unknown,
    hard,
    is_plain,
    place_in_a_set,
)
from sooner.plan.needs.evaluator.ways import Perhaps, each_way, perhaps_gone
from sooner.plan.needs.frameworks.jax_devices import MESH_SAYS, Grid, JaxMesh
from sooner.plan.needs.frameworks.named_devices import one_of_several
from sooner.plan.needs.frameworks.refusals import refuse_to_divide
from sooner.plan.needs.frameworks.unseen import names_a_device
from sooner.plan.needs.python import sets
from sooner.plan.needs.python.containers import Defaulting, Environment, plain_mapping
from sooner.plan.needs.testing.testing_names import condition_of

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_LONGEST: Final = 4096
_FEW_ITEMS: Final = 8
_SMALL: Final = 64
"""Larger numbers are none of devices."""


class Expressions(Comprehensions, ABC):
    """The part of the machine that evaluates expressions."""

    fuel: int
    size: int
    guesses: int
    quiet: int
    environment: dict[str, Any]
    loading: bool
    rank: tuple[int, int] | None
    rank_is_asked_for: int
    is_gathering: bool
    trace: Trace

    def ev(self, node: ast.expr, env: Env) -> Any:
        """The value of an expression; a mesh is used with it (see `_valued` for what it raises)."""
        value = self._valued(node, env)
        if type(value) is JaxMesh:
            value.use(self)  # type: ignore[arg-type]
        return value

    def _valued(self, node: ast.expr, env: Env) -> Any:
        """The value of an expression.

        Raises:
            Raised: The expression raises.
            OutOfFuel: It takes too long.
        """
        self.fuel -= 1
        if self.fuel < 0:
            raise OutOfFuel
        method = _DISPATCH.get(type(node))
        return UNKNOWN if method is None else method(self, node, env)

    # What the other parts of the machine provide.

    @abstractmethod
    def attribute(self, value: Any, name: str) -> Any:
        """An attribute."""

    @abstractmethod
    def name(self, name: str, env: Env) -> Any:
        """What a name stands for."""

    @abstractmethod
    def make_function(self, node: ast.Lambda, env: Env) -> Func:
        """A function value."""

    @abstractmethod
    def place(self, env: Env, node: ast.AST) -> tuple[str, int]:
        """Where a node stands."""

    def truth(self, value: Any) -> bool | None:
        """Whether a value is true; None where that is not known."""
        value = hard(value)
        if isinstance(value, Unknown):
            return value.truth
        if isinstance(value, Ext):
            return None if value.path.rpartition(".")[2].isupper() or "_" in value.path else True
        if isinstance(value, Inst):
            for special in ("__bool__", "__len__"):
                method = value.cls.find(special)
                if method is not MISSING:
                    return self.truth(self.call(Bound(method, value), [], {}))
            return None if value.cls.find("_is_lazy") is not MISSING else True
        if isinstance(value, dict) and len(value) == 1 and UNKNOWN in value:
            return None
        if isinstance(value, list | set | dict) and self.added.may_be_empty(value):
            return None
        try:
            return bool(value)
        except HOST_ERRORS:
            return None

    def items_of(self, value: Any) -> list[Any] | None:
        """What iterating over a value gives; None where that is not known."""
        value = hard(value)
        if isinstance(value, Stream) and value.end is not None:
            raise value.end
        if isinstance(value, Cls):
            return self.enum_members(value)
        if isinstance(value, Inst):
            data = value.attrs.get("__items__")
            return data if isinstance(data, list) else self.iterated(value)
        if isinstance(value, set | frozenset):
            return sorted(value, key=place_in_a_set) if len(value) <= _LONGEST else None
        if isinstance(value, str | bytes | list | tuple | dict | range):
            return list(value) if len(value) <= _LONGEST else None
        return value.items(cast("Machine", self)) if isinstance(value, Unknown) else None

    def enum_members(self, cls: Cls) -> list[Any] | None:
        """The members of an enumeration."""
        if not is_enumeration(cls):
            return None
        return list(dict.fromkeys(members(cls).values()))  # an alias is no member of its own

    # One method a kind of expression.

    def _ev_constant(self, node: ast.Constant, _env: Env) -> Any:
        return node.value

    def _ev_name(self, node: ast.Name, env: Env) -> Any:
        return self.name(node.id, env)

    def _ev_attribute(self, node: ast.Attribute, env: Env) -> Any:
        value = self._valued if node.attr in MESH_SAYS else self.ev
        return self.attribute(value(node.value, env), node.attr)

    def _ev_call(self, node: ast.Call, env: Env) -> Any:
        func = self.ev(node.func, env)
        if isinstance(func, Native) and func.name == "super" and not node.args:
            return self.zero_argument_super(env)
        args, kwargs = self.arguments(node, env)
        self.trace.may_be_made |= not self.quiet and names_a_device(node, args, kwargs)
        return self.call_at(func, args, kwargs, node, env)

    @abstractmethod
    def zero_argument_super(self, env: Env) -> Any:
        """`super()` inside a method."""

    @abstractmethod
    def call_at(self, func: Any, args: list[Any], kwargs: dict[str, Any], node: ast.Call, env: Env) -> Any:
        """A call, with its place."""

    def arguments(self, node: ast.Call, env: Env) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments; starred ones spread where they are known."""
        args: list[Any] = []
        for each in node.args:
            if isinstance(each, ast.Starred):
                spread = self.items_of(self.ev(each.value, env))
                args.extend(spread if spread is not None else [UNKNOWN])
            else:
                args.append(self.ev(each, env))
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.ev(keyword.value, env)
            if keyword.arg is not None:
                kwargs[keyword.arg] = value
            elif isinstance(spread := plain_mapping(value), dict):
                kwargs.update({k: v for k, v in spread.items() if isinstance(k, str)})
        return args, kwargs

    def _ev_binop(self, node: ast.BinOp, env: Env) -> Any:
        left = self.ev(node.left, env)
        result = self.binary(type(node.op), left, self.ev(node.right, env))
        if self.is_gathering and parts_ranks(node) and hard(result) != hard(left):
            self.rank_is_asked_for = OF_ANY
        return result

    def binary(self, kind: type, left: Any, right: Any, *, in_place: bool = False) -> Any:
        """An arithmetic operation."""
        if type(left) is int and type(right) is int:  # most of them, in loops over shapes
            return self._computed(kind, left, right)
        refuse_to_divide(cast("Machine", self), kind, left, right)
        left, right = uncounted(left), uncounted_in(right)
        soft = isinstance(left, Soft) or isinstance(right, Soft)
        if kind is ast.Mod and isinstance(hard(left), str | bytes) and is_mixed_member(hard(right)):
            return UNKNOWN  # its name or its value, as the text asks
        if kind is ast.BitOr and (types := types_of(left)) and (more := types_of(right)):
            return types + more
        left, right = plain_of(hard(left)), plain_of(hard(right))
        if isinstance(left, Inst) or isinstance(right, Inst):
            told = self.operated(kind, left, right, in_place=in_place)
            return absorbed(kind, left, right) if told is MISSING else told
        if kind in sets.OPERATIONS and sets.are_of_things(left, right):
            return sets.combined(self, sets.OPERATIONS[kind], left, right)
        if isinstance(left, Dev) or isinstance(right, Dev) or not (is_shallow(left) and is_shallow(right)):
            return absorbed(kind, left, right)
        if kind is ast.Mod and isinstance(left, str | bytes) and not is_plain(right):
            return UNKNOWN  # a text with something in it that is not known
        result = self._computed(kind, left, right)
        return Soft(result) if soft and result is not UNKNOWN else result

    def _computed(self, kind: type, left: Any, right: Any) -> Any:
        """What Python's own operator gives."""
        operation = BINARY.get(kind)
        if operation is None or would_explode(kind, left, right):
            return UNKNOWN
        try:
            return operation(left, right)
        except TypeError:
            return UNKNOWN
        except HOST_ERRORS as error:
            raise Raised(type(error).__name__, str(error)) from None

    def _ev_unaryop(self, node: ast.UnaryOp, env: Env) -> Any:
        value = self.ev(node.operand, env)
        if isinstance(node.op, ast.Not):
            truth = self.truth(value)
            if truth is None:
                return UNKNOWN
            return Soft(not truth) if isinstance(value, Soft) else not truth
        inner = hard(value)
        if isinstance(inner, int | float | complex):
            try:
                result = UNARY[type(node.op)](inner)
            except HOST_ERRORS as error:
                raise Raised(type(error).__name__, str(error)) from None
            return Soft(result) if isinstance(value, Soft) else result
        told = self.unary_by_method(type(node.op), inner)
        return UNKNOWN if told is MISSING else told

    def _ev_boolop(self, node: ast.BoolOp, env: Env) -> Any:
        deciding = isinstance(node.op, ast.Or)
        unknown, soft, value = False, False, None
        ways: list[Any] = []
        for place, each in enumerate(node.values):
            value = self._behind_what_is_not_known(each, env, deciding=deciding) if unknown else self.ev(each, env)
            truth = self.truth(value)
            if truth is not (not deciding) or place == len(node.values) - 1:
                ways.append(value.value if isinstance(value, Perhaps) and deciding else value)
            unknown |= truth is None
            soft |= isinstance(value, Soft)
            if truth is deciding:
                if isinstance(value, Soft):
                    return deciding if self._decided(node.values[place + 1 :], env, deciding=deciding) else value
                return value if not unknown else self._one_way(ways, is_or=deciding, is_decided=True)
        if unknown:
            return self._one_way(ways, is_or=deciding, is_decided=False)
        return Soft(hard(value)) if soft else value

    def _behind_what_is_not_known(self, node: ast.expr, env: Env, *, deciding: bool) -> Any:
        """What stands behind a condition that is not known (`flag() and touch()`): it may not be done."""
        found: list[Any] = []
        try:
            with nullcontext() if self.quiet else perhaps_gone(cast("Machine", self)):
                found.append(self.ev(node, env))
        except Raised as raised:
            if not (self.loading and raised.device):
                raise
            self.trace.doubted, self.guesses = True, self.guesses + 1
            return deciding  # the condition is there for that: it is not done
        return found[0] if found else UNKNOWN  # where it skips

    def _one_way(self, ways: list[Any], *, is_or: bool, is_decided: bool) -> Any:
        """What `and` or `or` comes to, where it is not known which of its values counts."""
        last = ways[-1]
        if is_or and not any(isinstance(hard(each), Unknown) for each in ways):
            found = one_of_several(cast("Machine", self), ways)
            if found is not UNKNOWN:
                return found
        if is_decided:
            return is_or if isinstance(last, bool) else Decided(truth=is_or)
        return Perhaps(last) if not is_or and self.truth(last) else UNKNOWN

    def _decided(self, rest: list[ast.expr], env: Env, *, deciding: bool) -> bool:
        """Whether a condition of a mark that a switch decides is decided without it too (`not SWITCH or N < 2`)."""
        try:
            values = [self.ev(each, env) for each in rest] if self.loading else []
        except Raised:
            return False
        return any(self.truth(each) is deciding and not isinstance(each, Soft) for each in values)

    def _ev_compare(self, node: ast.Compare, env: Env) -> Any:
        self.note_rank(node)
        left = self._compared_first(node, env)
        result: Any = True
        soft = unknown = False
        for op, each in zip(node.ops, node.comparators, strict=True):
            right = self.ev(each, env)
            result = self.compare(type(op), left, right)
            soft |= isinstance(result, Soft)
            truth = self.truth(result)
            if truth is False:
                return result
            unknown |= truth is None
            left = right
        if unknown:
            return UNKNOWN
        return Soft(True) if soft else True

    def note_rank(self, node: ast.expr) -> None:
        """A worker may ask which rank it is: what others do is of interest then."""
        if self.is_gathering and self.rank_is_asked_for < OF_ANY and not self.quiet:
            self.rank_is_asked_for = max(self.rank_is_asked_for, asks_for_rank(node))

    def _compared_first(self, node: ast.Compare, env: Env) -> Any:
        """The left side; the number of devices that is only compared with none is not asked for."""
        if not asks_for_any(node):
            return self.ev(node.left, env)
        before, self.trace.asked = self.trace.asked, 0
        trace = self.trace
        left = self.ev(node.left, env)
        asked = ANY if trace.asked and hard(left) == self.size else trace.asked
        trace.asked = max(before, asked)
        return left

    def _ev_ifexp(self, node: ast.IfExp, env: Env) -> Any:
        self.note_rank(node.test)
        truth = self.truth(self.ev(node.test, env))
        if truth is None:
            ways = [partial(self.ev, way, env) for way in (node.body, node.orelse)]
            return self.either(*each_way(self, ways))  # type: ignore[arg-type]
        return self.ev(node.body if truth else node.orelse, env)

    def either(self, one: Any, other: Any) -> Any:
        """One of two values, it is not known which; of two lists the longer one, where it has all of the other."""
        if isinstance(one, list) and isinstance(other, list):
            most, least = (one, other) if len(one) >= len(other) else (other, one)
            if least and len(least) < len(most) and all(self.contains(most, each) is True for each in least):
                self.guesses += 1
                self.added.mark(most, {place for place, each in enumerate(most) if not self.contains(least, each)})
                return most
        if isinstance(one, Mark) and isinstance(other, Mark) and {one.name, other.name} <= {"skip", "skipif"}:
            condition = self.either(condition_of(one), condition_of(other))
            return Mark("skipif", (condition,), one.kwargs, one.path, one.line, wraps=one.wraps or other.wraps)
        if type(one) is tuple and type(other) is tuple and len(one) == len(other):
            pairs = [*zip(one, other, strict=True)]
            if any(first is second or self.same(first, second) is True for first, second in pairs):
                return tuple(self.either(first, second) for first, second in pairs)
        return one if self.same(one, other) is True else one_of_several(cast("Machine", self), [one, other])

    def _ev_list(self, node: ast.List, env: Env) -> Any:
        return self._elements(node.elts, env)

    def _ev_tuple(self, node: ast.Tuple, env: Env) -> Any:
        return tuple(self._elements(node.elts, env))

    def _elements(self, nodes: list[ast.expr], env: Env) -> list[Any]:
        values: list[Any] = []
        for each in nodes:
            if isinstance(each, ast.Starred):
                given = self.ev(each.value, env)
                spread = self.items_of(given)
                self.added.mark(values, {len(values) + place for place in self.added.places(given)})
                values.extend(spread if spread is not None else [UNKNOWN])
                if id(hard(given)) in self.of_any_length:
                    values.append(UNKNOWN)  # and whatever follows
            else:
                values.append(self.ev(each, env))
        return values

    def _ev_set(self, node: ast.Set, env: Env) -> Any:
        values = sets.distinct(self, self._elements(node.elts, env))
        try:
            return set(values) if all(is_plain(each) for each in values) else values
        except TypeError:
            return UNKNOWN

    def _ev_dict(self, node: ast.Dict, env: Env) -> Any:
        made: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                other = plain_mapping(self.ev(value, env))
                if isinstance(other, Ext) and other.path == "os.environ":
                    other = Environment(self.environment)
                made = Environment(made) if isinstance(other, Environment) else made
                made.update(other if isinstance(other, dict) else _nobody_knows(made))
                continue
            made[self.key(self.ev(key, env))] = self.ev(value, env)
        return made

    def key(self, value: Any) -> Any:
        """A value as the key of a dictionary."""
        value = hard(value)
        if isinstance(value, Dev) and isinstance(hard(value.index), Unknown):
            return UNKNOWN
        try:
            hash(value)
        except TypeError:
            return id(value)
        return value

    def key_in(self, value: dict[Any, Any], index: Any) -> Any:
        """The key of an entry; unknown where one under a key that nobody knows may be meant."""
        key = self.key(index)
        if isinstance(key, Unknown) and isinstance(value, Defaulting):
            value[UNKNOWN] = UNKNOWN  # it has one now
        if key in value:
            return key
        other = sets.equal_key(self, value, key) if isinstance(key, Inst) else None
        if other is not None or (other := same_key(value, key)) is not None:
            return other
        may_be_one = isinstance(hard(index), Ext) and any(isinstance(each, str | int) for each in value)
        return UNKNOWN if may_be_one or UNKNOWN in value else key

    def _ev_subscript(self, node: ast.Subscript, env: Env) -> Any:
        value = self.ev(node.value, env)
        index = self.ev(node.slice, env)
        return self.item(value, index, *self.place(env, node))

    def item(self, value: Any, index: Any, path: str = "", line: int = 0) -> Any:
        """`value[index]`."""
        soft = isinstance(value, Soft) or isinstance(index, Soft)
        value, index = hard(value), uncounted(hard(index))
        index = index if isinstance(value, dict) or not isinstance(index, Inst) else self.as_index(index)
        if isinstance(value, Ext | Unknown | Native):
            return self.outside_item(value, index)
        if isinstance(value, Func):  # Python's own have no items: somebody has made a kernel of it
            return Native("kernel", lambda _args, _kwargs: self.launch_kernel(value))
        if isinstance(value, Cls):
            return cast("Machine", self).item_of_class(value, index)
        if isinstance(value, Inst):
            method = value.cls.find("__getitem__")
            if method is MISSING and isinstance(index, int | slice):
                return self.item(value.attrs.get("__items__", UNKNOWN), index, path, line)
            return UNKNOWN if method is MISSING else self.call(Bound(method, value), [index], {})
        if isinstance(value, dict):
            index = self.key_in(value, index)
        if isinstance(index, Unknown) or not isinstance(value, str | bytes | list | tuple | dict | range):
            return self._any_item(value)
        if isinstance(value, Grid) and not (value.flat and isinstance(index, int | slice)):
            return UNKNOWN
        found = self._looked_up(value, index, path, line)
        return Soft(found) if soft and is_plain(found) else found

    def _any_item(self, value: Any) -> Any:
        """An item of which nobody knows where it stands: one of few devices, small numbers or functions."""
        items = list(value.values()) if isinstance(value, dict) else value
        if not isinstance(items, list | tuple) or not 0 < len(items) <= _FEW_ITEMS:
            return UNKNOWN
        found = items[0] if len(items) == 1 else one_of_several(cast("Machine", self), items)
        is_large = isinstance(found, OneOf) and isinstance(found.most, int) and found.most > _SMALL
        return found if isinstance(found, OneOf | AnyOf) and not is_large else UNKNOWN

    def _looked_up(self, value: Any, index: Any, path: str, line: int) -> Any:
        try:
            return value[index]
        except (LookupError, TypeError, ValueError) as error:
            if not self.is_ignored(path, line):
                raise Raised(type(error).__name__, str(error), path, line) from None
            self.guesses += not self.quiet
            return UNKNOWN  # our ignorance, most likely: what is around it is done

    @abstractmethod
    def launch_kernel(self, func: Func) -> Any:
        """`func[grid](...)`: a function that somebody has compiled for a device."""

    @abstractmethod
    def is_ignored(self, path: str, line: int) -> bool:
        """Whether what stops a test at a place is not believed."""

    @abstractmethod
    def outside_item(self, value: Any, index: Any) -> Any:
        """An item of something outside the tree."""

    def _ev_slice(self, node: ast.Slice, env: Env) -> Any:
        parts = [
            None if each is None else uncounted(hard(self.ev(each, env)))
            for each in (node.lower, node.upper, node.step)
        ]
        if any(not isinstance(each, int | None) for each in parts):
            return UNKNOWN
        return slice(*parts)

    def _ev_joinedstr(self, node: ast.JoinedStr, env: Env) -> Any:
        parts = [self.ev(each, env) for each in node.values]
        if any(not isinstance(hard(each), str) for each in parts):
            return Text([piece for each in parts for piece in pieces_of(hard(each))])
        text = "".join(hard(each) for each in parts)
        return Soft(text) if any(isinstance(each, Soft) for each in parts) else text

    def _ev_formattedvalue(self, node: ast.FormattedValue, env: Env) -> Any:
        value = self.ev(node.value, env)
        inner = hard(value)
        if isinstance(inner, Inst) and inner.cls.find("__format__") is not MISSING:
            return self.special(inner, "__format__", "" if node.format_spec is None else self.ev(node.format_spec, env))
        if not isinstance(inner, int | float | str | bool | None) or isinstance(inner, Unknown):
            return self.call(self.name("str", env), [value], {})
        shape = hard(self.ev(node.format_spec, env)) if node.format_spec is not None else ""
        if not isinstance(shape, str) or has_wide_field(shape):
            return UNKNOWN
        convert = CONVERSIONS[node.conversion]
        try:
            text = format(convert(inner), shape)
        except HOST_ERRORS:
            return UNKNOWN
        return Soft(text) if isinstance(value, Soft) else text

    def _ev_lambda(self, node: ast.Lambda, env: Env) -> Any:
        return self.make_function(node, env)

    def _ev_namedexpr(self, node: ast.NamedExpr, env: Env) -> Any:
        value = self.ev(node.value, env)
        while env.is_inner and env.parent is not None:
            env = env.parent
        self.bind(node.target, value, env)
        return value

    @abstractmethod
    def bind(self, target: ast.expr, value: Any, env: Env) -> None:
        """Assign a value to a target."""

    def _ev_await(self, node: ast.Await, env: Env) -> Any:
        return self.ev(node.value, env)

    def _ev_yield(self, node: ast.Yield, env: Env) -> Any:
        value = None if node.value is None else self.ev(node.value, env)
        frame = _frame(env)
        if frame is not None:
            frame.yielded.append(value)
            if self._stops(frame):
                raise Suspended
        return UNKNOWN

    def _stops(self, frame: Frame) -> bool:
        return frame.stops_at_yield and (frame.forks is None or frame.forks == self.forks)

    def _ev_yieldfrom(self, node: ast.YieldFrom, env: Env) -> Any:
        several = one_by_one(cast("Machine", self), self.ev(node.value, env))
        frame = _frame(env)
        if frame is not None and isinstance(several, Generator) and self._stops(frame):
            pass_on(frame, several.values(cast("Machine", self)), several.frame)
            return frame.sent
        values = self.items_of(several)
        if frame is not None and values is not None and self._stops(frame):
            pass_on(frame, iter(values))
        elif frame is not None:
            frame.yielded.extend(values if values is not None else [UNKNOWN])
        return several.frame.sent if isinstance(several, Generator) and several.frame is not None else UNKNOWN


def _nobody_knows(made: dict[Any, Any]) -> dict[Any, Any]:
    """What a dict is filled with of which nothing is known; an environment has its defaults."""
    return {} if isinstance(made, Environment) else {UNKNOWN: UNKNOWN}


def _frame(env: Env | None) -> Any:
    while env is not None:
        if env.frame is not None:
            return env.frame
        env = env.parent
    return None


_DISPATCH: Final[dict[type, Callable[..., Any]]] = {
    getattr(ast, name): getattr(Expressions, f"_ev_{name.lower()}")
    for name in (
        "Constant", "Name", "Attribute", "Call", "BinOp", "UnaryOp", "BoolOp", "Compare", "IfExp", "List", "Tuple",
        "Set", "Dict", "Subscript", "Slice", "JoinedStr", "FormattedValue", "Lambda", "NamedExpr", "ListComp",
        "SetComp", "DictComp", "GeneratorExp", "Await", "Yield", "YieldFrom",
    )
}  # fmt: skip
