"""What coverage.py measures in workers: written by each, combined by pytest-cov in the controlling pytest."""

import contextlib
import os
import sys
from typing import Any

import pytest


def settings() -> dict[str, Any] | None:
    """How coverage is measured in this process; None where it is not."""
    current = _current()
    if current is None:
        return None
    config = current.config
    return {
        "data_file": config.data_file,
        "config_file": config.config_file or False,
        "source": config.source,
        "branch": config.branch,
    }


def begin(measured: dict[str, Any] | None, config: pytest.Config) -> None:
    """Measure in this process as the controlling pytest does."""
    if measured is not None:
        import coverage

        current = coverage.Coverage(**measured, data_suffix=True)
        current._warn_no_data = False  # noqa: SLF001 - as coverage.process_startup: others may measure something
        current._warn_unimported_source = False  # noqa: SLF001 - as above
        current.start()
        if getattr(config.option, "cov_context", None) == "test":
            config.pluginmanager.register(_Contexts(), "sooner-coverage-contexts")


class _Contexts:
    """Says which test and phase what is measured belongs to, as pytest-cov does where it measures itself."""

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self._switch(item, "setup")

    def pytest_runtest_call(self, item: pytest.Item) -> None:
        self._switch(item, "run")

    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        self._switch(item, "teardown")

    @staticmethod
    def _switch(item: pytest.Item, phase: str) -> None:
        if (current := _current()) is not None:
            current.switch_context(f"{item.nodeid}|{phase}")


def save() -> None:
    """Write what was measured in this process, which ends without the exit functions that would."""
    with contextlib.suppress(Exception):  # whatever is wrong with it, the test's verdict stands
        if (current := _current()) is not None:
            current.stop()
            data = sys.modules["coverage"].CoverageData(current.config.data_file, suffix=f"sooner.{os.getpid()}")
            data.update(current.get_data())
            data.write()


def _current() -> Any:
    coverage = sys.modules.get("coverage")
    return None if coverage is None else coverage.Coverage.current()
