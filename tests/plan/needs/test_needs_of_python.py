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
