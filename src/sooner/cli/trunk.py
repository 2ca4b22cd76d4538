"""`sooner trunk`: verdicts, decide, revert, simulate, digest, flaky."""

import importlib
from typing import Final

import click

_VERBS: Final = {
    "verdicts": "Say what is broken, by which commit, how surely, and what to run to know more.",
    "decide": "Decide about documents on stdin, one a line; for a CI that drives the loop.",
    "revert": "Propose the reverts of a verdict; with --execute make them.",
    "simulate": "Let policies decide about simulated trunks whose culprits are known.",
    "digest": "What landed, broke, was reverted and is flaky.",
    "flaky": "Rank flaky tests by what they cost; write the quarantine.",
}


class _Verbs(click.Group):
    """Imports a verb's module when the verb is used."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(_VERBS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in _VERBS:
            return None
        command = getattr(importlib.import_module(f"sooner.cli.trunk_{name}"), name)
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Verbs"):
            formatter.write_dl(list(_VERBS.items()))


@click.group(cls=_Verbs)
def trunk() -> None:
    """Say which commit broke trunk, whether it is a flake or the machines, and what to do.

    A revert needs a posterior of 99.9 % for one commit; short of that the runs are named that would tell most.
    """
