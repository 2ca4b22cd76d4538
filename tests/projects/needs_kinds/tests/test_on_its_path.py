import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "helpers"))

import jax
import pytest
from shapes import TYPES, meshes, named


@pytest.mark.parametrize("count", meshes())
@pytest.mark.parametrize("kind", [named(each) for each in TYPES])
def test_mesh(count, kind):
    jax.sharding.Mesh(jax.devices()[:count], ("x",))
