"""`sooner jobs`: correlate, select, backtest, for-change, gate."""

import importlib
from typing import Final

import click

_VERBS: Final = {
    "correlate": "Show which jobs fail together, and which of them could stand in for which.",
    "select": "Choose jobs as for the next commit; say why, at what cost, and what is missed.",
    "backtest": "Replay the history: what would have been chosen, caught, missed and spent.",
    "for-change": "List the jobs that one change must run (what CI calls).",
    "gate": "The one required check: did the jobs that were selected pass?",
}


class _Verbs(click.Group):
    """Imports a verb's module when the verb is used."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(_VERBS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in _VERBS:
            return None
        module = name.replace("-", "_")
        command = getattr(importlib.import_module(f"sooner.cli.jobs_{module}"), module)
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Verbs"):
            formatter.write_dl(list(_VERBS.items()))


@click.group(cls=_Verbs)
def jobs() -> None:
    """Choose the jobs that a change must run; say what that would miss."""
