"""What tests let others do for them: threads, executors, launchers, libraries that are told a number of devices."""

from small_projects import devices_of, needs_of


def test_a_function_that_an_executor_or_a_thread_runs_is_a_part_of_the_test():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import asyncio
            import threading
            from concurrent.futures import ThreadPoolExecutor

            import torch

            def work(index=0):
                return torch.ones(1, device=f"cuda:{index}")

            async def test_loop():
                await asyncio.get_event_loop().run_in_executor(executor=None, func=work)

            async def test_to_thread():
                await asyncio.to_thread(work, 1)

            def test_pool():
                with ThreadPoolExecutor() as pool:
                    pool.submit(work, 2).result()

            def test_thread():
                thread = threading.Thread(target=work, args=(1,))
                thread.start()
                thread.join()

            def test_thread_that_waits():
                threading.Thread(target=work)
            """
        },
    )
    assert found == {
        "test_loop": (1, 1, 1),
        "test_to_thread": (2, 2, 2),
        "test_pool": (3, 3, 3),
        "test_thread": (2, 2, 2),
        "test_thread_that_waits": (0, None, 0),
    }


def test_what_is_started_on_a_number_of_devices_needs_them_and_what_describes_it_does_not():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            from types import SimpleNamespace
            from engines import Engine, EngineConfig, Generator, Request, Topology, VirtualCluster

            def test_told():
                Request(tp_size=8)
                Topology(SimpleNamespace(tensor_parallel_size=4), num_gpus=4)

            def test_engine():
                Engine(model="m", tp_size=4)

            def test_generator():
                Generator.from_pretrained("m", num_gpus=2)

            def test_description():
                EngineConfig(tensor_parallel_size=8)

            def test_cluster():
                VirtualCluster(bundles=[4], use_gpus=True, num_gpus_per_node=4)

            def test_cluster_of_one():
                VirtualCluster(bundles=[1], use_gpus=True, num_gpus_per_node=1)

            def test_cluster_of_the_host():
                VirtualCluster(bundles=[2], use_gpus=False, num_gpus_per_node=8)
            """
        },
    )
    assert found == {
        "test_cluster": (4, 4, 4),
        "test_cluster_of_one": (1, 1, 1),
        "test_cluster_of_the_host": (0, None, 0),
        "test_engine": (4, 4, 4),
        "test_generator": (2, 2, 2),
        "test_description": (0, None, 0),
        "test_told": (0, None, 0),
    }


def test_a_launcher_that_joins_a_group_of_nccls_by_default_takes_a_device_for_each_rank():
    found = devices_of(
        "tests/test_it.py",
        {
            "library/__init__.py": "",
            "library/start.py": "def launch(rank, world_size, port, backend='nccl'):\n    pass\n",
            "tests/test_it.py": """
            import torch.multiprocessing as mp
            from library.start import launch

            def work(rank, world_size):
                launch(rank, world_size, 29500)

            def host(rank, world_size):
                launch(rank, world_size, 29500, backend="gloo")

            def test_devices():
                mp.spawn(work, args=(4,), nprocs=4)

            def test_host():
                mp.spawn(host, args=(4,), nprocs=4)
            """,
        },
    )
    assert found["test_devices"] == (4, 4, 4)
    assert found["test_host"][:2] == (0, None)


def test_a_reason_names_no_number_of_devices_that_is_another_sizes():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch.distributed as dist
            import torch.multiprocessing as mp

            def work(rank, world_size):
                dist.init_process_group("nccl", rank=rank, world_size=world_size)

            def test_devices():
                mp.spawn(work, args=(4,), nprocs=4)
            """
        },
    )
    reason = "RuntimeError: NCCL uses a device for each rank: needs 4, fewer are visible"
    assert found["test_devices"].reasons == dict.fromkeys(["0", "1", "2", "3"], reason)


def test_accelerates_launcher_takes_all_devices_where_it_is_told_no_number():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import subprocess
            import torch

            def test_told_nothing():
                subprocess.run(["accelerate", "launch", "script.py"])

            def test_all():
                command = ["accelerate", "launch"]
                if torch.cuda.device_count() > 1:
                    command += ["--multi_gpu"]
                subprocess.run(command + ["script.py"])

            def test_of_a_file():
                subprocess.run(["accelerate", "launch", "--config_file", "two.yaml", "script.py"])
            """
        },
    )
    assert found == {"test_told_nothing": (0, 1, 8), "test_all": (0, 1, 8), "test_of_a_file": (0, None, 0)}


