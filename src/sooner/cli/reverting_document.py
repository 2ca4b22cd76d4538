"""The decisions that reverts are made from: what `sooner trunk decide` or `sooner trunk verdicts --json` printed."""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from sooner.analysis.trunk.reverting import is_sha
from sooner.model.errors import UsageError


class Wanted(Struct, frozen=True, kw_only=True):
    """One revert that was decided."""

    culprit: str
    signals: tuple[str, ...] = ()
    probability: float | None = None
    reason: str = ""


def wanted_in(text: str, *, source: str) -> tuple[Wanted, ...]:
    """The reverts of a document, or of documents a line each; one for each culprit, in their order.

    Raises:
        UsageError: It is no such document, or names what is no commit.
    """
    every = [_wanted(decision, place) for place, decision in _decisions(text, source)]
    culprits = {one.culprit for one in every}
    found: dict[str, Wanted] = {}
    for told in every:
        one = msgspec.structs.replace(told, culprit=_in_full(told.culprit, culprits))
        known = found.get(one.culprit)
        found[one.culprit] = one if known is None else _joined(known, one)
    return tuple(found.values())


def _in_full(sha: str, known: Collection[str]) -> str:
    """The longest spelling of a commit's id: some tell it short; one that fits several commits stays as it is."""
    longer = sorted((one for one in known if one.startswith(sha)), key=len)
    return longer[-1] if all(longer[-1].startswith(one) for one in longer) else sha


def _decisions(text: str, source: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not text.strip():
        raise UsageError(f"{source} is empty: pass what `sooner trunk decide` printed")
    try:
        documents = [json.loads(text)]
    except (ValueError, RecursionError):  # lines end with \n: JSON may hold what else ends lines in Unicode
        documents = [_decoded(line, f"{source}:{i}") for i, line in enumerate(text.split("\n"), 1) if line.strip()]
    for number, document in enumerate(documents, 1):
        decisions = document.get("decisions") if isinstance(document, dict) else document
        if not isinstance(decisions, list):
            raise UsageError(
                f'{source}: document {number} has no list "decisions": pass what `sooner trunk decide` printed'
            )
        for i, decision in enumerate(decisions, 1):
            place = f"{source}: document {number}, decision {i}"
            if not isinstance(decision, dict):
                raise UsageError(f"{place} is no object")
            if decision.get("decision") == "revert":
                yield place, decision


def _decoded(line: str, place: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise UsageError(f"{place} is no JSON: {error}") from None
    except RecursionError:
        raise UsageError(f"{place} is no JSON: nested too deeply") from None


def _wanted(decision: Mapping[str, Any], place: str) -> Wanted:
    culprit = decision.get("culprit")
    if not isinstance(culprit, str) or not is_sha(culprit.lower()):
        raise UsageError(f"{place}: culprit {culprit!r} is no commit id (7 to 64 hexadecimal digits)")
    signals = decision.get("signals") or ([decision["signal"]] if decision.get("signal") else [])
    probability = decision.get("probability")
    if not isinstance(signals, list) or not all(isinstance(one, str) for one in signals):
        raise UsageError(f"{place}: signals must be a list of names")
    is_number = isinstance(probability, int | float) and not isinstance(probability, bool)
    if probability is not None and not (is_number and 0 <= probability <= 1):
        raise UsageError(f"{place}: probability must be a number from 0 to 1")
    return Wanted(
        culprit=culprit.lower(),
        signals=tuple(signals),
        probability=None if probability is None else float(probability),
        reason=str(decision.get("reason") or ""),
    )


def _joined(one: Wanted, other: Wanted) -> Wanted:
    best = one if (one.probability or 0.0) >= (other.probability or 0.0) else other
    return Wanted(
        culprit=one.culprit,
        signals=tuple(dict.fromkeys((*one.signals, *other.signals))),
        probability=best.probability,
        reason=best.reason,
    )
