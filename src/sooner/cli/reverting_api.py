"""GitHub's REST API, as far as reverts need it: asks again where asking again may help, never opens a request twice.

Sources: docs.github.com/en/rest/using-the-rest-api (rate limits: wait for `retry-after`, else until
`x-ratelimit-reset`) and its pages on pulls, commits and issues.
"""

import json
import re
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import quote, urlencode

from sooner.cli.deadline import within
from sooner.history.ingest.github_api import query_of_next
from sooner.model.errors import SoonerError, UsageError
from sooner.model.outcomes import ExitCode
from sooner.model.text import one_line

_TRIES: Final = 5
_TIMEOUT_S: Final = 30.0
"""For connecting, and for each piece of an answer."""
_WHOLE_S: Final = 60.0
"""For a whole answer, however it drips."""
_REPOSITORY: Final = re.compile(r"[\w.-]+/[\w.-]+")
_OK: Final = (200, 201)
_LONGEST_MESSAGE: Final = 300
_MOST_PAGES: Final = 100
_ODD: Final = (KeyError, ValueError, TypeError, AttributeError, OverflowError)
"""What fields raise that are not what GitHub's documentation says."""
_EXISTS: Final = 422
_GONE: Final = (404, 410)
_RESOLVED: Final = re.compile(
    r"^Pull[ -]Request[ -]resolved: https?://[^/\s]+/([\w.-]+/[\w.-]+)/pull/(\d{1,18})\b", re.MULTILINE | re.IGNORECASE
)
_NUMBER: Final = re.compile(r"\(#(\d{1,18})\)")
"""Behind the title, as GitHub and bots that land write it."""


class ApiError(SoonerError):
    """GitHub refuses, cannot be reached, or answers what cannot be understood.

    Args:
        text: What is wrong.
        status: Of the answer; 0 where there was none.
    """

    exit_code = ExitCode.INFRASTRUCTURE

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


def check_repository(name: str) -> None:
    """Refuse what cannot be a repository of GitHub.

    Raises:
        UsageError: It is no `OWNER/NAME`.
    """
    if not _REPOSITORY.fullmatch(name):
        raise UsageError(f"{name!r} is no repository: write OWNER/NAME")


def request_in(message: str, repository: str) -> int:
    """The number of the pull request that a commit's message says it came by; 0 where it says nothing."""
    said = _RESOLVED.findall(message)
    numbers = [number for name, number in said if name.lower() == repository.lower()]
    if not said:
        numbers = _NUMBER.findall(message.strip().partition("\n")[0][:_LONGEST_MESSAGE])
    return int(numbers[-1]) if numbers else 0


class _PassingError(Exception):
    """No answer that says anything: asking again may help."""


