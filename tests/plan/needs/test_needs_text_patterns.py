"""What Python's `re` makes of texts that are known."""

import pytest
from small_projects import devices_of, needs_of

from sooner.plan.needs.text_patterns import is_quick


def test_names_of_cases_that_a_library_cleans_by_a_pattern_are_known():
    found = needs_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/cases.py": """
            import re

            from absl.testing import parameterized

            UNCLEAN = re.compile(r"[ =,.]+")

            def clean(text):
                return UNCLEAN.sub("_", text)

            def cases(kwargs):
                for each in kwargs:
                    name = "_".join(f"{key}={each[key]}" for key in sorted(each))
                    each["testcase_name"] = clean(each.get("testcase_name") or name)
                return parameterized.named_parameters(*kwargs)
            """,
            "tests/test_it.py": """
            from absl.testing import parameterized
            from acme.cases import cases

            class TestIt(parameterized.TestCase):
                @cases([dict(testcase_name=f"_in={a}", a=a) for a in ("P", None)])
                def test_named(self, a): ...

                @cases([dict(a=1.5, b=2)])
                def test_unnamed(self, a, b): ...
            """,
        },
    )
    assert list(found) == ["TestIt::test_named_in_P", "TestIt::test_named_in_None", "TestIt::test_unnamed_a_1_5_b_2"]


@pytest.mark.parametrize(
    ("expression", "devices"),
    [
        ('int(re.sub("[^0-9]", "", "needs 3 gpus"))', 3),
        ('int(re.findall("[0-9]+", "cuda:2,cuda:1")[0])', 2),
        ('len(re.split(", *", "a, b,c"))', 3),
        ('len(re.compile("x+").findall("xx x"))', 2),
    ],
)
def test_numbers_that_a_pattern_finds_in_a_text_are_known(expression, devices):
    text = f"""
        import re

        import torch

        def test_it():
            number = {expression}
            if torch.cuda.device_count() < number:
                raise RuntimeError("too few")
            torch.ones(1, device="cuda:0")
        """
    [found] = devices_of("tests/test_it.py", {"tests/test_it.py": text}).values()
    assert found == (devices, devices, devices)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|b*)*c", "a*a*a*a*b", "(", "(?:x{1,9}y?)+"])
def test_a_pattern_that_may_take_long_or_is_none_is_not_applied(pattern):
    assert not is_quick(pattern)


@pytest.mark.parametrize("pattern", [r"[ \"'\[\](){}<>=,._]+", "[0-9]+", r"^v(\d+)\.(\d+)", "a|b", "x*y"])
def test_a_pattern_that_repeats_little_is_applied(pattern):
    assert is_quick(pattern)
