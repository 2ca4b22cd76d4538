"""Many cases of one test: few are evaluated, and all get the answer that they would have had."""

import textwrap
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_projects import devices_of

from sooner.door.needs_asking import shipped_rules
from sooner.plan.needs import Inference, OutOfTime, Sources, infer_needs, load_rules
from sooner.plan.needs.cases import parts, shared


def needs_of(path, text):
    rules = load_rules([("rules.toml", shipped_rules())])
    return list(infer_needs(Sources([path], {path: textwrap.dedent(text)}.get), [path], rules=rules))


def cases_of(*sizes):
    return list(product(*(range(size) for size in sizes)))


@given(st.integers(0, 2), st.lists(st.integers(2, 8), min_size=3, max_size=3))
def test_a_parameter_that_matters_is_found(axis, sizes):
    cases = cases_of(*sizes)
    stand_in = shared(cases, lambda picks: picks[axis])
    assert all(stand_in[case][axis] == case[axis] for case in cases)


def test_a_product_of_two_parameters_counts():
    cases = cases_of(4, 4, 9)
    stand_in = shared(cases, lambda picks: (picks[0] + 1) * (picks[1] + 1))
    assert all((a + 1) * (b + 1) == (stand_in[a, b, c][0] + 1) * (stand_in[a, b, c][1] + 1) for a, b, c in cases)


def test_few_of_many_are_evaluated():
    asked = set()
    cases = cases_of(8, 8, 8, 3)
    shared(cases, lambda picks: asked.add(picks) or picks[3])
    assert len(asked) < 100


def test_where_the_rest_differs_every_case_stands_for_itself():
    cases = cases_of(10, 10)
    stand_in = shared(cases, lambda picks: (picks[0] % 9 and picks[1] % 9 and picks != (5, 5)) and sum(picks))
    assert all(stand_in[case] in cases for case in cases)
    assert shared(cases[:50], lambda _picks: 0) == dict.fromkeys(cases[:50], cases[0])
    assert shared(cases[:45], lambda _picks: 0) == {case: case for case in cases[:45]}  # no full product


def test_slow_cases_are_looked_at_in_fewer_places_unless_these_differ():
    cases = cases_of(5, 5, 5, 5)
    asked = set()
    assert set(shared(cases, asked.add, lambda: True).values()) == {cases[0]}
    assert len(asked) < 20
    stand_in = shared(cases, lambda picks: picks[1] > 2, lambda: True)
    assert all((case[1] > 2) == (other[1] > 2) for case, other in stand_in.items())


def test_a_product_that_is_written_down_as_a_list_has_its_parts_again():
    rows = [(shape, axes, norm) for shape, axes in (("a", "1"), ("b", "2"), ("b", "3")) for norm in ("x", "y")]
    assert parts(rows) == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]  # the norm, and what goes together
    assert parts([("a", "1"), ("b", "2")]) == [(0,), (1,)]
    assert parts([("a",), ("a",)]) == [(0,), (0,)]


def test_a_long_list_of_cases_with_a_product_in_it_is_not_evaluated_case_by_case_and_keeps_the_case_that_differs():
    text = """
    import pytest
    import torch

    CASES = [(size, kind, wide) for size in range(40) for kind in "abc" for wide in (1, 4)]

    @pytest.mark.parametrize("size,kind,wide", CASES)
    def test_it(size, kind, wide):
        torch.ones(size, device=f"cuda:{wide - 1}")
    """
    found = {each.nodeid: each.min for each in needs_of("test_it.py", text)}
    assert len(found) == 240
    assert all(least == int(nodeid.rstrip("]")[-1]) for nodeid, least in found.items())


def test_members_of_an_enumeration_that_is_not_in_the_tree_are_named_with_it():
    text = """
    import jax
    import pytest
    import somewhere
    from somewhere.kinds import Kind, KINDS
    from torch.distributed import ReduceOp

    @pytest.mark.parametrize("kind", [Kind.FIRST, somewhere.kinds.OtherKind.NO_2, KINDS.other, somewhere.kinds.Kind])
    def test_kinds(kind):
        pass

    @pytest.mark.parametrize("way", [jax.lax.Precision.HIGHEST, ReduceOp.SUM])
    def test_own(way):
        pass
    """
    assert [each.nodeid.partition("::")[2] for each in needs_of("test_it.py", text)] == [
        "test_kinds[Kind.FIRST]",
        "test_kinds[OtherKind.NO_2]",
        "test_kinds[other]",
        "test_kinds[Kind]",
        "test_own[HIGHEST]",
        "test_own[SUM]",
    ]


