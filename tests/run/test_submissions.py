"""The spool, used by real shell scripts: what a script submits is its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sooner.model.errors import UsageError
from sooner.plan.submitted import units_of_submissions
from sooner.run.submissions import spool_folder, submit, take

DOOR = """\
import json, os, sys
from sooner.run.submissions import submit, take
verb, queue, *command = sys.argv[1:]
env = dict(os.environ)
if verb == "submit":
    dropped = submit(command, cwd=os.getcwd(), env=env, queue=queue)
    said = {"dropped": [" ".join(entry.command) for entry in dropped]}
else:
    taken = take(env=env, queue=queue)
    said = {"taken": [" ".join(entry.command) for entry in taken.submissions],
            "dropped": [" ".join(entry.command) for entry in taken.dropped]}
print(json.dumps(said), flush=True)
"""


class Spool:
    """Scripts in a folder, with `submit COMMAND...` and `wait` as their commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "door.py").write_text(DOOR, encoding="utf-8")
        self.command("submit", f'exec {sys.executable} {folder}/door.py submit "${{QUEUE-}}" "$@"')
        self.command("collect", f'exec {sys.executable} {folder}/door.py take "${{QUEUE-}}"')
        self.env = {
            "PATH": f"{folder}/bin:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(sys.path),
            "XDG_STATE_HOME": str(folder / "state"),
            "HOME": str(folder),
        }

    def command(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)

    def script(self, text: str, name: str = "main.sh") -> list[str]:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return ["bash", str(path)]

    def start(self, text: str, name: str = "main.sh") -> "subprocess.Popen[str]":
        pipe = subprocess.PIPE
        return subprocess.Popen(
            self.script(text, name), env=self.env, cwd=self.folder, stdin=pipe, stdout=pipe, text=True
        )

    def run(self, text: str, name: str = "main.sh") -> list[dict[str, list[str]]]:
        """What each `submit` and `collect` of a script said."""
        ended = subprocess.run(
            self.script(text, name),
            env=self.env,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return [json.loads(line) for line in ended.stdout.splitlines()]

    def collected(self, text: str, name: str = "main.sh") -> list[str]:
        """What the last `collect` of a script took."""
        return self.run(text, name)[-1]["taken"]


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path)


@pytest.mark.parametrize(
    "script",
    [
        "submit a\nsubmit b\ncollect",
        "(submit a)\nf() { submit b; }\nf\ncollect",
        "for i in a b; do submit $i; done\ntimeout 60 collect",
        "submit a | cat\nx=$(submit b)\n(collect) | cat",
        "echo a b | xargs -n1 submit\nsh -c 'collect; true'",
        "bash -c 'submit a; true'\nsubmit b\ncollect",
        "printf 'all:\\n\\tsubmit a; true\\n\\tsubmit b\\n' | make -s -f -\ncollect",
    ],
)
def test_a_script_collects_what_it_submitted_in_order(spool: Spool, script: str) -> None:
    if "make" in script and subprocess.run(["which", "make"], capture_output=True, check=False).returncode:
        pytest.skip("needs make")
    said = spool.run(script)
    assert said[-1] == {"taken": ["a", "b"], "dropped": []}
    assert not any(entry["dropped"] for entry in said)


def test_a_script_collects_what_its_scripts_submitted(spool: Spool) -> None:
    spool.script("submit a\nsubmit b\n", "inner.sh")
    assert spool.collected("bash inner.sh\nsubmit c\nbash inner.sh\ncollect") == ["a", "b", "c", "a", "b"]


def test_a_script_may_leave_collecting_to_another_one_that_it_starts(spool: Spool) -> None:
    spool.script("collect\n", "collecting.sh")
    assert spool.collected("submit a\nbash collecting.sh") == ["a"]


def test_what_was_collected_is_gone(spool: Spool) -> None:
    assert spool.run("submit a\ncollect\ncollect")[1:] == [
        {"taken": ["a"], "dropped": []},
        {"taken": [], "dropped": []},
    ]


def test_two_scripts_at_the_same_time_never_mix(spool: Spool) -> None:
    other = spool.start("submit other\nread line\ncollect\n", "other.sh")
    assert other.stdout is not None
    other.stdout.readline()
    assert spool.run("collect\nsubmit mine\ncollect\ncollect") == [
        {"taken": [], "dropped": []},
        {"dropped": []},
        {"taken": ["mine"], "dropped": []},
        {"taken": [], "dropped": []},
    ]
    assert json.loads(other.communicate("go\n")[0]) == {"taken": ["other"], "dropped": []}
    assert other.returncode == 0


