"""Compaction beside readers and writers, export, and jobs that go on under another name."""

import csv
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import threading

import duckdb
import pytest
from msgspec.structs import replace
from rows_by_hand import AT, files, job, unit

from sooner.history import History, HistoryError, HistoryOutcome, Where
from sooner.history import files as files_module
from sooner.history.compact import compact
from sooner.history.export import export
from sooner.history.lineage import Life, lineage, lives

DAY = 86_400.0


def fill(history, count=10):
    for i in range(count):
        history.add_tests([unit(f"u{i}", started=AT + DAY * i), unit("every", run=f"r{i}", started=AT + DAY * i)])


def test_many_files_become_few_and_no_row_changes(history, root):
    fill(history)
    before = history.tests()
    (done,) = compact(history)
    assert (done.table, done.before, done.after, done.rows) == ("tests", 10, 1, 20)
    assert len(files(root)) == 1
    assert history.tests() == before
    with History(root) as reader:
        assert reader.tests() == before
        assert reader.add_tests([unit("u3", started=AT + DAY * 3)]).added == 0


def test_compacting_again_changes_nothing(history, root):
    fill(history)
    compact(history)
    names = files(root)
    assert compact(history)[0].rows == 0
    assert files(root) == names


def test_rows_of_a_compacted_file_are_in_the_order_of_their_times(history, root):
    numbers = list(range(50))
    random.Random(1).shuffle(numbers)
    for i in numbers[:25], numbers[25:]:
        history.add_tests([unit(f"u{n}", started=AT + n) for n in i])
    compact(history)
    rows = duckdb.execute("select epoch(started) from read_parquet(?)", [str(files(root)[0])]).fetchall()
    assert [seconds for (seconds,) in rows] == sorted(AT + n for n in numbers)


def test_replaced_records_are_left_out(history, root):
    running = job(outcome=HistoryOutcome.RUNNING, created=AT, as_of=AT)
    history.add_jobs([running])
    history.add_jobs([replace(running, outcome=HistoryOutcome.PASSED, completed=AT + 9)])
    compact(history)
    assert duckdb.execute("select outcome from read_parquet(?)", [str(files(root)[0])]).fetchall() == [("passed",)]
    assert [row.outcome for row in history.jobs()] == ["passed"]


def test_large_files_are_left_alone(history, root):
    fill(history, 4)
    names = files(root)
    assert compact(history, large_bytes=10)[0].rows == 0
    assert files(root) == names


