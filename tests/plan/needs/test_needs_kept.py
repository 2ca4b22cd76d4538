"""Needs for pytest's door: asked once, kept, asked again where anything that they follow from has changed."""

import os

import pytest

from sooner.door.needs import Need, Needs, of_tests
from sooner.door.needs_asking import evaluated
from sooner.door.needs_kept import Kept
from sooner.door.needs_shared import Found, kept_answers
from sooner.model.errors import SettingsError
from sooner.plan.needs import PytestSettings

HELPER = "import pytest, torch\ndef need(n):\n    return pytest.mark.skipif(torch.cuda.device_count() < n, reason='')\n"
TEST = "from helper import need\n@need(2)\ndef test_a(): pass\n@need(4)\ndef test_b(): pass\n"


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "helper.py").write_text(HELPER)
    (tmp_path / "tests" / "test_it.py").write_text(TEST)
    (tmp_path / "tests" / "test_host.py").write_text("def test_c(): pass\n")
    return tmp_path


PATHS = ("tests/test_it.py", "tests/test_host.py")


def asked(tree, **options):
    return of_tests(tree, PATHS, cache=tree / ".cache" / "needs.msgpack", **options)


def test_the_second_time_nothing_is_evaluated(tree):
    first, second = asked(tree), asked(tree)
    assert (first.evaluated, second.evaluated) == (2, 0)
    assert first.by_nodeid == second.by_nodeid
    need = second.of("tests/test_it.py::test_a")
    assert (need.min, need.gpu_min, need.full, need.max, need.profile) == (2, 2, 2, None, "ssrrrr")
    assert (need.at(1), need.at(3), need.at(16)) == ("s", "r", "r")


def test_a_change_of_what_a_file_imports_is_seen(tree):
    asked(tree)
    (tree / "tests" / "helper.py").write_text(HELPER.replace("< n", "< n + 1"))
    again = asked(tree)
    assert again.evaluated == 1
    assert again.of("tests/test_it.py::test_a").min == 3


def test_a_change_of_a_table_that_a_file_reads_is_seen(tree):
    read = (
        "import json, os\nwith open(os.path.dirname(__file__) + '/sizes.json') as file:\n    SIZE = json.load(file)\n"
    )
    (tree / "tests" / "test_it.py").write_text(read + TEST.replace("need(4)", "need(SIZE)"))
    (tree / "tests" / "sizes.json").write_text("4")
    assert asked(tree).of("tests/test_it.py::test_b").min == 4
    assert asked(tree).evaluated == 0
    (tree / "tests" / "sizes.json").write_text("3")
    assert asked(tree).of("tests/test_it.py::test_b").min == 3


def test_what_sooner_needs_keeps_is_found_whatever_files_are_called_tests(tree):
    kept = kept_answers(tree, PytestSettings(files=("check_*.py",)), ())
    assert kept.rows(PATHS[0]) is None
    kept.add(evaluated(tree, PATHS, Found.of, settings=PytestSettings(), rules=()))
    kept.save()
    assert asked(tree).evaluated == 0


def test_a_new_file_that_is_imported_instead_is_seen(tree):
    (tree / "tests" / "test_it.py").write_text("import later\n" + TEST)
    asked(tree)
    (tree / "tests" / "later.py").write_text("import pytest\npytest.skip('', allow_module_level=True)\n")
    again = asked(tree)
    assert again.evaluated == 1
    assert again.of("tests/test_it.py::test_a") is None


def test_a_change_of_the_library_beside_a_root_of_tests_is_seen(tree):
    (tree / "setup.py").write_text("")
    (tree / "acme.py").write_text("LEAST = 2\n")
    (tree / "tests" / "test_it.py").write_text(
        "from acme import LEAST\nfrom helper import need\n@need(LEAST)\ndef test_a(): pass\n"
    )

    def found():
        kept = of_tests(tree / "tests", ["test_it.py"], cache=tree / ".cache" / "needs.msgpack")
        return kept.evaluated, kept.of("test_it.py::test_a").min

    assert [found(), found()] == [(1, 2), (0, 2)]
    (tree / "acme.py").write_text("LEAST = 3\n")
    assert found() == (1, 3)
    (tree / "tests" / "acme.py").write_text("LEAST = 4\n")
    assert found() == (1, 4)


def test_a_new_conftest_is_seen_and_an_unrelated_file_is_not(tree):
    asked(tree)
    (tree / "tests" / "other.py").write_text("")
    assert asked(tree).evaluated == 0
    (tree / "tests" / "conftest.py").write_text(
        "import pytest, torch\n@pytest.fixture(autouse=True)\ndef wide():\n"
        "    if torch.cuda.device_count() < 8: pytest.skip('')\n"
    )
    assert asked(tree).of("tests/test_host.py::test_c").min == 8


