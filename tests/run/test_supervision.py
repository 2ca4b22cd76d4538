"""Real processes under a real guardian."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from pathlib import Path

import psutil
import pytest

from sooner.run.supervision.client import Report, Spawn, Supervisor, decode_wait_status

DEADLINE_S = 20


class Session:
    """One supervisor in one event loop, and everything that it reported."""

    def __init__(self):
        self.marker = f"SOONER_TEST_MARKER={uuid.uuid4().hex}"
        self.reports = asyncio.Queue()
        self.supervisor = Supervisor(marker=self.marker, finisher=[], on_report=self.reports.put_nowait)

    async def __aenter__(self):
        self.supervisor.start()
        self.supervisor.listen()
        return self

    async def __aexit__(self, *_):
        self.supervisor.close()

    def spawn(self, *argv, name="unit", **more):
        key, _, value = self.marker.partition("=")
        self.supervisor.spawn(Spawn(id=name, argv=argv, env={key: value, **more.pop("env", {})}, **more))

    async def next(self) -> Report:
        return await asyncio.wait_for(self.reports.get(), DEADLINE_S)

    async def end(self) -> Report:
        while (report := await self.next()).kind == "started":
            pass
        return report

    def alive(self):
        name, _, value = self.marker.partition("=")
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(name) == value and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found


def supervised(test):
    """Run a coroutine test with a session."""

    def run(tmp_path):
        async def main():
            async with Session() as session:
                await test(session, tmp_path)
            assert session.alive() == []

        asyncio.run(main())

    run.__name__ = test.__name__
    return run


def python(text):
    return (sys.executable, "-c", textwrap.dedent(text))


@supervised
async def test_a_unit_is_started_and_its_exit_code_reported(session, _path):
    session.spawn("sh", "-c", "exit 3")
    assert (await session.next()).kind == "started"
    report = await session.next()
    assert (report.kind, decode_wait_status(report.status)) == ("ended", (3, None))


@supervised
async def test_output_goes_to_the_log_as_it_comes(session, path):
    session.spawn("sh", "-c", "echo out; echo err >&2", log=str(path / "log"))
    await session.end()
    assert (path / "log").read_text() == "out\nerr\n"


@supervised
async def test_environment_and_directory_are_those_asked_for(session, path):
    session.spawn(
        "sh", "-c", "pwd; echo $A-$HOME", env={"A": "1"}, unset=["HOME"], cwd=str(path), log=str(path / "log")
    )
    await session.end()
    assert (path / "log").read_text() == f"{path}\n1-\n"


@supervised
async def test_a_request_larger_than_a_packet_arrives(session, path):
    session.spawn("sh", "-c", "echo ${#BIG}", env={"BIG": "x" * 100_000}, log=str(path / "log"))
    await session.end()
    assert (path / "log").read_text() == "100000\n"


@supervised
async def test_bytes_that_are_not_utf8_reach_the_command(session, path):
    session.spawn("printf", "%s", os.fsdecode(b"\xff\x1b"), log=str(path / "log"))
    await session.end()
    assert (path / "log").read_bytes() == b"\xff\x1b"


@supervised
async def test_a_command_that_does_not_exist_is_reported(session, _path):
    session.spawn("no-such-command-anywhere")
    report = await session.next()
    assert report.kind == "unstartable"
    assert "No such file" in report.error


@supervised
async def test_a_signal_is_reported(session, _path):
    session.spawn("sh", "-c", "kill -SEGV $$")
    assert decode_wait_status((await session.end()).status) == (None, signal.SIGSEGV)


@supervised
async def test_a_daemon_that_left_everything_behind_is_ended(session, _path):
    session.spawn("sh", "-c", "(setsid env -i sleep 1000 &) ; exit 0")
    report = await session.end()
    assert report.leaked == ("sleep 1000",)
    assert decode_wait_status(report.status) == (0, None)
    assert not [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "1000"]]


@supervised
async def test_a_child_that_holds_the_output_open_delays_nothing(session, _path):
    session.spawn("sh", "-c", "sleep 1001 & exit 5")
    assert decode_wait_status((await session.end()).status) == (5, None)


@supervised
async def test_a_hang_that_ignores_sigterm_is_killed_after_the_grace(session, _path):
    session.spawn(
        *python("import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"),
        timeout_s=0.5,
        grace_s=0.2,
    )
    report = await session.end()
    assert report.ended_by == "timeout"
    assert decode_wait_status(report.status) == (None, signal.SIGKILL)


@supervised
async def test_a_hung_python_writes_its_stacks_before_it_is_killed(session, path):
    program = "def stuck():\n import time\n time.sleep(1000)\nstuck()"
    session.supervisor._py_spy = ""
    session.spawn(
        sys.executable, "-X", "faulthandler", "-c", program, timeout_s=1.0, grace_s=5.0, log=str(path / "log")
    )
    await session.end()
    assert "in stuck" in (path / "log").read_text()


@supervised
async def test_a_unit_that_handles_sigterm_may_clean_up_at_a_timeout(session, path):
    session.spawn(
        "bash", "-c", 'trap "echo cleaned; exit 1" TERM; sleep 1000 & wait', timeout_s=0.3, log=str(path / "log")
    )
    report = await session.end()
    assert report.ended_by == "timeout"
    assert "cleaned" in (path / "log").read_text()


@supervised
async def test_a_unit_can_be_stopped(session, _path):
    session.spawn("sleep", "1002")
    await session.next()
    session.supervisor.stop("unit")
    assert (await session.next()).ended_by == "stop"


@supervised
async def test_a_unit_can_be_killed_without_grace(session, _path):
    session.spawn("sh", "-c", "trap '' TERM; echo; sleep 1003", grace_s=1000.0)
    await session.next()
    session.supervisor.stop("unit")
    session.supervisor.kill("unit")
    assert (await session.next()).ended_by == "stop"


@supervised
async def test_a_killed_warden_is_reported_and_leaves_nothing(session, _path):
    session.spawn("sh", "-c", "(setsid sleep 1004 &) ; sleep 1005")
    pid = (await session.next()).pid
    psutil.Process(pid).parent().kill()
    report = await session.next()
    assert report.kind == "lost"
    assert session.alive() == []


@supervised
async def test_a_killed_guardian_is_replaced(session, _path):
    session.spawn("sleep", "1006", name="first")
    await session.next()
    session.supervisor._guardian.kill()
    assert (await session.next()).id == "first"
    session.spawn("true", name="second")
    assert (await session.end()).id == "second"


@supervised
async def test_a_lease_lives_until_the_last_process_of_its_unit_is_gone(session, path):
    import fcntl

    lock = os.open(path / "lease", os.O_CREAT | os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    session.spawn("sleep", "1007", leases=[lock])
    await session.next()
    os.close(lock)
    other = os.open(path / "lease", os.O_RDWR)
    with pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    session.supervisor.stop("unit")
    await session.next()
    fcntl.flock(other, fcntl.LOCK_EX)
    os.close(other)


def test_nothing_survives_the_death_of_the_runner(tmp_path: Path) -> None:
    marker = f"SOONER_TEST_MARKER={uuid.uuid4().hex}"
    program = f"""
        import asyncio, sys
        from sooner.run.supervision.client import Spawn, Supervisor
        async def main():
            supervisor = Supervisor(marker={marker!r}, finisher=["/bin/sh", "-c", "touch {tmp_path}/finished"],
                                    on_report=lambda report: print(report.kind, flush=True))
            supervisor.start(); supervisor.listen()
            supervisor.spawn(Spawn(id="a", argv=["sh", "-c", "trap '' TERM; (setsid env -i sleep 1008 &); sleep 1009"]))
            await asyncio.sleep(1000)
        asyncio.run(main())
    """
    runner = subprocess.Popen(python(program), stdout=subprocess.PIPE, text=True)
    assert runner.stdout.readline() == "started\n"
    runner.kill()
    runner.wait()
    runner.stdout.close()
    deadline = time.monotonic() + DEADLINE_S
    while not (tmp_path / "finished").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    left = [p.info["cmdline"] for p in psutil.process_iter(["cmdline"])]
    assert ["sleep", "1008"] not in left
    assert ["sleep", "1009"] not in left
