"""The text of a project, as data that came in, and how its modules are found by name."""

import ast
import re
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import PurePosixPath
from sys import stdlib_module_names
from typing import Any, Final

from sooner.plan.needs.star_origins import StarOrigins

_ROOTS: Final = ("", "src", "lib", "python", "tests", "test")
_FRAMEWORKS: Final = frozenset(
    (
        "accelerate", "bitsandbytes", "cudf", "cuml", "cupy", "dask", "deepspeed", "diffusers", "fairscale", "flax",
        "horovod", "ignite", "jax", "keras", "lightgbm", "lightning", "megatron", "mpi4py", "mxnet", "numba", "onnx",
        "onnxruntime", "optax", "peft", "pytorch_lightning", "ray", "sklearn", "tensorflow", "torch", "torchaudio",
        "torchvision", "transformers", "triton", "trl", "vllm", "xgboost",
    )
)  # fmt: skip
"""Packages that tests name folders after (`tests/ray/`): within a package those are not what `import ray` finds."""
_NOT_WITHIN: Final = _FRAMEWORKS | stdlib_module_names
_UP: Final = re.compile(r"(?:\.\./)+")
_CHANGES_PATH: Final = re.compile(r"sys\.?_?path", re.IGNORECASE)
"""`sys.path`, pytest's `syspath_prepend`, helpers such as transformers' `ExtendSysPath`."""
_TEST_WORDS: Final = frozenset(("test", "tests", "testing", "test_utils", "unit_tests", "testing_utils", "conftest"))

_IS_PROGRAM: Final = re.compile(r"""^if __name__ == ['"]__main__['"]:""", re.MULTILINE)
_FOR_TESTS: Final = re.compile(
    r"^[ \t]*(?:import (?:[\w., ]+, *)?py\.?test\b|from py\.?test import\b)"
    r"|^[ \t]*from unittest import [^\n]*(?:TestCase|[sS]kip)"
    r"|\bunittest\.(?:TestCase|SkipTest|skip(?:If|Unless)?)\b"
    r"|\b(?:absltest|parameterized)\.TestCase\b",
    re.MULTILINE,
)
"""What a helper of tests says, which may lie beside the library's own files."""


