"""What may use a device and is not seen to: what is not there to be read, modules named after devices, arrays."""

import ast
import functools
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import Cls, Dev, Ext, Func, Unknown, hard
from sooner.plan.needs.syntax import calls_in, kept, last_name

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

LOOKED_AT: Final = "a device is looked at"

CHOSEN: Final = "a device is chosen"
"""Why a rule says so: from then on it is meant where none is named."""

_TO_CUDA: Final = re.compile(r"(?:to|from|as)_(?:cuda|cudf|cupy|gpu)")
_OF_DEVICES: Final = re.compile(r"(?!torch\.|tensorflow\.)(?:[\w.]+[._])?(?:cuda|gpu|nccl|rocm|hip)\d*[._]")
"""Names of modules that speak of devices; of PyTorch and TensorFlow rules say what uses one."""
_OF_ARRAYS: Final = re.compile(
    r"^[ \t]*(?:import|from)[ \t]+(jax|tensorflow|cupy|cudf|cuml|cugraph|pylibcugraph|pylibraft|cuvs|pylibcudf)\b",
    re.MULTILINE,
)
"""Imports of frameworks that put what is made on their first device, whoever makes it."""
ON_THE_HOST: Final = frozenset(
    (
        "argparse", "asyncio", "collections", "contextlib", "copy", "dataclasses", "enum", "functools", "io",
        "itertools", "json", "logging", "numpy", "os", "pathlib", "pickle", "posix", "random", "re", "shutil", "signal",
        "socket", "string", "subprocess", "tempfile", "time", "types", "typing", "unittest", "uuid", "warnings",
    )
)  # fmt: skip
"""Packages that use no devices: what is called `device` there is another thing, or refused, or only kept."""
SAYING: Final = ("Config", "Args", "Spec", "Mock", "Placement", "Params", "Connector", "Strategy")
"""Ends of names of what only says which devices there are."""
_ASKS: Final = re.compile(
    r"_*(?:assert|can|check|equal|format|get|has|is|name|normalize|parse|print|repr|str|supports|test"
    r"|validate)(?:_|[A-Z]|$)"
)
"""Beginnings of names of functions that ask something of a device rather than use it."""
_SETTINGS: Final = re.compile(
    r"_*(?:\w+_)?(?:cfg|conf|configs?|args|opts?|options|settings|hparams|flags)", re.IGNORECASE
)
_ASKING: Final = re.compile(
    r"_*(is|has|can|get|set|select|find|check|validate|supports?|resolve|infer|parse|normali[sz]e|to|choose|pick|register|use)(_|$)"
)
"""Beginnings of names of functions that are told of a kind of device and use none."""
_READ: Final = frozenset(
    (
        "_pytest", "absl", "attr", "attrs", "c10d", "chex", "click", "cloudpickle", "cupy", "cupyx", "dateutil",
        "dill", "docker", "dotenv", "expecttest", "filelock", "freezegun", "fsspec", "google", "httpx",
        "huggingface_hub", "hydra", "hypothesis", "importlib_metadata", "jax", "jaxlib", "jinja2", "joblib",
        "jsonschema", "lmdb", "matplotlib", "ml_collections", "ml_dtypes", "mock", "msgpack", "msgspec", "networkx",
        "numba", "numpy", "omegaconf", "packaging", "pandas", "parameterized", "peewee", "PIL", "pkg_resources",
        "psutil", "py", "pyarrow", "pydantic", "pyfakefs", "pytest", "pytest_mock", "regex", "requests", "responses",
        "rich", "ruamel", "safetensors", "scipy", "setuptools", "simplejson", "six", "sklearn", "sympy", "tabulate",
        "tensorflow", "termcolor", "toml", "tomli", "toolz", "torch", "tqdm", "triton", "typeguard", "typer",
        "typing_extensions", "urllib3", "wheel", "yaml", "zmq",
    )
)  # fmt: skip
"""Packages that use no devices, and frameworks of which rules say what does."""
OF_PYTHON: Final = frozenset(
    (
        "__future__", "abc", "argparse", "array", "ast", "asyncio", "atexit", "base64", "bisect", "builtins", "bz2",
        "calendar", "cmath", "cmd", "code", "codecs", "collections", "colorsys", "compileall", "concurrent",
        "configparser", "contextlib", "contextvars", "copy", "copyreg", "cProfile", "csv", "ctypes", "curses",
        "dataclasses", "datetime", "decimal", "difflib", "dis", "email", "enum", "errno", "faulthandler",
        "fcntl", "filecmp", "fileinput", "fnmatch", "fractions", "ftplib", "functools", "gc", "getopt", "getpass",
        "gettext", "glob", "graphlib", "grp", "gzip", "hashlib", "heapq", "hmac", "html", "http", "importlib",
        "inspect", "io", "ipaddress", "itertools", "json", "keyword", "linecache", "locale", "logging", "lzma",
        "mailbox", "marshal", "math", "mimetypes", "mmap", "multiprocessing", "netrc", "numbers", "opcode",
        "operator", "optparse", "os", "pathlib", "pdb", "pickle", "pickletools", "pkgutil", "platform", "plistlib",
        "posix", "posixpath", "pprint", "profile", "pstats", "pty", "pwd", "py_compile", "pydoc", "queue", "quopri",
        "random", "re", "readline", "reprlib", "resource", "runpy", "sched", "secrets", "select", "selectors",
        "shelve", "shlex", "shutil", "signal", "site", "smtplib", "socket", "socketserver", "sqlite3", "ssl", "stat",
        "statistics", "string", "stringprep", "struct", "subprocess", "symtable", "sys", "sysconfig", "syslog",
        "tarfile", "tempfile", "termios", "test", "textwrap", "threading", "time", "timeit", "tkinter", "token",
        "tokenize", "tomllib", "trace", "traceback", "tracemalloc", "tty", "types", "typing", "unicodedata",
        "unittest", "urllib", "uuid", "venv", "warnings", "wave", "weakref", "webbrowser", "wsgiref", "xml", "xmlrpc",
        "zipapp", "zipfile", "zipimport", "zlib", "zoneinfo",
    )
)  # fmt: skip
"""Python's own modules, whichever version runs this."""


