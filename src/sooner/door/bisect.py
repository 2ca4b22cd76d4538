"""Finds the tests after which another one fails that passes by itself: `sooner bisect-pollution`.

Every probe is a worker of its own that runs some of the tests which ran before the victim, then the victim, under the
same guards as in the run. The search is delta debugging (Zeller and Hildebrandt, "Simplifying and isolating
failure-inducing input", 2002): halves first, then complements, so that one polluter takes about log2(n) probes and a
conspiracy of several is found too.
"""

import contextlib
import os
from collections.abc import Callable, Sequence

import pytest

from sooner.door.devices import lease_all, session_devices
from sooner.door.durations import POLLUTION
from sooner.door.hands import Workshop
from sooner.door.units import DoorUnit, Level, width_of
from sooner.door.worker import Ran
from sooner.model.outcomes import ExitCode
from sooner.model.units import UnitKey


class Bisector:
    """Replaces pytest's loop over items by the search.

    Args:
        config: With `--bisect-pollution`: the victim's id, or `last`.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._sequence = _sequence(config, config.option.bisect_pollution)
        if config.args_source is not pytest.Config.ArgsSource.ARGS:
            files = dict.fromkeys(nodeid.split("::")[0] for nodeid in self._sequence)
            config.args = [str(config.rootpath / file) for file in files]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Search, and say what was found."""
        numbers = {item.nodeid: i for i, item in enumerate(session.items)}
        victim = self._sequence[-1]
        if victim not in numbers:
            raise pytest.UsageError(f"{victim} was not collected: name its file after `--`")
        before = [numbers[nodeid] for nodeid in self._sequence[:-1] if nodeid in numbers]
        devices = session_devices(self._config.option.gpus)
        width = width_of(session.items[numbers[victim]], 1)
        with contextlib.closing(lease_all(devices, holder=f"bisect-{os.getpid()}")):
            probes = _Probes(Workshop(session, devices, list(numbers)), tuple(range(width)), session)
            with contextlib.closing(probes):
                self._search(session, probes, before, numbers[victim])
        return True

    def _search(self, session: pytest.Session, probes: "_Probes", before: list[int], victim: int) -> None:
        terminal = session.config.get_terminal_writer()
        name = session.items[victim].nodeid

        def fails_after(numbers: Sequence[int]) -> bool:
            return probes.fails(numbers, victim)

        terminal.line("")
        if fails_after(()):
            terminal.line(f"{name} fails by itself: no test pollutes it")
        elif not fails_after(before):
            terminal.line(f"{name} passes after the {len(before)} tests before it: the pollution was not reproduced")
        else:
            found = minimal(before, fails_after)
            terminal.line(f"{name} fails after {'this test' if len(found) == 1 else 'these tests'}:")
            for number in found:
                terminal.line(f"    {session.items[number].nodeid}")
            terminal.line(f"found with {probes.count} probes among {len(before)} tests; to see it:")
            ids = " ".join(f"'{session.items[number].nodeid}'" for number in (*found, victim))
            terminal.line(f"    pytest {ids}")
            return
        session.shouldfail = "nothing found"
        raise pytest.exit.Exception("nothing found", returncode=int(ExitCode.SOME_FAILED))


class _Probes:
    """Runs items in workers of their own."""

    def __init__(self, workshop: Workshop, devices: tuple[int, ...], session: pytest.Session) -> None:
        self._workshop = workshop
        self._devices = devices
        self._session = session
        self.count = 0

    def fails(self, before: Sequence[int], victim: int) -> bool:
        """Whether the victim fails after these tests."""
        self.count += 1
        items = (*before, victim)
        unit = DoorUnit(
            key=UnitKey("probe"), items=items, devices=len(self._devices), level=Level.WARM, keeps_fixtures=True
        )
        hand = self._workshop.make(self._devices, Level.WARM, str(self._session.items[victim].path), guarded=True)
        hand.ask(unit, items, waits="")
        hand.say("stop")
        last: Ran | None = None
        for kind, value in hand.last_words():
            last = value[-1] if kind == "items" else last
        self._workshop.unmake(hand)
        return last is None or last.item != victim or last.has_failed

    def close(self) -> None:
        """End the workshop."""
        self._workshop.close()


def _sequence(config: pytest.Config, victim: str) -> list[str]:
    """What ran in the victim's process, the victim last, as the last runs remember it.

    Raises:
        pytest.UsageError: Nothing is remembered of it.
    """
    cache = getattr(config, "cache", None)
    known: list[list[str]] = cache.get(POLLUTION, []) if cache is not None else []
    for sequence in reversed(known):
        if sequence[-1] in (victim, _nodeid(config, victim)) or victim == "last":
            return sequence
    what = "no run with --gpus saw pollution" if victim == "last" else f"no run with --gpus saw {victim} polluted"
    others = ", ".join(dict.fromkeys(sequence[-1] for sequence in reversed(known)))
    then = f"it knows {others}" if others else "run `pytest --gpus=...` until it reports pollution"
    raise pytest.UsageError(f"--bisect-pollution: {what} (pytest's cache does not have it): {then}")


def _nodeid(config: pytest.Config, test: str) -> str:
    """The id of a test that is named by a path as on pytest's command line."""
    file, *names = test.split("::")
    path = os.path.relpath(os.path.normpath(config.invocation_params.dir / file), config.rootpath)
    return "::".join((path.replace(os.sep, "/"), *names))


def minimal(items: Sequence[int], fails: Callable[[Sequence[int]], bool]) -> list[int]:
    """A part of `items`, in order, that fails and of which no single piece can be left out.

    Args:
        items: Fails as a whole.
        fails: Whether a part of it fails.
    """
    current, pieces = list(items), 2
    while len(current) > 1:
        size = -(-len(current) // pieces)
        parts = [current[i : i + size] for i in range(0, len(current), size)]
        smaller = next((part for part in parts if fails(part)), None)
        if smaller is not None:
            current, pieces = smaller, 2
            continue
        without = (
            [item for other in parts if other is not part for item in other]
            for part in parts
            if pieces > 2  # noqa: PLR2004
        )
        rest = next((one for one in without if fails(one)), None)
        if rest is not None:
            current, pieces = rest, max(pieces - 1, 2)
        elif size == 1:
            break
        else:
            pieces = min(len(current), pieces * 2)
    return current
