"""A run on a file system that its own units fill; needs the right to mount one."""

import os
import subprocess
import sys

import pytest

PLAN = """
[[unit]]
name = "flood"
run = "cat /dev/zero"
timeout_s = 60
[[unit]]
name = "after the flood"
run = "echo harmless; sleep 0.2"
after = []
priority = -1
[[unit]]
name = "quiet"
run = "sleep 0.5"
"""


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("may not mount a file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_unit_that_fills_the_disk_costs_no_verdict(small_disk, tmp_path):
    import json
    import xml.etree.ElementTree as ET

    (tmp_path / "plan.toml").write_text(PLAN)
    out = small_disk / "out"
    done = subprocess.run(
        [sys.executable, "-m", "sooner", "run", "plan.toml", "--devices", "virtual:2", "--out", str(out)],
        cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    results = {r["unit"]: r["outcome"] for r in map(json.loads, (out / "results.jsonl").read_text().splitlines())}
    assert results == {"flood": "failed", "after the flood": "passed", "quiet": "passed"}
    assert len(ET.parse(out / "junit.xml").getroot().findall("testsuite")) == 3
