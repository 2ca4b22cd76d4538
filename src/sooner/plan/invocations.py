"""Recorded calls of a script become units.

`read_invocations` reads what `sooner.run.recording` wrote (JSON lines); `units_of` names the calls, finds
what identifies them and what they need. What the script's own logic made of their results:
`sooner.plan.dependence`.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

import msgspec
from msgspec import Struct

from sooner.model.errors import PlanError
from sooner.model.units import Need, Plan, Unit, UnitKey, unit_key
from sooner.plan.naming import junit_file, name_of, ranks_of, timeout_of
from sooner.plan.shell_text import LogicalLine, logical_lines, one_line
from sooner.plan.variants import HINT_DEVICES, Call, difference, identifying, identities

RECORD_VERSION = 1


class Invocation(Struct, frozen=True, kw_only=True):
    """One call of a test runner that a script made."""

    argv: tuple[str, ...]
    """The real program, by its path, and its arguments."""
    cwd: str
    env: dict[str, str] = {}
    """The full environment at the call."""
    script: str = ""
    """The script whose line made the call; empty where not known."""
    line: int = 0
    """1-based line in it, of the outermost call where functions are involved; 0 where not known."""
    text: str = ""
    """That command line as written, joined, and the lines of the functions in between; empty where not
    known."""
    places: tuple[tuple[int, str], ...] = ()
    """Every line of the script that led to the call, outermost first, each with the function that it
    called."""
    parent: tuple[str, ...] = ()
    """Command of the parent process where known, for instance `timeout 300 pytest ...`."""


class _Record(Struct, frozen=True, kw_only=True):
    """One line of a record."""

    version: int
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    parent: tuple[str, ...] = ()
    frames: tuple[tuple[str, int, str], ...] = ()
    """(file, line, function that the line is in), innermost first."""
    command: str = ""
    """The innermost command, as the shell spells it."""


def read_invocations(record: bytes, *, script: str, script_text: str) -> tuple[Invocation, ...]:
    """The calls of a record, in order.

    Args:
        record: JSON lines as the shims wrote them.
        script: Path of the recorded script as its shell was given it.
        script_text: Its content.

    Raises:
        PlanError: The record is damaged, or of another version.
    """
    lines = {number: line for line in logical_lines(script_text) for number in range(line.first, line.last + 1)}
    return tuple(_invocation(_record(data, script), script, lines) for data in record.splitlines() if data.strip())


def units_of(invocations: Sequence[Invocation], *, base_env: Mapping[str, str], source: str) -> Plan:
    """Units that run what was recorded, as it would have run, starting from the environment `base_env`."""
    calls = [_call(invocation, base_env) for invocation in invocations]
    named = identities(calls)
    units = [
        _unit(invocation, name, variant, base_env)
        for invocation, (name, variant) in zip(invocations, named, strict=True)
    ]
    notes = [
        note for invocation, unit in zip(invocations, units, strict=True) if (note := _note(invocation, unit, source))
    ]
    return Plan(source=source, units=tuple(units), notes=tuple(notes))


def keys_of(invocations: Sequence[Invocation], *, base_env: Mapping[str, str]) -> list[UnitKey]:
    """The identity that `units_of` gives to each call."""
    return [unit_key(*pair) for pair in identities([_call(invocation, base_env) for invocation in invocations])]


def devices_hint(env: Mapping[str, str]) -> int | None:
    """The need that `SOONER_NEED_DEVICES` states; None where it is not set or not a number from 0 on."""
    hint = env.get(HINT_DEVICES, "").strip()
    return int(hint) if hint.isascii() and hint.isdigit() else None


def devices_of(argv: Sequence[str], env: Mapping[str, str]) -> int:
    """How many devices a call needs: its hint, else one for each rank of torchrun, else 1."""
    hint = devices_hint(env)
    if hint is not None:
        return hint
    ranks = ranks_of(argv)
    return max(1, int(ranks)) if ranks.isascii() and ranks.isdigit() else 1


def devices_note(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """What to tell about the need of a call that takes what it finds; empty for most."""
    ranks = ranks_of(argv)
    if not ranks or ranks.isdigit() or devices_hint(env) is not None:
        return ""
    what = f"starts one rank for each device it is given (--nproc_per_node={ranks})"
    return f"{what}: it gets 1, set {HINT_DEVICES}=K for K"


def absolute(path: str, cwd: str) -> str:
    """A path as seen from a directory; empty stays empty."""
    return str(PurePosixPath(cwd, path)) if path else ""


def _record(data: bytes, script: str) -> _Record:
    """One line of a record, read by the standard library: it alone keeps bytes that are not UTF-8."""
    try:
        record = msgspec.convert(json.loads(data), _Record)
    except (ValueError, msgspec.MsgspecError) as error:
        raise PlanError(f"the record of its calls is damaged: {error}", source=script) from None
    if record.version != RECORD_VERSION:
        raise PlanError(f"the record of its calls has version {record.version}", source=script)
    return record


def _invocation(record: _Record, script: str, lines: Mapping[int, LogicalLine]) -> Invocation:
    """The place of a call is the outermost line of the script; of another script's call, a line of that."""
    called = ("", *(function for _, _, function in record.frames))
    frames = [(file, line, name) for (file, line, _), name in zip(record.frames, called, strict=False)]
    texts = dict.fromkeys(lines[line].text for file, line, _ in reversed(frames) if file == script and line in lines)
    if not (frames and frames[0][0] == script and frames[0][1] in lines) and record.command:
        texts[record.command] = None
    places = tuple((lines[n].first if n in lines else n, name) for file, n, name in reversed(frames) if file == script)
    outermost = (script, *places[0]) if places else (frames or [("", 0, "")])[-1]
    return Invocation(
        argv=record.argv,
        cwd=record.cwd,
        env=record.env,
        script=outermost[0],
        line=outermost[1],
        text="\n".join(texts),
        places=places,
        parent=record.parent,
    )


def _call(invocation: Invocation, base_env: Mapping[str, str]) -> Call:
    changed, _ = difference(invocation.env, base_env)
    assigned = one_line(invocation.text).assigned() if invocation.text else None
    return Call(name=name_of(invocation.argv), changed=identifying(changed), assigned=assigned)


def _unit(invocation: Invocation, name: str, variant: str, base_env: Mapping[str, str]) -> Unit:
    changed, removed = difference(invocation.env, base_env)
    return Unit(
        literal=True,
        name=name,
        variant=variant,
        command=invocation.argv,
        env=changed,
        unset=removed,
        cwd=invocation.cwd,
        need=Need(devices=devices_of(invocation.argv, invocation.env)),
        timeout_s=timeout_of(invocation.parent),
        junit=absolute(junit_file(invocation.argv), invocation.cwd),
        line=invocation.line,
    )


def _note(invocation: Invocation, unit: Unit, source: str) -> str:
    note = devices_note(invocation.argv, invocation.env)
    place = f"{invocation.script or source}:{invocation.line}" if invocation.line else source
    return f"{place}: {unit.key} {note}" if note else ""
