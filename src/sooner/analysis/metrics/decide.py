"""The definitions. Pure: facts in, samples out; the time of "now" comes as an argument.

Every metric has its own name because others measure other things under the same words: a dashboard that averages over
cancelled jobs and re-runs sees another "time to signal" than the author who waits for a green check.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct

from sooner.analysis.metrics.facts import Ending, JobFact, Sample

Key = TypeVar("Key", bound=Hashable)


def _sample(fact: JobFact, seconds: float) -> Sample:
    at = fact.run_created if fact.run_created is not None else fact.created
    return Sample(
        at=at if at is not None else fact.started or 0.0,
        seconds=seconds,
        workflow=fact.workflow,
        job=fact.job,
        label=fact.label,
        commit=fact.commit,
        queue_s=_queue(fact) or 0.0,
        steps=fact.steps,
    )


def _queue(fact: JobFact) -> float | None:
    if fact.started is None or fact.created is None:
        return None
    return fact.started - fact.created


def job_time_to_signal(facts: Iterable[JobFact]) -> Iterator[Sample]:
    """`completed - run_created` of first attempts, on pushes, that passed."""
    for fact in facts:
        if fact.attempt == 1 and fact.event == "push" and fact.ending is Ending.GREEN:
            yield from _since_run(fact)


def dashboard_time_to_signal(facts: Iterable[JobFact]) -> Iterator[Sample]:
    """`completed - run_created` of all attempts with any conclusion: what PyTorch's dashboard shows."""
    for fact in facts:
        if fact.ending is not Ending.OPEN:
            yield from _since_run(fact)


def _since_run(fact: JobFact) -> Iterator[Sample]:
    if fact.completed is not None and fact.run_created is not None:
        yield _sample(fact, fact.completed - fact.run_created)


def queue_time(facts: Iterable[JobFact], now: float | None = None) -> Iterator[Sample]:
    """`started - created`; for jobs that still wait, if `now` is given, `now - created`."""
    for fact in facts:
        if (seconds := _queue(fact)) is not None:
            yield _sample(fact, seconds)
        elif now is not None and fact.started is None and fact.created is not None and fact.ending is Ending.OPEN:
            yield _sample(fact, now - fact.created)


def duration(facts: Iterable[JobFact]) -> Iterator[Sample]:
    """`completed - started` of attempts that passed or failed."""
    for fact in facts:
        if fact.ending in (Ending.GREEN, Ending.RED) and fact.completed is not None and fact.started is not None:
            yield _sample(fact, fact.completed - fact.started)


def commit_time_to_signal(facts: Iterable[JobFact], required: Sequence[str] = ()) -> Iterator[Sample]:
    """Of each pushed commit whose required workflows were all green at the first attempt: the time of the slowest.

    A workflow's time is that from its run's creation to the end of its last job. Jobs that were skipped do not count.

    Args:
        facts: Attempts.
        required: Names of the workflows that must be green; all that any commit was pushed with, if empty.
    """
    first = [fact for fact in facts if fact.event == "push" and fact.attempt == 1]
    wanted = set(required) or {fact.workflow for fact in first}
    for commit, of_commit in _by(first, lambda fact: fact.commit):
        slowest = [_slowest(of_workflow) for _, of_workflow in _by(of_commit, lambda fact: fact.workflow)]
        greens = {sample.workflow: sample for sample in slowest if sample is not None and sample.workflow in wanted}
        if commit and greens.keys() == wanted:
            last = max(greens.values(), key=lambda sample: sample.seconds)
            yield last


def _slowest(facts: Sequence[JobFact]) -> Sample | None:
    """The job that ended a green run; None where the run was not green, or did not end."""
    counted = [fact for fact in facts if fact.ending is not Ending.OTHER]
    ended = [fact for fact in counted if fact.ending is Ending.GREEN and fact.completed and fact.run_created]
    if not ended or len(ended) < len(counted):
        return None
    last = max(ended, key=lambda fact: fact.completed or 0.0)
    begin = min(fact.run_created or 0.0 for fact in ended)
    return _sample(last, (last.completed or 0.0) - begin)


