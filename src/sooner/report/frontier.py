"""What each budget would have caught, as a picture: SVG, nothing to install or fetch."""

from collections.abc import Sequence
from typing import Final

from sooner.analysis.selection.calibrate import Point

_WIDTH: Final = 560
_HEIGHT: Final = 320
_LEFT: Final = 48
_TOP: Final = 16
_TICKS: Final = (0, 20, 40, 60, 80, 100)


def svg(points: Sequence[Point], chosen: Point) -> str:
    """Recall over cost with its lower bound, and the chosen level.

    Args:
        points: Of the frontier, cost ascending; shares.
        chosen: The level that is used.
    """
    extent = f'width="{_LEFT + _WIDTH + 16}" height="{_TOP + _HEIGHT + 44}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {extent} font-family="sans-serif" font-size="12" role="img">']
    parts.append("<title>Breakages that each budget would have caught</title>")
    for tick in _TICKS:
        x, y = _place(tick / 100, tick / 100)
        parts.append(f'<line x1="{x}" x2="{x}" y1="{_TOP}" y2="{_TOP + _HEIGHT}" stroke="#ddd"/>')
        parts.append(f'<line x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{x}" y="{_TOP + _HEIGHT + 16}" text-anchor="middle">{tick} %</text>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{tick} %</text>')
    middle = _LEFT + _WIDTH / 2
    parts.append(f'<text x="{middle:.0f}" y="{_TOP + _HEIGHT + 36}" text-anchor="middle">cost of all jobs</text>')
    upper = [_place(one.level, one.recall) for one in points]
    lower = [_place(one.level, one.low) for one in points]
    if points:
        parts.append(f'<polygon points="{_path([*upper, *reversed(lower)])}" fill="#3b4cc0" fill-opacity="0.15"/>')
        parts.append(f'<polyline points="{_path(upper)}" fill="none" stroke="#3b4cc0" stroke-width="2"/>')
    x, y = _place(chosen.level, chosen.recall)
    said = f"{100 * chosen.recall:.1f} % at {100 * chosen.level:.1f} %, at least {100 * chosen.low:.1f} %"
    parts.append(f'<circle cx="{x}" cy="{y}" r="5" fill="#b40426"><title>{said}</title></circle>')
    return "".join([*parts, "</svg>\n"])


def _place(cost: float, recall: float) -> tuple[float, float]:
    return round(_LEFT + _WIDTH * cost, 1), round(_TOP + _HEIGHT * (1 - recall), 1)


def _path(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in places)
