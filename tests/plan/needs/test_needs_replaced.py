"""What a test puts in the place of the library's own functions: mock's patches, pytest's monkeypatch."""

from small_projects import devices_of, needs_of

LIBRARY = {
    "src/bolt/__init__.py": "",
    "src/bolt/cuda.py": """
    import torch

    def count_of_devices():
        return torch.cuda.device_count()

    class Accelerator:
        @staticmethod
        def auto_device_count():
            return count_of_devices()

        @classmethod
        def is_available(cls):
            return cls.auto_device_count() > 0

        def name(self):
            return "cuda" if self.is_available() else "cpu"
    """,
    "src/bolt/picking.py": """
    from bolt.cuda import Accelerator, count_of_devices

    def pick(wanted):
        if wanted > count_of_devices():
            raise ValueError("too many")
        return list(range(wanted))
    """,
}


def test_a_function_of_a_library_that_a_test_replaces_is_not_asked():
    found = devices_of(
        "tests/test_it.py",
        LIBRARY
        | {
            "tests/test_it.py": """
            from unittest import mock

            import bolt.cuda
            import torch
            from bolt.cuda import Accelerator
            from bolt.picking import pick

            @mock.patch("bolt.cuda.count_of_devices", return_value=2)
            def test_patched(_):
                assert Accelerator.auto_device_count() == 2

            @mock.patch("bolt.picking.count_of_devices", return_value=8)
            def test_patched_where_it_is_imported(_):
                assert pick(8) == list(range(8))

            def test_patched_for_a_while():
                with mock.patch("bolt.cuda.Accelerator.is_available", return_value=True):
                    assert Accelerator.is_available()
                with mock.patch.object(Accelerator, "auto_device_count", return_value=4):
                    assert Accelerator.auto_device_count() == 4

            def test_monkeypatched(monkeypatch):
                monkeypatch.setattr(bolt.cuda, "count_of_devices", lambda: 3)
                monkeypatch.setattr("bolt.cuda.Accelerator.name", lambda self: "tpu")
                assert Accelerator.auto_device_count() == 3
                assert Accelerator().name() == "tpu"

            def test_asked():
                assert Accelerator.auto_device_count() >= 2
            """,
        },
    )
    host = (0, None, 0)
    assert found == {
        "test_patched": host,
        "test_patched_where_it_is_imported": host,
        "test_patched_for_a_while": host,
        "test_monkeypatched": host,
        "test_asked": (2, 2, 2),
    }


def test_a_patch_that_is_started_holds_until_it_is_stopped():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import os
            import unittest
            from unittest import mock

            import torch

            counted = mock.patch("torch.cuda.device_count", return_value=4)

            class TestIt(unittest.TestCase):
                def setUp(self):
                    patcher = mock.patch("torch.cuda.device_count", return_value=4)
                    patcher.start()
                    self.addCleanup(patcher.stop)

                def test_started(self):
                    assert torch.cuda.device_count() == 4

            def test_started():
                counted.start()
                assert torch.cuda.device_count() == 4
                counted.stop()

            def test_stopped():
                counted.start()
                counted.stop()
                assert torch.cuda.device_count() >= 2

            def test_stopped_only():
                counted.stop()
                assert torch.cuda.device_count() >= 2

            def test_environment():
                variables = mock.patch.dict(os.environ, {"RANKS": "3"})
                variables.start()
                assert torch.cuda.device_count() >= int(os.environ["RANKS"])
                variables.stop()
            """
        },
    )
    assert found == {
        "TestIt::test_started": (0, None, 0),
        "test_started": (0, None, 0),
        "test_stopped": (2, 2, 2),
        "test_stopped_only": (2, 2, 2),
        "test_environment": (3, 3, 3),
    }


def test_what_chex_puts_in_the_place_of_pmap_asks_for_no_devices():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import chex
            import jax
            import jax.numpy as jnp
            from absl.testing import parameterized

            def mapped():
                return jax.pmap(lambda x: x)(jnp.zeros((4, 2)))

            def test_mapped():
                mapped()

            def test_replaced():
                with chex.fake_pmap():
                    mapped()

            def test_replaced_by_both():
                with chex.fake_pmap_and_jit():
                    mapped()

            def test_not_replaced():
                with chex.fake_pmap(False):
                    mapped()

            class TestIt(parameterized.TestCase):
                def test_started(self):
                    context = chex.fake_pmap()
                    context.start()
                    mapped()
                    context.stop()
            """
        },
    )
    assert found == {
        "test_mapped": (4, 4, 4),
        "test_replaced": (0, 1, 1),
        "test_replaced_by_both": (0, 1, 1),
        "test_not_replaced": (4, 4, 4),
        "TestIt::test_started": (0, 1, 1),
    }


