"""Hooks of conftests and plugins: what they make of a test that was collected, and what they do before it runs."""

from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import Any, Final

from sooner.plan.needs.evaluator.attributes import LACKING
from sooner.plan.needs.evaluator.machine import Machine
from sooner.plan.needs.evaluator.state import TEST_FUEL
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
    Raised,
    Skip,
    Text,
    hard,
)
from sooner.plan.needs.python.file_paths import Located
from sooner.plan.needs.testing.axes import quietly
from sooner.plan.needs.testing.collection import Item
from sooner.plan.needs.testing.fixtures import argument_names
from sooner.plan.needs.testing.options import configuration
from sooner.plan.needs.testing.starting import session_of

DESELECTED: Final = "left out by a hook"
_IGNORED: Final = ("collect_ignore", "collect_ignore_glob")


def is_left_out(machine: Machine, path: str) -> bool:
    """Whether a conftest.py says that a file, or a folder above it, holds no tests: by a list or by a hook."""
    for place in machine.sources.conftests(path):
        conftest = machine.load(place)
        folder = PurePosixPath(place).parent
        paths = [each for each in (PurePosixPath(path), *PurePosixPath(path).parents) if folder in each.parents]
        named = {name for each in paths for name in (str(each.relative_to(folder)), f"/{each}")}
        listed, globs = (
            [_text(each) for each in machine.items_of(conftest.env.names.get(name)) or []] for name in _IGNORED
        )
        if any(each.rstrip("/") in named for each in listed) or any(
            fnmatch(name, each) for each in globs for name in named
        ):
            return True
        hook = conftest.env.names.get("pytest_ignore_collect")
        if isinstance(hook, Func) and any(_is_ignored(machine, hook, conftest, each) for each in paths):
            return True
    return False


def _text(value: Any) -> str:
    """A path as text; empty where it is not known."""
    value = hard(value)
    value = value.known() if isinstance(value, Text) else value
    return value if isinstance(value, str) else ""


def _is_ignored(machine: Machine, hook: Func, conftest: Mod, path: PurePosixPath) -> bool:
    place = Located([f"/{path}"])
    config = configuration(machine, [conftest])
    given = {"collection_path": place, "path": place, "config": config}
    machine.fuel = TEST_FUEL
    answer = quietly(machine, hook, [given.get(name, UNKNOWN) for name in hook.positional])
    return machine.truth(answer) is True


class Collected(list[Any]):
    """The items that a hook may leave some of out; what it does on a way that may not be gone counts for nothing."""

    def __init__(self, machine: Machine, items: list[Any]) -> None:
        super().__init__(items)
        self._machine = machine

    def __setitem__(self, index: Any, value: Any) -> None:
        """As a list does it, where it is done for sure."""
        if self._is_sure():
            super().__setitem__(index, value)

    def remove(self, value: Any) -> None:
        """As a list does it, where it is done for sure."""
        if self._is_sure():
            super().remove(value)

    def clear(self) -> None:
        """As a list does it, where it is done for sure."""
        if self._is_sure():
            super().clear()

    def _is_sure(self) -> bool:
        self._machine.guesses += self._machine.forks > 0
        return not self._machine.forks


class Hooks:
    """The hooks that count for a test file.

    Args:
        machine: Where the plugins were evaluated.
        plugins: The conftests above the file, and plugins.
        config: What pytest calls so.
        stop: Takes a skip or failure of a hook, and raises it where it is believed.
    """

    def __init__(self, machine: Machine, plugins: list[Mod], config: Ext, stop: Callable[[Exception], None]) -> None:
        self._machine = machine
        self._plugins = plugins
        self._config = config
        self._stop = stop

    def node(self, item: Item, module: Mod) -> Inst:
        """The item, as hooks and `request.node` see it."""
        marks = [each for each in item.marks if isinstance(each, Mark)]

        def closest(args: list[Any], kwargs: dict[str, Any]) -> Any:
            name = hard(args[0] if args else kwargs.get("name"))
            asked.append(name)
            default = args[1] if len(args) > 1 else kwargs.get("default")
            return next((each for each in [*marks, *added] if each.name == name), default)

        def every(args: list[Any], kwargs: dict[str, Any]) -> Any:
            name = hard(args[0] if args else kwargs.get("name"))
            asked.append(name)
            return [each for each in [*marks, *added] if name is None or each.name == name]

        added: list[Any] = []
        asked: list[Any] = []

        def add(args: list[Any], _kwargs: dict[str, Any]) -> Any:
            if args and isinstance(args[0], Mark):
                added.append(args[0])
            return None

        node = Inst(Cls("Item", [Ext("pytest.Item")], Mod("pytest", "")))
        keywords = {each.name: True for each in marks} | {item.base: True}
        path = Located([f"/{module.path}"])
        node.attrs |= {
            "get_closest_marker": Native("get_closest_marker", closest), "iter_markers": Native("iter_markers", every),
            "add_marker": Native("add_marker", add), "own_markers": marks, "keywords": keywords, "name": item.name,
            "originalname": item.base, "nodeid": item.nodeid, "fixturenames": list(item.fixtures),
            "config": self._config, "session": session_of(self._config),
            "cls": item.cls, "function": item.func, "obj": item.func, "fspath": path, "path": path,
            "funcargs": dict(item.params),
            "__added__": added, "__asked__": asked, "module": module, "user_properties": [],
        }  # fmt: skip
        node.attrs[LACKING] = () if item.has_cases else ("callspec",)
        if item.has_cases:
            node.attrs["callspec"] = Inst(Cls("CallSpec", [Ext("pytest.CallSpec")], Mod("pytest", "")))
            node.attrs["callspec"].attrs |= {"params": dict(item.params), "id": item.name.partition("[")[2][:-1]}
        return node

    def select(self, node: Inst) -> None:
        """What they make of all items after they were collected: marks are added, items left out."""
        for _, hook in self._of("pytest_itemcollected"):
            self._call(hook, {"item": node})
        for place, modify in self._of("pytest_collection_modifyitems"):
            items = Collected(self._machine, [node])
            self._call(modify, {"items": items, "config": self._config, "session": node.attrs["session"]})
            if node not in items:
                self._stop(Skip(DESELECTED, *place, soft=True))

    def set_up(self, node: Inst) -> None:
        """What they do before a test is set up."""
        for _, hook in self._of("pytest_runtest_setup"):
            self._call(hook, {"item": node})

    def run(self, node: Inst) -> None:
        """What they do before a test's body runs."""
        for _, hook in self._of("pytest_runtest_call"):
            self._call(hook, {"item": node})

    def _of(self, name: str) -> Iterator[tuple[tuple[str, int], Any]]:
        """The hooks of a name, each with its place, what was registered last first, as pytest calls them."""
        for plugin in reversed(self._plugins):
            for each in map(hard, reversed(plugin.registered)):
                found = each.cls.find(name) if isinstance(each, Inst) else None
                if isinstance(found, Func):
                    yield (found.module.path, found.node.lineno), Bound(found, each)
            found = plugin.env.names.get(name)
            if isinstance(found, Func):
                yield (plugin.path, found.node.lineno), found

    def _call(self, hook: Any, given: dict[str, Any]) -> None:
        names = argument_names(hook)
        try:
            self._machine.call(hook, [], {name: given.get(name, UNKNOWN) for name in names})
        except Skip as stop:
            self._stop(stop)
        except Raised as raised:  # most are our ignorance of what pytest gives to a hook
            if raised.kind == "Failed":
                self._stop(raised)
