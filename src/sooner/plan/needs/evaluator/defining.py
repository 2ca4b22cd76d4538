"""Definitions: functions, their decorators, classes."""

import ast
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeGuard, cast

from sooner.plan.needs.evaluator.attributes import METACLASS
from sooner.plan.needs.evaluator.calling import Calling
from sooner.plan.needs.evaluator.enumerations import inheritable, is_enumeration, make_members
from sooner.plan.needs.evaluator.lazy_names import bound_names
from sooner.plan.needs.evaluator.state import MODULE_FUEL
from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Bound,
    Cls,
    Env,
    Ext,
    Func,
    Inst,
    Mark,
    Native,
    OutOfFuel,
    Raised,
    Skip,
    Unknown,
    Wrapped,
    hard,
    name_of,
)
from sooner.plan.needs.frameworks.callbacks import in_ranks_told
from sooner.plan.needs.frameworks.outside_kinds import (
    LIST_MODEL,
    LISTS,
    MAPPING_MODEL,
    MAPPINGS,
    TUPLE_MODEL,
    TUPLES,
    base_names,
)
from sooner.plan.needs.frameworks.unseen import is_unseen
from sooner.plan.needs.python.standard_library import make_record
from sooner.plan.needs.syntax import kept
from sooner.plan.needs.testing.testing_names import apply_mark, is_expanded
from sooner.plan.needs.testing.told_devices import devices_told, is_told_of_devices

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_RECORDS: Final = ("pydantic.BaseModel", "pydantic.main.BaseModel", "pydantic_settings.BaseSettings", "msgspec.Struct")
"""Classes outside that make a record of what inherits from them."""