def test_a_rule_is_laid_over_the_function_of_a_library_that_is_in_the_tree():
    found = devices_of(
        "chex/fake_test.py",
        {
            "chex/__init__.py": "",
            "chex/_src/__init__.py": "",
            "chex/_src/fake.py": """
            def fake_pmap(enable_patching=True):
                return build_a_context(enable_patching)
            """,
            "chex/fake_test.py": """
            import jax
            import jax.numpy as jnp
            from chex._src import fake

            def test_replaced():
                with fake.fake_pmap():
                    jax.pmap(lambda x: x)(jnp.zeros((4, 2)))
            """,
        },
    )
    assert found == {"test_replaced": (0, 1, 1)}


def test_a_patch_that_is_stopped_leaves_those_in_place_that_were_started_after_it():
    found = devices_of(
        "tests/test_it.py",
        LIBRARY
        | {
            "tests/test_it.py": """
            from unittest import mock

            from bolt.cuda import Accelerator

            def test_it():
                one = mock.patch("bolt.cuda.Accelerator.is_available", return_value=True)
                other = mock.patch("bolt.cuda.count_of_devices", return_value=4)
                one.start()
                other.start()
                one.stop()
                assert Accelerator.auto_device_count() == 4
                other.stop()

            def test_both_stopped():
                patcher = mock.patch("bolt.cuda.count_of_devices", return_value=4)
                patcher.start()
                patcher.stop()
                assert Accelerator.auto_device_count() >= 2
            """,
        },
    )
    assert found == {"test_it": (0, None, 0), "test_both_stopped": (2, 2, 2)}


