"""Paths of files that a test names: its own file (`Path(__file__)`), and what stands beside it."""

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import MISSING, UNKNOWN, Args, Kwargs, Native, Text, Unknown, hard
from sooner.plan.needs.python.data_files import of_path

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_PATH: Final = "pathlib.Path()"
_SAME: Final = ("resolve", "absolute", "expanduser")
"""Methods after which a path still names the same file."""
_LAST: Final[dict[str, Callable[[str], str]]] = {
    "name": str,
    "basename": str,
    "suffix": lambda last: PurePosixPath(last).suffix,
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
        if (method := of_path(machine, self, name)) is not MISSING:
            return method
        if name in _SAME:
            return Native(name, lambda _args, _kwargs: self)
        if name == "joinpath":
            return Native(name, lambda args, _kwargs: _joined([self, *args]))
        whole = self.known()
        if name == "parents" and isinstance(whole, str):
            return [Located(["" if str(each) == "/" else str(each)]) for each in PurePosixPath(whole).parents]
        if name == "parts" and isinstance(whole, str):
            return PurePosixPath(whole).parts
        return self._of_last(name)

    def _of_last(self, name: str) -> Any:
        """What follows from the last part alone, which is known where the ones before it are not."""
        end = self.pieces[-1] or ""
        folder, sign, last = end.rpartition("/")
        if sign and name == "parent":
            return Located([*self.pieces[:-1], folder])
        if sign and name == "with_name":
            return Native(name, lambda args, _kwargs: _joined([Located([*self.pieces[:-1], folder]), *args]))
        if sign and last and name == "with_suffix":
            stem = Located([*self.pieces[:-1], end.removesuffix(PurePosixPath(last).suffix)])
            return Native(name, lambda args, _kwargs: _joined([stem, *args], between=""))
        is_whole = bool(sign) or len(self.pieces) == 1
        return _LAST[name](last) if is_whole and last and name in _LAST else Unknown(f"{_PATH}.{name}")


def path_of(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`pathlib.Path(...)`."""
    return _joined(args)


def package_files(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`importlib.resources.files("package")`."""
    package = hard(args[0]) if args else None
    place = machine.sources.module(package, machine.current[0]) if isinstance(package, str) else None
    return Located([f"/{PurePosixPath(place).parent}"]) if place else Unknown("importlib.resources.files()")


def beside(folder: Any, name: str) -> Text:
    """`folder / name`."""
    if isinstance(folder, Located):
        return Located(_merged([*folder.pieces, f"/{name}"]))
    return Located([*(folder.pieces if isinstance(folder, Text) else [None]), f"/{name}"])


def absolute(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`os.path.abspath(...)` and the like: of a path from the root, itself."""
    path = hard(args[0]) if args else UNKNOWN
    return path if isinstance(path, str) and path.startswith("/") else Unknown("path")


def _joined(parts: Args, between: str = "/") -> Any:
    pieces: list[str | None] = []
    for part in map(hard, parts):
        more = part.pieces if isinstance(part, Text) else [part if isinstance(part, str) else None]
        pieces = [*pieces, between, *more] if pieces else list(more)
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
