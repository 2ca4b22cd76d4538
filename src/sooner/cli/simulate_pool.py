"""`sooner simulate-pool`."""

import click


@click.command("simulate-pool")
@click.option(
    "--jobs", metavar="FILE", help="Jobs: CSV, JSON, JSON lines or Parquet with label, created, started, completed."
)
@click.option("--history", "root", metavar="DIR", help="Jobs of a history instead.")
@click.option(
    "--pools", metavar="FILE", help="What is known of pools (CSV, JSON, TOML): machines over time, nodes that split."
)
@click.option("--label", "labels", multiple=True, metavar="LABEL", help="Only this pool; may be repeated.")
@click.option(
    "--train", metavar="SHARE", default=0.7, show_default=True, help="Share of the time before the part that is judged."
)
@click.option(
    "--horizon", metavar="H", default=6.0, show_default=True, help="Hours predicted before what happened is looked at."
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, metavar="N", help="Of the draws.")
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
def simulate_pool(**options: object) -> int:
    """Replay pools of runners: queue times observed and predicted.

    Machines, others' load and delays are fitted on the record's first part and judged on its later one: `fits` says
    whether a pool is understood well enough to rank options. How: docs/reference/sizing.md.
    """
    from sooner.cli.sizing_pools import Question, show

    return show(Question.of(options))
