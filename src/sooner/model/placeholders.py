"""Placeholders of commands: what is only known when a unit starts.

Filled are exactly `{junit}`, `{log_dir}`, `{devices}` and `{port}`; any other brace belongs to the command
(`${HOME}`, awk's `{print}`, a JSON argument) and stays.
"""

import re
from collections.abc import Mapping
from typing import Final

PLACEHOLDERS: Final = ("junit", "log_dir", "devices", "port")
_PLACEHOLDER: Final = re.compile(r"(?<!\$)\{(" + "|".join(PLACEHOLDERS) + r")\}")


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace the placeholders for which there is a value; `${port}` is the shell's and stays.

    What is filled in is not looked at again.
    """
    return _PLACEHOLDER.sub(lambda match: values.get(match.group(1), match.group()), text)


def uses(text: str, placeholder: str) -> bool:
    """Whether the text holds this placeholder."""
    return any(match.group(1) == placeholder for match in _PLACEHOLDER.finditer(text))
