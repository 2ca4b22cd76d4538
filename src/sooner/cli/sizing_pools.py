"""What `sooner simulate-pool` does: reads jobs and pools, fits and judges each pool, prints."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec
from msgspec import Struct, structs

from sooner.cli import sizing_files as files
from sooner.cli.sizing_declared import declarations
from sooner.model.errors import UsageError
from sooner.model.outcomes import ExitCode
from sooner.run.in_processes import in_processes

if TYPE_CHECKING:
    from sooner.analysis.sizing.facts import Queue
    from sooner.analysis.sizing.judge import Judged


_MANY_JOBS: Final = 100_000
"""From so many jobs on, processes save more time than they cost."""


class Question(Struct, frozen=True, kw_only=True):
    """What was asked."""

    jobs: Path | None
    root: str
    pools: Path | None
    labels: tuple[str, ...]
    train: float
    horizon: float
    seed: int
    as_json: bool

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Question":
        """From the options of the command line.

        Raises:
            UsageError: They make no sense.
        """
        if bool(options["jobs"]) == bool(options["root"]):
            raise UsageError("say where the jobs are: --jobs FILE, or --history DIR")
        if not 0 < options["train"] < 1:
            raise UsageError(f"--train {options['train']}: the share must lie between 0 and 1")
        if options["horizon"] <= 0:
            raise UsageError(f"--horizon {options['horizon']}: must be above 0 hours")
        return cls(
            jobs=Path(options["jobs"]) if options["jobs"] else None,
            root=options["root"] or "",
            pools=Path(options["pools"]) if options["pools"] else None,
            **{name: options[name] for name in ("labels", "train", "horizon", "seed", "as_json")},
        )


def show(question: Question) -> int:
    """Compute and print; the exit code says whether there was anything."""
    return files.needs_stats(lambda: _show(question))


def _show(question: Question) -> int:
    from sooner.analysis.sizing.judge import judge
    from sooner.report.sizing import pools_text

    queues, notes = queues_of(question.jobs, question.root)
    declared = declarations(question.pools)
    wanted = question.labels or tuple(queues)
    missing = [label for label in wanted if label not in queues]
    if missing:
        raise UsageError(f"no jobs of {missing[0]!r}: there are {', '.join(sorted(queues)[:20])}")
    crowds, fitted = declared.crowds(queues, question.train)
    notes += [*declared.notes, *fitted]
    for note in notes:
        click.echo(f"note: {note}", err=True)
    share = max(400_000, 4_000_000 // max(1, len(wanted)))

    def judged_pool(label: str) -> "Judged":
        return judge(
            queues[label], declared.spec(label), train=question.train, horizon_s=question.horizon * 3600,
            seed=question.seed, most_jobs=share, crowd=crowds.get(label),
        )  # fmt: skip

    jobs = sum(len(queues[label]) for label in wanted)
    judged = in_processes(judged_pool, wanted) if jobs > _MANY_JOBS else [judged_pool(label) for label in wanted]
    if question.as_json:
        answer = {"pools": [structs.replace(one, steps=None) for one in judged], "notes": notes}
        click.echo(msgspec.json.format(msgspec.json.encode(answer), indent=1).decode())
    else:
        click.echo(pools_text(judged))
    return int(ExitCode.ALL_PASSED if judged else ExitCode.NOTHING_TO_RUN)


def queues_of(jobs: Path | None, root: str) -> "tuple[dict[str, Queue], list[str]]":
    """Queues by label, the busiest first, and what was left out."""
    from sooner.analysis.sizing import load

    if jobs is None:
        return _of_history(root)
    found = files.table(jobs)
    created, label = files.column(found, "created"), files.column(found, "label")
    if created is None:
        raise files.SizingFileError(jobs, f"has no column `created`: there are {', '.join(found)}")

    def numbers(field: str, *, is_time: bool) -> list[float] | None:
        values = files.column(found, field)
        return None if values is None else files.numbers(jobs, field, values, is_time=is_time)

    completed = numbers("completed", is_time=True)
    return load.queues(
        labels=files.texts(label) if label is not None else ["jobs"] * len(created),
        created=_ready(found, files.numbers(jobs, "created", created, is_time=True), completed),
        started=numbers("started", is_time=True),
        completed=completed,
        seconds=numbers("seconds", is_time=False),
        priority=numbers("priority", is_time=False),
    )


def _ready(found: Mapping[str, files.Column], created: list[float], completed: list[float] | None) -> list[float]:
    """When each job could have started: it was created, and what it needs had ended."""
    from sooner.analysis.sizing import load

    ids, needs = files.column(found, "id"), files.column(found, "needs")
    if ids is None or needs is None or completed is None:
        return created
    return load.ready(created, completed, files.texts(ids), [files.names(cell) for cell in needs])


def _of_history(root: str) -> "tuple[dict[str, Queue], list[str]]":
    from sooner.analysis.sizing import load
    from sooner.history import History

    if "://" not in root and not Path(root).is_dir():
        raise UsageError(f"there is no history at {root}: `sooner ingest` makes one")
    with History(root) as history:
        return load.queues_of_history(history)
