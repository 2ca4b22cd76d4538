"""GitHub's jobs and runs from files: every way in which they are dumped, every trap that they hold."""

import json

import pytest

from sooner.history import HistoryOutcome

HOUR = 3600.0
DAY = 24 * HOUR
T0 = 1_767_225_600.0
"""2026-01-01 00:00 UTC."""


def stamp(seconds):
    """Seconds after T0 as GitHub writes a time."""
    from datetime import UTC, datetime

    return None if seconds is None else datetime.fromtimestamp(T0 + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def step(name, begin, end, conclusion="success"):
    status = "completed" if end is not None else "in_progress"
    return {
        "name": name,
        "status": status,
        "conclusion": conclusion,
        "started_at": stamp(begin),
        "completed_at": stamp(end),
    }


def job(name="build", *, created=0, started=10, completed=70, steps=None, **more):
    return {
        "id": 500, "run_id": 7, "run_attempt": 1, "head_sha": "c0ffee", "head_branch": "main", "workflow_name": "trunk",
        "run_url": "https://api.github.com/repos/o/n/actions/runs/7", "name": name, "status": "completed",
        "conclusion": "success", "created_at": stamp(created), "started_at": stamp(started),
        "completed_at": stamp(completed), "labels": ["linux.gpu"], "runner_id": 3, "runner_name": "r3",
        "steps": [step("Test", started, completed)] if steps is None else steps, **more,
    }  # fmt: skip


def run(**more):
    return {
        "id": 7, "name": "trunk", "workflow_id": 1, "run_number": 12, "run_attempt": 1, "event": "push",
        "head_sha": "c0ffee", "head_branch": "main", "status": "completed", "conclusion": "success",
        "created_at": stamp(-5), "run_started_at": stamp(-5), "updated_at": stamp(80), "pull_requests": [],
        "repository": {"full_name": "o/n"}, **more,
    }  # fmt: skip


def never_ran(**more):
    return {"steps": [], "runner_id": 0, "runner_name": "", **more}


@pytest.fixture
def only(history, take, write):
    """Take items in and return the one job that is left."""

    def only(*items):
        report = take(write("dump.json", list(items)))
        assert report["rejected"] == []
        (row,) = history.jobs()
        return row

    return only


def pages(key, items, size=2):
    """As `gh api --paginate` prints them: one document after the other."""
    return "".join(
        json.dumps({"total_count": len(items), key: items[i : i + size]}) + ("\n" if i else "")
        for i in range(0, len(items), size)
    )


JOBS = [job(f"job{i}", id=100 + i) for i in range(5)]


@pytest.mark.parametrize(
    "text",
    [
        pages("jobs", JOBS),
        json.dumps(JOBS),
        json.dumps(JOBS, indent=2),
        json.dumps([{"total_count": 5, "jobs": JOBS[:3]}, {"total_count": 5, "jobs": JOBS[3:]}]),
        "".join(json.dumps(item) + "\n" for item in JOBS),
        "\ufeff" + json.dumps({"total_count": 5, "jobs": JOBS}, indent=1),
        "".join(json.dumps({"action": "completed", "workflow_job": item}) + "\n" for item in JOBS),
        json.dumps([{"event": "workflow_job", "payload": {"workflow_job": item}} for item in JOBS]),
        json.dumps([{"id": i, "body": json.dumps({"workflow_job": item})} for i, item in enumerate(JOBS)]),
    ],
)  # fmt: skip
def test_every_way_to_dump_jobs_is_read(history, take, write, text):
    report = take(write("jobs.json", text))
    assert (report["tables"]["jobs"], report["rejected"]) == (5, [])
    assert {row.job for row in history.jobs()} == {f"job{i}" for i in range(5)}
    row = history.jobs()[0]
    assert (row.repository, row.workflow, row.run, row.commit, row.branch, row.runner) == (
        "o/n", "trunk", "7", "c0ffee", "main", "linux.gpu",
    )  # fmt: skip
    assert (row.created - T0, row.started - T0, row.completed - T0, row.outcome) == (0, 10, 70, "passed")


def test_the_same_dump_again_adds_nothing(take, write):
    take(write("a.json", pages("jobs", JOBS)))
    assert take(write("b.json", json.dumps(JOBS)))["added"] == 0


@pytest.mark.parametrize("first", ["runs.json", "jobs.json"])
def test_jobs_and_runs_find_each_other_in_any_order(history, take, write, first):
    runs = write("runs.json", pages("workflow_runs", [run(pull_requests=[{"number": 177085}])]))
    jobs = write("jobs.json", pages("jobs", [job()]))
    for path in sorted([runs, jobs], key=lambda path: path.name != first):
        take(path)
    (row,) = history.jobs()
    assert (row.run_created - T0, row.event, row.pull_request) == (-5, "push", 177085)
    (whole,) = history.runs()
    assert (whole.number, whole.outcome, whole.completed - T0) == (12, "passed", 80)


def test_started_at_is_not_believed_while_a_job_queues(only):
    row = only(job(status="queued", conclusion=None, started=0, completed=None, **never_ran()))
    assert (row.outcome, row.started, row.created - T0) == ("running", None, 0)


def test_a_queued_job_with_steps_has_started(only):
    steps = [step("Set up job", 40, None)]
    row = only(job(status="queued", conclusion=None, started=0, completed=None, steps=steps))
    assert (row.outcome, row.started - T0) == ("running", 40)


def test_created_at_of_a_run_survives_a_re_run_and_is_not_believed_then(history, take, write):
    again = run(run_attempt=2, run_started_at=stamp(5 * HOUR), updated_at=stamp(6 * HOUR))
    take(
        write(
            "r.json", [run(), again, job(run_attempt=2, created=5 * HOUR, started=5 * HOUR + 9, completed=5.5 * HOUR)]
        )
    )
    first, second = history.runs()
    assert (first.created - T0, second.created - T0, second.first_created - T0) == (-5, 5 * HOUR, -5)
    assert [row.run_created - T0 for row in history.jobs()] == [5 * HOUR]


def test_copies_that_re_run_failed_jobs_makes_are_no_attempts(history, take, write):
    """`build` passed and `test` failed; the re-run shows `build` again: created after it ended, a negative wait."""
    take(
        write("jobs.json", [
            job("build", id=1), job("test", id=2, conclusion="failure"),
            job("build", id=3, run_attempt=2, created=5 * HOUR),
            job("test", id=4, run_attempt=2, created=5 * HOUR, started=5 * HOUR + 10, completed=6 * HOUR),
        ])
    )  # fmt: skip
    told = [(row.job, row.attempt, row.outcome) for row in history.jobs()]
    assert sorted(told) == [("build", 1, "passed"), ("test", 1, "failed"), ("test", 2, "passed")]
    assert all(row.started >= row.created for row in history.jobs())


def test_a_copy_counts_where_the_job_that_ran_is_not_known(history, take, write):
    take(write("jobs.json", [job("build", id=3, run_attempt=2, created=5 * HOUR)]))
    (copy,) = history.jobs()
    assert (copy.shadow, copy.attempt, copy.created, copy.started - T0) == ("copied", 1, None, 10)
    take(write("again.json", [job("build", id=9, run_attempt=3, created=9 * HOUR)]))
    assert len(history.jobs()) == 1
    take(write("first.json", [job("build", id=1)]))
    assert [row.shadow for row in history.jobs()] == [""]


def test_a_re_run_that_started_late_is_no_copy(only):
    row = only(job(run_attempt=2, created=HOUR, started=HOUR + 9, completed=2 * HOUR))
    assert (row.shadow, row.attempt) == ("", 2)


def test_a_job_that_lost_its_runner_ended_at_its_last_sign_of_life(only):
    steps = [step("Set up job", 10, 20), step("Test", 20, None, None)]
    row = only(job(conclusion="failure", started=10, completed=3 * DAY, steps=steps))
    assert (row.outcome, row.completed - T0, row.closed - T0) == ("infrastructure", 20, 3 * DAY)


def test_a_job_of_which_neither_attempt_nor_start_is_told_is_taken_as_it_is(only):
    told = job(started=None, steps=[], conclusion="failure")
    del told["run_attempt"]
    row = only(told)
    assert (row.attempt, row.started, row.completed, row.outcome) == (1, None, T0 + 70, "failed")


def test_a_job_that_no_runner_took_was_never_started(only):
    row = only(job(conclusion="cancelled", started=DAY, completed=DAY + 60, **never_ran()))
    assert (row.outcome, row.started, row.completed, row.closed - T0) == ("infrastructure", None, None, DAY + 60)


def test_a_job_that_somebody_cancelled_in_the_queue_is_cancelled(only):
    row = only(job(conclusion="cancelled", started=30, completed=30, **never_ran()))
    assert (row.outcome, row.started, row.completed) == ("cancelled", None, None)


def test_a_job_without_steps_that_took_longer_than_any_may_was_closed(only):
    told = job(conclusion="failure", completed=8 * DAY)
    del told["steps"]
    row = only(told)
    assert (row.outcome, row.completed, row.closed - T0) == ("infrastructure", None, 8 * DAY)


def test_a_long_job_that_worked_to_its_end_is_as_it_says(only):
    row = only(job(conclusion="failure", completed=30 * HOUR, steps=[step("Test", 10, 30 * HOUR, "failure")]))
    assert (row.outcome, row.completed - T0, row.closed, row.failure_line) == ("failed", 30 * HOUR, None, "step: Test")


def test_jobs_that_share_a_placeholder_id_stay_apart(history, take, write):
    take(write("jobs.json", [job("a", id=0), job("b", id=0), job("c", id=-1), job("d", id=4), job("e", id=4)]))
    assert sorted(row.job for row in history.jobs()) == ["a", "b", "c", "d", "e"]


def test_a_placeholder_is_hidden_by_the_job_that_ran(history, take, write):
    waiting = job("test (1)", id=10, status="queued", conclusion=None, started=0, completed=None, **never_ran())
    take(write("queued.json", [waiting]))
    assert [(row.job_id, row.shadow) for row in history.jobs()] == [("10", "placeholder")]
    take(write("ran.json", [job("test (1)", id=11)]))
    assert [(row.job_id, row.shadow, row.outcome) for row in history.jobs()] == [("11", "", "passed")]


def test_two_jobs_of_one_name_that_both_ran_are_two(history, take, write):
    take(write("jobs.json", [job("test", id=1), job("test", id=2, conclusion="failure")]))
    assert sorted((row.job_id, row.outcome) for row in history.jobs()) == [("1", "passed"), ("2", "failed")]


@pytest.mark.parametrize(
    ("conclusion", "outcome"),
    [
        ("success", "passed"), ("failure", "failed"), ("cancelled", "cancelled"), ("timed_out", "timed_out"),
        ("skipped", "skipped"), ("neutral", "passed"), ("action_required", "not_run"), ("stale", "infrastructure"),
        ("startup_failure", "infrastructure"), (None, "infrastructure"),
    ],
)  # fmt: skip
def test_conclusions_stay_apart(only, conclusion, outcome):
    assert only(job(conclusion=conclusion)).outcome == outcome


def test_a_skipped_job_was_not_started(only):
    row = only(job(conclusion="skipped", started=0, completed=0, **never_ran()))
    assert (row.outcome, row.started) == ("skipped", None)


def test_webhooks_tell_a_job_as_it_goes_on(history, take, write):
    repository = {"full_name": "o/n"}
    waiting = job(status="queued", conclusion=None, started=0, completed=None, **never_ran())
    going = job(status="in_progress", conclusion=None, completed=None, steps=[step("Set up job", 10, None)])
    events = [{"action": "x", "workflow_job": told, "repository": repository} for told in (job(), waiting, going)]
    for number, event in enumerate(events):
        take(write(f"{number}.json", [event]))
    (row,) = history.jobs()
    assert (row.outcome, row.completed - T0) == (HistoryOutcome.PASSED, 70)
    take(write("run.json", [{"action": "completed", "workflow_run": run(), "repository": repository}]))
    assert [row.outcome for row in history.runs()] == ["passed"]


def test_steps_are_measured(history, take, write):
    steps = [step("Set up job", 10, 25), step("Test", 25, 60), step("Test", 60, 62), step("Post", 62, None)]
    take(write("jobs.json", [job(steps=steps)]))
    told = [(row.subject, row.name, row.value, row.unit, row.at - T0, row.job) for row in history.measures()]
    assert told == [
        ("Set up job", "step_seconds", 15.0, "s", 10, "build"), ("Test", "step_seconds", 35.0, "s", 25, "build"),
        ("Test #2", "step_seconds", 2.0, "s", 60, "build"),
    ]  # fmt: skip


def test_the_head_commit_of_a_run_is_known(history, take, write):
    head = {"id": "c0ffee", "message": "Fix it\n\nreally", "timestamp": stamp(-60), "author": {"name": "Ada"}}
    take(write("runs.json", [run(head_commit=head)]))
    assert [(row.sha, row.message, row.author, row.time - T0) for row in history.commits()] == [
        ("c0ffee", "Fix it\n\nreally", "Ada", -60)
    ]


def test_what_is_neither_job_nor_run_is_located_and_stops_nothing(take, write):
    items = [
        job(id=1),
        {"zen": "hello", "hook_id": 3},
        job("", id=2),
        {**job(id=3), "created_at": "soon"},
        job("last", id=4),
    ]
    report = take(write("mixed.jsonl", items), format="github")
    assert report["tables"]["jobs"] == 2
    assert [(rejected["line"], rejected["reason"]) for rejected in report["rejected"]] == [
        (2, "neither a job nor a run of GitHub Actions"), (3, "a job without a name"), (4, "'soon' is no time"),
    ]  # fmt: skip


@pytest.mark.parametrize("cut", [40, 400, 1500])
def test_a_dump_that_was_cut_is_kept_as_far_as_it_goes(take, write, cut):
    text = pages("jobs", JOBS, size=5)
    report = take(write("cut.json", text[:-cut]), format="github")
    assert report["tables"].get("jobs", 0) >= 2
    (rejected,) = report["rejected"]
    assert "ends in the middle" in rejected["reason"]


def test_a_broken_item_in_the_middle_costs_only_itself(take, write):
    lines = [json.dumps(item) for item in JOBS]
    lines[2] = lines[2].replace('"run_id": 7', '"run_id": seven')
    report = take(write("broken.jsonl", "\n".join(lines) + "\n"), format="github")
    assert report["tables"]["jobs"] == 4
    assert [rejected["line"] for rejected in report["rejected"]] == [3]


@pytest.mark.parametrize("time", [1e30, 10**400, 1e15, float("nan"), "99999-01-01T00:00:00Z"])
def test_a_time_that_no_calendar_has_costs_only_its_item(take, write, time):
    items = [*JOBS[:2], {**JOBS[2], "started_at": time}]
    text = "".join(json.dumps(item) + "\n" for item in items)
    report = take(write("times.jsonl", text), format="github")
    assert report["tables"]["jobs"] == 2
    (rejected,) = report["rejected"]
    assert rejected["reason"]


@pytest.mark.parametrize("number", [2**63, 10**30, "9" * 19, "9" * 5000])
def test_a_number_that_counts_nothing_is_none(history, take, write, number):
    items = [run(run_number=number, pull_requests=[{"number": number}]), {**JOBS[0], "run_attempt": number}, JOBS[1]]
    report = take(write("numbers.jsonl", "".join(json.dumps(item) + "\n" for item in items)), format="github")
    assert (report["tables"]["jobs"], report["tables"]["runs"], report["rejected"]) == (2, 1, [])
    (only,) = history.runs()
    assert (only.number, only.pull_request) == (None, None)
