"""What a test has the standard library run in its own process: `runpy`, `timeit`, `cProfile`, files by their paths."""

from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import UNKNOWN, Args, Env, Function, Kwargs, Mod, Text, Unknown, hard
from sooner.plan.needs.processes.launchers import run_alone, script_of_tree
from sooner.plan.needs.python.code_texts import run_code

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine


class FileSpec(Unknown):
    """What is known of a file that is to be imported: which one of the tree it is.

    Args:
        file: The file.
    """

    __slots__ = ("file",)

    def __init__(self, file: str) -> None:
        super().__init__("importlib.util.spec_from_file_location()")
        self.file = file


def _spec_of_file(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`importlib.util.spec_from_file_location(name, path)`."""
    path = hard(args[1] if len(args) > 1 else kwargs.get("location", kwargs.get("path", UNKNOWN)))
    whole = path.known() if isinstance(path, Text) else path
    is_known = isinstance(whole, str) or (isinstance(path, Text) and "/" in str(path.pieces[-1] or "").strip("/"))
    file = script_of_tree(machine, path) if is_known else None
    return Unknown("importlib.util.spec_from_file_location()") if file is None else FileSpec(file)


def _spec_of_loader(_machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`importlib.util.spec_from_loader(name, loader)`."""
    loader = hard(args[1] if len(args) > 1 else kwargs.get("loader", UNKNOWN))
    return loader if isinstance(loader, FileSpec) else Unknown("importlib.util.spec_from_loader()")


def _module_of_spec(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`importlib.util.module_from_spec(spec)`: the module; what one does of which the file is not known is not."""
    spec = hard(args[0]) if args else UNKNOWN
    if isinstance(spec, FileSpec):
        return machine.load(spec.file)
    machine.trace.may_be_made |= not machine.loading
    return Unknown("importlib.util.module_from_spec()")


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
    "importlib.util.spec_from_file_location": _spec_of_file, "importlib.util.spec_from_loader": _spec_of_loader,
    "importlib.machinery.SourceFileLoader": _spec_of_file, "importlib.util.module_from_spec": _module_of_spec,
    "runpy.run_path": _run_path, "runpy.run_module": _run_module, "pytest.main": _other_tests,
    "timeit.timeit": _timed, "timeit.repeat": _timed,
    "timeit.Timer": _timed, "torch.utils.benchmark.Timer": _timed, "cProfile.runctx": _profiled,
    "profile.runctx": _profiled,
}  # fmt: skip
