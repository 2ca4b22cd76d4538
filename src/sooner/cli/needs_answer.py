"""What `sooner needs` does: finds the tests, infers, asks them if told to, prints."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from msgspec import Struct

from sooner.cli.needs_placement import placement_from
from sooner.cli.needs_plan import plan_text
from sooner.cli.needs_project import Project, find_project
from sooner.cli.needs_static import static_needs
from sooner.cli.needs_sweep import swept
from sooner.door.needs_tree import read_source, sources_of
from sooner.model.errors import UsageError
from sooner.model.outcomes import ExitCode
from sooner.model.text import one_line, test_of, there_are
from sooner.plan.needs import TestNeeds
from sooner.plan.needs.placement import Difference, Job, counted, differences
from sooner.plan.needs.sources import parsed
from sooner.plan.needs.testing.elsewhere import takes_tests_from_outside
from sooner.report.needs import NeedRow, differences_text, needs_text, summary_text
from sooner.report.wording import counted as counted_of

_MOST_NAMED: Final = 3
_AGREE: Final = "declarations, needs and placement agree"
_AGREE_SO_FAR: Final = "declarations and needs agree; where CI runs the tests was not looked at (--placement)"


class Question(Struct, frozen=True, kw_only=True):
    """What was asked."""

    paths: tuple[str, ...]
    dry: bool
    real: bool
    diff: bool
    placements: tuple[str, ...]
    rules: tuple[str, ...]
    python: str
    devices: str
    jobs: int
    no_cache: bool
    least: int
    why: bool
    limit: int
    as_plan: bool
    most: int
    as_json: bool

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Question":
        """From the options of the command line.

        Raises:
            UsageError: Options that make no sense together.
        """
        if options["placements"] and not options["diff"]:
            raise UsageError("--placement says where CI runs the tests, for --diff: add --diff")
        if options["dry"] and options["real"]:
            raise UsageError("--dry and --real exclude each other: a real sweep sees all that a dry one does")
        if options["as_plan"] and (options["as_json"] or options["diff"]):
            raise UsageError("--plan prints a plan and nothing else: leave out --json and --diff")
        if options["most"] < 0 or (options["most"] and not options["as_plan"]):
            raise UsageError("--most N says how many devices there are, for --plan")
        return cls(**{name: options[name] for name in cls.__struct_fields__})


def show(question: Question) -> int:
    """Infer and print; the exit code says whether there was anything, and with --diff whether all agree."""
    project = find_project(question.paths)
    rules = [*(Path(each) for each in question.rules), *project.rules]
    jobs = _placed(question.placements)
    found = static_needs(project, rules, question.jobs, is_kept=not question.no_cache)
    _note_unread(project, found)
    if not (question.dry or question.real):
        _note_made_elsewhere(project, found)
    else:
        found = swept(project, found, real=question.real, python=question.python, devices=question.devices)
    found = _named(project, found)
    cases = Counter(test_of(each.nodeid) for each in found)
    found = [each for each in found if _is_asked_for(each, question.least)]
    if question.diff and found:
        return _show_differences(question, differences(found, jobs))
    _show_needs(question, project, found, cases)
    return int(ExitCode.ALL_PASSED if cases else ExitCode.NOTHING_TO_RUN)


def _named(project: Project, found: Sequence[TestNeeds]) -> list[TestNeeds]:
    """Of files of which only some tests were asked for: these, and all cases of them.

    Raises:
        UsageError: A file has no test of that name.
    """
    for path, names in project.some.items():
        tests = [each.nodeid.removeprefix(f"{path}::") for each in found if each.path == path]
        for name in names:
            if tests and not any(_is_of(test, name) for test in tests):
                raise UsageError(f"{path} has no test {name}: {there_are(name, set(map(test_of, tests)))}")
    wanted = {path: [f"{path}::{name}" for name in names] for path, names in project.some.items()}
    return [each for each in found if any(_is_of(each.nodeid, name) for name in wanted.get(each.path, [each.nodeid]))]


def _is_of(test: str, name: str) -> bool:
    """Whether a test is the one that is named, a case of it, or of the class that is named."""
    return test == name or test.startswith((f"{name}[", f"{name}::"))


def _placed(placements: Sequence[str]) -> list[Job]:
    """The jobs of all placements; what of them cannot be known goes to stderr.

    Raises:
        UsageError: No job is known in any of them: nothing could be compared.
    """
    called: set[Path] = set()
    found: dict[Path, tuple[list[Job], list[str]]] = {}
    for given in map(Path, placements):
        for path in _files_of(given):
            notes: list[str] = []
            found[path] = placement_from(path, notes, called, in_folder=path != given), notes
    own = [each for path, each in found.items() if path.resolve() not in called]
    for note in (note for _, notes in own for note in notes):
        click.echo(f"note: {one_line(note)}", err=True)
    jobs = [job for each, _ in own for job in each]
    if placements and not jobs:
        named = ", ".join(placements)
        raise UsageError(f"--placement {named}: no job in it of which both tests and devices can be read")
    return jobs


def _files_of(path: Path) -> list[Path]:
    """A file, or the workflows of a folder."""
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.iterdir() if each.suffix in (".yml", ".yaml") and each.is_file())


def _note_unread(project: Project, found: Sequence[TestNeeds]) -> None:
    """Name files that are no Python: what they hold is in no answer."""
    if project.left_out:
        names, many = _first_of(project.left_out), counted_of(len(project.left_out), "file")
        click.echo(f"note: {many} left out, as pytest would: {names} (name a file to see its tests)", err=True)
    for path in _without_tests(project, found):
        text = read_source(project.root, path)
        if text is None:
            click.echo(f"note: {one_line(path)}: cannot be read, or is too large: its tests are not known", err=True)
        elif parsed(text) is None:
            told = f"not valid Python {sys.version_info[0]}.{sys.version_info[1]}, so its tests are not known"
            click.echo(f"note: {one_line(path)}: {told} (is it of a newer Python? run sooner in that one)", err=True)


def _note_made_elsewhere(project: Project, found: Sequence[TestNeeds]) -> None:
    """Name files whose tests are made by code that is not in the tree: they are in no answer."""
    without = _without_tests(project, found)
    sources = sources_of(project.root) if without else None
    elsewhere = [path for path in without if sources and takes_tests_from_outside(sources, path)]
    if elsewhere:
        many = "1 file takes its" if len(elsewhere) == 1 else f"{len(elsewhere)} files take their"
        told = "tests from code that is not here, so they are not known"
        click.echo(f"note: {many} {told}: {_first_of(elsewhere)} (--dry imports it)", err=True)


def _without_tests(project: Project, found: Sequence[TestNeeds]) -> list[str]:
    return sorted(set(project.tests) - {each.path for each in found})


def _first_of(paths: Sequence[str]) -> str:
    """Some files by their names."""
    return ", ".join(map(one_line, paths[:_MOST_NAMED])) + (", ..." if len(paths) > _MOST_NAMED else "")


def _is_asked_for(needs: TestNeeds, least: int) -> bool:
    if least == 0:
        return True
    values = [each for each in (needs.gpu_min, needs.min) if isinstance(each, int)]
    return not values or max(values) >= least


def _show_needs(question: Question, project: Project, found: Sequence[TestNeeds], cases: Counter[str]) -> None:
    if question.as_json:
        _json(found)
        return
    if not found and cases:
        click.echo(f"of {counted_of(cases.total(), 'test')} none needs {counted_of(question.least, 'device')} or more")
        return
    if not found:
        click.echo(f"no tests in {', '.join(question.paths) or 'the current folder'} (root {project.root})", err=True)
        return
    if question.as_plan:
        click.echo(plan_text(project, found, question.most))
        return
    rows = [_row(each, cases[test_of(each.nodeid)]) for each in found]
    click.echo(needs_text(rows, question.limit, why=question.why))
    click.echo(f"\n{summary_text(rows)}")


def _show_differences(question: Question, found: Sequence[Difference]) -> int:
    if question.as_json:
        _json(found)
    elif found:
        click.echo(differences_text([(each.kind, each.nodeid, each.detail) for each in found], question.limit))
        click.echo("\n" + ", ".join(f"{count} {kind}" for kind, count in counted(found).items()))
    else:
        click.echo(_AGREE if question.placements else _AGREE_SO_FAR)
    return int(
        ExitCode.POLICY if any(each.kind in ("orphan", "under-declared") for each in found) else ExitCode.ALL_PASSED
    )


def _row(needs: TestNeeds, cases: int) -> NeedRow:
    remarks = []
    if needs.adaptive:
        remarks.append("adapts")
    if needs.vacuous:
        remarks.append(f"passes vacuously at {', '.join(map(str, needs.vacuous))}")
    ranks = sorted({each for each in needs.ranks.values() if each is not None})
    if ranks:
        remarks.append(f"ranks {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]} to {ranks[-1]}")
    return NeedRow(
        nodeid=needs.nodeid,
        profile={size: verdict.value for size, verdict in needs.profile.items()},
        min="never" if needs.min is None else str(needs.min),
        gpu_min=_count(needs.gpu_min),
        full=_count(needs.full),
        max=_count(needs.max),
        confidence=needs.confidence.value,
        cases=cases,
        remarks=tuple(remarks),
        lines=tuple(f"{each.path}:{each.line}: {each.text}" for each in needs.evidence),
    )


def _count(value: int | str | None) -> str:
    return "-" if value is None else str(value)


def _json(value: object) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=1).decode())
