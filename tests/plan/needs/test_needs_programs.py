"""Tests whose ranks another program starts: the file itself, or a script that is told a number of GPUs."""

from small_projects import devices_of, needs_of

_CONTINUOUS = """
import os
import sys

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.common_distributed import MultiProcContinousTest


class RanksTest(MultiProcContinousTest):
    @classmethod
    def backend_str(cls):
        return "nccl"

    def test_ranks(self):
        torch.ones(1, device=f"cuda:{self.rank}")

    def test_mesh(self):
        init_device_mesh("cuda", (2, 2))

"""
_ENDS = """
if __name__ == "__main__":
    if torch.cuda.device_count() < 4:
        sys.exit(0)
    rank = int(os.getenv("RANK", -1))
    world_size = int(os.getenv("WORLD_SIZE", 4))
    if rank != -1:
        RanksTest.run_rank(rank, world_size)
    else:
        torch.multiprocessing.spawn(RanksTest.run_rank, nprocs=world_size, args=(world_size, "file"))
"""
_OTHERWISE = """
if __name__ == "__main__":
    run_tests()
"""


def test_ranks_that_a_file_starts_when_it_is_run_as_a_program_are_as_many_as_it_says():
    found = devices_of("test_it.py", {"test_it.py": _CONTINUOUS + _ENDS})
    assert found == {"RanksTest::test_ranks": (4, 4, 4), "RanksTest::test_mesh": (4, 4, 4)}


def test_a_mesh_that_is_larger_than_the_group_of_ranks_fails():
    found = devices_of("test_it.py", {"test_it.py": _CONTINUOUS + _OTHERWISE})
    assert found == {"RanksTest::test_ranks": (1, 1, 8), "RanksTest::test_mesh": (4, 4, 8)}


def test_a_mesh_of_ranks_that_nobody_has_fails_and_a_mesh_of_the_host_needs_nothing():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            from torch.distributed.device_mesh import DeviceMesh
            from torch.testing._internal.common_fsdp import FSDPTest

            class MeshTest(FSDPTest):
                def test_some_ranks(self):
                    DeviceMesh("cuda", [[0, 2], [1, 3]])

                def test_all_ranks(self):
                    DeviceMesh("cuda", torch.arange(self.world_size))

            def test_alone():
                DeviceMesh("cpu", [0, 1, 2, 3])
            """
        },
    )
    assert found == {
        "MeshTest::test_some_ranks": (4, 4, 8),
        "MeshTest::test_all_ranks": (1, 1, 8),
        "test_alone": (0, None, 0),
    }


def test_of_what_subtests_go_through_the_last_is_looked_at_too():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            from torch.testing._internal.common_fsdp import FSDPTest

            class LastTest(FSDPTest):
                def test_last(self):
                    self.run_subtests({"ranks": [1, 2, 4], "flag": [True]}, self._needs_ranks)

                def test_only(self):
                    self.run_subtests({"ranks": [1], "flag": [True]}, self._needs_ranks)

                def test_nothing(self):
                    self.run_subtests({}, self._needs_ranks)

                def _needs_ranks(self, ranks=2, flag=True):
                    assert self.world_size >= ranks

                def test_long(self):
                    self.run_subtests({"turns": [0, 100_000]}, self._turn)

                def _turn(self, turns):
                    for _ in range(turns):
                        for _ in range(turns):
                            str(_)
            """
        },
    )
    assert found == {
        "LastTest::test_last": (4, 4, 8),
        "LastTest::test_only": (1, 1, 8),
        "LastTest::test_nothing": (2, 2, 8),
        "LastTest::test_long": (1, 1, 8),
    }


def test_ranks_fail_that_are_no_multiple_of_those_that_keep_their_shards_together():
    profiles = {
        name: "".join(each.value[0] for each in needs.profile.values())
        for name, needs in needs_of(
            "test_it.py",
            {
                "test_it.py": """
                import torch
                from functools import partial
                from torch.distributed.device_mesh import init_device_mesh
                from torch.distributed.fsdp import fully_shard
                from torch.nn import Linear
                from torch.testing._internal.common_fsdp import FSDPTest

                class ShardTest(FSDPTest):
                    def test_two(self):
                        self.run_subtests({"together": [True, False, 2]}, self._shard)

                    def _shard(self, together):
                        partial(fully_shard, reshard_after_forward=together)(Linear(4, 4))

                    def test_four(self):
                        fully_shard(Linear(4, 4), reshard_after_forward=4)

                    def test_all(self):
                        fully_shard(Linear(4, 4), reshard_after_forward=True)

                    def test_mesh(self):
                        mesh = init_device_mesh("cuda", (2, self.world_size // 2), mesh_dim_names=("a", "b"))
                        fully_shard(Linear(4, 4), mesh=mesh, reshard_after_forward=4)
                """
            },
        ).items()
    }
    assert {name: each[1:] for name, each in profiles.items()} == {
        "ShardTest::test_two": "frfrr",
        "ShardTest::test_four": "fffrr",
        "ShardTest::test_all": "rrrrr",
        "ShardTest::test_mesh": "frrrr",
    }


