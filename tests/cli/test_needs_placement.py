"""Where CI runs the tests, out of the files that CI itself reads."""

import json
import textwrap
from pathlib import Path

import pytest

from sooner.cli.needs_actions import matrix_rows
from sooner.cli.needs_commands import named_in
from sooner.cli.needs_labels import devices_of_label
from sooner.cli.needs_placement import placement_from
from sooner.model.errors import SettingsError, UsageError

ACTIONS = """
    jobs:
      two:
        runs-on: linux.g5.12xlarge.nvidia.gpu
        steps:
          - uses: actions/checkout@v4
          - run: |
              pip install .
              pytest -x -m "not slow" tests/distributed --junitxml=out/report.xml
      sizes:
        strategy:
          matrix:
            include:
              - {runner: gpu-2, tests: tests/small}
              - {runner: linux.rocm.gpu.gfx950.4, tests: tests/large}
        runs-on: ${{ matrix.runner }}
        steps: [{run: "pytest ${{ matrix.tests }}"}]
      called:
        uses: ./.github/workflows/_test.yml
        with:
          test-matrix: |
            { include: [
              { config: "distributed", shard: 1, runner: "linux.rocm.gpu.gfx950.2" },
            ]}
      host:
        runs-on: ubuntu-latest
        steps: [{run: pytest tests/unit}]
"""
PIPELINE = """
    steps:
      - label: four
        num_devices: 4
        working_dir: /workspace/tests
        commands:
          - pytest -v -s distributed/test_comm.py
          - TP=2 pytest -v -s distributed/test_sharded.py -k "not slow"
      - group: others
        steps:
          - {label: one, command: pytest -s kernels}
          - {label: host, no_gpu: true, command: pytest -s config}
"""
BUILD = """
load("//jaxlib:jax.bzl", "jax_test")
jax_test(name = "pmap_test", srcs = ["pmap_test.py"], tags = ["multiaccelerator", "requires-gpu:4"])
jax_test(name = "lax_test", srcs = ["lax_test.py"], tags = ["gpu"])
jax_test(name = "host_test", srcs = ["host_test.py"])
"""


def written(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


def devices_of(jobs, pattern):
    return sorted({job.devices for job in jobs if pattern in job.paths})


@pytest.mark.parametrize(
    ("label", "devices"),
    [
        ("linux.rocm.gpu.gfx950.4", 4),
        ("linux.rocm.gpu.2", 2),
        ("linux.g4dn.12xlarge.nvidia.gpu", 4),
        ("linux.aws.h100.8", 8),
        ("4-gpu-runner", 4),
        ("8xH100", 8),
        ("8x-h100", 8),
        ("linux.gpu.16", 16),
        ("a100-40gb", 1),
        ("gpu-t4-4-core", 1),
        ("linux-amd64-gpu-h100-latest-2", 2),
        ("linux-amd64-gpu-l4-latest-1", 1),
        ("aws-g4dn-2xlarge-cache", 1),
        ("aws-g5-12xlarge-cache", 4),
        ("aws-g5-48xlarge-plus", 8),
        ("linux.g6.24xlarge.nvidia.gpu", 4),
        ("multi-gpu", 2),
        ("nvidia-a10-4gpu", 4),
        ("linux-x86-g2-16-l4-1gpu", 1),
        ("linux-x86-g2-48-l4-4gpu", 4),
        ("nvidia-ci-aws-gpu-x8", 8),
        ("a2-highgpu-2g", 2),
        ("a3-megagpu-8g", 8),
        ("linux-mi35x-gpu-8", 8),
        ("p6-b200.48xlarge", 8),
        ("l-x86iavx512-45-172-t4-4", 4),
        ("lit-rtx-3090", 1),
        ("gpu_4_queue", 4),
        ("self-hosted gpu", 1),
        ("ubuntu-22.04", 0),
        ("${{ matrix.runner }}", None),
        ("${{ needs.a.outputs.prefix }}linux.g4dn.12xlarge.nvidia.gpu", 4),
        ("${{ inputs.prefix }}linux.rocm.gpu.gfx950.2", 2),
        ("linux.gpu.${{ inputs.gpu4 }}", None),
        ("linux.gpu.$SIZE", None),
        ("${{ needs.a.outputs.prefix }}linux.4xlarge.nvidia.gpu", 1),
        ("${{ needs.a.outputs.prefix }}l-x86aavx2-11-41-l4", 1),
        ("${{ needs.a.outputs.prefix }}l-x86iavx512-45-172-t4-4", 4),
        ("${{ needs.a.outputs.prefix }}linux.4xlarge", None),
        ("${{ matrix.count }}gpu-linux", None),
        ("${{ matrix.count }}-gpu-linux", None),
        ("${{ inputs.prefix }}linux-gpu-${{ inputs.count }}", None),
    ],
)
def test_devices_are_read_from_the_name_of_a_runner(label, devices):
    assert devices_of_label(label) == devices


def test_tests_are_read_from_command_lines():
    text = "FLAGS=1 python -m pytest -s -k 'a or b' tests/x.py::test_a \\\n  tests/y && pytest --co\necho pytest/no"
    assert named_in(text).paths == ["tests/x.py::test_a", "tests/y"]
    text = "python test/run_test.py --verbose --include distributed/test_c10d"
    assert named_in(text).paths == ["test/distributed/test_c10d"]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("pytest", ["."]),
        ("pytest -x\necho done", ["."]),
        ("cd tests && python -m pytest -q", ["tests"]),
        ("pip install pytest pytest-xdist && pytest ./tests/", ["tests"]),
        ("uv run --with pytest python -m pytest tests/a.py > log.txt 2>&1", ["tests/a.py"]),
        ("bash -c 'cd src; pytest'", ["src"]),
        ("./ci/on-nodes.sh /w/tests 2 \"A=1 ./x && pytest -s a.py\" 'pytest b.py'", ["a.py", "b.py"]),
        ("./ci/say.sh 'what pytest says' && echo 'pytest c.py'", []),
        ("pip install pytest", []),
        ("pip list | grep pytest\npip show pytest\npkill -f pytest", []),
        ("rm -rf /mnt/pytest && mkdir -p out/pytest; ls --color out/pytest\npython run.py --out /out/pytest", []),
        ("git clone https://github.com/pytest-dev/pytest", []),
        ("for kind in pytest unittest; do ./run.sh $kind; done", []),
        ("[[ $kind == pytest ]] && pytest a", ["a"]),
        ("timeout 9m /opt/venv/bin/pytest a; A=1 ./pytest b", ["a", "b"]),
        ("pytest --version", []),
        ("pytest --ignore t/slow --deselect t/a.py::b --junitxml out/junit.xml", ["."]),
        ("pytest --cov src/lib --rootdir /w/x t/a.py", ["t/a.py"]),
    ],
)
def test_pytest_without_arguments_runs_everything_and_what_does_not_call_it_nothing(text, paths):
    assert named_in(text).paths == paths


