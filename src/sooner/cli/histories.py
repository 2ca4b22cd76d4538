"""The history that a command reads."""

from pathlib import Path

from sooner.model.errors import UsageError


def history_at(root: str | None) -> str:
    """The history that was named, or the usual one.

    Raises:
        UsageError: It is not there.
    """
    from sooner.history.store import DEFAULT_ROOT

    place = root or DEFAULT_ROOT
    if "://" not in place and not Path(place).is_dir():
        raise UsageError(f"there is no history at {place}: `sooner ingest` makes one, or name it with --history")
    return place
