"""`sooner needs`: exactness per idiom, precision and recall of "needs more than 2 devices", speed.

The labels are written by hand and lie beside the fixture projects (tests/projects/needs_*/labels.toml). Two rules are
measured on the same tests: a regular expression over a test's decorators, and PyTorch's coming rule, the largest of
decorator and world size. The speed is that of a generated tree of 4,700 tests, in the manner of PyTorch's
test/distributed: classes of several ranks with inherited set-up, guards, and bodies of some twenty statements.

    python bench/needs.py [--quick] [--no-dry] [--projects DIR] [--tree DIR [PATH...]]

`--projects`: another folder of needs_*/labels.toml (`"node id" = "ssrrrr 2 2"`), for labels of one's own.
"""

import argparse
import ast
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from figures import machine, save, table

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE.parent / "tests" / "plan" / "needs")]
import labelled_projects  # noqa: E402 - the path is set above
from labelled_projects import Label, labels, names, said  # noqa: E402 - as above

_NUMBERS = re.compile(
    r"(?:skip_if_lt_x_gpu|multi_gpu|requires_world_size|world_size|needs|at_least|devices|request_cpu_devices)\(\s*(\d+)"
    r"|(?:min_cuda_gpus|num_gpus|ngpu)\s*=\s*(\d+)|device_count\(\)\s*<\s*(\d+)"
)
_ONE_MORE = re.compile(r"device_count\(\)\s*(?:<=|>)\s*(\d+)")
_WORDS = {
    "require_multi": 2,
    "single_gpu": 2,
    "MULTIGPU": 2,
    "four_gpu": 4,
    "no_cuda": 1,
    "is_available": 1,
    "non_cpu": 1,
}


def decorated(path: Path) -> Iterator[tuple[str, list[str], ast.ClassDef | None]]:
    """Each test function of a file: its name, its decorators and its class's, its class."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            own = [ast.unparse(each) for each in node.decorator_list]
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}::{inner.name}", own + [ast.unparse(d) for d in inner.decorator_list], node
        elif isinstance(node, ast.FunctionDef):
            yield node.name, [ast.unparse(each) for each in node.decorator_list], None


def by_regex(decorators: list[str]) -> int:
    """The largest number of devices that decorators name."""
    found = [int(n) for text in decorators for match in _NUMBERS.findall(text) for n in match if n]
    found += [int(n) + 1 for text in decorators for n in _ONE_MORE.findall(text)]
    found += [n for text in decorators for word, n in _WORDS.items() if word in text]
    return max(found, default=0)


def world_size(node: ast.ClassDef | None) -> int:
    """The number that a class's `world_size` names."""
    text = "" if node is None else ast.unparse(node)
    match = re.search(r"world_size(?:\(self\))?(?: = |:\s+return )(\d+)", text)
    return int(match[1]) if match else 0


def least(label: Label) -> int | None:
    """The fewest devices on which a test runs on devices, or runs at all."""
    if label.gpu_min is not None:
        return label.gpu_min
    return 0 if label.profile[0] == "run" else None


def rules(name: str) -> dict[str, tuple[int, int]]:
    """(decorators, the largest of decorators and world size) of the labelled tests of a project."""
    folder, result = labelled_projects.PROJECTS / name, {}
    for nodeid in labels(name):
        path, _, rest = nodeid.partition("::")
        best: tuple[int, int] = (0, 0)
        for test, decorators, node in decorated(folder / path):
            bare = rest.partition("[")[0]
            if bare == test or bare.startswith(f"{test}_"):
                number = by_regex(decorators)
                best = (number, max(number, world_size(node)))
        result[nodeid] = best
    return result


def precision_recall(pairs: list[tuple[bool, bool]]) -> tuple[float, float]:
    """(said, true) pairs."""
    hits = sum(a and b for a, b in pairs)
    return hits / max(1, sum(a for a, _ in pairs)), hits / max(1, sum(b for _, b in pairs))


