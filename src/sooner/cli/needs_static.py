"""The static layer over the files that were asked for; what was found is kept for the next question."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from sooner.cli.ended import ended_by_signals
from sooner.cli.needs_project import Project
from sooner.cli.progress import progress
from sooner.door.needs_asking import evaluated
from sooner.door.needs_kept import Answer
from sooner.door.needs_shared import STATE, Found, kept_answers
from sooner.plan.needs import TestNeeds
from sooner.run.folder import keep_out_of_version_control


def static_needs(project: Project, rules: Sequence[Path], jobs: int = 0, *, is_kept: bool = True) -> list[TestNeeds]:
    """The needs of all tests of a project, in the order of its files.

    A file's answer is kept below the project's root, and holds until something that it follows from changes; where
    that cannot be written, nothing is kept.

    Args:
        project: What was asked for.
        rules: Rule tables, the first looked at first, before the shipped one.
        jobs: Processes; 0 for one a CPU.
        is_kept: Use what is kept, and keep what is found.

    Raises:
        SettingsError: A rule table that cannot be read or is not understood.
    """
    kept = kept_answers(project.root, project.settings, rules, is_kept=is_kept)
    found = {path: kept.rows(path) for path in project.tests}
    lost = [path for path, rows in found.items() if rows is None]
    new: dict[str, Answer[Found]] = {}
    try:
        with ended_by_signals(), progress() as tell:

            def take(path: str, answer: Answer[Found]) -> None:
                new[path] = answer
                tell("test files", len(new), len(lost))

            if lost or not found:  # without a file the rules are checked all the same
                evaluated(project.root, lost, Found.of, settings=project.settings, rules=rules, jobs=jobs, done=take)
    finally:  # what was found until somebody had enough need not be found again
        if is_kept and new:
            with suppress(OSError):
                keep_out_of_version_control(project.root / STATE)
            kept.add(new)
            kept.save()
    found |= {path: each.rows for path, each in new.items()}
    return [each for rows in found.values() if rows is not None for each in rows]
