"""A worker: a process in which everything is collected already, that runs items and sends their reports.

Hooks that run tests are called here, hooks that report them (`pytest_runtest_log...`) only in the controlling pytest,
so that reporting plugins see each test once. After a failure in a process that ran other tests before, the worker waits
for a word: the controlling pytest first has the test judged in a process of its own.
"""

import contextlib
import gc
import os
import signal
import socket
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NoReturn

import pytest
from _pytest.junitxml import xml_key
from msgspec import Struct

from sooner.door import coverage_data
from sooner.door.channel import Position, Receiver, hang_up, portable, send
from sooner.door.guarding import Guarding
from sooner.run.supervision import kernel
from sooner.warm.guards import Cleaned, GuardSet, get_handler, set_handler

SENT: Final = ("outcome", "when", "user_properties", "sections", "duration", "start", "stop")
"""What differs between the reports of an item that have nothing to say: the rest is the item's."""
_PLAIN: Final = {*SENT, "location", "keywords", "longrepr"}
_ID: Final = {"nodeid", "_id"}
"""Under which name a report keeps its id depends on the version of pytest."""
_FLUSH_S: Final = 0.02
"""Results wait for others so long at most: each message wakes the controlling pytest."""
_MULTIPROCESS_TESTS: Final = "torch.testing._internal.common_distributed"
"""Where PyTorch's classes are whose tests run on several ranks; a warm worker keeps the ranks."""
_REPORTING: Final = ("pytest_runtest_logstart", "pytest_runtest_logreport", "pytest_runtest_logfinish")


class Errand(Struct, frozen=True, kw_only=True):
    """What a worker is asked to run, one item after the other."""

    items: tuple[int, ...]
    keeps_fixtures: bool
    """Items share fixtures wider than a function: a doubtful process is left only after the last of them."""
    waits: str
    """Wait for a word after `failures` in a process that ran tests before, `any failure`, `always`; empty: never."""
    is_last: bool
    """The process ends after it, without being told."""


class Ran(Struct, frozen=True, kw_only=True):
    """What a worker says of one item."""

    item: int
    location: tuple[str, int | None, str]
    """The item's, which takes longer to find than to send: the controlling pytest need not find it again."""
    messages: list[tuple[str, Any]]
    """`plain` and `report`, `warning` and `property` (of the whole suite), in the order in which they came."""
    has_failed: bool = False
    ran_before: int = 0
    """Items that ran in this process before."""
    restored: tuple[str, ...] = ()
    discard: str = ""
    """Why the process must not run another test; empty where it may."""
    stop: str = ""
    """`session.shouldstop` or `session.shouldfail`, where a plugin set it in the worker."""


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
        self.has_failed = False
        self.doubt = ""
        """Why the process must not run another test, from what was reported; empty where it may."""
        self._has_parts = False
        self._properties = suite_properties(config)
        self._taken = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.has_failed = self.has_failed or report.failed
        if report.failed and report.when == "teardown":
            self.doubt = "left in the middle of its tear-down"
        if type(report) is not pytest.TestReport:
            self._has_parts = True
        elif self._has_parts:  # what is said of the whole may follow from its parts (subtests), which are known here
            self._config.hook.pytest_report_teststatus(report=report, config=self._config)
        if report.longrepr is None and report.__dict__.keys() - _ID == _PLAIN and type(report) is pytest.TestReport:
            if report.user_properties:
                report.user_properties = portable(report.user_properties)
            self.messages.append(("plain", [report.__dict__[name] for name in SENT]))
            return
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self.messages.append(("report", portable(data)))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: Any, nodeid: str, location: Any
    ) -> None:
        shown = (str(warning_message.message), warning_message.category.__name__)
        place = (warning_message.filename, warning_message.lineno)
        self.messages.append(("warning", (*shown, *place, when, nodeid, location)))

    def take(self) -> list[tuple[str, Any]]:
        messages, self.messages = self.messages, []
        messages += [("property", each) for each in self._properties[self._taken :]]
        self._taken = len(self._properties)
        self.has_failed = self._has_parts = False
        self.doubt = ""
        return messages


class Readiness:
    """What workers of a session have in common, made once in the process that they are forked from.

    Hooks that report are muted there, so that each of a thousand children need not touch the pages for that.
    """

    def __init__(self, session: pytest.Session) -> None:
        manager = session.config.pluginmanager
        for name in (*_REPORTING, "pytest_warning_recorded"):
            caller = getattr(session.config.hook, name)
            for implementation in caller.get_hookimpls():
                caller._remove_plugin(implementation.plugin)  # noqa: SLF001 - pluggy has no other way to mute one hook
        self.reports = _Reports(session.config)
        manager.register(self.reports, "sooner-worker-reports")
        self.reports.take()  # warnings from before, which pluggy plays to every new plugin
        self.guarding = Guarding(session)
        manager.register(self.guarding, "sooner-guarding")
        gc.freeze()  # the first collection of garbage after a fork would copy the whole heap


