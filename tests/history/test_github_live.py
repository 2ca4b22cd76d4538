"""Asking GitHub's API: pages, limits, interruptions; against a server on this machine."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from test_github_dumps import T0, job, run

from sooner.history import IngestError
from sooner.history.ingest import github_live
from sooner.history.ingest.github_api import Api

DAY = 86_400


class Server:
    """Answers for one repository, and notes what it was asked."""

    def __init__(self):
        self.runs = []
        self.jobs = {}
        self.asked = []
        self.troubles = {}
        """Answers (status, headers, body) to give first, by a part of the path."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                status, headers, body = server.answer(self.path, self.headers)
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {**headers, "content-length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = self.named = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def answer(self, path, headers):
        self.asked.append(path)
        self.authorization = headers.get("authorization")
        for part, answers in self.troubles.items():
            if part in path and answers:
                return answers.pop(0)
        parts = urlsplit(path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/repos/o/n/actions/runs":
            return self.listed(path, "workflow_runs", self._created(query["created"]), query)
        identity = parts.path.removeprefix("/repos/o/n/actions/runs/").split("/")
        if identity[1:] == ["jobs"]:
            return self.listed(path, "jobs", self.jobs.get(int(identity[0]), []), query)
        return 200, {}, run(id=int(identity[0]), run_attempt=int(identity[2]))

    def _created(self, window):
        begin, end = window.split("..")
        return [run for run in self.runs if begin <= run["created_at"] <= end]

    def listed(self, path, key, items, query):
        page, size = int(query.get("page", 1)), 2
        found = items[(page - 1) * size : page * size]
        link = {}
        if page * size < len(items):
            link = {"link": f'<{self.named}{path.partition("&page=")[0]}&page={page + 1}>; rel="next"'}
        return 200, link, {"total_count": getattr(self, "total", len(items)), key: found}


@pytest.fixture
def server(monkeypatch):
    server = Server()
    monkeypatch.setenv("GITHUB_API_URL", server.url)
    monkeypatch.setenv("GITHUB_TOKEN", "s3cret")
    for i in range(5):
        server.runs.append(run(id=10 + i))
        server.jobs[10 + i] = [job(f"job{k}", id=100 * i + k + 1, run_id=10 + i) for k in range(3)]
    yield server
    server.http.shutdown()
    server.http.server_close()


@pytest.fixture
def waits(monkeypatch):
    waits = []
    monkeypatch.setattr(github_live, "_pause", lambda seconds, why: waits.append((seconds, why)))
    return waits


@pytest.fixture
def ask(take):
    return lambda name="github:o/n", **more: take(name, since=T0 - DAY, until=T0 + DAY, **more)


def test_all_pages_of_runs_and_jobs_are_asked_for(history, ask, server, waits):
    report = ask()
    assert (report["tables"]["jobs"], report["tables"]["runs"], report["rejected"]) == (15, 5, [])
    assert server.authorization == "Bearer s3cret"
    assert {row.repository for row in history.jobs()} == {"o/n"}
    assert waits == []


def test_an_address_that_is_set_to_nothing_is_not_set(ask, server, waits, monkeypatch):
    monkeypatch.setenv("GITHUB_API_URL", "")
    monkeypatch.setattr(github_live, "_DEFAULT_URL", server.url)
    assert ask()["tables"]["runs"] == 5


def test_what_is_known_is_not_asked_for_again(ask, server):
    ask()
    server.asked.clear()
    server.runs.append(run(id=99))
    server.jobs[99] = [job("new", id=999, run_id=99)]
    assert ask()["tables"]["jobs"] == 1
    assert [path for path in server.asked if "/jobs" in path] == [
        "/repos/o/n/actions/runs/99/jobs?per_page=100&filter=all"
    ]


def test_a_run_that_went_on_is_asked_for_again(history, ask, server):
    server.runs[0] |= {"status": "in_progress", "conclusion": None}
    ask()
    server.runs[0] |= {"status": "completed", "conclusion": "failure"}
    server.asked.clear()
    ask()
    assert [path for path in server.asked if "/jobs" in path] != []
    assert [row.outcome for row in history.runs() if row.run == "10"] == ["failed"]


def test_earlier_attempts_of_a_run_are_asked_for(history, ask, server):
    server.runs = [run(id=10, run_attempt=3)]
    ask()
    assert [row.attempt for row in history.runs()] == [1, 2, 3]


def test_an_interruption_keeps_what_was_read_and_the_next_call_goes_on(history, ask, server, waits):
    server.troubles["runs/13/jobs"] = [(500, {}, {})] * 6
    with pytest.raises(IngestError, match=r"500, 6 times.*what was read is kept"):
        ask()
    assert len(history.runs()) == 3
    server.asked.clear()
    assert ask()["tables"]["runs"] == 2
    assert not any("runs/10/jobs" in path for path in server.asked)
    assert [seconds for seconds, _ in waits] == [1, 2, 4, 8, 16]


def test_rate_limits_are_waited_for(history, ask, server, waits):
    server.troubles["runs/11/jobs"] = [
        (429, {"retry-after": "7"}, {}),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "0"}, {}),
        (403, {}, {"message": "You have exceeded a secondary rate limit"}),
        (403, {}, {"message": "API rate limit exceeded for 192.0.2.1."}),
        (403, {}, {"message": "You have triggered an abuse detection mechanism."}),
        (502, {}, {}),
    ]
    ask()
    assert len(history.runs()) == 5
    assert [seconds for seconds, _ in waits] == [7, 1, 60, 60, 60, 1]


