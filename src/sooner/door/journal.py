"""What became of each test's isolation: counted for `--reuse-stats`, a line a test for `--reuse-journal`."""

import json
from collections import Counter
from pathlib import Path
from typing import IO

import pytest
from msgspec import Struct

from sooner.door.widths import Widths


class Entry(Struct, frozen=True, kw_only=True):
    """One test."""

    nodeid: str
    worker: int
    level: str
    """`warm`, `fork` or `fresh`: where it was judged at last."""
    devices: int
    """How many it was given."""
    outcome: str
    restored: tuple[str, ...] = ()
    discard: str = ""
    pollution: bool = False
    """It failed beside others and passed by itself."""
    depends: bool = False
    """It failed by itself and passed after the tests of its file, with what they leave."""


class Journal:
    """Collects entries.

    Args:
        path: Where to write them as JSON lines; nowhere if empty.

    Raises:
        pytest.UsageError: It cannot be written there.
    """

    def __init__(self, path: str) -> None:
        self._file: IO[str] | None = None
        try:
            self._file = Path(path).open("w", encoding="utf-8") if path else None  # noqa: SIM115 - closed by `close`
        except OSError as error:
            raise pytest.UsageError(f"--reuse-journal {path} cannot be written: {error.strerror}") from None
        self._levels: Counter[str] = Counter()
        self._restored: Counter[str] = Counter()
        self._discards: Counter[str] = Counter()
        self.workers = 0
        self.widths: Widths | None = None
        self.judged_again = 0
        self.pollution: list[str] = []
        self.depends: list[str] = []

    def add(self, entry: Entry) -> None:
        """Count one test."""
        self._levels[entry.level] += 1
        self._restored.update(entry.restored)
        if entry.discard:
            self._discards[entry.discard.split(":")[0]] += 1
        if entry.pollution:
            self.pollution.append(entry.nodeid)
        if entry.depends:
            self.depends.append(entry.nodeid)
        if self._file is not None:
            fields = {name: getattr(entry, name) for name in entry.__struct_fields__}
            self._file.write(json.dumps(fields) + "\n")

    def close(self) -> None:
        """Finish the file."""
        if self._file is not None:
            self._file.close()

    def show(self, terminal: "pytest.TerminalReporter", *, statistics: bool) -> None:
        """Say what people must know, and with `statistics` what they may want to know."""
        missing = self.widths.missing if self.widths is not None else 0
        if self.pollution or self.depends or missing or statistics:
            terminal.section("reuse")
        for nodeid in self.pollution:
            terminal.line(f"pollution: {nodeid} failed beside other tests and passed by itself")
        if self.pollution:
            terminal.line("`sooner bisect-pollution` finds the tests that it does not go with")
        for nodeid in self.depends:
            terminal.line(f"order: {nodeid} fails by itself and passes with what earlier tests of its file leave")
        if missing:
            files = f"{missing} files" if missing > 1 else "a file"
            terminal.line(
                f"needs: there was no time to read {files}, whose tests had one device each: `sooner needs` does it"
            )
        if statistics:
            self._show_statistics(terminal)

    def _show_statistics(self, terminal: "pytest.TerminalReporter") -> None:
        if self.widths is not None and self.widths.wide:
            terminal.line(f"needs: {self.widths.wide} tests without a mark were given more than one device")
        levels = ", ".join(f"{count} {level}" for level, count in self._levels.most_common())
        terminal.line(f"tests: {levels or 'none'}; workers: {self.workers}; judged again: {self.judged_again}")
        for title, counts in (("restored", self._restored), ("workers discarded", self._discards)):
            shown = ", ".join(f"{name} ({count})" for name, count in counts.most_common())
            terminal.line(f"{title}: {shown or 'none'}")
