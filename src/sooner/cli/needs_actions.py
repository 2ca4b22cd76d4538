"""Where GitHub Actions runs the tests: jobs, their matrices, the runners and commands of each row."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, product
from pathlib import Path
from typing import Any, Final, NamedTuple

from sooner.cli.needs_commands import Call, Named, named_in
from sooner.cli.needs_labels import devices_of_label, names_none
from sooner.cli.needs_parts import COUNT_KEYS, is_off, job_of, mappings_in, shown_to, yaml_of
from sooner.model.errors import SettingsError
from sooner.plan.needs.placement import Job

_OF_MATRIX: Final = re.compile(r"\$\{\{\s*matrix\.([\w.-]+)\s*\}\}")
_MOST_ROWS: Final = 512
"""GitHub makes 256 jobs of a matrix at most."""
_LABEL_KEYS: Final = ("runner", "runs-on", "runs_on", "os", "label", "labels")


class _Told(NamedTuple):
    """What a workflow or a job tells of all its commands."""

    most: int | None = None
    """How many devices its environment shows; None: all."""
    folder: str = ""
    """Where they are run."""


def of_actions(document: Mapping[str, Any], path: Path, notes: list[str]) -> list[Job]:
    """What the jobs of a workflow run.

    Args:
        document: The workflow.
        path: Its file.
        notes: Gets what of it could not be known.
    """
    everywhere = _told(document, _Told())
    jobs = document["jobs"].items()
    return [each for name, job in jobs for each in _of_action(str(name), job, path, notes, everywhere)]


def _of_action(name: str, job: Any, path: Path, notes: list[str], told: _Told) -> Iterator[Job]:
    """A job of GitHub Actions: once for each row of its matrix, with what its workflow tells of all its commands."""
    if not isinstance(job, dict):
        return
    if is_off(job):
        notes.append(f"{path}: job {name}: it is switched off (`if: {job['if']}`), and runs nothing")
        return
    notes.extend(f"{path}: job {name}: {each}" for each in _steps_off(job))
    told = _told(job, told)
    given = job["with"] if isinstance(job.get("with"), dict) else {}
    labels = job.get("runs-on", next((given[key] for key in _LABEL_KEYS if key in given), ""))
    label = " ".join(map(str, labels)) if isinstance(labels, list) else str(labels)
    doubts: dict[str, None] = {}
    try:
        tested = _test_matrix(given)
    except SettingsError:
        doubts["its test-matrix is no YAML before GitHub fills it"] = None
        tested = []
    for row in [*matrix_rows(job), *tested] or [{}]:
        named = _named_in(job, given, row, told)
        calls = [*named.calls, *_named_by(row, told.most, has_commands=bool(named.calls))]
        devices = _row_devices(row, filled(label, row))
        if "uses" in job and not calls and devices:
            doubts[f"its tests are those of {job['uses']}"] = None
        elif named.unknown and len(calls) == len(named.calls):
            doubts["its tests are computed: " + " ".join(named.unknown)] = None
        if calls and devices is None:
            doubts[f"the devices of its runner {label!r} are not known"] = None
        elif calls and devices is not None:
            if not devices and (own_label := _unsaid(filled(label, row), row)):
                doubts[f"its runner {own_label!r} names no devices, and is taken to have none"] = None
            yield from (job_of(name, devices, call) for call in calls)
    notes.extend(f"{path}: job {name}: {each}: say them in a placement.toml" for each in doubts)


def _steps_off(job: Mapping[str, Any]) -> Iterator[str]:
    """What to say of steps that would run tests if they were not switched off."""
    for step in mappings_in(job.get("steps")):
        if "run" in step and is_off(step) and named_in(str(step["run"])).calls:
            yield f"step {step.get('name', step['run'])}: it is switched off (`if: {step['if']}`), and runs nothing"


def _told(part: Mapping[str, Any], outer: _Told) -> _Told:
    own: Any = part
    for key in ("defaults", "run", "working-directory"):
        own = own.get(key) if isinstance(own, dict) else None
    return _Told(shown_to(part, outer.most), outer.folder if own is None else str(own))


def _named_by(row: Mapping[str, Any], most: int | None, *, has_commands: bool) -> list[Call]:
    """The tests that a row of a matrix names, or else the folder that its `config` does."""
    own = tuple(str(row[key]) for key in ("path", "paths", "tests", "test") if key in row)
    if own or has_commands or "config" not in row:
        return [Call(own, shown=most)] if own else []
    return [Call((f"*/{row['config']}/*",), shown=most)]


def _unsaid(label: str, row: Mapping[str, Any]) -> str:
    """A label of one's own that does not say whether its runner has devices; empty where it, or the row, does."""
    own = label or next((str(row[key]) for key in _LABEL_KEYS if key in row), "")
    return "" if names_none(own) or any(key in row for key in COUNT_KEYS) else own


