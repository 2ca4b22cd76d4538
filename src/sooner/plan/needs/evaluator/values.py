"""What expressions of a test project evaluate to: Python's own plain values, and stand-ins for everything else.

A plain value (`int`, `str`, `list`, ...) is itself. What is not known is `Unknown`; what holds unless somebody set it
otherwise (an environment variable) is `Soft`; what lives outside the tree is `Ext`, by its dotted name.
"""

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

Args = list[Any]
Kwargs = dict[str, Any]
Function = Callable[["Machine", Args, Kwargs], Any]
"""What a `Native` calls."""


class Unknown:
    """Could be anything; what was made outside the tree (a tensor, a model) is unknown too."""

    __slots__ = ("path", "truth")

    def __init__(self, path: str = "") -> None:
        self.path = path
        self.truth: bool | None = None

    def items(self, _machine: "Machine") -> list[Any] | None:
        """What going over it gives; None where that is not known."""
        return None


class Made(Unknown):
    """What a class outside made of values that are known: two of the same text are most likely equal."""

    __slots__ = ("text",)

    def __init__(self, path: str, text: str) -> None:
        super().__init__(path)
        self.text = text


UNKNOWN: Final = Unknown()


class Text(Unknown):
    """A text of which parts are not known: its words are, as far as they have none of these parts."""

    __slots__ = ("pieces",)

    def __init__(self, pieces: list[str | None]) -> None:
        super().__init__("text")
        self.pieces = pieces

    def attribute(self, _machine: "Machine", name: str) -> Any:
        """Its words are known; any other method's result is not."""
        if name == "split":
            return Native("split", lambda args, _kwargs: UNKNOWN if args else self.words())
        return Unknown(f"{self.path}.{name}")

    def known(self) -> Any:
        """The text itself, where all of it is known."""
        pieces = [each for each in self.pieces if each is not None]
        return "".join(pieces) if len(pieces) == len(self.pieces) else self

    def words(self) -> list[Any]:
        """Its words; of those that are not known, as much as is."""
        words = "".join("\0" if each is None else each.replace("\0", " ") for each in self.pieces).split()
        return [_partly(each) if "\0" in each else each for each in words]


def _partly(word: str) -> Unknown:
    """A word in which a NUL stands for what is not known."""
    pieces = [None if each == "\0" else each for each in re.split("(\0)", word) if each]
    return UNKNOWN if pieces == [None] else Text(pieces)


class Enough(Unknown):
    """A measure of a device (generation, memory): enough for what a test asks, unless it asks for exactly that."""

    __slots__ = ()

    def attribute(self, _machine: "Machine", name: str) -> Any:
        """What it says of itself in words is not known; anything else is a measure, too."""
        return Unknown(f"{self.path}.{name}") if "name" in name.lower() or name == "uuid" else self

    def item(self, _machine: "Machine", _index: Any) -> Any:
        """A part of it is a measure."""
        return self


class Decided(Unknown):
    """What is not known, but that it is true, or false (`config.size or 4`)."""

    __slots__ = ()

    def __init__(self, *, truth: bool) -> None:
        super().__init__()
        self.truth = truth


class OneOf(Unknown):
    """One of several numbers or devices, it is not known which (`4 if flag() else 2`); the most of them is taken."""

    __slots__ = ("least", "most")

    def __init__(self, most: Any, least: int | None = None) -> None:
        super().__init__("number")
        self.most = most
        self.least = least
        """Of numbers the least, where that is known."""


class AnyOf(Unknown):
    """One of several functions, it is not known which: who calls it may call each of them."""

    __slots__ = ("functions",)

    def __init__(self, functions: Sequence[Any]) -> None:
        super().__init__("function")
        self.functions = tuple(functions)


class Signature(Unknown):
    """What `inspect.signature` says of a function; set as another's `__signature__`, it names that one's parameters."""

    __slots__ = ("func",)

    def __init__(self, func: Any) -> None:
        super().__init__("inspect.signature")
        self.func = func


class Code(Unknown):
    """What a function does (`f.__code__`), of which another function may be made."""

    __slots__ = ("func",)

    def __init__(self, func: Any) -> None:
        super().__init__("code")
        self.func = func


