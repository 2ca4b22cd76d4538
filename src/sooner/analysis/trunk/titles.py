"""What the title of a commit says about an earlier one: that it reverts it, or lands it again. Pure.

By the words that git, GitHub and Phabricator write, and those that people do.
"""

import re
from typing import Final

_REVERT: Final = re.compile(
    r'^(?:\[?revert(?:ed)?\]?[:\s]++(?!(?:back )?to\b)|back(?:ed)? ?out[:\s]++(?!of\b))"?(?P<title>.*?)"?\s*$',
    re.IGNORECASE,
)
"""Who reverts *to* something, or backs out *of* it, names no commit."""
_RELAND: Final = re.compile(
    r'^(?:\[?re-?land(?:ed|ing)?(?:\s*#?\d+)?\]?[:\s]+|\[?re-?apply\]?[:\s]+)"?(?P<title>.*?)"?\s*$', re.IGNORECASE
)
_RELAND_MARK: Final = re.compile(
    r"\s*(?:\[\s*re-?(?:land|appl[yi])[^\]]*\]|\(\s*re-?(?:land|appl[yi])[^)]*\))\s*", re.IGNORECASE
)
_NUMBER: Final = re.compile(r"(?:\s*\(#\d+\))+\s*$")
_LONGEST: Final = 1000
"""What stands behind is not read: time grows with the square of a title's length, and a title may be megabytes."""


def unwrapped(title: str) -> tuple[str, int, int]:
    """The innermost title, how often it is reverted, and how often it says that it lands again."""
    title, reverts, relands = title[:_LONGEST], 0, 0
    while True:
        if match := _REVERT.match(title):
            reverts += 1
        elif match := _RELAND.match(title):
            relands += 1
        elif _RELAND_MARK.search(title):
            title, relands = _RELAND_MARK.sub(" ", title).strip(), relands + 1
            continue
        else:
            return title, reverts, relands
        title = _NUMBER.sub("", match["title"]).strip().removesuffix('"')


def plain(title: str) -> str:
    """A title without what differs between a commit and what lands again."""
    return _NUMBER.sub("", unwrapped(title)[0]).strip().strip('"').casefold()


def number_of(title: str) -> str:
    """The number of the pull request that a title ends with, as `(#12)`; empty where there is none."""
    return "".join(_NUMBER.findall(title[:_LONGEST])).strip()
