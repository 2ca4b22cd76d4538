"""Levels of isolation, state guards, pollution: as a user meets them."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

LEAKS = """
import builtins, os, sys, threading
def test_environment(): os.environ["LEAKED"] = "1"
def test_directory(): os.chdir("/")
def test_path(): sys.path.insert(0, "/nowhere")
def test_clean(): assert "LEAKED" not in os.environ and os.getcwd() != "/" and "/nowhere" not in sys.path
"""


def test_what_a_test_changes_is_put_back_before_the_next(suite):
    suite.write(test_leaks=LEAKS)
    done, entries = suite.journal()
    assert done.returncode == 0, done.stdout
    assert {entry["worker"] for entry in entries.values()} == {1}
    assert entries["test_environment"]["restored"] == ["environment"]
    assert entries["test_directory"]["restored"] == ["current directory"]
    assert entries["test_clean"] == {
        "nodeid": "test_leaks.py::test_clean", "worker": 1, "level": "warm", "devices": 1, "outcome": "passed",
        "restored": [], "discard": "", "pollution": False, "depends": False,
    }  # fmt: skip


def test_a_process_with_a_thread_left_runs_no_other_test(suite):
    text = """
import threading
def test_thread(): threading.Thread(target=threading.Event().wait, daemon=True, name="left").start()
def test_next(): assert threading.active_count() == 1
"""
    suite.write(test_threads=text)
    done, entries = suite.journal("--unit=file")
    assert done.returncode == 0
    assert entries["test_thread"]["discard"] == "left 1 threads: left"
    assert entries["test_next"]["worker"] == 2


def test_a_test_that_closes_standard_output_costs_no_other_test(suite):
    suite.write(test_closes="import sys\ndef test_closes(): sys.stdout.close()\ndef test_next(): print('said')\n")
    done, entries = suite.journal("-rA")
    assert done.returncode == 1
    assert "FAILED test_closes.py::test_closes" in done.stdout
    assert "INTERNALERROR" not in done.stdout
    assert entries["test_closes"]["discard"]
    assert entries["test_next"]["outcome"] == "passed"


def test_what_wider_fixtures_set_up_stays_until_they_end(suite):
    text = """
import os, pytest
@pytest.fixture(scope="module")
def module_wide():
    os.environ["WIDE"] = "module"
    yield
    del os.environ["WIDE"]
@pytest.fixture(scope="class", autouse=True)
def class_wide(module_wide):
    os.environ["CLASS"] = "class"
@pytest.fixture
def own():
    os.environ["OWN"] = "own"
def check(own=False): assert (os.environ.get("WIDE"), os.environ.get("OWN")) == ("module", "own" if own else None)
class TestA:
    def test_first(self, own): check(own=True)
    def test_second(self): check(); assert os.environ["CLASS"] == "class"
def test_after(): check()
"""
    suite.write(test_wide=text, test_zlater="import os\ndef test_gone(): assert 'WIDE' not in os.environ\n")
    done, entries = suite.journal()
    assert done.returncode == 0, done.stdout
    assert len({entry["worker"] for entry in entries.values()}) == 1


def test_a_session_fixture_is_not_undone(suite):
    text = """
