"""One rank as its owner sees it, and what may come of asking it."""

import os
import select
from collections import deque
from dataclasses import dataclass, field

from sooner.warm.channel import Channel
from sooner.warm.forking import tail_of
from sooner.warm.task import Report, Vote


@dataclass(frozen=True, slots=True)
class Said:
    """A rank answered."""

    what: Report | Vote


@dataclass(frozen=True, slots=True)
class Lost:
    """A rank's process ended without an answer."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """A rank did not answer in time, or another was lost before it did."""


Answer = Said | Lost | Stuck


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for ranks."""

    total_s: float
    after_failure_s: float
    """From the first rank that failed on: what the others have to say is worth a moment, not all the time."""


@dataclass(slots=True, eq=False)
class Member:
    """One rank, as its owner sees it."""

    rank: int
    pid: int
    channel: Channel
    output: int
    stacks: int
    pidfd: int
    """Becomes readable when the process ends; -1 where the system has no such thing."""
    shown: int = 0
    """How much of its output was shown."""
    exit_code: int | None = None
    """How it ended, once it was reaped."""
    heard: deque[Answer] = field(default_factory=deque)
    """What it said and nobody asked for yet."""

    @property
    def descriptors(self) -> frozenset[int]:
        """What it holds open in this process."""
        return frozenset({self.channel.descriptor, self.output, self.stacks, self.pidfd} - {-1})

    def close(self) -> None:
        """Let go of it; whether it lives is another matter."""
        self.channel.close()
        for descriptor in {self.output, self.stacks, self.pidfd} - {-1}:
            os.close(descriptor)
        self.output = self.stacks = self.pidfd = -1

    def hear(self) -> bool:
        """Read what it has to say; says whether it is still there. Of one that ended, `Lost` is the last answer."""
        messages, is_there = self.channel.receive()
        self.heard.extend(map(Said, messages))
        return is_there

    def has_ended(self) -> bool:
        """Whether its process has, as far as the system can tell."""
        return self.pidfd >= 0 and _is_readable(self.pidfd)

    def written_stacks(self, start: int = 0) -> str:
        """Stacks that it wrote from `start` on, as far down as it was born."""
        return _own_frames(tail_of(self.stacks, start))

    def state(self) -> str:
        """What the kernel says of it, for one that does not write its stacks: it is stopped, or waits in a driver."""
        try:
            with open(f"/proc/{self.pid}/status", encoding="ascii", errors="replace") as file:  # noqa: PTH123
                return next((line for line in file if line.startswith("State:")), "no stacks\n")
        except OSError:
            return "no stacks, and no such process\n"


def _own_frames(stacks: str) -> str:
    """Stacks without the frames of the process that a rank was forked from: they are below where it was born."""
    kept: list[str] = []
    is_born = True
    for line in stacks.splitlines():
        is_born = is_born or not line.startswith("  File ")
        if is_born:
            kept.append(line)
        if line.startswith("  File ") and line.endswith(" in be_born"):
            is_born = False
    return "\n".join(kept)


def _is_readable(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))
