from .testing import *  # noqa: F403
