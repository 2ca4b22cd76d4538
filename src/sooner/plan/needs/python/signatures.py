"""What `inspect.signature` says: the parameters of functions, methods and classes, in their order."""

from typing import Any

from sooner.plan.needs.evaluator.values import UNKNOWN, Bound, Cls, Func, Unknown, Wrapped, hard


def parameters_of(value: Any) -> Any:
    """The names of the parameters, each with something unknown; unknown where they are not all seen."""
    value = hard(value)
    if isinstance(value, Bound):
        return _without_first(parameters_of(value.func))
    if isinstance(value, Cls):
        return _of_class(value)
    if not isinstance(value, Func) or "__wrapped__" in value.attrs:
        return UNKNOWN
    said = value.node.args
    names = value.positional
    names += [said.vararg.arg] if said.vararg else []
    names += [each.arg for each in said.kwonlyargs]
    names += [said.kwarg.arg] if said.kwarg else []
    return {name: Unknown("inspect.Parameter") for name in names}


def every_parameter(func: Func) -> list[str]:
    """The names of what a function can be told; none where it takes whatever it is given."""
    said = func.node.args
    return [] if said.vararg or said.kwarg else [*func.positional, *(each.arg for each in said.kwonlyargs)]


def _of_class(cls: Cls) -> Any:
    maker = cls.find("__init__")
    if isinstance(maker, Func | Wrapped):
        return _without_first(parameters_of(maker))
    fields = cls.find("__record__")
    if isinstance(fields, list):
        return {name: Unknown("inspect.Parameter") for name in fields}
    return UNKNOWN if cls.is_open else {}


def _without_first(names: Any) -> Any:
    return {name: names[name] for name in list(names)[1:]} if isinstance(names, dict) else UNKNOWN
