"""Workflow files: read as facts, edited in place, everything else byte for byte as it was."""

import json
import re
import textwrap

import pytest

pytest.importorskip("ruamel.yaml")

from hypothesis import given, settings
from hypothesis import strategies as st

from sooner.workflows.crons import cron_every, hours_between
from sooner.workflows.edits import (
    Shards,
    _checked,
    find_lists,
    find_matrix,
    repeated_for,
    with_cron,
    with_listed_shards,
    with_more_rows,
    with_runs_on,
    with_shards,
)
from sooner.workflows.errors import ByHandError, WorkflowError
from sooner.workflows.facts import Style, Where
from sooner.workflows.numbering import fixed_counts, label_key
from sooner.workflows.periodic import new_periodic
from sooner.workflows.reading import read
from sooner.workflows.splices import Splice, written

TRUNK = textwrap.dedent("""\
    # Runs on every commit of main.
    name: trunk

    on:
      push:
        branches:
          - main
        tags: [ "ciflow/trunk/*" ]   # by hand
      workflow_dispatch:

    concurrency:
      group: ${{ github.workflow }}-${{ github.ref_name }}
      cancel-in-progress: true

    permissions: read-all

    jobs:
      llm-td:
        if: github.repository_owner == 'example'
        uses: ./.github/workflows/llm.yml

      # The GPU build.
      linux-rocm-build:
        if: ${{ startsWith(github.event.ref, 'refs/tags/') || github.event_name == 'push' }}
        name: linux-noble-rocm
        uses: ./.github/workflows/_linux-build.yml
        needs: llm-td
        with:
          build-environment: 'linux-noble-rocm'
          sync-tag: rocm-build
          test-matrix: |
            { include: [
              { config: "default", shard: 1, num_shards: 2, runner: "linux.rocm.gpu.gfx950.1" },
              { config: "default", shard: 2, num_shards: 2, runner: "linux.rocm.gpu.gfx950.1", owners: ["m:rocm"] },
              { config: "distributed", shard: 1, num_shards: 3, runner: "linux.rocm.gpu.gfx950.4" },  # wide
              { config: "distributed", shard: 2, num_shards: 3, runner: "linux.rocm.gpu.gfx950.4" },
              { config: "distributed", shard: 3, num_shards: 3, runner: "linux.rocm.gpu.gfx950.4" },
            ]}
        secrets: inherit

      linux-rocm-test:
        permissions:
          id-token: write
        name: linux-noble-rocm
        uses: ./.github/workflows/_rocm-test.yml
        needs:
          - linux-rocm-build
          - llm-td
        with:
          test-matrix: ${{ needs.linux-rocm-build.outputs.test-matrix }}

      # Something else.
      lint:
        runs-on: ubuntu-latest
        steps:
          - run: |
              echo "{ config: distributed }"
    """)

MATRIX = textwrap.dedent("""\
    name: gpu
    on: [push]
    jobs:
      test:
        strategy:
          fail-fast: false
          matrix:
            include:
              - config: distributed   # the wide ones
                shard: 1
                num_shards: 2
                runs: 'gpu-4'
              # between
              - config: distributed
                shard: 2
                num_shards: 2
                runs: 'gpu-4'
              - { config: unit, shard: 1, num_shards: 1, runs: gpu-1 }
        runs-on: ${{ matrix.runs }}
      listed:
        strategy:
          matrix:
            shard: [1, 2, 3]
            num_shards: [3]
        runs-on: [self-hosted, gpu-4]
      blocked:
        strategy:
          matrix:
            gpu:
              - "gpu-4"
            group:
              - 0
              - 1   # last
        runs-on: ${{ matrix.gpu }}
    """)


def rows(workflow, config=None, job=None):
    _, matrix = find_matrix(workflow, config, job)
    return [row.values for row in matrix.of(config)]


def edited(text, config, shards, job=None):
    workflow = read(text, "w.yml")
    its_job, matrix = find_matrix(workflow, config, job)
    return with_shards(workflow, its_job, matrix, config, shards)


def test_a_workflow_is_read_as_facts():
    workflow = read(TRUNK, "trunk.yml")
    assert workflow.name == "trunk"
    assert list(workflow.jobs) == ["llm-td", "linux-rocm-build", "linux-rocm-test", "lint"]
    test = workflow.jobs["linux-rocm-test"]
    assert test.needs == ("linux-rocm-build", "llm-td")
    assert test.unreadable == ("with.test-matrix",)
    assert workflow.jobs["linux-rocm-build"].needs == ("llm-td",)
    assert [spot.value for spot in workflow.jobs["lint"].runs_on] == ["ubuntu-latest"]
    (matrix,) = workflow.jobs["linux-rocm-build"].matrices
    assert (matrix.where, matrix.style, len(matrix.rows)) == (Where.TEST_MATRIX, Style.FLOW, 5)
    row = matrix.rows[2]
    assert row.values == {"config": "distributed", "shard": 1, "num_shards": 3, "runner": "linux.rocm.gpu.gfx950.4"}
    assert workflow.slice(row.cells["runner"].span) == '"linux.rocm.gpu.gfx950.4"'


def test_the_change_of_pull_request_177085_touches_three_labels_and_nothing_else():
    new = edited(TRUNK, "distributed", [Shards(label="linux.rocm.gpu.gfx950.2", count=3)])
    assert new.text == TRUNK.replace("gfx950.4", "gfx950.2")


def test_its_periodic_part_is_a_new_workflow_of_the_same_jobs_by_the_clock():
    new = new_periodic(
        read(TRUNK, "trunk.yml"), "periodic-rocm.yml", name="periodic-rocm", cron=cron_every(3),
        job_id="linux-rocm-build", config="distributed", shards=[Shards(label="linux.rocm.gpu.gfx950.4", count=3)],
    )  # fmt: skip
    assert [spot.value for spot in new.crons] == ["0 0,3,6,9,12,15,18,21 * * *"]
    assert list(new.jobs) == ["llm-td", "linux-rocm-build", "linux-rocm-test"]
    assert [row["runner"] for row in rows(new)] == ["linux.rocm.gpu.gfx950.4"] * 3
    assert "# wide" in new.text
    assert "# Something else" not in new.text
    assert new.jobs["linux-rocm-test"].needs == ("linux-rocm-build", "llm-td")


