"""What files declare of pools: machines over time, booted or not, and nodes that several labels share."""

from collections.abc import Container, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, structs

from sooner.cli.sizing_files import FIELDS, SizingFileError, data_of, document, numbers, table, texts

if TYPE_CHECKING:
    from sooner.analysis.sizing.declared import Crowd
    from sooner.analysis.sizing.facts import PoolSpec, Queue

_MOST: Final = 1_000_000
"""Machines, nodes, devices: each of them is replayed."""
_MOST_NAMED: Final = 5
_CAPACITY: Final = ("capacity", "machines", "size", "runners", "servers", "count", "max", "concurrency", "slots")
_AT: Final = ("at", "from", "since", "time", "start")
_BOOT: Final = ("boot_s", "boot_seconds", "boot")
_POOL_KEYS: Final = frozenset({*FIELDS["label"], *_CAPACITY, *_AT, *_BOOT, "idle_s"})
_SHARED_KEYS: Final = frozenset({*FIELDS["label"], "name", "nodes", "devices", "widths", "handover_s", "reserves"})


class Declared(Struct, frozen=True, kw_only=True):
    """What a file says of the machines of one label."""

    label: str
    steps: tuple[tuple[float, float], ...] = ()
    """(since when, machines), ascending."""
    boot_s: float | None = None
    """None where nothing says it, as good as none."""
    idle_s: float | None = None
    """Seconds after which an idle machine is let go; None: they stay on."""


class Shared(Struct, frozen=True, kw_only=True):
    """Nodes that several labels share."""

    name: str
    nodes: tuple[tuple[int, int], ...]
    """(how many, devices of each); 0 where their number is not known."""
    widths: dict[str, int]
    """Devices that a job of each label takes."""
    handover_s: float = 0.0
    reserves: bool = True


class Declarations(Struct, frozen=True, kw_only=True):
    """All that a file declares."""

    pools: dict[str, Declared] = {}
    shared: tuple[Shared, ...] = ()
    notes: tuple[str, ...] = ()

    def spec(self, label: str) -> "PoolSpec":
        """What is declared of one label's machines."""
        from sooner.analysis.sizing.facts import PoolSpec, Steps

        one = self.pools.get(label)
        if one is None:
            return PoolSpec(label=label)
        steps = Steps(tuple(at for at, _ in one.steps), tuple(count for _, count in one.steps)) if one.steps else None
        return PoolSpec(label=label, capacity=steps, boot_s=one.boot_s or 0.0, idle_s=one.idle_s)

    def unused(self, queues: Container[str]) -> list[str]:
        """A note on the pools and nodes of which no job is known: their labels may be mistyped."""
        names = [label for label in self.pools if label not in queues]
        names += [one.name for one in self.shared if not any(label in queues for label in one.widths)]
        if not names:
            return []
        named = ", ".join(map(repr, names[:_MOST_NAMED])) + (", ..." if len(names) > _MOST_NAMED else "")
        return [f"declared, but of no job in the record: {named}"]

    def crowds(self, queues: "Mapping[str, Queue]", train: float) -> "tuple[dict[str, Crowd], list[str]]":
        """By label, whose jobs share its machines, where these are shared or booted; and notes on what was fitted."""
        from sooner.analysis.sizing.declared import crowd_of, fitted, split_of
        from sooner.analysis.sizing.events import Machines, Nodes
        from sooner.analysis.sizing.facts import Node

        found: dict[str, Crowd] = {}
        notes: list[str] = []
        for one in self.shared:
            members = {label: queues[label] for label in one.widths if label in queues}
            if not members:
                continue
            nodes = tuple(Node(count=count, devices=devices, widths=one.widths) for count, devices in one.nodes)
            crowd = crowd_of(members, Nodes(nodes=nodes, handover_s=one.handover_s, reserves=one.reserves))
            crowd = fitted(crowd, min(split_of(queue, train) for queue in members.values()))
            if isinstance(crowd.pool, Nodes) and crowd.pool.nodes != nodes:
                counts = ", ".join(f"{node.count} nodes of {node.devices} devices" for node in crowd.pool.nodes)
                notes.append(f"{one.name}: fitted on the first part: {counts}")
            found |= dict.fromkeys(members, crowd)
        for label, pool in self.pools.items():
            spec = self.spec(label)
            if label in queues and spec.capacity and (pool.boot_s or pool.idle_s is not None):
                machines = Machines(capacity=spec.capacity, boot_s=spec.boot_s, idle_s=spec.idle_s)
                found[label] = crowd_of({label: queues[label]}, machines)
        return found, notes


