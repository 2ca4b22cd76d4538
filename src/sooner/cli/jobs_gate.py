"""`sooner jobs gate`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from sooner.model.errors import UsageError
from sooner.model.outcomes import ExitCode
from sooner.report.wording import counted


@click.command()
@click.option("--selection", metavar="FILE", required=True, type=click.Path(dir_okay=False, path_type=Path),
              help="What `for-change --json` printed (- for stdin).")  # fmt: skip
@click.option("--results", metavar="FILE", required=True, type=click.Path(dir_okay=False, path_type=Path),
              help='JSON: {"JOB": "success"} or GitHub\'s `toJSON(needs)`.')  # fmt: skip
@click.option("--carrier", "carriers", multiple=True, metavar="JOB", help="A job of the results that runs the matrix.")
@click.option("--json", "as_json", is_flag=True, help='{"passed", "problems", "selected"} on stdout.')
def gate(*, selection: Path, results: Path, carriers: tuple[str, ...], as_json: bool) -> int:
    """Pass if the jobs that were selected have passed (exit 0), else say which did not (exit 12).

    Make this the one required check, with `if: always()`: jobs that may be skipped must not be required themselves.
    """
    from sooner.analysis.selection import gate as gates
    from sooner.cli.jobs_options import printed_json
    from sooner.model.text import one_line, printable_or_replaced

    if str(selection) == str(results) == "-":
        raise UsageError("--selection and --results cannot both be stdin: write one of them into a file")
    chosen = _selected(_json(selection), selection)
    verdict = gates.gate(chosen, _results(_json(results), results), carriers)
    if as_json:
        problems = [printable_or_replaced(problem) for problem in verdict.problems]
        click.echo(printed_json({"passed": verdict.passed, "problems": problems, "selected": verdict.selected}))
    else:
        for problem in verdict.problems:
            click.echo(f"- {one_line(problem)}")  # a name at the beginning of a line may be a command for GitHub
        click.echo(f"{'passed' if verdict.passed else 'not passed'}: {counted(verdict.selected, 'job')} selected")
    return int(ExitCode.ALL_PASSED if verdict.passed else ExitCode.POLICY)


def _json(path: Path) -> Any:
    from sooner.cli.run import read_text_or_stdin

    text = read_text_or_stdin(str(path))
    try:
        return json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no JSON: {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; of a job that is named twice, the later result must not hide the earlier one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for index, (name, _) in enumerate(pairs) if name in dict(pairs[:index]))
        raise ValueError(f"{twice!r} stands twice in one object")
    return found


def _selected(document: Any, path: Path) -> list[str]:
    lines = document.get("jobs") if isinstance(document, dict) else document
    if isinstance(lines, list):
        names = [line.get("job") if isinstance(line, dict) else line for line in lines]
        found = [name for name in names if isinstance(name, str)]
        if len(found) == len(names):
            return found
    raise UsageError(f'{path}: a selection is {{"jobs": [{{"job": "NAME"}}, ...]}}, as `for-change --json` prints it')


def _results(document: Any, path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    if isinstance(document, dict):
        for name, value in document.items():
            word = value.get("result") if isinstance(value, Mapping) else value
            if not isinstance(word, str):
                break
            found[name] = word
        else:
            return found
    raise UsageError(f'{path}: results are {{"JOB": "success", ...}} or {{"JOB": {{"result": "success"}}, ...}}')
