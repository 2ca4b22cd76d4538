"""Placeholders of commands: what is only known when a unit starts.

Filled are exactly `{junit}`, `{log_dir}`, `{devices}` and `{port}`; any other brace belongs to the command
(`${HOME}`, awk's `{print}`, a JSON argument) and stays. `{{port}}` is the text `{port}`.
"""

import re
from collections.abc import Mapping
from typing import Final

PLACEHOLDERS: Final = ("junit", "log_dir", "devices", "port")
_PLACEHOLDER: Final = re.compile(r"(?<!\$)(\{)?\{(" + "|".join(PLACEHOLDERS) + r")\}(?(1)\})")


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace the placeholders for which there is a value; `${port}` is the shell's and stays.

    What is filled in is not looked at again.
    """
    return _PLACEHOLDER.sub(lambda match: _filled(match, values), text)


def _filled(match: re.Match[str], values: Mapping[str, str]) -> str:
    return match.group()[1:-1] if match[1] else values.get(match[2], match.group())


def kept(text: str) -> str:
    """The text, written so that `fill` gives it back as it is."""
    return _PLACEHOLDER.sub(lambda match: f"{{{match.group()}}}", text)


def uses(text: str, placeholder: str) -> bool:
    """Whether the text holds this placeholder."""
    return any(match[2] == placeholder and not match[1] for match in _PLACEHOLDER.finditer(text))
