"""Command lines that start several processes: torchrun, accelerate launch, mpirun, deepspeed, and engines' options."""

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Cls,
    Dev,
    Ext,
    Inst,
    Mod,
    Native,
    OutOfFuel,
    Raised,
    Soft,
    Text,
    Unknown,
    hard,
)
from sooner.plan.needs.facts import SIZES
from sooner.plan.needs.frameworks.masks import MASKS, as_program, is_masked
from sooner.plan.needs.processes.programs import (
    ON_DEVICES,
    imports_nccl,
    imports_strangers,
    is_of_torch_alone,
    run_again,
    run_file,
    run_text,
)
from sooner.plan.needs.processes.shell_scripts import commands
from sooner.plan.needs.processes.written_programs import program_in
from sooner.plan.needs.testing.replacing import OF_RANKS

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_PER_NODE: Final = re.compile(r"^--(?:nproc[_-]per[_-]node|num[_-]processes|num_gpus|nprocs?)$")
_RANKS: Final = re.compile(r"^--(?:nproc[_-]per[_-]node|num[_-]processes)$")
_SHORT: Final = ("-np", "-n", "--np", "--ntasks")
_LAUNCHERS: Final = re.compile(
    r"(torchrun|torch\.distributed\.(run|launch)|mpirun|mpiexec|srun|accelerate|deepspeed|horovodrun)"
)
_MPI: Final = re.compile(r"(mpirun|mpiexec|srun|horovodrun)")
_PARALLEL: Final = re.compile(
    r"^(--tensor-parallel-size|-tp|--tp|--tp-size|--pipeline-parallel-size|-pp|--pp|--pp-size|--data-parallel-size|-dp|--dp|--dp-size"
    r"|--num-shard)$"
)
_REPLICAS: Final = ("--data-parallel-size", "-dp", "--dp", "--dp-size")
_GPUS: Final = re.compile(r"^--?(?:[a-z]+[-_])*(?:n[-_]?|num[-_])gpus?$")
_TOLD_GPUS: Final = re.compile(r"^(?:N|N_|NUM_)GPUS?$")
_TRAINS: Final = re.compile(r"^\s*(?:from|import) (?:transformers|trl)\b.*?Trainer\(", re.MULTILINE | re.DOTALL)
_SPREADS: Final = re.compile(r"from_pretrained\(.*?\b(?:tp_plan|distributed_config)=|[\"']tp_plan[\"']\]", re.DOTALL)
"""A model of transformers' that is split over ranks: on their devices, or on the host where there is none."""
_ENGINES: Final = re.compile(r"vllm\.entrypoints\.(openai\.)?(api_server|run_batch)|sglang\.launch_server")
_ENGINE_PROGRAMS: Final = ("vllm", "vllm.entrypoints.cli.main", "vllm-omni", "vllm_omni.entrypoints.cli.main")
_ENGINE_VERBS: Final = ("serve", "run-batch")
_SHARDED: Final = ("text-generation-launcher",)
"""Of servers that may do on the host, too: one is taken to have a device for each of its shards."""
_ENGINE_BENCHES: Final = ("throughput", "latency", "startup", "mm-processor")
"""Of `vllm bench`: those that load a model themselves, and ask no server."""
_DRIVERS: Final = "nvidia-smi"
_SHELLS: Final = ("bash", "sh", "dash", "zsh")
_SPEAKS: Final = ("echo", "printf")
_NAMED_IN_TEXT: Final = re.compile(r"(?:VISIBLE_DEVICES|(?:cuda|rocm)_visible_devices)\W{1,6}(\d+(?:,\d+)*)\b")
_MODULES: Final = {
    "accelerate.commands.launch": "accelerate-launch",
    "accelerate.commands.accelerate_cli": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
}
"""Modules that are launchers, and the programs that do the same."""
_INCLUDED: Final = re.compile(r"(?:^| )(?:-i|--include)[ =][^ @]*:(\d+(?:,\d+)*)(?: |$)")
"""Of DeepSpeed's launcher: the devices that it may take on one node (`localhost:0,1`)."""
_SETTINGS: Final = "accelerate's settings"
"""As a variable of the environment: the test has written such a file; None where it says as many as there are."""
_PROCESSES: Final = re.compile(r"^\s*num_processes:\s*(\d+)\s*$", re.MULTILINE)
_SAYS_WHERE: Final = re.compile(r"\bis_available\(|\bdevice_count\(|[\"']gloo[\"']")
"""In a program that a test writes: it asks for devices, or meets on the host."""
_CHOOSES: Final = re.compile(r"is_available\(\)[^#]{0,120}?[\"']cpu[\"']|[\"']cpu[\"'][^\n]{0,80}is_available\(\)")
"""In a script of the tree: it takes the host where there is no device (`"cuda" if is_available() else "cpu"`)."""
_FUEL_OF_RANKS: Final = 10_000
_CPU_WORDS: Final = ("--cpu", "--use_cpu", "gloo", "--no_cuda", "--no-cuda")


