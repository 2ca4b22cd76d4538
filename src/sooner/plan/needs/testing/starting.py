"""What conftests and plugins do when pytest starts, before it imports any test: what they set, and whether they can."""

from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.comparisons import HOST_ERRORS
from sooner.plan.needs.evaluator.values import UNKNOWN, Ext, Func, Mod, Native, OutOfFuel, Raised, Skip
from sooner.plan.needs.testing.options import CONFIG, configuration

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_AT_START: Final = ("pytest_configure", "pytest_sessionstart")
"""Hooks that pytest calls once, before it collects."""


def session_of(config: Ext) -> Ext:
    """What pytest calls `session`."""
    session = Ext("pytest.Session")
    session.attrs["config"] = config
    return session


def start(machine: "Machine", module: Mod) -> None:
    """Call what pytest calls once; what it sets on `config`, and which plugins it registers, is kept with the module.

    What it does with a device is no test's work; most that it raises else is our ignorance of pytest's own objects.

    Raises:
        Raised: A device is not there.
    """
    hooks = [found for each in _AT_START if isinstance(found := module.env.names.get(each), Func)]
    if not hooks:
        return
    above = [machine.modules[each] for each in machine.sources.conftests(module.path) if each in machine.modules]
    config = configuration(machine, above if module in above else [*above, module])
    config.attrs["pluginmanager"] = _manager(module)
    given = {"config": config, "session": session_of(config)}
    for hook in hooks:
        machine.trace.asked = machine.trace.reach = 0
        try:
            machine.call(hook, [given.get(name, UNKNOWN) for name in hook.positional], {})
        except (Raised, Skip, OutOfFuel, *HOST_ERRORS) as stop:
            if isinstance(stop, Raised) and stop.device:
                raise
        finally:
            module.asked = max(module.asked, machine.trace.asked, machine.trace.reach)
            module.configured |= {
                name: value for name, value in machine.overrides.items() if name.startswith((f"{CONFIG}.", "pytest."))
            }


def _manager(module: Mod) -> Ext:
    """`config.pluginmanager`."""

    def register(args: list[Any], kwargs: dict[str, Any]) -> None:
        module.registered += [args[0] if args else kwargs.get("plugin")]

    manager = Ext("config.pluginmanager")
    manager.attrs["register"] = Native("register", register)
    return manager
