"""What `sooner coverage` does: reads history, needs and policy, judges every test, prints."""

import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import Struct

from sooner.analysis.sizing.ledger import MET, Entry, Execution, Required, Rule, Standing, ledger, span, with_skips
from sooner.analysis.sizing.needs import TestNeed
from sooner.cli import sizing_files as files
from sooner.cli.histories import history_at
from sooner.cli.settings import project_table
from sooner.cli.spans import epoch_of
from sooner.history import History, Where, check_named, check_one_repository
from sooner.model.errors import SettingsError, UsageError
from sooner.model.outcomes import ExitCode
from sooner.model.text import there_are
from sooner.report.wording import counted

_WITHIN = "24h"
_EXEMPT = "exempt by the policy"
_YEARS_S = 100 * 365 * 86_400.0
_KEYS = {"within", "at", "runners", "rule", "exempt"}
_RULE_KEYS = {"match", "within", "at", "exempt"}


class Policy(Struct, frozen=True, kw_only=True):
    """What is asked for."""

    rules: tuple[Rule, ...]
    sizes: dict[str, int]


class Question(Struct, frozen=True, kw_only=True):
    """What was asked."""

    root: str
    needs: Path | None
    policy: Policy
    where: Where
    now: float
    is_today: bool
    """Whether nobody asked for another time."""
    limit: int
    show_all: bool
    as_json: bool

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Question":
        """From the options of the command line.

        Raises:
            UsageError: A value that is not understood, or a history that is not there.
            SettingsError: A policy that is not understood.
        """
        root = history_at(options["root"])
        _check_span(options["within"])
        source, given = _policy(options["policy"])
        sizes = dict(given.get("runners", {})) | dict(_runner(text) for text in options["runners"])
        now = options["now"]
        return cls(
            root=root,
            needs=None if options["needs"] is None else Path(options["needs"]),
            policy=Policy(rules=_rules(source, given, options["within"], options["at"]), sizes=sizes),
            where=Where(repository=options["repository"], branch=options["branch"]),
            now=time.time() if now is None else epoch_of(now, "--now"),
            is_today=now is None,
            **{name: options[name] for name in ("limit", "show_all", "as_json")},
        )


def _check_span(within: str | None) -> None:
    try:
        span(within or _WITHIN)
    except ValueError:
        raise UsageError(f"--within {within!r} is no span such as 24h or 7d") from None


def _runner(text: str) -> tuple[str, int]:
    label, _, count = text.rpartition("=")
    if not label or not count.isdecimal():
        raise UsageError(f"--runner {text!r}: write LABEL=N, such as linux.gpu.4=4")
    return label, int(count)


def _policy(path: str | None) -> tuple[str, dict[str, Any]]:
    """The policy's table and where it stands: the file, else pyproject.toml here or above, else nothing."""
    if path is not None:
        found = files.document(Path(path)) if path.endswith(".toml") else _toml(Path(path))
        found = found.get("tool", {}).get("sooner", found) if isinstance(found.get("tool"), dict) else found
        return path, _checked(path, found.get("coverage", found))
    project, tool = project_table(Path.cwd())
    if project is None:
        return "default", {}
    return f"{project}: tool.sooner.coverage", _checked(str(project), tool.get("coverage", {}))


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(files.data_of(path).decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path} is no TOML: {error}") from error


def _checked(source: str, table: Any) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise SettingsError(f"{source}: the policy must be a table")
    for key in table:
        if key not in _KEYS:
            raise SettingsError(f"{source}: {key} is unknown: there are {', '.join(sorted(_KEYS))}")
    runners = table.get("runners", {})
    if not isinstance(runners, dict) or not all(type(size) is int and size >= 0 for size in runners.values()):
        raise SettingsError(f'{source}: runners must be a table of numbers, such as "linux.gpu.4" = 4')
    return table


def _rules(source: str, given: Mapping[str, Any], within: str | None, at: str | None) -> tuple[Rule, ...]:
    """Exemptions first, then the policy's rules, then what holds for all others; the command line wins."""
    usual = {"within": within or given.get("within", _WITHIN), "at": at or given.get("at", "full")}
    exempt = given.get("exempt", [])
    listed = given.get("rule", [])
    if not isinstance(exempt, list) or not isinstance(listed, list):
        raise SettingsError(f"{source}: exempt must be a list of patterns, rule a list of tables")
    rules = [_rule(source, usual | {"match": pattern, "exempt": True}) for pattern in exempt]
    rules += [_rule(source, {**usual, **rule} if isinstance(rule, dict) else rule) for rule in listed]
    return (*rules, _rule(source, usual))


