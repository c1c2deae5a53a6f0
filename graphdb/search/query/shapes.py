"""`geo_shape`: documents by how their shapes, or points, lie to a shape.

The bounding boxes of a segment's shapes are kept with it. Only shapes whose boxes fit are read and compared.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from graphdb.search.deadline import checkpoint
from graphdb.search.errors import SearchError, illegal_argument, illegal_request
from graphdb.search.fields import Storage
from graphdb.search.leaf_reader import Bools, Doubles, Leaf, Longs, TermDictionary
from graphdb.search.mapping.shapes import shape_of
from graphdb.search.query.clause import Clause, ClauseParser, Parse, QueryContext, malformed
from graphdb.search.query.dictionary_queries import DictionaryQuery
from graphdb.search.query.searcher import Searcher
from graphdb.search.query.tree import Matches, MatchNoneQuery, Query, boosted

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

__all__ = ["PARSERS", "ShapeQuery", "on_shapes"]

_RELATIONS = ("intersects", "disjoint", "within", "contains")
_CHUNK = 1_000  # shapes that are read, and compared, before the time is looked at


def _shape(wkb: str) -> "BaseGeometry":
    import shapely

    shape = shapely.from_wkb(wkb)
    shapely.prepare(shape)
    return shape


@dataclass(frozen=True, kw_only=True)
class ShapeQuery(DictionaryQuery):
    """Documents whose shapes together intersect a shape (hexadecimal WKB), are within it, or contain it."""

    is_late: ClassVar[bool] = True  # a comparison takes as long as the shapes are large

    wkb: str
    relation: str

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        if self.relation != "disjoint":
            return super().mask(leaf, searcher)
        meeting = ShapeQuery(path=self.path, wkb=self.wkb, relation="intersects").mask(leaf, searcher)
        return leaf.segment.having(self.path) & ~meeting

    def chosen(self, leaf: Leaf, dictionary: TermDictionary, searcher: Searcher) -> Longs:
        import shapely

        asked = searcher.keep(("shape", self.wkb), partial(_shape, self.wkb))
        near = np.flatnonzero(self._boxes_fit(self._boxes(leaf, dictionary, searcher), shapely.bounds(asked)))
        # Not `covered_by` for the last: it says no of a collection whose members overlap (GEOS 3.14).
        comparisons: dict[str, Callable[[Any], Any]] = {
            "intersects": partial(shapely.intersects, asked),
            "within": partial(shapely.covers, asked),
            "contains": lambda shapes: shapely.covers(shapes, asked),
        }
        compare = comparisons[self.relation]
        found = [np.empty(0, np.int64)]
        for start in range(0, len(near), _CHUNK):
            checkpoint()
            part = near[start : start + _CHUNK]
            shapes = shapely.from_wkb([dictionary.term(number) for number in part.tolist()])
            found.append(part[np.asarray(compare(shapes), np.bool_)])
        return np.concatenate(found)

    def _boxes_fit(self, boxes: Doubles, asked: Doubles) -> Bools:
        west, south, east, north = boxes.T
        if self.relation == "within":
            fits = (west >= asked[0]) & (south >= asked[1]) & (east <= asked[2]) & (north <= asked[3])
        elif self.relation == "contains":
            fits = (west <= asked[0]) & (south <= asked[1]) & (east >= asked[2]) & (north >= asked[3])
        else:
            fits = (west <= asked[2]) & (south <= asked[3]) & (east >= asked[0]) & (north >= asked[1])
        return np.asarray(fits)

    def _boxes(self, leaf: Leaf, dictionary: TermDictionary, searcher: Searcher) -> Doubles:
        """Kept with the segment; with the searcher where the segment's terms depend on who asks."""
        segment, key = leaf.segment, ("shape boxes", self.path)
        if segment.live_only:
            return searcher.keep_of(leaf, key, partial(_boxes, dictionary))
        if key not in segment.derived:
            segment.derived[key] = _boxes(dictionary)
        boxes: Doubles = segment.derived[key]
        return boxes

    def text(self) -> str:
        return f"{self.path}:{self.relation}({self.wkb[:80]})"


def _boxes(dictionary: TermDictionary) -> Doubles:
    """(n, 4): west, south, east, north of each shape."""
    import shapely

    boxes = np.empty((len(dictionary), 4))
    for start in range(0, len(dictionary), _CHUNK):
        checkpoint()
        stop = min(start + _CHUNK, len(dictionary))
        boxes[start:stop] = shapely.bounds(shapely.from_wkb(list(dictionary.terms(start, stop))))
    return boxes


