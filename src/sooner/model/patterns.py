"""Patterns by which people name tests and jobs. Pure."""

import re
from fnmatch import translate
from functools import lru_cache


def is_meant(name: str, pattern: str) -> bool:
    """Whether a shell's pattern means a name; brackets mean themselves too, as in `test_a.py::test_b[nccl-2]`."""
    return any_of((pattern,)).match(name) is not None


@lru_cache(maxsize=1024)
def any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """What matches the names that any of some patterns means, for thousands of both; without any it matches none."""
    either = dict.fromkeys(one for each in patterns for one in (each, each.replace("[", "[[]")))
    return re.compile("|".join(map(translate, either)) or "(?!)")
