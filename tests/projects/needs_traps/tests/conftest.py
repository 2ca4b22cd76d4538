import pytest
import torch


def pytest_configure(config):
    config.addinivalue_line("markers", "devices(n): needs so many")


def pytest_runtest_setup(item):
    mark = item.get_closest_marker("devices")
    if mark is not None and torch.cuda.device_count() < mark.args[0]:
        pytest.skip("not enough devices")


def pytest_collection_modifyitems(config, items):
    for item in items:
        if "big" in item.keywords and torch.cuda.device_count() < 8:
            item.add_marker(pytest.mark.skip(reason="big"))


@pytest.fixture
def pair():
    if torch.cuda.device_count() < 2:
        pytest.skip("a pair")
    return [torch.device("cuda:0"), torch.device("cuda:1")]


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no device")
    return request.param


@pytest.fixture(scope="session")
def pool():
    world_size = min(4, torch.cuda.device_count())
    if world_size < 2:
        pytest.skip("no pool")
    return world_size
