"""Where CI runs the tests, out of what CI itself reads: GitHub Actions, Buildkite pipelines, Bazel, or a TOML file.

A job's devices are read from the runner's name or from a number that stands beside it, its tests from the command
lines. What a file does not say (a matrix that is computed, a script that calls pytest) cannot be known: then the TOML
file says it.
"""

import ast
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sooner.model.errors import SettingsError, UsageError
from sooner.plan.needs.placement import Job, placement_of

_INSTANCES: Final = {
    "p3.2xlarge": 1, "p3.8xlarge": 4, "p3.16xlarge": 8, "p4d.24xlarge": 8, "p4de.24xlarge": 8, "p5.48xlarge": 8,
    "g4dn.xlarge": 1, "g4dn.12xlarge": 4, "g4dn.metal": 8, "g5.xlarge": 1, "g5.4xlarge": 1, "g5.12xlarge": 4,
    "g5.24xlarge": 4, "g5.48xlarge": 8, "g6.xlarge": 1, "g6.4xlarge": 1, "g6.12xlarge": 4, "g6.48xlarge": 8,
}  # fmt: skip
"""GPUs of AWS's instances, as their documentation lists them."""
_COUNTED: Final = (
    re.compile(r"gpus?[.:=_-](?:[a-z]+\d*[a-z]?[.:=_-])?(\d)\b"),
    re.compile(r"\b(\d)[x_-]?(?:gpu|h100|h200|a100|b200|mi\d+|l4|t4)"),
    re.compile(r"(?:h100|h200|a100|b200|mi\d+|l4|t4)[._x-](\d)\b"),
)
_HAS_ONE: Final = re.compile(r"gpu|cuda|rocm|h100|h200|a100|b200|\bmi\d+|\bl4\b|\bt4\b|nvidia", re.IGNORECASE)
_TAGS: Final = re.compile(
    r"^(?:requires-|requires_|num[_-])?(?:multi[_-])?(?:gpus?|devices)(?:[:=_-](\d+))?$|^(\d+)gpus?$"
)
_WORD: Final = re.compile(r"[\w./*:\[\]-]+")
_PYTEST: Final = re.compile(r"(?:^|[\s;&|(])(?:pytest|py\.test)\s+([^\n;&|]*)")
_RUN_TEST: Final = re.compile(r"run_test\.py\s+([^\n;&|]*)")
_TAKES_VALUE: Final = ("-k", "-m", "-n", "-p", "-c", "-o", "-W", "-r", "--pyargs")
_COUNT_KEYS: Final = ("num_devices", "num_gpus", "gpus", "num-gpus", "gpu_count", "devices")
_LABEL_KEYS: Final = ("runner", "runs-on", "runs_on", "os", "label", "labels")


def placement_from(path: Path) -> list[Job]:
    """The jobs of a file, by its name: `.toml`, `.yml` / `.yaml`, `BUILD` / `BUILD.bazel`.

    Raises:
        UsageError: It cannot be read.
        SettingsError: It is not what its name says.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"--placement {path} cannot be read: {why}") from None
    if path.name in ("BUILD", "BUILD.bazel"):
        return list(_of_bazel(text, path))
    if path.suffix in (".yml", ".yaml"):
        return _of_yaml(text, path)
    return placement_of(text, str(path))


def devices_of_label(label: str) -> int | None:
    """How many devices a runner has by its name; 0 for one that names none, None where the name is computed."""
    if "${{" in label or "$" in label:
        return None
    low = label.lower()
    for name, count in _INSTANCES.items():
        if name in low:
            return count
    for pattern in _COUNTED:
        found = pattern.search(low)
        if found:
            return int(found[1])
    return 1 if _HAS_ONE.search(low) else 0


def paths_of_commands(text: str) -> list[str]:
    """Patterns of the tests that command lines run: the arguments of pytest that are no options."""
    found: list[str] = []
    for command in _PYTEST.findall(text.replace("\\\n", " ")):
        found += _positional(command)
    for command in _RUN_TEST.findall(text.replace("\\\n", " ")):
        words = _WORD.findall(command)
        found += [f"test/{each}" for each in words[words.index("--include") + 1 :]] if "--include" in words else []
    return list(dict.fromkeys(found))


def _positional(command: str) -> Iterator[str]:
    """Words that name tests: a value of an option is none, and a bare word behind a long option may be its value."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError:  # a quote that is closed on another line
        words = command.split()
    before = ""
    for word in words:
        is_value = before in _TAKES_VALUE or (before.startswith("--") and "=" not in before and "/" not in word)
        before = word
        if not word.startswith("-") and not is_value and _WORD.fullmatch(word):
            yield word.removeprefix("./").rstrip("/")


