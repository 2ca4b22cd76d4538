"""Idioms that suites without rules of their own share: helpers of known names, MPI's pools, devices by what is set."""

from small_projects import devices_of, needs_of


def test_a_rule_that_says_what_a_helper_starts_holds_for_a_helper_that_can_be_told_so():
    worker = """
    import multiprocessing as mp
    import torch

    def work(world_size, rank):
        torch.cuda.set_device(rank)

    def multi_process_parallel(world_size, target):
        for rank in range(world_size):
            process = mp.Process(target=target, args=(world_size, rank))
            process.start()

    def test_it():
        multi_process_parallel(3, work)
    """
    assert devices_of("test_it.py", {"test_it.py": worker}) == {"test_it": (3, 3, 3)}
    rules_own = """
    def multi_process_parallel(monkeypatch, tp_size, pp_size, test_target):
        pass

    def test_it(monkeypatch):
        multi_process_parallel(monkeypatch, 2, 2, None)
    """
    assert devices_of("test_it.py", {"test_it.py": rules_own}) == {"test_it": (4, 4, 4)}


def test_the_workers_of_an_mpi_pool_are_ranks():
    found = devices_of(
        "test_it.py",
        {
            "conftest.py": """
            import pytest
            from mpi4py.futures import MPIPoolExecutor

            @pytest.fixture(params=[2, 4])
            def pool(request):
                with MPIPoolExecutor(request.param) as executor:
                    setattr(executor, "num_workers", request.param)
                    yield executor
            """,
            "test_it.py": """
            import pytest
            import torch
            from mpi4py import MPI
            from mpi4py.futures import MPIPoolExecutor
            import acme

            def work(size):
                rank = acme.mpi_rank()
                torch.cuda.set_device(rank)
                assert acme.mpi_world_size() == size
                return True

            def by_communicator():
                comm = MPI.COMM_WORLD
                torch.ones(2, device=f"cuda:{comm.Get_rank()}")

            @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="too few")
            def test_map(pool):
                for each in pool.map(work, *zip(*[(pool.num_workers,)] * pool.num_workers)):
                    assert each is True

            def test_submit():
                with MPIPoolExecutor(max_workers=3) as executor:
                    for each in [executor.submit(by_communicator) for _ in range(3)]:
                        each.result()
            """,
        },
    )
    assert found == {"test_map[2]": (2, 2, 2), "test_map[4]": (4, 4, 4), "test_submit": (3, 3, 3)}


def test_who_chooses_a_device_of_an_unknown_number_has_one():
    found = needs_of(
        "tests/test_it.py",
        {
            "lib/__init__.py": """
            import torch

            class Manager:
                @property
                def device(self):
                    return self.__class__.state["device"]

            def initialize():
                if torch.cuda.is_available():
                    torch.cuda.set_device(Manager().device)
            """,
            "tests/test_it.py": """
            import torch
            import lib

            def test_by_the_library():
                lib.initialize()

            def test_by_itself(number):
                torch.cuda.set_device(number)
            """,
        },
    )
    at = {name: (each.min, each.gpu_min, each.full, each.confidence.value) for name, each in found.items()}
    assert at == {"test_by_the_library": (0, 1, 1, "medium"), "test_by_itself": (1, 1, 1, "medium")}


def test_devices_of_other_vendors_are_not_there_for_a_library_that_tries_their_modules():
    library = """
    import torch

    try:
        import torch_musa
        HAS_MUSA = True
    except Exception:
        HAS_MUSA = False

    DEVICE = "cpu"
    if torch.cuda.is_available():
        DEVICE = "cuda"
    elif HAS_MUSA:
        DEVICE = "musa"
    """
    test = """
    import torch
    from lib import DEVICE

    def test_it():
        assert DEVICE == ("cuda" if torch.cuda.is_available() else "cpu")
    """
    found = devices_of("tests/test_it.py", {"lib/__init__.py": library, "tests/test_it.py": test})
    assert found == {"test_it": (0, None, 0)}


