"""Injected leaks: what each would do to the next test, and what becomes of it under warm reuse.

Writes a project in which every leak has a test that leaks, a victim that fails if it sees the leak, and innocent
neighbours; runs it under `pytest --gpus` in many orders; compares the verdict of every test with the one it gets in a
process of its own (`--isolation=fork` and `fresh`). A leak may be *restored* (a guard put it back), *discarded* (the
process was ended after the test) or *flagged* (the victim failed warm, passed alone and was reported as pollution).
What is not allowed is a wrong verdict.

`--prove` checks the leaks themselves, with plain pytest: each victim passes alone and fails right after its leak.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from figures import machine, save, table
from peers import environment

SHUFFLES: Final = 100
QUICK: Final = 5
LIMIT_S: Final = 1800
UNITS: Final = ("test", "file", "auto")
"""Units of scheduling, in turn."""

STANDARD: Final = (
    # name, what a test does, what its victim sees of it
    ("environment set", "os.environ['LEAK_SET'] = '1'", "'LEAK_SET' in os.environ"),
    ("environment changed", "os.environ['LEAK_KEPT'] = '2'", "os.environ.get('LEAK_KEPT') == '2'"),
    ("environment removed", "del os.environ['LEAK_GONE']", "'LEAK_GONE' not in os.environ"),
    ("environment replaced", "os.environ = dict(os.environ)", "type(os.environ) is dict"),
    ("time zone", "os.environ['TZ'] = 'Asia/Tokyo'; time.tzset()", "time.timezone == -32400"),
    (
        "time zone, variable put back",
        "old = os.environ['TZ']; os.environ['TZ'] = 'Asia/Kabul'; time.tzset(); os.environ['TZ'] = old",
        "time.timezone == -16200",
    ),
    ("current directory", "os.chdir('/')", "os.getcwd() == '/'"),
    ("current directory removed", "os.chdir(tempfile.mkdtemp()); os.rmdir(os.getcwd())", "not state.has_cwd()"),
    ("umask", "os.umask(0o111)", "state.umask() == 0o111"),
    ("sys.path", "sys.path.insert(0, '/leak')", "'/leak' in sys.path"),
    ("sys.path replaced", "sys.path = [*sys.path, '/leaks']", "'/leaks' in sys.path"),
    ("sys.argv", "sys.argv.append('--leak')", "'--leak' in sys.argv"),
    ("import hook", "sys.meta_path.insert(0, state.Hook())", "any(type(one) is state.Hook for one in sys.meta_path)"),
    ("path hook", "sys.path_hooks.append(state.Hook)", "state.Hook in sys.path_hooks"),
    ("standard input", "sys.stdin = io.StringIO('leak')", "type(sys.stdin) is io.StringIO"),
    ("kept standard output", "sys.__stdout__ = io.StringIO()", "type(sys.__stdout__) is io.StringIO"),
    ("exception hook", "sys.excepthook = state.hook", "sys.excepthook is state.hook"),
    ("display hook", "sys.displayhook = state.hook", "sys.displayhook is state.hook"),
    ("unraisable hook of threads", "threading.excepthook = state.hook", "threading.excepthook is state.hook"),
    ("signal handler", "signal.signal(signal.SIGUSR2, state.hook)", "signal.getsignal(signal.SIGUSR2) is state.hook"),
    (
        "interval timer",
        "signal.setitimer(signal.ITIMER_PROF, 1000)",
        "signal.getitimer(signal.ITIMER_PROF) != (0.0, 0.0)",
    ),
    (
        "signal mask",
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})",
        "signal.SIGUSR1 in signal.pthread_sigmask(signal.SIG_BLOCK, ())",
    ),
    ("trace function", "sys.settrace(state.hook)", "sys.gettrace() is state.hook"),
    ("profile function", "sys.setprofile(state.quiet)", "sys.getprofile() is state.quiet"),
    ("trace function of threads", "threading.settrace(state.hook)", "threading.gettrace() is state.hook"),
    ("recursion limit", "sys.setrecursionlimit(7777)", "sys.getrecursionlimit() == 7777"),
    ("switch interval", "sys.setswitchinterval(0.25)", "sys.getswitchinterval() == 0.25"),
    ("digits of integers", "sys.set_int_max_str_digits(5555)", "sys.get_int_max_str_digits() == 5555"),
    ("bytecode", "sys.dont_write_bytecode = 'leak'", "sys.dont_write_bytecode == 'leak'"),
    ("writing of warnings", "warnings.formatwarning = state.hook", "warnings.formatwarning is state.hook"),
    ("new logger", "logging.getLogger('new').setLevel(1)", "logging.getLogger('new').level == 1"),
    ("log level", "logging.getLogger('project').setLevel(1)", "logging.getLogger('project').level == 1"),
    (
        "log handler",
        "logging.getLogger('project').addHandler(state.Handler())",
        "any(type(one) is state.Handler for one in logging.getLogger('project').handlers)",
    ),
    ("logging disabled", "logging.disable(logging.CRITICAL)", "logging.root.manager.disable == logging.CRITICAL"),
    ("log propagation", "logging.getLogger('project').propagate = False", "not logging.getLogger('project').propagate"),
    ("logger class", "logging.setLoggerClass(state.Logger)", "logging.getLoggerClass() is state.Logger"),
    (
        "log record factory",
        "logging.setLogRecordFactory(state.Record)",
        "logging.getLogRecordFactory() is state.Record",
    ),
    ("locale", "locale.setlocale(locale.LC_NUMERIC, 'C.UTF-8')", "locale.setlocale(locale.LC_NUMERIC) != 'C'"),
    ("gc disabled", "gc.disable()", "not gc.isenabled()"),
    ("gc threshold", "gc.set_threshold(12345)", "gc.get_threshold()[0] == 12345"),
    ("gc callback", "gc.callbacks.append(state.quiet)", "state.quiet in gc.callbacks"),
    ("random", "random.seed(0)", "random.random() == 0.8444218515250481"),
    ("thread", "state.thread('thread')", "'thread' in state.KEPT"),
    ("daemon thread that acts later", "state.later()", "time.sleep(0.1) or 'LEAK_LATE' in os.environ"),
    ("child process", "state.KEPT['child'] = subprocess.Popen(['sleep', '4'])", "'child' in state.KEPT"),
    ("zombie", "state.KEPT['zombie'] = state.zombie()", "'zombie' in state.KEPT"),
    ("open file", "state.KEPT['file'] = open(os.devnull)", "'file' in state.KEPT"),
    ("socket", "state.KEPT['socket'] = socket.socket()", "'socket' in state.KEPT"),
    ("exit function", "state.KEPT['exit'] = atexit.register(state.quiet)", "'exit' in state.KEPT"),
    ("decimal context", "decimal.getcontext().prec = 3", "decimal.getcontext().prec == 3"),
    ("context variable", "state.VARIABLE.set('leak')", "state.VARIABLE.get() == 'leak'"),
    (
        "event loop policy",
        "asyncio.set_event_loop_policy(state.Policy())",
        "type(asyncio.get_event_loop_policy()) is state.Policy",
    ),
    ("socket timeout", "socket.setdefaulttimeout(7.5)", "socket.getdefaulttimeout() == 7.5"),
    ("MIME type", "mimetypes.add_type('text/leak', '.leak')", "mimetypes.guess_type('a.leak')[0] == 'text/leak'"),
    ("codec", "codecs.register(state.codec)", "state.knows_codec()"),
    ("codec error handler", "codecs.register_error('leak', state.hook)", "state.knows_error_handler()"),
    ("builtin added", "builtins.leak = 1", "hasattr(builtins, 'leak')"),
    ("builtin replaced", "builtins.sorted = state.backwards", "sorted([1, 2]) == [2, 1]"),
    ("module attribute", "json.dumps = state.hook", "json.dumps is state.hook"),
    ("clock frozen", "time.time = state.frozen", "time.time() == 1.0"),
    ("function the guards use", "os.getcwd = state.nowhere", "os.getcwd() == '/nowhere'"),
    ("class attribute", "fractions.Fraction.leak = 1", "hasattr(fractions.Fraction, 'leak')"),
    ("module removed", "del sys.modules['colorsys']", "'colorsys' not in sys.modules"),
    ("module replaced", "sys.modules['chunky'] = state", "sys.modules.get('chunky') is state"),
    ("list of a module", "state.LIST.append('leak')", "'leak' in state.LIST"),
    ("cache of a function", "state.SOURCE = 'leak'; state.cached()", "state.cached() == 'leak'"),
    ("default argument", "state.remembers('leak')", "state.remembers('') != ['']"),
    ("temporary folder", "tempfile.tempdir = '/leak'", "tempfile.tempdir == '/leak'"),
    ("pickling", "copyreg.pickle(state.Hook, state.hook)", "state.Hook in copyreg.dispatch_table"),
    ("virtual subclass", "numbers.Number.register(state.Hook)", "issubclass(state.Hook, numbers.Number)"),
    ("resource limit", "state.limit(333)", "state.limit() == 333"),
    ("audit hook", "state.audit()", "state.audited()"),
    ("memory tracing", "tracemalloc.start()", "tracemalloc.is_tracing()"),
    ("weak finaliser", "state.KEPT['final'] = weakref.finalize(state, state.quiet)", "'final' in state.KEPT"),
    ("start method", "multiprocessing.set_start_method('spawn', force=True)", "state.start_method() == 'spawn'"),
)

NUMPY: Final = (
    ("numpy random", "numpy.random.seed(0)", "numpy.random.rand() == 0.5488135039273248"),
    ("numpy print options", "numpy.set_printoptions(precision=1)", "numpy.get_printoptions()['precision'] == 1"),
    ("numpy error state", "numpy.seterr(divide='raise')", "numpy.geterr()['divide'] == 'raise'"),
)

TORCH: Final = (
    ("torch random", "torch.manual_seed(0)", "torch.rand(1).item() == 0.49625658988952637"),
    ("default dtype", "torch.set_default_dtype(torch.float64)", "torch.get_default_dtype() is torch.float64"),
    ("default device", "torch.set_default_device('meta')", "torch.empty(1).is_meta"),
    ("threads", "torch.set_num_threads(3)", "torch.get_num_threads() == 3"),
    ("inter-op threads", "torch.set_num_interop_threads(3)", "torch.get_num_interop_threads() == 3"),
    ("grad mode", "torch.no_grad().__enter__()", "not torch.is_grad_enabled()"),
    ("inference mode", "state.enter(torch.inference_mode())", "torch.is_inference_mode_enabled()"),
    ("anomaly mode", "torch.autograd.set_detect_anomaly(True)", "torch.is_anomaly_enabled()"),
    ("autocast", "state.enter(torch.autocast('cpu', torch.bfloat16))", "torch.is_autocast_enabled('cpu')"),
    (
        "autocast dtype",
        "torch.set_autocast_dtype('cpu', torch.float16)",
        "torch.get_autocast_dtype('cpu') is torch.float16",
    ),
    ("autocast cache", "torch.set_autocast_cache_enabled(False)", "not torch.is_autocast_cache_enabled()"),
    (
        "determinism",
        "torch.use_deterministic_algorithms(True, warn_only=True)",
        "torch.are_deterministic_algorithms_enabled()",
    ),
    (
        "filling of memory",
        "torch.utils.deterministic.fill_uninitialized_memory = False",
        "not torch.utils.deterministic.fill_uninitialized_memory",
    ),
    ("cuDNN benchmark", "torch.backends.cudnn.benchmark = True", "torch.backends.cudnn.benchmark"),
    ("TF32", "torch.backends.cuda.matmul.allow_tf32 = True", "torch.backends.cuda.matmul.allow_tf32"),
    (
        "matmul precision",
        "torch.set_float32_matmul_precision('medium')",
        "torch.get_float32_matmul_precision() == 'medium'",
    ),
    (
        "attention kernels",
        "torch.backends.cuda.enable_math_sdp(False)",
        "not torch.backends.cuda.math_sdp_enabled()",
    ),
    ("mkldnn", "torch.backends.mkldnn.set_flags(False)", "not torch.backends.mkldnn.enabled"),
    ("torch print options", "torch.set_printoptions(precision=1)", "torch._tensor_str.PRINT_OPTS.precision == 1"),
    ("device context", "state.enter(torch.device('meta'))", "torch.empty(1).is_meta"),
    (
        "function mode",
        "state.enter(torch.overrides.BaseTorchFunctionMode())",
        "torch._C._len_torch_function_stack() > 0",
    ),
    (
        "dispatch mode",
        "state.enter(torch.utils._python_dispatch.BaseTorchDispatchMode())",
        "torch._C._len_torch_dispatch_stack() > 0",
    ),
    ("fake tensors", "state.enter(FakeTensorMode())", "type(torch.empty(1)) is not torch.Tensor"),
    (
        "saved tensors' hooks",
        "state.enter(torch.autograd.graph.saved_tensors_hooks(state.same, state.same))",
        "torch._C._autograd._top_saved_tensors_default_hooks(True) is not None",
    ),
    (
        "forward gradients",
        "state.enter(torch.autograd.forward_ad.dual_level())",
        "torch.autograd.forward_ad._current_level >= 0",
    ),
    ("dynamo configuration", "torch._dynamo.config.recompile_limit = 77", "torch._dynamo.config.recompile_limit == 77"),
    ("dynamo ignored key", "torch._dynamo.config.verbose = True", "torch._dynamo.config.verbose"),
    (
        "compiled code",
        "torch.compile(state.same, backend='eager')(torch.ones(1))",
        "torch._dynamo.convert_frame.FRAME_COUNTER > 0",
    ),
    ("function of torch", "torch.relu = state.same", "torch.relu is state.same"),
    ("function of nn", "torch.nn.functional.gelu = state.same", "torch.nn.functional.gelu is state.same"),
    ("method of tensors", "torch.Tensor.leak = state.same", "hasattr(torch.Tensor, 'leak')"),
    ("hub folder", "torch.hub.set_dir('/leak')", "torch.hub.get_dir() == '/leak'"),
    ("warn always", "torch.set_warn_always(True)", "torch.is_warn_always_enabled()"),
    ("denormal numbers", "torch.set_flush_denormal(True)", "state.TINY / 2 == 0.0"),
    (
        "hook on all modules",
        "torch.nn.modules.module.register_module_forward_hook(state.quiet)",
        "len(torch.nn.modules.module._global_forward_hooks) > 0",
    ),
    (
        "safe globals",
        "torch.serialization.add_safe_globals([state.Hook])",
        "state.Hook in torch.serialization.get_safe_globals()",
    ),
    (
        "sharing strategy",
        "torch.multiprocessing.set_sharing_strategy('file_system')",
        "torch.multiprocessing.get_sharing_strategy() == 'file_system'",
    ),
    (
        "pytree node",
        "torch.utils._pytree.register_pytree_node(state.Hook, state.same, state.same)",
        "state.Hook in torch.utils._pytree.SUPPORTED_NODES",
    ),
    ("library", "state.KEPT['library'] = state.library(torch)", "hasattr(torch.ops.leaky, 'operation')"),
    (
        "custom operation",
        "torch.library.custom_op('leaky2::same', mutates_args=(), schema='(Tensor x) -> Tensor')(state.same)",
        "hasattr(torch.ops.leaky2, 'same')",
    ),
    (
        "name of a backend",
        "torch.utils.rename_privateuse1_backend('leaky')",
        "torch._C._get_privateuse1_backend_name() == 'leaky'",
    ),
    (
        "process group",
        "dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)",
        "dist.is_initialized()",
    ),
)

IMPORTS: Final = """\
import asyncio, atexit, builtins, codecs, colorsys, copyreg, decimal, fractions, gc, io, json, locale, logging
import mimetypes, multiprocessing, numbers, os, random, signal, socket, subprocess, sys, tempfile, threading, time
import tracemalloc, warnings, weakref
import pytest, state
"""
NUMPY_IMPORTS: Final = "numpy = pytest.importorskip('numpy')\nimport numpy.random\n"
TORCH_IMPORTS: Final = """\
torch = pytest.importorskip('torch')
import torch._dynamo, torch.distributed as dist, torch.nn.modules.module, torch.utils._pytree
from torch._subclasses.fake_tensor import FakeTensorMode
"""

FILE: Final = """\
{imports}

