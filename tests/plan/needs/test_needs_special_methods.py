"""What operators and loops make of instances of the tests' own classes."""

import pytest
from small_projects import devices_of, needs_of

OPERATORS = {
    "4 if Version('2.4') >= Version('2.3') else 2": 4,
    "4 if Version('2.4') < Version('2.10') else 2": 4,
    "4 if Version('2.4') <= Version('2.3') else 2": 2,
    "4 if Version('2.4') == Version('2.4') else 2": 4,
    "4 if Version('2.4') != Version('2.4') else 2": 2,
    "4 if Version('2.5') > Version('2.4') else 2": 4,
    "4 if Version('2.4') in [Version('2.3'), Version('2.4')] else 2": 4,
    "4 if Layout(2, 2) == Layout(2, 2) else 2": 4,
    "4 if Layout(2, 2) == Layout(2, 1) else 2": 2,
    "4 if Layout(2, 2) in (Layout(2, 1), Layout(2, 2)) else 2": 4,
    "max(Axes())": 4,
    "sum(size for size in Axes()) - 4": 3,
    "sum(Axes()) - 4": 3,
    "list(Axes())[1]": 4,
    "len([*Axes()]) + 1": 4,
    "4 if 2 in Axes() else 3": 4,
    "4 if 'tp' in Names() else 3": 4,
    "4 if 'pp' not in Names() else 3": 4,
    "(Size(2) * 2).n": 4,
    "(2 * Size(2)).n": 4,
    "(Size(8) - 4).n": 4,
    "grown.n": 4,
    "(-Size(-4)).n": 4,
    "int(Size(4))": 4,
    "2 + abs(Size(-2)).n": 4,
    "Frozen(2).twice": 4,
    "Checked(3).size": 4,
    "Lazy().size": 4,
}


@pytest.mark.parametrize(("number", "least"), OPERATORS.items())
def test_what_the_special_methods_of_a_class_say_is_known(number, least):
    text = f"""
        import dataclasses, functools, pytest, torch

        @functools.total_ordering
        class Version:
            def __init__(self, text):
                self.parts = tuple(int(each) for each in text.split("."))

            def __eq__(self, other):
                return self.parts == other.parts

            def __lt__(self, other):
                return self.parts < other.parts

        @dataclasses.dataclass
        class Layout:
            tp: int
            dp: int

        class Axes:
            def __iter__(self):
                yield 1
                yield 4
                yield 2

        class Names:
            def __contains__(self, name):
                return name == "tp"

        class Size:
            def __init__(self, n):
                self.n = n

            def __mul__(self, other):
                return Size(self.n * other)

            __rmul__ = __mul__

            def __sub__(self, other):
                return Size(self.n - other)

            def __iadd__(self, other):
                self.n += other
                return self

            def __neg__(self):
                return Size(-self.n)

            def __abs__(self):
                return Size(abs(self.n))

            def __int__(self):
                return self.n

        @dataclasses.dataclass(frozen=True)
        class Frozen:
            size: int

            def __post_init__(self):
                object.__setattr__(self, "twice", 2 * self.size)

        class Checked:
            def __init__(self, size):
                self.size = size

            def __setattr__(self, name, value):
                super().__setattr__(name, value + 1)

        class Default:
            def __get__(self, instance, owner):
                return 4

        class Lazy:
            size = Default()

        grown = Size(1)
        grown += 3

        @pytest.mark.skipif(torch.cuda.device_count() < ({number}), reason="small")
        def test_it():
            torch.ones(1).cuda()
        """
    found = needs_of("test_it.py", {"test_it.py": text})["test_it"]
    assert (found.min, found.confidence) == (least, "high")


@pytest.mark.parametrize("number", ["Iterated()", "max(Endless())", "sum(Unordered() < 3 for _ in [1])"])
def test_what_special_methods_do_not_say_is_a_doubt_and_ends(number):
    text = f"""
        import pytest, torch

        class Iterated:
            def __eq__(self, other):
                return self == other

        class Endless:
            def __iter__(self):
                return self

            def __next__(self):
                return 4

        class Unordered:
            def __lt__(self, other):
                return NotImplemented

        @pytest.mark.skipif(torch.cuda.device_count() < ({number}), reason="small")
        def test_it():
            torch.ones(1).cuda()
        """
    found = needs_of("test_it.py", {"test_it.py": text})["test_it"]
    assert found.confidence != "high"


