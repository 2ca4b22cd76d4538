"""The real command line in processes of its own, and what a run folder holds."""

import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import psutil

DEADLINE_S = 30
"""Long enough for the slowest machine: nothing waits for it unless something is broken."""


class Sooner:
    """Runs `sooner` in a folder."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __call__(self, *arguments, stdin=None, **env):
        """Run to the end."""
        return subprocess.run(
            [sys.executable, "-m", "sooner", *map(str, arguments)],
            cwd=self.folder,
            env={**os.environ, **env},
            input=stdin,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=DEADLINE_S,
            check=False,
        )

    def start(self, *arguments, **env):
        """Start in the background."""
        return subprocess.Popen(
            [sys.executable, "-m", "sooner", *map(str, arguments)],
            cwd=self.folder,
            env={**os.environ, **env},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def plan(self, *units, name="plan.toml", defaults=""):
        """Write a plan: each unit is a table's text or (name, shell line, more)."""
        text = f"[defaults]\n{defaults}\n" if defaults else ""
        for unit in units:
            if isinstance(unit, str):
                text += f"[[unit]]\n{unit}\n"
            else:
                title, line, *more = unit
                text += "\n".join(["[[unit]]", f"name = {json.dumps(title)}", f"run = {json.dumps(line)}", *more, ""])
        path = self.folder / name
        path.write_text(text)
        return path


class Run:
    """What a run folder holds."""

    def __init__(self, path: Path):
        self.path = path

    @property
    def results(self):
        lines = (self.path / "results.jsonl").read_text().splitlines()
        return {line["unit"]: line for line in map(json.loads, lines)}

    @property
    def outcomes(self):
        return {name: result["outcome"] for name, result in self.results.items()}

    @property
    def events(self):
        return [json.loads(line) for line in (self.path / "events.jsonl").read_text().splitlines()]

    @property
    def cases(self):
        """(suite, case) -> tag of what is wrong with it, or None."""
        root = ET.parse(self.path / "junit.xml").getroot()
        return {
            (suite.get("name"), case.get("name")): next(
                (child.tag for child in case if child.tag != "properties"), None
            )
            for suite in root
            for case in suite.findall("testcase")
        }

    def log(self, name):
        return (self.path / self.results[name]["log"]).read_text(errors="backslashreplace")

    def wait_for(self, event, unit=None):
        """Wait until the journal tells of an event."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            if (self.path / "events.jsonl").exists():
                for line in (self.path / "events.jsonl").read_text().splitlines(keepends=True):
                    if line.endswith("\n"):
                        found = json.loads(line)
                        if found["event"] == event and unit in (None, found.get("unit")):
                            return found
            time.sleep(0.01)
        raise AssertionError(f"no {event} of {unit} in {DEADLINE_S} s")


def wait_until(condition):
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def alive(command_line):
    """Processes with exactly this command line."""
    return [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == command_line.split()]
