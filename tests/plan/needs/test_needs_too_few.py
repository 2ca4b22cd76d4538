"""What Python refuses where there are too few of something: names to unpack to, a sample, a step, what is removed."""

import pytest
from small_projects import needs_of

ABOVE = """
    import functools
    import random
    import elsewhere
    import torch

    COUNT = torch.cuda.device_count

    def names():
        return [f"cuda:{number}" for number in range(COUNT())]

    def use(*devices):
        for each in devices:
            torch.ones(1, device=each)
"""
UNPACKED = {
    "two": ("first, second = names()[:2]; use(first, second)", (2, 2, 2, None)),
    "exactly_two": ("first, second = range(COUNT()); use(first, second)", (2, 2, 2, 2)),
    "first": ("first, *others = names(); use(first, *others)", (1, 1, 8, None)),
    "rest": ("first, second, *others = names(); use(first)", (2, 2, 2, None)),
    "loop": ("[use(first, second) for first, second in [names()[:2]]]", (2, 2, 2, None)),
}
REFUSED = {
    "choice": ("use(random.choice(names()))", (1, 1, 1, None)),
    "sample": ("use(*random.sample(names(), 2))", (2, 2, 2, None)),
    "zip": ("[use(one) for one, _ in zip(names(), [0, 1], strict=True)]", (2, 2, 2, 2)),
    "step": ("list(range(0, 8, COUNT())); use(0)", (1, 1, 1, None)),
    "index": ("use(list(range(COUNT())).index(1))", (2, 2, 2, None)),
    "remove": ("left = list(range(COUNT())); left.remove(1); use(*left[:1])", (2, 2, 2, None)),
    "reduce": ("use(functools.reduce(min, range(COUNT())))", (1, 1, 1, None)),
}
NOT_KNOWN = {
    "grown": "several = [each for each in elsewhere.things()]; first, second = several",
    "some": "first, second = [1, 2, 3][: elsewhere.count()]",
    "filtered": "first, second = list(filter(None, [1, elsewhere.count()]))",
    "more": "several = [1]; several.extend(elsewhere.things()); first, second = several",
    "text": "first, second = 'a-b-c'.split('-')[1:]",
    "index": "[1, 2].index(elsewhere.count())",
    "zip": "list(zip(elsewhere.things(), [1, 2], strict=True))",
    "step": "range(0, 3, elsewhere.count())",
}


def needs_in(line):
    found = needs_of("test_it.py", {"test_it.py": f"{ABOVE}\n    def test_it():\n        {line}\n"})["test_it"]
    return found.min, found.gpu_min, found.full, found.max


@pytest.mark.parametrize("case", UNPACKED)
def test_as_many_values_are_unpacked_as_there_are_names(case):
    line, wanted = UNPACKED[case]
    assert needs_in(line) == wanted


@pytest.mark.parametrize("case", REFUSED)
def test_python_refuses_too_few(case):
    line, wanted = REFUSED[case]
    assert needs_in(line) == wanted


@pytest.mark.parametrize("case", NOT_KNOWN)
def test_nothing_is_refused_of_which_nobody_knows_how_many_there_are(case):
    assert needs_in(NOT_KNOWN[case]) == (0, None, 0, None)
