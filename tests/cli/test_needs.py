"""`sooner needs` as people and programs call it."""

import json
import os
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

TESTS = """
    import pytest
    import torch

    def need(n):
        return pytest.mark.skipif(torch.cuda.device_count() < n, reason="devices")

    @need(2)
    def test_two():
        torch.ones(1, device="cuda:1")

    @need(4)
    def test_four():
        pass

    def test_host():
        pass
"""


@pytest.fixture
def suite(project):
    (project / "pytest.ini").write_text("[pytest]\n")
    (project / "tests").mkdir()
    (project / "tests" / "test_it.py").write_text(textwrap.dedent(TESTS))
    return project


def test_the_json_is_what_the_interface_says(sooner, suite):
    answer = json.loads(sooner("needs", "tests/", "--json").stdout)
    two, four, host = answer
    assert two["nodeid"] == "tests/test_it.py::test_two"
    assert two["path"] == "tests/test_it.py"
    assert two["profile"] == {"0": "skip", "1": "skip", "2": "run", "3": "run", "4": "run", "8": "run"}
    assert (two["min"], two["gpu_min"], two["full"], two["max"], two["adaptive"]) == (2, 2, 2, None, False)
    assert two["confidence"] == "high"
    assert {"path", "line", "text"} == set(two["evidence"][0])
    assert (four["min"], host["min"], host["gpu_min"]) == (4, 0, None)


def test_where_the_root_is_the_folder_of_tests_its_helpers_are_tests_too(sooner, project):
    unit = project / "tests" / "unit"
    unit.mkdir(parents=True)
    (project / "tests" / "pytest.ini").write_text("[pytest]\n")
    (unit / "__init__.py").write_text("")
    (unit / "common.py").write_text(
        textwrap.dedent("""
        import pytest
        import torch

        class Ranks:
            world_size = 2

            def __init__(self):
                if torch.cuda.device_count() < self.world_size:
                    pytest.skip("not enough devices")
        """)
    )
    (unit / "test_it.py").write_text(
        textwrap.dedent("""
        from unit.common import Ranks

        class Four(Ranks):
            world_size = 4

        def test_four():
            Four()
        """)
    )
    answer = json.loads(sooner("needs", "tests/unit/test_it.py", "--json").stdout)
    assert [(each["nodeid"], each["min"]) for each in answer] == [("unit/test_it.py::test_four", 4)]


@pytest.mark.parametrize("where", ["tests", "python/tests"])
def test_where_the_root_is_the_folder_of_tests_the_library_beside_it_is_seen(sooner, project, where):
    tests = project / where
    (tests / "unit").mkdir(parents=True)
    (tests / "pytest.ini").write_text("[pytest]\n")
    (project / "setup.py").write_text("")
    (project / "acme").mkdir()
    (project / "acme" / "__init__.py").write_text("LEAST = 4\n")
    (tests / "unit" / "common.py").write_text("from acme import LEAST\n\ndef least():\n    return LEAST\n")
    (tests / "unit" / "test_it.py").write_text(
        textwrap.dedent(f"""
        import pytest
        import torch
        import acme
        from {where.replace("/", ".")}.unit.common import least

        @pytest.mark.skipif(torch.cuda.device_count() < acme.LEAST, reason="devices")
        def test_library():
            pass

        @pytest.mark.skipif(torch.cuda.device_count() < least(), reason="devices")
        def test_helper():
            pass
        """)
    )
    answer = json.loads(sooner("needs", where, "--json").stdout)
    assert [(each["nodeid"], each["min"]) for each in answer] == [
        ("unit/test_it.py::test_library", 4),
        ("unit/test_it.py::test_helper", 4),
    ]


def test_people_see_a_table_and_a_summary(here, suite):
    done = here("needs", "tests", "--why")
    assert done.returncode == 0
    assert "ssrrrr" in done.stdout
    assert "tests/test_it.py:6:" in done.stdout
    assert "3 tests: 1 from 0 on, 1 from 2 on, 1 from 4 on" in done.stdout


def test_only_wide_ones_on_request(here, suite):
    answer = json.loads(here("needs", "tests", "--min", "3", "--json").stdout)
    assert [each["nodeid"] for each in answer] == ["tests/test_it.py::test_four"]


