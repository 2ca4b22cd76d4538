"""`sooner trunk verdicts`, `decide` and `simulate` through the real command line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

pytest.importorskip("duckdb")

START = 1_767_571_200.0  # 2026-01-05
COMMITS = 30
CULPRIT = 20


@pytest.fixture
def history(project):
    """Commits every half hour; `test` is broken from commit 20 on, its suspect and parent ran twice more."""
    from sooner.history import CommitRow, History, HistoryOutcome, JobRow

    rows = []
    for i in range(COMMITS):
        for job in ("build", "test (default, 1, 1, gpu)"):
            runs = 3 if i in {CULPRIT, CULPRIT - 1} and job != "build" else 1
            for attempt in range(runs):
                at = START + i * 1800 + attempt * 7200
                is_bad = job != "build" and i >= CULPRIT
                outcome = HistoryOutcome.FAILED if is_bad else HistoryOutcome.PASSED
                rows.append(
                    JobRow(
                        repository="o/r", workflow="ci", run=f"r{i}", attempt=attempt + 1, job=job, commit=f"{i:040x}",
                        branch="main", run_created=at, created=at, started=at + 30, completed=at + 900, outcome=outcome,
                    )
                )  # fmt: skip
    commits = [CommitRow(repository="o/r", sha=f"{i:040x}", time=START + i * 1800) for i in range(COMMITS)]
    with History(project / "h") as kept:
        kept.add_jobs(rows)
        kept.add_commits(commits)
    return project / "h"


def test_the_culprit_is_named_with_its_probability(here, history):
    document = json.loads(here("trunk", "verdicts", "--history", history, "--json").stdout)
    (revert,) = [one for one in document["decisions"] if one["decision"] == "revert"]
    assert revert["culprit"] == f"{CULPRIT:040x}"
    assert revert["signals"] == ["ci / test (default)"]
    assert revert["probability"] > 0.998


def test_it_is_said_whether_paths_told_anything(here, history):
    document = json.loads(here("trunk", "verdicts", "--history", history, "--json").stdout)
    assert document["paths"] == {"culprits": 0, "gain": 0.0, "used": False}


def test_people_read_the_revert_first(here, history):
    lines = here("trunk", "verdicts", "--history", history).stdout.splitlines()
    assert lines[1].startswith(f"REVERT {CULPRIT:040x}"[:19])
    assert "held: 1 passing" in lines


def test_the_past_is_replayed(here, history):
    before = START + (CULPRIT - 1) * 1800
    document = json.loads(here("trunk", "verdicts", "--history", history, "--as-of", before, "--json").stdout)
    assert {one["decision"] for one in document["decisions"]} == {"hold"}
    assert len(document["commits"]) == CULPRIT


def test_nothing_of_what_came_later_is_known_then(here, tmp_path):
    from sooner.history import CommitRow, History, HistoryOutcome, JobRow, TestRow

    now = START + 3 * 3600.0
    jobs, commits, tests = [], [], []
    for i in range(6):  # the last commit has no job yet
        at, sha = START + i * 1800.0, f"{i + 1:040x}"
        commits.append(CommitRow(sha=sha, time=at, branch="main", parents=(f"{i:040x}",) if i else ()))
        for shard, seconds in ((1, 300.0), (2, 5400.0)):  # the second shard of three commits still runs
            broken = i >= 3 and shard == 1
            outcome = HistoryOutcome.FAILED if broken else HistoryOutcome.PASSED
            outcome = HistoryOutcome.CANCELLED if i == 4 and shard == 2 else outcome  # later
            name = {"workflow": "ci", "run": f"r{i}", "job": f"test (default, {shard}, 2)", "job_id": f"{i}.{shard}"}
            times = {"created": at + 60 + 1800 * (i == 5), "started": at + 120 + 1800 * (i == 5)}
            more = {"commit": sha, "branch": "main", "event": "push", "outcome": outcome}
            jobs.append(JobRow(**name, **times, completed=at + 120 + seconds, **more))
        for attempt, outcome in enumerate((HistoryOutcome.FAILED, HistoryOutcome.PASSED)):  # a retry, later
            case = {"unit": "t.py", "node_id": "t.py::test_a", "attempt": attempt + 1, "kind": "case", "seconds": 9.0}
            began = at + 150 + attempt * 3600
            tests.append(TestRow(run=f"r{i}", job="ci / test", commit=sha, started=began, outcome=outcome, **case))
    ran = [
        job if job.completed <= now else replace(job, completed=None, outcome=HistoryOutcome.RUNNING)
        for job in jobs
        if job.started <= now
    ]
    told = []
    for name, *rows in (("all", jobs, tests), ("then", ran, [one for one in tests if one.started + 9 <= now])):
        with History(tmp_path / name) as history:
            history.add_commits(commits)
            history.add_jobs(rows[0])
            history.add_tests(rows[1])
        for policy in ("bayes", "rules"):
            options = ("--as-of", now, "--policy", policy, "--json")
            told.append(here("trunk", "verdicts", "--history", tmp_path / name, *options).stdout)
    assert told[:2] == told[2:]
    assert len(json.loads(told[0])["commits"]) == 5
    assert {one["key"] for one in json.loads(told[0])["signals"]} == {
        "ci / test (default)",
        "ci / test :: t.py::test_a",
    }


def test_before_the_record_began_there_is_no_verdict(here, history):
    done = here("trunk", "verdicts", "--history", history, "--as-of", START - 3600, "--json")
    assert (done.returncode, json.loads(done.stdout)["decisions"]) == (0, [])


def test_breakages_of_the_whole_history_are_listed(here, history):
    (found,) = json.loads(here("trunk", "verdicts", "--history", history, "--breakages", "--json").stdout)
    assert found["culprit"] == f"{CULPRIT:040x}"
    assert found["range"] == [found["culprit"]]
    assert found["fixed"] is None


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--as-of", "soon"), "--as-of 'soon': neither ISO 8601"),
        (("--as-of", "1767571200000"), "is in milliseconds: epoch seconds are 1767571200"),
        (("--as-of", "nan"), "--as-of 'nan': no time"),
        (("--as-of", "-1"), "--as-of '-1': no time"),
        (("--as-of", "9999-12-31T23:59-12:00"), "--as-of '9999-12-31T23:59-12:00': no time"),
        (("--window", "1"), "--window 1: at least 2 commits"),
        (("--history", "nowhere"), "nowhere"),
        (("--branch", "no-such-branch"), "no job of the history has the branch"),
    ],
)
def test_what_is_not_understood_is_one_clear_error(here, history, options, text):
    done = here("trunk", "verdicts", "--history", history, *options)
    assert done.returncode == 4
    assert text in done.stderr
    assert done.stdout == ""


def document(**more):
    events = [{"sha": "b", "status": "failure", "started_at": 20}, {"sha": "a", "status": "success", "started_at": 10}]
    signals = [{"key": "x", "kind": "job", "flake_prior": [1, 100], "events": events}]
    return {
        "id": "q",
        "now": 30,
        "commits": [{"sha": "b", "time": 2}, {"sha": "a", "time": 1}],
        "signals": signals,
        **more,
    }


def test_the_question_of_the_how_to_has_the_answer_that_stands_there(here):
    page = (Path(__file__).parents[2] / "docs/how-to/trunk.md").read_text(encoding="utf-8")
    _, told = page.split("$ cat question.json\n")
    question, told = told.split("    $ tr -d ")
    answer = told.splitlines()[1].strip()
    done = here("trunk", "decide", "--jsonl", stdin=question.replace("\n", ""))
    assert done.stdout.startswith(answer.removesuffix("..."))


@pytest.mark.parametrize("policy", ["bayes", "rules"])
def test_a_document_a_line_gives_decisions_a_line(sooner, policy):
    text = "\n".join(json.dumps(document(id=number)) for number in (1, 2)) + "\n\n"
    done = sooner("trunk", "decide", "--jsonl", "--policy", policy, stdin=text)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [1, 2]
    assert all(len(answer["decisions"]) == 1 for answer in answers)


def test_a_broken_document_does_not_stop_the_loop(here):
    bad = document(id=7)
    bad["signals"][0]["events"][0]["status"] = "odd"
    text = "\n".join(["{", json.dumps(bad), json.dumps(document(id=8))]) + "\n"
    done = here("trunk", "decide", "--jsonl", stdin=text)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 4
    assert [answer["id"] for answer in answers] == [None, 7, 8]
    assert "line 2: Invalid enum value 'odd'" in answers[1]["error"]
    assert answers[2]["decisions"]


@pytest.mark.parametrize(
    ("of_signal", "limits", "text"),
    [
        ({"flake_prior": [-1, 2]}, {}, "`float` >= 0"),
        ({"flake_prior": [1000, 1]}, {}, "flake_prior is [failures, runs]: 1000 failures of 1 runs"),
        ({"priors": {"b": -1}}, {}, "`float` >= 0"),
        ({}, {"revert_probability": 2}, "`float` <= 1"),
        ({}, {"max_reruns_per_commit": -4}, "`int` >= 0"),
        ({"kind": "unit"}, {}, "Invalid enum value 'unit' - at `$.signals[0].kind`: there are test and job"),
        (
            {"events": [{"sha": "b", "status": "cancelled", "started_at": 1}]},
            {},
            "`: there are success, failure, pending",
        ),
    ],
)
def test_numbers_and_words_that_cannot_be_are_an_error_of_their_line(here, of_signal, limits, text):
    bad = document(limits=limits)
    bad["signals"][0] |= {"key": "x", **of_signal}
    done = here("trunk", "decide", "--jsonl", stdin=json.dumps(bad) + "\n")
    assert done.returncode == 4
    assert text in json.loads(done.stdout)["error"]


def test_limits_that_are_none_are_named_once_and_the_others_hold(here):
    odd = document(limits={"max_rerun_per_commit": 1, "patience": 2, "max_reruns_per_decision": 0})
    done = here("trunk", "decide", "--jsonl", stdin=f"{json.dumps(odd)}\n{json.dumps(odd)}\n")
    assert done.returncode == 0
    assert [answer["decisions"][0]["decision"] for answer in map(json.loads, done.stdout.splitlines())] == ["hold"] * 2
    misspelled, unknown = done.stderr.splitlines()
    assert (
        "line 1: limits: 'max_rerun_per_commit' is unknown and limits nothing: did you mean 'max_reruns_per"
        in misspelled
    )
    assert "'patience' is unknown and limits nothing: there are max_reruns_per_commit, " in unknown


@pytest.mark.parametrize("identity", [1.5, "a", 7, None])
def test_whatever_identifies_a_document_comes_back(here, identity):
    done = here("trunk", "decide", "--jsonl", stdin=json.dumps(document(id=identity)) + "\n")
    assert done.returncode == 0
    assert json.loads(done.stdout)["id"] == identity


def test_commits_that_are_oldest_first_are_told_but_judged_in_their_order(here):
    commits = [{"sha": "b", "time": 1}, {"sha": "a", "time": 2}]
    done = here("trunk", "decide", "--jsonl", stdin=json.dumps(document(commits=commits)) + "\n")
    assert done.returncode == 0
    assert "line 1: commits look oldest first; they must be newest first" in done.stderr
    assert len(json.loads(done.stdout)["decisions"]) == 1


def test_times_in_milliseconds_are_told(here):
    late = json.dumps(document(now=START * 1000))
    done = here("trunk", "decide", "--jsonl", stdin=f"{late}\n{late}\n")
    assert done.returncode == 0
    assert done.stderr == "sooner: line 1: times look like milliseconds; they must be epoch seconds\n"


def test_runs_that_began_after_the_moment_of_the_document_are_told_and_count(here):
    skewed, late = (document(now=START - before) for before in (300, 3600))
    for one in (skewed, late):
        one["signals"] = [{"key": "x", "events": [{"sha": "a", "status": "failure", "started_at": START}]}]
        one["commits"] = [{"sha": "a", "time": START}]
    done = here("trunk", "decide", "--jsonl", stdin=f"{json.dumps(skewed)}\n{json.dumps(late)}\n")
    assert done.stderr == (
        "sooner: line 2: runs began after `now`, and count all the same; tell `now` as it is, or leave out what came "
        "later\n"
    )
    first, second = (json.loads(line)["decisions"] for line in done.stdout.splitlines())
    assert first == second


def test_events_of_no_commit_of_the_document_are_told(here):
    short = document()
    short["commits"] = [{**commit, "sha": commit["sha"] + "0123456"} for commit in short["commits"]]
    done = here("trunk", "decide", "--jsonl", stdin=json.dumps(short) + "\n")
    assert done.stderr == (
        "sooner: line 1: no event is of one of the commits, so none is looked at; both must spell a commit alike\n"
    )


def test_a_failure_that_stands_twice_is_told(here):
    run = {"status": "failure", "started_at": START, "ended_at": START + 9}
    attempts, repeated = document(now=START + 60), document(now=START + 60)
    sha = attempts["commits"][0]["sha"]
    attempts["signals"] = [{"key": "x", "events": [{"sha": sha, **run, "attempt": k} for k in (1, 2)]}]
    repeated["signals"] = [{"key": "x", "events": [{"sha": sha, **run}] * 2}]
    done = here("trunk", "decide", "--jsonl", stdin=f"{json.dumps(attempts)}\n{json.dumps(repeated)}\n")
    assert done.stderr == (
        "sooner: line 2: a failure stands there twice, alike in all, and counts as two; leave repeats out, or tell "
        "`attempt`\n"
    )


def test_simulated_trunks_compare_the_policies(here):
    done = here("trunk", "simulate", "--trunks", "4", "--scenario", "flakes 0.01", "--jobs", "1", "--json")
    rows = json.loads(done.stdout)
    assert [row["policy"] for row in rows] == ["rules", "bayes"]
    assert rows[1]["score"]["trunks"] == 4


def test_a_scenario_is_picked_by_its_name_or_by_a_part_of_several(here):
    done = here("trunk", "simulate", "--list", "--scenario", "flakes 0.05", "--scenario", "outage of 6 h")
    names = ["flakes 0.05", "outage of 6 h, nobody's fault", "outage of 6 h over a break"]
    assert done.stdout.splitlines() == names


def test_an_unknown_scenario_names_those_there_are(here):
    done = here("trunk", "simulate", "--scenario", "outage", "--scenario", "sunshine")
    assert done.returncode == 4
    assert not done.stdout
    assert "no scenario's name holds 'sunshine': there are 'flakes 0.01'" in done.stderr


def test_the_group_lists_its_verbs(here):
    assert "verdicts" in here("trunk", "--help").stdout


@pytest.mark.parametrize(
    ("group", "typed", "meant"), [("trunk", "verdict", "verdicts"), ("jobs", "for-chang", "for-change")]
)
def test_a_mistyped_verb_of_a_group_is_told_with_the_nearest(here, group, typed, meant):
    done = here(group, typed)
    assert done.returncode == 4
    assert f"there is no verb {typed!r}: did you mean {meant!r}?" in done.stderr


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("flaky", "trunk flaky"),
        ("digest", "trunk digest"),
        ("backtset", "jobs backtest"),
        ("compact", "history compact"),
        ("needz", "needs"),
    ],
)
def test_a_verb_of_a_group_that_is_typed_without_it_is_told_with_it(here, typed, meant):
    done = here(typed)
    assert done.returncode == 4
    assert f"there is no verb {typed!r}: did you mean {meant!r}?" in done.stderr


def test_a_commit_that_stands_twice_in_a_document_counts_once(here):
    once, twice = document(), document()
    twice["commits"] = [*twice["commits"], *twice["commits"][:3]]
    done = here("trunk", "decide", "--jsonl", stdin=f"{json.dumps(once)}\n{json.dumps(twice)}\n")
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == second


def test_a_signal_that_stands_twice_in_a_document_is_no_second_witness(here):
    once, twice = document(), document()
    twice["signals"] = twice["signals"] * 2
    done = here("trunk", "decide", "--jsonl", stdin=f"{json.dumps(once)}\n{json.dumps(twice)}\n")
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == second


def test_a_document_that_is_nested_too_deeply_does_not_stop_the_loop(here):
    deep = json.dumps(document())[:-1] + ', "more": ' + "[" * 5_000 + "]" * 5_000 + "}"
    text = "\n".join(["[" * 100_000, deep, json.dumps(document(id=8))]) + "\n"
    done = here("trunk", "decide", "--jsonl", stdin=text)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, len(answers)) == (4, 3), done.stderr
    assert "Traceback" not in done.stderr
    assert answers[2]["decisions"]


def test_documents_may_begin_with_a_byte_order_mark_and_end_lines_as_windows_does(here):
    text = json.dumps(document())
    done = here("trunk", "decide", "--jsonl", stdin=f"\ufeff{text}\r\n\r\n{text}\r\n")
    assert done.returncode == 0
    assert len(set(done.stdout.splitlines())) == 1


def test_no_standard_input_is_no_document(project):
    line = f"{sys.executable} -m sooner trunk decide --jsonl <&-"
    assert subprocess.run(["bash", "-c", line], cwd=project, check=False).returncode == 0


def test_verdicts_of_a_history_that_is_not_there_say_so(sooner):
    for more in ((), ("--branch", "main")):
        done = sooner("trunk", "verdicts", "--history", "nowhere", *more)
        assert (done.returncode, "there is no history at nowhere" in done.stderr) == (4, True)


def test_a_time_that_is_empty_is_not_taken_for_now(here, history):
    done = here("trunk", "verdicts", "--history", history, "--as-of", "")
    assert (done.returncode, done.stdout) == (4, "")
    assert "--as-of '': neither ISO 8601" in done.stderr