@pytest.mark.parametrize(
    ("arguments", "paths"),
    [
        ("--forked t/a.py", ["t/a.py"]),
        ("--verbose a.py", ["a.py"]),
        ("-q --showlocals unit", ["unit"]),
        ("--run-slow unit", ["unit"]),
        ("--my-own-flag a.py::b", ["a.py::b"]),
        ("--dist loadfile", ["."]),
        ("--reruns 3", ["."]),
        ("--config sizes/small.txt", ["."]),
        ("-xvk 'not b' t", ["t"]),
        ("--pyargs lib.tests", ["lib/tests"]),
        ("t/{a,b/test_{c,d}}.py", ["t/a.py", "t/b/test_c.py", "t/b/test_d.py"]),
        ("'t/a.py::b[float16-(1, 2)]' > out.txt < in.txt", ["t/a.py::b[float16-(1, 2)]"]),
        ("`cat list.txt`", []),
        ("$(cat list.txt)", []),
        ("@list.txt", []),
    ],
)
def test_tests_are_told_from_the_values_of_options(arguments, paths):
    named = named_in(f"pytest {arguments}")
    assert (named.paths, bool(named.unknown)) == (paths, not paths)


def test_words_and_lines_that_are_made_to_take_long_do_not(tmp_path):
    command = f"pytest {'{a,b}' * 40} `{'(' * 999} $({'(' * 999} {'--x ' * 999} {'cd ../' * 99}"
    text = f"jobs:\n  a: {{runs-on: gpu-2, x: {'[' * 40}{']' * 40}}}{chr(9) * 20_000}\n  # {chr(9) * 20_000}x\n"
    path = written(tmp_path, "a.yml", text + f"  b: {{runs-on: gpu-2, steps: [{{run: {json.dumps(command)}}}]}}\n")
    assert placement_from(path, notes := []) == []
    assert "job b: its tests are computed: {a,b}{a,b}" in notes[0]


def test_the_keyword_may_stand_behind_short_options():
    assert named_in("pytest -xvk 'not b' t").calls[0].keyword == "not b"


