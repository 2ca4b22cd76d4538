"""The sweeps: throw-away processes that ask the tests themselves."""

import contextlib
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
            exec("def test_text():\\n  if torch.cuda.device_count() < 2: pytest.skip('two')")
            """
        )
    )
    return tmp_path


def outcomes(seen, name, file="test_it.py"):
    nodeid = f"{file}::{name}"
    words = [each.tests[nodeid].outcome if nodeid in each.tests else "a" for each in seen]
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
    assert outcomes(seen, "test_text") == "uuuuuu"  # without source no guard can be told from the rest
    assert not (project / "touched").exists()


def test_a_file_that_cannot_be_collected_is_told(project):
    (project / "test_broken.py").write_text("raise RuntimeError('no')\n")
    (seen,) = sweep(project, ["test_broken.py"], (1,))
    assert seen.files == {"test_broken.py": "fail"}
    assert seen.errors == {"test_broken.py": "RuntimeError: no"}


@pytest.mark.parametrize(("code", "outcome"), [("0", "skip"), ("3", "fail"), ("'no devices'", "fail"), ("78", "skip")])
def test_a_file_that_exits_while_it_is_imported_is_one_file_that_is_not_collected(project, code, outcome):
    (project / "test_exits.py").write_text(f"import sys\nsys.exit({code})\ndef test_a(): pass\n")
    (seen,) = sweep(project, ["test_exits.py", "test_it.py"], (2,))
    assert seen.files == {"test_exits.py": outcome}
    assert seen.tests["test_it.py::test_plain"].outcome == "run"


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos._exit(7)\n",
        "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n",
        "import os, pytest\n@pytest.fixture\ndef f():\n    if os._exit(1): pytest.skip('x')\ndef test_a(f): pass\n",
    ],
)
def test_a_file_that_ends_the_sweeps_process_costs_no_other_file_its_answer(project, monkeypatch, text):
    (project / "test_ends.py").write_text(text)
    (project / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(project / "temporary"))
    monkeypatch.setenv("TMPDIR", str(project / "temporary"))
    found = sweep(project, ["test_ends.py", "test_it.py"], (0, 2))
    assert [each.files for each in found] == [{"test_ends.py": "fail"}] * 2
    assert [each.errors for each in found] == [{"test_ends.py": "it ended the process that asked it"}] * 2
    assert outcomes(found, "test_plain") == "rr"
    assert not list((project / "temporary").iterdir())


def test_tensors_that_are_made_on_a_device_during_import_do_not_stop_a_dry_sweep(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent(
            """
            import unittest
            import torch

            HAS = torch.cuda.is_available()
            CUDNN = HAS and torch.backends.cudnn.is_acceptable(torch.tensor(1.0, device="cuda:0"))
            DEVICE = torch.device("cuda" if HAS else "cpu")
            LAYER = torch.nn.Linear(2, 2).to(DEVICE)
            HALF = torch.ones(2, device=DEVICE, dtype=torch.float16)
            if HAS:
                torch.cuda.synchronize()
                LAYER.cuda()
                SUM = int((torch.arange(3).cuda() + torch.zeros(3, device="cuda")).sum())

            class TestIt(unittest.TestCase):
                @unittest.skipUnless(CUDNN, "cudnn")
                def test_cudnn(self):
                    pass

                @unittest.skipUnless(HAS and SUM == 3, "sum")
                def test_sum(self):
                    pass
            """
        )
    )
    found = sweep(tmp_path, ["test_it.py"], (0, 2))
    assert [each.files for each in found] == [{}, {}]
    assert [outcomes(found, f"TestIt::{name}") for name in ("test_cudnn", "test_sum")] == ["sr", "sr"]


def test_ranks_that_a_hook_of_the_project_starts_are_not_started_and_its_guards_are_heard(project):
    (project / "conftest.py").write_text(
        textwrap.dedent(
            """
            import multiprocessing
            import time

            import pytest
            import torch

            @pytest.hookimpl(tryfirst=True)
            def pytest_runtest_call(item):
                if item.name != "test_ranks":
                    return
                if torch.cuda.device_count() < 2:
                    pytest.skip("two")
                with multiprocessing.get_context("spawn").Pool(2) as pool:
                    pool.map(time.sleep, [600, 600])
                item.runtest = lambda: None
            """
        )
    )
    (project / "test_ranks.py").write_text("def test_ranks(): pass\ndef test_plain(): pass\n")
    found = sweep(project, ["test_ranks.py"], (0, 1, 2, 4), timeout_s=60)
    assert outcomes(found, "test_ranks", file="test_ranks.py") == "ssuu"
    assert outcomes(found, "test_plain", file="test_ranks.py") == "rrrr"


def test_what_stops_pytest_itself_is_told(project):
    (project / "conftest.py").write_text("def pytest_pycollect_makemodule(module_path, no_such_word): pass\n")
    with pytest.raises(SweepError, match="no_such_word"):
        sweep(project, ["test_it.py"], (2,))


def test_a_file_that_hangs_is_named(project):
    (project / "test_hangs.py").write_text("import time\ntime.sleep(600)\n")
    with pytest.raises(SweepError, match=r"took more than 4 s and was at test_hangs\.py"):
        sweep(project, ["test_hangs.py"], (2,), timeout_s=4)


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


def test_a_real_sweep_counts_each_worker_once_however_it_is_started(tmp_path):
    """multiprocessing raises no audit event when it spawns, subprocess raises two where it uses posix_spawn."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent(
            """
            import multiprocessing, os, subprocess, sys
            import pytest

            def work():
                pass

            @pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
            def test_multiprocessing(method):
                process = multiprocessing.get_context(method).Process(target=work)
                process.start()
                process.join()
                assert process.exitcode == 0

            def test_without_closing():
                subprocess.run([sys.executable, "-c", ""], check=True, close_fds=False)

            def test_forks():
                if os.fork() == 0:
                    os._exit(0)
                os.wait()

            def test_shell():
                os.system("true")

            def test_not_started():
                with pytest.raises(OSError):
                    subprocess.Popen(["no-such-command-here"])
            """
        )
    )
    (seen,) = sweep(tmp_path, ["test_it.py"], (1,), mode="real")
    assert {nodeid.partition("::")[2]: each.workers for nodeid, each in seen.tests.items()} == {
        "test_multiprocessing[fork]": 1,
        "test_multiprocessing[spawn]": 1,
        "test_multiprocessing[forkserver]": 1,
        "test_without_closing": 1,
        "test_forks": 1,
        "test_shell": 1,
        "test_not_started": 0,
    }


