"""What `bench/needs_against_pytest.py` found: guards of which pytest made something else than we did."""

from small_projects import devices_of, needs_of


def test_a_helper_beside_a_flat_project_s_tests_is_followed_though_its_name_says_nothing():
    found = devices_of(
        "test_it.py",
        {
            "common.py": """
            import functools, unittest
            import torch

            def skip_if_lt(count):
                def decorate(test):
                    @functools.wraps(test)
                    def wrapper(*args, **kwargs):
                        if torch.cuda.device_count() < count:
                            raise unittest.SkipTest("too few")
                        return test(*args, **kwargs)
                    return wrapper
                return decorate
            """,
            "model.py": """
            import torch

            def build(size):
                return torch.ones(size, device="cuda:3")
            """,
            "test_it.py": """
            import torch
            from common import skip_if_lt
            from model import build

            @skip_if_lt(4)
            def test_four():
                torch.ones(1).cuda()

            def test_of_the_library():
                build(1)
            """,
        },
    )
    assert found == {"test_four": (4, 4, 4), "test_of_the_library": (4, 4, 4)}


def test_a_class_may_have_marks_by_decorator_and_by_attribute():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest, torch

            @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two")
            class TestOne:
                pytestmark = pytest.mark.skipif(torch.cuda.device_count() < 4, reason="four")

                def test_it(self):
                    torch.ones(1).cuda()

            @pytest.mark.slow
            class TestSeveral:
                pytestmark = (pytest.mark.skipif(torch.cuda.device_count() < 3, reason="three"), pytest.mark.long)

                def test_it(self):
                    torch.ones(1).cuda()
            """,
        },
    )
    assert found == {"TestOne::test_it": (4, 4, 4), "TestSeveral::test_it": (3, 3, 3)}


def test_a_device_that_is_waited_for_or_looked_at_is_the_one_that_is_named():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch

            def test_waits():
                torch.cuda.synchronize(3)

            def test_stream():
                torch.cuda.Stream(device="cuda:1")

            def test_states():
                torch.cuda.set_rng_state(torch.cuda.get_rng_state(), "cuda:1")

            def test_current():
                torch.cuda.set_device(2)
                torch.cuda.synchronize()

            def test_none():
                torch.cuda.get_rng_state_all()
            """,
        },
    )
    assert {name: least for name, (least, _, _) in found.items()} == {
        "test_waits": 4, "test_stream": 2, "test_states": 2, "test_current": 3, "test_none": 0,
    }  # fmt: skip


def test_a_decorator_of_a_class_that_goes_through_its_methods_reaches_them():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import inspect
            import pytest, torch

            two = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two")

            def by_vars(cls):
                for name, value in list(vars(cls).items()):
                    if name.startswith("test") and callable(value):
                        setattr(cls, name, two(value))
                return cls

            def by_dir(cls):
                for name in dir(cls):
                    if name.startswith("test"):
                        setattr(cls, name, two(getattr(cls, name)))
                return cls

            def by_members(cls):
                for name, value in inspect.getmembers(cls, inspect.isfunction):
                    if name.startswith("test"):
                        setattr(cls, name, two(value))
                return cls

            class Base:
                def test_inherited(self):
                    torch.ones(1).cuda()

            @by_vars
            class TestVars:
                def test_it(self):
                    torch.ones(1).cuda()

            @by_dir
            class TestDir(Base):
                pass

            @by_members
            class TestMembers(Base):
                pass
            """,
        },
    )
    assert found == {
        "TestVars::test_it": (2, 2, 2),
        "TestDir::test_inherited": (2, 2, 2),
        "TestMembers::test_inherited": (2, 2, 2),
    }


def test_cases_that_a_hook_asks_for_are_tests():
    conftest = """
    def pytest_generate_tests(metafunc):
        if "ranks" in metafunc.fixturenames:
            mark = metafunc.definition.get_closest_marker("ranks")
            metafunc.parametrize("ranks", mark.args if mark else [1, 4])
        if "world" in metafunc.fixturenames:
            metafunc.parametrize("world", getattr(metafunc.module, "WORLDS", [1]))
    """
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/conftest.py": conftest,
            "tests/test_it.py": """
            import pytest, torch

            WORLDS = [2, 3]

            def test_it(ranks):
                torch.cuda.set_device(ranks - 1)

            def test_world(world):
                torch.cuda.set_device(world - 1)

            @pytest.mark.ranks(2)
            def test_marked(ranks):
                torch.cuda.set_device(ranks - 1)

            class TestSizes:
                sizes = [3]

                @classmethod
                def pytest_generate_tests(cls, metafunc):
                    if "size" in metafunc.fixturenames:
                        metafunc.parametrize("size", cls.sizes, ids=lambda size: f"s{size}")

                @pytest.mark.parametrize("scale", [1])
                def test_it(self, size, ranks, scale):
                    torch.cuda.set_device(size * ranks * scale - 1)
            """,
        },
    )
    assert {name: least for name, (least, _, _) in found.items()} == {
        "test_it[1]": 1, "test_it[4]": 4, "test_marked[2]": 2, "test_world[2]": 2, "test_world[3]": 3,
        "TestSizes::test_it[s3-1-1]": 3, "TestSizes::test_it[s3-4-1]": 16,
    }  # fmt: skip


def test_what_gives_up_before_it_has_done_anything_is_skipped():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest, torch

            def test_at_once():
                if torch.cuda.device_count() < 4:
                    pytest.xfail("too few")
                torch.cuda.set_device(3)

            def test_later():
                torch.cuda.set_device(1)
                if torch.cuda.device_count() < 4:
                    pytest.xfail("too few")
                torch.cuda.set_device(3)
            """,
        },
    )
    assert found == {"test_at_once": (4, 4, 4), "test_later": (2, 2, 4)}


