"""Progress as plain lines, one an event: for CI logs, pipes and dumb terminals."""

from collections.abc import Iterable, Mapping
from typing import TextIO

from sooner.model.devices import Device
from sooner.model.events import (
    DeviceChanged,
    Event,
    Finished,
    Interrupted,
    RunFinished,
    RunStarted,
    Started,
    Verdict,
)
from sooner.report.wording import counted, device_label, outcome_text, seconds, unit_label


class Progress:
    """Writes a line for what happens; a listener of events.

    Args:
        stream: Where lines go; each is flushed.
        devices: The devices of the run.
        colour: Whether outcomes are coloured.
    """

    def __init__(self, stream: TextIO, devices: Iterable[Device], *, colour: bool) -> None:
        self._stream = stream
        self._devices: Mapping[str, Device] = {device.id: device for device in devices}
        self._colour = colour
        self._total = 0
        self._done = 0

    def __call__(self, event: Event) -> None:
        """Write the line of an event, if it has one."""
        if line := self.line(event):
            self._stream.write(line + "\n")
            self._stream.flush()

    def line(self, event: Event) -> str:
        """The line of an event; empty where it needs none."""
        match event:
            case RunStarted():
                self._total, self._done = event.units, event.units - event.pending
                has = "has its verdict" if self._done == 1 else "have their verdicts"
                resumed = f", {self._done} {has} already" if self._done else ""
                return f">>> {counted(self._total, 'unit')} on {counted(len(event.devices), 'device')}{resumed}"
            case Started():
                again = f" (attempt {event.attempt})" if event.attempt > 1 else ""
                return f">>> Starting: {self._unit(event)} on {self._on(event)}{again}"
            case Finished() if event.retried:
                result = outcome_text(event.result.outcome, event.result.cause, colour=self._colour)
                return f">>> Finished: {self._unit(event)} on {self._on(event)}: {result}, trying again"
            case Finished():
                return ""
            case Verdict():
                return self._verdict(event)
            case DeviceChanged():
                reason = f": {event.reason}" if event.reason else ""
                return f">>> {self._device(event.device)} {event.state.replace('_', ' ')}{reason}"
            case Interrupted():
                return f">>> Interrupted ({event.reason}): ending what runs; once more ends it without grace"
            case RunFinished():
                return ""

    def _verdict(self, verdict: Verdict) -> str:
        self._done += 1
        count = f"[{self._done}/{self._total}]"
        result = outcome_text(verdict.outcome, verdict.cause, colour=self._colour)
        if not verdict.attempts:
            return f">>> Not started: {unit_label(verdict.unit, verdict.variant)}: {result} {count}"
        last = verdict.attempts[-1]
        flaky = ", flaky" if verdict.flaky else ", quarantined" if verdict.is_excused else ""
        leaked = (
            f"; ended {('1 process' if len(last.leaked) == 1 else f'{len(last.leaked)} processes')} that it left behind"
            if last.leaked
            else ""
        )
        where = device_label(last.devices, self._devices)
        name = unit_label(verdict.unit, verdict.variant)
        return f">>> Finished: {name} on {where}: {result}{flaky} in {seconds(verdict.duration_s)} {count}{leaked}"

    def _unit(self, event: Started | Finished) -> str:
        return unit_label(event.unit, event.variant)

    def _on(self, event: Started | Finished) -> str:
        return device_label(event.devices, self._devices)

    def _device(self, device: str) -> str:
        return device_label([device], self._devices)
