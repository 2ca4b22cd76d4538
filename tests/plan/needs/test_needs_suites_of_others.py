"""What the suites of libraries do that no rule was written for: runners of their own, switches, launchers inside."""

from small_projects import devices_of, needs_of


def test_a_need_between_four_and_eight_devices_is_found_also_where_fewer_do():
    text = """
    import torch
    import torch.multiprocessing as mp

    def work(rank):
        torch.ones(1, device=f"cuda:{rank}")

    def test_in_threes():
        count = torch.cuda.device_count() // 3 * 3
        mp.spawn(work, nprocs=max(count, 3))

    def test_on_all():
        mp.spawn(work, nprocs=max(1, torch.cuda.device_count()))
    """
    found = needs_of("test_it.py", {"test_it.py": text})
    assert {name: (each.min, each.full, each.devices["8"]) for name, each in found.items()} == {
        "test_in_threes": (3, 6, 6),
        "test_on_all": (1, 8, 8),
    }


def test_a_runner_of_the_library_that_the_tests_inherit_from_starts_its_processes():
    library = """
    import time
    import torch.distributed as dist
    import torch.multiprocessing as mp

    class Runner:
        def __init__(self, *, rank=None):
            self.rank = rank

        def clone(self, *, rank=None):
            return self.__class__(rank=rank)

        @property
        def world_size(self):
            raise NotImplementedError

        def start(self):
            if self.world_size <= 0:
                raise ValueError("no ranks")
            context = mp.get_context("spawn")
            queues = [context.Queue() for _ in range(self.world_size)]
            processes = []
            for rank in range(self.world_size):
                process = context.Process(target=self.worker, args=(self.clone(rank=rank), queues[rank]))
                process.start()
                processes.append(process)
            while True:
                if any(not each.is_alive() for each in processes):
                    raise RuntimeError("a rank is gone")
                if all(not each.empty() for each in queues):
                    break
                time.sleep(0)
            return self

        @classmethod
        def worker(cls, runner, queue):
            dist.init_process_group(world_size=runner.world_size, rank=runner.rank)
            queue.put(None)
    """
    text = """
    import pytest
    import torch
    from acme.runner import Runner

    if not torch.cuda.is_available():
        pytest.skip("no device", allow_module_level=True)

    class OnAll(Runner):
        @property
        def world_size(self):
            return torch.cuda.device_count()

    def test_on_all():
        OnAll().start()
    """
    found = needs_of("tests/test_it.py", {"tests/test_it.py": text, "acme/runner.py": library})["test_on_all"]
    assert (found.min, found.gpu_min, found.full, found.ranks["8"], found.adaptive) == (1, 1, 8, 8, True)


def test_a_command_that_a_function_of_the_library_gives_a_launcher_needs_the_devices_of_its_ranks():
    library = """
    import subprocess
    from dataclasses import dataclass
    from pydantic import BaseModel

    class Args(BaseModel):
        nproc_per_node: int = 1

    class Streamed(subprocess.Popen):
        def __init__(self, file, *args, **kwargs):
            super().__init__(*args, **kwargs)

    def run(args, seed):
        command = ["torchrun", f"--nproc-per-node={args.nproc_per_node}", "--standalone"]
        command.extend([__file__, f"--seed={seed}"])
        process = None
        try:
            process = Streamed("log", command)
            process.wait()
        except KeyboardInterrupt:
            pass

    def check(args):
        if args.nproc_per_node > 8:
            subprocess.run(["torchrun", "--nproc-per-node=4", __file__])

    if __name__ == "__main__":
        import torch
        torch.cuda.set_device(0)
    """
    text = """
    import pytest
    from acme.launching import Args, check, run

    SIZES = {"nproc_per_node": 4}

    def test_four():
        run(Args(**SIZES), seed=1)

    def test_one():
        run(Args(), seed=1)

    def test_none():
        check(Args(**SIZES))
    """
    found = devices_of("tests/test_it.py", {"tests/test_it.py": text, "acme/launching.py": library})
    assert found == {"test_four": (4, 4, 4), "test_one": (1, 1, 1), "test_none": (0, None, 0)}


