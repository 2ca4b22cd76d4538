"""`sooner trunk revert` on real git repositories, with a fake GitHub that fails in every way at every call."""

import contextlib
import fcntl
import io
import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from fake_github import FakeGitHub

from sooner.cli import reverting_api, reverting_switch
from sooner.cli.main import _run

pytest.importorskip("urllib3")

PASSING = ("limit", "drop", "garbage", "drop_after", 502)
"""Faults after which asking again helps."""
CALLS = 6
"""Requests of one revert: kill switch, requests of the branch, labels, kill switch, kill switch, opening."""


def git(folder, *arguments, at=None):
    stamp = f"{int(at if at is not None else time.time())} +0000"
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True,
        env={**os.environ, **who, "GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp},
    )  # fmt: skip
    return done.stdout.strip()


class Trunk:
    """A bare repository and a checkout to write it with."""

    def __init__(self, folder):
        self.bare, self.work = folder / "trunk.git", folder / "work"
        start = ["git", "init", "-q", "--template=", "-b", "main"]  # without the sample hooks, which take time to copy
        subprocess.run([*start, "--bare", str(self.bare)], check=True)
        subprocess.run([*start, str(self.work)], check=True)
        self.commit("base", base="1\n2\n3\n4\n5\n6\n7\n8\n")

    def commit(self, message, *, at=None, **files):
        for name, text in files.items():
            (self.work / name).write_text(text)
        git(self.work, "add", "-A")
        git(self.work, "commit", "-q", "--allow-empty", "-m", message, at=at)
        git(self.work, "push", "-q", str(self.bare), "HEAD:refs/heads/main")
        return git(self.work, "rev-parse", "HEAD")

    @property
    def branches(self):
        refs = git(self.bare, "for-each-ref", "--format=%(refname:short)", "refs/heads/sooner")
        return refs.split()

    def message(self, ref):
        return git(self.bare, "show", "-s", "--format=%B", ref)


@pytest.fixture
def trunk(tmp_path):
    return Trunk(tmp_path)


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """A trunk with a culprit in it; copied for each fault."""
    made = Trunk(tmp_path_factory.mktemp("template"))
    return made, made.commit("break it", bad="x\n")


def document(*culprits, signals=("linux / test",), **more):
    return json.dumps(
        {
            "id": 1,
            "decisions": [
                {"decision": "revert", "signals": list(signals), "culprit": sha, "probability": 0.9991, "reason": "why"}
                | more
                for sha in culprits
            ],
        }
    )


class Caller:
    """Calls the command in this process, as quickly as a test of many faults needs it."""

    def __init__(self, capsys, monkeypatch):
        self._capsys, self._monkeypatch = capsys, monkeypatch

    def __call__(self, *arguments, stdin=""):
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8", "surrogateescape"))))
        code = _run(["trunk", "revert", *map(str, arguments), "--json"])
        said = self._capsys.readouterr()
        return code, json.loads(said.out)["reverts"] if said.out else said.err


@pytest.fixture
def revert(project, capsys, monkeypatch):
    return Caller(capsys, monkeypatch)


def journal():
    return [json.loads(line) for line in Path(".sooner/reverts.jsonl").read_text().splitlines()]


# Proposals


def test_a_proposal_has_message_evidence_and_commands_and_changes_nothing(revert, trunk):
    sha = trunk.commit("break it", bad="x\n")
    code, (found,) = revert("--repo", trunk.bare, stdin=document(sha))
    assert (code, found["state"]) == (0, "proposed")
    assert found["title"] == 'Revert "break it"'
    assert f"This reverts commit {sha}." in found["message"]
    assert "Signal: linux / test" in found["message"]
    assert "probability 99.91 %" in found["message"]
    assert found["commands"][2] == f"git revert {sha}"
    assert trunk.branches == []
    assert not Path(".sooner").exists()


def test_what_the_journal_knows_as_done_is_not_proposed_again(revert, trunk):
    sha = trunk.commit("break it", bad="x\n")
    assert revert("--execute", "--repo", trunk.bare, stdin=document(sha))[0] == 0
    code, (found,) = revert("--repo", trunk.bare, stdin=document(sha[:9]))
    assert (code, found["state"], found["culprit"]) == (0, "already", sha)


def test_names_of_repositories_and_branches_are_bytes(revert, trunk, tmp_path):
    sha = trunk.commit("break it", bad="x\n")
    there = tmp_path / os.fsdecode(b"caf\xe9 \x93; $(touch x).git")
    trunk.bare.rename(there)
    for state in ("reverted", "already"):
        code, (found,) = revert("--execute", "--repo", there, stdin=document(sha))
        assert (code, found["state"]) == (0, state)
    code, (found,) = revert("--execute", "--repo", there, stdin=document("f" * 40))
    assert (code, found["reason"]) == (12, "unknown_commit")
    code, (found,) = revert("--branch", os.fsdecode(b"caf\xe9"), stdin=document(sha))
    assert (code, found["commands"][0]) == (0, "git fetch origin 'caf?'")


def test_a_proposal_needs_no_repository(revert):
    code, (found,) = revert(stdin=document("a" * 40))
    assert (code, found["state"]) == (0, "proposed")


def test_people_read_the_proposal(sooner, trunk):
    sha = trunk.commit("break \x1b[31mit", bad="x\n")
    done = sooner("trunk", "revert", "--repo", trunk.bare, stdin=document(sha))
    assert done.returncode == 0
    assert "proposed:" in done.stdout
    assert f"$ git revert {sha}" in done.stdout
    assert "\x1b" not in done.stdout


def test_decisions_other_than_reverts_are_nothing_to_do(revert):
    assert revert(stdin='{"decisions": [{"decision": "hold", "signal": "s"}]}') == (5, [])


def test_decisions_a_line_each_are_read_and_one_culprit_is_one_revert(revert):
    text = document("a" * 40, signals=["one"]) + "\n" + document("a" * 40, signals=["two"]) + "\n"
    code, (found,) = revert(stdin=text)
    assert (code, found["signals"]) == (0, ["one", "two"])


@pytest.mark.parametrize("first", [8, 40])
def test_one_culprit_whose_id_is_told_short_and_in_full_is_one_revert(revert, first):
    long, other = "a" * 40, "ab" * 20
    ids = (long[:first], long[: 48 - first], other)
    text = "".join(document(one, signals=[f"s{i}"]) + "\n" for i, one in enumerate(ids))
    code, found = revert(stdin=text)
    assert code == 0
    assert [(one["culprit"], one["signals"]) for one in found] == [(long, ["s0", "s1"]), (other, ["s2"])]


