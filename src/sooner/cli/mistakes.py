"""What is said to a command line that cannot be understood: what is wrong, and where to look next."""

from collections.abc import Iterator, Sequence
from typing import Final

import click

from sooner.cli.groups import NoVerbError

_OF_OTHER_TOOLS: Final = ("--gpus", "--gpu", "--num-gpus")
"""pytest has `--gpus`, other runners too; ours may drive any accelerator."""
_MOST_NAMED: Final = 2


def text_of(error: click.ClickException, sooner: click.Group, arguments: Sequence[str]) -> str:
    """The lines for a mistake in `arguments`, which `sooner` did not understand."""
    if isinstance(error, NoVerbError):
        return error.format_message()
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else _called(sooner, arguments)
    message = error.format_message()
    if isinstance(error, click.NoSuchOption):
        message = _better_option(error, sooner, context) or message
    return f"{path}: {message}\nTry '{path} --help'."


def _called(sooner: click.Group, arguments: Sequence[str]) -> str:
    """The verb that was called, for errors that click raises without saying where."""
    command: click.Command = sooner
    words = ["sooner"]
    for word in arguments:
        found = command.get_command(click.Context(command), word) if isinstance(command, click.Group) else None
        if found is None:
            break
        command = found
        words.append(word)
    return " ".join(words)


def _better_option(error: click.NoSuchOption, sooner: click.Group, context: click.Context | None) -> str:
    """What to say of an option that other tools or verbs have; empty for one that nobody has."""
    here = [name for option in context.command.params for name in option.opts] if context else []
    if error.option_name in _OF_OTHER_TOOLS and "--devices" in here:
        return f"{error.message} Did you mean '--devices'?"
    verbs = [verb for verb, command in _verbs(sooner, "sooner") if _has(command, error.option_name)]
    if not verbs:
        return ""
    more = f" and {len(verbs) - _MOST_NAMED} more" if len(verbs) > _MOST_NAMED else ""
    has = "has" if len(verbs) == 1 else "have"
    return f"{error.message} {', '.join(f'`{verb}`' for verb in verbs[:_MOST_NAMED])}{more} {has} it."


def _has(command: click.Command, name: str) -> bool:
    return any(name in option.opts for option in command.params if isinstance(option, click.Option))


def _verbs(group: click.Group, called: str) -> Iterator[tuple[str, click.Command]]:
    """Every verb that is no group, with the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _verbs(command, f"{called} {name}")
        elif command is not None:
            yield f"{called} {name}", command
