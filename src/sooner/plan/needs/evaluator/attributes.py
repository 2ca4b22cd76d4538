"""Names and attributes: where a value comes from."""

from abc import abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from sooner.plan.needs.evaluator.enumerations import is_enumeration, is_mixed_member, members
from sooner.plan.needs.evaluator.special_methods import set_plainly
from sooner.plan.needs.evaluator.state import State
from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Bound,
    Cls,
    Code,
    Env,
    Ext,
    Func,
    Inst,
    Mod,
    Native,
    Raised,
    Signature,
    Soft,
    Super,
    Unknown,
    Wrapped,
    hard,
    is_plain,
    name_of,
)
from sooner.plan.needs.frameworks.forwards import PARTS, applied, run_parts
from sooner.plan.needs.frameworks.kept import keep_parts, of_module
from sooner.plan.needs.frameworks.number_types import is_scalar_type
from sooner.plan.needs.frameworks.outside_kinds import case_has, class_has
from sooner.plan.needs.python.caching import kept_of
from sooner.plan.needs.python.containers import table_of
from sooner.plan.needs.python.dispatching import DispatchedMethod
from sooner.plan.needs.python.signatures import parameters_of
from sooner.plan.needs.testing.options import CONFIG

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine
    from sooner.plan.needs.rules import Rule

RUN: Final = "__run__"
"""What unittest's own `run` does, among the attributes of a test case whose class has another one."""
LACKING: Final = "__lacking__"
"""What an instance does not have, though its class is not known, among its attributes."""
_OF_DEVICES: Final = {
    "empty_cache", "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state",
    "max_memory_allocated", "mem_get_info", "memory_allocated", "memory_stats", "reset_peak_memory_stats",
    "set_rng_state",
}  # fmt: skip
"""What `torch.cuda` has and `torch.cpu` has not (`torch/cpu/__init__.py` of PyTorch 2.0 to 2.9)."""
_HAVE: Final = {"torch": {"cpu", "cuda"}, "torch.cuda": _OF_DEVICES, "torch.version": {"cuda", "hip"}}
_LACK: Final = {"torch.cpu": _OF_DEVICES, "torch": {"gcu", "hpu", "mlu", "musa", "neuron", "npu", "sdaa", "tpu"}}
_OF_CONFIG: Final = frozenset(
    (
        "add_cleanup", "addinivalue_line", "args", "args_source", "cache", "get_terminal_writer", "get_verbosity",
        "getini", "getoption", "getvalue", "hook", "inicfg", "inifile", "inipath", "invocation_dir",
        "invocation_params", "known_args_namespace", "notify_exception", "option", "pluginmanager", "rootdir",
        "rootpath", "stash", "trace", "_store", "_metadata",
    )
)  # fmt: skip
"""What pytest's `config` always has; anything else a conftest has given it (`workerinput`: pytest-xdist)."""
_OF_FUNCTIONS: Final = frozenset(dir(lambda: None))
_SET_BY_OTHERS: Final = ("__unittest", "__pytest", "__wrapped")
"""Beginnings of attributes of a function that its decorators may have set and that are marks here."""

METACLASS: Final = "__metaclass__"
"""The metaclass of the tests' own that a class has, among its attributes."""