def test_accelerates_own_check_is_launched_as_any_script():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import subprocess

            def test_told_nothing():
                subprocess.run(["accelerate", "test"])

            def test_written(tmp_path):
                path = tmp_path / "three.yaml"
                path.write_text("num_processes: 3")
                subprocess.run(["accelerate", "test", "--config_file", str(path)])

            def test_speaks():
                subprocess.run(["accelerate", "env"])
            """
        },
    )
    assert found == {"test_told_nothing": (0, 1, 8), "test_written": (3, 3, 3), "test_speaks": (0, None, 0)}


def test_a_launched_script_that_only_asks_for_devices_uses_none():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/count.py": """
            import torch

            def main():
                count = torch.cuda.device_count() if torch.cuda.is_available() else 0
                print(f"ran on {count} GPUs")

            if __name__ == "__main__":
                main()
            """,
            "tests/work.py": """
            import torch

            if torch.cuda.is_available():
                torch.ones(3).cuda()
            """,
            "tests/test_it.py": """
            import subprocess
            from pathlib import Path

            HERE = Path(__file__).parent

            def test_of_two_ranks():
                subprocess.run(["torchrun", "--nproc_per_node=2", str(HERE / "count.py")], check=True)

            def test_of_all():
                subprocess.run(["accelerate", "launch", str(HERE / "count.py")], check=True)

            def test_that_works():
                subprocess.run(["accelerate", "launch", str(HERE / "work.py")], check=True)
            """,
        },
    )
    assert found == {
        "test_of_two_ranks": (0, None, 0),
        "test_of_all": (0, None, 8),
        "test_that_works": (0, 1, 8),
    }


def test_what_ranks_of_a_script_of_an_unknown_path_use_is_not_sure():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import subprocess

            from acme import script_of

            def test_launched():
                subprocess.run(["accelerate", "launch", script_of("count")], check=True)
            """
        },
    )
    assert found["test_launched"].confidence.value == "medium"


def test_accelerates_launcher_of_long_ago_takes_one_device_where_it_is_told_no_number():
    found = devices_of(
        "tests/test_it.py",
        {
            "src/accelerate/commands/launch.py": """
            def _validate_launch_command(args):
                if args.num_processes is None:
                    args.num_processes = torch.cuda.device_count() if args.multi_gpu else 1
            """,
            "src/accelerate/commands/__init__.py": "",
            "src/accelerate/__init__.py": "",
            "tests/test_it.py": """
            import subprocess

            def test_told_nothing():
                subprocess.run(["accelerate", "launch", "script.py"])

            def test_all():
                subprocess.run(["accelerate", "launch", "--multi_gpu", "script.py"])
            """,
        },
    )
    assert found == {"test_told_nothing": (0, 1, 1), "test_all": (0, 1, 8)}


def test_launchers_that_are_told_no_number_take_what_they_take_by_themselves():
    found = devices_of(
        "test_it.py",
        {
            "script.py": """
            import torch

            def main():
                torch.ones(3).cuda()
            """,
            "test_it.py": """
            import subprocess
            import sys

            def test_accelerate_as_a_module():
                subprocess.run([sys.executable, "-m", "accelerate.commands.launch", "script.py"])

            def test_accelerate_in_one_word():
                subprocess.run(["accelerate-launch", "--mixed_precision", "fp16", "script.py"])

            def test_torchrun():
                subprocess.run(["torchrun", "--standalone", "script.py"])

            def test_torchrun_as_a_module():
                subprocess.run([sys.executable, "-m", "torch.distributed.launch", "script.py"])

            def test_deepspeed():
                subprocess.run(["deepspeed", "script.py"])

            def test_deepspeed_on_some():
                subprocess.run(["deepspeed", "--include", "localhost:0,1", "script.py"])

            def test_deepspeed_on_one_of_four():
                subprocess.run(["/usr/bin/deepspeed", "--include=localhost:3", "script.py"])

            def test_what_only_names_a_launcher():
                subprocess.run(["pip", "install", "deepspeed"])
            """,
        },
    )
    assert found == {
        "test_accelerate_as_a_module": (0, 1, 8),
        "test_accelerate_in_one_word": (0, 1, 8),
        "test_torchrun": (1, 1, 1),
        "test_torchrun_as_a_module": (1, 1, 1),
        "test_deepspeed": (1, 1, 8),
        "test_deepspeed_on_some": (2, 2, 2),
        "test_deepspeed_on_one_of_four": (4, 4, 4),
        "test_what_only_names_a_launcher": (0, None, 0),
    }


