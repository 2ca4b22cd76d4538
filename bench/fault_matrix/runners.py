"""Who runs the cases: how each runner is started on the units of a case, and what it says of them afterwards.

sooner, CTest and GNU parallel start a process for each unit; pytest-isolate and pytest-xdist get the same acts as test
functions. Each is used as its documentation says for four devices, with the time limits that it offers.
"""

import json
import shlex
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import peers
from fault_matrix import acts
from fault_matrix.cases import DEVICES, TIMEOUT_S, Unit

_ACTS: Final = Path(acts.__file__)
_HANG_LIMIT_S: Final = 3
"""GNU parallel has one limit for all jobs: it is set only where a unit hangs."""


class Place(NamedTuple):
    """Where one runner works on one case."""

    folder: Path
    out: Path
    """Where its results and its temporary files go; on a small disk where the fault is a full one."""
    marker: str
    units: tuple[Unit, ...]


class Reading(NamedTuple):
    """What a runner's records say."""

    verdicts: tuple[tuple[str, str], ...] = ()
    """Word and outcome of every record, in the order of the file."""
    junit_words: tuple[str, ...] = ()
    """The units that its JUnit file holds."""
    junit_problem: str = ""


class Runner:
    """A runner; subclasses say how it is used."""

    name = ""
    version = ""
    has_gangs = True
    """Whether it can give several devices to one unit."""
    has_slots = True
    """Whether it tells units which device is theirs."""
    has_junit = True
    """Whether it writes a JUnit file."""

    def missing(self) -> bool:
        """Whether it cannot be had on this machine."""
        return False

    def units(self, units: tuple[Unit, ...]) -> tuple[Unit, ...]:
        """The units of a case that this runner can express."""
        return units if self.has_gangs else tuple(unit for unit in units if unit.width == 1)

    def command(self, place: Place) -> list[str]:
        """Lay out the case and say how it is run."""
        raise NotImplementedError

    def environment(self, place: Place) -> Mapping[str, str]:
        """What this runner needs in its environment."""
        del place
        return {}

    def read(self, place: Place) -> Reading:
        """Read its records, whatever state they are in."""
        raise NotImplementedError


def _unit_command(unit: Unit, place: Place) -> list[str]:
    return [sys.executable, "-I", "-S", str(_ACTS), unit.act, unit.name, place.marker]


class Sooner(Runner):
    """`sooner run`."""

    name = "sooner"

    def command(self, place: Place) -> list[str]:
        plan = place.folder / "plan.toml"
        plan.write_text("\n".join(self._entry(unit, place) for unit in place.units), encoding="utf-8")
        devices = f"virtual:{DEVICES}"
        return [*peers.SOONER, "run", str(plan), "--devices", devices, "--out", str(place.out / "run"), "--grace", "1"]

    @staticmethod
    def _entry(unit: Unit, place: Place) -> str:
        keys = {
            "name": unit.name,
            "command": _unit_command(unit, place),
            "devices": unit.width,
            "timeout_s": unit.timeout_s,
            "priority": unit.priority,
        }
        if unit.junit:
            keys["junit"] = f"{unit.word}.xml"
        return "[[unit]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())

    def environment(self, place: Place) -> Mapping[str, str]:
        return {"SOONER_LEASE_DIR": str(leases_of(place))}

    def read(self, place: Place) -> Reading:
        words, problem = _suites(place.out / "run" / "junit.xml")
        try:
            lines = (place.out / "run" / "results.jsonl").read_text(encoding="utf-8").splitlines()
            results = [json.loads(line) for line in lines]
        except (OSError, ValueError):
            results = []
        verdicts = tuple((result["unit"].split()[0], result["outcome"]) for result in results)
        return Reading(verdicts, words, problem)


def leases_of(place: Place) -> Path:
    """The lease folder of a case: two runners at once share it."""
    return place.folder.parent / "leases"


