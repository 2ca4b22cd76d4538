"""The few functions of the standard library whose results decide about tests."""

import ast
import functools
import math
import re
import textwrap
from collections import Counter, OrderedDict
from string import Template
from typing import TYPE_CHECKING, Any, Final, cast

from sooner.plan.needs.evaluator.counted import uncounted
from sooner.plan.needs.evaluator.special_methods import FACTORY, set_plainly
from sooner.plan.needs.evaluator.suspending import AROUND
from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Args,
    Bound,
    Cls,
    Code,
    Env,
    Ext,
    Func,
    Function,
    Inst,
    Kwargs,
    Mod,
    Native,
    Partial,
    Raised,
    Signature,
    Soft,
    Text,
    Unknown,
    Wrapped,
    copy_of,
    hard,
    is_plain,
)
from sooner.plan.needs.frameworks.made_of import finish_record
from sooner.plan.needs.processes.written_programs import temporary
from sooner.plan.needs.python import copying, text_patterns
from sooner.plan.needs.python.caching import cache, cached_property
from sooner.plan.needs.python.containers import Counting, Defaulting, Deque, Environment
from sooner.plan.needs.python.data_files import DATA_FILES
from sooner.plan.needs.python.dispatching import single_dispatch, single_dispatch_method
from sooner.plan.needs.python.file_paths import absolute, package_files, path_of
from sooner.plan.needs.python.iterators import ITERATORS
from sooner.plan.needs.python.ordering import by_comparing
from sooner.plan.needs.python.plain_functions import PLAIN_FUNCTIONS
from sooner.plan.needs.python.python_names import BUILTINS, members

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_PARTIAL_METHOD: Final = cast(
    "ast.FunctionDef",
    ast.parse("def method(self, *more, **named):\n    return func(self, *first, *more, **{**given, **named})").body[0],
)


