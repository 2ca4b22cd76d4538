"""Shell scripts that a test runs: their commands, with the variables put in that are known. Pure text.

A shell is not evaluated: what stands under `if` or `case` may not be run, and is only counted.
"""

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

_ARRAY: Final = re.compile(r"^([ \t]*(?:export |declare -a |local )?\w+)=\(([^()]*)\)", re.MULTILINE)
_ASSIGNED: Final = re.compile(r"(\w+)=(.*)", re.DOTALL)
_COUNTED: Final = re.compile(
    r"""\$\(\s*nvidia-smi\b[^()|]*\|\s*wc\s+-l\s*\)|\$\(\s*python3?\s+-c\s+(["'])[^"']*\bdevice_count\(\)[^"']*\1\s*\)"""
)
_VARIABLE: Final = re.compile(r"\$\{(\w+|@)(?:\[[@*]\])?(?::?-([^{}]*))?\}|\$(\w+|@)")
_OPENS: Final = ("if", "case")
_CLOSES: Final = ("fi", "esac")
_WORDS_BEFORE: Final = ("then", "else", "do", "{", "!", "exec", "time", "export", "local", "readonly")
_BETWEEN: Final = re.compile(r"""("(?:\\.|[^"\\])*"|'[^']*'|;;)|(?:&&|\|\||;)""")
_ENDS: Final = frozenset(";&|()")
_MOST_NESTED: Final = 8
_LONGEST_LINE: Final = 4_000
_LONGEST_VALUE: Final = 1_000


class Command(NamedTuple):
    """A command of a script: its words, the variables before it, and whether it stands under a condition."""

    words: list[str]
    environment: dict[str, str]
    is_conditional: bool


def commands(text: str, variables: Mapping[str, str], devices: Callable[[], int]) -> list[Command]:
    """The commands of a script in their order; what is known is put in for variables, others stay as they are written.

    Args:
        text: The script.
        variables: Those of the environment, and `1`, `2`, ... and `@` for what the script is given.
        devices: Says how many devices there are, where the script counts them (`nvidia-smi -L | wc -l`).
    """
    known = dict(variables)
    found: list[Command] = []
    depth = 0
    for line in _lines(text):
        for words in _split(_expanded(line, known, devices)):
            while words and words[0] in _WORDS_BEFORE:
                words.pop(0)
            first = words[0] if words else ""
            depth += (first in _OPENS) - (first in _CLOSES)
            before = _assignments(words)
            if words[len(before) :]:
                found.append(Command(words[len(before) :], before, depth > 0))
            else:
                known |= {name: value for name, value in before.items() if depth <= 0 or name not in known}
    return found


def _lines(text: str) -> list[str]:
    text = re.sub(r"(?m)(?:^|(?<=\s))#.*$", "", text.replace("\\\n", " "))
    text = _BETWEEN.sub(lambda found: found[1] or "\n", _ARRAY.sub(_as_text, text))
    return [each for each in text.splitlines() if each.strip()]


def _as_text(array: re.Match[str]) -> str:
    """An array of words as a variable that is a text of them."""
    return f'{array[1]}="{" ".join(array[2].split()).replace(chr(34), "")}"'


def _expanded(line: str, known: Mapping[str, str], devices: Callable[[], int]) -> str:
    line = _COUNTED.sub(lambda _found: str(devices()), line)
    for _ in range(_MOST_NESTED):  # a default may name another variable, and a value too
        line, before = _VARIABLE.sub(lambda found: _value(found, known), line), line
        if line == before or len(line) > _LONGEST_LINE:
            break
    return line


def _value(found: re.Match[str], known: Mapping[str, str]) -> str:
    name = found[1] or found[3]
    default = found[2] if found[2] is not None else found[0]
    value = known.get(name) or default
    return value if len(value) <= _LONGEST_VALUE else found[0]


def _split(line: str) -> list[list[str]]:
    """A line's commands, as words."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="".join(sorted(_ENDS)))
    lexer.whitespace_split, lexer.commenters = True, ""
    found: list[list[str]] = [[]]
    try:
        for word in lexer:
            if set(word) <= _ENDS:
                found.append([])
            else:
                found[-1].append(word)
    except ValueError:  # a text that goes on in the next line
        return []
    return [each for each in found if each]


def _assignments(words: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        assigned = _ASSIGNED.fullmatch(word)
        if assigned is None or assigned[1] in found:
            break
        found[assigned[1]] = assigned[2]
    return found
