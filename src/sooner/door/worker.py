"""A worker: a fork of the controlling pytest, after collection, that runs items and sends their reports.

It has every module imported and every item collected already. Hooks that run tests are called here, hooks that report
them (`pytest_runtest_log...`) only in the controlling pytest, so that reporting plugins see each test once.
"""

import os
import signal
import socket
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest

from sooner.door.channel import Receiver, send
from sooner.run.supervision import kernel

_REPORTING: Final = ("pytest_runtest_logstart", "pytest_runtest_logreport", "pytest_runtest_logfinish")


class _Boundary:
    """Stands for "some item that comes next": fixtures wider than a package stay set up, all others are torn down."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self.nodeid = ""
        self.config = session.config
        self.session = session

    def listchain(self) -> list[Any]:
        return [self._session]


class _Reports:
    """Collects what the hooks report, instead of the plugins that would show it."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.messages: list[tuple[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self.messages.append(("report", data))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: Any, nodeid: str, location: Any
    ) -> None:
        shown = (str(warning_message.message), warning_message.category.__name__)
        place = (warning_message.filename, warning_message.lineno)
        self.messages.append(("warning", (*shown, *place, when, nodeid, location)))


class Worker:
    """Runs units until it is told to stop; called in the forked process, which ends here."""

    def __init__(self, session: pytest.Session, channel: socket.socket, current: Any) -> None:
        self._session = session
        self._channel = channel
        self._current = current
        self._reports = _Reports(session.config)
        self._last: pytest.Item | None = None
        self._parent = os.getppid()

    def run(self, environment: Mapping[str, str]) -> None:
        """Take the place of the controlling pytest in this process, then serve."""
        code = 1
        try:
            os.environ.update(environment)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            kernel.die_with_parent(signal.SIGTERM, self._parent)
            self._take_over()
            self._serve()
            code = 0
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _take_over(self) -> None:
        manager = self._session.config.pluginmanager
        capture = manager.getplugin("capturemanager")
        if capture is not None:
            # The files that the parent captures into are shared with all workers: make own ones.
            capture.stop_global_capturing()
            capture.start_global_capturing()
        for name in (*_REPORTING, "pytest_warning_recorded"):
            caller = getattr(self._session.config.hook, name)
            for implementation in caller.get_hookimpls():
                caller._remove_plugin(implementation.plugin)  # noqa: SLF001 - pluggy has no other way to mute one hook
        manager.register(self._reports, "sooner-worker-reports")
        self._reports.messages.clear()  # warnings from before the fork, which pluggy plays to every new plugin

    def _serve(self) -> None:
        receiver = Receiver(self._channel)
        while (message := receiver.wait()) is not None:
            kind, value = message
            if kind == "stop":
                break
            self._run_unit(value)
            send(self._channel, ("done", None))
        self._tear_down()

    def _run_unit(self, positions: Sequence[int]) -> None:
        items = [self._session.items[i] for i in positions]
        for place, (position, item) in enumerate(zip(positions, items, strict=True)):
            following: Any = items[place + 1] if place + 1 < len(items) else _Boundary(self._session)
            self._current.value = position
            self._last = item
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self._send(position)

    def _send(self, position: int) -> None:
        messages, self._reports.messages = self._reports.messages, []
        send(self._channel, ("item", (position, messages)))

    def _tear_down(self) -> None:
        """Tear down what outlived the units; an error of it is the last item's, as in plain pytest."""
        if self._last is None:
            return
        item = self._last
        teardown = self._session._setupstate.teardown_exact  # noqa: SLF001 - as _pytest.runner does
        call = pytest.CallInfo.from_call(lambda: teardown(None), when="teardown")
        if call.excinfo is not None:
            report = item.ihook.pytest_runtest_makereport(item=item, call=call)
            self._reports.pytest_runtest_logreport(report)
        self._send(self._current.value)
