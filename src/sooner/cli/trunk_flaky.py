"""`sooner trunk flaky`."""

import click


@click.command()
@click.option("--history", "root", metavar="DIR", help="The history (default: .sooner/history).")
@click.option("--since", default="14d", show_default=True, metavar="WHEN", help="A span before the end, or a date.")
@click.option("--until", default="", metavar="WHEN", help="The end: a date, or a span before now (default: now).")
@click.option("--repository", default="", help="Only this one (owner/name).")
@click.option("--branch", default="", help="Only this one (default: all; the same commit is the same code).")
@click.option("--kind", type=click.Choice(["all", "test", "job"]), default="all", show_default=True)
@click.option(
    "--write", "file", default="", metavar="FILE", help="Write the quarantine of tests (--kind job: of jobs) there."
)
@click.option("--check", is_flag=True, help="With --write: nothing enters, what has been stable leaves.")
@click.option("--failures", default=2, show_default=True, metavar="N", help="To enter: at least so many flakes ...")
@click.option("--commits", default=2, show_default=True, metavar="N", help="... on so many commits.")
@click.option("--limit", type=click.IntRange(min=0), default=30, show_default=True, metavar="N", help="How many rows.")
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
def flaky(**options: object) -> int:
    """Rank flaky tests and jobs by the signal that they cost; write the quarantine.

    A flake is a failure on a commit on which the same job or test also passed. Exit codes: 0, or 5 if the history has
    no run of that time.
    """
    from sooner.cli.flakes import Order, show

    return show(Order.of(options))
