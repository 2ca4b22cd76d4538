import contextlib
import logging
import os
import random
import select
import signal
import subprocess
import sys
import threading
import unittest
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402 - without torch: skipped

from sooner.warm.judgement import RankFailed, RankLost, WorldError, WorldHung  # noqa: E402
from sooner.warm.worlds import Worlds  # noqa: E402

_PATIENCE_MS = 60_000
left_behind = []


@pytest.fixture(scope="module")
def worlds():
    worlds = Worlds(timeout_s=60)
    yield worlds
    worlds.close()


@pytest.fixture
def pair(worlds):
    with worlds.lease(2) as world:
        yield world


def rank():
    return dist.get_rank()


def total(value):
    tensor = torch.full((3,), float(value + dist.get_rank()))
    dist.all_reduce(tensor)
    return tensor.tolist()


def open_files():
    return {int(path.name) for path in list(Path("/proc/self/fd").iterdir()) if path.exists()}


def wait_for_end(pidfd):
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    assert poll.poll(_PATIENCE_MS)
    os.close(pidfd)


def pids(worlds, size=2, **more):
    with worlds.lease(size, **more) as world:
        world.run(rank)
        return world.pids


def only_rank_1(action):
    """Rank 1 does something, the others wait for it in vain."""
    if dist.get_rank() == 1:
        action()
    dist.barrier()


def die(number):
    only_rank_1(lambda: os.kill(os.getpid(), number))


def exit_with(code):
    only_rank_1(lambda: os._exit(code))


def refuse():
    raise ValueError("not on this rank")


def fail_on_rank_1():
    only_rank_1(refuse)


def hang_on_rank_1():
    if dist.get_rank() == 1:
        threading.Event().wait()


class Untold(Exception):  # noqa: N818
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def fail_untold():
    raise Untold("this", "that")


def skip():
    raise unittest.SkipTest("not on this machine")


def leak_environment():
    os.environ["LEAKED"] = "1"


def read_environment(name):
    return os.environ.get(name)


def directory():
    return str(Path.cwd())


def leak_thread():
    if dist.get_rank() == 1:
        threading.Thread(target=threading.Event().wait, daemon=True).start()


def leak_group():
    dist.new_group([0, 1])


def leak_work():
    left_behind.append(torch.ops._c10d_functional.all_reduce(torch.ones(1), "sum", dist.group.WORLD.group_name))


def destroy_group():
    dist.destroy_process_group()


def destroy_group_on_rank_1():
    if dist.get_rank() == 1:
        dist.destroy_process_group()


def draw():
    return random.random(), torch.rand(1).item()


def speak():
    print("hello from", dist.get_rank())
    os.write(2, b"and without Python\n")


def has_group():
    return dist.is_initialized()


def test_a_function_runs_on_every_rank(pair):
    assert pair.run(rank) == [0, 1]
    assert pair.run(total, 1) == [[3.0] * 3] * 2
    assert pair.run(total, value=2) == [[5.0] * 3] * 2


def test_ranks_are_kept_between_leases(worlds):
    assert pids(worlds) == pids(worlds)


def test_another_configuration_has_other_ranks(worlds):
    assert not set(pids(worlds)) & set(pids(worlds, group_timeout_s=100))


def test_ranks_of_a_world_that_is_not_kept_are_new_each_time(worlds):
    assert not set(pids(worlds, is_kept=False)) & set(pids(worlds, is_kept=False))


def test_a_world_without_a_group_has_none(worlds):
    with worlds.lease(2, None) as world:
        assert world.run(has_group) == [False, False]


def test_a_closure_runs_on_ranks_that_are_forked_for_it(pair):
    secret = object()
    assert pair.run(lambda: (dist.get_rank(), secret is not None)) == [(0, True), (1, True)]


def test_arguments_that_cannot_travel_are_refused(pair):
    with pytest.raises(TypeError, match="must be picklable"):
        pair.run(total, threading.Lock())


def test_what_a_rank_raises_is_raised_here_and_the_others_are_not_waited_for(pair):
    before = pair.run(rank) and pair.pids
    with pytest.raises(ValueError, match="not on this rank") as caught:
        pair.run(fail_on_rank_1)
    told = str(caught.value.__cause__)
    assert isinstance(caught.value.__cause__, RankFailed)
    assert "in refuse" in told
    assert "rank 0" in told
    assert pair.run(rank) == [0, 1]
    assert not set(before) & set(pair.pids)


