"""Rules of users, what is not known, and what is hostile."""

import re
import textwrap
import tomllib
from collections import Counter

import pytest

from sooner.door.needs_asking import shipped_rules
from sooner.model.errors import SettingsError
from sooner.plan.needs import Confidence, Sources, Verdict, infer_needs, load_rules
from sooner.plan.needs.rule_words import known_words
from sooner.plan.needs.testing.told_devices import devices_named


def needs_of(text, *, rules="", path="test_it.py", **others):
    files = {path: textwrap.dedent(text), **{name: textwrap.dedent(each) for name, each in others.items()}}
    tables = [("own.toml", rules), ("rules.toml", shipped_rules())]
    return {each.nodeid: each for each in infer_needs(Sources(files, files.get), [path], rules=load_rules(tables))}


def profile(needs):
    return "".join(each.value[0] for each in needs.profile.values())


def test_a_users_rule_explains_a_decorator_of_a_package():
    rules = '[[call]]\nnames = ["acme.needs_gpus"]\ndecorator = true\nskip = "N < arg(0, \'count\', 1)"\n'
    found = needs_of(
        """
        from acme import needs_gpus
        @needs_gpus(count=3)
        def test_a(): pass
        """,
        rules=rules,
    )
    assert profile(found["test_it.py::test_a"]) == "sssrrr"


def test_a_users_model_stands_in_for_a_run_loop():
    rules = '''
    [[model]]
    modules = ["acme.case"]
    python = """
import unittest
class AcmeCase(unittest.TestCase):
    __unittest__ = True
    size = 2
    def __sooner_run__(self, test, marks):
        ranks(self.size)
        need(self.size)
        test()
"""
    '''
    found = needs_of(
        """
        from acme.case import AcmeCase
        class Four(AcmeCase):
            size = 4
            def test_a(self): pass
        """,
        rules=textwrap.dedent(rules),
    )
    assert found["test_it.py::Four::test_a"].gpu_min == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[cal]]\nnames=['a']", r"there is no \[\[cal\]\]"),
        ("[[call]]\nnames=['a']\nskipp='N'", "unknown skipp"),
        ("[[call]]\nskip='N'", "no `names`"),
        ("[[call]]\nnames=['a']\nskip='N <'", "is not a Python expression"),
        ("[[call", "own.toml"),
        ("[[model]]\nmodules=['a']\npython='def ('", "needs `modules` and Python"),
    ],
)
def test_a_rule_that_is_not_understood_is_one_clear_error(text, message):
    with pytest.raises(SettingsError, match=message):
        load_rules([("own.toml", text)]).check(known_words())


def test_everything_in_the_shipped_table_is_understood():
    load_rules([("rules.toml", shipped_rules())]).check(known_words())


def test_a_size_that_is_not_known_is_said_to_be_unknown_and_not_guessed():
    found = needs_of(
        """
        from vllm import LLM
        from elsewhere import how_many
        def test_a():
            LLM("m", tensor_parallel_size=how_many())
        """
    )
    needs = found["test_it.py::test_a"]
    assert needs.profile["8"] is Verdict.UNKNOWN
    assert needs.min == needs.gpu_min == needs.full == "unknown"
    assert needs.confidence is Confidence.LOW


def test_a_condition_that_is_not_about_devices_is_taken_as_met_and_told():
    found = needs_of(
        """
        import pytest
        from elsewhere import has_flash
        @pytest.mark.skipif(not has_flash(), reason="")
        def test_a(): pass
        """
    )
    assert profile(found["test_it.py::test_a"]) == "rrrrrr"
    assert found["test_it.py::test_a"].confidence is Confidence.MEDIUM


def test_parameters_that_are_not_known_give_one_entry_for_all():
    found = needs_of(
        """
        import pytest
        from elsewhere import CASES
        @pytest.mark.parametrize("case", CASES)
        def test_a(case): pass
        """
    )
    assert list(found) == ["test_it.py::test_a"]


