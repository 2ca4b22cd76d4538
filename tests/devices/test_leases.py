import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from sooner.devices.leases import QUARANTINE_S, LeaseBook, lease_root
from sooner.model.devices import Device, DeviceId, DeviceKind
from sooner.model.errors import DevicesError

VIRTUAL = [
    Device(id=DeviceId(f"virtual:{index}"), kind=DeviceKind.VIRTUAL, index=index, visible=str(index))
    for index in range(8)
]
GPU = Device(id=DeviceId("nvidia:0"), kind=DeviceKind.NVIDIA, index=0, visible="0", uuid="GPU-aaaa")

CHILD = """
import sys
from pathlib import Path
from sooner.devices.leases import LeaseBook
from sooner.model.devices import Device, DeviceKind

book = LeaseBook(Path(sys.argv[1]))
devices = [Device(id=f"virtual:{i}", kind=DeviceKind.VIRTUAL, index=i, visible=str(i)) for i in range(8)]
print("ready", flush=True)
sys.stdin.readline()
leases = {device.id: book.try_lease(device, holder="child") for device in devices}
print(*(name for name, lease in leases.items() if lease), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def root(tmp_path):
    return tmp_path / "leases"


@pytest.fixture
def book(root):
    return LeaseBook(root)


@pytest.fixture
def child(root):
    """Start a process that leases what it gets of eight devices when told to, until its stdin closes."""
    started = []

    def start():
        source = Path(sys.modules["sooner"].__file__).parents[1]
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD, root],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(source)},
        )
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def go(process):
    process.stdin.write("go\n")
    process.stdin.flush()


def test_a_leased_device_cannot_be_leased_again_until_it_is_released(book):
    lease = book.try_lease(VIRTUAL[0], holder="a")
    assert book.try_lease(VIRTUAL[0], holder="b") is None
    lease.release()
    lease.release()
    assert lease.fd == -1
    with book.try_lease(VIRTUAL[0], holder="b"):
        assert book.try_lease(VIRTUAL[0], holder="a") is None
    assert book.holder_of(VIRTUAL[0]) is None


def test_asking_for_a_holder_creates_nothing(book, root):
    assert book.holder_of(VIRTUAL[0]) is None
    assert book.put_aside_reason(VIRTUAL[0], now=0) is None
    assert not book.clear(VIRTUAL[0])
    assert not root.exists()


def test_a_holder_is_named_with_its_run_and_its_process(book):
    with book.try_lease(VIRTUAL[0], holder="nightly"):
        assert book.holder_of(VIRTUAL[0]).startswith(f"nightly (pid {os.getpid()}, ")
    assert book.holder_of(VIRTUAL[0]) is None


def test_a_holder_cannot_write_on_our_terminal(book):
    with book.try_lease(VIRTUAL[0], holder="\x1b[2Jboo\n"):
        assert book.holder_of(VIRTUAL[0]).startswith("boo (pid")


def test_a_held_device_whose_text_is_garbage_still_has_a_holder(book, root):
    with book.try_lease(VIRTUAL[0], holder="a"):
        (file,) = root.iterdir()
        file.write_text("[1]")
        assert book.holder_of(VIRTUAL[0]) == "? (pid ?, ?)"


def test_two_processes_never_lease_the_same_device_and_leave_none(child):
    first, second = child(), child()
    go(first)
    go(second)
    theirs = [set(process.stdout.readline().split()) for process in (first, second)]
    assert not theirs[0] & theirs[1]
    assert theirs[0] | theirs[1] == {device.id for device in VIRTUAL}


def test_a_lease_dies_with_its_killed_holder(book, child):
    holder = child()
    go(holder)
    holder.stdout.readline()
    assert f"pid {holder.pid}," in book.holder_of(VIRTUAL[0])
    assert book.try_lease(VIRTUAL[0], holder="us") is None
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert book.try_lease(VIRTUAL[0], holder="us") is not None


def test_a_lease_lives_until_its_last_duplicate_is_closed(book):
    lease = book.try_lease(VIRTUAL[0], holder="us")
    heir = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[lease.fd])
    lease.release()
    assert book.try_lease(VIRTUAL[0], holder="them") is None
    assert book.holder_of(VIRTUAL[0]).startswith("us (")
    heir.communicate()
    assert book.try_lease(VIRTUAL[0], holder="them") is not None


def test_somebody_who_only_asks_does_not_keep_a_device_from_us(book, root, monkeypatch):
    book.try_lease(VIRTUAL[0], holder="a").release()
    (file,) = root.iterdir()
    asking = os.open(file, os.O_RDONLY)
    fcntl.flock(asking, fcntl.LOCK_SH)
    monkeypatch.setattr(time, "sleep", lambda _seconds: fcntl.flock(asking, fcntl.LOCK_UN))
    assert book.try_lease(VIRTUAL[0], holder="b") is not None
    os.close(asking)


def test_a_swept_lock_file_is_not_mistaken_for_the_new_one(book, root):
    old = book.try_lease(VIRTUAL[0], holder="a")
    (file,) = root.iterdir()
    file.unlink()
    with book.try_lease(VIRTUAL[0], holder="b"):
        old.release()
        assert book.try_lease(VIRTUAL[0], holder="c") is None


def test_only_one_run_passes_the_turnstile(book):
    with book.turnstile(holder="a"):
        assert book.turnstile(holder="b") is None
        assert book.try_lease(VIRTUAL[0], holder="b") is not None
    assert book.turnstile(holder="b") is not None


def test_real_devices_are_leased_by_uuid_so_that_renumbering_does_not_matter(book):
    renumbered = Device(id=DeviceId("nvidia:5"), kind=DeviceKind.NVIDIA, index=5, visible="5", uuid=GPU.uuid)
    with book.try_lease(GPU, holder="a"):
        assert book.try_lease(renumbered, holder="b") is None


def test_the_directory_and_its_files_are_open_to_every_user_whatever_the_umask(book, root):
    before = os.umask(0o077)
    try:
        book.try_lease(VIRTUAL[0], holder="a").release()
        book.put_aside(GPU, "broken", 0)
    finally:
        os.umask(before)
    assert root.stat().st_mode & 0o7777 == 0o1777
    assert {file.stat().st_mode & 0o777 for file in root.iterdir()} == {0o666}


@pytest.mark.skipif(os.getuid() != 0, reason="becoming another user needs root")
def test_another_user_can_lease_and_clear_what_root_made():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        book = LeaseBook(Path(folder) / "leases")
        book.try_lease(GPU, holder="root").release()
        book.put_aside(GPU, "broken", 0)
        child = os.fork()
        if child == 0:
            os.setuid(65534)
            os._exit(0 if book.try_lease(GPU, holder="nobody") and book.clear(GPU) else 1)
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("obstacle", ["file", "link"])
def test_a_directory_that_cannot_be_used_is_a_clear_error(book, root, obstacle, tmp_path):
    if obstacle == "file":
        root.touch()
    else:
        root.symlink_to(tmp_path)
    with pytest.raises(DevicesError, match="SOONER_LEASE_DIR"):
        book.try_lease(VIRTUAL[0], holder="a")


def test_a_link_in_the_place_of_a_lock_is_not_followed(book, root, tmp_path):
    book.try_lease(VIRTUAL[0], holder="a").release()
    (file,) = root.iterdir()
    file.unlink()
    (tmp_path / "victim").write_text("precious")
    file.symlink_to(tmp_path / "victim")
    for ask in (lambda: book.try_lease(VIRTUAL[0], holder="a"), lambda: book.holder_of(VIRTUAL[0])):
        with pytest.raises(DevicesError):
            ask()
    assert (tmp_path / "victim").read_text() == "precious"


def test_a_mark_lasts_a_day_and_can_be_cleared(book):
    book.put_aside(GPU, "Xid 79", 1000.0)
    assert book.put_aside_reason(GPU, now=1000.0 + QUARANTINE_S - 1) == "Xid 79"
    assert book.put_aside_reason(GPU, now=1000.0 + QUARANTINE_S) is None
    assert book.clear(GPU)
    assert book.put_aside_reason(GPU, now=1000.0) is None
    assert not book.clear(GPU)


def test_a_shorter_mark_replaces_a_longer_one(book):
    book.put_aside(GPU, "a very long reason", 1.0)
    book.put_aside(GPU, "short", 2.0)
    assert book.put_aside_reason(GPU, now=3.0) == "short"


def test_the_environment_may_move_the_leases():
    assert lease_root({}) == Path("/tmp/sooner-leases")
    assert lease_root({"SOONER_LEASE_DIR": "/run/leases"}) == Path("/run/leases")
