"""What one test does with so many visible devices: marks, hooks, set-up, fixtures, then its body."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from msgspec.structs import replace

from sooner.plan.needs.evaluator.attributes import RUN
from sooner.plan.needs.evaluator.comparisons import HOST_ERRORS
from sooner.plan.needs.evaluator.machine import Machine
from sooner.plan.needs.evaluator.state import LIBRARY_FUEL, TEST_FUEL
from sooner.plan.needs.evaluator.trace import Trace
from sooner.plan.needs.evaluator.undoing import Changed
from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Bound,
    Cls,
    Ext,
    Func,
    Inst,
    Mark,
    Native,
    OutOfFuel,
    Raised,
    Return,
    Skip,
    Soft,
    hard,
    name_of,
)
from sooner.plan.needs.facts import AtSize, Verdict
from sooner.plan.needs.frameworks.masks import only_seen
from sooner.plan.needs.testing.afterwards import do_later, finish
from sooner.plan.needs.testing.axes import BY_POSITION, DOUBTED
from sooner.plan.needs.testing.collection import Item, expression_of
from sooner.plan.needs.testing.fixtures import (
    OF_PYTEST,
    RANKS,
    Fixtures,
    Values,
    argument_names,
    is_called_by_its_file,
    is_worker,
    plugin_modules,
    underlying,
)
from sooner.plan.needs.testing.foreign_bases import may_call_hooks
from sooner.plan.needs.testing.hooks import DESELECTED, Hooks
from sooner.plan.needs.testing.replacing import is_patch, patch_now
from sooner.plan.needs.testing.testing_names import may_guard, reason_of

_SKIP_EXITS: Final = range(72, 100)
"""Exit codes by which workers of PyTorch's tests say that a test is skipped (torch.testing._internal, TEST_SKIPS)."""


class Judged:
    """An outcome with its place; mutable, one for each test and size."""

    def __init__(self, at: AtSize, trace: Trace, place: tuple[str, int], *, soft: bool, guesses: int) -> None:
        self.at = at
        self.trace = trace
        self.place = place
        self.soft = soft
        """Whether the reason for not running is one that somebody could switch off, or a failed assertion."""
        self.guesses = guesses
        self.complete = True
        self.ended: dict[tuple[str, int], Raised | Skip | None] = {}
        """What came out of the library under test where the test calls it (`State.ended`)."""

    def beside(self, other: "Judged") -> "Judged":
        """What is said of a test that has another case as well: what the case that does more does, if they differ."""
        more, less = sorted((self, other), key=_extent, reverse=True)
        more.complete = more.complete and less.complete
        if _extent(more) != _extent(less):
            more.complete = False
            more.at = replace(more.at, devices=max(more.at.devices, more.at.reach))
        more.guesses += less.guesses
        more.trace.ask(max(less.trace.asked, less.trace.reach))
        return more


