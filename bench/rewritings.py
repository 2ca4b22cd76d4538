"""Ways to write a module of tests otherwise that say the same: what `needs_rewritten.py` asks about.

Each takes a syntax tree that it may change, and gives the modules that stand for the one, by what is put before its
name (`""` for itself), or None where it finds nothing to write otherwise. Where a rewriting might change what a module
does (names of its own class, `super()` in a function that moves, `__all__`), that part is left as it is.
"""

import ast
import builtins
import copy
import re
from collections import Counter
from collections.abc import Callable
from typing import Final

from rewriting import (
    Function,
    Modules,
    Rewriter,
    assign,
    by,
    call_of,
    can_move,
    docstring,
    flat,
    handed_on,
    is_function,
    is_test,
    name_of,
    negation,
    own_nodes,
    parameters,
    statements,
    without_defaults,
)

MOVED: Final = "moved_"
_BLOCKS: Final = (
    "if True:\n    pass",
    "try:\n    pass\nfinally:\n    pass",
    "with __import__('contextlib').nullcontext():\n    pass",
    "for _only in (None,):\n    pass",
)
_DECOYS: Final = """
def _never_called_{k}():
    import torch
    import torch.distributed
    torch.distributed.init_process_group("nccl", world_size=8)
    torch.zeros(1, device="cuda:7")
if False:
    raise RuntimeError("eight GPUs are needed")
"""
_SKIPS: Final = {"skipIf": "skipUnless", "skipUnless": "skipIf"}
_GUARDS: Final = ("skipIf", "skipUnless", "skipif")


def rewriting(name: str) -> Callable[[ast.Module], Modules | None]:
    """One of `REWRITINGS`, which leaves the tree that it gets as it is."""

    def rewritten(tree: ast.Module) -> Modules | None:
        return _REWRITINGS[name](copy.deepcopy(tree))

    return rewritten


def _plain(tree: ast.Module) -> Modules:
    return {"": tree}


class _Constants(Rewriter):
    """`f(4)` is `f(_VALUE)`, and so are texts that a call gets and what is compared with."""

    def __init__(self) -> None:
        super().__init__()
        self._names: dict[tuple[type, object], str] = {}

    def _named(self, value: ast.expr) -> ast.expr:
        if not isinstance(value, ast.Constant) or type(value.value) not in (int, str) or not value.value:
            return value
        key = (type(value.value), value.value)
        if key not in self._names:
            self._names[key] = self.new("VALUE")
            self.top.append(assign(self._names[key], value))
        return name_of(self._names[key])

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        node.args = [self._named(each) for each in node.args]
        for each in node.keywords:
            each.value = self._named(each.value)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        node.comparators = [self._named(each) for each in node.comparators]
        return node


class _Conditions(Rewriter):
    """`if c:` is `condition = c`, `if condition:`."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if self.around and isinstance(self.around[-1], ast.ClassDef):
            return node
        name = self.new("condition")
        condition, node.test = node.test, name_of(name)
        return [assign(name, condition), node]


class _Negated(Rewriter):
    """`skipIf(c)` is `skipUnless(not c)`, `if c: a, else: b` begins with `not c`, `assert c` is an `if` that raises."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _SKIPS and len(node.args) == 2:
            node.func.attr, node.args[0] = _SKIPS[node.func.attr], negation(node.args[0])
            self.count += 1
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        node.test, node.body, node.orelse = negation(node.test), node.orelse or [ast.Pass()], node.body
        self.count += 1
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        self.count += 1
        error = call_of(name_of("AssertionError"), *([node.msg] if node.msg else []))
        return ast.If(negation(node.test), [ast.Raise(error)], [])


