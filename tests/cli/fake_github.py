"""A fake of GitHub's REST API: a real HTTP server with the few calls that reverts make, and every fault they may meet.

It is GitHub only in name: it keeps pull requests in memory, and checks that a head branch exists in a real bare
repository. Faults are planned by the number of the request, counted from 1.
"""

import json
import os
import signal
import socket
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


class FakeGitHub:
    """Serves `o/r`.

    Args:
        bare: The repository in which branches are looked up.
        is_strict: Refuse a second open request of one branch, as GitHub does; otherwise open it, so that tests see it.
    """

    def __init__(self, bare, *, is_strict=False):
        self.bare = bare
        self.is_strict = is_strict
        self.pulls = []
        self.labels = []
        self.issue = {"state": "open", "labels": []}
        self.requests = []
        self.faults = {}
        """Fault by number: a status, `drop`, `garbage`, `drop_after`, `kill`, `kill_after`, `limit`."""
        self.client = lambda: None
        """The process id to kill."""
        self._lock = threading.Lock()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                fake.handle(self, "GET")

            def do_POST(self):
                fake.handle(self, "POST")

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # connections that a fault broke
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def handle(self, request, method):
        body = request.rfile.read(int(request.headers.get("content-length") or 0))
        with self._lock:
            self.requests.append(f"{method} {request.path}")
            fault = self.faults.get(len(self.requests))
            if fault == "kill":
                os.kill(self.client(), signal.SIGKILL)
                request.close_connection = True
                return
            if fault == "drop":
                request.connection.shutdown(socket.SHUT_RDWR)
                request.close_connection = True
                return
            if fault == "limit":
                self._send(request, 403, b'{"message": "API rate limit exceeded"}', {"retry-after": "0"})
                return
            if isinstance(fault, int):
                self._send(request, fault, b"<html>not now</html>")
                return
            status, value = self._answer(method, request.path, body)
            if fault == "kill_after":
                os.kill(self.client(), signal.SIGKILL)
                request.close_connection = True
                return
            if fault == "drop_after":
                request.connection.shutdown(socket.SHUT_RDWR)
                request.close_connection = True
                return
            self._send(request, status, b'[{"number": ' if fault == "garbage" else json.dumps(value).encode())

    def _send(self, request, status, data, headers=None):
        request.send_response(status)
        for name, text in (headers or {}).items():
            request.send_header(name, text)
        request.send_header("content-length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    def _answer(self, method, path, body):
        parts = urlsplit(path)
        query = parse_qs(parts.query)
        if method == "POST" and parts.path == "/repos/o/r/pulls":
            return self._open(json.loads(body))
        if parts.path == "/repos/o/r/pulls":
            head = query["head"][0].removeprefix("o:")
            return 200, [pull for pull in self.pulls if pull["head"]["ref"] == head]
        if parts.path.startswith("/repos/o/r/commits/"):
            return 200, [{"number": 1, "labels": [{"name": name} for name in self.labels]}]
        if parts.path == "/repos/o/r/issues/5":
            return 200, self.issue
        return 404, {"message": "Not Found"}

    def _open(self, fields):
        known = subprocess.run(
            ["git", "-C", str(self.bare), "rev-parse", "--verify", "-q", f"refs/heads/{fields['head']}"],
            capture_output=True, check=False,
        )  # fmt: skip
        if known.returncode:
            return 422, {"message": "head does not exist"}
        is_open = any(pull["head"]["ref"] == fields["head"] and pull["state"] == "open" for pull in self.pulls)
        if self.is_strict and is_open:
            return 422, {"message": "A pull request already exists"}
        number = len(self.pulls) + 10
        pull = {
            "number": number, "state": "open", "html_url": f"https://github.invalid/o/r/pull/{number}",
            "head": {"ref": fields["head"]}, "title": fields["title"], "body": fields["body"], "base": fields["base"],
        }  # fmt: skip
        self.pulls.append(pull)
        return 201, pull