def launch(machine: "Machine", command: Any, environment: Any = None, *, is_checked: bool = False) -> Any:
    """Note the processes that a command starts, and the devices that they use; gives what the command gives.

    Args:
        machine: Evaluates.
        command: Words, or one line.
        environment: What the processes are given of it, as far as it is known.
        is_checked: Whether it raises where the command fails.

    Raises:
        Raised: There are fewer devices than its processes use.
    """
    machine.trace.starts.in_loops.update(machine.turning)
    with as_program(machine, environment) as seen:
        return _launch(machine, command, seen, is_checked=is_checked)


def _launch(machine: "Machine", command: Any, environment: Any, *, is_checked: bool) -> Any:
    words = _words(machine, command)
    _touch_given(machine, words, environment)
    if words and isinstance(words[0], str) and words[0].rpartition("/")[2] == _DRIVERS:
        is_shells = isinstance(hard(command), str | Text)
        return _of_drivers(machine, is_shells=is_shells, is_checked=is_checked)
    if words is not None and (_starts_engine(machine, words) or _runs_script(machine, words, environment)):
        return Unknown("process")
    if words is None or not _launches(words):
        return _alone(machine, words or [], environment, is_checked=is_checked)
    count = process_count(words)
    if (kind := _told_processes(words)) == "gpu" or (kind == "auto" and machine.visible()):
        count = machine.visible()
    if count is UNKNOWN and (taken := _taken_of_itself(machine, words)) is not UNKNOWN:
        if taken and not _is_on_host(words):
            machine.started(taken)
            if _uses_devices(machine, words):
                machine.need(taken, "a launcher takes the devices that there are")
        return Unknown("process")
    if count is UNKNOWN and _starts_one(words):
        count = 1
    if count is UNKNOWN:
        machine.guesses += _says_a_number(words)
        return Unknown("process")
    _started(machine, words, count, environment)
    return Unknown("process")


def _starts_engine(machine: "Machine", words: list[Any]) -> bool:
    """Whether a command starts an engine; if so, it has a device for each of its ranks."""
    if not _serves(words):
        return False
    size = parallel_size(words)
    if isinstance(size, int):
        machine.guesses += _is_sharded(words)
        machine.need(max(1, size), "an engine is started")
    return True


def _of_drivers(machine: "Machine", *, is_shells: bool, is_checked: bool) -> Any:
    """What the driver's tool gives: it is not there without a device. A mask hides no device from it: who knows?"""
    machine.guesses += 1
    if machine.visible():
        return Unknown("process")
    if is_shells and not is_checked:
        return failed_process(machine)
    kind = "CalledProcessError" if is_shells else "FileNotFoundError"
    raise Raised(kind, f"{_DRIVERS} without a device", *machine.current, device=True)