import os, pytest
@pytest.fixture(scope="session")
def always(): os.environ["ALWAYS"] = "1"
def test_first(always): pass
def test_second(always): assert os.environ["ALWAYS"] == "1"
"""
    suite.write(test_session=text, test_third="import os\ndef test_third(): assert os.environ['ALWAYS'] == '1'\n")
    done, _ = suite.journal()
    assert done.returncode == 0, done.stdout


POLLUTED = """
import builtins
def test_a(): pass
def test_polluter(): builtins.polluted = True
def test_b(): pass
def test_victim(): assert not hasattr(builtins, "polluted")
def test_wrong(): assert 0, "by itself too"
"""


def test_a_polluted_test_passes_and_the_pollution_is_reported(suite):
    suite.write(test_p=POLLUTED)
    done, entries = suite.journal()
    assert "pollution: test_p.py::test_victim failed beside other tests and passed by itself" in done.stdout
    assert "FAILED test_p.py::test_wrong - AssertionError: by itself too" in done.stdout
    assert "1 failed, 4 passed" in done.stdout
    assert entries["test_victim"]["pollution"]
    assert not entries["test_wrong"]["pollution"]


def bisect(suite, *arguments, within="."):
    command = [sys.executable, "-m", "sooner", "bisect-pollution", *arguments]
    return subprocess.run(command, cwd=suite.folder / within, capture_output=True, text=True, timeout=60, check=False)


def test_bisection_names_the_polluter(suite):
    suite.write(test_p=POLLUTED)
    suite.journal()
    done = bisect(suite)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_p.py::test_victim fails after this test:\n    test_p.py::test_polluter\n" in done.stdout


def test_bisection_takes_a_test_by_any_path_to_it_and_names_the_known_ones(suite):
    suite.write(test_p=POLLUTED)
    (suite.folder / "below").mkdir()
    suite.journal()
    done = bisect(suite, "../test_p.py::test_victim", within="below")
    assert "test_p.py::test_victim fails after this test" in done.stdout, done.stdout + done.stderr
    other = bisect(suite, "test_p.py::test_b")
    assert other.returncode == 4
    assert "it knows test_p.py::test_victim" in other.stderr


def test_bisection_without_pollution_is_one_clear_error(suite):
    suite.write(test_a="def test_a(): pass\n")
    suite.journal()
    done = bisect(suite)
    assert done.returncode == 4
    assert "no run with --gpus saw pollution" in done.stderr + done.stdout
    assert "run `pytest --gpus=...` until it reports pollution" in done.stderr + done.stdout


def test_a_test_that_needs_what_an_earlier_one_left_keeps_its_verdict(suite):
    text = "import os\ndef test_a(): os.environ['LEFT'] = '1'\ndef test_b(): assert os.environ['LEFT'] == '1'\n"
    suite.write(test_order=text)
    done, entries = suite.journal("--unit=file")
    assert done.returncode == 0
    assert entries["test_b"]["depends"]
    assert "order: test_order.py::test_b fails by itself" in done.stdout


STEPS = """
import pathlib, pytest, time
def wait_for(name):
    while not pathlib.Path(name).exists(): time.sleep(0.01)
class TestSteps:
    done = []
    def test_first(self): self.done.append(1); wait_for("second")
    def test_second(self): pathlib.Path("second").touch(); assert self.done == [1]
    def test_wrong(self): assert 0, "wrong"
class TestOther:
    def test_else(self): assert 0, "else"
"""


def test_a_test_that_needs_what_one_in_another_worker_left_keeps_its_verdict(suite):
    suite.write(test_steps=STEPS)
    done = suite.pytest("--gpus=virtual:2", "--unit=test")
    assert "order: test_steps.py::TestSteps::test_second fails by itself" in done.stdout
    assert "2 failed, 2 passed" in done.stdout


@pytest.mark.parametrize("level", ["fork", "fresh"])
def test_a_mark_gives_a_test_a_process_of_its_own(suite, level):
    text = f"""
