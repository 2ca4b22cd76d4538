"""Work on all CPUs: what comes back, and what is left when it ends before."""

import os
import signal
import threading
import time

import pytest

from sooner.run.in_processes import ProcessLost, in_processes


def test_results_come_in_the_order_of_the_arguments_and_are_told_as_they_come():
    told = {}
    found = in_processes(lambda number: (os.getpid(), number**2), [3, 2, 1], most=2, done=told.__setitem__)
    assert [square for _, square in found] == [9, 4, 1]
    assert os.getpid() not in {pid for pid, _ in found}
    assert told == dict(enumerate(found))


def test_one_process_is_this_one():
    told = {}
    assert in_processes(lambda _: os.getpid(), [1, 2], most=1, done=told.__setitem__) == [os.getpid()] * 2
    assert told == {0: os.getpid(), 1: os.getpid()}


def _is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def _sleeping_beside(path, do):
    """Work of which one part sleeps for ever, and the other does something once it does."""

    def work(number):
        if number == 0:
            path.with_suffix(".tmp").write_text(str(os.getpid()))
            path.with_suffix(".tmp").rename(path)
            time.sleep(100_000)
        while not path.exists():
            time.sleep(0.001)
        return do()

    return work


def _fail():
    raise ValueError("part of the work")


def test_an_error_of_one_part_ends_the_others(tmp_path):
    with pytest.raises(ValueError, match="part of the work"):
        in_processes(_sleeping_beside(tmp_path / "pid", _fail), [0, 1], most=2)
    assert _is_gone(int((tmp_path / "pid").read_text()))


def test_an_interrupt_ends_all_parts(tmp_path):
    threads = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        in_processes(
            _sleeping_beside(tmp_path / "pid", int), [0, 1], most=2,
            done=lambda *_: signal.default_int_handler(signal.SIGINT, None),
        )  # fmt: skip
    assert _is_gone(int((tmp_path / "pid").read_text()))
    assert threading.active_count() == threads  # one that ended with the interpreter told of a closed file


def test_handlers_of_signals_are_not_for_the_parts():
    def end(*_):
        raise SystemExit(1)

    before = signal.signal(signal.SIGTERM, end)
    try:
        assert in_processes(lambda _: signal.getsignal(signal.SIGTERM), [1, 2], most=2) == [signal.SIG_DFL] * 2
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_part_that_is_killed_is_one_clear_error(tmp_path):
    work = _sleeping_beside(tmp_path / "pid", lambda: os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL))
    with pytest.raises(ProcessLost, match="was killed, perhaps for lack of memory"):
        in_processes(work, [0, 1], most=2)
