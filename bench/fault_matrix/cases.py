"""The faults: which units each has, what must be said of them, and what happens to the runner meanwhile."""

from collections.abc import Sequence
from typing import Final, NamedTuple

DEVICES: Final = 4
TIMEOUT_S: Final = 20.0
"""Limit of every unit that is not there to exceed its own."""
NEVER_ENDED: Final = frozenset({"worker_lost", "not_run"})
"""What may be said of a unit that was running or waiting when the runner was hit."""
STRANGE: Final = "faulty by\x1b[31mtes ]]> <&\"'é"


class Unit(NamedTuple):
    """One unit of a case."""

    name: str
    act: str
    expected: frozenset[str]
    """The outcomes that are right, in sooner's words; a peer must say `passed` or not accordingly."""
    width: int = 1
    timeout_s: float = TIMEOUT_S
    priority: int = 0
    junit: bool = False
    """Whether it declares a JUnit file of its own."""

    @property
    def word(self) -> str:
        """The part of the name that every report spells alike."""
        return self.name.split()[0]


class Fault(NamedTuple):
    """One row of the matrix."""

    name: str
    units: tuple[Unit, ...]
    hit: str = ""
    """What is hit in mid-run: `SIGINT`, `SIGTERM`, `SIGKILL` (of the runner), `guardian`, `warden`."""
    twice: bool = False
    """Two runners at once, on the same devices."""
    small_disk: bool = False
    codes: frozenset[int] = frozenset({0, 1})
    """Sensible exit codes of sooner; of a peer: 0 if and only if everything passed."""
    only: tuple[str, ...] = ()
    """The runners to which the fault applies; empty: all."""

    @property
    def faulty(self) -> tuple[Unit, ...]:
        """The units that are not neighbours."""
        return tuple(unit for unit in self.units if unit.act != "fine")


def _neighbours(count: int = 5, *, wide: bool = True, priority: int = 0) -> tuple[Unit, ...]:
    """Healthy units: more than devices are left, so that some start after the fault; the last needs all devices."""
    passed = frozenset({"passed"})
    narrow = tuple(Unit(f"neighbour_{i}", "fine", passed, priority=priority) for i in range(1, count + 1))
    return (*narrow, Unit("wide", "fine", passed, width=DEVICES, priority=-1)) if wide else narrow


def _one(
    name: str,
    act: str,
    *outcomes: str,
    unit: str = "faulty",
    timeout_s: float = TIMEOUT_S,
    junit: bool = False,
    small_disk: bool = False,
) -> Fault:
    """A fault of one unit among neighbours."""
    faulty = Unit(unit, act, frozenset(outcomes), timeout_s=timeout_s, junit=junit)
    codes = {0 if outcome == "passed" else 1 for outcome in outcomes}
    return Fault(name, (faulty, *_neighbours()), small_disk=small_disk, codes=frozenset(codes))


def _sleepers(count: int, *, priority: int) -> tuple[Unit, ...]:
    return tuple(
        Unit(f"sleeper_{i}", "sleep_long", NEVER_ENDED, timeout_s=120.0, priority=priority) for i in range(1, count + 1)
    )


def _hit(name: str, hit: str, codes: Sequence[int]) -> Fault:
    """Neighbours end, four sleepers run and two wait when the runner is hit."""
    units = (*_neighbours(4, wide=False, priority=1), *_sleepers(DEVICES + 2, priority=-1))
    return Fault(name, units, hit=hit, codes=frozenset(codes))


def _hit_part(name: str, hit: str, sleepers: int) -> Fault:
    """Sleepers run when a part of sooner's supervision is hit; everything else must pass."""
    lost = tuple(unit._replace(expected=frozenset({"worker_lost"})) for unit in _sleepers(sleepers, priority=1))
    return Fault(name, (*lost, *_neighbours()), hit=hit, codes=frozenset({11}), only=("sooner",))


def _claims() -> tuple[Unit, ...]:
    passed = frozenset({"passed"})
    narrow = tuple(Unit(f"claim_{i}", "claim", passed) for i in range(1, 9))
    return (*narrow, Unit("claim_wide", "claim", passed, width=2))


FAULTS: Final[tuple[Fault, ...]] = (
    _one("non-zero exit", "exit_3", "failed"),
    _one("segfault", "segfault", "crashed"),
    _one("os._exit(3)", "hard_exit_3", "failed"),
    _one("os._exit(0), JUnit declared", "hard_exit_0", "crashed", junit=True),
    _one("SIGKILL of the unit", "kill_itself", "crashed"),
    _one("host out of memory", "exhaust_memory", "out_of_memory"),
    _one("hang, ignores SIGTERM", "hang", "timed_out", timeout_s=1.0),
    _one("double-forked daemon", "leave_daemon", "passed"),
    _one("child holds stdout open", "hold_stdout", "passed"),
    _one("flood of output", "flood", "passed"),
    _one("ESC, non-UTF-8, odd names", "print_bytes", "failed", unit=STRANGE),
    _one("full disk", "fill_disk", "failed", "crashed", "passed", small_disk=True),
    _hit("SIGINT of the runner", "SIGINT", (2,)),
    _hit("SIGTERM of the runner", "SIGTERM", (2,)),
    _hit("SIGKILL of the runner", "SIGKILL", (-9,)),
    _hit_part("SIGKILL of the guardian", "guardian", DEVICES),
    _hit_part("SIGKILL of a warden", "warden", 1),
    Fault("two runners at once", _claims(), twice=True, codes=frozenset({0})),
)
