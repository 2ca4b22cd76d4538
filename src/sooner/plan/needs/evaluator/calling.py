"""Calls: of functions and classes of the tests, of the library under test, and of what is outside."""

import ast
import re
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final, cast

from sooner.plan.needs.evaluator.generators import asked_for, generator_of, is_lazy
from sooner.plan.needs.evaluator.making import Making
from sooner.plan.needs.evaluator.state import BY_PYTORCH, DEEPEST, EVERYWHERE, LIBRARY_FUEL, Listener
from sooner.plan.needs.evaluator.suspending import AROUND, Manager, Rest, Suspended, surrounded
from sooner.plan.needs.evaluator.trace import HAVING_NO_HOST, Trace
from sooner.plan.needs.evaluator.undoing import in_advance
from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    AnyOf,
    Bound,
    Cls,
    Dev,
    Env,
    Ext,
    Frame,
    Func,
    Inst,
    Loop,
    Mark,
    Mod,
    Native,
    OutOfFuel,
    Raised,
    Return,
    Skip,
    Stream,
    Super,
    Unknown,
    Wrapped,
    at_most,
    hard,
    is_plain,
)
from sooner.plan.needs.evaluator.ways import doubt_what_follows, each_way
from sooner.plan.needs.evaluator.wrapping import call_of, inside, place_of, work_of
from sooner.plan.needs.facts import SIZES
from sooner.plan.needs.frameworks.callbacks import TRACED
from sooner.plan.needs.frameworks.forwards import forward_of
from sooner.plan.needs.frameworks.library_objects import doubt_end, follow, is_followed
from sooner.plan.needs.frameworks.meshes import NamedMesh
from sooner.plan.needs.frameworks.named_devices import is_by_name
from sooner.plan.needs.frameworks.own_choice import choose, choose_unseen
from sooner.plan.needs.frameworks.refusals import hear_refusal, note_end, refuse_as_awaited
from sooner.plan.needs.frameworks.unseen import (
    chooses_device,
    device_given,
    imports_arrays,
    methods_called,
    moves_by_name,
    only_asks,
    only_asks_of_given,
)
from sooner.plan.needs.processes.library_ranks import is_beyond, launch_as_told, pass_on, runs_its_processes
from sooner.plan.needs.processes.ray_workers import need_given
from sooner.plan.needs.python.caching import once
from sooner.plan.needs.python.code_texts import CODE_TEXTS, run_code
from sooner.plan.needs.python.signatures import every_parameter
from sooner.plan.needs.testing.afterwards import scope_of
from sooner.plan.needs.testing.replacing import name_in_tree
from sooner.plan.needs.testing.testing_names import as_raised, skip_as_wrapped

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_JOINING: Final = re.compile(r"_?(init|initialize|setup|set_up)_(torch_)?(dist|distributed|process_group)")
"""Names of functions by which a rank joins the others."""
_MEETING: Final = re.compile(r"(^|_)(launch|init|initialize|join|setup|set_up)(_|$)")
"""In names of functions that may join the others by what the environment says."""
_SCOPES: Final = ("locals", "vars")
"""What gives the names of the scope that it is called in."""


_LATER: Final = ast.Pass()
"""Stands for the place of a call that Python makes itself."""
_MAYBE: Final = ""
"""What a library makes that makes something on one of several ways."""


