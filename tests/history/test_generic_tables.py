"""Generic tables: long and wide, CSV and JSON and Parquet, with what people write into them."""

import gzip
import importlib.util
import random
import shutil
import subprocess
from datetime import datetime

import duckdb
import pytest

from sooner.history import HistoryError, IngestError
from sooner.history.fingerprints import digest_of
from sooner.history.ingest.sources import table_source

LONG = """commit,time,job,status,duration_s,attempt,event,run_id,run_number
c1,2020-01-01T10:00:00Z,compile,pass,60,1,push,7,141.0
c1,2020-01-01T10:00:00Z,unit,fail,30,1,push,7,141.0
c1,2020-01-01T11:00:00Z,unit,pass,31.5,2,push,7,141.0
c2,2020-01-02T10:00:00Z,compile,skip,,1,schedule,8,142.0
c2,2020-01-02T10:00:00Z,unit,cancel,1,1,schedule,8,142.0
"""


def told(history):
    return [(row.commit, row.job, row.attempt, row.outcome) for row in history.jobs()]


def test_the_long_form_needs_no_mapping(history, take, write):
    report = take(write("jobs.csv", LONG))
    assert (report["rows"], report["added"], report["duplicates"], report["rejected"]) == (5, 5, 0, [])
    assert report["notes"] == ["jobs.csv: columns that are not used: run_number"]
    assert sorted(told(history)) == [
        ("c1", "compile", 1, "passed"), ("c1", "unit", 1, "failed"), ("c1", "unit", 2, "passed"),
        ("c2", "compile", 1, "skipped"), ("c2", "unit", 1, "cancelled"),
    ]  # fmt: skip
    again = next(row for row in history.jobs() if row.attempt == 2)
    assert (again.run, again.event, again.started, again.completed) == ("7", "push", 1577876400.0, 1577876431.5)


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_second_ingest_adds_nothing_whatever_the_file_is_called(take, write, compress):
    take(write("jobs.csv", compress(LONG.encode())))
    again = take(write("other.csv.gz", LONG))
    assert (again["rows"], again["added"], again["duplicates"]) == (5, 0, 5)


@pytest.mark.parametrize(
    ("kind", "options"), [("parquet", "format parquet"), ("jsonl", "format json"), ("json", "format json, array true")]
)
def test_other_containers_of_the_same_rows_are_the_same_rows(take, write, tmp_path, kind, options):
    source = write("jobs.csv", LONG)
    take(source)
    duckdb.execute(f"copy (from '{source}') to '{tmp_path}/x.{kind}' ({options})")
    report = take(tmp_path / f"x.{kind}")
    assert (report["rows"], report["added"], report["rejected"]) == (5, 0, [])


@pytest.mark.skipif(
    shutil.which("zstd") is None and importlib.util.find_spec("zstandard") is None,
    reason="nothing here reads Zstandard",
)
def test_zstandard_is_read(take, write, tmp_path):
    source = write("jobs.csv", LONG)
    duckdb.execute(f"copy (from '{source}') to '{tmp_path}/x.jsonl.zst' (format json, compression zstd)")
    assert take(tmp_path / "x.jsonl.zst")["added"] == 5


