"""The words that expressions of the rule table, and its models, can use besides Python's own."""

import ast
import builtins
import math
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.contexts import entered_already
from sooner.plan.needs.evaluator.counted import uncounted
from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Cls,
    Dev,
    Enough,
    Ext,
    Func,
    Inst,
    Mark,
    Native,
    OutOfFuel,
    Raised,
    Skip,
    Unknown,
    hard,
    is_plain,
)
from sooner.plan.needs.frameworks.drawing import drawn
from sooner.plan.needs.frameworks.host_values import WORDS as HOST_WORDS
from sooner.plan.needs.frameworks.host_values import is_on_host
from sooner.plan.needs.frameworks.jax_devices import DEFAULT_DEVICE
from sooner.plan.needs.frameworks.jax_devices import WORDS as JAX_WORDS
from sooner.plan.needs.frameworks.made_of import told
from sooner.plan.needs.frameworks.masks import only_seen
from sooner.plan.needs.frameworks.meshes import WORDS as MESH_WORDS
from sooner.plan.needs.frameworks.op_names import names
from sooner.plan.needs.frameworks.outside_kinds import member_text
from sooner.plan.needs.processes.launchers import launch, parallel_size, write_settings
from sooner.plan.needs.processes.library_ranks import in_any_ranks
from sooner.plan.needs.processes.programs import run_as_program
from sooner.plan.needs.processes.ray_workers import RAY_WORDS
from sooner.plan.needs.processes.unheard_programs import launch_unheard
from sooner.plan.needs.processes.worker_ranks import (
    allow_for_one,
    as_member,
    as_rank,
    heard,
    in_own_ranks,
    in_ranks,
    in_started_ranks,
    on_its_own,
)
from sooner.plan.needs.python.arguments import ARGV
from sooner.plan.needs.testing.device_tests import dtype_name, instantiate
from sooner.plan.needs.testing.parameterized_classes import class_of_cases
from sooner.plan.needs.testing.replacing import kept
from sooner.plan.needs.testing.testing_names import environment_value, is_refused_unrun

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_TORCHRUN: Final = re.compile(r"(?:environ|getenv|setenv)\b[^\n]{0,12}(?:LOCAL_RANK|RANK|WORLD_SIZE)\b|\btorchrun\b")

Word = Callable[["Machine", list[Any]], Any]


def _first(args: list[Any], default: Any = None) -> Any:
    return hard(args[0]) if args else default


"""What is known of a tensor that is made without a device."""
_LAYERS: Final = ("num_layers", "n_layer", "num_hidden_layers")
"""What settings of transformers call the number of layers."""


def _ranks(machine: "Machine", args: list[Any]) -> Any:
    machine.started(_first(args))


def _one_more(machine: "Machine", _args: list[Any]) -> Any:
    """Processes that are started one by one, in a loop over ranks."""
    machine.processes += 1
    allow_for_one(machine)
    machine.started(machine.processes)


def _in_process(machine: "Machine", args: list[Any]) -> Any:
    """Call a function in a process of its own: the ranks that it joins, its environment and its steps end with it.

    So does the device that it chooses.
    """
    rank, environment, fuel = machine.rank, dict(machine.environment), machine.fuel
    device, machine.current_device = machine.current_device, 0
    granted = machine.fuel = fuel // (2 if machine.processes <= 1 else 3)  # there may be more
    try:
        with only_seen(machine):
            return machine.call(args[0], [], {})
    except OutOfFuel:
        machine.guesses += 1
        return UNKNOWN
    finally:
        machine.fuel = fuel - (granted - max(machine.fuel, 0))
        machine.rank, machine.environment, machine.current_device = rank, environment, device


def _in_processes(machine: "Machine", args: list[Any]) -> Any:
    """What the processes of a pool give for each of some items.

    The last is looked at first, as of ranks, and others as long as two thirds of the steps last.
    """
    work, items = args[0], machine.items_of(args[1])
    results = [UNKNOWN] * (1 if items is None else len(items))
    enough = machine.fuel // 3
    for place in reversed(range(len(results))):
        if machine.fuel < enough:
            machine.guesses += 1
            break
        given = [UNKNOWN if items is None else items[place]]
        call = Native("work", lambda _args, _kwargs, given=given: machine.call(work, given, {}))
        results[place] = _in_process(machine, [call])
    return UNKNOWN if items is None else results


