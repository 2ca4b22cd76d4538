"""The machine: evaluates one project for one number of visible devices. Modules and imports are here."""

import ast
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Final, cast

from sooner.plan.needs.evaluator.comparisons import HOST_ERRORS
from sooner.plan.needs.evaluator.counted import Counted, uncounted
from sooner.plan.needs.evaluator.defining import Defining
from sooner.plan.needs.evaluator.lazy_names import (
    LazyNames,
    bound_names,
    changes_more,
    filled_names,
    is_off,
    registries,
    switches,
)
from sooner.plan.needs.evaluator.natives import Natives
from sooner.plan.needs.evaluator.state import BY_PYTORCH, DEEPEST, LIBRARY_FUEL, MODULE_FUEL
from sooner.plan.needs.evaluator.trace import Trace
from sooner.plan.needs.evaluator.undoing import Changed
from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Cls,
    Dev,
    Env,
    Ext,
    Func,
    Loop,
    Mark,
    Mod,
    Native,
    OutOfFuel,
    Raised,
    Return,
    Skip,
    Soft,
    Unknown,
    hard,
    is_plain,
)
from sooner.plan.needs.facts import SIZES
from sooner.plan.needs.frameworks.masks import only_seen
from sooner.plan.needs.frameworks.taken_on_import import need_for_its_import
from sooner.plan.needs.frameworks.unseen import CHOSEN, LOOKED_AT, need_for_import
from sooner.plan.needs.rules import Rules
from sooner.plan.needs.settings import PytestSettings
from sooner.plan.needs.sources import Sources, module_name
from sooner.plan.needs.testing.replacing import is_in_sys_modules, module_in_place, replaces_devices
from sooner.plan.needs.testing.starting import start
from sooner.plan.needs.testing.testing_names import is_guard_call

_OTHER_VENDORS: Final = ("mps", "xpu", "hpu", "npu", "mlu", "musa", "sdaa", "tpu")
"""Kinds of devices that are not there on a machine with NVIDIA's or AMD's."""

_SPREADING: Final = (
    "DataParallel",
    "data_parallel",
    "a launcher starts a process for each device",
    "a launcher takes the devices that there are",
    "mapped over devices",
    "mapped over all devices",
)
"""Why the library under test needs more than one device: that is the test's need, too."""
_LEAVING: Final = (Raised, Skip, Return, Loop)


