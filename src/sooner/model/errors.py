"""The tree of errors that sooner raises on purpose; anything else that escapes is a bug (exit code 3).

SoonerError                 what, where, what next; carries its exit code
├── UsageError              options that make no sense together, unknown names            (4)
├── PlanError               a plan that cannot be run: where (file, line, key) and why    (4)
│   └── NotEnoughDevices    a unit needs more devices than there are                      (4)
├── SettingsError           a configuration value that cannot be used                     (4)
├── DevicesError            the devices that were asked for cannot be used                (4)
├── RunFolderError          a run folder that is missing, in use or unreadable            (4)
├── HistoryError            a history that cannot be read or written (history/errors.py)  (4)
├── QuarantineError         a quarantine file that cannot be used (model/quarantine.py)   (4)
└── SupervisionError        the guardian process cannot be started                        (11)
"""

from typing import Final

from sooner.model.outcomes import ExitCode

REFUSALS: Final = {
    **dict.fromkeys(("No space left on device", "Disk quota exceeded", "File too large"), "make room"),
    "Read-only file system": "name another place, or make this one writable,",
    **dict.fromkeys(
        ("Too many open files in system", "Too many open files"), "raise the limit of open files (ulimit -n)"
    ),
}
"""What the system says when a disk or a table of the machine is full or closed, which is no bug of ours; what to do."""


class SoonerError(Exception):
    """An error that says what is wrong, where, and what to do next."""

    exit_code = ExitCode.USAGE


class UsageError(SoonerError):
    """Options or arguments that cannot be used together."""


class SettingsError(SoonerError):
    """A configuration value that is unknown or has the wrong type."""


class PlanError(SoonerError):
    """A plan that cannot be run.

    Args:
        problem: What is wrong, in a sentence without its place.
        source: The file, or what else the plan was read from.
        line: 1-based line, 0 where unknown.
        key: Path of the key, for instance `unit[3].devices`; empty where none is to blame.
        hint: What to do next.
    """

    def __init__(self, problem: str, *, source: str, line: int = 0, key: str = "", hint: str = "") -> None:
        self.problem = problem
        self.source = source
        self.line = line
        self.key = key
        self.hint = hint
        super().__init__(self._text())

    def _text(self) -> str:
        place = f"{self.source}:{self.line}" if self.line else self.source
        key = f"{self.key}: " if self.key else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}: {key}{self.problem}{hint}"


class NotEnoughDevices(PlanError):  # noqa: N818 - the name of the thing that happened reads better than ...Error
    """A unit needs more devices, or more memory on one, than this machine can give."""

    def __init__(
        self, unit: str, *, needed: int, present: int, nodes: int = 1, source: str, line: int, key: str
    ) -> None:
        self.unit = unit
        self.needed = needed
        self.present = present
        what = "MiB of device memory" if key.endswith("memory_mib") else "devices"
        there = f"no node of this run has more than {present}" if nodes > 1 else f"this run has {present}"
        super().__init__(
            f"{unit!r} needs {needed} {what}, {there}",
            source=source,
            line=line,
            key=key,
            hint="pass --on-missing=hole to run the rest and report it as a coverage hole, or give more --devices",
        )


class DevicesError(SoonerError):
    """Devices that were asked for do not exist, are masked, or cannot be read."""


class RunFolderError(SoonerError):
    """A run folder that is missing, in use by a live run, or unreadable."""


class SupervisionError(SoonerError):
    """The process that supervises units could not be started or was lost for good."""

    exit_code = ExitCode.INFRASTRUCTURE
