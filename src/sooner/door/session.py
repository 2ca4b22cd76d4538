"""The controlling pytest: takes the place of its loop over items, and says at the end what reuse did."""

import atexit
import contextlib
import gc
import os
import sys
from typing import Any, Final

import pytest

from sooner.door.devices import lease_all, session_devices
from sooner.door.durations import Durations
from sooner.door.journal import Journal
from sooner.door.loop import Loop
from sooner.door.quarantine import Quarantined
from sooner.door.record import Record
from sooner.model.devices import Device

_WHILE_COLLECTING: Final = (50_000, 20, 100)
"""Thresholds of the garbage collector while items pile up that all stay: the usual ones look at them for nothing."""

_IN_ONE_PROCESS: Final = ("usepdb", "trace", "update_snapshots", "snapshot_update", "inline_snapshot")
"""Options with which pytest's own loop runs: a debugger needs the terminal; and what tests found, syrupy, snapshottest
and inline-snapshot write when the session finishes, which it does in the controlling process alone."""
_OFF: Final = (None, False, "", "disable")


class Door:
    """Replaces pytest's loop over items by workers on devices."""

    def __init__(self, config: pytest.Config) -> None:
        _refuse_rivals(config)
        self._config = config
        self._devices: tuple[Device, ...] = session_devices(config.option.gpus)
        self._journal = Journal(config.option.reuse_journal or "")
        self._record = Record(config.option.history, config.rootpath)
        self._quarantined = Quarantined(config.option.quarantine)
        self._thresholds = gc.get_threshold()
        gc.set_threshold(*_WHILE_COLLECTING)

    def pytest_report_header(self) -> str:
        """Say where tests run."""
        word = "device" if len(self._devices) == 1 else "devices"
        return f"sooner: {len(self._devices)} {word} ({', '.join(device.id for device in self._devices[:8])})"

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """What was collected stays to the end: the exit need not free it."""
        gc.set_threshold(*self._thresholds)
        atexit.register(_freeze_or_thaw)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run everything that was collected; as pytest's own loop does, but on all devices."""
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            errors = f"{session.testsfailed} error{'s'[: session.testsfailed != 1]}"
            raise session.Interrupted(f"{errors} during collection")
        if session.config.option.collectonly:
            return True
        if any(session.config.getoption(name, None) not in _OFF for name in _IN_ONE_PROCESS):
            return None
        self._record.prepare()
        _make_temporary_folder(session)
        durations = Durations(session.config)
        terminal: Any = session.config.pluginmanager.getplugin("terminalreporter")
        tell = (lambda text: terminal.write_line(f"sooner: {text}")) if terminal is not None else (lambda _: None)
        gc.freeze()  # no collection of garbage need look at what was collected
        with contextlib.closing(lease_all(self._devices, holder=f"pytest-{os.getpid()}", tell=tell)):
            try:
                loop = Loop(
                    session, self._devices, self._journal, durations, self._record, quarantined=self._quarantined
                )
                if (server := loop.run()) is not None:
                    server.run()
            finally:
                gc.unfreeze()  # plugins that finish the session find what refers to what, as ever
                durations.save()
                self._journal.close()
        return True

    def pytest_unconfigure(self) -> None:
        """Write the record once everything that people wait for is said."""
        gc.set_threshold(*self._thresholds)
        self._record.write()

    def pytest_terminal_summary(self, terminalreporter: "pytest.TerminalReporter") -> None:
        """Say which tests did not go together, and what failed in quarantine."""
        self._quarantined.show(terminalreporter)
        self._journal.show(terminalreporter, statistics=self._config.option.reuse_stats)


def _refuse_rivals(config: pytest.Config) -> None:
    if getattr(config.option, "numprocesses", None) or getattr(config.option, "tx", None):
        raise pytest.UsageError("--gpus schedules by itself: leave -n (pytest-xdist) out")


def _freeze_or_thaw() -> None:
    """At the exit: leave what is there to the system. Modules made with nanobind would call that leaked."""
    modules = [one for one in sys.modules.values() if str(getattr(one, "__file__", "")).endswith(".so")]
    if any(type(value).__module__ == "nanobind" for one in modules for value in list(vars(one).values())):
        gc.unfreeze()
    else:
        gc.freeze()


def _make_temporary_folder(session: pytest.Session) -> None:
    """Make the folder of `tmp_path` once: workers would each make one, or remove each other's `--basetemp`."""
    if any("tmp_path_factory" in getattr(item, "fixturenames", ()) for item in session.items):
        factory = getattr(session.config, "_tmp_path_factory", None)
        if factory is not None:
            factory.getbasetemp()
