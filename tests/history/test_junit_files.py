"""JUnit files of everybody: one meaning, broken ones recovered, bombs refused."""

import gzip
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sooner.history.ingest import junit
from sooner.history.outcomes import of_skip

SAMPLES = Path(__file__).parent / "samples"
TOOLS = ("pytest", "unittest", "surefire", "gtest", "ctest", "bazel", "nextest")
PYTEST, UNITTEST, SUREFIRE, GTEST, CTEST, BAZEL, NEXTEST = (
    (SAMPLES / f"{tool}.xml").read_text(encoding="utf-8") for tool in TOOLS
)


def outcomes(history):
    return {row.node_id: row.outcome for row in history.tests()}


@pytest.mark.parametrize(
    "message",
    [
        "Need at least 2 CUDA devices", "Test requires 2 GPUs", "CUDA is not available.", "XPU required",
        "Skipped due to small world size.", "world size 8 exceeds 4", "Requires at least 4 devices",
        "Test requires 8 devices", "requires >= 2 devices", "needs 4 devices, this run has 2",
    ],
)  # fmt: skip
def test_a_skip_that_more_devices_would_have_run_is_a_hole(message):
    assert of_skip(message) == "skipped_no_devices"


@pytest.mark.parametrize(
    "message",
    [
        "needs a GPU with compute capability >= 8.9", "Hopper GPU required", "requires 80GB GPU memory", "slow",
        "Requires GPU arch gfx942", "flash_attn is not installed", "not supported on this GPU", "uses 2 devices",
    ],
)  # fmt: skip
def test_a_skip_that_another_device_would_have_run_is_none(message):
    assert of_skip(message) == "skipped"


def test_pytest(history, take, write):
    assert take(write("a.xml", PYTEST))["added"] == 7
    assert outcomes(history) == {
        "tests/unit/test_x.py::TestA::test_ok[1-a]": "passed",
        "tests/unit/test_x.py::test_bad": "failed",
        "tests/unit/test_x.py::test_slow": "timed_out",
        "tests/unit/test_x.py::test_setup": "error",
        "tests/unit/test_x.py::test_wide": "skipped_no_devices",
        "tests/unit/test_x.py::test_known": "skipped",
        "tests/y.py::test_z": "passed",
    }
    rows = {row.node_id: row for row in history.tests()}
    ok, bad = rows["tests/unit/test_x.py::TestA::test_ok[1-a]"], rows["tests/unit/test_x.py::test_bad"]
    assert (ok.unit, ok.kind, ok.seconds, ok.started, ok.worker) == (
        "tests/unit/test_x.py", "case", 0.25, 1767323045.5, "box",
    )  # fmt: skip
    assert bad.message == "assert 3 == 4"
    assert len(bad.message_digest) == 16


@pytest.mark.parametrize(
    ("case", "node_id"),
    [
        (
            '<testcase classname="tests.test_models.test_x.TestA" name="test_a[x::y]"/>',
            "tests/test_models/test_x.py::TestA::test_a[x::y]",
        ),
        ('<testcase classname="tests.ops.conv_test" name="test_a"/>', "tests/ops/conv_test.py::test_a"),
        ('<testcase classname="" name="tests.test_models.test_x"/>', "tests/test_models/test_x.py"),
    ],
)
def test_a_test_of_pytest_has_its_node_id(history, take, write, case, node_id):
    take(write("a.xml", f'<testsuites><testsuite name="pytest">{case}</testsuite></testsuites>'))
    (row,) = history.tests()
    assert (row.unit, row.node_id) == (node_id.partition("::")[0], node_id)


def junit_case(result, *properties):
    told = "".join(f'<property name="{name}" value="{value}"/>' for name, value in properties)
    return (
        '<testsuites><testsuite name="pytest"><testcase classname="test_x" name="test_a" time="1">'
        f"<properties>{told}</properties>{result}</testcase></testsuite></testsuites>"
    )


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ('<skipped type="pytest.xfail" message="issue 12"/>', "passed"),
        ('<skipped type="pytest.xfail" message=""/>', "passed"),
        ('<skipped type="pytest.xfail" message="[NOTRUN] hangs"/>', "skipped"),
        ('<skipped type="pytest.xfail" message="needs 2 GPUs"/>', "skipped"),
        ('<error message="failed on setup with &quot;ValueError&quot;">tb</error>', "error"),
        ('<error message="failed on teardown with &quot;ValueError&quot;">tb</error>', "failed"),
    ],
)
def test_what_pytest_ran_is_told_from_what_it_did_not_run(history, take, write, result, outcome):
    take(write("a.xml", junit_case(result)))
    assert outcomes(history) == {"test_x.py::test_a": outcome}


