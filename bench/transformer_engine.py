"""A real suite in its real form: the 49 pytest calls of Transformer Engine's L0 PyTorch script, one after the other.

Names, paths and environments of the calls are those of `qa/L0_pytorch_unittest/test.sh` (a public file of
NVIDIA/TransformerEngine; 12 calls have an environment prefix, two files run twice). What they test here are stubs that
check their environment and sleep for log-normal times. Measured is the whole command, as a CI job sees it:

- sequential: `bash test.sh`, what the project does today;
- waves: the same script by the rule of Transformer Engine's pull request 2824, eight at a time, wait for all;
- sooner: `sooner script test.sh --devices virtual:8`, with nothing known, and again with what the first run took.

    python bench/transformer_engine.py --make DIR    only writes the suite; DIR/test.sh is its script
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import peers
from figures import machine, save, table

DEVICES: Final = 8
SIGMA: Final = 0.8
"""Of the logarithm of the stubs' durations."""
_UNITS: Final = Path(__file__).with_name("transformer_engine_units.json")
_TESTS_A_FILE: Final = 3

_HEAD: Final = """\
#!/bin/bash
# Written by bench/transformer_engine.py in the style of Transformer Engine's qa/L0_pytorch_unittest/test.sh.

function error_exit() {
    echo "Error: $1"
    exit 1
}

function test_fail() {
    RET=1
    FAILED_CASES="$FAILED_CASES $1"
    echo "Error: sub-test failed: $1"
}

RET=0
FAILED_CASES=""

: ${TE_PATH:=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)}
: ${XML_LOG_DIR:=$TE_PATH/logs}
mkdir -p "$XML_LOG_DIR"

python3 -m pytest --version || error_exit "pytest is not installed"

"""
_TAIL: Final = """
if [ "$RET" -ne 0 ]; then
    echo "Error in the following test cases:$FAILED_CASES"
    exit 1
fi
echo "All tests passed"
exit 0
"""
_STUB: Final = '''\
"""Stands in for Transformer Engine's file of this name: checks what it is given, and takes its time."""

import os
import time

import pytest

ENVIRONMENT = {environment!r}
SECONDS = {seconds!r}


def seconds():
    """How long this file takes under this environment."""
    given = " ".join(f"{{name}}={{os.environ[name]}}" for name in sorted(ENVIRONMENT) if name in os.environ)
    return SECONDS[given]


@pytest.mark.parametrize("part", range({parts}))
def test_{word}(part):
    assert "," not in os.environ.get("CUDA_VISIBLE_DEVICES", "0")
    time.sleep(seconds() / {parts})
'''


class Call(NamedTuple):
    """One pytest call of the script."""

    name: str
    path: str
    env: Mapping[str, str]
    seconds: float

    @property
    def line(self) -> str:
        """The call as the script spells it."""
        prefix = "".join(f"{name}={value} " for name, value in self.env.items())
        junit = f"--junitxml=$XML_LOG_DIR/{self.name}.xml"
        short = self.path.removeprefix("tests/pytorch/")
        return f'{prefix}python3 -m pytest --tb=auto {junit} $TE_PATH/{self.path} || test_fail "{short}"\n'


def make_suite(folder: Path, seed: int = 0, scale: float = 2.0) -> Path:
    """Write the script and its stub tests into a folder; returns the script.

    Args:
        folder: Where; made if it is missing.
        seed: Of the durations.
        scale: Mean seconds that a call sleeps (pytest's own start comes on top).
    """
    calls = _calls(seed, scale)
    by_path: dict[str, list[Call]] = {}
    for call in calls:
        by_path.setdefault(call.path, []).append(call)
    for path, same in by_path.items():
        _write_stub(folder / path, same)
    # A configuration of its own, so that pytest does not take that of a project around the folder.
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n", encoding="ascii")
    script = folder / "test.sh"
    script.write_text(_HEAD + "".join(call.line for call in calls) + _TAIL, encoding="utf-8")
    script.chmod(0o755)
    return script


def _calls(seed: int, scale: float) -> list[Call]:
    source = random.Random(seed)
    mu = math.log(scale) - SIGMA**2 / 2
    entries = json.loads(_UNITS.read_text(encoding="utf-8"))
    return [Call(**entry, seconds=round(source.lognormvariate(mu, SIGMA), 2)) for entry in entries]