def test_one_entry_for_all_has_the_devices_of_the_widest_of_the_parameters_that_are_known():
    found = needs_of(
        """
        import pytest, torch
        from elsewhere import CASES
        @pytest.mark.parametrize("size", [each for each in (1, 2, 4) if each <= torch.cuda.device_count()])
        @pytest.mark.parametrize("case", CASES)
        def test_many(case, size):
            torch.ones(1, device=f"cuda:{size - 1}")
        @pytest.mark.parametrize("device", ["cuda", "cpu"])
        @pytest.mark.parametrize("case", CASES)
        def test_either(case, device):
            torch.ones(1, device=device)
        """
    )
    many, either = found["test_it.py::test_many"], found["test_it.py::test_either"]
    assert (many.min, many.gpu_min, many.full, many.confidence) == (1, 1, 4, Confidence.LOW)
    assert (either.min, either.gpu_min, either.full) == (0, 1, 1)


@pytest.mark.parametrize(
    "text",
    [
        "def test_a(:",
        "\x00",
        "",
        "def test_a():\n    while True:\n        pass\n",
        "def test_a():\n    return test_a()\n",
        "def test_a():\n    x = 'a' * 10 ** 12\n    y = 9 ** 9 ** 9\n    z = [0] * 10 ** 9\n",
        "class TestA(TestA):\n    def test_a(self): pass\n",
        "x = " + "(" * 90 + "1" + ")" * 90,
        "import test_it\nfrom test_it import *\ndef test_a(): pass\n",
        "def f(*a, **k):\n    return f(*a, **k)\n@f\n@f(f)\ndef test_a(): pass\n",
        "def test_a():\n    " + " + ".join(["1"] * 3000) + "\n",
        "import os\ndef test_a():\n    os._exit(1)\n",
        "import pytest\n@pytest.mark.parametrize('a', range(10**9))\ndef test_a(a): pass\n",
        "import pytest\n@pytest.mark.parametrize()\n@pytest.mark.skipif()\ndef test_a(): pass\n",
        "from enum import Enum\nclass E(Enum):\n    a = 1\n    def b(self): return self.b()\ndef test_a(): E(1).b()\n",
    ],
    ids=range(15),
)
def test_hostile_tests_neither_crash_nor_hang(text):
    assert isinstance(needs_of(text), dict)


def test_an_import_cycle_is_no_trouble():
    found = needs_of(
        "from a import x\ndef test_a(): assert x\n", **{"a.py": "from b import x\n", "b.py": "from a import x\n"}
    )
    assert profile(found["test_it.py::test_a"]) == "rrrrrr"


def test_a_guard_that_fails_in_the_library_without_a_device_fails_the_file():
    library = "import torch\ndef helper():\n    torch.ones(1).cuda(7)\n    return torch.cuda.device_count() >= 2\n"
    found = needs_of(
        "import pytest\nfrom lib import helper\n@pytest.mark.skipif(not helper(), reason='')\ndef test_a(): pass\n",
        **{"lib.py": library},
    )
    assert found["test_it.py::test_a"].min == 8


def test_a_python_api_gives_typed_facts():
    (needs,) = needs_of("import torch\ndef test_a():\n    torch.ones(1, device='cuda:1')\n").values()
    assert (needs.min, needs.gpu_min, needs.full, needs.max, needs.adaptive) == (2, 2, 2, None, False)
    assert needs.evidence[0].line == 3


GUARDS_ELSEWHERE = """
import acme.testing as t
from acme.testing import needs_gpus, requires_multi_accelerators, profiled, only_on_big_machines

@needs_gpus(count=4)
def test_four(): pass

@t.requires_n_gpus(2)
class TestPair:
    def test_it(self): pass

@t.requires_gpu
def test_one(): pass

@requires_multi_accelerators
def test_multi(): pass

@only_on_big_machines("8x")
class TestBig:
    def test_it(self): pass

@t.attention_supported_platform
def test_supported(): pass

@profiled
@t.retried(3)
def test_host(): pass
"""


