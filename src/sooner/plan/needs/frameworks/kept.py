"""What PyTorch keeps of the tests to run it later: parts of models, models in wrappers, datasets behind loaders."""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Args,
    Func,
    Inst,
    Kwargs,
    Native,
    Raised,
    Unknown,
    hard,
)
from sooner.plan.needs.frameworks.callbacks import is_of_tests
from sooner.plan.needs.frameworks.forwards import PARTS, SEQUENCE, forward_of, run_parts

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_CONTAINER: Final = re.compile(r"torch\.nn\.(?:modules\.container\.)?(Sequential|ModuleList|ModuleDict)")
_LAYER: Final = re.compile(r"torch\.nn\.[\w.]+\(\)")
_LISTS: Final = (SEQUENCE, "ModuleList")
_WRAPPERS: Final = (
    "DataParallel", "DistributedDataParallel", "FullyShardedDataParallel", "AveragedModel", "OptimizedModule",
    "checkpoint_wrapper", "prepare_model",
)  # fmt: skip
"""Last parts of names of what makes another module around one, and runs it."""
_SAME: Final = ("compile", "script", "symbolic_trace", "prepare", "fully_shard")
"""Of what gives back the module that it is given, if that is all, or one that is like it."""
_ITSELF: Final = (
    "to", "cuda", "cpu", "type", "half", "float", "double", "bfloat16", "to_empty", "eval", "train", "requires_grad_",
    "share_memory",
)  # fmt: skip
"""Methods of a module that give back the module."""
_ADDING: Final = ("add_module", "register_module")
_GROWING: Final = ("append", "extend", "insert", "update", *_ADDING)


