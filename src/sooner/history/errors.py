"""What the history raises on purpose.

SoonerError
└── HistoryError            a history that cannot be read or written                      (4)
    ├── IngestError         a source that cannot be taken in, or a bad row under --strict  (4)
    │   └── Gone            what a server was asked for is not there                       (4)
    └── NotWritable         the history's folder cannot be written                         (4)
"""

from sooner.model.errors import SoonerError


class HistoryError(SoonerError):
    """A history folder, or a file in it, that cannot be read or written."""


class IngestError(HistoryError):
    """A source that cannot be taken in.

    Args:
        path: The source.
        problem: What is wrong with it, and what to do next.
        line: 1-based line (or index of the item), 0 where unknown.
    """

    def __init__(self, path: str, problem: str, *, line: int = 0) -> None:
        self.path = path
        self.line = line
        super().__init__(f"{path}:{line}: {problem}" if line else f"{path}: {problem}")


class Gone(IngestError):  # noqa: N818 - what it is
    """What a server was asked for is not there, or not any more."""


class NotWritable(HistoryError):  # noqa: N818 - what the folder is
    """The folder of a history cannot be written."""