def test_a_short_id_that_two_culprits_begin_with_is_taken_for_neither(revert):
    ids = ("a" * 8 + "b" * 32, "a" * 8, "a" * 40)
    _, found = revert(stdin="".join(document(one) + "\n" for one in ids))
    assert [one["culprit"] for one in found] == list(ids)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "stdin is empty"),
        ("{", "stdin:1 is no JSON"),
        ("{}", 'has no list "decisions"'),
        (document("--upload-pack=touch x"), "is no commit id"),
        (document("a" * 40, signals=[1]), "signals must be a list of names"),
        (document("a" * 40, probability="high"), "probability must be a number"),
        (document("a" * 40, probability=10**400), "probability must be a number from 0 to 1"),
        (document("a" * 40, probability=float("nan")), "probability must be a number from 0 to 1"),
        (document("a" * 40, probability=-3), "probability must be a number from 0 to 1"),
        ("[" * 100_000, "stdin:1 is no JSON: nested too deeply"),
        (document("a" * 40).replace("linux", "\udcff"), "stdin is not UTF-8 text"),
    ],
    ids=range(11),
)
def test_a_document_that_is_none_is_one_clear_error(revert, text, problem):
    code, said = revert(stdin=text)
    assert code == 4
    assert problem in said


def test_documents_a_line_each_may_hold_every_separator_of_unicode_and_begin_with_a_byte_order_mark(revert):
    lines = document("a" * 40, signals=["one\u2028two\x85three"]).encode().decode("unicode_escape")
    code, (found,) = revert(stdin=f"\ufeff{lines}\n{document('a' * 40, signals=['four'])}\n")
    assert (code, found["signals"]) == (0, ["one\u2028two\x85three", "four"])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--execute",), "--execute needs --repo DIR|URL"),
        (("--execute", "--repo", "x", "--kill-switch", ""), "--kill-switch is empty"),
        (("--patience", "nan"), "--patience nan: at least 0"),
        (("--pause", "-1"), "--pause -1: at least 0"),
        (("--repo", "nowhere.git"), "nowhere.git is no repository: there is no such folder"),
        (("--execute", "--repo", "nowhere.git"), "nowhere.git is no repository: there is no such folder"),
        (("--repo", "x" * 5_000), "is no repository: there is no such folder"),
        (("--oldest", "soon"), "--oldest 'soon' is no time such as 36h"),
        (("--execute", "--github", "nonsense", "--repo", "x"), "write OWNER/NAME"),
    ],
)
def test_options_that_make_no_sense_are_one_clear_error(sooner, options, problem):
    done = sooner("trunk", "revert", *options, stdin=document("a" * 40))
    assert problem in done.stderr
    assert done.returncode == 4


# Reverts


def test_a_revert_is_pushed_as_a_branch_named_after_the_culprit(revert, trunk):
    sha = trunk.commit("break it", bad="x\n")
    tip = git(trunk.bare, "rev-parse", "main")
    code, (found,) = revert("--execute", "--repo", trunk.bare, stdin=document(sha))
    assert (code, found["state"]) == (0, "reverted")
    assert trunk.branches == [f"sooner/revert-{sha}"]
    assert git(trunk.bare, "rev-parse", f"sooner/revert-{sha}^") == tip == git(trunk.bare, "rev-parse", "main")
    assert "bad" not in git(trunk.bare, "ls-tree", "--name-only", f"sooner/revert-{sha}").split()
    steps = [(line["action"], line["state"]) for line in journal()]
    assert steps == [("push", "begin"), ("push", "done"), ("revert", "done")]


def test_the_same_commit_is_never_reverted_twice(revert, trunk):
    sha = trunk.commit("break it", bad="x\n")
    for _ in range(2):
        code, (found,) = revert("--execute", "--repo", trunk.bare, stdin=document(sha[:12]))
        assert code == 0
    assert found["state"] == "already"
    git(trunk.bare, "branch", "-D", f"sooner/revert-{sha}")  # merged and deleted: the journal knows
    code, (found,) = revert("--execute", "--repo", trunk.bare, stdin=document(sha))
    assert (code, found["state"], trunk.branches) == (0, "already", [])


def test_two_machines_make_one_revert(revert, trunk):
    sha = trunk.commit("break it", bad="x\n")
    revert("--execute", "--repo", trunk.bare, "--journal", "one.jsonl", stdin=document(sha))
    first = git(trunk.bare, "rev-parse", f"sooner/revert-{sha}")
    code, (found,) = revert("--execute", "--repo", trunk.bare, "--journal", "two.jsonl", stdin=document(sha))
    assert (code, found["state"]) == (0, "already")
    assert git(trunk.bare, "rev-parse", f"sooner/revert-{sha}") == first


def test_a_second_push_of_the_same_branch_is_refused_by_the_remote(trunk, tmp_path):
    from sooner.cli.reverting_git import Clone

    sha = trunk.commit("break it", bad="x\n")
    one, two = (Clone(str(trunk.bare), "main", tmp_path / name) for name in ("one", "two"))
    message = f"r\n\nSooner-Reverts: {sha}\n"
    first, second = one.revert(sha, message), two.revert(sha, message + "later\n")
    assert one.push(sha, first) is True
    assert two.push(sha, second) is False
    assert two.remote_revert(sha) == (first, True)


def test_what_trunk_has_reverted_already_is_left_alone(revert, trunk):
    sha = trunk.commit("break it", bad="x\n")
    git(trunk.work, "rm", "-q", "bad")
    trunk.commit(f'Revert "break it"\n\nThis reverts commit {sha}.')
    code, (found,) = revert("--execute", "--repo", trunk.bare, stdin=document(sha))
    assert (code, found["state"], found["reason"]) == (0, "already", "already_reverted")
    assert trunk.branches == []


def test_what_landed_again_after_a_revert_by_github_is_not_reverted_under_its_old_commit(revert, trunk):
    sha = trunk.commit("break it (#1)", bad="x\n")
    git(trunk.work, "rm", "-q", "bad")
    trunk.commit('Revert "break it (#1)" (#2)\n\nReverts o/r#1')
    trunk.commit("break it, second try (#3)", bad="x\n")
    code, (found,) = revert("--execute", "--repo", trunk.bare, stdin=document(sha))
    assert (code, found["state"], found["reason"], trunk.branches) == (0, "already", "already_reverted", [])