def test_a_module_among_parameters_has_its_own_name():
    test = """
    import jax.numpy
    import numpy
    import pytest
    from numba import cuda

    @pytest.mark.parametrize("xp", [cuda, numpy])
    def test_it(xp):
        pass
    """
    assert list(needs_of("test_it.py", {"test_it.py": test})) == ["test_it[numba.cuda]", "test_it[numpy]"]


_TRAINER = """
import torch
import torch.distributed as dist

def work(rank, opt):
    torch.cuda.set_device(rank % torch.cuda.device_count())
    dist.init_process_group(backend="nccl", rank=rank, world_size=opt["world"])

def launch(opt):
    context = torch.multiprocessing.start_processes(work, (opt,), nprocs=opt["world"] - 1, join=False)
    work(0, opt)
    context.join()
"""


def test_ranks_that_the_library_starts_without_having_been_told_how_many_take_all_devices():
    test = """
    import unittest
    import torch
    from lib.options import parse
    from lib.train import launch

    @unittest.skipUnless(torch.cuda.is_available(), "no GPU")
    class TestIt(unittest.TestCase):
        def test_it(self):
            launch(parse(layers=1))
    """
    files = {"lib/__init__.py": "", "lib/train.py": _TRAINER, "tests/test_it.py": test}
    found = needs_of("tests/test_it.py", files)["TestIt::test_it"]
    assert (found.min, found.gpu_min, found.full, found.confidence.value) == (1, 1, 8, "medium")
    alone = "def launch(opt):\n    if opt['alone']:\n        return work(0, opt)\n"
    files["lib/train.py"] = _TRAINER.replace("def launch(opt):\n", alone)
    found = needs_of("tests/test_it.py", files)["TestIt::test_it"]
    assert (found.min, found.gpu_min, found.full, found.confidence.value) == (1, 1, 1, "medium")


def test_where_no_steps_are_left_for_the_library_a_launcher_is_looked_at_and_all_else_is_less_sure():
    much = "".join(f"    value = {number}\n" for number in range(900))
    test = """
    import torch
    from lib import much, other
    from lib.train import launch

    def test_launched():
        much(), much(), much()
        launch(much())

    def test_host():
        much(), much(), much()
        other()

    def test_little():
        other()
    """
    files = {"lib/__init__.py": f"def much():\n{much}    return open(value)\n\ndef other():\n    pass\n"}
    found = needs_of("tests/test_it.py", files | {"lib/train.py": _TRAINER, "tests/test_it.py": test})
    assert {name: (each.min, each.full, each.confidence.value) for name, each in found.items()} == {
        "test_launched": (1, 8, "medium"),
        "test_host": (0, 0, "medium"),
        "test_little": (0, 0, "high"),
    }


def test_what_the_library_does_as_the_only_rank_is_the_tests_work():
    library = """
    import os
    import torch
    import torch.distributed as dist

    def initialize():
        rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo", rank=rank, world_size=world)
        if torch.cuda.is_available():
            torch.cuda.set_device(rank)
    """
    test = """
    import lib

    def test_it(monkeypatch):
        monkeypatch.setenv("RANK", "0")
        monkeypatch.setenv("WORLD_SIZE", "1")
        monkeypatch.setenv("MASTER_ADDR", "localhost")
        lib.initialize()

    def test_not_said(monkeypatch):
        monkeypatch.setenv("RANK", "0")
        monkeypatch.setenv("WORLD_SIZE", "1")
        lib.initialize()
    """
    found = devices_of("tests/test_it.py", {"lib/__init__.py": library, "tests/test_it.py": test})
    assert found == {"test_it": (0, 1, 1), "test_not_said": (0, None, 0)}


def test_a_device_is_less_sure_where_the_test_has_put_something_in_the_place_of_what_works_on_one():
    test = """
    import acme
    from contextlib import nullcontext

    def test_replaced(monkeypatch):
        monkeypatch.setattr(acme.torch.cuda, "device", lambda number: nullcontext())
        acme.Group().start(device=0)

    def test_asked(monkeypatch):
        monkeypatch.setattr(acme.torch.cuda, "is_available", lambda: True)
        acme.Group().start(device=0)
    """
    found = needs_of("test_it.py", {"test_it.py": test})
    at = {name: (each.min, each.gpu_min, each.confidence.value) for name, each in found.items()}
    assert at == {"test_replaced": (1, 1, "medium"), "test_asked": (1, 1, "high")}


