"""`Processors`: what scripts of pipelines may call of the processors, by name.

Source: Elasticsearch's documentation of the script processor and of the ingest context of Painless.
"""

from typing import Any
from urllib.parse import unquote_plus

import orjson

from graphdb.search.errors import SearchError
from graphdb.search.scripts.faults import ScriptFault
from graphdb.search.scripts.methods import Method, as_text
from graphdb.search.scripts.values import Budget

__all__ = ["STATIC_PROCESSORS", "size_bytes"]

_UNITS = {"b": 0, "kb": 1, "mb": 2, "gb": 3, "tb": 4, "pb": 5}


def size_bytes(text: str) -> int:
    """Of `1.5kb` and the like. Errors: parse_exception."""
    trimmed = text.strip().lower()
    for unit in ("kb", "mb", "gb", "tb", "pb", "b"):
        number = trimmed.removesuffix(unit).strip()
        if trimmed.endswith(unit) and number:
            try:
                return int(float(number) * 1024 ** _UNITS[unit])
            except (ValueError, OverflowError):
                break
    raise SearchError(
        "parse_exception",
        f"failed to parse setting [Ingest Field] with value [{text[:200]}] as a size in bytes: unit is "
        "missing or unrecognized",
    )


def _bytes(budget: Budget, value: Any) -> int:
    try:
        return size_bytes(as_text(value))
    except SearchError as error:
        raise ScriptFault(error.kind, error.reason) from None


def _parsed(budget: Budget, text: str) -> Any:
    budget.allocate(len(text))
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ScriptFault("illegal_argument_exception", f"the value is no JSON: {error.msg}") from None


def _json(budget: Budget, value: Any, *field: Any) -> Any:
    """Of a text; or of a field of a map, whose members then become the map's."""
    if not field:
        return _parsed(budget, as_text(value))
    if not isinstance(value, dict):
        raise ScriptFault("illegal_argument_exception", "[Processors.json] takes a map and one of its fields")
    (name,) = field
    found = _parsed(budget, as_text(value.get(as_text(name))))
    if not isinstance(found, dict):
        raise ScriptFault("illegal_argument_exception", "cannot add non-map fields to root of document")
    value.update(found)
    return None


STATIC_PROCESSORS: dict[str, Method] = {
    "Processors.bytes": _bytes,
    "Processors.json": _json,
    "Processors.lowercase": lambda budget, value: budget.string(as_text(value).lower()),
    "Processors.uppercase": lambda budget, value: budget.string(as_text(value).upper()),
    "Processors.urlDecode": lambda budget, value: budget.string(unquote_plus(as_text(value))),
}
