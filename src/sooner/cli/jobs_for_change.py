"""`sooner jobs for-change`."""

from pathlib import Path
from typing import Any

import click

from sooner.cli.jobs_options import goal_options, history_options
from sooner.model.outcomes import ExitCode


@click.command("for-change")
@history_options
@goal_options
@click.option("--message-file", type=click.Path(dir_okay=False, path_type=Path),
              help="Messages of all its commits (- for stdin).")  # fmt: skip
@click.option("--files-file", type=click.Path(dir_okay=False, path_type=Path),
              help="Changed files, one a line (- for stdin).")  # fmt: skip
@click.option("--id", "identity", default="", metavar="TEXT", help="Of the change (its head sha): decides the sample.")
@click.option("--sample", type=float, metavar="SHARE", help="Share of changes that run everything (default: 0.03).")
@click.option("--format", "format_", type=click.Choice(["text", "json", "matrix", "github-output"]), default="text")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--record", is_flag=True, help="Write into the history what was selected, and whether it was sampled.")
def for_change(*, format_: str, as_json: bool, **options: Any) -> int:
    """List the jobs that one change must run, each with its reason.

    `[ci all]`, `[ci JOB-GLOB]` and `[ci skip JOB-GLOB]` in a message are obeyed. Text is data: it is compared with the
    names of jobs, and never run.
    """
    from sooner.cli.jobs_change import change_answer, printed

    found = change_answer(options)
    click.echo(printed(found, "json" if as_json else format_), nl=False)
    return int(ExitCode.ALL_PASSED)