def test_a_file_for_accelerates_launcher_that_the_test_writes_says_as_many_processes_as_there_are_devices():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import os
            import tempfile
            import unittest
            from accelerate.test_utils.testing import run_command
            from accelerate.utils import write_basic_config

            class TestIt(unittest.TestCase):
                @classmethod
                def setUpClass(cls):
                    cls.config = os.path.join(tempfile.mkdtemp(), "default_config.yml")
                    write_basic_config(save_location=cls.config)
                    cls.command = ["accelerate", "launch", "--config_file", cls.config]

                def test_all(self):
                    run_command(self.command + ["train.py"])

                def test_one(self):
                    run_command([*self.command, "--num_processes=1", "train.py"])

                def test_host(self):
                    run_command([*self.command, "--cpu", "train.py"])

                def test_known(self):
                    run_command([*self.command, "known.py"])
            """,
            "known.py": """
            from accelerate import Accelerator

            accelerator = Accelerator()
            """,
        },
    )
    assert found == {
        "TestIt::test_all": (0, 1, 8),
        "TestIt::test_one": (1, 1, 1),
        "TestIt::test_host": (0, None, 0),
        "TestIt::test_known": (0, 1, 8),
    }


def test_of_a_command_with_unknown_parts_the_known_words_count():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import shlex
            import subprocess
            import torch
            from elsewhere import port, script

            def test_split():
                command = f"torchrun --nproc_per_node={min(2, torch.cuda.device_count())} --port {port()}".split()
                subprocess.run(command)

            def test_shell():
                subprocess.run(f"torchrun --nproc_per_node=4 {script} --port={port()}", shell=True)

            def test_shlex():
                subprocess.run(shlex.split(f"torchrun --nproc_per_node 3 {script}"))
            """
        },
    )
    assert found == {"test_split": (1, 1, 2), "test_shell": (4, 4, 4), "test_shlex": (3, 3, 3)}


def test_data_parallel_takes_all_devices_unless_it_is_told_which():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch

            @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="devices")
            def test_all():
                torch.nn.DataParallel(torch.nn.Linear(1, 1))

            @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="devices")
            def test_two():
                torch.nn.DataParallel(torch.nn.Linear(1, 1), device_ids=[0, 1])
            """
        },
    )
    assert found == {"test_all": (2, 2, 8), "test_two": (2, 2, 2)}


def test_data_parallel_takes_the_devices_that_it_is_given_or_all():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            import torch.nn.parallel as dp

            def test_two(m=None, x=None):
                dp.data_parallel(m, x, (0, 1))

            def test_named(m=None, x=None):
                dp.data_parallel(m, x, device_ids=(torch.device("cuda:2"), torch.device("cuda:0")))

            def test_counted(m=None, x=None):
                x = torch.ones(1, device="cuda:1")
                dp.data_parallel(m, x, range(torch.cuda.device_count()))

            def test_wrapped(m=None):
                torch.nn.DataParallel(m, [torch.device("cuda:1")])
            """
        },
    )
    assert found == {
        "test_two": (0, 2, 2),
        "test_named": (0, 3, 3),
        "test_counted": (2, 2, 8),
        "test_wrapped": (0, 2, 2),
    }


def test_what_the_ranks_of_a_script_use_is_not_sure_where_it_is_not_there_to_be_read():
    found = needs_of(
        "test_it.py",
        {
            "train.py": "import torch\ntorch.ones(1).cuda()\n",
            "count.py": "import torch.distributed as dist\ndist.init_process_group('gloo')\n",
            "test_it.py": """
            import os, sys
            from subprocess import check_call

            HERE = os.path.dirname(os.path.abspath(__file__))

            def test_there():
                check_call(["torchrun", "--nproc-per-node=2", os.path.join(HERE, "train.py")])

            def test_of_the_host():
                check_call(["torchrun", "--nproc-per-node=2", os.path.join(HERE, "count.py")])

            def test_not_there():
                check_call("horovodrun -np 2".split() + [sys.executable, os.path.join(HERE, "examples", "svi.py")])

            def test_not_there_and_told():
                check_call(["torchrun", "--nproc-per-node=2", os.path.join(HERE, "examples", "svi.py"), "--kind=cuda"])
            """,
        },
    )
    said = {name: (each.min, each.gpu_min, each.full, each.confidence.name) for name, each in found.items()}
    assert said == {
        "test_there": (2, 2, 2, "HIGH"),
        "test_of_the_host": (0, None, 0, "HIGH"),
        "test_not_there": (2, 2, 2, "MEDIUM"),
        "test_not_there_and_told": (2, 2, 2, "HIGH"),
    }


