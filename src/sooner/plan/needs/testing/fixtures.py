"""pytest's fixtures: which one a name means, what a test needs of them, and their values."""

import ast
from collections.abc import Iterator
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
    Mod,
    Native,
    Partial,
    Signature,
    Unknown,
    Wrapped,
    hard,
)
from sooner.plan.needs.syntax import calls_in
from sooner.plan.needs.testing.afterwards import calling_later, scope_of
from sooner.plan.needs.testing.options import configuration
from sooner.plan.needs.testing.plugins import Lazy

_SCOPES: Final = ("session", "package", "module", "class", "function")
RANKS: Final = frozenset(("rank", "local_rank", "world_size"))
"""What a worker is told by whoever starts it; no fixture of pytest's, nor of known plugins, is called so."""
OF_PYTEST: Final = frozenset(
    (
        "request", "tmp_path", "tmp_path_factory", "tmpdir", "tmpdir_factory", "monkeypatch", "capsys", "capfd",
        "caplog", "recwarn", "pytestconfig", "cache", "record_property", "testdir", "pytester", "subtests",
        "benchmark", "mocker",
    )
)  # fmt: skip
"""Fixtures of pytest's own, and of plugins that many use."""
OUTER: Final = "__outer__"
"""The class that a class was defined in, among its attributes."""


def underlying(func: Any) -> Any:
    """The function that pytest takes the signature of: through `functools.wraps` to the innermost."""
    return list(_layers(func))[-1]


def _layers(func: Any) -> Iterator[Any]:
    """A function, the one whose signature it has, and so on."""
    yield func
    while (func := _signed_as(func)) is not None:
        yield func


def _signed_as(func: Any) -> Any:
    """The function whose signature another one has; None where that has its own."""
    if isinstance(func, Bound | Partial):
        return func.func
    if not isinstance(func, Func):
        return None
    said = func.attrs.get("__signature__")
    if isinstance(said, Signature):
        return said.func
    wrapped = func.attrs.get("__wrapped__")
    return wrapped if isinstance(wrapped, Func | Bound) else None


def argument_names(func: Any) -> list[str]:
    """The parameters of a test or fixture that pytest fills: those without a default."""
    *outer, inner = _layers(func)
    if not isinstance(inner, Func):
        return []
    given = [each for each in outer if isinstance(each, Partial)]
    spec = inner.node.args
    names = [each.arg for each in (*spec.posonlyargs, *spec.args)]
    names = names[: len(names) - len(spec.defaults)] if spec.defaults else names
    names += [each.arg for each, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if default is None]
    left = [name for name in names if name not in ("self", "cls")][sum(each.first for each in given) :]
    return [name for name in left if not any(name in each.named for each in given)]


def is_worker(tree: ast.Module | None, name: str) -> bool:
    """Whether a function of a file is given to others there (`spawn(test_it, ...)`), which run it as a rank."""
    nodes = list(ast.walk(tree)) if tree is not None else []
    called = {id(each.func) for each in nodes if isinstance(each, ast.Call)}
    return any(isinstance(each, ast.Name) and each.id == name and id(each) not in called for each in nodes)


