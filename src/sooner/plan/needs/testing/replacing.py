"""What tests put in the place of something: `mock.patch` and its family, pytest's `monkeypatch`."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Args,
    Cls,
    Ext,
    Func,
    Inst,
    Kwargs,
    Mark,
    Mod,
    Native,
    OutOfFuel,
    Raised,
    Skip,
    Unknown,
    Wrapped,
    hard,
)
from sooner.plan.needs.testing.mocks import Mocked

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_MONKEYPATCHES: Final = ("monkeypatch", "mp", "MonkeyPatch()")
_STARTED: Final = "<started>"
"""Among what is overridden: the patches that were started and last until they are stopped."""
_PATCHES: Final = ("__patch__", "__patches__", "__items__", "__environment__", "__modules__")
_MODULES: Final = "sys.modules"
_OF_MULTIPLE: Final = ("target", "spec", "create", "spec_set", "autospec", "new_callable")
UNLAUNCHED: Final = "SOONER_UNLAUNCHED"
"""As a variable of the environment: the test took one of ranks away, so that no launcher has told it of the others."""
OF_RANKS: Final = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
_BEFORE: Final = "<before>"
"""Among what is overridden: what was, and the environment, before `monkeypatch` or `mocker` changed anything."""
_KEPT: Final = "<kept>"
"""Among what is overridden: what takes away what objects and classes keep by `monkeypatch`, in order."""
_WORKING: Final = ("device", "set_device", "current_device", "synchronize", "stream", "Stream", "current_stream")
"""What works on a device, of `torch.cuda`: who puts something in the place of it most likely wants none."""


class Untold(str):
    """A variable of ranks that no launcher has set for a rank: the library under test may go on without, and does."""

    __slots__ = ()


def replaces_devices(overrides: Mapping[str, Any]) -> bool:
    """Whether a test has put something in the place of what works on a device (`torch.cuda.current_stream`)."""
    return any(each.endswith(f".cuda.{name}") for each in overrides for name in _WORKING)


def in_sys_modules(name: str) -> str:
    """The name among what is overridden of what a test puts in the place of a whole module."""
    return f"{_MODULES}[{name}]"


def is_in_sys_modules(key: str) -> bool:
    """Whether it is such a name, or that of what imports."""
    return key.startswith(f"{_MODULES}[") or key == "builtins.__import__"


def module_in_place(machine: "Machine", name: str) -> Any:
    """What a test has put in the place of a module by `sys.modules`, MISSING if nothing; none at all is not there."""
    found = machine.overrides.get(in_sys_modules(name), MISSING)
    if hard(found) is None:
        raise Raised("ModuleNotFoundError", f"import of {name} halted; None in sys.modules", *machine.current)
    return found


def name_in_tree(func: Func) -> str:
    """The name by which a function of the tree is replaced: its module's, its class's, its own."""
    owner = "" if func.owner is None else f"{func.owner.name}."
    return f"{func.module.name}.{owner}{func.name}"


def patched(machine: "Machine", path: str, args: Args, kwargs: Kwargs) -> Any:
    """`mock.patch(...)` and its family, `monkeypatch.setattr(...)`; None where a call is none of them."""
    fixture, _, asked = path.partition(".")
    if fixture.endswith("mocker"):
        return _by_mocker(machine, asked, args, kwargs)
    tail = ".".join(path.split(".")[-2:])
    if tail == "mock.patch" or path == "patch":
        return _patch(machine, args, kwargs)
    if path.endswith("patch.object"):
        target = _target(machine, args[0], hard(args[1])) if len(args) > 1 else ""
        keeper = _keeper(machine, args[0], hard(args[1])) if target else None
        return _patch(machine, [target, *args[2:]], kwargs, keeper) if target else UNKNOWN
    if path.endswith("patch.stopall"):
        for each in reversed(machine.overrides.pop(_STARTED, ())):
            _stop(each)
        return MISSING
    if path.endswith("patch.multiple"):
        return _patches(machine, args, kwargs)
    if path.endswith("patch.dict"):
        return _patch_of_items(machine, args, kwargs)
    owner, _, what = tail.partition(".")
    if owner not in _MONKEYPATCHES:
        return None
    named = [kwargs[name] for name in ("target", "dic", "name", "value") if name in kwargs]
    return _monkeypatched(machine, what, [*args, *named])


def _by_mocker(machine: "Machine", asked: str, args: Args, kwargs: Kwargs) -> Any:
    """`mocker.patch(...)` and its family: at once, until `stopall` or the end of the test."""
    if asked == "stopall":
        return _undone(machine)
    if asked not in ("patch", "patch.object", "patch.dict", "patch.multiple"):
        return None
    made = patched(machine, f"mock.{asked}", args, kwargs)
    if not is_patch(made):
        return made
    _remember(machine)
    _keep_undo(machine, patch_now(machine, made))
    return UNKNOWN if made.name == "__patches__" else made.args[-1]


def _remember(machine: "Machine") -> None:
    machine.overrides.setdefault(_BEFORE, (dict(machine.overrides), dict(machine.environment)))


def _undone(machine: "Machine") -> Any:
    """All that `monkeypatch` or `mocker` has put in the place of something is gone."""
    _take_away(machine, 0)
    overrides, environment = machine.overrides.get(_BEFORE, (machine.overrides, machine.environment))
    for store, before in ((machine.overrides, dict(overrides)), (machine.environment, dict(environment))):
        store.clear()
        store.update(before)
    return MISSING


def _monkeypatched(machine: "Machine", what: str, args: Args) -> Any:
    if what == "undo":
        return _undone(machine)
    if what in ("setitem", "delitem") and len(args) > 1:
        return _set_item(machine, what, args)
    _remember(machine)
    if what == "setattr":
        return _set_attribute(machine, args)
    name = hard(args[0]) if args else None
    if what == "setenv" and len(args) > 1 and isinstance(name, str):
        machine.environment[name] = args[1]
        return MISSING
    if what == "delenv" and name is not None:
        if not isinstance(name, str) or name in OF_RANKS:
            machine.environment[UNLAUNCHED] = True
        if isinstance(name, str):
            machine.environment[name] = MISSING
        return MISSING
    return None


def _set_item(machine: "Machine", what: str, args: Args) -> Any:
    """`monkeypatch.setitem(store, name, value)`, `monkeypatch.delitem(store, name)`."""
    store, name = hard(args[0]), hard(args[1])
    value = args[2] if what == "setitem" and len(args) > 2 else MISSING  # noqa: PLR2004 - setitem(store, name, value)
    if isinstance(store, Ext) and store.path == "os.environ":
        return _monkeypatched(machine, what.replace("item", "env"), args[1:])
    if isinstance(store, Ext) and store.path == _MODULES and isinstance(name, str):
        _remember(machine)
        machine.overrides[in_sys_modules(name)] = value
        return MISSING
    if isinstance(store, dict) and not isinstance(name, Unknown):
        _remember(machine)
        _keep_undo(machine, _put_items(machine, store, {args[1]: value}))
    return None


def _patch(machine: "Machine", args: Args, kwargs: Kwargs, keeper: Inst | Cls | None = None) -> Any:
    target = hard(args[0]) if args else None
    if not isinstance(target, str):
        return UNKNOWN
    name = target.rpartition(".")[2]
    target, keeper = (target, keeper) if keeper is not None else _of_tree(machine, target)
    value = args[1] if len(args) > 1 else kwargs["new"] if "new" in kwargs else Mocked(kwargs)
    return Mark("__patch__", (target, keeper, name, value), {})


def _patches(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`mock.patch.multiple(target, name=value)`: several at once."""
    owner = hard(args[0]) if args else kwargs.get("target")
    values = {name: value for name, value in kwargs.items() if name not in _OF_MULTIPLE}
    if isinstance(owner, str):
        owned = [_patch(machine, [f"{owner}.{name}", value], {}) for name, value in values.items()]
    else:
        owned = [patched(machine, "mock.patch.object", [owner, *each], {}) for each in values.items()]
    return Mark("__patches__", tuple(each for each in owned if isinstance(each, Mark)), {})