def test_what_leaves_a_context_is_told_of_what_was_raised_and_may_let_it_go():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest, torch

            N = torch.cuda.device_count()

            class Few(Exception):
                pass

            class Skipping:
                def __enter__(self):
                    return self

                def __exit__(self, kind, value, trace):
                    if kind is not None and issubclass(kind, (Few, LookupError)):
                        pytest.skip(str(value))

            class Forgiving:
                def __enter__(self):
                    return self

                def __exit__(self, kind, value, trace):
                    return kind is ValueError

            def test_skipping():
                with Skipping():
                    if N < 2:
                        raise Few("few")
                    torch.cuda.set_device(1)

            def test_looked_up():
                with Skipping():
                    torch.ones(1, device=[f"cuda:{i}" for i in range(N)][2])

            def test_forgiving():
                with Forgiving():
                    if N < 2:
                        raise ValueError("few")
                    return
                pytest.skip("few")

            def test_another():
                with Skipping(), Forgiving():
                    if N < 2:
                        raise RuntimeError("few")
            """,
        },
    )
    assert {name: "".join(each[0] for each in one.profile.values()) for name, one in found.items()} == {
        "test_skipping": "ssrrrr", "test_looked_up": "sssrrr", "test_forgiving": "ssrrrr", "test_another": "ffrrrr",
    }  # fmt: skip


def test_an_iterator_gives_one_after_the_other_and_then_no_more():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest, torch

            def devices():
                for index in range(torch.cuda.device_count()):
                    yield f"cuda:{index}"

            class Sizes:
                def __init__(self, most):
                    self.most, self.size = most, 0

                def __iter__(self):
                    return self

                def __next__(self):
                    if self.size == self.most:
                        raise StopIteration
                    self.size += 1
                    return self.size

            def test_generator():
                found = devices()
                try:
                    next(found)
                    second = next(found)
                except StopIteration:
                    pytest.skip("two")
                torch.ones(1, device=second)

            def test_list():
                given = iter([1, 2, 4])
                first, second, third = next(given), next(given), next(given, 8)
                torch.cuda.set_device(third - 1)
                assert next(given, None) is None

            def test_rest():
                given = (size for size in (4, 2, 3))
                next(given)
                for size in given:
                    torch.cuda.set_device(size - 1)

            def test_own():
                torch.cuda.set_device(max(Sizes(3)) - 1)

            def test_own_next():
                sizes = Sizes(3)
                next(sizes)
                torch.cuda.set_device(next(iter(sizes)) - 1)

            def test_nothing():
                next(devices())

            def given():
                yield 1
                pytest.skip("whoever asks for more")

            def test_first():
                torch.cuda.set_device(next(given()))

            def test_more():
                torch.cuda.set_device(max(given()))
            """,
        },
    )
    assert {name: least for name, (least, _, _) in found.items()} == {
        "test_generator": 2, "test_list": 4, "test_rest": 3, "test_own": 3, "test_own_next": 2, "test_nothing": 1,
        "test_first": 2, "test_more": None,
    }  # fmt: skip