@pytest.mark.parametrize(
    ("jobs", "why"),
    [
        ("{ t: { runs-on: x.4, strategy: { matrix: { include: [{ config: d }] } } } }", "jobs"),
        (
            "\n  a:\n    env: &e { A: 1 }\n  t:\n    env: *e\n    strategy: { matrix: { include: [{ config: d }] } }",
            "alias",
        ),
    ],
)
def test_jobs_that_cannot_stand_alone_are_an_error_about_the_file_that_is_there(jobs, why):
    source = read(f"on: push\njobs: {jobs}\n", "w.yml")
    with pytest.raises(WorkflowError, match=rf"^w.yml: the jobs of t make no .*{why}.*: write p.yml by hand"):
        new_periodic(source, "p.yml", name="p", cron=cron_every(3), job_id="t", config="d", shards=[])


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_what_holds_for_all_jobs_holds_for_those_of_a_periodic_workflow_too(newline):
    settings = (
        "permissions:   # of the token\n  id-token: write\n\n  contents: read",
        "env: { WIDE: 'yes' }",
        "defaults:\n  run:\n    shell: bash -l {0}",
    )
    text = TRUNK.replace("permissions: read-all\n", "\n# Why.\n".join(settings) + "   # of all\n")
    text = text.replace("\n", newline)
    new = new_periodic(
        read(text, "trunk.yml"), "periodic.yml", name="periodic", cron=cron_every(3), job_id="linux-rocm-build",
        config="distributed", shards=[Shards(label="linux.rocm.gpu.gfx950.4", count=3)],
    )  # fmt: skip
    assert [new.slice(span) for span in new.settings] == [one.replace("\n", newline) for one in settings]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_lines_of_a_script_that_look_like_comments_stay_where_a_job_or_what_holds_for_all_ends_with_them(newline):
    env = "env:\n  NOTES: |\n    # Title\n    text\n    # End"
    script = "    steps:\n      - run: |\n          cat <<EOF\n          # Only this\n          EOF\n          # done\n"
    text = TRUNK.replace("permissions: read-all\n", f"{env}\n\n# Why.\n")
    text = text.replace("/llm.yml\n\n", f"/llm.yml\n{script}\n").replace("\n", newline)
    new = new_periodic(
        read(text, "trunk.yml"), "periodic.yml", name="periodic", cron=cron_every(3), job_id="linux-rocm-build",
        config="distributed", shards=[Shards(label="linux.rocm.gpu.gfx950.4", count=3)],
    )  # fmt: skip
    assert f"{env}\n\njobs:".replace("\n", newline) in new.text
    assert script.replace("\n", newline) in new.text
    assert "# The GPU build." not in new.text


@pytest.mark.parametrize(
    "env",
    [
        "env:\n  A: &a x   # named\n  B: *a",
        "env:\n  A: &a |\n    x\n\n  # and\n  B:   *a",
        "env:\n  A: &a x\n  B: *a\n\ndefaults:\n  run: { shell: bash }",
    ],
)
def test_what_holds_for_all_jobs_is_whole_where_it_ends_with_the_alias_of_an_anchor(env):
    text = TRUNK.replace("permissions: read-all\n", f"{env}   # last\n\n# Why.\n")
    new = new_periodic(
        read(text, "trunk.yml"), "periodic.yml", name="periodic", cron=cron_every(3), job_id="linux-rocm-build",
        config="distributed", shards=[Shards(label="linux.rocm.gpu.gfx950.4", count=3)],
    )  # fmt: skip
    assert f"\n\n{env}\n\njobs:" in new.text


def test_a_comment_with_a_colon_below_the_id_of_a_job_stays_with_it_in_a_periodic_workflow():
    text = TRUNK.replace("  linux-rocm-build:\n", "  linux-rocm-build:\n    # Note: this takes an hour.\n")
    text = text.replace("  linux-rocm-test:\n", "  linux-rocm-test:\n    # Why: it is the widest.\n")
    new = new_periodic(
        read(text, "trunk.yml"), "periodic.yml", name="periodic", cron=cron_every(3), job_id="linux-rocm-build",
        config="distributed", shards=[Shards(label="linux.rocm.gpu.gfx950.4", count=3)],
    )  # fmt: skip
    assert list(new.jobs) == ["llm-td", "linux-rocm-build", "linux-rocm-test"]
    assert new.text.count("linux-rocm-test:\n    # Why: it is the widest.\n") == 1


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_rows_are_added_and_removed_behind_the_others(count, newline):
    text = TRUNK.replace("\n", newline)
    new = edited(text, "distributed", [Shards(label="x.2", count=count)])
    assert [row["shard"] for row in rows(new, "distributed")] == list(range(1, count + 1))
    assert {(row["num_shards"], row["runner"]) for row in rows(new, "distributed")} == {(count, "x.2")}
    mine = re.compile(r".*config: \"distributed\".*\n")
    assert mine.sub("", new.text) == mine.sub("", text)
    assert new.text.count("\r") == (new.text.count("\n") if newline == "\r\n" else 0)


def test_rows_that_share_a_config_can_be_told_apart_by_a_key():
    lanes = [Shards(label="x.1", count=1, more={"devices": 1}), Shards(label="x.4", count=2, more={"devices": 4})]
    new = edited(TRUNK, "distributed", lanes)
    assert [(r["runner"], r["shard"], r["num_shards"], r["devices"]) for r in rows(new, "distributed")] == [
        ("x.1", 1, 1, 1), ("x.4", 1, 2, 4), ("x.4", 2, 2, 4),
    ]  # fmt: skip


