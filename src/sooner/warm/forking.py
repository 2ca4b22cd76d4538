"""Forking safely: what must not be forked, what can be made fit for it, and how a child stays tied to its parent.

`fork_refusal` names what cannot be helped (a device context, other threads), `quiet_threads` ends what can be (OpenMP's
threads, inductor's compile workers), `fork` does all of it. torch is never imported here, only looked at where it is.
"""

import contextlib
import ctypes
import fcntl
import io
import logging
import os
import signal
import stat
import sys
import tempfile
import threading
import warnings
from collections.abc import Collection, Iterator
from typing import Any, Final

from sooner.warm.torch_loaded import loaded_torch

_DEVICE_FILES: Final = ("/dev/nvidia", "/dev/kfd")
_DRIVERS: Final = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
_OPENMP: Final = ("libgomp", "libiomp", "libomp")
_OMP_PAUSE_HARD: Final = 2
"""omp_pause_hard of OpenMP 5.0, section 3.2.44: give everything back, the threads of the pool first."""
_PR_SET_PDEATHSIG: Final = 1
_STANDARD: Final = (0, 1, 2)
_libc: Final = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_pausers: tuple[int, tuple[Any, ...]] = (0, ())
"""How many modules were imported when OpenMP libraries were looked for, and their pausing functions."""


class ForkRefused(RuntimeError):  # noqa: N818 - what happened, as in sooner.model.errors
    """This process must not fork; says why."""


def fork_refusal() -> str:
    """Why this process must not fork; empty where it may (after `quiet_threads`).

    A device context does not survive a fork, and `torch.cuda.is_initialized()` does not know every one: a library may
    have called cuInit by itself (vllm issue 32611). So an open device file is reason enough. Of other threads a child
    inherits only the locks that they held.
    """
    return _device_refusal() or _thread_refusal() or _autograd_refusal()


def _device_refusal() -> str:
    cuda = sys.modules.get("torch.cuda") if loaded_torch() is not None else None
    if cuda is not None and (cuda.is_initialized() or (cuda._is_in_bad_fork() and _has_driver())):  # noqa: SLF001
        return "torch.cuda is initialised: a device context does not survive a fork"
    for path in _open_paths():
        if path.startswith(_DEVICE_FILES):
            return f"{path} is open: a device driver was initialised in this process"
    return ""


def _has_driver() -> bool:
    """Whether this machine has a GPU driver: without one an attempt to initialise CUDA has failed and left nothing."""
    return any(map(os.path.exists, _DRIVERS))


def _thread_refusal() -> str:
    others = sys._current_frames().keys() - {threading.get_ident()}  # noqa: SLF001 - sees threads of C code too
    if not others:
        return ""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    shown = ", ".join(sorted(names.get(ident, "one that threading did not start") for ident in others)[:3])
    return f"{len(others)} other threads run: {shown}"


def _autograd_refusal() -> str:
    """PyTorch's autograd keeps a thread for each device, and one for a stand-in where the CUDA build met no driver."""
    if "torch" not in sys.modules or sys.platform != "linux":
        return ""
    for thread in os.listdir("/proc/self/task"):  # noqa: PTH208 - as below
        with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/comm", encoding="utf-8") as file:  # noqa: PTH123
            if file.read().startswith("pt_autograd"):
                return "autograd's device threads run: a backward in a forked child would fail"
    return ""


def _open_paths() -> Iterator[str]:
    try:
        numbers = os.listdir("/proc/self/fd")  # noqa: PTH208 - before every fork
    except OSError:
        return
    for number in numbers:
        with contextlib.suppress(OSError):
            yield os.readlink(f"/proc/self/fd/{number}")  # noqa: PTH115 - what is no path is a name too


def quiet_threads() -> None:
    """End the threads that a child would wait for in vain: OpenMP's of this thread, and inductor's compile workers.

    A thread that ran a parallel region (a matmul, a backward) keeps a pool for the next one; in a forked child the
    pool's threads are gone and the next region hangs. Call it in the thread that forks, right before it does.
    """
    compiling = sys.modules.get("torch._inductor.async_compile")
    if compiling is not None:
        compiling.shutdown_compile_workers()
    for pause in _openmp_pausers():
        pause(_OMP_PAUSE_HARD)