def accuracy() -> dict[str, object]:
    rows, all_ours, all_regex, all_rule, exact, total, regex_exact = [], [], [], [], 0, 0, 0
    for name in names():
        wanted, found, simple = labels(name), labelled_projects.inferred(name), rules(name)
        right = sum(nodeid in found and said(found[nodeid]) == label for nodeid, label in wanted.items())
        plain = sum(simple[nodeid][0] == (least(label) or 0) for nodeid, label in wanted.items())
        unknown = sum(nodeid not in found or found[nodeid].gpu_min == "unknown" for nodeid in wanted)
        for nodeid, label in wanted.items():
            wide = (least(label) or 0) > 2
            ours = found.get(nodeid)
            value = None if ours is None else said(ours).gpu_min
            all_ours.append((isinstance(value, int) and value > 2, wide))
            all_regex.append((simple[nodeid][0] > 2, wide))
            all_rule.append((simple[nodeid][1] > 2, wide))
        exact, total, regex_exact = exact + right, total + len(wanted), regex_exact + plain
        percent = [f"{100 * each / len(wanted):.0f} %" for each in (right, plain)]
        rows.append((name.removeprefix("needs_"), len(wanted), *percent, unknown))
    rows.append(("all", total, f"{100 * exact / total:.1f} %", f"{100 * regex_exact / total:.1f} %", ""))
    print(table(("idiom", "labels", "exact profile", "regex: least right", "unknown"), rows))
    contenders = {"sooner": all_ours, "decorator regex": all_regex, "max(decorator, world size)": all_rule}
    wide = {name: precision_recall(pairs) for name, pairs in contenders.items()}
    print("\nneeds more than 2 devices")
    print(
        table(("", "precision", "recall"), [(k, f"{100 * p:.1f} %", f"{100 * r:.1f} %") for k, (p, r) in wide.items()])
    )
    return {"labels": total, "exact": exact / total, "regex": regex_exact / total, "wide": wide}


HEAD = """import unittest

import torch
import torch.distributed as dist
from torch.testing._internal.common_distributed import (
    MultiProcessTestCase, requires_nccl, skip_if_lt_x_gpu,
)
from base_{group} import Base, SIZES


"""
BODY = """
    @requires_nccl()
    @skip_if_lt_x_gpu({guard})
    def test_{number}(self):
        device = torch.device("cuda", self.rank % {guard})
        self.init()
        parts = [torch.full((4, 4), float(i), device=device) for i in range({ranks})]
        total = torch.zeros(4, 4, device=device)
        for i, part in enumerate(parts):
            total += part * (i + 1)
        if {number} % 3 == 0:
            expected = sum(i * (i + 1) for i in range({ranks}))
        else:
            expected = None
        config = {{"world_size": 8, "ranks": list(range({ranks})), "name": f"case-{number}"}}
        model = torch.nn.Sequential(*[torch.nn.Linear(16, 16) for _ in range(4)]).to(device)
        for step in range(3):
            out = model(torch.ones(2, 16, device=device))
            out.sum().backward()
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
        self.assertEqual(len(config["ranks"]), {ranks})
        if expected is not None:
            self.assertEqual(total.shape, parts[0].shape)
        dist.barrier()
"""