class Worker:
    """Runs items until it is told to stop; the process ends here.

    Args:
        session: A session that has collected.
        items: Its items by the numbers that the controlling pytest gives them; None where one was not collected here.
        ready: What was made ready for all workers of the session.
        channel: To the controlling pytest.
        position: Where the item that runs is noted.
        guards: Makes what is put back and watched between tests; not called in a process that runs one test.
        show: Gives a descriptor for standard output and error where they were taken away for collection.
    """

    def __init__(
        self,
        session: pytest.Session,
        items: Sequence[pytest.Item | None],
        ready: Readiness,
        channel: socket.socket,
        position: Position,
        *,
        guards: Callable[[], GuardSet],
        show: Callable[[int], int] | None = None,
    ) -> None:
        self._show = show
        self._session = session
        self._items = items
        self._channel = channel
        self._position = position
        self._guards = guards
        self._reports = ready.reports
        self._guarding = ready.guarding
        self._receiver = Receiver(channel)
        self._last: pytest.Item | None = None
        self._count = 0
        self._batch: list[Ran] = []
        self._flushed_at = 0.0
        self._pid = os.getpid()
        self._interrupts: Any = signal.default_int_handler

    def run(self, *, parent: int) -> NoReturn:
        """Take the place of the session's own loop in this process, then serve; ends with `parent`.

        The first message says on which devices: until it comes, this process is a spare that makes ready.
        """
        code = 1
        try:
            self._interrupts = signal.signal(signal.SIGINT, _heed_not)
            kernel.die_with_parent(signal.SIGTERM, parent)
            own_captured_files(self._session.config.pluginmanager.getplugin("capturemanager"), self._show)
            self._position.catch_stacks()
            if (message := self._receiver.wait()) is not None and message[0] == "begin":
                self._begin(*message[1])
                # Here and not in a method of its own: tests are as many frames deep as may be beside plain pytest.
                while (message := self._receiver.wait()) is not None and message[0] == "run" and self._run(message[1]):
                    pass
                self._end()
            code = 0
        except (KeyboardInterrupt, pytest.exit.Exception) as error:
            signal.signal(signal.SIGINT, _heed_not)
            self._end()
            self._say("raised", (type(error).__name__, str(error), getattr(error, "returncode", None)))
        except Exception:  # noqa: BLE001 - a plugin's or our own: plain pytest would end with INTERNALERROR
            self._say("raised", ("Exception", traceback.format_exc(), None))
        finally:
            coverage_data.save()
            sys.stdout.flush()
            sys.stderr.flush()
            if os.getpid() == self._pid:
                hang_up(self._channel)  # before the system takes this process's memory apart, which takes a while
            os._exit(code)

    def _say(self, kind: str, value: Any) -> None:
        if os.getpid() != self._pid:  # a child that a test forked has no voice of its own
            return
        self._flush()
        with contextlib.suppress(OSError):  # nobody listens any more: this process is about to be ended
            send(self._channel, (kind, value))

    def _begin(self, environment: Mapping[str, str], guarded: bool) -> None:  # noqa: FBT001 - as it came in a message
        os.environ.update(environment)
        if guarded:
            self._guarding.use(self._guards())
        if guarded and _MULTIPROCESS_TESTS in sys.modules:
            from sooner.warm import multiprocess

            multiprocess.install()

    def _end(self) -> None:
        self._tear_down()
        if "sooner.warm.multiprocess" in sys.modules:
            sys.modules["sooner.warm.multiprocess"].uninstall()
        self._say("torn down", None)

    def _run(self, errand: Errand) -> bool:
        """Run the items of a unit; says whether this process may run another."""
        self._guarding.begin_unit()
        doubt = ""
        for place, number in enumerate(errand.items):
            following = errand.items[place + 1] if place + 1 < len(errand.items) else None
            cleaned, has_failed = self._run_item(number, following)
            if self._position.must_stop:
                return False
            doubt = doubt or cleaned.discard
            waits = errand.waits == "always" or (
                has_failed and (errand.waits == "any failure" or (errand.waits == "failures" and self._count > 1))
            )
            if waits:
                self._flush()
            if waits and self._receiver.wait() != ("on", None):
                return False
            if doubt and not errand.keeps_fixtures:  # not before the verdict: who is done is not waited for
                break
        doubt = doubt or self._guarding.end_unit().discard
        self._say("done", doubt)
        return not doubt and not errand.is_last

    def _run_item(self, number: int, following: int | None) -> tuple[Cleaned, bool]:
        item = self._items[number]
        if item is None:
            self._say("absent", number)
            return Cleaned(), False
        after: Any = (self._items[following] if following is not None else None) or _Boundary(self._session)
        self._position.set(number, time.monotonic())
        self._last = item
        self._guarding.begin(item)
        _change_handler(_heed_not, self._interrupts)  # the test may interrupt itself, and is interrupted at once
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        _change_handler(self._interrupts, _heed_not)
        if os.getpid() != self._pid:  # a child that the test forked, and that came back from it
            os._exit(int(self._reports.has_failed))
        self._position.set(-1, time.monotonic())
        return self._tell(number, item, self._guarding.cleaned)

    def _tell(self, number: int, item: pytest.Item, cleaned: Cleaned) -> tuple[Cleaned, bool]:
        session, has_failed = self._session, self._reports.has_failed
        if self._reports.doubt and not cleaned.discard:
            cleaned = replace(cleaned, discard=self._reports.doubt)
        ran = Ran(
            item=number,
            location=item.location,
            messages=self._reports.take(),
            has_failed=has_failed,
            ran_before=self._count,
            restored=cleaned.restored,
            discard=cleaned.discard,
            stop=str(session.shouldfail or session.shouldstop or ""),
        )
        self._count += 1
        self._batch.append(ran)
        if has_failed or time.monotonic() - self._flushed_at > _FLUSH_S:
            self._flush()
        return cleaned, has_failed

    def _flush(self) -> None:
        """Send the results that wait; those of a worker that dies before are run again elsewhere."""
        batch, self._batch = self._batch, []
        self._flushed_at = time.monotonic()
        if batch:
            with contextlib.suppress(OSError):  # as above
                send(self._channel, ("items", batch))

    def _tear_down(self) -> None:
        """Tear down what outlived the units; an error of it is the last item's, as in plain pytest."""
        if self._last is None:
            return
        item = self._last
        call = pytest.CallInfo.from_call(lambda: self._tear_down_captured(item), when="teardown")
        if call.excinfo is not None:
            report = item.ihook.pytest_runtest_makereport(item=item, call=call)
            self._reports.pytest_runtest_logreport(report)
        if messages := self._reports.take():
            self._say("late", (self._items.index(item), messages))

    def _tear_down_captured(self, item: pytest.Item) -> None:
        with captured(item, "teardown"):  # which fails where a test has closed standard output
            self._session._setupstate.teardown_exact(None)  # noqa: SLF001 - as _pytest.runner does


