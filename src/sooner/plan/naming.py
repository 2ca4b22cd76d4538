"""Names, widths and limits of commands, read off their arguments.

Shared by plans without names, recorded scripts and submitted commands, so that the same command is called
the same by every way in.
"""

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final

from sooner.model.text import printable

TORCHRUN_MODULES: Final = ("torch.distributed.run", "torch.distributed.launch")
_PYTHON: Final = re.compile(r"(python|pypy)[0-9.]*")
_PYTHON_FLAGS: Final = re.compile(r"-([bBdEiIOPqsSuvx]*)m(.*)")
_NOT_IN_A_NAME: Final = re.compile(r"[\x00-\x1f\x7f|]")
"""Control characters, and the sign between a name and its variant."""
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_DURATION: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([smhd]?)")
_SECONDS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_JUNIT: Final = ("--junitxml", "--junit-xml")
_NPROC: Final = ("--nproc_per_node", "--nproc-per-node")
_GENERIC: Final = frozenset(
    {"junit", "output", "pytest", "report", "result", "results", "test-results", "tests", "xunit"}
)
"""Stems of JUnit files that say nothing about the tests: the path names the unit instead."""
# fmt: off
_TAKES_VALUE: Final = frozenset(
    {
        "--basetemp", "--capture", "--color", "--confcutdir", "--cov", "--cov-config", "--cov-report",
        "--deselect", "--dist", "--durations", "--ignore", "--ignore-glob", "--import-mode",
        "--junit-prefix", "--junit-xml", "--junitxml", "--local-addr", "--local_addr", "--log-dir",
        "--log-file", "--log-level", "--log_dir", "--master-addr", "--master-port", "--master_addr",
        "--master_port", "--max-restarts", "--max_restarts", "--maxfail", "--monitor-interval",
        "--monitor_interval", "--nnodes", "--node-rank", "--node_rank", "--nproc-per-node",
        "--nproc_per_node", "--numprocesses", "--override-ini", "--rdzv-backend", "--rdzv-conf",
        "--rdzv-endpoint", "--rdzv-id", "--rdzv_backend", "--rdzv_conf", "--rdzv_endpoint", "--rdzv_id",
        "--redirects", "--role", "--rootdir", "--start-method", "--start_method", "--tb", "--tee",
        "--timeout", "--tx", "--verbosity", "-W", "-X", "-c", "-k", "-m", "-n", "-o", "-p", "-r",
    }
)
# fmt: on
"""Options of pytest and torchrun whose next argument is their value, and never a path to test."""


def name_of(argv: Sequence[str]) -> str:
    """A printable name: the stem of its JUnit file, else of what it tests, else its program."""
    program, args = launched(argv)
    if program == "-c" and args:
        return _name_of_line(args[0])
    junit = _stem(junit_file(argv))
    name = junit if junit and junit.lower() not in _GENERIC else _path_name(args)
    name = name or option(args, "--junit-prefix") or PurePosixPath(program).stem or "unit"
    return _NOT_IN_A_NAME.sub("_", printable(name))


def launched(argv: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The program that a command ends up in, behind interpreters, `env` and `timeout`, and its arguments.

    `python -m torch.distributed.run` and its older spelling are `torchrun`; a shell line is the program `-c`.
    """
    if not argv:
        return "", ()
    name, args = PurePosixPath(argv[0]).name, argv[1:]
    if name == "timeout" and (parsed := _timeout(argv)):
        return launched(parsed[1])
    if name == "env":
        return launched(_without_assignments(args))
    if name in ("bash", "sh", "dash") and len(args) > 1 and re.fullmatch(r"-[a-z]*c", args[0]):
        return "-c", args[1:]
    if _PYTHON.fullmatch(name):
        return _python_program(name, args)
    return {"py.test": "pytest"}.get(name, name), args


def junit_file(argv: Sequence[str]) -> str:
    """The JUnit file that a pytest command writes, as spelled; empty where it writes none."""
    return next((value for name in _JUNIT if (value := option(argv, name))), "")


def option(args: Sequence[str], name: str) -> str:
    """Value of `--name=value` or `--name value`, the last one given; empty without it."""
    for index in reversed(range(len(args))):
        if args[index].startswith(f"{name}="):
            return args[index][len(name) + 1 :]
        if args[index] == name and index + 1 < len(args):
            return args[index + 1]
    return ""


def ranks_of(argv: Sequence[str]) -> str:
    """`--nproc_per_node` of a torchrun command as spelled; empty for another command or without it."""
    program, args = launched(argv)
    if program != "torchrun":
        return ""
    return next((value for name in _NPROC if (value := option(args, name))), "")


def timeout_of(parent: Sequence[str]) -> float:
    """Seconds after which coreutils `timeout`, as the parent, ends the command; 0 is no limit.

    The parent is recognised with and without its arguments (`timeout 300 pytest ...`).
    """
    if not parent or PurePosixPath(parent[0]).name != "timeout":
        return 0.0
    parsed = _timeout(parent)
    return parsed[0] if parsed else 0.0


def _name_of_line(line: str) -> str:
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        words = line.split()
    return name_of(_without_assignments(words)) if words else "unit"


def _without_assignments(args: Sequence[str]) -> Sequence[str]:
    """Arguments behind `A=1 B=2` and behind the options of `env`."""
    index = 0
    while index < len(args) and (_ASSIGNMENT.match(args[index]) or args[index].startswith("-")):
        index += 2 if args[index] in ("-u", "--unset", "-C", "--chdir") else 1
    return args[index:]


def _python_program(name: str, args: Sequence[str]) -> tuple[str, Sequence[str]]:
    index = 0
    while index < len(args) and args[index].startswith("-"):
        if args[index] == "-c":
            return name, ()
        flags = _PYTHON_FLAGS.fullmatch(args[index])
        if flags:
            module = [flags.group(2)] if flags.group(2) else []
            return _module_program([*module, *args[index + 1 :]])
        index += 2 if args[index] in ("-W", "-X", "--check-hash-based-pycs") else 1
    return (args[index], args[index:]) if index < len(args) else (name, ())


def _module_program(args: Sequence[str]) -> tuple[str, Sequence[str]]:
    module = args[0] if args else ""
    known = dict.fromkeys(TORCHRUN_MODULES, "torchrun") | {"py.test": "pytest"}
    return known.get(module, module), args[1:]


def _timeout(argv: Sequence[str]) -> tuple[float, Sequence[str]] | None:
    """Seconds and command of `timeout [options] DURATION command...`; None where it is spelled otherwise."""
    index = 1
    while index < len(argv) and argv[index].startswith("-"):
        index += 2 if argv[index] in ("-k", "-s", "--kill-after", "--signal") else 1
    match = _DURATION.fullmatch(argv[index]) if index < len(argv) else None
    return (float(match.group(1)) * _SECONDS[match.group(2)], argv[index + 1 :]) if match else None


def _path_name(args: Sequence[str]) -> str:
    """Name of the first argument that looks like a path to run; empty without one."""
    for before, arg in zip(("", *args), args, strict=False):
        if arg.startswith("-") or before in _TAKES_VALUE or "://" in arg:
            continue
        path, _, node = arg.partition("::")
        if node or "/" in path or path.endswith((".py", ".sh")):
            return _stem(path) + (f"::{node}" if node else "")
    return ""


def _stem(path: str) -> str:
    """Last part of a path without its suffix: `test_foo` of `tests/test_foo.py`."""
    return PurePosixPath(path).stem if path else ""
