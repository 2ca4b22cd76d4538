"""What the room raises on purpose.

SoonerError
└── WorkflowError           a workflow file that cannot be read, or edited as asked            (4)
    └── ByHandError         what is asked for is there, and nobody but a person can edit it   (4)
"""

from sooner.model.errors import SoonerError


class WorkflowError(SoonerError):
    """A workflow file that cannot be read, or cannot be edited as asked.

    Args:
        path: The file.
        problem: What is wrong, and what to do next.
        line: 1-based, 0 where unknown.
    """

    def __init__(self, path: str, problem: str, *, line: int = 0) -> None:
        self.path, self.problem, self.line = path, problem, line
        super().__init__(f"{path}:{line}: {problem}" if line else f"{path}: {problem}")


class ByHandError(WorkflowError):
    """The matrix is there, and what it means is more than what an edit of its rows would change."""