def test_what_a_fixture_does_around_its_yield_holds_in_the_test_and_is_undone_after_it():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import os
            from unittest import mock

            import pytest
            import torch

            STATE = {"width": 1}

            def touch(width):
                for index in range(width):
                    torch.ones(1, device=f"cuda:{index}")

            @pytest.fixture
            def hidden():
                with mock.patch("torch.cuda.device_count", return_value=2):
                    yield

            @pytest.fixture
            def told():
                with mock.patch.dict(os.environ, {"WIDTH_OF_IT": "3"}):
                    yield

            @pytest.fixture
            def wide():
                before = STATE["width"]
                STATE["width"] = 4
                try:
                    yield
                finally:
                    STATE["width"] = before

            def test_hidden(hidden):
                touch(torch.cuda.device_count())

            def test_told(told):
                touch(int(os.environ["WIDTH_OF_IT"]))

            def test_wide(wide):
                touch(STATE["width"])

            def test_after():
                touch(STATE["width"])
            """,
        },
    )
    assert found == {
        "test_hidden": (2, 2, 2),
        "test_told": (3, 3, 3),
        "test_wide": (4, 4, 4),
        "test_after": (1, 1, 1),
    }


def test_what_a_context_manager_of_the_tests_does_around_its_yield_holds_until_it_is_left():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import contextlib
            import os
            from unittest import mock

            import torch

            STATE = {"width": 1}

            def touch(width):
                for index in range(width):
                    torch.ones(1, device=f"cuda:{index}")

            @contextlib.contextmanager
            def hidden():
                with mock.patch("torch.cuda.device_count", return_value=2):
                    yield 3

            @contextlib.contextmanager
            def told(width):
                os.environ["WIDTH_OF_IT"] = str(width)
                yield
                del os.environ["WIDTH_OF_IT"]

            @contextlib.contextmanager
            def wide(width):
                before, STATE["width"] = STATE["width"], width
                try:
                    yield before
                except ZeroDivisionError:
                    pass
                finally:
                    STATE["width"] = before

            @contextlib.contextmanager
            def guarded(kind):
                if kind.is_known():
                    with told(8):
                        yield
                else:
                    yield

            def test_hidden():
                with hidden() as given:
                    touch(torch.cuda.device_count())
                    assert given == 3
                assert torch.cuda.device_count() >= given

            def test_told():
                with told(3):
                    touch(int(os.environ["WIDTH_OF_IT"]))

            def test_not_told_any_more():
                with told(3):
                    pass
                touch(int(os.environ.get("WIDTH_OF_IT", "1")))

            def test_nested():
                with wide(4), wide(2) as outer:
                    touch(STATE["width"])
                    assert outer == 4
                touch(STATE["width"])

            def test_swallowed():
                with wide(4):
                    raise ZeroDivisionError
                touch(STATE["width"])

            def test_returns():
                with wide(4):
                    return

            def test_not_swallowed():
                with wide(4):
                    touch(2)

            def test_stacked():
                with contextlib.ExitStack() as stack:
                    stack.enter_context(wide(3))
                    touch(STATE["width"])

            def test_one_way_or_the_other():
                with guarded(torch):
                    pass
                touch(int(os.environ.get("WIDTH_OF_IT", "1")))

            @wide(4)
            def test_decorated():
                pass

            def test_after():
                touch(STATE["width"])
            """,
        },
    )
    assert found == {
        "test_hidden": (3, 3, 3),
        "test_told": (3, 3, 3),
        "test_not_told_any_more": (1, 1, 1),
        "test_nested": (2, 2, 2),
        "test_swallowed": (1, 1, 1),
        "test_returns": (0, None, 0),
        "test_not_swallowed": (2, 2, 2),
        "test_stacked": (3, 3, 3),
        "test_one_way_or_the_other": (1, 1, 1),
        "test_decorated": (0, None, 0),
        "test_after": (1, 1, 1),
    }


