"""What is used on one way, and it is not known whether a test goes it."""

from small_projects import devices_of, needs_of


def test_devices_that_only_one_of_several_ways_uses_are_no_certainty():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import random
            import torch

            DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

            def by_chance():
                return random.random() > 0.5

            def test_on_one_way():
                if by_chance():
                    torch.ones(1, device=DEVICE)

            def test_on_both_ways():
                if by_chance():
                    torch.ones(1, device=DEVICE)
                else:
                    torch.zeros(1, device=DEVICE)

            def test_that_may_have_ended():
                if by_chance():
                    return
                torch.ones(1, device=DEVICE)

            def test_of_kinds_that_may_lack_it():
                for kind in ("small", "large"):
                    if not hasattr(random, kind):
                        continue
                    torch.ones(1, device=DEVICE)

            def test_of_what_was_used_before():
                torch.ones(1, device=DEVICE)
                for kind in ("small", "large"):
                    if by_chance():
                        continue
                    torch.zeros(1, device=DEVICE)
                if by_chance():
                    return
                torch.ones(2, device=DEVICE)

            def number():
                if by_chance():
                    return 1
                return 2

            def test_after_a_function_that_has_two_ways():
                number()
                torch.ones(1, device=DEVICE)
            """
        },
    )
    assert {name: (each.min, each.gpu_min, each.full, each.confidence.name) for name, each in found.items()} == {
        "test_on_one_way": (0, 1, 1, "MEDIUM"),
        "test_on_both_ways": (0, 1, 1, "HIGH"),
        "test_that_may_have_ended": (0, 1, 1, "MEDIUM"),
        "test_of_kinds_that_may_lack_it": (0, 1, 1, "MEDIUM"),
        "test_of_what_was_used_before": (0, 1, 1, "HIGH"),
        "test_after_a_function_that_has_two_ways": (0, 1, 1, "HIGH"),
    }


def test_a_class_has_no_public_attribute_that_neither_it_nor_pytorchs_module_has():
    text = """
        import torch
        from acme.models import Model, Mixed
        import other

        DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

        def uses(kind, name):
            if hasattr(kind, name):
                torch.ones(1, device=DEVICE)

        def test_own():
            uses(Model, "encode")

        def test_of_pytorchs():
            uses(Model, "state_dict")

        def test_of_none():
            uses(Model, "get_text_features")

        def test_private():
            uses(Model, "_apply")

        def test_of_what_is_not_known():
            uses(Mixed, "get_text_features")

        def test_by_default():
            getattr(Model, "moves", lambda: torch.ones(1, device=DEVICE))()
        """
    library = """
        import other
        from torch import nn

        class Model(nn.Module):
            def encode(self):
                return 1

        class Mixed(Model, other.Mixin):
            pass
        """
    found = needs_of("tests/test_it.py", {"acme/__init__.py": "", "acme/models.py": library, "tests/test_it.py": text})
    assert {name: (each.min, each.gpu_min) for name, each in found.items()} == {
        "test_own": (0, 1),
        "test_of_pytorchs": (0, 1),
        "test_of_none": (0, None),
        "test_private": (0, 1),
        "test_of_what_is_not_known": (0, 1),
        "test_by_default": (0, 1),
    }
    sure = {name for name, each in found.items() if each.confidence.name == "HIGH"}
    assert sure == {"test_own", "test_of_pytorchs", "test_of_none", "test_by_default"}


def test_a_device_of_which_nothing_is_known_may_be_one():
    found = needs_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/where.py": """
            import json

            SETTINGS = json.load(open("settings.json"))

            def default_device():
                return SETTINGS["device"]
            """,
            "tests/test_it.py": """
            import pytest
            import torch
            from acme import where

            @pytest.fixture
            def device(request):
                return request.config.getoption("--device")

            def test_moved(device):
                torch.ones(1).to(device)

            def test_made(device):
                torch.ones(1, device=device)

            def test_called():
                torch.ones(1).to(where.default_device())

            def test_beside():
                x = torch.ones(1)
                torch.zeros(1).to(torch.nn.Linear(1, 1)(x).device)

            def test_of_the_host():
                device = "cpu"
                torch.ones(1).to(device)

            def test_with_another(device):
                torch.ones(1).to(device)
                torch.ones(1, device="cuda" if torch.cuda.is_available() else "cpu")
            """,
        },
    )
    assert {name: (each.min, each.gpu_min, each.confidence.name) for name, each in found.items()} == {
        "test_moved": (0, None, "MEDIUM"),
        "test_made": (0, None, "MEDIUM"),
        "test_called": (0, None, "MEDIUM"),
        "test_beside": (0, None, "HIGH"),
        "test_of_the_host": (0, None, "HIGH"),
        "test_with_another": (0, 1, "HIGH"),
    }


def test_what_a_class_of_the_library_takes_by_default_may_be_a_device():
    found = needs_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/trainer.py": """
            from functools import wraps

            def from_environment(function):
                @wraps(function)
                def called(self, **more):
                    return function(self, **more)
                return called

            class Trainer:
                @from_environment
                def __init__(self, *, accelerator="auto", devices="auto", epochs=1):
                    self.epochs = epochs

                def fit(self, model): ...

            class OldTrainer(Trainer):
                def __init__(self, accelerator=None, devices=None):
                    self.epochs = 1
            """,
            "tests/test_it.py": """
            from acme.trainer import OldTrainer, Trainer

            def test_by_default():
                Trainer().fit(None)

            def test_told_the_host():
                Trainer(accelerator="cpu").fit(None)

            def test_told_of_none():
                Trainer(devices=0).fit(None)

            def test_of_the_host_by_default():
                OldTrainer().fit(None)
            """,
        },
    )
    assert {name: (each.min, each.gpu_min, each.confidence.name) for name, each in found.items()} == {
        "test_by_default": (0, None, "MEDIUM"),
        "test_told_the_host": (0, None, "HIGH"),
        "test_told_of_none": (0, None, "HIGH"),
        "test_of_the_host_by_default": (0, None, "HIGH"),
    }


def test_a_device_that_one_of_two_values_is_on_is_no_certainty():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import inspect
            import torch

            DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

            def is_asked():
                return any(frame.function == "asked" for frame in inspect.stack())

            def test_on_one_of_two():
                torch.ones(1, device=DEVICE) if is_asked() else torch.ones(1)

            def test_on_either():
                torch.ones(1, device=DEVICE) if is_asked() else torch.zeros(1, device=DEVICE)

            def test_on_one_after_it_was_used():
                x = torch.ones(1, device=DEVICE)
                x.to(DEVICE) if is_asked() else x.cpu()
            """
        },
    )
    assert {name: (each.min, each.gpu_min, each.full, each.confidence.value) for name, each in found.items()} == {
        "test_on_one_of_two": (0, 1, 1, "medium"),
        "test_on_either": (0, 1, 1, "high"),
        "test_on_one_after_it_was_used": (0, 1, 1, "high"),
    }


