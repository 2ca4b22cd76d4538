"""What says the same in other words has the same answer."""

from small_projects import devices_of, needs_of

from sooner.plan.needs import Confidence


def test_a_decorator_that_is_applied_by_hand_and_not_known_leaves_a_class_or_a_test_as_one_above_it_does():
    text = """
    import unittest
    import torch
    from elsewhere import REQUIRED, slow, tagged

    class CaseTest(unittest.TestCase):
        def test_it(self):
            torch.zeros(1, device="cuda:1")
    CaseTest = slow(unittest.skipIf(torch.cuda.device_count() < 2, "few")(REQUIRED[1](CaseTest)))

    def test_alone():
        torch.zeros(1, device="cuda:2")
    test_alone = REQUIRED["x"](tagged("x")(test_alone))
    """
    assert devices_of("test_it.py", {"test_it.py": text}) == {"CaseTest::test_it": (2, 2, 2), "test_alone": (3, 3, 3)}
    case = needs_of("test_it.py", {"test_it.py": text})["CaseTest::test_it"]
    assert [str(each) for each in case.profile.values()] == ["skip", "skip", "run", "run", "run", "run"]


def test_a_list_of_no_processes_starts_none_as_a_loop_without_a_turn_does():
    text = """
    import torch
    import torch.multiprocessing as mp

    def work(rank):
        torch.zeros(1, device=f"cuda:{rank}")

    def test_all():
        processes = [mp.Process(target=work, args=(rank,)) for rank in range(torch.cuda.device_count())]
        [each.start() for each in processes]
        [each.join() for each in processes]
    """
    needs = needs_of("test_it.py", {"test_it.py": text})["test_all"]
    assert (needs.min, needs.gpu_min, needs.full, needs.vacuous) == (1, 1, 8, [0])


def test_an_if_that_only_raises_an_assertion_error_is_believed_as_an_assert_is():
    text = """
    import unittest
    import pytest
    import torch
    import elsewhere

    def test_raises():
        if not elsewhere.check(torch.zeros(1, device="cuda:0")):
            raise AssertionError("wrong")

    def test_fails():
        if not elsewhere.check(torch.zeros(1, device="cuda:0")):
            pytest.fail("wrong")

    class Case(unittest.TestCase):
        def test_it(self):
            if not elsewhere.check(torch.zeros(1, device="cuda:0")):
                self.fail("wrong")

        def test_doubt(self):
            if not elsewhere.check(torch.zeros(1, device="cuda:0")):
                torch.zeros(1, device="cuda:1")
                self.fail("wrong")
    """
    *sure, doubtful = needs_of("test_it.py", {"test_it.py": text}).values()
    assert [(each.min, each.confidence) for each in sure] == [(1, Confidence.HIGH)] * 3
    assert doubtful.confidence is not Confidence.HIGH


LIBRARY = """
    import torch

    def fail(text):
        raise RuntimeError(text)

    def has(count):
        return torch.cuda.device_count() >= count

    def by_a_variable():
        available = torch.cuda.is_available()
        if not available:
            raise RuntimeError("no device")

    def by_a_number_of_them():
        enough = has(2)
        assert enough

    def unless_it_returns():
        if torch.cuda.is_available():
            return True
        raise RuntimeError("no device")

    def by_a_list_of_problems():
        problems = []
        if not has(3):
            problems.append("three devices are needed")
        if problems:
            raise RuntimeError(problems)

    def by_another_function():
        torch.cuda.is_available() or fail("no device")

    def by_a_pattern():
        match torch.cuda.device_count():
            case 0 | 1:
                raise RuntimeError("few devices")
            case _:
                return True

    def by_an_index():
        return list(range(torch.cuda.device_count()))[1]

    class Trainer:
        def __init__(self):
            self.is_on_device = torch.cuda.is_available()

        def fit(self):
            if not self.is_on_device:
                raise RuntimeError("no device")
"""


