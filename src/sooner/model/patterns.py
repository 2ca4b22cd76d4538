"""Patterns by which people name tests and jobs. Pure."""

from fnmatch import fnmatchcase


def is_meant(name: str, pattern: str) -> bool:
    """Whether a shell's pattern means a name; brackets mean themselves too, as in `test_a.py::test_b[nccl-2]`."""
    return fnmatchcase(name, pattern) or fnmatchcase(name, pattern.replace("[", "[[]"))
