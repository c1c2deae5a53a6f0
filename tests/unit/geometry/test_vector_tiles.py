"""Shapes as features of map tiles."""

import math
from itertools import pairwise
from typing import Any

import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from graphdb.geometry.vector_tiles import Feature, Layer, Tile, tile_bytes
from tests.support.vector_tiles import read_tile

WORLD = Tile(0, 0, 0, 4096, 5)
AMSTERDAM = Tile(13, 4207, 2692, 4096, 5)


def drawn(tile: Tile, *shapes: str) -> list[tuple[int, list[list[tuple[int, int]]]]]:
    """The features of shapes in WKT, as they are read again: kind and rings."""
    features = tile.features([shapely.from_wkt(text) for text in shapes], {})
    layers = read_tile(tile_bytes([Layer("l", tile.extent, features)]))
    return [(kind, rings) for kind, rings, _ in layers["l"]["features"]] if layers else []


def test_the_world_is_one_tile() -> None:
    assert WORLD.degrees == pytest.approx((-180, -85.0511287798066, 180, 85.0511287798066))
    assert drawn(WORLD, "POINT (0 0)") == [(1, [[(2048, 2048)]])]
    assert drawn(WORLD, "POINT (-180 85.0511287798066)") == [(1, [[(0, 0)]])]
    assert drawn(WORLD, "POINT (180 -85.0511287798066)") == [(1, [[(4096, 4096)]])]


def test_a_place_in_a_small_tile() -> None:
    assert drawn(AMSTERDAM, "POINT (4.912350 52.374081)") == [(1, [[(3208, 232)]])]


@given(st.integers(0, 12), st.floats(-179.9, 179.9), st.floats(-85, 85))
def test_a_point_is_in_its_tile_at_its_place(zoom: int, longitude: float, latitude: float) -> None:
    count = 2**zoom
    across = (longitude + 180) / 360 * count
    down = (1 - math.asinh(math.tan(math.radians(latitude))) / math.pi) / 2 * count
    tile = Tile(zoom, math.floor(across), math.floor(down), 4096, 0)
    ((kind, (((x, y),),)),) = drawn(tile, f"POINT ({longitude!r} {latitude!r})")
    assert kind == 1
    assert x == pytest.approx((across - tile.x) * 4096, abs=0.51)
    assert y == pytest.approx((down - tile.y) * 4096, abs=0.51)
    west, south, east, north = tile.degrees
    assert west - 1e-9 <= longitude <= east + 1e-9
    assert south - 1e-9 <= latitude <= north + 1e-9


def test_what_is_outside_is_left_out_and_the_buffer_is_not() -> None:
    near = Tile(1, 0, 0, 4096, 5)
    step = 180 / 4096  # degrees of longitude in a unit of this tile
    assert drawn(near, "POINT (60 10)") == []
    assert drawn(near, f"POINT ({4 * step} 10)")[0][1][0][0][0] == 4100
    assert drawn(near, f"POINT ({7 * step} 10)") == []
    assert drawn(near, f"MULTIPOINT ((-90 10), ({7 * step} 10), (-45 10))")[0][1] == [
        [(2048, 3867)],
        [(3072, 3867)],
    ]


def test_polygons_are_cut_off_and_turn_right() -> None:
    ((kind, (ring,)),) = drawn(Tile(1, 0, 0, 4096, 0), "POLYGON ((-90 -60, -90 40, 90 40, 90 -60, -90 -60))")
    assert kind == 3
    assert set(ring) == {(2048, 3101), (4096, 3101), (4096, 4096), (2048, 4096)}
    assert ring[0] == ring[-1]
    assert area(ring) > 0


def test_holes_turn_left_and_what_has_no_area_is_left_out() -> None:
    outer, hole = "(0 0, 0 40, 40 40, 40 0, 0 0)", "(10 10, 10 20, 20 20, 20 10, 10 10)"
    ((_, rings),) = drawn(WORLD, f"POLYGON ({outer}, {hole})")
    assert [area(ring) > 0 for ring in rings] == [True, False]
    ((_, rings),) = drawn(WORLD, f"POLYGON ({outer}, (10 10, 10 10.001, 10.001 10.001, 10 10))")
    assert len(rings) == 1
    assert drawn(WORLD, "POLYGON ((10 10, 10 10.001, 10.001 10.001, 10 10))") == []


def test_lines_in_parts_and_kinds_apart() -> None:
    across = "LINESTRING (-100 5, 100 5, 100 10, -100 10)"
    features = drawn(Tile(1, 0, 0, 4096, 0), across, "POINT (-90 0)", "POINT (-45 0)")
    assert [kind for kind, _ in features] == [1, 2]
    assert len(features[0][1]) == 2
    assert [len(line) for line in features[1][1]] == [2, 2]
    assert drawn(WORLD, "LINESTRING (10 10, 10.001 10.001)") == []


def test_properties_keep_their_types_and_are_written_once() -> None:
    properties: list[dict[str, Any]] = [{"a": 1, "b": True, "c": 1.0, "d": "x", "e": -5}, {"a": 1, "d": "é"}]
    features = [Feature(1, [9, 2, 2], one) for one in properties]
    tile = tile_bytes([Layer("hits", 256, features), Layer("empty", 256, [])])
    layers = read_tile(tile)
    assert layers.keys() == {"hits"}
    assert (layers["hits"]["version"], layers["hits"]["extent"]) == (2, 256)
    found = [one for *_, one in layers["hits"]["features"]]
    assert found == properties
    assert [list(map(type, one.values())) for one in found] == [
        [int, bool, float, str, int],
        [int, str],
    ]
    assert tile.count(b"\x1a\x01a") == 1


def area(ring: list[tuple[int, int]]) -> int:
    return sum(x * v - u * y for (x, y), (u, v) in pairwise(ring))
