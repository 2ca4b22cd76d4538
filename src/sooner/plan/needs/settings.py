"""What pytest is configured to: which names are tests, and what it is always told (`addopts`, `usefixtures`)."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct


class PytestSettings(Struct, frozen=True, kw_only=True):
    """Settings of pytest's, of its ini-file."""

    files: tuple[str, ...] = ("test_*.py", "*_test.py")
    classes: tuple[str, ...] = ("Test",)
    functions: tuple[str, ...] = ("test",)
    options: tuple[str, ...] = ()
    """The words of `addopts`."""
    fixtures: tuple[str, ...] = ()
    """`usefixtures`: what every test uses."""

    def plugins(self) -> Iterator[str]:
        """Modules that are loaded as plugins (`-p name`)."""
        for each in values_of(self.options, "-p"):
            if not each.startswith("no:"):
                yield each


def values_of(words: Sequence[str], option: str) -> Iterator[str]:
    """What an option is given among the words of a command line, every time: `--x 1`, `--x=1`, `-x 1`, `-x1`."""
    is_long = option.startswith("--")
    for word, after in pairwise((*words, "")):
        if word == option and after:
            yield after
        elif is_long and word.startswith(f"{option}="):
            yield word.removeprefix(f"{option}=")
        elif not is_long and word.startswith(option) and word != option:
            yield word.removeprefix(option)
