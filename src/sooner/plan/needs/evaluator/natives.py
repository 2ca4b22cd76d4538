"""What lies outside the tree: attributes and calls of modules that are not there; rules decide where there are any."""

from collections.abc import Callable
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.contexts import context_of
from sooner.plan.needs.evaluator.counted import uncounted
from sooner.plan.needs.evaluator.functions import FUNCTIONS
from sooner.plan.needs.evaluator.lazy_values import Generator
from sooner.plan.needs.evaluator.raising import Caught
from sooner.plan.needs.evaluator.trace import HAVING_NO_HOST
from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Bound,
    Cls,
    Derived,
    Dev,
    Enough,
    Env,
    Ext,
    Func,
    Inst,
    Made,
    Mark,
    Mod,
    Native,
    Raised,
    Skip,
    Soft,
    Text,
    Unknown,
    hard,
)
from sooner.plan.needs.frameworks import unseen
from sooner.plan.needs.frameworks.callbacks import call_back, executed, launched_through
from sooner.plan.needs.frameworks.given_devices import MOVERS, GivenDevices
from sooner.plan.needs.frameworks.host_values import is_on_host
from sooner.plan.needs.frameworks.jax_devices import CHOOSING, Grid, Rows
from sooner.plan.needs.frameworks.kept import Kept, kept
from sooner.plan.needs.frameworks.meshes import NamedMesh
from sooner.plan.needs.frameworks.named_devices import device_named
from sooner.plan.needs.frameworks.number_types import LONG_NAMES, of_number_type
from sooner.plan.needs.frameworks.outside_kinds import MAPPING_MODEL, MAPPINGS, record_text
from sooner.plan.needs.processes.written_programs import File
from sooner.plan.needs.python.dispatching import Dispatched
from sooner.plan.needs.python.futures import Executor, Future, ask_futures
from sooner.plan.needs.python.plain_functions import computed
from sooner.plan.needs.python.plain_methods import method_of
from sooner.plan.needs.python.python_names import BUILTINS, HOST_TYPES
from sooner.plan.needs.python.standard_library import alias, method_of_tuple
from sooner.plan.needs.rule_words import words
from sooner.plan.needs.rules import Rule
from sooner.plan.needs.testing.mocks import Mocked
from sooner.plan.needs.testing.options import Options
from sooner.plan.needs.testing.replacing import in_sys_modules, is_patch, module_in_place, patched, switch_of
from sooner.plan.needs.testing.testing_names import (
    apply_mark,
    doubt_guard,
    environment_value,
    is_sure_to_skip,
    mark_now,
    skipping,
    unittest_method,
)

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_MAKERS_BY_ITEM: Final = (".mgrid", ".ogrid", ".r_", ".c_", ".s_", ".index_exp")
"""Of NumPy and what is like it: an item is an array that is made, but of the last two."""
_ANSWERING: Final = (Enough, Text, Rows, NamedMesh, Options, Mocked, File, Kept, Generator, Future, Executor, Caught)
"""What is not known, but knows something of itself."""
_MOVED: Final = ("torch.Tensor", "torch.nn.Module")
_LONGEST_PATH: Final = 120
_ARRAYS: Final = ("numpy.", "jax.numpy.", "jax.random.")
"""Arrays that are as long as there are devices are for mapping over them."""
_ERRORS: Final = ("Error", "Exception", "Warning")
"""Ends of names of what is made to be raised."""
_NO_WORK: Final = ("FakeTensorMode", "init_empty_weights", "init_on_device", "skip_init", "FakeMode", "get_fake_mode")
_BY_ITSELF: Final = ("an array of JAX's", "a tensor of TensorFlow's", *HAVING_NO_HOST)
"""What a framework puts on its first device, whoever makes it: the library under test does not choose."""


_OF_TYPES: Final = frozenset(dir(type)) - {
    "__eq__",
    "__ne__",
    "__lt__",
    "__le__",
    "__gt__",
    "__ge__",
    "__or__",
    "__repr__",
}
"""What a type has for itself rather than for its instances."""