@pytest.mark.parametrize(
    "case",
    [
        junit_case('<failure message="coverage hole: needs 4 devices, the run has 2">coverage hole</failure>'),
        junit_case(
            '<skipped type="pytest.xfail" message="quarantined: coverage hole: needs 4 devices, the run has 2"/>',
            ("sooner.quarantined", "failed"), ("sooner.quarantined", "crashed"),
        ),
    ],
)  # fmt: skip
def test_a_hole_of_our_own_pytest_is_no_failure_of_the_test(history, take, write, case):
    take(write("a.xml", case))
    assert outcomes(history) == {"test_x.py::test_a": "skipped_no_devices"}


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        ("Failed: Timeout (>1.0s) from pytest-timeout.", "timed_out"), ("TimeoutError: ", "timed_out"),
        ("RuntimeError: Watchdog caught collective operation timeout: WorkNCCL(1)", "timed_out"),
        ("RuntimeError: Process 0 terminated or timed out after 300 seconds", "timed_out"),
        ("TypeError: f() got an unexpected keyword argument &apos;timeout&apos;", "failed"),
        ("ValueError: timeout must be positive", "failed"), ("AssertionError: timed out: 3 != 4", "failed"),
        ("assert -15 == -&lt;Signals.SIGKILL: 9&gt;", "failed"),
        ("RuntimeError: process 0 terminated with signal SIGSEGV", "crashed"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "out_of_memory"),
        ("the process of the test ended in its middle: exit code 9", "crashed"),
        ("no end after 300 s (--hang-timeout)", "timed_out"),
        ("MemoryError", "out_of_memory"), ("Failed: DID NOT RAISE &lt;class MemoryError&gt;", "failed"),
    ],
)  # fmt: skip
def test_how_a_test_ended_is_told_by_its_message_and_not_by_what_it_compared(history, take, write, message, outcome):
    take(write("a.xml", junit_case(f'<failure message="{message}">tb</failure>')))
    assert outcomes(history) == {"test_x.py::test_a": outcome}


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (
            '<failure message="a/math.cc:9&#x0A;Expected: 2"><![CDATA[a/math.cc:9]]></failure>',
            "a/math.cc:9: Expected: 2",
        ),
        ('<failure message="a/math.cc:9"/>', "a/math.cc:9"),
        ('<failure message="Failed">    x_test.go:12: got 1\n    more</failure>', "x_test.go:12: got 1"),
        ('<failure message="Timeout"/>', "Timeout"),
    ],
)
def test_a_message_says_more_than_where_and_that_it_failed(history, take, write, result, told):
    take(write("a.xml", junit_case(result)))
    (row,) = history.tests()
    assert row.message == told


def attempts(history):
    return {(row.node_id.rpartition("::")[2], row.attempt): row.outcome for row in history.tests()}


BARE, FAILED = (
    '<testcase classname="test_x" name="t"/>',
    '<testcase classname="test_x" name="t"><failure message="assert 0"/></testcase>',
)
OTHER = '<testcase classname="test_x" name="u"/>'
RERUN = '<testcase classname="test_x" name="t"><rerun message="assert 0">tb</rerun></testcase>'
TEARDOWN = (
    '<testcase classname="test_x" name="t"><error message="failed on teardown with &quot;E&quot;">tb</error></testcase>'
)


@pytest.mark.parametrize(
    ("cases", "told"),
    [
        (BARE + OTHER + BARE, ["failed", "passed"]),
        (BARE + BARE + OTHER + FAILED, ["failed", "failed", "failed"]),
        (RERUN, ["failed", "passed"]),  # of a plugin that writes one case for all attempts
        (RERUN + BARE, ["failed", "passed"]),  # of one that writes a case for each
        (RERUN + FAILED, ["failed", "failed"]),
        (FAILED + OTHER + TEARDOWN, ["failed"]),
        (BARE + TEARDOWN, ["failed", "failed"]),
    ],
)
def test_what_pytest_ran_again_has_not_passed_before(history, take, write, cases, told):
    take(write("a.xml", f'<testsuites><testsuite name="as a project calls it">{cases}</testsuite></testsuites>'))
    found = {name: outcome for name, outcome in attempts(history).items() if name[0] == "t"}
    assert found == {("t", number): outcome for number, outcome in enumerate(told, 1)}


