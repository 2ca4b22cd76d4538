"""What may be reverted: limits, the journal's word, and text that stays text."""

import pytest

from sooner.analysis.trunk.reverting import (
    DAY_S,
    Action,
    Culprit,
    Limits,
    Line,
    Refusal,
    State,
    begun_since,
    body_of,
    branch_of,
    done_line,
    is_begun,
    is_merge_of,
    is_revert_of,
    is_sha,
    message_of,
    refusal,
    reverted_in,
    reverter_of,
    title_of,
)

NOW = 1_000_000.0
SHA = "a" * 40


def culprit(**more):
    return Culprit(**{"sha": SHA, "time": NOW - 3600, "message": "break it\n\nfor speed", **more})


def line(action=Action.PUSH, state=State.BEGIN, sha=SHA, at=NOW, **more):
    return Line(at=at, culprit=sha, action=action, state=state, **more)


def reason(one, journal=(), **limits):
    said = refusal(one, journal, Limits(**limits), NOW, "")
    return said and said[0]


def test_a_young_commit_may_be_reverted():
    assert reason(culprit()) is None


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"reverted_by": "b" * 40}, Refusal.ALREADY),
        ({"message": f'Revert "x"\n\nThis reverts commit {"c" * 40}.'}, Refusal.IS_REVERT),
        ({"message": 'Reland "x"'}, Refusal.IS_REVERT),
        ({"message": "[Reland] x"}, Refusal.IS_REVERT),
        ({"message": "x (reland) (#12)"}, Refusal.IS_REVERT),
        ({"message": 'Reapply "x"'}, Refusal.IS_REVERT),
        ({"message": 'Back out "x"'}, Refusal.IS_REVERT),
        ({"message": "x\n\nNo-Auto-Revert"}, Refusal.OPTED_OUT),
        ({"message": "x\n\nauto-revert: off\n"}, Refusal.OPTED_OUT),
        ({"labels": ("no-auto-revert",)}, Refusal.OPTED_OUT),
        ({"dependents": ("b uses f",)}, Refusal.DEPENDENTS),
        ({"merges_trunk": True}, Refusal.MERGES_TRUNK),
        ({"time": NOW - 3 * DAY_S}, Refusal.TOO_OLD),
    ],
)
def test_every_no_has_its_reason(facts, expected):
    assert reason(culprit(**facts)) is expected


def test_speaking_of_auto_reverts_is_no_opting_out():
    assert reason(culprit(message="x\n\nauto-revert: no more than three a day")) is None


def test_the_days_limit_counts_what_was_begun_by_commit():
    journal = [line(sha="b" * 40), line(state=State.DONE, sha="b" * 40), line(sha="c" * 40), line(sha="d" * 40, at=0.0)]
    assert begun_since(journal, NOW - DAY_S) == {"b" * 40, "c" * 40}
    assert reason(culprit(), journal, a_day=2) is Refusal.DAILY_LIMIT
    assert reason(culprit(), journal, a_day=3) is None


def test_without_limits_of_the_project_three_commits_a_day_are_reverted_none_older_than_two():
    journal = [line(sha=letter * 40) for letter in "bcd"]
    assert reason(culprit(time=NOW - 2 * DAY_S), journal[:2]) is None
    assert reason(culprit(time=NOW - 2 * DAY_S - 1)) is Refusal.TOO_OLD
    assert reason(culprit(), journal) is Refusal.DAILY_LIMIT


def test_what_was_refused_before_it_was_pushed_does_not_count():
    refused = [line(), line(Action.REVERT, State.REFUSED)]
    pushed = [line(), line(state=State.DONE), line(Action.REVERT, State.REFUSED)]
    assert begun_since(refused, 0.0) == set()
    assert begun_since(pushed, 0.0) == {SHA}


def test_what_was_begun_is_carried_on_whatever_its_age_and_the_days_limit():
    old = culprit(time=NOW - 30 * DAY_S)
    assert reason(old, [line()], a_day=0) is None
    assert reason(old, [line(), line(Action.REVERT, State.DONE)]) is Refusal.TOO_OLD


def test_an_action_is_begun_until_the_whole_has_an_end():
    refused, done = line(Action.REVERT, State.REFUSED), line(Action.REVERT, State.DONE)
    assert is_begun([line()], SHA, "")
    assert is_begun([line(), line(state=State.FAILED)], SHA, "")
    assert not is_begun([line(), done], SHA, "")
    assert not is_begun([refused], SHA, "")
    assert not is_begun([line(), refused], SHA, "")
    assert not is_begun([line(sha="b" * 40)], SHA, "")
    assert not is_begun([line(target="o/fork")], SHA, "o/r")


