"""`argparse`, for programs that a test starts with options that are known."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import (
    MISSING,
    Args,
    Cls,
    Ext,
    Inst,
    Kwargs,
    Mod,
    Native,
    Text,
    Unknown,
    hard,
    name_of,
)

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

ARGV: Final = "sys.argv"
_NOT_KNOWN: Final = "\0not known "
_TYPES: Final = {"int": int, "float": float}
_KEPT: Final = ("action", "nargs", "const", "default", "choices", "dest", "metavar")


def argument_parser(machine: "Machine", _args: Args, _kwargs: Kwargs) -> Any:
    """A stand-in for `ArgumentParser`: it parses what a program is given, or a list in its place."""
    parser = Inst(Cls("ArgumentParser", [Ext("argparse.ArgumentParser")], Mod("argparse", "")))
    added: list[tuple[Args, Kwargs]] = []

    def add(args: Args, kwargs: Kwargs) -> Any:
        added.append((args, kwargs))
        return Unknown("argparse.Action")

    def parse(args: Args, kwargs: Kwargs, unknown: list[Any] | None = None) -> Any:
        given = args[0] if args else kwargs.get("args", machine.overrides.get(ARGV, MISSING))
        words = machine.items_of(given) if given is not MISSING and hard(given) is not None else None
        words = words[1:] if words is not None and given is machine.overrides.get(ARGV) else words
        return _parsed(added, unknown if given is MISSING else words)

    def parse_known(args: Args, kwargs: Kwargs) -> Any:
        """Of what pytest was told, which is left, no word is an option of the test's: all have their defaults."""
        return parse(args, kwargs, []), Unknown("args")

    parser.attrs |= {
        "add_argument": Native("add_argument", add),
        "add_argument_group": Native("add_argument_group", lambda _args, _kwargs: parser),
        "add_mutually_exclusive_group": Native("add_mutually_exclusive_group", lambda _args, _kwargs: parser),
        "parse_args": Native("parse_args", parse),
        "parse_known_args": Native("parse_known_args", parse_known),
    }
    return parser


def _parsed(added: list[tuple[Args, Kwargs]], words: list[Any] | None) -> Any:
    """The options of a command line; Unknown where its words, or what is done with them, are not known.

    A word that is not known is taken for the value of the option before it, not for another option.
    """
    if words is None or any(not isinstance(hard(each), str | Unknown | Text) for each in words):
        return Unknown("args")
    said_words = [each if isinstance(hard(each), str) else f"{_NOT_KNOWN}{i}" for i, each in enumerate(words)]
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    try:
        for names, said in added:
            options = {name: hard(each) for name, each in said.items() if name in _KEPT}
            if (kind := _TYPES.get(name_of(hard(said.get("type", "")))) if "type" in said else None) is not None:
                options["type"] = _converter(kind)
            parser.add_argument(*map(hard, names), **options)
        found, left = parser.parse_known_args([hard(each) for each in said_words])
    except (argparse.ArgumentError, SystemExit, TypeError, ValueError, AttributeError):
        return Unknown("args")
    if any(_NOT_KNOWN in each for each in left):  # it may be an option
        return Unknown("args")
    namespace = Inst(Cls("Namespace", [Ext("argparse.Namespace")], Mod("argparse", "")))
    namespace.attrs |= {name: _told(value) for name, value in vars(found).items()}
    return namespace


def _converter(kind: type) -> Callable[[str], Any]:
    return lambda word: word if _NOT_KNOWN in word else kind(word)


def _told(value: Any) -> Any:
    """What an option was given, if that is known."""
    if isinstance(value, list):
        return [_told(each) for each in value]
    return Unknown("an option's value") if isinstance(value, str) and _NOT_KNOWN in value else value