def _while_steps_last(machine: "Machine", args: list[Any]) -> Any:
    """Call a function with as many steps as are left, and give them back; where they do not last it is less sure."""
    fuel = machine.fuel
    try:
        return machine.call(args[0], [], {})
    except OutOfFuel:
        machine.guesses += 1
        return UNKNOWN
    finally:
        machine.fuel = fuel


def _model_size(_machine: "Machine", args: list[Any]) -> Any:
    """Ranks of one model: the product of Megatron's parallel sizes, of the dense or of the expert layers."""
    given, named = list(args[0]), dict(args[1])

    def size(position: int, name: str, default: Any) -> Any:
        value = hard(named.get(name, given[position] if position < len(given) else default))
        return default if value is None else value

    tensor, pipeline = size(0, "tensor_model_parallel_size", 1), size(1, "pipeline_model_parallel_size", 1)
    dense = [tensor, pipeline, size(99, "context_parallel_size", 1)]
    experts = [size(99, "expert_tensor_parallel_size", tensor), size(99, "expert_model_parallel_size", 1), pipeline]
    encoder = [size(99, f"encoder_{name}_model_parallel_size", 0) for name in ("tensor", "pipeline")]
    replicas = size(99, "num_distributed_optimizer_instances", 1)
    if not all(isinstance(each, int) for each in (*dense, *experts, *encoder, replicas)):
        return UNKNOWN
    if encoder[1]:  # an encoder has ranks of its own
        return max(1, math.prod(dense) + (encoder[0] or tensor) * encoder[1] * dense[2])
    # Each instance of the optimizer has its ranks, of both kinds of layers.
    return max(1, math.lcm(math.prod(dense), tensor * pipeline * replicas, math.prod(experts) * replicas))


