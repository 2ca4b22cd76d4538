"""The store: rows go in once, come out typed, and whoever dies leaves nothing half."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rows_by_hand import AT, files, job, unit

from sooner.history import History, HistoryError, HistoryOutcome, MeasureRow, RunRow, TestRow, Where, database
from sooner.history.files import LocalFolder, RemoteFolder
from sooner.history.statements import sql
from sooner.history.tables import SCHEMA, TABLES


def test_a_row_comes_back_as_it_went_in(history):
    row = TestRow(
        repository="o/n", run="7", job="gpu", unit="attention", node_id="t.py::test_a[x|y]", variant="A=1", attempt=2,
        kind="case", outcome=HistoryOutcome.TIMED_OUT, seconds=1.25, started=AT + 0.123456,
        devices=("cuda:0", "cuda:1"),
        peak_memory_mib=512.5, worker="gw0", message='no "end" after 5 s\tü', message_digest="ab", exit_code=-9,
        signal=9,
        commit="c0ffee", branch="main", source="sooner:out", as_of=AT + 2,
    )  # fmt: skip
    history.add_tests([row])
    assert history.tests() == [row]


def test_the_same_rows_again_add_nothing(history, root):
    rows = [unit(f"u{i}", started=AT + i) for i in range(20)]
    assert (history.add_tests(rows).added, history.add_tests(rows).added) == (20, 0)
    assert len(files(root)) == 1


def test_rows_that_overlap_add_what_is_new(history):
    rows = [unit(f"u{i}", started=AT) for i in range(20)]
    history.add_tests(rows[:12])
    added = history.add_tests(rows[8:])
    assert (added.rows, added.added, added.duplicates) == (12, 8, 4)
    assert len(history.tests()) == 20


def test_a_row_twice_in_one_batch_counts_once(history):
    added = history.add_tests([unit(started=AT), unit(started=AT)])
    assert (added.added, added.duplicates) == (1, 1)


def test_all_attempts_are_kept(history):
    history.add_tests([unit(outcome=HistoryOutcome.FAILED, attempt=1), unit(outcome=HistoryOutcome.PASSED, attempt=2)])
    assert [row.outcome for row in history.tests()] == ["failed", "passed"]


def test_what_still_ran_is_replaced_by_its_end_and_never_the_other_way_round(history):
    running = job(outcome=HistoryOutcome.RUNNING, created=AT, as_of=AT)
    history.add_jobs([running])
    history.add_jobs([replace(running, as_of=AT + 5, created=AT)])
    ended = replace(running, outcome=HistoryOutcome.FAILED, completed=AT + 60, as_of=AT + 60)
    assert history.add_jobs([ended]).added == 1
    assert history.add_jobs([replace(running, as_of=AT + 99)]).added == 0
    assert [row.outcome for row in history.jobs()] == ["failed"]


def test_of_two_records_of_a_running_job_the_newer_counts(history):
    running = job(job_id="5", outcome=HistoryOutcome.RUNNING, created=AT, as_of=AT)
    assert history.add_jobs([running]).added == 1
    assert history.add_jobs([replace(running, started=AT + 3, as_of=AT + 3)]).added == 1
    assert [row.started for row in history.jobs()] == [AT + 3]


def test_outcomes_stay_apart(history):
    history.add_tests([unit(outcome, outcome=outcome) for outcome in HistoryOutcome])
    assert {row.unit: row.outcome for row in history.tests()} == {str(o): o for o in HistoryOutcome}


def test_files_are_partitioned_by_table_and_day(history, root):
    history.add_tests([unit(started=AT), unit("v", started=AT + 86_400 * 3)])
    (path,) = files(root)
    table, day, name = path.relative_to(root / f"v{SCHEMA}").parts
    assert (table, day) == ("tests", "day=2025-06-15")
    assert name.startswith("20250618-")


def test_any_reader_of_parquet_sees_the_version(history, root):
    history.add_jobs([job(created=AT)])
    rows = duckdb.execute("select key, value from parquet_kv_metadata(?)", [str(files(root)[0])]).fetchall()
    assert (b"sooner_schema", str(SCHEMA).encode()) in rows
    assert (b"sooner_table", b"jobs") in rows


def test_a_reader_needs_no_history(root):
    with History(root / "nothing") as history:
        assert history.jobs() == []
        assert history.durations() == {}
        assert history.info()["tests"].rows == 0
    assert not root.exists()


def test_a_time_selects_rows(history):
    history.add_tests([unit(f"u{i}", started=AT + 86_400 * i) for i in range(5)])
    where = Where(since=AT + 86_400, until=AT + 86_400 * 3)
    assert [row.unit for row in history.tests(where)] == ["u1", "u2"]


def test_repository_branch_and_workflow_select_rows(history):
    history.add_jobs([job(run=str(i), repository=f"o/{i % 2}", branch=f"b{i % 3}", created=AT + i) for i in range(6)])
    assert [row.run for row in history.jobs(Where(repository="o/1", branch="b2"))] == ["5"]
    with pytest.raises(HistoryError, match="no workflow"):
        history.tests(Where(workflow="x"))


def test_columns_are_numbers_and_coded_texts(history):
    history.add_jobs([job("b", "1", started=AT, completed=AT + 9), job("a", "2", started=AT + 1, branch="main")])
    columns = history.columns("jobs", ["job", "branch", "started", "completed", "attempt"])
    assert columns.text("job").names == ["a", "b"]
    assert columns.text("job").codes.tolist() == [1, 0]
    assert columns.text("branch").codes.tolist() == [-1, 0]
    assert columns.number("started").tolist() == [AT, AT + 1]
    assert np.isnan(columns.number("completed")).tolist() == [False, True]
    assert len(columns) == 2


def test_an_empty_text_is_one_that_nobody_told_also_in_arrays(history):
    batch = {name: np.array(values, dtype=object) for name, values in {
        "run": ["", "2"], "unit": ["u", "v"], "outcome": ["passed", "failed"], "branch": ["", "main"],
    }.items()}  # fmt: skip
    history.add_tests(batch | {"started": np.array([AT, AT + 1])})
    columns = history.columns("tests", ["run", "branch"])
    assert columns.text("run").names == ["2"]
    assert columns.text("branch").codes.tolist() == [-1, 0]


def test_a_column_that_is_not_there_is_named(history):
    with pytest.raises(HistoryError, match="there is no column 'shoe'"):
        history.columns("jobs", ["shoe"])


def test_columns_go_in_as_numpy_arrays(history):
    batch = {
        "run": np.array(["1", "2"], dtype=object),
        "unit": np.array(["u", "v"], dtype=object),
        "outcome": np.array(["passed", "failed"], dtype=object),
        "seconds": np.array([1.5, 2.5]),
        "started": np.array([AT, AT + 1]),
    }
    assert history.add_tests(batch).added == 2
    assert [(row.unit, row.outcome, row.seconds, row.attempt) for row in history.tests()] == [
        ("u", "passed", 1.5, 1), ("v", "failed", 2.5, 1),
    ]  # fmt: skip
    assert history.add_tests(batch).added == 0


@pytest.mark.parametrize(
    ("batch", "problem"),
    [
        ({"unit": ["u"]}, "need a column 'outcome'"),
        ({"unit": ["u"], "outcome": ["passed"], "colour": ["red"]}, "no column 'colour'"),
        ({"unit": ["u"], "outcome": ["green"]}, "'green' is no outcome"),
    ],
)
def test_columns_that_are_not_the_tables_are_refused(history, batch, problem):
    with pytest.raises(HistoryError, match=problem):
        history.add_tests({name: np.array(values, dtype=object) for name, values in batch.items()})


def test_text_that_is_no_utf_8_is_kept_readable(history):
    history.add_tests([unit("bad\udcff", started=AT)])
    assert [row.unit for row in history.tests()] == ["bad\\udcff"]


def test_a_folder_with_a_name_like_a_pattern_is_read(tmp_path):
    with History(tmp_path / "h[1]*?") as history:
        history.add_tests([unit(started=AT)])
        history.add_tests([unit("v", started=AT)])
        assert len(history.tests()) == 2


def test_a_file_url_is_a_folder(tmp_path):
    with History(f"file://{tmp_path}/h%20x") as history:
        history.add_tests([unit(started=AT)])
    assert files(tmp_path / "h x")


def test_a_history_without_a_name_is_not_the_current_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HistoryError, match="has no name"), History(""):
        pass
    assert not list(tmp_path.iterdir())


def test_a_file_is_no_history(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(HistoryError, match="is no folder"):
        History(tmp_path / "file")


def test_an_object_store_that_cannot_be_reached_is_an_error_with_a_way_out(monkeypatch):
    monkeypatch.setattr(database, "sql", _no_extension)
    with pytest.raises(HistoryError, match=r"extension httpfs cannot be loaded .*: run `INSTALL httpfs` once"):
        History("s3://bucket/history")


def _no_extension(topic, statement, /, **places):
    """No test downloads anything."""
    return "load 'nothing/like/it'" if statement in ("load", "install") else sql(topic, statement, **places)


def test_what_works_on_a_disk_works_through_duckdb_alone(tmp_path, history):
    """An object store is written and listed by DuckDB: here the same statements meet a folder."""
    remote = RemoteFolder(str(tmp_path / "bucket"), history.database)
    (tmp_path / "bucket/v1/tests/day=2025-06-15").mkdir(parents=True)
    history.folder = remote
    assert (history.add_tests([unit(started=AT)]).added, history.add_tests([unit(started=AT)]).added) == (1, 0)
    assert [row.unit for row in history.tests()] == ["u"]
    assert history.info()["tests"].bytes is None
    with pytest.raises(HistoryError, match="cannot be removed"):
        remote.remove([])


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with History(tmp_path / "file2") as history:
        history.folder = LocalFolder.__new__(LocalFolder)
        history.folder.root = tmp_path / "file" / "below"
        with pytest.raises(HistoryError, match="cannot write"):
            history.add_tests([unit()])


def test_an_old_version_is_read_and_counts_once(root, history):
    """Version 0: times in seconds, no keys. Its rows are what the same rows of this version would be."""
    folder = root / "v0" / "tests" / "day=2025-06-15"
    folder.mkdir(parents=True)
    duckdb.execute(
        f"""copy (select 'o/n' as repository, '7' as run, 'u' as unit, null::varchar as test, 'A=1' as variant,
        1 as attempt, 'passed' as outcome, 2.5::double as duration_s, {AT}::double as started_at,
        'cuda:0,cuda:1' as devices, null::varchar as message, 'old' as source)
        to '{folder}/20250615-old.parquet' (format parquet)"""
    )
    old = history.tests()
    assert [(row.unit, row.variant, row.seconds, row.started, row.devices) for row in old] == [
        ("u", "A=1", 2.5, AT, ("cuda:0", "cuda:1"))
    ]
    assert history.add_tests([unit(run="7", repository="o/n", variant="A=1", started=AT)]).added == 0
    assert history.add_tests([unit("v", started=AT)]).added == 1
    assert len(history.tests()) == 2
    assert history.durations() == {("u", "A=1"): 2.5}


def test_an_old_version_of_jobs_is_read(root, history):
    folder = root / "v0" / "jobs" / "day=2025-06-15"
    folder.mkdir(parents=True)
    duckdb.execute(
        f"""copy (select 'o/n' as repository, 'trunk' as workflow, '7' as run, 1 as attempt, 'build' as job,
        'c' as "commit", 'main' as branch, null::bigint as pull_request, 'push' as event, {AT}::double as created_at,
        {AT + 1}::double as started_at, {AT + 2}::double as completed_at, 'linux.gpu' as label, 'failed' as outcome,
        'old' as source) to '{folder}/20250615-old.parquet' (format parquet)"""
    )
    (row,) = history.jobs()
    assert (row.job, row.created, row.started, row.completed, row.runner) == ("build", AT, AT + 1, AT + 2, "linux.gpu")


def test_a_newer_version_is_refused(root, history):
    (root / "v99").mkdir(parents=True)
    with pytest.raises(HistoryError, match="newer sooner"):
        history.jobs()


def test_two_writers_that_do_not_see_each_other_add_a_record_once(root, history):
    """Each deduplicates against what it saw when it began: readers sort out what both have written."""
    history.add_tests([unit("a", started=AT), unit("b", started=AT)])
    hidden = root / "hidden"
    (root / "v1").rename(hidden)
    history.add_tests([unit("b", started=AT), unit("c", started=AT)])
    for path in files(hidden):
        target = root / "v1" / path.relative_to(hidden)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
    with History(root) as reader:
        assert sorted(row.unit for row in reader.tests()) == ["a", "b", "c"]
        assert reader.info()["tests"].rows == 3
        assert reader.add_tests([unit("b", started=AT)]).added == 0


def test_a_killed_writer_leaves_nothing_visible(root):
    """Stopped just before the rename, at the latest moment at which anything can be half."""
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from sooner.history import History, TestRow\n"
        "from sooner.history.files import LocalFolder\n"
        "def publish(self, staged, table, name):\n"
        "    print(staged, flush=True)\n"
        "    time.sleep(60)\n"
        "LocalFolder.publish = publish\n"
        f"History({str(root)!r}).add_tests([TestRow(unit='u', outcome='passed')])\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline().strip().endswith(".parquet")
        os.kill(writer.pid, signal.SIGKILL)
    with History(root) as reader:
        assert reader.tests() == []
        assert reader.add_tests([unit("v", started=AT)]).added == 1
        assert [row.unit for row in reader.tests()] == ["v"]


def test_staging_of_dead_writers_is_removed_after_a_day(history, root):
    history.add_tests([unit(started=AT)])
    dead, alive = root / ".staging" / "1-dead", root / ".staging" / "2-alive"
    for folder in (dead, alive):
        folder.mkdir()
        (folder / "x.parquet").write_text("")
    for path in (dead / "x.parquet", dead):
        os.utime(path, (time.time() - 100_000,) * 2)
    history.add_tests([unit("v", started=AT)])
    assert alive.exists()
    assert not dead.exists()


def test_a_history_is_ignored_by_version_control(history, root):
    history.add_tests([unit(started=AT)])
    assert (root / ".gitignore").read_text() == "*\n"


def test_what_its_run_tells_is_told_of_a_job(history):
    history.add_jobs([job(run="9", job_id="1", created=AT + 5)])
    history.add_runs(
        [
            RunRow(
                run="9",
                outcome=HistoryOutcome.PASSED,
                created=AT,
                event="push",
                commit="c",
                branch="main",
                workflow="w",
            )
        ]
    )
    (row,) = history.jobs()
    assert (row.run_created, row.event, row.commit, row.branch, row.workflow) == (AT, "push", "c", "main", "w")


@pytest.mark.parametrize(("started", "outcome"), [(None, "not_run"), (AT + 5, "infrastructure")])
def test_a_job_that_seems_to_run_although_its_run_has_ended_does_not(history, started, outcome):
    history.add_jobs([job(run="9", outcome=HistoryOutcome.RUNNING, created=AT, started=started)])
    history.add_runs([RunRow(run="9", outcome=HistoryOutcome.FAILED, created=AT)])
    assert [row.outcome for row in history.jobs()] == [outcome]


def test_commits_are_in_topological_order_whatever_their_clocks_say(history):
    history.add_jobs(
        [
            job(run="1", commit="a", created=AT + 10),
            job(run="2", commit="b", parent="a", created=AT + 5),
            job(run="3", commit="c", parent="b", created=AT + 20),
            job(run="4", commit="alone", created=AT + 15),
        ]
    )
    order = history.commit_order()
    assert order.index("a") < order.index("b") < order.index("c")
    assert order == ["a", "b", "alone", "c"]


def test_the_changes_of_commits_are_columns(history, write, take):
    take(
        write(
            "files.csv",
            "commit,parent,commit_time,file\nb,a,1750000001,x.py\nb,a,1750000001,y.py\na,,1750000000,x.py\n",
        )
    )
    changes = history.columns("changes", ["commit", "file"])
    names = changes.text("commit").names, changes.text("file").names
    pairs = [
        (names[0][c], names[1][f])
        for c, f in zip(changes.text("commit").codes, changes.text("file").codes, strict=True)
    ]
    assert sorted(pairs) == [("a", "x.py"), ("b", "x.py"), ("b", "y.py")]


def test_measures_have_a_name_and_a_value(history):
    row = MeasureRow(run="1", job="build", name="sccache.cache_hits", value=0.75, unit="ratio", at=AT)
    history.add_measures([row])
    assert history.measures() == [row]


OUTCOMES = st.sampled_from(list(HistoryOutcome))
ROWS = st.builds(
    TestRow,
    run=st.sampled_from(["1", "2"]),
    unit=st.sampled_from(["u", "v", "w"]),
    variant=st.sampled_from(["", "A=1"]),
    attempt=st.integers(1, 2),
    outcome=OUTCOMES,
    as_of=st.integers(0, 3).map(lambda i: AT + i),
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(st.lists(ROWS, max_size=6), min_size=1, max_size=4))
def test_whatever_is_added_each_thing_has_one_record_and_a_settled_one_if_there_was_any(batches, tmp_path_factory):
    unsettled = {HistoryOutcome.RUNNING, HistoryOutcome.NOT_RUN}
    with History(tmp_path_factory.mktemp("h")) as history:
        for batch in batches:
            history.add_tests(batch)
        told = {}
        for row in (row for batch in batches for row in batch):
            told.setdefault((row.run, row.unit, row.variant, row.attempt), []).append(row)
        rows = {(row.run, row.unit, row.variant, row.attempt): row for row in history.tests()}
        assert len(rows) == len(history.tests())
        assert rows.keys() == told.keys()
        for key, row in rows.items():
            assert row in told[key]
            if any(other.outcome not in unsettled for other in told[key]):
                assert row.outcome not in unsettled


def test_every_column_is_documented():
    text = Path(__file__).parents[2].joinpath("docs/reference/history.md").read_text(encoding="utf-8")
    for table in TABLES.values():
        section = text.partition(f"### {table.name}\n")[2].partition("\n### ")[0]
        assert [name for name in table.columns if f"`{name}`" not in section] == []
