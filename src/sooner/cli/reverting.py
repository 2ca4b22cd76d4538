"""`sooner trunk revert`: from its options to its exit code."""

import contextlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from sooner.analysis.trunk.reverting import Limits
from sooner.cli.ended import ended_by_signals
from sooner.cli.reverting_api import check_repository
from sooner.cli.reverting_document import wanted_in
from sooner.cli.reverting_journal import Journal, read_journal
from sooner.cli.reverting_make import Order, Result, Reverter, exit_code_of
from sooner.cli.run import read_text_or_stdin
from sooner.cli.spans import seconds_of
from sooner.model.errors import UsageError
from sooner.model.text import terminal_text
from sooner.report.reverts import results_text
from sooner.run.folder import keep_out_of_version_control


def show(options: Mapping[str, Any]) -> int:
    """Propose or make the reverts, and print what became of each."""
    order = order_of(options)
    journal = Path(options["journal"])
    reverter = Reverter(order, lambda line: click.echo(f"sooner: {terminal_text(line, colour=False)}", err=True))
    with ended_by_signals(), contextlib.closing(reverter):
        if not options["execute"]:
            results = list(reverter.propose(read_journal(journal)))
        elif order.wanted:
            if journal.parts[:1] == (".sooner",):
                with contextlib.suppress(OSError):  # the journal tells of it
                    keep_out_of_version_control(Path(".sooner"))
            with Journal(journal) as held:
                results = list(reverter.execute(held))
        else:
            results = []
    _print(results, as_json=options["as_json"])
    return int(exit_code_of(results))


def order_of(options: Mapping[str, Any]) -> Order:
    """What was asked.

    Raises:
        UsageError: Options that do not fit together, or a document that is none.
    """
    source = options["document"]
    if source == "-" and sys.stdin.isatty():
        raise UsageError("which decisions? Pass FILE, or pipe in what `sooner trunk decide` printed")
    text = read_text_or_stdin(source)
    github, url = options["github"], options["repo"]
    if github:
        check_repository(github)
    if github and not url:
        url = f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{github}.git"
    if options["execute"] and not url:
        raise UsageError("--execute needs --repo DIR|URL, or --github OWNER/NAME")
    if options["switch"] == "":  # as a variable that is not set leaves it: whoever names a switch wants one
        raise UsageError(
            "--kill-switch is empty: name a file, a URL or github:OWNER/NAME#ISSUE, or leave the option away"
        )
    if options["a_day"] < 0:
        raise UsageError(f"--a-day {options['a_day']}: at least 0")
    for name in ("patience", "pause"):
        if not options[f"{name}_s"] >= 0:
            raise UsageError(f"--{name} {options[f'{name}_s']:g}: at least 0 s")
    token = _token()
    if github and options["execute"] and not token:
        click.echo(
            "sooner: GITHUB_TOKEN is not set, or empty: GitHub takes no branch and no request from nobody", err=True
        )
    return Order(
        wanted=wanted_in(text, source="stdin" if source == "-" else source),
        url=url if options["execute"] or options["repo"] else "",
        trunk=options["trunk"],
        github=github,
        api=options["api"] or os.environ.get("GITHUB_API_URL", "https://api.github.com"),
        token=token,
        limits=Limits(
            a_day=options["a_day"], oldest_s=seconds_of(options["oldest"], "--oldest"), opt_out=options["opt_out"]
        ),
        switch=options["switch"] or "",
        patience_s=options["patience_s"],
        pause_s=options["pause_s"],
    )


def _token() -> str:
    """From the environment, where secrets often end with a line break.

    Raises:
        UsageError: It cannot be one; it is not shown.
    """
    token = os.environ.get("GITHUB_TOKEN", "").strip()
    if not all("!" <= char <= "~" for char in token):
        raise UsageError("GITHUB_TOKEN is no token: it holds a space, a line break or a letter beyond ASCII")
    return token


def _print(results: list[Result], *, as_json: bool) -> None:
    if as_json:
        text = json.dumps({"reverts": msgspec.to_builtins(results)}, ensure_ascii=False, separators=(",", ":"))
        click.echo(text.encode("utf-8", "replace").decode())  # names of repositories and branches are bytes
    else:
        rows = [msgspec.to_builtins(result) for result in results]
        click.echo(results_text(rows))
