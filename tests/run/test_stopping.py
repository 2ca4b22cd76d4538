"""Signals that ask a run to stop, at the moments at which they used to be lost."""

import asyncio
import signal

import pytest

from sooner.run.stopping import StopSignals, take_interrupts

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def handlers():
    """Each test finds the handlers of a fresh process, and leaves those that it found."""
    before = {number: signal.getsignal(number) for number in NUMBERS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


async def _once_round():
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_before_the_loop_runs_is_heard_when_it_does(number):
    heard = []
    with asyncio.Runner() as runner, StopSignals(runner.get_loop()) as stops:
        signal.raise_signal(number)
        assert heard == []
        stops.react = heard.append
        runner.run(_once_round())
    assert heard == [number]


def test_an_interrupt_that_a_script_had_ignored_is_heard():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    take_interrupts()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_hangup_that_nohup_had_ignored_stays_ignored():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    heard = []
    with asyncio.Runner() as runner, StopSignals(runner.get_loop()) as stops:
        stops.react = heard.append
        signal.raise_signal(signal.SIGHUP)
        runner.run(_once_round())
    assert heard == []
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_a_signal_after_the_run_neither_raises_nor_ends_the_process():
    with asyncio.Runner() as runner, StopSignals(runner.get_loop()):
        runner.run(_once_round())
    for number in NUMBERS:
        signal.raise_signal(number)
