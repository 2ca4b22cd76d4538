"""The fixture projects with labels written by hand, and how they are read."""

import tomllib
from functools import cache
from pathlib import Path

from msgspec import Struct

from sooner.cli.needs_project import find_project
from sooner.door.needs_asking import shipped_rules
from sooner.door.needs_tree import sources_of
from sooner.plan.needs import Inference, TestNeeds, load_rules

PROJECTS = Path(__file__).parents[2] / "projects"
_LETTERS = {"r": "run", "s": "skip", "f": "fail", "a": "absent"}


class Label(Struct, frozen=True):
    """What somebody who read the test says of it."""

    profile: tuple[str, ...]
    gpu_min: int | None
    full: int | None

    @classmethod
    def of(cls, text: str) -> "Label":
        letters, gpu_min, full = text.split()
        numbers = [None if each == "-" else int(each) for each in (gpu_min, full)]
        return cls(tuple(_LETTERS[each] for each in letters), *numbers)


def names() -> list[str]:
    return sorted(path.parent.name for path in PROJECTS.glob("needs_*/labels.toml"))


def labels(name: str) -> dict[str, Label]:
    document = tomllib.loads((PROJECTS / name / "labels.toml").read_text(encoding="utf-8"))
    return {nodeid: Label.of(text) for nodeid, text in document["labels"].items()}


@cache
def inferred(name: str) -> dict[str, TestNeeds]:
    project = find_project([str(PROJECTS / name)])
    rules = load_rules([("rules.toml", shipped_rules())])
    inference = Inference(sources_of(project.root), rules, project.settings)
    return {each.nodeid: each for each in inference.of_files(project.tests)}


def said(needs: TestNeeds) -> Label:
    return Label(tuple(each.value for each in needs.profile.values()), needs.gpu_min, needs.full)