def test_what_getattr_of_a_class_does_not_make_is_not_there():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest, torch

            N = torch.cuda.device_count()

            class Settings:
                def __getattr__(self, name):
                    if name == "world":
                        return 3
                    raise AttributeError(name)

            def test_default():
                if N < getattr(Settings(), "ranks", 2):
                    pytest.skip("few")

            def test_made():
                if N < getattr(Settings(), "world", 1):
                    pytest.skip("few")

            def test_asked():
                if not hasattr(Settings(), "ranks") and N < 4:
                    pytest.skip("few")
            """,
        },
    )
    assert {name: (each.min, each.confidence) for name, each in found.items()} == {
        "test_default": (2, "high"), "test_made": (3, "high"), "test_asked": (4, "high"),
    }  # fmt: skip


def test_what_is_in_a_set_is_gone_through_in_the_same_order_in_each_run():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import enum, math, pytest, torch

            class Kind(enum.Enum):
                NEAR = 1
                FAR = 2

            NAMES = {"h", "c", "g", "a", "f", "b", "e", "d"}

            def test_names():
                if "".join(name for name in NAMES) != "abcdefgh" or list(frozenset(NAMES))[0] != "a":
                    pytest.skip("another order")
                torch.ones(2, device="cuda")

            def test_mixed():
                number = 0
                for each in {("b", 2), ("a", 10), ("a", 9), None, math, Kind.FAR, 3.5, True}:
                    number += 1
                assert number == 8
                torch.ones(2, device="cuda:1")
            """
        },
    )
    assert found == {"test_names": (1, 1, 1), "test_mixed": (2, 2, 2)}


def test_what_is_set_on_an_object_of_the_library_is_there_whatever_its_class_does_with_it():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/config.py": """
            class Config:
                is_tied = True
                other_names = {}

                def __setattr__(self, name, value):
                    if name in super().__getattribute__("other_names"):
                        name = super().__getattribute__("other_names")[name]
                    super().__setattr__(name, value)
            """,
            "tests/test_it.py": """
            import pytest, torch
            from acme.config import Config

            class Own:
                is_tied = True
                other_names = {"tied": "is_tied"}

                def __setattr__(self, name, value):
                    if name in super().__getattribute__("other_names"):
                        name = super().__getattribute__("other_names")[name]
                    super().__setattr__(name, value)

            def test_set():
                config = Config()
                config.is_tied = False
                if config.is_tied:
                    pytest.skip("tied")
                torch.ones(1, device="cuda")

            def test_as_it_is():
                if Config().is_tied:
                    pytest.skip("tied")
                torch.ones(1, device="cuda")

            def test_own():
                config = Own()
                config.tied = False
                if config.is_tied:
                    pytest.skip("tied")
                torch.ones(1, device="cuda")
            """,
        },
    )
    assert found == {"test_set": (1, 1, 1), "test_as_it_is": (None, None, None), "test_own": (1, 1, 1)}


def test_a_class_is_looked_for_among_the_keys_of_a_table():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import pytest, torch

            class Small:
                pass

            class Large:
                pass

            SIZES = {Large: 3}

            @pytest.mark.parametrize("kind", [Small, Large])
            def test_it(kind):
                torch.ones(1, device=f"cuda:{SIZES[kind] - 1}" if kind in SIZES else "cpu")
            """
        },
    )
    assert found == {
        "test_it[Small]": (0, None, 0),
        "test_it[Large]": (3, 3, 3),
    }


def test_a_named_tuple_that_makes_itself_has_what_it_gives_its_base():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            from collections import namedtuple
            import pytest, torch

            class Base:
                pass

            class Normal(Base):
                pass

            SIZES = {Base: 3}

            class Case(namedtuple("Case", ["kind", "size"])):
                def __new__(cls, kind, times=1):
                    found = next(SIZES[each] for each in kind.mro() if each in SIZES)
                    return super().__new__(cls, kind, size=found * times)

            @pytest.mark.parametrize("kind, size", [Case(Normal)])
            def test_it(kind, size):
                torch.ones(1, device=f"cuda:{size - 1}")
            """
        },
    )
    assert found == {"test_it[Normal-3]": (3, 3, 3)}


def test_what_makes_a_field_of_a_record_is_called_for_each_instance():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import dataclasses
            import torch

            @dataclasses.dataclass
            class Held:
                data: torch.Tensor = dataclasses.field(default_factory=lambda: torch.ones(1).cuda())
                names: list = dataclasses.field(default_factory=list)

            def test_made():
                Held()

            def test_given():
                Held(torch.ones(1))

            def test_each_has_its_own():
                Held(1).names.append("cuda:1")
                for name in Held(1).names:
                    torch.ones(1, device=name)
            """
        },
    )
    assert found == {"test_made": (1, 1, 1), "test_given": (0, None, 0), "test_each_has_its_own": (0, None, 0)}


