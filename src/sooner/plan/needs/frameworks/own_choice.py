"""Whether the library under test chooses a device by itself where the tests say nothing of one, by its text alone.

`self.device = select_device(None)`, many steps before `self.model.to(self.device)`: what a trainer does is seldom
followed to its end. Names are looked up where they are bound, methods in their class; what is found by neither is not
followed.
"""

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from sooner.plan.needs.evaluator.trace import ANY
from sooner.plan.needs.evaluator.values import MISSING, Cls, Dev, Func, Inst, Mod, Unknown, Wrapped, hard
from sooner.plan.needs.evaluator.wrapping import place_of, wrapped_by
from sooner.plan.needs.frameworks.made_of import is_told_to_take
from sooner.plan.needs.sources import module_name
from sooner.plan.needs.syntax import kept, last_name

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine
    from sooner.plan.needs.sources import Sources

_DEEPEST: Final = 5
_MOST: Final = 120
"""Functions that are looked at for one call."""
_BEGINNING: Final = 400
_MOST_MODULES: Final = 60
"""Of a package, that are looked at for a device that they keep."""
_ASKS: Final = ("is_available", "device_count")
_WORKING: Final = re.compile(r"_*(?:train|fit|finetune|fine_tune|learn|evaluate|predict|generate|infer)(?:_\w+)?")
"""Names of methods that do what an object of the library is for."""
_APPLYING: Final = re.compile(
    r"(?:augment|attack|calculate|classify|compute|detect|embed|encode|score|segment|synthesize|tag|transcribe|transform"
    r"|translate)(?:_\w+)?"
)
"""Names of methods that may do so as well, or only count."""
_STARTING_RANKS: Final = ("spawn", "start_processes")
_PUTTING: Final = ("to", "cuda", "to_empty", "to_device")
_KIND_AND_INDEX: Final = 2
_TELLING: Final = re.compile(r"device|accelerator|gpu|cuda")
"""In names of arguments that say which device is used."""


def choose(machine: "Machine", called: Func | Cls, args: list[Any], kwargs: dict[str, Any]) -> None:
    """What is called of the library may take the first device, if there is one: then it does, and less sure."""
    is_seen = machine.trace.has_used
    if is_seen or machine.quiet or machine.loading or machine.rank is not None:
        return
    if takes_first(machine, called, args, kwargs):
        machine.trace.ask(ANY)
        if machine.size:
            machine.guesses += 1
            machine.touch(Dev("cuda"), "the library chooses a device")
    elif machine.size and _makes_a_base(called, args):
        machine.trace.may_be_made |= is_told_to_take(machine, called, args, kwargs)
    elif machine.size and _is_untold(called, args, kwargs):
        works = _WORKING.fullmatch(called.name) or _APPLYING.fullmatch(called.name)
        keeps = bool(works) and _keeps_a_device(machine, called.module)
        machine.trace.may_be_made |= keeps or _puts_behind(machine, called, hard(args[0]).cls)


def _makes_a_base(called: Func | Cls, args: list[Any]) -> TypeGuard[Func]:
    """Whether it makes what a class of the tests has inherited from the library (`super().__init__()`)."""
    made = hard(args[0]) if args else None
    is_maker = isinstance(called, Func) and called.name == "__init__"
    return is_maker and isinstance(made, Inst) and made.given is None


def _is_untold(called: Func | Cls, args: list[Any], kwargs: dict[str, Any]) -> TypeGuard[Func]:
    """Whether it is a method of an object of the library, and nobody has said where that works."""
    made = hard(args[0]).given if args and isinstance(hard(args[0]), Inst) else None
    return isinstance(called, Func) and made is not None and not _is_told(*made) and not _is_told(args, kwargs)


def _puts_behind(machine: "Machine", called: Func, cls: Cls) -> bool:
    """Whether a method reaches what puts something on a device, and its object has chosen one."""
    kept = machine.sources.choices
    key = ("behind", place_of(called), cls.module.path, cls.name)
    if key not in kept:
        init = cls.find("__init__")
        chooses, moves = _reaches(machine, [called], cls)
        kept[key] = moves and (chooses or (isinstance(init, Func) and _reaches(machine, [init], cls)[0]))
    return kept[key]


