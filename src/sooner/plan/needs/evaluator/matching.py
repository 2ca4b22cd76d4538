"""What a `match` statement chooses: patterns against values of which not everything is known."""

import ast
from collections.abc import Iterable
from typing import Any

from sooner.plan.needs.evaluator.binding import Binding
from sooner.plan.needs.evaluator.values import MISSING, UNKNOWN, Env, Ext, Inst, Unknown, hard, is_plain


class Matching(Binding):
    """The part of the machine that matches patterns."""

    def matches(self, pattern: ast.pattern, subject: Any, env: Env) -> bool | None:
        """Whether a value fits a pattern, whose names it binds; None where that is not known."""
        subject = hard(subject)
        if isinstance(pattern, ast.MatchValue):
            return self.equal(subject, hard(self.ev(pattern.value, env)))
        if isinstance(pattern, ast.MatchSingleton):
            return self.same(subject, pattern.value)
        if isinstance(pattern, ast.MatchOr):
            answers = [self.matches(each, subject, env) for each in pattern.patterns]
            return True if True in answers else None if None in answers else False
        if isinstance(pattern, ast.MatchAs):
            matched = True if pattern.pattern is None else self.matches(pattern.pattern, subject, env)
            if pattern.name and matched is not False:
                env.names[pattern.name] = subject
            return matched
        if isinstance(pattern, ast.MatchClass):
            return self._of_kind(pattern, subject, env)
        if isinstance(subject, Inst) and (items := self.items_of(subject)) is not None:
            subject = items  # a named tuple
        if isinstance(subject, Unknown | Ext) or (isinstance(subject, Inst) and subject.cls.is_open):
            return None
        return self._of_parts(pattern, subject, env)

    def _of_parts(self, pattern: ast.pattern, subject: Any, env: Env) -> bool | None:
        if isinstance(pattern, ast.MatchSequence):
            return self._in_order(pattern.patterns, subject, env) if isinstance(subject, list | tuple) else False
        if not isinstance(pattern, ast.MatchMapping):
            return None
        if not isinstance(subject, dict):
            return False
        keys = [self.key(self.ev(each, env)) for each in pattern.keys]
        if any(isinstance(key, Unknown) for key in keys):
            return None
        if any(key not in subject for key in keys):
            return None if UNKNOWN in subject else False
        if pattern.rest is not None:
            env.names[pattern.rest] = {key: value for key, value in subject.items() if key not in keys}
        return _all(self.matches(each, subject[key], env) for each, key in zip(pattern.patterns, keys, strict=True))

    def _in_order(self, patterns: list[ast.pattern], subject: Any, env: Env) -> bool | None:
        stars = [place for place, each in enumerate(patterns) if isinstance(each, ast.MatchStar)]
        begin = stars[0] if stars else len(patterns)
        end = len(patterns) - begin - 1 if stars else 0
        if len(subject) < begin + end or (not stars and len(subject) != begin):
            return False
        if stars and isinstance(star := patterns[begin], ast.MatchStar) and star.name:
            env.names[star.name] = list(subject[begin : len(subject) - end])
        pairs = [*zip(patterns[:begin], subject, strict=False)]
        pairs += zip(patterns[len(patterns) - end :], subject[len(subject) - end :], strict=True)
        return _all(self.matches(each, value, env) for each, value in pairs)

    def _of_kind(self, pattern: ast.MatchClass, subject: Any, env: Env) -> bool | None:
        is_one = self.truth(self.call(self.name("isinstance", env), [subject, self.ev(pattern.cls, env)], {}))
        if not is_one:
            return is_one
        names = list(pattern.kwd_attrs)
        parts = [*pattern.kwd_patterns]
        if pattern.patterns:
            if is_plain(subject):  # `int(size)`: the value itself
                return self.matches(pattern.patterns[0], subject, env)
            fields = _places_of(subject)
            if not isinstance(fields, list | tuple) or len(fields) < len(pattern.patterns):
                return None
            names, parts = [*fields[: len(pattern.patterns)], *names], [*pattern.patterns, *parts]
        return _all(
            self.matches(each, self.attribute(subject, name), env) for each, name in zip(parts, names, strict=True)
        )


def _places_of(subject: Any) -> Any:
    """The attributes that a pattern without names means, in their order: what a class says, or a record's fields."""
    said = subject.cls.find("__match_args__") if isinstance(subject, Inst) else None
    return subject.cls.find("__record__") if isinstance(subject, Inst) and said is MISSING else said


def _all(answers: Iterable[bool | None]) -> bool | None:
    known = list(answers)
    return False if False in known else None if None in known else True