def _launches(words: list[Any]) -> bool:
    """Whether a command starts ranks: a launcher's, or that of a program which is told a number as launchers are.

    `lib train job.yaml --num-processes 2` does; a script's `--num_processes` may be of any kind (`python prepare.py`).
    """
    texts = [each for each in words if isinstance(each, str)]
    if any(_LAUNCHERS.search(each) for each in texts):
        return True
    is_script = any(each.endswith((".py", ".sh")) for each in texts) or not texts or "python" in texts[0]
    return not is_script and any(_RANKS.match(each.partition("=")[0]) for each in texts)


def _runs_script(machine: "Machine", words: list[Any], environment: Any) -> bool:
    """Whether a command is a shell script of the tree that starts ranks or engines; if so, these are started."""
    place = 1 if words and str(_start(words[0])).rpartition("/")[2] in _SHELLS else 0
    said = [_pieces(each)[-1] if _pieces(each) else "" for each in words]
    place = next((i for i in range(place, len(said)) if not said[i].startswith("-")), len(said))
    if place >= len(said) or not said[place].endswith(".sh"):
        return False
    name = said[place].removeprefix("./").lstrip("/")
    text = machine.sources.text_beside(name, machine.current[0])
    if text is None:
        text = machine.sources.text_beside(name.rpartition("/")[2], machine.current[0])
    if text is None:
        return False
    given = hard(environment)
    variables = machine.environment | (given if isinstance(given, dict) else {})
    variables |= {str(i): each for i, each in enumerate(words[place:])} | {"@": " ".join(said[place + 1 :])}
    texts = {each: hard(value) for each, value in variables.items() if isinstance(hard(value), str)}
    starts = [each for each in commands(text, texts, machine.visible) if _starts_some(each.words)]
    machine.guesses += bool(starts)  # what its conditions come to is not known
    for each in starts:
        if not each.is_conditional:
            launch(machine, each.words, each.environment)
    return bool(starts)


def _starts_some(words: list[str]) -> bool:
    """Whether a command of a script starts ranks or an engine, and does not only speak of one (`echo torchrun`)."""
    starts = any(_LAUNCHERS.fullmatch(each.rpartition("/")[2]) for each in words) and _says_a_number(words)
    return words[0] not in _SPEAKS and (starts or _serves(words))


def _started(machine: "Machine", words: list[Any], count: Any, environment: Any) -> None:
    """So many ranks of a command."""
    machine.started(count)
    if _runs_written(machine, words, count, environment):
        return
    if count == 0:
        machine.launch_of_none()
    if not isinstance(count, int) or count <= 0 or (_runs_itself(words) and run_again(machine, count)):
        return
    if _uses_devices(machine, words):
        machine.need(count, "a launcher starts a process for each device")


def _runs_written(machine: "Machine", words: list[Any], count: Any, environment: Any) -> bool:
    """Whether a launcher is given a program that the test writes, or a script that says itself where it works: run it.

    Raises:
        Raised: They lack devices.
    """
    text, path = program_in(machine, words), None
    if text is None:
        place = next((i for i, each in enumerate(words) if _tail(each).endswith(".py")), 0)
        path = script_of_tree(machine, words[place]) if words else None
        text = machine.sources.read(path) if path else None
        text = text if text and _CHOOSES.search(text) else None
    if text is None or not isinstance(count, int) or count <= 0:
        return False
    had, fuel = machine.trace.all_used, machine.fuel
    granted = machine.fuel = min(fuel, _FUEL_OF_RANKS)

    def run(_args: list[Any], _kwargs: dict[str, Any]) -> bool:
        if path is None:
            return run_text(machine, text, is_checked=True)
        return run_file(machine, path, words[place + 1 :], is_checked=True)

    work = Native("rank", run)
    try:
        with _environment(machine, environment):
            machine.natives.words["in_own_ranks"].call([count, work], {})
    except OutOfFuel:
        machine.guesses += 1
    finally:
        machine.fuel = fuel - (granted - max(machine.fuel, 0))
        machine.rank = None
    says_where = bool(_SAYS_WHERE.search(text) or _SPREADS.search(text))
    may_use = ON_DEVICES.search(text) or _SPREADS.search(text) or not is_of_torch_alone(text)
    if (machine.count or not says_where) and machine.trace.all_used == had and may_use:
        machine.guesses += 1  # what the library does in it is not followed
        machine.need(count, "a launcher starts a process for each device")
    return True