def _openmp_pausers() -> tuple[Any, ...]:
    """`omp_pause_resource_all` of each OpenMP library that is loaded."""
    global _pausers  # noqa: PLW0603 - a cache: reading the maps of a torch process takes longer than all the rest
    modules = len(sys.modules)
    if _pausers[0] != modules:  # libraries come with imports
        _pausers = (modules, tuple(_find_pausers()))
    return _pausers[1]


def _find_pausers() -> Iterator[Any]:
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
            paths = {line.split(maxsplit=5)[5].strip() for line in file if "/" in line and "omp" in line}
    except OSError:
        return
    for path in paths:
        if path.rpartition("/")[2].startswith(_OPENMP):
            with contextlib.suppress(OSError, AttributeError):  # not loaded after all; older than OpenMP 5
                yield ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW).omp_pause_resource_all


def fork() -> int:
    """Fork this process, quietly; as `os.fork`.

    Raises:
        ForkRefused: It must not.
    """
    if reason := fork_refusal():
        raise ForkRefused(reason)
    quiet_threads()
    with warnings.catch_warnings():
        # Python 3.12 warns of threads that it counts itself; those that are left belong to libraries that know forks.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def die_with_parent(parent: int) -> None:
    """Have this process killed when the thread that made it ends; at once if `parent` is gone already."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def anonymous_file() -> int:
    """A descriptor of a file without a path, to append to: whoever writes into it never waits for a reader."""
    descriptor, path = tempfile.mkstemp(prefix="sooner-")
    os.unlink(path)  # noqa: PTH108 - a path that was made a line above
    fcntl.fcntl(descriptor, fcntl.F_SETFL, os.O_APPEND)
    return descriptor


def tail_of(descriptor: int, start: int = 0, *, most: int = 1 << 20) -> str:
    """What was appended to a file from `start` on, of that the last `most` bytes."""
    size = os.fstat(descriptor).st_size
    first = max(start, size - most)
    return os.pread(descriptor, size - first, first).decode("utf-8", "replace") if size > first else ""


def leave_parent(keep: Collection[int]) -> None:
    """In a forked child: let go of the pipes and sockets that it shares with its parent, but for those in `keep`.

    A pipe that stays open here would keep its reader waiting. Its number must stay taken: an object that still refers
    to it would otherwise close what gets the number next. So it becomes /dev/null.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - numbers, no paths
        if number in keep or number in _STANDARD:
            continue
        with contextlib.suppress(OSError):
            kind = os.fstat(number).st_mode
            if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
                os.dup2(nowhere, number, inheritable=False)
    os.close(nowhere)


def take_streams(output: int) -> None:
    """Make a file the standard output and error of this process, whatever captured them; standard input is empty."""
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    streams: dict[str, Any] = {"stdin": open(0, closefd=False, encoding="utf-8")}  # noqa: SIM115 - for the process
    for name, number in (("stdout", 1), ("stderr", 2)):
        os.dup2(output, number)
        raw: Any = io.FileIO(number, "w", closefd=False)  # unbuffered: a process that crashes has written everything
        streams[name] = io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", write_through=True)
    for name, stream in streams.items():
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def forget_habits() -> None:
    """In a forked child: filter warnings, take signals and write logs as a new interpreter does.

    What the parent had set up belongs to its test: pytest's own filters and handlers, somebody's alarm.
    """
    warnings.resetwarnings()
    for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", category)
    warnings.filterwarnings("default", category=DeprecationWarning, module="__main__")
    for option in sys.warnoptions:
        with contextlib.suppress(Exception):  # the interpreter said at its start what is wrong with it
            warnings._setoption(option)  # type: ignore[attr-defined]  # noqa: SLF001 - as `warnings` itself does
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ours = [handler for handler in logging.root.handlers if type(handler).__module__.startswith("_pytest.")]
    for handler in ours:
        logging.root.removeHandler(handler)
