"""Instances: of the tests' own classes, of the library under test, of what the rules model."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final, cast

from sooner.plan.needs.evaluator.attributes import METACLASS, Attributes
from sooner.plan.needs.evaluator.enumerations import is_enumeration
from sooner.plan.needs.evaluator.undoing import in_advance
from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Bound,
    Cls,
    Func,
    Inst,
    Raised,
    Unknown,
    Wrapped,
    hard,
    is_plain,
)
from sooner.plan.needs.evaluator.wrapping import place_of
from sooner.plan.needs.frameworks.kept import keep_parts
from sooner.plan.needs.frameworks.library_objects import is_followed, keep_made, made_new
from sooner.plan.needs.frameworks.made_of import finish_record, takes_devices
from sooner.plan.needs.frameworks.outside_kinds import base_names, is_exception
from sooner.plan.needs.frameworks.own_choice import choose
from sooner.plan.needs.frameworks.refusals import refuse_as_awaited
from sooner.plan.needs.frameworks.unseen import imports_arrays, puts_on_devices

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_DISTRIBUTED: Final = "DistributedDataParallel"
"""PyTorch's: one replica for each rank, as a class has it that inherits from it, whatever it is called."""


class Making(Attributes):
    """The part of the machine that makes instances."""

    # What the other parts of the machine provide.

    @abstractmethod
    def _call_library(self, func: Func, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A function of the library under test."""

    @abstractmethod
    def _made_by_itself(self, what: str | None) -> None:
        """The library has made what its framework puts on the first device."""

    # Instances.

    def instantiate(self, cls: Cls, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Make an instance: `__call__` of a metaclass, `__new__` and `__init__` of the tests' own classes are run."""
        meta = cls.find(METACLASS)
        maker = meta.find("__call__") if isinstance(meta, Cls) else MISSING
        if isinstance(maker, Func) and maker.module.is_test_code:
            return self.call(Bound(maker, cls), args, kwargs)
        return self.instance(cls, args, kwargs)

    def instance(self, cls: Cls, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """What `type.__call__` makes of a class."""
        if is_enumeration(cls):
            return self._member(cls, args[0] if args else UNKNOWN)
        if not cls.module.is_model:
            told = self._told_of(cls, args, kwargs)
            if told is not None:
                return told
        maker = cls.find("__new__")
        if isinstance(maker, Wrapped):
            maker = maker.func
        if isinstance(maker, Func):
            made = self.call(maker, [cls, *args], kwargs)
            if not (isinstance(made, Inst) and made.cls is cls):
                return made
        else:
            made = Inst(cls)
        if is_exception(cls):
            made.attrs["__message__"] = args[0] if args else ""
        self._made_ready(made, cls, args, kwargs)
        return made

    def _member(self, cls: Cls, given: Any) -> Any:
        """The member of an enumeration that is given, or has this value, or is made of it where none has (`_missing_`).

        Raises:
            Raised: There is none.
        """
        found = self.enum_members(cls) or []
        if hard(given) in found:
            return hard(given)
        same = [self.same(each.attrs["_value_"], given) for each in found]
        if True in same:
            return found[same.index(True)]
        if None in same or not found or cls.is_a("Flag", "IntFlag"):
            return UNKNOWN
        missing = cls.find("_missing_")
        other = self.call(self.bound(missing, None, cls), [given], {}) if isinstance(missing, Wrapped) else None
        if other is None:
            raise Raised("ValueError", f"not a valid {cls.name}", *self.current)
        return other

    def _made_ready(self, made: Inst, cls: Cls, args: list[Any], kwargs: dict[str, Any]) -> None:
        fields = cls.find("__record__")
        init = cls.find("__init__")
        if isinstance(init, Func):
            self.call(init, [made, *args], kwargs)
        elif isinstance(fields, list) and "__items__" not in made.attrs:
            self._fill(made, cls, fields, args, kwargs)
        elif init is MISSING and cls.module.is_test_code:
            keep_parts(cast("Machine", self), made, args)

    def _told_of(self, cls: Cls, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """What the rules make of a new instance; None where its own code says it."""
        rule = self.rules.for_function(cls.module.name, "", cls.name)
        if cls.module.is_test_code:
            if rule is None:
                return None
            self.natives.called = cls.name
            self.natives.apply(rule, args, kwargs)
            return Unknown(f"{cls.name}()")
        if self.quiet:
            return None
        refuse_as_awaited(cast("Machine", self), cls.find("__init__"), [Inst(cls), *args], kwargs)
        # Making something of the library under test may take devices, which its arguments say.
        name = _DISTRIBUTED if _DISTRIBUTED in base_names(cls) else cls.name
        self.natives.call_outside(Unknown(f"{cls.module.name}.{name}"), args, _used(cls, kwargs))
        self._constructed(cls, args, kwargs)
        choose(cast("Machine", self), cls, args, kwargs)
        self.trace.may_be_made |= takes_devices(cast("Machine", self), cls, args, kwargs)
        return None if isinstance(cls.find("__record__"), list) else self._made_as_its_base(cls, args, kwargs)

    def _constructed(self, cls: Cls, args: list[Any], kwargs: dict[str, Any]) -> None:
        """What a class of the library under test makes while it is made, where its module has a framework of arrays."""
        for name, first in (("__new__", cls), ("__init__", Inst(cls))):
            maker = cls.find(name)
            maker = maker.func if isinstance(maker, Wrapped) else maker
            if not isinstance(maker, Func) or maker.module.is_test_code or maker.module.is_model:
                continue
            has_arrays = imports_arrays(self.sources.read(maker.module.path))
            if self.trace.touched or not (has_arrays or puts_on_devices(cls, name)):
                continue
            if has_arrays and place_of(maker) in self.made_by_itself:
                self._made_by_itself(self.made_by_itself[place_of(maker)])
                continue
            is_done_again = isinstance(first, Inst) and is_followed(cast("Machine", self), maker, first)
            with in_advance(cast("Machine", self), is_done_again=is_done_again):
                self._call_library(maker, [first, *args], kwargs)
            self.made_by_itself.setdefault(place_of(maker), None)

    def _made_as_its_base(self, cls: Cls, args: list[Any], kwargs: dict[str, Any]) -> Inst:
        """An instance of a class of the library under test: a base that the rules know is made of what it is given.

        Raises:
            Raised: The base lacks a device.
        """
        made, own = made_new(cast("Machine", self), cls, args, kwargs), cls.find("__init__")
        keep_made(cast("Machine", self), made, own, args, kwargs)
        known = next((each for each in cls.mro if isinstance(each, Cls) and each.module.is_model), None)
        init = MISSING if known is None else known.find("__init__")
        if isinstance(init, Func) and (own is init or not made.is_made):  # else its own has done so
            try:
                self.call(init, [made, *args], kwargs)
            except Raised as raised:
                if raised.device:  # else it is told other things than its base
                    raise
        return made

    def _fill(self, made: Inst, cls: Cls, fields: list[str], args: list[Any], kwargs: dict[str, Any]) -> None:
        given = dict(zip(fields, args, strict=False)) | kwargs
        for name in fields:
            made.attrs[name] = given[name] if name in given else self.default_of(cls, name)
        if cls.find("__tuple__") is not MISSING:
            made.attrs["__items__"] = [made.attrs[name] for name in fields]
        after = cls.find("__post_init__")
        if isinstance(after, Func) and self._is_told_of_ranks(cls, made):
            self._refuse(after, made)
        elif isinstance(after, Func):
            finish_record(cast("Machine", self), after, made, given)

    def _is_told_of_ranks(self, cls: Cls, made: Inst) -> bool:
        """Whether a record of the library under test knows all that it was given, the number of ranks with it."""
        if self.rank is None or self.quiet or cls.module.is_test_code or cls.module.is_model:
            return False
        values = [each for name, each in made.attrs.items() if not name.startswith("_")]
        return is_plain(values) and made.attrs.get("world_size") == self.rank[1]

    def _refuse(self, after: Func, made: Inst) -> None:
        """A record looks at what it was given: degrees whose product is not the number of ranks are refused.

        Raises:
            Raised: It refuses them.
        """
        self.quiet += 1
        self.refusing = True
        try:
            self._call_library(after, [made], {})
        except Raised as raised:
            refused = Raised(raised.kind, raised.reason, *self.current, device=True)
            refused.refusal = True
            raise refused from None
        finally:
            self.refusing = False
            self.quiet -= 1


def _used(cls: Cls, kwargs: dict[str, Any]) -> dict[str, Any]:
    """What a class of the library is given that may use a device: a record that only describes one (`gpu`) does not."""
    is_record = isinstance(cls.find("__record__"), list) and cls.find("__post_init__") is MISSING
    if not is_record or hard(kwargs.get("device")) != "gpu":
        return kwargs
    return {name: each for name, each in kwargs.items() if name != "device"}