def test_a_context_that_a_test_case_enters_is_left_after_the_test():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import contextlib
            import unittest

            import torch

            STATE = {"width": 1}

            @contextlib.contextmanager
            def wide():
                STATE["width"] = 4
                yield
                STATE["width"] = 1

            def touch():
                for index in range(STATE["width"]):
                    torch.ones(1, device=f"cuda:{index}")

            class TestWide(unittest.TestCase):
                def setUp(self):
                    self.enterContext(wide())

                def test_it(self):
                    touch()

            def test_after():
                touch()
            """,
        },
    )
    assert found == {"TestWide::test_it": (4, 4, 4), "test_after": (1, 1, 1)}


def test_an_environment_that_is_updated_as_a_whole_is_what_is_read_later():
    found = devices_of(
        "test_environment.py",
        {
            "test_environment.py": """
            import os
            import torch

            def touch():
                torch.ones(1, device=f"cuda:{os.environ['WHICH']}")

            def test_a_dict():
                os.environ.update({"WHICH": "1"})
                touch()

            def test_names():
                os.environ.update(WHICH="2")
                touch()

            def test_pairs():
                os.environ.update([("WHICH", "3")])
                touch()

            def test_in_place():
                os.environ |= {"WHICH": "1"}
                touch()

            def test_put_back():
                os.environ["WHICH"] = "0"
                before = dict(os.environ)
                os.environ["WHICH"] = "3"
                os.environ.clear()
                os.environ.update(before)
                touch()
            """
        },
    )
    assert {name: needs[0] for name, needs in found.items()} == {
        "test_a_dict": 2,
        "test_names": 3,
        "test_pairs": 4,
        "test_in_place": 2,
        "test_put_back": 1,
    }


def test_a_copy_of_the_environment_that_is_updated_with_what_is_not_known_keeps_what_was_set():
    found = needs_of(
        "test_environment.py",
        {
            "test_environment.py": """
            import os
            import elsewhere
            import torch

            def test_something():
                copied = os.environ.copy()
                copied["WHICH"] = "1"
                copied.update(elsewhere.variables())
                torch.ones(1, device=f"cuda:{copied['WHICH']}")

            def test_pairs():
                copied = os.environ.copy()
                copied.update([("WHICH", "3"), elsewhere.variable()])
                torch.ones(1, device=f"cuda:{copied['WHICH']}")
            """
        },
    )
    assert {name: need.min for name, need in found.items()} == {"test_something": 2, "test_pairs": 4}


def test_a_mock_uses_no_device_and_gives_what_it_was_told():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            from unittest import mock
            from unittest.mock import MagicMock, Mock
            import pytest, torch

            N = torch.cuda.device_count()

            def require(count):
                if N < count:
                    pytest.skip("too few")

            def test_moved():
                model = MagicMock()
                model.to("cuda:1")
                model.layers[0].weight.cuda(2)
                model(device="cuda:3")

            def test_attribute():
                args = MagicMock()
                args.world_size = 4
                require(args.world_size)

            def test_given():
                args = Mock(tp=3, **{"size.return_value": 2})
                require(args.tp)
                require(args.size())

            def test_returned():
                group = MagicMock()
                group.size.return_value = 2
                require(group.size())

            def test_effects():
                size = Mock(side_effect=[1, 4])
                size()
                require(size())

            def test_raised():
                size = Mock(side_effect=ValueError("none"))
                with pytest.raises(ValueError):
                    size()
                require(2)

            def test_replaced():
                with mock.patch("torch.cuda.device_count") as count:
                    count.return_value = 8
                    require(torch.cuda.device_count() // 4)

            def test_as_another():
                with mock.patch("torch.cuda.set_device", MagicMock()):
                    torch.cuda.set_device(3)
            """,
        },
    )
    assert {name: (each.min, each.confidence) for name, each in found.items()} == {
        "test_moved": (0, "high"), "test_attribute": (4, "high"), "test_given": (3, "high"),
        "test_returned": (2, "high"), "test_effects": (4, "high"), "test_raised": (2, "high"),
        "test_replaced": (2, "high"), "test_as_another": (0, "high"),
    }  # fmt: skip


def test_a_constant_of_a_module_may_be_replaced():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/limits.py": """
            import pytest, torch

            LEAST = 4

            def require():
                if torch.cuda.device_count() < LEAST:
                    pytest.skip("too few")
            """,
            "tests/test_it.py": """
            from unittest import mock
            import limits
            import torch

            COUNT = torch.cuda.device_count()

            def test_as_it_is():
                limits.require()

            def test_patched():
                with mock.patch("limits.LEAST", 2):
                    limits.require()

            def test_set(monkeypatch):
                monkeypatch.setattr(limits, "LEAST", 3)
                limits.require()

            @mock.patch(f"{__name__}.COUNT", 1)
            def test_own():
                torch.cuda.set_device(COUNT - 1)
            """,
        },
    )
    assert {name: least for name, (least, _, _) in found.items()} == {
        "test_as_it_is": 4, "test_patched": 2, "test_set": 3, "test_own": 1,
    }  # fmt: skip


def test_a_mock_that_wraps_what_it_takes_the_place_of_calls_that():
    found = devices_of(
        "test_wraps.py",
        {
            "test_wraps.py": """
            from unittest import mock
            import torch

            @mock.patch("torch.compile", mock.Mock(wraps=torch.compile))
            def test_wraps():
                torch.compile(torch.nn.Linear(2, 2))
                torch.ones(2, device="cuda:1")
            """
        },
    )
    assert found == {"test_wraps": (2, 2, 2)}


def test_a_static_method_that_is_a_context_manager_decorates_tests_of_its_class():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import contextlib
            import torch

            class TestIt:
                @contextlib.contextmanager
                @staticmethod
                def prepared(width):
                    for index in range(width):
                        torch.ones(1, device=f"cuda:{index}")
                    yield width

                @prepared(torch.cuda.device_count())
                def test_all(self):
                    pass

                @prepared(2)
                def test_two(self):
                    pass
            """
        },
    )
    assert found == {"TestIt::test_all": (0, 1, 8), "TestIt::test_two": (2, 2, 2)}


