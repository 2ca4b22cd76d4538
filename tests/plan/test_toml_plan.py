"""A plan in TOML becomes units, or one error that says where."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sooner.model.errors import PlanError
from sooner.model.units import Need, Plan, Unit
from sooner.plan.toml_plan import read_plan


def plan_of(text: str, **options: Any) -> Plan:
    return read_plan(text, source="PLAN.toml", **options)


def unit_of(text: str, **options: Any) -> Unit:
    (unit,) = plan_of(f"[[unit]]\n{text}\n", **options).units
    return unit


def line_of_error(text: str) -> int:
    """Line of the error that a text raises, -1 where it has none to say, 0 where there is no error."""
    try:
        plan_of(text)
    except PlanError as error:
        return error.line or -1
    return 0


def error_of(text: str, **options: Any) -> str:
    with pytest.raises(PlanError) as caught:
        plan_of(text, **options)
    return str(caught.value)


def test_every_key_of_a_unit_arrives() -> None:
    plan = plan_of("""
[defaults]
timeout_s = 600
env = { COMMON = "1" }

[[unit]]
name = "build"
run = "make -j8"
devices = 0

[[unit]]
name = "attention"
command = ["pytest", "tests/attention.py"]
env = { FUSED = 0, MODE = "fast one" }
devices = 2
memory_mib = 1024
shared = true
ports = 3
timeout_s = 1.5
after = ["build"]
priority = -1
junit = "out/attention.xml"
cwd = "qa"
""")
    assert plan.units == (
        Unit(
            name="build",
            command=("bash", "-c", "make -j8"),
            env={"COMMON": "1"},
            need=Need(devices=0),
            timeout_s=600.0,
            line=6,
        ),
        Unit(
            name="attention",
            variant="FUSED=0 MODE='fast one'",
            command=("pytest", "tests/attention.py"),
            env={"COMMON": "1", "FUSED": "0", "MODE": "fast one"},
            cwd="qa",
            need=Need(devices=2, memory_mib=1024, shared=True, ports=3),
            timeout_s=1.5,
            after=("build",),
            priority=-1,
            junit="out/attention.xml",
            line=11,
        ),
    )


def test_a_plan_without_units_is_a_plan() -> None:
    assert plan_of("") == Plan(source="PLAN.toml", units=())


def test_one_name_under_two_environments_is_two_units() -> None:
    text = '[[unit]]\nname = "a"\nrun = "x"\n[[unit]]\nname = "a"\nrun = "x"\nenv = { M = "1" }\n'
    assert [unit.key for unit in plan_of(text).units] == ["a", "a|M=1"]


def test_what_all_units_share_identifies_none() -> None:
    text = '[defaults]\nenv = { M = "1" }\n[[unit]]\nname = "a"\nrun = "x"\nenv = { M = "1", N = "2" }\n'
    (unit,) = plan_of(text).units
    assert (unit.key, unit.env) == ("a|N=2", {"M": "1", "N": "2"})


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ('command = ["pytest", "-k", "a/b", "tests/test_a.py"]', "test_a"),
        ('command = ["python", "-u", "-m", "pytest", "tests/nvfp4/"]', "nvfp4"),
        ('command = ["pytest", "--junitxml=/x/pytest_test_jit.xml", "t.py"]', "pytest_test_jit"),
        ('command = ["pytest", "--junitxml=/x/results.xml", "tests/t.py::T::m"]', "t::T::m"),
        ('command = ["torchrun", "--rdzv-endpoint", "h:0/x", "dist/train.py"]', "train"),
        ('run = "A=1 timeout 5m pytest tests/test_b.py || exit 1"', "test_b"),
        ('run = "make test"', "make"),
        ('command = ["true"]', "true"),
        ('run = "echo \'open"', "echo"),
    ],
)
def test_a_unit_without_a_name_is_named_after_its_command(command: str, name: str) -> None:
    assert unit_of(command).name == name


def test_derived_names_are_numbered_and_avoid_declared_ones() -> None:
    text = "".join(f"[[unit]]\n{line}\n" for line in ('run = "x"', 'run = "x"', 'name = "x#2"\nrun = "y"'))
    assert [unit.name for unit in plan_of(text).units] == ["x", "x#3", "x#2"]


def test_a_name_in_after_stands_for_all_its_variants() -> None:
    text = """
