"""Every attempt of a test that a history tells of, as columns: there are tens of millions. Needs numpy."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from sooner.analysis.trunk.facts import Status
from sooner.analysis.trunk.job_names import base_name
from sooner.history import History, HistoryOutcome, Texts, Where
from sooner.history.outcomes import BROKEN

Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]

_TEXTS: Final = ("job", "unit", "node_id", "variant", "commit", "run", "outcome", "kind", "branch")
_COLUMNS: Final = ("job", "name", "variant", "commit", "run", "unit", "started", "seconds", "is_case")
_WORDS: Final = (
    (Status.SUCCESS, frozenset({HistoryOutcome.PASSED.value})),
    (Status.FAILURE, frozenset(outcome.value for outcome in BROKEN)),
    (Status.PENDING, frozenset({HistoryOutcome.RUNNING.value})),
)
"""What the attempts of one run come to: the first of these that any of them is; else nothing."""


class Attempts(NamedTuple):
    """A row for each attempt, and what the numbers stand for. -1 is what nobody tells."""

    job: Codes
    """Without shard and runner; with its workflow where the job of its run is known."""
    jobs: list[str]
    name: Codes
    """The node id; of a unit without one the unit."""
    names: list[str]
    variant: Codes
    variants: list[str]
    commit: Codes
    commits: list[str]
    run: Codes
    runs: list[str]
    unit: Codes
    """Also of a case."""
    units: list[str]
    started: NDArray[np.float64]
    """Epoch seconds, or NaN."""
    seconds: NDArray[np.float64]
    is_case: Flags
    """Whether it has a node id."""
    came_to: dict[Status, Flags]

    def at(self, rows: Any) -> "Attempts":
        """Some of the rows."""
        columns = {key: getattr(self, key)[rows] for key in _COLUMNS}
        came_to = {status: flags[rows] for status, flags in self.came_to.items()}
        return self._replace(**columns, came_to=came_to)


def read_attempts(history: History, where: Where) -> Attempts:
    """Attempts of units and cases, in any order.

    Args:
        history: Where from.
        where: Which rows. Tests know no event, and their workflow only by their run; those that know none, or no
            branch, are of any.
    """
    told = Where(repository=where.repository, since=where.since, until=where.until)
    columns = history.columns("tests", [*_TEXTS, "started", "seconds"], told, ordered=False)
    texts = {name: columns.text(name) for name in _TEXTS}
    jobs, base_of = folded(texts["job"].names, base_name)
    names, code_of = folded([*texts["node_id"].names, *texts["unit"].names], str)
    cases = len(texts["node_id"].names)
    of_unit = np.append(code_of[cases:-1], -1)
    is_case = texts["node_id"].codes >= 0
    flow_of, flows = _workflows(history, where.repository, texts["run"].names)
    flow = flow_of[texts["run"].codes]
    job, jobs = _in_workflows(base_of[texts["job"].codes], jobs, flow, flows)
    every = Attempts(
        job=job,
        jobs=jobs,
        name=np.where(is_case, code_of[texts["node_id"].codes], of_unit[texts["unit"].codes]),
        names=names,
        variant=texts["variant"].codes.astype(np.int64),
        variants=texts["variant"].names,
        commit=texts["commit"].codes,
        commits=texts["commit"].names,
        run=texts["run"].codes,
        runs=texts["run"].names,
        unit=texts["unit"].codes,
        units=texts["unit"].names,
        started=columns.number("started"),
        seconds=columns.number("seconds"),
        is_case=is_case,
        came_to=came_to(texts["outcome"]),
    )
    counts = ~is_any(texts["kind"], {"summary"})
    if where.branch:
        counts &= (texts["branch"].codes < 0) | is_any(texts["branch"], {where.branch})
    if where.workflow:
        counts &= (flow < 0) | is_any(Texts(flow, flows), {where.workflow})
    return every.at(counts)


def branches_of(history: History, where: Where) -> Counter[str]:
    """How many attempts of tests tell of each branch."""
    columns = history.columns("tests", ["branch"], replace(where, workflow="", branch=""), ordered=False)
    codes, names = columns.text("branch")
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    return Counter({name: int(count) for name, count in zip(names, counts, strict=True) if count})


def _workflows(history: History, repository: str, runs: Sequence[str]) -> tuple[Codes, list[str]]:
    """Of each run (and last of none) the workflow, by its jobs; -1 where none is known, or several are."""
    columns = history.columns("jobs", ["run", "workflow"], Where(repository=repository), ordered=False)
    told, flows = columns.text("run"), columns.text("workflow")
    is_known = (told.codes >= 0) & (flows.codes >= 0)
    pairs = np.unique(told.codes[is_known].astype(np.int64) * len(flows.names) + flows.codes[is_known])
    found: dict[str, int] = {}
    for pair in pairs.tolist():
        run = told.names[pair // len(flows.names)]
        found[run] = -1 if run in found else pair % len(flows.names)
    return np.array([*(found.get(run, -1) for run in runs), -1], dtype=np.int64), flows.names


def _in_workflows(job: Codes, jobs: Sequence[str], flow: Codes, flows: Sequence[str]) -> tuple[Codes, list[str]]:
    """Jobs with their workflows: the new code of each row, and the names."""
    widest = len(flows) + 1
    pair = (job + 1) * widest + flow + 1
    is_there = np.zeros((len(jobs) + 1) * widest, dtype=bool)
    is_there[pair] = True
    is_there[0] = False  # neither is known
    there = np.flatnonzero(is_there).tolist()
    labels = [_label(name_of(flows, one % widest - 1), name_of(jobs, one // widest - 1)) for one in there]
    names, code_of = folded(labels, str)
    place = np.where(is_there, np.cumsum(is_there) - 1, -1)
    return code_of[place[pair]], names


def _label(workflow: str, job: str) -> str:
    has_both = job == workflow or job.startswith(f"{workflow} / ")
    return job if has_both else " / ".join(filter(None, (workflow, job)))


def folded(names: Sequence[str], fold: Callable[[str], str]) -> tuple[list[str], Codes]:
    """Names that are the same after folding have one code: the names, and the new code of each old one (-1 of -1)."""
    codes: dict[str, int] = {}
    new = [codes.setdefault(fold(name), len(codes)) for name in names]
    return list(codes), np.array([*new, -1], dtype=np.int64)


def came_to(outcomes: Texts) -> dict[Status, Flags]:
    """Which rows passed, failed or run."""
    return {status: is_any(outcomes, words) for status, words in _WORDS}


def is_any(texts: Texts, words: Collection[str]) -> Flags:
    """Which rows have one of these words."""
    flags: Flags = np.array([name in words for name in texts.names] + [False], dtype=bool)[texts.codes]
    return flags


def name_of(names: Sequence[str], code: int) -> str:
    """What a number stands for; empty where nobody told."""
    return names[code] if code >= 0 else ""


def first_of_each(*keys: Codes) -> Codes:
    """Where in sorted rows a new key begins."""
    if not len(keys[0]):
        return np.zeros(0, dtype=np.int64)
    new = np.logical_or.reduce([np.diff(key) != 0 for key in keys])
    return np.concatenate([[0], np.flatnonzero(new) + 1])


def are_among(values: Codes, known: Codes) -> Flags:
    """Which values are among some that are sorted."""
    if not len(known):
        return np.zeros(len(values), dtype=bool)
    flags: Flags = known[np.searchsorted(known, values).clip(max=len(known) - 1)] == values
    return flags