def suite_properties(config: pytest.Config) -> list[tuple[str, str]]:
    """What `record_testsuite_property` has recorded in this process; JUnit's plugin writes what the list holds."""
    xml: Any = config.stash.get(xml_key, None)
    properties: list[tuple[str, str]] = [] if xml is None else xml.global_properties
    return properties


def _heed_not(*_: object) -> None:
    """What SIGINT does between tests; not SIG_IGN, because what fixtures of a session start would ignore it too."""


def _change_handler(old: Any, new: Any) -> None:
    """Change what SIGINT does, but for what a fixture of a module or the session has set."""
    if get_handler(signal.SIGINT) is old:
        set_handler(signal.SIGINT, new)


def captured(item: pytest.Item, when: str) -> contextlib.AbstractContextManager[object]:
    """Have what is printed meanwhile captured as output of an item, unless plugin and option say otherwise."""
    manager: Any = item.config.pluginmanager.getplugin("capturemanager")
    return contextlib.nullcontext() if manager is None else manager.item_capture(when, item)


def own_captured_files(manager: Any, show: Callable[[int], int] | None) -> None:
    """Give a forked process files of its own to capture output into: those it has are its parent's too.

    The objects stay: a module may have kept the `sys.stdout` that it saw when it was imported.
    """
    capturing = getattr(manager, "_global_capturing", None)
    for target, name in ((1, "out"), (2, "err")):
        capture = getattr(capturing, name, None)
        saved = getattr(capture, "targetfd_save", None)
        if saved is not None:  # of `--capture=fd`; the others capture in memory
            with tempfile.TemporaryFile(buffering=0) as file:
                os.dup2(file.fileno(), capture.tmpfile.fileno(), inheritable=False)  # type: ignore[union-attr]
        if show is not None:
            os.dup2(show(target), target if saved is None else saved, inheritable=saved is None)
