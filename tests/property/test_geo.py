"""Relations against the engine's own and the standard's tables, measures against samples and PROJ."""

import math
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, QuerySolutions, Store
from pyproj import Geod
from shapely.geometry.base import BaseGeometry

from graphdb.errors import RequestError
from graphdb.geometry import buffers, measures
from graphdb.geometry.calls import IMPLEMENTATIONS
from graphdb.geometry.evaluate import evaluate
from graphdb.geometry.geometry import Geometry, in_system, read_geometry, write_geometry
from graphdb.geometry.geosparql_names import GEOF, SIGNATURES, WKT
from graphdb.geometry.reference_systems import crs84, reference_system
from graphdb.geometry.relations import RELATIONS

WGS84 = Geod(ellps="WGS84")
EPSG = "http://www.opengis.net/def/crs/EPSG/0/"
STORE = Store()

# GeoSPARQL 1.1, tables 5 to 7
STANDARD = {
    "sfEquals": ["TFFFTFFFT"],
    "sfDisjoint": ["FF*FF****"],
    "sfTouches": ["FT*******", "F**T*****", "F***T****"],
    "sfWithin": ["T*F**F***"],
    "sfContains": ["T*****FF*"],
    "ehEquals": ["TFFFTFFFT"],
    "ehDisjoint": ["FF*FF****"],
    "ehMeet": ["FT*******", "F**T*****", "F***T****"],
    "ehOverlap": ["T*T***T**"],
    "ehCovers": ["T*TFT*FF*"],
    "ehCoveredBy": ["TFF*TFT**"],
    "ehInside": ["TFF*FFT**"],
    "ehContains": ["T*TFF*FF*"],
    "rcc8eq": ["TFFFTFFFT"],
    "rcc8dc": ["FFTFFTTTT"],
    "rcc8ec": ["FFTFTTTTT"],
    "rcc8po": ["TTTTTTTTT"],
    "rcc8tppi": ["TTTFTTFFT"],
    "rcc8tpp": ["TFFTTFTTT"],
    "rcc8ntpp": ["TFFTFFTTT"],
    "rcc8ntppi": ["TTTFFTFFT"],
}


def geometry(shape: BaseGeometry) -> Geometry:
    return Geometry(shape, crs84())


def shapes(x: st.SearchStrategy[float], y: st.SearchStrategy[float]) -> st.SearchStrategy[BaseGeometry]:
    """Valid shapes of every kind, few of them large."""
    position = st.tuples(x, y)

    def several(least: int, most: int) -> st.SearchStrategy[list[tuple[float, float]]]:
        return st.lists(position, min_size=least, max_size=most, unique=True)

    points, lines = position.map(shapely.Point), several(2, 4).map(shapely.LineString)
    boxes = st.tuples(position, position).map(lambda corners: shapely.box(*corners[0], *corners[1]))
    surfaces = st.one_of(several(3, 3).map(shapely.Polygon), boxes)
    single = st.one_of(points, lines, surfaces)
    collections = [
        several(1, 3).map(shapely.MultiPoint),
        st.lists(lines, min_size=1, max_size=2).map(shapely.MultiLineString),
        st.lists(surfaces, min_size=2, max_size=2).map(shapely.MultiPolygon),
    ]
    return st.one_of(single, *collections).filter(lambda shape: bool(shape.is_valid))


steps = st.integers(0, 4)
on_a_grid = shapes(steps, steps)
longitudes, latitudes = st.floats(-180, 180), st.floats(-89, 89)


def around(place: tuple[float, float]) -> st.SearchStrategy[BaseGeometry]:
    """Shapes of some degrees."""
    x, y = place
    return shapes(st.floats(x - 3, x + 3), st.floats(max(-90, y - 3), min(90, y + 3)))


on_the_globe = st.tuples(longitudes, latitudes).flatmap(around)


def of_the_engine(name: str, one: BaseGeometry, other: BaseGeometry) -> bool:
    terms = ", ".join(f'"{shape.wkt}"^^<{WKT}>' for shape in (one, other))
    answer = STORE.query(f"SELECT (<{GEOF}{name}>({terms}) AS ?holds) {{}}")
    assert isinstance(answer, QuerySolutions)
    value = next(answer)[0]
    assert isinstance(value, Literal)
    return value.value == "true"


def matches(matrix: str, pattern: str) -> bool:
    allowed = {"*": "F012", "T": "012", "F": "F"}
    return all(cell in allowed[wanted] for cell, wanted in zip(matrix, pattern, strict=True))


@settings(max_examples=150, deadline=None)
@given(on_a_grid, on_a_grid)
def test_simple_features_relations_are_those_of_the_engine(one: BaseGeometry, other: BaseGeometry) -> None:
    # The engine takes the place where a line crosses itself for another, when no float is there.
    assume(one.is_simple and other.is_simple)
    for name in (name for name in RELATIONS if name.startswith("sf")):
        assert RELATIONS[name](geometry(one), geometry(other)) == of_the_engine(name, one, other), name


@settings(max_examples=150, deadline=None)
@given(on_a_grid, on_a_grid)
def test_relations_are_those_of_the_standard(one: BaseGeometry, other: BaseGeometry) -> None:
    matrix = shapely.relate(one, other)
    has_boundaries = not (one.boundary.is_empty or other.boundary.is_empty)
    for name, patterns in STANDARD.items():
        if has_boundaries or not name.endswith("Equals"):
            holds = any(matches(matrix, pattern) for pattern in patterns)
            if name.startswith("rcc8"):  # which speaks of regions
                holds &= shapely.get_dimensions(one) == shapely.get_dimensions(other) == 2
            assert RELATIONS[name](geometry(one), geometry(other)) == holds, name
    assert RELATIONS["sfIntersects"](geometry(one), geometry(other)) != matches(matrix, "FF*FF****")


