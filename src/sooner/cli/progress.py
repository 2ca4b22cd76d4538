"""A bar on standard error for what takes long, on a terminal where somebody sees it; nothing elsewhere."""

import sys
from collections.abc import Callable
from typing import Any, Final

from sooner.cli.showing import is_live

_WIDEST: Final = 60


class progress:  # noqa: N801 - read as a function
    """Gives what is called with what is being done, how many are done, and of how many (0: not known).

    The bar begins with the first call: whoever forks processes before it has no thread yet, what is quick shows none.
    """

    def __init__(self) -> None:
        self._bar: Any = None

    def __enter__(self) -> Callable[[str, int, int], None]:
        return self._tell if is_live(sys.stderr) else _nothing

    def _tell(self, what: str, done: int, count: int) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            text = TextColumn("{task.description}", markup=False)
            columns = (text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("", total=None)
        self._bar.update(self._task, description=what[-_WIDEST:], completed=done, total=count or None)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def _nothing(what: str, done: int, count: int) -> None:
    """Where nobody sees it."""