def test_what_all_ranks_raise_is_told_once(pair):
    pair.after_failure_s = 60.0
    with pytest.raises(ValueError, match="not on this") as caught:
        pair.run(refuse)
    assert str(caught.value.__cause__).count("raise ValueError") == 1
    assert "ranks 0, 1" in str(caught.value.__cause__)


def test_an_exception_that_cannot_travel_is_told_as_text(pair):
    with pytest.raises(RankFailed, match="this and that"):
        pair.run(fail_untold)


def test_a_skip_is_a_skip_and_keeps_the_ranks(pair):
    before = pair.run(rank) and pair.pids
    with pytest.raises(unittest.SkipTest, match="not on this machine"):
        pair.run(skip)
    assert pair.run(rank)
    assert pair.pids == before


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_rank_that_dies_is_named_with_its_signal_and_the_next_test_has_new_ranks(pair, number):
    with pytest.raises(RankLost, match=f"rank 1 of 2 was ended by {number.name} in the middle of die") as caught:
        pair.run(die, number)
    assert (caught.value.rank, caught.value.status) == (1, -number)
    assert ("in die" in str(caught.value)) == (number == signal.SIGSEGV)
    assert pair.run(total, 1) == [[3.0] * 3] * 2


def test_a_rank_that_exits_is_named_with_its_code(pair):
    with pytest.raises(RankLost, match="rank 1 of 2 ended with exit code 3"):
        pair.run(exit_with, 3)


def test_a_rank_that_died_between_tests_is_replaced(pair):
    pair.run(rank)
    victim = pair.pids[1]
    pidfd = os.pidfd_open(victim)
    os.kill(victim, signal.SIGKILL)
    wait_for_end(pidfd)
    assert pair.run(rank) == [0, 1]
    assert victim not in pair.pids


def test_a_rank_that_hangs_is_ended_and_the_stacks_say_where_it_was(pair):
    pair.run(rank)
    with pytest.raises(WorldHung, match="did not return in time") as caught:
        pair.run(hang_on_rank_1, timeout_s=0.5)
    assert "rank 1 was here" in str(caught.value)
    assert "in hang_on_rank_1" in str(caught.value)
    assert pair.run(rank) == [0, 1]


def test_what_a_rank_changed_is_put_back(pair):
    before = pair.run(rank) and pair.pids
    pair.run(leak_environment)
    assert pair.run(read_environment, "LEAKED") == [None, None]
    assert pair.pids == before


def test_ranks_look_like_the_process_of_the_caller(pair, monkeypatch, tmp_path):
    pair.run(rank)
    monkeypatch.setenv("OF_THE_TEST", "set")
    monkeypatch.chdir(tmp_path)
    assert pair.run(read_environment, "OF_THE_TEST") == ["set", "set"]
    assert pair.run(directory) == [str(tmp_path)] * 2
    monkeypatch.undo()
    assert pair.run(read_environment, "OF_THE_TEST") == [None, None]


def test_one_rank_that_cannot_be_put_back_speaks_for_all(worlds):
    with worlds.lease(2) as world:
        world.run(leak_thread)
        before = world.pids
        assert world.doubt.startswith("rank 1 left 1 threads")
    assert not set(before) & set(pids(worlds))


def test_a_group_that_is_left_is_closed_and_the_ranks_are_kept(worlds):
    before = pids(worlds)
    with worlds.lease(2) as world:
        world.run(leak_group)
    with worlds.lease(2) as world:
        assert world.run(total, 1) == [[3.0] * 3] * 2
        assert world.pids == before


def test_a_default_group_that_was_destroyed_is_made_again(pair):
    before = pair.run(rank) and pair.pids
    pair.run(destroy_group)
    assert pair.run(total, 1) == [[3.0] * 3] * 2
    assert pair.pids == before


def test_ranks_that_left_different_groups_are_ended(worlds):
    with worlds.lease(2) as world:
        world.run(destroy_group_on_rank_1)
        before = world.pids
        assert "different process groups" in world.doubt
    assert not set(before) & set(pids(worlds))


