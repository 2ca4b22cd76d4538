"""Recording runs real scripts, in bash and sh, with stand-ins for python, pytest and torchrun on PATH."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from sooner.model.errors import UsageError
from sooner.plan.dependence import dependence_notes
from sooner.plan.invocations import Invocation, keys_of, read_invocations, units_of
from sooner.run import recorder_shim
from sooner.run.recording import Recording, record

PREFIXES = {
    "sanity": "GROUPED=1",
    "numerics": "PYTORCH_JIT=0 TORCH_COMPILE=0 NONDETERMINISTIC=0 FUSED=0",
    "cuda_graphs": "PYTORCH_JIT=0 TORCH_COMPILE=0 NONDETERMINISTIC=0 FUSED=0",
    "grouped_tensor": "GROUPED=1",
    "offloading_v1": "FLASH=0 OFFLOAD_V1=1",
    "attention": "UNSAFE=1",
    "attention_deterministic": "UNSAFE=1 NONDETERMINISTIC=0",
    "mhc": "NO_AUTOTUNING=1 TF32=0",
    "mhc_deterministic": "NONDETERMINISTIC=0 NO_AUTOTUNING=1 TF32=0",
    "grouped_linear": "PYTORCH_JIT=0 TORCH_COMPILE=0",
    "ops_grouped_linear": "PYTORCH_JIT=0 TORCH_COMPILE=0",
    "grouped_mlp": "GROUPED=1 FUSED_MLP=1",
}
FILES = {"attention_deterministic": "attention/test_attention.py", "mhc_deterministic": "test_mhc.py"}
PLAIN = [f"plain_{number}" for number in range(37)]
TRANSFORMER_ENGINE_HEAD = """\
function error_exit() {
    echo "Error: $1"
    exit 1
}

function test_fail() {
    RET=1
    FAILED_CASES="$FAILED_CASES $1"
    echo "Error: sub-test failed: $1"
}

RET=0
FAILED_CASES=""

set -x

: ${TE_PATH:=/opt/te}
: ${XML_LOG_DIR:=/logs}
mkdir -p "$XML_LOG_DIR"

python3 make_artifacts.py || error_exit "Failed to generate"
"""
TRANSFORMER_ENGINE_TAIL = """\
if [ "$RET" -ne 0 ]; then
    echo "Error in the following test cases:$FAILED_CASES"
    exit 1
