"""`sooner run` through the real command line."""

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from real_runs import Run, alive, wait_until

from sooner.cli.replaying import _pauses, replay_run
from sooner.model.errors import RunFolderError
from sooner.model.events import Attempt, Interrupted, RunFinished, RunStarted, Verdict
from sooner.model.outcomes import Outcome

VIRTUAL = ("--devices", "virtual:4", "--out", "out")


def test_a_plan_runs_and_everything_lies_in_its_folder(sooner, run):
    done = sooner("run", sooner.plan(("a", "echo hello"), ("b", "exit 0", "devices = 4")), *VIRTUAL)
    assert done.returncode == 0
    assert run.outcomes == {"a": "passed", "b": "passed"}
    names = {path.name for path in run.path.iterdir()}
    assert names >= {"results.jsonl", "events.jsonl", "junit.xml", "trace.json", "run.json", "logs"}
    assert ".reserve" not in names


def test_results_have_the_documented_fields(sooner, run):
    sooner("run", sooner.plan(("a", "exit 3", 'env = { A = "1" }')), *VIRTUAL)
    (result,) = run.results.values()
    assert result | {"attempts": 0, "queued_s": 0, "duration_s": 0} == {
        "unit": "a", "variant": "A=1", "outcome": "failed", "cause": "exit code 3", "flaky": False, "attempts": 0,
        "queued_s": 0, "duration_s": 0, "log": "logs/a.log",
    }  # fmt: skip
    (attempt,) = result["attempts"]
    assert (attempt["outcome"], attempt["exit_code"], attempt["signal"]) == ("failed", 3, None)
    assert attempt["devices"] == ["virtual:0"]
    assert attempt["started_at"] <= attempt["ended_at"]


def test_progress_goes_to_stderr_and_logs_in_plan_order_to_stdout(sooner):
    plan = sooner.plan(("slow", "sleep 0.3; echo from slow"), ("fast", "echo from fast"))
    done = sooner("run", plan, *VIRTUAL)
    assert ">>> Starting: slow on GPU" in done.stderr
    assert done.stdout.index("from slow") < done.stdout.index("from fast")
    assert done.stdout.index("from fast") < done.stdout.index("=== Summary ===")
    assert "from slow" not in done.stderr


def test_a_unit_sees_its_devices_and_who_it_is(sooner, run):
    line = "echo $CUDA_VISIBLE_DEVICES/$HIP_VISIBLE_DEVICES/$SOONER_UNIT/$SOONER_DEVICES/$SOONER_ATTEMPT/$SOONER_PORT"
    sooner("run", sooner.plan(("pair", line, "devices = 2")), *VIRTUAL)
    cuda, hip, unit, devices, attempt, port = run.log("pair").strip().split("/")
    assert cuda == hip == "0,1"
    assert (unit, devices, attempt) == ("pair", "virtual:0,virtual:1", "1")
    assert 1024 < int(port) < 32768


def test_an_inherited_mask_is_narrowed_never_left(sooner, run):
    units = [(str(i), "echo $CUDA_VISIBLE_DEVICES; sleep 0.1") for i in range(4)]
    sooner("run", sooner.plan(*units), "--devices", "virtual:8", "--out", "out", CUDA_VISIBLE_DEVICES="2,5")
    assert {run.log(str(i)).strip() for i in range(4)} == {"2", "5"}


def test_placeholders_are_filled(sooner, run):
    sooner("run", sooner.plan(("a", "echo {devices} {log_dir} {port} ${HOME:+kept}", "devices = 2")), *VIRTUAL)
    devices, log_dir, port, kept = run.log("a").split()
    assert (devices, kept) == ("0,1", "kept")
    assert log_dir == str(run.path / "logs")
    assert port.isdecimal()


def test_parallel_units_get_different_ports(sooner, run):
    sooner("run", sooner.plan(*[(str(i), "echo $SOONER_PORT $MASTER_PORT; sleep 0.2") for i in range(4)]), *VIRTUAL)
    ports = {run.log(str(i)) for i in range(4)}
    assert len(ports) == 4