def test_a_collective_that_nobody_waited_for_ends_the_ranks(worlds):
    with worlds.lease(2) as world:
        world.run(leak_work)
        assert "left 1 collectives" in world.doubt


def test_random_numbers_depend_on_the_test_alone(worlds):
    with worlds.lease(2, test_id="a.py::one") as world:
        first, same = world.run(draw)
        assert first == same == world.run(draw)[0]
    with worlds.lease(2, test_id="a.py::two") as world:
        assert world.run(draw)[0] != first


def test_what_ranks_write_is_output_of_the_test(pair, capsys):
    pair.run(speak)
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines) == [
        *("[rank 0] and without Python", "[rank 0] hello from 0"),
        *("[rank 1] and without Python", "[rank 1] hello from 1"),
    ]


def test_worlds_are_void_after_a_fork(worlds):
    before = pids(worlds)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            os.write(writer, repr(set(pids(worlds)) & set(before)).encode())
            worlds.close()
        os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    assert os.read(reader, 100) == b"set()"
    os.close(reader)
    assert pids(worlds) == before


def test_what_worlds_hold_is_known():
    worlds = Worlds()
    before = open_files()
    pids(worlds)
    assert open_files() - before == worlds.descriptors
    worlds.close()
    assert worlds.descriptors == worlds.children == frozenset()


def test_a_lost_fork_server_is_replaced():
    worlds = Worlds()
    before = pids(worlds)
    (mother,) = worlds.children
    ranks = [os.pidfd_open(pid) for pid in before]
    os.kill(mother, signal.SIGKILL)
    for pidfd in (os.pidfd_open(mother), *ranks):
        wait_for_end(pidfd)
    assert not set(before) & set(pids(worlds))
    worlds.close()


def test_ranks_of_a_process_that_must_not_fork_come_from_a_new_interpreter():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    worlds = Worlds()
    try:
        with worlds.lease(2) as world:
            assert world.run(total, 1) == [[3.0] * 3] * 2
    finally:
        worlds.close()
        stop.set()
        thread.join()


def test_ranks_end_when_their_owner_is_killed():
    program = (
        "import os, signal, sys\nfrom sooner.warm.worlds import Worlds\nfrom sooner.warm.rank import current\n"
        "with Worlds().lease(2, None) as world:\n"
        "    world.run(os.getpid)\n    print(*world.pids, flush=True)\n    signal.pause()\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    ranks = [os.pidfd_open(int(pid)) for pid in owner.stdout.readline().split()]
    owner.kill()
    owner.wait()
    owner.stdout.close()
    for pidfd in ranks:
        wait_for_end(pidfd)
    assert len(ranks) == 2


def test_errors_of_ranks_are_errors_of_worlds():
    assert all(issubclass(kind, WorldError) for kind in (RankFailed, RankLost, WorldHung))


def test_what_ranks_import_of_torch_is_imported_before_the_next_are_born():
    worlds = Worlds()
    with worlds.lease(1, None, is_kept=False) as world:
        assert world.run(imported, "torch.utils.viz._cycles", also=True) == [False]
    with worlds.lease(1, None, is_kept=False) as world:
        assert world.run(imported, "torch.utils.viz._cycles") == [True]
    worlds.close()


def imported(name, *, also=False):
    before = name in sys.modules
    if also:
        __import__(name)
    return before


def handlers():
    names = [type(handler).__module__ for handler in logging.getLogger().handlers]
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler, signal.getsignal(signal.SIGUSR1), names


def test_ranks_have_none_of_the_habits_of_pytest():
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    worlds = Worlds()
    try:
        with worlds.lease(1, None) as world:
            assert world.run(handlers) == [(True, signal.SIG_DFL, [])]
            assert world.run(warn) == ["ignored"]
    finally:
        worlds.close()
        signal.signal(signal.SIGUSR1, before)


def warn():
    warnings.warn("old", DeprecationWarning, stacklevel=1)
    return "ignored"


def test_a_run_that_is_interrupted_leaves_no_rank_behind(worlds):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    with worlds.lease(2) as world:
        world.run(rank)
        left = [os.pidfd_open(pid) for pid in world.pids]
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            world.run(hang_on_rank_1)
        assert world.pids == []
    signal.signal(signal.SIGALRM, before)
    for pidfd in left:
        wait_for_end(pidfd)