@pytest.mark.parametrize("key", ["runner", "config", "shard", "num_shards"])
def test_a_key_by_which_rows_say_something_else_does_not_tell_lanes_apart(key):
    lanes = [Shards(label=f"x.{n}", count=1, more={key: n}) for n in (1, 4)]
    with pytest.raises(WorkflowError, match=f"say something else by {key!r}: name another key with --lane-key"):
        edited(TRUNK, "distributed", lanes)
    workflow = read(TRUNK, "w.yml")
    job, matrix = find_matrix(workflow, "distributed")
    with pytest.raises(WorkflowError, match=f"say something else by {key!r}"):
        with_more_rows(workflow, job, matrix, "new", lanes)


def test_rows_in_braces_of_a_list_in_block_style_get_a_key_within_their_braces():
    workflow = read(MATRIX, "w.yml")
    job, matrix = find_matrix(workflow, "unit")
    lanes = [Shards(label="gpu-1", count=1, more={"devices": 1}), Shards(label="gpu-2", count=1, more={"devices": 2})]
    new = with_shards(workflow, job, matrix, "unit", lanes)
    for devices in (1, 2):
        row = f"{{ config: unit, shard: 1, num_shards: 1, runs: gpu-{devices}, devices: {devices} }}"
        assert f"- {row}" in new.text


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_rows_of_a_strategy_in_block_style_keep_quotes_and_comments(count):
    workflow = read(MATRIX, "w.yml")
    job, matrix = find_matrix(workflow, "distributed")
    assert label_key(job, matrix) == "runs"
    new = with_shards(workflow, job, matrix, "distributed", [Shards(label="gpu-2", count=count)])
    assert [row["runs"] for row in rows(new, "distributed")] == ["gpu-2"] * count
    assert new.text.count("runs: 'gpu-2'") == count
    assert "# the wide ones" in new.text
    assert "# between" in new.text
    assert "- { config: unit, shard: 1, num_shards: 1, runs: gpu-1 }" in new.text


@pytest.mark.parametrize("count", [1, 2, 4, 6])
def test_lists_of_shards_are_made_longer_and_shorter(count):
    with pytest.raises(WorkflowError, match="no job has a matrix"):  # two labels: nobody knows which is the size
        find_lists(read(MATRIX.replace("[self-hosted, gpu-4]", "[rack-b, gpu-4]"), "w.yml"), "listed")
    workflow = read(MATRIX.replace("[self-hosted, gpu-4]", "gpu-4"), "w.yml")
    job, matrix, key = find_lists(workflow, "listed")
    new = with_listed_shards(workflow, job, matrix, key, Shards(label="gpu-2", count=count))
    found = new.jobs["listed"].matrices[0]
    assert [spot.value for spot in found.lists["shard"]] == list(range(1, count + 1))
    assert [spot.value for spot in found.lists["num_shards"]] == [count]
    assert [spot.value for spot in new.jobs["listed"].runs_on] == ["gpu-2"]


def test_labels_that_every_own_runner_has_do_not_hide_the_one_that_names_a_size():
    workflow = read(MATRIX.replace("[self-hosted, gpu-4]", "[self-hosted, Linux, X64, gpu-4]"), "w.yml")
    new = with_listed_shards(workflow, *find_lists(workflow, "listed"), Shards(label="gpu-2", count=2))
    assert [spot.value for spot in new.jobs["listed"].runs_on] == ["self-hosted", "Linux", "X64", "gpu-2"]


CROSSED = """
on: push
jobs:
  gpu:
    runs-on: ${{ matrix.runner }}
    strategy:
      matrix:
        runner: [gpu-4]
        shard: [1, 2, 3]
        py: ["3.10", "3.12"]
"""


def test_rows_beside_lists_that_github_multiplies_are_not_edited():
    text = f"{CROSSED}        include:\n          - {{ runner: gpu-4, py: '3.13', shard: 1 }}\n"
    with pytest.raises(ByHandError, match=r"gpu has lists \(runner, shard, py\) beside its `include` rows"):
        find_matrix(read(text, "w.yml"), None)


def test_a_list_that_is_computed_multiplies_too():
    computed = "      matrix:\n        py: ${{ fromJSON(inputs.py) }}\n"
    rows_beside = sharded("{config: d, shard: 1, num_shards: 1, runner: x.4}").replace("      matrix:\n", computed)
    with pytest.raises(ByHandError, match=r"t has lists \(py\) beside its `include` rows"):
        find_matrix(read(rows_beside, "w.yml"), "d")
    listed = CROSSED.replace("      matrix:\n", computed.replace("py:", "arch:"))
    assert repeated_for(*find_lists(read(listed, "w.yml"))) == ["py (2)", "arch (computed)"]
    alone = sharded().replace("include:\n", "py: ${{ fromJSON(inputs.py) }}")
    assert read(alone, "w.yml").jobs["t"].unreadable == ("strategy.matrix",)


def test_a_list_of_shards_of_which_some_are_left_out_is_not_edited():
    text = f"{CROSSED}        exclude:\n          - {{ py: '3.10', shard: 2 }}\n"
    with pytest.raises(ByHandError, match=r"gpu leaves out shards \(`exclude`\)"):
        find_lists(read(text, "w.yml"))


def test_lists_for_each_of_whose_values_all_shards_run_are_named():
    assert repeated_for(*find_lists(read(CROSSED, "w.yml"))) == ["py (2)"]


def test_lists_in_block_style_begin_with_what_they_began_with():
    workflow = read(MATRIX, "w.yml")
    job, matrix, key = find_lists(workflow, "blocked")
    new = with_listed_shards(workflow, job, matrix, key, Shards(label="gpu-2", count=4))
    lists = new.jobs["blocked"].matrices[0].lists
    assert [spot.value for spot in lists["group"]] == [0, 1, 2, 3]
    assert [spot.value for spot in lists["gpu"]] == ["gpu-2"]
    assert '- "gpu-2"' in new.text
    assert "- 1   # last" in new.text


