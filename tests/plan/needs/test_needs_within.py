"""What a test has the standard library run in its own process: files, texts, functions, examples in docstrings."""

from small_projects import needs_of


def answers(found):
    return {name: (each.min, each.gpu_min, each.confidence.value) for name, each in found.items()}


def test_a_file_that_is_run_in_the_tests_own_process_uses_what_it_says():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import runpy
            from pathlib import Path

            HERE = Path(__file__).parent

            def test_beside():
                runpy.run_path(str(HERE / "script.py"), run_name="__main__")

            def test_by_keyword():
                runpy.run_path(path_name="script.py")

            def test_written(tmp_path):
                path = tmp_path / "made.py"
                path.write_text("import torch; torch.zeros(1, device='cuda:1')")
                runpy.run_path(str(path))

            def test_module():
                runpy.run_module("script", run_name="__main__")

            def test_of_the_host():
                runpy.run_path("other.py")

            def test_unknown(request):
                runpy.run_path(request.param)

            def test_module_elsewhere():
                runpy.run_module("somewhere.else")
            """,
            "script.py": "import torch\ntorch.zeros(1, device='cuda')\n",
            "other.py": "print(1)\n",
        },
    )
    assert answers(found) == {
        "test_beside": (1, 1, "high"),
        "test_by_keyword": (1, 1, "high"),
        "test_written": (2, 2, "high"),
        "test_module": (1, 1, "high"),
        "test_of_the_host": (0, None, "high"),
        "test_unknown": (0, None, "medium"),
        "test_module_elsewhere": (0, None, "medium"),
    }


def test_what_is_timed_or_profiled_is_run():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import cProfile
            import timeit
            import torch
            from torch.utils import benchmark

            def work():
                torch.zeros(1, device="cuda")

            def test_function():
                timeit.timeit(work, number=1)

            def test_text():
                timeit.repeat("torch.zeros(1, device='cuda')", "import torch", number=1)

            def test_text_that_sees_names():
                timeit.timeit("f()", globals={"f": work})

            def test_timer():
                timeit.Timer(work).timeit(1)

            def test_pytorchs():
                benchmark.Timer(stmt="f()", globals={"f": work}).timeit(1)

            def test_profile():
                cProfile.Profile().runcall(work)

            def test_profiled_text():
                cProfile.runctx("f()", {"f": work}, {})

            def test_of_the_host():
                timeit.timeit("1 + 1")
            """
        },
    )
    assert answers(found) == dict.fromkeys(found, (1, 1, "high")) | {"test_of_the_host": (0, None, "high")}


def test_examples_in_docstrings_and_other_tests_are_not_followed_and_that_is_less_sure():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import doctest
            import lib
            import pytest

            def test_module():
                assert not doctest.testmod(lib).failed

            def test_object():
                doctest.run_docstring_examples(lib.f, globs={})

            def test_other_tests():
                assert pytest.main(["test_other.py"]) == 0
            """,
            "lib.py": "def f():\n    '''\n    >>> import torch; torch.zeros(1, device='cuda')\n    '''\n",
        },
    )
    assert answers(found) == dict.fromkeys(("test_module", "test_object", "test_other_tests"), (0, None, "medium"))


def test_a_module_that_python_runs_as_a_program_is_followed():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import subprocess
            import sys

            def test_module():
                subprocess.run([sys.executable, "-m", "tools.work"], check=True)

            def test_package():
                subprocess.run("python3 -m tools", shell=True, check=True)

            def test_elsewhere():
                subprocess.run([sys.executable, "-m", "pip", "list"], check=True)
            """,
            "tools/__init__.py": "",
            "tools/__main__.py": "import torch\ntorch.zeros(1, device='cuda:2')\n",
            "tools/work.py": "import torch\nif __name__ == '__main__':\n    torch.zeros(1, device='cuda')\n",
        },
    )
    assert {name: (each.min, each.gpu_min) for name, each in found.items()} == {
        "test_module": (1, 1),
        "test_package": (3, 3),
        "test_elsewhere": (0, None),
    }
