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