def test_that_no_test_is_as_wide_as_was_asked_is_an_answer_and_no_mistake(here, suite):
    done = here("needs", "tests", "--min", "8")
    assert (done.returncode, done.stdout) == (0, "of 3 tests none needs 8 devices or more\n")
    done = here("needs", "tests", "--min", "8", "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, [])


def test_the_difference_to_where_ci_runs_it_fails_on_orphans(here, suite):
    (suite / "ci.toml").write_text('[[job]]\nname = "d"\ndevices = 2\npaths = ["tests/*"]\n')
    done = here("needs", "tests", "--diff", "--placement", "ci.toml")
    assert done.returncode == 12
    assert "orphan" in done.stdout
    assert "test_four" in done.stdout
    answer = json.loads(here("needs", "tests", "--diff", "--placement", "ci.toml", "--json").stdout)
    assert [(each["kind"], each["placed"]) for each in answer] == [("orphan", [2])]


CASES = """
    import pytest
    import torch

    @pytest.mark.parametrize("device", ["cuda:0", "cuda:1"])
    @pytest.mark.parametrize("size", range(1000))
    def test_product(size, device):
        torch.ones(size, device=device)

    @pytest.mark.parametrize("size", [1, 2])
    def test_alike(size):
        torch.ones(size, device="cuda")
"""


def test_cases_of_one_test_of_which_the_same_is_said_are_one_line(here, suite):
    (suite / "tests" / "test_it.py").write_text(textwrap.dedent(CASES))
    done = here("needs", "tests")
    _, *lines, _, summary = done.stdout.splitlines()
    said = [(line.split()[0].partition("::")[2], line.split(maxsplit=7)[-1]) for line in lines]
    assert said == [
        ("test_product[0-cuda:0]", "1,000 cases"),
        ("test_product[0-cuda:1]", "1,000 cases"),
        ("test_alike[...]", "2 cases"),
    ]
    assert summary.startswith("2,002 tests: 1002 from 1 on, 1000 from 2 on")
    assert len(json.loads(here("needs", "tests", "--json").stdout)) == 2002


def test_a_line_that_stands_for_some_cases_of_a_test_names_one_of_them(here, suite):
    (suite / "tests" / "test_it.py").write_text(textwrap.dedent(CASES))
    assert "test_product[0-cuda:1] " in here("needs", "tests", "--min", "2").stdout


def test_cases_that_disagree_in_the_same_way_are_one_line(here, suite):
    (suite / "tests" / "test_it.py").write_text(textwrap.dedent(CASES))
    (suite / "ci.toml").write_text('[[job]]\nname = "d"\ndevices = 1\npaths = ["tests/*"]\n')
    done = here("needs", "tests", "--diff", "--placement", "ci.toml")
    orphan, _, summary = done.stdout.splitlines()
    assert "test_product[0-cuda:1] and 999 more of its cases: " in orphan
    assert summary == "1000 orphan"


def test_rules_of_the_project_are_found_in_its_pyproject(here, suite):
    (suite / "pyproject.toml").write_text('[tool.sooner]\nneeds-rules = "own.toml"\n')
    (suite / "own.toml").write_text('[[mark]]\nnames = ["wide"]\nskip = "N < 3"\n')
    (suite / "tests" / "test_more.py").write_text("import pytest\n@pytest.mark.wide\ndef test_a(): pass\n")
    (needs,) = json.loads(here("needs", "tests/test_more.py", "--json").stdout)
    assert needs["min"] == 3


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("nowhere",), "there is no nowhere"),
        (("tests/test_it.py::test_to",), "tests/test_it.py has no test test_to: there are 'test_two', "),
        (("nowhere.py::test_a",), "there is no nowhere.py"),
        (("tests::test_two",), "there is no tests::test_two: name test files or folders"),
        (("tests", "--rules", "none.toml"), "the rules none.toml cannot be read"),
        (("tests", "--rules", "binary"), "the rules binary cannot be read: it is not UTF-8"),
        (("tests", "--min", "-1"), "--min"),
        (("tests", "--dry", "--real"), "exclude each other"),
        (("tests", "--placement", "a.toml"), "add --diff"),
        (("tests", "--diff", "--placement", "a.toml"), "cannot be read"),
        (("tests", "--dry", "--python", "/nowhere/python"), "--python"),
    ],
)
def test_what_is_not_understood_is_one_clear_error(here, suite, options, text):
    (suite / "binary").write_bytes(b"\xf0\x28")
    done = here("needs", *options)
    assert done.returncode == 4
    assert text in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ('skip = "M < 2"', "own.toml: the rule for wide: skip = 'M < 2': 'M' means nothing"),
        ('needs = "argument(0)"', "'argument' means nothing (a text has quotes of its own): there are"),
        ('backend = "nccl"', "the rule for wide: backend = 'nccl': 'nccl' means nothing"),
        ("skip = \"any(N < n for n in [2]) and (lambda m: m)(1) and N < arg(0, 'n', len([1]))\"", ""),
    ],
)
def test_a_word_of_a_rule_that_means_nothing_is_one_clear_error(here, suite, says, told):
    (suite / "own.toml").write_text(f'[[mark]]\nnames = ["wide"]\n{says}\n')
    done = here("needs", "tests", "--rules", "own.toml")
    assert (done.returncode, told in done.stderr) == (4 if told else 0, True)


