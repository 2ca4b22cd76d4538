"""Where GitLab CI runs the tests: jobs with what they extend and include, their matrices, tags and scripts.

Source: docs.gitlab.com/ci/yaml (`default`, `extends`, `include`, `inherit`, `parallel:matrix`, `!reference`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any, Final

from sooner.cli.needs_commands import hidden_in, named_in, shown_in
from sooner.cli.needs_labels import devices_of_label, names_none
from sooner.cli.needs_parts import COUNT_KEYS, Reference, job_of, mappings_in, yaml_of
from sooner.model.errors import SettingsError
from sooner.plan.needs.placement import Job

_NO_JOBS: Final = frozenset({
    "default", "include", "stages", "types", "variables", "workflow", "image", "services", "cache", "before_script",
    "after_script", "spec",
})  # fmt: skip
"""Words of the file itself."""
_OF_DEFAULT: Final = ("before_script", "tags")
"""What `default` says, or the file itself as it was once written, that matters here."""
_VARIABLE: Final = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_ASKED: Final = re.compile(r"(?:--gres[= ]gpu(?::[\w.-]+?)?|--gpus(?:-per-(?:node|task))?|-G)(?:[=: ]|(?<=G))(\d+)")
"""Devices that a batch system is asked for, in the variables that such runners read (`SCHEDULER_PARAMETERS`)."""
_DEEPEST: Final = 8
_MOST_ROWS: Final = 512


def of_gitlab(document: Mapping[str, Any], path: Path, notes: list[str]) -> list[Job] | None:
    """What the jobs of a file run; None where it is none of GitLab's.

    Args:
        document: The file.
        path: Where it lies.
        notes: Gets what of it could not be known.
    """
    left: list[str] = []
    folders = path.absolute().parents
    root = next((each for each in folders if (each / ".git").exists()), folders[0])
    whole = _included(document, path, left, root, {path.resolve()})
    names = [name for name, job in whole.items() if name not in _NO_JOBS and isinstance(job, dict)]
    if not any("script" in whole[name] for name in names):
        return None
    notes.extend(left)
    found = [job for name in names if not name.startswith(".") for job in _of_job(whole, name, path, notes)]
    return list(dict.fromkeys(found))


def _of_job(whole: Mapping[str, Any], name: str, path: Path, notes: list[str]) -> Iterator[Job]:
    """A job: once for each row of its matrix."""
    job = _told(whole, _extended(whole, name))
    if job.get("when") == "never" or job.get("rules") == [{"when": "never"}]:
        notes.append(f"{path}: job {name}: it is switched off (`when: never`), and runs nothing")
        return
    lines = [line for key in ("before_script", "script") for line in _lines(whole, job.get(key), 0)]
    doubts: dict[str, None] = {}
    for row in _rows(job):
        variables = job["variables"] | row
        text = "\n".join(_filled(each, variables) for each in lines)
        named = named_in(text, "", shown_in(variables))
        tags = _filled(" ".join(_lines(whole, job.get("tags"), 0)), variables)
        devices = _devices(tags, variables)
        if named.unknown:
            doubts["its tests are computed: " + " ".join(named.unknown)] = None
        elif not named.calls and (devices or (tags and not names_none(tags))) and (hidden := hidden_in(text)):
            doubts[f"its tests are those of {hidden}"] = None
        if named.calls and devices is None:
            doubts[f"the devices of its runner {tags!r} are not known"] = None
        elif named.calls and not devices and not names_none(tags):
            what = f"its runner {tags!r} names no devices" if tags else "it has no tags"
            doubts[f"{what}, and is taken to have none"] = None
        yield from (job_of(name, devices, call) for call in named.calls if devices is not None)
    notes.extend(f"{path}: job {name}: {each}: say them in a placement.toml" for each in doubts)


def _included(document: Mapping[str, Any], path: Path, notes: list[str], root: Path, seen: set[Path]) -> dict[str, Any]:
    """The file with those of the same repository that it includes; what both say is said by the one that includes.

    Args:
        document: The file.
        path: Where it lies.
        notes: Gets what is not read.
        root: The repository.
        seen: Files that were read: each is once.
    """
    asked = document.get("include", [])
    found: dict[str, Any] = {}
    for each in asked if isinstance(asked, list) else [asked]:
        local = each.get("local") if isinstance(each, dict) else each if "://" not in str(each) else None
        files = [] if local is None else _files_of(str(local), root)
        if not files:
            what = _values(each) if local is None else [local]
            notes.append(f"{path}: what it includes is not read: {' '.join(map(str, what))}")
        for file in files:
            if file in seen:
                continue
            seen.add(file)
            try:
                inner = yaml_of(file.read_text(encoding="utf-8-sig"), file)
            except (OSError, UnicodeDecodeError, SettingsError) as error:
                notes.append(f"{path}: what it includes cannot be read: {file}: {error}")
                continue
            if isinstance(inner, dict):
                found = _merged(found, _included(inner, file, notes, root, seen))
    return _merged(found, document)


def _files_of(local: str, root: Path) -> list[Path]:
    """Files by their path from the root of the repository: `*` is within a folder, `**` any number of them."""
    pattern = re.sub(r"\*\*(?!/)", "**/*", local.strip("/"))
    try:
        found = [each.resolve() for each in root.glob(pattern)] if pattern else []
    except (ValueError, OSError):  # no pattern, or no path
        return []
    return sorted(each for each in found if each.is_file() and each.is_relative_to(root.resolve()))


def _extended(whole: Mapping[str, Any], name: str, within: tuple[str, ...] = ()) -> dict[str, Any]:
    """A job with what it extends, the last of them first in weight, and its own words before all."""
    job = whole.get(name)
    if not isinstance(job, dict) or name in within or len(within) > _DEEPEST:
        return {}
    found: dict[str, Any] = {}
    for each in dict.fromkeys(_words(job.get("extends"))):
        found = _merged(found, _extended(whole, each, (*within, name)))
    return _merged(found, job)


def _told(whole: Mapping[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    """A job with what the file says of all of them, unless it does not take that over."""
    inherit = job["inherit"] if isinstance(job.get("inherit"), dict) else {}
    default = whole["default"] if isinstance(whole.get("default"), dict) else {}
    of_all = {key: default.get(key, whole.get(key)) for key in _OF_DEFAULT if key in default or key in whole}
    variables = _taken(_variables(whole.get("variables")), inherit.get("variables", True))
    variables |= _variables(_meant(whole, job.get("variables")))
    return {**_taken(of_all, inherit.get("default", True)), **job, "variables": variables}


def _taken(said: Mapping[str, Any], which: object) -> dict[str, Any]:
    return {key: each for key, each in said.items() if which is True or (isinstance(which, list) and key in which)}


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings are merged key by key; anything else is replaced."""
    found = dict(under)
    for key, value in over.items():
        before = found.get(key)
        found[key] = _merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return found


