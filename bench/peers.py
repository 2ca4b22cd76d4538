"""Where the contestants come from: sooner from this checkout, its peers installed into `bench/.cache/`.

Every peer lives in an environment of its own, because they exclude each other (pytest-isolate needs an old pytest). A
peer that cannot be had here is reported on stderr and left out: no bench fails because of it.
"""

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

BENCH: Final = Path(__file__).resolve().parent
SOURCE: Final = BENCH.parent / "src"
CACHE: Final = BENCH / ".cache"

SOONER: Final = (sys.executable, "-m", "sooner")
_LEFT_OUT: Final = ("CI", "GITHUB_ACTIONS", "PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS", "PARALLEL")
_LEFT_OUT_PREFIXES: Final = ("SOONER_", "CTEST_", "CUDA_", "HIP_", "ROCR_", "PYTEST_")
_INSTALL_S: Final = 300


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what would change how a contestant behaves, and with `extra`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _LEFT_OUT and not name.startswith(_LEFT_OUT_PREFIXES)
    }
    path = os.pathsep.join(filter(None, (str(SOURCE), kept.get("PYTHONPATH", ""))))
    return {**kept, "LC_ALL": "C.UTF-8", "PYTHONPATH": path, **(extra or {})}


def ctest() -> Path | None:
    """CTest 4: the executable itself, not the Python script that PyPI's cmake puts before it."""
    python = _venv("cmake", "cmake>=4")
    found = CACHE.glob("cmake/lib/python*/site-packages/cmake/data/bin/ctest")
    return next(found, None) if python else None


def pytest_isolate() -> Path | None:
    """A Python with pytest-isolate, the last pytest that it works with, and xdist, which gives it its parallelism."""
    return _venv("isolate", "pytest-isolate", "pytest==8.2.1", "pytest-xdist")


def pytest_xdist() -> Path | None:
    """A Python with pytest-xdist and the newest pytest."""
    return _venv("xdist", "pytest-xdist", "pytest")


def pytest_xdist_with_sooner() -> Path | None:
    """One environment for plain pytest, pytest-xdist and the door: plugins of others cost each of them the same."""
    return _venv("xdist-sooner", "pytest-xdist", "pytest", str(SOURCE.parent))


def plain_pytest() -> Path | None:
    """A Python with pytest, for suites of stub tests: xdist's, which does nothing unless it is asked."""
    return pytest_xdist()


def gnu_parallel() -> Path | None:
    """GNU parallel: the one on PATH, or Debian's package unpacked into the cache, where nothing needs root."""
    unpacked = CACHE / "parallel" / "usr" / "bin" / "parallel"
    if found := shutil.which("parallel"):
        version = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
        if version.startswith("GNU parallel"):
            return Path(found)
    if not unpacked.exists():
        _attempt("GNU parallel", _unpack_parallel)
    return unpacked if unpacked.exists() else None


def version_of(*command: str | Path) -> str:
    """The first line of what a version command prints."""
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    return (result.stdout or result.stderr).partition("\n")[0].strip()


def package_versions(python: Path, *names: str) -> str:
    """The versions of packages in another environment, as `name 1.2, other 3.4`."""
    program = "import sys, importlib.metadata as m; print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    return version_of(python, "-c", program, *names)


def _venv(name: str, *requirements: str) -> Path | None:
    folder = CACHE / name
    python, stamp, wanted = folder / "bin" / "python", folder / "complete", "\n".join(requirements)
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        _attempt(name, lambda: _install(folder, requirements))
        if not folder.exists():
            return None
        stamp.write_text(wanted, encoding="utf-8")
    return python


def _install(folder: Path, requirements: tuple[str, ...]) -> None:
    try:
        venv.create(folder, with_pip=True, clear=True)
        pip = [folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        subprocess.run([*pip, *requirements], check=True, capture_output=True, timeout=_INSTALL_S)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _unpack_parallel() -> None:
    download = CACHE / "download"
    download.mkdir(parents=True, exist_ok=True)
    # As root, apt would like to drop to a user who can write here, and warns where it cannot.
    apt = ["apt-get", "-o", "APT::Sandbox::User=root", "download", "parallel"]
    if subprocess.run(apt, cwd=download, capture_output=True, timeout=_INSTALL_S, check=False).returncode:
        subprocess.run(["apt-get", "update"], capture_output=True, timeout=_INSTALL_S, check=False)
        subprocess.run(apt, cwd=download, capture_output=True, timeout=_INSTALL_S, check=True)
    package = next(download.glob("parallel_*.deb"))
    subprocess.run(["dpkg-deb", "-x", package, CACHE / "parallel"], check=True, capture_output=True)


def _attempt(name: str, install: Callable[[], None]) -> None:
    sys.stderr.write(f"bench: installing {name} into {CACHE.relative_to(BENCH.parent)}/\n")
    try:
        install()
    except (OSError, StopIteration, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip()[-300:]
        sys.stderr.write(f"bench: {name} is left out, it cannot be installed here: {error} {said}\n")