def test_a_check_that_calls_itself_on_what_is_not_known_ends():
    text = """
    import somewhere
    import torch

    def check(ours, theirs):
        if isinstance(ours, list):
            for one, other in zip(ours, theirs):
                check(one, other)
                check(other, one)
        elif isinstance(ours, dict):
            for key in theirs:
                check(ours[key], theirs[key])
                check(ours, theirs[key])
        else:
            assert ours == theirs

    def test_it():
        check(somewhere.one(), somewhere.other())
        torch.ones(1, device="cuda:2")
    """
    (found,) = needs_of("test_it.py", text)
    assert (found.min, found.confidence) == (3, "high")


def test_parameters_that_stand_in_one_condition_are_changed_together():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch

            @pytest.mark.parametrize("a", list(range(10)))
            @pytest.mark.parametrize("b", list(range(10)))
            @pytest.mark.parametrize("kind", ["x", "y", "z"])
            def test_pair(a, b, kind):
                if a == 7 and b == 3 and torch.cuda.device_count() < 4:
                    pytest.skip("needs four")
                torch.ones(1).cuda()
            """
        },
    )
    assert len(found) == 300
    assert {name for name, said in found.items() if said[0] == 4} == {f"test_pair[{each}-3-7]" for each in "xyz"}
    assert {said for said in found.values() if said[0] != 4} == {(1, 1, 1)}


def test_a_list_of_cases_that_is_empty_is_one_test_that_is_skipped_unless_another_number_of_devices_fills_it():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch

            @pytest.mark.parametrize("a, b", [])
            @pytest.mark.parametrize("c", [1, 2])
            def test_empty(a, b, c):
                torch.ones(1).cuda()

            @pytest.mark.parametrize("size", [2] if torch.cuda.device_count() > 1 else [])
            def test_filled(size):
                torch.ones(1, device="cuda:1")
            """
        },
    )
    never = (None, None, None)
    assert found == {"test_empty[1-NOTSET]": never, "test_empty[2-NOTSET]": never, "test_filled[2]": (2, 2, 2)}


