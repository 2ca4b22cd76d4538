"""`pytest --gpus` in projects of its own, as a user runs it."""

import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

import psutil
import pytest

MIXED = """
import os, unittest, warnings
import psutil
import pytest

@pytest.fixture(scope="module")
def shared():
    print("up")
    yield 1
    print("down")

def test_passes(shared): print("said")
def test_fails(shared):
    print("captured")
    assert 1 == 2
@pytest.mark.skip(reason="why not")
def test_is_skipped(): pass
@pytest.mark.xfail(strict=True)
def test_is_expected_to_fail(): assert 0
@pytest.mark.parametrize("value", ["a", "b c", "\\u00e9"])
def test_with(value): assert value != "a"
def test_warns(): warnings.warn("careful")
@pytest.fixture
def broken(): raise RuntimeError("in set-up")
def test_error(broken): pass
@pytest.fixture
def leaky():
    yield
    raise RuntimeError("in tear-down")
def test_error_afterwards(leaky): pass

class TestCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.value = 1
    def test_value(self): self.assertEqual(self.value, 1)
    @unittest.expectedFailure
    def test_expected(self): self.fail()
"""


def test_outcomes_output_and_junit_are_those_of_plain_pytest(suite):
    suite.write(test_mixed=MIXED, test_more="import test_mixed\nfrom test_mixed import test_with, test_warns\n")
    assert suite.cases("--gpus=virtual:2") == suite.cases()


def test_one_device_prints_what_plain_pytest_prints(suite):
    suite.write(test_mixed=MIXED)

    def shown(*arguments):
        return re.sub(r"in [\d.]+s|sooner: .*\n", "", suite.pytest("-v", *arguments).stdout)

    assert shown("--gpus=virtual:1") == shown()


def test_outcomes_without_a_terminal_plugin_are_those_of_plain_pytest(suite):
    suite.write(test_mixed=MIXED)
    assert suite.cases("-p", "no:terminal", "--gpus=virtual:2") == suite.cases("-p", "no:terminal")


def test_every_worker_sees_a_device_of_its_own(suite):
    text = """
import os, pathlib, time, pytest
@pytest.mark.parametrize("i", range(8))
def test_alone(i):
    lock = pathlib.Path("lock" + os.environ["CUDA_VISIBLE_DEVICES"])
    lock.mkdir(); time.sleep(0.05); lock.rmdir()
"""
    suite.write(test_locks=text)
    assert suite.pytest("--gpus=virtual:4", "--unit=test").returncode == 0


def test_a_test_that_needs_two_devices_gets_two(suite):
    text = """
import os, pytest
@pytest.mark.gpus(2)
def test_two(gpus): assert gpus == (0, 1) and os.environ["CUDA_VISIBLE_DEVICES"] == "0,1"
@pytest.mark.gpus(n=2)
def test_named(gpus): assert gpus == (0, 1) and os.environ["CUDA_VISIBLE_DEVICES"] == "0,1"
@pytest.mark.gpus(0)
def test_host(gpus): assert gpus == ()
def test_one(gpus): assert gpus == (0,) and os.environ["CUDA_VISIBLE_DEVICES"] in ("0", "1")
"""
    suite.write(test_width=text)
    assert suite.pytest("--gpus=virtual:2").returncode == 0


def test_a_test_that_needs_more_devices_than_there_are_is_a_coverage_hole(suite):
    suite.write(test_wide="import pytest\n@pytest.mark.gpus(8)\ndef test_wide(): pass\n")
    done = suite.pytest("--gpus=virtual:2")
    assert done.returncode == 1
    assert "coverage hole: needs 8 devices, the run has 2" in done.stdout


def test_modules_see_one_device_when_they_are_imported(suite):
    suite.write(test_mask="import os\nSEEN = os.environ['CUDA_VISIBLE_DEVICES']\ndef test_seen(): assert SEEN == '0'\n")
    assert suite.pytest("--gpus=virtual:4").returncode == 0


def test_a_crash_names_its_test_and_loses_no_other(suite):
    text = "import os\ndef test_a(): pass\ndef test_crash(): os.abort()\ndef test_b(): pass\ndef test_c(): pass\n"
    suite.write(test_crash=text)
    done = suite.pytest("--gpus=virtual:1", "--unit=file", "-q")
    assert "3 passed" in done.stdout
    assert "the process of the test ended in its middle: SIGABRT" in done.stdout
    assert "FAILED test_crash.py::test_crash" in done.stdout


