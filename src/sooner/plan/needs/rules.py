"""The rule table: what frameworks do, where their own source is not in the tree under test.

The shipped table is `rules.toml`, commented; a user's file has the same form and is looked at first.
The Python in a table is read when it is first asked for, since a suite meets few of its frameworks.
"""

import ast
import re
import tomllib
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import Any, Final

from msgspec import Struct, structs

from sooner.model.errors import SettingsError
from sooner.model.text import there_are
from sooner.plan.needs.sources import parsed

_KINDS: Final = ("call", "constant", "environment", "mark", "fixture", "listed", "model", "outside")
_PARTS: Final = ("returns", "needs", "ranks", "backend", "skip", "fail", "touches", "value", "otherwise")
_CONDITIONS: Final = ("skip", "fail")
_SWITCHES: Final = ("override", "decorator", "unsure")
_TEXTS: Final = ("names", "why", *_SWITCHES)
_NO_MODEL: Final = "a [[model]] needs `modules` and Python in `python`"
_CLASS: Final = re.compile(r"^class (\w+)", re.MULTILINE)


class Rule(Struct, frozen=True, kw_only=True, dict=True):
    """One entry: names, and an expression for each thing that it says."""

    source: str
    """The table that it is from."""
    names: tuple[str, ...]
    why: str
    texts: dict[str, str]
    """Its expressions as they are written."""
    override: bool = False
    """Whether it holds even where the tree under test has the function itself."""
    decorator: bool = False
    """Whether the call makes a decorator: then it is the decorated test that is skipped, and not the caller."""
    unsure: bool = False
    """Whether the test may neither skip nor fail where it says so: the answer is less sure."""

    @cached_property
    def expressions(self) -> dict[str, ast.expr]:
        """The expression of each part.

        Raises:
            SettingsError: One that is not Python.
        """
        return {part: _expression(text, self.source) for part, text in self.texts.items()}

    @cached_property
    def asked(self) -> dict[str, int]:
        """The arguments that it asks for by name, and where the framework's own function has them."""
        return {name: at for tree in self.expressions.values() for name, at in _asked(tree)}

    def by_name(self, parameters: Sequence[str], args: Sequence[Any]) -> dict[str, Any]:
        """The arguments it asks for that the tree's own function, of another version, has at another position."""
        given = dict(zip(parameters, args, strict=False))
        names = (name for name, at in self.asked.items() if name in given and name not in parameters[at : at + 1])
        return {name: given[name] for name in names}

    def fits(self, parameters: Sequence[str]) -> bool:
        """Whether a function of the tree with these parameters is the one that is meant.

        What starts processes is told how many: a function of the same name that cannot be told so is another one.
        """
        return not (self.asked and parameters and self.ranks) or not self.asked.keys().isdisjoint(parameters)

    @property
    def returns(self) -> bool:
        """Whether it says what a call gives back."""
        return "returns" in self.texts

    @property
    def needs(self) -> bool:
        """Whether it says how many devices a call uses."""
        return "needs" in self.texts

    @property
    def ranks(self) -> bool:
        """Whether it says how many processes are started."""
        return "ranks" in self.texts

    @property
    def backend(self) -> bool:
        """Whether it says which backend is used."""
        return "backend" in self.texts

    @property
    def skip(self) -> bool:
        """Whether it says when the test is skipped."""
        return "skip" in self.texts

    @property
    def fail(self) -> bool:
        """Whether it says when the test fails."""
        return "fail" in self.texts

    @property
    def touches(self) -> bool:
        """Whether it says which device is used."""
        return "touches" in self.texts


class _Model:
    """Python that stands in for modules of a framework."""

    def __init__(self, source: str, text: str) -> None:
        self._source = source
        self._text = text

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        tree = parsed(self._text)
        if tree is None:
            raise SettingsError(f"{self._source}: {_NO_MODEL}")
        return tree


