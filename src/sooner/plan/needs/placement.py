"""What tests declare, what they need, and where CI runs them, compared."""

import ast
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from sooner.model.errors import SettingsError
from sooner.model.patterns import any_of
from sooner.plan.needs.facts import TestNeeds, Verdict

_DECLARED: Final = (
    re.compile(r"(?:skip_if_lt_x_gpu|multi_gpu|requires_world_size|gpus|require_n_gpus_for_nccl_backend)\(\s*(\d+)"),
    re.compile(r"(?:min_cuda_gpus|num_gpus|num_devices|ngpu)\s*=\s*(\d+)"),
    re.compile(r"mark\.world_size\(\s*(\d+)"),
    re.compile(r"device_count\(\)\s*<\s*(\d+)"),
)
_KEYWORD: Final = re.compile(r"[\w:+\-.\[\]\\/]+")
_ONE_MORE: Final = re.compile(r"device_count\(\)\s*(?:<=|>)\s*(\d+)")
_AT_MOST: Final = re.compile(r"skip_?if\b(?!.*\bnot\b).*?device_count\(\)\s*>", re.IGNORECASE)
"""Skips where there are more than some number: that asks for none."""
_WORDS: Final = {
    "require_multi": 2,
    "skip_if_single_gpu": 2,
    "less_than_four_gpu": 4,
    "require_cuda": 1,
    "skip_if_no_cuda": 1,
}


class Job(Struct, frozen=True, kw_only=True):
    """One job of CI: what it runs, on how many devices."""

    name: str
    devices: int
    paths: tuple[str, ...]
    """Patterns of files or node ids."""
    without: tuple[str, ...] = ()
    """Patterns of what of them it does not run."""
    keyword: str = ""
    """Runs only what this expression chooses, as `pytest -k` does; of a test's names, its marks are not known."""

    def runs(self, nodeid: str) -> bool:
        """Whether a test is one of the job's."""
        return _is_any(nodeid, self.paths) and not _is_any(nodeid, self.without) and is_chosen(self.keyword, nodeid)


class Difference(Struct, frozen=True, kw_only=True):
    """One test whose declaration, need and placement do not agree."""

    nodeid: str
    kind: str
    """`over-declared`, `under-declared`, `orphan`, `below full`, `not placed`."""
    declared: int | None
    needed: int | None
    full: int | None
    placed: tuple[int, ...]
    """Devices of the jobs that run it."""
    detail: str


def placement_of(text: str, source: str) -> list[Job]:
    """Jobs from a placement file.

        [[job]]
        name = "distributed"
        devices = 2
        paths = ["test/distributed/*"]

    Raises:
        SettingsError: Not TOML, or a job without what it needs.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{source}: {error}") from None
    entries = document.get("job", [])
    if unknown := sorted(document.keys() - {"job"}):
        raise SettingsError(f"{source}: {unknown[0]} is unknown: each job of a placement is a [[job]]")
    if not isinstance(entries, list):
        raise SettingsError(f"{source}: each job of a placement is a [[job]], with two brackets")
    return [_job(entry, source, number) for number, entry in enumerate(entries, 1)]


def _job(entry: Any, source: str, number: int) -> Job:
    paths = entry.get("paths") if isinstance(entry, dict) else None
    devices = entry.get("devices") if isinstance(entry, dict) else None
    if not isinstance(paths, list) or type(devices) is not int or devices < 0:
        raise SettingsError(
            f"{source}: job {number}: a [[job]] has `name`, `devices` (a number) and `paths` (patterns)"
        )
    if unknown := sorted(entry.keys() - {"name", "devices", "paths", "without", "keyword"}):
        raise SettingsError(
            f"{source}: job {number}: {unknown[0]} is unknown: a [[job]] has `name`, `devices`, `paths`, `without`,"
            " `keyword`"
        )
    without = entry.get("without", [])
    if not isinstance(without, list):
        raise SettingsError(f"{source}: job {number}: `without` is a list of patterns")
    return Job(
        name=str(entry.get("name", number)),
        devices=devices,
        paths=tuple(map(str, paths)),
        without=tuple(map(str, without)),
        keyword=str(entry.get("keyword", "")),
    )


def declared_of(needs: TestNeeds) -> int | None:
    """The number of devices that a test's own guards name, by their words; None where they name none."""
    numbers: list[int] = []
    for each in needs.evidence:
        numbers += [int(match) for pattern in _DECLARED for match in pattern.findall(each.text)]
        numbers += [int(match) + 1 for match in _ONE_MORE.findall(each.text) if not _AT_MOST.search(each.text)]
        numbers += [count for word, count in _WORDS.items() if word in each.text]
    return max(numbers, default=None)


def differences(found: Sequence[TestNeeds], jobs: Sequence[Job]) -> list[Difference]:
    """Every disagreement, tests in order. Without jobs, declarations and needs alone are compared."""
    result: list[Difference] = []
    for needs in found:
        placed = tuple(sorted({job.devices for job in jobs if job.runs(needs.nodeid)}))
        result += [_difference(needs, kind, detail, placed) for kind, detail in _kinds(needs, placed, bool(jobs))]
    return result


