"""Comprehensions, and generator expressions as far as they are asked."""

import ast
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from sooner.plan.needs.evaluator.comparisons import Comparisons
from sooner.plan.needs.evaluator.generators import expression_of, one_by_one
from sooner.plan.needs.evaluator.growing import Added
from sooner.plan.needs.evaluator.lazy_values import Turn, turns_of
from sooner.plan.needs.evaluator.values import MISSING, UNKNOWN, Env, Stream, Unknown, hard, is_plain
from sooner.plan.needs.python.iterating import note_list

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine
    from sooner.plan.needs.evaluator.trace import Trace


class Comprehensions(Comparisons):
    """The part of the machine that evaluates comprehensions."""

    forks: int
    guesses: int
    added: Added
    quiet: int
    trace: "Trace"
    turning: list[int]
    loading: bool

    @abstractmethod
    def ev(self, node: ast.expr, env: Env) -> Any:
        """The value of an expression."""

    @abstractmethod
    def items_of(self, value: Any) -> list[Any] | None:
        """What iterating over a value gives; None where that is not known."""

    @abstractmethod
    def key(self, value: Any) -> Any:
        """A value as the key of a dictionary."""

    @abstractmethod
    def bind(self, target: ast.expr, value: Any, env: Env) -> None:
        """Assign a value to a target."""

    def _ev_listcomp(self, node: ast.ListComp, env: Env) -> Any:
        made = self._comprehension(node.generators, env, lambda inner: self.ev(node.elt, inner))
        return note_list(cast("Machine", self), node, env, made)

    def _ev_generatorexp(self, node: ast.GeneratorExp, env: Env) -> Any:
        machine = cast("Machine", self)
        # The first of what it goes through is evaluated where it stands.
        several = one_by_one(machine, self.ev(node.generators[0].iter, env))

        def at_once() -> Any:
            found = self._comprehension(node.generators, env, lambda inner: self.ev(node.elt, inner), several)
            return Stream(found) if isinstance(found, list) else found

        return at_once() if self.loading or self.quiet else expression_of(machine, node, env, several, at_once)

    def _ev_setcomp(self, node: ast.SetComp, env: Env) -> Any:
        found = self._comprehension(node.generators, env, lambda inner: self.ev(node.elt, inner))
        try:
            return set(found) if isinstance(found, list) and is_plain(found) else found
        except TypeError:
            return found

    def _ev_dictcomp(self, node: ast.DictComp, env: Env) -> Any:
        found = self._comprehension(
            node.generators, env, lambda inner: (self.key(self.ev(node.key, inner)), self.ev(node.value, inner))
        )
        return dict(found) if isinstance(found, list) else UNKNOWN

    def _comprehension(
        self, generators: list[ast.comprehension], env: Env, element: Callable[[Env], Any], several: Any = MISSING
    ) -> Any:
        inner = Env(env.module, env)
        inner.frame, inner.is_inner = env.frame, True
        results: list[Any] = []
        perhaps: set[int] = set()

        def emit(*, is_perhaps: bool) -> None:
            perhaps.update([len(results)] * is_perhaps)
            results.append(element(inner))

        around = len(self.turning)
        try:
            is_known = self._generate(generators, inner, emit, several)
        finally:
            del self.turning[around:]
        self.added.mark(results, perhaps)
        return results if is_known else UNKNOWN if any(each.ifs for each in generators) else Turn(results)

    def _generate(
        self,
        generators: list[ast.comprehension],
        env: Env,
        emit: Callable[..., None],
        several: Any = MISSING,
        *,
        is_perhaps: bool = False,
    ) -> bool:
        if not generators:
            emit(is_perhaps=is_perhaps)
            return True
        first, rest = generators[0], generators[1:]
        several = self.ev(first.iter, env) if several is MISSING else several
        values = self.items_of(several)
        is_known, perhaps = values is not None, self.added.places(several)
        if values == []:
            self.trace.starts.without_a_turn.add(id(first))
        self.turning.append(id(first))
        # As a loop is: where nobody knows how often it turns, it turns once.
        for place, value in enumerate(turns_of(hard(several)) if values is None else values):
            self.bind(first.target, value, env)
            truths = [self.truth(self.ev(each, env)) for each in first.ifs]
            if None in truths and is_known:
                is_known = isinstance(hard(value), Unknown)
                self.guesses += is_known  # of things that nobody knows it is counted how many there may be
            if False not in truths:
                is_known &= self._generate(rest, env, emit, is_perhaps=is_perhaps or place in perhaps)
        self.turning.pop()
        return is_known