def test_a_run_that_is_deleted_while_it_is_asked_about_costs_only_itself(history, ask, server):
    server.troubles["runs/12/jobs"] = [(404, {}, {"message": "Not Found"})]
    report = ask()
    assert sorted(row.run for row in history.runs()) == ["10", "11", "13", "14"]
    assert [(one["path"], one["reason"]) for one in report["rejected"]] == [
        ("repos/o/n/actions/runs/12/jobs", "GitHub has it no more")
    ]


def test_an_attempt_that_is_gone_costs_only_itself(history, ask, server):
    server.runs = [run(id=10, run_attempt=3)]
    server.troubles["runs/10/attempts/1"] = [(410, {}, {"message": "Gone"})]
    report = ask()
    assert [row.attempt for row in history.runs()] == [2, 3]
    assert [one["path"] for one in report["rejected"]] == ["repos/o/n/actions/runs/10/attempts/1"]


@pytest.mark.parametrize(
    ("status", "hint"),
    [(301, "has another name by now"), (401, "not valid"), (403, "may not read"), (404, "no such repository")],
)
def test_a_refusal_is_an_error_with_a_hint(ask, server, status, hint):
    server.troubles["actions/runs"] = [(status, {}, {})]
    with pytest.raises(IngestError, match=hint):
        ask()


@pytest.mark.parametrize("body", [b"", b"[]", b'{"jobs": [', b'{"jobs": "\xff"}', b"[" * 100_000])
def test_an_answer_that_is_none_is_asked_for_again(history, ask, server, waits, body):
    server.troubles["runs/11/jobs"] = [(200, {}, body)]
    ask()
    assert len(history.runs()) == 5
    assert waits == [(1, "the answer is no JSON object")]


def test_a_server_that_is_not_there_is_an_error(ask, monkeypatch, waits):
    monkeypatch.setenv("GITHUB_API_URL", "http://127.0.0.1:9")
    with pytest.raises(IngestError, match="cannot be reached"):
        ask()


def test_the_token_goes_to_no_other_server(history, ask, server):
    other = Server()
    window = "created=2000-01-01T00:00:00Z..2100-01-01T00:00:00Z"
    elsewhere = {"link": f'<{other.url}/repos/o/n/actions/runs?{window}&page=2>; rel="next"'}
    server.troubles["actions/runs?"] = [(200, elsewhere, {"total_count": 1, "workflow_runs": [run(id=10)]})]
    ask()
    assert other.asked == []
    assert any("page=2" in path for path in server.asked)
    other.http.shutdown()
    other.http.server_close()


def test_all_pages_are_asked_for_of_a_server_that_is_called_otherwise_inside(ask, server, waits):
    server.named = "https://github.internal.example/api/v3"
    assert ask()["tables"]["jobs"] == 15


def test_more_runs_than_github_shows_are_asked_for_in_parts(ask, server):
    server.total = 1001
    server.answer_listed = server.listed

    def listed(path, key, items, query):
        status, headers, body = server.answer_listed(path, key, items, query)
        if key == "workflow_runs" and len([p for p in server.asked if "created" in p]) > 1:
            body["total_count"] = len(items)
        return status, headers, body

    server.listed = listed
    assert ask()["tables"]["runs"] == 5
    windows = {path.partition("created=")[2].partition("&")[0] for path in server.asked if "created=" in path}
    assert len(windows) == 3


def test_a_time_that_ends_before_it_begins_is_an_error(take, server):
    with pytest.raises(IngestError, match="--since is 2026-01-01T00:00:00Z, not before --until, 2025-12-31T00:00:00Z"):
        take("github:o/n", since=T0, until=T0 - DAY)
    assert server.asked == []


@pytest.mark.parametrize("name", ["github:", "github:no-slash", "github:a/b/c"])
def test_a_name_that_is_no_repository_is_an_error(ask, name):
    with pytest.raises(IngestError, match="github:owner/name"):
        ask(name)


@pytest.mark.parametrize("token", ["s3cret\nx", "s3 cret", "s3cret\u2603"])
def test_a_token_that_is_none_is_one_clear_error_and_is_not_shown(token):
    with pytest.raises(IngestError, match="GITHUB_TOKEN is no token") as caught:
        Api("https://api.invalid", token, print)
    assert "s3" not in str(caught.value)
    Api("https://api.invalid", "s3cret\n", print)
