"""Names of a module of the library under test: a statement is executed when a name that it makes is asked for."""

import ast
from collections.abc import Callable, Iterator
from typing import Any, Final

from sooner.plan.needs.syntax import calls_in, kept

_CONTAINERS: Final = ("list", "dict", "set", "OrderedDict", "defaultdict", "deque")
_FILLING: Final = ("append", "appendleft", "add", "extend", "insert", "setdefault", "update")
_MOST_ENTRIES: Final = 256


class LazyNames(dict[str, Any]):
    """The names of a module, made on demand.

    Args:
        execute: Runs one statement in the module.
        tree: The module.
        found: Makes a name that comes from a star within an `if`, which is executed only where no text has the name.
            Says whether it has done so.
    """

    def __init__(
        self, execute: Callable[[ast.stmt], None], tree: ast.Module, found: Callable[[str], bool] | None = None
    ) -> None:
        super().__init__()
        self._execute = execute
        self._found = found
        self._pending: dict[str, list[ast.stmt]] = {}
        self._stars: list[ast.stmt] = []
        self._done: set[int] = set()
        self._filling = dict(_fillings(tree))
        for statement in tree.body:
            alone = _imported_for_checkers(statement)
            for name in bound_names(statement):
                if name == "*":
                    self._stars.append(statement)
                else:
                    self._pending.setdefault(name, []).append(alone.get(name, statement))
        if all(isinstance(each, ast.ImportFrom) for each in self._stars):
            self._found = None
        self.has_stars = bool(self._stars)
        """Whether any statement imports all names of another module."""
        self._stars += (each for each in tree.body if _fills_globals(each))

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str) and name in self._pending:
            for statement in (*self._pending.pop(name), *self._filling.get(name, ())):
                self._run(statement)
        if super().__contains__(name):
            return True
        if not isinstance(name, str) or name.startswith("__"):
            return False
        if self._found and self._found(name):
            return True
        while self._stars:
            self._run(self._stars.pop(0))
            if super().__contains__(name):
                return True
        return False

    def _run(self, statement: ast.stmt) -> None:
        """Execute a statement once, after what stands before it and makes names that it makes as well.

        `found = False` is executed before the `if` below it that may make it true, also where the `if` is executed
        for another name: afterwards it would undo what that has found.
        """
        if id(statement) in self._done:
            return
        self._done.add(id(statement))
        for name in bound_names(statement):
            for each in self._pending.get(name, ()):
                if _place(each) < _place(statement):
                    self._run(each)
        self._execute(statement)

    def get(self, name: str, default: Any = None) -> Any:
        """As of any mapping; a name that is not made yet is made."""
        return self[name] if name in self else default  # noqa: SIM401 - `in` is what makes the name

    def forget(self, name: str) -> None:
        """What would make a name is not run: it is given from elsewhere."""
        self._pending.pop(name, None)

    def every(self) -> list[str]:
        """All names, made or not."""
        return list(dict.fromkeys([*self, *self._pending]))


def _fills_globals(statement: ast.stmt) -> bool:
    """Whether a loop or a call makes names that no text has: `globals()[name] = ...`, `globals().update(...)`."""
    if not isinstance(statement, ast.For | ast.Expr):
        return False
    return any(isinstance(each.func, ast.Name) and each.func.id == "globals" for each in calls_in(statement))


def _place(statement: ast.stmt) -> tuple[int, int]:
    return statement.lineno, statement.col_offset


def bound_names(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module's top level can make; `*` for an import of everything."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        top = isinstance(statement, ast.Import)
        yield from (each.asname or (each.name.partition(".")[0] if top else each.name) for each in statement.names)
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _targets(target)
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        yield from _targets(statement.target)
    else:
        yield from _inside(statement)


def _imported_for_checkers(statement: ast.stmt) -> dict[str, ast.stmt]:
    """An import of its own for each name that only type checkers are told of (`if TYPE_CHECKING or SLOW_IMPORT:`).

    A package that makes its names when it is asked has them there, thousands in one statement.
    """
    if not isinstance(statement, ast.If) or not _is_for_checkers(statement.test):
        return {}
    others = {name for each in statement.orelse for name in bound_names(each)}
    found: dict[str, ast.stmt] = {}
    for node in _imports(statement.body):
        for alias in node.names:
            name = alias.asname or alias.name
            if name != "*" and name not in others:
                alone = ast.ImportFrom(module=node.module, names=[alias], level=node.level)
                found[name] = ast.copy_location(alone, node)
    return found


def _is_for_checkers(test: ast.expr) -> bool:
    several = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]
    return any(ast.unparse(each).rpartition(".")[2] == "TYPE_CHECKING" for each in several)


