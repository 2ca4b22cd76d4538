"""What Python itself does with functions, objects and classes, and which device a test comes to by it."""

import textwrap

import pytest
from small_projects import needs_of

HEAD = """
import contextlib, dataclasses, enum, functools, operator, string
from collections import namedtuple
from dataclasses import dataclass, field
from typing import NamedTuple
import pytest
import torch

def touch(index=0):
    torch.ones(2, device=f"cuda:{index}")
    return index

"""


def index_of(text):
    """The device that some statements put into `n`, where that is certain."""
    body = textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")
    found = needs_of("test_it.py", {"test_it.py": f"{HEAD}def test_it():\n{body}\n    touch(n)\n"})
    needs = found["test_it"]
    assert needs.confidence.name == "HIGH", needs
    return needs.min - 1


@pytest.mark.parametrize(
    "text",
    [
        """
        calls = []
        @functools.lru_cache
        def known(number):
            calls.append(number)
            return number
        known(1), known(1), known(number=2)
        n = len(calls)
        """,
        """
        class Counts:
            calls = 0
            @functools.cached_property
            def number(self):
                Counts.calls += 1
                return Counts.calls
        counts, other = Counts(), Counts()
        counts.number, other.number
        n = counts.number + other.number - 1
        """,
    ],
)
def test_what_is_cached_is_done_once(text):
    assert index_of(text) == 2


DESCRIPTORS = """
class Kept:
    def __get__(self, owner, cls=None):
        return getattr(owner, "kept", 0)
    def __set__(self, owner, value):
        owner.kept = value + 1

class Has:
    number = Kept()

class Shifted:
    number = 1
    def __getattribute__(self, name):
        return object.__getattribute__(self, name) + 1

class Traced:
    number = 2
    def __getattribute__(self, name):
        return super().__getattribute__(name)
    def get(self):
        return self.number

class Sized(type):
    def __len__(cls):
        return 2
    @property
    def double(cls):
        return cls.size * 2

class One(metaclass=Sized):
    size = 1
"""


@pytest.mark.parametrize(
    "text",
    [
        "has = Has()\nhas.number = 1\nn = has.number",
        "n = Shifted().number",
        "n = Traced().get()",
        "n = len(One)",
        "n = One.double",
    ],
)
def test_what_stands_behind_an_attribute_is_asked(text):
    assert index_of(f"{DESCRIPTORS}\n{text}") == 2


RECORDS = """
@dataclass(frozen=True)
class Frozen:
    first: int
    second: int = 0

class Own:
    def __init__(self, number):
        self.number = number
    def __eq__(self, other):
        return self.number == other.number
    def __hash__(self):
        return hash(self.number)
"""


@pytest.mark.parametrize(
    "text",
    [
        "n = len({Frozen(1), Frozen(1), Frozen(2)})",
        "n = len(set([Own(1), Own(1), Own(2)]))",
        "n = {Frozen(1): 2}[Frozen(1)]",
        "n = sorted([1, 2, 0], key=functools.cmp_to_key(lambda one, other: other - one))[0]",
        "n = max([1, 2, 0], key=functools.cmp_to_key(lambda one, other: one - other))",
    ],
)
def test_what_is_equal_is_one_and_what_compares_is_in_order(text):
    assert index_of(f"{RECORDS}\n{text}") == 2


FORMS = """
class Uses:
    @functools.singledispatchmethod
    def of(self, given):
        return 0
    @of.register
    def _(self, given: int):
        return given
    @of.register(str)
    def _(self, given):
        return len(given)
"""


@pytest.mark.parametrize(
    "text",
    [
        f"{FORMS}\nn = Uses().of(2)",
        f"{FORMS}\nn = Uses().of('ab')",
        f"{FORMS}\nn = Uses().of(1.5) + 2",
        """
        try:
            raise ValueError("alone")
        except* ValueError:
            n = 2
        """,
        """
        n = 2
        with contextlib.ExitStack() as stack:
            stack.callback(touch, 7)
            kept = stack.pop_all()
        """,
        """
        class Left:
            def __exit__(self, *raised):
                numbers.append(2)
        numbers = []
        with contextlib.ExitStack() as stack:
            stack.push(Left())
        n = numbers[0]
        """,
        """
        numbers = []
        with contextlib.ExitStack() as stack:
            kept = stack.enter_context(contextlib.ExitStack())
            kept.callback(numbers.append, 2)
            later = kept.pop_all()
        assert not numbers
        later.close()
        n = numbers[0]
        """,
    ],
)
def test_what_python_chooses_is_done(text):
    assert index_of(text) == 2


