"""The real command line: in processes of its own, or in this one where only its answer is looked at."""

import io
import sys
from dataclasses import dataclass

import pytest
from real_runs import Run, Sooner


@pytest.fixture
def sooner(project):
    return Sooner(project)


@dataclass
class Done:
    """What a call left."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def here(project, capsys, monkeypatch):
    """The command line in this process: importing numpy or DuckDB in one of its own takes longer than most answers."""
    from sooner.cli.main import _run

    def call(*arguments, stdin=""):
        capsys.readouterr()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8", "surrogateescape"))))
        code = _run(list(map(str, arguments)))
        return Done(code, *capsys.readouterr())

    return call


@pytest.fixture
def run(project):
    return Run(project / "out")
