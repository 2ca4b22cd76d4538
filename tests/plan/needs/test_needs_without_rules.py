"""What suites do that no rule was written for: their options, their switches, their hooks, and how libraries refuse."""

from small_projects import devices_of, needs_of


def test_a_copy_of_the_environment_by_the_module_for_copies_keeps_what_is_put_into_it():
    text = """
    import copy, os, subprocess

    def start(number):
        env = copy.deepcopy(os.environ)
        env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(number, number + 1)))
        return subprocess.Popen(["torchrun", "--nproc_per_node=1", "src/train.py"], env=env)

    def test_two_nodes():
        for each in [start(number) for number in range(2)]:
            assert each.wait() == 0
    """
    script = """
    import os
    import torch

    if __name__ == "__main__":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    """
    found = devices_of("tests/test_it.py", {"tests/test_it.py": text, "src/train.py": script})
    assert found == {"test_two_nodes": (2, 2, 2)}


def test_options_that_a_test_parses_leniently_have_their_defaults():
    text = """
    import argparse
    import torch

    def get_args():
        parser = argparse.ArgumentParser()
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--hidden-sizes", type=int, nargs="*", default=[64, 64])
        parser.add_argument("--device", type=str, default="cuda" if torch.cuda.is_available() else "cpu")
        return parser.parse_known_args()[0]

    def test_trains(args=get_args()):
        torch.nn.Linear(2, 2).to(args.device)
    """
    assert devices_of("test_it.py", {"test_it.py": text}) == {"test_trains": (0, 1, 1)}


def test_a_switch_whose_default_a_helper_compares_is_a_switch():
    helper = """
    import os

    def is_off():
        return os.environ.get("DISTRIBUTED_TESTS", "false").lower() not in ["1", "true"]

    def is_off_or_slow():
        return is_off() or os.environ.get("FAST_TEST", "false").lower() in ["1", "true"]
    """
    text = """
    import unittest
    import torch
    from tests.helper import is_off, is_off_or_slow

    class Tests(unittest.TestCase):
        @unittest.skipIf(is_off(), "ignored")
        def test_a(self):
            torch.ones(2, device="cuda")

        @unittest.skipIf(is_off_or_slow(), "ignored")
        def test_b(self):
            torch.ones(2)
    """
    found = devices_of("tests/test_it.py", {"tests/test_it.py": text, "tests/helper.py": helper})
    assert found == {"Tests::test_a": (1, 1, 1), "Tests::test_b": (0, None, 0)}


def test_what_a_library_asserts_of_devices_fails_without_one():
    library = """
    import torch

    class Agent:
        def __init__(self, model, gpu=None):
            if gpu is not None and gpu >= 0:
                assert torch.cuda.is_available()
                self.device = torch.device("cuda:{}".format(gpu))
                model.to(self.device)
            else:
                self.device = torch.device("cpu")

    class Other(Agent):
        def __init__(self, *args, **kwargs):
            self.alpha = kwargs.pop("alpha", 0.9)
            super().__init__(*args, **kwargs)

    def need_device():
        if not torch.cuda.is_available():
            raise RuntimeError("a GPU is needed")
        return 1

    HAS_GPU = torch.cuda.is_available()

    def need_flag():
        if not HAS_GPU:
            raise RuntimeError("a GPU is needed")
        return 1
    """
    text = """
    import torch
    from acme import Agent, Other, need_device, need_flag

    def test_first():
        Other(torch.nn.Linear(2, 2), gpu=0)

    def test_host():
        Other(torch.nn.Linear(2, 2), gpu=-1)

    def test_refuses():
        need_device()

    def test_refuses_by_a_flag():
        need_flag()

    def test_is_caught():
        try:
            need_device()
        except RuntimeError:
            pass
    """
    found = devices_of("tests/test_it.py", {"tests/test_it.py": text, "acme/__init__.py": library})
    assert found["test_first"] == (1, 1, 1)
    assert found["test_host"] == (0, None, 0)
    assert found["test_refuses"][0] == found["test_refuses_by_a_flag"][0] == 1
    assert found["test_is_caught"][0] == 0


def test_a_library_that_calls_what_only_raises_refuses_as_one_that_raises_itself():
    library = """
    import platform
    import torch

    class EngineError(Exception):
        pass

    def stop(message):
        print(message)
        raise EngineError(message)

    def perhaps(message):
        if message:
            raise EngineError(message)

    def device():
        if platform.platform().lower().startswith("darwin"):
            stop("no Metal")
        if not torch.cuda.is_available():
            stop("no CUDA")
        return torch.device("cuda")

    def other():
        if not torch.cuda.is_available():
            perhaps("")
        return torch.device("cpu")
    """
    text = """
    import acme

    def test_refuses():
        acme.device()

    def test_goes_on():
        acme.other()
    """
    found = devices_of("tests/test_it.py", {"tests/test_it.py": text, "acme/__init__.py": library})
    assert found == {"test_refuses": (1, 1, 1), "test_goes_on": (0, None, 0)}