def test_what_the_library_raises_with_fewer_devices_only_is_for_lack_of_them_however_it_comes_to_that():
    text = """
    import lib

    def test_variable():
        lib.by_a_variable()

    def test_number():
        lib.by_a_number_of_them()

    def test_return():
        lib.unless_it_returns()

    def test_problems():
        lib.by_a_list_of_problems()

    def test_function():
        lib.by_another_function()

    def test_pattern():
        lib.by_a_pattern()

    def test_index():
        lib.by_an_index()

    def test_object():
        lib.Trainer().fit()
    """
    found = devices_of("tests/test_it.py", {"tests/test_it.py": text, "lib/__init__.py": LIBRARY})
    least = {name: each[0] for name, each in found.items()}
    assert least == {
        "test_variable": 1,
        "test_number": 2,
        "test_return": 1,
        "test_problems": 3,
        "test_function": 1,
        "test_pattern": 2,
        "test_index": 2,
        "test_object": 1,
    }


def test_who_handles_what_the_library_raises_for_lack_of_devices_skips_or_gives_up_by_it():
    text = """
    import unittest
    import pytest
    import torch
    import lib

    def test_skip():
        try:
            lib.by_a_list_of_problems()
        except RuntimeError:
            pytest.skip("few")

    def test_give_up():
        try:
            lib.unless_it_returns()
        except RuntimeError:
            return
        torch.zeros(1, device="cuda:1")

    @pytest.fixture
    def devices():
        try:
            lib.by_a_number_of_them()
        except AssertionError:
            pytest.skip("few")
        yield 2

    def test_fixture(devices):
        pass

    class TestCase(unittest.TestCase):
        def setUp(self):
            try:
                lib.by_another_function()
            except RuntimeError as error:
                raise unittest.SkipTest(str(error)) from error

        def test_set_up(self):
            pass

    def test_another_kind():
        with pytest.raises(TypeError):
            lib.by_a_variable()

    def test_this_kind():
        with pytest.raises(RuntimeError, match="no device"):
            lib.by_a_variable()

    def test_more_than_eight():
        try:
            lib.by_many(16)
        except RuntimeError:
            pytest.skip("few")
    """
    library = (
        LIBRARY
        + """
    def by_many(count):
        enough = has(count)
        if not enough:
            raise RuntimeError("few devices")
    """
    )
    found = needs_of("tests/test_it.py", {"tests/test_it.py": text, "lib/__init__.py": library})
    assert {name: (each.min, each.profile["0"].value) for name, each in found.items()} == {
        "test_skip": (3, "skip"),
        "test_give_up": (0, "run"),
        "test_fixture": (2, "skip"),
        "TestCase::test_set_up": (1, "skip"),
        "test_another_kind": (1, "fail"),
        "test_this_kind": (0, "run"),
        "test_more_than_eight": (16, "skip"),
    }
    assert found["test_give_up"].full == 2


def test_what_the_library_raises_for_lack_of_devices_while_a_module_is_imported_ends_that_or_is_handled():
    handled = """
    import pytest
    import lib

    def is_there():
        try:
            lib.by_a_number_of_them()
        except AssertionError:
            return False
        return True

    TWO = is_there()

    @pytest.mark.skipif(not TWO, reason="few")
    def test_handled():
        pass
    """
    left = """
    import lib

    lib.unless_it_returns()

    def test_left():
        pass
    """
    imported = """
    import pytest
    from handled import TWO

    @pytest.mark.skipif(not TWO, reason="few")
    def test_imported():
        pass
    """
    files = {"handled.py": handled, "test_handled.py": handled, "test_left.py": left, "test_imported.py": imported}
    files = {f"tests/{name}": each for name, each in files.items()} | {"lib/__init__.py": LIBRARY}
    said = {}
    for path in ("tests/test_handled.py", "tests/test_left.py", "tests/test_imported.py"):
        said |= {name: (each.min, each.profile["0"].value) for name, each in needs_of(path, files).items()}
    assert said == {"test_handled": (2, "skip"), "test_left": (1, "fail"), "test_imported": (2, "skip")}


