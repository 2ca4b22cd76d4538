"""Names of the dimensions of PyTorch's device meshes: those that are not there cannot be asked for."""

from small_projects import devices_of, needs_of

from sooner.plan.needs import Confidence

LIBRARY = {
    "acme/__init__.py": "",
    "acme/degrees.py": """
        from dataclasses import dataclass
        from torch.distributed.device_mesh import init_device_mesh

        @dataclass
        class Degrees:
            copies: int
            shards: int
            world_size: int
            _whole = None

            def __post_init__(self):
                if self.shards < 0:
                    self.shards = self.world_size // self.copies
                assert self.copies * self.shards == self.world_size

            def build(self, kind):
                return self._build(kind, init_device_mesh)

            def _build(self, kind, make):
                sizes, names = [], []
                for size, name in zip([self.copies, self.shards], ["copies", "shards"]):
                    if size > 1:
                        sizes.append(size)
                        names.append(name)
                mesh = make(kind, sizes, mesh_dim_names=names)
                if self.shards > 1:
                    mesh[("shards",)]._flatten(mesh_dim_name="data")
                return mesh

            @property
            def whole(self):
                if self._whole is None:
                    self._whole = self.build("cuda")
                return self._whole
        """,
}


def test_a_record_makes_a_mesh_of_the_degrees_that_are_more_than_one():
    found = devices_of(
        "tests/test_it.py",
        LIBRARY
        | {
            "tests/test_it.py": """
            import torch
            from torch.testing._internal.common_fsdp import FSDPTest
            from acme.degrees import Degrees

            class TestMeshes(FSDPTest):
                def degrees(self, copies):
                    return Degrees(copies=copies, shards=-1, world_size=self.world_size)

                def test_copies(self):
                    mesh = self.degrees(self.world_size).build("cuda")
                    torch.nn.Linear(2, 2).cuda(mesh["copies"].get_local_rank())

                def test_shards(self):
                    mesh = self.degrees(1).whole
                    self.use(mesh["data"])

                def test_both(self):
                    mesh = self.degrees(self.world_size // 2).build("cuda")
                    self.use(mesh[tuple(["copies", "data"])])

                def test_all(self):
                    self.use(self.degrees(1).build("cuda"))

                def use(self, mesh):
                    torch.ones(1).cuda()
            """
        },
    )
    assert found == {
        "TestMeshes::test_copies": (2, 2, 8),
        "TestMeshes::test_shards": (2, 2, 8),
        "TestMeshes::test_both": (4, 4, 8),
        "TestMeshes::test_all": (1, 1, 8),
    }


def test_names_of_a_mesh_that_the_test_makes_itself():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch
            from torch.distributed.device_mesh import init_device_mesh
            from torch.testing._internal.common_fsdp import FSDPTest

            class TestMeshes(FSDPTest):
                @property
                def world_size(self):
                    return 2

                def mesh(self):
                    return init_device_mesh("cuda", (1, 2), mesh_dim_names=("outer", "inner"))

                def test_dimensions(self):
                    mesh = self.mesh()
                    assert mesh.ndim == 2 and mesh["inner"].mesh_dim_names == ("inner",)
                    assert mesh["outer", "inner"]._flatten().mesh_dim_names == ("outer_inner",)
                    mesh["outer_inner"]

                def test_name_that_is_not_there(self):
                    with pytest.raises(KeyError):
                        self.mesh()["middle"]

                def test_name_that_is_not_known(self):
                    mesh = self.mesh()
                    mesh._flatten(mesh_dim_name=torch.get_name())
                    mesh["middle"]

                def test_mesh_without_names(self):
                    init_device_mesh("cuda", (2,))["middle"]
            """
        },
    )
    assert set(found.values()) == {(2, 2, 2)}


def test_a_mesh_says_of_which_kind_of_device_it_is():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import torch
            from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
            from torch.distributed.tensor._random import is_rng_supported_mesh
            from torch.testing._internal.distributed._tensor.common_dtensor import DTensorTestBase, with_comms

            class TestKinds(DTensorTestBase):
                @property
                def world_size(self):
                    return 4

                def uses_one(self, mesh):
                    if mesh.device_type == "cuda":
                        torch.ones(2, device="cuda")

                @with_comms
                def test_without_names(self):
                    self.uses_one(init_device_mesh(self.device_type, (2, 2)))

                @with_comms
                def test_a_part(self):
                    self.uses_one(init_device_mesh(self.device_type, (2, 2), mesh_dim_names=("a", "b"))["a"])

                @with_comms
                def test_made(self):
                    self.uses_one(DeviceMesh(self.device_type, list(range(4))))

                @with_comms
                def test_random(self):
                    if is_rng_supported_mesh(self.build_device_mesh()):
                        torch.ones(2, device="cuda")
            """
        },
    )
    names = ("test_without_names", "test_a_part", "test_made", "test_random")
    assert found == {f"TestKinds::{each}": (0, 4, 4) for each in names}


