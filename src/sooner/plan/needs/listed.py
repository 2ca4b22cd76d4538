"""Tests that are no functions: entries of a list that a framework's own runner goes through (torchtitan's).

A rule `[[listed]]` names the call that makes an entry; its `value` is the entry's name, which becomes the end of the
node id. What the rule says else (`skip`, `needs`, `ranks`) holds for the entry. A function that returns its entries
changed (`dataclasses.replace`) is evaluated, where the class of the entries is in the tree.
"""

import ast
from collections.abc import Iterator
from typing import Any

from msgspec import structs

from sooner.plan.needs.comparisons import HOST_ERRORS
from sooner.plan.needs.facts import SIZES, AtSize, Confidence, Evidence, TestNeeds, Verdict, described
from sooner.plan.needs.machine import Machine
from sooner.plan.needs.rules import Rule, Rules
from sooner.plan.needs.state import TEST_FUEL
from sooner.plan.needs.trace import Trace
from sooner.plan.needs.values import Func, Inst, OutOfFuel, Raised, Skip, hard


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
    given = _returned(path, found, machines[SIZES[-1]])
    for index, (node, rule) in enumerate(found):
        name, at = "", {}
        for size in SIZES:
            said, at[size] = _at(machines[size], path, node, rule, given.get(index))
            name = said or name
        if name and name not in taken:
            taken.add(name)
            text = machines[SIZES[-1]].sources.line(path, node.lineno)[:160]
            yield _needs(Evidence(path=path, line=node.lineno, text=text), name, rule, at)


def _last(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _returned(path: str, found: list[tuple[ast.Call, Rule]], machine: Machine) -> dict[int, dict[str, Any]]:
    """For entries by number: their fields as the function around them returns them, if it returns as many records."""
    module = machine.load(path)
    result: dict[int, dict[str, Any]] = {}
    for function in [each for each in module.env.names.values() if isinstance(each, Func)]:
        inside = {id(each) for each in ast.walk(function.node)}
        numbers = [number for number, (node, _) in enumerate(found) if id(node) in inside]
        if not numbers or not isinstance(function.node, ast.FunctionDef):
            continue
        machine.fuel, machine.rank, machine.trace = TEST_FUEL, None, Trace()
        machine.current = (path, function.node.lineno)
        try:
            made = machine.items_of(machine.call(function, [], {})) or []
        except (Skip, Raised, OutOfFuel, *HOST_ERRORS):
            continue
        records = [hard(each) for each in made]
        if len(records) == len(numbers) and all(isinstance(each, Inst) for each in records):
            result |= {number: each.attrs for number, each in zip(numbers, records, strict=True)}
    return result


def _at(machine: Machine, path: str, node: ast.Call, rule: Rule, fields: dict[str, Any] | None) -> tuple[str, AtSize]:
    """The name of an entry, and what it does with so many devices."""
    module = machine.load(path)
    trace = machine.trace = Trace()
    machine.fuel, machine.rank, machine.current = TEST_FUEL, None, (path, node.lineno)
    verdict, reason, name = Verdict.RUN, "", ""
    try:
        args, kwargs = machine.arguments(node, module.env) if fields is None else ([], fields)
        given: Any = hard(machine.natives.value_of(rule, "value", args, kwargs))
        name = given if isinstance(given, str) else ""
        machine.natives.obey(rule, args, kwargs)
    except Skip as stop:
        verdict, reason = Verdict.SKIP, stop.reason
    except Raised as stop:
        verdict, reason = Verdict.FAIL, str(stop)
    except (OutOfFuel, *HOST_ERRORS):
        verdict, reason = Verdict.UNKNOWN, "not evaluated"
    if trace.unsure and verdict is Verdict.RUN:
        verdict, reason = Verdict.UNKNOWN, trace.unsure[0]
    used = max(len(trace.touched), trace.used)
    return name, AtSize(verdict=verdict, ranks=trace.ranks, devices=used, reach=trace.reach, reason=reason)


def _needs(place: Evidence, name: str, rule: Rule, at: dict[int, AtSize]) -> TestNeeds:
    unknown = any(each.verdict is Verdict.UNKNOWN for each in at.values())
    confidence = Confidence.LOW if unknown else Confidence.HIGH
    at = {size: structs.replace(each, reason=each.reason or rule.why) for size, each in at.items()}
    return described(f"{place.path}::{name}", place.path, at, confidence=confidence, evidence=[place])
