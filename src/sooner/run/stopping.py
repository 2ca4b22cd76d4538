"""Signals that stop a run, heard from before it begins until its process ends: none is lost, none raises."""

import asyncio
import signal
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

_STOPS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def take_interrupts() -> None:
    """Undo that SIGINT is ignored, as shells do for what a script starts in the background.

    A run holds devices: whoever sends SIGINT to it wants them back.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class StopSignals:
    """Hears SIGINT, SIGTERM and SIGHUP; those that come before the loop runs wait in it until it does.

    Left, it ignores them: the run has its verdicts, and what remains to be written is short. SIGHUP that was ignored
    when the process began (`nohup`) stays so.

    Args:
        loop: The event loop that will run the units; it need not run yet.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._heard: list[signal.Signals] = []
        self.react: Callable[[int], None] = lambda _: None
        """Called in the loop with the number of a signal."""

    def __enter__(self) -> Self:
        for signum in _STOPS:
            if signum is signal.SIGHUP and signal.getsignal(signum) is signal.SIG_IGN:
                continue
            self._loop.add_signal_handler(signum, self._hear, signum)
            self._heard.append(signum)
        return self

    def _hear(self, signum: int) -> None:
        self.react(signum)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Blocked meanwhile: the loop gives each its default back, which would raise or end the process.
        signal.pthread_sigmask(signal.SIG_BLOCK, self._heard)
        for signum in self._heard:
            self._loop.remove_signal_handler(signum)
            signal.signal(signum, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, self._heard)