import builtins, os, pytest
def test_a(): builtins.here = os.getpid()
@pytest.mark.isolation("{level}")
def test_alone(): assert not hasattr(builtins, "here")
def test_b(): assert builtins.here == os.getpid()
"""
    suite.write(test_levels=text)
    done, entries = suite.journal()
    assert done.returncode == 0, done.stdout
    assert entries["test_alone"]["level"] == level


def test_a_fresh_process_finds_its_test_outside_of_the_root_folder(suite):
    (suite.folder / "tests").mkdir()
    (suite.folder / "conf").mkdir()
    (suite.folder / "conf" / "pytest.ini").write_text("[pytest]\n")
    (suite.folder / "tests" / "test_other.py").write_text("open('imported', 'a').write('x')\n")
    text = "import pytest\n@pytest.mark.isolation('fresh')\ndef test_a():\n    assert 0, 'of its own'\n"
    suite.write(**{"tests/test_fresh": text})
    done = suite.pytest("--gpus=virtual:1", "-c", "conf/pytest.ini", "tests")
    assert "test_fresh.py::test_a - AssertionError: of its own" in done.stdout
    assert (suite.folder / "imported").read_text() == "x"


def test_a_test_whose_id_changes_is_told_so_where_it_is_collected_again(suite):
    mark = "@pytest.mark.isolation('fresh')\n@pytest.mark.parametrize('x', [uuid.uuid4().hex])"
    suite.write(test_ids=f"import uuid, pytest\n{mark}\ndef test_a(x): pass\n")
    done = suite.pytest("--gpus=virtual:1")
    assert "not collected again while one device is visible" in done.stdout
    assert "the id is another one each time" in done.stdout


def test_an_unknown_level_is_one_clear_error(suite):
    suite.write(test_a="import pytest\n@pytest.mark.isolation('spoon')\ndef test_a(): pass\n")
    done = suite.pytest("--gpus=virtual:1")
    assert done.returncode == 4
    assert "takes one of world, warm, fork, fresh, not 'spoon'" in done.stdout + done.stderr


def test_without_reuse_no_process_runs_two_tests(suite):
    suite.write(test_pids="import os\n" + "".join(f"def test_{i}(): print(os.getpid())\n" for i in range(3)))
    done, entries = suite.journal("--reuse=off")
    assert done.returncode == 0
    assert len({entry["worker"] for entry in entries.values()}) == 3


def test_verification_finds_a_test_that_passes_only_beside_others(suite):
    text = "import builtins\ndef test_a(): builtins.kept = 1\ndef test_b(): assert builtins.kept == 1\n"
    suite.write(test_hidden=text)
    done, entries = suite.journal("--reuse=verify")
    assert done.returncode == 1
    assert entries["test_b"]["pollution"]


def test_a_wide_test_is_collected_while_its_devices_are_visible(suite):
    text = """
import os, pytest
WIDTH = len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))
@pytest.mark.gpus(2)
@pytest.mark.skipif(WIDTH < 2, reason="needs two")
def test_two(): print("ran with", WIDTH)
@pytest.mark.skipif(WIDTH < 1, reason="needs one")
def test_one(): assert WIDTH == 1
"""
    suite.write(test_width=text)
    done = suite.pytest("--gpus=virtual:4")
    assert "2 passed" in done.stdout, done.stdout


def test_a_project_adds_guards_of_its_own(suite):
    conftest = """
import app
class Registry:
    name = "registry"
    def capture(self): return list(app.REGISTRY)
    def restore(self, state):
        changed = app.REGISTRY != state
        app.REGISTRY[:] = state
        return changed
def pytest_sooner_guards(config): return [Registry()]
"""
    suite.write(
        app="REGISTRY = []\n",
        conftest=conftest,
        test_a="import app\ndef test_a(): app.REGISTRY.append(1)\ndef test_b(): assert app.REGISTRY == []\n",
    )
    done, entries = suite.journal()
    assert done.returncode == 0, done.stdout
    assert entries["test_a"]["restored"] == ["registry"]
    assert suite.pytest("--collect-only").returncode == 0, "the hook is known without --gpus"


def test_a_process_with_another_thread_is_not_forked(suite):
    conftest = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True, name='own').start()\n"
    suite.write(
        conftest=conftest,
        test_a="import threading\ndef test_a(): assert 'own' in [t.name for t in threading.enumerate()]\n",
    )
    done = suite.pytest("--gpus=virtual:2")
    assert done.returncode == 0, done.stdout


def test_a_hung_test_is_ended_with_its_stacks(suite):
    suite.write(test_h="import time\ndef test_hangs(): time.sleep(1000)\ndef test_next(): pass\n")
    done = suite.pytest("--gpus=virtual:1", "--hang-timeout=0.5")
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "in test_hangs" in done.stdout
    assert "FAILED test_h.py::test_hangs - no end after 0.5 s (--hang-timeout)" in done.stdout


def test_a_journal_that_cannot_be_written_is_one_clear_error(suite):
    suite.write(test_a="def test_a(): pass\n")
    done = suite.pytest("--gpus=virtual:1", "--reuse-journal=nowhere/journal.jsonl")
    assert done.returncode == 4
    assert "ERROR: --reuse-journal nowhere/journal.jsonl cannot be written: No such file or directory" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_one_device_is_said_in_the_singular(suite):
    suite.write(test_a="def test_a(): pass\n")
    assert "sooner: 1 device (virtual:0)" in suite.pytest("--gpus=virtual:1").stdout


def test_a_keyboard_interrupt_in_a_test_ends_the_run_as_in_plain_pytest(suite):
    suite.write(test_k="def test_a(): pass\ndef test_k(): raise KeyboardInterrupt\ndef test_b(): pass\n")
    plain, ours = suite.pytest(), suite.pytest("--gpus=virtual:1")
    assert (ours.returncode, "KeyboardInterrupt" in ours.stdout) == (
        plain.returncode,
        "KeyboardInterrupt" in plain.stdout,
    )


def test_the_first_failure_stops_a_run_with_x_at_once(suite):
    suite.write(test_x="def test_a(): pass\ndef test_b(): assert 0\ndef test_c(): pass\n")
    done = suite.pytest("--gpus=virtual:1", "-x")
    assert "1 failed, 1 passed" in done.stdout


def test_a_test_that_skips_for_lack_of_devices_is_tried_with_all_of_them(suite):
    text = """
