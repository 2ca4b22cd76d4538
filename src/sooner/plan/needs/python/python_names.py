"""Python's builtins."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.attributes import of_metaclass
from sooner.plan.needs.evaluator.comparisons import HOST_ERRORS
from sooner.plan.needs.evaluator.counted import Counted, uncounted
from sooner.plan.needs.evaluator.enumerations import is_mixed_member, plain_of
from sooner.plan.needs.evaluator.growth import power
from sooner.plan.needs.evaluator.lazy_values import Turn
from sooner.plan.needs.evaluator.raising import Caught
from sooner.plan.needs.evaluator.special_methods import is_named_tuple, written_fields
from sooner.plan.needs.evaluator.values import (
    MISSING,
    PLAIN,
    UNKNOWN,
    Args,
    Bound,
    Cls,
    Dev,
    Ext,
    Func,
    Function,
    Inst,
    Kwargs,
    Made,
    Mod,
    Native,
    Param,
    Raised,
    Soft,
    Text,
    Unknown,
    Wrapped,
    hard,
    is_plain,
    name_of,
)
from sooner.plan.needs.frameworks.kept import Loader
from sooner.plan.needs.frameworks.number_types import is_scalar_type, scalar_name, scalar_of_dtype
from sooner.plan.needs.frameworks.outside_kinds import (
    above,
    has_foreign_base,
    is_container,
    is_kind_outside,
    is_of_no_class_of_the_tree,
    is_of_outside,
    kind_outside,
    record_text,
    types_below,
)
from sooner.plan.needs.python import sets
from sooner.plan.needs.python.containers import Environment, plain_mapping
from sooner.plan.needs.python.data_files import opened
from sooner.plan.needs.python.iterating import ITERATING
from sooner.plan.needs.python.ordering import in_order, most
from sooner.plan.needs.python.plain_methods import pairs_of
from sooner.plan.needs.python.quantifying import quantified

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine


def _host(function: Callable[..., Any]) -> Function:
    """A builtin that is called as it is when everything is plain."""

    def called(_machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
        values = [hard(each) if function in (repr, format) else plain_of(hard(each)) for each in args]
        names = {key: hard(each) for key, each in kwargs.items()}
        if not all(is_plain(each) for each in (*values, *names.values())):
            return UNKNOWN
        try:
            result = function(*values, **names)
        except (ValueError, ArithmeticError) as error:
            raise Raised(type(error).__name__, str(error)) from None
        except HOST_ERRORS:
            return UNKNOWN
        soft = any(isinstance(each, Soft) for each in (*args, *kwargs.values()))
        return Soft(result) if soft and is_plain(result) else result

    return called


def _by_method(name: str, function: Function) -> Function:
    """A builtin that asks an instance of the tests' own by its special method."""

    def called(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
        told = machine.special(hard(args[0]), name) if len(args) == 1 else MISSING
        return function(machine, args, kwargs) if told is MISSING else told

    return called


def _sum(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    items = machine.items_of(args[0]) if args else None
    items = items and [plain_of(hard(each)) for each in items]
    return _host(sum)(machine, args if items is None else [items, *args[1:]], kwargs)


def _len(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    value = plain_of(hard(args[0])) if args else UNKNOWN
    if isinstance(value, Inst):
        method = value.cls.find("__len__")
        return UNKNOWN if method is MISSING else machine.call(Bound(method, value), [], {})
    if isinstance(value, Cls) and (of_meta := of_metaclass(value, "__len__")) is not None:
        return machine.call(of_meta, [value], {})
    if (isinstance(value, dict) and UNKNOWN in value) or id(value) in machine.of_any_length:
        return UNKNOWN
    machine.trace.questions += id(value) in machine.as_many
    if isinstance(value, range | list | tuple | str | dict | set | frozenset | bytes):
        return Soft(len(value)) if isinstance(args[0], Soft) else len(value)
    items = None if isinstance(value, Loader) else machine.items_of(value)
    return UNKNOWN if items is None else len(items)


def _isinstance(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    value, kinds = hard(args[0]), hard(args[1]) if len(args) > 1 else UNKNOWN
    answers = [_is_a(machine, value, kind) for kind in (kinds if isinstance(kinds, tuple | list) else (kinds,))]
    return True if True in answers else UNKNOWN if None in answers else False


HOST_TYPES: Final[dict[str, Any]] = {
    "int": int, "str": str, "list": list, "tuple": tuple, "dict": dict, "set": set, "float": float, "bool": bool,
    "bytes": bytes, "frozenset": frozenset, "Mapping": dict, "Sequence": (list, tuple, str),
    "MutableMapping": dict, "MutableSequence": list,
    "Iterable": (list, tuple, set, dict, str),
    "Number": (int, float), "Callable": (), "Enum": (),
}  # fmt: skip


_FUNCTIONS: Final = ("FunctionType", "LambdaType")
_METHODS: Final = ("MethodType",)
_FINAL: Final = (*_FUNCTIONS, *_METHODS, "BuiltinFunctionType", "GeneratorType", "NoneType")
"""Types that no class inherits from."""
_SEVERAL_TYPES: Final = re.compile(r"[a-z]\w*_(?:types?|classes)|basestring|unicode")
"""Names of types of Python's in libraries that hide its version (`compat.string_types`, `torch._six.int_classes`)."""


def _type_of(kind: Any) -> Any:
    """The type of Python's, or the types, that a class is or stands for (`typing.Dict`); None where it is none."""
    name = name_of(kind)
    stands_for = name.lower() if isinstance(kind, Ext) and kind.path.startswith("typing") else name
    return HOST_TYPES.get(name, HOST_TYPES.get(stands_for))


def _is_a(machine: "Machine", value: Any, kind: Any) -> bool | None:
    kind = hard(kind)
    if isinstance(kind, Ext) and is_kind_outside(kind):
        return is_of_outside(value, kind)
    if isinstance(value, Param) or is_scalar_type(value):
        return False if isinstance(kind, Native | Cls) else None
    if isinstance(kind, Native | Ext) and isinstance(value, PLAIN):
        if isinstance(kind, Ext) and _SEVERAL_TYPES.fullmatch(name_of(kind)):
            return None
        host = _type_of(kind)
        return isinstance(value, host) if host is not None else False
    if isinstance(value, Inst | Caught):
        return _is_of_class(value, kind) if isinstance(value, Inst) else value.is_a(machine, kind)
    if isinstance(value, Dev | Cls):
        return name_of(kind) == ("device" if isinstance(value, Dev) else "type")
    if isinstance(kind, Cls) and is_of_no_class_of_the_tree(value):
        return False
    if isinstance(value, Unknown | Ext):
        return None
    if isinstance(value, Func | Bound):
        return name_of(kind) in ("Callable", *(_FUNCTIONS if isinstance(value, Func) else _METHODS))
    return False if isinstance(value, PLAIN) and isinstance(kind, Cls) else None


def _is_of_class(value: Inst, kind: Any) -> bool | None:
    if isinstance(kind, Cls) and kind not in value.cls.mro and "Protocol" in map(name_of, kind.bases):
        has = [value.cls.find(name) is not MISSING for name in kind.attrs if not name.startswith("__")]
        return True if has and all(has) else None if has_foreign_base(value.cls) else False
    if isinstance(kind, Cls):
        return kind in value.cls.mro or (None if has_foreign_base(value.cls) else False)
    host = _type_of(kind)
    if is_container(value, name_of(kind)) or (host and any(issubclass(each, host) for each in types_below(value))):
        return True
    if is_named_tuple(value) and name_of(kind) in HOST_TYPES:
        return issubclass(tuple, HOST_TYPES[name_of(kind)])
    return _is_member(value, name_of(kind)) if value.cls.is_open and name_of(kind) not in _FINAL else False


def _is_member(value: Inst, kind: str) -> bool | None:
    """Whether a member of an enumeration is of a type of Python's: of that of its value where it is one of these."""
    if "_value_" not in value.attrs or kind not in HOST_TYPES:
        return None
    if is_mixed_member(value):
        return isinstance(hard(value.attrs["_value_"]), HOST_TYPES[kind]) or kind == "Enum"
    return kind == "Enum"


def _issubclass(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    cls, kinds = hard(args[0]), hard(args[1]) if len(args) > 1 else UNKNOWN
    answers = [_is_below(cls, hard(kind)) for kind in (kinds if isinstance(kinds, tuple | list) else (kinds,))]
    return True if True in answers else UNKNOWN if None in answers else False


def _is_below(cls: Any, kind: Any) -> bool | None:
    if isinstance(cls, Cls) and isinstance(kind, Cls):
        return True if kind in cls.mro else None if cls.is_open else False
    host = _type_of(cls), _type_of(kind)
    if isinstance(cls, Native) and isinstance(host[0], type) and isinstance(host[1], type):
        return issubclass(host[0], host[1])
    if not isinstance(kind, Ext) or not isinstance(cls, Cls | Ext):
        return None
    names = set().union(*(above(name_of(each)) for each in (cls.mro if isinstance(cls, Cls) else [cls])))
    if name_of(kind) in names:
        return True
    return False if "BaseException" in names and "BaseException" in above(kind.path) else None


def _getattr(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    if len(args) < 2 or not isinstance(hard(args[1]), str):  # noqa: PLR2004 - getattr(value, name)
        return UNKNOWN
    has = machine.has_attribute(args[0], hard(args[1]))
    if len(args) > 2 and has is not True:  # noqa: PLR2004 - getattr(value, name, default)
        return args[2] if has is False else machine.either(machine.attribute(args[0], hard(args[1])), args[2])
    return machine.attribute(args[0], hard(args[1]))


def _hasattr(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    if len(args) < 2 or not isinstance(hard(args[1]), str):  # noqa: PLR2004 - hasattr(value, name)
        return UNKNOWN
    has = machine.has_attribute(args[0], hard(args[1]))
    return UNKNOWN if has is None else has


def _setattr(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    if len(args) == 3 and isinstance(hard(args[1]), str):  # noqa: PLR2004 - setattr(value, name, new)
        machine.set_attribute(args[0], hard(args[1]), args[2])


def _delattr(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    if len(args) == 2 and isinstance(hard(args[1]), str):  # noqa: PLR2004 - delattr(value, name)
        machine.delete_attribute(args[0], hard(args[1]))


def _backwards(values: list[Any]) -> list[Any]:
    return values[::-1]


def _made_of(kind: type) -> Function:
    """`list`, `tuple`, `set`, `sorted`, `reversed`: containers whose elements may be anything."""

    def called(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
        if not args:
            return kind()
        told = machine.special(hard(args[0]), "__reversed__") if kind is _backwards else MISSING
        values = machine.items_of(args[0] if told is MISSING else told)
        if told is not MISSING:
            return UNKNOWN if values is None else values
        if values is None:
            return args[0] if isinstance(args[0], Turn) and kind in (list, tuple) else UNKNOWN
        values = sets.distinct(machine, values) if kind in (set, frozenset) else values
        try:
            result = kind(values)
        except TypeError:
            return UNKNOWN
        if id(hard(args[0])) in machine.as_many:
            machine.as_many[id(result)] = result
        if kind in (list, tuple):
            machine.added.mark(result, machine.added.places(args[0]))
        return Soft(result) if isinstance(args[0], Soft) else result

    return called


def _dict(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    made: dict[Any, Any] = {}
    first = plain_mapping(args[0]) if args else {}
    if isinstance(first, Ext) and first.path == "os.environ":
        return Environment(machine.environment | kwargs)
    if isinstance(first, Environment):
        return Environment(dict(first) | kwargs)
    if isinstance(first, dict):
        made.update(first)
    else:
        made.update(pairs_of(machine, first))
    return made | kwargs


def _from_keys(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    keys = machine.items_of(args[0]) if args else None
    return dict.fromkeys(map(machine.key, [UNKNOWN] if keys is None else keys), args[1] if len(args) > 1 else None)


def _range(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    args, _ = machine.with_most(args, kwargs)
    given = [machine.as_index(hard(each)) for each in args]
    numbers = [uncounted(each) for each in given]
    if not all(isinstance(each, int) for each in numbers) or not numbers:
        return UNKNOWN
    try:
        made = range(*numbers)
    except HOST_ERRORS as error:
        raise Raised(type(error).__name__, str(error), *machine.current) from None
    if len(given) == 1 and isinstance(given[0], Counted):
        machine.as_many[id(made)] = made
    return Soft(made) if any(isinstance(each, Soft) for each in args) else made


def _str(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    if not args:
        return ""
    value = hard(args[0])
    if isinstance(value, Text):
        return value.known()
    if isinstance(value, Made):
        return Soft(value.text)
    if isinstance(value, Dev):
        return value.kind if value.index is None else f"{value.kind}:{value.index}"
    if isinstance(value, Inst):
        return _text_of(machine, value)
    if isinstance(value, Ext):
        return _text_outside(value)
    if not is_plain(value):
        return UNKNOWN
    return Soft(str(value)) if isinstance(args[0], Soft) else str(value)


def _text_outside(value: Ext) -> Any:
    """What PyTorch's names are written as, and types of numbers (`jax.numpy.float32.dtype`)."""
    scalar = scalar_of_dtype(value)
    if scalar is not None:
        return scalar_name(scalar)
    return value.path if value.path.startswith("torch.") else UNKNOWN


def _text_of(machine: "Machine", value: Inst) -> Any:
    for special in ("__str__", "__repr__"):
        method = value.cls.find(special)
        if isinstance(method, Func):
            return machine.call(method, [value], {})
    if "_value_" in value.attrs and value.cls.is_a("StrEnum", "IntEnum", "IntFlag"):
        return _str(machine, [value.attrs["_value_"]], {})
    if "_name_" in value.attrs:
        return f"{value.cls.name}.{value.attrs['_name_']}"
    names = written_fields(value.cls)
    if names is None or has_foreign_base(value.cls):
        return UNKNOWN
    text = record_text(value.cls.within + value.cls.name, {name: value.attrs.get(name, UNKNOWN) for name in names})
    return UNKNOWN if text is None else text


def _repr(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    value = hard(args[0]) if args else UNKNOWN
    method = value.cls.find("__repr__") if isinstance(value, Inst) else MISSING
    return machine.call(method, [value], {}) if isinstance(method, Func) else _host(repr)(machine, args, kwargs)


def _type(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    value = hard(args[0]) if args else UNKNOWN
    if len(args) == 3 and isinstance(value, str):  # noqa: PLR2004 - type(name, bases, attributes)
        bases = [each for each in hard(args[1]) if isinstance(each, Cls | Ext)] if isinstance(args[1], tuple) else []
        made = Cls(value, bases, bases[0].module if bases and isinstance(bases[0], Cls) else Mod("", ""))
        made.attrs.update(
            {k: v for k, v in hard(args[2]).items() if isinstance(k, str)} if isinstance(hard(args[2]), dict) else {}
        )
        return made
    outside = kind_outside(value)
    if outside is not None:
        return outside
    if type(value) in _NAMED_TYPES:
        return machine.natives.builtin(type(value).__name__)
    return value.cls if isinstance(value, Inst) else Unknown("type()")


_NAMED_TYPES: Final = (int, float, str, bool, list, tuple, dict, set, bytes)


def _super(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    from sooner.plan.needs.evaluator.values import Super

    if len(args) == 2 and isinstance(args[0], Cls) and isinstance(args[1], Inst | Cls):  # noqa: PLR2004
        return Super(args[0], args[1])
    return UNKNOWN


def _nothing(_machine: "Machine", _args: Args, _kwargs: Kwargs) -> Any:
    return None


def _unknown(_machine: "Machine", _args: Args, _kwargs: Kwargs) -> Any:
    return UNKNOWN


def _identity(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    value = hard(args[0]) if args else UNKNOWN
    return id(value) if isinstance(value, Inst | list | dict | set | Func | Cls) else UNKNOWN


def _callable(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    value = hard(args[0]) if args else UNKNOWN
    if isinstance(value, Func | Bound | Native | Cls):
        return True
    return UNKNOWN if isinstance(value, Unknown | Ext | Inst) else False


_FROM_LIST: Final = 3
"""The place of `fromlist` among the arguments of `__import__`."""


def _vars(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """The names of an object itself."""
    value = hard(args[0]) if len(args) == 1 else UNKNOWN
    return machine.attribute(value, "__dict__") if isinstance(value, Cls | Inst | Mod) else UNKNOWN


def _import(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`__import__("package.module")` gives the package, unless it is told what is wanted of the module."""
    name = hard(args[0] if args else kwargs.get("name"))
    if not isinstance(name, str) or len(args) > _FROM_LIST + 1:
        return UNKNOWN
    wanted = args[_FROM_LIST] if len(args) > _FROM_LIST else kwargs.get("fromlist", ())
    machine.imported(name, machine.current[0])
    return machine.imported(name if machine.truth(wanted) else name.partition(".")[0], machine.current[0])


def _dir(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """The names of an object, those that it inherits in the tree included."""
    value = hard(args[0]) if len(args) == 1 else UNKNOWN
    return list(members(value)) if isinstance(value, Cls | Inst) else UNKNOWN


def members(value: Cls | Inst) -> dict[str, Any]:
    """What a class or an instance has by which names, as far as the tree says."""
    cls = value.cls if isinstance(value, Inst) else value
    found: dict[str, Any] = {}
    for owner in reversed(cls.mro):
        found |= owner.attrs if isinstance(owner, Cls) else {}
    found |= value.attrs if isinstance(value, Inst) else {}
    return dict(sorted(found.items()))


def _globals(machine: "Machine", _args: Args, _kwargs: Kwargs) -> Any:
    module = machine.modules.get(machine.current[0])
    return module.env.names if module is not None else {}


def _compiled(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    return args[0] if args and isinstance(hard(args[0]), str) else UNKNOWN  # `exec` takes the text as well


def _wrapped(kind: str) -> Function:
    return lambda _machine, args, _kwargs: Wrapped(kind, args[0]) if args else UNKNOWN


BUILTINS: Final[dict[str, Function]] = {
    "len": _len, "min": most(min, largest=False), "max": most(max, largest=True),
    "any": quantified(deciding=True), "all": quantified(deciding=False),
    "int": _by_method("__int__", _host(int)), "float": _by_method("__float__", _host(float)),
    "abs": _by_method("__abs__", _host(abs)), "sum": _sum, "round": _host(round),
    "pow": _host(power), "bin": _host(bin), "oct": _host(oct), "ascii": _host(ascii),
    "divmod": _host(divmod), "repr": _repr, "ord": _host(ord), "chr": _host(chr),
    "hex": _host(hex), "str": _str, "list": _made_of(list), "tuple": _made_of(tuple),
    "set": _made_of(set), "frozenset": _made_of(frozenset), "reversed": _made_of(_backwards),  # type: ignore[arg-type]
    "dict": _dict, "dict.fromkeys": _from_keys, "range": _range, **ITERATING, "sorted": in_order,
    "isinstance": _isinstance, "issubclass": _issubclass,
    "getattr": _getattr, "hasattr": _hasattr, "setattr": _setattr, "delattr": _delattr, "callable": _callable,
    "type": _type, "super": _super, "print": _nothing, "id": _identity, "vars": _vars,
    "globals": _globals, "locals": _unknown, "dir": _dir, "open": opened, "input": _unknown, "eval": _unknown,
    "exec": _nothing, "compile": _compiled, "format": _host(format), "slice": _host(slice), "memoryview": _unknown,
    "bytearray": _unknown, "complex": _host(complex), "property": _wrapped("property"),
    "staticmethod": _wrapped("staticmethod"), "classmethod": _wrapped("classmethod"),
    "__import__": _import, "exit": _unknown, "quit": _unknown,
}  # fmt: skip


def _bytes(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`bytes([1, 2])`; of a number, which could be any, nothing."""
    is_number = bool(args) and isinstance(hard(args[0]), int)
    return UNKNOWN if is_number else _host(bytes)(machine, args, kwargs)


def _hash(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """Of a number, which is the same in each process."""
    value = uncounted(hard(args[0])) if args else None
    return hash(value) if isinstance(value, int | float) else UNKNOWN


def _bool(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    truth = machine.truth(args[0]) if args else False
    if truth is None:
        return UNKNOWN
    return Soft(truth) if isinstance(args[0], Soft) else truth


BUILTINS.update({"bool": _bool, "bytes": _bytes, "hash": _hash})
