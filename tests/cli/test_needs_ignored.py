"""Files that pytest would not collect, without the command line."""

import pytest

from sooner.cli.needs_ignored import Ignored, words_of


def left_out(root, options, names, start=None):
    ignored = Ignored(root, options)
    return [name for name in names if ignored.leaves_out(root / name, root / (start or ""))]


def test_hidden_folders_are_not_entered_unless_the_project_says_which_are(tmp_path):
    names = [".ci/test_a.py", "x/.y/test_b.py", "x/test_c.py", "data/test_d.py"]
    assert left_out(tmp_path, {}, names) == names[:2]
    assert left_out(tmp_path, {"norecursedirs": "data"}, names) == names[3:]
    assert left_out(tmp_path, {"norecursedirs": ["x/*", "nowhere"]}, names) == names[1:2]
    assert left_out(tmp_path, {"norecursedirs": str(tmp_path / "x")}, names) == names[1:3]
    assert left_out(tmp_path, {}, names[:1], start=".ci") == []


def test_a_folder_is_not_a_file_of_its_name(tmp_path):
    assert left_out(tmp_path, {"norecursedirs": "test_a.py"}, ["test_a.py", "test_a.py/test_b.py"]) == [
        "test_a.py/test_b.py"
    ]


def test_what_options_ignore_is_left_out_with_all_that_lies_in_it(tmp_path):
    names = ["a/test_a.py", "b/c/test_b.py", "b/test_x_gen.py", "test_d.py"]
    options = {"addopts": "-q --ignore=a --ignore b/c --ignore-glob=*_gen.py --ignore"}
    assert left_out(tmp_path, options, names) == names[:3]
    assert left_out(tmp_path, {"addopts": ["--ignore", "test_d.py", "--ignored=a"]}, names) == names[3:]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("collect_ignore = ['test_a.py', 'c']", ["b/test_a.py", "b/c/test_c.py"]),
        ("collect_ignore: list[str] = ['test_a.py']", ["b/test_a.py"]),
        ("collect_ignore = []\ncollect_ignore.append('test_a.py')", ["b/test_a.py"]),
        ("collect_ignore = ['c']\ncollect_ignore.extend(['test_a.py'])", ["b/test_a.py", "b/c/test_c.py"]),
        ("collect_ignore = ['c']\ncollect_ignore = ['test_a.py']", ["b/test_a.py"]),
        ("collect_ignore = ['c']\ncollect_ignore += ['test_a.py']", ["b/test_a.py", "b/c/test_c.py"]),
        ("collect_ignore_glob = ('*_a.py',)", ["b/test_a.py"]),
        ("collect_ignore = ['nowhere', 3, name]\nother = ['c']\nother.append('c')\ncollect_ignore.remove('c')", []),
        ("import sys\nif sys.argv:\n    collect_ignore = ['c']", []),
        ("collect_ignore = [", []),
    ],
)
def test_what_a_conftest_always_ignores_is_left_out_below_it(tmp_path, text, expected):
    (tmp_path / "b").mkdir()
    (tmp_path / "b/conftest.py").write_text(text)
    assert left_out(tmp_path, {}, ["test_a.py", "b/test_a.py", "b/c/test_c.py"]) == expected


def test_a_conftest_above_the_root_says_nothing(tmp_path):
    (tmp_path / "conftest.py").write_text("collect_ignore_glob = ['*']")
    assert left_out(tmp_path / "root", {}, ["test_a.py"]) == []


def test_settings_are_lists_or_words_as_a_shell_takes_them_apart():
    assert words_of("a 'b c'\n d") == ["a", "b c", "d"]
    assert words_of("it's broken") == ["it's", "broken"]
    assert words_of(["a b", 3]) == ["a b", "3"]
    assert words_of(None) == words_of(3) == []