def test_the_host_as_pytorch_counts_it_is_one_and_is_there():
    text = """
    import pytest
    import torch
    from acme import module

    def test_it():
        if module().is_available() and module().device_count() < 2:
            pytest.skip("needs two")
        torch.ones(2, device=f"{module().__name__}:1")
    """
    library = """
    import torch

    HAS_CUDA = torch.cuda.is_available()

    def kind():
        return "cuda" if HAS_CUDA else "cpu"

    def module():
        try:
            return getattr(torch, kind())
        except AttributeError:
            return torch.cuda
    """
    found = needs_of("tests/test_it.py", {"tests/test_it.py": text, "acme/__init__.py": library})["test_it"]
    assert (found.min, found.profile["0"], found.profile["1"]) == (2, "skip", "skip")


def test_a_library_that_lists_devices_gives_so_many():
    text = """
    import unittest
    import GPUtil

    class Tests(unittest.TestCase):
        def setUp(self):
            self.kind = GPUtil.getGPUs()[0].name

        def test_it(self):
            assert self.kind
    """
    assert devices_of("test_it.py", {"test_it.py": text})["Tests::test_it"][0] == 1


def test_ranks_of_torchtnt_take_the_device_of_their_number():
    text = """
    import torch
    import torch.distributed.launcher as pet
    from torchtnt.utils import init_from_env

    def work(x):
        device = init_from_env()
        x.to(device)

    def test_it():
        count = torch.cuda.device_count() if torch.cuda.is_available() else 4
        config = pet.LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=count, rdzv_backend="c10d")
        pet.elastic_launch(config, entrypoint=work)(torch.ones(2))
    """
    assert devices_of("test_it.py", {"test_it.py": text}) == {"test_it": (0, 1, 8)}


def test_what_a_conftest_does_with_a_device_when_pytest_starts_every_test_needs():
    conftest = """
    import cupy as cp
    from mpi4py import MPI

    def pytest_configure(config):
        MPI.Init()
        cp.cuda.Device(MPI.COMM_WORLD.rank % 8).use()
    """
    text = """
    def test_it():
        assert True
    """
    found = needs_of("tests/test_it.py", {"tests/test_it.py": text, "tests/conftest.py": conftest})
    assert (found["test_it"].min, found["test_it"].gpu_min, found["test_it"].full) == (1, 1, 1)


def test_what_a_conftest_sets_when_pytest_starts_hides_devices():
    conftest = """
    import os

    def pytest_configure(config):
        config.addinivalue_line("markers", "slow: slow")
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    """
    text = """
    import torch

    def test_it():
        device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.ones(2, device=device)
    """
    found = needs_of("tests/test_it.py", {"tests/test_it.py": text, "tests/conftest.py": conftest})
    assert (found["test_it"].min, found["test_it"].gpu_min, found["test_it"].full) == (0, None, 0)


def test_a_rank_that_is_not_known_cannot_be_divided_by_no_devices():
    text = """
    import torch
    from mpi4py import MPI

    def test_by_rank():
        number = MPI.COMM_WORLD.Get_rank() % torch.cuda.device_count()
        acme.initialize(number)

    def test_a_text():
        assert "%d" % torch.cuda.device_count()

    def test_at_least_one():
        assert MPI.COMM_WORLD.Get_rank() // max(torch.cuda.device_count(), 1) >= 0
    """
    found = devices_of("test_it.py", {"test_it.py": text})
    assert found["test_by_rank"] == (1, 1, 1)
    assert found["test_a_text"][0] == found["test_at_least_one"][0] == 0