def test_leak():
    {leak}


def test_victim():
    assert not ({seen})


@pytest.mark.parametrize("number", range(2))
def test_neighbour(number):
    assert number in range(2)
"""

VERDICTS: Final = """\
import pytest


@pytest.fixture
def breaks():
    raise RuntimeError("in setup")


@pytest.fixture
def breaks_later():
    yield
    raise RuntimeError("in teardown")


def test_passes(): print("says something")
def test_fails(): assert [1, 2] == [1, 3]
def test_skips(): pytest.skip("for a reason")
@pytest.mark.xfail
def test_fails_as_expected(): assert False
@pytest.mark.xfail
def test_passes_unexpectedly(): pass
@pytest.mark.xfail(strict=True)
def test_passes_although_strict(): pass
def test_errs(breaks): pass
def test_errs_later(breaks_later): pass
"""

CONFTEST: Final = """\
import json, os, random


def pytest_collection_modifyitems(items):
    how = os.environ.get("LEAKS_SHUFFLE", "")
    chance = random.Random(os.environ.get("LEAKS_SEED", "0"))
    if how:
        chance.shuffle(items)
    if how == "files":
        places = list(dict.fromkeys(item.path for item in items))
        items.sort(key=lambda item: places.index(item.path))


def pytest_runtest_logreport(report):
    if path := os.environ.get("LEAKS_RESULTS"):
        facts = (report.nodeid, report.when, report.outcome, hasattr(report, "wasxfail"))
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(facts) + "\\n")
"""

STATE: Final = """\
import asyncio, codecs, contextvars, functools, logging, multiprocessing, os, resource, sys, threading, time

