"""Objects of the library under test, and what it asks of its process: what they do is done for the test."""

import textwrap

from small_projects import devices_of, needs_of, shipped

from sooner.plan.needs import Sources, infer_needs


def test_a_library_that_asks_for_its_rank_has_none_where_nobody_started_ranks():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/state.py": """
            import os

            def is_rank():
                return int(os.environ.get("LOCAL_RANK", -1)) != -1
            """,
            "tests/test_it.py": """
            import torch
            from acme.state import is_rank

            def test_alone():
                if is_rank():
                    torch.ones(1, device="cuda:3")

            def test_that_says_which_it_is(monkeypatch):
                monkeypatch.setenv("LOCAL_RANK", "0")
                if is_rank():
                    torch.ones(1, device="cuda:3")
            """,
        },
    )
    assert found == {"test_alone": (0, None, 0), "test_that_says_which_it_is": (4, 4, 4)}


def test_no_launcher_has_told_a_library_which_rank_a_worker_is_that_the_test_starts():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/state.py": """
            import os, torch

            def own_device():
                if int(os.environ.get("LOCAL_RANK", -1)) != -1:
                    return torch.device("cuda", int(os.environ["LOCAL_RANK"]))
                return torch.device("cpu")
            """,
            "tests/test_it.py": """
            import os, torch
            import torch.distributed as dist
            import torch.multiprocessing as mp
            from acme.state import own_device

            def work(rank):
                dist.init_process_group("gloo", rank=rank, world_size=2)
                torch.ones(1, device=own_device())

            def told(rank):
                os.environ["LOCAL_RANK"] = str(rank)
                torch.ones(1, device=own_device())

            def test_of_the_host():
                mp.spawn(work, nprocs=2)

            def test_that_tells_its_workers():
                mp.spawn(told, nprocs=2)
            """,
        },
    )
    assert found == {"test_of_the_host": (0, None, 0), "test_that_tells_its_workers": (2, 2, 2)}


def test_a_device_that_the_library_may_choose_is_not_the_one_that_the_test_uses_from_then_on():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/place.py": """
            import elsewhere, torch

            def perhaps():
                if elsewhere.is_fast():
                    torch.cuda.set_device(3)
            """,
            "tests/test_it.py": """
            import torch
            from acme.place import perhaps

            def test_perhaps():
                perhaps()
                torch.ones(1).cuda()
            """,
        },
    )
    assert found == {"test_perhaps": (1, 1, 1)}


LIBRARY = {
    "acme/__init__.py": "",
    "acme/stages.py": """
        import torch

        class Stage:
            def __init__(self, index=0):
                self.index = index
                self.device = torch.device("cuda", index)
                self.weight = None

            def load(self):
                self.weight = torch.ones(2).to(self.device)

            def run(self):
                if self.weight is None:
                    self.load()
                return self.weight

            def describe(self):
                return f"cuda:{self.index}"

            def __enter__(self):
                torch.cuda.set_device(self.index)
                return self

            def __exit__(self, *raised):
                torch.cuda.set_device(0)

        class HostStage(Stage):
            def __init__(self, index=0):
                super().__init__(index)
                self.device = torch.device("cpu")

        class Pool:
            def __init__(self, count=None):
                self.count = torch.cuda.device_count() if count is None else count

            @classmethod
            def of(cls, stages):
                return cls(len(stages))

            def run(self):
                for index in range(self.count):
                    Stage(index).run()

            def __len__(self):
                return self.count

        class Plain:
            index = 1

            def run(self):
                return Stage(self.index).run()
        """,
    "acme/launchers.py": """
        import torch
        import torch.multiprocessing as mp

        class Launcher:
            def __init__(self, ranks):
                self.ranks = ranks

            def spawn(self, work):
                mp.spawn(work, nprocs=self.ranks)

            def spawn_own(self):
                mp.spawn(own, nprocs=self.ranks)

            def start(self, work):
                processes = [mp.Process(target=work, args=(rank,)) for rank in range(self.ranks)]
                for each in processes:
                    each.start()
                for each in processes:
                    each.join()
                assert all(each.exitcode == 0 for each in processes)

        def own(rank):
            torch.cuda.set_device(rank)
            torch.ones(1, device="cuda")
        """,
}


def test_methods_of_a_librarys_objects_use_the_devices_that_these_were_made_with():
    found = devices_of(
        "tests/test_it.py",
        LIBRARY
        | {
            "tests/test_it.py": """
            import pytest, torch
            from acme.stages import HostStage, Plain, Pool, Stage

            @pytest.fixture
            def stage():
                return Stage(3)

            def test_run():
                Stage(2).run()

            def test_of_a_fixture(stage):
                stage.run()

            def test_described(stage):
                assert stage.describe()

            def test_entered():
                with Stage(1):
                    torch.ones(1).cuda()

            def test_moved(stage):
                stage.device = "cuda:1"
                stage.load()

            def test_its_device():
                torch.ones(1, device=Stage(1).device)

            def test_on_the_host():
                HostStage(3).run()

            def test_pool():
                Pool(3).run()

            def test_pool_of_all():
                Pool().run()

            def test_pool_of_stages():
                pool = Pool.of([1, 2, 3, 4])
                if len(pool) > torch.cuda.device_count():
                    pytest.skip("more devices")
                pool.run()

            def test_without_init():
                Plain().run()

            def test_inherited():
                class Own(Stage):
                    def load(self):
                        torch.ones(1, device="cuda:2")
                Own(0).run()
            """
        },
    )
    assert found == {
        "test_run": (3, 3, 3),
        "test_of_a_fixture": (4, 4, 4),
        "test_described": (0, None, 0),
        "test_entered": (2, 2, 2),
        "test_moved": (2, 2, 2),
        "test_its_device": (2, 2, 2),
        "test_on_the_host": (0, None, 0),
        "test_pool": (3, 3, 3),
        "test_pool_of_all": (0, 1, 8),
        "test_pool_of_stages": (4, 4, 4),
        "test_without_init": (2, 2, 2),
        "test_inherited": (3, 3, 3),
    }


def test_one_object_of_many_in_a_file_uses_its_own_device():
    cases = "\n".join(f"def test_{number}():\n    Stage({number % 4}).run()" for number in range(24))
    found = devices_of(
        "tests/test_it.py", LIBRARY | {"tests/test_it.py": f"from acme.stages import Stage\n\n{cases}\n"}
    )
    assert found == {f"test_{number}": (number % 4 + 1,) * 3 for number in range(24)}


def test_ranks_that_a_librarys_object_starts_use_the_devices_of_their_numbers():
    found = devices_of(
        "tests/test_it.py",
        LIBRARY
        | {
            "tests/test_it.py": """
            import torch
            from acme.launchers import Launcher

            def work(rank):
                torch.ones(1, device=f"cuda:{rank}")

            def rest(rank):
                pass

            def test_spawned():
                Launcher(3).spawn(work)

            def test_spawned_by_its_own():
                Launcher(4).spawn_own()

            def test_started():
                Launcher(2).start(work)

            def test_idle():
                Launcher(2).start(rest)
            """
        },
    )
    assert found == {
        "test_spawned": (3, 3, 3),
        "test_spawned_by_its_own": (4, 4, 4),
        "test_started": (2, 2, 2),
        "test_idle": (0, None, 0),
    }


def test_an_object_that_is_not_followed_to_its_end_leaves_a_doubt_where_it_numbers_devices():
    found = needs_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": """
            import elsewhere, torch

            class Stage:
                def __init__(self, index):
                    self.index = elsewhere.NUMBERS[index]

                def put(self, x):
                    return self.place(x)

                def place(self, x):
                    return x.to(f"cuda:{self.index}")

                def describe(self):
                    return str(self.index)
            """,
            "tests/test_it.py": """
            import torch
            from acme import Stage

            def test_put():
                Stage(2).put(torch.ones(1))

            def test_described():
                assert Stage(2).describe()
            """,
        },
    )
    assert {name: each.confidence.value for name, each in found.items()} == {
        "test_put": "medium",
        "test_described": "high",
    }


def test_what_an_object_changes_in_its_library_is_as_it_was_for_the_next_test():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": """
            import torch

            _taken = []
            _last = None

            class Stage:
                count = 0
                state = {}

                def __init__(self):
                    global _last
                    self.index = max(Stage.count, len(_taken), len(Stage.state), 0 if _last is None else _last + 1)
                    Stage.count += 1
                    Stage.state[self.index] = "cuda"
                    _taken.append(self.index)
                    _last = self.index

                def run(self):
                    torch.ones(1, device=f"cuda:{self.index}")
            """,
            "tests/test_it.py": """
            from acme import Stage

            def test_one():
                Stage().run()

            def test_two():
                Stage()
                Stage().run()

            def test_another():
                Stage().run()
            """,
        },
    )
    assert found == {"test_one": (1, 1, 1), "test_two": (2, 2, 2), "test_another": (1, 1, 1)}


CHANGED = {
    "acme/__init__.py": "",
    "acme/state.py": """
    class State:
        shared = {}
        ranks = 1

    SEEN = []
    COUNT = 1
    """,
    "tests/test_first.py": """
    import pytest
    import torch
    from acme import state
    from acme.state import SEEN, State

    @pytest.fixture
    def four_ranks():
        yield
        State.shared["ranks"] = 4

    def test_that_changes_the_library(four_ranks):
        torch.cuda.set_device(torch.cuda.device_count() - 1)
        State.ranks = 3
        State.shared["ranks"] = 2
        SEEN.append(1)
        state.COUNT = 2
    """,
    "tests/test_second.py": """
    import torch
    from acme import state
    from acme.state import SEEN, State

    def test_of_a_class():
        torch.ones(1, device=f"cuda:{State.ranks - 1}")

    def test_of_a_table():
        torch.ones(1, device=f"cuda:{State.shared.get('ranks', 1) - 1}")

    def test_of_a_list():
        torch.ones(1, device=f"cuda:{len(SEEN)}")

    def test_of_a_module():
        torch.ones(1, device=f"cuda:{state.COUNT - 1}")
    """,
}


def test_what_a_test_changes_in_the_library_is_as_it_was_for_tests_of_other_files():
    files = ["tests/test_first.py", "tests/test_second.py"]
    texts = {name: textwrap.dedent(text) for name, text in CHANGED.items()}
    for order in (files, files[::-1]):
        found = infer_needs(Sources(texts, texts.get), order, rules=shipped())
        second = {each.nodeid: (each.min, each.gpu_min, each.full) for each in found if each.path == files[1]}
        assert second == dict.fromkeys(second, (1, 1, 1))
        assert len(second) == 4


def test_an_object_of_the_library_that_denies_to_be_moved_is_on_no_device():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/pipes.py": """
            import torch
            from torch import nn

            DENIED = TypeError("a pipe manages its devices")

            class Pipe(nn.Module):
                def __init__(self, module, devices):
                    super().__init__()
                    self.module = module
                    self.devices = [torch.device(each) for each in devices]

                def cuda(self, device=None):
                    raise DENIED

                def to(self, *args, **kwargs):
                    if "device" in kwargs:
                        raise DENIED
                    if args and isinstance(args[0], (torch.device, int, str)):
                        raise DENIED
                    return super().to(*args, **kwargs)
            """,
            "tests/test_it.py": """
            import pytest
            import torch
            from torch import nn
            from acme.pipes import Pipe

            def pipe():
                return Pipe(nn.Linear(1, 1), devices=["cpu"])

            def test_cuda():
                with pytest.raises(TypeError):
                    pipe().cuda()

            def test_by_place():
                with pytest.raises(TypeError):
                    pipe().to(torch.device("cuda"))

            def test_by_text():
                with pytest.raises(TypeError):
                    pipe().to("cuda")

            def test_by_name():
                with pytest.raises(TypeError):
                    pipe().to(device=0)

            def test_other_type():
                pipe().to(torch.double)

            def test_another():
                nn.Linear(1, 1).to("cuda")
            """,
        },
    )
    assert found == {
        "test_cuda": (0, None, 0),
        "test_by_place": (0, None, 0),
        "test_by_text": (0, None, 0),
        "test_by_name": (0, None, 0),
        "test_other_type": (0, None, 0),
        "test_another": (1, 1, 1),
    }


def test_getattr_of_a_module_is_not_asked_for_what_pytorch_gives_every_module():
    wrapper = """
            import torch
            from torch import nn

            class Wrapped(nn.Module):
                def __init__(self, module):
                    super().__init__()
                    self.module = module

                def __getattr__(self, name):
                    try:
                        return super().__getattr__(name)
                    except AttributeError:
                        if name == "module":
                            raise
                        return getattr(self.module, name)
            """
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": wrapper,
            "tests/test_it.py": f"""{wrapper}
            import pytest
            import acme
            from transformers import AutoModel

            def test_of_the_library():
                acme.Wrapped(AutoModel.from_pretrained("tiny")).to("cuda")

            def test_of_the_tests():
                Wrapped(AutoModel.from_pretrained("tiny")).cuda()

            def test_asked():
                if not hasattr(Wrapped(nn.Linear(1, 1)), "cuda") and torch.cuda.device_count() < 4:
                    pytest.skip("few")

            def test_described():
                print(acme.Wrapped(AutoModel.from_pretrained("tiny")).config)
            """,
        },
    )
    assert found == {
        "test_of_the_library": (1, 1, 1),
        "test_of_the_tests": (1, 1, 1),
        "test_asked": (0, None, 0),
        "test_described": (0, None, 0),
    }


def test_what_the_library_refuses_before_it_uses_devices_needs_none_where_that_is_expected():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/engines.py": """
            import torch

            class Engine:
                def __init__(self, tensor_parallel_size=1, kind="fast"):
                    if kind not in ("fast", "slow"):
                        raise ValueError(f"no such kind: {kind}")
                    if tensor_parallel_size > torch.cuda.device_count():
                        raise ValueError("too few devices")
                    self.weights = [torch.ones(2, device=f"cuda:{i}") for i in range(tensor_parallel_size)]

            def make(sizes, num_gpus=1):
                if not sizes:
                    raise ValueError("no sizes")
                return Engine(num_gpus)
            """,
            "tests/test_it.py": """
            import pytest
            from acme.engines import Engine, make

            def test_made():
                Engine(tensor_parallel_size=4)

            def test_wrong_kind():
                with pytest.raises(ValueError, match="no such kind"):
                    Engine(tensor_parallel_size=4, kind="other")

            def test_another_exception():
                with pytest.raises(KeyError):
                    Engine(tensor_parallel_size=4, kind="other")

            def test_no_sizes():
                with pytest.raises(ValueError):
                    make([], num_gpus=2)
            """,
        },
    )
    assert found["test_made"] == (4, 4, 4)
    assert found["test_wrong_kind"] == found["test_no_sizes"] == (0, None, 0)
    assert found["test_another_exception"][0] == 4


def test_an_object_that_the_library_makes_in_new_has_what_that_gives_it():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/managers.py": """
            import torch

            class Shared:
                _state = {}

                def __new__(cls):
                    made = super().__new__(cls)
                    made.__dict__ = cls._state
                    if not hasattr(made, "place"):
                        made.place = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
                    return made

                @property
                def device(self):
                    return self.place

            class Single:
                _only = None

                def __new__(cls, number=1):
                    if cls._only is None:
                        cls._only = super().__new__(cls)
                        cls._only.device = torch.device("cuda", number)
                    return cls._only
            """,
            "tests/test_it.py": """
            import torch
            from acme.managers import Shared, Single

            def test_shared():
                torch.ones(2, device=Shared().device)

            def test_single():
                Single()
                torch.ones(2, device=Single(5).device)

            def test_single_anew():
                torch.ones(2, device=Single(3).device)
            """,
        },
    )
    assert found == {"test_shared": (0, 1, 1), "test_single": (2, 2, 2), "test_single_anew": (4, 4, 4)}


def test_an_object_that_is_no_test_has_no_id_of_unittests():
    found = needs_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/places.py": """
            import elsewhere

            class Place:
                def __init__(self, number):
                    elsewhere.prepare(self)
                    super().__init__(number)
                    self.id = elsewhere.number(number)
            """,
            "tests/test_it.py": """
            import torch
            from acme.places import Place

            def test_place():
                if Place(2).id == 2:
                    torch.ones(2, device="cuda:2")
            """,
        },
    )
    assert (found["test_place"].full, found["test_place"].confidence.value) == (3, "medium")


def test_what_the_library_does_within_what_is_expected_to_raise_is_done_once():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/counting.py": """
            SEEN = []

            def take(number):
                SEEN.append(number)
                if number < 0:
                    raise ValueError("less than none")
                return len(SEEN)
            """,
            "tests/test_it.py": """
            import pytest, torch
            from acme.counting import SEEN, take

            def test_it():
                with pytest.raises(ValueError):
                    take(1)
                    take(-1)
                torch.ones(1, device=f"cuda:{len(SEEN)}")
            """,
        },
    )
    assert found == {"test_it": (3, 3, 3)}


def test_a_library_that_asks_each_device_what_it_can_uses_the_first_one():
    library = """
    import torch

    class Kinds:
        def __init__(self):
            self.known = set()
            for number in range(torch.cuda.device_count()):
                self.known.add(torch.cuda.get_device_capability(number))

    def largest(x):
        Kinds()
        return x.max()

    def on_each(x):
        return [torch.ones(2, device=f"cuda:{number}") for number in range(torch.cuda.device_count())]
    """
    text = """
    import torch
    from acme.kernels import largest, on_each

    def test_one():
        largest(torch.ones(2, device="cuda:0"))

    def test_each():
        on_each(torch.ones(2, device="cuda:0"))
    """
    files = {"acme/__init__.py": "", "acme/kernels.py": library, "tests/test_it.py": text}
    found = devices_of("tests/test_it.py", files)
    assert found == {"test_one": (1, 1, 1), "test_each": (1, 1, 8)}


def test_objects_of_a_library_that_speaks_of_the_accelerator_are_made():
    library = """
    import torch

    class Manager:
        def __init__(self):
            self.stream = torch.Stream() if torch.accelerator.is_available() else None

        def wait(self):
            if torch.accelerator.is_available():
                torch.accelerator.synchronize()
    """
    text = """
    from acme.managing import Manager

    def test_made():
        assert Manager() is not None
    """
    files = {"acme/__init__.py": "", "acme/managing.py": library, "tests/test_it.py": text}
    found = devices_of("tests/test_it.py", files)
    assert found == {"test_made": (0, 1, 1)}


def test_two_objects_of_the_library_that_use_the_same_device_do_not_hide_what_another_test_s_object_uses():
    library = """
    import elsewhere, torch

    class Manager:
        def __init__(self):
            self.known = elsewhere.found()
            self.stream = torch.cuda.Stream() if torch.cuda.is_available() else None
            if self.known:
                raise ValueError("known")
    """
    text = """
    from acme.managing import Manager

    def test_two():
        assert [Manager(), Manager()]

    def test_one():
        assert Manager() is not None
    """
    files = {"acme/__init__.py": "", "acme/managing.py": library, "tests/test_it.py": text}
    found = devices_of("tests/test_it.py", files)
    assert found == {"test_two": (0, 1, 1), "test_one": (0, 1, 1)}


def test_a_function_of_the_library_that_uses_a_device_does_so_in_every_test_of_a_file():
    library = """
    import elsewhere, torch

    def work():
        torch.ones(1, device="cuda")
        return elsewhere.found()
    """
    cases = "".join(f"    def test_{number}():\n        work()\n\n" for number in range(14))
    text = f"    from acme.working import work\n\n{cases}"
    files = {"acme/__init__.py": "", "acme/working.py": library, "tests/test_it.py": text}
    assert set(devices_of("tests/test_it.py", files).values()) == {(1, 1, 1)}


def test_a_configuration_of_the_library_only_says_which_device_there_is():
    library = """
    import torch

    class QuantConfig:
        def __init__(self, bits=4, **kwargs):
            self.bits = bits
            self.extra = dict(kwargs)

    class PlacedConfig:
        def __init__(self, device="cuda"):
            self.device = device

        def place(self):
            return torch.ones(1, device=self.device)
    """
    text = """
    from acme.configs import PlacedConfig, QuantConfig

    def test_named():
        assert QuantConfig(device="cuda:0").bits == 4

    def test_by_position():
        assert PlacedConfig("cuda:1").device == "cuda:1"

    def test_placed():
        PlacedConfig("cuda:1").place()
    """
    files = {"acme/__init__.py": "", "acme/configs.py": library, "tests/test_it.py": text}
    found = devices_of("tests/test_it.py", files)
    assert found == {"test_named": (0, None, 0), "test_by_position": (0, None, 0), "test_placed": (2, 2, 2)}


def test_what_a_method_writes_that_is_not_followed_to_its_end_is_not_known():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/store.py": """
            import torch

            class Store:
                def __init__(self):
                    self.size = 0
                    self.rows = []
                    self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

                def add(self, row):
                    for number in range(60):
                        row = [each + other for each in row for other in range(60)][:9]
                    self.keep(row)

                def keep(self, row):
                    self.size += 1
                    self.rows.append(row)

                def is_empty(self):
                    return self.size == 0

            class Wrapped:
                def __init__(self):
                    self.store = Store()

                def add(self, row):
                    for number in range(60):
                        row = [each + other for each in row for other in range(60)][:9]
                    self.store.add(row)
            """,
            "tests/test_it.py": """
            import pytest, torch
            from acme.store import Store, Wrapped

            @pytest.mark.parametrize("n", range(4))
            def test_one(n):
                store = Store()
                store.add([1, 2, 3])
                if store.is_empty():
                    pytest.skip("nothing was added")

            @pytest.mark.parametrize("n", range(4))
            def test_rows(n):
                store = Store()
                store.add([1, 2, 3])
                if not store.rows:
                    pytest.skip("nothing was added")

            @pytest.mark.parametrize("n", range(4))
            def test_within(n):
                outer = Wrapped()
                outer.add([1, 2, 3])
                if outer.store.is_empty():
                    pytest.skip("nothing was added")
            """,
        },
    )
    assert {name: minimum for name, (minimum, *_) in found.items()} == dict.fromkeys(found, 0)


def test_an_object_of_the_library_is_of_the_type_of_pythons_that_its_class_inherits_from():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/feeds.py": """
            from collections import OrderedDict

            import torch

            class Feed(dict):
                pass

            class Sub(Feed):
                pass

            class Ordered(OrderedDict):
                pass

            def push(data):
                assert isinstance(data, dict)
                torch.ones(1, device="cuda")
            """,
            "tests/test_it.py": """
            from collections.abc import Mapping

            import torch
            from acme.feeds import Feed, Ordered, Sub, push

            def test_dict():
                push(Feed())

            def test_below():
                push(Sub())

            def test_ordered():
                if isinstance(Ordered(), dict):
                    torch.ones(1, device="cuda:1")

            def test_one_of_several():
                if isinstance(Sub(), (list, Mapping)):
                    torch.ones(1, device="cuda")

            def test_none():
                if isinstance(Feed(), list):
                    torch.ones(1, device="cuda")
            """.replace("import Mapping", "import Mapping\n            from collections import OrderedDict"),
        },
    )
    assert found == {
        "test_dict": (1, 1, 1),
        "test_below": (1, 1, 1),
        "test_ordered": (2, 2, 2),
        "test_one_of_several": (1, 1, 1),
        "test_none": (0, None, 0),
    }


def test_what_an_object_of_the_library_may_do_with_a_device_leaves_a_doubt_also_where_it_is_not_followed_again():
    found = needs_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/managers.py": """
            import numpy as np
            import pycuda.driver as driver

            class Feed(dict):
                def add(self, name, data):
                    self[name] = {"data": data}

            class Manager:
                def __init__(self):
                    self._host = {}

                def push(self, data):
                    assert isinstance(data, dict)
                    for key, content in data.items():
                        value = content["data"]
                        if isinstance(value, (np.ndarray, list)):
                            if isinstance(value, np.ndarray):
                                if not value.flags.c_contiguous:
                                    array = np.array(value, order="C")
                                else:
                                    array = value
                            elif isinstance(value, list):
                                array = np.array(value, order="C")
                            else:
                                raise ValueError(key)
                            self._host[key] = array
                            self._to_device(key)

            class Pycuda(Manager):
                def _to_device(self, name):
                    assert name in self._host
                    driver.memcpy_htod(driver.mem_alloc(self._host[name].nbytes), self._host[name])
            """,
            "tests/test_it.py": """
            import pytest
            from acme.managers import Feed, Pycuda

            @pytest.mark.parametrize("n", range(3))
            def test_pushed(n):
                feed = Feed()
                feed.add("a", [n])
                Pycuda().push(feed)

            def test_made():
                Pycuda()
            """,
        },
    )
    assert {name: each.confidence for name, each in found.items()} == {
        "test_pushed[0]": "medium",
        "test_pushed[1]": "medium",
        "test_pushed[2]": "medium",
        "test_made": "high",
    }


def test_what_a_method_calls_of_the_library_may_refuse_before_it_uses_devices_too():
    found = needs_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": """
            import torch

            class Engine:
                def __init__(self):
                    self.group = None

                def send(self, patches):
                    self._put(self._prepared(patches))

                def _prepared(self, patches):
                    if self.group is None:
                        raise RuntimeError("no group")
                    for patch in patches:
                        self._validate(patch)
                    return patches

                def _put(self, patches):
                    with torch.cuda.device(0):
                        self.group.broadcast(patches, stream=torch.cuda.current_stream())

                @staticmethod
                def _validate(patch):
                    if patch is None:
                        raise ValueError("requires a shape")
            """,
            "tests/test_it.py": """
            from unittest.mock import MagicMock
            import pytest
            from acme import Engine

            def test_without_a_group():
                with pytest.raises(RuntimeError, match="no group"):
                    Engine().send([None])

            def test_of_no_shape():
                engine = Engine()
                engine.group = MagicMock()
                with pytest.raises(ValueError, match="shape"):
                    engine.send([None])

            def test_of_another_kind():
                engine = Engine()
                engine.group = MagicMock()
                with pytest.raises(TypeError):
                    engine.send([(1,)])
            """,
        },
    )
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_without_a_group": (0, None, 0),
        "test_of_no_shape": (0, None, 0),
        "test_of_another_kind": (1, 1, 1),
    }


def test_what_a_method_of_arrays_is_only_asked_for_on_the_host_is_no_refusal():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/scopes.py": """
            import elsewhere
            import jax.numpy as jnp

            class Scope(elsewhere.Base):
                def __getattr__(self, name):
                    raise AttributeError(name)

                def read(self, x):
                    return self.weights + x

            def kept(value):
                return value
            """,
            "tests/test_it.py": """
            import jax.numpy as jnp
            from acme.scopes import Scope, kept

            def test_read():
                x = jnp.ones(2)
                assert kept(Scope().read(x)) is not None
            """,
        },
    )
    assert found == {"test_read": (0, 1, 1)}


def test_that_an_object_of_the_library_lacks_an_attribute_without_a_device_is_less_sure():
    found = needs_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": """
            import torch

            class Module:
                def __init__(self):
                    if torch.cuda.is_available():
                        self.stream = torch.cuda.Stream()

                def __getattr__(self, name):
                    raise AttributeError(name)

                def described(self):
                    return str(self.stream)

            class Refusing:
                def __getattr__(self, name):
                    if not torch.cuda.is_available():
                        raise AttributeError(name)
                    return 3
            """,
            "tests/test_it.py": """
            from acme import Module, Refusing

            def test_described():
                assert Module().described()

            def test_refused():
                assert Refusing().size
            """,
        },
    )
    assert {name: (each.min, each.full, each.confidence) for name, each in found.items()} == {
        "test_described": (1, 1, "medium"),
        "test_refused": (1, 1, "high"),
    }


def test_what_is_called_in_advance_for_its_arrays_finds_all_as_it_was_when_it_is_followed():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/scopes.py": """
            import os

            import jax
            import jax.numpy as jnp

            class Scope:
                def __init__(self):
                    self.names = {}
                    self.count = jax.device_count()

                def keep(self, name, x):
                    assert name not in self.names
                    self.names[name] = x
                    return x

            class Named:
                taken = []

                def __init__(self, name):
                    assert name not in self.taken
                    assert os.environ.get("ACME_NAME") != name
                    self.taken.append(name)
                    os.environ["ACME_NAME"] = name

            def kept(value):
                return value
            """,
            "tests/test_it.py": """
            import jax.numpy as jnp
            from acme.scopes import Named, Scope, kept

            def test_once():
                x = jnp.ones(2)
                assert kept(Scope().keep("a", x)) is not None

            def test_made():
                x = jnp.ones(2)
                assert kept(Named("a")) is not None
            """,
        },
    )
    assert found == {"test_once": (0, 1, 1), "test_made": (0, 1, 1)}


def test_objects_of_a_class_may_share_what_they_keep():
    borg = """
    class {name}:
        shared = {{}}

        def __init__(self, index=0):
            self.__dict__ = self.shared
            if {condition}:
                self.index = index
                self.device = torch.device("cuda", index)
    """
    own = textwrap.dedent(borg.format(name="Own", condition="not self.shared"))
    library = textwrap.dedent(borg.format(name="State", condition="self.shared == {}"))
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": f"import torch\n\n{library}",
            "tests/test_it.py": f"""