@pytest.mark.parametrize(
    ("line", "outcome", "cause"),
    [
        ("exit 7", "failed", "exit code 7"),
        ("kill -SEGV $$", "crashed", "SIGSEGV"),
        ("kill -KILL $$", "crashed", "SIGKILL"),
        ("bash -c 'kill -ABRT $$'; exit $?", "crashed", "exit code 134 (SIGABRT in a child)"),
        ("echo 'MemoryError'; exit 1", "out_of_memory", "host memory: an allocation failed"),
        (
            "echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate'; exit 1",
            "out_of_memory",
            "device memory",
        ),
        ("sleep 30", "timed_out", "no end after 0.3 s"),
    ],
)
def test_an_end_is_classified(sooner, run, line, outcome, cause):
    limit = "timeout_s = 0.3" if outcome == "timed_out" else ""
    done = sooner("run", sooner.plan(("a", line, limit), ("ok", "true")), *VIRTUAL)
    assert run.outcomes == {"a": outcome, "ok": "passed"}
    assert run.results["a"]["cause"] == cause
    assert done.returncode == 1


def test_a_command_that_cannot_be_started_fails_and_says_why(sooner, run):
    sooner("run", sooner.plan('name = "a"\ncommand = ["no-such-command-anywhere"]'), *VIRTUAL)
    assert run.outcomes == {"a": "failed"}
    assert "No such file" in run.results["a"]["cause"]


def test_queueing_is_not_charged_to_the_timeout(sooner, run):
    plan = sooner.plan(*[(str(i), "sleep 0.4", "timeout_s = 3", "devices = 4") for i in range(3)])
    sooner("run", plan, *VIRTUAL)
    assert set(run.outcomes.values()) == {"passed"}
    assert max(result["queued_s"] for result in run.results.values()) > 0.5


def test_a_pass_after_a_retry_is_flaky_and_all_attempts_are_kept(sooner, run):
    done = sooner("run", sooner.plan(("a", "test $SOONER_ATTEMPT = 3 || kill -ABRT $$")), *VIRTUAL, "--retries", 2)
    result = run.results["a"]
    assert done.returncode == 0
    assert (result["outcome"], result["flaky"]) == ("passed", True)
    assert [attempt["outcome"] for attempt in result["attempts"]] == ["crashed", "crashed", "passed"]
    assert result["attempts"][0]["devices"] != result["attempts"][1]["devices"]
    assert "flaky" in done.stdout


def test_what_follows_a_failure_is_skipped(sooner, run):
    done = sooner("run", sooner.plan(("build", "exit 1"), ("test", "true", 'after = ["build"]')), *VIRTUAL)
    assert run.outcomes == {"build": "failed", "test": "skipped"}
    assert done.returncode == 1


def test_a_need_larger_than_the_machine_is_refused_before_anything_starts(sooner, run):
    done = sooner("run", sooner.plan(("a", "touch ran"), ("wide", "true", "devices = 8")), *VIRTUAL)
    assert done.returncode == 4
    assert re.search(r"plan\.toml:\d+: unit\[\d\]\.devices: .*needs 8 devices, this run has 4", done.stderr)
    assert not (sooner.folder / "ran").exists()
    assert not run.path.exists()


def test_with_on_missing_hole_the_rest_runs_and_the_hole_is_reported(sooner, run):
    plan = sooner.plan(("a", "true"), ("wide", "true", "devices = 8"))
    done = sooner("run", plan, *VIRTUAL, "--on-missing", "hole")
    assert done.returncode == 10
    assert run.outcomes == {"a": "passed", "wide": "hole"}
    assert run.cases[("wide", "wide")] == "error"


