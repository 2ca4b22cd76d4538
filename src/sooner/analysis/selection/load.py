"""Rows of the history as the record of one branch. Needs numpy."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from sooner.analysis.selection.facts import Flags, Indices, Numbers, Record, State, numbered, recorded
from sooner.analysis.selection.records import Kept, Verdict
from sooner.history import (
    Columns,
    History,
    HistoryOutcome,
    Texts,
    Where,
    check_one_repository,
    lands_on,
    of_requests,
    trunk_among,
    unknown_name,
)
from sooner.history.outcomes import BROKEN
from sooner.model.errors import UsageError

_STATES: Final[Mapping[str, State]] = {
    HistoryOutcome.PASSED: State.PASSED,
    HistoryOutcome.SKIPPED: State.SKIPPED,
    HistoryOutcome.SKIPPED_NO_DEVICES: State.SKIPPED,
    HistoryOutcome.CANCELLED: State.CANCELLED,
    HistoryOutcome.INFRASTRUCTURE: State.INFRASTRUCTURE,
    **dict.fromkeys(BROKEN, State.FAILED),
}
_TEXTS: Final = ("workflow", "run", "job", "commit", "branch", "event", "runner", "outcome")
_TIMES: Final = ("created", "queued", "started", "completed", "closed", "pull_request")
_MINUTE: Final = 60.0
_UNTIMED_S: Final = 1.0
"""A job without an end took at least this: its outcome is not known the moment that it starts."""

_PARTS: Final = re.compile(r" \(| / ")
"""What stands between the name of a matrix, or of a called workflow, and the part that tells its jobs apart."""
_EXPRESSION: Final = "${{"
_MOST_NAMED: Final = 5

EVERYTHING_MEASURE: Final = "selection.everything"
RECALL_MEASURE: Final = "selection.recall"
DROPPED_MEASURE: Final = "selection.dropped"
"""Names under which `for-change --record` keeps what was selected; the last has a row for each job (`subject`)."""

FOLDED_2019: Final = ("_build", "_test", "-build", "-test", "_multigpu", "_NO_AVX_NO_AVX2", "_NO_AVX2")
"""Suffixes that "PyTorch CI deduplication" (2019) strips, one after the other."""


def trunk(history: History, where: Where) -> tuple[Record, list[str]]:
    """All attempts on one branch of one repository, and what a reader should know about how they were chosen.

    Attempts on pull requests are left out: a change that never landed broke nothing, and mended nothing either. Those
    of a merge queue count: they were about to land, and may be all that there is.

    Raises:
        UsageError: The history holds nothing to select from, or several repositories.
    """
    anywhere = replace(where, branch="")
    rows = history.columns("jobs", [*_TEXTS, *_TIMES], anywhere, ordered=False)
    branches = _branches(rows)
    asked_for = np.ones(len(rows), dtype=bool)
    if where.branch:
        asked_for = branches.codes == _code(branches, lands_on(where.branch))
    if not asked_for.any():
        nothing = "the history holds no jobs to select from: `sooner ingest` takes them in"
        raise UsageError(unknown_name(history, where) or nothing)
    notes: list[str] = []
    check_one_repository(history, where, "jobs")
    chosen = _landed(rows, branches, asked_for, notes)
    facts = _record(rows, chosen, partial(_failure_lines, history, anywhere), notes)
    if lost := int(asked_for.sum()) - len(facts.known):
        notes.append(f"{lost:,} attempts say nothing here (other branches, still running, without a time)")
    return facts, notes


def _branches(rows: Columns) -> Texts:
    """The branch that each row is about."""
    codes, names = rows.text("branch")
    known = sorted({lands_on(name) for name in names})
    place = {name: code for code, name in enumerate(known)}
    return Texts(np.array([place[lands_on(name)] for name in names] + [-1], dtype=np.int32)[codes], known)


def _code(texts: Texts, name: str) -> int:
    """The number of a text; one that nothing has where there is none."""
    return texts.names.index(name) if name in texts.names else len(texts.names)


def _landed(rows: Columns, branches: Texts, asked_for: Flags, notes: list[str]) -> Flags:
    """Which rows are about commits of the branch."""
    chosen: Flags = asked_for & (rows.text("commit").codes >= 0) & (rows.text("job").codes >= 0)
    if lacking := int((asked_for & ~chosen).sum()):
        notes.append(f"{lacking:,} attempts without commit or job are left out")
    landed = ~of_requests(rows)
    if chosen.any() and not (chosen & landed).any():
        raise UsageError(f"all {int(chosen.sum()):,} attempts are on pull requests: ingest those of the trunk too")
    chosen &= landed
    codes, names = branches
    found, counts = np.unique(codes[chosen & (codes >= 0)], return_counts=True)
    if len(found) > 1:
        known = {names[code]: int(count) for code, count in zip(found, counts, strict=True)}
        best = trunk_among(known)
        chosen &= codes == names.index(best)
        notes.append(f"of {len(known)} branches only {best!r} is used (--branch names another one)")
    return chosen


_Lines = Callable[[Sequence[str]], Mapping[tuple[str, str], str]]


def _record(rows: Columns, chosen: Flags, lines: _Lines, notes: list[str]) -> Record:
    state = _states(rows)
    asked, started = _first(rows, "created", "queued", "started", "completed"), rows.number("started")
    known = _first(rows, "completed", "closed")
    chosen = chosen & (state != State.NOT_RUN) & np.isfinite(asked)
    chosen &= ~_unexpanded(rows, chosen, state, asked, notes)
    if not chosen.any():
        raise UsageError("no job of the history has a commit, an outcome and a time: nothing can be put in order")
    seconds = rows.number("completed") - started
    typical = float(np.nanmedian(seconds[chosen])) if np.isfinite(seconds[chosen]).any() else _UNTIMED_S
    known = np.where(np.isfinite(known), known, np.fmax(asked, started) + max(typical, _UNTIMED_S))
    known = np.maximum(known, asked)  # clocks differ: nothing is known before it is asked for
    jobs, names = _job_names(rows, chosen)
    commit, commits = _packed(rows.text("commit").codes[chosen], rows.text("commit").names)
    state = _blocked(rows, state, known)
    runners = _runners(rows, chosen, jobs, len(names), known)
    places = {name: i for i, name in enumerate(names)}
    at = {sha: i for i, sha in enumerate(commits)}
    kept = {(at[c], places[j]): line for (c, j), line in lines(names).items() if c in at and j in places}
    return recorded(
        commits,
        names,
        commit=commit,
        job=jobs,
        state=state[chosen],
        asked=asked[chosen],
        known=known[chosen],
        minutes=np.maximum(seconds[chosen], 0.0) / _MINUTE,  # clocks differ
        wait_min=np.maximum(started - _first(rows, "queued", "created"), 0.0)[chosen] / _MINUTE,
        runner=runners,
        failure_lines=kept,
    )


def _states(rows: Columns) -> Any:
    codes, names = rows.text("outcome")
    table = np.array([_STATES.get(name, State.NOT_RUN) for name in names] + [State.NOT_RUN], dtype=np.int8)
    return table[codes]


def _first(rows: Columns, *names: str) -> Numbers:
    """The first of these times that is known."""
    found: Numbers = rows.number(names[0])
    for name in names[1:]:
        found = np.where(np.isfinite(found), found, rows.number(name))
    return found


def _packed(codes: Indices, names: Sequence[str]) -> tuple[Indices, list[str]]:
    """Codes without gaps, and the names of those that are left."""
    present, packed, _ = numbered(codes, len(names))
    return packed, [names[code] for code in present]


def _job_names(rows: Columns, chosen: Flags) -> tuple[Indices, list[str]]:
    """Jobs by name; a name that several workflows have on the same commits is told apart by its workflow."""
    codes, names = rows.text("job")
    flows, flow_names = rows.text("workflow")
    width = len(flow_names) + 1  # one for jobs without a workflow
    pairs, packed, _ = numbered(codes[chosen].astype(np.int64) * width + flows[chosen] + 1, len(names) * width)
    shared = np.bincount(pairs // width, minlength=len(names)) > 1
    labels = [
        _beside(flow_names[flow - 1], names[code]) if shared[code] and flow else names[code]
        for code, flow in zip((pairs // width).tolist(), (pairs % width).tolist(), strict=True)
    ]
    unique = sorted(set(labels))
    place = {label: i for i, label in enumerate(unique)}
    return np.array([place[label] for label in labels], dtype=np.int64)[packed], unique


def _unexpanded(rows: Columns, chosen: Flags, state: Any, asked: Numbers, notes: list[str]) -> Flags:
    """Whole matrices and called workflows that did not run: GitHub shows one, by the name that its jobs begin with.

    Nothing can run such a name. A job of that name is told from it by having run since there are the others.
    """
    (jobs, names), flows = rows.text("job"), rows.text("workflow").codes
    shape = (int(flows.max(initial=-1)) + 2, len(names))  # the last workflow: none
    first, last, parted = np.full(shape, np.inf), np.full(shape, -np.inf), np.full(shape, np.inf)
    has_run = (state == State.PASSED) | (state == State.FAILED) | (state == State.INFRASTRUCTURE)
    ran = chosen & has_run
    np.minimum.at(first, (flows[ran], jobs[ran]), asked[ran])
    np.maximum.at(last, (flows[ran], jobs[ran]), asked[ran])
    place = {name: code for code, name in enumerate(names)}
    for code, name in enumerate(names):
        for part in _PARTS.finditer(name):
            if (whole := place.get(name[: part.start()])) is not None:
                parted[:, whole] = np.minimum(parted[:, whole], first[:, code])
        if _EXPRESSION in name:
            parted[:, code] = -np.inf
    never = np.isneginf(last)
    parted[never & np.isfinite(parted)] = -np.inf
    parted[~never & (last >= parted)] = np.inf
    found: Flags = chosen & ~has_run & (asked >= parted[flows, jobs])
    if found.any():
        told = [repr(names[code]) for code in np.unique(jobs[found]).tolist()]
        more = f" and {len(told) - _MOST_NAMED} more" if len(told) > _MOST_NAMED else ""
        notes.append(f"skipped whole, so these names are no jobs: {', '.join(told[:_MOST_NAMED])}{more}")
    return found


def _beside(workflow: str, job: str) -> str:
    return f"{workflow} / {job}"


def _known_as(rows: Columns, some: Indices, known: Sequence[str]) -> list[str]:
    """The names of the jobs of some rows: behind the workflow where that is how one is known. Empty for none."""
    jobs, names = rows.text("job")
    flows, flow_names = rows.text("workflow")
    width, among = len(flow_names) + 1, frozenset(known)
    pairs, place = np.unique((jobs[some] + 1).astype(np.int64) * width + flows[some] + 1, return_inverse=True)
    found = []
    for pair in pairs.tolist():
        job, flow = pair // width - 1, pair % width - 1
        name = names[job] if job >= 0 else ""
        longer = _beside(flow_names[flow], name) if flow >= 0 and name else ""
        found.append(longer if longer in among else name)
    return [found[i] for i in place.tolist()]


def _blocked(rows: Columns, state: Any, known: Numbers) -> Any:
    """Skips in a run in which a job had failed before count as blocked by it."""
    (runs, run_names), (commits, shas) = rows.text("run"), rows.text("commit")
    # Without a run: the commit's; without either a group of its own, which nothing is chosen from.
    group = np.where(runs >= 0, runs, len(run_names) + commits.astype(np.int64))
    group[(runs < 0) & (commits < 0)] = len(run_names) + len(shas)
    failed = np.full(len(run_names) + len(shas) + 1, np.inf)
    red = (state == State.FAILED) & np.isfinite(known)  # of one without a time nobody knows whether it was before
    np.minimum.at(failed, group[red], known[red])
    hidden = (state == State.SKIPPED) & (failed[group] <= known + _UNTIMED_S)
    return np.where(hidden, np.int8(State.BLOCKED), state)


def _runners(rows: Columns, chosen: Flags, jobs: Indices, count: int, known: Numbers) -> list[str]:
    """The pool on which each job ran last; rows come in any order, from GitHub's API the newest first."""
    codes, names = rows.text("runner")
    ran = codes[chosen] >= 0
    order = np.argsort(known[chosen][ran], kind="stable")
    last = np.full(count, -1, dtype=np.int64)
    last[jobs[ran][order]] = codes[chosen][ran][order]
    return [names[code] if code >= 0 else "" for code in last]


