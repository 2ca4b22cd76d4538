"""What runs in the project's own interpreter: pytest, forked for each number of devices. Standard library and pytest.

    python inside.py REQUEST.json

The request: `{"root", "tests", "sizes", "mode": "dry" | "real", "out", "jobs"}`. For each size a line is appended to
`out`: `{"size", "tests": {nodeid: {"outcome", "reason", "workers"}}, "files": {path: outcome}, "errors": {path:
text}}`; a real sweep adds when each test `began` and `ended`, on the monotonic clock.
"""

import contextlib
import ctypes
import gc
import json
import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent


def main(request: dict[str, Any]) -> None:
    """Fork a child for each size, so many at a time."""
    _die_with(request["parent"])
    os.chdir(request["root"])
    sys.path[:] = [each for each in sys.path if each and Path(each).resolve() != _HERE]
    if request["root"] not in sys.path:
        sys.path.append(request["root"])  # as `python -m pytest` has it, behind everything else
    try:
        import pytest  # noqa: F401 - imported once, before the forks
    except ModuleNotFoundError as error:
        sys.exit(f"{error.name} is not installed")

    if request["mode"] == "dry":
        sys.path.insert(0, str(_HERE))
        import guards_only  # type: ignore[import-not-found, unused-ignore]

        sys.path.remove(str(_HERE))
        guards_only.prepare([str(Path(path).resolve()) for path in request["tests"]])
        _import_what_is_shared(request)
        gc.freeze()
    running: dict[int, int] = {}
    sizes = list(request["sizes"])
    while sizes or running:
        while sizes and len(running) < request["jobs"]:
            size = sizes.pop(0)
            running[_forked(request, size)] = size
        pid, _ = os.wait()
        running.pop(pid, None)


def _die_with(parent: int) -> None:
    """Ask the kernel to end this process when its parent is gone (prctl(2), PR_SET_PDEATHSIG)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _import_what_is_shared(request: dict[str, Any]) -> None:
    """Import torch once, where the tests import it at all: it costs seconds, and there is a child for each size."""
    for path in request["tests"][:200]:
        try:
            text = Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if "import torch" in text or "from torch" in text:
            with contextlib.suppress(ImportError):
                import torch  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
            return


def _forked(request: dict[str, Any], size: int) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        _die_with(parent)
        _sweep(request, size)
        code = 0
    except BaseException:
        traceback.print_exc()  # into the log, which the one who asks reads where there is no answer
        raise
    finally:
        os._exit(code)


def _sweep(request: dict[str, Any], size: int) -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(str(i) for i in range(size))
    os.environ["HIP_VISIBLE_DEVICES"] = os.environ["CUDA_VISIBLE_DEVICES"]
    os.environ["SOONER_VISIBLE"] = str(size)
    import pytest

    _silence()
    sys.path.insert(0, str(_HERE))
    if request["mode"] == "dry":
        gc.disable()  # the process is thrown away
        import faked_devices  # type: ignore[import-not-found, unused-ignore]

        faked_devices.fake(size)
    from sweep_plugin import Plugin  # type: ignore[import-not-found, unused-ignore]

    sys.path.remove(str(_HERE))
    plugin = Plugin(dry=request["mode"] == "dry", at=f"{request['out']}.{size}.at")
    options = [
        "-p",
        "no:cacheprovider",
        "-p",
        "no:sooner",
        "-q",
        "--color=no",
        "--assert=plain",
        "-p",
        "no:unraisableexception",
        "--tb=native",  # pytest's own ways of showing a failure parse its files: a second for each
        "--continue-on-collection-errors",
        "--rootdir",
        request["root"],
    ]
    code = 0
    with tempfile.TemporaryDirectory(dir=Path(request["out"]).parent) as folder:
        arguments = [*options, f"--basetemp={folder}/t", *request["options"], *request["tests"]]
        if request["tests"]:
            code = int(pytest.main(arguments, plugins=[plugin]))
    if code in (3, 4):
        return  # pytest itself failed: its words are in the log
    line = json.dumps({"size": size, "tests": plugin.tests, "files": plugin.files, "errors": plugin.errors})
    with open(f"{request['out']}.{size}", "w", encoding="utf-8") as file:  # noqa: PTH123 - no more than needed
        file.write(line)


def _silence() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    log = os.open(os.environ.get("SOONER_SWEEP_LOG", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(nowhere, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