def test_a_group_that_only_pretends_has_the_ranks_that_it_was_told():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch.distributed as dist
            from torch.distributed.device_mesh import init_device_mesh

            def test_many_ranks():
                dist.init_process_group("fake", rank=0, world_size=16)
                init_device_mesh("cpu", (2, 8))
            """
        },
    )
    assert found == {"test_many_ranks": (0, None, 0)}


def test_a_mesh_as_long_as_its_group_is_the_whole_group_whatever_ranks_it_names():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch.distributed as dist
            from torch.distributed.device_mesh import DeviceMesh

            def test_two_of_two():
                dist.init_process_group("fake", rank=3, world_size=2)
                DeviceMesh("cpu", [1, 3])

            def test_one_of_two():
                dist.init_process_group("fake", rank=0, world_size=2)
                DeviceMesh("cpu", [3])
            """
        },
    )
    assert found == {"test_two_of_two": (0, None, 0), "test_one_of_two": (None, None, None)}


def test_a_script_whose_environment_says_a_number_of_gpus_uses_them():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import os
            import subprocess

            def trains(ngpu):
                env = os.environ.copy()
                env["NGPU"] = str(ngpu)
                try:
                    subprocess.run(["./train.sh", "--steps", "10"], env=env, check=True)
                    return True
                except subprocess.CalledProcessError:
                    return False

            def test_four():
                assert trains(ngpu=4)

            def test_none():
                subprocess.run(["./train.sh"], env={"STEPS": "4"}, check=True)
            """
        },
    )
    assert found == {"test_four": (4, 4, 4), "test_none": (0, None, 0)}


_SHELL_TESTS = """
import os
import subprocess
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent.resolve()

def test_all():
    subprocess.run(["bash", str(HERE / "run_all.sh")], env={**os.environ, "SECONDS_EACH": "9"}, check=True)

def test_given():
    subprocess.run(["bash", "tests/run_given.sh", "4"], check=True)

def test_told():
    subprocess.run(["./tests/run_told.sh"], env={"RANKS_EACH": "3"}, check=True)

def test_chosen():
    subprocess.run("bash tests/run_chosen.sh", shell=True)

def test_none():
    subprocess.run(["bash", str(HERE / "run_none.sh")], check=True)
