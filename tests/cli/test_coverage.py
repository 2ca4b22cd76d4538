"""`sooner coverage`, as users call it."""

import json
import time

import pytest

pytest.importorskip("duckdb")

NOW = 1_760_000_000.0


def needs(**full):
    return [
        {
            "nodeid": name.replace("__", "::"), "path": "t.py", "profile": {}, "min": n, "gpu_min": n, "full": n,
            "max": None, "adaptive": False, "confidence": "high", "evidence": [],
        }
        for name, n in full.items()
    ]  # fmt: skip


@pytest.fixture
def history(project):
    from sooner.history import History, HistoryOutcome, JobRow, TestRow

    def row(name, outcome, ago, **more):
        return TestRow(
            repository="o/r", run="r1", job="gpu", unit="t.py", node_id=name, kind="case", outcome=outcome,
            started=NOW - ago, **more,
        )  # fmt: skip

    with History(project / "h") as kept:
        kept.add_tests(
            [
                row("t::two", HistoryOutcome.PASSED, 3600, devices=("0", "1")),
                row("t::four", HistoryOutcome.SKIPPED_NO_DEVICES, 3600, devices=("0", "1")),
                row("t::wide", HistoryOutcome.PASSED, 3600, devices=("0", "1")),
                row("t::red", HistoryOutcome.FAILED, 3600, devices=("0",)),
                row("t::old", HistoryOutcome.PASSED, 90_000, devices=("0",)),
                row("t::job", HistoryOutcome.PASSED, 3600),
            ]
        )
        kept.add_jobs(
            [JobRow(repository="o/r", run="r1", job="gpu", runner="linux.gpu.2", outcome=HistoryOutcome.PASSED)]
        )
    (project / "needs.json").write_text(
        json.dumps(needs(t__two=2, t__four=4, t__wide=4, t__red=1, t__old=1, t__job=2, t__gone=1))
    )
    return project / "h"


def judged(sooner, history, *options):
    done = sooner("coverage", "--history", history, "--needs", "needs.json", "--now", int(NOW), "--json", *options)
    found = json.loads(done.stdout)
    return done.returncode, found, {entry["test"]: entry["standing"] for entry in found["entries"]}


def test_tests_past_the_policy_are_listed_and_the_exit_code_says_so(sooner, history):
    code, found, standing = judged(sooner, history)
    assert code == 12
    assert standing == {
        "t::two": "covered", "t::four": "never", "t::wide": "too_small", "t::red": "covered", "t::old": "late",
        "t::job": "not_proven", "t::gone": "never",
    }  # fmt: skip
    assert found["past"] == ["t::four", "t::gone", "t::job", "t::old", "t::wide"]
    assert found["met"] is False


def test_a_test_that_the_needs_do_not_know_is_counted(here, history, project):
    all_but_one = [need for need in json.loads((project / "needs.json").read_text()) if need["nodeid"] != "t::two"]
    (project / "needs.json").write_text(json.dumps(all_but_one))
    done = here("coverage", "--history", history, "--needs", "needs.json", "--now", int(NOW))
    assert done.stderr == "note: the history has 1 test that needs.json does not have: left out\n"


def test_the_size_of_a_runner_proves_what_no_test_recorded(here, history):
    assert judged(here, history, "--runner", "linux.gpu.*=2")[2]["t::job"] == "covered"


def test_a_runner_with_several_labels_is_known_by_each_of_them(here, project):
    from sooner.history import History, HistoryOutcome, JobRow, TestRow

    rows = [
        TestRow(
            repository="o/r", run="r1", job=job, unit="t.py", node_id=f"t::{job}", kind="case",
            outcome=HistoryOutcome.PASSED, started=NOW - 60,
        )
        for job in ("one", "two")
    ]  # fmt: skip
    labels = {"one": "self-hosted,linux.gpu.4", "two": "linux, rack.b"}
    with History(project / "h") as kept:
        kept.add_tests(rows)
        kept.add_jobs(
            JobRow(repository="o/r", run="r1", job=job, runner=label, outcome=HistoryOutcome.PASSED)
            for job, label in labels.items()
        )
    (project / "needs.json").write_text(json.dumps(needs(t__one=4, t__two=4)))
    standing = judged(here, project / "h", "--runner", "linux.gpu.*=4", "--runner", "rack.b=4")[2]
    assert standing == {"t::one": "covered", "t::two": "covered"}