def test_what_two_ways_give_alike_in_a_tuple_is_known():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch
            from elsewhere import compiled, found

            def made(count):
                module = found(count)
                if module is not None:
                    return module, count
                return compiled(count), count

            @pytest.mark.parametrize("count", [1, 3])
            def test_it(count):
                module, told = made(count)
                if told != 3:
                    pytest.skip("other")
                torch.ones(1, device=f"cuda:{told - 1}")
            """
        },
    )
    assert found == {"test_it[1]": (None, None, None), "test_it[3]": (3, 3, 3)}


def test_a_loop_whose_condition_is_not_known_may_have_no_turn():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import random
            import pytest
            import torch

            def by_chance():
                return random.random() > 0.5

            def test_that_may_turn():
                while by_chance():
                    torch.ones(1, device="cuda")

            def test_that_turns_once_at_least():
                turns = 0
                while turns < 1 or by_chance():
                    torch.ones(1, device="cuda")
                    turns += 1

            def test_that_uses_nothing_else():
                torch.ones(1, device="cuda")
                while by_chance():
                    torch.zeros(1, device="cuda")

            def test_that_may_skip():
                while by_chance():
                    pytest.skip("by chance")
                torch.ones(1, device="cuda")

            def test_what_follows_it():
                while by_chance():
                    pass
                else:
                    torch.ones(1, device="cuda")
            """
        },
    )
    assert {name: (each.min, each.gpu_min, each.full, each.confidence.name) for name, each in found.items()} == {
        "test_that_may_turn": (1, 1, 1, "MEDIUM"),
        "test_that_turns_once_at_least": (1, 1, 1, "HIGH"),
        "test_that_uses_nothing_else": (1, 1, 1, "HIGH"),
        "test_that_may_skip": (1, 1, 1, "MEDIUM"),
        "test_what_follows_it": (1, 1, 1, "HIGH"),
    }