class _Expressions(Rewriter):
    """`x = a if c else b` and `return a if c else b` are statements."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.value, ast.IfExp):
            return node
        self.count += 1
        ways = [ast.Assign(copy.deepcopy(node.targets), each) for each in (node.value.body, node.value.orelse)]
        return ast.If(node.value.test, ways[:1], ways[1:])

    def visit_Return(self, node: ast.Return) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if not isinstance(node.value, ast.IfExp):
            return node
        self.count += 1
        return [ast.If(node.value.test, [ast.Return(node.value.body)], []), ast.Return(node.value.orelse)]


class _Applied(Rewriter):
    """`@d` above `def f` is `f = d(f)` below it."""

    def _apply(self, node: Function | ast.ClassDef) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        names = {each.id for one in node.decorator_list for each in ast.walk(one) if isinstance(each, ast.Name)}
        if not node.decorator_list or node.name in names:
            return node
        self.count += 1
        value: ast.expr = name_of(node.name)
        for each in reversed(node.decorator_list):
            value = call_of(each, value)
        node.decorator_list = []
        return [node, assign(node.name, value)]  # type: ignore[list-item]

    of_function = of_class = _apply


class _Hoisted(Rewriter):
    """`@d(...)` is `@mark`, with `mark = d(...)` before it."""

    def _hoist(self, node: Function | ast.ClassDef) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        before: list[ast.stmt] = []
        for number, each in enumerate(node.decorator_list):
            if isinstance(each, ast.Call):
                name = self.new("mark")
                before.append(assign(name, each))
                node.decorator_list[number] = name_of(name)
        return [*before, node]  # type: ignore[list-item]

    of_function = of_class = _hoist


class _Blocks(Rewriter):
    """Bodies of functions lie in an `if True`, a `try`, a `with` or a loop of one turn."""

    def of_function(self, node: Function) -> ast.AST:
        self.generic_visit(node)
        text, body = docstring(node.body)
        if not body:
            return node
        (block,) = statements(_BLOCKS[self.count % len(_BLOCKS)])
        self.count += 1
        block.body = body  # type: ignore[attr-defined]
        node.body = [*text, block]
        return node


class _Outlined(Rewriter):
    """A test's body is a function of the module's, which the test calls."""

    def __init__(self) -> None:
        super().__init__()
        self._made: list[ast.stmt] = []

    def of_function(self, node: Function) -> ast.AST | list[ast.stmt]:
        if not is_test(node) or self.is_in_function or not can_move(node):
            return node
        text, body = docstring(node.body)
        if not body:
            return node
        name = self.new("work")
        made = type(node)(name, without_defaults(node), body, [])  # type: ignore[call-arg]
        node.body = [*text, *handed_on(node, name)]
        if self.around:
            self._made.append(made)
            return node
        return [made, node]

    def of_class(self, node: ast.ClassDef) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if self.around:
            return node
        made, self._made = self._made, []
        return [*made, node]


class _Inner(Rewriter):
    """A test's body is a function within it, which it calls."""

    def of_function(self, node: Function) -> ast.AST:
        if not is_test(node) or not can_move(node):
            return node
        text, body = docstring(node.body)
        names = {each.arg for each in parameters(node)}
        stored = {
            each.id for each in own_nodes(node) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
        }
        if not body or stored & names:
            return node
        name = self.new("run")
        made = type(node)(name, ast.arguments([], [], None, [], [], None, []), body, [])  # type: ignore[call-arg]
        call: ast.expr = call_of(name_of(name))
        node.body = [*text, made, ast.Expr(ast.Await(call) if isinstance(node, ast.AsyncFunctionDef) else call)]
        return node


class _Pieces(Rewriter):
    """A class is one that inherits all from another that has its body."""

    def __init__(self, passed: frozenset[str]) -> None:
        super().__init__()
        self._passed = passed

    def of_class(self, node: ast.ClassDef) -> ast.AST | list[ast.stmt]:
        inside = {each.id for one in node.body for each in ast.walk(one) if isinstance(each, ast.Name)}
        is_plain = not self.around and not node.decorator_list and not node.keywords
        if not is_plain or node.name in inside | self._passed or not any(map(is_test, node.body)):
            return node
        name = self.new(f"piece_of_{node.name}")
        whole = ast.ClassDef(node.name, [name_of(name)], [], [ast.Pass()], [])  # type: ignore[call-arg]
        node.name = name
        return [node, whole]


def _pieces(tree: ast.Module) -> Modules | None:
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
    passed = {each.id for call in calls for one in call.args for each in ast.walk(one) if isinstance(each, ast.Name)}
    return by(lambda: _Pieces(frozenset(passed)))(tree)