@pytest.mark.skipif(shutil.which("zstd") is None, reason="the command zstd is not installed")
def test_a_zstandard_file_that_was_cut_off_is_not_taken_for_a_whole_one(take, tmp_path):
    lines = "".join(f"c{i},2026-01-01,{random.Random(i).random()},pass\n" for i in range(20_000))
    done = subprocess.run(
        ["zstd", "-qc"], input=f"commit,time,job,status\n{lines}".encode(), capture_output=True, check=True
    )
    (tmp_path / "cut.csv.zst").write_bytes(done.stdout[: len(done.stdout) // 2])
    report = take(tmp_path / "cut.csv.zst")
    assert report["added"] == 0
    assert "cannot be read" in report["rejected"][-1]["reason"]


def test_the_wide_form_has_a_job_in_each_column(history, take, write):
    text = (
        "commit,time,compile,unit,lint (1)\nc1,2020-01-01T10:00:00Z,success,failure,\n"
        "c2,2020-01-02T10:00:00Z,success,,skipped\n"
    )
    report = take(write("wide.csv", text))
    assert (report["rows"], report["added"]) == (4, 4)
    assert sorted(told(history)) == [
        ("c1", "compile", 1, "passed"), ("c1", "unit", 1, "failed"),
        ("c2", "compile", 1, "passed"), ("c2", "lint (1)", 1, "skipped"),
    ]  # fmt: skip
    assert take(write("wide2.csv", text))["added"] == 0


def test_columns_are_mapped_by_hand(history, take, write):
    text = "build;verdict;when;rev;colour\nlinux;GREEN;2020-01-01 10:00:00+02:00;c1;blue\n"
    with pytest.raises(IngestError, match=r"verdict.*--map column=field"):
        take(write("odd.csv", text), strict=True)
    mapping = {"build": "job", "verdict": "outcome", "when": "started", "rev": "commit", "colour": ""}
    assert take(write("odd.csv", text), mapping=mapping)["added"] == 1
    (row,) = history.jobs()
    assert (row.job, row.outcome, row.started, row.commit) == ("linux", "passed", 1577865600.0, "c1")


@pytest.mark.parametrize(
    ("mapping", "problem"),
    [({"shoe": "job"}, "no such column"), ({"job": "shoe"}, "no such field")],
)
def test_a_mapping_of_what_is_not_there_is_an_error(take, write, mapping, problem):
    assert problem in take(write("jobs.csv", LONG), mapping=mapping)["rejected"][0]["reason"]


def test_bad_rows_are_counted_and_located_and_stop_nothing(history, take, write):
    lines = [
        "commit,time,job,status,duration_s,attempt",
        'c1,2020-01-01T10:00:00Z,"two\nlines",pass,1,1',
        "c2,yesterday,a,pass,1,1",
        "c3,2020-01-01T10:00:00Z,,pass,1,1",
        "c4,2020-01-01T10:00:00Z,a,purple,1,1",
        "c5,2020-01-01T10:00:00Z,a,pass,-3,1",
        "c6,2020-01-01T10:00:00Z,a,pass,soon,1",
        "c7,2020-01-01T10:00:00Z,a,pass,1,1.5",
        "c8,2020-01-01T10:00:00Z,a,,1,1",
        "c9,2020-01-01T10:00:00Z,a,pass,1,1",
    ]
    report = take(write("bad.csv", "\n".join(lines) + "\n"))
    assert (report["rows"], report["added"], report["rejected_count"]) == (9, 2, 7)
    assert [(rejected["line"], rejected["reason"]) for rejected in report["rejected"]] == [
        (4, "time: yesterday is no time"),
        (5, "no job"),
        (6, "status purple is unknown"),
        (7, "duration_s: -3 is negative"),
        (8, "duration_s: soon is no number"),
        (9, "attempt: 1.5 is no whole number"),
        (10, "no status"),
    ]
    assert {row.commit for row in history.jobs()} == {"c1", "c9"}


def test_a_table_that_only_looks_as_if_its_columns_were_jobs_is_told_how_it_was_read(take, write):
    report = take(write("builds.csv", "sha,build,verdict,when\nc1,lint,passed,2020-01-01\n"))
    assert report["notes"] == [
        "builds.csv: columns that are not used: when",
        "builds.csv: read as a row a commit with a column a job: verdict (else say with --map what columns are)",
    ]


def test_ragged_rows_and_foreign_bytes_are_located_and_stop_nothing(take, write):
    text = (
        b"commit,time,job,status\nc1,2020-01-01,a,pass\n\nc2,2020-01-01,a\nc3,2020-01-01,a,pass,more\n"
        b"c4,2020-01-01,\xff\xfe,pass\r\nc5,2020-01-01,a,purple\nc6,2020-01-01,a,fail\n"
    )
    report = take(write("ragged.csv", text))
    assert report["added"] == 3
    assert [(rejected["line"], rejected["reason"]) for rejected in report["rejected"]] == [
        (4, "3 fields under a header of 4"), (5, "5 fields under a header of 4"), (7, "status purple is unknown"),
    ]  # fmt: skip


def test_names_in_windows_characters_stay_two_names_and_that_is_said(history, take, write):
    text = "commit,time,job,prüfer,status\nc1,2020-01-01,prüf,a,pass\nc1,2020-01-01,präf,a,fail\n"
    report = take(write("excel.csv", text.encode("cp1252")))
    assert sorted(row.job for row in history.jobs()) == ["präf", "prüf"]
    assert report["notes"] == [
        "excel.csv: it is not UTF-8, what is not was read as Windows-1252",
        "excel.csv: columns that are not used: prüfer",
    ]


def test_lines_that_are_no_json_are_located_and_stop_nothing(take, write):
    good = '{"commit": "c%d", "time": 1577836800, "job": "a", "status": "success"}\n'
    report = take(write("bad.jsonl", good % 1 + "not json\n" + "[1]\n" + good % 2 + '{"commit": "c3", "job": "a"}\n'))
    assert report["added"] == 2
    assert [rejected["line"] for rejected in report["rejected"]] == [2, 3, 5]


def test_strict_stops_at_the_first_bad_row(history, take, write):
    bad = LONG + "c3,2020-01-02T10:00:00Z,unit,purple,1,1,push,9,1\n"
    with pytest.raises(IngestError, match=r"jobs.csv:7: status purple is unknown"):
        take(write("jobs.csv", bad), strict=True)
    assert history.jobs() == []


TIMES = {
    "2020-01-01T10:00:00Z": 1577872800.0,
    "2020-01-01T10:00:00.25Z": 1577872800.25,
    "2020-01-01T12:00:00+02:00": 1577872800.0,
    "2020-01-01 05:00:00-0500": 1577872800.0,
    "2020-01-01 10:00:00": 1577872800.0,
    "2020-01-01T10:00": 1577872800.0,
    "2020-01-01 10:00:00 UTC": 1577872800.0,
    "2020-01-01 11:00:00 Europe/Berlin": 1577872800.0,
    "1577872800": 1577872800.0,
    "1577872800.5": 1577872800.5,
    "1577872800000": 1577872800.0,
    "1577872800000000": 1577872800.0,
    "1577872800000000000": 1577872800.0,
    "20200101T100000": 1577872800.0,
    "Wed Jan 01 10:00:00 2020": 1577872800.0,
    "2020/01/01 10:00:00": 1577872800.0,
    "2020-01-01": 1577836800.0,
}


@pytest.mark.parametrize("text", TIMES)
def test_times_are_read_as_people_write_them(history, take, write, text):
    assert take(write("t.csv", f"commit,time,job,status\nc,{text},a,pass\n"))["rejected"] == []
    assert [row.started for row in history.jobs()] == [TIMES[text]]


def test_times_of_several_kinds_in_one_column_are_read(history, take, write):
    take(write("t.csv", "commit,time,job,status\n" + "".join(f"c{i},{text},a,pass\n" for i, text in enumerate(TIMES))))
    assert [row.started for row in sorted(history.jobs(), key=lambda row: int(row.commit[1:]))] == list(TIMES.values())


def test_times_without_a_zone_are_utc_and_that_is_said(take, write):
    report = take(
        write("t.csv", "commit,time,job,status\nc1,2020-01-01 10:00:00,a,pass\nc2,2020-01-01 10:00:00Z,a,pass\n")
    )
    assert report["notes"] == ["t.csv: times without a zone were read as UTC"]


def test_times_without_a_zone_are_in_the_zone_that_was_said(history, take, write):
    text = (
        "commit,time,job,status\nc1,2020-07-01 12:00:00,a,pass\nc2,2020-07-01 10:00:00Z,a,pass\nc3,1593597600,a,pass\n"
    )
    report = take(write("t.csv", text), zone="Europe/Berlin")
    assert report["notes"] == []
    assert {row.started for row in history.jobs()} == {1593597600.0}


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-07-21 09:30:00 PM", "2026-07-21T21:30:00"),
        ("2026-07-21 12:05 AM", "2026-07-21T00:05:00"),
        ("2026-01-21 09:30:00 CET", "2026-01-21T08:30:00"),
        ("2026-07-21 09:30:00 CEST", "2026-07-21T07:30:00"),
        ("2026-07-21 09:30:00 BST", "2026-07-21T08:30:00"),
        ("2026-07-21 09:30:00 +0200", "2026-07-21T07:30:00"),  # git log %ci
        ("2026-07-21 09:30:00.5 +0200 CEST", "2026-07-21T07:30:00.500000"),  # Go
        ("2026-07-21T09:30:00+02:00[Europe/Berlin]", "2026-07-21T07:30:00"),  # Java
        ("20260721T093000Z", "2026-07-21T09:30:00"),
        ("2026-07-21t09:30:00z", "2026-07-21T09:30:00"),
        ("2026-07-21 09:30:00,5", "2026-07-21T09:30:00.500000"),  # Python's logging
        ("21.07.2026 09:30", "2026-07-21T09:30:00"),
        ("2026-07-21 09:30:00 XYZ", None),
        ("2026-07-21 09:30:00 later", None),
    ],
)
def test_what_stands_behind_a_time_is_read_or_the_row_rejected(history, take, write, text, time):
    rows = ["a;2026-07-01T00:00:00Z", "b;Sat Nov 21 09:30:00 2026", f"c;{text}"]
    table = "".join(f"{row};u;success\n" for row in rows)
    report = take(write("t.csv", f"commit;time;job;status\n{table}"))
    found = [row.started for row in history.jobs() if row.commit == "c"]
    assert found == ([datetime.fromisoformat(time + "+00:00").timestamp()] if time else [])
    assert len(report["rejected"]) == (0 if time else 1)


