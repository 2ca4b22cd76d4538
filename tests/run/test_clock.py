"""The system's clock is set while a suite runs: an hour back, an hour on."""

import json
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

import pytest

from sooner.run import clock

CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, at);
    FILE *file = id == CLOCK_REALTIME ? fopen(getenv("CLOCK_SET_BY"), "r") : NULL;
    long seconds = 0;
    if (file) {
        if (fscanf(file, "%ld", &seconds) == 1) at->tv_sec += seconds;
        fclose(file);
    }
    return code;
}
"""
PLAN = """
[[unit]]
name = "sets the clock"
run = "sleep 0.2; echo $HOURS > $CLOCK_SET_BY; sleep 0.2"
[[unit]]
name = "times out"
run = "sleep 3001"
timeout_s = 1
[[unit]]
name = "writes cases"
after = ["sets the clock"]
junit = "cases.xml"
run = "echo '<testsuite><testcase name=\\"a\\"/></testsuite>' > cases.xml; touch -d @$WRITTEN cases.xml"
"""
HOUR = 3600


@pytest.fixture
def settable(tmp_path):
    """The environment in which processes see a clock that a file sets."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    (tmp_path / "clock.c").write_text(CLOCK)
    library = tmp_path / "clock.so"
    command = ["cc", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "clock.c"), "-ldl"]
    subprocess.run(command, check=True)
    return {"LD_PRELOAD": str(library), "CLOCK_SET_BY": str(tmp_path / "set_by")}


@pytest.mark.parametrize("change", [-2 * HOUR, 2 * HOUR])
def test_durations_are_right_when_the_clock_is_set_meanwhile(settable, tmp_path, change):
    (tmp_path / "plan.toml").write_text(PLAN)
    written = str(round(time.time() + change + 1))  # as a file system would have it after the change
    done = subprocess.run(
        [sys.executable, "-m", "sooner", "run", "plan.toml", "--devices", "virtual:2", "--out", "out"],
        cwd=tmp_path, env={**os.environ, **settable, "HOURS": str(change), "WRITTEN": written}, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    results = [json.loads(line) for line in (tmp_path / "out/results.jsonl").read_text().splitlines()]
    assert [result["outcome"] for result in results] == ["passed", "timed_out", "passed"]
    assert all(0 <= result["duration_s"] < HOUR and 0 <= result["queued_s"] < HOUR for result in results)
    suites = ET.parse(tmp_path / "out/junit.xml").getroot()
    assert 0 <= float(suites.get("time")) < HOUR
    events = [json.loads(line)["at"] for line in (tmp_path / "out/events.jsonl").read_text().splitlines()]
    assert max(events) - min(events) < HOUR


def test_the_clock_of_a_run_does_not_move_with_the_system_s(monkeypatch):
    before = clock.now()
    monkeypatch.setattr(time, "time", lambda: 1.0)
    assert 0 <= clock.now() - before < HOUR
    assert clock.as_the_system_tells(before) <= 1.0