def test_a_squashed_request_that_took_something_of_its_own_back_is_no_revert(revert, trunk):
    body = f'* Try it\n\n* Revert "Try it"\n\nThis reverts commit {"ab" * 20}.'
    sha = trunk.commit(f"Break it (#3)\n\n{body}", bad="x\n")
    code, (found,) = revert("--execute", "--repo", trunk.bare, stdin=document(sha))
    assert (code, found["state"]) == (0, "reverted")


def test_a_commit_that_reverts_one_of_trunk_is_a_revert_whatever_its_title_says(revert, trunk):
    first = trunk.commit("Break it", bad="x\n")
    sha = trunk.commit(f"Back to before\n\nThis reverts commit {first}.", bad="y\n")
    code, (found,) = revert("--execute", "--repo", trunk.bare, stdin=document(sha))
    assert (code, found["reason"]) == (12, "is_a_revert")


@pytest.mark.parametrize(
    "case",
    [
        ("old", (), 50, "too_old"),
        ("young", ("--oldest", "1h"), 2, "too_old"),
        ("x\n\nAuto-revert: no", (), 0, "opted_out"),
        ("x", ("--a-day", "0"), 0, "daily_limit"),
        ('Revert "y"\n\nThis reverts commit 1234567890.', (), 0, "is_a_revert"),
    ],
)
def test_limits_refuse_with_their_reason(revert, trunk, case):
    message, options, age_h, reason = case
    sha = trunk.commit(message, bad="x\n", at=time.time() - age_h * 3600)
    code, (found,) = revert("--execute", "--repo", trunk.bare, *options, stdin=document(sha))
    assert (code, found["state"], found["reason"]) == (12, "refused", reason)
    assert trunk.branches == []
    assert journal()[-1]["state"] == "refused"


def test_a_days_reverts_are_counted_over_calls(revert, trunk):
    shas = [trunk.commit(f"break {i}", **{f"bad{i}": "x\n"}) for i in range(3)]
    options = ("--execute", "--repo", trunk.bare, "--a-day", "2")
    states = [revert(*options, stdin=document(sha))[1][0]["state"] for sha in shas]
    assert states == ["reverted", "reverted", "refused"]


def test_a_conflict_is_refused_and_names_the_later_commit(revert, trunk):
    sha = trunk.commit("break it", base="1\nX\n3\n4\n5\n6\n7\n8\n")
    trunk.commit("on top of it", base="1\nXY\n3\n4\n5\n6\n7\n8\n")
    code, (found,) = revert("--execute", "--repo", trunk.bare, stdin=document(sha))
    assert (code, found["reason"]) == (12, "conflict")
    assert "base changed since" in found["detail"]
    assert "on top of it" in found["detail"]
    assert trunk.branches == []


def test_a_later_commit_that_uses_a_new_name_is_a_dependent(revert, trunk):
    sha = trunk.commit("add a helper", helper="def shiny_helper():\n    pass\n")
    trunk.commit("use it", user="shiny_helper()\n")
    code, (found,) = revert("--execute", "--repo", trunk.bare, stdin=document(sha))
    assert (code, found["reason"]) == (12, "dependents")
    assert "(use it) uses shiny_helper" in found["detail"]


@pytest.mark.parametrize(
    "line",
    [
        "__global__ void shiny_kernel(float* x) {",
        "template <typename T, int N>  __global__ void __launch_bounds__(256, 2) shiny_kernel(T x) {",
        "static at::Tensor& Shiny::shiny_kernel (const at::Tensor& x)",
        "constexpr std::array<int, 3> shiny_kernel = {1, 2, 3};",
        "using shiny_kernel = std::vector<int>;",
    ],
)
def test_a_later_commit_that_calls_a_new_kernel_is_a_dependent(revert, trunk, line):
    sha = trunk.commit("add a kernel", kernel=f"{line}\n")
    trunk.commit("launch it", launch="shiny_kernel<<<1, 2>>>(x);\n")
    code, (found,) = revert("--repo", trunk.bare, stdin=document(sha))
    assert (code, found["reason"]) == (12, "dependents")
    assert "(launch it) uses shiny_kernel" in found["detail"]


@pytest.mark.parametrize("files", [{"shiny_thing.cu": "x\n"}, {"base": "shiny_thing = 3\n"}], ids=["file", "variable"])
def test_a_later_commit_that_uses_a_new_file_or_variable_is_a_dependent(revert, trunk, files):
    sha = trunk.commit("add it", **files)
    trunk.commit("use it", user="add_library(x shiny_thing.cu)\n")
    code, (found,) = revert("--repo", trunk.bare, stdin=document(sha))
    assert (code, found["reason"]) == (12, "dependents")
    assert "(use it) uses shiny_thing" in found["detail"]


def test_a_call_of_something_from_elsewhere_gives_no_name(revert, trunk):
    sha = trunk.commit("call", call="    return shiny_kernel(x)\n    y = shiny_kernel(x)\n// void f shiny_kernel(x)\n")
    trunk.commit("call too", user="shiny_kernel(x)\n")
    code, (found,) = revert("--repo", trunk.bare, stdin=document(sha))
    assert (code, found["state"]) == (0, "proposed")


def test_a_culprit_that_brought_in_very_many_names_is_examined_like_others(revert, trunk):
    sha = trunk.commit(
        "vendored", big="".join(f"def a_function_with_a_long_name_{i:060}(): pass\n" for i in range(40_000))
    )
    trunk.commit("use it", user=f"a_function_with_a_long_name_{7:060}()\n")
    code, (found,) = revert("--repo", trunk.bare, stdin=document(sha))
    assert (code, found["reason"]) == (12, "dependents")


def test_a_conflict_in_very_many_files_names_the_later_commit(revert, trunk):
    folder = "/".join(["long" * 60] * 14)
    (trunk.work / folder).mkdir(parents=True)
    names = [f"{folder}/{i:05}" for i in range(1_000)]  # 3.4 MB: more than the system takes as arguments
    sha = trunk.commit("all of them", **dict.fromkeys(names, "x\n"))
    trunk.commit("all again", **dict.fromkeys(names, "y\n"))
    code, (found,) = revert("--repo", trunk.bare, stdin=document(sha))
    assert (code, found["reason"], "all again" in found["detail"]) == (12, "conflict", True)


def test_a_name_that_was_there_before_makes_no_dependent(revert, trunk):
    trunk.commit("an old name", old="def shiny_helper(): pass\n")
    sha = trunk.commit("move a helper", helper="def shiny_helper():\n    pass\n")
    trunk.commit("use it", user="shiny_helper()\n")
    assert revert("--repo", trunk.bare, stdin=document(sha))[1][0]["state"] == "proposed"


