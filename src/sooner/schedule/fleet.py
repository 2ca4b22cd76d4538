"""The devices as the scheduler sees them: which are free, which gang is closest, what is shared on one.

Devices are positions in the list that the run was given. Sets of devices are Python integers used as bit masks: on a
thousand devices they are several times faster than sets.
"""

from collections.abc import Iterator, Mapping, Sequence

from sooner.model.devices import Device

_TOPOLOGY_LIMIT = 64
"""Above this many devices gangs are taken in order: comparing all pairs would cost more than closeness saves."""
_SAME_NUMA = 1
_LINK = 4
"""A fast link outweighs sharing a NUMA node; each further link between two devices adds as much again."""


def positions(mask: int) -> Iterator[int]:
    """The positions in a mask, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def lowest(mask: int, count: int) -> int:
    """The mask of the `count` lowest positions of `mask`."""
    chosen = 0
    for _ in range(count):
        low = mask & -mask
        chosen |= low
        mask ^= low
    return chosen


Closeness = Mapping[int, Mapping[int, int]]
"""How close the device at one position is to that at another; higher is closer."""


def closeness(devices: Mapping[int, Device]) -> Closeness | None:
    """How close each pair of one node's devices is, by position, or None where nothing sets pairs apart."""
    if len(devices) > _TOPOLOGY_LIMIT:
        return None
    table = {
        i: {
            j: _LINK * a.links.count(b.index) + _SAME_NUMA * (a.numa == b.numa >= 0) if i != j else 0
            for j, b in devices.items()
        }
        for i, a in devices.items()
    }
    values = {value for i, row in table.items() for j, value in row.items() if i != j}
    return table if len(values) > 1 else None


def by_node(devices: Sequence[Device]) -> list[dict[int, Device]]:
    """The devices of each node, by position; nodes in the order of their first devices."""
    found: dict[str, dict[int, Device]] = {}
    for i, device in enumerate(devices):
        found.setdefault(device.node, {})[i] = device
    return list(found.values())


class Fleet:
    """Which devices are free, held alone, or shared; and the best free gang of a width."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self._memory = [device.memory_mib for device in devices]
        nodes = by_node(devices)
        self._nodes = [sum(1 << i for i in node) for node in nodes]
        """The devices of each node: a gang is of one."""
        self._close = dict(zip(self._nodes, map(closeness, nodes), strict=True))
        self._memory_masks: dict[int, int] = {}
        self._shared_users = [0] * len(devices)
        self._shared_mib = [0] * len(devices)
        self._open = 0
        """Devices that shared units use now."""
        self.free = (1 << len(devices)) - 1
        self.gone = 0
        """Devices put aside for good."""
        self.away = 0
        """Devices that another run holds for now."""
        self.all = self.free

    @property
    def has_room(self) -> bool:
        """Whether anything at all could start on some device now."""
        return bool(self.free or self._open)

    def fitting(self, memory_mib: int) -> int:
        """The devices, in use or not, on which a unit of this size can ever run; unknown memory (0) fits."""
        if memory_mib not in self._memory_masks:
            self._memory_masks[memory_mib] = sum(
                1 << i for i, size in enumerate(self._memory) if size == 0 or size >= memory_mib
            )
        return self._memory_masks[memory_mib] & ~self.gone

    def gang(self, width: int, *, memory_mib: int, allowed: int, avoid: int = 0) -> int:
        """The closest free gang of this width among `allowed`, or 0; devices to `avoid` only where needed."""
        candidates = self.free & allowed & self.fitting(memory_mib)
        node = self._tightest(candidates & ~avoid, width)
        if node:
            candidates &= ~avoid
        else:
            node = self._tightest(candidates, width)
        if not node:
            return 0
        close = self._close[node]
        if close is None:
            return lowest(candidates & node, width)
        return self._closest(close, list(positions(candidates & node)), width)

    def _tightest(self, candidates: int, width: int) -> int:
        """Of the nodes that have so many of these devices, that with the fewest; 0 where none has."""
        if len(self._nodes) == 1:
            return self._nodes[0] if candidates.bit_count() >= width else 0
        counts = ((candidates & node).bit_count() for node in self._nodes)
        enough = [(count, i) for i, count in enumerate(counts) if count >= width]
        return self._nodes[min(enough)[1]] if enough else 0

    def of_one_node(self, mask: int) -> list[int]:
        """These devices, node by node."""
        return [mask & node for node in self._nodes]

    def widest(self, memory_mib: int) -> int:
        """How wide a unit of this size may be: one node must have its devices, in use or not."""
        fitting = self.fitting(memory_mib)
        return max(((fitting & node).bit_count() for node in self._nodes), default=0)

    @property
    def has_nodes(self) -> bool:
        """Whether the devices are of several machines."""
        return len(self._nodes) > 1

    @staticmethod
    def _closest(close: Closeness, free: list[int], width: int) -> int:
        """Grow a gang from every seed; take the one that is close within and leaves the others close."""
        if width == len(free):
            return sum(1 << i for i in free)
        best, best_score = 0, None
        for seed in free:
            members, rest = [seed], [i for i in free if i != seed]
            while len(members) < width:
                nearest = max(rest, key=lambda i: (sum(close[i][m] for m in members), -i))
                members.append(nearest)
                rest.remove(nearest)
            inner = sum(close[a][b] for a in members for b in members)
            cut = sum(close[a][b] for a in members for b in rest)
            score = (inner - cut, -seed)
            if best_score is None or score > best_score:
                best, best_score = sum(1 << i for i in members), score
        return best

    def shared_gang(self, width: int, *, memory_mib: int, allowed: int) -> int:
        """Devices on which a shared unit fits: those already shared first, the fullest of them first."""
        gangs = (self._shared_gang(width, memory_mib=memory_mib, allowed=allowed & node) for node in self._nodes)
        return max(filter(None, gangs), key=lambda gang: (gang & self._open).bit_count(), default=0)

    def _shared_gang(self, width: int, *, memory_mib: int, allowed: int) -> int:
        fits = [
            i for i in positions(self._open & allowed & ~self.gone)
            if self._memory[i] == 0 or self._shared_mib[i] + memory_mib <= self._memory[i]
        ]  # fmt: skip
        fits.sort(key=lambda i: (-self._shared_mib[i], i))
        chosen = sum(1 << i for i in fits[:width])
        missing = width - chosen.bit_count()
        if missing == 0:
            return chosen
        more = self.gang(missing, memory_mib=memory_mib, allowed=allowed)
        return chosen | more if more else 0

    def take(self, gang: int, *, shared_mib: int | None) -> None:
        """Hold a gang; `shared_mib` is the unit's share of memory, None for all of it."""
        self.free &= ~gang
        if shared_mib is not None:
            self._open |= gang
            for i in positions(gang):
                self._shared_users[i] += 1
                self._shared_mib[i] += shared_mib

    def give_back(self, gang: int, *, shared_mib: int | None) -> int:
        """Let go of a gang; returns the devices that nobody uses any more (not yet marked free)."""
        if shared_mib is None:
            return gang
        unused = 0
        for i in positions(gang):
            self._shared_users[i] -= 1
            self._shared_mib[i] -= shared_mib
            if not self._shared_users[i]:
                unused |= 1 << i
        self._open &= ~unused
        return unused
