"""Where CI runs the tests, out of what CI itself reads: GitHub Actions, GitLab, Buildkite, Bazel, or a TOML file.

A job's devices are read from the runner's name or from a number that stands beside it, its tests from the command
lines. What a file does not say (a matrix that is computed, a script that calls pytest) cannot be known: then the TOML
file says it.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from sooner.cli.needs_actions import of_actions
from sooner.cli.needs_commands import hidden_in, named_in
from sooner.cli.needs_gitlab import of_gitlab
from sooner.cli.needs_labels import devices_of_label
from sooner.cli.needs_parts import COUNT_KEYS, is_off, job_of, mappings_in, shown_to, yaml_of
from sooner.model.errors import SettingsError, UsageError
from sooner.plan.needs.placement import Job, placement_of

_TAGS: Final = re.compile(
    r"^(?:requires[-_]|num[_-])?(?:multi[_-]?(?:and_single_)?)?(?:gpus?|devices|accelerators?)"
    r"(?:-(?:nvidia|amd|intel|sm\d+[a-z]?(?:-only|-full)?)|_only)?(?:[:=_-](\d+))?$|^(\d+)gpus?$"
)


def placement_from(
    path: Path, notes: list[str] | None = None, called: set[Path] | None = None, *, in_folder: bool = False
) -> list[Job]:
    """The jobs of a file, by its name: `.toml`, `.yml` / `.yaml`, `BUILD` / `BUILD.bazel`.

    Args:
        path: The file.
        notes: Gets what of it could not be known.
        called: Gets the workflows that others call, and nothing else starts.
        in_folder: It is one of a folder, where other YAML may lie: such a file is a note.

    Raises:
        UsageError: It cannot be read.
        SettingsError: It is not what its name says.
    """
    notes = [] if notes is None else notes
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"--placement {path} cannot be read: {why}") from None
    if path.name in ("BUILD", "BUILD.bazel"):
        return list(_of_bazel(text, path))
    if path.suffix in (".yml", ".yaml"):
        try:
            found = _of_yaml(text, path, notes, called)
        except RecursionError:
            raise SettingsError(f"{path} holds itself: an anchor of YAML is named within what it names") from None
        if found is None:
            problem = f"{path}: neither `jobs` (GitHub Actions), `steps` (Buildkite) nor a `script` (GitLab) are in it"
            if not in_folder:
                raise SettingsError(problem)
            notes.append(problem)
        return found or []
    return placement_of(text, str(path))


def _of_yaml(text: str, path: Path, notes: list[str], called: set[Path] | None) -> list[Job] | None:
    """The jobs of a workflow or a pipeline; None where it is neither."""
    document = yaml_of(text, path)
    if isinstance(document, dict) and "version" in document and "jobs" in document:
        notes.append(f"{path}: it is CircleCI's, which is not read: say its jobs in a placement.toml")
        return []
    if isinstance(document, dict) and isinstance(document.get("jobs"), dict):
        return list(dict.fromkeys(of_actions(document, path, notes, called)))
    steps = document.get("steps") if isinstance(document, dict) else document
    if isinstance(document, dict) and steps is None:
        return of_gitlab(document, path, notes)
    if isinstance(steps, list):
        around = document if isinstance(document, dict) else {}
        return [job for step in mappings_in(steps) for job in _of_step(_within(around, step), path, notes)]
    return None


def _of_step(step: Mapping[str, Any], path: Path, notes: list[str]) -> Iterator[Job]:
    """A step of a Buildkite pipeline."""
    if step.get("skip") or is_off(step):
        notes.append(f"{path}: step {step.get('label', step.get('key', 'step'))}: it is skipped, and runs nothing")
        return
    for inner in mappings_in(step.get("steps")):
        yield from _of_step(_within(step, inner), path, notes)
    commands = step.get("commands") or step.get("command") or []
    text = "\n".join(map(str, commands)) if isinstance(commands, list) else str(commands)
    named = named_in(text, str(step.get("working_dir", "")), shown_to(step))
    name = str(step.get("label", step.get("key", "step")))
    if named.unknown:
        words = " ".join(named.unknown)
        notes.append(f"{path}: step {name}: its tests are computed: {words}: say them in a placement.toml")
    elif not named.calls and (hidden := hidden_in(text)):
        notes.append(f"{path}: step {name}: its tests are those of {hidden}: say them in a placement.toml")
    yield from (job_of(name, _devices_of_step(step), call) for call in named.calls)


def _within(around: Mapping[str, Any], step: Mapping[str, Any]) -> Mapping[str, Any]:
    """A step with what a pipeline or a group says of all of its steps."""
    return {key: around[key] for key in ("agents", "env") if key in around} | dict(step)


def _devices_of_step(step: Mapping[str, Any]) -> int:
    """Devices by a number in the step, else by the names of its machines; in vLLM's pipelines, one without either."""
    for key in COUNT_KEYS:
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
