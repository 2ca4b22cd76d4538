"""What `bench/needs_against_pytest.py --grammar trees` found: guards, hooks and data of whole projects."""

import os

import pytest
from small_projects import devices_of, needs_of, shipped

from sooner.door.needs_tree import Contents
from sooner.plan.needs import PytestSettings, Sources, infer_needs

DEVICES = """
import pytest, torch

NUM = torch.cuda.device_count()

def has(n):
    return NUM >= n

def require(n):
    if not has(n):
        pytest.skip("few")

def use_all(n):
    for i in range(n):
        torch.ones(1, device=f"cuda:{i}")
"""


def profile_of(found, name):
    return "".join(each.value[0] for each in found[name].profile.values())


@pytest.mark.parametrize(
    "hook",
    [
        """
        @pytest.hookimpl(hookwrapper=True)
        def pytest_runtest_call(item):
            if item.get_closest_marker("four") and NUM < 4:
                pytest.skip("four")
            yield
        """,
        """
        def pytest_itemcollected(item):
            if item.get_closest_marker("four") and NUM < 4:
                item.add_marker(pytest.mark.skip(reason="four"))
        """,
        """
        class Guards:
            def __init__(self, have):
                self.have = have

            def pytest_runtest_setup(self, item):
                if item.get_closest_marker("four") and self.have < 4:
                    pytest.skip("four")

        def pytest_configure(config):
            config.pluginmanager.register(Guards(NUM), "guards")
        """,
        """
        def pytest_configure(config):
            config.have = NUM

        def pytest_collection_modifyitems(config, items):
            for item in items:
                if "four" in item.keywords and config.have < 4:
                    item.add_marker(pytest.mark.skip(reason="four"))
        """,
        """
        def pytest_sessionstart(session):
            session.config.have = NUM

        def pytest_runtest_setup(item):
            if item.get_closest_marker("four") and item.session.config.have < 4:
                pytest.skip("four")
        """,
        """
        from pathlib import Path

        def pytest_collection_modifyitems(items):
            for item in items:
                if Path(__file__).parent in item.path.parents and "four" in item.keywords and NUM < 4:
                    item.add_marker(pytest.mark.skip(reason="four"))
        """,
        """
        @pytest.fixture(autouse=True)
        def _guard(request):
            if "four_devices" in request.fixturenames and NUM < 4:
                pytest.skip("four")
        """,
    ],
    ids=["around the body", "once collected", "of a plugin", "by config", "by session", "by folder", "by fixtures"],
)
def test_a_hook_of_a_conftest_is_followed_wherever_pytest_calls_it(hook):
    found = devices_of(
        "tests/multi/test_it.py",
        {
            "devices.py": DEVICES,
            "tests/multi/conftest.py": f"""
            import pytest
            from devices import NUM
            {hook.replace(chr(10) + "        ", chr(10) + "            ")}
            @pytest.fixture
            def four_devices():
                return 4
            """,
            "tests/multi/test_it.py": """
            import pytest
            from devices import use_all

            @pytest.mark.four
            def test_four(four_devices):
                use_all(1)

            def test_one():
                use_all(1)
            """,
        },
    )
    assert found == {"test_four": (4, 4, 4), "test_one": (1, 1, 1)}


def test_a_plugin_that_a_conftest_registers_may_leave_tests_out():
    found = needs_of(
        "test_it.py",
        {
            "devices.py": DEVICES,
            "conftest.py": """
            from devices import NUM

            class Wide:
                def pytest_collection_modifyitems(self, config, items):
                    items[:] = [item for item in items if NUM >= 4 or not item.get_closest_marker("wide")]

            def pytest_configure(config):
                config.pluginmanager.register(Wide())
            """,
            "test_it.py": """
            import pytest
            from devices import use_all

            @pytest.mark.wide
            def test_wide():
                use_all(1)

            def test_narrow():
                use_all(1)
            """,
        },
    )
    assert [profile_of(found, name) for name in found] == ["aaaarr", "frrrrr"]


