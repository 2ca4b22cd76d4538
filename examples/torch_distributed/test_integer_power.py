"""Integer powers are exact under torch.compile: whole numbers have no rounding, and what overflows wraps around.

What torch 2.13 cannot compile is here too, as strict xfails with their errors: a release that can makes them fail.
"""

from collections.abc import Callable

import pytest
import torch
import torch._dynamo
import torch._inductor.exc

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
EXPONENTS = (0, 1, 2, 3, 4, 5, 7, 10, 15, 31, 62)
BITS = {torch.int8: 8, torch.int16: 16, torch.int32: 32, torch.int64: 64}
BASES = (-9, -3, -2, -1, 0, 1, 2, 3, 7, 10)


def known_error(message: str) -> pytest.MarkDecorator:
    """What torch 2.13 says on the CPU, where it should compute."""
    error = pytest.RaisesExc(torch._inductor.exc.InductorError, match=message)
    return pytest.mark.xfail(DEVICE == "cpu", strict=True, raises=error, reason=f"torch 2.13: {message}")


@pytest.fixture(autouse=True)
def _fresh_compiler() -> None:
    torch._dynamo.reset()


def wrapped(value: int, dtype: torch.dtype) -> int:
    """What is left of a number in two's complement."""
    bits = BITS[dtype]
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def static_powers(base: torch.Tensor) -> list[torch.Tensor]:
    return [base**exponent for exponent in EXPONENTS]


def tensor_power(base: torch.Tensor, exponent: torch.Tensor) -> torch.Tensor:
    return torch.pow(base, exponent)


def scalar_power(base: torch.Tensor, exponent: int) -> torch.Tensor:
    return base**exponent


def shape_power(base: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return base ** other.shape[0]


def power_of_three(tensor: torch.Tensor, exponent: int) -> torch.Tensor:
    return tensor + 3**exponent


def reciprocal(base: torch.Tensor) -> torch.Tensor:
    return base**-1


def compiled(function: Callable[..., object], **more: object) -> Callable[..., object]:
    return torch.compile(function, fullgraph=True, **more)


@pytest.mark.gpus(1)
@pytest.mark.parametrize("dtype", BITS, ids=str)
def test_static_exponents_are_exact(dtype):
    found = compiled(static_powers)(torch.tensor(BASES, dtype=dtype, device=DEVICE))
    for exponent, powers in zip(EXPONENTS, found, strict=True):
        assert powers.dtype is dtype
        assert powers.tolist() == [wrapped(base**exponent, dtype) for base in BASES], f"exponent {exponent}"


@pytest.mark.gpus(1)
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64], ids=str)
def test_tensors_as_exponents_are_exact(dtype):
    bases = torch.tensor(BASES, dtype=dtype, device=DEVICE).repeat_interleave(len(EXPONENTS))
    exponents = torch.tensor(EXPONENTS, dtype=dtype, device=DEVICE).repeat(len(BASES))
    found = compiled(tensor_power)(bases, exponents)
    assert found.tolist() == [wrapped(base**exponent, dtype) for base in BASES for exponent in EXPONENTS]


@pytest.mark.gpus(1)
def test_powers_that_a_float_cannot_hold_are_exact():
    found = compiled(static_powers)(torch.tensor([3, 7], device=DEVICE))
    assert found[EXPONENTS.index(31)].tolist() == [3**31, wrapped(7**31, torch.int64)]
    assert found[EXPONENTS.index(15)][1].item() == 7**15


@pytest.mark.gpus(1)
@known_error("Expected a value of type 'Tensor' for argument 'exponent' but instead found type 'SymInt'")
def test_an_exponent_that_changes_is_exact():
    power, base = compiled(scalar_power, dynamic=True), torch.tensor(BASES, device=DEVICE)
    for exponent in (5, 6, 7):
        assert power(base, exponent).tolist() == [value**exponent for value in BASES]


@pytest.mark.gpus(1)
@known_error("Expected a value of type 'Tensor' for argument 'exponent' but instead found type 'SymInt'")
def test_a_size_as_exponent_is_exact():
    power, base = compiled(shape_power, dynamic=True), torch.tensor(BASES, device=DEVICE)
    for exponent in (5, 6, 7):
        assert power(base, torch.empty(exponent, device=DEVICE)).tolist() == [value**exponent for value in BASES]


@pytest.mark.gpus(1)
@known_error("NotImplementedError: _print_PowByNatural not implemented")
def test_a_number_to_an_exponent_that_changes_is_exact():
    power, tensor = compiled(power_of_three, dynamic=True), torch.zeros(2, dtype=torch.int64, device=DEVICE)
    for exponent in (5, 6, 7):
        assert power(tensor, exponent).tolist() == [3**exponent] * 2


@pytest.mark.gpus(1)
@known_error("CppCompileError: C\\+\\+ compile error")
def test_a_negative_exponent_is_refused_as_it_is_without_compiling():
    with pytest.raises(RuntimeError, match="negative integer powers"):
        reciprocal(torch.tensor(BASES, device=DEVICE))
    try:
        compiled(reciprocal)(torch.tensor(BASES, device=DEVICE))
    except RuntimeError as error:
        if "negative integer powers" not in str(error):
            raise
    else:
        pytest.fail("it was compiled to something")