def _engine_size(machine: "Machine", args: list[Any]) -> Any:
    """Devices on one node of an engine of vLLM's: the product of its parallel sizes, given or in its `EngineArgs`."""
    given, named = list(args[0]), dict(args[1])
    more = hard(named.get("model_args"))
    if isinstance(more, str):  # lm_eval: "pretrained=m,tensor_parallel_size=2"
        more = {key: int(value) if value.isdigit() else value for key, _, value in _pairs(more)}
    if isinstance(more, dict):
        named |= more
    holder = next((hard(each) for each in (*given, *named.values()) if isinstance(hard(each), Inst)), None)
    size = 1
    for name in ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"):
        value = _engine_option(name, named, holder)
        if isinstance(value, Unknown | Ext):
            if _engine_option("distributed_executor_backend", named, holder) == "external_launcher":
                return _launched_world(machine)
            return _parallel(machine, [machine.overrides.get(ARGV, UNKNOWN)])  # as a program is told
        size *= value if isinstance(value, int) else 1
    nodes = _engine_option("nnodes", named, holder)
    return max(1, size // nodes) if isinstance(nodes, int) and nodes > 1 else size


def _launched_world(machine: "Machine") -> Any:
    """How many ranks a launcher has started; one where none has."""
    world = hard(environment_value(machine, "WORLD_SIZE", "1"))
    return int(world) if isinstance(world, str) and world.isdigit() else UNKNOWN


def _engine_option(name: str, named: dict[str, Any], holder: Any) -> Any:
    value = named.get(name)
    if value is None and isinstance(holder, Inst):
        value = holder.attrs.get(name)
        value = None if value is holder.cls.find(name) else value  # what is not given is one
    return hard(value)


def _pairs(text: str) -> list[tuple[str, str, str]]:
    return [each.strip().partition("=") for each in text.split(",")]


def _need(machine: "Machine", args: list[Any]) -> Any:
    count = _first(args)
    if isinstance(count, int):
        machine.need(count, str(hard(args[1])) if len(args) > 1 else "needs devices")


def _device_span(machine: "Machine", args: list[Any]) -> Any:
    """So many devices must be there for all of a list of them (`[0, 1]`, `["cuda:1"]`): the highest number, and one."""
    items = machine.items_of(args[0])
    if items is None:
        return UNKNOWN
    devices = [machine.natives.device(each) for each in items]
    devices = [each for each in devices if not (isinstance(each, Dev) and each.kind == "cpu")]
    indices = [hard(each.index) if isinstance(each, Dev) else UNKNOWN for each in devices]
    return max((each + 1 if isinstance(each, int) else 1 for each in indices), default=0)


def _layered(machine: "Machine", args: list[Any]) -> Any:
    """Devices over which a model of transformers spreads its layers: as many on each, as far as they go.

    How many layers it has its settings say; where they do not, there is one for each device, and it is less sure.
    """
    visible = max(machine.visible(), 1)
    settings = told(machine, _first(args), "config")
    layers = next((each for name in _LAYERS if type(each := uncounted(told(machine, settings, name))) is int), 0)
    if layers < 1:
        machine.guesses += visible > 1
        return visible
    return math.ceil(layers / math.ceil(layers / visible))


def _more_devices(machine: "Machine", args: list[Any]) -> Any:
    """Devices that something keeps (an actor of Ray's, half a device too): all that are kept are there together.

    Where it was only said that they are there, what the tests' own code keeps is needed when it uses a device.
    """
    count, what = _first(args), hard(args[1]) if len(args) > 1 else None
    if isinstance(count, int | float):
        machine.kept += count
        is_own = isinstance(what, Func | Cls) and what.module.is_test_code and not what.module.is_model
        if machine.is_declared and is_own:
            machine.trace.may_be_made |= count > 0
        else:
            machine.need(math.ceil(machine.kept), "devices that are kept")


def _declare_devices(machine: "Machine", args: list[Any]) -> None:
    """It is said that so many devices are there, and nobody looks (`ray.init(num_gpus=4)`)."""
    count = _first(args)
    machine.is_declared |= isinstance(count, int) and count > 0


def _is_class(_machine: "Machine", args: list[Any]) -> Any:
    return isinstance(_first(args), Cls)


def _is_instance(_machine: "Machine", args: list[Any]) -> Any:
    return isinstance(_first(args), Inst)


def _touch(machine: "Machine", args: list[Any]) -> Any:
    """A device is used; a worker's that a model gives it is the one that it means from then on."""
    device = machine.natives.device(args[0])
    if isinstance(device, Dev):
        machine.touch(device, "device")
        if machine.is_gathering and type(number := hard(device.index)) is int:
            machine.current_device = number


def _backend(machine: "Machine", args: list[Any]) -> Any:
    name = _first(args)
    if isinstance(name, str):
        machine.trace.backends.add(name)


def _skip(machine: "Machine", args: list[Any]) -> Any:
    raise Skip(str(_first(args)), *machine.current)


def _fail(machine: "Machine", args: list[Any]) -> Any:
    raise Raised("RuntimeError", str(_first(args)), *machine.current, device=True)


def _refused_if(machine: "Machine", args: list[Any]) -> Any:
    """The library under test refuses, with an exception of its own, what it was told: `refused_if(true, "ValueError")`.

    Raises:
        Raised: It does.
    """
    if not machine.truth(args[0]):
        return args[0]
    refused = Raised(str(hard(args[1])), "refused", *machine.current, device=True)
    refused.refusal = True
    raise refused


def _suffixes(_machine: "Machine", args: list[Any]) -> Any:
    """Cases whose names are a part of the test's; told so, they come after those of all other decorators."""
    return Mark("__suffix__", (args[0],), {"last": True} if len(args) > 1 and args[1] is True else {})


def _decorated_if(_machine: "Machine", args: list[Any]) -> Any:
    return Mark("__if__", tuple(args[:2]), {})


def _visible(machine: "Machine", _args: list[Any]) -> Any:
    return machine.counted()


def _is_known(_machine: "Machine", args: list[Any]) -> Any:
    return is_plain(_first(args))


def _of_tree(machine: "Machine", args: list[Any]) -> Any:
    """A constant of a class, as the tree under test has it: versions of a framework differ."""
    module, owner, name, default = [hard(each) for each in args[:4]]
    path = machine.sources.module(module, machine.current[0] or "")
    tree = machine.sources.tree(path) if path else None
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.ClassDef) and node.name == owner:
            for each in node.body:
                targets = each.targets if isinstance(each, ast.Assign) else [getattr(each, "target", None)]
                if any(isinstance(t, ast.Name) and t.id == name for t in targets):
                    return _constant(getattr(each, "value", None), default)
    return default