def _rows(job: Mapping[str, Any]) -> list[dict[str, str]]:
    """The variables of each row of `parallel: matrix`; one row without any where there is none."""
    parallel = job.get("parallel")
    entries = mappings_in(parallel.get("matrix")) if isinstance(parallel, dict) else []
    rows: list[dict[str, str]] = []
    for entry in entries:
        axes = [_words(each) for each in entry.values()]
        rows += [dict(zip(map(str, entry), values, strict=True)) for values in islice(product(*axes), _MOST_ROWS)]
    return rows or [{}]


def _lines(whole: Mapping[str, Any], part: Any, depth: int) -> Iterator[str]:
    """The lines of a script: lists may hold lists, and what stands elsewhere in the file (`!reference`)."""
    if depth > _DEEPEST:
        return
    if isinstance(part, Reference):
        yield from _lines(whole, _meant(whole, part), depth + 1)
    elif isinstance(part, list):
        for each in part:
            yield from _lines(whole, each, depth + 1)
    elif part is not None:
        yield str(part)


def _meant(whole: Mapping[str, Any], part: Any) -> Any:
    """What a reference names; anything else itself."""
    if not isinstance(part, Reference):
        return part
    name, *keys = map(str, part) if part else ("",)
    found: Any = _extended(whole, name)
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _devices(tags: str, variables: Mapping[str, str]) -> int | None:
    """Devices by a variable that is called so, by what a batch system is asked for, else by the runner's tags."""
    for name, value in variables.items():
        if name.lower() in COUNT_KEYS and value.isdecimal():
            return int(value)
    for name, value in variables.items():
        if asked := _ASKED.search(value):
            return int(asked[1])
        if name.upper() in ("SLURM_GPUS", "SLURM_GPUS_PER_NODE") and value.isdecimal():
            return int(value)
    return devices_of_label(tags)


def _variables(part: Any) -> dict[str, str]:
    """Variables, which may say more than their value."""
    said = part.items() if isinstance(part, dict) else ()
    values = ((str(name), each.get("value") if isinstance(each, dict) else each) for name, each in said)
    return {name: str(value) for name, value in values if value is not None}


def _filled(text: str, variables: Mapping[str, str]) -> str:
    """Text with the variables that are known; what is unknown stays."""
    for _ in range(_DEEPEST):  # a variable may name others
        before, text = text, _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], found[0]), text)
        if text == before:
            break
    return text


def _values(part: Any) -> Sequence[Any]:
    return list(part.values()) if isinstance(part, dict) else [part]


def _words(part: Any) -> list[str]:
    """The words of a list, or the one that stands for a list of one."""
    return [] if part is None else [str(each) for each in part] if isinstance(part, list) else [str(part)]
