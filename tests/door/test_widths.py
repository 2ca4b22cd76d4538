"""How many devices a test without a mark gets: what its source says."""

import duckdb

TORCH = """
import os
class cuda:
    @staticmethod
    def device_count(): return len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))
"""

GUARDED = """
import os, pytest, torch
needs = lambda n: pytest.mark.skipif(torch.cuda.device_count() < n, reason=f"wants {n}")
def visible(): return len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))
@needs(2)
def test_two(): assert visible() == 2
@needs(3)
def test_three(): assert visible() == 3
@needs(8)
def test_eight(): assert 0, "there are four"
def test_plain(): assert visible() == 1
@pytest.mark.gpus(4)
@needs(2)
def test_marked(): assert visible() == 4
"""


def widths(suite, *arguments):
    done, entries = suite.journal("--gpus=virtual:4", *arguments)
    return done, {name: entry["devices"] for name, entry in entries.items()}


def test_a_guard_gives_a_test_its_devices_at_once(suite):
    suite.write(torch=TORCH, test_guarded=GUARDED)
    done, given = widths(suite, "--reuse-stats")
    assert "4 passed, 1 skipped" in done.stdout, done.stdout
    assert given == {"test_two": 2, "test_three": 3, "test_eight": 1, "test_plain": 1, "test_marked": 4}
    assert "needs: 2 tests without a mark were given more than one device" in done.stdout


def test_a_skip_for_want_of_devices_is_no_coverage_in_the_record(suite):
    suite.write(torch=TORCH, test_guarded=GUARDED)
    suite.journal("--gpus=virtual:4", "--history=kept")
    rows = duckdb.read_parquet(f"{suite.folder}/kept/**/*.parquet", union_by_name=True).filter("node_id is not null")
    found = dict(rows.project("split_part(node_id, '::', 2), outcome").fetchall())
    assert found["test_eight"] == "skipped_no_devices"
    assert found["test_two"] == "passed"


def test_a_rule_of_the_project_says_what_its_source_does_not(suite):
    suite.write(
        test_ruled="import os, lab\ndef test_lab():\n"
        "    lab.gpus()\n    assert len(os.environ['CUDA_VISIBLE_DEVICES'].split(',')) == 2\n",
        lab="def gpus(): pass\n",
    )
    (suite.folder / "rules.toml").write_text(
        '[[call]]\nnames = ["lab.gpus"]\nneeds = "2"\noverride = true\nwhy = "two of the laboratory\'s"\n'
    )
    (suite.folder / "pytest.ini").write_text("[pytest]\nsooner_needs_rules = rules.toml\n")
    done, given = widths(suite)
    assert done.returncode == 0, done.stdout
    assert given == {"test_lab": 2}


def test_a_rule_table_that_is_not_understood_is_one_clear_error(suite):
    suite.write(torch=TORCH, test_guarded=GUARDED)
    (suite.folder / "rules.toml").write_text("[[cal]]\n")
    (suite.folder / "pytest.ini").write_text("[pytest]\nsooner_needs_rules = rules.toml\n")
    done = suite.pytest("--gpus=virtual:4")
    assert done.returncode == 4
    assert "rules.toml" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_suite_that_speaks_of_no_devices_is_not_asked_for_its_needs(suite):
    suite.write(test_plain="def test_plain(): pass\n")
    suite.journal("--gpus=virtual:4")
    assert not list(suite.folder.rglob("needs.msgpack"))
