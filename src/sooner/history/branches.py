"""Which branch is the trunk, and which attempts were about a change that had not landed. Pure."""

import re
from collections.abc import Mapping
from typing import Final

from sooner.history.reading import Array, Columns

TRUNKS: Final = ("main", "master", "trunk", "develop")
"""Names of trunks, the likeliest first."""
_QUEUED: Final = re.compile(r"gh-readonly-queue/(.+)/pr-\d+-[0-9a-f]+")
"""A branch of GitHub's merge queue, which lands on another one as it is, if its jobs pass."""
OF_REQUESTS: Final = ("pull_request", "pull_request_target")
"""Events of changes that have not landed; a fork's branch may well be called `main`."""


def trunk_among(attempts: Mapping[str, int]) -> str:
    """The trunk among branches, of which it is known how many attempts ran on each; empty where none is known."""
    usual = next((name for name in TRUNKS if name in attempts), "")
    return usual or max(attempts, key=lambda name: attempts[name], default="")


def lands_on(branch: str) -> str:
    """The branch that a branch of a merge queue is for; any other branch itself."""
    found = _QUEUED.fullmatch(branch)
    return found[1] if found else branch


def of_requests(columns: Columns) -> Array:
    """Which attempts were about a change that had not landed, as flags; columns `event` and `pull_request`.

    The number alone tells only where no event is known: GitHub names with a push all requests *from* its branch.
    """
    codes, names = columns.text("event")
    numbers = columns.number("pull_request")
    found = (codes < 0) & (numbers == numbers)  # noqa: PLR0124 - what is not known is NaN
    for code, name in enumerate(names):
        if name in OF_REQUESTS:
            found |= codes == code
    return found