unit = [
  { name = "a", run = "x", env = { M = "1" } },
  { name = "a", run = "x", env = { M = "2" } },
  { name = "b", run = "x", after = ["a"] },
  { name = "c", run = "x", after = ["a|M=2"] },
]
"""
    assert [unit.after for unit in plan_of(text).units] == [(), (), ("a|M=1", "a|M=2"), ("a|M=2",)]


def test_a_unit_that_writes_junit_without_a_path_gets_one_in_the_run_folder() -> None:
    assert unit_of('name = "a b"\nrun = "pytest --junitxml={junit}"').junit == "{log_dir}/a_b-c8687a08.xml"
    assert unit_of('name = "a"\nrun = "x {junit}"\njunit = "own.xml"').junit == "own.xml"
    assert unit_of('name = "a"\nrun = "x ${junit}"').junit == ""


def test_variables_in_paths_are_the_runners() -> None:
    text = 'name = "a"\nrun = "echo ${LOGS}"\njunit = "${LOGS}/a.xml"\ncwd = "${ROOT}"'
    unit = unit_of(text, env={"LOGS": "/logs", "ROOT": "/src"})
    assert (unit.junit, unit.cwd, unit.command[-1]) == ("/logs/a.xml", "/src", "echo ${LOGS}")
    assert unit_of(text).junit == "${LOGS}/a.xml"


UNIT = '[[unit]]\nname = "a"\nrun = "x"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (UNIT + "devises = 2", "PLAN.toml:4: unit[0].devises: no such key (did you mean 'devices'?)"),
        (UNIT + "gpus = 2", "PLAN.toml:4: unit[0].gpus: no such key (did you mean 'devices'?)"),
        (UNIT + 'needs = ["b"]', "PLAN.toml:4: unit[0].needs: no such key (did you mean 'after'?)"),
        ("gpus = 2", "PLAN.toml:1: gpus: no such key (known: defaults, unit)"),
        ("[[units]]\n", "PLAN.toml:1: units: no such key (did you mean 'unit'?)"),
        ("x = 1\n[default]\n", "PLAN.toml:1: x: no such key (known: defaults, unit)"),
        ('[defaults]\n# note\nname = "x"', "PLAN.toml:3: defaults.name: belongs to one unit, not to all ("),
        ("[defaults]\ntimeout = 3", "PLAN.toml:2: defaults.timeout: no such key (did you mean 'timeout_s'?)"),
        ("[defaults]\ndevices = -1", "PLAN.toml:2: defaults.devices: must not be negative, but is -1"),
        (
            "[defaults.env]\nA = true",
            "PLAN.toml:1: defaults.env: A must be a string or a whole number, not a boolean (",
        ),
        ("defaults = 3", "PLAN.toml:1: defaults: must be a table (write [defaults])"),
        ("[unit]\n", "PLAN.toml:1: unit: must be a list of tables (write [[unit]], with two brackets)"),
        (UNIT + 'devices = "2"', "PLAN.toml:4: unit[0].devices: must be a whole number, not a string"),
        (UNIT + "devices = true", "PLAN.toml:4: unit[0].devices: must be a whole number, not a boolean"),
        (UNIT + "timeout_s = -0.5", "PLAN.toml:4: unit[0].timeout_s: must not be negative, but is -0.5"),
        (UNIT + "timeout_s = nan", "PLAN.toml:4: unit[0].timeout_s: must be finite; 0 is no limit"),
        (UNIT + "ports = 100000", "PLAN.toml:4: unit[0].ports: must be at most 9000, but is 100000"),
        (UNIT + "ports = -1", "PLAN.toml:4: unit[0].ports: must not be negative, but is -1"),
        (UNIT + "shared = 1", "PLAN.toml:4: unit[0].shared: must be true or false, not a whole number"),
        (
            UNIT + "env = { A = 0.1 }",
            "PLAN.toml:4: unit[0].env: A must be a string or a whole number, not a float (",
        ),
        (
            UNIT + "[unit.env]\nA = []",
            "PLAN.toml:4: unit[0].env: A must be a string or a whole number, not an array (",
        ),
        (UNIT + 'env = { "A=B" = "" }', "PLAN.toml:4: unit[0].env: 'A=B' cannot be the name of a variable ("),
        (UNIT + "shared = true", "PLAN.toml:4: unit[0].shared: sharing a device needs memory_mib ("),
        (UNIT + 'after = "b"', "PLAN.toml:4: unit[0].after: must be a list of names, not a string ("),
        (UNIT + 'after = ["b"]', "PLAN.toml:4: unit[0].after: no unit is called 'b' (known: a)"),
        (
            UNIT + 'command = ["x"]',
            "PLAN.toml:3: unit[0].run: both command and run are given (give exactly one of them)",
        ),
        (
            '[[unit]]\nname = "a"',
            "PLAN.toml:1: unit[0]: neither command nor run is given (give exactly one of them)",
        ),
        ("[[unit]]\ncommand = []", "PLAN.toml:2: unit[0].command: must not be empty ("),
        (
            "[[unit]]\ncommand = [1]",
            "PLAN.toml:2: unit[0].command: item 0 must be a string, not a whole number (",
        ),
        ('[[unit]]\nrun = " "', "PLAN.toml:2: unit[0].run: must not be empty ("),
        ('[[unit]]\nrun = "\\u0000"', "PLAN.toml:2: unit[0].run: must not hold a NUL character ("),
        ('[[unit]]\nname = "a|b"\nrun = "x"', "PLAN.toml:2: unit[0].name: must not hold '|' or a line break"),
        (UNIT + UNIT, "PLAN.toml:5: unit[1].name: 'a' was declared before as unit[0] (line 1) (rename"),
        ("[[unit]\n", "PLAN.toml:1: this is not TOML: Expected ']]' at the end of an array declaration"),
        (UNIT + 'cwd = "', "PLAN.toml:4: this is not TOML: "),
        (UNIT + "cwd = 1979-05-27", "PLAN.toml:4: unit[0].cwd: must be a string, not a date or time"),
    ],
)
def test_an_error_names_its_place_and_what_to_do(text: str, message: str) -> None:
    assert error_of(text).startswith(message)


def test_an_unset_variable_in_a_path_is_an_error() -> None:
    message = "PLAN.toml:4: unit[0].junit: ${LOGS} is not set (set LOGS in the environment of sooner)"
    assert error_of(UNIT + 'junit = "${LOGS}/a.xml"', env={}) == message


def test_a_cycle_is_shown_as_a_path() -> None:
    text = "".join(f'[[unit]]\nname = "{a}"\nrun = "x"\nafter = ["{b}"]\n' for a, b in ("sa", "ab", "bc", "ca"))
    assert error_of(text) == "PLAN.toml:8: unit[1].after: units wait for each other: a -> b -> c -> a"


def test_a_unit_cannot_wait_for_itself() -> None:
    assert error_of(UNIT + 'after = ["a"]').endswith("units wait for each other: a -> a")


def test_a_long_chain_is_no_cycle() -> None:
    units = [f'[[unit]]\nname = "u{i}"\nrun = "x"\n' + f'after = ["u{i + 1}"]\n' * (i < 4999) for i in range(5000)]
    assert len(plan_of("".join(units)).units) == 5000


def test_text_that_looks_like_a_header_is_none() -> None:
    text = '''# [[unit]]
[[unit]]
name = "a"
run = """
[[unit]]
name = "not a name"
"""
[[unit]]  # the second
name = "b"
run = \'\'\'
# """
[[unit]]
\'\'\'
devices = -1
'''
    assert error_of(text).startswith("PLAN.toml:14: unit[1].devices: ")
    assert [unit.line for unit in plan_of(text.replace("-1", "1")).units] == [2, 8]


@given(st.text(max_size=60))
def test_any_text_is_a_plan_or_one_error(text: str) -> None:
    assert line_of_error(text) <= text.count("\n") + 1


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-1, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
_KEYS = st.sampled_from(["name", "command", "run", "devices", "after", "timeout_s", "shared", "cwd", "bogus"])


@given(st.lists(st.dictionaries(_KEYS, _VALUES, max_size=4), max_size=4))
def test_any_unit_is_read_or_refused_with_its_line(entries: list[dict[str, Any]]) -> None:
    text = "".join("[[unit]]\n" + "".join(f"{key} = {_toml(value)}\n" for key, value in e.items()) for e in entries)
    line = line_of_error(text)
    assert line >= 0
    if not line:
        assert len({unit.key for unit in plan_of(text).units}) == len(entries)


def _toml(value: object) -> str:
    match value:
        case None:
            return "{}"
        case bool():
            return str(value).lower()
        case str():
            return '"' + "".join(f"\\U{ord(char):08x}" for char in value if not 0xD800 <= ord(char) < 0xE000) + '"'
        case list():
            return "[" + ", ".join(map(_toml, value)) + "]"
    return str(value)


def test_a_unit_that_uses_a_port_and_asks_for_none_is_one_error_with_its_line() -> None:
    text = '[[unit]]\ncommand = ["serve", "--port={port}"]\nports = 0\n'
    assert error_of(text) == (
        "PLAN.toml:3: unit[0].ports: {port} is used, and ports is 0 (leave ports out, or say how many it needs)"
    )
    assert "unit[0]: {port} is used" in error_of('[defaults]\nports = 0\n[[unit]]\nrun = "serve {port}"\n')
    assert unit_of('run = "serve ${port}"\nports = 0').need.ports == 0
