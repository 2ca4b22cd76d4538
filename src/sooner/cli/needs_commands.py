"""Which tests command lines run: the arguments of pytest and its kin, as far as the text alone tells."""

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile, pairwise, takewhile
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

EVERYTHING: Final = "."
"""What pytest without arguments runs: all that lies where it is started."""
_RUNS_NOTHING: Final = frozenset(
    {"--co", "--collect-only", "--version", "-V", "--help", "-h", "--fixtures", "--markers"}
)
_NO_CALL: Final = frozenset({
    "install", "uninstall", "add", "download", "show", "list", "freeze", "create", "inject", "upgrade", "wheel",
    "brew", "echo", "printf", "which", "command", "type", "hash", "grep", "egrep", "fgrep", "rg", "pkill", "killall",
    "pgrep", "rm", "mkdir", "rmdir", "cp", "mv", "ls", "cat", "touch", "ln", "chmod", "chown", "tar", "tee", "for",
    "case", "[", "[[",
})  # fmt: skip
"""Words before `pytest` that say that it is not called there."""
_TAKES_PACKAGE: Final = frozenset({"--with", "--from", "--extra", "--group", "--only-group"})
_PYTEST: Final = ("pytest", "py.test")
_MASKS: Final = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_MASK: Final = re.compile(rf"({'|'.join(_MASKS)})=(.*)")
_LEAVES_OUT: Final = ("--ignore", "--ignore-glob", "--deselect")
_TAKES_PATH: Final = (
    *_LEAVES_OUT, "--junitxml", "--junit-xml", "--rootdir", "--confcutdir", "--basetemp", "--log-file", "--html",
    "--cov", "--cov-report", "--cov-config", "--config-file", "--json-report-file", "--report-log", "--benchmark-json",
)  # fmt: skip
"""Options of pytest and of its usual plugins whose value looks like tests."""
_TAKES_VALUE: Final = re.compile(r"-[vqsxlh]*[kmnpcoWr]")
"""Short options, perhaps behind others that take no value (`-vk EXPRESSION`)."""
_IS_FLAG: Final = re.compile(
    r"--(?:verbose|quiet|exitfirst|showlocals|(?:last|failed|new)-f\w+|[lfn]f|sw|stepwise|cache-clear|strict|pyargs"
    r"|full-trace|keep-duplicates|doctest-\w+|setup-(?:only|show)|forked|instafail|pdb|trace|cov-(?:append|branch)"
    r"|run-?\w+|(?:no|only|skip|enable|disable)-\w+)(?:-\w+)*"
)
"""Long options of pytest and of plugins that take no value, by how they are called."""
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_COMPUTED: Final = re.compile(
    r"\$\{\{.*?\}\}|\$\((?:(?!pytest)[^()\n])*\)|`(?:(?!pytest)[^`\n])*`",
)
"""What GitHub, or a command whose output is taken, puts there."""
_BRACES: Final = re.compile(r"(?P<before>.*?)(?<!\$)\{(?P<parts>[^{}\s]*,[^{}\s]*)\}(?P<after>.*)")
_MOST_BRACED: Final = 3
"""Pairs of braces in a word: behind each other they multiply; what has more is computed."""
_REDIRECTION: Final = re.compile(r"(?:\d|&)?[<>]+")
_UNKNOWN_FOLDER: Final = re.compile(r"\A\$(?:\w+|\{\w+\}|\{\{.*?\}\})/(?=[^$]*\Z)")
"""A folder that is computed, before what is not."""
_KEYWORDS: Final = frozenset({"then", "do", "else", "if", "elif", "while", "until", "!", "{", "time"})
"""Words of the shell that may stand before a command."""
_STARTS_PYTHON: Final = re.compile(r"(?:python|pypy)[\d.]*|torchrun|accelerate|deepspeed|coverage|\$\{?\w*PYTHON\w*\}?")
"""What starts a file of Python, be it in several ranks."""
_IS_TESTS: Final = re.compile(r"(?:test_.*|.*_test|tests?)\.py")
_TAKES_OF_UNITTEST: Final = ("-k", "-s", "-p", "-t", "--start-directory", "--pattern", "--top-level-directory")
_HIDES: Final = re.compile(
    r"\S*tests?\S*\.(?:sh|bash)\b|\b(?:tox|nox|ctest)\b|\bmake (?:\S+ )*\S*test\S*|\bbazel(?:isk)? test\b"
)
"""Commands that run tests, and do not say which."""
_END: Final = re.compile(r"^[;&|()]+$")
_HANDS_ON: Final = ("xargs", "-exec", "-execdir")
"""Words before `pytest` that say that something else names its tests."""
_STARTS: Final = re.compile(r"(?:^|[;&|(])\s*(?:[A-Za-z_]\w*=\S*\s+)*(?:python3? -m )?pytest\s")
"""Commands that a script is given as one word."""
_DEEPEST: Final = 3
"""Shells in shells."""


