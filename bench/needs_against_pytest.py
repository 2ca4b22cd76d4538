"""`sooner needs` against pytest itself: projects that a grammar writes are run at six numbers of devices, and read.

No label is written by a hand: what a test does with N visible devices is what pytest reports of it, with a stand-in for
`torch` that has N devices (there is no machine here with eight). `sooner needs` reads the same files and runs nothing.
A test agrees where the whole profile does: runs, skips, fails or is absent at 0, 1, 2, 3, 4 and 8 devices. The grammar
(`needs_written/grammar.txt`) has guards, decorators, fixtures, hooks, parametrisations and classes as suites have them;
the evaluator was mended for what it has, so this says that none of it was lost, not that all suites are understood.
`--grammar bodies` writes tests that reach a device, or do not, by the means that Python has (loops, exceptions,
contexts, generators, special methods, the standard library), `--grammar ranks` tests that start processes of ranks,
threads and scripts, `--grammar trees` whole projects, whose guards, fixtures, hooks and classes are spread over
packages and conftests, `--grammar sizes` tests that come to their number of devices by settings, tables and iterators,
`--grammar objects` projects whose library has objects that use devices by their numbers; how many devices a test uses
is compared there, too.

    python bench/needs_against_pytest.py [--grammar bodies|objects|ranks|sizes|trees] [--seed 1] [--projects 6]
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from figures import machine, save, table

SIZES: Final = (0, 1, 2, 3, 4, 8)
FILES: Final = 8
ENTRIES: Final = 8
WRITTEN: Final = Path(__file__).resolve().parent / "needs_written"

_WORD: Final = re.compile(r"^([ ]*)<([a-z]+)>$|<([a-z]+)>", re.MULTILINE)
_COUNTS: Final = (1, 2, 2, 3, 4, 4, 8)
_INDICES: Final = (0, 0, 1, 1, 2, 3)


def grammar(name: str) -> dict[str, list[str]]:
    """The alternatives of each word."""
    text = (WRITTEN / f"{name}.txt").read_text(encoding="utf-8")
    parts = re.split(r"^\[([a-z]+)\]\n", text, flags=re.MULTILINE)[1:]
    return {word: body.removesuffix("\n").removesuffix("\n").split("\n--\n") for word, body in batched(parts, 2)}


def batched(parts: list[str], size: int) -> Iterator[tuple[str, ...]]:
    """Some at a time."""
    return zip(*(iter(parts),) * size, strict=True)


class Drawn:
    """Test files, drawn from the grammar.

    Args:
        seed: Of the draws.
        written: The grammar.
    """

    def __init__(self, seed: int, written: str) -> None:
        self._grammar = grammar(written)
        self._draws = random.Random(seed)
        self._last = 0

    def word(self, name: str) -> str:
        """One of the alternatives of a word, with all words in it replaced."""
        self._last += 1
        same = {"n": str(self._draws.choice(_COUNTS)), "m": str(self._draws.choice(_COUNTS))}
        same |= {"i": str(self._draws.choice(_INDICES)), "k": str(self._last)}

        def replaced(found: re.Match[str]) -> str:
            indent, inner = found[1] or "", found[2] or found[3]
            text = same[inner] if inner in same else self.word(inner)
            return "\n".join(indent + line if line else line for line in text.split("\n"))

        return _WORD.sub(replaced, self._draws.choice(self._grammar[name]))

    def tree(self) -> dict[str, str]:
        """A whole project: what is in each of its files, by path."""
        parts = re.split(r"^=== (.+)\n?", self.word("project"), flags=re.MULTILINE)[1:]
        return {path: text for path, text in batched(parts, 2) if text.strip() != "absent"}

    def file(self) -> str:
        """A test file."""
        parts = [self.word(each) for each in ("head", "module", *["entry"] * ENTRIES, "tail")]
        return "\n\n".join(part for part in parts if part) + "\n"


def by_pytest(project: Path, size: int, *, is_counted: bool = False) -> dict[str, Any]:
    """What pytest reports of each test with so many devices, by node id; of a file that skips itself, that it did.

    Where devices are counted, a test that runs has how many it used beside it.
    """
    kept = project / f"outcomes-{size}.json"
    environment = (
        os.environ
        | {
            "STAND_IN_DEVICES": str(size),
            "KEPT_OUTCOMES": str(kept),
            "PYTHONPATH": str(WRITTEN / "stand_in"),
            "PATH": os.pathsep.join(
                [str(WRITTEN / "stand_in/bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
            ),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        | ({"COUNT_DEVICES": "1", "KEPT_USES": str(project / f"uses-{size}")} if is_counted else {})
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "kept_outcomes", "-p", "no:cacheprovider", "-p", "no:sooner"]
    subprocess.run([*command, "tests"], cwd=project, env=environment, capture_output=True, check=False)
    found: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    broken = next((each for each in found if each.startswith("collection failed")), None)
    if broken is None:
        return found
    written = project / broken.removeprefix("collection failed: ")
    if not written.is_file():
        sys.exit(f"{project}: {broken}: {found[broken]}")
    written.unlink()  # the grammar has written what no suite has, such as a name twice
    return by_pytest(project, size, is_counted=is_counted)


def by_needs(project: Path) -> dict[str, Any]:
    """What `sooner needs` says, by node id."""
    command = [sys.executable, "-m", "sooner", "needs", "tests", "--no-cache", "--json"]
    environment = os.environ | {"PYTHONPATH": str(WRITTEN.parents[1] / "src")}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=True)
    return {each["nodeid"]: each for each in json.loads(done.stdout)}


def compare(project: Path, *, is_counted: bool) -> list[tuple[str, str, str, str]]:
    """Node id, pytest's profile, that of `sooner needs`, and how sure it is, for each test that pytest has seen."""
    outcomes = {size: by_pytest(project, size, is_counted=is_counted) for size in SIZES}
    said = by_needs(project)
    rows = []
    for nodeid in sorted({each for found in outcomes.values() for each in found if "::" in each}):
        skipped = f"skipped: {nodeid.partition('::')[0]}"
        if "[NOTSET" in nodeid:  # the one case of an empty list is said to be absent
            continue
        true = [found.get(nodeid, "skip" if skipped in found else "absent") for found in outcomes.values()]
        mine = said.get(nodeid)
        profile = _letters(mine, is_counted=is_counted) if mine else "-"
        letters = "".join(each[0] if isinstance(each, str) else str(each[1]) for each in true)
        rows.append((nodeid, letters, profile, mine["confidence"] if mine else "-"))
    return rows


