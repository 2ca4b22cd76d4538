"""What `type(...)` says of things outside the tree, and what is of such a type: types of numbers, cases of pytest's."""

import builtins
import re
import unittest
from collections import Counter, OrderedDict, defaultdict
from typing import Any, Final

from sooner.plan.needs.evaluator.values import MISSING, Cls, Ext, Inst, Native, Param, Unknown, hard, is_plain, name_of
from sooner.plan.needs.frameworks.number_types import is_scalar_type
from sooner.plan.needs.syntax import last_name

_PARAMETER_SET: Final = "pytest.ParameterSet"
_SCALAR: Final = "__scalar__"
_MADE: Final = re.compile(r"(?:\w+\.)+_*[A-Z]\w*\(\)")
_MEMBER: Final = re.compile(r"(?!torch\.|jax\.)(?:[\w.]+\.)?[A-Z]\w*[a-z]\w*\.[A-Z][A-Z0-9_]+")
"""`SoftmaxType.SCALED`: more likely a member of an enumeration than anything else, but PyTorch's and JAX's own."""
_OF_MODULES: Final = {
    "T_destination", "add_module", "apply", "bfloat16", "buffers", "call_super_init", "children", "compile",
    "cpu", "cuda", "double", "dump_patches", "eval", "extra_repr", "float", "forward", "get_buffer",
    "get_extra_state", "get_parameter", "get_submodule", "half", "ipu", "load_state_dict", "modules", "mro",
    "mtia", "named_buffers", "named_children", "named_modules", "named_parameters", "parameters",
    "register_backward_hook", "register_buffer", "register_forward_hook", "register_forward_pre_hook",
    "register_full_backward_hook", "register_full_backward_pre_hook", "register_load_state_dict_post_hook",
    "register_load_state_dict_pre_hook", "register_module", "register_parameter",
    "register_state_dict_post_hook", "register_state_dict_pre_hook", "requires_grad_", "set_extra_state",
    "set_submodule", "share_memory", "state_dict", "to", "to_empty", "train", "training", "type", "xpu",
    "zero_grad",
}  # fmt: skip
"""What PyTorch's `torch.nn.Module` has, of any version from 1.0 to 2.9, but for what is private."""
_PUBLIC: Final = {"torch.nn.Module": _OF_MODULES, "torch.nn.modules.module.Module": _OF_MODULES}
"""All public attributes of classes outside that much inherits from."""
_SWITCHING: Final = re.compile(r"(?:set_)?use_(?:gpus?|cuda)")
"""Names of methods that are told whether a device is used (`task.set_use_gpu(True)`)."""
_GIVEN: Final = {
    "dispatch_model": (1, "device_map"),
    "load_checkpoint_and_dispatch": (2, "device_map"),
    "load_checkpoint_in_model": (2, "device_map"),
    "cpu_offload": (1, "execution_device"),
    "cpu_offload_with_hook": (1, "execution_device"),
    "disk_offload": (2, "execution_device"),
}
"""Where functions of accelerate's are given devices (`accelerate/big_modeling.py` of 0.20 to 1.11)."""
_TEST_CASES: Final = ("object", "unittest.TestCase", "unittest.case.TestCase", "unittest.IsolatedAsyncioTestCase")
_OF_TEST_CASES: Final = frozenset(dir(unittest.IsolatedAsyncioTestCase()))

_TYPES: Final[dict[str, type]] = {
    "dict": dict, "list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "str": str, "bytes": bytes,
    "int": int, "float": float, "OrderedDict": OrderedDict, "defaultdict": defaultdict, "Counter": Counter,
}  # fmt: skip

MAPPINGS: Final = ("dict", "OrderedDict", "UserDict", "defaultdict")
"""What classes inherit from that are mappings."""
MAPPING_MODEL: Final = "sooner.mappings"
"""The rule table's module that stands in for these where the tests inherit from them."""


LISTS: Final = ("list", "UserList")
LIST_MODEL: Final = "sooner.lists"
"""The same of lists, for classes of the library too."""
TUPLES: Final = ("tuple",)
TUPLE_MODEL: Final = "sooner.tuples"
"""The same of tuples, where the tests inherit from them."""


def is_container(value: Inst, kind: str) -> bool:
    """Whether an object is of a class that inherits from Python's type of containers of a name, or from one like it."""
    models = {MAPPINGS: MAPPING_MODEL, LISTS: LIST_MODEL, TUPLES: TUPLE_MODEL}
    model = next((each for kinds, each in models.items() if kind in kinds), None)
    return any(isinstance(each, Cls) and each.module.name == model for each in value.cls.mro)


def types_below(value: Inst) -> set[type]:
    """The types of Python's that the class of an object inherits from, by what stands in its head."""
    nodes = (each.node for each in value.cls.mro if isinstance(each, Cls) and each.node is not None)
    written = {last_name(base) for node in nodes for base in node.bases}
    return {_TYPES[name] for name in written & _TYPES.keys()}


