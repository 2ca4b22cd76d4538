"""Functions of the tests that are given to something outside that nobody knows: launchers run them on ranks."""

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Args,
    Bound,
    Func,
    Kwargs,
    Native,
    Partial,
    Raised,
    Unknown,
    hard,
)

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_LAUNCHING: Final = re.compile(
    r"spawn|launch|distribut|multi_?proc|(^|_)(ranks?|workers)(_|$)|parallel|subprocess", re.IGNORECASE
)
_COUNTS: Final = (
    "nprocs",
    "nproc",
    "world_size",
    "num_processes",
    "nproc_per_node",
    "num_procs",
    "n_procs",
    "num_ranks",
)
_KNOWN: Final = re.compile(
    r"(asyncio|atexit|builtins|collections|concurrent|contextlib|copyreg|dataclasses|functools|gc|inspect|itertools|json"
    r"|multiprocessing|operator|re|signal|subprocess|threading|time|timeit|types|typing|unittest|weakref"
    r"|absl|deepspeed|flax|hypothesis|mock|np|pandas|parameterized|scipy|torchvision)(\.|$)"
)
"""Of the standard library and others: what they do with a function rules say, or it is not run for the test."""
_HOOKS: Final = re.compile(r"register_\w*hook|step|then|add_done_callback|map_|apply_")
"""Methods of modules, tensors, optimizers and futures that call what they are given, now or when the time has come."""
_MOST_RANKS: Final = 1024
TRACED: Final = "__traced__"
"""Among a function's attributes: nobody knows how often it is run when it is called."""


def call_back(machine: "Machine", path: str, args: Args, kwargs: Kwargs) -> bool:
    """Run what an unknown callable was given to run; whether there was anything.

    Args:
        machine: Evaluates.
        path: The callable's dotted name.
        args: What it is called with, positions.
        kwargs: And names.

    Raises:
        Raised: A device is missing.
        Skip: A function skips the test.
    """
    functions = [each for each in (*args, *kwargs.values()) if is_of_tests(each)]
    last = path.rpartition(".")[2]
    if functions and not machine.loading and "." in path and _HOOKS.fullmatch(last):
        _run_once(machine, functions, kwargs)
        return True
    if not functions or machine.loading or _KNOWN.match(path) or machine.rules.is_outside(path):
        return False
    if not _LAUNCHING.search(last):
        is_run = "()" not in path and (len(args) + len(kwargs) > 1 or functions[0].name == "<lambda>")
        if is_run:
            _run_once(machine, functions, kwargs)
        return is_run
    count = _count(args, kwargs)
    given = hard(kwargs.get("args"))
    places = given if isinstance(given, tuple | list) else [each for each in args if hard(each) != count]
    rest = [each for each in places if not is_of_tests(each)]
    for function in functions:
        if count is None:
            _run_once(machine, [function], kwargs)
        else:
            _on_ranks(machine, function, count, rest, kwargs)
    return True


def launched_through(machine: "Machine", path: str, args: Args, kwargs: Kwargs) -> bool:
    """Whether a function of the library under test is a launcher that is given a function of the tests: that is run.

    Raises:
        Raised, Skip: As the function does; NCCL wants a device for each rank.
    """
    count = _count(args, kwargs)
    is_launcher = bool(_LAUNCHING.search(path.rpartition(".")[2]))
    if count is None or not is_launcher or machine.loading or not any(map(is_of_tests, (*args, *kwargs.values()))):
        return False
    if hard(kwargs.get("backend")) == "nccl":
        machine.need(count, "NCCL uses a device for each rank")
    return call_back(machine, path, args, kwargs)


