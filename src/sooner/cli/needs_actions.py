"""Where GitHub Actions runs the tests: jobs, their matrices, the runners and commands of each row."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, product
from pathlib import Path
from typing import Any, Final, NamedTuple

from sooner.cli.needs_commands import Call, Named, hidden_in, named_in
from sooner.cli.needs_labels import devices_of_label, names_none
from sooner.cli.needs_parts import COUNT_KEYS, is_off, job_of, mappings_in, shown_to, yaml_of
from sooner.model.errors import SettingsError
from sooner.plan.needs.placement import Job

_FILLED: Final = re.compile(
    r"\$\{\{\s*(?:fromJSON\(\s*)?(?:(?P<of>matrix|inputs)\.(?P<key>[\w.-]+)(?:\s*\|\|\s*'(?P<other>[^']*)')?|'(?P<text>[^']*)')"
    r"\s*\)?\s*\}\}",
    re.IGNORECASE,
)
"""What GitHub puts there, as far as it stands in the files."""
_DEEPEST: Final = 4
"""Workflows and actions in others."""
_ONLY_CALLED: Final = ({"workflow_call"}, {"workflow_call", "workflow_dispatch"})
_IS_SCRIPT: Final = re.compile(r"(?:.*[-_])?(?:run|scripts?|commands?|cmds?)")
"""What inputs of actions are called that are command lines."""
_MOST_ROWS: Final = 512
"""GitHub makes 256 jobs of a matrix at most."""
_LABEL_KEYS: Final = ("runner", "runs-on", "runs_on", "os", "label", "labels")


class _Told(NamedTuple):
    """What a workflow or a job tells of all its commands."""

    path: Path
    """Its file."""
    most: int | None = None
    """How many devices its environment shows; None: all."""
    folder: str = ""
    """Where they are run."""
    inputs: Mapping[str, Any] = {}
    """What it was called with."""
    depth: int = 0
    """How many files called each other."""


def of_actions(document: Mapping[str, Any], path: Path, notes: list[str], called: set[Path] | None = None) -> list[Job]:
    """What the jobs of a workflow run.

    Args:
        document: The workflow.
        path: Its file.
        notes: Gets what of it could not be known.
        called: Gets the files that jobs call and nothing else starts: their jobs are those of who calls them.
    """
    return list(_of_workflow(document, _Told(path), "", notes, set() if called is None else called))


def _of_workflow(
    document: Mapping[str, Any], told: _Told, name: str, notes: list[str], called: set[Path]
) -> Iterator[Job]:
    told = _told(document, told)
    for key, job in document["jobs"].items():
        if isinstance(job, dict):
            yield from _of_action(f"{name}{key}", job, _told(job, told), notes, called)


def _of_action(name: str, job: Mapping[str, Any], told: _Told, notes: list[str], called: set[Path]) -> Iterator[Job]:
    """A job of GitHub Actions: once for each row of its matrix, with what its workflow tells of all its commands."""
    if is_off(job):
        notes.append(f"{told.path}: job {name}: it is switched off (`if: {job['if']}`), and runs nothing")
        return
    notes.extend(f"{told.path}: job {name}: {each}" for each in _steps_off(job))
    given = job["with"] if isinstance(job.get("with"), dict) else {}
    labels = job.get("runs-on", next((given[key] for key in _LABEL_KEYS if key in given), ""))
    label = " ".join(map(str, labels)) if isinstance(labels, list) else str(labels)
    doubts: dict[str, None] = {}
    try:
        tested = _test_matrix(given)
    except SettingsError:
        doubts["its test-matrix is no YAML before GitHub fills it"] = None
        tested = []
    for row in [*matrix_rows(job, told.inputs), *tested] or [{}]:
        named = _named_in(job, given, row, told)
        calls = [*named.calls, *_named_by(job, row, told.most, has_commands=bool(named.calls))]
        devices = _row_devices(row, filled(label, row, told.inputs))
        followed = [] if calls else list(_of_called(name, job, row, told, notes, called))
        yield from followed
        hidden = job["uses"] if "uses" in job else hidden_in("\n".join(_scripts_of(job)))
        if hidden and not calls and not followed and not named.unknown and devices:
            doubts[f"its tests are those of {hidden}"] = None
        elif named.unknown and len(calls) == len(named.calls):
            doubts["its tests are computed: " + " ".join(named.unknown)] = None
        if calls and devices is None:
            own_label = _own_label(label, row)
            doubts[f"the devices of its runner {own_label!r} are not known" if own_label else "it names no runner"] = (
                None
            )
        elif calls and devices is not None:
            if not devices and (own_label := _unsaid(filled(label, row, told.inputs), row)):
                doubts[f"its runner {own_label!r} names no devices, and is taken to have none"] = None
            yield from (job_of(name, devices, call) for call in calls)
    notes.extend(f"{told.path}: job {name}: {each}: say them in a placement.toml" for each in doubts)


def _of_called(  # noqa: PLR0917 - a job, and what it stands in
    name: str, job: Mapping[str, Any], row: Mapping[str, Any], told: _Told, notes: list[str], called: set[Path]
) -> Iterator[Job]:
    """The jobs of a workflow of the same repository that a job calls, with what it hands on."""
    path, document = _beside(told, str(job.get("uses", "")), "")
    if path is None or not isinstance(document.get("jobs"), dict):
        return
    triggers = document.get("on")
    told_of = triggers.get("workflow_call") if isinstance(triggers, dict) else None
    inputs = _inputs(told_of, job.get("with"), row, told)
    if set(map(str, triggers if isinstance(triggers, dict | list) else [triggers])) in _ONLY_CALLED:
        called.add(path.resolve())
    yield from _of_workflow(document, _Told(path, inputs=inputs, depth=told.depth + 1), f"{name} / ", notes, called)


def _inputs(part: Any, given: Any, row: Mapping[str, Any], told: _Told) -> Mapping[str, Any]:
    """What a called workflow or action has for its inputs: what it is given, else their defaults."""
    declared = part.get("inputs") if isinstance(part, dict) else None
    known = declared.items() if isinstance(declared, dict) else ()
    defaults = {str(key): each.get("default", "") if isinstance(each, dict) else "" for key, each in known}
    handed = given.items() if isinstance(given, dict) else ()
    return defaults | {str(key): filled(str(each), row, told.inputs) for key, each in handed}


def _beside(told: _Told, uses: str, name: str) -> tuple[Path | None, Mapping[str, Any]]:
    """A file of the same repository that is used (`./...`), and what it says; None where it is not there."""
    if not uses.startswith("./") or told.depth >= _DEEPEST:
        return None, {}
    try:
        paths = [folder / uses / name for folder in told.path.absolute().parents]
        path = next((each for each in paths if each.is_file()), None)
        document = None if path is None else yaml_of(path.read_text(encoding="utf-8-sig"), path)
    except (OSError, UnicodeDecodeError, SettingsError):
        return None, {}
    return (path, document) if isinstance(document, dict) else (None, {})


def _steps_off(job: Mapping[str, Any]) -> Iterator[str]:
    """What to say of steps that would run tests if they were not switched off."""
    for step in mappings_in(job.get("steps")):
        if "run" in step and is_off(step) and named_in(str(step["run"])).calls:
            yield f"step {step.get('name', step['run'])}: it is switched off (`if: {step['if']}`), and runs nothing"


def _told(part: Mapping[str, Any], outer: _Told) -> _Told:
    own: Any = part
    for key in ("defaults", "run", "working-directory"):
        own = own.get(key) if isinstance(own, dict) else None
    return outer._replace(most=shown_to(part, outer.most), folder=outer.folder if own is None else str(own))


def _named_by(job: Mapping[str, Any], row: Mapping[str, Any], most: int | None, *, has_commands: bool) -> list[Call]:
    """The tests that a row of a matrix names, and no command takes from it; else the folder that its `config` does."""
    text = str(job.get("steps")) if has_commands else ""
    names = [key for key in ("path", "paths", "tests", "test") if key in row and f"matrix.{key}" not in text]
    own = tuple(str(row[key]) for key in names)
    if own or has_commands or "config" not in row:
        return [Call(own, shown=most)] if own else []
    return [Call((f"*/{row['config']}/*",), shown=most)]


def _unsaid(label: str, row: Mapping[str, Any]) -> str:
    """A label of one's own that does not say whether its runner has devices; empty where it, or the row, does."""
    own = _own_label(label, row)
    return "" if names_none(own) or any(key in row for key in COUNT_KEYS) else own


