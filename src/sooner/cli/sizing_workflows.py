"""Workflow files behind `sooner rightsize`: what there is now, and the edits of an option."""

import contextlib
import difflib
import os
import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from sooner.analysis.sizing.decide import Priced
from sooner.analysis.sizing.needs import Fate
from sooner.analysis.sizing.placement import Lane, Runner
from sooner.model.errors import UsageError
from sooner.model.outcomes import ExitCode
from sooner.model.text import one_line, printable
from sooner.report.wording import counted
from sooner.workflows.crons import cron_every, hours_between
from sooner.workflows.edits import (
    Shards,
    find_lists,
    find_matrix,
    has_others,
    has_rows,
    matrices_with,
    repeated_for,
    with_cron,
    with_listed_shards,
    with_more_rows,
    with_shards,
)
from sooner.workflows.errors import ByHandError, WorkflowError
from sooner.workflows.facts import Job, Matrix, Workflow
from sooner.workflows.numbering import fixed_counts, fixed_label, label_key, label_of, numbering, refuse_variants
from sooner.workflows.periodic import new_periodic
from sooner.workflows.reading import read

_LINE: Final = re.compile("[^\\n]*\\n|[^\\n]+")
"""As git and patch see lines: what else ends a line in Unicode does not."""

_OF_EVENT: Final = re.compile(r"github\.(?:event|ref|head_ref|base_ref)|false")
"""What a condition asks about the event: a clock's is another one."""

if TYPE_CHECKING:
    from sooner.cli.sizing_options import Question


def current_of(
    paths: Sequence[str], config: str | None, in_job: str | None, runners: Sequence[Runner], lane_key: str | None
) -> tuple[Runner, int]:
    """The runner and the number of shards that the workflow files give a config now."""
    from sooner.cli.sizing_options import runner_of

    try:
        workflow, job, matrix = _place(paths, config, in_job)
    except ByHandError:
        raise
    except WorkflowError:
        try:
            workflow, job, matrix, key = _lists(paths, config, in_job)
        except ByHandError:
            raise
        except WorkflowError as error:
            if not error.problem.startswith("no job has"):
                raise
            raise WorkflowError(error.path, f"{error.problem}; --current LABEL:SHARDS says what there is") from None
        if others := repeated_for(job, matrix, key):
            click.echo(
                f"note: {workflow.path}: job {job.id} runs its shards for each of {', '.join(others)}: "
                "figures are for one of them",
                err=True,
            )
        return runner_of(label_of(job, matrix), runners), len(matrix.lists[key])
    refuse_variants(workflow, job, matrix, config, [lane_key] if lane_key else [])
    rows = matrix.of(config)
    labels = Counter(row.text(label_key(job, matrix)) for row in rows)
    label = labels.most_common(1)[0][0] or fixed_label(job, matrix, rows)
    if len(labels) > 1:
        told = ", ".join(f"{counted(many, 'shard')} on {name or 'none'}" for name, many in labels.most_common())
        click.echo(f"note: {workflow.path}: {told}: `current` is taken to be all on {label}", err=True)
    if not label:
        problem = f"the rows of job {job.id} do not name the runner (`{label_key(job, matrix)}`)"
        raise WorkflowError(workflow.path, f"{problem}: --current LABEL:SHARDS says what there is")
    return runner_of(label, runners), len(rows)


def runners_in(question: "Question", current: Runner) -> list[Runner]:
    """Runners of the config's rows in the workflow files, the periodic one too, as far as their labels tell a size.

    Of other jobs only those whose labels are like the edited one's: its tests run on no other kind of machine.
    """
    from sooner.cli.sizing_options import runner_of

    alike = {_kind(current.label)}
    with contextlib.suppress(WorkflowError, UsageError):
        _, job, matrix = _place(question.files, question.config, question.in_job)
        alike |= _kinds(job, matrix, question.config)
    found: dict[str, Runner] = {}
    periodic = [question.periodic] if question.periodic and _is_there(question.periodic) else []
    for path in (*question.files, *periodic):
        for job, matrix in matrices_with(read_file(Path(path)), question.config):
            for label in {row.text(label_key(job, matrix)) for row in matrix.of(question.config)}:
                if _kind(label) in alike:
                    with contextlib.suppress(UsageError):
                        found[label] = runner_of(label, question.runners)
    return list(found.values())


