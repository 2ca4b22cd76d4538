"""Objects of the library under test, and what it asks of its process: what they do is done for the test."""

from small_projects import devices_of


def test_a_library_that_asks_for_its_rank_has_none_where_nobody_started_ranks():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/state.py": """
            import os

            def is_rank():
                return int(os.environ.get("LOCAL_RANK", -1)) != -1
            """,
            "tests/test_it.py": """
            import torch
            from acme.state import is_rank

            def test_alone():
                if is_rank():
                    torch.ones(1, device="cuda:3")

            def test_that_says_which_it_is(monkeypatch):
                monkeypatch.setenv("LOCAL_RANK", "0")
                if is_rank():
                    torch.ones(1, device="cuda:3")
            """,
        },
    )
    assert found == {"test_alone": (0, None, 0), "test_that_says_which_it_is": (4, 4, 4)}


def test_a_device_that_the_library_may_choose_is_not_the_one_that_the_test_uses_from_then_on():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/place.py": """
            import elsewhere, torch

            def perhaps():
                if elsewhere.is_fast():
                    torch.cuda.set_device(3)
            """,
            "tests/test_it.py": """
            import torch
            from acme.place import perhaps

            def test_perhaps():
                perhaps()
                torch.ones(1).cuda()
            """,
        },
    )
    assert found == {"test_perhaps": (1, 1, 1)}
