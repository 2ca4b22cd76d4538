"""Where CI runs the tests, out of what CI itself reads: GitHub Actions, Buildkite pipelines, Bazel, or a TOML file.

A job's devices are read from the runner's name or from a number that stands beside it, its tests from the command
lines. What a file does not say (a matrix that is computed, a script that calls pytest) cannot be known: then the TOML
file says it.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any, Final, NamedTuple

from sooner.cli.needs_commands import EVERYTHING, Call, Named, named_in, shown_in
from sooner.model.errors import SettingsError, UsageError
from sooner.plan.needs.placement import Job, placement_of

_OF_G: Final = {
    "xlarge": 1, "2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "16xlarge": 1, "12xlarge": 4, "24xlarge": 4, "48xlarge": 8,
    "metal": 8,
}  # fmt: skip
_INSTANCES: Final = {
    "p3.2xlarge": 1, "p3.8xlarge": 4, "p3.16xlarge": 8, "p3dn.24xlarge": 8, "p4d.24xlarge": 8, "p4de.24xlarge": 8,
    "p5.4xlarge": 1, "p5.48xlarge": 8, "p5e.48xlarge": 8, "p5en.48xlarge": 8, "p6.b200.48xlarge": 8,
    "p6.b300.48xlarge": 8,
    **{f"{family}.{size}": count for family in ("g4dn", "g5", "g6", "g6e") for size, count in _OF_G.items()},
}  # fmt: skip
"""GPUs of AWS's instances, as their documentation lists them; a dash in a name counts as a dot."""
_MODEL: Final = r"(?:[hb][123]00|g[hb][23]00|h20|[av]100|mi\d+x?|a10g?|l40s?|l4|t4)"
_NUMBER: Final = r"(16|\d)(?![a-z\d])(?![._-]?(?:v?cpu|core))"
_COUNTED: Final = (
    re.compile(rf"gpus?[.:=_-](?:[a-z]+\d*[a-z]?[.:=_-])?x?{_NUMBER}"),
    re.compile(r"gpu-(16|\d)g\b"),
    re.compile(rf"gpu-{_MODEL}-(?:latest|earliest|\d{{3}})-{_NUMBER}"),
    re.compile(r"\b(16|\d)[x_-]{0,2}gpu"),
    re.compile(rf"\b(16|\d)[x_-]{{0,2}}{_MODEL}"),
    re.compile(rf"{_MODEL}[._x-]{_NUMBER}"),
    re.compile(r"multi[._-]gpu()"),
)
_MULTI: Final = 2
"""Devices of a runner that only says that it has several: the fewest."""
_HAS_ONE: Final = re.compile(rf"gpu|cuda|rocm|nvidia|\brtx|[hb][123]00|a100|\b{_MODEL}x?\b", re.IGNORECASE)
_HAS_NONE: Final = re.compile(r"ubuntu|windows|macos|cpu", re.IGNORECASE)
"""GitHub's own runners, and names that say that there are none."""
_TAGS: Final = re.compile(
    r"^(?:requires[-_]|num[_-])?(?:multi[_-]?(?:and_single_)?)?(?:gpus?|devices|accelerators?)"
    r"(?:-(?:nvidia|amd|intel|sm\d+[a-z]?(?:-only|-full)?)|_only)?(?:[:=_-](\d+))?$|^(\d+)gpus?$"
)
_COUNT_KEYS: Final = ("num_devices", "num_gpus", "gpus", "num-gpus", "gpu_count", "devices")
_OF_MATRIX: Final = re.compile(r"\$\{\{\s*matrix\.([\w.-]+)\s*\}\}")
_COMPUTED: Final = re.compile(r"\$\{\{.*?\}\}")
_NEVER: Final = ("false", "${{ false }}", "${{false}}")
_MOST_ROWS: Final = 512
"""GitHub makes 256 jobs of a matrix at most."""
_LABEL_KEYS: Final = ("runner", "runs-on", "runs_on", "os", "label", "labels")


