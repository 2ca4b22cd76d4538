"""`sooner rerun`."""

from pathlib import Path
from typing import Any

import click

from sooner.cli.options import run_options


@click.command()
@click.argument("earlier", metavar="RUN", type=click.Path(file_okay=False))
@click.option("--failed", is_flag=True, help="Only what did not pass; without it, everything.")
@run_options
def rerun(earlier: str, *, failed: bool, **cli: Any) -> int:
    """Run the units of an earlier run again, in a new run folder.

    RUN is a run folder, or `.sooner/runs/latest`. What was to run after a unit that passed does not wait for it again.
    """
    import msgspec

    from sooner.cli.resuming import given, placed_plan, settings_of
    from sooner.cli.wiring import execute
    from sooner.model.outcomes import ExitCode, Outcome
    from sooner.run.folder import RunFolder
    from sooner.run.records import read_events, verdicts_in

    folder = RunFolder(Path(earlier).resolve())
    plan = placed_plan(folder)
    if failed:
        verdicts = verdicts_in(read_events(folder))
        passed = {key for key, verdict in verdicts.items() if verdict.outcome is Outcome.PASSED}
        plan = msgspec.structs.replace(plan, units=tuple(unit for unit in plan.units if unit.key not in passed))
        if not plan.units:
            click.echo(f"sooner: nothing to run again: all of {earlier} passed", err=True)
            return ExitCode.NOTHING_TO_RUN
    return execute(plan, {**settings_of(folder), **given(cli)})
