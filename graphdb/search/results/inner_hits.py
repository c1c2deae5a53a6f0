"""Inner hits: of nested objects, of related documents, of collapsed groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphdb.search.aggregations.aggregation import Rows, Scope, columns_of
from graphdb.search.aggregations.options import Options
from graphdb.search.aggregations.value_sources import aggregatable
from graphdb.search.deadline import checkpoint
from graphdb.search.errors import illegal_argument, illegal_request
from graphdb.search.fields import Storage
from graphdb.search.leaf_reader import Floats, Longs
from graphdb.search.mapping.lookup import METADATA
from graphdb.search.mapping.value_formats import shown
from graphdb.search.query import Query, with_inner_hits
from graphdb.search.query.exact_knn import ExactKnnQuery
from graphdb.search.query.joins import JoinQuery
from graphdb.search.query.nested import NestedQuery
from graphdb.search.query.several import PerIndexQuery
from graphdb.search.results.fetching import Fetching, parse_fetching
from graphdb.search.results.hits import Fetcher, envelope
from graphdb.search.results.matching import Found, Sorting, first_of, joined
from graphdb.search.results.search_request import InnerHits, parse_inner_hits
from graphdb.search.results.sort_keys import ByScore
from graphdb.search.results.sort_parsing import parse_sort

__all__ = ["Groups", "NestedHits", "chosen_of", "offer_of", "page", "pages", "top_hits"]

# `collapse`: the best hit for each value of a field.

_SINGLE = ("boolean", "text", *METADATA)  # whose values groups are not made of


class Groups:
    """Which group each of some documents is in, by number; all without a value are one group."""

    def __init__(self, scope: Scope, path: str, docs: Longs) -> None:
        spec = aggregatable(scope.context, path)
        if spec is None:
            raise illegal_argument(f"no mapping found for `{path}` in order to collapse on")
        if spec.storage not in (Storage.TERMS, Storage.INTS, Storage.FLOATS) or spec.type in _SINGLE:
            raise illegal_argument(
                f"collapse is not supported for the field [{path}] of the type [{spec.type}]"
            )
        self._path, self._spec = path, spec
        is_terms = spec.storage is Storage.TERMS
        values = scope.columns.ordinals(spec, docs) if is_terms else scope.columns.exact(spec, docs)
        if len(np.unique(values.rows)) < len(values.rows):
            raise illegal_argument(
                f"failed to collapse on field [{path}]: multi-valued fields cannot be collapsed on"
            )
        self._dictionary = scope.columns.dictionary(spec) if is_terms else None
        self._keys, inverse = np.unique(values.data, return_inverse=True)
        self.numbers = np.full(len(docs), len(self._keys), np.int64)
        self.numbers[values.rows] = inverse

    def leaders(self, sorting: Sorting, rows: Longs) -> Longs:
        """Of rows in order, the first of each group."""
        _, first = np.unique(self.numbers[rows], return_index=True)
        return rows[np.sort(first)]

    def key(self, row: int) -> Any:
        """What a row's group is of in every shard: its stored value, None for the group without."""
        number = int(self.numbers[row])
        if number == len(self._keys):
            return None
        key = self._keys[number].item()
        return key if self._dictionary is None else self._dictionary.term(key)

    def members(self, key: Any) -> Longs:
        """All rows in the group that is of this; none where it is not here."""
        if key is None:
            return np.flatnonzero(self.numbers == len(self._keys))
        value = key if self._dictionary is None else self._dictionary.find(key)
        number = int(np.searchsorted(self._keys, value))
        if number == len(self._keys) or self._keys[number] != value:
            return np.zeros(0, np.int64)
        return np.flatnonzero(self.numbers == number)

    def show(self, hit: dict[str, Any], row: int) -> None:
        """Put the value of a row's group under the `fields` of its hit; nothing for the group without."""
        key = self.key(row)
        if key is not None:
            value = shown(self._spec, key + 2**63 if self._spec.type == "unsigned_long" else key, None)
            hit.setdefault("fields", {})[self._path] = [value]


# The hits of a page, where each shard has some of the candidates.


@dataclass(frozen=True, slots=True)
class Offer:
    """The first documents of one shard, in order: what each sort key needs of them, and their groups."""

    columns: list[Any]
    groups: list[Any] | None
    size: int


def offer_of(sorting: Sorting, rows: Longs, groups: Groups | None) -> Offer:
    """Of rows in order."""
    keys = None if groups is None else [groups.key(row) for row in rows.tolist()]
    return Offer([column.piece(rows) for column in sorting.columns], keys, len(rows))


def chosen_of(sorting: Sorting, offers: Sequence[Offer], start: int, size: int) -> Longs:
    """The documents of the page, in order, by their places in the offers, one offer after the other.

    Equal ones are ordered by shard.
    """
    orders = joined(sorting.columns, [offer.columns for offer in offers])
    keys = [key for offer in offers for key in offer.groups or ()]
    order = first_of(orders, len(orders[0]) if keys else start + size)
    if keys:
        firsts: dict[Any, int] = {}
        for place in order.tolist():
            firsts.setdefault(keys[place], place)
        order = np.array(list(firsts.values()), np.int64)
    return order[start : start + size]


