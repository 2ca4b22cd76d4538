"""What Python itself does with functions, objects and classes, and which device a test comes to by it."""

import textwrap

import pytest
from small_projects import needs_of

HEAD = """
import contextlib, dataclasses, enum, functools, operator, string
from collections import namedtuple
from dataclasses import dataclass, field
from typing import NamedTuple
import pytest
import torch

def touch(index=0):
    torch.ones(2, device=f"cuda:{index}")
    return index

"""


def index_of(text):
    """The device that some statements put into `n`, where that is certain."""
    body = textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")
    found = needs_of("test_it.py", {"test_it.py": f"{HEAD}def test_it():\n{body}\n    touch(n)\n"})
    needs = found["test_it"]
    assert needs.confidence.name == "HIGH", needs
    return needs.min - 1


@pytest.mark.parametrize(
    "text",
    [
        """
        calls = []
        @functools.lru_cache
        def known(number):
            calls.append(number)
            return number
        known(1), known(1), known(number=2)
        n = len(calls)
        """,
        """
        class Counts:
            calls = 0
            @functools.cached_property
            def number(self):
                Counts.calls += 1
                return Counts.calls
        counts, other = Counts(), Counts()
        counts.number, other.number
        n = counts.number + other.number - 1
        """,
    ],
)
def test_what_is_cached_is_done_once(text):
    assert index_of(text) == 2