class Defining(Calling):
    """The part of the machine that makes functions and classes."""

    def make_function(self, node: Any, env: Env) -> Func:
        """A function value: its defaults are evaluated here."""
        func = Func(node, env, getattr(node, "name", "<lambda>"))
        func.defaults = [self.ev(each, env) for each in node.args.defaults]
        pairs = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        func.kw_defaults = {arg.arg: self.ev(value, env) for arg, value in pairs if value is not None}
        func.is_generator = not isinstance(node, ast.Lambda) and _yields(node)
        return func

    def define_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, env: Env) -> None:
        """A `def`: the decorators are called, the innermost first."""
        # A class's scope is not seen from inside its methods.
        owner_scope = env.parent if "__fields__" in env.names and env.parent is not None else env
        asked, self.trace.asked = self.trace.asked, 0
        func = self.make_function(node, owner_scope)
        func.within = _within(env)
        value = self._decorated_function(node.decorator_list, func, env)
        if self.trace.asked:
            func.attrs["__asked__"] = self.trace.asked
            if isinstance(value, Func):
                value.attrs["__asked__"] = self.trace.asked
        self.trace.asked = asked
        env.names[node.name] = value

    def decorated(self, decorator: ast.expr, value: Any, env: Env) -> Any:
        """A function or class after one of its decorators; unchanged where that is not known.

        Raises:
            Raised, Skip: The decorator itself raises.
        """
        before, self.current = self.current, self.place(env, decorator)
        questions = self.trace.questions
        try:
            setter = self._property_setter(decorator, value, env)
            if setter is not MISSING:
                return setter
            made = self.call(self.ev(decorator, env), [value], {}, decorator)
        except OutOfFuel:
            if self.loading:  # what follows in its class is not beyond the evaluator
                self.fuel = MODULE_FUEL // 4
            return value
        except Raised as raised:
            if not self.loading or not self.is_doubted(raised, questions):
                raise
            return value
        finally:
            self.current = before
        if made is value and isinstance(value, Func | Cls) and isinstance(decorator, ast.Call):
            return self._told_numbers(decorator, value, env)
        if isinstance(made, Func | Cls | Bound | Wrapped | Native) or (
            isinstance(made, Inst) and (isinstance(value, Func) or made.cls.module.is_model)
        ):
            return made
        return value

    def _told_numbers(self, decorator: ast.Call, test: Any, env: Env) -> Any:
        """A test or class decorated by what nobody knows, and that may be told a number of processes or devices."""
        made_by = self.ev(decorator.func, env)
        if not (isinstance(made_by, Ext) and is_unseen(made_by.path) and env.module.is_test_code):
            return test
        machine = cast("Machine", self)
        told = {each.arg: self.ev(each.value, env) for each in decorator.keywords if each.arg}
        if machine.rules.for_call(made_by.path) is None:
            name = made_by.path.rpartition(".")[2]
            devices = devices_told(name, [self.ev(each, env) for each in decorator.args], told)
            if devices is not None or is_told_of_devices(told):
                skips = True if machine.visible() < (devices or 0) else UNKNOWN
                reason = f"{name} is told of {devices or 'some'} devices"
                apply_mark(test, Mark("skipif", (skips,), {"reason": reason}, *self.place(env, decorator)))
        return in_ranks_told(machine, test, told) if isinstance(test, Func) and told else test

    def redefined(self, node: ast.Assign, env: Env) -> Any:
        """What `f = decorator(f)` makes of a function or class, as a decorator above it; MISSING for others."""
        target, inner, decorators = node.targets[0], node.value, list[ast.expr]()
        while isinstance(inner, ast.Call) and len(inner.args) == 1 and not inner.keywords:
            decorators.append(inner.func)
            inner = inner.args[0]
        is_own = isinstance(inner, ast.Name) and isinstance(target, ast.Name) and inner.id == target.id
        value = env.names.get(inner.id) if decorators and is_own and isinstance(inner, ast.Name) else None
        if isinstance(value, Cls):
            return self._decorated_class(decorators, value, env)
        return self._decorated_function(decorators, value, env) if isinstance(value, Func) else MISSING

    def _decorated_function(self, decorators: list[ast.expr], func: Func, env: Env) -> Any:
        value: Any = func
        for decorator in reversed(decorators):
            if is_expanded(value):  # its cases are there already: what is decorated further is nothing
                break
            value = self.decorated(decorator, value, env)
        return value

    def _decorated_class(self, decorators: list[ast.expr], cls: Cls, env: Env) -> Any:
        value: Any = cls
        for decorator in reversed(decorators):
            made = self.decorated(decorator, value, env)
            is_wrapper = isinstance(made, Func) and made.attrs.get("__wrapped__") is value  # no class for pytest
            value = made if isinstance(made, Cls | Inst) or is_wrapper else value
        return value

    def _property_setter(self, decorator: ast.expr, value: Any, env: Env) -> Any:
        if isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "getter", "deleter"):
            prop = self.ev(decorator.value, env)
            if isinstance(prop, Wrapped):
                parts = {"getter": prop.func, "setter": prop.setter, "deleter": prop.deleter, decorator.attr: value}
                return Wrapped(prop.kind, parts["getter"], parts["setter"], parts["deleter"])
        return MISSING

    def define_class(self, node: ast.ClassDef, env: Env) -> None:
        """A `class`: its body is executed, then its decorators are called."""
        asked, self.trace.asked = self.trace.asked, 0
        bases = [self._base(each, is_test=env.module.is_test_code) for each in self._elements(node.bases, env)]
        cls = Cls(node.name, inheritable(bases), env.module, node)
        cls.within = _within(env)
        scope = Env(env.module, env, {"__fields__": [], "__qualname__": cls.within + cls.name})
        self._run_body(node.body, scope)
        fields = scope.names.pop("__fields__")
        scope.names.pop("__qualname__", None)
        cls.attrs.update(scope.names)
        _doubt_switches(cls)
        self._own(cls)
        self._finish(cls, fields)
        told = {each.arg: self.ev(each.value, env) for each in node.keywords if each.arg is not None}
        self._make_by_metaclass(cls, bases, told)
        self._tell_bases(cls, told)
        value = self._decorated_class(node.decorator_list, cls, env)
        cls.attrs["__asked__"] = self.trace.asked
        self.trace.ask(asked)
        env.names[node.name] = value

    def _run_body(self, body: list[ast.stmt], scope: Env) -> None:
        """The statements of a class: while a file is loaded, each is given enough, as those of a module are."""
        if not self.loading:
            return self.run(body, scope)
        for statement in body:
            self.fuel = max(self.fuel, MODULE_FUEL // 4)
            try:
                self.run([statement], scope)
            except OutOfFuel:
                scope.names |= {name: scope.names.get(name, UNKNOWN) for name in bound_names(statement)}
        return None

    def _base(self, base: Any, *, is_test: bool) -> Any:
        """A base class, or the rule table's model of it: lists, and mappings where the tests inherit from them."""
        base = hard(base)
        if isinstance(base, Native | Ext) and name_of(base) in LISTS:
            return self.load_model(LIST_MODEL).env.names["List"]
        if is_test and isinstance(base, Native | Ext) and name_of(base) in MAPPINGS:
            model = self.load_model(MAPPING_MODEL).env.names
            return model["Defaulting" if name_of(base) == "defaultdict" else "Mapping"]
        if is_test and isinstance(base, Native) and base.name in TUPLES:
            return self.load_model(TUPLE_MODEL).env.names["Tuple"]
        return self.natives.modelled(base)

    def _make_by_metaclass(self, cls: Cls, bases: list[Any], told: dict[str, Any]) -> None:
        """A metaclass of the tests' own may change what a class has: `__new__(mcs, name, bases, names)`, `__init__`."""
        meta = hard(told.get("metaclass", cls.find(METACLASS)))
        if not isinstance(meta, Cls):
            return
        cls.attrs[METACLASS] = meta
        named = {name: each for name, each in told.items() if name != "metaclass"}
        make, initialise = meta.find("__new__"), meta.find("__init__")
        made: Any = cls
        try:
            if isinstance(make, Func):
                made = self.call(make, [meta, cls.name, tuple(bases), dict(cls.attrs)], named)
            if isinstance(made, Cls):
                cls.attrs.update(made.attrs)
                for gone in cls.attrs.keys() - made.attrs.keys():
                    del cls.attrs[gone]
            if isinstance(initialise, Func):
                self.call(Bound(initialise, cls), [cls.name, tuple(bases), dict(cls.attrs)], named)
        except (Raised, Skip, OutOfFuel):
            made = UNKNOWN
        if not isinstance(made, Cls):
            apply_mark(cls, Mark("skipif", (UNKNOWN,), {"reason": f"what {meta.name} makes is not known"}))

    def _tell_bases(self, cls: Cls, kwargs: dict[str, Any]) -> None:
        """`__init_subclass__` of what a class inherits from, `__set_name__` of what it has."""
        told = next((each.attrs["__init_subclass__"] for each in cls.mro[1:] if _has_init_subclass(each)), None)
        func = told.func if isinstance(told, Wrapped) else told
        if isinstance(func, Func) and func.module.is_test_code:
            self._told(Bound(func, cls), [], {name: each for name, each in kwargs.items() if name != "metaclass"})
        for name, each in list(cls.attrs.items()):
            named = each.cls.find("__set_name__") if isinstance(each, Inst) else MISSING
            if isinstance(named, Func) and named.module.is_test_code:
                self._told(Bound(named, each), [cls, name], {})

    def _told(self, func: Bound, args: list[Any], kwargs: dict[str, Any]) -> None:
        """What hears of a new class: within a test, a device that it lacks fails the test."""
        try:
            self.call(func, args, kwargs)
        except (Raised, Skip, OutOfFuel) as stop:
            if isinstance(stop, Raised) and stop.device and not self.loading:
                raise

    def _own(self, cls: Cls) -> None:
        for each in cls.attrs.values():
            func = each.func if isinstance(each, Wrapped) else each
            while isinstance(func, Func):
                if func.owner is None:
                    func.owner = cls
                func = func.attrs.get("__wrapped__")

    def _initialise(self, member: Inst, args: list[Any]) -> None:
        with suppress(Raised, Skip, OutOfFuel):
            self.call(Bound(member.cls.find("__init__"), member), args, {})

    def _finish(self, cls: Cls, fields: list[str]) -> None:
        names = base_names(cls)
        if is_enumeration(cls):
            make_members(cls, fields, self._initialise)
        elif "NamedTuple" in names:
            if not isinstance(cls.find("__record__"), list):  # one that inherits from a record has its fields alone
                cls.attrs["__record__"] = fields
            cls.attrs["__tuple__"] = True
        else:
            cls.attrs["__fieldnames__"] = fields
            if any(isinstance(each, Ext) and each.path in _RECORDS for each in cls.mro):
                make_record(cls, fields)


def _doubt_switches(cls: Cls) -> None:
    """Flags of a class of the library that its own functions turn on, where they find what it takes."""
    if cls.node is None or cls.module.is_test_code or cls.module.is_model:
        return
    for name in _set_by_itself(cls.node):
        if cls.attrs.get(name) is False:
            cls.attrs[name] = Unknown(f"{cls.name}.{name}")


@kept
def _set_by_itself(node: ast.ClassDef) -> set[str]:
    """Attributes that a class's own functions set on the class, by its name."""
    inner = (each for function in _functions(node) for each in ast.walk(function))
    targets = (target for each in inner if isinstance(each, ast.Assign) for target in each.targets)
    return {each.attr for each in targets if _is_of(each, node.name)}


def _functions(node: ast.ClassDef) -> list[ast.FunctionDef]:
    return [each for each in node.body if isinstance(each, ast.FunctionDef)]


def _is_of(target: ast.expr, name: str) -> TypeGuard[ast.Attribute]:
    return isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == name


def _within(env: Env) -> str:
    """What `__qualname__` has before the name of what a class's body defines."""
    return f"{env.names['__qualname__']}." if "__fields__" in env.names else ""


def _has_init_subclass(cls: Any) -> bool:
    return isinstance(cls, Cls) and "__init_subclass__" in cls.attrs


@kept
def _yields(node: ast.AST) -> bool:
    """Whether a function's own body (not a nested one's) yields."""
    stack: list[ast.AST] = list(getattr(node, "body", []))
    while stack:
        each = stack.pop()
        if isinstance(each, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            stack.extend(ast.iter_child_nodes(each))
    return False