def test_what_was_pushed_is_carried_on_though_the_kill_switch_stopped_it_then():
    pushed = [line(), line(state=State.DONE), line(Action.PULL_REQUEST), line(Action.REVERT, State.REFUSED)]
    assert is_begun(pushed, SHA, "")
    assert reason(culprit(time=NOW - 30 * DAY_S), pushed, a_day=0) is None
    assert not is_begun([*pushed, line(Action.REVERT, State.DONE)], SHA, "")


@pytest.mark.parametrize(
    ("later", "is_it"),
    [
        ([f"Revert\n\nThis reverts commit {SHA[:9]}."], True),
        (['Revert "Break it (#12)" (#13)\n\nReverts o/r#12'], True),
        (['Revert "break it"'], True),
        (["[revert] Break it"], True),
        (['Back out "Break it"'], True),
        (['Revert "Break it (#11)" (#13)'], False),
        ([f'Revert "Break it"\n\nThis reverts commit {"b" * 40}.'], False),
        (['Revert "Break it too"'], False),
        (["Break it", 'Revert "Break it"'], False),
        (['Revert "Break it"', "Break it"], True),
        (['Revert "Revert "Break it""'], False),
        (["break it" + " " * 3_000_000 + "x", "Revert " * 400_000], False),
    ],
    ids=range(12),
)
def test_a_revert_by_hand_is_known_by_its_title_where_it_names_no_commit(later, is_it):
    told = [(f"{i}", text) for i, text in enumerate(later)]
    assert bool(reverter_of(SHA, "Break it (#12)\n\nfor speed", told[::-1])) == is_it
    assert reverter_of(SHA, " ", told[::-1]) == ("0" if SHA[:9] in later[0] else "")


def test_a_merge_of_trunk_is_known_by_the_words_of_git():
    merges = ("Merge branch 'main' of host:o/r", "Merge branch 'main' into x", "Merge remote-tracking branch 'up/main'")
    assert all(is_merge_of(message, "main") for message in merges)
    others = ("Merge branch 'x' into main", "Merge branch 'x/main'", "Merge pull request #1 from o/main", "Merge main")
    assert not any(is_merge_of(message, "main") for message in others)


def test_done_is_done_at_one_place():
    journal = [line(Action.REVERT, State.DONE, target="o/r", url="u")]
    assert done_line(journal, SHA, "o/r").url == "u"
    assert done_line(journal, SHA, "o/fork") is None


def test_the_message_is_the_one_that_is_looked_for():
    message = message_of(culprit(), ["linux / test"], 0.9991, "failed 3 of 3, passed before")
    assert message.startswith('Revert "break it"\n\nThis reverts commit ' + SHA + ".\n")
    assert "probability 99.91 %" in message
    assert is_revert_of(message, SHA)
    assert not is_revert_of(message, "b" * 40)
    assert reverted_in(message) == (SHA,)
    assert "by rules" in message_of(culprit(), [], None, "")


def test_no_message_claims_to_be_certain():
    assert "It broke trunk (probability over 99.99 %)." in message_of(culprit(), [], 0.999_995, "")
    assert "It broke trunk (probability 99.99 %)." in message_of(culprit(), [], 0.9999, "")


def test_text_of_signals_cannot_write_lines_of_its_own():
    evil = [f"x\nSooner-Reverts: {'b' * 40}", "y\r\n\r\nThis reverts commit 1234567", "\x1b]0;title\x07z", "[skip ci]"]
    message = message_of(culprit(message='a "[Skip CI]" b'), evil, 1.0, "one\ntwo")
    assert not is_revert_of(message, "b" * 40)
    assert reverted_in(message) == (SHA,)
    assert "\x1b" not in message
    assert "[skip ci]" not in message.lower()
    assert title_of(culprit(message="a [skip ci]")) == 'Revert "a (skip ci)"'


def test_a_subject_is_cut_where_no_title_goes_on():
    assert title_of(culprit(message="x" * 1000)) == f'Revert "{"x" * 200}"'


def test_many_signals_are_counted_not_listed():
    message = message_of(culprit(), [f"s{i}" for i in range(50)], 1.0, "")
    assert message.count("Signal:") == 20
    assert "... and 30 more signals" in message


def test_no_run_of_backticks_ends_the_fence_of_the_body():
    body = body_of("title\n\n````\n</details>\n")
    assert body.startswith("`````text\n")
    assert body.endswith("\n`````\n")


@pytest.mark.parametrize("text", ["", "HEAD", "--all", "abc", "g" * 40, "A" * 40, "a" * 40 + "\n", "a" * 65])
def test_only_hexadecimal_digits_are_an_id(text):
    assert not is_sha(text)


def test_the_branch_is_named_after_the_commit_alone():
    assert branch_of(SHA) == f"sooner/revert-{SHA}"
