"""What the history costs: ingest of jobs, tests and JUnit files, again and again, and questions to ten million rows.

- Ozone: 58,863 job runs of Apache Ozone's trunk (`--ozone FILE`, else rows of the same shape are made).
- Tests: so many generated rows as CSV, Parquet and JSON lines through `sooner ingest`, and in batches through
  `History.add_tests`; each into a history of its own, each a second time, which must add nothing.
- JUnit: files of `pytest`'s shape with N and 2 N cases: seconds, and whether memory grows with the file.
- Questions to the ten million rows: the slowest tests, the 90th percentile by week, expected durations, columns.

Every measurement is a process of its own: wall and CPU seconds and its peak resident memory. What is wanted stands
beside what was measured; `CPU s` is what a busy machine does not change much.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import peers
from figures import machine, save, table

OZONE_ROWS: Final = 58_863
TESTS: Final = 10_000_000
CASES: Final = 500_000
BATCH: Final = 500_000

_PRELUDE: Final = f"import sys; sys.path.insert(0, {str(peers.SOURCE)!r})\n"

_ADD_BATCHES: Final = """
import numpy as np
from sooner.history import History
rows, size = int(sys.argv[2]), int(sys.argv[3])
outcomes = np.array(["passed"] * 95 + ["failed"] * 3 + ["skipped"] * 2, dtype=object)
names = np.array([f"tests/test_{i % 500}.py::TestThing::test_{i}" for i in range(10_000)], dtype=object)
runs = np.array([f"run-{i}" for i in range(rows // 10_000 + 1)], dtype=object)
added = 0
with History(sys.argv[1]) as history:
    for begin in range(0, rows, size):
        i = np.arange(begin, min(begin + size, rows))
        added += history.add_tests({
            "run": runs[i // 10_000], "node_id": names[i % 10_000], "outcome": outcomes[(i * 7919) % 100],
            "seconds": (i * 2654435761 % 4096) / 512.0, "started": 1.7e9 + i // 10_000 * 3600.0 + i % 3600,
        }).added
print(added)
"""

_QUESTIONS: Final = {
    "slowest tests": (
        "select node_id, max(seconds), avg(seconds), count(*) from tests group by node_id order by 2 desc limit 20"
    ),
    "90th percentile by week": (
        "select date_trunc('week', started), quantile_cont(seconds, 0.9) from tests group by 1 order by 1"
    ),
    "failures by test": (
        "select node_id, count(*) filter (where outcome = 'failed') from tests group by 1 order by 2 desc limit 20"
    ),
}

_ASK: Final = """
import json, time
from sooner.history import History, Subject
answers = {}
with History(sys.argv[1]) as history:
    began = time.perf_counter()
    history.views()
    answers["opening"] = time.perf_counter() - began
    for name, statement in json.loads(sys.argv[2]).items():
        began = time.perf_counter()
        assert history.read(lambda: history.database.rows(statement), "tests")
        answers[name] = time.perf_counter() - began
    began = time.perf_counter()
    assert history.durations(of=Subject.CASES)
    answers["expected durations of 10,000 tests"] = time.perf_counter() - began
    began = time.perf_counter()
    columns = history.columns("tests", ["node_id", "outcome", "seconds", "started"], ordered=False)
    answers[f"four columns of {len(columns):,} rows as arrays"] = time.perf_counter() - began
print(json.dumps(answers))
"""


class Run(NamedTuple):
    """What a command took."""

    seconds: float
    cpu_s: float
    memory_mib: float
    output: str


def measured(command: Sequence[str], *, exit_codes: Collection[int] = (0,)) -> Run:
    """Run a command.

    Raises:
        RuntimeError: It ended with another exit code.
    """
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=peers.environment({}), text=True)
    output = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in exit_codes:
        raise RuntimeError(f"exit code {process.returncode}: {' '.join(command)[:300]}")
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output)


def ingest(path: Path, history: Path) -> dict[str, Any]:
    """`sooner ingest`, twice."""
    command = [*peers.SOONER, "ingest", str(path), "--history", str(history), "--json"]
    return twice(command, lambda output: json.loads(output)["added"])


def add_batches(history: Path, rows: int) -> dict[str, Any]:
    """`History.add_tests` with columns in memory, twice."""
    command = [sys.executable, "-c", _PRELUDE + _ADD_BATCHES, str(history), str(rows), str(BATCH)]
    return twice(command, int)


def twice(command: Sequence[str], added: Callable[[str], int]) -> dict[str, Any]:
    """The figures of a command that adds rows, and of the same once more."""
    first, again = measured(command), measured(command)
    return {
        "rows": added(first.output),
        "seconds": first.seconds,
        "cpu_s": first.cpu_s,
        "memory_mib": max(first.memory_mib, again.memory_mib),
        "again_s": again.seconds,
        "again_added": added(again.output),
    }


def write_ozone(path: Path) -> None:
    """Rows of the shape of Ozone's trunk."""
    with path.open("w", encoding="ascii") as file:
        file.write("commit,time,job,status,duration_s,attempt,event,run_id,run_number\n")
        for i in range(OZONE_ROWS):
            run, job = divmod(i, 25)
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_576_146_434 + run * 34_000 + job))
            status = "fail" if i % 37 == 0 else "skip" if i % 47 == 0 else "pass"
            file.write(f"{run:040x},{at},integration ({job}),{status},{i % 3000},1,push,{26_000_000 + run},{run}.0\n")


def write_tests(folder: Path, rows: int) -> dict[str, Path]:
    """The same generated test rows as CSV, Parquet and JSON lines."""
    import duckdb

    paths = {kind: folder / f"tests.{kind}" for kind in ("csv", "parquet", "jsonl")}
    options = {"csv": "format csv", "parquet": "format parquet, compression zstd", "jsonl": "format json"}
    connection = duckdb.connect()
    connection.execute(f"set memory_limit = '2GiB'; set temp_directory = '{folder}/spill'")
    for kind, path in paths.items():
        connection.execute(
            f"""copy (select 'run-' || (i // 10000) as run,
                'tests/test_' || (i % 10000 % 500) || '.py::TestThing::test_' || (i % 10000) as test,
                case when i * 7919 % 100 < 95 then 'passed' when i * 7919 % 100 < 98 then 'failed' else 'skipped' end
                    as status,
                round((i * 2654435761 % 4096) / 512, 3) as duration_s,
                strftime(make_timestamp(1700000000000000 + (i // 10000 * 3600 + i % 3600) * 1000000),
                    '%Y-%m-%dT%H:%M:%SZ') as started
            from range({rows}) numbers(i)) to '{path}' ({options[kind]})"""
        )
    connection.close()
    return paths


def write_junit(path: Path, cases: int) -> None:
    """A file as pytest writes it: 2 % failures, 3 % skips."""
    with path.open("w", encoding="ascii") as file:
        file.write('<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest"')
        file.write(' timestamp="2026-01-01T00:00:00.000000+00:00" hostname="box">\n')
        for i in range(cases):
            name = f'classname="tests.pkg.test_mod{i % 500}.TestThing" name="test_case_{i}[param-{i % 7}]"'
            file.write(f'<testcase {name} time="{i % 1000 / 1000:.3f}"')
            if i % 50 == 0:
                file.write(
                    f'><failure message="assert {i} == 2">def test():\n&gt;   assert {i} == 2</failure></testcase>\n'
                )
            elif i % 33 == 0:
                file.write('><skipped type="pytest.skip" message="slow">x.py:3: slow</skipped></testcase>\n')
            else:
                file.write(" />\n")
        file.write("</testsuite></testsuites>\n")


def row(name: str, found: Mapping[str, Any], wanted: str) -> list[str]:
    """One line of the table."""
    return [
        name,
        f"{found['rows']:,}",
        f"{found['seconds']:.1f}",
        f"{found['cpu_s']:.1f}",
        f"{found['rows'] / found['seconds'] / 1000:,.0f}",
        f"{found['memory_mib']:.0f}",
        f"{found['again_s']:.1f}",
        f"{found['again_added']:,}",
        wanted,
    ]


def run(options: argparse.Namespace, folder: Path) -> tuple[dict[str, Any], str]:
    """All figures, and the tables that show them."""
    tests, cases = (TESTS // 20, CASES // 10) if options.quick else (TESTS, CASES)
    figures: dict[str, Any] = {"machine": machine(), "tests": tests, "cases": cases}
    lines: list[list[str]] = []

    def note(name: str, wanted: str, measure: Callable[[], dict[str, Any]]) -> None:
        figures[name] = measure()
        lines.append(row(name, figures[name], wanted))
        print(f"{name}: {figures[name]['seconds']:.1f} s", file=sys.stderr)

    ozone = options.ozone or folder / "ozone_jobs.csv"
    if not options.ozone:
        write_ozone(ozone)
    note("ozone jobs", "3 s", lambda: ingest(ozone, folder / "h-ozone"))
    for size in (cases, 2 * cases):
        write_junit(folder / f"{size}.xml", size)
        wanted = "5 s" if size == CASES else ""
        note(f"junit, {size:,} cases", wanted, lambda n=size: ingest(folder / f"{n}.xml", folder / f"h-junit-{n}"))
        (folder / f"{size}.xml").unlink()
    for kind, path in write_tests(folder, tests).items():
        wanted = "60 s, 2048 MiB" if not options.quick else ""
        note(f"tests, {kind}", wanted, lambda p=path, k=kind: ingest(p, folder / f"h-{k}"))
        path.unlink()
    note("tests, add_tests", "60 s, 2048 MiB", lambda: add_batches(folder / "h-batches", tests))
    questions = {}
    for place in ("h-csv", "h-batches"):
        command = [sys.executable, "-c", _PRELUDE + _ASK, str(folder / place), json.dumps(_QUESTIONS)]
        questions[place] = json.loads(measured(command).output)
    figures["questions"] = questions
    header = ["ingest", "added", "seconds", "CPU s", "1000 rows/s", "peak MiB", "again, s", "again added", "wanted"]
    asked = [
        [name, f"{s:.2f}", f"{questions['h-batches'].get(name, float('nan')):.2f}"]
        for name, s in questions["h-csv"].items()
    ]
    head = [f"questions to {tests:,} tests, seconds", "one file", f"{tests // BATCH or 1} files"]
    return figures, f"{table(header, lines)}\n\n{table(head, asked)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--ozone", type=Path, help="ozone_jobs.csv.gz, if you have it")
    parser.add_argument("--folder", type=Path, help="where to put some 3 GB for a while (else: a temporary folder)")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the tests, a tenth of the cases")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sooner-history-", dir=options.folder) as name:
        figures, text = run(options, Path(name))
    print(text)
    print(f"\n{save('history', figures)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
