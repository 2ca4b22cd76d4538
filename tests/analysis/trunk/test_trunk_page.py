"""The example of docs/explanation/culprits.md says what is really decided."""

import re
from pathlib import Path

import msgspec
import pytest

from sooner.analysis.trunk.decide import decide
from sooner.analysis.trunk.facts import Question

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "culprits.md"
ROWS = re.findall(r"^\| .* \| `(c\d)`, ([\d.]+) % \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
HALF, RUN = 1800.0, 5400.0
THEN = 6 * HALF + 1.6 * 3600
TIMES = {"once": 1, "twice": 2, "three times": 3}


def run(commit, status, start):
    return {"sha": f"c{commit}", "status": status, "started_at": start, "ended_at": start + RUN}


def failed(commit, *starts):
    return [run(commit, "failure", start) for start in starts or (commit * HALF,)]


def passed(commit, *starts):
    return [run(commit, "success", start) for start in starts or (commit * HALF,)]


AGAIN = (THEN, THEN + 60)
BOTH = [*failed(5), *failed(6)]
SEEN = [
    (failed(5), None),
    (failed(5), (0, 200)),
    (failed(5), (20, 200)),
    (BOTH, None),
    ([*BOTH, *failed(5, *AGAIN), *passed(4, *AGAIN)], None),
    ([*BOTH, *failed(5, *AGAIN), *failed(4, *AGAIN)], None),
]


@pytest.mark.parametrize(("seen", "told"), list(zip(SEEN, ROWS, strict=True)))
def test_a_row_of_the_page_is_what_is_decided(seen, told):
    events, prior = seen
    signal = {"key": "ci / test", "kind": "test", "events": [run(i, "success", i * HALF) for i in range(1, 5)] + events}
    now = max(event["ended_at"] for event in events) + 360
    commits = [{"sha": f"c{i}", "time": i * HALF} for i in range(9, 0, -1)]
    question = {"now": now, "commits": commits, "signals": [signal | ({"flake_prior": prior} if prior else {})]}
    (decision,) = decide(msgspec.convert(question, Question)).decisions
    suspect, percent, answer = told
    assert (decision.culprit, f"{decision.probability:.1%}") == (suspect, f"{percent}%")
    asked = {sha: TIMES[count] for sha, count in re.findall(r"`(c\d)` (once|twice|three times)", answer)}
    assert {one.sha: one.count for one in decision.reruns} == asked
