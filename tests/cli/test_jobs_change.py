"""What `[ci skip ...]` cannot take away from `sooner jobs for-change`, and what is recorded of a change."""

import json

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("scipy")

AT = 1_750_000_000.0
LAID_DOWN = """
[tool.sooner.jobs]
pinned = ["lint"]
[tool.sooner.jobs.facets]
gpu = "gpu *"
[tool.sooner.jobs.floors]
gpu = 1
"""


@pytest.fixture
def skipping(here, project):
    from sooner.history import History, HistoryOutcome, JobRow

    with History(project / "h") as history:
        history.add_jobs([
            JobRow(job=job, commit=f"c{i}", run=f"r{i}", outcome=HistoryOutcome.PASSED, started=at, completed=at + 60)
            for i in range(20) for job in ("lint", "gpu a", "gpu b") for at in [AT + i * 600]
        ])  # fmt: skip
    (project / "pyproject.toml").write_text(LAID_DOWN)

    def call(message):
        (project / "message").write_text(message)
        done = here("jobs", "for-change", "--message-file", "message", "--history", "h", "--sample", "0", "--json")
        assert done.returncode == 0, done.stderr
        return {line["job"] for line in json.loads(done.stdout)["jobs"]}, done.stderr

    return call


def test_a_message_skips_no_job_that_the_project_pins(skipping):
    jobs, told = skipping("x [ci skip *]")
    assert jobs == {"lint"}
    assert "note: 'lint' is pinned and runs all the same: [ci skip *]" in told
    assert "note: fewer of 'gpu' run than tool.sooner.jobs.floors asks for: [ci skip *]" in told


@pytest.mark.parametrize("skipped", ["a", "b"])
def test_a_facet_of_which_one_job_is_skipped_has_another_one(skipping, skipped):
    jobs, told = skipping(f"x [ci skip gpu {skipped}]")
    assert jobs == {"lint", "gpu b" if skipped == "a" else "gpu a"}
    assert "floors" not in told


def test_where_no_breakage_is_known_no_recall_but_that_of_chance_is_promised(skipping, here, project):
    from sooner.history import History, Where

    skipping("x")  # the history
    done = here("jobs", "for-change", "--history", "h", "--budget", "0.6", "--record", "--id", "p1")
    assert "no breakage is known that tells what it would catch" in done.stdout
    with History(project / "h") as history:
        rows = history.columns("measures", ["name", "value"], Where())
    codes, names = rows.text("name")
    (value,) = rows.number("value")[codes == names.index("selection.recall")]
    assert value == 0.6


def test_a_change_runs_the_jobs_that_changes_of_its_folders_have_broken(here, project):
    commits, jobs = 400, [f"test {i}" for i in range(8)]
    rows, files = ["commit,time,job,status,duration_s,attempt"], ["commit,parent,commit_time,file"]
    for i in range(commits):
        sha, at = f"{i:040x}", AT + i * 28800
        files.append(f"{sha},{i - 1:040x},{at - 60:.0f},src/part{i * 5 % 8}/a.py")
        for j, job in enumerate(jobs):
            status = "fail" if i % 6 == 0 and i * 5 % 8 == j else "pass"
            rows += [f"{sha},{at + again * 3600:.0f},{job},{status},1200,{again}" for again in (1, 2)]
    (project / "jobs.csv").write_text("\n".join(rows) + "\n")
    (project / "files.csv").write_text("\n".join(files) + "\n")
    assert here("ingest", "jobs.csv", "files.csv", "--history", "h").returncode == 0
    options = ("--history", "h", "--budget", "0.15", "--sample", "0", "--json")
    for part in (2, 4):
        (project / "files").write_text(f"src/part{part}/b.py\n")
        done = here("jobs", "for-change", "--files-file", "files", *options)
        (told,) = [line for line in json.loads(done.stdout)["jobs"] if line["job"] == f"test {part}"]
        assert "changes like this one break it" in told["why"]
        assert "no changed files" not in done.stderr
    assert "no changed files are given (--files-file)" in here("jobs", "for-change", *options).stderr
    lines = json.loads(here("jobs", "backtest", *options[:4], "--json").stdout)["commits"]
    broken = [line for line in lines if int(line["sha"], 16) % 6 == 0]
    hits = [f"test {int(line['sha'], 16) * 5 % 8}" in line["selected"] for line in broken]
    assert sum(hits) >= 0.9 * len(hits)