KEPT, LIST, SOURCE, TINY = {}, [], "clean", 2.2250738585072014e-308
VARIABLE = contextvars.ContextVar("leak", default="")
_audits = []
logging.getLogger("project")

class Handler(logging.NullHandler): pass
class Logger(logging.Logger): pass
class Record(logging.LogRecord): pass
class Policy(asyncio.DefaultEventLoopPolicy): pass

class Hook:
    def __init__(self, *path):
        if path: raise ImportError("a path hook of a leak")
    def find_spec(self, *_): return None

def hook(*_, **__): return None
def quiet(*_, **__): return None
def same(x, *_): return x
def backwards(values, **_): return list(reversed(list(values)))
def frozen(): return 1.0
def nowhere(): return "/nowhere"
@functools.lru_cache
def cached(): return SOURCE

def remembers(value, seen=[]):
    if value: seen.append(value)
    return [*seen] or [value]

def has_cwd():
    try: return bool(os.stat("."). st_nlink)
    except OSError: return False

def umask():
    mask = os.umask(0o077)
    os.umask(mask)
    return mask

def thread(name):
    KEPT[name] = threading.Thread(target=time.sleep, args=(1,), daemon=True)
    KEPT[name].start()

def later():
    def act():
        time.sleep(0.05)
        os.environ["LEAK_LATE"] = "1"
        time.sleep(1)
    threading.Thread(target=act, daemon=True).start()

