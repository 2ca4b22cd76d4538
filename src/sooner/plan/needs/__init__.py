"""How many devices each test needs, from the text of a project alone: nothing of it is imported or run.

needs = infer_needs(sources, ["tests/test_model.py"], rules=load_rules([("rules.toml", text)]))
"""

from collections.abc import Iterable

from sooner.plan.needs.facts import SIZES, AtSize, Confidence, Derived, Evidence, TestNeeds, Verdict, derived
from sooner.plan.needs.infer import Inference, OutOfTime
from sooner.plan.needs.rules import Rules, load_rules
from sooner.plan.needs.settings import PytestSettings, values_of
from sooner.plan.needs.sources import Sources

__all__ = [
    "SIZES",
    "AtSize",
    "Confidence",
    "Derived",
    "Evidence",
    "Inference",
    "OutOfTime",
    "PytestSettings",
    "Rules",
    "Sources",
    "TestNeeds",
    "Verdict",
    "derived",
    "infer_needs",
    "load_rules",
    "values_of",
]


def infer_needs(
    sources: Sources, paths: Iterable[str], *, rules: Rules, settings: PytestSettings | None = None
) -> list[TestNeeds]:
    """The needs of all tests of some files.

    Args:
        sources: The project's files.
        paths: The test files, relative to the project's root.
        rules: What is known of frameworks; `load_rules([("", "")])` for none.
        settings: What pytest is configured to.
    """
    return list(Inference(sources, rules, settings).of_files(paths))
