"""Ranks that a launcher starts when a test calls it: PyTorch's elastic one (also told to run pytest), and ignite's."""

from small_projects import devices_of, needs_of


def test_ranks_that_the_elastic_launcher_is_called_to_start_have_a_device_each_if_one_uses_any():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import torch
            import torch.distributed as dist
            from torch.distributed.launcher import LaunchConfig, elastic_launch

            def on_ranks(count):
                config = torch.distributed.launcher.LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=count)

                def wrap(function):
                    return lambda *args: elastic_launch(config=config, entrypoint=function)(*args)

                return wrap

            def work(kind="cuda"):
                torch.ones(1, device=kind)

            def share():
                dist.init_process_group("gloo")
                torch.ones(1, device="cuda")

            def choose():
                dist.init_process_group("gloo")
                torch.cuda.set_device(dist.get_rank())

            def test_unnumbered():
                on_ranks(2)(work)()

            def test_host():
                on_ranks(2)(work)("cpu")

            def test_shared():
                elastic_launch(LaunchConfig(nproc_per_node=2), share)()

            def test_program():
                elastic_launch(LaunchConfig(nproc_per_node=4), "bin/touch")("some", "file")

            def test_chosen():
                elastic_launch(LaunchConfig(nproc_per_node=3), choose)()
            """
        },
    )
    assert found == {
        "test_unnumbered": (2, 2, 2),
        "test_host": (0, None, 0),
        "test_shared": (1, 1, 1),
        "test_program": (0, None, 0),
        "test_chosen": (3, 3, 3),
    }


def test_a_fixture_that_gives_a_namespace_says_what_is_in_it():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/conftest.py": """
            import argparse
            import os
            from types import SimpleNamespace

            import pytest
            import torch

            @pytest.fixture(scope="module")
            def group():
                if not torch.cuda.is_available():
                    pytest.skip("no devices")
                torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
                yield SimpleNamespace(size=int(os.environ["WORLD_SIZE"]), device=torch.device("cuda"))

            @pytest.fixture
            def options():
                return argparse.Namespace(devices=torch.cuda.device_count())
            """,
            "tests/test_it.py": """
            import pytest
            import torch

            def test_even(group):
                if group.size < 4 or group.size % 2 != 0:
                    pytest.skip("an even number of ranks")
                torch.ones(1, device=group.device)

            def test_three(options):
                assert options.devices >= 3
                torch.ones(1, device="cuda:2")

            def test_not_given(options):
                if options.more:
                    torch.ones(1, device="cuda:3")
            """,
        },
    )
    assert found["test_even"] == (4, 4, 8)
    assert found["test_three"] == (3, 3, 3)
    assert found["test_not_given"][0] == 0


HELPERS = """
import functools
import os
import subprocess
import sys

def torchrun(world_size=1):
    def decorator(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            if "TORCHELASTIC_RUN_ID" in os.environ:
                return function(*args, **kwargs)
            module = sys.modules.get(function.__module__)
            command = [
                sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(world_size),
                "-m", "pytest", f"{module.__file__}::{function.__name__}", "-sx",
            ]
            assert subprocess.run(command).returncode == 0
        return wrapper
    return decorator
"""


def test_a_test_that_starts_torchrun_on_itself_is_run_as_its_ranks():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/helpers.py": HELPERS,
            "tests/test_it.py": """
            import os
            import pytest
            import torch
            import torch.distributed as dist
            from tests.helpers import torchrun

            @pytest.mark.skipif(torch.accelerator.device_count() < 2, reason="devices")
            @torchrun(world_size=2)
            def test_guarded():
                torch.accelerator.set_device_index(int(os.environ["LOCAL_RANK"]))
                dist.init_process_group("nccl")

            @torchrun(world_size=3)
            def test_bare():
                dist.init_process_group("nccl")

            @torchrun(world_size=3)
            def test_host():
                dist.init_process_group("gloo")

            @torchrun(world_size=4)
            def test_fixture(tmp_path_factory):
                dist.init_process_group("nccl")
            """,
        },
    )
    assert found == {
        "test_guarded": (2, 2, 2),
        "test_bare": (3, 3, 3),
        "test_host": (0, None, 0),
        "test_fixture": (4, 4, 4),
    }


def test_a_test_that_torchrun_must_have_started_is_taken_to_be_started_by_it():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import os
            import pytest
            import torch

            @pytest.mark.skipif("TORCHELASTIC_RUN_ID" not in os.environ, reason="torchrun")
            def test_started():
                torch.ones(1, device="cuda")
            """
        },
    )
    assert {name: (each.min, each.gpu_min) for name, each in found.items()} == {"test_started": (1, 1)}


