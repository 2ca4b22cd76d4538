"""Waits for an answer no longer than a deadline, where what is asked has a timeout only for each piece of it."""

from collections.abc import Callable
from queue import Empty, Queue
from threading import Thread
from typing import TypeVar

_T = TypeVar("_T")


def within(seconds: float, ask: Callable[[], _T]) -> _T:
    """What is answered, or raised, in time; the thread that waits for one that drips on is left behind.

    Raises:
        TimeoutError: There is no whole answer in time.
    """
    said: Queue[tuple[_T | None, Exception | None]] = Queue()

    def wait() -> None:
        try:
            said.put((ask(), None))
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            said.put((None, error))

    Thread(target=wait, daemon=True).start()
    try:
        answer, error = said.get(timeout=seconds)
    except Empty:
        raise TimeoutError(f"no whole answer within {seconds:g} s") from None
    if error is not None:
        raise error
    return answer  # type: ignore[return-value]  # where nothing was raised there is one
