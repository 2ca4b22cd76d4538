"""What `sooner jobs for-change` and `select` do: read the history up to now, decide, print."""

import codecs
import hashlib
import os
import secrets
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from sooner.cli.histories import history_at
from sooner.cli.jobs_options import goal, history_door, printed_json, trunk_of
from sooner.cli.jobs_project import project_settings, tell_of_idle
from sooner.model.errors import UsageError

if TYPE_CHECKING:
    from sooner.analysis.selection.change import Answer, Wish
    from sooner.analysis.selection.cover import Constraints
    from sooner.analysis.selection.facts import Record
    from sooner.analysis.selection.policy import Goal, Learner
    from sooner.analysis.selection.request import Asked
    from sooner.analysis.selection.settings import JobSettings


_LARGEST_MATRIX: Final = 256
"""Jobs of one matrix (docs.github.com, "Running variations of jobs in a workflow")."""
_AFTER_S: Final = 0.001
"""The rows of a record stand so much behind its first."""


def learned(facts: "Record", settings: "JobSettings", files: Mapping[str, tuple[str, ...]]) -> "Learner":
    """The rule, with what is known now; of very many attempts the latest are enough."""
    from sooner.analysis.selection.facts import latest
    from sooner.analysis.selection.names import known_lineage
    from sooner.analysis.selection.policy import Learner
    from sooner.analysis.selection.settings import terms

    tell_of_idle(facts, settings)
    quiet = quiet_commits(facts, files, settings)
    every, facts = len(facts.known), latest(facts)
    if len(facts.known) < every:
        click.echo(f"note: of {every:,} attempts the latest {len(facts.known):,} are learned from", err=True)
    learner = Learner(
        facts, terms=terms(facts, settings), lineage=known_lineage(facts), quiet=quiet, files=by_number(facts, files)
    )
    learner.warm_up(len(facts.commits))
    learner.learn(len(facts.commits))
    return learner


def aim(options: Mapping[str, Any], settings: "JobSettings") -> "Goal":
    """What is asked for: on the command line, else in the project, else the default."""
    asked = options["recall"], options["budget"]
    return goal(*asked) if asked != (None, None) else goal(settings.recall, settings.budget)


def change_answer(options: Mapping[str, Any]) -> "Answer":
    """Decide for one change.

    Raises:
        UsageError: A file that cannot be read, or a job that nobody knows.
    """
    if str(options["message_file"]) == str(options["files_file"]) == "-":
        raise UsageError("--message-file and --files-file cannot both be stdin: write one of them into a file")
    message, listed = _read(options["message_file"]), _read(options["files_file"])
    settings = project_settings()
    wanted = aim(options, settings)
    facts, where = trunk_of(options)
    import msgspec

    from sooner.analysis.selection.change import Wish, answer
    from sooner.analysis.selection.request import area_jobs, changed_paths, drawn_part, in_sample, only_documentation
    from sooner.analysis.selection.settings import constraints

    names = list(facts.jobs)
    known_files = files_of(options["root"], where)
    learner = learned(facts, settings, known_files)
    files = changed_paths(listed)
    view, ranking = learner.ranked(len(facts.commits), files=files)
    if not files and learner.listens_to_files:
        click.echo("note: no changed files are given (--files-file), and here they tell which jobs break", err=True)
    living = [names[job] for job in ranking.order]
    request = _request(message, living, {names[job] for job in learner.terms.pinned})
    share = _sample_share(options, settings)
    identity = (
        options["identity"] or hashlib.sha256("\0".join([message, *files]).encode("utf-8", "replace")).hexdigest()
    )
    quiet = learner.harmless if only_documentation(files, settings.documentation) else frozenset()
    wish = Wish(
        asked=request,
        areas=_living(area_jobs(files, settings.areas, names), living),
        files=tuple(files),
        quiet=quiet,
        sampled=in_sample(identity, share),
        part=drawn_part(identity),
    )
    rules = constraints(names, settings, frozenset())
    found = answer(
        names, view, ranking, level=wanted.level(learner.past), past=learner.past, wish=wish, rules=rules,
        lifts=_lifts(facts, learner, known_files),
    )  # fmt: skip
    _tell_of_lacks(found, wish, names, rules)
    if alarm := _alarm(options, where, learner):
        found = msgspec.structs.replace(found, drift="; ".join(text for text in (alarm, found.drift) if text))
    if found.drift:
        click.echo(f"warning: {found.drift}", err=True)
    if options["record"]:
        if not options["identity"]:
            click.echo("note: --record without --id: no outcome will be found for it; give the head sha", err=True)
        _record(options["root"], options["repository"], identity, found)
    return found


