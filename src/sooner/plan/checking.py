"""Checks of single values of a plan: each returns what is wrong with the value, or nothing.

A check says the problem; the reader of the plan adds the place. What to do instead is `hint_for(key)`.
"""

import difflib
import math
import re
from collections.abc import Iterable
from typing import Any, Final

_VARIABLE: Final = re.compile(r"[^=\x00]+")

_MOST_PORTS: Final = 9000
"""So many lie in the range from which ports are leased (`sooner.run.ports`)."""

_HINTS: Final = {
    "command": 'a list of strings, for instance ["pytest", "tests/test_a.py"]',
    "run": 'a shell line, for instance "cd build && ./test"',
    "env": 'a table of strings, for instance { DEBUG = "1" }',
    "after": 'a list of names of units, for instance ["build"]',
}

_WORDS_OF_OTHERS: Final = {
    **dict.fromkeys(("gpu", "gpus", "num_gpus", "num_devices", "nproc", "accelerators"), "devices"),
    **dict.fromkeys(("cmd", "script", "exec", "argv", "args"), "command"),
    **dict.fromkeys(("needs", "depends", "depends_on", "dependencies", "requires"), "after"),
    **dict.fromkeys(("dir", "directory", "workdir", "working_dir", "working_directory"), "cwd"),
    **dict.fromkeys(("mem", "ram", "mem_mib"), "memory_mib"),
    "timeout_minutes": "timeout_s",
}
"""What CI systems, build tools and test runners call the keys of a unit."""


def nearest(key: str, known: Iterable[str]) -> str:
    """A hint that names the known key nearest to this one, or all of them where none is near."""
    candidates = sorted(known)
    if (ours := _WORDS_OF_OTHERS.get(key)) in candidates:
        return f"did you mean {ours!r}?"
    close = difflib.get_close_matches(key, candidates, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    shown = candidates if len(candidates) <= 20 else [*candidates[:20], "..."]  # noqa: PLR2004 - two lines of names
    return f"known: {', '.join(shown)}"


def hint_for(key: str) -> str:
    """What a value of this key looks like; empty where the problem says it all."""
    return _HINTS.get(key, "")


def name(value: Any) -> str:
    """A name is text on one line; `|` separates it from the variant."""
    if problem := text(value):
        return problem
    if not value.strip():
        return "must not be empty"
    return "must not hold '|' or a line break" if re.search(r"[|\r\n]", value) else ""


def text(value: Any) -> str:
    """Text that can be handed to another process."""
    if not isinstance(value, str):
        return f"must be a string, not {_kind(value)}"
    return "must not hold a NUL character" if "\0" in value else ""


def shell_line(value: Any) -> str:
    """A line for the shell."""
    return text(value) or ("" if value.strip() else "must not be empty")


def command(value: Any) -> str:
    """An argument vector: a program, then its arguments."""
    if not isinstance(value, list):
        return f"must be a list of strings, not {_kind(value)}"
    if not value or value[0] == "":
        return "must not be empty"
    return next((f"item {index} {problem}" for index, item in enumerate(value) if (problem := text(item))), "")


def names(value: Any) -> str:
    """A list of names."""
    if not isinstance(value, list):
        return f"must be a list of names, not {_kind(value)}"
    return next((f"item {index} {problem}" for index, item in enumerate(value) if (problem := text(item))), "")


def environment(value: Any) -> str:
    """A table of variables; whole numbers are taken as their digits, nothing else is guessed."""
    if not isinstance(value, dict):
        return f"must be a table of strings, not {_kind(value)}"
    for variable, setting in value.items():
        if not _VARIABLE.fullmatch(variable):
            return f"{variable!r} cannot be the name of a variable"
        if isinstance(setting, bool | float) or not isinstance(setting, str | int):
            return f"{variable} must be a string or a whole number, not {_kind(setting)}"
        if isinstance(setting, str) and "\0" in setting:
            return f"{variable} must not hold a NUL character"
    return ""


def count(value: Any) -> str:
    """A whole number that is not negative."""
    return whole_number(value) or ("" if value >= 0 else f"must not be negative, but is {value}")


def ports(value: Any) -> str:
    """A number of ports that a machine can lease at most."""
    return count(value) or ("" if value <= _MOST_PORTS else f"must be at most {_MOST_PORTS}, but is {value}")


def whole_number(value: Any) -> str:
    """A whole number of either sign."""
    if isinstance(value, int) and not isinstance(value, bool):
        return ""
    return f"must be a whole number, not {_kind(value)}"


def seconds(value: Any) -> str:
    """A finite number that is not negative."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return f"must be a number of seconds, not {_kind(value)}"
    if not math.isfinite(value):
        return "must be finite; 0 is no limit"
    return "" if value >= 0 else f"must not be negative, but is {value}"


def truth(value: Any) -> str:
    """True or false."""
    return "" if isinstance(value, bool) else f"must be true or false, not {_kind(value)}"


def _kind(value: Any) -> str:
    """What TOML calls the type of a value."""
    kinds = {
        bool: "a boolean",
        int: "a whole number",
        float: "a float",
        str: "a string",
        list: "an array",
        dict: "a table",
    }
    return kinds.get(type(value), "a date or time")
