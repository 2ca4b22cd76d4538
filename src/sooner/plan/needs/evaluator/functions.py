"""All functions outside of the tree that the evaluator does itself, by their dotted names."""

from typing import Final

from sooner.plan.needs.evaluator.contexts import CONTEXTS
from sooner.plan.needs.evaluator.values import Function
from sooner.plan.needs.frameworks.callbacks import traced
from sooner.plan.needs.frameworks.forwards import FORWARDS
from sooner.plan.needs.frameworks.number_types import NUMBER_TYPES
from sooner.plan.needs.python.arguments import argument_parser
from sooner.plan.needs.python.futures import FUTURES
from sooner.plan.needs.python.standard_library import STANDARD_LIBRARY
from sooner.plan.needs.python.within import WITHIN
from sooner.plan.needs.testing.mocks import MOCKS
from sooner.plan.needs.testing.parameterized_classes import PARAMETERIZED
from sooner.plan.needs.testing.plugins import PLUGINS
from sooner.plan.needs.testing.testing_names import TESTING

FUNCTIONS: Final[dict[str, Function]] = {
    **STANDARD_LIBRARY, **CONTEXTS, **WITHIN, **TESTING, **MOCKS, **PARAMETERIZED, **PLUGINS,
    **NUMBER_TYPES, **FORWARDS, **FUTURES,
    "argparse.ArgumentParser": argument_parser, "tensorflow.function": traced, "tensorflow.compat.v2.function": traced,
}  # fmt: skip