def _request(message: str, living: Sequence[str], pinned: Collection[str]) -> "Asked":
    """What the messages ask for; what they cannot have is told."""
    from sooner.analysis.selection.request import asked, without_pinned
    from sooner.model.text import one_line

    request, kept = without_pinned(asked(message, living), pinned)
    for words in request.ignored:
        click.echo(f"note: {one_line(words)} names no job: it changes nothing", err=True)
    for job, words in kept:
        click.echo(f"note: {job!r} is pinned and runs all the same: {one_line(words)}", err=True)
    return request


def _tell_of_lacks(found: "Answer", wish: "Wish", names: Sequence[str], rules: "Constraints") -> None:
    """What the project lays down and the change has skipped."""
    from sooner.analysis.selection.change import unmet_floors, without_needs
    from sooner.model.text import one_line

    for job, need in without_needs(found, wish, names, rules):
        click.echo(f"note: {job!r} runs and needs {need!r}: {one_line(wish.asked.skipped[need])}", err=True)
    for floor, words in unmet_floors(found, wish, names, rules):
        click.echo(f"note: fewer of {floor!r} run than tool.sooner.jobs.floors asks for: {one_line(words)}", err=True)


def _sample_share(options: Mapping[str, Any], settings: "JobSettings") -> float:
    share: float = settings.sample if options["sample"] is None else options["sample"]
    if not 0.0 <= share <= 1.0:
        raise UsageError(f"--sample {share:g}: a share between 0 and 1 is needed, such as 0.03")
    return share


def _living(areas: Mapping[str, str], living: Collection[str]) -> dict[str, str]:
    """The jobs of the areas that exist still; a workflow that was removed must not stop all changes of its area."""
    for job, area in areas.items():
        if job not in living:
            click.echo(f"note: {area}: {job!r} runs no more", err=True)
    return {job: area for job, area in areas.items() if job in living}


def _read(path: Path | None) -> str:
    """Messages or names of files, which may be in any encoding; that of Windows' shells is told by its first bytes."""
    if path is None:
        return ""
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if is_wide else "utf-8-sig", "backslashreplace")


def files_of(root: str | None, where: Any) -> dict[str, tuple[str, ...]]:
    """Changed files of each commit, where the history knows them."""
    History, _ = history_door()  # noqa: N806 - a class
    from sooner.analysis.selection.load import changed_files

    with History(history_at(root)) as history:
        return changed_files(history, where)


def by_number(facts: "Record", files: Mapping[str, tuple[str, ...]]) -> dict[int, tuple[str, ...]]:
    """The same by the numbers of the commits."""
    return {i: files[sha] for i, sha in enumerate(facts.commits) if sha in files}


def quiet_commits(facts: "Record", files: Mapping[str, tuple[str, ...]], settings: "JobSettings") -> frozenset[int]:
    """Commits that touch only documentation."""
    from sooner.analysis.selection.request import only_documentation

    globs = settings.documentation
    return frozenset(i for i, sha in enumerate(facts.commits) if only_documentation(files.get(sha, ()), globs))