_TRAINS = {
    "lib/__init__.py": "",
    "lib/devices.py": """
        import torch

        def select(device=None):
            if device is None:
                device = "cuda:0" if torch.cuda.is_available() else "cpu"
            return torch.device(device)

        def other():
            pass
        """,
    "lib/engine.py": """
        from lib import devices
        from lib.tables import KINDS, settings

        class Base:
            def __init__(self, given=None):
                self.options = settings(given)
                self.device = devices.select(self.options.device)

            def train(self):
                for _ in range(self.options.rounds):
                    self._set_up()

            def names(self):
                return list(KINDS)

            def _set_up(self):
                self.model = self.make().to(self.device)

        class Trainer(Base):
            def __init__(self, given=None):
                super().__init__(given)
                self.count = 0

            def make(self):
                return KINDS[self.options.kind]()

            def train(self):
                super().train()

        def train_model(options):
            trainer = Trainer(options)
            return trainer.train()
        """,
}


def test_a_library_that_chooses_a_device_by_itself_and_trains_there_takes_the_first():
    test = """
    from lib.engine import Trainer, train_model
    from lib.devices import other

    def test_trained():
        Trainer({"rounds": 2}).train()

    def test_only_made():
        Trainer().names()

    def test_told():
        Trainer({"device": "cpu"}).train()

    def test_by_a_function():
        train_model({"rounds": 2})

    def test_other():
        other()
    """
    found = needs_of("tests/test_it.py", _TRAINS | {"tests/test_it.py": test})
    assert {name: (each.min, each.gpu_min, each.full, each.confidence.value) for name, each in found.items()} == {
        "test_trained": (0, 1, 1, "medium"),
        "test_only_made": (0, None, 0, "high"),
        "test_told": (0, None, 0, "high"),
        "test_by_a_function": (0, 1, 1, "medium"),
        "test_other": (0, None, 0, "high"),
    }


def test_contexts_of_arrows_are_on_their_devices():
    test = """
    import pytest
    import pyarrow as pa

    cuda = pytest.importorskip("pyarrow.cuda")

    def setup_module(module):
        module.first = cuda.Context(0)
        module.last = cuda.Context(cuda.Context.get_num_devices() - 1)

    def test_it():
        assert first.device_number == 0
    """
    assert devices_of("test_it.py", {"test_it.py": test}) == {"test_it": (1, 1, 2)}


def test_what_is_registered_for_kinds_of_devices_uses_none_of_them():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            import torch.distributed as dist

            def make(store, rank, size, timeout):
                return None

            dist.Backend.register_backend("mine", make, devices=["cpu", "cuda"])

            def test_of_the_host():
                assert torch.ones(2).sum() == 2

            def test_of_one_kind():
                dist.Backend.register_backend("other", make, devices=["cuda"])
            """
        },
    )
    assert found == {"test_of_the_host": (0, None, 0), "test_of_one_kind": (0, None, 0)}


def test_what_works_on_the_host_and_on_a_device_takes_one_where_there_is_one():
    both = """
    from acme.testing import compare

    def test_it():
        compare(abs, devices=["cpu", "cuda"])
    """
    found = needs_of("test_it.py", {"test_it.py": both})["test_it"]
    assert (found.min, found.gpu_min, found.full, found.confidence) == (0, 1, 1, "medium")


def test_what_is_unpacked_or_gone_through_is_moved_by_cuda_whatever_it_is():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            from elsewhere import loader

            def test_unpacked():
                values, places = torch.ones(2).max(0)
                values.cuda()

            def test_gone_through():
                for batch in loader():
                    batch.cuda()

            def test_of_a_pair():
                for image, label in loader():
                    label.cuda(1)

            def test_left_alone():
                values, places = torch.ones(2).max(0)
                values.float()
            """
        },
    )
    assert found == {
        "test_unpacked": (1, 1, 1),
        "test_gone_through": (1, 1, 1),
        "test_of_a_pair": (2, 2, 2),
        "test_left_alone": (0, None, 0),
    }