def _runs_itself(words: list[Any]) -> bool:
    """Whether a launcher's ranks are pytest, run on one test: whoever starts them is that test."""
    starts = [_start(each) or "" for each in words]
    is_pytest = any(each.rpartition("/")[2] in ("pytest", "py.test") for each in starts)
    return is_pytest and any("::" in piece for each in words for piece in _pieces(each))


def _pieces(word: Any) -> list[str]:
    pieces = word.pieces if isinstance(word, Text) else [word]
    return [each for each in pieces if isinstance(each, str)]


def _tail(word: Any) -> str:
    """What is known of the end of a word."""
    pieces = word.pieces if isinstance(word, Text) else [word]
    known = itertools.takewhile(lambda each: isinstance(each, str), reversed(pieces))
    return "".join(reversed([str(each) for each in known]))


def _alone(machine: "Machine", words: list[Any], environment: Any, *, is_checked: bool) -> Any:
    """A program that no launcher starts; gives the process, whose exit code is known where it fails.

    What the library under test starts itself is not the test's work: it is not followed.
    """
    if machine.quiet:
        return Unknown("process")
    _need_said(machine, words)
    _need_told(machine, environment)
    text = _program(words, environment)
    if text is None and not is_masked(environment):
        text = program_in(machine, words)
    fails = False
    with _environment(machine, environment):
        if machine.rank is None:  # no launcher has told it of ranks, unless the test has
            machine.environment = dict.fromkeys(OF_RANKS, MISSING) | machine.environment
        if isinstance(text, str):
            fails = run_text(machine, text, is_checked=is_checked)
        elif text is not None:
            machine.guesses += 1  # it is not known what it does
        elif not is_masked(environment):
            place, path = _file_of_program(machine, words)
            if path is not None:
                fails = run_file(machine, path, words[place + 1 :], is_checked=is_checked)
    return failed_process(machine) if fails else Unknown("process")


def run_alone(machine: "Machine", words: list[Any]) -> bool:
    """Run a program that fails the test if it fails; whether it is known what it does.

    Raises:
        Raised: It lacks a device.
    """
    is_known = program_in(machine, words) is not None or _file_of_program(machine, words)[1] is not None
    _alone(machine, words, None, is_checked=True)
    return is_known


@contextmanager
def _environment(machine: "Machine", environment: Any) -> Iterator[None]:
    """A program finds the variables that it is given (`env={**os.environ, "RANK": "1"}`)."""
    before, given = machine.environment, hard(environment)
    told = {name: value for name, value in given.items() if isinstance(name, str)} if isinstance(given, dict) else {}
    machine.environment = before | told
    try:
        yield
    finally:
        machine.environment = before


def failed_process(machine: "Machine") -> Inst:
    """A process that has failed."""
    process = Inst(Cls("CompletedProcess", [Ext("subprocess.CompletedProcess")], Mod("subprocess", "")))

    def check(_args: list[Any], _kwargs: dict[str, Any]) -> None:
        raise Raised("CalledProcessError", "a program has failed", *machine.current, device=True)

    process.attrs |= {
        "returncode": 1,
        "wait": Native("wait", lambda _args, _kwargs: 1),
        "poll": Native("poll", lambda _args, _kwargs: 1),
        "check_returncode": Native("check_returncode", check),
    }
    return process


