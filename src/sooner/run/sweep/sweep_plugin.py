"""The side of pytest: outcomes by node id; a dry sweep runs nothing but guards. Standard library and pytest only."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from guards_only import cut  # type: ignore[import-not-found, unused-ignore]
from processes_started import (  # type: ignore[import-not-found, unused-ignore]
    Refused,
    Started,
    refuse_processes,
)

_SKIP_EXITS = range(72, 100)
"""Exit codes by which workers of PyTorch's tests say that they skip."""
_SET_UPS = ("setUp", "asyncSetUp", "setUpClass", "setup_method", "setup_class", "setup_function")
_TEAR_DOWNS = ("tearDown", "asyncTearDown", "tearDownClass", "teardown_method", "teardown_class", "teardown_function")


class Plugin:
    """Keeps what happened.

    Args:
        dry: Whether bodies are cut down to their guards.
        at: Where the file that is asked now is kept, for who finds this process ended.
    """

    def __init__(self, *, dry: bool, at: str) -> None:
        self.dry = dry
        self._at = at
        self._last = ""
        self.tests: dict[str, dict[str, Any]] = {}
        self.files: dict[str, str] = {}
        self.errors: dict[str, str] = {}
        self._started = None if dry else Started()
        self._blind: set[str] = set()
        """Tests without source, of which nothing was run, their guards neither, and those that wanted processes."""

    def _is_at(self, nodeid: str) -> None:
        path = nodeid.partition("::")[0]
        if path != self._last:
            self._last = path
            with open(self._at, "w", encoding="utf-8") as file:  # noqa: PTH123 - no more than needed
                file.write(path)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: Any) -> Iterator[None]:
        """A file that exits while it is imported is skipped, or has failed, by its code."""
        if isinstance(collector, pytest.Module):
            self._is_at(collector.nodeid)
        try:
            return (yield)
        except SystemExit as stop:
            is_skip = stop.code in (None, 0) or stop.code in _SKIP_EXITS
            text = f"exit {stop.code}"
            told = (str(collector.path), 0, text) if is_skip else text
            return pytest.CollectReport(collector.nodeid, "skipped" if is_skip else "failed", told, [])  # type: ignore[return-value]

    def pytest_collectreport(self, report: Any) -> None:
        """A file that cannot be collected, or says that it is skipped."""
        if report.outcome != "passed" and report.nodeid:
            self.files[report.nodeid] = "skip" if report.outcome == "skipped" else "fail"
        if report.outcome == "failed" and report.nodeid:
            self.errors[report.nodeid] = _last_line(report.longreprtext)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Cut everything, before anything runs."""
        if self.dry:
            refuse_processes()  # a hook of the project's may start ranks that wait for each other, in place of a body
            self._blind = {item.nodeid for item in items if not _cut_item(item)}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> bool:
        """Run an item and keep its outcome; nothing is reported."""
        from _pytest.runner import runtestprotocol

        self._is_at(item.nodeid)
        before, began = self._workers(), time.monotonic()
        try:
            reports = runtestprotocol(item, log=False, nextitem=nextitem)
        except SystemExit as stop:
            outcome = "skip" if isinstance(stop.code, int) and stop.code in _SKIP_EXITS else "fail"
            self.tests[item.nodeid] = {"outcome": outcome, "reason": f"exit {stop.code}", "workers": 0}
            return True
        span = {} if self.dry else {"began": began, "ended": time.monotonic()}
        told = _outcome(reports)
        if item.nodeid in self._blind and told["outcome"] == "run":
            told["outcome"] = "unknown"
        self.tests[item.nodeid] = {**told, "workers": self._workers() - before, **span}
        return True

    def _workers(self) -> int:
        """Processes started so far; a dry sweep knows none."""
        return self._started.count if self._started else 0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Iterator[None]:
        """An exit for lack of devices is a skip; what other processes would say is not known."""
        report: Any = yield
        stop = getattr(call.excinfo, "value", None)
        if isinstance(stop, Refused):
            self._blind.add(item.nodeid)
            report.outcome, report.longrepr = "passed", None
        if isinstance(stop, SystemExit) and stop.code in _SKIP_EXITS:
            report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"exit {stop.code}")
        return report  # type: ignore[no-any-return]


def _outcome(reports: list[Any]) -> dict[str, Any]:
    for report in reports:
        if report.outcome == "skipped":
            text = report.longrepr[2] if isinstance(report.longrepr, tuple) else "xfail"
            return {"outcome": "run" if hasattr(report, "wasxfail") else "skip", "reason": str(text)[:200]}
        if report.outcome == "failed" and report.longreprtext.startswith("Unexpected success"):
            return {"outcome": "run", "reason": ""}  # cut down, it has no chance to fail as it should
        if report.outcome == "failed":
            return {"outcome": "fail", "reason": _last_line(report.longreprtext)}
    return {"outcome": "run", "reason": ""}


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2].removeprefix("E ").strip()[:200]


def _cut_item(item: Any) -> bool:
    """Cut a test and its fixtures; False where the test has no source, so that nothing of it is run."""
    function = getattr(item, "function", None) or getattr(item, "obj", None)
    cls = getattr(item, "cls", None)
    was_cut = function is None or cut(function)
    if not was_cut:
        item.runtest = lambda: None
    if cls is not None:
        _cut_class(cls)
    info = getattr(item, "_fixtureinfo", None)
    for definitions in (info.name2fixturedefs if info else {}).values():
        for each in definitions:
            if not str(getattr(each.func, "__module__", "")).startswith(("_pytest", "pytest")):
                cut(each.func)
    return was_cut


def _cut_class(cls: type) -> None:
    for owner in cls.__mro__:
        if owner.__module__ in ("builtins", "unittest.case", "unittest.async_case"):
            continue
        for name in (*_SET_UPS, *_TEAR_DOWNS):
            method = owner.__dict__.get(name)
            if method is not None:
                cut(method)
        if "MAIN_PROCESS_RANK" in owner.__dict__ or "_join_processes" in owner.__dict__:
            # Without its set-up nobody is spawned: the test's own guards run here, as the worker of rank 0.
            owner.rank = 0  # type: ignore[attr-defined]
