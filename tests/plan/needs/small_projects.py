"""Small projects that are given as texts, and what is said of their tests."""

import functools
import textwrap

from sooner.door.needs_asking import shipped_rules
from sooner.plan.needs import Sources, infer_needs, load_rules


@functools.cache  # read once: it takes longer than most projects here
def shipped():
    """The rules that come with the project."""
    return load_rules([("rules.toml", shipped_rules())])


def needs_of(path, files, settings=None):
    """What is said of the tests of one file of a project, by their names in it; no project's rules but the shipped."""
    texts = {name: textwrap.dedent(text) for name, text in files.items()}
    found = infer_needs(Sources(texts, texts.get), [path], rules=shipped(), settings=settings)
    return {each.nodeid.partition("::")[2]: each for each in found}


def devices_of(path, files, settings=None):
    """Of each test the least number of devices, the least with one, and the number above which nothing is gained."""
    return {name: (each.min, each.gpu_min, each.full) for name, each in needs_of(path, files, settings).items()}
