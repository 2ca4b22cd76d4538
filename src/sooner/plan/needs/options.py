"""Options that a project adds to pytest's command line, and the numbers that they are by default."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.state import ANY_OPTION
from sooner.plan.needs.values import MISSING, Ext, Func, Mod, Native, OutOfFuel, Raised, Skip, Soft, Unknown, hard

if TYPE_CHECKING:
    from sooner.plan.needs.machine import Machine

_BY_ACTION: Final = {"store_true": False, "store_false": True}
"""What a switch is that is told no default; any other option is None."""


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

    An option is what it is by default, which somebody may have changed; where a test would never run by that, nobody
    knows what it is, a number (`--gpus`, 2) aside.

    Args:
        machine: Where the modules were evaluated.
        modules: The conftests and plugins of a test file, and the file.
    """
    config = Ext("config")
    found: dict[str, Any] = {}
    asked: list[bool] = []

    def value(name: Any) -> Any:
        if not asked:
            asked.append(True)
            found.update(_added(machine, modules))
        default = found.get(name.lstrip("-").replace("-", "_"), MISSING) if isinstance(name, str) else MISSING
        if default is None or isinstance(default, str | bool):
            machine.trace.opted = True
            default = MISSING if ANY_OPTION in machine.ignored else default
        known = default is None or isinstance(default, str | int | float)
        return Soft(default) if known else Unknown(f"config.getoption({name})")

    def getoption(args: list[Any], kwargs: dict[str, Any]) -> Any:
        return value(hard(args[0] if args else kwargs.get("name")))

    config.attrs["option"] = Options(value)
    config.attrs |= {"getoption": Native("getoption", getoption), "getvalue": Native("getvalue", getoption)}
    return config


def _added(machine: "Machine", modules: list[Mod]) -> dict[str, Any]:
    """The defaults of all options that `pytest_addoption` of some modules adds, by the names of their values."""
    found: dict[str, Any] = {}
    parser = Ext("parser")

    def add(args: list[Any], kwargs: dict[str, Any]) -> None:
        names = [hard(each) for each in args]
        long = [each for each in names if isinstance(each, str) and each.startswith("--")]
        default = hard(kwargs["default"]) if "default" in kwargs else _BY_ACTION.get(hard(kwargs.get("action")))
        for name in [hard(kwargs["dest"])] if "dest" in kwargs else long:
            if isinstance(name, str):
                found[name.lstrip("-").replace("-", "_")] = default
        for name in long:
            found.setdefault(name.lstrip("-").replace("-", "_"), default)

    parser.attrs = {
        "addoption": Native("addoption", add),
        "_addoption": Native("_addoption", add),
        "getgroup": Native("getgroup", lambda _args, _kwargs: parser),
    }
    for module in modules:
        hook = module.env.names.get("pytest_addoption")
        if isinstance(hook, Func):
            try:
                machine.call(hook, [parser], {})
            except (Raised, Skip, OutOfFuel):
                continue
    return found
