"""Tests that are no functions: entries of a list that a framework's own runner goes through (torchtitan's).

A rule `[[listed]]` names the call that makes an entry; its `value` is the entry's name, which becomes the end of the
node id. What the rule says else (`skip`, `needs`, `ranks`) holds for the entry. The function around entries is
evaluated: it may make several with one call (in a loop, a comprehension), or return them changed
(`dataclasses.replace`), where the class of the entries is in the tree.
"""

import ast
from collections.abc import Iterator
from typing import Any

from msgspec import structs

from sooner.plan.needs.evaluator.comparisons import HOST_ERRORS
from sooner.plan.needs.evaluator.machine import Machine
from sooner.plan.needs.evaluator.state import TEST_FUEL
from sooner.plan.needs.evaluator.trace import Trace
from sooner.plan.needs.evaluator.values import Func, Inst, OutOfFuel, Raised, Skip, hard
from sooner.plan.needs.facts import SIZES, AtSize, Confidence, Evidence, TestNeeds, Verdict, described
from sooner.plan.needs.rules import Rule, Rules

Given = tuple[list[Any], dict[str, Any]]


def entries(text: str, tree: ast.Module, rules: Rules) -> list[tuple[ast.Call, Rule]]:
    """The calls of a file that make entries of such lists, in order."""
    if not any(name in text for name in rules.listed):
        return []
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    found = [(node, rules.listed.get(_last(node.func))) for node in calls]
    known = [(node, rule) for node, rule in found if rule is not None]
    return sorted(known, key=lambda each: (each[0].lineno, each[0].col_offset))


def needs_of_entries(
    path: str, found: list[tuple[ast.Call, Rule]], machines: dict[int, Machine]
) -> Iterator[TestNeeds]:
    """The needs of entries; one whose name is not known is left out."""
    taken: set[str] = set()
    given = {size: _given(path, found, machine) for size, machine in machines.items()}
    for index, (node, rule) in enumerate(found):
        for turn in range(max(1, len(given[SIZES[-1]].get(index, ())))):
            name, at = "", {}
            for size in SIZES:
                turns = given[size].get(index, [])
                said, at[size] = _at(machines[size], path, node, rule, turns[turn] if turn < len(turns) else None)
                name = said or name
            if name and name not in taken:
                taken.add(name)
                text = machines[SIZES[-1]].sources.line(path, node.lineno)[:160]
                yield _needs(Evidence(path=path, line=node.lineno, text=text), name, rule, at)


def _last(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _given(path: str, found: list[tuple[ast.Call, Rule]], machine: Machine) -> dict[int, list[Given]]:
    """What entries are given by number, each time that the function around them makes one.

    Where it returns as many records, these say it: a function may change its entries (`dataclasses.replace`).
    """
    module = machine.load(path)
    result: dict[int, list[Given]] = {}
    for function in [each for each in module.env.names.values() if isinstance(each, Func)]:
        inside = {id(each) for each in ast.walk(function.node)}
        numbers = [number for number, (node, _) in enumerate(found) if id(node) in inside]
        if not numbers or not isinstance(function.node, ast.FunctionDef):
            continue
        machine.fuel, machine.rank, machine.trace = TEST_FUEL, None, Trace()
        machine.current = (path, function.node.lineno)
        machine.watched = {id(found[number][0]): [] for number in numbers}
        try:
            made = [hard(each) for each in machine.items_of(machine.call(function, [], {})) or []]
        except (Skip, Raised, OutOfFuel, *HOST_ERRORS):
            continue
        finally:
            seen, machine.watched = machine.watched, {}
        turns = {number: seen[id(found[number][0])] for number in numbers}
        if len(made) == sum(map(len, turns.values())) and all(isinstance(each, Inst) for each in made):
            records = iter(made)
            turns = {number: [([], next(records).attrs) for _ in turns[number]] for number in numbers}
        result |= {number: each for number, each in turns.items() if each}
    return result


def _at(machine: Machine, path: str, node: ast.Call, rule: Rule, given: Given | None) -> tuple[str, AtSize]:
    """The name of an entry, and what it does with so many devices."""
    module = machine.load(path)
    trace = machine.trace = Trace()
    machine.fuel, machine.rank, machine.current = TEST_FUEL, None, (path, node.lineno)
    verdict, reason, name = Verdict.RUN, "", ""
    try:
        args, kwargs = machine.arguments(node, module.env) if given is None else given
        known: Any = hard(machine.natives.value_of(rule, "value", args, kwargs))
        name = known if isinstance(known, str) else ""
        machine.natives.obey(rule, args, kwargs)
    except Skip as stop:
        verdict, reason = Verdict.SKIP, stop.reason
    except Raised as stop:
        verdict, reason = Verdict.FAIL, str(stop)
    except (OutOfFuel, *HOST_ERRORS):
        verdict, reason = Verdict.UNKNOWN, "not evaluated"
    if trace.unsure and verdict is Verdict.RUN:
        verdict, reason = Verdict.UNKNOWN, trace.unsure[0]
    used = trace.all_used
    return name, AtSize(verdict=verdict, ranks=trace.ranks, devices=used, reach=trace.reach, reason=reason)


def _needs(place: Evidence, name: str, rule: Rule, at: dict[int, AtSize]) -> TestNeeds:
    unknown = any(each.verdict is Verdict.UNKNOWN for each in at.values())
    confidence = Confidence.LOW if unknown else Confidence.HIGH
    at = {size: structs.replace(each, reason=each.reason or rule.why) for size, each in at.items()}
    return described(f"{place.path}::{name}", place.path, at, confidence=confidence, evidence=[place])