@pytest.mark.parametrize("quote", ["'", '"'])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_numbers_of_shards_that_are_text_stay_text(quote, count):
    text = MATRIX.replace("[1, 2, 3]", f"[{quote}1{quote}, {quote}2{quote}]").replace("[3]", f"[{quote}3{quote}]")
    for number in (1, 2):
        text = text.replace(f"shard: {number}\n", f"shard: {quote}{number}{quote}\n")
        text = text.replace(f"num_shards: {number}\n", f"num_shards: {quote}{number}{quote}\n")
    workflow = read(text, "w.yml")
    new = with_shards(
        workflow, *find_matrix(workflow, "distributed"), "distributed", [Shards(label="gpu-2", count=count)]
    )
    numbers = [(row["shard"], row["num_shards"]) for row in rows(new, "distributed")]
    assert numbers == [(str(number), str(count)) for number in range(1, count + 1)]
    workflow = read(text.replace("[self-hosted, gpu-4]", "gpu-4"), "w.yml")
    job, matrix, key = find_lists(workflow, "listed")
    lists = (
        with_listed_shards(workflow, job, matrix, key, Shards(label="gpu-2", count=count))
        .jobs["listed"]
        .matrices[0]
        .lists
    )
    assert [spot.value for spot in lists["shard"]] == [str(number) for number in range(1, count + 1)]
    assert [spot.value for spot in lists["num_shards"]] == [str(count)]


@pytest.mark.parametrize(
    ("shards", "runs_on", "problem"),
    [
        ("[]", "x.4", "no job has a matrix with rows, or with a list of shards"),
        ("[[1], [2]]", "x.4", "no job has a matrix with rows, or with a list of shards"),
        ("[1, 2]", "${{ fromJSON(matrix.runner) }}", "no job has a matrix with rows, or with a list of shards"),
        ("[1, 3, 5]", "x.4", "the shards of job t do not follow each other"),
    ],
)
def test_a_list_that_is_not_the_shards_of_one_runner_is_refused(shards, runs_on, problem):
    text = f"jobs:\n  t:\n    runs-on: {runs_on}\n    strategy: {{ matrix: {{ shard: {shards} }} }}\n"
    with pytest.raises(WorkflowError, match=problem):
        find_lists(read(text, "w.yml"))


def test_a_list_of_shards_that_are_no_numbers_is_refused():
    workflow = read(MATRIX.replace("[1, 2, 3]", "['1/2', '2/2']").replace("[self-hosted, gpu-4]", "gpu-4"), "w.yml")
    job, matrix, key = find_lists(workflow, "listed")
    with pytest.raises(WorkflowError, match="would not give the shards"):
        with_listed_shards(workflow, job, matrix, key, Shards(label="gpu-2", count=1))


def test_a_label_of_runs_on_is_replaced():
    new = with_runs_on(read(TRUNK, "w.yml"), "lint", "ubuntu-latest", "ubuntu-24.04")
    assert new.text == TRUNK.replace("ubuntu-latest", "ubuntu-24.04")


def test_other_labels_of_runs_on_stay():
    new = with_runs_on(read(MATRIX, "w.yml"), "listed", "gpu-4", "gpu-2")
    assert new.text == MATRIX.replace("[self-hosted, gpu-4]", "[self-hosted, gpu-2]")
    with pytest.raises(WorkflowError, match="job listed does not run on 'gpu-8'"):
        with_runs_on(new, "listed", "gpu-8", "gpu-2")


def test_rows_in_block_style_get_a_key_on_a_line_of_its_own():
    new = edited(MATRIX, "distributed", [Shards(label="gpu-4", count=2, more={"devices": 4})])
    line = "            runs: 'gpu-4'\n"
    assert new.text == MATRIX.replace(line, f"{line}            devices: 4\n")


def test_a_row_in_block_style_comes_right_behind_the_last_one():
    text = MATRIX.replace("num_shards: 2", "num_shards: 3")
    second = text[text.index("- config: distributed\n            shard: 2") : text.index("          - { config: unit")]
    third = f"          {second.replace('shard: 2', 'shard: 3')}"
    new = edited(text, "distributed", [Shards(label="gpu-4", count=3)])
    assert new.text == text.replace(second, second + third)


@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_matrix_in_quotes_is_edited_where_nothing_in_it_is_escaped(quote):
    other = {"'": '"', '"': "'"}[quote]
    text = f"""jobs:
      a:
        with:
          test-matrix: {quote}{{ include: [ {{ config: {other}wide{other}, runner: x.4, why: is it }} ]}}{quote}
    """
    assert edited(text, "wide", [Shards(label="x.2", count=1)]).text == text.replace("x.4", "x.2")
    escaped = text.replace("is it", "it''s" if quote == "'" else "\\x69s")
    with pytest.raises(WorkflowError, match=r"computed when it runs: a"):
        edited(escaped, "wide", [Shards(label="x.2", count=1)])


def test_the_labels_of_a_group_of_runners_are_labels():
    text = "jobs:\n  a:\n    runs-on:\n      group: large\n      labels: [gpu-4, linux]\n  b: none\n"
    assert with_runs_on(read(text, "w.yml"), "a", "gpu-4", "gpu-2").text == text.replace("gpu-4", "gpu-2")


def test_a_periodic_workflow_of_a_job_that_needs_one_that_is_not_there_is_one_clear_error():
    shards = [Shards(label="x", count=1)]
    with pytest.raises(WorkflowError, match="a job needs 'llm-td', which is not there"):
        new_periodic(
            read(TRUNK.replace("  llm-td:\n", "  renamed:\n"), "trunk.yml"), "p.yml", name="p", cron=cron_every(3),
            job_id="linux-rocm-build", config="distributed", shards=shards,
        )  # fmt: skip


def test_rows_that_are_numbered_say_how_many_there_are_only_where_each_lane_has_numbers_of_its_own():
    told = [f"{{config: d, shard: {number}, runner: x.4}}" for number in (1, 2, 3)]
    text = sharded(*told[:2])
    assert edited(text, "d", [Shards(label="x.4", count=3)]).text == sharded(*told)
    lanes = [Shards(label="x.1", count=1, more={"devices": 1}), Shards(label="x.4", count=2, more={"devices": 4})]
    assert [row["num_shards"] for row in rows(edited(text, "d", lanes), "d")] == [1, 2, 2]


