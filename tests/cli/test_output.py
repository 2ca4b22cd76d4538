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
