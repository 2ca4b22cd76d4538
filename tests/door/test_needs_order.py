"""In what order test files are dealt out to processes that evaluate them."""

from pathlib import Path

from sooner.door.needs_asking import bytes_of_work


def test_a_file_that_takes_its_tests_from_another_is_as_much_work_as_both(tmp_path: Path) -> None:
    (tmp_path / "lib" / "testing").mkdir(parents=True)
    shared = tmp_path / "lib" / "testing" / "distributed_test.py"
    shared.write_text("class DistributedTest: ...\n" * 100)
    (tmp_path / "test_spawn.py").write_text("from lib.testing.distributed_test import DistributedTest\n")
    (tmp_path / "test_alone.py").write_text("from lib.testing import DistributedTest_helpers\n")
    least = shared.stat().st_size
    assert bytes_of_work(tmp_path, "test_spawn.py") > least
    assert bytes_of_work(tmp_path, "test_alone.py") < least


def test_a_file_that_cannot_be_read_is_no_work(tmp_path: Path) -> None:
    assert bytes_of_work(tmp_path, "test_gone.py") == 0
