"""Stands in for python, pytest and torchrun while a script is recorded.

A program of its own: the standard library only, started with `-I -S`, so that it takes a few milliseconds.
It is called as `recorder_shim.py SHIM ARGUMENTS...` by the shims that `sooner.run.recording` puts on PATH,
or is such a shim itself. A test run is appended to the record, one JSON line in one write, and ends at once
with 0. Any other call becomes the real program, with the shims still on PATH for its children.
"""

# pathlib alone would double the time that this program takes:
# ruff: noqa: PTH100, PTH109, PTH113, PTH117, PTH118, PTH119, PTH120, PTH121, PTH123

import os
import sys

VERSION = 1
TOOLS = ("pytest", "py.test", "torchrun")
MODULES = ("pytest", "py.test", "torch.distributed.run", "torch.distributed.launch")
INFORMATION = ("--version", "-V", "--help", "-h", "--collect-only", "--co", "--fixtures", "--markers")
"""Calls with one of these ask the tool something: they run, and the script gets its answer."""
PRIVATE = "SOONER_RECORD_"
OURS = (PRIVATE, "_sooner_")
"""Variables that recording needs; the second ones are the trap's, exported where a script says `set -a`."""
NOT_FOUND = 127


def main(argv: list[str]) -> int:
    """Record the call or become the real program."""
    if os.path.basename(argv[0]) == "recorder_shim.py":
        argv = argv[1:]
    shims, name = os.path.split(argv[0])
    args = argv[1:]
    path = os.environ.get("PATH", os.defpath)
    real = find(name, path, shims)
    if not real:
        sys.stderr.write(f"{name}: command not found\n")
        return NOT_FOUND
    args = [unshimmed(arg, path, shims) for arg in args]
    if is_test_run(name, args):
        record(shims, [real, *args])
        return 0
    return os.execv(real, [real, *args])  # noqa: S606 - becoming the real program is the point


def find(name: str, path: str, shims: str) -> str:
    """The program that PATH would give without the shims; empty where there is none."""
    for folder in path.split(":"):
        candidate = os.path.join(folder or ".", name)
        if folder != shims and os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return os.path.abspath(candidate)
    return ""


def unshimmed(arg: str, path: str, shims: str) -> str:
    """The real program for an argument that is one of the shims, as in `python $(which pytest)`."""
    folder, name = os.path.split(arg)
    return (find(name, path, shims) or arg) if folder == shims else arg


def is_test_run(name: str, args: list[str]) -> bool:
    """Whether the call runs tests: pytest, torchrun, or python with one of their modules or programs."""
    if name not in TOOLS:
        name, args = launched(args)
        if name not in MODULES and name not in TOOLS:
            return False
    if "torch" in name:
        args = args[
            : next((i for i, arg in enumerate(args) if arg.endswith(".py")), len(args))
        ]  # the rest is the program's
    return not any(arg in INFORMATION for arg in args)


def launched(args: list[str]) -> tuple[str, list[str]]:
    """The module, or the name of the script, that python is to run, and its arguments; empty for others."""
    index = 0
    while index < len(args) and args[index].startswith("-"):
        arg = args[index]
        flags, dash_m, module = arg[1:].partition("m")
        if dash_m and all(flag in "bBdEiIOPqsSuvx" for flag in flags):
            rest = [module, *args[index + 1 :]] if module else args[index + 1 :]
            return (rest[0], rest[1:]) if rest else ("", [])
        if arg.startswith("-c") or arg == "-":
            return "", []
        index += 2 if arg in ("-W", "-X", "--check-hash-based-pycs") else 1
    return (os.path.basename(args[index]), args[index + 1 :]) if index < len(args) else ("", [])


def record(shims: str, argv: list[str]) -> None:
    """Append the call to the record, in one write."""
    import json

    folder = os.path.dirname(shims)
    call = {
        "version": VERSION,
        "argv": [text(os.fsencode(arg)) for arg in argv],
        "cwd": text(working_directory()),
        "env": environment(shims),
        "parent": parent(),
        "frames": frames(),
        "command": os.environ.get(PRIVATE + "COMMAND", ""),
    }
    line = json.dumps(call).encode("ascii") + b"\n"
    file = os.open(os.path.join(folder, "calls.jsonl"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    while line:
        line = line[os.write(file, line) :]


def working_directory() -> bytes:
    """The directory as the script calls it (PWD), where that is where we are; else without symbolic links."""
    logical = os.environb.get(b"PWD", b"")
    try:
        return logical if os.path.isabs(logical) and os.path.samefile(logical, b".") else os.getcwdb()
    except OSError:
        return os.getcwdb()


def environment(shims: str) -> dict[str, str]:
    """The environment of the call, as it would be without us."""
    env = {text(key): text(value) for key, value in os.environb.items()}
    original = env.get(PRIVATE + "BASH_ENV")
    env = {key: value.replace(shims + ":", "") for key, value in env.items() if not key.startswith(OURS)}
    env.pop("BASH_ENV", None)
    return {**env, "BASH_ENV": original} if original else env


def parent() -> list[str]:
    """Command of the parent process: `timeout 300 pytest ...` says what the limit is."""
    try:
        with open(f"/proc/{os.getppid()}/cmdline", "rb") as file:
            return [text(arg) for arg in file.read().split(b"\0")[:-1]]
    except OSError:
        return []


def frames() -> list[tuple[str, int, str]]:
    """(file, line, function) of the commands that led here, innermost first, as the trap noted them."""
    lines = os.environ.get(PRIVATE + "LINES", "").split()
    files = os.environ.get(PRIVATE + "FILES", "").split("\n")
    functions = os.environ.get(PRIVATE + "FUNCTIONS", "").split()
    functions += [""] * (len(files) - len(functions))
    return [
        (file, int(line), function)
        for line, file, function in zip(lines, files, functions, strict=False)
        if file and line.isdigit()
    ]


def text(data: bytes) -> str:
    """Bytes as text that gives the same bytes back, whatever the locale is."""
    return data.decode("utf-8", "surrogateescape")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
