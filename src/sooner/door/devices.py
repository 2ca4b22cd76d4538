"""The devices of a pytest session: found once, before anything is imported; leased while tests run on them."""

import os
import pickle
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

from sooner.devices.find import find_devices
from sooner.devices.leases import LeaseBook, lease_root
from sooner.devices.masks import visible_env
from sooner.model.devices import Device
from sooner.model.errors import SoonerError
from sooner.run.holding import Holding

_PATIENCE_S: Final = 1.0
_POLL_S: Final = 0.1
_PRETENDED: Final = ("virtual:", "cpu:")
_found: dict[str, tuple[Device, ...]] = {}


def session_devices(spec: str) -> tuple[Device, ...]:
    """The devices that `--gpus` names, as they were seen before the mask for collection was set.

    Raises:
        DevicesError: The spec is not understood, or asks for more than there is.
    """
    if spec not in _found:
        found = _find(spec) if spec.startswith(_PRETENDED) else _find_in_a_child(spec)
        if isinstance(found, SoonerError):
            raise found
        _found[spec] = found
    return _found[spec]


def _find(spec: str) -> tuple[Device, ...] | SoonerError:
    try:
        return find_devices(spec, os.environ).devices
    except SoonerError as error:
        return error


def _find_in_a_child(spec: str) -> Any:
    """Look for real devices in a child: with a driver's files open, this process could not be forked any more."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            data = pickle.dumps(_find(spec))
            with os.fdopen(write, "wb") as file:
                file.write(data)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        data = file.read()
    os.waitpid(pid, 0)
    try:
        return pickle.loads(data)  # noqa: S301 - our own fork's
    except Exception:  # noqa: BLE001 - an error that cannot be pickled is found again here, where nothing follows it
        return _find(spec)


def mask_for_collection(spec: str) -> None:
    """Show one device to everything that is imported from now on.

    Raises:
        pytest.UsageError: As `session_devices`.
    """
    try:
        os.environ.update(visible_env(session_devices(spec)[:1]))
    except SoonerError as error:
        text = str(error).removeprefix("--devices ").replace("--devices ", "--gpus=")  # as `sooner run` calls them
        raise pytest.UsageError(f"--gpus: {text}") from error


def lease_all(devices: Sequence[Device], *, holder: str, tell: Callable[[str], object] = lambda _: None) -> Holding:
    """Lease all devices, waiting for other runs behind the turnstile.

    Args:
        devices: What is leased.
        holder: Who others are told to wait for.
        tell: Hears, once, that this takes more than a moment.
    """
    holding = Holding({"": LeaseBook(lease_root(os.environ))}, devices, holder=holder)
    patience_ends = time.monotonic() + _PATIENCE_S
    while True:
        holding.acquire()
        if not (missing := holding.missing):
            holding.end_gathering()
            return holding
        if time.monotonic() > patience_ends:
            patience_ends = float("inf")
            held = holding.holder_of(missing[0])
            tell(f"waiting for {devices[missing[0]].id}" + (f", held by {held}" if held else ""))
        if not holding.may_gather():
            holding.release(range(len(devices)))
        time.sleep(_POLL_S)
