"""State guards: what a test changed in its process is put back, or the process must not run another.

A *guard* captures one piece of state before a test and restores it afterwards; it says whether there was anything to
restore. A *witness* captures what cannot be put back (threads, children, open files) and says why the process must be
discarded. Projects add their own: any object with the three members of `Guard` or `Witness`.

Cheap by design: a capture and a restore of everything here take about 0.2 ms. numpy and torch are looked at only where
the suite has imported them (`torch_guards.py`).
"""

import _signal  # type: ignore[import-not-found]
import atexit
import contextlib
import gc
import locale
import logging
import operator
import os
import random
import resource
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sooner.warm import holdings
from sooner.warm.torch_loaded import loaded_torch

_LOCALES: Final = tuple(getattr(locale, name) for name in dir(locale) if name.startswith("LC_") and name != "LC_ALL")
_SIGNALS: Final = tuple(sorted(map(int, signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})))
get_handler: Final = _signal.getsignal
"""`signal.getsignal` without its enums: 60 handlers are asked for after each test."""
set_handler: Final = _signal.signal
"""`signal.signal`, as above."""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_RSS_UNIT: Final = 1 if sys.platform == "darwin" else 1024


class Guard(Protocol):
    """Puts one piece of state back."""

    @property
    def name(self) -> str:
        """What is guarded, for people."""

    def capture(self) -> Any:
        """What there is now."""

    def restore(self, state: Any) -> bool:
        """Put it back; says whether it had changed. Raises where it cannot."""


class Witness(Protocol):
    """Sees what cannot be put back."""

    @property
    def name(self) -> str:
        """What is watched, for people."""

    def capture(self) -> Any:
        """What there is now."""

    def doubt(self, state: Any) -> str:
        """Why the process must not run another test; empty where it may."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What came of putting a process back after a test."""

    restored: tuple[str, ...] = ()
    """Guards that had something to restore."""
    discard: str = ""
    """Why the process must not run another test; empty where it may."""


@dataclass(frozen=True, slots=True)
class Value:
    """A guard over something that has a getter and a setter."""

    name: str
    get: Callable[[], Any]
    put: Callable[[Any], object]

    def capture(self) -> Any:
        """The value now."""
        return self.get()

    def restore(self, state: Any) -> bool:
        """Set the value back if it is another."""
        now = self.get()
        if now is state or now == state:
            return False
        self.put(state)
        return True


@dataclass(frozen=True, slots=True)
class Contents:
    """A guard over the contents of a list that keeps its identity."""

    name: str
    target: Callable[[], list[Any]]

    def capture(self) -> list[Any]:
        """A copy."""
        return list(self.target())

    def restore(self, state: list[Any]) -> bool:
        """Put the same objects back in the same order."""
        now = self.target()
        if len(now) == len(state) and all(a is b for a, b in zip(now, state, strict=True)):
            return False
        now[:] = state
        return True


@dataclass(frozen=True, slots=True)
class _Imported:
    """A guard over a value of a module that need not be imported."""

    name: str
    module: str
    get: Callable[[Any], Any]
    put: Callable[[Any, Any], object]

    def capture(self) -> Any:
        """The value now; None where the module is not imported."""
        module = sys.modules.get(self.module)
        return None if module is None else (self.get(module),)

    def restore(self, state: Any) -> bool:
        """Set the value back if it is another; what a module had when a test imported it is not known, and stays."""
        if state is None or (module := sys.modules.get(self.module)) is None or (self.get(module),) == state:
            return False
        self.put(module, state[0])
        return True


class DecimalContext:
    """The context of the decimal module, if it is imported."""

    name = "decimal context"

    def capture(self) -> tuple[str, Any] | None:
        """Everything that it holds as text, which is quickly compared, and a copy."""
        decimal = sys.modules.get("decimal")
        return None if decimal is None else (str(decimal.getcontext()), decimal.getcontext().copy())

    def restore(self, state: tuple[str, Any] | None) -> bool:
        """Put a copy back."""
        if state is None or str(sys.modules["decimal"].getcontext()) == state[0]:
            return False
        sys.modules["decimal"].setcontext(state[1].copy())
        return True