def test_a_script_that_another_one_started_in_the_background_keeps_its_own(spool: Spool) -> None:
    spool.script("submit inner\nread line < go\ncollect > inner.out\n", "inner.sh")
    start = "mkfifo go first\nbash inner.sh > first &\nread -r said < first\n"
    script = f"{start}submit outer\ncollect\necho > go\nwait"
    assert spool.run(script)[-1]["taken"] == ["outer"]
    assert json.loads((spool.folder / "inner.out").read_text(encoding="utf-8"))["taken"] == ["inner"]


@pytest.mark.parametrize("verb", ["submit b", "collect"])
def test_what_a_dead_script_left_is_dropped_and_named(spool: Spool, verb: str) -> None:
    spool.run("submit left behind\n", "dead.sh")
    assert spool.run(verb)[-1]["dropped"] == ["left behind"]


def test_a_named_queue_is_shared_and_kept(spool: Spool) -> None:
    spool.run("export QUEUE=night\nsubmit a\n", "first.sh")
    assert spool.run("submit b\ncollect") == [{"dropped": []}, {"taken": ["b"], "dropped": []}]
    assert spool.collected("QUEUE=night collect") == ["a"]


def test_everything_about_a_command_is_kept(tmp_path: Path) -> None:
    env = {"XDG_STATE_HOME": str(tmp_path), "BYTES": "\udcff"}
    submit(["echo", "\udcfe"], cwd="/src", env=env, name="n", devices=2, timeout_s=1.5)
    (entry,) = take(env=env).submissions
    assert (entry.command, entry.cwd, entry.env) == (("echo", "\udcfe"), "/src", env)
    assert (entry.name, entry.devices, entry.timeout_s) == ("n", 2, 1.5)
    assert units_of_submissions([entry], base_env=env, source="queue").units[0].key == "n"


def test_the_spool_is_private(tmp_path: Path) -> None:
    env = {"XDG_STATE_HOME": str(tmp_path)}
    submit(["true"], cwd="/", env=env)
    folder = spool_folder(env)
    (entry,) = folder.iterdir()
    assert (folder.stat().st_mode & 0o777, entry.stat().st_mode & 0o777) == (0o700, 0o600)


def test_the_spool_is_below_home_without_a_state_folder() -> None:
    assert spool_folder({"HOME": "/home/me"}) == Path("/home/me/.local/state/sooner/queue")
    assert spool_folder({"HOME": "/home/me", "XDG_STATE_HOME": "relative"}) == spool_folder({"HOME": "/home/me"})


def test_entries_of_another_machine_that_shares_the_folder_are_left_alone(tmp_path: Path) -> None:
    env = {"XDG_STATE_HOME": str(tmp_path)}
    submit(["true"], cwd="/", env=env)
    (path,) = spool_folder(env).iterdir()
    path.write_text(
        path.read_text(encoding="ascii").replace('"machine": "', '"machine": "elsewhere-'), encoding="ascii"
    )
    assert take(env=env) == type(take(env=env))(submissions=(), dropped=())
    assert path.exists()


def test_a_damaged_entry_harms_nobody(tmp_path: Path) -> None:
    env = {"XDG_STATE_HOME": str(tmp_path)}
    submit(["true"], cwd="/", env=env)
    (spool_folder(env) / "0-1.json").write_text("{", encoding="ascii")
    assert len(take(env=env).submissions) == 1


def test_nothing_cannot_be_submitted(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to submit"):
        submit([], cwd="/", env={"XDG_STATE_HOME": str(tmp_path)})


@pytest.mark.parametrize("limit", [float("nan"), float("inf"), -1.0])
def test_a_limit_that_is_no_time_is_refused(tmp_path: Path, limit: float) -> None:
    env = {"XDG_STATE_HOME": str(tmp_path)}
    with pytest.raises(UsageError, match="--timeout must not be negative or endless"):
        submit(["true"], cwd="/", env=env, timeout_s=limit)
    assert take(env=env).submissions == ()


def test_a_spool_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "sooner").write_text("", encoding="ascii")
    with pytest.raises(UsageError, match="set XDG_STATE_HOME"):
        submit(["true"], cwd="/", env={"XDG_STATE_HOME": str(tmp_path)})
