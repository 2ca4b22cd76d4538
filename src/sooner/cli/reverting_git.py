"""A clean clone in which a revert is examined, made and pushed, by the `git` command.

Arguments are lists, never a shell's line; ids are hexadecimal; what a user names comes after `--`. The clone's hooks
are off, and nothing asks for a password.
"""

import base64
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from sooner.analysis.trunk.reverting import (
    Culprit,
    branch_of,
    is_merge_of,
    is_revert_of,
    reverted_in,
    reverter_of,
    subject_of,
)
from sooner.model.errors import SoonerError, UsageError
from sooner.model.outcomes import ExitCode
from sooner.model.text import one_line

_TIMEOUT_S: Final = 1800.0
_SAFE: Final = (
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never",
    "-c", "gc.auto=0", "-c", "advice.detachedHead=false", "-c", "core.quotePath=false",
    "-c", "clone.defaultRemoteName=origin", "-c", "color.ui=false", "-c", "grep.lineNumber=false",
    "-c", "log.showSignature=false", "-c", "i18n.commitEncoding=UTF-8", "-c", "i18n.logOutputEncoding=UTF-8",
)  # fmt: skip
"""Settings that must not be another's: what git prints is read here. Who signs or pushes how is the user's."""
_REMOTE: Final = re.compile(r"^(?:https?|ssh)://|^(?:[\w.-]+@)?[\w.-]+:(?!:)(?!//)")
"""Over a network; `host:path` as git understands it, but no `helper::address`, which may run anything."""
_NO_REPOSITORY: Final = ("' does not exist", "does not look like", "invalid gitfile")
_NO_BRANCH: Final = ("Could not find remote branch", "not found in upstream")
_NAMES: Final = re.compile(
    r"^\+\s*(?:export\s+|pub\s+|async\s+|static\s+|inline\s+|template\s*<[^>]*>\s*)*"
    r"(?:def|class|struct|enum|union|namespace|fn|func|function|trait|interface|#\s*define)\s+(?:class\s+)?([A-Za-z_]\w{3,})"
    r"|^\+([A-Z][A-Z0-9_]{3,})\s*[:=]|^\+([A-Za-z_]\w{3,})\s*=(?!=)"
    # C, C++ and CUDA: `__global__ void name(`, `Tensor Type::name(`, `constexpr int name =`, `using name =`
    r"|^\+\s*(?!(?:return|else|throw|new|delete|case|goto|await|yield|raise|assert|not|and|or|in|import|echo)\b)"
    r"(?:template\s*<[^(){};]*>\s*)?(?:(?:__launch_bounds__\([^()]*\)|[A-Za-z_][\w:<>,]*)[*&]*\s+[*&]*)+(?:\w+::)*([A-Za-z_]\w{3,})\s*\("
    r"|^\+\s*(?:static\s+|inline\s+)*(?:constexpr\s(?:[\w:<>,]+\s+)+|using\s+)([A-Za-z_]\w{3,})\s*[={[]"
)
"""What a changed line gives a name to: functions, classes, macros, constants and variables of a whole file."""
_WORD: Final = re.compile(r"[A-Za-z_]\w{3,}")
_LONGEST_LINE: Final = 2000
"""What stands behind defines nothing that people wrote."""
_SHORTEST_MENTION: Final = 10
_MOST_NAMED: Final = 5
_MOST_PATCH: Final = 64 * 1024 * 1024


_CREDENTIALS: Final = re.compile(r"(?<=://)[^/@\s]*@")


def without_credentials(text: str) -> str:
    """A URL, or a text with some, as it may be shown and kept: without user and password."""
    return _CREDENTIALS.sub("", text)


class GitError(SoonerError):
    """Git could not do what it had to; nothing is known to have happened."""

    exit_code = ExitCode.INFRASTRUCTURE


class ConflictError(Exception):
    """The revert does not apply; the text says where."""


