"""Python's builtins that go over values one after the other: `zip`, `map`, `iter`, `next`, ..."""

import ast
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.counted import uncounted
from sooner.plan.needs.evaluator.generators import one_by_one
from sooner.plan.needs.evaluator.lazy_values import Endless, Generator, NotKnownError, Numbered, turn_of
from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Args,
    Dev,
    Env,
    Function,
    Inst,
    Kwargs,
    Raised,
    Stream,
    hard,
    is_plain,
)
from sooner.plan.needs.frameworks.jax_devices import Rows

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine


_MOST_ROWS: Final = 1024


def _enumerate(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    start = uncounted(hard(args[1] if len(args) > 1 else kwargs.get("start", 0)))
    if not isinstance(start, int):
        return UNKNOWN
    source = one_by_one(machine, args[0]) if args else UNKNOWN
    if isinstance(source, Generator):
        turns = enumerate(source.turns(machine), start)
        return Generator(machine, (((number, value), is_perhaps) for number, (value, is_perhaps) in turns))
    values = machine.items_of(source)
    return Numbered(start) if values is None else list(enumerate(values, start))


def note_list(machine: "Machine", node: ast.ListComp, env: Env, made: Any) -> Any:
    """Note that a list has an item for each device (`[torch.device(each) for each in range(device_count())]`)."""
    first = node.generators[0]
    is_each = isinstance(made, list) and len(node.generators) == 1 and not first.ifs
    if is_each and _has_no_effect(first.iter) and id(hard(machine.ev(first.iter, env))) in machine.as_many:
        machine.as_many[id(made)] = made
    return made


def _has_no_effect(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(node, ast.Name) or (isinstance(called, ast.Name) and called.id == "range")


def _zip(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    sources = [one_by_one(machine, each) for each in args]
    if any(isinstance(each, Generator) for each in sources):
        given = [values_of(machine, each) for each in sources]
        if None not in given:
            return Generator(machine, ((row, False) for row in zip(*given, strict=False)))
    columns = [_column(machine, each) for each in args]
    least = min((len(each) for each in columns if each is not None), default=None)
    if least is not None:
        endless = {place: each for place, each in enumerate(map(hard, args)) if isinstance(each, Endless)}
        columns = [
            list(islice(endless[place].values, least)) if place in endless else each
            for place, each in enumerate(columns)
        ]
    known = [each for each in columns if each is not None]
    if hard(kwargs.get("strict")) is True and is_plain(columns) and len({len(each) for each in known}) > 1:
        raise Raised("ValueError", "zip() of arguments of several lengths", *machine.current)
    if len(known) < len(columns):
        if not known or machine.loading:  # cases of a test are as many as there are, or nobody knows how many
            return UNKNOWN
        if any(isinstance(hard(each), int | Dev) for column in known for each in column):
            machine.guesses += not machine.quiet  # what is not known most likely has as many
        shortest = min(map(len, known))
        columns = [[UNKNOWN] * shortest if each is None else each for each in columns]
    return [tuple(row) for row in zip(*columns, strict=False)]


def values_of(machine: "Machine", source: Any) -> Iterator[Any] | None:
    """What something gives, as far as it is asked; None where that is not known."""
    inner = hard(source)
    if isinstance(inner, Generator):
        return inner.values(machine)
    if isinstance(inner, Endless):
        return inner.values
    values = machine.items_of(source)
    return None if values is None else iter(values)


def _column(machine: "Machine", value: Any) -> list[Any] | None:
    """What iterating gives; an array of which the shape is known has so many rows."""
    rows = hard(value)
    size = rows.shape[0] if isinstance(rows, Rows) and rows.shape else None
    if isinstance(size, int) and 0 < size <= _MOST_ROWS:
        return [Rows(rows.shape[1:])] * size
    return machine.items_of(value)


def _map(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    columns = [values_of(machine, one_by_one(machine, each)) for each in args[1:]]
    known = [each for each in columns if each is not None]
    if not columns or len(known) < len(columns):
        return UNKNOWN
    return lazily(machine, (machine.call(args[0], list(row), {}) for row in zip(*known, strict=False)))


def filtering(*, kept: bool) -> Function:
    """`filter` keeps what a function says yes to, `filterfalse` the rest."""

    def called(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
        values = values_of(machine, one_by_one(machine, args[1])) if len(args) > 1 else None
        return UNKNOWN if values is None else lazily(machine, _kept(machine, args[0], values, kept=kept))

    return called


def _kept(machine: "Machine", func: Any, values: Iterator[Any], *, kept: bool) -> Iterator[Any]:
    for each in values:
        truth = machine.truth(each if func is None else machine.call(func, [each], {}))
        if truth is None:
            raise NotKnownError
        if truth is kept:
            yield each


def lazily(machine: "Machine", values: Iterator[Any]) -> Any:
    """What gives some values as far as it is asked; all of them where nothing is left for later."""
    if not (machine.loading or machine.quiet):
        return Generator(machine, ((each, False) for each in values))
    try:
        return list(values)
    except NotKnownError:
        return UNKNOWN


def _next(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    value = hard(args[0]) if args else UNKNOWN
    told = machine.special(value, "__next__")
    if told is not MISSING:
        return told
    if isinstance(value, Generator):
        return value.next(machine, args[1:])
    if isinstance(value, Stream) and value:
        return value[0] if machine.forks else value.pop(0)
    if isinstance(value, Endless):
        return next(value.values)
    values = machine.items_of(value)
    if values is None and isinstance(value, Numbered):
        return turn_of(value)
    if values:
        return values[0]
    if values is not None and len(args) == 1:
        raise Raised("StopIteration", "")
    return UNKNOWN if values is None else args[1]


def _called_until(machine: "Machine", func: Any, last: Any) -> Any:
    """`iter(func, last)`: what a function gives, until it gives the last."""
    values: list[Any] = []
    while len(values) < _MOST_ROWS:
        value = machine.call(func, [], {})
        is_last = machine.same(hard(value), hard(last))
        if is_last is not False:
            return Stream(values) if is_last else UNKNOWN
        values.append(value)
    return UNKNOWN


def _iter(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    if len(args) > 1:
        return _called_until(machine, args[0], args[1])
    made = one_by_one(machine, args[0]) if args else UNKNOWN
    if isinstance(made, Generator):
        return made
    made = machine.special(hard(args[0]), "__iter__") if args else MISSING
    if isinstance(made, Inst):
        return made
    values = machine.items_of(args[0]) if args else None
    if values is None:
        return args[0] if args else UNKNOWN
    return args[0] if isinstance(args[0], Stream) else Stream(values)


ITERATING: Final[dict[str, Function]] = {
    "enumerate": _enumerate, "zip": _zip, "map": _map, "filter": filtering(kept=True), "next": _next, "iter": _iter,
}  # fmt: skip
