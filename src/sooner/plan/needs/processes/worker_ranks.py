"""Workers, evaluated as the rank that each of them is.

The last one is looked at first: it uses the device with the highest number. Where it asks which of them it is, others
may do other things, and each is looked at; how many devices they use together is counted then.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.counted import uncounted
from sooner.plan.needs.evaluator.state import LIBRARY_FUEL
from sooner.plan.needs.evaluator.trace import OF_ANY, OF_FIRST
from sooner.plan.needs.evaluator.values import UNKNOWN, Func, Native, Raised, Skip, hard, is_plain
from sooner.plan.needs.frameworks.masks import only_seen
from sooner.plan.needs.frameworks.unseen import methods_called
from sooner.plan.needs.testing.replacing import OF_RANKS, Untold

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_TELLING: Final = frozenset(("put", "put_nowait", "send", "send_bytes", "set", "set_result", "wait"))
"""Methods of queues, pipes, events, futures and barriers."""
_MOST_OTHERS: Final = 8
"""Of more ranks, those in the middle are not looked at."""


def allow_for_one(machine: "Machine") -> None:
    """The library under test may cost each process something: what one has spent is not missing to the next."""
    machine.library_fuel = max(machine.library_fuel, LIBRARY_FUEL)


def as_rank(machine: "Machine", args: list[Any]) -> Any:
    """From here on the process is a rank among others, and its environment says so."""
    rank, world = uncounted(hard(args[0])), uncounted(hard(args[1]))
    known = isinstance(rank, int) and isinstance(world, int)
    machine.rank = (rank, world) if known else None
    allow_for_one(machine)
    values = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world}
    machine.environment |= {key: str(value) if known else UNKNOWN for key, value in values.items()}


def as_member(machine: "Machine", args: list[Any]) -> Any:
    """As `as_rank`, of a process that no launcher has started."""
    told = _told(machine)
    as_rank(machine, args)
    _untell(machine, told)


def in_started_ranks(machine: "Machine", args: list[Any]) -> Any:
    """As `in_ranks`, of workers that no launcher has started."""
    told = _told(machine)

    def work(given: list[Any], _kwargs: Any) -> Any:
        _untell(machine, told)
        return machine.call(args[1], given, {})

    in_ranks(machine, [args[0], Native("worker", work)])


def _told(machine: "Machine") -> frozenset[str]:
    return frozenset(name for name, value in machine.environment.items() if not isinstance(value, Untold))


def _untell(machine: "Machine", told: frozenset[str]) -> None:
    others = {name: machine.environment[name] for name in OF_RANKS if name not in told}
    machine.environment |= {name: Untold(value) for name, value in others.items() if isinstance(value, str)}


def in_ranks(machine: "Machine", args: list[Any]) -> Any:
    """Call a function with the number of a worker, as that worker: as the last of so many, and as those that differ."""
    with only_seen(machine):
        _work_as_ranks(machine, uncounted(hard(args[0])), args[1])


def in_own_ranks(machine: "Machine", args: list[Any]) -> Any:
    """Call a function with the number of a worker, as that worker; where one uses a device, each has its own.

    Ranks that say themselves how they meet, and not by NCCL, may share one; so may those that ask which they are.
    """
    trace = machine.trace
    had = trace.all_used
    try:
        in_ranks(machine, args)
    finally:
        if trace.all_used != had and _has_each_its_own(machine):
            count = hard(args[0])
            if isinstance(count, int):
                machine.need(count, "each rank has a device")


def _has_each_its_own(machine: "Machine") -> bool:
    backends = machine.trace.backends
    return "nccl" in backends or not (machine.rank_is_asked_for or backends == {"gloo"})


def _work_as_ranks(machine: "Machine", count: Any, work: Any) -> None:
    """Evaluate workers: what they use is used by the test.

    Raises:
        Skip: Each of those that were looked at skips.
        Raised: One fails.
    """
    if not isinstance(count, int) or count < 1:
        return
    machine.rank_is_asked_for, skips = 0, []
    enough = machine.fuel // 3
    with _gathering(machine, count) as seen:
        for number in (count - 1, *([0] if count > 1 else []), *range(min(count - 2, _MOST_OTHERS), 0, -1)):
            if seen and (machine.fuel < enough or not _may_differ(machine, count, seen, number)):
                break
            as_rank(machine, [number, count])
            machine.current_device = 0
            try:
                seen[number] = _work_as(machine, number, work)
            except Skip as skip:
                seen[number] = set()
                skips.append(skip)
                if not machine.rank_is_asked_for:
                    break
    as_rank(machine, [count - 1, count])
    if len(skips) == len(seen):
        raise skips[0]


def _work_as(machine: "Machine", number: int, work: Any) -> set[int]:
    """What one worker uses; a device that it only chooses is used where it uses no other."""
    trace = machine.trace
    before, trace.of_ranks = trace.of_ranks, set()
    outer, trace.chosen = trace.chosen, set()
    try:
        machine.call(work, [number], {})
    finally:
        found = trace.of_ranks or trace.chosen
        trace.of_ranks, trace.chosen = before | found, outer
    return found


def _may_differ(machine: "Machine", count: int, seen: dict[int, set[int]], number: int) -> bool:
    """Whether a rank may do other things than the last one; so may all, where that uses other devices than its own."""
    if machine.trace.of_ranks - {0, count - 1}:
        return True
    if number == 0:
        return machine.rank_is_asked_for > 0
    return machine.rank_is_asked_for == OF_ANY and not _are_alike(machine, count, seen)


def _are_alike(machine: "Machine", count: int, seen: dict[int, set[int]]) -> bool:
    """Whether the last rank and the first use the devices of their numbers, or all are used anyway."""
    return machine.trace.used >= count or (seen.get(count - 1), seen.get(0)) == ({count - 1}, {0})


def on_its_own(machine: "Machine", args: list[Any]) -> int:
    """What a process or a thread does; gives its exit code. Of its failure nobody hears who does not ask for that.

    Raises:
        Raised: It fails, and may say so to the test: it shares more with it than numbers and texts.
    """
    work, target, given = args
    try:
        machine.call(work, [], {})
    except Raised as stop:
        code = 1 if stop.kind != "SystemExit" else 0 if stop.value is None else stop.value
        if code != 0 and (code != 1 or not is_plain(given) or _may_tell(target)):
            raise
        machine.trace.is_unheard |= code != 0
        return int(code)
    return 0


def _may_tell(target: Any) -> bool:
    """Whether the test may wait for something of a worker: it puts or sends some, or is more than a function."""
    return not isinstance(target, Func) or not _TELLING.isdisjoint(methods_called(target.node))


def heard(machine: "Machine", args: list[Any]) -> Any:
    """The exit code of a process: somebody asks for it."""
    machine.trace.is_told |= machine.trace.is_unheard
    machine.trace.is_unheard = False
    return args[0]


@contextmanager
def _gathering(machine: "Machine", count: int) -> Iterator[dict[int, set[int]]]:
    """What ranks use is gathered, and at their end is used by the test; gives a dict for what each of them uses."""
    trace, seen, device = machine.trace, dict[int, set[int]](), machine.current_device
    outer, trace.of_ranks, is_within, machine.is_gathering = trace.of_ranks, set(), machine.is_gathering, True
    try:
        yield seen
    finally:
        found, trace.of_ranks = trace.of_ranks, outer
        machine.is_gathering, machine.current_device = is_within, device
        if is_within:
            trace.of_ranks |= found
        elif len(seen) == count or (
            len(seen) > 1 and (machine.rank_is_asked_for == OF_FIRST or _are_alike(machine, count, seen))
        ):
            is_own = seen.get(count - 1) == {count - 1}
            trace.touched |= found | (set(range(1, count)) if is_own and len(seen) < count else set())
        elif found:
            trace.used = max(trace.used, min(count, max(found) + 1))