def _elsewhere(tree: ast.Module) -> Modules | None:
    """The module's text is in another beside it, from which it imports all."""
    top = [each for each in tree.body if is_function(each) or isinstance(each, (ast.Assign, ast.ClassDef))]
    names = {each.name for each in top if not isinstance(each, ast.Assign)}
    names |= {
        one.id for each in top if isinstance(each, ast.Assign) for one in each.targets if isinstance(one, ast.Name)
    }
    hidden = [each for each in top if is_function(each) and each.name.startswith("_")]
    is_hidden_fixture = any("fixture" in ast.unparse(one) for each in hidden for one in each.decorator_list)
    own = any(isinstance(each, ast.Name) and each.id in ("__name__", "__file__") for each in ast.walk(tree))
    if "__all__" in names or "load_tests" in names or is_hidden_fixture or own:
        return None
    return {"": ast.parse("from . import *"), MOVED: tree}


class _Wrapped(Rewriter):
    """A test has one more decorator, which calls it."""

    def of_function(self, node: Function) -> ast.AST:
        is_plain = isinstance(node, ast.FunctionDef) and not any(
            isinstance(each, (ast.Yield, ast.YieldFrom)) for each in own_nodes(node)
        )
        if not is_test(node) or self.is_in_function or not is_plain:
            return node
        if not self.count:
            self.top = statements(
                "import functools as _functools\n"
                "def _called(function):\n"
                "    @_functools.wraps(function)\n"
                "    def inner(*args, **kwargs):\n"
                "        return function(*args, **kwargs)\n"
                "    return inner\n"
            )
        self.count += 1
        is_static = any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in node.decorator_list)
        if not is_static:
            node.decorator_list.append(name_of("_called"))
        return node


class _Values(Rewriter):
    """Parameters' values are a list to which they are added one by one."""

    def _list(self, node: Function | ast.ClassDef) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        before: list[ast.stmt] = []
        for each in node.decorator_list:
            if not isinstance(each, ast.Call) or not ast.unparse(each.func).endswith("parametrize"):
                continue
            if len(each.args) < 2 or not isinstance(each.args[1], (ast.List, ast.Tuple)):
                continue
            name, values = self.new("values"), each.args[1].elts
            add = ast.Attribute(name_of(name), "append", ast.Load())
            if not any(isinstance(one, ast.Starred) for one in values):
                before.append(assign(name, ast.List([], ast.Load())))
                before.extend(ast.Expr(call_of(copy.deepcopy(add), one)) for one in values)
                each.args[1] = name_of(name)
        return [*before, node]  # type: ignore[list-item]

    of_function = of_class = _list


class _Functions(Rewriter):
    """`skipIf(c)` is `skipIf(condition())`, with a function that returns `c`."""

    def __init__(self, of_classes: frozenset[str]) -> None:
        super().__init__()
        self._of_classes = of_classes
        self._made: list[ast.stmt] = []

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name not in _GUARDS or not node.args or self.is_in_function or isinstance(node.args[0], ast.Constant):
            return node
        used = {each.id for each in ast.walk(node.args[0]) if isinstance(each, ast.Name)}
        if any(isinstance(each, ast.Lambda) for each in ast.walk(node.args[0])) or used & self._of_classes:
            return node
        made = self.new("condition")
        self._made.extend(statements(f"def {made}():\n    return {ast.unparse(node.args[0])}"))
        node.args[0] = call_of(name_of(made))
        return node

    def visit(self, node: ast.AST) -> object:
        """Put what was made before the statement of the module's."""
        found = super().visit(node)
        if self.around or not self._made or not isinstance(node, ast.stmt):
            return found
        made, self._made = self._made, []
        return [*made, *flat(found)]


def _functions(tree: ast.Module) -> Modules | None:
    classes = [each for each in ast.walk(tree) if isinstance(each, ast.ClassDef)]
    names = {
        one.id
        for each in classes
        for one in ast.walk(each)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }
    names |= {one.name for each in classes for one in each.body if is_function(one)}
    return by(lambda: _Functions(frozenset(names)))(tree)


