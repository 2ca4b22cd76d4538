"""Masks, purely: which devices the environment leaves us, and which variables give a unit its devices.

A mask that we inherit is narrowed, never left. Sources: CUDA C++ Programming Guide, "CUDA environment
variables" (the list ends at the first invalid entry; PyTorch's `_parse_visible_devices` documents that a
repeated one hides all); ROCm, "GPU isolation techniques", and ROCclr's `Device::init` (ROCr filters first,
HIP indexes what is left; an empty HIP_VISIBLE_DEVICES is ignored there, an empty ROCR_VISIBLE_DEVICES hides
all).
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from sooner.devices.source import Inventory
from sooner.model.devices import Device, DeviceKind
from sooner.model.errors import DevicesError

CUDA: Final = "CUDA_VISIBLE_DEVICES"
HIP: Final = "HIP_VISIBLE_DEVICES"
ROCR: Final = "ROCR_VISIBLE_DEVICES"
_SLURM: Final = ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS")

_NUMBER: Final = re.compile(r"[+-]?\d+")
"""CUDA reads an entry with strtol: what follows the digits does not count."""


class Visible(Struct, frozen=True, kw_only=True):
    """What masks leave of the devices, in the order in which a process would count them."""

    devices: tuple[Device, ...]
    notes: tuple[str, ...] = ()

    def then(self, other: "Visible") -> "Visible":
        """What a later mask leaves, with the notes of both."""
        return Visible(devices=other.devices, notes=self.notes + other.notes)


def nvidia_visible(inventory: Inventory, env: Mapping[str, str]) -> Visible:
    """Devices that CUDA_VISIBLE_DEVICES leaves; several MIG instances may be named, for one process each."""
    if CUDA not in env:
        return _slurm(inventory, env)
    return _masked(inventory.devices, inventory.ordinals, CUDA, env[CUDA])


def amd_visible(inventory: Inventory, env: Mapping[str, str]) -> Visible:
    """Devices that ROCR_VISIBLE_DEVICES and then HIP_ (or CUDA_) VISIBLE_DEVICES leave.

    `visible` becomes the index among what ROCr leaves, for its mask stays in the unit's environment.
    """
    seen = _slurm(inventory, env)
    if ROCR in env:
        seen = seen.then(_masked(inventory.devices, inventory.ordinals, ROCR, env[ROCR]))
        seen = Visible(devices=_recounted(seen.devices), notes=seen.notes)
    return _in_both(seen, env)


def virtual_visible(
    devices: Sequence[Device], env: Mapping[str, str], *, has_accelerators: Callable[[], bool]
) -> Visible:
    """Virtual devices that the masks leave: those of indices narrow them as if they were real.

    Args:
        devices: All of them, index 0 first.
        env: The inherited environment.
        has_accelerators: Asked only where a mask hides everything or names UUIDs. Virtual devices are
            spelled by index, so on a machine with GPUs a unit would see some that the mask hides.

    Raises:
        DevicesError: Such a mask, on a machine with accelerators.
    """
    by_index = {name: value for name, value in env.items() if name in {CUDA, HIP, ROCR} and _is_index_mask(value)}
    others = sorted(name for name in (CUDA, HIP, ROCR) if name in env and name not in by_index)
    if others and has_accelerators():
        raise DevicesError(
            f"{others[0]}={env[others[0]]!r} hides accelerators of this machine, and virtual devices would "
            f"reach them: unset it, mask by index, or pass --devices cpu:{len(devices)}"
        )
    kept = {name: value for name, value in env.items() if name not in others}
    seen = amd_visible(Inventory(devices=tuple(devices), ordinals=tuple(devices)), kept)
    narrowed = f"{', '.join(sorted(by_index))} narrows {len(devices)} virtual devices to {len(seen.devices)}"
    return Visible(devices=seen.devices, notes=(*seen.notes, narrowed)) if by_index else seen


def visible_env(devices: Sequence[Device]) -> dict[str, str]:
    """Variables that give one unit exactly these devices; an inherited ROCr mask must stay beside them.

    Raises:
        DevicesError: A gang that CUDA cannot open in one process (see `widest_gang`).
    """
    if len(devices) > widest_gang(devices):
        raise DevicesError("CUDA opens one MIG instance a process: a unit cannot hold several, or one beside a GPU")
    spelled = ",".join(device.visible for device in devices if device.visible)
    env = {CUDA: spelled, HIP: spelled, "SOONER_DEVICES": ",".join(device.id for device in devices)}
    if any(device.kind is DeviceKind.NVIDIA for device in devices):
        # Indices and not UUIDs, because many libraries parse them; they were counted in NVML's order.
        env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    if not spelled:
        env[ROCR] = ""  # HIP ignores an empty HIP_VISIBLE_DEVICES: only an empty ROCr mask hides AMD devices
    return env


def widest_gang(devices: Sequence[Device]) -> int:
    """How many of these devices one unit can hold: all of a node, except that CUDA opens one MIG instance a process."""
    whole = Counter(device.node for device in devices if device.kind is not DeviceKind.MIG)
    return max(whole.values(), default=min(len(devices), 1))


def matching(entry: str, ordinals: Sequence[Device | None], devices: Sequence[Device]) -> Device | None:
    """The device that one entry of a list names: an index, or a UUID of which the beginning is enough."""
    text = entry.strip()
    if number := _NUMBER.match(text):
        index = int(number.group())
        return ordinals[index] if 0 <= index < len(ordinals) else None
    if not text.upper().startswith(("GPU-", "MIG-")):
        return None
    same = [device for device in devices if device.uuid.casefold().startswith(text.casefold())]
    return same[0] if len(same) == 1 else None


def _masked(devices: Sequence[Device], ordinals: Sequence[Device | None], name: str, value: str) -> Visible:
    """Apply one mask. A repeated device hides all from CUDA, and ends the list for ROCm."""
    kept: list[Device] = []
    for entry in value.split(","):
        device = matching(entry, ordinals, devices)
        if device is None:
            return Visible(devices=tuple(kept), notes=_ending(name, value, entry, len(devices)))
        if device in kept:
            note = f"{name}={value!r} names device {entry.strip()} twice"
            return Visible(devices=() if name == CUDA else tuple(kept), notes=(note,))
        kept.append(device)
    return Visible(devices=tuple(kept))


def _ending(name: str, value: str, entry: str, present: int) -> tuple[str, ...]:
    if value.strip() in {"", "-1"}:
        return (f"{name}={value!r} hides all {present} devices",)
    if entry.strip() == "-1":
        return ()
    return (f"{name}={value!r} ends at {entry.strip()!r}, which is no device here",)


def _in_both(seen: Visible, env: Mapping[str, str]) -> Visible:
    """Apply HIP's mask and CUDA's, which HIP reads where its own is not set: we stay inside both."""
    masks = [_masked(seen.devices, seen.devices, name, env[name]) for name in (HIP, CUDA) if name in env]
    if not masks:
        return seen
    kept = tuple(device for device in masks[0].devices if all(device in mask.devices for mask in masks))
    return Visible(devices=kept, notes=seen.notes + tuple(note for mask in masks for note in mask.notes))


def _slurm(inventory: Inventory, env: Mapping[str, str]) -> Visible:
    """Apply Slurm's own list of GPUs, which is in machine indices.

    It counts only where no mask is set (Slurm sets one; somebody removed it) and more GPUs can be reached
    than it lists: where a cgroup hides the others already, its indices no longer fit.
    """
    everything = Visible(devices=inventory.devices)
    name = next((name for name in _SLURM if env.get(name)), "")
    if not name or not env.keys().isdisjoint({CUDA, HIP, ROCR}):
        return everything
    if len(env[name].split(",")) >= len(inventory.devices):
        return everything
    left = _masked(inventory.devices, inventory.ordinals, name, env[name])
    note = f"{name}={env[name]!r} narrows {len(inventory.devices)} devices to {len(left.devices)}"
    return Visible(devices=left.devices, notes=(*left.notes, note))


def _recounted(devices: Sequence[Device]) -> tuple[Device, ...]:
    return tuple(msgspec.structs.replace(device, visible=str(place)) for place, device in enumerate(devices))


def _is_index_mask(value: str) -> bool:
    number = _NUMBER.match(value.strip())
    return number is not None and int(number.group()) >= 0