class _Told(NamedTuple):
    """What a workflow or a job tells of all its commands."""

    most: int | None = None
    """How many devices its environment shows; None: all."""
    folder: str = ""
    """Where they are run."""


def placement_from(path: Path, notes: list[str] | None = None) -> list[Job]:
    """The jobs of a file, by its name: `.toml`, `.yml` / `.yaml`, `BUILD` / `BUILD.bazel`.

    Args:
        path: The file.
        notes: Gets what of it could not be known.

    Raises:
        UsageError: It cannot be read.
        SettingsError: It is not what its name says.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"--placement {path} cannot be read: {why}") from None
    if path.name in ("BUILD", "BUILD.bazel"):
        return list(_of_bazel(text, path))
    if path.suffix in (".yml", ".yaml"):
        return _of_yaml(text, path, [] if notes is None else notes)
    return placement_of(text, str(path))


def devices_of_label(label: str) -> int | None:
    """How many devices a runner has by its name; 0 for one that names none.

    Of a name that is computed, what is written out counts (`${{ needs.a.outputs.prefix }}linux.gpu.4`); None where
    that says no number.
    """
    low = _COMPUTED.sub("", label.lower())
    dotted = low.replace("-", ".")
    for name, count in _INSTANCES.items():
        if name in dotted:
            return count
    for pattern in _COUNTED:
        found = pattern.search(low)
        if found:
            return int(found[1] or _MULTI)
    if "$" in label:
        return None
    return 1 if _HAS_ONE.search(low) else 0


def _patterns(
    paths: Sequence[str], ends: Sequence[str] = ("", "/*", "::*", "[[]*", ".py"), folder: str = ""
) -> tuple[str, ...]:
    """Patterns of a path as a command names it, wherever the command is run from; a bracket is one of a test's name."""
    named = [start for each in paths if each != EVERYTHING for start in _places(each.replace("[", "[[]"), folder)]
    everything = ("*",) if EVERYTHING in paths else ()
    return everything + tuple(f"{each}{end}" for each in named for end in ends)


def _places(path: str, folder: str) -> Iterator[str]:
    """Where a path may lie in the tree, which may begin above or, of an absolute one or a folder, within it."""
    yield path.removeprefix("/")
    if not path.startswith("/"):
        yield f"*/{path}"
    parts = path.removeprefix("/").split("/")
    is_below = folder and f"{path}/".startswith(f"{folder}/")
    above = len(parts) if path.startswith("/") else len(folder.split("/")) + 1 if is_below else 1
    yield from ("/".join(parts[i:]) for i in range(1, min(above, len(parts))) if not parts[i].startswith(("*", "?")))


def _job_of(name: str, devices: int, call: Call) -> Job:
    """What one call of pytest runs, on the devices of its runner that it sees."""
    ignored = _patterns(call.without, folder=call.folder) + _patterns(call.deselected, ("*",))
    return Job(
        name=name,
        devices=devices if call.shown is None else min(devices, call.shown),
        paths=_patterns(call.paths, folder=call.folder),
        without=ignored + tuple(f"{start}{each}" for each in call.globs for start in ("", "*/")),
        keyword=call.keyword,
    )


def _of_yaml(text: str, path: Path, notes: list[str]) -> list[Job]:
    document = _yaml(text, path)
    if isinstance(document, dict) and isinstance(document.get("jobs"), dict):
        everywhere = _told(document, _Told())
        jobs = [
            each
            for name, job in document["jobs"].items()
            for each in _of_action(str(name), job, path, notes, everywhere)
        ]
        return list(dict.fromkeys(jobs))
    steps = document.get("steps") if isinstance(document, dict) else document
    if isinstance(steps, list):
        around = document if isinstance(document, dict) else {}
        return [job for step in _mappings(steps) for job in _of_step(_within(around, step), path, notes)]
    raise SettingsError(f"{path}: neither `jobs` (GitHub Actions) nor `steps` (Buildkite) are in it")


