"""How a session of `pytest --gpus` ends: with what tests leave running, and when it is interrupted."""

import os
import signal
import subprocess
import sys
import time

import pytest

LEAVES = """
import os, pathlib
def test_leaves():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 3)
            pathlib.Path("left").write_text(str(os.getpid()))
            os.open("held", os.O_RDONLY)  # until somebody opens the other end
        os._exit(0)
    while not pathlib.Path("left").exists(): pass
"""


@pytest.mark.parametrize(("isolation", "ends"), [("warm", "os.abort()"), ("fork", ""), ("fresh", "os.abort()")])
def test_a_session_ends_also_where_a_test_left_a_process_that_runs_on(suite, isolation, ends):
    suite.write(test_leaves=LEAVES + f"    {ends}\ndef test_next(): pass\n")
    os.mkfifo(suite.folder / "held")
    command = ["-m", "pytest", "--gpus=virtual:1", f"--isolation={isolation}", "--history=h", "-W", "ignore"]
    with (suite.folder / "said").open("w") as said:
        process = subprocess.Popen([sys.executable, *command], cwd=suite.folder, stdout=said)
    try:
        assert process.wait(timeout=30) == (1 if ends else 0)
    finally:
        process.kill()
        os.kill(int((suite.folder / "left").read_text()), signal.SIGKILL)
    assert ("1 failed, 1 passed" if ends else "2 passed") in (suite.folder / "said").read_text()
    assert list((suite.folder / "h").rglob("*.parquet"))


def test_a_second_interrupt_ends_a_session_that_waits_for_its_tests(suite):
    text = "import pathlib, time\ndef test_long():\n    pathlib.Path('on').touch()\n    time.sleep(100)\n"
    suite.write(test_long=text)
    command = [sys.executable, "-m", "pytest", "--gpus=virtual:1", "--history=h"]
    process = subprocess.Popen(command, cwd=suite.folder, stdout=subprocess.PIPE, text=True)
    while not (suite.folder / "on").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)  # it waits for its test now, three seconds
    process.send_signal(signal.SIGINT)
    try:
        said, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert "KeyboardInterrupt" in said
    assert process.returncode == 2


LONG = """
import pathlib, time, pytest
@pytest.fixture(scope="session")
def kept():
    yield
    pathlib.Path("torn").touch()
def test_long(kept):
    pathlib.Path("on").touch()
    try:
        time.sleep(100)
    finally:
        pathlib.Path("cleaned").touch()
"""
SOON = """
import pathlib, time
def test_soon():
    while not pathlib.Path("on").exists():
        time.sleep(0.01)
    assert False
"""


@pytest.mark.parametrize("isolation", ["warm", "fresh"])
@pytest.mark.parametrize("ends", ["interrupt", "-x"])
def test_a_test_that_runs_when_the_session_ends_cleans_up_after_itself(suite, isolation, ends):
    suite.write(test_long=LONG)
    if ends == "-x":
        suite.write(test_soon=SOON)
    command = [sys.executable, "-m", "pytest", "--gpus=virtual:2", f"--isolation={isolation}", "-x"]
    process = subprocess.Popen(command, cwd=suite.folder, stdout=subprocess.PIPE, text=True)
    while not (suite.folder / "on").exists():
        time.sleep(0.01)
    if ends == "interrupt":  # of this process alone, as `kill` or a CI runner sends it
        process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == (2 if ends == "interrupt" else 1)
    assert (suite.folder / "cleaned").exists()
    assert (suite.folder / "torn").exists()


SESSION = """
import os, pytest
@pytest.fixture(scope="session")
def kept():
    yield
    {after}
def test_kept(kept): pass
def test_other(): pass
"""


@pytest.mark.parametrize("isolation", ["warm", "fork", "fresh"])
@pytest.mark.parametrize("after", ["os.abort()", "os._exit(0)"])
def test_a_process_that_ends_while_it_tears_down_is_an_error_of_its_last_test(suite, isolation, after):
    suite.write(test_session=SESSION.format(after=after))
    done = suite.pytest("--gpus=virtual:1", f"--isolation={isolation}", "-rE")
    assert "2 passed" in done.stdout
    assert "1 error" in done.stdout
    assert "ERROR test_session.py::test_" in done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize("ends", ["raise KeyboardInterrupt", "pytest.exit('enough', 7)"])
def test_what_a_test_that_ends_the_session_has_set_up_is_torn_down(suite, ends):
    text = SESSION.format(after="open('torn', 'w').close()").replace("kept): pass", f"kept): {ends}")
    suite.write(test_session=text)
    ours = suite.pytest("--gpus=virtual:1")
    assert (suite.folder / "torn").exists()
    assert ours.returncode == (7 if "exit" in ends else 2)


def test_a_test_may_interrupt_its_own_process(suite):
    text = """
import asyncio, os, signal, pytest
def test_own():
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
@pytest.fixture(scope="module")
def handled():
    before = signal.signal(signal.SIGINT, lambda *_: None)
    yield
    signal.signal(signal.SIGINT, before)
def test_handled(handled): os.kill(os.getpid(), signal.SIGINT)
def test_handled_still(handled): os.kill(os.getpid(), signal.SIGINT)
"""
    suite.write(test_own=text)
    for isolation in ("warm", "fresh"):
        assert "3 passed" in suite.pytest("--gpus=virtual:1", f"--isolation={isolation}").stdout


@pytest.mark.parametrize("files", [1, 2])
def test_files_that_cannot_be_collected_end_a_session_with_the_words_of_pytest(suite, files):
    suite.write(**{f"test_{number}": "import no_such_module\n" for number in range(files)})
    ends = [suite.pytest(*options) for options in ([], ["--gpus=virtual:1"])]
    said = [[line.strip("! ") for line in end.stdout.splitlines() if "during collection" in line] for end in ends]
    assert said[0] == said[1]
    assert [end.returncode for end in ends] == [2, 2]
