"""`sooner jobs flakes`."""

from collections.abc import Sequence
from typing import Any

import click

from sooner.cli.jobs_options import history_options, printed_json, trunk_of
from sooner.model.outcomes import ExitCode


@click.command()
@history_options
@click.option("--reads", "globs", multiple=True, metavar="JOB-GLOB", help="Jobs that documentation may well break.")
@click.option("--json", "as_json", is_flag=True, help='{"held_out", "control", "code"} on stdout.')
def flakes(*, globs: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """Check whether flakes are told from breakages in this history, before you believe a selection.

    Repeats are hidden and foretold; and commits that touch only documentation should break next to nothing.
    """
    from sooner.cli.jobs_change import files_of, quiet_commits
    from sooner.cli.jobs_project import project_settings

    settings = project_settings()
    facts, where = trunk_of(options)
    from sooner.analysis.selection.validate import held_out_repeats, on_commits
    from sooner.report.selection import flakes_text

    quiet = sorted(quiet_commits(facts, files_of(options["root"], where), settings))
    exempt = _meant(globs, facts.jobs)
    held = held_out_repeats(facts)
    control = on_commits(facts, quiet) if quiet else None
    code = on_commits(facts, quiet, exempt) if quiet and exempt else None
    if as_json:
        click.echo(printed_json({"held_out": held, "control": control, "code": code}))
    else:
        click.echo(flakes_text(held, control, code))
    return int(ExitCode.ALL_PASSED)


def _meant(globs: Sequence[str], jobs: Sequence[str]) -> list[str]:
    """The jobs that names and globs mean; one that means none is told."""
    from sooner.analysis.selection.request import members

    found: list[str] = []
    for glob in globs:
        some = [jobs[i] for i in members(jobs, glob)]
        if not some:
            click.echo(f"warning: --reads: {glob!r} fits no job", err=True)
        found += some
    return found