def _write_stub(path: Path, calls: Sequence[Call]) -> None:
    """One test file for all calls that run it; a path without `.py` is a folder of tests."""
    names = {name for call in calls for name in call.env}
    text = _STUB.format(
        environment=tuple(sorted(names)),
        seconds={" ".join(f"{n}={v}" for n, v in sorted(call.env.items())): call.seconds for call in calls},
        parts=_TESTS_A_FILE,
        word=path.stem.removeprefix("test_"),
    )
    file = path if path.suffix else path / f"test_{path.name}_module.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


class Timing(NamedTuple):
    """One way to run the script."""

    name: str
    wall_s: float
    reports: int
    """JUnit files that are where the script wants them."""
    exit_code: int


def run(name: str, command: Sequence[str | Path], script: Path, cwd: Path, env: Mapping[str, str]) -> Timing:
    """Run the script in one way and time the whole command."""
    logs = cwd / f"junit-{name.replace(' ', '-')}"
    with (cwd / f"{name}.txt").open("wb") as output:
        began = time.monotonic()
        code = subprocess.run(
            list(map(str, command)),
            cwd=cwd,
            env={**env, "TE_PATH": str(script.parent), "XML_LOG_DIR": str(logs)},
            stdout=output,
            stderr=output,
            check=False,
        ).returncode
        wall = time.monotonic() - began
    timing = Timing(name, wall, len(list(logs.glob("*.xml"))), code)
    sys.stderr.write(f"{name}: {wall:.1f} s\n")
    return timing


def measure(folder: Path, seed: int, scale: float) -> tuple[list[Timing], float]:
    """All ways, one after the other; and the bound that the durations of the last run set."""
    script = make_suite(folder / "suite", seed, scale)
    python = peers.plain_pytest()
    if python is None:
        raise SystemExit("bench: this needs pytest, which cannot be installed here")
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    env = peers.environment({"PATH": path, "SOONER_LEASE_DIR": str(folder / "leases")})
    for name in ("waves", "packed"):
        (folder / name).mkdir()  # a state folder each: nothing is known beforehand
    parallel = [*peers.SOONER, "script", script, "--devices", f"virtual:{DEVICES}", "--replay", "none"]
    timings = [
        run("waves", [*parallel, "--policy", "waves"], script, folder / "waves", env),
        run("sooner, cold", parallel, script, folder / "packed", env),
        run("sooner, after a run", [*parallel, "--out", "known"], script, folder / "packed", env),
        run("sequential", ["bash", script], script, folder, env),
    ]
    return [timings[-1], *timings[:-1]], bound_s(folder / "packed" / "known")


def bound_s(run_folder: Path) -> float:
    """No schedule of units this long on 8 devices ends sooner: area or the longest unit."""
    lines = (run_folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
    seconds = [json.loads(line)["duration_s"] for line in lines]
    return max(sum(seconds) / DEVICES, *seconds)


def report(timings: Sequence[Timing], bound: float) -> str:
    """Walls and speed-ups over the sequential script."""
    sequential = next(timing.wall_s for timing in timings if timing.name == "sequential")
    rows = [[t.name, f"{t.wall_s:.1f}", f"{sequential / t.wall_s:.2f}", t.reports, t.exit_code] for t in timings]
    rows.append(["lower bound", f"{bound:.1f}", f"{sequential / bound:.2f}", "", ""])
    return table(["49 calls, 8 devices", "wall, s", "speed-up", "JUnit files", "exit code"], rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--make", metavar="DIR", type=Path, help="only write the suite there")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", type=float, default=2.0, help="mean seconds that a call sleeps (default 2)")
    parser.add_argument("--quick", action="store_true", help="sleeps of 0.5 s: pytest's own start then weighs as much")
    options = parser.parse_args()
    scale = 0.5 if options.quick else options.scale
    if options.make:
        print(make_suite(options.make, options.seed, scale))
        return 0
    before = machine()
    with tempfile.TemporaryDirectory(prefix="sooner-te-") as name:
        timings, bound = measure(Path(name), options.seed, scale)
    print(f"\n{report(timings, bound)}")
    document: dict[str, Any] = {
        "machine": before,
        "options": {"seed": options.seed, "scale": scale},
        "timings": [timing._asdict() for timing in timings],
        "bound_s": bound,
    }
    print(f"\n{save('transformer_engine', document)}")
    return int(any(timing.exit_code for timing in timings))


if __name__ == "__main__":
    sys.exit(main())