def chosen(machine: "Machine", device: Any) -> Any:
    """The device that is chosen: some device, and less sure, where nobody knows its number."""
    if isinstance(device, Dev):
        return device
    machine.guesses += 1
    return Dev("cuda")


def need_for_import(machine: "Machine", name: str) -> None:
    """A module that makes a context of the first device while it is imported, or is not imported without one."""
    variable = machine.rules.refuses_without(name)
    is_refused = variable is not None and not machine.visible() and machine.is_set(variable) is False
    if is_refused or machine.rules.takes_a_device(name):
        machine.need(1, "an import takes a device")


def is_unseen(path: str) -> bool:
    """Whether a dotted name is of a package that is not there to be read, and of which nothing is known."""
    package = path.partition(".")[0]
    return package != path and package not in _READ and package not in OF_PYTHON


def only_asks(name: str) -> bool:
    """Whether a function's name says that it asks something of a device."""
    return _ASKS.match(name) is not None


def works_with_devices(func: Ext | Unknown) -> bool:
    """Whether a function is of such a package, and its name does not say that it only asks something of a device."""
    return isinstance(func, Ext) and is_unseen(func.path) and not only_asks(func.path.rpartition(".")[2])


def may_use_devices(func: Ext | Unknown, built: set[str]) -> bool:
    """Whether a function may use a device: it is of such a package, compiled, or its name speaks of devices."""
    is_away = isinstance(func, Ext) and is_unseen(func.path)
    return is_away or is_in(func.path, built) or speaks_of_devices(func.path)


def is_told_of_devices(arguments: Mapping[str, Any]) -> bool:
    """Whether a call says how many devices, or of which kind, the library shall take (`devices=2, accelerator="auto"`).

    Whether it takes them is seldom seen: it is many steps away, and behind what asks the machine.
    """
    if not arguments.keys() & {"devices", "accelerator"}:
        return False
    return arguments.get("accelerator") != "cpu" and arguments.get("devices", "auto") not in (None, 0)


def devices_told(machine: "Machine", name: str, several: Sequence[Any]) -> Sequence[Any]:
    """Those of the devices that a call is told of (`devices=`) which it may use.

    What is registered is there for them. Of kinds that have the host among them (`["cpu", "cuda"]`) it uses those that
    are there.
    """
    if name.startswith("register"):
        return ()
    kinds = [hard(each) for each in several]
    if "cpu" not in kinds or any(not isinstance(each, str) or ":" in each for each in kinds):
        return several
    machine.guesses += not machine.quiet
    return several if machine.visible() else ()