def test_a_function_of_the_library_that_names_a_launcher_starts_what_a_record_tells_it():
    library = """
    import subprocess
    from pydantic import BaseModel, Field

    class Args(BaseModel):
        nproc_per_node: int = Field(1, description="ranks")
        nnodes: int = 1

    def run(torch_args, path):
        settings = read(path)
        if settings.early:
            return None
        command = ["torchrun", f"--nproc-per-node={torch_args.nproc_per_node}", __file__]
        for each in settings.options:
            command.append(each)
        return subprocess.run(command)

    def describe(torch_args, path):
        return f"{torch_args.nproc_per_node} ranks"
    """
    text = """
    from acme.launching import Args, describe, run

    def test_four():
        run(torch_args=Args(nproc_per_node=4), path="settings.yaml")

    def test_one_by_default():
        run(Args(nnodes=1), "settings.yaml")

    def test_none():
        describe(Args(nproc_per_node=4), "settings.yaml")
    """
    found = devices_of("tests/test_it.py", {"tests/test_it.py": text, "acme/launching.py": library})
    assert found == {"test_four": (4, 4, 4), "test_one_by_default": (1, 1, 1), "test_none": (0, None, 0)}


def test_what_is_switched_to_a_device_by_a_method_uses_it():
    library = """
    import torch

    class Task:
        def set_use_gpu(self, use_gpu):
            self.use_gpu = use_gpu
            assert not use_gpu or torch.cuda.is_available()
            return self
    """
    text = """
    import torch
    from acme import Task
    from elsewhere import build

    def test_both():
        for use_gpu in {False, torch.cuda.is_available()}:
            build("task").set_use_gpu(use_gpu)

    def test_of_the_library():
        Task().set_use_gpu(torch.cuda.is_available())

    def test_host():
        Task().set_use_gpu(False)
    """
    found = devices_of("tests/test_it.py", {"tests/test_it.py": text, "acme/__init__.py": library})
    assert found == {"test_both": (0, 1, 1), "test_of_the_library": (0, 1, 1), "test_host": (0, None, 0)}


def test_workers_of_ray_that_a_record_or_a_plugin_is_told_have_their_devices():
    text = """
    import pytest
    import pytorch_lightning as pl
    from ray_acme import HorovodRayPlugin, RayParams, train

    @pytest.mark.parametrize("count", [1, 2])
    def test_plugin(count):
        trainer = pl.Trainer(plugins=[HorovodRayPlugin(num_workers=count, use_gpu=True)])
        trainer.fit(None)

    def test_plugin_on_the_host():
        trainer = pl.Trainer(plugins=[HorovodRayPlugin(num_workers=2, use_gpu=False)])
        trainer.fit(None)

    def test_params():
        train({}, ray_params=RayParams(num_actors=3, gpus_per_actor=1))

    def test_params_on_the_host():
        train({}, ray_params=RayParams(num_actors=3, gpus_per_actor=0))
    """
    found = devices_of("tests/test_it.py", {"tests/test_it.py": text})
    assert found == {
        "test_plugin[1]": (1, 1, 1),
        "test_plugin[2]": (2, 2, 2),
        "test_plugin_on_the_host": (0, None, 0),
        "test_params": (3, 3, 3),
        "test_params_on_the_host": (0, None, 0),
    }


def test_workers_of_ray_that_a_class_of_the_library_is_told_have_devices_once_something_is_trained():
    library = """
    from dataclasses import dataclass

    class RayPlugin:
        def __init__(self, num_workers=1, use_gpu=False):
            self.num_workers = num_workers
            self.use_gpu = use_gpu

    @dataclass
    class RayParams:
        num_actors: int = 0
        gpus_per_actor: int = -1

    def train(params, ray_params=None):
        return start(params, ray_params)
    """
    text = """
    import pytorch_lightning as pl
    from ray_acme import RayParams, RayPlugin, train

    def test_two():
        pl.Trainer(plugins=[RayPlugin(num_workers=2, use_gpu=True)]).fit(None)

    def test_only_made():
        assert RayPlugin(num_workers=2, use_gpu=True).num_workers == 2

    def test_params():
        train({}, ray_params=RayParams(num_actors=3, gpus_per_actor=1))

    def test_params_on_the_host():
        train({}, ray_params=RayParams(num_actors=3))
    """
    found = devices_of("tests/test_it.py", {"tests/test_it.py": text, "ray_acme/__init__.py": library})
    assert found == {
        "test_two": (2, 2, 2),
        "test_only_made": (0, None, 0),
        "test_params": (3, 3, 3),
        "test_params_on_the_host": (0, None, 0),
    }