def test_devices_that_ray_is_only_told_of_are_needed_by_what_uses_them():
    found = needs_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/workers.py": "class Worker: ...",
            "tests/test_it.py": """
            import ray
            import torch
            from acme.workers import Worker
            from ray.cluster_utils import Cluster

            @ray.remote(num_gpus=1)
            class Counting:
                def numbers(self):
                    return ray.get_gpu_ids()

            @ray.remote(num_gpus=1)
            class Using:
                def __init__(self):
                    self.made = torch.ones(1).cuda()

            def test_told():
                ray.init(num_cpus=4, num_gpus=3)
                actors = [Counting.remote() for _ in range(3)]
                assert len(ray.get([each.numbers.remote() for each in actors])) == 3

            def test_told_of_nodes():
                cluster = Cluster()
                cluster.add_node(num_cpus=2, num_gpus=2)
                ray.init(address=cluster.address)
                ray.get(ray.remote(num_gpus=2)(lambda: ray.get_gpu_ids()).remote())

            def test_group():
                ray.init(num_gpus=2)
                group = ray.util.placement_group([{"GPU": 1}] * 2)
                ray.get(group.ready())

            def test_used():
                ray.init(num_gpus=3)
                actors = [Using.remote() for _ in range(3)]

            def test_of_the_library():
                ray.init(num_gpus=2)
                workers = [ray.remote(num_gpus=1)(Worker).remote() for _ in range(2)]

            def test_not_told():
                ray.init(num_cpus=4)
                actors = [Counting.remote() for _ in range(3)]
            """,
        },
    )
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_told": (0, None, 0),
        "test_told_of_nodes": (0, None, 0),
        "test_group": (0, None, 0),
        "test_used": (3, 3, 3),
        "test_of_the_library": (2, 2, 2),
        "test_not_told": (3, 3, 3),
    }
    assert found["test_told"].confidence == "medium"


def test_ray_waits_for_the_devices_of_all_that_keep_some():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import ray
            import torch
            from ray.util.placement_group import placement_group
            from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

            @ray.remote(num_gpus=1)
            def task(rank):
                return torch.ones(1, device="cuda")

            @ray.remote(num_gpus=1)
            class Actor:
                def work(self, index):
                    torch.ones(1, device=f"cuda:{index}")

            @ray.remote
            class Host:
                def work(self):
                    return 1

            def test_tasks():
                ray.get([task.remote(each) for each in range(3)])

            def test_actors():
                actors = [Actor.remote() for _ in range(3)]
                ray.get([each.work.remote(0) for each in actors])

            def test_one_after_the_other():
                for _ in range(3):
                    actor = Actor.remote()
                    ray.kill(actor)

            def test_halves():
                actors = [Host.options(num_gpus=0.5).remote() for _ in range(2)]

            def test_groups():
                one = ray.util.placement_group([{"GPU": 1, "CPU": 1}] * 2, strategy="PACK")
                other = placement_group([{"GPU": 1}] * 2)
                ray.get([one.ready(), other.ready()])
                Actor.options(scheduling_strategy=PlacementGroupSchedulingStrategy(placement_group=one)).remote()

            def test_given():
                Actor.options(num_gpus=4).remote()

            def test_what_an_actor_does():
                ray.get(Actor.options(num_gpus=2).remote().work.remote(1))

            def test_host():
                assert ray.get(Host.remote().work.remote()) == 1
            """
        },
    )
    assert found == {
        "test_tasks": (1, 1, 1),
        "test_actors": (3, 3, 3),
        "test_one_after_the_other": (1, 1, 1),
        "test_halves": (1, 1, 1),
        "test_groups": (4, 4, 4),
        "test_given": (4, 4, 4),
        "test_what_an_actor_does": (2, 2, 2),
        "test_host": (0, None, 0),
    }


def test_what_ranks_gather_is_not_what_was_in_the_list_and_a_rank_that_is_not_there_gets_nothing():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            import torch.distributed as dist
            from torch.testing._internal.common_distributed import MultiProcessTestCase

            class TestIt(MultiProcessTestCase):
                def setUp(self):
                    super().setUp()
                    self._spawn_processes()

                @property
                def world_size(self):
                    return torch.cuda.device_count()

                def _start(self):
                    dist.init_process_group("nccl", world_size=self.world_size, rank=self.rank)

                def test_gathered(self):
                    self._start()
                    found = [None] * dist.get_world_size()
                    dist.all_gather_object(found, self.rank)
                    for rank, each in enumerate(found):
                        self.assertEqual(rank, each)

                def test_sent(self):
                    self._start()
                    given = [None]
                    if self.rank == 0:
                        dist.send_object_list(given, 1)
                    if self.rank == 1:
                        dist.recv_object_list(given, 0)
                        self.assertEqual(99, given[0])
            """
        },
    )
    assert found == {"TestIt::test_gathered": (1, 1, 8), "TestIt::test_sent": (2, 2, 8)}


