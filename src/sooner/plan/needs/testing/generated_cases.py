"""Cases that `pytest_generate_tests` asks for: of the test file, of a class in it, and of the conftests above it."""

from typing import Any, Final

from sooner.plan.needs.evaluator.machine import Machine
from sooner.plan.needs.evaluator.values import (
    UNKNOWN,
    Bound,
    Cls,
    Ext,
    Func,
    Inst,
    Mark,
    Native,
    OutOfFuel,
    Raised,
    Skip,
    Wrapped,
    hard,
)
from sooner.plan.needs.testing.axes import DOUBTED
from sooner.plan.needs.testing.fixtures import Fixtures, argument_names

_HOOK: Final = "pytest_generate_tests"


def generated(
    fixtures: Fixtures, func: Any, cls: Cls | None, wanted: list[str], marks: list[Any]
) -> tuple[list[Mark], list[Mark]]:
    """The parametrisations that hooks ask for, as marks: of the file and its class, and of the plugins.

    Args:
        fixtures: What the test sees.
        func: The test.
        cls: Its class.
        wanted: The fixtures that it uses.
        marks: Its marks.
    """
    machine = fixtures.machine
    of_class = cls.find(_HOOK) if cls is not None else None
    of_file: list[Any] = []
    if cls is not None and isinstance(of_class, Func):
        of_file = [Bound(of_class, Inst(cls))]
    elif cls is not None and isinstance(of_class, Wrapped):
        of_file = [machine.bound(of_class, None, cls)]
    of_plugins: list[Any] = []
    for module in reversed(fixtures.modules):
        hook = module.env.names.get(_HOOK)
        if isinstance(hook, Func):
            (of_file if module.path == fixtures.path else of_plugins).append(hook)
    if not of_file and not of_plugins:
        return [], []
    asked: list[Mark] = []
    metafunc = _metafunc(machine, marks, asked)
    metafunc.attrs |= {"config": fixtures.config, "fixturenames": list(wanted), "function": func, "cls": cls}
    metafunc.attrs["module"] = fixtures.modules[-1]
    own = _asked(machine, of_file, metafunc, asked)
    return own, _asked(machine, of_plugins, metafunc, asked)[len(own) :]


def _asked(machine: Machine, hooks: list[Any], metafunc: Ext, asked: list[Mark]) -> list[Mark]:
    """All that was asked for until the last of some hooks."""
    for hook in hooks:
        given = {name: metafunc if name == "metafunc" else UNKNOWN for name in argument_names(hook)}
        try:
            machine.call(hook, [], given)
        except (Raised, Skip, OutOfFuel):
            machine.guesses += 1
    return list(asked)


def _metafunc(machine: Machine, marks: list[Any], asked: list[Mark]) -> Ext:
    """What pytest gives to the hooks; parametrisations are kept in `asked`."""

    def parametrize(args: list[Any], kwargs: dict[str, Any]) -> None:
        made = Mark("parametrize", tuple(args), kwargs, *machine.current)
        if not machine.forks:
            asked.append(made)
        else:
            _ask_on_one_way(machine, made, asked)

    def named(args: list[Any], _kwargs: dict[str, Any]) -> list[Mark]:
        name = hard(args[0]) if args else None
        return [each for each in marks if isinstance(each, Mark) and name in (None, each.name)]

    definition, metafunc = Ext("definition"), Ext("metafunc")
    definition.attrs = {
        "get_closest_marker": Native("get_closest_marker", lambda args, _: next(iter(named(args, _)), None)),
        "iter_markers": Native("iter_markers", named),
    }
    metafunc.attrs = {
        "definition": definition,
        "parametrize": Native("parametrize", parametrize),
    }
    return metafunc


def _ask_on_one_way(machine: Machine, made: Mark, asked: list[Mark]) -> None:
    """A parametrisation that a hook asks for under a condition that is not known: another way may ask for the same."""
    names, values = _named(made)
    for place, other in enumerate(asked):
        before = _named(other)
        if DOUBTED.name in other.kwargs and before[0] == names:
            both = machine.either(before[1], values)
            kwargs = {key: value for key, value in made.kwargs.items() if not key.startswith("arg")}
            if not isinstance(both, list):  # each is there on one way only
                both = [*(machine.items_of(before[1]) or ()), *(machine.items_of(values) or ())]
                kwargs[DOUBTED.name] = True
            asked[place] = Mark("parametrize", (names, both, *made.args[2:]), kwargs, made.path, made.line)
            return
    asked.append(Mark("parametrize", made.args, made.kwargs | {DOUBTED.name: True}, made.path, made.line))


def _named(mark: Mark) -> tuple[Any, Any]:
    """The names and values of a parametrisation."""
    given = dict(zip(("argnames", "argvalues"), mark.args, strict=False)) | mark.kwargs
    return hard(given.get("argnames")), hard(given.get("argvalues"))
