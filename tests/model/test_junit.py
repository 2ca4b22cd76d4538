import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sooner.model.events import Attempt, Verdict
from sooner.model.jsonl import decode_event, decode_result, encode_event, encode_result, split_lines
from sooner.model.junit import CaseFile, Suite, junit_document
from sooner.model.outcomes import ExitCode, Outcome, exit_code
from sooner.model.units import Unit, variant_of


def document(units, verdicts=(), files=None):
    known = {unit.key: verdict for unit, verdict in zip(units, verdicts, strict=False)}
    suites = [Suite(unit, known.get(unit.key), (files or {}).get(unit.key)) for unit in units]
    return ET.fromstring(junit_document(suites).encode())


def verdict(outcome, **more):
    return Verdict(at=1.0, unit="a", outcome=outcome, **more)


@settings(max_examples=80)
@given(st.lists(st.tuples(st.text(), st.text(), st.sampled_from(Outcome), st.text()), max_size=6))
def test_whatever_units_say_the_document_is_valid_and_counts_them(entries):
    suites = []
    for name, variant, outcome, cause in entries:
        unit = Unit(name=name, variant=variant, command=("x",))
        said = Verdict(at=0.0, unit=name, variant=variant, outcome=outcome, cause=cause)
        suites.append(Suite(unit, said, tail=cause))
    root = ET.fromstring(junit_document(suites).encode())
    assert int(root.get("tests")) == len(root.findall("testsuite/testcase")) == len(entries)
    assert int(root.get("failures")) == len(root.findall("testsuite/testcase/failure"))
    assert int(root.get("errors")) == len(root.findall("testsuite/testcase/error"))
    assert int(root.get("skipped")) == len(root.findall("testsuite/testcase/skipped"))


@pytest.mark.parametrize(
    ("outcome", "tag"),
    [
        (Outcome.FAILED, "failure"),
        (Outcome.TIMED_OUT, "error"),
        (Outcome.CRASHED, "error"),
        (Outcome.OUT_OF_MEMORY, "error"),
        (Outcome.WORKER_LOST, "error"),
        (Outcome.HOLE, "error"),
        (Outcome.NOT_RUN, "error"),
        (Outcome.SKIPPED, "skipped"),
    ],
)
def test_an_outcome_has_its_tag(outcome, tag):
    root = document([Unit(name="a", command=("x",))], [verdict(outcome, cause="why")])
    (problem,) = root.find("testsuite/testcase")
    assert (problem.tag, problem.get("message")) == (tag, "why")


def test_a_unit_without_a_verdict_is_an_error():
    assert document([Unit(name="a", command=("x",))]).find("testsuite/testcase/error").get("type") == "not_run"


def test_cases_of_its_own_stand_for_a_unit_that_they_explain():
    unit = Unit(name="a", command=("x",))
    files = {unit.key: CaseFile(cases=('<testcase name="one"><failure/></testcase>',), failures=1)}
    names = [case.get("name") for case in document([unit], [verdict(Outcome.FAILED)], files).iter("testcase")]
    assert names == ["one"]


def test_a_failure_that_its_own_cases_do_not_show_gets_a_case():
    unit = Unit(name="a", command=("x",))
    files = {unit.key: CaseFile(cases=('<testcase name="one"/>',))}
    root = document([unit], [verdict(Outcome.FAILED, cause="exit code 2")], files)
    assert [case.get("name") for case in root.iter("testcase")] == ["one", "a"]


def test_an_event_survives_its_spelling():
    attempt = Attempt(outcome=Outcome.CRASHED, devices=("virtual:1",), signal=11)
    said = verdict(Outcome.CRASHED, attempts=(attempt,), cause="SIGSEGV")
    assert decode_event(encode_event(said)) == said


def test_a_result_survives_its_spelling_but_for_its_place_in_the_stream():
    said = verdict(Outcome.PASSED, attempts=(Attempt(outcome=Outcome.PASSED, ended_at=1.0),))
    assert decode_result(encode_result(said)) == said
    assert b'"event"' not in encode_result(said)


def test_fields_of_a_newer_writer_are_passed_over():
    line = b'{"event":"interrupted","at":1.0,"reason":"SIGINT","added_later":[1]}'
    assert decode_event(line).reason == "SIGINT"


def test_a_line_that_was_cut_by_a_crash_is_left_out():
    assert split_lines(b'{"a":1}\n\0\0{"b":2}\n{"c"') == [b'{"a":1}', b'{"b":2}']


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([], ExitCode.NOTHING_TO_RUN),
        ([Outcome.PASSED, Outcome.SKIPPED], ExitCode.ALL_PASSED),
        ([Outcome.HOLE, Outcome.PASSED], ExitCode.COVERAGE_HOLE),
        ([Outcome.HOLE, Outcome.WORKER_LOST], ExitCode.INFRASTRUCTURE),
        ([Outcome.HOLE, Outcome.WORKER_LOST, Outcome.TIMED_OUT], ExitCode.SOME_FAILED),
    ],
)
def test_the_worst_verdict_decides_the_exit_code(outcomes, code):
    assert exit_code(outcomes) is code


def test_an_interrupted_run_says_so_whatever_failed():
    assert exit_code([Outcome.FAILED, Outcome.NOT_RUN], interrupted=True) is ExitCode.INTERRUPTED
    assert exit_code([Outcome.NOT_RUN], interrupted=True) is ExitCode.SIGINT
    assert exit_code([Outcome.NOT_RUN], interrupted=True, has_started=True) is ExitCode.INTERRUPTED


def test_a_variant_is_sorted_and_quoted():
    assert variant_of({"B": "x y", "A": "1"}) == "A=1 B='x y'"
