"""What plugins of pytest give to tests: fixtures among parameters (pytest-lazy-fixtures), repeated tests."""

from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import UNKNOWN, Args, Function, Kwargs, Mark, Unknown, hard
from sooner.plan.needs.testing.testing_names import Part

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_MOST_TURNS: Final = 1000


class Lazy(Unknown):
    """A fixture among the parameters of a test, by its name; `name.attribute` is a part of it."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__("lazy_fixture()")
        self.name = name


def turns_of(mark: Mark) -> int:
    """How often `@pytest.mark.repeat(3)` has a test run; 1 where that is not known."""
    count = hard(mark.args[0]) if len(mark.args) == 1 and mark.name == "repeat" else 1
    return count if type(count) is int and 1 < count <= _MOST_TURNS else 1


def _lazy(_machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    name = hard(args[0] if args else kwargs.get("name"))
    return Lazy(name) if isinstance(name, str) else UNKNOWN


def _pedantic(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`benchmark.pedantic(function, args=(1,), kwargs={...}, setup=f)`: it is run.

    Raises:
        Raised, Skip: As the function does.
    """
    names = ("target", "args", "kwargs", "setup")
    told = {**dict(zip(names, args, strict=False)), **kwargs}
    setup, given, named = (hard(told.get(each)) for each in ("setup", "args", "kwargs"))
    if setup is not None:
        made = hard(machine.call(setup, [], {}))
        if isinstance(made, tuple) and len(made) == 2:  # noqa: PLR2004 - arguments, by position and by name
            given, named = made
    return machine.call(
        told.get("target", UNKNOWN), machine.items_of(given) or [], dict(named) if isinstance(named, dict) else {}
    )


def _timed(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`benchmark(function, 1, n=2)`: it is run.

    Raises:
        Raised, Skip: As the function does.
    """
    return machine.call(args[0], args[1:], kwargs) if args else UNKNOWN


PLUGINS: Final[dict[str, Function]] = {
    "pytest_lazyfixture.lazy_fixture": _lazy, "pytest.lazy_fixture": _lazy, "pytest_lazy_fixtures.lf": _lazy,
    "pytest_lazy_fixtures.lazy_fixture": _lazy, "benchmark.pedantic": _pedantic, "benchmark": _timed,
    "subtests.test": lambda _machine, _args, _kwargs: Part(),
}  # fmt: skip
