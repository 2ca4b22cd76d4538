"""The static layer over the files that were asked for."""

from collections.abc import Sequence

from sooner.cli.needs_project import Project
from sooner.door.needs_asking import of_each, rule_tables, shipped_rules
from sooner.door.needs_tree import sources_of
from sooner.plan.needs import Inference, TestNeeds, load_rules

__all__ = ["rule_tables", "shipped_rules", "static_needs"]


def static_needs(project: Project, tables: Sequence[tuple[str, str]], jobs: int = 0) -> list[TestNeeds]:
    """The needs of all tests of a project, in the order of its files.

    Args:
        project: What was asked for.
        tables: Rules, the first looked at first.
        jobs: Processes; 0 for one a CPU.

    Raises:
        SettingsError: A rule that is not understood.
    """
    inference = Inference(sources_of(project.root), load_rules(tables), project.names)
    return [each for found in of_each(inference.of_file, project.root, project.tests, jobs) for each in found]
