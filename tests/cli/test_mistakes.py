"""What a newcomer types wrong, and what the command line says to it."""

import pytest


@pytest.mark.parametrize("group", ["jobs", "trunk", "history"])
def test_a_group_without_a_verb_shows_its_help_and_nothing_else(here, group):
    done = here(group)
    assert done.returncode == 4
    assert done.stderr == here(group, "--help").stdout
    assert "Verbs:" in done.stderr


@pytest.mark.parametrize(
    ("words", "verb"),
    [
        (("run", "plan.toml", "--devices"), "run"),
        (("jobs", "select", "--recall"), "jobs select"),
        (("history", "info", "--history"), "history info"),
    ],
)
def test_an_option_without_its_value_is_told_with_its_verb(here, words, verb):
    done = here(*words)
    assert done.returncode == 4
    assert done.stderr.startswith(f"sooner {verb}: Option '{words[-1]}' requires an argument.\n")
    assert f"Try 'sooner {verb} --help'" in done.stderr


def test_a_mistyped_verb_of_the_history_is_told_as_everywhere(here):
    assert "there is no verb 'inf': did you mean 'info'?" in here("history", "inf").stderr


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("qa/test.sh", "quick"), "`sooner script qa/test.sh`"),
        (("plan.toml",), "`sooner run plan.toml`"),
        (("pytest", "tests"), "`pytest --gpus=auto`"),
    ],
)
def test_what_is_run_without_a_verb_is_told_with_it(here, words, meant):
    done = here(*words)
    assert done.returncode == 4
    assert f"there is no verb {words[0]!r}: did you mean {meant}?" in done.stderr


@pytest.mark.parametrize(
    ("words", "who"),
    [
        (("run", "plan.toml", "--failed"), "No such option '--failed'. `sooner rerun` has it.\n"),
        (
            ("plan", "plan.toml", "--retries", "2"),
            "No such option '--retries'. `sooner run`, `sooner script` and 2 more have it.\n",
        ),
        (("trunk", "flaky", "--breakages"), "No such option '--breakages'. `sooner trunk verdicts` has it.\n"),
    ],
)
def test_an_option_of_another_verb_is_told_with_it(here, words, who):
    done = here(*words)
    assert done.returncode == 4
    assert who in done.stderr
    assert "Did you mean" not in done.stderr


def test_a_mistyped_option_is_told_with_the_nearest(here):
    assert "Did you mean" in here("run", "plan.toml", "--devcies", "4").stderr


def test_a_folder_of_tests_is_no_plan_and_it_is_said_what_makes_one_of_it(here, project):
    (project / "tests").mkdir()
    done = here("run", "tests")
    assert done.returncode == 4
    assert "tests is a folder" in done.stderr
    assert "sooner needs tests --plan > plan.toml" in done.stderr


def test_a_shell_script_is_no_plan_and_it_is_said_what_runs_it(here, project):
    (project / "test.sh").write_text("#!/bin/bash\npytest tests\n")
    done = here("run", "test.sh")
    assert done.returncode == 4
    assert "`sooner script test.sh`" in done.stderr


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--retries", "-1", "sooner: --retries must not be negative"),
        ("--grace", "nan", "sooner: --grace must not be negative or endless"),
    ],
)
def test_a_setting_of_the_command_line_is_told_as_it_was_typed(here, project, option, value, told):
    (project / "plan.toml").write_text('[[unit]]\nrun = "true"\n')
    done = here("run", "plan.toml", "--devices", "virtual:1", option, value)
    assert done.returncode == 4
    assert done.stderr.startswith(told)


def test_a_setting_of_the_environment_is_told_with_its_variable(here, project, monkeypatch):
    monkeypatch.setenv("SOONER_RUN_RETRIES", "many")
    (project / "plan.toml").write_text('[[unit]]\nrun = "true"\n')
    done = here("run", "plan.toml", "--devices", "virtual:1")
    assert done.stderr == "sooner: SOONER_RUN_RETRIES must be a whole number, not 'many'\n"


def test_a_log_has_no_negative_number_of_lines(here):
    done = here("tail", "out", "a", "-n", "-5")
    assert done.returncode == 4
    assert "-5 is not in the range" in done.stderr


def test_a_document_over_several_lines_is_told_what_a_line_is(here):
    done = here("trunk", "decide", "--jsonl", stdin='{"id": 1,\n "now": 5}\n')
    assert done.returncode == 4
    assert "each line is a whole document" in done.stderr


def test_columns_of_simulated_trunks_stand_below_each_other(here):
    done = here("trunk", "simulate", "--trunks", 1, "--policy", "rules", "--scenario", "ten signals")
    head, row = done.stdout.splitlines()
    assert head.index("policy") == row.index("rules")


@pytest.mark.parametrize("words", [("replay",), ("rerun", "latest"), ("tail", "latest", "a")])
def test_where_nothing_ran_yet_it_is_said_what_runs_something(here, words):
    done = here(*words)
    assert done.returncode == 4
    assert "holds no run (no run.json): nothing ran from here yet, `sooner run PLAN.toml` does" in done.stderr


@pytest.mark.parametrize("words", [("replay", "latest"), ("rerun", "latest"), ("tail", ".sooner/runs", "a")])
def test_a_folder_that_is_no_run_is_told_with_the_last_run(here, project, words):
    (project / ".sooner/runs/1").mkdir(parents=True)
    (project / ".sooner/runs/latest").symlink_to("1")
    done = here(*words)
    assert done.returncode == 4
    assert "holds no run (no run.json): the last one from here is .sooner/runs/latest" in done.stderr


def test_a_plan_that_is_taken_for_a_script_is_not_run_as_one(here, project):
    (project / "plan.toml").write_text('[[unit]]\nname = "a"\nrun = "true"\n')
    done = here("script", "plan.toml", "--devices", "virtual:1")
    assert done.returncode == 4
    assert "plan.toml is a plan, and no shell script: `sooner run plan.toml` runs it" in done.stderr
    assert "command not found" not in done.stderr


def test_a_shard_that_is_none_is_told_before_devices_are_looked_for(here, project):
    (project / "plan.toml").write_text('[[unit]]\nname = "a"\nrun = "true"\n')
    done = here("run", "plan.toml", "--shard", "3/2", "--devices", "GPU-that-is-not-there")
    assert done.returncode == 4
    assert done.stderr.startswith("sooner: --shard '3/2' is not I/N")


def test_the_devices_that_are_shown_are_those_of_the_project(here, project):
    (project / "pyproject.toml").write_text('[tool.sooner.run]\ndevices = "virtual:3"\n')
    assert "virtual:2" in here("devices").stdout
    assert here("devices", "--devices", "virtual:2").stdout.count("virtual:") == 2