class Call(NamedTuple):
    """One call of pytest, as far as it chooses tests."""

    paths: tuple[str, ...]
    """As they are named; `EVERYTHING` is all."""
    without: tuple[str, ...] = ()
    """What of it is ignored, named in the same way."""
    deselected: tuple[str, ...] = ()
    """Beginnings of the ids of tests that are not run."""
    globs: tuple[str, ...] = ()
    """Patterns of files that are ignored."""
    keyword: str = ""
    """The expression behind `-k`."""
    folder: str = ""
    """The beginning of the paths that a change of the folder told, not they themselves."""
    shown: int | None = None
    """How many devices the environment shows; None: all."""


class Named(NamedTuple):
    """Tests as command lines name them."""

    calls: list[Call]
    unknown: list[str]
    """Words that stand for tests and are computed."""

    @property
    def paths(self) -> list[str]:
        """All that is named."""
        return list(dict.fromkeys(path for call in self.calls for path in call.paths))


def shown_by(mask: str) -> int | None:
    """How many devices `CUDA_VISIBLE_DEVICES` and the like show; None where it is computed."""
    return None if "$" in mask else len([each for each in mask.split(",") if each.strip() not in ("", "-1")])


def shown_in(environment: Mapping[str, Any]) -> int | None:
    """How many devices a table of variables shows; None where it says nothing that is known."""
    told = (environment[name] for name in _MASKS if name in environment)
    counts = (shown_by("" if mask is None else str(mask)) for mask in told)
    return next((count for count in counts if count is not None), None)


def named_in(text: str, folder: str = "", shown: int | None = None) -> Named:
    """The tests that a script runs with pytest, unittest, PyTorch's run_test.py, or as a file.

    Args:
        text: Command lines.
        folder: Where they are run; of an absolute one nobody knows where it lies in the tree.
        shown: How many devices the environment shows at its beginning.
    """
    named = Named([], [])
    _follow(_COMPUTED.sub("$_", text), _entered("", folder), shown, named, 0)
    return Named(list(dict.fromkeys(named.calls)), list(dict.fromkeys(named.unknown)))


def hidden_in(text: str) -> str:
    """What a script calls that may run tests, and is not looked into; empty where there is nothing."""
    called = (" ".join(words) for words in _commands(_COMPUTED.sub("$_", text)) if not _NO_CALL & set(words[:1]))
    return next((found[0] for command in called if (found := _HIDES.search(command))), "")


