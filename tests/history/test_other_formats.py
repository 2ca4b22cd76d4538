"""Buildkite, PyTorch's status folders and test times, git, folders of all kinds, and how formats are told apart."""

import gzip
import json
import os
import subprocess

import pytest

from sooner.history.ingest.detect import format_of
from sooner.history.ingest.json_items import Broken, items

BUILD = {
    "id": "b-1", "number": 42, "state": "failed", "commit": "c0ffee", "branch": "main", "source": "webhook",
    "created_at": "2026-01-01T00:00:00.000Z", "started_at": "2026-01-01T00:00:05.000Z",
    "finished_at": "2026-01-01T01:00:00.000Z", "pull_request": {"id": "12"},
    "pipeline": {"slug": "vllm", "repository": "git@github.com:vllm-project/vllm.git"},
}  # fmt: skip


def step(name, state="passed", **more):
    return {
        "id": f"j-{name}-{len(more)}", "type": "script", "name": name, "state": state, "exit_status": 0,
        "created_at": "2026-01-01T00:00:00Z", "runnable_at": "2026-01-01T00:00:10Z",
        "started_at": "2026-01-01T00:01:00Z", "finished_at": "2026-01-01T00:02:00Z",
        "agent_query_rules": ["queue=gpu_4", "os=linux"], "agent": {"name": "box-1"}, **more,
    }  # fmt: skip


def test_buildkite_builds(history, take, write):
    jobs = [
        step("attention", parallel_group_index=1, parallel_group_total=4),
        step("flaky", "failed", exit_status=1, retried=True),
        step("flaky", retries_count=1),
        step("lost", "failed", exit_status=-1),
        step("late", "expired", started_at=None, finished_at=None),
        step("off", "broken", started_at=None),
        step("wait", "passed") | {"type": "waiter"},
    ]
    report = take(write("build.json", json.dumps([{**BUILD, "jobs": jobs}])))
    assert report["tables"] == {"jobs": 6, "runs": 1}
    rows = {(row.job, row.attempt): row for row in history.jobs()}
    assert {key: row.outcome for key, row in rows.items()} == {
        ("attention", 1): "passed", ("flaky", 1): "failed", ("flaky", 2): "passed", ("lost", 1): "infrastructure",
        ("late", 1): "infrastructure", ("off", 1): "not_run",
    }  # fmt: skip
    row = rows["attention", 1]
    assert (row.repository, row.workflow, row.shard, row.runner, row.pull_request, row.event) == (
        "vllm-project/vllm", "vllm", "2/4", "gpu_4", 12, "push",
    )  # fmt: skip
    assert (row.queued - row.created, row.started - row.queued, row.completed - row.started) == (10, 50, 60)


def test_a_build_that_is_none_is_rejected(take, write):
    report = take(
        write("b.jsonl", [{**BUILD, "jobs": []}, {"id": 5}, {**BUILD, "id": "b-2", "state": "odd", "jobs": []}])
    )
    assert (report["added"], report["rejected_count"]) == (1, 2)


@pytest.fixture
def ossci(tmp_path):
    root = tmp_path / "ossci-job-status"
    files = {
        "master/c1.json": {"linux-build": {"status": "success", "build_url": "u"}, "linux-test": {"status": "failure"}},
        "master/c2.json": {"linux-build": "pending", "odd": {"status": "purple"}},
        "pr/c3.json": {"linux-build": {"status": "error"}},
        "master/index.json": [
            {"id": "c1", "timestamp": "2019-07-01T10:00:00Z", "title": "First", "author": {"name": "A"}}
        ],
    }
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(json.dumps(content))
    return root


