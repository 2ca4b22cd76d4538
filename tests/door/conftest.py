"""`pytest --gpus` in projects of its own, as a user runs it."""

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest


class Project:
    def __init__(self, folder):
        self.folder = folder
        (folder / "pytest.ini").write_text("[pytest]\n")

    def write(self, **files):
        for name, text in files.items():
            (self.folder / f"{name}.py").write_text(text)

    def pytest(self, *arguments, **env):
        return subprocess.run(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=self.folder, env={**os.environ, "COLUMNS": "200", **env}, capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip

    def cases(self, *arguments):
        """(class, name) -> what the JUnit file says of it."""
        done = self.pytest("--junitxml=j.xml", "-o", "junit_logging=all", *arguments)
        cases = {}
        for case in ET.parse(self.folder / "j.xml").getroot().iter("testcase"):
            parts = tuple(
                (part.tag, re.sub(r"0x[0-9a-f]+", "0x", part.get("message") or part.text or "")) for part in case
            )
            cases[case.get("classname"), case.get("name")] = parts
        return done.returncode, cases

    def journal(self, *arguments):
        """Run on one device; returns what the process said, and what became of each test by its name."""
        done = self.pytest("--gpus=virtual:1", "--reuse-journal=journal.jsonl", *arguments)
        entries = [json.loads(line) for line in (self.folder / "journal.jsonl").read_text().splitlines()]
        return done, {entry["nodeid"].split("::")[-1]: entry for entry in entries}


@pytest.fixture
def suite(project):
    return Project(project)
