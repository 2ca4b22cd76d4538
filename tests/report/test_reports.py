import io
import re
from pathlib import Path

import pytest

from sooner.analysis.selection.calibrate import Point
from sooner.analysis.selection.choice import FixedSet, Selection
from sooner.analysis.trunk.breakages import Breakage
from sooner.analysis.trunk.facts import Again, Answer, Commit, Hold, Question, Reason, Rerun, Revert
from sooner.model.devices import Device, DeviceId, DeviceKind
from sooner.model.events import Attempt, DeviceChanged, RunStarted, Started, Verdict
from sooner.model.outcomes import ExitCode, Outcome
from sooner.model.text import columns
from sooner.report.board import Board
from sooner.report.github import annotations, step_summary
from sooner.report.prediction import prediction_text
from sooner.report.progress import Progress
from sooner.report.replay import replay
from sooner.report.selection import selection_text
from sooner.report.signal_times import week_bars
from sooner.report.summary import Figures, summary_text
from sooner.report.trunk import breakages_as_text, decisions_as_text
from sooner.report.wording import counted, seconds, table

GPUS = [Device(id=DeviceId(f"virtual:{i}"), kind=DeviceKind.VIRTUAL, index=i, visible=str(i)) for i in range(2)]
NOTHING = Figures(makespan_s=0.0, bound_s=0.0, sequential_s=0.0)


def verdict(name="a", outcome=Outcome.FAILED, **more):
    attempt = Attempt(outcome=outcome, devices=("virtual:1",), cause=more.get("cause", ""))
    return Verdict(at=1.0, unit=name, outcome=outcome, attempts=(attempt,), **more)


def lines(*events):
    progress = Progress(io.StringIO(), GPUS, colour=False)
    return [line for line in map(progress.line, events) if line]


def test_a_week_in_which_nothing_ran_is_a_blank_among_the_bars():
    week = 7 * 86_400.0
    assert week_bars([]) == ""
    assert week_bars([(0, 60.0), (week, 120.0), (4 * week, 60.0)]) == "▁█  ▁"
    assert week_bars([(0, 60.0), (26 * week, 90.0), (27 * week, 120.0)]) == "▁█"


def test_progress_names_unit_and_device():
    started = Started(at=0.0, unit="a", variant="A=1", attempt=1, devices=("virtual:0", "virtual:1"))
    assert lines(started) == [">>> Starting: a [A=1] on GPU 0,1"]


def test_progress_counts_verdicts():
    begun = RunStarted(at=0.0, run="r", units=2, pending=2, devices=("virtual:0",))
    assert lines(begun, verdict(cause="exit code 1"))[1] == (
        ">>> Finished: a on GPU 1: FAILED (exit code 1) in 0.00 s [1/2]"
    )


def test_progress_says_why_a_device_is_gone():
    changed = DeviceChanged(at=0.0, device="virtual:1", state="put_aside", reason="Xid 79")
    assert lines(changed) == [">>> GPU 1 put aside: Xid 79"]


def test_a_name_cannot_break_out_of_its_line():
    started = Started(at=0.0, unit="a\n::error::x\x1b[2J", attempt=1)
    assert lines(started) == [">>> Starting: a ::error::x on the host"]


def test_an_annotation_is_escaped():
    (line,) = annotations([verdict("a:b,c%", cause="x\ny")])
    assert line == "::error title=a%3Ab%2Cc%25::FAILED: x%0Ay"


def test_at_most_ten_annotations_are_made():
    assert len(annotations([verdict(str(i)) for i in range(30)])) == 10


def test_a_step_summary_holds_no_html_and_no_markdown_of_a_test():
    text = step_summary([verdict("<img src=x> `|`", cause="[a](b)")], "1 unit")
    assert "<img" not in text
    assert r"\`\|\`" in text
    assert r"\[a\](b)" in text


def test_the_summary_lists_what_did_not_pass_and_where_its_log_is():
    text = summary_text(
        [verdict(log="logs/a.log", cause="exit code 1")], NOTHING, Path("out"), code=ExitCode.SOME_FAILED,
        colour=False, notes=["mind this"],
    )  # fmt: skip
    assert "a: FAILED (exit code 1)  out/logs/a.log" in text
    assert "note: mind this" in text
    assert "exit code 1: some failed" in text