class Environment:
    """Environment variables, and the time zone that follows from one of them; pytest's own variable is pytest's."""

    name = "environment"
    _EXEMPT: Final = b"PYTEST_CURRENT_TEST"

    def capture(self) -> dict[bytes, bytes]:
        """All variables, as bytes: no decoding for each test."""
        return dict(_environment_data())

    def restore(self, state: Mapping[bytes, bytes]) -> bool:
        """Set, change and remove what differs."""
        now = dict(_environment_data())
        wanted = {**state, self._EXEMPT: now[self._EXEMPT]} if self._EXEMPT in now else state
        if now == wanted:
            return False
        for name in now.keys() - wanted.keys():
            del os.environb[name]
        for name, value in wanted.items():
            if now.get(name) != value:
                os.environb[name] = value
        if b"TZ" in state or b"TZ" in now:
            time.tzset()
        return True


def _environment_data() -> Mapping[bytes, bytes]:
    """The dictionary behind os.environ: comparing it costs a hundredth of decoding it."""
    data: Mapping[bytes, bytes] = getattr(os.environ, "_data", None) or dict(os.environb)
    return data


class Signals:
    """Signal handlers and the interval timers that a test armed."""

    name = "signals"

    def capture(self) -> tuple[Any, ...]:
        """The handler of every signal."""
        return tuple(map(get_handler, _SIGNALS))

    def restore(self, state: tuple[Any, ...]) -> bool:
        """Disarm timers, put handlers back."""
        changed = False
        for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
            if signal.getitimer(timer) != (0.0, 0.0):
                signal.setitimer(timer, 0.0)
                changed = True
        handlers = tuple(map(get_handler, _SIGNALS))
        if handlers == state:
            return changed
        for number, before, now in zip(_SIGNALS, state, handlers, strict=True):
            if now is not before and now != before:
                if before is None:
                    raise RuntimeError(f"the handler of signal {number} was not installed by Python")
                signal.signal(number, before)
                changed = True
        return changed


class Logging:
    """Levels, handlers and switches of the loggers that existed before the test; the level of new ones is theirs."""

    name = "logging"

    def capture(self) -> tuple[int, list[tuple[Any, ...]]]:
        """The state of the root logger and of every named one."""
        return logging.root.manager.disable, [self._of(logger) for logger in self._loggers()]

    @staticmethod
    def _loggers() -> list[logging.Logger]:
        named = (one for one in logging.root.manager.loggerDict.values() if isinstance(one, logging.Logger))
        return [logging.root, *named]

    @staticmethod
    def _of(logger: logging.Logger) -> tuple[Any, ...]:
        return logger, logger.level, logger.propagate, logger.disabled, tuple(logger.handlers)

    def restore(self, state: tuple[int, list[tuple[Any, ...]]]) -> bool:
        """Put back what differs."""
        disable, loggers = state
        changed = logging.root.manager.disable != disable
        if changed:
            logging.disable(disable)
        for before in loggers:
            logger, level, propagate, disabled, handlers = before
            if self._of(logger) != before:
                logger.setLevel(level)
                logger.propagate, logger.disabled = propagate, disabled
                logger.handlers[:] = handlers
                changed = True
        return changed


class Warnings:
    """Warning filters and how warnings are shown."""

    name = "warnings"

    def capture(self) -> tuple[list[Any], Any]:
        """The filters and the function that shows warnings."""
        return list(warnings.filters), warnings.showwarning

    def restore(self, state: tuple[list[Any], Any]) -> bool:
        """Put them back, and forget which warnings were shown once."""
        filters, show = state
        if warnings.filters == filters and warnings.showwarning is show:
            return False
        warnings.filters[:] = filters  # type: ignore[index]
        warnings._filters_mutated()  # type: ignore[attr-defined]  # noqa: SLF001 - as warnings.catch_warnings does
        warnings.showwarning = show
        return True


class Threads:
    """Threads that a test left running."""

    name = "threads"

    def capture(self) -> frozenset[int | None]:
        """The threads that Python knows."""
        return frozenset(threading._active)  # type: ignore[attr-defined]  # noqa: SLF001 - `enumerate` takes a lock

    def doubt(self, state: frozenset[int | None]) -> str:
        """Names of new threads."""
        if self.capture() <= state:
            return ""
        new = [thread.name for thread in threading.enumerate() if thread.ident not in state]
        return f"left {len(new)} threads: {', '.join(new[:3])}" if new else ""


