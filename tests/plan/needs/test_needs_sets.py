"""Sets of what is no plain value: classes of the tests' own, and names of modules outside the tree."""

import pytest
from small_projects import devices_of, needs_of

_TEXT = """
    import torch
    from acme import First, Second, Third
    from elsewhere import named

    class Own: ...
    class Other: ...

    def use(number):
        for each in range(number):
            torch.ones(1).to(f"cuda:{each}")

    def test_it():
        use(len({EXPRESSION}))
    """


@pytest.mark.parametrize(
    ("expression", "devices"),
    [
        ("set((First, Second, Third)).intersection((First, Third))", 2),
        ("set((First, Second, Third)) & set((Second,))", 1),
        ("set((First, Second, Third)).difference([First, Third])", 1),
        ("set((Own, Other)) - set((Own,))", 1),
        ("set((Own, Other)).union((Own, First))", 3),
        ("set((Own,)) | set((Other, First, 3))", 4),
        ("set((Own, Other)).intersection({Own, Other})", 2),
    ],
)
def test_sets_of_classes_have_in_common_what_they_have_in_python(expression, devices):
    text = _TEXT.replace("{EXPRESSION}", expression)
    assert devices_of("tests/test_it.py", {"tests/test_it.py": text}) == {"test_it": (devices, devices, devices)}


def test_a_loop_over_classes_that_two_lists_share_is_gone_through():
    text = """
    import torch
    from acme import First, Second

    class TestModels:
        generating = (First, Second)
        spread = (Second,)

        def test_shared(self):
            for each in tuple(set(self.generating).intersection(self.spread)):
                each().to("cuda:1")
    """
    assert devices_of("tests/test_it.py", {"tests/test_it.py": text}) == {"TestModels::test_shared": (2, 2, 2)}


def test_keys_that_are_made_of_what_is_outside_find_what_is_kept_under_them():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import cupy
            import torch

            KEPT = {("a", torch.float16): 3, ("b", torch.float16): 1}

            def touch(index):
                torch.ones(1, device=f"cuda:{index}")

            def test_written():
                touch(KEPT["a", torch.float16])

            def test_put():
                kept = {}
                kept["a", torch.float32] = 2
                kept.setdefault((1, cupy.int32), 1)
                touch(kept["a", torch.float32])
                touch(kept.get((1, cupy.int32)))

            def test_each():
                kept = {("a", torch.float16): 2}
                for word, kind in kept:
                    touch(kept[word, kind])

            def test_devices():
                kept = {torch.device("cuda:0"): 3, torch.device("cuda:1"): 1}
                touch(kept[torch.device("cuda:1")])
            """
        },
    )
    assert found == {
        "test_written": (4, 4, 4),
        "test_put": (3, 3, 3),
        "test_each": (3, 3, 3),
        "test_devices": (2, 2, 2),
    }


def test_keys_of_what_is_outside_are_given_back_as_what_they_are():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import numpy, pytest, torch

            @pytest.mark.parametrize("word,kind", {("a", numpy.float32): 1})
            def test_names(word, kind):
                pass

            @pytest.mark.parametrize("kind", {numpy.float32: 1})
            def test_name(kind):
                pass

            def test_parts():
                for word, kind in {("a", torch.float16): 1}:
                    if kind == torch.float16:
                        torch.ones(1, device="cuda:2")

            def test_kinds():
                for kind in {torch.float16: 1}:
                    if kind == torch.float16:
                        torch.ones(1, device="cuda:2")

            def test_devices():
                for device in {torch.device("cuda:2"): 1}:
                    torch.ones(1, device=device)
            """
        },
    )
    names = dict.fromkeys(("test_names[a-float32]", "test_name[float32]"), (0, None, 0))
    assert found == names | dict.fromkeys(("test_parts", "test_kinds", "test_devices"), (3, 3, 3))


def test_a_set_takes_in_all_that_it_is_given_and_what_nobody_knows_leaves_a_doubt():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            from acme import numbers

            def use(count):
                for each in range(count):
                    torch.ones(1).to(f"cuda:{each}")

            def test_of_two_lists():
                found = {1}
                found.update([2], (3, 1))
                use(len(found))

            def test_of_what_nobody_knows():
                found = {1}
                found.update([2], numbers())
                use(2 if len(found) == 2 else 4)
            """
        },
    )
    assert [(each.min, each.full, each.confidence.value) for each in found.values()] == [
        (3, 3, "high"),
        (4, 4, "medium"),
    ]