def test_where_a_mock_is_what_moves_a_tensor_the_library_puts_nothing_on_the_device_that_it_is_told():
    found = needs_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/trial.py": """
            import torch

            def deep_to(batch, device):
                if isinstance(batch, list):
                    return [deep_to(each, device) for each in batch]
                return batch.to(device)

            class Trial:
                def __init__(self, model, path):
                    self.model = model
                    self.settings = load(path)

                def to(self, device):
                    self.model.to(device)
            """,
            "tests/test_it.py": """
            import torch
            from unittest.mock import Mock
            from acme.trial import Trial, deep_to

            def test_function():
                tensor = torch.Tensor([1])
                tensor.to = Mock()
                deep_to([tensor], "cuda:1")
                assert tensor.to.call_args[0][0] == "cuda:1"

            def test_object():
                model = torch.nn.Sequential(torch.nn.Linear(1, 1))
                model.to = Mock()
                Trial(model, "settings").to("cuda:1")
                assert model.to.call_args[0][0] == "cuda:1"

            def test_no_mock():
                deep_to([torch.Tensor([1])], "cuda:1")

            def test_its_own():
                model = torch.nn.Linear(1, 1)
                model.to = Mock()
                torch.ones(1).to("cuda:1")
            """,
        },
    )
    assert {name: (each.min, each.full) for name, each in found.items()} == {
        "test_function": (0, 0),
        "test_object": (0, 0),
        "test_no_mock": (2, 2),
        "test_its_own": (2, 2),
    }
    assert found["test_function"].confidence.value == found["test_object"].confidence.value == "medium"


def test_what_a_class_or_an_object_keeps_is_replaced_until_it_is_put_back():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            from unittest import mock
            import torch

            class Sizes:
                gpus = 1

                def use(self):
                    torch.ones(1, device=self.gpus - 1)

            class More(Sizes):
                pass

            @mock.patch.object(Sizes, "gpus", 3)
            def test_of_a_class():
                Sizes().use()

            def test_of_the_next():
                Sizes().use()

            def test_of_a_block():
                with mock.patch.object(Sizes, "gpus", 3), mock.patch.object(Sizes, "gpus", 2):
                    Sizes().use()

            def test_after_a_block():
                with mock.patch.object(Sizes, "gpus", 3):
                    pass
                Sizes().use()

            def test_of_an_object(monkeypatch):
                sizes = Sizes()
                monkeypatch.setattr(sizes, "gpus", 4)
                sizes.use()

            def test_of_a_method_of_an_object(monkeypatch):
                sizes = Sizes()
                monkeypatch.setattr(sizes, "use", lambda: None)
                sizes.use()

            def test_of_another_object(monkeypatch):
                monkeypatch.setattr(Sizes(), "use", lambda: None)
                Sizes().use()

            def test_of_a_class_that_inherits(monkeypatch):
                monkeypatch.setattr(Sizes, "gpus", 3)
                More().use()

            def test_that_is_undone(monkeypatch):
                monkeypatch.setattr(Sizes, "gpus", 3)
                monkeypatch.undo()
                Sizes().use()

            def test_within_a_context(monkeypatch):
                with monkeypatch.context() as m:
                    m.setattr(Sizes, "gpus", 3)
                Sizes().use()

            def test_of_a_text(monkeypatch):
                monkeypatch.setattr("tests.test_it.Sizes.gpus", 3)
                Sizes().use()
            """
        },
    )
    one, three = (1, 1, 1), (3, 3, 3)
    assert found == {
        "test_of_a_class": three,
        "test_of_the_next": one,
        "test_of_a_block": (2, 2, 2),
        "test_after_a_block": one,
        "test_of_an_object": (4, 4, 4),
        "test_of_a_method_of_an_object": (0, None, 0),
        "test_of_another_object": one,
        "test_of_a_class_that_inherits": three,
        "test_that_is_undone": one,
        "test_within_a_context": one,
        "test_of_a_text": three,
    }