def _patch_of_items(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`mock.patch.dict(table, values, clear=False, **values)`: the environment's variables, or a table's items."""
    told = dict(zip(("in_dict", "values", "clear"), args, strict=False)) | kwargs
    store, values, clear = (hard(told.pop(name, {})) for name in ("in_dict", "values", "clear"))
    values = (values if isinstance(values, dict) else {}) | told
    if store == _MODULES or (isinstance(store, Ext) and store.path == _MODULES):
        return Mark("__modules__", ({in_sys_modules(str(hard(name))): value for name, value in values.items()},), {})
    if isinstance(store, str) and store != "os.environ":
        store = _value_of(machine, store)
    if not isinstance(store, dict):
        gone = dict.fromkeys(machine.environment, MISSING) if clear is True else {}
        return Mark("__environment__", (gone | values,), {})
    return Mark("__items__", (store, dict.fromkeys(store, MISSING) | values if clear is True else values), {})


def _put_items(machine: "Machine", store: dict[Any, Any], values: dict[Any, Any]) -> Callable[[], None]:
    """Put items into a table, and take those away that are missing; what is given back puts all back."""
    machine.about_to_change(store)
    undo = kept(store)
    for name, value in values.items():
        key = machine.key(name)
        if value is MISSING:
            store.pop(key, None)
        else:
            store[key] = value
    return undo


def _set_attribute(machine: "Machine", args: Args) -> Any:
    if len(args) >= 3 and (target := _target(machine, args[0], hard(args[1]))):  # noqa: PLR2004 - setattr(owner, name, value)
        keeper = _keeper(machine, args[0], hard(args[1]))
    elif len(args) == 2 and isinstance(hard(args[0]), str):  # noqa: PLR2004 - setattr("owner.name", value)
        target, keeper = _of_tree(machine, hard(args[0]))
    else:
        return MISSING
    machine.overrides[target] = args[-1]
    if keeper is not None:
        _keep_undo(machine, _put(machine, keeper, target.rpartition(".")[2], args[-1]))
    return MISSING


def _keeper(machine: "Machine", owner: Any, name: Any) -> Inst | Cls | None:
    """The object, or the class, that keeps what is replaced, where it is no function that is known by its name."""
    owner = hard(owner)
    if isinstance(owner, Cls) and isinstance(name, str):
        return owner if _is_property(owner.find(name)) or not _named(machine, owner, [name]) else None
    return owner if isinstance(owner, Inst) else None


def _is_property(value: Any) -> bool:
    return isinstance(value, Wrapped) and value.kind not in ("staticmethod", "classmethod")


def _put(machine: "Machine", keeper: Inst | Cls, name: str, value: Any) -> Callable[[], None]:
    """Put something in the place of what an object or a class keeps; what is given back takes it away."""
    if isinstance(value, Mocked) and isinstance(keeper, Cls) and _is_property(keeper.find(name)):
        return lambda: None  # it is called instead (`PropertyMock`)
    before = keeper.attrs.get(name, MISSING)
    machine.set_attribute(keeper, name, value)

    def take_away() -> None:
        if before is MISSING:
            machine.delete_attribute(keeper, name)
        else:
            machine.set_attribute(keeper, name, before)

    return take_away


def _target(machine: "Machine", owner: Any, name: Any) -> str:
    """The name of what is replaced in a module, a class or something outside; "" where that is not known."""
    if not isinstance(name, str) or isinstance(owner, Unknown):
        return ""
    if isinstance(owner, Ext):
        return f"{owner.path}.{name}"
    return _named(machine, owner, [name]) or f"{getattr(owner, 'name', '')}.{name}"


def _of_tree(machine: "Machine", target: str) -> tuple[str, Cls | None]:
    """What a dotted name means in the tree, by whatever folder it is imported, by its place; else the name.

    Of what is no function and a class keeps, the class as well.
    """
    parts = target.split(".")
    for count in range(len(parts) - 1, 0, -1):
        path = machine.sources.module(".".join(parts[:count]), machine.current[0])
        if path:
            module = machine.load(path)
            name = _named(machine, module, parts[count:])
            keeper = None if name else _class_of(machine, module, parts[count:-1])
            return name or ".".join([module.name, *parts[count:]]), keeper
    return target, None


def _class_of(machine: "Machine", module: Mod, names: list[str]) -> Cls | None:
    found = _within(machine, module, names)
    return found if isinstance(found, Cls) else None


def _value_of(machine: "Machine", target: str) -> Any:
    """What a dotted name means in the tree."""
    parts = target.split(".")
    for count in range(len(parts) - 1, 0, -1):
        path = machine.sources.module(".".join(parts[:count]), machine.current[0])
        if path:
            return _within(machine, machine.load(path), parts[count:])
    return UNKNOWN


def _within(machine: "Machine", found: Any, names: list[str]) -> Any:
    with suppress(Raised, Skip, OutOfFuel):
        for name in names:
            found = hard(machine.attribute(found, name))
    return found


def _named(machine: "Machine", value: Any, names: list[str]) -> str:
    """The name by which a function of a class, or one that a module has by a name, is replaced; "" for all else."""
    owner: Any = None
    with suppress(Raised, Skip, OutOfFuel):
        for name in names:
            owner = value = hard(value)
            found = value.find(name) if isinstance(value, Cls) else MISSING
            value = machine.attribute(value, name) if found is MISSING else found
            if not isinstance(value, Mod | Cls | Func | Wrapped):
                return ""
    func = value.func if isinstance(value, Wrapped) else value
    if not isinstance(func, Func):
        return ""
    return f"{owner.name}.{names[-1]}" if isinstance(owner, Mod) else name_in_tree(func)


def is_patch(value: Any) -> bool:
    """Whether it puts something in the place of something else, once it is entered or started."""
    return isinstance(value, Mark) and value.name in _PATCHES


def switch_of(machine: "Machine", mark: Mark, name: str) -> Native:
    """`patcher.start` or `patcher.stop`: a patch that lasts until it is stopped, else until the test ends."""

    def start(_args: Args, _kwargs: Kwargs) -> Any:
        mark.kwargs["undo"] = patch_now(machine, mark)
        machine.overrides[_STARTED] = [*machine.overrides.get(_STARTED, ()), mark]
        return UNKNOWN

    def stop(_args: Args, _kwargs: Kwargs) -> Any:
        _stop(mark)
        return None

    return Native(f"patch.{name}", start if name == "start" else stop)


def _stop(mark: Mark) -> None:
    undo = mark.kwargs.pop("undo", None)
    if undo is not None:
        undo()


def patch_now(machine: "Machine", mark: Mark) -> Callable[[], None]:
    """Put a patch in place; what is given back takes it away, and of the environment all that was set meanwhile."""
    if mark.name == "__patches__":
        undos = [patch_now(machine, each) for each in mark.args]
        return lambda: _do_backwards(undos)
    if mark.name == "__items__":
        return _put_items(machine, *mark.args)
    if mark.name == "__environment__":
        undo = kept(machine.environment)
        machine.environment.update(mark.args[0])
        return undo
    if mark.name == "__modules__":
        undos = [_override(machine, *each) for each in mark.args[0].items()]
        return lambda: _do_backwards(undos)
    target, keeper, name, value = mark.args
    undos = [_override(machine, target, value)]
    if keeper is not None:
        undos.append(_put(machine, keeper, name, value))
    return lambda: _do_backwards(undos)


def _override(machine: "Machine", target: str, value: Any) -> Callable[[], None]:
    """Put something in the place of what a name means; what is given back takes it away."""
    store = machine.overrides
    before = store.get(target, MISSING)
    store[target] = value

    def take_away() -> None:
        store.pop(target, None)
        if before is not MISSING:
            store[target] = before

    return take_away


def all_kept(machine: "Machine") -> Callable[[], None]:
    """What puts back all that `monkeypatch` changes from now on."""
    count, stores = len(machine.overrides.get(_KEPT, ())), (kept(machine.environment), kept(machine.overrides))

    def undo() -> None:
        _take_away(machine, count)
        for each in stores:
            each()

    return undo


def _keep_undo(machine: "Machine", undo: Callable[[], None]) -> None:
    machine.overrides[_KEPT] = [*machine.overrides.get(_KEPT, ()), undo]


def _take_away(machine: "Machine", count: int) -> None:
    """Take away what objects and classes keep, but for what came first."""
    _do_backwards(machine.overrides.get(_KEPT, ())[count:])


def _do_backwards(undos: Sequence[Callable[[], None]]) -> None:
    for each in reversed(undos):
        each()


def kept(store: dict[str, Any]) -> Callable[[], None]:
    """What puts everything back into a dict that is in it now."""
    before = dict(store)

    def undo() -> None:
        store.clear()
        store.update(before)

    return undo