class Attributes(State):
    """The part of the machine that looks things up."""

    @abstractmethod
    def load(self, path: str) -> Mod:
        """A module of the tree, executed."""

    @abstractmethod
    def instance(self, cls: Cls, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """What `type.__call__` makes of a class."""

    @abstractmethod
    def imported(self, name: str, importer: str) -> Any:
        """A module by its absolute name."""

    @abstractmethod
    def load_model(self, name: str) -> Mod:
        """A module of the rule table."""

    def name(self, name: str, env: Env) -> Any:
        """What a name stands for: in the scopes around, then a builtin."""
        scope: Env | None = env
        while scope is not None:
            if name in scope.names:
                if scope.parent is None:
                    return self._of_global(scope.module, name, scope.names[name])
                return scope.names[name]
            scope = scope.parent
        builtin = self.natives.builtin(name)
        if builtin is not MISSING:
            return builtin
        return Unknown(name)

    def _of_global(self, module: Mod, name: str, found: Any) -> Any:
        """What a name of a module means, unless the test has put something else in its place."""
        self.trace.ask(module.asked_by(name))
        self.trace.questions += name in module.questioned
        if module.held:
            self.hold(module, name)
        return self.overrides.get(f"{module.name}.{name}", found) if self.overrides else found

    def hold(self, module: Mod, name: str) -> None:
        """What a module of the tests has put on devices while it was imported is asked for: it is still there."""
        if name in module.held and not self.quiet:
            devices, place = module.held[name]
            self.trace.touched |= devices
            self.trace.reach = max(self.trace.reach, *(each + 1 for each in devices))
            self.trace.note(*place, "a device is used")

    def attribute(self, value: Any, name: str) -> Any:
        """What an attribute is; of what is not known, something unknown."""
        if isinstance(value, Soft) and value.value is None:
            return Unknown(name)
        is_soft, value = isinstance(value, Soft), hard(value)
        if isinstance(value, Inst):
            return self._of_instance(value, name)
        if isinstance(value, Signature) and name == "parameters":
            return parameters_of(value.func)
        if isinstance(value, Ext | Unknown):
            return self.natives.outside_attribute(value, name)
        if isinstance(value, Mod):
            found = self.of_module(value, name)
            return Ext(found.path) if value.is_model and isinstance(found, Unknown) and found.path else found
        if isinstance(value, Cls):
            return self._of_class(value, name)
        if isinstance(value, Super):
            return self._of_super(value, name)
        if isinstance(value, Func):
            return self._of_function(value, name)
        if isinstance(value, Bound):
            parts = {"__self__": value.first, "__func__": value.func}
            return parts[name] if name in parts else self.attribute(value.func, name)
        found = self.natives.attribute_of(value, name)
        return _by_default(found) if is_soft and isinstance(value, str) and isinstance(found, Native) else found

    def of_module(self, module: Mod, name: str) -> Any:
        """A name of a module; of a package, its submodule too."""
        rule = self.rules.constant(f"{module.name}.{name}") if not module.is_model else None
        if rule is not None and rule.override:
            return self.natives.constant(f"{module.name}.{name}")
        if name in module.env.names and not (
            module.is_model and module.env.names[name] is self.natives.words.get(name)
        ):
            return self._of_global(module, name, module.env.names[name])
        if name == "__name__":
            return module.name
        if name == "__dict__" and module.is_test_code:
            self.trace.ask(max((module.asked, *module.tainted.values())))
            return module.env.names
        if module.path.endswith("__init__.py"):
            path = self.sources.relative(module.path, 1, name)
            full = f"{module.name}.{name}"
            if path and self.rules.is_outside(full):  # numba's own tree has numba.cuda
                return self.imported(full, module.path)
            if path and self.rules.is_model(full) and self.rules.insists(full):
                return self.load_model(self.rules.model_name(full))
            if path:
                return self.load(path)
        if module.is_model and self.rules.is_model(f"{module.name}.{name}"):
            return self.load_model(self.rules.model_name(f"{module.name}.{name}"))
        return self._not_written(module, name)

    def _not_written(self, module: Mod, name: str) -> Any:
        """A name that a module makes when it is asked, or of which a rule knows."""
        lazily = module.env.names.get("__getattr__")
        if isinstance(lazily, Func):
            with suppress(Raised):
                made = self.call(lazily, [name], {})
                if not isinstance(made, Unknown):
                    return made
            if not module.is_test_code:
                self.built.add(f"{module.name}.{name}")
            return Unknown(f"{module.name}.{name}")
        constant = self.natives.constant(f"{module.name}.{name}")
        return constant if constant is not MISSING else Unknown(f"{module.name}.{name}")

    def _of_instance(self, value: Inst, name: str) -> Any:
        getting = value.cls.find("__getattribute__")
        if isinstance(getting, Func) and getting.module.is_test_code and not self.quiet:
            return self.call(Bound(getting, value), [name], {})
        return self.plainly_of(value, name)

    def plainly_of(self, value: Inst, name: str) -> Any:
        """What `object.__getattribute__` finds: what is set through the class, the object's own, the class's."""
        found = value.cls.find(name)
        if isinstance(found, Wrapped) and found.kind == "property":
            rule = self._rule_of(value, name)
            if rule is not None and rule.override:
                return self._told_by(rule, value)
            return kept_of(cast("Machine", self), value, name, found)
        if isinstance(found, Inst) and found.cls.find("__set__") is not MISSING:
            described = self.special(found, "__get__", value, value.cls)
            if described is not MISSING:
                return described
        if name in value.attrs:
            return value.attrs[name]
        if found is not MISSING:
            described = self.special(found, "__get__", value, value.cls)
            return self.bound(found, value, value.cls) if described is MISSING else described
        return self._missing_of(value, name)

    def _missing_of(self, value: Inst, name: str) -> Any:
        specials = {"__class__": value.cls, "__dict__": value.attrs, "value": value.attrs.get("_value_", MISSING)}
        special = specials.get(name, MISSING)
        if special is not MISSING:
            return special
        if name == "name" and "_name_" in value.attrs:
            return value.attrs["_name_"]
        if name in (table := table_of(value, name)):
            return table[name]
        dynamic = value.cls.find("__getattr__")
        if isinstance(dynamic, Func) and not class_has(value.cls, name):
            return self.call(Bound(dynamic, value), [name], {})
        if is_mixed_member(value):
            return self.attribute(value.attrs["_value_"], name)
        if name.startswith("assert") and value.cls.is_of_tests_alone:  # `TestCase = object`: for unittest nothing
            raise Raised("AttributeError", f"{value.cls.name}.{name}", *self.current)
        native = of_module(cast("Machine", self), value, name)
        native = self.natives.of_outside_base(value, name) if native is MISSING else native
        if native is not MISSING:
            return native
        rule = self._rule_of(value, name)
        if rule is not None:
            return self._told_by(rule, value)
        if name.endswith("device") and not value.cls.module.is_test_code:
            self.guesses += not self.quiet  # which one is not known, and what is put there is
        return Unknown(f"{value.cls.name}().{name}")

    def _rule_of(self, value: Inst, name: str) -> "Rule | None":
        """What the rules know of a member of what the library under test has made."""
        if value.cls.module.is_test_code or value.cls.module.is_model:
            return None
        return self.rules.constant(f"{value.cls.module.name}.{value.cls.name}().{name}")

    def _told_by(self, rule: "Rule", value: Inst) -> Any:
        return self.natives.value_of(rule, "value", [value], {})

    def item_of_class(self, cls: Cls, index: Any) -> Any:
        """`Class[index]`: what it or its metaclass makes of that, a member of an enumeration, or itself (generics)."""
        method = cls.find("__class_getitem__")
        meta = cls.find(METACLASS)
        if method is MISSING and isinstance(meta, Cls):
            method = meta.find("__getitem__")
        if isinstance(method, Func):
            return self.call(Bound(method, cls), [index], {})
        return members(cls).get(index, UNKNOWN) if isinstance(index, str) else cls

    def _of_class(self, value: Cls, name: str) -> Any:
        found = value.find(name)
        if found is not MISSING:
            return self.bound(found, None, value)
        specials: dict[str, Any] = {"__name__": value.name, "__mro__": tuple(value.mro)}
        specials["__qualname__"] = value.within + value.name
        specials |= {"__module__": value.module.name, "__bases__": tuple(value.bases), "__dict__": value.attrs}
        specials |= {"mro": Native("mro", lambda _args, _kwargs: list(value.mro))}
        specials |= {"__new__": Native("__new__", self.made_plainly)}
        if name in specials:
            return specials[name]
        if name == "__members__" and is_enumeration(value):
            return members(value)
        meta = value.find(METACLASS)
        told = meta.find(name) if isinstance(meta, Cls) else MISSING
        if isinstance(told, Wrapped) and told.kind == "property":
            return self.call(told.func, [value], {})
        if told is not MISSING:
            return Bound(told, value) if isinstance(told, Func) else self.bound(told, None, meta)
        native = self.natives.of_outside_base(value, name)
        if name == "apply" and (run := applied(cast("Machine", self), value)) is not None:
            return run
        if native is MISSING and name.startswith("from_") and not (value.module.is_test_code or value.module.is_model):
            self.built.add(f"{value.name}.{name}")  # a base from elsewhere makes it, by what the class says itself
        return native if native is not MISSING else Unknown(f"{value.name}.{name}")

    def _of_super(self, value: Super, name: str) -> Any:
        cls = value.first if isinstance(value.first, Cls) else value.first.cls
        order = cls.mro
        start = order.index(value.owner) + 1 if value.owner in order else 1
        for each in order[start:]:
            if isinstance(each, Cls) and name in each.attrs:
                first = value.first if isinstance(value.first, Inst) else None
                found = each.attrs[name]
                if isinstance(found, Wrapped) and found.kind == "property":
                    return self.call(Bound(found.func, value.first), [], {})
                if name == "__new__":
                    return found
                return self.bound(found, first, cls) if first or isinstance(found, Wrapped) else Bound(found, cls)
        return self._of_object(value, name)

    def _of_object(self, value: Super, name: str) -> Any:
        """What `object` and `type` have by a name, and bases that are not known."""
        if name == "run" and isinstance(value.first, Inst) and RUN in value.first.attrs:
            return value.first.attrs[RUN]
        if name == "__init__" and isinstance(value.first, Inst) and value.first.cls.is_a("Popen"):
            return Ext("subprocess.Popen")
        if name == "__setattr__":
            return Native("__setattr__", lambda args, _kwargs: set_plainly([value.first, *args]))
        if name == "__getattribute__":
            return Native(name, lambda args, _kwargs: self._got_plainly(value, args))
        if name == "__new__":
            return Native("__new__", self.made_plainly)
        first = value.first
        if name == "__call__" and isinstance(first, Cls):
            return Native(name, lambda args, kwargs: self.instance(first, args, kwargs))
        if name == "__init__":
            return Native(name, lambda args, _kwargs: keep_parts(cast("Machine", self), value.first, args))
        if name == "forward" and isinstance(value.first, Inst) and PARTS in value.first.attrs:
            return Native(name, lambda args, _k: run_parts(cast("Machine", self), value.first.attrs[PARTS], args))
        if name == "__eq__" and isinstance(first, Inst) and _is_its_own(first.cls):
            return Native(name, lambda args, _kwargs: self.same(first, args[0], identity=True) if args else UNKNOWN)
        return Native(f"super.{name}", lambda _args, _kwargs: None)

    def made_plainly(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """`super().__new__(cls)`: an instance; of a metaclass (`super().__new__(mcs, name, bases, names)`) a class.

        A named tuple has what it is given as its fields.
        """
        first = args[0] if args else UNKNOWN
        if not isinstance(first, Cls):
            return UNKNOWN
        is_class = len(args) == 4 and first.is_a("type")  # noqa: PLR2004 - the metaclass, name, bases, names
        if is_class:
            return self.call(self.natives.builtin("type"), args[1:], {})
        made, fields = Inst(first), first.find("__record__")
        if isinstance(fields, list) and first.find("__tuple__") is not MISSING and (len(args) > 1 or kwargs):
            given = dict(zip(fields, args[1:], strict=False)) | kwargs
            made.attrs |= {name: given.get(name, UNKNOWN) for name in fields}
            made.attrs["__items__"] = [made.attrs[name] for name in fields]
        return made

    def _got_plainly(self, value: Super, args: list[Any]) -> Any:
        """`super().__getattribute__(name)`: what the instance has by that name."""
        name = hard(args[0]) if len(args) == 1 else None
        if isinstance(value.first, Inst) and isinstance(name, str):
            return self.plainly_of(value.first, name)
        return self.attribute(value.first, name) if isinstance(name, str) else UNKNOWN

    def _of_function(self, value: Func, name: str) -> Any:
        if name in value.attrs:
            return value.attrs[name]
        if name == "__code__":
            return Code(value)
        known: dict[str, Any] = {"__name__": value.name, "__module__": value.module.name}
        known |= {"__defaults__": tuple(value.defaults) or None, "__kwdefaults__": dict(value.kw_defaults) or None}
        known |= {"__qualname__": value.within + value.name, "__dict__": value.attrs, "__doc__": ""}
        return known[name] if name in known else Unknown(f"{value.name}.{name}")

    def bound(self, found: Any, instance: Inst | None, cls: Cls) -> Any:
        """What a class attribute becomes when it is looked up."""
        if isinstance(found, Wrapped):
            if found.kind == "staticmethod":
                return found.func
            return Bound(found.func, cls) if found.kind == "classmethod" else found
        if instance is not None and isinstance(found, Func | DispatchedMethod):
            return Bound(found, instance)
        return found

    def _is_made(self, value: Inst, name: str) -> bool | None:
        """Whether `__getattr__` of the tests' own has an attribute; None where that is not known."""
        dynamic = value.cls.find("__getattr__")
        if not isinstance(dynamic, Func):
            return False if dynamic is MISSING else None
        try:
            made = self.call(Bound(dynamic, value), [name], {})
        except Raised as raised:
            return False if raised.kind == "AttributeError" else None
        return None if isinstance(made, Unknown) else True

    def has_attribute(self, value: Any, name: str) -> bool | None:
        """Whether a value has an attribute; None where that is not known."""
        value = hard(value)
        if isinstance(value, Inst):
            if name in value.attrs or value.cls.find(name) is not MISSING:
                return True
            if name in value.attrs.get(LACKING, ()):
                return False
            if class_has(value.cls, name):
                return True
            return case_has(value.cls, name) if value.cls.is_open else self._is_made(value, name)
        if isinstance(value, Cls):
            return True if value.find(name) is not MISSING else class_has(value, name)
        if isinstance(value, Mod):
            return True if name in value.env.names else None
        while isinstance(value, Bound):
            value = value.func
        if isinstance(value, Func):
            return name in value.attrs or name in _OF_FUNCTIONS or name.startswith(_SET_BY_OTHERS)
        if isinstance(value, Ext):
            return True if name in value.attrs else _has_outside(value.path, name)
        return None if isinstance(value, Unknown) else hasattr(value, name) if is_plain(value) else None


def of_metaclass(cls: Cls, name: str) -> Func | None:
    """A method that a metaclass of the tests' own has for a class."""
    meta = cls.find(METACLASS)
    found = meta.find(name) if isinstance(meta, Cls) else None
    return found if isinstance(found, Func) else None


def _has_outside(path: str, name: str) -> bool | None:
    """Whether what lies outside the tree has an attribute; None where that is not known."""
    if path == "request" or name in _LACK.get(path, ()):
        return False
    if path == CONFIG:
        return None if name in _OF_CONFIG else False
    is_type = path == "torch" and is_scalar_type(Ext(f"{path}.{name}"))
    return True if is_type or name in _HAVE.get(path, ()) else None


def _by_default(method: Native) -> Native:
    """A method of a text that holds by default: what it says of it does so as well (`"false".lower()`)."""

    def call(args: list[Any], kwargs: dict[str, Any]) -> Any:
        result = method.call(args, kwargs)
        return Soft(result) if isinstance(result, str | bool) else result

    return Native(method.name, call)


def _is_its_own(cls: Cls) -> bool:
    """Whether something of a class equals itself alone, as it inherits from nothing that may say otherwise."""
    return is_enumeration(cls) or all(isinstance(each, Cls) or name_of(each) == "object" for each in cls.mro)