import torch
from acme import State

{own}

def test_own():
    Own(1)
    torch.ones(1, device=f"cuda:{{Own(3).index}}")

def test_of_the_library():
    State(2)
    torch.ones(1, device=State(5).device)

def test_first():
    torch.ones(1, device=State(3).device)
""",
        },
    )
    assert found == {"test_own": (2, 2, 2), "test_of_the_library": (3, 3, 3), "test_first": (4, 4, 4)}


def test_an_object_that_is_told_a_device_and_not_followed_to_its_end_leaves_a_doubt():
    found = needs_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": """
            import torch

            class Trainer:
                def __init__(self, device="cpu"):
                    self.device = device

                def run(self):
                    for number in range(1000):
                        x = [each + other for each in range(60) for other in range(60)][:9]
                    return torch.ones(1).to(self.device)

                def run_on(self, where):
                    for number in range(1000):
                        x = [each + other for each in range(60) for other in range(60)][:9]
                    return torch.ones(1).to(where)

                def put(self):
                    return torch.ones(1).to(self.device)

                def wait(self):
                    for number in range(1000):
                        x = [each + other for each in range(60) for other in range(60)][:9]
                    return x
            """,
            "tests/test_it.py": """
            from acme import Trainer

            def test_host():
                Trainer().run()

            def test_told():
                Trainer("cuda:1").run()

            def test_told_there():
                Trainer().run_on("cuda:1")

            def test_host_told_there():
                Trainer().run_on("cpu")

            def test_put():
                Trainer("cuda:1").put()

            def test_waiting():
                Trainer("cuda").wait()
            """,
        },
    )
    assert {name: each.confidence for name, each in found.items()} == {
        "test_host": "high",
        "test_told": "medium",
        "test_told_there": "medium",
        "test_host_told_there": "high",
        "test_put": "high",
        "test_waiting": "high",
    }
    assert (found["test_put"].min, found["test_put"].full) == (2, 2)


def test_a_library_chooses_a_device_behind_decorators_too():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": """
            import functools

            import elsewhere
            import torch

            def alias(name):
                def decorator(func):
                    @functools.wraps(func)
                    def wrapper(*args, **kwargs):
                        return func(*args, **kwargs)
                    return wrapper
                return decorator

            class Trainer:
                @alias("net")
                def __init__(self, model, verbose=False):
                    for number in range(1000):
                        x = [each + other for each in range(60) for other in range(60)][:9]
                    self.device = "cuda" if torch.cuda.is_available() else "cpu"
                    self.model = elsewhere.wrapped(model).to(self.device)

                @alias("batches")
                def fit(self, data):
                    return elsewhere.fit(self.model, data)

            class Plain:
                @alias("net")
                def __init__(self, model):
                    self.model = elsewhere.wrapped(model)
            """,
            "tests/test_it.py": """
            import torch
            from acme import Plain, Trainer

            def test_plain():
                Plain(torch.nn.Linear(1, 1))

            def test_made():
                Trainer(torch.nn.Linear(1, 1))

            def test_fit():
                Trainer(torch.nn.Linear(1, 1)).fit([1])
            """,
        },
    )
    assert found == {"test_plain": (0, None, 0), "test_made": (0, 1, 1), "test_fit": (0, 1, 1)}


def test_what_one_method_writes_is_not_what_another_does_that_the_same_decorator_has_wrapped():
    found = needs_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": """
            import functools

            import torch

            def logged(func):
                @functools.wraps(func)
                def wrapper(*args, **kwargs):
                    return func(*args, **kwargs)
                return wrapper

            class Store:
                def __init__(self):
                    self.size = 0
                    self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

                @logged
                def wait(self):
                    for number in range(60):
                        row = [each + other for each in range(60) for other in range(60)][:9]

                @logged
                def add(self, row):
                    self.wait()
                    for number in range(60):
                        row = [each + other for each in range(60) for other in range(60)][:9]
                    self.size += 1
            """,
            "tests/test_it.py": """
            import pytest
            from acme import Store

            def test_wait():
                Store().wait()

            def test_added():
                store = Store()
                store.add(3)
                if store.size == 0:
                    pytest.skip("nothing was added")
            """,
        },
    )
    assert {name: each.min for name, each in found.items()} == {"test_wait": 0, "test_added": 0}


def test_a_mapping_may_be_the_table_of_its_own_attributes():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import torch

            class Settings(dict):
                def __init__(self, **values):
                    super().__init__(**values)
                    self.__dict__ = self

                def doubled(self):
                    return self.number * 2

            def test_attribute():
                torch.ones(1, device=f"cuda:{Settings(number=2).number}")

            def test_item():
                settings = Settings(number=2)
                settings.number = 3
                torch.ones(1, device=f"cuda:{settings['number']}")

            def test_method():
                torch.ones(1, device=f"cuda:{Settings(number=2).doubled()}")

            def test_items():
                torch.ones(1, device=f"cuda:{len(Settings(number=2, other=3).keys())}")
            """
        },
    )
    assert found == {
        "test_attribute": (3, 3, 3),
        "test_item": (4, 4, 4),
        "test_method": (5, 5, 5),
        "test_items": (3, 3, 3),
    }
