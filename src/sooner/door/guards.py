"""The guards of a worker: those of the standard library, of numpy and torch where the suite uses them, and its own."""

import itertools
from typing import Any

import pytest

from sooner.warm.guards import GuardSet, standard_guards, standard_witnesses
from sooner.warm.torch_guards import torch_guards
from sooner.warm.torch_witnesses import torch_witnesses


def guards_of_project(config: pytest.Config) -> GuardSet:
    """Everything that is put back and watched between the tests of a warm worker.

    A project's own guards come first: they may need what the others put back afterwards. Generators of random numbers
    are not put back, because every test begins with `seed_from`.
    """
    own: list[Any] = [one for some in config.hook.pytest_sooner_guards(config=config) for one in some or ()]
    guards = [one for one in own if hasattr(one, "restore")]
    witnesses = [one for one in own if not hasattr(one, "restore")]
    ours = itertools.chain(torch_guards(), standard_guards(seeded=True))
    return GuardSet(
        itertools.chain(guards, (one for one in ours if "random" not in one.name)),
        itertools.chain(witnesses, torch_witnesses(), standard_witnesses()),
    )
