"""`sooner history`: info, compact, export, lineage."""

from typing import TYPE_CHECKING, Any, Final

import click

from sooner.cli.groups import Group
from sooner.report.wording import counted, table

if TYPE_CHECKING:
    from sooner.history import Where

_root = click.option(
    "--history", "root", metavar="DIR", default=".sooner/history", show_default=True, help="Folder or URL."
)
_MANY_FILES: Final = 500
_json = click.option("--json", "as_json", is_flag=True, help="JSON on stdout.")


@click.group(cls=Group)
def history() -> None:
    """Look at the history and look after it."""


@history.command()
@_root
@_json
def info(root: str, *, as_json: bool) -> int:
    """Show what the history holds."""
    from sooner.history import SCHEMA, History

    with History(root) as opened:
        tables = opened.info()
        url = opened.folder.url
    if as_json:
        click.echo(_printed_json({"history": url, "schema": SCHEMA, "tables": tables}))
        return 0
    if not any(one.files for one in tables.values()):
        click.echo(f"{url}: nothing is recorded yet: `sooner run` and `sooner ingest` do that", err=True)
        return 0
    rows = [("TABLE", "ROWS", "FILES", "SIZE", "FROM", "TO")]
    for name, one in tables.items():
        if one.files:
            size = f"{one.bytes / 1e6:.1f} MB" if one.bytes is not None else ""
            rows.append((name, f"{one.rows:,}", f"{one.files:,}", size, _day(one.first), _day(one.last)))
    click.echo(table(rows, right=(1, 2, 3)))
    if sum(one.files for one in tables.values()) > _MANY_FILES:
        click.echo("note: many files make reading slow: `sooner history compact` makes few of them", err=True)
    return 0


@history.command()
@_root
@_json
def compact(root: str, *, as_json: bool) -> int:
    """Make few large files of many small ones.

    Others may read and write meanwhile.
    """
    from sooner.history import History
    from sooner.history.compact import compact as compact_history

    with History(root) as opened:
        done = compact_history(opened)
    if as_json:
        click.echo(_printed_json({"tables": done}))
    elif done:
        rows = [("TABLE", "FILES BEFORE", "AFTER", "ROWS WRITTEN")]
        rows += [(table.table, f"{table.before:,}", f"{table.after:,}", f"{table.rows:,}") for table in done]
        click.echo(table(rows, right=(1, 2, 3)))
    return 0


@history.command()
@click.argument("table")
@click.argument("target", metavar="FILE", type=click.Path(dir_okay=False, allow_dash=True))
@_root
@click.option("--format", "format_", type=click.Choice(["parquet", "csv", "jsonl"]), help="Else by FILE's name.")
@click.option("--repository", default="", metavar="OWNER/NAME", help="Only rows of this repository.")
@click.option("--branch", default="", help="Only rows of this branch.")
@click.option("--since", metavar="TIME", help="Only rows from then on (ISO 8601).")
@click.option("--until", metavar="TIME", help="Only rows before then.")
@_json
def export(table: str, target: str, root: str, *, format_: str | None, as_json: bool, **which: Any) -> int:
    """Write TABLE to FILE (`-`: stdout) as Parquet, CSV or JSON lines."""
    from sooner.cli.histories import history_at
    from sooner.history import History
    from sooner.history.export import export as export_table

    with History(history_at(root)) as opened:
        rows = export_table(opened, table, target, format_=format_ or "", where=_where(which))
    if as_json and target != "-":
        click.echo(_printed_json({"rows": rows, "path": target}))
    else:
        click.echo(counted(rows, "row"), err=True)
    return 0


@history.command()
@_root
@click.option("--repository", default="", metavar="OWNER/NAME", help="Only jobs of this repository.")
@_json
def lineage(root: str, repository: str, *, as_json: bool) -> int:
    """Propose which jobs go on under another name."""
    from sooner.cli.histories import history_at
    from sooner.history import History, Where, check_named, check_one_repository
    from sooner.history.lineage import lineage as propose
    from sooner.history.lineage import lives

    with History(history_at(root)) as opened:
        check_named(opened, Where(repository=repository))
        check_one_repository(opened, Where(repository=repository), "jobs")
        found = propose(lives(opened, repository))
    if as_json:
        click.echo(_printed_json({"proposals": found}))
        return 0
    if not found:
        click.echo("no job seems to go on under another name", err=True)
        return 0
    rows = [("SINCE", "WHAT", "OLD", "NEW", "LIKENESS")]
    rows += [(_day(one.at), one.kind, ", ".join(one.old), ", ".join(one.new), f"{one.likeness:.2f}") for one in found]
    click.echo(table(rows, right=(4,)))
    return 0


def _where(which: dict[str, Any]) -> "Where":
    from sooner.cli.ingest import epoch
    from sooner.cli.spans import check_order
    from sooner.history import Where

    since, until = epoch("--since", which["since"]), epoch("--until", which["until"])
    check_order(which, since, until)
    return Where(repository=which["repository"], branch=which["branch"], since=since, until=until)


def _printed_json(value: Any) -> str:
    import msgspec

    return msgspec.json.encode(value).decode()


def _day(time_s: float | None) -> str:
    from datetime import UTC, datetime

    return "" if time_s is None else datetime.fromtimestamp(time_s, UTC).date().isoformat()