def test_a_package_around_the_tests_is_seen(tree):
    """Then its modules are not found by their own names alone."""
    (tree / "helper.py").write_text(HELPER.replace("< n", "< n + 1"))
    assert asked(tree).of("tests/test_it.py::test_a").min == 2
    (tree / "tests" / "__init__.py").write_text("")
    assert asked(tree).of("tests/test_it.py::test_a").min == 3


def test_a_question_about_some_files_lets_no_stale_answer_about_others_stay(tree):
    (tree / "tests" / "test_host.py").write_text("import later\ndef test_c(): pass\n")
    asked(tree)
    (tree / "tests" / "later.py").write_text("import pytest\npytest.skip('', allow_module_level=True)\n")
    (tree / "tests" / "test_it.py").write_text("\n" + TEST)
    of_tests(tree, PATHS[:1], cache=tree / ".cache" / "needs.msgpack")
    assert asked(tree).of("tests/test_host.py::test_c") is None


@pytest.mark.parametrize(
    "path", ["tests/helper.py", "tests/test_it.py", "tests/conftest.py", "tests/helper/__init__.py"]
)
def test_what_changes_while_a_file_is_evaluated_is_evaluated_again(tree, path):
    def kept():
        return Kept[list[str]](tree, tree / "needs.msgpack", list[str], key="", rules=())

    def rows(found):
        (tree / path).parent.mkdir(exist_ok=True)
        (tree / path).write_text(HELPER + "NEW = True\n")
        return [each.nodeid for each in found]

    first = kept()
    assert first.rows(PATHS[0]) is None
    first.add(evaluated(tree, PATHS[:1], rows, settings=PytestSettings(), rules=()))
    first.save()
    second = kept()
    assert second.rows(PATHS[0]) is None
    second.add(evaluated(tree, PATHS[:1], rows, settings=PytestSettings(), rules=()))
    second.save()
    assert kept().rows(PATHS[0]) is not None


def test_files_that_were_built_since_are_seen(tree):
    (tree / "build").mkdir()
    (tree / "tests" / "test_it.py").write_text("from build import later\n" + TEST)
    for folder in (tree, tree / "tests", tree / "build"):
        os.utime(folder, (1_000_000_000, 1_000_000_000))
    cache = tree.parent / "elsewhere.msgpack"
    assert [of_tests(tree, PATHS, cache=cache).evaluated for _ in range(2)] == [2, 0]
    (tree / "build" / "later.py").write_text("import pytest\npytest.skip('', allow_module_level=True)\n")
    assert of_tests(tree, PATHS, cache=cache).evaluated == 1


def test_a_checkout_around_the_tests_that_appears_is_seen(tree):
    (tree / "acme.py").write_text("LEAST = 4\n")
    (tree / "tests" / "test_it.py").write_text(
        "from acme import LEAST\nfrom helper import need\n@need(LEAST)\ndef test_a(): pass\n"
    )
    os.utime(tree / "tests", (1_000_000_000, 1_000_000_000))

    def found():
        return of_tests(tree / "tests", ["test_it.py"], cache=tree.parent / "elsewhere.msgpack")

    assert found().of("test_it.py::test_a").min != 4
    (tree / "setup.py").write_text("")
    assert found().of("test_it.py::test_a").min == 4


def test_names_of_files_that_are_no_text_are_no_trouble(tree):
    (tree / "tests" / os.fsdecode(b"caf\xe9.py")).write_text("")
    (tree / "tests" / "test_host.py").write_text(
        "import pytest, subprocess\ndef test_c(): subprocess.run(['bash', 'a\\0.sh'])\n"
        "@pytest.mark.skip(reason='\\ud800')\ndef test_d(): pass\n"
    )
    assert [asked(tree).evaluated for _ in range(2)] == [2, 0]


def test_folders_that_have_not_changed_for_a_while_are_not_walked(tree):
    """Told by a file that is missed because its folder's time says that nothing has happened."""
    long_ago = (1_000_000_000, 1_000_000_000)
    (tree / "tests" / "test_it.py").write_text("import later\n" + TEST)
    cache = tree / ".sooner" / "needs.msgpack"
    cache.parent.mkdir()
    for folder in (tree, tree / "tests"):
        os.utime(folder, long_ago)
    of_tests(tree, PATHS, cache=cache)
    (tree / "tests" / "later.py").write_text("import pytest\npytest.skip('', allow_module_level=True)\n")
    os.utime(tree / "tests", long_ago)
    assert of_tests(tree, PATHS, cache=cache).evaluated == 0
    (tree / "tests" / "another.py").write_text("")
    assert of_tests(tree, PATHS, cache=cache).evaluated == 1