def test_what_pytest_is_always_told_is_what_options_are():
    files = {
        "devices.py": DEVICES,
        "conftest.py": """
        def pytest_addoption(parser):
            parser.addoption("--most", type=int, default=8)
            parser.addoption("--kind", choices=("cpu", "cuda"), default="cpu")
            parser.addoption("--all", action="store_true")
        """,
        "test_it.py": """
        import pytest, torch
        from devices import use_all

        def test_most(request):
            use_all(request.config.getoption("--most"))

        def test_kind(pytestconfig):
            torch.ones(1, device=pytestconfig.option.kind)

        def test_all(request):
            if request.config.getoption("all"):
                use_all(2)

        def test_marked(request):
            use_all(1 if request.config.getoption("-m") else 2)
        """,
    }
    words = ("--most=2", "--kind", "cuda", "--all", "-m", "not slow")
    told = devices_of("test_it.py", files, PytestSettings(options=words))
    untold = devices_of("test_it.py", files)
    assert told == {"test_most": (2, 2, 2), "test_kind": (1, 1, 1), "test_all": (2, 2, 2), "test_marked": (1, 1, 1)}
    assert untold == {
        "test_most": (8, 8, 8),
        "test_kind": (0, None, 0),
        "test_all": (0, None, 0),
        "test_marked": (2,) * 3,
    }


def test_plugins_that_are_always_loaded_and_fixtures_that_all_tests_use_count():
    files = {
        "devices.py": DEVICES,
        "acme/guards.py": """
        import pytest
        from devices import NUM, require

        def pytest_configure(config):
            config.have = NUM

        def pytest_runtest_setup(item):
            if item.get_closest_marker("two") and item.config.have < 2:
                pytest.skip("two")

        @pytest.fixture
        def four():
            require(4)
        """,
        "test_it.py": """
        import pytest
        from devices import use_all

        @pytest.mark.two
        def test_two():
            use_all(1)
        """,
    }
    by_plugin = devices_of("test_it.py", files, PytestSettings(options=("-p", "acme.guards", "-pno:cacheprovider")))
    by_both = devices_of("test_it.py", files, PytestSettings(options=("-pacme.guards",), fixtures=("four", "other")))
    assert (by_plugin, by_both) == ({"test_two": (2, 2, 2)}, {"test_two": (4, 4, 4)})


def test_what_a_conftest_sets_when_pytest_starts_is_what_tests_find():
    found = devices_of(
        "test_it.py",
        {
            "devices.py": DEVICES,
            "conftest.py": """
            import os
            import pytest
            from devices import NUM

            MOST = 8

            def pytest_configure(config):
                global MOST
                MOST = 2
                pytest.world = 4
                os.environ["WORLD"] = "3"
                config.least = 2

            @pytest.fixture
            def most():
                return MOST
            """,
            "test_it.py": """
            import os
            import pytest
            from devices import use_all

            def test_of_a_global(most):
                use_all(most)

            def test_of_pytest():
                use_all(pytest.world)

            def test_of_the_environment():
                use_all(int(os.environ["WORLD"]))

            def test_of_config(pytestconfig):
                use_all(getattr(pytestconfig, "least", 1))

            def test_of_what_nobody_has_set(pytestconfig):
                use_all(4 if hasattr(pytestconfig, "workerinput") else getattr(pytestconfig, "world", 1))
            """,
        },
    )
    assert found == {
        "test_of_a_global": (2, 2, 2),
        "test_of_pytest": (4, 4, 4),
        "test_of_the_environment": (3, 3, 3),
        "test_of_config": (2, 2, 2),
        "test_of_what_nobody_has_set": (1, 1, 1),
    }


