"""The quarantine: tests that run as always and fail no run, because they are known to be flaky. Text in, text out.

Version 1, TOML: `version = 1`, a `[[test]]` for each test or unit, a `[[job]]` for each job of a CI system. Who enters
and who leaves is decided in `sooner.analysis.trunk.quarantine`; what it excuses, where a run is judged.
"""

import json
import tomllib
from collections.abc import Iterator, Sequence
from datetime import date
from difflib import get_close_matches
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import fields

from sooner.model.errors import SoonerError
from sooner.model.text import one_line, printable_or_replaced

VERSION: Final = 1
"""Of the file; a newer one is refused."""
STABLE_RUNS: Final = 50
"""Runs in a row that must pass before an entry leaves that does not say how many."""
_TABLES: Final = ("test", "job")
_HEAD: Final = """\
# Quarantine of `sooner`: what stands here runs as always, is reported, and fails no run.
#
# Read by `sooner run --quarantine FILE` and `pytest --gpus=... --quarantine FILE`. Written by
# `sooner trunk flaky --write FILE`; with `--check` entries leave that have been stable: `stable_runs` runs in a row
# that passed, since they entered. A `reason` written by hand is kept, and so is an entry that the history knows
# nothing of. Comments are not.
"""


class QuarantineError(SoonerError):
    """A quarantine file that cannot be used."""


Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0)]


class Entry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One test, unit or job that is known to be flaky."""

    id: str
    """Node id of a test, name of a unit or job."""
    variant: str = ""
    """Of a unit; empty is every variant."""
    since: date | None = None
    """The day on which it entered."""
    rate: Share | None = None
    """Share of its runs on sound code that failed, when it entered."""
    low: Share | None = None
    high: Share | None = None
    """Ends of the interval of 95 %."""
    failures: Count = 0
    runs: Count = 0
    stable_runs: int = STABLE_RUNS
    """It leaves after so many runs in a row that passed."""
    evidence: tuple[str, ...] = ()
    """Commits on which it both passed and failed."""
    reason: str = ""


class Quarantine(Struct, frozen=True, kw_only=True):
    """What a file holds."""

    tests: tuple[Entry, ...] = ()
    jobs: tuple[Entry, ...] = ()


class Excuses:
    """Finds entries by what runs.

    Args:
        quarantine: Its tests are looked at.
    """

    def __init__(self, quarantine: Quarantine) -> None:
        self.entries = quarantine.tests
        self._by_id: dict[str, list[Entry]] = {}
        self._by_path: dict[str, list[Entry]] = {}
        self._seen: set[Entry] = set()
        for entry in self.entries:
            self._by_id.setdefault(entry.id, []).append(entry)
            self._by_path.setdefault(_dotted(entry.id), []).append(entry)

    def __bool__(self) -> bool:
        return bool(self.entries)

    def holds_unit(self, name: str, variant: str) -> bool:
        """Whether a unit is in quarantine, in this variant."""
        return self._find(self._by_id.get(name, ()), variant)

    def holds_test(self, node_id: str, variant: str = "") -> bool:
        """Whether a test is: by its node id, or by that of the function whose parameters it is run with.

        JUnit's dotted class names are understood: `tests.test_a.TestB::test_c` is `tests/test_a.py::TestB::test_c`.
        """
        path = _dotted(node_id)
        found = [*self._by_path.get(path, ()), *self._by_path.get(path.partition("[")[0], ())]
        return self._find(found, variant)

    def _find(self, found: Sequence[Entry], variant: str) -> bool:
        fitting = [entry for entry in found if entry.variant in ("", variant)]
        self._seen.update(fitting)
        return bool(fitting)

    def unknown(self) -> list[Entry]:
        """Entries that nothing was found for so far."""
        return [entry for entry in self.entries if entry not in self._seen]


def _dotted(node_id: str) -> str:
    head, bracket, rest = node_id.partition("[")
    return head.replace(".py::", "::").replace("/", ".").replace("::", ".") + bracket + rest


def unknown_note(entries: Sequence[Entry], source: str) -> str:
    """What to say of entries that this run has nothing of; empty where there are none."""
    if not entries:
        return ""
    most = 5
    named = ", ".join(one_line(entry.id) for entry in entries[:most])
    more = f" and {len(entries) - most} more" if len(entries) > most else ""
    return f"{source} also names what this run does not have: {named}{more}"


def read_quarantine(text: str, *, source: str) -> Quarantine:
    """Read a file.

    Raises:
        QuarantineError: It is broken: where, why, and what is allowed.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise QuarantineError(f"{source} is no TOML: {error}") from None
    version = document.pop("version", None)
    if version != VERSION or isinstance(version, bool):
        newer = isinstance(version, int) and version > VERSION
        hint = "a newer sooner wrote it: update this one" if newer else f"write `version = {VERSION}` at its top"
        raise QuarantineError(f"{source}: version {version!r} is not known ({hint})")
    for table in document:
        if table not in _TABLES:
            raise QuarantineError(f"{source}: {table!r} is unknown: there are [[test]] and [[job]]")
    return Quarantine(
        tests=tuple(_entries(document, "test", source)),
        jobs=tuple(_entries(document, "job", source)),
    )


def _entries(document: dict[str, Any], table: str, source: str) -> Iterator[Entry]:
    rows = document.get(table, [])
    if not isinstance(rows, list):
        raise QuarantineError(f"{source}: write [[{table}]], with two brackets")
    known = [field.name for field in fields(Entry)]
    for number, row in enumerate(rows, 1):
        place = f"{source}: {table} {number}"
        for key in row if isinstance(row, dict) else ():
            if key not in known:
                near = get_close_matches(key, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
                raise QuarantineError(f"{place}: {key!r} is unknown: {hint}")
        try:
            entry = msgspec.convert(row, Entry)
        except msgspec.ValidationError as error:
            raise QuarantineError(f"{place}: {error}") from None
        if not entry.id or entry.stable_runs < 1:
            raise QuarantineError(f"{place}: {'id is empty' if not entry.id else 'stable_runs must be at least 1'}")
        yield entry


def quarantine_text(quarantine: Quarantine) -> str:
    """Spell a quarantine as a file, with comments for people; read back it is the same."""
    parts = [_HEAD, f"version = {VERSION}\n"]
    for table, entries in (("test", quarantine.tests), ("job", quarantine.jobs)):
        parts += [_entry_text(table, entry) for entry in entries]
    return "\n".join(parts)


def _entry_text(table: str, entry: Entry) -> str:
    lines = [f"[[{table}]]", f"id = {_quoted(entry.id)}"]
    if entry.variant:
        lines.append(f"variant = {_quoted(entry.variant)}")
    if entry.since:
        lines.append(f"since = {entry.since.isoformat()}")
    for name, share in (("rate", entry.rate), ("low", entry.low), ("high", entry.high)):
        if share is not None:
            lines.append(f"{name} = {share!r}")
    if entry.runs:
        lines.append(f"failures = {entry.failures}  # flakes")
        lines.append(f"runs = {entry.runs}  # on sound code")
    lines.append(f"stable_runs = {entry.stable_runs}  # it leaves after so many runs in a row that passed")
    if entry.evidence:
        shas = "".join(f"    {_quoted(sha)},\n" for sha in entry.evidence)
        lines.append(f"evidence = [  # commits on which it both passed and failed\n{shas}]")
    if entry.reason:
        lines.append(f"reason = {_quoted(entry.reason)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A TOML basic string; JSON's escapes are TOML's, but for DEL."""
    return json.dumps(printable_or_replaced(text), ensure_ascii=False).replace("\x7f", "\\u007f")
