"""Hits as the answer shows them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any

import orjson

from graphdb.search.aggregations.aggregation import Scope, columns_of
from graphdb.search.answer_room import take_room, take_room_of_part, whole_document
from graphdb.search.deadline import checkpoint
from graphdb.search.leaf_reader import Floats, Leaf, Longs
from graphdb.search.query import Query, Searcher, explain, named_queries
from graphdb.search.query.highlight import Highlighter
from graphdb.search.query.percolate import Percolated, PercolateQuery, percolate_queries
from graphdb.search.results.fetching import EVERYTHING, Fetching, kept_source
from graphdb.search.results.field_values import (
    docvalue_fields,
    malformed_values,
    runtime_values,
    source_fields,
    values_at,
)
from graphdb.search.results.matching import Hit, Rescored
from graphdb.search.results.sort_keys import short_float, short_floats

__all__ = ["Fetcher", "envelope"]

_COUNTED_BYTES = 64 << 10  # of documents: so many are counted together


def envelope(hits: Sequence[Mapping[str, Any]], total: int, max_score: float | None) -> dict[str, Any]:
    """The object under `hits`, also that of inner hits and top_hits."""
    return {
        "total": {"value": total, "relation": "eq"},
        "max_score": None if max_score is None else short_float(max_score),
        "hits": list(hits),
    }


@dataclass
class Fetcher:
    """Shows hits of one search. query is what highlights, explains and names matches; None: nothing does.

    raw_source: a `_source` that is shown whole is an orjson.Fragment of what is stored, never parsed.
    named_scores: `matched_queries` says what each named query has given. rescored: what has changed the
    scores after the query. query_is_silent: see `SearchRequest`. beside: what has narrowed the hits after the
    query, whose names hits show too.
    """

    scope: Scope
    query: Query | None
    raw_source: bool = False
    named_scores: bool = False
    rescored: tuple[Rescored, ...] = ()
    query_is_silent: bool = False
    beside: tuple[Query, ...] = ()
    _parts: "dict[int, Fetcher]" = field(default_factory=dict)
    _asked: tuple[Fetching, bool] | None = field(default=None)
    _named: list[tuple[str, Query]] | None = field(default=None)
    _highlighters: dict[int, tuple[Fetching, Highlighter]] = field(default_factory=dict)

    def shown(self, hit: Hit, fetching: Fetching) -> dict[str, Any]:
        """Source is parsed only where it is needed."""
        leaf, doc = self.scope.columns.locate(hit.doc)
        if self._is_plain(fetching) and leaf.segment.parents is None:
            return self._plain(hit, leaf, doc, fetching.source.enabled)
        number, own, searcher = self.scope.searcher.part(leaf)
        if searcher is not self.scope.searcher:
            fetcher = self._part(number, searcher)
            moved = own.base + doc
            done = zip(self.rescored, fetcher.rescored, strict=True)
            fetcher.rescored = tuple(
                replace(inner, docs=frozenset({moved} if hit.doc in whole.docs else ()))
                for whole, inner in done
            )
            return fetcher.shown(replace(hit, doc=moved), fetching)
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
            out["matched_queries"] = names if self.named_scores else list(names)
        if fetching.explain and self.query is not None:
            _, out["_explanation"] = explain(self.query, leaf, doc, self.scope.searcher)
            for one in self.rescored:
                was_in, query = hit.doc in one.docs, one.rescore.query
                out["_explanation"] = one.explain(
                    out["_explanation"], was_in, query, leaf, doc, self.scope.searcher
                )
        return out

    def shown_plain(
        self, docs: Longs, scores: Floats | None, sorts: Sequence[Sequence[Any]], fetching: Fetching
    ) -> list[dict[str, Any]] | None:
        """All hits, in their order, where they are shown as their whole documents, or without them, and with
        nothing else; else None. scores: None where none are shown; sorts: by hit, empty where hits are sorted
        by score alone.

        What is of all of them is looked up once: of ten hits that is most of the work.
        """
        columns = self.scope.columns
        if not (self._is_plain(fetching) and columns.has_plain_roots):
            return None
        name = self.scope.context.index_name
        has_source = fetching.source.enabled
        shown: list[dict[str, Any]] = []
        size_bytes = 0  # of documents that are not counted yet
        shown_scores = repeat(None, len(docs)) if scores is None else short_floats(scores)
        found = self._ids_and_sources(docs.tolist(), has_source)
        for (doc_id, source), score in zip(found, shown_scores, strict=True):
            one: dict[str, Any] = {"_index": name, "_id": doc_id, "_score": score}
            if has_source:
                size_bytes += len(source)
                if size_bytes > _COUNTED_BYTES:
                    take_room(size_bytes)
                    size_bytes = 0
                one["_source"] = orjson.Fragment(source)
            shown.append(one)
        take_room(size_bytes)
        for one, sort in zip(shown, sorts, strict=False):
            one["sort"] = list(sort)
        return shown

    def _ids_and_sources(self, docs: list[int], has_source: bool) -> Iterator[tuple[str, bytes]]:
        """Of each of these, read as they are taken; no sources where none are shown."""
        columns = self.scope.columns
        if has_source and len(columns.leaves) == 1:
            return columns.leaves[0].segment.shown(docs)
        places = map(columns.locate, docs)
        if has_source:
            return ((leaf.segment.doc_id(doc), leaf.segment.source(doc)) for leaf, doc in places)
        return ((leaf.segment.doc_id(doc), b"") for leaf, doc in places)

    def _is_plain(self, fetching: Fetching) -> bool:
        """Whether hits are shown as their whole documents, or without them, and with nothing else, as most
        are; found out once for all.
        """
        if self._asked is None or self._asked[0] is not fetching:
            scope = self.scope
            more = fetching.hidden or fetching.version or fetching.seq_no or fetching.explain or self.rescored
            says = False
            if self.query is not None and not self.query_is_silent:
                says = bool(named_queries(self.query) or percolate_queries(self.query))
            says = says or any(map(named_queries, self.beside))
            whole = self.raw_source and fetching.is_whole and kept_source(scope.context.mapping) == EVERYTHING
            bare = fetching.is_raw and not fetching.source.enabled
            is_plain = (whole or bare) and not (more or says or scope.context.parts)
            self._asked = fetching, is_plain
        return self._asked[1]

    def _plain(self, hit: Hit, leaf: Leaf, doc: int, has_source: bool) -> dict[str, Any]:
        """What `shown` makes of it, in the same order."""
        segment, score = leaf.segment, hit.score
        out: dict[str, Any] = {
            "_index": self.scope.context.index_name,
            "_id": segment.doc_id(doc),
            "_score": None if score is None else short_float(score),
        }
        if (routing := segment.routing(doc)) is not None:
            out["_routing"] = routing
        if ignored := segment.ignored(doc):
            out["_ignored"] = list(ignored)
        if has_source:
            out["_source"] = whole_document(segment.source(doc))
        if hit.sort:
            out["sort"] = list(hit.sort)
        return out

    def _part(self, number: int, searcher: Searcher) -> "Fetcher":
        """That of one of several indexes, which shows hits by its own mapping."""
        if number not in self._parts:
            scope = Scope(searcher, columns_of(searcher), self.scope.context.parts[number])
            query = None if self.query is None else self.query.part(number)
            inner = tuple(
                replace(one, rescore=replace(one.rescore, query=one.rescore.query.part(number)))
                for one in self.rescored
            )
            beside = tuple(one.part(number) for one in self.beside)
            self._parts[number] = Fetcher(
                scope, query, self.raw_source, self.named_scores, inner, beside=beside
            )
        return self._parts[number]

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
        kept = kept_source(self.scope.context.mapping)
        shows_source = shows_source and kept.enabled
        wants_more = fetching.fields or fetching.stored or fetching.docvalues or fetching.highlight
        for one in fetching.scripts:
            values = one.values(leaf, doc, self.scope.context)
            if values is not None:
                out.setdefault("fields", {})[one.name] = values
        percolated = list(self._percolated(leaf, doc))
        for query, found in percolated:
            suffix = "" if query.name is None else f"_{query.name}"
            out.setdefault("fields", {})[f"_percolator_document_slot{suffix}"] = list(found.slots)
        if not (shows_source or wants_more):
            return
        if self.raw_source and nested is None and shows_source and fetching.is_whole and kept == EVERYTHING:
            out["_source"] = whole_document(leaf.segment.source(doc))
            return
        text = leaf.segment.source(doc)
        given = orjson.loads(text)
        source = kept.applied(given)
        inner = source if nested is None else _object_at(source, nested)
        path = None if nested is None else _path(nested)
        whole = source if path is None else _wrapped(inner, path)
        if shows_source:
            checkpoint()
            shown = fetching.source.applied(whole)
            out["_source"] = shown if path is None else _unwrapped(shown, path)
            take_room_of_part(out["_source"], text)
        asked = (*fetching.fields, *fetching.stored)
        fields = source_fields(fetching.fields, self.scope.context, whole) if fetching.fields else {}
        if fetching.stored:  # whatever the mapping shows of the source
            fields |= source_fields(fetching.stored, self.scope.context, given if path is None else whole)
        ignored = out.get("_ignored")
        if ignored and (left_out := malformed_values(fetching.fields, self.scope.context, source, ignored)):
            out["ignored_field_values"] = left_out
        if asked and self.scope.searcher.has_runtime_fields:
            fields |= runtime_values(asked, self.scope, hit.doc)
        if fetching.docvalues:
            fields |= docvalue_fields(fetching.docvalues, self.scope, hit.doc)
        for name in {pattern.name for pattern in fetching.fields} & {"_id", "_ignored", "_routing"}:
            if (own := out.get(name)) is not None:
                fields[name] = own if isinstance(own, list) else [own]
        if fields:
            out["fields"] = out.get("fields", {}) | fields
            take_room_of_part(fields, text)
        if fetching.highlight is None or self.query is None:
            return
        fragments = self._highlighter(fetching).fragments(whole, leaf.segment.doc_id(doc))
        for query, found in percolated:
            fragments |= self._of_given(fetching, query, found)
        if fragments:
            out["highlight"] = fragments

    def _percolated(self, leaf: Leaf, doc: int) -> Iterator[tuple[PercolateQuery, Percolated]]:
        """What the stored query of a document finds."""
        for query in percolate_queries(self.query):
            found = query.found(leaf, doc, self.scope.searcher)
            if found is not None:
                yield query, found

    def _of_given(self, fetching: Fetching, query: PercolateQuery, found: Percolated) -> dict[str, list[str]]:
        """The parts of the given documents that a stored query matches; of several, by their places."""
        given = query.given(self.scope.searcher)
        context = replace(self.scope.context, mapping=given.mapping)
        highlighter = Highlighter.of(fetching.highlight, found.query, context, given)
        fragments: dict[str, list[str]] = {}
        for slot in found.slots:
            prefix = "" if len(query.documents) == 1 else f"{slot}_"
            prefix = prefix if query.name is None else f"{query.name}_{prefix}"
            of_slot = highlighter.fragments(orjson.loads(query.documents[slot]), str(slot))
            fragments |= {f"{prefix}{name}": texts for name, texts in of_slot.items()}
        return fragments

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

    def _names(self, leaf: Leaf, doc: int) -> dict[str, float]:
        """The named queries that match, with their scores where those are asked for, else 0."""
        if self._named is None:
            rescoring = (one.rescore.query for one in self.rescored)
            queries = () if self.query is None else (self.query, *self.beside, *rescoring)
            self._named = [pair for query in queries for pair in named_queries(query)]
        place = leaf.base + doc
        matching = [(name, query) for name, query in self._named if self.scope.matching(query)[place]]
        if not self.named_scores:
            return {name: 0.0 for name, _ in matching}
        searcher = self.scope.searcher
        return {name: short_float(query.matches(leaf, searcher).dense()[doc]) for name, query in matching}


def _wrapped(inner: dict[str, Any], path: str) -> dict[str, Any]:
    """A nested object alone, at its place in a document."""
    for name in reversed(path.split(".")):
        inner = {name: inner}
    return inner


def _unwrapped(source: dict[str, Any], path: str) -> dict[str, Any]:
    """What a filter has left of a nested object that was alone at its place."""
    for name in path.split("."):
        source = source.get(name, {})
    return source


def _path(nested: Mapping[str, Any]) -> str:
    inner, own = nested.get("_nested"), str(nested["field"])
    return own if inner is None else f"{own}.{_path(inner)}"


def _object_at(source: dict[str, Any], nested: Mapping[str, Any]) -> dict[str, Any]:
    """The nested object itself. Nulls in the array are no objects."""
    objects = [item for item in values_at(source, nested["field"]) if isinstance(item, dict)]
    found = objects[nested["offset"]]
    inner = nested.get("_nested")
    return found if inner is None else _object_at(found, inner)