def test_what_a_class_of_the_tests_keeps_that_inherits_from_a_mapping_is_known():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            from collections import OrderedDict
            import pytest
            import torch

            class Grid(OrderedDict):
                def rows(self):
                    return [(name, count) for name, count in self.items()]

            class Settings(dict):
                def __missing__(self, name):
                    return 2

            GRID = Grid({"one": 1, "two": 2})

            def require(count):
                if torch.cuda.device_count() < count:
                    pytest.skip("too few")
                torch.ones(count, device=f"cuda:{count - 1}")

            @pytest.mark.parametrize("name,count", GRID.rows())
            def test_rows(name, count):
                require(count)

            def test_its_length():
                require(len(GRID))

            def test_what_is_set():
                settings = Settings(a=1)
                settings["b"] = 3
                require(max(settings.values()))

            def test_its_kind():
                if isinstance(GRID, dict) and "two" in GRID:
                    require(GRID["two"])

            def test_what_it_makes():
                require(Settings()["c"])
            """
        },
    )
    assert found == {
        "test_rows[one-1]": (1, 1, 1),
        "test_rows[two-2]": (2, 2, 2),
        "test_its_length": (2, 2, 2),
        "test_what_is_set": (3, 3, 3),
        "test_its_kind": (2, 2, 2),
        "test_what_it_makes": (2, 2, 2),
    }


def test_what_a_class_makes_is_no_function_of_pythons():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import types
            import torch

            class Model(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.weight = torch.nn.Parameter(torch.randn(2, 2))

            def check(model):
                if not isinstance(model, (types.FunctionType, types.MethodType)):
                    model = model.to("cuda")

            def test_model():
                check(Model())

            def test_function():
                check(lambda x: x + 1)
            """
        },
    )
    assert found == {"test_model": (1, 1, 1), "test_function": (0, None, 0)}


def test_an_instance_that_is_made_without_its_init_has_what_it_is_given_then():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch

            class Stage:
                def __init__(self, index):
                    self.index = index

                @classmethod
                def bare(cls, index):
                    made = cls.__new__(cls)
                    made.index = index
                    return made

                def use(self):
                    torch.ones(1, device=f"cuda:{self.index}")

            def test_of_the_class():
                stage = Stage.__new__(Stage)
                stage.index = 2
                stage.use()

            def test_of_object():
                stage = object.__new__(Stage)
                stage.index = 2
                stage.use()

            def test_initialised_later():
                stage = Stage.__new__(Stage)
                stage.__init__(2)
                stage.use()

            def test_by_a_method():
                Stage.bare(2).use()
            """
        },
    )
    assert set(found.values()) == {(3, 3, 3)}, found


def test_what_a_class_keeps_that_inherits_from_a_list_is_known():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": """
            import torch

            class Stages(list):
                def run(self):
                    for index in self:
                        torch.ones(1, device=f"cuda:{index}")

            class Named(Stages):
                def __init__(self, name, items):
                    super().__init__(items)
                    self.name = name
            """,
            "tests/test_it.py": """
            import torch
            from acme import Named, Stages

            class Sizes(list):
                def use(self):
                    for each in self:
                        use(each)

            class Counted(list):
                def __init__(self, items):
                    super().__init__(items)
                    self.count_of_all = len(self)

            def use(number):
                torch.ones(1, device=f"cuda:{number}")

            def test_gone_through():
                Sizes([1, 3]).use()

            def test_item():
                use(Counted([1, 3])[-1])

            def test_attribute():
                use(Counted([5, 5, 5]).count_of_all)

            def test_length():
                use(len(Sizes([4, 4, 4])))

            def test_appended():
                sizes = Sizes()
                sizes.append(1)
                sizes.extend([2, 3])
                use(sizes[2])

            def test_among():
                use(3 if 7 in Sizes(range(8)) and isinstance(Sizes(), list) else 0)

            def test_taken():
                use(Sizes([1, 3]).pop())

            def test_empty():
                use(0 if Sizes() else 3)

            def test_of_the_library():
                Stages([1, 3]).run()

            def test_of_the_library_with_its_own_init():
                Named("those", [1, 3]).run()

            def test_sorted():
                use(sorted(Sizes([3, 1]))[1])

            def test_copied():
                use([*Sizes([0, 3])][1])
            """,
        },
    )
    assert {name: each[0] for name, each in found.items()} == dict.fromkeys(found, 4), found


def test_what_a_mapping_makes_that_it_does_not_keep_is_known():
    assert devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch

            def touch(index):
                torch.ones(2, device=f"cuda:{index}")
                return index

            class Table(dict):
                def __missing__(self, key):
                    return touch(int(key))

            class Filled(dict):
                def __init__(self, count):
                    self.count = count

                def __missing__(self, key):
                    self[key] = self.count + key
                    return self[key]

            class Plain(dict):
                pass

            def test_made():
                assert Table({"1": 1})["2"] == 2

            def test_kept():
                assert Table({"1": 1})["1"] == 1

            def test_asked_politely():
                assert Table().get("3") is None

            def test_made_once():
                filled = Filled(1)
                touch(filled[1])
                assert list(filled.items()) == [(1, 2)]

            def test_not_made():
                with pytest.raises(KeyError):
                    touch(Plain(a=0)["b"])

            def test_taken():
                kept = Plain(a=2)
                touch(kept.pop("a"))
                assert "a" not in kept
            """
        },
    ) == {
        "test_made": (3, 3, 3),
        "test_kept": (0, None, 0),
        "test_asked_politely": (0, None, 0),
        "test_made_once": (3, 3, 3),
        "test_not_made": (0, None, 0),
        "test_taken": (3, 3, 3),
    }


