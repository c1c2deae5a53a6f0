"""`has_child`, `has_parent` and `parent_id`: documents of one index that a `join` field relates.

What matches is found in all segments and shards first, by the ids of parents, so a child may be anywhere. The
memory is in proportion to the parents of what matches.
"""

from abc import abstractmethod
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdb.search.deadline import checkpoint
from graphdb.search.errors import illegal_argument
from graphdb.search.fields import FieldSpec
from graphdb.search.leaf_reader import Bools, Floats, Leaf, Longs, TermIndex
from graphdb.search.mapping.joins import children_of, join_field, parent_path
from graphdb.search.query.clause import Clause, ClauseParser, Parse, QueryContext
from graphdb.search.query.compound import BoolQuery
from graphdb.search.query.nested import InnerHits, inner_hits_of
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.term_queries import KeywordQuery, TermsQuery
from graphdb.search.query.tree import Matches, MatchNoneQuery, Query

__all__ = ["PARSERS", "HasChildQuery", "HasParentQuery", "JoinQuery", "Related"]

Joined = dict[str, tuple[int, float, float, float]]
"""By the id of a parent: how many of its children match; the sum of their scores, the least, the greatest."""

_MODES: dict[str, Callable[[tuple[int, float, float, float]], float]] = {
    "none": lambda found: 1.0,
    "avg": lambda found: found[1] / found[0],
    "sum": lambda found: found[1],
    "min": lambda found: found[2],
    "max": lambda found: found[3],
}


def _related(leaf: Leaf, path: str, names: tuple[str, ...], searcher: Searcher) -> Bools:
    """The documents with one of these names in the join field."""
    return TermsQuery(path=path, terms=names).mask(leaf, searcher)


@dataclass(frozen=True, slots=True)
class Related:
    """What a query has found in these leaves, and the document that each is related to: (n,) numbers of
    documents in all leaves, owners ascending, and the documents of one owner; (n,) scores.
    """

    docs: Longs
    owners: Longs
    scores: Floats


@dataclass(frozen=True, kw_only=True)
class JoinQuery(Query):
    """Documents by those that they are related to. path: of the join field; query: for the others;
    inner_hits: what the request wants to see of the others, None: nothing.
    """

    path: str
    query: Query
    inner_hits: InnerHits | None = None

    @abstractmethod
    def related(self, searcher: Searcher) -> Related:
        """What the query finds in these leaves, with what it is related to there."""

    def children(self) -> tuple[Query, ...]:
        return (self.query,)

    def _found(self, leaf: Leaf, names: tuple[str, ...], searcher: Searcher) -> Longs:
        mask = self.query.mask(leaf, searcher) & leaf.roots & leaf.live
        return np.flatnonzero(mask & _related(leaf, self.path, names, searcher))

    def _scores(self, leaf: Leaf, docs: Longs, searcher: Searcher) -> Floats:
        return self.query.matches(leaf, searcher).dense()[docs]


def _in_order(docs: list[int], owners: list[int], scores: list[float]) -> Related:
    order = np.lexsort((docs, owners)) if docs else np.zeros(0, np.int64)
    return Related(
        np.array(docs, np.int64)[order],
        np.array(owners, np.int64)[order],
        np.array(scores, np.float32)[order],
    )


@dataclass(frozen=True, kw_only=True)
class HasChildQuery(JoinQuery):
    """Parents by what their children match."""

    child: str
    parent: str
    score_mode: str = "none"
    least: int = 1
    most: int = 2**31 - 1

    def joined(self, searcher: Searcher) -> Joined:
        """Of all shards."""
        return searcher.keep(("children", self), lambda: _merged(searcher.ask(_Children(self))))

    def found(self, searcher: Searcher) -> Joined:
        """Of these leaves."""
        joined: Joined = {}
        for leaf in searcher.leaves:
            checkpoint()
            index = leaf.segment.terms(parent_path(self.path))
            mask = self.query.mask(leaf, searcher) & leaf.roots
            if index is None or not mask.any():
                continue
            mask &= _related(leaf, self.path, (self.child,), searcher)
            scores = np.zeros(leaf.segment.size, np.float32)
            if self.score_mode != "none":
                scores = self.query.matches(leaf, searcher).dense()
            _merge(joined, _by_parent(index, np.flatnonzero(mask), scores))
        return joined

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        mask, scores = np.zeros(leaf.segment.size, np.bool_), np.zeros(leaf.segment.size, np.float32)
        for doc_id, found in self.joined(searcher).items():
            doc = leaf.segment.find(doc_id) if self.least <= found[0] <= self.most else -1
            if doc >= 0:
                mask[doc], scores[doc] = True, boost * self.boost * _MODES[self.score_mode](found)
        mask &= _related(leaf, self.path, (self.parent,), searcher)
        return Matches(mask, np.where(mask, scores, np.float32(0)))

    def related(self, searcher: Searcher) -> Related:
        docs, owners, scores = list[int](), list[int](), list[float]()
        numbers: dict[str, int] = {}
        for leaf in searcher.leaves:
            checkpoint()
            index = leaf.segment.terms(parent_path(self.path))
            if index is None:
                continue
            found = self._found(leaf, (self.child,), searcher)
            starts = index.ordinals.starts
            found = found[starts[found + 1] > starts[found]]
            terms = index.ordinals.terms[starts[found]].tolist()
            ids = {number: index.dictionary.term(number) for number in set(terms)}
            for doc_id in ids.values() - numbers.keys():
                numbers[doc_id] = self._number(doc_id, searcher)
            docs += (found + leaf.base).tolist()
            owners += [numbers[ids[term]] for term in terms]
            scores += self._scores(leaf, found, searcher).tolist()
        return _in_order(docs, owners, scores)

    def _number(self, doc_id: str, searcher: Searcher) -> int:
        """Of a parent among the documents of all leaves; -1 where it is not in them."""
        for leaf in searcher.leaves:
            doc = leaf.segment.find(doc_id)
            if doc >= 0 and leaf.live[doc] and _related(leaf, self.path, (self.parent,), searcher)[doc]:
                return int(leaf.base + doc)
        return -1

    def text(self) -> str:
        return f"has_child({self.child}, {self.query})"