def test_what_several_sessions_ran_has_passed_in_each(history, take, write):
    text = f'<testsuite name="pytest">{BARE}</testsuite>'
    take(write("a.xml", text), write("b.xml", f"<testsuites>{text}{text}</testsuites>"), constants={"run": "7"})
    assert attempts(history) == {("t", 1): "passed", ("t", 2): "passed", ("t", 3): "passed"}


def test_surefire_and_its_retries(history, take, write):
    assert take(write("TEST-com.acme.CartTest.xml", SUREFIRE))["added"] == 6
    told = [(row.node_id.partition("::")[2], row.attempt, row.outcome, row.message) for row in history.tests()]
    assert sorted(told) == [
        ("adds", 1, "passed", ""),
        ("broken", 1, "failed", "first"),
        ("broken", 2, "failed", "second"),
        ("broken", 3, "error", "third"),
        ("flaky", 1, "failed", "expected 1"),
        ("flaky", 2, "passed", ""),
    ]
    assert {row.seconds for row in history.tests() if row.message in ("first", "second", "third")} == {0.2, 0.4, None}
    assert next(row.seconds for row in history.tests() if row.node_id.endswith("adds")) == 1234.5


def test_unittest(history, take, write):
    take(write("u.xml", UNITTEST))
    assert outcomes(history) == {
        "test_u.py::TestA::test_ok": "passed", "test_u.py::TestA::test_wide": "skipped_no_devices",
        "test_u.py::TestA::test_known": "passed", "test_u.py::TestA::test_mended": "failed",
    }  # fmt: skip
    assert {row.unit for row in history.tests()} == {"TestA"}  # the same in the next run


def test_gtest(history, take, write):
    report = take(write("g.xml", GTEST))
    assert outcomes(history) == {
        "Math::Adds": "passed", "Math::Fails": "failed", "Math::DISABLED_Off": "not_run", "Math::Skips": "skipped",
    }  # fmt: skip
    assert any("without a zone" in note for note in report["notes"])


def test_ctest(history, take, write):
    take(write("c.xml", CTEST))
    assert {row.node_id.partition("::")[0]: row.outcome for row in history.tests()} == {
        "ok": "passed", "fails": "failed", "disabled": "skipped", "skips": "skipped", "skips_by_word": "skipped",
        "has_no_program": "not_run", "has_no_fixture": "not_run", "has_no_file": "not_run", "says_nothing": "failed",
    }  # fmt: skip


def test_bazel(history, take, write):
    take(write("test.xml", BAZEL))
    (row,) = history.tests()
    assert (row.unit, row.outcome, row.seconds, row.message) == ("pkg/thing", "error", 3.0, "exited with error code 1")


def test_nextest(history, take, write):
    take(write("n.xml", NEXTEST))
    told = {(row.node_id, row.attempt): (row.outcome, row.seconds) for row in history.tests()}
    assert told == {
        ("crate::bin::io::reads", 1): ("failed", 0.7),
        ("crate::bin::io::reads", 2): ("passed", 0.1),
        ("crate::bin::io::hangs", 1): ("timed_out", 9.0),
    }


def test_the_same_file_again_adds_nothing_also_when_it_is_compressed(take, write):
    take(write("a.xml", PYTEST))
    again = take(write("b.xml.gz", gzip.compress(PYTEST.encode())))
    assert (again["rows"], again["added"], again["duplicates"]) == (7, 0, 7)


def test_a_name_that_comes_again_is_another_attempt(history, take, write):
    case = '<testcase classname="C" name="t" time="1"'
    take(write("r.xml", f"<testsuite name='s'>{case}><failure message='x'/></testcase>{case}/>{case}/></testsuite>"))
    assert [(row.attempt, row.outcome) for row in history.tests()] == [(1, "failed"), (2, "passed"), (3, "passed")]


