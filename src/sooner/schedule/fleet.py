"""The devices as the scheduler sees them: which are free, which gang is closest, what is shared on one.

Devices are positions in the list that the run was given. Sets of devices are Python integers used as bit masks: on a
thousand devices they are several times faster than sets.
"""

from collections.abc import Iterator, Sequence

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


def closeness(devices: Sequence[Device]) -> list[list[int]] | None:
    """How close each pair is (higher is closer), or None where nothing sets pairs apart."""
    if len(devices) > _TOPOLOGY_LIMIT:
        return None
    table = [[0] * len(devices) for _ in devices]
    for i, a in enumerate(devices):
        for j, b in enumerate(devices):
            if i != j:
                table[i][j] = _LINK * a.links.count(b.index) + _SAME_NUMA * (a.numa == b.numa >= 0)
    values = {value for i, row in enumerate(table) for j, value in enumerate(row) if i != j}
    return table if len(values) > 1 else None


class Fleet:
    """Which devices are free, held alone, or shared; and the best free gang of a width."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self._memory = [device.memory_mib for device in devices]
        self._close = closeness(devices)
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
        preferred = candidates & ~avoid
        if preferred.bit_count() >= width:
            candidates = preferred
        if candidates.bit_count() < width:
            return 0
        if self._close is None:
            return lowest(candidates, width)
        return self._closest(self._close, list(positions(candidates)), width)

    @staticmethod
    def _closest(close: list[list[int]], free: list[int], width: int) -> int:
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