class Children:
    """Child processes that a test left."""

    name = "children"

    def capture(self) -> frozenset[str]:
        """Their process ids; where /proc does not list children, a word if there are any."""
        found: set[str] = set()
        if not self._any():
            return frozenset()
        try:
            for thread in os.listdir("/proc/self/task"):  # noqa: PTH208 - after every test
                with open(f"/proc/self/task/{thread}/children", encoding="ascii") as file:  # noqa: PTH123
                    found.update(file.read().split())
        except OSError:
            return self._any()
        return frozenset(found)

    @staticmethod
    def _any() -> frozenset[str]:
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return frozenset()
        return frozenset({"some"})

    def doubt(self, state: frozenset[str]) -> str:
        """New children."""
        new = self.capture() - state
        return "left child processes" if new and new - set(map(str, holdings.children())) else ""


class OpenFiles:
    """File descriptors that a test left open."""

    name = "open files"

    def capture(self) -> tuple[int, frozenset[str]]:
        """The lowest number that is free, and all that are taken."""
        return self._lowest_free(), self._open()

    @staticmethod
    def _lowest_free() -> int:
        """A file that is left open takes it: asking for it costs a hundredth of listing all."""
        number = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        os.close(number)
        return number

    @staticmethod
    def _open() -> frozenset[str]:
        """Their numbers, without those that listing them took."""
        try:
            return frozenset(filter(_is_open, os.listdir("/proc/self/fd")))  # noqa: PTH208 - twice as fast
        except OSError:
            return frozenset()

    def doubt(self, state: tuple[int, frozenset[str]]) -> str:
        """New descriptors, after one collection of garbage: a file that nobody refers to is about to be closed."""
        lowest, before = state
        if self._lowest_free() == lowest or not self._new(before):
            return ""
        gc.collect()
        new = self._new(before)
        return f"left {len(new)} files open: {', '.join(new[:3])}" if new else ""

    def _new(self, before: frozenset[str]) -> list[str]:
        names = []
        kept = set(map(str, holdings.descriptors()))
        for number in self._open() - before - kept:
            with contextlib.suppress(OSError):
                names.append(os.readlink(f"/proc/self/fd/{number}"))  # noqa: PTH115 - what is no path is a name too
        return names


def _is_open(number: str) -> bool:
    try:
        os.fstat(int(number))
    except OSError:
        return False
    return True


class ExitFunctions:
    """Functions registered to run at exit: they would pile up. What an import registers comes once."""

    name = "exit functions"

    def capture(self) -> tuple[int, int]:
        """How many there are, and how many modules."""
        return atexit._ncallbacks(), len(sys.modules)  # noqa: SLF001 - there is no public count

    def doubt(self, state: tuple[int, int]) -> str:
        """More than before, and nothing was imported."""
        count, modules = self.capture()
        grown = count - state[0]
        return f"registered {grown} exit functions" if grown > 0 and modules == state[1] else ""


class Modules:
    """Modules that were imported before the test and are now gone or others: two copies of a class may be about."""

    name = "modules"

    def capture(self) -> dict[str, Any]:
        """What is imported."""
        return sys.modules.copy()

    def doubt(self, state: dict[str, Any]) -> str:
        """Names of those that are gone or replaced."""
        now = sys.modules
        values = list(state.values())
        if len(now) >= len(values) and all(map(operator.is_, now.values(), values)):
            return ""
        changed = [name for name, module in state.items() if now.get(name) is not module]
        return f"removed or replaced {len(changed)} modules: {', '.join(changed[:3])}" if changed else ""


class Memory:
    """Resident memory of the process."""

    name = "memory"

    def __init__(self, limit_mib: float) -> None:
        self._limit_mib = limit_mib

    def capture(self) -> None:
        """Nothing: the limit is absolute."""

    def doubt(self, state: None) -> str:
        """Over the limit."""
        del state
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT <= self._limit_mib * 2**20:
            return ""  # its peak was allowed
        try:
            with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - after every test
                resident = int(file.read().split()[1]) * _PAGE / 2**20
        except OSError:
            return ""
        return f"holds {resident:.0f} MiB, {self._limit_mib:.0f} allowed" if resident > self._limit_mib else ""


