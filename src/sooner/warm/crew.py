"""The living ranks of a world: born together, given the same task, and lost together.

A crew reports facts (`Said`, `Lost`, `Stuck`) and kills on request. What they mean for a test is `world`'s matter.
"""

import contextlib
import os
import pickle
import select
import signal
import socket
import time
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from sooner.warm.channel import encode, pair
from sooner.warm.forking import anonymous_file, tail_of
from sooner.warm.member import Answer, Lost, Member, Patience, Said, Stuck
from sooner.warm.mothers import Mother
from sooner.warm.rank import STACK_SIGNAL
from sooner.warm.task import Facts, Report
from sooner.warm.zygote import ZygoteLost

_HOST: Final = "127.0.0.1"
_TARGET: Final = "sooner.warm.rank:main"
_STACKS_S: Final = 1.0
"""How long ranks have to write their stacks: microseconds, unless a rank is stopped."""
_QUIET_S: Final = 0.005
"""Stacks are complete when nothing was added for so long."""
_MOST_OUTPUT: Final = 1 << 24
"""Bytes of shown output that are kept before the file is emptied."""


_ONLY_ONCE: Final = Patience(float("inf"), float("inf"))
"""Once the deadline was brought forward, nothing does so again."""


class Crew:
    """`size` ranks on a store of their own.

    Args:
        mother: Who gives birth to them.
        size: How many.
        is_kept: Whether they may run more than one task.

    Raises:
        ForkRefused: Its mother must not fork.
    """

    def __init__(self, mother: Mother, size: int, *, is_kept: bool = True) -> None:
        self.size = size
        self.is_kept = is_kept
        self.environment = dict(mother.environment)
        """The variables that ranks were born with, and have again after each task."""
        self._mother = mother
        self._owner = os.getpid()
        self._members: list[Member] = []
        self._poll = select.poll()
        self._by_descriptor: dict[int, Member] = {}
        self._is_whole = True
        try:
            self._give_birth()
        except BaseException:
            self.kill()
            raise

    def _give_birth(self) -> None:
        threads = max(1, len(os.sched_getaffinity(0)) // self.size)
        with socket.create_server((_HOST, 0), backlog=max(128, self.size)) as listener:
            port = listener.getsockname()[1]
            for rank in range(self.size):
                place = {"rank": rank, "size": self.size, "host": _HOST, "port": port}
                facts = Facts(**place, threads=threads, is_kept=self.is_kept)
                self._add(facts, [listener.fileno()] if rank == 0 else [])

    def _add(self, facts: Facts, more: Sequence[int]) -> None:
        channel, theirs = pair()
        output, stacks = anonymous_file(), anonymous_file()
        member = Member(facts.rank, 0, channel, output, stacks, -1)
        try:
            member.pid = self._mother.spawn(_TARGET, [output, theirs, stacks, *more], pickle.dumps(facts))
        except BaseException:
            member.close()
            raise
        finally:
            os.close(theirs)
        self._members.append(member)
        member.pidfd = os.pidfd_open(member.pid) if hasattr(os, "pidfd_open") else -1
        for descriptor in {channel.descriptor, member.pidfd} - {-1}:
            self._by_descriptor[descriptor] = member
            self._poll.register(descriptor, select.POLLIN)

    @property
    def pids(self) -> list[int]:
        """Process ids by rank."""
        return [member.pid for member in self._members]

    @property
    def descriptors(self) -> frozenset[int]:
        """What it holds open in this process."""
        return frozenset().union(*(member.descriptors for member in self._members))

    def is_idle(self) -> bool:
        """Whether all ranks live and none has anything to say; once every vote was heard."""
        return self._is_whole and not self._poll.poll(0)

    def tell(self, message: Any) -> None:
        """Give all ranks a message."""
        data = encode(message)
        for member in self._members:
            with contextlib.suppress(OSError):  # it ended: that is noticed by whoever waits for its answer
                member.channel.send_encoded(data)

    def answers(self, patience: Patience, ranks: Collection[int] | None = None) -> dict[int, Answer]:
        """The next answer of each rank, in the order of their arrival, until one is lost or time is up.

        Args:
            patience: How long to wait.
            ranks: Which are asked; None is all.
        """
        answers: dict[int, Answer] = {}
        deadline = time.monotonic() + patience.total_s
        asked = [member for member in self._members if ranks is None or member.rank in ranks]
        waiting = [member for member in asked if not self._take(member, answers)]
        while waiting and not any(isinstance(answer, Lost) for answer in answers.values()):
            if any(_has_failed(answer) for answer in answers.values()):
                deadline, patience = min(deadline, time.monotonic() + patience.after_failure_s), _ONLY_ONCE
            events = self._poll.poll(max(0.0, (deadline - time.monotonic()) * 1000))
            if not events:
                break
            for member in {self._by_descriptor[descriptor]: None for descriptor, _ in events}:
                self._hear(member)
            for member in waiting:
                self._take(member, answers)
            waiting = [member for member in waiting if member.rank not in answers]
        return answers | {member.rank: Stuck() for member in waiting}

    @staticmethod
    def _take(member: Member, answers: dict[int, Answer]) -> bool:
        """Take a rank's next answer if it is not yet there."""
        if member.rank not in answers and member.heard:
            answers[member.rank] = member.heard.popleft()
        return member.rank in answers

    def _hear(self, member: Member) -> None:
        """Read what a rank has to say; of one that ended, last of all that it did."""
        has_ended = member.has_ended()  # asked first: then all that it said can be read
        is_there = member.hear()
        if is_there and not has_ended:
            return
        self._is_whole = False
        self._forget(member.channel.descriptor)
        if member.pidfd < 0 or has_ended:  # otherwise its status and its last words come with its end
            self._forget(member.pidfd)
            member.heard.append(Lost())

    def _forget(self, descriptor: int) -> None:
        if self._by_descriptor.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def stacks(self, ranks: Iterable[int]) -> dict[int, str]:
        """Where ranks are: the stacks of all their threads, which they write on a signal even when they are stuck."""
        members = [self._members[rank] for rank in ranks]
        before = {member: os.fstat(member.stacks).st_size for member in members}
        for member in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member.pid, STACK_SIGNAL)
        deadline = time.monotonic() + _STACKS_S
        sizes = dict(before)
        while time.monotonic() < deadline:
            time.sleep(_QUIET_S)
            now = {member: os.fstat(member.stacks).st_size for member in members}
            if now == sizes and all(now[member] > before[member] for member in members):
                break
            sizes = now
        return {member.rank: member.written_stacks(before[member]) or member.state() for member in members}

    def exit_code(self, rank: int) -> int:
        """How a rank that is lost ended: its exit code, or minus the signal that ended it."""
        member = self._members[rank]
        if member.exit_code is None:
            member.exit_code = self._reap(member.pid)
        return member.exit_code

    def last_words(self, rank: int) -> str:
        """What the interpreter of a rank wrote of a fatal error: its stacks."""
        return self._members[rank].written_stacks()

    def fresh_output(self) -> list[tuple[int, str]]:
        """What ranks wrote since this was last asked."""
        found = []
        for member in self._members:
            size = os.fstat(member.output).st_size
            if size > member.shown:
                found.append((member.rank, tail_of(member.output, member.shown)))
                member.shown = size
            if size > _MOST_OUTPUT:
                os.ftruncate(member.output, 0)
                member.shown = 0
        return found

    def kill(self, *, and_wait: bool = False) -> None:
        """Kill all ranks.

        Args:
            and_wait: Until they have ended: what they held on devices is free then.
        """
        members, self._members, self._is_whole = self._members, [], False
        self._by_descriptor.clear()
        if os.getpid() == self._owner:  # in a forked child of the owner they are not ours to kill
            left = [member.pid for member in members if member.exit_code is None]
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ZygoteLost, ChildProcessError):
                if and_wait:
                    for pid in left:
                        self._mother.status(pid)
                else:
                    self._mother.forget(left)
        for member in members:
            member.close()

    def _reap(self, pid: int) -> int:
        try:
            return os.waitstatus_to_exitcode(self._mother.status(pid))
        except (ChildProcessError, ZygoteLost):
            return -signal.SIGKILL


def _has_failed(answer: Answer) -> bool:
    return isinstance(answer, Said) and isinstance(answer.what, Report) and answer.what.has_failed