class Machine(Defining):
    """Evaluates one project for one number of visible devices.

    Args:
        size: Visible devices.
        sources: The project.
        rules: What is known of frameworks.
        others: The machine of the same project with another number of devices.
        settings: What pytest is configured to.
    """

    def __init__(
        self,
        size: int,
        sources: Sources,
        rules: Rules,
        others: Callable[[int], "Machine"] | None = None,
        *,
        settings: PytestSettings,
    ) -> None:
        super().__init__(size, sources, rules)
        self.settings = settings
        self.others = others or (lambda _size: self)
        self.made_by_itself = {}
        self.built, self.written = set(), {}
        self.natives = Natives(self)
        self.count = Counted(size, self._asked)
        self.all_devices, self.all_counted = size, self.count

    def called_alone(self, value: Any, node: ast.Call) -> None:
        """A call that is a statement: a guard that decorates elsewhere skips now; what one does may not be known."""
        if self.loading:
            return
        if isinstance(value, Mark) and value.name == "__rule__":
            self.natives.obey(*value.args)
        elif isinstance(value, Unknown) and is_guard_call(node):
            self.guesses += 1

    def _asked(self, fewest: int) -> None:
        self.trace.questions += 1
        self.trace.ask(fewest)

    def load(self, path: str) -> Mod:
        """Execute a module of the tree once; what is left undone by an error is kept undone."""
        is_test = self.sources.is_test_code(path)
        if path in self.modules and self.modules[path].is_test_code == is_test:
            return self.modules[path]
        module = Mod(module_name(path), path, is_test_code=is_test)
        self.modules[path] = module
        tree = self.sources.tree(path)
        module.doubted = tree is None and self.sources.read(path) is not None  # Python of a later version, it may be
        if tree is not None and module.is_test_code:
            self._execute(module, tree)
        elif tree is not None:
            execute = partial(self._execute_lazily, module)
            module.env.names = LazyNames(execute, tree, partial(self._find_behind_stars, module))
            module.env.names |= _module_names(module)
        model = self.rules.overlay(module.name)
        if model is not None:
            for name, value in self.load_model(model).env.names.items():
                if name not in self.natives.words and not name.startswith("__"):
                    if isinstance(module.env.names, LazyNames):
                        module.env.names.forget(name)
                    module.env.names[name] = value
        return module

    def _execute(self, module: Mod, tree: ast.Module) -> None:
        module.env.names |= _module_names(module)
        is_first = not self.loading
        with self.apart(quiet=0):
            self.loading = True
            if is_first:
                self.environment = self.set_on_import(module.path)
            try:
                for statement in tree.body:
                    with only_seen(self):
                        self._execute_one(module, statement)
                if module.path.endswith("conftest.py"):
                    start(self, module)
            except (Raised, Skip) as stop:
                module.failed = stop
            except (Return, Loop):
                pass
            module.doubted = self.trace.doubted

    def plugin(self, path: str) -> Mod:
        """A module of the tree that is a plugin of pytest's, as it is when pytest has started."""
        module = self.load(path)
        if not module.is_plugin and not path.endswith("conftest.py"):
            module.is_plugin = True
            with self.apart(quiet=0), suppress(Raised):
                self.loading = True
                start(self, module)
        return module

    def set_on_import(self, path: str) -> dict[str, Any]:
        """The environment that a file's tests find: what it sets while it is imported, and each conftest.py above."""
        folders = {"conftest.py", *(f"{each}/conftest.py" for each in map(str, PurePosixPath(path).parents))}
        found: dict[str, Any] = {}
        for each in (*sorted(folders & self.everywhere.keys(), key=len), path):
            found |= self.everywhere.get(each, {})
        return found

    def _execute_lazily(self, module: Mod, statement: ast.stmt) -> None:
        """One statement of a module of the library under test, when a name that it makes is asked for."""
        with self.apart(quiet=1):
            self.fuel = LIBRARY_FUEL * 4
            with self._made_when_asked(module, statement), suppress(*_LEAVING, OutOfFuel, *HOST_ERRORS):
                self.run([statement], module.env)
            self._overrule(module, statement)
            tree = self.sources.tree(module.path)
            for name in bound_names(statement):
                value = dict.get(module.env.names, name)
                if is_off(value) and tree is not None and name in switches(tree):
                    module.env.names[name] = Unknown(f"{module.name}.{name}")
                if value == {} and tree is not None and name in registries(tree):
                    value[UNKNOWN] = UNKNOWN  # nobody knows which modules are imported
                if self.trace.questions:
                    module.questioned.add(name)
                _taint(module, [name], self._asked_for(module, name))

    def _find_behind_stars(self, module: Mod, name: str) -> bool:
        """Bind a name that a module's stars bring, from the file that makes it; whether there is one."""
        path = self.sources.stars.of(module.path, name)
        names = self.load(path).env.names if path and path != module.path else {}
        if name not in names:
            return False
        module.env.names[name] = names[name]
        return True

    @contextmanager
    def _made_when_asked(self, module: Mod, statement: ast.stmt) -> Iterator[None]:
        """A name that an `if` may bind comes from elsewhere where it does not: from `__getattr__`, or `import *`."""
        names = module.env.names
        has_more = isinstance(names, LazyNames) and (names.has_stars or "__getattr__" in names)
        if not isinstance(statement, ast.If) or not has_more:
            yield
            return
        made = {
            each: Unknown(f"{module.name}.{each}") for each in bound_names(statement) if dict.get(names, each) is None
        }
        names.update(made)
        yield
        for each, value in made.items():
            if dict.get(names, each) is value:
                del names[each]

    def _asked_for(self, module: Mod, name: str) -> int:
        """What a name of the library follows from: not from the number of devices where its value is always the same.

        `TRITON_WORKS = len(drivers) == 1 and os.environ.get("CUDA_VISIBLE_DEVICES") != ""` asks for the number.
        """
        least = self.trace.asked
        value = dict.get(module.env.names, name, UNKNOWN)
        if least > self.size and is_plain(value) and not isinstance(value, Counted):
            for machine in (self.others(size) for size in reversed(SIZES) if size < self.size):
                if not _are_same(value, machine.load(module.path).env.names.get(name)):
                    break
                least = machine.size
        return least

    def _overrule(self, module: Mod, statement: ast.stmt) -> None:
        """Names that a statement has made, and of which the rules know better."""
        for name in bound_names(statement):
            full = f"{module.name}.{name}"
            rule = self.rules.constant(full)
            if rule is not None and rule.override:
                module.env.names[name] = self.natives.constant(full)

    @contextmanager
    def apart(self, *, quiet: int) -> Iterator[None]:
        """Evaluate something that is no part of the test at hand."""
        state = self.fuel, self.trace, self.depth, self.current, self.overrides, self.guesses, self.quiet
        self.fuel, self.depth, self.overrides = MODULE_FUEL, min(self.depth, DEEPEST // 2), {}
        self.trace, self.quiet = Trace(), quiet
        library_fuel, self.library_fuel = self.library_fuel, 4 * LIBRARY_FUEL
        forks, self.forks, doubts, self.doubts = self.forks, 0, self.doubts, 0
        defaults, self.defaults = self.defaults, 0
        loading, self.loading, changed, self.changed = self.loading, False, self.changed, Changed()
        slots, self.slots = self.slots, None
        environment, rank, listener = self.environment, self.rank, self.listener
        size, count = self.size, self.count
        self.size, self.count = self.all_devices, self.all_counted  # modules are imported once, for all files
        self.listener = None
        if not loading:  # what the test at hand has set was not there when its modules were imported
            self.environment, self.rank = {}, None
        try:
            yield
        finally:
            self.library_fuel, self.loading, self.forks, self.doubts = library_fuel, loading, forks, doubts
            self.defaults, self.changed, self.slots = defaults, changed, slots
            self.environment, self.rank, self.listener = environment, rank, listener
            self.size, self.count = size, count
            self.fuel, self.trace, self.depth, self.current, self.overrides, self.guesses, self.quiet = state

    def _execute_one(self, module: Mod, statement: ast.stmt) -> None:
        self.trace.asked = self.trace.reach = 0
        self.trace.touched = set()
        questions = self.trace.questions
        self.current = (module.path, statement.lineno)
        if isinstance(statement, ast.ClassDef):  # a definition ends, however long; loops before it may have cost much
            self.fuel = max(self.fuel, MODULE_FUEL // 2)
        try:
            self.run([statement], module.env)
            if not module.is_model and isinstance(statement, ast.If | ast.Assign | ast.Try):
                self._overrule(module, statement)
        except (OutOfFuel, *HOST_ERRORS):  # a statement that is beyond the evaluator is left out
            self.fuel = MODULE_FUEL // 4
        except Raised as raised:
            if not self.is_doubted(raised, questions):
                raise
            self.trace.doubted |= raised.soft
        finally:
            self.trace.ask(self.trace.reach)  # with fewer devices it has failed
            self._keep_on_devices(module, statement)
            if self.trace.asked:
                _taint(module, bound_names(statement), self.trace.asked)
                if changes_more(statement):
                    module.asked = max(module.asked, self.trace.asked)
                if isinstance(statement, ast.ImportFrom) and any(each.name == "*" for each in statement.names):
                    for other in list(self.modules.values()):
                        _taint(module, other.tainted, self.trace.asked)

    def _keep_on_devices(self, module: Mod, statement: ast.stmt) -> None:
        """What a statement of a test file makes on devices stays there: tests that ask for it by its name use them.

        A class is more than what one of its decorators or attributes does; what is imported is kept name by name.
        """
        if self.trace.touched and not isinstance(statement, ast.ClassDef | ast.ImportFrom):
            filled = (each for each in filled_names(statement) if _is_value(dict.get(module.env.names, each)))
            kept = frozenset(self.trace.touched), (module.path, statement.lineno)
            module.held |= dict.fromkeys((*bound_names(statement), *filled), kept)

    def load_model(self, name: str) -> Mod:
        """A module of the rule table."""
        key = f"<rules>/{name}"
        if key not in self.modules:
            module = Mod(name, "", is_model=True)
            self.modules[key] = module
            module.env.names |= self.natives.words
            self._execute(module, self.rules.model(name))
        return self.modules[key]

    def import_module(self, node: ast.Import, env: Env) -> None:
        """An `import`."""
        for alias in node.names:
            whole = self.imported(alias.name, env.module.path)
            if alias.asname:
                env.names[alias.asname] = whole
                continue
            top = alias.name.partition(".")[0]
            env.names[top] = self.imported(top, env.module.path) if "." in alias.name else whole

    def imported(self, name: str, importer: str) -> Any:
        """A module by its absolute name: of the rule table, of the tree, or outside."""
        if (replaced := module_in_place(self, name)) is not MISSING:
            return replaced
        if self.rules.is_absent(name):
            self._import_fails(name, importer)
        need_for_import(self, name)
        path = None if self.rules.is_outside(name) else self.sources.module(name, importer)
        if self.rules.is_model(name) and (path is None or self.rules.insists(name)):
            return self.load_model(self.rules.model_name(name))
        if path and (path != importer or path.endswith("/__init__.py")):  # a package may name itself
            self.guesses += any(map(is_in_sys_modules, self.overrides))  # the module may import what was replaced
            return self._whole(self.load(path))
        return self._outside("pytest" if name == "py.test" else name, importer)  # its name of long ago

    def _outside(self, name: str, importer: str) -> Ext:
        """What is not in the tree; in a package of the tree's own it is compiled, or made when that is built."""
        package = name.rpartition(".")[0]
        if package and not self.rules.is_outside(name) and self.sources.module(package, importer):
            self.built.add(name)
        return Ext(name)

    def _import_fails(self, name: str, importer: str) -> None:
        """A module is not there: a file that needs it cannot be imported; its tests are looked at for their names."""
        failure = Raised("ModuleNotFoundError", f"No module named {name!r}", *self.current, device=True)
        module = self.modules.get(importer)
        if self.trying or not self.loading or module is None:
            raise failure
        module.failed = failure

    def _whole(self, module: Mod) -> Mod:
        """An imported module; one of the tests that skips itself, or lacks a device, stops its importer."""
        stop = module.failed
        if module.is_test_code and (isinstance(stop, Skip) or (isinstance(stop, Raised) and stop.device)):
            raise stop
        need_for_its_import(self, module)
        self.trace.doubted |= module.is_test_code and module.doubted
        return module

    def import_names(self, node: ast.ImportFrom, env: Env) -> None:
        """A `from ... import`."""
        module = self._from(node, env)
        for alias in node.names:
            if alias.name == "*":
                self._import_all(module, env)
                continue
            self._bind_imported(module, alias, env, node.module or "")

    def _bind_imported(self, module: Any, alias: ast.alias, env: Env, asked: str) -> None:
        bound = alias.asname or alias.name
        replaced = module_in_place(self, f"{asked}.{alias.name}")
        self.guesses += replaced is not MISSING  # the package may have the old one
        env.names[bound] = self._imported_name(module, alias.name, env, asked) if replaced is MISSING else replaced
        if isinstance(module, Mod) and alias.name in module.held and env.parent is None:
            env.module.held[bound] = module.held[alias.name]

    def _from(self, node: ast.ImportFrom, env: Env) -> Any:
        if node.level == 0:
            return self.imported(node.module or "", env.module.path)
        if path := self.sources.relative(env.module.path, node.level, node.module or ""):
            return self._whole(self.load(path))
        parts = module_name(env.module.path).split(".")
        is_package = env.module.path.endswith("__init__.py")
        folder = ".".join(parts[: len(parts) - node.level + is_package])
        name = f"{folder}.{node.module}" if node.module and folder else node.module or folder
        if node.module and self.rules.is_model(name):
            return self.load_model(self.rules.model_name(name))
        return self._outside(name, env.module.path)

    def _import_all(self, module: Any, env: Env) -> None:
        if isinstance(module, Mod):
            public = module.env.names.get("__all__")
            names = module.env.names
            for name in names.every() if isinstance(names, LazyNames) else list(names):
                value = names.get(name, UNKNOWN)
                self.trace.ask(module.asked_by(name))
                if name in public if isinstance(public, list) else not name.startswith("_"):
                    env.names[name] = value
                    if name in module.held and env.parent is None:
                        env.module.held[name] = module.held[name]
        elif isinstance(module, Ext):
            env.names.setdefault("__stars__", []).append(module.path)

    def _imported_name(self, module: Any, name: str, env: Env, asked: str) -> Any:
        if isinstance(module, Mod):
            found = self.of_module(module, name)
            if not isinstance(found, Unknown):
                return self._whole(found) if isinstance(found, Mod) else found
            if module.is_model and isinstance(own := self._of_modelled(asked, name, env), Func | Mark):
                return own
            if (sub := self.sources.module(f"{module.name}.{name}", env.module.path)) and sub != module.path:
                return self._whole(self.load(sub))
            if (constant := self.natives.constant(f"{module.name}.{name}")) is not MISSING:
                return constant
            if name.startswith("_") and module.path.endswith("__init__.py"):
                return self._outside(f"{module.name}.{name}", env.module.path)
            if module.path.endswith("__init__.py") or module.is_model:
                return Ext(f"{module.name}.{name}")
            return found if found.path else Unknown(f"{module.name}.{name}")
        if isinstance(module, Ext):
            full = f"{module.path}.{name}" if module.path else name
            path = None if self.rules.is_outside(full) else self.sources.module(full, env.module.path)
            if self.rules.is_model(full) and (path is None or self.rules.insists(full)):
                return self.load_model(self.rules.model_name(full))
            return self.load(path) if path else self.natives.outside_attribute(module, name)
        return self.attribute(module, name)

    def _of_modelled(self, module: str, name: str, env: Env) -> Any:
        """A name that the rules' stand-in for a module does not have, as the tree's own file makes it."""
        path = None if self.rules.is_outside(module) else self.sources.module(module, env.module.path)
        return self.of_module(self.load(path), name) if path and path != env.module.path else UNKNOWN

    # Outside

    def outside_item(self, value: Any, index: Any) -> Any:
        """An item of something outside."""
        return self.natives.outside_item(value, index)

    def set_outside(self, target: Any, name: str, value: Any) -> None:
        """Something outside is given another attribute or item."""
        self.natives.set_outside(target, name, value)

    def entered(self, value: Any, env: Env, node: ast.AST) -> Any:
        """What a `with` gives, and what ends it."""
        return self.natives.entered(value, *self.place(env, node))

    def enter(self, value: Any) -> Any:
        """As `with` does it, for a value that is handed over (`enterContext`, `ExitStack.enter_context`)."""
        return self.natives.entered(value, *self.current)

    # Devices

    def visible(self) -> int:
        """The number of visible devices, for whatever it may be used."""
        return int(self.counted())

    def counted(self) -> Counted:
        """The number of visible devices; what is asked of it is noted."""
        self.trace.note(*self.current, "devices are counted")
        return cast("Counted", self.count)

    def touch(self, device: Any, what: str) -> None:
        """A device is used.

        Raises:
            Raised: It is not there.
        """
        if self.no_device_work:
            return
        kind, index = (device.kind, hard(device.index)) if isinstance(device, Dev) else ("cuda", device)
        if kind in _OTHER_VENDORS and not self.quiet:
            raised = Raised("RuntimeError", f"{what}: there is no {kind}", *self.current, device=True)
            raised.is_of_another_vendor = True
            raise raised
        if kind not in ("cuda", "gpu", "hip"):
            return
        if self.quiet:
            self._touched_by_library(index, what)
            return
        self.guesses += replaces_devices(self.overrides)
        known = isinstance(index, int) and not isinstance(index, bool) and index >= 0
        number = index if known else self.current_device
        if self.is_declared:
            self.need(math.ceil(self.kept), what)
        self._use(number + 1, what)
        if self.is_gathering:
            found = self.trace.chosen if what == CHOSEN else self.trace.of_ranks
            found |= {number} if number >= self.trace.used else set()
        elif self.rank is None:
            self.trace.touched |= set(range(number + 1)) if number + 1 == self.trace.among else {number}
        else:
            self.trace.used = max(self.trace.used, min(self.rank[1], number + 1))

    def _touched_by_library(self, index: Any, what: str) -> None:
        """The library under test uses a device: where nothing is doubtful, the first one does it for the test.

        Raises:
            Raised: There is none; the library may catch it.
        """
        is_known = type(index) is int
        is_alone = (
            self.rank == (0, 1) and "MASTER_ADDR" in self.environment
        )  # the test has set all that makes it a rank
        is_among = self.rank is not None and not is_alone
        is_doubtful = self.is_doubtful() or "pinned memory" in what or (self.rank == (0, 1) and not is_alone)
        number = index if is_known else self.current_device if index is None else 0
        self.guesses += not is_known and index is not None  # it is one of them
        if is_doubtful or (is_among and not is_known):
            self.trace.may_be_made |= self.size > 0
        elif self.size <= number:
            raised = Raised(
                "RuntimeError", f"{what}: needs {number + 1}, fewer are visible", *self.current, device=True
            )
            raised.is_heard = True
            raise raised
        elif (number and what != LOOKED_AT) or is_among:
            self.trace.others |= {number}
        else:
            self.trace.by_itself = self.trace.by_itself or BY_PYTORCH

    def launch_kernel(self, func: Func) -> Any:
        """`func[grid](...)`: a function that somebody has compiled for a device runs on one.

        Raises:
            Raised: There is none.
        """
        self.guesses += not self.quiet
        self.touch(Dev("cuda"), f"{func.name} is launched as a kernel")
        return Unknown(f"{func.name}()")

    def need(self, count: int, what: str) -> None:
        """So many devices are used.

        Raises:
            Raised: There are fewer.
        """
        count = uncounted(count)
        if not self.no_device_work and not self.quiet and count > 0:
            self._use(count, what)
            self.trace.used = max(self.trace.used, count)
        elif self.quiet and what in _SPREADING and not self.is_doubtful():
            self.trace.spread = max(self.trace.spread, count)

    def _use(self, count: int, what: str) -> None:
        self.trace.note(*self.current, what)
        if count > self.size:
            raise Raised("RuntimeError", f"{what}: needs {count}, fewer are visible", *self.current, device=True)
        self.trace.reach = max(self.trace.reach, count)

    def started(self, count: Any) -> None:
        """So many processes are started."""
        if isinstance(count, int) and not isinstance(count, bool) and not self.quiet:
            self.trace.note(*self.current, "starts processes")
            self.trace.rank_count(uncounted(count), self.size)
            if count:
                self.trace.starts.in_loops.update(self.turning)
        elif isinstance(count, Unknown) and not self.quiet:
            self.guesses += 1

    def launch_of_none(self) -> None:
        """A launcher is told to start no process: it refuses.

        Raises:
            Raised: Always.
        """
        raise Raised("RuntimeError", "a launcher of no processes", *self.current, device=True)

    def soft(self, value: Any) -> Soft:
        """A value that holds by default."""
        return value if isinstance(value, Soft) else Soft(value)


def _are_same(value: Any, other: Any) -> bool:
    return type(value) is type(other) and type(hard(value)) is type(hard(other)) and bool(hard(value) == hard(other))


def _is_value(value: Any) -> bool:
    """Whether a name is none of a module, a class or a function."""
    return value is not None and not isinstance(value, Ext | Mod | Func | Cls | Native)


def _module_names(module: Mod) -> dict[str, Any]:
    package = module.name if module.path.endswith("__init__.py") else module.name.rpartition(".")[0]
    return {"__name__": module.name, "__package__": package, "__file__": f"/{module.path}", "__doc__": ""}


def _taint(module: Mod, names: Iterable[str], asked: int) -> None:
    """Names of a module follow from visible devices."""
    if asked:
        for name in list(names):
            module.tainted[name] = max(asked, module.tainted.get(name, 0))
