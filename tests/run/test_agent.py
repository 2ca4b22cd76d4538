"""Units on another machine: real agents, here on this one, and the runner's side of them."""

import asyncio
import json
import os
import signal
import socket
import threading
import time
from collections import deque

import msgspec
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sooner import __version__
from sooner.model.errors import DevicesError, SoonerError
from sooner.run import clock
from sooner.run.backends import agent as agents
from sooner.run.backends import node as nodes
from sooner.run.backends import relay
from sooner.run.backends.agent import Agent
from sooner.run.backends.messages import Alive, Answer, Call, FromAgent, Piece, Said, Unpacked, encode
from sooner.run.backends.node import Node
from sooner.run.backends.relay import Relay, environment_there, start_agent
from sooner.run.supervision.client import Report, Spawn


@pytest.fixture
def agent(tmp_path):
    process, channel = start_agent({**os.environ, "SOONER_LEASE_DIR": str(tmp_path / "leases")})
    yield process, channel
    channel.close()
    process.wait()


@pytest.fixture
def node(agent, tmp_path):
    made = Node("far", agent[1])
    made.begin("virtual:4", tmp_path)
    return made


def ran(node, folder, spawns, meanwhile=lambda _report: None):
    """All reports until each unit has ended."""

    async def run():
        reports, left = [], {spawn.id for spawn in spawns}
        done = asyncio.Event()

        def hear(report):
            reports.append(report)
            meanwhile(report)
            if report.kind != "started":
                left.discard(report.id)
            if not left:
                done.set()

        node.prepare("run-1", folder)
        node.report_to(hear)
        node.listen()
        for spawn in spawns:
            node.spawn(spawn)
        async with asyncio.timeout(30):
            await done.wait()
        node.close()
        return reports

    return asyncio.run(run())


def shell(name, line, folder, **more):
    return Spawn(id=name, argv=["sh", "-c", line], log=str(folder / f"{name}.log"), **more)


def test_devices_carry_the_name_of_their_node(node):
    assert [(device.id, device.node, device.visible) for device in node.devices[:2]] == [
        ("far/virtual:0", "far", "0"),
        ("far/virtual:1", "far", "1"),
    ]
    assert node.devices[1].label == "GPU 1 of far"


def test_a_unit_runs_there_and_its_end_is_told(node, tmp_path):
    started, ended = ran(node, tmp_path, [shell("u", "echo hello; exit 3", tmp_path)])
    assert (started.kind, ended.kind, os.waitstatus_to_exitcode(ended.status)) == ("started", "ended", 3)
    assert (tmp_path / "u.log").read_text() == "hello\n"


def test_commands_environment_and_paths_that_are_not_utf_8_travel_as_they_are(node, tmp_path):
    folder = tmp_path / "caf\udce9"
    folder.mkdir()
    spawn = shell("u", 'printf %s "$1$WORD"', folder, env={"WORD": "\udcfe"})
    ran(node, folder, [msgspec.structs.replace(spawn, argv=[*spawn.argv, "sh", "\udcff"])])
    assert (folder / "u.log").read_bytes() == b"\xff\xfe"


def test_an_error_speaks_of_paths_that_are_not_utf_8(agent, tmp_path):
    with pytest.raises(SoonerError, match=r"the folder .*caf\\xe9 is not there"):
        Node("far", agent[1]).begin("virtual:4", tmp_path / "caf\udce9")


def test_a_unit_is_stopped_there(node, tmp_path):
    reports = ran(
        node,
        tmp_path,
        [shell("u", "sleep 600", tmp_path, grace_s=5.0)],
        lambda report: node.stop("u") if report.kind == "started" else None,
    )
    assert reports[-1].ended_by == "stop"


def test_a_unit_whose_log_has_no_place_there_runs_all_the_same(node, tmp_path):
    (tmp_path / "file").touch()
    _, ended = ran(node, tmp_path, [shell("u", "exit 3", tmp_path / "file")])
    assert os.waitstatus_to_exitcode(ended.status) == 3


def test_a_device_is_leased_there_once(node):
    first, second = node.devices[:2]
    lease = node.try_lease(first, holder="ours")
    assert node.try_lease(first, holder="ours") is None
    assert "ours" in node.holder_of(first)
    assert node.try_lease(second, holder="ours") is not None
    lease.release()
    assert node.holder_of(first) is None
    assert node.try_lease(first, holder="ours") is not None


