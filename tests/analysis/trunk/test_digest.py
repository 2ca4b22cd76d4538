"""The digest: areas, reverts and what lands again, breakages with their times, and time to signal."""

import pytest
from msgspec.structs import replace

from sooner.analysis.metrics.facts import Sample, Samples
from sooner.analysis.trunk.breakages import find_breakages, series_of
from sooner.analysis.trunk.digest import (
    ROOT,
    UNKNOWN,
    Digest,
    Landed,
    What,
    area_of,
    areas_of,
    broke_in,
    signal_time,
    undone_in,
)
from sooner.analysis.trunk.facts import Commit, Event, Kind, Signal, Status
from sooner.report.digest import digest_markdown, digest_text, markdown_text

HOUR = 3600.0


def commit(sha, message="", *files, at=0.0, author="ann"):
    return Landed(sha=sha, time=at, author=author, message=message, files=files)


# Areas


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("torch/distributed/c10d.py", "distributed"),
        ("torch/distributed.py", "torch"),
        ("a/b/x.cu", "kernels"),
        ("README.md", ROOT),
        ("docs/a.md", "docs"),
    ],
)
def test_a_file_is_in_the_first_area_that_fits_else_in_its_top_folder(path, expected):
    areas = {"distributed": ("torch/distributed", "test/distributed/"), "kernels": ("*.cu",)}
    assert area_of(path, areas) == expected


def test_a_commit_counts_once_in_each_area_that_it_touches():
    rows = areas_of([commit("a", "", "x/1", "x/2", "y/1"), commit("b", "", "x/3"), commit("c")], {})
    assert [(row.name, row.commits) for row in rows] == [("x", 2), (UNKNOWN, 1), ("y", 1)]


# Reverts


def test_a_revert_names_its_commit_how_long_it_was_in_and_on_whose_behalf():
    sha = "a" * 40
    body = "This reverts commit " + sha + ".\n\nReverted #12 on behalf of bob due to it breaks ROCm ([comment](x))"
    commits = [commit(sha, "Speed up (#12)"), commit("b" * 40, f'Revert "Speed up (#12)"\n\n{body}', at=5 * HOUR)]
    (row,) = undone_in(commits, HOUR)
    assert (row.what, row.of, row.title, row.after_s) == (What.REVERT, sha, "Speed up (#12)", 5 * HOUR)
    assert (row.by, row.why) == ("bob", "it breaks ROCm")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("Reason for revert: it breaks ROCm\n\nBug: 7", "it breaks ROCm"),
        ("It broke trunk (probability 99.90 %).\nEvidence: 5 failures from it on\nSignal: ci", "5 failures from it on"),
        ("Reverted on behalf of bob\n\nReason: too slow", "too slow"),
        ("There is no Reason: for this", ""),
    ],
)
def test_a_revert_says_why_as_gerrit_and_sooner_write_it(said, why):
    sha = "a" * 40
    commits = [commit(sha, "Speed up"), commit("b" * 40, f'Revert "Speed up"\n\nThis reverts commit {sha}.\n\n{said}')]
    assert undone_in(commits, 0)[0].why == why


@pytest.mark.parametrize(
    "title",
    ['Reland "Speed up" (#14)', "[reland] Speed up (#14)", "Re-land: Speed up", 'Reapply "Speed up"',
     'Revert "Revert "Speed up" (#13)" (#14)', "[Reland 2] Speed up", "Speed up [relanded]", "Speed up (reland)",
     "Speed up (#12) (re-land) (#14)", "[reapply] Speed up", "Speed up (#14)", "speed up", "Speed up (#12)"],
)  # fmt: skip
def test_what_lands_again_is_told_with_the_time_since_its_revert(title):
    sha = "a" * 40
    revert = f'Revert "Speed up (#12)" (#13)\n\nThis reverts commit {sha}.'
    commits = [commit(sha, "Speed up (#12)"), commit("b" * 40, revert, at=HOUR), commit("c" * 40, title, at=3 * HOUR)]
    last = undone_in(commits, 2 * HOUR)
    assert [(row.what, row.of, row.after_s) for row in last] == [(What.RELAND, sha, 2 * HOUR)]


