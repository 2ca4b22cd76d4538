"""Faithfulness: real suites under plain pytest and under the door must tell the same story.

Downloads sdists with tests into `bench/.cache/`, makes an environment for each, and runs `pytest` and
`pytest --gpus=virtual:2` alternately. Compared are the ids, outcomes, messages and captured output of all reports and
all cases of the JUnit file. What differs between two runs of plain pytest is the suite's own noise, what differs where
plain pytest runs the tests backwards depends on their order: both are counted and left out. Addresses, times and
temporary folders are made equal first.
"""

import argparse
import hashlib
import json
import math
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

from figures import machine, save, table
from peers import BENCH, CACHE, environment

HERE: Final = CACHE / "faithfulness"
LIMIT_S: Final = 600
ROUNDS: Final = 2
SHOWN: Final = 20

PLUGIN: Final = """\
import json, os

def pytest_collection_modifyitems(items):
    if "FAITHFUL_BACKWARDS" in os.environ:
        items.reverse()

def pytest_runtest_logreport(report):
    facts = {
        "nodeid": report.nodeid, "when": report.when, "outcome": report.outcome,
        "wasxfail": getattr(report, "wasxfail", None), "sections": report.sections, "location": report.location,
        "message": report.longreprtext, "properties": report.user_properties, "keywords": sorted(report.keywords),
    }
    with open(os.environ["FAITHFUL_REPORTS"], "a", encoding="utf-8", errors="backslashreplace") as file:
        file.write(json.dumps(facts, default=repr) + "\\n")
"""
"""Writes down every report that reaches the reporting hooks; turns the order round."""

NOISE: Final = (
    (re.compile(r"0x[0-9a-fA-F]+"), "0x"),
    (re.compile(r"pytest-of-\w+/pytest-\d+"), "pytest-of/pytest"),
    (re.compile(r"/tmp/[\w./-]+"), "/tmp/x"),
    (re.compile(r"\b\d+\.\d+ ?(s|ms|sec|seconds)\b"), "1 s"),
    (re.compile(r"\d{4}-\d\d-\d\d|\d\d-\d\d-\d{4}"), "today"),
    (re.compile(r"\d\d:\d\d:\d\d([.,]\d+)?"), "now"),
)


@dataclass(frozen=True, slots=True)
class Project:
    """A project whose sdist holds its tests."""

    name: str
    version: str
    needs: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


PROJECTS: Final = (
    Project("attrs", "26.1.0", ("hypothesis", "cloudpickle")),
    Project("blinker", "1.9.0", ("pytest-asyncio",)),
    Project("boltons", "26.2.0"),
    Project("cachetools", "8.0.1"),
    Project("click", "8.5.1"),
    Project("flask", "3.1.3", ("python-dotenv", "asgiref"), ("tests", "--ignore=tests/test_cli.py")),
    Project("h11", "0.16.0"),
    Project("humanize", "4.17.0", ("freezegun",)),
    Project("idna", "3.20", ("hypothesis",)),
    Project("itsdangerous", "2.2.0", ("freezegun",)),
    Project("jinja2", "3.1.6", ("trio",)),
    Project("markupsafe", "3.0.4"),
    Project("marshmallow", "4.4.0", ("simplejson",)),
    Project("more-itertools", "11.2.1"),
    Project("natsort", "8.4.0", ("hypothesis", "pytest-mock", "setuptools"), ("tests",)),
    Project("packaging", "26.3", ("pretend", "hypothesis", "tomli-w")),
    Project("pluggy", "1.7.0", (), ("testing", "--ignore=testing/benchmark.py")),
    Project("pyparsing", "3.3.3", ("railroad-diagrams", "jinja2"), ("tests",)),
    Project("pytest-mock", "3.17.0", ("pytest-asyncio",), ("tests",)),
    Project("python-dateutil", "4.0.0", ("freezegun", "hypothesis", "pytz", "tzdata")),
    Project("sqlparse", "0.6.1"),
    Project("structlog", "26.1.0", ("freezegun", "simplejson", "pretend", "pytest-asyncio", "time-machine")),
    Project("tenacity", "9.2.1", ("typeguard", "tornado", "pytest-asyncio", "trio")),
    Project("tomlkit", "0.15.2", ("pyyaml",)),
    Project("toolz", "1.2.0"),
    Project("wsproto", "1.3.2"),
    Project("xmltodict", "1.0.4"),
)


@dataclass(frozen=True, slots=True)
class Told:
    """What one run told about its tests."""

    code: int
    wall_s: float
    summary: str
    reports: Mapping[str, Any]
    cases: Mapping[str, Any]