def test_a_zone_that_is_none_is_an_error(take, write):
    with pytest.raises(HistoryError, match="no time zone"):
        take(write("jobs.csv", LONG), zone="Mars/Olympus")


def test_what_exports_write_for_nothing_is_nothing(history, take, write):
    text = (
        "commit,time,job,status,branch,duration_s\nc1,2020-01-01,a,pass,nan,NaN\n"
        "c2,2020-01-01,a,pass,None,\nc3,NaT,a,pass,N/A,null\n"
    )
    assert take(write("p.csv", text))["rejected"] == []
    assert {row.branch for row in history.jobs()} == {""}
    assert {row.completed for row in history.jobs()} == {None}


def test_tests_are_told_from_jobs(history, take, write):
    text = (
        "run,job,test,status,duration,time\n1,gpu,t.py::a,passed,0.5,2020-01-01T10:00:00Z\n"
        "1,gpu,t.py::a,failed,0.7,2020-01-01T10:00:01Z\n"
    )
    assert take(write("tests.csv", text))["tables"] == {"tests": 2}
    assert [(row.node_id, row.job, row.attempt, row.outcome, row.seconds, row.kind) for row in history.tests()] == [
        ("t.py::a", "gpu", 1, "passed", 0.5, "case"), ("t.py::a", "gpu", 2, "failed", 0.7, "case"),
    ]  # fmt: skip
    assert take(write("again.csv", text))["added"] == 0