def test_a_fixture_sees_the_parameters_of_a_test():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch

            @pytest.fixture(autouse=True)
            def only_first_stage(request):
                try:
                    if hasattr(request.node, "callspec") and hasattr(request.node.callspec, "params"):
                        if request.node.callspec.params.get("stage") is False:
                            pytest.skip("only the first")
                except Exception:
                    pass
                yield

            @pytest.mark.parametrize("stage", [True, False])
            def test_stage(stage):
                torch.ones(1).cuda()

            def test_plain():
                torch.ones(1).cuda()
            """
        },
    )
    once = (1, 1, 1)
    assert found == {"test_stage[True]": once, "test_stage[False]": (None, None, None), "test_plain": once}


GUARDS_BY_NUMBERS = {
    "max(SIZES, key=lambda size: -size)": 2,
    "min(2, 4, 3, key=lambda size: -size)": 4,
    "sorted(SIZES, key=lambda size: -size)[0]": 4,
    "sorted(['tp2', 'tp4', 'tp3'], key=lambda name: int(name[2:]), reverse=True)[0] == 'tp4' and 4": 4,
    "by_size[0]": 4,
    "collections.deque([1, 2, 3])[-1]": 3,
    "collections.deque([1, 2, 4, 8], maxlen=2)[0]": 4,
    "collections.Counter('aabbb')['b']": 3,
    "collections.Counter('aab')['z'] + 4": 4,
    "collections.defaultdict(int)['z'] + 4": 4,
    "collections.defaultdict(lambda: 3, {'a': 4})['a']": 4,
    "operator.itemgetter(1)((1, 4))": 4,
    "left[0] + left[1] + left[-1]": 4,
    "list(map(lambda one, other: one + other, [1], [3]))[0]": 4,
    "len(list(itertools.zip_longest([1], [1, 2, 3])))": 3,
    "list(itertools.islice([1, 2, 4, 8], 3))[-1]": 4,
    "list(itertools.pairwise([1, 2, 4]))[1][1]": 4,
    "len(list(itertools.repeat('ab', 3)))": 3,
    "list(itertools.starmap(max, [(2, 4)]))[0]": 4,
    "list(itertools.takewhile(lambda size: size < 5, [1, 4, 9]))[-1]": 4,
    "len(list(itertools.filterfalse(lambda size: size < 5, [1, 4, 9, 8])))": 2,
    "list(itertools.dropwhile(lambda size: size < 3, [1, 4, 9]))[0]": 4,
    "list(itertools.accumulate([1, 2, 1]))[-1]": 4,
    "list(itertools.accumulate([1, 2, 2], lambda one, other: one * other))[-1]": 4,
    "operator.itemgetter(0, 1)((1, 4))[1]": 4,
    "dict[str, int](size=4)['size']": 4,
    "{id(left): 3, id(by_size): 4}[id(by_size)]": 4,
    "Mesh('tp', 2)._replace(size=4).size": 4,
    "Mesh('tp', 2)._replace(size=4)[1]": 4,
    "Mesh('tp', 4)._asdict()['size']": 4,
    "len(Mesh('tp', 2)._fields) + 1": 3,
    "8 if isinstance(Kind.WIDE, (list, collections.abc.Iterable)) else 4": 4,
    "4 if isinstance(Kind.WIDE, enum.Enum) else 8": 4,
    "8 if Kind.WIDE == (Kind.WIDE, Kind.FLAT) or Kind.FLAT in [Kind.WIDE] else 4": 4,
    "8 if Kind.WIDE == Size.FOUR or Kind.WIDE == [4] else 4": 4,
    "4 if isinstance(Size.FOUR, int) and not isinstance(Size.FOUR, str) else 8": 4,
    "pow(2, 2)": 4,
    "int(16 ** 0.5)": 4,
    "math.trunc(math.pow(2.0, 2))": 4,
    "len(bin(3))": 4,
    "3 if math.isinf(math.inf) and math.log10(100) == 2 else 8": 3,
    "len(os.path.splitext('a.gpu')[1])": 4,
    "string.digits.index('4')": 4,
}


@pytest.mark.parametrize(("number", "least"), GUARDS_BY_NUMBERS.items())
def test_a_number_that_is_chosen_by_a_key_counted_or_defaulted_is_known(number, least):
    (found,) = needs_of(
        "test_it.py",
        "import collections, collections.abc, enum, itertools, math, operator, os, pytest, string, torch, typing\n"
        "SIZES = [2, 4, 3]\nby_size = [2, 4, 3]\n"
        "left = collections.deque([1, 2, 9])\nleft.pop()\nleft.appendleft(3)\nleft.popleft()\nleft.rotate()\n"
        "left.extendleft([7, 1])\nleft.remove(7)\n"
        "class Kind(enum.Enum):\n    WIDE = [4]\n    FLAT = [1]\nclass Size(enum.IntEnum):\n    FOUR = 4\n"
        "class Mesh(typing.NamedTuple):\n    kind: str\n    size: int\n"
        "by_size.sort(key=lambda size: -size)\n"
        f"@pytest.mark.skipif(torch.cuda.device_count() < ({number}), reason='small')\n"
        "def test_it():\n    torch.ones(1).cuda()\n",
    )
    assert (found.min, found.confidence) == (least, "high")


MATCHED = {
    "('nccl', 4)": 4,
    "['gloo', 1, 2, 3]": 3,
    "{'size': 4, 'of': 'tp'}": 4,
    "{'of': 'tp'}": 2,
    "'tp4'": 3,
    "Mesh(4, 'tp')": 4,
    "Mesh(dim=3, kind='pp')": 3,
    "8": 8,
}


@pytest.mark.parametrize(("value", "least"), MATCHED.items())
def test_what_a_match_takes_apart_is_known(value, least):
    (found,) = needs_of(
        "test_it.py",
        f"""
        import dataclasses, pytest, torch

        @dataclasses.dataclass
        class Mesh:
            dim: int
            kind: str

        def needed(value):
            match value:
                case ("nccl", size):
                    return size
                case [_, *more, last]:
                    return len(more) + 1
                case {{"size": size, **rest}} if rest:
                    return size
                case {{"of": str()}}:
                    return 2
                case str(name):
                    return len(name)
                case Mesh(dim, "tp"):
                    return dim
                case Mesh(kind="pp", dim=size):
                    return size
                case int() as size:
                    return size

        @pytest.mark.skipif(torch.cuda.device_count() < needed({value}), reason="small")
        def test_it():
            torch.ones(1).cuda()
        """,
    )
    assert (found.min, found.confidence) == (least, "high")


def test_a_function_that_chooses_by_the_type_of_its_argument_is_not_taken_for_its_first_form():
    (found,) = needs_of(
        "test_it.py",
        """
        import functools, pytest, torch

        @functools.singledispatch
        def needed(value):
            return 1

        @needed.register
        def _(value: str):
            return 4

        @pytest.mark.skipif(torch.cuda.device_count() < needed("a"), reason="small")
        def test_it():
            torch.ones(1).cuda()
        """,
    )
    assert found.min == 4


LISTS_OF_WHAT_NOBODY_KNOWS = {
    "an item": "for each in things:\n    made[each] = 1\n",
    "an item of pairs": "for name, each in things.items():\n    if each != 3:\n        made[name] = each\n",
    "a default": "for each in things:\n    made.setdefault(each, []).append(1)\n",
    "an update": "made.update(things)\n",
    "an update of pairs": "made.update([(each, 1) for each in things])\n",
    "a copy": "made = dict(things)\n",
    "a literal": "made = {**things}\n",
    "an entry that makes itself": "made = collections.defaultdict(list)\nfor it in things:\n    made[it].append(1)\n",
}


@pytest.mark.parametrize("how", LISTS_OF_WHAT_NOBODY_KNOWS)
def test_a_dict_that_something_unknown_fills_is_not_taken_for_an_empty_one(how):
    (found,) = needs_of(
        "test_it.py",
        "import collections, pytest, torch\nfrom elsewhere import things\nmade = {}\n"
        f"{LISTS_OF_WHAT_NOBODY_KNOWS[how]}"
        "@pytest.mark.parametrize('name', list(made))\n"
        "def test_it(name):\n    assert name in made\n    torch.ones(1).cuda()\n",
    )
    assert (found.min, found.full) == (1, 1)


def test_what_a_module_takes_away_under_a_condition_that_is_not_known_is_still_there():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import elsewhere
            import pytest
            import torch

            MODELS = ["a"]
            SIZES = {"one": 1}
            if not elsewhere.has_it():
                MODELS.remove("a")
                SIZES.pop("one")

            @pytest.mark.parametrize("model", MODELS)
            @pytest.mark.parametrize("size", SIZES)
            def test_it(model, size):
                torch.ones(1).cuda()

            @pytest.mark.parametrize("model", {"1.0": ["x"]}.get(elsewhere.version, []))
            def test_by_a_constant(model):
                torch.ones(1).cuda()
            """
        },
    )
    assert found == {"test_it[one-a]": (1, 1, 1), "test_by_a_constant": (1, 1, 1)}


