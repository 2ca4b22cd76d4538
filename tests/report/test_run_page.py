"""A run as a page: well-formed, complete, and deaf to what tests are called or print."""

from html.parser import HTMLParser

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sooner.model.devices import Device, DeviceId, DeviceKind
from sooner.model.events import Attempt, Verdict
from sooner.model.outcomes import ExitCode, Outcome
from sooner.report.run_page import MOST_LOGS, run_page, timeline
from sooner.report.summary import Figures

DEVICES = [
    Device(id=DeviceId(f"virtual:{i}"), kind=DeviceKind.VIRTUAL, index=i, visible=str(i), node="") for i in range(2)
]
FIGURES = Figures(makespan_s=4.0, bound_s=3.0, sequential_s=6.0)


def attempt(outcome=Outcome.PASSED, devices=("virtual:0",), began=0.0, ended=2.0):
    return Attempt(outcome=outcome, cause="", devices=devices, started_at=began, ended_at=ended)


def verdict(name="a", outcome=Outcome.PASSED, attempts=(), cause=""):
    last = attempts[-1] if attempts else None
    return Verdict(
        at=9.0,
        unit=name,
        variant="",
        outcome=outcome,
        cause=cause,
        attempts=tuple(attempts),
        duration_s=last.ended_at - last.started_at if last else 0.0,
        log="logs/a.log" if attempts else "",
    )


def page(*verdicts, log_of=lambda _verdict: "", notes=(), name="run"):
    return run_page(
        verdicts, FIGURES, DEVICES, name=name, code=ExitCode.SOME_FAILED, notes=notes, logs_at="out", log_of=log_of
    )


class Read(HTMLParser):
    """Tags with their attributes, and the text of the page without its script and style."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self._inside = [], "", ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data):
        if self._inside not in ("script", "style"):
            self.text += data


def test_every_unit_has_a_row_with_its_outcome_and_a_link_to_its_log():
    read = Read(page(verdict("good", attempts=[attempt()]), verdict("bad", Outcome.FAILED, [attempt(Outcome.FAILED)])))
    assert sum(tag == "tr" for tag, _ in read.tags) == 3
    assert [attributes["href"] for tag, attributes in read.tags if tag == "a"] == ["out/logs/a.log"] * 2
    assert "1 passed" in read.text
    assert "1 FAILED" in read.text


def test_an_attempt_is_a_bar_on_each_of_its_devices():
    both = verdict(attempts=[attempt(Outcome.FAILED, ("virtual:0", "virtual:1")), attempt(began=2.0, ended=4.0)])
    bars = [attributes for tag, attributes in Read(timeline([both], DEVICES)).tags if tag == "rect"]
    assert [(bar["class"], bar["y"]) for bar in bars] == [("passed", "2"), ("failed", "2"), ("failed", "22")]
    assert float(bars[1]["x"]) < float(bars[0]["x"])


@pytest.mark.parametrize(("node", "least", "most"), [("", 150, 150), ("gpu-node-17-of-the-long-name", 200, 334)])
def test_bars_begin_behind_the_longest_label(node, least, most):
    device = msgspec.structs.replace(DEVICES[0], node=node)
    (bar,) = [
        attributes
        for tag, attributes in Read(timeline([verdict(attempts=[attempt()])], [device])).tags
        if tag == "rect"
    ]
    assert least <= float(bar["x"]) <= most


def test_of_many_bars_in_one_pixel_one_is_drawn_and_what_did_not_pass_on_top_of_it():
    attempts = [attempt(began=i / 1000, ended=(i + 1) / 1000) for i in range(10_000)]
    attempts[5000] = attempt(Outcome.FAILED, began=5.0, ended=5.001)
    bars = [tag for tag in Read(timeline([verdict(attempts=attempts)], DEVICES)).tags if tag[0] == "rect"]
    assert len(bars) < 900
    assert [bar["class"] for _, bar in bars].index("failed") == len(bars) - 1


def test_colours_of_bars_are_named_where_there_are_several():
    again = verdict(attempts=[attempt(Outcome.WORKER_LOST), attempt(began=2.0, ended=4.0)])
    chips = [attributes["class"] for tag, attributes in Read(timeline([again], DEVICES)).tags if tag == "span"]
    assert chips == ["chip passed", "chip worker_lost"]
    assert "<span" not in timeline([verdict(attempts=[attempt()])], DEVICES)


def test_the_time_before_a_run_was_resumed_is_cut_out_and_marked():
    twice = verdict(attempts=[attempt(), attempt(began=50_002.0, ended=50_004.0)])
    drawn = timeline([twice], DEVICES, [(2.0, 50_002.0)])
    (first, second) = [attributes for tag, attributes in Read(drawn).tags if tag == "rect"]
    assert float(second["x"]) - float(first["x"]) == pytest.approx(float(first["width"]), abs=1)
    assert "resumed after 13 h 53 min" in drawn
    assert "4.00 s</text>" in drawn


def test_units_without_a_device_have_a_row_of_their_own():
    read = Read(timeline([verdict(attempts=[attempt(devices=())])], DEVICES))
    assert "the host" in read.text


def test_a_run_in_which_nothing_ran_says_so():
    assert "nothing ran" in page(verdict(outcome=Outcome.HOLE, cause="needs 9 devices"))


def test_the_end_of_the_output_is_shown_of_what_did_not_pass_alone():
    text = page(
        verdict("good", attempts=[attempt()]),
        verdict("bad", Outcome.FAILED, [attempt(Outcome.FAILED)]),
        log_of=lambda one: f"said by {one.unit}",
    )
    assert "said by bad" in text
    assert "said by good" not in text


def test_of_very_many_failures_the_rest_is_counted():
    bad = [verdict(f"u{i}", Outcome.FAILED, [attempt(Outcome.FAILED)]) for i in range(MOST_LOGS + 3)]
    text = page(*bad)
    assert text.count("<details>") == MOST_LOGS
    assert "and 3 more" in text


def test_a_page_may_load_and_send_nothing():
    metas = [attributes for tag, attributes in Read(page()).tags if tag == "meta"]
    (policy,) = [meta["content"] for meta in metas if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")


@pytest.mark.parametrize("place", ["unit", "cause", "output", "note", "name"])
@given(st.text(max_size=30).map(lambda text: f"<script>x</script>\"'&{text}"))
def test_what_tests_say_is_text(place, text):
    said = page(
        verdict(
            text if place == "unit" else "u",
            Outcome.FAILED,
            [attempt(Outcome.FAILED)],
            cause=text if place == "cause" else "",
        ),
        log_of=lambda _verdict: text if place == "output" else "",
        notes=[text] if place == "note" else [],
        name=text if place == "name" else "run",
    )
    plain = [tag for tag, _ in Read(page(verdict("u", Outcome.FAILED, [attempt(Outcome.FAILED)]), notes=["n"])).tags]
    found = [tag for tag, _ in Read(said).tags]
    assert found.count("script") == 1
    assert set(found) <= set(plain)
    said.encode("utf-8")
