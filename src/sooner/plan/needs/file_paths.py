"""Paths of files that a test names: its own file (`Path(__file__)`), and what stands beside it."""

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.values import MISSING, UNKNOWN, Args, Kwargs, Native, Text, Unknown, hard
from sooner.plan.needs.written_programs import writing

if TYPE_CHECKING:
    from sooner.plan.needs.machine import Machine

_PATH: Final = "pathlib.Path()"
_SAME: Final = ("resolve", "absolute", "expanduser")
"""Methods after which a path still names the same file."""
_LAST: Final[dict[str, Callable[[str], str]]] = {
    "name": str,
    "basename": str,
    "stem": lambda last: PurePosixPath(last).stem,
    "purebasename": lambda last: PurePosixPath(last).stem,
}
"""What the last part says, by names of `pathlib` and of `py.path`."""


class Located(Text):
    """A path, as far as its text is known."""

    __slots__ = ()

    def __init__(self, pieces: list[str | None]) -> None:
        super().__init__(pieces)
        self.path = _PATH

    def attribute(self, machine: "Machine", name: str) -> Any:
        """The same file, the folder around it, its name and its parts; of anything else nothing is known."""
        if name == "strpath":
            return self.known()
        if (writer := writing(machine, self, name)) is not MISSING:
            return writer
        if name in _SAME:
            return Native(name, lambda _args, _kwargs: self)
        if name == "joinpath":
            return Native(name, lambda args, _kwargs: _joined([self, *args]))
        folder, sign, last = (self.pieces[-1] or "").rpartition("/")
        if name == "parent" and sign:
            return Located([*self.pieces[:-1], folder])
        if name in _LAST and sign and last:
            return _LAST[name](last)
        if name == "parts" and isinstance(text := self.known(), str):
            return PurePosixPath(text).parts
        return Unknown(f"{_PATH}.{name}")


def path_of(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`pathlib.Path(...)`."""
    return _joined(args)


def beside(folder: Any, name: str) -> Text:
    """`folder / name`."""
    if isinstance(folder, Located):
        return Located(_merged([*folder.pieces, f"/{name}"]))
    return Located([*(folder.pieces if isinstance(folder, Text) else [None]), f"/{name}"])


def absolute(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`os.path.abspath(...)` and the like: of a path from the root, itself."""
    path = hard(args[0]) if args else UNKNOWN
    return path if isinstance(path, str) and path.startswith("/") else Unknown("path")


def _joined(parts: Args) -> Any:
    pieces: list[str | None] = []
    for part in map(hard, parts):
        more = part.pieces if isinstance(part, Text) else [part if isinstance(part, str) else None]
        pieces = [*pieces, "/", *more] if pieces else list(more)
    if not any(isinstance(each, str) and each != "/" for each in pieces):
        return Unknown(_PATH)
    return Located(_merged(pieces))


def _merged(pieces: list[str | None]) -> list[str | None]:
    merged: list[str | None] = []
    for piece in pieces:
        before = merged[-1] if merged else None
        if piece is not None and before is not None:
            merged[-1] = before + piece
        else:
            merged.append(piece)
    return merged
