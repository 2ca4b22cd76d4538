"""How many devices a test without a mark is given: what `sooner needs` says of its source, so far as it is sure.

The run gives a test as many devices as lose no coverage (`full`), but no more than it has. What is not sure, and what
this run has too few devices for, gets one device and speaks for itself: a skip is then tried again (`wider`).
"""

import re
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from sooner.door.needs import Need, of_tests
from sooner.model.errors import SettingsError

_WORDS: Final = re.compile(
    r"gpu|cuda|\bhip\b|rocm|nccl|rccl|device_?count|num_devices|n_devices|world_?size|multi_?device|multi_?proc\w*test"
    r"|nproc|torchrun|dtensor|with_comms|(torch|jax|common)[._]distributed|distributed_?test|device_?mesh",
    re.IGNORECASE,
)
"""A test file without any of these needs at most one device: its needs are not asked for."""
_AT_FIRST_S: Final = 2.0
_LEAST_S: Final = 0.2
_SHARE: Final = 0.02
"""So long may needs be evaluated before the first test starts: of the suite's time where that is known. What is left
waits for the next run."""


class Widths:
    """Needs of the tests of one session.

    Args:
        config: Where the root folder, the cache and the rule tables are.
        items: What was collected.
        devices: How many devices the run has.
        expected_s: How long all tests take one after the other, where known.

    Raises:
        pytest.UsageError: A rule table that is not understood.
    """

    def __init__(self, config: pytest.Config, items: Sequence[pytest.Item], *, devices: int, expected_s: float) -> None:
        self._devices = devices
        self._needs: Mapping[int, Need] = {}
        self.missing = 0
        """Files for which there was no time."""
        if devices <= 1:
            return
        asked = {i: item for i, item in enumerate(items) if speaks_of_devices(str(item.path)) and not is_marked(item)}
        if not asked:
            return
        folder = config.cache.mkdir("sooner") if getattr(config, "cache", None) is not None else None
        try:
            answers = of_tests(
                config.rootpath,
                (item.nodeid.partition("::")[0] for item in asked.values()),
                cache=folder / "needs.msgpack" if folder is not None else None,
                classes=config.getini("python_classes"),
                functions=config.getini("python_functions"),
                options=config.getini("addopts"),
                fixtures=config.getini("usefixtures"),
                rules=config.getini("sooner_needs_rules"),
                seconds=max(_LEAST_S, _SHARE * expected_s / devices) if expected_s else _AT_FIRST_S,
            )
        except SettingsError as error:
            raise pytest.UsageError(str(error)) from None
        except Exception as error:  # noqa: BLE001 - no suite stays unrun because its source was not understood
            warnings.warn(f"sooner cannot tell the needs of tests: {error!r}", stacklevel=2)
            return
        self.missing = len(answers.missing)
        found = ((i, answers.of(item.nodeid)) for i, item in asked.items())
        self._needs = {i: need for i, need in found if need is not None and need.confidence != "low"}

    @property
    def wide(self) -> int:
        """Tests that are given more than one device."""
        return sum(self.of(number) > 1 for number in self._needs)

    def of(self, number: int) -> int:
        """Devices for a test without a mark, by its position."""
        need = self._needs.get(number)
        if need is None:
            return 1
        wished = [size for size in (need.full, need.gpu_min, need.min) if isinstance(size, int)]
        width = min(wished[0], self._devices) if wished else 1
        while width > 1 and need.at(width) != "r":
            width -= 1
        return max(1, width)

    def may_run_on_all(self, number: int, width: int, *, are_pretended: bool) -> bool:
        """Whether a test that skipped itself on `width` devices may run on all of the run's.

        Not if its source says for sure that it does not; nor where devices are pretended and it says that these were
        enough: then the test asked for a real one.
        """
        need = self._needs.get(number)
        if need is None or need.confidence != "high":
            return True
        return need.at(self._devices) == "r" and not (are_pretended and need.at(width) == "r")

    def wants_more(self, number: int) -> bool:
        """Whether a test runs on devices, but on more than this run has: its skip is no coverage."""
        need = self._needs.get(number)
        return need is not None and need.min != 0 and isinstance(need.gpu_min, int) and need.gpu_min > self._devices


def is_marked(item: pytest.Item) -> bool:
    """Whether a test says itself how many devices it needs."""
    return item.get_closest_marker("gpus") is not None


@cache
def speaks_of_devices(path: str) -> bool:
    """Whether a test file has a word that makes more than one device thinkable."""
    try:
        return bool(_WORDS.search(Path(path).read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return False