def _own_label(label: str, row: Mapping[str, Any]) -> str:
    """The label of a job, or else of a row."""
    return label or next((str(row[key]) for key in _LABEL_KEYS if key in row), "")


def _named_in(job: Mapping[str, Any], given: Mapping[str, Any], row: Mapping[str, Any], told: _Told) -> Named:
    """The tests that a job's steps, and the scripts that it hands on, run with the values of one row."""
    found = list(_of_steps(job.get("steps"), row, told))
    found += [named_in(filled(str(text), row, told.inputs), "", told.most) for text in given.values()]
    return Named([call for each in found for call in each.calls], [word for each in found for word in each.unknown])


def _scripts_of(job: Mapping[str, Any]) -> list[str]:
    """The commands of a job's steps."""
    return [str(step["run"]) for step in mappings_in(job.get("steps")) if "run" in step and not is_off(step)]


def _of_steps(steps: Any, row: Mapping[str, Any], told: _Told) -> Iterator[Named]:
    """The tests of each step: of its command, of those that it hands to an action, or of the repository's action."""
    for step in mappings_in(steps):
        if is_off(step):
            continue
        shown = shown_to(step, told.most)
        folder = filled(str(step.get("working-directory", told.folder)), row, told.inputs)
        given = step["with"] if isinstance(step.get("with"), dict) else {}
        scripts = (
            [step["run"]] if "run" in step else [each for key, each in given.items() if _IS_SCRIPT.fullmatch(str(key))]
        )
        yield from (named_in(filled(str(each), row, told.inputs), folder, shown) for each in scripts)
        for name in ("action.yml", "action.yaml"):
            path, document = _beside(told, str(step.get("uses", "")), name)
            runs = document.get("runs")
            if path is not None and isinstance(runs, dict):
                inputs = _inputs(document, given, row, told)
                yield from _of_steps(runs.get("steps"), {}, _Told(told.path, shown, "", inputs, told.depth + 1))


