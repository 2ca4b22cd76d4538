"""Rows of tests as signals. Read as columns: a history holds tens of millions of them, of which few ever failed."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from sooner.analysis.trunk.attempts import Attempts, Codes, are_among, first_of_each, folded, name_of, read_attempts
from sooner.analysis.trunk.facts import Event, Signal, Status
from sooner.analysis.trunk.load_jobs import Jobs
from sooner.history import History, Where


class Tests:
    """Every attempt of a test of a known commit.

    Args:
        history: Where from.
        where: Which rows; those that know no branch are of any.
        as_of: As they were known then, epoch seconds; None: as they are.
        any_branch: Whatever branch they tell: jobs tell which commits count.
    """

    __test__ = False  # pytest, this is not one of yours

    def __init__(self, history: History, where: Where, as_of: float | None = None, *, any_branch: bool = True) -> None:
        every = read_attempts(history, replace(where, branch="") if any_branch else where)
        is_known = every.commit >= 0
        if as_of is not None:  # of one that still ran then no report told
            is_known &= ~(every.started + np.nan_to_num(every.seconds) > as_of)
        self._all = every.at(is_known)

    def first_seen(self) -> dict[str, float]:
        """When each commit was first run."""
        found = np.full(len(self._all.commits), np.inf)
        known = ~np.isnan(self._all.started)
        np.minimum.at(found, self._all.commit[known], self._all.started[known])
        return {sha: float(at) for sha, at in zip(self._all.commits, found, strict=True) if np.isfinite(at)}

    def ends(self) -> list[float]:
        """When the last attempt of any test ended; nothing where no time is known."""
        ended = self._all.started + np.nan_to_num(self._all.seconds)
        return [float(np.nanmax(ended))] if np.isfinite(ended).any() else []

    def signals(self, jobs: Jobs | None = None) -> list[Signal]:
        """One signal for each test, in each job, that ever failed. A retry that passed in the same run is a pass.

        Args:
            jobs: Attempts of jobs. A test that never passed was sound where its job passed, or others of its file
                ran, without it.
        """
        every = self._all
        subject = (every.job + 1) * (len(every.names) + 1) + every.name + 1
        subject = subject * (len(every.variants) + 1) + every.variant + 1
        failed = np.unique(subject[every.came_to[Status.FAILURE]])
        if not len(failed):
            return []
        rows = np.flatnonzero(are_among(subject, failed))
        some, subject = every.at(rows), np.searchsorted(failed, subject[rows])
        found: list[Signal] = []
        red: dict[int, int] = {}
        for row, events in _runs_of(subject, some):
            statuses = {event.status for event in events}
            if Status.FAILURE in statuses:
                if Status.SUCCESS not in statuses:
                    red[row] = len(found)
                found.append(Signal(key=_key(some, row), events=tuple(events)))
        places = [(int(some.job[row]), _file_of(name_of(some.names, some.name[row]))) for row in red]
        own = _commits_of([int(subject[row]) for row in red], subject, some)
        for place, ran, known in zip(red.values(), self._ran_without(places, jobs), own, strict=True):
            found[place] = _with_absences(found[place], ran, known)
        return sorted(found, key=lambda signal: signal.key)

    def _ran_without(self, places: Sequence[tuple[int, str]], jobs: Jobs | None) -> list[dict[str, float]]:
        """Of each job and file the commits on which the job passed, or other tests of the file ran; and when."""
        names = {name_of(self._all.jobs, job) for job, _ in places}
        by_job = jobs.passed(names) if jobs else {}
        by_file = self._ran_in_files(set(places)) if places else {}
        return [by_file.get(place, {}) | by_job.get(name_of(self._all.jobs, place[0]), {}) for place in places]

    def _ran_in_files(self, places: Collection[tuple[int, str]]) -> dict[tuple[int, str], dict[str, float]]:
        every = self._all
        files, file_of = folded(every.names, _file_of)
        codes = {file: code for code, file in enumerate(files)}
        asked = {(job, codes[file]): (job, file) for job, file in places if file in codes}
        place = (every.job + 1) * (len(files) + 1) + file_of[every.name]
        wanted = np.array(sorted((job + 1) * (len(files) + 1) + file for job, file in asked), dtype=np.int64)
        rows = np.flatnonzero(every.is_case & ~np.isnan(every.started) & are_among(place, wanted))
        rows = rows[np.lexsort((every.started[rows], every.commit[rows], place[rows]))]
        first = first_of_each(place[rows], every.commit[rows])
        found: dict[tuple[int, str], dict[str, float]] = {}
        for i in rows[first].tolist():
            where = asked[int(every.job[i]), int(file_of[every.name[i]])]
            found.setdefault(where, {})[every.commits[every.commit[i]]] = float(every.started[i])
        return found


def _runs_of(subject: Codes, attempts: Attempts) -> list[tuple[int, list[Event]]]:
    """Of each subject a row, and the events: its attempts in one run are one. Oldest first."""
    order = np.lexsort((attempts.started, attempts.run, attempts.commit, subject))
    first = first_of_each(subject[order], attempts.commit[order], attempts.run[order])
    came_to = {status: np.logical_or.reduceat(flags[order], first) for status, flags in attempts.came_to.items()}
    rows = order[first]  # the first attempt of each run: what has no time is sorted to the end
    told = np.flatnonzero(np.logical_or.reduce(list(came_to.values())) & ~np.isnan(attempts.started[rows]))
    told = told[np.lexsort((attempts.started[rows[told]], subject[rows[told]]))]
    status = np.select([came_to[status][told] for status in came_to], list(range(len(came_to))))
    statuses = list(came_to)
    found: list[tuple[int, list[Event]]] = []
    last = -1
    commits, starts = attempts.commit[rows[told]].tolist(), attempts.started[rows[told]].tolist()
    subjects = subject[rows[told]].tolist()
    for i, (row, one) in enumerate(zip(rows[told].tolist(), subjects, strict=True)):
        if one != last:
            found.append((row, []))
            last = one
        found[-1][1].append(Event(sha=attempts.commits[commits[i]], status=statuses[status[i]], started_at=starts[i]))
    return found


def _key(attempts: Attempts, row: int) -> str:
    job = name_of(attempts.jobs, attempts.job[row])
    parts = (name_of(attempts.names, attempts.name[row]), name_of(attempts.variants, attempts.variant[row]))
    name = "::".join(filter(None, parts))
    return f"{job} :: {name}" if job else name


def _file_of(node_id: str) -> str:
    return node_id.partition("::")[0]


def _commits_of(asked: Sequence[int], subject: Codes, attempts: Attempts) -> list[set[str]]:
    """Of each subject all commits that any attempt is of, whatever it came to."""
    order = np.argsort(subject, kind="stable")
    sorted_ = subject[order]
    firsts, lasts = np.searchsorted(sorted_, asked), np.searchsorted(sorted_, asked, side="right")
    return [
        {attempts.commits[code] for code in np.unique(attempts.commit[order[first:last]])}
        for first, last in zip(firsts, lasts, strict=True)
    ]


def _with_absences(signal: Signal, ran: Mapping[str, float], known: Collection[str]) -> Signal:
    absent = (
        Event(sha=sha, status=Status.SUCCESS, started_at=at, ended_at=at) for sha, at in ran.items() if sha not in known
    )
    return Signal(key=signal.key, kind=signal.kind, events=(*signal.events, *absent))