def _is_on_several(machine: "Machine", _args: list[Any]) -> Any:
    """Whether the test has used several devices by now: the parts of its model are on them."""
    return len(machine.trace.touched | machine.trace.of_ranks) > 1


def _answer(machine: "Machine", args: list[Any]) -> Any:
    """What a method answers, one of the library under test too; a default where there is none: versions differ."""
    value, name, default, *given = args
    owner = hard(value)
    method = owner.cls.find(hard(name)) if isinstance(owner, Inst) else MISSING
    if not isinstance(method, Func):
        return default
    machine.quiet += 1
    try:
        return machine.call(method, [owner, *given], {})
    finally:
        machine.quiet -= 1


def _mentions(machine: "Machine", args: list[Any]) -> Any:
    """Whether a module of the tree under test has a text in its source: versions of a framework differ."""
    module, text = [hard(each) for each in args[:2]]
    path = machine.sources.module(module, machine.current[0] or "")
    return text in ((machine.sources.read(path) if path else None) or "")


def _constant(node: ast.expr | None, default: Any) -> Any:
    try:
        return default if node is None else ast.literal_eval(node)
    except ValueError:
        return default


def _is_device(_machine: "Machine", args: list[Any]) -> Any:
    return isinstance(_first(args), Dev)


def _world(machine: "Machine", _args: list[Any]) -> Any:
    return UNKNOWN if machine.rank is None else machine.rank[1]


def _rank(machine: "Machine", _args: list[Any]) -> Any:
    return UNKNOWN if machine.rank is None else machine.rank[0]


def _variable_set(machine: "Machine", args: list[Any]) -> Any:
    """A variable of the environment that a test or a launcher has set; None, and no rule is asked, if nobody has."""
    given = machine.environment.get(_first(args), MISSING)
    return None if given is MISSING else given


def _on_host(machine: "Machine", args: list[Any]) -> Any:
    """Whether something is given a tensor that was made on the host, before anything was done on a device."""
    given = [hard(each) for each in (*(machine.items_of(args[0]) or ()), *hard(args[1]).values())]
    given += [hard(inner) for each in given if isinstance(each, list | tuple) for inner in each]
    return any(is_on_host(machine, each) for each in given)


def _has_stranger(machine: "Machine", args: list[Any]) -> Any:
    """Whether a list of ranks names one that is none of the group's; one as long as the group is all of it."""
    given = hard(args[0])
    ranks = [uncounted(hard(each)) for each in _flat(given)] if isinstance(given, list) else []
    known = [each for each in ranks if isinstance(each, int)]
    if machine.rank is None or not known or len(given) == len(known) == machine.rank[1]:
        return False
    return max(known) >= machine.rank[1]


def _is_larger_than_world(machine: "Machine", args: list[Any]) -> Any:
    """Whether a mesh of some shape has more places than there are ranks from a first one on, or none.

    Where nothing has joined others there are as many ranks as may be said, else it is not known.
    """
    sizes = [uncounted(hard(each)) for each in machine.items_of(args[0]) or ()]
    rest = [uncounted(hard(each)) for each in args[1:]]
    first, ranks = rest[0] if rest else 0, rest[1] if rest[1:] else None
    if machine.rank is not None:
        ranks = machine.rank[1]
    if not sizes or not isinstance(ranks, int) or not all(isinstance(each, int) for each in (*sizes, first)):
        return False
    if machine.rank is None:
        machine.trace.ask(math.prod(sizes) + first)
    return not 0 < math.prod(sizes) <= ranks - first


def _flat(values: list[Any]) -> list[Any]:
    return [inner for each in values for inner in (_flat(hard(each)) if isinstance(hard(each), list) else [each])]


