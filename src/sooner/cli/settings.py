"""Configuration: one frozen tree; every value knows where it came from.

`defaults.toml` is the default. `[tool.sooner.run]` of the nearest pyproject.toml goes over it, `SOONER_RUN_<KEY>` over
that, the command line over everything. An unknown key or a wrong type is an error with its path.
"""

import contextlib
import os
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from sooner.model.errors import SettingsError
from sooner.schedule.work import Policy

_DEFAULTS: Final = Path(__file__).with_name("defaults.toml")
_ENV_PREFIX: Final = "SOONER_RUN_"
_KEYS: Final = ("run", "areas", "coverage", "jobs", "needs-rules")
"""Of [tool.sooner]; each verb checks what is inside of its own."""


class RunSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a run; the meaning of each stands in defaults.toml."""

    devices: str
    backend: str
    policy: Policy
    retries: int
    grace_s: float
    timeout_s: float
    on_missing: str
    replay: str
    history: str
    settle_s: float
    quarantine: str
    sources: dict[str, str] = {}
    """Where each value came from."""


def run_settings(cli: Mapping[str, Any]) -> RunSettings:
    """The settings of a run; `cli` holds what the command line gave, None for what it did not.

    Raises:
        SettingsError: A value that cannot be used; says which, where, and what is allowed.
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    known = tomllib.loads(_DEFAULTS.read_text(encoding="utf-8"))["run"]
    _check_environment(known)
    for source, layer in (
        ("default", known),
        *_pyproject_layer(Path.cwd(), known),
        ("environment", {key: os.environ[name] for key in known if (name := _ENV_PREFIX + key.upper()) in os.environ}),
        ("command line", {key: value for key, value in cli.items() if key in known and value is not None}),
    ):
        for key, value in layer.items():
            values[key] = _checked(key, value, known[key], source)
            sources[key] = source
    _check_choice("backend", values["backend"], ("local", "ray"), sources)
    _check_choice("on_missing", values["on_missing"], ("fail", "hole"), sources)
    _check_choice("replay", values["replay"], ("all", "failed", "none"), sources)
    _check_choice("policy", values["policy"], tuple(Policy), sources)
    return msgspec.convert({**values, "sources": sources}, RunSettings)


def _check_environment(known: Mapping[str, Any]) -> None:
    """SOONER_RUN_ID is what a unit sees of its run; all else that begins so is meant as a setting."""
    from sooner.run.launch import RUN_MARKER

    names = [_ENV_PREFIX + key.upper() for key in known]
    for name in sorted(os.environ):
        if name.startswith(_ENV_PREFIX) and name not in {*names, RUN_MARKER}:
            near = get_close_matches(name, names, n=1) or sorted(names)
            raise SettingsError(f"{name} is no setting: did you mean {near[0]}?")


def area_settings() -> dict[str, tuple[str, ...]]:
    """`[tool.sooner.areas]`: names of parts of the repository and their folders, paths or globs, in order.

    Raises:
        SettingsError: It is no table of lists of text.
    """
    path, tool = project_table(Path.cwd())
    try:
        return msgspec.convert(tool.get("areas", {}), dict[str, tuple[str, ...]])
    except msgspec.ValidationError as error:
        raise SettingsError(f'{path}: tool.sooner.areas must be name = ["folder", "glob"] ({error})') from None


def _pyproject_layer(cwd: Path, known: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    path, tool = project_table(cwd)
    layer = tool.get("run", {})
    for key in layer:
        if key not in known:
            near = get_close_matches(key, known, n=1) or sorted(known)
            raise SettingsError(f"{path}: tool.sooner.run.{key} is unknown: did you mean {near[0]!r}?")
    return [(str(path), layer)] if path else []


def project_table(cwd: Path) -> tuple[Path | None, dict[str, Any]]:
    """`[tool.sooner]` of the nearest pyproject.toml, and where that is; nothing where there is none.

    Raises:
        SettingsError: The file cannot be read, or holds a key that no verb knows.
    """
    path = next((one / "pyproject.toml" for one in (cwd, *cwd.parents) if (one / "pyproject.toml").is_file()), None)
    if path is None:
        return None, {}
    try:
        tools = tomllib.loads(path.read_text(encoding="utf-8-sig")).get("tool", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error
    tool = tools.get("sooner", {}) if isinstance(tools, dict) else tools
    if not isinstance(tool, dict) or not isinstance(tool.get("run", {}), dict):
        raise SettingsError(f"{path}: tool.sooner and tool.sooner.run must be tables")
    for key in tool:
        if key not in _KEYS:
            raise SettingsError(f"{path}: tool.sooner.{key} is unknown: the tables are {', '.join(_KEYS)}")
    return path, tool


def _checked(key: str, value: Any, default: Any, source: str) -> Any:
    """A value of the type that the default has; the environment's text is converted."""
    kind = type(default)
    if isinstance(value, str) if kind is str else not isinstance(value, bool):
        with contextlib.suppress(TypeError, ValueError):
            return _not_negative(key, value if value == kind(value) else kind(str(value)), source)
    wanted = {str: "text", int: "a whole number", float: "a number"}[kind]
    raise SettingsError(f"{_named(key, source)} must be {wanted}, not {value!r}")


def _not_negative(key: str, number: Any, source: str) -> Any:
    if not isinstance(number, str) and not 0 <= number < float("inf"):
        raise SettingsError(f"{_named(key, source)} must not be negative or endless, not {number!r}")
    return number


def _check_choice(key: str, value: str, choices: tuple[str, ...], sources: Mapping[str, str]) -> None:
    if value not in choices:
        raise SettingsError(f"{_named(key, sources[key])} must be one of {', '.join(choices)}, not {value!r}")


def _named(key: str, source: str) -> str:
    """A setting as whoever gave it has written it."""
    if source == "command line":
        return f"--{key.removesuffix('_s').replace('_', '-')}"
    return f"{_ENV_PREFIX}{key.upper()}" if source == "environment" else f"run.{key} from {source}"
