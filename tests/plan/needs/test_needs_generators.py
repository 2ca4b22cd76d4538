"""What a generator does is done as far as somebody asks it for items, and no further."""

from small_projects import devices_of, needs_of

HEAD = """
import contextlib
import itertools
import pytest
import torch

def touch(index=0):
    torch.ones(2, device=f"cuda:{index}")
    return index

def each(count):
    for index in range(count):
        touch(index)
        yield index

"""


def said(text, **others):
    """The least number of devices, and the number above which nothing is gained, of tests that are all sure."""
    found = needs_of("tests/test_it.py", {"tests/test_it.py": HEAD + text, **others})
    assert {each.confidence.name for each in found.values()} == {"HIGH"}
    return {name: (each.min, each.full) for name, each in found.items()}


def test_a_generator_that_nobody_asks_does_nothing():
    assert said("""
def test_function():
    assert each(3) is not None

def test_expression():
    assert (touch(index) for index in range(3))

def test_map():
    assert map(touch, range(3))

def test_filter():
    filter(touch, range(3))

def test_slice():
    itertools.islice(each(3), 2)

def test_behind_another():
    (index + 1 for index in each(3)) and None

class Steps:
    def all(self):
        yield from each(3)

def test_method():
    Steps().all()
""") == {
        "test_function": (0, 0),
        "test_expression": (0, 0),
        "test_map": (0, 0),
        "test_filter": (0, 0),
        "test_slice": (0, 0),
        "test_behind_another": (0, 0),
        "test_method": (0, 0),
    }


def test_a_generator_is_run_as_far_as_it_is_asked():
    assert said("""
def test_next():
    assert next(each(4)) == 0

def test_next_twice():
    values = each(4)
    next(values)
    next(values)

def test_next_of_an_expression():
    assert next(touch(index) for index in range(4)) == 0

def test_left_loop():
    for index in each(4):
        if index == 1:
            break

def test_numbered_loop():
    for number, index in enumerate(each(4)):
        if number == 2:
            break

def test_slice():
    assert list(itertools.islice(each(4), 2)) == [0, 1]

def test_chain():
    for index in itertools.chain(each(1), each(4)):
        if index == 1:
            break

def test_while():
    assert list(itertools.takewhile(lambda index: index < 1, each(4))) == [0]

def test_pairs():
    assert list(zip([7], each(4))) == [(7, 0)]

def test_any():
    assert any(touch(index) == 1 for index in range(4))

def test_all():
    assert not all(touch(index) < 2 for index in range(4))

def test_in():
    assert 1 in each(4)

def test_map():
    assert next(map(touch, range(4))) == 0

def test_of_another():
    assert next(index + 1 for index in each(4)) == 1

def first(values):
    for value in values:
        return value

def test_given():
    assert first(touch(index) for index in range(4)) == 0

def test_everything():
    assert sum(each(4)) == 6

def test_everything_of_a_loop():
    for _ in each(4):
        pass
""") == {
        "test_next": (1, 1),
        "test_next_twice": (2, 2),
        "test_next_of_an_expression": (1, 1),
        "test_left_loop": (2, 2),
        "test_numbered_loop": (3, 3),
        "test_slice": (2, 2),
        "test_chain": (2, 2),
        "test_while": (2, 2),
        "test_pairs": (1, 1),
        "test_any": (2, 2),
        "test_all": (3, 3),
        "test_in": (2, 2),
        "test_map": (1, 1),
        "test_of_another": (1, 1),
        "test_given": (1, 1),
        "test_everything": (4, 4),
        "test_everything_of_a_loop": (4, 4),
    }


def test_a_generator_goes_on_where_it_stopped():
    assert said("""
def after():
    yield 0
    touch(3)

def test_nothing_behind_the_last_item():
    for index in after():
        break

def test_what_is_behind_it():
    assert list(after()) == [0]

def test_in_a_loop_without_an_end():
    def endless():
        index = 0
        while True:
            touch(index)
            yield index
            index += 1
    for index in endless():
        if index == 2:
            break

def test_in_what_is_tried():
    def tried():
        for index in range(3):
            try:
                yield index
            finally:
                if index == 1:
                    touch(1)
    values = tried()
    assert [next(values), next(values), next(values)] == [0, 1, 2]

def test_in_a_context():
    @contextlib.contextmanager
    def around():
        yield
        touch(1)
    def within():
        with around():
            yield 1
            yield 2
    for index in within():
        pass

def test_in_another():
    def outer():
        yield -1
        yield from each(4)
    values = outer()
    next(values)
    next(values)

def test_what_another_returns():
    def inner():
        yield 1
        return 2
    def outer():
        found = yield from inner()
        touch(found)
    assert list(outer()) == [1]

def test_what_it_is_sent():
    def told():
        index = yield 0
        touch(index)
        yield 1
    values = told()
    next(values)
    values.send(2)

def test_its_end():
    values = each(1)
    next(values)
    with pytest.raises(StopIteration):
        next(values)
    touch(1)

def test_a_skip_that_nobody_comes_to():
    def late():
        yield 0
        pytest.skip("late")
    assert next(late()) == 0
    touch(1)

def test_closed():
    def kept():
        try:
            yield 0
        finally:
            touch(1)
    values = kept()
    next(values)
    values.close()

class Walk:
    def __iter__(self):
        yield from each(4)

def test_of_an_object():
    for index in Walk():
        if index == 1:
            break

def test_of_names_that_are_bound_later():
    indices = []
    values = (touch(index) for index in indices)
    indices.append(2)
    assert list(values) == [2]

def test_loop_in_turns():
    async def main():
        async for index in each_later(4):
            if index == 1:
                break
    import asyncio
    asyncio.run(main())

async def each_later(count):
    for index in range(count):
        touch(index)
        yield index
""") == {
        "test_nothing_behind_the_last_item": (0, 0),
        "test_what_is_behind_it": (4, 4),
        "test_in_a_loop_without_an_end": (3, 3),
        "test_in_what_is_tried": (2, 2),
        "test_in_a_context": (2, 2),
        "test_in_another": (1, 1),
        "test_what_another_returns": (3, 3),
        "test_what_it_is_sent": (3, 3),
        "test_its_end": (2, 2),
        "test_a_skip_that_nobody_comes_to": (2, 2),
        "test_closed": (2, 2),
        "test_of_an_object": (2, 2),
        "test_of_names_that_are_bound_later": (3, 3),
        "test_loop_in_turns": (2, 2),
    }


def test_a_generator_that_is_given_away_is_asked_for_all():
    assert devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": HEAD
            + """
import elsewhere
from acme.training import train

class Data:
    def __init__(self, values):
        self.values = values

def test_to_what_is_not_there():
    elsewhere.train(each(2))

def test_in_an_object():
    elsewhere.train(Data(each(2)))

def test_in_a_list():
    elsewhere.train([each(2)])

def test_to_the_library():
    train(each(2))
""",
            "acme/training.py": """
def train(values, steps=None):
    for place, value in enumerate(values):
        if place == steps:
            break
""",
        },
    ) == dict.fromkeys(
        ("test_to_what_is_not_there", "test_in_an_object", "test_in_a_list", "test_to_the_library"), (2, 2, 2)
    )
