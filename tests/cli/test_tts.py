"""`sooner tts` over a small history."""

import json

import pytest

pytest.importorskip("duckdb")

MONDAY = 1_767_571_200.0  # 2026-01-05


@pytest.fixture
def history(project):
    from sooner.history import History, HistoryOutcome, JobRow

    rows = []
    for i in range(120):
        begin = MONDAY + i * 3600
        for job, seconds in (("build", 600), ("test", 900 + 300 * (i >= 60))):
            rows.append(
                JobRow(
                    repository="o/r", workflow="ci", run=f"r{i}", job=job, job_id=f"{job}{i}", commit=f"{i:040x}",
                    branch="main", event="push", run_created=begin, created=begin, started=begin + 30 + i % 7,
                    completed=begin + 30 + seconds + i % 5, runner="gpu.4", outcome=HistoryOutcome.PASSED,
                )
            )  # fmt: skip
    with History(project / "h") as kept:
        kept.add_jobs(rows)
    return project / "h"


def test_the_answer_has_every_metric_and_the_change_with_its_part(sooner, history):
    answer = json.loads(sooner("tts", "--history", history, "--json").stdout)
    assert answer["metrics"]["job_time_to_signal"]["n"] == 240
    assert answer["metrics"]["commit_time_to_signal"]["n"] == 120
    assert answer["metrics"]["time_to_red_signal"] is None
    assert answer["red"]["count"] == answer["flaky"]["count"] == 0
    rows = {row["key"]: row for row in answer["rows"]}
    assert rows["build"]["p50"]["value"] == pytest.approx(632)
    assert rows["build"]["changes"] == []
    (change,) = rows["test"]["changes"]
    assert change["at"] == MONDAY + 60 * 3600
    assert change["part"] == "run"


def test_people_see_a_table_and_what_moved(here, history):
    done = here("tts", "--history", history, "--by", "workflow", "--metric", "commit_time_to_signal", "--why")
    assert done.returncode == 0
    assert "2026-01-07  ci: 15.5 min -> 20.5 min (+32 %), moved by: run" in done.stdout


def test_weeks_are_told_by_their_mondays_the_last_ones_of_many(here, project):
    begins = [MONDAY + i * 21_600 for i in range(112)]
    ends = [at + 600 * (1 + (i >= 56)) + i % 7 for i, at in enumerate(begins)]
    rows = [f"{at},{at},{end},c{i},job,pass" for i, (at, end) in enumerate(zip(begins, ends, strict=True))]
    (project / "jobs.csv").write_text("created,started,completed,commit,job,status\n" + "\n".join(rows) + "\n")
    here("ingest", "jobs.csv", "--history", "w")
    done = here("tts", "--history", "w", "--by", "week", "--limit", 2)
    weeks, changes = done.stdout.split("by week:")[1].split("changes:")
    _, first, second, left = weeks.strip().splitlines()
    assert first.startswith("2026-01-19  28  20.1 min")
    assert second.startswith("2026-01-26  28  20.1 min")
    assert left == "... and 2 earlier ones (--limit)"
    assert changes.strip() == "2026-01-19  10.1 min -> 20.0 min (+100 %), moved by: run"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--metric", "speed"), "--metric 'speed': there are job_time_to_signal"),
        (("--since", "yesterday"), "--since 'yesterday' is no date such as 2026-11-01"),
        (("--history", "nowhere"), "there is no history at nowhere"),
        (("--since", "2026-02-01", "--until", "2026-01-01"), "--since 2026-02-01 is not before --until 2026-01-01"),
    ],
)
def test_what_is_not_understood_is_one_clear_error(here, history, options, text):
    done = here("tts", "--history", history, *options)
    assert done.returncode == 4
    assert text in done.stderr


def test_jobs_of_several_repositories_are_not_taken_for_those_of_one(here, project, history):
    (project / "jobs.csv").write_text("repository,commit,time,job,status\no/other,c,2026-01-06,build,pass\n")
    here("ingest", "jobs.csv", "--history", history)
    done = here("tts", "--history", history)
    assert done.returncode == 4
    assert "several repositories, name one with --repository: o/other, o/r" in done.stderr
    assert here("tts", "--history", history, "--repository", "o/r").returncode == 0


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (("--branch", "mian"), 5, "no job of the history has the branch 'mian': there is 'main'"),
        (("--repository", "o"), 5, "no job of the history has the repository 'o': there is 'o/r'"),
        (("--workflow", "cI"), 5, "no job of the history has the workflow 'cI': there is 'ci'"),
        (
            ("--metric", "strict_lag", "--required", "c"),
            4,
            "--required 'c': no job of a workflow of this name",
        ),
        (
            ("--since", "2027-01-01"),
            5,
            "the history has no job of that time: its newest record is of 2026-01-09 23:00 UTC",
        ),
        (("--measure", "sccache"), 5, "the history has no measure 'sccache': there is none"),
    ],
)
def test_names_that_are_not_known_are_told_with_those_that_are(here, history, options, code, text):
    done = here("tts", "--history", history, *options)
    assert done.returncode == code
    assert text in done.stderr