def standard_guards(*, seeded: bool = False) -> list[Guard]:
    """Guards over what the standard library holds, in the order of their restoration.

    Args:
        seeded: Every test begins with `seed_from`: generators of random numbers need not be put back.
    """
    return [
        Signals(),
        Environment(),
        Value("current directory", _cwd, os.chdir),
        Value("umask", _umask, os.umask),
        Contents("sys.path", lambda: sys.path),
        Contents("import hooks", lambda: sys.meta_path),
        Contents("path hooks", lambda: sys.path_hooks),
        Value("standard streams", lambda: (sys.stdin, sys.stdout, sys.stderr), _set_streams),
        Value("exception hooks", _hooks, _set_hooks),
        Value("trace function", sys.gettrace, sys.settrace),
        Value("profile function", sys.getprofile, sys.setprofile),
        Value("recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
        Value("switch interval", sys.getswitchinterval, sys.setswitchinterval),
        Warnings(),
        Logging(),
        Value("locale", lambda: tuple(map(locale.setlocale, _LOCALES)), _set_locales),
        Value("garbage collector", lambda: (gc.isenabled(), gc.get_threshold(), gc.get_debug()), _set_gc),
        DecimalContext(),
        _Imported("socket timeout", "socket", _socket_timeout, _set_socket_timeout),
        *([] if seeded else [Value("random", random.getstate, random.setstate)]),
    ]


def standard_witnesses(*, memory_limit_mib: float = float("inf")) -> list[Witness]:
    """Witnesses of what cannot be put back."""
    return [Threads(), Children(), OpenFiles(), ExitFunctions(), Modules(), Memory(memory_limit_mib)]


class GuardSet:
    """All guards and witnesses of a process; use as `state = capture()`, test, `clean(state)`.

    Args:
        guards: Put state back, in this order.
        witnesses: Asked before and after.
    """

    def __init__(self, guards: Iterable[Guard], witnesses: Iterable[Witness]) -> None:
        self._guards = tuple(guards)
        self._witnesses = tuple(witnesses)

    def capture(self) -> tuple[Any, ...]:
        """Remember everything."""
        return (*(one.capture() for one in self._guards), *(one.capture() for one in self._witnesses))

    def clean(self, state: tuple[Any, ...]) -> Cleaned:
        """Put everything back; where that is impossible, say why the process must be discarded."""
        restored: list[str] = []
        count = len(self._guards)
        for guard, before in zip(self._guards, state[:count], strict=True):
            try:
                if guard.restore(before):
                    restored.append(guard.name)
            except Exception as error:  # noqa: BLE001 - whatever a restoration raises is a reason to discard
                return Cleaned(tuple(restored), f"{guard.name} cannot be restored: {error!r}")
        for witness, before in zip(self._witnesses, state[count:], strict=True):
            if reason := witness.doubt(before):
                return Cleaned(tuple(restored), reason)
        return Cleaned(tuple(restored))


def seed_from(test_id: str) -> None:
    """Give the random generators a state that depends on nothing but the test's id; numpy and torch if imported."""
    random.seed(test_id)
    number = random.getrandbits(32)
    if numpy_random := sys.modules.get("numpy.random"):  # which numpy imports only when it is asked for
        numpy_random.seed(number)
    if torch := loaded_torch():
        # torch.manual_seed would format the whole stack for a CUDA that may never be initialised: 2 ms a test.
        torch.default_generator.manual_seed(number)
        if torch.cuda.is_initialized():
            torch.cuda.manual_seed_all(number)


def _cwd() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - as text
    except FileNotFoundError:
        return ""  # a test removed it: that differs from any folder, so the old one is entered again


def _socket_timeout(socket: Any) -> float | None:
    seconds: float | None = socket.getdefaulttimeout()
    return seconds


def _set_socket_timeout(socket: Any, seconds: float | None) -> None:
    socket.setdefaulttimeout(seconds)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _set_streams(streams: tuple[Any, Any, Any]) -> None:
    sys.stdin, sys.stdout, sys.stderr = streams


def _hooks() -> tuple[Any, ...]:
    """What is called for exceptions that nobody catches.

    None for hooks of pytest: before 8.4 it sets its own anew for each phase of a test, and takes them back itself.
    """
    hooks = (sys.excepthook, sys.unraisablehook, threading.excepthook)
    return tuple(None if str(getattr(each, "__module__", "")).startswith("_pytest.") else each for each in hooks)


def _set_hooks(hooks: tuple[Any, ...]) -> None:
    now = (sys.excepthook, sys.unraisablehook, threading.excepthook)
    kept: list[Any] = [old or new for old, new in zip(hooks, now, strict=True)]
    sys.excepthook, sys.unraisablehook, threading.excepthook = kept


def _set_locales(values: tuple[str, ...]) -> None:
    for category, value in zip(_LOCALES, values, strict=True):
        locale.setlocale(category, value)


def _set_gc(state: tuple[bool, tuple[int, int, int], int]) -> None:
    enabled, threshold, debug = state
    (gc.enable if enabled else gc.disable)()
    gc.set_threshold(*threshold)
    gc.set_debug(debug)