def _keeps_a_device(machine: "Machine", module: Mod) -> bool:
    """Whether a module of the library keeps a device that it has chosen, or one that it imports does.

    `device = torch.device("cuda" if torch.cuda.is_available() else "cpu")`, used wherever something is put somewhere.
    """
    kept = machine.sources.choices
    if (module.path,) not in kept:
        paths = [module.path]
        for path in paths:  # it grows
            found = _imported(machine.sources, path) if len(paths) < _MOST_MODULES else ()
            paths += dict.fromkeys(each for each in found if each not in paths)
        trees = (machine.sources.tree(path) for path in paths[:_MOST_MODULES])
        kept[(module.path,)] = any(_binds_a_choice(node) for tree in trees if tree is not None for node in tree.body)
    return kept[(module.path,)]


def _imported(sources: "Sources", path: str) -> Iterator[str]:
    """Files of a module's own package that it imports."""
    parts, tree = module_name(path).split("."), sources.tree(path)
    is_package = path.endswith("__init__.py")
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.ImportFrom):
            continue
        folder = parts[: len(parts) - node.level + is_package] if node.level else []
        whole = ".".join([*folder, *([node.module] if node.module else [])])
        names = [whole, *(f"{whole}.{each.name}" for each in node.names)] if whole.partition(".")[0] == parts[0] else []
        found = (sources.module(each, path) for each in names)
        yield from (each for each in found if each and not sources.is_test_code(each))


def _binds_a_choice(node: ast.stmt) -> bool:
    """Whether a statement of a module binds a device that it chooses; kept with the statement."""
    if not isinstance(node, ast.Assign | ast.If) or "device" not in ast.unparse(node)[:_BEGINNING].lower():
        return False
    return _chooses(node)


def choose_unseen(machine: "Machine", func: Func, given: tuple[list[Any], dict[str, Any]], result: Any) -> Any:
    """The result of a function of the library; where not all is known, it was not followed to its end."""
    if isinstance(hard(result), Unknown) or machine.trace.may_be_made:
        choose(machine, func, *given)
    return result


def takes_first(machine: "Machine", called: Any, args: list[Any], kwargs: dict[str, Any]) -> bool:
    """Whether what is called of the library chooses a device itself, and puts something there.

    Args:
        machine: Evaluates.
        called: A function, a class, or a method.
        args: What it is given.
        kwargs: And by name.
    """
    owner = hard(args[0]) if args else None
    if isinstance(called, Func) and called.owner is not None and isinstance(owner, Inst):
        made, is_base = owner.given, _makes_a_base(called, args)
        works = is_base or _WORKING.fullmatch(called.name) or _puts_itself(called)
        if (made is None and not is_base) or (made is not None and _is_told(*made)) or not works:
            return False
        starts = [called] if is_base else [called, owner.cls.find("__init__")]
        cls: Cls | None = owner.cls
    else:
        cls = called if isinstance(called, Cls) else None
        starts = [called if cls is None else cls.find("__init__")]
    if _is_told(args, kwargs):
        return False
    found = [each for each in starts if isinstance(each, Func)]
    kept = machine.sources.choices  # the same for every number of devices
    of = "" if cls is None else f"{cls.module.path}:{cls.name}"
    key: tuple[int | str, ...] = (*map(place_of, found), of)
    if key not in kept:
        kept[key] = all(_reaches(machine, found, cls))
    return kept[key]


def doubt_others(machine: "Machine", called: Any, cls: Cls) -> None:
    """What a method of the library's reaches may use devices by their numbers, or start ranks: that is not followed.

    Of classes that the rules know it is known what they do.
    """
    known = machine.rules.for_call(f"{cls.module.name.removeprefix('src.')}.{cls.name}")
    if machine.size and isinstance(called, Func) and known is None and not machine.trace.has_used:
        kept = machine.sources.choices
        key = ("others", place_of(called), cls.module.path, cls.name)
        if key not in kept:
            kept[key] = any(_numbers(each.node) for each in reached(machine, [called], cls))
        machine.trace.may_be_made |= kept[key]


def may_put(machine: "Machine", called: Func, cls: Cls) -> bool:
    """Whether a method of the library reaches what puts something on a device that somebody has chosen."""
    kept = machine.sources.choices
    key = ("puts", place_of(called), cls.module.path, cls.name)
    if key not in kept:
        kept[key] = any(_may_put(each.node) for each in reached(machine, [called], cls))
    return kept[key]


