"""What `sooner needs` says of tests as they are, beside what it says of the same tests written otherwise.

Test files of a tree are drawn and written in ways that say the same (`rewritings.py`: conditions in variables, marks in
functions, bodies in helpers, classes in pieces, decorators applied by hand, imports renamed, ...), one kind at a time,
and asked again. No label is needed and nothing is run: an answer that differs is wrong before or after. With
`--grammar` the files are drawn projects whose truth pytest itself gave in `needs_against_pytest.py`.

With `--behind` the tests stay as they are, and what stands behind them is written otherwise: helpers, conftests and the
library, as far as they were read.

    python bench/needs_rewritten.py TREE [PATH ...] [--files 40] [--seed 1] [--kinds hoisted,outlined] [--behind]
    python bench/needs_rewritten.py --grammar trees [--projects 20] [--seed 1]
"""

import argparse
import ast
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from figures import machine, save, suite, table
from needs_against_pytest import Drawn
from rewritings import MOVED, REWRITINGS, rewriting
from sooner.door.needs_asking import shipped_rules
from sooner.door.needs_tree import Contents, sources_of
from sooner.plan.needs import Confidence, Inference, PytestSettings, Sources, TestNeeds, load_rules
from sooner.run.in_processes import in_processes

_SAID: Final = ("min", "gpu_min", "full", "max")


_OF_TESTS: Final = ("aliases", "elsewhere", "inner", "outlined", "wrapped")
"""Kinds for files that nobody imports from, and for tests."""


class Tree(NamedTuple):
    """Files of a project and those of them that are asked about."""

    files: frozenset[str]
    read: Callable[[str], str | None]
    tests: list[str]


class Answers(NamedTuple):
    """What is said of each test, and which files stand behind those of each file."""

    needs: dict[str, TestNeeds]
    behind: dict[str, set[str]]


class Differing(NamedTuple):
    """A test of which something else is said once it is written otherwise."""

    kind: str
    nodeid: str
    before: str
    after: str
    is_certain: bool


def of_disk(root: Path, paths: list[str], files: int, seed: int) -> Tree:
    """Test files drawn from those on disk."""
    sources = sources_of(root, Contents(root))
    found = [each for each in suite(root, paths or ["."]) if each in sources.files]
    drawn = random.Random(seed).sample(found, min(files, len(found)))
    return Tree(sources.files, sources.read, sorted(drawn))


def of_grammar(name: str, seed: int) -> Tree:
    """A drawn project."""
    drawn = Drawn(seed, name)
    project = drawn.tree() if name in ("objects", "trees") else {"tests/test_drawn.py": drawn.file()}
    tests = [each for each in project if PurePosixPath(each).name.startswith("test_")]
    return Tree(frozenset(project), project.get, sorted(tests))


def rewritten(tree: Tree, kind: str, paths: Iterable[str]) -> dict[str, str]:
    """The texts that a kind of rewriting makes of some files, by their paths."""
    texts: dict[str, str] = {}
    for path in paths:
        try:
            made = rewriting(kind)(ast.parse(tree.read(path) or ""))
        except SyntaxError:
            continue
        place = PurePosixPath(path)
        for before, each in (made or {}).items():
            text = ast.unparse(each)
            if before == "" and MOVED in (made or {}):
                dots = "." if str(place.with_name("__init__.py")) in tree.files else ""
                text = f"from {dots}{MOVED}{place.stem} import *\n"
            texts[str(place.with_name(before + place.name))] = text
    return texts


def asked(tree: Tree, texts: Mapping[str, str], tests: Iterable[str]) -> Answers:
    """What is said of tests, with some of the files written otherwise."""
    sources = Sources(tree.files | texts.keys(), lambda path: texts[path] if path in texts else tree.read(path))
    inference = Inference(sources, load_rules([("rules.toml", shipped_rules())]), PytestSettings())
    needs = {each.nodeid: each for path in tests for each in inference.of_file(path)}
    return Answers(needs, {path: sources.behind(path)[0] - {path} for path in tests})


def said(needs: TestNeeds | None) -> tuple[Any, ...]:
    """What is compared."""
    return () if needs is None else (*(getattr(needs, each) for each in _SAID), *map(str, needs.profile.values()))


