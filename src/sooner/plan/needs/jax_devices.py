"""JAX's devices: lists and arrays of them, meshes over them, and the host that stands in for them."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.counted import uncounted
from sooner.plan.needs.values import UNKNOWN, Dev, Native, Raised, Unknown, hard

if TYPE_CHECKING:
    from sooner.plan.needs.machine import Machine

_HOST_DEVICES: Final = "--xla_force_host_platform_device_count="
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


def _note_counted(machine: "Machine", _args: list[Any]) -> Any:
    """Who lets JAX count its devices uses the first one, if the test uses none otherwise, with any number of them."""
    if machine.size > 0 and not machine.quiet:
        machine.trace.counted = True


def _request_host_devices(machine: "Machine", args: list[Any]) -> Any:
    count = hard(args[0]) if args else 1
    if isinstance(count, int):
        machine.everywhere.setdefault(machine.current[0], {})["SOONER_HOST_DEVICES"] = count
        machine.environment["SOONER_HOST_DEVICES"] = count


def _devices(machine: "Machine", args: list[Any]) -> Any:
    """`jax.devices(kind)`: what is there of a kind, or what JAX uses by default."""
    kind = hard(args[0]) if args else None
    size = machine.visible()
    if kind in ("gpu", "cuda", "rocm") and size == 0:
        raise Raised("RuntimeError", "no GPU for JAX", *machine.current, device=True)
    if kind == "cpu" or size == 0:
        return [Dev("cpu", number) for number in range(host_devices(machine, []))]
    return [Dev("gpu", number) for number in range(size)]


def found_devices(value: Any) -> list[Dev]:
    """All devices in lists of any depth."""
    value = hard(value)
    if isinstance(value, Dev):
        return [value]
    return [each for inner in value for each in found_devices(inner)] if isinstance(value, list | tuple) else []


def _array(_machine: "Machine", args: list[Any]) -> Any:
    """What NumPy makes of devices; of anything else nothing is known."""
    given: Any = hard(args[0]) if args else UNKNOWN
    devices = found_devices(given)
    return Grid(devices, flat=all(isinstance(each, Dev) for each in given)) if devices else Unknown("numpy.array()")


def _touch_each(machine: "Machine", args: list[Any]) -> Any:
    for each in found_devices(args[0] if args else []):
        machine.touch(each, "a device of several is used")


def _mesh(machine: "Machine", args: list[Any]) -> Any:
    """The devices of a mesh of some shape: the first of those given, or of those that JAX has."""
    shape, given = hard(args[0]), hard(args[1]) if len(args) > 1 else None
    sizes = [hard(each) for each in shape] if isinstance(shape, list | tuple) else [shape]
    if not all(isinstance(each, int) for each in sizes):
        return UNKNOWN
    wanted = math.prod(sizes)
    devices: list[Dev] = _devices(machine, []) if given is None else found_devices(given)
    if wanted > len(devices) > 0:
        raise Raised("ValueError", f"a mesh of {wanted} devices", *machine.current, device=True)
    _touch_each(machine, [devices[:wanted]])
    return Grid(devices[:wanted], flat=False)


def _all_if_counted(machine: "Machine", _args: list[Any]) -> Any:
    """Work that is mapped over an axis uses all devices where the test makes something of their number."""
    if machine.trace.asked >= machine.size > 0:
        machine.need(machine.size, "mapped over all devices")


WORDS: Final[dict[str, Callable[["Machine", list[Any]], Any]]] = {
    "host_devices": host_devices, "note_counted": _note_counted,
    "request_host_devices": _request_host_devices, "jax_devices": _devices,
    "device_array": _array, "touch_each": _touch_each, "device_mesh": _mesh, "all_if_counted": _all_if_counted,
}  # fmt: skip
