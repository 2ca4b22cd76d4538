"""What the answers of ranks mean: results, or an error that says which rank, what and where.

WorldError               something went wrong on ranks
├── RankFailed           the function raised
├── RankLost             the process of a rank ended
└── WorldHung            ranks did not return in time
"""

import pickle
import signal
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn

from sooner.warm.crew import Crew
from sooner.warm.member import Answer, Lost, Said, Stuck
from sooner.warm.task import Report, Vote

_MOST_TEXT: Final = 4000
"""Characters of stacks in an error: what went wrong comes first in them."""


class WorldError(RuntimeError):
    """Something went wrong on ranks; says on which and what."""


class RankFailed(WorldError):  # noqa: N818 - what happened, as in sooner.model.errors
    """The function raised; the cause of what is raised, and raised itself where that cannot travel."""


class RankLost(WorldError):  # noqa: N818 - as above
    """The process of a rank ended in the middle of the function.

    Args:
        rank: Which.
        status: Its exit code, or minus the signal that ended it.
        text: For people.
    """

    def __init__(self, rank: int, status: int, text: str) -> None:
        self.rank = rank
        self.status = status
        super().__init__(rank, status, text)

    def __str__(self) -> str:
        return str(self.args[2])


class WorldHung(WorldError):  # noqa: N818 - as above
    """Ranks did not return in time; says where each of them was."""


def results_of(crew: Crew, answers: Mapping[int, Answer], subject: str) -> list[Any]:
    """What the function returned, by rank; raises what else it did.

    Args:
        crew: Where it ran.
        answers: By rank, in the order of their arrival.
        subject: What ran, for people.
    """
    for rank, answer in answers.items():
        if isinstance(answer, Lost):
            _raise_lost(crew, rank, subject)
    reports = _reports(answers)
    bad = {rank: report for rank, report in reports.items() if report.has_failed}
    stuck = [rank for rank, answer in answers.items() if isinstance(answer, Stuck)]
    if bad:
        _raise_first(bad, _told_failure(crew, bad, stuck, subject))
    if stuck:
        raise WorldHung(_told_hang(crew, stuck, subject))
    for report in reports.values():
        if report.outcome == "skipped":
            raise _exception_of(report) or RankFailed(report.text)
    return [pickle.loads(reports[rank].value) for rank in range(crew.size)]  # noqa: S301 - our own ranks'


def went_well(answers: Mapping[int, Answer]) -> bool:
    """Whether every rank returned or skipped."""
    reports = _reports(answers)
    return len(reports) == len(answers) and not any(report.has_failed for report in reports.values())


def votes_of(answers: Mapping[int, Answer]) -> dict[int, Vote]:
    """The votes among answers; a rank without one is lost or stuck."""
    said = {rank: answer.what for rank, answer in answers.items() if isinstance(answer, Said)}
    return {rank: what for rank, what in sorted(said.items()) if isinstance(what, Vote)}


def _reports(answers: Mapping[int, Answer]) -> dict[int, Report]:
    said = {rank: answer.what for rank, answer in answers.items() if isinstance(answer, Said)}
    return {rank: what for rank, what in said.items() if isinstance(what, Report)}


def _raise_lost(crew: Crew, rank: int, subject: str) -> NoReturn:
    words, status = crew.last_words(rank).strip(), crew.exit_code(rank)
    how = f"was ended by {_signal_name(-status)}" if status < 0 else f"ended with exit code {status}"
    text = f"rank {rank} of {crew.size} {how} in the middle of {subject}"
    raise RankLost(rank, status, f"{text}\n{words[:_MOST_TEXT]}" if words else text)


def _raise_first(bad: Mapping[int, Report], text: str) -> NoReturn:
    first = next(iter(bad.values()))
    if first.outcome == "broken":
        raise WorldError(text)
    error = _exception_of(first)
    if error is None or isinstance(error, KeyboardInterrupt | GeneratorExit):
        raise RankFailed(text)
    raise error from RankFailed(text)


def _exception_of(report: Report) -> BaseException | None:
    if not report.value:
        return None
    try:
        error: BaseException = pickle.loads(report.value)  # noqa: S301 - our own ranks'
    except Exception:  # noqa: BLE001 - of a class that only the ranks know: its text is in the report
        return None
    return error


def _told_failure(crew: Crew, bad: Mapping[int, Report], stuck: list[int], subject: str) -> str:
    same: dict[str, list[int]] = {}
    for rank, report in bad.items():
        same.setdefault(report.text, []).append(rank)
    parts = [f"{subject} failed on {_ranks(bad)} of {crew.size}"]
    parts += [f"--- {_ranks(ranks)} ---\n{text.rstrip()}" for text, ranks in same.items()]
    if stuck:
        parts.append(f"--- {_ranks(stuck)} had not returned ---\n{_told_stacks(crew, stuck)}")
    return "\n".join(parts)


def _told_hang(crew: Crew, stuck: list[int], subject: str) -> str:
    returned = sorted(set(range(crew.size)) - set(stuck))
    also = f"; {_ranks(returned)} had" if returned else ""
    return f"{subject} hung: {_ranks(stuck)} of {crew.size} did not return in time{also}\n{_told_stacks(crew, stuck)}"


def _told_stacks(crew: Crew, ranks: Iterable[int]) -> str:
    return "\n".join(f"--- rank {rank} was here ---\n{text.rstrip()}" for rank, text in crew.stacks(ranks).items())


def _ranks(ranks: Iterable[int]) -> str:
    numbers = sorted(ranks)
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