def test_what_the_user_has_set_for_git_changes_nothing(revert, trunk, project, monkeypatch):
    trunk.commit("an old name", old="def shiny_helper(): pass\n")
    sha = trunk.commit("bréak it", helper="def shiny_helper():\n    pass\n")
    trunk.commit("use it", user="shiny_helper()\n")
    settings = (
        "clone.defaultRemoteName=up", "grep.lineNumber=true", "color.ui=always", "log.showSignature=true",
        "i18n.logOutputEncoding=ISO-8859-1", "i18n.commitEncoding=ISO-8859-1", "core.abbrev=4", "diff.noprefix=true",
    )  # fmt: skip
    for name, value in (one.split("=") for one in settings):
        git(project, "config", "--file", ".gitconfig", name, value)
    monkeypatch.setenv("HOME", str(project))
    code, (found,) = revert("--execute", "--repo", trunk.bare, stdin=document(sha))
    assert (code, found["state"], found["title"]) == (0, "reverted", 'Revert "bréak it"'), found
    assert '\n\nRevert "bréak it"\n' in git(trunk.bare, "cat-file", "-p", f"sooner/revert-{sha}")


def test_a_later_commit_that_speaks_of_the_culprit_is_a_dependent(revert, trunk):
    sha = trunk.commit("break it", bad="x\n")
    trunk.commit(f"follow up on {sha[:12]}", more="y\n")
    assert revert("--repo", trunk.bare, stdin=document(sha))[1][0]["reason"] == "dependents"


def test_a_commit_of_another_branch_or_of_nowhere_is_refused(revert, trunk):
    git(trunk.work, "checkout", "-q", "-b", "side")
    git(trunk.work, "commit", "-q", "--allow-empty", "-m", "side")
    git(trunk.work, "push", "-q", str(trunk.bare), "side")
    side = git(trunk.work, "rev-parse", "HEAD")
    reasons = {revert("--repo", trunk.bare, stdin=document(sha))[1][0]["reason"] for sha in (side, "f" * 40)}
    assert reasons == {"not_on_trunk", "unknown_commit"}


def test_a_merge_is_reverted_against_its_first_parent(revert, trunk):
    git(trunk.work, "checkout", "-q", "-b", "side")
    (trunk.work / "bad").write_text("x\n")
    git(trunk.work, "add", "-A")
    git(trunk.work, "commit", "-q", "-m", "side")
    git(trunk.work, "checkout", "-q", "main")
    git(trunk.work, "merge", "-q", "--no-ff", "-m", "merge it", "side")
    git(trunk.work, "push", "-q", str(trunk.bare), "main")
    sha = git(trunk.work, "rev-parse", "HEAD")
    assert revert("--repo", trunk.bare, stdin=document(sha))[1][0]["commands"][2] == f"git revert --mainline 1 {sha}"
    assert revert("--execute", "--repo", trunk.bare, stdin=document(sha))[1][0]["state"] == "reverted"


@pytest.mark.parametrize(
    "message", ["Merge branch 'main' of host:o/r", "Merge remote-tracking branch 'origin/main' into x"]
)
def test_a_merge_of_trunk_into_something_is_left_to_people(revert, trunk, message):
    git(trunk.work, "checkout", "-q", "-b", "local")
    git(trunk.work, "commit", "-q", "--allow-empty", "-m", "local")
    git(trunk.work, "checkout", "-q", "main")
    trunk.commit("of others", good="x\n")
    git(trunk.work, "checkout", "-q", "local")
    git(trunk.work, "merge", "-q", "--no-ff", "-m", message, "main")  # its first parent is no commit of trunk
    trunk.commit("after it")
    sha = git(trunk.work, "rev-parse", "HEAD^")
    code, (found,) = revert("--execute", "--repo", trunk.bare, stdin=document(sha))
    assert (code, found["reason"], trunk.branches) == (12, "merges_trunk", [])


def test_a_branch_of_that_name_that_holds_something_else_is_not_touched(revert, trunk):
    sha = trunk.commit("break it", bad="x\n")
    git(trunk.bare, "branch", f"sooner/revert-{sha}", "main")
    code, (found,) = revert("--execute", "--repo", trunk.bare, stdin=document(sha))
    assert (code, found["reason"]) == (12, "branch_taken")
    assert git(trunk.bare, "rev-parse", f"sooner/revert-{sha}") == sha


def test_a_push_that_a_hook_of_the_remote_declines_has_failed_whatever_the_hook_says(revert, trunk):
    sha = trunk.commit("break it", bad="x\n")
    hook = trunk.bare / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'a rule of that name already exists: stale info' >&2\nexit 1\n")
    hook.chmod(0o755)
    code, (found,) = revert("--execute", "--repo", trunk.bare, stdin=document(sha))
    assert (code, found["state"], "a rule of that name already exists" in found["detail"]) == (11, "failed", True)
    assert [(line["action"], line["state"]) for line in journal()] == [("push", "begin"), ("push", "failed")]
    hook.unlink()
    assert revert("--execute", "--repo", trunk.bare, stdin=document(sha))[0] == 0


def test_text_from_outside_is_text(revert, trunk, tmp_path):
    marker = tmp_path / "pwned"
    subject = f"$(touch {marker}) `touch {marker}` <img src=x> ]( --exec [skip ci] @everybody"
    sha = trunk.commit(subject, bad="x\n")
    evil = ["--force\n\nThis reverts commit 1234567", f"```\n<script>; touch {marker}", "#hash\x1b[2J"]
    code, (found,) = revert(
        "--execute", "--repo", trunk.bare, stdin=document(sha, signals=evil, reason="\n\nSigned: me")
    )
    assert (code, found["state"]) == (0, "reverted")
    said = trunk.message(f"sooner/revert-{sha}")
    assert said.split("\n")[0] == f'Revert "{subject.replace("[skip ci]", "(skip ci)")}"'
    assert "\nThis reverts commit 1234567" not in said
    assert "Signal: #hash" in said
    assert "\x1b" not in said
    assert not marker.exists()


def test_a_trunk_that_the_repository_does_not_have_is_one_clear_error(revert, trunk):
    sha = trunk.commit("break it", bad="x\n")
    for options in ((), ("--execute",)):
        code, said = revert(*options, "--repo", trunk.bare, "--branch", "trunk", stdin=document(sha))
        assert (code, "has no branch 'trunk': name its trunk with --branch" in said) == (4, True)