def _file_of_program(machine: "Machine", words: list[Any]) -> tuple[int, str | None]:
    """Which word names the program that Python runs, and its file, if that is in the tree: a script, or a module."""
    place = _place_of_script(words)
    if place is not None:
        return place, script_of_tree(machine, words[place])
    place = words.index("-m") + 1 if "-m" in words else 0
    is_pythons = any("python" in (_pieces(each) or ["python"])[-1] for each in words[: max(place - 1, 0)])
    name = words[place] if is_pythons and place < len(words) else None
    if not isinstance(name, str):
        return place, None
    found = (machine.sources.module(each, machine.current[0]) for each in (f"{name}.__main__", name))
    return place, next((each for each in found if each is not None), None)


def _place_of_script(words: list[Any]) -> int | None:
    """Which word is the program that Python runs (`python -u script.py`); None where it is another kind of command."""
    first = (_pieces(words[0]) or [""])[-1] if words else ""
    if isinstance(words[0] if words else None, str) and first.endswith(".py"):
        return 0
    if not words or (isinstance(words[0], str) and "python" not in first.rpartition("/")[2]):
        return None
    for place, word in enumerate(words[1:], 1):
        pieces = _pieces(word)
        if not pieces or not pieces[0].startswith("-"):
            return place if pieces and pieces[-1].endswith(".py") else None
        if pieces[0] in ("-m", "-c", "-W", "-X"):
            return None
    return None


def script_of_tree(machine: "Machine", word: Any) -> str | None:
    """The file of the tree that a word names, by as much of its path as is known."""
    parts = _tail(word).lstrip("./").split("/")
    for start in range(len(parts)):
        found = machine.sources.script("/".join(parts[start:]), machine.current[0])
        if found is not None:
            return found
    return None


def _program(words: list[Any], environment: Any) -> Any:
    """The text of `python -c TEXT`, if it sees the devices that the test sees; what is unknown in it is a name."""
    place = words.index("-c") if "-c" in words else 0
    is_pythons = any(not isinstance(each, str) or "python" in each for each in words[:place])
    text = words[place + 1] if is_pythons and place + 1 < len(words) else None
    if isinstance(text, Text):
        text = "".join("_" if each is None else each for each in text.pieces)
    return None if is_masked(environment) or (isinstance(text, str) and "VISIBLE_DEVICES" in text) else text


def _serves(words: list[Any]) -> bool:
    """Whether a command starts an engine: `vllm serve`, `vllm bench latency`, `python -m vllm.entrypoints...`."""
    texts = [each if isinstance(each, str) else "" for each in words]
    if {"--help", "-h", "--version"} & set(texts):
        return False
    places = (place for place, each in enumerate(texts) if each.rpartition("/")[2] in _ENGINE_PROGRAMS)
    said = [(*texts[place + 1 : place + 3], "", "") for place in places]
    is_engine = any(verb in _ENGINE_VERBS or (verb == "bench" and of in _ENGINE_BENCHES) for verb, of, *_ in said)
    return is_engine or _is_sharded(words) or any(_ENGINES.fullmatch(each) for each in texts)


def _is_sharded(words: list[Any]) -> bool:
    return bool(words) and isinstance(words[0], str) and words[0].rpartition("/")[2] in _SHARDED


def _touch_given(machine: "Machine", words: list[Any] | None, environment: Any) -> None:
    """A process that is given devices by their numbers (`CUDA_VISIBLE_DEVICES="3"`) uses them, and no others."""
    for word in words or ():
        named = _NAMED_IN_TEXT.search(word) if isinstance(word, str) else None
        for number in _devices_in(named[1]) if named else ():
            machine.touch(Dev("cuda", number), "a program names its devices")
    given = hard(environment)
    if not isinstance(given, dict) or words is None or not _uses_devices(machine, words):
        return
    for name in MASKS:
        mask = hard(given[name]) if name in given else None
        for number in _devices_in(mask) if isinstance(mask, str) else ():
            machine.touch(Dev("cuda", number), f"{name}={mask}")


