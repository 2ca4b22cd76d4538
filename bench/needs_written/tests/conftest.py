"""Hooks and fixtures of a written project."""

import pytest, torch
from helpers import NUM, REQUIRES, Guard, dc, require

collect_ignore = ["test_0.py"] if NUM < 2 else []

def pytest_addoption(parser):
    parser.addoption("--most", type=int, default=8)
    parser.addoption("--slow", action="store_true")

def pytest_configure(config):
    for name in ("world", "least", "drop", "tier", "distributed"):
        config.addinivalue_line("markers", name)

def pytest_collection_modifyitems(items):
    kept = []
    for item in items:
        mark = item.get_closest_marker("drop")
        if mark is None or dc() >= mark.args[0]:
            kept.append(item)
        if "least" in item.keywords:
            item.add_marker(REQUIRES[4])
    items[:] = kept

def pytest_runtest_setup(item):
    for mark in item.iter_markers("world"):
        n = mark.args[0] if mark.args else mark.kwargs.get("n", 2)
        if n > NUM:
            pytest.skip(f"world {n}")

def pytest_generate_tests(metafunc):
    if "ranks" in metafunc.fixturenames:
        metafunc.parametrize("ranks", [1, 2, 4])

@pytest.fixture(autouse=True)
def tier(request):
    mark = request.node.get_closest_marker("tier")
    if mark is not None:
        least = mark.kwargs.get("least", 1)
        if dc() < least:
            pytest.skip("tier")
        return least
    return getattr(request.module, "TIER", 0)

@pytest.fixture(scope="session")
def device_count():
    return NUM

@pytest.fixture(scope="session", name="pair")
def _pair(device_count):
    if device_count < 2:
        pytest.skip("pair")
    return ["cuda:0", "cuda:1"]

@pytest.fixture
def four(pair, device_count):
    if device_count < 4:
        pytest.skip("four")
    yield pair + ["cuda:2", "cuda:3"]

@pytest.fixture
def most(request):
    return min(request.config.getoption("--most"), NUM)

@pytest.fixture(params=["cpu", "cuda", "cuda:1"])
def where(request):
    if request.param != "cpu" and NUM == 0:
        pytest.skip("no cuda")
    return torch.device(request.param)

@pytest.fixture
def spawned(request, monkeypatch):
    n = request.param["n"] if isinstance(request.param, dict) else request.param
    monkeypatch.setenv("WORLD_SIZE", str(n))
    require(n)
    return n

@pytest.fixture
def make_guard():
    def make(n=2, **options):
        require(n)
        return Guard(n, **options)
    return make

@pytest.fixture(params=range(max(NUM, 1)), ids=lambda index: f"d{index}")
def each_device(request):
    if NUM == 0:
        pytest.skip("none")
    return torch.device("cuda", request.param)

@pytest.fixture(scope="class")
def listed(request):
    n = getattr(request.cls, "n", 1) if request.cls else 1
    return lambda more=0: [f"cuda:{i}" for i in range(n + more)]
