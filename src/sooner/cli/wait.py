"""`sooner wait`."""

from typing import Any

import click

from sooner.cli.options import run_options


@click.command()
@click.option(
    "--queue", metavar="NAME", envvar="SOONER_QUEUE", default="", help="A queue to share; else the script's own."
)
@run_options
def wait(queue: str, **cli: Any) -> int:
    """In a shell script: run everything that was submitted, in parallel, and fail if any of it failed."""
    from sooner.cli.recorded import run_submitted

    return run_submitted(queue, cli)
