"""Which commits and attempts `sooner trunk` takes for the trunk, through the real command line."""

import json

import pytest

pytest.importorskip("duckdb")

START = 1_767_571_200.0  # 2026-01-05
HOUR = 3600.0
DAY = ("--since", "2026-01-05", "--until", "2026-01-05T09:00")


def sha(i):
    return f"{i:040x}"


def row(i, outcome, *, attempt=1, **more):
    from sooner.history import HistoryOutcome, JobRow

    at = START + i * HOUR
    facts = {"workflow": "ci", "run": f"r{i}", "job": "test", "branch": "main", "event": "push", "repository": "o/r"}
    facts |= {"commit": sha(i), "attempt": attempt, "run_created": at, "created": at} | more
    return JobRow(**facts, started=at + 30, completed=at + 900, outcome=HistoryOutcome(outcome))


def commit(i, *, parents=None, **more):
    from sooner.history import CommitRow

    parents = (sha(i - 1),) if parents is None else parents
    return CommitRow(**{"repository": "o/r", "sha": sha(i), "time": START + i * HOUR, "parents": parents} | more)


@pytest.fixture
def keep(project):
    from sooner.history import History

    def kept(jobs=(), commits=(), tests=()):
        with History(project / "h") as history:
            history.add_jobs(jobs)
            history.add_commits(commits)
            history.add_tests(tests)
        return project / "h"

    return kept


def breakages(sooner, root):
    return json.loads(sooner("trunk", "verdicts", "--history", root, "--breakages", "--json").stdout)


def test_a_commit_that_nothing_ran_on_may_be_the_culprit(sooner, keep):
    jobs = [row(i, "failed" if i >= 24 else "passed") for i in range(0, 36, 3)]
    root = keep(jobs, [commit(i) for i in range(36)])
    (found,) = breakages(sooner, root)
    assert set(found["range"]) >= {sha(22), sha(23), sha(24)}
    (decision,) = json.loads(sooner("trunk", "verdicts", "--history", root, "--json").stdout)["decisions"]
    assert {again["sha"] for again in decision["reruns"]} >= {sha(22), sha(23)}


def test_what_a_merge_brought_along_is_no_suspect_of_its_own(here, keep):
    jobs = [row(i, "failed" if i >= 24 else "passed") for i in range(0, 36, 3)]
    merged = [commit(i, parents=(sha(i - 3), sha(i - 1)) if i % 3 == 0 else None) for i in range(36)]
    (found,) = breakages(here, keep(jobs, merged))
    assert set(found["range"]) <= {sha(i) for i in range(0, 36, 3)}


def test_attempts_on_requests_are_not_of_the_trunk(here, keep):
    jobs = [row(i, "passed") for i in range(30)]
    for event, branch in (("pull_request", "feature"), ("pull_request", "main"), ("push", "feature")):
        other = {"event": event, "branch": branch}
        jobs += [
            row(i, "failed", commit=f"{event}{branch}{i}", run=f"{event}{branch}{i}", **other) for i in range(9, 30)
        ]
    done = here("trunk", "verdicts", "--history", keep(jobs))
    assert done.stdout.startswith("30 commits, 1 signal,")
    assert "held: 1 passing" in done.stdout
    assert "of 2 branches only 'main' is used" in done.stderr


def test_a_push_whose_branch_has_an_open_request_is_still_one(here, keep):
    root = keep([row(i, "failed" if i >= 20 else "passed", pull_request=7) for i in range(30)])
    assert len(breakages(here, root)) == 1
    assert here("jobs", "select", "--history", root).returncode == 0


def test_several_repositories_are_not_mixed(here, keep):
    root = keep([row(i, "passed", repository=name) for name in ("o/r", "o/s") for i in range(4)])
    done = here("trunk", "verdicts", "--history", root)
    assert done.returncode == 4
    assert "name one with --repository: o/r, o/s" in done.stderr
    assert here("trunk", "verdicts", "--history", root, "--repository", "o/r").returncode == 0


