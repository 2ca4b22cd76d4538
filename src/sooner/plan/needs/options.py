"""Options that a project adds to pytest's command line, and the numbers that they are by default."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sooner.plan.needs.values import Ext, Func, Mod, Native, OutOfFuel, Raised, Skip, Soft, Unknown, hard

if TYPE_CHECKING:
    from sooner.plan.needs.machine import Machine


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

    A number is what holds by default (`--gpus`, 2); a switch may be on or off, and nobody knows.

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
        number = found.get(name.lstrip("-").replace("-", "_")) if isinstance(name, str) else None
        known = isinstance(number, int | float) and not isinstance(number, bool)
        return Soft(number) if known else Unknown(f"config.getoption({name})")

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
        for name in [hard(kwargs["dest"])] if "dest" in kwargs else long:
            if isinstance(name, str):
                found[name.lstrip("-").replace("-", "_")] = hard(kwargs.get("default"))
        for name in long:
            found.setdefault(name.lstrip("-").replace("-", "_"), hard(kwargs.get("default")))

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