def zombie():
    pid = os.fork()
    if pid == 0: os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return pid

def codec(name): return codecs.lookup("utf-8") if name == "leak" else None

def knows_codec():
    try: return bool(codecs.lookup("leak"))
    except LookupError: return False

def knows_error_handler():
    try: return codecs.lookup_error("leak") is hook
    except LookupError: return False

def limit(soft=None):
    now, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft or now

def audit(): sys.addaudithook(lambda event, _: _audits.append(1) if event == "leak" else None)
def audited():
    sys.audit("leak")
    return bool(_audits)

def start_method(): return multiprocessing.get_start_method(allow_none=True)
def enter(context):
    KEPT[type(context)] = context
    context.__enter__()

def library(torch):
    made = torch.library.Library("leaky", "DEF")
    made.define("operation(Tensor x) -> Tensor")
    return made
"""


PROVE: Final = """\
import contextlib, importlib, json, os, sys
import pytest
for name in ("numpy.random", "torch._dynamo", "torch.distributed"):
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
for file in json.load(sys.stdin):
    codes = []
    victim, leak = f"{file}::test_victim", f"{file}::test_leak"
    for tests in ([victim], [leak], [leak, victim]):
        pid = os.fork()
        if pid == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os._exit(pytest.main(["-q", "-p", "no:cacheprovider", *tests]))
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    print(json.dumps([file, *codes]), flush=True)
"""
"""Runs each victim alone and after its leak, in forks of a process that has imported everything."""

Verdict = tuple[tuple[str, str, bool], ...]
"""Of each phase that was reported: its name, its outcome, whether a failure was expected."""


@dataclass(frozen=True, slots=True)
class Leak:
    """One leak, what it needs, and what its victim sees."""

    name: str
    does: str
    seen: str
    imports: str = ""

    @property
    def file(self) -> str:
        letters = (letter if letter.isalnum() else "_" for letter in self.name.lower())
        return f"test_{''.join(letters)}.py"

    def source(self) -> str:
        return FILE.format(imports=IMPORTS + self.imports, leak=self.does, seen=self.seen)


@dataclass(frozen=True, slots=True)
class Observed:
    """One run of the project."""

    verdicts: Mapping[str, Verdict]
    journal: Sequence[Mapping[str, object]]


@dataclass(slots=True)
class Tally:
    """What became of one leak over all runs."""

    restored: int = 0
    discarded: int = 0
    flagged: int = 0
    met: int = 0
    """Runs in which the victim came after the leak in the same worker."""
    by: dict[str, int] = field(default_factory=dict)
    """Guards that restored something, and reasons to discard."""


def leaks() -> list[Leak]:
    return [
        *(Leak(*row) for row in STANDARD),
        *(Leak(*row, NUMPY_IMPORTS) for row in NUMPY),
        *(Leak(*row, TORCH_IMPORTS) for row in TORCH),
    ]


def write_project(folder: Path) -> None:
    """Write the project; the files of leaks that need what is not installed skip themselves."""
    files = {leak.file: leak.source() for leak in leaks()}
    files |= {"conftest.py": CONFTEST, "state.py": STATE, "test_verdicts.py": VERDICTS, "pytest.ini": "[pytest]\n"}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def run(folder: Path, *options: str, shuffle: str = "", seed: int = 0) -> Observed:
    """Run the project's tests.

    Raises:
        SystemExit: pytest ended with an error of its own: there is nothing to compare.
    """
    results, journal = folder / "results.jsonl", folder / "journal.jsonl"
    for path in (results, journal):
        path.unlink(missing_ok=True)
    facts = {"LEAKS_RESULTS": str(results), "LEAKS_SHUFFLE": shuffle, "LEAKS_SEED": str(seed)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", *options]
    if "--isolation=warm" in options:
        command += ["--reuse-journal", str(journal)]
    done = subprocess.run(
        command, cwd=folder, env=variables(facts), capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if done.returncode not in (0, 1):
        raise SystemExit(
            f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
    return Observed(_verdicts(results), [json.loads(line) for line in _lines(journal)])


def variables(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of a run, with what leaks change or remove."""
    return environment({"LEAK_KEPT": "1", "LEAK_GONE": "1", "TZ": "UTC", **extra})


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def _verdicts(path: Path) -> dict[str, Verdict]:
    found: dict[str, list[tuple[str, str, bool]]] = {}
    for nodeid, when, outcome, expected in map(json.loads, _lines(path)):
        found.setdefault(nodeid, []).append((when, outcome, expected))
    return {nodeid: tuple(sorted(phases)) for nodeid, phases in found.items()}


