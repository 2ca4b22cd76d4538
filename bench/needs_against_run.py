"""What `sooner needs` reads in a real suite, against what the suite does when it is run.

Each file is run by pytest, in a process of its own, with as many devices as `--devices` says (the others are hidden by
`CUDA_VISIBLE_DEVICES`; 0 needs no GPU), and each test's outcome compared with the profile at that size. A contradiction
is a test that passes where the source says that it is skipped, fails or is not there, one that is skipped where it is
said to run or to fail, and one that fails where it is said to be skipped or, for want of a device, where it is said to
run. What a skip is for is printed beside it: a package that is not installed says nothing about devices. Other failures
where a run is said are counted apart, for no profile knows what a newer PyTorch or a missing network does to a test.
Suites are no part of this project: name a tree and its interpreter.

With `--pretended` the devices need not be there: PyTorch and JAX are made to believe in them (`bench/pretended/`), work
is done on the host, and which devices each test used, in all of its processes, is written down. Three more
contradictions are seen then, of tests that pass: a device is used where none is said to be, more are used than the test
is said to gain from, and none is used where the test is said to run without, and to use some. Kernels that only a
device has fail, and say nothing.

    python bench/needs_against_run.py TREE [PATH ...] [--python EXE] [--devices 0] [--pretended] [--sample 6]
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Final

from figures import suite, table

_NO_DEVICE: Final = re.compile(r"CUDA|NVIDIA|NCCL|\bGPU|accelerator", re.IGNORECASE)
_RECORDER: Final = """
import json, os, random, sys, pytest

def keep(*fact):
    with open(os.environ["OUTCOMES"], "a") as stream:
        print(json.dumps(fact), file=stream)

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    for item in items:
        keep(item.nodeid, "collected", "")
    most = int(os.environ["MOST_TESTS"])
    if 0 < most < len(items):
        kept = set(random.Random(0).sample(range(len(items)), most))
        items[:] = [item for index, item in enumerate(items) if index in kept]

def pytest_runtest_setup(item):
    if "jax" in sys.modules:  # what it has compiled before, it runs without being seen
        sys.modules["jax"].clear_caches()

def pytest_collectreport(report):
    if report.outcome != "passed":
        keep(report.nodeid, report.outcome, reason(report))

def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        keep(report.nodeid, report.outcome, reason(report))

def reason(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:  # a library's own assertion may tell the error that it has caught on a later line
        told = [line for line in crash.message.splitlines() if "Error: cudaError" in line]
        return (told or crash.message.splitlines() or [""])[0][:200]
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr or "")
    return (text.strip().splitlines()[-1:] or [""])[0][:200]