def case(i, outcome, **more):
    from sooner.history import HistoryOutcome, TestRow

    facts = {"run": f"r{i}", "unit": "test_a.py", "node_id": "test_a.py::test_x", "kind": "case", "commit": sha(i)}
    return TestRow(**facts | {"started": START + i * HOUR} | more, seconds=1.0, outcome=HistoryOutcome(outcome))


@pytest.mark.parametrize("kind", ["all", "test"])
def test_reports_of_several_repositories_are_not_mixed(here, keep, kind):
    tests = [case(i, "failed" if i >= 20 else "passed", repository="o/r") for i in range(30)]
    tests += [case(i, "passed", repository="o/s", run=f"s{i}") for i in range(60)]
    root = keep(tests=tests)
    done = here("trunk", "verdicts", "--history", root, "--kind", kind)
    assert done.returncode == 4
    assert "several repositories, name one with --repository: o/r, o/s" in done.stderr
    one = here("trunk", "verdicts", "--history", root, "--kind", kind, "--repository", "o/r", "--json")
    assert len(json.loads(one.stdout)["commits"]) == 30


def test_reports_that_know_no_branch_are_signals_of_the_trunk(here, keep):
    jobs = [row(i, "passed") for i in range(30)] + [
        row(i, "passed", branch="gone", commit="x", run="x") for i in range(2)
    ]
    (found,) = breakages(here, keep(jobs, tests=[case(i, "failed" if i >= 20 else "passed") for i in range(30)]))
    assert (found["signal"], found["culprit"]) == ("ci :: test_a.py::test_x", sha(20))


def test_the_digest_of_one_repository_holds_no_commits_of_another(here, keep):
    jobs = [row(i, "passed") for i in range(6)]
    root = keep(jobs, [*(commit(i) for i in range(6)), *(commit(i + 6, repository="o/other") for i in range(3))])
    done = here("trunk", "digest", "--history", root, *DAY)
    assert done.returncode == 4
    assert "several repositories, name one with --repository: o/other, o/r" in done.stderr
    one = here("trunk", "digest", "--history", root, "--repository", "o/r", "--json", *DAY)
    assert json.loads(one.stdout)["commits"] == 6


@pytest.mark.parametrize("verb", ["verdicts", "digest", "flaky"])
@pytest.mark.parametrize(("field", "there_is"), [("branch", "there is 'main'"), ("repository", "there is 'o/r'")])
def test_a_name_that_nothing_has_is_not_answered_with_reports_that_know_no_name(here, keep, verb, field, there_is):
    jobs = [row(i, "passed") for i in range(6)]
    root = keep(jobs, [commit(i, branch="main") for i in range(6)], [case(i, "passed") for i in range(6)])
    done = here("trunk", verb, "--history", root, f"--{field}", "mian", *(() if verb == "verdicts" else DAY))
    assert (done.returncode, done.stdout) == (4, "")
    assert f"nothing of the history has the {field} 'mian': {there_is}" in done.stderr


@pytest.mark.parametrize("verb", ["verdicts", "digest", "flaky"])
def test_jobs_that_tell_no_branch_are_not_left_out_of_one_without_a_word(here, keep, verb):
    jobs = [row(i, "passed", branch="") for i in range(6)]
    root = keep(jobs, tests=[case(i, "passed") for i in range(6)])
    when = () if verb == "verdicts" else DAY
    said = "note: no job of the history tells its branch, so --branch leaves all of them out (a new history, ingested"
    assert said in here("trunk", verb, "--history", root, "--branch", "main", *when).stderr
    assert "leaves all of them out" not in here("trunk", verb, "--history", root, *when).stderr


def test_commits_that_know_no_branch_may_be_of_any(here, keep):
    jobs = [row(i, "passed", event="pull_request", branch="feature") for i in range(6)]
    root = keep(jobs, [commit(i + 6, branch="") for i in range(3)])
    done = here("trunk", "digest", "--history", root, "--branch", "main", "--json", *DAY)
    assert json.loads(done.stdout)["commits"] == 3


def test_reports_alone_are_a_trunk(here, keep):
    (found,) = breakages(here, keep(tests=[case(i, "failed" if i >= 20 else "passed") for i in range(30)]))
    assert found["culprit"] == sha(20)