def test_runs_of_the_future_are_named_where_a_test_is_past_the_policy(here, project):
    from sooner.history import History, HistoryOutcome, TestRow

    with History(project / "h") as kept:
        kept.add_tests(
            TestRow(
                repository="o/r", run="r1", unit="t.py", node_id=f"t::{name}", kind="case", devices=("0",),
                outcome=HistoryOutcome.PASSED, started=started,
            )
            for name, started in (("ahead", time.time() + 7200), ("now", time.time() - 60))
        )  # fmt: skip
    (project / "needs.json").write_text(json.dumps(needs(t__ahead=1, t__now=1)))
    done = here("coverage", "--history", project / "h", "--needs", "needs.json")
    assert done.returncode == 12
    assert "1 test past the policy ran at a time that is still to come" in done.stderr
    assert "to come" not in here("coverage", "--history", project / "h", "--needs", "needs.json", "--now", NOW).stderr


def test_a_test_that_can_never_run_is_listed_and_not_past(here, history, project):
    (row,) = needs(t__two=2)
    never = {str(size): "skip" for size in (0, 1, 2, 3, 4, 8)}
    rows = [row, row | {"nodeid": "t::off", "profile": never, "min": None, "gpu_min": None, "full": None}]
    (project / "needs.json").write_text(json.dumps(rows))
    done = here("coverage", "--history", history, "--needs", "needs.json", "--now", int(NOW))
    assert done.returncode == 0
    assert ["t::off", "can", "never", "run"] in [line.split()[:4] for line in done.stdout.splitlines()]
    assert "t::two" not in done.stdout


def test_an_earlier_time_is_replayed(here, history):
    done = here("coverage", "--history", history, "--needs", "needs.json", "--now", int(NOW - 80_000), "--json")
    standing = {entry["test"]: entry["standing"] for entry in json.loads(done.stdout)["entries"]}
    assert standing["t::old"] == "covered"
    assert standing["t::two"] == "never"


def test_a_policy_stands_in_pyproject_or_a_file(here, history, project):
    rules = 'within = "2d"\nat = "any"\nexempt = ["t::gone", "t::four"]\n'
    (project / "pyproject.toml").write_text(f"[tool.sooner.coverage]\n{rules}")
    code, _, standing = judged(here, history)
    assert code == 0, standing
    assert standing["t::gone"] == "exempt"
    (project / "strict.toml").write_text('within = "1h"\n[[rule]]\nmatch = "t::*"\nwithin = "3d"\nat = "min"\n')
    assert judged(here, history, "--policy", "strict.toml")[2]["t::old"] == "covered"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("false", ("late", "it ran too long ago")),
        ('""', ("late", "it ran too long ago")),
        ("true", ("exempt", "exempt by the policy")),
        ('"no runner"', ("exempt", "no runner")),
    ],
)
def test_a_rule_that_says_that_its_tests_are_not_exempt_exempts_none(here, history, project, said, told):
    (project / "rule.toml").write_text(f'[[rule]]\nmatch = "t::old"\nat = "any"\nexempt = {said}\n')
    done = here("coverage", "--history", history, "--policy", "rule.toml", "--now", int(NOW), "--json")
    (old,) = (entry for entry in json.loads(done.stdout)["entries"] if entry["test"] == "t::old")
    assert (old["standing"], old["why"]) == told


