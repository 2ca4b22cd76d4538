"""Enumerations of the tests: what Python itself makes of an expression is what the id of a case must say."""

import textwrap

import pytest
from small_projects import devices_of, needs_of

CLASSES = textwrap.dedent(
    """
    import enum

    class Word(str, enum.Enum):
        A = "a"
        Z = "z"

    class Number(enum.IntEnum):
        ONE = 1
        TWO = 2

    class Mixed(int, enum.Enum):
        TWO = 2

    class Text(enum.StrEnum):
        B = "b"
        CASE = enum.auto()

    class Flag(enum.Flag):
        P = enum.auto()
        Q = enum.auto()
        R = enum.auto()

    class Plain(enum.Enum):
        X = 1
        Y = "y"
        DEFAULT = X

        @property
        def is_wide(self):
            return self is Plain.Y

    class Layout(enum.Enum):
        WIDE = (2, 4)
        NARROW = (1, 1)

        def __init__(self, rows, columns):
            self.size = rows * columns
    """
)
EXPRESSIONS = """
    isinstance(Word.A, str)
    isinstance(Word.A, int)
    isinstance(Plain.X, str)
    isinstance(Number.ONE, int)
    str(Word.A)
    str(Number.ONE)
    str(Text.B)
    f"{Word.A}"
    f"{Number.ONE}"
    f"{Mixed.TWO}"
    Word.A == "a"
    Word.A != "b"
    "a" == Word.A
    Plain.X == 1
    Word.A in ("a", "b")
    "a" in list(Word)
    Plain.X in Plain
    Word.A.upper()
    Text.B.startswith("b")
    Word.A + "b"
    Mixed.TWO + 1
    Number.TWO > 1
    Word.A < Word.Z
    Number.TWO == Mixed.TWO
    {"a": 5}.get(Word.A)
    {"a": 5}[Word.A]
    {Word.A: 5}["a"]
    {Plain.X: 5}.get(1)
    [4, 5, 6][Number.ONE]
    len(Word.A)
    len(list(range(Mixed.TWO)))
    "-".join([Word.A, "k"])
    int(Number.TWO) * 2
    sum(Number)
    Text.CASE.value
    Flag.R.value
    Plain.DEFAULT.name
    len(Plain)
    Plain["DEFAULT"].value
    list(Plain.__members__)[2]
    Plain.Y.is_wide
    Plain("y").name
    Layout.WIDE.size
    Layout((1, 1)).name
"""


@pytest.fixture(scope="module")
def said():
    cases = "".join(
        f"\ndef value_{number}():\n    return {expression.strip()}\n"
        f'\n@pytest.mark.parametrize("it", [value_{number}()])\ndef test_{number}(it):\n    pass\n'
        for number, expression in enumerate(EXPRESSIONS.strip().splitlines())
    )
    found = needs_of("test_it.py", {"test_it.py": f"import pytest\n{CLASSES}\n{cases}"})
    return {int(name.partition("[")[0].removeprefix("test_")): name.partition("[")[2][:-1] for name in found}


@pytest.mark.parametrize(
    ("number", "expression"), [(n, each.strip()) for n, each in enumerate(EXPRESSIONS.strip().splitlines())]
)
def test_what_python_makes_of_members_of_enumerations_is_known(said, number, expression):
    names = {}
    exec(CLASSES, names)  # noqa: S102 - the lines above
    assert said[number] == str(eval(expression, names))  # noqa: S307


def test_cases_that_are_members_are_named_as_pytest_names_them():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": f"""
            import pytest
            {textwrap.indent(CLASSES, " " * 12)}

            @pytest.mark.parametrize("it", [Word.A, Number.ONE, Mixed.TWO, Text.B, Plain.X])
            def test_it(it):
                pass
            """
        },
    )
    assert list(found) == [f"test_it[{each}]" for each in ("a", "1", "Mixed.TWO", "b", "Plain.X")]


def test_a_member_that_is_a_number_or_a_text_besides_may_name_a_device():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import enum
            import torch

            class Rank(enum.IntEnum):
                LAST = 3

            class Place(str, enum.Enum):
                SECOND = "cuda:1"

            def test_number():
                torch.cuda.set_device(Rank.LAST)

            def test_text():
                torch.ones(1, device=Place.SECOND)
            """,
        },
    )
    assert found == {"test_number": (4, 4, 4), "test_text": (2, 2, 2)}


def test_members_are_found_by_themselves_by_values_and_by_what_the_class_makes_of_others():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import torch
            from enum import Enum

            class Plain(Enum):
                A = "a"

            class Own(Enum):
                def __eq__(self, other):
                    return super().__eq__(type(self)(other))

                @classmethod
                def _missing_(cls, value):
                    for each in cls:
                        if each.value == value.lower():
                            return each

            class Precision(Own):
                FULL = "full"
                HALF = "half"

            def use(number):
                torch.ones(1, device=f"cuda:{number}")

            def test_itself():
                use(2 if Plain(Plain.A) is Plain.A else 0)

            def test_equal_to_itself():
                use(2 if Precision.FULL == Precision.FULL else 0)

            def test_not_unequal():
                use(0 if Precision.FULL != Precision.FULL else 2)

            def test_another():
                use(2 if Precision.FULL != Precision.HALF else 0)

            def test_by_what_is_missing():
                use(2 if Precision("HALF") is Precision.HALF else 0)

            def test_text():
                use(2 if Precision.HALF == "Half" else 0)

            def test_nothing():
                try:
                    Plain("b")
                except ValueError:
                    use(2)

            def test_nothing_is_missing():
                try:
                    Precision("quarter")
                except ValueError:
                    use(2)
            """
        },
    )
    assert set(found.values()) == {(3, 3, 3)}, found
