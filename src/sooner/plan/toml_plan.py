"""PLAN.toml: reads it, checks it, and says exactly where it is wrong.

    [defaults]                          # any key of a unit but name, command, run, after and junit
    timeout_s = 600

    [[unit]]
    name = "attention"
    command = ["pytest", "tests/attention.py", "--junitxml={junit}"]
    env = { FUSED = "0" }
    devices = 2
    after = ["build"]

A unit is identified by its name and its variant: what its own `env` sets otherwise than `[defaults]`. Every
error is one `PlanError` with file, line and key; `unit[3]` is the fourth unit, as in TOML and JSON paths.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from sooner.model.errors import PlanError
from sooner.model.placeholders import uses
from sooner.model.text import file_name
from sooner.model.units import Need, Plan, Unit, UnitKey, unit_key, variant_of
from sooner.plan import checking
from sooner.plan.lines import Locator, unit_lines
from sooner.plan.naming import name_of
from sooner.plan.order import find_cycle

_Check = Callable[[Any], str]

UNIT_KEYS: Final[Mapping[str, _Check]] = {
    "name": checking.name,
    "command": checking.command,
    "run": checking.shell_line,
    "env": checking.environment,
    "devices": checking.count,
    "memory_mib": checking.count,
    "timeout_s": checking.seconds,
    "after": checking.names,
    "priority": checking.whole_number,
    "junit": checking.text,
    "ports": checking.ports,
    "shared": checking.truth,
    "cwd": checking.text,
}
DEFAULT_KEYS: Final = UNIT_KEYS.keys() - {"name", "command", "run", "after", "junit"}
_TOP_KEYS: Final = ("defaults", "unit")
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_]\w*)\}")
_SHELL: Final = ("bash", "-c")
"""bash, not sh: the lines come from CI scripts, which are bash's (`[[`, `source`, `set -o pipefail`)."""


def read_plan(text: str, *, source: str, env: Mapping[str, str] | None = None) -> Plan:
    """The units of a plan in TOML, in the order in which they stand; none at all is a plan too.

    Args:
        text: Content of the file.
        source: Its name, for messages.
        env: What `${NAME}` in `cwd` and `junit` stands for; None leaves it as it is.

    Raises:
        PlanError: The first thing that is wrong.
    """
    tables = _parsed(text, source)
    reader = _Reader(text, source, env)
    defaults = reader.defaults(tables)
    plan = Plan(source=source, units=tuple(reader.units(tables, defaults)))
    return reader.ordered(plan)


