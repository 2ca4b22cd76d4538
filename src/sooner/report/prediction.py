"""Shows a predicted schedule: order, makespan and lower bound."""

from collections.abc import Sequence
from typing import Any, Protocol

from sooner.model.devices import Device
from sooner.model.units import Plan, UnitKey
from sooner.report.wording import counted, device_label, seconds, unit_label


class Placed(Protocol):
    """When and where a unit would run, as the scheduler's simulation says it."""

    @property
    def key(self) -> UnitKey:
        """Which unit."""

    @property
    def devices(self) -> tuple[int, ...]:
        """Positions in the device list."""

    @property
    def start_s(self) -> float:
        """Seconds from the beginning."""

    @property
    def end_s(self) -> float:
        """Seconds from the beginning."""


def prediction(placements: Sequence[Placed], plan: Plan, devices: Sequence[Device], bound_s: float) -> dict[str, Any]:
    """The prediction for programs: `order`, `makespan_s`, `bound_s`, and units that cannot run as `holes`."""
    units = {unit.key: unit for unit in plan.units}
    placed = {placement.key for placement in placements}
    return {
        "order": [
            {
                "unit": units[placement.key].name,
                "variant": units[placement.key].variant,
                "devices": [devices[i].id for i in placement.devices],
                "start_s": round(placement.start_s, 3),
                "end_s": round(placement.end_s, 3),
            }
            for placement in placements
        ],
        "makespan_s": round(max((placement.end_s for placement in placements), default=0.0), 3),
        "bound_s": round(bound_s, 3),
        "holes": [unit.key for unit in plan.units if unit.key not in placed],
    }


def prediction_text(document: dict[str, Any], *, unknown: int, units: int, notes: Sequence[str]) -> str:
    """The prediction for people; of so many units, the durations of so many are unknown."""
    lines = [f"{'start':>10}  {'end':>10}  {'on':<16}  unit"]
    for entry in document["order"]:
        where = device_label(entry["devices"], {})
        where = ",".join(device.rpartition(":")[2] for device in entry["devices"]) or where
        name = unit_label(entry["unit"], entry["variant"])
        lines.append(f"{seconds(entry['start_s']):>10}  {seconds(entry['end_s']):>10}  {where:<16}  {name}")
    lines += [f"cannot run here: {hole}" for hole in document["holes"]]
    lines += [f"note: {note}" for note in notes]
    if unknown and unknown == units:
        lines.append("note: no duration is known, each is taken as 1 s (an earlier run, or --durations, tells them)")
    elif unknown:
        lines.append(f"note: {counted(unknown, 'unit')} without a known duration, taken as the median of the others")
    ratio = document["makespan_s"] / document["bound_s"] if document["bound_s"] else 1.0
    lines.append(
        f"predicted {seconds(document['makespan_s'])}, lower bound {seconds(document['bound_s'])} (x {ratio:.3f})"
    )
    return "\n".join(lines)