def test_an_object_of_the_library_that_a_module_of_the_tests_makes_is_followed_as_one_that_a_test_makes():
    library = (
        LIBRARY
        + """
    class Pool:
        def __init__(self, count):
            enough = has(count)
            if not enough:
                raise RuntimeError("few devices")
    """
    )
    text = """
    import pytest
    import lib

    TRAINER = lib.Trainer()
    try:
        POOL = lib.Pool(2)
    except RuntimeError:
        POOL = None

    def test_object():
        TRAINER.fit()

    @pytest.mark.skipif(POOL is None, reason="few")
    def test_made():
        pass
    """
    found = needs_of("tests/test_it.py", {"tests/test_it.py": text, "lib/__init__.py": library})
    assert {name: (each.min, each.profile["0"].value) for name, each in found.items()} == {
        "test_object": (1, "fail"),
        "test_made": (2, "skip"),
    }


def test_a_loop_that_starts_workers_and_has_no_turn_without_devices_starts_none_however_it_does_so():
    text = """
    import subprocess
    import sys
    from concurrent.futures import ProcessPoolExecutor
    import torch
    import torch.multiprocessing as mp
    from torch.multiprocessing import Process as Worker

    def work(rank):
        torch.zeros(1, device=f"cuda:{rank}")

    def started(rank):
        worker = mp.Process(target=work, args=(rank,))
        worker.start()
        return worker

    class Fleet:
        def __init__(self, count):
            self.workers = []
            for rank in range(count):
                self.add(rank)

        def add(self, rank):
            self.workers.append(mp.get_context("spawn").Process(target=work, args=(rank,)))

        def run(self):
            for worker in self.workers:
                worker.start()
            for worker in self.workers:
                worker.join()

    def test_helper():
        for worker in [started(rank) for rank in range(torch.cuda.device_count())]:
            worker.join()

    def test_renamed():
        workers = [Worker(target=work, args=(rank,)) for rank in range(torch.cuda.device_count())]
        for worker in workers:
            worker.start()

    def test_programs():
        for rank in range(torch.cuda.device_count()):
            subprocess.run([sys.executable, "-c", f"import torch; torch.zeros(1, device='cuda:{rank}')"], check=True)

    def test_mapped():
        with ProcessPoolExecutor() as pool:
            list(pool.map(work, range(torch.cuda.device_count())))

    def test_submitted():
        with ProcessPoolExecutor() as pool:
            for each in [pool.submit(work, rank) for rank in range(torch.cuda.device_count())]:
                each.result()

    def test_fleet():
        Fleet(torch.cuda.device_count()).run()

    def test_while():
        rank = 0
        while rank < torch.cuda.device_count():
            started(rank).join()
            rank += 1

    def test_left():
        rank = 0
        while True:
            if rank >= torch.cuda.device_count():
                break
            started(rank).join()
            rank += 1

    def test_otherwise():
        if torch.cuda.is_available():
            for rank in range(torch.cuda.device_count()):
                started(rank).join()
        else:
            assert torch.zeros(1).sum() == 0

    def test_no_workers():
        for rank in range(torch.cuda.device_count()):
            work(rank)
    """
    found = needs_of("test_it.py", {"test_it.py": text})
    assert {name: (each.min, each.vacuous) for name, each in found.items()} == {
        "test_helper": (1, [0]),
        "test_renamed": (1, [0]),
        "test_programs": (1, [0]),
        "test_mapped": (1, [0]),
        "test_submitted": (1, [0]),
        "test_fleet": (1, [0]),
        "test_while": (1, [0]),
        "test_left": (1, [0]),
        "test_otherwise": (0, []),
        "test_no_workers": (0, []),
    }


