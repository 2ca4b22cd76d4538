"""What `sooner trunk revert` does: proposes, or makes each revert once, whatever fails in between.

Order, for each commit: look at the journal, at the pull requests and at the branch of the remote; write down what
begins; ask the kill switch; act; write down the answer. Whatever dies at any point, the next call finds by looking how
far it got.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from sooner.analysis.trunk.reverting import (
    Action,
    Culprit,
    Limits,
    Line,
    Refusal,
    State,
    body_of,
    branch_of,
    commands_of,
    done_line,
    message_of,
    refusal,
    title_of,
)
from sooner.cli.reverting_api import ApiError, GitHub
from sooner.cli.reverting_document import Wanted
from sooner.cli.reverting_git import Clone, ConflictError, GitError, without_credentials
from sooner.cli.reverting_journal import Journal, JournalError
from sooner.cli.reverting_switch import why_stopped
from sooner.model.outcomes import ExitCode
from sooner.model.text import printable_or_replaced


class Order(Struct, frozen=True, kw_only=True):
    """What was asked."""

    wanted: tuple[Wanted, ...]
    url: str
    """Repository to clone and push to; empty where nothing is looked at."""
    trunk: str
    github: str
    """`owner/name` where pull requests are opened; empty for a branch alone."""
    api: str
    token: str
    limits: Limits
    switch: str
    patience_s: float
    pause_s: float

    @property
    def target(self) -> str:
        """Where reverts go, as the journal calls it."""
        return printable_or_replaced(self.github or without_credentials(self.url))


class Result(Struct, frozen=True, kw_only=True):
    """What became of one revert."""

    culprit: str
    state: str
    """`proposed`, `reverted`, `already`, `refused` or `failed`."""
    reason: str = ""
    detail: str = ""
    branch: str = ""
    commit: str = ""
    url: str = ""
    title: str = ""
    message: str = ""
    commands: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()
    probability: float | None = None


def exit_code_of(results: Sequence[Result]) -> ExitCode:
    """Nothing to do, done, something failed, or something was refused."""
    states = {result.state for result in results}
    if not states:
        return ExitCode.NOTHING_TO_RUN
    if "failed" in states:
        return ExitCode.INFRASTRUCTURE
    return ExitCode.POLICY if "refused" in states else ExitCode.ALL_PASSED


class Reverter:
    """Proposes or makes the reverts of an order.

    Args:
        order: What was asked.
        say: Hears what is done, a line each.
    """

    def __init__(self, order: Order, say: Callable[[str], None]) -> None:
        self._order = order
        self._say = say
        self._folder = tempfile.TemporaryDirectory(prefix="sooner-revert-", ignore_cleanup_errors=True)

    def close(self) -> None:
        """Remove the clone."""
        self._folder.cleanup()

    @cached_property
    def _clone(self) -> Clone:
        self._say(f"cloning {without_credentials(self._order.url)}")
        return Clone(self._order.url, self._order.trunk, Path(self._folder.name) / "clone", self._order.token)

    @cached_property
    def _github(self) -> GitHub:
        return self._server(self._order.github)

    def _server(self, repository: str) -> GitHub:
        order = self._order
        return GitHub(order.api, repository, order.token, patience_s=order.patience_s, pause_s=order.pause_s)

    def propose(self, lines: Sequence[Line]) -> Iterator[Result]:
        """Say what would be done; where there is a repository, whether it may and can."""
        for wanted in self._order.wanted:
            yield self._propose(wanted, lines)

    def _propose(self, wanted: Wanted, lines: Sequence[Line]) -> Result:
        if (known := self._done_before(wanted.culprit, lines)) is not None:
            return known
        if not self._order.url:
            culprit = Culprit(sha=wanted.culprit, time=0.0, message=wanted.culprit)
            return _result(wanted, culprit, self._order, state="proposed")
        sha = self._place(wanted, lines)
        found = sha if isinstance(sha, Result) else self._examine(wanted, sha, lines, labels=())
        return found if isinstance(found, Result) else _result(wanted, found[0], self._order, state="proposed")

    def execute(self, journal: Journal) -> Iterator[Result]:
        """Make the reverts, one after the other."""
        for wanted in self._order.wanted:
            if why := self._stopped():
                yield _refused(wanted, wanted.culprit, Refusal.KILL_SWITCH, why)
                continue
            try:
                yield self._execute(wanted, journal)
            except (ApiError, GitError, JournalError) as error:
                yield Result(culprit=wanted.culprit, state="failed", reason=type(error).__name__, detail=str(error))

    def _stopped(self) -> str:
        return why_stopped(self._order.switch, self._server)

    def _place(self, wanted: Wanted, lines: Sequence[Line]) -> str | Result:
        """The whole id of a culprit on trunk; or why there is none, or nothing to do about it."""
        sha = self._clone.resolve(wanted.culprit)
        if not sha:
            where = without_credentials(self._order.url)
            return _refused(wanted, wanted.culprit, Refusal.UNKNOWN, f"{where} has no such commit")
        if (known := self._done_before(sha, lines)) is not None:
            return known
        if not self._clone.is_on_trunk(sha):
            return _refused(wanted, sha, Refusal.NOT_ON_TRUNK, f"it is not on {self._order.trunk}")
        return sha

    def _examine(
        self, wanted: Wanted, sha: str, lines: Sequence[Line], labels: tuple[str, ...]
    ) -> Result | tuple[Culprit, str, str]:
        """The culprit, the revert and its message; or why it must not or cannot be."""
        culprit = self._clone.culprit(sha, labels)
        if said := refusal(culprit, lines, self._order.limits, time.time(), self._order.target):
            return _refused(wanted, sha, *said)
        message = message_of(culprit, wanted.signals, wanted.probability, wanted.reason)
        try:
            commit = self._clone.revert(sha, message)
        except ConflictError as error:
            return _refused(wanted, sha, Refusal.CONFLICT, str(error))
        if not commit:
            return _refused(wanted, sha, Refusal.EMPTY, "trunk has nothing of it any more")
        return culprit, commit, message

    def _execute(self, wanted: Wanted, journal: Journal) -> Result:
        if (known := self._done_before(wanted.culprit, journal.lines)) is not None:
            return known  # without a clone: most calls find what an earlier one has done
        sha = self._place(wanted, journal.lines)
        if isinstance(sha, Result):
            return self._refuse(journal, sha) if sha.state == "refused" else sha
        labels: tuple[str, ...] = ()
        if self._order.github:
            if (found := self._opened(sha, journal)) is not None:
                return found
            labels = self._github.labels_of(sha, self._clone.message(sha))
        there, is_ours = self._clone.remote_revert(sha)
        examined = self._examine(wanted, sha, journal.lines, labels)
        if isinstance(examined, Result):
            return self._refuse(journal, examined)
        culprit, commit, message = examined
        was_there = bool(there)
        if not there:
            self._note(journal, sha, Action.PUSH, State.BEGIN, commit=commit)
            if why := self._stopped():
                return self._refuse(journal, _refused(wanted, sha, Refusal.KILL_SWITCH, why))
            there, is_ours = self._push(journal, sha, commit)
        if not is_ours:
            detail = f"the remote's branch {branch_of(sha)} holds something else ({there[:12]})"
            return self._refuse(journal, _refused(wanted, sha, Refusal.BRANCH_TAKEN, detail))
        return self._finish(wanted, journal, culprit, there, message, was_there=was_there)

    def _done_before(self, sha: str, lines: Sequence[Line]) -> Result | None:
        """What the journal says of a revert that is done; None where it says nothing."""
        done = done_line(lines, sha, self._order.target)
        if done is None:
            return None
        return Result(
            culprit=sha, state="already", branch=branch_of(sha), commit=done.commit, url=done.url, detail=done.detail
        )

    def _opened(self, sha: str, journal: Journal) -> Result | None:
        """What a pull request that is there says; None where there is none."""
        requests = self._github.requests_from(branch_of(sha))
        if not requests:
            return None
        first = requests[0]
        if not first.is_open and not first.is_merged:
            detail = f"its revert {first.url} was closed: a person decided"
            refused = Result(culprit=sha, state="refused", reason=Refusal.CLOSED, detail=detail, url=first.url)
            return self._refuse(journal, refused)
        self._done(journal, sha, commit="", url=first.url, detail="found on the remote")
        return Result(culprit=sha, state="already", detail="found on the remote", branch=branch_of(sha), url=first.url)

    def _push(self, journal: Journal, sha: str, commit: str) -> tuple[str, bool]:
        """Push the branch; returns what the remote has then, and whether it is the revert.

        Raises:
            GitError: It is not there.
        """
        try:
            if self._clone.push(sha, commit):
                self._note(journal, sha, Action.PUSH, State.DONE, commit=commit)
                return commit, True
            refused = GitError(f"git push: the remote says that it has {branch_of(sha)}, and has not: try again")
        except GitError as error:
            refused = error
        there, is_ours = self._clone.remote_revert(sha)
        if not there:
            self._note(journal, sha, Action.PUSH, State.FAILED, commit=commit, detail=str(refused)[:300])
            raise refused
        self._note(journal, sha, Action.PUSH, State.DONE, commit=there, detail="it was there already")
        return there, is_ours

    def _finish(
        self, wanted: Wanted, journal: Journal, culprit: Culprit, commit: str, message: str, *, was_there: bool
    ) -> Result:
        sha, url = culprit.sha, ""
        if self._order.github:
            self._note(journal, sha, Action.PULL_REQUEST, State.BEGIN, commit=commit)
            if why := self._stopped():
                return self._refuse(journal, _refused(wanted, sha, Refusal.KILL_SWITCH, why))
            title, body = title_of(culprit), body_of(message)
            try:
                opened = self._github.open_request(title=title, body=body, head=branch_of(sha), base=self._order.trunk)
            except ApiError as error:
                self._note(journal, sha, Action.PULL_REQUEST, State.FAILED, commit=commit, detail=str(error)[:300])
                raise
            url = opened.url
            self._note(journal, sha, Action.PULL_REQUEST, State.DONE, commit=commit, url=url)
        self._done(journal, sha, commit=commit, url=url, detail="")
        already = was_there and not self._order.github
        state = "already" if already else "reverted"
        return _result(wanted, culprit, self._order, state=state, commit=commit, url=url)

    def _note(self, journal: Journal, sha: str, action: Action, state: State, **fields: str) -> None:
        journal.add(sha, action, state, target=self._order.target, **fields)
        self._say(f"{sha[:12]}: {action.replace('_', ' ')}: {state.value}")

    def _done(self, journal: Journal, sha: str, **fields: str) -> None:
        self._note(journal, sha, Action.REVERT, State.DONE, **{k: v for k, v in fields.items() if v})

    def _refuse(self, journal: Journal, result: Result) -> Result:
        self._note(
            journal, result.culprit, Action.REVERT, State.REFUSED, detail=f"{result.reason}: {result.detail}"[:300]
        )
        return result


def _result(wanted: Wanted, culprit: Culprit, order: Order, *, state: str, commit: str = "", url: str = "") -> Result:
    return Result(
        culprit=culprit.sha,
        state=state,
        branch=branch_of(culprit.sha),
        commit=commit,
        url=url,
        title=title_of(culprit),
        message=message_of(culprit, wanted.signals, wanted.probability, wanted.reason),
        commands=commands_of(culprit, order.trunk),
        signals=wanted.signals,
        probability=wanted.probability,
    )


def _refused(wanted: Wanted, sha: str, reason: Refusal, detail: str) -> Result:
    return Result(
        culprit=sha,
        state="already" if reason is Refusal.ALREADY else "refused",
        reason=reason.value,
        detail=detail,
        signals=wanted.signals,
        probability=wanted.probability,
    )