def test_a_test_that_joins_a_group_of_nccl_through_the_library_has_a_device():
    found = devices_of(
        "tests/test_it.py",
        {
            "engine/__init__.py": """
            def start(world_size=-1, rank=-1, method="env://", backend="nccl"):
                pass
            """,
            "tests/test_it.py": """
            import pytest
            from engine import start

            @pytest.fixture
            def group():
                start(world_size=1, rank=0, backend="nccl")

            def test_grouped(group):
                pass

            def test_default():
                start(1, 0)

            def test_on_the_host():
                start(world_size=1, rank=0, backend="gloo")
            """,
        },
    )
    assert found == {"test_grouped": (1, 1, 1), "test_default": (1, 1, 1), "test_on_the_host": (0, None, 0)}


def test_a_test_that_joins_a_group_by_the_environment_is_started_by_torchrun_with_a_rank_for_each_device():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import os
            import pytest
            import torch
            import torch.distributed as dist

            class TestEight:
                @classmethod
                def setup_class(cls):
                    if not dist.is_initialized():
                        dist.init_process_group(backend="nccl")
                    if torch.cuda.is_available():
                        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
                    if dist.get_world_size() != 8:
                        pytest.skip("eight")

                def test_it(self):
                    assert dist.get_rank() < 8

            def test_any():
                dist.init_process_group("nccl")
                torch.ones(1, device="cuda")

            def test_one(monkeypatch):
                monkeypatch.setenv("RANK", "0")
                monkeypatch.setenv("WORLD_SIZE", "1")
                dist.init_process_group("nccl")
            """,
            "test_other.py": """
            import torch.distributed as dist

            def test_alone():
                dist.init_process_group("nccl")
            """,
        },
    )
    assert found == {"TestEight::test_it": (8, 8, 8), "test_any": (1, 1, 8), "test_one": (1, 1, 1)}


def test_a_file_for_accelerates_launcher_says_the_number_of_processes_that_the_test_writes_into_it():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import tempfile
            import textwrap
            from pathlib import Path
            from accelerate.test_utils import get_launch_command
            from accelerate.test_utils.testing import run_command

            def test_three():
                with tempfile.TemporaryDirectory() as folder:
                    file = Path(folder) / "config.yaml"
                    file.write_text(textwrap.dedent('''
                        distributed_type: "MULTI_GPU"
                        num_processes: 3
                        '''))
                    run_command(["accelerate", "launch", "--config_file", str(file), "-m", "tests.it"])

            def test_one():
                file = Path(tempfile.mkdtemp()) / "config.yaml"
                file.write_text("num_processes: 1")
                run_command(["accelerate", "launch", f"--config_file={file}", "-m", "tests.it"])

            def test_two():
                file = Path(tempfile.mkdtemp()) / "config.yaml"
                file.write_text("num_processes: 2")
                run_command(get_launch_command(config_file=str(file), monitor_interval=0.1) + ["-m", "tests.it"])
            """
        },
    )
    assert found == {"test_three": (3, 3, 3), "test_one": (1, 1, 1), "test_two": (2, 2, 2)}


def test_a_loop_that_starts_workers_for_no_size_at_all_is_a_pass_without_workers():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            import torch.multiprocessing as mp

            def sizes():
                return [size for size in (1, 2, 4) if size <= torch.cuda.device_count()]

            def work(rank, size):
                torch.cuda.set_device(rank)

            def for_all(func, sizes=sizes()):
                for size in sizes:
                    mp.spawn(func, args=(size,), nprocs=size)

            def test_all():
                for_all(work)

            def test_here():
                for size in sizes():
                    processes = [mp.Process(target=work, args=(rank, size)) for rank in range(size)]
                    for process in processes:
                        process.start()

            def test_host():
                for size in sizes():
                    assert size
            """
        },
    )
    assert found == {"test_all": (1, 1, 4), "test_here": (1, 1, 4), "test_host": (0, None, 0)}


def test_a_test_that_a_rank_leaves_is_judged_by_the_ranks_that_stay():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            import torch.distributed as dist
            import torch.multiprocessing as mp
            from torch.testing._internal.common_distributed import MultiProcessTestCase

            def work(rank, size):
                if rank > 1:
                    return
                torch.zeros(1).cuda(rank)

            def test_spawned():
                mp.spawn(work, args=(4,), nprocs=4)

            class TestIt(MultiProcessTestCase):
                def setUp(self):
                    super().setUp()
                    self._spawn_processes()

                @property
                def world_size(self):
                    return 4

                def _start(self):
                    dist.init_process_group("gloo", rank=self.rank, world_size=self.world_size)

                def test_even(self):
                    self._start()
                    enough = torch.cuda.device_count() >= self.world_size
                    device = torch.device(self.rank) if enough else torch.device("cpu")
                    members = [rank for rank in range(self.world_size) if rank % 2 == 0]
                    if self.rank not in members:
                        return
                    torch.nn.Linear(2, 2).to(device)

                def test_first(self):
                    self._start()
                    if self.rank == 0:
                        torch.zeros(1).cuda()

                def test_nobody(self):
                    self._start()
                    if dist.get_rank() < 4:
                        return
                    torch.zeros(1).cuda()
            """
        },
    )
    assert found == {
        "test_spawned": (2, 2, 2),
        "TestIt::test_even": (0, 4, 4),
        "TestIt::test_first": (1, 1, 1),
        "TestIt::test_nobody": (0, None, 0),
    }


