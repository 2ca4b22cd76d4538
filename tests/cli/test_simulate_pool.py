"""`sooner simulate-pool`, as users call it."""

import csv
import datetime as dt
import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from sooner.analysis.sizing.synthetic import Recipe, SharedRecipe, made, shared_queues, shared_tasks
from sooner.cli.sizing_declared import declarations
from sooner.cli.sizing_files import SizingFileError, numbers


@pytest.fixture(scope="module")
def record():
    return {name: made(recipe, 3)[0] for name, recipe in {"a": Recipe(days=14), "b": Recipe(days=14, load=0.4)}.items()}


@pytest.fixture
def jobs(record, project):
    return written(record, project / "jobs.csv")


def written(queues, path):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["label", "created", "started", "completed"])
        for label, queue in queues.items():
            for row in zip(queue.created, queue.started, queue.completed, strict=True):
                writer.writerow([label, *row])
    return path


def answer(done):
    assert done.returncode == 0, done.stderr
    return {pool["label"]: pool for pool in json.loads(done.stdout)["pools"]}


def test_each_pool_has_what_was_observed_and_predicted_and_whether_it_fits(sooner, jobs):
    pools = answer(sooner("simulate-pool", "--jobs", jobs, "--json"))
    assert list(pools) == ["a", "b"]
    for pool in pools.values():
        assert pool["fits"] is True
        assert pool["predicted"]["p90"] == pytest.approx(pool["observed"]["p90"], rel=0.1)


@pytest.mark.parametrize("columns", ["concurrency_group", "workflow,branch"])
def test_jobs_that_a_concurrency_group_holds_do_not_wait_for_machines(here, project, columns):
    keys = columns.replace("concurrency_group", "deploy").split(",")
    rows, end = [], 0.0
    for number in range(300):
        at = 1_760_000_000.0 + 1000 * number
        begin = max(at, end) + 5
        end = begin + (1300 if number % 50 < 30 else 400)
        rows.append(("p", at, begin, end, *keys))
        rows += [("p", at + late, at + late + 5, at + late + 90, *[""] * len(keys)) for late in (100, 200)]
    text = "\n".join(",".join(map(str, row)) for row in rows)
    (project / "jobs.csv").write_text(f"label,created,started,completed,{columns}\n{text}\n")
    done = here("simulate-pool", "--jobs", "jobs.csv", "--json")
    assert "jobs were held by their concurrency group" in done.stderr
    assert answer(done)["p"]["observed"]["p90"] < 60


def test_pools_may_be_declared_in_several_ways(here, jobs, project):
    (project / "p.json").write_text('{"a": 20, "b": {"capacity": [["2026-01-01", 20]], "boot_s": 15}}')
    (project / "p.csv").write_text("label,machines,at\na,20,\nb,20,2026-01-01T00:00:00Z\n")
    (project / "p.toml").write_text('[[pools]]\nlabel = "a"\ncapacity = 20\n[[pools]]\nlabel = "c"\n')
    told = [declarations(project / f"p.{kind}") for kind in ("json", "csv", "toml")]
    assert all(one.spec("a").capacity.counts == (20.0,) for one in told)
    assert told[0].spec("b").capacity == told[1].spec("b").capacity
    pools = answer(here("simulate-pool", "--jobs", jobs, "--label", "a", "--pools", "p.json", "--json"))
    assert abs(pools["a"]["errors"]["declared"]) < 0.05


def test_jobs_come_as_json_lines_with_iso_times_too(here, record, project):
    queue = record["a"]

    def iso(at):
        return dt.datetime.fromtimestamp(at, dt.UTC).isoformat().replace("+00:00", "Z")

    rows = zip(queue.created, queue.started, queue.completed, strict=True)
    lines = [
        json.dumps({"labels": ["self-hosted", "a"], "created_at": iso(c), "started_at": iso(s), "completed_at": iso(e)})
        for c, s, e in rows
    ]
    (project / "jobs.jsonl").write_text("\n".join(lines))
    pools = answer(here("simulate-pool", "--jobs", "jobs.jsonl", "--json"))
    assert pools["self-hosted,a"]["fits"] is True


def test_jobs_come_as_parquet_and_from_a_history_too(here, record, project):
    pytest.importorskip("duckdb")
    from sooner.history import History, HistoryOutcome, JobRow

    queue = record["b"]
    with History(project / "h") as kept:
        kept.add_jobs(
            JobRow(
                repository="o/r", run=str(i), job="j", job_id=str(i), runner="b", created=c, started=s, completed=e,
                outcome=HistoryOutcome.PASSED,
            )
            for i, (c, s, e) in enumerate(
                zip(queue.created.tolist(), queue.started.tolist(), queue.completed.tolist(), strict=True)
            )
        )  # fmt: skip
    told = answer(here("simulate-pool", "--history", "h", "--json"))["b"]
    here("history", "export", "jobs", "jobs.parquet", "--history", "h")
    assert answer(here("simulate-pool", "--jobs", "jobs.parquet", "--json"))["b"] == told
    assert told["fits"] is True