@pytest.fixture
def two(project, history):
    """Another repository has a test of the same name that ran on four devices, on a branch."""
    from sooner.history import History, HistoryOutcome, JobRow, TestRow

    say = {"run": "r1", "job": "gpu", "outcome": HistoryOutcome.PASSED, "started": NOW - 60}
    devices = ("0", "1", "2", "3")
    with History(history) as kept:
        kept.add_tests([
            TestRow(repository="o/other", unit="t.py", node_id="t::four", kind="case", devices=devices, **say),
        ])  # fmt: skip
        kept.add_jobs([JobRow(repository="o/other", branch="topic", **say)])
        kept.add_jobs([JobRow(repository="o/other", branch="main", **say | {"run": "r2"})])
    return history


def test_a_test_of_the_same_name_in_another_repository_proves_nothing(here, two):
    done = here("coverage", "--history", two, "--needs", "needs.json", "--now", int(NOW))
    assert done.returncode == 4
    assert "several repositories, name one with --repository: o/other, o/r" in done.stderr
    assert judged(here, two, "--repository", "o/r")[2]["t::four"] == "never"
    assert judged(here, two, "--repository", "o/other")[2]["t::four"] == "covered"


def test_a_branch_has_only_what_ran_on_it_by_the_test_or_its_job(here, two):
    assert judged(here, two, "--repository", "o/other", "--branch", "topic")[2]["t::four"] == "covered"
    assert judged(here, two, "--repository", "o/other", "--branch", "main")[2]["t::four"] == "never"


def test_a_branch_or_a_repository_that_nothing_has_is_an_error_and_no_test_that_never_ran(here, two):
    asked = ("coverage", "--history", two, "--needs", "needs.json", "--now", int(NOW), "--repository")
    done = here(*asked, "o/other", "--branch", "tpoic")
    assert (done.returncode, done.stdout) == (4, "")
    assert "nothing of the history has the branch 'tpoic': there are 'topic', 'main'" in done.stderr
    done = here(*asked, "o/ohter")
    assert (done.returncode, done.stdout) == (4, "")
    assert "nothing of the history has the repository 'o/ohter': there are 'o/other', 'o/r'" in done.stderr


def test_where_no_run_tells_its_branch_a_branch_has_nothing_which_is_said(here, history):
    done = here("coverage", "--history", history, "--needs", "needs.json", "--now", int(NOW), "--branch", "main")
    assert done.returncode == 12
    assert "note: no run of a test is known to be of the branch 'main' (ingest --set branch=...)" in done.stderr


def test_a_runner_that_no_job_ran_on_is_named_where_a_test_is_not_proven(here, history):
    asked = ("coverage", "--history", history, "--needs", "needs.json", "--now", int(NOW), "--runner")
    said = "note: no job ran on a runner 'linux.gpu.3': there is 'linux.gpu.2'"
    assert said in here(*asked, "linux.gpu.3=2").stderr
    assert "no job ran on" not in here(*asked, "linux.gpu.?=2").stderr


def test_without_needs_only_tests_of_the_repository_are_judged(here, two):
    options = ("--history", two, "--now", int(NOW), "--at", "any", "--json")
    found = json.loads(here("coverage", *options, "--repository", "o/other").stdout)
    assert [entry["test"] for entry in found["entries"]] == ["t::four"]


def test_people_see_the_tests_and_a_count(here, history):
    done = here("coverage", "--history", history, "--needs", "needs.json", "--now", int(NOW))
    assert done.returncode == 12
    assert "t::wide  too few devices" in done.stdout
    assert "it ran on 2 of 4 devices" in done.stdout
    assert "1 device " in done.stdout
    assert "1 devices" not in done.stdout
    assert "7 tests: 2 covered, 1 too long ago, 1 too few devices, 1 not proven, 2 never ran" in done.stdout


