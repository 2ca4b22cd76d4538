"""`sooner trunk verdicts`."""

import click


@click.command()
@click.option("--history", "root", metavar="DIR", help="The history (default: .sooner/history).")
@click.option("--as-of", metavar="TIME", help="What was known then (2026-11-01T12:00, or epoch).")
@click.option("--window", default=60, show_default=True, metavar="N", help="Commits with runs that are looked at.")
@click.option("--kind", type=click.Choice(["job", "test", "all"]), default="all", show_default=True, help="Signals of.")
@click.option("--policy", type=click.Choice(["bayes", "rules"]), default="bayes", show_default=True, help="Who judges.")
@click.option("--breakages", is_flag=True, help="List all breakages of the history, each with its culprit range.")
@click.option("--repository", default="", help="Only this one (owner/name).")
@click.option("--branch", default="", help="Only this one.")
@click.option("--workflow", default="", help="Only this one.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")
def verdicts(**options: object) -> int:
    """Say of each signal whether it is broken, by which commit, how surely, and what to run to know more."""
    from sooner.cli.trunk_judging import Inquiry, show

    return show(Inquiry.of(options))
