"""`sooner bisect-pollution`."""

import importlib.util
import subprocess
import sys

import click

from sooner.model.errors import UsageError


@click.command("bisect-pollution")
@click.argument("test", metavar="[TEST]", default="last")
@click.option("--gpus", default="virtual:1", show_default=True, help="Devices, as for `pytest --gpus`.")
@click.argument("pytest_arguments", metavar="[-- PYTEST_ARGUMENTS]", nargs=-1, type=click.UNPROCESSED)
def bisect_pollution(test: str, gpus: str, pytest_arguments: tuple[str, ...]) -> int:
    """Find the tests after which TEST fails that passes by itself.

    TEST is the id of a test that a run of `pytest --gpus` reported as polluted; without it, the last one. The order of
    that run is in pytest's cache, so start this where pytest was started, with the options that it needs after `--`.
    """
    if importlib.util.find_spec("pytest") is None:
        raise UsageError(f"pytest is not installed where sooner is ({sys.executable}): pip install pytest")
    command = [sys.executable, "-m", "pytest", "-q", f"--gpus={gpus}", f"--bisect-pollution={test}", *pytest_arguments]
    return subprocess.run(command, check=False).returncode
