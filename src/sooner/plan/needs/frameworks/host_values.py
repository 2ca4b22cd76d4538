"""Values that are known to be on the host: tensors that were made there, NumPy's arrays, Python's own numbers."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import Ext, Unknown, hard, is_plain
from sooner.plan.needs.frameworks.jax_devices import Grid, Rows, array_of

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_HOST_TENSOR: Final = re.compile(
    r"torch\.(tensor|zeros|ones|empty|full|eye|arange|linspace|rand|randn|randint)\(\)"
    r"(\.(unsqueeze|squeeze|view|reshape|clone|float|half|bfloat16|contiguous|t|transpose)\(\))*$"
)
_NUMPY: Final = re.compile(r"(?:numpy|np)\.(?!asanyarray|array|asarray)[\w.]*\(\).*")
"""What NumPy has made, but of something that may be another's array."""


def is_on_host(machine: "Machine", value: Any) -> bool:
    """Whether something is a tensor that was made on the host, before anything was done on a device."""
    is_made = isinstance(value, Unknown) and _HOST_TENSOR.match(value.path) is not None
    return is_made and not machine.trace.has_used


def is_of_numpy(value: Any) -> bool:
    """Whether something is an array of NumPy's, or a number or a list of them: CuPy leaves it where it is."""
    value = hard(value)
    if isinstance(value, list | tuple):
        return all(map(is_of_numpy, value))
    is_made = isinstance(value, Unknown | Ext) and _NUMPY.fullmatch(value.path) is not None
    return is_made or isinstance(value, Rows) or is_plain(value)


def _numpy_array(machine: "Machine", args: list[Any]) -> Any:
    """What `numpy.array` makes: an array of devices, one whose shape is known, or at least one of NumPy's own."""
    made = array_of(machine, args)
    if isinstance(made, Rows | Grid):
        return made
    return Unknown("numpy.ndarray()" if all(map(is_of_numpy, args)) else "numpy.array()")


WORDS: Final[dict[str, Callable[["Machine", list[Any]], Any]]] = {
    "numpy_array": _numpy_array,
    "of_numpy": lambda _machine, args: all(map(is_of_numpy, args)),
}
"""What rules can say."""
