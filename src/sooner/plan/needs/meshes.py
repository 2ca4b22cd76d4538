"""PyTorch's device meshes, as far as the names of their dimensions go."""

from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.values import MISSING, Args, Kwargs, Native, Raised, Unknown, hard

if TYPE_CHECKING:
    from sooner.plan.needs.machine import Machine

_PATH: Final = "init_device_mesh()"
_ANY: Final = ""
"""Stands for a name that is not known."""


class NamedMesh(Unknown):
    """A mesh whose dimensions have names; of its ranks nothing is known.

    Args:
        names: Of its dimensions.
        known: Names that the whole mesh is asked for, those of dimensions that were made one with it.
    """

    __slots__ = ("known", "names")

    def __init__(self, names: tuple[str, ...], known: set[str]) -> None:
        super().__init__(_PATH)
        self.names = names
        self.known = known

    def attribute(self, _machine: "Machine", name: str) -> Any:
        """An attribute; MISSING where it has nothing to do with names."""
        if name == "mesh_dim_names":
            return self.names
        if name == "ndim":
            return len(self.names)
        return Native(name, self._flattened) if name == "_flatten" else MISSING

    def _flattened(self, args: Args, kwargs: Kwargs) -> Any:
        """Its dimensions made one: by a name that is given, or by theirs."""
        given = hard(kwargs.get("mesh_dim_name", args[0] if args else None))
        name = "_".join(self.names) if given is None else given
        if not isinstance(name, str):
            self.known.add(_ANY)
            return Unknown(_PATH)
        self.known.add(name)
        return NamedMesh((name,), self.known)

    def item(self, machine: "Machine", index: Any) -> Any:
        """The dimensions of some names.

        Raises:
            Raised: It has none of such a name.
        """
        asked = [hard(each) for each in index] if isinstance(index, list | tuple) else [index]
        if not asked or not all(isinstance(each, str) for each in asked):
            return Unknown(_PATH)
        lacking = [each for each in asked if each not in self.known and _ANY not in self.known]
        if lacking:
            raise Raised("KeyError", f"a mesh of {list(self.names)} has no {lacking[0]}", *machine.current)
        return NamedMesh(tuple(asked), self.known)


def _mesh(_machine: "Machine", args: list[Any]) -> Any:
    """A mesh with names, if they are known: `mesh(names)`."""
    names = hard(args[0])
    given = [hard(each) for each in names] if isinstance(names, list | tuple) else [names]
    if not all(isinstance(each, str) for each in given):
        return Unknown(_PATH)
    return NamedMesh(tuple(given), set(given))


WORDS: Final = {"mesh": _mesh}