def _failure_lines(history: History, where: Where, known: Sequence[str]) -> dict[tuple[str, str], str]:
    """(commit, job) -> the first line that says what failed."""
    rows = history.columns("jobs", ["commit", "workflow", "job", "failure_line"], where, ordered=False)
    lines, said = rows.text("failure_line")
    commits, shas = rows.text("commit")
    told = np.flatnonzero((lines >= 0) & (commits >= 0))[::-1]
    names = _known_as(rows, told, known)
    return {(shas[commits[i]], name): said[lines[i]] for i, name in zip(told.tolist(), names, strict=True)}


def changed_files(history: History, where: Where) -> dict[str, tuple[str, ...]]:
    """Files of each commit, where the history knows them."""
    rows = history.columns("changes", ["commit", "file"], Where(repository=where.repository), ordered=False)
    commits, shas = rows.text("commit")
    files, names = rows.text("file")
    found: dict[str, list[str]] = {}
    for commit, file in zip(commits.tolist(), files.tolist(), strict=True):
        if commit >= 0 and file >= 0:
            found.setdefault(shas[commit], []).append(names[file])
    return {sha: tuple(some) for sha, some in found.items()}


def kept_changes(history: History, where: Where, jobs: Sequence[str]) -> tuple[list[Kept], list[Verdict]]:
    """Records that `for-change --record` left, and what became of these jobs on those changes."""
    shared = Where(repository=where.repository)
    rows = history.columns("measures", ["commit", "name", "subject", "value"], shared)
    commits, shas = rows.text("commit")
    names, labels = rows.text("name")
    subjects, dropped_jobs = rows.text("subject")
    values = rows.number("value")
    everything: dict[str, bool] = {}
    recall: dict[str, float] = {}
    dropped: dict[str, list[str]] = {}
    for i in np.flatnonzero((commits >= 0) & (names >= 0)).tolist():
        sha, label = shas[commits[i]], labels[names[i]]
        if label == EVERYTHING_MEASURE:  # the first row of a record: what was kept of this change before is void
            everything[sha], dropped[sha] = bool(values[i]), []
        elif label == RECALL_MEASURE:
            recall[sha] = float(values[i])
        elif label == DROPPED_MEASURE and subjects[i] >= 0:
            dropped.setdefault(sha, []).append(dropped_jobs[subjects[i]])
    kept = [
        Kept(identity=sha, everything=ran, recall=recall.get(sha, 1.0), dropped=tuple(dropped.get(sha, ())))
        for sha, ran in everything.items()
    ]
    return kept, _verdicts(history, shared, set(everything), jobs) if kept else []