def test_ossci_job_status(history, take, ossci):
    report = take(ossci)
    assert sorted((row.commit, row.job, row.outcome, row.event) for row in history.jobs()) == [
        ("c1", "linux-build", "passed", "push"), ("c1", "linux-test", "failed", "push"),
        ("c2", "linux-build", "running", "push"), ("c3", "linux-build", "error", "pull_request"),
    ]  # fmt: skip
    assert report["rejected"][0]["reason"] == "odd: the status 'purple' is unknown"
    assert [(row.sha, row.message, row.time) for row in history.commits()] == [("c1", "First", 1561975200.0)]
    assert take(ossci)["added"] == 0


def test_dumps_in_a_folder_called_main_are_what_they_hold(history, take, write):
    jobs = {"jobs": [{"run_id": 1, "name": "a", "labels": [], "status": "completed", "conclusion": "success"}]}
    report = take(write("dumps/main/jobs-1.json", json.dumps(jobs)).parent.parent)
    assert report["rejected"] == []
    assert [row.job for row in history.jobs()] == ["a"]


def test_a_pending_status_of_ossci_is_replaced_by_its_end(history, take, ossci):
    take(ossci)
    (ossci / "master/c2.json").write_text(json.dumps({"linux-build": "success"}))
    assert take(ossci)["added"] == 1
    assert {row.outcome for row in history.jobs() if row.commit == "c2"} == {"passed"}


def test_test_times(history, take, write):
    times = {"linux-cuda": {"distributed": {"test_fsdp": 32.5, "odd": "x"}, "default": {"test_nn": 1}}, "default": {}}
    path = write("test-times.json", json.dumps(times, indent=2))
    report = take(path)
    assert (report["added"], report["rejected_count"]) == (2, 1)
    assert history.durations() == {
        ("test_fsdp", "linux-cuda / distributed"): 32.5,
        ("test_nn", "linux-cuda / default"): 1.0,
    }
    assert take(path)["added"] == 0


def test_statistics_of_sccache_are_measures(history, take, write):
    stats = {
        "compile_requests": 120,
        "cache_hits": {"counts": {"C/C++": 60, "CUDA": 30}, "adv_counts": {"cuda": 30}},
        "cache_misses": {"counts": {"C/C++": 10}},
        "cache_errors": {"counts": {}},
        "cache_write_duration": {"secs": 2, "nanos": 500_000_000},
        "cache_location": "S3",
    }
    path = write("sccache.json", json.dumps({"stats": {**stats, "dist": None}, "cache_size": None}))
    constants = {"run": "7", "job": "build", "repository": "o/n"}
    assert take(path, constants=constants)["tables"] == {"measures": 6}
    assert {row.name: row.value for row in history.measures()} == {
        "sccache.compile_requests": 120, "sccache.cache_hits": 90, "sccache.cache_misses": 10,
        "sccache.cache_errors": 0, "sccache.cache_write_duration_s": 2.5, "sccache.hit_rate": 0.9,
    }  # fmt: skip
    assert {(row.repository, row.run, row.job) for row in history.measures()} == {("o/n", "7", "build")}
    assert take(path, constants=constants)["added"] == 0