def _lifts(facts: "Record", learner: "Learner", files: Mapping[str, tuple[str, ...]]) -> Any:
    from sooner.analysis.selection.flakes import REAL
    from sooner.analysis.selection.lift import lifts

    told = by_number(facts, files)
    known, judged = learner.judged_cells, learner.judged
    if not told or known is None or judged is None:
        return []
    return lifts(told, facts.jobs, known.commit, known.job, judged.began >= REAL)


def _record(root: str | None, repository: str, identity: str, found: "Answer") -> None:
    """Leave in the history what was selected: dropped jobs are only measured where everything ran."""
    import time

    from sooner.analysis.selection.calibrate import promised_recall
    from sooner.analysis.selection.load import DROPPED_MEASURE, EVERYTHING_MEASURE, RECALL_MEASURE

    History, _ = history_door()  # noqa: N806 - a class
    from sooner.history import Epoch, MeasureRow

    # The first row stands before the others in time: what a change has of an older record ends with it.
    now = time.time()

    def row(name: str, value: float, at: float, subject: str = "") -> MeasureRow:
        return MeasureRow(
            repository=repository, commit=identity, name=name, value=value, at=Epoch(at), subject=subject
        )  # fmt: skip

    promised = promised_recall(recall=found.recall, breakages=found.breakages, level=found.level)
    rows = [row(EVERYTHING_MEASURE, float(found.run_all), now), row(RECALL_MEASURE, promised, now + _AFTER_S)]
    rows += [row(DROPPED_MEASURE, 1.0, now + _AFTER_S, job) for job in found.would_drop]
    with History(history_at(root)) as history:
        history.add_measures(rows)


def _alarm(options: Mapping[str, Any], where: Any, learner: "Learner") -> str:
    """What the records of changes that ran everything say against the promise."""
    from sooner.analysis.selection.load import kept_changes
    from sooner.analysis.selection.records import promise

    History, _ = history_door()  # noqa: N806 - a class
    with History(history_at(options["root"])) as history:
        kept, verdicts = kept_changes(history, where, learner.facts.jobs)
    if not kept or learner.judged is None:
        return ""
    flakes = dict(zip(learner.facts.jobs, learner.judged.rates.flakes.tolist(), strict=True))
    return promise(kept, verdicts, flakes).alarm


def printed(found: "Answer", format_: str) -> str:
    """The answer as text, JSON, a matrix for `strategy.matrix`, or lines for $GITHUB_OUTPUT."""
    names = [line.job for line in found.jobs]
    if format_ == "json":
        return printed_json(found) + "\n"
    if format_ in ("matrix", "github-output") and len(names) > _LARGEST_MATRIX:
        click.echo(
            f"warning: {len(names)} jobs: GitHub refuses a matrix of more than {_LARGEST_MATRIX}: make several of them",
            err=True,
        )
    if format_ == "matrix":
        return printed_json({"job": names}) + "\n"
    if format_ == "github-output":
        return _github_output(
            {
                "matrix": printed_json({"job": names}),
                "jobs": printed_json(names),
                "any": printed_json(bool(names)),
                "run_all": printed_json(found.run_all),
                "selection": printed_json(found),
            }
        )
    from sooner.report.selection import answer_text

    return answer_text(found) + "\n"


def _github_output(values: Mapping[str, str]) -> str:
    """`name<<DELIMITER`, value, DELIMITER: a delimiter nobody can guess, so that no value can end early.

    Appended to the file that $GITHUB_OUTPUT names; printed where there is none.

    Raises:
        UsageError: The file cannot be written.
    """
    text = ""
    for name, value in values.items():
        delimiter = f"sooner_{secrets.token_hex(16)}"
        text += f"{name}<<{delimiter}\n{value}\n{delimiter}\n"
    if not (path := os.environ.get("GITHUB_OUTPUT")):
        return text
    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"$GITHUB_OUTPUT ({path}) cannot be written: {error.strerror}") from error
    return ""