def _device(machine: "Machine", args: list[Any]) -> Any:
    given = machine.natives.device(args[0])
    index = hard(args[1]) if len(args) > 1 else None
    if isinstance(given, Dev) and index is not None:
        return Dev(given.kind, index)
    if isinstance(given, Dev):
        return given
    return Unknown("torch.device()")


def _device_module(machine: "Machine", args: list[Any]) -> Any:
    device = machine.natives.device(args[0]) if args and args[0] is not None else UNKNOWN
    if isinstance(device, Dev):
        return Ext(f"torch.{device.kind}")
    return Ext("torch.cuda" if machine.visible() else "torch.cpu")


def _made(_machine: "Machine", args: list[Any]) -> Any:
    return Unknown(str(_first(args)))


def _is_told(machine: "Machine", args: list[Any]) -> Any:
    return told(machine, args[0], str(hard(args[1]))) is True


def _named(_machine: "Machine", args: list[Any]) -> Any:
    return Ext(str(_first(args)))


def _skip_if(machine: "Machine", args: list[Any]) -> Any:
    return Mark("skipif", (args[0],), {"reason": "devices"}, *machine.current)


def _parallel(machine: "Machine", args: list[Any]) -> Any:
    items = machine.items_of(args[0]) if args else None
    return UNKNOWN if items is None else parallel_size([hard(each) for each in items])


def _launched(machine: "Machine", args: list[Any]) -> Any:
    given = dict(enumerate(args))
    command, environment, checked = given.get(0, UNKNOWN), given.get(1), hard(given.get(2))
    if checked is False:
        return launch_unheard(machine, command, environment)
    return launch(machine, command, environment, is_checked=checked is True)


def _settings_written(machine: "Machine", args: list[Any]) -> Any:
    """Accelerate's settings, by a text; as it writes them by itself where none is given."""
    return write_settings(machine, hard(args[0]) if args else None)


def _member_name(_machine: "Machine", args: list[Any]) -> Any:
    """What looks like a member of an enumeration outside, as it is written (`Mode.FAST`)."""
    value = _first(args)
    return (member_text(value) if isinstance(value, Ext) else None) or UNKNOWN


def _is_torchruns(machine: "Machine", _args: list[Any]) -> Any:
    """Whether the file at hand speaks of what torchrun sets: its tests are started by it."""
    return _TORCHRUN.search(machine.sources.read(machine.current[0]) or "") is not None


def _spawned(machine: "Machine", args: list[Any]) -> Any:
    """Workers for several world sizes, one after the other."""
    function, sizes, more = args[0], machine.items_of(args[1]), machine.items_of(args[2]) or []
    if sizes == []:
        machine.started(0)  # nobody comes
    for size in sizes or []:
        count = hard(size)
        machine.started(count)
        if isinstance(count, int) and count > 0:
            work = partial(_in_files, machine, function, count, more)
            in_ranks(machine, [count, Native("worker", work)])


def _in_files(machine: "Machine", function: Any, count: int, more: list[Any], args: list[Any], _kwargs: Any) -> Any:
    return machine.call(function, [args[0], count, Unknown("file"), Unknown("file"), *more], {})


def _cuda_workers(machine: "Machine", args: list[Any]) -> Any:
    """Dask's workers: one for each device that is named (a text, a list, how many), or for the first of all.

    What a worker of a class of its own uses is not known.
    """
    named, count = uncounted(hard(args[0])), uncounted(hard(args[1]))
    kind = hard(args[2]) if len(args) > 2 else None  # noqa: PLR2004 - the third
    is_nanny = kind.is_a("Nanny") if isinstance(kind, Cls) else isinstance(kind, Ext) and kind.path.endswith("Nanny")
    if kind is not None and not is_nanny:
        machine.need(1, "a worker of Dask's")
        if not machine.quiet:
            machine.trace.unsure.append("a worker of a class of its own")
        return
    if named is None:
        named = hard(machine.environment.get("CUDA_VISIBLE_DEVICES"))
    if isinstance(named, str):
        named = named.split(",")
    if named is None or type(named) is int:
        named = range(machine.visible() if named is None else named)
    numbers = [int(each) for each in named if str(each).isdigit()] if isinstance(named, list | tuple | range) else []
    is_short = type(count) is int and count > len(numbers) == machine.visible()
    machine.need(count if is_short else 1, "a worker of Dask's")  # more workers than there are devices are refused
    for each in numbers[: count if type(count) is int and count > 0 else None]:
        machine.touch(Dev("cuda", each), "a worker of Dask's")


