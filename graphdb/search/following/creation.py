"""What is added to the request that makes an index, where its documents are to be of a SHACL shape."""

from collections.abc import Mapping
from typing import Any

from graphdb.config.limits import GateLimits
from graphdb.search.catalog.settings import read_settings
from graphdb.search.following.plans import Plan
from graphdb.search.following.settings import read_shape
from graphdb.search.following.stored_shape import StoredShape
from graphdb.search.following.tree_shape import TreeShape

__all__ = ["completed_body"]


def completed_body(body: Mapping[str, Any], limits: GateLimits) -> Plan[Mapping[str, Any]]:
    """The body of PUT /{index} with the fields that datatypes of the shape ask for; those given stay.

    Errors: SearchError for a shape that cannot be, or that the graph does not have.
    """
    settings = body.get("settings")
    graph = read_settings(settings).get("graph") if isinstance(settings, Mapping) else None
    mappings = body.get("mappings") or {}
    if not isinstance(graph, Mapping) or not isinstance(mappings, Mapping):
        return body  # whatever is wrong with it, creating says
    shape = read_shape(graph, limits)
    if not isinstance(shape, TreeShape | StoredShape):
        return body
    tree = yield from shape.tree()
    given = mappings.get("properties") or {}
    if not isinstance(given, Mapping):
        return body
    return {**body, "mappings": {**mappings, "properties": _with_given(tree.properties(), given)}}


def _with_given(properties: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as they are given; objects of both have the fields of both."""
    result = {**properties, **given}
    for name in properties.keys() & given.keys():
        ours, theirs = properties[name], given[name]
        if "properties" not in ours or not isinstance(theirs, Mapping):
            continue
        below = theirs.get("properties", {})
        if theirs.get("type", "object") in ("object", "nested") and isinstance(below, Mapping):
            result[name] = {**theirs, "properties": _with_given(ours["properties"], below)}
    return result
