"""The fault matrix: what is left of a run when a unit, the machine or the runner does the worst.

Each case runs a few faulty units beside healthy neighbours on four virtual devices and then checks: exactly one verdict
for each planned unit, a JUnit file that a strict parser reads and that holds them all, no living descendant (every
process carries a marker, for which /proc is searched), no lease held, neighbours unharmed, the right verdict for the
faulty unit, and an exit code that does not mislead. The same cases run under the installable peers. A run that does not
end is bounded and reported as `hang`; whatever survives a case is killed before the next.
"""

import argparse
import contextlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import peers
from fault_matrix.cases import DEVICES, FAULTS, Fault
from fault_matrix.checks import CODES, Problem, end_survivors, problems, survivors
from fault_matrix.injections import hit
from fault_matrix.runners import CTest, GnuParallel, Place, PytestIsolate, PytestXdist, Runner, Sooner
from figures import machine, save, table

RUNNERS: Final = {
    "sooner": Sooner,
    "ctest": CTest,
    "isolate": PytestIsolate,
    "xdist": PytestXdist,
    "parallel": GnuParallel,
}
_LIMIT_S: Final = 60.0
"""No healthy run of a case takes a third of this; CI systems wait much longer."""
_AFTER_HIT_S: Final = 15.0
"""A CI system that asks a job to end kills it after about as long."""
_CLEAN_S: Final = {True: 15.0, False: 2.0}
"""How long things may take to come right after the runner has ended: longer if it was hit."""
_SMALL_DISK_MIB: Final = 16
_MEMORY_MIB: Final = 64


class Finding(NamedTuple):
    """One cell of the matrix."""

    fault: str
    runner: str
    problems: tuple[Problem, ...]
    seconds: float
    """From the start of the runner to its end."""
    clean_s: float
    """From its end until nothing could change any more."""
    note: str = ""

    @property
    def cell(self) -> str:
        """`ok`, or the codes of what broke."""
        codes = dict.fromkeys(problem.code for problem in self.problems)
        return self.note if self.note and not codes else " ".join(codes) or "ok"


class Instance(NamedTuple):
    """One runner at work."""

    place: Place
    process: "subprocess.Popen[bytes]"


class Bench:
    """Runs cases; everything of a case lies in one folder, which goes with it unless `keep`."""

    def __init__(self, *, flood_mib: int, cgroup: Path | None, keep: bool) -> None:
        self._flood_mib = flood_mib
        self._cgroup = cgroup
        self._keep = keep

    def finding(self, fault: Fault, runner: Runner) -> Finding:
        """Run one case under one runner and look at what is left."""
        if fault.only and runner.name not in fault.only:
            return Finding(fault.name, runner.name, (), 0.0, 0.0, "-")
        if fault.twice and not runner.has_slots:
            return Finding(fault.name, runner.name, (), 0.0, 0.0, "-")
        marker = f"sooner-bench-{secrets.token_hex(6)}"
        folder = Path(tempfile.gettempdir(), marker)
        for name in ("ready", "claims", "leases"):
            (folder / name).mkdir(parents=True)
        try:
            with _disk(folder, small=fault.small_disk) as disk:
                return self._run(fault, runner, folder, disk)
        finally:
            end_survivors(marker)
            if not self._keep:
                shutil.rmtree(folder, ignore_errors=True)

    def _run(self, fault: Fault, runner: Runner, folder: Path, disk: Path | None) -> Finding:
        if disk is None:
            return Finding(fault.name, runner.name, (), 0.0, 0.0, "not run: mounting a small disk needs root")
        began = time.monotonic()
        instances = [self._start(fault, runner, folder, disk / str(i)) for i in range(1 + fault.twice)]
        found = []
        if fault.hit:
            what = hit(fault.hit, instances[0].process, folder / "ready", wanted=len(fault.faulty[:DEVICES]))
            found += [Problem("?", what)] if what else []
        limit = time.monotonic() + _AFTER_HIT_S if fault.hit else began + _LIMIT_S
        codes = [_wait(instance.process, limit) for instance in instances]
        ended = time.monotonic()
        if None in codes:
            found.append(Problem("hang", f"no end after {ended - began:.0f} s"))
        found += self._settled(fault, runner, instances, codes, folder / "claims")
        return Finding(
            fault.name, runner.name, tuple(found), round(ended - began, 2), round(time.monotonic() - ended, 2)
        )

    def _start(self, fault: Fault, runner: Runner, folder: Path, out: Path) -> Instance:
        work = folder / f"work-{out.name}"
        work.mkdir()
        out.mkdir(parents=True, exist_ok=True)
        place = Place(work, out, folder.name, runner.units(fault.units))
        small = 2 * _SMALL_DISK_MIB if fault.small_disk else self._flood_mib
        env = {
            "BENCH_MARKER": place.marker,
            "BENCH_READY": str(folder / "ready"),
            "BENCH_CLAIMS": str(folder / "claims"),
            "BENCH_FLOOD_MIB": str(small),
            "BENCH_MEMORY_CGROUP": str(self._cgroup or ""),
            "TMPDIR": str(out),
            **runner.environment(place),
        }
        command = runner.command(place)
        # What a runner prints is for people; a flood of it would only fill the disk a second time.
        printed = Path(os.devnull) if fault.name == "flood of output" else work / "output.txt"
        with printed.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=work, env=peers.environment(env), stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        return Instance(place, process)

    def _settled(
        self,
        fault: Fault,
        runner: Runner,
        instances: Sequence[Instance],
        codes: Sequence[int | None],
        claims: Path,
    ) -> list[Problem]:
        """The problems that are left when all is well, nothing is alive that could change it, or the time is over."""
        deadline = time.monotonic() + _CLEAN_S[bool(fault.hit)]
        while True:
            alive = any(survivors(instance.place.marker) for instance in instances)
            found = [
                problem
                for instance, code in zip(instances, codes, strict=True)
                for problem in problems(fault, runner, instance.place, code, claims=claims)
            ]
            if not found or not alive or time.monotonic() > deadline:
                return found
            time.sleep(0.05)