import os, pytest
WIDTH = len(os.popen("echo $CUDA_VISIBLE_DEVICES").read().split(","))  # no source says what this gives
@pytest.mark.skipif(WIDTH < 2, reason="needs two GPUs")
def test_two(): assert WIDTH == 4
@pytest.mark.skipif(WIDTH < 16, reason="needs sixteen GPUs")
def test_sixteen(): pass
def test_body():
    if WIDTH < 3: pytest.skip("three")
def test_one(): assert WIDTH == 1
"""
    suite.write(test_skips=text, test_other="import pytest\n@pytest.mark.skip(reason='no')\ndef test_no(): pass\n")
    done = suite.pytest("--gpus=virtual:4", "-rs")
    assert "3 passed, 2 skipped" in done.stdout, done.stdout
    assert "needs sixteen GPUs" in done.stdout


def test_a_skip_with_all_devices_visible_is_not_tried_again(suite):
    suite.write(test_cuda="import pytest\ndef test_a(): pytest.skip('no cuda')\n")
    done = suite.pytest("--gpus=virtual:1", "--reuse-stats")
    assert "workers: 1;" in done.stdout


def test_tests_go_on_when_the_process_that_forks_them_is_killed(suite):
    text = """
import os, signal, time
def test_kills(): os.kill(os.getppid(), signal.SIGKILL); time.sleep(20)
def test_next(): pass
def test_last(): pass
"""
    suite.write(test_k=text)
    done, entries = suite.journal("--isolation=fork")
    assert "1 failed, 2 passed" in done.stdout, done.stdout
    assert "FAILED test_k.py::test_kills" in done.stdout
    assert set(entries) == {"test_next", "test_last"}


def test_tests_of_several_devices_run_where_warnings_are_errors(suite):
    (suite.folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    suite.write(test_two="import pytest\n@pytest.mark.gpus(2)\ndef test_two(): pass\n")
    done = suite.pytest("--gpus=virtual:2")
    assert "1 passed" in done.stdout, done.stdout


def runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_project_that_handles_sigterm_leaves_nothing_when_pytest_is_killed(suite, tmp_path):
    text = f"""
import os, signal, time
def on_term(*_): raise SystemExit(3)
signal.signal(signal.SIGTERM, on_term)
def test_kills():
    parent = int(open(f"/proc/{{os.getppid()}}/stat").read().split()[3])
    open({str(tmp_path / "family")!r}, "w").write(f"{{parent}} {{os.getppid()}} {{os.getpid()}}")
    os.kill(parent, signal.SIGKILL)
    time.sleep(20)
"""
    suite.write(test_k=text)
    done = suite.pytest("--gpus=virtual:1", "--junitxml=j.xml")
    assert done.returncode == -9
    _, server, _ = (tmp_path / "family").read_text().split()
    deadline = time.monotonic() + 20
    while runs(server) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not runs(server)
    assert not (suite.folder / "j.xml").exists()


def test_the_last_failure_that_also_leaves_something_behind_is_reported(suite):
    """Its worker had said that it was done before the judge had; the session ended without the verdict."""
    suite.write(
        test_a="import subprocess\ndef test_a(): pass\n"
        "def test_b():\n    subprocess.Popen(['sleep', '5'], stdout=subprocess.PIPE)\n    assert 0\n"
    )
    done, entries = suite.journal()
    assert done.returncode == 1, done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert entries["test_b"]["outcome"] == "failed"
