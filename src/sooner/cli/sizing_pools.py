"""What `sooner simulate-pool` does: reads jobs and pools, fits and judges each pool, prints."""

from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec
from msgspec import Struct, structs

from sooner.cli.sizing_declared import declarations
from sooner.model.errors import UsageError
from sooner.model.outcomes import ExitCode
from sooner.run.in_processes import in_processes

if TYPE_CHECKING:
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
        if not 0 < options["horizon"] < inf:
            raise UsageError(f"--horizon {options['horizon']}: must be above 0 hours")
        return cls(
            jobs=Path(options["jobs"]) if options["jobs"] else None,
            root=options["root"] or "",
            pools=Path(options["pools"]) if options["pools"] else None,
            **{name: options[name] for name in ("labels", "train", "horizon", "seed", "as_json")},
        )


def show(question: Question) -> int:
    """Compute and print; the exit code says whether there was anything."""
    from sooner.analysis.sizing.judge import judge
    from sooner.analysis.sizing.load import by_label
    from sooner.cli.sizing_jobs import jobs_of
    from sooner.report.sizing import pools_text

    found, notes = by_label(jobs_of(question.jobs, question.root))
    queues = {label: one.queue for label, one in found.items()}
    declared = declarations(question.pools)
    wanted = question.labels or tuple(queues)
    missing = [label for label in wanted if label not in queues]
    if missing:
        raise UsageError(f"no jobs of {missing[0]!r}: there are {', '.join(sorted(queues)[:20])}")
    crowds, fitted = declared.crowds(queues, question.train)
    notes += [*declared.notes, *declared.unused(queues), *fitted]
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
    if not judged:
        click.echo("nothing to simulate: no job has a label of its runner, and times", err=True)
    return int(ExitCode.ALL_PASSED if judged else ExitCode.NOTHING_TO_RUN)