class Soft:
    """A value that holds by default: it came from the environment, or an option, of which the test says the default."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Ext:
    """Something of a module outside the tree, by its dotted name, which makes it the same wherever it is found."""

    __slots__ = ("attrs", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.attrs: dict[str, Any] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ext) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)


class Stream(list[Any]):
    """What an iterator or a generator still has to give: `next` takes the first of it.

    Args:
        values: All of it.
        end: What is raised after the last one, if it is not only that there are no more.
    """

    def __init__(self, values: Iterable[Any], end: Exception | None = None) -> None:
        super().__init__(values)
        self.end = end


class Dev:
    """A `torch.device`; making one touches nothing."""

    __slots__ = ("index", "kind")

    def __init__(self, kind: str, index: Any = None) -> None:
        self.kind = kind
        self.index = index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dev) and (other.kind, other.index) == (self.kind, self.index)

    def __hash__(self) -> int:
        return hash((self.kind, self.index))


class Mark:
    """`pytest.mark.name(*args, **kwargs)`, unittest's skips included (`skipif`): those wrap the function."""

    __slots__ = ("args", "kwargs", "line", "name", "path", "wraps")

    def __init__(
        self,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        path: str = "",
        line: int = 0,
        *,
        wraps: bool = False,
    ) -> None:
        self.name = name
        self.wraps = wraps
        self.args = args
        self.kwargs = kwargs
        self.path = path
        self.line = line


class Param:
    """`pytest.param(...)`, or one case of a framework's own way to multiply a test."""

    __slots__ = ("id", "marks", "values")

    def __init__(self, values: tuple[Any, ...], marks: list[Any], name: Any = None) -> None:
        self.values = values
        self.marks = marks
        self.id = name


class Env:
    """Names of one scope, and the scope around it."""

    __slots__ = ("frame", "is_inner", "module", "names", "parent")

    def __init__(self, module: "Mod", parent: "Env | None" = None, names: dict[str, Any] | None = None) -> None:
        self.module = module
        self.parent = parent
        self.names: dict[str, Any] = {} if names is None else names
        self.frame: Frame | None = None
        self.is_inner = False  # a comprehension's: what `:=` binds in it is bound around it

    def find(self, name: str) -> Any:
        """The value of a name, or MISSING."""
        env: Env | None = self
        while env is not None:
            if name in env.names:
                return env.names[name]
            env = env.parent
        return MISSING


class Missing:
    """No value at all."""

    __slots__ = ()


MISSING: Final = Missing()


Extent = tuple[frozenset[int], frozenset[int], int, int | None]
"""What was used by now: devices by number, how many workers use together, and ranks."""


class Frame:
    """A call under way."""

    __slots__ = (
        "forks", "globals_of", "may_have_left", "owner", "raised", "returned", "self_value", "sent", "stops_at_yield",
        "yielded",
    )  # fmt: skip

    def __init__(self, owner: "Cls | None", self_value: Any) -> None:
        self.owner = owner
        self.self_value = self_value
        self.returned: list[Any] = []
        self.yielded: list[Any] = []
        self.globals_of: set[str] = set()
        self.may_have_left: tuple[Extent, ...] = ()
        """What was used when a way that is not known left it."""
        self.stops_at_yield = False
        """What follows its `yield` is done after the test, when the `with` is left, or when more is asked for."""
        self.forks: int | None = None
        """If it stops, then only where so many ways are not known."""
        self.sent: Any = None
        """What its `yield` gives, or the other generator that it goes through has returned."""
        self.raised: Raised | None = None
        """What is raised at its `yield`."""


class Mod:
    """A module of the tree (or of the rule table), with the names that its body made."""

    __slots__ = (
        "asked", "configured", "doubted", "env", "failed", "held", "is_model", "is_plugin", "is_test_code", "name",
        "path", "questioned", "registered", "tainted",
    )  # fmt: skip

    def __init__(self, name: str, path: str, *, is_test_code: bool = True, is_model: bool = False) -> None:
        self.name = name
        self.path = path
        self.is_test_code = is_test_code
        self.is_model = is_model
        self.is_plugin = False
        """Whether pytest has started with it."""
        self.failed: Exception | None = None
        self.doubted = False
        """Whether it skips itself, while it is imported, under a condition that is not known."""
        self.tainted: dict[str, int] = {}
        """Names whose values follow from the number of visible devices."""
        self.questioned: set[str] = set()
        """Names for whose values the number was asked for, whatever came of it."""
        self.held: dict[str, tuple[frozenset[int], tuple[str, int]]] = {}
        """Names of what was put on devices while it was imported: the devices, and where that stands."""
        self.asked = 0
        """What was asked about them by statements that may have changed anything (`Trace.asked`)."""
        self.configured: dict[str, Any] = {}
        """What it sets when pytest starts: `config.have`, `pytest.have`."""
        self.registered: list[Any] = []
        """Plugins of pytest's that it makes then."""
        self.env = Env(self)

    def asked_by(self, name: str) -> int:
        """What a value of the module follows from, as far as visible devices go."""
        return max(self.asked, self.tainted.get(name, 0))


