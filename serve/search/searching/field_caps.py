"""`_field_caps`: which fields there are over several indexes, and what each can be used for."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphdb.search.catalog.state import Index
from graphdb.search.errors import SearchError
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.search.query import parse_query
from serve.search.backend import SearchBackend
from serve.search.frame.endpoint import Body, Endpoint, endpoint
from serve.search.frame.exchange import Exchange
from serve.search.searching.search_names import NAME_PARAMETERS, names_found, search_context

__all__ = ["endpoints"]

_PARAMETERS = f"{NAME_PARAMETERS} fields include_unmapped filters types include_empty_fields"
_METADATA = {
    # name: searchable, aggregatable
    "_id": (True, False),
    "_ignored": (True, True),
    "_index": (True, True),
    "_routing": (True, False),
    "_seq_no": (True, True),
    "_source": (False, False),
    "_version": (False, True),
}


def endpoints() -> list[Endpoint]:
    return endpoint("GET POST", ["/_field_caps", "/{index}/_field_caps"], _field_caps, _PARAMETERS, Body.JSON)


async def _field_caps(exchange: Exchange) -> Any:
    parameters = exchange.parameters
    body = await exchange.json() or {}
    patterns = body.get("fields", parameters.strings("fields"))
    patterns = patterns.split(",") if isinstance(patterns, str) else patterns
    if not isinstance(patterns, list) or not patterns:
        raise SearchError("action_request_validation_exception", "Validation Failed: 1: no fields specified;")
    indexes = [one.index for one in names_found(exchange.node, exchange.get("index"), parameters)]
    if "index_filter" in body:
        indexes = [index for index in indexes if _may_match(exchange.node, index, body["index_filter"])]
    wanted = _Wanted(list(map(str, patterns)), parameters.strings("filters"), parameters.strings("types"))
    fields = _by_name(indexes, wanted)
    if parameters.boolean("include_unmapped", False):
        _add_unmapped(fields, [index.name for index in indexes])
    return {"indices": [index.name for index in indexes], "fields": _shown(fields)}


class _Wanted:
    """Which fields a request means."""

    def __init__(self, patterns: Sequence[str], filters: Sequence[str], types: Sequence[str]) -> None:
        self._patterns, self._filters, self._types = patterns, set(filters), set(types)

    def name(self, name: str) -> bool:
        return any(wildcard_match(pattern, name) for pattern in self._patterns)

    def field(self, index: Index, name: str, spec: FieldSpec) -> bool:
        if "+metadata" in self._filters or (self._types and spec.type not in self._types):
            return False
        if "-nested" in self._filters and (spec.nested is not None or spec.type == "nested"):
            return False
        if "-parent" in self._filters and spec.type in ("object", "nested"):
            return False
        above = index.mapping.field(name.rpartition(".")[0]) if "." in name else None
        is_multi = above is not None and above.type not in ("object", "nested")
        return not ("-multifield" in self._filters and is_multi)

    @property
    def metadata(self) -> bool:
        return "-metadata" not in self._filters and not self._types


# By name and type the indexes that have the field so, with (searchable, aggregatable) in each.
_Fields = dict[str, dict[str, dict[str, tuple[bool, bool]]]]


def _by_name(indexes: Sequence[Index], wanted: _Wanted) -> _Fields:
    fields: _Fields = {}
    for index in indexes:
        for name in _names(index):
            spec = index.mapping.field(name)
            if spec is not None and wanted.name(name) and wanted.field(index, name, spec):
                has_values = spec.doc_values and spec.storage is not Storage.NONE
                searchable = (spec.indexed or has_values) and spec.storage is not Storage.NONE
                can = searchable, has_values
                fields.setdefault(name, {}).setdefault(spec.type, {})[index.name] = can
        for name, can in _METADATA.items():
            if wanted.metadata and wanted.name(name):
                fields.setdefault(name, {}).setdefault(name, {})[index.name] = can
    return fields


def _names(index: Index) -> list[str]:
    """Fields, aliases, and the objects that they are in."""
    names = index.mapping.names("*")
    above = {name[:place] for name in names for place, letter in enumerate(name) if letter == "."}
    return sorted({*names, *above})


def _add_unmapped(fields: _Fields, indexes: Sequence[str]) -> None:
    for types in fields.values():
        having = {index for members in types.values() for index in members}
        lacking = [index for index in indexes if index not in having]
        if lacking:
            types["unmapped"] = dict.fromkeys(lacking, (False, False))


def _shown(fields: _Fields) -> dict[str, Any]:
    return {
        name: {
            kind: _capability(name, kind, members, len(types) > 1) for kind, members in sorted(types.items())
        }
        for name, types in sorted(fields.items())
    }


def _capability(
    name: str, kind: str, members: Mapping[str, tuple[bool, bool]], differs: bool
) -> dict[str, Any]:
    """What holds in all of the indexes; where it holds in some only, those in which it does not are named."""
    shown: dict[str, Any] = {"type": kind, "metadata_field": name in _METADATA}
    for place, (member, others) in enumerate(
        (("searchable", "non_searchable_indices"), ("aggregatable", "non_aggregatable_indices"))
    ):
        without = [index for index, can in members.items() if not can[place]]
        shown[member] = not without
        if 0 < len(without) < len(members):
            shown[others] = without
    return {**shown, "indices": list(members)} if differs else shown


def _may_match(node: SearchBackend, index: Index, query: Any) -> bool:
    parsed = parse_query(query, search_context(node, index))
    searcher = index.searcher()
    return any(bool(np.any(parsed.mask(leaf, searcher) & leaf.roots)) for leaf in searcher.leaves)
