"""What the verbs that read a history take over ten million tests of a trunk with 300 jobs.

1,000 commits, each with 10,000 tests in four shards and 300 jobs (`--tests`, `--jobs`); 1 % of the tests fail now and
then, three tests and a job are broken for a while, and with `--outage` all tests of one commit failed. Every verb is a
process of its own: wall and CPU seconds and its peak resident memory.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import duckdb

import peers
from figures import machine, save, table
from history import measured

_TESTS: Final = """copy (select
        md5('c' || k) as commit, 'main' as branch, 'run' || k as run_id, 'tests / shard ' || (t % 4) as job,
        'tests/test_' || (t % 200) || '.py' as file, 'tests/test_' || (t % 200) || '.py::test_' || t as nodeid,
        case when t in (5, 6, 7) and k between {commits} * 0.8 and {commits} * 0.83 then 'failed'
            when t % 100 = 1 and hash(k * 100003 + t) % 100 = 0 then 'failed'
            when {outage} and k = {commits} // 2 then 'failed'
            when t % 50 = 3 then 'skipped' else 'passed' end as outcome,
        0.01 * (t % 97) as duration, timestamp '2026-09-01' + interval 30 minute * k as started
    from range({commits}) commits(k), range({tests}) tests(t)) to '{path}' (format parquet)"""
_JOBS: Final = """copy (select
        md5('c' || k) as commit, 'main' as branch, 'ci' as workflow, 'run' || k as run_id, 'job ' || j as job,
        case when j = 3 and k between {commits} * 0.8 and {commits} * 0.83 then 'failure'
            when hash(k * 997 + j) % 50 = 0 then 'failure' else 'success' end as conclusion,
        timestamp '2026-09-01' + interval 30 minute * k as created, created + interval 5 minute as started,
        started + interval 45 minute as completed, 'linux.gpu.' || (1 + j % 4) as runner
    from range({commits}) commits(k), range({jobs}) jobs(j)) to '{path}' (format parquet)"""
_VERBS: Final = {
    "trunk verdicts": ("trunk", "verdicts"),
    "trunk verdicts --breakages": ("trunk", "verdicts", "--breakages"),
    "trunk flaky": ("trunk", "flaky", "--since", "2026-09-01", "--until", "2026-10-01"),
    "trunk digest": ("trunk", "digest", "--since", "1d", "--until", "{last}"),
    "coverage": ("coverage", "--now", "{last}"),
    "tts": ("tts",),
    "tts --by workflow": ("tts", "--by", "workflow"),
    "jobs select": ("jobs", "select"),
}
_EXPECTED: Final = (0, 12)
"""`coverage` says by 12 that its policy is not met."""


def run(commits: int, tests: int, jobs: int, folder: Path, *, outage: bool) -> dict[str, Any]:
    """The figures of each verb, by its name."""
    history = folder / "history"
    connection = duckdb.connect()
    connection.execute("set memory_limit = '2GiB'")
    for name, statement in (("tests", _TESTS), ("jobs", _JOBS)):
        path = folder / f"{name}.parquet"
        connection.execute(
            statement.format(commits=commits, tests=tests, jobs=jobs, path=path, outage=str(outage).lower())
        )
        measured([*peers.SOONER, "ingest", str(path), "--history", str(history)])
        path.unlink()
    last = connection.execute(f"select timestamp '2026-09-01' + interval 30 minute * {commits}").fetchone()
    connection.close()
    found: dict[str, Any] = {}
    for name, words in _VERBS.items():
        command = [*peers.SOONER, *(word.format(last=last[0].isoformat() if last else "") for word in words)]
        took = measured([*command, "--history", str(history)], exit_codes=_EXPECTED)
        found[name] = {"seconds": took.seconds, "cpu_s": took.cpu_s, "memory_mib": took.memory_mib}
        print(f"{name}: {took.seconds:.1f} s", file=sys.stderr)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--commits", type=int, default=1000, help="how many there are")
    parser.add_argument("--tests", type=int, default=10_000, help="of each commit")
    parser.add_argument("--jobs", type=int, default=300, help="of each commit")
    parser.add_argument("--outage", action="store_true", help="all tests of one commit failed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sooner-verbs-") as name:
        found = run(options.commits, options.tests, options.jobs, Path(name), outage=options.outage)
    rows = [
        [name, f"{one['seconds']:.1f}", f"{one['cpu_s']:.1f}", f"{one['memory_mib']:.0f}"]
        for name, one in found.items()
    ]
    over = f"{options.commits * options.tests:,} tests, {options.commits * options.jobs:,} attempts of jobs"
    print(table([over, "seconds", "CPU s", "peak MiB"], rows))
    print(f"\n{save('verbs', {'machine': machine(), 'commits': options.commits, 'verbs': found})}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
