"""The kill switch: reverts need somebody to say "go", each time. No answer, or another one, is "stop"."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sooner.cli.deadline import within
from sooner.cli.reverting_api import GitHub
from sooner.model.errors import UsageError
from sooner.model.text import one_line

_GO: Final = frozenset({"on", "go", "enabled", "true", "yes", "1"})
_ISSUE: Final = re.compile(r"github:(?P<repository>[\w.-]+/[\w.-]+)#(?P<number>\d+)(?::(?P<label>.+))?")
_TIMEOUT_S: Final = 20.0
"""For connecting, and for each piece of an answer."""
_WHOLE_S: Final = 60.0
"""For a whole answer, however it drips, and whoever gives it."""
_MOST_BYTES: Final = 4096
_OK: Final = 200


def why_stopped(switch: str, server: Callable[[str], GitHub]) -> str:
    """Why nothing must be done; empty where reverts may go on.

    Args:
        switch: A file or an http(s) URL that says `on` (or JSON: `{"enabled": true}`), `github:OWNER/NAME#ISSUE` (an
            issue that is open) or `github:OWNER/NAME#ISSUE:LABEL` (and has that label); empty: there is no switch.
        server: Makes what asks about a repository.
    """
    if not switch:
        return ""
    try:
        said = within(_WHOLE_S, lambda: _state(switch, server))
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the answer, it is no "go"
        return f"the kill switch {switch} says nothing ({one_line(str(error))[:200]}): nothing is done"
    return "" if said in _GO else f"the kill switch {switch} says {said!r}: nothing is done"


def _state(switch: str, server: Callable[[str], GitHub]) -> str:
    if switch.startswith("github:"):
        return _issue(switch, server)
    text = _get(switch) if switch.startswith(("http://", "https://")) else _read(switch)
    try:
        value = json.loads(text)
    except ValueError:
        return one_line(text).lower()[:40]
    if isinstance(value, dict):
        return "on" if value.get("enabled") is True else "off"
    return str(value).lower()[:40]


def _read(path: str) -> str:
    with Path(path).open("rb") as file:
        return file.read(_MOST_BYTES).decode()


def _get(url: str) -> str:
    try:
        import urllib3
    except ModuleNotFoundError:
        raise UsageError("asking a URL needs urllib3: pip install 'sooner[github]'") from None
    try:
        pool = urllib3.PoolManager(retries=False, timeout=_TIMEOUT_S)
        answer = pool.request("GET", url, preload_content=False)
        data = answer.read(_MOST_BYTES)  # of an answer without end, too
        answer.close()
    except urllib3.exceptions.HTTPError as error:
        raise OSError(f"no answer, {type(error).__name__}") from None
    if answer.status != _OK:
        raise OSError(f"status {answer.status}")
    return data.decode()


def _issue(switch: str, server: Callable[[str], GitHub]) -> str:
    match = _ISSUE.fullmatch(switch)
    if match is None:
        raise ValueError("write github:OWNER/NAME#NUMBER or github:OWNER/NAME#NUMBER:LABEL")
    issue = server(match["repository"]).issue(int(match["number"]))
    if issue.get("state") != "open":
        return one_line(str(issue.get("state")))
    labels = [one.get("name") for one in issue.get("labels") or () if isinstance(one, dict)]
    return "on" if match["label"] is None or match["label"] in labels else f"no label {match['label']}"