def _devices_in(mask: str) -> list[int]:
    """Devices that a mask names; a number that no machine has (`32`) hides all of them, on purpose."""
    numbers = [int(each) for each in mask.split(",") if each.strip().isdigit()]
    return numbers if all(each < max(SIZES) for each in numbers) else []


def _words(machine: "Machine", command: Any) -> list[Any] | None:
    command = hard(command)
    if isinstance(command, str):
        return command.split()
    if isinstance(command, Text):
        return command.words()
    items = machine.items_of(command)
    if items is None:
        return None
    words: list[Any] = []
    for each in items:
        word = hard(each)
        words += word.split() if isinstance(word, str) and " " in word and len(items) < 3 else [word]  # noqa: PLR2004
    return words


def process_count(words: list[Any]) -> Any:
    """How many processes a launcher is told to start; UNKNOWN where it does not say."""
    return _number(_told_processes(words))


def _told_processes(words: list[Any]) -> Any:
    """What a launcher is told of processes: a number, or `gpu` or `auto` for one on each device."""
    mpi = any(isinstance(each, str) and _MPI.search(each) for each in words)
    for index, word in enumerate(words):
        if not isinstance(word, str):
            continue
        name, equals, value = word.partition("=")
        if _PER_NODE.match(name) or (mpi and name in _SHORT):
            return value if equals else words[index + 1] if index + 1 < len(words) else UNKNOWN
    return UNKNOWN


def _need_said(machine: "Machine", words: list[Any]) -> None:
    """A program that is told a number of GPUs (`--ngpu 4`, `--baseline-ngpus=8`) uses them."""
    for index, word in enumerate(words):
        name, equals, value = word.partition("=") if isinstance(word, str) else ("", "", "")
        if _GPUS.match(name):
            number = _number(value if equals else words[index + 1] if index + 1 < len(words) else UNKNOWN)
            if isinstance(number, int):
                machine.need(number, f"a program is told {name}")


def _need_told(machine: "Machine", environment: Any) -> None:
    """A program whose environment says a number of GPUs (`NGPU=4 ./run.sh`) uses them."""
    given = hard(environment)
    for name, value in given.items() if isinstance(given, dict) else ():
        number = _number(hard(value)) if isinstance(name, str) and _TOLD_GPUS.match(name) else UNKNOWN
        if isinstance(number, int):
            machine.need(number, f"a program is told {name}")


def write_settings(machine: "Machine", text: Any = None) -> Any:
    """Accelerate's settings are written: a launcher that is given a file starts as many processes as they say.

    Args:
        machine: Evaluates.
        text: What is written; None for the default, a process for each device.
    """
    said = _PROCESSES.search(text) if isinstance(text, str) else None
    if text is None or said is not None:
        machine.environment[_SETTINGS] = int(said[1]) if said else None
    return Unknown("written")


def _taken_of_itself(machine: "Machine", words: list[Any]) -> Any:
    """How many devices a launcher takes that is told no number of processes; UNKNOWN where another tells it."""
    name, options = _launcher_of(words)
    if name == "deepspeed":  # deepspeed/launcher/runner.py: all, and it refuses to start without any
        included = _INCLUDED.search(" ".join(each for each in options if isinstance(each, str)))
        return max(_devices_in(included[1]), default=0) + 1 if included else max(machine.visible(), 1)
    if name != "accelerate" or (_has_file(words) and _SETTINGS not in machine.environment):
        return UNKNOWN
    written = machine.environment.get(_SETTINGS) if _has_file(words) else None
    if written is not None:
        return int(written)
    is_all = "--multi_gpu" in words or _has_file(words) or _takes_all(machine)
    return machine.visible() if is_all else min(machine.visible(), 1)