@pytest.mark.parametrize(
    ("cells", "devices"),
    [
        (("num_gpus", "4", "0", ""), [("?",) * 4, (), ()]),
        (("devices", "4", "2", ""), [("?",) * 4, ("?",) * 2, ()]),
        (("gpus", "4.0", "1", "1"), [("?",) * 4, ("?",), ("?",)]),
        (("devices", "3", "0", "1"), [("3",), ("0",), ("1",)]),
        (("devices", '"0,1"', "2", "cuda:3"), [("0", "1"), ("2",), ("cuda:3",)]),
    ],
)
def test_a_test_tells_which_devices_it_had_or_how_many(history, take, write, cells, devices):
    column, *values = cells
    rows = "".join(f"a{i},passed,{cell}\n" for i, cell in enumerate(values))
    report = take(write("tests.csv", f"test,status,{column}\n{rows}"))
    assert report["added"] == len(values)
    assert [row.devices for row in sorted(history.tests(), key=lambda row: row.node_id)] == devices
    is_guessed = column != "num_gpus" and devices[0] == ("?",) * 4
    assert any("taken for how many" in note for note in report["notes"]) == is_guessed


@pytest.mark.parametrize("cell", ["1e9", "-1", "2.5", "many"])
def test_a_number_of_devices_that_cannot_be_costs_its_row(history, take, write, cell):
    report = take(write("tests.csv", f"test,status,num_gpus\na,passed,4\nb,passed,{cell}\n"))
    assert [one["line"] for one in report["rejected"]] == [3]
    assert [row.node_id for row in history.tests()] == ["a"]


