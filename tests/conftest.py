"""What every test stands on: no setting, lease or spool of this machine reaches it, and it reaches none of them."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# A deadline asserts about time, which a busy machine breaks.
settings.register_profile("sooner", deadline=None, max_examples=50)
settings.load_profile("sooner")

# Shells start what a script puts in its background with SIGINT ignored, and what a test starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Hundreds of tests start a pytest of their own, which would import our development's plugin: a second for each.
os.environ["PYTEST_ADDOPTS"] = "-p no:hypothesispytest"

_FOREIGN = ("CI", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "BASH_ENV")
_MASKS = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS")


@pytest.fixture(autouse=True)
def _own_world(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("SOONER_") or name in _FOREIGN + _MASKS]:
        monkeypatch.delenv(name)
    world = tmp_path_factory.mktemp("world")
    monkeypatch.setenv("SOONER_LEASE_DIR", str(world / "leases"))
    monkeypatch.setenv("XDG_STATE_HOME", str(world / "state"))
    monkeypatch.setenv("SOONER_RUN_HISTORY", "none")  # opening DuckDB for each run of a test would take minutes


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder
