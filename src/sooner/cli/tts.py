"""`sooner tts`."""

import click


@click.command()
@click.option("--history", "root", metavar="DIR", help="The history (default: .sooner/history).")
@click.option("--by", type=click.Choice(["job", "workflow", "label", "week"]), default="job", show_default=True)
@click.option("--metric", default="job_time_to_signal", show_default=True, help="What the rows show; see the overview.")
@click.option("--measure", default="", metavar="NAME", help="Show a measure instead (a cache's hit rate, ...).")
@click.option("--repository", default="", help="Only this one (owner/name).")
@click.option("--workflow", default="", help="Only this one.")
@click.option("--branch", default="", help="Only this one.")
@click.option("--since", default="", metavar="DATE", help="From this day on (2026-11-01).")
@click.option("--until", default="", metavar="DATE", help="Before this day.")
@click.option("--required", multiple=True, metavar="WORKFLOW", help="What a commit's signal waits for (default: all).")
@click.option("--why", is_flag=True, help="Below each change: its parts, and the jobs that moved.")
@click.option("--limit", type=click.IntRange(min=0), default=30, show_default=True, metavar="N", help="How many rows.")
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
def tts(**options: object) -> int:
    """Show how long a signal takes, split, with its changes.

    Every metric has its own name and formula: docs/reference/metrics.md.
    """
    from sooner.cli.signal_times import Question, show

    return show(Question.of(options))
