"""Runs simulated trunks on all cores and tells what came of them."""

import functools
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import click
import msgspec
from msgspec import Struct

from sooner.analysis.trunk.decide import decide
from sooner.analysis.trunk.facts import Policy
from sooner.analysis.trunk.scores import Score, reliability, score
from sooner.analysis.trunk.simulate import SCENARIOS, Ending, Scenario, simulate
from sooner.model.errors import UsageError
from sooner.run.in_processes import in_processes


class Order(Struct, frozen=True, kw_only=True):
    """What to simulate."""

    trunks: int
    seed: int
    policies: tuple[Policy, ...]
    names: tuple[str, ...]
    jobs: int
    lists: bool
    as_json: bool

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """From the command line."""
        policies = tuple(map(Policy, options["policies"])) or (Policy.RULES, Policy.BAYES)
        return cls(**{**options, "policies": policies, "names": tuple(options["names"])})

    @property
    def scenarios(self) -> Sequence[Scenario]:
        """Those that were named: the one that is called so, else those whose name holds it.

        Raises:
            UsageError: One of the names is in none.
        """
        if not self.names:
            return SCENARIOS
        wanted: set[str] = set()
        for name in self.names:
            found = {one.name for one in SCENARIOS if name in one.name}
            if not found:
                known = ", ".join(repr(one.name) for one in SCENARIOS)
                raise UsageError(f"no scenario's name holds {name!r}: there are {known}")
            wanted |= found & {name} or found
        return [one for one in SCENARIOS if one.name in wanted]


def show(order: Order) -> int:
    """Print the table of policies."""
    scenarios = order.scenarios
    if order.lists:
        click.echo("\n".join(one.name for one in scenarios))
        return 0
    if order.trunks < 1:
        raise UsageError(f"--trunks {order.trunks}: at least one")
    rows = []
    width = max(len(one.name) for one in scenarios)
    if not order.as_json:
        click.echo(_line(" " * width, "policy", ["right %", "wrong %", "none %", "hours", "reruns"]))
    for row in _rows(order, scenarios):
        rows.append(row)
        if not order.as_json:
            click.echo(_text_of(width, *row))
    if order.as_json:
        sys.stdout.buffer.write(msgspec.json.encode([_json_of(*row) for row in rows]) + b"\n")
    return 0


_Row = tuple[Scenario, Policy, Score, list[Ending]]


def _rows(order: Order, scenarios: Sequence[Scenario]) -> Iterator[_Row]:
    for scenario, policy in itertools.product(scenarios, order.policies):
        seeds = range(order.seed, order.seed + order.trunks)
        endings = in_processes(functools.partial(_one, scenario, policy), seeds, most=order.jobs)
        yield scenario, policy, score(endings), endings


def _one(scenario: Scenario, policy: Policy, seed: int) -> Ending:
    return simulate(scenario, lambda question: decide(question, policy), seed)


def _text_of(width: int, scenario: Scenario, policy: Policy, found: Score, _: Sequence[Ending]) -> str:
    hours = "" if found.median_hours is None else f"{found.median_hours:.1f}"
    shares = [f"{100 * share:.1f}" for share in (found.right, found.wrong, found.none)]
    return _line(f"{scenario.name:{width}}", policy, [*shares, hours, f"{found.mean_reruns:.1f}"])


def _line(name: str, policy: str, cells: Sequence[str]) -> str:
    return f"{name} {policy:6} " + " ".join(f"{cell:>8}" for cell in cells)


def _json_of(scenario: Scenario, policy: Policy, found: Score, endings: Sequence[Ending]) -> dict[str, object]:
    table = reliability([stated for ending in endings for stated in ending.stated])
    return {"scenario": scenario, "policy": policy, "score": found, "reliability": table}