"""
_SHELL_SCRIPTS = {
    "tests/run_all.sh": """\
    #!/bin/bash
    FOUND=$(nvidia-smi -L 2>/dev/null | wc -l)
    RANKS="${RANKS:-${FOUND}}"
    if [ "${RANKS}" -gt 8 ]; then RANKS=8; fi
    run_it() {
      local label="$1"
      LABEL="${label}" timeout --kill-after=10 60 \\
        torchrun --standalone --nproc-per-node="${RANKS}" work.py 2>&1 | tee "${label}.txt"
    }
    run_it "first"
    """,
    "tests/run_given.sh": """\
    ARGS=(
      --nnodes 1  # one
      --nproc_per_node ${1:-8}
    )
    torchrun ${ARGS[@]} work.py
    """,
    "tests/run_told.sh": "export N=$RANKS_EACH && python -m torch.distributed.run --nproc_per_node=$N work.py\n",
    "tests/run_chosen.sh": """\
    if [ "$1" = wide ]; then
      torchrun --nproc_per_node=8 work.py
    else
      torchrun --nproc_per_node=2 work.py
    fi
    """,
    "tests/run_none.sh": "# torchrun --nproc_per_node=8 work.py\\necho torchrun --nproc_per_node=8\\npython work.py\n",
}


def test_ranks_that_a_shell_script_of_the_tree_starts_are_a_tests_and_what_stands_under_a_condition_is_in_doubt():
    found = needs_of("tests/test_it.py", {"tests/test_it.py": _SHELL_TESTS} | _SHELL_SCRIPTS)
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_all": (1, 1, 8),
        "test_given": (4, 4, 4),
        "test_told": (3, 3, 3),
        "test_chosen": (0, None, 0),
        "test_none": (0, None, 0),
    }
    assert [found[name].confidence for name in ("test_given", "test_chosen", "test_none")] == [
        "medium",
        "medium",
        "high",
    ]


def test_a_shell_variable_that_doubles_itself_is_not_followed_and_a_condition_in_a_loop_is_one():
    doubled = "A=$A$A\n" * 40 + "torchrun --nproc_per_node=2 work.py $A\n"
    looped = "for i in 1 2; do if wide; then torchrun --nproc_per_node=8 work.py; fi; done\n"
    text = """
    import subprocess

    def test_doubled():
        subprocess.run(["bash", "doubled.sh"], check=True)

    def test_looped():
        subprocess.run(["bash", "looped.sh"], check=True)
    """
    found = devices_of("test_it.py", {"test_it.py": text, "doubled.sh": doubled, "looped.sh": looped})
    assert found == {"test_doubled": (2, 2, 2), "test_looped": (0, None, 0)}


def test_a_file_of_the_tree_that_python_runs_is_a_part_of_the_test():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/workers/second.py": """
            import torch

            def main():
                torch.ones(1, device="cuda:1")

            if __name__ == "__main__":
                main()
            """,
            "tests/workers/told.py": """
            import argparse
            import torch

            parser = argparse.ArgumentParser()
            parser.add_argument("--devices", type=int, default=1)
            parser.add_argument("--cpu", action="store_true")
            args = parser.parse_args()
            if not args.cpu:
                for index in range(args.devices):
                    torch.ones(1, device=f"cuda:{index}")
            """,
            "tests/workers/meets.py": """
            import torch.distributed as dist

            dist.init_process_group("gloo")
            """,
            "tests/workers/exits.py": """
            import sys
            import torch

            sys.exit(0 if torch.cuda.device_count() >= 4 else 1)
            """,
            "tests/test_it.py": """
            import os, subprocess, sys
            from pathlib import Path

            HERE = Path(__file__).parent

            def test_checked():
                subprocess.run([sys.executable, str(HERE / "workers" / "second.py")], check=True)

            def test_in_a_shell():
                subprocess.check_call(f"python -u {HERE}/workers/second.py", shell=True)

            def test_looked_at():
                done = subprocess.run(["python3", os.path.join(HERE, "workers", "second.py")])
                assert done.returncode == 0

            def test_waited_for():
                process = subprocess.Popen([sys.executable, str(HERE / "workers" / "second.py")])
                assert process.wait() == 0

            def test_of_a_system():
                assert os.system(f"{sys.executable} {HERE}/workers/second.py") == 0

            def test_told():
                subprocess.check_call([sys.executable, str(HERE / "workers/told.py"), "--devices", "3"])

            def test_by_default():
                subprocess.check_call([sys.executable, str(HERE / "workers/told.py")])

            def test_on_the_host():
                subprocess.check_call([sys.executable, str(HERE / "workers/told.py"), "--devices=3", "--cpu"])

            def test_exits():
                subprocess.check_call([sys.executable, str(HERE / "workers/exits.py")])

            def test_as_many_as_there_are():
                subprocess.check_call(["torchrun", "--nproc_per_node=gpu", str(HERE / "workers/second.py")])

            def test_of_the_host():
                assert os.system(f"torchrun --nproc_per_node=3 {HERE}/workers/meets.py") == 0

            def test_of_the_host_by_its_name(name="meets.py"):
                subprocess.check_call(["torchrun", "--nproc_per_node=3", str(HERE / "workers" / name)])

            def test_masked():
                environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
                subprocess.run([sys.executable, str(HERE / "workers" / "exits.py")], env=environment)
            """,
        },
    )
    assert {name: (each.min, each.confidence.value) for name, each in found.items()} == {
        "test_checked": (2, "high"),
        "test_in_a_shell": (2, "high"),
        "test_looked_at": (2, "medium"),
        "test_waited_for": (2, "medium"),
        "test_of_a_system": (2, "medium"),
        "test_told": (3, "medium"),
        "test_by_default": (1, "high"),
        "test_on_the_host": (0, "medium"),
        "test_exits": (4, "high"),
        "test_as_many_as_there_are": (1, "high"),
        "test_of_the_host": (0, "high"),
        "test_of_the_host_by_its_name": (0, "high"),
        "test_masked": (0, "high"),
    }


def test_a_test_that_starts_its_own_file_uses_what_that_uses_however_its_path_is_written():
    head = """
    import os
    import subprocess
    import sys
    from pathlib import Path

    import torch

    HERE = Path(__file__).resolve()


    def child():
        torch.ones(1, device="cuda:1")
        return 0

    """
    paths = {
        "resolved": "str(HERE)",
        "beside": "str(HERE.parent / HERE.name)",
        "joined": "HERE.parent.joinpath('test_it.py')",
        "absolute": "os.path.abspath(__file__)",
        "real": "os.path.join(os.path.dirname(os.path.realpath(__file__)), 'test_it.py')",
    }
    tests = [
        f"""
    def test_{name}():
        process = subprocess.Popen([sys.executable, {path}, "--child"], stdout=subprocess.PIPE)
        output, _ = process.communicate(timeout=9)
        assert process.returncode == 0
    """
        for name, path in paths.items()
    ]
    end = """
    if __name__ == "__main__":
        raise SystemExit(child())
    """
    found = devices_of("test_it.py", {"test_it.py": head + "".join(tests) + end})
    assert found == {f"test_{name}": (2, 2, 2) for name in paths}


def test_ranks_of_a_program_whose_library_joins_by_nccl_have_a_device_each_where_there_are_any():
    found = needs_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "from acme.training import train",
            "acme/training/__init__.py": """
            from .host import count
            from .ranks import train
            """,
            "acme/training/host.py": "def count(): pass",
            "acme/training/ranks.py": """
            import torch
            import torch.distributed as dist

            def train(use_devices=None):
                use_devices = torch.cuda.is_available() if use_devices is None else use_devices
                dist.init_process_group('nccl' if use_devices else 'gloo')
            """,
            "train.py": """
            from acme import train

            train()
            """,
            "count.py": """
            from acme.training import count

            count()
            """,
            "tests/test_it.py": """
            import subprocess

            LAUNCH = "torchrun --nproc_per_node=3"

            def test_train():
                assert subprocess.run(f"{LAUNCH} train.py", shell=True).returncode == 0

            def test_count():
                assert subprocess.run(f"{LAUNCH} count.py", shell=True).returncode == 0
            """,
        },
    )
    assert {name: (each.min, each.gpu_min, each.full, each.confidence) for name, each in found.items()} == {
        "test_train": (0, 3, 3, "medium"),
        "test_count": (0, None, 0, "high"),
    }


def test_options_beside_a_word_that_is_not_known_are_known():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import argparse, random
            import torch

            def main(args):
                parser = argparse.ArgumentParser()
                parser.add_argument("--devices", type=int, default=1)
                parser.add_argument("--port", type=int)
                parser.add_argument("--cpu", action="store_true")
                given = parser.parse_args(args)
                for index in range(given.devices):
                    torch.ones(1, device="cpu" if given.cpu else f"cuda:{index}")
                if given.port == 4:
                    torch.ones(1, device="cuda:4")

            def test_port():
                main(["--devices", "2", "--port", str(random.randint(29500, 30000))])

            def test_perhaps_another_option():
                main([str(random.choice(["--cpu", "--port=2"]))])
            """
        },
    )
    assert found["test_port"].gpu_min == 2
    assert found["test_perhaps_another_option"].confidence != "high"


