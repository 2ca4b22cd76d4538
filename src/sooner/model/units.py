"""Units and needs: what is started on its own, and what it must hold while it runs."""

import shlex
from collections.abc import Mapping
from typing import NewType

from msgspec import Struct

from sooner.model.text import printable

UnitKey = NewType("UnitKey", str)
"""Identity of a unit: its name, or `name|variant` where it declares an environment."""


class Need(Struct, frozen=True, kw_only=True):
    """What one unit must hold while it runs."""

    devices: int = 1
    memory_mib: int = 0
    """Memory on each device, in MiB; 0 is "all of it, or not known"."""
    shared: bool = False
    """May run beside other shared units on one device while their `memory_mib` fit."""
    ports: int = 1


class Unit(Struct, frozen=True, kw_only=True):
    """The smallest thing that is started on its own: a command with the environment that it declares."""

    name: str
    variant: str = ""
    command: tuple[str, ...]
    """argv; may hold the placeholders `{junit}`, `{log_dir}`, `{devices}` and `{port}`."""
    env: dict[str, str] = {}
    unset: tuple[str, ...] = ()
    """Variables of the runner's environment that the unit must not see."""
    cwd: str = ""
    """Directory to run in; empty is the runner's."""
    need: Need = Need()
    timeout_s: float = 0.0
    """Seconds from start to the kill; 0 is no limit."""
    after: tuple[UnitKey, ...] = ()
    """Units that must have passed before this one starts."""
    priority: int = 0
    literal: bool = False
    """Run exactly as given: what looks like a placeholder is none (recorded and submitted commands)."""
    junit: str = ""
    """Path of a JUnit file that the command writes itself; empty where it writes none."""
    line: int = 0
    """Line of the plan that declared it, 0 where unknown."""

    @property
    def key(self) -> UnitKey:
        """Identity of the unit in results, durations and history."""
        return unit_key(self.name, self.variant)


class Plan(Struct, frozen=True, kw_only=True):
    """Units in the order in which they were declared; keys are unique."""

    source: str
    units: tuple[Unit, ...]
    notes: tuple[str, ...] = ()
    """Things about the plan that the user must know, one sentence each."""


def unit_key(name: str, variant: str) -> UnitKey:
    """Spell the identity of a unit: `name`, or `name|variant`."""
    return UnitKey(f"{name}|{variant}" if variant else name)


def variant_of(env: Mapping[str, str]) -> str:
    r"""Spell a declared environment as a variant: `A=1 B='x y'`, sorted by name; empty for none.

    Bytes that are not UTF-8 are spelled `\xff`: a variant is written into records.
    """
    return printable(" ".join(f"{name}={shlex.quote(value)}" for name, value in sorted(env.items())))