@dataclass(slots=True)
class Compared:
    """A project's runs side by side."""

    tests: int = 0
    outcomes: str = ""
    plain_s: float = math.nan
    door_s: float = math.nan
    unstable: int = 0
    ordered: int = 0
    differences: list[str] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", metavar="NAME", action="append", help="this project (may be given several times)")
    parser.add_argument("--gpus", default="virtual:2", help="devices of the door (default virtual:2)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"runs of each kind (default {ROUNDS})")
    parser.add_argument("--option", action="append", default=[], help="one more option for the door's runs")
    arguments = parser.parse_args()
    chosen = [one for one in PROJECTS if not arguments.only or one.name in arguments.only]
    results: dict[str, Compared] = {}
    for project in chosen:
        sys.stderr.write(f"faithfulness: {project.name} {project.version}\n")
        if not ready(project):
            continue
        try:
            results[project.name] = compare(project, (f"--gpus={arguments.gpus}", *arguments.option), arguments.rounds)
        except subprocess.TimeoutExpired as error:
            results[project.name] = Compared(differences=[f"{shlex.join(error.cmd)} took longer than {LIMIT_S} s"])
        show_differences(project.name, results[project.name])
    show(results)
    wrong = sum(len(one.differences) for one in results.values())
    print(f"\n{len(results)} projects, {wrong} differences")
    print(
        save("faithfulness", {"machine": machine(), "projects": {name: _facts(one) for name, one in results.items()}})
    )
    return int(wrong > 0)


def _facts(one: Compared) -> dict[str, Any]:
    figures = {"tests": one.tests, "plain_s": one.plain_s, "door_s": one.door_s, "unstable": one.unstable}
    figures["ordered"] = one.ordered
    return {**figures, "outcomes": one.outcomes, "differences": one.differences}


def folder_of(project: Project) -> Path:
    return HERE / f"{project.name}-{project.version}"


def ready(project: Project) -> bool:
    """Make the project's sources and environment, once; says whether it could."""
    folder = folder_of(project)
    wanted = hashlib.sha256(repr(project).encode()).hexdigest()
    stamp = folder / "complete"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return True
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        _prepare(project, folder)
    except (OSError, StopIteration, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", "") or "")[-800:]
        sys.stderr.write(f"faithfulness: {project.name} is left out: {error} {said}\n")
        return False
    stamp.write_text(wanted, encoding="utf-8")
    return True


def _prepare(project: Project, folder: Path) -> None:
    venv.create(folder / "venv", with_pip=True)
    pip = [str(folder / "venv/bin/python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]

    def call(*arguments: str) -> None:
        subprocess.run([*pip, *arguments], check=True, capture_output=True, text=True, timeout=LIMIT_S)

    what = f"{project.name}=={project.version}"
    call("download", "--no-deps", "--no-binary", project.name, "--dest", str(folder), what)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    call("install", "pytest", "--editable", str(BENCH.parent), str(source_of(folder)), *project.needs)


def configure(source: Path) -> None:
    """Keep a project without a configuration of its own from finding this checkout's in a folder above."""
    sections = {
        "pyproject.toml": "[tool.pytest",
        "tox.ini": "[pytest]",
        "setup.cfg": "[tool:pytest]",
        "pytest.ini": "",
        ".pytest.ini": "",
        "pytest.toml": "",
        ".pytest.toml": "",
    }
    files = {name: source / name for name in sections}
    if not any(path.exists() and sections[name] in path.read_text(encoding="utf-8") for name, path in files.items()):
        files["pytest.ini"].write_text("[pytest]\n", encoding="utf-8")


def source_of(folder: Path) -> Path:
    return next(path for path in (folder / "unpacked").iterdir() if path.is_dir())


def run(project: Project, options: Sequence[str], **extra: str) -> Told:
    """Run the suite once in the project's environment, with `extra` environment variables."""
    folder = folder_of(project)
    configure(source_of(folder))
    reports, junit = folder / "reports.jsonl", folder / "junit.xml"
    for path in (reports, junit):
        path.unlink(missing_ok=True)
    (folder / "plugin").mkdir(exist_ok=True)
    (folder / "plugin/faithful_dump.py").write_text(PLUGIN, encoding="utf-8")
    command = [str(folder / "venv/bin/python"), "-m", "pytest", "-p", "faithful_dump", "-p", "no:cacheprovider"]
    command += [f"--junitxml={junit}", "-o", "junit_logging=all", "-o", "junit_family=xunit2", *project.options]
    began = time.perf_counter()
    done = subprocess.run(
        [*command, *options],
        cwd=source_of(folder),
        env={**environment(), "PYTHONPATH": str(folder / "plugin"), "FAITHFUL_REPORTS": str(reports), **extra},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=LIMIT_S,
        check=False,
    )
    wall = time.perf_counter() - began
    (folder / f"{'door' if options else 'plain'}.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    last = (done.stdout.strip().splitlines() or [""])[-1]
    return Told(done.returncode, wall, _summary(last), _reports(reports), _cases(junit))


def _summary(line: str) -> str:
    """The counts of pytest's last line, without its time."""
    return ", ".join(re.findall(r"\b\d+ (?:passed|failed|skipped|xfailed|xpassed|errors?|warnings?|deselected)", line))


def quiet(value: Any) -> Any:
    """The same value with what differs from run to run made equal."""
    text = json.dumps(value, sort_keys=True, default=repr)
    for pattern, instead in NOISE:
        text = pattern.sub(instead, text)
    return json.loads(text)


def _reports(path: Path) -> dict[str, Any]:
    found: dict[str, list[Any]] = {}
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for facts in map(json.loads, lines):
        found.setdefault(quiet(facts.pop("nodeid")), []).append(quiet(facts))
    return found


def _cases(path: Path) -> dict[str, Any]:
    """All cases of a JUnit file by class and name: each with its children's tags, attributes and texts."""
    found: dict[str, list[Any]] = {}
    root = ET.parse(path).getroot() if path.exists() else ET.Element("none")
    for case in root.iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        children = [[child.tag, dict(child.attrib), child.text or ""] for child in case.iter() if child is not case]
        found.setdefault(quiet(name), []).append(quiet(children))
    return found


def compare(project: Project, options: Sequence[str], rounds: int) -> Compared:
    """Run both ways alternately; differences of the door's runs from plain pytest's first."""
    plain, door = [], []
    for _ in range(rounds):
        plain.append(run(project, ()))
        door.append(run(project, options))
    first = plain[0]
    noise = {place for other in plain[1:] for place, _ in differences(first, other)}
    ordered = {place for place, _ in differences(first, run(project, (), FAITHFUL_BACKWARDS="1"))} - noise
    found = Compared(
        tests=len(first.reports),
        outcomes=first.summary,
        plain_s=min(one.wall_s for one in plain),
        door_s=min(one.wall_s for one in door),
        unstable=len(noise),
        ordered=len(ordered),
    )
    for number, other in enumerate(door):
        new = [(place, text) for place, text in differences(first, other) if place not in noise | ordered]
        found.differences += [f"run {number + 1}: {place}: {text}" for place, text in new]
    return found


def differences(one: Told, other: Told) -> Iterator[tuple[str, str]]:
    """Where two runs differ, and how."""
    if one.code != other.code:
        yield "exit code", f"{one.code} expected, {other.code} got"
    if one.summary != other.summary:
        yield "summary", f"{one.summary!r} expected, {other.summary!r} got"
    for kind, first, second in (("report", one.reports, other.reports), ("junit", one.cases, other.cases)):
        for name in sorted(first.keys() | second.keys()):
            if first.get(name) != second.get(name):
                yield f"{kind} {name}", _how(first.get(name), second.get(name))


def _how(expected: Any, got: Any) -> str:
    """The first place at which two JSON values differ."""
    if isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        pairs: list[tuple[Any, Any, Any]] = [(i, a, b) for i, (a, b) in enumerate(zip(expected, got, strict=True))]
    elif isinstance(expected, dict) and isinstance(got, dict):
        pairs = [(key, expected.get(key), got.get(key)) for key in expected.keys() | got.keys()]
    else:
        return f"{_short(expected)} expected, {_short(got)} got"
    place, first, second = next((place, a, b) for place, a, b in pairs if a != b)
    return f"[{place}] {_how(first, second)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 400 else f"{text[:200]} ... {text[-200:]}"


def show_differences(name: str, one: Compared) -> None:
    for text in one.differences[:SHOWN]:
        print(f"{name}: {text}")
    if len(one.differences) > SHOWN:
        print(f"{name}: and {len(one.differences) - SHOWN} more")


def show(results: Mapping[str, Compared]) -> None:
    rows = [
        [
            name,
            one.tests,
            one.outcomes,
            len(one.differences),
            one.unstable,
            one.ordered,
            f"{one.plain_s:.1f}",
            f"{one.door_s:.1f}",
            f"{one.plain_s / one.door_s:.2f}",
        ]
        for name, one in results.items()
    ]
    print(table(["project", "tests", "outcomes", "differences", "noise", "order", "plain, s", "door, s", "x"], rows))


if __name__ == "__main__":
    sys.exit(main())