def test_what_is_under_a_name_of_a_dict_that_something_unknown_fills_is_not_known():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            from elsewhere import things

            SIZES = {"small": 1, **things}

            def test_one_that_was_there():
                torch.ones(1, device=f"cuda:{SIZES['small']}")

            def test_one_that_may_be_there():
                if "wide" in SIZES and not SIZES.get("wide"):
                    raise ValueError(SIZES["wide"])
                if len(SIZES) == 1:
                    raise ValueError("nothing else")
                torch.ones(1).cuda()
            """
        },
    )
    assert found == {"test_one_that_was_there": (2, 2, 2), "test_one_that_may_be_there": (1, 1, 1)}


def test_a_worker_that_is_called_as_tests_are_is_no_test_that_runs():
    found = devices_of(
        "test_it.py",
        {
            "conftest.py": """
            import pytest

            @pytest.fixture
            def world_size():
                return 1
            """,
            "test_it.py": """
            import pytest
            import torch
            import torch.multiprocessing as mp

            def test_gather(rank, size):
                torch.ones(1, device=f"cuda:{rank}")

            def test_all():
                mp.spawn(test_gather, args=(2,), nprocs=2)

            def test_fixture(world_size):
                assert world_size == 1

            def test_plugin(rank):
                assert rank == 0

            @pytest.mark.parametrize("rank", [0, 1])
            def test_case(rank):
                torch.ones(1, device=f"cuda:{rank}")

            CASES = [test_fixture, test_case]
            """,
        },
    )
    assert found == {
        "test_gather": (None, None, None),
        "test_all": (2, 2, 2),
        "test_fixture": (0, None, 0),
        "test_plugin": (0, None, 0),
        "test_case[0]": (1, 1, 1),
        "test_case[1]": (2, 2, 2),
    }


def test_a_function_of_a_program_that_is_called_as_tests_are_is_no_test_that_runs():
    found = devices_of(
        "memory_test.py",
        {
            "conftest.py": """
            import pytest

            @pytest.fixture
            def size():
                return 1
            """,
            "memory_test.py": """
            import pytest
            import torch

            def test_memory(group, size):
                torch.ones(size).cuda()

            def test_fixture(size):
                torch.ones(size).cuda()

            def test_plugin(client):
                torch.ones(1).cuda()

            def test_own(tmp_path, count):
                torch.ones(1).cuda()

            @pytest.mark.parametrize(*named())
            def test_cases(count):
                torch.ones(1).cuda()

            if __name__ == "__main__":
                for args in ((8,), (16,)):
                    test_memory(torch.distributed.init_process_group("nccl"), *args)
                test_fixture(3)
                test_plugin()
                test_own("/tmp", 3)
                test_cases(3)
            """,
        },
    )
    other = {name.partition("[")[0]: each for name, each in found.items() if name != "test_memory"}
    assert found["test_memory"] == (None, None, None)
    assert other == dict.fromkeys(("test_fixture", "test_plugin", "test_own", "test_cases"), (1, 1, 1))


def test_what_a_program_calls_of_its_own_calls_no_tests_either():
    found = devices_of(
        "test_ops.py",
        {
            "test_ops.py": """
            import torch

            def test_gather(state):
                torch.ones(1, device=state.device)

            def test_plain():
                torch.ones(1)

            def test_of_nobody(state):
                torch.ones(1)

            def run(state):
                test_gather(state)

            def unused(state):
                test_of_nobody(state)

            def main():
                run(State())
                test_plain()

            if __name__ == "__main__":
                main()
            """,
        },
    )
    assert found == {
        "test_gather": (None, None, None),
        "test_plain": (0, None, 0),
        "test_of_nobody": (0, None, 0),
    }


def test_a_function_that_its_file_calls_itself_while_it_is_imported_is_no_test():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch

            outputs = torch.ones(3, device="cuda:1")

            def test_same(obj):
                assert obj is not None

            def test_later(obj):
                torch.ones(1, device="cuda:2")

            def test_called_with_less(obj, other):
                torch.ones(1, device="cuda:2")

            def check(value):
                test_later(value)

            test_same(outputs.shape)
            for output in outputs:
                test_same(output)
            test_called_with_less(1)
            """
        },
    )
    assert found == {"test_same": (None, None, None), "test_later": (3, 3, 3), "test_called_with_less": (3, 3, 3)}