def test_a_number_that_an_option_of_the_project_is_by_default_is_known_and_what_a_switch_skips_may_run():
    conftest = """
    import pytest, torch

    def pytest_addoption(parser):
        group = parser.getgroup("devices")
        group.addoption("--num-gpus", type=int, default=4, help="how many")
        parser.addoption("--most", dest="largest", type=int, default=2)
        parser.addoption("--multi", action="store_true", default=False)

    @pytest.fixture
    def count(request):
        return request.config.getoption("--num-gpus")
    """
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/conftest.py": conftest,
            "tests/test_it.py": """
            import pytest, torch

            def test_by_fixture(count):
                if torch.cuda.device_count() < count:
                    pytest.skip("too few")
                torch.ones(1).cuda()

            def test_by_another_name(pytestconfig):
                if torch.cuda.device_count() < pytestconfig.getoption("largest"):
                    pytest.skip("too few")
                torch.ones(1).cuda()

            def test_by_attribute(request):
                if torch.cuda.device_count() < request.config.option.num_gpus:
                    pytest.skip("too few")
                torch.ones(1).cuda()

            def test_switched(request):
                if not request.config.getoption("--multi") or not request.config.option.multi:
                    pytest.skip("not asked for")
                torch.ones(1).cuda()
            """,
        },
    )
    assert found == {
        "test_by_fixture": (4, 4, 4),
        "test_by_another_name": (2, 2, 2),
        "test_by_attribute": (4, 4, 4),
        "test_switched": (1, 1, 1),
    }


def test_what_is_set_up_before_each_function_of_a_module_and_what_a_hook_fails_counts():
    conftest = """
    import pytest, torch

    def pytest_runtest_setup(item):
        mark = item.get_closest_marker("ranks")
        if mark and torch.cuda.device_count() < mark.args[0]:
            pytest.fail("too few")
    """
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/conftest.py": conftest,
            "tests/test_it.py": """
            import pytest, torch

            def setup_function(function):
                if torch.cuda.device_count() < 2:
                    pytest.skip("too few")

            def test_it():
                torch.ones(1).cuda()

            class TestIt:
                def test_it(self):
                    torch.ones(1).cuda()

                @pytest.mark.ranks(4)
                def test_ranks(self):
                    torch.ones(1).cuda()
            """,
        },
    )
    assert found == {"test_it": (2, 2, 2), "TestIt::test_it": (1, 1, 1), "TestIt::test_ranks": (4, 4, 4)}


