"""Tests whose ranks another program starts: the file itself, or a script that is told a number of GPUs."""

from small_projects import devices_of

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