def _parsed(text: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$", str(error))
        line = int(found.group(1) or text.count("\n") + 1) if found else 0
        problem = str(error)[: found.start()] if found else str(error)
        raise PlanError(f"this is not TOML: {problem}", source=source, line=line) from None


class _Reader:
    """One text on its way to units; knows how to say where something stands in it."""

    def __init__(self, text: str, source: str, env: Mapping[str, str] | None) -> None:
        self._text = text
        self._source = source
        self._env = env

    def defaults(self, tables: Mapping[str, Any]) -> dict[str, Any]:
        """What `[defaults]` sets."""
        for key in tables:
            if key not in _TOP_KEYS:
                line = Locator(self._text).top_key(key)
                raise self._fault("no such key", line=line, key=key, hint=checking.nearest(key, _TOP_KEYS))
        defaults = tables.get("defaults", {})
        if not isinstance(defaults, dict):
            raise self._default_fault("must be a table", "", "write [defaults]")
        for key, value in defaults.items():
            if key not in DEFAULT_KEYS:
                own = "belongs to one unit, not to all" if key in UNIT_KEYS else "no such key"
                raise self._default_fault(own, key, checking.nearest(key, DEFAULT_KEYS))
            if problem := UNIT_KEYS[key](value):
                raise self._default_fault(problem, key, checking.hint_for(key))
        return defaults

    def units(self, tables: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Unit]:
        """The units, each checked on its own and all different."""
        entries = tables.get("unit", [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            line = Locator(self._text).top_key("unit")
            raise self._fault(
                "must be a list of tables", line=line, key="unit", hint="write [[unit]], with two brackets"
            )
        lines = unit_lines(self._text, len(entries))
        names = _Names(entries)
        units, seen = [], dict[UnitKey, int]()
        for index, entry in enumerate(entries):
            self._check_unit(index, entry, defaults)
            unit = self._unit(index, entry, defaults, names=names, line=lines[index])
            if unit.key in seen:
                raise self._twice(index, unit, seen[unit.key])
            seen[unit.key] = index
            units.append(unit)
        return units

    def ordered(self, plan: Plan) -> Plan:
        """The plan with names in `after` resolved to keys: a name stands for all its variants."""
        if not any(unit.after for unit in plan.units):
            return plan
        known = defaultdict[str, list[str]](list)
        for unit in plan.units:
            known[unit.name].append(unit.key)
            if unit.variant:
                known[unit.key].append(unit.key)
        after: dict[str, tuple[str, ...]] = {
            unit.key: self._keys(index, unit, known) for index, unit in enumerate(plan.units)
        }
        if cycle := find_cycle(after):
            index = next(i for i, unit in enumerate(plan.units) if unit.key == cycle[0])
            raise self._unit_fault(index, "after", f"units wait for each other: {' -> '.join(cycle)}")
        units = (msgspec.structs.replace(unit, after=after[unit.key]) if unit.after else unit for unit in plan.units)
        return Plan(source=plan.source, units=tuple(units), notes=plan.notes)

    def _keys(self, index: int, unit: Unit, known: Mapping[str, list[str]]) -> tuple[str, ...]:
        for name in unit.after:
            if name not in known:
                hint = checking.nearest(name, known)
                raise self._unit_fault(index, "after", f"no unit is called {name!r}", hint)
        return tuple(dict.fromkeys(key for name in unit.after for key in known[name]))

    def _check_unit(self, index: int, entry: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        for key, value in entry.items():
            check = UNIT_KEYS.get(key)
            if check is None:
                raise self._unit_fault(index, key, "no such key", checking.nearest(key, UNIT_KEYS))
            if problem := check(value):
                raise self._unit_fault(index, key, problem, checking.hint_for(key))
        if ("command" in entry) == ("run" in entry):
            both = "both command and run are given" if "run" in entry else "neither command nor run is given"
            raise self._unit_fault(index, "run" if "run" in entry else "", both, "give exactly one of them")
        shared, memory = (entry.get(key, defaults.get(key)) for key in ("shared", "memory_mib"))
        if shared and not memory:
            hint = "say how much of the device's memory it needs"
            raise self._unit_fault(index, "shared", "sharing a device needs memory_mib", hint)

    def _unit(
        self, index: int, entry: Mapping[str, Any], defaults: Mapping[str, Any], *, names: "_Names", line: int
    ) -> Unit:
        both = {**defaults, **entry}
        common = _strings(defaults.get("env", {}))
        own = _strings(entry.get("env", {}))
        variant = variant_of({key: value for key, value in own.items() if common.get(key) != value})
        command = tuple(both["command"]) if "command" in both else (*_SHELL, both["run"])
        name = names.of(entry, command, variant)
        need = _need(both)
        if not need.ports and any(uses(text, "port") for text in (*command, *common.values(), *own.values())):
            hint = "leave ports out, or say how many it needs"
            raise self._unit_fault(index, "ports" if "ports" in entry else "", "{port} is used, and ports is 0", hint)
        return Unit(
            name=name,
            variant=variant,
            command=command,
            env=common | own,
            cwd=self._expanded(index, "cwd", both.get("cwd", "")),
            need=need,
            timeout_s=float(both.get("timeout_s", 0.0)),
            after=tuple(both.get("after", ())),
            priority=both.get("priority", 0),
            junit=self._expanded(index, "junit", both.get("junit", "")) or _own_junit(command, own, name, variant),
            line=line,
        )

    def _expanded(self, index: int, key: str, path: str) -> str:
        """A path with the runner's variables in it."""
        env = self._env
        if env is None or "$" not in path:
            return path
        for name in _VARIABLE.findall(path):
            if name not in env:
                raise self._unit_fault(
                    index, key, f"${{{name}}} is not set", f"set {name} in the environment of sooner"
                )
        return _VARIABLE.sub(lambda match: env[match.group(1)], path)

    def _twice(self, index: int, unit: Unit, first: int) -> PlanError:
        line = Locator(self._text).unit(first)
        where = f" (line {line})" if line else ""
        hint = "rename one of them, or let them differ in env"
        return self._unit_fault(index, "name", f"{unit.key!r} was declared before as unit[{first}]{where}", hint)

    def _unit_fault(self, index: int, key: str, problem: str, hint: str = "") -> PlanError:
        line = Locator(self._text).key(index, key) if key else Locator(self._text).unit(index)
        return self._fault(problem, line=line, key=f"unit[{index}]" + (f".{key}" if key else ""), hint=hint)

    def _default_fault(self, problem: str, key: str, hint: str) -> PlanError:
        locator = Locator(self._text)
        line = locator.table_key("defaults", key) or locator.top_key("defaults")
        return self._fault(problem, line=line, key="defaults" + (f".{key}" if key else ""), hint=hint)

    def _fault(self, problem: str, *, line: int, key: str, hint: str) -> PlanError:
        return PlanError(problem, source=self._source, line=line, key=key, hint=hint)


class _Names:
    """Names of the entries: declared ones as they are; derived ones numbered where they would repeat."""

    def __init__(self, entries: list[dict[str, Any]]) -> None:
        self._declared = {entry["name"] for entry in entries if isinstance(entry.get("name"), str)}
        self._given: set[UnitKey] = set()
        self._count = defaultdict[UnitKey, int](int)

    def of(self, entry: Mapping[str, Any], command: tuple[str, ...], variant: str) -> str:
        """The name of one entry; asked for once an entry, in order."""
        if "name" in entry:
            return str(entry["name"])
        derived = name = name_of(command)
        first = unit_key(derived, variant)
        while name in self._declared or unit_key(name, variant) in self._given:
            self._count[first] += 1
            name = f"{derived}#{self._count[first] + 1}"
        self._given.add(unit_key(name, variant))
        return name


def _need(both: Mapping[str, Any]) -> Need:
    return Need(**{key: both[key] for key in ("devices", "memory_mib", "shared", "ports") if key in both})


def _strings(env: Mapping[str, str | int]) -> dict[str, str]:
    return {key: str(value) for key, value in env.items()}


def _own_junit(command: tuple[str, ...], env: Mapping[str, str], name: str, variant: str) -> str:
    """Where a unit that writes `{junit}` without saying where finds its file: in the run folder."""
    if any(uses(text, "junit") for text in (*command, *env.values())):
        return f"{{log_dir}}/{file_name(unit_key(name, variant))}.xml"
    return ""
