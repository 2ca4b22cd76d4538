"""Units, folders and moments that mean harm."""

import json
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

import pytest
from real_runs import Run, alive, wait_until

VIRTUAL = ("--devices", "virtual:2", "--out", "out")


def test_a_unit_that_stops_its_warden_still_ends(sooner, run):
    sooner("run", sooner.plan(("a", "kill -STOP $PPID; sleep 0.2", "timeout_s = 10"), ("b", "true")), *VIRTUAL)
    assert run.outcomes == {"a": "passed", "b": "passed"}


def test_a_log_replaced_by_a_fifo_is_not_waited_for(sooner, run):
    line = "rm -f out/logs/a.log; mkfifo out/logs/a.log; exit 1"
    done = sooner("run", sooner.plan(("a", line), ("b", "true")), *VIRTUAL)
    assert run.outcomes == {"a": "failed", "b": "passed"}
    assert "(no log: not a regular file)" in done.stdout


def test_a_unit_that_removes_the_run_folder_costs_no_verdict(sooner, run):
    plan = sooner.plan(("a", "rm -rf out"), ("b", "sleep 0.2; exit 3"), ("c", "true", 'after = ["a"]'))
    done = sooner("run", plan, *VIRTUAL)
    assert done.returncode == 1
    assert run.outcomes == {"a": "passed", "b": "failed", "c": "passed"}
    assert len([event for event in run.events if event["event"] == "verdict"]) == 3
    assert sooner("replay", "out").returncode == 1


def test_a_unit_that_removes_the_logs_harms_nobody(sooner, run):
    plan = sooner.plan(("a", "rm -rf out/logs"), ("b", "echo after", 'after = ["a"]'))
    assert sooner("run", plan, *VIRTUAL).returncode == 0
    assert run.log("b") == "after\n"


def test_long_variants_in_parallel_mix_no_reports(sooner, run):
    units = [(f"u{i}", "true", f'env = {{ V = "{"x" * 70_000}{i}" }}') for i in range(6)]
    sooner("run", sooner.plan(*units), *VIRTUAL)
    assert set(run.outcomes.values()) == {"passed"}
    assert len(run.results) == 6