def test_a_test_that_comes_again_with_equal_cells_is_a_duplicate(take, write):
    line = "1,t.py::a,passed,0.5\n"
    report = take(write("tests.csv", "run,test,status,duration\n" + line * 3 + "1,t.py::a,failed,0.5\n"))
    assert (report["rows"], report["added"], report["duplicates"]) == (4, 2, 2)


@pytest.mark.parametrize(
    ("text", "attempts"),
    [
        # With a time of the commit, or of the day, attempts have one time.
        ("commit,time,job,status\nc,2026-01-01,a,fail\nc,2026-01-01,a,pass\nc,2026-01-01,a,pass\n", [1, 2]),
        ("commit,run,time,job,status\nc,7,2026-01-01,a,fail\nc,7,2026-01-01,a,pass\n", [1, 2]),
        # That it waited is the same attempt as its end.
        ("commit,run,time,job,status\nc,7,2026-01-01,a,queued\nc,7,2026-01-01,a,pass\n", [1]),
        ("commit,run,time,job,shard,status\nc,7,2026-01-01,a,1/2,fail\nc,7,2026-01-01,a,2/2,pass\n", [1, 1]),
    ],
)
def test_jobs_that_nobody_counted_are_all_kept(history, take, write, text, attempts):
    take(write("jobs.csv", text))
    assert take(write("again.csv", text))["added"] == 0
    assert sorted(row.attempt for row in history.jobs()) == attempts


def test_a_measure_of_a_commit_is_no_commit(history, take, write):
    take(write("m.csv", "commit,job,job_id,subject,name,value,unit\nc,build,7,Run tests,step_seconds,3,s\n"))
    assert [(row.commit, row.job_id, row.subject, row.name, row.value) for row in history.measures()] == [
        ("c", "7", "Run tests", "step_seconds", 3.0)
    ]
    assert history.commits() == []


def test_a_column_that_measures_have_no_place_for_is_told_of(history, take, write):
    report = take(write("m.csv", "commit,branch,metric,value,unit\nc,main,speed,3,s\n"))
    assert report["notes"] == ["m.csv: columns that are not used: branch"]
    assert [(row.commit, row.name, row.value) for row in history.measures()] == [("c", "speed", 3.0)]


def test_a_table_of_average_test_times_is_a_summary(history, take, write):
    text = "date,commit,build_env,config,test_file,seconds\n2026-01-11,c1,linux-cuda,distributed,test_fsdp,32.5\n"
    take(write("times.csv", text))
    (row,) = history.tests()
    assert (row.unit, row.variant, row.kind, row.seconds) == ("test_fsdp", "linux-cuda / distributed", "summary", 32.5)
    assert history.durations() == {("test_fsdp", "linux-cuda / distributed"): 32.5}


def test_a_table_of_changed_files_becomes_commits(history, take, write):
    text = "commit,parent,commit_time,file\nb,a,1577872800,x.py\nb,a,1577872800,y.py\na,,1577872700,x.py\n"
    assert take(write("files.csv", text))["tables"] == {"commits": 2}
    assert [(row.sha, row.parents, row.time, row.files) for row in history.commits()] == [
        ("a", (), 1577872700.0, ("x.py",)), ("b", ("a",), 1577872800.0, ("x.py", "y.py")),
    ]  # fmt: skip


def test_a_commit_that_is_told_better_later_is_kept_better(history, take, write):
    take(write("files.csv", "commit,parent,commit_time,file\nb,a,1577872800,x.py\n"))
    full = "commit,parent,commit_time,message,file\nb,a,1577872800,Fix it,x.py\n"
    assert take(write("full.csv", full))["added"] == 1
    assert take(write("again.csv", full))["added"] == 0
    assert [row.message for row in history.commits()] == ["Fix it"]