def test_a_frameworks_run_loop_is_known_where_its_file_is_in_the_tree_and_is_imported_as_a_module():
    found = devices_of(
        "test/test_it.py",
        {
            "torch/__init__.py": "",
            "torch/testing/__init__.py": "",
            "torch/testing/_internal/__init__.py": "",
            "torch/testing/_internal/common_distributed.py": """
            import unittest

            class MultiProcessTestCase(unittest.TestCase):
                pass
            """,
            "test/test_it.py": """
            import torch
            from torch.testing._internal import common_distributed

            class TestIt(common_distributed.MultiProcessTestCase):
                world_size = 3

                def test_all(self):
                    torch.zeros(1).cuda(self.rank)
            """,
        },
    )
    assert found == {"TestIt::test_all": (3, 3, 3)}


def test_a_mark_of_a_world_has_a_device_for_each_rank_where_another_mark_says_that_it_is_for_devices():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/common.py": """
            import pytest

            def world_size(*sizes):
                cases = [pytest.param(size, marks=pytest.mark.world_size(size)) for size in sizes]
                return lambda test: pytest.mark.parametrize("world_size", cases)(test)
            """,
            "tests/test_it.py": """
            import pytest
            import torch
            from composer import Trainer
            from tests.common import world_size

            @world_size(1, 4)
            @pytest.mark.gpu
            def test_devices(world_size):
                torch.zeros(1, device="cuda")

            @pytest.mark.gpu
            @pytest.mark.world_size(2)
            def test_library():
                Trainer(device="gpu").fit()

            @world_size(4)
            def test_host(world_size):
                Trainer().fit()
            """,
        },
    )
    assert found == {
        "test_devices[1]": (1, 1, 1),
        "test_devices[4]": (4, 4, 4),
        "test_library": (2, 2, 2),
        "test_host[4]": (0, None, 0),
    }


def test_of_ranks_that_a_launcher_has_started_each_takes_the_device_that_it_reads_from_the_environment():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import os
            import pytest
            import torch

            def take():
                if "RANK" not in os.environ or int(os.environ["WORLD_SIZE"]) < 2:
                    pytest.skip("two ranks")
                local = int(os.environ.get("LOCAL_RANK", os.environ["RANK"]))
                torch.cuda.set_device(local % torch.cuda.device_count())
                return torch.device("cuda", torch.cuda.current_device())

            def test_each():
                torch.zeros(3, device=take())

            def test_told():
                assert int(os.environ["RANK"]) >= 0
                torch.zeros(3, device="cuda:1")

            def test_on_the_host():
                assert int(os.environ["LOCAL_RANK"]) >= 0
            """,
        },
    )
    assert found == {"test_each": (2, 2, 8), "test_told": (2, 2, 2), "test_on_the_host": (0, None, 0)}


def test_a_librarys_own_data_parallel_takes_all_devices_too_and_one_of_ranks_does_not():
    found = devices_of(
        "tests/test_it.py",
        {
            "lib/__init__.py": "",
            "lib/engines.py": """
            class DataParallelEngine:
                def __init__(self, fp16=False):
                    pass

            class DistributedDataParallelEngine:
                pass
            """,
            "tests/test_it.py": """
            import pytest
            import torch
            from elsewhere import FullyShardedDataParallel, MMDataParallel
            from lib import engines

            pytestmark = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="devices")

            def test_engine():
                engines.DataParallelEngine(fp16=True)

            def test_told():
                MMDataParallel(torch.nn.Linear(1, 1), device_ids=[0])

            def test_told_two():
                MMDataParallel(torch.nn.Linear(1, 1), [0, 2])

            def test_ranks():
                engines.DistributedDataParallelEngine()
                FullyShardedDataParallel(torch.nn.Linear(1, 1))
                torch.ones(1, device="cuda")
            """,
        },
    )
    assert found == {
        "test_engine": (2, 2, 8),
        "test_told": (2, 2, 2),
        "test_told_two": (3, 3, 3),
        "test_ranks": (2, 2, 2),
    }