# Hits below hits: those of nested objects, of collapsed groups, and of `top_hits`.


class _Page:
    """The hits of some documents of these leaves that a page may have, sorted and collapsed as inner says."""

    def __init__(self, scope: Scope, found: Found, inner: InnerHits) -> None:
        checkpoint()
        self._found, self._inner = found, inner
        self._sorting = Sorting(scope, found, inner.sort)
        by_score = not inner.sort or any(isinstance(key, ByScore) for key in inner.sort)
        self._scored = by_score or inner.track_scores
        self._groups = None if inner.collapse is None else Groups(scope, inner.collapse, found.docs)
        end = inner.start + inner.size
        if self._groups is None:
            self.rows = self._sorting.first(end)
        else:
            self.rows = self._groups.leaders(self._sorting, self._sorting.first(len(found.docs)))[:end]

    @property
    def best(self) -> float | None:
        """The best score."""
        scores = self._found.scores
        return float(scores.max()) if self._scored and scores is not None and len(scores) else None

    def hits(self, fetcher: Fetcher, rows: Longs, below: "NestedHits | None" = None) -> list[dict[str, Any]]:
        """Some of the rows as hits."""
        hits = []
        for row, hit in zip(rows.tolist(), self._sorting.hits(rows, self._scored), strict=True):
            checkpoint()
            written = fetcher.shown(hit, self._inner.fetching)
            if below is not None and (found_below := below.of(hit.doc)):
                written["inner_hits"] = found_below
            if self._groups is not None:
                self._groups.show(written, row)
            hits.append(written)
        return hits

    def offer(self, fetcher: Fetcher, below: "NestedHits | None") -> "_PageOffer":
        hits = self.hits(fetcher, self.rows, below)
        return _PageOffer(
            offer_of(self._sorting, self.rows, self._groups), hits, len(self._found.docs), self.best
        )

    def of_all(self, offers: "Sequence[_PageOffer]") -> dict[str, Any]:
        """The page, of what all shards offer."""
        offered = [hit for offer in offers for hit in offer.hits]
        order = chosen_of(
            self._sorting, [offer.rows for offer in offers], self._inner.start, self._inner.size
        )
        best = max((offer.best for offer in offers if offer.best is not None), default=None)
        hits = [offered[place] for place in order.tolist()]
        return envelope(hits, sum(offer.total for offer in offers), best if hits else None)


@dataclass(frozen=True, slots=True)
class _PageOffer:
    """The part of a page that one shard offers: all its hits that may be on it."""

    rows: Offer
    hits: list[dict[str, Any]]
    total: int
    best: float | None


def page(
    scope: Scope, fetcher: Fetcher, found: Found, inner: InnerHits, below: "NestedHits | None" = None
) -> dict[str, Any]:
    """`hits` of some documents, sorted and cut as inner says. below: their own `inner_hits`."""
    whole = _Page(scope, found, inner)
    hits = whole.hits(fetcher, whole.rows[inner.start :], below)
    return envelope(hits, len(found.docs), whole.best if hits else None)


def pages(
    scope: Scope,
    fetcher: Fetcher,
    every: Sequence[Found],
    inner: InnerHits,
    below: "NestedHits | None" = None,
) -> list[dict[str, Any]]:
    """A `page` for each of several sets of documents, which are in all shards that are searched."""
    if scope.searcher.peers is None:
        return [page(scope, fetcher, found, inner, below) for found in every]
    own = [_Page(scope, found, inner) for found in every]
    parts = scope.gathered("pages", [one.offer(fetcher, below) for one in own])
    return [one.of_all(offers) for one, offers in zip(own, zip(*parts, strict=True), strict=True)]


