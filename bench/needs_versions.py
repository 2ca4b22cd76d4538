"""What `sooner needs` says of the tests of one release of a project, beside those that the next one still has.

A test whose function, class and set-up are the same to the letter in both rarely needs other devices: where the
answers differ, either what the test calls has changed, or one of them is wrong. No label is needed and nothing is run.
Cases are compared as a set, since a new case of a list gives all that follow it another number; cases that never run
are left out, since what a library supports changes.

    python bench/needs_versions.py OLD_TREE NEW_TREE [PATH ...]
"""

import argparse
import ast
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from figures import machine, save

_SET_UPS: Final = ("setUp", "setUpClass", "setup_class", "setup_method", "tearDown", "world_size")
"""What of a class besides the test itself says what it needs."""
_NEVER: Final = (None, None, None)


class Answer(NamedTuple):
    """What is said of all cases of a test function."""

    numbers: frozenset[tuple[int | None, ...]]
    """(min, gpu_min, full) of those that ever run."""
    confidence: frozenset[str]


def functions(body: list[ast.stmt], within: str = "", around: str = "") -> Iterator[tuple[str, str]]:
    """Test functions of a file: how pytest names them, and their text with what of their class matters."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield within + node.name, around + ast.unparse(node)
            case ast.ClassDef():
                set_up = [each for each in node.body if getattr(each, "name", "") in _SET_UPS]
                header = ast.ClassDef(node.name, node.bases, node.keywords, [*set_up, ast.Pass()], node.decorator_list)
                yield from functions(node.body, f"{within}{node.name}::", around + ast.unparse(header))
            case ast.If() | ast.Try() | ast.With():
                yield from functions(node.body, within, around)


def texts(tree: Path, path: str) -> dict[str, str]:
    """The texts of the test functions of a file; none where it is not there or not Python."""
    try:
        return dict(functions(ast.parse((tree / path).read_bytes()).body))
    except (OSError, SyntaxError):
        return {}


def answers(tree: Path, paths: list[str]) -> dict[tuple[str, str], Answer]:
    """What is said of each test function of a tree, by its file and name.

    Raises:
        CalledProcessError: The command failed; it has said why.
    """
    with tempfile.TemporaryFile() as out:
        command = [
            sys.executable,
            "-m",
            "sooner",
            "needs",
            *(each for each in paths if (tree / each).exists()),
            "--json",
        ]
        subprocess.run(command, cwd=tree, stdout=out, check=True)
        out.seek(0)
        found: list[dict[str, Any]] = json.load(out)
    cases = defaultdict[tuple[str, str], list[dict[str, Any]]](list)
    for each in found:
        cases[each["path"], each["nodeid"].partition("::")[2].partition("[")[0]].append(each)
    return {
        key: Answer(
            frozenset((one["min"], one["gpu_min"], one["full"]) for one in several) - {_NEVER},
            frozenset(one["confidence"] for one in several),
        )
        for key, several in cases.items()
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("paths", nargs="*", default=["tests"], help="below both trees; `tests` by default")
    parser.add_argument("--show", type=int, default=30, help="how many of the tests that differ are printed")
    args = parser.parse_args()
    old, new = answers(args.old, args.paths), answers(args.new, args.paths)
    same = [
        (path, name)
        for path in sorted({path for path, _ in old})
        for before, after in [(texts(args.old, path), texts(args.new, path))]
        for name, text in before.items()
        if after.get(name) == text and (path, name) in old
    ]
    gone = [each for each in same if each not in new]
    differ = [each for each in same if each in new and old[each].numbers != new[each].numbers]
    certain = [each for each in differ if old[each].confidence | new[each].confidence == {"high"}]
    for path, name in [*gone, *differ][: args.show]:
        before, after = old[path, name], new.get((path, name))
        numbers = sorted(before.numbers, key=str), sorted(after.numbers, key=str) if after else "not found"
        sure = sorted(before.confidence | (after.confidence if after else set()))
        print(f"{path}::{name} {numbers[0]} -> {numbers[1]} {', '.join(sure)}")
    figures = {"same": len(same), "gone": len(gone), "differ": len(differ), "certain": len(certain)}
    save("needs_versions", {"machine": machine(), **figures})
    print(
        f"{figures['same']} test functions are the same in both: {figures['differ']} answers differ, "
        f"{figures['certain']} of them certain, {figures['gone']} not found"
    )


if __name__ == "__main__":
    main()
