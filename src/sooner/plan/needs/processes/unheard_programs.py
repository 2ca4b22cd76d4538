"""Programs that may fail and nothing is raised (`subprocess.run(...)` without `check=True`)."""

from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import UNKNOWN, Args, Kwargs, Native, Raised, Wrapped
from sooner.plan.needs.processes.launchers import failed_process, launch

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_SAYING: Final = ("stdout", "stderr")


def launch_unheard(machine: "Machine", command: Any, environment: Any) -> Any:
    """As `launch` does it; where it lacks a device it gives a process that has failed, and the test goes on.

    Raises:
        Raised: There is no such program without a device.
    """
    try:
        return launch(machine, command, environment)
    except Raised as raised:
        if not raised.device or raised.kind == "FileNotFoundError" or machine.quiet:
            raise
    machine.trace.is_unheard = True
    process = failed_process(machine)

    def doubt(_args: Args, _kwargs: Kwargs) -> Any:
        """What it has said, before it failed, may be what the test asserts."""
        machine.trace.is_read = True
        return UNKNOWN

    process.cls.attrs |= {name: Wrapped("property", Native(name, doubt)) for name in _SAYING}
    return process
