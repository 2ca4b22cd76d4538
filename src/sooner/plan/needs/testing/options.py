"""Options that a project adds to pytest's command line, and the numbers that they are by default."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.state import ANY_OPTION
from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Ext,
    Func,
    Kwargs,
    Mod,
    Native,
    OutOfFuel,
    Raised,
    Skip,
    Soft,
    Unknown,
    hard,
)
from sooner.plan.needs.settings import values_of

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

CONFIG: Final = "config"
"""What is at pytest's `config`, by its path."""
_BY_ACTION: Final = {"store_true": False, "store_false": True}
"""What a switch is that is told no default; any other option is None."""
_OF_PYTEST: Final = {"k": "", "keyword": "", "m": "", "markexpr": "", "verbose": 0, "collectonly": False}
"""What options of pytest's own are where nobody says anything."""


class Options(Unknown):
    """What pytest keeps options in (`config.option`).

    Args:
        value: Gives an option's value by its name.
    """

    __slots__ = ("value",)

    def __init__(self, value: Callable[[str], Any]) -> None:
        super().__init__("config.option")
        self.value = value

    def attribute(self, _machine: "Machine", name: str) -> Any:
        """An option."""
        return self.value(name)


def configuration(machine: "Machine", modules: list[Mod]) -> Ext:
    """What pytest calls `config`: its options are asked for when one is looked up.

    An option is what `addopts` says, or by default, which somebody may have changed; where a test would never run by
    that, it is the other choice (`choices=("cpu", "cuda")`), or nobody knows what it is, a number (`--gpus`, 2) aside.

    Args:
        machine: Where the modules were evaluated.
        modules: The conftests and plugins of a test file, and the file.
    """
    config = Ext(CONFIG)
    found: dict[str, Any] = {}
    others: dict[str, list[Any]] = {}
    asked: list[bool] = []

    def value(name: Any) -> Any:
        if not asked:
            asked.append(True)
            with machine.apart(quiet=1):  # whichever test is the first to ask
                found.update(_added(machine, modules, others))
        default = found.get(_name(name), MISSING) if isinstance(name, str) else MISSING
        if default is None or isinstance(default, str | bool):
            machine.trace.opted = True
            another = _other(default, others.get(_name(name), ()))
            machine.trace.is_another |= another is not MISSING
            default = another if ANY_OPTION in machine.ignored else default
        known = default is None or isinstance(default, str | int | float)
        return Soft(default) if known else Unknown(f"config.getoption({name})")

    def getoption(args: list[Any], kwargs: dict[str, Any]) -> Any:
        return value(hard(args[0] if args else kwargs.get("name")))

    config.attrs["option"] = Options(value)
    config.attrs |= {"getoption": Native("getoption", getoption), "getvalue": Native("getvalue", getoption)}
    for module in modules:
        own = {name.partition(".")[2]: value for name, value in module.configured.items() if name.startswith(CONFIG)}
        config.attrs |= {name: value for name, value in own.items() if "." not in name}
    return config


def _name(option: str) -> str:
    return option.lstrip("-").replace("-", "_")


def _other(default: Any, choices: Sequence[Any]) -> Any:
    """What an option is that is not its default, as far as its choices say: of kinds of devices, not the host."""
    others = [each for each in choices if isinstance(each, str) and each != default]
    if default == "cpu" and (not choices or "cuda" in others):
        return "cuda"
    return others[0] if len(others) == 1 and isinstance(default, str) else MISSING


def _added(machine: "Machine", modules: list[Mod], others: dict[str, list[Any]]) -> dict[str, Any]:
    """The defaults of all options that `pytest_addoption` of some modules adds, by the names of their values.

    Args:
        machine: Where the modules were evaluated.
        modules: The conftests and plugins of a test file, and the file.
        others: Filled with the choices of those that have some.
    """
    found: dict[str, Any] = dict(_OF_PYTEST)
    parser = Ext("parser")
    words = machine.settings.options

    def add(args: list[Any], kwargs: dict[str, Any]) -> None:
        names = [hard(each) for each in args]
        long = [each for each in names if isinstance(each, str) and each.startswith("--")]
        default = hard(kwargs["default"]) if "default" in kwargs else _BY_ACTION.get(hard(kwargs.get("action")))
        choices = [hard(each) for each in machine.items_of(kwargs.get("choices")) or ()]
        default = _told(machine, words, long, kwargs, default)
        for name in [hard(kwargs["dest"])] if "dest" in kwargs else long:
            if isinstance(name, str):
                found[_name(name)], others[_name(name)] = default, choices
        for name in long:
            found.setdefault(_name(name), default)
            others.setdefault(_name(name), choices)

    parser.attrs = {
        "addoption": Native("addoption", add),
        "_addoption": Native("_addoption", add),
        "getgroup": Native("getgroup", lambda _args, _kwargs: parser),
    }
    for name in ("k", "m"):
        told = next(reversed([*values_of(words, f"-{name}")]), "")
        found |= dict.fromkeys((name, "keyword" if name == "k" else "markexpr"), told)
    for module in modules:
        hook = module.env.names.get("pytest_addoption")
        if isinstance(hook, Func):
            try:
                machine.call(hook, [parser], {})
            except (Raised, Skip, OutOfFuel):
                continue
    return found


def _told(machine: "Machine", words: Sequence[str], names: list[str], kwargs: Kwargs, default: Any) -> Any:
    """What the words that pytest is always told make of an option; its default where they do not name it."""
    action = hard(kwargs.get("action", "store"))
    if action in _BY_ACTION:
        return not _BY_ACTION[action] if any(name in words for name in names) else default
    given = [value for name in names for value in values_of(words, name)]
    if not given:
        return default
    values = [_converted(machine, value, kwargs.get("type")) for value in given]
    return values if action == "append" else values[-1]


def _converted(machine: "Machine", text: str, kind: Any) -> Any:
    if kind is None:
        return text
    try:
        return hard(machine.call(kind, [text], {}))
    except (Raised, Skip, OutOfFuel):
        return UNKNOWN