def test_a_row_without_shards_is_numbered_where_it_becomes_several():
    text = "jobs:\n  a:\n    strategy:\n      matrix:\n        include:\n          - { config: wide, runner: x }\n"
    assert rows(edited(text, "wide", [Shards(label="y", count=1)])) == [{"config": "wide", "runner": "y"}]
    assert rows(edited(text, "wide", [Shards(label="y", count=2)])) == [
        {"config": "wide", "runner": "y", "shard": 1, "num_shards": 2},
        {"config": "wide", "runner": "y", "shard": 2, "num_shards": 2},
    ]


SHARDED = """on: push
jobs:
  t:
    strategy:
      matrix:
        include:
{rows}
    runs-on: ${{{{ matrix.runner }}}}
    steps: []
"""


def sharded(*rows):
    return SHARDED.format(rows="\n".join(f"          - {row}" for row in rows))


def test_a_row_that_becomes_lanes_of_which_one_has_several_shards_is_numbered_in_all_of_them():
    text = sharded("{config: d, runner: x.4}")
    lanes = [Shards(label="x.1", count=1, more={"devices": 1}), Shards(label="x.2", count=2, more={"devices": 2})]
    new = edited(text, "d", lanes)
    numbers = [(row["runner"], row["shard"], row["num_shards"]) for row in rows(new, "d")]
    assert numbers == [("x.1", 1, 1), ("x.2", 1, 2), ("x.2", 2, 2)]
    assert edited(new.text, "d", lanes).text == new.text


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_file_whose_lines_end_in_two_ways_keeps_the_end_of_each(count):
    told = [f"{{config: d, shard: {number}, num_shards: 2, runner: x.4}}" for number in (1, 2)]
    text = sharded(*told).replace("\n", "\r\n", 3)
    assert "x.4}\n" in text
    lines = edited(text, "d", [Shards(label="x.4", count=count)]).text.splitlines(keepends=True)
    assert len(lines) == len(text.splitlines()) + count - 2
    assert [line for line in lines if "x.4" not in line] == [
        line for line in text.splitlines(keepends=True) if "x.4" not in line
    ]
    assert not any("\r" in line for line in lines if "x.4" in line)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize(("number", "total"), [("group", "total"), ("shard_id", "num-shards"), ("split", "splits")])
def test_rows_are_numbered_by_the_keys_that_number_them(number, total, count):
    each = f"{{config: d, {number}: %s, {total}: 3, runner: x.4}}"
    found = rows(edited(sharded(*(each % n for n in (1, 2, 3))), "d", [Shards(label="x.2", count=count)]))
    assert found == [{"config": "d", number: n + 1, total: count, "runner": "x.2"} for n in range(count)]


@pytest.mark.parametrize("number", ["", "shard: 1, num_shards: 1, "])
def test_the_same_shards_on_two_kinds_of_runner_are_not_taken_for_more_shards(number):
    text = sharded(f"{{config: d, {number}runner: nv.4}}", f"{{config: d, {number}runner: amd.4}}")
    with pytest.raises(ByHandError, match=r"run the same shards on nv\.4 and on amd\.4"):
        edited(text, "d", [Shards(label="nv.2", count=2)])
    lanes = [Shards(label=f"x.{n}", count=1, more={"devices": n}) for n in (1, 2)]
    lanes_text = sharded(*(f"{{config: d, {number}runner: nv.{n}, devices: {n}}}" for n in (2, 4)))
    assert [row["runner"] for row in rows(edited(lanes_text, "d", lanes), "d")] == ["x.1", "x.2"]


def test_rows_that_are_numbered_from_0_stay_so():
    text = sharded(*(f"{{config: d, shard: {n}, num_shards: 2, runner: x.4}}" for n in (0, 1)))
    assert [row["shard"] for row in rows(edited(text, "d", [Shards(label="x.2", count=3)]))] == [0, 1, 2]


@pytest.mark.parametrize(
    ("each", "key"),
    [
        (["py: '3.10', shard: 1", "py: '3.10', shard: 2", "py: '3.12', shard: 1", "py: '3.12', shard: 2"], "py"),
        (["path: tests/core", "path: tests/wide"], "path"),
        (["shard: 1, path: tests/core", "shard: 2, path: tests/wide"], "path"),
        (["shard: 1/2", "shard: 2/2"], "shard"),
        (["more: [a]", "more: [b]"], "more"),
        (["group: 3", "group: 7"], "group"),
    ],
)
def test_rows_that_are_not_shards_of_the_same_tests_are_not_edited(each, key):
    text = sharded(*(f"{{config: d, {one}, runner: x.4}}" for one in each))
    for count in (1, 2, 4):
        with pytest.raises(ByHandError, match=f"differ in {key}: they are not shards of the same tests"):
            edited(text, "d", [Shards(label="x.2", count=count)])


def test_a_number_that_is_no_place_among_shards_stays():
    text = sharded("{config: d, group: 3, runner: x.4}")
    assert edited(text, "d", [Shards(label="x.2", count=1)]).text == text.replace("x.4", "x.2")


def test_a_runner_that_is_a_list_in_its_row_is_not_edited():
    for written_out in ("runner: [self-hosted, x.4]}", '"runner": {"group": "x.4"}}'):
        with pytest.raises(WorkflowError, match=r"w.yml:7: 'runner' is no single value in this row"):
            edited(sharded(f"{{config: d, {written_out}"), "d", [Shards(label="x.2", count=2)])


def test_a_runner_that_is_json_as_text_stays_json():
    text = sharded('{config: d, runner: \'["own", "x.4"]\'}').replace("matrix.runner", "fromJSON(matrix.runner)")
    with pytest.raises(ByHandError, match=re.escape('the runner of job t is JSON: ["own", "x.4"]; name it and others')):
        edited(text, "d", [Shards(label="x.2", count=1)])
    new = edited(text, "d", [Shards(label='["own", "x.2"]', count=1)])
    assert new.text == text.replace("x.4", "x.2")