def test_a_class_is_told_of_by_what_it_inherits_from():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest, torch

            class Guarded:
                least = 1

                def __init_subclass__(cls, least=None, **kwargs):
                    super().__init_subclass__(**kwargs)
                    if least is not None:
                        cls.least = least

                def setup_method(self):
                    if torch.cuda.device_count() < self.least:
                        pytest.skip("too few")

            class TestFour(Guarded, least=4):
                def test_it(self):
                    torch.ones(1).cuda()

            class TestOne(Guarded):
                def test_it(self):
                    torch.ones(1).cuda()
            """,
        },
    )
    assert found == {"TestFour::test_it": (4, 4, 4), "TestOne::test_it": (1, 1, 1)}


def test_a_switch_of_the_project_is_off_unless_no_test_would_run():
    conftest = """
    import pytest, torch
    import acme

    def pytest_addoption(parser):
        parser.addoption("--force-cpu", action="store_true", help="use the host")
        parser.addoption("--kind", default="all")
        parser.addoption("--wide", action="store_true", default=False)
        parser.addoption("--narrow", action="store_false", dest="all_of_it")
        parser.addoption("--only", help="a name")

    def pytest_collection_modifyitems(config, items):
        is_wide = config.getoption("--wide")
        for item in items:
            if not is_wide and "wide" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="needs --wide"))
            elif is_wide and "wide" not in item.keywords:
                item.add_marker(pytest.mark.skip(reason="--wide runs others"))

    @pytest.fixture(autouse=True)
    def on_the_host(request):
        if request.config.getoption("--force-cpu"):
            acme.device = torch.device("cpu")
    """
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": """
            import torch
            device = torch.device("cuda:0") if torch.cuda.is_available() else torch.device("cpu")
            """,
            "tests/conftest.py": conftest,
            "tests/test_it.py": """
            import pytest, torch
            import acme

            def test_where_the_library_says():
                torch.ones(1).to(acme.device)

            @pytest.mark.wide
            def test_wide():
                torch.ones(torch.cuda.device_count(), device="cuda:1")

            def test_of_a_kind(request):
                if request.config.getoption("--kind") == "none":
                    pytest.skip("nothing is asked for")
                torch.ones(1, device="cuda" if request.config.getoption("--kind") == "gpu" else "cpu")

            def test_all_of_it(request):
                torch.ones(1, device="cuda:2" if request.config.getoption("all_of_it") else "cpu")

            @pytest.mark.parametrize("kind", ["all", "large"])
            def test_of_those_asked_for(request, kind):
                asked = [each for each in ("all", "large") if each == "all" or request.config.getoption("--wide")]
                if kind not in asked:
                    pytest.skip("not asked for")
                torch.ones(1, device="cuda:3" if kind == "large" else "cuda:0")

            def test_of_no_name(request):
                torch.ones(1, device="cpu" if request.config.getoption("--only") else "cuda:3")
            """,
        },
    )
    assert found == {
        "test_where_the_library_says": (0, 1, 1),
        "test_wide": (2, 2, 2),
        "test_of_a_kind": (0, None, 0),
        "test_all_of_it": (3, 3, 3),
        "test_of_those_asked_for[all]": (1, 1, 1),
        "test_of_those_asked_for[large]": (4, 4, 4),
        "test_of_no_name": (4, 4, 4),
    }


def test_what_a_conftest_leaves_out_is_absent():
    conftest = """
    import torch

    collect_ignore = ["test_large.py"] if torch.cuda.device_count() < 4 else []
    collect_ignore_glob = ["*_never.py"]

    def pytest_collection_modifyitems(config, items):
        kept = []
        for item in items:
            mark = item.get_closest_marker("drop")
            if mark is None or torch.cuda.device_count() >= mark.args[0]:
                kept.append(item)
        items[:] = kept
        for item in list(items):
            if item.get_closest_marker("slow") and not config.getoption("--slow"):
                items.remove(item)
    """
    files = {
        "tests/conftest.py": conftest,
        "tests/test_large.py": """
        import pytest, torch
        if torch.cuda.device_count() < 8:
            pytest.skip("few", allow_module_level=True)

        def test_it():
            torch.ones(1).cuda()
        """,
        "tests/test_asked_never.py": "import torch\ndef test_it():\n    torch.ones(1).cuda()\n",
        "tests/test_it.py": """
        import pytest, torch

        @pytest.mark.drop(2)
        def test_dropped():
            torch.ones(1).cuda()

        @pytest.mark.slow
        def test_slow():
            torch.ones(1).cuda()

        @pytest.mark.drop(3)
        @pytest.mark.skip
        def test_never():
            torch.ones(1).cuda()
        """,
    }
    profiles = {
        name: "".join(verdict.value[0] for verdict in each.profile.values())
        for path in ("tests/test_it.py", "tests/test_large.py", "tests/test_asked_never.py")
        for name, each in needs_of(path, files).items()
        for name in [f"{path[6:]}::{name}"]
    }
    assert profiles == {
        "test_it.py::test_dropped": "aarrrr",
        "test_it.py::test_slow": "frrrrr",
        "test_it.py::test_never": "aaasss",
        "test_large.py::test_it": "aaaasr",
        "test_asked_never.py::test_it": "frrrrr",
    }


def test_contexts_that_a_stack_enters_are_entered_and_what_is_put_on_it_is_called():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import contextlib
            import pytest, torch

            @contextlib.contextmanager
            def devices(count):
                if torch.cuda.device_count() < count:
                    pytest.skip("too few")
                yield count

            def test_entered():
                with contextlib.ExitStack() as stack:
                    count = stack.enter_context(devices(3))
                    torch.cuda.set_device(count - 1)

            def test_called():
                with contextlib.ExitStack() as stack:
                    stack.callback(torch.cuda.set_device, 3)
                    torch.ones(1).cuda()
            """,
        },
    )
    assert found == {"test_entered": (3, 3, 3), "test_called": (4, 4, 4)}


