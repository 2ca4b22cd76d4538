"""PyTorch's device meshes, as far as their kind of device and the names of their dimensions go."""

from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import MISSING, Args, Kwargs, Native, Raised, Unknown, hard

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_PATH: Final = "init_device_mesh()"
_ANY: Final = ""
"""Stands for a name that is not known."""
_OF_PRETENDED: Final = 'backend == "fake"'
"""Where PyTorch's mesh has this in its source, it sets no device for a group that only pretends."""


class NamedMesh(Unknown):
    """A mesh whose dimensions may have names; of its ranks nothing is known.

    Args:
        names: Of its dimensions; None where they are not known.
        known: Names that the whole mesh is asked for, those of dimensions that were made one with it.
        kind: Of its devices; None where it is not known.
    """

    __slots__ = ("kind", "known", "names")

    def __init__(self, names: tuple[str, ...] | None, known: set[str], kind: str | None) -> None:
        super().__init__(_PATH)
        self.names = names
        self.known = known
        self.kind = kind

    def attribute(self, _machine: "Machine", name: str) -> Any:
        """An attribute; MISSING where it has nothing to do with names and kinds."""
        if name == "device_type" and self.kind is not None:
            return self.kind
        if self.names is None:
            return MISSING
        if name == "mesh_dim_names":
            return self.names
        if name == "ndim":
            return len(self.names)
        return Native(name, self._flattened) if name == "_flatten" else MISSING

    def _flattened(self, args: Args, kwargs: Kwargs) -> Any:
        """Its dimensions made one: by a name that is given, or by theirs."""
        given = hard(kwargs.get("mesh_dim_name", args[0] if args else None))
        name = "_".join(self.names or ()) if given is None else given
        if not isinstance(name, str):
            self.known.add(_ANY)
            return Unknown(_PATH)
        self.known.add(name)
        return NamedMesh((name,), self.known, self.kind)

    def item(self, machine: "Machine", index: Any) -> Any:
        """The dimensions of some names.

        Raises:
            Raised: It has none of such a name.
        """
        asked = [hard(each) for each in index] if isinstance(index, list | tuple) else [index]
        if self.names is None or not asked or not all(isinstance(each, str) for each in asked):
            return NamedMesh(None, self.known, self.kind)
        lacking = [each for each in asked if each not in self.known and _ANY not in self.known]
        if lacking:
            raise Raised("KeyError", f"a mesh of {list(self.names)} has no {lacking[0]}", *machine.current)
        return NamedMesh(tuple(asked), self.known, self.kind)


def _mesh(_machine: "Machine", args: list[Any]) -> Any:
    """A mesh with names and a kind of device, if they are known: `mesh(names, kind)`."""
    names, kind = hard(args[0]), hard(args[1])
    given = [hard(each) for each in names] if isinstance(names, list | tuple) else [names]
    known = tuple(given) if all(isinstance(each, str) for each in given) else None
    return NamedMesh(known, set(known or ()), kind if isinstance(kind, str) else None)


def _pretend(machine: "Machine", args: list[Any]) -> Any:
    """From here on the process is in a group that only pretends to be one, or no longer: `pretend(whether)`."""
    machine.is_pretended = bool(hard(args[0]))


def _device_of_mesh(machine: "Machine", args: list[Any]) -> Any:
    """The kind of device that making a mesh of it uses: of a group that only pretends none, in versions that say so.

    Raises:
        Raised: It joins the ranks itself, and there are fewer devices than ranks.
    """
    if not machine.is_pretended:
        if machine.rank is not None and not machine.trace.backends and hard(args[0]) == "cuda":
            machine.need(machine.rank[1], "a mesh of devices joins its ranks by NCCL")
        return args[0]
    path = machine.sources.module("torch.distributed.device_mesh", machine.current[0] or "")
    machine.guesses += path is None
    return "cpu" if path is not None and _OF_PRETENDED in (machine.sources.read(path) or "") else args[0]


WORDS: Final = {"mesh": _mesh, "pretend": _pretend, "device_of_mesh": _device_of_mesh}
