"""What Python's `re` makes of texts that are known."""

import pytest
from small_projects import devices_of, needs_of

from sooner.plan.needs.python.text_patterns import is_quick, is_quick_in_sources


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


def test_what_a_pattern_finds_in_a_source_of_the_tree_decides():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/old.py": """
            # Copyright 2019 Acme
            class Config:
                pass

            class OldAttention(Module):
                pass
            """,
            "acme/model.py": """
            import re
            import sys

            class Model:
                @classmethod
                def can_be_set(cls):
                    with open(sys.modules[cls.__module__].__file__, "r") as stream:
                        code = stream.read()
                    return bool(re.search(r"class \\w+Attention\\(Module\\)", code))
            """,
            "tests/test_it.py": """
            import inspect
            import re

            import pytest
            import torch
            from acme.model import Model
            from acme.old import Config

            YEAR = re.compile("Copyright (\\d{4})")

            def test_of_a_year():
                with open(inspect.getfile(Config().__class__)) as stream:
                    text = stream.read()
                if match := re.search(r"^# copyright (\\d{4})", text, re.MULTILINE | re.IGNORECASE):
                    if int(match.group(1)) < 2023:
                        pytest.skip("old")
                torch.ones(1).cuda()

            def test_of_another_year():
                if YEAR.match("Copyright 2024").groups() == ("2024",):
                    pytest.skip("new")
                torch.ones(1).cuda()

            def test_of_a_class():
                if not Model.can_be_set():
                    pytest.skip("cannot be set")
                torch.ones(1).cuda()

            def test_of_itself():
                if "test_of_itself" not in open(__file__).read():
                    pytest.skip("never")
                torch.ones(1).cuda()

            def test_of_what_is_not_there():
                if re.search("x", open("/etc/acme.py").read()):
                    pytest.skip("perhaps")
                torch.ones(1).cuda()
            """,
        },
    )
    assert found == {
        "test_of_a_year": (None, None, None),
        "test_of_another_year": (None, None, None),
        "test_of_a_class": (None, None, None),
        "test_of_itself": (1, 1, 1),
        "test_of_what_is_not_there": (1, 1, 1),
    }


@pytest.mark.parametrize(
    ("pattern", "is_safe"),
    [
        (r"^# Copyright (\d{4})", True),
        (r"class \w+Attention\(nn.Module\)", True),
        (r"\w+x", False),
        (r"(\w+)+x", False),
        (r"ab.*", False),
        (r"\d{1,20}", True),
        ("(", False),
    ],
)
def test_only_quick_patterns_go_through_whole_sources(pattern, is_safe):
    assert is_quick_in_sources(pattern) is is_safe
