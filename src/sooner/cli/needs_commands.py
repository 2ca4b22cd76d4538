"""Which tests command lines run: the arguments of pytest, as far as the text alone tells."""

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Final, NamedTuple

EVERYTHING: Final = "."
"""What pytest without arguments runs: all that lies where it is started."""
_RUNS_NOTHING: Final = frozenset(
    {"--co", "--collect-only", "--version", "-V", "--help", "-h", "--fixtures", "--markers"}
)
_NO_CALL: Final = frozenset({"install", "uninstall", "add", "download", "echo", "printf", "which", "command", "brew"})
"""Words before `pytest` that say that it is not called there."""
_TAKES_PACKAGE: Final = frozenset({"--with", "--from", "--extra", "--group", "--only-group"})
_TAKES_VALUE: Final = ("-k", "-m", "-n", "-p", "-c", "-o", "-W", "-r", "--pyargs")
_WORD: Final = re.compile(r"[\w./*:\[\]-]+")
_COMPUTED: Final = re.compile(r"\$\{\{.*?\}\}")
_REDIRECTION: Final = re.compile(r"^(?:\d|&)?>")
_END: Final = re.compile(r"^[;&|()]+$")
_DEEPEST: Final = 3
"""Shells in shells."""


class Named(NamedTuple):
    """Tests as command lines name them."""

    paths: list[str]
    """Patterns; `EVERYTHING` is all."""
    unknown: list[str]
    """Words that stand for tests and are computed."""


def named_in(text: str, folder: str = "") -> Named:
    """The tests that a script runs with pytest, or with PyTorch's run_test.py.

    Args:
        text: Command lines.
        folder: Where they are run; it only matters for pytest without arguments.
    """
    named = Named([], [])
    _follow(_COMPUTED.sub("$_", text), folder, named, 0)
    return Named(list(dict.fromkeys(named.paths)), list(dict.fromkeys(named.unknown)))


def _follow(text: str, folder: str, named: Named, depth: int) -> None:
    for words in _commands(text):
        if words[0] == "cd" and len(words) == 2:  # noqa: PLR2004 - cd FOLDER
            folder = str(PurePosixPath(folder, words[1])) if "$" not in words[1] else ""
        for before, word in pairwise(words):
            if re.fullmatch(r"-\w*c", before) and any(each.isspace() for each in word) and depth < _DEEPEST:
                _follow(word, folder, named, depth + 1)
        _take(words, folder, named)


def _take(words: Sequence[str], folder: str, named: Named) -> None:
    for i, word in enumerate(words):
        name = word.rpartition("/")[2]
        if name in ("pytest", "py.test") and not _NO_CALL & set(words[:i]):
            if i and words[i - 1] in _TAKES_PACKAGE:
                continue
            _take_arguments(words[i + 1 :], folder, named)
            return
        if name == "run_test.py":
            rest = list(words[i + 1 :])
            chosen = rest[rest.index("--include") + 1 :] if "--include" in rest else []
            named.paths.extend(f"test/{each}" for each in chosen if _WORD.fullmatch(each))
            return


def _take_arguments(words: Sequence[str], folder: str, named: Named) -> None:
    if _RUNS_NOTHING & set(words):
        return
    found = list(_positional(words))
    known = [word.removeprefix("./").rstrip("/") or EVERYTHING for word in found if "$" not in word]
    named.unknown.extend(word for word in found if "$" in word)
    if not found:
        known = [EVERYTHING]
    # Nobody knows what an absolute folder is called in the tree; its last part is.
    where = (PurePosixPath(folder).name if folder.startswith("/") else folder.strip("/")).removeprefix("./")
    named.paths.extend(where or EVERYTHING if each == EVERYTHING else each for each in known)


def _positional(words: Sequence[str]) -> Iterator[str]:
    """Words that name tests: a value of an option is none, and a bare word behind a long option may be its value."""
    before = ""
    for word in words:
        is_value = before in _TAKES_VALUE or bool(_REDIRECTION.match(before))
        is_value |= before.startswith("--") and "=" not in before and "/" not in word
        before = word
        if not word.startswith("-") and not is_value and (_WORD.fullmatch(word) or "$" in word):
            yield word


def _commands(text: str) -> Iterator[list[str]]:
    """Simple commands, each as its words."""
    for line in text.replace("\\\n", " ").splitlines():
        command: list[str] = []
        for word in (*_words(line), ";"):
            if _END.match(word):
                if command:
                    yield command
                command = []
            else:
                command.append(word)


def _words(line: str) -> list[str]:
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()")
        lexer.whitespace_split = True
        return list(lexer)
    except ValueError:  # a quote that is closed on another line
        return [word.strip("\"'") for word in re.split(r"\s+|([;&|()]+)", line) if word and word.strip("\"'")]