def test_tests_can_be_named_as_pytest_names_them(here, suite):
    more = """
        import pytest
        class TestIt:
            @pytest.mark.parametrize("text", ["a", "a::b"])
            def test_of_class(self, text): pass
            def test_of_class_too(self): pass
        """
    (suite / "tests" / "test_more.py").write_text(textwrap.dedent(more))

    def named(*paths):
        return [each["nodeid"].partition("/")[2] for each in json.loads(here("needs", *paths, "--json").stdout)]

    assert named("tests/test_it.py::test_two") == ["test_it.py::test_two"]
    assert named("tests/test_it.py::test_host", "tests/test_more.py::TestIt::test_of_class") == [
        "test_it.py::test_host",
        "test_more.py::TestIt::test_of_class[a]",
        "test_more.py::TestIt::test_of_class[a::b]",
    ]
    assert named("tests/test_more.py::TestIt::test_of_class[a::b]") == ["test_more.py::TestIt::test_of_class[a::b]"]
    assert len(named("tests/test_more.py::TestIt")) == 3
    assert len(named("tests/test_it.py", "tests/test_it.py::test_two")) == 3
    assert len(named("tests/test_it.py::test_two", "tests")) == 6


def test_a_folder_without_tests_is_nothing_to_run(here, suite):
    (suite / "empty").mkdir()
    done = here("needs", "empty")
    assert done.returncode == 5
    assert "no tests in empty" in done.stderr


def test_ids_are_relative_to_the_root_wherever_it_is_called_from(here, suite):
    answer = json.loads(here("needs", suite / "tests" / "test_it.py", "--json").stdout)
    assert answer[0]["nodeid"] == "tests/test_it.py::test_two"


def test_a_dry_sweep_adds_what_only_running_the_file_shows(here, suite):
    (suite / "tests" / "test_made.py").write_text(
        "def make(n):\n    def test(): assert n\n    return test\n"
        "import base64\nexec(base64.b64decode('dGVzdF9tYWRlXzEgPSBtYWtlKDEpOyB0ZXN0X21hZGVfMiA9IG1ha2UoMik='))\n"
    )
    before = json.loads(here("needs", "tests/test_made.py", "--json").stdout or "[]")
    after = json.loads(here("needs", "tests/test_made.py", "--dry", "--json").stdout)
    assert before == []
    assert [each["nodeid"].partition("::")[2] for each in after] == ["test_made_1", "test_made_2"]


def test_a_dry_sweep_names_files_that_lack_a_package_and_keeps_what_their_source_says(here, suite):
    (suite / "tests" / "test_it.py").write_text(
        "import absent_here\nimport pytest\nimport torch\n\n"
        "@pytest.mark.skipif(torch.cuda.device_count() < 4, reason='four')\ndef test_a(): pass\n"
    )
    answer = here("needs", "tests", "--dry", "--json")
    assert [(each["min"], each["confidence"]) for each in json.loads(answer.stdout)] == [(4, "medium")]
    assert "1 file could not be imported" in answer.stderr
    assert "tests/test_it.py (ModuleNotFoundError: No module named 'absent_here')" in answer.stderr