def test_as_many_workers_of_ray_as_it_has_devices_have_all():
    text = """
    import pytorch_lightning as pl
    import ray
    from ray_acme import RayPlugin

    def test_all():
        ray.init("auto")
        count = ray.available_resources()["GPU"]
        pl.Trainer(plugins=[RayPlugin(num_workers=count, use_gpu=True)]).fit(None)
    """
    assert devices_of("tests/test_it.py", {"tests/test_it.py": text}) == {"test_all": (1, 1, 8)}


def test_a_strategy_of_somebodys_own_takes_the_devices_that_the_trainer_is_told():
    text = """
    import pytorch_lightning as pl
    from pytorch_lightning.strategies import BaguaStrategy
    from acme import OwnStrategy

    def test_two():
        pl.Trainer(strategy=BaguaStrategy(algorithm="async"), accelerator="gpu", devices=2).fit(None)

    def test_own():
        pl.Trainer(strategy=OwnStrategy(), accelerator="gpu", devices=[0, 1]).fit(None)

    def test_untold():
        pl.Trainer(strategy=OwnStrategy()).fit(None)
    """
    assert {name: (min_, full) for name, (min_, _, full) in devices_of("test_it.py", {"test_it.py": text}).items()} == {
        "test_two": (2, 2),
        "test_own": (2, 2),
        "test_untold": (0, 0),
    }


def test_an_option_of_kinds_of_devices_whose_default_is_the_host_may_be_the_other_kind():
    conftest = """
    import pytest
    import torch

    def pytest_addoption(parser):
        parser.addoption("--device", choices=("cpu", "cuda"), default="cpu")
        parser.addoption("--backend", default="cpu")
        parser.addoption("--mode", choices=("fast", "exact"), default="fast")

    @pytest.fixture(scope="session")
    def device(pytestconfig):
        name = pytestconfig.getoption("--device")
        if name == "cuda" and not torch.cuda.is_available():
            raise pytest.UsageError("there is none")
        return torch.device(name)

    @pytest.fixture
    def backend(request):
        return request.config.getoption("--backend")

    @pytest.fixture
    def mode(request):
        return request.config.getoption("--mode")
    """
    text = """
    import pytest
    import torch

    def test_on_a_device(device):
        if device.type != "cuda":
            pytest.skip("wants a device")
        torch.ones(1, device=device)

    def test_by_its_name(backend):
        if backend == "cpu":
            pytest.skip("wants a device")
        torch.ones(1, device=backend)

    def test_anywhere(device):
        torch.ones(1, device=device)

    def test_exact(mode):
        if mode != "exact":
            pytest.skip("wants the other mode")
        assert mode == "exact"
    """
    found = devices_of("tests/test_it.py", {"tests/test_it.py": text, "tests/conftest.py": conftest})
    assert found == {
        "test_on_a_device": (1, 1, 1),
        "test_by_its_name": (1, 1, 1),
        "test_anywhere": (0, None, 0),
        "test_exact": (0, None, 0),
    }


def test_a_function_that_is_called_with_a_grid_is_a_kernel_whoever_compiles_it():
    text = """
    import numpy as np
    from acme_gpu import jit, kernel

    @jit
    def add(x, y):
        pass

    @kernel(debug=True)
    def scale(x):
        pass

    def test_launched():
        add[16, 256](np.ones(3), np.ones(3))

    def test_with_a_grid():
        grid = (4, 4)
        scale[grid, (16, 16)](np.ones(3))

    def test_called():
        add(np.ones(3), np.ones(3))
    """
    found = needs_of("test_it.py", {"test_it.py": text})
    assert {name: (each.min, each.full, each.confidence) for name, each in found.items()} == {
        "test_launched": (1, 1, "medium"),
        "test_with_a_grid": (1, 1, "medium"),
        "test_called": (0, 0, "high"),
    }


