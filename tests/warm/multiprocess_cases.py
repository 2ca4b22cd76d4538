"""Samples of PyTorch's multi-process tests, and what becomes of them on warm worlds; run by `test_multiprocess.py`."""

# ruff: noqa: PT009 - the samples are written as PyTorch's own tests are
import os
import signal
import subprocess
import sys
import threading
import unittest
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

import torch.distributed as dist  # noqa: E402 - without torch: skipped
from torch.distributed.tensor import Replicate, Shard, distribute_tensor  # noqa: E402
from torch.testing._internal import common_distributed  # noqa: E402
from torch.testing._internal.common_distributed import MultiProcessTestCase, skip_if_lt_x_gpu  # noqa: E402
from torch.testing._internal.distributed._tensor.common_dtensor import DTensorTestBase, with_comms  # noqa: E402

from sooner.warm.lifecycle import keep_fresh, keep_warm, level_of  # noqa: E402
from sooner.warm.multiprocess import install, uninstall  # noqa: E402
from sooner.warm.worlds import Worlds  # noqa: E402


@pytest.fixture(scope="module")
def worlds():
    worlds = Worlds()
    install(worlds)
    yield worlds
    uninstall()
    worlds.close()


def leave(text):
    """Leave a word for the test that runs this."""
    folder = Path(os.environ["NOTES"])
    (folder / f"{dist.get_rank() if dist.is_initialized() else os.getpid()}").write_text(text)