def traced(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`tf.function`: a function is run when it is traced, once or more often, and its lists grow as often."""
    if args and isinstance(args[0], Func):
        args[0].attrs[TRACED] = True
        return args[0]
    return Native("tf.function", lambda given, _names: traced(machine, given, {})) if not args else UNKNOWN


_EXECUTORS: Final = {
    "run_in_executor": 1,
    "to_thread": 0,
    "submit": 0,
    "run_sync": 0,
    "apply": 0,
    "_apply": 0,
    "apply_async": 0,
    "runcall": 0,
}
"""Calls that run a function elsewhere and wait for it, and where among their arguments it stands."""


_MAPS: Final = ("map", "starmap", "imap", "imap_unordered", "map_async", "starmap_async")
"""Calls that run a function for each of some items, elsewhere."""
_MOST_CALLS: Final = 64


def executed(machine: "Machine", path: str, args: Args, kwargs: Kwargs) -> Any:
    """What an executor's function gives (`loop.run_in_executor(None, f, x)`, `pool.submit(f, x)`); MISSING if none.

    Args:
        machine: Evaluates.
        path: The callable's dotted name.
        args: What it is called with, positions.
        kwargs: And names.

    Raises:
        Raised, Skip: As the function does.
    """
    last = path.rpartition(".")[2]
    if last in _MAPS and not machine.loading:
        return _mapped(machine, last, args)
    place = _EXECUTORS.get(last)
    if place is None or machine.loading:
        return MISSING
    function = kwargs.get("func", args[place] if len(args) > place else None)
    if not isinstance(function, Bound) and not is_of_tests(function):
        return MISSING
    rest, names = (
        list(args[place + 1 :]),
        {key: each for key, each in kwargs.items() if key not in ("func", "executor")},
    )
    if last.lstrip("_").startswith("apply"):
        given = names.get("args", rest[0] if rest else ())
        named = names.get("kwds", rest[1] if len(rest) > 1 else {})
        rest, names = machine.items_of(given) or [], named if isinstance(named, dict) else {}
    if isinstance(function, Func) and not rest and not names:  # a module gives its parts to what it is given
        result = _call(machine, function, [Unknown(f"{path.rpartition('.')[0]}.part")], {}, None)
    else:
        result = machine.call(function, rest, names)
    return UNKNOWN if last in ("submit", "apply_async") else result


def _mapped(machine: "Machine", name: str, args: Args) -> Any:
    """A function for each item (`pool.map(f, items)`, `pool.starmap(f, pairs)`); MISSING where these are not known."""
    lists = [each for each in map(machine.items_of, args[1:]) if each is not None]
    function = args[0].func if args and isinstance(args[0], Partial) else args[0] if args else None
    if not (is_of_tests(function) or isinstance(function, Bound)) or not lists:
        return MISSING
    is_star = name.startswith("starmap")
    calls = [machine.items_of(each) or [] for each in lists[0]] if is_star else zip(*lists, strict=False)
    results = [machine.call(args[0], list(each), {}) for each in islice(calls, _MOST_CALLS)]
    return UNKNOWN if name.endswith("_async") else results


def is_of_tests(value: Any) -> bool:
    """Whether something is a function that the tests have written."""
    return isinstance(value, Func) and value.module.is_test_code


def _count(args: Args, kwargs: Kwargs) -> int | None:
    """How many ranks are asked for: by name, else the first number."""
    named = [hard(kwargs[name]) for name in _COUNTS if name in kwargs]
    for each in named or map(hard, args):
        if isinstance(each, int) and not isinstance(each, bool) and 0 < each <= _MOST_RANKS:
            return each
    return None


def in_ranks_told(machine: "Machine", test: Func, kwargs: Kwargs) -> Func:
    """What a decorator makes of a test that nobody knows, and that is told by name how many processes it starts."""
    count = _count([], kwargs)
    if count is None:
        return test

    def doubt(_args: Args, _kwargs: Kwargs) -> None:
        machine.guesses += 1

    in_so_many = machine.load_model("sooner.decorators").env.names["in_so_many"]
    made = machine.call(in_so_many, [count, test, Native("doubt", doubt)], {})
    return made if isinstance(made, Func) else test


def _on_ranks(machine: "Machine", function: Func, count: int, rest: Args, kwargs: Kwargs) -> None:
    spawn = machine.load_model("torch.multiprocessing").env.names["spawn"]
    worker = Native("worker", lambda given, _names: _call(machine, function, [given[0], *rest], kwargs, count))
    machine.guesses += 1
    machine.call(spawn, [worker], {"nprocs": count})


def _run_once(machine: "Machine", functions: list[Func], kwargs: Kwargs) -> None:
    for function in functions:
        try:
            _call(machine, function, [], kwargs, None)
        except Raised as raised:
            if raised.device:
                raise


def _call(machine: "Machine", function: Func, given: Args, kwargs: Kwargs, count: int | None) -> Any:
    """A function with what it asks for by name, else by place; the rest is unknown."""
    spec = function.node.args
    names = [each.arg for each in (*spec.posonlyargs, *spec.args)]
    asked = names[: len(names) - len(spec.defaults)] if spec.defaults else names
    values = {name: kwargs[name] for name in (*names, *(each.arg for each in spec.kwonlyargs)) if name in kwargs}
    if count is not None:
        values |= {name: count for name in _COUNTS if name in names}
    places = iter(given)
    for name in asked:
        if name not in values:
            values[name] = next(places, UNKNOWN)
    return machine.call(function, [], values)