def test_a_library_that_looks_for_the_device_that_it_is_asked_for_does_not_choose_one():
    library = """
    import torch

    def named(device):
        if device == "cpu":
            return "cpu"
        elif device == "gpu":
            if torch.cuda.is_available():
                device = "cuda:0"
            return device
        return device

    def chosen(device="auto"):
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        return device

    class Box:
        def __init__(self, low, device=None):
            self.device = named(device or read(low))
            self.low = low.to(self.device)

    class Chooser:
        def __init__(self, low):
            self.device = chosen()
            self.low = read(low).to(self.device)
    """
    text = """
    import torch
    from acme import Box, Chooser

    def test_box():
        Box(torch.zeros(3))

    def test_chooser():
        Chooser(torch.zeros(3))
    """
    found = devices_of("tests/test_it.py", {"tests/test_it.py": text, "acme/__init__.py": library})
    assert found == {"test_box": (0, None, 0), "test_chooser": (0, 1, 1)}


def test_unsloth_is_not_imported_without_a_device():
    text = """
    from unsloth import FastLanguageModel

    def test_settings():
        assert FastLanguageModel is not None
    """
    found = needs_of("test_it.py", {"test_it.py": text})["test_settings"]
    assert (found.min, found.gpu_min, found.profile["0"]) == (1, 1, "fail")


def test_a_folder_of_tests_that_is_named_after_a_framework_is_not_the_framework():
    text = """
    from pytorch_lightning import Trainer
    from tests.pytorch_lightning.boring import Boring

    def test_two():
        Trainer(accelerator="gpu", devices=2).fit(Boring())
    """
    files = {
        "tests/__init__.py": "",
        "tests/pytorch_lightning/__init__.py": "",
        "tests/pytorch_lightning/boring.py": "class Boring:\n    pass\n",
        "tests/pytorch_lightning/test_it.py": text,
    }
    assert devices_of("tests/pytorch_lightning/test_it.py", files) == {"test_two": (2, 2, 2)}


def test_a_function_that_is_called_cuda_or_cpu_gives_a_device_and_uses_none():
    backend = """
    import os
    from acme_backend import *

    _contexts = {"cpu": cpu(), "gpu": cuda()}
    _context = _contexts[os.getenv("TESTDEV", "cpu")]

    def ctx():
        return _context
    """
    text = """
    import backend as F
    import torch
    from acme_backend import cuda

    def test_on_the_host():
        if F.ctx().type == "cuda":
            torch.cuda.set_device(0)
        torch.ones(1, device=F.ctx())

    def test_on_a_device():
        torch.ones(1).to(cuda())

    def test_moved():
        torch.ones(1).cuda()
    """
    files = {"tests/backend/__init__.py": backend, "tests/nn/test_it.py": text}
    assert devices_of("tests/nn/test_it.py", files) == {
        "test_on_the_host": (0, None, 0),
        "test_on_a_device": (1, 1, 1),
        "test_moved": (1, 1, 1),
    }


def test_a_record_of_the_library_that_describes_a_gpu_uses_none():
    library = """
    from dataclasses import dataclass

    @dataclass
    class RuntimeTrainer:
        image: str
        device: str = "Unknown"

    @dataclass
    class Settings:
        device: str = "cpu"
    """
    text = """
    from acme import RuntimeTrainer, Settings

    def test_described():
        assert RuntimeTrainer(image="torch", device="gpu").image == "torch"

    def test_named():
        Settings(device="cuda")
    """
    found = devices_of("tests/test_it.py", {"tests/test_it.py": text, "acme/__init__.py": library})
    assert found == {"test_described": (0, None, 0), "test_named": (1, 1, 1)}


def test_a_model_that_is_cut_to_pieces_in_one_process_is_on_the_devices_that_it_is_told_or_on_all():
    library = """
    import torch

    class TensorParallel(torch.nn.Module):
        def __init__(self, module, device_ids=None):
            super().__init__()
            self.devices = read(device_ids)
    """
    text = """
    import pytest
    import torch
    from acme import TensorParallel

    @pytest.mark.parametrize("devices", [None, ("cpu", "cpu"), ("cuda:0", "cuda:1")], ids=["all", "host", "two"])
    def test_pieces(devices):
        TensorParallel(torch.nn.Linear(2, 2), device_ids=devices)
    """
    found = devices_of("tests/test_it.py", {"tests/test_it.py": text, "acme/__init__.py": library})
    assert found == {"test_pieces[all]": (0, 1, 8), "test_pieces[host]": (0, None, 0), "test_pieces[two]": (2, 2, 2)}