def _patterns(paths: Sequence[str], folder: str = "") -> tuple[str, ...]:
    """Patterns of a path as a command names it, wherever the command is run from."""
    prefix = f"{folder.strip('/')}/" if folder else ""
    return tuple(
        f"{start}{each}{end}" for each in paths for start in (prefix, "*/") for end in ("", "/*", "::*", ".py")
    )


def _of_yaml(text: str, path: Path) -> list[Job]:
    document = _yaml(text, path)
    if isinstance(document, dict) and isinstance(document.get("jobs"), dict):
        return [each for name, job in document["jobs"].items() for each in _of_action(str(name), job)]
    steps = document.get("steps") if isinstance(document, dict) else document
    if isinstance(steps, list):
        return [job for step in steps for job in _of_step(step)]
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
        raise SettingsError(f"{path} is not YAML: {str(error).splitlines()[0]}") from None


def _of_action(name: str, job: Any) -> Iterator[Job]:
    """A job of GitHub Actions: once for each runner that its matrix names."""
    if not isinstance(job, dict):
        return
    steps = job.get("steps") if isinstance(job.get("steps"), list) else []
    commands = "\n".join(str(step["run"]) for step in steps or [] if isinstance(step, dict) and "run" in step)
    given = job.get("with") if isinstance(job.get("with"), dict) else {}
    paths = paths_of_commands("\n".join([commands, *(str(each) for each in (given or {}).values())]))
    labels = job.get("runs-on", "")
    fixed = " ".join(map(str, labels)) if isinstance(labels, list) else str(labels)
    rows = [*_matrix_rows(job), *_test_matrix(given or {})]
    for row in rows or [{}]:
        devices = _row_devices(row)
        devices = devices_of_label(fixed) if devices is None else devices
        own = [str(row[key]) for key in ("path", "paths", "tests", "test") if key in row]
        config = [str(row["config"])] if "config" in row and not own and not paths else []
        patterns = _patterns([*paths, *own]) + tuple(f"*/{each}/*" for each in config)
        if devices is not None and patterns:
            yield Job(name=name, devices=devices, paths=patterns)


def _matrix_rows(job: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    strategy = job.get("strategy")
    matrix = strategy.get("matrix") if isinstance(strategy, dict) else None
    if not isinstance(matrix, dict):
        return []
    rows: list[Mapping[str, Any]] = [row for row in matrix.get("include") or [] if isinstance(row, dict)]
    for key in (*_LABEL_KEYS, *_COUNT_KEYS):
        values = matrix.get(key)
        rows += [{key: value} for value in values] if isinstance(values, list) else []
    return rows


def _test_matrix(given: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The rows of a `test-matrix` string, in PyTorch's style."""
    text = given.get("test-matrix")
    document = _yaml(text, Path("test-matrix")) if isinstance(text, str) and "${{" not in text else None
    rows = document.get("include") if isinstance(document, dict) else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _row_devices(row: Mapping[str, Any]) -> int | None:
    for key in _COUNT_KEYS:
        if isinstance(row.get(key), int):
            return int(row[key])
    for key in _LABEL_KEYS:
        if key in row:
            label = row[key]
            return devices_of_label(" ".join(map(str, label)) if isinstance(label, list) else str(label))
    return None


def _of_step(step: Any) -> Iterator[Job]:
    """A step of a Buildkite pipeline; in vLLM's, a step without a number has one device."""
    if not isinstance(step, dict):
        return
    for inner in step.get("steps") or []:
        yield from _of_step(inner)
    commands = step.get("commands") or step.get("command") or []
    text = "\n".join(map(str, commands)) if isinstance(commands, list) else str(commands)
    paths = paths_of_commands(text)
    if not paths:
        return
    devices = next((int(step[key]) for key in _COUNT_KEYS if isinstance(step.get(key), int)), None)
    if devices is None:
        devices = 0 if step.get("no_gpu") or "cpu" in str(step.get("device", "")).lower() else 1
    name = str(step.get("label", step.get("key", "step")))
    yield Job(name=name, devices=devices, paths=_patterns(paths))


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
                sources = tuple(f"*{folder}/{each.lstrip(':')}" for each in given["srcs"])
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
