"""Warm worlds: ranks that stay alive between tests, so that a test with four ranks costs milliseconds, not seconds.

A `World` runs a function on all its ranks and returns what each returned. Its ranks are kept while everything is well;
whatever is in doubt is killed and born anew:

- a rank that raises: the others get a moment to say what they saw, then all are killed, for nobody knows what is still
  in flight; the exception is raised here, caused by a `RankFailed` with every rank's traceback;
- a rank that dies is noticed at once; the others, which wait for it in vain, are killed;
- ranks that do not return in time write their stacks and are killed;
- ranks that cannot be put back as they were are killed when the test ends: all vote, and one no is enough.
"""

import itertools
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sooner.warm.crew import Crew
from sooner.warm.groups import GroupConfig
from sooner.warm.judgement import RankFailed, RankLost, WorldError, WorldHung, results_of, votes_of, went_well
from sooner.warm.member import Answer, Lost, Patience, Said
from sooner.warm.mothers import Mother, OwnFork
from sooner.warm.task import Function, Reference, Task, Tidy, Vote, inherited, pack_arguments, reference_to

__all__ = ["RankFailed", "RankLost", "World", "WorldConfig", "WorldError", "WorldHung", "world_config"]

DEFAULT_TIMEOUT_S: Final = 300.0
"""As TIMEOUT_DEFAULT of PyTorch's MultiProcessTestCase."""
AFTER_FAILURE_S: Final = 0.5
_VOTE: Final = Patience(30.0, 30.0)
"""How long ranks have to put themselves back, or to close groups."""
_MASKS: Final = (b"CUDA_VISIBLE_DEVICES", b"HIP_VISIBLE_DEVICES", b"ROCR_VISIBLE_DEVICES")
_NO_VOTE: Final = Vote(discard="did not put itself back")
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldConfig:
    """What makes two worlds the same."""

    size: int
    group: GroupConfig | None
    """The default process group; None: the function makes its own, or needs none."""
    masks: tuple[bytes | None, ...]
    """The devices that ranks may see: what a device context was made under cannot be changed."""
    is_kept: bool = True
    """False: ranks for one test, which nobody had before."""


def world_config(
    size: int, backend: str | None, *, group_timeout_s: float | None = None, is_kept: bool = True
) -> WorldConfig:
    """The configuration of a world of this process.

    Args:
        size: Number of ranks.
        backend: Of the default process group; None for ranks without one.
        group_timeout_s: Of its collectives; None is torch's own default.
        is_kept: False for ranks that serve one test only.
    """
    group = GroupConfig(backend=backend, size=size, timeout_s=group_timeout_s) if backend else None
    masks = tuple(os.environb.get(name) for name in _MASKS)
    return WorldConfig(size=size, group=group, masks=masks, is_kept=is_kept)


