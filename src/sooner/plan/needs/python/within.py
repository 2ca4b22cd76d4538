"""What a test has the standard library run in its own process: `runpy`, `timeit`, `cProfile`."""

from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import UNKNOWN, Args, Env, Function, Kwargs, Mod, Unknown, hard
from sooner.plan.needs.processes.launchers import run_alone
from sooner.plan.needs.python.code_texts import run_code

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine


def _run_path(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`runpy.run_path(path)`: as `python path` does, without another process.

    Raises:
        Raised: The file fails, for lack of a device.
    """
    return _run(machine, [hard(kwargs.get("path_name", args[0] if args else UNKNOWN))])


def _run_module(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`runpy.run_module(name)`: as `python -m name` does.

    Raises:
        Raised: It fails, for lack of a device.
    """
    return _run(machine, ["-m", hard(kwargs.get("mod_name", args[0] if args else UNKNOWN))])


def _run(machine: "Machine", words: list[Any]) -> Any:
    machine.trace.may_be_made |= not run_alone(machine, ["python", *words])
    return Unknown("runpy")


def _other_tests(machine: "Machine", _args: Args, _kwargs: Kwargs) -> Any:
    """`pytest.main([...])`: what these tests do is not followed."""
    machine.trace.may_be_made |= not machine.loading
    return UNKNOWN


def _timed(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`timeit.timeit(statement, setup, ..., globals)` and timers, which are made to be run: it is run once.

    Raises:
        Raised, Skip: As the statement does.
    """
    statement = hard(kwargs.get("stmt", args[0] if args else "pass"))
    texts = [hard(kwargs.get("setup", args[1] if len(args) > 1 else "pass")), statement]
    names = hard(kwargs.get("globals"))
    inside = Env(Mod("<timed>", ""), None, names if isinstance(names, dict) else {})
    for each in texts:
        if isinstance(each, str):
            run_code(machine, "exec", [each], inside)
        else:
            machine.call(each, [], {})
    return Unknown("timer")


def _profiled(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`cProfile.runctx(text, globals, locals)`: it is run.

    Raises:
        Raised, Skip: As the text does.
    """
    del kwargs
    return run_code(machine, "exec", args, Env(Mod("<profiled>", ""), None, {}))


WITHIN: Final[dict[str, Function]] = {
    "runpy.run_path": _run_path, "runpy.run_module": _run_module, "pytest.main": _other_tests,
    "timeit.timeit": _timed, "timeit.repeat": _timed,
    "timeit.Timer": _timed, "torch.utils.benchmark.Timer": _timed, "cProfile.runctx": _profiled,
    "profile.runctx": _profiled,
}  # fmt: skip
