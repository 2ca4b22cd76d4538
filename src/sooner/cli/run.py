"""`sooner run`."""

import os
import sys
from pathlib import Path
from typing import Any

import click

from sooner.cli.options import run_options


@click.command()
@click.argument("plan_file", metavar="[PLAN.toml]", required=False, type=click.Path())
@click.option("--resume", metavar="DIR", type=click.Path(file_okay=False), help="Continue an interrupted run.")
@run_options
def run(plan_file: str | None, resume: str | None, **cli: Any) -> int:
    """Run the units of PLAN.toml on all devices at once.

    Progress goes to stderr; the logs in plan order and the summary to stdout. DIR then holds results.jsonl,
    events.jsonl, junit.xml, trace.json, run.json and logs/.
    """
    from sooner.cli.resuming import resume_run
    from sooner.cli.wiring import execute
    from sooner.model.errors import UsageError
    from sooner.plan.toml_plan import read_plan

    if resume:
        return resume_run(Path(resume), plan_file, cli)
    if not plan_file:
        raise UsageError("which plan? Pass PLAN.toml, or --resume DIR (docs/how-to/run.md shows a plan)")
    text = plan_text(Path(plan_file))
    return execute(read_plan(text, source=plan_file, env=os.environ), cli, text=text)


def plan_text(path: Path) -> str:
    """The text of a plan that the user named.

    Raises:
        UsageError: It cannot be read, or is something else that tests are made of.
    """
    from sooner.model.errors import UsageError

    if path.is_dir() or path.suffix == ".py":
        what = "a folder" if path.is_dir() else "a Python file"
        advice = f"`sooner needs {path} --plan > plan.toml` makes one of its tests"
        raise UsageError(f"{path} is {what}, and a plan is a TOML file: {advice}")
    if path.suffix in (".sh", ".bash"):
        raise UsageError(f"{path} is a script, and a plan is a TOML file: `sooner script {path}` runs it")
    return read_text(path)


def read_text(path: Path) -> str:
    """The text of a file that the user named.

    Raises:
        UsageError: It cannot be read.
    """
    from sooner.model.errors import UsageError

    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start}): save it as UTF-8") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None


def read_text_or_stdin(source: str) -> str:
    """The text of a file that the user named, or what is piped in where that is `-`.

    Raises:
        UsageError: It cannot be read.
    """
    from sooner.model.errors import UsageError

    if source != "-":
        return read_text(Path(source))
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"stdin is not UTF-8 text (byte {error.start}): pass UTF-8") from None
