"""Submitted commands are named and told apart as recorded ones are."""

from msgspec import Struct, field

from sooner.model.units import Need, Unit
from sooner.plan.submitted import units_of_submissions

BASE = {"HOME": "/home/me", "LATE": "1"}


class Entry(Struct, frozen=True, kw_only=True):
    command: tuple[str, ...]
    cwd: str = "/src"
    env: dict[str, str] = field(default_factory=BASE.copy)
    name: str = ""
    devices: int | None = None
    timeout_s: float = 0.0


def test_a_submission_becomes_a_unit() -> None:
    entries = [
        Entry(command=("pytest", "--junitxml=a.xml", "t.py"), env={"HOME": "/home/me", "A": "1"}, timeout_s=5.0),
        Entry(command=("torchrun", "--nproc_per_node=4", "train.py")),
        Entry(command=("torchrun", "--nproc_per_node=4", "train.py"), name="own\udcff", devices=2),
    ]
    plan = units_of_submissions(entries, base_env=BASE, source="submitted")
    assert plan.units == (
        Unit(literal=True, name="a", variant="A=1", command=entries[0].command, env={"A": "1"}, unset=("LATE",),
             cwd="/src", junit="/src/a.xml", timeout_s=5.0),
        Unit(literal=True, name="train", command=entries[1].command, cwd="/src", need=Need(devices=4)),
        Unit(literal=True, name="own\\xff", command=entries[2].command, cwd="/src", need=Need(devices=2)),
    )  # fmt: skip


def test_the_same_submission_twice_is_two_units() -> None:
    plan = units_of_submissions([Entry(command=("true",))] * 2, base_env=BASE, source="submitted")
    assert [unit.key for unit in plan.units] == ["true", "true#2"]


def test_a_shell_line_is_named_after_what_it_runs() -> None:
    plan = units_of_submissions([Entry(command=("bash", "-c", "cd x && pytest t.py"))], base_env=BASE, source="s")
    assert plan.units[0].name == "t"