def test_the_runner_of_rows_that_do_not_name_it_is_that_of_the_job():
    text = sharded("{config: d, shard: 1}", "{config: d, shard: 2}").replace("${{ matrix.runner }}", "x.4")
    assert edited(text, "d", [Shards(label="x.2", count=2)]).text == text.replace("x.4", "x.2")
    for shared in (
        text.replace("x.4", "x.${{ matrix.n }}"),
        text.replace("shard: 2}", "shard: 2}\n          - {a: b}"),
    ):
        with pytest.raises(ByHandError, match=r"the rows of job t do not name the runner"):
            edited(shared, "d", [Shards(label="x.2", count=1)])
    with pytest.raises(ByHandError, match=r"the rows of job t do not name the runner"):
        edited(text, "d", [Shards(label="x.2", count=1), Shards(label="x.1", count=1)])


def test_keys_that_are_added_to_a_matrix_that_is_json_are_quoted():
    text = 'jobs:\n  a:\n    with:\n      test-matrix: |\n        {"include": [{"config": "w", "runner": "x"}]}\n'
    lanes = [Shards(label="y", count=1, more={"lane": "a"}), Shards(label="z", count=1, more={"lane": "b"})]
    found = json.loads(edited(text, "w", lanes).text.partition("|")[2])
    assert found["include"] == [
        {"config": "w", "runner": "y", "lane": "a"},
        {"config": "w", "runner": "z", "lane": "b"},
    ]


@pytest.mark.parametrize("last", ["cmd: |\n a\n b\n", "cmd: >-\n a", "cmd:", "cmd:   # why", "cmd: a\n b   # why"])
@pytest.mark.parametrize("behind", ["", "\n\n          # about e\n          - {config: e, runner: x.4}"])
def test_keys_come_behind_whatever_a_row_ends_with(last, behind):
    row = "config: d\n            runner: x.4\n            " + last.replace("\n ", "\n              ")
    text = sharded(row + behind)
    new = edited(text, "d", [Shards(label="x.2", count=2)])
    (cmd,) = {row["cmd"] for row in rows(read(text, "w.yml"), "d")}
    assert rows(new, "d") == [{"config": "d", "runner": "x.2", "cmd": cmd, "shard": n, "num_shards": 2} for n in (1, 2)]
    assert [line for line in text.replace("x.4", "x.2", 1).splitlines() if line not in new.text.splitlines()] == []


def test_a_value_that_is_not_written_is_written_behind_its_colon():
    text = sharded("config: d\n            runner:   # any\n            more: 1")
    assert edited(text, "d", [Shards(label="x.2", count=1)]).text == text.replace("runner: ", "runner: x.2 ")


def test_tabs_that_only_separate_are_read_and_stay():
    text = "jobs:\t# a\n  a:\n    strategy:\n\t\n      matrix:\n        include:\t\n"
    text += "          - {config: d, runner: x.4}\t# b\n          - {config: e, runner: x.4}\t\n"
    assert edited(text, "d", [Shards(label="x.2", count=1)]).text == text.replace("x.4}\t# b", "x.2}\t# b")


def test_a_file_that_names_a_key_twice_is_refused_as_github_does():
    with pytest.raises(WorkflowError, match=r"w.yml:4: names 'a' twice in one mapping"):
        read("jobs:\n  a:\n    runs-on: x\n  a:\n    runs-on: y\n", "w.yml")


def test_lines_that_say_in_digits_how_many_shards_there_are_are_found():
    steps = ["pytest --splits 4 --group ${{ matrix.shard }}", "pytest -n 4", "part ${{ matrix.shard }} of 4", "a 14"]
    text = CROSSED.replace("[1, 2, 3]", "[1, 2, 3, 4]") + "    env: { NUM_SHARDS: 4 }\n    steps:\n"
    workflow = read(text + "".join(f"      - run: {step}\n" for step in steps), "w.yml")
    job, matrix, key = find_lists(workflow)
    lines = [workflow.text.splitlines()[n - 1].strip() for n in fixed_counts(workflow, job, matrix, [key], 4)]
    assert lines == ["env: { NUM_SHARDS: 4 }", f"- run: {steps[0]}", f"- run: {steps[2]}"]


def test_a_row_that_is_added_on_the_line_of_others_changes_nothing_of_them():
    row = "{ config: w, shard: 1, num_shards: 3, big: True, more: ~, runner: x }"
    text = f"jobs:\n  a:\n    with:\n      test-matrix: |\n        {{ include: [\n        {row}, {row}\n        ]}}\n"
    first, second, third = (row.replace("shard: 1", f"shard: {n}") for n in (1, 2, 3))
    assert edited(text, "w", [Shards(label="x", count=3)]).text == text.replace(
        f"{row}, {row}", f"{first}, {second}, {third}"
    )


@pytest.mark.parametrize(
    ("layout", "left"),
    [
        ("1, 2,\n3\n", "1,\n"),
        ("1, 2,\n3,\nb\n", "1,\nb\n"),
        ("1, 2, 3,\nb\n", "1, b\n"),
        ("1,\n2, 3,\nb\n", "1,\nb\n"),
        ("1,\n2, 3 ", "1 "),
        ("b, 1, 2,\n3 ", "b, 1 "),
        ("1, b, 2,\n3 ", "1, b "),
        ("1,\n2,\n3, b ", "1,\nb "),
        ("1,\n2,\n3 ", "1,\n "),
    ],
)
def test_of_rows_that_share_lines_those_that_are_left_stay_as_they_were(layout, left):
    words = {n: f"{{ config: w, num_shards: 1, shard: {n}, runner: x }}" for n in "123"}
    words["b"] = "{ config: other, shard: 1, runner: x }"
    spell = re.compile("[123b]")
    head = "jobs:\n  a:\n    uses: b\n    with:\n      test-matrix: |\n        { include: ["

    def written_out(text):
        rows = spell.sub(lambda n: words[n[0]], f"\n{text}]}}\n")
        return head + re.sub(r"\n(?!\Z)", "\n        ", rows)

    before, after = written_out(layout), written_out(left)
    assert edited(before, "w", [Shards(label="x", count=1)]).text == after


