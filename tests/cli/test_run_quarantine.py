"""`sooner run --quarantine FILE`: what stands in it runs, is reported, is recorded, and fails no run."""

import json
import sys
import xml.etree.ElementTree as ET

import pytest

QUARANTINE = "version = 1\n"
CASES = """<testsuite><testcase classname="tests.test_a" name="test_x"><failure message="boom &lt;b&gt;">trace</failure>
</testcase><testcase classname="tests.test_a" name="test_y">{second}</testcase></testsuite>"""


def entries(*ids, **more):
    extra = "".join(f"{name} = {json.dumps(value)}\n" for name, value in more.items())
    return QUARANTINE + "".join(f"[[test]]\nid = {json.dumps(one)}\n{extra}" for one in ids)


@pytest.fixture
def quarantined(sooner, project):
    def run(text, *units, options=()):
        (project / "q.toml").write_text(text)
        plan = sooner.plan(*units)
        return sooner("run", plan, "--devices", "virtual:1", "--out", "out", "--quarantine", "q.toml", *options)

    return run


def with_cases(project, second):
    (project / "cases.xml").write_text(CASES.format(second=second))
    program = "import shutil, sys; shutil.copy('cases.xml', 'mine.xml'); sys.exit(1)"
    return ("u", f'{sys.executable} -c "{program}"', 'junit = "mine.xml"')


def test_a_failure_in_quarantine_fails_no_run_and_is_told_everywhere(quarantined, run):
    done = quarantined(entries("bad"), ("bad", "echo why; exit 3"), ("good", "true"))
    assert done.returncode == 0
    assert "1 FAILED; 1 of them in quarantine: that fails no run" in done.stdout
    assert "bad: FAILED (exit code 3), quarantined" in done.stdout
    assert {name: (line["outcome"], line.get("quarantined", False)) for name, line in run.results.items()} == {
        "bad": ("failed", True),
        "good": ("passed", False),
    }
    assert run.cases["bad", "bad"] in ("skipped", "properties")
    root = ET.parse(run.path / "junit.xml").getroot()
    assert (root.get("failures"), root.get("errors"), root.get("skipped")) == ("0", "0", "1")
    (case,) = (case for case in root.iter("testcase") if case.get("name") == "bad")
    assert case.find("properties/property").attrib == {"name": "sooner.quarantined", "value": "failed"}
    assert case.find("skipped").get("message") == "quarantined: exit code 3"
    assert "why" in case.find("skipped").text


def test_what_is_not_in_quarantine_still_fails_the_run(quarantined):
    assert quarantined(entries("bad"), ("bad", "exit 1"), ("worse", "exit 1")).returncode == 1


def test_crashes_and_timeouts_are_excused_lost_workers_are_not(quarantined, run):
    units = (("crash", "kill -SEGV $$"), ("slow", "sleep 60", "timeout_s = 0.2"))
    done = quarantined(entries("crash", "slow"), *units)
    assert (done.returncode, run.outcomes) == (0, {"crash": "crashed", "slow": "timed_out"})
    from sooner.model.events import Verdict
    from sooner.model.outcomes import Outcome

    lost = Verdict(at=0.0, unit="u", outcome=Outcome.WORKER_LOST, quarantined=True)
    assert lost.counts_as is Outcome.WORKER_LOST


def test_only_the_named_variant_is_excused(quarantined):
    unit = ("bad", "exit 1", 'env = { A = "1" }')
    assert quarantined(entries("bad", variant="A=1"), unit).returncode == 0
    assert quarantined(entries("bad", variant="A=2"), unit).returncode == 1


def test_a_unit_that_failed_by_cases_in_quarantine_alone_is_excused(quarantined, run, project):
    done = quarantined(entries("tests/test_a.py::test_x"), with_cases(project, ""))
    assert done.returncode == 0
    root = ET.parse(run.path / "junit.xml").getroot()
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("2", "0", "1")
    skipped = root.find(".//skipped")
    assert (skipped.get("type"), skipped.get("message")) == ("sooner.quarantined", "quarantined: boom <b>")
    assert skipped.text == "trace"


