"""Which paths break which signals: learned where there is something to learn, and silent where there is not."""

import random

import pytest
from msgspec.structs import replace

from sooner.analysis.trunk.breakages import Breakage
from sooner.analysis.trunk.decide import decide
from sooner.analysis.trunk.facts import Commit, Event, Question, Revert, Signal, Status
from sooner.analysis.trunk.lessons import MOST, Lessons, area_of, learn, named_in, related
from sooner.analysis.trunk.replay import lessons_at, question_at

FOLDERS = [f"src/part{k}" for k in range(8)]


def trunk(commits: int, seed: int) -> list[Commit]:
    generator = random.Random(seed)
    return [
        Commit(
            sha=f"c{i}",
            time=1800.0 * i,
            files=tuple(f"{folder}/file{generator.randrange(9)}.py" for folder in generator.sample(FOLDERS, 2)),
        )
        for i in range(commits)
    ]


def breakage(signal: str, culprit: int) -> Breakage:
    span = {"culprit": culprit, "first": culprit, "last": culprit}
    return Breakage(signal=signal, probability=0.99, fixed=None, failures=5, is_certain=1.0, **span)


def telling(commits: list[Commit], signal: str, folder: str, every: int) -> list[Breakage]:
    """Of the commits that change a folder each so manyth breaks the signal."""
    places = [i for i, commit in enumerate(commits) if any(path.startswith(folder) for path in commit.files or ())]
    return [breakage(signal, place) for place in places[3::every]]


def silent(commits: list[Commit], signal: str, share: float, seed: int) -> list[Breakage]:
    generator = random.Random(seed)
    return [breakage(signal, i) for i in range(1, len(commits)) if generator.random() < share]


def test_a_folder_whose_changes_break_a_signal_makes_a_commit_suspect() -> None:
    commits = trunk(600, 1)
    found = learn(commits, telling(commits, "ci / test", FOLDERS[2], 6))
    guilty = found.factor("ci / test", ("src/part2/new.py",))
    innocent = found.factor("ci / test", ("src/part5/new.py",))
    assert guilty > 2
    assert innocent < 1
    assert guilty > 5 * innocent


def test_what_was_learned_helps_on_commits_that_were_not_seen() -> None:
    commits = trunk(1200, 2)
    past = learn(commits[:600], telling(commits[:600], "ci / test", FOLDERS[2], 6))
    future = [commits[one.culprit] for one in telling(commits, "ci / test", FOLDERS[2], 6) if one.culprit >= 600]
    scores = [past.factor("ci / test", commit.files) for commit in future]
    others = [past.factor("ci / test", commit.files) for commit in commits[600:]]
    assert min(scores) > 1.5
    assert 0.5 < sum(others) / len(others) < 1.5


@pytest.mark.parametrize("seed", range(6))
def test_where_paths_tell_nothing_nothing_is_learned_or_little(seed: int) -> None:
    commits = trunk(800, seed)
    found = learn(commits, silent(commits, "ci / test", 0.03, 1000 + seed))
    factors = [found.factor("ci / test", commit.files) for commit in commits]
    assert min(factors) > 0.5
    assert max(factors) < 2


def test_few_culprits_teach_nothing() -> None:
    commits = trunk(100, 3)
    assert learn(commits, telling(commits, "ci / test", FOLDERS[0], 9)[:5]).everywhere == {}


def test_culprits_that_are_not_sure_or_lie_before_the_window_teach_nothing() -> None:
    commits = trunk(600, 1)
    sure = telling(commits, "ci / test", FOLDERS[2], 6)
    assert learn(commits, [replace(one, probability=0.6) for one in sure]).culprits == 0
    assert learn(commits, [*sure, breakage("ci / test", 0)]) == learn(commits, sure)


def test_a_signal_without_a_past_is_told_what_is_known_of_its_job() -> None:
    commits = trunk(600, 4)
    past = telling(commits, "ci / gpu :: a.py::test_a", FOLDERS[1], 6)
    past += telling(commits, "ci / cpu :: b.py::test_b", FOLDERS[6], 6)
    found = learn(commits, past)
    assert found.factor("ci / gpu :: new.py::test", ("src/part1/x.py",)) > 2
    assert found.factor("ci / gpu :: new.py::test", ("src/part1/x.py",)) > 1.5 * found.factor(
        "ci / cpu :: new.py::test", ("src/part1/x.py",)
    )


def test_a_commit_that_broke_many_signals_is_one_culprit() -> None:
    commits = trunk(400, 5)
    base = silent(commits, "ci / a", 0.04, 7)
    many = base + [breakage(f"ci / s{k}", 200) for k in range(50)]
    one, fifty = learn(commits, [*base, breakage("ci / s0", 200)]), learn(commits, many)
    assert fifty.culprits == one.culprits


def test_factors_are_bounded() -> None:
    lessons = Lessons(everywhere={"": 1.0, "src": 1e9, "docs": 1e-9})
    assert lessons.factor("x", ("src/a.py",)) == MOST
    assert lessons.factor("x", ("docs/a.py",)) == 1 / MOST
    assert lessons.factor("x", ()) == 1.0
    assert lessons.factor("x", None) == 1.0