def test_a_test_that_is_skipped_each_time_is_told_apart_from_one_that_nobody_has_seen(here, history):
    done = here("coverage", "--history", history, "--needs", "needs.json", "--now", int(NOW))
    why = {line.split()[0]: line.split("  ")[-1] for line in done.stdout.splitlines()}
    assert why["t::four"] == "it was skipped, last on 2 devices, too few"
    assert why["t::gone"] == "no execution is known"


def test_cases_of_one_test_that_stand_alike_are_one_line(here, project):
    from sooner.history import History, HistoryOutcome, TestRow

    with History(project / "h") as kept:
        kept.add_tests(
            TestRow(
                repository="o/r", run="r", job="gpu", unit="t.py", node_id=f"t::two[{case:02}]", kind="case",
                devices=("0",), outcome=HistoryOutcome.PASSED if case else HistoryOutcome.SKIPPED,
                started=NOW - 60 - case,
            )
            for case in range(30)
        )  # fmt: skip
    (project / "needs.json").write_text(json.dumps(needs(**{f"t__two[{case:02}]": 2 for case in range(30)})))
    done = here("coverage", "--history", project / "h", "--needs", "needs.json", "--now", int(NOW))
    skipped, ran, summary = done.stdout.splitlines()[1:]
    assert skipped.split("  ")[0] == "t::two[00]"
    assert ran.startswith("t::two[01] and 28 more of its cases  too few devices")
    assert summary == "30 tests: 29 too few devices, 1 never ran"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--within", "soon"), "--within 'soon' is no span such as 24h or 7d"),
        (("--now", "later"), "--now 'later': neither ISO 8601"),
        (("--runner", "gpu"), "write LABEL=N"),
        (("--runner", "gpu=²"), "write LABEL=N"),
        (("--history", "nowhere"), "there is no history at nowhere"),
        (("--policy", "bad.toml"), "wthin is unknown: there are at, exempt, rule, runners, within"),
        (("--needs", "bad.toml"), "bad.toml: is no"),
        (("--needs", ""), ".: cannot be read: Is a directory"),
        (("--policy", "match.toml"), "match.toml: match ['a', 'b'] is no pattern"),
        (("--policy", "runners.toml"), "runners must be a table of numbers"),
        (("--policy", "exempt.toml"), "exempt.toml: exempt ['a'] is no reason"),
    ],
)
def test_what_is_not_understood_is_one_clear_error(here, history, project, options, problem):
    (project / "bad.toml").write_text('wthin = "1d"\n')
    (project / "match.toml").write_text('[[rule]]\nmatch = ["a", "b"]\n')
    (project / "exempt.toml").write_text('[[rule]]\nexempt = ["a"]\n')
    (project / "runners.toml").write_text('runners = {"linux.gpu.4" = -4}\n')
    base = () if "--history" in options else ("--history", history)
    done = here("coverage", *base, *options)
    assert done.returncode == 4, done.stdout
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_what_only_ran_on_devices_that_stand_in_for_real_ones_is_said(sooner, project):
    from sooner.history import History, HistoryOutcome, TestRow

    ran = {"one": ("virtual:0",), "two": ("virtual:0", "virtual:1"), "real": ("nvidia:0",), "cpu": ("cpu:0",)}
    with History(project / "h") as kept:
        kept.add_tests(
            TestRow(node_id=f"t::{name}", kind="case", outcome=HistoryOutcome.PASSED, started=NOW - 60, devices=devices)
            for name, devices in ran.items()
        )
        kept.add_tests(
            [
                TestRow(
                    node_id="t::one", kind="case", outcome=HistoryOutcome.PASSED, started=NOW - 90, devices=("amd:0",)
                )
            ]
        )
    (project / "needs.json").write_text(json.dumps(needs(t__one=1, t__two=2, t__real=1, t__cpu=0)))
    done = sooner("coverage", "--history", project / "h", "--needs", "needs.json", "--now", int(NOW))
    assert done.returncode == 0, done.stdout
    assert "note: 1 test ran as needed on virtual devices or slots of the CPU only" in done.stderr
