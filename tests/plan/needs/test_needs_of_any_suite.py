"""Idioms that suites without rules of their own share: helpers of known names, MPI's pools, devices by what is set."""

from small_projects import devices_of, needs_of


def test_a_rule_that_says_what_a_helper_starts_holds_for_a_helper_that_can_be_told_so():
    worker = """
    import multiprocessing as mp
    import torch

    def work(world_size, rank):
        torch.cuda.set_device(rank)

    def multi_process_parallel(world_size, target):
        for rank in range(world_size):
            process = mp.Process(target=target, args=(world_size, rank))
            process.start()

    def test_it():
        multi_process_parallel(3, work)
    """
    assert devices_of("test_it.py", {"test_it.py": worker}) == {"test_it": (3, 3, 3)}
    rules_own = """
    def multi_process_parallel(monkeypatch, tp_size, pp_size, test_target):
        pass

    def test_it(monkeypatch):
        multi_process_parallel(monkeypatch, 2, 2, None)
    """
    assert devices_of("test_it.py", {"test_it.py": rules_own}) == {"test_it": (4, 4, 4)}