def is_called_by_its_file(tree: ast.Module | None, name: str, count: int) -> bool:
    """Whether a file calls a function of its own with so many arguments, while it is imported or run as a program."""
    for node in (node for block in _run_by_itself(tree) for node in ast.walk(block)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            given = [*node.args, *node.keywords]
            has_more = any(isinstance(each, ast.Starred) for each in node.args) or any(
                not each.arg for each in node.keywords
            )
            if has_more or len(given) >= count:
                return True
    return False


def _run_by_itself(tree: ast.Module | None) -> list[ast.stmt]:
    """What a file runs while it is imported or run as a program: its functions that are called by their names, too."""
    written = tree.body if tree is not None else []
    own = {each.name: each for each in written if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    blocks = [each for each in written if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    for block in blocks:  # it grows
        names = {each.func.id for each in calls_in(block) if isinstance(each.func, ast.Name)} & own.keys()
        blocks += [own.pop(each) for each in sorted(names)]
    return blocks


def plugin_modules(machine: Machine, path: str) -> list[Mod]:
    """The modules whose fixtures and hooks count for a test file: its conftests, and before each what it names plugins.

    `pytest_plugins` of a plugin, and of the test file itself, count too; what pytest is always told to load is first.
    """
    found: dict[str, Mod] = {}

    def add(module: Mod) -> None:
        named = hard(module.env.names.get("pytest_plugins"))
        for each in [named] if isinstance(named, str) else machine.items_of(named) or []:
            if isinstance(each, str):
                load(each, module.path)

    def load(name: str, importer: str) -> None:
        place = machine.sources.module(name, importer)
        if place and place not in found and place != path:
            found[place] = machine.plugin(place)
            add(found[place])
            found[place] = found.pop(place)

    for each in machine.settings.plugins():
        load(each, path)
    for conftest in machine.sources.conftests(path):
        add(machine.load(conftest))
        found[conftest] = machine.load(conftest)
    add(machine.load(path))
    return list(found.values())


class Fixtures:
    """The fixtures that a test file sees.

    Args:
        machine: Where modules are evaluated.
        path: The test file.
    """

    def __init__(self, machine: Machine, path: str, cls: Cls | None = None) -> None:
        self.machine = machine
        self.path = path
        self.definitions: dict[str, Any] = {}
        self.replaced: dict[tuple[str, int], Any] = {}
        """By a name and a fixture: the one of a conftest.py or class further out, which it may use."""
        self.automatic: list[str] = []
        self.modules = [*plugin_modules(machine, path), machine.load(path)]
        """The conftests, the plugins and the test file: where it has fixtures and hooks from, the nearest last."""
        self.config = configuration(machine, self.modules)
        for module in self.modules:
            self._take(module.env.names)
        self._cls = cls

    def _take(self, names: dict[str, Any]) -> None:
        for name, value in names.items():
            inner = value.func if isinstance(value, Wrapped) else value
            options = inner.attrs.get("__fixture__") if isinstance(inner, Func) else None
            if isinstance(inner, Cls) and inner.find("__sooner_fixture__") is True:
                self.definitions[name] = inner
            if options is None:
                continue
            called = hard(options.get("name", name))
            self._define(called if isinstance(called, str) else name, inner)
            if self.machine.truth(options.get("autouse", False)) and name not in self.automatic:
                self.automatic.append(called if isinstance(called, str) else name)

    def _define(self, name: str, fixture: Func) -> None:
        before = self.definitions.get(name)
        above = [each for (of, _), each in self.replaced.items() if of == name]
        if before is not None and all(fixture is not each for each in (before, *above)):
            self.replaced[name, id(fixture)] = before
        self.definitions[name] = fixture

    def chain(self, name: str) -> Iterator[Any]:
        """The fixture of a name, the one that it replaces where it uses that one, and so on."""
        found = self.definitions.get(name)
        while found is not None:
            yield found
            found = self.replaced.get((name, id(found))) if name in argument_names(found) else None

    def of_class(self, cls: Cls) -> "Fixtures":
        """Those that a class sees, its own and inherited ones included, and those of the class around it."""
        around = cls.attrs.get(OUTER)
        if isinstance(around, Cls) and around is not self._cls:
            return self.of_class(around).of_class(cls)
        own = object.__new__(Fixtures)
        own.machine, own.path, own.modules, own.config = self.machine, self.path, self.modules, self.config
        own.definitions, own.automatic = dict(self.definitions), list(self.automatic)
        own.replaced = dict(self.replaced)
        own._cls = cls
        for owner in reversed(cls.mro):
            if isinstance(owner, Cls):
                own._take(owner.attrs)
        return own

    def closure(self, func: Any, marks: list[Any]) -> list[str]:
        """All fixtures that a test uses, in the order of pytest 9.1: wider scopes first, each before what it uses."""
        names = [*self.automatic, *(each for each in self.machine.settings.fixtures if each in self.definitions)]
        for mark in marks:
            if isinstance(mark, Mark) and mark.name == "usefixtures":
                names += [each for each in mark.args if isinstance(each, str)]
        names += argument_names(func)
        seen: dict[str, None] = {}
        waiting = names[::-1]
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen[name] = None
                chain = (each.find("run") if isinstance(each, Cls) else each for each in self.chain(name))
                waiting += [each for found in chain for each in argument_names(found)][::-1]
        return sorted(seen, key=self._scope)

    def _scope(self, name: str) -> int:
        scope = scope_of(self.definitions.get(name))
        return _SCOPES.index(scope) if scope in _SCOPES else len(_SCOPES) - 1

    def has_params(self, name: str) -> bool:
        """Whether a fixture multiplies the tests that use it."""
        return self.params(name)[0] is not None

    def params(self, name: str) -> tuple[Any, Any]:
        """Parameters and ids of a fixture, or of the first one behind it that has some; None and None without."""
        options = [each.attrs.get("__fixture__", {}) for each in self.chain(name) if isinstance(each, Func)]
        given: dict[str, Any] = next((each for each in options if each.get("params") is not None), {})
        return given.get("params"), given.get("ids")


class Values:
    """The values of fixtures for one test."""

    def __init__(self, fixtures: Fixtures, params: dict[str, Any], indirect: frozenset[str], item: Any) -> None:
        self.fixtures = fixtures
        self.machine = fixtures.machine
        self.params = params
        self.indirect = indirect
        self.item = item
        self.made: dict[str, Any] = {}
        self.instance: Any = None

    def value(self, name: str) -> Any:
        """What a test gets for a name.

        Raises:
            Raised, Skip: The fixture does.
        """
        if name in self.params and name not in self.indirect:
            return self._looked_up(self.params[name])
        if name not in self.made:
            self.made[name] = UNKNOWN
            self.made[name] = self._make(name, self.fixtures.definitions.get(name))
        return self.made[name]

    def _looked_up(self, value: Any) -> Any:
        """A parameter's value: of a fixture's name (`lazy_fixture("x")`), what that gives."""
        if not isinstance(value, Lazy):
            return value
        name, *parts = value.name.split(".")
        found = self.value(name)
        for each in parts:
            found = self.machine.attribute(found, each)
        return found

    def _make(self, name: str, found: Any) -> Any:
        if name == "request":
            return self.request("")
        if found is None:
            return self._outside(name)
        if isinstance(found, Cls):
            return self._distributed(found)
        kwargs = {each: self.value(each) for each in argument_names(found) if each not in ("request", name)}
        if name in argument_names(found):
            kwargs[name] = self._make(name, self.fixtures.replaced.get((name, id(found))))
        if "request" in argument_names(found):
            kwargs["request"] = self.request(name)
        args = [self.instance] if found.owner is not None and self.instance is not None else []
        result = self.machine.call(found, args, kwargs)
        return (result[0] if result else None) if found.is_generator and isinstance(result, list) else result

    def _distributed(self, cls: Cls) -> Any:
        """A fixture that is a class with a run loop of its own (DeepSpeed's)."""
        made = Inst(cls)
        run = cls.find("run")
        names = argument_names(run)
        self.machine.call(
            Bound(cls.find("__sooner_run__"), made),
            [
                Native("run", lambda _args, _kwargs: self.machine.call(run, [made], {n: self.value(n) for n in names})),
                [],
            ],
            {},
        )
        return made

    def _outside(self, name: str) -> Any:
        if name == "pytestconfig":
            return self.fixtures.config
        rule = self.machine.rules.fixtures.get(name)
        if rule is not None:
            return self.machine.natives.obey(rule, [], dict(self.params))
        return Unknown(name)

    def request(self, name: str) -> Any:
        """What pytest calls `request`."""
        is_of_test = scope_of(self.fixtures.definitions.get(name)) == "function"
        made = Ext("request")
        made.attrs = {
            "node": self.item,
            "function": UNKNOWN if self.item is None else self.item.attrs.get("function", UNKNOWN),
            "cls": UNKNOWN if self.item is None else self.item.attrs.get("cls", None),
            "keywords": UNKNOWN if self.item is None else self.item.attrs.get("keywords", UNKNOWN),
            "module": UNKNOWN if self.item is None else self.item.attrs.get("module", UNKNOWN),
            "path": UNKNOWN if self.item is None else self.item.attrs.get("path", UNKNOWN),
            "fspath": UNKNOWN if self.item is None else self.item.attrs.get("path", UNKNOWN),
            "instance": self.instance,
            "getfixturevalue": Native("getfixturevalue", lambda args, _kwargs: self.value(str(hard(args[0])))),
            "config": self.fixtures.config,
            "fixturenames": UNKNOWN if self.item is None else self.item.attrs["fixturenames"],
            "addfinalizer": calling_later(self.machine, "addfinalizer", is_of_test=is_of_test),
        }
        if name in self.params:
            made.attrs["param"] = self._looked_up(self.params[name])
        return made