def test_a_real_sweep_says_which_devices_the_workers_of_a_test_computed_on(tmp_path):
    """Files stand in for the driver's lists of processes: a worker enters itself, and is gone when it ends."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "worker.py").write_text(
        "import os, sys, time\n"
        "path = f'gpu{sys.argv[1]}'\n"
        "open(path, 'w').write(str(os.getpid()))\n"
        "while not os.path.exists(f'seen-{path}'): time.sleep(0.01)\n"
        "os.unlink(path), os.unlink(f'seen-{path}')\n"
    )
    (tmp_path / "test_it.py").write_text(
        "import subprocess, sys\n"
        "def run(*gpus):\n"
        "    workers = [subprocess.Popen([sys.executable, 'worker.py', str(gpu)]) for gpu in gpus]\n"
        "    assert [worker.wait() for worker in workers] == [0] * len(gpus)\n"
        "def test_two(): run(0, 1)\n"
        "def test_one(): run(1)\n"
        "def test_none(): pass\n"
    )

    def usage():
        found = []
        for path in (tmp_path / "gpu0", tmp_path / "gpu1"):
            text = ""
            with contextlib.suppress(FileNotFoundError):
                text = path.read_text()
            found.append(frozenset([int(text)] if text else []))
        return found

    def usage_that_is_noticed():
        found = usage()
        for number, pids in enumerate(found):
            if pids:
                (tmp_path / f"seen-gpu{number}").touch()
        return found

    (seen,) = sweep(tmp_path, ["test_it.py"], (2,), mode="real", usage=usage_that_is_noticed)
    devices = {nodeid.partition("::")[2]: each.devices for nodeid, each in seen.tests.items()}
    assert devices == {"test_two": 2, "test_one": 1, "test_none": 0}


def test_an_interpreter_that_is_not_there_is_one_clear_error(project):
    with pytest.raises(SweepError, match="name the project's interpreter with --python"):
        sweep(project, ["test_it.py"], (0,), python="/nowhere/python")


def test_an_interpreter_without_pytest_is_one_clear_error(project):
    wrapper = project / "bare"
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    wrapper.chmod(0o755)
    with pytest.raises(SweepError, match=r"failed: pytest is not installed: .*, which needs pytest"):
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