class World:
    """Ranks that wait for functions. To be had from `Worlds.lease`, or from the pytest fixture `world`.

    Args:
        config: What kind of ranks.
        mother: Gives the one who gives birth to them; asked again whenever they must be replaced.
        timeout_s: How long a function may take if its call says nothing else.
    """

    def __init__(
        self, config: WorldConfig, mother: Callable[[], Mother], *, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> None:
        self.config = config
        self.timeout_s = timeout_s
        self.after_failure_s = AFTER_FAILURE_S
        """How long the other ranks have to say what they saw once one has failed."""
        self.test_id = ""
        """What the random generators of ranks are seeded from; if empty, the test that pytest says is running."""
        self.imported: set[str] = set()
        """Modules that functions brought into ranks."""
        self._mother = mother
        self._crew: Crew | None = None
        self._epoch = 0
        self._doubt = ""
        self._owes_votes = False
        self._untidy = False

    @property
    def doubt(self) -> str:
        """Why the ranks must not serve another test; empty while they may. Waits for their votes."""
        self._settle()
        return self._doubt

    def distrust(self, reason: str) -> None:
        """Say that the ranks must not serve another test."""
        self._doubt = self._doubt or reason

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self.config.size

    @property
    def backend(self) -> str:
        """Backend of the default process group; empty without one."""
        return self.config.group.backend if self.config.group else ""

    @property
    def pids(self) -> list[int]:
        """Process ids by rank; empty while there are no ranks."""
        return self._crew.pids if self._crew else []

    @property
    def descriptors(self) -> frozenset[int]:
        """What it holds open in this process."""
        return self._crew.descriptors if self._crew else frozenset()

    def is_healthy(self) -> bool:
        """Whether its ranks may serve another test. Waits for their votes."""
        return self.config.is_kept and not self.doubt and self._crew is not None and self._crew.is_idle()

    def start(self) -> None:
        """Have ranks, if there are none.

        Raises:
            ForkRefused: Nobody can give birth to them; says why.
        """
        self._ranks()

    def _ranks(self) -> Crew:
        self._settle()
        if self._crew is not None and not self._crew.is_idle():
            self.close()  # one died while nobody asked it anything
        if self._crew is None:
            self._crew = Crew(self._mother(), self.size, is_kept=self.config.is_kept)
            self._epoch += 1
        return self._crew

    def run(self, function: Function, *args: Any, timeout_s: float | None = None, **kwargs: Any) -> list[Any]:
        """Call `function(*args, **kwargs)` on every rank, at the same time.

        A function that a rank can import is called on ranks that are kept. Any other (a closure, a lambda, a local
        function) is called on ranks that are forked from this process for this one call.

        Returns:
            What it returned, by rank.

        Raises:
            RankLost: A rank's process ended.
            WorldHung: Ranks did not return within `timeout_s`.
            Exception: What the function raised on the rank that failed first; `RankFailed` where that cannot travel.
            ForkRefused: The function cannot be imported by ranks, and this process must not fork.
        """
        patience = Patience(self.timeout_s if timeout_s is None else timeout_s, self.after_failure_s)
        reference = reference_to(function)
        if reference is None:
            return self._run_inherited((function, args, kwargs), patience)
        arguments = pack_arguments(args, kwargs)
        try:
            running = self.begin(reference, arguments)
            running.wait(patience)
        except BaseException:
            self.close()  # interrupted: nobody knows what ranks are at
            raise
        try:
            return results_of(running.crew, running.answers, reference.qualname)
        finally:
            self.end(running, went_well=went_well(running.answers))

    def begin(self, reference: Reference, arguments: bytes) -> "Running":
        """Have all ranks begin to call a function; `end` is to be called when they have, or when it was enough."""
        self.tidy()
        crew = self._ranks()
        crew.tell(self._task(crew, reference, arguments))
        self._owes_votes = True
        return Running(crew)

    def end(self, running: "Running", *, went_well: bool) -> None:
        """Go on with the ranks, or without them: what they wrote is shown, and those that failed are not kept."""
        if running.crew is not self._crew:
            return
        _show(running.crew)
        if went_well:
            return
        if "nccl" in self.backend and all(isinstance(answer, Said) for answer in running.answers.values()):
            self._untidy = True
            self.tidy(abort=True)  # ranks with device contexts are dear
        else:
            self.close()

    def _run_inherited(self, call: tuple[Function, tuple[Any, ...], dict[str, Any]], patience: Patience) -> list[Any]:
        number = next(_numbers)
        inherited[number] = call
        crew = Crew(OwnFork(), self.size, is_kept=False)
        try:
            crew.tell(self._task(crew, None, b"", number))
            answers = crew.answers(patience)
            _show(crew)
            return results_of(crew, answers, getattr(call[0], "__qualname__", "a function"))
        finally:
            crew.kill()
            del inherited[number]

    def _task(self, crew: Crew, reference: Reference | None, arguments: bytes, number: int = 0) -> Task:
        return Task(
            number=number,
            reference=reference,
            arguments=arguments,
            test_id=self.test_id or os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0],
            paths=tuple(sys.path),
            directory=os.getcwd(),  # noqa: PTH109 - as text
            environment=_changes(crew.environment, os.environb),
            group=self.config.group,
            epoch=self._epoch,
        )

    def _settle(self) -> None:
        """Hear the votes of the ranks, if they owe any: one that cannot be put back speaks for all."""
        if not self._owes_votes or self._crew is None:
            return
        self._owes_votes = False
        votes = votes_of(self._crew.answers(_VOTE))
        for rank in range(self.size):
            vote = votes.get(rank, _NO_VOTE)
            self.imported.update(vote.imported)
            if vote.discard:
                self.distrust(f"rank {rank} {vote.discard}")
        changed = [vote.group_changed for vote in votes.values()]
        self._untidy |= any(changed)
        if any(changed) and not all(changed):
            self.distrust("ranks left different process groups")

    def tidy(self, *, abort: bool = False) -> None:
        """Have ranks close the groups that a function left, or kill them if they cannot; otherwise do nothing."""
        self._settle()
        if self._untidy and self._crew is not None:
            self._crew.tell(Tidy(abort=abort))
            self._untidy = False
            self._owes_votes = True
            self._epoch += 1
            if self.doubt:
                self.close()

    def close(self) -> None:
        """Kill the ranks; the next `run` has new ones."""
        crew, self._crew = self._crew, None
        self._doubt, self._owes_votes, self._untidy = "", False, False
        if crew is not None:
            crew.kill(and_wait="nccl" in self.backend)


class Running:
    """A function that ranks are running.

    Args:
        crew: Where.
    """

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self.answers: dict[int, Answer] = {}
        """By rank, in the order of their arrival; `Stuck` for a rank that has not answered yet."""

    @property
    def pending(self) -> list[int]:
        """Ranks that have not answered."""
        return [rank for rank in range(self.crew.size) if not isinstance(self.answers.get(rank), Said | Lost)]

    def wait(self, patience: Patience) -> None:
        """Wait for ranks that have not answered, until one is lost."""
        pending = self.pending
        known = {rank: answer for rank, answer in self.answers.items() if rank not in pending}
        self.answers = {**known, **self.crew.answers(patience, pending)}


def _changes(before: Mapping[bytes, bytes], now: Mapping[bytes, bytes]) -> dict[bytes, bytes | None]:
    here = getattr(now, "_data", now)  # the dictionary behind os.environb: no decoding for each run
    changes: dict[bytes, bytes | None] = dict.fromkeys(before.keys() - here.keys())
    changes.update(here.items() - before.items())
    return changes


def _show(crew: Crew) -> None:
    """Write what ranks wrote, each line with its rank: it belongs to the output of the test."""
    for rank, text in crew.fresh_output():
        for line in text.splitlines():
            print(f"[rank {rank}] {line}")  # noqa: T201 - whoever captures the test's output gets it