class CTest(Runner):
    """CTest with resource groups and its JUnit file."""

    name = "CTest"

    def __init__(self) -> None:
        program = peers.ctest()
        self._program = str(program)
        self.version = peers.version_of(program, "--version") if program else ""

    def missing(self) -> bool:
        return not self.version

    def command(self, place: Place) -> list[str]:
        slots = [{"id": str(i), "slots": 1} for i in range(DEVICES)]
        spec = {"version": {"major": 1, "minor": 0}, "local": [{"gpus": slots}]}
        (place.out / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
        tests = "".join(self._entry(unit, place) for unit in place.units)
        (place.out / "CTestTestfile.cmake").write_text(tests, encoding="utf-8")
        options = ["--resource-spec-file", "spec.json", f"-j{DEVICES}", "--output-junit", "junit.xml"]
        return [self._program, "--test-dir", str(place.out), *options]

    @staticmethod
    def _entry(unit: Unit, place: Place) -> str:
        name = f"[==[{unit.name}]==]"
        command = " ".join(f"[==[{part}]==]" for part in _unit_command(unit, place))
        properties = f'RESOURCE_GROUPS "{unit.width},gpus:1" TIMEOUT {unit.timeout_s:g} COST {10 + unit.priority}'
        return f"add_test({name} {command})\nset_tests_properties({name} PROPERTIES {properties})\n"

    def read(self, place: Place) -> Reading:
        return _cases(place.out / "junit.xml")


class GnuParallel(Runner):
    """GNU parallel: slots for devices, its job log for results; it knows no gangs and writes no JUnit."""

    name = "GNU parallel"
    has_gangs = False
    has_junit = False

    def __init__(self) -> None:
        program = peers.gnu_parallel()
        self._program = str(program)
        self.version = peers.version_of(program, "--version") if program else ""

    def missing(self) -> bool:
        return not self.version

    def command(self, place: Place) -> list[str]:
        jobs = place.folder / "jobs"
        jobs.write_text(
            "".join(f"{shlex.join(_unit_command(unit, place))}\n" for unit in place.units), encoding="utf-8"
        )
        hangs = any(unit.timeout_s < TIMEOUT_S for unit in place.units)
        limit = ["--timeout", str(_HANG_LIMIT_S)] if hangs else []
        files = ["--joblog", str(place.out / "joblog"), "--tmpdir", str(place.out)]
        return [self._program, "--will-cite", f"-j{DEVICES}", *files, *limit, "-a", str(jobs)]

    def environment(self, place: Place) -> Mapping[str, str]:
        return {"PARALLEL_HOME": str(place.folder)}

    def read(self, place: Place) -> Reading:
        try:
            lines = (place.out / "joblog").read_text(encoding="utf-8", errors="replace").splitlines()[1:]
        except OSError:
            return Reading()
        rows = [fields for line in lines if len(fields := line.split("\t")) >= 8 and fields[0].isdigit()]
        words = [unit.word for unit in place.units]
        return Reading(
            tuple((words[int(row[0]) - 1], "passed" if row[6:8] == ["0", "0"] else "failed") for row in rows)
        )


class PytestXdist(Runner):
    """pytest-xdist with one worker for each device; it knows no devices."""

    name = "pytest-xdist"
    has_gangs = False
    has_slots = False

    def __init__(self) -> None:
        self._python = self._find()
        packages = ("pytest", "pytest-xdist", *self._more_packages)
        self.version = peers.package_versions(self._python, *packages) if self._python else ""

    _more_packages: tuple[str, ...] = ()
    _more_options: tuple[str, ...] = ()

    @staticmethod
    def _find() -> Path | None:
        return peers.pytest_xdist()

    def missing(self) -> bool:
        return self._python is None

    def command(self, place: Place) -> list[str]:
        lines = ["import pytest", f"import sys; sys.path.insert(0, {str(_ACTS.parent)!r})", "from acts import act", ""]
        for unit in place.units:
            lines += self._entry(unit)
        (place.folder / "test_units.py").write_text("\n".join(lines), encoding="utf-8")
        (place.folder / "pytest.ini").write_text("[pytest]\n", encoding="ascii")
        junit = f"--junitxml={place.out / 'junit.xml'}"
        plain = ["-p", "no:cacheprovider", "-q", f"-n{DEVICES}", junit, *self._more_options, "test_units.py"]
        return [str(self._python), "-m", "pytest", *plain]

    def _entry(self, unit: Unit) -> list[str]:
        mark = f"@pytest.mark.parametrize('case', [0], ids=[{unit.name!r}])" if unit.name != unit.word else ""
        function = f"def test_{unit.word}({'case' if mark else ''}):"
        return [*filter(None, (mark, self._mark(unit))), function, f"    act({unit.act!r}, {unit.name!r})", ""]

    def _mark(self, unit: Unit) -> str:
        del unit
        return ""

    def read(self, place: Place) -> Reading:
        return _cases(place.out / "junit.xml")


class PytestIsolate(PytestXdist):
    """pytest-isolate under xdist: a fork for each test, devices from a pool in a file."""

    name = "pytest-isolate"
    has_gangs = True
    has_slots = True
    _more_packages = ("pytest-isolate",)
    _more_options = ("--isolate",)

    @staticmethod
    def _find() -> Path | None:
        return peers.pytest_isolate()

    def environment(self, place: Place) -> Mapping[str, str]:
        del place
        return {"CUDA_VISIBLE_DEVICES": ",".join(map(str, range(DEVICES)))}

    def _mark(self, unit: Unit) -> str:
        return f"@pytest.mark.isolate(timeout={unit.timeout_s:g}, resources={{'gpu': {unit.width}}})"


def _suites(path: Path) -> tuple[tuple[str, ...], str]:
    """The words of the test suites in a JUnit file, and why it cannot be read."""
    root, problem = _parsed(path)
    suites = () if root is None else root.iter("testsuite")
    return tuple((suite.get("name") or "?").split()[0].partition("|")[0] for suite in suites), problem


def _cases(path: Path) -> Reading:
    """Verdicts from the cases of a JUnit file."""
    root, problem = _parsed(path)
    verdicts = []
    for case in () if root is None else root.iter("testcase"):
        word = (case.get("name") or "?").removeprefix("test_").split()[0].partition("[")[0]
        bad = {"failure", "error", "skipped"} & {child.tag for child in case} or case.get("status") == "notrun"
        verdicts.append((word, "failed" if bad else "passed"))
    return Reading(tuple(verdicts), tuple(word for word, _ in verdicts), problem)


def _parsed(path: Path) -> tuple[ET.Element | None, str]:
    """Read with expat, which is strict: what it refuses, a CI system refuses."""
    try:
        return ET.parse(path).getroot(), ""
    except FileNotFoundError:
        return None, "no JUnit file"
    except (OSError, ET.ParseError) as error:
        return None, f"JUnit: {error}"
