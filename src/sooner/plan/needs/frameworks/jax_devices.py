"""JAX's devices: lists and arrays of them, meshes over them, and the host that stands in for them."""

import ast
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.counted import uncounted
from sooner.plan.needs.evaluator.operators import Beginning
from sooner.plan.needs.evaluator.values import (
    UNKNOWN,
    Bound,
    Cls,
    Derived,
    Dev,
    Ext,
    Func,
    Native,
    Raised,
    Unknown,
    hard,
)
from sooner.plan.needs.testing.replacing import kept
from sooner.plan.needs.testing.testing_names import is_refused_unrun

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_HOST_DEVICES: Final = "--xla_force_host_platform_device_count="
DEFAULT_DEVICE: Final = "SOONER_JAX_DEVICE"
_CHOICES: Final = {
    "jax_platforms": "JAX_PLATFORMS", "jax_platform_name": "JAX_PLATFORM_NAME", "jax_default_device": DEFAULT_DEVICE,
}  # fmt: skip
"""What tells JAX which kind of device to use: its settings, and the variables that they are read from."""
_GIVEN: Final = "SOONER_JAX_GIVEN"
"""Which devices a process was given by their numbers, where it was."""
_JOINED: Final = "SOONER_JAX_JOINED"
"""How many processes have joined, and which of them this one is."""
_PRETENDING: Final = ("mock_num_gpus", "mock_num_gpu_processes")
"""JAX's settings that make so many devices of the first one."""
_JOINING: Final = "distributed.initialize"
_PROGRAMS: Final = ("main", "_main")
CHOOSING: Final = frozenset(_CHOICES.values())
"""Variables that choose JAX's devices: set under a condition that is not known, they choose none."""
_OF_ARRAYS: Final = (
    "shape", "ndim", "dtype", "size", "T", "at", "reshape", "copy", "astype", "sum", "mean", "max", "min", "any", "all",
)  # fmt: skip
_GPUS: Final = ("gpu", "cuda", "rocm")
_SAME: Final = ("flatten", "ravel", "transpose", "copy", "astype", "squeeze", "swapaxes")


class Grid(list[Any]):
    """Devices in an array of NumPy's, in order; of its shape is only known whether it may have several axes."""

    def __init__(self, devices: list[Any], *, flat: bool) -> None:
        super().__init__(devices)
        self.flat = flat

    def attribute(self, machine: "Machine", name: str) -> Any:
        """An attribute: arrays that are arranged in another way hold the same devices."""
        if name == "reshape":
            return Native(name, lambda args, _kwargs: self._reshaped(machine, args))
        if name in _SAME:
            return Native(name, lambda _args, _kwargs: Grid(self, flat=name in ("flatten", "ravel")))
        if name in ("flat", "T"):
            return Grid(self, flat=name == "flat")
        return len(self) if name == "size" else Unknown(f"devices.{name}")

    def _reshaped(self, machine: "Machine", args: list[Any]) -> "Grid":
        """The same devices in another shape; one that does not have as many places is refused."""
        given = hard(args[0]) if len(args) == 1 else args
        sizes = [uncounted(hard(each)) for each in given] if isinstance(given, list | tuple) else [uncounted(given)]
        if sizes and all(type(each) is int for each in sizes):
            places = math.prod(each for each in sizes if each != -1)
            fits = places > 0 and len(self) % places == 0 if -1 in sizes else places == len(self)
            if not fits:
                raise Raised("ValueError", f"{len(self)} devices in {places} places", *machine.current, device=True)
        return Grid(self, flat=len(sizes) == 1)


MESH_SAYS: Final = frozenset({"shape", "axis_names", "axis_sizes", "axis_types", "size", "empty", "shape_tuple"})
"""What a mesh only says of itself."""


class JaxMesh(Unknown):
    """A mesh of JAX's: making it uses no device, whatever it is given to does."""

    __slots__ = ("devices",)

    def __init__(self, devices: list[Any]) -> None:
        super().__init__("jax.Mesh")
        self.devices = devices

    def use(self, machine: "Machine") -> None:
        """Something is done with the mesh."""
        _touch_each(machine, [self.devices])


