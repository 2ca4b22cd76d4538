"""What GitLab CI runs where."""

import textwrap

import pytest

from sooner.cli.needs_placement import placement_from
from sooner.model.errors import SettingsError


def read(folder, text, name=".gitlab-ci.yml", **others):
    """Jobs and notes of a file, beside others."""
    for path, content in {name: text, **others}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(textwrap.dedent(content))
    notes = []
    return placement_from(folder / name, notes), notes


def placed(jobs, nodeid):
    return sorted({(job.name, job.devices) for job in jobs if job.runs(nodeid)})


def test_a_job_has_the_devices_of_its_tags_and_runs_its_script(tmp_path):
    jobs, notes = read(
        tmp_path,
        """
        stages: [test]
        unit:
          stage: test
          tags: [linux, gpu-2]
          before_script: [pip install -e ., cd tests]
          script:
            - pytest unit
            - |
              export CUDA_VISIBLE_DEVICES=0
              pytest one
        wide: {tags: [8xh100], script: torchrun --nproc-per-node 8 -m pytest tests/wide}
        host: {tags: [cpu], script: pytest tests/host}
        """,
    )
    assert placed(jobs, "tests/unit/test_a.py::test_a") == [("unit", 2)]
    assert placed(jobs, "tests/one/test_a.py::test_a") == [("unit", 1)]
    assert placed(jobs, "tests/wide/test_a.py::test_a") == [("wide", 8)]
    assert placed(jobs, "tests/host/test_a.py::test_a") == [("host", 0)]
    assert notes == []


def test_a_job_has_what_it_extends_and_what_is_said_of_all(tmp_path):
    jobs, _ = read(
        tmp_path,
        """
        default: {tags: [gpu-1], before_script: [cd tests]}
        variables: {KIND: a}
        .base: {script: [pytest $KIND]}
        .wide: {extends: .base, tags: [gpu-4], variables: {KIND: b}}
        one: {extends: .base}
        four: {extends: [.base, .wide]}
        own: {extends: .wide, variables: {KIND: {value: c}}, before_script: [cd other]}
        free: {extends: .wide, inherit: {default: [tags], variables: false}, variables: {KIND: d}}
        """,
    )
    assert {(job.name, job.devices) for job in jobs} == {("one", 1), ("four", 4), ("own", 4), ("free", 4)}
    assert placed(jobs, "tests/a/test_x.py::t") == [("one", 1)]
    assert placed(jobs, "tests/b/test_x.py::t") == [("four", 4)]
    assert placed(jobs, "other/c/test_x.py::t") == [("own", 4)]
    assert placed(jobs, "d/test_x.py::t") == [("free", 4)]


def test_each_row_of_a_matrix_has_its_own_runner_and_tests(tmp_path):
    jobs, notes = read(
        tmp_path,
        """
        go:
          parallel:
            matrix:
              - {RUNNER: [gpu-2, gpu-4], PART: [a, b]}
              - {RUNNER: unknown-machine, PART: c}
          tags: ["${RUNNER}"]
          script: pytest tests/$PART $OTHER
        """,
    )
    assert placed(jobs, "tests/a/test_x.py::t") == [("go", 2), ("go", 4)]
    assert placed(jobs, "tests/c/test_x.py::t") == [("go", 0)]
    assert any("'unknown-machine' names no devices" in each for each in notes)
    assert any("its tests are computed" in each for each in notes)


@pytest.mark.parametrize(
    ("variables", "devices"),
    [
        ("{SCHEDULER_PARAMETERS: '--nodes=1 --gres=gpu:4'}", 4),
        ("{SCHEDULER_PARAMETERS: '-N1 --gres=gpu:a100:2 -t 30'}", 2),
        ("{SLURM_ARGS: '--gpus-per-node=8'}", 8),
        ("{SLURM_ARGS: '-G 3'}", 3),
        ("{SLURM_GPUS: 2}", 2),
        ("{NUM_GPUS: 4}", 4),
        ("{CUDA_VISIBLE_DEVICES: '0,1'}", 1),
    ],
)
def test_a_batch_system_is_asked_for_devices_by_variables(tmp_path, variables, devices):
    jobs, _ = read(tmp_path, f"go: {{tags: [slurm, gpu], variables: {variables}, script: pytest tests}}")
    assert placed(jobs, "tests/test_x.py::t") == [("go", devices)]