def test_a_test_that_was_born_red_is_told_by_the_reports_of_its_file(here, keep):
    tests = [case(i, "passed", node_id="test_a.py::test_old") for i in range(30)]
    (found,) = breakages(here, keep(tests=[*tests, *(case(i, "failed") for i in range(20, 30))]))
    assert (found["signal"], found["culprit"]) == ("test_a.py::test_x", sha(20))


def test_flakes_of_a_test_before_the_window_are_not_forgotten(here, keep):
    tests = [case(i, "failed" if i % 4 == 0 else "passed", run=f"r{i}") for i in range(100)]
    tests += [case(i, "passed", run=f"again{i}") for i in range(0, 100, 4)]
    root = keep(tests=[*tests, *(case(i, "failed" if i == 106 else "passed") for i in range(100, 107))])
    asked = json.loads(here("trunk", "verdicts", "--history", root, "--window", "7", "--json").stdout)
    assert [one["decision"] for one in asked["decisions"]] == ["hold"]


def test_a_commit_of_a_request_has_not_landed(here, keep):
    jobs = [row(i, "passed") for i in range(6)]
    jobs += [
        row(i, "passed", commit=f"request{i}", run=f"request{i}", event="pull_request", branch="feature")
        for i in range(6)
    ]
    told = [commit(i, parents=(), branch="") for i in range(6)]
    told += [commit(i, parents=(), sha=f"request{i}") for i in range(6)]
    done = here("trunk", "digest", "--history", keep(jobs, told), *DAY, "--json")
    assert json.loads(done.stdout)["commits"] == 6


def test_commits_alone_are_landed_whatever_their_branch_is_called(here, keep):
    root = keep(commits=[commit(i, branch="trunk") for i in range(6)])
    assert json.loads(here("trunk", "digest", "--history", root, *DAY, "--json").stdout)["commits"] == 6


def test_the_digest_counts_reports_that_know_no_branch(here, keep):
    tests = [case(i, "failed", run=f"a{i}") for i in range(4)] + [case(i, "passed", run=f"b{i}") for i in range(4)]
    root = keep([row(i, "passed") for i in range(4)], tests=tests)
    done = here("trunk", "digest", "--history", root, *DAY, "--json")
    assert [one["id"] for one in json.loads(done.stdout)["flaky"]] == ["test_a.py::test_x"]


@pytest.mark.parametrize("first", ["failed", "passed"])
def test_a_digest_of_reports_alone_is_not_said_to_have_nothing(here, keep, first):
    tests = [case(i, first, run=f"a{i}") for i in range(4)] + [case(i, "passed", run=f"b{i}") for i in range(4)]
    root = keep(tests=tests)
    done = here("trunk", "digest", "--history", root, *DAY)
    assert (done.returncode, "test_a.py::test_x" in done.stdout, done.stderr) == (0, first == "failed", "")
    later = here("trunk", "digest", "--history", root, "--since", "2026-01-06", "--until", "2026-01-07")
    assert (later.returncode, "nothing of that time" in later.stderr) == (5, True)


def test_an_attempt_of_which_a_shard_was_cancelled_is_no_pass(here, keep):
    jobs = []
    for i in range(4):
        for attempt, outcomes in ((1, ("passed", "failed")), (2, ("passed", "cancelled"))):
            jobs += [row(i, one, attempt=attempt, job=f"t (x, {k}, 2, gpu)") for k, one in enumerate(outcomes, 1)]
    done = here("trunk", "flaky", "--history", keep(jobs), "--since", "2026-01-01", "--json")
    assert json.loads(done.stdout)["flaky"] == []


def test_the_digest_knows_what_landed_whichever_branch_the_checkout_was_on_that_told_of_it(here, keep):
    jobs = [row(i, "passed") for i in (0, 2, 4)] + [row(6, "passed", branch="mine", event="pull_request")]
    root = keep(jobs, [commit(i, branch="mine", author="Ada") for i in range(7)])
    found = json.loads(here("trunk", "digest", "--history", root, "--json", *DAY).stdout)
    assert (found["branch"], found["commits"], found["authors"]) == ("main", 5, 1)


