"""`sooner jobs select`."""

from pathlib import Path
from typing import Any

import click

from sooner.cli.jobs_options import goal_options, history_options, printed_json, trunk_of, write
from sooner.cli.options import Range
from sooner.model.outcomes import ExitCode


@click.command()
@history_options
@goal_options
@click.option(
    "--solver-seconds",
    type=Range(min=0),
    default=5.0,
    show_default=True,
    metavar="S",
    help="How long the exact solver may search.",
)
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write all of it as one page.")
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
def select(*, html: Path | None, as_json: bool, **options: Any) -> int:
    """Choose the jobs of the next commit; say of each why, its cost, and what leaving it out would have missed.

    Beside it stands the best fixed set of jobs for the same recall, with the distance to the proven optimum.
    """
    from sooner.cli.jobs_change import aim, files_of, learned
    from sooner.cli.jobs_project import project_settings

    settings = project_settings()
    wanted = aim(options, settings)
    facts, where = trunk_of(options)
    from sooner.analysis.selection.choice import selection
    from sooner.report.selection import selection_text

    found = selection(
        learned(facts, settings, files_of(options["root"], where)), wanted, settings, solver_s=options["solver_seconds"]
    )
    if html is not None:
        _page(html, found)
    click.echo(printed_json(found) if as_json else selection_text(found))
    return int(ExitCode.ALL_PASSED)


def _page(path: Path, found: Any) -> None:
    from sooner.report import frontier, heatmap
    from sooner.report.selection import selection_text

    picture = frontier.svg(found.frontier, found.expected)
    page = heatmap.page(picture, selection_text(found), "Which jobs run, and what that would have caught")
    write(path, page.encode("utf-8", "replace"))
