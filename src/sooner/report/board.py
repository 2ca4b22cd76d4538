"""The live board: on a terminal, one row a device, above it the verdicts that matter."""

import time
from collections.abc import Iterable
from typing import Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sooner.model.devices import Device
from sooner.model.events import Event, Finished, RunStarted, Started, Verdict
from sooner.model.outcomes import Outcome
from sooner.report.progress import Progress
from sooner.report.wording import seconds, unit_label

_REFRESH_PER_S = 4
_MOST_ROWS = 32


class Board:
    """Shows what runs where; a listener of events and a context manager."""

    def __init__(self, stream: TextIO, devices: Iterable[Device]) -> None:
        self._devices = tuple(devices)
        self._labels = {device.id: device.label for device in self._devices}
        self._console = Console(file=stream, highlight=False)
        self._lines = Progress(stream, self._devices, colour=self._console.color_system is not None)
        self._on: dict[str, tuple[Started, float]] = {}
        """What runs on a device, and since when by the monotonic clock."""
        self._total = 0
        self._counts: dict[Outcome, int] = {}
        self._live = Live(console=self._console, refresh_per_second=_REFRESH_PER_S, get_renderable=self._table)

    def __enter__(self) -> Self:
        """Begin to draw."""
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the terminal as it was."""
        self._live.update(Text(""), refresh=False)
        self._live.transient = True
        self._live.stop()

    def __call__(self, event: Event) -> None:
        """Take an event in."""
        line = self._lines.line(event)
        match event:
            case RunStarted():
                self._total = event.units
            case Started():
                for device in event.devices or ("host",):
                    self._on[device] = (event, time.monotonic())
                return
            case Finished():
                for device in [d for d, (started, _) in self._on.items() if started.unit == event.unit]:
                    del self._on[device]
            case Verdict():
                self._counts[event.outcome] = self._counts.get(event.outcome, 0) + 1
                if event.outcome is Outcome.PASSED and not event.flaky:
                    return
            case _:
                pass
        if line:
            self._live.console.print(Text.from_ansi(line))

    def _table(self) -> Table:
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(no_wrap=True)
        table.add_column(justify="right", no_wrap=True)
        table.add_column()  # may wrap, so it alone is narrowed; its names do not
        now = time.monotonic()
        for device in self._devices[:_MOST_ROWS]:
            on = self._on.get(device.id)
            if on is None:
                table.add_row(device.label, "", Text("idle", style="dim"))
            else:
                started, since = on
                name = Text(unit_label(started.unit, started.variant), no_wrap=True, overflow="ellipsis")
                table.add_row(device.label, seconds(now - since), name)
        table.add_row("", "", self._status())
        return table

    def _status(self) -> Text:
        done = sum(self._counts.values())
        passed = self._counts.get(Outcome.PASSED, 0)
        text = Text(f"{done}/{self._total} done, {passed} passed")
        if done > passed:
            text.append(f", {done - passed} not", style="red")
        return text
