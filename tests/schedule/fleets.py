"""Builders of devices and works for the tests of the scheduler."""

from sooner.model.devices import Device, DeviceId, DeviceKind
from sooner.model.units import UnitKey
from sooner.schedule.work import Work


def fleet(count, *, memory_mib=0, links=None, numa=None):
    return [
        Device(
            id=DeviceId(f"virtual:{i}"),
            kind=DeviceKind.VIRTUAL,
            index=i,
            visible=str(i),
            memory_mib=memory_mib,
            links=tuple(links[i]) if links else (),
            numa=numa[i] if numa else -1,
        )
        for i in range(count)
    ]


def work(name, devices=1, seconds=None, **more):
    return Work(key=UnitKey(name), devices=devices, seconds=seconds, **more)