class Func:
    """A function or lambda with its closure."""

    __slots__ = ("attrs", "defaults", "env", "is_generator", "kw_defaults", "module", "name", "node", "owner", "within")

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, env: Env, name: str) -> None:
        self.node = node
        self.env = env
        self.module = env.module
        self.name = name
        self.within = ""
        """What stands before its name in `__qualname__`, with the dot."""
        self.owner: Cls | None = None
        self.defaults: list[Any] = []
        self.kw_defaults: dict[str, Any] = {}
        self.attrs: dict[str, Any] = {}
        self.is_generator = False

    @property
    def positional(self) -> list[str]:
        """Its parameters that may be given without their names."""
        return [each.arg for each in (*self.node.args.posonlyargs, *self.node.args.args)]


class Native:
    """A function that the evaluator itself provides."""

    __slots__ = ("call", "name")

    def __init__(self, name: str, call: Callable[..., Any]) -> None:
        self.name = name
        self.call = call


class Partial(Native):
    """What `functools.partial` makes of a function: so many of its first parameters are given, and others by name."""

    __slots__ = ("first", "func", "named")

    def __init__(self, func: Any, first: int, named: Iterable[str], call: Callable[..., Any]) -> None:
        super().__init__("partial", call)
        self.func, self.first, self.named = func, first, frozenset(named)


class Derived(Native):
    """What is made of a function and called in its place: what is not known of a decorator gives it back as well."""

    __slots__ = ()


class Bound:
    """A function with its first argument."""

    __slots__ = ("first", "func")

    def __init__(self, func: Any, first: Any) -> None:
        self.func = func
        self.first = first


class Wrapped:
    """A `property`, `staticmethod` or `classmethod`."""

    __slots__ = ("deleter", "func", "kind", "setter")

    def __init__(self, kind: str, func: Any, setter: Any = None, deleter: Any = None) -> None:
        self.kind, self.func = kind, func
        self.setter, self.deleter = setter, deleter


class Cls:
    """A class of the tree."""

    __slots__ = ("attrs", "bases", "module", "mro", "name", "node", "within")

    def __init__(self, name: str, bases: list[Any], module: Mod, node: ast.ClassDef | None = None) -> None:
        self.name = name
        self.bases = bases
        self.module = module
        self.node = node
        self.within = ""
        """What stands before its name in `__qualname__`, with the dot."""
        self.attrs: dict[str, Any] = {}
        self.mro: list[Any] = linearised(self)

    def find(self, name: str) -> Any:
        """An attribute by inheritance, or MISSING."""
        for cls in self.mro:
            if isinstance(cls, Cls) and name in cls.attrs:
                return cls.attrs[name]
        return MISSING

    def is_a(self, *names: str) -> bool:
        """Whether it, or anything it inherits from, is called so (last part of the name)."""
        return any(name_of(cls) in names for cls in self.mro)

    @property
    def is_open(self) -> bool:
        """Whether it inherits from something outside the tree, so that it may have any attribute."""
        return any(not isinstance(cls, Cls) for cls in self.mro)

    @property
    def is_of_tests_alone(self) -> bool:
        """Whether it and all that it inherits from are written in files of tests."""
        return all(cls.module.is_test_code if isinstance(cls, Cls) else name_of(cls) == "object" for cls in self.mro)


class Inst:
    """An instance of a class of the tree; one of the library under test keeps what it was given; it may not be made."""

    __slots__ = ("attrs", "cls", "given", "is_made")

    def __init__(self, cls: Cls, given: tuple[list[Any], dict[str, Any]] | None = None) -> None:
        self.cls = cls
        self.attrs: dict[str, Any] = {}
        self.given = given
        self.is_made = given is None


class Super:
    """`super()`."""

    __slots__ = ("first", "owner")

    def __init__(self, owner: Cls, first: Any) -> None:
        self.owner = owner
        self.first = first


def copy_of(func: Func, owner: Cls | None) -> Func:
    """A function of its own, with the same attributes, as a member of a class."""
    made = Func(func.node, func.env, func.name)
    made.owner, made.within, made.is_generator = owner, func.within, func.is_generator
    made.defaults, made.kw_defaults, made.attrs = func.defaults, func.kw_defaults, dict(func.attrs)
    return made


def name_of(value: Any) -> str:
    """The last part of the name of a class, function or outside thing."""
    if isinstance(value, Ext | Unknown):
        return value.path.rpartition(".")[2]
    name = getattr(value, "name", "")
    return name if isinstance(name, str) else ""