fi
echo "All tests passed"
exit 0
"""


def transformer_engine_script() -> str:
    """The idioms of the real script: 49 calls, 12 with a prefix, two files twice, an export half-way."""
    calls = []
    for name in [*PREFIXES, *PLAIN]:
        file = FILES.get(name, "attention/test_attention.py" if name == "attention" else f"test_{name}.py")
        prefix = f"{PREFIXES[name]} " if name in PREFIXES else ""
        junit = f"--junitxml=$XML_LOG_DIR/pytest_test_{name}.xml"
        calls.append(f'{prefix}python3 -m pytest --tb=auto {junit} $TE_PATH/tests/{file} || test_fail "test_{name}.py"')
    calls.insert(30, "export ARTIFACTS=$TE_PATH/artifacts")
    return TRANSFORMER_ENGINE_HEAD + "\n".join(calls) + "\n" + TRANSFORMER_ENGINE_TAIL


class Sandbox:
    """A folder with fake programs on PATH, each of which says that it ran."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        (self.bin / "python3").symlink_to(sys.executable)
        for name in ("pytest", "torchrun"):
            self.program(self.bin / name)
        self.env = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"}

    def program(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\necho "REALLY RAN {path.name} $*" >> {self.folder}/ran\n', encoding="utf-8")
        path.chmod(0o755)

    def script(self, text: str, name: str = "test.sh") -> Path:
        path = self.folder / name
        path.write_bytes(os.fsencode(text))
        return path

    def record(self, text: str, *args: str, **env: str) -> Recording:
        return record(self.script(text), args=args, env={**self.env, **env}, cwd=self.folder)

    def calls(self, text: str, **env: str) -> tuple[Invocation, ...]:
        return self.read(self.record(text, **env))

    def read(self, recording: Recording) -> tuple[Invocation, ...]:
        return read_invocations(recording.calls, script=recording.script, script_text=recording.text)

    def lines(self, text: str) -> list[int]:
        return [call.line for call in self.calls(text)]

    def ran(self) -> str:
        path = self.folder / "ran"
        return path.read_text(encoding="utf-8") if path.exists() else ""


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def arguments(calls: tuple[Invocation, ...]) -> list[str]:
    return [call.argv[-1] for call in calls]


def without_paths(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name not in ("PWD", "OLDPWD", "SHLVL", "_")}


def test_the_transformer_engine_script_becomes_49_units_with_their_variants(sandbox: Sandbox) -> None:
    sandbox.script("open('made', 'w').close()", "make_artifacts.py")
    env = {"TE_PATH": "/te", "XML_LOG_DIR": str(sandbox.folder / "xml")}
    recording = sandbox.record(transformer_engine_script(), **env)
    plan = units_of(sandbox.read(recording), base_env=sandbox.env | env, source="test.sh")
    assert recording.exit_code == 0
    assert (sandbox.folder / "made").exists()
    assert sandbox.ran() == ""
    expected = {f"pytest_test_{name}": PREFIXES.get(name, "") for name in [*PREFIXES, *PLAIN]}
    assert {unit.name: unit.variant for unit in plan.units} == {
        name: " ".join(sorted(prefix.split())) for name, prefix in expected.items()
    }
    assert [unit.name for unit in plan.units] == list(expected)
    assert plan.units[0].command[1:3] == ("-m", "pytest")
    assert plan.units[0].command[0] == str(sandbox.bin / "python3")
    assert plan.units[0].junit == str(sandbox.folder / "xml" / "pytest_test_sanity.xml")
    assert plan.units[-1].env["ARTIFACTS"] == "/te/artifacts"
    assert plan.units[-1].variant == ""


def test_every_handler_of_the_transformer_engine_script_is_noted(sandbox: Sandbox) -> None:
    sandbox.script("", "make_artifacts.py")
    env = sandbox.env | {"TE_PATH": "/te", "XML_LOG_DIR": str(sandbox.folder / "xml")}
    recording = record(sandbox.script(transformer_engine_script()), args=(), env=env, cwd=sandbox.folder)
    calls = sandbox.read(recording)
    notes = dependence_notes(recording.text, calls, keys=keys_of(calls, base_env=env), source="qa/test.sh")
    line = recording.text[: recording.text.index("python3 -m pytest")].count("\n") + 1
    assert len(notes) == 49
    assert notes[0] == (
        f'qa/test.sh:{line}: "|| test_fail "test_sanity.py"" depends on the result of '
        "pytest_test_sanity|GROUPED=1: it was recorded, not run, and counts as passed there; "
        "sooner itself reports the failure and sets the exit code"
    )


def test_lines_are_known_in_functions_loops_subshells_and_handlers(sandbox: Sandbox) -> None:
    script = """\
run() {
    A=1 pytest "$@"
}
run one
for i in two three; do
    pytest $i || echo handler
done
(
  pytest four
)
x=$(pytest five)
pytest six | cat
if ! pytest seven; then :; fi
pytest \\
    eight
"""
    calls = sandbox.calls(script)
    assert arguments(calls) == ["one", "two", "three", "four", "five", "six", "seven", "eight"]
    assert [call.line for call in calls] == [4, 6, 6, 9, 11, 12, 13, 14]
    assert calls[0].places == ((4, "run"), (2, ""))
    assert calls[7].text == "pytest      eight"


def test_a_prefix_of_a_function_call_is_the_variant_of_what_the_function_runs(sandbox: Sandbox) -> None:
    calls = sandbox.calls('run() { pytest "$@"; }\nMODE=a run test_x.py\nMODE=b run test_x.py\nrun test_y.py\n')
    keys = keys_of(calls, base_env=sandbox.env)
    assert keys == ["test_x|MODE=a", "test_x|MODE=b", "test_y"]


def test_a_directory_change_is_part_of_the_call(sandbox: Sandbox) -> None:
    (sandbox.folder / "sub").mkdir()
    calls = sandbox.calls("cd sub\npytest --junitxml=out/a.xml a\ncd ..\n(cd sub && pytest b)\npytest c\n")
    assert [call.cwd for call in calls] == [str(sandbox.folder / path) for path in ("sub", "sub", ".")]
    plan = units_of(calls, base_env=sandbox.env, source="test.sh")
    assert plan.units[0].junit == str(sandbox.folder / "sub" / "out" / "a.xml")


def test_the_recorded_environment_is_the_one_without_the_recorder(sandbox: Sandbox) -> None:
    (call,) = sandbox.calls("set -a\nX=1 pytest a\n")
    assert without_paths(call.env) == sandbox.env | {"X": "1"}


def test_an_inherited_bash_env_is_loaded_and_restored(sandbox: Sandbox) -> None:
    startup = sandbox.script("export FROM_STARTUP=1\n", "startup")
    (call,) = sandbox.calls("pytest a\n", BASH_ENV=str(startup))
    assert call.env["FROM_STARTUP"] == "1"
    assert call.env["BASH_ENV"] == str(startup)


@pytest.mark.parametrize(
    "command",
    [
        "python3 -m pytest x", "python3 -u -m pytest x", "python3 -um pytest x", "python3 -mpytest x",
        "python3 -X dev -W error -m pytest x", "python3 -m torch.distributed.run x", "pytest x",
        "python3 -m torch.distributed.launch x", "torchrun --nproc_per_node=2 x", "env A=1 pytest x",
        "timeout 300 pytest x", "exec pytest x", "command pytest x", 'python3 "$(command -v pytest)" x',
        "bash -c 'pytest x'", "sh -c 'pytest x; true'", "echo x | xargs pytest", "nohup pytest x",
    ],
)  # fmt: skip
def test_test_runs_are_recorded_however_they_are_spelled(sandbox: Sandbox, command: str) -> None:
    (call,) = sandbox.calls(f"{command}\n")
    assert call.argv[-1] == "x"
    assert call.line == 1
    assert not any("sooner-record" in word for word in call.argv)
    assert sandbox.ran() == ""


@pytest.mark.parametrize(
    "command",
    [
        'python3 -c \'open("ran", "w").write("yes")\' pytest',
        'echo \'open("ran", "w").write("yes")\' | python3 - torch',
        "python3 script.py -m pytest",
        "pytest --version",
        "torchrun --help",
        "x=$(pytest --collect-only -q tests)",
        ".venv/bin/pytest x",
    ],
)
def test_everything_else_runs_at_once_in_place(sandbox: Sandbox, command: str) -> None:
    sandbox.script("open('ran', 'w').write('yes')", "script.py")
    sandbox.program(sandbox.folder / ".venv" / "bin" / "pytest")
    assert sandbox.calls(f"{command}\n") == ()
    assert sandbox.ran()


def test_a_timeout_around_a_call_is_its_limit(sandbox: Sandbox) -> None:
    plan = units_of(sandbox.calls("timeout -k 5 2m pytest x\n"), base_env=sandbox.env, source="test.sh")
    assert plan.units[0].timeout_s == 120.0


def test_children_of_other_programs_are_recorded_too(sandbox: Sandbox) -> None:
    sandbox.script("import subprocess\nsubprocess.run(['pytest', 'x'], check=True)\n", "driver.py")
    (call,) = sandbox.calls("true\npython3 driver.py\n")
    assert (call.argv[1:], call.line) == (("x",), 2)


def test_a_nested_script_is_recorded_with_its_own_lines(sandbox: Sandbox) -> None:
    sandbox.script("true\nA=1 pytest x\n", "inner.sh")
    (call,) = sandbox.calls("bash inner.sh\n")
    assert (call.script, call.line, call.text) == ("inner.sh", 2, "A=1 pytest x")


def test_a_virtual_environment_that_the_script_activates_is_recorded(sandbox: Sandbox) -> None:
    sandbox.program(sandbox.folder / "venv" / "bin" / "pytest")
    calls = sandbox.calls('PATH="$PWD/venv/bin:$PATH"\npytest x\n')
    assert calls[0].argv[0] == str(sandbox.folder / "venv" / "bin" / "pytest")
    assert calls[0].env["PATH"] == f"{sandbox.folder}/venv/bin:{sandbox.env['PATH']}"


def test_a_tool_that_the_script_installs_is_recorded(sandbox: Sandbox) -> None:
    (sandbox.bin / "pytest").unlink()
    script = "pytest early; echo $? > code\necho '#!/bin/sh' > bin/pytest; chmod +x bin/pytest\npytest late\n"
    assert arguments(sandbox.calls(script)) == ["late"]
    assert (sandbox.folder / "code").read_text(encoding="utf-8") == "127\n"


def test_a_script_for_sh_is_recorded_without_lines(sandbox: Sandbox) -> None:
    script = "#!/bin/sh\nA=1 pytest tests/test_a.py || true\npytest tests/test_a.py\n"
    calls = sandbox.calls(script)
    assert [call.line for call in calls] == [0, 0]
    assert keys_of(calls, base_env=sandbox.env) == ["test_a|A=1", "test_a"]
    assert dependence_notes(script, calls, source="t.sh") == (
        (
            't.sh:2: "|| true" depends on the result of a recorded call: it was recorded, not run, and '
            "counts as passed there; sooner itself reports the failure and sets the exit code"
        ),
    )


def test_the_script_sees_its_own_status_variables_unharmed(sandbox: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    script = """\
#!/bin/bash -u
IFS=,
false; echo "status $?"
false | true; echo "pipe ${PIPESTATUS[*]}"
echo last word > /dev/null; echo "$_"
set -e
[[ abc =~ (b) ]]; echo "${BASH_REMATCH[1]}"
set -x
true
f() { return 0; }; f
exit 7
"""
    path = sandbox.script(script)
    plain = subprocess.run(["bash", "-u", path], env=sandbox.env, capture_output=True, text=True, check=False)
    recording = record(path, args=(), env=sandbox.env, cwd=sandbox.folder)
    recorded = capfd.readouterr()
    assert (recorded.out, recorded.err) == (plain.stdout, plain.stderr)
    assert recording.exit_code == plain.returncode == 7


def test_a_strict_script_may_do_without_path(sandbox: Sandbox) -> None:
    recording = sandbox.record("set -eu\npytest a\nunset PATH\n: still here\nexit 3\n")
    assert (arguments(sandbox.read(recording)), recording.exit_code) == (["a"], 3)


def test_a_script_gets_its_arguments_and_may_die_by_a_signal(sandbox: Sandbox) -> None:
    recording = sandbox.record('pytest "$1"\nkill -TERM $$\n', "first argument")
    assert arguments(sandbox.read(recording)) == ["first argument"]
    assert recording.exit_code == 143


def test_bytes_that_are_not_utf_8_survive(sandbox: Sandbox) -> None:
    (call,) = sandbox.calls("X=$'v\\xff' pytest $'test_\\xfe.py'\n")
    assert os.fsencode(call.argv[-1]) == b"test_\xfe.py"
    assert os.fsencode(call.env["X"]) == b"v\xff"
    (unit,) = units_of([call], base_env=sandbox.env, source="test.sh").units
    assert unit.name == "test_\\xfe"


def test_exported_functions_survive(sandbox: Sandbox) -> None:
    name, body = "BASH_FUNC_greet%%", "() {  echo hello\n}"
    sandbox.script("import subprocess\nsubprocess.run(['bash', '-c', 'greet > greeting'])\n", "child.py")
    (call,) = sandbox.calls("python3 child.py\npytest x\n", **{name: body})
    assert (sandbox.folder / "greeting").read_text(encoding="utf-8") == "hello\n"
    assert call.env[name] == body


def test_calls_at_the_same_time_are_all_recorded(sandbox: Sandbox) -> None:
    calls = sandbox.calls("for i in 1 2 3 4 5 6 7 8; do pytest $i & done; wait\n")
    assert sorted(arguments(calls)) == list("12345678")


@pytest.mark.parametrize("first", ["#!/usr/bin/env python3", "#!/bin/zsh"])
def test_a_script_for_another_interpreter_is_refused(sandbox: Sandbox, first: str) -> None:
    with pytest.raises(UsageError, match="records scripts for bash and sh"):
        sandbox.record(f"{first}\n")


def test_a_missing_script_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no\.sh: No such file"):
        record(Path("no.sh"), args=(), env={}, cwd=tmp_path)


def test_the_recorder_needs_nothing_but_the_standard_library() -> None:
    command = [sys.executable, "-IS", recorder_shim.__file__, "/nowhere/shims/no-such-tool"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (127, "no-such-tool: command not found\n")


def test_a_record_is_one_json_line_a_call(sandbox: Sandbox) -> None:
    recording = sandbox.record("pytest a\npytest b\n")
    assert [json.loads(line)["version"] for line in recording.calls.splitlines()] == [1, 1]
