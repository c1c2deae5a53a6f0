"""Hits as the answer shows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from graphdb.search.aggregations.scope import Scope
from graphdb.search.query import Query, explain, named_queries
from graphdb.search.query.highlight import Highlighter
from graphdb.search.results.fetching import Fetching
from graphdb.search.results.field_values import docvalue_fields, source_fields, values_at
from graphdb.search.results.selection import Hit
from graphdb.search.results.sort_keys import short_float
from graphdb.search.segment import Leaf

__all__ = ["Fetcher", "envelope"]


def envelope(hits: Sequence[Mapping[str, Any]], total: int, max_score: float | None) -> dict[str, Any]:
    """The object under `hits`, also that of inner hits and top_hits."""
    return {
        "total": {"value": total, "relation": "eq"},
        "max_score": None if max_score is None else short_float(max_score),
        "hits": list(hits),
    }


@dataclass
class Fetcher:
    """Shows hits of one search. query is what highlights, explains and names matches; None: nothing does."""

    scope: Scope
    query: Query | None
    _named: list[tuple[str, Query]] | None = field(default=None)
    _highlighters: dict[int, tuple[Fetching, Highlighter]] = field(default_factory=dict)

    def shown(self, hit: Hit, fetching: Fetching) -> dict[str, Any]:
        """Source is parsed only where it is needed."""
        leaf, doc = self.scope.columns.locate(hit.doc)
        segment = leaf.segment
        out: dict[str, Any] = {"_index": self.scope.context.index_name}
        if not fetching.hidden:
            out["_id"] = segment.doc_id(doc)
        nested = self._identity(leaf, doc)
        if nested is not None:
            out["_nested"] = nested
        if fetching.version:
            out["_version"] = int(segment.versions[doc])
        if fetching.seq_no:
            out["_seq_no"], out["_primary_term"] = int(segment.seq_nos[doc]), 1
        out["_score"] = None if hit.score is None else short_float(hit.score)
        routing = None if fetching.hidden else segment.routing(doc)
        if routing is not None:
            out["_routing"] = routing
        if not fetching.hidden and nested is None and (ignored := list(segment.ignored(doc))):
            out["_ignored"] = ignored
        self._contents(out, hit, leaf, doc, fetching, nested)
        if hit.sort:
            out["sort"] = list(hit.sort)
        if names := self._names(leaf, doc):
            out["matched_queries"] = names
        if fetching.explain and self.query is not None:
            _, out["_explanation"] = explain(self.query, leaf, doc, self.scope.searcher)
        return out

    def _contents(
        self,
        out: dict[str, Any],
        hit: Hit,
        leaf: Leaf,
        doc: int,
        fetching: Fetching,
        nested: Mapping[str, Any] | None,
    ) -> None:
        shows_source = fetching.source.enabled and not fetching.hidden
        if not (shows_source or fetching.fields or fetching.docvalues or fetching.highlight):
            return
        source = orjson.loads(leaf.segment.source(doc))
        inner = source if nested is None else _object_at(source, nested)
        if shows_source:
            out["_source"] = fetching.source.applied(inner)
        path = None if nested is None else _path(nested)
        fields = source_fields(fetching.fields, self.scope.context, inner, path) if fetching.fields else {}
        if fetching.docvalues:
            fields |= docvalue_fields(fetching.docvalues, self.scope, hit.doc)
        if fields:
            out["fields"] = fields
        if fetching.highlight is not None and self.query is not None:
            whole = source if path is None else _wrapped(inner, path)
            if fragments := self._highlighter(fetching).fragments(whole, leaf.segment.doc_id(doc)):
                out["highlight"] = fragments

    def _highlighter(self, fetching: Fetching) -> Highlighter:
        """Made once for each part of a request; that is kept with it, so that its identity stays its own."""
        if id(fetching) not in self._highlighters:
            assert self.query is not None
            made = Highlighter.of(fetching.highlight, self.query, self.scope.context, self.scope.searcher)
            self._highlighters[id(fetching)] = fetching, made
        return self._highlighters[id(fetching)][1]

    def _identity(self, leaf: Leaf, doc: int) -> dict[str, Any] | None:
        """`_nested`: where in its document a nested object stands."""
        segment = leaf.segment
        if segment.parents is None or segment.nested_path is None or segment.parents[doc] < 0:
            return None
        number, parent = segment.nested_path[doc], int(segment.parents[doc])
        siblings = (segment.parents == parent) & (segment.nested_path == number)
        path = segment.nested_paths[int(number)]
        own = {"field": path, "offset": int(siblings[:doc].sum())}
        above = self._identity(leaf, parent)
        if above is None:
            return own
        own["field"] = path.removeprefix(_path(above) + ".")
        inmost = above
        while "_nested" in inmost:
            inmost = inmost["_nested"]
        inmost["_nested"] = own
        return above

    def _names(self, leaf: Leaf, doc: int) -> list[str]:
        if self._named is None:
            self._named = [] if self.query is None else named_queries(self.query)
        place = leaf.base + doc
        return [name for name, query in self._named if self.scope.matching(query)[place]]


def _wrapped(inner: dict[str, Any], path: str) -> dict[str, Any]:
    """A nested object alone, at its place in a document."""
    for name in reversed(path.split(".")):
        inner = {name: inner}
    return inner


def _path(nested: Mapping[str, Any]) -> str:
    inner, own = nested.get("_nested"), str(nested["field"])
    return own if inner is None else f"{own}.{_path(inner)}"


def _object_at(source: dict[str, Any], nested: Mapping[str, Any]) -> dict[str, Any]:
    """The nested object itself. Nulls in the array are no objects."""
    objects = [item for item in values_at(source, nested["field"]) if isinstance(item, dict)]
    found = objects[nested["offset"]]
    inner = nested.get("_nested")
    return found if inner is None else _object_at(found, inner)