def declarations(path: Path | None) -> Declarations:
    """What is declared of pools.

    A JSON or TOML object of `label -> machines`, `label -> {capacity, boot_s, idle_s}` or `name -> {nodes, devices,
    widths, handover_s, reserves}`, a list of such objects with `label` (alone or under `pools`), or a CSV table with
    the columns label, capacity, and, where it changes, at.

    Raises:
        SizingFileError: It cannot be understood.
    """
    if path is None:
        return Declarations()
    data = data_of(path)  # once: it may be a pipe
    if not data.strip():
        return Declarations(notes=(f"{path}: is empty, and declares nothing",))
    if path.suffix.lower() in {".json", ".toml"}:
        rows, is_table = _rows(path, document(path, data)), False
    else:
        found = table(path, data)
        rows, is_table = [dict(zip(found, values, strict=True)) for values in zip(*found.values(), strict=True)], True
    pools: dict[str, Declared] = {}
    shared: list[Shared] = []
    notes: list[str] = []
    for number, given in enumerate(rows, 2):
        row = {str(key).lower(): value for key, value in given.items()}
        line = number if is_table else 0
        if "widths" in row or "nodes" in row:
            shared.append(_shared(path, row))
        else:
            one = _pool(path, line, row)
            pools[one.label] = _together(path, line, pools.get(one.label), one)
        known = _SHARED_KEYS if "widths" in row or "nodes" in row else _POOL_KEYS
        notes += [f"{path}: {key!r} says nothing of a pool, and is ignored" for key in row if key not in known]
    _check_labels(path, pools, shared)
    return Declarations(pools=pools, shared=tuple(shared), notes=tuple(dict.fromkeys(notes)))


def _together(path: Path, line: int, before: Declared | None, one: Declared) -> Declared:
    """Several rows of one label: what one leaves out, those before it say."""
    steps = tuple(sorted({*(before.steps if before else ()), *one.steps}))
    if len({at for at, _ in steps}) < len(steps):
        raise SizingFileError(path, f"{one.label} has two numbers of machines from one time on", line=line)
    if before is None:
        return structs.replace(one, steps=steps)
    boot_s = before.boot_s if one.boot_s is None else one.boot_s
    idle_s = before.idle_s if one.idle_s is None else one.idle_s
    return structs.replace(one, steps=steps, boot_s=boot_s, idle_s=idle_s)


def _rows(path: Path, data: Any) -> list[dict[str, Any]]:
    if isinstance(data, dict):
        inner = next((data[key] for key in ("pools", "pool") if isinstance(data.get(key), list | dict)), data)
        if isinstance(inner, dict):
            inner = [
                {"label": label, **(about if isinstance(about, dict) else {"capacity": about})}
                for label, about in inner.items()
            ]
        data = inner
    if isinstance(data, list):
        data = [{"label": row} if isinstance(row, str) else row for row in data]
    if not isinstance(data, list) or not all(isinstance(row, dict) for row in data):
        raise SizingFileError(path, "must hold pools: an object by label, or a list of objects with `label`")
    return data


def _pool(path: Path, line: int, row: Mapping[str, Any]) -> Declared:
    label = next((row[name] for name in FIELDS["label"] if row.get(name)), None)
    if label is None:
        raise SizingFileError(path, "a pool has no label", line=line)
    capacity = next((row[name] for name in _CAPACITY if row.get(name) not in (None, "")), None)
    at = next((row[name] for name in _AT if row.get(name) not in (None, "")), None)
    boot = next((row[name] for name in _BOOT if row.get(name) not in (None, "")), None)
    idle = None if row.get("idle_s") in (None, "") else row["idle_s"]
    return Declared(
        label=texts([label])[0],
        steps=tuple(sorted(_steps(path, line, capacity, at))),
        boot_s=None if boot is None else _seconds(path, line, "boot_s", boot),
        idle_s=None if idle is None else _seconds(path, line, "idle_s", idle),
    )


