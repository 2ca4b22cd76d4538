"""How many devices a runner has by its name."""

import re
from typing import Final

_OF_G: Final = {
    "xlarge": 1, "2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "16xlarge": 1, "12xlarge": 4, "24xlarge": 4, "48xlarge": 8,
    "metal": 8,
}  # fmt: skip
_INSTANCES: Final = {
    "p3.2xlarge": 1, "p3.8xlarge": 4, "p3.16xlarge": 8, "p3dn.24xlarge": 8, "p4d.24xlarge": 8, "p4de.24xlarge": 8,
    "p5.4xlarge": 1, "p5.48xlarge": 8, "p5e.48xlarge": 8, "p5en.48xlarge": 8, "p6.b200.48xlarge": 8,
    "p6.b300.48xlarge": 8,
    **{f"{family}.{size}": count for family in ("g4dn", "g5", "g6", "g6e") for size, count in _OF_G.items()},
}  # fmt: skip
"""GPUs of AWS's instances, as their documentation lists them; a dash in a name counts as a dot."""
MODEL: Final = r"(?:[hb][123]00|g[hb][23]00|h20|[av]100|mi\d+x?|a10g?|l40s?|l4|t4)"
"""Kinds of device."""
_NUMBER: Final = r"(16|\d)(?![a-z\d])(?![._-]?(?:v?cpu|core))"
_COUNTED: Final = (
    re.compile(rf"gpus?[.:=_-](?:[a-z]+\d*[a-z]?[.:=_-])?x?{_NUMBER}"),
    re.compile(r"gpu-(16|\d)g\b"),
    re.compile(rf"gpu-{MODEL}-(?:latest|earliest|\d{{3}})-{_NUMBER}"),
    re.compile(r"\b(16|\d)[x_-]{0,2}gpu"),
    re.compile(rf"\b(16|\d)[x_-]{{0,2}}{MODEL}"),
    re.compile(rf"{MODEL}[._x-]{_NUMBER}"),
    re.compile(r"multi[._-]gpu()"),
)
_MULTI: Final = 2
"""Devices of a runner that only says that it has several: the fewest."""
_PREFIXED: Final = re.compile(rf"\$\{{\{{[^$]*?\}}\}}((?!x|gpu|{MODEL})[a-z]\w*[.-][\w.-]+)")
"""What is computed before a name, too far from the word for devices to be their number."""
_HAS_ONE: Final = re.compile(rf"gpu|cuda|rocm|nvidia|\brtx|[hb][123]00|a100|\b{MODEL}x?\b", re.IGNORECASE)
_HAS_NONE: Final = re.compile(r"ubuntu|windows|macos|cpu", re.IGNORECASE)
"""GitHub's own runners, and names that say that there are none."""
_COMPUTED: Final = re.compile(r"\$\{\{.*?\}\}")


def devices_of_label(label: str) -> int | None:
    """How many devices a runner has by its name; 0 for one that names none.

    Of a name that is computed, what is written out counts (`${{ needs.a.outputs.prefix }}linux.gpu.4`); None where
    that says no number, and what is computed may.
    """
    low = _COMPUTED.sub("", label.lower())
    dotted = low.replace("-", ".")
    for name, count in _INSTANCES.items():
        if name in dotted:
            return count
    for pattern in _COUNTED:
        found = pattern.search(low)
        if found:
            return int(found[1] or _MULTI)
    if "$" in label:
        behind = _PREFIXED.fullmatch(label.lower())
        return 1 if behind and _HAS_ONE.search(behind[1]) else None
    return 1 if _HAS_ONE.search(low) else 0


def names_none(label: str) -> bool:
    """Whether a label says that its runner has no devices."""
    return bool(_HAS_NONE.search(label))
