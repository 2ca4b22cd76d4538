"""`sooner trunk flaky` over a small history, and the quarantine from its writing to its end."""

import json
import os
import re
import time

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("scipy")

DAY = 86_400.0


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    from sooner.history import History, HistoryOutcome, JobRow, TestRow

    now = time.time()
    passed, failed = HistoryOutcome.PASSED, HistoryOutcome.FAILED
    tests, jobs = [], []
    for i in range(40):
        at, sha = now - 5 * DAY + i * 3600, f"{i:040x}"
        for job in ("rocm", "cuda"):
            more = {"run": f"r{i}", "commit": sha, "job": f"{job} (default, {1 + i % 3}, 3, gpu.1)", "kind": "case"}
            outcomes = [failed, passed] if i % 8 == 0 and job == "rocm" else [passed]
            for attempt, outcome in enumerate(outcomes, 1):
                case = {"unit": "t.py", "node_id": "t.py::test_flaky", "attempt": attempt, "seconds": 30.0}
                tests.append(TestRow(**more, **case, outcome=outcome, started=at + 600 * attempt))
            broken = failed if job == "rocm" else passed  # on every commit: no flake
            tests.append(TestRow(**more, unit="t.py", node_id="t.py::test_rocm", outcome=broken, started=at))
        for attempt, outcome in enumerate([failed, passed] if i % 10 == 0 else [passed], 1):
            begin = at + 1800 * attempt
            job = {"workflow": "ci", "run": f"r{i}", "attempt": attempt, "job": "linux", "job_id": f"{i}.{attempt}"}
            times = {"created": begin, "started": begin, "completed": begin + 900}
            jobs.append(JobRow(**job, **times, commit=sha, branch="main", event="push", outcome=outcome))
    root = tmp_path_factory.mktemp("flaky") / "h"
    with History(root) as kept:
        kept.add_tests(tests)
        kept.add_jobs(jobs)
    return root


def test_the_ranking_has_rate_interval_cost_and_evidence(sooner, history):
    done = sooner("trunk", "flaky", "--history", history, "--json")
    assert done.returncode == 0
    rows = {row["id"]: row for row in json.loads(done.stdout)["flaky"]}
    assert set(rows) == {"t.py::test_flaky", "ci / linux"}
    test = rows["t.py::test_flaky"]
    assert (test["kind"], test["failures"], test["runs"], test["commits"]) == ("test", 5, 85, 5)
    assert test["rate"]["low"] < 5 / 85 < test["rate"]["high"]
    assert (test["red_s"], test["rerun_s"]) == (5 * 600.0, 5 * 30.0)
    assert (rows["ci / linux"]["failures"], rows["ci / linux"]["red_s"]) == (4, 4 * 1800.0)


def test_people_see_a_table(here, history):
    done = here("trunk", "flaky", "--history", history, "--limit", "1")
    assert "COST" in done.stdout
    assert "ci / linux" in done.stdout
    assert "... and 1 more (--limit)" in done.stdout


def test_the_quarantine_is_written_kept_and_left(here, history, project):
    options = ("trunk", "flaky", "--history", history, "--write", "q.toml")
    done = here(*options)
    assert "1 entries, 1 entered, 0 left" in done.stdout
    text = (project / "q.toml").read_text()
    assert 'id = "t.py::test_flaky"' in text
    assert "ci / linux" not in text  # a whole job is not hidden unless asked for
    done = here(*options)
    assert "1 entries, 0 entered, 0 left" in done.stdout
    assert (project / "q.toml").read_text() == text
    stable = re.sub(r"^since = .*$", "since = 2020-01-01", text, flags=re.MULTILINE)
    stable = re.sub(r"^stable_runs = \d+", "stable_runs = 3", stable, flags=re.MULTILINE)
    (project / "q.toml").write_text(stable)
    done = here(*options, "--check", "--json")
    told = json.loads(done.stdout)["quarantine"]
    assert [one["entry"]["id"] for one in told["left"]] == ["t.py::test_flaky"]
    assert "test_flaky" not in (project / "q.toml").read_text()


def test_jobs_enter_where_they_are_asked_for(here, history, project):
    here("trunk", "flaky", "--history", history, "--kind", "job", "--write", "q.toml")
    assert '[[job]]\nid = "ci / linux"' in (project / "q.toml").read_text()


def test_of_entries_whose_kind_was_not_asked_for_nothing_is_said(here, history, project):
    text = 'version = 1\n[[test]]\nid = "t.py::test_flaky"\n[[job]]\nid = "ci / linux"\n'
    for kind in ("job", "test"):
        (project / "q.toml").write_text(text)
        done = here("trunk", "flaky", "--history", history, "--kind", kind, "--write", "q.toml", "--check", "--json")
        assert json.loads(done.stdout)["quarantine"] | {"file": ""} == {
            "file": "", "tests": 1, "jobs": 1, "entered": [], "left": [], "silent": []
        }  # fmt: skip