def tree(folder: Path, tests: int) -> int:
    """A project of so many tests; returns how many there are."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    place, made = folder / "test" / "distributed", 0
    place.mkdir(parents=True)
    for group in range(4):
        (place / f"base_{group}.py").write_text(
            "import torch\nimport torch.distributed as dist\n"
            "from torch.testing._internal.common_distributed import MultiProcessTestCase\n\nSIZES = [1, 2, 4]\n\n\n"
            f"class Base(MultiProcessTestCase):\n    backend = {'nccl' if group % 2 else 'gloo'!r}\n\n"
            "    def setUp(self):\n        super().setUp()\n        self._spawn_processes()\n\n"
            "    def init(self):\n        store = dist.FileStore(self.file_name, self.world_size)\n"
            "        dist.init_process_group(self.backend, store=store, rank=self.rank, world_size=self.world_size)\n"
        )
    files = 94
    for file in range(files):
        share = tests // files + (file < tests % files)
        text = [HEAD.format(group=file % 4)]
        for start in range(0, share, 10):
            ranks = (2, 2, 4, 2)[(file + start) % 4]
            text.append(f"class Test{start}(Base):\n    @property\n    def world_size(self):\n        return {ranks}\n")
            for number in range(start, min(start + 10, share)):
                text.append(BODY.format(number=number, ranks=ranks, guard=max(ranks, (2, 4, 2, 2, 8)[number % 5])))
                made += 1
            text.append("\n\n")
        (place / f"test_file_{file}.py").write_text("".join(text))
    return made


def speed(tests: int, *, dry: bool) -> dict[str, object]:
    folder = Path(tempfile.mkdtemp(prefix="needs-bench-"))
    try:
        count = tree(folder, tests)
        rows = []
        for options in ([], ["--dry"]) if dry else ([],):
            begin = time.perf_counter()
            command = [sys.executable, "-m", "sooner", "needs", "test", "--no-cache", "--json", *options]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            seconds = time.perf_counter() - begin
            rows.append((" ".join(["static", *options]), count, done.stdout.count('"nodeid"'), f"{seconds:.1f} s"))
            if done.returncode:
                print(done.stderr)
        rows += door(folder)
    finally:
        shutil.rmtree(folder)
    print()
    print(table(("speed", "tests", "found", "wall"), rows))
    return {"rows": rows}


def door(folder: Path) -> list[tuple[str, int, int, str]]:
    """What pytest's door pays: the first start evaluates, the second reads what was kept, in a process of its own."""
    program = (
        "import sys, time\nfrom pathlib import Path\nroot = Path(sys.argv[1])\n"
        "paths = [str(p.relative_to(root)) for p in root.rglob('test_*.py')]\nbegin = time.perf_counter()\n"
        "from sooner.door.needs import of_tests\n"
        "found = of_tests(root, paths, cache=root / '.kept', seconds=600.0)\n"
        "print(len(found.by_nodeid), time.perf_counter() - begin)"
    )
    rows = []
    for name in ("door, first start", "door, second start"):
        command = [sys.executable, "-c", program, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        count, seconds = done.stdout.split()
        each = 1000 * float(seconds) / int(count)
        rows.append((name, int(count), int(count), f"{float(seconds):.2f} s ({each:.3f} ms a test)"))
    return rows


def real(folder: Path, paths: list[str]) -> dict[str, object]:
    """The speed on a tree of one's own."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "sooner", "needs", *paths, "--no-cache", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    count, seconds = done.stdout.count('"nodeid"'), time.perf_counter() - begin
    row = (folder.name, count, f"{seconds:.1f} s", f"{4700 * seconds / max(1, count):.1f} s")
    print()
    print(table(("tree", "tests", "wall", "for 4,700"), [row]))
    return {"row": row}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tree of 470 tests")
    parser.add_argument("--no-dry", action="store_true", help="leave the dry sweep out (it imports torch)")
    parser.add_argument("--projects", type=Path, help="another folder of needs_*/labels.toml")
    parser.add_argument("--tree", type=Path, help="only the speed, on a checkout (with the paths that follow)")
    parser.add_argument("paths", nargs="*", default=["tests"], help="what to look at in --tree")
    options = parser.parse_args()
    if options.tree:
        print(save("needs_tree", {"machine": machine(), **real(options.tree.resolve(), options.paths)}))
        return
    if options.projects:
        labelled_projects.PROJECTS = options.projects.resolve()
    figures = accuracy()
    timed = speed(470 if options.quick else 4700, dry=not options.no_dry)
    print(f"\n{save('needs', {'machine': machine(), 'accuracy': figures, 'speed': timed})}")


if __name__ == "__main__":
    main()
