"""GitHub's REST API: pages, rate limits, failures that pass. Asks; understands nothing.

Sources: docs.github.com/en/rest/using-the-rest-api (rate limits: wait for `retry-after`, else until
`x-ratelimit-reset`; secondary limits: at least a minute) and its page on `/actions/runs` (at most 1,000 runs a search).
"""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from sooner.history.errors import Gone, IngestError

_PER_PAGE: Final = 100
_TRIES: Final = 6
_FIRST_PAUSE_S: Final = 1.0
_SECONDARY_PAUSE_S: Final = 60.0
_LIMITED: Final = (b"rate limit", b"abuse detection")
"""What the refusals of a limit say: proxies drop the headers, older enterprise servers speak of abuse."""
_LONGEST_PAUSE_S: Final = 3_900.0
"""A primary limit resets every hour."""
_TIMEOUT_S: Final = 60.0
_GONE: Final = frozenset({404, 410})
_NEXT: Final = re.compile(r'<([^<>]*)>\s*;[^,<>]*\brel="?next\b')
"""In the header `link` (RFC 8288), as GitHub's page on pagination shows it."""
_HINTS: Final[Mapping[int, str]] = {
    301: "the repository has another name by now: pass that one",
    401: "the token in GITHUB_TOKEN is not valid",
    403: "the token in GITHUB_TOKEN may not read Actions of it",
    404: "there is no such repository, or GITHUB_TOKEN may not see it",
}


def query_of_next(link: str) -> str | None:
    """The query by which the next page of a list is asked for; None where there is none.

    Of the next page's address no more is taken: a server behind a proxy names itself as it is called inside, and the
    token goes to the server that was named.

    Args:
        link: The header of that name.
    """
    found = _NEXT.search(link)
    return None if found is None else urlsplit(found[1]).query


class Api:
    """One server, one token.

    Args:
        url: `https://api.github.com`, or that of an enterprise server.
        token: Empty: what everybody may see, 60 requests an hour.
        pause: Waits so many seconds and says why.
    """

    def __init__(self, url: str, token: str, pause: Callable[[float, str], None]) -> None:
        try:
            import urllib3
        except ModuleNotFoundError as error:
            raise IngestError(url, "asking GitHub needs urllib3: `pip install 'sooner[github]'`") from error
        self._url = url.rstrip("/")
        self._pause = pause
        headers = {
            "accept": "application/vnd.github+json",
            "user-agent": "sooner",
            "x-github-api-version": "2022-11-28",
        }
        token = token.strip()  # secrets often end with a line break
        if not all("!" <= char <= "~" for char in token):
            raise IngestError(url, "GITHUB_TOKEN is no token: it holds a space, a line break or a letter beyond ASCII")
        if token:
            headers["authorization"] = f"Bearer {token}"
        self._pool = urllib3.PoolManager(headers=headers, retries=False, timeout=_TIMEOUT_S)
        self.requests = 0

    def get(self, path: str, **parameters: str) -> Mapping[str, Any]:
        """One object.

        Raises:
            Gone: There is no such object.
            IngestError: The server refuses or cannot be reached.
        """
        return self._get(self._address(path, parameters))[0]

    def pages(self, path: str, **parameters: str) -> Iterator[Mapping[str, Any]]:
        """Page after page.

        Raises:
            Gone: There is no such list.
            IngestError: The server refuses or cannot be reached.
        """
        query: str | None = urlencode({"per_page": str(_PER_PAGE), **parameters})
        asked: set[str] = set()
        while query is not None and query not in asked:
            asked.add(query)
            page, link = self._get(f"{self._address(path, {})}?{query}")
            yield page
            query = query_of_next(link)

    def _address(self, path: str, parameters: Mapping[str, str]) -> str:
        return f"{self._url}/{path.lstrip('/')}" + (f"?{urlencode(parameters)}" if parameters else "")

    def _get(self, address: str) -> tuple[Mapping[str, Any], str]:
        """A page and its links; waits where the server asks for it, and for failures that pass."""
        failures, last = 0, ""
        while failures < _TRIES:
            status, headers, body = self._ask(address)
            if status == 200:  # noqa: PLR2004 - OK
                value = _decoded(body)
                if isinstance(value, dict):
                    return value, headers.get("link", "")
                last = "the answer is no JSON object"
            elif status in (403, 429) and (wait := _wait(headers, body)):
                self._pause(wait, "GitHub's rate limit is reached")
                continue
            elif status and status < 500 and status != 429:  # noqa: PLR2004 - what asking again does not change
                hint = _HINTS.get(status, body[:200].decode("utf-8", "replace"))
                refused = Gone if status in _GONE else IngestError
                raise refused(address, f"GitHub answers {status}: {hint}")
            else:
                last = f"GitHub answers {status}" if status else body.decode("utf-8", "replace")
            failures += 1
            if failures < _TRIES:
                self._pause(_FIRST_PAUSE_S * 2 ** (failures - 1), last)
        raise IngestError(address, f"{last}, {failures} times: try again later; what was read is kept")

    def _ask(self, address: str) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body; status 0 and a reason where there was no answer."""
        import urllib3

        self.requests += 1
        try:
            answer = self._pool.request("GET", address, redirect=True)
        except urllib3.exceptions.HTTPError as error:
            return 0, {}, f"GitHub cannot be reached ({error})".encode()
        return answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.data


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _wait(headers: Mapping[str, str], body: bytes) -> float:
    """Seconds that the server wants us to wait; 0 where it refuses for another reason."""
    if (after := headers.get("retry-after", "")).isdecimal():
        return min(float(after), _LONGEST_PAUSE_S) or 1.0
    if headers.get("x-ratelimit-remaining") == "0" and (reset := headers.get("x-ratelimit-reset", "")).isdecimal():
        return min(max(float(reset) - time.time(), 0.0) + 1.0, _LONGEST_PAUSE_S)
    return _SECONDARY_PAUSE_S if any(words in body.lower() for words in _LIMITED) else 0.0
