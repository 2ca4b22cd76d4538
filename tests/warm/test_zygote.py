import os
import select
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from sooner.warm.forking import anonymous_file, fork, tail_of  # noqa: E402 - without torch: skipped
from sooner.warm.pages import collapse  # noqa: E402
from sooner.warm.zygote import ForkRefused, Zygote, ZygoteLost, fork_refusal, quiet_threads  # noqa: E402

_PATIENCE_MS = 60_000


@pytest.fixture(scope="module")
def zygote(_autograd_has_no_threads):
    zygote = Zygote.fork()
    yield zygote
    zygote.close()


def train_step():
    weights = torch.randn(300, 300, requires_grad=True)
    (weights @ weights).sum().backward()
    assert weights.grad is not None


@pytest.fixture(scope="module", autouse=True)
def _autograd_has_no_threads():
    """Other tests of this process may have started autograd's device threads: torch's CUDA build without a driver."""
    train_step()
    if "autograd" in (reason := fork_refusal()):
        pytest.skip(reason)


def write(descriptors, argument):
    os.write(1, b"to the output, ")
    print("and from Python:", argument.decode(), file=sys.stderr)
    os.write(descriptors[1], b"to the pipe")


def raise_an_error(_descriptors, _argument):
    raise ValueError("from the child")


def kill_itself(_descriptors, _argument):
    os.kill(os.getpid(), signal.SIGKILL)


def wait_for_ever(descriptors, _argument):
    os.write(descriptors[1], b"here")
    signal.pause()


def train(_descriptors, _argument):
    train_step()


def born(zygote, function, argument=b""):
    """The process, its output and what it wrote into a pipe, which ends when it ends."""
    output = anonymous_file()
    reader, writer = os.pipe()
    try:
        pid = zygote.spawn(f"{__name__}:{function.__name__}", [output, writer], argument)
    finally:
        os.close(writer)
    return pid, output, reader


def outcome(zygote, function, argument=b""):
    pid, output, reader = born(zygote, function, argument)
    try:
        return os.waitstatus_to_exitcode(zygote.status(pid)), tail_of(output), os.read(reader, 100)
    finally:
        os.close(output)
        os.close(reader)


def ends(pid):
    """Whether a process ends, by itself or by somebody else's hand."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    try:
        return bool(poll.poll(_PATIENCE_MS))
    finally:
        os.close(pidfd)


def test_a_child_computes_after_its_parent_did():
    train_step()
    pid = fork()
    if pid == 0:
        train_step()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_a_parent_computes_after_it_was_quieted():
    train_step()
    quiet_threads()
    train_step()


DEVICE_THREAD = """
import ctypes, sys, threading
import torch
from sooner.warm.forking import fork_refusal
libc = ctypes.CDLL(None)
named, stop = threading.Event(), threading.Event()
def thread():
    libc.prctl(15, b"pt_autograd_0")
    named.set()
    stop.wait()
threading.Thread(target=thread, daemon=True).start()
named.wait()
import sooner.warm.forking as forking
forking._thread_refusal = lambda: ""  # a thread of C++ is not seen by Python; this one stands in for it
print(fork_refusal())
"""


def test_a_process_in_which_autograd_has_device_threads_refuses_to_fork():
    done = subprocess.run([sys.executable, "-c", DEVICE_THREAD], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("autograd's device threads run"), done.stderr


def test_a_process_with_threads_refuses_to_fork():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait, name="busy")
    thread.start()
    try:
        assert "busy" in fork_refusal()
        with pytest.raises(ForkRefused, match="busy"):
            fork()
    finally:
        stop.set()
        thread.join()
    assert fork_refusal() == ""


def test_a_process_with_a_device_context_refuses_to_fork(monkeypatch):
    cuda = SimpleNamespace(is_initialized=lambda: True, _is_in_bad_fork=lambda: False)
    monkeypatch.setitem(sys.modules, "torch.cuda", cuda)
    assert "device context" in fork_refusal()


def test_compile_workers_are_shut_down_before_a_fork(monkeypatch):
    shut_down = []
    workers = SimpleNamespace(shutdown_compile_workers=lambda: shut_down.append(True))
    monkeypatch.setitem(sys.modules, "torch._inductor.async_compile", workers)
    quiet_threads()
    assert shut_down == [True]


def test_a_child_gets_descriptors_and_bytes(zygote):
    code, output, written = outcome(zygote, write, b"hello")
    assert (code, output, written) == (0, "to the output, and from Python: hello\n", b"to the pipe")


def test_a_child_that_raises_says_so_in_its_output(zygote):
    code, output, _ = outcome(zygote, raise_an_error)
    assert code == 1
    assert "ValueError: from the child" in output


def test_the_signal_that_ended_a_child_is_known(zygote):
    assert outcome(zygote, kill_itself)[0] == -signal.SIGKILL


def test_children_of_one_that_computed_compute(zygote):
    train_step()
    assert outcome(zygote, train)[:2] == (0, "")


def test_children_of_one_with_huge_pages_compute():
    collapse()
    pid = fork()
    if pid == 0:
        train_step()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def test_modules_are_imported_for_those_born_later(zygote, tmp_path, monkeypatch):
    (tmp_path / "born_later.py").write_text(
        "import os\ndef pid(fds, _): os.write(fds[1], str(PID).encode())\nPID = os.getpid()"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    failed = zygote.preload(["born_later", "no.such.module"])
    assert list(failed) == ["no.such.module"]
    assert "ModuleNotFoundError" in failed["no.such.module"]
    output, (reader, writer) = anonymous_file(), os.pipe()
    pid = zygote.spawn("born_later:pid", [output, writer], b"")
    zygote.status(pid)
    assert os.read(reader, 100) == str(zygote.pid).encode()
    for descriptor in (output, reader, writer):
        os.close(descriptor)


def test_a_module_that_starts_a_thread_makes_a_server_useless(tmp_path, monkeypatch):
    (tmp_path / "starts_a_thread.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait).start()"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    zygote = Zygote.fork()
    with pytest.raises(ForkRefused, match="thread"):
        zygote.preload(["starts_a_thread"])
    zygote.close()


def test_children_end_with_their_server():
    zygote = Zygote.fork()
    pid, output, reader = born(zygote, wait_for_ever)
    assert os.read(reader, 100) == b"here"
    zygote.close()
    assert ends(pid)
    assert os.read(reader, 100) == b""
    os.close(output)
    os.close(reader)


def test_a_server_that_is_lost_is_noticed():
    zygote = Zygote.fork()
    assert zygote.is_alive()
    os.kill(zygote.pid, signal.SIGKILL)
    os.waitid(os.P_PID, zygote.pid, os.WEXITED | os.WNOWAIT)
    assert not zygote.is_alive()
    with pytest.raises(ZygoteLost, match="fork server ended"):
        outcome(zygote, write)
    zygote.close()


def test_a_new_interpreter_serves_as_well():
    zygote = Zygote.start()
    try:
        code, output, _ = outcome(zygote, write, b"hello")
        assert (code, output) == (0, "to the output, and from Python: hello\n")
    finally:
        zygote.close()


def test_a_server_holds_no_pipe_that_somebody_else_waits_for():
    reader, writer = os.pipe()
    zygote = Zygote.fork()
    os.close(writer)
    assert os.read(reader, 1) == b""
    os.close(reader)
    zygote.close()
