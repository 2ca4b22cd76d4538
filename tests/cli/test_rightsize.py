"""`sooner rightsize`, as users call it."""

import csv
import json
import os
import textwrap

import pytest

from sooner.analysis.sizing.synthetic import Recipe, SharedRecipe, made, shared_queues, shared_tasks

TRUNK = textwrap.dedent("""\
    name: trunk
    on:
      push:
    jobs:
      gpu-build:   # builds
        uses: ./build.yml
        with:
          test-matrix: |
            { include: [
              { config: "default", shard: 1, num_shards: 1, runner: "linux.gpu.1" },
              { config: "distributed", shard: 1, num_shards: 3, runner: "linux.gpu.4" },
              { config: "distributed", shard: 2, num_shards: 3, runner: "linux.gpu.4" },
              { config: "distributed", shard: 3, num_shards: 3, runner: "linux.gpu.4" },
            ]}
    """)


@pytest.fixture
def suite(project):
    rows = []
    for i in range(100):
        full = 0 if i < 50 else 2 if i < 90 else 4
        profile = {str(n): "run" if n >= full else "skip" for n in (0, 1, 2, 3, 4, 8)}
        path = f"test/test_{i % 7}.py"
        rows.append({"nodeid": f"{path}::t{i}", "path": path, "profile": profile, "min": full,
                     "gpu_min": full or None, "full": full, "max": None, "adaptive": False, "confidence": "high",
                     "evidence": []})  # fmt: skip
    (project / "needs.json").write_text(json.dumps(rows))
    (project / "durations.json").write_text(json.dumps({f"test_{i}": 600.0 for i in range(7)}))
    (project / "trunk.yml").write_text(TRUNK)
    return ("--needs", "needs.json", "--durations", "durations.json", "--commits-per-day", "20")