class PullRequest:
    """One pull request, as far as it matters here."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.number = int(fields["number"])
        url = fields.get("html_url")
        self.url = one_line(url)[:_LONGEST_MESSAGE] if url and isinstance(url, str) else ""
        self.is_open = fields.get("state") == "open"
        self.is_merged = bool(fields.get("merged_at"))
        self.head = str((fields.get("head") or {}).get("ref", ""))
        self.labels = tuple(str(one.get("name", "")) for one in fields.get("labels") or () if isinstance(one, dict))


class GitHub:
    """One repository on one server.

    Args:
        url: `https://api.github.com`, or that of another server.
        repository: `owner/name`.
        token: Empty: what everybody may do, which is reading.
        patience_s: How long to wait for the server in all, over all requests.
        pause_s: Wait before the first repetition; it doubles.
        sleep: Waits.

    Raises:
        UsageError: urllib3 is missing, or the repository is no name.
    """

    def __init__(
        self,
        url: str,
        repository: str,
        token: str,
        *,
        patience_s: float,
        pause_s: float = 1.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        check_repository(repository)
        try:
            import urllib3
        except ModuleNotFoundError:
            raise UsageError("asking GitHub needs urllib3: pip install 'sooner[github]'") from None
        self.repository = repository
        self._base = f"{url.rstrip('/')}/repos/{repository}"
        self._left_s = patience_s
        self._pause_s = pause_s
        self._sleep = sleep
        headers = {
            "accept": "application/vnd.github+json",
            "content-type": "application/json",
            "user-agent": "sooner",
            "x-github-api-version": "2022-11-28",
        }
        if token:
            headers["authorization"] = f"Bearer {token}"
        self._pool = urllib3.PoolManager(headers=headers, retries=False, timeout=_TIMEOUT_S)

    @property
    def owner(self) -> str:
        """Of the repository."""
        return self.repository.split("/", maxsplit=1)[0]

    def labels_of(self, sha: str, message: str) -> tuple[str, ...]:
        """Labels of the pull requests that a commit came by.

        GitHub knows none of a commit that a bot landed: there the number in its message counts.
        """
        found = self._list(f"commits/{quote(sha)}/pulls", per_page="100")
        if not found and (number := request_in(message, self.repository)):
            try:
                found = [PullRequest(self.issue(number))]
            except _ODD as error:
                raise ApiError(f"issue {number}: an answer that cannot be understood ({error!r})") from None
            except ApiError as error:
                if error.status not in _GONE:
                    raise
        return tuple(label for each in found for label in each.labels)

    def requests_from(self, branch: str) -> list[PullRequest]:
        """Every pull request that was ever opened from a branch: open ones first, then those that were merged."""
        found = self._list("pulls", head=f"{self.owner}:{branch}", state="all", per_page="100")
        return sorted(
            (one for one in found if one.head == branch), key=lambda one: (not one.is_open, not one.is_merged)
        )

    def open_request(self, *, title: str, body: str, head: str, base: str) -> PullRequest:
        """Open a pull request from a branch that had none; one that is there by now is taken instead.

        After an answer that says nothing (a broken connection, a fault of the server) it is looked whether the request
        was opened, before anything is asked again: in any state, since somebody may have closed it meanwhile.

        Raises:
            ApiError: It is not known to be open.
        """
        fields = {"title": title, "body": body, "head": head, "base": base}
        last = ""
        for number in range(_TRIES):
            try:
                status, value, _ = self._ask("POST", f"{self._base}/pulls", fields)
                if status in _OK:
                    return PullRequest(_checked(value, dict))
                last = f"GitHub answers {status}: {_message(value)}{_advice(status)}"
            except (_PassingError, *_ODD) as error:
                status, last = 0, str(error)
            if there := self.requests_from(head):
                return there[0]
            if status and status != _EXISTS:
                break
            self._wait(number, last)
        raise ApiError(f"the pull request of {head} was not opened: {one_line(last)}")

    def issue(self, number: int) -> Mapping[str, Any]:
        """One issue.

        Raises:
            ApiError: There is no answer, or it is no issue.
        """
        value: Mapping[str, Any] = self._get(f"{self._base}/issues/{number}", dict)[0]
        return value

    def _list(self, path: str, **parameters: str) -> list[PullRequest]:
        """What a list holds, over all of its pages."""
        found: list[PullRequest] = []
        query = urlencode(parameters)
        for _ in range(_MOST_PAGES):
            address = f"{self._base}/{path}?{query}"
            values, link = self._get(address, list)
            try:
                found += [PullRequest(each) for each in values]
            except _ODD as error:
                raise ApiError(f"{address}: an answer that cannot be understood ({error!r})") from None
            following = query_of_next(link)
            if following is None:
                return found
            query = following
        raise ApiError(f"{self._base}/{path}: a list of over {_MOST_PAGES} pages")

    def _get(self, address: str, kind: type) -> tuple[Any, str]:
        """A value, and where the next page is."""
        last = ""
        for number in range(_TRIES):
            try:
                status, value, link = self._ask("GET", address)
                if status in _OK:
                    return _checked(value, kind), link
                raise ApiError(f"{address}: GitHub answers {status}: {_message(value)}{_advice(status)}", status)
            except _PassingError as error:
                last = str(error)
            self._wait(number, last)
        raise ApiError(f"{address}: {one_line(last)}, {_TRIES} times: try again later")

    def _wait(self, number: int, why: str, seconds: float | None = None) -> None:
        wanted = self._pause_s * 2**number if seconds is None else seconds
        if wanted > self._left_s:
            raise ApiError(f"{one_line(why)}; no more patience to wait {wanted:.0f} s (--patience): try again later")
        self._left_s -= wanted
        self._sleep(wanted)

    def _ask(self, method: str, address: str, fields: Mapping[str, str] | None = None) -> tuple[int, Any, str]:
        """Status, decoded body and `link` of an answer that says something; waits for rate limits.

        Raises:
            _PassingError: No answer, a fault of the server, or no JSON.
        """
        import urllib3

        body = json.dumps(fields).encode() if fields is not None else None
        for _ in range(_TRIES):
            try:
                answer = within(_WHOLE_S, partial(self._pool.request, method, address, body=body, redirect=False))
            except urllib3.exceptions.HTTPError as error:
                raise _PassingError(f"GitHub cannot be reached ({type(error).__name__})") from None
            except TimeoutError as error:
                raise _PassingError(f"GitHub cannot be reached ({error})") from None
            headers = {name.lower(): text for name, text in answer.headers.items()}
            if answer.status in (403, 429) and (seconds := _rate_limit(headers, answer.data)) is not None:
                self._wait(0, "GitHub's rate limit is reached", seconds)
                continue
            if answer.status >= 500 or answer.status == 429:  # noqa: PLR2004 - the server's own faults
                raise _PassingError(f"GitHub answers {answer.status}")
            return answer.status, _decoded(answer.data, answer.status), headers.get("link", "")
        raise _PassingError("GitHub's rate limit is reached again and again")


def _decoded(data: bytes, status: int) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        if status in _OK:
            raise _PassingError("the answer is no JSON") from None
        return {"message": data[:200].decode("utf-8", "replace")}


def _checked(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise _PassingError(f"the answer is no JSON {'list' if kind is list else 'object'}")
    return value


def _message(value: object) -> str:
    """What GitHub says, with the reasons that it lists below (`errors` of a 422)."""
    if not isinstance(value, dict):
        return "(nothing)"
    errors = value.get("errors")
    reasons = [_reason(one) for one in errors] if isinstance(errors, list) else []
    text = ": ".join(part for part in (str(value.get("message", "")), "; ".join(reasons)) if part)
    return one_line(text)[:_LONGEST_MESSAGE]


def _reason(error: object) -> str:
    return str(error.get("message") or error.get("code") or "") if isinstance(error, dict) else str(error)


def _advice(status: int) -> str:
    """What to do about a refusal that asking again does not change."""
    if status in (301, 302, 307, 308):
        return " (the repository has another name now, or --api is another address: pass that)"
    return {
        401: " (GITHUB_TOKEN is missing, wrong or has expired)",
        403: " (GITHUB_TOKEN may not do that: it needs to write contents and pull requests)",
        404: " (no such repository, or GITHUB_TOKEN may not see it)",
    }.get(status, "")


def _rate_limit(headers: Mapping[str, str], body: bytes) -> float | None:
    """Seconds to wait; None where a refusal is no rate limit."""
    after = headers.get("retry-after", "")
    if after.isascii() and after.replace(".", "", 1).isdigit():
        return float(after)
    if headers.get("x-ratelimit-remaining") == "0":
        reset = headers.get("x-ratelimit-reset", "")
        return max(1.0, float(reset) - time.time()) if reset.isascii() and reset.isdigit() else 60.0
    return 60.0 if b"rate limit" in body else None