@pytest.mark.parametrize(
    "read",
    [
        'SIZES = json.loads((Path(__file__).parent / "sizes.json").read_text())["sizes"]',
        'SIZES = json.loads(Path(__file__).with_name("sizes.json").read_text(encoding="utf-8"))["sizes"]',
        'SIZES = json.loads((Path(__file__).resolve().parents[1] / "tests" / "sizes.json").read_text())["sizes"]',
        'with open(os.path.join(os.path.dirname(__file__), "sizes.json")) as f:\n    SIZES = json.load(f)["sizes"]',
        'with Path(__file__).with_suffix(".toml").open("rb") as file:\n    SIZES = tomllib.load(file)["sizes"]',
        'SIZES = json.loads(resources.files("acme").joinpath("sizes.json").read_text())["sizes"]',
        'SIZES = [int(each) for each in open(os.path.dirname(__file__) + "/../sizes.txt").readlines()]',
    ],
)
def test_sizes_that_a_file_of_the_tree_lists_are_known(read):
    found = needs_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/sizes.json": '{"sizes": [1, 4]}',
            "sizes.txt": "1\n4\n",
            "tests/sizes.json": '{"sizes": [1, 4]}',
            "tests/test_it.toml": "sizes = [1, 4]",
            "tests/test_it.py": "import json, os, pytest, tomllib, torch\nfrom importlib import resources\n"
            f"from pathlib import Path\n{read}\n"
            "@pytest.mark.parametrize('size', SIZES)\ndef test_it(size):\n    torch.cuda.set_device(size - 1)\n",
        },
    )
    assert {name: each.min for name, each in found.items()} == {"test_it[1]": 1, "test_it[4]": 4}


def test_what_is_read_from_no_file_of_the_tree_is_not_known():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import json, torch
            from pathlib import Path

            def test_it():
                size = json.loads((Path(__file__).parent / "made_by_the_build.json").read_text())
                torch.ones(1, device=f"cuda:{size - 1}")
            """
        },
    )
    assert found["test_it"].confidence != "high"


def test_a_file_outside_of_the_project_is_not_read():
    texts = {
        "tests/test_it.py": """
import json, os, pytest

with open(os.path.dirname(__file__) + "/../../outside.json") as file:
    SIZES = json.load(file)

@pytest.mark.parametrize("size", SIZES)
def test_it(size):
    assert size
"""
    }
    asked = []

    def read(path):
        asked.append(path)
        return texts.get(path, "[1, 4]")

    found = infer_needs(Sources(texts, read), ["tests/test_it.py"], rules=shipped())
    assert [each.nodeid for each in found] == ["tests/test_it.py::test_it"]
    assert not any("outside" in path for path in asked)


def test_links_that_lead_out_of_the_project_and_pipes_are_no_data(tmp_path):
    (tmp_path / "outside.json").write_text("[1, 4]")
    project = tmp_path / "project"
    project.mkdir()
    (project / "linked.json").symlink_to(tmp_path / "outside.json")
    (project / "inside.json").write_text("[1, 2]")
    (project / "link.json").symlink_to(project / "inside.json")
    os.mkfifo(project / "pipe.json")
    texts = [Contents(project).text(name) for name in ("linked.json", "inside.json", "link.json", "pipe.json")]
    assert texts == [None, "[1, 2]", "[1, 2]", None]


def test_names_that_a_module_takes_over_from_another_follow_from_devices_as_they_did_there():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/__init__.py": "",
            "tests/utils.py": """
            import pytest, torch

            two = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two")
            """,
            "tests/test_it.py": """
            import importlib
            import torch
            utils = importlib.import_module("tests.utils")
            globals().update({name: value for name, value in vars(utils).items() if not name.startswith("_")})

            @two
            def test_two():
                torch.ones(1, device="cuda")
            """,
        },
    )
    assert found == {"test_two": (2, 2, 2)}


def test_modules_that_are_imported_by_a_text_are_followed():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": """
            import importlib

            def __getattr__(name):
                if name == "require":
                    return getattr(importlib.import_module(".devices", __name__), name)
                raise AttributeError(name)
            """,
            "acme/devices.py": DEVICES,
            "acme/whole.py": """
            from importlib import import_module

            for each in ("devices",):
                module = import_module("." + each, __package__)
                for name in ("require", "use_all"):
                    globals()[name] = getattr(module, name)
            """,
            "acme/itself.py": "import acme.devices\nrequire = acme.devices.require\n",
            "tests/test_it.py": """
            import pytest, torch
            import acme, acme.itself
            from acme.whole import require, use_all
            devices = __import__("acme.devices", fromlist=["devices"])

            def test_lazy():
                acme.require(2)
                torch.ones(1).cuda()

            def test_copied():
                require(3)
                use_all(3)

            def test_named():
                devices.require(4)
                torch.ones(1).cuda()

            def test_itself():
                acme.itself.require(2)
                torch.ones(1).cuda()

            @pytest.mark.skipif("__import__('torch').cuda.device_count() < 2", reason="two")
            def test_text():
                torch.ones(1).cuda()
            """,
        },
    )
    assert found == {
        "test_lazy": (2, 2, 2),
        "test_copied": (3, 3, 3),
        "test_named": (4, 4, 4),
        "test_itself": (2, 2, 2),
        "test_text": (2, 2, 2),
    }


def test_a_package_may_name_itself():
    found = devices_of(
        "test_it.py",
        {
            "acme/__init__.py": "import acme.devices\nrequire = acme.devices.require\n",
            "acme/devices.py": DEVICES,
            "test_it.py": """
            import torch
            from acme import require

            def test_it():
                require(2)
                torch.ones(1).cuda()
            """,
        },
    )
    assert found == {"test_it": (2, 2, 2)}


def test_of_two_implementations_the_one_that_can_be_read_tells_what_either_does():
    found = needs_of(
        "test_it.py",
        {
            "acme/__init__.py": """
            try:
                from acme._fast import require
            except ImportError:
                from acme.devices import require
            """,
            "acme/devices.py": DEVICES,
            "test_it.py": """
            import torch
            from acme import require

            def test_it():
                require(2)
                torch.ones(1).cuda()
            """,
        },
    )
    assert (found["test_it"].min, found["test_it"].confidence) == (2, "high")


def test_unittest_s_decorators_of_a_class_do_nothing_where_it_is_none_of_unittest_s():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest
            import torch

            four = unittest.skipUnless(torch.cuda.device_count() >= 4, "four")

            @four
            class TestPlain:
                def test_it(self):
                    torch.ones(1).cuda()

                @four
                def test_four(self):
                    torch.ones(1).cuda()

            @four
            class Mixin:
                def test_mixed(self):
                    torch.ones(1).cuda()

            class TestCase(Mixin, unittest.TestCase):
                pass

            class TestOther(Mixin):
                pass
            """
        },
    )
    assert found == {
        "TestPlain::test_it": (1, 1, 1),
        "TestPlain::test_four": (4, 4, 4),
        "TestCase::test_mixed": (4, 4, 4),
        "TestOther::test_mixed": (1, 1, 1),
    }


