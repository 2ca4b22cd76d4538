"""`concurrent.futures`: an executor runs what it is given at once; what that raises is raised where it is asked for."""

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.lazy_values import Generator
from sooner.plan.needs.evaluator.raising import Caught
from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Args,
    Function,
    Kwargs,
    Native,
    Raised,
    Skip,
    Unknown,
    hard,
)

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_MOST_CALLS: Final = 64


class Future(Unknown):
    """What an executor gives for a function that it runs.

    Args:
        value: What that has given.
        failure: What it has raised.
    """

    __slots__ = ("_failure", "_value")

    def __init__(self, value: Any, failure: Raised | Skip | None) -> None:
        super().__init__("concurrent.futures.Future()")
        self._value, self._failure = value, failure

    def attribute(self, machine: "Machine", name: str) -> Any:
        """Its methods."""
        if name == "add_done_callback":
            return Native(name, lambda args, _kwargs: machine.call(args[0], [self], {}) if args else None)
        if name == "exception":
            return Native(name, lambda _args, _kwargs: self._raised(machine))
        known = {"done": True, "running": False, "cancel": False, "cancelled": False}
        if name in known:
            return Native(name, lambda _args, _kwargs: known[name])
        return Native(name, lambda _args, _kwargs: self.result(machine)) if name == "result" else MISSING

    def result(self, machine: "Machine") -> Any:
        """What its function has given.

        Raises:
            Raised, Skip: As the function did.
        """
        failure = self._raised(machine)
        if failure is not None:
            raise failure.raised
        return self._value

    def _raised(self, machine: "Machine") -> Caught | None:
        machine.trace.is_told |= machine.trace.is_unheard
        machine.trace.is_unheard = False
        return None if self._failure is None else Caught(self._failure)


class Executor(Unknown):
    """A pool of threads or processes.

    Args:
        of_processes: Whether it is one of processes.
    """

    __slots__ = ("_of_processes",)

    def __init__(self, *, of_processes: bool) -> None:
        super().__init__("concurrent.futures.Executor()")
        self._of_processes = of_processes

    def attribute(self, machine: "Machine", name: str) -> Any:
        """Its methods."""
        if name == "submit":
            return Native(name, lambda args, kwargs: self._submitted(machine, args, kwargs))
        if name == "map":
            return Native(name, lambda args, _kwargs: self._mapped(machine, args))
        return Native(name, lambda _args, _kwargs: None) if name == "shutdown" else MISSING

    def _submitted(self, machine: "Machine", args: Args, kwargs: Kwargs) -> Future:
        if self._of_processes:
            machine.trace.starts.in_loops.update(machine.turning)
        try:
            return Future(machine.call(args[0], args[1:], kwargs), None)
        except (Raised, Skip) as failure:
            machine.trace.is_unheard |= isinstance(failure, Raised) and failure.device
            return Future(UNKNOWN, failure)

    def _mapped(self, machine: "Machine", args: Args) -> Any:
        columns = [machine.items_of(each) for each in args[1:]]
        known = [each for each in columns if each is not None]
        if self._of_processes and [] in known:
            machine.started(0)
        if not known or len(known) < len(columns):
            return UNKNOWN
        rows = [*zip(*known, strict=False)][:_MOST_CALLS]
        futures = [self._submitted(machine, [args[0], *each], {}) for each in rows]
        return Generator(machine, ((each.result(machine), False) for each in futures))


def _executor(machine: "Machine", _args: Args, kwargs: Kwargs, *, of_processes: bool) -> Any:
    if machine.quiet or machine.loading:
        return Unknown("concurrent.futures.Executor()")
    if "initializer" in kwargs:
        given = machine.items_of(kwargs.get("initargs", ()))
        machine.call(kwargs["initializer"], given or [], {})
    return Executor(of_processes=of_processes)


def _all_done(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`wait(futures)`: those that are done, and those that are not."""
    found = _completed(machine, args, kwargs)
    return (found, []) if isinstance(found, list) else UNKNOWN


def _completed(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`as_completed(futures)`."""
    found = machine.items_of(args[0] if args else kwargs.get("fs", UNKNOWN))
    return UNKNOWN if found is None else found


_threads: Final = partial(_executor, of_processes=False)
_pool: Final = partial(_executor, of_processes=True)
FUTURES: Final[dict[str, Function]] = {
    "concurrent.futures.ThreadPoolExecutor": _threads, "concurrent.futures.ProcessPoolExecutor": _pool,
    "concurrent.futures.thread.ThreadPoolExecutor": _threads, "concurrent.futures.process.ProcessPoolExecutor": _pool,
    "concurrent.futures.wait": _all_done, "concurrent.futures.as_completed": _completed,
}  # fmt: skip


def ask_futures(machine: "Machine", args: Args, kwargs: Kwargs) -> None:
    """Who is not known and given futures may ask for their results.

    Raises:
        Raised, Skip: As their functions did.
    """
    for each in map(hard, (*args, *kwargs.values())):
        inside = each if type(each) in (list, tuple) else [each]
        for one in inside:
            if isinstance(one, Future):
                one.result(machine)
