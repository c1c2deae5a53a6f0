"""A mapping as `GET _mapping` shows it: values in their normal form, and some defaults.

What is kept is what was given (`mapping_definition`). So how something is shown may change between versions
without a change of any state.

Source: the answers of Elasticsearch 8.19.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from graphdb.search.mapping.completions import shown_contexts
from graphdb.search.mapping.types import INT_MAX, OBJECT_TYPES, boolean
from graphdb.search.mapping.vectors import shown_vector

__all__ = ["shown_node", "shown_root"]

_WHOLE = ("byte", "short", "integer", "long", "unsigned_long")
_FRACTIONS = ("half_float", "float", "double", "scaled_float")
_POINT = re.compile(r"\s*(-?[\d.]+)\s*,\s*(-?[\d.]+)\s*")
_FREQUENCIES: Mapping[str, Any] = {"min": 0.0, "max": float(INT_MAX), "min_segment_size": 0}
_COMPLETION: Mapping[str, Any] = {
    "analyzer": "simple",
    "preserve_separators": True,
    "preserve_position_increments": True,
    "max_input_length": 50,
}
_LAST = ("meta", "copy_to", "fields")


def shown_root(definition: Mapping[str, Any]) -> dict[str, Any]:
    """definition: in normal form."""
    shown = {name: value for name, value in definition.items() if name not in ("type", "properties")}
    source = {
        name: value
        for name, value in shown.pop("_source", {}).items()
        if not (name == "enabled" and value is True)
    }
    if source:
        shown["_source"] = source
    if shown.get("_routing", {}).get("required") in (False, "false", None):
        shown.pop("_routing", None)
    runtime = {name: given for name, given in shown.pop("runtime", {}).items() if given is not None}
    if runtime:
        shown["runtime"] = runtime
    if definition["properties"]:
        shown["properties"] = _properties(definition["properties"])
    return shown


def _properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {name: shown_node(node) for name, node in properties.items()}


def shown_node(node: Mapping[str, Any]) -> dict[str, Any]:
    """An object with members does not say that it is one."""
    if node["type"] in OBJECT_TYPES:
        shown = {name: value for name, value in node.items() if name != "properties"}
        if node["properties"]:
            shown["properties"] = _properties(node["properties"])
            if node["type"] == "object":
                del shown["type"]
        return shown
    read = _BY_TYPE.get(node["type"])
    shown = dict(node) if read is None else read(node)
    if shown.get("null_value") is not None:
        shown["null_value"] = _null_value(node["type"], shown["null_value"])
    if "fields" in node:
        shown["fields"] = _properties(node["fields"])
    last = {name: shown.pop(name) for name in _LAST if name in shown}
    return shown | {name: value for name, value in last.items() if value}


def _text(node: Mapping[str, Any]) -> dict[str, Any]:
    shown = dict(node)
    if isinstance(shown.get("index_prefixes"), Mapping):
        shown["index_prefixes"] = {"min_chars": 2, "max_chars": 5} | shown["index_prefixes"]
    if isinstance(shown.get("fielddata_frequency_filter"), Mapping):
        given = _FREQUENCIES | shown["fielddata_frequency_filter"]
        shown["fielddata_frequency_filter"] = {
            "min": float(given["min"]),
            "max": float(given["max"]),
            "min_segment_size": int(given["min_segment_size"]),
        }
    return _analyzers(shown)


def _analyzers(shown: dict[str, Any]) -> dict[str, Any]:
    """One that is said where it follows from another is left out, and one that others need is there."""
    analyzer = shown.pop("analyzer", "default")
    search = shown.pop("search_analyzer", analyzer)
    quoted = shown.pop("search_quote_analyzer", search)
    said = {
        "analyzer": analyzer if analyzer != "default" or search != analyzer or quoted != search else None,
        "search_analyzer": search if search != analyzer or quoted != search else None,
        "search_quote_analyzer": quoted if quoted != search else None,
    }
    return shown | {name: value for name, value in said.items() if value is not None}


def _completion(node: Mapping[str, Any]) -> dict[str, Any]:
    shown = {**_COMPLETION, **node}
    if "contexts" in shown:
        shown["contexts"] = shown_contexts(shown.pop("contexts"))
    return {"type": shown.pop("type"), **shown}


def _vector(node: Mapping[str, Any]) -> dict[str, Any]:
    shown = shown_vector(node)
    options = shown.get("index_options")
    if isinstance(options, Mapping):
        shown["index_options"] = _with_floats(options)
    order = ("type", "element_type", "dims", "index", "similarity", "index_options")
    return {name: shown[name] for name in order if name in shown} | shown


def _with_floats(options: Mapping[str, Any]) -> dict[str, Any]:
    shown = dict(options)
    if isinstance(shown.get("confidence_interval"), int):
        shown["confidence_interval"] = float(shown["confidence_interval"])
    rescored = shown.get("rescore_vector")
    if isinstance(rescored, Mapping) and isinstance(rescored.get("oversample"), int):
        shown["rescore_vector"] = {"oversample": float(rescored["oversample"])}
    return shown


def _date(node: Mapping[str, Any]) -> dict[str, Any]:
    shown = dict(node)
    if isinstance(shown.get("locale"), str):
        shown["locale"] = shown["locale"].replace("-", "_")
    return shown


def _null_value(kind: str, value: Any) -> Any:
    """As a field of this type reads it. What it cannot read, as an earlier version may have it, as it is."""
    try:
        if kind in _WHOLE:
            return int(value)
        if kind in _FRACTIONS:
            return float(value)
        if kind == "boolean":
            return boolean(value)
        if kind == "geo_point":
            return _point(value)
    except (TypeError, ValueError):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int) else value


def _point(value: Any) -> Any:
    if isinstance(value, list) and len(value) >= 2:
        return {"lat": float(value[1]), "lon": float(value[0])}
    if isinstance(value, Mapping) and {"lat", "lon"} <= value.keys():
        return {"lat": float(value["lat"]), "lon": float(value["lon"])}
    found = _POINT.fullmatch(value) if isinstance(value, str) else None
    return value if found is None else {"lat": float(found[1]), "lon": float(found[2])}


_BY_TYPE: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "text": _text,
    "search_as_you_type": _text,
    "match_only_text": _text,
    "completion": _completion,
    "dense_vector": _vector,
    "date": _date,
    "date_nanos": _date,
}