def test_an_error_of_a_session_fixture_at_its_end_is_reported(suite):
    text = """
import psutil
import pytest
@pytest.fixture(scope="session")
def late():
    yield
    raise RuntimeError("too late")
def test_late(late): pass
"""
    suite.write(test_late=text)
    done = suite.pytest("--gpus=virtual:2")
    assert done.returncode == 1
    assert "too late" in done.stdout


def test_what_a_session_fixture_prints_at_its_end_is_captured(suite):
    suite.write(
        test_late="""
import os, pytest
@pytest.fixture(scope="session")
def late(request):
    yield
    print("printed late")
    os.write(2, b"written late")
    if request.config.option.verbose > 0:
        raise RuntimeError
def test_late(late): print("said")
"""
    )
    assert "late" not in suite.pytest("--gpus=virtual:1", "-q").stdout.replace("test_late.py", "")
    assert suite.cases("--gpus=virtual:1", "-v") == suite.cases("-v")


def test_a_wide_fixture_is_set_up_once(suite):
    text = """
import pytest, pathlib
@pytest.fixture(scope="module")
def once(): pathlib.Path("count").open("a").write("x")
def test_free(): pass
def test_a(once): pass
def test_between(): pass
def test_b(once): pass
"""
    suite.write(test_once=text)
    suite.pytest("--gpus=virtual:4")
    assert (suite.folder / "count").read_text() == "x"


def test_isolation_gives_each_unit_a_process(suite):
    text = "import os, pathlib\n" + "\n".join(
        f"def test_{i}(): pathlib.Path('pids').open('a').write(f'{{os.getpid()}}\\n')" for i in range(4)
    )
    suite.write(test_pids=text)
    suite.pytest("--gpus=virtual:1", "--isolation=fork", "--unit=test")
    assert len(set((suite.folder / "pids").read_text().split())) == 4


@pytest.mark.parametrize(
    "options", [("-k", "passes"), ("-x",), ("--maxfail=2",), ("--collect-only", "-q"), ("-m", "none")]
)
def test_options_of_pytest_keep_working(suite, options):
    suite.write(test_mixed=MIXED)
    plain, ours = suite.pytest(*options), suite.pytest("--gpus=virtual:1", *options)
    assert ours.returncode == plain.returncode
    assert ours.stdout.splitlines()[-1].split(" in ")[0] == plain.stdout.splitlines()[-1].split(" in ")[0]


@pytest.mark.parametrize("option", ["--pdb", "--trace"])
def test_a_debugger_has_the_terminal_of_the_controlling_process(suite, option):
    suite.write(test_where="import os\ndef test_where(): assert 0, f'in {os.getppid()}'\n")
    command = [sys.executable, "-m", "pytest", "--gpus=virtual:2", option]
    done = subprocess.run(command, cwd=suite.folder, input="continue\n", capture_output=True, text=True, check=False)
    assert f"in {os.getpid()}" in done.stdout
    assert done.returncode == 1


def test_stepwise_leaves_nothing_out_before_the_failure_that_it_stops_at(suite):
    text = """
import pathlib, pytest, time
@pytest.mark.parametrize("i", range(40))
def test_step(i):
    time.sleep(0.1 * (i == 0))
    assert i not in (1, 30) or pathlib.Path("fixed").exists()
"""
    suite.write(test_steps=text)
    done = suite.pytest("--gpus=virtual:2", "--stepwise")
    assert "1 failed, 1 passed" in done.stdout
    (suite.folder / "fixed").touch()
    assert "39 passed, 1 deselected" in suite.pytest("--gpus=virtual:2", "--stepwise").stdout


def test_hooks_of_a_conftest_see_each_test_once_in_the_controlling_process(suite):
    conftest = """
import json, os
seen = []
def pytest_runtest_logreport(report): seen.append((report.nodeid, report.when, os.getpid()))
def pytest_sessionfinish():
    with open("seen.json", "w") as file: json.dump([os.getpid(), seen], file)
"""
    suite.write(conftest=conftest, test_two="def test_a(): pass\ndef test_b(): pass\n")
    suite.pytest("--gpus=virtual:2", "--unit=test")
    pid, seen = json.loads((suite.folder / "seen.json").read_text())
    assert {where for _, _, where in seen} == {pid}
    assert len(seen) == 6


