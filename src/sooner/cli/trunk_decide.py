"""`sooner trunk decide`: a document a line in, decisions a line out."""

import codecs
import itertools
import sys
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from sooner.analysis.trunk.facts import Policy, Question

_CLOCKS_DIFFER_S: Final = 600.0
_ADVICE: Final = "each line is a whole document; `sooner trunk decide --help` says what it holds"


@click.command()
@click.option("--jsonl", is_flag=True, help="Documents on stdin, one a line (the only form there is).")
@click.option("--policy", type=click.Choice(["bayes", "rules"]), default="bayes", show_default=True, help="Who judges.")
def decide(*, jsonl: bool, policy: str) -> int:
    """Decide about documents on stdin, one a line; answers are flushed at once.

    In: {"id", "now", "commits": [{"sha", "time", "files"?}] newest first, "signals": [{"key", "kind", "flake_prior"?,
    "events": [{"sha", "status", "started_at", "ended_at"?, "attempt"?}]}], "limits"?}; times in epoch seconds, status
    success, failure or pending. Out: {"id", "decisions": [...]}. See docs/reference/trunk.md.
    """
    del jsonl
    from sooner.analysis.trunk.facts import Policy

    return _serve(Policy(policy))


def _serve(policy: "Policy") -> int:
    import msgspec

    from sooner.analysis.trunk.decide import decide as decide_about
    from sooner.analysis.trunk.facts import Question
    from sooner.model.outcomes import ExitCode

    decoder, encoder = msgspec.json.Decoder(Question), msgspec.json.Encoder()
    code: int = 0
    strange: set[str] = set()
    doubts: set[str] = set()
    if sys.stdin.isatty():
        click.echo("sooner: type documents, one a line, or pipe them in (Ctrl-D ends)", err=True)
    for number, said in enumerate(sys.stdin.buffer, start=1):
        line = said.removeprefix(codecs.BOM_UTF8) if number == 1 else said
        if not line.strip():
            continue
        try:
            question = decoder.decode(line)
            strange |= _warned(line, number, strange)
            for doubt in sorted(_doubts(question) - doubts):
                doubts.add(doubt)
                click.echo(f"sooner: line {number}: {doubt}", err=True)
            answer = encoder.encode(decide_about(question, policy))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            text = f"line {number}: {_explained(str(error))}"
            click.echo(f"error: {text} ({_ADVICE})", err=True)
            answer = encoder.encode({"id": _id_of(line), "decisions": [], "error": text})
            code = ExitCode.USAGE
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.buffer.flush()
    return code


def _explained(problem: str) -> str:
    """A word that is none, with the words that there are: what a CI system cancelled or skipped is no event."""
    from sooner.analysis.trunk.facts import Kind, Status

    field = problem.rpartition(".")[2].rstrip("`")
    if not problem.startswith("Invalid enum value") or field not in ("status", "kind"):
        return problem
    if field == "kind":
        return f"{problem}: there are {' and '.join(Kind)}"
    return f"{problem}: there are {', '.join(Status)}; runs that say nothing about the code are left out"


def _warned(line: bytes, number: int, known: set[str]) -> set[str]:
    """Say which limits are none, each once: one that is misspelled limits nothing, and looks as if it did."""
    from difflib import get_close_matches

    import msgspec

    from sooner.analysis.trunk.facts import Limits, NamedLimits

    if b'"limits"' not in line:
        return set()
    named = msgspec.json.decode(line, type=NamedLimits).limits
    there = Limits.__struct_fields__
    unknown = set(named) - set(there) - known
    for name in sorted(unknown):
        near = get_close_matches(name, there, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(there)}"
        click.echo(f"sooner: line {number}: limits: {name!r} is unknown and limits nothing: {hint}", err=True)
    return unknown


def _doubts(question: "Question") -> set[str]:
    """What looks like a mistake: documents are judged as they are, so this is only said."""
    from sooner.cli.spans import EPOCH_MS

    found = set()
    if _is_upside_down(question):
        found.add("commits look oldest first; they must be newest first")
    if question.now >= EPOCH_MS:
        found.add("times look like milliseconds; they must be epoch seconds")
    elif _runs_begin_later(question):
        found.add("runs began after `now`, and count all the same; tell `now` as it is, or leave out what came later")
    if _is_elsewhere(question):
        found.add("no event is of one of the commits, so none is looked at; both must spell a commit alike")
    if _has_repeats(question):
        found.add("a failure stands there twice, alike in all, and counts as two; leave repeats out, or tell `attempt`")
    return found


def _runs_begin_later(question: "Question") -> bool:
    """Whether runs began later than clocks that differ can explain: a replay that tells too much, or other units."""
    latest = question.now + _CLOCKS_DIFFER_S
    return any(event.started_at > latest for signal in question.signals for event in signal.events)


def _is_elsewhere(question: "Question") -> bool:
    """Whether there are events, but none of a commit of the question."""
    shas = {commit.sha for commit in question.commits}
    known = (event.sha in shas for signal in question.signals for event in signal.events)
    return next(known, True) is False and not any(known)


def _has_repeats(question: "Question") -> bool:
    """Whether a failure that ended stands there again, the same in all that is told of it."""
    from sooner.analysis.trunk.facts import Status

    failure = Status.FAILURE
    for signal in question.signals:
        failed = [one for one in signal.events if one.status is failure and one.ended_at is not None]
        if len(set(failed)) < len(failed):
            return True
    return False


def _is_upside_down(question: "Question") -> bool:
    """Whether each commit is newer than the one before; order is what counts."""
    times = [commit.time for commit in question.commits]
    return len(times) > 1 and all(one < other for one, other in itertools.pairwise(times))


def _id_of(line: bytes) -> object:
    import msgspec

    try:
        document = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return document.get("id") if isinstance(document, dict) else None
