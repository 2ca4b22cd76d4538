"""What runs leave in the history and take from it."""

import json
import os
import shutil

import pytest
from real_runs import Sooner

pytest.importorskip("duckdb")


def test_a_run_leaves_its_record_and_the_next_one_takes_durations_from_it(sooner):
    plan = sooner.plan(("short", "sleep 0.01"), ("long", "sleep 0.4"))
    assert sooner("run", plan, "--devices", "virtual:1", "--history", "h").returncode == 0
    shutil.rmtree(sooner.folder / ".sooner")
    predicted = json.loads(sooner("plan", plan, "--devices", "virtual:1", "--history", "h", "--json").stdout)
    seconds = {entry["unit"]: entry["end_s"] - entry["start_s"] for entry in predicted["order"]}
    assert seconds["long"] >= 0.4 > seconds["short"]


def test_a_run_is_recorded_by_default_where_runs_are_kept(sooner):
    plan = sooner.plan(("one", "true"))
    done = sooner("run", plan, "--devices", "virtual:1", SOONER_RUN_HISTORY="auto")
    assert done.returncode == 0
    assert list((sooner.folder / ".sooner" / "history").rglob("*.parquet"))


def test_a_history_that_cannot_be_written_costs_the_run_a_line_only(sooner):
    (sooner.folder / "file").write_text("")
    done = sooner("run", sooner.plan(("one", "true")), "--devices", "virtual:1", "--history", "file/h")
    assert done.returncode == 0
    assert "the run is not in the history" in done.stderr


def test_a_run_in_a_folder_whose_name_is_no_text_costs_the_history_only(sooner):
    folder = sooner.folder / os.fsdecode(b"no \xff text\n")
    folder.mkdir()
    plan = sooner.plan(("one", "true"))
    there = Sooner(folder)
    done = there("run", plan, "--devices", "virtual:1", SOONER_RUN_HISTORY="auto")
    again = there("run", plan, "--devices", "virtual:1", SOONER_RUN_HISTORY="auto")
    assert (done.returncode, again.returncode) == (0, 0), done.stderr
    assert "is not UTF-8" in done.stderr
    assert there("history", "info").returncode == 4