def _seconds(path: Path, line: int, name: str, value: Any) -> float:
    found = numbers(path, name, [value], is_time=False, line=line)[0]
    if not found >= 0:
        raise SizingFileError(path, f"{name} {value!r} is no number of seconds", line=line)
    return found


def _steps(path: Path, line: int, capacity: Any, at: Any) -> list[tuple[float, float]]:
    if capacity is None:
        return []
    if isinstance(capacity, list):
        found = []
        for one in capacity:
            if isinstance(one, dict):
                since = next((one[name] for name in _AT if name in one), None)
                found += _steps(path, line, next((one[n] for n in _CAPACITY if n in one), None), since)
            elif isinstance(one, list) and len(one) == 2:  # noqa: PLR2004 - a pair
                found += _steps(path, line, one[1], one[0])
            else:
                raise SizingFileError(path, f"capacity {one!r} is no pair of a time and a number", line=line)
        return found
    count = numbers(path, "capacity", [capacity], is_time=False, line=line)[0]
    if count != count:  # noqa: PLR0124 - not a number
        return []
    if count < 0:
        raise SizingFileError(path, f"capacity {capacity!r} is negative", line=line)
    if count > _MOST:
        raise SizingFileError(path, f"capacity {capacity!r} is more than {_MOST:,} machines", line=line)
    return [(float("-inf") if at is None else numbers(path, "at", [at], is_time=True, line=line)[0], count)]


def _shared(path: Path, row: Mapping[str, Any]) -> Shared:
    name = str(next((row[key] for key in ("name", *FIELDS["label"]) if row.get(key)), "nodes"))
    nodes = _nodes(path, name, row)
    reserves = row.get("reserves", True)
    if not isinstance(reserves, bool):
        raise SizingFileError(path, f"{name}: `reserves` is true or false, not {reserves!r}")
    return Shared(
        name=name,
        nodes=nodes,
        widths=_widths(path, name, row.get("widths"), max(devices for _, devices in nodes)),
        handover_s=_seconds(path, 0, "handover_s", row.get("handover_s", 0.0)),
        reserves=reserves,
    )


def _nodes(path: Path, name: str, row: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    nodes = row.get("nodes")
    kinds = nodes if isinstance(nodes, list) else [{"count": nodes, "devices": row.get("devices")}]
    found = []
    for kind in kinds:
        if not isinstance(kind, dict) or not _is_count(kind.get("devices")):
            raise SizingFileError(path, f"{name}: each kind of node needs `devices`, a number from 1 on")
        count = kind.get("count")
        if count is not None and not _is_count(count):
            raise SizingFileError(path, f"{name}: {count!r} is no number of nodes; leave it out to have it fitted")
        found.append((count or 0, kind["devices"]))
    if not found or sum(not count for count, _ in found) > 1:
        raise SizingFileError(path, f"{name}: needs nodes, of which one kind at most has no number")
    return tuple(found)


def _widths(path: Path, name: str, widths: Any, most: int) -> dict[str, int]:
    if not isinstance(widths, dict) or not widths:
        raise SizingFileError(path, f"{name}: nodes need `widths`: an object of label -> devices that a job takes")
    for label, width in widths.items():
        if not _is_count(width):
            raise SizingFileError(path, f"{name}: a job of {label} cannot take {width!r} devices")
        if width > most:
            raise SizingFileError(
                path, f"{name}: a job of {label} takes {width} devices, and no node has more than {most}"
            )
    return widths


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MOST


def _check_labels(path: Path, pools: Mapping[str, Declared], shared: list[Shared]) -> None:
    seen = dict.fromkeys(pools, "a pool of its own")
    for one in shared:
        for label in one.widths:
            if label in seen:
                raise SizingFileError(path, f"{label} is declared twice: as {seen[label]}, and on {one.name}")
            seen[label] = one.name