def test_tests_of_pytorchs_runner_end_where_its_options_go_on():
    assert named_in("python run_test.py -i a/test_b test_c --verbose").paths == ["test/a/test_b", "test/test_c"]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("torchrun --nproc-per-node=4 dist/test_a.py --size 4", ["dist/test_a.py"]),
        ("A=1 python3 -u -m torch.distributed.run --nproc_per_node 8 dist/a_test.py", ["dist/a_test.py"]),
        ("cd t && accelerate launch --num_processes 2 test_a.py", ["t/test_a.py"]),
        ("mpirun -np 2 python test_a.py", ["test_a.py"]),
        ("coverage run -p t/test_a.py", ["t/test_a.py"]),
        ("$PYTHON -m t.test_a -v", ["t/test_a.py"]),
        ("python -m unittest", ["."]),
        ("python -m unittest -v t.test_a t/test_b.py", ["t/test_a", "t/test_b.py"]),
        ("python -m unittest t.test_a.TestB.test_c", ["t/test_a.py::TestB::test_c"]),
        ("python -m unittest discover -s t -v", ["t"]),
        ("python -m unittest discover t -p '*_test.py'", ["t/**_test.py"]),
        ("python setup.py test_a.py", []),
        ("python examples/run.py --config test_a.py", []),
        ("python -c 'import x' test_a.py", []),
        ("python -m build && cp t/test_a.py x", []),
        ("echo python test_a.py", []),
        ("python $FOLDER", []),
    ],
)
def test_a_file_of_tests_may_be_started_without_pytest(text, paths):
    assert named_in(text).paths == paths


def test_computed_arguments_are_not_taken_for_everything():
    named = named_in("pytest $TESTS\npytest ${{ inputs.tests }}")
    assert (named.paths, named.unknown) == ([], ["$TESTS", "$_"])
    named = named_in("git ls-files t | xargs pytest -q\nls t | xargs -n1 -I{} pytest '{}'")
    assert (named.paths, named.unknown) == ([], ["git ls-files t", "ls t"])


@pytest.mark.parametrize(
    "command",
    [
        "find ./t/ -maxdepth 1 -name 'test_*.py' -not -name test_b.py -print0 | xargs -0 -n1 -I{} pytest -s '{}'",
        r"find t -maxdepth 1 -name 'test_*.py' ! -name test_b.py -exec python -m pytest -s {} \;",
        "cd t && find . -maxdepth 1 -type f -name 'test_*.py' -not -name test_b.py | xargs pytest",
    ],
)
def test_files_that_find_hands_to_pytest_are_what_is_run(tmp_path, command):
    jobs = placement_from(written(tmp_path, "p.toml.yaml", f"steps:\n  - command: |\n      {command}\n"))
    assert [run_by(jobs, f"t/{name}::test") for name in ("test_a.py", "test_b.py", "c.py", "sub/test_d.py")] == [
        [1], [], [], [],
    ]  # fmt: skip
    assert run_by(jobs, "other/test_a.py::test") == []


def test_find_without_a_depth_hands_on_all_files_below_its_folders(tmp_path):
    text = "steps: [{num_gpus: 2, command: \"find t u -name '*_test.py' | xargs pytest\"}]"
    jobs = placement_from(written(tmp_path, "p.yaml", text))
    found = [run_by(jobs, f"{name}::test") for name in ("t/a_test.py", "u/sub/b_test.py", "u/test_c.py", "v/a_test.py")]
    assert found == [[2], [2], [], []]


@pytest.mark.parametrize(
    ("command", "run"),
    [
        ("cd tests/gpu && pytest test_ops.py", "G"),
        ("cd tests; cd gpu; pytest test_ops.py::test_x", "G"),
        ("git clone x repo; cd repo; pytest tests/gpu", "G"),
        ("cd build && make; cd .. && pytest tests/gpu/test_ops.py", "G"),
        ("cd build && pytest ../tests/cpu", "C"),
        ("(cd tests/gpu && make); pytest tests/cpu/test_ops.py", "C"),
        ("pushd tests/gpu; pytest .; popd; pytest tests/cpu", "CG"),
        ("cd /w/repo && cd tests/gpu && pytest test_ops.py", "G"),
        ("if true; then cd tests/cpu; fi; pytest -q test_ops.py", "C"),
        ("cd $HERE; pytest test_ops.py", "CGO"),
        ("cd $HERE/tests/gpu; pytest test_ops.py", "G"),
        ("cd tests && pytest . --ignore=gpu", "C"),
        ("pytest /w/repo/tests/gpu/test_ops.py", "G"),
        ("pytest /w/repo/other/test_ops.py", "O"),
        ("pytest $HOME/tests/gpu/test_ops.py ${ROOT}/tests/cpu/", "CG"),
        ("pytest ${{ github.workspace }}/tests/cpu/test_ops.py", "C"),
        ("pytest ./tests/../tests/cpu/test_ops.py", "C"),
    ],
)
def test_a_file_is_the_one_of_the_folder_in_which_a_command_runs(tmp_path, command, run):
    job = {"runs-on": "gpu-2", "steps": [{"run": command}]}
    jobs = placement_from(written(tmp_path, "w.yml", json.dumps({"jobs": {"a": job}})))
    tests = {"C": "tests/cpu/test_ops.py", "G": "tests/gpu/test_ops.py", "O": "other/test_ops.py"}
    assert "".join(key for key, path in tests.items() if run_by(jobs, f"{path}::test_x")) == run


