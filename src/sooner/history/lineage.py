"""Proposes which jobs are the same under another name: one ends where the other begins, and their names are alike.

A job that is renamed, split or sharded anew looks like one that died and one that was born: its history is lost to
whoever counts runs by name. What is proposed here is for people (or an analysis) to accept.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from sooner.history.statements import sql
from sooner.history.store import History

_DAY_S: Final = 86_400.0
_LONGEST_GAP_S: Final = 14 * _DAY_S
"""A job that was away for longer came back as another one."""
_LONGEST_OVERLAP_S: Final = 3 * _DAY_S
"""While a rename is merged, old branches still run the old name."""
_LIKE: Final = 0.5
"""Share of the rarer words that two names must have in common (Apache Ozone, 2019-2022: `it-client` became
`integration (client)`: 0.7; unrelated jobs of the same weeks stay below 0.4)."""
_LESS: Final = 0.01
_FEWEST_RUNS: Final = 3
_SHARD: Final = re.compile(r"(?i)(?:shard[ _-]?|(?<=[(\[, ]))(\d{1,3})(?:/|, | of |-of-)(\d{1,3})\b")
_WORD: Final = re.compile(r"[A-Za-z]+|\d+")


class Life(Struct, frozen=True):
    """When a job was seen."""

    job: str
    first: float
    """Epoch seconds."""
    last: float
    runs: int


class Succession(Struct, frozen=True):
    """Jobs that seem to go on under other names."""

    kind: str
    """`renamed`, `resharded`, `split` or `merged`."""
    old: tuple[str, ...]
    new: tuple[str, ...]
    at: float
    """Epoch seconds of the first run under a new name."""
    likeness: float
    """0 to 1: how much the names have in common."""


_Pair = tuple[float, Life, Life]
"""How alike an old and a new job are."""


def lives(history: History, repository: str = "") -> list[Life]:
    """When each job was seen."""
    statement, given = sql("lineage", "lives"), {"repository": repository}
    return [Life(*row) for row in history.read(lambda: history.database.rows(statement, given), "jobs", "runs")]


def lineage(jobs: Sequence[Life]) -> list[Succession]:
    """Proposals, in the order of time."""
    known = [job for job in jobs if job.runs >= _FEWEST_RUNS]
    if not known:
        return []
    begin, end = min(job.first for job in known), max(job.last for job in known)
    ended = [job for job in known if job.last < end - _LONGEST_OVERLAP_S]
    begun = [job for job in known if job.first > begin + _LONGEST_OVERLAP_S]
    weights = _weights(known)
    following = [(old, new) for new in begun for old in ended if old.job != new.job and _follows(old, new)]
    pairs = [(_likeness(old.job, new.job, weights), old, new) for old, new in following]
    return _proposals(_without_shards_elsewhere([pair for pair in pairs if pair[0] >= _LIKE]))


def _follows(old: Life, new: Life) -> bool:
    return -_LONGEST_OVERLAP_S <= new.first - old.last <= _LONGEST_GAP_S and old.first < new.first


def _words(job: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(_SHARD.sub(" ", job)))


def _weights(jobs: Sequence[Life]) -> Mapping[str, float]:
    """A word that few jobs have tells more than one that all have."""
    counts = Counter(word for job in jobs for word in _words(job.job))
    return {word: math.log(1 + len(jobs) / count) for word, count in counts.items()}


def _likeness(old: str, new: str, weights: Mapping[str, float]) -> float:
    mine, theirs = _words(old), _words(new)
    smaller = min(sum(weights[word] for word in words) for words in (mine, theirs))
    common, all_words = (sum(weights[word] for word in words) for words in (mine & theirs, mine | theirs))
    # Of two names that both hold all of a third one, the one that holds less besides is the likelier.
    return common / smaller - _LESS * (1 - common / all_words) if smaller else 0.0


def base_of(job: str) -> tuple[str, str]:
    """A job's name without its shard, and the number of shards."""
    found = _SHARD.search(job)
    return (_SHARD.sub("#", job), found[2]) if found else (job, "")


def _is_resharded(pair: _Pair) -> bool:
    return base_of(pair[1].job)[0] == base_of(pair[2].job)[0]


def _without_shards_elsewhere(pairs: Sequence[_Pair]) -> list[_Pair]:
    """A job that goes on in shards of its own name goes on nowhere else, and its shards come from nowhere else."""
    of_shards = {job.job for pair in pairs if _is_resharded(pair) for job in pair[1:]}
    return [pair for pair in pairs if _is_resharded(pair) or not {pair[1].job, pair[2].job} & of_shards]


def _proposals(pairs: Sequence[_Pair]) -> list[Succession]:
    """The best predecessor of each new job, and what follows for the old ones."""
    before = _best(pairs, lambda pair: pair[2].job)
    groups: dict[str, list[_Pair]] = {}
    for found in before.values():
        groups.setdefault(base_of(found[1].job)[0] if _is_resharded(found) else found[1].job, []).append(found)
    taken = {found[1].job for found in before.values()}
    for found in _best(pairs, lambda pair: pair[1].job).values():
        mine = groups.get(before[found[2].job][1].job, [])
        if found[1].job not in taken and len({pair[2].job for pair in mine}) == 1:
            mine.append(found)
    return sorted((_proposal(group, pairs) for group in groups.values()), key=lambda found: (found.at, found.old))


def _best(pairs: Sequence[_Pair], of: Callable[[_Pair], str]) -> dict[str, _Pair]:
    best: dict[str, _Pair] = {}
    for pair in pairs:
        if of(pair) not in best or _rank(pair) > _rank(best[of(pair)]):
            best[of(pair)] = pair
    return best


def _rank(found: _Pair) -> tuple[bool, float, float]:
    likeness, old, new = found
    return _is_resharded(found), likeness, -abs(new.first - old.last)


def _proposal(group: Sequence[_Pair], pairs: Sequence[_Pair]) -> Succession:
    old = {found[1].job for found in group}
    new = {found[2].job for found in group}
    if all(map(_is_resharded, group)):
        base = base_of(group[0][1].job)[0]
        old |= {a.job for _, a, b in pairs if b.job in new and base_of(a.job)[0] == base}
        kind = "resharded"
    else:
        kind = "split" if len(new) > 1 else "merged" if len(old) > 1 else "renamed"
    return Succession(
        kind,
        tuple(sorted(old)),
        tuple(sorted(new)),
        min(found[2].first for found in group),
        round(min(found[0] for found in group), 3),
    )