def count(tallies: Mapping[str, Tally], observed: Observed) -> None:
    """Add what one run's journal says of every leak."""
    place: dict[str, int] = {}
    for number, line in enumerate(observed.journal):
        file, _, test = str(line["nodeid"]).partition("::")
        place[f"{line['worker']} {file} {test}"] = number
        tally = tallies.get(file)
        if tally is None:
            continue
        if test == "test_leak":
            _count_leak(tally, line)
        elif test == "test_victim":
            tally.flagged += bool(line["pollution"])
            tally.met += f"{line['worker']} {file} test_leak" in place


def _count_leak(tally: Tally, line: Mapping[str, object]) -> None:
    restored, discard = line["restored"], line["discard"]
    tally.restored += bool(restored)
    tally.discarded += bool(discard)
    names = [*(restored if isinstance(restored, list) else ()), *([str(discard).partition(":")[0]] if discard else ())]
    for name in names:
        tally.by[name] = tally.by.get(name, 0) + 1


def differences(expected: Mapping[str, Verdict], got: Mapping[str, Verdict]) -> Iterator[str]:
    """Every test whose verdict is another, in words."""
    for nodeid in sorted(expected.keys() | got.keys()):
        if expected.get(nodeid) != got.get(nodeid):
            yield f"{nodeid}: {expected.get(nodeid)} expected, {got.get(nodeid)} got"