@pytest.mark.parametrize(("option", "dest"), [("--snapshot-update", "update_snapshots"), ("--fix", "inline_snapshot")])
def test_snapshots_that_are_written_when_the_session_finishes_are_not_lost(suite, option, dest):
    conftest = f"""
import pytest
found = []
def pytest_addoption(parser): parser.addoption("{option}", action="store_true", dest="{dest}")
def pytest_sessionfinish(session):
    if session.config.option.{dest}:
        open("snapshots", "w").write(" ".join(found))
@pytest.fixture
def snapshot(): return found.append
"""
    suite.write(
        conftest=conftest, test_snap="def test_a(snapshot): snapshot('a')\ndef test_b(snapshot): snapshot('b')\n"
    )
    assert suite.pytest("--gpus=virtual:2", option).returncode == 0
    assert (suite.folder / "snapshots").read_text() == "a b"


def test_a_collection_error_stops_as_it_does_in_plain_pytest(suite):
    suite.write(test_bad="import nowhere\n", test_good="def test_a(): pass\n")
    assert suite.pytest("--gpus=virtual:2").returncode == suite.pytest().returncode == 2


def test_a_device_that_does_not_exist_is_one_clear_error(suite):
    suite.write(test_a="def test_a(): pass\n")
    done = suite.pytest("--gpus=bogus")
    assert done.returncode == 4
    assert "--gpus: 'bogus' is not understood" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("option", ["--hang-timeout=-1", "--hang-timeout=inf", "--isolation-budget=nan"])
def test_a_number_that_cannot_be_is_one_clear_error(suite, option):
    suite.write(test_a="def test_a(): pass\n")
    done = suite.pytest("--gpus=virtual:1", option)
    assert done.returncode == 4
    assert "is no number from 0 on" in done.stderr


def test_an_option_for_devices_that_a_variable_left_empty_is_not_a_run_without_any(suite):
    suite.write(test_a="def test_a(): pass\n")
    done = suite.pytest("--gpus=")
    assert done.returncode == 4
    assert "argument --gpus: it names no devices" in done.stderr


def test_without_gpus_nothing_heavy_is_imported(suite):
    suite.write(
        test_a="import sys\ndef test_a(): assert not {'msgspec', 'sooner.door', 'sooner.model'} & set(sys.modules)\n"
    )
    assert suite.pytest().returncode == 0


