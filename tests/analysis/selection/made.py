"""Histories made by the tests: jobs with known breakages and known flakes."""

from dataclasses import dataclass, field

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("scipy")

from sooner.analysis.selection.facts import Record, State, record  # noqa: E402

DAY = 86_400.0
HOUR = 3_600.0


@dataclass
class Made:
    """A record, and what truly happened."""

    facts: Record
    broke: dict[int, set[int]] = field(default_factory=dict)
    """Commit -> jobs that broke there."""


def project(
    seed=1, *, jobs=12, commits=400, rate=0.03, flake=0.02, repeats=0.4, block=3, alone=0.5, minutes=None, mend=0.5
):
    """Blocks of jobs that break together, or one alone; a breakage lasts a few commits; flakes everywhere."""
    chance = np.random.default_rng(seed)
    minutes = np.exp(chance.normal(3, 0.7, jobs)) if minutes is None else np.asarray(minutes, float)
    left = np.zeros(jobs, int)
    attempts, broke = [], {}
    for commit in range(commits):
        at = commit * 8 * HOUR
        if chance.random() < rate:
            first = int(chance.integers(jobs))
            hit = (
                {first}
                if chance.random() < alone
                else set(range(first // block * block, first // block * block + block))
            )
            hit = {job for job in hit if job < jobs and not left[job]}
            if hit:
                broke[commit] = hit
                left[list(hit)] = chance.geometric(mend)
        for repeat in range(1 + (chance.random() < repeats)):
            bad = (left > 0) | (chance.random(jobs) < flake)
            attempts += [
                (commit, job, State.FAILED if bad[job] else State.PASSED, at + repeat * 2 * HOUR, float(minutes[job]))
                for job in range(jobs)
            ]
        left = np.maximum(left - 1, 0)
    facts = record([f"{i:040x}" for i in range(commits)], [f"job{i:02}" for i in range(jobs)], attempts)
    return Made(facts, broke)


def series(text, minutes=10.0, step=8 * HOUR):
    """One job from words such as `p p f ff fp p`: a word a commit, a letter an attempt (pass, fail, skip, cancel)."""
    letters = {"p": State.PASSED, "f": State.FAILED, "s": State.SKIPPED, "c": State.CANCELLED}
    attempts = [
        (commit, 0, letters[letter], commit * step + i * HOUR, minutes)
        for commit, word in enumerate(text.split())
        for i, letter in enumerate(word)
    ]
    return record([f"{i:040x}" for i in range(len(text.split()))], ["job"], attempts)