def names_a_device(node: ast.Call, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a call names a device of which nothing is known (`x.to(device)`, `ones(2, device=self.device)`).

    Where some tensor or model is (`x.to(y.device)`) is no choice of a device; what settings say (`cfg.device`) is one.
    """
    in_first, in_named, is_set = _places_of_device(node)
    given = [*args[:in_first], *([kwargs["device"]] if in_named and "device" in kwargs else ())]
    values = [hard(each) for each in given]
    unknown = [each.path for each in values if isinstance(each, Unknown)]
    if any(isinstance(each, Ext) and not each.path.startswith("torch.") for each in values):
        return True  # a constant of a module that is not there
    return any(is_set or not each.endswith(("device", ".get_device()")) for each in unknown)


@kept
def _places_of_device(node: ast.Call) -> tuple[bool, bool, bool]:
    """Whether a call has a device as the first thing that it is given, whether by name, and whether settings say it."""
    is_moved = isinstance(node.func, ast.Attribute) and node.func.attr == "to" and len(node.args) > 0
    first = node.args[0] if is_moved else None
    first = first.func if isinstance(first, ast.Call) else first
    named = [each.value for each in node.keywords if each.arg == "device"]
    is_set = any(_is_of_settings(each) for each in (first, *named))
    return "device" in last_name(first).lower(), bool(named), is_set


def _is_of_settings(node: ast.AST | None) -> bool:
    """Whether an expression is what settings say (`self.config.device`)."""
    owner = node.value if isinstance(node, ast.Attribute) else None
    return bool(_SETTINGS.fullmatch(last_name(owner)))


def chooses_device(node: ast.AST) -> bool:
    """Whether a function's own code chooses a device (`set_device(rank)`)."""
    return any(each.startswith("set_device") for each in methods_called(node))


@kept
def methods_called(node: ast.AST) -> set[str]:
    """The names of all methods that a function's own code calls."""
    return {each.func.attr for each in calls_in(node) if isinstance(each.func, ast.Attribute)}


def moves_by_name(name: str, args: Sequence[Any]) -> bool:
    """Whether a function's name, or a kind that it is told, says that it moves something to a device of CUDA's."""
    is_told = name in ("to_backend", "to_device") and len(args) > 1 and hard(args[1]) == "cuda"
    return is_told or _TO_CUDA.fullmatch(name) is not None


def device_given(func: Func, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """What a function is given by name, and the device that it is given without, unless it only says which there is."""
    if func.name == "__init__" and func.owner is not None and func.owner.name.endswith(SAYING):
        return {name: value for name, value in kwargs.items() if name not in ("device", "devices")}
    names = func.positional
    if "device" not in names or (_ASKING.match(func.name) and not _puts_on_given(func.node)):
        return kwargs
    return {name: value for name, value in zip(names, args, strict=False) if name == "device"} | kwargs


@kept
def _puts_on_given(node: ast.AST) -> bool:
    """Whether a function makes a tensor on, or moves one to, the device that it is given."""
    return any(_is_put_on_given(each, each.func) for each in calls_in(node) if isinstance(each.func, ast.Attribute))


def _is_put_on_given(call: ast.Call, method: ast.Attribute) -> bool:
    is_made = getattr(method.value, "id", "") == "torch"
    given = call.args[:1] if method.attr == "to" else []
    given += [each.value for each in call.keywords if each.arg == "device" and (is_made or method.attr == "to")]
    return any(getattr(each, "id", "") == "device" for each in given)


@kept
def only_asks_of_given(node: ast.AST) -> bool:
    """Whether a function does no more with its `device` than to compare it and to ask of it."""
    uses = [(each, around) for around in ast.walk(node) for each in ast.iter_child_nodes(around)]
    return _are_questions(uses, ("device",))


def _are_questions(uses: list[tuple[ast.AST, ast.AST]], names: tuple[str, ...]) -> bool:
    """Whether all that is done with a name is a question; not so where nothing is done with it.

    Args:
        uses: Every node of the function, and the one around it.
        names: Those of a device, and of parts of it; the last is looked at.
    """
    places = [each for each, _ in uses if isinstance(each, ast.Name) and each.id == names[-1]]
    loads = [each for each in places if isinstance(each.ctx, ast.Load)]
    return bool(loads) and all(_is_question(uses, each, names) for each in loads)


def _is_question(uses: list[tuple[ast.AST, ast.AST]], value: ast.AST, names: tuple[str, ...]) -> bool:
    around = dict(uses)
    while isinstance(around[value], ast.Attribute):
        value = around[value]
    match around[value]:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) as call:
            return value is not call.func and only_asks(name)
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name not in names and _are_questions(uses, (*names, name))
        case other:
            return isinstance(other, ast.Compare)


def is_in(path: str, modules: set[str]) -> bool:
    """Whether a dotted name is one of the modules, or in one."""
    parts = path.split(".") if modules else []
    return any(".".join(parts[:count]) in modules for count in range(1, len(parts) + 1))


def speaks_of_devices(path: str) -> bool:
    """Whether a name stands in a module whose name does so."""
    return _OF_DEVICES.match(f"{path.rpartition('.')[0]}.") is not None


@functools.lru_cache(maxsize=256)
def imports_arrays(text: str | None) -> bool:
    """Whether a module's text imports such a framework."""
    return text is not None and _OF_ARRAYS.search(text) is not None


def puts_on_devices(cls: Cls, name: str) -> bool:
    """Whether a method of a class, or one that it stands in for, puts something somewhere (`self.to(device)`)."""
    several = (each.attrs.get(name) for each in cls.mro if isinstance(each, Cls))
    return any(isinstance(each, Func) and not methods_called(each.node).isdisjoint(("to", "cuda")) for each in several)