def test_workers_end_with_the_controlling_pytest(suite):
    text = """
import os, pathlib, time
def test_hang():
    pathlib.Path("pid").write_text(str(os.getpid()))
    time.sleep(1000)
"""
    suite.write(test_hang=text)
    command = [sys.executable, "-m", "pytest", "--gpus=virtual:1"]
    process = subprocess.Popen(command, cwd=suite.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pid = wait_for(lambda: (suite.folder / "pid").exists() and (suite.folder / "pid").read_text())
    process.kill()
    process.wait()
    wait_for(lambda: not psutil.pid_exists(int(pid)) or psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE)


def wait_for(condition):
    """Poll until something is true, at most 30 s; returns it."""
    deadline = time.monotonic() + 30
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def test_a_session_leaves_its_record_in_the_history(suite):
    history = pytest.importorskip("duckdb") and __import__("sooner.history", fromlist=["History"])
    suite.write(test_r="def test_a(): pass\ndef test_b(): assert 1 == 2\n")
    suite.pytest("--gpus=virtual:2", "--history=h")
    with history.History(suite.folder / "h") as kept:
        rows = {row.node_id: row for row in kept.tests()}
    assert {name: str(row.outcome) for name, row in rows.items()} == {
        "test_r.py::test_a": "passed",
        "test_r.py::test_b": "failed",
    }
    assert rows["test_r.py::test_b"].message == "assert 1 == 2"
    assert rows["test_r.py::test_a"].devices[0].startswith("virtual:")


def test_the_record_tells_what_ran_from_what_did_not(suite):
    history = pytest.importorskip("duckdb") and __import__("sooner.history", fromlist=["History"])
    text = """
import unittest
import pytest
@pytest.mark.xfail
def test_expected(): assert 0
@pytest.mark.xfail(reason="hangs", run=False)
def test_not_run(): assert 0
def test_gives_up(): pytest.xfail("no device can")
@pytest.fixture
def broken(): raise RuntimeError("in set-up")
@pytest.mark.xfail
def test_set_up_expected(broken): pass
def test_set_up(broken): pass
@pytest.fixture
def leaky():
    yield
    raise RuntimeError("in tear-down")
def test_tear_down(leaky): pass
class TestCase(unittest.TestCase):
    @unittest.expectedFailure
    def test_case(self): self.fail()
"""
    suite.write(test_r=text)
    suite.pytest("--gpus=virtual:2", "--history=h")
    with history.History(suite.folder / "h") as kept:
        rows = {row.node_id.rpartition("::")[2]: str(row.outcome) for row in kept.tests()}
    assert rows == {
        "test_expected": "passed", "test_not_run": "skipped", "test_gives_up": "skipped", "test_set_up": "error",
        "test_set_up_expected": "skipped", "test_tear_down": "failed", "test_case": "passed",
    }  # fmt: skip


def test_output_to_a_stream_that_a_module_kept_is_captured(suite):
    text = """
import sys
STDOUT, STDERR = sys.stdout, sys.stderr
def test_a():
    assert STDOUT is sys.stdout
    print("kept", file=STDOUT)
    assert 0
def test_b(): print("kept too", file=STDERR); assert 0
"""
    suite.write(test_kept=text)
    assert suite.cases("--gpus=virtual:2") == suite.cases()
    assert "kept" in str(suite.cases("--gpus=virtual:2", "--isolation=fresh"))


def test_a_module_that_stands_in_for_torch_is_left_alone(suite):
    suite.write(torch="cuda = None\n", test_fake="import torch\ndef test_a(): pass\ndef test_b(): pass\n")
    done = suite.pytest("--gpus=virtual:2", "--isolation=warm")
    assert "2 passed" in done.stdout, done.stdout


def test_nothing_is_said_after_the_summary_also_where_the_history_is_written(suite):
    suite.write(test_a="import duckdb\ndef test_a(): duckdb.sql('select 1').fetchall()\n")
    done = suite.pytest("--gpus=virtual:2", "--history=kept")
    assert "1 passed" in done.stdout.splitlines()[-1]
    assert done.stderr == ""
    assert list((suite.folder / "kept").rglob("*.parquet"))


def test_a_plugin_that_raises_between_tests_is_an_internal_error_with_its_traceback(suite):
    suite.write(
        conftest="def pytest_runtest_protocol(item, nextitem):\n    raise RuntimeError('of the plugin')\n",
        test_a="def test_a(): pass\n",
    )
    done = suite.pytest("--gpus=virtual:2")
    assert done.returncode == 3
    assert "INTERNALERROR" in done.stdout
    assert "RuntimeError: of the plugin" in done.stdout


def test_who_waits_for_the_devices_of_another_run_says_so(suite):
    suite.write(
        test_outer="import os, subprocess, sys\n"
        "def test_outer():\n"
        "    command = [sys.executable, '-m', 'pytest', '--gpus=virtual:1', 'inner.py', '-p', 'no:cacheprovider']\n"
        "    inner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)\n"
        "    said = ''\n"
        "    while 'waiting' not in said: said = inner.stdout.readline() or 'nothing: waiting'\n"
        "    inner.kill()\n"
        "    assert said.startswith('sooner: waiting for virtual:0, held by pytest-'), said\n",
        inner="def test_inner(): pass\n",
    )
    done = suite.pytest("--gpus=virtual:1", PYTHONUNBUFFERED="1")
    assert "1 passed" in done.stdout, done.stdout


@pytest.mark.parametrize("devices", [1, 2])
def test_tests_are_about_as_deep_in_frames_as_in_plain_pytest(suite, devices):
    suite.write(
        test_deep="import inspect, pytest\n"
        f"@pytest.mark.gpus({devices})\n"
        "def test_deep(record_property): record_property('depth', len(inspect.stack(0)))\n"
    )
    depths = []
    for options in ([], ["--gpus=virtual:2"], ["--gpus=virtual:2", "--isolation=fork"]):
        suite.pytest("--junitxml=j.xml", *options)
        depths.append(int(ET.parse(suite.folder / "j.xml").getroot().find(".//property").get("value")))
    assert max(depths) - depths[0] <= 5


@pytest.mark.parametrize(
    ("isolation", "how"),
    [("warm", "assert 0"), ("warm", "raise SystemExit(3)"), ("warm", "raise KeyboardInterrupt"), ("fork", "return")],
)
def test_a_child_that_a_test_forks_and_forgets_to_end_does_not_speak_for_it(suite, isolation, how):
    text = f"""
import os
def test_forks():
    pid = os.fork()
    if pid == 0:
        {how}
    else:
        os.waitpid(pid, 0)
def test_next(): pass
"""
    suite.write(test_forks=text)
    done = suite.pytest("--gpus=virtual:1", f"--isolation={isolation}", "-W", "ignore::DeprecationWarning")
    assert (done.returncode, done.stdout.splitlines()[-1].count("2 passed")) == (0, 1), done.stdout


@pytest.mark.skipif(not hasattr(pytest, "Subtests"), reason="pytest has them from 9.0 on")
def test_a_test_whose_subtests_failed_has_failed(suite):
    text = """
def test_parts(subtests):
    for i in range(4):
        with subtests.test(i=i): assert i != 2
def test_next(subtests):
    with subtests.test(): pass
"""
    suite.write(test_parts=text)
    assert suite.cases("--gpus=virtual:2") == suite.cases()
    summary = suite.pytest("--gpus=virtual:2").stdout.splitlines()[-1]
    assert "2 failed, 1 passed" in summary, summary


def test_properties_of_any_kind_are_recorded(suite):
    text = """
import threading
class TwoWords(Exception):
    def __init__(self, one, two): super().__init__(f"{one} {two}")
class Shy:
    __reduce__ = __str__ = None
def test_a(record_property):
    record_property("error", TwoWords("not", "readable"))
    record_property("list", [1, (2, threading.Lock)])
    record_property("shy", {"it": Shy()})
def test_b(record_property):
    record_property("function", test_a)
    record_property("lambda", lambda: 1)
    assert 0
"""
    suite.write(test_kinds=text)
    done = suite.pytest("--gpus=virtual:2", "--junitxml=j.xml", "-W", "ignore", "-o", "junit_family=xunit1")
    assert "1 failed, 1 passed" in done.stdout.splitlines()[-1], done.stdout
    values = {each.get("name"): each.get("value") for each in ET.parse(suite.folder / "j.xml").iter("property")}
    assert values["error"] == "not readable"
    assert values["lambda"].startswith("<function test_b.<locals>.<lambda>")


def test_properties_of_the_whole_suite_are_recorded_once(suite):
    text = """
import os, pytest
@pytest.fixture(scope="session", autouse=True)
def facts(record_testsuite_property): record_testsuite_property("arch", "x86")
@pytest.mark.parametrize("i", range(3))
def test_a(i, record_testsuite_property): record_testsuite_property(f"of {i}", i)
@pytest.mark.isolation("fresh")
def test_b(record_testsuite_property): record_testsuite_property("of b", None)
"""
    suite.write(test_facts=text)

    def recorded(*arguments):
        suite.pytest("--junitxml=j.xml", *arguments)
        found = ET.parse(suite.folder / "j.xml").getroot().iterfind("testsuite/properties/property")
        return sorted((each.get("name"), each.get("value")) for each in found)

    assert recorded("--gpus=virtual:2", "--unit=test") == recorded()


def test_plugins_that_finish_the_session_find_what_refers_to_what(suite):
    (suite.folder / "conftest.py").write_text("""
import gc
OBJECT = [1]
def pytest_sessionfinish():
    print("\\nreferrers:", len(gc.get_referrers(OBJECT)))
""")
    suite.write(test_a="def test_a(): pass")
    found = {
        suite.pytest("-s", *arguments).stdout.partition("referrers: ")[2][:1]
        for arguments in ([], ["--gpus=virtual:2"])
    }
    assert len(found) == 1
    assert found != {"0"}