"""


_PRETENDED: Final = Path(__file__).parent / "pretended"


def profiles(tree: Path, files: list[str]) -> dict[str, dict[str, Any]]:
    """What is said of each test, by its source."""
    command = [sys.executable, "-m", "sooner", "needs", *files, "--no-cache", "--json"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 5):
        sys.exit(done.stderr)
    return {test["nodeid"]: test for test in json.loads(done.stdout)}


def outcomes(
    tree: Path, files: list[str], options: argparse.Namespace
) -> tuple[dict[str, tuple[str, str]], dict[str, set[int]]]:
    """What each test did ("collected": it was not run), and why (so of files without tests); what it used.

    A file that takes too long leaves what it had until then.
    """
    found: dict[str, tuple[str, str]] = {}
    used: dict[str, set[int]] = defaultdict(set)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "recorder_of_outcomes.py").write_text(_RECORDER)
        kept = Path(folder) / "outcomes"
        uses = Path(folder) / "uses"
        more = [str(_PRETENDED)] if options.pretended else []
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(filter(None, [folder, *more, os.environ.get("PYTHONPATH")])),
            "OUTCOMES": str(kept),
            "MOST_TESTS": str(options.sample),
            "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(options.devices))),
        }
        if options.pretended:
            environment |= {"PRETENDED_DEVICES": str(options.devices), "PRETENDED_USES": str(uses)}
        for path in files:
            command = [
                options.python,
                "-m",
                "pytest",
                path,
                "-q",
                "-p",
                "recorder_of_outcomes",
                "-p",
                "no:cacheprovider",
            ]
            try:
                subprocess.run(
                    command, cwd=tree, env=environment, capture_output=True, timeout=options.seconds, check=False
                )
            except subprocess.TimeoutExpired:
                print(f"{path} took longer than {options.seconds} s", file=sys.stderr)
        for line in kept.read_text().splitlines() if kept.exists() else []:
            nodeid, outcome, why = json.loads(line)
            if found.get(nodeid, ("", ""))[0] != "failed":
                found[nodeid] = (outcome, why)
        for line in uses.read_text().splitlines() if uses.exists() else []:
            nodeid, device = json.loads(line)
            used[nodeid].add(device)
    return found, {nodeid: _without_woken(devices) for nodeid, devices in used.items()}


def _without_woken(devices: set[int]) -> set[int]:
    """Devices that were used: a library that looks at them (-2) has woken the first one, if no other is used."""
    rest = devices - {-2}
    return rest if rest - {-1} or rest == devices else rest | {0}


def contradicts(said: str, did: str, why: str) -> bool:
    """Whether an outcome is another than the source says; a failure where it says "run" is one if a device lacks."""
    allowed = {"passed": ("run",), "skipped": ("skip", "absent"), "failed": ("run", "fail")}
    if (said, did) == ("run", "failed"):
        return _NO_DEVICE.search(why) is not None
    return said != "unknown" and said not in allowed[did]


def misused(test: dict[str, Any], devices: int, used: int) -> str:
    """How a test that passed used other devices than its source says; empty where it did not."""
    fewest, full = test["gpu_min"], test["full"] or 0
    if used and fewest is None:
        return f"said to use none, used {used}"
    if used > max(full, fewest or 0):
        return f"said to gain from {max(full, fewest)} at most, used {used}"
    fewer = [what for size, what in test["profile"].items() if int(size) < (fewest or 0)]
    if not used and fewest is not None and devices >= fewest and set(fewer) == {"run"}:
        return f"said to use {fewest}, used none"
    return ""


def main() -> None:
    """Compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("paths", nargs="*", default=["."])
    parser.add_argument("--python", default=sys.executable, help="the interpreter that the suite runs with")
    parser.add_argument("--devices", type=int, choices=(0, 1, 2, 3, 4, 8), default=0)
    parser.add_argument("--pretended", action="store_true", help="the devices need not be there")
    parser.add_argument("--sample", type=int, default=0, help="so many tests of each file; 0: all")
    parser.add_argument("--seconds", type=float, default=300.0, help="the most that a file takes")
    parser.add_argument("--show", type=int, default=20)
    options = parser.parse_args()
    tree = options.tree.resolve()
    files = suite(tree, options.paths)
    tests = profiles(tree, files)
    said = {name: test["profile"][str(options.devices)] for name, test in tests.items()}
    found, used = outcomes(tree, files, options)
    listed = {name for name in found if "::" in name}
    whole = {name.partition("::")[0] for name in listed}
    only_said = sorted(
        name
        for name, what in said.items()
        if what != "absent" and name not in listed and name.partition("::")[0] in whole
    )
    did = {name: outcome for name, outcome in found.items() if outcome[0] != "collected"}
    both = [name for name in sorted(did) if name in said]
    wrong = [name for name in both if contradicts(said[name], *did[name])]
    passed = [
        name
        for name in both
        if options.pretended and (said[name], did[name][0]) == ("run", "passed") and -1 not in used.get(name, ())
    ]
    misuses = {name: how for name in passed if (how := misused(tests[name], options.devices, len(used.get(name, ()))))}
    kinds = Counter((said[name], did[name][0]) for name in both)
    rows = [[f"{first} by the source, {second}", str(count)] for (first, second), count in sorted(kinds.items())]
    rows += [
        ["not listed by the source", str(len(listed - said.keys()))],
        ["listed by the source only", str(len(only_said))],
        ["contradictions", str(len(wrong))],
    ]
    if options.pretended:
        rows.append(["passed, and used other devices", f"{len(misuses)} of {len(passed)}"])
    print(table([f"with {options.devices} devices", "tests"], rows))
    reasons = Counter((said[name], *did[name], name.partition("::")[0]) for name in wrong)
    for (first, second, why, path), count in reasons.most_common(options.show):
        print(f"{count} of {path}: {first} by the source, {second}: {why}")
    for name, how in list(misuses.items())[: options.show]:
        print(f"{how} ({tests[name]['confidence']}): {name}")
    for name in sorted(listed - said.keys())[: options.show]:
        print(f"not listed by the source: {name}")
    for name in only_said[: options.show]:
        print(f"listed by the source only: {name}")
    for name in sorted(found.keys() - listed):
        print(f"not collected: {name}: {found[name][1]}")


if __name__ == "__main__":
    main()
