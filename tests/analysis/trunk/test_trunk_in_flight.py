"""An outage that ends all that runs when it begins: in the order of starts it looks like a break."""

from sooner.analysis.trunk.decide import decide
from sooner.analysis.trunk.facts import Answer, Commit, Event, Question, Rerun, Revert, Signal, Status

HOUR = 3600.0


def run(commit: int, status: Status, start: float, end: float) -> Event:
    return Event(sha=f"c{commit}", status=status, started_at=start * HOUR, ended_at=end * HOUR)


def story(*later: Event, now: float) -> Answer:
    """Two tests of one job. What runs at hour 10 fails then; `c17` passed in a run that began after one of `c18`."""
    events = [run(i, Status.SUCCESS, i / 2, i / 2 + 1.2) for i in range(18)]
    events.append(run(17, Status.SUCCESS, 8.75, 9.95))
    events += [run(i, Status.FAILURE, at, 10.0) for i, at in ((18, 8.7), (19, 9.3), (20, 9.7), (21, 9.9))]
    events += [run(i, Status.FAILURE, 10.1, 11.3) for i in (18, 20)]
    signals = tuple(Signal(key=key, events=(*events, *later)) for key in ("one", "two"))
    commits = tuple(Commit(sha=f"c{i}", time=i / 2 * HOUR) for i in reversed(range(24)))
    return decide(Question(now=now * HOUR, commits=commits, signals=signals))


def test_nothing_is_reverted_before_older_commits_passed_in_runs_that_ended_later() -> None:
    first = story(now=11.4).decisions[0]
    assert isinstance(first, Rerun)
    assert [(one.sha, one.count) for one in first.reruns] == [("c17", 3)], "two, and one to spare"


def test_one_such_pass_is_luck_and_two_are_none() -> None:
    passes = [run(17, Status.SUCCESS, at, at + 1.2) for at in (11.5, 11.6)]
    assert isinstance(story(passes[0], now=13).decisions[0], Rerun)
    revert = story(*passes, run(18, Status.FAILURE, 11.7, 12.9), now=13).decisions[0]
    assert isinstance(revert, Revert)
    assert revert.culprit == "c18"