def _wait(process: "subprocess.Popen[bytes]", limit: float) -> int | None:
    """The exit code, or None where the runner had to be killed."""
    try:
        return process.wait(max(0.1, limit - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


@contextlib.contextmanager
def _disk(folder: Path, *, small: bool) -> Iterator[Path | None]:
    """Where results go: the case's folder, or a file system of a few MiB in it (None where that cannot be had)."""
    disk = folder / "disk"
    disk.mkdir()
    if not small:
        yield disk
        return
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_SMALL_DISK_MIB}m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield disk
    finally:
        end_survivors(folder.name)
        subprocess.run(["umount", "-l", str(disk)], capture_output=True, check=False)


@contextlib.contextmanager
def _memory_cgroup() -> Iterator[Path | None]:
    """A memory cgroup with a small limit, version 1 or 2, or None where this user cannot make one."""
    for root, limit in (
        (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
        (Path("/sys/fs/cgroup"), "memory.max"),
    ):
        group = root / f"sooner-bench-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / limit).write_text(str(_MEMORY_MIB << 20), encoding="ascii")
        except OSError:
            group.rmdir()
            continue
        try:
            yield group
        finally:
            with contextlib.suppress(OSError):
                group.rmdir()
        return
    yield None


def report(findings: Sequence[Finding], runners: Sequence[Runner]) -> str:
    """The matrix, and what the codes in it mean."""
    cells = {(finding.fault, finding.runner): finding.cell for finding in findings}
    names = [runner.name for runner in runners]
    faults = list(dict.fromkeys(finding.fault for finding in findings))
    rows = [[fault, *(cells[fault, name] for name in names)] for fault in faults]
    used = {problem.code for finding in findings for problem in finding.problems}
    legend = [f"  {code}  {meaning}" for code, meaning in CODES.items() if code in used]
    return "\n".join([table(["fault", *names], rows), "", *legend])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--runners", nargs="+", choices=RUNNERS, default=list(RUNNERS))
    parser.add_argument("--faults", nargs="+", metavar="TEXT", default=[""], help="only faults whose name holds a text")
    parser.add_argument("--big", type=int, default=1024, metavar="MIB", help="size of the flood of output (1024)")
    parser.add_argument("--quick", action="store_true", help="a flood of 64 MiB")
    parser.add_argument("--keep", action="store_true", help="keep the folders of the cases")
    options = parser.parse_args()
    runners = [runner for name in options.runners if not (runner := RUNNERS[name]()).missing()]
    faults = [fault for fault in FAULTS if any(text in fault.name for text in options.faults)]
    before = machine()
    findings: list[Finding] = []
    with _memory_cgroup() as cgroup:
        print(
            f"host out of memory by {'a memory cgroup' if cgroup else 'RLIMIT_AS: no memory cgroup can be made here'}"
        )
        bench = Bench(flood_mib=64 if options.quick else options.big, cgroup=cgroup, keep=options.keep)
        for fault in faults:
            for runner in runners:
                findings.append(bench.finding(fault, runner))
                _tell(findings[-1])
    print(f"\n{report(findings, runners)}")
    document: dict[str, Any] = {
        "machine": before,
        "runners": {runner.name: runner.version for runner in runners},
        "findings": [{**f._asdict(), "problems": [p._asdict() for p in f.problems], "cell": f.cell} for f in findings],
    }
    print(f"\n{save('faults', document)}")
    return int(any(finding.problems for finding in findings if finding.runner == "sooner"))


def _tell(finding: Finding) -> None:
    if finding.cell == "-":
        return
    times = f"{finding.seconds:6.2f} s, clean {finding.clean_s:5.2f} s later"
    sys.stderr.write(f"{finding.fault:30} {finding.runner:15} {times}  {finding.cell}\n")
    for problem in finding.problems[:4]:
        sys.stderr.write(f"{'':33}{problem.code}: {problem.detail}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
