"""What the machine carries along while it evaluates, and the limits of it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.growing import Added
from sooner.plan.needs.evaluator.slots import Slots
from sooner.plan.needs.evaluator.statements import Statements
from sooner.plan.needs.evaluator.suspending import Rest
from sooner.plan.needs.evaluator.trace import Trace
from sooner.plan.needs.evaluator.undoing import Changed
from sooner.plan.needs.evaluator.values import Func, Mod, Raised, Skip
from sooner.plan.needs.rules import Rules
from sooner.plan.needs.sources import Sources

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.natives import Natives
    from sooner.plan.needs.testing.testing_names import Awaiting

BY_PYTORCH: Final = "PyTorch uses a device"
"""What the library under test does without an array of a framework that chooses itself."""
DEEPEST: Final = 24
_DOUBTED: Final = ("AttributeError", "KeyError", "IndexError", "TypeError", "ValueError", "ZeroDivisionError")
EVERYWHERE: Final = ("*", 0)
"""As a place that is not believed: no failure but those for lack of devices is believed."""
ANY_OPTION: Final = ("--", 0)
"""As a place that is not believed: what an option of the project is by default, numbers aside."""
MODULE_FUEL: Final = 180_000
LIBRARY_FUEL: Final = 1_500
TEST_FUEL: Final = 30_000


class Listener:
    """Who calls the library under test, and what a function of the tests takes up again that is called from there.

    Args:
        trace: Of the test.
        fuel: Of the test.
        path: The file that calls.
        called: The library's function.
    """

    __slots__ = ("_called", "_path", "depth", "fuel", "trace", "was_called")

    def __init__(self, trace: Trace, fuel: int, path: str, called: Func) -> None:
        self.trace = trace
        self.fuel = fuel
        self._path = path
        self._called = called
        self.depth = 0
        """How many functions of the library, one inside of the other, are being evaluated."""
        self.was_called = False
        """Whether a function of the tests was called."""

    def gave(self, module: Mod) -> bool:
        """Whether a module is the tests', rather than what the library has for tests and calls itself."""
        if module.is_model or not module.is_test_code:
            return False
        return module.path == self._path or _package(module) != _package(self._called.module)


def _package(module: Mod) -> str:
    return module.name.removeprefix("src.").partition(".")[0]


Refusal = tuple[tuple[str, int], tuple[str, int]]
"""Where the test calls the library under test, and where that raises."""