def test_a_log_that_is_gone_is_said_to_be(tmp_path):
    stream = io.StringIO()
    replay(stream, [verdict(log="logs/gone.log")], tmp_path, GPUS, colour=False, open_log=lambda path: path.open("rb"))
    assert "(no log: No such file or directory)" in stream.getvalue()


def test_a_verdict_does_not_claim_to_be_certain():
    decisions = (Revert(culprit="abc", signals=("s",), probability=0.999_995, reason="why"),)
    told = decisions_as_text(Question(now=0.0, commits=(), signals=()), Answer(id=None, decisions=decisions))
    assert "REVERT abc (over 99.99 %): why" in told


def test_an_interruption_before_anything_ran_is_said_in_words():
    text = summary_text([], NOTHING, Path("my out"), code=ExitCode.SIGINT, colour=False, notes=())
    assert text.endswith("to go on: sooner run --resume 'my out'\nexit code 130: interrupted before anything ran\n")


@pytest.mark.parametrize(
    ("unknown", "known", "note"),
    [
        (2, 3, "2 units without a known duration, taken as the median of the others"),
        (2, 0, "no duration is known, each is taken as 1 s (an earlier run, or --durations, tells them)"),
    ],
)
def test_a_prediction_says_what_unknown_durations_are_taken_for(unknown, known, note):
    units = [{"unit": f"u{i}", "variant": "", "devices": [], "start_s": 0, "end_s": 1} for i in range(unknown + known)]
    document = {"order": units, "holes": [], "makespan_s": 1, "bound_s": 1}
    assert f"note: {note}" in prediction_text(document, unknown=unknown, units=unknown + known, notes=())


def test_the_board_prints_what_did_not_pass_and_not_what_did():
    stream = io.StringIO()
    with Board(stream, GPUS) as board:
        board(RunStarted(at=0.0, run="r", units=2, pending=2, devices=("virtual:0",)))
        board(Started(at=0.0, unit="good", attempt=1, devices=("virtual:0",)))
        board(verdict("good", Outcome.PASSED))
        board(verdict("bad"))
    assert "Finished: bad" in stream.getvalue()
    assert "Finished: good" not in stream.getvalue()


def test_the_board_keeps_devices_and_seconds_beside_a_name_that_is_wider_than_the_terminal():
    stream = io.StringIO()
    with Board(stream, GPUS) as board:
        board(Started(at=0.0, unit="long" * 50, attempt=1, devices=("virtual:0",)))
        with board._console.capture() as drawn:
            board._console.print(board._table())
    busy, idle, _ = drawn.get().splitlines()
    assert re.fullmatch(r"GPU 0  0\.\d\d s  (long)+l?o?n?g?…", busy)
    assert idle.split() == ["GPU", "1", "idle"]


def test_seconds_are_spelled_for_people():
    assert [seconds(value) for value in (0.421, 12.34, 245.0, 7380.0)] == [
        "0.42 s",
        "12.3 s",
        "4 min 05 s",
        "2 h 03 min",
    ]


def test_a_cell_of_a_megabyte_widens_no_other_line():
    lines = table([("JOB", "N", "WHY"), ("x" * 1_000_000, "12", "y" * 1_000_000), ("small", "3", "")], right=(1,))
    first, long, small = lines.splitlines()
    assert first.startswith("JOB")
    assert first.index("WHY") == long.index("y")
    assert "x…  12  y" in long
    assert max(map(len, (first, small))) < 200
    assert len(long) < 1200


@pytest.mark.parametrize("name", ["試験", "e\u0301te\u0301", "ﬁne", "🚀 launch", "a\u200bb", "試" * 200])
def test_columns_stand_below_each_other_whatever_a_name_is_written_in(name):
    for right in ((), (0,)):
        lines = table([("JOB", "N"), (name, "12"), ("small", "34")], right=right).splitlines()
        starts = [columns(line[: line.rindex(cell)]) for line, cell in zip(lines, ("N", "12", "34"), strict=True)]
        assert len(set(starts)) == 1
        assert starts[0] <= 122


@pytest.mark.parametrize("name", ["::error::x", "  ::stop-commands::x", "\u2003::add-mask::x"])
def test_a_line_of_a_table_is_no_command_for_github_whatever_it_begins_with(name):
    _, line, other = table([("JOB", "N"), (name, "1"), ("small::x", "::y")]).splitlines()
    assert line.startswith("- ")
    assert name.strip() in line
    assert other.startswith("small::x")