def test_a_loop_that_an_exception_has_left_is_over():
    text = """
    import pytest
    import torch
    import torch.multiprocessing as mp

    def each(function, count):
        return [function(index) for index in range(count)]

    def refuse(index):
        raise ValueError(index)

    def work():
        torch.zeros(1, device="cuda")

    def test_refused():
        with pytest.raises(ValueError):
            each(refuse, 2)

    def test_after():
        assert each(str, 0) == []
        if torch.cuda.is_available():
            worker = mp.Process(target=work)
            worker.start()
            worker.join()
    """
    found = needs_of("test_it.py", {"test_it.py": text})
    assert {name: (each.min, each.vacuous) for name, each in found.items()} == {
        "test_refused": (0, []),
        "test_after": (0, []),
    }


def test_what_the_library_raises_with_some_numbers_of_devices_and_not_with_others_follows_from_them():
    library = """
    import torch

    def at_most(most):
        count = torch.cuda.device_count()
        if count > most:
            raise RuntimeError("too many")

    def divided(size):
        shares = max(torch.cuda.device_count(), 1)
        assert size % shares == 0

    def exactly(number):
        count = torch.cuda.device_count()
        assert count == number
    """
    text = """
    import pytest
    import lib

    def test_at_most():
        lib.at_most(2)

    def test_divided():
        lib.divided(4)

    def test_exactly():
        lib.exactly(3)

    def test_expected():
        with pytest.raises(RuntimeError):
            lib.at_most(2)
    """
    found = needs_of("tests/test_it.py", {"tests/test_it.py": text, "lib/__init__.py": library})
    profiles = {name: "".join(each.value[0] for each in needs.profile.values()) for name, needs in found.items()}
    assert profiles == {
        "test_at_most": "rrrfff",
        "test_divided": "rrrfrf",
        "test_exactly": "fffrff",
        "test_expected": "rrrrrr",
    }
    assert (found["test_at_most"].max, found["test_exactly"].min) == (2, 3)


def test_where_the_library_raises_for_lack_of_devices_is_said():
    text = "import lib\n\ndef test_return():\n    lib.unless_it_returns()\n"
    needs = needs_of("tests/test_it.py", {"tests/test_it.py": text, "lib/__init__.py": LIBRARY})["test_return"]
    assert [(each.path, each.text) for each in needs.evidence] == [
        ("tests/test_it.py", "lib.unless_it_returns()"),
        ("lib/__init__.py", 'raise RuntimeError("no device")'),
    ]


def test_what_the_library_raises_with_fewer_devices_and_handles_or_a_test_expects_is_no_failure():
    library = """
    import lib

    def tries():
        try:
            lib.by_a_variable()
        except RuntimeError:
            return False
        return True
    """
    text = """
    import pytest
    import lib
    from lib import other

    def test_handled():
        other.tries()

    def test_handled_here():
        try:
            lib.unless_it_returns()
        except RuntimeError:
            pass

    def test_always():
        with pytest.raises(RuntimeError):
            lib.fail("always")
    """
    files = {"tests/test_it.py": text, "lib/__init__.py": LIBRARY, "lib/other.py": library}
    found = devices_of("tests/test_it.py", files)
    assert found == dict.fromkeys(("test_handled", "test_handled_here", "test_always"), (0, None, 0))


def test_a_class_whose_cases_are_in_variables_is_not_lost_for_what_they_cost():
    grids = "\n".join(
        f"""
        cases_{n} = parameterized.expand([(a, b) for a in range(64) for b in range(64) if (a + b) % 63 == 62][:1])

        @cases_{n}
        def test_{n}(self, a, b):
            torch.zeros(1, device="cuda:1")
    """
        for n in range(8)
    )
    text = f"""
    import unittest
    import torch
    from parameterized import parameterized

    class Case(unittest.TestCase):{grids}
    """
    found = devices_of("test_it.py", {"test_it.py": text})
    assert found == {f"Case::test_{n}_0": (2, 2, 2) for n in range(8)}
