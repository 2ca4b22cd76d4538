"""pytest's door: `pytest --gpus=auto` runs a suite's items on all devices of the machine.

Every pytest of the environment imports this module: it registers options and marks and nothing else. What it takes to
run (`sooner.door`) is imported when `--gpus` is given.
"""

import argparse
import math
import os
from collections.abc import Iterator
from typing import Any

import pytest

_MARKS = (
    "gpus(n): the test needs n devices at the same time (sooner)",
    "isolation(level): fresh (a new interpreter), fork (a process of its own), warm or world (shared) (sooner)",
)

_REMOTE = "sooner-remote"
"""In a process that collects for the controlling pytest, the latter's work is not done again."""


class _Hooks:
    """Hooks that projects may implement in their conftest files."""

    @pytest.hookspec
    def pytest_sooner_guards(self, config: pytest.Config) -> list[object] | None:
        """Return guards and witnesses of the project's own state (`sooner.warm.guards`); called once in each worker."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Let conftest files name guards of their own, also where `--gpus` is not given."""
    pluginmanager.add_hookspecs(_Hooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; without `--gpus` none of them does anything."""
    group = parser.getgroup("sooner", "run on all devices at once")
    group.addoption(
        "--gpus",
        metavar="SPEC",
        type=_said,
        help="auto, N, virtual:N, cpu:N, 0,1 or UUIDs: run on these devices",
    )
    group.addoption(
        "--isolation",
        choices=("auto", "fresh", "fork", "warm"),
        default="auto",
        help="warm: tests share guarded processes (auto); fork: a process each; fresh: a new interpreter each",
    )
    group.addoption(
        "--isolation-budget",
        metavar="SHARE",
        type=_from_zero,
        default=0.0,
        help="with --isolation=auto: what a process of its own may cost a test, of its duration (0.05; default: 0)",
    )
    group.addoption(
        "--reuse",
        choices=("off", "on", "verify"),
        default="on",
        help="off: no process runs two tests; verify: every warm test is also run by itself and must agree",
    )
    group.addoption("--reuse-stats", action="store_true", help="say what reuse saved, restored and discarded")
    group.addoption("--reuse-journal", metavar="FILE", help="a JSON line a test: worker, level, what was restored")
    group.addoption(
        "--hang-timeout",
        metavar="SECONDS",
        type=_from_zero,
        default=0.0,
        help="end a test that takes longer, with the stacks of its threads in the report (default: never)",
    )
    group.addoption(
        "--history",
        metavar="DIR",
        default=os.environ.get("SOONER_RUN_HISTORY", "auto"),
        help="where the session's record goes, or none (default: .sooner/history, where DuckDB is installed)",
    )
    group.addoption(
        "--quarantine",
        metavar="FILE",
        default=os.environ.get("SOONER_RUN_QUARANTINE", "none"),
        help="tests that it names run as always, are reported as expected failures, and fail no run; or none",
    )
    parser.addini("sooner_needs_rules", "rule tables of `sooner needs`, looked at first", type="paths", default=[])
    group.addoption("--bisect-pollution", metavar="TEST", help="see `sooner bisect-pollution`")
    group.addoption(
        "--unit",
        choices=("auto", "file", "class", "test"),
        default="auto",
        help="what is scheduled as one: by fixture scope and size (the default), a file, a class, a test",
    )


def _said(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("it names no devices: leave it out, or say auto, N, virtual:N")
    return text


def _from_zero(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 on")
    return value


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks; with `--gpus`, let the door in."""
    for mark in _MARKS:
        config.addinivalue_line("markers", mark)
    if config.option.gpus and not config.pluginmanager.has_plugin(_REMOTE):
        if config.option.bisect_pollution:
            from sooner.door.bisect import Bisector

            config.pluginmanager.register(Bisector(config), "sooner-bisector")
            return
        from sooner.door.session import Door

        config.pluginmanager.register(Door(config), "sooner-door")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Mask devices before any test module is imported: skip conditions are evaluated then."""
    spec = early_config.known_args_namespace.gpus
    if spec and not early_config.pluginmanager.has_plugin(_REMOTE):
        from sooner.door.devices import mask_for_collection

        mask_for_collection(spec)


@pytest.fixture(scope="session")
def _sooner_warmth(request: pytest.FixtureRequest) -> Iterator[Any]:
    from sooner.warm.fixtures import warmth

    yield from warmth(request)


@pytest.fixture
def world(request: pytest.FixtureRequest, _sooner_warmth: Any) -> Iterator[Any]:
    """A factory: `world(4, backend="gloo")` is four ranks, kept between tests; `.run(function, *args)` runs on all."""
    from sooner.warm.fixtures import world as factory

    yield from factory(request, _sooner_warmth)


@pytest.fixture
def process_group(request: pytest.FixtureRequest, _sooner_warmth: Any) -> Iterator[Any]:
    """A factory: `process_group(backend="gloo")` is a group of this process, kept between tests."""
    from sooner.warm.fixtures import process_group as factory

    yield from factory(request, _sooner_warmth)


@pytest.fixture
def resource(request: pytest.FixtureRequest, _sooner_warmth: Any) -> Iterator[Any]:
    """A factory: `resource(kind, config)` is a costly thing of the session's pool, leased until the test ends."""
    from sooner.warm.fixtures import resource as factory

    yield from factory(request, _sooner_warmth)


@pytest.fixture
def gpus(request: pytest.FixtureRequest) -> tuple[int, ...]:
    """The devices of this test as frameworks count them: `0, 1, ...`; one without `--gpus`."""
    mark = request.node.get_closest_marker("gpus")
    number = mark and (mark.args[0] if mark.args else mark.kwargs.get("n"))
    return tuple(range(1 if number is None else int(number)))