def test_an_edit_that_would_do_anything_else_changes_nothing():
    workflow = read(MATRIX, "w.yml")
    job, matrix = find_matrix(workflow, "unit")
    rest = [row.values for row in matrix.rows]
    other, own = workflow.jobs["listed"].runs_on[1], matrix.rows[2].cells["runs"]
    for spot, text in ((other, "gpu-8"), (own, "gpu-8"), (own, "[")):
        with pytest.raises(WorkflowError, match=r"nothing was changed|is no YAML"):
            _checked(workflow, [Splice(spot.span, text)], job, matrix, rest)
    assert _checked(workflow, [], job, matrix, rest) == workflow


@pytest.mark.parametrize("head", ["|   # { of all } shards", ">-   # { of all } shards", "|\n\n        # { include"])
def test_braces_of_a_comment_before_a_matrix_are_not_its_own(head):
    text = TRUNK.replace("test-matrix: |", f"test-matrix: {head}")
    text = text.replace("  # wide", "")
    new = edited(text, "distributed", [Shards(label="linux.rocm.gpu.gfx950.2", count=3)])
    assert new.text == text.replace("gfx950.4", "gfx950.2")


def test_a_config_that_a_matrix_did_not_have_is_added_behind_its_rows():
    workflow = read(TRUNK, "w.yml")
    job, matrix = find_matrix(workflow, None)
    new = with_more_rows(workflow, job, matrix, "wide", [Shards(label="x.8", count=2)])
    assert rows(new, "wide") == [
        {"config": "wide", "shard": 1, "num_shards": 2, "runner": "x.8"},
        {"config": "wide", "shard": 2, "num_shards": 2, "runner": "x.8"},
    ]
    assert rows(new, "distributed") == rows(workflow, "distributed")


@pytest.mark.parametrize(("row", "missing"), [("{config: slow, shard: 1}", "runner"), ("{runner: x.1}", "config")])
def test_rows_are_not_added_beside_one_that_does_not_say_what_they_must(row, missing):
    workflow = read(sharded(row), "w.yml")
    job, matrix = find_matrix(workflow, None)
    with pytest.raises(ByHandError, match=f"the last row of job t has no `{missing}`: add rows of config 'd' by hand"):
        with_more_rows(workflow, job, matrix, "d", [Shards(label="x.4", count=2)])


@pytest.mark.parametrize(
    "on",
    [
        "on:\n  schedule:\n    - cron: 0 1 * * *   # nightly\n  push:\n",
        'on:\n  schedule:\n  - cron: "0 1 * * *"\n',
        "on:\n  push:\n    branches: [main]\n",
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_cron_is_added_once(on, newline):
    text = f"name: x\n{on}jobs:\n  a:\n    runs-on: b\n".replace("\n", newline)
    once = with_cron(read(text, "w.yml"), "0 */6 * * *")
    assert "0 */6 * * *" in [spot.value for spot in once.crons]
    assert with_cron(once, "0 */6 * * *").text == once.text
    added = [line for line in once.text.splitlines() if line not in text.splitlines()]
    assert [line for line in text.splitlines() if line not in once.text.splitlines()] == []
    assert len(added) <= 2
    assert once.text.count("\r\n") == (once.text.count("\n") if newline == "\r\n" else 0)


@pytest.mark.parametrize(
    "there", ["15 */6 * * *", "0 0,6,12,18 * * *", "7 5-23/6 * * *", "0 1,7-19/6 * * *", "0 */3 * * *", "5 * * * *"]
)
def test_a_workflow_that_runs_as_often_or_oftener_already_gets_no_second_cron(there):
    workflow = read(f"on:\n  schedule:\n    - cron: {there}\njobs: {{ t: {{ uses: x }} }}\n", "w.yml")
    assert with_cron(workflow, cron_every(6)) is workflow


def test_a_cron_comes_behind_all_that_the_last_one_says():
    item = "    - cron: '0 1 * * *'\n      timezone: Europe/Berlin   # theirs\n"
    text = f"on:\n  schedule:\n{item}\n  push:\njobs: {{ t: {{ uses: x }} }}\n"
    more = f"{item}    - cron: '0 */6 * * *'\n"
    assert with_cron(read(text, "w.yml"), "0 */6 * * *").text == text.replace(item, more)


@pytest.mark.parametrize("on", ["[push]", "{ push: }", "\n  schedule: [{ cron: 0 2 * * * }]"])
def test_a_cron_that_cannot_be_added_is_an_error_that_says_what_to_do(on):
    with pytest.raises(WorkflowError, match="add `- cron: "):
        with_cron(read(f"on: {on}\njobs:\n  a:\n    runs-on: b\n", "w.yml"), "0 */6 * * *")


@pytest.mark.parametrize(("hours", "cron"), [(1, "0 * * * *"), (3, "0 0,3,6,9,12,15,18,21 * * *"), (24, "0 0 * * *")])
def test_hours_as_cron(hours, cron):
    assert cron_every(hours) == cron


@pytest.mark.parametrize("hours", [5, 2.5, 0, 48])
def test_hours_that_cron_cannot_say(hours):
    with pytest.raises(ValueError, match=re.escape(str(hours))):
        cron_every(hours)


@pytest.mark.parametrize("hours", [1, 2, 3, 4, 6, 8, 12, 24])
def test_a_cron_of_so_many_hours_is_understood_as_that(hours):
    assert hours_between(cron_every(hours)) == hours


@pytest.mark.parametrize(
    "cron", ["0 0,3 * * *", "0 3 * * 1", "0 3 1 * *", "*/5 * * * *", "0 */5 * * *", "@daily", "0 x * * *", "0 25 * * *"]
)
def test_a_cron_whose_runs_are_not_as_far_from_each_other_is_every_so_many_hours_of_none(cron):
    assert hours_between(cron) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("jobs: [", "^w.yml:1: is no YAML"),
        ("name: x\njobs:\n  a: b: c\n", "^w.yml:3: is no YAML"),
        ("", "is no workflow"),
        ("- a\n", "is no workflow"),
        ("name: x\n", "has no `jobs`"),
        ("jobs: 5\n", "has no `jobs`"),
        ("jobs: {a: {runs-on: x, strategy: '${{ fromJSON(inputs.s) }}', with: '${{ x }}'}}\n", "no job has rows"),
        ("jobs: {a: {runs-on: x}}\n", "no job has rows of config 'distributed'"),
        ("a: &a [*a]\njobs: {}\n", "is no YAML|no job has"),
    ],
)
def test_what_is_no_workflow_is_one_clear_error(text, problem):
    with pytest.raises(WorkflowError, match=problem):
        find_matrix(read(text, "w.yml"), "distributed")