def test_what_is_reverted_again_was_in_since_it_landed_again():
    told = [(0, "Speed up"), (1, 'Revert "Speed up"'), (3, 'Reland "Speed up"'), (7, 'Revert "Speed up"')]
    commits = [commit(f"{i}" * 40, title, at=at * HOUR) for i, (at, title) in enumerate(told)]
    found = [(row.what, row.of[0], row.after_s / HOUR) for row in undone_in(commits, 0.0)]
    assert found == [(What.REVERT, "0", 1), (What.RELAND, "0", 2), (What.REVERT, "2", 4)]


@pytest.mark.parametrize(
    "title", ['Reland "Speed up" (#9)', "Speed up (#9) (reland)", "[reland] Speed up (#9)", "Speed up"]
)
def test_the_revert_of_what_landed_again_is_a_revert_of_that(title):
    told = ["Speed up", 'Revert "Speed up"', title, f'Revert "{title}"']
    commits = [commit(f"{i}" * 40, text, at=i * HOUR) for i, text in enumerate(told)]
    (row,) = undone_in(commits, 3 * HOUR)
    assert (row.what, row.of[0], row.after_s) == (What.REVERT, "2", HOUR)


def test_what_lands_again_under_its_title_does_so_once():
    told = ["Update pins", "Update pins", 'Revert "Update pins"', "Update pins", "Update pins"]
    commits = [commit(f"{i}" * 40, title, at=i * HOUR) for i, title in enumerate(told)]
    assert [(row.what, row.sha[0]) for row in undone_in(commits, 0.0)] == [(What.REVERT, "2"), (What.RELAND, "3")]


def test_a_commit_that_is_reverted_is_named_by_its_id_whatever_the_title_says():
    commits = [commit("a" * 40, "Speed up"), commit("b" * 40, "Speed up"), commit("d" * 40, "Slow down")]
    commits.append(commit("c" * 40, f"Undo it\n\nThis reverts commit {'a' * 9}.", at=HOUR))
    (row,) = undone_in(commits, HOUR)
    assert (row.what, row.of, row.title) == (What.REVERT, "a" * 40, "Speed up")


def test_one_commit_that_reverts_two_is_the_revert_of_both():
    commits = [commit("a" * 40, "Speed up"), commit("b" * 40, "Slow down")]
    body = "\n".join(f"This reverts commit {sha * 40}." for sha in "aba")
    commits += [commit("c" * 40, f"Undo both\n\n{body}", at=HOUR), commit("d" * 40, "Slow down", at=3 * HOUR)]
    found = [(row.what, row.of[0], row.after_s) for row in undone_in(commits, HOUR)]
    assert found == [(What.REVERT, "a", HOUR), (What.REVERT, "b", HOUR), (What.RELAND, "b", 2 * HOUR)]


def test_the_revert_of_a_revert_lands_the_first_commit_again():
    commits = [commit("a" * 40, "Speed up"), commit("b" * 40, f'Revert "Speed up"\n\nThis reverts commit {"a" * 40}.')]
    commits.append(commit("c" * 40, f'Reapply "Speed up"\n\nThis reverts commit {"b" * 40}.', at=HOUR))
    (row,) = undone_in(commits, HOUR)
    assert (row.what, row.of, row.title) == (What.RELAND, "a" * 40, "Speed up")


def test_a_revert_of_what_is_not_known_says_what_it_can():
    (row,) = undone_in([commit("b", 'Revert "old thing"\n\nThis reverts commit 1234567.')], 0.0)
    assert (row.title, row.of, row.after_s) == ("old thing", "1234567", None)


