"""`sooner ingest` through the real command line."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

JOBS = "commit,time,job,status\nc1,2020-01-01T10:00:00Z,build,success\nc2,2020-01-02T10:00:00Z,build,failure\n"


@pytest.fixture
def jobs(project):
    (project / "jobs.csv").write_text(JOBS)
    return "jobs.csv"


def test_json_goes_to_stdout_alone(sooner, jobs):
    done = sooner("ingest", jobs, "--history", "h", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert {name: report[name] for name in ("rows", "added", "duplicates", "rejected")} == {
        "rows": 2, "added": 2, "duplicates": 0, "rejected": [],
    }  # fmt: skip
    again = json.loads(sooner("ingest", jobs, "--history", "h", "--json").stdout)
    assert (again["added"], again["duplicates"]) == (0, 2)


def test_people_read_a_line_and_what_was_rejected(here, project, jobs):
    (project / jobs).write_text(JOBS + "c3,yesterday,build,success\n")
    done = here("ingest", jobs)
    assert done.stdout == "3 rows: 2 added to jobs, 0 known already, 1 rejected\n"
    assert done.stderr == "rejected: jobs.csv:4: time: yesterday is no time\n"
    assert done.returncode == 0
    assert (project / ".sooner/history/v1/jobs").is_dir()


def test_what_a_source_holds_cannot_move_the_cursor(here, project):
    (project / "jobs.csv").write_text("commit,time,job,status\na,2020-01-01,unit,\033[2Jpurple\033]0;title\007\n")
    done = here("ingest", "jobs.csv")
    assert done.stderr == "rejected: jobs.csv:2: status purple is unknown\n"


@pytest.mark.parametrize("name", [b"jobs\xff.csv", b"folder\xff/jobs.csv"])
def test_a_file_whose_name_is_not_utf_8_is_taken_in_and_what_is_wrong_with_it_is_told(here, project, name):
    path = project / os.fsdecode(name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(JOBS + "c3,yesterday,build,success\n")
    done = here("ingest", os.fsdecode(name), "--set", "branch=b\udcff", "--history", "h", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    (rejected,) = report["rejected"]
    assert (report["added"], rejected["path"]) == (2, name.decode("utf-8", "backslashreplace"))
    assert here("history", "export", "jobs", "out.csv", "--history", "h").returncode == 0
    assert (project / "out.csv").read_text().count("b\\xff") == 2


@pytest.mark.parametrize("text", ['{"commit": "c", "time": 1e9, "job": "j", "status": "pass", "\\ud800": 1}', "[{}]"])
def test_a_key_that_is_half_a_character_stops_no_other_source(here, project, jobs, text):
    text = text.replace("{}", '{"commit": "c", "time": 1e9, "job": "j", "status": "pass", "\\ud800": 1}')
    (project / "odd.json").write_text(text + "\n")
    done = here("ingest", "odd.json", jobs, "--history", "h")
    assert done.stdout == "3 rows: 3 added to jobs, 0 known already, 0 rejected\n", done.stderr
    assert "odd.json: columns that are not used: ?" in done.stderr


@pytest.mark.parametrize("form", ["{}", "[{}]"])
def test_an_empty_key_stops_no_other_source(here, project, jobs, form):
    row = '{"": 0, "commit": "c", "time": 1e9, "job": "j", "status": "pass"}'
    (project / "odd.json").write_text(form.replace("{}", row) + "\n")
    done = here("ingest", "odd.json", jobs, "--history", "h")
    assert done.stdout == "3 rows: 3 added to jobs, 0 known already, 0 rejected\n", done.stderr


def test_strict_stops(here, project, jobs):
    (project / jobs).write_text(JOBS + "c3,yesterday,build,success\n")
    done = here("ingest", jobs, "--strict")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == "sooner: jobs.csv:4: time: yesterday is no time (leave out --strict to go on without it)\n"


def test_columns_are_mapped_and_constants_set(sooner, project):
    (project / "odd.csv").write_text("rev;what=;verdict\nc1;build;green\n")
    done = sooner(
        "ingest", "odd.csv", "--map", "rev=commit", "--map", "what==job", "--map", "verdict=outcome",
        "--set", "repository=o/n", "--json",
    )  # fmt: skip
    assert json.loads(done.stdout)["added"] == 1
    exported = sooner("history", "export", "jobs", "-", "--format", "jsonl")
    row = json.loads(exported.stdout)
    assert (row["commit"], row["job"], row["outcome"], row["repository"]) == ("c1", "build", "passed", "o/n")


def test_what_is_set_and_kept_nowhere_is_noted(here, project, jobs):
    (project / "r.xml").write_text('<testsuite name="pytest"><testcase classname="t" name="test_a"/></testsuite>')
    done = here("ingest", "r.xml", "--set", "runner=gpu.2", "--set", "job=unit")
    assert done.stdout.startswith("1 row: 1 added to tests")
    assert done.stderr == "note: --set runner was not used: tests have no such field\n"
    assert here("ingest", "r.xml", jobs, "--set", "runner=gpu.2").stderr.count("was not used") == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nothing.csv"], "nothing.csv: there is no such file or folder"),
        (["jobs.csv", "--map", "job"], "--map 'job' is no NAME=VALUE"),
        (["jobs.csv", "--set", "outcome=passed"], "--set outcome=... is not possible"),
        (["jobs.csv", "--format", "excel"], "the formats are junit"),
        (["jobs.csv", "--timezone", "Mars"], "no time zone"),
        (["github:o/n", "--since", "soon"], "--since 'soon' is no time"),
    ],
)
def test_wrong_usage_is_told_in_a_line(here, jobs, arguments, problem):
    done = here("ingest", *arguments)
    assert done.returncode == 4
    assert problem in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_source_of_which_nothing_can_be_read_is_no_success(here, project):
    (project / "x.csv").write_text("colour,shape\nred,round\n")
    done = here("ingest", "x.csv")
    assert done.returncode == 4
    assert "--map column=field" in done.stderr


def test_without_duckdb_the_way_out_is_told(project, jobs):
    program = (
        "import sys; sys.modules['duckdb'] = None\nfrom sooner.cli.main import main\nmain(['ingest', 'jobs.csv'])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert done.stderr == "sooner: the history needs DuckDB: install it with `pip install 'sooner[history]'`\n"


def test_help_loads_no_database():
    program = (
        "import sys\nfrom sooner.cli.main import _run\n_run(['ingest', '--help'])\n_run(['history', '--help'])\n"
        "sys.exit(str({'duckdb', 'numpy', 'msgspec', 'sooner.history'} & set(sys.modules)) if"
        " {'duckdb', 'numpy', 'sooner.history'} & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_run_of_ours_is_taken_in_with_its_folder(sooner, project):
    sooner.plan(("a", "true"), ("b", "false"))
    sooner("run", "plan.toml", "--devices", "virtual:1", "--out", "out")
    report = json.loads(sooner("ingest", "out", "--history", "h", "--json").stdout)
    assert report["tables"]["tests"] == 2
    assert json.loads(sooner("ingest", "out", "--history", "h", "--json").stdout)["added"] == 0


def test_a_pipe_is_told_to_be_one_and_not_waited_for(here, project):
    os.mkfifo(project / "pipe.csv")
    done = here("ingest", "pipe.csv", "--history", "h")
    assert done.returncode == 4
    assert "sources are read twice: save it first" in done.stderr


def test_an_interrupt_ends_an_ingest_and_leaves_the_history_as_it_was(sooner, project, jobs):
    assert sooner("ingest", jobs, "--history", "h").returncode == 0
    rows = (f"c{i},2020-01-02T10:00:{i % 60:02}Z,job {i * 7919 % 100_003},success\n" for i in range(200_000))
    (project / "many.csv").write_text("commit,time,job,status\n" + "".join(rows))
    process = subprocess.Popen(
        [sys.executable, "-m", "sooner", "ingest", "many.csv", "--history", "h"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads here
    )
    while process.poll() is None and not list((project / "h/.staging").rglob("*.parquet")):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (130, "", "")
    info = json.loads(sooner("history", "info", "--history", "h", "--json").stdout)
    assert info["tables"]["jobs"]["rows"] == 2