def _verdicts(history: History, where: Where, changes: set[str], known: Sequence[str]) -> list[Verdict]:
    rows = history.columns("jobs", ["commit", "workflow", "job", "outcome"], where, ordered=False)
    commits, shas = rows.text("commit")
    state = _states(rows)
    wanted = np.array([sha in changes for sha in shas] + [False], dtype=bool)
    some = np.flatnonzero(wanted[commits] & ((state == State.PASSED) | (state == State.FAILED)))
    counts: dict[tuple[str, str], list[int]] = {}
    for i, name in zip(some.tolist(), _known_as(rows, some, known), strict=True):
        counts.setdefault((shas[commits[i]], name), [0, 0])[int(state[i] == State.FAILED)] += 1
    return [
        Verdict(identity=sha, job=job, passes=passes, failures=failures)
        for (sha, job), (passes, failures) in counts.items()
        if job
    ]


def folded(job: str, suffixes: Sequence[str] = FOLDED_2019) -> str:
    r"""A job's name without these ends, each stripped once in this order, as the document of 2019 does it.

    A suffix between slashes is a regular expression: `/ \\(\\d+, \\d+.*\\)$/` folds shards.
    """
    for suffix in suffixes:
        if len(suffix) > 1 and suffix.startswith("/") and suffix.endswith("/"):
            job = re.sub(suffix[1:-1], "", job)
        elif suffix and job.endswith(suffix):
            job = job[: -len(suffix)]
    return job