@pytest.mark.parametrize("skew_s", [0, 7])
def test_of_commits_of_one_second_the_digest_takes_the_parent_for_the_earlier_one(here, keep, skew_s):
    revert = f'Revert "Add it"\n\nThis reverts commit {sha(9)}.'
    rows = [commit(9, parents=(), time=START + skew_s, message="Add it")]
    rows.append(commit(1, parents=(sha(9),), time=START, message=revert))
    found = json.loads(here("trunk", "digest", "--history", keep(commits=rows), "--json", *DAY).stdout)
    assert [(one["what"], one["sha"], one["of"]) for one in found["undone"]] == [("revert", sha(1), sha(9))]


def test_where_only_commits_are_known_the_digest_is_of_their_trunk(here, keep):
    root = keep(commits=[commit(i, branch="main" if i < 5 else "mine") for i in range(7)])
    found = json.loads(here("trunk", "digest", "--history", root, "--json", *DAY).stdout)
    assert (found["branch"], found["commits"]) == ("main", 5)


def test_where_only_reports_are_known_those_of_other_branches_are_not_of_the_trunk(here, keep):
    on = {"main": "passed", "mine": "failed", "": "passed"}
    tests = [
        case(i, on[branch], branch=branch, commit=f"{i:039x}{k}", run=f"{i}{k}")
        for i in range(20)
        for k, branch in enumerate(on)
    ]
    root = keep(tests=[*tests, case(9, "failed", branch="main", commit=f"{9:039x}0", run="again")])
    done = here("trunk", "verdicts", "--history", root, "--json")
    assert len(json.loads(done.stdout)["commits"]) == 40
    assert [one["reason"] for one in json.loads(done.stdout)["decisions"]] == ["flaky"]
    assert "of 2 branches only 'main' is used (--branch names another one)" in done.stderr
    other = json.loads(here("trunk", "verdicts", "--history", root, "--branch", "mine", "--json").stdout)
    assert len(other["commits"]) == 40
    digest = json.loads(here("trunk", "digest", "--history", root, "--json", *DAY).stdout)
    assert (digest["branch"], digest["broke"]) == ("main", [])


@pytest.mark.parametrize("kind", ["all", "test"])
def test_where_every_test_has_always_passed_there_is_nothing_to_do(here, keep, kind):
    root = keep(tests=[case(i, "passed") for i in range(80)])
    ask = ("trunk", "verdicts", "--history", root, "--kind", kind)
    done = here(*ask, "--json")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert (found["now"], found["decisions"], len(found["commits"])) == (START + 79 * HOUR + 1, [], 60)
    assert here(*ask).stdout.splitlines()[1:] == ["nothing has failed"]
    assert here(*ask, "--breakages", "--json").stdout.strip() == "[]"
    assert here(*ask, "--as-of", START + 30 * HOUR).returncode == 0
    assert here(*ask, "--as-of", START - HOUR).stdout.splitlines()[1:] == ["nothing had run by then"]


def test_reports_without_a_commit_or_a_time_are_no_verdict(here, keep):
    root = keep(tests=[case(1, "passed", commit=""), case(2, "passed", started=None)])
    done = here("trunk", "verdicts", "--history", root)
    assert done.returncode == 4
    assert "no job or test, of a known commit and time, that passed, failed or runs" in done.stderr


def test_a_test_that_is_gone_for_long_asks_for_nothing(here, keep):
    tests = [case(i, "passed", node_id="test_a.py::test_y") for i in range(100)]
    tests += [case(i, "failed" if i == 3 else "passed") for i in range(4)]
    root = keep(tests=tests)
    found = json.loads(here("trunk", "verdicts", "--history", root, "--json").stdout)
    assert found["now"] == START + 99 * HOUR + 1
    assert (len(found["commits"]), found["commits"][0], found["decisions"]) == (60, sha(99), [])
    then = json.loads(here("trunk", "verdicts", "--history", root, "--json", "--as-of", START + 4 * HOUR).stdout)
    assert [one["signal"] for one in then["decisions"]] == ["test_a.py::test_x"]
