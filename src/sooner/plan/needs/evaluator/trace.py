"""What was seen while one test was evaluated for one number of visible devices."""

import ast
from typing import Final, NamedTuple

from sooner.plan.needs.evaluator.values import Skip
from sooner.plan.needs.syntax import last_name

ANY: Final = 1
"""It was asked whether there is any device: from one device on the answer is the same."""
COUNT: Final = 1_000_000
"""It was asked how many devices there are: the answer holds for this number only."""

OF_FIRST: Final = 1
"""It is asked whether a rank is the first one."""
OF_ANY: Final = 2
"""It is asked which rank it is."""
_PARTED: Final = (ast.Mod, ast.FloorDiv)
"""Operations after which the last rank has not the highest number."""

HAVING_NO_HOST: Final = ("CuPy uses a device", "RAPIDS uses a device")
"""What is done by frameworks that do nothing on the host (`why` of their rules): without a device it fails."""


class Seen(NamedTuple):
    """What has been seen of devices (`Trace`): until now, or since something began."""

    touched: set[int]
    of_ranks: set[int]
    used: int
    by_itself: str | None
    spread: int
    on_all: bool

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return any(self[:])

    def beside(self, more: "Seen") -> "Seen":
        """With what has been seen since."""
        return Seen(
            self.touched | more.touched,
            self.of_ranks | more.of_ranks,
            max(self.used, more.used),
            more.by_itself or self.by_itself,
            max(self.spread, more.spread),
            self.on_all or more.on_all,
        )


class Starts:
    """How a test starts workers, if it does; loops are ids of their nodes, which all sizes share."""

    __slots__ = ("are_none", "in_loops", "without_a_turn")

    def __init__(self) -> None:
        self.are_none = False
        """Whether a launcher was asked for no worker."""
        self.in_loops: set[int] = set()
        """Loops that started one, in some turn of theirs."""
        self.without_a_turn: set[int] = set()
        """Loops that had no turn, or were left in the first (`while True: if done: break`), whatever they do."""


class Trace:
    """A mutable notebook; one for each test and size."""

    moves_mocks = False
    """Whether a mock stands where something is moved to a device (`tensor.to = Mock()`)."""
    is_read = False
    """Whether what a program has said that has failed is asked for."""

    def __init__(self) -> None:
        self.touched: set[int] = set()
        """Devices that are used by number."""
        self.used = 0
        """Devices that workers use together, as far as the last of them tells."""
        self.of_ranks: set[int] = set()
        """Devices that workers use by number, while they are evaluated one after the other."""
        self.chosen: set[int] = set()
        """Devices that the worker at hand has chosen (`set_device`), and used if it uses no other."""
        self.among = 0
        """Ranks that a launcher has started, where the test asks the environment which of them it is: the last."""
        self.counted = False
        """Whether JAX was asked for its devices, which wakes the first one."""
        self.by_itself: str | None = None
        """What the library under test has made that its framework puts on the first device, if there is one."""
        self.may_be_made = False
        """Whether the library under test may make such a thing: on one of several ways, or in what is compiled; or a
        device is named of which nothing is known."""
        self.others: set[int] = set()
        """Other devices than the first that the library under test surely uses."""
        self.on_all = False
        """Whether the library under test starts ranks of NCCL's, and nobody knows how many: as many as there are."""
        self.spread = 0
        """Over how many devices the library has spread a model (`DataParallel`), or how many its launcher takes."""
        self.reach = 0
        """Devices that must be visible."""
        self.ranks: int | None = None
        self.backends: set[str] = set()
        self.places: dict[tuple[str, int], str] = {}
        """Where something that decides stands, and what it is."""
        self.starts = Starts()
        self.is_unheard = False
        """Whether a process or a thread has failed, and nobody has asked for its exit code."""
        self.is_told = False
        """Whether one has failed, and somebody has asked: what is raised then says so."""
        self.asked = 0
        """What was asked about visible devices: the fewest with the same answers; COUNT if there are no others."""
        self.questions = 0
        """How often the number of visible devices was asked for anything, also where it limits nothing from below."""
        self.doubted = False
        """Whether a file skips itself, while it is imported, under a condition that is not known."""
        self.opted = False
        """Whether an option of the project was asked for that is no number."""
        self.is_another = False
        """Whether one was asked for of which it is known what else it may be."""
        self.parts = 0
        """Parts of the test that ran (`self.subTest`)."""
        self.left_out: Skip | None = None
        """Why the first part that did not run was skipped."""
        self.unsure: list[str] = []
        """What could not be evaluated and might decide."""

    @property
    def seen(self) -> Seen:
        """What has been seen of devices."""
        return Seen(self.touched, self.of_ranks, self.used, self.by_itself, self.spread, self.on_all)

    @seen.setter
    def seen(self, seen: Seen) -> None:
        self.touched, self.of_ranks, self.used, self.by_itself, self.spread, self.on_all = seen

    @property
    def is_idle(self) -> bool:
        """Whether no device was used and no rank started."""
        return not (self.has_used or self.ranks)

    @property
    def has_used(self) -> bool:
        """Whether a device was used."""
        return bool(self.touched or self.used or self.of_ranks or self.chosen)

    @property
    def all_used(self) -> int:
        """How many devices were used by now."""
        return max(len(self.touched | self.of_ranks), self.used)

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
            self.starts.are_none = True


def asks_for_any(node: ast.Compare) -> bool:
    """Whether a comparison of a number of devices (`N > 0`) has the same answer for all numbers from one on."""
    if len(node.ops) != 1 or not isinstance(node.comparators[0], ast.Constant):
        return False
    kinds = {0: (ast.Gt, ast.LtE, ast.Eq, ast.NotEq), 1: (ast.GtE, ast.Lt)}
    value = node.comparators[0].value
    return isinstance(node.ops[0], kinds.get(value, ()) if type(value) is int else ())


def asks_for_rank(node: ast.expr) -> int:
    """What an expression asks of the rank: nothing, whether it is the first (`self.rank == 0`), or which it is."""
    if not any(last_name(each).lower().endswith("rank") for each in ast.walk(node)):
        return 0
    if isinstance(node, ast.Compare):
        is_zero = isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value == 0
        return OF_FIRST if len(node.ops) == 1 and is_zero and _is_name(node.left) else OF_ANY
    asked = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else node
    return OF_FIRST if _is_name(asked) else 0 if isinstance(asked, ast.BoolOp | ast.Compare) else OF_ANY


def _is_name(node: ast.expr) -> bool:
    node = node.func if isinstance(node, ast.Call) and not node.args else node
    return isinstance(node, ast.Name | ast.Attribute)


def parts_ranks(node: ast.BinOp) -> bool:
    """Whether ranks come to the same numbers by an operation (`rank % 2`)."""
    return isinstance(node.op, _PARTED) and asks_for_rank(node.left) > 0
