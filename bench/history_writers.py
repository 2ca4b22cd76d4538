"""Many writers, killed at random moments: is every committed record readable, once, and whole?

Each round starts `--writers` processes on one history. A writer adds records (a run: all of its tests and its measures)
one after the other and says so on its own log when a record is committed; some records overlap with what another writer
adds at the same time. At a random moment all writers get SIGKILL. Then a reader checks: every record that was announced
is there, no key is there twice, no record is there in part, no file is visible that cannot be read. Every tenth round
somebody compacts meanwhile, and is killed like the others.
"""

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

import peers
from figures import machine, save, table

UNITS: Final = 25
"""Tests in a record."""
_LONGEST_S: Final = 3.0
"""From the first record of a round to the first kill, at most."""

_PRELUDE: Final = f"import sys; sys.path.insert(0, {str(peers.SOURCE)!r})\n"

_WRITER: Final = """
import os
from sooner.history import History, HistoryOutcome, TestRow
root, log, writer, round_, units = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
with History(root, memory_mib=128) as history:
    for record in range(1_000_000):
        # Every third record is one that the neighbour writes, too, perhaps in the same moment.
        run = f"{round_}-{writer // 2 if record % 3 == 0 else writer}-{record}{'-shared' if record % 3 == 0 else ''}"
        at = 1.7e9 + 86_400 * (record % 5)
        passed = HistoryOutcome.PASSED
        history.add_tests(TestRow(run=run, unit=f"u{i}", outcome=passed, seconds=i, started=at) for i in range(units))
        os.write(fd, f"{run}\\n".encode())
"""

_COMPACTOR: Final = """
from sooner.history import History, HistoryError
from sooner.history.compact import compact
with History(sys.argv[1]) as history:
    while True:
        try:
            compact(history)
        except HistoryError as error:
            print(error, file=sys.stderr)
"""


def one_round(folder: Path, number: int, writers: int, source: random.Random) -> int:
    """Start writers, kill them; returns how many records they have announced."""
    root, logs = folder / "history", folder / "logs"
    logs.mkdir(exist_ok=True)
    command = [sys.executable, "-c", _PRELUDE + _WRITER, str(root)]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": peers.environment({})}
    running = [
        subprocess.Popen([*command, str(logs / f"{number}-{writer}"), str(writer), str(number), str(UNITS)], **quiet)
        for writer in range(writers)
    ]
    if number % 10 == 0:
        running.append(subprocess.Popen([sys.executable, "-c", _PRELUDE + _COMPACTOR, str(root)], **quiet))
    deadline = time.monotonic() + 120
    while not any(log.stat().st_size for log in logs.glob(f"{number}-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(source.uniform(0.0, _LONGEST_S))
    for process in source.sample(running, len(running)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        time.sleep(source.uniform(0.0, 0.01))
    for process in running:
        process.wait()
    return sum(len(path.read_text(encoding="ascii").splitlines()) for path in logs.glob(f"{number}-*"))


def check(folder: Path) -> dict[str, int]:
    """What is wrong with the history, counted."""
    sys.path.insert(0, str(peers.SOURCE))
    import duckdb

    from sooner.history import History

    root = folder / "history"
    announced = {run for path in (folder / "logs").iterdir() for run in path.read_text(encoding="ascii").split()}
    with History(root) as history:
        rows = history.tests()
    sizes = Counter(row.run for row in rows)
    keys = Counter((row.run, row.unit) for row in rows)
    visible = [path for path in root.rglob("*.parquet") if ".staging" not in path.parts]
    unreadable = 0
    for path in visible:
        try:
            duckdb.execute("select count(*), max(unit) from read_parquet(?)", [str(path)]).fetchall()
        except duckdb.Error:
            unreadable += 1
    return {
        "announced": len(announced),
        "records": len(sizes),
        "lost": len(announced - sizes.keys()),
        "twice": sum(count > 1 for count in keys.values()),
        "half": sum(size != UNITS for size in sizes.values()),
        "files": len(visible),
        "unreadable": unreadable,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--writers", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="5 rounds")
    options = parser.parse_args()
    source = random.Random(options.seed)
    rounds = 5 if options.quick else options.rounds
    rows, totals = [], Counter[str]()
    with tempfile.TemporaryDirectory(prefix="sooner-writers-") as name:
        for part in range(0, rounds, 10):
            # A history for ten rounds: later ones begin with what earlier ones have left.
            folder = Path(name, str(part))
            folder.mkdir()
            count = min(10, rounds - part)
            for number in range(count):
                one_round(folder, number, options.writers, source)
            found = check(folder)
            totals.update(found)
            rows.append([f"{part + 1}-{part + count}", *found.values()])
            print(f"rounds {part + 1}-{part + count}: {found}", file=sys.stderr)
    header = ["rounds", *totals]
    print(table(header, [*rows, ["all", *totals.values()]]))
    figures = {"machine": machine(), "writers": options.writers, "rounds": rounds, **totals}
    print(f"\n{save('history_writers', figures)}")
    return 1 if any(totals[name] for name in ("lost", "twice", "half", "unreadable")) else 0


if __name__ == "__main__":
    sys.exit(main())