class Judge:
    """Judges the tests of one file on one machine.

    Args:
        machine: Has evaluated the file.
        path: The file.
    """

    def __init__(self, machine: Machine, path: str) -> None:
        self.machine = machine
        self.path = path
        machine.fruitless, machine.given_up, machine.made_by_itself = {}, frozenset(), {}
        self.module = machine.load(path)
        self.fixtures = Fixtures(machine, path)
        self.plugins = plugin_modules(machine, path)
        self.hooks = Hooks(machine, self.plugins, self.fixtures.config, self._stop)
        self.modules = [*self.plugins, self.module]
        self.configured = {name: value for each in self.plugins for name, value in each.configured.items()}
        self._by_class: dict[int, Fixtures] = {}
        self._expected: list[Mark] = []
        """The marks by which the test at hand is expected to fail."""

    def judge(self, item: Item, ignored: frozenset[tuple[str, int]]) -> Judged:
        """Evaluate a test.

        Args:
            item: The test.
            ignored: Places whose skips and failures are not believed.
        """
        machine = self.machine
        trace = machine.trace = Trace()
        machine.fuel, machine.depth, machine.guesses, machine.quiet = TEST_FUEL, 0, int(self.module.doubted), 0
        machine.awaited, self._expected = (), []
        machine.changed = Changed()
        machine.overrides, machine.environment, machine.rank, machine.no_device_work = (
            dict(self.configured),
            machine.set_on_import(self.path),
            None,
            0,
        )
        machine.processes = machine.current_device = 0
        machine.written, machine.cached, machine.ended, machine.has_lazy = {}, {}, {}, False
        machine.kept, machine.is_declared, machine.is_pretended = 0.0, False, False
        machine.ignored, machine.library_fuel, machine.object_fuel = ignored, 2 * LIBRARY_FUEL, 2 * LIBRARY_FUEL
        machine.again = lambda: self._run(item)
        complete = True
        stop: Skip | Raised | None = None
        try:
            with only_seen(machine) as hides, self._patched(item.marks):
                machine.guesses += hides  # what other modules have asked for while they were imported is not known
                self._run(item)
        except (Skip, Raised) as stopped:
            stop = stopped
        except OutOfFuel:
            complete = False
        except HOST_ERRORS as error:  # tests are any program at all: what is beyond the evaluator is not known
            complete = False
            trace.unsure.append(f"not evaluated: {type(error).__name__}")
        except Return:
            pass
        left = finish(machine)
        judged = self._outcome(trace, stop or left if complete else stop)
        is_used_unseen = trace.may_be_made and machine.size > 0 and not judged.at.devices
        judged.guesses = machine.guesses + ((is_used_unseen or trace.is_read) and judged.at.verdict is Verdict.RUN)
        judged.complete, judged.ended = complete, machine.ended
        return judged

    def _outcome(self, trace: Trace, stop: Skip | Raised | None) -> Judged:
        verdict, reason, place, soft = Verdict.RUN, "", ("", 0), False
        if isinstance(stop, Raised) and _is_skip_exit(stop):
            stop = Skip(stop.reason, stop.path, stop.line)
        if isinstance(stop, Raised) and stop.device and self._is_expected(stop):
            stop = Skip(f"expected: {stop}", stop.path, stop.line)
        if isinstance(stop, Raised) and stop.kind == "XFailed" and trace.is_idle:
            stop = Skip(stop.reason, stop.path, stop.line)  # given up before anything was done
        if isinstance(stop, Skip):
            verdict, reason, place, soft = Verdict.SKIP, stop.reason, (stop.path, stop.line), stop.soft
        elif isinstance(stop, Raised) and stop.kind != "XFailed" and not self._is_end_of_worker(stop):
            verdict, reason, place = Verdict.FAIL, str(stop), (stop.path, stop.line)
            soft = not stop.device
        if reason == DESELECTED:
            verdict = Verdict.ABSENT
        if place[1] and verdict is not Verdict.RUN:
            trace.note(*place, "skips" if verdict is Verdict.SKIP else "fails")
        if trace.unsure and verdict is Verdict.RUN:
            verdict, reason = Verdict.UNKNOWN, trace.unsure[0]
        return Judged(
            AtSize(
                verdict=verdict,
                ranks=trace.ranks,
                devices=trace.all_used,
                reach=trace.reach,
                backends=tuple(sorted(trace.backends)),
                reason=reason,
                vacuous=(trace.starts.are_none or trace.is_unheard) and verdict is Verdict.RUN,
                parts=trace.parts,
            ),
            trace,
            place,
            soft=soft,
            guesses=0,
        )

    def _is_end_of_worker(self, stop: Raised) -> bool:
        """Whether a worker ends itself and says that all is well (`sys.exit(0)`)."""
        return stop.kind == "SystemExit" and self.machine.rank is not None and stop.value in (0, None)

    @contextmanager
    def _patched(self, marks: list[Any]) -> Iterator[None]:
        undo = [patch_now(self.machine, mark) for mark in reversed(marks) if is_patch(mark)]
        try:
            yield
        finally:
            for each in reversed(undo):
                each()

    # The order in which pytest looks at things.

    def _run(self, item: Item) -> None:
        for plugin in self.plugins:  # one that skips itself is our ignorance more often than a suite without tests
            if isinstance(plugin.failed, Raised) and plugin.failed.device:
                raise plugin.failed
        if self.module.failed is not None:
            self._stop(self.module.failed)
        node = self.hooks.node(item, self.module)
        self.hooks.select(node)
        self._marks(item)
        seen = self._marks_added(node, 0)
        self.hooks.set_up(node)
        self._marks_added(node, seen)
        self._set_up_module()
        if item.is_unittest and item.cls is not None:
            self._run_unittest(item, item.cls, node)
        else:
            self._run_plain(item, node)
        self._doubt_marks(item, node)
        self._doubt_names(item)

    def _doubt_names(self, item: Item) -> None:
        """Bases and fixtures from outside the tree whose names speak of devices or guards: they may skip the test."""
        bases = item.cls.mro if item.cls is not None else []
        fixtures, rules = self._fixtures(item.cls).definitions, self.machine.rules.fixtures
        names = [name_of(each) for each in bases if not isinstance(each, Cls)]
        names += [each for each in item.fixtures if not (each in fixtures or each in rules or each in item.params)]
        self.machine.guesses += any(may_guard(each) for each in names)
        if item.cls is not None and self.machine.size:
            self.machine.trace.may_be_made |= may_call_hooks(self.machine.sources, item.cls)

    def _doubt_marks(self, item: Item, node: Inst) -> None:
        """A mark that speaks of so many devices, and that nothing here has looked at: a plugin may skip for it."""
        asked = node.attrs["__asked__"]
        for mark in item.marks:
            is_known = not isinstance(mark, Mark) or mark.name in self.machine.rules.marks
            if is_known or mark.name in asked or None in asked or not may_guard(mark.name):
                continue
            if any(type(hard(each)) is int for each in (*mark.args, *mark.kwargs.values())):
                self.machine.guesses += 1
                self.machine.trace.note(mark.path, mark.line, "guard")

    def _set_up_module(self) -> None:
        """`setUpModule` of unittest, `setup_module` of pytest: what they put into the environment counts."""
        for name in ("setUpModule", "setup_module"):
            found = self.module.env.names.get(name)
            if isinstance(found, Func) and found.attrs.get("__fixture__") is None:
                self._call(found, [UNKNOWN] if argument_names(found) else [], {})

    def _stop(self, stop: Exception) -> None:
        """Skip or fail, unless the place is one that is not believed."""
        believed = not isinstance(stop, Skip | Raised) or not self.machine.is_ignored(stop.path, stop.line)
        if believed or (isinstance(stop, Skip) and not stop.soft) or (isinstance(stop, Raised) and stop.device):
            raise stop

    def _marks(self, item: Item) -> None:
        self.machine.natives.marked = [each.name for each in item.marks if isinstance(each, Mark)]
        failed: Raised | None = None
        for mark in item.marks:
            if not isinstance(mark, Mark):
                continue
            before, self.machine.current = self.machine.current, (mark.path, mark.line)
            try:
                self._mark(mark)
            except Raised as stop:  # a function around the test is only called where no mark skips
                if mark.name != "__rule__":
                    raise
                failed = failed or stop
            finally:
                self.machine.current = before
        if failed is not None:
            raise failed

    def _mark(self, mark: Mark, *, added: bool = False) -> None:
        if mark.name == "skip":  # what a hook adds waits for an option of the command line
            self._stop(Skip(reason_of(mark), mark.path, mark.line, soft=added))
        elif mark.name == "skipif" or (mark.name == "xfail" and mark.kwargs.get("run") is False):
            self._skip_if(mark)
        elif mark.name == "xfail":
            self._expect_failure(mark)
        elif mark is DOUBTED:
            self.machine.guesses += 1
        elif mark.name == "__rule__":
            rule, args, kwargs = mark.args
            self._apply(rule, args, kwargs)
        elif mark.name in self.machine.rules.marks:
            self._apply(self.machine.rules.marks[mark.name], list(mark.args), mark.kwargs)

    def _apply(self, rule: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        try:
            self.machine.natives.obey(rule, args, kwargs)
        except (Skip, Raised) as stop:
            self._stop(stop)

    def _skip_if(self, mark: Mark) -> None:
        conditions = _conditions(mark)
        if not conditions:
            self._stop(Skip(reason_of(mark), mark.path, mark.line))
        for condition in conditions:
            value = self._condition(condition)
            truth = self.machine.truth(value)
            if truth:
                self._stop(Skip(reason_of(mark), mark.path, mark.line, soft=isinstance(value, Soft)))
                continue
            self.machine.guesses += truth is None
            self.machine.trace.note(mark.path, mark.line, "guard")

    def _expect_failure(self, mark: Mark) -> None:
        """Remember `xfail`, where its condition holds."""
        conditions = _conditions(mark)
        if not conditions or any(self.machine.truth(self._condition(each)) for each in conditions):
            self._expected.append(mark)

    def _is_expected(self, stop: Raised) -> bool:
        """Whether a test is marked to fail by what it has raised (`xfail(raises=RuntimeError)`)."""
        kinds = [hard(each.kwargs.get("raises")) for each in self._expected]
        every = (each if isinstance(each, tuple | list) else (each,) for each in kinds)
        return any(each == (None,) or self.machine.catches(each, stop) for each in every)

    def _condition(self, condition: Any) -> Any:
        text = hard(condition)
        if isinstance(text, str):
            tree = expression_of(text)
            return UNKNOWN if tree is None else self.machine.ev(tree, self.module.env)
        if isinstance(text, Func):
            return self.machine.call(text, [], {})
        return condition

    def _marks_added(self, node: Inst, first: int) -> int:
        """Look at the marks that hooks have added, from one on; how many there are."""
        added = list(node.attrs["__added__"])
        for mark in added[first:]:
            self._mark(mark, added=True)
        return len(added)

    def _run_plain(self, item: Item, node: Inst) -> None:
        machine = self.machine
        fixtures = self._fixtures(item.cls)
        self._refuse_a_worker(item, fixtures)
        values = Values(fixtures, item.params, item.indirect, node)
        instance = None
        if item.cls is None and isinstance(found := self.module.env.names.get("setup_function"), Func):
            self._call(found, [item.func] if argument_names(found) else [], {})
        if item.cls is not None:
            instance = Inst(item.cls)
            instance.attrs["__method__"] = item.base
            self._set_up(item.cls, instance, ("setup_class",), on_class=True)
        values.instance = instance
        for name in node.attrs["fixturenames"]:
            if name in fixtures.definitions or name in machine.rules.fixtures:
                values.value(name)
        if instance is not None:
            self._set_up(instance.cls, instance, ("setup_method",), on_class=False)
            self._tear_down(instance, ("teardown_method",))
        wanted = argument_names(item.func)
        kwargs = {name: values.value(name) for name in wanted} | {
            name: values.value(name) for name in item.params if name not in item.indirect and _takes(item.func, name)
        }
        self._body(item, instance, kwargs, node)

    def _refuse_a_worker(self, item: Item, fixtures: Fixtures) -> None:
        """Pytest takes a worker for a test by its name, and has no fixture for the rank that it is told.

        Nor has it one for what a file tells a function of its own (`if __name__ == "__main__": test_all(8, 2048)`).

        Raises:
            Raised: It is one.
        """
        there = {*item.params, *fixtures.definitions, *self.machine.rules.fixtures}
        wanted, tree = argument_names(item.func), self.machine.sources.tree(self.path)
        lacking = [each for each in wanted if each not in there]
        if not lacking or item.cls is not None:
            return
        is_rank = not RANKS.isdisjoint(lacking) and is_worker(tree, item.base)
        if is_rank or (self._is_bare(item, lacking) and is_called_by_its_file(tree, item.base, len(wanted))):
            raise Raised("FixtureLookupError", f"fixture '{lacking[0]}' not found")

    def _is_bare(self, item: Item, lacking: list[str]) -> bool:
        """Whether only a program gives a test what it lacks: no decorator, no hook, and no plugin that many use."""
        is_generated = any("pytest_generate_tests" in each.env.names for each in self.modules)
        is_plain = isinstance(item.func, Func) and not getattr(item.func.node, "decorator_list", [])
        return is_plain and not is_generated and OF_PYTEST.isdisjoint(lacking)

    def _fixtures(self, cls: Cls | None) -> Fixtures:
        if cls is None:
            return self.fixtures
        if id(cls) not in self._by_class:
            self._by_class[id(cls)] = self.fixtures.of_class(cls)
        return self._by_class[id(cls)]

    def _set_up(self, cls: Cls, instance: Inst, names: tuple[str, ...], *, on_class: bool) -> None:
        for name in names:
            found = cls.find(name)
            method = self.machine.bound(found, None if on_class else instance, cls) if found is not MISSING else None
            if on_class and isinstance(method, Func):
                method = Bound(method, cls)
            if isinstance(method, Bound):
                self._call(method, _unknown_for(method), {})

    def _tear_down(self, instance: Inst, names: tuple[str, ...]) -> None:
        """Have what is done after each test done, where that is set up."""
        for name in names:
            method = instance.cls.find(name)
            if isinstance(method, Func):
                bound = Bound(method, instance)
                do_later(self.machine, bound, _unknown_for(bound), {})

    def _call(self, func: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        try:
            return self.machine.call(func, args, kwargs)
        except (Skip, Raised) as stop:
            self._stop(stop)
            return UNKNOWN

    def _run_unittest(self, item: Item, cls: Cls, node: Inst) -> None:
        instance = Inst(cls)
        instance.attrs |= {"__method__": item.name, "_testMethodName": item.name}
        self._set_up(cls, instance, ("setUpClass",), on_class=True)
        init = cls.find("__init__")
        if isinstance(init, Func) and init.module.is_test_code and not init.module.is_model:
            if _wants_more(init):  # a base class that only others make
                raise Raised("TypeError", "__init__ wants more", init.module.path, init.node.lineno, device=True)
            self._call(init, [instance, item.name], {})
        fixtures = self._fixtures(cls)
        used = [name for name in item.fixtures if name in fixtures.definitions and name not in item.params]
        if used:
            values = Values(fixtures, {}, frozenset(), node)
            values.instance = instance
            for name in used:
                values.value(name)
        own = cls.find("run")
        if isinstance(own, Func) and own.module.is_test_code and not own.module.is_model:
            self._run_around(Bound(own, instance), item, instance, node)
        else:
            self._run_method(item, instance, node)

    def _run_around(self, own: Bound, item: Item, instance: Inst, node: Inst) -> None:
        """A class's own `run`: it may skip the test; where it does not surely come to unittest's, nothing else counts.

        Raises:
            Skip: It does.
        """
        machine = self.machine
        known = machine.guesses, machine.forks

        def reach(_args: list[Any], _kwargs: dict[str, Any]) -> None:
            if machine.forks == known[1] and RUN in instance.attrs:
                machine.guesses = known[0]
                self._run_method(item, instance, node)

        instance.attrs[RUN] = Native("run", reach)
        place = own.func.module.path, own.func.node.lineno
        try:
            machine.call(own, [_result(place)], {})
        except Raised:
            if RUN not in instance.attrs:
                raise
        except Skip as stop:
            self._stop(stop)
        if RUN in instance.attrs:
            machine.guesses = known[0]
            self._run_method(item, instance, node)

    def _run_method(self, item: Item, instance: Inst, node: Inst) -> None:
        """What unittest's own `TestCase.run` does: the set-up, then the test."""
        instance.attrs.pop(RUN, None)
        self._set_up(instance.cls, instance, ("setup_method", "setUp", "asyncSetUp"), on_class=False)
        self._tear_down(instance, ("teardown_method", "tearDown", "asyncTearDown"))
        every = isinstance(item.func, Func) and item.func.node.args.kwarg is not None
        given = {name: value for name, value in item.params.items() if name != BY_POSITION}
        kwargs = {name: value for name, value in given.items() if every or _takes(item.func, name)}
        self._body(item, instance, kwargs, node)

    def _body(self, item: Item, instance: Inst | None, kwargs: dict[str, Any], node: Inst) -> None:
        self.hooks.run(node)
        func = item.func if instance is None else self._method(item, instance)
        args = item.params.get(BY_POSITION, [])
        runner = instance.cls.find("__sooner_run__") if instance is not None else MISSING
        if instance is not None and isinstance(runner, Func):
            body = Native("test", lambda _args, _kwargs: self._call(func, args, kwargs))
            marks = [each for each in item.marks if isinstance(each, Mark)]
            self._call(Bound(runner, instance), [body, marks], {})
        else:
            self._call(func, args, kwargs)
        trace = self.machine.trace
        if trace.left_out and not trace.parts and trace.is_idle:
            raise trace.left_out

    def _method(self, item: Item, instance: Inst) -> Any:
        found = instance.cls.find(item.base)
        if getattr(found, "kind", "") == "staticmethod":
            return found.func
        return Bound(item.func, instance)


def _result(place: tuple[str, int]) -> Ext:
    """What unittest keeps outcomes in."""

    def skip(args: list[Any], _kwargs: dict[str, Any]) -> None:
        reason = hard(args[-1]) if args else ""
        raise Skip(reason if isinstance(reason, str) else "skipped", *place)

    result = Ext("unittest.TestResult")
    result.attrs["addSkip"] = Native("addSkip", skip)
    return result


def _unknown_for(method: Bound) -> list[Any]:
    """What pytest gives to a method that sets up: the test's method, where it asks for that."""
    return [UNKNOWN] if argument_names(method) else []


def _takes(func: Any, name: str) -> bool:
    """Whether a test has a parameter of a name, one with a default too."""
    inner = underlying(func)
    spec = inner.node.args if isinstance(inner, Func) else None
    return spec is not None and any(each.arg == name for each in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs))


def _wants_more(init: Func) -> bool:
    """Whether `__init__` needs more than the name of the test, which is all that it is given."""
    args = init.node.args
    required = len(args.posonlyargs) + len(args.args) - len(args.defaults)
    return required > len(("self", "name")) or any(default is None for default in args.kw_defaults)


def _conditions(mark: Mark) -> list[Any]:
    """The conditions of `skipif` and `xfail`; of some that only one is, the others are no conditions."""
    if not mark.args:
        return [mark.kwargs["condition"]] if "condition" in mark.kwargs else []
    return list(mark.args[:1]) if len(mark.args) > 1 and not _is_condition(mark.args[1]) else list(mark.args)


def _extent(judged: Judged) -> tuple[bool, bool, int, int, int]:
    at = judged.at
    return at.verdict is Verdict.RUN, at.verdict is Verdict.UNKNOWN, at.reach, at.devices, at.ranks or 0


def _is_condition(value: Any) -> bool:
    return isinstance(hard(value), bool)


def _is_skip_exit(raised: Raised) -> bool:
    return raised.kind == "SystemExit" and isinstance(raised.value, int) and raised.value in _SKIP_EXITS
