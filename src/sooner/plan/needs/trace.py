"""What was seen while one test was evaluated for one number of visible devices."""

import ast
from typing import Final

from sooner.plan.needs.values import Mod, Skip

ANY: Final = 1
"""It was asked whether there is any device: from one device on the answer is the same."""
COUNT: Final = 1_000_000
"""It was asked how many devices there are: the answer holds for this number only."""

HAVING_NO_HOST: Final = ("CuPy uses a device", "RAPIDS uses a device")
"""What is done by frameworks that do nothing on the host (`why` of their rules): without a device it fails."""


class Trace:
    """A mutable notebook; one for each test and size."""

    def __init__(self) -> None:
        self.touched: set[int] = set()
        """Devices that are used by number."""
        self.used = 0
        """Devices that workers use together, as far as the last of them tells."""
        self.among = 0
        """Ranks that a launcher has started, where the test asks the environment which of them it is: the last."""
        self.counted = False
        """Whether JAX was asked for its devices, which wakes the first one."""
        self.by_itself: str | None = None
        """What the library under test has made that its framework puts on the first device, if there is one."""
        self.may_be_made = False
        """Whether the library under test may make such a thing: on one of several ways, or in what is compiled; or a
        device is named of which nothing is known."""
        self.on_all = False
        """Whether the library under test starts ranks of NCCL's, and nobody knows how many: as many as there are."""
        self.spread = 0
        """Over how many devices the library under test has spread a model (`DataParallel`)."""
        self.reach = 0
        """Devices that must be visible."""
        self.ranks: int | None = None
        self.backends: set[str] = set()
        self.places: dict[tuple[str, int], str] = {}
        """Where something that decides stands, and what it is."""
        self.vacuous = False
        self.asked = 0
        """What was asked about visible devices: the fewest with the same answers; COUNT if there are no others."""
        self.questions = 0
        """How often the number of visible devices was asked for anything, also where it limits nothing from below."""
        self.doubted = False
        """Whether a file skips itself, while it is imported, under a condition that is not known."""
        self.opted = False
        """Whether an option of the project was asked for that is no number."""
        self.parts = 0
        """Parts of the test that ran (`self.subTest`)."""
        self.left_out: Skip | None = None
        """Why the first part that did not run was skipped."""
        self.unsure: list[str] = []
        """What could not be evaluated and might decide."""

    @property
    def is_idle(self) -> bool:
        """Whether no device was used and no rank started."""
        return not (self.touched or self.used or self.ranks)

    def ask(self, what: int) -> None:
        """Devices are asked for: the answer is the same from `what` on, or (`COUNT`) for this number only."""
        self.asked = max(self.asked, what)

    def note(self, path: str, line: int, what: str) -> None:
        """Remember a place that decides."""
        if path and line and len(self.places) < 64:  # noqa: PLR2004 - a test's evidence is a few lines
            self.places.setdefault((path, line), what)

    def rank_count(self, count: int, size: int) -> None:
        """So many processes were started."""
        self.ranks = count if self.ranks is None else max(self.ranks, count)
        if count == 0 and size == 0:
            self.vacuous = True


class Modules:
    """The modules that were executed for one number of visible devices."""

    def __init__(self) -> None:
        self.models: dict[str, Mod] = {}


def asks_for_any(node: ast.Compare) -> bool:
    """Whether a comparison of a number of devices (`N > 0`) has the same answer for all numbers from one on."""
    if len(node.ops) != 1 or not isinstance(node.comparators[0], ast.Constant):
        return False
    kinds = {0: (ast.Gt, ast.LtE, ast.Eq, ast.NotEq), 1: (ast.GtE, ast.Lt)}
    value = node.comparators[0].value
    return isinstance(node.ops[0], kinds.get(value, ()) if type(value) is int else ())