def test_a_format_that_is_said_is_looked_for_in_a_checkout_too(take, checkout):
    (checkout / "junit.xml").write_text('<testsuite name="s"><testcase name="t"/></testsuite>')
    (checkout / "other.json").write_text("{}")
    report = take(checkout, format="junit")
    assert report["tables"] == {"tests": 1}
    assert report["rejected_count"] == 1


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "checkout"
    folder.mkdir()

    def git(*arguments):
        names = {f"GIT_{who}_{what}": "Ada" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        env = {**os.environ, **names, "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(["git", "-C", str(folder), *arguments], env=env, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("remote", "add", "origin", "git@github.com:owner/name.git")
    for number, (name, text) in enumerate([("a.py", "1"), ("wörter [x].py", "2"), ("a.py", "3")]):
        (folder / name).write_text(text)
        git("add", ".")
        git("commit", "-q", "-m", f"Change {number}\n\nwith a body")
    git("checkout", "-q", "-b", "side", "HEAD~1")
    (folder / "side.py").write_text("x")
    git("add", ".")
    git("commit", "-q", "-m", "Side")
    git("checkout", "-q", "main")
    git("merge", "-q", "--no-ff", "-m", "Merge", "side")
    return folder


def test_git_commits_with_their_files(history, take, checkout):
    assert take(checkout)["tables"] == {"commits": 5}
    rows = {row.message.partition("\n")[0]: row for row in history.commits()}
    assert rows["Change 0"].files == ("a.py",)
    assert rows["Change 1"].files == ("wörter [x].py",)
    assert rows["Side"].files == rows["Merge"].files == ("side.py",)
    assert rows["Merge"].parents == (rows["Change 2"].sha, rows["Side"].sha)
    assert rows["Change 0"].message == "Change 0\n\nwith a body"
    assert {(row.repository, row.branch, row.author) for row in rows.values()} == {("owner/name", "main", "Ada")}
    order = history.commit_order()
    assert order.index(rows["Change 1"].sha) < order.index(rows["Side"].sha) < order.index(rows["Merge"].sha)
    assert take(checkout)["added"] == 0


def test_a_commit_that_moves_a_file_changed_both_of_its_names(history, take, checkout):
    subprocess.run(["git", "-C", str(checkout), "mv", "a.py", "README.md"], check=True)
    who = ("-c", "user.name=Ada", "-c", "user.email=Ada")
    subprocess.run(["git", "-C", str(checkout), *who, "commit", "-q", "-m", "Move"], check=True)
    take(checkout)
    assert [row.files for row in history.commits() if row.message == "Move"] == [("README.md", "a.py")]


def test_where_a_clone_is_cut_off_nobody_knows_what_was_changed(history, take, checkout, tmp_path):
    shallow = tmp_path / "shallow"
    clone = ["git", "clone", "-q", "--depth", "1", f"file://{checkout}", str(shallow)]
    subprocess.run(clone, check=True, capture_output=True)
    report = take(shallow, constants={"repository": "owner/name"})
    assert [(row.files, row.parents) for row in history.commits()] == [((), ())]
    (note,) = report["notes"]
    assert "shallow: the clone is shallow" in note
    assert "fetch-depth: 0" in note
    take(checkout)
    assert [row.files for row in history.commits() if row.message == "Merge"] == [("side.py",)]


def test_a_repository_without_commits_is_rejected(take, tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path / "empty")], check=True)
    assert "git cannot read it" in take(tmp_path / "empty")["rejected"][0]["reason"]


def test_a_folder_is_walked_through_and_what_is_meant_is_found(take, tmp_path):
    folder = tmp_path / "mixed"
    (folder / "below" / ".hidden").mkdir(parents=True)
    (folder / "below" / "junit.xml").write_text('<testsuite name="s"><testcase name="t"/></testsuite>')
    (folder / "below" / ".hidden" / "junit.xml").write_text('<testsuite name="s"><testcase name="hidden"/></testsuite>')
    (folder / "jobs.csv").write_text("commit,time,job,status\nc,2020-01-01,a,pass\n")
    (folder / "README.md").write_text("words")
    (folder / "empty.json").write_text("")
    report = take(folder)
    assert report["tables"] == {"jobs": 1, "tests": 1}
    assert [rejected["reason"] for rejected in report["rejected"]] == ["it is empty"]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("<?xml version='1.0'?><testsuite/>", "junit"),
        ("\ufeff<testsuite/>", "junit"),
        ("a,b\n1,2\n", "csv"),
        ("a\tb\n", "csv"),
        ('{"a": 1}\n{"a": 2}\n', "jsonl"),
        ('[{"a": 1}, {"a": 2}]', "json"),
        ('{"env": {"config": {"file": 1.5}}}', "test-times"),
        ('{"total_count": 1, "jobs": [{"run_id": 1, "labels": []}]}', "github"),
        ('{"workflow_runs": [{"head_sha": "a", "workflow_id": 2}]}', "github"),
        ('{"id": "x", "pipeline": {}, "state": "passed", "jobs": []}', "buildkite"),
        (b"PAR1....", "parquet"),
    ],
)  # fmt: skip
def test_a_format_is_told_by_the_content(write, content, name):
    assert format_of(write("file", content)) == name


