"""`geo_shape`: boxes and points on a grid, compared cell by cell."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphdb.search.errors import SearchError
from graphdb.search.query import parse_query
from graphdb.search.segments.visible_segment import VisibleSegment
from tests.unit.search.results.index import Index

Box = tuple[int, int, int, int]  # west, south, east, north

FIELDS = {"s": {"type": "geo_shape"}, "p": {"type": "geo_point"}}
SIDES = st.tuples(st.integers(-3, 3), st.integers(1, 3))
BOXES = st.builds(lambda x, y: (x[0], y[0], x[0] + x[1], y[0] + y[1]), SIDES, SIDES)
POINTS = st.tuples(st.integers(-3, 4), st.integers(-3, 4))
RELATIONS = ("intersects", "disjoint", "within", "contains")


def as_json(box: Box, kind: int) -> Any:
    west, south, east, north = box
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return [
        {"type": "envelope", "coordinates": [[west, north], [east, south]]},
        {"type": "Polygon", "coordinates": [ring]},
        f"POLYGON (({', '.join(f'{x} {y}' for x, y in ring)}))",
        f"BBOX ({west}, {east}, {north}, {south})",
        {"type": "geometrycollection", "geometries": [{"type": "multipolygon", "coordinates": [[ring]]}]},
    ][kind]


def cells(box: Box) -> set[tuple[int, int]]:
    return {(x, y) for x in range(box[0], box[2]) for y in range(box[1], box[3])}


def meet(one: Box, other: Box) -> bool:
    return one[0] <= other[2] and other[0] <= one[2] and one[1] <= other[3] and other[1] <= one[3]


def related(own: list[Box], asked: Box, relation: str) -> bool:
    """own: the boxes of one document, at least one."""
    if relation == "within":
        return all(cells(box) <= cells(asked) for box in own)
    if relation == "contains":
        return cells(asked) <= set().union(*map(cells, own))
    return any(meet(box, asked) for box in own) == (relation == "intersects")


@settings(max_examples=40, deadline=None)
@example([([(0, 0, 1, 1), (0, 0, 1, 2)], [])], (0, 0, 1, 2), [0] * 15, set())
@given(
    st.lists(st.tuples(st.lists(BOXES, max_size=2), st.lists(POINTS, max_size=2)), max_size=7),
    BOXES,
    st.lists(st.integers(0, 4), min_size=15, max_size=15),
    st.sets(st.integers(0, 6)),
)
def test_boxes_and_points(
    docs: list[tuple[list[Box], list[tuple[int, int]]]], asked: Box, kinds: list[int], hidden: set[int]
) -> None:
    given_as = iter(kinds)
    written = []
    for boxes, points in docs:
        shapes = [as_json(box, next(given_as)) for box in boxes]
        written.append({"s": shapes, "p": [{"lat": y, "lon": x} for x, y in points]})
    index = Index(FIELDS, written)
    shape = as_json(asked, next(given_as))
    for relation in RELATIONS:
        query = {"geo_shape": {"s": {"shape": shape, "relation": relation}}}
        expected = [n for n, (boxes, _) in enumerate(docs) if boxes and related(boxes, asked, relation)]
        assert [int(one) for one in index.ids(query=query)] == expected, relation
        parsed, visible = parse_query(query, index.context), []
        for leaf in index.searcher.leaves:
            live = np.array([leaf.base + doc not in hidden for doc in range(leaf.segment.size)], np.bool_)
            part = replace(leaf, segment=VisibleSegment(leaf.segment, live), live=live)  # type: ignore[arg-type]
            mask = parsed.mask(part, index.searcher) & live
            visible += [leaf.base + doc for doc in np.flatnonzero(mask).tolist()]
        assert visible == [number for number in expected if number not in hidden]
    inside = [
        [asked[0] <= x <= asked[2] and asked[1] <= y <= asked[3] for x, y in points] for _, points in docs
    ]
    wanted = {
        "intersects": [any(one) for one in inside],
        "disjoint": [bool(one) and not any(one) for one in inside],
        "within": [bool(one) and all(one) for one in inside],
        "contains": [False for one in inside],
    }
    for relation, matching in wanted.items():
        found = index.ids(query={"geo_shape": {"p": {"shape": shape, "relation": relation}}})
        assert [int(one) for one in found] == np.flatnonzero(matching).tolist(), relation
    corners = {"left": asked[0], "bottom": asked[1], "right": asked[2], "top": asked[3]}
    found = index.ids(query={"geo_bounding_box": {"s": corners}})
    assert [int(one) for one in found] == [
        n for n, (boxes, _) in enumerate(docs) if boxes and related(boxes, asked, "intersects")
    ]


def test_shapes_across_the_date_line() -> None:
    index = Index(FIELDS, [{"s": "LINESTRING (170 0, 190 0)"}, {"s": "POINT (175 0)"}, {"s": "POINT (0 0)"}])
    for shape in (
        {"type": "envelope", "coordinates": [[172, 1], [-172, -1]]},
        "POLYGON ((172 -1, 188 -1, 188 1, 172 1, 172 -1))",
        "POLYGON ((-188 -1, -172 -1, -172 1, -188 1, -188 -1))",
    ):
        assert index.ids(query={"geo_shape": {"s": {"shape": shape}}}) == ["0", "1"]
        assert index.ids(query={"geo_shape": {"s": {"shape": shape, "relation": "within"}}}) == ["1"]
    (hit,) = index.hits(query={"term": {"_id": "1"}}, fields=["s", {"field": "s", "format": "wkt"}])
    assert hit["fields"]["s"] == ["POINT (175 0)"]


def test_a_shape_of_another_document() -> None:
    index = Index(FIELDS, [{"s": "POINT (1 1)"}, {"s": "POINT (5 5)"}])
    shapes = {("shapes", "a", "area", None): [as_json((0, 0, 2, 2), 0)]}
    index.context = replace(index.context, terms_lookup=lambda *key: shapes.get(key, []))
    body = {"indexed_shape": {"id": "a", "path": "area"}}
    assert index.ids(query={"geo_shape": {"s": body}}) == ["0"]
    with pytest.raises(SearchError, match="not found"):
        index.ids(query={"geo_shape": {"s": {"indexed_shape": {"id": "b"}}}})


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        (5, "must be an object"),
        ({"type": "circle", "coordinates": [0, 0], "radius": "1m"}, "unknown geometry type: circle"),
        ({"type": "polygon", "coordinates": [[[0, 0], [2, 2], [2, 0], [0, 2], [0, 0]]]}, "not valid"),
        ({"type": "point", "coordinates": [0, 91]}, "within 90 degrees"),
        ({"type": "point", "coordinates": ["x", 0]}, "two numbers"),
        ({"type": "point"}, "arrays of arrays"),
        ({"type": "envelope", "coordinates": [[0, 0]]}, "two corners"),
        ({"type": "envelope", "coordinates": [[0, 0], [1, 1]]}, "top is below bottom"),
        ("POINT EMPTY", "must not be empty"),
        ("POINT (1 NaN)", "within|empty|valid"),
        ("CIRCLE (1 1)", "malformed WKT"),
        ("BBOX (1, 2)", "four numbers"),
        ("GEOMETRYCOLLECTION (" * 60 + ")" * 60, "nested"),
        ({"type": "multipoint", "coordinates": [[0, 0]] * 100_001}, "at most 100000"),
    ],
)
def test_shapes_that_are_refused(shape: Any, reason: str) -> None:
    with pytest.raises(SearchError) as raised:
        Index(FIELDS, [{"s": shape}])
    assert raised.value.cause is not None
    with pytest.raises(SearchError, match=reason):
        raise raised.value.cause
    with pytest.raises(SearchError, match=reason):
        Index(FIELDS, []).ids(query={"geo_shape": {"s": {"shape": shape}}})
    fields = {"s": {"type": "geo_shape", "ignore_malformed": True}}
    (hit,) = Index(fields, [{"s": shape}]).hits()
    assert hit["_ignored"] == ["s"]
