import pytest

from sooner.model.outcomes import Outcome
from sooner.run.classify import End, classify, signal_name


@pytest.mark.parametrize(
    ("end", "outcome", "cause"),
    [
        (End(exit_code=0), Outcome.PASSED, ""),
        (
            End(exit_code=0, junit_missing=True),
            Outcome.CRASHED,
            "exit code 0, but its JUnit file was not written, or is broken",
        ),
        (End(exit_code=5), Outcome.FAILED, "exit code 5"),
        (End(signal=9), Outcome.CRASHED, "SIGKILL"),
        (End(signal=9, oom_kills=1), Outcome.OUT_OF_MEMORY, "host memory: killed by the kernel's OOM killer"),
        (End(exit_code=137, oom_kills=2), Outcome.OUT_OF_MEMORY, "host memory: killed by the kernel's OOM killer"),
        (End(exit_code=1, oom_kills=1), Outcome.FAILED, "exit code 1"),
        (End(exit_code=128), Outcome.FAILED, "exit code 128"),
        (End(exit_code=139), Outcome.CRASHED, "exit code 139 (SIGSEGV in a child)"),
        (End(exit_code=1, device_out_of_memory=True), Outcome.OUT_OF_MEMORY, "device memory"),
        (End(exit_code=1, tail="x\nMemoryError: y"), Outcome.OUT_OF_MEMORY, "host memory: an allocation failed"),
        (End(exit_code=1, tail="assert 'MemoryError' in x"), Outcome.FAILED, "exit code 1"),
        (End(exit_code=1, device_fault="Xid 79"), Outcome.WORKER_LOST, "device fault: Xid 79"),
        (End(exit_code=0, device_fault="Xid 79"), Outcome.PASSED, ""),
        (End(signal=15, ended_by="timeout", timeout_s=2.5), Outcome.TIMED_OUT, "no end after 2.5 s"),
        (End(exit_code=0, ended_by="stop", asked_to_stop=True), Outcome.NOT_RUN, "interrupted"),
        (End(signal=9, ended_by="stop"), Outcome.WORKER_LOST, "ended together with its guardian process"),
        (End(lost="its warden ended"), Outcome.WORKER_LOST, "its warden ended"),
        (End(unstartable="no such file"), Outcome.FAILED, "cannot be started: no such file"),
    ],
)
def test_an_end_has_one_outcome_and_a_cause(end, outcome, cause):
    assert classify(end) == (outcome, cause)


def test_a_real_time_signal_has_a_name():
    assert signal_name(35) == "signal 35"
