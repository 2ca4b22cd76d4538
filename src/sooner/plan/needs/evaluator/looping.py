"""Loops: how often they turn, as far as that is known, and what is less sure where it is not."""

import ast
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from sooner.plan.needs.evaluator.generators import one_by_one
from sooner.plan.needs.evaluator.growing import Added
from sooner.plan.needs.evaluator.lazy_values import Generator, turns_of
from sooner.plan.needs.evaluator.raising import Raising
from sooner.plan.needs.evaluator.suspending import Stop, Suspended
from sooner.plan.needs.evaluator.values import Env, Extent, Loop, hard
from sooner.plan.needs.evaluator.ways import doubt_what_follows, perhaps_gone
from sooner.plan.needs.syntax import calls_in, kept, last_name

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_MOST_TURNS: Final = 1024
_MOST_TURNS_OF_WHILE: Final = 64
"""Turns of a loop that are followed."""
_FEW_TURNS: Final = 64
_SHARE_OF_A_LOOP: Final = 3
"""A loop of more than a few turns may spend a third of what there is: its other turns are like those before."""
_TURNS_OF_WAITING: Final = 2
"""Of a loop that sleeps: what it waits for does not happen here."""


class Looping(Raising):
    """The part of the machine that follows loops."""

    fuel: int
    quiet: int
    of_any_length: dict[int, Any]
    turning: list[int]
    added: Added
    may_have_left: tuple[Extent, ...] = ()
    """What was used when a way that is not known left a loop, of all turns of the loop that is under way."""

    def _do_for(self, node: ast.For | ast.AsyncFor, env: Env) -> None:
        with self._may_be_left(node):
            self._follow_for(node, env)

    @contextmanager
    def _may_be_left(self, node: ast.stmt) -> Iterator[None]:
        """What is used in a loop after a way that is not known has left it, or its turn, is less sure."""
        around, self.may_have_left = self.may_have_left, ()
        self.turning.append(id(node))
        try:
            yield
        finally:
            self.turning.pop()
            doubt_what_follows(cast("Machine", self), self.may_have_left)
            self.may_have_left = around

    def _follow_for(self, node: ast.For | ast.AsyncFor, env: Env) -> None:
        several = one_by_one(cast("Machine", self), self.ev(node.iter, env))
        if isinstance(several, Generator):
            self._turns_of_for(node, env, several.turns(cast("Machine", self)), is_long=True)
            return
        values = self.items_of(several)
        if values is None:
            with self.turns_not_known(env):
                self._turns_of_for(node, env, ((each, False) for each in turns_of(hard(several))))
            return
        if not values:
            self.trace.starts.without_a_turn.add(id(node))
        perhaps = self.added.places(several)
        turns = ((each, index in perhaps) for index, each in enumerate(values[:_MOST_TURNS]))
        self._turns_of_for(node, env, turns, is_long=len(values) > _FEW_TURNS)

    def _turns_of_for(
        self,
        node: ast.For | ast.AsyncFor,
        env: Env,
        turns: Iterator[tuple[Any, bool]],
        stop: Stop = None,
        *,
        is_long: bool = False,
    ) -> None:
        """The turns of a loop, or those left after a `yield`: a value each, and whether it may not be there."""
        if isinstance(stop, Loop) and stop.kind == "break":
            return
        if stop is not None and not isinstance(stop, Loop):
            raise stop
        before = _lengths(env) if is_long else {}
        least = self.fuel - self.fuel // _SHARE_OF_A_LOOP
        for index, (value, is_perhaps) in enumerate(turns):
            self.bind(node.target, value, env)
            try:
                with perhaps_gone(cast("Machine", self)) if is_perhaps else nullcontext():
                    self.run(node.body, env)
            except Suspended as again:
                again.rest.append(partial(self._turns_of_for, node, env, turns, is_long=is_long))
                raise
            except Loop as loop:
                if loop.kind == "break":
                    return
            if index >= _FEW_TURNS and self.fuel < least:  # what follows is looked at, too
                self._grown(before)
                break
        self.run(node.orelse, env)

    @contextmanager
    def turns_not_known(self, env: Env) -> Iterator[None]:
        """How long the lists are that grow in a loop is not known, if nobody knows how often it turns."""
        before = _lengths(env)
        try:
            yield
        finally:
            self._grown(before)

    def _grown(self, before: dict[int, tuple[Any, int]]) -> None:
        for key, (value, length) in before.items():
            if len(value) != length:
                self.of_any_length[key] = value

    def _do_while(self, node: ast.While, env: Env) -> None:
        with self._may_be_left(node):
            self._follow_while(node, env)

    def _follow_while(self, node: ast.While, env: Env) -> None:
        most = _TURNS_OF_WAITING if _sleeps(node) else _MOST_TURNS_OF_WHILE
        self._turns_of_while(node, env, iter(range(most)))

    def _turns_of_while(self, node: ast.While, env: Env, turns: Iterator[int], stop: Stop = None) -> None:
        """The turns of a loop, or what is left of them after a `yield`."""
        if isinstance(stop, Loop) and stop.kind == "break":
            return
        if stop is not None and not isinstance(stop, Loop):
            raise stop
        for turn in turns:
            truth = self.truth(self.ev(node.test, env))
            if truth is False:
                self._end_of_while(node, turn)
                self.run(node.orelse, env)
                break
            try:
                with self._perhaps_no_turn(env) if truth is None else nullcontext():
                    self.run(node.body, env)
            except Suspended as again:
                left = iter(()) if truth is None else turns
                again.rest.append(partial(self._turns_of_while, node, env, left))
                raise
            except Loop as loop:
                if loop.kind == "break":
                    self._end_of_while(node, turn)
                    return
            if truth is None:
                self.run(node.orelse, env)
                break

    def _end_of_while(self, node: ast.While, turn: int) -> None:
        if turn == 0:
            self.trace.starts.without_a_turn.add(id(node))

    @contextmanager
    def _perhaps_no_turn(self, env: Env) -> Iterator[None]:
        """A turn of which nobody knows whether there is one; what the library does in one is done."""
        with self.turns_not_known(env), nullcontext() if self.quiet else perhaps_gone(cast("Machine", self)):
            yield


@kept
def _sleeps(node: ast.While) -> bool:
    """Whether something in a loop is called `sleep`."""
    return any(last_name(each.func) == "sleep" for each in calls_in(node))


def _lengths(env: Env) -> dict[int, tuple[Any, int]]:
    """How long the lists and sets are that names of a function and of those around it mean."""
    found: dict[int, tuple[Any, int]] = {}
    scope: Env | None = env
    while scope is not None and scope.parent is not None:
        found |= {id(each): (each, len(each)) for each in scope.names.values() if isinstance(each, list | set)}
        scope = scope.parent
    return found
