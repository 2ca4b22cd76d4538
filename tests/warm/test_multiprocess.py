"""Runs `multiprocess_cases.py` in a process of its own: importing PyTorch's test classes changes how torch behaves."""

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest")

CASES = Path(__file__).with_name("multiprocess_cases.py")
TREE = ast.parse(CASES.read_text(encoding="utf-8"))
NAMES = [node.name for node in TREE.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """By name of a test: whether each of its cases passed; and what pytest wrote."""
    report = tmp_path_factory.mktemp("cases") / "junit.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", str(CASES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = defaultdict(list)
    for case in ET.parse(report).getroot().iter("testcase"):
        found[case.get("name").partition("[")[0]].append(
            len(list(case.iter("failure"))) + len(list(case.iter("error")))
        )
    return found, done.stdout + done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_the_adapter(outcomes, name):
    found, output = outcomes
    assert found[name], output
    assert not any(found[name]), output