def test_another_case_that_fails_fails_the_unit(quarantined, run, project):
    done = quarantined(entries("tests/test_a.py::test_x"), with_cases(project, "<error/>"))
    assert done.returncode == 1
    assert "quarantined" not in run.results["u"]
    root = ET.parse(run.path / "junit.xml").getroot()
    assert (root.get("errors"), root.get("skipped")) == ("1", "1")


def test_a_replay_and_the_journal_judge_alike(quarantined, sooner, run):
    quarantined(entries("bad"), ("bad", "exit 1"))
    before = (run.path / "junit.xml").read_text()
    assert sooner("replay", "out").returncode == 0
    assert (run.path / "junit.xml").read_text() == before
    assert [event["exit_code"] for event in run.events if event["event"] == "run_finished"] == [0]


def test_a_resumed_run_is_judged_by_the_quarantine_that_it_began_with(quarantined, sooner, project):
    quarantined(entries("bad"), ("bad", "exit 1"))
    (project / "q.toml").unlink()
    assert sooner("run", "--resume", "out").returncode == 0
    assert sooner("run", "--resume", "out", "--quarantine", "gone.toml").returncode == 4


def test_a_later_run_in_the_same_folder_knows_nothing_of_it(quarantined, sooner, project):
    quarantined(entries("bad"), ("bad", "exit 1"))
    assert sooner("run", "plan.toml", "--devices", "virtual:1", "--out", "out").returncode == 1
    assert (project / "out/earlier-1/quarantine.toml").exists()


def test_entries_of_which_the_run_has_nothing_are_noted(quarantined):
    done = quarantined(entries("good", "gone", "t.py::test_gone"), ("good", "true"))
    assert "note: q.toml also names what this run does not have: gone, t.py::test_gone" in done.stdout


def test_the_setting_and_the_environment_name_it_too(sooner, project):
    (project / "q.toml").write_text(entries("bad"))
    plan = sooner.plan(("bad", "exit 1"))
    assert sooner("run", plan, "--devices", "virtual:1", SOONER_RUN_QUARANTINE="q.toml").returncode == 0
    (project / "pyproject.toml").write_text('[tool.sooner.run]\nquarantine = "q.toml"\n')
    assert sooner("run", plan, "--devices", "virtual:1").returncode == 0
    assert sooner("run", plan, "--devices", "virtual:1", "--quarantine", "none").returncode == 1


def test_junit_of_pytest_is_ingested_as_what_it_really_was(sooner, project):
    pytest.importorskip("duckdb")
    from sooner.history import History

    skip = '<skipped type="pytest.xfail" message="quarantined: boom"/>'
    real = '<properties><property name="sooner.quarantined" value="crashed"/></properties>'
    cases = (
        f'<testcase classname="t" name="a">{real}{skip}</testcase><testcase classname="t" name="b">{skip}</testcase>'
    )
    (project / "j.xml").write_text(f'<testsuite name="pytest">{cases}</testsuite>')
    assert sooner("ingest", "j.xml", "--history", "h").returncode == 0
    with History("h") as history:
        told = {row.node_id: (row.outcome.value, row.message) for row in history.tests()}
    assert told == {"t::a": ("crashed", "boom"), "t::b": ("skipped", "quarantined: boom")}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("version = 9", "a newer sooner wrote it"),
        ("nonsense", "q.toml is no TOML"),
        (None, "cannot be read: No such file"),
    ],
)
def test_a_broken_file_stops_everything_before_it_starts(sooner, project, text, problem):
    if text is not None:
        (project / "q.toml").write_text(text)
    plan = sooner.plan(("touch", "touch ran"))
    done = sooner("run", plan, "--devices", "virtual:1", "--quarantine", "q.toml")
    assert done.returncode == 4
    assert problem in done.stderr
    assert not (project / "ran").exists()


def test_the_history_keeps_what_they_really_were(quarantined, project):
    pytest.importorskip("duckdb")
    from sooner.history import History

    unit = with_cases(project, "")
    quarantined(entries("tests/test_a.py::test_x", "bad"), unit, ("bad", "exit 1"), options=("--history", "h"))
    with History("h") as history:
        told = {row.node_id or row.unit: row.outcome.value for row in history.tests()}
    assert told == {
        "bad": "failed",
        "u": "failed",
        "tests/test_a.py::test_x": "failed",
        "tests/test_a.py::test_y": "passed",
    }