def _kind(label: str) -> str:
    """A label without the number at its end, which tells a size."""
    return label.rstrip("0123456789")


def _kinds(job: Job, matrix: Matrix, config: str | None) -> set[str]:
    """Of the runners of a config's rows."""
    rows = matrix.of(config)
    labels = {row.text(label_key(job, matrix)) for row in rows} - {""}
    return {_kind(label) for label in labels or {label_of(job, matrix)}}


def _place(paths: Sequence[str], config: str | None, in_job: str | None) -> tuple[Workflow, Job, Matrix]:
    """The first file that has rows of a config, and where."""
    problem: WorkflowError | None = None
    for path in paths:
        workflow = read_file(Path(path))
        try:
            job, matrix = find_matrix(workflow, config, in_job)
        except WorkflowError as error:
            problem = problem or error
            continue
        configs = {row.text("config") for row in matrix.rows}
        if config is None and len(configs) > 1:
            raise UsageError(f"{path}: say which config: --config {' | '.join(sorted(configs))}")
        return workflow, job, matrix
    raise problem or UsageError("say which workflow files")


def _lists(paths: Sequence[str], config: str | None, in_job: str | None) -> tuple[Workflow, Job, Matrix, str]:
    """The first file with a job that lists its shards, which no config has; the error is that of looking for rows."""
    for path in paths if config is None else ():
        workflow = read_file(Path(path))
        try:
            return (workflow, *find_lists(workflow, in_job))
        except ByHandError:
            raise
        except WorkflowError:
            continue
    _place(paths, config, in_job)
    raise WorkflowError(paths[0], "has no matrix that can be edited")