@pytest.mark.parametrize(
    "title",
    [
        "Revertible maps", "Speak of reverts", "Land again", "", "Relandscaping", "Revert to the old allocator (#12)",
        "Reverted  back to one thread", "Back out of the loop early",
    ],
)  # fmt: skip
@pytest.mark.parametrize("body", ["", f'* Try it\n\n* Revert "Try it"\n\nThis reverts commit {"ab" * 20}.'])
def test_other_commits_are_no_reverts_whatever_was_taken_back_before_they_landed(title, body):
    assert undone_in([commit("a", title and f"{title}\n\n{body}")], 0.0) == []


# Breakages


def broken(pattern, *, step=HOUR, key="s"):
    """`P`, `F` for one run a commit, an hour apart; each takes ten minutes."""
    commits = [Commit(sha=f"c{i}", time=i * step) for i in range(len(pattern))]
    word = {"P": Status.SUCCESS, "F": Status.FAILURE}
    events = tuple(
        Event(sha=f"c{i}", status=word[letter], started_at=i * step, ended_at=i * step + 600)
        for i, letter in enumerate(pattern)
        if letter != "."
    )
    return commits, Signal(key=key, kind=Kind.JOB, events=events)


def broke(*signals, commits, since=0.0, until=100 * HOUR, told=None):
    places = {one.sha: i for i, one in enumerate(commits)}
    series = [series_of(signal.key, signal.events, places) for signal in signals]
    by_key = {signal.key: signal for signal in signals}
    return broke_in(find_breakages(series), commits, by_key, told or {}, since=since, until=until)


def test_a_breakage_is_found_when_its_first_failure_ended_and_red_until_the_pass():
    commits, signal = broken("P" * 10 + "FFFF" + "P" * 10)
    (row,) = broke(signal, commits=commits, told={"c10": commit("c10", "Oops\n\nmore")})
    assert (row.culprit, row.title, row.author, row.found_by) == ("c10", "Oops", "ann", "s")
    assert (row.found_at, row.red_s, row.is_red) == (10 * HOUR + 600, 4 * HOUR, False)


def test_a_pass_on_a_commit_before_the_fix_does_not_mend_it():
    commits, signal = broken("P" * 10 + "FFFF" + "P" * 10)
    again = Event(sha="c5", status=Status.SUCCESS, started_at=12 * HOUR, ended_at=12 * HOUR + 60)
    (row,) = broke(Signal(key="s", kind=Kind.JOB, events=(*signal.events, again)), commits=commits)
    assert row.red_s == 4 * HOUR


def test_of_several_signals_the_surest_says_how_probable_the_culprit_is():
    commits, sure = broken("P" * 10 + "FFFF" + "P" * 10, key="sure")
    _, unsure = broken("P" * 8 + "..FFFF" + "P" * 10, key="unsure")
    places = {one.sha: i for i, one in enumerate(commits)}
    by_signal = {
        one.signal: one for one in find_breakages([series_of(s.key, s.events, places) for s in (sure, unsure)])
    }
    moved = replace(by_signal["unsure"], culprit=by_signal["sure"].culprit)
    assert moved.probability < by_signal["sure"].probability
    for order in ([moved, by_signal["sure"]], [by_signal["sure"], moved]):
        (row,) = broke_in(order, commits, {"sure": sure, "unsure": unsure}, {}, since=0.0, until=100 * HOUR)
        assert row.probability == by_signal["sure"].probability


def test_what_is_not_mended_is_still_red():
    commits, signal = broken("P" * 10 + "FFFF")
    (row,) = broke(signal, commits=commits, until=15 * HOUR)
    assert (row.is_red, row.red_s) == (True, 5 * HOUR - 600)


def test_nobody_is_named_for_what_was_red_when_the_record_began():
    commits, signal = broken("FFFFFF" + "P" * 10)
    (row,) = broke(signal, commits=commits, told={"c0": commit("c0", "Innocent")})
    assert (row.culprit, row.title, row.author, row.probability, row.commits) == ("", "", "", 0.0, ("", ""))
    assert (row.found_by, row.red_s) == ("s", 6 * HOUR)
    line = next(line for line in digest_text(digest(broke=(row,)), 10).splitlines() if line.startswith("(older)"))
    assert line.split() == ["(older)", "-", "-", "-", "1", "s", "1970-01-01", "00:10", "6.0", "h"]