def test_a_fixture_sees_the_module_of_a_test_and_a_class_in_a_class_has_the_fixtures_around_it():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/conftest.py": """
            import pytest, torch

            @pytest.fixture(autouse=True)
            def enough(request):
                if torch.cuda.device_count() < getattr(request.module, "LEAST", 0):
                    pytest.skip("too few")
            """,
            "tests/test_it.py": """
            import pytest, torch

            LEAST = 2

            def test_it():
                torch.ones(1).cuda()

            class TestOuter:
                @pytest.fixture(autouse=True)
                def four(self):
                    if torch.cuda.device_count() < 4:
                        pytest.skip("too few")

                class TestInner:
                    def test_it(self):
                        torch.ones(1).cuda()
            """,
        },
    )
    assert found == {"test_it": (2, 2, 2), "TestOuter::TestInner::test_it": (4, 4, 4)}


def test_what_parametrize_gives_to_a_fixture_takes_the_place_of_the_fixture_s_own_parameters():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest, torch

            @pytest.fixture(params=[1, 2, 4])
            def world(request):
                if torch.cuda.device_count() < request.param:
                    pytest.skip("too few")
                return request.param

            @pytest.mark.parametrize("world", [3], indirect=True)
            def test_three(world):
                torch.cuda.set_device(world - 1)

            @pytest.mark.parametrize("world, scale", [(2, 2)], indirect=["world"])
            def test_some(world, scale):
                torch.cuda.set_device(world * scale - 1)

            def test_own(world):
                torch.cuda.set_device(world - 1)
            """,
        },
    )
    assert {name: least for name, (least, _, _) in found.items()} == {
        "test_three[3]": 3, "test_some[2-2]": 4, "test_own[1]": 1, "test_own[2]": 2, "test_own[4]": 4,
    }  # fmt: skip


def test_a_hook_and_a_fixture_may_go_by_the_file_that_a_test_stands_in():
    conftest = """
    import pytest, torch

    def pytest_collection_modifyitems(items):
        for item in items:
            if "/multi/" in str(item.fspath) and torch.cuda.device_count() < 2:
                item.add_marker(pytest.mark.skip(reason="two"))
            if item.path.name == "test_four.py" and torch.cuda.device_count() < 4:
                item.add_marker(pytest.mark.skip(reason="four"))

    @pytest.fixture(autouse=True)
    def three(request):
        if "wide" in request.path.parts and torch.cuda.device_count() < 3:
            pytest.skip("three")
    """
    test = """
    import torch

    def test_it():
        torch.ones(1).cuda()
    """
    paths = ("tests/test_it.py", "tests/multi/test_it.py", "tests/test_four.py", "tests/wide/test_it.py")
    found = [
        devices_of(path, {"tests/conftest.py": conftest, **dict.fromkeys(paths, test)})["test_it"][0] for path in paths
    ]
    assert found == [1, 2, 4, 3]