def test_a_packages_guard_that_names_a_number_of_devices_is_believed_and_others_leave_a_doubt():
    found = needs_of(GUARDS_ELSEWHERE)
    assert {name.partition("::")[2]: (each.min, each.confidence.name) for name, each in found.items()} == {
        "test_four": (4, "HIGH"),
        "TestPair::test_it": (2, "HIGH"),
        "test_one": (1, "HIGH"),
        "test_multi": (2, "MEDIUM"),
        "TestBig::test_it": (0, "MEDIUM"),
        "test_supported": (0, "MEDIUM"),
        "test_host": (0, "HIGH"),
    }


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("require_accelerator", 1),
        ("skip_if_no_gpus", 1),
        ("skip_unless_multi_gpu", 2),
        ("NeedsSeveralDevices", 2),
        ("requires_non_cuda", None),
        ("require_cpu_or_gpu", None),
        ("skip_on_cuda", None),
        ("skip_if_gpu", None),
        ("requires_gpu_memory", None),
        ("requires_fabric", None),
        ("gpu_timer", None),
    ],
)
def test_a_guard_wants_what_its_name_says_that_it_wants(name, least):
    assert devices_named(name) == least


def test_the_line_of_a_guard_that_is_not_known_is_among_the_evidence():
    found = needs_of(GUARDS_ELSEWHERE)
    assert [each.text for each in found["test_it.py::test_multi"].evidence] == ["@requires_multi_accelerators"]


def test_a_mark_that_names_a_number_of_devices_and_that_no_hook_looks_at_leaves_a_doubt():
    found = needs_of(
        """
        import pytest

        @pytest.mark.plugin_gpus(n=4)
        def test_unknown(): pass

        @pytest.mark.hook_gpus(2)
        def test_looked_at(): pass

        @pytest.mark.gpu
        def test_selected(): pass

        @pytest.mark.timeout(60)
        def test_host(): pass
        """,
        **{
            "conftest.py": """
            import pytest, torch
            def pytest_runtest_setup(item):
                mark = item.get_closest_marker("hook_gpus")
                if mark is not None and torch.cuda.device_count() < mark.args[0]:
                    pytest.skip("few")
            """
        },
    )
    assert {name.partition("::")[2]: (each.min, each.confidence.name) for name, each in found.items()} == {
        "test_unknown": (0, "MEDIUM"),
        "test_looked_at": (2, "HIGH"),
        "test_selected": (0, "HIGH"),
        "test_host": (0, "HIGH"),
    }


def test_guards_of_a_package_that_are_bases_fixtures_or_calls_leave_a_doubt():
    found = needs_of(
        """
        import pytest, unittest
        import acme.testing as t
        from acme.testing import MultiGPUTestCase, PlainCase

        class TestBase(MultiGPUTestCase):
            def test_it(self): pass

        class TestPlain(PlainCase):
            def test_it(self): pass

        def test_fixture(multi_gpu_cluster): pass

        @pytest.mark.usefixtures("four_gpus")
        def test_used(): pass

        def test_call():
            t.skip_if_fewer_than(4)

        def test_known_call():
            t.require_gpus(4)

        def test_unseen(tmp_path, benchmark):
            t.check(4)

        def test_host(tmp_path, benchmark):
            assert len([4]) == 1
        """
    )
    assert {name.partition("::")[2]: (each.min, each.confidence.name) for name, each in found.items()} == {
        "TestBase::test_it": (0, "MEDIUM"),
        "TestPlain::test_it": (0, "HIGH"),
        "test_fixture": (0, "MEDIUM"),
        "test_used": (0, "MEDIUM"),
        "test_call": (0, "MEDIUM"),
        "test_known_call": (4, "HIGH"),
        "test_unseen": (0, "MEDIUM"),
        "test_host": (0, "HIGH"),
    }


def test_a_mark_that_names_several_devices_skips_only_if_it_says_how_many():
    found = needs_of(
        """
        import pytest

        @pytest.mark.multi_gpu
        def test_bare(): pass

        @pytest.mark.multi_gpu(4)
        def test_four(): pass

        @pytest.mark.num_gpus(n=3)
        def test_three(): pass
        """
    )
    assert {name.partition("::")[2]: each.min for name, each in found.items()} == {
        "test_bare": 0,
        "test_four": 4,
        "test_three": 3,
    }