def test_a_tree_that_begins_in_a_folder_that_a_command_enters_is_found_too(tmp_path):
    jobs = placement_from(written(tmp_path, "p.yml", "steps: [{num_gpus: 4, command: cd tests && pytest unit/}]"))
    assert [run_by(jobs, path) for path in ("tests/unit/a.py::t", "unit/a.py::t", "other/unit/a.py::t")] == [
        [4], [4], [],
    ]  # fmt: skip


@pytest.mark.parametrize("where", ["workflow", "job", "step"])
def test_a_workflow_or_a_job_may_say_in_which_folder_its_steps_run(tmp_path, where):
    folder = {"defaults": {"run": {"working-directory": "tests/gpu"}}}
    step = {"run": "pytest test_ops.py"} | ({"working-directory": "./tests/gpu/"} if where == "step" else {})
    job = {"runs-on": "gpu-2", "steps": [step]} | (folder if where == "job" else {})
    text = json.dumps({"jobs": {"a": job}} | (folder if where == "workflow" else {}))
    jobs = placement_from(written(tmp_path, "w.yml", text))
    assert [run_by(jobs, f"tests/{kind}/test_ops.py::t") for kind in ("cpu", "gpu")] == [[], [2]]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("CUDA_VISIBLE_DEVICES=0,1 pytest a", [2]),
        ("HIP_VISIBLE_DEVICES= pytest a", [0]),
        ("env A=1 CUDA_VISIBLE_DEVICES='3' timeout 30 python -m pytest a", [1]),
        ("export CUDA_VISIBLE_DEVICES=0,1,2\npytest a\nCUDA_VISIBLE_DEVICES=0 pytest b\npytest c", [3, 1, 3]),
        ("export X=1 CUDA_VISIBLE_DEVICES=0; bash -c 'pytest a'; unset CUDA_VISIBLE_DEVICES; pytest b", [1, 4]),
        ("CUDA_VISIBLE_DEVICES=$FREE pytest a\nexport CUDA_VISIBLE_DEVICES=$FREE\npytest b", [4, 4]),
        ("pytest a CUDA_VISIBLE_DEVICES=0", [4]),
    ],
)
def test_devices_that_a_command_line_hides_are_not_there(text, shown):
    assert [call.shown for call in named_in(text, shown=4).calls] == shown


def run_by(jobs, nodeid):
    """Devices of the jobs that run a test."""
    return [job.devices for job in jobs if job.runs(nodeid)]


def test_what_the_arguments_of_pytest_leave_out_is_not_run(tmp_path):
    text = """
jobs:
  a:
    runs-on: gpu-4
    steps:
      - run: pytest t --ignore=t/slow --ignore t/test_z.py --deselect t/test_a.py::test_two --ignore-glob '*_old.py'
      - run: pytest t/slow -k "not (three or Four)"
        env: {CUDA_VISIBLE_DEVICES: 0}
      - run: pytest "t/slow/test_s.py::test_case[4-x]" --deselect "t/slow/test_s.py::test_case[4"
"""
    jobs = placement_from(written(tmp_path, "ci.yml", text))
    assert run_by(jobs, "t/test_a.py::test_one") == [4]
    assert run_by(jobs, "t/test_a.py::test_two[1]") == run_by(jobs, "t/test_z.py::test") == []
    assert run_by(jobs, "t/test_old.py::test") == run_by(jobs, "t/sub/test_old.py::test") == []
    assert run_by(jobs, "t/slow/test_s.py::test_two") == [1]
    assert run_by(jobs, "t/slow/test_s.py::test_three") == run_by(jobs, "t/slow/test_s.py::TestFour::test") == []
    assert run_by(jobs, "t/slow/test_s.py::test_case[4-x]") == [1]


def test_a_test_is_named_with_and_without_its_parameters(tmp_path):
    text = "jobs: {a: {runs-on: gpu-2, steps: [{run: 'pytest \"t.py::test_b[x-1]\" t.py::test_a'}]}}"
    jobs = placement_from(written(tmp_path, "ci.yml", text))
    assert run_by(jobs, "t.py::test_a[1-y]") == run_by(jobs, "t.py::test_a") == run_by(jobs, "t.py::test_b[x-1]") == [2]
    assert run_by(jobs, "t.py::test_b[x-2]") == run_by(jobs, "t.py::test_ab") == []


