"""What GitHub Actions runs where: workflows and actions that others use, and what is filled in."""

import json
import textwrap

import pytest

from sooner.cli.needs_actions import filled, matrix_rows
from sooner.cli.needs_placement import placement_from


def written(folder, name, text):
    path = folder / ".github" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text) if isinstance(text, str) else json.dumps(text))
    return path


def run_by(jobs, nodeid):
    return sorted({job.devices for job in jobs if job.runs(nodeid)})


CALLED = """
    on:
      workflow_call:
        inputs:
          runner: {type: string, default: gpu-2}
          tests: {type: string}
    jobs:
      go:
        runs-on: ${{ inputs.runner }}
        steps: [{run: "pytest ${{ inputs.tests }}"}]
"""


def test_a_workflow_of_the_same_repository_runs_what_it_is_called_with(tmp_path):
    written(tmp_path, "workflows/run.yml", CALLED)
    path = written(
        tmp_path,
        "workflows/ci.yml",
        """
        jobs:
          usual: {uses: ./.github/workflows/run.yml, with: {tests: tests/a}}
          large:
            strategy: {matrix: {include: [{n: 4, t: b}, {n: 8, t: c}]}}
            uses: ./.github/workflows/run.yml
            with: {runner: "gpu-${{ matrix.n }}", tests: "tests/${{ matrix.t }}"}
        """,
    )
    notes, called = [], set()
    jobs = placement_from(path, notes, called)
    assert [run_by(jobs, f"tests/{name}/test_x.py::t") for name in "abcd"] == [[2], [4], [8], []]
    assert (notes, called) == ([], {path.with_name("run.yml").resolve()})
    assert {job.name for job in jobs} == {"usual / go", "large / go"}


def test_a_workflow_that_is_only_called_is_not_read_by_itself(sooner, project):
    (project / "test_it.py").write_text("def test_host(): pass\n")
    written(project, "workflows/run.yml", CALLED)
    written(project, "workflows/ci.yml", "jobs: {a: {uses: ./.github/workflows/run.yml, with: {tests: test_it.py}}}")
    done = sooner("needs", "--diff", "--placement", ".github/workflows")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["run.yml", "none.yml"])
def test_a_workflow_that_calls_itself_or_is_not_there_is_named(tmp_path, name):
    text = f"on: [workflow_call]\njobs: {{a: {{uses: ./.github/workflows/{name}, with: {{runner: gpu-4}}}}}}"
    notes = []
    assert placement_from(written(tmp_path, "workflows/run.yml", text), notes) == []
    assert f"its tests are those of ./.github/workflows/{name}: say them in a placement.toml" in notes[0]


@pytest.mark.parametrize("name", ["action.yml", "action.yaml"])
def test_an_action_of_the_same_repository_runs_its_commands_with_what_it_is_given(tmp_path, name):
    action = {
        "inputs": {"tests": {"default": "tests/a"}, "mode": {}},
        "runs": {"using": "composite", "steps": [{"run": "pytest ${{ inputs.tests }}"}]},
    }
    written(tmp_path, f"actions/run/{name}", action)
    steps = [{"uses": "./.github/actions/run"}, {"uses": "./.github/actions/run/", "with": {"tests": "tests/b"}}]
    steps += [{"uses": "./.github/actions/run", "with": {"tests": "tests/c"}, "if": False}]
    path = written(tmp_path, "workflows/ci.yml", {"jobs": {"a": {"runs-on": "gpu-4", "steps": steps}}})
    jobs = placement_from(path)
    assert [run_by(jobs, f"tests/{name}/test_x.py::t") for name in "abc"] == [[4], [4], []]


@pytest.mark.parametrize(
    ("given", "devices"),
    [
        ({"command": "pytest tests/a"}, [2]),
        ({"run": "cd tests\npytest a"}, [2]),
        ({"test-command": "pytest tests/a"}, [2]),
        ({"name": "pytest"}, []),
        ({"path": "pytest tests/a"}, []),
    ],
)
def test_a_command_that_a_step_hands_to_an_action_is_one_of_its_own(tmp_path, given, devices):
    job = {"runs-on": "gpu-2", "steps": [{"uses": "some/retry@v3", "with": given}]}
    jobs = placement_from(written(tmp_path, "workflows/ci.yml", {"jobs": {"a": job}}))
    assert run_by(jobs, "tests/a/test_x.py::t") == devices


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${{ matrix.size }}", "4"),
        ("${{matrix.deep.name}}", "x"),
        ("${{ fromJSON(matrix.labels) }}", '["self-hosted", "gpu-4"]'),
        ("${{ fromJson('[\"gpu\", 8]') }}", '["gpu", 8]'),
        ("${{ inputs.runner || 'gpu-2' }}", "gpu-1"),
        ("${{ inputs.empty || 'gpu-2' }}", "gpu-2"),
        ("${{ inputs.none || 'gpu-2' }}", "gpu-2"),
        ("${{ inputs.none }}", "${{ inputs.none }}"),
        ("${{ matrix.is_slow }}", "true"),
        ("${{ matrix.size == 4 && 'a' || 'b' }}", "${{ matrix.size == 4 && 'a' || 'b' }}"),
        ("${{ needs.a.outputs.b }}", "${{ needs.a.outputs.b }}"),
        ("${{ 'a' }}", "${{ 'a' }}"),
    ],
)
def test_what_github_fills_in_is_known_where_it_stands_in_the_files(text, value):
    row = {"size": 4, "deep": {"name": "x"}, "labels": '["self-hosted", "gpu-4"]', "is_slow": True}
    assert filled(text, row, {"runner": "gpu-1", "empty": ""}) == value