def test_a_copy_of_an_object_is_another_one():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import copy
            import enum
            import torch

            class Inner:
                gpus = 1

            class Sizes:
                def __init__(self):
                    self.gpus, self.inner, self.me = 2, Inner(), self

            class Kind(enum.Enum):
                ONE = 1

            class Own(Inner):
                def __deepcopy__(self, memo):
                    made = Own()
                    made.gpus = 3
                    return made

            def use(gpus):
                torch.ones(1, device=gpus - 1)

            def test_shallow():
                first = Sizes()
                second = copy.copy(first)
                first.gpus, first.inner.gpus = 4, 3
                use(second.gpus)

            def test_of_what_both_have():
                first = Sizes()
                second = copy.copy(first)
                first.inner.gpus = 3
                use(second.inner.gpus)

            def test_deep():
                first = Sizes()
                second = copy.deepcopy([first])[0]
                first.inner.gpus = 3
                assert second.me is second
                use(second.inner.gpus)

            def test_of_a_member():
                assert copy.deepcopy(Kind.ONE) is Kind.ONE
                use(copy.deepcopy(Kind.ONE).value)

            def test_by_itself():
                use(copy.deepcopy(Own()).gpus)
            """
        },
    )
    one, two, three = ((each, each, each) for each in range(1, 4))
    assert found == {
        "test_shallow": two,
        "test_of_what_both_have": three,
        "test_deep": one,
        "test_of_a_member": one,
        "test_by_itself": three,
    }


def test_methods_are_made_of_functions():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import types
            import torch

            class Sizes:
                gpus = 3

            def test_it():
                sizes = Sizes()
                sizes.use = types.MethodType(lambda self: torch.ones(1, device=self.gpus - 1), sizes)
                sizes.use()
            """
        },
    )
    assert found == {"test_it": (3, 3, 3)}


def test_a_pattern_means_the_attributes_that_a_class_names_for_it():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch

            class Place:
                __match_args__ = ("row", "column")

                def __init__(self, row, column):
                    self.row, self.column = row, column

            def test_it():
                match Place(3, 2):
                    case Place(1, column):
                        torch.ones(1, device=f"cuda:{column + 4}")
                    case Place(_, column):
                        torch.ones(1, device=f"cuda:{column - 1}")
            """
        },
    )
    assert [(each.min, each.full, each.confidence.value) for each in found.values()] == [(2, 2, "high")]
