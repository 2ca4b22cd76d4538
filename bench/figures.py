"""How the benches show their figures: aligned tables on stdout, JSON with the facts of the machine in `bench/out/`."""

import json
import os
import platform
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

OUT: Final = Path(__file__).resolve().parent / "out"


def p95(values: Sequence[float]) -> float:
    """The 95th percentile, interpolated between the two nearest values."""
    return statistics.quantiles(values, n=20, method="inclusive")[18] if len(values) > 1 else values[0]


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows under a header: the first column to the left, all others to the right."""
    cells = [list(map(str, row)) for row in (header, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in cells
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def machine() -> dict[str, Any]:
    """What a figure depends on besides the contestants: without it nobody can compare."""
    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cores": len(os.sched_getaffinity(0)),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def save(name: str, document: Mapping[str, Any]) -> Path:
    """Write `bench/out/NAME.json`; returns its path."""
    OUT.mkdir(exist_ok=True)
    path = OUT / f"{name}.json"
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return path


def suite(tree: Path, paths: Sequence[str]) -> list[str]:
    """The files of a tree that pytest looks for tests in, below some paths of it."""
    return sorted(
        str(each.relative_to(tree))
        for path in paths
        for each in (
            [*(tree / path).rglob("test_*.py"), *(tree / path).rglob("*_test.py")]
            if (tree / path).is_dir()
            else [tree / path]
        )
    )