def shown(needs: TestNeeds | None) -> str:
    """An answer in short."""
    return "none" if needs is None else f"{needs.min},{needs.gpu_min},{needs.full} {needs.confidence.value}"


def differing(kind: str, before: Mapping[str, TestNeeds], after: Mapping[str, TestNeeds]) -> Iterator[Differing]:
    """Tests whose answers differ."""
    for nodeid, needs in before.items():
        other = after.get(nodeid)
        if said(needs) != said(other) or (other is not None and needs.confidence != other.confidence):
            is_certain = said(needs) != said(other) and other is not None and other.confidence is Confidence.HIGH
            yield Differing(kind, nodeid, shown(needs), shown(other), is_certain or other is None)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path, nargs="?")
    parser.add_argument("paths", nargs="*", help="below the tree; all of it by default")
    parser.add_argument("--grammar", choices=("grammar", "bodies", "objects", "ranks", "sizes", "trees"))
    parser.add_argument("--projects", type=int, default=20)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(REWRITINGS))
    parser.add_argument("--behind", action="store_true", help="write otherwise what the tests import, not the tests")
    parser.add_argument("--show", type=int, default=10, help="how many of each kind's differing tests are printed")
    parser.add_argument("--jobs", type=int, default=0)
    args = parser.parse_args()
    if (args.tree is None) == (args.grammar is None):
        parser.error("either a tree or --grammar")
    sys.setrecursionlimit(10_000)
    seeds = range(args.seed, args.seed + (args.projects if args.grammar else 1))
    trees = [
        of_grammar(args.grammar, seed) if args.grammar else of_disk(args.tree, args.paths, args.files, seed)
        for seed in seeds
    ]
    before = [asked(each, {}, each.tests) for each in trees]
    rows: dict[str, tuple[int, list[Differing]]] = {}

    def answered(kind: str) -> tuple[int, list[Differing]]:
        tests, found = 0, list[Differing]()
        for tree, known in zip(trees, before, strict=True):
            behind = {
                path: {each for each in files if each.endswith(".py")} - set(tree.tests)
                for path, files in known.behind.items()
            }
            texts = rewritten(tree, kind, sorted(set().union(*behind.values())) if args.behind else tree.tests)
            changed = [
                path for path in tree.tests if not texts.keys().isdisjoint(behind[path] if args.behind else {path})
            ]
            mine = {nodeid: each for nodeid, each in known.needs.items() if nodeid.partition("::")[0] in set(changed)}
            tests += len(mine)
            found += differing(kind, mine, asked(tree, texts, changed).needs)
        return tests, found

    kinds = [each for each in args.kinds.split(",") if not args.behind or each not in _OF_TESTS]
    in_processes(answered, kinds, most=args.jobs, done=lambda number, one: rows.__setitem__(kinds[number], one))
    lines: list[tuple[str, ...]] = []
    for kind in kinds:
        tests, found = rows[kind]
        surely = sum(each.is_certain for each in found)
        less = sum(each.before.partition(" ")[0] == each.after.partition(" ")[0] for each in found)
        lines.append((kind, str(tests), str(len(found) - less), str(surely), str(less)))
    tests, files = sum(len(each.needs) for each in before), sum(len(each.tests) for each in trees)
    print(f"{tests} tests of {files} files, written otherwise\n")
    print(table(("kind", "tests", "answers that differ", "of them certain", "only the sureness"), lines))
    for kind in kinds:
        by_file = Counter(each.nodeid.partition("::")[0] for each in rows[kind][1])
        for each in rows[kind][1][: args.show]:
            number = by_file[each.nodeid.partition("::")[0]]
            print(f"{kind}: {each.nodeid[-110:]}: {each.before} -> {each.after} ({number} of its file)")
    total = [sum(int(line[i]) for line in lines) for i in range(1, 5)]
    figures = dict(zip(("asked", "differ", "certain", "sureness"), total, strict=True))
    save("needs_rewritten", {"machine": machine(), **figures})
    print(f"\n{figures['asked']} answers, {figures['differ']} differ, {figures['certain']} of them for certain")


if __name__ == "__main__":
    main()
