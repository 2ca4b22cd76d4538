"""What a change asks for itself: `[ci ...]` in its messages, the files that it touches, its draw of the sample. Pure.

Everything here is text from strangers: it is compared with the names of known jobs, never run, never a pattern other
than a glob.
"""

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache, partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sooner.model.errors import UsageError

_DIRECTIVE: Final = re.compile(r"\[ci[ \t]++((?:[^\[\]\r\n]++|\[[^\[\]\r\n]*+\])++)\]", re.IGNORECASE)
"""`[ci WORDS]`; the words may hold brackets of a glob. Nothing is given back: there may be a megabyte."""
_NOT_CLOSED: Final = re.compile(r"\[ci[ \t]++[^\]\r\n][^\r\n]{,80}", re.IGNORECASE)
_MOST_NAMED: Final = 5
_ESCAPE: Final = re.compile(r"\\(?:([0-7]{3})|(.))", re.DOTALL)
_ESCAPED: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
DOCUMENTATION: Final = (
    "docs/**",
    "doc/**",
    "**/docs/**",
    "*.md",
    "**/*.md",
    "*.rst",
    "**/*.rst",
    "LICENSE*",
    "NOTICE*",
)


class UnknownJobError(UsageError):
    """A change asks for a job that nobody knows."""

    def __init__(self, asked: str, near: Sequence[str], place: str) -> None:
        self.asked = asked
        self.near = tuple(near)
        hint = f"did you mean {', '.join(map(repr, near))}?" if near else "`sooner jobs select` lists the jobs"
        super().__init__(f"{place}: there is no job {asked!r}: {hint}")


class Asked(Struct, frozen=True, kw_only=True):
    """What the messages of a change ask for."""

    everything: bool = False
    added: Mapping[str, str] = {}
    """Job -> the words that ask for it."""
    skipped: Mapping[str, str] = {}
    ignored: tuple[str, ...] = ()
    """Directives that say nothing, such as `[ci skip]` alone, or that are not closed."""


def changed_paths(text: str) -> list[str]:
    """Paths a line each as `git diff --name-only` writes them, or with `-z`; names that git puts in quotes are read."""
    if "\0" in text:
        return [path for path in text.split("\0") if path.strip()]
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return [_unquoted(line) for line in lines if line.strip()]


def _unquoted(path: str) -> str:
    """A path as it is; git's quotes hold escapes of C, and bytes in octal."""
    if len(path) < 2 or not (path[0] == path[-1] == '"'):  # noqa: PLR2004 - two quotes
        return path
    # A byte is a character up to U+00FF here, so that the parts of one character in UTF-8 come together again.
    raw = path[1:-1].encode("utf-8", "surrogateescape").decode("latin-1")
    plain = _ESCAPE.sub(lambda m: chr(int(m[1], 8) & 0xFF) if m[1] else _ESCAPED.get(m[2], m[2]), raw)
    return plain.encode("latin-1").decode("utf-8", "backslashreplace")


def asked(message: str, jobs: Sequence[str]) -> Asked:
    """Read `[ci all]`, `[ci JOB-GLOB]` and `[ci skip JOB-GLOB]` anywhere in the messages of a change.

    A job that is asked for and skipped is run.

    Raises:
        UnknownJobError: A name or glob that fits no job.
    """
    everything = False
    added: dict[str, str] = {}
    skipped: dict[str, str] = {}
    ignored = []
    for words in dict.fromkeys(words.strip() for words in _DIRECTIVE.findall(message)):
        verb, _, rest = words.replace("\t", " ").partition(" ")
        if words.lower() == "all":
            everything = True
        elif verb.lower() == "skip":
            if rest.strip():
                skipped |= dict.fromkeys(matching(rest.strip(), jobs, "[ci skip]"), f"[ci {words}]")
            else:
                ignored.append(f"[ci {words}]")
        else:
            added |= dict.fromkeys(matching(words, jobs, "[ci]"), f"[ci {words}]")
    ignored += _NOT_CLOSED.findall(_DIRECTIVE.sub("", message))[:_MOST_NAMED]
    skipped = {job: why for job, why in skipped.items() if job not in added}
    return Asked(everything=everything, added=added, skipped=skipped, ignored=tuple(ignored))