@pytest.mark.parametrize(
    ("step", "devices"),
    [
        ({}, 1),
        ({"num_gpus": "4"}, 4),
        ({"device": "mi325_2"}, 2),
        ({"agent_pool": "mi325_8"}, 8),
        ({"agent_pool": "mi250_1", "num_gpus": 2}, 2),
        ({"device": "h100"}, 1),
        ({"device": "cpu-small"}, 0),
        ({"agents": {"queue": "gpu_4_queue"}}, 4),
        ({"agents": ["queue=a100x8", "os=linux"]}, 8),
        ({"agents": {"queue": "arm64_cpu_queue"}}, 0),
        ({"agents": {"queue": "default"}}, 1),
    ],
)
def test_a_step_of_a_pipeline_has_the_devices_of_its_machine(tmp_path, step, devices):
    given = {"group": "g", "steps": [{"label": "a", "command": "pytest a.py"} | step]}
    assert placement_from(written(tmp_path, "p.yaml", json.dumps(given)))[0].devices == devices


def test_what_a_pipeline_says_of_all_its_steps_holds_where_a_step_says_nothing_else(tmp_path):
    steps = [{"command": "pytest a.py"}, {"command": "pytest b.py", "agents": {"queue": "gpu-4"}}]
    given = {"agents": {"queue": "gpu-2"}, "env": {"CUDA_VISIBLE_DEVICES": "0,1,2"}, "steps": steps}
    jobs = placement_from(written(tmp_path, "p.yaml", json.dumps(given)))
    assert [run_by(jobs, f"{name}.py::t") for name in "ab"] == [[2], [3]]


def test_a_step_of_a_pipeline_may_hide_devices(tmp_path):
    text = """
steps:
  - {label: a, num_gpus: 4, commands: ["CUDA_VISIBLE_DEVICES=0,1 pytest a.py", "pytest b.py"]}
  - {label: b, num_gpus: 4, env: {CUDA_VISIBLE_DEVICES: "0"}, command: pytest c.py}
"""
    jobs = placement_from(written(tmp_path, "p.yaml", text))
    assert [run_by(jobs, f"{name}.py::t") for name in "abc"] == [[2], [4], [1]]


def test_a_matrix_is_all_combinations_less_what_is_excluded_with_what_is_included():
    matrix = {
        "gpu": [1, 2],
        "tests": ["a", "b"],
        "exclude": [{"gpu": 2, "tests": "b"}],
        "include": [{"gpu": 2, "slow": True}, {"gpu": 8, "tests": "c"}],
    }
    assert matrix_rows({"strategy": {"matrix": matrix}}) == [
        {"gpu": 1, "tests": "a"},
        {"gpu": 1, "tests": "b"},
        {"gpu": 2, "tests": "a", "slow": True},
        {"gpu": 8, "tests": "c"},
    ]


MATRICES = """
    jobs:
      crossed:
        strategy:
          matrix:
            os: [ubuntu-22.04]
            machine: [linux.gpu.2, linux.gpu.4]
            suite: [{path: comm}, {path: shard}]
            exclude: [{machine: linux.gpu.2, suite: {path: shard}}]
        runs-on: [self-hosted, "${{ matrix.machine }}"]
        steps: [{run: "pytest tests/${{ matrix.suite.path }}"}]
      fixed:
        runs-on: linux.gpu.8
        strategy: {matrix: {os: [ubuntu-22.04]}}
        steps: [{run: pytest, working-directory: wide}]
      script:
        uses: pytorch/test-infra/.github/workflows/linux_job.yml@main
        with: {runner: linux.g5.12xlarge.nvidia.gpu, script: "pytest kernels"}
"""


def test_values_of_a_matrix_are_put_into_labels_and_commands(tmp_path):
    notes = []
    jobs = placement_from(written(tmp_path, "ci.yml", MATRICES), notes)
    assert devices_of(jobs, "tests/comm/*") == [2, 4]
    assert devices_of(jobs, "tests/shard/*") == [4]
    assert devices_of(jobs, "wide/*") == [8]
    assert devices_of(jobs, "kernels/*") == [4]
    assert notes == []