def _imports(statements: list[ast.stmt]) -> Iterator[ast.ImportFrom]:
    """The imports among some statements, where all goes well."""
    for each in statements:
        if isinstance(each, ast.ImportFrom):
            yield each
        elif isinstance(each, ast.If):
            yield from _imports([*each.body, *each.orelse])
        elif isinstance(each, ast.Try):
            yield from _imports([*each.body, *each.orelse, *each.finalbody])


def changes_more(statement: ast.AST) -> bool:
    """Whether a statement may change more than the names that it binds: it sets an attribute or an item, or calls."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
        return False
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    children = list(ast.iter_child_nodes(statement))
    targets = [node for each in children if isinstance(each, ast.expr) for node in ast.walk(each)]
    if any(isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store) for node in targets):
        return True
    inner = [each for each in children if isinstance(each, ast.stmt | ast.ExceptHandler | ast.match_case)]
    return any(changes_more(each) for each in inner)


def filled_names(statement: ast.stmt) -> Iterator[str]:
    """Names of what a statement of a module's top level may change by its methods, items or attributes."""
    if changes_more(statement):
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.value, ast.Name):
                yield node.value.id


@kept
def _fillings(tree: ast.Module) -> dict[str, list[ast.stmt]]:
    """The statements that put something into the module's lists and tables, by the names of these.

    `KINDS["a"] = 1` does, `KINDS.append(1)`, and what is decorated with a function of the module that does.
    """
    found: dict[str, list[ast.stmt]] = {}
    names = {each for statement in tree.body for each in _contained(statement)}
    functions = [each for each in tree.body if isinstance(each, ast.FunctionDef)]
    by_function = {each.name: _filled(each, names) for each in functions} if names else {}
    for statement in tree.body if names else ():
        is_function = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        filled = set() if is_function else _filled(statement, names)
        for caller in _called(statement):
            filled |= by_function.get(caller, set())
        for name in filled:
            found.setdefault(name, []).append(statement)
    return {name: each for name, each in found.items() if len(each) <= _MOST_ENTRIES}


@kept
def switches(tree: ast.Module) -> set[str]:
    """Names that functions of a module set for it (`global has_cuda`)."""
    found: set[str] = set()
    for function in (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)):
        shared = {name for each in ast.walk(function) if isinstance(each, ast.Global) for name in each.names}
        assigned = (each for each in ast.walk(function) if isinstance(each, ast.Assign)) if shared else ()
        found |= shared & {name for each in assigned for name in bound_names(each)}
    return found


@kept
def registries(tree: ast.Module) -> set[str]:
    """Tables that only other modules fill, by a function of this one (`register(name)`)."""
    functions = [each for each in tree.body if isinstance(each, ast.FunctionDef)]
    registering = [each for each in functions if "register" in each.name.lower()]
    names = {each for statement in tree.body for each in _contained(statement)} if registering else set()
    filled = {name for each in registering for name in _filled(each, names)}
    return filled - _fillings(tree).keys() if filled else filled


def is_off(value: Any) -> bool:
    """Whether a value is that of a switch that is off."""
    return value is False or (type(value) is int and value == 0)


def _contained(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement binds to a list or a table."""
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    is_made = isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in _CONTAINERS
    if is_made or isinstance(value, ast.List | ast.Dict | ast.Set):
        yield from bound_names(statement)


def _filled(node: ast.AST, names: set[str]) -> set[str]:
    """Which of some lists and tables something is put into, anywhere inside of a node."""
    found: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in _FILLING:
            target: ast.expr = each.func.value
        elif isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store):
            target = each.value
        else:
            continue
        if isinstance(target, ast.Name) and target.id in names:
            found.add(target.id)
    return found


def _called(statement: ast.stmt) -> Iterator[str]:
    """The names of functions that a statement calls: what decorates, and a call that is a statement."""
    calls: list[ast.expr] = list(getattr(statement, "decorator_list", ()))
    if isinstance(statement, ast.Expr):
        calls.append(statement.value)
    for each in calls:
        func = each.func if isinstance(each, ast.Call) else each
        if isinstance(func, ast.Name):
            yield func.id


def _inside(statement: ast.AST) -> Iterator[str]:
    """The names that the parts of a compound statement can make."""
    if isinstance(statement, ast.For | ast.AsyncFor):
        yield from _targets(statement.target)
    for each in ast.iter_child_nodes(statement):
        if isinstance(each, ast.stmt):
            yield from bound_names(each)
        elif isinstance(each, ast.ExceptHandler | ast.match_case | ast.pattern):
            yield from _inside(each)
            if isinstance(each, ast.MatchAs) and each.name:
                yield each.name
        elif isinstance(each, ast.expr):
            yield from (node.target.id for node in ast.walk(each) if isinstance(node, ast.NamedExpr))
        elif isinstance(each, ast.withitem) and each.optional_vars is not None:
            yield from _targets(each.optional_vars)


def _targets(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
