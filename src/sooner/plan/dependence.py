"""Where the logic of a script depends on the result of a call that was recorded instead of run.

A recorded call ends at once with 0. Most scripts only collect failures (`|| test_fail x`), which sooner
does itself; some branch on the result or read the output. Each such place gets one sentence that says what
happened there.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from sooner.model.units import UnitKey
from sooner.plan.invocations import Invocation
from sooner.plan.shell_text import LogicalLine, logical_lines

_LIKE_A_RUN: Final = re.compile(
    r"(?:\w+=\S*\s+)*(?:\b(?:coverage|uv|poetry|hatch|tox|nox)\s+run\b[^|;&]*\bpytest\b|(?<![\w./=-])(?:pytest|torchrun)\s+[\w./$\"{-])"
)
_RUNNER: Final = re.compile(r"(?<![\w./-])(?:py\.?test|torchrun)(?![\w./=-])|-m\s*torch\.distributed\.(?:run|launch)\b")
_BY_PATH: Final = re.compile(
    r"(?:^|[\s;&|(])(\S*/(?:py\.?test|torchrun)|\S*/python[0-9.]*(?=\s+(?:-\w+\s+)*-m\s*(?:pytest|torch\.distributed)))"
    r"(?=\s|$)"
)
_LONGEST_QUOTE: Final = 40

_OR: Final = re.compile(r"\|\|\s*(?P<said>[^;|&\n]*)")
_AND: Final = re.compile(r"&&\s*(?P<said>[^;|&\n]*)")
_PIPE: Final = re.compile(r"(?<![|>])\|(?!\|)&?\s*(?P<said>[^;|&\n]*)")
_CONDITION: Final = re.compile(r"(?:^|[;&|({]|\b(?:then|do|else)\b)\s*(?P<said>if|elif|while|until)\b")
_NOT: Final = re.compile(r"(?:^|[;&|({]|\b(?:if|elif|while|until|then|do|else)\b)\s*(?P<said>!)\s")
_CAPTURED: Final = re.compile(r"(?P<said>\$\(|`)")
_STATUS_QUOTED: Final = re.compile(r"\$\?|\bPIPESTATUS\b")
_ERREXIT: Final = re.compile(r"(?:^|[;&|]\s*)set\s+(?:-[a-zA-Z]*e[a-zA-Z]*\b|(?:-\w+\s+)*-o\s+errexit)")
_ERREXIT_OFF: Final = re.compile(r"(?:^|[;&|]\s*)set\s+(?:\+[a-zA-Z]*e|\+o\s+errexit)")
_SHEBANG_ERREXIT: Final = re.compile(r"#!\S*sh\s+-[a-z]*e")

_PASSED: Final = "it was recorded, not run, and counts as passed there"
_SILENT: Final = "it was recorded, not run, so there was none"
_OURS: Final = "sooner itself reports the failure and sets the exit code"


def dependence_notes(
    script_text: str, invocations: Sequence[Invocation], *, keys: Sequence[UnitKey] = (), source: str = ""
) -> tuple[str, ...]:
    """One sentence for each place where the script's own logic depends on a recorded result.

    Args:
        script_text: The script.
        invocations: What was recorded from it.
        keys: Identities of the invocations (`keys_of`); without them a line is said to run "a test".
        source: The script's path, for the places.
    """
    path = source or next((call.script for call in invocations if call.script), "script")
    lines = logical_lines(script_text)
    recorded = _recorded(lines, invocations, keys, path)
    words = _words(lines, invocations, path)
    notes = [
        note
        for index, who in recorded.items()
        for note in _notes_of(lines, index, _call_start(lines[index], words.get(index, "")), who=who, path=path)
    ]
    strict = _errexit(script_text, lines, recorded, path)
    return (*strict, *notes, *_by_path(lines, recorded, path), *_unseen(lines, recorded, path))


def _recorded(
    lines: Sequence[LogicalLine], invocations: Sequence[Invocation], keys: Sequence[UnitKey], path: str
) -> dict[int, str]:
    """Who was recorded on which logical line, by its index; off the text where no call knows its line."""
    if not any(call.line for call in invocations):
        return {i: "a recorded call" for i, line in enumerate(lines) if invocations and _RUNNER.search(line.bare)}
    by_line = _by_line(lines)
    names: defaultdict[int, dict[str, None]] = defaultdict(dict)
    for position, call in enumerate(invocations):
        for line, _ in _places(call, path):
            if line in by_line:
                names[by_line[line]][str(keys[position]) if keys else "a test"] = None
    return {index: _listed(list(names[index])) for index in sorted(names)}


def _words(lines: Sequence[LogicalLine], invocations: Sequence[Invocation], path: str) -> dict[int, str]:
    """The function through which a line made a recorded call, by the line's index."""
    by_line = _by_line(lines)
    return {by_line[line]: word for call in invocations for line, word in _places(call, path) if line in by_line}


def _by_line(lines: Sequence[LogicalLine]) -> dict[int, int]:
    return {number: index for index, line in enumerate(lines) for number in range(line.first, line.last + 1)}


