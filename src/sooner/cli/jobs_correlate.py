"""`sooner jobs correlate`."""

from pathlib import Path
from typing import Any

import click

from sooner.cli.jobs_options import history_door, history_options, printed_json, trunk_of, write
from sooner.cli.options import Range
from sooner.model.outcomes import ExitCode


@click.command()
@history_options
@click.option(
    "--method", type=click.Choice(["phi", "2019"]), default="phi", show_default=True, help="2019: as written."
)
@click.option("--kind", type=click.Choice(["all", "build", "test"]), default="all", show_default=True)
@click.option(
    "--cut",
    type=Range(0, 2),
    default=0.5,
    show_default=True,
    metavar="D",
    help="Distance (1 - phi) within a cluster.",
)
@click.option("--fold", "folds", multiple=True, metavar="SUFFIX", help="End of names to strip, for --method 2019.")
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), help="Write the heat map, with labels.")
@click.option("--png", type=click.Path(dir_okay=False, path_type=Path), help="Write the heat map, without labels.")
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write all of it as one page.")
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON.")
def correlate(
    *, method: str, kind: str, cut: float, folds: tuple[str, ...], as_json: bool,
    **options: Any,
) -> int:  # fmt: skip
    """Show which jobs fail together, and what is missed if one stands in for another.

    Only commits count on which both jobs passed or failed; flakes are taken out first. --method 2019 does what "PyTorch
    CI deduplication" did, flakes, cancelled jobs and all.
    """
    from sooner.cli.jobs_project import project_settings

    history_door()
    from sooner.analysis.selection.settings import check_fold

    settings = project_settings()
    check_fold(folds, "--fold")
    facts, _ = trunk_of(options)
    from sooner.analysis.selection.related import by_2019, by_phi
    from sooner.report.selection import correlation_text

    found = by_2019(facts, folds or settings.fold, kind) if method == "2019" else by_phi(facts, settings, kind, cut=cut)
    _pictures(found, correlation_text(found), **{name: options[name] for name in ("svg", "png", "html")})
    click.echo(printed_json(found) if as_json else correlation_text(found))
    return int(ExitCode.ALL_PASSED if found.jobs else ExitCode.NOTHING_TO_RUN)


def _pictures(found: Any, text: str, *, svg: Path | None, png: Path | None, html: Path | None) -> None:
    from sooner.report import heatmap

    nan = float("nan")
    rows = [[nan if value is None else value for value in row] for row in found.matrix]
    if svg is not None:
        write(svg, heatmap.svg(rows, found.jobs, found.cluster).encode())
    if png is not None:
        write(png, heatmap.png(rows))
    if html is not None:
        page = heatmap.page(heatmap.svg(rows, found.jobs, found.cluster), text)
        write(html, page.encode("utf-8", "replace"))
