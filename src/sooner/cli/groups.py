"""Groups of verbs whose modules are imported when a verb is used: help and mistakes cost no import."""

import importlib
from collections.abc import Collection, Mapping
from pathlib import PurePath
from typing import Any, Final

import click

_RUNS: Final = {".sh": "script", ".bash": "script", ".toml": "run"}
"""What runs a file, by the end of its name."""


class NoVerbError(click.UsageError):
    """A group was called without a verb: its help is the answer."""

    def format_message(self) -> str:
        """The help of the group."""
        return self.ctx.get_help() if self.ctx else self.message


class Group(click.Group):
    """A group that calls its commands verbs, and tells one that was mistyped with the nearest."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """What click makes of the words; none at all is a mistake, of which its versions think differently.

        Raises:
            NoVerbError: There is no word.
        """
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            raise NoVerbError("a verb is missing", ctx)
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs in the help."""
        names = self.list_commands(ctx)
        commands = {name: command for name in names if (command := self.get_command(ctx, name))}
        with formatter.section("Verbs"):
            formatter.write_dl([(name, command.get_short_help_str(limit=200)) for name, command in commands.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that was meant; a mistyped one is told with the nearest."""
        verbs = self.list_commands(ctx)
        if args and args[0] not in verbs and not args[0].startswith("-"):
            near = self._nearest(ctx, args[0])
            meant = _run_without_a_verb(args[0]) or (near and repr(near))
            hint = f": did you mean {meant}?" if meant else f": the verbs are {', '.join(verbs)}"
            ctx.fail(f"there is no verb {args[0]!r}{hint}")
        return super().resolve_command(ctx, args)

    def _nearest(self, ctx: click.Context, typed: str) -> str | None:
        """The verb that may have been meant."""
        from difflib import get_close_matches

        near = get_close_matches(typed, self.list_commands(ctx), n=1)
        return near[0] if near else None


def _run_without_a_verb(typed: str) -> str:
    """The command line for something that can be run, but is no verb; empty for all else."""
    if typed == "pytest":
        return "`pytest --gpus=auto`"
    verb = _RUNS.get(PurePath(typed).suffix)
    return f"`sooner {verb} {typed}`" if verb else ""


class Verbs(Group):
    """A group of verbs, each in a module of its own.

    Args:
        verbs: What each verb does, in the order of the help.
        prefix: Verb `for-change` is the command `for_change` of the module `sooner.cli.<prefix>for_change`.
        groups: The verbs that are groups of their own: what is mistyped may be a verb of theirs.
    """

    def __init__(
        self, *args: Any, verbs: Mapping[str, str], prefix: str = "", groups: Collection[str] = (), **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self._verbs = verbs
        self._groups = groups
        self._prefix = prefix

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """The verbs."""
        return list(self._verbs)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        """The command of a verb."""
        if name not in self._verbs:
            return None
        attribute = name.replace("-", "_")
        command = getattr(importlib.import_module(f"sooner.cli.{self._prefix}{attribute}"), attribute)
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs in the help, without importing them."""
        del ctx
        with formatter.section("Verbs"):
            formatter.write_dl(list(self._verbs.items()))

    def _nearest(self, ctx: click.Context, typed: str) -> str | None:
        """The verb that may have been meant: one of a group that is called so (`trunk flaky`), else the most alike."""
        from difflib import get_close_matches

        inner: dict[str, str] = {}
        for name in self._verbs:
            group = self.get_command(ctx, name) if name in self._groups else None
            if isinstance(group, click.Group):
                inner |= {verb: f"{name} {verb}" for verb in group.list_commands(ctx)}
        if typed in inner:
            return inner[typed]
        near = get_close_matches(typed, [*self._verbs, *inner], n=1)
        return inner.get(near[0], near[0]) if near else None