@pytest.mark.parametrize(
    "content", ["[]", '{"total_count": 0, "workflow_runs": []}', '{"total_count": 0, "jobs": []}\n']
)
def test_a_list_or_page_with_nothing_on_it_is_taken_in(write, take, content):
    report = take(write("file.json", content))
    assert (report["rows"], report["rejected"]) == (0, [])


@pytest.mark.parametrize("content", ["[", "{", '{"jobs": [', "[1]", "{}"])
def test_json_that_is_cut_off_or_holds_no_rows_is_not_taken_for_an_empty_list(write, take, content):
    assert len(take(write("file.json", content))["rejected"]) == 1


def test_text_in_utf_16_is_told_to_be_just_that(write, take):
    (rejected,) = take(write("jobs.csv", "commit,time\n".encode("utf-16")))["rejected"]
    assert rejected["reason"] == "it is UTF-16, which only XML may be: save it as UTF-8"
    assert (
        format_of(write("junit.xml", "<?xml version='1.0' encoding='utf-16'?><testsuite/>".encode("utf-16"))) == "junit"
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PK\x03\x04\x14\0", "it is a ZIP archive: unpack it first (gzip and Zstandard are read as they are)"),
        (gzip.compress(b"a.xml".ljust(257, b"\0") + b"ustar\0"), "it is a tar archive: unpack it first"),
        (b"\x7fELF\2\1\1\0\0\n\0", "it is binary, and none of junit, csv"),
    ],
)
def test_what_is_no_text_is_told_as_such_and_not_shown(take, write, content, reason):
    (rejected,) = take(write("x.bin", content))["rejected"]
    assert rejected["reason"].startswith(reason)


def test_numbers_of_sccache_that_are_none_are_left_out(history, write, take):
    stats = {"compile_requests": 4, "cache_hits": {"counts": {"CUDA": "x", "C": 2}}, "write": {"secs": 0, "nanos": "x"}}
    take(write("s.json", json.dumps({"stats": stats})))
    assert {row.name: row.value for row in history.measures()} == {
        "sccache.compile_requests": 4, "sccache.cache_hits": 2, "sccache.hit_rate": 1,
    }  # fmt: skip


def test_a_large_first_item_is_told_too(write):
    big = {"run_id": 1, "labels": ["x" * 100_000], "name": "a"}
    assert format_of(write("file", json.dumps([big]))) == "github"


def values(text):
    import io

    return [item.reason if isinstance(item, Broken) else item.value for item in items(io.BytesIO(text.encode()))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("[]", []),
        ('{"a": 1}', [{"a": 1}]),
        ('{"a": 1}{"a": 2}', [{"a": 1}, {"a": 2}]),
        ('[{"a": 1}][{"a": 2}]', [{"a": 1}, {"a": 2}]),
        ('[[{"a": 1}], {"a": "]}"}]', [{"a": 1}, {"a": "]}"}]),
        ('{"total_count": 2, "jobs": [{"a": 1}], "next": null}', [{"a": 1}]),
        ('{"jobs": [{"jobs": [1, 2]}]}', [1, 2]),
        ('{"id": 1, "jobs": [1, 2]}', [{"id": 1, "jobs": [1, 2]}]),
        ("[1, 12", [1, 12, "the file ends in the middle of a list"]),
    ],
)  # fmt: skip
def test_items_are_found_in_any_nesting(text, expected):
    assert values(text) == expected


def test_items_larger_than_a_piece_that_is_read_are_whole():
    text = "x" * 3_000_000
    assert values(json.dumps([{"a": text}, {"b": text}])) == [{"a": text}, {"b": text}]


def test_lists_nested_without_end_are_told():
    assert values("[" * 100_000)[0].startswith("lists nested")
