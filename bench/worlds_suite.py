"""Twenty tests of two ranks as PyTorch writes them; `worlds.py` runs them with and without the adapter."""
# ruff: noqa: PT009 - as PyTorch's own tests are written

import os

import torch
import torch.distributed as dist
from torch.testing._internal.common_distributed import MultiProcessTestCase, requires_gloo
from torch.testing._internal.common_utils import instantiate_parametrized_tests, parametrize, run_tests


class CollectivesTest(MultiProcessTestCase):
    """Each test makes its process group and destroys it, as PyTorch's own do."""

    @property
    def world_size(self) -> int:
        return int(os.environ.get("RANKS", "2"))

    def setUp(self) -> None:
        super().setUp()
        self._spawn_processes()

    def _init(self) -> None:
        store = dist.FileStore(self.file_name, self.world_size)
        dist.init_process_group("gloo", store=store, rank=self.rank, world_size=self.world_size)

    @requires_gloo()
    @parametrize("size", [1, 7, 64, 1000, 4096])
    def test_all_reduce(self, size: int) -> None:
        self._init()
        tensor = torch.full((size,), float(self.rank + 1))
        dist.all_reduce(tensor)
        self.assertEqual(tensor, torch.full((size,), self.world_size * (self.world_size + 1) / 2))

    @requires_gloo()
    @parametrize("size", [1, 7, 64, 1000, 4096])
    def test_all_gather(self, size: int) -> None:
        self._init()
        gathered = [torch.zeros(size) for _ in range(self.world_size)]
        dist.all_gather(gathered, torch.full((size,), float(self.rank)))
        for rank, tensor in enumerate(gathered):
            self.assertEqual(tensor, torch.full((size,), float(rank)))

    @requires_gloo()
    @parametrize("source", [0, 1])
    @parametrize("size", [1, 64, 4096])
    def test_broadcast(self, source: int, size: int) -> None:
        self._init()
        tensor = torch.full((size,), float(self.rank))
        dist.broadcast(tensor, source)
        self.assertEqual(tensor, torch.full((size,), float(source)))

    @requires_gloo()
    @parametrize("size", [1, 64, 1000, 4096])
    def test_send_and_receive(self, size: int) -> None:
        self._init()
        if self.rank == 0:
            dist.send(torch.arange(size), 1)
        else:
            tensor = torch.empty(size, dtype=torch.int64)
            dist.recv(tensor, 0)
            self.assertEqual(tensor, torch.arange(size))


instantiate_parametrized_tests(CollectivesTest)

if __name__ == "__main__":
    run_tests()
