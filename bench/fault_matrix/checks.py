"""What must hold after a case, whatever happened in it."""

import fcntl
import os
import signal
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from fault_matrix.cases import Fault, Unit
from fault_matrix.runners import Place, Reading, Runner, leases_of

CODES: Final = {
    "V": "not exactly one verdict for each planned unit",
    "X": "no valid JUnit file that holds every unit",
    "O": "orphans: processes of the case were alive at its end",
    "L": "a lease, slot or device was not given back, or was held by two units",
    "N": "a healthy neighbour did not pass",
    "W": "the wrong verdict for the faulty unit",
    "E": "an exit code that misleads",
    "hang": "the runner did not end by itself",
    "?": "the fault could not be brought about",
}


class Problem(NamedTuple):
    """One thing that does not hold."""

    code: str
    detail: str


def survivors(marker: str) -> dict[int, str]:
    """Living processes that carry the marker in their arguments or their environment: pid and command."""
    mark, found = marker.encode(), {}
    for name in (entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        arguments = _proc(name, "cmdline")
        if int(name) != os.getpid() and (mark in arguments or mark in _proc(name, "environ")):
            found[int(name)] = arguments.replace(b"\0", b" ").decode(errors="replace")[:120]
    return found


def _proc(pid: str, file: str) -> bytes:
    try:
        return Path("/proc", pid, file).read_bytes()
    except OSError:
        return b""


def end_survivors(marker: str) -> None:
    """SIGKILL until nothing of the case is left."""
    for _ in range(200):
        left = survivors(marker)
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.02)


def problems(fault: Fault, runner: Runner, place: Place, code: int | None, *, claims: Path) -> list[Problem]:
    """Everything that does not hold now; `code` is the runner's exit code, None if it had to be killed."""
    reading = runner.read(place)
    outcomes = dict(reading.verdicts)
    found = [
        *_verdicts(place.units, reading.verdicts),
        *(_junit(place.units, reading) if runner.has_junit else ()),
        *(Problem("O", f"{pid}: {command}") for pid, command in survivors(place.marker).items()),
        *(Problem("L", f"lease of {path.name} is held") for path in _held(leases_of(place))),
        *(Problem("L", path.name) for path in claims.glob("overlap-*")),
        *_units(fault, place.units, outcomes, exact=runner.name == "sooner"),
    ]
    if code is not None:
        found += _exit_code(fault, runner, code, outcomes.values())
    return found


def _verdicts(units: Sequence[Unit], verdicts: Iterable[tuple[str, str]]) -> list[Problem]:
    counts = Counter(word for word, _ in verdicts)
    return [Problem("V", f"{unit.word}: {counts[unit.word]} verdicts") for unit in units if counts[unit.word] != 1]


def _junit(units: Sequence[Unit], reading: Reading) -> list[Problem]:
    if reading.junit_problem:
        return [Problem("X", reading.junit_problem)]
    return [Problem("X", f"JUnit lacks {unit.word}") for unit in units if unit.word not in reading.junit_words]


def _held(leases: Path) -> list[Path]:
    """The lock files that somebody still holds."""
    held = []
    for path in leases.glob("*.lock"):
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held.append(path)
    return held


def _units(fault: Fault, units: Sequence[Unit], outcomes: dict[str, str], *, exact: bool) -> list[Problem]:
    """Units whose verdict is wrong; one that has none at all is a matter of V."""
    found = []
    for unit in units:
        said = outcomes.get(unit.word)
        right = unit.expected if exact else {"passed" if word == "passed" else "failed" for word in unit.expected}
        if said is None or said in right:
            continue
        found.append(Problem(_code_of(unit, fault), f"{unit.word} is {said}, not {' or '.join(sorted(right))}"))
    return found


def _code_of(unit: Unit, fault: Fault) -> str:
    """A unit that needs all devices fails when one of them was not given back."""
    if unit not in fault.faulty:
        return "L" if unit.width > 1 else "N"
    return "W"


def _exit_code(fault: Fault, runner: Runner, code: int, outcomes: Iterable[str]) -> list[Problem]:
    if runner.name == "sooner":
        return [] if code in fault.codes else [Problem("E", f"exit code {code}, not {sorted(fault.codes)}")]
    fine = all(outcome == "passed" for outcome in outcomes) and not fault.hit
    return [] if (code == 0) == fine else [Problem("E", f"exit code {code}")]
