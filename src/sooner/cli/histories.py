"""The history that a command reads."""

import time
from pathlib import Path
from typing import Final

from sooner.model.errors import UsageError

_TELL_OF_COMMITS: Final = ("jobs", "tests", "commits")
"""Tables of what happened on commits; a selection that was recorded today is no news of the trunk."""


def history_at(root: str | None) -> str:
    """The history that was named, or the usual one.

    Raises:
        UsageError: It is not there, or its name is empty: whoever names one wants no other.
    """
    from sooner.history.store import DEFAULT_ROOT

    if root == "":
        raise UsageError("--history is empty, as a variable that is not set leaves it: name one, or leave it away")
    place = DEFAULT_ROOT if root is None else root
    if "://" not in place and not Path(place).is_dir():
        raise UsageError(f"there is no history at {place}: `sooner ingest` makes one, or name it with --history")
    return place


def when_it_ends(root: str) -> str:
    """How to go on where a history has nothing of the time that was asked for: when its newest record is of."""
    from sooner.history import History

    with History(root) as history:
        tables = history.info()
        last = max((at for name in _TELL_OF_COMMITS if (at := tables[name].last) is not None), default=None)
    if last is None:
        return "it has nothing at all: `sooner ingest` fills it"
    ends = time.strftime("%Y-%m-%d %H:%M", time.gmtime(last))
    return f"its newest record is of {ends} UTC; --since and --until say which time"