def member_text(value: Ext) -> str | None:
    """How what looks like a member of an enumeration outside is written (`Mode.FAST` of `acme.Mode.FAST`), or None."""
    return ".".join(value.path.split(".")[-2:]) if _MEMBER.fullmatch(value.path) else None


def base_names(cls: Cls) -> set[str]:
    """The last parts of the names of a class and of all that it inherits from."""
    return {getattr(each, "path", "").rpartition(".")[2] or getattr(each, "name", "") for each in cls.mro}


def is_exception(cls: Cls) -> bool:
    """Whether instances of a class are raised."""
    return cls.is_a("BaseException", "SkipTest", "Error") or any("Exception" in each for each in base_names(cls))


def class_has(cls: Cls, name: str) -> bool | None:
    """Whether a class of the tree has an attribute that is in none of the tree's; None where that is not known."""
    public = [
        _PUBLIC.get(each.path) if isinstance(each, Ext) else None for each in cls.mro if not isinstance(each, Cls)
    ]
    if any(each is not None and name in each for each in public):
        return True
    return None if None in public or (public and name.startswith("_")) else False


def case_has(cls: Cls, name: str) -> bool | None:
    """Whether a test case has an attribute that the tree does not give it; None where that is not known.

    It is known of classes of the tests alone that inherit from nothing outside but unittest's.
    """
    outside = [each for each in cls.mro if not isinstance(each, Cls)]
    is_known = all(isinstance(each, Ext) and each.path in _TEST_CASES for each in outside)
    if not is_known or not all(each.module.is_test_code for each in cls.mro if isinstance(each, Cls)):
        return None
    return None if cls.find("__getattr__") is not MISSING else name in _OF_TEST_CASES


def kind_outside(value: Any) -> Ext | None:
    """What `type(value)` is, where that is something outside that is known."""
    if isinstance(value, Param):
        return Ext(_PARAMETER_SET)
    return Ext(f"{value.path.rpartition('.')[0]}.{_SCALAR}") if is_scalar_type(value) else None


def is_kind_outside(kind: Ext) -> bool:
    """Whether something is an answer of `kind_outside`."""
    return kind.path == _PARAMETER_SET or name_of(kind) == _SCALAR


def is_of_outside(value: Any, kind: Ext) -> bool | None:
    """Whether a value is of a kind that `kind_outside` said; None where that is not known."""
    if isinstance(value, Unknown):
        return None
    if kind.path == _PARAMETER_SET:
        return isinstance(value, Param)
    return is_scalar_type(value) and kind.path == f"{value.path.rpartition('.')[0]}.{_SCALAR}"


def is_of_no_class_of_the_tree(value: Any) -> bool:
    """Whether something is a class or function outside, or, as far as its name tells, an instance of such a class."""
    if isinstance(value, Native):
        return True
    if isinstance(value, Ext):
        return "()" not in value.path
    return isinstance(value, Unknown) and bool(_MADE.fullmatch(value.path))


def record_text(name: str, fields: dict[str, Any]) -> str | None:
    """How a record of a class outside is written, as `dataclass` does it; None where a field is not known."""
    texts = []
    for key, value in fields.items():
        known = hard(value)
        if isinstance(known, Ext) and known.path.startswith("torch."):
            texts.append(f"{key}={known.path}")
        elif is_plain(known):
            texts.append(f"{key}={known!r}")
        else:
            return None
    return f"{name}({', '.join(texts)})"


def above(name: str) -> set[str]:
    """A class of Python's and all that it inherits from, by their names; of any other class its own name."""
    found = getattr(builtins, name, None)
    return {each.__name__ for each in found.__mro__} if isinstance(found, type) else {name}


def has_foreign_base(cls: Cls) -> bool:
    """Whether a class inherits from one that may itself inherit from anything: Python's own do not."""
    outside = [each for each in cls.mro if not isinstance(each, Cls)]
    return any(not isinstance(each, Ext) or each.path.partition(".")[0] not in _OWN for each in outside)


def named(last: str, args: list[Any]) -> dict[str, Any]:
    """Devices that a function outside is given without a name (`dispatch_model(model, {"a": 0, "b": 1})`)."""
    if args and _SWITCHING.fullmatch(last):
        return {"use_gpu": args[0]}
    place, name = _GIVEN.get(last, (0, ""))
    return {name: args[place]} if name and place < len(args) else {}


def pins(owner: str, last: str, args: list[Any], kwargs: dict[str, Any]) -> bool:
    """Whether a call pins memory of the host: a tensor's `pin_memory()`, or one that PyTorch makes so."""
    if last == "pin_memory":
        return not args
    return owner == "torch" and hard(kwargs.get("pin_memory")) is True


_OWN: Final = (
    *("abc", "builtins", "collections", "contextlib", "enum", "logging"),
    *("object", "queue", "threading", "typing", "unittest"),
)
"""Modules of Python whose classes are inherited from."""