class Sources:
    """A tree of files: relative paths with `/`, and a way to read one.

    Args:
        files: All Python files of the project, relative to its root; `../` leads to what lies beside or above it.
        read: Gives a file's text, or None where it cannot be read.
        inside: Where the root lies in the checkout around it (`tests`): it may be a folder of tests, with the library
            under test beside it or nowhere.
    """

    def __init__(self, files: Iterable[str], read: Callable[[str], str | None], *, inside: str = "") -> None:
        self.files = frozenset(files)
        self._inside = f"{inside}/" if inside else ""
        self._are_tests = is_test_code(f"{inside.rpartition('/')[2]}/module.py")
        self.tests: set[str] = set()
        """Those of which is known that they hold tests, whatever they are called."""
        self._read = read
        self._texts: dict[str, str | None] = {}
        self._trees: dict[str, ast.Module | None] = {}
        self._lines: dict[str, list[str]] = {}
        self._by_tail: dict[str, list[str]] = {}
        self._around = max(map(_upwards, self.files), default="")
        for path in sorted(self.files, key=lambda each: (bool(_upwards(each)), each.count("/"), each)):
            self._by_tail.setdefault(tail_of(path), []).append(path)
        self._found: dict[tuple[str, str], str | None] = {}
        self._for_tests: dict[str, bool] = {}
        self._uses: dict[str, set[str]] = {}
        self._sought: dict[str, set[str]] = {}
        self.stars = StarOrigins(self)
        self.choices: dict[tuple[int | str, ...], bool] = {}
        """By functions and classes of the library: whether they choose a device by themselves."""
        self.written: dict[tuple[int | str, ...], tuple[set[str], set[tuple[str, str]]]] = {}
        """By methods and classes of the library: what they write, and call, of their object."""

    def is_test_code(self, path: str) -> bool:
        """Whether a file belongs to the tests rather than to the library under test."""
        is_inside = self._are_tests and not _upwards(path)
        return is_inside or path in self.tests or is_test_code(path) or self._is_written_for_tests(path)

    def _is_written_for_tests(self, path: str) -> bool:
        """Whether a file, wherever it lies, has something that only tests have a use for, or is a program.

        A program that a test imports and calls does the test's work, as one that it starts does.
        """
        if path not in self._for_tests:
            text = self.read(path) or ""
            is_program = _IS_PROGRAM.search(text) is not None and self._is_in_no_package(path)
            self._for_tests[path] = is_program or _FOR_TESTS.search(text) is not None
        return self._for_tests[path]

    def _is_in_no_package(self, path: str) -> bool:
        folder = path.rpartition("/")[0]
        return bool(folder) and f"{folder}/__init__.py" not in self.files

    def read(self, path: str) -> str | None:
        """A file's text, or None."""
        if path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts[path]

    def peek(self, path: str) -> str:
        """A file's text, of which nothing is kept; an empty one where there is none."""
        kept = self._texts.get(path)
        return kept if kept is not None else self._read(path) or ""

    def tree(self, path: str) -> ast.Module | None:
        """A file's syntax tree; None where there is no such file or it is not Python."""
        if path not in self._trees:
            text = self.read(path)
            self._trees[path] = None if text is None else parsed(text)
        return self._trees[path]

    def line(self, path: str, number: int) -> str:
        """One line of a file, without its indentation."""
        lines = self._lines.get(path)
        if lines is None:
            lines = self._lines[path] = (self.read(path) or "").splitlines()
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""

    def written_down(self, module: str, name: str, importer: str) -> Any:
        """A list, set or table of plain values that a module in the tree gives a name; None where it has none.

        For modules that are not executed because rules stand in for them.
        """
        path = self.module(module, importer)
        tree = self.tree(path) if path else None
        for each in tree.body if tree else ():
            if isinstance(each, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in each.targets):
                return _plain_container(each.value)
        return None

    def conftests(self, path: str) -> list[str]:
        """The conftest.py files that count for a test file, the outermost first."""
        folders = [str(each) for each in PurePosixPath(path).parents][::-1]
        names = [f"{folder}/conftest.py" if folder != "." else "conftest.py" for folder in folders]
        found = [name for name in names if name in self.files]
        self._sought.setdefault(path, set()).add("conftest")
        self._uses.setdefault(path, set()).update(found)
        return found

    def module(self, name: str, importer: str) -> str | None:
        """The file of an absolute module name, as seen from a file; None where it is not in the tree."""
        key = (name, str(PurePosixPath(importer).parent))
        if key not in self._found:
            self._found[key] = self._search(name, importer)
        self._sought.setdefault(importer, set()).update(_packages(importer))
        return self._used(importer, name, self._found[key])

    def script(self, name: str, importer: str) -> str | None:
        """The file that a command line names, by the end of its path; the nearest one if there are several."""
        folder = importer.rpartition("/")[0]
        named = [path for path in self.files if path == name or path.endswith(f"/{name}")]
        named.sort(key=lambda path: (not path.startswith(folder), len(path), path))
        return self._used(importer, _dotted(name), named[0] if named else None)

    def text_beside(self, name: str, importer: str) -> str | None:
        """The text of a file that is no Python (a shell script), beside a file or in a folder above it.

        Answers follow from its being missing too: it is not among the names that are listed.
        """
        for folder in PurePosixPath(importer).parents:
            path = str(folder / name)
            self._uses.setdefault(importer, set()).add(path)
            text = self.read(path)
            if text is not None:
                return text
        return None

    def data(self, path: str, reader: str) -> str | None:
        """The text of a file that a module reads, if it lies in the tree; its being missing is remembered, too."""
        if len(_upwards(path)) > len(self._around):
            return None
        self._uses.setdefault(reader, set()).add(path)
        return self.read(path)

    def _used(self, importer: str, name: str, found: str | None) -> str | None:
        """Remember that a file's answers follow from another one, or from there being none of that name."""
        self._sought.setdefault(importer, set()).add(name.rpartition(".")[2])
        if found is not None:
            self._uses.setdefault(importer, set()).add(found)
        return found

    def behind(self, path: str) -> tuple[set[str], set[str]]:
        """What the answers about a file follow from: the files, and the last parts of the names that were looked for.

        Both are as far as the file was evaluated until now; further evaluation only adds to them.
        """
        files, names, waiting = {path}, set[str](), [path]
        while waiting:
            each = waiting.pop()
            names |= self._sought.get(each, set())
            new = self._uses.get(each, set()) - files
            files |= new
            waiting += new
        return files, names

    def _search(self, name: str, importer: str) -> str | None:
        base = name.replace(".", "/")
        folders = [str(each) for each in PurePosixPath(importer).parents]
        # Python looks beside packages, not within (`tests/acme/` may be named as `acme/`); scripts beside themselves.
        within = [each for each in folders if self._at(each if each != "." else "", "__init__")]
        above = [f"{self._around}{each}".rstrip("/") for each in _ROOTS if self._around]
        places = [*(each for each in folders if each not in within), *_ROOTS, *above, *within]
        if name.partition(".")[0] in _NOT_WITHIN:
            places = [each for each in places if not each or not self._at(each, "__init__")]
        for folder in places:
            found = self._at("" if folder == "." else folder, base)
            if found:
                return found
        if self._inside and base.startswith(self._inside):
            return self._at("", base.removeprefix(self._inside))
        if "." not in name:
            return self._on_its_path(name, importer)
        named = self._by_tail.get(name.rpartition(".")[2], [])
        tails = [path for path in named if _ends(_dotted(path), name) and not _upwards(path)]
        return tails[0] if tails else None

    def _on_its_path(self, name: str, importer: str) -> str | None:
        """A module beside or below a file that changes `sys.path` itself, or in a folder that it names.

        The nearest one if there are several.
        """
        text = self.read(importer) or ""
        if name not in self._by_tail or not _CHANGES_PATH.search(text):
            return None
        folder = importer.rpartition("/")[0]
        below = [each for each in self._by_tail[name] if each.startswith(f"{folder}/")]
        beside = [each for each in self._by_tail[name] if each.startswith(folder.rpartition("/")[0] + "/")]
        named = [each for each in self._by_tail[name] if "/" in each and each.rpartition("/")[0] in text]
        return next(iter([*below, *beside, *named]), None)

    def _at(self, folder: str, base: str) -> str | None:
        prefix = f"{folder}/{base}" if folder else base
        return next((path for path in (f"{prefix}.py", f"{prefix}/__init__.py") if path in self.files), None)

    def relative(self, importer: str, level: int, name: str) -> str | None:
        """The file that `from ..name import` means."""
        folder = PurePosixPath(importer)
        for _ in range(level):
            folder = folder.parent
        prefix = "" if str(folder) == "." else f"{folder}"
        if not name:
            path = f"{prefix}/__init__.py" if prefix else "__init__.py"
            return self._used(importer, prefix.replace("/", "."), path if path in self.files else None)
        return self._used(importer, name, self._at(prefix, name.replace(".", "/")))