def test_a_shallow_clone_in_which_the_culprit_seems_to_have_made_every_file_is_refused(revert, trunk, tmp_path):
    sha = trunk.commit("break it", bad="x\n")
    git(tmp_path, "clone", "-q", "--depth", "1", trunk.bare.as_uri(), "shallow")
    for options in ((), ("--execute",)):
        code, said = revert(*options, "--repo", tmp_path / "shallow", stdin=document(sha))
        assert (code, "is a shallow clone: `git fetch --unshallow` there" in said) == (4, True)
    assert git(tmp_path / "shallow", "for-each-ref", "refs/heads/sooner") == ""


def test_a_branch_or_repository_that_looks_like_an_option_is_refused(revert, trunk, tmp_path):
    for url in (f"--upload-pack=touch {tmp_path}/x", f"ext::sh -c 'touch {tmp_path}/x'"):
        code, said = revert("--execute", "--repo", url, stdin=document("a" * 40))
        assert (code, "is no repository" in said) == (4, True)
    assert not (tmp_path / "x").exists()


def test_what_is_no_repository_is_one_clear_error(revert, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    git(tmp_path, "init", "-q", "--bare", "empty.git")
    for name, said in (("folder", "is no repository"), ("file", "is no repository"), ("empty.git", "has no branch")):
        code, text = revert("--repo", tmp_path / name, stdin=document("a" * 40))
        assert (code, said in text) == (4, True), text


def test_a_host_without_a_user_is_a_remote_unless_there_is_a_folder_of_that_name(revert, trunk, project, monkeypatch):
    sha = trunk.commit("break it", bad="x\n")
    monkeypatch.setenv("GIT_SSH_COMMAND", "false")
    code, said = revert("--repo", "host:o/r.git", stdin=document(sha))
    assert (code, "host:o/r.git cannot be cloned" in said) == (11, True)
    (project / "host:o").mkdir()
    trunk.bare.rename(project / "host:o/r.git")
    assert revert("--repo", "host:o/r.git", stdin=document(sha))[0] == 0


@pytest.mark.parametrize(
    ("token", "code"), [("s3cret\n", 0), (" s3cret ", 0), ("s3cret\nx", 4), ("s3 cret", 4), ("s3cret\u2603", 4)]
)
def test_a_token_ends_with_its_last_letter_and_one_that_is_none_is_not_shown(revert, site, monkeypatch, token, code):
    monkeypatch.setenv("GITHUB_TOKEN", token)
    got, said = revert(*site.options, stdin=document(site.sha))
    assert (got, len(site.github.pulls)) == (code, int(code == 0))
    assert code == 0 or ("GITHUB_TOKEN is no token" in said and "s3" not in said)


@pytest.mark.parametrize(("token", "is_named"), [("", True), ("s3cret", False)])
def test_a_token_that_is_not_there_is_named_before_anything_fails_for_it(site, monkeypatch, here, token, is_named):
    monkeypatch.setenv("GITHUB_TOKEN", token)
    done = here("trunk", "revert", *site.options, stdin=document(site.sha))
    assert (done.returncode, "GITHUB_TOKEN is not set" in done.stderr) == (0, is_named)


def test_no_password_of_an_address_is_printed_or_kept(revert, trunk, capsys):
    from sooner.cli.reverting_git import without_credentials

    url = "http://someone:s3cret@127.0.0.1:9/o/r.git"
    code, (found,) = revert("--execute", "--repo", url, stdin=document("a" * 40))
    assert (code, found["detail"].startswith("http://127.0.0.1:9/o/r.git cannot be cloned")) == (11, True)
    code, said = revert("--repo", url, stdin=document("a" * 40))
    assert (code, "s3cret" in said, "127.0.0.1:9/o/r.git" in said) == (11, False, True)
    assert without_credentials("git@host:o/r.git ssh://git@host/o/r") == "git@host:o/r.git ssh://host/o/r"


# The kill switch


@pytest.mark.parametrize(
    ("text", "goes"),
    [
        ("on\n", True),
        ('{"enabled": true}', True),
        ("off", False),
        ('{"enabled": false}', False),
        ("", False),
        (None, False),
    ],
)
def test_the_kill_switch_lets_nothing_through_unless_it_says_on(revert, trunk, project, text, goes):
    sha = trunk.commit("break it", bad="x\n")
    if text is not None:
        (project / "switch").write_text(text)
    code, (found,) = revert("--execute", "--repo", trunk.bare, "--kill-switch", "switch", stdin=document(sha))
    assert (code, bool(trunk.branches)) == ((0, True) if goes else (12, False))
    assert goes or found["reason"] == "kill_switch"


def test_a_kill_switch_that_cannot_be_reached_stops_everything(revert, trunk):
    sha = trunk.commit("break it", bad="x\n")
    switches = ("http://127.0.0.1:9/x", "github:o/r#5", "github:o/r")
    for switch in switches:
        options = ("--execute", "--repo", trunk.bare, "--kill-switch", switch, "--api", "http://127.0.0.1:9")
        code, (found,) = revert(*options, "--pause", "0", stdin=document(sha))
        assert (code, found["reason"]) == (12, "kill_switch")
    assert trunk.branches == []


@contextlib.contextmanager
def dripping(begin):
    """The address of a server that never ends to answer."""
    over = threading.Event()

    def drip(peer):
        with peer, contextlib.suppress(OSError):
            peer.recv(4096)
            peer.sendall(begin)
            while not over.wait(0.01):
                peer.sendall(b".")

    def serve():
        with contextlib.suppress(OSError):
            while not over.is_set():
                threading.Thread(target=drip, args=(server.accept()[0],)).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        over.set()
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


DRIPS = (b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\no")


@pytest.mark.parametrize("begin", DRIPS)
@pytest.mark.parametrize("is_issue", [False, True])
def test_a_kill_switch_that_drips_on_stops_everything(revert, trunk, monkeypatch, begin, is_issue):
    monkeypatch.setattr(reverting_switch, "_WHOLE_S", 0.2)
    sha = trunk.commit("break it", bad="x\n")
    with dripping(begin) as url:
        switch = ("--kill-switch", "github:o/r#5", "--api", url) if is_issue else ("--kill-switch", f"{url}/")
        code, (found,) = revert("--execute", "--repo", trunk.bare, *switch, stdin=document(sha))
    assert (code, found["reason"], trunk.branches) == (12, "kill_switch", [])
    assert "no whole answer within 0.2 s" in found["detail"]


@pytest.mark.parametrize("begin", DRIPS)
def test_a_github_that_drips_on_cannot_be_reached(revert, trunk, monkeypatch, begin):
    monkeypatch.setattr(reverting_api, "_WHOLE_S", 0.05)
    sha = trunk.commit("break it", bad="x\n")
    with dripping(begin) as url:
        options = ("--execute", "--repo", trunk.bare, "--github", "o/r", "--api", url, "--pause", "0.001")
        code, (found,) = revert(*options, stdin=document(sha))
    assert (code, found["state"], trunk.branches) == (11, "failed", [])
    assert "GitHub cannot be reached (no whole answer within 0.05 s)" in found["detail"]


# The journal


def test_two_instances_exclude_each_other(revert, trunk, project):
    sha = trunk.commit("break it", bad="x\n")
    (project / ".sooner").mkdir()
    with (project / ".sooner/reverts.jsonl").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        code, said = revert("--execute", "--repo", trunk.bare, stdin=document(sha))
    assert code == 11
    assert "another process reverts with the journal" in said
    assert trunk.branches == []


def test_a_line_that_a_crash_has_cut_is_taken_away(revert, trunk, project):
    sha = trunk.commit("break it", bad="x\n")
    (project / ".sooner").mkdir()
    (project / ".sooner/reverts.jsonl").write_text('{"v":1,"at":1.0,"culprit":"ab')
    assert revert("--execute", "--repo", trunk.bare, stdin=document(sha))[0] == 0
    assert len(journal()) == 3


def test_a_last_line_that_lacks_only_its_end_counts(revert, trunk, project):
    sha = trunk.commit("break it", bad="x\n")
    assert revert("--execute", "--repo", trunk.bare, stdin=document(sha))[0] == 0
    git(trunk.bare, "branch", "-D", f"sooner/revert-{sha}")
    path = project / ".sooner/reverts.jsonl"
    before = path.read_text()
    path.write_text(before.rstrip("\n"))  # as an editor may leave it
    code, (found,) = revert("--execute", "--repo", trunk.bare, stdin=document(sha))
    assert (code, found["state"], trunk.branches, path.read_text()) == (0, "already", [], before)


def test_a_journal_that_has_no_place_is_named_with_what_helps(revert, trunk, project):
    sha = trunk.commit("break it", bad="x\n")
    (project / ".sooner").write_text("no folder")
    code, said = revert("--execute", "--repo", trunk.bare, stdin=document(sha))
    assert (code, trunk.branches) == (4, [])
    assert "the journal .sooner/reverts.jsonl cannot be written: File exists: name another with --journal" in said


def test_a_full_disk_fails_what_it_stops_tells_of_the_rest_and_leaves_no_half_line(revert, trunk, project):
    one, two = (trunk.commit(f"break {name}", **{name: "x\n"}) for name in ("one", "two"))
    path = project / "journal"
    line = json.dumps({"v": 1, "at": 1.0, "culprit": "b" * 40, "action": "push", "state": "begin"})
    path.write_text(f"{line}\n" * 5_000)  # larger than any file that git writes here
    options = ("--execute", "--repo", trunk.bare, "--journal", path)
    assert revert(*options, stdin=document(one))[0] == 0
    full = path.read_text()
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(full) + 20, hard))
    try:
        code, found = revert(*options, stdin=document(one, two))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert (code, [each["state"] for each in found]) == (11, ["already", "failed"])
    assert "cannot be written: File too large" in found[1]["detail"]
    assert (trunk.branches, path.read_text()) == ([f"sooner/revert-{one}"], full)
    assert revert(*options, stdin=document(two))[0] == 0