def test_ranks_of_a_script_that_chooses_the_host_where_there_is_no_device_run_there():
    script = """
    import os
    from dataclasses import dataclass

    import torch
    import torch.distributed as dist
    import tyro

    @dataclass
    class Args:
        num_envs: int = 8
        cuda: bool = True
        world_size: int = 0
        backend: str = "gloo"

    if __name__ == "__main__":
        args = tyro.cli(Args)
        local_rank = int(os.getenv("LOCAL_RANK", "0"))
        args.world_size = int(os.getenv("WORLD_SIZE", "1"))
        if args.world_size > 1:
            dist.init_process_group(args.backend, rank=local_rank, world_size=args.world_size)
        if torch.cuda.device_count() < args.world_size:
            device = torch.device("cuda" if torch.cuda.is_available() and args.cuda else "cpu")
        else:
            device = torch.device(f"cuda:{local_rank}" if torch.cuda.is_available() and args.cuda else "cpu")
        torch.nn.Linear(2, 2).to(device)
    """
    text = """
    import subprocess

    def test_two():
        subprocess.run(
            "torchrun --standalone --nnodes=1 --nproc_per_node=2 acme/work.py --num-envs 8", shell=True, check=True
        )

    def test_alone():
        subprocess.run("python acme/work.py --num-envs 8", shell=True, check=True)
    """
    found = devices_of("tests/test_it.py", {"tests/test_it.py": text, "acme/work.py": script})
    assert found == {"test_two": (0, 1, 2), "test_alone": (0, 1, 1)}


def test_work_of_a_library_that_keeps_a_device_it_has_chosen_is_less_sure():
    utils = """
    import os
    import torch

    device = os.environ.get("ACME_DEVICE", torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    """
    library = """
    from . import utils

    class Distance:
        def __init__(self, least=0.8):
            self.least = least

        def close(self, a, b):
            return torch.tensor(a).to(utils.device) @ torch.tensor(b).to(utils.device) > self.least

    class Augmenter:
        def __init__(self, constraints=()):
            self.constraints = [Distance(), *constraints]

        def augment(self, text):
            return [each for each in text if all(one.close(each, text) for one in self.constraints)]

        def describe(self):
            return str(self.constraints)
    """
    text = """
    from acme.augmenting import Augmenter

    def test_augments():
        assert Augmenter().augment("a text")

    def test_describes():
        assert Augmenter().describe()
    """
    files = {"acme/__init__.py": "", "acme/utils.py": utils, "acme/augmenting.py": library, "tests/test_it.py": text}
    found = needs_of("tests/test_it.py", files)
    assert found["test_augments"].confidence == "medium"
    assert found["test_describes"].confidence == "high"


def test_an_index_of_faiss_is_on_the_devices_that_it_is_told():
    text = """
    import unittest
    import faiss

    class Tests(unittest.TestCase):
        def test_first(self):
            faiss.GpuIndexFlatL2(faiss.StandardGpuResources(), 8)

        def test_told(self):
            faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 1, faiss.IndexFlatL2(8))

        def test_some(self):
            faiss.index_cpu_to_all_gpus(faiss.IndexFlatL2(8), ngpu=3)

        def test_listed(self):
            faiss.index_cpu_to_gpus_list(faiss.IndexFlatL2(8), gpus=[0, 3])

        def test_all(self):
            faiss.index_cpu_to_all_gpus(faiss.IndexFlatL2(8))

        def test_several(self):
            faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, faiss.IndexFlatL2(8))
            if faiss.get_num_gpus() == 1:
                return
            resources = [faiss.StandardGpuResources() for each in range(2)]
            faiss.index_cpu_to_gpu_multiple_py(resources, faiss.IndexFlatL2(8))

        def test_searched(self):
            faiss.knn_gpu(faiss.StandardGpuResources(), [[1.0]], [[1.0]], 1)

        def test_clusters(self):
            faiss.Kmeans(8, 2, gpu=True).train([[1.0]])

        def test_clusters_on_two(self):
            faiss.Kmeans(8, 2, gpu=2).train([[1.0]])

        def test_host(self):
            faiss.IndexFlatL2(8).add([[1.0]])
            faiss.Kmeans(8, 2).train([[1.0]])
    """
    assert devices_of("test_it.py", {"test_it.py": text}) == {
        "Tests::test_first": (1, 1, 1),
        "Tests::test_told": (2, 2, 2),
        "Tests::test_some": (3, 3, 3),
        "Tests::test_listed": (4, 4, 4),
        "Tests::test_all": (1, 1, 8),
        "Tests::test_several": (1, 1, 2),
        "Tests::test_searched": (1, 1, 1),
        "Tests::test_clusters": (0, 1, 8),
        "Tests::test_clusters_on_two": (2, 2, 2),
        "Tests::test_host": (0, None, 0),
    }