def test_people_see_a_table(here, jobs):
    done = here("simulate-pool", "--jobs", jobs, "--label", "b")
    assert done.returncode == 0
    assert "FITS" in done.stdout
    assert "yes" in done.stdout
    assert "\nb " in done.stdout
    assert "\na " not in done.stdout


@pytest.mark.parametrize(
    ("text", "options", "problem"),
    [
        ("", (), "is empty"),
        ("label,began\na,1\n", (), "needs a column `created`"),
        ("label,created,started,completed\na,1,x,3\n", (), "jobs.csv:2: started 'x' is no time"),
        ("label,created,started,completed\na,1,2\n", (), "jobs.csv:2: has 3 cells where the header has 4"),
        ("label,created\na,1\n", ("--label", "z"), "no jobs of 'z'"),
        ("label,created\na,1\n", ("--train", "2"), "the share must lie between 0 and 1"),
        ("label,created\na,1\n", ("--pools", "none.json"), "none.json: cannot be read"),
        ("[1, 2]", (), "holds something that is no object"),
        ("{]", (), "is no JSON"),
        ("[" * 100_000, (), "is no JSON"),
        ('[{"label": "a", "created": 1' + "0" * 400 + "}]", (), "jobs.csv:2: created is too large a number"),
        ("label,created\na,1\n", ("--horizon", "nan"), "--horizon nan: must be above 0 hours"),
        ("label,created\na,1\n", ("--horizon", "inf"), "--horizon inf: must be above 0 hours"),
    ],
)
def test_what_is_not_understood_is_one_clear_error(here, project, text, options, problem):
    (project / "jobs.csv").write_text(text)
    done = here("simulate-pool", "--jobs", "jobs.csv", *options)
    assert done.returncode == 4
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_was_packed_and_is_broken_is_one_clear_error(here, project):
    packed = gzip.compress(b"label,created\n" + bytes(range(256)) * 9)
    (project / "jobs.csv.gz").write_bytes(packed[:12] + b"\xff" * 40 + packed[52:])
    done = here("simulate-pool", "--jobs", "jobs.csv.gz")
    assert done.returncode == 4
    assert "jobs.csv.gz: cannot be read: Error" in done.stderr


def test_without_jobs_there_is_one_clear_error(here):
    done = here("simulate-pool")
    assert done.returncode == 4
    assert "--jobs FILE, or --history DIR" in done.stderr


def test_too_few_jobs_do_not_fit(here, project):
    (project / "jobs.csv").write_text("label,created,started,completed\na,1,2,3\n")
    pools = answer(here("simulate-pool", "--jobs", "jobs.csv", "--json"))
    assert pools["a"]["fits"] is False
    assert pools["a"]["predicted"] == {"p50": None, "p90": None}


def test_a_time_without_end_is_read_as_one_and_ends_the_reading():
    assert numbers(Path("j.csv"), "created", ["inf", "1e12", "3"], is_time=True) == [float("inf"), 1e9, 3.0]


def test_times_as_a_warehouse_writes_them_are_read():
    assert numbers(Path("j.csv"), "created", ["2025-10-09 09:00:04 UTC"], is_time=True) == [1_760_000_404.0]


@pytest.mark.parametrize("text", ["", "\n", '["a"]', '[{"label": "a"}]', '{"a": null}', '{"pools": ["a"]}'])
def test_a_file_of_pools_that_says_little_or_nothing_declares_nothing(tmp_path, text):
    (tmp_path / "p.json").write_text(text)
    found = declarations(tmp_path / "p.json")
    assert found.spec("a").capacity is None


NODES = {"devices": 8, "widths": {"gpu.1": 1, "gpu.2": 2, "gpu.4": 4}, "handover_s": 20}


@pytest.fixture(scope="module")
def node_queues():
    recipe = SharedRecipe(days=14, nodes=4, load=0.8)
    return shared_queues(recipe, shared_tasks(recipe, 3), 3)


@pytest.fixture
def shared_nodes(node_queues, project):
    return written(node_queues, project / "jobs.csv").parent


def test_nodes_that_several_labels_share_may_be_declared_and_their_number_be_fitted(here, shared_nodes):
    (shared_nodes / "p.json").write_text(json.dumps({"mi355": NODES}))
    done = here("simulate-pool", "--jobs", "jobs.csv", "--pools", "p.json", "--json")
    assert "note: mi355: fitted on the first part: 4 nodes of 8 devices" in done.stderr
    for pool in answer(done).values():
        assert pool["model"] == "declared"
        assert pool["fits"] is True
        assert abs(pool["errors"]["declared"]) < 0.1