def test_properties_are_replaced_and_several_attributes_at_once():
    found = devices_of(
        "tests/test_it.py",
        {
            "src/acme/__init__.py": "",
            "src/acme/sizes.py": """
            import torch

            MOST = 2

            class Sizes:
                gpus = 2

                @property
                def ids(self):
                    return list(range(self.gpus))

                def use(self):
                    return [torch.ones(1, device=f"cuda:{i}") for i in self.ids[:MOST]]
            """,
            "tests/test_it.py": """
            from unittest import mock
            from acme.sizes import Sizes

            def test_of_a_list(monkeypatch):
                monkeypatch.setattr(Sizes, "ids", [0, 3])
                Sizes().use()

            def test_of_another_property(monkeypatch):
                monkeypatch.setattr(Sizes, "ids", property(lambda self: [2]))
                Sizes().use()

            def test_of_a_mock():
                with mock.patch.object(Sizes, "ids", new_callable=mock.PropertyMock, return_value=[0]):
                    Sizes().use()

            @mock.patch.multiple("acme.sizes", MOST=3)
            def test_of_several():
                with mock.patch.multiple(Sizes, gpus=4, create=True):
                    Sizes().use()

            def test_after_several():
                with mock.patch.multiple(Sizes, gpus=4):
                    pass
                Sizes().use()
            """,
        },
    )
    assert found == {
        "test_of_a_list": (4, 4, 4),
        "test_of_another_property": (3, 3, 3),
        "test_of_a_mock": (1, 1, 1),
        "test_of_several": (3, 3, 3),
        "test_after_several": (2, 2, 2),
    }