def prove(folder: Path) -> int:
    """Check the leaks with plain pytest; the number that do not leak, or whose victim fails without them."""
    files = json.dumps([leak.file for leak in leaks()])
    command = [sys.executable, "-c", PROVE]
    done = subprocess.run(
        command, cwd=folder, env=variables({}), input=files, capture_output=True, text=True, timeout=LIMIT_S, check=True
    )
    wrong = 0
    for file, *codes in map(json.loads, done.stdout.splitlines()):
        if codes == [5, 5, 5]:
            print(f"{file}: needs what is not installed")
        elif codes != [0, 0, 1]:
            wrong += 1
            print(f"{file}: victim, leak, leak and victim ended with {codes}, [0, 0, 1] expected")
    print(f"{len(leaks())} leaks, {wrong} wrong")
    return wrong


def measure(folder: Path, spec: str, shuffles: int, isolations: Sequence[str]) -> tuple[dict[str, Tally], list[str]]:
    """Run the project in many orders; what became of every leak, and every wrong verdict."""
    tallies, wrong = {leak.file: Tally() for leak in leaks()}, []
    baseline: Mapping[str, Verdict] = {}
    for isolation in isolations:
        alone = run(folder, f"--gpus={spec}", f"--isolation={isolation}", "--unit=test")
        wrong += [f"{isolation}: {text}" for text in differences(baseline or alone.verdicts, alone.verdicts)]
        baseline = baseline or alone.verdicts
    for seed in range(shuffles):
        unit = UNITS[seed % len(UNITS)]
        shuffle = "files" if unit == "file" else "tests"
        options = (f"--gpus={spec}", "--isolation=warm", f"--unit={unit}")
        observed = run(folder, *options, shuffle=shuffle, seed=seed)
        found = [f"seed {seed}, --unit={unit}: {text}" for text in differences(baseline, observed.verdicts)]
        count(tallies, observed)
        wrong += found
        sys.stderr.write(f"\rshuffle {seed + 1} of {shuffles}: {len(wrong)} wrong verdicts")
    sys.stderr.write("\n")
    return tallies, wrong


