"""What names, attributes and items are bound to: the left-hand side of assignments, loops, `with` and `del`.

What is executed, and in which order, belongs to `statements.py`.
"""

import ast
from abc import abstractmethod
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from sooner.plan.needs.evaluator.expressions import Expressions
from sooner.plan.needs.evaluator.slots import Slots
from sooner.plan.needs.evaluator.undoing import Changed
from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Bound,
    Cls,
    Enough,
    Env,
    Ext,
    Func,
    Inst,
    Mod,
    Raised,
    Soft,
    Unknown,
    Wrapped,
    hard,
)
from sooner.plan.needs.python.containers import Environment, table_of
from sooner.plan.needs.testing.mocks import Mocked


class Binding(Expressions):
    """The part of the machine that binds values."""

    guesses: int
    """Conditions that were taken as met without being known."""
    forks: int
    """Branches under way inside functions of which nobody knows whether they are gone."""
    defaults: int
    """Branches under way inside functions that are gone by default only."""
    doubts: int
    """The same, in modules."""
    quiet: int
    """Above zero: inside the library under test."""
    current: tuple[str, int]
    """Where the call stands that is under way."""
    changed: Changed
    """What the test at hand has changed."""
    slots: Slots | None
    """What ways have written of which one is under way."""
    modules: dict[str, Any]
    """The modules that were imported, whose names are no dict of the tests'."""

    @abstractmethod
    def set_outside(self, target: Any, name: str, value: Any) -> None:
        """An attribute or item of something outside the tree is set."""

    def bind(self, target: ast.expr, value: Any, env: Env) -> None:
        """Assign a value to a name, an attribute, an item, or several."""
        if isinstance(target, ast.Name):
            self._bind_name(target.id, value, env)
        elif isinstance(target, ast.Tuple | ast.List):
            self._bind_several(target.elts, value, env)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, value, env)
        elif isinstance(target, ast.Attribute):
            self.set_attribute(self.ev(target.value, env), target.attr, value)
        elif isinstance(target, ast.Subscript):
            self._bind_item(self.ev(target.value, env), self.ev(target.slice, env), value)

    def _bind_name(self, name: str, value: Any, env: Env) -> None:
        if name in _declared(env):
            others = _names_of_others(name, env)
            self._about_to_bind(others, name, is_name=True)
            others[name] = value
            return
        env.names[name] = value
        if "__fields__" in env.names and name not in env.names["__fields__"]:
            env.names["__fields__"].append(name)

    def _bind_several(self, targets: list[ast.expr], value: Any, env: Env) -> None:
        values = self.items_of(value)
        star = next((i for i, each in enumerate(targets) if isinstance(each, ast.Starred)), None)
        if values is None or (star is None and len(values) != len(targets)) or len(values) < len(targets) - 1:
            self._refuse_to_unpack(targets, value, env)
            values = [value if isinstance(value, Enough) else UNKNOWN] * len(targets)
        elif star is not None:
            after = len(targets) - star - 1
            values = [*values[:star], values[star : len(values) - after], *values[len(values) - after :]]
        for target, each in zip(targets, values, strict=True):
            self.bind(target, Soft(each) if isinstance(value, Soft) and each is not UNKNOWN else each, env)

    def _refuse_to_unpack(self, targets: list[ast.expr], value: Any, env: Env) -> None:
        """Too few values for the names of the tests', or too many, as far as it is known how many there are.

        Raises:
            Raised: There are.
        """
        several, place = hard(value), self.place(env, targets[0])
        is_known = type(several) in (list, tuple, range) and id(several) not in self.of_any_length
        if not is_known or self.quiet or not env.module.is_test_code or self.is_ignored(*place):
            return
        if not any(isinstance(each, Unknown) for each in several):
            raise Raised("ValueError", f"{len(several)} values to unpack for {len(targets)} names", *place)

    def set_attribute(self, owner: Any, name: str, value: Any) -> None:
        """`owner.name = value`."""
        owner = hard(owner)
        self.trace.moves_mocks |= name in ("to", "cuda") and isinstance(value, Mocked)
        if isinstance(owner, Inst):
            self._set_of_instance(owner, name, value)
        elif isinstance(owner, Cls | Func):
            if name == "__unittest_skip__" and self.forks:  # a way that only skips is not gone where another may be
                self.guesses += 1
                return
            if isinstance(owner, Cls) and _may_be_wrapped(owner, name, value):
                self.guesses += 1
                self.trace.doubted |= self.loading
                return
            self._about_to_bind(owner.attrs, name)
            owner.attrs[name] = value
        elif isinstance(owner, Mod):
            self._about_to_bind(owner.env.names, name)
            owner.env.names[name] = value
        elif isinstance(owner, Bound):
            self.set_attribute(owner.func, name, value)
        elif isinstance(owner, Mocked):
            owner.set(name, value)
        elif isinstance(owner, Ext):
            self.set_outside(owner, name, value)

    def _set_of_instance(self, owner: Inst, name: str, value: Any) -> None:
        found, setting = owner.cls.find(name), owner.cls.find("__setattr__")
        if isinstance(found, Wrapped) and found.setter is not None:
            self.call(Bound(found.setter, owner), [value], {})
        elif self.special(found, "__set__", owner, value) is not MISSING:
            return
        elif self._is_not_followed(setting) or self.special(owner, "__setattr__", name, value) is MISSING:
            if name == "__dict__" and type(hard(value)) is dict:  # what all objects of a class may share
                owner.attrs = hard(value)
                return
            names = table_of(owner, name)
            self._about_to_bind(names, name)
            names[name] = value

    def _about_to_bind(self, names: dict[str, Any], name: str, *, is_name: bool = False) -> None:
        self.changed.keep_name(names, name)
        if self.slots is not None:
            self.slots.note(names, name, is_name=is_name)

    def about_to_change(self, store: Any) -> None:
        """A list, a dict or a set is changed next; after the test it is as before."""
        self.changed.keep(store)

    def _is_not_followed(self, method: Any) -> bool:
        """Whether a method is one of the library under test, of whose methods a test's call is not followed."""
        return isinstance(method, Func) and not (self.quiet or method.module.is_test_code or method.module.is_model)

    def delete_attribute(self, owner: Any, name: str) -> None:
        """`del owner.name`, where it is done for sure."""
        owner = hard(owner)
        if not isinstance(owner, Inst | Cls | Func | Mod):
            return
        prop = owner.cls.find(name) if isinstance(owner, Inst) else None
        if isinstance(prop, Wrapped) and prop.deleter is not None:
            self.call(Bound(prop.deleter, owner), [], {})
            return
        names = owner.env.names if isinstance(owner, Mod) else owner.attrs
        if self.forks or self.doubts:
            self.guesses += name in names and not self.quiet  # what the library has is no doubt of the test's
        else:
            self._about_to_bind(names, name)
            names.pop(name, None)

    def _bind_item(self, owner: Any, index: Any, value: Any) -> None:
        owner, index = hard(owner), hard(index)
        self.about_to_change(owner)
        if isinstance(owner, dict):
            self._put(owner, index, value)
        elif isinstance(owner, list) and isinstance(index, int | slice):
            with self._refused(owner):
                owner[index] = value
        elif isinstance(owner, Ext) and isinstance(index, str):
            self.set_outside(owner, index, value)
        elif isinstance(owner, Inst):
            method = owner.cls.find("__setitem__")
            if method is not MISSING:
                self.call(Bound(method, owner), [index, value], {})

    def _put(self, owner: dict[Any, Any], index: Any, value: Any) -> None:
        if not isinstance(index, Unknown):
            key = self.key(index)
            if self.slots is not None:
                self.slots.note(owner, key)
            owner[key] = value
        elif not isinstance(owner, Environment) and not any(owner is each.env.names for each in self.modules.values()):
            owner[UNKNOWN] = value  # under which name is not known

    def unbind(self, target: ast.expr, env: Env) -> None:
        """`del` of a name, of an attribute or of an item."""
        if isinstance(target, ast.Name):
            env.names.pop(target.id, None)
        elif isinstance(target, ast.Attribute):
            self.delete_attribute(self.ev(target.value, env), target.attr)
        elif isinstance(target, ast.Subscript):
            owner, index = hard(self.ev(target.value, env)), hard(self.ev(target.slice, env))
            self.about_to_change(owner)
            if isinstance(owner, Ext) and owner.path == "os.environ" and isinstance(index, str):
                self.set_outside(owner, index, MISSING)
            if isinstance(owner, dict):
                owner.pop(self.key(index), None)
            elif isinstance(owner, list) and isinstance(index, int | slice):
                self._delete_items(owner, index)
            elif isinstance(owner, Inst):
                self.special(owner, "__delitem__", index)

    def _delete_items(self, owner: list[Any], index: int | slice) -> None:
        if self.forks or self.doubts:
            self.guesses += not self.quiet  # what may be taken away is still there
            return
        with self._refused(owner):
            del owner[index]

    @contextmanager
    def _refused(self, owner: list[Any]) -> Iterator[None]:
        """A list of which the length is known has no item behind its end.

        Raises:
            Raised: Python refuses it.
        """
        try:
            yield
        except (LookupError, TypeError, ValueError) as error:
            if id(owner) in self.of_any_length or self.is_ignored(*self.current):
                self.guesses += not self.quiet
                return
            raise Raised(type(error).__name__, str(error), *self.current) from None


def _declared(env: Env) -> Collection[str]:
    """What the function around has declared `global` or `nonlocal`."""
    scope: Env | None = env
    while scope is not None and scope.frame is None and scope.parent is not None:
        scope = scope.parent
    return scope.frame.globals_of if scope is not None and scope.frame is not None else ()


def _names_of_others(name: str, env: Env) -> dict[str, Any]:
    """The names among which one is that a function has declared `global` or `nonlocal`."""
    outer = env.parent
    while outer is not None and name not in outer.names:
        outer = outer.parent
    return (outer or env.module.env).names


def _may_be_wrapped(owner: Cls, name: str, value: Any) -> bool:
    """Whether a test of a class is replaced by what is not known: most likely by itself, decorated."""
    is_test = owner.module.is_test_code and name.startswith("test") and isinstance(owner.attrs.get(name), Func)
    return is_test and isinstance(hard(value), Unknown)
