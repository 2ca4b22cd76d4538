"""What the ways to write a test otherwise have in common: going over a module, and making its parts."""

import ast
import copy
from collections.abc import Callable, Iterator
from typing import TypeAlias, TypeGuard

Modules: TypeAlias = dict[str, ast.Module]
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Scope: TypeAlias = Function | ast.ClassDef | ast.Lambda


def by(make: Callable[[], "Rewriter"]) -> Callable[[ast.Module], Modules | None]:
    def rewritten(tree: ast.Module) -> Modules | None:
        rewriter = make()
        rewriter.visit(tree)
        if not rewriter.count:
            return None
        _at_top(tree, rewriter.top)
        return {"": ast.fix_missing_locations(tree)}

    return rewritten


def _at_top(tree: ast.Module, statements: list[ast.stmt]) -> None:
    """Statements, before all others but the docstring and what is imported from the future."""
    place = 0
    for number, each in enumerate(tree.body):
        is_text = number == 0 and isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
        if is_text or (isinstance(each, ast.ImportFrom) and each.module == "__future__"):
            place = number + 1
    tree.body[place:place] = statements


class Rewriter(ast.NodeTransformer):
    """Goes over a module and counts what it wrote otherwise; annotations and patterns are left as they are."""

    def __init__(self) -> None:
        self.count = 0
        self.top: list[ast.stmt] = []
        self.around: list[Scope] = []

    def new(self, what: str) -> str:
        """A name that nobody has."""
        self.count += 1
        return f"_{what}_{self.count}"

    @property
    def is_in_function(self) -> bool:
        """Whether what is visited lies in a function."""
        return any(not isinstance(each, ast.ClassDef) for each in self.around)

    def of_function(self, node: Function) -> ast.AST | list[ast.stmt]:
        """What stands for a function."""
        return self.generic_visit(node)

    def of_class(self, node: ast.ClassDef) -> ast.AST | list[ast.stmt]:
        """What stands for a class."""
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | list[ast.stmt]:
        return self.of_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST | list[ast.stmt]:
        return self.of_function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST | list[ast.stmt]:
        return self.of_class(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Visit what is below, knowing what is around."""
        is_scope = isinstance(node, Scope)
        if isinstance(node, Scope):
            self.around.append(node)
        if isinstance(node, ast.AnnAssign):
            node.value = self.visit(node.value) if node.value is not None else None
        elif not isinstance(node, (ast.JoinedStr, ast.match_case, ast.arg)):
            for field, value in ast.iter_fields(node):
                if isinstance(value, list):
                    value[:] = [new for each in value for new in flat(self._visited(each))]
                elif isinstance(value, ast.AST) and field != "returns":
                    setattr(node, field, self.visit(value))
        if is_scope:
            self.around.pop()
        return node

    def _visited(self, each: object) -> object:
        return self.visit(each) if isinstance(each, ast.AST) else each


def flat(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def name_of(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def call_of(function: ast.expr, *values: ast.expr) -> ast.Call:
    return ast.Call(function, list(values), [])


def negation(condition: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), condition)


def statements(text: str) -> list[ast.stmt]:
    return ast.parse(text).body


def is_function(node: ast.AST) -> TypeGuard[Function]:
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))


def is_test(node: ast.AST) -> TypeGuard[Function]:
    return is_function(node) and node.name.startswith("test")


def own_nodes(function: Function) -> Iterator[ast.AST]:
    """All nodes of a function's body, those of functions within it, too."""
    for statement in function.body:
        yield from ast.walk(statement)


def parameters(function: Function) -> list[ast.arg]:
    args = function.args
    some = (args.vararg, args.kwarg)
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *(each for each in some if each is not None)]


def can_move(function: Function) -> bool:
    """Whether a function's body does the same in another function that gets its arguments."""
    for each in own_nodes(function):
        if isinstance(each, (ast.Yield, ast.YieldFrom, ast.Nonlocal, ast.Global)):
            return False
        if isinstance(each, ast.Name) and each.id in ("super", "__class__", "locals", "vars", "eval", "exec"):
            return False
        name = each.id if isinstance(each, ast.Name) else each.attr if isinstance(each, ast.Attribute) else ""
        if name.startswith("__") and not name.endswith("__"):
            return False
    return True


def docstring(body: list[ast.stmt]) -> tuple[list[ast.stmt], list[ast.stmt]]:
    is_text = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    return (body[:1], body[1:]) if is_text else ([], body)


def _passed(function: Function) -> tuple[list[ast.expr], list[ast.keyword]]:
    """What hands a function's arguments on."""
    args = function.args
    values: list[ast.expr] = [name_of(each.arg) for each in (*args.posonlyargs, *args.args)]
    keywords = [ast.keyword(each.arg, name_of(each.arg)) for each in args.kwonlyargs]
    if args.vararg:
        values.append(ast.Starred(name_of(args.vararg.arg), ast.Load()))
    if args.kwarg:
        keywords.append(ast.keyword(None, name_of(args.kwarg.arg)))
    return values, keywords


def without_defaults(function: Function) -> ast.arguments:
    args = copy.deepcopy(function.args)
    args.defaults, args.kw_defaults = [], [None] * len(args.kwonlyargs)
    return args


def handed_on(function: Function, name: str) -> list[ast.stmt]:
    values, keywords = _passed(function)
    called: ast.expr = ast.Call(name_of(name), values, keywords)
    if isinstance(function, ast.AsyncFunctionDef):
        called = ast.Await(called)
    return [ast.Return(called)]
