"""pytest and unittest: skips, marks, fixtures, environment variables."""

import ast
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.counted import uncounted
from sooner.plan.needs.evaluator.suspending import Stop
from sooner.plan.needs.evaluator.trace import HAVING_NO_HOST
from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Args,
    Bound,
    Cls,
    Ext,
    Func,
    Function,
    Inst,
    Kwargs,
    Mark,
    Native,
    Param,
    Raised,
    Skip,
    Soft,
    Unknown,
    hard,
    name_of,
)
from sooner.plan.needs.frameworks.unseen import need_for_import
from sooner.plan.needs.syntax import last_name
from sooner.plan.needs.testing.afterwards import calling_later
from sooner.plan.needs.testing.replacing import OF_RANKS, UNLAUNCHED, Untold
from sooner.plan.needs.testing.told_devices import devices_named

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

SWALLOWING: Final = (
    "raises",
    "assertRaises",
    "assertRaisesRegex",
    "assertRaisesRegexp",
    "suppress",
    "deprecated_call",
)
_OF_DEVICES: Final = ("Exception", "Runtime", "Assertion", "Cuda", "CUDA", "Driver", "Backend", "Unsupported")
"""Parts of the names of what is raised where a device is missing."""
_NO_DEVICE: Final = (
    "No CUDA GPUs are available", "Torch not compiled with CUDA enabled", "Found no NVIDIA driver on your system.",
    "CUDA error: invalid device ordinal", "Invalid device id", "Duplicate GPU detected",
    "ProcessGroupNCCL is only supported with GPUs, no GPUs found!",
    "cudaErrorNoDevice: no CUDA-capable device is detected", "cudaErrorInvalidDevice: invalid device ordinal",
    "The device index is out of range. It must be in [0, 1), but got 1.",
    "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.",
    "Attempting to deserialize object on CUDA device 1 but torch.cuda.device_count() is 1.",
    "compiling computation that requires 2 logical devices, but only 1 XLA devices are available (num_replicas=2)",
    "Number of devices 1 must equal the product of mesh_shape (2,)",
    "Number of devices 1 must be >= the product of mesh_shape (2,)",
)  # fmt: skip
"""What PyTorch, NCCL and CUDA say where a device is missing."""
_SAYS_WHEN: Final = re.compile(r"(?:^|_)skip_?(?:test_?)?(if|unless)$", re.IGNORECASE)
_GUARDS: Final = re.compile(
    "skip|only|need|requir|supported|gpu|cuda|rocm|nccl|device|accelerator|rank|world|multi|distributed", re.IGNORECASE
)
"""Words in the name of a decorator that may skip for lack of devices."""
SKIPS: Final = ("SkipTest", "Skipped", "SkippedTest")
"""What unittest's skip, and pytest's, is called as an exception."""
_OTHER_ERROR: Final = Ext("OtherError")
"""An error whose message is none of these."""
_MISTAKES: Final = re.compile(r"^(Value|Type|Name|Index|Key|NotImplemented)Error$|Tracer|Concretization")
"""Names of what is raised where a computation is put together wrongly."""


def apply_mark(target: Any, mark: Mark) -> None:
    """Put a mark on a function or class; classes do not share theirs with their bases."""
    while isinstance(target, Bound):
        target = target.func
    if isinstance(target, Func | Cls):
        before = own_marks(target)
        if mark.wraps and hard(condition_of(mark)) is True:  # what absl has made of a test is no longer seen
            before = [each for each in before if not isinstance(each, Mark) or each.name != "__absl__"]
        target.attrs["pytestmark"] = [*before, mark]


def is_expanded(value: Any) -> bool:
    """Whether `parameterized.expand` has made cases of a function: they are other functions, as it was then."""
    return isinstance(value, Func) and any(
        isinstance(each, Mark) and each.name == "__expand__" for each in own_marks(value)
    )


def own_marks(target: Func | Cls) -> list[Any]:
    """The marks of a function or class itself: a class may name one of them, or several (`pytestmark = ...`)."""
    marks = hard(target.attrs.get("pytestmark", []))
    return list(marks) if isinstance(marks, list | tuple) else [marks]