def test_indents_of_a_cell_are_kept():
    assert table([("OPTION",), ("* one",), ("  two",)]).splitlines() == ["OPTION", "* one", "  two"]


def test_one_is_said_in_the_singular():
    assert [counted(n, "row") for n in (0, 1, 2, 1200)] == ["0 rows", "1 row", "2 rows", "1,200 rows"]


def test_a_level_is_said_with_the_breakages_that_it_rests_on_and_catches_nothing_where_none_is_known():
    def said(**known):
        point = Point(level=0.6, **known)
        answer = Selection(
            jobs=(), level=0.6, cost_share=0.6, expected=point, frontier=(point,),
            breakages=20, enough_evidence=False, needed=99, fixed=None, note="",
        )  # fmt: skip
        return selection_text(answer)

    some = said(recall=1.0, low=0.767, breakages=11.31)
    assert "of 11.3 breakages before it would have caught 100.0 %, at least 76.7 % (95 %)" in some
    none = said(recall=1.0, low=0.0, breakages=0.0)
    assert "at a level of 60.0 %; no breakage is known that tells what it would catch" in none
    assert none.splitlines()[2] == "no breakage is known that tells what a budget would catch"
    assert "100.0" not in none


def test_a_fixed_set_of_very_many_jobs_names_the_first_and_counts_the_others():
    point = Point(level=1.0, recall=1.0, low=0.9, breakages=9.0)

    def said(count):
        names = tuple(f"j{number}" for number in range(count))
        fixed = FixedSet(jobs=names, cost_share=0.5, covered=9, breakages=9, gap=0.0, proven=True, by="exact")
        answer = Selection(
            jobs=(), level=1.0, cost_share=1.0, expected=point, frontier=(),
            breakages=9, enough_evidence=False, needed=99, fixed=fixed, note="",
        )  # fmt: skip
        return selection_text(answer)

    assert said(20).endswith("j18, j19")
    assert said(337).endswith("j18, j19 and 317 more (--json)")


def test_signals_of_which_the_same_is_said_are_one_line():
    held = [Hold(signal=f"job :: t.py::test_it[{n}]", reason=Reason.WAITING, detail="runs tell") for n in range(3)]
    other = Hold(signal="build", reason=Reason.WAITING, detail="others")
    told = decisions_as_text(
        Question(now=0.0, commits=(), signals=()), Answer(id=None, decisions=(held[0], other, *held[1:]))
    )
    assert told.splitlines()[1:] == [
        "HOLD   job :: t.py::test_it[0] and 2 more signals: waiting: runs tell",
        "HOLD   build: waiting: others",
        "held: 4 waiting",
    ]
    broken = [
        Breakage(signal=name, culprit=0, probability=0.9, first=0, last=0, fixed=0, failures=failures, is_certain=1.0)
        for name, failures in (("a", 2), ("b", 3), ("c", 2))
    ]
    first, second = breakages_as_text(broken, (Commit(sha="abc", time=0.0),)).splitlines()
    assert ": a and 1 more signal, 2 failures, fixed" in first
    assert ": b, 3 failures, fixed" in second


def test_names_of_commits_and_signals_write_no_verdicts_of_their_own():
    evil, sha = "x\x1b[2J\nREVERT all", "\x1b[2J\nabc"
    decisions = (
        Revert(signals=(evil,), culprit=sha, reason="failures"),
        Rerun(signal=evil, reruns=(Again(sha, 1),), reason="too little is known"),
        Hold(signal=evil, reason=Reason.WAITING, detail=f"runs of {evil} tell"),
    )
    commits = (Commit(sha=sha, time=0.0),)
    broken = Breakage(signal=evil, culprit=0, probability=1.0, first=0, last=0, fixed=0, failures=2, is_certain=1.0)
    told = decisions_as_text(Question(now=0.0, commits=commits, signals=()), Answer(id=None, decisions=decisions))
    assert "\x1b" not in told + breakages_as_text([broken], commits)
    assert [line.split()[0] for line in told.splitlines()] == ["1", "REVERT", "breaks", "RERUN", "too", "HOLD", "held:"]
    assert "\n" not in breakages_as_text([broken], commits)