def test_a_job_that_is_switched_off_runs_nothing_and_one_of_another_file_is_named(tmp_path):
    text = """
on: push
jobs:
  off: {runs-on: gpu-4, if: false, steps: [{run: pytest tests/a}]}
  never: {runs-on: gpu-4, if: "${{ false }}", steps: [{run: pytest tests/a}]}
  called: {uses: ./.github/workflows/_test.yml, with: {runner: gpu-4, paths: tests/a}}
  on: {runs-on: gpu-4, if: "github.ref == 'main'", steps: [{run: pytest tests/b}]}
"""
    notes = []
    jobs = placement_from(written(tmp_path, "ci.yml", text), notes)
    assert [(job.name, job.devices) for job in jobs] == [("on", 4)]
    assert ["job off: it is switched off" in notes[0], "job never: it is switched off" in notes[1]] == [True, True]
    assert "job called: its tests are those of ./.github/workflows/_test.yml" in notes[2]


def test_a_step_that_is_switched_off_runs_nothing_and_is_named(tmp_path):
    off = "{name: wide, run: pytest tests/a, if: false}"
    text = (
        f"on: push\njobs:\n  t: {{runs-on: gpu-4, steps: [{off}, {{run: pytest tests/b}}, {{run: make, if: false}}]}}\n"
    )
    notes = []
    (job,) = placement_from(written(tmp_path, "ci.yml", text), notes)
    assert (job.runs("tests/a/x.py::t"), job.runs("tests/b/x.py::t")) == (False, True)
    assert [note.partition("ci.yml: ")[2] for note in notes] == [
        "job t: step wide: it is switched off (`if: False`), and runs nothing"
    ]
    text = "steps:\n- {label: a, skip: broken, commands: [pytest tests/a]}\n- {label: b, commands: [pytest tests/b]}\n"
    notes.clear()
    assert [job.name for job in placement_from(written(tmp_path, "bk.yml", text), notes)] == ["b"]
    assert notes[0].endswith("bk.yml: step a: it is skipped, and runs nothing")


def test_devices_that_the_environment_hides_are_not_there(tmp_path):
    text = """
on: push
env: {CUDA_VISIBLE_DEVICES: "0,1"}
jobs:
  two: {runs-on: gpu-4, steps: [{run: pytest a}]}
  one: {runs-on: gpu-4, env: {CUDA_VISIBLE_DEVICES: 0}, steps: [{run: pytest a}]}
  none: {runs-on: gpu-4, env: {CUDA_VISIBLE_DEVICES: ""}, steps: [{run: pytest a}]}
  few: {runs-on: gpu-1, steps: [{run: pytest a}]}
  computed: {runs-on: gpu-4, env: {HIP_VISIBLE_DEVICES: "${{ inputs.mask }}"}, steps: [{run: pytest a}]}
"""
    jobs = placement_from(written(tmp_path, "ci.yml", text))
    assert {job.name: job.devices for job in jobs} == {"two": 2, "one": 1, "none": 0, "few": 1, "computed": 2}


def test_a_job_that_cannot_be_read_is_named(tmp_path):
    text = """
        jobs:
          a: {runs-on: linux.gpu.2, steps: [{run: "pytest $TESTS"}]}
          b: {runs-on: "${{ inputs.runner }}", steps: [{run: pytest tests}]}
    """
    notes = []
    assert placement_from(written(tmp_path, "ci.yml", text), notes) == []
    assert ["job a: its tests are computed: $TESTS" in notes[0], "job b: the devices of its" in notes[1]] == [
        True,
        True,
    ]


@pytest.mark.parametrize("part", ["5", "{a: 1}", "'${{ fromJSON(inputs.rows) }}'", "[1, null]"])
def test_parts_of_a_workflow_that_are_no_lists_of_mappings_name_no_rows_and_no_steps(tmp_path, part):
    matrix = f"{{include: {part}, exclude: {part}}}"
    job = f"{{runs-on: gpu.2, strategy: {{matrix: {matrix}}}, steps: [{{run: pytest tests}}]}}"
    assert [each.devices for each in placement_from(written(tmp_path, "a.yml", f"jobs: {{a: {job}}}"))] == [2]
    step = f"steps: [{{steps: {part}, command: pytest tests, num_gpus: 2}}]"
    assert [each.devices for each in placement_from(written(tmp_path, "b.yml", step))] == [2]


@pytest.mark.parametrize(
    ("label", "is_told"), [("[self-hosted, big]", True), ("ubuntu-24.04", False), ("linux.gpu.4", False)]
)
def test_a_runner_of_ones_own_that_names_no_devices_is_said_to_be_taken_for_one_without(tmp_path, label, is_told):
    (tmp_path / "ci.yml").write_text(f"jobs:\n  t:\n    runs-on: {label}\n    steps: [{{run: pytest tests}}]\n")
    notes = []
    assert placement_from(tmp_path / "ci.yml", notes)
    assert any("'self-hosted big' names no devices" in note for note in notes) == is_told


