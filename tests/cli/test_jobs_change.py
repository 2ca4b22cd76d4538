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