def _launcher_of(words: list[Any]) -> tuple[str, list[Any]]:
    """A launcher's name, and what it is told; none where a command starts with another program."""
    texts = [each if isinstance(each, str) else "" for each in words]
    first = texts[0].rpartition("/")[2] if isinstance(words[0], str) else "python"
    if first.startswith("python") and "-m" in texts[1:-1]:
        place = texts.index("-m") + 1
        first, texts = _MODULES.get(texts[place], ""), texts[place:]
    if first in ("accelerate", "accelerate-launch"):
        is_launch = first == "accelerate-launch" or texts[1:2] in (["launch"], ["test"])  # a script of its own
        return "accelerate" if is_launch else "", words[len(words) - len(texts) + 1 :]
    return first if first in _MODULES.values() else "", words[len(words) - len(texts) + 1 :]


def _starts_one(words: list[Any]) -> bool:
    """Whether it is torchrun, told no number of processes: it starts one."""
    name, options = _launcher_of(words)
    told = itertools.takewhile(lambda each: not _tail(each).endswith(".py"), options)
    return name == "torchrun" and all(
        isinstance(each, str) and not _PER_NODE.match(each.partition("=")[0]) for each in told
    )


def _takes_all(machine: "Machine") -> bool:
    """Whether accelerate takes all devices of itself, as since its version 0.17 (`accelerate/commands/launch.py`)."""
    path = machine.sources.module("accelerate.commands.launch", machine.current[0] or "")
    text = machine.sources.read(path) if path else None
    return text is None or "enabling multi-GPU training" in text


def _has_file(words: list[Any]) -> bool:
    return any(isinstance(each, Text | str) and str(_start(each)).startswith("--config") for each in words)


def _start(word: Any) -> str | None:
    return word.pieces[0] if isinstance(word, Text) and word.pieces else word if isinstance(word, str) else None


def _says_a_number(words: list[Any]) -> bool:
    return any(isinstance(each, str) and _PER_NODE.match(each.partition("=")[0]) for each in words)


def _number(value: Any) -> Any:
    value = value.value if isinstance(value, Soft) else value
    if isinstance(value, bool) or not isinstance(value, int | str):
        return UNKNOWN
    if isinstance(value, int):
        return value
    return int(value) if value.strip().isdigit() else UNKNOWN


def _is_on_host(words: list[Any]) -> bool:
    return any(cpu in each for each in words if isinstance(each, str) for cpu in _CPU_WORDS)


def _uses_devices(machine: "Machine", words: list[Any]) -> bool:
    """Whether what is launched works on devices: by its own words, and by its script where that is in the tree."""
    if _is_on_host(words):
        return False
    texts = [each for each in words if isinstance(each, str)]
    script = next((each for each in words if _tail(each).endswith(".py")), None)
    found = None if script is None else script_of_tree(machine, script)
    text = machine.sources.read(found) if found else None
    if found is None or text is None:
        is_seen = (script is None and len(texts) == len(words)) or any(ON_DEVICES.search(each) for each in texts)
        machine.guesses += not is_seen or any(_MPI.search(each) for each in texts)  # which starts programs of any kind
        return True
    if ON_DEVICES.search(text):
        return True
    # Without devices such a library takes the host's.
    if machine.count and (_TRAINS.search(text) or _SPREADS.search(text) or imports_nccl(machine.sources, found)):
        machine.guesses += 1
        return True
    machine.guesses += imports_strangers(machine.sources, found)
    return False


def parallel_size(words: list[Any]) -> Any:
    """Devices that an engine's options ask for: tensor times pipeline times data parallel.

    Replicas of the attention alone (sglang's `--enable-dp-attention`) share the devices of the tensor parallel ranks.
    """
    size = 1
    is_shared = "--enable-dp-attention" in words
    for index, word in enumerate(words):
        if not isinstance(word, str):
            continue
        name, equals, value = word.partition("=")
        if _PARALLEL.match(name) and not (is_shared and name in _REPLICAS):
            number = _number(value if equals else words[index + 1] if index + 1 < len(words) else UNKNOWN)
            if not isinstance(number, int):
                return UNKNOWN
            size *= number
    return size