class NestedHits:
    """The `inner_hits` of a query's clauses for nested objects and related documents, and of the clauses
    within those. Owned by one search. Those of related documents are refused where shards are searched apart.
    """

    def __init__(self, scope: Scope, query: Query, path: str | None = None, is_silent: bool = False) -> None:
        """path: of the nested objects that the query is of, None: documents. is_silent: the query is known to
        ask for none.
        """
        self._scope = scope
        self._query, self._parts = query, dict[int, NestedHits]()
        self._clauses: list[_Clause] = []
        self._is_of_several = any(isinstance(node, PerIndexQuery) for node in query.nodes)
        if is_silent or self._is_of_several:
            return
        for name, node in with_inner_hits(query).items():
            assert node.inner_hits is not None
            inside = node.path if isinstance(node, NestedQuery) else None
            context = scope.context if inside is None else scope.context.within(inside)
            inner = parse_inner_hits(dict(node.inner_hits.members), context, name)
            if isinstance(node, NestedQuery):
                objects = _objects(scope, node)
                owners = scope.columns.ancestors(objects.docs, path)
            else:
                if scope.searcher.peers is not None:  # each would show what is in its own shard alone
                    raise illegal_request(
                        "[inner_hits] of [has_child] and [has_parent] are not supported where shards are "
                        "searched apart: search for the related documents"
                    )
                objects, owners = _related(scope, node)
            shown = _shown(node)
            below = NestedHits(scope, shown, inside)
            self._clauses.append(_Clause(inner, shown, objects, owners, below))

    @property
    def are_wanted(self) -> bool:
        """Whether any document may have some."""
        return bool(self._clauses) or self._is_of_several

    def of(self, doc: int) -> dict[str, Any]:
        """By name, for one document of the top level, or one of the nested objects at the path."""
        if self._is_of_several:
            return self._in_its_index(doc)
        if not self._clauses:
            return {}
        out = {}
        for clause in self._clauses:
            # Blocks stand before what they are in, so the owners ascend.
            low, high = np.searchsorted(clause.owners, [doc, doc + 1])
            fetcher = Fetcher(self._scope, clause.query)
            found = clause.objects.kept(np.arange(low, high))
            if isinstance(clause.query, ExactKnnQuery):
                leaf, _ = self._scope.columns.locate(doc)
                docs, scores = clause.query.scored(leaf, found.docs - leaf.base)
                found = Found(docs + leaf.base, scores)
            out[clause.inner.name] = {"hits": page(self._scope, fetcher, found, clause.inner, clause.below)}
        return out

    def _in_its_index(self, doc: int) -> dict[str, Any]:
        leaf, local = self._scope.columns.locate(doc)
        number, own, searcher = self._scope.searcher.part(leaf)
        if number not in self._parts:
            scope = Scope(searcher, columns_of(searcher), self._scope.context.parts[number])
            if isinstance(self._scope.visible, PerIndexQuery):
                scope.visible = self._scope.visible.queries[number]
            self._parts[number] = NestedHits(scope, self._query.part(number))
        return self._parts[number].of(own.base + local)


@dataclass(frozen=True, slots=True)
class _Clause:
    """query: what those match that are shown. objects: all that it finds; owners: the document, or object of
    the clause around, that each is in or is related to; ascending.
    """

    inner: InnerHits
    query: Query
    objects: Found
    owners: Longs
    below: NestedHits


def _shown(node: NestedQuery | JoinQuery) -> Query:
    """What the objects or documents match that are shown."""
    return node.query if isinstance(node, JoinQuery) or node.shown is None else node.shown


def _objects(scope: Scope, node: NestedQuery) -> Found:
    """All nested objects that a clause shows, with their own scores.

    Vectors are not scored here: those that are shown are few.
    """
    shown = _shown(node)
    node = node if shown is node.query else replace(node, query=shown)
    docs, scores = [np.empty(0, np.int64)], [np.empty(0, np.float32)]
    if isinstance(shown, ExactKnnQuery):
        node = replace(node, query=replace(shown, score_min=None))
    for leaf in scope.columns.leaves:
        objects = node.found(leaf, scope.searcher)
        docs.append(objects + leaf.base)
        if isinstance(shown, ExactKnnQuery):
            scores.append(np.zeros(len(objects), np.float32))
        else:
            scores.append(shown.matches(leaf, scope.searcher).dense()[objects])
    return Found(np.concatenate(docs), np.concatenate(scores))


def _related(scope: Scope, node: JoinQuery) -> tuple[Found, Longs]:
    """The related documents that a clause finds, and their owners, without those that aliases hide."""
    related = node.related(scope.searcher)
    found, owners = Found(related.docs, related.scores), related.owners
    if scope.visible is None:
        return found, owners
    shown = np.flatnonzero(scope.matching(scope.visible)[found.docs])
    return found.kept(shown), owners[shown]


def top_hits(
    body: Mapping[str, Any], rows: Rows, scope: Scope, query: Query | None, around: Fetching
) -> list[dict[str, Any]]:
    """The hits of each bucket of the rows. around: of the search; its `fields` are shown unless body has its
    own.
    """
    options = Options("top_hits", body)
    own_fields = "fields" in options
    start, size = options.integer("from", 0, 0), options.integer("size", 3, 0)
    sort = parse_sort(options.take("sort"), scope.context)
    fetching = parse_fetching(options, scope.context)
    if not own_fields:
        fetching = replace(fetching, fields=around.fields)
    inner = InnerHits("", start, size, sort, fetching, track_scores=options.flag("track_scores"))
    options.done()
    fetcher = Fetcher(scope, query)
    # The rows of a bucket, each list ascending: buckets keep the documents' order.
    order = np.argsort(rows.owners, kind="stable")
    ends = np.cumsum(rows.sizes())
    starts = ends - rows.sizes()
    buckets = [
        _found(rows.docs[order[low:high]], scope.scores)
        for low, high in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    return pages(scope, fetcher, buckets, inner, None if query is None else NestedHits(scope, query))


def _found(docs: Longs, scores: Floats | None) -> Found:
    docs = np.sort(docs)
    return Found(docs, None if scores is None else scores[docs])