def test_other_options_of_collection_are_another_answer(tree):
    asked(tree)
    assert asked(tree, functions=("check",)).by_nodeid == {}


@pytest.mark.parametrize("content", [b"", b"\x00", b"{}", b"\x81\xa7entries\x81\xa1a\x01"])
def test_a_damaged_cache_counts_as_empty(tree, content):
    (tree / ".cache").mkdir()
    (tree / ".cache" / "needs.msgpack").write_bytes(content)
    assert asked(tree).evaluated == 2
    assert asked(tree).evaluated == 0


def test_a_cache_that_cannot_be_written_is_no_trouble(tree):
    (tree / "file").write_text("")
    assert of_tests(tree, PATHS, cache=tree / "file" / "needs.msgpack").evaluated == 2
    assert of_tests(tree, PATHS).evaluated == 2


@pytest.mark.parametrize("place", ["infer.py", "evaluator/values.py", "rules.toml"])
def test_another_sooner_asks_again(tree, tmp_path, monkeypatch, place):
    evaluator = tmp_path / "sooner_needs" / place
    evaluator.parent.mkdir(parents=True)
    evaluator.write_text("one")
    monkeypatch.setattr("sooner.door.needs_kept._EVALUATOR", tmp_path / "sooner_needs")
    asked(tree)
    assert asked(tree).evaluated == 0
    evaluator.write_text("two")
    assert asked(tree).evaluated == 2


def test_without_time_files_are_left_for_the_next_start(tree):
    found = asked(tree, seconds=-1.0)
    assert found.missing == PATHS
    assert found.by_nodeid == {}
    assert asked(tree).evaluated == 2


def test_files_that_are_gone_are_forgotten(tree):
    asked(tree)
    (tree / "tests" / "test_host.py").rename(tree / "tests" / "test_more.py")
    paths, cache = ["tests/test_more.py", PATHS[0]], tree / ".cache" / "needs.msgpack"
    found = of_tests(tree, paths, cache=cache)
    assert found.evaluated == 1
    assert b"test_host" not in cache.read_bytes()
    again = of_tests(tree, paths, cache=cache)
    assert (again.evaluated, again.by_nodeid) == (0, found.by_nodeid)


def test_what_is_no_python_has_no_tests(tree):
    (tree / "tests" / "test_it.py").write_text("def (")
    found = of_tests(tree, [*PATHS, "tests/nowhere.py"])
    assert list(found.by_nodeid) == ["tests/test_host.py::test_c"]


def test_rules_of_users_count_and_are_checked(tree):
    rules = tree / "own.toml"
    rules.write_text('[[mark]]\nnames = ["wide"]\nskip = "N < 4"\n')
    (tree / "tests" / "test_host.py").write_text("import pytest\n@pytest.mark.wide\ndef test_c(): pass\n")
    assert asked(tree, rules=[rules]).of("tests/test_host.py::test_c").min == 4
    rules.write_text('[[mark]]\nnames = ["wide"]\nskip = "N < 8"\n')
    assert asked(tree, rules=[rules]).of("tests/test_host.py::test_c").min == 8
    rules.write_text("[[mark")
    with pytest.raises(SettingsError):
        asked(tree, rules=[rules])


def test_a_case_that_is_not_known_has_the_need_of_its_function_if_all_cases_agree():
    two, four = (Need(n, n, n, None, False, "high", "ssrrrr") for n in (2, 4))
    needs = Needs({"t.py::a[1]": two, "t.py::a[2]": two, "t.py::b[1]": two, "t.py::b[2]": four, "t.py::c": four})
    assert needs.of("t.py::a[other]") is two
    assert needs.of("t.py::b[other]") is None
    assert needs.of("t.py::c[cases]") is four
    assert needs.of("t.py::d") is None


def test_a_folder_with_brackets_in_its_name_is_no_parameter():
    two, four = (Need(n, n, n, None, False, "high", "ssrrrr") for n in (2, 4))
    needs = Needs({"t[x]/t.py::a[1]": two, "t[x]/t.py::b[1]": four})
    assert needs.of("t[x]/t.py::a[other]") is two
    assert needs.of("t[x]/t.py::c[other]") is None