TUPLES = """
class Size(NamedTuple):
    rows: int
    columns: int = 2
    def total(self):
        return self.rows * self.columns

class Pair(tuple):
    def __new__(cls, first, second):
        return super().__new__(cls, (first, second))
    def total(self):
        return self[0] + self[1]

class Row(tuple):
    pass

Old = namedtuple("Old", "first second", defaults=(2,))

def matched(given):
    match given:
        case 0:
            return 7
        case int(number) if number > 2:
            return 7
        case Size(rows=1, columns=2):
            return 2
        case Size(_, columns):
            return columns - 1
        case [_, last]:
            return last
"""


@pytest.mark.parametrize(
    "text",
    [
        "n = Size(1).total()",
        "n = Pair(1, 1).total()",
        "first, n = Pair(1, 2)",
        "n = len(Pair(5, 6))",
        "n = len(Row([5, 6]))",
        "n = max(Row([0, 2]))",
        "n = 2 if isinstance(Pair(1, 2), tuple) and 2 in Pair(1, 2) else 0",
        "n = 2 if Pair(1, 2) == (1, 2) else 0",
        "n = 2 if Size(1, 2) == (1, 2) else 0",
        "n = 2 if Size(1, 2) != (1, 3) and Size(1, 2) != 1 else 0",
        "n = Old._make([1, 2]).second",
        "n = len(Old._fields)",
        "n = matched(Size(1, 2))",
        "n = matched(Size(1, 3))",
        "n = matched([1, 2])",
    ],
)
def test_what_is_in_a_tuple_of_a_class_of_its_own_is_known(text):
    assert index_of(f"{TUPLES}\n{text}") == 2


@pytest.mark.parametrize(
    "text",
    [
        "found = [last for each in range(3) if (last := each) > 0]\nn = last",
        "assert any((last := each) > 1 for each in range(5))\nn = last",
        """
        @dataclass
        class Scaled:
            number: int
            scale: dataclasses.InitVar[int] = 2
            total: int = field(init=False, default=0)
            def __post_init__(self, scale):
                self.total = self.number * scale
        n = Scaled(1).total
        """,
        """
        @dataclass
        class Both:
            one: int
            other: int
        n = dataclasses.astuple(Both(1, 2))[1]
        """,
        """
        class Written:
            def __format__(self, spec):
                return str(len(spec))
        n = int(f"{Written():xx}")
        """,
        "n = int(string.Template('$number').substitute(number=2))",
        "n = int(string.Template('${number}').safe_substitute({'number': 2}))",
    ],
)
def test_what_python_computes_is_known(text):
    assert index_of(text) == 2


ERRORS = """
class Error(Exception):
    pass

def chained(kind):
    try:
        raise Error("first")
    except Error as error:
        raise kind from error
"""


@pytest.mark.parametrize(
    "text",
    [
        """
        try:
            chained(ValueError)
        except ValueError as error:
            n = 2 if isinstance(error.__cause__, Error) else 0
        """,
        """
        try:
            chained(Error("second"))
        except Error as error:
            n = 2 if isinstance(error.__cause__, Error) else 0
        """,
        """
        try:
            chained(KeyError)
        except Exception as error:
            n = 2 if isinstance(error, LookupError) and not isinstance(error, ValueError) else 0
        """,
    ],
)
def test_what_an_exception_is_and_follows_from_is_known(text):
    assert index_of(ERRORS + textwrap.dedent(text)) == 2


def test_of_a_group_of_exceptions_any_handler_may_be_gone():
    text = """
def test_it():
    try:
        raise ExceptionGroup("both", [ValueError("a"), TypeError("b")])
    except* ValueError:
        touch(1)
    except* TypeError:
        touch(0)
"""
    needs = needs_of("test_it.py", {"test_it.py": HEAD + text})["test_it"]
    assert (needs.min, needs.full, needs.confidence.name) == (2, 2, "MEDIUM")


