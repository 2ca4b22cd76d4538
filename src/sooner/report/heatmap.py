"""A matrix of correlations as a picture: SVG with labels, PNG without. Own writers: nothing to install or fetch."""

import struct
import zlib
from collections.abc import Sequence
from html import escape
from typing import Final

from sooner.model.text import columns, cut, xml_text

_CELL: Final = 14
_LETTER: Final = 6.6
_MOST_LABEL: Final = 60
_UNKNOWN: Final = (221, 221, 221)
_COLD: Final = (59, 76, 192)
_WHITE: Final = (247, 247, 247)
_HOT: Final = (180, 4, 38)


def colour(value: float) -> tuple[int, int, int]:
    """Blue for -1, white for 0, red for 1, grey for NaN."""
    if value != value:  # noqa: PLR0124 - NaN
        return _UNKNOWN
    end, share = (_HOT, min(value, 1.0)) if value >= 0 else (_COLD, min(-value, 1.0))
    red, green, blue = (round(white + (far - white) * share) for white, far in zip(_WHITE, end, strict=True))
    return red, green, blue


def svg(values: Sequence[Sequence[float]], labels: Sequence[str], clusters: Sequence[int] = ()) -> str:
    """A heat map with labels and a frame around each cluster.

    Args:
        values: Rows in the order of the labels.
        labels: Names; they are data and are escaped.
        clusters: Number of each label's cluster, neighbours together.
    """
    shown = [cut(label, _MOST_LABEL) for label in labels]
    left = 12 + _LETTER * max(map(columns, shown), default=0)
    size = _CELL * len(labels)
    extent = f'width="{left + size + 12:.0f}" height="{size + 24}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {extent} font-family="monospace" font-size="11" role="img">']
    parts.append("<title>Which jobs fail together</title>")
    for i, (row, label) in enumerate(zip(values, shown, strict=True)):
        y = 12 + i * _CELL
        parts.append(f'<text x="{left - 6:.0f}" y="{y + 11}" text-anchor="end">{_text(label)}</text>')
        for j, value in enumerate(row):
            red, green, blue = colour(value)
            said = "unknown" if value != value else f"{value:.2f}"  # noqa: PLR0124 - NaN
            place = f'x="{left + j * _CELL:.0f}" y="{y}" width="{_CELL}" height="{_CELL}"'
            title = f"<title>{_text(label)} / {_text(shown[j])}: {said}</title>"
            parts.append(f'<rect {place} fill="#{red:02x}{green:02x}{blue:02x}">{title}</rect>')
    for begin, end in _runs(clusters):
        at, span = begin * _CELL, (end - begin) * _CELL
        parts.append(
            f'<rect x="{left + at:.0f}" y="{12 + at}" width="{span}" height="{span}" fill="none" stroke="#000"/>'
        )
    return "".join([*parts, "</svg>\n"])


def page(picture: str, text: str, title: str = "Which jobs fail together") -> str:
    """One HTML file that opens offline: a picture, and below it what the command says; all of it is data.

    Args:
        picture: SVG, as `svg` writes it.
        text: Tables for a terminal.
        title: Of the page.
    """
    safety = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{_text(title)}</title>\n"
        f'<meta http-equiv="Content-Security-Policy" content="{safety}">\n'
        "<style>body{font-family:sans-serif;margin:2em}pre{overflow:auto}</style></head><body>\n"
        f"<h1>{_text(title)}</h1>\n"
        f'<div style="overflow:auto">{picture}</div>\n<pre>{_text(text)}</pre>\n</body></html>\n'
    )


def _text(label: str) -> str:
    return escape(xml_text(label), quote=True)


def _runs(clusters: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbours with the same number, two at least."""
    found, begin = [], 0
    for end in range(1, len(clusters) + 1):
        if end == len(clusters) or clusters[end] != clusters[begin]:
            if end - begin > 1:
                found.append((begin, end))
            begin = end
    return found


def png(values: Sequence[Sequence[float]], cell: int = 6) -> bytes:
    """The same picture without labels: 8-bit RGB (PNG specification, second edition)."""
    lines = []
    for row in values:
        line = b"\x00" + b"".join(bytes(colour(value)) * cell for value in row)
        lines.extend([line] * cell)
    size = len(values) * cell
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    body = zlib.compress(b"".join(lines), 9)
    chunks = ((b"IHDR", head), (b"IDAT", body), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