class _Getattr(Rewriter):
    """`a.b()` is `getattr(a, "b")()`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        is_super = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value).startswith("super(")
        if isinstance(node.func, ast.Attribute) and not is_super and not node.func.attr.startswith("__"):
            self.count += 1
            node.func = call_of(name_of("getattr"), node.func.value, ast.Constant(node.func.attr))
        return node


class _Loops(Rewriter):
    """`for x in y` is `while True` with `next`."""

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if node.orelse or not self.is_in_function:
            return node
        name = self.new("items")
        (loop,) = statements("while True:\n    try:\n        x = next(y)\n    except StopIteration:\n        break")
        assert isinstance(loop, ast.While)
        assert isinstance(loop.body[0], ast.Try)
        loop.body[0].body = [ast.Assign([node.target], call_of(name_of("next"), name_of(name)))]
        loop.body.extend(node.body)
        return [assign(name, call_of(name_of("iter"), node.iter)), loop]


class _Contexts(Rewriter):
    """`with a as x, b:` is a stack that enters them."""

    def visit_With(self, node: ast.With) -> ast.AST:
        self.generic_visit(node)
        name = self.new("stack")
        entered: list[ast.stmt] = []
        for each in node.items:
            call = call_of(ast.Attribute(name_of(name), "enter_context", ast.Load()), each.context_expr)
            entered.append(ast.Assign([each.optional_vars], call) if each.optional_vars else ast.Expr(call))
        stack = ast.parse("__import__('contextlib').ExitStack()", mode="eval").body
        return ast.With([ast.withitem(stack, ast.Name(name, ast.Store()))], [*entered, *node.body])


class _Decoys(Rewriter):
    """Tests have code that never runs."""

    def of_function(self, node: Function) -> ast.AST:
        self.generic_visit(node)
        if is_test(node):
            text, body = docstring(node.body)
            self.count += 1
            node.body = [*text, *statements(_DECOYS.format(k=self.count)), *body]
        return node


class _Spread(Rewriter):
    """`f(a, b=c)` is `f(*(a,), **{"b": c})`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if node.args and not any(isinstance(each, (ast.Starred, ast.GeneratorExp)) for each in node.args):
            self.count += 1
            node.args = [ast.Starred(ast.Tuple(node.args, ast.Load()), ast.Load())]
        if node.keywords and all(each.arg for each in node.keywords):
            self.count += 1
            keys: list[ast.expr | None] = [ast.Constant(each.arg) for each in node.keywords]
            node.keywords = [ast.keyword(None, ast.Dict(keys, [each.value for each in node.keywords]))]
        return node


class _Unannotated(Rewriter):
    """Functions have no annotations."""

    def of_function(self, node: Function) -> ast.AST:
        self.generic_visit(node)
        self.count += node.returns is not None
        node.returns = None
        for each in parameters(node):
            self.count += each.annotation is not None
            each.annotation = None
        return node