@dataclass(frozen=True, kw_only=True)
class PointsInShapeQuery(Query):
    """The same of a field of points: within and contains are said of all points of a document."""

    path: str
    wkb: str
    relation: str

    def matches(self, leaf: Leaf, searcher: Searcher, boost: float = 1.0) -> Matches:
        return Matches(self.mask(leaf, searcher), None, boost * self.boost)

    def mask(self, leaf: Leaf, searcher: Searcher) -> Bools:
        import shapely

        column = leaf.segment.points(self.path)
        if column is None:
            return np.zeros(leaf.segment.size, np.bool_)
        asked = searcher.keep(("shape", self.wkb), partial(_shape, self.wkb))
        counts = np.diff(column.starts)
        inside = np.zeros(len(column.longitudes), np.bool_)
        for start in range(0, len(inside), 100 * _CHUNK):
            checkpoint()
            part = slice(start, start + 100 * _CHUNK)
            inside[part] = shapely.intersects_xy(asked, column.longitudes[part], column.latitudes[part])
        before = np.concatenate(([0], np.cumsum(inside)))
        among = before[column.starts[1:]] - before[column.starts[:-1]]
        if self.relation == "disjoint":
            return np.asarray((counts > 0) & (among == 0))
        if self.relation == "within":
            return np.asarray((counts > 0) & (among == counts))
        if self.relation == "contains" and asked.geom_type != "Point":
            return np.zeros(leaf.segment.size, np.bool_)
        return np.asarray(among > 0)

    def text(self) -> str:
        return f"{self.path}:{self.relation}({self.wkb[:80]})"


def on_shapes(path: str, shape: "BaseGeometry", relation: str, is_shape: bool) -> Query:
    """The query for a shape on one field, of shapes or of points."""
    import shapely

    wkb = str(shapely.to_wkb(shape, hex=True))
    if is_shape:
        return ShapeQuery(path=path, wkb=wkb, relation=relation)
    return PointsInShapeQuery(path=path, wkb=wkb, relation=relation)


def _geo_shape(body: Mapping[str, Any], context: QueryContext, parse: Parse) -> Query:
    fields = [name for name in body if name not in ("ignore_unmapped", "boost", "_name")]
    if len(fields) != 1:
        raise malformed("[geo_shape] query takes one field")
    path, given = fields[0], body[fields[0]]
    clause = Clause("geo_shape", {name: value for name, value in body.items() if name != path})
    ignore = clause.flag("ignore_unmapped", False)
    clause.done()
    if not isinstance(given, Mapping):
        raise malformed(f"[geo_shape] query malformed, no start_object after field [{path}]")
    inner = Clause("geo_shape", given)
    relation = inner.word("relation", "intersects").lower()
    shape, indexed = inner.take("shape"), inner.take("indexed_shape")
    inner.ignore("strategy")
    inner.done()
    if relation not in _RELATIONS:
        raise illegal_argument(f"Unknown relation [{relation}], known are [{', '.join(_RELATIONS)}]")
    if (shape is None) == (indexed is None):
        raise illegal_request("No shape defined: give [shape] or [indexed_shape]")
    if indexed is not None:
        shape = _looked_up(indexed, context)
    try:
        asked = shape_of(shape)
    except SearchError as error:
        raise malformed(f"failed to parse [geo_shape] of [{path}]: {error.reason}") from None
    spec = context.mapping.field(path)
    if spec is None:
        if not ignore:
            raise context.failed(f"failed to find type for field [{path}]")
        return MatchNoneQuery(boost=clause.boost, name=clause.name)
    if spec.type != "geo_shape" and spec.storage is not Storage.POINTS:
        raise context.failed(f"Field [{path}] is of unsupported type [{spec.type}] for [geo_shape] query")
    query = on_shapes(spec.path, asked, relation, spec.type == "geo_shape")
    return boosted(query, clause.boost, clause.name)


def _looked_up(given: Any, context: QueryContext) -> Any:
    """The shape that another document has at a path."""
    if not isinstance(given, Mapping):
        raise malformed("[indexed_shape] must be an object")
    clause = Clause("geo_shape", given)
    index, doc_id = clause.word("index", "shapes"), clause.string("id")
    path, routing = clause.word("path", "shape"), clause.string("routing")
    clause.done()
    if doc_id is None:
        raise illegal_request("ID for indexed shape not provided")
    if context.terms_lookup is None:
        raise illegal_request("[indexed_shape] is not supported here")
    found = list(context.terms_lookup(index, doc_id, path, routing))
    if not found:
        raise illegal_argument(f"Shape with ID [{doc_id}] not found, or without [{path}]")
    return found[0]


PARSERS: dict[str, ClauseParser] = {"geo_shape": _geo_shape}
