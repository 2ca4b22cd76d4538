"""`itertools`: what it makes of values that are known, and of what has no end (`count`, `cycle`, `repeat`)."""

from collections.abc import Callable, Iterator
from itertools import (
    chain,
    combinations,
    combinations_with_replacement,
    compress,
    count,
    cycle,
    groupby,
    islice,
    pairwise,
    permutations,
    product,
    repeat,
    zip_longest,
)
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.comparisons import HOST_ERRORS
from sooner.plan.needs.evaluator.counted import uncounted
from sooner.plan.needs.evaluator.generators import one_by_one
from sooner.plan.needs.evaluator.lazy_values import Endless, Generator, NotKnownError, Turn
from sooner.plan.needs.evaluator.values import UNKNOWN, Args, Ext, Function, Kwargs, Stream, hard, is_plain
from sooner.plan.needs.python.iterating import filtering, lazily, values_of

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_MOST: Final = 4096
"""Values that are made; of what would be more nothing is known."""


def _combining(combine: Callable[..., Any]) -> Function:
    def called(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
        columns = [uncounted(each) if isinstance(each, int) else machine.items_of(each) for each in args]
        if None in columns:
            return UNKNOWN
        names = {key: hard(each) for key, each in kwargs.items()}
        if any(isinstance(each, int) and each > _MOST for each in names.values()):
            return UNKNOWN
        try:
            made = list(islice(combine(*columns, **names), _MOST + 2))
        except HOST_ERRORS:
            return UNKNOWN
        return UNKNOWN if len(made) > _MOST + 1 else made

    return called


def _product(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`product`; of what is not known it takes one for all."""
    made = _PRODUCT(machine, args, kwargs)
    columns = [machine.items_of(each) for each in args]
    if made is not UNKNOWN or kwargs or not any(columns):
        return made
    rows = list(islice(product(*([UNKNOWN] if each is None else each for each in columns)), _MOST + 1))
    return UNKNOWN if len(rows) > _MOST else Turn(rows)


_PRODUCT: Final = _combining(product)


def _sliced(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`islice`, of what has no end as well."""
    endless = one_by_one(machine, args[0]) if args else None
    if isinstance(endless, Generator):
        bounds = [uncounted(hard(each)) for each in args[1:]]
        known = all(each is None or isinstance(each, int) for each in bounds)
        return Generator(machine, islice(endless.turns(machine), *bounds)) if known and bounds else UNKNOWN
    endless = hard(endless)
    if isinstance(endless, Turn):
        return endless
    if not isinstance(endless, Endless):
        return _ISLICE(machine, args, kwargs)
    bounds = [uncounted(hard(each)) for each in args[1:]]
    most = bounds[0] if len(bounds) == 1 else bounds[1] if len(bounds) > 1 else None
    if most is None or not all(each is None or (isinstance(each, int) and each <= _MOST) for each in bounds):
        return UNKNOWN
    try:
        return list(islice(endless.values, *bounds))
    except HOST_ERRORS:
        return UNKNOWN


_ISLICE: Final = _combining(islice)


def _counting(_machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`count(start, step)`."""
    start = uncounted(hard(args[0] if args else kwargs.get("start", 0)))
    step = uncounted(hard(args[1] if len(args) > 1 else kwargs.get("step", 1)))
    return Endless(count(start, step)) if isinstance(start, int) and isinstance(step, int) else UNKNOWN


def _cycling(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    values = machine.items_of(args[0]) if args else None
    return Endless(cycle(values)) if values else UNKNOWN


def _repeated(_machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    if len(args) == 1 and not kwargs:
        return Endless(repeat(args[0]))
    times = uncounted(hard(args[1] if len(args) > 1 else kwargs.get("times")))
    return [args[0]] * times if args and isinstance(times, int) and 0 <= times <= _MOST else UNKNOWN


def _while(*, taken: bool) -> Function:
    """`takewhile` or `dropwhile`."""

    def called(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
        source = one_by_one(machine, args[1]) if len(args) > 1 else UNKNOWN
        if isinstance(source, Generator) and taken:
            return lazily(machine, _while_true(machine, args[0], source.values(machine)))
        source = hard(source)
        endless = source.values if isinstance(source, Endless) and taken else None
        values = list(islice(endless, _MOST)) if endless is not None else machine.items_of(source)
        if values is None:
            return UNKNOWN
        for place, each in enumerate(values):
            truth = machine.truth(machine.call(args[0], [each], {}))
            if truth is None:
                return UNKNOWN
            if not truth:
                return values[:place] if taken else values[place:]
        return UNKNOWN if endless is not None else values if taken else []

    return called


def _while_true(machine: "Machine", func: Any, values: Iterator[Any]) -> Iterator[Any]:
    for each in values:
        truth = machine.truth(machine.call(func, [each], {}))
        if truth is None:
            raise NotKnownError
        if not truth:
            return
        yield each


def _chained(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`chain`; of generators no more is asked than of it."""
    sources = [one_by_one(machine, each) for each in args]
    if not any(isinstance(each, Generator) for each in sources):
        return _CHAIN(machine, args, kwargs)
    return lazily(machine, _one_after_the_other(machine, sources))


def _one_after_the_other(machine: "Machine", sources: list[Any]) -> Iterator[Any]:
    for each in sources:
        values = values_of(machine, each)
        if values is None:
            raise NotKnownError
        yield from values


_CHAIN: Final = _combining(chain)


def _starmap(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    rows = machine.items_of(args[1]) if len(args) > 1 else None
    given = [machine.items_of(row) for row in rows or []]
    if rows is None or None in given:
        return UNKNOWN
    return [machine.call(args[0], each or [], {}) for each in given]


def _accumulated(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    values = machine.items_of(args[0]) if args else None
    if values is None or "initial" in kwargs:
        return UNKNOWN
    function = args[1] if len(args) > 1 else kwargs.get("func", Ext("operator.add"))
    found = values[:1]
    for each in values[1:]:
        found.append(machine.call(function, [found[-1], each], {}))
    return found


def _grouped(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`groupby`: each key, and the values one after the other that have it."""
    values = machine.items_of(args[0]) if args else None
    key = args[1] if len(args) > 1 else kwargs.get("key")
    if values is None:
        return UNKNOWN
    keys = [hard(each if hard(key) is None else machine.call(key, [each], {})) for each in values]
    if not is_plain(keys):
        return UNKNOWN
    groups = groupby(zip(keys, values, strict=True), key=lambda pair: pair[0])
    return [(key, [value for _, value in group]) for key, group in groups]


def _split_into(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`tee`: iterators that each give all of it."""
    values = machine.items_of(args[0]) if args else None
    times = uncounted(hard(args[1] if len(args) > 1 else kwargs.get("n", 2)))
    if values is None or not isinstance(times, int) or not 0 <= times <= _MOST:
        return UNKNOWN
    return tuple(Stream(values) for _ in range(times))


ITERATORS: Final[dict[str, Function]] = {
    "itertools.product": _product, "itertools.chain": _chained,
    "itertools.chain.from_iterable": _combining(chain.from_iterable),
    "itertools.zip_longest": _combining(zip_longest), "itertools.islice": _sliced,
    "itertools.pairwise": _combining(pairwise), "itertools.repeat": _repeated, "itertools.starmap": _starmap,
    "itertools.takewhile": _while(taken=True), "itertools.dropwhile": _while(taken=False),
    "itertools.accumulate": _accumulated, "itertools.filterfalse": filtering(kept=False),
    "itertools.permutations": _combining(permutations), "itertools.combinations": _combining(combinations),
    "itertools.combinations_with_replacement": _combining(combinations_with_replacement),
    "itertools.compress": _combining(compress), "itertools.groupby": _grouped, "itertools.tee": _split_into,
    "itertools.count": _counting, "itertools.cycle": _cycling,
}  # fmt: skip
