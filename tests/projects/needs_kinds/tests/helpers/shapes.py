import jax
import jax.numpy as jnp
import pytest

TYPES = [jnp.float32, jnp.bfloat16]


def named(value):
    if isinstance(value, type(pytest.param(0))):
        return value
    if isinstance(value, (tuple, list)):
        return pytest.param(value, id="several")
    if isinstance(value, type(jnp.float32)):
        return pytest.param(value, id="TYPE_" + value.dtype.name)
    return pytest.param(value, id=str(value))


def meshes():
    found = []
    for count in (1, 2, 4):
        if len(jax.devices("gpu")) >= count:
            found.append(pytest.param(count, id=f"n{count}"))
    return found