class Rules:
    """All rules, found by the last parts of dotted names."""

    def __init__(self) -> None:
        self._calls: dict[str, Rule] = {}
        self._constants: dict[str, Rule] = {}
        self.environment: dict[str, Rule] = {}
        self.marks: dict[str, Rule] = {}
        self.fixtures: dict[str, Rule] = {}
        self.listed: dict[str, Rule] = {}
        """By the last part of a call's name: calls that make an entry of a list of tests."""
        self._models: dict[str, _Model] = {}
        self._classes: dict[str, tuple[str, str]] = {}
        self._aliases: dict[str, str] = {}
        self._insistent: set[str] = set()
        self._overlays: dict[str, str] = {}
        self._outside: set[str] = set()
        self._inside: set[str] = set()
        self._absent: set[str] = set()
        self._taking: set[str] = set()
        self._refusing: dict[str, str] = {}
        self._known_calls: dict[str, Rule | None] = {}
        self._known_constants: dict[str, Rule | None] = {}

    def add(self, entry_kind: str, entry: dict[str, Any], source: str) -> None:
        """Take in one entry of a table.

        Raises:
            SettingsError: An unknown key, or a value of the wrong kind.
        """
        if entry_kind == "model":
            self._add_model(entry, source)
            return
        if entry_kind == "outside":
            self._outside |= set(entry.get("modules", ()))
            self._inside |= set(entry.get("except", ()))
            self._absent |= set(entry.get("absent", ()))
            self._taking |= set(entry.get("taking", ()))
            self._refusing |= entry.get("refusing", {})
            return
        rule = _rule(entry, source)
        table = {
            "call": self._calls,
            "constant": self._constants,
            "environment": self.environment,
            "mark": self.marks,
            "fixture": self.fixtures,
            "listed": self.listed,
        }[entry_kind]
        for name in rule.names:
            table.setdefault(name, rule)

    def otherwise(self, text: str) -> "Rules | None":
        """The same rules with the other values of variables that a test file reads, and the other answers of calls.

        None where what it reads and calls has no other.
        """
        variables = {
            name: structs.replace(rule, texts={"value": rule.texts["otherwise"]})
            for name, rule in self.environment.items()
            if "otherwise" in rule.texts and name in text and "environ" in text
        }
        calls = {
            name: structs.replace(rule, texts={"returns": rule.texts["otherwise"]})
            for name, rule in self._calls.items()
            if "otherwise" in rule.texts and f"{name}(" in text
        }
        return copy(self).with_others(variables, calls) if variables or calls else None

    def with_others(self, variables: dict[str, Rule], calls: dict[str, Rule]) -> "Rules":
        """These rules themselves, with others for some variables and calls."""
        self.environment = self.environment | variables
        self._calls = self._calls | calls
        self._known_calls = {}
        return self

    def _add_model(self, entry: dict[str, Any], source: str) -> None:
        text, names = entry.get("python", ""), entry.get("modules", [])
        if not isinstance(text, str) or not names:
            raise SettingsError(f"{source}: {_NO_MODEL}")
        first = names[0]
        if first in self._models:
            return
        self._models[first] = _Model(source, text)
        if entry.get("override"):
            self._insistent |= set(names)
        for name in names:
            self._aliases.setdefault(name, first)
            if entry.get("overlay"):
                self._overlays.setdefault(name, first)
        for name in _CLASS.findall(text):
            self._classes.setdefault(name, (first, name))

    def check(self, words: Collection[str]) -> None:
        """Read all Python in the tables, which is else read when it is first asked for.

        Args:
            words: All that means something in an expression.

        Raises:
            SettingsError: What is not Python, or a word that means nothing.
        """
        for model in self._models.values():
            _ = model.tree
        tables = (self._calls, self._constants, self.environment, self.marks, self.fixtures, self.listed)
        for rule in (rule for table in tables for rule in table.values()):
            _check_words(rule, words)

    def model(self, name: str) -> ast.Module:
        """The source of a model, by its first name.

        Raises:
            SettingsError: It is not Python.
        """
        return self._models[name].tree

    def for_call(self, path: str) -> Rule | None:
        """The rule for a call of something outside, by its dotted name."""
        if path not in self._known_calls:
            self._known_calls[path] = _found(self._calls, path)
        return self._known_calls[path]

    def for_function(self, module: str, owner: str, name: str, parameters: Sequence[str] = ()) -> Rule | None:
        """The rule that overrides a function of the tree, or a method of a class of it."""
        rule = self.for_call(f"{module}.{owner}.{name}") if owner else None
        if rule is None or not rule.override:
            rule = self.for_call(f"{module}.{name}")
        return rule if rule is not None and rule.override and rule.fits(parameters) else None

    def constant(self, path: str) -> Rule | None:
        """The rule for a name that is not called."""
        if path not in self._known_constants:
            self._known_constants[path] = _found(self._constants, path)
        return self._known_constants[path]

    def is_model(self, name: str) -> bool:
        """Whether a module is one that the table stands in for."""
        return name in self._aliases

    def insists(self, name: str) -> bool:
        """Whether a model stands in for its module even where the tree has it."""
        return name in self._insistent

    def model_name(self, name: str) -> str:
        """The first name of a model."""
        return self._aliases[name]

    def overlay(self, module: str) -> str | None:
        """The model that is laid over a module of the tree, by the end of its dotted name."""
        for tail, name in self._overlays.items():
            if module == tail or module.endswith(f".{tail}"):
                return name
        return None

    def class_model(self, path: str) -> tuple[str, str] | None:
        """Module and name of the model of a class outside, by the last part of its name."""
        return self._classes.get(path.rpartition(".")[2])

    def is_absent(self, name: str) -> bool:
        """Whether a module is one of another vendor's devices, which is not there."""
        return name.partition(".")[0] in self._absent

    def takes_a_device(self, name: str) -> bool:
        """Whether a module takes the first device while it is imported."""
        return name in self._taking

    def refuses_without(self, name: str) -> str | None:
        """The variable that must be set where a module is to be imported without a device; None if it needs none."""
        return self._refusing.get(name)

    def is_outside(self, name: str) -> bool:
        """Whether a module is taken as outside even where the tree has it: the tests inside a package are not."""
        parts = name.split(".")
        if "tests" in parts[1:]:
            return False
        tails = {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
        return bool(tails & self._outside) and not tails & self._inside


def _found(table: dict[str, Rule], path: str) -> Rule | None:
    parts = path.split(".")
    for start in range(len(parts)):
        rule = table.get(".".join(parts[start:]))
        if rule is not None:
            return rule
    for end in range(len(parts) - 1, 0, -1):
        rule = table.get(".".join(parts[:end]) + ".*")
        if rule is not None:
            return rule
    return None


def _rule(entry: dict[str, Any], source: str) -> Rule:
    unknown = set(entry) - {*_PARTS, *_TEXTS}
    names = entry.get("names", ())
    if unknown or not isinstance(names, list) or not names:
        what = f"unknown {', '.join(sorted(unknown))}" if unknown else "no `names`"
        raise SettingsError(f"{source}: a rule has {what}: there are {', '.join((*_TEXTS, *_PARTS))}")
    if wrong := next((each for each in names if not isinstance(each, str)), None):
        raise SettingsError(f"{source}: a rule is for {wrong!r}: `names` are texts")
    for each in _SWITCHES:
        if not isinstance(entry.get(each, False), bool):
            raise SettingsError(f"{source}: the rule for {names[0]} says {each} = {entry[each]!r}: true or false")
    for part in _PARTS:
        told = entry.get(part, "")
        if isinstance(told, list | dict) or (part in _CONDITIONS and not isinstance(told, str | bool)):
            raise SettingsError(f"{source}: the rule for {names[0]} says {part} = {told!r}: an expression in quotes")
    return Rule(
        source=source,
        names=tuple(names),
        why=str(entry.get("why", names[0])),
        texts={part: str(entry[part]) for part in _PARTS if part in entry},
        override=entry.get("override", False),
        decorator=entry.get("decorator", False),
        unsure=entry.get("unsure", False),
    )


def _check_words(rule: Rule, words: Collection[str]) -> None:
    """Look for words that mean nothing: an expression with one would be unknown wherever it is asked for."""
    for part, tree in rule.expressions.items():
        said = [each for each in ast.walk(tree) if isinstance(each, ast.Name)]
        bound = {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)}
        bound |= {each.id for each in said if isinstance(each.ctx, ast.Store)}
        for word in sorted({each.id for each in said} - bound - {*words}):
            told = f"{word!r} means nothing (a text has quotes of its own): {there_are(word, words)}"
            raise SettingsError(f"{rule.source}: the rule for {rule.names[0]}: {part} = {ast.unparse(tree)!r}: {told}")


def _asked(tree: ast.expr) -> Iterator[tuple[str, int]]:
    """What `arg(position, name, default)` asks for, in an expression."""
    for each in ast.walk(tree):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "arg":
            said = [argument.value for argument in each.args[:2] if isinstance(argument, ast.Constant)]
            if len(said) > 1 and isinstance(said[0], int) and isinstance(said[1], str):
                yield said[1], said[0]


def _expression(text: str, source: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise SettingsError(f"{source}: {text!r} is not a Python expression") from None


def load_rules(tables: Sequence[tuple[str, str]]) -> Rules:
    """Rules from texts of TOML, the first looked at first.

    Args:
        tables: (name for messages, text); the shipped table comes last.

    Raises:
        SettingsError: A text that is not TOML, or an entry that is not understood. The Python in it is read when it is
            asked for; `Rules.check` reads all of it.
    """
    rules = Rules()
    for source, text in tables:
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(f"{source}: {error}") from None
        for kind, entries in document.items():
            if kind not in _KINDS:
                raise SettingsError(f"{source}: there is no [[{kind}]]: there are {', '.join(_KINDS)}")
            for entry in entries if isinstance(entries, list) else [entries]:
                rules.add(kind, entry, source)
    return rules