class Calling(Making):
    """The part of the machine that calls."""

    def call_at(self, func: Any, args: list[Any], kwargs: dict[str, Any], node: ast.Call, env: Env) -> Any:
        """A call, with its place: what stops the test there is attributed to it."""
        before = self.current
        self.current = self.place(env, node)  # inside a rule or a model: the place that led there
        if id(node) in self.watched:
            self.watched[id(node)].append((args, kwargs))
        try:
            if isinstance(func, Native) and func.name in _SCOPES and not args and not kwargs:
                return env.names
            if isinstance(func, Native) and func.name in CODE_TEXTS:
                return run_code(cast("Machine", self), func.name, args, env)
            return self.call(func, args, kwargs, node)
        except Raised as raised:
            if not raised.path:
                raised.path, raised.line = self.current
            if self.is_ignored(raised.path, raised.line) and not raised.device:
                return UNKNOWN
            raise
        finally:
            self.current = before

    def place(self, env: Env, node: ast.AST) -> tuple[str, int]:
        """Where a node stands; what rules and models do counts for the line of the tests that led there."""
        return (env.module.path, getattr(node, "lineno", 0)) if env.module.path else self.current

    def is_ignored(self, path: str, line: int) -> bool:
        """Whether what stops a test at a place is not believed."""
        return (path, line) in self.ignored or EVERYWHERE in self.ignored

    def call(self, func: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST | None = None) -> Any:
        """The result of a call of whatever it is."""
        func = hard(func)
        if isinstance(func, Bound):
            return self.call(func.func, [func.first, *args], kwargs, node)
        args, kwargs = asked_for(cast("Machine", self), func, args, kwargs)
        if isinstance(func, Func):
            is_lazily = node is not None and is_lazy(cast("Machine", self), func)
            return self.call_function(func, args, kwargs, lazily=is_lazily)
        if isinstance(func, Native):
            return func.call(args, kwargs)
        if isinstance(func, Cls):
            return self.instantiate(func, args, kwargs)
        if isinstance(func, AnyOf):
            ways = [partial(self.call, each, args, kwargs, node) for each in func.functions]
            return reduce(self.either, each_way(cast("Machine", self), ways))
        if isinstance(func, Ext | Unknown):
            given = is_by_name(node, args, kwargs)
            return Dev(given) if given else self.natives.call_outside(func, args, kwargs)
        if isinstance(func, Mark):
            return self.natives.call_mark(func, args, kwargs)
        if isinstance(func, Inst):
            return self._call_instance(func, args, kwargs)
        if isinstance(func, Wrapped) and func.kind != "property":
            return self.call(func.func, args, kwargs)
        return UNKNOWN

    def _call_instance(self, value: Inst, args: list[Any], kwargs: dict[str, Any]) -> Any:
        method = value.cls.find("__call__")
        method = forward_of(cast("Machine", self), value) if method is MISSING else Bound(method, value)
        if method is not None:
            return self.call(method, args, kwargs)
        if value.cls.is_a("ContextDecorator", "AsyncContextDecorator") and args:
            return surrounded(args[0], value)
        return self.natives.call_outside(Unknown(f"{value.cls.name}()"), args, kwargs)

    def with_most(self, args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """What rules and models are given: of a number that is one of several, the most."""
        most = [at_most(each) for each in args], {name: at_most(each) for name, each in kwargs.items()}
        self.guesses += any(new is not old for new, old in zip(most[0], args, strict=True))
        self.guesses += any(new is not kwargs[name] for name, new in most[1].items())
        return most

    def call_function(self, func: Func, args: list[Any], kwargs: dict[str, Any], *, lazily: bool = False) -> Any:
        """Run a function of the tree; of a generator that is to be asked later nothing is done yet.

        Raises:
            Raised, Skip: As the function does.
        """
        if "__asked__" in func.attrs:
            self.trace.ask(func.attrs["__asked__"])
        is_method = func.owner is not None  # a name of a module is replaced where it is asked for
        override = self.overrides.get(name_in_tree(func), MISSING) if self.overrides and is_method else MISSING
        if override is not MISSING and override is not func:
            return self.call(override, args, kwargs)
        owner = "" if func.owner is None else func.owner.name
        names = every_parameter(func)
        rule = None if func.module.is_model else self.rules.for_function(func.module.name, owner, func.name, names)
        if rule is not None:
            self.natives.called = func.name
            named = rule.by_name(func.positional, args) | kwargs
            return self._as_written(func, args, kwargs, self.natives.apply(rule, args, named))
        if lazily and not self._is_in_circles(func, args, kwargs):
            return generator_of(cast("Machine", self), func, args, kwargs)
        if not self.quiet and not func.module.is_test_code and not func.module.is_model:
            self._as_a_rank(inside(func), args, kwargs)
        if self.depth >= DEEPEST:
            return UNKNOWN
        if not func.module.is_test_code and not func.module.is_model and (self.quiet or not _wraps_test_code(func)):
            return self._of_library(func, args, kwargs)
        return self._of_tests(func, args, kwargs)

    def _of_library(self, func: Func, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A function of the library under test: what its arguments say of devices, and its answer."""
        refuse_as_awaited(cast("Machine", self), func, args, kwargs)
        of_instance = func.owner is not None and bool(args) and isinstance(args[0], Inst)
        if of_instance and not self.quiet:
            if runs_its_processes(func, args[0]):
                return self._of_tests(func, args, kwargs)
            said = self._told_of_devices(func, args[1:], device_given(inside(func), args, kwargs))
            choose(cast("Machine", self), func, args, kwargs)
            self._works_on_arrays(func, args, kwargs)
            return self._as_followed(func, args, kwargs, self._own_mesh(func, args, kwargs, said))
        if not self.quiet and self.natives.launched(f"{func.module.name}.{func.name}", args, kwargs):
            return Unknown("launched")
        named = kwargs if self.quiet else device_given(inside(func), args, kwargs)
        is_told = bool(named) and not self.quiet and not self._moves_mocks(func)
        asks = is_told and "device" in named and only_asks_of_given(inside(func).node)
        known = self.guesses, self.cut_short
        name = func.owner.name if func.name == "__init__" and func.owner is not None else func.name
        if is_told and not asks:
            self.natives.device_arguments(f"{func.module.name}.{name}", named)
        result = choose_unseen(cast("Machine", self), func, (args, kwargs), self._call_library(func, args, kwargs))
        if asks and (self.guesses, self.cut_short) != known:  # what it asks has not been seen
            self.natives.device_arguments(f"{func.module.name}.{name}", named)
        if not self.quiet and not self.loading and moves_by_name(func.name, args) and not self.trace.has_used:
            self.guesses += 1
            self.touch(Dev("cuda"), f"{func.name}()")
        launch_as_told(cast("Machine", self), func, args, kwargs)
        if not self.loading and not only_asks(func.name):
            need_given(cast("Machine", self), func.name, (*args, *kwargs.values()))
        return result

    def _told_of_devices(self, func: Func, args: list[Any], named: dict[str, Any]) -> Any:
        """What the arguments of a method of the library say of devices."""
        called = Unknown(f"{func.module.name}.{func.name}")
        return called if self._moves_mocks(func) else self.natives.call_outside(called, args, named)

    def _moves_mocks(self, func: Func) -> bool:
        """Whether a function of the library only moves mocks, most likely: a test has put one where it would move."""
        is_so = self.trace.moves_mocks and bool(methods_called(inside(func).node) & {"to", "cuda"})
        self.guesses += is_so
        return is_so

    def _as_followed(self, func: Func, args: list[Any], kwargs: dict[str, Any], said: Any) -> Any:
        """What a method of the library gives, where rules do not say it."""
        machine = cast("Machine", self)
        is_said = type(said) is not Unknown and not any(said is each for each in args)
        if is_said or not is_followed(machine, func, args[0]):
            doubt_end(machine, func, args, kwargs)
            return said
        found = follow(machine, func, args, kwargs)
        return said if isinstance(hard(found), Unknown) else found

    def _of_tests(self, func: Func, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A function of the tests, or of a model; if the library under test calls it, what it does is still the test's.

        Raises:
            Raised, Skip: As the function does; who called it does not know better.
        """
        if not self.quiet:
            return once(cast("Machine", self), func, args, kwargs, lambda: self._enter(func, args, kwargs))
        with self.as_the_tests(func.module):
            return self._enter(func, args, kwargs)

    @contextmanager
    def as_the_tests(self, module: Mod) -> Iterator[None]:
        """What the library under test calls of the tests is the test's own work.

        Raises:
            Raised, Skip: As the function does; who called it does not know better.
        """
        listener = self.listener
        if listener is None or self.quiet != listener.depth or not self.quiet or not listener.gave(module):
            yield
            return
        fuel, trace, quiet, sure = self.fuel, self.trace, self.quiet, self.sure
        self.fuel, self.trace, self.quiet, self.listener = listener.fuel, listener.trace, 0, None
        listener.was_called = True
        kept = listener.trace.of_ranks, listener.trace.chosen
        if self.is_gathering:  # the library has started the ranks, and knows what each of them used
            listener.trace.of_ranks, listener.trace.chosen = trace.of_ranks, trace.chosen
        try:
            yield
        except Raised as raised:
            raised.is_heard = raised.device
            raise
        except Skip as skip:
            skip.is_heard = True
            raise
        finally:
            listener.fuel = self.fuel
            listener.trace.of_ranks, listener.trace.chosen = kept
            self.fuel, self.trace, self.quiet, self.listener, self.sure = fuel, trace, quiet, listener, sure

    def call_lazily(self, func: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """The result of a call; of a generator nothing is done yet."""
        return self.call(func, args, kwargs, _LATER)

    def _works_on_arrays(self, func: Func, args: list[Any], kwargs: dict[str, Any]) -> None:
        """What a method of the library under test makes, where its module has a framework of arrays."""
        if not self.trace.touched and imports_arrays(self.sources.read(func.module.path)):
            with in_advance(cast("Machine", self), is_done_again=is_followed(cast("Machine", self), func, args[0])):
                result = self._call_library(func, args, kwargs)
            is_seen = only_asks(func.name) or not isinstance(hard(result), Unknown)
            self.trace.may_be_made |= self.size > 0 and not is_seen

    def _is_another_rank(self) -> bool:
        """Whether it is a worker whose work the last one has been seen doing."""
        return self.is_gathering and self.rank is not None and self.rank[0] + 1 < self.rank[1]

    def _own_mesh(self, func: Func, args: list[Any], kwargs: dict[str, Any], said: Any) -> Any:
        """The mesh that a record of the library under test makes of the degrees that it was told."""
        made = args[0]
        if type(said) is not Unknown or not self._is_told_of_ranks(made.cls, made):
            return said
        found = self._call_library(func, args, kwargs)
        return found if isinstance(found, NamedMesh) else said

    def _as_written(self, func: Func, args: list[Any], kwargs: dict[str, Any], said: Any) -> Any:
        """What a function of the library gives where its rule does not say so: its own answer to plain values."""
        given = [hard(each) for each in (*args, *kwargs.values())]
        if not isinstance(said, Unknown) or not given or not is_plain(given) or func.module.is_test_code:
            return said
        answer = self._call_library(func, args, kwargs)
        return answer if is_plain(hard(answer)) and hard(answer) is not None else said

    @abstractmethod
    def touch(self, device: Any, what: str) -> None:
        """A device is used."""

    def _as_a_rank(self, func: Func, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Who joins a group of NCCL's through the library under test, a worker or the test itself, has a device.

        It says so (`launch(..., backend="nccl")`), a function that is given rank and world size, or finds them in the
        environment (`launch_from_torch(config)`), does by default, or one that a rank joins by (`init_dist()`) chooses
        a device.

        Raises:
            Raised: There are fewer devices than ranks.
        """
        names = func.positional
        if "backend" not in kwargs and "backend" not in names:
            if self.rank is not None and _JOINING.fullmatch(func.name) and chooses_device(func.node):
                self.touch(Dev("cuda", self.rank[0]), "a rank chooses its device")
            return
        given = dict(zip(names, args, strict=False)) | kwargs
        told = self._told_rank() if _MEETING.search(func.name) else None
        if "backend" not in given and ({"rank", "world_size"} <= given.keys() or told is not None):
            given |= dict(zip(names[len(names) - len(func.defaults) :], func.defaults, strict=True)) | given
        rank = hard(given.get("rank", told)) if self.rank is None else self.rank[0]
        if hard(given.get("backend")) == "nccl" and isinstance(rank, int) and rank >= 0:
            self.trace.backends.add("nccl")
            self.touch(Dev("cuda", rank), "a rank of an NCCL group")

    def join_unseen(self, name: str) -> None:
        """A worker that has put its rank into the environment, and joins the others by what is not there to be read.

        The device that it means from then on may be the one of its number, and is taken to be.
        """
        told = self._told_rank() if self.rank is None and not self.quiet and _MEETING.search(name) else None
        if told is not None:
            self.current_device = told
            self.guesses += 1

    def _told_rank(self) -> int | None:
        """The number of the rank that a worker has put into the environment; None if it has not."""
        found = [hard(self.environment.get(name)) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")]
        numbers = [int(each) if isinstance(each, str) and each.isdigit() else None for each in found]
        rank, world, local = numbers
        return None if rank is None or world is None else rank if local is None else local

    def _call_library(self, func: Func, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A function of the library under test: only its answer counts, within a small budget."""
        is_of_made = func.owner is not None and bool(args) and isinstance(args[0], Inst) and args[0].is_made
        # What it does may follow from what the object is.
        is_fruitless = (call := call_of(func, args, kwargs)) in self.given_up and not is_of_made
        if is_fruitless:
            self._made_by_itself(self.made_by_itself.get(place_of(func)))
        if is_fruitless or is_beyond(cast("Machine", self), func):
            self.cut_short += 1
            return Unknown(f"{func.module.name}.{func.name}()")
        trace, around, fuel = self.trace, self.listener, self.fuel
        if not self.quiet:
            self.called_from = self.current
            self.sure = (self.forks, self.doubts)
            self.listener = Listener(trace, fuel, self.current[0], func)
        listener = self.listener if self.listener is not None and self.listener.depth == self.quiet else None
        granted = self.fuel = min(fuel, LIBRARY_FUEL, self.library_fuel)
        self.trace, no_device_work = Trace(), self.no_device_work
        self._deeper(listener, 1)
        result: Any = Unknown(f"{func.module.name}.{func.name}()")
        try:
            result = self._enter(func, args, kwargs)
            note_end(cast("Machine", self))
        except (Raised, Skip) as stop:
            stop.is_heard |= self.trace.is_told and isinstance(stop, Raised) and not self.is_doubtful()
            hear_refusal(cast("Machine", self), trace, stop, func)
            if stop.is_heard or (self.refusing and isinstance(stop, Raised)):
                raise
            note_end(cast("Machine", self), stop)
            self.cut_short += 1
        except (OutOfFuel, RecursionError):
            self.cut_short += 1
        finally:
            self._deeper(listener, -1)
            trace.ask(self.trace.asked)
            trace.questions += self.trace.questions
            fruitless = isinstance(result, Unknown) and not self.trace.asked and not (listener and listener.was_called)
            fruitless &= not self.trace.others and self.trace.by_itself != BY_PYTORCH
            if self.size == SIZES[-1] and not self._is_another_rank():
                self.fruitless[call] = self.fruitless.get(call, 0) + 1 if fruitless else 0
            if "enter" not in func.name:  # it may have been stopped within what it has entered
                self.no_device_work = min(no_device_work, self.no_device_work)
            inner, self.trace = self.trace, trace
            pass_on(cast("Machine", self), inner, func)
            by_itself = _MAYBE if inner.may_be_made and inner.by_itself is None else inner.by_itself
            self.library_fuel -= granted - max(self.fuel, 0)
            self.fuel = fuel if self.quiet or listener is None else listener.fuel
            self.listener = around
        if by_itself is not None:
            self.made_by_itself[place_of(func)] = _MAYBE if by_itself == BY_PYTORCH else by_itself
            self._made_by_itself(by_itself)
        return result

    def _deeper(self, listener: Listener | None, by: int) -> None:
        self.quiet += by
        if listener is not None:
            listener.depth += by

    def _made_by_itself(self, what: str | None) -> None:
        """The library has made what its framework puts on the first device: the test's business too."""
        if what is None:
            return
        if what == _MAYBE:
            self.trace.may_be_made = True
        elif not self.quiet:
            is_there = self.size or what in HAVING_NO_HOST
            self.touch(Dev("cuda", 0) if is_there else Dev("cpu"), f"{what}, by the library")
        elif not self.is_doubtful():
            self.trace.by_itself = what
        else:
            self.trace.may_be_made |= self.size > 0

    def _enter(self, func: Func, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if "pytestmark" in func.attrs:
            skip_as_wrapped(cast("Machine", self), func)
        if "__contextmanager__" in func.attrs and not self.quiet:
            return Manager(lambda: self._up_to_yield(func, args, kwargs))
        return self._inside(list(func.attrs.get(AROUND, ())), func, args, kwargs)

    def _inside(self, contexts: list[Any], func: Func, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Run a function inside of the contexts that decorate it."""
        if not contexts:
            return self._executed(func, args, kwargs)
        _, leave = self.enter(contexts.pop(0))
        try:
            result = self._inside(contexts, func, args, kwargs)
        except (Raised, Skip) as stop:
            if not leave(as_raised(stop) if isinstance(stop, Skip) else stop):
                raise
            return None
        leave(None)
        return result

    @abstractmethod
    def enter(self, value: Any) -> Any:
        """What a context gives, and what ends it."""

    def _up_to_yield(self, func: Func, args: list[Any], kwargs: dict[str, Any]) -> tuple[Any, list[Rest]]:
        found = self._executed(func, args, kwargs)
        return found.enter() if isinstance(found, Manager) else (UNKNOWN, [])

    def _executed(self, func: Func, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if func.module.is_model:
            args, kwargs = self.with_most(args, kwargs)
        around, given = self.under_way.get(work_of(func)), [*args, *kwargs.values()]
        if self._is_in_circles(func, args, kwargs):
            return UNKNOWN
        self.under_way[work_of(func)] = given
        try:
            return self._followed(func, args, kwargs)
        finally:
            if around is None:
                del self.under_way[work_of(func)]
            else:
                self.under_way[work_of(func)] = around

    def _is_in_circles(self, func: Func, args: list[Any], kwargs: dict[str, Any]) -> bool:
        """Whether a function calls itself, and is told nothing that it was not told before."""
        around = self.under_way.get(work_of(func))
        return around is not None and _knows_no_more([*args, *kwargs.values()], around)

    def _followed(self, func: Func, args: list[Any], kwargs: dict[str, Any]) -> Any:
        env = Env(func.module, func.env)
        env.frame = frame = Frame(func.owner, args[0] if args else None)
        frame.stops_at_yield = func.is_generator and self._is_resumed(func)
        self.bind_arguments(func, args, kwargs, env)
        self.depth += 1
        around, self.working = self.working, func.module.path
        result: Any = None
        rest: list[Rest] = []
        try:
            if isinstance(func.node, ast.Lambda):
                return self.ev(func.node.body, env)
            with self.turns_not_known(env) if TRACED in func.attrs else nullcontext():
                self.run(func.node.body, env)
        except Suspended as stop:
            rest = stop.rest
        except Return as returned:
            result = returned.value
        except Loop:
            result = UNKNOWN
        except (Skip, Raised) as stopped:
            if func.is_generator and frame.yielded and "__contextmanager__" not in func.attrs:
                return Stream(frame.yielded, stopped)  # whoever asks for more comes to it
            result = self._returned_before(frame, stopped)
        finally:
            doubt_what_follows(cast("Machine", self), frame.may_have_left)
            self.depth -= 1
            self.working = around
        if func.is_generator:
            return self._generated(func, frame, rest)
        for other in frame.returned:
            result = self.either(other, result) if other is not result else result
        return result

    def _returned_before(self, frame: Frame, stopped: Skip | Raised) -> Any:
        """What a way that is not known has returned before a skip that is not believed.

        Raises:
            Raised, Skip: What has stopped the function is believed.
        """
        if not frame.returned or not isinstance(stopped, Skip):
            raise stopped
        if not self.is_ignored(stopped.path, stopped.line):
            stopped.soft = True  # a way that is not known may have left the function before
            raise stopped
        return frame.returned[0]

    def _is_resumed(self, func: Func) -> bool:
        """Whether somebody does what follows the `yield`: after the test, or where the `with` ends.

        What a test enters of the library is the library's business as a whole.
        """
        return "__fixture__" in func.attrs or ("__contextmanager__" in func.attrs and self.quiet != 1)

    def _generated(self, func: Func, frame: Frame, rest: list[Rest]) -> Any:
        if func.attrs.get("__contextmanager__"):
            given = reduce(self.either, frame.yielded, frame.yielded[0]) if frame.yielded else UNKNOWN
            return Manager(lambda: (given, rest))
        self.unfinished += ((rest, scope_of(func) == "function"),) if rest else ()
        return self.added.as_in(frame.yielded, Stream(frame.yielded))

    def bind_arguments(self, func: Func, args: list[Any], kwargs: dict[str, Any], env: Env) -> None:
        """Give parameters their values; what is missing is not known."""
        spec = func.node.args
        names = func.positional
        given = dict(zip(names, args, strict=False))
        rest = args[len(names) :]
        extra = dict(kwargs)
        defaults = dict(zip(names[len(names) - len(func.defaults) :], func.defaults, strict=True))
        for name in names:
            if name not in given:
                given[name] = extra.pop(name) if name in extra else defaults.get(name, UNKNOWN)
        for each in spec.kwonlyargs:
            given[each.arg] = extra.pop(each.arg) if each.arg in extra else func.kw_defaults.get(each.arg, UNKNOWN)
        if spec.vararg is not None:
            given[spec.vararg.arg] = tuple(rest)
        if spec.kwarg is not None:
            given[spec.kwarg.arg] = {name: value for name, value in extra.items() if name not in given}
        env.names.update(given)

    def zero_argument_super(self, env: Env) -> Any:
        """The `super()` of the method around."""
        scope: Env | None = env
        while scope is not None:
            frame = scope.frame
            if frame is not None and frame.owner is not None and isinstance(frame.self_value, Inst | Cls):
                return Super(frame.owner, frame.self_value)
            scope = scope.parent
        return UNKNOWN


def _wraps_test_code(func: Func) -> bool:
    """Whether a function stands around one of the tests: a decorator of the library under test that tries it again."""
    inner: Any = func
    while isinstance(inner, Func) and not inner.module.is_test_code:
        inner = inner.attrs.get("__wrapped__")
    return isinstance(inner, Func) and not inner.module.is_model


def _knows_no_more(given: list[Any], before: list[Any]) -> bool:
    """Whether a function that calls itself with something unknown is given nothing that it was not given before."""
    values = [hard(each) for each in given]
    return (
        len(given) == len(before)
        and any(isinstance(each, Unknown) for each in values)
        and all(isinstance(new, Unknown) or new is hard(old) for new, old in zip(values, before, strict=True))
    )
