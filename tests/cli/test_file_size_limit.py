"""Limits on the size of files (`ulimit -f`) that the run's own files reach."""

import errno
import json
import os
import resource
import subprocess
import sys

import pytest
from real_runs import Run

VIRTUAL = ("--devices", "virtual:2", "--out", "out")


def limited(sooner, size, *arguments):
    """Run with files of at most so many bytes; Python itself would cut its compiled modules at the limit, for good."""
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-m", "sooner", *map(str, arguments)],
        cwd=sooner.folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )


def test_a_journal_that_may_not_grow_costs_no_verdict(sooner, run):
    plan = sooner.plan(*((f"u{i}", f"exit {i % 2}") for i in range(40)))
    done = limited(sooner, 24_000, "run", plan, *VIRTUAL)
    assert done.returncode == 1, done.stderr
    assert len(run.outcomes) == 40
    assert set(run.outcomes.values()) == {"passed", "failed"}
    assert "did not get into events.jsonl" in done.stdout + done.stderr


def test_a_log_that_reaches_the_limit_ends_its_unit_alone(sooner, run):
    plan = sooner.plan(("flood", "head -c 3000000 /dev/zero"), ("quiet", "true"))
    assert limited(sooner, 100_000, "run", plan, *VIRTUAL).returncode == 1
    assert run.outcomes == {"flood": "crashed", "quiet": "passed"}


@pytest.mark.parametrize("size", [0, 1_000])
def test_a_run_that_cannot_be_described_does_not_begin(sooner, project, size):
    done = limited(sooner, size, "run", sooner.plan(("a", "touch began")), *VIRTUAL)
    assert done.returncode == 4
    assert "cannot write the run folder" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (project / "began").exists()
    assert not Run(project / "out").path.joinpath("results.jsonl").exists()


@pytest.mark.parametrize(("last", "code"), [("true", 11), ("false", 1)])
def test_reports_that_cannot_be_written_make_a_success_a_fault_of_the_machine_and_no_failure_a_success(
    sooner, last, code
):
    plan = sooner.plan(("thief", "rm -r ../out out 2>/dev/null; touch out"), ("last", last))
    done = sooner("run", plan, *VIRTUAL)
    assert done.returncode == code, done.stderr
    assert "could not be written" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_history_that_may_not_grow_says_so_in_one_line_and_keeps_what_it_has(sooner, project):
    head = "commit,time,job,status\n"
    (project / "few.csv").write_text(head + "c1,2020-01-01T10:00:00Z,build,success\n")
    rows = (f"c{i},2020-01-02T10:00:{i % 60:02},job {i * 7919 % 10007},success\n" for i in range(60_000))
    (project / "many.csv").write_text(head + "".join(rows))
    assert sooner("ingest", "few.csv", "--history", "h").returncode == 0
    done = limited(sooner, 20_000, "ingest", "many.csv", "--history", "h")
    assert done.returncode == 4
    assert (
        done.stderr == "sooner: cannot write: File too large; make room and repeat the command: nothing is half-done\n"
    )
    info = sooner("history", "info", "--history", "h", "--json")
    assert json.loads(info.stdout)["tables"]["jobs"]["rows"] == 1


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "make room and repeat the command"),
        (errno.EROFS, "name another place, or make this one writable, and repeat the command"),
        (errno.EMFILE, "raise the limit of open files (ulimit -n) and repeat the command"),
    ],
)
def test_what_the_machine_refuses_is_one_line_that_says_what_to_do(number, advice):
    error = f"OSError({number}, {os.strerror(number)!r}, '/data/history')"
    code = f"""if True:
        import sooner.cli.main as border
        def refused(**options):
            raise {error}
        border.sooner.main = refused
        border.main(["history", "info"])"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == f"sooner: {os.strerror(number)}: /data/history: {advice}\n"
