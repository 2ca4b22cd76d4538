import os
import sys

import pytest

from sooner.warm.slices import ask_for_short_slices


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
def test_a_process_that_asks_for_short_slices_keeps_its_policy_and_priority():
    pid = os.fork()
    if pid == 0:
        os.nice(3)
        ask_for_short_slices()
        os._exit(os.sched_getscheduler(0) * 100 + os.getpriority(os.PRIO_PROCESS, 0))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == os.SCHED_OTHER * 100 + os.nice(0) + 3


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
def test_a_process_of_another_policy_is_left_alone():
    pid = os.fork()
    if pid == 0:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        os._exit(10 * ask_for_short_slices() + os.sched_getscheduler(0))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == os.SCHED_BATCH
