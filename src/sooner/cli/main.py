"""`sooner`: the group of verbs, loaded one at a time, and what errors look like."""

import importlib.util
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final, NoReturn

import click

from sooner import __version__
from sooner.cli import output
from sooner.cli.groups import Verbs

_VERBS: Final = {
    "run": "Run a plan of units on all devices at once.",
    "script": "Run an unmodified shell script with its tests in parallel.",
    "submit": "In a script: leave a command to `sooner wait`.",
    "wait": "In a script: run everything submitted, in parallel.",
    "plan": "Predict order, makespan and lower bound of a plan; run nothing.",
    "rerun": "Run the units of an earlier run again.",
    "replay": "Print the logs and the summary of a run.",
    "tail": "Print or follow the log of one unit.",
    "bisect-pollution": "Find the tests after which another one fails.",
    "tts": "Show how long a signal takes, what of, and since when.",
    "needs": "Say how many devices each test needs, and why.",
    "coverage": "Check that each test really ran, at its full need, and when.",
    "rightsize": "Propose runner sizes, shards and periodic workflows; edit the workflow files.",
    "simulate-pool": "Replay pools of runners: queue times observed and predicted.",
    "jobs": "Choose the jobs that a change must run; say what that would miss.",
    "trunk": "Say which commit broke trunk, rerun, revert, list flaky tests, digest a day.",
    "devices": "List the machine's devices, and who holds them.",
    "ingest": "Take test reports, CI dumps, tables and git into the history.",
    "history": "Look at the history, compact it, export it, find renamed jobs.",
}
_EPILOG: Final = (
    "Exit codes: 0 all passed, 1 some failed, 2 interrupted, 3 a bug in sooner, 4 wrong usage or plan,"
    " 5 nothing to run, 10 coverage hole, 11 infrastructure, 12 a policy is not met, 130 interrupted at the start."
)
_EXTRAS: Final = {"duckdb": "history", "numpy": "stats", "scipy": "stats"}
"""Packages without which nothing is told of the past, and the extras that bring them."""
_ENDLESS: Final = (("tail",), ("trunk", "decide"))
"""Verbs that go on until nobody reads any more; for all others a reader that has enough changes nothing."""
_MOST_LINES_OF_HELP: Final = 100


@click.group(
    cls=Verbs,
    verbs=_VERBS,
    groups=("jobs", "trunk", "history"),
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": _MOST_LINES_OF_HELP},
    no_args_is_help=False,
    invoke_without_command=True,
)
@click.version_option(__version__, prog_name="sooner")
@click.pass_context
def sooner(ctx: click.Context) -> None:
    """GPU test suites that give their signal sooner, on fewer machines, without losing a regression."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with a documented code (`sooner.model.outcomes.ExitCode`)."""
    sys.exit(_run(list(sys.argv[1:] if arguments is None else arguments)))


def _run(arguments: list[str]) -> int:
    output.mend(ends_unread=any(arguments[: len(verb)] == list(verb) for verb in _ENDLESS))
    try:
        os.getcwd()  # noqa: PTH109 - only whether there is one
    except OSError:
        click.echo("sooner: the current directory is gone: change to one that exists", err=True)
        return 4
    code = _code_of(arguments)
    if lost := output.what_was_lost():
        click.echo(f"sooner: standard output is not complete: {lost}", err=True)
        return code or 11
    return code


def _code_of(arguments: list[str]) -> int:
    try:
        result = sooner.main(args=arguments, prog_name="sooner", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        from sooner.cli.mistakes import text_of
        from sooner.model.outcomes import ExitCode

        click.echo(text_of(error, sooner, arguments), err=True)
        return ExitCode.USAGE
    except click.Abort as error:
        # Click takes the end of any file for the end of what is typed: of a module that was cut off, too.
        return _known_or_bug(error.__cause__) if isinstance(error.__cause__, EOFError) else 130
    except KeyboardInterrupt:
        return 130
    except (BrokenPipeError, output.NobodyReadsError):
        # Whoever read our output has enough; Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except Exception as error:  # noqa: BLE001 - the border of the program
        return _known_or_bug(error)
    return result if isinstance(result, int) else 0


def _lacking() -> list[str]:
    """Extras of which a package is not installed."""
    return sorted({extra for package, extra in _EXTRAS.items() if importlib.util.find_spec(package) is None})


def _known_or_bug(error: Exception) -> int:
    from sooner.model.errors import REFUSALS, SoonerError
    from sooner.model.outcomes import ExitCode
    from sooner.model.text import disarmed, terminal_text

    if isinstance(error, ModuleNotFoundError) and (missing := (error.name or "").partition(".")[0]) in _EXTRAS:
        click.echo(f"sooner: {missing} is not installed: pip install 'sooner[{','.join(_lacking())}]'", err=True)
        return ExitCode.USAGE
    if isinstance(error, SoonerError):
        click.echo(f"sooner: {disarmed(terminal_text(str(error), colour=False))}", err=True)
        return error.exit_code
    if isinstance(error, OSError) and error.strerror in REFUSALS:
        where = f": {terminal_text(str(error.filename), colour=False)}" if error.filename else ""
        advice = REFUSALS[error.strerror]
        click.echo(f"sooner: {error.strerror}{where}: {advice} and repeat the command", err=True)
        return ExitCode.USAGE
    traceback.print_exception(error)
    click.echo("sooner: this is a bug in sooner; please report it with the lines above.", err=True)
    return ExitCode.BUG