def test_an_empty_plan_is_nothing_to_run(sooner):
    assert sooner("run", sooner.plan(), *VIRTUAL).returncode == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run",), "which plan"),
        (("run", "missing.toml"), "missing.toml"),
        (("rnu",), "did you mean 'run'"),
        (("run", "--gpus", "virtual:2", "plan.toml"), "Did you mean '--devices'?"),
        (("submit", "--gpus", "2", "--", "true"), "Did you mean '--devices'?"),
        (("run", "plan.toml", "--devices", "gpu"), "'gpu' is not understood"),
        (("run", "plan.toml", "--devices", "virtual:2", "--shard", "3/2"), "--shard '3/2'"),
        (("run", "plan.toml", "--devices", "virtual:2", "--retries", "-1"), "negative"),
        (("run", "plan.toml", "--policy", "best"), "'packed'"),
        (("replay", "nowhere"), "holds no run"),
        (("tail", "nowhere", "x"), "holds no run"),
        (("rerun", "nowhere"), "holds no run"),
    ],
)
def test_a_mistake_is_one_clear_error(sooner, arguments, message):
    sooner.plan(("a", "true"))
    done = sooner(*arguments)
    assert done.returncode == 4
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_file_that_ends_too_soon_is_no_interrupt(project):
    script = (
        "import sooner.cli.main as cli\n"
        "def invoke(context): raise EOFError('marshal data too short')\n"
        "cli.sooner.invoke = invoke\n"
        "cli.main(['devices'])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "marshal data too short" in done.stderr


def test_json_alone_goes_to_stdout(sooner):
    done = sooner("run", sooner.plan(("a", "echo noise"), ("b", "exit 1")), *VIRTUAL, "--json")
    summary = json.loads(done.stdout)
    assert summary["exit_code"] == 1
    assert summary["counts"]["passed"] == 1
    assert [unit["unit"] for unit in summary["units"]] == ["a", "b"]
    assert "noise" in done.stderr


def test_own_junit_files_are_merged_and_left_alone(sooner, run):
    cases = '<testcase classname="c" name="one"/><testcase name="two"><failure>x</failure></testcase>'
    own = f"<testsuite>{cases}</testsuite>"
    plan = sooner.plan(("a", f"echo '{own}' > {{junit}}; exit 1"), ("b", "true"))
    sooner("run", plan, *VIRTUAL)
    assert run.cases == {("a", "one"): None, ("a", "two"): "failure", ("b", "b"): None}
    assert (run.path / "logs" / "a.xml").read_text().strip() == own


def test_paths_of_a_plan_may_hold_variables_of_the_runner(sooner, run):
    (sooner.folder / "where").mkdir()
    plan = sooner.plan(("a", "pwd; echo '<testsuite/>' > a.xml", 'cwd = "${HERE}"', 'junit = "${HERE}/a.xml"'))
    assert sooner("run", plan, *VIRTUAL, HERE=str(sooner.folder / "where")).returncode == 0
    assert run.outcomes == {"a": "passed"}
    done = sooner("run", plan, *VIRTUAL)
    assert done.returncode == 4
    assert "unit[0].cwd: ${HERE} is not set" in done.stderr
    assert sooner("plan", plan, "--devices=virtual:2").returncode == 4


def test_an_exit_of_zero_before_the_junit_file_is_written_is_a_crash(sooner, run):
    sooner("run", sooner.plan(("a", "true # {junit}")), *VIRTUAL)
    assert run.outcomes == {"a": "crashed"}
    assert run.cases == {("a", "a"): "error"}


def test_a_junit_file_that_was_there_before_an_attempt_is_not_its_own(sooner, run):
    own = "<testsuite><testcase name='one'/></testsuite>"
    (sooner.folder / "old.xml").write_text(own)
    retried = f'[ $SOONER_ATTEMPT = 2 ] || {{ echo "{own}" > a.xml; exit 1; }}'
    plan = sooner.plan(("a", retried, 'junit = "a.xml"'), ("b", "true", 'junit = "old.xml"'))
    sooner("run", plan, *VIRTUAL, "--retries=1")
    assert run.outcomes == {"a": "crashed", "b": "crashed"}


def test_a_crash_after_the_junit_file_was_written_is_still_seen_in_it(sooner, run):
    plan = sooner.plan(("a", "echo '<testsuite><testcase name=\"one\"/></testsuite>' > {junit}; kill -SEGV $$"))
    sooner("run", plan, *VIRTUAL)
    assert run.cases == {("a", "one"): None, ("a", "a"): "error"}


def test_strange_names_and_output_survive_everywhere(sooner, run):
    name = "a/b \u001b[31m<&\"'\u0007 \u00e4"
    done = sooner("run", sooner.plan((name, r"printf '\377\033]0;title\007\033[31mred\033[0m ok\n'; exit 1")), *VIRTUAL)
    assert run.outcomes == {name: "failed"}
    ET.parse(run.path / "junit.xml")
    assert "\033]0;" not in done.stdout
    assert "\033[31m" not in done.stdout
    assert r"\xff" in done.stdout
    assert (run.path / run.results[name]["log"]).read_bytes().startswith(b"\xff\x1b]0;")


def test_a_huge_log_is_kept_whole_and_replayed_in_part(sooner, run):
    done = sooner("run", sooner.plan(("big", "head -c 9000000 /dev/zero | tr '\\0' x; echo; echo the end")), *VIRTUAL)
    assert (run.path / "logs/big.log").stat().st_size > 9_000_000
    assert len(done.stdout) < 6_000_000
    assert "bytes left out" in done.stdout
    assert "the end" in done.stdout


def test_a_process_left_behind_is_ended_and_named(sooner):
    done = sooner("run", sooner.plan(("a", "(setsid env -i sleep 2001 &); true")), *VIRTUAL)
    assert done.returncode == 0
    assert alive("sleep 2001") == []
    assert "ended 1 process that it left behind" in done.stderr


def test_the_trace_has_one_row_for_each_device(sooner, run):
    sooner("run", sooner.plan(("pair", "true", "devices = 2"), ("one", "true")), *VIRTUAL)
    events = json.loads((run.path / "trace.json").read_text())["traceEvents"]
    rows = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert list(rows.values()) == ["GPU 0", "GPU 1", "GPU 2", "GPU 3", "host"]
    assert len([event for event in events if event["name"] == "pair"]) == 2


def test_durations_of_the_last_run_order_the_next(sooner):
    plan = sooner.plan(("short", "true"), ("long", "sleep 0.4"), ("middle", "sleep 0.2"))
    sooner("run", plan, "--devices", "virtual:2")
    order = json.loads(sooner("plan", plan, "--devices", "virtual:2", "--json").stdout)["order"]
    assert order[0]["unit"] == "long"


def test_a_durations_file_sets_the_prediction(sooner, project):
    (project / "d.json").write_text('{"a": 5, "b": 3, "c": 2}')
    plan = sooner.plan(*[(name, "true") for name in "abc"])
    answer = json.loads(sooner("plan", plan, "--devices", "virtual:2", "--durations", "d.json", "--json").stdout)
    assert (answer["makespan_s"], answer["bound_s"]) == (5.0, 5.0)


def test_a_durations_file_that_is_no_text_is_one_clear_error(sooner, project):
    (project / "d.json").write_bytes(b"\xf0\x28")
    done = sooner("plan", sooner.plan(("a", "true")), "--devices", "virtual:2", "--durations", "d.json")
    assert (done.returncode, "d.json is not UTF-8 text (byte 0)" in done.stderr) == (4, True)


def test_what_failed_last_time_starts_first(sooner):
    plan = sooner.plan(("a", "sleep 0.2"), ("bad", "exit 1"), ("c", "sleep 0.2"))
    sooner("run", plan, "--devices", "virtual:2")
    order = json.loads(sooner("plan", plan, "--devices", "virtual:2", "--json").stdout)["order"]
    assert order[0]["unit"] == "bad"


def test_shards_run_every_unit_once(sooner, project):
    plan = sooner.plan(*[(str(i), "true") for i in range(7)])
    seen = []
    for part in ("1/3", "2/3", "3/3"):
        sooner("run", plan, "--devices", "virtual:2", "--out", f"part{part[0]}", "--shard", part)
        seen += Run(project / f"part{part[0]}").outcomes
    assert sorted(seen) == [str(i) for i in range(7)]


def test_an_earlier_run_in_the_same_folder_is_kept(sooner, run):
    plan = sooner.plan(("a", "true"))
    sooner("run", plan, *VIRTUAL)
    sooner("run", plan, *VIRTUAL)
    assert Run(run.path / "earlier-1").outcomes == run.outcomes == {"a": "passed"}


def test_rerun_of_the_failed_runs_nothing_else(sooner, run):
    plan = sooner.plan(("good", "true"), ("bad", "exit 1"), ("after", "true", 'after = ["good"]'))
    sooner("run", plan, *VIRTUAL)
    sooner("rerun", "out", "--failed", "--devices", "virtual:4", "--out", "again")
    assert Run(run.path.parent / "again").outcomes == {"bad": "failed"}


def test_rerun_of_the_failed_says_that_none_failed(sooner, run):
    sooner("run", sooner.plan(("good", "true")), *VIRTUAL)
    done = sooner("rerun", "out", "--failed")
    assert (done.returncode, done.stderr) == (5, "sooner: nothing to run again: all of out passed\n")


def test_two_runs_at_once_never_hold_the_same_device(sooner, project):
    each = "for d in ${CUDA_VISIBLE_DEVICES//,/ }; do"
    line = f"{each} mkdir dev$d || exit 9; done; sleep 0.1; {each} rmdir dev$d; done"
    lines = [(str(i), line, f"devices = {1 + i % 4}") for i in range(8)]
    plan = sooner.plan(*lines)
    both = [sooner.start("run", plan, "--devices", "virtual:4", "--out", name) for name in ("one", "two")]
    assert [process.wait(60) for process in both] == [0, 0]


def test_a_run_inside_a_unit_shares_out_what_the_unit_holds(sooner, project):
    inner = sooner.plan(("x", "echo inner $CUDA_VISIBLE_DEVICES"), name="inner.toml")
    line = f"python -m sooner run {inner} --devices virtual:4 --out inner-out"
    plan = sooner.plan(("outer", line))
    done = sooner("run", plan, "--devices", "virtual:4", PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert done.returncode == 0, done.stdout
    assert "inner 0" in done.stdout


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 2), (signal.SIGTERM, 2)])
def test_an_interrupted_run_ends_what_runs_and_says_what_did_not(sooner, run, signum, code):
    plan = sooner.plan(
        ("done", "true"),
        ("running", "sleep 2002", "devices = 4", "priority = -1"),
        ("never", "true", 'after = ["running"]'),
    )
    process = sooner.start("run", plan, *VIRTUAL)
    run.wait_for("started", "running")
    process.send_signal(signum)
    assert process.wait(30) == code
    assert run.outcomes == {"done": "passed", "running": "not_run", "never": "not_run"}
    assert alive("sleep 2002") == []


