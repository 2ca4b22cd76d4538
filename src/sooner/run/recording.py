"""Runs an unmodified shell script and records its test runs instead of running them.

Two techniques meet. A folder of shims stands first on PATH: `python`, `pytest` and `torchrun` calls that
run tests append themselves to a record and end with 0 (`recorder_shim.py`); every other call becomes the
real program. And a DEBUG trap, which bash loads through BASH_ENV, tells the shims which line of the script
is speaking and keeps them first on PATH when the script changes it (a virtual environment is activated). A
script for sh has no such trap: its calls are recorded without their lines.

What it does not see: programs that are called by their path (`.venv/bin/pytest`), and what starts without
PATH (`env -i`). A script that sets a DEBUG trap of its own loses the lines.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TextIO

from msgspec import Struct

from sooner.model.errors import UsageError

_TOOLS: Final = ("python", "python3", "pytest", "py.test", "torchrun")
_VERSIONED: Final = "python3.[0-9]*"
_SHELLS: Final = ("bash", "sh", "dash")
_RECORDER: Final = Path(__file__).with_name("recorder_shim.py")
_LONGEST_SHEBANG: Final = 127
"""Linux before 5.1 cuts a `#!` line there (BINPRM_BUF_SIZE)."""
_SIGNAL_BASE: Final = 128

_SH_SHIM: Final = """\
#!/bin/sh
# Made by sooner. Calls that may run tests go to the recorder; all others become the real program.
case "${{0##*/}} $*" in *pytest* | *py.test* | *torch*) exec {python} -IS {recorder} "$0" "$@" ;; esac
_sooner_name=${{0##*/}} _sooner_shims=${{0%/*}}
set -f
IFS=:
for _sooner_folder in $PATH; do
    [ "$_sooner_folder" = "$_sooner_shims" ] && continue
    _sooner_real=${{_sooner_folder:-.}}/$_sooner_name
    if [ -f "$_sooner_real" ] && [ -x "$_sooner_real" ]; then exec "$_sooner_real" "$@"; fi
done
echo "$_sooner_name: command not found" >&2
exit 127
"""

_TRAP: Final = (
    # The group sends the trace of `set -x` away; the last command gives `$_` back. bash itself keeps `$?` and
    # PIPESTATUS. printf and not "${x[*]}": the script may have changed IFS.
    "{{ _sooner_last=$_; _sooner_shims={shims};"
    ' printf -v SOONER_RECORD_LINES "%s " "$LINENO" ${{BASH_LINENO[@]+"${{BASH_LINENO[@]}}"}};'
    ' printf -v SOONER_RECORD_FILES "%s\\n" ${{BASH_SOURCE[@]+"${{BASH_SOURCE[@]}}"}};'
    ' printf -v SOONER_RECORD_FUNCTIONS "%s " ${{FUNCNAME[@]+"${{FUNCNAME[@]}}"}};'
    " SOONER_RECORD_COMMAND=${{BASH_COMMAND:0:4000}};"
    ' case ${{PATH-}} in "" | "$_sooner_shims":*) ;;'
    ' *) PATH=$_sooner_shims:${{PATH//"$_sooner_shims:"/}}; _sooner_new=1 ;; esac;'
    " case ${{_sooner_new-}}$BASH_COMMAND in 1* | *pytest* | *py.test* | *torchrun*) _sooner_new=;"
    " for _sooner_name in {tools}; do"
    ' [[ -e $_sooner_shims/$_sooner_name ]] || ! type -P "$_sooner_name" ||'
    ' command ln -s ../shim "$_sooner_shims/$_sooner_name" || :;'
    ' done ;; esac; : "$_sooner_last"; }} 2>/dev/null >/dev/null'
)

_BASH_ENV: Final = """\
# Made by sooner: tells the shims which line of the script is speaking.
if [ -n "${{SOONER_RECORD_BASH_ENV:-}}" ]; then . "$SOONER_RECORD_BASH_ENV"; fi
if [ -z "${{BASH_EXECUTION_STRING+x}}" ]; then
    export SOONER_RECORD_LINES= SOONER_RECORD_FILES= SOONER_RECORD_FUNCTIONS= SOONER_RECORD_COMMAND=
    set -T
    trap {trap} DEBUG
fi
"""


class Recording(Struct, frozen=True, kw_only=True):
    """What a script did."""

    calls: bytes
    """The recorded test runs, as JSON lines; `sooner.plan.invocations.read_invocations` reads them."""
    exit_code: int
    """Of the script, in which every recorded call counted as passed; 128 + N after signal N."""
    script: str
    """The path by which the script's shell knows it."""
    text: str
    """Content of the script."""


def record(
    script: Path, *, args: Sequence[str], env: Mapping[str, str], cwd: Path, stdout: TextIO | None = None
) -> Recording:
    """Run a script in place, with its streams inherited (or another `stdout`), and record its test runs.

    Raises:
        UsageError: There is no such script, it is none for bash or sh, or nothing can be executed in TMPDIR.
    """
    text = _read(script if script.is_absolute() else cwd / script)
    shell = _shell(text, script)
    with tempfile.TemporaryDirectory(prefix="sooner-record-") as name:
        folder = Path(name).resolve()
        shims = _install(folder, env)
        command = [*shell, str(script), *args]
        ended = subprocess.run(command, env=_environment(folder, shims, env), cwd=cwd, stdout=stdout, check=False)
        calls = folder / "calls.jsonl"
        code = ended.returncode if ended.returncode >= 0 else _SIGNAL_BASE - ended.returncode
        return Recording(
            calls=calls.read_bytes() if calls.exists() else b"", exit_code=code, script=str(script), text=text
        )


def _read(script: Path) -> str:
    try:
        return script.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise UsageError(f"{script}: {error.strerror}: `sooner script` needs the path of a shell script") from None


def _shell(text: str, script: Path) -> list[str]:
    """The shell that the script asks for, with its options: bash where it does not say."""
    first = text.split("\n", 1)[0]
    if not first.startswith("#!"):
        return ["bash"]
    words = first[2:].split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if word != "-S"]
    if words and Path(words[0]).name in _SHELLS:
        return words
    raise UsageError(f"{script} asks for {first[2:].strip()!r}: `sooner script` records scripts for bash and sh")


def _install(folder: Path, env: Mapping[str, str]) -> Path:
    """Write the shims and the file for BASH_ENV; the folder of the shims."""
    shims, shim = folder / "shims", folder / "shim"
    shims.mkdir()
    shim.write_text(_shim(env), encoding="utf-8")
    shim.chmod(0o755)
    if not os.access(shim, os.X_OK):
        raise UsageError(f"nothing can be executed in {folder.parent} (mounted noexec): set TMPDIR to another folder")
    for name in _present(env.get("PATH", os.defpath)):
        (shims / name).symlink_to("../shim")
    trap = _TRAP.format(shims=shlex.quote(str(shims)), tools=" ".join(_TOOLS))
    (folder / "bash_env").write_text(_BASH_ENV.format(trap=shlex.quote(trap)), encoding="utf-8")
    return shims


def _shim(env: Mapping[str, str]) -> str:
    """A shim in sh, because it starts in one millisecond; in Python where sh would lose variables.

    dash drops variables whose names are no identifiers, for instance exported functions of bash.
    """
    shebang = f"#!{sys.executable} -IS\n"
    exact = all(name.isidentifier() for name in env)
    if exact or len(shebang) > _LONGEST_SHEBANG or " " in sys.executable:
        return _SH_SHIM.format(python=shlex.quote(sys.executable), recorder=shlex.quote(str(_RECORDER)))
    return shebang + _RECORDER.read_text(encoding="utf-8")


def _present(path: str) -> set[str]:
    """The programs to stand in for: `command -v pytest` must not find what is not there."""
    versioned = (
        found.name
        for folder in path.split(":")
        if folder
        for found in Path(folder).glob(_VERSIONED)
        if found.name.removeprefix("python3.").isdigit()
    )
    return {name for name in (*_TOOLS, *versioned) if shutil.which(name, path=path)}


def _environment(folder: Path, shims: Path, env: Mapping[str, str]) -> dict[str, str]:
    original = {"SOONER_RECORD_BASH_ENV": env["BASH_ENV"]} if env.get("BASH_ENV") else {}
    path = f"{shims}:{env.get('PATH', os.defpath)}"
    return {**env, **original, "PATH": path, "BASH_ENV": str(folder / "bash_env")}