@pytest.mark.parametrize(
    ("key", "area", "file"),
    [
        ("ci / test (gpu) :: tests/ops/test_add.py::test_x", "ci / test (gpu)", "tests/ops/test_add.py"),
        ("ci / test (gpu)", "ci", ""),
        ("pull / linux / test_ops.py::test_a[1]", "pull", "test_ops.py"),
        ("signal-0", "signal-0", ""),
    ],
)
def test_a_key_tells_its_area_and_perhaps_its_file(key: str, area: str, file: str) -> None:
    assert (area_of(key), named_in(key)) == (area, file)


@pytest.mark.parametrize("parameter", ["x" * 200_000, "x/" * 100_000, "x." * 100_000])
def test_the_file_of_a_key_is_found_however_long_its_parameters_are(parameter: str) -> None:
    assert named_in(f"ci :: tests/test_add.py::test_x[{parameter}]") == "tests/test_add.py"


def test_a_commit_that_changes_the_test_itself_is_more_suspect() -> None:
    own = related("tests/ops/test_add.py", ("test/tests/ops/test_add.py",))
    beside = related("tests/ops/test_add.py", ("tests/ops/conftest.py",))
    elsewhere = related("tests/ops/test_add.py", ("src/a.py",))
    assert own > beside > elsewhere == 1.0
    assert related("tests/ops/test_add.py", ("ops/test_add.py",)) == own
    assert related("test_add.py", ("src/a.py",)) == 1.0
    assert related("ops/core/test_add.py", ("loops/core/a.py",)) == 1.0


def test_names_never_convict_without_runs() -> None:
    """One failure of a commit that changed the test itself is still more probably a flake, or asks for runs."""
    key = "ci :: tests/test_add.py::test_x"
    commits = tuple(
        Commit(sha=f"c{i}", time=1800.0 * i, files=("tests/test_add.py",) if i == 30 else ("src/a.py",))
        for i in reversed(range(34))
    )
    events = tuple(
        Event(
            sha=f"c{i}",
            status=Status.FAILURE if i >= 30 else Status.SUCCESS,
            started_at=1800.0 * i,
            ended_at=1800.0 * i + 900,
        )
        for i in range(34)
    )
    lessons = Lessons(everywhere={"tests": MOST})
    priors = {commit.sha: lessons.factor(key, commit.files) for commit in commits}
    for signal in (Signal(key=key, events=events), Signal(key=key, events=events, priors=priors)):
        (decision,) = decide(Question(now=1800.0 * 34, commits=commits, signals=(signal,))).decisions
        assert not isinstance(decision, Revert)


def test_a_history_teaches_the_commits_of_the_window() -> None:
    commits = trunk(700, 6)
    culprits = {one.culprit for one in telling(commits, "ci / test", FOLDERS[3], 7)}
    broken = {i for culprit in culprits for i in range(culprit, culprit + 3)}
    events = tuple(
        Event(
            sha=f"c{i}",
            status=Status.FAILURE if i in broken else Status.SUCCESS,
            started_at=1800.0 * i + 60,
            ended_at=1800.0 * i + 120,
        )
        for i in range(700)
    )
    signal = Signal(key="ci / test", events=events)
    now = 1800.0 * 700
    lessons = lessons_at(commits, [signal], now, window=60)
    assert lessons.culprits > 8
    question = question_at(commits, [signal], now, window=60, lessons=lessons)
    priors = question.signals[0].priors
    touching = [priors[c.sha] for c in commits[-60:] if any(p.startswith(FOLDERS[3]) for p in c.files or ())]
    others = [priors[c.sha] for c in commits[-60:] if not any(p.startswith(FOLDERS[3]) for p in c.files or ())]
    assert min(touching) > 2 * max(others)
    earlier = lessons_at(commits, [signal], 1800.0 * 100, window=60)
    assert earlier.everywhere == {}


def test_the_commit_that_changes_the_test_itself_is_asked_about_first() -> None:
    """Of two commits that never ran, the one that touches the test is the suspect."""
    key = "ci :: tests/test_add.py::test_x"
    files = {18: ("src/a.py",), 19: ("tests/test_add.py", "src/b.py"), 20: ("src/c.py",)}
    commits = tuple(Commit(sha=f"c{i}", time=1800.0 * i, files=files.get(i)) for i in reversed(range(26)))
    events = tuple(
        Event(
            sha=f"c{i}",
            status=Status.FAILURE if i > 20 else Status.SUCCESS,
            started_at=1800.0 * i,
            ended_at=1800.0 * i + 900,
        )
        for i in range(26)
        if not 18 <= i <= 20
    )
    (named,) = decide(Question(now=1800.0 * 26, commits=commits, signals=(Signal(key=key, events=events),))).decisions
    assert not isinstance(named, Revert)
    assert named.culprit == "c19"
