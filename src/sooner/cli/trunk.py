"""`sooner trunk`: verdicts, decide, revert, simulate, digest, flaky."""

from typing import Final

import click

from sooner.cli.groups import Verbs

_VERBS: Final = {
    "verdicts": "Say what is broken, by which commit, how surely, and what to run to know more.",
    "decide": "Decide about documents on stdin, one a line; for a CI that drives the loop.",
    "revert": "Propose the reverts of a verdict; with --execute make them.",
    "simulate": "Let policies decide about simulated trunks whose culprits are known.",
    "digest": "What landed, broke, was reverted and is flaky.",
    "flaky": "Rank flaky tests by what they cost; write the quarantine.",
}


@click.group(cls=Verbs, verbs=_VERBS, prefix="trunk_")
def trunk() -> None:
    """Say which commit broke trunk, whether it is a flake or the machines, and what to do.

    A revert needs a posterior of 99.6 % for one commit; short of that the runs are named that would tell most.
    """
