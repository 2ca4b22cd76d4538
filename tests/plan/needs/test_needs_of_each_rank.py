"""Workers that do different things: which of them uses which device, and who asks whether they have failed."""

import pytest
from small_projects import needs_of

HEAD = """
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Process, SimpleQueue
import pytest
import torch
import torch.multiprocessing as mp

def touch(index):
    torch.ones(2, device=f"cuda:{index}")
"""


def told(body):
    """The profile with the number of devices where the one test runs (`f1222`), and where it is vacuous."""
    said = needs_of("test_it.py", {"test_it.py": HEAD + body})["test_it"]
    letters = (str(said.devices[size]) if what == "run" else what[0] for size, what in said.profile.items())
    return "".join(letters), said.vacuous


@pytest.mark.parametrize(
    ("does", "ranks", "profile"),
    [
        ("if rank in (1, 3): touch(rank)", 3, "ff1111"),
        ("if rank == 0: touch(3)", 2, "ffff11"),
        ("if rank < torch.cuda.device_count(): touch(rank)", 4, "012344"),
        ("if not rank: touch(1)", 2, "ff1111"),
        ("touch((rank + 1) % world)", 2, "ff2222"),
        ("touch(rank // 2)", 4, "ff2222"),
        ("if rank >= 2: return\n    touch(rank)", 4, "ff2222"),
        ("touch(1 if rank else 0)", 3, "ff2222"),
        ("torch.cuda.set_device(rank % 2)\n    torch.ones(2).cuda()", 3, "ff2222"),
        ("touch(2 * rank); touch(2 * rank + 1)", 2, "ffff44"),
        ("torch.cuda.set_device(rank); touch(2 * rank)", 2, "fff222"),
        ("touch(rank)", 3, "fff333"),
    ],
)
def test_where_workers_ask_which_of_them_they_are_each_is_looked_at(does, ranks, profile):
    body = f"""
def work(rank, world):
    {does}

def test_it():
    mp.spawn(work, args=({ranks},), nprocs={ranks})
"""
    assert told(body) == (profile, [])


UNHEARD = {
    "process": "[Process(target=work, args=(rank, 2)) for rank in range(2)]",
    "thread": "[threading.Thread(target=work, args=(rank, 2)) for rank in range(2)]",
}


@pytest.mark.parametrize("kind", UNHEARD)
def test_of_a_worker_that_fails_nobody_hears_who_does_not_ask_and_then_the_test_passes_vacuously(kind):
    body = f"""
def work(rank, world):
    touch(rank)

def test_it():
    workers = {UNHEARD[kind]}
    for each in workers:
        each.start()
    for each in workers:
        each.join()
"""
    assert told(body) == ("012222", [0, 1])


@pytest.mark.parametrize("asks", ["assert each.exitcode == 0", "if each.exitcode: pytest.fail('failed')"])
def test_who_asks_for_the_exit_codes_of_processes_hears_that_one_has_failed(asks):
    body = f"""
def work(rank, world):
    touch(rank)

def test_it():
    workers = {UNHEARD["process"]}
    for each in workers:
        each.start()
    for each in workers:
        each.join()
        {asks}
"""
    assert told(body) == ("ff2222", [])


def test_a_failure_that_a_worker_may_tell_is_heard():
    body = """
def work(rank, errors):
    touch(rank)

def test_it():
    errors = SimpleQueue()
    worker = Process(target=work, args=(1, errors))
    worker.start()
    worker.join()
"""
    assert told(body) == ("ff1111", [])


@pytest.mark.parametrize("kind", ["Process", "threading.Thread"])
def test_a_failure_of_a_worker_that_something_is_awaited_of_is_heard(kind):
    body = f"""
def test_it():
    answers = SimpleQueue()
    def work():
        touch(1)
        answers.put(1)
    worker = {kind}(target=work)
    worker.start()
    assert answers.get() == 1
"""
    assert told(body) == ("ff1111", [])


def test_a_number_of_devices_that_is_asserted_and_more_than_the_usual_is_believed():
    said = needs_of("test_it.py", {"test_it.py": HEAD + "def test_it(): assert torch.cuda.device_count() >= 16"})
    assert (said["test_it"].min, said["test_it"].profile["8"]) == (16, "fail")


@pytest.mark.parametrize("uses", ["torch.ones(2).cuda()", "torch.ones(2).to('cuda')", "torch.Stream()"])
def test_a_device_that_was_chosen_is_the_one_that_is_used_where_none_is_named(uses):
    assert told(f"def test_it():\n    torch.cuda.set_device(1)\n    {uses}\n") == ("ff1111", [])