def test_a_placement_of_which_nothing_is_known_does_not_agree(sooner, project):
    written(project, "tests/test_it.py", "def test_a(): pass\n")
    written(project, "ci.yml", "jobs: {a: {runs-on: linux.gpu.2, steps: [{run: 'pytest $TESTS'}]}}")
    done = sooner("needs", "tests", "--diff", "--placement", "ci.yml")
    assert (done.returncode, done.stdout) == (4, "")
    assert "note: ci.yml: job a: its tests are computed: $TESTS" in done.stderr
    assert "--placement ci.yml: no job in it" in done.stderr


def test_a_comparison_without_a_placement_says_what_was_not_looked_at(sooner, project):
    written(project, "tests/test_it.py", "def test_a(): pass\n")
    done = sooner("needs", "tests", "--diff")
    assert done.stdout == "declarations and needs agree; where CI runs the tests was not looked at (--placement)\n"


def test_a_folder_without_tests_agrees_with_nothing(sooner, project):
    written(project, "tests/help.py", "def helper(): pass\n")
    written(project, "p.toml", '[[job]]\nname = "a"\ndevices = 1\npaths = ["tests/*"]\n')
    done = sooner("needs", "tests", "--diff", "--placement", "p.toml")
    assert (done.returncode, done.stdout) == (5, "")
    assert "no tests in tests" in done.stderr


def test_jobs_of_github_actions_are_read_with_their_matrices(tmp_path):
    jobs = placement_from(written(tmp_path, "ci.yml", ACTIONS))
    assert devices_of(jobs, "tests/distributed/*") == [4]
    assert devices_of(jobs, "tests/small/*") == [2]
    assert devices_of(jobs, "tests/large/*") == [4]
    assert devices_of(jobs, "*/distributed/*") == [2]
    assert devices_of(jobs, "*/tests/distributed/*") == [4]
    assert devices_of(jobs, "tests/unit/*") == [0]


def test_a_runner_in_a_test_matrix_may_begin_with_what_is_computed(tmp_path):
    text = """
        jobs:
          build:
            uses: ./.github/workflows/_linux-build.yml
            with:
              test-matrix: |
                { include: [
                  { config: "distributed", shard: 1, runner: "${{ needs.label.outputs.type }}linux.g4dn.12xlarge" },
                ]}
          test:
            uses: ./.github/workflows/_linux-test.yml
            with: { test-matrix: "${{ needs.build.outputs.test-matrix }}" }
    """
    assert devices_of(placement_from(written(tmp_path, "ci.yml", text)), "*/distributed/*/*") == [4]


def test_a_test_matrix_that_cannot_be_read_is_named_and_hides_no_other_job(tmp_path):
    text = """
        jobs:
          build: {uses: ./b.yml, with: {test-matrix: "{ include: [{ config: d, runner: ${{ inputs.a }}gpu.4 }]}"}}
          other: {runs-on: gpu.2, steps: [{run: pytest tests}]}
    """
    notes = []
    assert [job.devices for job in placement_from(written(tmp_path, "ci.yml", text), notes)] == [2]
    assert "job build: its test-matrix is no YAML before GitHub fills it" in notes[0]


def test_a_pipeline_says_the_number_of_devices_beside_the_commands(tmp_path):
    jobs = placement_from(written(tmp_path, "test-pipeline.yaml", PIPELINE))
    assert devices_of(jobs, "*/distributed/test_comm.py") == [4]
    assert devices_of(jobs, "*/distributed/test_sharded.py") == [4]
    assert devices_of(jobs, "*/kernels/*") == [1]
    assert devices_of(jobs, "*/config/*") == [0]


def test_a_target_of_bazel_beside_the_root_of_the_tree_is_found(tmp_path, monkeypatch):
    written(tmp_path, "BUILD", 'py_test(name = "a", srcs = ["a.py"], tags = ["gpus:2"])')
    monkeypatch.chdir(tmp_path)
    assert run_by(placement_from(Path("BUILD")), "a.py::test") == [2]


def test_tags_of_bazel_say_the_number_of_devices(tmp_path):
    jobs = placement_from(written(tmp_path, "tests/BUILD", BUILD))
    assert {job.name: job.devices for job in jobs} == {"pmap_test": 4, "lax_test": 1, "host_test": 0}
    assert devices_of(jobs, "*tests/pmap_test.py") == [4]


