"""`sooner trunk digest` over a small history."""

import json
import time

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("scipy")

HOUR = 3600.0
DAY = 24 * HOUR


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """Ten days of hourly commits; one of the last day breaks `test`, is reverted, and lands again."""
    from sooner.history import CommitRow, History, HistoryOutcome, JobRow

    begin = time.time() - 10 * DAY
    culprit, revert, reland = 225, 229, 235
    commits, jobs = [], []
    for i in range(240):
        at, sha = begin + i * HOUR + 60, f"{i:040x}"
        message = {
            culprit: "Speed up <b>kernels</b> (#12)",
            revert: f'Revert "Speed up <b>kernels</b> (#12)"\n\nThis reverts commit {culprit:040x}.',
            reland: "[reland] Speed up <b>kernels</b> (#13)",
        }.get(i, f"Change {i}")
        files = ("csrc/a.cu",) if i in (culprit, revert, reland) else ("docs/a.md", "sooner/x.py")
        more = {"author": f"author{i % 3}", "message": message, "files": files, "branch": "main"}
        commits.append(CommitRow(sha=sha, time=at, **more))
        for job, seconds in (("build", 600), ("test", 900 if i < 216 else 1500)):
            broken = job == "test" and culprit <= i < revert
            times = {"run_created": at, "created": at, "started": at + 30, "completed": at + 30 + seconds}
            facts = {
                "workflow": "ci",
                "run": f"r{i}",
                "job": job,
                "job_id": f"{job}{i}",
                "branch": "main",
                "event": "push",
            }
            outcome = HistoryOutcome.FAILED if broken else HistoryOutcome.PASSED
            jobs.append(JobRow(**facts, **times, commit=sha, outcome=outcome))
            if i == 238 and job == "build":
                again = {**facts, "attempt": 2, "job_id": "again"}
                jobs[-1] = JobRow(**facts, **times, commit=sha, outcome=HistoryOutcome.FAILED)
                later = {**times, "started": at + 700, "completed": at + 1300}
                jobs.append(JobRow(**again, **later, commit=sha, outcome=HistoryOutcome.PASSED))
    root = tmp_path_factory.mktemp("digest") / "h"
    with History(root) as kept:
        kept.add_commits(commits)
        kept.add_jobs(jobs)
    return root


def test_the_answer_has_everything_of_the_day(sooner, history):
    done = sooner("trunk", "digest", "--history", history, "--json")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert (found["branch"], found["commits"], found["authors"]) == ("main", 24, 3)
    assert {area["name"]: area["commits"] for area in found["areas"]} == {"docs": 21, "sooner": 21, "csrc": 3}
    (broke,) = found["broke"]
    assert (broke["culprit"], broke["signals"], broke["found_by"]) == (f"{225:040x}", ["ci / test"], "ci / test")
    assert broke["red_s"] == pytest.approx(4 * HOUR)
    assert [(one["what"], one["of"]) for one in found["undone"]] == [
        ("revert", f"{225:040x}"),
        ("reland", f"{225:040x}"),
    ]
    assert [one["after_s"] for one in found["undone"]] == pytest.approx([4 * HOUR, 6 * HOUR])
    assert [(one["id"], one["failures"]) for one in found["flaky"]] == [("ci / build", 1)]
    signal = {one["metric"]: one for one in found["signal_times"]}["commit_time_to_signal"]
    assert (signal["p50"]["value"], signal["p50_before"]["value"]) == pytest.approx((1530, 930))


def test_people_see_a_table_for_each_question(here, history):
    done = here("trunk", "digest", "--history", history)
    for title in ("Landed, by area", "Broke", "Reverted and landed again", "Flaky", "Time to signal"):
        assert title in done.stdout
    assert "+65 %" in done.stdout


def test_markdown_can_be_posted_as_it_is(here, history):
    text = here("trunk", "digest", "--history", history, "--format", "markdown").stdout
    assert text.startswith("## Trunk digest of main")
    assert "| landed again |" in text
    assert "<b>" not in text


def test_areas_are_those_of_the_project(here, history, project):
    (project / "pyproject.toml").write_text('[tool.sooner.areas]\nkernels = ["csrc", "*.cu"]\n')
    found = json.loads(here("trunk", "digest", "--history", history, "--json").stdout)
    assert "kernels" in {area["name"] for area in found["areas"]}


@pytest.mark.parametrize(
    "case",
    [
        ("[tool.sooner.areas]\nkernels = 3\n", (), 'tool.sooner.areas must be name = ["folder", "glob"]'),
        ("[tool.sooner.area]\n", (), "tool.sooner.area is unknown: the tables are run, areas"),
        ("", ("--since", "x"), "--since 'x' is neither a date"),
        ("", ("--history", "nowhere"), "there is no history at nowhere"),
        ("", ("--required", "cI"), "nothing of the history has the workflow 'cI': there is 'ci'"),
    ],
)
def test_what_is_not_understood_is_one_clear_error(here, history, project, case):
    settings, options, text = case
    (project / "pyproject.toml").write_text(settings)
    done = here("trunk", "digest", "--history", history, *options)
    assert done.returncode == 4
    assert text in done.stderr


def test_where_a_time_has_nothing_one_is_told_when_the_history_ends(here, history):
    from sooner.history import History

    done = here("trunk", "digest", "--history", history, "--since", "2020-01-01", "--until", "2020-01-02")
    assert done.returncode == 5
    with History(history) as kept:
        last = max(table.last for table in kept.info().values() if table.last)
    assert f"its newest record is of {time.strftime('%Y-%m-%d %H:%M', time.gmtime(last))} UTC" in done.stderr


def test_what_a_selection_left_in_the_history_is_not_the_newest_record_of_the_trunk(here, history):
    from sooner.history import History, MeasureRow

    with History(history) as kept:
        last = max(table.last for table in kept.info().values() if table.last)
        kept.add_measures([MeasureRow(name="selection.selected", value=3.0, commit="c", at=last + 86_400)])
    done = here("trunk", "digest", "--history", history, "--since", "2020-01-01", "--until", "2020-01-02")
    assert f"its newest record is of {time.strftime('%Y-%m-%d %H:%M', time.gmtime(last))} UTC" in done.stderr


def test_the_trunk_is_the_one_that_verdicts_are_about_however_busy_another_branch_is(sooner, tmp_path):
    from sooner.history import History, HistoryOutcome, JobRow

    now = time.time()
    busy = {"main": 1, "export/1": 5}
    rows = [
        JobRow(job="linux", commit=f"{i}{branch}", branch=branch, event="push", run=f"{i}{branch}", created=now - 60,
               started=now - 60, completed=now - 30, outcome=HistoryOutcome.PASSED)
        for branch, count in busy.items() for i in range(count)
    ]  # fmt: skip
    with History(tmp_path / "h") as kept:
        kept.add_jobs(rows)
    answer = json.loads(sooner("trunk", "digest", "--history", tmp_path / "h", "--json").stdout)
    assert (answer["branch"], answer["commits"]) == ("main", 1)