def test_numbers_in_columns_become_measures(history, take, write):
    text = "date,commit,build_env,config,n_files,total_seconds,max_file\n2026-02-22,c,rocm,distributed,244,20844.5,x\n"
    take(write("totals.csv", text))
    told = {row.name: (row.job, row.value, row.unit, row.at) for row in history.measures()}
    assert told == {
        "n_files": ("rocm / distributed", 244.0, "", 1771718400.0),
        "total_seconds": ("rocm / distributed", 20844.5, "s", 1771718400.0),
    }


def test_named_numbers_are_measures(history, take, write):
    take(write("m.csv", "run,job,name,value,unit,time\n1,build,sccache.hits,12,,2026-01-01T00:00:00Z\n"))
    assert [(row.run, row.job, row.name, row.value) for row in history.measures()] == [
        ("1", "build", "sccache.hits", 12.0)
    ]


def test_a_table_of_runner_pools_is_dated_by_its_name(history, take, write):
    take(
        write(
            "load_2026-03-18.csv",
            "section,runner_label,jobs_30d,peak_concurrent\nOld,linux.gpu,120,7\nNew,linux.gpu,3,1\n",
        )
    )
    rows = history.runners()
    assert {(row.label, row.note, row.jobs, row.peak, row.window_days, row.at) for row in rows} == {
        ("linux.gpu", "Old", 120, 7, 30.0, 1773792000.0), ("linux.gpu", "New", 3, 1, 30.0, 1773792000.0),
    }  # fmt: skip


def test_shards_are_found_in_names(history, take, write):
    names = [
        "test (default, 2, 5, linux.gpu)",
        "unit [3/4]",
        "shard 1 of 2",
        "it-shard-1-of-3",
        "plain",
        "py (3.10)",
        "x (11)",
    ]
    rows = "".join(f'c,2020-01-01,"{name}",pass\n' for name in names)
    take(write("s.csv", "commit,time,job,status\n" + rows))
    shards = {row.job: row.shard for row in history.jobs()}
    assert [shards[name] for name in names] == ["2/5", "3/4", "1/2", "1/3", "", "", ""]


def test_jobs_of_one_name_that_start_at_once_in_two_workflows_or_shards_are_two(take, write):
    rows = [f"c,2020-01-01,build,pass,{workflow},{shard}" for workflow in ("ci", "nightly", "") for shard in (1, 2)]
    path = write("w.csv", "\n".join(["commit,time,job,status,workflow,shard", *rows, ""]))
    assert take(path)["added"] == 6
    assert take(path)["duplicates"] == 6


def test_github_columns_prefer_the_conclusion(history, take, write):
    text = (
        "run_id,name,status,conclusion,startedAt\n1,a,completed,failure,2020-01-01T00:00:00Z\n"
        "2,a,in_progress,,2020-01-01T00:00:00Z\n"
    )
    take(write("gh.csv", text))
    assert [row.outcome for row in sorted(history.jobs(), key=lambda row: row.run)] == ["failed", "running"]


def test_constants_fill_what_rows_do_not_tell(history, take, write):
    take(write("jobs.csv", LONG), constants={"repository": "apache/ozone", "event": "other"})
    assert {row.repository for row in history.jobs()} == {"apache/ozone"}
    assert {row.event for row in history.jobs()} == {"push", "schedule"}


def test_a_constant_that_makes_no_sense_is_an_error(take, write):
    with pytest.raises(HistoryError, match="--set outcome"):
        take(write("jobs.csv", LONG), constants={"outcome": "passed"})


def test_an_unknown_format_is_an_error(take, write):
    with pytest.raises(HistoryError, match="the formats are junit"):
        take(write("jobs.csv", LONG), format="excel")


@pytest.mark.parametrize("name", ["a,b\n", "", "\n\n"])
def test_a_table_without_rows_adds_nothing(take, write, name):
    assert take(write("empty.csv", name))["added"] == 0


