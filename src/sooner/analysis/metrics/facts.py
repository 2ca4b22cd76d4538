"""What the metrics are computed from and what they come to: columns, for there are millions of attempts. Needs numpy.

Pure data: `load.py` fills it from the history, tests write it by hand.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.float64]

PARTS: Final = ("setup", "build", "test")
"""Parts of a job that its steps may tell."""
_TEXTS: Final = ("workflow", "job", "label", "commit")
"""What attempts and samples are told apart by."""


class Ending(StrEnum):
    """How an attempt of a job ended, as far as the metrics tell ends apart."""

    GREEN = "green"
    RED = "red"
    """The code under test did not do what it should."""
    LOST = "lost"
    """Cancelled, or not the code's fault: it should have told about the commit, and did not."""
    OTHER = "other"
    """Skipped: it had nothing to tell about the commit."""
    OPEN = "open"
    """Waiting or running."""


ENDINGS: Final = tuple(Ending)
"""What the codes of endings stand for."""


class JobFact(Struct, frozen=True, kw_only=True):
    """One attempt of a job, for whom few are enough. Times are epoch seconds, None where they are not known."""

    workflow: str = ""
    run: str = ""
    attempt: int = 1
    job: str
    commit: str = ""
    event: str = ""
    label: str = ""
    """Of the runner."""
    ending: Ending
    run_created: float | None = None
    """When this attempt of the workflow's run was asked for."""
    created: float | None = None
    """Since when it could have started."""
    started: float | None = None
    completed: float | None = None
    steps: Mapping[str, float] = {}
    """Seconds of its `PARTS`, where the steps of the job are known."""


class Sample(Struct, frozen=True, kw_only=True):
    """One value of a metric."""

    at: float
    """What it is filed under: when the workflow's run, or the commit's first run, was asked for."""
    seconds: float
    workflow: str = ""
    job: str = ""
    label: str = ""
    commit: str = ""
    queue_s: float = 0.0
    """The part of it that was spent waiting for a runner."""
    steps: Mapping[str, float] = {}


class Texts(NamedTuple):
    """A column of text: a number for each row, and what the numbers stand for; an unknown text is empty."""

    codes: Codes
    names: list[str]

    @classmethod
    def of(cls, texts: Sequence[str]) -> "Texts":
        """Number some texts."""
        names = sorted(set(texts))
        code = {name: i for i, name in enumerate(names)}
        return cls(np.array([code[text] for text in texts], dtype=np.int64), names)

    def at(self, rows: Any) -> "Texts":
        """Some of the rows."""
        return Texts(self.codes[rows], self.names)

    def is_told(self) -> Flags:
        """Whether each row has a text."""
        return ~np.isin(self.codes, [i for i, name in enumerate(self.names) if not name])


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Attempts of jobs: `JobFact` as columns of equal length, NaN where a number is not known."""

    workflow: Texts
    run: Texts
    job: Texts
    commit: Texts
    label: Texts
    attempt: Codes
    is_push: Flags
    ending: Codes
    """Places in `ENDINGS`."""
    run_created: Numbers
    created: Numbers
    started: Numbers
    completed: Numbers
    steps: Mapping[str, Numbers]

    @classmethod
    def of(cls, facts: Iterable[JobFact]) -> "Facts":
        """From rows."""
        rows = list(facts)
        return cls(
            **_texts(rows),
            run=Texts.of([row.run for row in rows]),
            **_numbers(rows, "run_created", "created", "started", "completed"),
            attempt=np.array([row.attempt for row in rows], dtype=np.int64),
            is_push=np.array([row.event == "push" for row in rows], dtype=bool),
            ending=np.array([ENDINGS.index(row.ending) for row in rows], dtype=np.int64),
            steps=_steps(rows),
        )

    def ended(self, *endings: Ending) -> Flags:
        """Whether each attempt ended in one of these ways."""
        return np.isin(self.ending, [ENDINGS.index(one) for one in endings])


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Values of a metric: `Sample` as columns of equal length."""

    at: Numbers
    seconds: Numbers
    workflow: Texts
    job: Texts
    label: Texts
    commit: Texts
    queue_s: Numbers
    steps: Mapping[str, Numbers]
    """Seconds of each of the `PARTS` that are known of any, NaN for the others."""

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> "Samples":
        """From rows."""
        rows = list(samples)
        return cls(**_texts(rows), **_numbers(rows, "at", "seconds", "queue_s"), steps=_steps(rows))

    def __len__(self) -> int:
        return len(self.at)

    def __iter__(self) -> Iterator[Sample]:
        for i, (at, seconds, queue_s) in enumerate(
            zip(self.at.tolist(), self.seconds.tolist(), self.queue_s.tolist(), strict=True)
        ):
            columns: list[Texts] = [getattr(self, name) for name in _TEXTS]
            texts = {name: texts.names[texts.codes[i]] for name, texts in zip(_TEXTS, columns, strict=True)}
            steps = {part: float(column[i]) for part, column in self.steps.items() if not np.isnan(column[i])}
            yield Sample(at=at, seconds=seconds, queue_s=queue_s, steps=steps, **texts)

    def take(self, rows: Any) -> "Samples":
        """Some of the rows."""
        return Samples(
            at=self.at[rows],
            seconds=self.seconds[rows],
            workflow=self.workflow.at(rows),
            job=self.job.at(rows),
            label=self.label.at(rows),
            commit=self.commit.at(rows),
            queue_s=self.queue_s[rows],
            steps={part: column[rows] for part, column in self.steps.items()},
        )


def _texts(rows: Sequence[Any]) -> dict[str, Any]:
    return {name: Texts.of([getattr(row, name) for row in rows]) for name in _TEXTS}


def _numbers(rows: Sequence[Any], *names: str) -> dict[str, Any]:
    return {name: np.array([getattr(row, name) for row in rows], dtype=np.float64) for name in names}


def _steps(rows: Sequence[Any]) -> dict[str, Numbers]:
    return {
        part: np.array([row.steps.get(part, np.nan) for row in rows], dtype=np.float64)
        for part in PARTS
        if any(part in row.steps for row in rows)
    }


def grouped(*columns: Codes) -> tuple[Codes, Codes]:
    """Rows that agree in some columns: the group of each row, numbered as they begin, and the first row of each.

    Args:
        columns: Numbers from 0 on, of equal length.
    """
    key = columns[0]
    for column in columns[1:]:
        _, key = np.unique(key, return_inverse=True)  # so that products cannot overflow
        key = key * (int(column.max(initial=0)) + 1) + column
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place[group], first[order]