def test_texts_and_bytes_are_named_as_pytest_names_them_and_long_ones_by_their_number():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": r"""
            import pytest

            @pytest.mark.parametrize("it", ["x" * 100, "y" * 101, b"byte", b"\x00\xff", "tab\t", "é", b"z" * 101])
            def test_it(it):
                pass
            """
        },
    )
    ids = ["x" * 100, "it1", "byte", r"\x00\xff", r"tab\t", r"\xe9", "it6"]
    assert list(found) == [f"test_it[{each}]" for each in ids]


def test_the_dtype_of_a_type_of_numbers_is_named_as_numpy_writes_it():
    found = needs_of(
        "test_it.py",
        """
        import jax.numpy as jnp, pytest

        def named(values, prefix):
            kind = type(jnp.float32)
            texts = [each.dtype if isinstance(each, kind) else each for each in values]
            return [pytest.param(each, id=f"{prefix}_{text}") for each, text in zip(values, texts)]

        @pytest.mark.parametrize("kind", named([jnp.float32, jnp.bfloat16, 4], "kind"))
        def test_it(kind): pass
        """,
    )
    assert {each.nodeid for each in found} == {
        f"test_it.py::test_it[kind_{each}]" for each in ("float32", "bfloat16", "4")
    }


def test_of_two_lists_that_a_name_may_mean_the_longer_one_has_the_cases():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest, torch

            KINDS = ["half", "float"]
            if torch.backends.cudnn.version() >= 8:
                KINDS = ["brain"] + KINDS

            SIZES = [4]
            if torch.backends.cudnn.version() >= 9:
                SIZES = [5, 6]

            @pytest.mark.parametrize("kind", KINDS)
            def test_kind(kind):
                torch.ones(1, device="cuda")

            @pytest.mark.parametrize("size", SIZES)
            def test_size(size):
                torch.ones(1, device="cuda")
            """
        },
    )
    one = (1, 1, 1)
    assert found == {"test_kind[brain]": one, "test_kind[half]": one, "test_kind[float]": one, "test_size": one}


def test_the_texts_that_a_type_allows_are_cases():
    found = devices_of(
        "tests/test_modes.py",
        {
            "lib/config.py": """
            from typing import Literal

            Mode = Literal["host", "wide"]
            Width = Literal[1]
            """,
            "tests/test_modes.py": """
            import pytest
            import torch
            from typing import get_args
            from lib.config import Mode, Width

            @pytest.mark.parametrize("width", get_args(Width))
            @pytest.mark.parametrize("mode", get_args(Mode))
            def test_modes(mode, width):
                if mode == "wide":
                    torch.ones(1, device=f"cuda:{width}")
            """,
        },
    )
    assert found == {"test_modes[host-1]": (0, None, 0), "test_modes[wide-1]": (2, 2, 2)}


def test_the_fields_of_a_record_are_the_parameters_that_its_instances_give():
    found = devices_of(
        "tests/test_records.py",
        {
            "tests/test_records.py": """
            import pytest
            import torch
            from dataclasses import dataclass, fields

            @dataclass
            class Case:
                ranks: int
                kind: str = "cpu"

            CASES = [Case(ranks=1), Case(3, "cuda")]

            @pytest.mark.parametrize(
                ", ".join(field.name for field in fields(Case)),
                [tuple(getattr(case, field.name) for field in fields(Case)) for case in CASES],
            )
            def test_records(ranks, kind):
                torch.ones(1, device=torch.device(kind, ranks - 1))
            """
        },
    )
    assert found == {"test_records[1-cpu]": (0, None, 0), "test_records[3-cuda]": (3, 3, 3)}