def test_the_exception_that_pytest_skips_by_may_be_raised_by_its_name():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest, torch

            def test_it():
                if torch.cuda.device_count() < 2:
                    raise pytest.skip.Exception("two")
                torch.ones(1).cuda()
            """,
        },
    )
    assert found["test_it"].profile == {"0": "skip", "1": "skip", "2": "run", "3": "run", "4": "run", "8": "run"}


def test_what_is_expected_to_fail_and_not_to_be_run_is_skipped():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest, torch

            @pytest.mark.xfail(torch.cuda.device_count() < 4, reason="hangs", run=False)
            def test_some():
                torch.ones(1).cuda()

            @pytest.mark.xfail(run=False)
            def test_none():
                torch.ones(1).cuda()

            @pytest.mark.xfail(torch.cuda.device_count() < 4, reason="wrong")
            def test_tried():
                torch.ones(1).cuda()
            """,
        },
    )
    assert found == {"test_some": (4, 4, 4), "test_none": (None, None, None), "test_tried": (1, 1, 1)}


def test_what_a_call_has_made_has_no_name_for_the_id_of_a_case():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import contextlib, functools
            import pytest, torch

            def make(count):
                return torch.ones(1, device=f"cuda:{count - 1}")

            @pytest.mark.parametrize("expectation", [contextlib.nullcontext(), pytest.raises(ValueError)])
            def test_raises(expectation):
                pass

            @pytest.mark.parametrize("maker", [functools.partial(make, 2), make])
            def test_made(maker):
                maker(count=2)
            """,
        },
    )
    assert list(found) == [
        "test_raises[expectation0]",
        "test_raises[expectation1]",
        "test_made[maker0]",
        "test_made[make]",
    ]


def test_a_fixture_that_takes_the_place_of_another_may_use_that_one():
    found = devices_of(
        "tests/wide/test_it.py",
        {
            "tests/conftest.py": """
            import pytest

            @pytest.fixture(params=[1, 2])
            def world(request):
                return request.param

            @pytest.fixture
            def enough():
                return 3
            """,
            "tests/wide/conftest.py": """
            import pytest, torch

            @pytest.fixture
            def world(world):
                return world * 2

            @pytest.fixture
            def enough(enough, device_count):
                if device_count < enough:
                    pytest.skip("too few")

            @pytest.fixture
            def device_count():
                return torch.cuda.device_count()
            """,
            "tests/wide/test_it.py": """
            import pytest, torch

            def test_twice(world):
                torch.cuda.set_device(world - 1)

            def test_enough(enough):
                torch.ones(1).cuda()

            class TestMore:
                @pytest.fixture
                def world(self, world):
                    return world + 1

                def test_it(self, world):
                    torch.cuda.set_device(world - 1)

            class TestAnother:
                @pytest.fixture
                def world(self):
                    return 1

                def test_it(self, world):
                    torch.cuda.set_device(world - 1)
            """,
        },
    )
    assert {name: least for name, (least, _, _) in found.items()} == {
        "test_twice[1]": 2, "test_twice[2]": 4, "test_enough": 3,
        "TestMore::test_it[1]": 3, "TestMore::test_it[2]": 5, "TestAnother::test_it": 1,
    }  # fmt: skip


def test_a_hook_may_ask_whether_a_test_has_parameters():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/conftest.py": """
            import torch

            def pytest_collection_modifyitems(config, items):
                kept = []
                for item in items:
                    least = 0
                    for mark in item.iter_markers("least"):
                        least = max(least, mark.args[0])
                    if hasattr(item, "callspec") and "world" in item.callspec.params:
                        least = max(least, item.callspec.params["world"])
                    if least <= torch.cuda.device_count():
                        kept.append(item)
                items[:] = kept
            """,
            "tests/test_it.py": """
            import pytest, torch

            @pytest.mark.least(2)
            def test_two():
                torch.ones(1).cuda()

            @pytest.mark.parametrize("world", [1, 4])
            def test_world(world):
                torch.ones(1).cuda()
            """,
        },
    )
    assert found == {"test_two": (2, 2, 2), "test_world[1]": (1, 1, 1), "test_world[4]": (4, 4, 4)}


def test_marks_of_a_class_in_a_class_are_asked_with_each_number_of_devices():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest, torch

            class TestOuter:
                class TestInner:
                    pytestmark = [pytest.mark.skipif(torch.cuda.device_count() < 4, reason="four")]

                    def test_it(self):
                        pass

                @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two")
                class TestMarked:
                    def test_it(self):
                        pass
            """,
        },
    )
    assert {name: least for name, (least, _, _) in found.items()} == {
        "TestOuter::TestInner::test_it": 4,
        "TestOuter::TestMarked::test_it": 2,
    }


