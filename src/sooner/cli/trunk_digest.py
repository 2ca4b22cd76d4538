"""`sooner trunk digest`."""

import click


@click.command()
@click.option("--history", "root", metavar="DIR", help="The history (default: .sooner/history).")
@click.option("--since", default="1d", show_default=True, metavar="WHEN", help="A span before the end, or a date.")
@click.option("--until", default="", metavar="WHEN", help="The end: a date, or a span before now (default: now).")
@click.option("--repository", default="", help="Only this one (owner/name).")
@click.option("--branch", default="", help="Trunk's name (default: main, master, trunk, develop, or the busiest).")
@click.option("--required", multiple=True, metavar="WORKFLOW", help="What a commit's signal waits for (default: all).")
@click.option("--format", "form", type=click.Choice(["text", "markdown"]), default="text", show_default=True)
@click.option(
    "--limit", type=click.IntRange(min=0), default=10, show_default=True, metavar="N", help="How many rows a table."
)
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
def digest(**options: object) -> int:
    """Tell what landed, broke, was reverted and landed again, what is flaky, and how soon one knew.

    Parts of the repository are top folders, or what [tool.sooner.areas] in pyproject.toml says. Exit codes: 0, or 5 if
    the history has nothing of that time.
    """
    from sooner.cli.digesting import Order, show

    return show(Order.of(options))
