"""Needs that the devices of a run cannot meet are found before anything starts."""

import msgspec

from sooner.model.devices import Device, DeviceId, DeviceKind
from sooner.plan.checks import check_needs
from sooner.plan.toml_plan import read_plan

TEXT = """\
[[unit]]
name = "narrow"
run = "x"
[[unit]]
name = "wide"
run = "x"
devices = 4
[[unit]]
name = "big"
run = "x"
devices = 2
memory_mib = 60000
[[unit]]
name = "cpu"
run = "x"
devices = 0
memory_mib = 900000
"""


def devices(*memories: int) -> list[Device]:
    return [
        Device(id=DeviceId(f"virtual:{i}"), kind=DeviceKind.VIRTUAL, index=i, visible=str(i), memory_mib=memory)
        for i, memory in enumerate(memories)
    ]


def errors(*memories: int, text: str = TEXT) -> list[str]:
    plan = read_plan(TEXT, source="PLAN.toml")
    return [str(error).partition(" (")[0] for error in check_needs(plan, devices(*memories), text=text)]


def test_units_that_need_too_much_are_named_in_plan_order() -> None:
    assert errors(80000, 40000) == [
        "PLAN.toml:7: unit[1].devices: 'wide' needs 4 devices, this run has 2",
        "PLAN.toml:12: unit[2].memory_mib: 'big' needs 60000 MiB of device memory, this run has 40000",
    ]


def test_without_the_text_an_error_names_the_line_of_the_unit() -> None:
    assert errors(80000, 80000, text="") == ["PLAN.toml:4: unit[1].devices: 'wide' needs 4 devices, this run has 2"]


def test_unknown_memory_is_enough() -> None:
    assert errors(0, 0, 10, 10) == []


def test_without_devices_only_cpu_units_can_run() -> None:
    assert [line.split("'")[1] for line in errors()] == ["narrow", "wide", "big"]


def test_what_a_unit_needs_one_node_must_have() -> None:
    plan = read_plan(TEXT, source="PLAN.toml")
    both = [msgspec.structs.replace(device, node=node) for node in "ab" for device in devices(80000, 40000, 40000)]
    found = [str(error).partition(": unit")[2].partition(" (")[0] for error in check_needs(plan, both)]
    assert found == [
        "[1].devices: 'wide' needs 4 devices, no node of this run has more than 3",
        "[2].memory_mib: 'big' needs 60000 MiB of device memory, no node of this run has more than 40000",
    ]