def _yaml(text: str, path: Path) -> Any:
    try:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError
    except ImportError:
        raise UsageError(f"--placement {path} is YAML: pip install 'sooner[workflows]' to read it") from None
    try:
        return YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise SettingsError(f"{path}{f':{mark.line + 1}' if mark else ''} is not YAML: {problem}") from None


def _of_action(name: str, job: Any, path: Path, notes: list[str], told: _Told) -> Iterator[Job]:
    """A job of GitHub Actions: once for each row of its matrix, with what its workflow tells of all its commands."""
    if not isinstance(job, dict):
        return
    if _is_off(job):
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
            yield from (_job_of(name, devices, call) for call in calls)
    notes.extend(f"{path}: job {name}: {each}: say them in a placement.toml" for each in doubts)


def _steps_off(job: Mapping[str, Any]) -> Iterator[str]:
    """What to say of steps that would run tests if they were not switched off."""
    for step in _mappings(job.get("steps")):
        if "run" in step and _is_off(step) and named_in(str(step["run"])).calls:
            yield f"step {step.get('name', step['run'])}: it is switched off (`if: {step['if']}`), and runs nothing"


def _told(part: Mapping[str, Any], outer: _Told) -> _Told:
    own: Any = part
    for key in ("defaults", "run", "working-directory"):
        own = own.get(key) if isinstance(own, dict) else None
    return _Told(_shown(part, outer.most), outer.folder if own is None else str(own))


def _shown(part: Mapping[str, Any], most: int | None = None) -> int | None:
    """How many devices the environment of a workflow, a job or a step shows; `most` where it says nothing."""
    own = shown_in(part["env"]) if isinstance(part.get("env"), dict) else None
    return most if own is None else own


def _named_by(row: Mapping[str, Any], most: int | None, *, has_commands: bool) -> list[Call]:
    """The tests that a row of a matrix names, or else the folder that its `config` does."""
    own = tuple(str(row[key]) for key in ("path", "paths", "tests", "test") if key in row)
    if own or has_commands or "config" not in row:
        return [Call(own, shown=most)] if own else []
    return [Call((f"*/{row['config']}/*",), shown=most)]


def _unsaid(label: str, row: Mapping[str, Any]) -> str:
    """A label of one's own that does not say whether its runner has devices; empty where it, or the row, does."""
    own = label or next((str(row[key]) for key in _LABEL_KEYS if key in row), "")
    return "" if _HAS_NONE.search(own) or any(key in row for key in _COUNT_KEYS) else own


def _named_in(job: Mapping[str, Any], given: Mapping[str, Any], row: Mapping[str, Any], told: _Told) -> Named:
    """The tests that a job's steps, and the scripts that it hands on, run with the values of one row."""
    scripts = [
        (step["run"], step.get("working-directory", told.folder), _shown(step, told.most))
        for step in _mappings(job.get("steps"))
        if "run" in step and not _is_off(step)
    ]
    scripts += [(text, "", told.most) for text in given.values()]
    found = [named_in(filled(str(text), row), filled(str(folder), row), shown) for text, folder, shown in scripts]
    return Named([call for each in found for call in each.calls], [word for each in found for word in each.unknown])


def _is_off(part: Mapping[str, Any]) -> bool:
    """Whether a job, or a step, is switched off."""
    return str(part.get("if", "")).strip().lower() in _NEVER


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
    without = _mappings(matrix.get("exclude"))
    rows = [row for row in rows if not any(_agrees(row, each, each) for each in without)]
    first = [dict(row) for row in rows]
    for more in _mappings(matrix.get("include")):
        fitting = [i for i, row in enumerate(first) if _agrees(row, more, axes.keys() & more.keys())]
        for i in fitting:
            rows[i] |= more
        rows += [] if fitting else [dict(more)]
    return list(rows)


def _mappings(part: Any) -> list[Mapping[str, Any]]:
    return [each for each in part if isinstance(each, dict)] if isinstance(part, list) else []