def test_a_rank_that_joins_through_a_function_of_the_library_that_chooses_a_device_has_one():
    found = devices_of(
        "tests/test_it.py",
        {
            "lib/__init__.py": "",
            "lib/ranks.py": """
            import os
            import torch
            import torch.distributed as dist

            def init_dist():
                torch.accelerator.set_device_index(int(os.environ["LOCAL_RANK"]))
                dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")

            def init_distributed():
                dist.init_process_group("gloo")
            """,
            "tests/test_it.py": """
            import torch.multiprocessing as mp
            from lib.ranks import init_dist, init_distributed

            def chooses(rank):
                init_dist()

            def stays(rank):
                init_distributed()

            def test_chooses():
                mp.spawn(chooses, nprocs=2)

            def test_stays():
                mp.spawn(stays, nprocs=2)
            """,
        },
    )
    assert found == {"test_chooses": (2, 2, 2), "test_stays": (0, None, 0)}


def test_what_one_process_spends_in_the_library_is_not_missing_to_the_next():
    found = devices_of(
        "tests/test_it.py",
        {
            "lib/__init__.py": "",
            "lib/ranks.py": """
            import os

            def update_environment(values):
                for name, value in values.items():
                    os.environ[name] = value

            def count_long():
                total = 0
                for each in range(1000):
                    total += each
                return total
            """,
            "tests/test_it.py": """
            import os
            import torch
            import torch.multiprocessing as mp
            from lib.ranks import count_long, update_environment

            def works(environment):
                update_environment(environment)
                torch.accelerator.set_device_index(int(os.environ["LOCAL_RANK"]))
                for _ in range(4):
                    count_long()

            def test_four():
                for rank in range(4):
                    process = mp.Process(target=works, args=({"LOCAL_RANK": str(rank)},))
                    process.start()
            """,
        },
    )
    assert found == {"test_four": (4, 4, 4)}


def test_what_a_process_has_joined_and_its_environment_end_with_it():
    (found,) = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import os
            import pytest, torch
            import torch.distributed as dist
            import torch.multiprocessing as mp

            def replica(number):
                torch.cuda.set_device(number)
                os.environ["REPLICA"] = str(number)
                dist.init_process_group("nccl", init_method="tcp://localhost:2950", world_size=1, rank=0)

            def test_replicas():
                for number in range(3):
                    if "REPLICA" in os.environ:
                        pytest.skip("replicas start no others")
                    mp.Process(target=replica, args=(number,)).start()
            """
        },
    ).values()
    assert (found.min, found.devices["8"], found.ranks["8"]) == (3, 3, 3)


def test_ranks_that_mpi_starts_of_a_program_that_nobody_knows_are_less_sure_than_those_that_are_told_of_devices():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import subprocess

            def test_of_mpi():
                subprocess.check_call("mpirun -np 4 ./solve input.txt".split())

            def test_of_pytorch():
                subprocess.check_call("torchrun --nproc_per_node 4 train.py --device cuda".split())
            """
        },
    )
    assert {name: (each.min, each.confidence.name) for name, each in found.items()} == {
        "test_of_mpi": (4, "MEDIUM"),
        "test_of_pytorch": (4, "HIGH"),
    }


