"""`sooner coverage`."""

import click


@click.command()
@click.option("--history", "root", metavar="DIR", help="The history (default: .sooner/history).")
@click.option("--needs", metavar="FILE", help="What `sooner needs --json` printed: every test, and its full need.")
@click.option("--policy", metavar="FILE", help="TOML (default: [tool.sooner.coverage] of pyproject.toml).")
@click.option("--within", metavar="SPAN", help="How old the last execution may be: 24h, 7d (default: 24h).")
@click.option(
    "--at", type=click.Choice(["full", "gpu_min", "min", "any"]), help="The need that it must meet (default: full)."
)
@click.option("--runner", "runners", multiple=True, metavar="LABEL=N", help="Devices of a runner; LABEL may hold *.")
@click.option("--repository", default="", metavar="OWNER/NAME", help="Only executions of this repository.")
@click.option("--branch", default="", help="Only executions on this branch.")
@click.option("--now", metavar="TIME", help="Judge as at this time (ISO 8601 or epoch seconds).")
@click.option(
    "--limit", type=click.IntRange(min=0), default=40, show_default=True, metavar="N", help="How many tests are listed."
)
@click.option("--all", "show_all", is_flag=True, help="List covered tests too.")
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
def coverage(**options: object) -> int:
    """Check that each test really ran, at its full need, and when.

    A skip never counts, least of all one for lack of devices. Exit code 12 if a test is past the policy.
    """
    from sooner.cli.sizing_coverage import Question, show

    return show(Question.of(options))