@pytest.mark.parametrize(
    ("pools", "problem"),
    [
        ({"n": {"nodes": 4, "devices": 8}}, "n: nodes need `widths`"),
        ({"n": {**NODES, "devices": 2}}, "n: a job of gpu.4 takes 4 devices, and no node has more than 2"),
        ({"n": {**NODES, "devices": None}}, "n: each kind of node needs `devices`, a number from 1 on"),
        ({"n": {**NODES, "nodes": -1}}, "n: -1 is no number of nodes; leave it out to have it fitted"),
        ({"n": {**NODES, "nodes": []}}, "n: needs nodes, of which one kind at most has no number"),
        ({"n": {**NODES, "widths": {"gpu.1": "one"}}}, "n: a job of gpu.1 cannot take 'one' devices"),
        ({"n": {**NODES, "reserves": "yes"}}, "n: `reserves` is true or false, not 'yes'"),
        ({"n": NODES, "gpu.2": 4}, "gpu.2 is declared twice: as a pool of its own, and on n"),
        ({"gpu.2": {"capacity": 4, "boot_s": -3}}, "boot_s -3 is no number of seconds"),
        ({"gpu.2": "inf"}, "capacity 'inf' is more than 1,000,000 machines"),
        ({"gpu.2": 1e300}, "capacity 1e+300 is more than 1,000,000 machines"),
        ({"gpu.2": "many"}, "p.json: capacity 'many' is no number"),
        ({"n": {**NODES, "nodes": 10**12}}, f"n: {10**12} is no number of nodes"),
    ],
)
def test_nodes_that_cannot_be_are_one_clear_error(here, shared_nodes, pools, problem):
    (shared_nodes / "p.json").write_text(json.dumps(pools))
    done = here("simulate-pool", "--jobs", "jobs.csv", "--pools", "p.json")
    assert done.returncode == 4
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_what_a_table_of_pools_says_is_refused_with_its_line(tmp_path):
    (tmp_path / "p.csv").write_text("label,capacity,at\na,4,\nb,4,later\n")
    with pytest.raises(SizingFileError, match=r"p\.csv:3: at 'later' is no time"):
        declarations(tmp_path / "p.csv")


def test_rows_of_one_label_tell_of_it_together_and_do_not_contradict_each_other(tmp_path):
    later = "a,8,2026-11-15,,\n"
    (tmp_path / "p.csv").write_text(f"label,capacity,at,boot_s,idle_s\na,4,,240,600\n{later}{later}")
    spec = declarations(tmp_path / "p.csv").spec("a")
    assert (spec.capacity.counts, spec.boot_s, spec.idle_s) == ((4.0, 8.0), 240, 600)
    (tmp_path / "p.csv").write_text("label,capacity\na,4\nb,4\na,8\n")
    with pytest.raises(SizingFileError, match=r"p\.csv:4: a has two numbers of machines from one time on"):
        declarations(tmp_path / "p.csv")


def test_what_a_file_says_that_nobody_understands_is_named_and_ignored(here, jobs, project):
    (project / "p.toml").write_text("[a]\ncapactiy = 20\n")
    done = here("simulate-pool", "--jobs", jobs, "--pools", "p.toml", "--json")
    assert "note: p.toml: 'capactiy' says nothing of a pool, and is ignored" in done.stderr
    assert answer(done)["a"]["fits"] is True


def test_pools_of_which_no_job_is_known_are_named(here, jobs, project):
    nodes = {"nodes": 2, "devices": 8, "widths": {"x.1": 1, "x.2": 2}}
    (project / "p.json").write_text(json.dumps({"a": 20, "typo": 20, "rack": nodes}))
    done = here("simulate-pool", "--jobs", jobs, "--pools", "p.json")
    assert "note: declared, but of no job in the record: 'typo', 'rack'\n" in done.stderr


def test_a_job_that_waits_for_others_does_not_wait_for_a_machine_meanwhile(here, project):
    rows = ["id,needs,label,priority,created,started,completed"]
    for i in range(300):
        at = 1_780_000_000 + 3600 * i
        rows.append(f"b{i},,build,,{at},{at + 5},{at + 1805}")
        rows.append(f't{i},"b{i}, unknown",gpu,{i % 2},{at},{at + 1815},{at + 2000}')
    (project / "jobs.csv").write_text("\n".join(rows))
    pools = answer(here("simulate-pool", "--jobs", "jobs.csv", "--json"))
    assert pools["gpu"]["observed"] == {"p50": 10.0, "p90": 10.0}
    assert pools["gpu"]["fits"] is True


def test_a_record_without_labels_is_said_to_hold_nothing(here, project):
    (project / "jobs.csv").write_text("label,created,started,completed\n")
    done = here("simulate-pool", "--jobs", "jobs.csv")
    assert (done.returncode, done.stderr) == (5, "nothing to simulate: no job has a label of its runner, and times\n")


def test_pools_may_come_through_a_pipe(jobs, project):
    (project / "pools.csv").write_text("label,capacity\na,5\n")
    line = f'exec "{sys.executable}" -m sooner simulate-pool --jobs jobs.csv --pools <(cat pools.csv)'
    done = subprocess.run(["bash", "-c", line], cwd=project, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "a" in done.stdout