def test_a_process_that_absls_test_case_enters_is_looked_at_like_any_other():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import subprocess
            import sys
            from absl.testing import absltest

            class TestIt(absltest.TestCase):
                def test_all_end_well(self):
                    program = "import torch; torch.zeros(1, device='cuda:2')"
                    process = self.enter_context(subprocess.Popen([sys.executable, "-c", program]))
                    process.communicate()
                    self.assertEqual(process.returncode, 0, msg="it failed")
            """
        },
    )
    assert found == {"TestIt::test_all_end_well": (3, 3, 3)}


def test_a_launcher_that_is_told_to_take_all_devices_takes_them_however_that_is_written():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import functools
            import subprocess
            from concurrent.futures import ProcessPoolExecutor

            import torch

            def test_a_word():
                subprocess.run(["torchrun", "--nproc-per-node", "gpu", "work.py"], check=True)

            def test_a_text():
                subprocess.run("torchrun --nproc_per_node gpu work.py", shell=True, check=True)

            def test_or_the_host():
                subprocess.run(["torchrun", "--nproc_per_node=auto", "work.py"], check=True)

            def work(number, kind):
                torch.zeros(1, device=f"{kind}:{number}")

            def test_a_pool():
                with ProcessPoolExecutor(2) as pool:
                    list(pool.map(functools.partial(work, kind="cuda"), range(2)))
            """,
            "work.py": """
            import os
            import torch
            import torch.distributed as dist

            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
            dist.init_process_group("nccl")
            """,
        },
    )
    assert {name: (each.min, each.gpu_min, each.full, each.confidence.value) for name, each in found.items()} == {
        "test_a_word": (1, 1, 8, "high"),
        "test_a_text": (1, 1, 8, "high"),
        "test_or_the_host": (0, 1, 8, "medium"),
        "test_a_pool": (2, 2, 2, "high"),
    }
