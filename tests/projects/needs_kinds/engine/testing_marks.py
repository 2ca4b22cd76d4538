import os

import pytest


def only_with(name):
    if os.environ.get(name, "0") == "1":
        return pytest.mark.skipif(False, reason="")
    else:
        return pytest.mark.skipif(True, reason=f"{name} is not set")