@settings(max_examples=100, deadline=None)
@given(on_a_grid, on_a_grid)
def test_relations_and_their_converses(one: BaseGeometry, other: BaseGeometry) -> None:
    pairs = [("sfWithin", "sfContains"), ("ehInside", "ehContains"), ("ehCoveredBy", "ehCovers")]
    for name, converse in (*pairs, ("rcc8tpp", "rcc8tppi"), ("rcc8ntpp", "rcc8ntppi")):
        assert RELATIONS[name](geometry(one), geometry(other)) == RELATIONS[converse](
            geometry(other), geometry(one)
        )


def sampled(shape: BaseGeometry) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    vertices: np.ndarray[tuple[int, int], np.dtype[np.float64]]
    vertices = shapely.get_coordinates(shapely.segmentize(shape, max(shape.length / 200, 1e-6)))
    return vertices


@settings(max_examples=60, deadline=None)
@given(on_the_globe, on_the_globe)
def test_distances_against_sampling(one: BaseGeometry, other: BaseGeometry) -> None:
    """What is found is no further than the nearest samples, nor nearer by more than their spacing."""
    assume(not shapely.intersects(one, other))
    distance = measures.metric_distance(geometry(one), geometry(other))
    begin, end = sampled(one), sampled(other)
    pairs = np.indices((len(begin), len(end))).reshape(2, -1)
    nearest = float(np.min(WGS84.inv(*begin[pairs[0]].T, *end[pairs[1]].T)[2]))
    spacing = 112_000 * (one.length + other.length) / 200 + 1e-3
    assert distance <= nearest * (1 + 1e-4) + 1e-3
    if distance or (abs(begin[:, 0]).max() < 180 and abs(end[:, 0]).max() < 180):
        assert distance >= nearest * (1 - 1e-3) - spacing


@settings(max_examples=100, deadline=None)
@given(on_the_globe)
def test_lengths_and_areas_against_proj(shape: BaseGeometry) -> None:
    def of(measure: Callable[[BaseGeometry], float]) -> float:
        polygons = [part for part in shapely.get_parts(shape) if part.geom_type == "Polygon"]
        return sum(abs(measure(shapely.orient_polygons(polygon))) for polygon in polygons)

    area = of(lambda polygon: WGS84.geometry_area_perimeter(polygon)[0])
    assert measures.metric_area(geometry(shape)) == pytest.approx(area, rel=1e-6, abs=1)
    if shape.geom_type.endswith("LineString"):
        assert measures.metric_length(geometry(shape)) == pytest.approx(WGS84.geometry_length(shape))


@settings(max_examples=20, deadline=None)
@given(on_the_globe, st.floats(10, 200_000))
def test_the_rim_of_a_buffer_is_as_far_away_as_its_radius(shape: BaseGeometry, radius: float) -> None:
    west, south, east, north = shape.bounds
    assume(west > -170 and east < 170 and south > -85 and north < 85)
    assume(all(part.area > 1e-3 for part in shapely.get_parts(shape) if part.geom_type == "Polygon"))
    buffered = buffers.metric_buffer(geometry(shape), radius)
    assert buffered.shape.is_valid
    rim = shapely.get_coordinates(shapely.get_rings(shapely.get_parts(buffered.shape)))
    far = [
        measures.metric_distance(geometry(shapely.Point(vertex)), geometry(shape))
        for vertex in rim[:: max(1, len(rim) // 50)]
    ]
    assert np.allclose(far, radius, rtol=3e-3)


@settings(max_examples=100, deadline=None)
@given(on_the_globe, st.sampled_from(["asWKT", "asGML", "asGeoJSON", "asKML"]))
def test_every_notation_keeps_a_geometry(shape: BaseGeometry, name: str) -> None:
    written = IMPLEMENTATIONS[name](geometry(shape))
    assert isinstance(written, Geometry)
    assert shapely.equals_exact(
        read_geometry(write_geometry(written)).shape.normalize(), shape.normalize(), 0
    )


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(st.floats(5, 15), st.floats(45, 55)).flatmap(around), st.sampled_from([3035, 32632, 3857, 4326])
)
def test_another_reference_system_and_back(shape: BaseGeometry, code: int) -> None:
    there = in_system(geometry(shape), reference_system(f"{EPSG}{code}"))
    written = read_geometry(write_geometry(there))
    assert shapely.equals_exact(in_system(written, crs84()).shape, shape, 1e-7)


WORDS = """
POINT LINESTRING POLYGON MULTIPOINT GEOMETRYCOLLECTION CURVEPOLYGON CIRCULARSTRING TIN Z ZM M EMPTY ( ) , 0 1
-1 1e5 180 nan 1e999 <http://www.opengis.net/def/crs/EPSG/0/4326> <EPSG:3857> <gml:Point <gml:pos> </gml:pos>
xmlns:gml="http://www.opengis.net/gml"> </gml:Point> /> {"type":"Point", "coordinates":[ ]} T*F**F*** 3.2
http://www.opengis.net/def/uom/OGC/1.0/metre
"""
words = st.sampled_from(WORDS.split())
whole = on_the_globe.map(lambda shape: shape.wkt)
texts = st.one_of(st.lists(words, max_size=12).map(" ".join), whole, st.text(max_size=20))
utf_8 = texts.filter(lambda text: text.encode(errors="ignore").decode() == text)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(SIGNATURES)), st.lists(utf_8, min_size=1, max_size=3))
def test_whatever_is_asked_is_answered_or_refused(name: str, args: list[str]) -> None:
    with suppress(RequestError):
        result, datatype = evaluate(name, args)
        assert datatype
        assert not isinstance(result, float) or math.isfinite(result)