def test_a_mock_is_true_unless_it_is_told_otherwise():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            from unittest import mock
            import torch

            def use(settings):
                settings = settings or mock.Mock(ids=[0])
                for each in settings.ids:
                    torch.ones(1, device=each)

            def test_that_is_given():
                use(mock.Mock(ids=[0, 1]))

            def test_of_what_it_gives():
                if not mock.MagicMock().is_ready():
                    torch.ones(1, device="cuda")

            @mock.patch("torch.cuda.is_available")
            def test_of_what_is_replaced(is_available):
                if not torch.cuda.is_available():
                    torch.ones(1, device="cuda")

            class Sizes:
                def gpus(self):
                    return 4

            def test_with_the_methods_of_a_class():
                sizes = mock.create_autospec(Sizes)
                sizes.gpus.return_value = 2
                torch.ones(1, device=sizes.gpus() - 1)

            def test_that_is_told(truth):
                told = mock.MagicMock()
                told.__len__.return_value = truth
                if not told:
                    torch.ones(1, device="cuda")
            """
        },
    )
    assert found == {
        "test_that_is_given": (2, 2, 2),
        "test_of_what_it_gives": (0, None, 0),
        "test_of_what_is_replaced": (0, None, 0),
        "test_with_the_methods_of_a_class": (2, 2, 2),
        "test_that_is_told": (0, 1, 1),
    }


def test_items_of_a_table_are_replaced_until_they_are_put_back():
    found = devices_of(
        "tests/test_it.py",
        {
            "src/acme/__init__.py": "",
            "src/acme/sizes.py": "TABLE = {'gpus': 2}",
            "tests/test_it.py": """
            import os
            from unittest import mock
            import torch
            from acme import sizes

            def use():
                torch.ones(1, device=sizes.TABLE["gpus"] - 1)

            def test_of_one(monkeypatch):
                monkeypatch.setitem(sizes.TABLE, "gpus", 3)
                use()

            def test_after_one():
                use()

            def test_by_keywords(monkeypatch):
                monkeypatch.setitem(dic=sizes.TABLE, name="gpus", value=3)
                monkeypatch.setattr(target=sizes, name="TABLE", value={"gpus": sizes.TABLE["gpus"] + 1})
                use()

            def test_of_several():
                with mock.patch.dict(sizes.TABLE, {"gpus": 4}):
                    use()

            @mock.patch.dict("acme.sizes.TABLE", gpus=3)
            def test_of_a_text():
                use()

            def test_that_is_cleared():
                with mock.patch.dict(sizes.TABLE, {"others": 1}, clear=True):
                    torch.ones(1, device=sizes.TABLE.get("gpus", 1) - 1)

            def test_after_several():
                with mock.patch.dict(sizes.TABLE, {"gpus": 4}):
                    pass
                use()

            def test_that_is_taken_away(monkeypatch):
                monkeypatch.delitem(sizes.TABLE, "gpus")
                torch.ones(1, device=sizes.TABLE.get("gpus", 3) - 1)

            @mock.patch.dict("os.environ", {"GPUS": "4"})
            def test_of_the_environment():
                torch.ones(1, device=int(os.environ["GPUS"]) - 1)
            """,
        },
    )
    one, two, three, four = ((each, each, each) for each in range(1, 5))
    assert found == {
        "test_of_one": three,
        "test_after_one": two,
        "test_by_keywords": four,
        "test_of_several": four,
        "test_of_a_text": three,
        "test_that_is_cleared": one,
        "test_after_several": two,
        "test_that_is_taken_away": three,
        "test_of_the_environment": four,
    }


def test_only_the_name_is_replaced_by_which_a_module_has_a_function():
    found = devices_of(
        "tests/test_it.py",
        {
            "src/acme/__init__.py": "",
            "src/acme/sizes.py": "def gpus():\n    return 1",
            "src/acme/work.py": """
            import torch
            from acme.sizes import gpus

            def use():
                torch.ones(1, device=f"cuda:{gpus() - 1}")
            """,
            "tests/test_it.py": """
            from unittest import mock
            import torch
            from acme import sizes, work
            from acme.sizes import gpus

            @mock.patch("acme.sizes.gpus", return_value=3)
            def test_elsewhere(gpus):
                work.use()

            @mock.patch("acme.work.gpus", return_value=3)
            def test_where_it_is_used(gpus):
                work.use()

            @mock.patch("acme.sizes.gpus", return_value=3)
            def test_by_its_module(patched):
                torch.ones(1, device=sizes.gpus() - 1)

            def test_by_its_own_name(monkeypatch):
                monkeypatch.setattr(sizes, "gpus", lambda: 3)
                torch.ones(1, device=gpus() - 1)

            def test_that_is_stopped():
                mock.patch("acme.work.gpus", return_value=3).start()
                mock.patch.stopall()
                work.use()
            """,
        },
    )
    one, three = (1, 1, 1), (3, 3, 3)
    assert found == {
        "test_elsewhere": one,
        "test_where_it_is_used": three,
        "test_by_its_module": three,
        "test_by_its_own_name": one,
        "test_that_is_stopped": one,
    }


def test_what_moves_all_tensors_may_be_replaced():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            from unittest import mock
            import torch

            @mock.patch.object(torch.Tensor, "cuda", lambda self, *args: self)
            def test_of_tensors():
                torch.ones(1).cuda(3)

            def test_of_modules(monkeypatch):
                monkeypatch.setattr(torch.nn.Module, "to", lambda self, *args: self)
                torch.nn.Linear(2, 2).to("cuda:1")

            def test_of_a_stub(mocker):
                mocker.stub().cuda(3)
            """
        },
    )
    assert {name: (each.gpu_min, each.confidence) for name, each in found.items()} == {
        "test_of_tensors": (None, "medium"),
        "test_of_modules": (None, "medium"),
        "test_of_a_stub": (None, "high"),
    }
