"""Cuts a function down to its leading guards, in place: what comes before the first statement that does something.

Guards are conditions that skip, fail, raise or return, and the plain assignments and imports that they read. The code
object is replaced, so that decorators, closures and whoever else holds the function see the short one. Standard library
only.
"""

import ast
import copy
import functools
import inspect
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

_DEVICE_WORDS = (
    "device_count", "is_available", "devices", "gpu", "GPU", "world_size", "cuda", "getDeviceCount", "environ", "skip",
)  # fmt: skip
_done: set[int] = set()


def cut(function: Any) -> bool:
    """Cut a function and what it wraps; False where its source is not to be had."""
    inner = inspect.unwrap(getattr(function, "__func__", function))
    if not isinstance(inner, FunctionType) or id(inner.__code__) in _done:
        return isinstance(inner, FunctionType)
    try:
        code = _short(inner)
    except (OSError, TypeError, SyntaxError, ValueError, IndentationError):
        code = None
    if code is None:
        return False
    try:
        inner.__code__ = code
    except ValueError:  # other free variables: leave it whole, and do not run it
        return False
    _done.add(id(code))
    return True


def _short(function: FunctionType) -> CodeType | None:
    code = function.__code__
    node = _definitions(code.co_filename).get((code.co_name, code.co_firstlineno))
    if node is None:
        return None
    node = copy.copy(node)
    node.args = copy.copy(node.args)
    is_generator = inspect.isgeneratorfunction(function)
    node.decorator_list = []
    node.args.defaults = []
    node.args.kw_defaults = [None for _ in node.args.kwonlyargs]
    node.returns = None
    names = tuple(function.__code__.co_freevars)
    node.body = [*_leading(node.body), *_ending(names, is_generator=is_generator)]
    return _compiled(node, names, function)


@functools.cache
def _definitions(path: str) -> dict[tuple[str, int], "ast.FunctionDef | ast.AsyncFunctionDef"]:
    """The functions of a file by name and first line, that of the first decorator."""
    try:
        tree = ast.parse(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, SyntaxError):
        return {}
    found = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {(each.name, min([each.lineno, *(d.lineno for d in each.decorator_list)])): each for each in found}


def prepare(paths: list[str]) -> None:
    """Parse files before the forks that will cut their functions."""
    for path in paths:
        _definitions(path)


def _leading(body: list[ast.stmt]) -> list[ast.stmt]:
    kept: list[ast.stmt] = []
    for statement in body:
        if not _is_guard(statement):
            break
        kept.append(statement)
    while kept and not isinstance(kept[-1], ast.If | ast.Assert | ast.Raise | ast.Expr):
        kept.pop()  # assignments that no guard reads
    return kept


def _is_guard(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant) or _is_stop(statement) or _is_super(statement.value)
    if isinstance(statement, ast.If):
        return all(_is_guard(each) or _is_stop(each) for each in (*statement.body, *statement.orelse))
    if isinstance(statement, ast.Assert):
        return any(word in ast.unparse(statement.test) for word in _DEVICE_WORDS)
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        return statement.value is not None and _is_cheap(statement.value)
    if isinstance(statement, ast.Raise):
        return "Skip" in ast.unparse(statement)
    if isinstance(statement, ast.Return):
        return statement.value is None or isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.Import | ast.ImportFrom | ast.Pass)


def _is_stop(statement: ast.stmt) -> bool:
    text = ast.unparse(statement)
    return isinstance(statement, ast.Raise | ast.Return) or any(
        word in text for word in ("pytest.skip(", ".skipTest(", "pytest.fail(", "sys.exit(", "SkipTest")
    )


def _is_super(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func) in ("super().setUp", "super().setUpClass")


def _is_cheap(value: ast.expr) -> bool:
    calls = [each for each in ast.walk(value) if isinstance(each, ast.Call)]
    known = (
        "device_count",
        "is_available",
        "min",
        "max",
        "int",
        "len",
        "range",
        "get",
        "getenv",
        "list",
        "str",
        "getDeviceCount",
    )
    return all(ast.unparse(each.func).rpartition(".")[2] in known for each in calls)


def _ending(names: tuple[str, ...], *, is_generator: bool) -> list[ast.stmt]:
    """Mentions every free variable, so that the short code closes over the same ones."""
    mention = ast.parse(f"if False:\n    ({''.join(f'{name}, ' for name in names)})").body if names else []
    return [*mention, *(ast.parse("yield None").body if is_generator else ast.parse("pass").body)]


def _compiled(
    node: ast.FunctionDef | ast.AsyncFunctionDef, names: tuple[str, ...], function: FunctionType
) -> CodeType | None:
    outer = ast.parse(f"def _outer({', '.join(names)}):\n    pass").body[0]
    if not isinstance(outer, ast.FunctionDef):
        return None
    outer.body = [node]
    module = ast.Module(body=[outer], type_ignores=[])
    ast.fix_missing_locations(module)
    made = compile(module, function.__code__.co_filename, "exec", dont_inherit=True)
    code = next((each for each in _codes(made) if each.co_name == node.name), None)
    if code is None or code.co_freevars != names:
        return None
    first = function.__code__.co_firstlineno
    return code.replace(co_firstlineno=first)


def _codes(code: CodeType) -> list[CodeType]:
    found: list[CodeType] = []
    for each in code.co_consts:
        if isinstance(each, CodeType):
            found += [each, *_codes(each)]
    return found