class State(Statements):
    """The mutable state of one machine.

    Args:
        size: Visible devices.
        sources: The project.
        rules: What is known of frameworks.
    """

    natives: "Natives"
    again: Callable[[], None] | None = None
    """Runs the test at hand once more, as a rank of a launcher does that is told to run pytest on it."""
    unfinished: tuple[tuple[list[Rest], bool], ...] = ()
    """What is still to be done after the test, and whether that is done after each single one."""
    listener: Listener | None = None
    """Who called the library under test, for the functions of the tests that it calls in its turn."""
    awaited: tuple["Awaiting", ...] = ()
    """What what is evaluated is expected to raise, the outermost first."""
    sure: tuple[int, int] = (0, 0)
    """Ways that were not known, and doubts, when the test called the library under test."""
    is_declared: bool = False
    """Whether the test has only said how many devices there are."""
    is_pretended: bool = False
    """Whether the group of ranks that the process is in only pretends to be one."""
    working: str = ""
    """The file whose function is being evaluated."""
    id_hooks: tuple[Func, ...] = ()
    """What the conftests of the file at hand have to name cases (`pytest_make_parametrize_id`)."""
    built: set[str]
    """Modules of packages of the tree that are not in it (compiled, or made when it is built), and names from there."""
    written: dict[str, Any]
    """Programs that the test has written, by the names of their files."""
    of_any_length: dict[int, Any]
    """Lists that have grown in a loop of which nobody knows how often it turns."""
    as_many: dict[int, Any]
    """Ranges and lists that have as many items as there are devices."""
    has_lazy: bool = False
    """Whether the test at hand has made a generator."""
    slots: Slots | None = None
    turning: list[int]
    """The loops that are under way (ids of their nodes), the outermost first."""
    added: Added
    """Items of lists that only one of several ways has added."""
    trying = 0
    """Above zero: in the body of a `try`, where a variable of the environment that is not set is an error."""
    ended: dict[tuple[str, int], Raised | Skip | None]
    """Where the test calls the library under test, and what came out of that, if anything did."""
    ended_while_loading: dict[tuple[str, int], Raised | Skip | None]
    """The same of the bodies of modules of the tests."""
    refused: frozenset[Refusal] = frozenset()
    """What the library under test raises for lack of devices: where the test calls it, and where it is raised."""
    called_from: tuple[str, int] = ("", 0)
    """Where the test has called what is under way in the library."""
    cut_short = 0
    """Functions of the library under test that were not followed to their end."""
    library_fuel = 2 * LIBRARY_FUEL
    """What may still be spent on functions of the library under test, for the test at hand."""
    object_fuel = 2 * LIBRARY_FUEL
    """What may still be spent on objects of the library under test, for the test at hand."""
    made_by_itself: dict[int, str | None]
    """Functions of the library under test that were seen to make what a framework puts on its first device."""

    def __init__(self, size: int, sources: Sources, rules: Rules) -> None:
        self.size = size
        self.count: int = size
        """The same, as a number that notices what is asked of it."""
        self.sources = sources
        self.rules = rules
        self.trace = Trace()
        self.fuel = MODULE_FUEL
        self.fruitless: dict[int, int] = {}
        """How often in a row a function of the library under test has given nothing, in the tests of one file, with
        the most devices."""
        self.given_up: frozenset[int] = frozenset()
        """Functions of the library under test that are not asked, with no number of devices: those of a test agree."""
        self.depth = 0
        self.under_way: dict[tuple[int, int], list[Any]] = {}
        """What functions that are being evaluated were given, by what is told of their work (`work_of`)."""
        self.loading = False
        """Whether the body of a test file is being executed."""
        self.ended, self.ended_while_loading, self.turning = {}, {}, []
        self.changed = Changed()
        """What the test at hand has changed."""
        self.forks, self.doubts, self.guesses, self.defaults = 0, 0, 0, 0
        self.quiet = 0
        """Above zero: inside the library under test, whose device work is not this test's to answer for."""
        self.refusing = False
        """Whether a record of the library under test looks at what it was given: what it raises is believed."""
        self.cached: dict[tuple[Any, ...], tuple[Any, Func, list[Any]]] = {}
        """What cached functions have given in the test at hand, with the function and what it was given."""
        self.overrides: dict[str, Any] = {}
        """What a test has patched, by dotted name."""
        self.of_any_length, self.as_many, self.added = {}, {}, Added()
        self.environment: dict[str, Any] = {}
        self.everywhere: dict[str, dict[str, Any]] = {}
        """By file: what it, or a function of its own, asks of the environment when something is imported."""
        self.current_device = 0
        """What `"cuda"` without a number means: what was chosen last."""
        self.processes = 0
        """Processes that the test has started one by one."""
        self.kept = 0.0
        """Devices that actors and groups of the test keep."""
        self.rank: tuple[int, int] | None = None
        self.rank_is_asked_for = 0
        """What a worker has asked of its rank (`rank == 0`, `rank % 2`): others may do other things."""
        self.is_gathering = False
        """Whether workers are evaluated one after the other."""
        self.no_device_work = 0
        self.watched: dict[int, list[tuple[list[Any], dict[str, Any]]]] = {}
        """Calls by their node, and what each was given every time that it was made."""
        self.modules: dict[str, Mod] = {}
        self.current: tuple[str, int] = ("", 0)
        self.ignored: frozenset[tuple[str, int]] = frozenset()
        """Places whose skips and failures are not believed."""

    def is_doubtful(self) -> bool:
        """Whether what the library under test does here stands under a condition that is not known."""
        return (self.forks, self.doubts) != self.sure

    def is_doubted(self, raised: Raised, questions: int) -> bool:
        """Whether a module's failure is more likely our ignorance than a module that nobody can import.

        Args:
            raised: The failure.
            questions: What had been asked of devices before what fails (`Trace.questions`).
        """
        if raised.kind == "AssertionError":
            return not raised.device and self.trace.questions == questions
        return not raised.device and (raised.soft or raised.kind in _DOUBTED)