def test_a_measure_whose_name_github_would_obey_begins_no_line(here, project):
    from sooner.history import History, MeasureRow

    with History(project / "h") as kept:
        kept.add_measures(MeasureRow(name="::error::x", job="::debug::y", value=i, at=MONDAY + i) for i in range(3))
    done = here("tts", "--history", "h", "--measure", "::error::x", "--by", "job")
    assert done.returncode == 0, done.stderr
    assert "- ::error::x by job:" in done.stdout
    assert not any(line.lstrip().startswith("::") for line in done.stdout.splitlines())


def test_a_measure_is_told_in_its_own_unit_of_the_workflow_and_the_branch_that_are_asked_for(here, history):
    from sooner.history import History, MeasureRow

    rows = [("hit_rate", "ratio", "ci", "r1", 0.25), ("hit_rate", "ratio", "docs", "r1", 0.75)]
    rows += [("hit_rate", "ratio", "ci", "other", 0.5), ("pull", "s", "ci", "r1", 120.0)]
    with History(history) as kept:
        kept.add_measures(
            MeasureRow(repository="o/r", workflow=of, run=run, job=of, name=name, unit=unit, value=value, at=MONDAY)
            for name, unit, of, run, value in rows
        )

    def shown(measure, *options):
        done = here("tts", "--history", history, "--measure", measure, "--by", "workflow", *options)
        return [line.split()[:3] for line in done.stdout.splitlines() if line.startswith(("ci ", "docs "))]

    assert shown("hit_rate") == [["docs", "1", "0.75"], ["ci", "2", "0.375"]]
    assert shown("hit_rate", "--workflow", "ci") == [["ci", "2", "0.375"]]
    assert shown("hit_rate", "--branch", "main") == [["docs", "1", "0.75"], ["ci", "1", "0.25"]]
    assert shown("pull") == [["ci", "1", "2.0"]]


TABLE = """commit,workflow,job,status,{created}started,completed
a,ci,build,success,{at}2026-01-05T00:05:00Z,2026-01-05T00:10:00Z
a,ci,test,success,{later}2026-01-05T00:20:00Z,2026-01-05T00:30:00Z
"""


def test_a_plain_table_has_times_to_signal_from_its_runs_first_job_on(here, project):
    text = TABLE.format(created="created,", at="2026-01-05T00:00:00Z,", later="2026-01-05T00:10:00Z,")
    (project / "jobs.csv").write_text(text)
    here("ingest", "jobs.csv", "--history", "plain")
    answer = json.loads(here("tts", "--history", "plain", "--json").stdout)
    assert {row["key"]: row["p50"]["value"] for row in answer["rows"]} == {"build": 600, "test": 1800}
    assert answer["metrics"]["commit_time_to_signal"]["p50"]["value"] == 1800


def test_a_commit_that_is_run_again_at_night_in_a_plain_table_is_no_first_signal(here, project):
    text = TABLE.format(created="created,", at="2026-01-05T00:00:00Z,", later="2026-01-05T00:10:00Z,")
    again = text.replace("01-05", "01-06").partition("\n")[2]
    (project / "jobs.csv").write_text(text + again)
    here("ingest", "jobs.csv", "--history", "plain")
    answer = json.loads(here("tts", "--history", "plain", "--json").stdout)
    assert {row["key"]: row["p50"]["value"] for row in answer["rows"]} == {"build": 600, "test": 1800}
    assert answer["metrics"]["commit_time_to_signal"]["p50"]["value"] == 1800


def test_a_metric_whose_times_nobody_told_names_those_that_are_there(here, project):
    (project / "jobs.csv").write_text(TABLE.format(created="", at="", later=""))
    here("ingest", "jobs.csv", "--history", "plain")
    done = here("tts", "--history", "plain")
    assert done.returncode == 5
    assert "no job has the times that job_time_to_signal is made of; --metric takes one of duration" in done.stderr
