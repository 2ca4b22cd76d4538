"""Generators of the tests: nothing of one is done before somebody asks for an item, and no more than is asked for.

What is made while a module is imported, or by the library under test, is asked for all where it is made.
"""

import ast
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from sooner.plan.needs.evaluator.lazy_values import Generator, NotKnownError, Turns
from sooner.plan.needs.evaluator.suspending import AROUND, Rest, Suspended, go_on
from sooner.plan.needs.evaluator.values import (
    MISSING,
    Args,
    Bound,
    Cls,
    Env,
    Frame,
    Func,
    Inst,
    Kwargs,
    Native,
    Raised,
    Return,
    Skip,
    Unknown,
    hard,
)
from sooner.plan.needs.evaluator.ways import doubt_what_follows
from sooner.plan.needs.evaluator.wrapping import work_of
from sooner.plan.needs.syntax import kept

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_MOST_TURNS: Final = 64
"""Of what has a method `__next__`, and may have no end."""
_EAGER: Final = (AROUND, "pytestmark", "__fixture__", "__contextmanager__")
"""Attributes of functions of which more than the body is done when they are called."""
_ASKING: Final = frozenset(("next", "iter", "any", "all", "zip", "enumerate", "map", "filter", "bool", "isinstance"))
"""Builtins that ask a generator for no more than they need."""
_ASKING_OUTSIDE: Final = ("itertools.chain", "itertools.chain.from_iterable", "itertools.islice", "itertools.takewhile")


def is_lazy(machine: "Machine", func: Func) -> bool:
    """Whether what a function does is done as far as its items are asked for."""
    if not func.is_generator or machine.loading or machine.quiet or func.module.is_model:
        return False
    return not any(each in func.attrs for each in _EAGER)


def generator_of(machine: "Machine", func: Func, args: Args, kwargs: Kwargs) -> Generator:
    """What calling a generator function gives."""
    if not func.module.is_test_code:
        return Generator(machine, iter(()), lambda: machine.call_function(func, args, kwargs))
    env = Env(func.module, func.env)
    env.frame = frame = Frame(func.owner, args[0] if args else None)
    machine.bind_arguments(func, args, kwargs, env)
    return Generator(machine, _turns_of_function(machine, func, env, [*args, *kwargs.values()]), frame=frame)


def _turns_of_function(machine: "Machine", func: Func, env: Env, given: list[Any]) -> Turns:
    """The turns of a generator, each with what it does before."""
    frame = cast("Frame", env.frame)
    frame.stops_at_yield = _yields_plainly(func.node)
    body = cast("ast.FunctionDef", func.node).body
    more: Callable[[], None] = partial(machine.run, body, env)
    while True:
        frame.yielded, frame.forks = [], machine.forks
        end: Exception | None = None
        rest: list[Rest] | None = None
        try:
            _step(machine, func, frame, given, more)
        except Suspended as stop:
            rest = stop.rest
        except (Return, Raised, Skip) as stop:
            end = stop
        perhaps = machine.added.places(frame.yielded)
        frame.sent = frame.raised = None
        yield from [(value, place in perhaps) for place, value in enumerate(frame.yielded)]
        if rest is None:
            frame.sent = end.value if isinstance(end, Return) else None
            if end is not None and not isinstance(end, Return):
                raise end
            return
        more = partial(_more, rest, frame)


def _more(rest: list[Rest], frame: Frame) -> None:
    raised, frame.raised = frame.raised, None
    go_on(rest, raised)


def _step(machine: "Machine", func: Func, frame: Frame, given: list[Any], more: Callable[[], None]) -> None:
    """Go on with a generator up to its next `yield`, wherever it is asked."""
    around, working = machine.under_way.get(work_of(func)), machine.working
    machine.under_way[work_of(func)], machine.working = given, func.module.path
    machine.depth += 1
    try:
        with machine.as_the_tests(func.module):
            more()
    finally:
        doubt_what_follows(machine, frame.may_have_left)
        machine.depth -= 1
        machine.working = working
        if around is None:
            machine.under_way.pop(work_of(func), None)
        else:
            machine.under_way[work_of(func)] = around


def expression_of(
    machine: "Machine", node: ast.GeneratorExp, env: Env, several: Any, at_once: Callable[[], Any]
) -> Any:
    """What a generator expression gives, as far as it is asked.

    Args:
        machine: Evaluates.
        node: The expression.
        env: Where it stands.
        several: What its first `for` goes through.
        at_once: Gives all of it, where that is known.
    """
    if not isinstance(several, Generator) and machine.items_of(several) is None:
        return at_once()
    inner = Env(env.module, env)
    inner.frame, inner.is_inner = env.frame, True
    values = _each(machine, node.elt, node.generators, inner, several)
    return Generator(machine, _turns_of_expression(machine, values, env, at_once), at_once)