def _named_in(job: Mapping[str, Any], given: Mapping[str, Any], row: Mapping[str, Any], told: _Told) -> Named:
    """The tests that a job's steps, and the scripts that it hands on, run with the values of one row."""
    scripts = [
        (step["run"], step.get("working-directory", told.folder), shown_to(step, told.most))
        for step in mappings_in(job.get("steps"))
        if "run" in step and not is_off(step)
    ]
    scripts += [(text, "", told.most) for text in given.values()]
    found = [named_in(filled(str(text), row), filled(str(folder), row), shown) for text, folder, shown in scripts]
    return Named([call for each in found for call in each.calls], [word for each in found for word in each.unknown])


def filled(text: str, row: Mapping[str, Any]) -> str:
    """Text with the values of a matrix's row in place of `${{ matrix.KEY }}`; what is not known stays."""

    def value(found: re.Match[str]) -> str:
        inner: Any = row
        for key in found[1].split("."):
            if not isinstance(inner, Mapping) or key not in inner:
                return found[0]
            inner = inner[key]
        return " ".join(map(str, inner)) if isinstance(inner, list) else str(inner)

    return _OF_MATRIX.sub(value, text)


def matrix_rows(job: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The rows of a job's matrix as GitHub makes them: all combinations, less `exclude`, with what `include` adds.

    Source: docs.github.com/en/actions/writing-workflows (running variations of jobs).
    """
    strategy = job.get("strategy")
    matrix = strategy.get("matrix") if isinstance(strategy, dict) else None
    if not isinstance(matrix, dict):
        return []
    axes = {key: each for key, each in matrix.items() if key not in ("include", "exclude") and isinstance(each, list)}
    made = islice(product(*axes.values()), _MOST_ROWS) if axes else []
    rows = [dict(zip(axes, values, strict=True)) for values in made]
    without = mappings_in(matrix.get("exclude"))
    rows = [row for row in rows if not any(_agrees(row, each, each) for each in without)]
    first = [dict(row) for row in rows]
    for more in mappings_in(matrix.get("include")):
        fitting = [i for i, row in enumerate(first) if _agrees(row, more, axes.keys() & more.keys())]
        for i in fitting:
            rows[i] |= more
        rows += [] if fitting else [dict(more)]
    return list(rows)


def _agrees(row: Mapping[str, Any], other: Mapping[str, Any], keys: Iterable[str]) -> bool:
    return all(key in row and row[key] == other[key] for key in keys)


def _test_matrix(given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The rows of a `test-matrix` string, in PyTorch's style."""
    text = given.get("test-matrix")
    if not isinstance(text, str) or text.lstrip().startswith("${{"):
        return []
    document = yaml_of(text, Path("test-matrix"))
    return mappings_in(document.get("include")) if isinstance(document, dict) else []


def _row_devices(row: Mapping[str, Any], label: str) -> int | None:
    """Devices by a number in the row, else by the label of `runs-on`, else by a label in the row."""
    for key in COUNT_KEYS:
        if str(row.get(key, "")).isdecimal():
            return int(row[key])
    if label and (devices := devices_of_label(label)) is not None:
        return devices
    for key in _LABEL_KEYS:
        if key in row:
            own = row[key]
            return devices_of_label(" ".join(map(str, own)) if isinstance(own, list) else str(own))
    return None
