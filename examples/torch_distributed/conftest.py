"""Ranks come from sooner's fixture `world`; `--backend` says what they talk through."""

import pytest
from sooner.warm.fixtures import add_backend_option


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--backend=auto|gloo|nccl`; the one of each test is a property of its report."""
    add_backend_option(parser)
