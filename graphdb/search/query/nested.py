"""`nested`: documents by what one of the objects in them matches."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphdb.search.leaf_reader import Bools, Doubles, Leaf, Longs
from graphdb.search.query.clause import Clause, ClauseParser, Parse, QueryContext
from graphdb.search.query.explanation import Explanation, explained, no_match
from graphdb.search.query.ranked import RankedQuery
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.tree import Matches, MatchNoneQuery, Query

__all__ = ["PARSERS", "InnerHits", "NestedQuery", "inner_hits_of", "objects_at"]


def objects_at(leaf: Leaf, path: str) -> Bools:
    """The nested objects at a path."""
    segment = leaf.segment
    if segment.nested_path is None or path not in segment.nested_paths:
        return np.zeros(segment.size, dtype=np.bool_)
    return np.asarray(segment.nested_path == list(segment.nested_paths).index(path))


@dataclass(frozen=True, kw_only=True)
class NestedQuery(Query):
    """Joins the objects at path that a query matches to what they are in: documents, or objects at above.

    inner_hits is what the request says there, for the result that shows the objects; None: nothing. shown:
    what the objects that are shown match, where it is not the query: all that the query finds a few of.
    """

    path: str
    query: Query
    score_mode: str = "avg"
    above: str | None = None
    inner_hits: "InnerHits | None" = None
    shown: Query | None = None

    def found(self, leaf: Leaf, searcher: Searcher) -> Longs:
        """The objects that match, ascending."""
        return np.flatnonzero(self.query.mask(leaf, searcher) & objects_at(leaf, self.path) & leaf.live)

    def parents(self, leaf: Leaf, objects: Longs) -> Longs:
        """What each of them is in."""
        segment = leaf.segment
        assert segment.parents is not None
        roots = np.asarray(segment.parents < 0)
        there = roots if self.above is None else objects_at(leaf, self.above)
        result = segment.parents[objects].astype(np.int64)
        while not (arrived := there[result]).all():
            result[~arrived] = segment.parents[result[~arrived]]
        return result

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        size = leaf.segment.size
        objects = self.found(leaf, searcher)
        if not len(objects):
            return Matches(np.zeros(size, dtype=np.bool_))
        parents = self.parents(leaf, objects)
        counts = np.bincount(parents, minlength=size)
        if self.score_mode == "none":
            return Matches(counts > 0, None, 0.0)
        scores = self.query.matches(leaf, searcher, boost * self.boost).dense()[objects]
        joined: Doubles = np.zeros(size, dtype=np.float64)
        if self.score_mode == "max":
            np.maximum.at(joined, parents, scores)
        elif self.score_mode == "min":
            joined[parents] = np.inf
            np.minimum.at(joined, parents, scores)
        else:
            joined = np.bincount(parents, weights=scores, minlength=size).astype(np.float64)
            if self.score_mode == "avg":
                joined /= np.maximum(counts, 1)
        return Matches(counts > 0, joined.astype(np.float32))

    def children(self) -> tuple[Query, ...]:
        return (self.query,)

    def explain(self, leaf: Leaf, doc: int, searcher: Searcher, boost: float = 1.0) -> Explanation:
        objects = self.found(leaf, searcher)
        inside = objects[self.parents(leaf, objects) == doc] if len(objects) else objects
        if not len(inside):
            return no_match("Not a match")
        value = float(self.matches(leaf, searcher, boost).dense()[doc])
        best = [self.query.explain(leaf, int(inner), searcher, boost * self.boost) for inner in inside[:1]]
        first, last = leaf.shown_number(int(inside[0])), leaf.shown_number(int(inside[-1]))
        text = f"Score based on {len(inside)} child docs in range from {first} to {last}, using "
        return explained(value, f"{text}score mode {self.score_mode.capitalize()}", best)

    def text(self) -> str:
        return f"ToParentBlockJoinQuery ({self.query})"


@dataclass(frozen=True, slots=True)
class InnerHits:
    """What a request wants to see of the objects or related documents that match. members: of the body.

    Members are sorted pairs, so that it can be compared; values are as in the JSON.
    """

    name: str
    members: tuple[tuple[str, Any], ...]

    def __hash__(self) -> int:
        return hash(self.name)


def inner_hits_of(wanted: Any, name: str) -> InnerHits | None:
    """name: for those that give none."""
    if not isinstance(wanted, Mapping):
        return None
    return InnerHits(str(wanted.get("name", name)), tuple(sorted(wanted.items())))


def _nested(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    clause = Clause("nested", body)
    path, inner = clause.needed("path"), clause.needed("query")
    score_mode = clause.choice("score_mode", "avg", ("avg", "max", "min", "none", "sum"))
    ignore = clause.flag("ignore_unmapped", False)
    wanted = clause.take("inner_hits")
    clause.done()
    context.check_expensive("[joining] queries")
    path = str(path)
    spec = context.mapping.field(path)
    if spec is None or spec.type != "nested":
        if ignore:
            return MatchNoneQuery(boost=clause.boost, name=clause.name)
        if spec is not None:
            raise context.failed(f"[nested] nested object under path [{path}] is not of nested type")
        raise context.failed(f"[nested] failed to find nested object under path [{path}]")
    query = parse(inner, context.within(path))
    shown = None
    if isinstance(wanted, Mapping) and any(isinstance(node, RankedQuery) for node in query.nodes):
        shown = parse(inner, replace(context.within(path), exact_vectors=True))
    return NestedQuery(
        path=path,
        query=query,
        score_mode=score_mode,
        above=context.nested_path,
        inner_hits=inner_hits_of(wanted, path),
        shown=shown,
        boost=clause.boost,
        name=clause.name,
    )


PARSERS: dict[str, ClauseParser] = {"nested": _nested}
