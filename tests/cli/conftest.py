"""The real command line, in processes of its own."""

import pytest
from real_runs import Run, Sooner


@pytest.fixture
def sooner(project):
    return Sooner(project)


@pytest.fixture
def run(project):
    return Run(project / "out")