def _turns_of_expression(machine: "Machine", values: Iterator[Any], env: Env, at_once: Callable[[], Any]) -> Turns:
    place = 0
    while True:
        try:
            with machine.as_the_tests(env.module):
                found = next(values, MISSING)
        except NotKnownError:
            every = hard(at_once())
            if not isinstance(every, list):
                raise NotKnownError(every) from None
            yield from ((each, False) for each in every[place:])
            return
        if found is MISSING:
            return
        place += 1
        yield found, False


def _each(
    machine: "Machine", element: ast.expr, generators: list[ast.comprehension], env: Env, several: Any
) -> Iterator[Any]:
    first, rest = generators[0], generators[1:]
    values = several.values(machine) if isinstance(several, Generator) else machine.items_of(several)
    if values is None:
        raise NotKnownError
    has_turned = False
    for value in values:
        has_turned = True
        machine.bind(first.target, value, env)
        truths = [machine.truth(machine.ev(each, env)) for each in first.ifs]
        if None in truths and not isinstance(hard(value), Unknown):
            raise NotKnownError
        machine.guesses += None in truths
        if False in truths:
            continue
        if rest:
            yield from _each(machine, element, rest, env, one_by_one(machine, machine.ev(rest[0].iter, env)))
        else:
            machine.turning.append(id(first))
            try:
                found = machine.ev(element, env)
            finally:
                machine.turning.pop()
            yield found
    if not has_turned:
        machine.trace.starts.without_a_turn.add(id(first))


@kept
def _yields_plainly(node: ast.AST) -> bool:
    """Whether each `yield` is a statement, or all that one binds."""
    inner = list(ast.walk(node))
    kinds = (ast.Yield, ast.YieldFrom)
    plain = [each for each in inner if isinstance(each, ast.Expr | ast.Assign) and isinstance(each.value, kinds)]
    return len(plain) == sum(isinstance(each, kinds) for each in inner)


def sent_to(env: Env) -> Any:
    """What `yield` gives to the function around."""
    scope: Env | None = env
    while scope is not None and scope.frame is None:
        scope = scope.parent
    return None if scope is None or scope.frame is None else scope.frame.sent


def one_by_one(machine: "Machine", value: Any) -> Any:
    """Something that gives its items one after the other, as that; anything else as it is."""
    inner = hard(value)
    if not isinstance(inner, Inst) or machine.loading or machine.quiet:
        return inner if isinstance(inner, Generator) else value
    name = next((each for each in ("__iter__", "__aiter__") if isinstance(inner.cls.find(each), Func)), None)
    if name is None:
        return value
    made = hard(machine.call_lazily(Bound(inner.cls.find(name), inner), [], {}))
    if isinstance(made, Inst) and isinstance(made.cls.find("__next__"), Func):
        return Generator(machine, _turns_by_method(machine, made))
    return made


def _turns_by_method(machine: "Machine", value: Inst) -> Turns:
    for _ in range(_MOST_TURNS):
        try:
            found = machine.special(value, "__next__")
        except Raised as raised:
            if raised.kind != "StopIteration":
                raise
            return
        yield found, False


def asked_for(machine: "Machine", func: Any, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
    """What something is called with: generators among it are asked for all, unless the tests' own code asks itself."""
    if not machine.has_lazy or _asks_itself(func):
        return args, kwargs
    return [_whole(machine, each) for each in args], {name: _whole(machine, each) for name, each in kwargs.items()}


def _asks_itself(func: Any) -> bool:
    if isinstance(func, Native):
        return func.name in _ASKING
    if isinstance(func, Func | Cls):
        return func.module.is_test_code
    return getattr(func, "path", "") in _ASKING_OUTSIDE


def _whole(machine: "Machine", value: Any) -> Any:
    value = value.whole(machine) if isinstance(value, Generator) else value
    if isinstance(value, Inst):
        kept = {name: each for name, each in value.attrs.items() if isinstance(each, Generator)}
        value.attrs.update({name: each.whole(machine) for name, each in kept.items()})
    elif type(value) in (list, tuple) and any(isinstance(each, Generator) for each in value):
        return type(value)(_whole(machine, each) for each in value)
    return value