def test_a_dry_sweep_leaves_tests_that_pytest_cannot_be_asked_about(here, suite):
    entry = "import nowhere\nALL = [ OverrideDefinitions([], 'a', 'two', ngpu=2)]\n"
    (suite / "tests" / "features.py").write_text(entry)
    (suite / "tests" / "test_it.py").write_text("def test_host(): pass\n")
    answer = json.loads(here("needs", "tests", "--dry", "--json").stdout)
    assert {each["nodeid"]: each["min"] for each in answer} == {
        "tests/test_it.py::test_host": 0,
        "tests/features.py::two": 2,
    }


ADAPTS = """
    import pytest
    import torch

    @pytest.mark.parametrize("n", ["a]b", 'q"\\\\'])
    def test_host(n):
        pass

    @pytest.mark.parametrize("n", [1, 2])
    def test_widths(n):
        if torch.cuda.device_count() < n:
            pytest.skip("devices")

    def test_all():
        if torch.cuda.device_count() < 2:
            pytest.skip("devices")
        for i in range(torch.cuda.device_count()):
            torch.ones(1, device=f"cuda:{i}")

    @pytest.mark.skip(reason="never")
    def test_never():
        pass
"""


def planned(here, *options):
    done = here("needs", "tests/", "--plan", *options)
    assert done.returncode == 0, done.stderr
    document = tomllib.loads(done.stdout)
    return {unit["name"]: (unit["devices"], unit["command"][4:]) for unit in document["unit"]}


def test_needs_become_a_plan_with_a_unit_for_each_file_and_width(here, suite):
    (suite / "tests" / "test_adapts.py").write_text(textwrap.dedent(ADAPTS))
    (suite / "tests" / "test_plain.py").write_text("def test_host(): pass\n")
    plan = planned(here)
    path = "tests/test_adapts.py"
    assert plan == {
        "tests/test_adapts on 8": (8, [f"{path}::test_all"]),
        "tests/test_adapts on 2": (2, [f"{path}::test_widths[2]"]),
        "tests/test_adapts on 1": (1, [f"{path}::test_widths[1]"]),
        "tests/test_adapts on 0": (0, [f"{path}::test_host", f"{path}::test_never"]),
        "tests/test_it on 4": (4, ["tests/test_it.py::test_four"]),
        "tests/test_it on 2": (2, ["tests/test_it.py::test_two"]),
        "tests/test_it on 0": (0, ["tests/test_it.py::test_host"]),
        "tests/test_plain": (0, ["tests/test_plain.py"]),
    }
    assert planned(here, "--most", "4")["tests/test_adapts on 4"] == (4, [f"{path}::test_all"])


def test_more_tests_than_a_command_can_name_are_several_units(here, suite):
    text = """
        import pytest
        import torch

        @pytest.mark.parametrize("wide", [0, 1])
        @pytest.mark.parametrize("n", range(3000))
        def test_a_name_that_is_quite_long_for_a_test_but_not_unheard_of(n, wide):
            if wide and torch.cuda.device_count() < 2:
                pytest.skip("devices")
    """
    (suite / "tests" / "test_many.py").write_text(textwrap.dedent(text))
    plan = {name: command for name, (_, command) in planned(here).items() if "many" in name}
    assert list(plan) == [f"tests/test_many on {n}, part {part}" for n in (2, 0) for part in (1, 2)]
    assert all(len(" ".join(command)) < 200_000 for command in plan.values())
    assert len({each for command in plan.values() for each in command}) == 6000


def test_an_id_that_looks_like_a_placeholder_is_none(sooner, suite):
    text = """
        import pytest
        import torch

        @pytest.mark.parametrize("url", ["h:{port}", "wide"])
        def test_url(url):
            if url == "wide" and torch.cuda.device_count() < 2:
                pytest.skip("devices")
    """
    (suite / "tests" / "test_it.py").write_text(textwrap.dedent(text))
    (suite / "plan.toml").write_text(sooner("needs", "tests", "--plan").stdout)
    activated = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = sooner("run", "plan.toml", "--devices", "virtual:2", PATH=activated)
    assert "2 units: 2 passed" in done.stdout