def test_cases_are_counted_where_their_values_are_a_frameworks_members_by_whatever_way_they_are_named():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import torch
            import unittest
            from torch.distributed import ReduceOp
            from torch.testing._internal.common_utils import instantiate_parametrized_tests, parametrize

            @instantiate_parametrized_tests
            class TestIt(unittest.TestCase):
                @parametrize("op", [torch.distributed.ReduceOp.SUM, ReduceOp.AVG])
                def test_op(self, op):
                    pass
            """
        },
    )
    assert sorted(found) == ["TestIt::test_op_op0", "TestIt::test_op_op1"]


def test_types_of_numbers_of_several_names_are_called_as_numpy_2_calls_them():
    tests = needs_of(
        "test_it.py",
        """
        import jax.numpy as jnp, numpy as np, pytest
        @pytest.mark.parametrize("kind", [np.bool_, np.double, np.intc, jnp.int_, np.longlong])
        def test_kinds(kind): pass
        @pytest.mark.parametrize("name", [np.bool_.__name__, np.dtype(np.single).name])
        def test_names(name): pass
        @pytest.mark.parametrize("kind", [np.bool_, bool])
        def test_twice(kind): pass
        """,
    )
    assert [test.nodeid.partition("::")[2] for test in tests] == [
        *(f"test_kinds[{each}]" for each in ("bool", "float64", "int32", "int64", "longlong")),
        *(f"test_names[{each}]" for each in ("bool", "float32")),
        *(f"test_twice[{each}]" for each in ("bool0", "bool1")),
    ]


def test_what_a_dtype_and_the_limits_of_whole_numbers_say_names_cases():
    tests = needs_of(
        "test_it.py",
        """
        import jax.numpy as jnp, numpy as np, pytest, torch
        @pytest.mark.parametrize("said", [np.dtype("f4").name, np.dtype(bool).itemsize, jnp.dtype("<i8").kind, "e"])
        def test_said(said): pass
        @pytest.mark.parametrize("kind", [np.dtype("f4"), jnp.float32.dtype, np.dtype("int8").type, np.dtype("odd")])
        def test_kinds(kind): pass
        @pytest.mark.parametrize("number", [np.iinfo(np.int8).max, torch.iinfo(torch.int16).min, np.iinfo("u1").min])
        def test_limits(number): pass
        """,
    )
    assert [test.nodeid.partition("::")[2] for test in tests] == [
        *(f"test_said[{each}]" for each in ("float32", "1", "i", "e")),
        *(f"test_kinds[{each}]" for each in ("kind0", "kind1", "int8", "kind3")),
        *(f"test_limits[{each}]" for each in ("127", "-32768", "0")),
    ]


def test_numpys_letters_of_types_are_cases():
    tests = needs_of(
        "test_it.py",
        """
        import numpy as np, pytest
        @pytest.mark.parametrize("letter", np.typecodes["AllFloat"] + "?")
        def test_it(letter): pass
        """,
    )
    assert [test.nodeid for test in tests] == [f"test_it.py::test_it[{letter}]" for letter in "efdgFDG?"]


def test_types_of_numbers_say_their_names_where_they_are_classes():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import jax.numpy as jnp
            import ml_dtypes
            import pytest
            import torch

            @pytest.mark.parametrize("kind", [jnp.bfloat16, jnp.float8_e4m3fn, jnp.int4, ml_dtypes.float8_e5m2])
            def test_class(kind):
                pass

            @pytest.mark.parametrize("kind", [torch.bfloat16, torch.float8_e4m3fn])
            def test_object(kind):
                pass
            """
        },
    )
    assert list(found) == [
        "test_class[bfloat16]",
        "test_class[float8_e4m3fn]",
        "test_class[int4]",
        "test_class[float8_e5m2]",
        "test_object[kind0]",
        "test_object[kind1]",
    ]


MANY = """
    import pytest
    import torch

    @pytest.mark.parametrize("n", range({numbers}))
    @pytest.mark.parametrize("size", range(100))
    @pytest.mark.parametrize("wide", [0, 1])
    def test_it(wide, size, n):
        if wide and torch.cuda.device_count() < 2:
            pytest.skip("devices")
"""


def test_thousands_of_cases_are_told_apart():
    found = needs_of("t.py", MANY.format(numbers=30))
    assert len(found) == 6_000
    assert {each.nodeid: each.min for each in found} == {
        f"t.py::test_it[{wide}-{size}-{n}]": 2 * wide for wide in (0, 1) for size in range(100) for n in range(30)
    }