def test_a_damaged_line_stops_everything(revert, trunk, project):
    sha = trunk.commit("break it", bad="x\n")
    (project / ".sooner").mkdir()
    (project / ".sooner/reverts.jsonl").write_text("{]\n")
    code, said = revert("--execute", "--repo", trunk.bare, stdin=document(sha))
    assert code == 4
    assert "reverts.jsonl:1 is damaged" in said


def test_lines_say_their_version_and_of_another_one_nothing_is_guessed(revert, trunk, project):
    sha = trunk.commit("break it", bad="x\n")
    assert revert("--execute", "--repo", trunk.bare, stdin=document(sha))[0] == 0
    path = project / ".sooner/reverts.jsonl"
    assert [line[:7] for line in path.read_text().splitlines()] == ['{"v":1,'] * 3
    path.write_text(path.read_text().replace('"v":1', '"v":2'))
    code, said = revert("--execute", "--repo", trunk.bare, stdin=document(sha))
    assert (code, "reverts.jsonl:1 is damaged" in said) == (4, True)


# Pull requests, with every fault at every call


class Site:
    """A trunk with a culprit, a fake GitHub, and the options to revert there."""

    def __init__(self, template, folder, *, is_strict=False):
        made, self.sha = template
        self.bare = folder / "trunk.git"
        shutil.copytree(made.bare, self.bare)
        self.github = FakeGitHub(self.bare, is_strict=is_strict)
        self.options = [
            "--execute", "--repo", self.bare, "--github", "o/r", "--api", self.github.url, "--pause", "0.001",
            "--kill-switch", "github:o/r#5", "--journal", folder / "reverts.jsonl",
        ]  # fmt: skip

    @property
    def reverts(self):
        """Branches and pull requests: one of each is one revert."""
        return len(git(self.bare, "for-each-ref", "refs/heads/sooner").splitlines()), len(self.github.pulls)


@pytest.fixture
def site(template, tmp_path):
    made = Site(template, tmp_path)
    yield made
    made.github.close()


def sites(template, folder, count, **more):
    for number in range(1, count + 1):
        there = folder / f"site{number}"
        there.mkdir()
        made = Site(template, there, **more)
        yield number, made
        made.github.close()


def test_a_pull_request_is_opened_with_the_evidence_as_text(revert, site):
    evil = document(site.sha, signals=["```\n</details><script>", "fine"])
    code, (found,) = revert(*site.options, stdin=evil)
    assert (code, found["state"], found["url"]) == (0, "reverted", "https://github.invalid/o/r/pull/10")
    assert site.reverts == (1, 1)
    assert len(site.github.requests) == CALLS
    (pull,) = site.github.pulls
    assert (pull["base"], pull["title"]) == ("main", 'Revert "break it"')
    assert pull["body"].startswith("````text\n")
    assert pull["body"].endswith("\n````\n")


def test_what_is_done_or_no_commit_of_trunk_asks_nobody_but_the_kill_switch(revert, site):
    assert revert(*site.options, stdin=document(site.sha))[0] == 0
    for sha, state in ((site.sha, "already"), ("f" * 40, "refused")):
        site.github.requests.clear()
        code, (found,) = revert(*site.options, stdin=document(sha))
        assert (code in (0, 12), found["state"], len(site.github.requests)) == (True, state, 1)