def test_a_new_file_holds_neighbours_in_time_and_grows_no_further_than_a_large_one(history, root):
    fill(history, 6)
    one = max(path.stat().st_size for path in files(root))
    compact(history, large_bytes=2 * one + 10)
    days = [
        sorted(
            int((seconds - AT) // DAY)
            for (seconds,) in duckdb.execute(
                "select distinct epoch(started) from read_parquet(?)", [str(path)]
            ).fetchall()
        )
        for path in files(root)
    ]
    assert sorted(days) == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("large_bytes", [10, 10**6])
def test_files_of_an_old_version_are_written_in_the_current_one(history, root, large_bytes):
    folder = root / "v0" / "tests" / "day=2025-06-15"
    folder.mkdir(parents=True)
    duckdb.execute(
        f"""copy (select 'o/n' as repository, '7' as run, 'u' as unit, null::varchar as test, 'A=1' as variant,
        1 as attempt, 'passed' as outcome, 2.5::double as duration_s, {AT}::double as started_at, '' as devices,
        null::varchar as message, 'old' as source) to '{folder}/20250615-old.parquet' (format parquet)"""
    )
    before = history.tests()
    compact(history, large_bytes=large_bytes)
    assert [path.relative_to(root).parts[0] for path in files(root)] == ["v1"]
    assert history.tests() == before


def test_one_compaction_at_a_time(history, root):
    fill(history, 2)
    fd = os.open(root / ".compact.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_EX)
    with pytest.raises(HistoryError, match="another process"):
        compact(history)
    os.close(fd)
    compact(history)


KILLED = """
import os, signal, sys
from sooner.history import History
from sooner.history.compact import compact
from sooner.history.files import LocalFolder
name, after = sys.argv[2], sys.argv[3] == "after"
whole = getattr(LocalFolder, name)
def dying(self, *given):
    if after:
        whole(self, *given)
    elif name == "remove":
        whole(self, list(given[0])[:3])
    os.kill(os.getpid(), signal.SIGKILL)
setattr(LocalFolder, name, dying)
compact(History(sys.argv[1]))
"""


@pytest.mark.parametrize(
    "point", [("publish", "before"), ("publish", "after"), ("remove", "before"), ("remove", "after")]
)
def test_a_compaction_that_is_killed_loses_and_doubles_nothing(history, root, point):
    fill(history)
    before = history.tests()
    done = subprocess.run([sys.executable, "-c", KILLED, str(root), *point], check=False)
    assert done.returncode == -signal.SIGKILL
    with History(root) as reader:
        assert reader.tests() == before
        assert reader.info()["tests"].rows == len(before)
        compact(reader)
        assert reader.tests() == before
    assert len(files(root)) == 1


def test_readers_and_writers_go_on_while_it_is_compacted(root):
    """A reader never sees fewer rows than were there before, nor any row twice."""
    with History(root) as history:
        fill(history, 5)
    stop, problems = threading.Event(), []

    def read():
        with History(root) as reader:
            least = 0
            while not stop.is_set():
                rows = reader.tests()
                keys = {(row.run, row.unit) for row in rows}
                if len(keys) < least or len(keys) != len(rows):
                    problems.append((len(keys), least, len(rows)))
                least = len(keys)

    reader = threading.Thread(target=read)
    reader.start()
    with History(root) as writer:
        for i in range(12):
            writer.add_tests([unit(f"new{i}", started=AT + i)])
            if i % 3 == 0:
                compact(writer)
        stop.set()
        reader.join()
        assert problems == []
        assert len(writer.tests()) == 22


def test_a_listing_that_meets_a_compaction_misses_nothing(history, root, monkeypatch):
    """A folder that changes while it is read may show neither the new file nor the old ones."""
    fill(history, 2)
    listed, whole = [], files_module._entries

    def entries(folder):
        listed.append(folder.name)
        return [] if folder.name.startswith("day=") and listed.count(folder.name) == 1 else whole(folder)

    monkeypatch.setattr(files_module, "_entries", entries)
    assert len(history.tests()) == 4


def test_a_remote_history_cannot_be_compacted(history):
    history.folder = type("Remote", (), {"url": "s3://b/h"})()
    with pytest.raises(HistoryError, match="only a local folder"):
        compact(history)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_table_is_exported(history, tmp_path, kind):
    fill(history, 3)
    path = tmp_path / f"tests.{kind}"
    assert export(history, "tests", str(path)) == 6
    if kind == "csv":
        rows = list(csv.DictReader(path.read_text().splitlines()))
    elif kind == "jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        rows = [
            {"unit": unit} for (unit,) in duckdb.execute("select unit from read_parquet(?)", [str(path)]).fetchall()
        ]
    assert {row["unit"] for row in rows} == {"u0", "u1", "u2", "every"}
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


def test_an_export_can_be_of_a_time(history, tmp_path):
    fill(history, 4)
    assert export(history, "tests", str(tmp_path / "t.csv"), where=Where(since=AT + DAY, until=AT + 3 * DAY)) == 4


@pytest.mark.parametrize(
    ("table", "name"), [("shoes", "x.csv"), ("tests", "x.xlsx"), ("tests", "no/such/folder/x.csv")]
)
def test_an_export_that_cannot_be_is_an_error(history, tmp_path, table, name):
    with pytest.raises(HistoryError):
        export(history, table, str(tmp_path / name))


def life(name, first, last, runs=50):
    return Life(name, AT + first * DAY, AT + last * DAY, runs)


ALWAYS = [life("lint", 0, 100), life("docs", 0, 100)]


def proposals(*jobs):
    return [(found.kind, found.old, found.new) for found in lineage([*ALWAYS, *jobs])]


def test_a_job_that_ends_where_one_of_its_name_begins_was_renamed():
    assert proposals(life("unit", 0, 40), life("basic (unit)", 40, 100)) == [("renamed", ("unit",), ("basic (unit)",))]


def test_prefixes_that_all_jobs_share_do_not_make_them_alike():
    old = [life(f"it-{name}", 0, 40) for name in ("client", "freon", "ozone")]
    new = [life(f"integration ({name})", 40, 100) for name in ("client", "freon", "ozone")]
    assert sorted(proposals(*old, *new)) == [
        ("renamed", (f"it-{name}",), (f"integration ({name})",)) for name in ("client", "freon", "ozone")
    ]


def test_a_job_that_is_cut_into_more_shards_was_resharded():
    old = [life(f"test (default, {i}, 3, gpu)", 0, 40) for i in (1, 2, 3)]
    new = [life(f"test (default, {i}, 5, gpu)", 40, 100) for i in range(1, 6)]
    ((kind, before, after),) = proposals(*old, *new)
    assert (kind, len(before), len(after)) == ("resharded", 3, 5)


def test_a_job_that_goes_on_as_several_was_split():
    jobs = [life("acceptance", 0, 40), life("acceptance (secure)", 41, 100), life("acceptance (misc)", 41, 100)]
    assert proposals(*jobs) == [("split", ("acceptance",), ("acceptance (misc)", "acceptance (secure)"))]


def test_jobs_that_go_on_as_one_were_merged():
    jobs = [life("it (filesystem)", 0, 40), life("it (hdds, om)", 0, 41), life("it (filesystem, hdds)", 41, 100)]
    assert proposals(*jobs, life("it (other)", 0, 100)) == [
        ("merged", ("it (filesystem)", "it (hdds, om)"), ("it (filesystem, hdds)",))
    ]


def test_a_job_that_has_a_successor_of_its_own_is_not_merged_into_another():
    jobs = [
        life("unit", 0, 40),
        life("unit slow", 0, 40),
        life("basic unit", 41, 100),
        life("basic unit slow", 41, 100),
    ]
    assert sorted(proposals(*jobs)) == [
        ("renamed", ("unit",), ("basic unit",)),
        ("renamed", ("unit slow",), ("basic unit slow",)),
    ]


def test_of_two_jobs_that_hold_a_name_the_one_that_holds_less_besides_goes_on():
    jobs = [life("unit", 0, 40), life("basic unit", 41, 100), life("basic slow nightly unit", 41, 100, runs=60)]
    old = [life("unit slow", 0, 40), life("unit", 0, 40)]
    assert proposals(*old, life("basic unit", 41, 100)) == [("renamed", ("unit",), ("basic unit",))]
    assert [new for _, _, new in proposals(*jobs)] == [("basic slow nightly unit", "basic unit")]


def test_a_new_number_of_shards_goes_on_from_the_old_one_though_another_name_is_as_like():
    old = [life("test (gpu, 1, 1)", 0, 40), life("gpu test", 0, 41)]
    new = [life("test (gpu, 1, 2)", 41, 100), life("test (gpu, 2, 2)", 41, 100)]
    ((kind, before, _),) = proposals(*old, *new)
    assert (kind, before) == ("resharded", ("test (gpu, 1, 1)",))


def test_jobs_beside_one_that_was_resharded_are_not_mixed_with_its_shards():
    old = [life("test (1, 2)", 0, 40), life("test (2, 2)", 0, 40), life("py3.8 / test", 0, 40)]
    new = [life(f"test ({i}, 3)", 41, 100) for i in (1, 2, 3)]
    found = proposals(*old, *new, life("py3.9 / test", 41, 100))
    assert sorted(kind for kind, _, _ in found) == ["renamed", "resharded"]
    assert ("renamed", ("py3.8 / test",), ("py3.9 / test",)) in found


@pytest.mark.parametrize(("gap", "found"), [(-3, True), (-4, False), (14, True), (15, False)])
def test_a_job_goes_on_up_to_two_weeks_later_or_three_days_earlier(gap, found):
    assert bool(proposals(life("unit", 0, 40), life("basic (unit)", 40 + gap, 100))) is found


@pytest.mark.parametrize(("runs", "found"), [(2, False), (3, True)])
def test_three_runs_make_a_job(runs, found):
    assert bool(proposals(life("unit", 0, 40, runs=runs), life("basic (unit)", 41, 100, runs=runs))) is found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (life("unit", 0, 100), life("basic (unit)", 40, 100)),
        (life("unit", 0, 20), life("basic (unit)", 60, 100)),
        (life("unit", 0, 40), life("kubernetes", 40, 100)),
        (life("unit", 0, 40, runs=2), life("basic (unit)", 40, 100)),
    ],
)
def test_what_goes_on_or_comes_much_later_or_has_another_name_was_not_renamed(old, new):
    assert proposals(old, new) == []


def test_lives_are_read_from_jobs(history):
    history.add_jobs([job("a", run=str(i), started=AT + i * DAY, repository="o/n") for i in range(5)])
    assert lives(history, "o/n") == [Life("a", AT, AT + 4 * DAY, 5)]
    assert lives(history, "other/one") == []