def test_a_program_that_is_told_ranks_as_launchers_are_starts_them():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import subprocess
            import sys
            from pathlib import Path
            from accelerate.test_utils import execute_subprocess_async

            def test_program(tmp_path):
                execute_subprocess_async(["lib", "train", str(Path(tmp_path) / "job.yaml"), "--num-processes", "2"])

            def test_node():
                subprocess.run("tune run --nnodes 1 --nproc_per_node 4 recipe --config some".split(), check=True)

            def test_script():
                subprocess.run([sys.executable, "prepare.py", "--num_processes", "4"], check=True)

            def test_own_ranks(path):
                subprocess.run([sys.executable, path, "--backend=gloo", "--nproc_per_node=4"], check=True)

            def test_workers():
                subprocess.run(["lib", "prepare", "--num-workers", "4"], check=True)
            """
        },
    )
    assert found == {
        "test_program": (2, 2, 2),
        "test_node": (4, 4, 4),
        "test_script": (0, None, 0),
        "test_own_ranks": (0, None, 0),
        "test_workers": (0, None, 0),
    }


def test_a_worker_that_is_told_the_name_of_a_test_runs_what_was_decorated():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/helpers.py": """
            import functools
            import torch.distributed.launcher as pet
            from importlib import import_module

            def _by_name(module, name, args, kwargs):
                getattr(import_module(module), name).__wrapped__(*args, **kwargs)

            def on_ranks(nproc):
                def decorate(function):
                    @functools.wraps(function)
                    def wrapper(*args, **kwargs):
                        config = pet.LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=nproc)
                        pet.elastic_launch(config, _by_name)(function.__module__, function.__name__, args, kwargs)
                    return wrapper
                return decorate
            """,
            "tests/test_it.py": """
            import os
            import torch
            import torch.distributed as dist
            from tests.helpers import on_ranks

            @on_ranks(nproc=2)
            def test_devices(tmp_path):
                dist.init_process_group(backend="nccl")
                torch.cuda.set_device(torch.device(f"cuda:{int(os.environ['LOCAL_RANK'])}"))

            @on_ranks(nproc=4)
            def test_host():
                dist.init_process_group(backend="gloo")
            """,
        },
    )
    assert found == {"test_devices": (2, 2, 2), "test_host": (0, None, 0)}


def test_an_assertion_that_holds_with_one_number_of_ranks_only_is_believed():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import os
            import pytest
            import torch
            import torch.distributed as dist

            @pytest.fixture(scope="module")
            def group():
                if "WORLD_SIZE" not in os.environ:
                    pytest.skip("torchrun")
                assert int(os.environ["WORLD_SIZE"]) == 2
                rank = int(os.environ["RANK"])
                torch.cuda.set_device(rank)
                dist.init_process_group("nccl", init_method=f"file://{os.environ['MEETING']}", rank=rank, world_size=2)
                yield dist.group.WORLD

            def test_two(group):
                assert torch.ones(2, device="cuda").sum() == 2

            def test_four():
                dist.init_process_group("nccl")
                torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
                assert dist.get_world_size() == 4, "four ranks"
                torch.ones(2, device="cuda")

            def test_alone(monkeypatch):
                monkeypatch.delenv("WORLD_SIZE", raising=False)
                assert os.environ["WORLD_SIZE"] == "1"
            """
        },
    )
    assert {name: (each.min, each.gpu_min, each.full, each.max) for name, each in found.items()} == {
        "test_two": (2, 2, 2, 2),
        "test_four": (4, 4, 4, 4),
        "test_alone": (0, None, 0, None),
    }


