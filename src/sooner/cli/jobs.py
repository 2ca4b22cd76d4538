"""`sooner jobs`: correlate, select, backtest, flakes, for-change, gate."""

from typing import Final

import click

from sooner.cli.groups import Verbs

_VERBS: Final = {
    "correlate": "Show which jobs fail together, and which of them could stand in for which.",
    "select": "Choose jobs as for the next commit; say why, at what cost, and what is missed.",
    "backtest": "Replay the history: what would have been chosen, caught, missed and spent.",
    "flakes": "Check whether flakes are told from breakages here: hidden repeats, documentation.",
    "for-change": "List the jobs that one change must run (what CI calls).",
    "gate": "The one required check: did the jobs that were selected pass?",
}


@click.group(cls=Verbs, verbs=_VERBS, prefix="jobs_")
def jobs() -> None:
    """Choose the jobs that a change must run; say what that would miss."""