def test_a_quarantine_whose_name_is_not_utf_8_is_told_all_the_same(here, history):
    done = here("trunk", "flaky", "--history", history, "--write", os.fsdecode(b"q\xff.toml"), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["quarantine"]["file"] == "q\\xff.toml"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--check",), "--check needs --write FILE"),
        (("--since", "soon"), "--since 'soon' is neither a date"),
        (("--since", "2030-01-01"), "is not before --until"),
        (("--history", "nowhere"), "there is no history at nowhere"),
        (("--failures", "0"), "at least 1"),
        (("--write", "broken.toml"), "broken.toml is no TOML"),
        (("--write", "no/such/q.toml"), "no/such/q.toml cannot be written"),
    ],
)
def test_what_is_not_understood_is_one_clear_error(here, history, project, options, text):
    (project / "broken.toml").write_text("[[test")
    done = here("trunk", "flaky", "--history", history, *options)
    assert done.returncode == 4
    assert text in done.stderr


def test_a_time_without_runs_is_nothing_to_rank(here, history):
    done = here("trunk", "flaky", "--history", history, "--since", "2020-01-01", "--until", "2020-02-01")
    assert done.returncode == 5
    assert "the history has no run of that time: its newest record is of" in done.stderr


def test_programs_get_the_cost_that_ranks(here, history):
    rows = json.loads(here("trunk", "flaky", "--history", history, "--json").stdout)["flaky"]
    assert [row["cost_s"] for row in rows] == [row["red_s"] + row["rerun_s"] for row in rows]
    assert rows == sorted(rows, key=lambda row: -row["cost_s"])


def test_nobody_is_told_of_a_quarantine_that_could_not_be_written(here, history):
    done = here("trunk", "flaky", "--history", history, "--write", "nowhere/q.toml")
    assert (done.returncode, done.stdout) == (4, "")
    assert "nowhere/q.toml cannot be written" in done.stderr


def test_a_time_without_runs_is_not_said_to_be_a_time_without_flakes(sooner, history):
    done = sooner("trunk", "flaky", "--history", history, "--until", "2001-01-01", "--since", "1d")
    assert (done.returncode, done.stdout) == (5, "")
    assert "no run of that time" in done.stderr


def test_a_time_in_which_nothing_ever_failed_is_not_said_to_be_one_without_runs(sooner, tmp_path):
    from sooner.history import History, HistoryOutcome, TestRow

    row = {"unit": "t.py", "node_id": "t.py::test", "kind": "case", "commit": "a", "run": "1"}
    with History(tmp_path / "h") as kept:
        kept.add_tests([TestRow(**row, outcome=HistoryOutcome.PASSED, started=time.time() - 60)])
    done = sooner("trunk", "flaky", "--history", tmp_path / "h")
    assert (done.returncode, done.stdout) == (0, "nothing flaky: nothing both failed and passed on one commit\n")


def test_a_span_that_is_longer_than_time_asks_for_everything(here, history):
    done = here("trunk", "flaky", "--history", history, "--since", "99999999999d", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["since"] == 0.0


@pytest.mark.parametrize("kind", ["job", "test", "all"])
def test_of_several_repositories_one_must_be_named(here, project, kind):
    from sooner.history import History, HistoryOutcome, JobRow, TestRow

    passed, failed = HistoryOutcome.PASSED, HistoryOutcome.FAILED
    now = time.time()
    with History(project / "h") as kept:
        for repository, outcomes in (("o/one", [failed, passed]), ("o/two", [passed])):
            for attempt, outcome in enumerate(outcomes, 1):
                at = {"started": now - 7200 + 600 * attempt, "attempt": attempt, "outcome": outcome}
                say = {"repository": repository, "commit": "c", "run": "1", "job": "linux", **at}
                kept.add_jobs([JobRow(**say, workflow="ci", completed=at["started"] + 60)])
                kept.add_tests([TestRow(**say, kind="case", unit="t.py", node_id="t.py::test")])
    done = here("trunk", "flaky", "--history", "h", "--kind", kind)
    assert done.returncode == 4
    assert "several repositories, name one with --repository: o/one, o/two" in done.stderr
    for repository, flaky in (("o/one", 1 if kind != "all" else 2), ("o/two", 0)):
        done = here("trunk", "flaky", "--history", "h", "--kind", kind, "--repository", repository, "--json")
        assert len(json.loads(done.stdout)["flaky"]) == flaky


def test_a_link_to_the_quarantine_stays_one(here, history, project):
    (project / "shared.toml").write_text("version = 1\n")
    (project / "quarantine.toml").symlink_to("shared.toml")
    assert here("trunk", "flaky", "--history", history, "--write", "quarantine.toml").returncode == 0
    assert (project / "quarantine.toml").is_symlink()
    assert "t.py::test_flaky" in (project / "shared.toml").read_text()


def test_reports_that_know_no_repository_are_of_none_that_is_asked_for(here, project):
    case = '<testcase classname="c" name="x"/>'
    (project / "r.xml").write_text(f'<testsuite timestamp="2026-11-20T10:00:00">{case}</testsuite>')
    assert here("ingest", "--set", "commit=abc", "r.xml").returncode == 0
    of_november = ("--since", "2026-11-01", "--until", "2026-12-01")
    for verb in ("flaky", "digest"):
        done = here("trunk", verb, *of_november, "--repository", "o/r")
        assert done.returncode == 4
        assert "nothing of the history has the repository 'o/r': there is none" in done.stderr
    assert here("trunk", "flaky", *of_november, "--branch", "main").returncode == 0