def _places(call: Invocation, path: str) -> tuple[tuple[int, str], ...]:
    """The lines of this script that led to a call, outermost first; none where another script made it."""
    return call.places or (((call.line, ""),) if call.script in ("", path) else ())


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _notes_of(lines: Sequence[LogicalLine], index: int, start: int, *, who: str, path: str) -> list[str]:
    """What a line, and the first one after it, does with the result of the call that the line made."""
    line = lines[index]
    found = [
        (line, _OR.search(line.bare, start), f"depends on the result of {who}: {_PASSED}; {_OURS}"),
        (
            line,
            _AND.search(line.bare, start),
            f"runs after {who}: {_PASSED}, so this ran, before the test did",
        ),
        (line, _PIPE.search(line.bare, start), f"reads the output of {who}: {_SILENT}"),
        (line, _before(_CONDITION, line, start), f"branches on the result of {who}: {_PASSED}"),
        (line, _before(_NOT, line, start), f"negates the result of {who}: {_PASSED}"),
        (
            line,
            _open_substitution(line, start),
            f"takes the output of {who}: {_SILENT}",
        ),
        _status_after(lines, index, start, f"reads the exit code of {who}: {_PASSED}; {_OURS}"),
    ]
    return [f'{path}:{at.first}: "{_said(at, match)}" {what}' for at, match, what in found if match]


def _call_start(line: LogicalLine, word: str) -> int:
    """Where the call stands in its line: its program, or the function that hides it."""
    match = re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", line.bare) if word else None
    match = match or _RUNNER.search(line.bare) or re.search(r"pytest|torchrun|python", line.text)
    return match.start() if match else 0


def _before(pattern: re.Pattern[str], line: LogicalLine, start: int) -> re.Match[str] | None:
    """The last match before the call; behind it only the words of its own command may stand."""
    found = None
    for match in pattern.finditer(line.bare):
        if match.start() <= start and not re.search(r";|&&|\|\|", line.bare[match.end() : max(start, match.end())]):
            found = match
    return found


def _open_substitution(line: LogicalLine, start: int) -> re.Match[str] | None:
    """The `$(` or backquote that the call stands in; None where it is closed before it."""
    for match in _CAPTURED.finditer(line.bare, 0, start):
        between = line.bare[match.end() : start]
        closed = "`" in between if match.group() == "`" else between.count(")") > between.count("(")
        if not closed and (match.group() != "`" or line.bare[: match.start()].count("`") % 2 == 0):
            return match
    return None


def _status_after(
    lines: Sequence[LogicalLine], index: int, start: int, what: str
) -> tuple[LogicalLine, re.Match[str] | None, str]:
    """`$?` or PIPESTATUS behind the call on its line, else on the next line that is not empty."""
    line = lines[index]
    same = _STATUS_QUOTED.search(line.text, line.text.find(";", start)) if ";" in line.bare[start:] else None
    if same:
        return line, same, what
    following = next((line for line in lines[index + 1 :] if line.bare), None)
    if following is None:
        return line, None, what
    read = None if _single_quoted(following) else _STATUS_QUOTED.search(following.text)
    own = read is None or re.search(r";|&&|\|\|", following.bare[: read.start()])
    return following, None if own else read, what


def _single_quoted(line: LogicalLine) -> bool:
    """Whether every `$?` of the line stands in single quotes, where it means nothing."""
    return not any(line.text.count("'", 0, match.start()) % 2 == 0 for match in _STATUS_QUOTED.finditer(line.text))


def _said(line: LogicalLine, match: re.Match[str]) -> str:
    """The words of the script that a note is about, shortened."""
    end = len(match.group().rstrip())
    said = " ".join(line.text[match.start() : match.start() + max(end, 1)].split()).lstrip(";&|({ ") or match.group()
    operator = next((sign for sign in ("||", "&&", "|") if match.group().startswith(sign)), "")
    return _quoted(f"{operator} {said}".strip() if operator and not said.startswith(operator) else said)


def _quoted(words: str) -> str:
    return words if len(words) <= _LONGEST_QUOTE else words[: _LONGEST_QUOTE - 3] + "..."


def _errexit(script_text: str, lines: Sequence[LogicalLine], recorded: Mapping[int, str], path: str) -> list[str]:
    """A note where `set -e` is in effect at a recorded call: nothing of it stops the script now."""
    switched = 1 if _SHEBANG_ERREXIT.match(script_text) else 0
    for index, line in enumerate(lines):
        if index in recorded and switched:
            what = f"would end the script when {recorded[index]} fails: recorded calls count as passed"
            return [f'{path}:{switched}: "set -e" {what}, so all of them run; {_OURS}']
        if _ERREXIT.search(line.bare):
            switched = line.first
        elif _ERREXIT_OFF.search(line.bare):
            switched = 0
    return []


def _command(line: LogicalLine, match: re.Match[str]) -> str:
    """The command that a match begins, to its end."""
    return " ".join(re.split(r"[;&|]", line.text[match.start() :], maxsplit=1)[0].split())


def _unseen(lines: Sequence[LogicalLine], recorded: Mapping[int, str], path: str) -> list[str]:
    """Lines that read like a test run and were none: through another tool, under a PATH of their own, not reached."""
    return [
        f'{path}:{line.first}: "{_quoted(_command(line, match))}" was not recorded: it ran at once, or was not reached'
        for index, line in enumerate(lines)
        if index not in recorded and not _BY_PATH.search(line.bare) and (match := _LIKE_A_RUN.search(line.bare))
    ]


def _by_path(lines: Sequence[LogicalLine], recorded: Mapping[int, str], path: str) -> list[str]:
    """Calls that no shim can see, because they name their program by its path."""
    return [
        f'{path}:{line.first}: "{match.group(1)}" is called by its path: it ran at once and is no unit'
        for index, line in enumerate(lines)
        if index not in recorded and (match := _BY_PATH.search(line.bare))
    ]
