"""`sooner script`, `submit` and `wait` through the real command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from real_runs import Run

BIN = Path(sys.executable).parent
"""Where pytest and sooner are installed."""

SCRIPT = """\
#!/bin/bash
RET=0
function test_fail() { RET=1; echo "failed: $1"; }
echo "in place"
mkdir -p xml
KEY=1 python3 -m pytest --junitxml=xml/one.xml test_one.py || test_fail one
KEY=2 python3 -m pytest --junitxml=xml/one_again.xml test_one.py || test_fail one_again
pytest -q test_two.py
python3 -c 'print("really run")'
if [ $RET -ne 0 ]; then exit 1; fi
"""


def suite(project, script=SCRIPT):
    (project / "test.sh").write_text(script)
    (project / "test_one.py").write_text(
        "import os\ndef test_a(): assert os.environ['KEY'] == '1'\ndef test_b(): pass\n"
    )
    (project / "test_two.py").write_text("def test_c(): pass\n")


def in_path():
    return {"PATH": f"{BIN}:{os.environ['PATH']}"}


def test_a_script_runs_in_place_and_its_tests_in_parallel(sooner, project, run):
    suite(project)
    done = sooner("script", "test.sh", "--devices", "virtual:4", "--out", "out", **in_path())
    assert done.returncode == 1
    assert done.stdout.index("in place") < done.stdout.index("really run") < done.stdout.index("=== Output")
    assert run.outcomes == {"one": "passed", "one_again": "failed", "test_two": "passed"}
    assert {result["variant"] for result in run.results.values()} == {"KEY=1", "KEY=2", ""}
    assert (project / "xml/one.xml").exists()
    assert run.cases[("one_again|KEY=2", "test_a")] == "failure"


def test_logic_that_depends_on_a_recorded_result_is_named_with_its_line(sooner, project):
    suite(project)
    done = sooner("script", "test.sh", "--devices", "virtual:4", "--out", "out", **in_path())
    assert 'test.sh:6: "|| test_fail one" depends on the result of one|KEY=1' in done.stderr


def test_a_script_that_fails_by_itself_fails(sooner, project):
    suite(project, "pytest -q test_two.py\nexit 3\n")
    done = sooner("script", "test.sh", "--devices", "virtual:1", "--out", "out", **in_path())
    assert done.returncode == 1
    assert "itself ended with exit code 3" in done.stderr


def test_a_script_without_tests_is_nothing_to_run(sooner, project):
    suite(project, "echo nothing\n")
    done = sooner("script", "test.sh", "--devices", "virtual:1", **in_path())
    assert done.returncode == 5
    assert "no call of pytest, python -m pytest or torchrun was recorded" in done.stderr
    assert "`sooner submit`" in done.stderr


def in_shell(project, *lines):
    """Run a shell script of these lines."""
    (project / "all.sh").write_text("\n".join(lines))
    env = {**os.environ, **in_path()}
    return subprocess.run(["bash", "all.sh"], cwd=project, env=env, capture_output=True, text=True, check=False)


def test_submitted_commands_run_at_wait_with_the_environment_of_their_submission(project):
    lines = [
        'for key in 1 2; do KEY=$key sooner submit --name "key$key" -- sh -c \'echo "$KEY in $PWD"\'; done',
        "mkdir -p below && cd below",
        "sooner submit --name there --devices 2 -- sh -c 'echo $CUDA_VISIBLE_DEVICES in ${PWD##*/}'",
        "cd ..",
        "sooner wait --devices virtual:4 --out out",
    ]
    done = in_shell(project, *lines)
    assert done.returncode == 0, done.stderr
    run = Run(project / "out")
    assert run.log("key2") == f"2 in {project}\n"
    assert run.log("there").endswith("in below\n")
    assert len(run.results["there"]["attempts"][0]["devices"]) == 2


@pytest.mark.parametrize(("name", "says"), [("", "must not be empty"), ("a\nb", "line break"), ("a|b", "'|'")])
def test_a_name_that_could_not_stand_in_a_plan_is_not_submitted(sooner, name, says):
    done = sooner("submit", "--name", name, "--", "true")
    assert done.returncode == 4
    assert "--name: must not" in done.stderr
    assert says in done.stderr
    assert sooner("wait", "--devices", "virtual:1").returncode == 5


def test_a_wait_without_submissions_says_so_also_where_there_are_no_devices(sooner):
    done = sooner("wait")
    assert done.returncode == 5
    assert done.stderr == "sooner: nothing was submitted: `sooner submit -- COMMAND` does that\n"


def test_what_stands_behind_the_name_of_a_submitted_command_belongs_to_it(project):
    done = in_shell(project, "sooner submit echo --name x -q", "sooner wait --devices virtual:1 --out out")
    assert done.returncode == 0, done.stderr
    assert Run(project / "out").log("echo") == "--name x -q\n"


def test_wait_fails_if_a_submitted_command_failed(project):
    done = in_shell(project, "sooner submit -- false", "sooner wait --devices virtual:1 --json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["counts"]["failed"] == 1


def test_a_wait_that_cannot_begin_leaves_what_was_submitted_to_the_next_one(project):
    lines = [
        "sooner submit --name wide --devices 4 -- true",
        "sooner submit --name narrow -- true",
        "sooner wait --devices virtual:2 --out out",
        "test $? = 4 || exit 99",
        "sooner wait --devices virtual:2 --on-missing hole --out out",
    ]
    in_shell(project, *lines)
    assert Run(project / "out").outcomes == {"wide": "hole", "narrow": "passed"}


def test_bytes_in_the_environment_that_are_no_text_reach_their_unit_and_cost_no_verdict(project):
    lines = [
        r"""B=$'\xff' sooner submit --name odd -- sh -c 'printf %s "$B" | od -An -tx1'""",
        r"""B=$'\xfe' sooner submit --name odd -- false""",
        "sooner wait --devices virtual:2 --out out",
    ]
    done = in_shell(project, *lines)
    assert done.returncode == 1, done.stderr
    results = [json.loads(line) for line in (project / "out/results.jsonl").read_text().splitlines()]
    assert [(each["variant"], each["outcome"]) for each in results] == [
        (r"B='\xff'", "passed"), (r"B='\xfe'", "failed"),
    ]  # fmt: skip
    assert " ff" in done.stdout
