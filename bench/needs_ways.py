"""What `sooner needs` says where a condition is not known, beside what it says where the same one is true and false.

Projects are drawn from a grammar (`needs_written/ways.txt`) and asked three times. Nothing is run: what either way
gives is taken as it is. Wrong for certain is an answer that is sure although the ways differ, or that neither gives;
an under-estimate is one that is below both. Where both ways give the same the answer should be that.

    python bench/needs_ways.py [--seed 1] [--projects 200] [--show 10]
"""

import argparse
from collections import Counter
from typing import Any, Final

from figures import machine, save, table
from needs_against_pytest import Drawn
from sooner.door.needs_asking import shipped_rules
from sooner.plan.needs import Confidence, Sources, TestNeeds, infer_needs, load_rules

_FLAG: Final = "elsewhere.flag()"
_NEVER: Final = 99
_GOOD: Final = ("as one of the ways, in doubt", "as both ways")
_KINDS: Final = (*_GOOD, "between the ways, in doubt", "wrong for certain", "below both ways", "not as both ways")


def asked(project: dict[str, str], rules: Any) -> dict[str, TestNeeds]:
    """What is said of each test."""
    found = infer_needs(Sources(project, project.get), ["tests/test_ways.py"], rules=rules)
    return {each.nodeid: each for each in found}


def said(needs: TestNeeds) -> tuple[Any, ...]:
    """What is compared."""
    return needs.min, needs.gpu_min, needs.full, *needs.profile.values()


def kind(unknown: TestNeeds, ways: list[TestNeeds]) -> str:
    """How the answer is beside those of the ways."""
    answers, is_sure = {said(each) for each in ways}, unknown.confidence is Confidence.HIGH
    if len(answers) == 1:
        return "as both ways" if said(unknown) in answers else "not as both ways"
    if is_sure:
        return "wrong for certain"
    if any(_below(getattr(unknown, field), [getattr(each, field) for each in ways]) for field in ("min", "gpu_min")):
        return "below both ways"
    return "as one of the ways, in doubt" if said(unknown) in answers else "between the ways, in doubt"


def _below(value: Any, others: list[Any]) -> bool:
    numbers = [_NEVER if each is None else each for each in (value, *others)]
    return all(isinstance(each, int) for each in numbers) and numbers[0] < min(numbers[1:])


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--projects", type=int, default=200)
    parser.add_argument("--show", type=int, default=10, help="how many of the tests that are wrong are printed")
    args = parser.parse_args()
    rules, counts = load_rules([("rules.toml", shipped_rules())]), Counter[str]()
    wrong: list[tuple[str, ...]] = []
    for seed in range(args.seed, args.seed + args.projects):
        project = Drawn(seed, "ways").tree()
        answers = [
            asked({path: text.replace(_FLAG, flag) for path, text in project.items()}, rules)
            for flag in (_FLAG, "True", "False")
        ]
        for nodeid in answers[1].keys() & answers[2].keys():
            unknown, *ways = (each.get(nodeid) for each in answers)
            found = kind(unknown, ways) if unknown is not None else "not as both ways"
            counts[found] += 1
            if found not in _KINDS[:3]:
                wrong.append((str(seed), nodeid, found, *(str(each and said(each)[:3]) for each in (unknown, *ways))))
    total = counts.total()
    print("tests with a condition that is not known, beside both ways\n")
    print(
        table(
            ("answer", "tests", "share"), [(each, str(counts[each]), f"{counts[each] / total:.1%}") for each in _KINDS]
        )
    )
    if wrong:
        print("\n" + table(("seed", "test", "answer", "unknown", "true", "false"), wrong[: args.show]))
    save("needs-ways", {"counts": dict(counts), "tests": total, "machine": machine()})


if __name__ == "__main__":
    main()