def test_the_label_of_an_author_opts_out(revert, site):
    site.github.labels = ["no-auto-revert"]
    code, (found,) = revert(*site.options, stdin=document(site.sha))
    assert (code, found["reason"], site.reverts) == (12, "opted_out", (0, 0))


@pytest.mark.parametrize(
    ("message", "status", "reason"),
    [
        ("break it (#31)", 200, "opted_out"),
        ("break it\n\nPull Request resolved: https://github.com/O/r/pull/31\nApproved by: x", 200, "opted_out"),
        ("break it (#31)", 404, ""),
        ("break it (#31)\n\nPull Request resolved: https://github.com/up/stream/pull/31", 200, ""),
        ("break #31", 200, ""),
        ("break it (#31)", 401, "ApiError"),
    ],
)
def test_the_label_counts_of_a_pull_request_that_a_bot_landed(revert, trunk, message, status, reason):
    sha = trunk.commit(message, bad="x\n")
    github = FakeGitHub(trunk.bare)
    answer = github._answer

    def of_a_bot(method, path, body):
        if "/commits/" in path:
            return 200, []
        labels = [{"name": "no-auto-revert"}]
        return (status, {"number": 31, "labels": labels}) if path.endswith("/issues/31") else answer(method, path, body)

    github._answer = of_a_bot
    options = ("--execute", "--repo", trunk.bare, "--github", "o/r", "--api", github.url, "--pause", "0.001")
    _, (found,) = revert(*options, stdin=document(sha))
    github.close()
    assert (found["reason"], len(github.pulls)) == (reason, 0 if reason else 1)


def test_a_label_on_the_second_page_opts_out_and_no_other_server_is_asked(revert, site):
    def send(request, status, data, headers=None):
        if "/commits/" in request.path:
            labels = [{"name": "no-auto-revert"}] if "page=2" in request.path else []
            link = '<http://127.0.0.1:9/x?page=1>; rel="prev", <http://127.0.0.1:9/repositories/3/x?page=2>; rel="next"'
            data, headers = json.dumps([{"number": 1, "labels": labels}]).encode(), {} if labels else {"link": link}
        FakeGitHub._send(site.github, request, status, data, headers)

    site.github._send = send
    code, (found,) = revert(*site.options, stdin=document(site.sha))
    assert (code, found["reason"], site.reverts) == (12, "opted_out", (0, 0))


def test_a_list_without_end_is_an_error(revert, site, monkeypatch):
    monkeypatch.setattr(reverting_api, "_MOST_PAGES", 3)
    link = {"link": '<https://x/y?head=o:x&page=9>; rel="next"'}
    site.github._send = lambda *said: FakeGitHub._send(site.github, *said[:3], link)
    code, (found,) = revert(*site.options, stdin=document(site.sha))
    assert (code, found["state"], site.reverts) == (11, "failed", (0, 0))
    assert "a list of over 3 pages" in found["detail"]


@pytest.mark.parametrize("merged_at", [None, "2026-11-21T10:00:00Z"])
def test_a_pull_request_whose_answer_is_lost_and_that_is_closed_meanwhile_is_not_opened_again(revert, site, merged_at):
    def open_and_close(fields):
        status, pull = FakeGitHub._open(site.github, fields)
        pull |= {"state": "closed", "merged_at": merged_at}
        return status, pull

    site.github._open = open_and_close
    site.github.faults = {CALLS: "drop_after"}
    code, (found,) = revert(*site.options, stdin=document(site.sha))
    assert (code, found["state"], site.reverts) == (0, "reverted", (1, 1))


@pytest.mark.parametrize("url", ["\ud800", None, 5, "https://x/\x1b[31m\n" + "y" * 10_000])
def test_the_address_of_a_pull_request_is_text_whatever_it_is(revert, site, url):
    def open_there(fields):
        status, pull = FakeGitHub._open(site.github, fields)
        pull["html_url"] = url
        return status, pull

    site.github._open = open_there
    for state in ("reverted", "already"):
        code, (found,) = revert(*site.options, stdin=document(site.sha))
        assert (code, found["state"], site.reverts) == (0, state, (1, 1))
    assert len(found["url"]) <= 300
    assert found["url"].isprintable()


def test_a_revert_that_a_person_closed_stays_closed(revert, site):
    revert(*site.options, stdin=document(site.sha))
    site.github.pulls[0]["state"] = "closed"
    code, (found,) = revert(*site.options, "--journal", "other.jsonl", stdin=document(site.sha))
    assert (code, found["reason"], site.reverts) == (12, "closed_by_somebody", (1, 1))


@pytest.mark.parametrize(
    "issue", [{"state": "closed"}, {"state": "open", "labels": []}, {}, {"state": "open", "labels": 5}, {"state": [5]}]
)
def test_an_issue_is_a_kill_switch(revert, site, issue):
    site.github.issue = issue
    code, (found,) = revert(*site.options, "--kill-switch", "github:o/r#5:go", stdin=document(site.sha))
    assert (code, found["reason"], site.reverts) == (12, "kill_switch", (0, 0))


def test_a_kill_switch_that_is_thrown_after_the_push_stops_the_request_and_the_next_call_goes_on(revert, site):
    site.github.faults = dict.fromkeys(range(5, 11), 500)  # nobody can ask the switch before the request is opened
    code, (found,) = revert(*site.options, stdin=document(site.sha))
    assert (code, found["reason"], site.reverts) == (12, "kill_switch", (1, 0))
    code, (found,) = revert(*site.options, "--a-day", "0", "--oldest", "0s", stdin=document(site.sha))
    assert (code, found["state"], site.reverts) == (0, "reverted", (1, 1))


@pytest.mark.parametrize("fault", PASSING)
def test_a_passing_fault_at_any_call_makes_exactly_one_revert(revert, template, tmp_path, fault):
    for number, site in sites(template, tmp_path, CALLS):
        site.github.faults[number] = fault
        code, (found,) = revert(*site.options, stdin=document(site.sha))
        assert (number, code, found["state"], site.reverts) == (number, 0, "reverted", (1, 1))


@pytest.mark.parametrize("fault", [503, "drop_after"])
def test_a_lasting_fault_from_any_call_on_ends_in_an_error_and_the_next_call_makes_the_one_revert(
    revert, template, tmp_path, fault
):
    for number, site in sites(template, tmp_path, CALLS):
        site.github.faults = dict.fromkeys(range(number, number + 60), fault)
        code, found = revert(*site.options, stdin=document(site.sha))
        assert code in (11, 12), (number, found)
        assert max(site.reverts) <= 1
        site.github.faults = {}
        code, (found,) = revert(*site.options, stdin=document(site.sha))
        assert (number, code, site.reverts) == (number, 0, (1, 1))