def test_ports_are_leased_there(node):
    one, other = node.lease(2)
    assert one.number != other.number
    one.release()


def test_a_folder_that_is_not_there_is_named(agent, tmp_path):
    with pytest.raises(SoonerError, match=r"far: the folder .*nowhere is not there"):
        Node("far", agent[1]).begin("virtual:4", tmp_path / "nowhere")


def test_devices_that_are_not_there_are_an_error_that_names_the_node(agent, tmp_path):
    with pytest.raises(SoonerError, match="far: --devices 'seven' is not understood"):
        Node("far", agent[1]).begin("seven", tmp_path)


def test_a_machine_whose_devices_are_all_put_aside_is_an_error_that_says_so(agent, node, tmp_path):
    for device in node.devices:
        node.put_aside(device, "fell off the bus", time.time())
    with pytest.raises(SoonerError, match=r"far: every device is put aside: GPU 0 is put aside \(fell off the bus\)"):
        Node("far", agent[1]).begin("virtual:4", tmp_path)


def test_a_machine_that_is_lost_says_so_first_and_then_of_each_of_its_units(agent, node, tmp_path):
    reports = ran(
        node,
        tmp_path,
        [shell("u", "sleep 600", tmp_path)],
        lambda report: agent[0].kill() if report.kind == "started" else None,
    )
    assert [report.kind for report in reports] == ["started", "gone", "lost"]
    assert reports[1].id == "far"
    assert reports[2].error == "far was lost: its agent ended"


def test_a_machine_that_says_nothing_any_more_is_lost_and_its_channel_closed(scripted, tmp_path, monkeypatch):
    monkeypatch.setattr(nodes, "_ANSWER_S", 0.2)
    monkeypatch.setattr(nodes, "_LOOK_EVERY_S", 0.05)
    node, theirs, reports = scripted

    async def run():
        lost = asyncio.Event()
        node.report_to(lambda report: (reports.append(report), report.kind == "lost" and lost.set()))
        node.listen()
        node.spawn(shell("u", "sleep 600", tmp_path))
        for _ in range(6):  # while it says something it is there
            theirs.sendall(encode(Alive(clock.now())))
            await asyncio.sleep(0.06)
        assert not reports
        async with asyncio.timeout(30):
            await lost.wait()

    asyncio.run(run())
    assert [(report.kind, report.error) for report in reports] == [
        ("gone", "far was lost: no word for 0.2 s"),
        ("lost", "far was lost: no word for 0.2 s"),
    ]
    theirs.settimeout(5)
    while theirs.recv(1 << 16):
        pass


def test_an_agent_that_has_nothing_to_say_says_that_it_is_there(monkeypatch):
    monkeypatch.setattr(agents, "_ALIVE_EVERY_S", 0.01)
    ours, theirs = socket.socketpair()
    ours.settimeout(5)

    async def run():
        serving = asyncio.create_task(Agent(theirs).serve())
        data = await asyncio.to_thread(ours.recv, 1 << 16)
        ours.close()
        await serving
        return data

    assert isinstance(next(Unpacked(FromAgent).take(asyncio.run(run()))), Alive)


def test_an_agent_that_hangs_is_ended_when_the_runner_lets_go(tmp_path, monkeypatch):
    monkeypatch.setattr(relay, "_END_S", 0.1)
    carrier = Relay({**os.environ, "SOONER_LEASE_DIR": str(tmp_path)})
    os.kill(carrier._agent.pid, signal.SIGSTOP)
    waiting = threading.Thread(target=carrier.receive)
    waiting.start()
    carrier.end()
    waiting.join(10)
    assert not waiting.is_alive()
    assert carrier._agent.returncode == -signal.SIGKILL


def test_of_a_machine_that_is_lost_nothing_is_leased_and_nothing_is_free(agent, node):
    agent[0].kill()
    agent[0].wait()
    device = node.devices[0]
    assert node.try_lease(device, holder="ours") is None
    assert node.not_free(device) == "far was lost: its agent ended"
    with pytest.raises(DevicesError, match="far was lost"):
        node.lease(1)


