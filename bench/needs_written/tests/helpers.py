"""What the tests of a written project share: guards, decorators, base classes, workers."""

import contextlib, dataclasses, enum, functools, inspect, os, unittest
import pytest, torch
import torch.cuda as tc
from torch.cuda import device_count as dc

NUM = torch.cuda.device_count()
DEVICES = [f"cuda:{i}" for i in range(NUM)]
REQUIRES = {n: pytest.mark.skipif(NUM < n, reason=f"needs {n}") for n in (1, 2, 3, 4, 8)}
need_two = REQUIRES[2]
_KNOWN = {}

@functools.lru_cache(maxsize=None)
def counted():
    return getattr(torch, "cuda").device_count()

counted()  # before a test patches what it asks

def has(n):
    return torch.cuda.is_available() and torch.cuda.device_count() >= n

def require(n, why=None, *, strict=False):
    have = _KNOWN.setdefault("n", counted())
    if have < n:
        if strict:
            raise AssertionError(why or "strict")
        pytest.skip(why or f"requires {n}")
    return have

def skip_if_lt(n):
    def decorate(test):
        @functools.wraps(test)
        def wrapper(*args, **kwargs):
            if torch.cuda.device_count() < n:
                raise unittest.SkipTest(f"needs {n}")
            return test(*args, **kwargs)
        return wrapper
    return decorate

def with_world(size=None):
    def wrap(test, n=2):
        @functools.wraps(test)
        def wrapper(self, *args, **kwargs):
            if NUM < n:
                pytest.skip("world")
            self.world = n
            return test(self, *args, **kwargs)
        return wrapper
    return wrap(size) if callable(size) else functools.partial(wrap, n=size or 2)

def retry(times=2):
    def decorate(test):
        @functools.wraps(test)
        def inner(*args, **kwargs):
            for attempt in range(times):
                try:
                    return test(*args, **kwargs)
                except AssertionError:
                    if attempt == times - 1:
                        raise
        return inner
    return decorate

def gpu_test(*, num_gpus):
    mark = pytest.mark.skipif(dc() < num_gpus, reason=f"Need {num_gpus}")
    return lambda test: pytest.mark.distributed(num_gpus=num_gpus)(mark(test))

def at_least(n):
    if NUM < n:
        return pytest.mark.skip(reason="n")
    return lambda test: test

def by_vars(decorator):
    def decorate(cls):
        for name, value in list(vars(cls).items()):
            if name.startswith("test") and callable(value):
                setattr(cls, name, decorator(value))
        return cls
    return decorate

def by_members(decorator):
    def decorate(cls):
        for name, value in inspect.getmembers(cls, inspect.isfunction):
            if name.startswith("test"):
                setattr(cls, name, decorator(value))
        return cls
    return decorate

def powers():
    n = 1
    while n <= max(NUM, 1):
        yield n
        n *= 2

class Guard:
    def __init__(self, n, **options):
        self.n = n
        self.options = {"strict": False, **options}
        self.devices = [f"cuda:{i}" for i in range(n)]
    def __call__(self, test):
        @functools.wraps(test)
        def inner(*args, **kwargs):
            with self:
                return test(*args, **kwargs)
        return inner
    def __enter__(self):
        require(self.n, strict=self.options["strict"])
        return self
    def __exit__(self, *_):
        return False
    def __len__(self):
        return self.n
    def __iter__(self):
        return iter(self.devices)
    def __getitem__(self, index):
        return torch.device(self.devices[index])

@contextlib.contextmanager
def needing(n):
    if NUM < n:
        pytest.skip("needing")
    yield n

class Backend(enum.Enum):
    NCCL = "nccl"
    GLOO = "gloo"

@dataclasses.dataclass(frozen=True)
class Layout:
    tp: int = 1
    pp: int = 1
    backend: Backend = Backend.NCCL
    @property
    def world(self):
        return self.tp * self.pp
    def id(self):
        return f"tp{self.tp}pp{self.pp}"
    @classmethod
    def drawn(cls, *sizes):
        for size in sizes:
            yield cls(tp=size)
            if size > 1:
                yield cls(tp=size // 2, pp=2)

LAYOUTS = [Layout(), Layout(2), Layout(tp=2, pp=2), Layout(pp=2, backend=Backend.GLOO)]
SIZED = [pytest.param(each, id=each.id(), marks=[REQUIRES[each.world]]) for each in LAYOUTS]

def use(device, *_):
    torch.ones(1, device=device)

def worker(rank, world, backend="nccl"):
    if backend == "nccl":
        torch.cuda.set_device(rank)
        torch.ones(1, device=f"cuda:{rank}")

def launch(function, world, *args):
    torch.multiprocessing.spawn(function, args=(world, *args), nprocs=world, join=True)

class Ranks:
    world_size = 2
    @classmethod
    def enough(cls):
        return NUM >= cls.world_size
    def spawn(self, function=worker):
        launch(function, self.world_size)
    @property
    def last(self):
        return torch.device("cuda", self.world_size - 1)

class RanksCase(Ranks, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.have = dc()
    def setUp(self):
        super().setUp()
        if not self.enough():
            raise unittest.SkipTest("not enough")

class Adaptive(RanksCase):
    @classmethod
    def enough(cls):
        return True
    @property
    def world_size(self):
        return min(NUM, 4)

class Guarded:
    minimum = 1
    def __init_subclass__(cls, minimum=None, **kwargs):
        super().__init_subclass__(**kwargs)
        if minimum is not None:
            cls.minimum = minimum
    def setup_method(self, method):
        if torch.cuda.device_count() < self.minimum:
            pytest.skip("minimum")

class Base:
    n = 1
    @pytest.fixture(autouse=True)
    def _enough(self, request):
        if request.cls.n > dc():
            pytest.skip("base")
        self.device = f"cuda:{self.n - 1}"
        yield
