"""`sooner tail`."""

from pathlib import Path

import click


@click.command()
@click.argument("run", metavar="RUN", type=click.Path(file_okay=False))
@click.argument("name", metavar="UNIT")
@click.option("-f", "--follow", is_flag=True, help="Go on until the unit has ended.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=0),
    default=20,
    metavar="N",
    show_default=True,
    help="How many lines to begin with.",
)
def tail(run: str, name: str, *, follow: bool, lines: int) -> int:
    """Print the end of a unit's log, also while it runs.

    RUN is a run folder (`.sooner/runs/latest`), UNIT a unit's name or `name|variant`.
    """
    from sooner.cli.tailing import tail_unit

    return tail_unit(Path(run), name, follow=follow, lines=lines)