def filled(text: str, row: Mapping[str, Any], inputs: Mapping[str, Any] | None = None) -> str:
    """Text with the values of a matrix's row, and of inputs, in place of `${{ matrix.KEY }}`; what is unknown stays."""

    def value(found: re.Match[str]) -> str:
        if found["text"] is not None:
            return found["text"] if "fromjson" in found[0].lower() else found[0]
        inner: Any = row if found["of"].lower() == "matrix" else inputs or {}
        for key in found["key"].split("."):
            if not isinstance(inner, Mapping) or key not in inner:
                return found[0] if found["other"] is None else found["other"]
            inner = inner[key]
        if found["other"] is not None and inner in ("", None, False):
            return found["other"]
        if isinstance(inner, bool):
            return str(inner).lower()
        return " ".join(map(str, inner)) if isinstance(inner, list) else str(inner)

    return _FILLED.sub(value, text)


def matrix_rows(job: Mapping[str, Any], inputs: Mapping[str, Any] | None = None) -> list[Mapping[str, Any]]:
    """The rows of a job's matrix as GitHub makes them: all combinations, less `exclude`, with what `include` adds.

    What is JSON in an input, or in the file itself (`fromJSON`), is known.

    Source: docs.github.com/en/actions/writing-workflows (running variations of jobs).
    """
    strategy = job.get("strategy")
    matrix = _from_json(strategy.get("matrix"), inputs) if isinstance(strategy, dict) else None
    if not isinstance(matrix, dict):
        return []
    matrix = {key: _from_json(each, inputs) for key, each in matrix.items()}
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


def _from_json(value: Any, inputs: Mapping[str, Any] | None) -> Any:
    """What a computed value is, where it is the JSON of an input or of a text; else the value."""
    if not isinstance(value, str) or "$" not in value or "$" in (text := filled(value, {}, inputs)):
        return value
    try:
        return yaml_of(text, Path("matrix"))
    except SettingsError:
        return value


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