def _wraps(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    original = args[0] if args else UNKNOWN

    def decorate(inner: Args, _names: Kwargs) -> Any:
        wrapper = inner[0] if inner else UNKNOWN
        source = original.func if isinstance(original, Bound) else original
        if isinstance(wrapper, Func) and isinstance(source, Func):
            marks = [*source.attrs.get("pytestmark", ()), *wrapper.attrs.get("pytestmark", ())]
            wrapper.attrs |= {name: each for name, each in source.attrs.items() if name != AROUND}
            wrapper.attrs["__wrapped__"] = source
            wrapper.attrs["pytestmark"] = marks
            wrapper.name, wrapper.within = source.name, source.within
        elif isinstance(wrapper, Func) and isinstance(source, Cls):
            wrapper.attrs["__wrapped__"] = source
        return wrapper

    return Native("wraps", decorate)


def _update_wrapper(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """The function that stands around another, which it says to be."""
    around, *others = args or [UNKNOWN]
    return _wraps(machine, [*others, kwargs.get("wrapped", UNKNOWN)][:1], {}).call([around], {})


def _function(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """A copy of a function, made of what it does."""
    code = args[0] if args else UNKNOWN
    return copy_of(code.func, code.func.owner) if isinstance(code, Code) else UNKNOWN


def _signature(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    return Signature(args[0]) if args else UNKNOWN


def _file_of(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    made = hard(args[0]) if args else None
    module = made if isinstance(made, Mod) else made.module if isinstance(made, Cls | Func) else None
    return f"/{module.path}" if module is not None and module.path else UNKNOWN


def _partial(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    if not args:
        return UNKNOWN
    func, first = args[0], args[1:]
    return Partial(
        func, len(first), kwargs, lambda more, names: machine.call(func, [*first, *more], {**kwargs, **names})
    )


def _partial_method(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`functools.partialmethod(f, 1, n=2)`: a method of its own, that calls the function."""
    func = args[0] if args else UNKNOWN
    if not isinstance(func, Func):
        return _partial(machine, args, kwargs)
    names = {"func": func, "first": list(args[1:]), "given": kwargs}
    return Func(_PARTIAL_METHOD, Env(func.module, None, names), func.name)


def _members(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`inspect.getmembers`; names of a predicate that nobody knows are left in."""
    value = hard(args[0]) if args else UNKNOWN
    if not isinstance(value, Cls | Inst):
        return UNKNOWN
    predicate = args[1] if len(args) > 1 else kwargs.get("predicate")
    pairs = [(name, machine.attribute(value, name)) for name in members(value)]
    if predicate is None:
        return pairs
    return [pair for pair in pairs if machine.truth(machine.call(predicate, [pair[1]], {})) is not False]


def _is_function(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    value = hard(args[0]) if args else UNKNOWN
    return UNKNOWN if isinstance(value, Unknown) else isinstance(value, Func)


def _is_method(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    value = hard(args[0]) if args else UNKNOWN
    return UNKNOWN if isinstance(value, Unknown) else isinstance(value, Bound)


def _is_class(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    value = hard(args[0]) if args else UNKNOWN
    return UNKNOWN if isinstance(value, Unknown | Ext) else isinstance(value, Cls)


def _same(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`total_ordering`, with or without arguments."""
    if args and isinstance(args[0], Func | Cls | Bound | Wrapped):
        return args[0]
    return Native("same", lambda inner, _names: inner[0] if inner else UNKNOWN)


def _dataclass(_machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    def decorate(inner: Args, _names: Kwargs) -> Any:
        cls = inner[0] if inner else UNKNOWN
        if isinstance(cls, Cls):
            make_record(cls, cls.attrs.get("__fieldnames__", []))
            if hard(kwargs.get("order")) is True:
                cls.attrs["__order__"] = cls.attrs["__record__"]
        return cls

    return decorate(args, {}) if args else Native("dataclass", decorate)


def make_record(cls: Cls, fields: list[str]) -> None:
    """A class keeps what it is given: its fields, behind those that it inherits."""
    inherited = [base.find("__record__") for base in cls.bases if isinstance(base, Cls)]
    before = [name for each in inherited if isinstance(each, list) for name in each]
    own = [name for name in fields if not isinstance(cls.attrs.get(name), Func)]
    cls.attrs["__record__"] = [*before, *(name for name in own if name not in before)]


def _field(_machine: "Machine", _args: Args, kwargs: Kwargs) -> Any:
    if "default" in kwargs:
        return kwargs["default"]
    return Wrapped(FACTORY, kwargs["default_factory"]) if "default_factory" in kwargs else UNKNOWN


def _field_of_model(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """pydantic's, whose default has no name."""
    return args[0] if args and args[0] is not ... else _field(machine, args, kwargs)


def _set_plainly(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    return set_plainly(args)


def _got_plainly(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`object.__getattribute__(instance, name)`."""
    owner, name = (hard(each) for each in (*args, UNKNOWN, UNKNOWN)[:2])
    return machine.plainly_of(owner, name) if isinstance(owner, Inst) and isinstance(name, str) else UNKNOWN


def _made_again(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """A record that is made again with some of its fields changed: what follows from them does so anew."""
    made = _replaced(machine, args, kwargs)
    after = made.cls.find("__post_init__") if isinstance(made, Inst) else MISSING
    if isinstance(after, Func):
        finish_record(machine, after, made, made.attrs)
    return made


def _replaced(_machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """A record with some of its fields changed."""
    record = hard(args[0]) if args else None
    if not isinstance(record, Inst):
        return UNKNOWN
    made = Inst(record.cls)
    made.attrs |= record.attrs | kwargs
    fields = record.cls.find("__record__")
    if "__items__" in made.attrs and isinstance(fields, list):
        made.attrs["__items__"] = [made.attrs[name] for name in fields]
    return made


def method_of_tuple(machine: "Machine", value: Inst | Cls, name: str) -> Any:
    """What a tuple with names, or its class, has of its own (`_replace`, `_make`, ...); MISSING for any other name."""
    cls = value.cls if isinstance(value, Inst) else value
    fields = cls.find("__record__")
    if cls.find("__tuple__") is MISSING or not isinstance(fields, list):
        return MISSING
    if name == "_fields":
        return tuple(fields)
    if name == "_make":
        return Native(name, lambda args, _kwargs: machine.call(cls, machine.items_of(args[0]) or [], {}))
    function = {"_replace": _replaced, "_asdict": _as_dict}.get(name)
    return MISSING if function is None else Native(name, lambda args, kwargs: function(machine, [value, *args], kwargs))


def _as_dict(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """The fields of a record; of records in records nothing is known."""
    record = hard(args[0]) if args else None
    fields = record.cls.find("__record__") if isinstance(record, Inst) else None
    if not isinstance(record, Inst) or not isinstance(fields, list):
        return UNKNOWN
    values = {name: record.attrs.get(name, UNKNOWN) for name in fields}
    return {name: UNKNOWN if isinstance(hard(each), Inst) else each for name, each in values.items()}


def _as_tuple(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """The values of a record."""
    found = _as_dict(machine, args, kwargs)
    return tuple(found.values()) if isinstance(found, dict) else UNKNOWN


def _template(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`string.Template(text)`."""
    text = hard(args[0]) if args else None

    def substituted(given: Args, named: Kwargs) -> Any:
        values = {**hard(given[0]), **named} if given and isinstance(hard(given[0]), dict) else named
        values = {name: hard(each) for name, each in values.items()}
        if not isinstance(text, str) or not is_plain(values):
            return UNKNOWN
        return Template(text).safe_substitute(values)

    made = Ext("string.Template()")
    made.attrs = dict.fromkeys(("substitute", "safe_substitute"), Native("substitute", substituted))
    return made


def _product_of(_machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`numpy.prod` of a list of numbers."""
    numbers = hard(args[0]) if len(args) == 1 and not kwargs else None
    if not isinstance(numbers, list | tuple) or any(not isinstance(hard(each), int | float) for each in numbers):
        return UNKNOWN
    return math.prod(hard(each) for each in numbers)


def _namedtuple(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    names = hard(args[1]) if len(args) > 1 else kwargs.get("field_names")
    fields = names.replace(",", " ").split() if isinstance(names, str) else machine.items_of(names)
    if not isinstance(fields, list) or not args:
        return UNKNOWN
    cls = Cls(hard(args[0]) if isinstance(hard(args[0]), str) else "tuple", [], _any_module(machine))
    cls.attrs |= {"__record__": fields, "__tuple__": True}
    defaults = machine.items_of(kwargs.get("defaults")) or []
    cls.attrs |= dict(zip(fields[len(fields) - len(defaults) :], defaults, strict=True))
    return cls


def _namespace(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """An object with the attributes that it is given; of others nothing is known."""
    made = Inst(Cls("Namespace", [Ext("types.SimpleNamespace")], _any_module(machine)))
    given = hard(args[0]) if args else {}
    if not isinstance(given, dict):
        return UNKNOWN
    made.attrs |= given | kwargs
    return made


def _any_module(machine: "Machine") -> Any:
    from sooner.plan.needs.evaluator.values import Mod

    return machine.modules.get(machine.current[0]) or Mod("", "")


def _exit(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    raised = Raised("SystemExit", "sys.exit", *machine.current)
    raised.value = hard(args[0]) if args else 0
    raise raised


def _getenv(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    from sooner.plan.needs.testing.testing_names import environment_value

    default = args[1] if len(args) > 1 else kwargs.get("default")
    name = hard(args[0]) if args else None
    return environment_value(machine, name, default) if isinstance(name, str) else UNKNOWN


def _import_module(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """A module of the tree by its name, as helpers import what they are told to."""
    name, importer = hard(args[0] if args else kwargs.get("name")), machine.current[0]
    if not isinstance(name, str):
        return Unknown("importlib.import_module()")
    level = len(name) - len(name.lstrip("."))
    if not level:
        return machine.imported(name, importer)
    path = machine.sources.relative(importer, level, name[level:])
    return machine.load(path) if path else Unknown("importlib.import_module()")


def _reloaded(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`importlib.reload(module)`: what the test has set may be in it now."""
    machine.guesses += 1
    return args[0] if args else UNKNOWN


def _modules_set(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`sys.modules.update({name: module})`."""
    given = hard(args[0]) if args else {}
    for name, module in ((given if isinstance(given, dict) else {}) | kwargs).items():
        machine.set_outside(Ext("sys.modules"), str(hard(name)), module)
    return None


def _method(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`types.MethodType(function, object)`."""
    is_known = len(args) == 2 and isinstance(args[0], Func)  # noqa: PLR2004 - the object comes after the function
    return Bound(args[0], args[1]) if is_known else UNKNOWN


def _environ_copy(machine: "Machine", _args: Args, _kwargs: Kwargs) -> Any:
    return Environment(machine.environment)


def _environ_set(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    if len(args) == 2 and isinstance(hard(args[0]), str):  # noqa: PLR2004 - setdefault(name, value)
        name = hard(args[0])
        if machine.environment.get(name, MISSING) is MISSING:
            machine.set_outside(Ext("os.environ"), name, args[1])
        return machine.environment[name]
    return UNKNOWN


def _environ_update(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    for name, value in BUILTINS["dict"](machine, args, kwargs).items():
        if isinstance(name, str):
            machine.set_outside(Ext("os.environ"), name, value)


def _environ_pop(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    name = hard(args[0]) if args else None
    if not isinstance(name, str):
        return UNKNOWN
    given = machine.environment.get(name, MISSING)
    machine.set_outside(Ext("os.environ"), name, MISSING)
    return given if given is not MISSING else args[1] if len(args) > 1 else UNKNOWN


def _environ_clear(machine: "Machine", _args: Args, _kwargs: Kwargs) -> Any:
    machine.environment |= dict.fromkeys(machine.environment, MISSING)


def _contextmanager(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    func = args[0] if args else None
    if isinstance(func, Wrapped) and func.kind == "staticmethod":  # what is made of it is a function of its class
        func = func.func
    if not isinstance(func, Func):
        return UNKNOWN
    func.attrs["__contextmanager__"] = True
    return func


def _gathered(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`asyncio.gather(...)`: what each gives, unless several of them are given of which nobody knows how many."""
    return UNKNOWN if any(each is UNKNOWN for each in args) else list(args)


def _reduce(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    values = machine.items_of(args[1]) if len(args) > 1 else None
    if values is None:
        return UNKNOWN
    values = [*args[2:3], *values]
    if not values and id(hard(args[1])) not in machine.of_any_length:
        raise Raised("TypeError", "reduce() of nothing", *machine.current)
    result = values[0] if values else UNKNOWN
    for each in values[1:]:
        result = machine.call(args[0], [result, each], {})
    return result


def _choice(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`random.choice(values)`: one of several."""
    values = machine.items_of(args[0]) if args else None
    if values is None or id(hard(args[0])) in machine.of_any_length:
        return UNKNOWN
    if not values:
        raise Raised("IndexError", "random.choice() of nothing", *machine.current)
    return values[0] if len(values) == 1 else machine.item(values, UNKNOWN)


def _sample(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`random.sample(values, 2)`: so many of several, where these are devices or numbers."""
    values = machine.items_of(args[0]) if args else None
    count = uncounted(hard(args[1] if len(args) > 1 else kwargs.get("k")))
    if values is None or not isinstance(count, int) or id(hard(args[0])) in machine.of_any_length:
        return UNKNOWN
    if count > len(values):
        raise Raised("ValueError", "a sample of more than there are", *machine.current)
    return values[:count]


def _default_dict(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    factory = args[0] if args else kwargs.pop("default_factory", None)
    known = BUILTINS["dict"](machine, args[1:], kwargs)
    return known if hard(factory) is None else Defaulting(known, lambda: machine.call(factory, [], {}))


def _ordered(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    made = BUILTINS["dict"](machine, args, kwargs)
    return OrderedDict(made) if type(made) is dict else made


def _first(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    return args[0] if args else UNKNOWN


def _chained(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`ChainMap(...)`, as long as nobody changes it: the first of several that has a key."""
    maps = [hard(each) for each in args]
    if not all(isinstance(each, dict) for each in maps):
        return UNKNOWN
    return {key: value for each in reversed(maps) for key, value in each.items()}


def _counter(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    given = hard(args[0]) if args else kwargs
    if isinstance(given, dict):
        return Counting(given, lambda: 0)
    values = machine.items_of(given)
    if values is None or not is_plain(values):
        return UNKNOWN
    return Counting(Counter(machine.key(each) for each in values), lambda: 0)


def _deque(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """A list of the last ones; that it grows no longer is not followed."""
    values = machine.items_of(args[0]) if args else []
    most = hard(args[1] if len(args) > 1 else kwargs.get("maxlen"))
    if values is None or not isinstance(most, int | None):
        return UNKNOWN
    return Deque(values if most is None else values[max(len(values) - most, 0) :])


def _item_getter(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    def get(inner: Args, _names: Kwargs) -> Any:
        found = [machine.item(inner[0], each) for each in args]
        return found[0] if len(found) == 1 else tuple(found)

    return Native("itemgetter", get)


def _method_caller(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    name = str(hard(args[0])) if args else ""
    return Native(
        "methodcaller", lambda inner, _names: machine.call(machine.attribute(inner[0], name), args[1:], kwargs)
    )


def _constant(value: Any) -> Function:
    return lambda _machine, _args, _kwargs: value


def _attribute_getter(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    def get(inner: Args, _names: Kwargs) -> Any:
        found = [functools.reduce(machine.attribute, str(hard(each)).split("."), inner[0]) for each in args]
        return found[0] if len(found) == 1 else tuple(found)

    return Native("attrgetter", get)


def _path_join(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    parts = [hard(each) for each in args]
    if parts and isinstance(parts[-1], str):
        known = [each for each in parts if isinstance(each, str)]
        return "/".join(known)
    return Unknown("path")


def _find_spec(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """None for a module of another vendor's devices; of others it is not known whether they are there."""
    name = hard(args[0] if args else kwargs.get("name"))
    return None if isinstance(name, str) and machine.rules.is_absent(name) else Unknown("importlib.util.find_spec()")


def _dedent(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """The same text, further to the left; one of which parts are not known stays where it is."""
    text = hard(args[0]) if args else UNKNOWN
    return textwrap.dedent(text) if isinstance(text, str) else text if isinstance(text, Text) else UNKNOWN


def _shlex_split(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    text = hard(args[0]) if args else None
    return text.split() if isinstance(text, str) else text.words() if isinstance(text, Text) else UNKNOWN


def _safe_name(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    text = hard(args[0]) if args else None
    return re.sub("[^a-zA-Z0-9_]+", "_", text) if isinstance(text, str) else UNKNOWN


def alias(generic: Ext, index: Any) -> Ext:
    """`generic[index]`: of texts and numbers that a value may be (`Literal["a", 1]`) it is kept which they are."""
    if not generic.path.endswith("Literal"):
        return generic
    made = Ext(generic.path)
    made.attrs["__args__"] = hard(index) if isinstance(hard(index), tuple) else (index,)
    return made


def _get_args(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    kind = hard(args[0]) if args else None
    return kind.attrs.get("__args__", UNKNOWN) if isinstance(kind, Ext) else UNKNOWN


def _fields(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """What a record's fields are called."""
    record = hard(args[0]) if args else None
    cls = record.cls if isinstance(record, Inst) else record
    names = cls.find("__record__") if isinstance(cls, Cls) else None
    if not isinstance(names, list):
        return UNKNOWN
    fields = [Inst(Cls("Field", [Ext("dataclasses.Field")], Mod("dataclasses", ""))) for _ in names]
    for field, name in zip(fields, names, strict=True):
        field.attrs["name"] = name
    return tuple(fields)


STANDARD_LIBRARY: Final[dict[str, Function]] = {
    "functools.wraps": _wraps, "functools.update_wrapper": _update_wrapper, "types.FunctionType": _function,
    "inspect.getfile": _file_of, "inspect.getsourcefile": _file_of, "inspect.signature": _signature,
    "inspect.getmembers": _members,
    "inspect.isfunction": _is_function, "inspect.ismethod": _is_method, "inspect.isclass": _is_class,
    "functools.partial": _partial, "functools.partialmethod": _partial_method,
    "functools.lru_cache": cache, "functools.cache": cache, "functools.total_ordering": _same,
    "functools.singledispatch": single_dispatch, "functools.singledispatchmethod": single_dispatch_method,
    "functools.cmp_to_key": by_comparing,
    "functools.cached_property": cached_property, "functools.reduce": _reduce, "random.choice": _choice,
    "random.sample": _sample, "wrapt.decorator": _same, "asyncio.gather": _gathered,
    "dataclasses.dataclass": _dataclass, "dataclasses.field": _field, "pydantic.Field": _field_of_model,
    "msgspec.field": _field, "dataclasses.replace": _made_again, "types.MethodType": _method,
    "attr.evolve": _made_again, "attrs.evolve": _made_again, "copy.replace": _made_again,
    "dataclasses.asdict": _as_dict, "dataclasses.astuple": _as_tuple,
    "string.Template": _template, "dataclasses.fields": _fields,
    "object.__setattr__": _set_plainly, "object.__getattribute__": _got_plainly, "numpy.prod": _product_of,
    "attr.s": _dataclass, "attrs.define": _dataclass,
    "types.SimpleNamespace": _namespace, "argparse.Namespace": _namespace,
    "collections.namedtuple": _namedtuple, "collections.OrderedDict": _ordered,
    "collections.ChainMap": _chained, "types.MappingProxyType": _first,
    "collections.defaultdict": _default_dict, "collections.Counter": _counter, "collections.deque": _deque,
    "operator.itemgetter": _item_getter, "operator.methodcaller": _method_caller,
    "contextlib.contextmanager": _contextmanager,
    "contextlib.asynccontextmanager": _contextmanager, "sys.exit": _exit, "os._exit": _exit, "os.getenv": _getenv,
    "object.__new__": lambda machine, args, kwargs: machine.made_plainly(args, kwargs),
    "os.environ.get": _getenv, "os.environ.setdefault": _environ_set, "os.environ.pop": _environ_pop,
    "os.environ.clear": _environ_clear, "os.environ.update": _environ_update,
    "sys.modules.update": _modules_set,
    "importlib.import_module": _import_module, "importlib.reload": _reloaded, "tempfile.NamedTemporaryFile": temporary,
    "os.environ.copy": _environ_copy, "copy.copy": copying.shallow, "copy.deepcopy": copying.deep,
    "importlib.util.find_spec": _find_spec, "textwrap.dedent": _dedent, "inspect.cleandoc": _dedent,
    "os.path.abspath": absolute, "os.path.realpath": absolute, "pathlib.Path": path_of, "pathlib.PurePath": path_of,
    "importlib.resources.files": package_files,
    "platform.system": _constant("Linux"), "platform.platform": _constant("Linux-6.8.0-x86_64-with-glibc2.39"),
    "os.path.join": _path_join,
    "os.cpu_count": _constant(Soft(64)), "multiprocessing.cpu_count": _constant(Soft(64)),
    "operator.attrgetter": _attribute_getter, "shlex.split": _shlex_split, "abc.abstractmethod": _same,
    "typing.get_args": _get_args,
    "typing.cast": lambda _machine, args, _kwargs: args[-1] if args else UNKNOWN, "typing.final": _same,
    "parameterized.parameterized.to_safe_name": _safe_name, "typing.overload": _same, "typing.no_type_check": _same,
} | PLAIN_FUNCTIONS | ITERATORS | text_patterns.FUNCTIONS | DATA_FILES  # fmt: skip