def _agrees(row: Mapping[str, Any], other: Mapping[str, Any], keys: Iterable[str]) -> bool:
    return all(key in row and row[key] == other[key] for key in keys)


def _test_matrix(given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The rows of a `test-matrix` string, in PyTorch's style."""
    text = given.get("test-matrix")
    if not isinstance(text, str) or text.lstrip().startswith("${{"):
        return []
    document = _yaml(text, Path("test-matrix"))
    return _mappings(document.get("include")) if isinstance(document, dict) else []


def _row_devices(row: Mapping[str, Any], label: str) -> int | None:
    """Devices by a number in the row, else by the label of `runs-on`, else by a label in the row."""
    for key in _COUNT_KEYS:
        if str(row.get(key, "")).isdecimal():
            return int(row[key])
    if label and (devices := devices_of_label(label)) is not None:
        return devices
    for key in _LABEL_KEYS:
        if key in row:
            own = row[key]
            return devices_of_label(" ".join(map(str, own)) if isinstance(own, list) else str(own))
    return None


def _of_step(step: Mapping[str, Any], path: Path, notes: list[str]) -> Iterator[Job]:
    """A step of a Buildkite pipeline."""
    if step.get("skip") or _is_off(step):
        notes.append(f"{path}: step {step.get('label', step.get('key', 'step'))}: it is skipped, and runs nothing")
        return
    for inner in _mappings(step.get("steps")):
        yield from _of_step(_within(step, inner), path, notes)
    commands = step.get("commands") or step.get("command") or []
    text = "\n".join(map(str, commands)) if isinstance(commands, list) else str(commands)
    named = named_in(text, str(step.get("working_dir", "")), _shown(step))
    name = str(step.get("label", step.get("key", "step")))
    if named.unknown:
        words = " ".join(named.unknown)
        notes.append(f"{path}: step {name}: its tests are computed: {words}: say them in a placement.toml")
    yield from (_job_of(name, _devices_of_step(step), call) for call in named.calls)


def _within(around: Mapping[str, Any], step: Mapping[str, Any]) -> Mapping[str, Any]:
    """A step with what a pipeline or a group says of all of its steps."""
    return {key: around[key] for key in ("agents", "env") if key in around} | dict(step)


def _devices_of_step(step: Mapping[str, Any]) -> int:
    """Devices by a number in the step, else by the names of its machines; in vLLM's pipelines, one without either."""
    for key in _COUNT_KEYS:
        if str(step.get(key, "")).isdecimal():
            return int(step[key])
    agents = step.get("agents")
    asked = list(agents.values()) if isinstance(agents, dict) else agents if isinstance(agents, list) else [agents]
    machines = " ".join(str(each) for each in (step.get("device"), step.get("agent_pool"), *asked) if each)
    if step.get("no_gpu"):
        return 0
    return devices_of_label(machines) or (0 if "cpu" in machines.lower() else 1)


def _of_bazel(text: str, path: Path) -> Iterator[Job]:
    """Targets with `srcs`, and `tags` that name devices: `requires-gpu:2`, `multi_gpu`, `gpu`."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        raise SettingsError(f"{path} is not a BUILD file that can be read") from None
    folder = path.parent.name
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given = {each.arg: _strings(each.value) for each in node.keywords}
            names, tags = given.get("name", []), given.get("tags", [])
            if given.get("srcs") and names:
                sources = tuple(f"{start}{each.lstrip(':')}" for each in given["srcs"] for start in (f"*{folder}/", ""))
                devices = max([_devices_of_tag(each) for each in tags], default=0)
                yield Job(name=names[0], devices=devices, paths=sources)


def _devices_of_tag(tag: str) -> int:
    found = _TAGS.match(tag)
    if not found:
        return 0
    number = found[1] or found[2]
    return int(number) if number else 2 if "multi" in tag else 1


def _strings(node: ast.expr) -> list[str]:
    return [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]