@pytest.mark.parametrize("seed", range(5))
def test_faults_at_random_over_many_calls_make_exactly_one_revert(revert, site, seed):
    chance = random.Random(seed)
    kinds = [*PASSING, 503, 429, 403, None, None, None, None, None]
    site.github.faults = {number: fault for number in range(1, 400) if (fault := chance.choice(kinds))}
    for _ in range(30):
        code, _ = revert(*site.options, stdin=document(site.sha))
        assert max(site.reverts) <= 1
        if code == 0:
            break
    assert site.reverts == (1, 1)
    assert revert(*site.options, stdin=document(site.sha))[0] in (0, 11, 12)
    assert site.reverts == (1, 1)


def test_a_rate_limit_that_lasts_longer_than_the_patience_is_an_error_at_once(revert, site):
    site.github._send = lambda request, *_: FakeGitHub._send(
        site.github, request, 403, b'{"message": "API rate limit exceeded"}', {"retry-after": "3600"}
    )
    code, (found,) = revert(*site.options[:-4], "--journal", "j", stdin=document(site.sha))
    assert (code, found["state"]) == (11, "failed")
    assert "no more patience to wait 3600 s" in found["detail"]


ODD_ANSWERS = {
    "nested too deeply": (200, b"[" * 100_000, {}),
    "a number that is none": (200, b'[{"number": 1e999}]', {}),
    "a wait that is none": (429, b"{}", {"retry-after": "\xb2"}),
    "an empty list's element": (200, b"[null]", {}),
}


@pytest.mark.parametrize("odd", ODD_ANSWERS)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_answer_that_cannot_be_understood_is_no_answer_and_opens_nothing_twice(revert, site, odd, method):
    status, data, headers = ODD_ANSWERS[odd]
    site.github._send = lambda request, *rest: FakeGitHub._send(
        site.github, request, *((status, data, headers) if request.command == method else rest)
    )
    code, (found,) = revert(*site.options[:-4], "--journal", "j", stdin=document(site.sha))
    assert (code, found["state"]) == ((11, "failed") if method == "GET" else (0, "reverted"))
    assert len(site.github.pulls) == (method == "POST")


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b'{"message": "Bad credentials"}', "Bad credentials (GITHUB_TOKEN"),
        (404, b'{"message": "Not Found"}', "Not Found (no such repository, or GITHUB_TOKEN"),
        (301, b'{"message": "Moved Permanently"}', "Moved Permanently (the repository has another name now"),
        (422, b'{"message": "Invalid", "errors": [{"message": "No commits"}, "x", {"code": "missing"}]}',
         "Invalid: No commits; x; missing"),
    ],
)  # fmt: skip
def test_a_refusal_of_github_is_told_with_what_to_do(revert, site, status, body, said):
    site.github._send = lambda request, *_: FakeGitHub._send(site.github, request, status, body)
    code, (found,) = revert(*site.options[:-4], "--journal", "j", stdin=document(site.sha))
    assert (code, found["state"]) == (11, "failed")
    assert said in found["detail"]


def start(site):
    """The real process, whose id the fake and the hooks know; its clone stays if it is killed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sooner", "trunk", "revert", *map(str, site.options)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "TMPDIR": str(site.bare.parent)},
    )  # fmt: skip
    site.github.client = lambda: process.pid
    (site.bare / "client").write_text(f"{process.pid}\n")
    process.communicate(document(site.sha), timeout=60)
    return process.returncode


@pytest.mark.parametrize("fault", ["kill", "kill_after"])
def test_a_process_that_is_killed_at_any_call_leaves_exactly_one_revert_to_the_next(revert, template, tmp_path, fault):
    for number, site in sites(template, tmp_path, CALLS):
        site.github.faults[number] = fault
        assert start(site) == -9
        assert max(site.reverts) <= 1
        code, (found,) = revert(*site.options, stdin=document(site.sha))
        assert (number, code, site.reverts) == (number, 0, (1, 1)), found


@pytest.mark.parametrize(("hook", "status"), [("pre-receive", 0), ("pre-receive", 1), ("post-receive", 0)])
def test_a_process_that_is_killed_while_it_pushes_leaves_exactly_one_revert_to_the_next(revert, site, hook, status):
    script = site.bare / "hooks" / hook
    script.parent.mkdir(exist_ok=True)
    script.write_text(f"#!/bin/sh\ncat > /dev/null\nkill -9 $(cat {site.bare}/client)\nexit {status}\n")
    script.chmod(0o755)
    assert start(site) == -9
    lines = [json.loads(line) for line in site.options[-1].read_text().splitlines()]
    assert [(line["action"], line["state"]) for line in lines] == [("push", "begin")]
    script.unlink()
    code, (found,) = revert(*site.options, stdin=document(site.sha))
    assert (code, found["state"], site.reverts) == (0, "reverted", (1, 1))


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_without_leaving_a_clone(site, tmp_path, signum):
    hook = site.bare / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    os.mkfifo(tmp_path / "pushes")
    hook.write_text(f"#!/bin/sh\necho > {tmp_path}/pushes\ncat > /dev/null; exec sleep 60\n")
    hook.chmod(0o755)
    (tmp_path / "tmp").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "sooner", "trunk", "revert", *map(str, site.options)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
    )  # fmt: skip
    process.stdin.write(document(site.sha))
    process.stdin.close()
    (tmp_path / "pushes").read_text()
    process.send_signal(signum)
    assert process.wait(60) == 128 + signum
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_push_whose_answer_is_lost_counts_if_the_remote_has_it(revert, site):
    hook = site.bare / "hooks" / "post-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nkill -9 $PPID\n")  # the receiving end dies when the branch is there
    hook.chmod(0o755)
    code, (found,) = revert(*site.options, stdin=document(site.sha))
    assert (code, found["state"], site.reverts) == (0, "reverted", (1, 1))


def test_two_machines_at_once_open_one_pull_request(template, tmp_path):
    (tmp_path / "here").mkdir()
    site = Site(template, tmp_path / "here", is_strict=True)
    try:
        begun = [[*site.options, "--journal", tmp_path / name] for name in ("one", "two")]
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "sooner", "trunk", "revert", *map(str, options)],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
            )
            for options in begun
        ]  # fmt: skip
        for process in processes:
            process.stdin.write(document(site.sha))
            process.stdin.close()
        assert [process.wait(60) for process in processes] == [0, 0]
        assert site.reverts == (1, 1)
    finally:
        site.github.close()