def _jax_default(machine: "Machine", args: list[Any]) -> Any:
    """A context in which JAX makes its arrays on a device."""
    leave = kept(machine.environment)
    machine.environment[DEFAULT_DEVICE] = args[0]
    return entered_already(lambda _raised: bool(leave()))


def _sizes_up_to(machine: "Machine", args: list[Any]) -> Any:
    limit = machine.visible()
    return [size for size in (1, 2, 4, 8) if size <= min(limit, int(_first(args, 8)))]


def _is_mistake_expected(machine: "Machine", args: list[Any]) -> Any:
    """Whether what is called is expected to be refused, by a mistake of the caller's or (`True`) by anything."""
    return bool(machine.awaited) if args else is_refused_unrun(machine)


WORDS: Final[dict[str, Word]] = {
    "one_more_process": _one_more, "in_process": _in_process, "in_processes": _in_processes,
    "while_steps_last": _while_steps_last,
    "model_size": _model_size, "engine_size": _engine_size,
    "ranks": _ranks, "as_rank": as_rank, "as_member": as_member, "in_ranks": in_ranks, "in_own_ranks": in_own_ranks,
    "in_started_ranks": in_started_ranks,
    "on_its_own": on_its_own, "heard": heard,
    "in_any_ranks": in_any_ranks,
    "need": _need, "device_span": _device_span, "layered": _layered,
    "more_devices": _more_devices, "declare_devices": _declare_devices,
    "are_declared": lambda machine, _args: machine.is_declared, "is_class": _is_class, "is_instance": _is_instance,
    "touch": _touch, "backend": _backend, "skip": _skip,
    "fail": _fail, "refused_if": _refused_if, "suffixes": _suffixes, "decorated_if": _decorated_if,
    "visible": _visible, "is_known": _is_known,
    "is_device": _is_device, "on_host": _on_host, "is_on_several": _is_on_several,
    "of_tree": _of_tree, "answer": _answer, "mentions": _mentions,
    "world": _world, "rank": _rank, "variable_set": _variable_set,
    "has_stranger": _has_stranger, "is_larger_than_world": _is_larger_than_world,
    "run_as_program": run_as_program, "device": _device, "device_module": _device_module,
    "named": _named, "made": _made, "is_told": _is_told, "skipif": _skip_if, "parallel": _parallel,
    "launched": _launched, "settings_written": _settings_written, "is_torchruns": _is_torchruns,
    "spawned": _spawned, "cuda_workers": _cuda_workers, "sizes_up_to": _sizes_up_to,
    "device_tests": instantiate, "class_of_cases": class_of_cases, "op_names": names,
    "member_name": _member_name, "dtype_name": dtype_name, "drawn": drawn, "jax_default": _jax_default,
    "is_mistake_expected": _is_mistake_expected,
    **HOST_WORDS, **JAX_WORDS, **MESH_WORDS, **RAY_WORDS,
}  # fmt: skip


def words(machine: "Machine") -> dict[str, Any]:
    """All words, for one machine."""

    def native(name: str, word: Word) -> Native:
        return Native(name, lambda args, _kwargs: word(machine, args))

    return {name: native(name, word) for name, word in WORDS.items()} | {
        "unknown": UNKNOWN,
        "enough": Enough("device"),
    }


def known_words() -> frozenset[str]:
    """All that means something in an expression of a rule: words, what is told of the call, Python's own functions."""
    told = ("N", "arg", "args", "kwargs", "called", "marked", "env", "rank", "world")
    functions = (name for name in dir(builtins) if name.islower() and not name.startswith("_"))
    return frozenset((*WORDS, *told, "unknown", "enough", *functions))