def test_a_matrix_that_is_computed_is_said_to_be():
    text = TRUNK.replace("test-matrix: |", "test-matrix: ${{ x }}\n      old: |")
    with pytest.raises(WorkflowError, match=r"computed when it runs: linux-rocm-build, linux-rocm-test"):
        find_matrix(read(text, "w.yml"), "distributed")


ROWS = """on: push
env: {{ name: &label linux.gpu.4 }}
jobs:
  first:
    runs-on: ${{{{ matrix.runner }}}}
    strategy: {strategy}
      matrix:
        include:{rows}
  second:
    runs-on: x
    strategy: {other}
"""
PLAIN = "\n          - { config: d, shard: 1, runner: linux.gpu.4 }"


@pytest.mark.parametrize(
    ("rows", "strategy", "other"),
    [
        ("\n          - &a { config: d, shard: 1, runner: linux.gpu.4 }\n          - { <<: *a, shard: 2 }", "", "{}"),
        ("\n          - { config: d, shard: 1, runner: *label }\n          - { config: d, runner: *label }", "", "{}"),
        ("\n          - &a { config: d, shard: 1, runner: linux.gpu.4 }", "", "{}"),
        (PLAIN, "&all", "*all"),
    ],
    ids=["merged", "label", "name alone", "another job's too"],
)
def test_what_is_made_of_anchors_is_not_edited_and_said_to_be(rows, strategy, other):
    text = ROWS.format(rows=rows, strategy=strategy, other=other)
    with pytest.raises(WorkflowError, match=r"made of YAML anchors, which are not edited: first"):
        find_matrix(read(text, "w.yml"), "d")
    assert find_matrix(read(ROWS.format(rows=PLAIN, strategy="", other="{}"), "w.yml"), "d")[0].id == "first"


def test_two_jobs_with_the_same_config_must_be_told_apart():
    twice = TRUNK + TRUNK[TRUNK.index("  # The GPU") : TRUNK.index("  linux-rocm-test")].replace(
        "linux-rocm-build", "other"
    )
    with pytest.raises(WorkflowError, match=r"choose one with --in-job"):
        find_matrix(read(twice, "w.yml"), "distributed")
    assert find_matrix(read(twice, "w.yml"), "distributed", "other")[0].id == "other"


# Random workflows, random edits.

words = st.text("abcxyz.-_0189", min_size=1, max_size=12).filter(lambda text: text[0].isalpha())
anything = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12)


@given(anything)
def test_a_written_value_is_read_as_what_it_was(value):
    for like in ("", "'x'", '"x"'):
        row = f"          - {{ k: {written(value, like)} }}\n"
        text = f"jobs:\n  a:\n    strategy:\n      matrix:\n        include:\n{row}"
        _, matrix = find_matrix(read(text, "w.yml"), None)
        assert matrix.rows[0].values == {"k": value}


@st.composite
def workflows(draw):
    """A workflow with a test-matrix string, in some layout."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    quote = draw(st.sampled_from(['"', "'", ""]))
    pad = " " * draw(st.integers(0, 3))
    comma = draw(st.sampled_from(["", ","]))
    comment = draw(st.sampled_from(["", "  # note", " #"]))
    lines = []
    for config in draw(st.permutations(["alpha", "beta", "gamma"])):
        count = draw(st.integers(1, 4))
        lines += [
            f"{{{pad}config: {quote}{config}{quote}, shard: {i}, num_shards: {count},"
            f" runner: {quote}r.{config}{quote}{pad}}}"
            for i in range(1, count + 1)
        ]
    body = [f"          {line}{',' if i + 1 < len(lines) else comma}{comment}" for i, line in enumerate(lines)]
    if draw(st.booleans()) and not comment:
        body = ["          " + ", ".join(lines)]
    head = ["name: x", "on: push", "jobs:", "  a:", "    uses: ./b.yml", "    with:", "      test-matrix: |"]
    tail = ["    secrets: inherit   # kept", "", "  b:", "    runs-on: c"]
    return newline.join([*head, "        { include: [", *body, "        ]}", *tail]) + newline


@settings(max_examples=25)  # reading YAML for positions takes its time
@given(workflows(), st.sampled_from(["alpha", "beta", "gamma"]), st.integers(1, 6), words)
def test_an_edit_leaves_every_other_row_and_byte_as_it_was(text, config, count, label):
    before = read(text, "w.yml")
    after = edited(text, config, [Shards(label=label, count=count)])
    wanted = [(i, count, label) for i in range(1, count + 1)]
    assert [(r["shard"], r["num_shards"], r["runner"]) for r in rows(after, config)] == wanted
    for other in {"alpha", "beta", "gamma"} - {config}:
        _, old = find_matrix(before, other)
        _, new = find_matrix(after, other)
        assert [before.slice(r.span) for r in old.of(other)] == [after.slice(r.span) for r in new.of(other)]
    start, end = text.index("{ include"), text.index("]}")
    assert after.text.startswith(text[:start])
    assert after.text.endswith(text[end:])


@settings(max_examples=25)  # reading YAML for positions takes its time
@given(workflows(), st.sampled_from(["alpha", "beta", "gamma"]))
def test_an_edit_to_what_there_is_changes_nothing(text, config):
    found = rows(read(text, "w.yml"), config)
    assert edited(text, config, [Shards(label=f"r.{config}", count=len(found))]).text == text
