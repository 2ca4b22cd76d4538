"""Programs that a test writes into a file, and then starts: `script.write_text(...)`, `open(script, "w").write(...)`.

They are kept by the name of the file, which is what a command and the test agree upon.
"""

from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import MISSING, UNKNOWN, Args, Kwargs, Native, Text, Unknown, hard

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

FILE: Final = "file"
_TEMPORARY: Final = "/tmp/written-"  # noqa: S108 - a name, no file
_SUFFIXES: Final = (".py",)


def name_of_file(path: Any) -> str:
    """The last part of a path, where it is the name of a program of Python's; empty where it is not."""
    path = hard(path)
    tail = path.pieces[-1] if isinstance(path, Text) and path.pieces else path
    last = tail.rpartition("/")[2] if isinstance(tail, str) else ""
    return last if last.endswith(_SUFFIXES) else ""


def write(machine: "Machine", path: Any, text: Any, *, more: bool = False) -> None:
    """Remember what is written into a file; of what is not known, that it is not."""
    name, text = name_of_file(path), hard(text)
    if not name:
        return
    written = machine.written.get(name, "") if more else ""
    if isinstance(text, Text):
        text = "".join("_" if each is None else each for each in text.pieces)  # as of `python -c`: a name
    is_known = isinstance(text, str) and isinstance(written, str)
    machine.written[name] = f"{written}{text}" if is_known else UNKNOWN


def program_in(machine: "Machine", words: list[Any]) -> str | None:
    """The text of the program that a command names and the test has written, or None."""
    for word in words:
        text = machine.written.get(name_of_file(word)) if machine.written else None
        if isinstance(text, str):
            return text
    return None


class File(Unknown):
    """A file that is open for writing: what is written into it is its text."""

    __slots__ = ("name",)

    def __init__(self, name: Any) -> None:
        super().__init__(FILE)
        self.name = name

    def attribute(self, machine: "Machine", name: str) -> Any:
        """Its name, and what writes; of anything else nothing is known."""
        if name == "name":
            return self.name

        def written(args: Args, _kwargs: Kwargs) -> Any:
            write(machine, self.name, args[0] if args else UNKNOWN, more=True)
            return UNKNOWN

        if name == "write":
            return Native("write", written)
        return self if name == "__enter__" else Unknown(f"{FILE}.{name}")


def opened_to_write(machine: "Machine", path: Any, mode: Any) -> Any:
    """`open(path, "w")`."""
    if not name_of_file(path) or not isinstance(mode, str) or not set(mode) & set("wax"):
        return UNKNOWN
    if "a" not in mode:
        machine.written.pop(name_of_file(path), None)
    return File(path)


def temporary(machine: "Machine", _args: Args, kwargs: Kwargs) -> Any:
    """`tempfile.NamedTemporaryFile(suffix=".py")`: each has a name of its own."""
    suffix = hard(kwargs.get("suffix"))
    if suffix not in _SUFFIXES:
        return Unknown("tempfile.NamedTemporaryFile()")
    return File(f"{_TEMPORARY}{len(machine.written)}{suffix}")


def writing(machine: "Machine", path: Text, name: str) -> Any:
    """`path.write_text(text)`; MISSING for other attributes, and of files that are no programs."""
    if name != "write_text" or not name_of_file(path):
        return MISSING

    def written(args: Args, kwargs: Kwargs) -> Any:
        write(machine, path, args[0] if args else kwargs.get("data", UNKNOWN))
        return Unknown("written")

    return Native(name, written)