def test_a_run_that_is_interrupted_in_its_only_unit_had_begun_and_says_how_to_go_on(sooner, run):
    process = sooner.start("run", sooner.plan(("running", "sleep 2009")), *VIRTUAL)
    run.wait_for("started", "running")
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 2
    assert sooner("replay", "out").stdout.endswith("to go on: sooner run --resume out\nexit code 2: interrupted\n")


def test_an_interrupted_run_is_resumed_without_repeating_anything(sooner, run, project):
    plan = sooner.plan(
        ("done", "echo x >> done.count"),
        ("running", "test -e go || sleep 2003", "devices = 4", "priority = -1"),
        ("never", "true", 'after = ["running"]'),
    )
    process = sooner.start("run", plan, *VIRTUAL)
    run.wait_for("started", "running")
    process.send_signal(signal.SIGINT)
    process.wait(30)
    (project / "go").touch()
    done = sooner("run", "--resume", "out")
    assert done.returncode == 0, done.stderr
    assert run.outcomes == {"done": "passed", "running": "passed", "never": "passed"}
    assert (project / "done.count").read_text() == "x\n"


def test_the_death_of_the_runner_loses_no_verdict_and_leaves_nothing(sooner, run):
    plan = sooner.plan(
        ("done", "true"),
        ("running", "trap '' TERM; (setsid env -i sleep 2004 &); sleep 2005", "devices = 4", "priority = -1"),
        ("never", "true", 'after = ["running"]'),
    )
    process = sooner.start("run", plan, *VIRTUAL)
    run.wait_for("started", "running")
    process.kill()
    process.wait()
    wait_until((run.path / "results.jsonl").exists)
    assert run.outcomes == {"done": "passed", "running": "worker_lost", "never": "not_run"}
    wait_until(lambda: set(run.cases.values()) == {None, "error"})
    assert len(run.cases) == 3
    assert alive("sleep 2004") == alive("sleep 2005") == []


