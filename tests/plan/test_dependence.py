"""Where a script's logic depends on a recorded result, it is told so, line by line."""

import pytest

from sooner.model.units import UnitKey
from sooner.plan.dependence import dependence_notes
from sooner.plan.invocations import Invocation
from sooner.plan.shell_text import logical_lines


def notes(script: str, *lines: int) -> list[str]:
    calls = [Invocation(argv=("pytest",), cwd="/", script="t.sh", line=line) for line in lines or (1,)]
    keys = [UnitKey(f"test_{line}") for line in lines or (1,)]
    return list(dependence_notes(script, calls, keys=keys, source="t.sh"))


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ('pytest a || test_fail "a.py"', 't.sh:1: "|| test_fail "a.py"" depends on the result of test_1: '),
        ("pytest a && echo good", 't.sh:1: "&& echo good" runs after test_1: '),
        ("pytest a | tee log", 't.sh:1: "| tee log" reads the output of test_1: '),
        ("if pytest a; then", 't.sh:1: "if" branches on the result of test_1: '),
        ("while A=1 pytest a; do", 't.sh:1: "while" branches on the result of test_1: '),
        ("true; until pytest a; do", 't.sh:1: "until" branches on the result of test_1: '),
        ("! pytest a", 't.sh:1: "!" negates the result of test_1: '),
        ("x=$(pytest a)", 't.sh:1: "$(" takes the output of test_1: '),
        ('x="$(pytest a)"', 't.sh:1: "$(" takes the output of test_1: '),
        ("x=`pytest a`", 't.sh:1: "`" takes the output of test_1: '),
        ("pytest a; RET=$?", 't.sh:1: "$?" reads the exit code of test_1: '),
        ("pytest a\n# why\n\nRET=$?", 't.sh:4: "$?" reads the exit code of test_1: '),
        ('pytest a\nif [ "$?" -ne 0 ]; then', 't.sh:2: "$?" reads the exit code of test_1: '),
        ("pytest a\nRET=${PIPESTATUS[0]}", 't.sh:2: "PIPESTATUS" reads the exit code of test_1: '),
        ("pytest \\\n  a \\\n  || fail", 't.sh:1: "|| fail" depends on the result of test_1: '),
    ],
)
def test_a_use_of_a_result_is_noted(script: str, said: str) -> None:
    (note,) = notes(script)
    assert note.startswith(said)


@pytest.mark.parametrize(
    "script",
    [
        "pytest a",
        "pytest a  # || fail",
        "pytest -k 'a || b && c | d'",
        'pytest -k "a || b"',
        "pytest a \\| b",
        "pytest a > log 2>&1",
        "mkdir x || exit 1; pytest a",
        "if true; then pytest a; fi",
        "for i in 1 2; do pytest $i; done",
        "x=$(date); pytest a",
        "pytest a\necho done\nRET=$?",
        "pytest a\necho done; RET=$?",
        "pytest a\necho '$?'",
        "cat <<END | grep x\n|| fail\nEND\npytest a",
    ],
)
def test_what_does_not_use_a_result_is_not_noted(script: str) -> None:
    assert notes(script, script.count("\n") + 1 if script.startswith("cat") else 1) == []


def test_a_function_that_handles_results_is_noted_once_for_all_its_calls() -> None:
    script = 'run() {\n  pytest "$@" || fail\n}\nrun a\nrun b\n'
    calls = [
        Invocation(argv=("pytest",), cwd="/", script="t.sh", line=line, places=((line, "run"), (2, "")))
        for line in (4, 5)
    ]
    (note,) = dependence_notes(script, calls, keys=[UnitKey("a"), UnitKey("b")], source="t.sh")
    assert note.startswith('t.sh:2: "|| fail" depends on the result of a and 1 more: ')


def test_a_handler_behind_a_function_call_is_noted() -> None:
    call = Invocation(argv=("pytest",), cwd="/", script="t.sh", line=1, places=((1, "run"),))
    (note,) = dependence_notes("true || x; run a || fail", [call], keys=[UnitKey("a")], source="t.sh")
    assert note.startswith('t.sh:1: "|| fail"')


def test_errexit_is_noted_where_it_is_in_effect() -> None:
    (note,) = notes("set -ex\npytest a\npytest b", 2, 3)
    assert note.startswith('t.sh:1: "set -e" would end the script when test_2 fails: ')
    assert notes("set -e\nset +e\npytest a", 3) == []
    assert notes("set -o pipefail\npytest a", 2) == []
    assert notes("#!/bin/bash -e\npytest a", 2)


def test_a_call_by_path_that_was_not_recorded_is_noted() -> None:
    (note,) = notes("pytest a\n.venv/bin/python -m pytest b\n.venv/bin/python setup.py\n")
    assert note == 't.sh:2: ".venv/bin/python" is called by its path: it ran at once and is no unit'


def test_a_call_that_was_not_recorded_is_quoted_whole() -> None:
    (note,) = notes("pytest a\n[ -n $X ] && pytest --version | tee log", 1)
    assert note == 't.sh:2: "pytest --version" was not recorded: it ran at once, or was not reached'


def test_logical_lines_join_what_belongs_together() -> None:
    script = "a \\\nb\nc 'd\ne' # f\ng <<X\nh\nX\ni $(( 1 << 2 ))\nj <<< k\nl"
    assert [(line.first, line.last, line.text) for line in logical_lines(script)] == [
        (1, 2, "a  b"),
        (3, 4, "c 'd\ne'"),
        (5, 5, "g <<X"),
        (8, 8, "i $(( 1 << 2 ))"),
        (9, 9, "j <<< k"),
        (10, 10, "l"),
    ]


def test_a_quote_that_never_closes_ends_with_its_line() -> None:
    script = "echo $'it\\'s'\necho don't\npytest a || fail\n"
    assert [line.first for line in logical_lines(script)] == [1, 2, 3, 4]


def test_assignments_of_a_line_are_told_from_options_and_text() -> None:
    (line,) = logical_lines("A=1 B='x=y' env C=2 pytest --tb=auto -o d=e \"F=1\" $G=1")
    assert line.assigned() == {"A", "B", "C", "d"}
