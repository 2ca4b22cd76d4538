"""All functions outside of the tree that the evaluator does itself, by their dotted names."""

from typing import Final

from sooner.plan.needs.arguments import argument_parser
from sooner.plan.needs.callbacks import traced
from sooner.plan.needs.contexts import CONTEXTS
from sooner.plan.needs.forwards import FORWARDS
from sooner.plan.needs.futures import FUTURES
from sooner.plan.needs.mocks import MOCKS
from sooner.plan.needs.number_types import NUMBER_TYPES
from sooner.plan.needs.parameterized_classes import PARAMETERIZED
from sooner.plan.needs.plugins import PLUGINS
from sooner.plan.needs.standard_library import STANDARD_LIBRARY
from sooner.plan.needs.testing_names import TESTING
from sooner.plan.needs.values import Function
from sooner.plan.needs.within import WITHIN

FUNCTIONS: Final[dict[str, Function]] = {
    **STANDARD_LIBRARY, **CONTEXTS, **WITHIN, **TESTING, **MOCKS, **PARAMETERIZED, **PLUGINS,
    **NUMBER_TYPES, **FORWARDS, **FUTURES,
    "argparse.ArgumentParser": argument_parser, "tensorflow.function": traced, "tensorflow.compat.v2.function": traced,
}  # fmt: skip
