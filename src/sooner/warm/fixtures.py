"""What pytest's fixtures `world`, `process_group` and `resource` do; `pytest_plugin` registers them.

Each is a generator over a `pytest.FixtureRequest` that yields a factory, and at the end of the test gives back what the
factory leased. Worlds and the pool belong to the session: `warmth` makes them before any test's own fixtures are set
up, so that ranks are forks of a clean process. They work under plain pytest, without `--gpus`.
"""

import os
from collections.abc import Callable, Generator, Hashable
from contextlib import ExitStack
from functools import partial
from typing import Any, Final

import pytest

from sooner.warm.holdings import Accounted
from sooner.warm.pool import Kind, Lease, ResourcePool
from sooner.warm.world import World
from sooner.warm.worlds import Worlds

BACKENDS: Final = ("auto", "gloo", "nccl")
_FRESH: Final = ("fresh", "fork")
"""Levels of isolation at which a test gets ranks that nobody had before."""


class Warmth:
    """What a session keeps warm. A fork of the session's process, a worker, begins anew."""

    def __init__(self) -> None:
        self.worlds = Worlds()
        self._owner = os.getpid()
        self._begin()

    def _begin(self) -> None:
        self._pool = ResourcePool()
        self._kinds: dict[Any, Accounted] = {}
        self._failed: set[str] = set()

    @property
    def pool(self) -> ResourcePool:
        """Resources that tests leased."""
        if os.getpid() != self._owner:
            self._owner = os.getpid()
            self._begin()
        return self._pool

    def kind(self, kind: Kind[Any, Any] | type[Kind[Any, Any]]) -> Accounted:
        """The same object for the same kind of resource, as the pool needs it."""
        if kind not in self._kinds:
            self._kinds[kind] = Accounted(kind() if isinstance(kind, type) else kind)
        return self._kinds[kind]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Remember which tests failed: what they used is in doubt."""
        report = yield
        if report.failed:
            self._failed.add(item.nodeid)
        return report

    def has_failed(self, item: pytest.Item) -> bool:
        """Whether a test failed in set-up or call; to be asked once."""
        failed = item.nodeid in self._failed
        self._failed.discard(item.nodeid)
        return failed

    def close(self) -> None:
        """End everything that is kept; what belongs to the process that this one was forked from is only let go of."""
        self.worlds.close()
        self.pool.close()


def add_backend_option(parser: pytest.Parser) -> None:
    """Add `--backend`, for the conftest of a suite that wants it: too common a name for every project."""
    parser.addoption(
        "--backend",
        dest="world_backend",
        choices=BACKENDS,
        default="auto",
        help="of the process groups of ranks: nccl where there are enough devices, else gloo (auto), or one of them",
    )


def warmth(request: pytest.FixtureRequest) -> Generator[Warmth, None, None]:
    """For a fixture of the session: what tests share."""
    kept = Warmth()
    manager = request.config.pluginmanager
    manager.register(kept, "sooner-warmth")
    yield kept
    manager.unregister(kept)
    kept.close()


def world(request: pytest.FixtureRequest, kept: Warmth) -> Generator[Callable[..., World], None, None]:
    """For a fixture of a test: `world(4, backend="gloo")` gives four ranks until the test ends.

    `backend` is by default what `--backend` says; None is a world without a default process group. More keywords are
    those of `Worlds.lease`. Ranks are kept between tests unless the test or the session asks for isolation.
    """
    node = request.node
    with ExitStack() as leases:

        def lease(size: int, *, backend: str | None = "auto", **more: Any) -> World:
            name = backend and reported_backend(request, kept, backend, size)
            more.setdefault("is_kept", _may_keep(node))
            more.setdefault("test_id", node.nodeid)
            return leases.enter_context(kept.worlds.lease(size, name, **more))

        yield lease


def resource(request: pytest.FixtureRequest, kept: Warmth) -> Generator[Callable[..., Any], None, None]:
    """For a fixture of a test: `resource(kind, config, parent=None)` gives a resource until the test ends.

    `kind` is a `Kind` or a class of them that is made without arguments; `parent` is what an earlier call gave. A test
    that failed gives nothing back: what it used is destroyed.
    """
    leases: dict[int, Lease[Any]] = {}
    with ExitStack() as stack:

        def lease(kind: Kind[Any, Any] | type[Kind[Any, Any]], config: Hashable, parent: Any = None) -> Any:
            above = None if parent is None else leases[id(parent)]
            held = kept.pool.lease(kept.kind(kind), config, parent=above, vote=getattr(kind, "vote", None))
            lease = stack.enter_context(held)
            leases[id(lease.thing)] = lease
            return lease.thing

        yield lease
        if kept.has_failed(request.node):
            for each in leases.values():
                each.fail()


def process_group(request: pytest.FixtureRequest, kept: Warmth) -> Generator[Callable[..., Any], None, None]:
    """For a fixture of a test: `process_group(backend="gloo", ranks=None, timeout_s=None)`, of this very process.

    A process that nobody launched as a rank is the only one. The group is kept for later tests if all ranks agree.
    """
    from sooner.warm.kinds import ProcessGroupConfig, ProcessGroups

    def make(lease: Callable[..., Any], backend: str = "auto", **more: Any) -> Any:
        name = reported_backend(request, kept, backend, 1)
        return lease(ProcessGroups, ProcessGroupConfig(backend=name, **more))

    for lease in resource(request, kept):
        yield partial(make, lease)


def reported_backend(request: pytest.FixtureRequest, kept: Warmth, wanted: str, size: int) -> str:
    """The backend for so many ranks, which becomes a property of the test's report (and of its JUnit case).

    Raises:
        pytest.UsageError: A backend needs more devices than there are.
    """
    name = wanted if wanted != "auto" else str(request.config.getoption("world_backend", "auto"))
    if name == "auto":
        name = "nccl" if kept.worlds.devices() >= size else "gloo"
    elif "nccl" in name and kept.worlds.devices() < size:
        raise pytest.UsageError(f"{name} needs {size} devices, there are {kept.worlds.devices()}: use --backend=gloo")
    request.node.user_properties.append(("backend", name))
    return name


def _may_keep(node: Any) -> bool:
    mark = node.get_closest_marker("isolation")
    level = mark.args[0] if mark and mark.args else node.config.getoption("isolation", "auto")
    return level not in _FRESH and node.config.getoption("reuse", "on") != "off"
