"""`sooner rightsize`."""

import click


@click.command()
@click.argument("files", nargs=-1, metavar="[WORKFLOW.yml]...")
@click.option("--needs", metavar="FILE", help="What `sooner needs --json` printed.")
@click.option("--durations", metavar="FILE", help='JSON of {"test or file": seconds} (default: the history\'s).')
@click.option("--runner", "runners", multiple=True, metavar="N=LABEL", help="A size of runner; one for each size.")
@click.option("--current", metavar="LABEL:SHARDS", help="What there is now (default: read from the workflow files).")
@click.option("--commits-per-day", type=float, metavar="X", help="How often the job runs (default: from the jobs).")
@click.option("--jobs", metavar="FILE", help="Jobs of all pools, with a column `job`: queues are then predicted.")
@click.option("--history", "root", metavar="DIR", help="Jobs and durations of a history instead.")
@click.option("--job", "job", default="", metavar="PATTERN", help="Names of the jobs that are replaced (* and ?).")
@click.option("--pools", metavar="FILE", help="What is known of pools, as for `sooner simulate-pool`.")
@click.option(
    "--period",
    "periods",
    multiple=True,
    type=float,
    metavar="H",
    help="Hours between periodic runs (default: 3, 6, 12, and 24).",
)
@click.option("--max-delay", metavar="H", default=24.0, show_default=True, help="Hours until a moved test must tell.")
@click.option("--max-moved", type=int, metavar="N", help="Most tests that may be moved to the clock (default: any).")
@click.option(
    "--allow-loss", metavar="N", default=0, show_default=True, help="Tests whose full need may be met nowhere."
)
@click.option("--target", type=float, metavar="MIN", help="Minutes that a shard should take (default: as now, or 60).")
@click.option(
    "--setup", metavar="MIN", default=0.0, show_default=True, help="Minutes from a shard's start to its first test."
)
@click.option("--packed", is_flag=True, help="Tests of a shard run beside each other (sooner run), not in sequence.")
@click.option(
    "--by", "granularity", type=click.Choice(["test", "file"]), default="test", show_default=True,
    help="What can be moved: single tests, or whole files.",
)  # fmt: skip
@click.option(
    "--objective", type=click.Choice(["device-minutes", "time-to-signal", "run-time", "balanced"]),
    default="device-minutes", show_default=True, help="What is made small.",
)  # fmt: skip
@click.option("--option", "chosen", metavar="NAME", help="Show, or apply, this option instead of the best.")
@click.option("--apply", "apply", is_flag=True, help="Edit the workflow files.")
@click.option("--diff", "diff", is_flag=True, help="Print the patch of the workflow files; change nothing.")
@click.option("--config", metavar="NAME", help="The config of the matrix rows that are edited, such as distributed.")
@click.option("--in-job", metavar="ID", help="The job of the workflow whose matrix is edited (default: the only one).")
@click.option(
    "--lane-key", metavar="KEY", help="Key of matrix rows by which scripts select tests, where lanes share a config."
)
@click.option("--periodic", metavar="FILE.yml", help="The periodic workflow: made, or given rows and a cron.")
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
def rightsize(**options: object) -> int:
    """Propose runner sizes, shards and periodic workflows; edit the workflow files.

    Each option has its device-minutes, the tests that it skips, lets fall back or runs with fewer ranks, the delay of
    tests that it moves, and, where the pools are understood, queues and time to signal.
    """
    from sooner.cli.sizing_options import Question, show

    return show(Question.of(options))
