"""What may be reverted, what it is called, and what a journal says of it. Pure: facts and time come in, words go out.

A revert of one commit has one branch, named after the commit: whoever looks at the remote sees whether it was made, and
two who make it at once cannot both push it. The journal says what was begun; where it says no end, the remote decides.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final, Literal

from msgspec import Struct

from sooner.analysis.trunk.titles import number_of, plain, unwrapped
from sooner.model.text import one_line, probability_text

DAY_S: Final = 86_400.0
TRAILER: Final = "Sooner-Reverts:"
BRANCH: Final = "sooner/revert-{sha}"
_SHA: Final = re.compile(r"[0-9a-f]{7,64}")
_REVERTS: Final = re.compile(r"^This reverts commit ([0-9a-f]{7,64})\b", re.MULTILINE)
_MARK: Final = re.compile(
    r"^(?:auto-?revert:\s*(?:no|off|false|never)|no-?auto-?revert)\s*$", re.IGNORECASE | re.MULTILINE
)
"""A line of a commit's message by which its author opts out."""
_SKIPS_CI: Final = re.compile(r"\[(skip ci|ci skip|no ci|skip actions|actions skip)\]", re.IGNORECASE)
"""Words by which a quoted subject would keep CI from running on the revert (GitHub's documentation names them)."""
_MOST_SIGNALS: Final = 20
_LONGEST: Final = 200


class Refusal(StrEnum):
    """Why a commit is not reverted."""

    UNKNOWN = "unknown_commit"
    NOT_ON_TRUNK = "not_on_trunk"
    ALREADY = "already_reverted"
    IS_REVERT = "is_a_revert"
    MERGES_TRUNK = "merges_trunk"
    TOO_OLD = "too_old"
    OPTED_OUT = "opted_out"
    DAILY_LIMIT = "daily_limit"
    CONFLICT = "conflict"
    DEPENDENTS = "dependents"
    EMPTY = "nothing_to_revert"
    CLOSED = "closed_by_somebody"
    KILL_SWITCH = "kill_switch"
    BRANCH_TAKEN = "branch_taken"


class Limits(Struct, frozen=True, kw_only=True):
    """What reverts keep to."""

    a_day: int = 3
    """Commits within 24 h, by this journal. LUCI's reverts are capped at 10 a day for a tree of Chromium's size."""
    oldest_s: float = 2 * DAY_S
    """Age of the culprit. What is older has been built upon: PyTorch looks back 16 h, LUCI refuses after some days."""
    opt_out: str = "no-auto-revert"
    """Label of the pull request by which its author opts out."""


class Culprit(Struct, frozen=True, kw_only=True):
    """What is known of a commit that should go."""

    sha: str
    time: float
    """Committer's time, epoch seconds."""
    message: str
    labels: tuple[str, ...] = ()
    """Of its pull request, where that is known."""
    undoes: str = ""
    """A commit of trunk that its message says it reverts."""
    reverted_by: str = ""
    """A commit of trunk that reverts it."""
    dependents: tuple[str, ...] = ()
    """Later commits that need it, with what of it they need."""
    is_merge: bool = False
    merges_trunk: bool = False
    """It is a merge of trunk into something, as `git pull` makes it: what it brought along is the work of others."""

    @property
    def subject(self) -> str:
        """The first line of its message, safe on one line."""
        return subject_of(self.message)


class State(StrEnum):
    """What a line of the journal says of an action."""

    BEGIN = "begin"
    DONE = "done"
    FAILED = "failed"
    """It did not happen, as far as is known; another try may do it."""
    REFUSED = "refused"


class Action(StrEnum):
    """What is done."""

    REVERT = "revert"
    """The whole: refused, or done."""
    PUSH = "push"
    PULL_REQUEST = "pull_request"


class Line(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the journal. What a version that is not known means nobody may guess: it may be a revert."""

    v: Literal[1] = 1
    at: float
    culprit: str
    action: Action
    state: State
    target: str = ""
    """Where: repository and branch."""
    commit: str = ""
    """The revert."""
    url: str = ""
    detail: str = ""


def subject_of(message: str) -> str:
    """The first line of a message; safe on one line."""
    return one_line(message.strip().partition("\n")[0])[:_LONGEST]


def is_sha(text: str) -> bool:
    """Whether a text can be nothing but a commit's id."""
    return _SHA.fullmatch(text) is not None


def branch_of(sha: str) -> str:
    """The one branch of the revert of a commit."""
    return BRANCH.format(sha=sha)


def reverted_in(message: str) -> tuple[str, ...]:
    """Ids of the commits that a message says it reverts."""
    return tuple(_REVERTS.findall(message))


def reverter_of(sha: str, message: str, later: Sequence[tuple[str, str]]) -> str:
    """The later commit that reverts one; empty where none says so.

    By its id, as `git revert` writes it; else by its title, as GitHub's button and people do. Where a later commit has
    the same title, a revert after that may be that one's.

    Args:
        sha: The commit.
        message: Its message.
        later: Ids and messages of the commits after it, newest first.
    """
    for one, text in later:
        if any(sha.startswith(other) for other in reverted_in(text)):
            return one
    title = _title_in(message)
    for one, text in reversed(later) if title else ():
        other, reverts, _ = unwrapped(_title_in(text))
        numbers = {number_of(title), number_of(other)} - {""}
        if plain(other) == plain(title) and len(numbers) < 2 and not reverted_in(text):  # noqa: PLR2004 - they differ
            return one if reverts % 2 == 1 else ""
    return ""


def _title_in(message: str) -> str:
    """The first line as it is: one that is cut is not the title that another commit speaks of."""
    return message.strip().partition("\n")[0].strip()


def is_merge_of(message: str, trunk: str) -> bool:
    """Whether the message of a merge is one that git writes where a branch of that name is merged into another."""
    merge = rf"\s*Merge (?:branch '|remote-tracking branch '[^'/\s]+/){re.escape(trunk)}'"
    return re.match(merge, message) is not None


def title_of(culprit: Culprit) -> str:
    """As `git revert` and GitHub spell it."""
    return _SKIPS_CI.sub(r"(\1)", f'Revert "{culprit.subject}"')


def message_of(culprit: Culprit, signals: Sequence[str], probability: float | None, reason: str) -> str:
    """The message of the revert: what, why, by which evidence. Text from outside stays on its line."""
    sure = "by rules" if probability is None else f"probability {probability_text(probability)}"
    lines = [title_of(culprit), "", f"This reverts commit {culprit.sha}.", "", f"It broke trunk ({sure})."]
    if reason:
        lines.append(f"Evidence: {one_line(reason)[:_LONGEST]}")
    lines += [f"Signal: {one_line(signal)[:_LONGEST]}" for signal in signals[:_MOST_SIGNALS]]
    if len(signals) > _MOST_SIGNALS:
        lines.append(f"... and {len(signals) - _MOST_SIGNALS} more signals")
    return _SKIPS_CI.sub(r"(\1)", "\n".join([*lines, "", f"{TRAILER} {culprit.sha}", ""]))


def body_of(message: str) -> str:
    """The pull request's text: the message below its title, as text, whatever stands in it."""
    text = message.partition("\n")[2].strip()
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}\n"