def _rule(source: str, table: Any) -> Rule:
    if not isinstance(table, dict) or (unknown := sorted(set(table) - _RULE_KEYS)):
        what = unknown[0] if isinstance(table, dict) else repr(table)
        raise SettingsError(f"{source}: rule: {what} is unknown: there are {', '.join(sorted(_RULE_KEYS))}")
    try:
        within_s = span(str(table["within"]))
    except ValueError:
        raise SettingsError(f"{source}: within {table['within']!r} is no span such as 24h or 7d") from None
    if table["at"] not in tuple(Required):
        raise SettingsError(f"{source}: at {table['at']!r}: there are {', '.join(Required)}")
    if not isinstance(match := table.get("match", "*"), str):
        raise SettingsError(f"{source}: match {match!r} is no pattern: a rule has one, as text")
    exempt = table.get("exempt", False)
    if not isinstance(exempt, str | bool):
        raise SettingsError(f"{source}: exempt {exempt!r} is no reason, as text, nor true or false")
    exempt = exempt if isinstance(exempt, str) else _EXEMPT if exempt else ""
    return Rule(match=match, within_s=within_s, at=Required(table["at"]), exempt=exempt)


def needs_of(path: Path) -> dict[str, TestNeed]:
    """Needs by node id.

    Raises:
        SizingFileError: The file is not what `sooner needs --json` prints.
    """
    found = files.document(path)
    if isinstance(found, dict):
        found = next((value for value in found.values() if isinstance(value, list)), found)
    try:
        rows = msgspec.convert(found, list[TestNeed])
    except msgspec.ValidationError as error:
        raise files.SizingFileError(path, f"is not what `sooner needs --json` prints: {error}") from error
    return {row.nodeid: row for row in rows}


def show(question: Question) -> int:
    """Compute and print; the exit code says whether the policy is met."""
    from sooner.analysis.sizing.load import executions, runner_labels, skips
    from sooner.report.coverage import ledger_text

    needs = needs_of(question.needs) if question.needs else {}
    with History(question.root) as history:
        check_one_repository(history, Where(repository=question.where.repository), "tests")
        check_named(history, question.where)
        ran = executions(history, question.policy.sizes, question.now, question.where)
        seen = set(history.cases(question.where.repository))
        tests = set(needs) or seen
        entries = ledger(tests, needs, ran, question.policy.rules, question.now)
        if len(real := [one for one in ran if not one.is_pretended]) < len(ran):
            _note_pretended(entries, ledger(tests, needs, real, question.policy.rules, question.now))
        if any(entry.standing not in MET for entry in entries):
            skipped = skips(history, question.policy.sizes, question.now, question.where)
            entries = with_skips(entries, skipped, question.now)
        past = [entry for entry in entries if entry.standing not in MET]
        if any(entry.standing is Standing.NOT_PROVEN for entry in past):
            _note_runners(question.policy.sizes, runner_labels(history, question.where))
        if past and question.is_today:
            _note_later(past, executions(history, {}, question.now + _YEARS_S, question.where), question.now)
    if question.where.branch and entries and not ran:
        branch = f"{question.where.branch!r}"
        click.echo(f"note: no run of a test is known to be of the branch {branch} (ingest --set branch=...)", err=True)
    if needs and (extra := len(seen - set(needs))):
        click.echo(
            f"note: the history has {counted(extra, 'test')} that {question.needs} does not have: left out", err=True
        )
    if question.as_json:
        counts = {standing.value: sum(e.standing is standing for e in entries) for standing in Standing}
        answer = {"now": question.now, "tests": len(entries), "counts": counts, "met": not past, "entries": entries}
        answer["past"] = [entry.test for entry in past]
        click.echo(msgspec.json.format(msgspec.json.encode(answer), indent=1).decode())
    else:
        click.echo(ledger_text(_listed(entries, show_all=question.show_all), entries, question.limit))
    if not entries:
        return int(ExitCode.NOTHING_TO_RUN)
    return int(ExitCode.POLICY if past else ExitCode.ALL_PASSED)


def _note_runners(sizes: Mapping[str, int], labels: set[str]) -> None:
    """A size of a runner that nothing ran on proves nothing; it may be a mistyped one."""
    from sooner.analysis.sizing.load import fits

    for name in sizes:
        if not fits(name, labels):
            what = there_are(name, labels) if labels else "no job of the history tells its runner"
            click.echo(f"note: no job ran on a runner {name!r}: {what}", err=True)


def _note_pretended(entries: Sequence[Entry], without: Sequence[Entry]) -> None:
    """Virtual devices stand in for real ones; whoever reads the ledger should know where only they did."""
    pairs = zip(entries, without, strict=True)
    if count := sum(bool(one.needs) and one.standing in MET and real.standing not in MET for one, real in pairs):
        click.echo(
            f"note: {counted(count, 'test')} ran as needed on virtual devices or slots of the CPU only", err=True
        )


def _note_later(past: Sequence[Entry], ran: Sequence[Execution], now: float) -> None:
    """Executions of the future do not count; whoever looks for one that is missing should know."""
    names = {entry.test for entry in past}
    if later := {one.test for one in ran if one.at > now and one.test in names}:
        click.echo(
            f"note: {counted(len(later), 'test')} past the policy ran at a time that is still to come, which does not "
            "count: a clock is wrong, or times without a zone are of another one (`sooner ingest --timezone`)",
            err=True,
        )


def _listed(entries: list[Entry], *, show_all: bool) -> list[Entry]:
    shown = MET - {Standing.NEVER_RUNS}  # a test that can never run is no breach, and no cover either: it is told
    return [entry for entry in entries if show_all or entry.standing not in shown]
