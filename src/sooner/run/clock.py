"""One clock for all processes of a run: epoch seconds that no change of the system's clock moves.

The runner reads the system's clock once and from then on adds what the monotonic clock says; the guardian and its
wardens are given the same offset. So times are comparable across processes, and no duration is negative or hours too
long because a machine's clock was set while a unit ran. Standard library only: wardens import it.
"""

import time

_offset = time.time() - time.monotonic()


def now() -> float:
    """Epoch seconds, as the system's clock told when this run began."""
    return _offset + time.monotonic()


def offset() -> float:
    """What lies between the monotonic clock and `now`: to be given to other processes of this run."""
    return _offset


def follow(given: float) -> None:
    """Take over the offset of the run that this process belongs to."""
    global _offset  # noqa: PLW0603 - one process has one clock
    _offset = given


def as_the_system_tells(at: float) -> float:
    """A moment of this clock as files show it that were written since the system's clock was last set."""
    return time.time() - (now() - at)