def test_what_is_not_there_to_be_read_works_on_the_device_that_it_is_given_and_is_never_certain():
    found = needs_of(
        """
        import torch
        from acme import Config, build, device_name, get_name, send
        from acme.testing import torch_device

        def test_moved():
            send(torch.ones(1), torch.device("cuda:1"))

        def test_moved_to_what_there_is():
            send(torch.ones(1), torch.device(f"{torch_device}:0"))

        def test_moved_to_the_host():
            send(torch.ones(1), torch.device("cpu"))

        def test_kept():
            Config(torch.device("cuda:1"))

        def test_asked():
            get_name(torch.device("cuda:1"))

        def test_built():
            build(3)

        def test_stopped():
            build(3)
            torch.ones(1, device="cuda:2")

        def test_read():
            torch.ones(3).sum()
        """
    )
    said = {
        name.partition("::")[2]: (each.min, each.gpu_min, each.full, each.confidence.name)
        for name, each in found.items()
    }
    assert said == {
        "test_moved": (2, 2, 2, "MEDIUM"),
        "test_moved_to_what_there_is": (0, 1, 1, "MEDIUM"),
        "test_moved_to_the_host": (0, None, 0, "MEDIUM"),
        "test_kept": (0, None, 0, "MEDIUM"),
        "test_asked": (0, None, 0, "MEDIUM"),
        "test_built": (0, None, 0, "MEDIUM"),
        "test_stopped": (3, 3, 3, "HIGH"),
        "test_read": (0, None, 0, "HIGH"),
    }


def test_an_argument_that_a_rule_asks_for_is_found_by_its_name_where_the_tree_has_the_function():
    utils = """
    def multi_process_parallel({parameters}):
        import ray
        ray.init()
        ray.get([test_target.remote(tp_size, pp_size, rank) for rank in range(tp_size * pp_size)])
    """
    text = """
    import pytest
    import ray
    import torch
    from utils import multi_process_parallel

    @ray.remote(num_gpus=1)
    def work(tp_size, pp_size, rank):
        torch.cuda.set_device(rank)

    @pytest.mark.parametrize("pp_size", [1, 2])
    def test_split(pp_size{fixture}):
        if 2 * pp_size > torch.cuda.device_count():
            pytest.skip("too few")
        multi_process_parallel({given})
    """
    said = {
        "tp_size, pp_size, test_target": ("", "2, pp_size, work"),
        "monkeypatch, tp_size, pp_size, test_target": (", monkeypatch", "monkeypatch, 2, pp_size, work"),
        "test_target, *, pp_size, tp_size": ("", "work, tp_size=2, pp_size=pp_size"),
        "test_target, pp_size=1, tp_size=2": ("", "work, pp_size, 2"),
    }
    for parameters, (fixture, given) in said.items():
        files = {
            "utils.py": utils.format(parameters=parameters),
            "text": text.replace("{fixture}", fixture).replace("{given}", given),
        }
        found = {name: (each.min, each.gpu_min, each.full) for name, each in needs_of(**files).items()}
        assert found == {"test_it.py::test_split[1]": (2, 2, 2), "test_it.py::test_split[2]": (4, 4, 4)}, parameters


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ('names = ["needs_fp8"]\nskip = "N < 1"\nunsure = "yes"', "needs_fp8 says unsure = 'yes': true or false"),
        ('names = ["needs_fp8"]\nskip = "N < 1"\noverride = 1', "needs_fp8 says override = 1: true or false"),
        ('names = ["needs_fp8"]\nskip = 2', "the rule for needs_fp8 says skip = 2: an expression in quotes"),
        ('names = ["needs_fp8"]\nneeds = ["2"]', "the rule for needs_fp8 says needs = ['2']: an expression in quotes"),
        ('names = ["needs_fp8", 8]\nskip = "N < 1"', "a rule is for 8: `names` are texts"),
    ],
)
def test_a_rule_that_says_something_of_another_kind_is_refused_with_what_it_says(rule, told):
    with pytest.raises(SettingsError, match=re.escape(told)):
        load_rules([("mine.toml", f"[[call]]\n{rule}\n")])


@pytest.mark.parametrize("kind", ["call", "constant", "environment", "mark", "fixture", "listed"])
def test_no_name_stands_in_two_shipped_rules_of_one_kind_of_which_the_second_would_never_be_asked(kind):
    names = Counter(name for rule in tomllib.loads(shipped_rules())[kind] for name in rule["names"])
    assert [name for name, count in names.items() if count > 1] == []