def test_what_stands_behind_and_or_or_may_not_be_done_and_either_value_is_possible():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import elsewhere
            import pytest
            import torch

            def first():
                torch.ones(1, device="cuda:0")

            def second():
                torch.ones(1, device="cuda:1")

            def work(rank):
                torch.ones(1, device=f"cuda:{rank}")

            def test_number():
                torch.multiprocessing.spawn(work, nprocs=elsewhere.flag() and 4 or 2)

            def test_device():
                torch.ones(1, device=elsewhere.flag() and "cuda:1" or "cuda:0")

            def test_function():
                (elsewhere.flag() and first or second)()

            def test_what_follows_a_flag():
                elsewhere.flag() and second()

            def test_what_follows_unless():
                elsewhere.flag() or second()

            def test_both():
                second()
                elsewhere.flag() and second()

            def test_a_skip():
                elsewhere.flag() and pytest.skip("by chance")
                first()

            def test_neither_is_known():
                if elsewhere.flag() or elsewhere.kind() and True:
                    pytest.skip("by chance")
                first()
            """
        },
    )
    assert {name: (each.min, each.gpu_min, each.full, each.confidence.name) for name, each in found.items()} == {
        "test_number": (4, 4, 4, "MEDIUM"),
        "test_device": (2, 2, 2, "MEDIUM"),
        "test_function": (1, 1, 2, "MEDIUM"),
        "test_what_follows_a_flag": (2, 2, 2, "MEDIUM"),
        "test_what_follows_unless": (2, 2, 2, "MEDIUM"),
        "test_both": (2, 2, 2, "HIGH"),
        "test_a_skip": (1, 1, 1, "MEDIUM"),
        "test_neither_is_known": (1, 1, 1, "MEDIUM"),
    }


def test_cases_that_only_one_way_has_may_not_be_there():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import elsewhere
            import pytest
            import torch

            GROWN = [1, 2]
            if elsewhere.flag():
                GROWN.append(4)
            ADDED = [1]
            if elsewhere.flag():
                ADDED = ADDED + [2]
            CHOSEN = [1] if elsewhere.flag() else [1, 2]

            def pytest_generate_tests(metafunc):
                if "of_both" in metafunc.fixturenames:
                    if elsewhere.flag():
                        metafunc.parametrize("of_both", [1, 2])
                    else:
                        metafunc.parametrize("of_both", [1])
                if "of_one" in metafunc.fixturenames and elsewhere.flag():
                    metafunc.parametrize("of_one", [1])
                if "grown" in metafunc.fixturenames:
                    sizes = [1]
                    if elsewhere.flag():
                        sizes.append(2)
                    metafunc.parametrize("grown", sizes)

            def use(count):
                torch.ones(1, device=f"cuda:{count - 1}")

            @pytest.mark.parametrize("count", GROWN)
            def test_grown(count):
                use(count)

            @pytest.mark.parametrize("count", ADDED)
            def test_added(count):
                use(count)

            @pytest.mark.parametrize("count", CHOSEN)
            def test_chosen(count):
                use(count)

            @pytest.mark.parametrize("count", [*GROWN, 3])
            def test_spread(count):
                use(count)

            @pytest.mark.parametrize("count", [each for each in GROWN])
            def test_made_of_it(count):
                use(count)

            @pytest.mark.parametrize("count", list(GROWN))
            def test_copied(count):
                use(count)

            def test_both(of_both):
                use(of_both)

            def test_one(of_one):
                use(of_one)

            def test_of_a_function(grown):
                use(grown)
            """
        },
    )
    assert {name: (each.min, each.confidence.name) for name, each in found.items()} == {
        "test_grown[1]": (1, "HIGH"),
        "test_grown[2]": (2, "HIGH"),
        "test_grown[4]": (4, "MEDIUM"),
        "test_added[1]": (1, "HIGH"),
        "test_added[2]": (2, "MEDIUM"),
        "test_chosen[1]": (1, "HIGH"),
        "test_chosen[2]": (2, "MEDIUM"),
        "test_spread[1]": (1, "HIGH"),
        "test_spread[2]": (2, "HIGH"),
        "test_spread[4]": (4, "MEDIUM"),
        "test_spread[3]": (3, "HIGH"),
        "test_made_of_it[1]": (1, "HIGH"),
        "test_made_of_it[2]": (2, "HIGH"),
        "test_made_of_it[4]": (4, "MEDIUM"),
        "test_copied[1]": (1, "HIGH"),
        "test_copied[2]": (2, "HIGH"),
        "test_copied[4]": (4, "MEDIUM"),
        "test_both[1]": (1, "HIGH"),
        "test_both[2]": (2, "MEDIUM"),
        "test_one[1]": (1, "MEDIUM"),
        "test_of_a_function[1]": (1, "HIGH"),
        "test_of_a_function[2]": (2, "MEDIUM"),
    }