@pytest.mark.parametrize(
    ("tag", "devices"),
    [
        ("requires-gpu-nvidia:2", 2),
        ("requires-gpu-nvidia", 1),
        ("requires-gpu-amd", 1),
        ("requires-gpu-sm90-full:4", 4),
        ("requires-gpu-sm80-only", 1),
        ("multi_and_single_gpu", 2),
        ("multiaccelerator", 2),
        ("gpu_only", 1),
        ("no_gpu", 0),
        ("nogpu", 0),
        ("gpu-tests-are-elsewhere", 0),
    ],
)
def test_a_tag_of_bazel_may_name_the_kind_of_device_too(tmp_path, tag, devices):
    text = f'py_test(name = "a", srcs = ["a.py"], tags = ["{tag}"])'
    assert [job.devices for job in placement_from(written(tmp_path, "BUILD", text))] == [devices]


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("a.yml", "jobs: [", SettingsError),
        ("a.yml", "name: nothing", SettingsError),
        ("a.yml", "steps: &a [{steps: *a}]", SettingsError),
        ("BUILD", "py_test(", SettingsError),
        ("a.toml", "[[job", SettingsError),
        ("a.toml", "[[jobs]]", SettingsError),
        ("a.toml", "[job]", SettingsError),
        ("a.toml", "[[job]]\ndevices = 1\npaths = []\npath = 1", SettingsError),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_one_clear_error(tmp_path, name, text, error):
    with pytest.raises(error, match=name.partition(".")[0]):
        placement_from(written(tmp_path, name, text))


def test_an_error_of_yaml_says_the_line_and_what_is_wrong_there(tmp_path):
    path = written(tmp_path, "a.yml", "jobs:\n  a: {}\n  a: {}\n")
    with pytest.raises(SettingsError, match=r'a\.yml:3 is not YAML: found duplicate key "a"'):
        placement_from(path)


def test_tabs_that_only_separate_are_taken_as_github_takes_them(tmp_path):
    text = "jobs:\t# a\n  a:\n    runs-on:\tgpu-2\t# b\n\t\n    steps:\n      -\trun: |\n          pytest a.py\t\n"
    assert run_by(placement_from(written(tmp_path, "a.yml", text)), "a.py::t") == [2]


def test_a_mask_of_devices_without_a_value_hides_all(tmp_path):
    text = "jobs: {a: {runs-on: gpu-2, env: {CUDA_VISIBLE_DEVICES: }, steps: [{run: pytest a.py}]}}"
    assert run_by(placement_from(written(tmp_path, "a.yml", text)), "a.py::t") == [0]


@pytest.mark.parametrize("name", ["a.yml", "a.toml"])
def test_a_mark_of_the_order_of_bytes_is_no_part_of_a_placement(tmp_path, name):
    text = "steps: [{command: pytest a.py}]" if name == "a.yml" else "[[job]]\ndevices = 1\npaths = ['a.py']"
    jobs = placement_from(written(tmp_path, name, f"\ufeff{text}"))
    assert run_by(jobs, "a.py::t") == [1]


def test_a_file_that_is_not_there_is_one_clear_error():
    with pytest.raises(UsageError, match="cannot be read"):
        placement_from(Path("nowhere.yml"))


def test_a_folder_of_workflows_is_all_of_its_files(sooner, project):
    tests = "import pytest, torch\n@pytest.mark.skipif(torch.cuda.device_count() < {}, reason='')\ndef test_a(): pass\n"
    for name, devices in (("a", 2), ("b", 4)):
        written(project, f"tests/test_{name}.py", tests.format(devices))
        job = f"jobs: {{gpu: {{runs-on: gpu-2, steps: [{{run: pytest tests/test_{name}.py}}]}}}}\n"
        written(project, f".github/workflows/{name}.yml", f"on: push\n{job}")
    written(project, ".github/workflows/labels.yaml", "gpu: [tests]\n")
    (project / ".github/workflows/folder.yml").mkdir()
    done = sooner("needs", "tests", "--diff", "--placement", ".github/workflows", "--json")
    assert done.returncode == 12
    assert "note: .github/workflows/labels.yaml: neither `jobs` (GitHub Actions), `steps`" in done.stderr
    found = [(each["nodeid"], each["kind"]) for each in json.loads(done.stdout)]
    assert found == [("tests/test_b.py::test_a", "orphan")]


def test_an_orphan_is_found_with_the_workflow_itself(sooner, project):
    (project / "pytest.ini").write_text("[pytest]\n")
    tests = "import pytest, torch\n@pytest.mark.skipif(torch.cuda.device_count() < 8, reason='')\ndef test_a(): pass\n"
    written(project, "tests/distributed/test_it.py", tests)
    written(project, ".github/workflows/ci.yml", ACTIONS)
    done = sooner("needs", "tests", "--diff", "--placement", ".github/workflows/ci.yml", "--json")
    assert done.returncode == 12
    assert [(each["kind"], each["placed"]) for each in json.loads(done.stdout)] == [("orphan", [2, 4])]
