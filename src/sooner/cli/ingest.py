"""`sooner ingest`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from sooner.model.text import one_line
from sooner.report.wording import counted

if TYPE_CHECKING:
    from sooner.history.ingest.report import Report

_SHOWN: Final = 20


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--history", "root", metavar="DIR", default=".sooner/history", show_default=True, help="Folder or URL.")
@click.option(
    "--format", "format_", metavar="F", default="", help="junit, csv, json, github, git, run, ... (else found out)."
)
@click.option(
    "--map", "mapping", metavar="COLUMN=FIELD", multiple=True, help="What a table's column is; `COLUMN=`: none."
)
@click.option("--set", "constants", metavar="FIELD=TEXT", multiple=True, help="What rows do not tell: repository=o/n.")
@click.option("--timezone", "zone", metavar="ZONE", default="UTC", show_default=True, help="Of times without a zone.")
@click.option("--since", metavar="TIME", help="For github:OWNER/NAME: how far back (ISO 8601; else two weeks).")
@click.option("--until", metavar="TIME", help="For github:OWNER/NAME: up to when.")
@click.option("--strict", is_flag=True, help="Stop at the first row that cannot be read.")
@click.option("--json", "as_json", is_flag=True, help='{"rows", "added", "duplicates", "rejected": [...]} on stdout.')
def ingest(paths: Sequence[str], *, root: str, as_json: bool, **given: Any) -> int:
    """Take what other systems know into the history: test reports, CI dumps, tables, git.

    PATH is a file, a folder, or github:OWNER/NAME (with GITHUB_TOKEN). The same source twice adds nothing.
    """
    import msgspec

    from sooner.cli.progress import progress
    from sooner.history import History
    from sooner.history.ingest.take import ingest as take

    with History(root) as history, progress() as tell:
        report = take(history, paths, _options(given), strict=given["strict"], progress=tell)
    if as_json:
        click.echo(msgspec.json.encode(report.as_json()).decode())
    else:
        _show(report)
    return 4 if report.rejected_count and not report.added.rows else 0


def _options(given: dict[str, Any]) -> Any:
    from sooner.history.ingest.intake import Options

    return Options(
        format=given["format_"],
        mapping=_pairs("--map", given["mapping"]),
        constants=_pairs("--set", given["constants"]),
        zone=given["zone"],
        since=epoch("--since", given["since"]),
        until=epoch("--until", given["until"]),
    )


def _pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    """`a=b` by `a`; a column's name may hold `=`, a field's does not."""
    from sooner.model.errors import UsageError

    pairs = {}
    for text in texts:
        name, mark, value = text.rpartition("=") if option == "--map" else text.partition("=")
        if not mark or not name:
            raise UsageError(f"{option} {text!r} is no NAME=VALUE")
        pairs[name] = value
    return pairs


def epoch(option: str, text: str | None) -> float | None:
    """A time of the command line as epoch seconds; without a zone it is UTC."""
    from sooner.cli.spans import iso_epoch
    from sooner.model.errors import UsageError

    if text is None:
        return None
    try:
        return iso_epoch(text)
    except ValueError:
        raise UsageError(f"{option} {text!r} is no time: write 2026-11-21 or 2026-11-21T09:30:00+01:00") from None


def _show(report: "Report") -> None:
    added = report.added
    parts = [f"{found.added:,} added to {name}" for name, found in report.tables.items() if found.rows]
    click.echo(
        f"{counted(added.rows + report.rejected_count, 'row')}:"
        f" {', '.join([*parts, f'{added.duplicates:,} known already'])},"
        f" {report.rejected_count:,} rejected"
    )
    for rejected in report.rejected[:_SHOWN]:
        place = f"{rejected.path}:{rejected.line}" if rejected.line else rejected.path
        click.echo(f"rejected: {one_line(f'{place}: {rejected.reason}')}", err=True)
    if report.rejected_count > _SHOWN:
        click.echo(f"... and {report.rejected_count - _SHOWN:,} more: --json lists them", err=True)
    for note in report.note_lines():
        click.echo(f"note: {one_line(note)}", err=True)