def test_names_that_differ_in_case_are_two_columns(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Job,job,,status\nx,y,z,pass\n")
    assert list(table_source(path, "csv").columns) == ["Job", "job_2", "column_3", "status"]


@pytest.mark.parametrize("kind", ["timestamp_ns", "timestamp_ms", "timestamp_s", "timestamptz", "date"])
def test_a_parquet_file_may_keep_its_times_in_any_type(history, take, tmp_path, kind):
    duckdb.execute("set timezone = 'UTC'")
    duckdb.execute(
        f"copy (select 'a' as job, 'pass' as status, 'c' as commit, '2020-01-01 00:00:00'::{kind} as time)"
        f" to '{tmp_path}/jobs.parquet'"
    )
    assert take(tmp_path / "jobs.parquet")["added"] == 1
    assert [row.started for row in history.jobs()] == [1577836800.0]


def test_a_number_that_is_none_is_no_time_in_a_parquet_file(history, take, tmp_path):
    duckdb.execute(
        "copy (select 'a' as job, 'pass' as status, 'c' as commit, 1577836800.0::double as started,"
        f" 'nan'::double as completed) to '{tmp_path}/jobs.parquet'"
    )
    assert take(tmp_path / "jobs.parquet")["rejected"] == []
    assert [(row.started, row.completed) for row in history.jobs()] == [(1577836800.0, None)]


def test_labels_in_a_list_of_a_parquet_file_are_joined_by_commas(history, take, tmp_path):
    duckdb.execute(
        "copy (select 'a' as job, 'pass' as status, 'c' as commit, 1577836800 as time, ['gpu', 'linux'] as labels)"
        f" to '{tmp_path}/jobs.parquet'"
    )
    take(tmp_path / "jobs.parquet")
    assert [row.runner for row in history.jobs()] == ["gpu,linux"]


def test_a_broken_parquet_file_is_rejected_and_stops_nothing(take, write):
    report = take(write("x.parquet", b"PAR1nonsensePAR1"), write("jobs.csv", LONG))
    assert report["added"] == 5
    assert report["rejected"][0]["path"].endswith("x.parquet")


def test_no_number_of_bad_rows_is_lost(take, write):
    rows = "".join(f"c{i},2020-01-01,a,{random.choice(['pass', 'purple'])}\n" for i in range(30_000))
    report = take(write("many.csv", "commit,time,job,status\n" + rows))
    assert report["rows"] == 30_000
    assert report["rejected_count"] == rows.count("purple")
    assert len(report["rejected"]) == min(10_000, rows.count("purple"))


def test_messages_get_the_same_digest_in_sql_and_in_python(history, take, write):
    messages = ["assert 3 == 4", "CUDA error at 0x7fffdeadbeef", "  port 8080 \t in use ", "deadbeef1 x", "1.5 s", "ok"]
    rows = "".join(f'1,t{i},failed,"{message}"\n' for i, message in enumerate(messages))
    take(write("t.csv", "run,test,status,message\n" + rows))
    digests = {row.node_id: row.message_digest for row in history.tests()}
    assert [digests[f"t{i}"] for i in range(len(messages))] == [digest_of(message.strip()) for message in messages]


@pytest.mark.parametrize(
    "time",
    ["99999-01-01", "0044-03-15 (BC)", "1e30", "1e300", "999999999999999999999", "infinity", "9999-12-31T00:00:00Z"],
)
def test_a_time_that_no_calendar_has_costs_its_row_and_no_other(history, take, write, time):
    report = take(write("jobs.csv", LONG + f"c3,{time},unit,pass,3,1,push,9,1\n"))
    assert (report["added"], len(report["rejected"])) == (5, 1)
    assert report["rejected"][0]["line"] == 7
    assert report["rejected"][0]["reason"] == f"time: {time} is no time"
    assert len(history.jobs()) == 5


@pytest.mark.parametrize("duration", ["1e308", "1e18", "9e9"])
def test_a_duration_that_cannot_be_costs_its_row_and_no_other(take, write, duration):
    report = take(write("jobs.csv", LONG + f"c3,2020-01-03,unit,pass,{duration},1,push,9,1\n"))
    assert (report["added"], len(report["rejected"])) == (5, 1)
    assert report["rejected"][0]["reason"] == f"duration_s: {duration} is no duration in seconds"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_what_go_programs_write_for_no_time_is_none(history, take, write, kind):
    text = "commit,started,completed,job,status\nc1,2020-01-01T10:00:00Z,0001-01-01T00:00:00Z,unit,running\n"
    source = write("jobs.csv", text)
    duckdb.execute(f"copy (from read_csv('{source}')) to '{source.parent}/jobs.parquet'")
    assert take(source.parent / f"jobs.{kind}")["rejected"] == []
    assert [(row.started, row.completed) for row in history.jobs()] == [(1577872800.0, None)]


@pytest.mark.parametrize("kind", ["timestamp", "timestamptz", "date"])
def test_a_time_of_a_parquet_file_that_no_calendar_has_costs_its_row_alone(take, tmp_path, kind):
    duckdb.execute(f"create or replace temp table rows (sha text, started {kind}, job text, status text)")
    for time in ("infinity", "99999-01-01", "2020-01-01"):
        duckdb.execute("insert into rows values ($1, $1, 'j', 'passed')", [time])
    duckdb.execute(f"copy rows to '{tmp_path}/jobs.parquet'")
    report = take(tmp_path / "jobs.parquet")
    assert (report["added"], [each["line"] for each in report["rejected"]]) == (1, [1, 2])


def test_texts_in_square_brackets_are_texts_unless_they_are_a_list(history, take, write):
    head = "commit,time,job,status,labels,branch\n"
    report = take(write("jobs.csv", head + 'c1,2020-01-01,[ci all],pass,"[self-hosted, linux]",[x] y [z]\n'))
    assert (report["added"], report["rejected"]) == (1, [])
    take(write("more.csv", head + 'c2,2020-01-01,unit,pass,"[""self-hosted"", ""linux""]",main\n'))
    found = {row.commit: (row.job, row.runner, row.branch) for row in history.jobs()}
    assert found == {
        "c1": ("[ci all]", "[self-hosted, linux]", "[x] y [z]"),
        "c2": ("unit", "self-hosted,linux", "main"),
    }
    report = take(write("commits.csv", "sha,time,message,files\nc1,2020-01-01,[ROCm] fix [skip ci],[id].tsx\n"))
    assert (report["added"], report["rejected"]) == (1, [])
    assert [(row.message, row.files) for row in history.commits()] == [("[ROCm] fix [skip ci]", ("[id].tsx",))]


ODD_LINES = r"""{"commit": "c1", "time": "2020-01-01", "job": "ok", "status": "pass", "duration_s": 5}
{"commit": "c1", "time": "2020-01-01", "job": "half \ud83d", "status": "pass"}
{"commit": "c1", "time": "2020-01-01", "job": "no number", "status": "pass", "duration_s": NaN}
{"commit": "c1", "time": "2020-01-01", "job": "endless", "status": "pass", "duration_s": 1e999}
{"commit": "c1", "time": "2020-01-01", "job": "zero \u0000", "status": "pass"}
[[[[
"""


def test_lines_of_json_that_no_database_takes_cost_no_other_line(history, take, write):
    report = take(write("jobs.jsonl", ODD_LINES))
    assert sorted((one["line"], one["reason"][:20]) for one in report["rejected"]) == [
        (4, "duration_s: Infinity"),
        (6, "no JSON object"),
    ]
    assert sorted(row.job for row in history.jobs()) == ["half ?", "no number", "ok", "zero \0"]


def test_a_list_of_json_with_half_a_character_is_read(history, take, write):
    text = r'[{"commit": "c1", "time": "2020-01-01", "job": "half \ud83d", "status": "pass", "duration_s": NaN}]'
    assert take(write("jobs.json", text))["added"] == 1
    assert [row.job for row in history.jobs()] == ["half ?"]


def test_a_number_that_no_column_can_hold_is_rejected_not_forgotten(history, take, write):
    text = "commit,time,job,status,attempt\nc1,2020-01-01,a,pass,100000000000000000000\nc1,2020-01-01,b,pass,3\n"
    report = take(write("jobs.csv", text))
    assert [(one["line"], one["reason"]) for one in report["rejected"]] == [
        (2, "attempt: 100000000000000000000 is no whole number")
    ]
    assert [row.attempt for row in history.jobs()] == [3]
