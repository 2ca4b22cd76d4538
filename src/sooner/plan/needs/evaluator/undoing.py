"""What a test changes in modules, classes and containers: the next test finds all as it was imported."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.slots import put_back
from sooner.plan.needs.evaluator.values import MISSING

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_LARGEST: Final = 1_000
"""What is in a longer list or table is not kept."""


class Changed:
    """Names and containers as they were before they were first changed."""

    def __init__(self) -> None:
        self._undo: dict[object, Callable[[], None]] = {}

    def keep(self, store: Any) -> None:
        """A list, a dict or a set is about to change."""
        if isinstance(store, list | dict | set) and len(store) <= _LARGEST and id(store) not in self._undo:
            self._undo[id(store)] = _refilling(store)

    def keep_name(self, names: dict[str, Any], name: str) -> None:
        """A name is about to be bound, or deleted; names that are made on demand are asked for none."""
        if (id(names), name) not in self._undo:
            self._undo[id(names), name] = _rebinding(names, name)

    def join(self, later: "Changed") -> None:
        """What was changed later is put back with all else."""
        self._undo = later._undo | self._undo  # noqa: SLF001 - another of the same

    def undo(self) -> None:
        """Put everything back."""
        undo, self._undo = self._undo, {}
        for each in undo.values():
            each()


@contextmanager
def in_advance(machine: "Machine", *, is_done_again: bool) -> Iterator[None]:
    """Something of the library is called to see what it makes: why it may refuse is not asked.

    Args:
        machine: Evaluates.
        is_done_again: Whether it is called once more, as the test's own work: then it finds all as it was.
    """
    guesses, ended, before, environment = machine.guesses, machine.ended, machine.changed, machine.environment
    machine.ended, machine.changed = {}, Changed()
    if is_done_again:
        machine.environment = dict(environment)
    try:
        yield
    finally:
        if is_done_again:
            machine.changed.undo()
            machine.environment = environment
        before.join(machine.changed)
        machine.guesses, machine.ended, machine.changed = guesses, ended, before


def _refilling(store: Any) -> Callable[[], None]:
    before = list(store) if isinstance(store, list) else dict(store) if isinstance(store, dict) else set(store)

    def undo() -> None:
        store.clear()
        (store.extend if isinstance(store, list) else store.update)(before)

    return undo


def _rebinding(names: dict[str, Any], name: str) -> Callable[[], None]:
    before = dict.get(names, name, MISSING)

    def undo() -> None:
        put_back(names, name, before)

    return undo