def _follow(text: str, folder: str, shown: int | None, named: Named, depth: int) -> None:
    last: list[str] = []
    before_all = shown
    around: list[tuple[str, int | None]] = []
    for words in _commands(text):
        if words in (["("], [")"]):
            around, folder, shown = _crossed(words[0], around, folder, shown)
            continue
        own = _shown_to(words, shown)
        first, *rest = dropwhile(_KEYWORDS.__contains__, words) if set(words) - _KEYWORDS else words
        if first == "export" or all(map(_ASSIGNMENT.match, words)):
            shown = own
        if first == "unset" and set(_MASKS) & set(words):
            shown = before_all
        if first in {"pushd", "popd"}:
            around, folder, _ = _crossed("(" if first == "pushd" else ")", around, folder, shown)
        if first in {"cd", "pushd"} and len(rest) == 1:
            folder = _entered(folder, rest[0])
        if depth < _DEEPEST:
            for script in _scripts(words):
                _follow(script, folder, own, named, depth + 1)
        _take(words, folder, own, named, last)
        last = words


def _crossed(
    word: str, around: list[tuple[str, int | None]], folder: str, shown: int | None
) -> tuple[list[tuple[str, int | None]], str, int | None]:
    """What is known behind a parenthesis: a shell in a shell changes neither its folder nor its environment."""
    if word == "(":
        return [*around, (folder, shown)], folder, shown
    return (around[:-1], *around[-1]) if around else (around, folder, shown)


def _scripts(words: Sequence[str]) -> Iterator[str]:
    """Commands that a command is given as one word."""
    for before, word in pairwise(words):
        is_script = re.fullmatch(r"-\w*c", before) or (words[0].endswith(".sh") and _STARTS.search(word))
        if is_script and any(each.isspace() for each in word):
            yield word


def _entered(folder: str, to: str) -> str:
    """The folder in which `cd` ends: what is known of it, empty where nothing is."""
    to = _UNKNOWN_FOLDER.sub("", to)
    if "$" in to or to == "-":
        return ""
    if to.startswith(("/", "..")) or not folder.startswith("/"):
        return _within_tree(posixpath.normpath(posixpath.join(folder, to)))
    return _within_tree(posixpath.normpath(to))  # below a folder of which nobody knows where it lies


def _within_tree(path: str) -> str:
    """A path without what leads out of the folder where it begins."""
    while path.startswith("../"):
        path = path.removeprefix("../")
    return "" if path in {".", ".."} else path


def _shown_to(words: Sequence[str], shown: int | None) -> int | None:
    """How many devices a command sees: what is assigned before the name of pytest, by whatever starts it."""
    for word in words:
        if word.rpartition("/")[2] in _PYTEST:
            break
        mask = _MASK.fullmatch(word)
        if mask and (count := shown_by(mask[2])) is not None:
            shown = count
    return shown


def _take(words: Sequence[str], folder: str, shown: int | None, named: Named, last: Sequence[str]) -> None:
    for i, word in enumerate(words):
        name = word.rpartition("/")[2]
        if _is_pytest(words, i) and not _NO_CALL & set(words[:i]):
            if i and words[i - 1] in _TAKES_PACKAGE:
                continue
            if set(_HANDS_ON) & set(words[:i]):
                _take_handed(words if words[0] == "find" else last, folder, shown, named)
                return
            _take_arguments(words[i + 1 :], folder, shown, named)
            return
        if name == "run_test.py":
            rest = list(words[i + 1 :])
            begin = next((i for i, each in enumerate(rest, 1) if each in ("-i", "--include")), len(rest))
            chosen = takewhile(lambda each: not each.startswith("-"), rest[begin:])
            if paths := tuple(f"test/{each}" for each in chosen if "$" not in each):
                named.calls.append(Call(paths, shown=shown))
            return
    start = next((i for i, word in enumerate(words) if _STARTS_PYTHON.fullmatch(word.rpartition("/")[2])), len(words))
    if not _NO_CALL & set(words[:start]):
        _take_file(words[start + 1 :], folder, shown, named)


def _is_pytest(words: Sequence[str], place: int) -> bool:
    """Whether a word is the name of pytest; a path that ends so may be a folder, where no command is expected."""
    folder, slash, name = words[place].rpartition("/")
    is_first = not any(word for word in words[:place] if word not in _KEYWORDS and not _ASSIGNMENT.match(word))
    return name in _PYTEST and (not slash or is_first or folder.endswith("bin"))


