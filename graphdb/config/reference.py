"""The reference of all settings as a page of Markdown, made from the settings themselves.

`python -m graphdb.config.reference > docs/configuration.md` writes the page; a test compares the two.
"""

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import AwareDatetime, BaseModel, SecretStr
from pydantic.fields import FieldInfo

from graphdb.config.settings import Settings

__all__ = ["reference"]

HEAD = """\
# Configuration

`graphdb serve` starts without any configuration. The first of these sources that has a setting is used:

1. the command line: `graphdb serve --port 7101`;
2. the environment: `GRAPHDB_SECTION__KEY`, such as `GRAPHDB_SERVER__PORT=7101`; lists and tables are
   written as JSON: `GRAPHDB_SERVER__CORS='["https://app.example"]'`;
3. the file: `--config FILE`, or else the file that `GRAPHDB_CONFIG` names, or else `graphdb.toml` in the
   working directory;
4. the default.

The file is TOML:

```toml
[server]
port = 7101
data_dir = "/var/lib/graphdb"
query_timeout_seconds = 10

[search]
enabled = false
```

The service does not start if a key is unknown, a value is invalid, or settings exclude each other. It prints
one line for each problem, with the key and its source.

Two values have their own names in the environment: `ES_HYBRID_SCORER` takes precedence over every other
source of `search.hybrid_scorer`, and `authentication.ldap.bind_password = "${NAME}"` is replaced by the
variable `NAME`.
"""


def reference() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_sections(Settings, "")])


def _sections(model: type[BaseModel], path: str) -> Iterator[str]:
    """A table for each section, the ones below it after it."""
    fields = {name: _Shown(field) for name, field in model.model_fields.items()}
    if path:
        yield from _table(path, model, fields)
    for name, shown in fields.items():
        if shown.section is not None:
            yield from _sections(shown.section, shown.below(path, name))


def _table(path: str, model: type[BaseModel], keys: dict[str, "_Shown"]) -> Iterator[str]:
    heading = f"[[{path.removesuffix('[]')}]]" if path.endswith("[]") else f"[{path}]"
    yield f"## `{heading}`\n"
    yield f"{' '.join((model.__doc__ or '').split())}\n"
    yield "| key | type | default | meaning |"
    yield "|---|---|---|---|"
    for name, shown in keys.items():
        yield f"| `{name}` | {shown.type_name} | {shown.default} | {shown.field.description} |"
    yield ""


class _Shown:
    """One field as the page shows it."""

    def __init__(self, field: FieldInfo) -> None:
        self.field = field
        self._arguments = [part for part in _parts(field.annotation) if part is not type(None)]
        models = [part for part in self._arguments if isinstance(part, type) and issubclass(part, BaseModel)]
        self.section: type[BaseModel] | None = models[0] if models else None
        self._container = get_origin(field.annotation)

    def below(self, path: str, name: str) -> str:
        """The path of this field's section."""
        whole = f"{path}.{name}" if path else name
        if self._container is tuple:
            return f"{whole}[]"
        return f"{whole}.NAME" if self._container is dict else whole

    @property
    def type_name(self) -> str:
        return "section below" if self.section else _type_name(self.field.annotation)

    @property
    def default(self) -> str:
        value = self.field.default
        if self.field.is_required():
            return "required"
        if self.section:
            return "-"
        return "-" if value is None else f"`{_toml(value)}`"


def _parts(annotation: Any) -> list[Any]:
    """The annotation and everything in it."""
    return [annotation, *(part for argument in get_args(annotation) for part in _parts(argument))]


def _type_name(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return _type_name(arguments[0])
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin is tuple:
        return "list"
    if origin is dict:
        return "table"
    if hasattr(annotation, "__metadata__"):
        return _type_name(arguments[0])
    return _TYPE_NAMES.get(annotation, "text")


_TYPE_NAMES = {
    bool: "boolean",
    int: "integer",
    float: "number",
    Path: "path",
    str: "text",
    SecretStr: "text",
    AwareDatetime: "date and time",
}


def _toml(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case tuple() | list():
            return f"[{', '.join(_toml(part) for part in value)}]"
        case dict():
            return "{}"
        case str() | Enum() | Path():
            return f'"{value}"'
    return str(value)


if __name__ == "__main__":
    print(reference(), end="")
