"""Whether the devices of a run are enough for every unit of a plan."""

from collections.abc import Sequence

from sooner.model.devices import Device
from sooner.model.errors import NotEnoughDevices
from sooner.model.units import Plan, Unit
from sooner.plan.lines import Locator


def check_needs(plan: Plan, devices: Sequence[Device], *, text: str = "") -> tuple[NotEnoughDevices, ...]:
    """One error for each unit that needs more than there is, in plan order.

    Args:
        plan: What is to run.
        devices: What it can run on; a unit's devices are of one node. One whose memory is not known (0) counts as large
            enough.
        text: The TOML text that the plan was read from; with it an error names the line of the key itself.
    """
    nodes: dict[str, list[float]] = {}
    for device in devices:
        nodes.setdefault(device.node, []).append(device.memory_mib or float("inf"))
    memories = [sorted(node, reverse=True) for node in nodes.values()]
    lacking = [(index, *_lack(unit, memories)) for index, unit in enumerate(plan.units)]
    found = [entry for entry in lacking if entry[1]]
    locator = Locator(text) if text and found else None
    return tuple(
        NotEnoughDevices(
            plan.units[index].key,
            needed=needed,
            present=present,
            nodes=len(nodes),
            source=plan.source,
            line=(locator.key(index, key) if locator else 0) or plan.units[index].line,
            key=f"unit[{index}].{key}",
        )
        for index, key, needed, present in found
    )


def _lack(unit: Unit, nodes: Sequence[Sequence[float]]) -> tuple[str, int, int]:
    """Key, need and what is there; an empty key where it is enough.

    Args:
        unit: Runs on one node.
        nodes: Memories of each node's devices, largest first.
    """
    need = unit.need
    widest = max(map(len, nodes), default=0)
    if need.devices > widest:
        return "devices", need.devices, widest
    smallest = max((node[need.devices - 1] for node in nodes if len(node) >= need.devices), default=0.0)
    if need.devices and need.memory_mib > smallest:
        return "memory_mib", need.memory_mib, int(smallest)
    return "", 0, 0