def test_a_server_of_models_has_a_device_for_each_shard():
    hooks = """
    import contextlib
    import os
    import subprocess
    import pytest

    IMAGE = os.getenv("DOCKER_IMAGE", None)

    @pytest.fixture(scope="module")
    def launcher():
        @contextlib.contextmanager
        def local(model, num_shard=None, quantize=None):
            words = ["text-generation-launcher", "--model-id", model]
            if num_shard is not None:
                words.extend(["--num-shard", str(num_shard)])
            with subprocess.Popen(words) as process:
                yield process
                process.terminate()

        @contextlib.contextmanager
        def in_docker(model, num_shard=None, quantize=None):
            yield None

        return in_docker if IMAGE is not None else local
    """
    text = """
    import pytest

    @pytest.fixture(scope="module")
    def one(launcher):
        with launcher("a/model") as handle:
            yield handle

    @pytest.fixture(scope="module")
    def two(launcher):
        with launcher("a/model", num_shard=2, quantize="awq") as handle:
            yield handle

    def test_one(one):
        assert one

    def test_two(two):
        assert two
    """
    found = devices_of("tests/test_it.py", {"tests/test_it.py": text, "tests/conftest.py": hooks})
    assert found == {"test_one": (1, 1, 1), "test_two": (2, 2, 2)}


def test_trees_that_are_boosted_on_devices_take_those_that_they_are_told():
    text = """
    import catboost
    import lightgbm as lgb
    from catboost import CatBoostClassifier

    def test_trained():
        params = {"objective": "binary", "device": "cpu"}
        lgb.train(params, None)
        other = params.copy()
        other["device"] = "gpu"
        lgb.train(other, None)

    def test_trained_on_the_host():
        lgb.train({"objective": "binary", "device_type": "cpu"}, None)

    def test_estimator():
        lgb.LGBMClassifier(device_type="cuda").fit(None, None)

    def test_estimator_on_the_host():
        lgb.LGBMClassifier(n_estimators=3).fit(None, None)

    def test_first():
        CatBoostClassifier(iterations=5, task_type="GPU", devices="0").fit(None, None)

    def test_span():
        CatBoostClassifier(task_type="GPU", devices="0-2").fit(None, None)

    def test_listed():
        CatBoostClassifier(task_type="GPU", devices="0:3").fit(None, None)

    def test_all():
        catboost.CatBoostRegressor(task_type="GPU").fit(None, None)

    def test_on_the_host():
        CatBoostClassifier(iterations=5).fit(None, None)
    """
    found = needs_of("test_it.py", {"test_it.py": text})
    assert {name: (each.min, each.full) for name, each in found.items()} == {
        "test_trained": (1, 1),
        "test_trained_on_the_host": (0, 0),
        "test_estimator": (1, 1),
        "test_estimator_on_the_host": (0, 0),
        "test_first": (1, 1),
        "test_span": (3, 3),
        "test_listed": (4, 4),
        "test_all": (1, 8),
        "test_on_the_host": (0, 0),
    }
    fits_later = ("test_estimator", "test_first", "test_span", "test_listed", "test_all")
    assert {found[name].confidence for name in fits_later} == {"medium"}


def test_the_vendors_tool_is_not_there_without_a_device():
    text = """
    import os
    import subprocess
    import pytest
    import torch

    def is_there():
        try:
            subprocess.check_output(["nvidia-smi"])
            return True
        except Exception:
            return False

    def test_asked():
        subprocess.check_output(["nvidia-smi", "-L"])

    def test_asked_by_a_shell():
        text = subprocess.check_output("nvidia-smi --query-gpu=memory.used --format=csv,noheader", shell=True)
        assert [int(each) for each in text.decode().split()]

    @pytest.mark.skipif(not is_there(), reason="no tool")
    def test_guarded():
        torch.ones(1, device="cuda")

    @pytest.mark.skipif(os.system("nvidia-smi > /dev/null") != 0, reason="no tool")
    def test_guarded_by_a_shell():
        torch.ones(1, device="cuda")

    def test_asked_for_another_tool():
        subprocess.check_output(["nvcc", "--version"])
    """
    found = needs_of("test_it.py", {"test_it.py": text})
    assert {name: (each.profile["0"], each.profile["1"], each.confidence) for name, each in found.items()} == {
        "test_asked": ("fail", "run", "medium"),
        "test_asked_by_a_shell": ("fail", "run", "medium"),
        "test_guarded": ("skip", "run", "high"),
        "test_guarded_by_a_shell": ("skip", "run", "medium"),
        "test_asked_for_another_tool": ("run", "run", "high"),
    }