def skip_as_wrapped(machine: "Machine", func: Func) -> None:
    """Unittest's skips wrap a function: whoever calls it, be it `setUp` or a helper, is skipped.

    Raises:
        Skip: It is decorated so, and the condition holds.
    """
    for mark in own_marks(func):
        if not isinstance(mark, Mark) or not mark.wraps:
            continue
        condition = condition_of(mark)
        soft = isinstance(condition, Soft)
        if machine.truth(condition) and not (soft and machine.is_ignored(mark.path, mark.line)):
            raise Skip(reason_of(mark), mark.path, mark.line, soft=soft)


def condition_of(mark: Mark) -> Any:
    """The condition under which a mark (`skip`, `skipif`) skips."""
    return True if mark.name == "skip" else mark.args[0] if mark.args else mark.kwargs.get("condition")


def reason_of(mark: Mark) -> str:
    """Why a mark skips."""
    value = hard(mark.kwargs.get("reason", mark.args[-1] if mark.args else ""))
    return value if isinstance(value, str) else mark.name


def mark_now(machine: "Machine", target: Any, mark: Mark) -> None:
    """A decorator gives a test a mark; a way that only skips is not gone where another may be."""
    skips = is_sure_to_skip(mark.name, mark.args)
    if machine.forks and skips:
        machine.guesses += 1
    else:
        apply_mark(target, by_default(mark) if machine.defaults and skips else mark)


def by_default(mark: Mark) -> Mark:
    """A mark that skips, where that holds by default only."""
    return Mark("skipif", (Soft(True),), {"reason": reason_of(mark)}, mark.path, mark.line, wraps=mark.wraps)


def is_sure_to_skip(name: str, args: Sequence[Any]) -> bool:
    """Whether a mark skips whatever is visible: `skip`, or `skipif` with `True` for a condition."""
    return name == "skip" or (name == "skipif" and bool(args) and args[0] is True)


