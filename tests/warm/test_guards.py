import atexit
import gc
import locale
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings

import pytest

from sooner.warm.guards import GuardSet, Memory, seed_from, standard_guards, standard_witnesses

GUARDS = GuardSet(standard_guards(), standard_witnesses())


def leak_environment():
    os.environ["SOONER_LEAK"] = "1"
    os.environ.pop("HOME", None)


def leak_time_zone():
    os.environ["TZ"] = "Asia/Tokyo"
    time.tzset()


def leak_directory():
    os.chdir("/")


def leak_umask():
    os.umask(0o123)


def leak_path():
    sys.path.insert(0, "/leak")


def leak_import_hook():
    sys.meta_path.append(object())


def leak_stream():
    sys.stdin = object()


def leak_exception_hook():
    sys.excepthook = print


def leak_profile():
    sys.setprofile(lambda *_: None)


def leak_recursion_limit():
    sys.setrecursionlimit(5000)


def leak_switch_interval():
    sys.setswitchinterval(0.123)


def leak_warning_filter():
    warnings.simplefilter("ignore")


def leak_log_level():
    logging.getLogger().setLevel(1)
    logging.disable(50)


def leak_log_handler():
    logging.getLogger().addHandler(logging.NullHandler())


def leak_signal():
    signal.signal(signal.SIGUSR2, lambda *_: None)


def leak_timer():
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 1000)


def leak_locale():
    locale.setlocale(locale.LC_NUMERIC, "C.UTF-8" if locale.setlocale(locale.LC_NUMERIC) == "C" else "C")


def leak_gc():
    gc.disable()
    gc.set_threshold(1, 2, 3)


def leak_random():
    random.random()


LEAKS = {
    leak_environment: "environment",
    leak_time_zone: "environment",
    leak_directory: "current directory",
    leak_umask: "umask",
    leak_path: "sys.path",
    leak_import_hook: "import hooks",
    leak_stream: "standard streams",
    leak_exception_hook: "exception hooks",
    leak_profile: "profile function",
    leak_recursion_limit: "recursion limit",
    leak_switch_interval: "switch interval",
    leak_warning_filter: "warnings",
    leak_log_level: "logging",
    leak_log_handler: "logging",
    leak_signal: "signals",
    leak_timer: "signals",
    leak_locale: "locale",
    leak_gc: "garbage collector",
    leak_random: "random",
}


@pytest.mark.parametrize(("leak", "name"), LEAKS.items(), ids=lambda value: getattr(value, "__name__", None))
def test_what_a_test_changed_is_put_back(leak, name):
    before = GUARDS.capture()
    leak()
    cleaned = GUARDS.clean(before)
    assert name in cleaned.restored
    assert cleaned.discard == ""
    assert GUARDS.clean(before).restored == ()


def test_a_test_that_changes_nothing_needs_no_restoration():
    cleaned = GUARDS.clean(GUARDS.capture())
    assert (cleaned.restored, cleaned.discard) == ((), "")


def test_hooks_that_pytest_sets_for_each_phase_of_a_test_are_no_change():
    """Before 8.4 it does: every test would seem to have changed them."""

    def of_pytest(_):
        pass

    of_pytest.__module__ = "_pytest.unraisableexception"
    ours = sys.unraisablehook
    sys.unraisablehook = of_pytest
    before = GUARDS.capture()
    sys.unraisablehook = ours
    sys.excepthook = print
    assert GUARDS.clean(before).restored == ("exception hooks",)
    assert sys.excepthook is not print
    assert sys.unraisablehook is ours


def test_a_directory_that_was_removed_is_left(tmp_path):
    before = GUARDS.capture()
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert "current directory" in GUARDS.clean(before).restored


def test_a_thread_that_is_left_discards():
    before = GUARDS.capture()
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait, name="left-behind")
    thread.start()
    assert "left-behind" in GUARDS.clean(before).discard
    stop.set()
    thread.join()


def test_a_child_that_is_left_discards():
    before = GUARDS.capture()
    child = subprocess.Popen(["sleep", "1111"])
    try:
        assert GUARDS.clean(before).discard == "left child processes"
    finally:
        child.kill()
        child.wait()


def test_an_open_file_discards_and_one_that_nobody_refers_to_does_not(tmp_path):
    before = GUARDS.capture()
    with (tmp_path / "open").open("w"):
        assert "open" in GUARDS.clean(before).discard
    assert GUARDS.clean(before).discard == ""


def test_an_exit_function_discards():
    before = GUARDS.capture()
    atexit.register(print)
    assert "exit functions" in GUARDS.clean(before).discard
    atexit.unregister(print)


def test_memory_over_its_limit_discards():
    assert "MiB" in GuardSet([], [Memory(1.0)]).clean((None,)).discard
    assert GuardSet([], [Memory(1e9)]).clean((None,)).discard == ""


def test_a_restoration_that_raises_discards():
    class Broken:
        name = "broken"

        def capture(self):
            return 1

        def restore(self, _state):
            raise RuntimeError("cannot")

    guards = GuardSet([Broken()], [])
    assert guards.clean(guards.capture()).discard == "broken cannot be restored: RuntimeError('cannot')"


def test_a_seed_depends_on_nothing_but_the_test():
    seed_from("tests/a.py::test_x")
    first = random.random()
    random.random()
    seed_from("tests/a.py::test_x")
    assert random.random() == first