class Sample(MultiProcessTestCase):
    __test__ = False

    @property
    def world_size(self):
        return 2

    def setUp(self):
        super().setUp()
        aborting = self.test_aborts_as_expected
        self.special_return_code_checks = {getattr(aborting, "__wrapped__", aborting): -signal.SIGABRT}
        self._spawn_processes()

    def init(self):
        store = dist.FileStore(self.file_name, self.world_size)
        dist.init_process_group("gloo", store=store, rank=self.rank, world_size=self.world_size)

    def test_passes(self):
        self.init()
        tensor = torch.ones(3) * (self.rank + 1)
        dist.all_reduce(tensor)
        self.assertEqual(tensor, torch.full((3,), 3.0))
        leave(str(os.getpid()))

    def test_fails_on_rank_1(self):
        self.init()
        if self.rank == 1:
            self.assertEqual(1, 2, "not equal on this rank")
        dist.barrier()

    @skip_if_lt_x_gpu(8)
    def test_needs_many_devices(self):
        raise AssertionError

    def test_skips_itself(self):
        raise unittest.SkipTest("for a reason")

    @unittest.expectedFailure
    def test_fails_as_expected(self):
        raise ValueError("expected")

    def test_aborts_as_expected(self):
        os.abort()

    def test_exits(self):
        os._exit(5)

    @keep_warm
    def test_exits_although_it_was_said_that_it_does_not(self):
        os._exit(5)

    def test_hangs(self):
        self.init()
        if self.rank == 1:
            threading.Event().wait()
        dist.barrier()

    def test_leaves_an_environment_behind(self):
        leave(os.environ.get("LEFT_BEHIND", "nothing"))
        os.environ["LEFT_BEHIND"] = "something"

    def test_says_something(self):
        print("said on rank", self.rank)

    @keep_fresh
    def test_is_kept_fresh(self):
        pass

    @pytest.mark.isolation("fork")
    def test_is_isolated(self):
        leave(str(os.getpid()))

    def helper(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def test_uses_a_helper_that_kills(self):
        self.helper()


class OwnWay(Sample):
    def _start_processes(self, proc):
        super()._start_processes(proc)


class Tensors(DTensorTestBase):
    __test__ = False

    @property
    def world_size(self):
        return 2

    @with_comms
    def test_shards_and_gathers(self):
        mesh = self.build_device_mesh()
        whole = torch.arange(8.0)
        sharded = distribute_tensor(whole, mesh, [Shard(0)])
        self.assertEqual(sharded.to_local().numel(), 4)
        self.assertEqual(sharded.redistribute(mesh, [Replicate()]).to_local(), whole)

    @with_comms
    def test_fails(self):
        raise ValueError("in the middle of it")


@pytest.fixture(autouse=True)
def notes(tmp_path, monkeypatch):
    monkeypatch.setenv("NOTES", str(tmp_path))

    def read():
        return sorted(path.read_text() for path in tmp_path.iterdir())

    return read


def outcome(name, kind=Sample):
    """How unittest judges a test: a word, and its explanation."""
    result = unittest.TestResult()
    kind(name).run(result)
    assert result.testsRun == 1
    for word in ("failures", "errors", "skipped", "expectedFailures"):
        if found := getattr(result, word):
            return word, found[0][1]
    return ("unexpectedSuccesses" if result.unexpectedSuccesses else "passed"), ""


def level(name, kind=Sample):
    test = kind(name)
    return level_of(test, MultiProcessTestCase)[0]


def test_a_test_runs_on_ranks_that_are_kept_for_the_next(worlds, notes):
    assert outcome("test_passes") == ("passed", "")
    first = notes()
    assert outcome("test_passes") == ("passed", "")
    assert notes() == first
    assert len(set(first)) == 2
    assert worlds.statistics.hits >= 1


def test_an_error_on_a_rank_is_told_as_pytorch_tells_it_and_the_next_test_passes(worlds):
    word, text = outcome("test_fails_on_rank_1")
    assert word == "errors"
    assert "Process 1 exited with error code 10 and exception" in text
    assert "not equal on this rank" in text
    assert outcome("test_passes") == ("passed", "")


def test_a_skip_by_exit_code_is_a_skip(worlds):
    assert outcome("test_needs_many_devices")[0] == "skipped"
    assert outcome("test_skips_itself") == ("skipped", common_distributed.TEST_SKIPS["generic"].message)


def test_an_expected_failure_is_expected(worlds):
    assert outcome("test_fails_as_expected")[0] == "expectedFailures"


def test_an_expected_signal_is_expected(worlds):
    assert outcome("test_aborts_as_expected") == ("passed", "")


@pytest.mark.parametrize("name", ["test_exits", "test_exits_although_it_was_said_that_it_does_not"])
def test_an_unexpected_exit_code_is_told(worlds, name):
    word, text = outcome(name)
    assert word == "failures"
    assert "Expected exit code 0 but got 5" in text
    assert outcome("test_passes") == ("passed", "")


def test_a_test_that_hangs_is_ended_after_its_time(worlds, monkeypatch, caplog):
    monkeypatch.setitem(common_distributed.TIMEOUT_OVERRIDE, "test_hangs", 1)
    word, text = outcome("test_hangs")
    assert word == "errors"
    assert "timed out" in text
    assert "in test_hangs" in caplog.text
    assert outcome("test_passes") == ("passed", "")


def test_what_a_test_leaves_behind_does_not_reach_the_next(worlds, notes):
    for _ in range(2):
        assert outcome("test_leaves_an_environment_behind") == ("passed", "")
        assert set(notes()) == {"nothing"}


def test_what_ranks_say_is_output_of_the_test(worlds, capsys):
    outcome("test_says_something")
    assert "said on rank 0" in capsys.readouterr().out


def test_an_isolated_test_has_ranks_of_its_own(worlds, notes):
    assert outcome("test_is_isolated") == ("passed", "")
    first = set(notes())
    assert outcome("test_is_isolated") == ("passed", "")
    assert len(set(notes()) - first) == 2


def test_distributed_tensors_run_on_a_warm_world(worlds):
    assert outcome("test_shards_and_gathers", Tensors) == ("passed", "")
    word, text = outcome("test_fails", Tensors)
    assert word == "errors"
    assert "in the middle of it" in text
    assert outcome("test_shards_and_gathers", Tensors) == ("passed", "")


def test_tests_about_processes_have_processes_of_their_own():
    assert level("test_passes") == "warm"
    assert level("test_exits") == "fork"
    assert level("test_aborts_as_expected") == "fork"
    assert level("test_uses_a_helper_that_kills") == "fork"
    assert level("test_is_isolated") == "fork"
    assert level("test_is_kept_fresh") == "spawn"
    assert level("test_exits_although_it_was_said_that_it_does_not") == "warm"
    assert level("test_passes", OwnWay) == "spawn"
    assert level("test_shards_and_gathers", Tensors) == "warm"


def test_a_class_that_ranks_cannot_import_is_left_to_pytorch(worlds):
    class Local(Sample):
        started = False

        def _start_processes(self, _proc):
            type(self).started = True

    assert outcome("test_passes", Local) == ("passed", "")
    assert Local.started


def test_installing_again_and_uninstalling_leave_pytorch_as_it_was(worlds):
    patched = MultiProcessTestCase._spawn_processes
    install()
    assert MultiProcessTestCase._spawn_processes is patched
    uninstall()
    assert MultiProcessTestCase._spawn_processes.__module__ == common_distributed.__name__
    uninstall()
    install(worlds)


def test_classes_are_patched_when_their_module_is_imported_later():
    program = (
        "import sys\nfrom sooner.warm.multiprocess import install, uninstall\ninstall()\ninstall()\n"
        "assert 'torch' not in sys.modules\n"
        "from torch.testing._internal.common_distributed import MultiProcessTestCase as Case\n"
        "print(Case._spawn_processes.__module__)\nuninstall()\nprint(Case._spawn_processes.__module__)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["sooner.warm.multiprocess", common_distributed.__name__], done.stderr