def test_a_decorator_that_nobody_knows_and_that_is_told_a_number_of_processes_starts_so_many_ranks():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import os
            import pytest, torch
            import torch.distributed as dist
            from acme.test_utils import run_with_pet, seeded

            @pytest.mark.skipif(not torch.cuda.is_available(), reason="devices")
            @pytest.mark.parametrize("kind", ["full", "sharded"])
            @run_with_pet(nproc=2)
            def test_told(tmp_path, kind):
                dist.init_process_group(backend="nccl")
                torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
                torch.ones(1, device="cuda")

            @run_with_pet(nproc=3)
            def test_host():
                dist.init_process_group(backend="gloo")
                assert dist.get_world_size() == 3

            @seeded(seed=3)
            def test_told_something_else():
                torch.ones(1, device="cuda")
            """
        },
    )
    assert {name: (each.min, each.full, each.ranks.get("8"), each.confidence.name) for name, each in found.items()} == {
        "test_told[full]": (2, 2, 2, "MEDIUM"),
        "test_told[sharded]": (2, 2, 2, "MEDIUM"),
        "test_host": (0, 0, 3, "MEDIUM"),
        "test_told_something_else": (1, 1, None, "HIGH"),
    }
    assert [each.value for each in found["test_told[full]"].profile.values()][:3] == ["skip", "fail", "run"]


def test_a_decorator_that_nobody_can_read_and_that_is_told_a_number_of_devices_needs_so_many():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import torch
            from acme.test_utils import RunOnlyIf, conditional, gpu_timeout, needs
            from acme.test_utils import require_devices, skip_if_lt_x_gpus, up_to_gpus

            @require_devices(4)
            def test_by_position():
                torch.ones(1, device="cuda")

            @needs(gpus=2)
            class TestByName:
                def test_host(self):
                    assert 1

            @RunOnlyIf(min_gpus=3, standalone=True)
            def test_least():
                assert 1

            @skip_if_lt_x_gpus(2)
            def test_fewer():
                assert 1

            @gpu_timeout(4)
            @up_to_gpus(2)
            def test_something_else():
                assert 1

            @conditional(cuda=True)
            def test_kind():
                assert 1
            """
        },
    )
    assert {name: (each.min, each.full, each.confidence.name) for name, each in found.items()} == {
        "test_by_position": (4, 4, "MEDIUM"),
        "TestByName::test_host": (2, 2, "MEDIUM"),
        "test_least": (3, 3, "MEDIUM"),
        "test_fewer": (2, 2, "MEDIUM"),
        "test_something_else": (0, 0, "MEDIUM"),
        "test_kind": (0, 0, "MEDIUM"),
    }
    assert found["test_by_position"].reasons["2"] == "require_devices is told of 4 devices"
    assert [each.text for each in found["test_least"].evidence] == ["@RunOnlyIf(min_gpus=3, standalone=True)"]


def test_what_starts_a_rank_may_be_extended_by_the_tests():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import os
            from torch.testing._internal.common_distributed import skip_if_lt_x_gpu
            from torch.testing._internal.common_fsdp import FSDPTest

            class TestLogged(FSDPTest):
                @classmethod
                def _run(cls, *args, **kwargs):
                    os.environ["NCCL_DEBUG"] = "INFO"
                    super()._run(*args, **kwargs)

                @skip_if_lt_x_gpu(2)
                def test_logged(self):
                    pass

                @skip_if_lt_x_gpu(4)
                def test_wide(self):
                    pass
            """
        },
    )
    assert found == {"TestLogged::test_logged": (2, 2, 8), "TestLogged::test_wide": (4, 4, 8)}


def test_a_test_of_as_many_ranks_as_devices_runs_on_these_where_it_starts_none_without():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            from torch.testing._internal.common_distributed import MultiProcessTestCase

            class TestRing(MultiProcessTestCase):
                @property
                def world_size(self):
                    return torch.cuda.device_count()

                def test_plan(self):
                    assert sum(range(4)) == 6
            """
        },
    )
    assert found == {"TestRing::test_plan": (1, 1, 8)}


def test_a_launcher_of_which_nobody_asks_whether_it_has_failed_leaves_a_test_passed_that_did_nothing():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/worker.py": """
            import torch

            torch.ones(1, device="cuda")
            """,
            "tests/test_it.py": """
            import os
            import subprocess

            import torch

            TWO = ["torchrun", "--nproc_per_node=2", "tests/worker.py"]

            def test_as_many_as_devices():
                subprocess.run(["torchrun", f"--nproc_per_node={torch.cuda.device_count()}", "tests/worker.py"])

            def test_two():
                subprocess.run(TWO)

            def test_in_a_shell():
                os.system(" ".join(TWO))

            def test_of_what_it_says():
                assert "done" in subprocess.run(TWO, capture_output=True, text=True).stdout

            def test_checked():
                subprocess.run(TWO, check=True)

            def test_checked_later():
                subprocess.run(TWO).check_returncode()

            def test_of_its_code():
                assert subprocess.run(TWO).returncode == 0

            def test_called():
                assert subprocess.call(TWO) == 0
            """,
        },
    )
    assert {name: (each.min, each.full, each.vacuous, list(each.reasons)) for name, each in found.items()} == {
        "test_as_many_as_devices": (1, 8, [0], []),
        "test_two": (2, 2, [0, 1], []),
        "test_in_a_shell": (2, 2, [0, 1], []),
        "test_of_what_it_says": (2, 2, [0, 1], []),
        "test_checked": (2, 2, [], ["0", "1"]),
        "test_checked_later": (2, 2, [], ["0", "1"]),
        "test_of_its_code": (2, 2, [], ["0", "1"]),
        "test_called": (2, 2, [], ["0", "1"]),
    }
    assert {name for name, each in found.items() if each.confidence != "high"} == {"test_of_what_it_says"}