def is_revert_of(message: str, sha: str) -> bool:
    """Whether a commit's message is one that `message_of` made for a culprit."""
    return f"{TRAILER} {sha}" in message.splitlines()


def commands_of(culprit: Culprit, trunk: str) -> tuple[str, ...]:
    """What a person would type to make the revert; safe to paste."""
    branch = branch_of(culprit.sha)
    parent = "--mainline 1 " if culprit.is_merge else ""
    return (
        f"git fetch origin {shlex.quote(trunk)}",
        f"git switch --create {branch} FETCH_HEAD",
        f"git revert {parent}{culprit.sha}",
        f"git push origin HEAD:refs/heads/{branch}",
    )


def refusal(
    culprit: Culprit, journal: Iterable[Line], limits: Limits, now: float, target: str
) -> tuple[Refusal, str] | None:
    """Why a commit must not be reverted, as far as its facts tell; None where it may be.

    A revert that was begun is carried on whatever the day's limit and its age by now are: it is no second one.
    """
    lines = list(journal)
    if culprit.reverted_by:
        return Refusal.ALREADY, f"trunk has its revert, {culprit.reverted_by}"
    if culprit.undoes or any(unwrapped(culprit.subject)[1:]):
        return Refusal.IS_REVERT, "a person reverted or landed that again on purpose: only a person undoes it"
    if culprit.merges_trunk:
        return (
            Refusal.MERGES_TRUNK,
            "it merged trunk into something else: its revert would take away what others landed",
        )
    if _MARK.search(culprit.message):
        return Refusal.OPTED_OUT, "its message says so"
    if limits.opt_out and limits.opt_out in culprit.labels:
        return Refusal.OPTED_OUT, f"its pull request has the label {one_line(limits.opt_out)}"
    if culprit.dependents:
        return Refusal.DEPENDENTS, "; ".join(culprit.dependents)
    if is_begun(lines, culprit.sha, target):
        return None
    if now - culprit.time > limits.oldest_s:
        return Refusal.TOO_OLD, f"it landed {(now - culprit.time) / 3600:.1f} h ago, over {limits.oldest_s / 3600:g} h"
    recent = begun_since(lines, now - DAY_S) - {culprit.sha}
    if len(recent) >= limits.a_day:
        return Refusal.DAILY_LIMIT, f"{len(recent)} reverts within a day, at most {limits.a_day}"
    return None


def begun_since(journal: Iterable[Line], since: float) -> set[str]:
    """Commits whose revert was begun: what was begun and has no end may have happened, so it counts."""
    begun: set[str] = set()
    pushed: set[str] = set()
    for line in journal:
        if line.at < since:
            continue
        if line.action is not Action.REVERT and line.state in (State.BEGIN, State.DONE):
            begun.add(line.culprit)
            if line.state is State.DONE:
                pushed.add(line.culprit)
        elif line.action is Action.REVERT and line.state is State.REFUSED:
            begun.discard(line.culprit)
    return begun | pushed


def is_begun(journal: Iterable[Line], sha: str, target: str) -> bool:
    """Whether an action on a commit was begun there and the whole has no end; no refusal ends what was pushed."""
    begun = pushed = False
    for line in journal:
        if (line.culprit, line.target) != (sha, target):
            continue
        if line.action is Action.REVERT:
            pushed = pushed and line.state is not State.DONE
            begun = pushed or (begun and line.state not in (State.DONE, State.REFUSED))
        else:
            begun = begun or line.state is State.BEGIN
            pushed = pushed or (line.action is Action.PUSH and line.state is State.DONE)
    return begun


def done_line(journal: Iterable[Line], sha: str, target: str) -> Line | None:
    """The line that says that a commit was reverted there; None where none does."""
    found = None
    for line in journal:
        if (line.culprit, line.target) == (sha, target) and line.action is Action.REVERT and line.state is State.DONE:
            found = line
    return found