def until_gone(pid):
    deadline = time.monotonic() + 20
    while psutil.pid_exists(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(pid)


def test_nothing_runs_on_there_when_the_runner_is_gone(agent, node, tmp_path):
    pids = deque()

    def begin():
        async def run():
            started = asyncio.Event()

            def hear(report):
                pids.append(report.pid)
                started.set()

            node.prepare("run-1", tmp_path)
            node.report_to(hear)
            node.listen()
            node.spawn(shell("u", "sleep 600", tmp_path, grace_s=0.5))
            await started.wait()
            asyncio.get_running_loop().remove_reader(agent[1].fileno())

        asyncio.run(run())

    begin()
    assert psutil.pid_exists(pids[0])
    agent[1].close()
    agent[0].wait(20)
    until_gone(pids[0])


def test_a_run_folder_that_cannot_be_made_there_is_named_with_what_to_do(agent, tmp_path):
    runner = Runner(agent[1])
    runner.begin(tmp_path)
    (tmp_path / "file").touch()
    said = runner.ask("run", "run-1", str(tmp_path / "file/run"), "token").error
    assert said.startswith(f"the run's folder {tmp_path}/file/run cannot be made (Not a directory): pass --out FOLDER")


class Runner:
    """Says what a runner says, word by word."""

    def __init__(self, channel):
        self.channel, self.unpacked, self.heard = channel, Unpacked(FromAgent), deque()
        channel.settimeout(30)

    def ask(self, name, *arguments):
        self.channel.sendall(encode(Call(1, name, json.dumps(arguments))))
        return self.until(Answer)[-1]

    def tell(self, name, *arguments):
        self.channel.sendall(encode(Call(0, name, json.dumps(arguments))))

    def begin(self, folder):
        return self.ask("begin", "virtual:2", str(folder), __version__)

    def until(self, kind, matching=lambda _message: True):
        seen = []
        while True:
            while self.heard:
                seen.append(self.heard.popleft())
                if isinstance(seen[-1], kind) and matching(seen[-1]):
                    return seen
            data = self.channel.recv(1 << 20)
            assert data, "the agent ended"
            self.heard.extend(self.unpacked.take(data))


def test_what_a_unit_writes_is_sent_to_a_runner_that_does_not_see_it(agent, tmp_path):
    runner, folder = Runner(agent[1]), tmp_path / "there" / "run"
    runner.begin(tmp_path)
    assert not runner.ask("run", "run-1", str(folder), "token").error
    spawn = shell(
        "u", f"head -c 3000000 /dev/zero; echo '<testsuite/>' > {folder}/j.xml", folder, junit=str(folder / "j.xml")
    )
    runner.ask("spawn", msgspec.to_builtins(spawn))
    messages = runner.until(Said, lambda said: said.report.kind == "ended")
    pieces = [message for message in messages if isinstance(message, Piece)]
    assert b"".join(piece.data for piece in pieces if not piece.of_junit) == bytes(3_000_000)
    assert [(piece.data, piece.anew) for piece in pieces if piece.of_junit] == [(b"<testsuite/>\n", True)]
    runner.ask("goodbye")
    agent[0].wait(20)
    assert not folder.exists(), "a folder that was made for the run alone"


def test_a_folder_that_was_made_for_the_run_goes_after_its_last_unit_also_when_the_runner_is_gone(agent, tmp_path):
    runner, folder = Runner(agent[1]), tmp_path / "there" / "run"
    runner.begin(tmp_path)
    runner.ask("run", "run-1", str(folder), "token")
    line = f"trap 'sleep 0.3; mkdir -p {folder}/late; exit' TERM; echo ready; while :; do sleep 0.05; done"
    runner.ask("spawn", msgspec.to_builtins(shell("u", line, folder, grace_s=5.0)))
    (pid,) = [said.report.pid for said in runner.until(Piece) if isinstance(said, Said)]
    agent[1].close()
    agent[0].wait(20)
    until_gone(pid)
    assert not folder.exists()


def test_a_second_attempt_sends_only_what_it_wrote_itself(agent, tmp_path):
    runner, folder = Runner(agent[1]), tmp_path / "there"
    runner.begin(tmp_path)
    runner.ask("run", "run-1", str(folder), "token")
    for word in ("first", "second"):
        spawn = msgspec.structs.replace(shell(word, f"echo {word}", folder), log=str(folder / "same.log"))
        runner.ask("spawn", msgspec.to_builtins(spawn))
        messages = runner.until(Said, lambda said: said.report.kind == "ended")
        assert [message.data for message in messages if isinstance(message, Piece)] == [f"{word}\n".encode()]


def test_an_agent_refuses_what_it_cannot_do_and_goes_on(agent, tmp_path):
    runner = Runner(agent[1])
    assert "has not said `begin`" in runner.ask("not_free", 0).error
    assert "is not there" in runner.begin(tmp_path / "nowhere").error
    assert not runner.begin(tmp_path).error


def test_a_unit_that_an_agent_cannot_start_is_told_to_be_lost(agent, tmp_path):
    runner = Runner(agent[1])
    runner.begin(tmp_path)
    runner.tell("spawn", msgspec.to_builtins(shell("u", "true", tmp_path)))
    (said,) = runner.until(Said)
    assert (said.report.id, said.report.kind, said.report.error) == ("u", "lost", "the runner has not said `run`")


def test_an_agent_of_another_version_says_which(agent, tmp_path):
    said = Runner(agent[1]).ask("begin", "virtual:2", str(tmp_path), "99.0").error
    assert said == f"it has sooner {__version__}, the runner 99.0: install the same on all nodes"


@pytest.fixture
def scripted(tmp_path):
    """A node whose agent says what the test says."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        node = Node("far", ours)
        reports = []
        theirs.sendall(encode(Answer(1, clock.now())))
        node.prepare("run-1", tmp_path)
        node.report_to(reports.append)
        yield node, theirs, reports


def hand_on(node, theirs, *messages):
    async def run():
        node.listen()
        theirs.sendall(b"".join(map(encode, messages)))
        await asyncio.sleep(0.05)
        node.close()

    asyncio.run(run())


def test_times_are_told_by_the_runners_clock(scripted):
    node, theirs, reports = scripted
    there = clock.now() + 5000  # an agent whose clock is more than an hour ahead
    node._ahead = float("-inf")  # what the fixture's answer told
    said = Said(Report(id="u", kind="ended", at=there - 1, started_at=there - 3), there)
    theirs.shutdown(socket.SHUT_RD)
    hand_on(node, theirs, said)
    assert abs(reports[0].at - (clock.now() - 1)) < 0.5
    assert reports[0].at - reports[0].started_at == pytest.approx(2)
    assert reports[0].clock_ahead_s == pytest.approx(5000, abs=0.5)


def test_only_files_of_units_that_run_there_are_written(scripted, tmp_path):
    node, theirs, _ = scripted
    node._units["u"] = shell("u", "true", tmp_path)
    theirs.shutdown(socket.SHUT_RD)
    hand_on(
        node,
        theirs,
        Piece("u", b"one ", 0.0),
        Piece("u", b"two", 0.0),
        Piece("v", b"evil", 0.0),
        Piece("u", b"evil", 0.0, of_junit=True),
    )
    assert (tmp_path / "u.log").read_bytes() == b"one two"
    assert [file.name for file in tmp_path.iterdir()] == ["u.log"]


@given(st.lists(st.binary(max_size=50), max_size=8), st.lists(st.integers(1, 30), min_size=1))
def test_messages_come_whole_however_they_are_cut(contents, cuts):
    messages = [Piece(str(i), data, float(i)) for i, data in enumerate(contents)]
    data, unpacked, found = b"".join(map(encode, messages)), Unpacked(FromAgent), []
    for i in range(len(data) + 1):
        cut, data = data[: cuts[i % len(cuts)]], data[cuts[i % len(cuts)] :]
        found += unpacked.take(cut)
    assert found == messages


def test_units_there_have_the_runners_environment_but_for_what_tells_of_a_machine():
    runners = {"PATH": "/venv/bin", "PYTHONPATH": "x", "CUDA_VISIBLE_DEVICES": "0", "SLURM_JOB_GPUS": "7"}
    own = {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "4,5", "RAY_JOB_ID": "1", "EDITOR": "vi"}
    assert environment_there(runners, own) == {
        "PATH": "/venv/bin",
        "PYTHONPATH": "x",
        "CUDA_VISIBLE_DEVICES": "4,5",
        "RAY_JOB_ID": "1",
    }
