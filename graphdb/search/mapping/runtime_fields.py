"""Runtime fields: fields whose values a script emits, or the source has, when a search asks for them.

Source: Elasticsearch's reference, "Runtime fields".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphdb.search.errors import mapper_parsing
from graphdb.search.fields import FieldSpec
from graphdb.search.mapping.dates import date_format
from graphdb.search.mapping.types import FIELD_TYPES
from graphdb.search.similarity import STANDARD

__all__ = ["RuntimeField", "checked_runtime", "runtime_fields"]

FIELDS_MAX = 1_000
"""In one mapping, or of one request."""

_TYPES = ("boolean", "date", "double", "geo_point", "ip", "keyword", "long")
_MEMBERS = frozenset({"type", "script", "format", "meta"})


@dataclass(frozen=True, slots=True)
class RuntimeField:
    """script is the JSON of one; None: the values that the source has under the field's name."""

    spec: FieldSpec
    script: Any = None


def checked_runtime(value: Any) -> dict[str, Any]:
    """The normal form of a `runtime` section: definitions by name, None for one to remove.

    Errors: mapper_parsing_exception, script_exception.
    """
    if not isinstance(value, dict):
        raise mapper_parsing("[runtime] must be a map type")
    if len(value) > FIELDS_MAX:
        raise mapper_parsing(f"[runtime] has at most {FIELDS_MAX} fields, got [{len(value)}]")
    return {name: None if given is None else _definition(name, given) for name, given in value.items()}


def _definition(name: str, given: Any) -> dict[str, Any]:
    # The language of scripts knows mappings, so it is not there yet when this module is imported.
    from graphdb.search.scripts.script import RUNTIME, parse_script

    if not isinstance(given, dict):
        raise mapper_parsing(
            f"Expected map for runtime field [{name[:200]}] definition but got a {type(given)}"
        )
    kind = given.get("type")
    if kind is None:
        raise mapper_parsing(f"No type specified for runtime field [{name[:200]}]")
    if not name.strip() or kind not in _TYPES:
        raise mapper_parsing(
            f"No handler for type [{str(kind)[:100]}] declared on runtime field [{name[:200]}]: known are "
            f"[{', '.join(_TYPES)}]"
        )
    for member in given:
        if member not in _MEMBERS or (member == "format" and kind != "date"):
            raise mapper_parsing(
                f"unknown parameter [{member[:100]}] on runtime field [{name[:200]}] of type [{kind}]"
            )
    shown = {"type": kind}
    if given.get("script") is not None:
        script = given["script"]
        parse_script(script, RUNTIME)
        shown["script"] = {"source": script, "lang": "painless"} if isinstance(script, str) else dict(script)
    if given.get("format") is not None:
        shown["format"] = date_format(str(given["format"])).source
    if given.get("meta") is not None:
        shown["meta"] = given["meta"]
    return shown


def runtime_fields(definitions: Mapping[str, Any]) -> dict[str, RuntimeField]:
    """Of definitions in normal form."""
    return {name: _field(name, given) for name, given in definitions.items() if given is not None}


def _field(name: str, given: Mapping[str, Any]) -> RuntimeField:
    kind = FIELD_TYPES[given["type"]]
    options = {parameter: known.default for parameter, known in kind.parameters.items()}
    options |= {"runtime": True, "scores_by": STANDARD}
    if "format" in given:
        options["format"] = given["format"]
    return RuntimeField(FieldSpec(name, kind.name, kind.storage, options=options), given.get("script"))
