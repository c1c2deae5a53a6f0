"""What calls cost, told from texts: what may be slow is never taken for short."""

import pytest

from graphdb.geo.call_costs import CallCosts, characters_to_read, vertices_of
from graphdb.sparql.parser import parse_query

PREFIXES = (
    "PREFIX : <urn:> PREFIX geo: <http://www.opengis.net/ont/geosparql#>"
    " PREFIX geof: <http://www.opengis.net/def/function/geosparql/> "
)


def square(vertices: int) -> str:
    return f"POLYGON(({'0 0, ' * (vertices - 1)}0 0))"


def costs(expression: str) -> CallCosts:
    found = CallCosts()
    found.count(parse_query(f"{PREFIXES} SELECT * {{ ?g geo:asWKT ?w FILTER({expression}) }}").where)
    return found


@pytest.mark.parametrize(
    ("text", "vertices"),
    [
        ("POINT(1 1)", 1),
        ("POLYGON((0 0, 1 0, 1 1, 0 0))", 4),
        ("<http://www.opengis.net/def/crs/EPSG/0/4326> LINESTRING(1 1, 2 2)", 2),
        ('{"type": "Point", "coordinates": [1, 2]}', 3),
        ("no geometry", 1),
        ("CIRCULARSTRING(0 0, 1 1, 2 0)", None),
        ("CurvePolygon((0 0, 1 1, 2 0))", None),
        ("<http://www.opengis.net/def/crs/EPSG/0/27700> POINT(1 1)", None),
        ("<gml:Point xmlns:gml='http://www.opengis.net/gml'><gml:pos>1 1</gml:pos></gml:Point>", None),
    ],
)
def test_vertices(text: str, vertices: int | None) -> None:
    assert vertices_of(text) == vertices


def test_curves_are_longer_than_they_look() -> None:
    assert characters_to_read("LINESTRING(0 0, 1 1)") == 20
    assert characters_to_read("CIRCULARSTRING(0 0, 1 1, 2 2)") > 400


def test_pairs_of_vertices_count() -> None:
    polygon = f'geof:sfWithin(?w, "{square(100)}"^^geo:wktLiteral)'
    beside_points, beside_lines = costs(polygon).for_each(1), costs(polygon).for_each(100)
    assert beside_points is not None
    assert beside_lines is not None
    assert beside_points < 30
    assert beside_lines > 4_000
    both = costs(f"{polygon} && {polygon}").for_each(1)
    assert both is not None
    assert both > 8_000  # they might be compared with each other


def test_distances_are_between_points() -> None:
    distance = costs('geof:metricDistance(?w, "POINT(1 1)"^^geo:wktLiteral) < 10')
    assert distance.for_each(1) is not None
    assert distance.for_each(2) is None
    assert costs('geof:metricDistance(?w, "LINESTRING(1 1, 2 2)"^^geo:wktLiteral) < 10').for_each(1) is None


@pytest.mark.parametrize(
    "constant",
    [
        '"CIRCULARSTRING(0 0, 1 1, 2 0)"^^geo:wktLiteral',
        'STRDT("circularstring(0 0, 1 1, 2 0)", geo:wktLiteral)',
        '"<http://www.opengis.net/def/crs/EPSG/0/27700> POINT(1 1)"^^geo:wktLiteral',
    ],
)
def test_slow_constants(constant: str) -> None:
    assert costs(f"geof:sfWithin(?w, {constant})").for_each(1) is None


def test_nothing_is_called() -> None:
    assert not costs("?w = 1")
    assert costs("geof:isEmpty(?w)")