def test_ranks_that_are_started_one_by_one_are_all_looked_at_however_long_each_works():
    text = """
    import multiprocessing
    import os
    import unittest
    import torch

    def epoch(model, number):
        for step in range(10):
            data = torch.randn(4, 2).cuda()
            loss = model(data).sum() + number * step
            loss.backward()

    def work(rank, world, env):
        os.environ["RANK"] = str(rank)
        torch.cuda.set_device(rank)
        model = torch.nn.Linear(2, 2).cuda()
        for number in range(100):
            epoch(model, number)

    class TestMany(unittest.TestCase):
        def start(self, world):
            context = multiprocessing.get_context("spawn")
            processes = []
            for rank in range(world):
                process = context.Process(target=work, args=(rank, world, {}))
                process.start()
                processes.append(process)
            for each in processes:
                each.join()
                self.assertTrue(each.exitcode == 0)

        def test_all(self):
            self.start(torch.cuda.device_count())

        def test_twice(self):
            self.start(torch.cuda.device_count())
            self.start(torch.cuda.device_count())
    """
    found = needs_of("test_it.py", {"test_it.py": text})
    assert {name: (each.full, each.devices["8"]) for name, each in found.items()} == {
        "TestMany::test_all": (8, 8),
        "TestMany::test_twice": (8, 8),
    }
    assert found["TestMany::test_all"].confidence == "medium"


def test_sglang_parts_experts_among_its_tensor_parallel_ranks():
    text = """
    import os
    import torch
    from sglang.srt.distributed import initialize_model_parallel

    def test_experts():
        world = int(os.environ["WORLD_SIZE"])
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        initialize_model_parallel(tensor_model_parallel_size=world, expert_model_parallel_size=world)

    def test_four():
        initialize_model_parallel(2, 2, 2)
    """
    assert devices_of("tests/test_it.py", {"tests/test_it.py": text}) == {
        "test_experts": (1, 1, 8),
        "test_four": (4, 4, 4),
    }


def test_a_worker_that_joins_by_a_library_that_is_not_there_has_the_device_of_its_number():
    text = """
    import multiprocessing
    import os

    import elsewhere
    import torch

    def join(rank, world_size):
        os.environ["RANK"] = str(rank)
        os.environ["LOCAL_RANK"] = str(rank)
        os.environ["WORLD_SIZE"] = str(world_size)
        elsewhere.launch_from_torch(config={}, seed=1)

    def on_device(args):
        join(*args)
        torch.ones(2).to(torch.device("cuda"))

    def on_host(args):
        join(*args)
        torch.ones(2)

    def alone(args):
        torch.ones(2).to(torch.device("cuda"))

    def in_pool(work):
        with multiprocessing.get_context("spawn").Pool(processes=4) as pool:
            pool.map(work, [[rank, 4] for rank in range(4)])

    def test_on_devices():
        in_pool(on_device)

    def test_on_host():
        in_pool(on_host)

    def test_alone():
        in_pool(alone)

    def test_goes_on_itself():
        in_pool(on_host)
        torch.ones(2).cuda()
    """
    found = needs_of("tests/test_it.py", {"tests/test_it.py": text})
    said = {name: (each.min, each.gpu_min, each.full, each.confidence.value) for name, each in found.items()}
    assert said == {
        "test_on_devices": (4, 4, 4, "medium"),
        "test_on_host": (0, None, 0, "medium"),
        "test_alone": (1, 1, 1, "high"),
        "test_goes_on_itself": (1, 1, 1, "medium"),
    }


def test_a_package_that_is_not_imported_without_a_device_uses_none_by_that_and_may_be_told_to_do_without():
    files = {
        "unsloth_zoo/__init__.py": "",
        "unsloth_zoo/hub.py": "def clear(): pass",
        "tests/conftest.py": """
        import os
        import pytest

        os.environ.setdefault("UNSLOTH_ALLOW_CPU", "1")
        """,
        "tests/test_it.py": """
        import pytest

        def test_imports():
            from unsloth_zoo import hub
            hub.clear()
        """,
    }
    alone = {name: text for name, text in files.items() if name != "tests/conftest.py"}
    assert devices_of("tests/test_it.py", files) == {"test_imports": (0, None, 0)}
    assert devices_of("tests/test_it.py", alone) == {"test_imports": (1, 1, 1)}
