"""Devices that a mask in the environment hides: from processes that are started, and from a file that sets one."""

from small_projects import devices_of, needs_of

_WORKERS = """
    import multiprocessing
    import os
    from unittest import mock

    import torch
    import torch.multiprocessing as mp

    def work(rank):
        if torch.cuda.is_available():
            torch.cuda.set_device(rank)
        torch.ones(3, device="cuda" if torch.cuda.is_available() else "cpu")
"""


def test_processes_see_no_devices_that_are_hidden_from_them():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": _WORKERS
            + """
    def test_spawned(monkeypatch):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        mp.spawn(work, nprocs=2)

    def test_spawned_within():
        with mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": "-1"}):
            mp.spawn(work, nprocs=2)

    def test_process(monkeypatch):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        process = multiprocessing.get_context("spawn").Process(target=work, args=(0,))
        process.start()
        process.join()

    def test_pool(monkeypatch):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        with multiprocessing.Pool(2) as pool:
            pool.map(work, [0, 1])

    def test_that_sees_them_again():
        with mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": ""}):
            mp.spawn(work, nprocs=2)
        torch.ones(3, device="cuda:2")

    def test_without_a_mask():
        mp.spawn(work, nprocs=2)
"""
        },
    )
    assert found == {
        "test_spawned": (0, None, 0),
        "test_spawned_within": (0, None, 0),
        "test_process": (0, None, 0),
        "test_pool": (0, None, 0),
        "test_that_sees_them_again": (3, 3, 3),
        "test_without_a_mask": (0, 2, 2),
    }


def test_processes_see_the_devices_that_their_mask_names():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": _WORKERS
            + """
    def both(rank):
        assert torch.cuda.device_count() == 2
        torch.cuda.set_device(rank)

    def test_two_of_all(monkeypatch):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
        mp.spawn(both, nprocs=2)

    def test_all_but_who_knows(monkeypatch):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", os.environ["DEVICES_OF_THIS_NODE"])
        mp.spawn(both, nprocs=2)
"""
        },
    )
    two, unknown = found["test_two_of_all"], found["test_all_but_who_knows"]
    assert (two.min, two.full, two.max) == (2, 2, None)
    assert (unknown.min, unknown.full, unknown.max) == (2, 2, 2)


def test_a_file_that_hides_the_devices_while_it_is_imported_has_none():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import os

            os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

            import pytest
            import torch

            DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

            def test_constant():
                torch.ones(3, device=DEVICE)

            def test_asked():
                torch.ones(3).to("cuda" if torch.cuda.is_available() else "cpu")

            @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two devices")
            def test_two():
                torch.ones(3, device="cuda:1")
            """
        },
    )
    assert found == {"test_constant": (0, None, 0), "test_asked": (0, None, 0), "test_two": (None, None, None)}


def test_an_environment_that_is_told_something_that_is_not_known_has_the_rest():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import os
            import subprocess
            import sys

            import elsewhere
            import torch

            TEXT = '''
            import torch
            torch.ones(1, device="cuda" if torch.cuda.is_available() else "cpu")
            '''

            def test_hidden():
                env = os.environ.copy()
                env.update(RANK="0", MASTER_PORT=str(elsewhere.port()), CUDA_VISIBLE_DEVICES="")
                subprocess.run([sys.executable, "-c", TEXT], env=env)

            def test_told():
                sizes = {"a": 1}
                sizes.update(a=2, b=elsewhere.size())
                torch.ones(1, device=f"cuda:{sizes['a']}")
            """,
        },
    )
    assert found == {"test_hidden": (0, None, 0), "test_told": (3, 3, 3)}
