"""Futures of executors: what fails in one is only raised where somebody asks for its result."""

from small_projects import devices_of, needs_of

HEAD = """
import concurrent.futures
import pytest
import torch
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

def touch(index=0):
    torch.ones(2, device=f"cuda:{index}")
    return index

"""


def said(text):
    found = needs_of("test_it.py", {"test_it.py": HEAD + text})
    return {
        name: ("".join(each[0] for each in needs.profile.values()), needs.full, needs.confidence.name)
        for name, needs in found.items()
    }


def test_what_fails_in_a_future_is_raised_where_its_result_is_asked_for():
    assert said("""
def test_asked():
    with ThreadPoolExecutor() as executor:
        future = executor.submit(touch, 2)
    assert future.result() == 2

def test_not_asked():
    with ThreadPoolExecutor() as executor:
        executor.submit(touch, 2)

def test_failure_asked():
    with ThreadPoolExecutor() as executor:
        future = executor.submit(touch, 2)
    if future.exception() is not None:
        pytest.skip("too few")

def test_tried():
    future = ThreadPoolExecutor(2).submit(touch, 1)
    try:
        future.result()
    except RuntimeError:
        pytest.skip("too few")

def test_raised():
    future = ProcessPoolExecutor(2).submit(touch, 1)
    if future.exception():
        raise future.exception()

def test_mapped():
    with concurrent.futures.ThreadPoolExecutor() as executor:
        assert list(executor.map(touch, range(3))) == [0, 1, 2]

def test_mapped_and_not_asked():
    with concurrent.futures.ThreadPoolExecutor() as executor:
        executor.map(touch, [2])

def test_completed():
    with ThreadPoolExecutor() as executor:
        futures = [executor.submit(touch, each) for each in range(3)]
        assert sorted(each.result() for each in concurrent.futures.as_completed(futures)) == [0, 1, 2]

def test_waited_for():
    with ThreadPoolExecutor() as executor:
        futures = [executor.submit(touch, 1)]
        done, waiting = concurrent.futures.wait(futures)
    assert len(done) == 1 and not waiting

def test_waited_for_and_asked():
    with ThreadPoolExecutor() as executor:
        futures = {executor.submit(touch, each): each for each in range(3)}
        done, _ = concurrent.futures.wait(futures)
        for each in done:
            assert futures[each] == each.result()

def test_called_back():
    with ThreadPoolExecutor() as executor:
        executor.submit(len, "a").add_done_callback(lambda future: touch(future.result()))

def test_initialized():
    with ThreadPoolExecutor(initializer=touch, initargs=(1,)) as executor:
        assert executor.submit(len, "ab").result() == 2
""") == {
        "test_asked": ("fffrrr", 3, "HIGH"),
        "test_not_asked": ("rrrrrr", 3, "HIGH"),
        "test_failure_asked": ("sssrrr", 3, "HIGH"),
        "test_tried": ("ssrrrr", 2, "HIGH"),
        "test_raised": ("ffrrrr", 2, "HIGH"),
        "test_mapped": ("fffrrr", 3, "HIGH"),
        "test_mapped_and_not_asked": ("rrrrrr", 3, "HIGH"),
        "test_completed": ("fffrrr", 3, "HIGH"),
        "test_waited_for": ("rrrrrr", 2, "HIGH"),
        "test_waited_for_and_asked": ("fffrrr", 3, "HIGH"),
        "test_called_back": ("ffrrrr", 2, "HIGH"),
        "test_initialized": ("ffrrrr", 2, "HIGH"),
    }


def test_an_exception_that_is_kept_is_raised_again_as_it_was():
    assert said("""
def caught():
    try:
        touch(1)
    except RuntimeError as error:
        return error

def test_kept():
    error = caught()
    if error is not None:
        raise error

def test_asked():
    if caught():
        pytest.skip("too few")
""") == {"test_kept": ("ffrrrr", 2, "HIGH"), "test_asked": ("ssrrrr", 2, "HIGH")}


def test_what_a_coroutine_gives_is_known_where_asyncio_runs_it_or_waits_for_it():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import asyncio
            import acme
            import torch

            def use(count):
                for index in range(count):
                    torch.ones(1, device=f"cuda:{index}")

            async def counted(count):
                return count

            async def both():
                first, second = await asyncio.gather(counted(1), counted(2))
                return first + second

            def test_run():
                use(asyncio.run(counted(2)))

            def test_run_by_a_loop():
                use(asyncio.new_event_loop().run_until_complete(counted(2)))

            def test_waited_for():
                async def wait():
                    use(await asyncio.wait_for(counted(2), timeout=1))
                asyncio.run(wait())

            def test_together():
                use(asyncio.run(both()))

            def test_several_of_which_nobody_knows_how_many():
                async def wait():
                    return await asyncio.gather(*(counted(each) for each in acme.counts()))
                if len(asyncio.run(wait())) == 1:
                    use(3)
                use(2)
            """
        },
    )
    assert found == {
        "test_run": (2, 2, 2),
        "test_run_by_a_loop": (2, 2, 2),
        "test_waited_for": (2, 2, 2),
        "test_together": (3, 3, 3),
        "test_several_of_which_nobody_knows_how_many": (2, 2, 3),
    }