def test_a_run_whose_runner_died_is_resumed(sooner, run, project):
    plan = sooner.plan(("a", "test -e go || sleep 2006"), ("b", "true"))
    process = sooner.start("run", plan, *VIRTUAL)
    run.wait_for("started", "a")
    run.wait_for("verdict", "b")
    process.kill()
    process.wait()
    wait_until((run.path / "results.jsonl").exists)
    (project / "go").touch()
    assert sooner("run", "--resume", "out").returncode == 0
    assert run.outcomes == {"a": "passed", "b": "passed"}


def test_junit_is_complete_before_the_first_verdict(sooner, run):
    plan = sooner.plan(("a", "sleep 2007"), ("b", "sleep 2008"))
    process = sooner.start("run", plan, *VIRTUAL)
    run.wait_for("started")
    assert run.cases == {("a", "a"): "error", ("b", "b"): "error"}
    process.send_signal(signal.SIGINT)
    process.wait(30)


def test_a_device_that_reports_a_fault_is_put_aside_and_the_test_is_not_blamed(sooner, run):
    xid = "NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus"
    fault = f"test $CUDA_VISIBLE_DEVICES != 0 || {{ echo '{xid}'; exit 1; }}"
    units = [(str(i), f"{fault}; sleep 0.1") for i in range(4)]
    done = sooner("run", sooner.plan(*units), "--devices", "virtual:2", "--out", "out", "--retries", 1)
    assert set(run.outcomes.values()) == {"passed"}
    assert "GPU 0 put aside" in done.stderr
    (put_aside,) = [event for event in run.events if event["event"] == "device"]
    assert (put_aside["device"], put_aside["state"]) == ("virtual:0", "put_aside")