def _by_parent(index: TermIndex, docs: "np.typing.NDArray[np.int64]", scores: Any) -> Joined:
    """Of the children at docs; each has one parent, or none."""
    starts = index.ordinals.starts
    docs = docs[starts[docs + 1] > starts[docs]]
    parents, values = index.ordinals.terms[starts[docs]], scores[docs].astype(np.float64)
    used, inverse, counts = np.unique(parents, return_inverse=True, return_counts=True)
    least, greatest = np.full(len(used), np.inf), np.full(len(used), -np.inf)
    np.minimum.at(least, inverse, values)
    np.maximum.at(greatest, inverse, values)
    sums = np.bincount(inverse, values, len(used))
    columns = zip(counts.tolist(), sums.tolist(), least.tolist(), greatest.tolist(), strict=True)
    terms = (index.dictionary.term(number) for number in used.tolist())
    return dict(zip(terms, columns, strict=True))


def _merge(joined: Joined, more: Joined) -> None:
    for doc_id, found in more.items():
        known = joined.get(doc_id, (0, 0.0, np.inf, -np.inf))
        joined[doc_id] = (
            known[0] + found[0], known[1] + found[1], min(known[2], found[2]), max(known[3], found[3])
        )  # fmt: skip


def _merged(parts: list[Joined]) -> Joined:
    joined: Joined = {}
    for part in parts:
        _merge(joined, part)
    return joined


@dataclass(frozen=True, slots=True)
class _Children:
    query: HasChildQuery

    def answered(self, searcher: Searcher) -> Joined:
        return self.query.found(searcher)


@dataclass(frozen=True, kw_only=True)
class HasParentQuery(JoinQuery):
    """Children by what their parent matches; with scored its score is theirs."""

    parent: str
    names: tuple[str, ...]  # of the children
    scored: bool = False

    def joined(self, searcher: Searcher) -> dict[str, float]:
        """The scores of the parents that match in all shards, by id."""
        return searcher.keep(("parents", self), lambda: dict(ChainMap(*searcher.ask(_Parents(self)))))

    def found(self, searcher: Searcher) -> dict[str, float]:
        """Those of these leaves."""
        scores: dict[str, float] = {}
        for leaf in searcher.leaves:
            checkpoint()
            mask = self.query.mask(leaf, searcher) & leaf.roots
            mask &= _related(leaf, self.path, (self.parent,), searcher)
            own = self.query.matches(leaf, searcher).dense() if self.scored else None
            for doc in np.flatnonzero(mask).tolist():
                scores[leaf.segment.doc_id(doc)] = 1.0 if own is None else float(own[doc])
        return scores

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        mask, scores = np.zeros(leaf.segment.size, np.bool_), np.zeros(leaf.segment.size, np.float32)
        index = leaf.segment.terms(parent_path(self.path))
        if index is None:
            return Matches(mask)
        for doc_id, score in self.joined(searcher).items():
            number = index.dictionary.find(doc_id)
            if number >= 0:
                docs = index.postings(number)
                mask[docs], scores[docs] = True, boost * self.boost * score
        mask &= _related(leaf, self.path, self.names, searcher)
        return Matches(mask, np.where(mask, scores, np.float32(0)))

    def related(self, searcher: Searcher) -> Related:
        docs, owners, scores = list[int](), list[int](), list[float]()
        parents: dict[str, tuple[int, float]] = {}
        for leaf in searcher.leaves:
            found = self._found(leaf, (self.parent,), searcher)
            each = zip(found.tolist(), self._scores(leaf, found, searcher).tolist(), strict=True)
            parents |= {leaf.segment.doc_id(doc): (leaf.base + doc, score) for doc, score in each}
        for leaf in searcher.leaves:
            checkpoint()
            index = leaf.segment.terms(parent_path(self.path))
            if index is None:
                continue
            mask = _related(leaf, self.path, self.names, searcher) & leaf.live
            for doc_id, (number, score) in parents.items():
                place = index.dictionary.find(doc_id)
                if place >= 0:
                    own = index.postings(place)
                    own = own[mask[own]]
                    docs += [number] * len(own)
                    owners += (own + leaf.base).tolist()
                    scores += [score] * len(own)
        return _in_order(docs, owners, scores)

    def text(self) -> str:
        return f"has_parent({self.parent}, {self.query})"