def test_parts_of_other_jobs_and_of_included_files_are_known(tmp_path):
    jobs, notes = read(
        tmp_path,
        """
        include:
          - local: /ci/*.yml
          - {project: team/ci, file: all.yml}
        go:
          tags: !reference [.machine, tags]
          script:
            - !reference [.setup, script]
            - [pytest a, [pytest b]]
        second: {extends: .large, script: pytest c}
        fourth: {extends: .large, variables: !reference [.machine, variables], script: pytest $PART}
        """,
        **{
            "ci/parts.yml": """
                .machine: {tags: [gpu-2], variables: {PART: e}}
                .setup: {script: [cd tests]}
                .large: {tags: [gpu-8]}
                third: {extends: .large, script: pytest d}
            """
        },
    )
    assert placed(jobs, "tests/a/test_x.py::t") == placed(jobs, "tests/b/test_x.py::t") == [("go", 2)]
    assert placed(jobs, "c/test_x.py::t") == [("second", 8)]
    assert placed(jobs, "d/test_x.py::t") == [("third", 8)]
    assert placed(jobs, "e/test_x.py::t") == [("fourth", 8)]
    assert notes == [f"{tmp_path}/.gitlab-ci.yml: what it includes is not read: team/ci all.yml"]


def test_includes_with_stars_are_of_the_repository_and_each_file_is_read_once(tmp_path):
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "gpu-far.yml").write_text("far: {tags: [gpu-8], script: pytest far}")
    others = "include: ['/ci/**.yml', '/ci/**/*.yml']"
    parts = {f"ci/deep/part{i}.yml": f"{others}\njob{i}: {{tags: [gpu-{i}], script: pytest t{i}}}" for i in range(1, 9)}
    jobs, notes = read(
        tmp_path / "repo",
        """
        include: ['/ci/**.yml', '**/gpu-*.yml', '/', '', '../out/gpu-far.yml']
        root: {tags: [gpu-1], script: pytest root}
        """,
        **parts,
    )
    assert sorted(job.name for job in jobs) == [*(f"job{i}" for i in range(1, 9)), "root"]
    assert [each.partition("not read: ")[2] for each in notes] == ["**/gpu-*.yml", "/", "", "../out/gpu-far.yml"]


def test_what_is_switched_off_hidden_or_without_a_runner_is_named(tmp_path):
    jobs, notes = read(
        tmp_path,
        """
        off: {tags: [gpu-2], rules: [{when: never}], script: pytest tests}
        hidden: {tags: [gpu-2], script: bash ci/run_tests.sh}
        own: {tags: [our-big-machine], script: ./run_gpu_tests.sh}
        host: {tags: [cpu], script: ./run_cpu_tests.sh}
        shared: {script: pytest tests}
        """,
    )
    assert placed(jobs, "tests/test_x.py::t") == [("shared", 0)]
    told = " | ".join(notes)
    assert "job off: it is switched off" in told
    assert "job hidden: its tests are those of ci/run_tests.sh" in told
    assert "job own: its tests are those of ./run_gpu_tests.sh" in told
    assert "job host" not in told
    assert "job shared: it has no tags, and is taken to have none" in told


@pytest.mark.parametrize(
    "text",
    [
        "a: {script: [pytest], extends: a}",
        "a: {extends: [b], script: !reference [a, script]}\nb: {extends: a}",
        "a: {script: 5, tags: {x: 1}, parallel: {matrix: 3}, variables: [1], inherit: 1}\ndefault: 3\nvariables: x",
        "a: {script: !reference [], parallel: 5}\ninclude: {}",
        "include: .gitlab-ci.yml\na: {script: pytest}",
        "a: {script: pytest, extends: [b, b, b, b, c]}\nb: {extends: [c, c, c, a]}\nc: {extends: [b, a, a, c]}",
        "include: [[1], null, 'https://example.org/a.yml']\na: {script: pytest}",
    ],
)
def test_parts_that_name_themselves_or_are_of_another_kind_end(tmp_path, text):
    read(tmp_path, text)


def test_what_is_no_file_of_ci_is_refused_with_what_it_might_have_been(tmp_path):
    with pytest.raises(SettingsError, match="nor a `script` \\(GitLab\\)"):
        read(tmp_path, "colour: {red: 1}\ninclude: other")


def test_a_file_of_circleci_is_said_not_to_be_read(tmp_path):
    jobs, notes = read(tmp_path, "version: 2.1\njobs: {a: {steps: [{run: pytest}]}}", name=".circleci/config.yml")
    assert jobs == []
    assert "CircleCI" in notes[0]
