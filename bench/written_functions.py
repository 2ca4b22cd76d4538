"""For each public function of some modules a test that calls it with the first arguments that it takes on the host.

Run by `needs_functions.py` with the interpreter that has the modules; prints the test file. What a call returns that
can be called is called as well, in a test of its own. Arguments are NumPy's arrays and Python's numbers, so that only
what the function itself does can use a device.

    python bench/written_functions.py MODULE ...
"""

import contextlib
import importlib
import inspect
import io
import os
import signal
import sys
import warnings
from typing import Any, Final

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
_WRITTEN: Final = """
import {modules}
import jax
import jax.numpy as jnp
import numpy as np

x = np.ones(3, np.float32)
m = np.ones((3, 3), np.float32)
s = np.ones((1, 3, 3), np.float32)
i = np.ones(3, np.int32)
b = np.ones(3, bool)
key = np.array([0, 1], np.uint32)


def f(*given):
    return given[0]


def g(*given):
    return jnp.sin(given[-1]).sum()


def h(given):
    return given > 3
"""
_ARGUMENTS: Final = (
    "", "x", "x, x", "m", "m, m", "x, 1", "m, 0", "x, x, x", "f, x", "g, x", "(x, x)", "[m, m]", "key", "key, (3,)",
    "key, x", "key, m", "key, 3", "i", "i, i", "i, 1", "x, i", "m, x", "(3,)", "3", "3, 3", "0, 3", "0., 1., 3",
    "x, (3, 1)", "m, (0,)", "m, (1, 0)", "f, x, x", "f", "g", "{'a': x}", "f, {'a': x}", "'ij,jk->ik', m, m",
    "jnp.float32", "x, jnp.float32", "(3,), jnp.float32", "jnp.float32, jnp.float32", "m, 0, 1", "x, x, 1", "b",
    "b, x, x", "b, b", "key, 1., (3,)", "key, x, x", "0, 3, g, 0.", "f, 0., x", "True, g, g, x", "b[0], g, g, x",
    "h, g, 0.", "m, x, 0", "s", "s, m", "1.", "1., 1.", "1., 1., 1.",
)  # fmt: skip
_AGAIN: Final = ("x", "m", "f")
"""What a function is given that a call returned."""
_LEFT_OUT: Final = (
    "distributed", "start_trace", "stop_trace", "start_server", "breakpoint", "print", "save", "savez",
    "clear_backends", "save_device_memory_profile",
)  # fmt: skip
_SECONDS: Final = 6


def written(modules: list[str]) -> str:
    """The test file."""
    names: dict[str, Any] = {}
    lines = _WRITTEN.format(modules=", ".join(modules))
    exec(lines, names)
    tests = []
    for module in modules:
        for function in _functions(importlib.import_module(module)):
            call = f"{module}.{function}"
            given = next((each for each in _ARGUMENTS if _passes(f"{call}({each})", names)), None)
            if given is None:
                continue
            made = f"{call}({given})"
            name = call.replace(".", "_")
            tests.append(f"def test_{name}():\n    {made}\n")
            again = next(
                (each for each in _AGAIN if _passes(f"_called({made})({each})", names | {"_called": _called})), None
            )
            if again is not None:
                tests.append(f"def test_{name}_called():\n    {made}({again})\n")
    return "\n\n".join([lines, *tests])


def _functions(module: Any) -> list[str]:
    own = (module.__name__.partition(".")[0], "jax")
    found = []
    for name in sorted(vars(module)):
        value = getattr(module, name)
        is_public = not name.startswith("_") and name not in _LEFT_OUT and callable(value)
        is_error = isinstance(value, type) and issubclass(value, BaseException)
        where = str(getattr(value, "__module__", "") or type(value).__module__)
        if is_public and not is_error and not inspect.ismodule(value) and where.startswith((*own, "PjitFunction")):
            found.append(name)
    return found


def _called(value: Any) -> Any:
    """What is returned, if it is a function."""
    if isinstance(value, type) or not callable(value):
        raise TypeError
    return value


def _passes(call: str, names: dict[str, Any]) -> bool:
    try:
        signal.alarm(_SECONDS)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            eval(call, dict(names))
    except BaseException:  # noqa: BLE001 - whatever it is, it is not the right call
        return False
    finally:
        signal.alarm(0)
    return True


def _too_long(*_args: Any) -> None:
    raise TimeoutError


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _too_long)
    print(written(sys.argv[1:]))
