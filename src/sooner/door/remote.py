"""A pytest in a process of its own, that collects under another mask and makes workers; see `origins.Remote`."""

import functools
import gc
import os
import pickle
import signal
import socket
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import sooner
from sooner.door import coverage_data
from sooner.door.guards import guards_of_project
from sooner.door.serving import Server
from sooner.run.supervision import kernel
from sooner.warm.forking import fork_refusal, quiet_threads

NAME = "sooner-remote"


def main() -> None:
    """Entry point: `remote ROOT CHANNEL SPEC STDERR`, descriptors by number."""
    channel_fd, spec_fd, error_fd = map(int, sys.argv[2:5])
    channel, shown = socket.socket(fileno=channel_fd), (os.dup(1), error_fd)
    with open(spec_fd, "rb") as file:  # noqa: PTH123 - a descriptor
        spec = pickle.load(file)  # noqa: S301 - written by the controlling pytest
    os.set_inheritable(channel.fileno(), False)
    kernel.die_with_parent(signal.SIGTERM, spec["parent"])
    sys.argv[:], sys.path[:] = spec["argv"], spec["path"]
    sooner.__doc__ = (
        f"{sooner.__doc__} PYTEST_DONT_REWRITE"  # it is imported: pytest would warn that it cannot rewrite it
    )
    os.dup2(2, 1)  # what is printed while collecting was printed by the controlling pytest already
    code = pytest.main(spec["args"], plugins=[Collected(channel, spec, shown)])
    sys.stderr.write(f"pytest ended with exit code {int(code)} before its tests could run\n")
    sys.stderr.flush()
    os._exit(int(code) or 1)


class Collected:
    """Takes the place of pytest's loop over items: makes workers on request."""

    __name__ = NAME

    def __init__(self, channel: socket.socket, spec: Mapping[str, Any], shown: tuple[int, int]) -> None:
        self._channel = channel
        self._spec = spec
        self._shown = shown

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Collect only the asked files; never touch the folder of temporary files of the controlling pytest."""
        files = self._spec["files"]
        if files and all(Path(file).is_relative_to(config.rootpath) for file in files):
            config.args = list(files)  # elsewhere an id depends on the argument that its file was found by
        if basetemp := config.getoption("basetemp", None):
            config.option.basetemp = f"{basetemp}-{os.getpid()}"

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave other files alone, where the arguments of the command line are collected."""
        others = self._spec["files"] and collection_path.is_file() and str(collection_path) not in self._spec["files"]
        return True if others else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Serve until the controlling pytest is gone; never returns."""
        items = _in_order(session.items, self._spec["nodeids"])
        if not fork_refusal():
            quiet_threads()
        gc.freeze()
        Server(
            session,
            items,
            self._channel,
            guards=functools.partial(guards_of_project, session.config),
            begin=functools.partial(coverage_data.begin, self._spec["coverage"], session.config),
            show=lambda target: self._shown[target - 1],
        ).run()


def _in_order(items: list[pytest.Item], nodeids: list[str]) -> list[pytest.Item | None]:
    """The items by the numbers of the controlling pytest; ids that occur several times are matched in order."""
    found: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in reversed(items):
        found[item.nodeid].append(item)
    return [found[nodeid].pop() if found.get(nodeid) else None for nodeid in nodeids]
