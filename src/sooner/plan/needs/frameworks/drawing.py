"""What NumPy's `RandomState` draws: JAX's tests are a draw of their cases, the same in every run."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.counted import uncounted
from sooner.plan.needs.evaluator.values import UNKNOWN, hard

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_LENGTH: Final = 624
_OTHER: Final = 397
_LOW: Final = 0x7FFFFFFF
_WORD: Final = 0xFFFFFFFF
_MOST: Final = 100_000
"""Of more cases nothing is drawn: it would take long, and there are none so many."""


def permuted(seed: int, count: int) -> list[int]:
    """`numpy.random.RandomState(seed).permutation(count)`.

    A number below a limit is made as NumPy's legacy `random_interval` does: bits are drawn until they are small enough.
    """
    words, numbers = _words(seed), list(range(count))
    for place in range(count - 1, 0, -1):
        mask = (1 << place.bit_length()) - 1
        other = next(word & mask for word in words if word & mask <= place)
        numbers[place], numbers[other] = numbers[other], numbers[place]
    return numbers


def _words(seed: int) -> Iterator[int]:
    """MT19937 (Matsumoto and Nishimura, mt19937ar.c: `init_genrand`, `genrand_int32`)."""
    state = [seed]
    for place in range(1, _LENGTH):
        state.append((1812433253 * (state[-1] ^ (state[-1] >> 30)) + place) & _WORD)
    while True:
        for place in range(_LENGTH):
            mixed = (state[place] & ~_LOW) | (state[(place + 1) % _LENGTH] & _LOW)
            state[place] = state[(place + _OTHER) % _LENGTH] ^ (mixed >> 1) ^ (0x9908B0DF if mixed & 1 else 0)
        yield from map(_tempered, state)


def _tempered(word: int) -> int:
    word ^= word >> 11
    word ^= (word << 7) & 0x9D2C5680
    word ^= (word << 15) & 0xEFC60000
    return word ^ (word >> 18)


def drawn(_machine: "Machine", args: list[Any]) -> Any:
    """`RandomState(seed).choice(count, size, replace=False)`, given in that order."""
    seed, count, size = (uncounted(hard(each)) for each in args)
    if not all(type(each) is int for each in (seed, count, size)) or not 0 <= count <= _MOST:
        return UNKNOWN
    return permuted(seed, count)[:size]
