from typing import NamedTuple

import pytest
import torch


class ParallelSetup(NamedTuple):
    tp_size: int
    pp_size: int
    eager_mode: bool


class Settings:
    def __init__(self, setups, backends=("mp",)):
        self.setups = setups
        self.backends = backends

    @staticmethod
    def fast(*, tp_base=1, pp_base=2):
        return Settings([ParallelSetup(tp_base, pp_base, True), ParallelSetup(tp_base * 2, pp_base, False)])

    def iter_params(self, model_id):
        for setup in self.setups:
            for backend in self.backends:
                yield (model_id, setup, backend)


MODELS = {"org/small": Settings.fast(), "org/large": Settings.fast(tp_base=4)}
CHOSEN = ["org/small"]


def _compare(setup, *, num_gpus_available):
    tp_size, pp_size, eager = setup
    if num_gpus_available < tp_size * pp_size:
        pytest.skip(f"Need at least {tp_size} x {pp_size} GPUs")


@pytest.fixture
def num_gpus_available():
    return torch.cuda.device_count()


@pytest.mark.parametrize(
    ("model_id", "setup", "backend"),
    [params for model_id, settings in MODELS.items() for params in settings.iter_params(model_id) if model_id in CHOSEN],
)
def test_matrix(model_id, setup, backend, num_gpus_available):
    _compare(setup, num_gpus_available=num_gpus_available)


@pytest.mark.skipif(
    torch.cuda.device_count() < 2 or not torch.cuda.is_available(), reason="two"
)
@pytest.mark.parametrize("dtype", ["half", "float"])
@pytest.mark.parametrize("size", [1, 2])
def test_products(size, dtype):
    torch.zeros(size, device="cuda")


def gpus_at_least(n):
    return torch.cuda.is_available() and torch.cuda.device_count() >= n


requires_4 = pytest.mark.skipif(not gpus_at_least(4), reason="4")


@requires_4
class TestFour:
    def test_in_class(self):
        pass

    @pytest.mark.xfail(reason="known")
    def test_expected(self):
        assert False


@pytest.fixture(scope="module", autouse=False)
def cluster(request):
    n = getattr(request, "param", 2)
    if torch.cuda.device_count() < n:
        pytest.skip("cluster")
    yield n


@pytest.mark.parametrize("cluster", [1, 4], indirect=True)
def test_indirect(cluster):
    pass


def test_default_cluster(cluster):
    assert cluster == 2


@pytest.mark.parametrize("world", [pytest.param(2, id="two"), pytest.param(8, id="eight", marks=pytest.mark.slow)])
def test_worlds(world):
    available = torch.cuda.device_count()
    if not available >= world:
        return pytest.skip(reason=f"{world} > {available}")
    assert world
