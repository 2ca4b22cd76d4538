"""The one required check: did everything that was selected pass? Pure.

A job that is required by name and skipped blocks a merge for ever, or counts as passed, as the CI system likes. So only
the gate is required. It is always there, and looks itself at what was selected and what became of it.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

_PASSED: Final = frozenset({"success", "passed", "pass"})
_FINE_IF_LEFT_OUT: Final = frozenset({*_PASSED, "skipped", "neutral", "not_run", ""})


class Verdict(Struct, frozen=True, kw_only=True):
    """What the gate says."""

    passed: bool
    problems: tuple[str, ...]
    selected: int


def gate(selected: Sequence[str], results: Mapping[str, str], carriers: Sequence[str] = ()) -> Verdict:
    """Judge the results of a change.

    Args:
        selected: Jobs that had to run.
        results: What became of each job, or of the job that carries a matrix of them (GitHub's `needs`).
        carriers: Names in `results` that stand for whatever was selected: jobs with a matrix.
    """
    problems = []
    carried = [name for name in carriers if name in results]
    problems += [f"{name}: no result (it carries the selected jobs)" for name in carriers if name not in results]
    for job in selected:
        result = results.get(job)
        if result is None and carried:
            continue
        if not result:
            problems.append(f"{job}: selected, but there is no result of it")
        elif result.lower() not in _PASSED:
            problems.append(f"{job}: selected, and {result}")
    wanted = set(selected)
    for name, result in results.items():
        if name in wanted:
            continue
        fine = _PASSED if name in carried and selected else _FINE_IF_LEFT_OUT
        if result.lower() not in fine:
            problems.append(f"{name}: {result}")
    unique = tuple(dict.fromkeys(problems))
    return Verdict(passed=not unique, problems=unique, selected=len(selected))