def _marker(name: str) -> Function:
    """A decorator factory of unittest's (`skipIf(condition, reason)`), as a mark."""

    def called(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
        if len(args) == 1 and isinstance(args[0], Func | Cls):
            apply_mark(args[0], Mark(name, (), {}, *machine.current))
            return args[0]
        return Mark(name, tuple(args), kwargs, *machine.current, wraps=name == "skipif")

    return called


def _skip_unless(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    condition = args[0] if args else kwargs.get("condition", UNKNOWN)
    truth = machine.truth(condition)
    turned: Any = UNKNOWN if truth is None else not truth
    if isinstance(condition, Soft) and truth is not None:
        turned = Soft(turned)
    reason = args[1] if len(args) > 1 else kwargs.get("reason", "")
    return Mark("skipif", (turned,), {"reason": reason}, *machine.current, wraps=True)


def skipping(machine: "Machine", path: str, args: Args, kwargs: Kwargs) -> Mark | None:
    """A decorator of which only the name is known, and that says when it skips (`skip_test_if(condition)`)."""
    found = _SAYS_WHEN.search(path.rpartition(".")[2])
    condition = args[0] if args else kwargs.get("condition", kwargs.get("cond", UNKNOWN))
    if found is None or machine.truth(condition) is None or isinstance(hard(condition), str | Func | Cls):
        return None
    if found[1].lower() == "unless":
        made: Mark = _skip_unless(machine, [condition], {})
        return made
    return Mark("skipif", (condition,), {}, *machine.current)


def may_guard(name: str) -> bool:
    """Whether the name of a decorator or a mark speaks of devices or guards."""
    return _GUARDS.search(name) is not None


def is_guard_call(node: ast.Call) -> bool:
    """Whether the name of what is called says that it skips: `skip_if_fewer_than(4)`, `require_fabric()`."""
    return last_name(node.func).lstrip("_").startswith(("skip", "require", "need"))


def doubt_guard(machine: "Machine", path: str, target: Any) -> None:
    """A decorator of which nothing is known but a name that speaks of devices or guards: the test may be skipped.

    With fewer devices than its name wants it most likely is.
    """
    name = path.replace("()", "").rpartition(".")[2]
    if may_guard(name):
        skips = True if machine.visible() < (devices_named(name) or 0) else UNKNOWN
        apply_mark(target, Mark("skipif", (skips,), {"reason": f"what {name} does is not known"}, *machine.current))


def _skip(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    reason = hard(args[0]) if args else hard(kwargs.get("reason", kwargs.get("msg", "")))
    text = reason if isinstance(reason, str) else "skipped"
    if machine.loading and machine.truth(kwargs.get("allow_module_level", False)) is False:
        # pytest refuses: "Using pytest.skip outside of a test will skip the entire module ... use allow_module_level"
        raise Raised("CollectError", f"pytest.skip without allow_module_level: {text}", *machine.current)
    raise Skip(text, *machine.current)


def _unittest_skip(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    if args and isinstance(args[0], Cls):  # a class is taken for the reason: a function is left, and no test
        args[0].attrs["__test__"] = False
        return args[0]
    if args and isinstance(args[0], Func):
        mark_now(machine, args[0], Mark("skip", (), {}, *machine.current, wraps=True))
        return args[0]
    return Mark("skip", tuple(args), {}, *machine.current, wraps=True)


def _fail(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    raise Raised("Failed", str(hard(args[0])) if args and isinstance(hard(args[0]), str) else "fail", *machine.current)


def _xfail(machine: "Machine", _args: Args, _kwargs: Kwargs) -> Any:
    raise Raised("XFailed", "expected to fail", *machine.current)


def _param(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    marks = hard(kwargs.get("marks", []))
    return Param(tuple(args), machine.items_of(marks) or ([marks] if isinstance(marks, Mark) else []), kwargs.get("id"))


def _fixture(_machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    if args and isinstance(args[0], Func):
        args[0].attrs["__fixture__"] = {}
        return args[0]

    def decorate(inner: Args, _names: Kwargs) -> Any:
        func = inner[0] if inner else UNKNOWN
        if isinstance(func, Func | Cls):
            func.attrs["__fixture__"] = dict(kwargs)
        return func

    return Native("fixture", decorate)


def _import_or_skip(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    name = hard(args[0]) if args else None
    if isinstance(name, str) and machine.rules.is_absent(name):
        raise Skip(f"could not import {name!r}", *machine.current)
    if isinstance(name, str):
        need_for_import(machine, name)
    return Ext(name) if isinstance(name, str) else UNKNOWN


def _expand(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`@parameterized.expand([...])`, or of a function that gives the cases."""
    given = args[0] if args else kwargs.get("input", UNKNOWN)
    cases = machine.items_of(machine.call(given, [], {}) if isinstance(hard(given), Func) else given)
    return Mark("__expand__", (cases,), kwargs, *machine.current)


def _absl(kind: str) -> Function:
    def called(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
        return Mark("__absl__", (kind, args), kwargs, *machine.current)

    return called


def environment_value(machine: "Machine", name: str, default: Any = None) -> Any:
    """The value of an environment variable: what the test set, what a rule says, or the default, softly."""
    given = machine.environment.get(name)
    is_asked = machine.quiet and name in OF_RANKS and default is not MISSING  # by the library, which goes on without
    if name in machine.environment and given is not MISSING and not (is_asked and isinstance(given, Untold)):
        return given
    if given is not MISSING and name in OF_RANKS and UNLAUNCHED in machine.environment:
        return Unknown(f"os.environ[{name}]")
    rule = machine.rules.environment.get(name) if given is not MISSING and not is_asked else None
    if rule is not None:
        if rule.ranks:
            machine.trace.among = uncounted(hard(machine.natives.value_of(rule, "ranks", [], {})))
        return machine.natives.value_of(rule, "value", [], {})
    if default is MISSING:
        return MISSING
    return machine.soft(default) if not isinstance(default, Unknown | Ext) else default


# unittest's methods


def unittest_method(machine: "Machine", value: Any, name: str) -> Any:
    """A method of `unittest.TestCase`, or MISSING."""
    if name == "skipTest":
        return Native(name, lambda args, kwargs: _skip(machine, args, {**kwargs, "allow_module_level": True}))
    if name in SWALLOWING:
        return Native(name, lambda args, _kwargs: _raising(machine, name, args))
    if name == "fail":
        return Native(name, lambda args, kwargs: _fail(machine, args, kwargs))
    check = _CHECKS.get(name)
    if check is not None:
        return Native(name, lambda args, _kwargs: _checked(machine, name, check, args))
    if name == "subTest":
        return Native(name, lambda _args, _kwargs: Part())
    if name in ("assertWarns", "assertLogs", "assertWarnsRegex", "assertNoLogs"):
        return Native(name, lambda _args, _kwargs: UNKNOWN)
    if name in ("addCleanup", "addAsyncCleanup"):
        return calling_later(machine, name)
    if name in ("enterContext", "enter_context"):  # unittest, absl
        return Native(name, lambda args, _kwargs: _entered(machine, args[0]) if args else None)
    return _name_of_method(value, name)


def _name_of_method(value: Any, name: str) -> Any:
    """What a test case knows of the test that it is made for, or MISSING."""
    if name == "_testMethodName" and isinstance(value, Inst):
        return value.attrs.get("__method__", UNKNOWN)
    if name == "id" and isinstance(value, Inst) and "__method__" in value.attrs:
        return Native(name, lambda _args, _kwargs: _id_of(value))
    return MISSING


def _id_of(case: Inst) -> Any:
    """What unittest calls a test, from the module on."""
    cls, method = case.cls, case.attrs.get("__method__")
    return f"{cls.module.name}.{cls.within}{cls.name}.{method}" if isinstance(method, str) else UNKNOWN


def _entered(machine: "Machine", context: Any) -> Any:
    """A context that is left after the test."""
    given, leave = machine.enter(context)

    def left(_stop: Stop) -> None:
        leave(None)

    machine.unfinished += (([left], not machine.forks),)
    return given


def _raising(machine: "Machine", name: str, args: Args) -> Any:
    """`assertRaises(X, f, ...)` calls; `with assertRaises(X)` swallows."""
    skip = 2 if "Regex" in name else 1
    pattern = args[1] if skip > 1 and len(args) > 1 else None
    return _raising_of(machine, name, args[0] if args else UNKNOWN, pattern, args[skip:])


def _pytest_raises(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    expected = args[0] if args else kwargs.get("expected_exception", UNKNOWN)
    return _raising_of(machine, "raises", expected, kwargs.get("match"), args[1:])


def _raising_of(machine: "Machine", name: str, kinds: Any, pattern: Any, called: Args) -> Any:
    expected = kinds if _may_be_of_devices(pattern) else _OTHER_ERROR
    context = Awaiting(name, kinds, expected, hard(pattern))
    if not called:
        return context
    with context.around(machine):
        try:
            machine.call(called[0], called[1:], {})
        except Raised as raised:
            if not is_awaited(machine, raised, expected) and not context.is_said(machine, raised):
                raise
    return None


class Part(Native):
    """A part of a test (`self.subTest(...)`, `subtests.test(...)`): one that is skipped leaves the others."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("part", lambda _args, _kwargs: UNKNOWN)

    def left(self, machine: "Machine", raised: Raised | None) -> bool:
        """It is over; whether what was raised ends with it."""
        if raised is None:
            machine.trace.parts += 1
        elif raised.skips and machine.trace.left_out is None:
            machine.trace.left_out = Skip(raised.reason, raised.path, raised.line)
        return raised is not None and raised.skips


class Awaiting(Native):
    """What swallows exceptions of some kinds that work inside of it is expected to raise."""

    __slots__ = ("kinds", "pattern")

    def __init__(self, name: str, kinds: Any, expected: Any, pattern: Any) -> None:
        super().__init__(name, lambda _args, _kwargs: expected)
        self.kinds = kinds
        self.pattern = pattern

    @contextmanager
    def around(self, machine: "Machine") -> Iterator[None]:
        """What is evaluated now is expected to raise."""
        before, machine.awaited = machine.awaited, (*machine.awaited, self)
        try:
            yield
        finally:
            machine.awaited = before

    def is_said(self, machine: "Machine", raised: Raised) -> bool:
        """Whether a `raise` for lack of a device says what is asked for; of what it says nothing may be known."""
        if raised.value is UNKNOWN or raised.skips or not is_expected(raised, self.kinds):
            return False
        machine.guesses += not raised.reason
        return self.may_say(raised)

    def may_say(self, raised: Raised) -> bool:
        """Whether the message of a `raise` may be the one that is asked for."""
        return not raised.reason or _is_found(self.pattern, raised.reason)


def is_awaited(machine: "Machine", raised: Raised, kinds: Any) -> bool:
    """Whether a failure may be the one that is asked for; a framework may find a mistake before it misses a device."""
    may_be = is_expected(raised, kinds)
    machine.guesses += not may_be and raised.reason.startswith(HAVING_NO_HOST) and is_refused_unrun(machine)
    return may_be


def is_awaiting(value: Any) -> bool:
    """Whether a `with` is for work that must raise: who returns within it has raised before."""
    return name_of(value).removesuffix("()").startswith(("raises", "assertRaises"))


def is_refused_unrun(machine: "Machine") -> bool:
    """Whether a mistake in what is to be computed is expected, which is found before a device computes it."""
    names = names_awaited(machine)
    return bool(names) and all(map(_MISTAKES.search, names))


def names_awaited(machine: "Machine") -> list[str]:
    """The names of the exceptions one of which what is evaluated now is expected to raise."""
    kinds = hard(machine.awaited[-1].kinds) if machine.awaited else ()
    return [name_of(each) for each in (kinds if isinstance(kinds, tuple | list) else (kinds,))]


def _may_be_of_devices(pattern: Any) -> bool:
    """Whether the message of a failure for lack of a device could be one that is asked for by a pattern."""
    return any(_is_found(hard(pattern), message) for message in _NO_DEVICE)


def _is_found(pattern: Any, message: str) -> bool:
    """Whether a message may be one that is asked for by a pattern, of which nothing may be known."""
    try:
        return not isinstance(pattern, str) or re.search(pattern, message) is not None
    except re.error:
        return True


def as_raised(skip: Skip) -> Raised:
    """A skip as the exception that it is."""
    raised = Raised(SKIPS[0], skip.reason, skip.path, skip.line)
    raised.skips = True
    return raised


def is_pytest_s_skip(kind: Any) -> bool:
    """Whether something is `pytest.skip.Exception`, or was made of it."""
    return isinstance(kind, Ext | Unknown) and kind.path.removesuffix("()").endswith("skip.Exception")


def is_expected(raised: Raised, kinds: Any) -> bool:
    """Whether a failure may be the one that is asked for; that for lack of a device, or a skip, is one of few kinds."""
    kinds = hard(kinds)
    each_kind = kinds if isinstance(kinds, tuple | list) else (kinds,)
    if raised.skips:
        return any(name_of(each) in SKIPS or is_pytest_s_skip(each) for each in each_kind)
    names = {name_of(each) for each in each_kind}
    return bool(
        not raised.device
        or raised.refusal
        or names & {"", raised.kind}
        or any(word in name for name in names for word in _OF_DEVICES)
    )


_CHECKS: Final[dict[str, tuple[str, bool]]] = {
    "assertTrue": ("", True),
    "assertFalse": ("", False),
    "assertEqual": ("Eq", True),
    "assertEquals": ("Eq", True),
    "assertNotEqual": ("Eq", False),
    "assertGreater": ("Gt", True),
    "assertGreaterEqual": ("GtE", True),
    "assertLess": ("Lt", True),
    "assertLessEqual": ("LtE", True),
    "assertIn": ("In", True),
    "assertNotIn": ("In", False),
}


def _checked(machine: "Machine", name: str, check: tuple[str, bool], args: Args) -> None:
    import ast

    operator, wanted = check
    if not operator:
        truth = machine.truth(args[0]) if args else None
    elif len(args) > 1:
        truth = machine.truth(machine.compare(getattr(ast, operator), args[0], args[1]))
    else:
        truth = None
    if truth is (not wanted):
        raise Raised("AssertionError", name, *machine.current)


TESTING: Final[dict[str, Function]] = {
    "pytest.raises": _pytest_raises,
    "pytest.skip": _skip, "pytest.fail": _fail, "pytest.xfail": _xfail, "pytest.param": _param,
    "pytest.fixture": _fixture, "pytest_asyncio.fixture": _fixture, "pytest.yield_fixture": _fixture,
    "pytest.importorskip": _import_or_skip, "_pytest.outcomes.skip": _skip, "pytest.exit": _fail,
    "unittest.skip": _unittest_skip, "unittest.skipIf": _marker("skipif"), "unittest.skipUnless": _skip_unless,
    "unittest.case.skipIf": _marker("skipif"), "unittest.case.skipUnless": _skip_unless,
    "unittest.case.skip": _unittest_skip, "unittest.expectedFailure": _marker("xfail"),
    "absl.testing.absltest.skip": _unittest_skip, "absl.testing.absltest.skipIf": _marker("skipif"),
    "absl.testing.absltest.skipUnless": _skip_unless,
    "parameterized.parameterized.expand": _expand, "parameterized.expand": _expand,
    "absl.testing.parameterized.parameters": _absl("parameters"),
    "absl.testing.parameterized.named_parameters": _absl("named"),
    "absl.testing.parameterized.product": _absl("product"),
}  # fmt: skip