class Rows(Unknown):
    """An array of which only the shape is known, as far as it is (None for sizes that are not)."""

    __slots__ = ("shape",)

    def __init__(self, shape: tuple[Any, ...]) -> None:
        super().__init__("jax.Array")
        self.shape = shape

    def attribute(self, machine: "Machine", name: str) -> Any:
        """What keeps the shape or changes it in a known way; anything else is not known."""
        if name == "reshape":
            return Native(name, lambda args, _kwargs: self._reshaped(machine, args))
        if name in ("copy", "astype", "block_until_ready"):
            return Native(name, lambda _args, _kwargs: self)
        return Unknown(f"{self.path}.{name}")

    def _reshaped(self, machine: "Machine", args: list[Any]) -> Any:
        """The same numbers in another shape; one that does not hold them all is refused."""
        given = hard(args[0]) if len(args) == 1 else args
        sizes = _sizes(given)
        if not sizes or None in sizes or None in self.shape:
            return Rows(tuple(None if each == -1 else each for each in sizes)) if sizes else UNKNOWN
        total, places = math.prod(self.shape), math.prod(each for each in sizes if each != -1)
        if places <= 0 or (total % places if -1 in sizes else total != places):
            raise Raised("ValueError", f"{total} numbers in {places} places", *machine.current, device=True)
        return Rows(tuple(total // places if each == -1 else each for each in sizes))


class Mapped(Rows):
    """What work mapped over devices returns: any tree of arrays with one row for each."""

    __slots__ = ()

    def attribute(self, machine: "Machine", name: str) -> Any:
        """A part of the tree, if it is not an array's own name."""
        return super().attribute(machine, name) if name in _OF_ARRAYS else self


def _sizes(shape: Any) -> tuple[Any, ...]:
    """A shape's sizes, None for those that are not known; none at all if it is no shape."""
    shape = hard(shape)
    if isinstance(shape, Beginning):
        return (*_sizes(shape.first), None)
    given = shape if isinstance(shape, list | tuple) else [shape]
    sizes = tuple(each if type(each) is int else None for each in (uncounted(hard(each)) for each in given))
    return () if sizes == (None,) and not isinstance(shape, list | tuple) else sizes


def _rows(_machine: "Machine", args: list[Any]) -> Any:
    """An array of a shape."""
    sizes = _sizes(args[0]) if args else ()
    return Rows(sizes) if sizes else Unknown("jax.Array")


def _rows_of(_machine: "Machine", args: list[Any]) -> Any:
    """An array of what a list holds, or of the shape of another one."""
    given = hard(args[0]) if args else UNKNOWN
    if isinstance(given, Rows):
        return given
    return Rows((len(given), None)) if isinstance(given, list | tuple) and given else Unknown("jax.Array")


def _reshape(machine: "Machine", args: list[Any]) -> Any:
    """`reshape(array, shape)`, of devices or of other things."""
    made = array_of(machine, [args[0]])
    return machine.call(made.attribute(machine, "reshape"), args[1:], {}) if isinstance(made, Grid | Rows) else made


def _keys(_machine: "Machine", args: list[Any]) -> Any:
    """So many random keys, which are numbers or pairs of them."""
    return Rows((*_sizes(args[0]), None))


def _mapped_tree(machine: "Machine", args: list[Any]) -> Any:
    """A function for each leaf of a tree (one that is not known is a leaf); a third argument is given first."""
    function, trees = hard(args[0]), [hard(each) for each in hard(args[1])]
    if not _is_followed(function) or not trees:
        return Unknown("jax.tree.map()")
    first = trees[0]

    def inner(key: Any) -> Any:
        parts = [each[key] if type(each) is type(first) and _has(each, key) else UNKNOWN for each in trees]
        return _mapped_tree(machine, [function, parts, *args[2:]])

    if isinstance(first, dict):
        return {key: inner(key) for key in first}
    if isinstance(first, list | tuple) and not isinstance(first, Grid):
        return type(first)(inner(key) for key in range(len(first)))
    return machine.call(function, [*args[2:], *trees], {})


def _is_followed(function: Any) -> bool:
    """Whether it is seen what a function does: of the tests, of the library, or one outside by its name."""
    return isinstance(function, Func | Bound | Derived | Ext | Native)


def _has(tree: Any, key: Any) -> bool:
    return key in tree if isinstance(tree, dict) else key < len(tree)


def _leading(value: Any, axes: int) -> list[int]:
    """How many parts the arrays in a tree have along so many of their first axes, as far as it is known."""
    value = hard(value)
    if isinstance(value, Rows):
        first = value.shape[:axes]
        return [math.prod(first)] if len(first) == axes and all(type(each) is int for each in first) else []
    if isinstance(value, dict):
        value = list(value.values())
    return [each for inner in value for each in _leading(inner, axes)] if isinstance(value, list | tuple) else []


def host_devices(machine: "Machine", _args: list[Any]) -> Any:
    """How many devices JAX makes of the host: `XLA_FLAGS`, as far as the tests set it."""
    flags = hard(machine.environment.get("XLA_FLAGS", ""))
    asked = machine.environment.get("SOONER_HOST_DEVICES")
    if isinstance(asked, int):
        return asked
    if isinstance(flags, str) and _HOST_DEVICES in flags:
        number = flags.split(_HOST_DEVICES)[1].split()[0]
        return int(number) if number.isdigit() else 1
    return 1


def _chosen(machine: "Machine", variable: str) -> str:
    """The kind of device that a variable puts first, if the tests set it."""
    given = hard(machine.environment.get(variable))
    return given.partition(",")[0].strip().lower() if isinstance(given, str) else ""


def _is_told_the_host(machine: "Machine") -> bool:
    return any(_chosen(machine, each) == "cpu" for each in _CHOICES.values() if each != DEFAULT_DEVICE)


def _given(machine: "Machine") -> list[Dev]:
    """Devices that this process was given when it joined others: it sees no others."""
    numbers = hard(machine.environment.get(_GIVEN))
    return [Dev("gpu", each) for each in numbers] if isinstance(numbers, list) and machine.count > 0 else []


def _joined(machine: "Machine", args: list[Any]) -> Any:
    """`jax.distributed.initialize(local_device_ids=[1])`: these are used, and must be there, where JAX runs on any."""
    given = hard(args[0])
    machine.environment[_JOINED] = [hard(each) for each in args[1:]]
    numbers = [hard(each) for each in given] if isinstance(given, list | tuple) else [given]
    if numbers and all(type(each) is int for each in numbers):
        machine.environment[_GIVEN] = numbers
        _touch_each(machine, [] if _is_told_the_host(machine) else [_given(machine)])


def _processes(machine: "Machine", args: list[Any]) -> Any:
    """How many processes JAX has (0), or which of them this one is (1): alone, where no other is spoken of."""
    joined, which = hard(machine.environment.get(_JOINED)), int(hard(args[0]))
    if isinstance(joined, list):
        return joined[which] if type(joined[which]) is int else UNKNOWN
    return UNKNOWN if _may_join(machine, machine.current[0]) else 1 - which


def _may_join(machine: "Machine", path: str) -> bool:
    """Whether a file joins processes of JAX's, but for what it does where it is started as a program."""
    tree = machine.sources.tree(path) if _JOINING in (machine.sources.read(path) or "") else None
    if tree is None:
        return False
    return any(_JOINING in ast.unparse(each) for each in tree.body if not _is_of_a_program(each))


def _is_of_a_program(part: ast.stmt) -> bool:
    """Whether a part of a file is run only where the file is started as a program."""
    if isinstance(part, ast.If):
        return "__main__" in ast.unparse(part.test)
    return isinstance(part, ast.FunctionDef) and part.name in _PROGRAMS


def _gpus(machine: "Machine", _args: list[Any]) -> Any:
    """How many devices, the host aside, JAX runs on by default: none if it is told the host."""
    return 0 if _is_told_the_host(machine) else len(_given(machine)) or machine.count


def _told(machine: "Machine", args: list[Any]) -> Any:
    """One of JAX's settings is changed; devices that it pretends are all the first one, and the answer is less sure."""
    name, number = str(hard(args[0])), uncounted(hard(args[1]))
    variable = _CHOICES.get(name)
    if variable is not None:
        machine.set_outside(Ext("os.environ"), variable, args[1])
    if name in _PRETENDING and type(number) is int and number > 1:
        machine.environment[_GIVEN] = [0] * number
        machine.guesses += 1


def _device(machine: "Machine", args: list[Any]) -> Any:
    """Where JAX makes an array or computes: on the device that is named, or was chosen, else the first, or the host."""
    if (named := _named(args)) is not None:
        return named
    chosen = hard(machine.environment.get(DEFAULT_DEVICE))
    if isinstance(chosen, Dev):
        return chosen
    if _is_told_the_host(machine) or machine.count == 0:
        return Dev("cpu")
    return next(iter(_given(machine)), Dev("gpu", 0))


def _named(args: list[Any]) -> Dev | None:
    """The device that is named, or the host as a backend."""
    for each in (hard(arg) for arg in args):
        if isinstance(each, Dev) or each == "cpu":
            return each if isinstance(each, Dev) else Dev("cpu")
    return None


def _compiled(machine: "Machine", args: list[Any]) -> Any:
    """`jax.jit(function)`: where a device or the host is named, what the function makes is made there."""
    given, kwargs = hard(args[0]), hard(args[1])
    function = given[0] if len(given) == 1 else UNKNOWN
    named = _named([kwargs.get("device"), kwargs.get("backend")])
    if named is None or not isinstance(function, Func) or _is_method(function):
        return function if isinstance(function, Func | Cls | Derived) and not kwargs else Unknown("jax.jit()")

    def there(given: list[Any], kwargs: dict[str, Any]) -> Any:
        leave = kept(machine.environment)
        machine.environment[DEFAULT_DEVICE] = named
        try:
            made = machine.call(function, given, kwargs)
        finally:
            leave()
        return Unknown("array") if type(hard(made)) is Unknown and named.kind == "cpu" else made

    return Derived("jit", there)


def _is_method(function: Any) -> bool:
    """Whether a function gets its instance when it is called: it has to stay one."""
    return isinstance(function, Func) and function.positional[:1] == ["self"]


def _note_counted(machine: "Machine", _args: list[Any]) -> Any:
    """Who lets JAX count its devices uses the first one, if the test uses none otherwise, with any number of them."""
    if machine.size > 0 and not machine.quiet and not _is_told_the_host(machine) and not _given(machine):
        machine.trace.counted = True


def _request_host_devices(machine: "Machine", args: list[Any]) -> Any:
    count = hard(args[0]) if args else 1
    if isinstance(count, int):
        machine.everywhere.setdefault(machine.current[0], {})["SOONER_HOST_DEVICES"] = count
        machine.environment["SOONER_HOST_DEVICES"] = count


def _devices(machine: "Machine", args: list[Any]) -> Any:
    """`jax.devices(kind)`: what is there of a kind, or what JAX uses by default."""
    kind = hard(args[0]) if args else None
    is_host = _chosen(machine, "JAX_PLATFORMS") == "cpu" or (_is_told_the_host(machine) and kind not in _GPUS)
    size = 0 if is_host else machine.visible()
    if kind in _GPUS and size == 0:
        raise Raised("RuntimeError", "no GPU for JAX", *machine.current, device=True)
    if kind == "cpu" or size == 0:
        return [Dev("cpu", number) for number in range(host_devices(machine, []))]
    return _given(machine) or [Dev("gpu", number) for number in range(size)]


def found_devices(value: Any) -> list[Dev]:
    """All devices in lists of any depth."""
    value = hard(value)
    if isinstance(value, Dev):
        return [value]
    return [each for inner in value for each in found_devices(inner)] if isinstance(value, list | tuple) else []


def array_of(_machine: "Machine", args: list[Any]) -> Any:
    """What NumPy makes of devices; of anything else only the shape is known."""
    given: Any = hard(args[0]) if args else UNKNOWN
    devices = found_devices(given)
    return Grid(devices, flat=all(isinstance(each, Dev) for each in given)) if devices else _rows_of(_machine, [given])


def _touch_each(machine: "Machine", args: list[Any]) -> Any:
    for each in found_devices(args[0] if args else []):
        machine.touch(each, "a device of several is used")


def _made_mesh(machine: "Machine", args: list[Any]) -> Any:
    """A mesh of some shape, of the first of the devices that are given, or of those that JAX has.

    Where its shape is not known it is taken to be of all; the answer is less sure.
    """
    shape, given = hard(args[0]), hard(args[1]) if len(args) > 1 else None
    sizes = [hard(each) for each in shape] if isinstance(shape, list | tuple) else [shape]
    devices: list[Dev] = _devices(machine, []) if given is None else found_devices(given)
    wanted = math.prod(each for each in sizes if isinstance(each, int))
    if not all(isinstance(each, int) for each in sizes):
        machine.guesses += 1
        wanted = max(wanted, len(devices))
    if devices and not 0 < wanted <= len(devices):
        raise Raised("ValueError", f"a mesh of {wanted} devices", *machine.current, device=True)
    return JaxMesh(devices[:wanted])


def _mesh_over(machine: "Machine", args: list[Any]) -> Any:
    """A mesh over devices in some order, as far as they are known."""
    devices = found_devices(args[0] if args else [])
    machine.guesses += not devices and isinstance(hard(args[0] if args else []), Unknown)
    return JaxMesh(devices) if devices else UNKNOWN


def _arranged(machine: "Machine", args: list[Any]) -> Any:
    """The devices of a mesh of some shape, in an array: they are used by what it is made for.

    Those that there are, or that are given, must be as many as it has places.
    """
    mesh, given = _made_mesh(machine, args), hard(args[1]) if len(args) > 1 else None
    if not isinstance(mesh, JaxMesh):
        return mesh
    devices = _devices(machine, []) if given is None else given
    if isinstance(devices, list | tuple) and len(devices) > len(mesh.devices):
        places = f"{len(devices)} devices in a mesh of {len(mesh.devices)}"
        raise Raised("ValueError", places, *machine.current, device=True)
    mesh.use(machine)
    return Grid(mesh.devices, flat=False)


def _all_if_counted(machine: "Machine") -> None:
    """Work that is mapped over an axis uses all devices where the test makes something of their number."""
    if machine.trace.asked >= machine.size > 0 and not _is_told_the_host(machine) and not _given(machine):
        machine.need(machine.size, "mapped over all devices")


class _Pmapped(Derived):
    """What `jax.pmap` makes of a function: work that is mapped over so many axes of arrays, one inside the other."""

    __slots__ = ("specs",)

    def __init__(self, call: Callable[..., Any], specs: list[Any]) -> None:
        super().__init__("pmap", call)
        self.specs = specs


def _pmapped(machine: "Machine", lengths: list[int], axes: int, *, on_host: bool) -> Any:
    """Work that is mapped over axes of arrays uses as many devices as these have places."""
    if len(set(lengths)) > 1:
        machine.guesses += 1
        return UNKNOWN  # JAX refuses arrays of several lengths before it uses a device
    given = _given(machine)
    gpus = 0 if on_host else len(given) or machine.size
    if lengths and lengths[0] > (gpus or host_devices(machine, [])):
        raised = Raised("ValueError", f"mapped over {lengths[0]} devices", *machine.current, device=True)
        raised.is_heard = machine.quiet > 0 and not machine.is_doubtful()
        raise raised
    if is_refused_unrun(machine):
        machine.trace.ask(max(lengths, default=0))
        machine.guesses += 1
        return UNKNOWN
    if not lengths and not on_host:
        _all_if_counted(machine)
    if not lengths:
        return UNKNOWN
    if given and not on_host:
        _touch_each(machine, [given[: lengths[0]]])
    elif gpus > 0:
        machine.need(lengths[0], "mapped over devices")
    return Mapped((lengths[0] if axes == 1 else None, None))


def _pmap(machine: "Machine", args: list[Any]) -> Any:
    """`jax.pmap(function)`, told which axes of arrays it maps over, on which devices, and how many parts there are."""
    spec, inner, devices, size, backend = (uncounted(hard(each)) for each in args)
    on_host = backend == "cpu" or _is_told_the_host(machine)
    specs = [spec, *(inner.specs if isinstance(inner, _Pmapped) else ())]
    axes = len(specs)

    def mapped(given: list[Any], kwargs: dict[str, Any]) -> Any:
        if type(size) is int:
            lengths = [size] if axes == 1 else []
        elif all(each == 0 for each in specs):
            lengths = _leading([*given, *kwargs.values()], axes)
        else:
            lengths = _parts(given, kwargs, specs)
        if isinstance(devices, list | tuple) and len(found_devices(devices)) == len(devices):
            return _mapped_on(machine, devices, lengths)
        return _pmapped(machine, lengths if devices is None else [], axes, on_host=on_host)

    return _Pmapped(mapped, specs)


def _soft_pmap(machine: "Machine", args: list[Any]) -> Any:
    """`jax.soft_pmap(function)`: every device has as many parts as any other, if there are more parts than devices."""
    spec = hard(args[0])

    def mapped(given: list[Any], kwargs: dict[str, Any]) -> Any:
        lengths = _along([*given, *kwargs.values()], spec) if spec == 0 else _along(given, spec)
        on_host = _is_told_the_host(machine)
        count = (0 if on_host else machine.size) or host_devices(machine, [])
        if len(set(lengths)) == 1 and lengths[0] > count:
            if lengths[0] % count:
                raise Raised("NotImplementedError", f"{lengths[0]} parts", *machine.current, device=True)
            lengths = [count]
        return _pmapped(machine, lengths, 1, on_host=on_host)

    return Derived("soft_pmap", mapped)


def _vmap(machine: "Machine", args: list[Any]) -> Any:
    """`jax.vmap(function)`: it is called with arrays that lack an axis, if it is of the tests or a `pmap`."""
    function, spec, out = (hard(each) for each in args)
    if _is_method(function) or not _is_followed(function):
        return function if isinstance(function, Func | Cls) else Unknown("jax.vmap()")

    def mapped(given: list[Any], kwargs: dict[str, Any]) -> Any:
        made = machine.call(function, _without(given, spec), {name: _without(kwargs[name], 0) for name in kwargs})
        if not isinstance(hard(made), Rows):
            return made
        return Rows((None, *hard(made).shape)) if out == 0 else Unknown("jax.Array")

    return Derived("vmap", mapped)


def _without(value: Any, axes: Any) -> Any:
    """A tree of arrays without the axes that a tree like it, or one number, names; nothing else is changed."""
    value, axes = hard(value), hard(axes)
    if isinstance(value, dict):
        return {key: _without(value[key], _part(axes, key)) for key in value}
    if isinstance(value, list | tuple) and not isinstance(value, Grid):
        parts = [_without(each, _part(axes, key)) for key, each in enumerate(value)]
        return parts if isinstance(value, list) else tuple(parts)
    if not isinstance(value, Rows) or axes is None:
        return value
    shape, size = value.shape, len(value.shape)
    if type(axes) is not int or not -size <= axes < size or size == 1:
        return Unknown("jax.Array")
    return Rows(tuple(each for place, each in enumerate(shape) if place != axes % size))


def _part(axes: Any, key: Any) -> Any:
    """What a tree of axes says of a part: what it says of all, where it is one number or nothing."""
    if isinstance(axes, dict) or (isinstance(axes, list | tuple) and type(key) is int):
        return axes[key] if _has(axes, key) else UNKNOWN
    return axes


def _along(value: Any, axes: Any) -> list[int]:
    """How many parts the arrays in a tree have along the axes that a tree like it, or one number, names."""
    value, axes = hard(value), hard(axes)
    if isinstance(axes, dict):
        return [n for key in axes if isinstance(value, dict) and key in value for n in _along(value[key], axes[key])]
    if isinstance(axes, list | tuple):
        pairs = zip(value, axes, strict=False) if isinstance(value, list | tuple) else ()
        return [number for pair in pairs for number in _along(*pair)]
    if type(axes) is not int:
        return []
    if isinstance(value, Rows):
        length = value.shape[axes] if -len(value.shape) <= axes < len(value.shape) else None
        return [length] if type(length) is int else []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [number for each in inner for number in _along(each, axes)]


def _parts(given: Any, kwargs: Any, specs: list[Any]) -> list[int]:
    """How many parts arrays have along an axis for each map, the outermost first; several, where they do not agree."""
    parts = 1
    for spec in specs:
        lengths = [*_along(given, spec), *_along(kwargs, 0)]
        if len(set(lengths)) != 1:
            return lengths
        parts *= lengths[0]
        given, kwargs = _without(given, spec), _without(kwargs, 0)
    return [parts]


def _mapped_on(machine: "Machine", devices: list[Any] | tuple[Any, ...], lengths: list[int]) -> Any:
    """Work that is mapped over devices that are named: there must be some, and one for each part of the arrays."""
    if not devices:
        raise Raised("ValueError", "mapped over no devices", *machine.current)
    if any(each > len(devices) for each in lengths):
        raise Raised(
            "ValueError", f"mapped over {max(lengths)} of {len(devices)} devices", *machine.current, device=True
        )
    if is_refused_unrun(machine):
        machine.guesses += 1
        return UNKNOWN
    _touch_each(machine, [devices])
    return Mapped((len(devices), None))


def _replicated(machine: "Machine", args: list[Any]) -> Any:
    """Copies of something on all of the devices, or on those given."""
    given = found_devices(args[0]) if args else []
    devices = given or _devices(machine, [])
    _touch_each(machine, [devices])
    return Mapped((len(devices), None))


WORDS: Final[dict[str, Callable[["Machine", list[Any]], Any]]] = {
    "jax_gpus": _gpus, "jax_joined": _joined, "jax_processes": _processes, "jax_told": _told, "jax_device": _device,
    "host_devices": host_devices, "note_counted": _note_counted,
    "request_host_devices": _request_host_devices, "jax_devices": _devices,
    "touch_each": _touch_each, "device_mesh": _arranged, "made_mesh": _made_mesh,
    "mesh_over": _mesh_over,
    "rows": _rows, "rows_of": _rows_of, "keys": _keys, "reshaped": _reshape, "mapped_tree": _mapped_tree,
    "pmap": _pmap, "replicated": _replicated,
    "compiled": _compiled, "vmap": _vmap, "soft_pmap": _soft_pmap,
}  # fmt: skip