def _may_put(node: ast.AST) -> bool:
    calls = (each for each in _inside(node) if isinstance(each, ast.Call))
    return any(
        getattr(each.func, "attr", "") in _PUTTING or any(one.arg == "device" for one in each.keywords)
        for each in calls
    )


def _puts_itself(called: Func) -> bool:
    """Whether a method itself puts something on a device, on its object's (`self.device`) or on one of its choice."""
    return puts_somewhere(called.node) and (_chooses(called.node) or _puts_on_own(called.node))


@kept
def _puts_on_own(node: ast.AST) -> bool:
    calls = [each for each in _inside(node) if isinstance(each, ast.Call)]
    put = [each for each in calls if _is_put(each, getattr(each.func, "attr", ""))]
    return any("self.device" in ast.unparse(each) or "self._device" in ast.unparse(each) for each in put)


def _is_told(args: list[Any], kwargs: dict[str, Any]) -> bool:
    """Whether a call says something of devices: the library has no choice."""
    given = [hard(each) for each in (*args, *kwargs.values())]
    named = [*kwargs.items(), *(pair for each in given if isinstance(each, dict) for pair in each.items())]
    says = any(isinstance(name, str) and _TELLING.search(name) and hard(each) is not None for name, each in named)
    return says or any(isinstance(each, Dev) or each in ("cpu", "cuda", "gpu") for each in given if _is_flat(each))


def _is_flat(value: Any) -> bool:
    return isinstance(value, str | Dev)


def _reaches(machine: "Machine", starts: list[Func], cls: Cls | None) -> tuple[bool, bool]:
    """Whether functions choose a device, and whether they put something on one."""
    chooses = moves = False
    for func in reached(machine, starts, cls):
        chooses |= _chooses(func.node)
        moves |= puts_somewhere(func.node)
        if chooses and moves:
            break
    return chooses, moves


def reached(machine: "Machine", starts: list[Func], cls: Cls | None) -> Iterator[Func]:
    """Functions of the library, and those that they call, as far as names say which."""
    waiting = [(each, cls, 0) for each in starts]
    seen: set[int] = set()
    unwrapped: set[int] = set()
    while waiting and len(seen) < _MOST:
        func, owner, depth = waiting.pop(0)
        if id(func) not in unwrapped and (wrapped := wrapped_by(func)) is not None:
            waiting.append((wrapped, owner, depth))
        unwrapped.add(id(func))
        if id(func.node) in seen or func.module.is_test_code or func.module.is_model:
            continue
        seen.add(id(func.node))
        yield func
        if depth < _DEEPEST:
            waiting += [(each, of, depth + 1) for each, of in _called(machine, func, owner)]


def _called(machine: "Machine", func: Func, cls: Cls | None) -> Iterator[tuple[Func, Cls | None]]:
    """The functions of the library that a function calls, as far as their names say which, each with its class."""
    first = func.positional[0] if func.owner is not None and func.positional else ""
    for node in _inside(func.node):
        if not isinstance(node, ast.Call):
            continue
        found, of = _named(machine, node.func, func, cls, first)
        if isinstance(found, Cls):
            found, of = found.find("__init__"), found
        if isinstance(found, Wrapped):
            found = found.func
        if isinstance(found, Func):
            yield found, of


def _named(machine: "Machine", node: ast.expr, func: Func, cls: Cls | None, first: str) -> tuple[Any, Cls | None]:
    if isinstance(node, ast.Name):
        names = func.module.env.names
        return (hard(names[node.id]), None) if node.id in names else (MISSING, None)
    if not isinstance(node, ast.Attribute):
        return MISSING, None
    if isinstance(node.value, ast.Name) and cls is not None and node.value.id == first:
        return cls.find(node.attr), cls
    if isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") == "super" and cls is not None:
        return _after(cls, func.owner, node.attr), cls
    value = node.value if isinstance(node.value, ast.Call) else _bound_to(func.node, node.value)
    if value is not None:  # what a class makes has its methods
        made, _ = _named(machine, value.func, func, cls, first) if isinstance(value.func, ast.Name) else (MISSING, None)
        return (made.find(node.attr), made) if isinstance(made, Cls) else (MISSING, None)
    whole, _ = _named(machine, node.value, func, cls, first)
    if isinstance(whole, Mod) and not whole.is_model:
        return machine.of_module(whole, node.attr), None
    if isinstance(whole, Cls):
        return whole.find(node.attr), whole
    return MISSING, None


