"""The quarantine: who enters, who leaves, what it excuses, and its file."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sooner.analysis.trunk.facts import Kind
from sooner.analysis.trunk.flaky import Run, Subject, by_subject, ranking
from sooner.analysis.trunk.quarantine import Rule, stable_runs, updated
from sooner.model.quarantine import (
    Entry,
    Excuses,
    Quarantine,
    QuarantineError,
    quarantine_text,
    read_quarantine,
    unknown_note,
)

TODAY = date(2026, 11, 21)
DAY = 86_400.0
MIDNIGHT = 1_795_219_200.0  # 2026-11-21


def runs(pattern, name="t.py::test_a", *, kind=Kind.TEST, at=MIDNIGHT, variant=""):
    found = []
    for number, word in enumerate(pattern.split()):
        for letter in word:
            subject = Subject(kind, name, variant)
            found.append(Run(subject=subject, code=f"{name}{number}", failed=letter == "F", started=at, seconds=1.0))
            at += 60
    return found


ENTERING = Rule()


def update(old, made, *, rule=ENTERING, **more):
    return updated(old, ranking(made), by_subject(made), today=TODAY, rule=rule, **more)


def test_two_flakes_on_two_commits_enter_with_rate_interval_and_rule():
    done = update(Quarantine(), runs("FP P P FP P P"))
    (entry,) = done.entered
    assert done.quarantine.tests == (entry,)
    assert (entry.id, entry.since, entry.failures, entry.runs) == ("t.py::test_a", TODAY, 2, 8)
    assert entry.low < entry.rate == 0.25 < entry.high
    assert entry.stable_runs == stable_runs(0.25)
    assert len(entry.evidence) == 2


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("FFP P P", "one commit may have met a bad machine"),
        ("FP P FP P F F", "it is broken now"),
        ("FP " * 6 + "P " * 40, "it has been stable since"),
        ("P F P F P", "nothing proves that the commits were sound"),
    ],
)
def test_what_is_not_surely_flaky_does_not_enter(pattern, why):
    assert update(Quarantine(), runs(pattern)).entered == (), why
    assert update(Quarantine(), runs(pattern)[::-1]).entered == (), "the order of rows is no order of time"


def test_a_job_enters_only_where_jobs_are_asked_for():
    made = runs("FP P FP", "linux / test", kind=Kind.JOB)
    assert update(Quarantine(), made).entered == ()
    done = update(Quarantine(), made, rule=Rule(kinds=frozenset({Kind.JOB})))
    assert [entry.id for entry in done.quarantine.jobs] == ["linux / test"]
    assert done.quarantine.tests == ()


def test_what_has_no_name_does_not_enter():
    made = [*runs("FP P FP", name=""), *runs("FP P FP")]
    done = update(Quarantine(), made)
    assert [entry.id for entry in done.entered] == ["t.py::test_a"]
    assert read_quarantine(quarantine_text(done.quarantine), source="q.toml") == done.quarantine


def entry(**more):
    return Entry(**{"id": "t.py::test_a", "since": TODAY, "stable_runs": 5, **more})


def test_an_entry_leaves_after_its_passes_in_a_row():
    old = Quarantine(tests=(entry(),))
    assert update(old, runs("F P P P P")).left == ()
    assert update(old, runs("P P P P P F")[::-1]).left == (), "the order of rows is no order of time"
    done = update(old, runs("F P P P P P"))
    assert [(one.entry.id, one.passes) for one in done.left] == [("t.py::test_a", 5)]
    assert done.quarantine.tests == ()


def test_passes_from_before_it_entered_do_not_count():
    old = Quarantine(tests=(entry(),))
    assert update(old, runs("P P P P P P", at=MIDNIGHT - DAY)).quarantine == old


def test_runs_of_all_parameters_count_for_the_function():
    old = Quarantine(tests=(entry(),))
    made = runs("P P P P P", "t.py::test_a[1]") + runs("P P F", "t.py::test_a[2]", at=MIDNIGHT + 1000)
    assert update(old, made).left == ()


@pytest.mark.parametrize(("variant", "entered"), [("", ()), ("4 GPUs", ()), ("2 GPUs", ("t.py::test_a[1]",))])
def test_what_an_entry_holds_already_does_not_enter_again(variant, entered):
    old = Quarantine(tests=(entry(variant=variant),))
    done = update(old, runs("FP P P FP P P", "t.py::test_a[1]", variant="4 GPUs"))
    assert tuple(one.id for one in done.entered) == entered


def test_flakes_are_counted_not_only_their_commits():
    assert update(Quarantine(), runs("FP P P FP P P"), rule=Rule(failures=3)).entered == ()
    assert update(Quarantine(), runs("FP P P FFP P P"), rule=Rule(failures=3)).entered


def test_an_entry_that_nobody_dated_is_judged_by_all_its_runs():
    old = Quarantine(tests=(entry(since=None),))
    assert update(old, runs("P P P P P", at=60.0)).left


def test_an_entry_that_never_ran_stays_and_is_named():
    done = update(Quarantine(tests=(entry(id="gone"),)), runs("P"))
    assert [one.id for one in done.silent] == [one.id for one in done.quarantine.tests] == ["gone"]


def test_writing_again_keeps_since_and_reason_and_tells_the_newest_rate():
    old = Quarantine(tests=(entry(since=date(2026, 1, 1), reason="issue 12", rate=0.5),))
    (kept,) = update(old, runs("FP P P FP P P")).quarantine.tests
    assert (kept.since, kept.reason, kept.rate) == (date(2026, 1, 1), "issue 12", 0.25)


def test_a_check_lets_nothing_in_and_changes_nothing_else():
    old = Quarantine(tests=(entry(),))
    made = runs("FP P FP") + runs("FP P FP", "t.py::test_new")
    assert update(old, made, rule=None).quarantine == old


def test_the_rarer_the_flake_the_longer_the_wait():
    assert stable_runs(0.5) == 20
    assert stable_runs(0.05) == 59  # 0.95 ** 59 < 0.05
    assert stable_runs(0.0001) == stable_runs(0.0) == 500


# The file

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
SHARES = st.none() | st.floats(0, 1)
ENTRIES = st.builds(
    Entry,
    id=WORDS, variant=st.just("") | WORDS, since=st.none() | st.dates(), rate=SHARES, low=SHARES, high=SHARES,
    stable_runs=st.integers(1, 1000), evidence=st.lists(WORDS, max_size=3).map(tuple), reason=st.just("") | WORDS,
)  # fmt: skip


@given(st.lists(ENTRIES, max_size=3).map(tuple), st.lists(ENTRIES, max_size=2).map(tuple))
def test_what_is_written_is_read_back_whatever_it_holds(tests, jobs):
    quarantine = Quarantine(tests=tests, jobs=jobs)
    assert read_quarantine(quarantine_text(quarantine), source="q") == quarantine


def test_numbers_of_runs_are_written_too():
    quarantine = Quarantine(tests=(entry(failures=3, runs=90),))
    assert read_quarantine(quarantine_text(quarantine), source="q") == quarantine


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("version = ", "q is no TOML"),
        ("", "version None is not known (write `version = 1` at its top)"),
        ("version = 2", "a newer sooner wrote it"),
        ("version = true", "version True is not known"),
        ("version = 1\n[[tests]]\n", "'tests' is unknown: there are [[test]] and [[job]]"),
        ("version = 1\n[test]\nid = 'a'", "write [[test]], with two brackets"),
        ("version = 1\n[[test]]\n", "q: test 1: Object missing required field `id`"),
        ("version = 1\n[[test]]\nid = ''", "q: test 1: id is empty"),
        ("version = 1\n[[test]]\nid = 'a'\n[[test]]\nid = 3", "q: test 2: Expected `str`, got `int`"),
        ("version = 1\n[[test]]\nid = 'a'\nsinc = 2026-01-01", "'sinc' is unknown: did you mean 'since'?"),
        ("version = 1\n[[test]]\nid = 'a'\nstable_runs = 0", "stable_runs must be at least 1"),
        ("version = 1\n[[test]]\nid = 'a'\nrate = 7", "q: test 1: Expected `float` <= 1.0 - at `$.rate`"),
        ("version = 1\n[[test]]\nid = 'a'\nrate = nan", "q: test 1: Expected `float` >= 0.0 - at `$.rate`"),
        ("version = 1\n[[job]]\nid = 'a'\nlow = -1", "q: job 1: Expected `float` >= 0.0 - at `$.low`"),
        ("version = 1\n[[test]]\nid = 'a'\nruns = -1", "q: test 1: Expected `int` >= 0 - at `$.runs`"),
        ("version = 1\ntest = [1]", "q: test 1: Expected `object`, got `int`"),
    ],
)
def test_a_broken_file_is_one_clear_error(text, problem):
    with pytest.raises(QuarantineError) as caught:
        read_quarantine(text, source="q")
    assert problem in str(caught.value)


def excuses(*ids, **more):
    return Excuses(Quarantine(tests=tuple(Entry(id=one, **more) for one in ids)))


@pytest.mark.parametrize(
    "spelling", ["tests/test_a.py::TestB::test_c", "tests.test_a.TestB::test_c", "tests/test_a.py::TestB::test_c[1-x]"]
)
def test_a_test_is_found_by_its_node_id_by_junits_spelling_and_with_parameters(spelling):
    assert excuses("tests/test_a.py::TestB::test_c").holds_test(spelling)


def test_one_parameter_in_quarantine_excuses_no_other():
    held = excuses("t.py::test_c[1.5-a/b]")
    assert held.holds_test("t.py::test_c[1.5-a/b]")
    assert not held.holds_test("t.py::test_c[2]")
    assert not held.holds_test("t.py::test_c")
    assert not held.holds_test("t.py::test_cd")


def test_a_unit_is_found_by_its_name_and_variant():
    held = excuses("u", variant="A=1")
    assert held.holds_unit("u", "A=1")
    assert not held.holds_unit("u", "A=2")
    assert excuses("u").holds_unit("u", "A=2")
    assert not excuses("u").holds_unit("uu", "")


def test_entries_that_nothing_asked_for_are_named():
    held = excuses(*(f"t{i}" for i in range(8)))
    held.holds_unit("t0", "")
    assert unknown_note(held.unknown(), "q.toml") == (
        "q.toml also names what this run does not have: t1, t2, t3, t4, t5 and 2 more"
    )
    assert unknown_note([], "q.toml") == ""


def test_a_name_in_the_file_cannot_write_over_what_a_run_says():
    held = excuses("a\x1b[31m\nexit code 0: all passed")
    assert unknown_note(held.unknown(), "q.toml").endswith("does not have: a exit code 0: all passed")
