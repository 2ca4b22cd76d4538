"""What the readers of the files of CI share: YAML, what is switched off or hides devices, what a command runs."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sooner.cli.needs_commands import EVERYTHING, Call, shown_in
from sooner.model.errors import SettingsError, UsageError
from sooner.plan.needs.placement import Job
from sooner.workflows.reading import with_spaces

COUNT_KEYS: Final = ("num_devices", "num_gpus", "gpus", "num-gpus", "gpu_count", "devices")
"""What a number of devices is called."""


class Reference(list[Any]):
    """Where in a file of GitLab's something else stands (`!reference [.setup, script]`)."""


_NEVER: Final = ("false", "${{ false }}", "${{false}}")


def yaml_of(text: str, path: Path) -> Any:
    """What a text of YAML says.

    Raises:
        UsageError: What reads YAML is not installed.
        SettingsError: It is no YAML.
    """
    try:
        from ruamel.yaml import YAML
        from ruamel.yaml.constructor import SafeConstructor
        from ruamel.yaml.error import YAMLError
    except ImportError:
        raise UsageError(f"--placement {path} is YAML: pip install 'sooner[workflows]' to read it") from None

    class Constructor(SafeConstructor):
        """Knows what GitLab adds to YAML."""

    Constructor.add_constructor("!reference", lambda reader, node: Reference(reader.construct_sequence(node)))
    reader = YAML(typ="safe", pure=True)
    reader.Constructor = Constructor
    try:
        return reader.load(with_spaces(text))
    except (YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise SettingsError(f"{path}{f':{mark.line + 1}' if mark else ''} is not YAML: {problem}") from None


def mappings_in(part: Any) -> list[Mapping[str, Any]]:
    """The mappings of a list; of what is none, none."""
    return [each for each in part if isinstance(each, dict)] if isinstance(part, list) else []


def is_off(part: Mapping[str, Any]) -> bool:
    """Whether a job, or a step, is switched off."""
    return str(part.get("if", "")).strip().lower() in _NEVER


def shown_to(part: Mapping[str, Any], most: int | None = None) -> int | None:
    """How many devices the environment of a workflow, a job or a step shows; `most` where it says nothing."""
    own = shown_in(part["env"]) if isinstance(part.get("env"), dict) else None
    return most if own is None else own


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


def job_of(name: str, devices: int, call: Call) -> Job:
    """What one call of pytest runs, on the devices of its runner that it sees."""
    ignored = _patterns(call.without, folder=call.folder) + _patterns(call.deselected, ("*",))
    return Job(
        name=name,
        devices=devices if call.shown is None else min(devices, call.shown),
        paths=_patterns(call.paths, folder=call.folder),
        without=ignored + tuple(f"{start}{each}" for each in call.globs for start in ("", "*/")),
        keyword=call.keyword,
    )