@dataclass(frozen=True, slots=True)
class _Parents:
    query: HasParentQuery

    def answered(self, searcher: Searcher) -> dict[str, float]:
        return self.query.found(searcher)


# From the JSON to the tree.


@dataclass(frozen=True, slots=True)
class _Request:
    """spec: of the join field, None where there is none."""

    spec: FieldSpec | None
    name: str
    query: Any
    ignore_unmapped: bool
    inner_hits: InnerHits | None


def _read(kind: str, clause: Clause, member: str, context: QueryContext) -> _Request:
    name, query = clause.needed(member), clause.needed("query")
    ignore = clause.flag("ignore_unmapped", False)
    inner_hits = inner_hits_of(clause.take("inner_hits"), str(name))
    context.check_expensive("[joining] queries")
    spec = join_field(context.mapping.match("*"))
    if spec is None and not ignore:
        raise context.failed(f"[{kind}] no join field has been configured")
    return _Request(spec, str(name), query, ignore, inner_hits)


def _has_child(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("has_child", body)
    request = _read("has_child", clause, "type", context)
    spec, name = request.spec, request.name
    mode = clause.choice("score_mode", "none", tuple(_MODES))
    least, most = clause.integer("min_children", 1), clause.integer("max_children", 2**31 - 1)
    clause.done()
    if least <= 0 or most <= 0:
        raise illegal_argument("[has_child] requires positive 'min_children' and 'max_children'")
    if most < least:
        raise illegal_argument("[has_child] 'max_children' is less than 'min_children'")
    query = parse(request.query, context)
    relations = {} if spec is None else children_of(spec.options["relations"])
    parent = next((parent for parent, names in relations.items() if name in names), None)
    if spec is None or parent is None:
        if spec is not None and not request.ignore_unmapped:
            raise context.failed(f"[has_child] join field [{spec.path}] doesn't hold [{name}] as a child")
        return MatchNoneQuery(boost=clause.boost, name=clause.name)
    return HasChildQuery(
        path=spec.path, child=name, parent=parent, query=query, score_mode=mode, least=least, most=most,
        inner_hits=request.inner_hits, boost=clause.boost, name=clause.name,
    )  # fmt: skip


def _has_parent(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("has_parent", body)
    request = _read("has_parent", clause, "parent_type", context)
    spec, name = request.spec, request.name
    scored = clause.flag("score", False)
    clause.done()
    query = parse(request.query, context)
    names = () if spec is None else children_of(spec.options["relations"]).get(name, ())
    if spec is None or not names:
        if spec is not None and not request.ignore_unmapped:
            raise context.failed(f"[has_parent] join field [{spec.path}] doesn't hold [{name}] as a parent")
        return MatchNoneQuery(boost=clause.boost, name=clause.name)
    return HasParentQuery(
        path=spec.path, parent=name, names=names, query=query, scored=scored,
        inner_hits=request.inner_hits, boost=clause.boost, name=clause.name,
    )  # fmt: skip


def _parent_id(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("parent_id", body)
    name, doc_id = str(clause.needed("type")), str(clause.needed("id"))
    ignore = clause.flag("ignore_unmapped", False)
    clause.done()
    context.check_expensive("[joining] queries")
    spec = join_field(context.mapping.match("*"))
    relations = {} if spec is None else children_of(spec.options["relations"])
    if spec is None or not any(name in names for names in relations.values()):
        if not ignore:
            what = (
                "no join field found for index" if spec is None else f"no relation found for child [{name}]"
            )
            raise context.failed(f"[parent_id] {what}")
        return MatchNoneQuery(boost=clause.boost, name=clause.name)
    return BoolQuery(
        must=(KeywordQuery(path=parent_path(spec.path), term=doc_id),),
        filter=(KeywordQuery(path=spec.path, term=name),),
        boost=clause.boost,
        name=clause.name,
    )


PARSERS: dict[str, ClauseParser] = {
    "has_child": _has_child,
    "has_parent": _has_parent,
    "parent_id": _parent_id,
}
