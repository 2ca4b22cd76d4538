"""Holds the pages of the documentation to each other and to the command line: links, headings, verbs and options."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest

from sooner.cli.main import sooner

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *ROOT.joinpath("docs").rglob("*.md"), *ROOT.joinpath("bench").glob("*.md"))
    if path.is_file()
)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^ *```")
_CODE = re.compile(r"`(sooner [^`]+)`")
_OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
RUN_PAGES = [ROOT / "docs" / page for page in ("how-to/run.md", "how-to/ci.md", "reference/settings.md")]
_ENDS_A_COMMAND = re.compile(r"\s[|;&<>#]|\s--(\s|$)|\$\(|[\n)]")


def _prose(page: Path) -> Iterator[tuple[int, str]]:
    """The lines outside of fenced blocks, with their numbers."""
    fenced = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def _headings(page: Path) -> list[str]:
    return [line.lstrip("#").strip() for _, line in _prose(page) if re.match(r"#+ ", line)]


def _anchors(page: Path) -> set[str]:
    """The anchors of the headings, made as GitHub makes them."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in _headings(page)}


def _commands(page: Path) -> Iterator[tuple[int, list[str]]]:
    """The words of each `sooner ...` in code, with the number of its line."""
    text = re.sub(r"\\\n\s*", " ", page.read_text(encoding="utf-8"))
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
            continue
        found = (
            re.findall(r"(?:^|[|&$] )\s*(sooner .*)", line)
            if fenced or line.startswith("    ")
            else _CODE.findall(line)
        )
        for command in found:
            words = _ENDS_A_COMMAND.split(command.replace("\\|", "/"), maxsplit=1)[0]
            yield number, re.sub(r"[\[\]]", " ", words).split()


def _unknown(words: list[str]) -> str | None:
    """The first verb or option of a command that the command line does not know."""
    command: click.Command = sooner
    context = click.Context(sooner)
    for word in words[1:]:
        name = word.split("=")[0].rstrip(".,:")
        if isinstance(command, click.Group) and re.fullmatch(r"[a-z][a-z-]*", name):
            found = command.get_command(context, name)
            if found is None:
                return name
            command = found
        elif name.startswith("-") and name != "-":
            known = {
                option
                for parameter in command.get_params(context)
                for option in (*parameter.opts, *parameter.secondary_opts)
            }
            if name not in known:
                return f"{' '.join(words[:2])} {name}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
class TestAPage:
    def test_links_to_pages_and_headings_that_exist(self, page: Path) -> None:
        lost = []
        for number, line in _prose(page):
            for target in _LINK.findall(line):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                path = (page.parent / name).resolve() if name else page
                if not path.exists() or (anchor and path.suffix == ".md" and anchor not in _anchors(path)):
                    lost.append(f"{number}: {target}")
        assert not lost

    def test_has_each_heading_once_under_the_heading_above_it(self, page: Path) -> None:
        above: list[str] = []
        paths = []
        for _, line in _prose(page):
            if hashes := re.match(r"#+(?= )", line):
                above = [*above[: len(hashes[0]) - 1], line]
                paths.append(tuple(above))
        assert [path for path, times in Counter(paths).items() if times > 1] == []

    def test_names_only_verbs_and_options_that_exist(self, page: Path) -> None:
        unknown = [f"{number}: {found}" for number, words in _commands(page) if (found := _unknown(words))]
        assert not unknown


def test_every_verb_has_a_page() -> None:
    context = click.Context(sooner)
    said = {
        " ".join(words[:2])
        for page in PAGES
        if page.parts[-2] in {"how-to", "reference"}
        for _, words in _commands(page)
    }
    assert {f"sooner {verb}" for verb in sooner.list_commands(context)} <= said


def test_every_option_stands_on_a_page_about_its_verb() -> None:
    everywhere = {"--help", "--history", "--json", "--version"}
    unsaid = []
    for words, command in _leaves(sooner, ("sooner",)):
        said = everywhere | {option for page in _pages_about(words) for option in _OPTION.findall(_text(page))}
        names = [option.opts for option in command.params if isinstance(option, click.Option)]
        unsaid += [f"{' '.join(words)}: {' '.join(some)}" for some in names if said.isdisjoint(some)]
    assert not unsaid


def _pages_about(words: Sequence[str]) -> list[Path]:
    """How-tos and references that call a verb; of all that run units these are the pages about runs."""
    of_runs = {"run", "script", "wait", "rerun", "plan", "replay"}
    called = [page for page in PAGES if page.parts[-2] in {"how-to", "reference"} and _calls(_text(page), words)]
    return [*called, *(RUN_PAGES if words[-1] in of_runs else ())]


def _calls(text: str, words: Sequence[str]) -> bool:
    """Whether a page calls a verb: `sooner jobs gate`, or `gate` in a page that is about `sooner jobs`."""
    group = " ".join(words[:-1])
    return " ".join(words) in text or (len(words) > 2 and f"# `{group}`" in text)


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _leaves(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every verb that is no group, with the words that call it."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from _leaves(found, (*words, name))


def test_steps_of_the_workflow_in_the_docs_are_given_the_variables_that_they_read() -> None:
    yaml = pytest.importorskip("ruamel.yaml")
    page = (ROOT / "docs/how-to/jobs.md").read_text(encoding="utf-8")
    text = page[page.index("    jobs:\n") :]
    workflow = yaml.YAML(typ="safe").load(re.split(r"\n(?=\S)", text, maxsplit=1)[0])
    lost = [
        f"{name}: {variable}"
        for name, job in workflow["jobs"].items()
        for step in job["steps"]
        for variable in re.findall(r"\$(\w+)", step.get("run", ""))
        if variable not in {**job.get("env", {}), **step.get("env", {})}
    ]
    assert not lost


def test_every_number_of_the_help_says_what_it_counts() -> None:
    bare = [
        f"{' '.join(words)}: {option.opts[0]}"
        for words, command in _leaves(sooner, ("sooner",))
        for option in command.params
        if isinstance(option, click.Option) and not option.is_flag and option.metavar is None
        if isinstance(option.type, click.types.IntParamType | click.types.FloatParamType)
    ]
    assert not bare