def test_modules_in_the_current_folder_do_not_shadow_ours(sooner, run, project):
    for name in ("json", "socket", "signal", "msgspec"):
        (project / f"{name}.py").write_text("raise SystemExit('shadowed')")
    command = [sys.executable, "-P", "-m", "sooner", "run", str(sooner.plan(("a", "sleep 2101"))), *VIRTUAL]
    process = subprocess.Popen(command, cwd=project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run.wait_for("started")
    process.kill()
    process.wait()
    wait_until((run.path / "trace.json").exists)
    assert run.outcomes == {"a": "worker_lost"}


def test_earlier_attempts_are_kept_by_a_resume(sooner, run, project):
    plan = sooner.plan(("a", "test $SOONER_ATTEMPT != 1 || exit 1; test -e go || sleep 2102"))
    process = sooner.start("run", plan, *VIRTUAL, "--retries", 1)
    run.wait_for("finished")
    wait_until(lambda: len([e for e in run.events if e["event"] == "started"]) == 2)
    process.kill()
    process.wait()
    wait_until((run.path / "results.jsonl").exists)
    (project / "go").touch()
    done = sooner("run", "--resume", "out", "--json")
    assert done.returncode == 0
    result = run.results["a"]
    assert [attempt["outcome"] for attempt in result["attempts"]] == ["failed", "worker_lost", "passed"]
    assert result["flaky"]
    took = result["attempts"][-1]["ended_at"] - result["attempts"][-1]["started_at"]
    assert json.loads(done.stdout)["makespan_s"] == pytest.approx(took)  # of what ran now


def test_a_replay_shows_the_cases_of_its_own_run(sooner, project):
    line = "echo \"<testsuite><testcase name='$TAG'/></testsuite>\" > cases.xml"
    plan = sooner.plan(("a", line, f'junit = "{project}/cases.xml"'))
    for tag in ("first", "second"):
        sooner("run", plan, "--devices", "virtual:1", "--out", tag, TAG=tag)
    sooner("replay", "first")
    assert Run(project / "first").cases == {("a", "first"): None}


def test_a_torn_line_in_the_journal_spoils_nothing(sooner, run):
    sooner("run", sooner.plan(("a", "true")), *VIRTUAL)
    with (run.path / "events.jsonl").open("a") as file:
        file.write('{"at":1.0,"event":"verd')
    assert sooner("run", "--resume", "out").returncode == 0
    assert [json.loads(line) for line in (run.path / "events.jsonl").read_text().splitlines()]


def test_a_resumed_run_works_where_the_first_one_did(sooner, run, project, tmp_path):
    plan = sooner.plan(("a", "test -e go || sleep 2103; pwd"))
    process = sooner.start("run", plan, *VIRTUAL)
    run.wait_for("started")
    process.send_signal(signal.SIGINT)
    process.wait(30)
    (project / "go").touch()
    command = [sys.executable, "-m", "sooner", "run", "--resume", str(run.path)]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert run.log("a").splitlines()[-1] == str(project)
    assert sooner("replay", "out").returncode == 0


def test_a_resume_needs_no_devices_for_what_has_passed(sooner, run, project):
    plan = sooner.plan(("wide", "true", "devices = 2"), ("a", "test -e go || sleep 2104", 'after = ["wide"]'))
    process = sooner.start("run", plan, *VIRTUAL)
    run.wait_for("started", "a")
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    (project / "go").touch()
    assert sooner("run", "--resume", "out", "--devices", "virtual:1").returncode == 0


def test_a_signal_during_the_replay_keeps_the_exit_code(sooner, run):
    plan = sooner.plan(("a", "exit 1"), ("big", "head -c 60000000 /dev/zero | tr '\\0' '\\n'"))
    command = [sys.executable, "-m", "sooner", "run", str(plan), *VIRTUAL]
    process = subprocess.Popen(command, cwd=sooner.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert b"Output of each unit" in process.stdout.readline() + process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.stdout.read()
    process.stdout.close()
    assert process.wait(30) == 1


def test_an_interrupt_at_any_moment_of_the_start_ends_what_runs(sooner, project):
    plan = sooner.plan(*[(str(i), "sleep 2105") for i in range(24)])
    for delay in (0.0, 0.01, 0.02, 0.04):
        run = Run(project / f"out{delay}")
        process = sooner.start("run", plan, "--devices", "virtual:24", "--out", run.path)
        wait_until((run.path / "events.jsonl").exists)
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) in (2, 130)
        assert set(run.outcomes.values()) == {"not_run"}
        assert alive("sleep 2105") == []


@pytest.mark.parametrize("moment", ["events.jsonl", "run.json"])
def test_an_interrupt_that_a_script_ignores_for_its_background_ends_a_run_that_begins(sooner, project, moment):
    """Shells start `command &` of a script with SIGINT ignored; what comes before our handlers used to be lost."""
    plan = sooner.plan(*[(str(i), "sleep 2107") for i in range(8)])
    command = [sys.executable, "-m", "sooner", "run", str(plan), "--devices", "virtual:8", "--out", "out"]
    for _ in range(3):
        process = subprocess.Popen(
            ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command], cwd=project, stderr=subprocess.DEVNULL
        )
        while not (project / "out" / moment).exists():  # no sleep: the moment is short
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(30) in (2, 130)
        assert alive("sleep 2107") == []
        shutil.rmtree(project / "out")