def exception_name(value: Any) -> str:
    """What an exception, or its class, is called."""
    value = hard(value)
    if isinstance(value, Inst):
        return value.cls.name
    if isinstance(value, Unknown | Ext):
        return name_of(value).removesuffix("()") or "Exception"
    return name_of(value) or "Exception"


def linearised(cls: Cls) -> list[Any]:
    """The method resolution order: C3, or depth first where C3 has no answer."""
    chains = [list(base.mro) if isinstance(base, Cls) else [base] for base in cls.bases] + [list(cls.bases)]
    order: list[Any] = [cls]
    while any(chains):
        chains = [chain for chain in chains if chain]
        head = next((c[0] for c in chains if not any(c[0] in other[1:] for other in chains)), chains[0][0])
        order.append(head)
        chains = [[each for each in chain if each != head] for chain in chains]
    return order


_DEEP_ENOUGH: Final = 6
PLAIN: Final = (int, float, str, bytes, bool, complex, type(None), list, tuple, dict, set, frozenset, range, slice)


def is_plain(value: Any, depth: int = 0) -> bool:
    """Whether a value is Python's own all the way down (up to a few levels)."""
    if isinstance(value, list | tuple | set | frozenset):
        return depth < _DEEP_ENOUGH and all(is_plain(each, depth + 1) for each in value)
    if isinstance(value, dict):
        return depth < _DEEP_ENOUGH and UNKNOWN not in value and all(is_plain(v, depth + 1) for v in value.values())
    return isinstance(value, PLAIN)


def hard(value: Any) -> Any:
    """The value without its softness."""
    return value.value if isinstance(value, Soft) else value


def one_of(values: Sequence[Any]) -> Any:
    """One of several values, it is not known which: of numbers, and nothing beside them, the most is kept."""
    inner = [at_most(hard(each)) for each in values]
    numbers = [each for each in inner if isinstance(each, int) and not isinstance(each, bool)]
    nothing = [each for each in inner if each is None]
    if not numbers or len(numbers) + len(nothing) < len(inner):
        return UNKNOWN
    least = [each.least if isinstance(each, OneOf) else each for each in map(hard, values)]
    known = [each for each in least if isinstance(each, int)]
    return OneOf(max(numbers), min(known) if len(known) == len(least) else None)


def at_most(value: Any) -> Any:
    """The number that one of several is at most, in a tuple or list too; anything else is itself."""
    if isinstance(value, list | tuple) and any(isinstance(each, OneOf) for each in value):
        return type(value)(at_most(each) for each in value)
    return value.most if isinstance(value, OneOf) else value


class Skip(Exception):  # noqa: N818 - an outcome of a test, not an error
    """The test is skipped."""

    def __init__(self, reason: str, path: str, line: int, *, soft: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path
        self.line = line
        self.soft = soft
        self.is_heard = False
        """Whether it comes through the library under test from a function of the tests."""


class Raised(Exception):  # noqa: N818 - an exception of the test, not of ours
    """An exception in the code under evaluation."""

    def __init__(self, kind: str, reason: str, path: str = "", line: int = 0, *, device: bool = False) -> None:
        super().__init__(f"{kind}: {reason}" if reason else kind)
        self.kind, self.reason = kind, reason
        self.path = path
        self.line = line
        self.device = device
        self.refusal = False
        """Whether the library under test has refused a number of ranks: not what a missing device raises."""
        self.is_of_another_vendor = False
        """Whether what it lacks is there with no number of devices."""
        self.is_heard = False
        """Whether it comes through the library under test from a function of the tests."""
        self.skips = False
        """Whether it is a skip, as whoever catches one by its name sees it."""
        self.soft = False
        """Whether it is raised by default (a variable of the environment is not set)."""
        self.value: Any = UNKNOWN
        self.cause: Any = None


class Return(Exception):  # noqa: N818 - control flow
    """A `return`."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Loop(Exception):  # noqa: N818 - control flow
    """A `break` or `continue`."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind


class OutOfFuel(Exception):  # noqa: N818 - control flow
    """The evaluation took too long: what follows is not known."""


def place_in_a_set(value: Any) -> tuple[str, Any]:
    """Where a value of a set stands: Python's own order differs from run to run, an answer must not."""
    if isinstance(value, tuple):
        return "tuple", tuple(place_in_a_set(each) for each in value)
    kind = type(value).__name__
    if isinstance(value, Inst):
        return kind, f"{value.cls.name}.{value.attrs.get('name', '')}"
    return (kind, value) if isinstance(value, str | int | float) else (kind, name_of(value) or repr(value))
