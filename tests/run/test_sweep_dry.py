"""The sweeps: throw-away processes that ask the tests themselves."""

import os
import select
import sys
import textwrap

import pytest

from sooner.run.sweep.dry import SweepError, sweep


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # its own small torch
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "torch.py").write_text(
        "class cuda:\n    device_count = staticmethod(lambda: 0)\n    is_available = staticmethod(lambda: False)\n"
    )
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent(
            """
            import multiprocessing
            import os
            import unittest

            import pytest
            import torch

            @pytest.fixture
            def pair():
                if torch.cuda.device_count() < 2:
                    pytest.skip("two")
                open("touched", "w").close()

            def test_plain():
                open("touched", "w").close()

            def test_fixture(pair):
                raise RuntimeError("a body is not run")

            def test_leading():
                n = torch.cuda.device_count()
                if n < 4:
                    pytest.skip("four")
                raise RuntimeError("a body is not run")

            @pytest.mark.parametrize("i", range(torch.cuda.device_count()))
            def test_ids(i):
                raise RuntimeError("a body is not run")

            class Cases(unittest.TestCase):
                def setUp(self):
                    if torch.cuda.device_count() < 3:
                        self.skipTest("three")
                    raise RuntimeError("only guards")

                @unittest.skipIf(torch.cuda.device_count() < 8, "eight")
                def test_eight(self):
                    raise RuntimeError("a body is not run")

                def test_set_up(self):
                    super().setUp()
                    raise RuntimeError("a body is not run")

            for name in ("one", "two"):
                def made(name=name):
                    assert name
                globals()[f"test_made_{name}"] = made
            """
        )
    )
    return tmp_path


def outcomes(seen, name):
    words = [each.tests[f"test_it.py::{name}"].outcome if f"test_it.py::{name}" in each.tests else "a" for each in seen]
    return "".join(each[0] for each in words)


def test_a_dry_sweep_runs_guards_and_nothing_else(project):
    seen = sweep(project, ["test_it.py"], (0, 1, 2, 3, 4, 8))
    assert outcomes(seen, "test_plain") == "rrrrrr"
    assert outcomes(seen, "test_fixture") == "ssrrrr"
    assert outcomes(seen, "test_leading") == "ssssrr"
    assert outcomes(seen, "test_ids[0]") == "arrrrr"
    assert outcomes(seen, "Cases::test_eight") == "sssssr"
    assert outcomes(seen, "Cases::test_set_up") == "sssrrr"
    assert outcomes(seen, "test_made_two") == "rrrrrr"
    assert not (project / "touched").exists()


def test_a_file_that_cannot_be_collected_is_told(project):
    (project / "test_broken.py").write_text("raise RuntimeError('no')\n")
    (seen,) = sweep(project, ["test_broken.py"], (1,))
    assert seen.files == {"test_broken.py": "fail"}


def test_a_real_sweep_runs_bodies_and_counts_workers(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent(
            """
            import os, subprocess, sys

            def visible():
                return len([each for each in os.environ["CUDA_VISIBLE_DEVICES"].split(",") if each])

            def test_workers():
                for _ in range(visible()):
                    subprocess.run([sys.executable, "-c", ""], check=True)

            def test_fails_below_two():
                assert visible() >= 2
            """
        )
    )
    seen = sweep(tmp_path, ["test_it.py"], (0, 2), mode="real")
    assert [each.tests["test_it.py::test_workers"].workers for each in seen] == [0, 2]
    assert outcomes(seen, "test_fails_below_two") == "fr"


def test_an_interpreter_that_is_not_there_is_one_clear_error(project):
    with pytest.raises(SweepError, match="name the project's interpreter with --python"):
        sweep(project, ["test_it.py"], (0,), python="/nowhere/python")


def test_an_interpreter_without_pytest_is_one_clear_error(project):
    wrapper = project / "bare"
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    wrapper.chmod(0o755)
    with pytest.raises(SweepError, match="needs pytest"):
        sweep(project, ["test_it.py"], (0,), python=str(wrapper))


def test_nothing_that_the_sweep_started_outlives_it(project):
    (project / "conftest.py").write_text(
        "import subprocess, sys\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "open('pid', 'w').write(str(p.pid))\n"
    )
    sweep(project, ["test_it.py"], (0,))
    pid = int((project / "pid").read_text())
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = select.poll()
    ended.register(handle, select.POLLIN)
    assert ended.poll(10_000)
    os.close(handle)