def time_to_red_signal(facts: Iterable[JobFact]) -> Iterator[Sample]:
    """Of each pushed commit with a failed job: from the creation of that job's run to the earliest such end."""
    reds = [
        fact
        for fact in facts
        if fact.event == "push" and fact.ending is Ending.RED and fact.completed is not None and fact.run_created
    ]
    for _, of_commit in _by(reds, lambda fact: fact.commit):
        first = min(of_commit, key=lambda fact: fact.completed or 0.0)
        yield _sample(first, (first.completed or 0.0) - (first.run_created or 0.0))


def strict_lag(facts: Iterable[JobFact], required: Sequence[str] = ()) -> Iterator[Sample]:
    """At each push: how old the newest commit is that was known to be green in all required workflows.

    A commit is as old as its first run; it is known to be green when the last of its required jobs has passed, at
    whatever attempt. Pushes before the first known green have no lag.
    """
    pushed = [fact for fact in facts if fact.event == "push" and fact.commit and fact.run_created is not None]
    wanted = set(required) or {fact.workflow for fact in pushed}
    pushes, greens = [], []
    for commit, of_commit in _by(pushed, lambda fact: fact.commit):
        at = min(fact.run_created or 0.0 for fact in of_commit)
        pushes.append((at, commit))
        if (known := _known_green(of_commit, wanted)) is not None:
            greens.append((known, at))
    greens.sort()
    newest, place = None, 0
    for at, commit in sorted(pushes):
        while place < len(greens) and greens[place][0] <= at:
            newest = max(newest or greens[place][1], greens[place][1])
            place += 1
        if newest is not None:
            yield Sample(at=at, seconds=at - newest, commit=commit)


def _known_green(facts: Sequence[JobFact], wanted: set[str]) -> float | None:
    """When the last required job of a commit had passed; None where one never did."""
    ends: list[float] = []
    workflows = set()
    for (workflow, _), of_job in _by(facts, lambda fact: (fact.workflow, fact.job)):
        counted = [fact for fact in of_job if fact.ending is not Ending.OTHER]
        passed = [fact.completed for fact in counted if fact.ending is Ending.GREEN and fact.completed is not None]
        if workflow in wanted and counted:
            if not passed:
                return None
            ends.append(min(passed))
            workflows.add(workflow)
    return max(ends) if workflows == wanted else None


class Cell(Struct, frozen=True, kw_only=True):
    """One job on one commit, all attempts together."""

    workflow: str
    job: str
    commit: str
    at: float
    is_red: bool
    """Every attempt failed."""
    is_flaky: bool
    """Some attempts failed and some passed."""


def cells(facts: Iterable[JobFact]) -> Iterator[Cell]:
    """Every job on every commit where it passed or failed at least once."""
    counted = [fact for fact in facts if fact.ending in (Ending.GREEN, Ending.RED) and fact.commit]
    for (workflow, job, commit), attempts in _by(counted, lambda fact: (fact.workflow, fact.job, fact.commit)):
        reds = sum(fact.ending is Ending.RED for fact in attempts)
        yield Cell(
            workflow=workflow,
            job=job,
            commit=commit,
            at=min(_sample(fact, 0.0).at for fact in attempts),
            is_red=reds == len(attempts),
            is_flaky=0 < reds < len(attempts),
        )


def _by(facts: Iterable[JobFact], key: Callable[[JobFact], Key]) -> Iterator[tuple[Key, list[JobFact]]]:
    """Facts in groups, in the order in which the groups begin."""
    groups: dict[Key, list[JobFact]] = {}
    for fact in facts:
        groups.setdefault(key(fact), []).append(fact)
    yield from groups.items()


METRICS: Final[Mapping[str, Callable[[Sequence[JobFact]], Iterator[Sample]]]] = {
    "job_time_to_signal": job_time_to_signal,
    "dashboard_time_to_signal": dashboard_time_to_signal,
    "commit_time_to_signal": commit_time_to_signal,
    "time_to_red_signal": time_to_red_signal,
    "queue_time": queue_time,
    "duration": duration,
    "strict_lag": strict_lag,
}
"""By name; those that take more than facts are called with their defaults."""