def read_file(path: Path) -> Workflow:
    """A workflow file.

    Raises:
        WorkflowError: It cannot be read.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            text = file.read()
    except OSError as error:
        raise WorkflowError(str(path), f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise WorkflowError(str(path), f"is no UTF-8 text: {error}") from error
    return read(text, str(path))


def _is_there(path: str) -> bool:
    try:
        Path(path).stat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise WorkflowError(path, f"cannot be read: {error.strerror}") from error
    return True


def apply_option(question: "Question", shown: Priced | None) -> int:
    """Edit the files as an option asks, or print the patch."""
    if shown is None:
        raise UsageError("nothing is proposed: choose an option with --option NAME")
    changes = _changes(question, shown)
    if failing := shown.price.at_commit.get(Fate.FAILS, 0):
        told = counted(failing, "test")
        click.echo(f"note: with {shown.option.name} {told} will fail at every commit, for too few devices", err=True)
    others = [read_file(Path(path)).text for path in question.files]
    _note_supposed(question, shown, [*others, *(old for _, old, _ in changes)])
    diffs = [(path, _diff(path, old, new)) for path, old, new in changes if old != new]
    if question.apply:
        _write({Path(path): new for path, old, new in changes if old != new})
    if question.as_json:
        answer: dict[str, Any] = {
            "option": shown.option.name, "applied": question.apply,
            "files": [{"path": printable(path), "diff": printable(diff)} for path, diff in diffs],
        }  # fmt: skip
        click.echo(msgspec.json.format(msgspec.json.encode(answer), indent=1).decode())
    else:
        for _, diff in diffs:
            click.echo(diff, nl=False)
    done = "edited" if question.apply else "to edit"
    click.echo(f"{shown.option.name}: {counted(len(diffs), 'file')} {done}" + _hint(shown), err=True)
    return int(ExitCode.ALL_PASSED)


def _note_supposed(question: "Question", shown: Priced, texts: Sequence[str]) -> None:
    """Name runners that nobody named: a label that does not exist is waited for for ever."""
    named = {runner.label for runner in question.runners}
    for label in dict.fromkeys(one.runner.label for one in shown.option.lanes):
        whole = re.compile(re.escape(label) + r"(?![\w.-])")
        if label not in named and not any(map(whole.search, texts)):
            told = f"no file names the runner {label!r}: it is supposed to be there by the name of another size"
            click.echo(f"note: {told} (--runner N=LABEL names it)", err=True)


def _are_apart(lanes: Sequence[Lane]) -> bool:
    """Whether lanes run different tests: then a script must know which are its own."""
    return len({frozenset(lane.tests) for lane in lanes}) > 1


def _hint(shown: Priced) -> str:
    """What no workflow file can say: which tests a lane runs."""
    if not _are_apart(shown.option.lanes):
        return ""
    return "; lanes that run only some tests need their script to select them: --json lists the tests of each shard"


def _changes(question: "Question", shown: Priced) -> list[tuple[str, str, str]]:
    """(path, text now, text then) of each file."""
    commit = [lane for lane in shown.option.lanes if lane.every_h is None]
    clock = [lane for lane in shown.option.lanes if lane.every_h is not None]
    if clock and not question.periodic:
        raise UsageError(f"{shown.option.name} has a periodic part: say which file with --periodic FILE.yml")
    try:
        workflow, job, matrix = _place(question.files, question.config, question.in_job)
    except WorkflowError:
        workflow, job, matrix, key = _lists(question.files, question.config, question.in_job)
        (only,) = _shards(commit[:1], None)
        if len(shown.option.lanes) > 1:
            problem = "lists its shards: only options with one lane can be applied to it"
            raise WorkflowError(workflow.path, problem) from None
        _note_counts(workflow, job, matrix, [key], len(matrix.lists[key]), [only.count])
        return [(workflow.path, workflow.text, with_listed_shards(workflow, job, matrix, key, only).text)]
    if clock and Path(question.periodic or "").resolve() == Path(workflow.path).resolve():
        problem = "is the file whose rows are edited too: name another one, or leave it out of the others"
        raise UsageError(f"--periodic {question.periodic}: {problem}")
    _note_others(question, workflow.path)
    told_by = question.lane_key if _are_apart(shown.option.lanes) else None
    shards = _shards(commit, told_by)
    new = with_shards(workflow, job, matrix, question.config, shards)
    rows = matrix.of(question.config)
    _note_computed(workflow, [row.text(label_key(job, matrix)) for row in rows], commit)
    _note_shards(workflow, job, matrix, question.config, shards, now=len(rows))
    changes = [(workflow.path, workflow.text, new.text)]
    if clock and question.periodic:
        config = question.config or next((name for row in rows if (name := row.text("config"))), None)
        changes.append(_periodic(question.periodic, workflow, job, matrix, clock, config, told_by))
    return changes


def _note_others(question: "Question", edited: str) -> None:
    """Name the other files that have rows of the config too: only the first is edited."""
    for path in question.files:
        with contextlib.suppress(WorkflowError):
            if path not in (edited, question.periodic) and _place([path], question.config, question.in_job):
                click.echo(f"note: {path} has such rows too: of several files the first is edited, {edited}", err=True)


def _note_computed(workflow: Workflow, labels: Sequence[str], lanes: Sequence[Lane]) -> None:
    """Say so where a label with an expression (`${{ needs.a.outputs.prefix }}gpu.4`) gives way to one without."""
    computed = next((label for label in labels if "${{" in label), None)
    plain = next((lane.runner.label for lane in lanes if "${{" not in lane.runner.label), None)
    if computed and plain:
        told = f"{computed!r} becomes {plain!r}: what is computed in it stays if --runner N=LABEL has it too"
        click.echo(f"note: {workflow.path}: {told}", err=True)


def _note_counts(  # noqa: PLR0917 - one place and what changes in it
    workflow: Workflow, job: Job, matrix: Matrix, keys: Sequence[str], now: int, then: Sequence[int]
) -> None:
    """Name the lines that say in digits how many shards there are: no key of the matrix changes these."""
    for line in fixed_counts(workflow, job, matrix, keys, now) if set(then) != {now} else ():
        places = f"{workflow.path}:{line}: says {now}, which may be the number of shards"
        told = " and ".join(map(str, then))
        click.echo(f"note: {places}: see that it says {told}, or tests are left out", err=True)


def _note_shards(
    workflow: Workflow, job: Job, matrix: Matrix, config: str | None, shards: Sequence[Shards], *, now: int
) -> None:
    rows, key = matrix.of(config), label_key(job, matrix)
    found = numbering(rows, key)
    _note_counts(workflow, job, matrix, list(found.first), now, [one.count for one in shards])
    own = [name for name in rows[-1].cells if name not in {key, *found.first, *found.counts}]
    told = [name for name in own if len({row.text(name) for row in rows}) == len(rows) > 1]
    if told and sum(one.count for one in shards) > len(rows):
        says = ", ".join(f"{name}: {rows[-1].text(name)}" for name in told)
        click.echo(
            f"note: {workflow.path}: rows that are added say {says}, as the last one: give each its own", err=True
        )


def _note_events(workflow: Workflow) -> None:
    """Name the jobs that may not run by the clock."""
    for one in workflow.jobs.values():
        if _OF_EVENT.search(one.condition):
            told = f"job {one.id} has `if: {one_line(one.condition)}`: see that it holds on a schedule"
            click.echo(f"note: {workflow.path}: {told}", err=True)


def _note_followers(workflow: Workflow, job_id: str) -> None:
    """Name the jobs that are there only because they wait for one, and use nothing that it tells: they may publish."""
    name = re.escape(job_id)
    used = re.compile(rf"needs(?:\.{name}|\[['\"]{name}['\"]\])\.outputs\b")
    for one in workflow.jobs.values():
        if job_id in one.needs and not used.search(workflow.slice(one.span)):
            told = f"job {one.id} comes along, which needs {job_id}: see that it may run by the clock"
            click.echo(f"note: {workflow.path}: {told}", err=True)


def _shards(lanes: Sequence[Lane], key: str | None) -> list[Shards]:
    if len(lanes) > 1 and not key:
        raise UsageError(
            "this option runs one config on several sizes of runners, and its script must know which tests to run"
            " where: name the key of the matrix rows that tells it, such as --lane-key devices"
        )
    return [
        Shards(
            label=lane.runner.label,
            count=len(lane.shards),
            more={key: lane.runner.devices} if key else {},
        )
        for lane in lanes
    ]


def _periodic(  # noqa: PLR0917 - what is asked for, where from and where to
    path: str, source: Workflow, job: Job, matrix: Matrix, clock: Sequence[Lane], config: str | None, key: str | None
) -> tuple[str, str, str]:
    """(path, text now, text then) of the periodic workflow; `config` is None where the rows of the source name none."""
    try:
        cron = cron_every(clock[0].every_h or 0.0)
    except ValueError:
        raise UsageError(
            f"cron cannot say `every {clock[0].every_h:g} hours`: choose a --period that divides 24"
        ) from None
    shards = _shards(clock, key)
    if not _is_there(path):
        made = new_periodic(source, path, name=Path(path).stem, cron=cron, job_id=job.id, config=config, shards=shards)
        _note_events(made)
        _note_followers(made, job.id)
        _note_shards(made, *find_matrix(made, config, job.id), config, shards, now=len(matrix.of(config)))
        return path, "", made.text
    old = read_file(Path(path))
    if config is None and not _has_nameless_rows(old, job.id):
        problem = f"has no job {job.id} whose rows name no config, as they do not in {source.path}: add them by hand"
        raise ByHandError(path, problem)
    in_job = job.id if config is None or (job.id in old.jobs and old.jobs[job.id].matrices) else None
    if has_rows(old, config, in_job):
        kinds = {_kind(one.runner.label) for one in clock} | _kinds(job, matrix, config)
        its_job, its_matrix = _rows_alike(old, config, in_job, kinds)
        _note_shards(old, its_job, its_matrix, config, shards, now=len(its_matrix.of(config)))
        new = with_shards(old, its_job, its_matrix, config, shards)
    else:
        its_job, its_matrix = find_matrix(old, None, in_job)
        new = with_more_rows(old, its_job, its_matrix, config or "", shards)
    if its_job.id != job.id:
        told = f"job {its_job.id} gets these rows, which is not {job.id} of {source.path}"
        click.echo(f"note: {path}: {told}: see that it runs the same tests", err=True)
    timed = with_cron(new, cron)
    _note_crons(path, timed, cron, has_more=timed is not new and has_others(old, its_job, config))
    return path, old.text, timed.text


def _rows_alike(workflow: Workflow, config: str | None, in_job: str | None, kinds: set[str]) -> tuple[Job, Matrix]:
    """The rows of a config in a periodic workflow: of one job, or of the only one with runners of some kinds.

    Raises:
        ByHandError: There are several such jobs, or only others, whose tests are run on other machines.
    """
    if in_job is not None:
        return find_matrix(workflow, config, in_job)
    found = matrices_with(workflow, config)
    alike = [job for job, matrix in found if _kinds(job, matrix, config) <= kinds]
    if len(alike) == 1:
        return find_matrix(workflow, config, alike[0].id)
    others = alike or [job for job, _ in found]
    what = f"the rows of config {config!r} of job {' and of job '.join(job.id for job in others)}"
    labels = {row.text(label_key(job, matrix)) for job, matrix in found for row in matrix.of(config)}
    problem = "are all on such runners" if alike else f"run on {', '.join(sorted(labels))}"
    raise ByHandError(workflow.path, f"{what} {problem}: name another file, or add the rows by hand")


def _has_nameless_rows(workflow: Workflow, job_id: str) -> bool:
    """Whether a workflow has a job, and its rows name no config: only then they are those of a job of the same id."""
    matrices = workflow.jobs[job_id].matrices if job_id in workflow.jobs else ()
    return bool(matrices) and not any(row.text("config") for matrix in matrices for row in matrix.rows)


def _note_crons(path: str, workflow: Workflow, cron: str, *, has_more: bool) -> None:
    """All of a workflow runs at each of its crons: say what the figures of an option do not know of."""
    if has_more:
        click.echo(f"note: {path}: what else is in it runs at the cron that is added too: no figure has that", err=True)
    crons = [str(spot.value) for spot in workflow.crons]
    if [hours_between(one) for one in crons] != [hours_between(cron)]:
        told = ", ".join(map(repr, crons))
        click.echo(f"note: {path}: the rows run at each of its crons, {told}: figures are for {cron!r}", err=True)


def _diff(path: str, old: str, new: str) -> str:
    name = path.lstrip("/")
    name += "\t" * (" " in name)  # as git does: else patch takes what comes before the space for the name
    lines = difflib.unified_diff(
        _LINE.findall(old),
        _LINE.findall(new),
        f"a/{name}" if old else "/dev/null",
        f"b/{name}",
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _write(texts: Mapping[Path, str]) -> None:
    """Each file is the old one or the new one at every moment; all are written before any takes its place."""
    staged: list[tuple[Path, Path]] = []
    path = Path()
    try:
        for path, text in texts.items():
            place = path.resolve()  # a link stays one
            mode = place.stat().st_mode & 0o777 if place.exists() else 0o644
            handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
            staged.append((Path(name), place))
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(mode)
        for temporary, place in staged:
            path = place
            temporary.replace(place)
    except OSError as error:
        raise WorkflowError(str(path), f"cannot be written: {error.strerror}") from error
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)