def _take_file(words: Sequence[str], folder: str, shown: int | None, named: Named) -> None:
    """A file of tests that Python or a launcher of ranks starts, or what unittest is told to run."""
    paths: list[str] = []
    for before, word in pairwise(("", *words)):
        if before == "-m" and word == "unittest":
            paths = _of_unittest(words[words.index("-m") + 2 :])
            break
        is_module = before == "-m" and _IS_TESTS.fullmatch(f"{word.rpartition('.')[2]}.py")
        if before == "-c" or word.endswith(".py") or is_module:
            own = word.replace(".", "/") + ".py" if is_module else word
            paths = [own] if _IS_TESTS.fullmatch(own.rpartition("/")[2]) and not _is_computed(own) else []
            break
    if paths:
        below = "" if folder.startswith("/") else folder
        placed = tuple(_path(each, below) or _named_folder(folder) or EVERYTHING for each in paths)
        named.calls.append(Call(placed, folder=below, shown=shown))


def _of_unittest(words: Sequence[str]) -> list[str]:
    """What unittest runs: files, modules, classes and tests by their names, or all of a folder."""
    told = [word for before, word in pairwise(("", *words)) if word[:1] != "-" and before not in _TAKES_OF_UNITTEST]
    if told and told[0] != "discover":
        return [_of_name(word) for word in told if "$" not in word]
    options = dict(pairwise(words))
    start = next(iter(told[1:]), options.get("-s", options.get("--start-directory", EVERYTHING)))
    pattern = options.get("-p", options.get("--pattern", ""))
    return [] if "$" in start else [f"{start}/*{pattern}" if pattern else start]


def _of_name(name: str) -> str:
    """`tests.test_a.TestB.test_c` as a path; what follows the first name in capitals is in a file."""
    if name.endswith(".py") or "/" in name:
        return name
    parts = name.split(".")
    first = next((i for i, part in enumerate(parts) if part[:1].isupper()), len(parts))
    path = "/".join(parts[:first])
    return "::".join([f"{path}.py", *parts[first:]]) if parts[first:] else path


def _take_handed(words: Sequence[str], folder: str, shown: int | None, named: Named) -> None:
    """The files that `find` hands to pytest; what anything else does is computed."""
    if words[:1] != ["find"]:
        named.unknown.append(" ".join(words))
        return
    test = next((i for i, word in enumerate(words) if i and re.match(r"[-!(]", word)), len(words))
    where = [_placed(word, folder) for word in words[1:test]] or [_placed(EVERYTHING, folder)]
    chosen: list[str] = []
    without: list[str] = []
    for before, word, value in zip(words[test - 1 :], words[test:], words[test + 1 :], strict=False):
        if word in ("-name", "-iname"):
            (without if before in ("!", "-not") else chosen).append(value)
    chosen = chosen or ["*.py"]
    if ("-maxdepth", "1") in pairwise(words):
        without += [f"{each}/*/*" for each in where]
    paths = tuple(name if each == EVERYTHING else f"{each}/{name}" for each in where for name in chosen)
    deeper = tuple(f"{each}/*/{name}" for each in where if each != EVERYTHING for name in chosen)
    named.calls.append(Call(paths + deeper, globs=tuple(without), shown=shown))


def _placed(word: str, folder: str) -> str:
    """A folder as a command names it, from where the tree begins."""
    return _path(word, "" if folder.startswith("/") else folder) or _named_folder(folder) or EVERYTHING


def _named_folder(folder: str) -> str:
    """A folder as the tree may call it: of an absolute one its last part."""
    return PurePosixPath(folder).name if folder.startswith("/") else folder