def test_pycuda_that_is_made_ready_by_an_import_has_a_device():
    text = """
    import pytest

    def test_imported():
        import pycuda.autoinit
        import pycuda.driver as driver

    def test_asked_for():
        pytest.importorskip("pycuda.autoinit")

    def test_of_the_primary_context():
        from pycuda.autoprimaryctx import context

    def test_compiled():
        from pycuda import compiler
    """
    whole = """
    import pycuda.autoinit
    import pycuda.driver as driver

    def test_it():
        driver.mem_alloc(4)
    """
    assert devices_of("test_whole.py", {"test_whole.py": whole}) == {"test_it": (1, 1, 1)}
    assert devices_of("test_it.py", {"test_it.py": text}) == {
        "test_imported": (1, 1, 1),
        "test_asked_for": (1, 1, 1),
        "test_of_the_primary_context": (1, 1, 1),
        "test_compiled": (0, None, 0),
    }


def test_a_method_of_the_librarys_that_puts_something_on_a_device_that_it_has_chosen_takes_it():
    library = """
    import torch
    from torch import nn

    class Sampler:
        def __init__(self, size=2, device=None):
            self.size = size
            self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
            self.net = nn.Linear(1, 1)

        def __call__(self, value):
            self.net.to(self.device)
            return self.net(value)

        def run(self):
            return torch.ones(self.size, device=self.device)

        def prepare(self):
            return self._made()

        def _made(self):
            return torch.ones(self.size).to(self.device)

        def describe(self):
            return f"{self.size} on {self.device}"

    class Chooser:
        def run(self):
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            return torch.ones(1, device=device)
    """
    text = """
    import torch
    from acme import Chooser, Sampler

    def test_run():
        assert Sampler().run() is not None

    def test_called():
        assert Sampler()(torch.ones(1)) is not None

    def test_chosen_there():
        assert Chooser().run() is not None

    def test_behind():
        assert Sampler().prepare() is not None

    def test_described():
        assert Sampler().describe()

    def test_told():
        assert Sampler(device="cpu").run() is not None
    """
    found = needs_of("tests/test_it.py", {"tests/test_it.py": text, "acme/__init__.py": library})
    assert {name: (each.min, each.full, each.confidence) for name, each in found.items()} == {
        "test_run": (0, 1, "medium"),
        "test_called": (0, 1, "medium"),
        "test_chosen_there": (0, 1, "medium"),
        "test_behind": (0, 1, "high"),
        "test_described": (0, 0, "high"),
        "test_told": (0, 0, "high"),
    }


def test_a_model_that_the_library_spreads_over_all_devices_is_on_all():
    library = """
    import torch
    from torch import nn

    class Trainer:
        def __init__(self, model, use_cuda=True, verbose=None):
            self.use_cuda = use_cuda and torch.cuda.is_available()
            self.model = model
            if self.use_cuda:
                self.model = self.model.cuda()
                if torch.cuda.device_count() > 1:
                    self.model = nn.DataParallel(self.model)

    class Careful:
        def __init__(self, model, settings):
            self.model = model.cuda()
            if settings.spread:
                self.model = nn.DataParallel(self.model)

    def spread(model):
        return nn.DataParallel(model.cuda(), device_ids=[0, 1])
    """
    text = """
    import torch
    from acme import Careful, Trainer, read, spread

    def test_made():
        Trainer(torch.nn.Linear(1, 1))

    def test_made_on_the_host():
        Trainer(torch.nn.Linear(1, 1), use_cuda=False)

    def test_not_known():
        Careful(torch.nn.Linear(1, 1), read("settings"))

    def test_two():
        spread(torch.nn.Linear(1, 1))
    """
    found = devices_of("tests/test_it.py", {"tests/test_it.py": text, "acme/__init__.py": library})
    assert found == {
        "test_made": (0, 1, 8),
        "test_made_on_the_host": (0, None, 0),
        "test_not_known": (1, 1, 1),
        "test_two": (2, 2, 2),
    }


def test_a_device_that_settings_say_which_nobody_knows_may_be_one():
    library = """
    class Sampler:
        def __init__(self, path):
            self.cfg = read(path)
            self.weight = read(path)
    """
    text = """
    import torch
    from acme import Sampler
    from omegaconf import OmegaConf

    def test_settings():
        config = OmegaConf.load("settings.yaml")
        torch.ones(1).to(config.device)

    def test_settings_of_the_library():
        torch.ones(1, device=Sampler("settings.yaml").cfg.device)

    def test_where_another_is():
        torch.ones(1).to(Sampler("settings.yaml").weight.device)
    """
    found = needs_of("tests/test_it.py", {"tests/test_it.py": text, "acme/__init__.py": library})
    assert {name: (each.min, each.full, each.confidence) for name, each in found.items()} == {
        "test_settings": (0, 0, "medium"),
        "test_settings_of_the_library": (0, 0, "medium"),
        "test_where_another_is": (0, 0, "high"),
    }
