"""Sets of what is no plain value: classes of the tests' own, and names of modules outside the tree."""

import pytest
from small_projects import devices_of

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
