"""`sooner history` through the real command line."""

import csv
import json

import pytest


@pytest.fixture
def filled(sooner, project):
    """A history of 60 days in which `unit` became `basic (unit)`."""
    lines = ["commit,time,job,status,branch"]
    for day in range(60):
        at = f"2020-{1 + day // 28:02}-{1 + day % 28:02}T10:00:00Z"
        name = "unit" if day < 30 else "basic (unit)"
        lines += [f"c{day},{at},lint,pass,main", f"c{day},{at},{name},fail,side"]
    (project / "jobs.csv").write_text("\n".join(lines) + "\n")
    assert sooner("ingest", "jobs.csv").returncode == 0


def test_info_says_what_there_is(sooner, filled):
    found = json.loads(sooner("history", "info", "--json").stdout)
    assert found["schema"] == 1
    assert found["tables"]["jobs"] == {
        "files": 1, "rows": 120, "bytes": found["tables"]["jobs"]["bytes"],
        "first": 1577872800.0, "last": found["tables"]["jobs"]["last"],
    }  # fmt: skip
    shown = sooner("history", "info").stdout.splitlines()
    assert shown[0].split() == ["TABLE", "ROWS", "FILES", "SIZE", "FROM", "TO"]
    assert shown[1].split()[:3] == ["jobs", "120", "1"]


def test_info_of_nothing_says_so(here):
    done = here("history", "info")
    assert (done.returncode, done.stdout) == (0, "")
    assert "nothing is recorded yet" in done.stderr
    assert json.loads(here("history", "info", "--json").stdout)["tables"]["jobs"]["rows"] == 0


def test_compact_makes_few_files(here, project, filled):
    (project / "more.csv").write_text("commit,time,job,status\nc99,2020-03-20,lint,pass\n")
    here("ingest", "more.csv")
    (table,) = json.loads(here("history", "compact", "--json").stdout)["tables"]
    assert (table["table"], table["before"], table["after"], table["rows"]) == ("jobs", 2, 1, 121)
    assert json.loads(here("history", "info", "--json").stdout)["tables"]["jobs"]["rows"] == 121


def test_what_is_not_there_cannot_be_compacted(here):
    done = here("history", "compact", "--history", "nothing")
    assert done.returncode == 4
    assert done.stderr.endswith("nothing: there is no history\n")


def test_export_writes_a_table(here, project, filled):
    done = here("history", "export", "jobs", "jobs-out.csv", "--branch", "side", "--since", "2020-02-01", "--json")
    rows = list(csv.DictReader((project / "jobs-out.csv").read_text().splitlines()))
    assert json.loads(done.stdout) == {"rows": len(rows), "path": "jobs-out.csv"}
    assert {row["branch"] for row in rows} == {"side"}
    assert min(row["started"] for row in rows) >= "2020-02-01"


def test_export_to_stdout_prints_rows_alone(sooner, filled):
    done = sooner("history", "export", "jobs", "-")
    assert len(done.stdout.splitlines()) == 121
    assert done.stderr == "120 rows\n"


def test_a_file_that_an_export_cannot_write_is_named_as_it_was_given(here, filled):
    name = "x" * 245 + ".csv"  # what is written first, beside it, has a longer name still
    done = here("history", "export", "jobs", name)
    assert done.returncode == 4
    assert done.stderr == f"sooner: cannot write {name}: File name too long\n"


def test_an_export_of_a_time_that_ends_before_it_begins_is_an_error(here, filled):
    done = here("history", "export", "jobs", "x.csv", "--since", "2020-03-01", "--until", "2020-02-01")
    assert (done.returncode, done.stderr) == (4, "sooner: --since 2020-03-01 is not before --until 2020-02-01\n")


def test_an_unknown_table_is_named(here, filled):
    done = here("history", "export", "shoes", "x.csv")
    assert done.returncode == 4
    assert "the tables are jobs, runs, tests" in done.stderr


def test_lineage_proposes_what_was_renamed(here, filled):
    (proposal,) = json.loads(here("history", "lineage", "--json").stdout)["proposals"]
    assert (proposal["kind"], proposal["old"], proposal["new"]) == ("renamed", ["unit"], ["basic (unit)"])
    assert "basic (unit)" in here("history", "lineage").stdout


def test_lineage_of_several_repositories_asks_for_one(here, filled, project):
    (project / "b.csv").write_text("repository,commit,job,status,started_at\no/b,c,x,success,2026-01-02\n")
    (project / "a.csv").write_text("repository,commit,job,status,started_at\no/a,c,x,success,2026-01-02\n")
    assert here("ingest", "a.csv", "b.csv").returncode == 0
    done = here("history", "lineage")
    assert done.returncode == 4
    assert "several repositories, name one with --repository: o/a, o/b" in done.stderr
    assert here("history", "lineage", "--repository", "o/a").returncode == 0
    done = here("history", "lineage", "--repository", "o/c")
    assert done.returncode == 4
    assert "nothing of the history has the repository 'o/c': there are 'o/b', 'o/a'" in done.stderr


def test_lineage_of_nothing_says_so(here, project):
    (project / "a.csv").write_text("commit,job,status,started_at\nc,x,success,2026-01-02\n")
    here("ingest", "a.csv")
    done = here("history", "lineage")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no job" in done.stderr


def test_lineage_of_a_history_that_is_not_there_proposes_nothing_and_says_why(here):
    done = here("history", "lineage", "--history", "typo")
    assert done.returncode == 4
    assert "there is no history at typo" in done.stderr


def test_the_help_of_a_group_cuts_no_promise_off(here):
    assert "..." not in here("history", "--help").stdout.partition("Commands:")[2]


def test_a_broken_file_of_the_history_is_named_with_what_to_do(here, filled, project):
    file = min((project / ".sooner/history/v1/jobs").rglob("*.parquet"))
    file.write_bytes(file.read_bytes()[:50])
    done = here("history", "info")
    assert done.returncode == 4
    assert done.stderr.startswith(f"sooner: {file} is broken: ")
    assert done.stderr.endswith("; move it away, and the rest can be read\n")
    assert len(done.stderr.splitlines()) == 1
    file.unlink()
    assert here("history", "info").returncode == 0


def test_nothing_is_exported_of_a_history_that_is_not_there(here, project):
    done = here("history", "export", "tests", "x.csv", "--history", "nowhere")
    assert (done.returncode, "there is no history at nowhere" in done.stderr) == (4, True)
    assert not (project / "x.csv").exists()


@pytest.mark.parametrize(
    "verb",
    [
        "trunk verdicts", "trunk flaky", "trunk digest", "jobs select", "jobs for-change", "tts", "coverage",
        "history lineage", "history export jobs -",
    ],
)  # fmt: skip
def test_a_history_whose_name_is_empty_is_not_taken_for_the_usual_one(here, filled, verb):
    done = here(*verb.split(), "--history", "")
    assert (done.returncode, done.stdout) == (4, "")
    assert "--history is empty, as a variable that is not set leaves it" in done.stderr
