"""The fork server's side: it imports, gives birth and reaps, and ends when its owner lets go of the channel.

In a process of its own, quiet from the first line on. See `zygote` for the owner's side.
"""

import contextlib
import gc
import importlib
import os
import pickle
import select
import socket
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NoReturn

from sooner.warm.forking import (
    ForkRefused,
    die_with_parent,
    forget_habits,
    fork,
    fork_refusal,
    leave_parent,
    take_streams,
)
from sooner.warm.pages import collapse_piecewise

LARGEST_MESSAGE: Final = 1 << 17
_MOST_DESCRIPTORS: Final = 16
_REAP_MS: Final = 20
_DONE: Final = object()
_MANY_BIRTHS: Final = 12
"""From so many on it pays to make births cheaper."""


def be_forked(descriptor: int, errors: int, parent: int) -> NoReturn:
    """In a process that was forked a moment ago: let go of the parent's things and be a fork server."""
    try:
        leave_parent({descriptor, errors})
        forget_habits()
        take_streams(errors)
        main(descriptor, parent)
    finally:
        os._exit(1)


def main(descriptor: int, parent: int) -> NoReturn:
    """Be a fork server until the owner lets go of the channel."""
    die_with_parent(parent)
    with contextlib.suppress(OSError):
        os.setsid()  # an interrupt from the keyboard is the owner's, who ends this process and its children
    try:
        with socket.socket(fileno=descriptor) as channel:
            gc.freeze()
            _serve(channel)
    except ConnectionError:
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the owner shows it
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _serve(channel: socket.socket) -> None:
    births = 0
    tidying: Iterator[int] = iter(())
    forgotten: set[int] = set()
    while True:
        _use_idle_time(channel, tidying, forgotten)
        received = _next_request(channel)
        if received is None:
            return
        request, descriptors = received
        if request[0] == "forget":
            forgotten.update(request[1])
        channel.send(pickle.dumps(_answer(channel, request, descriptors)))
        births += request[0] == "spawn"
        if births == _MANY_BIRTHS or (births > _MANY_BIRTHS and request[0] == "preload"):
            tidying = collapse_piecewise()


def _use_idle_time(channel: socket.socket, work: Iterator[int], forgotten: set[int]) -> None:
    """Reap the forgotten and do work until somebody asks for something."""
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    is_done = False
    while not poll.poll(0 if not is_done else _REAP_MS if forgotten else None):
        forgotten.difference_update([pid for pid in forgotten if _has_ended(pid)])
        is_done = next(work, _DONE) is _DONE


def _has_ended(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _next_request(channel: socket.socket) -> tuple[tuple[Any, ...], list[int]] | None:
    data, descriptors, _, _ = socket.recv_fds(channel, LARGEST_MESSAGE, _MOST_DESCRIPTORS)
    return (pickle.loads(data), descriptors) if data else None  # noqa: S301 - our own owner's


def _answer(channel: socket.socket, request: tuple[Any, ...], descriptors: list[int]) -> tuple[str, Any]:
    match request:
        case ("preload", names, paths):
            return "preloaded", (_import_all(names, paths), fork_refusal())
        case ("call", target):
            _function(target)()
            return "called", None
        case ("forget", _):
            return "forgotten", None
        case ("status", pid):
            return "status", _status(pid)
        case ("spawn", target, argument):
            return _spawn(channel, target, descriptors, argument)
        case _:
            raise ValueError(f"not a request: {request!r}")


def _import_all(names: Sequence[str], paths: list[str]) -> dict[str, str]:
    failed = {}
    sys.path[:] = paths
    importlib.invalidate_caches()
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - a module may raise anything; children can do without it
            failed[name] = repr(error)[:200]
    gc.freeze()  # a collection touches every object, and so copies every page that children share (41-92 MiB each)
    return failed


def _status(pid: int) -> int:
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:
        return 0


def _spawn(channel: socket.socket, target: str, descriptors: list[int], argument: bytes) -> tuple[str, Any]:
    server = os.getpid()
    try:
        pid = fork()
    except ForkRefused as refusal:
        return "refused", str(refusal)
    else:
        if pid == 0:
            channel.close()
            be_born(target, descriptors, argument, server)
        return "pid", pid
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _function(target: str) -> Callable[..., Any]:
    module, _, name = target.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


def be_born(target: str, descriptors: Sequence[int], argument: bytes, parent: int) -> NoReturn:
    """In a process that was forked a moment ago: call its function, and end with it."""
    code = 1
    try:
        die_with_parent(parent)
        take_streams(descriptors[0])
        leave_parent(descriptors)
        forget_habits()
        _function(target)(descriptors, argument)
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it is, it is for the log of this process
        traceback.print_exc()
    finally:
        os._exit(code)
