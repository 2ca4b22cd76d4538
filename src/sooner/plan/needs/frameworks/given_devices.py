"""Devices that a call outside the tree uses by what it is given: `device=`, `.to(...)`, `.cuda()`, sizes, maps."""

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import Dev, Ext, Unknown, hard
from sooner.plan.needs.frameworks import unseen
from sooner.plan.needs.frameworks.jax_devices import found_devices
from sooner.plan.needs.frameworks.outside_kinds import named, pins
from sooner.plan.needs.processes.ray_workers import need_told

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

MOVERS: Final = ("to", "type", "to_empty", "copyto", "as_in_context", "as_in_ctx")
_BY_THEIR_CLASS: Final = ("torch.Tensor", "torch.nn.Module")
"""Whose methods are called with the object before all else (`torch.Tensor.to(x, "cuda")`)."""
_SWITCHES: Final = ("use_cuda", "use_gpu", "use_gpus")
"""Arguments that say whether a device is used."""
_PER_NODE: Final = ("num_gpus_per_node", "n_gpus_per_node", "gpus_per_node")
_SIZES: Final = ("num_gpus", "n_gpus", "ngpus", "num_gpu", "tensor_parallel_size", "tp_size", *_PER_NODE)
"""Arguments that say how many devices something starts on."""
_STARTING: Final = ("Engine", "LLM", "Runner", "Generator", "Server", "Launcher", "Pipeline", "Trainer", "Cluster")
"""Ends of names of what starts processes on devices; anything else is only told of sizes."""
_CHOSEN_FOR_IT: Final = ("auto", "balanced", "balanced_low_0", "sequential")
"""Maps of devices that transformers makes of those that are there; without one all is on the host."""
_NO_DEVICES: Final = ("cpu", "disk", "meta")
_STARTERS: Final = ("from_pretrained", "from_engine_args", "launch_server", "init_engine")
_CLASS: Final = re.compile(r"[A-Z]\w*[a-z]\w*")
_DATA_PARALLEL: Final = re.compile(
    r"(?!\w*(?:Distributed|Sharded))\w*DataParallel(?:Engine|Trainer|Runner|Model|Module)?"
)
"""Names of what makes replicas of a model in one process."""
_TENSOR_PARALLEL: Final = re.compile(r"TensorParallel(?:PreTrainedModel|Model|Module)?")
"""Names of what cuts a model to pieces in one process, where it is told on which devices, or that on all (`None`)."""