def test_a_run_under_nohup_survives_the_hangup(sooner, run, project):
    plan = sooner.plan(("a", "while ! test -e go; do sleep 0.05; done"))
    command = [sys.executable, "-m", "sooner", "run", str(plan), *VIRTUAL]
    process = subprocess.Popen(["nohup", *command], cwd=project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run.wait_for("started")
    process.send_signal(signal.SIGHUP)
    (project / "go").touch()
    assert process.wait(30) == 0
    assert run.outcomes == {"a": "passed"}


def test_two_runs_that_hold_devices_beside_host_units_do_not_wait_for_each_other(sooner, project):
    wide = [("host", "sleep 3", "devices = 0"), ("wide", "sleep 0.1", "devices = 4")]
    blocker = sooner.plan(("hold", "sleep 1", "devices = 2"), name="blocker.toml")
    first = sooner.start("run", blocker, "--devices", "virtual:4", "--out", "blocker")
    Run(project / "blocker").wait_for("started")
    plan = sooner.plan(*wide)
    both = [sooner.start("run", plan, "--devices", "virtual:4", "--out", name) for name in ("one", "two")]
    assert [process.wait(60) for process in (first, *both)] == [0, 0, 0]
    for name in ("one", "two"):
        events = Run(project / name).events
        (wide_start,) = [e["at"] for e in events if e["event"] == "started" and e["unit"] == "wide"]
        (host_end,) = [e["at"] for e in events if e["event"] == "finished" and e["unit"] == "host"]
        assert wide_start < host_end


def test_narrow_units_go_on_while_another_run_holds_what_a_wide_one_needs(sooner, project):
    holder = sooner.start(
        "run", sooner.plan(("hold", "sleep 2106"), name="h.toml"), "--devices", "virtual:1", "--out", "h"
    )
    Run(project / "h").wait_for("started")
    plan = sooner.plan(("wide", "true", "devices = 2"), ("a", "true"), ("b", "true"))
    process = sooner.start("run", plan, *VIRTUAL)
    run = Run(project / "out")
    run.wait_for("verdict", "a")
    run.wait_for("verdict", "b")
    holder.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    holder.wait(30)


def test_two_units_never_share_a_log(sooner, run):
    plan = sooner.plan(
        ("a", "echo 1"), ("a", "echo 2", 'env = { X = "1" }'), ("a.plain", "echo 3"), ("A.PLAIN", "echo 4")
    )
    sooner("run", plan, *VIRTUAL)
    logs = [json.loads(line)["log"].lower() for line in (run.path / "results.jsonl").read_text().splitlines()]
    assert len(set(logs)) == 4


def test_tail_ends_when_the_runner_is_gone(sooner, run):
    process = sooner.start("run", sooner.plan(("a", "echo begun; sleep 2107")), *VIRTUAL)
    run.wait_for("started")
    process.kill()
    process.wait()
    wait_until((run.path / "results.jsonl").exists)
    assert "begun" in sooner("tail", "out", "a", "-f").stdout


def test_hundreds_of_ports_are_leased_or_refused_in_one_sentence(sooner, run):
    plan = sooner.plan(("a", "test $(echo $SOONER_PORTS | tr , '\\n' | sort -u | wc -l) = 300", "ports = 300"))
    assert sooner("run", plan, *VIRTUAL).returncode == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tool = 5", "must be tables"),
        ("a = " + "[" * 5_000, "cannot be read"),
        ("[tool]\nsooner = 5", "must be tables"),
        ("[tool.sooner]\nrun = 5", "must be tables"),
        ("[tool.sooner.run]\nretries = 2.7", "a whole number"),
        ("[tool.sooner.run]\ntimeout_s = nan", "endless"),
        ("[tool.sooner.run]\ntimeout_s = inf", "endless"),
    ],
)
def test_a_setting_that_makes_no_sense_is_one_clear_error(sooner, project, text, message):
    (project / "pyproject.toml").write_text(text)
    done = sooner("run", sooner.plan(("a", "true")), *VIRTUAL)
    assert (done.returncode, message in done.stderr, "Traceback" in done.stderr) == (4, True, False)


def test_a_plan_with_a_byte_order_mark_is_read(sooner, project):
    (project / "bom.toml").write_bytes(b'\xef\xbb\xbf[[unit]]\r\nname = "a"\r\nrun = "true"\r\n')
    assert sooner("run", "bom.toml", *VIRTUAL).returncode == 0


def test_durations_that_are_no_durations_are_refused(sooner, project):
    done = sooner("run", sooner.plan(("a", "true")), *VIRTUAL, "--durations", ".")
    assert (done.returncode, "neither a JSON file nor a run folder" in done.stderr) == (4, True)


def test_a_current_folder_that_is_gone_is_one_clear_error(tmp_path):
    line = f"mkdir gone && cd gone && rmdir ../gone && {sys.executable} -m sooner devices"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (4, "sooner: the current directory is gone: change to one that exists\n")


def test_closed_streams_are_no_bug(sooner):
    line = f"{sys.executable} -m sooner run {sooner.plan(('a', 'true'))} --devices virtual:1 --out out >&- 2>&-"
    assert subprocess.run(["bash", "-c", line], cwd=sooner.folder, check=False).returncode == 0


def test_a_run_folder_that_is_not_utf8_is_named(sooner):
    done = sooner("run", sooner.plan(("a", "true")), "--devices", "virtual:1", "--out", "o\udcff", "--json")
    assert json.loads(done.stdout)["run"].endswith("o\\xff")


def test_junit_of_a_finished_run_is_valid_after_everything(sooner, run):
    sooner("run", sooner.plan(("a", "echo '<not xml' > {junit}; exit 0")), *VIRTUAL)
    assert run.outcomes == {"a": "crashed"}
    ET.parse(run.path / "junit.xml")