def _plain_container(node: ast.expr) -> Any:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, list | tuple | set | dict) else None


def parsed(text: str) -> ast.Module | None:
    """A syntax tree, or None where the text is not Python."""
    tree: ast.Module | None = parsed_as("exec", text)
    return tree


def parsed_as(mode: str, text: str) -> Any:
    """The tree of a module (`exec`), an expression (`eval`) or a statement (`single`); None of what is no Python.

    What Python would warn of (`1or 2`) is the project's own affair.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, mode=mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def tail_of(path: str) -> str:
    """The last part of a file's module name."""
    return _dotted(path).rpartition(".")[2]


def _upwards(path: str) -> str:
    """The part of a path that leads out of the root: `../../`."""
    found = _UP.match(path)
    return found[0] if found else ""


def _dotted(path: str) -> str:
    return path.removeprefix(_upwards(path)).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@cache
def _packages(path: str) -> set[str]:
    """The last parts of the names that the folders around a file have as packages."""
    return {tail_of(str(folder / "__init__.py")) for folder in PurePosixPath(path).parents}


def _ends(dotted: str, name: str) -> bool:
    return dotted == name or dotted.endswith(f".{name}")


def module_name(path: str) -> str:
    """A dotted name for a file."""
    return _dotted(path)


def is_test_code(path: str) -> bool:
    """Whether a file belongs to the tests rather than to the library under test."""
    parts = PurePosixPath(path).parts
    stem = parts[-1].removesuffix(".py") if parts else ""
    if stem.startswith(("test_", "conftest")) or stem.endswith(("_test", "_tests")) or "testing" in stem:
        return True
    return any(part in _TEST_WORDS or part.endswith("_tests") or part.startswith("tests_") for part in parts[:-1])