class _Aliases(Rewriter):
    """What is imported has another name."""

    def __init__(self, kept: frozenset[str]) -> None:
        super().__init__()
        self._kept = kept
        self._names: dict[str, str] = {}

    def _alias(self, node: ast.Import | ast.ImportFrom) -> ast.AST:
        if self.around or getattr(node, "module", "") == "__future__":
            return node
        for each in node.names:
            name = each.asname or each.name
            if "." not in name and name != "*" and name not in self._kept:
                self.count += 1
                self._names[name] = each.asname = f"{name}_"
        return node

    def visit_Import(self, node: ast.Import) -> ast.AST:
        return self._alias(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        return self._alias(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._names.get(node.id, node.id)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        for each in ast.walk(node):
            if isinstance(each, ast.Name):
                self.visit_Name(each)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        if node.annotation is not None:
            node.annotation = self.visit(node.annotation)
        return node


def _aliases(tree: ast.Module) -> Modules | None:
    """Names that are bound anywhere but by one import, that pytest finds by name, or that a text has, stay."""
    kept, bound = set(dir(builtins)), Counter[str]()
    for each in ast.walk(tree):
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            kept.add(each.id)
        elif isinstance(each, ast.arg):
            kept.add(each.arg)
        elif isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            kept.add(each.name)
        elif isinstance(each, (ast.Global, ast.Nonlocal)):
            kept.update(each.names)
        elif isinstance(each, ast.ExceptHandler):
            kept.add(each.name or "")
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            kept.update(re.findall(r"\w+", each.value))
        elif isinstance(each, ast.alias):
            name = (each.asname or each.name).partition(".")[0]
            bound[name] += 1
            if re.match(r"(?i)test|_|pytest_|setup|teardown", name):
                kept.add(name)
    kept.update(name for name, number in bound.items() if number > 1)
    imports = [each for each in tree.body if isinstance(each, (ast.Import, ast.ImportFrom))]
    own = {one.asname or one.name for each in imports for one in each.names}
    kept.update(name for name in bound if name not in own)
    kept.update(each.arg for node in ast.walk(tree) if isinstance(node, ast.arguments) for each in node.args)
    return by(lambda: _Aliases(frozenset(kept)))(tree)


class _Nested(Rewriter):
    """`if a and b:` is two of them, and what follows an `if c: return` lies in an `if not c`."""

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.test, ast.BoolOp) or not isinstance(node.test.op, ast.And) or node.orelse:
            return node
        self.count += 1
        body = node.body
        for each in reversed(node.test.values):
            body = [ast.If(each, body, [])]
        return body[0]

    def of_function(self, node: Function) -> ast.AST:
        for number, each in enumerate(node.body):
            is_return = isinstance(each, ast.If) and len(each.body) == 1 and isinstance(each.body[0], ast.Return)
            if isinstance(each, ast.If) and is_return and not each.orelse and each.body[0].value is None:  # type: ignore[attr-defined]
                self.count += 1
                rest = node.body[number + 1 :] or [ast.Pass()]
                node.body[number:] = [ast.If(negation(each.test), rest, [])]
                break
        return self.generic_visit(node)


class _Raised(Rewriter):
    """`pytest.skip(...)` and `self.skipTest(...)` in a function are `raise`."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        call = node.value
        if not isinstance(call, ast.Call) or not self.is_in_function:
            return self.generic_visit(node)
        name = ast.unparse(call.func)
        reason = [*call.args, *(each.value for each in call.keywords if each.arg in ("reason", "msg"))][:1]
        if name == "pytest.skip":
            self.count += 1
            return ast.Raise(call_of(ast.parse("pytest.skip.Exception", mode="eval").body, *reason))
        if name == "self.skipTest":
            self.count += 1
            return ast.Raise(call_of(ast.parse("__import__('unittest').SkipTest", mode="eval").body, *reason))
        return self.generic_visit(node)


class _Comprehensions(Rewriter):
    """`x = [e for y in z if c]` in a function is a loop."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        value, target = node.value, node.targets[0]
        if not isinstance(value, ast.ListComp) or not self.is_in_function or not isinstance(target, ast.Name):
            return self.generic_visit(node)
        own = {each.id for one in value.generators for each in ast.walk(one.target) if isinstance(each, ast.Name)}
        others = [each for each in ast.walk(self.around[0]) if isinstance(each, (ast.Name, ast.arg))]
        inside = {id(each) for each in ast.walk(value)}
        used = {each.id if isinstance(each, ast.Name) else each.arg for each in others if id(each) not in inside}
        mine = {each.id for each in ast.walk(value) if isinstance(each, ast.Name)}
        if own & used or target.id in mine or any(each.is_async for each in value.generators):
            return node
        self.count += 1
        add = call_of(ast.Attribute(name_of(target.id), "append", ast.Load()), value.elt)
        body: list[ast.stmt] = [ast.Expr(add)]
        for each in reversed(value.generators):
            for condition in reversed(each.ifs):
                body = [ast.If(condition, body, [])]
            body = [ast.For(each.target, each.iter, body, [])]  # type: ignore[call-arg]
        return [assign(target.id, ast.List([], ast.Load())), *body]


_REWRITINGS: Final[dict[str, Callable[[ast.Module], Modules | None]]] = {
    "plain": _plain,
    "constants": by(_Constants),
    "conditions": by(_Conditions),
    "negated": by(_Negated),
    "expressions": by(_Expressions),
    "applied": by(_Applied),
    "hoisted": by(_Hoisted),
    "blocks": by(_Blocks),
    "outlined": by(_Outlined),
    "inner": by(_Inner),
    "pieces": _pieces,
    "elsewhere": _elsewhere,
    "wrapped": by(_Wrapped),
    "values": by(_Values),
    "functions": _functions,
    "getattr": by(_Getattr),
    "loops": by(_Loops),
    "contexts": by(_Contexts),
    "decoys": by(_Decoys),
    "spread": by(_Spread),
    "unannotated": by(_Unannotated),
    "aliases": _aliases,
    "nested": by(_Nested),
    "raised": by(_Raised),
    "comprehensions": by(_Comprehensions),
}
REWRITINGS: Final = tuple(_REWRITINGS)
"""The names of all."""