class GivenDevices(ABC):
    """The part of the outside that looks at what a call is given."""

    machine: "Machine"
    words: dict[str, Any]

    @abstractmethod
    def device(self, value: Any) -> Any:
        """A device from what names one; UNKNOWN where none is named."""

    def use_given(self, func: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Devices that a call uses by its arguments: `device=`, `.to(...)`, `.cuda()`."""
        machine, (owner, _, last) = self.machine, func.path.rpartition(".")
        args = args[1:] if owner in _BY_THEIR_CLASS else args
        is_method = bool(owner) or type(func) is Unknown  # of something of which not even a name is known
        if last == "cuda" and is_method and owner not in ("torch", "cupy") and not _is_class(func):
            device = args[0] if args else kwargs.get("device")
            machine.touch(self.device(device) if device is not None else Dev("cuda"), f".{last}()")
        elif is_method and pins(owner, last, args, kwargs):
            machine.touch(Dev("cuda"), f"{last}(): pinned memory")
        elif last in MOVERS and args and not (last == "type" and isinstance(hard(args[0]), int)):  # `dtype.type(3)`
            device = self.device(args[0])
            if isinstance(device, Dev):
                machine.touch(device, f".{last}({device.kind})")
        if last[:1].isupper() and not last.endswith(unseen.SAYING):
            for value in (*args, *kwargs.values()):
                self._made_of(last, value)
        is_spread = _TENSOR_PARALLEL.fullmatch(last) and "device_ids" in kwargs
        if (_DATA_PARALLEL.fullmatch(last) or is_spread) and machine.rank is None:
            numbers = kwargs.get("device_ids", args[1] if len(args) > 1 else None)
            self._on_all(last, numbers, is_bound=bool(is_spread) and hard(numbers) is not None)
        self.device_arguments(func.path, named(last, args) | kwargs)
        if isinstance(func, Ext):
            need_told(machine, last, kwargs)
        self._given(func, last, args)

    def _given(self, func: Any, last: str, args: list[Any]) -> None:
        """Devices that what is not there to be read is given by position (`send(batch, torch.device("cuda:1"))`).

        Most likely it works there, unless its name says that it asks or keeps (`get_name(device)`, `Config(device)`).
        """
        if last.endswith(unseen.SAYING) or not unseen.works_with_devices(func):
            return
        for device in map(hard, args):
            if isinstance(device, Dev) and device.kind not in _NO_DEVICES:
                self.machine.guesses += not self.machine.quiet
                self.machine.touch(device, f"{last}({device.kind})")

    def _on_all(self, name: str, numbers: Any, *, is_bound: bool) -> None:
        """Who makes replicas, as PyTorch's `DataParallel`: without a choice on all devices, without any on the host.

        Args:
            name: What makes them.
            numbers: The devices that it is told.
            is_bound: Whether it wants those also where there are none.
        """
        visible = self.machine.visible()
        if visible or is_bound:
            span = self.words["device_span"].call([numbers], {}) if numbers is not None else visible
            self.machine.need(span if isinstance(span, int) else 1, name)

    def _made_of(self, name: str, value: Any) -> None:
        """What is made of JAX's devices uses them; a list has either devices in it or none."""
        first = hard(value)
        while isinstance(first, list | tuple) and first:
            first = hard(first[0])
        if isinstance(first, Dev) and first.kind == "gpu":
            for each in found_devices(value):
                self.machine.touch(each, f"{name}(devices)")

    def device_arguments(self, path: str, kwargs: dict[str, Any]) -> None:
        """Devices that a call uses by its arguments' names: `device=`, `execution_device=`."""
        machine, last = self.machine, path.rpartition(".")[2]
        machine.trace.may_be_made |= unseen.is_told_of_devices({name: hard(each) for name, each in kwargs.items()})
        if "device" in kwargs and not last.endswith(unseen.SAYING):
            device = self.device(kwargs["device"])
            if isinstance(device, Dev):
                machine.touch(device, f"{last}(device={device.kind})")
        if "devices" in kwargs and "accelerator" not in kwargs and not last.endswith(unseen.SAYING):
            for each in unseen.devices_told(machine, last, machine.items_of(kwargs["devices"]) or ()):
                device = self.device(each)
                if isinstance(device, Dev) and (device.kind == "cuda" or not isinstance(hard(each), str)):
                    machine.touch(device, f"{last}(devices=...)")
        self._mapped(last, kwargs)
        self._sizes(last, kwargs)
        self._switched_on(last, kwargs)
        for name, value in kwargs.items():
            device = self.device(value) if name == "execution_device" else hard(value)
            if (
                name.endswith("_device")
                and (last[:1].islower() or name == "execution_device")
                and isinstance(device, Dev)
            ):
                machine.touch(device, f"{last}({name}={device.kind})")

    def _switched_on(self, last: str, kwargs: dict[str, Any]) -> None:
        """What is told to use a device (`use_cuda=True`) does where there is one; what it does without is not known."""
        if not last.endswith((*unseen.SAYING, "Plugin")) and any(hard(kwargs.get(each)) is True for each in _SWITCHES):
            self.machine.guesses += not self.machine.quiet
            if self.machine.visible():
                self.machine.touch(Dev("cuda"), f"{last}(): told to use a device")

    def _mapped(self, last: str, kwargs: dict[str, Any]) -> None:
        """Devices that parts of a model are put on (`from_pretrained(..., device_map={"": 0})`)."""
        places = hard(kwargs.get("device_map"))
        if places is None or not last[:1].islower() or unseen.only_asks(last):
            return
        limits = hard(kwargs.get("max_memory"))
        if places in _CHOSEN_FOR_IT and not self.machine.visible():
            return
        if places in _CHOSEN_FOR_IT and isinstance(limits, dict):
            places = {each: each for each, most in limits.items() if type(each) is int and hard(most) != 0}
        for each in places.values() if isinstance(places, dict) else [places]:
            device = Dev("cuda") if hard(each) in _CHOSEN_FOR_IT else self.device(each)
            if isinstance(device, Dev) and device.kind not in _NO_DEVICES:
                self.machine.touch(device, f"{last}(device_map=...)")
                self.machine.guesses += hard(each) in _CHOSEN_FOR_IT and self.machine.size > 1  # on how many it is

    def _sizes(self, last: str, kwargs: dict[str, Any]) -> None:
        """Devices that something is started on (`Engine(tp_size=4)`), by the names of its arguments."""
        switches = [hard(kwargs[each]) for each in _SWITCHES if each in kwargs]
        if False in switches or (not last.endswith(_STARTING) and last not in _STARTERS):
            return
        least = 1 if True in switches else 2  # one alone may be the host
        for size in (hard(kwargs[name]) for name in _SIZES if name in kwargs):
            if isinstance(size, int) and not isinstance(size, bool) and size >= least:
                self.machine.need(size, f"{last}() is given {size} devices")


def _is_class(method: Any) -> bool:
    """Whether a method is a class's of something outside (`OrtDevice.cuda()`): it only names a kind."""
    return type(method) is Ext and _CLASS.fullmatch(method.path.rpartition(".")[0].rpartition(".")[2]) is not None
