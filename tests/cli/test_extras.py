"""What is said where a package of an extra is not installed."""

import subprocess
import sys

import pytest

STATISTICS = ("numpy", "scipy")
EVERYTHING = (*STATISTICS, "duckdb")
VERBS = {
    "tts": ["tts", "--history", "h"],
    "coverage": ["coverage", "--history", "h"],
    "simulate-pool": ["simulate-pool", "--jobs", "jobs.csv"],
    "jobs select": ["jobs", "select", "--history", "h"],
    "jobs correlate": ["jobs", "correlate", "--history", "h"],
    "jobs backtest": ["jobs", "backtest", "--history", "h"],
    "jobs flakes": ["jobs", "flakes", "--history", "h"],
    "jobs for-change": ["jobs", "for-change", "--history", "h"],
    "trunk verdicts": ["trunk", "verdicts", "--history", "h"],
    "trunk decide": ["trunk", "decide", "--jsonl"],
    "trunk simulate": ["trunk", "simulate", "--trunks", "2"],
    "trunk digest": ["trunk", "digest", "--history", "h"],
    "trunk flaky": ["trunk", "flaky", "--history", "h"],
}


@pytest.fixture
def without(tmp_path):
    """Run a verb where these packages are not installed."""
    (tmp_path / "h").mkdir()
    (tmp_path / "jobs.csv").write_text("label,created,started,completed\na,0,1,2\n")

    def run(arguments, missing):
        program = (
            f"import sys\nfor name in {missing!r}: sys.modules[name] = None\n"
            f"from sooner.cli.main import main\nmain({arguments!r})\n"
        )
        return subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path, input="{}\n"
        )

    return run


@pytest.mark.parametrize("arguments", VERBS.values(), ids=list(VERBS))
def test_where_nothing_but_sooner_is_installed_one_line_tells_what_to_install(without, arguments):
    done = without(arguments, EVERYTHING)
    assert done.returncode == 4
    (line,) = done.stderr.splitlines()
    assert line.endswith(" is not installed: pip install 'sooner[history,stats]'")


def test_only_what_is_missing_is_to_be_installed(without):
    done = without(VERBS["trunk simulate"], STATISTICS)
    assert done.returncode == 4
    assert done.stderr == "sooner: numpy is not installed: pip install 'sooner[stats]'\n"
    done = without(VERBS["jobs select"], ("duckdb",))
    assert "pip install 'sooner[history]'" in done.stderr


def test_a_module_that_is_missing_and_of_no_extra_is_a_bug(without):
    done = without(VERBS["trunk simulate"], ("sooner.analysis.trunk.simulate",))
    assert done.returncode == 3
    assert "this is a bug in sooner" in done.stderr


def test_without_pytest_no_pollution_is_looked_for(without):
    done = without(["bisect-pollution"], ("pytest",))
    assert done.returncode == 4
    assert "pip install pytest" in done.stderr
