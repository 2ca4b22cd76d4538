"""`[tool.sooner.jobs]` of a project: what it lays down about its jobs. Pure: the command line reads the file."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from sooner.analysis.selection.cover import Constraints, Floor
from sooner.analysis.selection.facts import Numbers, Record
from sooner.analysis.selection.load import FOLDED_2019, folded
from sooner.analysis.selection.policy import Terms
from sooner.analysis.selection.request import DOCUMENTATION, members
from sooner.model.errors import SettingsError


class JobSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table, with its defaults. Names of jobs are globs."""

    recall: float | None = None
    budget: float | None = None
    sample: float = 0.03
    """Share of the changes that run everything, so that jobs that were left out keep being measured."""
    pinned: list[str] = []
    """Jobs that always run."""
    areas: dict[str, list[str]] = {}
    """Path glob -> jobs that run when a changed file fits it."""
    facets: dict[str, str] = {}
    """Name of a kind of jobs -> glob: `cuda = "*cuda*"`."""
    floors: dict[str, int] = {}
    """Name of a facet -> how many of its jobs must run at least."""
    needs: dict[str, list[str]] = {}
    """Job -> jobs that must run before it."""
    price: dict[str, float] = {}
    """Glob of runner labels, else of jobs -> price of a minute (1 for all others)."""
    queue_weight: float = 0.0
    """What a minute in the queue costs, in minutes of running."""
    fold: tuple[str, ...] = FOLDED_2019
    """Ends of names that `correlate` strips."""
    documentation: tuple[str, ...] = DOCUMENTATION


def job_settings(table: Mapping[str, Any], source: str) -> JobSettings:
    """The settings of a project.

    Raises:
        SettingsError: An unknown key, a wrong type, a floor without its facet, a share outside of 0 to 1.
    """
    known = JobSettings.__struct_fields__
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, n=1) or sorted(known)
            raise SettingsError(f"{source}: tool.sooner.jobs.{key} is unknown: did you mean {near[0]!r}?")
    try:
        settings = msgspec.convert(table, JobSettings)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{source}: tool.sooner.jobs: {error}") from error
    _check_numbers(settings, source)
    check_fold(settings.fold, f"{source}: tool.sooner.jobs.fold")
    return settings


def _check_numbers(settings: JobSettings, source: str) -> None:
    for name, least in settings.floors.items():
        if least < 0:
            raise SettingsError(f"{source}: tool.sooner.jobs.floors.{name}: {least} is no number of jobs")
        if name not in settings.facets:
            raise SettingsError(
                f"{source}: tool.sooner.jobs.floors.{name}: there is no such facet (tool.sooner.jobs.facets)"
            )
    for key in ("recall", "budget", "sample"):
        share = getattr(settings, key)
        if share is not None and not (0.0 < share <= 1.0 or (key == "sample" and share == 0.0)):
            raise SettingsError(f"{source}: tool.sooner.jobs.{key}: {share:g} is no share between 0 and 1")
    for key, price in {"queue_weight": settings.queue_weight, **_quoted("price", settings.price)}.items():
        if not 0.0 <= price < np.inf:
            raise SettingsError(f"{source}: tool.sooner.jobs.{key}: {price:g} is no price")


def _quoted(table: str, values: Mapping[str, float]) -> dict[str, float]:
    return {f'{table}."{key}"': value for key, value in values.items()}


def check_fold(suffixes: Sequence[str], said: str) -> None:
    """Whether all regular expressions among them are some.

    Raises:
        SettingsError: One is none.
    """
    for suffix in suffixes:
        try:
            folded("", (suffix,))
        except re.error as error:
            raise SettingsError(f"{said} {suffix}: it is no regular expression: {error}") from error


def prices(facts: Record, settings: JobSettings) -> Numbers:
    """Price of a minute of each job: of its runner, or its own."""
    found = np.ones(len(facts.jobs))
    for glob, price in reversed(settings.price.items()):  # the first that fits counts
        found[[*members(facts.runner, glob), *members(facts.jobs, glob)]] = price
    return np.maximum(found, 1e-6)


def terms(facts: Record, settings: JobSettings) -> Terms:
    """What the rule must respect."""
    pinned = dict.fromkeys(sorted(i for glob in settings.pinned for i in members(facts.jobs, glob)), "pinned")
    rules = constraints(facts.jobs, settings, frozenset())
    return Terms(price=prices(facts, settings), queue_weight=settings.queue_weight, pinned=pinned, rules=rules)


def idle(jobs: Sequence[str], settings: JobSettings, runners: Sequence[str] = ()) -> tuple[str, ...]:
    """What the settings lay down about jobs that nobody knows: it changes nothing, and one may rely on it."""
    said = [f"pinned: {glob!r} fits no job" for glob in settings.pinned if not members(jobs, glob)]
    for name, least in settings.floors.items():
        found = len(members(jobs, settings.facets[name]))
        if found < least:
            said.append(f"floors.{name}: {least} are wanted, {settings.facets[name]!r} fits {found or 'no job'}")
    for glob, globs in settings.needs.items():
        if members(jobs, glob):
            said += [f"needs.{glob}: {one!r} fits no job" for one in globs if not members(jobs, one)]
    for area, globs in settings.areas.items():
        said += [f"areas.{area}: {one!r} fits no job" for one in globs if not members(jobs, one)]
    said += [
        f"price: {glob!r} fits no job and no runner"
        for glob in settings.price
        if not members(jobs, glob) and not members(runners, glob)
    ]
    return tuple(said)


def constraints(jobs: Sequence[str], settings: JobSettings, fixed: frozenset[int]) -> Constraints:
    """Floors and dependencies, of jobs that exist."""
    floors = [
        Floor(name=name, jobs=found, least=least)
        for name, least in settings.floors.items()
        if (found := members(jobs, settings.facets[name]))
    ]
    needs: dict[int, tuple[int, ...]] = {}
    for glob, globs in settings.needs.items():
        for job in members(jobs, glob):
            wanted = [need for one in globs for need in _needed(jobs, job, one) if need != job]
            needs[job] = tuple(dict.fromkeys((*needs.get(job, ()), *wanted)))
    return Constraints(fixed=fixed, floors=tuple(floors), needs=needs)


def _needed(jobs: Sequence[str], job: int, name: str) -> Sequence[int]:
    """What a job needs by a name or a glob; of a name that several workflows have, the one of its own workflow."""
    found = members(jobs, name)
    beside = [one for one in found if jobs[one] == f"{jobs[job].partition(' / ')[0]} / {name}"]
    return beside or found