def test_of_more_cases_than_can_be_told_apart_one_entry_is_not_sure_where_they_differ():
    (needs,) = needs_of("t.py", MANY.format(numbers=300))
    assert (needs.nodeid, needs.confidence) == ("t.py::test_it", "low")
    (alike,) = needs_of("t.py", MANY.format(numbers=300).replace("if wide and", "if"))
    assert (alike.nodeid, alike.min, alike.confidence) == ("t.py::test_it", 2, "high")


def test_a_file_is_given_up_in_its_middle_where_no_time_is_left():
    asked = []
    sources = Sources(["t.py"], {"t.py": textwrap.dedent(MANY.format(numbers=30))}.get)
    inference = Inference(sources, load_rules([("", "")]), is_over=lambda: len(asked) > 20 or asked.append(1))
    with pytest.raises(OutOfTime):
        inference.of_file("t.py")
    asked.clear()
    assert inference.of_file("nowhere.py") == []


def test_types_of_pytorch_that_are_looked_for_by_their_names_are_cases():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import pytest, torch

            NAMES = ("float8_e4m3fn", "float8_e5m2", "float")
            FOUND = [getattr(torch, name) for name in NAMES if hasattr(torch, name)]

            @pytest.mark.parametrize("dtype", FOUND, ids=lambda each: str(each).rsplit(".", 1)[-1])
            def test_narrow(dtype):
                torch.zeros(2, dtype=dtype, device="cuda:1")
            """
        },
    )
    names = ("float8_e4m3fn", "float8_e5m2", "float32")
    assert found == {f"test_narrow[{name}]": (2, 2, 2) for name in names}


def test_a_case_that_absl_is_told_the_name_of_has_it_however_long():
    name = "of_" + "many_words_" * 12
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": f"""
            from absl.testing import parameterized

            class NamedTest(parameterized.TestCase):
                @parameterized.named_parameters(dict(testcase_name="{name}", size=2))
                def test_it(self, size):
                    pass
            """
        },
    )
    assert list(found) == [f"NamedTest::test_it_{name}"]


def test_names_of_parameterized_cases_may_be_made_of_the_cases_items():
    found = needs_of(
        "test_it.py",
        """
        import itertools
        import unittest
        from parameterized import parameterized

        class Lora:
            pass

        class Loha:
            pass

        def name(func, number, case):
            first, second = case[0]
            return f"{func.__name__}_{number}_{first.__class__.__name__}_{second.__class__.__name__}"

        class TestPairs(unittest.TestCase):
            @parameterized.expand(itertools.combinations([Lora(), Loha(), Loha()], r=2), name_func=name)
            def test_pair(self, first, second):
                pass
        """,
    )
    assert [each.nodeid.rpartition("::")[2] for each in found] == [
        "test_pair_0_Lora_Loha",
        "test_pair_1_Lora_Loha",
        "test_pair_2_Loha_Loha",
    ]


def test_the_parameters_of_a_signature_have_names():
    found = needs_of(
        "test_it.py",
        """
        import dataclasses
        import inspect
        import pytest

        @dataclasses.dataclass
        class Base:
            rank: int = 8

        @dataclasses.dataclass
        class Layered(Base):
            layers: list = None

        class Written:
            def __init__(self, layers, *more, scale=1, **options):
                pass

        class Plain:
            pass

        def function(first, second=2):
            pass

        ALL = [Base, Layered, Written, Plain]
        LAYERED = [each for each in ALL if "layers" in inspect.signature(each).parameters]

        @pytest.mark.parametrize("kind", LAYERED)
        def test_kind(kind):
            pass

        @pytest.mark.parametrize("name", list(inspect.signature(Written).parameters))
        def test_written(name):
            pass

        @pytest.mark.parametrize("name", inspect.signature(function).parameters)
        def test_function(name):
            pass
        """,
    )
    assert [each.nodeid.removeprefix("test_it.py::") for each in found] == [
        "test_kind[Layered]",
        "test_kind[Written]",
        "test_written[layers]",
        "test_written[more]",
        "test_written[scale]",
        "test_written[options]",
        "test_function[first]",
        "test_function[second]",
    ]


def test_an_index_that_numpy_writes_down_is_that_index():
    found = needs_of(
        "test_it.py",
        """
        import numpy as np
        import pytest

        @pytest.mark.parametrize("index", [np.s_[2], np.s_[-2:], slice(None)])
        def test_index(index):
            pass
        """,
    )
    assert [each.nodeid.removeprefix("test_it.py::test_index") for each in found] == ["[2]", "[index1]", "[index2]"]


def test_a_record_in_the_name_of_a_case_is_written_as_dataclass_does_it():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            from collections import namedtuple
            from dataclasses import dataclass, field
            from typing import ClassVar, NamedTuple

            import pytest
            import torch

            @dataclass
            class Axes:
                data: str = None
                parts: list = field(default_factory=list)

            @dataclass
            class Wide(Axes):
                whole = None
                kind: ClassVar[int] = 3
                hidden: int = field(default=1, repr=False)
                share: float = 0.5

                def run(self):
                    pass

            class Named(NamedTuple):
                first: int
                second: str = "x"

            Pair = namedtuple("Pair", "u v")

            @dataclass(repr=False)
            class Plain:
                number: int = 1

            def name(value):
                return "_".join(name(each) for each in value) if isinstance(value, list) else str(value)

            @pytest.mark.parametrize("axes", [pytest.param(v, id=f"axes_{name(v)}") for v in ([2, Axes("dp")],)])
            def test_of_a_list(axes):
                torch.zeros(1, device=f"cuda:{axes[0]}")

            @pytest.mark.parametrize("it", [Wide(), Named(1), Pair(1, 2)], ids=str)
            def test_kinds(it):
                pass

            @pytest.mark.parametrize("it", [Plain()], ids=str)
            def test_not_known(it):
                pass
            """
        },
    )
    assert found == {
        "test_of_a_list[axes_2_Axes(data='dp', parts=[])]": (3, 3, 3),
        "test_kinds[Wide(data=None, parts=[], share=0.5)]": (0, None, 0),
        "test_kinds[Named(first=1, second='x')]": (0, None, 0),
        "test_kinds[Pair(u=1, v=2)]": (0, None, 0),
        "test_not_known[it0]": (0, None, 0),
    }


