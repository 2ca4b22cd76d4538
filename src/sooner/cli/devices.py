"""`sooner devices`: which devices there are, and whose they are now."""

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from sooner.devices.find import Found
    from sooner.devices.leases import LeaseBook
    from sooner.devices.survey import DeviceReport

_COLUMNS: Final = ("ID", "STATE", "MEMORY", "NUMA", "LINKS", "NAME", "UUID", "WHY")


@click.command("devices", short_help="Show devices, who leases them and which are put aside.")
@click.option(
    "--devices",
    "spec",
    metavar="SPEC",
    help="auto, a number, indices (0,1), UUIDs, virtual:N or cpu:N (default: as runs have them, else auto).",
)
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects instead of a table.")
@click.option("--clear", metavar="ID", help="First take away the quarantine mark of this device (its id or UUID).")
def devices(spec: str | None, clear: str | None, *, as_json: bool) -> None:
    """Show the devices that a run could use here, who leases them, and which are busy or put aside."""
    from sooner.cli.settings import run_settings
    from sooner.devices.leases import LeaseBook, lease_root
    from sooner.devices.proof import Monitor
    from sooner.devices.survey import survey

    found = _found(run_settings({"devices": spec}).devices)
    book = LeaseBook(lease_root(os.environ))
    if clear is not None:
        _clear(clear, found, book)
    with Monitor(found.devices) as monitor:
        reports = survey(found.devices, book, monitor, now=time.time())
    for note in found.notes:
        click.echo(f"note: {note}", err=True)
    if as_json:
        click.echo(_as_json(reports))
    elif reports:
        click.echo(_as_table(reports))


def _found(spec: str) -> "Found":
    """Look without insisting where the user asked for nothing in particular: a laptop has no accelerator."""
    from sooner.devices.find import accelerators, find_devices

    if spec != "auto":
        return find_devices(spec, os.environ)
    found = accelerators(os.environ)
    if not found.devices:
        click.echo("no accelerator can be used here; --devices virtual:N or cpu:N work without one", err=True)
    return found


def _clear(name: str, found: "Found", book: "LeaseBook") -> None:
    from sooner.model.errors import DevicesError

    device = next((device for device in found.devices if name in {device.id, device.uuid} - {""}), None)
    if device is None:
        ids = ", ".join(device.id for device in found.devices) or "none"
        raise DevicesError(f"--clear {name!r} is no device that can be used here; there are: {ids}")
    had_mark = book.clear(device)
    click.echo(f"{device.id} {'is no longer put aside' if had_mark else 'was not put aside'}", err=True)


def _as_json(reports: "Sequence[DeviceReport]") -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(reports), indent=2).decode()


def _as_table(reports: "Sequence[DeviceReport]") -> str:
    """Aligned columns, without those in which nothing is said."""
    from sooner.report.wording import aligned

    rows = [_COLUMNS, *map(_cells, reports)]
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    return "\n".join(aligned(list(zip(*columns, strict=True))))


def _cells(report: "DeviceReport") -> tuple[str, ...]:
    return (
        report.id,
        report.state.value,
        f"{report.memory_mib} MiB" if report.memory_mib else "",
        str(report.numa) if report.numa >= 0 else "",
        ",".join(map(str, report.links)),
        report.name,
        report.uuid,
        report.holder or report.reason,
    )