def _letters(said: dict[str, Any], *, is_counted: bool) -> str:
    """A profile, a letter for each size; where devices are counted, their number where the test runs."""
    return "".join(
        str(said["devices"].get(size, 0)) if is_counted and verdict == "run" else verdict[0]
        for size, verdict in said["profile"].items()
    )


def write(project: Path, drawn: Drawn, *, is_tree: bool) -> None:
    """Write a project: test files beside helpers that all have, or a tree of its own."""
    if is_tree:
        for path, text in drawn.tree().items():
            (project / path).parent.mkdir(parents=True, exist_ok=True)
            (project / path).write_text(text, encoding="utf-8")
        return
    shutil.copytree(WRITTEN / "tests", project / "tests")
    (project / "pytest.ini").write_text("[pytest]\npythonpath = tests\n", encoding="utf-8")
    for number in range(FILES):
        (project / f"tests/test_{number}.py").write_text(drawn.file(), encoding="utf-8")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--projects", type=int, default=6)
    written = ("grammar", "bodies", "objects", "ranks", "sizes", "trees")
    parser.add_argument("--grammar", choices=written, default="grammar")
    parser.add_argument("--show", type=int, default=20, help="how many of the tests that differ are printed")
    args = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    differing: list[tuple[str, ...]] = []
    total: Counter[str] = Counter()
    for seed in range(args.seed, args.seed + args.projects):
        with tempfile.TemporaryDirectory() as folder:
            project = Path(folder)
            write(project, Drawn(seed, args.grammar), is_tree=args.grammar in ("objects", "trees"))
            compared = compare(project, is_counted=args.grammar != "grammar")
        counts = Counter(
            "agree" if true == mine else "missing" if mine == "-" else "unknown" if "u" in mine else f"differ, {sure}"
            for _, true, mine, sure in compared
        )
        differing += [(str(seed), nodeid, *rest) for nodeid, *rest in compared if rest[0] != rest[1]]
        total += counts
        rows.append(_row(str(seed), counts))
    print("tests whose whole profile is the one that pytest shows\n")
    print(
        table(
            ("seed", "tests", "agree", "differ, sure", "differ, in doubt", "unknown or missing"),
            [*rows, _row("all", total)],
        )
    )
    if differing:
        print("\n" + table(("seed", "test", "pytest", "needs", "sure"), differing[: args.show]))
    save(
        "needs-against-pytest" if args.grammar == "grammar" else f"needs-against-pytest-{args.grammar}",
        {"agree": total["agree"], "tests": total.total(), "machine": machine(), "differ": dict(total)},
    )


def _row(name: str, counts: Counter[str]) -> tuple[str, ...]:
    doubtful = counts["differ, medium"] + counts["differ, low"]
    lost = counts["unknown"] + counts["missing"]
    return name, str(counts.total()), str(counts["agree"]), str(counts["differ, high"]), str(doubtful), str(lost)


if __name__ == "__main__":
    main()
