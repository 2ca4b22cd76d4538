"""What is done after a test fails it as well, where a device is missing."""

from small_projects import devices_of, needs_of

HEAD = """
import unittest
import pytest
import torch

def touch(index=0):
    torch.ones(2, device=f"cuda:{index}")

"""


def test_what_unittest_does_after_a_test_needs_its_devices():
    assert devices_of(
        "test_it.py",
        {
            "test_it.py": HEAD
            + """
class TearDown(unittest.TestCase):
    def tearDown(self):
        touch(1)

    def test_it(self):
        pass

    def test_that_is_skipped(self):
        if torch.cuda.device_count() < 4:
            self.skipTest("too few")

class Inherited(TearDown):
    def tearDown(self):
        super().tearDown()

class OnlyIfThere(unittest.TestCase):
    def tearDown(self):
        if torch.cuda.is_available():
            touch(0)

    def test_it(self):
        pass

class NotSetUp(unittest.TestCase):
    def setUp(self):
        if torch.cuda.device_count() < 2:
            self.skipTest("too few")

    def tearDown(self):
        touch(1)

    def test_it(self):
        pass

class CleanedUp(unittest.TestCase):
    def setUp(self):
        self.addCleanup(touch, 2)

    def test_it(self):
        pass

class CleanedUpByTheTest(unittest.TestCase):
    def test_it(self):
        self.addCleanup(lambda: touch(1))

class ReadsWhatWasKept(unittest.TestCase):
    def setUp(self):
        self.index = 3

    def tearDown(self):
        touch(self.index)

    def test_it(self):
        self.index = 1
"""
        },
    ) == {
        "TearDown::test_it": (2, 2, 2),
        "TearDown::test_that_is_skipped": (4, 4, 4),
        "Inherited::test_it": (2, 2, 2),
        "Inherited::test_that_is_skipped": (4, 4, 4),
        "OnlyIfThere::test_it": (0, None, 0),
        "NotSetUp::test_it": (2, 2, 2),
        "CleanedUp::test_it": (3, 3, 3),
        "CleanedUpByTheTest::test_it": (2, 2, 2),
        "ReadsWhatWasKept::test_it": (2, 2, 2),
    }


def test_what_pytest_does_after_a_test_needs_its_devices():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": HEAD
            + """
import elsewhere

class TestPlain:
    def teardown_method(self):
        touch(1)

    def test_it(self):
        pass

@pytest.fixture
def after():
    yield
    touch(2)

def test_after(after):
    pass

@pytest.fixture(scope="module")
def after_all():
    yield
    touch(2)

def test_after_all(after_all):
    pass

@pytest.fixture
def finalized(request):
    request.addfinalizer(lambda: touch(1))

def test_finalized(finalized):
    pass

@pytest.fixture
def perhaps():
    yield
    if elsewhere.flag():
        touch(2)

def test_perhaps(perhaps):
    pass

@pytest.fixture
def in_the_end():
    try:
        yield
    finally:
        touch(1)

def test_in_the_end(in_the_end):
    torch.ones(1, device="cuda")
"""
        },
    )
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "TestPlain::test_it": (2, 2, 2),
        "test_after": (3, 3, 3),
        "test_after_all": (0, None, 0),
        "test_finalized": (2, 2, 2),
        "test_perhaps": (0, None, 0),
        "test_in_the_end": (2, 2, 2),
    }


def test_what_is_done_after_a_test_does_not_make_it_one_that_takes_long():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": HEAD
            + """
@pytest.mark.parametrize("size", range(25))
@pytest.mark.parametrize("kind", range(40))
def test_it(kind, size):
    if kind == 7:
        touch(1)
"""
        },
    )
    assert {name for name, said in found.items() if said[0]} == {f"test_it[7-{size}]" for size in range(25)}
