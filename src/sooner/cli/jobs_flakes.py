"""`sooner jobs flakes`."""

from fnmatch import fnmatchcase
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
    exempt = [job for job in facts.jobs if any(fnmatchcase(job.lower(), glob.lower()) for glob in globs)]
    held = held_out_repeats(facts)
    control = on_commits(facts, quiet) if quiet else None
    code = on_commits(facts, quiet, exempt) if quiet and exempt else None
    if as_json:
        click.echo(printed_json({"held_out": held, "control": control, "code": code}))
    else:
        click.echo(flakes_text(held, control, code))
    return int(ExitCode.ALL_PASSED)