def test_github_commands_in_logs_have_no_effect_and_failures_are_annotated(sooner, project):
    summary = project / "step.md"
    done = sooner(
        "run", sooner.plan(("a", "echo '::set-output name=x::y'; exit 1")), *VIRTUAL,
        GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary),
    )  # fmt: skip
    stop = re.search(r"::stop-commands::(\w+)\n", done.stdout)
    assert stop.end() <= done.stdout.index("::set-output") < done.stdout.index(f"::{stop[1]}::")
    assert "::error title=a::FAILED: exit code 1" in done.stdout
    assert "| a | FAILED | exit code 1 |" in summary.read_text()


def test_settings_come_from_pyproject_and_environment(sooner, project, run):
    (project / "pyproject.toml").write_text('[tool.sooner.run]\ndevices = "virtual:2"\nreplay = "none"\n')
    sooner("run", sooner.plan(("a", "true")), "--out", "out", SOONER_RUN_RETRIES="1")
    settings = json.loads((run.path / "run.json").read_text())["settings"]
    assert (settings["devices"], settings["retries"]) == ("virtual:2", 1)
    assert settings["sources"]["retries"] == "environment"
    assert settings["sources"]["devices"].endswith("pyproject.toml")


def test_an_unknown_setting_names_the_nearest(sooner, project):
    (project / "pyproject.toml").write_text("[tool.sooner.run]\nretires = 1\n")
    done = sooner("run", sooner.plan(("a", "true")))
    assert done.returncode == 4
    assert "tool.sooner.run.retires is unknown: did you mean 'retries'?" in done.stderr


def test_an_unknown_setting_of_the_environment_names_the_nearest(sooner):
    done = sooner("run", sooner.plan(("a", "true")), *VIRTUAL, SOONER_RUN_RETIRES="1", SOONER_RUN_ID="outer")
    assert done.returncode == 4
    assert done.stderr == "sooner: SOONER_RUN_RETIRES is no setting: did you mean SOONER_RUN_RETRIES?\n"


def test_tail_prints_the_end_of_a_log_and_follows_it_to_its_end(sooner):
    sooner("run", sooner.plan(("a", "seq 100")), *VIRTUAL)
    assert sooner("tail", "out", "a", "-n", 2).stdout == "99\n100\n"
    assert sooner("tail", "out", "a", "-f", "-n", 1).stdout == "100\n"
    assert "did you mean 'a'" in sooner("tail", "out", "aa").stderr


def test_replay_prints_what_the_run_printed(sooner):
    first = sooner("run", sooner.plan(("a", "echo hello"), ("b", "exit 1")), *VIRTUAL)
    again = sooner("replay", "out")
    assert (again.stdout, again.returncode) == (first.stdout, first.returncode)


