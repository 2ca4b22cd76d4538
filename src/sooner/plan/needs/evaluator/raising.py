"""What is raised, and what catches it."""

import ast
import builtins
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from sooner.plan.needs.evaluator.matching import Matching
from sooner.plan.needs.evaluator.suspending import Stop, Suspended
from sooner.plan.needs.evaluator.values import (
    MISSING,
    Cls,
    Decided,
    Env,
    Ext,
    Inst,
    Raised,
    Return,
    Skip,
    Soft,
    Unknown,
    exception_name,
    hard,
    is_plain,
    name_of,
)
from sooner.plan.needs.evaluator.ways import perhaps_gone
from sooner.plan.needs.frameworks.outside_kinds import above
from sooner.plan.needs.testing.testing_names import SKIPS, as_raised, is_expected, is_pytest_s_skip

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine
    from sooner.plan.needs.evaluator.trace import Trace
    from sooner.plan.needs.testing.testing_names import Awaiting


class Caught(Decided):
    """An exception of a class from outside: it is known how it was raised.

    Args:
        raised: It.
    """

    __slots__ = ("raised",)

    def __init__(self, raised: Raised | Skip) -> None:
        super().__init__(truth=True)
        self.path = f"{raised.kind}()" if isinstance(raised, Raised) else "SkipTest()"
        self.raised = raised

    def attribute(self, _machine: "Machine", name: str) -> Any:
        """What it follows from is known."""
        if isinstance(self.raised, Skip) or name not in ("__cause__", "__context__"):
            return MISSING
        return self.raised.cause

    def is_a(self, machine: "Machine", kind: Any) -> bool | None:
        """Whether it is of a class; None where that is not known."""
        if isinstance(self.raised, Skip):
            return None
        return True if machine.catches((kind,), self.raised) else False if hasattr(builtins, self.raised.kind) else None


class Raising(Matching):
    """The part of the machine that raises and handles."""

    trying: int
    trace: "Trace"
    awaited: "tuple[Awaiting, ...]"
    built: set[str]

    @abstractmethod
    def run(self, body: Sequence[ast.stmt], env: Env) -> None:
        """Execute statements in order."""

    @abstractmethod
    def is_ignored(self, path: str, line: int) -> bool:
        """Whether what stops a test at a place is not believed."""

    def _do_raise(self, node: ast.Raise, env: Env) -> None:
        path, line = self.place(env, node)
        if node.exc is None:
            raise _again(env.find("__raised__"))
        value = self.ev(node.exc, env)
        if isinstance(value, Caught):
            raise _again(value.raised)
        kind = exception_name(value)
        said = node.exc.args[0] if isinstance(node.exc, ast.Call) and node.exc.args else None
        text = _message(value) or self._said(said, env)
        shown = text or _as_written(said)
        if kind in SKIPS or is_pytest_s_skip(value):
            raise Skip(shown or "SkipTest", path, line)
        if not self.is_ignored(path, line):
            raised = Raised(kind, text, path, line)
            raised.args = (f"{kind}: {shown}" if shown else kind,)
            raised.value = value
            raised.cause = None if node.cause is None else self.ev(node.cause, env)
            raise raised

    def _said(self, said: ast.expr | None, env: Env) -> str:
        """What is raised says, where that is asked for or does nothing: of a class from outside the call is known."""
        if said is None or (not self.awaited and any(isinstance(each, _DOING) for each in ast.walk(said))):
            return ""
        text = hard(self.ev(said, env))
        return text if isinstance(text, str) else ""

    def _do_assert(self, node: ast.Assert, env: Env) -> None:
        is_false = self.truth(self.ev(node.test, env)) is False
        if is_false and not self.is_ignored(*self.place(env, node)):
            raise Raised("AssertionError", ast.unparse(node.test)[:_LONGEST], *self.place(env, node))

    def _do_try(self, node: ast.Try, env: Env) -> None:
        is_suspended = False
        try:
            self._try_and_handle(node, env)
        except Suspended as again:
            is_suspended = True
            again.rest.append(partial(self._finally_after, node, env))
            raise
        finally:
            if not is_suspended:
                self._finally(node, env)

    def _handle_after(self, node: ast.Try, env: Env, stop: Stop) -> None:
        """What follows the body of a `try`, after a `yield` in it."""
        if isinstance(stop, Raised):
            self._handle_if_named(node, stop, env)
        elif stop is not None:
            raise stop
        else:
            self.run(node.orelse, env)

    def _finally_after(self, node: ast.Try, env: Env, stop: Stop) -> None:
        """How a `try` ends, after a `yield` in it."""
        self._finally(node, env)
        if stop is not None:
            raise stop

    def _finally(self, node: ast.Try, env: Env) -> None:
        """What is done in the end: of what it raises only that a device is missing is believed."""
        if node.finalbody:
            try:
                self.run(node.finalbody, env)
            except Skip:
                return
            except Raised as raised:
                if raised.device:
                    raise

    def _try_and_handle(self, node: ast.Try, env: Env) -> None:
        try:
            self._body_of_try(node, env)
        except Raised as raised:
            self._handle_if_named(node, raised, env)
        except Skip as skip:
            if not self._is_handled(node, as_raised(skip), env):
                raise
        else:
            if (fallback := self._fallback(node, env)) is not None:
                self.run(fallback.body, env)
            self.run(node.orelse, env)

    def _fallback(self, node: ast.Try, env: Env) -> ast.ExceptHandler | None:
        """What imports the same names from the tree, where the body imports them from what is compiled or not there.

        Of two implementations of the same the one that can be read tells what either does.
        """
        wanted = set(_imported_names(node.body))
        if not wanted or not all(isinstance(each, ast.ImportFrom) for each in node.body):
            return None
        made = (env.names.get(each) for each in wanted)
        if not any(isinstance(each, Ext) and each.path.rpartition(".")[0] in self.built for each in made):
            return None
        every = (each for each in node.handlers if each.type is None or _IMPORT_ERRORS & _names_in(each.type))
        return next((each for each in every if wanted <= set(_imported_names(each.body))), None)

    def _handle_if_named(self, node: ast.Try, raised: Raised, env: Env) -> None:
        if not self._is_handled(node, raised, env):
            raise raised

    def _is_handled(self, node: ast.Try, raised: Raised, env: Env) -> bool:
        if isinstance(node, ast.TryStar) and "ExceptionGroup" in raised.kind:
            for handler in node.handlers:  # what is in a group is not known
                with perhaps_gone(cast("Machine", self)):
                    self._handle(handler, raised, env)
            return True
        for handler in node.handlers:
            if self._handles(handler, raised, env):
                self._handle(handler, raised, env)
                return True
        return False

    def _body_of_try(self, node: ast.Try, env: Env) -> None:
        self.trying += 1
        try:
            self.run(node.body, env)
        except Suspended as again:
            again.rest.append(partial(self._handle_after, node, env))
            raise
        finally:
            self.trying -= 1

    def _handle(self, handler: ast.ExceptHandler, raised: Raised, env: Env) -> None:
        if handler.name:
            env.names[handler.name] = _caught(raised)
        env.names["__raised__"] = raised
        if raised.kind == "KeyError" and raised.reason.startswith("environment "):
            self._run_by_default(handler.body, env)
        else:
            self.run(handler.body, env)

    def _run_by_default(self, body: Sequence[ast.stmt], env: Env) -> None:
        """What is done where a variable of the environment is not set holds by default only."""
        before = dict(env.names)
        try:
            self.run(body, env)
        except Return as result:
            result.value = softened(result.value)
            raise
        for name, value in list(env.names.items()):
            if before.get(name, MISSING) is not value:
                env.names[name] = softened(value)

    def _handles(self, handler: ast.ExceptHandler, raised: Raised, env: Env) -> bool:
        if raised.skips:
            return handler.type is not None and is_expected(raised, self.ev(handler.type, env))
        if handler.type is None:
            return True
        kinds = self.ev(handler.type, env)
        return self.catches(kinds if isinstance(kinds, tuple | list) else (kinds,), raised)

    def catches(self, kinds: Any, raised: Raised) -> bool:
        """Whether `except kinds` catches an exception."""
        names = {name_of(each) for each in kinds}
        if "" in names and not raised.device:  # what is caught is not known: no doubt about a device that is not there
            return True
        if names & {"Exception", "BaseException"}:
            return raised.kind != "SystemExit" or "BaseException" in names
        if raised.device and names & _OF_CUDA:
            return True
        kind = class_raised(raised)
        if isinstance(kind, Cls) and kind.is_a(*names):
            return True
        return bool(names & (above(raised.kind) | _PARENTS.get(raised.kind, set())))