def test_the_plan_of_needs_runs(sooner, suite):
    (suite / "tests" / "test_it.py").write_text("def test_host(): pass\n")
    (suite / "p.toml").write_text(sooner("needs", "tests/", "--plan").stdout)
    activated = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = sooner("run", "p.toml", "--devices", "virtual:2", PATH=activated)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--plan", "--json"), "--plan prints a plan and nothing else"),
        (("--most", "4"), "--most N says how many devices there are, for --plan"),
        (("--plan", "--most", "-1"), "--most N says how many devices there are, for --plan"),
    ],
)
def test_options_that_say_nothing_together_are_one_clear_error(here, suite, options, problem):
    done = here("needs", "tests/", *options)
    assert done.returncode == 4
    assert problem in done.stderr


def test_a_file_that_is_no_python_is_not_left_out_in_silence(here, project):
    (project / "test_good.py").write_text("\ufeffdef test_a(): pass\n", encoding="utf-8")
    (project / "test_bad.py").write_text("def test_x(:\n")
    done = here("needs", "test_good.py", "test_bad.py", "--json")
    assert (done.returncode, len(json.loads(done.stdout))) == (0, 1)
    told = f"not valid Python {sys.version_info[0]}.{sys.version_info[1]}, so its tests are not known"
    assert done.stderr == f"note: test_bad.py: {told} (is it of a newer Python? run sooner in that one)\n"


def test_files_whose_tests_come_from_code_that_is_not_there_are_named(here, project):
    (project / "test_good.py").write_text("from outside.helpers import *\nfrom shared import *\ndef test_a(): pass\n")
    (project / "shared.py").write_text("def help(): pass\n")
    (project / "test_none.py").write_text(
        "from shared import *\nimport unittest\nclass TestA(unittest.TestCase): ...\n"
    )
    (project / "test_star.py").write_text("from outside.suite import *\n")
    made = "from outside.testing import made\nif made:\n    globals().update(made('a'))\n"
    (project / "test_made.py").write_text(made)
    (project / "test_class.py").write_text("from outside import suites\nclass TestA(suites.Common): device = 'cuda'\n")
    (project / "test_load.py").write_text("def load_tests(loader, tests, pattern): return loader.discover('more')\n")
    done = here("needs", ".", "--json")
    assert (done.returncode, len(json.loads(done.stdout))) == (0, 1)
    assert done.stderr == (
        "note: 4 files take their tests from code that is not here, so they are not known: "
        "test_class.py, test_load.py, test_made.py, ... (--dry imports it)\n"
    )


def test_what_is_named_like_a_test_and_is_no_file_is_left_out(here, project):
    (project / "test_good.py").write_text("def test_a(): pass\n")
    (project / "test_dangling.py").symlink_to("nowhere.py")
    os.mkfifo(project / "test_pipe.py")
    (project / "test_folder.py").mkdir()
    (project / "test_large.py").write_text("def test_a(): pass\n" + "# filled\n" * 500_000)
    done = here("needs", ".", "--json")
    assert (done.returncode, len(json.loads(done.stdout))) == (0, 1)
    assert done.stderr == "note: test_large.py: cannot be read, or is too large: its tests are not known\n"


def test_a_file_that_is_named_has_tests_whatever_it_is_called(here, project):
    (project / "checks.py").write_text(textwrap.dedent(TESTS))
    (project / "test_other.py").write_text("from checks import need\n@need(8)\ndef test_eight(): pass\n")
    rows = json.loads(here("needs", "test_other.py", "checks.py", "--json", "--jobs", "1").stdout)
    assert {row["nodeid"].rpartition("::")[2]: row["min"] for row in rows} == {
        "test_eight": 8, "test_two": 2, "test_four": 4, "test_host": 0,
    }  # fmt: skip


def test_files_are_taken_for_tests_as_the_project_names_them(here, project):
    (project / "pytest.ini").write_text("[pytest]\npython_files = check_*.py *_spec.py\n")
    for name in ("check_a.py", "b_spec.py", "test_c.py"):
        (project / name).write_text(f"def test_{name[0]}(): pass\n")
    rows = json.loads(here("needs", ".", "--json").stdout)
    assert sorted(row["nodeid"] for row in rows) == ["b_spec.py::test_b", "check_a.py::test_c"]