def test_another_outcome_of_an_attempt_that_is_known_is_told_of(take, write):
    passed, failed = (f'<testsuite name="s">{case}</testsuite>' for case in (BARE, FAILED))
    assert take(write("a.xml", passed), constants={"run": "7"})["notes"] == []
    assert take(write("again.xml", passed), constants={"run": "7"})["notes"] == []
    report = take(write("b.xml", failed), constants={"run": "7"})
    assert (report["added"], report["duplicates"]) == (0, 1)
    assert ["another outcome" in note for note in report["notes"]] == [True]


def test_the_same_file_adds_nothing_when_it_was_downloaded_again(take, write):
    path = write("c.xml", CTEST)
    assert take(path)["added"] == 9
    os.utime(path, (2e9, 2e9))
    assert take(path)["added"] == 0


def test_a_copy_of_a_file_and_a_link_to_it_are_no_further_attempts(history, take, write):
    path = write("all/a.xml", PYTEST)
    write("all/latest/copy.xml", PYTEST)
    (path.parent / "link.xml").symlink_to("a.xml")
    (path.parent / "latest" / "up").symlink_to("..")
    report = take(path.parent, constants={"run": "7"})
    assert (report["rows"], report["added"], report["duplicates"]) == (21, 7, 14)
    assert {row.attempt for row in history.tests()} == {1}


def test_a_run_can_be_named(history, take, write):
    take(write("a.xml", GTEST), constants={"run": "77", "repository": "o/n", "commit": "c0"})
    assert {(row.run, row.repository, row.commit) for row in history.tests()} == {("77", "o/n", "c0")}


def test_a_time_without_a_zone_is_in_the_zone_that_was_said(history, take, write):
    take(write("g.xml", GTEST), zone="America/New_York")
    assert min(row.started for row in history.tests()) == 1767323045.123 + 5 * 3600


@pytest.mark.parametrize(
    ("time", "notes"),
    [
        ("0001-01-01T00:00:00Z", []), ("1970-01-01T00:00:00Z", []), ("9999-12-31T23:59:59Z", []),
        ("Fri Jan  2 03:04:05 2026", ["JUnit times that are not ISO 8601 were left out"]),
    ],
)  # fmt: skip
def test_a_time_that_is_none_is_not_known(history, take, write, time, notes):
    report = take(write("a.xml", f'<testsuite name="s" timestamp="{time}"><testcase name="t"/></testsuite>'))
    (row,) = history.tests()
    assert row.started is None
    assert report["notes"] == notes


def test_escape_bytes_and_other_control_characters_do_no_harm(history, take, write):
    case = b'<testcase name="t"><failure message="\x1b[31mred\x00\x08">x</failure></testcase>'
    data = b'<testsuite name="s">' + case + b"</testsuite>"
    assert take(write("e.xml", data))["rejected"] == []
    assert [row.message for row in history.tests()] == ["[31mred"]


def test_utf_16_is_read(take, write):
    document = '<?xml version="1.0" encoding="UTF-16"?><testsuite name="s"><testcase name="täst"/></testsuite>'
    assert take(write("w.xml", document.encode("utf-16")))["added"] == 1


@pytest.mark.parametrize(("said", "encoding"), [("utf-8", "cp1252"), ("", "cp1252"), ("iso-8859-1", "iso-8859-1")])
def test_names_in_windows_characters_stay_two_names(history, take, write, said, encoding):
    pytest.importorskip("lxml.etree")
    declaration = f'<?xml version="1.0" encoding="{said}"?>' if said else ""
    cases = '<testcase name="pr\u00fcf"/><testcase name="pr\u00e4f"/>'
    take(write("w.xml", f'{declaration}<testsuite name="s">{cases}</testsuite>'.encode(encoding)))
    assert sorted(row.node_id for row in history.tests()) == ["pr\u00e4f", "pr\u00fcf"]


@pytest.mark.parametrize("encoding", ["gbk", "no-encoding"])
def test_an_encoding_that_the_parser_does_not_know_stops_nothing(take, write, encoding):
    text = f'<?xml version="1.0" encoding="{encoding}"?><testsuite name="s"><testcase name="a"/></testsuite>'
    report = take(write("x.xml", text), write("y.xml", PYTEST))
    assert report["added"] in (7, 8)  # with lxml, which is not everywhere, 8
    assert [one["reason"].partition(":")[0] for one in report["rejected"]] == ["its encoding cannot be read"]


