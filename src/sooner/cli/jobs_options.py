"""What the verbs of `sooner jobs` share: options, the record from the history, one error where a package lacks."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sooner.cli.histories import history_at
from sooner.model.errors import UsageError

if TYPE_CHECKING:
    from sooner.analysis.selection.facts import Record
    from sooner.analysis.selection.policy import Goal

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--history", "root", metavar="DIR", help="The history (default: .sooner/history)."),
    click.option("--repository", default="", metavar="OWNER/NAME", help="Only this one."),
    click.option("--workflow", default="", help="Only this one."),
    click.option("--branch", default="", help="Only this one (default: the trunk, if several are known)."),
)


def history_options(command: F) -> F:
    """The options that say which part of which history."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def goal_options(command: F) -> F:
    """The options that say what is asked for."""
    budget = click.option("--budget", type=float, metavar="SHARE", help="Spend this share of the cost of all jobs.")
    recall = click.option("--recall", type=float, metavar="SHARE", help="Catch this share of the breakages.")
    return recall(budget(command))


RECALL, BUDGET = 0.97, 0.6
"""Without any goal: catch 97 %, for at most 60 % of the cost (the aim that the project has set itself)."""


def goal(recall: float | None, budget: float | None) -> "Goal":
    """What is asked for.

    Raises:
        UsageError: A share outside of 0 to 1.
    """
    history_door()
    from sooner.analysis.selection.policy import Goal

    for name, share, usual in (("--recall", recall, RECALL), ("--budget", budget, BUDGET)):
        if share is not None and not 0.0 < share <= 1.0:
            raise UsageError(f"{name} {share:g}: a share between 0 and 1 is needed, such as {usual:g}")
    if recall is None and budget is None:
        return Goal(recall=RECALL, budget=BUDGET)
    return Goal(recall=recall, budget=budget)


def trunk_of(options: Mapping[str, Any]) -> "tuple[Record, Any]":
    """The record of the trunk, and where it was read from; notes go to stderr.

    Raises:
        UsageError: There is no such history, or a package is missing.
    """
    History, Where = history_door()  # noqa: N806 - classes
    from sooner.analysis.selection.load import trunk

    where = Where(**{name: options[name] for name in ("repository", "workflow", "branch")})
    with History(history_at(options["root"])) as history:
        facts, notes = trunk(history, where)
    for note in notes:
        click.echo(f"note: {note}", err=True)
    return facts, where


def history_door() -> Any:
    """`History` and `Where`, loaded when they are asked for."""
    from sooner.history import History, Where

    return History, Where


def write(path: Path, data: bytes) -> None:
    """Write a file that the user asked for.

    Raises:
        UsageError: It cannot be written.
    """
    try:
        path.write_bytes(data)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def printed_json(value: Any) -> str:
    """One line of JSON."""
    import msgspec

    return msgspec.json.encode(value, enc_hook=_plain).decode()


def _plain(value: Any) -> Any:
    """Numbers of numpy as Python's."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