def test_a_conftest_leaves_folders_and_files_out_by_a_hook():
    files = {
        "devices.py": DEVICES,
        "conftest.py": """
        from pathlib import Path
        from devices import NUM

        collect_ignore = [Path(__file__).parent / "deep" / "test_listed.py"] if NUM < 4 else []

        def pytest_ignore_collect(collection_path, config):
            if collection_path.name == "wide" and NUM < 4:
                return True
            return None
        """,
        "wide/test_it.py": "import torch\n\ndef test_it():\n    torch.ones(1).cuda()\n",
        "deep/test_listed.py": "import torch\n\ndef test_it():\n    torch.ones(1).cuda()\n",
        "deep/test_other.py": "import torch\n\ndef test_it():\n    torch.ones(1).cuda()\n",
    }
    assert profile_of(needs_of("wide/test_it.py", files), "test_it") == "aaaarr"
    assert profile_of(needs_of("deep/test_listed.py", files), "test_it") == "aaaarr"
    assert profile_of(needs_of("deep/test_other.py", files), "test_it") == "frrrrr"


def test_a_test_case_s_own_run_decides_whether_its_test_is_set_up():
    found = devices_of(
        "test_it.py",
        {
            "devices.py": DEVICES,
            "test_it.py": """
            import unittest
            from devices import has, use_all

            class Case(unittest.TestCase):
                world = 4

                def run(self, result=None):
                    if not has(self.world):
                        result.addSkip(self, "few")
                        return result
                    return super().run(result)

                def setUp(self):
                    use_all(2)

                def test_it(self):
                    use_all(1)

            class Other(unittest.TestCase):
                def run(self, result=None):
                    return unittest.TestCase.run(self, result)

                def test_it(self):
                    use_all(2)
            """,
        },
    )
    assert found == {"Case::test_it": (4, 4, 4), "Other::test_it": (2, 2, 2)}