def test_degrees_of_torchtitans_are_on_the_kind_of_device_that_a_test_puts_in_its_place():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            from unittest.mock import patch

            from torch.testing._internal.distributed._tensor.common_dtensor import DTensorTestBase, with_comms
            from torchtitan.distributed.parallel_dims import ParallelDims

            class TestIt(DTensorTestBase):
                @property
                def world_size(self):
                    return 2

                @with_comms
                def test_patched(self):
                    degrees = ParallelDims(tp=2, dp_shard=1, world_size=2)
                    with patch("torchtitan.distributed.parallel_dims.device_type", self.device_type):
                        degrees.build_mesh()

                @with_comms
                def test_as_it_is(self):
                    ParallelDims(tp=2, dp_shard=1, world_size=2).build_mesh()
            """
        },
    )
    assert found == {"TestIt::test_patched": (0, 2, 2), "TestIt::test_as_it_is": (1, 1, 2)}


_PRETENDED = """
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

def test_pretended():
    dist.init_process_group("fake", rank=0, world_size=4)
    init_device_mesh("cuda", (2, 2))

def test_real_again():
    dist.init_process_group("fake", rank=0, world_size=2)
    dist.destroy_process_group()
    dist.init_process_group("gloo", rank=0, world_size=1)
    DeviceMesh("cuda", [0])
"""


def test_a_mesh_of_ranks_that_only_pretend_uses_no_device_where_pytorch_says_so():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": _PRETENDED,
            "torch/__init__.py": "",
            "torch/distributed/__init__.py": "",
            "torch/distributed/device_mesh.py": """
            def _setup(backend):
                if backend == "fake":
                    return None
            """,
        },
    )
    assert found == {"test_pretended": (0, None, 0), "test_real_again": (1, 1, 1)}


def test_a_mesh_of_ranks_that_only_pretend_may_use_one_where_pytorch_is_not_at_hand():
    found = needs_of("test_it.py", {"test_it.py": _PRETENDED})
    assert found["test_pretended"].min == 1
    assert found["test_pretended"].confidence is Confidence.MEDIUM
    assert found["test_real_again"].confidence is Confidence.HIGH


def test_pytorchs_tests_of_any_accelerator_are_skipped_without_one():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            from torch.testing._internal.common_utils import TestCase, requires_accelerator

            @requires_accelerator
            class TestIt(TestCase):
                def test_one(self):
                    pass
            """
        },
    )
    assert found == {"TestIt::test_one": (1, 1, 1)}


def test_a_mesh_of_devices_joins_ranks_by_nccl_that_have_joined_no_group():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import os

            import torch
            import torch.distributed as dist
            from torch.distributed.device_mesh import init_device_mesh
            from torch.multiprocessing import spawn

            def by_the_mesh(rank, world, kind):
                os.environ["RANK"], os.environ["WORLD_SIZE"] = str(rank), str(world)
                init_device_mesh(kind, (world,))

            def by_gloo(rank, world):
                dist.init_process_group("gloo", rank=rank, world_size=world)
                init_device_mesh("cuda", (world,))

            def test_of_devices():
                spawn(by_the_mesh, args=(4, "cuda"), nprocs=4)

            def test_of_the_host():
                spawn(by_the_mesh, args=(4, "cpu"), nprocs=4)

            def test_joined():
                spawn(by_gloo, args=(4,), nprocs=4)

            def test_alone():
                init_device_mesh("cuda", (1,))
            """,
        },
    )
    assert found == {
        "test_of_devices": (4, 4, 4),
        "test_of_the_host": (0, None, 0),
        "test_joined": (1, 1, 1),
        "test_alone": (1, 1, 1),
    }
