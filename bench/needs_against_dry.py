"""What `sooner needs` reads in a real suite, against what a dry sweep of it finds out by running the guards.

The two share no way to their answer: one interprets the source and imports nothing, the other imports the suite into
pytest with a faked number of devices and cuts bodies down to their guards. Counted are tests that only one of them
lists, and, of those that both list, outcomes that contradict each other at 0, 1, 2, 3, 4 or 8 devices: what runs for
one is skipped or absent for the other. No contradiction is what either does not know, a failure, a skip at every size
(a package that is not there), a pass without ranks (the sweep starts none), and a run of the sweep where the source
says skip: guards behind the first lines of a body, and those of ranks, are not run by it. Suites are no part of this
project: name a tree and its interpreter.

    python bench/needs_against_dry.py TREE [PATH ...] [--python EXE] [--show 20]
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Final

from figures import suite, table
from sooner.run.sweep.dry import sweep

SIZES: Final = (0, 1, 2, 3, 4, 8)
_LETTERS: Final = {"run": "r", "skip": "s", "fail": "f", "absent": "-", "unknown": "?"}


def read(tree: Path, files: list[str]) -> dict[str, str]:
    """The profile of each test by its source, a letter a size."""
    command = [sys.executable, "-m", "sooner", "needs", *files, "--no-cache", "--json"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 5):
        sys.exit(done.stderr)
    return {
        test["nodeid"]: "".join(
            "v" if size in test["vacuous"] else _LETTERS[test["profile"][str(size)]] for size in SIZES
        )
        for test in json.loads(done.stdout)
    }


def swept(tree: Path, files: list[str], python: str, seconds: float) -> tuple[dict[str, str], set[str]]:
    """The profile of each test by a dry sweep, and the files that it could not collect at every size."""
    seen = sweep(tree, files, SIZES, python=python, timeout_s=seconds)
    names = {nodeid for each in seen for nodeid in each.tests}
    profiles = {
        name: "".join(_LETTERS[each.tests[name].outcome] if name in each.tests else "-" for each in seen)
        for name in names
    }
    return profiles, {path for each in seen for path in each.files}


def contradicts(source: str, dry: str) -> bool:
    """Whether a test runs at some size for one of them and cannot for the other."""
    if set(dry) <= {"s", "-"}:
        return False
    return any((a == "r" and b in "s-") or (a == "-" and b == "r") for a, b in zip(source, dry, strict=True))


def main() -> None:
    """Compare, and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tree", type=Path)
    parser.add_argument("paths", nargs="*", default=["."])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--timeout", type=float, default=900.0)
    parser.add_argument("--show", type=int, default=20)
    options = parser.parse_args()
    tree = options.tree.resolve()
    files = suite(tree, options.paths)
    source = read(tree, files)
    dry, broken = swept(tree, files, options.python, options.timeout)
    source = {name: profile for name, profile in source.items() if name.partition("::")[0] not in broken}
    dry = {name: profile for name, profile in dry.items() if name.partition("::")[0] not in broken}
    both = source.keys() & dry.keys()
    wrong = [name for name in sorted(both) if contradicts(source[name], dry[name])]
    print(
        table(
            ["what", "tests"],
            [
                ["files (collected at every size)", f"{len(files)} ({len(files) - len(broken)})"],
                ["listed by both", str(len(both))],
                ["by the dry sweep only", str(len(dry.keys() - both))],
                ["by the source only", str(len(source.keys() - both))],
                ["skipped for the dry sweep at every size", str(sum(set(dry[name]) <= {"s", "-"} for name in both))],
                ["contradictions", str(len(wrong))],
            ],
        )
    )
    kinds = Counter((name.partition("::")[0], source[name], dry[name]) for name in wrong)
    for (path, said, found), count in kinds.most_common(options.show):
        print(f"{count} of {path}: {said} by the source, {found} by the dry sweep")
    for name in sorted(dry.keys() ^ source.keys())[: options.show]:
        print(f"only by the {'dry sweep' if name in dry else 'source'}: {name}")


if __name__ == "__main__":
    main()