def _imported_names(body: Sequence[ast.stmt]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, ast.ImportFrom):
            yield from (each.asname or each.name for each in statement.names)


def _names_in(node: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _again(caught: Any) -> Exception:
    """What a bare `raise` raises."""
    if isinstance(caught, Skip):
        return caught
    if not isinstance(caught, Raised):
        return Raised("Exception", "")
    return Skip(caught.reason, caught.path, caught.line) if caught.skips else caught


def _caught(raised: Raised) -> Any:
    """What a handler calls by a name."""
    value = hard(raised.value)
    value = Inst(value) if isinstance(value, Cls) else value
    if isinstance(value, Inst):
        value.attrs["__cause__"] = raised.cause
    return Caught(raised) if isinstance(value, Unknown | Ext) else value


def softened(value: Any) -> Any:
    """A plain value as one that holds by default."""
    return Soft(value) if is_plain(value) else value


def class_raised(raised: Raised) -> Cls | Ext:
    """The class of what is raised, which may be raised itself (`raise ValueError`)."""
    value = hard(raised.value)
    if isinstance(value, Inst):
        return value.cls
    return value if isinstance(value, Cls) else Ext(raised.kind)


def _message(value: Any) -> str:
    text = value.attrs.get("__message__", "") if isinstance(value, Inst) else ""
    return text if isinstance(text, str) else ""


def _as_written(said: ast.expr | None) -> str:
    """What is raised says, as its text is written (`got {device_count()}`)."""
    if not isinstance(said, ast.JoinedStr):
        return ast.unparse(said)[:_LONGEST] if said is not None else ""
    return "".join(map(_part_as_written, said.values))[:_LONGEST]


def _part_as_written(part: ast.expr) -> str:
    return f"{{{ast.unparse(part.value)}}}" if isinstance(part, ast.FormattedValue) else str(ast.literal_eval(part))


_DOING: Final = (ast.Call, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
_LONGEST: Final = 120
_IMPORT_ERRORS: Final = {"ImportError", "ModuleNotFoundError"}
_OF_CUDA: Final = {"CUDARuntimeError", "CUDADriverError", "CudaAPIError", "CudaSupportError"}
"""What CuPy and Numba raise where a device is not there."""
_PARENTS: Final = {
    "OutOfMemoryError": {"RuntimeError"},
    "AcceleratorError": {"RuntimeError"},
    "FileNotFoundError": {"IOError"},
    "CalledProcessError": {"SubprocessError"},
    "CUDARuntimeError": {"RuntimeError"},
}