@pytest.mark.parametrize(
    ("matrix", "rows"),
    [
        ("${{ fromJSON(inputs.matrix) }}", [{"n": 2}, {"n": 4}]),
        ({"n": "${{ fromJSON('[1, 8]') }}"}, [{"n": 1}, {"n": 8}]),
        ({"include": "${{ fromJSON(inputs.rows) }}"}, [{"n": 3}]),
        ({"n": "${{ fromJSON(needs.a.outputs.b) }}"}, []),
        ("${{ fromJSON('[') }}", []),
    ],
)
def test_a_matrix_that_is_json_in_the_files_is_known(matrix, rows):
    inputs = {"matrix": '{"n": [2, 4]}', "rows": '[{"n": 3}]'}
    assert matrix_rows({"strategy": {"matrix": matrix}}, inputs) == rows


@pytest.mark.parametrize(
    "text",
    [
        "jobs: {1: {runs-on: gpu-2, steps: [{uses: a/b, with: {2: pytest t, command: pytest t}}], 3: 4}}",
        "on: [{a: b}]\njobs: {a: {uses: ./.github/w.yml, with: {runner: gpu-2}}}",
        "on: {workflow_call: {inputs: [a]}}\njobs: {a: {uses: ./.github/w.yml, with: [1]}}",
        f"jobs: {{a: {{uses: ./{'x' * 5000}, with: {{runner: gpu-2}}}}}}",
        'jobs: {a: {uses: "./a\\0b", steps: [{uses: "./a\\0b"}, {uses: 3}, {run: [a], with: [3]}], defaults: 7}}',
        "jobs: {a: {strategy: {matrix: {n: [null, {a: 1}, [1]], 3: [4], include: [{5: 6}, 7]}}, runs-on: {a: b}}}",
        "agents: [1, {2: 3}]\nsteps: [{agents: 3, command: {a: b}, commands: 5}, 7, null, {steps: 3}]",
    ],
)
def test_parts_that_are_of_another_kind_than_they_should_be_say_nothing(tmp_path, text):
    jobs = placement_from(written(tmp_path, "w.yml", text))
    assert [job.devices for job in jobs] == ([2] if "command: pytest" in text else [])


def test_a_runner_of_a_row_whose_devices_are_not_known_is_named(tmp_path):
    rows = '{ include: [{ config: "d", runner: "${{ needs.b.outputs.c }}" }]}'
    notes = []
    placement_from(written(tmp_path, "workflows/ci.yml", {"jobs": {"a": {"with": {"test-matrix": rows}}}}), notes)
    assert "the devices of its runner '${{ needs.b.outputs.c }}' are not known" in notes[0]


@pytest.mark.parametrize(
    ("command", "hidden"),
    [
        ("./ci/run_pytest_cuda.sh --all", "./ci/run_pytest_cuda.sh"),
        ("set -e\nX=1 bash qa/L0_unittest/test.sh", "qa/L0_unittest/test.sh"),
        ("tox -e gpu", "tox"),
        ("make -C build check-tests", "make -C build check-tests"),
        ("bazel test //tests:gpu_tests", "bazel test"),
        ("echo run-tests.sh; cat tests/all.sh", ""),
        ("./build.sh", ""),
        ("./ci/test.sh && pytest tests", ""),
    ],
)
def test_what_runs_tests_and_does_not_say_which_is_named(tmp_path, command, hidden):
    for name, text in (
        ("workflows/ci.yml", {"jobs": {"a": {"runs-on": "gpu-2", "steps": [{"run": command}]}}}),
        ("pipeline.yml", {"steps": [{"label": "a", "command": command}]}),
    ):
        notes = []
        placement_from(written(tmp_path, name, text), notes)
        assert [hidden] * bool(hidden) == [note.partition("those of ")[2].partition(": say")[0] for note in notes]


def test_what_a_command_takes_from_a_row_is_no_path_of_its_own(tmp_path):
    job = {
        "runs-on": "gpu-2",
        "strategy": {"matrix": {"test": ["ops", "comm"]}},
        "steps": [{"run": "pytest tests/gpu/test_${{ matrix.test }}.py"}],
    }
    jobs = placement_from(written(tmp_path, "workflows/ci.yml", {"jobs": {"a": job}}))
    assert run_by(jobs, "tests/gpu/test_ops.py::t") == [2]
    assert run_by(jobs, "tests/ops/test_x.py::t") == []