def test_what_pytest_would_not_collect_is_left_out_and_that_is_said(here, project):
    (project / "pytest.ini").write_text(
        "[pytest]\ntestpaths = tests\nnorecursedirs = skipped old/slow\n"
        "addopts = -ra\n    # why\n    --ignore=tests/data --ignore-glob 'tests/*_gen.py'\n"
    )
    names = "test_a skipped/test_b data/test_c test_d sub/test_e_old old/slow/test_f test_h_gen test_i .hidden/test_j"
    for name in [*(f"tests/{each}" for each in names.split()), "other/test_g"]:
        path = project / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("def test_it(): pass\n")
    (project / "tests/conftest.py").write_text(
        "import sys\ncollect_ignore = ['test_x.py']\ncollect_ignore += ['test_d.py']\n"
        "collect_ignore_glob = ['*_old.py']\nif sys.version_info < (3,):\n    collect_ignore.append('test_i.py')\n"
    )
    done = here("needs", "--json")
    found = [each["path"] for each in json.loads(done.stdout)]
    assert found == ["tests/test_a.py", "tests/test_i.py", "tests/.hidden/test_j.py"]
    assert done.stderr.startswith("note: 6 files left out, as pytest would: tests/")
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    asked = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False).stdout
    assert {line.partition("::")[0] for line in asked.splitlines() if "::" in line} == set(found)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest.toml", "[pytest]\npython_files = ['spec_*.py']\n"),
        (".pytest.toml", "[pytest]\npython_files = ['spec_*.py']\n"),
        ("pyproject.toml", "[tool.pytest]\npython_files = ['spec_*.py']\n"),
        ("pyproject.toml", "[tool.pytest.ini_options]\npython_files = 'spec_*.py'\n"),
        ("setup.cfg", "[tool:pytest]\npython_files = spec_*.py\n"),
        ("tox.ini", "[pytest]\npython_files = spec_*.py\n"),
    ],
)
def test_settings_of_pytest_are_found_wherever_it_keeps_them(here, project, name, text):
    (project / "lib/tests").mkdir(parents=True)
    (project / "lib" / name).write_text(text)
    (project / "lib/tests/spec_a.py").write_text("def test_a(): pass\n")
    (project / "lib/tests/test_b.py").write_text("def test_b(): pass\n")
    answer = json.loads(here("needs", "lib/tests", "--json").stdout)
    assert [each["nodeid"] for each in answer] == ["tests/spec_a.py::test_a"]


def test_without_settings_the_root_has_the_pyproject_although_a_setup_is_nearer(here, project):
    (project / "pyproject.toml").write_text("[tool.ruff]\n")
    (project / "lib").mkdir()
    (project / "lib/setup.py").write_text("")
    (project / "lib/test_a.py").write_text("def test_a(): pass\n")
    answer = json.loads(here("needs", "lib", "--json").stdout)
    assert [each["nodeid"] for each in answer] == ["lib/test_a.py::test_a"]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "lib"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert asked.startswith("lib/test_a.py::test_a\n")


@pytest.mark.parametrize("named", ["tests/data/test_c.py", "tests/data"])
def test_a_file_or_folder_that_is_named_is_not_left_out_by_a_folders_name(here, project, named):
    (project / "pytest.ini").write_text("[pytest]\nnorecursedirs = data\n")
    (project / "tests/data").mkdir(parents=True)
    (project / "tests/data/test_c.py").write_text("def test_it(): pass\n")
    done = here("needs", named, "--json")
    assert ([each["path"] for each in json.loads(done.stdout)], done.stderr) == (["tests/data/test_c.py"], "")


def test_folders_named_as_outputs_are_looked_at_where_python_lies_right_in_them(here, project):
    for name in ("tests/dist/test_a.py", "build/lib/test_b.py", "tests/build/lib.linux/test_c.py"):
        (project / name).parent.mkdir(parents=True)
        (project / name).write_text("def test_it(): pass\n")
    answer = json.loads(here("needs", ".", "--json").stdout)
    assert [each["path"] for each in answer] == ["tests/dist/test_a.py"]
