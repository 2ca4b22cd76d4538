"""What ends a part of a test, and what of it is done all the same."""

import pytest
from small_projects import devices_of, needs_of

START = """
import contextlib
import torch

class Error(Exception):
    pass

class Other(Error):
    pass

def touch(index):
    torch.ones(2, device=f"cuda:{index}")

"""


def test_a_test_that_returns_where_an_error_is_awaited_goes_on_behind_it():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import contextlib
            import cupy
            import numpy
            import pytest

            def test_each():
                for xp in (numpy, cupy):
                    array = xp.asarray([1, 2])
                    with pytest.raises(ValueError):
                        return xp.choose(array, [[1]])

            def test_first():
                for xp in (numpy, cupy):
                    with contextlib.suppress(ValueError):
                        return xp.asarray([1, 2])
            """
        },
    )
    assert found == {"test_each": (1, 1, 1), "test_first": (0, None, 0)}


ENDED = {
    "try:\n    pass\nfinally:\n    touch(3)": 4,
    "try:\n    return\nfinally:\n    touch(3)": 4,
    "try:\n    pass\nexcept Error:\n    touch(0)\nelse:\n    touch(1)\nfinally:\n    touch(2)": 3,
    "try:\n    try:\n        raise Error\n    finally:\n        touch(2)\nexcept Error:\n    pass": 3,
    "for x in range(2):\n    try:\n        continue\n    finally:\n        touch(x)": 2,
    "with around():\n    pass": 2,
    "with contextlib.suppress(ValueError):\n    touch(3)": 4,
    "with contextlib.suppress(RuntimeError):\n    touch(3)": 0,
    "with contextlib.suppress(Error):\n    raise Other\n    touch(3)": 0,
    "with contextlib.suppress(KeyError, Error):\n    raise Other('x')\n    touch(3)": 0,
    "ended = contextlib.suppress(Error)\nfor x in range(2):\n    with ended:\n        raise Error\ntouch(1)": 2,
    "for x in iter(lambda: 1, 1):\n    touch(3)": 0,
    "left = [2, 1, 0]\nfor x in iter(left.pop, 2):\n    touch(x)": 2,
}


@pytest.mark.parametrize(("body", "least"), ENDED.items())
def test_what_is_done_in_the_end_is_done_and_what_is_swallowed_goes_no_further(body, least):
    around = """
@contextlib.contextmanager
def around():
    try:
        yield
    finally:
        touch(1)

"""
    text = START + around + "def test_it():\n" + "\n".join(f"    {line}" for line in body.split("\n"))
    found = needs_of("test_it.py", {"test_it.py": text})["test_it"]
    assert (found.min, found.confidence) == (least, "high")


def test_a_metaclass_that_is_called_makes_what_it_makes():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": START
            + """
class Once(type):
    made = {}

    def __call__(cls, *args, **kwargs):
        if cls not in cls.made:
            cls.made[cls] = super().__call__(*args, **kwargs)
        return cls.made[cls]

class Using(metaclass=Once):
    def __init__(self, index):
        self.index = index

    def use(self):
        touch(self.index)

class Touching(type):
    def __call__(cls):
        touch(1)

class Touched(metaclass=Touching):
    pass

def test_once():
    Using(2)
    Using(5).use()

def test_touched():
    Touched()

def test_none():
    Using(2)
"""
        },
    )
    assert found == {"test_once": (3, 3, 3), "test_touched": (2, 2, 2), "test_none": (0, None, 0)}


def test_a_class_that_is_made_within_a_test_tells_its_base_and_its_parts():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": START
            + """
class Base:
    def __init_subclass__(cls, index=0):
        touch(index)

class Named:
    def __set_name__(self, owner, name):
        touch(1)

def test_base():
    class Made(Base, index=2):
        pass

def test_named():
    class Made:
        part = Named()
"""
        },
    )
    assert found == {"test_base": (3, 3, 3), "test_named": (2, 2, 2)}


def test_a_function_of_several_forms_calls_the_one_for_the_type_that_it_is_given():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": START
            + """
import functools

@functools.singledispatch
def work(what):
    touch(7)

@work.register
def _(what: int):
    touch(what)

@work.register(str)
def _(what):
    touch(len(what))

class Job:
    index = 3

class Small(Job):
    index = 0

work.register(Small, lambda what: touch(what.index))
work.register(Job, lambda what: touch(5))

def test_int():
    work(1)

def test_str():
    work("abc")

def test_small():
    work(Small())

def test_other():
    work(2.5)
"""
        },
    )
    assert found == {"test_int": (2, 2, 2), "test_str": (4, 4, 4), "test_small": (1, 1, 1), "test_other": (8, 8, 8)}


def test_who_must_refuse_to_be_moved_to_a_device_is_not_moved():
    found = needs_of(
        "test_moves.py",
        {
            "test_moves.py": """
            import pytest
            from elsewhere import Remote

            def test_refused():
                remote = Remote()
                with pytest.raises(ValueError, match="not supported"):
                    remote.cuda()
                with pytest.raises(ValueError):
                    remote.to("cuda")

            def test_refused_after_it_was_moved():
                with pytest.raises(ValueError):
                    remote = Remote().cuda()
                    remote.train(1)

            def test_told_something_that_is_moved():
                remote = Remote()
                with pytest.raises(ValueError):
                    remote.train(remote.cuda())
            """
        },
    )
    assert {name: (each.min, each.gpu_min) for name, each in found.items()} == {
        "test_refused": (0, None),
        "test_refused_after_it_was_moved": (1, 1),
        "test_told_something_that_is_moved": (1, 1),
    }


def test_a_reason_says_what_is_raised_says_and_where_that_is_computed_how_it_is_written():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest
            import torch

            N = torch.cuda.device_count()

            def test_text():
                if N < 1:
                    raise unittest.SkipTest("no device")

            def test_made_of_what_is_known():
                if N < 1:
                    raise RuntimeError(f"got {N}" + " of %d" % 1)

            def test_computed():
                if N < 1:
                    raise RuntimeError(f"got {torch.cuda.device_count()} of 1")

            def test_bare():
                if N < 1:
                    raise ValueError
            """
        },
    )
    assert {name: each.reasons["0"] for name, each in found.items()} == {
        "test_text": "no device",
        "test_made_of_what_is_known": "RuntimeError: got 0 of 1",
        "test_computed": "RuntimeError: got {torch.cuda.device_count()} of 1",
        "test_bare": "ValueError",
    }