def _take_arguments(words: Sequence[str], folder: str, shown: int | None, named: Named) -> None:
    if _RUNS_NOTHING & set(words):
        return
    found = [each for word in _positional(words) for each in _expanded(word)]
    if "--pyargs" in words:
        found = [word if "/" in word or ".py" in word else word.replace(".", "/") for word in found]
    computed = [word for word in found if _is_computed(word) or word.startswith("@")]
    named.unknown.extend(computed)
    known = [word for word in found if word not in computed]
    if found and not known:
        return
    below = "" if folder.startswith("/") else folder
    options = {name: tuple(_values(words, name)) for name in (*_LEAVES_OUT, "-k")}
    named.calls.append(
        Call(
            paths=tuple(_path(word, below) or _named_folder(folder) or EVERYTHING for word in known or [EVERYTHING]),
            without=tuple(_path(word, below) for word in options["--ignore"]),
            deselected=tuple(each.removeprefix("./") for each in options["--deselect"]),
            globs=options["--ignore-glob"],
            keyword=next(reversed(options["-k"]), ""),
            folder=below,
            shown=shown,
        )
    )


def _is_computed(word: str) -> bool:
    """Whether nobody knows what a word names; of a folder that is computed it is enough what lies in it."""
    if "`" in word or _BRACES.fullmatch(word):
        return True
    return "$" in word and not (word.count("/") > 1 and _UNKNOWN_FOLDER.match(word))


def _path(word: str, folder: str) -> str:
    """A file, a folder or an id as seen from where the tree begins; empty for that place."""
    path, *names = word.split("::")
    if _UNKNOWN_FOLDER.match(path):
        path, folder = _UNKNOWN_FOLDER.sub("", path), ""
    return "::".join([_within_tree(posixpath.normpath(posixpath.join(folder, path))), *names])


def _expanded(word: str) -> list[str]:
    """A word as the shell expands its braces: `tests/{a,b}` are two."""
    if word.count("{") > _MOST_BRACED or not (found := _BRACES.fullmatch(word)):
        return [word]
    parts = found["parts"].split(",")
    return [each for part in parts for each in _expanded(f"{found['before']}{part}{found['after']}")]


def _values(words: Sequence[str], option: str) -> Iterator[str]:
    """Values of an option that are not computed."""
    for word, after in pairwise((*words, "")):
        is_last = word == option or (_TAKES_VALUE.fullmatch(word) and word[-1] == option[-1])
        value = after if is_last else word.removeprefix(f"{option}=") if word.startswith(f"{option}=") else ""
        if value and "$" not in value:
            yield value


def _positional(words: Sequence[str]) -> Iterator[str]:
    """Words that name tests: a value of an option is none."""
    before = ""
    for word in words:
        is_value = _takes(before, word) or bool(_REDIRECTION.fullmatch(before))
        before = word
        if word.strip() and not word.startswith("-") and not is_value and not _REDIRECTION.match(word):
            yield word


def _takes(option: str, word: str) -> bool:
    """Whether a word is the value of what stands before it; behind an option that nobody knows it may be tests."""
    if option in _TAKES_PATH or _TAKES_VALUE.fullmatch(option):
        return True
    if not option.startswith("--") or "=" in option:
        return False
    if _IS_FLAG.fullmatch(option):
        return word.isdecimal()
    path = PurePosixPath(word)
    is_folder = "/" in word and not path.suffix
    return not (is_folder or "::" in word or path.suffix == ".py" or path.name.startswith("test"))


def _commands(text: str) -> Iterator[list[str]]:
    """Simple commands, each as its words."""
    for line in text.replace("\\\n", " ").splitlines():
        command: list[str] = []
        for word in (*_words(line), ";"):
            if _END.match(word):
                if command:
                    yield command
                command = []
                yield from ([each] for each in word if each in "()")
            else:
                command.append(word)


def _words(line: str) -> list[str]:
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|()")
        lexer.whitespace_split = True
        return list(lexer)
    except ValueError:  # a quote that is closed on another line
        return [word.strip("\"'") for word in re.split(r"\s+|([;&|()]+)", line) if word and word.strip("\"'")]
