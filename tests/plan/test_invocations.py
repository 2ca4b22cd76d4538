"""Recorded calls become units: names, variants, needs, limits."""

import json
from collections.abc import Mapping, Sequence

import pytest

from sooner.model.errors import PlanError
from sooner.plan.invocations import Invocation, keys_of, read_invocations, units_of

BASE = {"HOME": "/home/me", "PATH": "/bin", "KEPT": "1"}


def call(
    line: str,
    *,
    env: Mapping[str, str] | None = None,
    text: str = "",
    parent: Sequence[str] = (),
    unset: str = "",
) -> Invocation:
    full = {name: value for name, value in (BASE | dict(env or {})).items() if name != unset}
    return Invocation(argv=tuple(line.split()), cwd="/src", env=full, text=text, parent=tuple(parent))


def keys(*calls: Invocation) -> list[str]:
    return [str(key) for key in keys_of(calls, base_env=BASE)]


def test_a_prefix_is_the_variant_and_a_lasting_export_is_not() -> None:
    late = {"ARTIFACTS": "/a"}
    assert keys(
        call("pytest a.py", text="pytest a.py"),
        call("pytest b.py", env={"A": "1", "B": "2"}, text="A=1 B=2 pytest b.py"),
        call("pytest c.py", env=late, text="pytest c.py"),
        call("pytest d.py", env=late | {"A": "1"}, text="env A=1 pytest d.py --tb=auto"),
    ) == ["a", "b|A=1 B=2", "c", "d|A=1"]


def test_a_prefix_that_all_calls_have_is_still_the_variant() -> None:
    assert keys(*(call(f"pytest {name}.py", env={"A": "1"}, text=f"A=1 pytest {name}.py") for name in "ab")) == [
        "a|A=1",
        "b|A=1",
    ]


def test_an_export_for_a_while_is_the_variant() -> None:
    assert keys(call("pytest a.py", env={"M": "1"}, text="pytest a.py"), call("pytest b.py", text="pytest b.py")) == [
        "a|M=1",
        "b",
    ]


def test_one_file_under_two_exports_is_told_apart_by_them() -> None:
    assert keys(call("pytest a.py", text="pytest a.py"), call("pytest a.py", env={"M": "1"}, text="pytest a.py")) == [
        "a",
        "a|M=1",
    ]


def test_without_lines_everything_that_differs_is_the_variant() -> None:
    common = {"SCRIPT": "x", "SHLVL": "2", "OLDPWD": "/"}
    assert keys(call("pytest a.py", env=common | {"A": "1"}), call("pytest b.py", env=common)) == [
        "a|A=1",
        "b",
    ]
    assert keys(call("pytest a.py", env={"A": "1", "PWD": "/x", "SOONER_NEED_DEVICES": "2"})) == ["a|A=1"]


def test_an_exact_repetition_is_numbered() -> None:
    assert keys(*[call("pytest a.py")] * 3) == ["a", "a#2", "a#3"]


def test_a_unit_runs_as_the_call_would_have() -> None:
    calls = [
        call("/usr/bin/python3 -m pytest --junitxml out/x.xml a.py", env={"S": "1", "_": "/shim"}, unset="KEPT"),
        call("pytest b.py", env={"S": "1"}),
    ]
    unit = units_of(calls, base_env=BASE, source="t.sh").units[0]
    assert unit.command == calls[0].argv
    assert (unit.name, unit.variant) == ("x", "")
    assert (unit.env, unit.unset, unit.cwd) == ({"S": "1"}, ("KEPT",), "/src")
    assert unit.junit == "/src/out/x.xml"


@pytest.mark.parametrize(
    ("line", "env", "devices"),
    [
        ("pytest a.py", {}, 1),
        ("torchrun --nproc_per_node=4 a.py", {}, 4),
        ("torchrun --nproc-per-node 8 a.py", {}, 8),
        ("python -m torch.distributed.run --nproc_per_node=2 a.py", {}, 2),
        ("python3 -u -m torch.distributed.launch --nproc_per_node 2 a.py", {}, 2),
        ("torchrun a.py", {}, 1),
        ("torchrun --nproc_per_node=4 a.py", {"SOONER_NEED_DEVICES": "2"}, 2),
        ("pytest a.py", {"SOONER_NEED_DEVICES": "0"}, 0),
        ("pytest a.py", {"SOONER_NEED_DEVICES": "many"}, 1),
    ],
)
def test_devices_are_read_off_the_command_or_its_hint(line: str, env: dict[str, str], devices: int) -> None:
    (unit,) = units_of([call(line, env=env)], base_env=BASE, source="t.sh").units
    assert unit.need.devices == devices


def test_a_call_that_takes_what_it_finds_gets_one_device_and_a_note() -> None:
    plan = units_of([call("torchrun --nproc_per_node=gpu train.py")], base_env=BASE, source="t.sh")
    assert plan.units[0].need.devices == 1
    assert plan.notes == (
        (
            "t.sh: train starts one rank for each device it is given (--nproc_per_node=gpu): "
            "it gets 1, set SOONER_NEED_DEVICES=K for K"
        ),
    )


@pytest.mark.parametrize(
    ("parent", "seconds"),
    [
        ("timeout 300 pytest a.py", 300.0),
        ("/usr/bin/timeout -k 10 --signal=KILL 1.5m pytest a.py", 90.0),
        ("timeout", 0.0),
        ("bash test.sh", 0.0),
        ("", 0.0),
    ],
)
def test_a_parent_called_timeout_is_the_limit(parent: str, seconds: float) -> None:
    (unit,) = units_of([call("pytest a.py", parent=parent.split())], base_env=BASE, source="t.sh").units
    assert unit.timeout_s == seconds


def test_names_are_printable_and_hold_no_separator() -> None:
    (unit,) = units_of([call("pytest t.py::test[a|\udcff]")], base_env=BASE, source="t.sh").units
    assert unit.name == "t::test[a_\\xff]"


OTHER_VERSION = json.dumps({"version": 9, "argv": [], "cwd": "", "env": {}}).encode()


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (b"{", "t.sh: the record of its calls is damaged: "),
        (b'{"version": 1}', "t.sh: the record of its calls is damaged: "),
        (OTHER_VERSION, "t.sh: the record of its calls has version 9"),
    ],
)
def test_a_damaged_record_is_refused(record: bytes, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        read_invocations(record, script="t.sh", script_text="")
    assert str(caught.value).startswith(message)


def test_a_record_of_version_1_is_read() -> None:
    record = {
        "version": 1,
        "argv": ["/bin/pytest", "a.py"],
        "cwd": "/src",
        "env": {"A": "1"},
        "parent": ["bash", "t.sh"],
        "frames": [["t.sh", 2, "run"], ["t.sh", 4, ""]],
        "command": 'pytest "$1"',
    }
    script = 'run() {\n  pytest "$1"\n}\nA=1 run a.py\n'
    (found,) = read_invocations(json.dumps(record).encode(), script="t.sh", script_text=script)
    assert found == Invocation(
        argv=("/bin/pytest", "a.py"),
        cwd="/src",
        env={"A": "1"},
        script="t.sh",
        line=4,
        text='A=1 run a.py\npytest "$1"',
        places=((4, "run"), (2, "")),
        parent=("bash", "t.sh"),
    )