class Natives(GivenDevices):
    """The outside, for one machine."""

    def __init__(self, machine: "Machine") -> None:
        self.machine = machine
        self._builtins: dict[str, Any] = {}
        self.words = words(machine)
        """What rules, and the models of the rule table, can say besides Python."""
        self.called = ""
        """The last name of what was called."""
        self.marked: list[str] = []
        """Names of the marks of the test at hand."""

    def builtin(self, name: str) -> Any:
        """A builtin of Python, or MISSING."""
        if name not in self._builtins:
            function = BUILTINS.get(name)
            machine = self.machine
            made: Any = MISSING
            if function is not None:
                made = Native(name, lambda args, kwargs: function(machine, args, kwargs))
            elif name.endswith(("Error", "Exception", "Warning", "Exit", "Interrupt")) or name == "object":
                made = Ext(name)
            elif name == "__debug__":
                made = True
            self._builtins[name] = made
        return self._builtins[name]

    def attribute_of(self, value: Any, name: str) -> Any:
        """An attribute of a plain value, a device, a mark or a native."""
        if isinstance(value, Dev) and name in ("use", "synchronize"):
            return Native(name, lambda _args, _kwargs: self.machine.touch(value, f"device.{name}()"))
        if isinstance(value, Dev):
            if name == "memory_stats" and value.kind == "cpu":  # JAX's: nobody counts the host's memory
                return Native(name, lambda _args, _kwargs: None)
            known = {"type": value.kind, "index": value.index, "platform": value.kind, "id": value.index}
            return known.get(name, Unknown(f"device.{name}"))
        if isinstance(value, Grid):
            return value.attribute(self.machine, name)
        if isinstance(value, Mark) and is_patch(value) and name in ("start", "stop"):
            return switch_of(self.machine, value, name)
        if isinstance(value, Mark):
            return getattr(value, name) if name in ("name", "args", "kwargs") else UNKNOWN
        if isinstance(value, Dispatched):
            return value.attribute(name)
        if isinstance(value, Native):
            return value.name if name in ("__name__", "__qualname__") else self._of_native(value, name)
        if value is None:
            return Unknown(name)  # more likely something that we did not follow than an error of the test's
        return method_of(self.machine, value, name)

    def _of_native(self, value: Native, name: str) -> Any:
        if (value.name, name) == ("type", "__new__"):
            return Native(name, self.machine.made_plainly)
        if (written := BUILTINS.get(f"{value.name}.{name}")) is not None:
            return Native(f"{value.name}.{name}", lambda args, kwargs: written(self.machine, args, kwargs))
        if value.name in MAPPINGS:  # `__setattr__ = dict.__setitem__`
            method = self.machine.load_model(MAPPING_MODEL).env.names["Mapping"].attrs.get(name)
            if isinstance(method, Func):
                return method
        kind = HOST_TYPES.get(value.name)
        if isinstance(kind, type) and isinstance(getattr(kind, name, None), BuiltinFunctionType):
            made = computed(getattr(kind, name))  # of the type itself: `int.from_bytes`, `str.maketrans`
            return Native(f"{value.name}.{name}", lambda args, kwargs: made(self.machine, args, kwargs))
        if isinstance(kind, type) and callable(getattr(kind, name, None)) and name not in _OF_TYPES:
            return Native(f"{value.name}.{name}", lambda args, kwargs: self._of_first(name, args, kwargs))
        return Native(f"{value.name}.{name}", lambda args, _kwargs: args[0] if len(args) == 1 else UNKNOWN)

    def _failure(self, why: str, place: tuple[str, int]) -> Raised:
        """What fails for lack of a device; where the library under test surely does it, its caller hears of it."""
        raised = Raised("RuntimeError", why, *place, device=True)
        raised.is_heard = self.machine.quiet > 0 and not self.machine.is_doubtful()
        return raised

    def _of_first(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A method that is called by its type (`map(str.strip, lines)`)."""
        return self.machine.call(self.machine.attribute(args[0], name), args[1:], kwargs) if args else UNKNOWN

    def outside_attribute(self, value: Any, name: str) -> Any:
        """`value.name`, where value is outside or unknown."""
        machine = self.machine
        name = LONG_NAMES.get(name, name) if isinstance(value, Ext) and value.path == "torch" else name
        if isinstance(value, _ANSWERING) and (found := value.attribute(machine, name)) is not MISSING:
            return found
        path = f"{value.path}.{name}" if value.path else name
        if isinstance(value, Ext):
            if name in value.attrs:
                return value.attrs[name]
            override = self.override(path)
            if override is not MISSING:
                return override
            modelled = self._of_model(value.path, path, name)
            if modelled is not MISSING:
                return modelled
        if path.startswith("pytest.mark."):
            return Mark(name, (), {}, *machine.current)
        known = self._of_value(value, name)
        if known is MISSING:
            known = self.constant(path)
        if known is not MISSING:
            return known
        if len(path) > _LONGEST_PATH:
            path = f"...{path[-_LONGEST_PATH:]}"
        return Ext(path) if isinstance(value, Ext) else Unknown(path)

    def _replaced_method(self, value: Any, name: str) -> Any:
        """What the test has put in the place of a method of all tensors, or of all modules, or MISSING."""
        overrides = {} if isinstance(value, Ext) else self.machine.overrides
        replaced = next((overrides[f"{each}.{name}"] for each in _MOVED if f"{each}.{name}" in overrides), MISSING)
        self.machine.guesses += replaced is not MISSING  # which of the two it is is not known
        return Bound(replaced, value) if isinstance(replaced, Func) else replaced

    def _of_value(self, value: Any, name: str) -> Any:
        """The device of a tensor of the host, the name of a type of numbers, a method that is replaced, or MISSING."""
        if self.machine.overrides and (replaced := self._replaced_method(value, name)) is not MISSING:
            return replaced
        if name == "device" and is_on_host(self.machine, value):
            return Dev("cpu")
        return of_number_type(value, name)

    def _of_model(self, parent: str, path: str, name: str) -> Any:
        """A module that the rules stand in for, or a name of one; MISSING where it is neither."""
        rules = self.machine.rules
        if rules.is_model(path):
            return self.machine.load_model(rules.model_name(path))
        if rules.is_model(parent):
            return self.machine.of_module(self.machine.load_model(rules.model_name(parent)), name)
        return MISSING

    def constant(self, path: str) -> Any:
        """What the rules say that a name outside is, or its own file, where that is in the tree; else MISSING."""
        rule = self.machine.rules.constant(path)
        if rule is not None:
            return self.value_of(rule, "value", [], {})
        module, _, name = path.rpartition(".")
        if not name.isupper() or not self.machine.rules.is_outside(module):
            return MISSING
        return self.machine.sources.written_down(module, name, self.machine.current[0]) or MISSING

    def override(self, path: str) -> Any:
        """What the test has put in the place of something, or MISSING."""
        overrides = self.machine.overrides
        if not overrides:
            return MISSING
        if path in overrides:
            return overrides[path]
        tail = ".".join(path.split(".")[-2:])
        return next((value for key, value in overrides.items() if ".".join(key.split(".")[-2:]) == tail), MISSING)

    def outside_item(self, value: Any, index: Any) -> Any:
        """`value[index]`, where value is outside, a builtin or unknown."""
        if isinstance(value, Native):
            return value if value.name in ("dict", "list", "tuple", "set", "frozenset", "type") else UNKNOWN
        if isinstance(value, Enough | NamedMesh | Mocked | Kept):
            return value.item(self.machine, index)
        if value.path == "os.environ" and isinstance(index, str):
            found = environment_value(self.machine, index, MISSING)
            if found is MISSING and self.machine.trying:
                raise Raised("KeyError", f"environment {index}", *self.machine.current)
            return Unknown(f"os.environ[{index}]") if found is MISSING else found
        if value.path == "sys.modules" and isinstance(index, str):
            if (replaced := module_in_place(self.machine, index)) is not MISSING:
                return replaced
            loaded = self.machine.modules.values()
            return next((each for each in loaded if each.name == index and not each.is_model), Ext(index))
        if isinstance(value, Ext) and value.path.endswith(_MAKERS_BY_ITEM):
            return self.call_outside(Ext(f"{value.path}.__getitem__"), [index], {})
        if isinstance(value, Ext) and index is not None and "()" not in value.path:
            return alias(value, index)
        return Unknown(f"{value.path}[]")

    def set_outside(self, target: Ext, name: str, value: Any) -> None:
        """Something outside is given another value."""
        if target.path == "os.environ" and name in CHOOSING and (self.machine.forks or self.machine.doubts):
            self.machine.guesses += 1
            self.machine.trace.doubted = True
        elif target.path == "os.environ":
            self.machine.environment[name] = value
            if self.machine.loading:  # what a file sets while it is imported holds for its tests
                for path in {self.machine.current[0], self.machine.working}:
                    self.machine.everywhere.setdefault(path, {})[name] = value
        elif target.path == "sys.modules":
            self.machine.overrides[in_sys_modules(name)] = value
        elif target.path and not target.path.startswith("os."):
            self.machine.overrides[f"{target.path}.{name}"] = value

    def modelled(self, base: Any) -> Any:
        """A base class outside, or the rule table's model of it."""
        base = hard(base)
        if isinstance(base, Ext | Unknown):
            model = self.machine.rules.class_model(base.path)
            if model is not None:
                module, name = model
                found = self.machine.load_model(module).env.names.get(name)
                return found if isinstance(found, Cls) else base
        return base

    # Calls

    def call_outside(self, func: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A call of something outside, or of something unknown."""
        machine, path = self.machine, func.path
        if isinstance(func, Mocked | Kept):
            return func.call(machine, args, kwargs)
        self.called = path.rpartition(".")[2]
        override = self.override(path) if isinstance(func, Ext) else MISSING
        if override is not MISSING and override is not func:
            return machine.call(override, args, kwargs)
        if isinstance(func, Ext) or "()" not in path:
            special = FUNCTIONS.get(path)
            if special is not None:
                return special(machine, args, kwargs)
        rule = machine.rules.for_call(path)
        if rule is not None and not path.endswith(_ERRORS):
            return self.apply(rule, args, kwargs)
        if (patch := patched(machine, path, args, kwargs)) is not None:
            return patch
        ask_futures(machine, args, kwargs)
        self._doubt_unseen(func)
        if path.partition(".")[0] not in unseen.ON_THE_HOST:
            self.use_given(func, args, kwargs)
        if path.startswith(_ARRAYS):
            for each in args:
                uncounted(each)
        return self._made(func, args, kwargs)

    def _doubt_unseen(self, func: Any) -> None:
        """Nobody knows where what is compiled works, is not there to be read, or speaks of devices without a rule."""
        self.machine.trace.may_be_made |= unseen.may_use_devices(func, self.machine.built)
        if unseen.is_unseen(func.path):
            self.machine.join_unseen(self.called)

    def _made(self, func: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """The result of a call of which nothing is known: a decorator gives back what it got."""
        for made_by in (executed, kept):
            if (result := made_by(self.machine, func.path, args, kwargs)) is not MISSING:
                return result
        if (mark := skipping(self.machine, func.path, args, kwargs)) is not None:
            return mark
        if call_back(self.machine, func.path, args, kwargs):
            return Unknown(f"{func.path}()"[-_LONGEST_PATH:])
        last = func.path.rpartition(".")[2]
        decorated = len(args) == 1 and not kwargs and isinstance(args[0], Func | Cls | Derived)
        if decorated and ("()" in func.path or last[:1].islower()) and last not in ("Mock", "partial"):
            doubt_guard(self.machine, func.path, args[0])
            return args[0]
        machine = self.machine
        for each in (*args, *kwargs.values()):
            if isinstance(each, Func) and each.module.is_test_code and each.name == "<lambda>" and "assert" in last:
                machine.call(each, [], {})
        made = f"{func.path}({'device' if self._is_elsewhere(kwargs) else ''})"[-_LONGEST_PATH:]
        text = None if args or not last[:1].isupper() else record_text(last, kwargs)
        return Unknown(made) if text is None else Made(made, text)

    def _is_elsewhere(self, kwargs: dict[str, Any]) -> bool:
        """Whether what is made may be on a device: a device is named that is not known to be the host."""
        named = hard(kwargs.get("device"))
        device = self.device(named)
        return named is not None and not (isinstance(device, Dev) and device.kind == "cpu")

    def launched(self, path: str, args: list[Any], kwargs: dict[str, Any]) -> bool:
        """Whether a function of the library under test starts ranks that run a function of the tests."""
        return launched_through(self.machine, path, args, kwargs)

    def device(self, value: Any) -> Any:
        """A device from what names one (`"cuda:1"`, an index, a `torch.device`); UNKNOWN where none is named."""
        return device_named(self.machine, value)

    def apply(self, rule: Rule, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Do what a rule says of a call.

        Raises:
            Raised, Skip: The rule says that the call fails, or skips.
        """
        if rule.decorator:
            return self._decorating(rule, args, kwargs)
        return self.obey(rule, args, kwargs)

    def _decorating(self, rule: Rule, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A decorator, bare or with arguments: what the rule says holds for the decorated test."""
        place = self.machine.current
        if len(args) == 1 and not kwargs and isinstance(args[0], Func | Cls | Bound):
            apply_mark(args[0], Mark("__rule__", (rule, [], {}), {}, *place))
            return args[0]
        return Mark("__rule__", (rule, args, kwargs), {}, *place)

    def obey(self, rule: Rule, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Do what a rule says, now.

        Raises:
            Raised, Skip: The rule says so.
        """
        machine = self.machine
        place = machine.current
        args, kwargs = machine.with_most(args, kwargs)
        self._note(rule, args, kwargs)
        if rule.skip:
            self.check(rule, "skip", args, kwargs, lambda: Skip(rule.why, *place))
        if rule.fail:
            self.check(rule, "fail", args, kwargs, lambda: self._failure(rule.why, place))
        if rule.needs:
            self._need(rule, hard(self.value_of(rule, "needs", args, kwargs)))
        if rule.touches:
            self._touch(rule, self.device(self.value_of(rule, "touches", args, kwargs)))
        if rule.returns:
            return self.value_of(rule, "returns", args, kwargs)
        return self._made(Unknown(rule.names[0]), args, kwargs)

    def _note(self, rule: Rule, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Keep backend and ranks that a rule says."""
        if rule.backend:
            backend = hard(self.value_of(rule, "backend", args, kwargs))
            if isinstance(backend, str):
                self.machine.trace.backends.add(backend)
        if rule.ranks:
            self.machine.started(hard(self.value_of(rule, "ranks", args, kwargs)))

    def _touch(self, rule: Rule, device: Any) -> None:
        if rule.why == unseen.CHOSEN and isinstance(device, Dev) and isinstance(device.index, int) and device.index < 0:
            return  # PyTorch chooses none then
        self.machine.touch(unseen.chosen(self.machine, device) if rule.why == unseen.CHOSEN else device, rule.why)
        is_told_the_host = self.machine.size > 0 and isinstance(device, Dev) and device.kind == "cpu"
        if rule.why in _BY_ITSELF and self.machine.quiet and not self.machine.is_doubtful() and not is_told_the_host:
            self.machine.trace.by_itself = rule.why
        if rule.why == unseen.CHOSEN and isinstance(device, Dev) and isinstance(device.index, int):
            self.machine.current_device = device.index

    def _need(self, rule: Rule, count: Any) -> None:
        if isinstance(count, int) and not isinstance(count, bool):
            self.machine.need(count, rule.why)
        elif isinstance(count, Unknown) and not self.machine.quiet:
            self.machine.trace.unsure.append(rule.why)

    def check(self, rule: Rule, part: str, args: Any, kwargs: Any, stop: Callable[[], Exception]) -> None:
        """Stop if a rule's condition holds."""
        value = self.value_of(rule, part, args, kwargs)
        truth = self.machine.truth(value)
        self.machine.trace.note(*self.machine.current, rule.why)
        self.machine.guesses += truth is None or (truth is True and rule.unsure)
        if truth:
            raised = stop()
            if isinstance(raised, Skip):
                raised.soft = isinstance(value, Soft)
            raise raised

    def value_of(self, rule: Rule, part: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """The value of one expression of a rule: N visible devices, `arg(position, name, default)`."""
        machine = self.machine

        def arg(asked: list[Any], _kwargs: dict[str, Any]) -> Any:
            position, name, default = [*asked, None, None][:3] if len(asked) < 3 else asked  # noqa: PLR2004
            if isinstance(name, str) and name in kwargs:
                return kwargs[name]
            if isinstance(position, int) and position < len(args):
                return args[position]
            return default

        expression = rule.expressions[part]
        names = {**self.words, "N": machine.count, "arg": Native("arg", arg)}
        env = Env(Mod("<rules>", "", is_model=True), None, names)
        env.names |= {"rank": machine.rank[0] if machine.rank else 0, "args": args, "kwargs": kwargs}
        env.names |= {"called": self.called, "marked": self.marked}
        env.names["world"] = machine.rank[1] if machine.rank else UNKNOWN
        env.names["env"] = Native("env", lambda a, _k: environment_value(machine, a[0], *a[1:]))
        fuel = machine.fuel
        try:
            return machine.made(expression, env)
        finally:
            machine.fuel = fuel

    def call_mark(self, mark: Mark, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """`pytest.mark.x(...)`: a decorator, or a mark with arguments."""
        if len(args) == 1 and not kwargs and isinstance(args[0], Func | Cls):
            mark_now(self.machine, args[0], mark)
            return args[0]
        if self.machine.forks and is_sure_to_skip(mark.name, args):  # and another way may be gone
            return Mark("skipif", (UNKNOWN,), {"reason": "a condition that is not known"}, *self.machine.current)
        return Mark(mark.name, (*mark.args, *args), {**mark.kwargs, **kwargs}, *self.machine.current)

    def of_outside_base(self, value: Any, name: str) -> Any:
        """A method that an instance has from a base class outside (unittest's, torch's), or MISSING."""
        cls = value.cls if isinstance(value, Inst) else value
        method = unittest_method(self.machine, value, name)
        if method is MISSING:
            method = method_of_tuple(self.machine, value, name)
        if method is not MISSING:
            return method
        if name in ("cuda", *MOVERS) and cls.is_open:
            return Unknown(f"{cls.name}().{name}")
        return MISSING

    def entered(self, value: Any, path: str, line: int) -> Any:
        """What a `with` gives and how it ends."""
        machine = self.machine
        value = hard(value)
        if isinstance(value, Dev):
            if value.kind == "meta":
                return self._without_devices()
            machine.touch(value, "with torch.device(...)")
        if isinstance(value, Unknown) and any(word in value.path for word in _NO_WORK):
            return self._without_devices()
        return context_of(machine, value, path, line)

    def _without_devices(self) -> Any:
        self.machine.no_device_work += 1

        def leave(_raised: Raised | None) -> bool:
            self.machine.no_device_work -= 1
            return False

        return UNKNOWN, leave