def test_a_helper_that_imports_pytest_among_others_or_where_it_skips_is_one_of_tests():
    test = """
    from support import require

    def test_it():
        require(2)
    """
    helpers = (
        """
        import torch, pytest

        def require(count):
            if torch.cuda.device_count() < count:
                pytest.skip("too few")
        """,
        """
        import torch

        def require(count):
            import pytest

            if torch.cuda.device_count() < count:
                pytest.skip("too few")
        """,
    )
    found = [devices_of("test_it.py", {"support.py": helper, "test_it.py": test})["test_it"][0] for helper in helpers]
    assert found == [2, 2]


def test_an_exception_is_caught_by_its_base_whether_its_class_or_an_instance_was_raised():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest, torch

            class Few(Exception):
                pass

            class Nothing(Few):
                pass

            def test_it():
                try:
                    if not torch.cuda.is_available():
                        raise Nothing
                    if torch.cuda.device_count() < 3:
                        raise Few("few")
                    torch.cuda.set_device(2)
                except ValueError:
                    return
                except Few:
                    pytest.skip("few")
            """,
        },
    )
    assert found["test_it"].profile["0"] == found["test_it"].profile["2"] == "skip"


def test_what_a_loop_does_else_is_done_where_its_condition_ends_it():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest, torch

            def test_it():
                world = 4
                while world > 2:
                    if world <= torch.cuda.device_count():
                        break
                    world -= 1
                else:
                    pytest.skip("few")
                torch.cuda.set_device(world - 1)
            """,
        },
    )
    assert found == {"test_it": (3, 3, 3)}


def test_a_function_that_a_context_manager_decorates_runs_inside_of_the_context():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import contextlib, functools, os
            import pytest, torch

            N = torch.cuda.device_count()

            @contextlib.contextmanager
            def needing(count):
                if N < count:
                    pytest.skip("too few")
                yield

            @contextlib.contextmanager
            def environment(**names):
                before = dict(os.environ)
                os.environ.update(names)
                try:
                    yield
                finally:
                    os.environ.clear()
                    os.environ.update(before)

            class Needing(contextlib.ContextDecorator):
                def __init__(self, count):
                    self.count = count

                def __enter__(self):
                    if N < self.count:
                        pytest.skip("too few")

                def __exit__(self, *_):
                    return False

            def twice(test):
                @functools.wraps(test)
                def wrapper(*args, **kwargs):
                    test(*args, **kwargs)
                    test(*args, **kwargs)
                return wrapper

            @needing(2)
            def test_two():
                torch.ones(1).cuda()

            @twice
            @needing(3)
            @environment(WORLD="2")
            def test_three():
                torch.cuda.set_device(int(os.environ["WORLD"]) - 1)

            @environment(WORLD="4")
            def world():
                return int(os.environ["WORLD"])

            def test_helper():
                torch.cuda.set_device(world() - 1)

            class TestMethod:
                @Needing(4)
                def test_it(self):
                    torch.ones(1).cuda()
            """,
        },
    )
    assert {name: least for name, (least, _, _) in found.items()} == {
        "test_two": 2, "test_three": 3, "test_helper": 4, "TestMethod::test_it": 4,
    }  # fmt: skip


def test_a_context_that_does_nothing_gives_what_it_was_made_of():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import contextlib
            import torch

            def count():
                with contextlib.nullcontext(3) as given:
                    return given

            def test_it():
                torch.cuda.set_device(count() - 1)
            """,
        },
    )
    assert found == {"test_it": (3, 3, 3)}