def show(tallies: Mapping[str, Tally], wrong: Sequence[str]) -> None:
    names = {leak.file: leak.name for leak in leaks()}
    rows = [
        [names[file], tally.restored, tally.discarded, tally.flagged, tally.met, ", ".join(map(str, tally.by))[:60]]
        for file, tally in tallies.items()
    ]
    print(table(["leak", "restored", "discarded", "flagged", "victim met it", "by"], rows))
    unseen = [names[file] for file, one in tallies.items() if not one.restored + one.discarded + one.flagged]
    print(f"\n{len(rows)} leaks; never restored, discarded or flagged: {', '.join(unseen) or 'none'}")
    print("\n".join([f"{len(wrong)} wrong verdicts", *wrong[:50]]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shuffles", type=int, default=SHUFFLES, help=f"orders of the tests (default {SHUFFLES})")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} orders, compared with fork only")
    parser.add_argument("--gpus", default="virtual:2", help="devices (default virtual:2)")
    parser.add_argument("--baselines", help="isolations to compare with (default fork,fresh: fresh takes ten minutes)")
    parser.add_argument("--prove", action="store_true", help="check the leaks themselves, with plain pytest")
    parser.add_argument("--make", metavar="DIR", help="only write the project")
    arguments = parser.parse_args()
    if arguments.make:
        Path(arguments.make).mkdir(parents=True, exist_ok=True)
        write_project(Path(arguments.make))
        return 0
    with tempfile.TemporaryDirectory(prefix="sooner-leaks-") as name:
        folder = Path(name)
        write_project(folder)
        if arguments.prove:
            return int(prove(folder) > 0)
        shuffles = QUICK if arguments.quick else arguments.shuffles
        baselines = arguments.baselines or ("fork" if arguments.quick else "fork,fresh")
        tallies, wrong = measure(folder, arguments.gpus, shuffles, baselines.split(","))
    show(tallies, wrong)
    figures = {file: asdict(tally) for file, tally in tallies.items()}
    print(save("leaks", {"machine": machine(), "shuffles": shuffles, "wrong": wrong, "leaks": figures}))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
