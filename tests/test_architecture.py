"""Holds the import rules of ARCHITECTURE.md, and the purity of the rooms that promise it."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "sooner"
TESTS = Path(__file__).parent

MAY_IMPORT = {
    "model": set(),
    "devices": {"model"},
    "plan": {"model"},
    "schedule": {"model"},
    "warm": {"model"},
    "run": {"model", "devices", "schedule", "warm"},
    "history": {"model"},
    "workflows": {"model"},
    "analysis": {"model", "history", "schedule"},
    "report": {"model", "analysis"},
    "pytest_plugin": {"door", "warm"},
    "door": {"model", "plan", "devices", "schedule", "run", "warm", "history"},
    "cli": None,
    "__main__": {"cli"},
    "__init__": set(),
}
"""Rooms that each room may import besides itself; None is all."""

PURE_ROOMS = ("model", "plan", "schedule")
IMPURE_MODULES = {
    "os", "sys", "io", "time", "random", "secrets", "subprocess", "socket", "shutil", "tempfile", "logging", "pathlib",
    "asyncio", "threading", "multiprocessing", "signal", "select", "fcntl", "ctypes", "platform", "getpass", "glob",
}  # fmt: skip
IMPURE_CALLS = {"open", "print", "input", "now", "today", "utcnow"}


def _files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def _room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module or ""


@pytest.mark.parametrize("path", _files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_imports_only_the_rooms_it_may(path: Path) -> None:
    room = _room(path)
    allowed = MAY_IMPORT[room]
    for name in _imports(ast.parse(path.read_text(encoding="utf-8"))):
        parts = name.split(".")
        if parts[0] != "sooner" or len(parts) == 1 or parts[1] == room:
            continue
        assert parts[1] != "cli" or room == "__main__", "cli is imported by none"
        assert allowed is None or parts[1] in allowed, f"{room} must not import {name}"


def _names_from(tree: ast.AST, module: str) -> set[str]:
    """What is imported from a module; `*` where the module itself is."""
    names = {
        alias.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module == module for alias in n.names
    }
    whole = any(alias.name == module for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names)
    return names | ({"*"} if whole else set())


def _is_pure(path: Path) -> bool:
    return _room(path) in PURE_ROOMS or path.name == "decide.py"


@pytest.mark.parametrize(
    "path", [path for path in _files() if _is_pure(path)], ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_a_pure_room_touches_no_clock_file_process_or_environment(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    roots = {name.split(".")[0] for name in _imports(tree)}
    if "pathlib" in roots and _names_from(tree, "pathlib") <= {"PurePath", "PurePosixPath"}:
        roots.remove("pathlib")  # paths as text, without a file system
    if "sys" in roots and _names_from(tree, "sys") <= {"stdlib_module_names"}:
        roots.remove("sys")  # what Python's own modules are called
    assert not roots & IMPURE_MODULES
    called = {
        node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    }
    assert not called & IMPURE_CALLS


@pytest.mark.parametrize("path", _files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_stays_below_six_hundred_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < 600


def test_help_imports_no_room_and_nothing_heavy() -> None:
    program = (
        "import sys\nfrom sooner.cli.main import _run\n_run(['--help'])\n"
        "heavy = {'asyncio', 'msgspec', 'rich', 'pynvml', 'sooner.model', 'sooner.run', 'ctypes'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Verbs:" in done.stdout


def test_the_guardian_needs_nothing_but_the_standard_library() -> None:
    program = (
        f"import sys; sys.path.append({str(PACKAGE.parent)!r})\n"
        "import sooner.run.supervision.guardian\n"
        "foreign = {'msgspec', 'click', 'asyncio', 'subprocess'} & set(sys.modules)\n"
        "sys.exit(f'imported {foreign}' if foreign else 0)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_two_files_of_tests_have_one_name() -> None:
    found = Counter(path.name for path in TESTS.rglob("test_*.py") if "projects" not in path.parts)
    assert [name for name, count in found.items() if count > 1] == []  # pytest could not import the second one