@pytest.mark.parametrize(
    "text",
    [
        """
        class Closed:
            def close(self):
                numbers.append(2)
        numbers = []
        with contextlib.closing(Closed()) as closed:
            assert not numbers
        n = numbers[0]
        """,
        """
        class Entered:
            async def __aenter__(self):
                return 1
            async def __aexit__(self, *raised):
                numbers.append(1)
        numbers = []
        async def main():
            async with Entered() as number:
                numbers.append(number)
        import asyncio
        asyncio.run(main())
        n = sum(numbers)
        """,
        """
        from typing import Protocol, runtime_checkable
        @runtime_checkable
        class Sized(Protocol):
            def size(self): ...
        class Has:
            def size(self):
                return 2
        n = Has().size() if isinstance(Has(), Sized) and not isinstance("", Sized) else 0
        """,
        "n = 2 if isinstance(1, int | str) and not isinstance(1.5, int | str) else 0",
        """
        class Second:
            def __index__(self):
                return 2
        n = [0, 1, 2, 3][Second()] if len(range(Second())) == 2 else 0
        """,
        """
        class Kept:
            number = property(lambda self: self.kept)
            @number.setter
            def number(self, value):
                self.kept = value
            @number.deleter
            def number(self):
                self.kept = 2
        kept = Kept()
        kept.number = 7
        del kept.number
        n = kept.number
        """,
        """
        class Backwards:
            def __reversed__(self):
                return iter([2, 0])
        n = next(reversed(Backwards()))
        """,
    ],
)
def test_special_methods_are_asked(text):
    assert index_of(text) == 2


@pytest.mark.parametrize(
    "text",
    [
        "n = 2 if isinstance({}, Dict) and not isinstance([], Dict) else 0",
        "n = 2 if isinstance([], typing.List) and not isinstance({}, typing.List) else 0",
        "n = 2 if isinstance((1,), (Dict, Tuple)) and isinstance({1}, Set) else 0",
        "n = 2 if not isinstance([1], ast.List) else 0",
        "n = 2 if issubclass(dict, Dict) else 0",
        "n = 2 if isinstance({}, MutableMapping) and isinstance([], MutableSequence) else 0",
    ],
)
def test_a_type_of_typing_is_the_one_of_pythons_that_it_stands_for(text):
    names = "import ast, typing\nfrom typing import Dict, MutableMapping, MutableSequence, Set, Tuple\n"
    assert index_of(names + textwrap.dedent(text)) == 2


def test_the_keys_of_a_dict_made_of_devices_are_each_of_them_once():
    text = """
    places = [torch.device("cpu"), torch.device("cuda:2"), torch.device("cpu")]
    kept = list(dict.fromkeys(places))
    n = kept[1].index if len(kept) == 2 and dict.fromkeys(kept, 5)[kept[1]] == 5 else 0
    """
    assert index_of(text) == 2


def test_tables_are_compared_key_by_key():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import elsewhere
            import torch

            ONE = {"a": torch.device("cuda:1")}

            def test_filled():
                if ONE == {}:
                    torch.ones(1, device="cuda")

            def test_not_empty():
                if ONE != {}:
                    torch.ones(1, device="cuda")

            def test_same():
                if ONE == {"a": torch.device("cuda:1")}:
                    torch.ones(1, device="cuda")

            def test_other():
                if ONE == {"a": torch.device("cuda:2")}:
                    torch.ones(1, device="cuda")

            def test_perhaps_filled():
                table = {}
                if elsewhere.flag():
                    table["a"] = torch.device("cuda:1")
                if table == {}:
                    torch.ones(1, device="cuda")
            """
        },
    )
    assert {name: (each.min, each.gpu_min, each.confidence) for name, each in found.items()} == {
        "test_filled": (0, None, "high"),
        "test_not_empty": (1, 1, "high"),
        "test_same": (1, 1, "high"),
        "test_other": (0, None, "high"),
        "test_perhaps_filled": (0, 1, "medium"),
    }