def without_pinned(request: Asked, pinned: Collection[str]) -> tuple[Asked, list[tuple[str, str]]]:
    """What is asked for, but that pinned jobs run all the same; and those, each with the words that would skip it.

    What a project lays down is not for everybody to take away who can write a commit message.
    """
    kept = [(job, why) for job, why in request.skipped.items() if job in pinned]
    skipped = {job: why for job, why in request.skipped.items() if job not in pinned}
    return replace(request, skipped=skipped), kept


def matching(glob: str, jobs: Sequence[str], place: str) -> list[str]:
    """Jobs that a name or a glob means, as `members` says.

    Raises:
        UnknownJobError: None.
    """
    found = members(jobs, glob)
    if not found:
        short = (job.partition(" / ")[2] for job in jobs if " / " in job)
        lowered = {name.lower(): name for name in (*short, *jobs)}
        near = [lowered[name] for name in get_close_matches(glob.lower(), lowered, n=_MOST_NAMED, cutoff=0.5)]
        raise UnknownJobError(glob, near, place)
    return [jobs[i] for i in found]


def members(jobs: Sequence[str], glob: str) -> tuple[int, ...]:
    """Indices of the jobs that a name or a glob means.

    A name that is a job, in whatever case, is never taken for a glob. What is none is looked for behind the workflows:
    once a second workflow has a job `build`, they are `linux / build` and `mac / build`, and whoever says `build` means
    both.
    """
    wanted = glob.lower()
    lowered = [job.lower() for job in jobs]
    behind = [job.partition(" / ")[2] or job for job in lowered]
    fits = partial(fnmatchcase, pat=wanted)
    for names, is_meant in (
        (jobs, glob.__eq__), (lowered, wanted.__eq__), (behind, wanted.__eq__), (lowered, fits), (behind, fits)
    ):  # fmt: skip
        if found := tuple(i for i, name in enumerate(names) if is_meant(name)):
            return found
    return ()


@cache
def path_pattern(glob: str) -> re.Pattern[str]:
    """What the whole of a path must match to fit a glob: `**` is any number of folders, `*` and `?` stay within one."""
    pattern = ""
    for part in re.split(r"(\*\*/|\*\*|\*|\?)", glob):
        pattern += {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part))
    return re.compile(pattern, re.DOTALL)


def area_jobs(files: Sequence[str], areas: Mapping[str, Sequence[str]], jobs: Sequence[str]) -> dict[str, str]:
    """Jobs that belong to areas which the files touch, and why; one that is not known yet may be the change's own."""
    found: dict[str, str] = {}
    for glob, names in areas.items():
        if any(map(path_pattern(glob).fullmatch, files)):
            for name in names:
                found |= dict.fromkeys((jobs[i] for i in members(jobs, name)), f"area {glob}")
    return found


def only_documentation(files: Sequence[str], globs: Sequence[str] = DOCUMENTATION) -> bool:
    """Whether a change touches nothing but documentation; a change without files is not known to."""
    patterns = [path_pattern(glob) for glob in globs]
    return bool(files) and all(any(pattern.fullmatch(path) for pattern in patterns) for path in files)


def in_sample(identity: str, share: float) -> bool:
    """Whether a change belongs to the share that runs everything: the same answer for the same change, every time."""
    return _drawn("sample", identity) < share * 2**64


def drawn_part(identity: str) -> float:
    """How much of the job at which the budget ends must fit for it to run: above 0, to 1, the same for a change."""
    return (_drawn("budget", identity) + 1) / 2**64


def _drawn(what: str, identity: str) -> int:
    """A number below 2^64."""
    text = f"sooner jobs {what}\0{identity}"
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8])