def test_a_deep_copy_has_what_is_inside_for_itself():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import copy
            import pytest
            import torch

            bases = [{"of": {"name": "first{}", "index": [0]}}, {"of": {"name": "second{}", "index": [0]}}]
            configs = []
            for base in bases:
                for index, kind in enumerate(("", "-chat")):
                    made = copy.deepcopy(base)
                    made["of"]["name"] = base["of"]["name"].format(kind)
                    made["of"]["index"][0] += index
                    configs.append(made)
            shallow = copy.copy(bases[0])
            shallow["of"]["index"].append(2)
            ring = []
            ring.append(ring)
            other = copy.deepcopy(ring)
            assert other[0] is other is not ring

            @pytest.mark.parametrize("config", configs, ids=[each["of"]["name"] for each in configs])
            def test_deep(config):
                torch.zeros(1, device=f"cuda:{config['of']['index'][0]}")

            def test_shallow():
                torch.zeros(1, device=f"cuda:{bases[0]['of']['index'][1]}")
            """
        },
    )
    assert found == {
        "test_deep[first]": (1, 1, 1),
        "test_deep[first-chat]": (2, 2, 2),
        "test_deep[second]": (1, 1, 1),
        "test_deep[second-chat]": (2, 2, 2),
        "test_shallow": (3, 3, 3),
    }


def test_a_record_that_is_made_again_computes_what_follows_from_its_fields_anew():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import dataclasses
            import torch

            @dataclasses.dataclass
            class Case:
                tp: int = 1
                dp: int = 1
                gpus: int = dataclasses.field(init=False)

                def __post_init__(self):
                    self.gpus = self.tp * self.dp

            def test_of_three():
                case = dataclasses.replace(Case(dp=1), tp=3)
                torch.ones(1, device=case.gpus - 1)

            def test_of_four():
                case = dataclasses.replace(Case(tp=2), dp=2)
                torch.ones(1, device=case.gpus - 1)
            """
        },
    )
    assert found == {"test_of_three": (3, 3, 3), "test_of_four": (4, 4, 4)}


def test_types_of_numbers_that_have_two_names_in_pytorch_are_one():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest, torch
            from torch import double

            def use(number):
                torch.ones(1, device=f"cuda:{number}")

            def test_half():
                use(2 if torch.half == torch.float16 else 0)

            def test_among():
                use(2 if torch.float16 in (torch.half, torch.bfloat16) else 0)

            def test_imported():
                use(2 if double is torch.float64 else 0)

            def test_key():
                use({torch.float: 2}[torch.float32])

            def test_others():
                use(0 if torch.long == torch.int32 else 2)

            @pytest.mark.parametrize("dtype", [torch.half, torch.long])
            def test_names(dtype):
                use(2)
            """
        },
    )
    names = [
        "test_half",
        "test_among",
        "test_imported",
        "test_key",
        "test_others",
        "test_names[dtype0]",
        "test_names[dtype1]",
    ]
    assert found == dict.fromkeys(names, (3, 3, 3))
