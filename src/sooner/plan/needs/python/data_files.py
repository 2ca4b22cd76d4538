"""Files of the tree that tests and their helpers read: tables of sizes, lists of cases, their own source."""

import csv
import json
import posixpath
import tomllib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Args,
    Function,
    Kwargs,
    Native,
    Text,
    Unknown,
    hard,
    is_plain,
)
from sooner.plan.needs.processes.written_programs import FILE, File, name_of_file, opened_to_write, writing

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_LONGEST: Final = 200_000
"""Characters of a file that is read; tables of cases are short."""
_READING: Final = ("r", "rt", "rb")
_SAID: Final = ("exists", "is_file")


class Source(File):
    """A file of the tree that is open for reading."""

    __slots__ = ("text",)

    def __init__(self, name: str, text: str) -> None:
        super().__init__(name)
        self.text = text

    def attribute(self, machine: "Machine", name: str) -> Any:
        """Its whole text, or its lines; of anything else nothing is known."""
        if name in ("read", "readlines"):
            whole = self.text if name == "read" else self.text.splitlines(keepends=True)
            return Native(name, lambda args, _kwargs: UNKNOWN if args else whole)
        if name in ("getvalue", "readline"):
            line = self.text if name == "getvalue" else self.text.splitlines(keepends=True)[:1]
            return Native(name, lambda _args, _kwargs: "".join(line))
        return Unknown(f"{FILE}.{name}") if name == "write" else super().attribute(machine, name)

    def items(self, _machine: "Machine") -> list[Any]:
        """Its lines."""
        return self.text.splitlines(keepends=True)


def text_at(machine: "Machine", path: Any) -> str | None:
    """What a file of the tree says; None of one that is not there, that the test has written, or of which no one knows.

    Only of a path from the root of the tree, which those beside a module's own file are.
    """
    path = hard(path)
    path = path.known() if isinstance(path, Text) else path
    if not isinstance(path, str) or not path.startswith("/") or name_of_file(path) in machine.written:
        return None
    text = machine.sources.data(posixpath.normpath(path[1:]), machine.working or machine.current[0])
    return text if text is not None and len(text) <= _LONGEST else None


def opened(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`open(path, "w")`, or `open(path)` of a file of the tree."""
    mode = hard(kwargs.get("mode", args[1] if len(args) > 1 else "r"))
    path = args[0] if args else kwargs.get("file", UNKNOWN)
    if mode not in _READING:
        return opened_to_write(machine, path, mode)
    text = text_at(machine, path)
    return UNKNOWN if text is None else Source("", text)


def of_path(machine: "Machine", path: Text, name: str) -> Any:
    """A method of a path that reads or writes the file; MISSING for others."""
    if name == "open":
        return Native(name, lambda args, kwargs: opened(machine, [path, *args], kwargs))
    if name in ("read_text", "read_bytes"):
        text = text_at(machine, path)
        return MISSING if text is None else Native(name, lambda _args, _kwargs: text)
    if name in _SAID and text_at(machine, path) is not None:
        return Native(name, lambda _args, _kwargs: True)
    return writing(machine, path, name)


def _read_as(parse: Callable[[str], Any], *, is_open: bool) -> Function:
    """What a text, or an open file, says in some format."""

    def called(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
        given = hard(args[0]) if len(args) == 1 else None
        text = (given.text if isinstance(given, Source) else None) if is_open else given
        if not isinstance(text, str):
            return UNKNOWN
        try:
            return parse(text)
        except (ValueError, RecursionError):
            return UNKNOWN

    return called


def _text_file(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`io.StringIO(text)`."""
    text = hard(args[0]) if args else UNKNOWN
    return Source("", text) if isinstance(text, str) and text else Unknown("io.StringIO()")


def _rows(read: Callable[..., Any]) -> Function:
    """`csv.reader`, or `csv.DictReader`, of an open file or of lines."""

    def called(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
        lines = machine.items_of(args[0]) if args else None
        more = [hard(each) for each in args[1:]]
        named = {name: hard(each) for name, each in kwargs.items()}
        if lines is None or not is_plain([lines, more, named]):
            return UNKNOWN
        try:
            return list(read(lines, *more, **named))
        except (csv.Error, TypeError, ValueError):
            return UNKNOWN

    return called


DATA_FILES: Final[dict[str, Function]] = {
    "json.load": _read_as(json.loads, is_open=True), "json.loads": _read_as(json.loads, is_open=False),
    "csv.reader": _rows(csv.reader), "csv.DictReader": _rows(csv.DictReader), "io.StringIO": _text_file,
    "tomllib.load": _read_as(tomllib.loads, is_open=True), "tomllib.loads": _read_as(tomllib.loads, is_open=False),
}  # fmt: skip