def test_what_one_way_puts_into_an_ordered_mapping_can_be_taken_out_again():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            from collections import OrderedDict
            import torch
            from elsewhere import is_asked, named

            def backends(device):
                made = OrderedDict()
                if is_asked():
                    made["other"] = torch.ones(1)
                    return made
                made["host"] = torch.ones(1)
                made["device"] = torch.ones(1, device=device)
                return made

            def test_it():
                made = backends("cuda:1")
                made[named()].sum()
            """
        },
    )["test_it"]
    assert (found.min, found.gpu_min, found.confidence.value) == (2, 2, "medium")


def test_what_is_filled_only_on_ways_that_may_not_be_gone_may_be_empty():
    files = {
        "test_it.py": """
        import pytest
        import torch
        from elsewhere import lacks, names

        def reasons():
            found = []
            if lacks("kernel"):
                found.append("no kernel")
            return found

        def test_list():
            if reasons():
                pytest.skip("; ".join(reasons()))
            torch.ones(1, device="cuda")

        def test_set():
            missing = set()
            for name in ("small", "large"):
                if lacks(name):
                    missing.add(name)
            if missing:
                pytest.skip(f"without {missing}")
            torch.ones(1, device="cuda:1")

        def test_mapping():
            missing = {}
            if lacks("tokens"):
                missing["tokens"] = 1
            assert not missing
            torch.ones(1, device="cuda:2")

        def test_that_is_filled_anyhow():
            missing = []
            if lacks("tokens"):
                missing.append("tokens")
            missing.append("kernel")
            if missing:
                pytest.skip("always")
            torch.ones(1, device="cuda")
        """,
        "test_found.py": """
        import pytest
        from elsewhere import builders, parsers

        def discovered():
            found, missing = [], []
            for parser in parsers():
                if parser.name not in builders:
                    missing.append(parser.name)
                    continue
                found.append(parser)
            if missing:
                raise RuntimeError(f"no builder for {missing}")
            return found

        @pytest.mark.parametrize("parser", discovered())
        def test_parser(parser):
            assert parser
        """,
    }
    found = needs_of("test_it.py", files)
    assert {name: (test.min, test.confidence.value) for name, test in found.items()} == {
        "test_list": (1, "medium"),
        "test_set": (2, "medium"),
        "test_mapping": (3, "high"),
        "test_that_is_filled_anyhow": (None, "high"),
    }
    assert [test.min for test in needs_of("test_found.py", files).values()] == [0]