class Kept(Unknown):
    """Something of PyTorch's that has something of the tests inside, and is not known otherwise."""

    __slots__ = ()

    def attribute(self, _machine: "Machine", _name: str) -> Any:
        """An attribute, or MISSING where it is as with anything else outside."""
        return MISSING

    def item(self, _machine: "Machine", _index: Any) -> Any:
        """`value[index]`."""
        return Unknown(f"{self.path}[]")

    def items(self, _machine: "Machine") -> list[Any] | None:
        """What going over it gives; None where that is not known."""
        return None

    def call(self, machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
        """What a call of it gives."""
        return machine.natives.call_outside(Unknown(self.path), args, kwargs)


class Parts(Kept):
    """`Sequential`, `ModuleList` or `ModuleDict`.

    Args:
        path: What such a thing is called.
        parts: By their names, which are numbers but for a dict's.
    """

    __slots__ = ("parts",)

    def __init__(self, path: str, parts: dict[Any, Any]) -> None:
        super().__init__(path)
        self.parts = parts

    @property
    def is_dict(self) -> bool:
        """Whether it gives its names when it is gone over."""
        return "ModuleDict" in self.path

    def attribute(self, machine: "Machine", name: str) -> Any:
        """What adds to it, or goes over it; itself, where it is set up; a part by its name."""
        if name in _GROWING:
            return Native(name, lambda args, kwargs: self._grow(machine, name, args, kwargs))
        if name in ("keys", "values", "items") and self.is_dict:
            return Native(name, lambda _args, _kwargs: list(getattr(self.parts, name)()))
        if name in self.parts:
            return self.parts[name]
        if name in _INSIDE and all(map(_is_module, self.parts.values())):
            return Native(name, lambda _args, _kwargs: _INSIDE[name](self))
        return _itself(machine, self, name) if holds_tests(self) else MISSING

    def item(self, _machine: "Machine", index: Any) -> Any:
        """A part by its name or number, or some of them."""
        parts = list(self.parts.values())
        if isinstance(index, slice):
            return Parts(self.path, dict(enumerate(parts[index])))
        if isinstance(index, int) and not self.is_dict:
            return parts[index] if -len(parts) <= index < len(parts) else UNKNOWN
        return self.parts.get(index, UNKNOWN) if isinstance(index, str) else UNKNOWN

    def items(self, _machine: "Machine") -> list[Any]:
        """Its parts, or the names of a dict's."""
        return list(self.parts) if self.is_dict else list(self.parts.values())

    def call(self, machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
        """One part after the other, where one is the tests' own."""
        if not holds_tests(self):
            return super().call(machine, args, kwargs)
        return run_parts(machine, list(self.parts.values()), args)

    def _grow(self, machine: "Machine", name: str, args: Args, kwargs: Kwargs) -> Any:
        if name in _ADDING:
            key = hard(kwargs.get("name", args[0] if args else UNKNOWN))
            self.parts[key] = kwargs.get("module", args[1] if len(args) > 1 else UNKNOWN)
        elif name == "append":
            self.parts[len(self.parts)] = args[0] if args else UNKNOWN
        elif name == "insert" and len(args) > 1 and isinstance(hard(args[0]), int):
            parts = list(self.parts.values())
            parts.insert(hard(args[0]), args[1])
            self.parts = dict(enumerate(parts))
        elif args:
            self.parts |= self._named(machine, args[0])
        return self

    def _named(self, machine: "Machine", given: Any) -> dict[Any, Any]:
        """Further parts by their names; one that is not known for those that nobody knows."""
        if isinstance(hard(given), dict):
            return dict(hard(given))
        items = machine.items_of(given)
        return dict(enumerate([UNKNOWN] if items is None else items, len(self.parts)))


class Around(Kept):
    """A module around one of the tests.

    Args:
        path: What such a thing is called.
        inner: The tests' own.
    """

    __slots__ = ("inner",)

    def __init__(self, path: str, inner: Any) -> None:
        super().__init__(path)
        self.inner = inner

    def attribute(self, machine: "Machine", name: str) -> Any:
        """The module itself, or this one, where it is set up."""
        return self.inner if name == "module" else _itself(machine, self, name)

    def call(self, machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
        """It runs the module."""
        result = super().call(machine, args, kwargs)
        machine.call(self.inner, args, kwargs)
        return result


class Loader(Kept):
    """A loader of a dataset that is the tests' own, or whose batches are made by a function of theirs.

    Args:
        dataset: What it loads.
        collate: What makes batches, or None.
    """

    __slots__ = ("collate", "dataset")

    def __init__(self, dataset: Any, collate: Any) -> None:
        super().__init__("torch.utils.data.DataLoader()")
        self.dataset = dataset
        self.collate = collate

    def items(self, machine: "Machine") -> None:
        """How many batches there are is not known; the first one is made.

        Raises:
            Raised: A device is missing.
        """
        try:
            made = machine.special(self.dataset, "__getitem__", 0)
            if made is MISSING:
                made = next(iter(machine.items_of(self.dataset) or ()), UNKNOWN)
            if is_of_tests(self.collate):
                machine.call(self.collate, [[made]], {})
        except Raised as raised:
            if raised.device:
                raise


def kept(machine: "Machine", path: str, args: Args, kwargs: Kwargs) -> Any:
    """What a call outside makes of modules, datasets or functions of the tests; MISSING where there are none.

    Args:
        machine: Evaluates.
        path: The callable's dotted name.
        args: What it is called with, positions.
        kwargs: And names.
    """
    if (container := _CONTAINER.fullmatch(path)) is not None:
        return Parts(f"{path}()", _parts_given(machine, container[1], args, kwargs))
    last = path.rpartition(".")[2]
    if last == "DataLoader":
        return _loader(args, kwargs)
    given = [each for each in (*args[:1], *kwargs.values()) if holds_tests(each)]
    if given and last in _WRAPPERS:
        return Around(f"{path}()", given[0])
    return given[0] if given and last in _SAME and (last != "prepare" or len(args) == 1) else MISSING


def _loader(args: Args, kwargs: Kwargs) -> Any:
    dataset = hard(kwargs.get("dataset", args[0] if args else UNKNOWN))
    collate = kwargs.get("collate_fn", args[6] if len(args) > 6 else None)  # noqa: PLR2004 - as it takes them
    is_own = isinstance(dataset, Inst) and dataset.cls.module.is_test_code
    return Loader(dataset, collate) if is_own or is_of_tests(collate) else MISSING


def _parts_given(machine: "Machine", kind: str, args: Args, kwargs: Kwargs) -> dict[Any, Any]:
    first = hard(args[0] if args else kwargs.get("modules"))
    if isinstance(first, Mapping):
        return dict(first)
    if kind == SEQUENCE and not isinstance(first, list | tuple):  # Keras' is given a list
        return dict(enumerate(args))
    items = [] if first is None else machine.items_of(first)
    return dict(enumerate([UNKNOWN] if items is None else items))


def keep_parts(machine: "Machine", made: Any, args: Args) -> None:
    """Give an instance of a class of the tests its parts, where that is a list of PyTorch's."""
    kind = next((each for each in _LISTS if made.cls.is_a(each)), None) if isinstance(made, Inst) else None
    if kind is not None:
        made.attrs[PARTS] = list(_parts_given(machine, kind, args, {}).values())


def holds_tests(value: Any) -> bool:
    """Whether something is a module of the tests whose `forward` is written there, or has one inside."""
    value = hard(value)
    if isinstance(value, Inst):
        return value.cls.module.is_test_code and (
            isinstance(value.cls.find("forward"), Func) or any(map(holds_tests, value.attrs.get(PARTS, ())))
        )
    if isinstance(value, Parts):
        return any(map(holds_tests, value.parts.values()))
    return isinstance(value, Around)


def of_module(machine: "Machine", value: Inst, name: str) -> Any:
    """A method of PyTorch's that a module of the tests has and does not write; MISSING where it is as any other."""
    if not value.cls.module.is_test_code or value.cls.is_of_tests_alone:
        return MISSING
    if name in _ADDING:
        return Native(name, lambda args, kwargs: _add(value, args, kwargs))
    if name == "get_submodule":
        return Native(name, lambda args, _kwargs: _below(machine, value, args))
    if name in _INSIDE:
        return Native(name, lambda _args, _kwargs: _INSIDE[name](value))
    return _itself(machine, value, name) if forward_of(machine, value) is not None else MISSING


def _add(value: Inst, args: Args, kwargs: Kwargs) -> None:
    name = hard(kwargs.get("name", args[0] if args else UNKNOWN))
    if isinstance(name, str):
        value.attrs[name] = kwargs.get("module", args[1] if len(args) > 1 else UNKNOWN)


def _children(value: Any) -> list[tuple[str, Any]]:
    """The modules that are a module's attributes, or its parts, by their names."""
    if isinstance(value, Inst):
        named = value.attrs if PARTS not in value.attrs else dict(enumerate(value.attrs[PARTS]))
    else:
        named = value.parts if isinstance(value, Parts) else {}
    return [(str(name), each) for name, each in named.items() if _is_module(each)]


def _modules(value: Any, name: str = "", around: tuple[Any, ...] = ()) -> list[tuple[str, Any]]:
    """A module and all that are inside of it; one that has itself inside is there once."""
    if any(each is value for each in around):
        return []
    inner = [
        each
        for part, child in _children(value)
        for each in _modules(child, f"{name}.{part}".lstrip("."), (*around, value))
    ]
    return [(name, value), *inner]


def _is_module(value: Any) -> bool:
    if isinstance(value, Inst):
        return not value.cls.is_of_tests_alone and value.cls.find("forward") is not MISSING
    return isinstance(value, Parts | Around) or (isinstance(value, Unknown) and bool(_LAYER.fullmatch(value.path)))


_INSIDE: Final[dict[str, Callable[[Any], list[Any]]]] = {
    "children": lambda value: [each for _, each in _children(value)],
    "named_children": _children,
    "modules": lambda value: [each for _, each in _modules(value)],
    "named_modules": _modules,
}


def _below(machine: "Machine", value: Any, args: Args) -> Any:
    name = hard(args[0]) if args else UNKNOWN
    if not isinstance(name, str):
        return UNKNOWN
    for each in filter(None, name.split(".")):
        value = machine.attribute(value, each)
    return value


def _itself(machine: "Machine", value: Any, name: str) -> Any:
    """A method that gives back the module, after what it does to devices; MISSING where it is none."""
    if name not in _ITSELF:
        return MISSING
    path = f"{value.cls.name}()" if isinstance(value, Inst) else value.path

    def called(args: Args, kwargs: Kwargs) -> Any:
        machine.natives.call_outside(Unknown(f"{path}.{name}"), args, kwargs)
        return value

    return Native(path, called)
