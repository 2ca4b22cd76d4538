"""Statements. Where a condition is not known, both branches are followed.

A branch that only stops the test (skips it, fails, raises) under an unknown condition is taken as not met: the machine
that a need is asked for is one that has everything but devices. The trace keeps that it was so.
"""

import ast
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final, cast

from sooner.plan.needs.evaluator.generators import sent_to
from sooner.plan.needs.evaluator.looping import Looping
from sooner.plan.needs.evaluator.slots import End, Slots
from sooner.plan.needs.evaluator.suspending import Stop, Suspended, resumed
from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    AnyOf,
    Env,
    Ext,
    Loop,
    Mark,
    OneOf,
    OutOfFuel,
    Raised,
    Return,
    Skip,
    Soft,
    hard,
)
from sooner.plan.needs.evaluator.ways import Ways, extent
from sooner.plan.needs.frameworks.given_devices import MOVERS
from sooner.plan.needs.frameworks.named_devices import one_of_several
from sooner.plan.needs.frameworks.refusals import is_assertion
from sooner.plan.needs.testing.testing_names import (
    as_raised,
    by_default,
    is_awaiting,
    is_refused_unrun,
    is_sure_to_skip,
)

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_LONGEST_LIST: Final = 10_000


class Statements(Looping):
    """The part of the machine that executes statements."""

    def run(self, body: Sequence[ast.stmt], env: Env) -> None:
        """Execute statements in order.

        Raises:
            Raised, Skip, Return, Loop: As the statements do.
        """
        for index, node in enumerate(body):
            self.fuel -= 1
            if self.fuel < 0:
                raise OutOfFuel
            method = _DISPATCH.get(type(node))
            if method is None:
                continue
            try:
                method(self, node, env)
            except Raised as raised:
                if not raised.path:
                    raised.path, raised.line = self.place(env, node)
                if raised.device or not self.is_ignored(raised.path, raised.line):
                    raise
            except Suspended as stop:
                stop.rest.append(partial(self._go_on, node, body[index + 1 :], env))
                raise

    def _go_on(self, node: ast.stmt, body: Sequence[ast.stmt], env: Env, stop: Stop) -> None:
        """What follows a statement that yields, in its block."""
        if stop is not None:
            raise stop
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Yield | ast.YieldFrom):
            for target in node.targets:
                self.bind(target, sent_to(env), env)
        self.run(body, env)

    # What the other parts of the machine provide.

    @abstractmethod
    def define_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, env: Env) -> None:
        """A `def`."""

    @abstractmethod
    def define_class(self, node: ast.ClassDef, env: Env) -> None:
        """A `class`."""

    @abstractmethod
    def import_module(self, node: ast.Import, env: Env) -> None:
        """An `import`."""

    @abstractmethod
    def import_names(self, node: ast.ImportFrom, env: Env) -> None:
        """A `from ... import`."""

    @abstractmethod
    def entered(self, value: Any, env: Env, node: ast.AST) -> tuple[Any, Callable[[Raised | None], bool]]:
        """What `with value as x` gives, and what ends it (True: the exception is swallowed)."""

    @abstractmethod
    def called_alone(self, value: Any, node: ast.Call) -> None:
        """A call that is a statement, and what it gave."""

    @abstractmethod
    def redefined(self, node: ast.Assign, env: Env) -> Any:
        """What `f = decorator(f)` makes of a function or class; MISSING for any other assignment."""

    # One method a kind of statement.

    def _do_expr(self, node: ast.Expr, env: Env) -> None:
        value = self.ev(node.value, env)
        if isinstance(node.value, ast.Call):
            self.called_alone(value, node.value)

    def made(self, node: ast.expr, env: Env) -> Any:
        """What is made to be kept: a mesh is not used yet."""
        return self._ev_call(node, env) if type(node) is ast.Call else self.ev(node, env)

    def _do_assign(self, node: ast.Assign, env: Env) -> None:
        value = self.redefined(node, env)
        if value is MISSING:
            value = self.made(node.value, env)
        for target in node.targets:
            self.bind(target, value, env)

    def _do_annassign(self, node: ast.AnnAssign, env: Env) -> None:
        if node.value is not None:
            self.bind(node.target, self.made(node.value, env), env)
        elif isinstance(node.target, ast.Name) and "__fields__" in env.names:
            env.names["__fields__"].append(node.target.id)

    def _do_augassign(self, node: ast.AugAssign, env: Env) -> None:
        load = _loading(node.target)
        old, new = self.ev(load, env), self.ev(node.value, env)
        if isinstance(old, list) and isinstance(node.op, ast.Add):
            more = self.items_of(new)
            self.about_to_change(old)
            old.extend(more if more is not None and len(old) < _LONGEST_LIST else [UNKNOWN])
            return
        if isinstance(old, Ext) and old.path == "os.environ":
            self.call(Ext("os.environ.update"), [new], {})
            return
        self.bind(node.target, self.binary(type(node.op), old, new, in_place=True), env)

    def _do_delete(self, node: ast.Delete, env: Env) -> None:
        for target in node.targets:
            self.unbind(target, env)

    def _do_return(self, node: ast.Return, env: Env) -> None:
        raise Return(None if node.value is None else self.made(node.value, env))

    def _do_if(self, node: ast.If, env: Env) -> None:
        self.note_rank(node.test)
        condition = self.ev(node.test, env)
        truth = self.truth(condition)
        if truth is None and is_assertion(node):
            return  # believed, as an `assert` is
        if truth is None:
            self.fork([node.body, node.orelse], env)
        elif isinstance(condition, Soft):
            self.softly(node.body if truth else node.orelse, env)
        else:
            self.run(node.body if truth else node.orelse, env)

    def softly(self, body: Sequence[ast.stmt], env: Env) -> None:
        """Execute what holds by default: a skip in it is one that somebody can switch off."""
        inside = _in_function(env)  # in a class or a module others may stand there, which skip for reasons of their own
        self.defaults += inside
        try:
            self.run(body, env)
        except Skip as skip:
            if self.is_ignored(skip.path, skip.line):
                return
            skip.soft = True
            raise
        except Raised as raised:
            raised.soft = True
            raise
        except Return as result:
            made = result.value
            if isinstance(made, Mark) and is_sure_to_skip(made.name, made.args):
                result.value = by_default(made)
            raise
        finally:
            self.defaults -= inside

    def fork(self, bodies: Sequence[Sequence[ast.stmt]], env: Env) -> None:
        """Follow all branches; go on with what those that do not stop have in common."""
        before, around = dict(env.names), self.slots
        self.slots = slots = Slots()
        falls: list[dict[str, Any]] = []
        returns: list[Return] = []
        loops: list[Loop] = []
        left: list[dict[str, Any]] = []
        stops: list[Skip | Raised] = []
        inside = _in_function(env)
        making = _Making(cast("Machine", self))
        self.forks += inside
        self.doubts += not inside
        try:
            for body in bodies:
                env.names.clear()
                env.names.update(before)
                end = End.LEAVES
                try:
                    making.run(body, env)
                    falls.append(dict(env.names))
                    end = End.FALLS
                except Return as result:
                    returns.append(result)
                except Loop as loop:
                    loops.append(loop)
                    left.append(dict(env.names))
                except (Skip, Raised) as stop:
                    stops.append(stop)
                    end = End.STOPS
                slots.end(end)
        finally:
            self.slots = around
            self.forks -= inside
            self.doubts -= not inside
            making.conclude()
        if stops and (falls or returns or loops):
            self.guesses += 1
            self.trace.doubted |= self.loading and any(isinstance(each, Skip) or each.device for each in stops)
        slots.conclude(self._written, around)
        env.names.clear()
        env.names.update(before)
        if not falls:
            raise self._joined(returns, loops, stops)
        for each in returns:
            if isinstance(each, Suspended):  # another way goes on: nobody would come back to this one
                resumed(each.rest, None)
        self._note_returns(returns, env)
        self.may_have_left += (extent(cast("Machine", self)),) * bool(loops)
        env.names.update(self._merged([*falls, *left]))  # what a way that leaves the loop has bound holds after it

    def _joined(self, returns: list[Return], loops: list[Loop], stops: list[Skip | Raised]) -> Exception:
        """How a statement ends all of whose branches leave it."""
        if loops:
            return loops[0]
        if not returns:
            # A failure that is not about devices is more likely of our making than the skip is to be the way taken.
            ours = (stop for stop in stops if isinstance(stop, Raised) and not stop.device)
            return next(ours, next((stop for stop in stops if isinstance(stop, Skip)), stops[0]))
        value = returns[0].value
        for other in returns[1:]:
            value = self.either(value, other.value)
        suspended = [each for each in returns if isinstance(each, Suspended)]
        return Suspended([rest for each in suspended for rest in each.rest]) if suspended else Return(value)

    def _note_returns(self, returns: list[Return], env: Env) -> None:
        scope: Env | None = env
        while scope is not None and scope.frame is None:
            scope = scope.parent
        if scope is not None and scope.frame is not None:
            scope.frame.returned.extend(each.value for each in returns)
            scope.frame.may_have_left += (extent(cast("Machine", self)),) * bool(returns)

    def _merged(self, falls: list[dict[str, Any]]) -> dict[str, Any]:
        if len(falls) <= 1:
            return dict(*falls)
        first, *others = falls
        merged = {
            name: value for name, value in first.items() if all(each.get(name, MISSING) is value for each in others)
        }
        for name in {name for each in falls for name in each if name not in merged}:
            values = [each.get(name, MISSING) for each in falls]
            known = [each for each in values if each is not MISSING]
            same = len(known) == len(values) and all(self.same(known[0], each) is True for each in known[1:])
            merged[name] = known[0] if same or len(known) == 1 else self._in_common(known)
        return merged

    def _written(self, values: list[Any], is_name: bool) -> Any:  # noqa: FBT001 - `Slots` passes it on
        """What is known of what ways have written: of attributes and items what was written last, if no more is."""
        known = [each for each in values if each is not MISSING]
        if not known or all(self.same(known[0], each) is True for each in known[1:]):
            return known[0] if known else MISSING
        common = self._in_common(known)
        return common if is_name or isinstance(common, OneOf | AnyOf | list) else values[-1]

    def _in_common(self, values: list[Any]) -> Any:
        """What is known of a name that branches bound to different values."""
        if all(isinstance(each, list) for each in values):
            return reduce(self.either, values)
        return one_of_several(cast("Machine", self), values)

    def _do_break(self, _node: ast.Break, _env: Env) -> None:
        raise Loop("break")

    def _do_continue(self, _node: ast.Continue, _env: Env) -> None:
        raise Loop("continue")

    def _do_with(self, node: ast.With | ast.AsyncWith, env: Env) -> None:
        self._with(list(node.items), node, env)

    def _with(self, items: list[ast.withitem], node: ast.With | ast.AsyncWith, env: Env) -> None:
        if not items:
            self.run(self._unmoved(node.body), env)
            return
        value = self.ev(items[0].context_expr, env)
        given, leave = self.entered(value, env, node)
        target = items[0].optional_vars
        if target is not None:
            self.bind(target, given, env)
        try:
            self._with(items[1:], node, env)
        except Suspended as stop:
            stop.rest.append(partial(_leave, value, leave))
            raise
        except (Raised, Skip, Return, Loop) as stop:
            if not _ends_within(stop, value, leave):
                raise
        else:
            leave(None)

    def _unmoved(self, body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
        """What ends a `with` that expects a mistake (`with raises(ValueError): remote.cuda()`) refuses to be moved."""
        call = body[-1].value if isinstance(body[-1], ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return body
        if call.func.attr not in ("cuda", *MOVERS) or not is_refused_unrun(cast("Machine", self)):
            return body
        self.guesses += 1
        return [*body[:-1], ast.copy_location(ast.Expr(call.func.value), body[-1])]

    def _do_functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef, env: Env) -> None:
        self.define_function(node, env)

    def _do_classdef(self, node: ast.ClassDef, env: Env) -> None:
        self.define_class(node, env)

    def _do_import(self, node: ast.Import, env: Env) -> None:
        self.import_module(node, env)

    def _do_importfrom(self, node: ast.ImportFrom, env: Env) -> None:
        self.import_names(node, env)

    def _do_global(self, node: ast.Global | ast.Nonlocal, env: Env) -> None:
        if env.frame is not None:
            env.frame.globals_of.update(node.names)

    def _do_match(self, node: ast.Match, env: Env) -> None:
        subject = hard(self.ev(node.subject, env))
        bodies: list[Sequence[ast.stmt]] = []
        for case in node.cases:
            matched = self.matches(case.pattern, subject, env)
            if matched is not False and case.guard is not None:
                guard = self.truth(self.ev(case.guard, env))
                matched = guard if matched or guard is False else None
            if matched:
                bodies.append(case.body)
                break
            if matched is not False:
                bodies.append(case.body)
        else:
            bodies.append([])
        if len(bodies) == 1:
            self.run(bodies[0], env)
        else:
            self.fork(bodies, env)


def _leave(context: Any, leave: Callable[[Raised | None], bool], stop: Stop) -> None:
    """Leave a `with` after a `yield` in it."""
    if stop is None:
        leave(None)
    elif not _ends_within(stop, context, leave):
        raise stop


def _ends_within(stop: Raised | Skip | Return | Loop, context: Any, leave: Callable[[Raised | None], bool]) -> bool:
    """Leave a `with`; whether what stopped its body goes no further than this."""
    if isinstance(stop, Return | Loop):
        return leave(None) and is_awaiting(context)
    return leave(as_raised(stop) if isinstance(stop, Skip) else stop)


class _Making:
    """What the test uses, and the library under test makes, on each of several ways."""

    def __init__(self, machine: "Machine") -> None:
        self._machine = machine
        self._made: list[str | None] = []
        self._spread: list[int] = []
        self._others: list[set[int]] = []
        self._longer: list[set[int]] = []
        self._device = machine.current_device
        self._chosen: set[int] = set()
        self._ways = Ways(machine)

    def run(self, body: Sequence[ast.stmt], env: Env) -> None:
        """Follow one way: what stands in it under no further condition is done for sure there."""
        machine = self._machine
        self._ways.begin()
        trace, sure = machine.trace, machine.sure
        machine.sure, by_itself, trace.by_itself = (machine.forks, machine.doubts), trace.by_itself, None
        spread, trace.spread = trace.spread, 0
        others, trace.others = trace.others, set()
        machine.current_device = self._device if machine.quiet else machine.current_device
        goes_on, containers = True, machine.added.before(env)
        try:
            machine.run(body, env)
        except (Skip, Raised):
            goes_on = False
            raise
        finally:
            longer = machine.added.note(containers)
            self._ways.end(goes_on=goes_on)
            if goes_on:
                self._longer.append(longer)
                self._made.append(trace.by_itself)
                self._spread.append(trace.spread)
                self._others.append(trace.others)
                self._chosen.add(machine.current_device)
            machine.sure, trace.by_itself, trace.spread, trace.others = sure, by_itself, spread, others

    def conclude(self) -> None:
        """What is made on all ways that go on is made; what on some, perhaps."""
        self._ways.conclude()
        self._machine.added.conclude(self._longer)
        if self._machine.quiet:  # a device that the library has chosen on some ways is not chosen for sure
            self._machine.current_device = self._chosen.pop() if len(self._chosen) == 1 else self._device
        if all(self._made) and self._made and not self._machine.is_doubtful():
            self._machine.trace.by_itself = self._made[0]
        elif any(self._made):
            self._machine.trace.may_be_made = True
        trace = self._machine.trace
        trace.may_be_made |= any(self._spread) or any(self._others)
        if not self._machine.is_doubtful():
            trace.spread = max(trace.spread, min(self._spread, default=0))
            trace.others |= set.intersection(*self._others) if self._others else set()


def _in_function(env: Env) -> bool:
    scope: Env | None = env
    while scope is not None:
        if scope.frame is not None:
            return True
        scope = scope.parent
    return False


def _loading(target: ast.expr) -> ast.expr:
    return target


_DISPATCH: Final[dict[type, Callable[..., None]]] = {
    getattr(ast, name): getattr(Statements, f"_do_{name.lower().removesuffix('star')}")
    for name in (
        "Expr", "Assign", "AnnAssign", "AugAssign", "Delete", "Return", "If", "For", "While", "Break", "Continue",
        "Raise", "Assert", "Try", "TryStar", "With", "FunctionDef", "ClassDef", "Import", "ImportFrom", "Global",
        "Match",
    )
} | {
    ast.AsyncFor: Statements._do_for,  # noqa: SLF001 - the table belongs to the class
    ast.AsyncWith: Statements._do_with,  # noqa: SLF001 - the table belongs to the class
    ast.AsyncFunctionDef: Statements._do_functiondef,  # noqa: SLF001 - the table belongs to the class
    ast.Nonlocal: Statements._do_global,  # noqa: SLF001 - the table belongs to the class
}  # fmt: skip