def test_namespaces_do_no_harm(take, write):
    assert take(write("n.xml", '<x:testsuite xmlns:x="u" name="s"><x:testcase name="t"/></x:testsuite>'))["added"] == 1


CUT = (
    '<testsuite name="s"><testcase name="a"/><testcase name="b"><failure message="x">y</failure></testcase><testcase na'
)


def test_a_file_that_was_cut_is_kept_as_far_as_it_goes_without_lxml(monkeypatch, take, write):
    monkeypatch.setattr(junit, "_lxml", lambda: None)
    report = take(write("cut.xml", CUT))
    assert report["added"] == 2
    (rejected,) = report["rejected"]
    assert rejected["line"] == 1
    assert "2 cases before it were kept" in rejected["reason"]
    assert "sooner[xml]" in rejected["reason"]


@pytest.mark.parametrize(
    ("text", "cases"),
    [
        (CUT, 2),
        ('<testsuite><testcase name="a"><system-out>1 < 2 & 3</system-out></testcase><testcase/></testsuite>', 2),
        ('<testsuite name="s"><testcase name="a&#x1b;[0m"/><testcase name="b"/></testsuite>', 2),
        ('<testsuite name="s"><testcase name="a"></testsuite><testcase name="b"/>', 2),
        (b'<testsuite name="s"><testcase name="a"/><testcase name="\xff\xfe"/><testcase name="c"/></testsuite>', 3),
    ],
)  # fmt: skip
def test_broken_files_are_recovered_with_lxml(take, write, text, cases):
    pytest.importorskip("lxml")
    report = take(write("broken.xml", text))
    assert report["added"] >= cases - 1
    (rejected,) = report["rejected"]
    assert "recovered" in rejected["reason"]


BOMB = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    "text",
    [
        f'{BOMB}<testsuite name="&b;"><testcase name="t"/></testsuite>',
        '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><testsuite><testcase>&f;</testcase></testsuite>',
        f'broken {BOMB}<testsuite name="s"><testcase name="&b;"/></testsuite>',
    ],
)  # fmt: skip
def test_entity_bombs_are_refused(history, take, write, text):
    report = take(write("bomb.xml", f"<!-- -->{text}" if text.startswith("broken") else text))
    assert report["rejected_count"] == 1
    assert history.tests() == []


def test_other_xml_is_rejected_and_stops_nothing(take, write):
    report = take(write("page.xml", "<html><body/></html>"), write("a.xml", PYTEST))
    assert report["added"] == 7
    assert "<html> is no JUnit" in report["rejected"][0]["reason"]


def test_memory_does_not_grow_with_the_file(tmp_path):
    """Peak memory of parsing 20 times as many cases is the same: measured in a process of its own."""
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from sooner.history import HistoryOutcome, TestRow\n"
        "from sooner.history.ingest.junit import read_cases\n"
        "count = []\n"
        "like = TestRow(run='r', outcome=HistoryOutcome.PASSED)\n"
        "read_cases(Path(sys.argv[1]), lambda row: count.append(1) if len(count) < 2 else None, like)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )

    def peak(cases):
        path = tmp_path / f"{cases}.xml"
        body = "".join(f'<testcase classname="c{i}" name="t{i}" time="0.1"/>\n' for i in range(cases))
        path.write_text(f'<testsuite name="s">{body}</testsuite>')
        done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert peak(100_000) - peak(5_000) < 8 * 1024


def test_lxml_is_only_needed_for_broken_files(monkeypatch, take, write):
    monkeypatch.setattr(importlib, "import_module", lambda name: pytest.fail(f"imported {name}"))
    assert take(write("a.xml", PYTEST))["added"] == 7


@pytest.mark.parametrize("time", ["nan", "inf", "-1", "1e308", "soon", ""])
def test_a_duration_that_cannot_be_is_not_known(history, take, write, time):
    text = f'<testsuite><testcase classname="c" name="t" time="{time}"/></testsuite>'
    assert take(write("j.xml", text))["added"] == 1
    assert [row.seconds for row in history.tests()] == [None]