def _difference(needs: TestNeeds, kind: str, detail: str, placed: tuple[int, ...]) -> Difference:
    needed = _need(needs)
    return Difference(
        nodeid=needs.nodeid,
        kind=kind,
        declared=declared_of(needs),
        needed=needed,
        full=needs.full if isinstance(needs.full, int) else None,
        placed=placed,
        detail=detail,
    )


def _kinds(needs: TestNeeds, placed: tuple[int, ...], has_jobs: bool) -> list[tuple[str, str]]:  # noqa: FBT001 - private
    kinds: list[tuple[str, str]] = []
    declared, needed = declared_of(needs), _need(needs)
    touched = max(needs.devices.values(), default=0)
    enough = max(touched, *needs.reach.values(), 0)
    if declared is not None and needed is not None and needed > declared and _fails_at(needs, declared):
        kinds.append(("under-declared", f"its guard lets it through at {declared}, where it fails: it needs {needed}"))
    if declared is not None and 0 < touched <= enough < declared and not needs.adaptive:
        there = f", for which {enough} must be visible" if enough > touched else ""
        kinds.append(("over-declared", f"its guard asks for {declared}, and it touches {touched}{there}"))
    if has_jobs:
        kinds += _placing(needs, placed)
    return kinds


def _placing(needs: TestNeeds, placed: tuple[int, ...]) -> list[tuple[str, str]]:
    if needs.min is None or needs.min == "unknown":
        return []
    if not placed:
        return [("not placed", "no job runs it")]
    runs = tuple(size for size in placed if _runs_at(needs, size))
    if not runs:
        return [("orphan", f"no job can execute it: it runs from {needs.min} devices on, jobs have {_listed(placed)}")]
    if isinstance(needs.gpu_min, int) and max(runs) < needs.gpu_min:
        return [("orphan", f"runs on devices from {needs.gpu_min} on, jobs have {_listed(placed)}")]
    if isinstance(needs.full, int) and max(runs) < needs.full:
        return [("below full", f"is covered in full with {needs.full} devices, jobs have {_listed(placed)}")]
    return []


def _listed(sizes: tuple[int, ...]) -> str:
    return ", ".join(map(str, sizes))


def _runs_at(needs: TestNeeds, size: int) -> bool:
    """Whether it runs at a size; of sizes beside the profile's, the fewest that lies between counts, else the next."""
    known = sorted(map(int, needs.profile))
    nearest = max((each for each in known if each <= size), default=known[0])
    if isinstance(needs.min, int) and nearest < needs.min <= size:
        return True
    return needs.profile[str(nearest)] in (Verdict.RUN, Verdict.UNKNOWN)


def _fails_at(needs: TestNeeds, size: int) -> bool:
    return needs.profile.get(str(size)) is Verdict.FAIL


def _need(needs: TestNeeds) -> int | None:
    for value in (needs.gpu_min, needs.min):
        if isinstance(value, int):
            return value
    return None


def _is_any(nodeid: str, patterns: Sequence[str]) -> bool:
    """Whether any pattern means a test, its file or a folder above that; thousands of both are compared."""
    names, folders = any_of(tuple(patterns)), _below(tuple(patterns))
    path = nodeid.partition("::")[0]
    return bool(names.match(nodeid) or names.match(path) or folders.match(path))


@lru_cache(maxsize=1024)
def _below(folders: tuple[str, ...]) -> re.Pattern[str]:
    """What matches the paths of files below any of some folders."""
    return re.compile("|".join(dict.fromkeys(f"{re.escape(each.rstrip('/'))}/" for each in folders)) or "(?!)")


def is_chosen(keyword: str, nodeid: str) -> bool:
    """Whether `pytest -k` chooses a test, by the names of its folders, file, classes and function.

    An expression that is not understood chooses everything.
    """
    names = [name.lower() for name in re.split(r"/|::", nodeid)]

    def known(word: re.Match[str]) -> str:
        is_operator = word[0] in ("and", "or", "not")
        return word[0] if is_operator else str(any(word[0].lower() in name for name in names))

    try:
        return _truth(ast.parse(_KEYWORD.sub(known, keyword).strip() or "True", mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True


def _truth(node: ast.expr) -> bool:
    match node:
        case ast.BoolOp(op=ast.And()):
            return all(map(_truth, node.values))
        case ast.BoolOp():
            return any(map(_truth, node.values))
        case ast.UnaryOp(op=ast.Not()):
            return not _truth(node.operand)
        case ast.Constant(value=bool(value)):
            return value
    raise ValueError("not an expression of keywords")


def counted(found: Sequence[Difference]) -> Mapping[str, int]:
    """How many of each kind."""
    return {kind: sum(each.kind == kind for each in found) for kind in dict.fromkeys(each.kind for each in found)}
