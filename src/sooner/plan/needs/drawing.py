"""What NumPy's `RandomState` draws: JAX's tests are a draw of their cases, the same in every run."""

import random
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.counted import uncounted
from sooner.plan.needs.values import UNKNOWN, hard

if TYPE_CHECKING:
    from sooner.plan.needs.machine import Machine

_LENGTH: Final = 624
_MOST: Final = 100_000
"""Of more cases nothing is drawn: it would take long, and there are none so many."""


def permuted(seed: int, count: int) -> list[int]:
    """`numpy.random.RandomState(seed).permutation(count)`.

    The generator is Python's; only its seeding differs (Matsumoto and Nishimura, mt19937ar.c, `init_genrand`), and how
    numbers below a limit are made: bits are drawn until they are small enough (NumPy, legacy `random_interval`).
    """
    state, word = [], seed
    for place in range(_LENGTH):
        state.append(word)
        word = (1812433253 * (word ^ (word >> 30)) + place + 1) & 0xFFFFFFFF
    generator = random.Random()  # noqa: S311 - nothing is secret here
    generator.setstate((3, (*state, _LENGTH), None))
    numbers = list(range(count))
    for place in range(count - 1, 0, -1):
        mask = (1 << place.bit_length()) - 1
        while (other := generator.getrandbits(32) & mask) > place:
            pass
        numbers[place], numbers[other] = numbers[other], numbers[place]
    return numbers


def drawn(_machine: "Machine", args: list[Any]) -> Any:
    """`RandomState(seed).choice(count, size, replace=False)`, given in that order."""
    seed, count, size = (uncounted(hard(each)) for each in args)
    if not all(type(each) is int for each in (seed, count, size)) or not 0 <= count <= _MOST:
        return UNKNOWN
    return permuted(seed, count)[:size]
