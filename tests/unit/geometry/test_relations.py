"""Relations between geometries: each with a pair that it holds for, and what the dimensions do to it."""

import pytest

from graphdb.errors import InvalidParameter
from graphdb.geometry.relations import RELATIONS, relate
from tests.unit.geometry.conftest import wkt

SQUARE = "POLYGON((0 0,4 0,4 4,0 4,0 0))"
CORNER = "POLYGON((0 0,2 0,2 2,0 2,0 0))"  # in the square, at its boundary
INNER = "POLYGON((1 1,3 1,3 3,1 3,1 1))"  # in the square, off its boundary
BESIDE = "POLYGON((4 0,6 0,6 4,4 4,4 0))"
ACROSS = "POLYGON((2 2,6 2,6 6,2 6,2 2))"
FAR = "POLYGON((9 9,10 9,10 10,9 10,9 9))"
PAIRS = {
    "eq": (SQUARE, "POLYGON((4 4,0 4,0 0,4 0,4 4))"),
    "apart": (SQUARE, FAR),
    "meet": (SQUARE, BESIDE),
    "overlap": (SQUARE, ACROSS),
    "covers": (SQUARE, CORNER),
    "covered": (CORNER, SQUARE),
    "contains": (SQUARE, INNER),
    "inside": (INNER, SQUARE),
}
HOLDS: dict[str, set[str]] = {
    "sfEquals": {"eq"},
    "sfDisjoint": {"apart"},
    "sfIntersects": set(PAIRS) - {"apart"},
    "sfTouches": {"meet"},
    "sfCrosses": set(),
    "sfWithin": {"eq", "covered", "inside"},
    "sfContains": {"eq", "covers", "contains"},
    "sfOverlaps": {"overlap"},
    "ehEquals": {"eq"},
    "ehDisjoint": {"apart"},
    "ehMeet": {"meet"},
    "ehOverlap": {"overlap"},
    "ehCovers": {"covers"},
    "ehCoveredBy": {"covered"},
    "ehContains": {"contains"},
    "ehInside": {"inside"},
    "rcc8eq": {"eq"},
    "rcc8dc": {"apart"},
    "rcc8ec": {"meet"},
    "rcc8po": {"overlap"},
    "rcc8tppi": {"covers"},
    "rcc8tpp": {"covered"},
    "rcc8ntppi": {"contains"},
    "rcc8ntpp": {"inside"},
}


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", RELATIONS)
def test_relations_of_regions(name: str, pair: str) -> None:
    one, other = map(wkt, PAIRS[pair])
    assert RELATIONS[name](one, other) == (pair in HOLDS[name])


@pytest.mark.parametrize(
    ("name", "one", "other", "holds"),
    [
        ("sfEquals", "POINT(1 1)", "POINT(1 1)", True),
        ("ehEquals", "POINT(1 1)", "POINT(1 1)", True),
        ("sfEquals", "LINESTRING(0 0,1 1,2 2)", "LINESTRING(2 2,0 0)", True),
        ("sfEquals", "POINT EMPTY", "LINESTRING EMPTY", True),
        ("sfDisjoint", "POINT EMPTY", SQUARE, True),
        ("sfIntersects", "POINT EMPTY", SQUARE, False),
        ("sfCrosses", "LINESTRING(-1 2,5 2)", SQUARE, True),
        ("sfCrosses", "LINESTRING(0 0,2 2)", "LINESTRING(0 2,2 0)", True),
        ("sfCrosses", "MULTIPOINT(1 1,9 9)", SQUARE, True),
        ("sfOverlaps", "LINESTRING(0 0,2 0)", "LINESTRING(1 0,3 0)", True),
        ("sfOverlaps", "LINESTRING(0 0,2 2)", "LINESTRING(0 2,2 0)", False),
        ("sfTouches", "LINESTRING(4 0,9 0)", SQUARE, True),
        ("sfTouches", "POINT(0 0)", "POINT(0 0)", False),
        ("sfWithin", "POINT(0 0)", SQUARE, False),
        ("ehInside", "POINT(1 1)", SQUARE, True),
        ("ehContains", SQUARE, "LINESTRING(1 1,2 2)", True),
        ("ehMeet", "POINT(0 0)", SQUARE, True),
        ("ehCovers", SQUARE, "LINESTRING(0 0,2 2)", True),
        ("ehCovers", SQUARE, "POINT(1 1)", False),  # a point has no boundary that could be common
        ("ehOverlap", "LINESTRING(-1 2,5 2)", SQUARE, True),
        ("rcc8dc", "POINT(9 9)", SQUARE, False),  # RCC8 speaks of regions
        ("rcc8ntpp", "POINT(1 1)", SQUARE, False),
        ("rcc8eq", "POINT(1 1)", "POINT(1 1)", False),
        ("sfIntersects", "GEOMETRYCOLLECTION(POINT(9 9),LINESTRING(1 1,2 2))", SQUARE, True),
        ("sfContains", "GEOMETRYCOLLECTION(POINT(9 9),POLYGON((0 0,4 0,4 4,0 0)))", "POINT(3 1)", True),
    ],
)
def test_relations_of_other_dimensions(name: str, one: str, other: str, holds: bool) -> None:
    assert RELATIONS[name](wkt(one), wkt(other)) is holds


def test_the_second_is_looked_at_in_the_system_of_the_first() -> None:
    square = wkt("POLYGON((0 10,4 10,4 14,0 14,0 10))")
    assert RELATIONS["sfWithin"](wkt("POINT(12 2)", 4326), square)
    assert RELATIONS["sfContains"](square, wkt("POINT(222638.98 1345708.41)", 3857))


@pytest.mark.parametrize(
    ("pattern", "holds"),
    [("T*****FF*", True), ("t*****ff*", True), ("2FF1FF212", False), ("212FF1FF2", True)],
)
def test_relate(pattern: str, holds: bool) -> None:
    assert relate(wkt(SQUARE), wkt(INNER), pattern) is holds


@pytest.mark.parametrize("pattern", ["", "T", "TTTTTTTTTT", "T*****FFX", "T*****FF3"])
def test_no_patterns(pattern: str) -> None:
    with pytest.raises(InvalidParameter, match="pattern"):
        relate(wkt(SQUARE), wkt(INNER), pattern)