def test_every_option_has_its_price_and_the_best_loses_nothing(sooner, suite):
    done = sooner("rightsize", *suite, "--current", "linux.gpu.4:3", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    options = {one["name"]: one for one in found["options"]}
    assert options["current"]["device_minutes_per_commit"] == pytest.approx(280)
    assert options["all-on-2"]["lost"] == [
        f"test/test_{i % 7}.py::t{i}" for i in sorted(range(90, 100), key=lambda i: (i % 7, i))
    ]
    best = options[found["best"]]
    assert best["lost"] == []
    assert best["device_minutes_per_day"] < 0.5 * options["current"]["device_minutes_per_day"]
    names = [test for lane in best["lanes"] for shard in lane["shards"] for test in shard["tests"]]
    assert sorted(set(names)) == sorted(f"test/test_{i % 7}.py::t{i}" for i in range(100))


def test_people_see_options_the_proposal_and_why_queues_are_not_known(here, suite):
    done = here("rightsize", *suite, "--current", "linux.gpu.4:3", "--objective", "run-time")
    assert done.returncode == 0, done.stderr
    assert "OPTION" in done.stdout
    assert "least run-time of" in done.stdout
    assert "queues: no jobs are known" in done.stdout
    assert "QUEUE P90" not in done.stdout  # three columns of dashes would only make lines too long for a terminal


def test_options_are_not_ranked_by_queues_that_nobody_knows(here, suite):
    done = here("rightsize", *suite, "--current", "linux.gpu.4:3", "--objective", "time-to-signal", "--json")
    found = json.loads(done.stdout)
    assert found["best"] is None
    assert "cannot be ranked by time-to-signal" in found["reason"]


def test_the_change_and_its_periodic_workflow_are_shown_then_made(here, suite, project):
    ask = (
        "rightsize", "trunk.yml", *suite, "--config", "distributed", "--option", "all-on-2+all-every-3h", "--periodic",
        "periodic.yml",
    )  # fmt: skip
    shown = here(*ask, "--diff")
    assert shown.returncode == 0, shown.stderr
    assert (project / "trunk.yml").read_text() == TRUNK
    assert not (project / "periodic.yml").exists()
    made_now = here(*ask, "--apply")
    assert made_now.returncode == 0
    assert made_now.stdout == shown.stdout
    assert "+++ b/periodic.yml" in shown.stdout
    text = (project / "trunk.yml").read_text()
    assert text.count('runner: "linux.gpu.2"') == 3
    assert text.startswith(TRUNK[: TRUNK.index('{ config: "distributed"')])
    periodic = (project / "periodic.yml").read_text()
    assert "0 0,3,6,9,12,15,18,21 * * *" in periodic
    assert periodic.count('runner: "linux.gpu.4"') == 3
    assert "default" not in periodic
    assert sorted(path.name for path in project.iterdir() if path.suffix == ".yml") == ["periodic.yml", "trunk.yml"]


def test_an_edited_file_whose_name_is_not_utf_8_is_told_all_the_same(here, suite, project):
    name = os.fsdecode(b"trunk\xff.yml")
    (project / name).write_text(TRUNK)
    done = here("rightsize", name, *suite, "--config", "distributed", "--option", "all-on-2", "--apply", "--json")
    assert done.returncode == 0, done.stderr
    (file,) = json.loads(done.stdout)["files"]
    assert file["path"] == "trunk\\xff.yml"
    assert "+++ b/trunk\\xff.yml" in file["diff"]


def test_a_patch_of_files_with_spaces_in_their_names_is_one_that_patch_takes(here, suite, project):
    (project / "trunk.yml").rename(project / "the trunk.yml")
    options = ("--config", "distributed", "--option", "all-on-2+all-every-3h", "--periodic", "by clock.yml", "--diff")
    lines = here("rightsize", "the trunk.yml", *suite, *options).stdout.splitlines()
    heads = [line for line in lines if line.startswith(("--- ", "+++ "))]
    assert heads == ["--- a/the trunk.yml\t", "+++ b/the trunk.yml\t", "--- /dev/null", "+++ b/by clock.yml\t"]


def test_a_change_that_was_made_is_there_to_be_made_again_and_changes_nothing(here, suite, project):
    ask = (
        "rightsize", "trunk.yml", *suite, "--config", "distributed", "--option", "all-on-2+all-every-3h", "--periodic",
        "periodic.yml", "--apply",
    )  # fmt: skip
    assert here(*ask).returncode == 0
    texts = {path.name: path.read_text() for path in project.glob("*.yml")}
    again = here(*ask)
    assert (again.returncode, again.stdout) == (0, ""), again.stderr
    assert "0 files edited" in again.stderr
    assert {path.name: path.read_text() for path in project.glob("*.yml")} == texts


def test_of_several_files_with_such_rows_the_first_is_edited_and_the_others_are_named(here, suite, project):
    (project / "more.yml").write_text((project / "trunk.yml").read_text())
    files = ("trunk.yml", "more.yml", "--config", "distributed")
    done = here("rightsize", *suite, *files, "--runner", "2=linux.rocm.gpu.2", "--option", "all-on-2", "--diff")
    assert done.returncode == 0, done.stderr
    assert "note: more.yml has such rows too: of several files the first is edited, trunk.yml" in done.stderr
    assert "b/more.yml" not in done.stdout


def test_a_job_of_a_new_periodic_workflow_that_asks_for_an_event_is_named(here, suite, project):
    text = """
        on: push
        jobs:
          gpu:
            if: github.event_name == 'push'
            strategy:
              matrix:
                include:
                  - { config: distributed, shard: 1, num_shards: 1, runner: linux.gpu.4 }
            runs-on: ${{ matrix.runner }}
    """
    (project / "event.yml").write_text(textwrap.dedent(text))
    options = ("--config", "distributed", "--runner", "2=g.2", "--option", "full-on-2+rest-every-3h")
    done = here("rightsize", *suite, "event.yml", *options, "--periodic", "p.yml", "--diff")
    assert done.returncode == 0, done.stderr
    assert "p.yml: job gpu has `if: github.event_name == 'push'`: see that it holds on a schedule" in done.stderr


def test_a_job_that_comes_along_because_it_needs_the_tests_is_named(here, suite, project):
    follows = """\
      publish:
        needs: [gpu-build]
        runs-on: ubuntu-latest
        steps: [{run: ./publish.sh}]
      gpu-test:
        needs: gpu-build
        uses: ./test.yml
        with: {test-matrix: "${{ needs.gpu-build.outputs.test-matrix }}"}
    """
    (project / "trunk.yml").write_text(TRUNK + textwrap.indent(textwrap.dedent(follows), "  "))
    ask = ("rightsize", "trunk.yml", *suite, "--config", "distributed", "--option", "all-on-2+all-every-3h", "--diff")
    done = here(*ask, "--periodic", "p.yml")
    assert done.returncode == 0, done.stderr
    assert "note: p.yml: job publish comes along, which needs gpu-build: see that it may run" in done.stderr
    assert "job gpu-test comes along" not in done.stderr


def test_an_existing_periodic_workflow_is_extended(here, suite, project):
    (project / "periodic.yml").write_text(
        TRUNK.replace("on:\n  push:", 'on:\n  schedule:\n    - cron: "0 3 * * *"   # nightly').replace(
            "distributed", "slow"
        )
    )
    done = here(
        "rightsize", "trunk.yml", *suite, "--config", "distributed", "--option", "full-on-2+rest-every-6h",
        "--periodic", "periodic.yml", "--apply", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [one["path"] for one in json.loads(done.stdout)["files"]] == ["trunk.yml", "periodic.yml"]
    text = (project / "periodic.yml").read_text()
    assert '- cron: "0 0,6,12,18 * * *"' in text
    assert '{ config: "distributed", shard: 1, num_shards: 1, runner: "linux.gpu.4" }' in text
    assert text.count('config: "slow"') == 3
    assert "periodic.yml: what else is in it runs at the cron that is added too" in done.stderr
    assert "periodic.yml: the rows run at each of its crons, '0 3 * * *', '0 0,6,12,18 * * *'" in done.stderr


@pytest.mark.parametrize("stem", ["linux-mi300-gpu-", "l-x86iavx512-45-172-t4-", "aws-gpu-x", "h100x", "a.gpu_"])
def test_a_number_behind_the_word_for_devices_is_the_size_of_a_runner(here, suite, stem):
    answer = json.loads(here("rightsize", *suite, "--current", f"{stem}4:3", "--json").stdout)
    lanes = [(lane["runner"], lane["devices"]) for option in answer["options"] for lane in option["lanes"]]
    assert set(lanes) == {(f"{stem}{n}", n) for n in (1, 2, 4)}


def test_a_runner_that_nobody_named_is_told(here, suite):
    ask = ("rightsize", "trunk.yml", *suite, "--config", "distributed", "--diff")
    supposed = "note: no file names the runner 'linux.gpu.2'"
    assert supposed in here(*ask, "--option", "all-on-2").stderr
    assert supposed not in here(*ask, "--option", "all-on-2", "--runner", "2=linux.gpu.2").stderr
    assert "no file names" not in here(*ask, "--option", "all-on-1").stderr


CLOCK = """on:
  schedule:
    - cron: "0 */6 * * *"
jobs:
  {job}:
    strategy:
      matrix:
        include:
          - {{{row}shard: 1, num_shards: 1, runner: linux.gpu.1}}
    runs-on: ${{{{ matrix.runner }}}}
    steps: [{{run: ./t.sh}}]
"""


@pytest.mark.parametrize(("job", "row"), [("slow", ""), ("slow", "config: slow, "), ("gpu", "config: slow, ")])
def test_rows_without_a_config_are_not_taken_for_those_of_another_job_of_a_periodic_workflow(
    here, suite, project, job, row
):
    (project / "named.yml").write_text(CLOCK.format(job="gpu", row=""))
    (project / "periodic.yml").write_text(CLOCK.format(job=job, row=row))
    ask = ("rightsize", "named.yml", *suite, "--runner", "2=linux.gpu.2", "--runner", "4=linux.gpu.4", "--option")
    done = here(*ask, "all-on-2+all-every-6h", "--periodic", "periodic.yml", "--apply")
    assert done.returncode == 4
    assert "periodic.yml: has no job gpu whose rows name no config, as they do not in named.yml" in done.stderr
    assert (project / "periodic.yml").read_text() == CLOCK.format(job=job, row=row)
    (project / "periodic.yml").write_text(CLOCK.format(job="gpu", row=""))
    assert here(*ask, "all-on-2+all-every-6h", "--periodic", "periodic.yml", "--apply").returncode == 0
    assert "runner: linux.gpu.4" in (project / "periodic.yml").read_text()


def test_a_job_of_a_periodic_workflow_that_gets_rows_of_another_one_is_named(here, suite, project):
    (project / "periodic.yml").write_text(CLOCK.format(job="slow", row="config: slow, "))
    ask = ("rightsize", "trunk.yml", *suite, "--config", "distributed", "--option", "all-on-2+all-every-6h")
    done = here(*ask, "--periodic", "periodic.yml", "--diff")
    assert "note: periodic.yml: job slow gets these rows, which is not gpu-build of trunk.yml" in done.stderr


def test_a_config_that_no_row_has_is_not_that_of_a_job_which_lists_its_shards(here, suite, project):
    lists = "  unit:\n    runs-on: linux.gpu.4\n    strategy: { matrix: { shard: [1, 2, 3] } }\n    steps: []\n"
    (project / "trunk.yml").write_text(TRUNK + lists)
    done = here("rightsize", "trunk.yml", *suite, "--config", "distribted", "--option", "all-on-2", "--diff")
    assert done.returncode == 4
    assert "no job has rows of config 'distribted': there are default, distributed" in done.stderr


def test_rows_of_a_config_in_a_job_on_other_machines_are_neither_edited_nor_a_size_to_choose(here, suite, project):
    periodic = TRUNK.replace("push:", 'schedule:\n    - cron: "0 3 * * *"').replace("gpu-build", "cuda-build")
    (project / "periodic.yml").write_text(periodic.replace("linux.gpu.4", "linux.cuda.2"))
    ask = ("rightsize", "trunk.yml", *suite, "--config", "distributed", "--periodic", "periodic.yml")
    done = here(*ask, "--option", "all-on-2+all-every-3h", "--apply")
    assert done.returncode == 4
    assert "periodic.yml: the rows of config 'distributed' of job cuda-build run on linux.cuda.2" in done.stderr
    assert (project / "trunk.yml").read_text() == TRUNK
    assert "linux.cuda" not in here(*ask, "--json").stdout


def test_of_several_jobs_of_a_periodic_workflow_the_one_of_the_same_id_has_the_rows(here, suite, project):
    other = TRUNK[TRUNK.index("  gpu-build") :].replace("gpu-build", "cuda-build").replace("gpu.4", "cuda.4")
    (project / "periodic.yml").write_text(TRUNK.replace("push:", 'schedule:\n    - cron: "0 3 * * *"') + other)
    ask = ("rightsize", "trunk.yml", *suite, "--config", "distributed", "--periodic", "periodic.yml")
    done = here(*ask, "--target", "20", "--option", "all-on-2+all-every-3h", "--apply")
    assert done.returncode == 0, done.stderr
    ours, theirs = (project / "periodic.yml").read_text().split("cuda-build")
    assert ours.count("linux.gpu.4") > 3
    assert theirs.count("linux.cuda.4") == 3


def test_rows_of_lanes_that_run_different_tests_say_which_they_are_in_both_files(here, suite, project):
    ask = ("rightsize", "trunk.yml", *suite, "--config", "distributed", "--lane-key", "devices")
    done = here(*ask, "--option", "full-on-2+rest-every-3h", "--periodic", "p.yml", "--diff")
    assert 'runner: "linux.gpu.2", devices: 2 }' in done.stdout
    assert 'runner: "linux.gpu.4", devices: 4 }' in done.stdout
    alike = here(*ask, "--option", "all-on-2+all-every-3h", "--periodic", "p.yml", "--diff")
    assert "devices" not in alike.stdout


def test_tests_that_will_fail_at_every_commit_are_told(here, suite, project):
    rows = json.loads((project / "needs.json").read_text())
    for row in rows[90:]:
        row["profile"] |= {"1": "fail", "2": "fail"}
    (project / "needs.json").write_text(json.dumps(rows))
    ask = ("rightsize", "trunk.yml", *suite, "--config", "distributed", "--periodic", "periodic.yml")
    shown = here(*ask).stdout.splitlines()
    (row,) = (line for line in shown if " all-on-2+all-every-6h" in line)
    assert row[shown[0].index("FAIL") :].split()[0] == "10"
    done = here(*ask, "--option", "all-on-2+all-every-6h", "--diff")
    assert "note: with all-on-2+all-every-6h 10 tests will fail at every commit, for too few devices" in done.stderr


def test_a_periodic_workflow_that_is_made_for_the_rows_has_nothing_to_say_of_its_cron(here, suite, project):
    ask = ("rightsize", "trunk.yml", *suite, "--config", "distributed", "--periodic", "periodic.yml", "--apply")
    assert here(*ask, "--option", "all-on-2+all-every-6h").returncode == 0
    again = here(*ask, "--option", "all-on-2+all-every-6h")
    assert again.returncode == 0
    assert "cron" not in again.stderr
    assert (project / "periodic.yml").read_text().count("- cron") == 1
    less = here(*ask, "--option", "all-on-2+all-every-24h")
    assert "the rows run at each of its crons, '0 0,6,12,18 * * *': figures are for '0 0 * * *'" in less.stderr


@pytest.mark.parametrize("others", ["py: '3.10'|py: '3.12'", "shard: 1/2|shard: 2/2"])
def test_rows_of_a_periodic_workflow_that_cannot_be_edited_get_no_others_beside_them(here, suite, project, others):
    rows = "".join(f"          - {{ config: distributed, {one}, runner: linux.gpu.4 }}\n" for one in others.split("|"))
    head = "on:\n  schedule:\n    - cron: '0 3 * * *'\njobs:\n  t:\n    runs-on: ${{ matrix.runner }}\n    strategy:\n"
    (project / "periodic.yml").write_text(f"{head}      matrix:\n        include:\n{rows}")
    done = here(
        "rightsize", "trunk.yml", *suite, "--config", "distributed", "--option", "all-on-2+all-every-3h",
        "--periodic", "periodic.yml", "--apply",
    )  # fmt: skip
    assert done.returncode == 4, done.stdout
    assert "periodic.yml: the rows of config 'distributed' of job t differ in" in done.stderr
    assert (project / "trunk.yml").read_text() == TRUNK


def test_lanes_that_share_a_config_need_a_key(here, suite, project):
    ask = ("rightsize", "trunk.yml", *suite, "--config", "distributed", "--option", "by-need", "--diff")
    refused = here(*ask)
    assert refused.returncode == 4
    assert "--lane-key devices" in refused.stderr
    done = here(*ask, "--lane-key", "devices")
    assert 'runner: "linux.gpu.1", devices: 1 }' in done.stdout


def test_where_the_periodic_workflow_cannot_be_written_the_other_stays_as_it_was(here, suite, project):
    ask = ("rightsize", "trunk.yml", *suite, "--config", "distributed", "--option", "all-on-2+all-every-3h", "--apply")
    done = here(*ask, "--periodic", "missing/periodic.yml")
    assert done.returncode == 4
    assert "missing/periodic.yml: cannot be written: No such file" in done.stderr
    assert (project / "trunk.yml").read_text() == TRUNK
    same = here(*ask, "--periodic", "./trunk.yml")
    assert same.returncode == 4
    assert "--periodic ./trunk.yml: is the file whose rows are edited too" in same.stderr
    assert (project / "trunk.yml").read_text() == TRUNK
    assert [path.name for path in project.iterdir() if path.name.startswith(".trunk")] == []


def test_a_periodic_workflow_that_no_path_leads_to_is_one_clear_error(here, suite, project):
    (project / "loop.yml").symlink_to("loop.yml")
    (project / "file").write_text("")
    for path, why in (
        ("loop.yml", "Too many levels"), ("x" * 300, "File name too long"), ("file/p.yml", "Not a directory"),
    ):  # fmt: skip
        options = ("--config", "distributed", "--option", "all-on-2+all-every-3h", "--periodic", path, "--apply")
        done = here("rightsize", "trunk.yml", *suite, *options)
        assert done.returncode == 4, done.stderr
        assert f"{path}: cannot be read: {why}" in done.stderr
    assert (project / "trunk.yml").read_text() == TRUNK


def test_a_file_that_is_a_link_stays_one(here, suite, project, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (project / "trunk.yml").rename(tmp_path / "elsewhere" / "real.yml")
    (project / "trunk.yml").symlink_to(tmp_path / "elsewhere" / "real.yml")
    done = here("rightsize", "trunk.yml", *suite, "--config", "distributed", "--option", "all-on-2", "--apply")
    assert done.returncode == 0, done.stderr
    assert (project / "trunk.yml").is_symlink()
    assert (tmp_path / "elsewhere" / "real.yml").read_text().count("linux.gpu.2") == 3


def test_what_no_key_of_the_matrix_says_is_named_with_its_line(here, suite, project):
    text = (
        "jobs:\n  t:\n    runs-on: linux.gpu.4\n    strategy: { matrix: { shard: [1, 2, 3, 4] } }\n    steps:\n"
        "      - run: pytest --splits 4 --group ${{ matrix.shard }}\n"
    )
    (project / "listed.yml").write_text(text)
    done = here("rightsize", "listed.yml", *suite, "--option", "all-on-2", "--target", "25", "--diff")
    assert "+    strategy: { matrix: { shard: [1, 2, 3] } }" in done.stdout
    assert "note: listed.yml:6: says 4, which may be the number of shards: see that it says 3" in done.stderr
    same = here("rightsize", "listed.yml", *suite, "--option", "current", "--diff")
    assert "says 4" not in same.stderr


def test_what_each_row_had_for_itself_is_named_where_rows_are_added(here, suite, project):
    rows = "".join(f"          - {{name: part-{n}, shard: {n}, num_shards: 2, runner: linux.gpu.4}}\n" for n in (1, 2))
    text = f"jobs:\n  t:\n    runs-on: ${{{{ matrix.runner }}}}\n    strategy:\n      matrix:\n        include:\n{rows}"
    (project / "named.yml").write_text(text)
    ask = ("rightsize", "named.yml", *suite, "--runner", "4=linux.gpu.4", "--option", "all-on-4", "--diff")
    note = "note: named.yml: rows that are added say name: part-2, as the last one: give each its own"
    assert note in here(*ask, "--target", "20").stderr
    assert "rows that are added" not in here(*ask, "--target", "1000").stderr


def test_a_runner_that_is_computed_in_part_keeps_that_part_or_it_is_said_that_it_goes(here, suite, project):
    (project / "trunk.yml").write_text(TRUNK.replace('runner: "', 'runner: "${{ inputs.fleet }}'))
    ask = ("rightsize", "trunk.yml", *suite, "--config", "distributed", "--option", "all-on-2", "--diff")
    kept = here(*ask)
    assert kept.stdout.count('+          { config: "distributed"') == 3
    assert kept.stdout.count('"${{ inputs.fleet }}linux.gpu.2"') == 3
    assert "becomes" not in kept.stderr
    gone = here(*ask, "--runner", "2=linux.gpu.2")
    assert "note: trunk.yml: '${{ inputs.fleet }}linux.gpu.4' becomes 'linux.gpu.2'" in gone.stderr


def test_rows_on_several_runners_are_said_to_be_taken_for_one(here, suite, project):
    (project / "trunk.yml").write_text(TRUNK.replace('num_shards: 3, runner: "linux.gpu.4"', "runner: linux.gpu.2", 1))
    done = here("rightsize", "trunk.yml", *suite, "--config", "distributed")
    assert "note: trunk.yml: 2 shards on linux.gpu.4, 1 shard on linux.gpu.2: `current` is taken" in done.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--current", "linux.gpu.4"), "write LABEL:SHARDS"),
        (("--current", "ubuntu-22.04:2"), "say it with --runner N=ubuntu-22.04"),
        (("--current", "big:2"), "say it with --runner N=big"),
        (("--current", "linux-x86-n2-16:2"), "say it with --runner N=linux-x86-n2-16"),
        (("--current", "gpu-pool-2:2"), "say it with --runner N=gpu-pool-2"),
        (("--current", f"g.{'9' * 5000}:2"), "say it with --runner N=g."),
        (("--current", "a100-80:2"), "say it with --runner N=a100-80"),
        (("--runner", "linux"), "write N=LABEL"),
        (("--runner", "²=linux"), "write N=LABEL"),
        (("--current", "linux.gpu.4:²"), "write LABEL:SHARDS"),
        (("--runner", "2=a", "--runner", "2=b", "--current", "a:1"), "two labels of one size"),
        ((), "say which runners there are"),
        (("--current", "g.4:1", "--option", "none"), "--option 'none': there are current, all-on-1"),
        (("--current", "g.4:1", "--period", "0"), "--period must be above 0"),
        (("--current", "g.4:1", "--period", "nan"), "--period must be above 0"),
        (("--current", "g.4:1", "--commits-per-day", "-5"), "--commits-per-day -5: must be a number above 0"),
        (("--current", "g.4:1", "--commits-per-day", "nan"), "--commits-per-day nan: must be a number above 0"),
        (("--current", "g.4:1", "--target", "nan"), "--target nan: must be a number above 0"),
        (("--current", "g.4:1", "--setup", "nan"), "--setup must not be negative"),
        (("--current", "g.4:1", "--setup", "inf"), "--setup inf: must be a number of minutes"),
        (("--current", "g.4:257"), "a matrix has 256 jobs at most"),
        (("--runner", "9" * 5000 + "=g"), "write N=LABEL"),
        (("--current", "g.4:1", "--max-moved", "-3"), "--max-moved must not be negative"),
        (("--runner", "2=g.4", "--runner", "4=g.4", "--current", "g.4:1"), "one label of two sizes"),
        (("--apply",), "say which workflow files"),
        (("--current", "g.4:1", "--lane-key", "a b"), "--lane-key 'a b': a key of a matrix is letters"),
        (("--current", "g.4:1", "--lane-key", ""), "--lane-key '': a key of a matrix is letters"),
        (("trunk.yml",), "say which config: --config default | distributed"),
        (("none.yml", "--config", "x"), "none.yml: cannot be read"),
        (("--current", "g.4:1", "--history", "nowhere"), "there is no history at nowhere"),
        (("--current", "g.4:1", "--history", ""), "--history is empty"),
        (("trunk.yml", "--config", "x"), "no job has rows of config 'x'"),
        (
            ("trunk.yml", "--config", "distributed", "--option", "all-on-2+all-every-3h", "--diff"),
            "--periodic FILE.yml",
        ),
    ],
)
def test_what_is_not_understood_is_one_clear_error(here, suite, options, problem):
    done = here("rightsize", *suite, *options)
    assert done.returncode == 4, done.stdout
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_a_duration_below_nothing_is_refused_by_name(here, suite, project):
    (project / "odd.json").write_text('{"test_1": 3.0, "test_2": -5.0}')
    done = here("rightsize", *suite, "--durations", "odd.json", "--current", "g.4:1")
    assert done.returncode == 4
    assert "odd.json: test_2 takes -5 s: that is no duration" in done.stderr


def test_a_table_without_jobs_is_said_to_have_none(here, suite, project):
    (project / "jobs.csv").write_text("label,created,started,completed,job\n")
    done = here("rightsize", *suite, "--current", "g.4:1", "--jobs", "jobs.csv", "--job", "x*")
    assert done.returncode == 4
    assert "there are no jobs in jobs.csv" in done.stderr


def test_a_history_whose_jobs_name_no_runner_is_not_said_to_have_no_jobs(here, suite, project):
    pytest.importorskip("duckdb")
    (project / "jobs.csv").write_text("commit,time,job,status\na,2026-01-01,unit,success\n")
    assert here("ingest", "jobs.csv", "--history", "h").returncode == 0
    done = here("rightsize", *suite, "--current", "g.4:1", "--history", "h", "--job", "unit")
    assert done.returncode == 4
    assert "h: no job names its runner" in done.stderr


def test_needs_must_be_given_and_be_needs(here, project):
    assert "--needs FILE is missing" in here("rightsize").stderr
    (project / "n.json").write_text('[{"name": 1}]')
    done = here("rightsize", "--needs", "n.json", "--runner", "1=g")
    assert done.returncode == 4
    assert "is not what `sooner needs --json` prints" in done.stderr
    (project / "n.json").write_text('[{"nodeid": "t.py::t", "min": 1, "full": 1, "profile": {"1": "maybe"}}]')
    done = here("rightsize", "--needs", "n.json", "--runner", "1=g")
    assert done.returncode == 4
    assert "Invalid enum value 'maybe'" in done.stderr


def test_queues_are_replayed_where_the_pools_are_understood(here, suite, project):
    with (project / "jobs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["label", "job", "run", "created", "started", "completed"])
        for label, recipe in (("linux.gpu.2", Recipe(days=14, load=0.4)), ("linux.gpu.4", Recipe(days=14, load=0.85))):
            queue, _ = made(recipe, 3)
            for i, row in enumerate(zip(queue.created, queue.started, queue.completed, strict=True)):
                ours = label == "linux.gpu.4" and i % 40 < 3
                writer.writerow([label, "rocm / distributed" if ours else "other", i // 40, *row])
    done = here(
        "rightsize", *suite[:4], "--current", "linux.gpu.4:3", "--runner", "2=linux.gpu.2", "--jobs", "jobs.csv",
        "--job", "*distributed*", "--objective", "time-to-signal", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    options = {one["name"]: one for one in found["options"]}
    assert found["commits_per_day"] > 1
    assert options["all-on-2"]["waiting"]["queue_p90"] < 0.5 * options["all-on-4"]["waiting"]["queue_p90"]
    assert options[found["best"]]["lost"] == []


def test_jobs_that_name_no_run_are_said_to_be_put_together_by_time(here, suite, project):
    with (project / "jobs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["label", "job", "created", "started", "completed"])
        for i in range(60):
            at = 1_760_000_000 + i * 600 + 30 * (i % 2)
            writer.writerow(["linux.gpu.4", "rocm / distributed", at, at + 20, at + 500])
            writer.writerow(["linux.gpu.4", "rocm / distributed", at + 5, at + 25, at + 500])
    options = ("--current", "g.4:3", "--runner", "2=linux.gpu.2", "--jobs", "jobs.csv", "--job", "*distributed*")
    done = here("rightsize", *suite[:4], *options)
    told = "note: 120 jobs of *distributed* name no run: those within a minute count as one, 60 runs in all"
    assert told in done.stderr


def test_a_smaller_runner_on_the_same_nodes_has_a_queue_though_nobody_used_it_yet(here, suite, project):
    recipe = SharedRecipe(days=14, nodes=3, load=0.8, shares={"linux.gpu.1": (1, 0.2), "linux.gpu.4": (4, 0.8)})
    with (project / "jobs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["label", "job", "run", "created", "started", "completed"])
        for label, queue in shared_queues(recipe, shared_tasks(recipe, 3), 3).items():
            for i, row in enumerate(zip(queue.created, queue.started, queue.completed, strict=True)):
                ours = label == "linux.gpu.4" and i % 20 < 6
                writer.writerow([label, "rocm / distributed" if ours else "other", i // 20, *row])
    widths = {"linux.gpu.1": 1, "linux.gpu.2": 2, "linux.gpu.4": 4}
    asked = (
        "rightsize", *suite[:4], "--current", "linux.gpu.4:3", "--runner", "2=linux.gpu.2", "--jobs", "jobs.csv",
        "--job", "*distributed*", "--objective", "time-to-signal", "--pools", "p.json", "--json",
    )  # fmt: skip

    def options(**more):
        (project / "p.json").write_text(json.dumps({"n": {"nodes": 3, "devices": 8, "widths": widths} | more}))
        done = here(*asked)
        assert done.returncode == 0, done.stderr
        return {one["name"]: one for one in json.loads(done.stdout)["options"]}

    found = options()
    assert found["all-on-2"]["waiting"]["queue_p90"] < found["all-on-4"]["waiting"]["queue_p90"]
    refused = options(nodes=30)
    assert refused["all-on-2"]["waiting"] is None
    assert "shares nodes with linux.gpu" in refused["all-on-2"]["refused"]