def test_a_grid_of_megatrons_has_no_more_places_than_there_are_ranks_from_its_first_one_on():
    found = devices_of(
        "tests/test_grids.py",
        {
            "tests/test_grids.py": """
            import os
            import torch
            import torch.distributed as dist
            from megatron.core.hyper_comm_grid import HyperCommGrid

            def started():
                torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
                dist.init_process_group("nccl")

            def test_two():
                started()
                HyperCommGrid([2, 1], ["tp", "dp"])

            def test_two_after_two():
                started()
                HyperCommGrid(shape=[1, 2], dim_names=["tp", "dp"], rank_offset=2)

            def test_of_the_host(monkeypatch):
                monkeypatch.setenv("WORLD_SIZE", "16")
                assert HyperCommGrid([2, 8], ["tp", "dp"]).size == 16

            def test_before_they_join():
                assert HyperCommGrid([2, 2, 2], ["tp", "cp", "dp"]).size == 8
            """
        },
    )
    assert found == {
        "test_two": (2, 2, 8),
        "test_two_after_two": (4, 4, 8),
        "test_of_the_host": (0, None, 0),
        "test_before_they_join": (8, 8, 8),
    }


def test_ignite_starts_as_many_ranks_as_it_is_told_and_each_takes_a_device_where_there_is_one():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import ignite.distributed as idist
            import pytest
            import torch

            def work(local_rank, scale):
                torch.ones(1, device=idist.device()) * scale

            def test_spawn():
                idist.spawn("nccl", work, args=(2,), nproc_per_node=4)

            def test_gloo():
                with idist.Parallel(backend="gloo", nproc_per_node=4) as parallel:
                    parallel.run(work, 2)

            def test_all():
                with idist.Parallel(backend="nccl", nproc_per_node=torch.cuda.device_count()) as parallel:
                    parallel.run(work, scale=2)

            def test_no_ranks():
                with idist.Parallel() as parallel:
                    parallel.run(work, 2)
            """
        },
    )
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_spawn": (4, 4, 4),
        "test_gloo": (0, 4, 4),
        "test_all": (1, 1, 8),
        "test_no_ranks": (0, 1, 1),
    }


def test_a_backend_that_pytorch_comes_with_is_the_one_that_is_joined():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch.distributed as dist

            @pytest.fixture
            def joined():
                backend = "nccl"
                if not dist.is_backend_available(backend):
                    backend = "gloo"
                dist.init_process_group(backend, init_method="file:///tmp/it", world_size=1, rank=0)

            def test_joined(joined):
                assert dist.get_world_size() == 1 and dist.get_rank() == 0

            def test_elsewhere():
                if not dist.is_backend_available("MPI"):
                    pytest.skip("no mpi")
            """
        },
    )
    assert {name: (each.min, each.backend) for name, each in found.items()} == {
        "test_joined": (1, ["nccl"]),
        "test_elsewhere": (None, []),
    }


def test_a_test_that_takes_a_variable_of_ranks_away_was_told_of_no_others_by_a_launcher():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import os
            import pytest
            from acme.comm import NAMES, discover, join

            @pytest.fixture
            def clean(monkeypatch):
                for name in ("RANK", "WORLD_SIZE") + NAMES:
                    monkeypatch.delenv(name, raising=False)

            def test_cleaned(clean):
                discover()
                assert os.environ["WORLD_SIZE"] == "1"

            def test_told_by_the_library(monkeypatch):
                monkeypatch.delenv("LOCAL_RANK", raising=False)
                join("acme")
                assert os.environ["LOCAL_RANK"] == "3" and os.environ["WORLD_SIZE"] == "8"

            def test_ranks(monkeypatch):
                monkeypatch.delenv("KIND", raising=False)
                assert os.environ["WORLD_SIZE"] == "2"
            """
        },
    )
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_cleaned": (0, None, 0),
        "test_told_by_the_library": (0, None, 0),
        "test_ranks": (2, 2, 2),
    }


def test_ranks_of_a_script_that_a_library_trains_in_have_a_device_each_if_it_is_known_for_that():
    found = needs_of(
        "tests/test_train.py",
        {
            "train.py": "from megatron.training import pretrain\n\npretrain(None, None)\n",
            "fit.py": "from acme import fit\n\nfit()\n",
            "count.py": "import torch\n\nprint(torch.ones(3).sum())\n",
            "tests/test_train.py": """
            import pytest, subprocess

            @pytest.mark.parametrize("script", ["train", "fit", "count"])
            def test_run(script):
                subprocess.run(["torchrun", "--nproc_per_node", "2", f"{script}.py"], check=True)
            """,
        },
    )
    assert {name: (each.min, each.gpu_min, each.confidence.value) for name, each in found.items()} == {
        "test_run[train]": (2, 2, "high"),
        "test_run[fit]": (0, None, "medium"),
        "test_run[count]": (0, None, "high"),
    }