def test_one_commit_that_broke_many_signals_is_one_row():
    commits, first = broken("P" * 10 + "FFFF" + "P" * 10, key="first")
    _, second = broken("P" * 10 + ".FFF" + "P" * 10, key="second")
    _, third = broken("P" * 10 + "FFFF" + "P" * 10, key="third")
    rows = broke(first, second, third, commits=commits)
    assert rows[0].signals[0] == "first"
    assert sum(len(row.signals) for row in rows) == 3


def test_flakes_and_what_was_mended_before_are_not_listed():
    commits, signal = broken("PPPFPPPPPPFPPPPPP")
    assert broke(signal, commits=commits) == []
    commits, signal = broken("P" * 5 + "FFFF" + "P" * 10)
    assert broke(signal, commits=commits, since=12 * HOUR) == []


# Time to signal


def test_a_metric_is_set_beside_the_week_before():
    samples = [
        Sample(at=at, seconds=seconds) for at, seconds in ((-10.0, 100.0), (5.0, 300.0), (-999.0, 9.0), (99.0, 9.0))
    ]
    one = signal_time("m", Samples.of(samples), 0.0, 50.0, 100.0)
    assert (one.n, one.n_before) == (1, 1)
    assert (one.p50.value, one.p50_before.value) == (300.0, 100.0)
    assert signal_time("m", Samples.of([]), 0.0, 1.0, 1.0).p50 is None


# Text


def digest(**more):
    empty = {"branch": "main", "areas": (), "broke": (), "undone": (), "flaky": (), "signal_times": ()}
    return Digest(**{"since": 0.0, "until": 86_400.0, "commits": 0, "authors": 0, **empty, **more})


def test_an_empty_day_says_so_in_every_part():
    text = digest_text(digest(), 10)
    assert text.startswith("Trunk digest of main, 1970-01-01 00:00 to 1970-01-02 00:00 UTC: 0 commits")
    assert "Landed, by area: nothing" in text
    assert "Broke: nothing that is known" in text


def test_rows_beyond_the_limit_are_counted():
    rows = tuple(areas_of([commit("a", "", *(f"x{i}/a" for i in range(5)))], {}))
    assert "... and 3 more (--limit)" in digest_text(digest(areas=rows), 2)
    assert "... and 3 more" in digest_markdown(digest(areas=rows), 2)


def test_a_part_of_which_no_row_is_shown_is_not_said_to_be_empty():
    rows = tuple(areas_of([commit("a", "", "x/a")], {}))
    for text in (digest_text(digest(areas=rows), 0), digest_markdown(digest(areas=rows), 0)):
        landed = text.partition("Landed, by area")[2].partition("Broke")[0]
        assert "nothing" not in landed
        assert "... and 1 more" in landed


def test_markdown_holds_no_html_no_markdown_and_mentions_nobody():
    evil = "<img src=x onerror=alert(1)> **b** [l](http://x) `c` | @all #12 o/r#12 gh-12 $x$ www.x.y\n# title"
    undone = tuple(undone_in([commit("a", f'Revert "{evil.splitlines()[0]}"', author="@bob")], 0.0))
    for text in (markdown_text(evil), digest_markdown(digest(undone=undone), 10)):
        assert "<img" not in text
        assert "@all" not in text
        assert "\\[l\\]" in text or "[l]" not in text
        assert "http://x" not in text
        assert "#12" not in text
        assert "gh-12" not in text
        assert " $x" not in text
    assert "\n" not in markdown_text(evil)
    assert "@bob" not in digest_markdown(digest(undone=undone), 10)


def test_a_terminal_gets_no_escape_sequences():
    undone = tuple(undone_in([commit("a", 'Revert "\x1b[31mred\x1b]0;t\x07"')], 0.0))
    assert "\x1b" not in digest_text(digest(undone=undone), 10)