def test_a_run_that_was_resumed_took_no_longer_for_the_night_between():
    def begun(at):
        return RunStarted(at=at, run="r", units=1, pending=1, devices=())

    def tried(begin, end):
        return Attempt(outcome=Outcome.PASSED, devices=(), started_at=begin, ended_at=end)

    verdict = Verdict(at=1010.0, unit="u", outcome=Outcome.PASSED, attempts=(tried(1.0, 5.0), tried(1001.0, 1010.0)))
    ended = RunFinished(at=1010.0, run="r", exit_code=0)
    assert _pauses([begun(0.0), begun(1000.0), ended], [verdict]) == [(5.0, 1000.0)]
    assert _pauses([begun(0.0), Interrupted(at=8.0, reason="SIGINT"), begun(1000.0), ended], [verdict]) == [
        (8.0, 1000.0)
    ]
    assert _pauses([begun(0.0), ended], [verdict]) == []


def test_a_reader_that_has_enough_does_not_change_the_exit_code(sooner):
    plan = sooner.plan(("a", "seq 200000; exit 1"))
    command = f"{sys.executable} -m sooner run {plan} --devices virtual:1 2>&- | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=sooner.folder, capture_output=True, timeout=30, check=False)
    assert done.returncode == 1


def test_a_folder_that_cannot_be_written_is_no_hindrance_with_out(sooner, project):
    (project / ".sooner").write_text("in the way")
    assert sooner("run", sooner.plan(("a", "true")), *VIRTUAL).returncode == 0
    refused = sooner("run", sooner.plan(("a", "true")), "--devices", "virtual:1")
    assert (refused.returncode, "pass --out DIR" in refused.stderr) == (4, True)


def test_a_plan_of_a_project_that_runs_on_a_cluster_says_whose_devices_it_shows(sooner, project):
    (project / "pyproject.toml").write_text('[tool.sooner.run]\nbackend = "ray"\n')
    done = sooner("plan", sooner.plan(("a", "true")), "--devices", "virtual:1")
    assert "note: the devices are this machine's" in done.stdout


def test_what_other_verbs_read_of_the_project_is_no_mistake_of_a_run(sooner, project):
    tables = 'needs-rules = "own.toml"\n[tool.sooner.coverage]\nwithin = "24h"\n[tool.sooner.jobs]\npinned = ["lint"]\n'
    (project / "pyproject.toml").write_text(f"[tool.sooner]\n{tables}")
    done = sooner("run", sooner.plan(("a", "true")), "--devices", "virtual:1")
    assert done.returncode == 0, done.stderr


def test_a_run_is_written_as_a_page_that_links_to_its_logs(sooner, project):
    sooner.plan(("bad", "echo the reason; exit 3"), ("good", "true"))
    sooner("run", "plan.toml", "--devices", "virtual:1", "--out", "out", "--replay", "none")
    done = sooner("replay", "out", "--replay", "none", "--html", "page.html")
    page = (project / "page.html").read_text()
    assert done.returncode == 1
    assert "the reason" in page
    assert 'href="out/logs/bad.log"' in page
    assert (project / "out/logs/bad.log").exists()


def test_a_run_whose_folder_may_only_be_read_is_shown_as_it_is(sooner, project, monkeypatch):
    sooner("run", sooner.plan(("a", "exit 3")), *VIRTUAL)
    before = {file: file.stat().st_mtime_ns for file in (project / "out").rglob("*")}
    monkeypatch.chdir(project)
    monkeypatch.setattr(os, "access", lambda *_: False)  # what is said to root of a disk that is mounted read-only
    assert replay_run(Path("out"), which="none", as_json=False, html=Path("page.html")) == 1
    assert {file: file.stat().st_mtime_ns for file in (project / "out").rglob("*")} == before
    with (project / "out/run.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(RunFolderError, match="in use by a live run"):
            replay_run(Path("out"), which="none", as_json=False)


def test_a_page_that_cannot_be_written_is_one_clear_error(sooner):
    sooner.plan(("good", "true"))
    sooner("run", "plan.toml", "--devices", "virtual:1", "--out", "out")
    done = sooner("replay", "out", "--html", "nowhere/page.html")
    assert done.returncode == 4
    assert "--html nowhere/page.html cannot be written: No such file or directory" in done.stderr
