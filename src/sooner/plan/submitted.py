"""Submitted commands become units, named and told apart exactly as recorded calls are."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from sooner.model.text import printable
from sooner.model.units import Need, Plan, Unit
from sooner.plan.invocations import absolute, devices_note, devices_of
from sooner.plan.naming import junit_file, launched, name_of
from sooner.plan.variants import Call, difference, identifying, identities


class Submitted(Protocol):
    """What a submission has to say; `sooner.run.submissions.Submission` does."""

    @property
    def command(self) -> tuple[str, ...]:
        """The command."""

    @property
    def cwd(self) -> str:
        """Directory at the submission."""

    @property
    def env(self) -> dict[str, str]:
        """Full environment at the submission."""

    @property
    def name(self) -> str:
        """The name it was given; empty for none."""

    @property
    def devices(self) -> int | None:
        """How many devices it asked for; None where it did not say."""

    @property
    def timeout_s(self) -> float:
        """Seconds it may take; 0 is no limit."""


def units_of_submissions(submissions: Sequence[Submitted], *, base_env: Mapping[str, str], source: str) -> Plan:
    """Units that run what was submitted, in its order, starting from the environment `base_env`."""
    named = identities([_call(submission, base_env) for submission in submissions])
    units = [
        _unit(submission, name, variant, base_env)
        for submission, (name, variant) in zip(submissions, named, strict=True)
    ]
    notes = [
        f"{source}: {unit.key} {note}"
        for submission, unit in zip(submissions, units, strict=True)
        if submission.devices is None and (note := devices_note(submission.command, submission.env))
    ]
    return Plan(source=source, units=tuple(units), notes=tuple(notes))


def _call(submission: Submitted, base_env: Mapping[str, str]) -> Call:
    changed, _ = difference(submission.env, base_env)
    name = printable(submission.name) or name_of(submission.command)
    return Call(name=name, changed=identifying(changed), assigned=None)


def _unit(submission: Submitted, name: str, variant: str, base_env: Mapping[str, str]) -> Unit:
    changed, removed = difference(submission.env, base_env)
    needed = submission.devices
    return Unit(
        literal=True,
        name=name,
        variant=variant,
        command=submission.command,
        env=changed,
        unset=removed,
        cwd=submission.cwd,
        need=Need(devices=devices_of(submission.command, submission.env) if needed is None else needed),
        timeout_s=submission.timeout_s,
        junit=_junit(submission),
        line=0,
    )


def _junit(submission: Submitted) -> str:
    """The JUnit file of a pytest command; of another program `--junitxml` may mean anything."""
    if launched(submission.command)[0] != "pytest":
        return ""
    return absolute(junit_file(submission.command), submission.cwd)
