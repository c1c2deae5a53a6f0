"""Settings from their sources: command line, then environment, then file, then defaults."""

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from re import fullmatch
from typing import Any, TypeAlias, cast

from pydantic import ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsError

from graphdb.config.settings import Settings
from graphdb.errors import ConfigError

__all__ = ["load_settings"]

PREFIX = "GRAPHDB_"
DEFAULT_FILE = "graphdb.toml"
# Variables with our prefix that are no settings: read by the command line, and by the tests.
OTHER_VARIABLES = frozenset(
    {
        "GRAPHDB_API_KEY",
        "GRAPHDB_CONFIG",
        "GRAPHDB_ENDPOINT",
        "GRAPHDB_PASSWORD",
        "GRAPHDB_PROFILE",
        "GRAPHDB_SHARED",
        "GRAPHDB_TOKEN",
        "GRAPHDB_USER",
    }
)

Table: TypeAlias = Mapping[str, Any]


def load_settings(
    config_file: Path | None = None,
    overrides: Table | None = None,
    environ: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Settings:
    """Read and check the configuration.

    config_file is --config; without it GRAPHDB_CONFIG, then graphdb.toml in directory (the working
    directory) if it is there. overrides are the command line's, nested like the file, None for what was not
    given. environ is the process's unless given. Raises ConfigError, which lists every problem.
    """
    environ = os.environ if environ is None else environ
    path = _find_file(config_file, environ, directory or Path())
    layers = {
        "command line": _without_none(overrides or {}),
        "environment": _read_environment(environ),
        str(path): _read_file(path) if path else {},
    }
    merged: dict[str, Any] = {}
    for layer in reversed(layers.values()):
        merged = _merge(merged, layer)
    if "ES_HYBRID_SCORER" in environ:
        layers = {"environment variable ES_HYBRID_SCORER": {"search": {"hybrid_scorer": ""}}, **layers}
        merged = _merge(merged, {"search": {"hybrid_scorer": environ["ES_HYBRID_SCORER"]}})
    _expand_bind_password(merged, environ, layers)
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise ConfigError(*_problems(error, layers, path)) from None


def _find_file(config_file: Path | None, environ: Mapping[str, str], directory: Path) -> Path | None:
    if config_file:
        return config_file
    if environ.get("GRAPHDB_CONFIG"):
        return Path(environ["GRAPHDB_CONFIG"])
    default = directory / DEFAULT_FILE
    return default if default.exists() else None


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None


class _Environment(EnvSettingsSource):
    """pydantic-settings' reading of nested variables, from a mapping that is handed in."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        # The source looks at nothing but the fields; a real BaseSettings reads the environment when built.
        shape = cast(type[BaseSettings], Settings)
        super().__init__(shape, env_prefix=PREFIX, env_nested_delimiter="__", case_sensitive=False)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return {name.lower(): value for name, value in self._environ.items()}


def _read_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """Read the variables one by one, so that an error can name its own."""
    merged: dict[str, Any] = {}
    for name, value in environ.items():
        if not name.upper().startswith(PREFIX) or name in OTHER_VARIABLES:
            continue
        if name[len(PREFIX) :].split("__")[0].lower() not in Settings.model_fields:
            raise ConfigError(f"environment variable {name}: unknown key")
        try:
            merged = _merge(merged, _Environment({name: value})())
        except SettingsError:
            raise ConfigError(f"environment variable {name}: lists and tables are written as JSON") from None
    return merged


def _without_none(table: Table) -> dict[str, Any]:
    return {
        key: _without_none(value) if isinstance(value, Mapping) else value
        for key, value in table.items()
        if value is not None
    }


def _merge(below: Table, above: Table) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        both_tables = isinstance(value, Mapping) and isinstance(under, Mapping)
        merged[key] = _merge(under, value) if both_tables else value  # type: ignore[arg-type]
    return merged


def _expand_bind_password(
    merged: dict[str, Any], environ: Mapping[str, str], layers: Mapping[str, Table]
) -> None:
    """Replace a bind_password of the form ${NAME}, in place, by the variable that it names."""
    try:
        ldap = merged["authentication"]["ldap"]
        reference = fullmatch(r"\$\{(\w+)\}", ldap["bind_password"])
    except (KeyError, TypeError):
        return
    if reference:
        name = reference[1]
        if name not in environ:
            location = ("authentication", "ldap", "bind_password")
            source, key = _source(location, layers), ".".join(location)
            raise ConfigError(f"{source}: {key}: the environment variable {name} is not set")
        ldap["bind_password"] = environ[name]


def _problems(error: ValidationError, layers: Mapping[str, Table], path: Path | None) -> Iterator[str]:
    """One line for each problem: where the value was given, its key, what is wrong."""
    for problem in error.errors(include_url=False, include_input=False):
        key = ".".join(str(part) for part in problem["loc"])
        reason = {
            "extra_forbidden": "unknown key",
            "missing": "is required",
        }.get(problem["type"], problem["msg"].removeprefix("Value error, "))
        yield ": ".join(
            filter(None, (_source(problem["loc"], layers) or str(path or "configuration"), key, reason))
        )


def _source(location: tuple[int | str, ...], layers: Mapping[str, Table]) -> str | None:
    """The topmost source that gives the value at this place, None where none does."""
    for name, layer in layers.items():
        found: Any = layer
        for part in location:
            try:
                found = found[part]
            except (KeyError, IndexError, TypeError):
                break
        else:
            if name == "environment" and location:
                return f"environment variable {PREFIX}{'__'.join(map(str, location)).upper()}"
            if location:
                return name
    return None