class Clone:
    """A fresh clone of a repository.

    Args:
        url: Folder or URL of the repository.
        trunk: Its branch.
        folder: An empty folder to clone into.
        token: For GitHub over HTTPS; empty for git's own means.

    Raises:
        GitError: It cannot be cloned.
        UsageError: There is no such folder or branch, or it lacks its past: calling again changes nothing.
    """

    def __init__(self, url: str, trunk: str, folder: Path, token: str = "") -> None:
        shown = without_credentials(url)
        self._trunk = trunk
        self._folder = folder
        self._environment = _environment(url, token)
        if url.startswith("-") or trunk.startswith("-"):
            raise UsageError(f"{url if url.startswith('-') else trunk!r} is no repository or branch")
        is_there = _exists(url)
        is_folder = is_there or (not _REMOTE.match(url) and "://" not in url)
        sparse = () if is_folder or not _REMOTE.match(url) else ("--filter=blob:none",)
        if is_folder and not is_there:
            raise UsageError(f"--repo {shown} is no repository: there is no such folder")
        source = str(Path(url).absolute()) if is_folder else url
        command = (
            "clone",
            "--quiet",
            "--no-tags",
            "--single-branch",
            *sparse,
            "--branch",
            trunk,
            "--",
            source,
            str(folder),
        )
        done = self._run(*command, inside=False)
        if done.returncode and any(words in done.stderr for words in _NO_BRANCH):
            raise UsageError(f"{shown} has no branch {trunk!r}: name its trunk with --branch")
        if done.returncode and is_folder and any(words in done.stderr for words in _NO_REPOSITORY):
            raise UsageError(f"--repo {shown} is no repository: {_said(done)}")
        if done.returncode:
            raise GitError(f"{shown} cannot be cloned at {trunk!r}: {_said(done)}")
        if self._out("rev-parse", "--is-shallow-repository").strip() == "true":
            # Git takes a commit whose parents are missing for one that made every file: its revert removes them all.
            raise UsageError(
                f"{shown} is a shallow clone: `git fetch --unshallow` there, or name its remote with --repo"
            )

    def _run(
        self, *arguments: str, inside: bool = True, stdin: str = "", more: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                ["git", *_SAFE, *arguments],
                cwd=self._folder if inside else None,
                env={**self._environment, **(more or {})},
                input=stdin,
                capture_output=True,
                text=True,
                encoding="utf-8",
                errors="replace",
                timeout=_TIMEOUT_S,
                check=False,
            )
        except FileNotFoundError:
            raise GitError("the command git is not there: install it") from None
        except subprocess.TimeoutExpired:
            raise GitError(f"git {arguments[0]} did not end within {_TIMEOUT_S:g} s") from None

    def _out(self, *arguments: str) -> str:
        done = self._run(*arguments)
        if done.returncode:
            raise GitError(f"git {arguments[0]}: {_said(done)}")
        return done.stdout

    def resolve(self, sha: str) -> str:
        """The full id of a commit; empty where the repository has none, or several."""
        return self._run("rev-parse", "--verify", "--quiet", f"{sha}^{{commit}}").stdout.strip()

    def is_on_trunk(self, sha: str) -> bool:
        """Whether the branch has the commit."""
        done = self._run("merge-base", "--is-ancestor", sha, f"origin/{self._trunk}")
        if done.returncode > 1:
            raise GitError(f"git merge-base: {_said(done)}")
        return done.returncode == 0

    def _is_of_trunk(self, sha: str) -> bool:
        """Whether what a message names is a commit of trunk: a squashed request names what it took back of its own."""
        return bool(found := self.resolve(sha)) and self.is_on_trunk(found)

    def message(self, sha: str) -> str:
        """The message of a commit."""
        return self._out("show", "-s", "--format=%B", sha)

    def culprit(self, sha: str, labels: tuple[str, ...] = ()) -> Culprit:
        """What the repository knows of a commit of trunk."""
        time, _, message = self._out("show", "-s", "--format=%ct%x00%B", sha).partition("\0")
        later = list(self._later(sha))
        is_merge = len(self._out("show", "-s", "--format=%P", sha).split()) > 1
        return Culprit(
            sha=sha,
            time=float(time),
            message=message,
            labels=labels,
            undoes=next(filter(self._is_of_trunk, reverted_in(message)), ""),
            reverted_by=reverter_of(sha, message, later),
            dependents=tuple(self._dependents(sha, later)),
            is_merge=is_merge,
            merges_trunk=is_merge and is_merge_of(message, self._trunk),
        )

    def _later(self, sha: str) -> Iterator[tuple[str, str]]:
        """Ids and messages of the commits after one."""
        for record in self._out("log", "-z", "--format=%H%x01%B", f"{sha}..origin/{self._trunk}").split("\0"):
            one, mark, message = record.partition("\x01")
            if mark:
                yield one, message

    def _dependents(self, sha: str, later: Sequence[tuple[str, str]]) -> Iterator[str]:
        """Later commits that speak of it, or use a name that it brought in."""
        for one, message in later:
            if sha[:_SHORTEST_MENTION] in message:
                yield f"{one[:12]} ({subject_of(message)}) speaks of it"
        names = self._names_from(sha)
        if not names or not later:
            return
        patch = self._out(
            "log", "--patch", "--unified=0", "--no-color", "--format=%x01%H", f"{sha}..origin/{self._trunk}"
        )
        subjects = dict(later)
        for part in patch[:_MOST_PATCH].split("\x01")[1:]:
            one, _, lines = part.partition("\n")
            added = {w for ln in lines.split("\n") if ln[:1] == "+" and ln[:3] != "+++" for w in _WORD.findall(ln)}
            if used := sorted(names & added)[:_MOST_NAMED]:
                yield f"{one[:12]} ({subject_of(subjects.get(one, ''))}) uses {', '.join(used)}"

    def _names_from(self, sha: str) -> set[str]:
        """Names that a commit brought in: of new files, or defined by added lines; nowhere in the tree before it."""
        parents = self._out("show", "-s", "--format=%P", sha).split()
        shown = ("show", "--format=", "--diff-merges=first-parent")
        patch = self._out(*shown, "--unified=0", "--no-color", sha)[:_MOST_PATCH]
        files = self._out(*shown, "--name-only", "--diff-filter=A", "-z", sha).split("\0")
        found = {stem for file in files if _WORD.fullmatch(stem := PurePosixPath(file).stem)}
        found |= {
            name
            for line in patch.split("\n")
            if (m := _NAMES.match(line[:_LONGEST_LINE]))
            for name in m.groups()
            if name
        }
        if not parents:
            return found
        if not found:
            return set()
        names = "\n".join(sorted(found))  # through the pipe: there may be more than arguments can hold
        before = self._run(
            "grep", "-h", "-o", "-w", "-F", "-I", "-f", "-", parents[0], "--", stdin=names
        ).stdout.split()
        return found - set(before)

    def revert(self, sha: str, message: str) -> str:
        """Make the revert on top of trunk; returns its id, empty where it changes nothing.

        Raises:
            ConflictError: It does not apply, and why.
            GitError: Git failed otherwise.
        """
        self._out("checkout", "--quiet", "--force", "--detach", f"origin/{self._trunk}")
        self._out("clean", "-fdxq")
        parents = self._out("show", "-s", "--format=%P", sha).split()
        of_merge = ("-m", "1") if len(parents) > 1 else ()
        done = self._run("revert", "--no-commit", *of_merge, sha, more=self._identity())
        if done.returncode:
            files = [name for name in self._out("diff", "--name-only", "--diff-filter=U", "-z").split("\0") if name]
            self._run("revert", "--abort", more=self._identity())
            if not files:
                raise GitError(f"git revert: {_said(done)}")
            raise ConflictError(self._conflict(sha, files))
        if self._run("diff", "--cached", "--quiet").returncode == 0:
            self._run("reset", "--quiet", "--hard")
            return ""
        made = self._run("commit", "--quiet", "--cleanup=verbatim", "--file=-", stdin=message, more=self._identity())
        if made.returncode:
            raise GitError(f"git commit: {_said(made)}")
        return self._out("rev-parse", "HEAD").strip()

    def _identity(self) -> dict[str, str]:
        """Who commits, where nobody is configured."""
        if self._run("config", "user.email").stdout.strip() or "GIT_COMMITTER_EMAIL" in self._environment:
            return {}
        who = {"NAME": "sooner", "EMAIL": "sooner@localhost"}
        return {f"GIT_{role}_{part}": text for role in ("AUTHOR", "COMMITTER") for part, text in who.items()}

    def _conflict(self, sha: str, files: Sequence[str]) -> str:
        """Which files conflict, the first of them, and which later commits changed these."""
        files = files[:_MOST_NAMED]
        log = self._out(
            "log", "-z", "--format=%h %s", f"{sha}..origin/{self._trunk}", "--", *(f":(literal){f}" for f in files)
        )
        later = [one_line(line) for line in log.split("\0") if line]
        where = ", ".join(map(one_line, files))
        return f"{where} changed since: {'; '.join(later[:_MOST_NAMED]) or 'by nobody that git names'}"

    def remote_revert(self, sha: str) -> tuple[str, bool]:
        """What the remote has under the revert's branch: its id, empty for nothing, and whether it is that revert.

        Raises:
            GitError: The remote cannot be asked.
        """
        reference = f"refs/heads/{branch_of(sha)}"
        found = self._out("ls-remote", "origin", reference).split()
        if not found:
            return "", False
        self._out("fetch", "--quiet", "--no-tags", "origin", reference)
        return found[0], is_revert_of(self._out("show", "-s", "--format=%B", "FETCH_HEAD"), sha)

    def push(self, sha: str, commit: str) -> bool:
        """Push the revert as its branch; False where the remote has that branch already.

        Raises:
            GitError: It was refused, or there was no answer.
        """
        branch = branch_of(sha)
        arguments = (
            "--porcelain",
            f"--force-with-lease=refs/heads/{branch}:",
            "origin",
            f"{commit}:refs/heads/{branch}",
        )
        done = self._run("push", "--quiet", *arguments)
        if done.returncode == 0:
            return True
        if "stale info" in done.stdout or "already exists" in done.stdout:  # stderr has what hooks of the remote say
            return False
        raise GitError(f"git push: {_said(done)}")


def _exists(place: str) -> bool:
    try:
        return Path(place).exists()
    except OSError:  # no name that a file can have
        return False


def _environment(url: str, token: str) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_SSH"))
    }
    environment |= {**kept, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8", "GIT_EDITOR": "true"}
    if token and url.startswith("https://"):
        # Not as an argument: command lines can be read by every user of the machine.
        secret = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        server = "/".join(url.split("/")[:3])
        environment |= {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"http.{server}/.extraheader",
            "GIT_CONFIG_VALUE_0": f"AUTHORIZATION: basic {secret}",
        }
    return environment


def _said(done: subprocess.CompletedProcess[str]) -> str:
    text = done.stderr.strip() or done.stdout.strip()
    return without_credentials(one_line(text))[-400:] if text else f"exit code {done.returncode}"
