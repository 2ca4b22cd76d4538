"""Digests by which equal things are found again: messages without what changes between runs."""

import hashlib
import re
from functools import lru_cache
from typing import Final

_CHANGING: Final = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{7,64}\b|\d+(?:\.\d+)?")
"""Addresses, digests, commits, numbers: a device's index, a port or a duration makes no other fault."""
_SPACE: Final = re.compile(r"\s+")


def first_line(text: str, longest: int) -> str:
    """The first line that says something, cut to a length."""
    for line in text.splitlines():
        if stripped := line.strip():
            return stripped[:longest]
    return ""


@lru_cache(maxsize=4096)
def digest_of(message: str) -> str:
    """16 hex digits, equal for messages that differ in numbers, addresses and white space only; empty for none."""
    if not message:
        return ""
    plain = _SPACE.sub(" ", _CHANGING.sub("#", message)).strip()
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:16]
