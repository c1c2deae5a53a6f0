"""`_field_caps`: the fields of several indexes, and their uses; `_terms_enum`: the terms of one field."""

from collections.abc import Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from graphdb.search.aggregations.options import Options
from graphdb.search.catalog.state import Index
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.fields import FieldSpec, Storage
from graphdb.search.leaf_reader import TermDictionary
from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.search.query import parse_query
from graphdb.search.scripts.stored import with_stored
from serve.search.backend import SearchBackend
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint
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

_SIZE_MAX = 10_000
_SCANNED_MAX = 200_000  # terms of a field that are read for a case-insensitive match
_CHUNK = 256


def endpoints() -> list[Endpoint]:
    caps = ["/_field_caps", "/{index}/_field_caps"]
    return [
        *endpoint("GET POST", caps, _field_caps, _PARAMETERS, Body.JSON),
        *endpoint("GET POST", "/{index}/_terms_enum", _terms_enum, NAME_PARAMETERS, Body.JSON),
    ]


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

    def field(self, spec: FieldSpec) -> bool:
        if "+metadata" in self._filters or (self._types and spec.type not in self._types):
            return False
        if "-nested" in self._filters and (spec.nested is not None or spec.type == "nested"):
            return False
        if "-parent" in self._filters and spec.type in ("object", "nested"):
            return False
        return not ("-multifield" in self._filters and spec.multi_of is not None)

    @property
    def metadata(self) -> bool:
        return "-metadata" not in self._filters and not self._types


class _Can(NamedTuple):
    """What one index can do with a field. meta: what its mapping says about it, for people."""

    searchable: bool
    aggregatable: bool
    meta: Mapping[str, Any] = {}


# By name and type the indexes that have the field so.
_Fields = dict[str, dict[str, dict[str, _Can]]]


def _by_name(indexes: Sequence[Index], wanted: _Wanted) -> _Fields:
    fields: _Fields = {}
    for index in indexes:
        for name in _names(index):
            # An object with `subobjects: false` has no objects in it, but names that say there are.
            spec = index.mapping.field(name) or FieldSpec(name, "object", Storage.NONE, doc_values=False)
            if wanted.name(name) and wanted.field(spec):
                # Vectors are for their query alone.
                has_values = spec.doc_values and spec.storage not in (Storage.NONE, Storage.VECTORS)
                searchable = (spec.indexed or has_values) and spec.storage is not Storage.NONE
                can = _Can(searchable, has_values, spec.options.get("meta") or {})
                fields.setdefault(name, {}).setdefault(spec.type, {})[index.name] = can
        for name, what in _METADATA.items():
            if wanted.metadata and wanted.name(name):
                fields.setdefault(name, {}).setdefault(name, {})[index.name] = _Can(*what)
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
            types["unmapped"] = dict.fromkeys(lacking, _Can(False, False))


def _shown(fields: _Fields) -> dict[str, Any]:
    return {
        name: {
            kind: _capability(name, kind, members, len(types) > 1) for kind, members in sorted(types.items())
        }
        for name, types in sorted(fields.items())
    }


def _capability(name: str, kind: str, members: Mapping[str, _Can], differs: bool) -> dict[str, Any]:
    """A capability of a field over all indexes; if only some have it, the others are named."""
    shown: dict[str, Any] = {"type": kind, "metadata_field": name in _METADATA}
    for place, (member, others) in enumerate(
        (("searchable", "non_searchable_indices"), ("aggregatable", "non_aggregatable_indices"))
    ):
        without = [index for index, can in members.items() if not can[place]]
        shown[member] = not without
        if 0 < len(without) < len(members):
            shown[others] = without
    meta: dict[str, set[str]] = {}
    for can in members.values():
        for key, value in can.meta.items():
            meta.setdefault(key, set()).add(str(value))
    if meta:
        shown["meta"] = {key: sorted(values) for key, values in sorted(meta.items())}
    return {**shown, "indices": list(members)} if differs else shown


def _may_match(node: SearchBackend, index: Index, query: Any) -> bool:
    if with_stored(query, {})[1]:
        raise illegal_argument("scripts are not supported in [index_filter]")
    parsed = parse_query(query, search_context(node, index))
    searcher = index.searcher()
    return any(bool(np.any(parsed.mask(leaf, searcher) & leaf.roots)) for leaf in searcher.leaves)


async def _terms_enum(exchange: Exchange) -> Any:
    options = Options("terms_enum", await exchange.json() or {})
    field, size = options.text("field"), options.integer("size", 10, 1)
    start, after = options.text("string", "") or "", options.text("search_after")
    fold = options.flag("case_insensitive")
    options.ignore("timeout", "index_filter")
    options.done()
    if not field:
        raise illegal_argument("field cannot be null")
    if size > _SIZE_MAX:
        raise illegal_argument(f"[size] must be at most [{_SIZE_MAX}]")
    indexes = [one.index for one in names_found(exchange.node, exchange["index"], exchange.parameters)]

    def found() -> list[str]:
        held = [one for index in indexes for one in _held(index, field)]
        return list(islice(_distinct(_matching(held, start, after, fold)), size))

    terms = await exchange.work.run(found)
    shards = {"total": len(indexes), "successful": len(indexes), "failed": 0}
    return {"_shards": shards, "terms": terms, "complete": True}


def _held(index: Index, field: str) -> list[TermDictionary]:
    """The terms of each segment."""
    spec = index.mapping.field(field)
    if spec is None or spec.storage is not Storage.TERMS or spec.type in ("ip", "version", "completion"):
        return []
    return [
        terms.dictionary
        for leaf in index.searcher().leaves
        if (terms := leaf.segment.terms(spec.path)) is not None
    ]


def _matching(held: Sequence[TermDictionary], start: str, after: str | None, fold: bool) -> Iterator[str]:
    """Ascending, with doubles."""
    return merge(*(_of_one(dictionary, start, after, fold) for dictionary in held))


def _of_one(dictionary: TermDictionary, start: str, after: str | None, fold: bool) -> Iterator[str]:
    wanted = start.lower()
    first = dictionary.lower_bound(max(after or "", "" if fold else start))
    last = min(len(dictionary), first + _SCANNED_MAX) if fold else len(dictionary)
    for low in range(first, last, _CHUNK):
        for term in dictionary.terms(low, min(last, low + _CHUNK)):
            if after is not None and term <= after:
                continue
            if fold and not term.lower().startswith(wanted):
                continue
            if not fold and not term.startswith(start):
                return
            yield term


def _distinct(terms: Iterator[str]) -> Iterator[str]:
    last = None
    for term in terms:
        if term != last:
            yield term
        last = term
