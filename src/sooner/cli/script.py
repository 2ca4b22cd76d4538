"""`sooner script`."""

from pathlib import Path
from typing import Any

import click

from sooner.cli.options import run_options


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("script_file", metavar="FILE.sh", type=click.Path(dir_okay=False))
@click.argument("arguments", metavar="[ARGUMENTS]...", nargs=-1)
@run_options
def script(script_file: str, arguments: tuple[str, ...], **cli: Any) -> int:
    """Run an unmodified sequential test script with its tests on all devices at once.

    The script runs as it is, but its `python -m pytest`, `pytest` and `torchrun` calls are recorded with their
    environment instead of being run, and count as passed there. Then all recorded calls run in parallel.
    """
    from sooner.cli.recorded import run_script

    return run_script(Path(script_file), arguments, cli)
