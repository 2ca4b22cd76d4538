"""Streams that cannot be written cost a command neither its result nor its exit code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")


def command(project, *arguments, **streams):
    line = [sys.executable, "-m", "sooner", *arguments]
    streams = {"stderr": subprocess.PIPE, **streams}
    return subprocess.run(line, cwd=project, check=False, timeout=60, **streams)


@needs_full
def test_a_run_whose_standard_error_cannot_be_written_says_all_on_standard_output(sooner, project):
    plan = sooner.plan(("a", "true"))
    with FULL.open("w") as full:
        done = command(project, "run", plan, "--devices", "virtual:1", stderr=full, stdout=subprocess.PIPE)
    assert done.returncode == 0
    assert b"1 unit: 1 passed" in done.stdout


@needs_full
@pytest.mark.parametrize(("line", "code"), [("true", 11), ("false", 1)])
def test_output_that_could_not_be_written_is_no_success_and_no_bug(sooner, project, line, code):
    plan = sooner.plan(("a", line))
    with FULL.open("w") as full:
        done = command(project, "run", plan, "--devices", "virtual:1", stdout=full)
    assert done.returncode == code
    assert b"standard output is not complete: No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_reader_that_has_enough_turns_no_answer_into_a_success(project):
    (project / "selection.json").write_text('{"jobs": [{"job": "a", "why": "w"}], "dropped": [], "run_all": false}')
    (project / "results.json").write_text('{"a": "failure"}')
    reading, writing = os.pipe()
    os.close(reading)
    arguments = ["jobs", "gate", "--selection", "selection.json", "--results", "results.json"]
    done = command(project, *arguments, stdout=writing)
    os.close(writing)
    assert done.returncode == command(project, *arguments, stdout=subprocess.DEVNULL).returncode != 0


@pytest.fixture
def kept(project):
    pytest.importorskip("duckdb")
    (project / "jobs.csv").write_text("commit,time,job,status\na,2026-01-01T00:00:00Z,unit,success\n")
    assert command(project, "ingest", "jobs.csv", "--history", "h", stdout=subprocess.DEVNULL).returncode == 0
    return ("history", "export", "jobs", "-", "--history", "h")


def test_a_reader_that_has_enough_of_an_export_makes_it_no_failure(project, kept):
    reading, writing = os.pipe()
    os.close(reading)
    done = command(project, *kept, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_name_that_the_terminals_encoding_has_no_letters_for_is_no_bug(project):
    pytest.importorskip("numpy")
    pytest.importorskip("duckdb")
    (project / "jobs.csv").write_text("commit,time,job,status\na,2026-01-01,prüfung 日本,success\n", encoding="utf-8")
    assert command(project, "ingest", "jobs.csv", "--history", "h", stdout=subprocess.DEVNULL).returncode == 0
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    done = command(project, "jobs", "select", "--history", "h", stdout=subprocess.PIPE, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "prüfung \\u65e5\\u672c".encode("latin-1") in done.stdout


QUESTION = (
    b'{"id": 1, "now": 9e8, "commits": [{"sha": "b", "time": 2e8}, {"sha": "a", "time": 1e8}], "signals": '
    b'[{"key": "unit", "events": [{"sha": "a", "status": "success", "started_at": 1e8}]}]}\n'
)


def test_a_reader_that_has_enough_ends_a_verb_that_goes_on_for_ever_and_makes_it_no_failure(project):
    pytest.importorskip("numpy")
    reading, writing = os.pipe()
    os.close(reading)
    done = command(project, "trunk", "decide", "--jsonl", stdout=writing, input=QUESTION * 1000)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_export_leaves_what_a_file_behind_stdout_holds_already(project, kept):
    with (project / "all.csv").open("wb") as file:
        file.write(b"precious\n" * 2)
        file.flush()
        assert command(project, *kept, stdout=file).returncode == 0
    lines = (project / "all.csv").read_text().splitlines()
    assert lines[:2] == ["precious", "precious"]
    assert len(lines) == 4


@needs_full
def test_an_export_that_cannot_be_written_does_not_blame_the_history(project, kept):
    with FULL.open("w") as full:
        done = command(project, *kept, stdout=full)
    assert done.returncode == 4
    assert done.stderr == b"sooner: cannot write standard output: No space left on device\n"


def test_a_pipe_that_is_full_for_the_moment_is_waited_for(sooner, project):
    plan = sooner.plan(("a", "seq 100000; exit 1"))
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    line = [sys.executable, "-m", "sooner", "run", plan, "--devices", "virtual:1"]
    with subprocess.Popen(line, cwd=project, stdout=writing, stderr=subprocess.DEVNULL) as process:
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8") as file:
            said = file.read()
    assert process.returncode == 1
    assert "\n100000\n" in said
    assert "1 unit: 1 FAILED" in said
