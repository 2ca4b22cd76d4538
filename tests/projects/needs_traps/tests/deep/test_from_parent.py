import pytest
import torch


@pytest.fixture
def local(pair):
    return pair[0]


def test_through_two_fixtures(local):
    torch.ones(1, device=local)


@pytest.mark.devices(8)
def test_parents_hook():
    pass