def _bound_to(node: ast.AST, name: ast.expr) -> ast.Call | None:
    """The call whose result a function binds to a name."""
    assigned = (each for each in _inside(node) if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call))
    targets = ((target, each.value) for each in assigned for target in each.targets)
    named = (call for target, call in targets if isinstance(target, ast.Name) and _is_same(target, name))
    return next((each for each in named if isinstance(each, ast.Call)), None)


def _is_same(target: ast.Name, name: ast.expr) -> bool:
    return isinstance(name, ast.Name) and name.id == target.id


def _after(cls: Cls, owner: Cls | None, name: str) -> Any:
    """What `super().name` is, in a method of one of a class's bases."""
    bases = [each for each in cls.mro if isinstance(each, Cls)]
    behind = bases[bases.index(owner) + 1 :] if owner in bases else []
    return next((each.attrs[name] for each in behind if name in each.attrs), MISSING)


@kept
def puts_somewhere(node: ast.AST) -> bool:
    """Whether a function puts something on the device that was chosen (`model.to(self.device)`)."""
    calls = [each for each in _inside(node) if isinstance(each, ast.Call)]
    return any(_is_put(each, getattr(each.func, "attr", "")) for each in calls)


@kept
def _numbers(node: ast.AST) -> bool:
    """Whether a function uses devices by numbers that it computes (`f"cuda:{i}"`), or starts processes of ranks."""
    return any(
        (isinstance(each, ast.JoinedStr) and ast.unparse(each)[2:].startswith("cuda:"))
        or (isinstance(each, ast.Call) and _is_numbered(each))
        for each in _inside(node)
    )


def _is_numbered(node: ast.Call) -> bool:
    name = last_name(node.func)
    if name == "device" and len(node.args) == _KIND_AND_INDEX:
        return not isinstance(node.args[1], ast.Constant)
    by_number = name in ("set_device", "cuda") and bool(node.args)
    return name in _STARTING_RANKS or (by_number and not isinstance(node.args[0], ast.Constant | ast.Attribute))


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a function, but for those of classes that it defines."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += [inner for inner in ast.iter_child_nodes(each) if not isinstance(inner, ast.ClassDef)]


@kept
def _chooses(node: ast.AST) -> bool:
    """Whether a function asks for devices to choose one (`"cuda" if torch.cuda.is_available() else "cpu"`).

    Not so where it does only if it is asked for one (`elif device == "gpu":`).
    """
    asked = {
        id(inner) for each in _inside(node) if _is_asked(each, node) for way in each.body for inner in ast.walk(way)
    }
    ways = (each for each in _inside(node) if isinstance(each, ast.If | ast.IfExp) and id(each) not in asked)
    return any(_is_choice(each) for each in ways)


def _is_asked(node: ast.AST, function: ast.AST) -> TypeGuard[ast.If]:
    """Whether a condition compares an argument of a function with a text that is not its default."""
    test = node.test if isinstance(node, ast.If) else None
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or not isinstance(test, ast.Compare):
        return False
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    defaults = dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
    name, with_what = getattr(test.left, "id", None), test.comparators[0]
    is_text = (
        isinstance(test.ops[0], ast.Eq) and isinstance(with_what, ast.Constant) and isinstance(with_what.value, str)
    )
    is_default = name in defaults and ast.dump(defaults[name]) == ast.dump(with_what)
    return name in names and is_text and not is_default


def _is_choice(node: ast.If | ast.IfExp) -> bool:
    """Whether one way of a condition that asks for devices has one of them."""
    asked = [each for each in _inside(node.test) if isinstance(each, ast.Attribute) and each.attr in _ASKS]
    if not any("cuda" in ast.unparse(each) or "accelerator" in ast.unparse(each) for each in asked):
        return False
    ways = [node.body, node.orelse] if isinstance(node, ast.IfExp) else [*node.body, *node.orelse]
    return any(_names_device(each) for way in ways for each in _inside(way))


def _names_device(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value.startswith(("cuda", "gpu", "cpu"))
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any("device" in ast.unparse(each) for each in targets)


def _is_put(node: ast.Call, name: str) -> bool:
    if name == "cuda":
        return True
    given = [
        *node.args[: name in ("to", "to_device", "to_empty")],
        *(e.value for e in node.keywords if e.arg == "device"),
    ]
    return any("device" in ast.unparse(each) for each in given)
