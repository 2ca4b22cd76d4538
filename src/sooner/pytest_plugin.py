"""pytest's door: `pytest --gpus=auto` runs a suite's items on all devices of the machine.

Every pytest of the environment imports this module: it registers options and marks and nothing else. What it takes to
run (`sooner.door`) is imported when `--gpus` is given.
"""

import pytest

_MARKS = (
    "gpus(n): the test needs n devices at the same time (sooner)",
    "isolation(level): warm (share a process with other tests) or fork (a process of its own) (sooner)",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; without `--gpus` none of them does anything."""
    group = parser.getgroup("sooner", "run on all devices at once")
    group.addoption("--gpus", metavar="SPEC", help="auto, N, virtual:N, cpu:N, 0,1 or UUIDs: run on these devices")
    group.addoption(
        "--isolation",
        choices=("auto", "warm", "fork"),
        default="auto",
        help="warm: tests share processes (the default); fork: each unit of scheduling has its own",
    )
    group.addoption(
        "--unit",
        choices=("auto", "file", "class", "test"),
        default="auto",
        help="what is scheduled as one: by fixture scope and size (the default), a file, a class, a test",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks; with `--gpus`, let the door in."""
    for mark in _MARKS:
        config.addinivalue_line("markers", mark)
    if config.option.gpus:
        from sooner.door.session import Door

        config.pluginmanager.register(Door(config), "sooner-door")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Mask devices before any test module is imported: skip conditions are evaluated then."""
    if spec := early_config.known_args_namespace.gpus:
        from sooner.door.devices import mask_for_collection

        mask_for_collection(spec)


@pytest.fixture
def gpus(request: pytest.FixtureRequest) -> tuple[int, ...]:
    """The devices of this test as frameworks count them: `0, 1, ...`; one without `--gpus`."""
    mark = request.node.get_closest_marker("gpus")
    return tuple(range(int(mark.args[0]) if mark and mark.args else 1))
