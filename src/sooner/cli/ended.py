"""What happens to a verb that is told to end from outside."""

import contextlib
import signal
from collections.abc import Iterator
from typing import NoReturn


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end what is done as an exception does, as CI systems end a job: nothing is left behind."""

    def end(signum: int, _: object) -> NoReturn:
        raise SystemExit(128 + signum)

    heard = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is not signal.SIG_IGN]
    before = {one: signal.signal(one, end) for one in heard}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