def test_a_device_that_is_not_there_is_no_failure_where_it_is_expected_to_fail():
    found = needs_of(
        "test_it.py",
        {
            "devices.py": DEVICES,
            "test_it.py": """
            import pytest
            from devices import NUM, use_all

            @pytest.mark.xfail(NUM < 2, reason="few")
            def test_few():
                use_all(4)

            @pytest.mark.xfail(NUM < 4, reason="few", raises=RuntimeError)
            def test_by_its_kind():
                use_all(4)

            @pytest.mark.xfail(NUM < 4, reason="few", raises=AssertionError)
            def test_by_another_kind():
                use_all(4)
            """,
        },
    )
    assert [profile_of(found, name) for name in found] == ["ssffrr", "ssssrr", "ffffrr"]


def test_a_case_may_be_called_by_what_its_value_says_of_itself():
    found = needs_of(
        "test_it.py",
        {
            "devices.py": DEVICES,
            "test_it.py": """
            import pytest
            from devices import use_all

            class Layout:
                def __init__(self, tp, pp):
                    self.world = tp * pp
                    self.text = f"tp{tp}-pp{pp}"

                def __repr__(self):
                    return self.text

            @pytest.mark.parametrize("layout", [Layout(1, 1), Layout(2, 2)], ids=repr)
            def test_it(layout):
                use_all(layout.world)
            """,
        },
    )
    assert {name: each.min for name, each in found.items()} == {"test_it[tp1-pp1]": 1, "test_it[tp2-pp2]": 4}


def test_fixtures_are_set_up_each_before_what_it_uses_and_hooks_may_add_some():
    found = needs_of(
        "test_it.py",
        {
            "devices.py": DEVICES,
            "conftest.py": """
            import pytest
            from devices import require

            def pytest_collection_modifyitems(items):
                for item in items:
                    if item.get_closest_marker("wide"):
                        item.fixturenames.append("four")

            @pytest.fixture
            def four():
                require(4)

            @pytest.fixture(params=[1, 2])
            def tp(request):
                return request.param

            @pytest.fixture(params=[3, 4])
            def pp(request):
                return request.param

            @pytest.fixture
            def world(pp):
                return pp

            @pytest.fixture
            def layout(world, tp):
                return world * tp
            """,
            "test_it.py": """
            import pytest
            from devices import use_all

            @pytest.mark.wide
            def test_wide():
                use_all(1)

            def test_narrow():
                use_all(1)

            def test_layout(layout):
                use_all(layout // 2)
            """,
        },
    )
    assert {name: each.min for name, each in found.items()} == {
        "test_wide": 4,
        "test_narrow": 1,
        "test_layout[3-1]": 1,
        "test_layout[3-2]": 3,
        "test_layout[4-1]": 2,
        "test_layout[4-2]": 4,
    }


def test_a_file_that_refuses_to_be_imported_without_a_variable_has_its_tests_less_surely():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/beside.py": """
            import os

            def register():
                path = os.getenv("PATH_TO_IO")
                if path is None:
                    raise RuntimeError("PATH_TO_IO must be set")
            """,
            "tests/test_it.py": """
            import torch
            from beside import register

            register()

            def test_on_a_device():
                torch.ones(3, device="cuda")
            """,
        },
    )
    said = {name: (each.min, each.confidence.value) for name, each in found.items()}
    assert said == {"test_on_a_device": (1, "medium")}


def test_a_package_s_own_module_is_not_what_the_standard_library_is_called():
    found = devices_of(
        "test_seeds.py",
        {
            "test_seeds.py": """
            from acme.testing.seeds import seed_all

            def test_on_the_host():
                seed_all(0)
            """,
            "acme/__init__.py": "",
            "acme/testing/__init__.py": "",
            "acme/testing/seeds.py": """
            import random

            def seed_all(seed):
                random.seed(seed)
            """,
            "acme/random.py": """
            import torch

            def seed(seed):
                torch.cuda.manual_seed_all(seed)
                torch.ones(1, device="cuda")
            """,
        },
    )
    assert found == {"test_on_the_host": (0, None, 0)}
