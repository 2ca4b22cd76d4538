"""`sooner jobs` over a small history, as a user and as a CI system call it."""

import csv
import json
import xml.etree.ElementTree as ET

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("scipy")

MONDAY = 1_767_571_200.0  # 2026-01-05


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table such as other systems have: 150 commits, six jobs, one that breaks in bursts, one that flakes."""
    import datetime as dt

    path = tmp_path_factory.mktemp("table") / "jobs.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["commit", "time", "job", "status", "duration_s", "attempt", "event"])
        for i in range(150):
            for j, job in enumerate(("lint", "build", "unit (a)", "unit (b)", "gpu", "docs")):
                for attempt in (1, 2):
                    bad = (job == "gpu" and i % 30 in (10, 12, 14)) or (
                        job == "unit (a)" and i % 9 == 0 and attempt == 1
                    )
                    at = dt.datetime.fromtimestamp(MONDAY + i * 7200 + attempt * 1200, dt.UTC).isoformat()
                    rows.writerow([f"{i:040x}", at, job, "fail" if bad else "pass", 60 * (j + 1) ** 2, attempt, "push"])
    return path


@pytest.fixture(scope="module")
def kept(table, tmp_path_factory):
    from sooner.history import History
    from sooner.history.ingest.intake import Options
    from sooner.history.ingest.take import ingest

    root = tmp_path_factory.mktemp("history") / "h"
    with History(root) as history:
        ingest(history, [str(table)], Options())
    return root


def answer(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_backtest_has_a_line_for_each_later_commit_in_order(sooner, kept):
    found = answer(sooner("jobs", "backtest", "--history", kept, "--budget", "0.6", "--retrain-every", "10", "--json"))
    assert [line["sha"] for line in found["commits"]] == [f"{i:040x}" for i in range(105, 150)]
    assert all(set(line) == {"sha", "selected", "level", "stated"} for line in found["commits"])
    assert all("gpu" in line["selected"] for line in found["commits"] if int(line["sha"], 16) in (132, 134))
    assert 0.3 < found["summary"]["cost"] <= 0.62
    assert set(found["summary"]["by_definition"]) == {"judged", "repeated", "persisted"}


def test_the_backtest_is_the_same_every_time(here, kept):
    one, two = (here("jobs", "backtest", "--history", kept, "--train", "0.5", "--json").stdout for _ in range(2))
    assert one == two


def test_a_nightly_backstop_costs_and_is_named(here, kept):
    plain = answer(here("jobs", "backtest", "--history", kept, "--budget", "0.3", "--json"))
    nightly = answer(here("jobs", "backtest", "--history", kept, "--budget", "0.3", "--full-nightly", "--json"))
    assert nightly["summary"]["full_nightly"] is True
    assert nightly["summary"]["cost"] > plain["summary"]["cost"]
    assert sum(len(line["selected"]) == 6 for line in nightly["commits"]) >= 3


def test_flakes_says_whether_the_model_can_be_believed(here, kept, table, tmp_path):
    found = answer(here("jobs", "flakes", "--history", kept, "--json"))
    assert found["held_out"]["all_cells"] == 900
    assert found["held_out"]["verdict_agreement"] >= 0.95
    assert found["control"] is None
    text = here("jobs", "flakes", "--history", kept).stdout
    assert "hidden repeats of 900 cells" in text
    assert "no control" in text
    once = tmp_path / "once.csv"
    once.write_text("\n".join(line for line in table.read_text().splitlines() if ",2,push" not in line))
    assert here("ingest", once, "--history", tmp_path / "h").returncode == 0
    assert "no job ran twice" in here("jobs", "flakes", "--history", tmp_path / "h").stdout


def test_jobs_that_read_documentation_are_named_as_everywhere(here, kept):
    done = here("jobs", "flakes", "--history", kept, "--reads", "dosc", "--reads", "DOCS", "--reads", "gp*")
    assert (done.returncode, done.stderr) == (0, "warning: --reads: 'dosc' fits no job\n")


def test_people_see_what_was_caught_missed_and_spent(here, kept):
    done = here("jobs", "backtest", "--history", kept, "--recall", "0.9")
    assert done.returncode == 0
    assert "caught" in done.stdout
    assert "of running everything" in done.stdout


def test_select_says_why_of_each_job_and_shows_the_frontier(here, kept):
    found = answer(here("jobs", "select", "--history", kept, "--json"))
    assert {line["job"] for line in found["jobs"]} == {"lint", "build", "unit (a)", "unit (b)", "gpu", "docs"}
    assert all(line["why"] for line in found["jobs"])
    assert [point["level"] for point in found["frontier"]][-1] == 1.0
    text = here("jobs", "select", "--history", kept).stdout
    assert "% of the risk in" in text
    assert "not enough evidence" in text
    assert f"at a level of {100 * found['level']:.1f} %; of" in text  # what the rows of the frontier are called by


def test_select_writes_one_page_that_opens_offline(here, kept, project):
    assert here("jobs", "select", "--history", kept, "--html", "page.html").returncode == 0
    page = (project / "page.html").read_text()
    ET.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
    assert "% of the risk in" in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    done = here("jobs", "select", "--history", kept, "--html", "no/such/folder/page.html")
    assert done.returncode == 4
    assert "cannot be written" in done.stderr


@pytest.mark.parametrize("option", ["--svg", "--png", "--html"])
def test_a_picture_for_which_there_is_no_room_is_named(here, kept, option):
    done = here("jobs", "correlate", "--history", kept, option, "/dev/full")
    assert (done.returncode, done.stdout) == (4, "")
    assert "/dev/full cannot be written: No space left on device" in done.stderr


def test_correlate_answers_in_both_ways_and_draws(here, kept, project):
    found = answer(here("jobs", "correlate", "--history", kept, "--svg", "map.svg", "--png", "map.png", "--json"))
    assert len(found["matrix"]) == len(found["jobs"]) == 6
    root = ET.parse(project / "map.svg").getroot()
    assert root.tag.endswith("svg")
    assert (project / "map.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert here("jobs", "correlate", "--history", kept, "--html", "page.html").returncode == 0
    page = (project / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<svg" in page
    assert "unit (a)" in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    old = answer(here("jobs", "correlate", "--history", kept, "--method", "2019", "--json"))
    assert old["method"] == "2019"
    assert here("jobs", "correlate", "--history", kept).returncode == 0


def change(here, project, kept, *more, message="Fix\n", files="src/a.py\n"):
    (project / "message").write_text(message)
    (project / "files").write_text(files)
    options = ("--message-file", "message", "--files-file", "files", "--history", kept, "--sample", "0")
    return here("jobs", "for-change", *options, *more)


def test_a_change_gets_its_jobs_with_reasons(here, project, kept):
    found = answer(change(here, project, kept, "--budget", "0.4", "--json"))
    assert found["run_all"] is False
    assert found["jobs"]
    assert found["dropped"]
    assert all(set(line) == {"job", "why"} for line in [*found["jobs"], *found["dropped"]])


def test_ci_all_runs_everything(here, project, kept):
    found = answer(change(here, project, kept, "--json", message="Fix\n\n[ci all]\n"))
    assert found["run_all"] is True
    assert len(found["jobs"]) == 6
    assert not found["dropped"]


def test_what_the_messages_ask_for_is_obeyed(here, project, kept):
    done = change(here, project, kept, "--budget", "0.2", "--json", message="x [ci docs] [ci skip lint]\n")
    found = answer(done)
    assert {"job": "docs", "why": "[ci docs]"} in found["jobs"]
    assert {"job": "lint", "why": "[ci skip lint]"} in found["dropped"]


def test_a_misspelled_job_is_one_clear_error(here, project, kept):
    done = change(here, project, kept, message="[ci dosc]")
    assert done.returncode == 4
    assert "there is no job 'dosc': did you mean 'docs'?" in done.stderr
    assert done.stdout == ""


def test_a_message_that_names_no_job_is_no_command_for_github(here, project, kept):
    done = change(here, project, kept, message="x [ci ##[set-output name=any]false]")
    assert done.returncode == 4
    assert "there is no job '## [set-output name=any]false'" in done.stderr


def test_areas_come_from_the_configuration(here, project, kept):
    (project / "pyproject.toml").write_text('[tool.sooner.jobs.areas]\n"src/dtensor/**" = ["docs"]\n')
    found = answer(change(here, project, kept, "--budget", "0.2", "--json", files="src/dtensor/ops/a.py\n"))
    assert {"job": "docs", "why": "area src/dtensor/**"} in found["jobs"]


def test_an_area_whose_job_has_never_run_yet_stops_no_change(here, project, kept):
    (project / "pyproject.toml").write_text('[tool.sooner.jobs.areas]\n"src/**" = ["docs", "new"]\n')
    (project / "files").write_text("src/a.py\n")
    done = here("jobs", "for-change", "--history", kept, "--files-file", "files", "--json")
    assert {"job": "docs", "why": "area src/**"} in answer(done)["jobs"]
    assert "warning: tool.sooner.jobs.areas.src/**: 'new' fits no job" in done.stderr


def test_an_area_whose_job_exists_no_more_stops_no_change(here, project):
    import datetime as dt

    lines = ["commit,time,job,status,duration_s"]
    for i in range(40):
        at = dt.datetime.fromtimestamp(MONDAY + i * 7200, dt.UTC).isoformat()
        lines += [f"{i:040x},{at},{job},pass,60" for job in ("new", "old") if job == "new" or i < 10]
    (project / "jobs.csv").write_text("\n".join(lines))
    assert here("ingest", "jobs.csv", "--history", "h").returncode == 0
    (project / "pyproject.toml").write_text('[tool.sooner.jobs.areas]\n"src/**" = ["new", "old"]\n')
    done = change(here, project, "h", "--json")
    assert [line["job"] for line in answer(done)["jobs"]] == ["new"]
    assert "note: area src/**: 'old' runs no more" in done.stderr
    assert "there is no job 'old'" in change(here, project, "h", message="[ci old]").stderr


@pytest.mark.parametrize(
    "files",
    [
        '"src/dtensor/\\303\\274 \\"x\\".py"\n',
        "README\0src/dtensor/a.py\0",
        "src/dtensor/a.py\r\n",
        '"src/dtensor/a\\nb/c.py"\n',
    ],
)
def test_areas_see_files_as_git_names_them(here, project, kept, files):
    (project / "pyproject.toml").write_text('[tool.sooner.jobs.areas]\n"src/dtensor/**.py" = ["docs"]\n')
    found = answer(change(here, project, kept, "--budget", "0.2", "--json", files=files))
    assert {"job": "docs", "why": "area src/dtensor/**.py"} in found["jobs"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_what_windows_writes_before_a_text_is_not_of_it(here, project, kept, encoding):
    (project / "pyproject.toml").write_text('[tool.sooner.jobs.areas]\n"src/**" = ["docs"]\n')
    (project / "message").write_text("x\r\n[ci skip lint]\r\n", encoding=encoding)
    (project / "files").write_text("src/a.py\r\n", encoding=encoding)
    options = ("--message-file", "message", "--files-file", "files", "--history", kept, "--sample", "0")
    found = answer(here("jobs", "for-change", *options, "--budget", "0.2", "--json"))
    assert {"job": "docs", "why": "area src/**"} in found["jobs"]
    assert {"job": "lint", "why": "[ci skip lint]"} in found["dropped"]


def test_changed_files_may_come_through_a_pipe(here, project, kept):
    (project / "pyproject.toml").write_text('[tool.sooner.jobs.areas]\n"src/**" = ["docs"]\n')
    options = ("--history", kept, "--sample", "0", "--budget", "0.2", "--json")
    found = answer(here("jobs", "for-change", "--files-file", "-", *options, stdin="src/a.py\n"))
    assert {"job": "docs", "why": "area src/**"} in found["jobs"]
    done = here("jobs", "for-change", "--files-file", "-", "--message-file", "-", *options, stdin="src/a.py\n")
    assert done.returncode == 4
    assert "cannot both be stdin" in done.stderr


def test_an_unknown_setting_names_the_nearest(here, project, kept):
    (project / "pyproject.toml").write_text('[tool.sooner.jobs]\npined = ["lint"]\n')
    done = change(here, project, kept)
    assert done.returncode == 4
    assert "tool.sooner.jobs.pined is unknown: did you mean 'pinned'?" in done.stderr


def test_the_sample_runs_everything_and_says_so(here, project, kept):
    found = answer(change(here, project, kept, "--sample", "1", "--json"))
    assert (found["run_all"], found["sampled"]) == (True, True)
    assert len(found["jobs"]) == 6


def test_a_matrix_for_github_actions(here, project, kept):
    found = answer(change(here, project, kept, "--format", "matrix"))
    assert set(found) == {"job"}


@pytest.mark.parametrize("format_", ["matrix", "github-output"])
def test_more_jobs_than_a_matrix_of_github_may_have_are_told(capsys, monkeypatch, format_):
    from sooner.analysis.selection.change import Answer, Line
    from sooner.cli.jobs_change import printed

    monkeypatch.delenv("GITHUB_OUTPUT", raising=False)
    figures = {"level": 1.0, "recall": 1.0, "recall_low": 0.0, "drift": "", "run_all": False, "sampled": False}
    for count in (256, 257):
        lines = tuple(Line(job=f"job{i}", why="pinned") for i in range(count))
        printed(Answer(jobs=lines, dropped=(), **figures), format_)
        told = "warning: 257 jobs: GitHub refuses a matrix of more than 256" in capsys.readouterr().err
        assert told is (count > 256)


def test_outputs_for_github_cannot_be_ended_by_their_values(here, project, kept, monkeypatch):
    target = project / "output"
    monkeypatch.setenv("GITHUB_OUTPUT", str(target))
    (project / "message").write_text("[ci all]")
    done = here(
        "jobs", "for-change", "--message-file", "message", "--history", kept, "--format", "github-output",
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")
    lines = target.read_text().splitlines()
    names = dict(line.split("<<") for line in lines if "<<" in line)
    assert set(names) == {"matrix", "jobs", "any", "run_all", "selection"}
    assert all(lines.count(delimiter) == 1 and len(delimiter) > 30 for delimiter in names.values())
    assert len(set(names.values())) == 5


@pytest.mark.parametrize("target", ["no/such/folder/output", "/dev/full", "."])
def test_outputs_for_github_that_cannot_be_written_are_one_clear_error(here, kept, monkeypatch, target):
    monkeypatch.setenv("GITHUB_OUTPUT", target)
    done = here("jobs", "for-change", "--history", kept, "--format", "github-output")
    assert (done.returncode, done.stdout) == (4, "")
    assert f"$GITHUB_OUTPUT ({target}) cannot be written: " in done.stderr


IDLE = """
[tool.sooner.jobs]
pinned = ["dosc", "DOCS"]
[tool.sooner.jobs.facets]
cuda = "*cuda*"
[tool.sooner.jobs.floors]
cuda = 1
[tool.sooner.jobs.needs]
"*" = ["bild"]
"*_none" = ["nothing"]
[tool.sooner.jobs.areas]
"other/**" = ["tset"]
"""


def test_what_is_laid_down_about_jobs_that_nobody_knows_is_told(here, project, kept):
    (project / "pyproject.toml").write_text(IDLE)
    done = change(here, project, kept)
    assert done.returncode == 0
    assert done.stderr.splitlines()[:4] == [
        "warning: tool.sooner.jobs.pinned: 'dosc' fits no job",
        "warning: tool.sooner.jobs.floors.cuda: 1 are wanted, '*cuda*' fits no job",
        "warning: tool.sooner.jobs.needs.*: 'bild' fits no job",
        "warning: tool.sooner.jobs.areas.other/**: 'tset' fits no job",
    ]
    assert "run   docs: pinned" in done.stdout


def test_a_result_that_stands_twice_does_not_hide_the_first_one(here, project):
    (project / "selection.json").write_text('\ufeff{"jobs": [{"job": "unit"}]}', encoding="utf-8")
    (project / "results.json").write_text('{"unit": "failure", "unit": "success"}')
    done = here("jobs", "gate", "--selection", "selection.json", "--results", "results.json")
    assert done.returncode == 4
    assert "results.json is no JSON: 'unit' stands twice in one object" in done.stderr


def test_the_name_of_a_job_is_no_command_for_github(here, project):
    name = "::stop-commands::x"
    (project / "selection.json").write_text(json.dumps([name]))
    (project / "results.json").write_text("{}")
    done = here("jobs", "gate", "--selection", "selection.json", "--results", "results.json")
    assert done.stdout.startswith(f"- {name}: selected, but there is no result of it\n")

    from sooner.analysis.selection.validate import Control, HeldOut
    from sooner.report.selection import flakes_text

    held = HeldOut(**dict.fromkeys(HeldOut.__struct_fields__, 1))
    control = Control(**(dict.fromkeys(Control.__struct_fields__, 1) | {"jobs": ((name, 1.0),)}))
    assert not any(line.lstrip().startswith("::") for line in flakes_text(held, control, None).splitlines())


def test_the_gate_tells_of_names_that_are_no_text(here, project):
    (project / "selection.json").write_text('{"jobs": [{"job": "unit \\ud800"}]}')
    (project / "results.json").write_text("{}")
    done = here("jobs", "gate", "--selection", "selection.json", "--results", "results.json", "--json")
    assert done.returncode == 12
    assert json.loads(done.stdout)["problems"] == ["unit \\ud800: selected, but there is no result of it"]


def test_the_gate_cannot_read_both_of_its_files_from_one_pipe(here):
    done = here("jobs", "gate", "--selection", "-", "--results", "-", stdin='["lint"]')
    assert done.returncode == 4
    assert "--selection and --results cannot both be stdin" in done.stderr


def test_the_gate_opens_when_everything_selected_has_passed(here, project, kept):
    (project / "selection.json").write_text(change(here, project, kept, "--json").stdout)
    chosen = [line["job"] for line in json.loads((project / "selection.json").read_text())["jobs"]]
    (project / "results.json").write_text(json.dumps({job: {"result": "success"} for job in chosen}))
    assert here("jobs", "gate", "--selection", "selection.json", "--results", "results.json").returncode == 0
    (project / "results.json").write_text(json.dumps({job: {"result": "success"} for job in chosen[1:]}))
    done = here("jobs", "gate", "--selection", "selection.json", "--results", "results.json", "--json")
    assert done.returncode == 12
    assert json.loads(done.stdout)["problems"] == [f"{chosen[0]}: selected, but there is no result of it"]


FACETS = """
[tool.sooner.jobs.facets]
documents = "docs"
[tool.sooner.jobs.floors]
documents = 1
[tool.sooner.jobs.needs]
"docs" = ["lint", "build"]
"""


def test_floors_and_needs_hold_in_the_backtest_in_select_and_for_a_change(here, project, kept):
    plain = answer(here("jobs", "backtest", "--history", kept, "--budget", "0.2", "--json"))
    assert not all("docs" in line["selected"] for line in plain["commits"])
    (project / "pyproject.toml").write_text(FACETS)
    found = answer(here("jobs", "backtest", "--history", kept, "--budget", "0.2", "--json"))
    assert all({"docs", "lint", "build"} <= set(line["selected"]) for line in found["commits"])
    chosen = answer(here("jobs", "select", "--history", kept, "--budget", "0.05", "--json"))
    assert {"docs", "lint", "build"} <= {line["job"] for line in chosen["jobs"] if line["selected"]}
    one = answer(change(here, project, kept, "--budget", "0.05", "--json"))
    whys = {line["job"]: line["why"] for line in one["jobs"]}
    assert {"docs", "lint", "build"} <= whys.keys()
    assert whys["docs"] == "floor: at least 1 of documents"


def recorded_changes(here, project, kept, tmp_path, *, broken):
    """A copy of the history with five changes that ran everything; a job of each failed twice."""
    import datetime as dt
    import shutil

    root = tmp_path / "h"
    shutil.copytree(kept, root)
    dropped = set()
    for i in range(5):
        more = ("--sample", "1", "--budget", "0.4", "--record", "--id", f"{i + 5000:040x}", "--json")
        found = answer(change(here, project, root, *more))
        assert found["run_all"]
        dropped = set(found["would_drop"])
    at = dt.datetime.fromtimestamp(MONDAY + 160 * 7200, dt.UTC).isoformat()
    lines = ["commit,time,job,status,duration_s,attempt,event"]
    lines += [
        f"{i + 5000:040x},{at},{job},{'fail' if job == broken else 'pass'},60,{attempt},pull_request"
        for i in range(5)
        for job in ("lint", "build", "unit (a)", "unit (b)", "gpu", "docs")
        for attempt in (1, 2)
    ]
    (tmp_path / "requests.csv").write_text("\n".join(lines))
    assert here("ingest", tmp_path / "requests.csv", "--history", root).returncode == 0
    return root, dropped


def test_full_runs_that_break_what_is_left_out_raise_the_alarm(here, project, kept, tmp_path):
    root, dropped = recorded_changes(here, project, kept, tmp_path, broken="docs")
    assert "docs" in dropped
    done = change(here, project, root, "--budget", "0.4", "--json")
    assert "5 broke only jobs that would have been left out" in answer(done)["drift"]
    assert "warning: drift: of 5 changes that ran everything" in done.stderr


def test_a_record_without_a_name_is_told_that_it_cannot_be_compared(here, project, kept, tmp_path):
    import shutil

    root = tmp_path / "h"
    shutil.copytree(kept, root)
    assert "--record without --id" in change(here, project, root, "--record", "--json").stderr


def test_full_runs_that_break_what_runs_anyway_are_quiet(here, project, kept, tmp_path):
    root, dropped = recorded_changes(here, project, kept, tmp_path, broken="lint")
    assert "lint" not in dropped
    assert answer(change(here, project, root, "--budget", "0.4", "--json"))["drift"] == ""


def test_the_goal_of_the_project_holds_where_the_command_line_names_none(here, project, kept):
    (project / "pyproject.toml").write_text("[tool.sooner.jobs]\nbudget = 0.3\n")
    found = answer(here("jobs", "backtest", "--history", kept, "--json"))
    assert found["summary"]["cost"] <= 0.31
    assert "at most 30.0 %" in here("jobs", "backtest", "--history", kept).stdout


def test_the_budget_is_used_and_not_overdrawn(here, kept):
    found = answer(here("jobs", "backtest", "--history", kept, "--budget", "0.5", "--train", "0.3", "--json"))
    assert 0.4 <= found["summary"]["cost"] <= 0.505


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("backtest", "--history", "nowhere"), "there is no history at nowhere"),
        (("backtest", "--recall", "97"), "--recall 97: a share between 0 and 1 is needed, such as 0.97"),
        (("correlate", "--fold", "/[/"), "--fold /[/: it is no regular expression"),
        (("backtest", "--train", "1"), "--train 1: a share of at least 0 and below 1"),
        (("for-change", "--message-file", "none"), "none cannot be read"),
        (("gate", "--selection", "none", "--results", "none"), "none cannot be read"),
    ],
)
def test_mistakes_are_one_clear_error(here, arguments, text):
    done = here("jobs", *arguments)
    assert done.returncode == 4
    assert text in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", ["select", "backtest", "correlate", "flakes", "for-change"])
def test_a_branch_that_is_not_known_is_told_with_those_that_are(here, kept, verb):
    done = here("jobs", verb, "--history", kept, "--branch", "nope")
    assert done.returncode == 4
    assert "no job of the history has the branch 'nope': there is" in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        'fold = ["/[/"]',
        "floors = {cuda = -1}",
        "queue_weight = nan",
        "queue_weight = -1.0",
        'price = {"gpu*" = -2.0}',
        "price = {x = inf}",
        "recall = 0",
        "budget = 0.0",
        "sample = 1.5",
    ],
)
def test_settings_that_cannot_be_are_one_clear_error(here, project, kept, line):
    (project / "pyproject.toml").write_text(f"[tool.sooner.jobs]\n{line}\n")
    done = here("jobs", "select", "--history", kept)
    assert done.returncode == 4
    assert f"tool.sooner.jobs.{line.split()[0]}" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_empty_history_is_one_clear_error(here, project):
    (project / "h").mkdir()
    done = here("jobs", "backtest", "--history", "h")
    assert done.returncode == 4
    assert "holds no jobs" in done.stderr


def odd_history(here, project, status, *, seconds=600):
    """A hundred commits of three jobs, all of which end in the same way."""
    rows = [f"{i:040x},{MONDAY + i * 7200:.0f},{job},{status},{seconds}" for i in range(100) for job in ("a", "b", "c")]
    (project / "odd.csv").write_text("\n".join(["commit,time,job,status,duration_s", *rows]) + "\n")
    assert here("ingest", "odd.csv", "--history", "odd").returncode == 0


def test_jobs_that_take_no_time_cost_the_same_each_rather_than_nothing(here, project):
    odd_history(here, project, "pass", seconds=0)
    found = answer(here("jobs", "backtest", "--history", "odd", "--budget", "0.6", "--json"))
    assert found["summary"]["cost"] == pytest.approx(0.6, abs=0.05)


def test_a_history_without_a_breakage_has_no_table_of_unknown_recalls(here, project):
    odd_history(here, project, "pass")
    told = here("jobs", "select", "--history", "odd").stdout
    assert "no breakage is known that tells what a budget would catch" in told
    assert "AT LEAST" not in told


def test_where_every_job_was_skipped_there_is_nothing_to_compare(here, project):
    odd_history(here, project, "skip")
    done = here("jobs", "correlate", "--history", "odd")
    assert (done.returncode, done.stdout) == (5, "no job passed or failed: there is nothing to compare\n")
