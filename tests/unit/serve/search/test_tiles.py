"""`_mvt`: what a search finds, as a vector tile."""

from typing import Any

import httpx
import pytest
from elasticsearch import Elasticsearch

from tests.support.timing import HANG_S
from tests.support.vector_tiles import read_tile
from tests.unit.serve.search.conftest import reason_of
from tests.unit.serve.search.test_mappings import KEYWORD, made

MUSEUMS = [
    {"location": "52.374081,4.912350", "name": "NEMO Science Museum", "price": 1750},
    {"location": "52.369219,4.901618", "name": "Museum Het Rembrandthuis", "price": 1500},
    {"location": "52.371667,4.914722", "name": "Nederlands Scheepvaartmuseum", "price": 1650},
    {"location": "52.371667,4.914722", "name": "Amsterdam Centre for Architecture", "price": 0},
    {"location": "51.0,4.0", "name": "Elsewhere", "price": 1},
]
PATH = "/i/_mvt/location/13/4207/2692"


@pytest.fixture
def museums(http: httpx.Client) -> None:
    properties = {"location": {"type": "geo_point"}, "name": KEYWORD, "price": {"type": "long"}}
    made(http, {"properties": properties}, *MUSEUMS)


def tile(http: httpx.Client, path: str = PATH, **body: Any) -> dict[str, Any]:
    answer = http.post(path, json=body).raise_for_status()
    assert answer.headers["content-type"] == "application/vnd.mapbox-vector-tile"
    layers = read_tile(answer.content)
    assert {layer["version"] for layer in layers.values()} == {2}
    return layers


def features(layer: dict[str, Any], *names: str) -> list[tuple[int, Any, dict[str, Any]]]:
    """With these properties only, all without any."""
    return [
        (kind, rings, {name: value for name, value in one.items() if not names or name in names})
        for kind, rings, one in layer["features"]
    ]


@pytest.mark.usefixtures("museums")
def test_three_layers(http: httpx.Client) -> None:
    aggs = {"low": {"min": {"field": "price"}}, "both": {"stats": {"field": "price"}}}
    layers = tile(http, grid_precision=2, fields=["name", "price"], size=2, sort=["name"], aggs=aggs)
    assert list(layers) == ["hits", "aggs", "meta"]
    assert {layer["extent"] for layer in layers.values()} == {4096}
    names = [one["name"] for *_, one in layers["hits"]["features"]]
    assert names == ["Amsterdam Centre for Architecture", "Museum Het Rembrandthuis"]
    assert features(layers["hits"])[1] == (
        1,
        [[(2208, 974)]],
        {"_id": "2", "_index": "i", "name": "Museum Het Rembrandthuis", "price": 1500},
    )
    cells = features(layers["aggs"], "_key", "_count", "low.value", "both.max")
    assert [(kind, set(ring), one) for kind, (ring,), one in cells] == [
        (
            3,
            {(3072, 0), (4096, 0), (4096, 1024), (3072, 1024)},
            {"_key": "15/16831/10768", "_count": 3, "low.value": 0.0, "both.max": 1750.0},
        ),
        (
            3,
            {(2048, 0), (3072, 0), (3072, 1024), (2048, 1024)},
            {"_key": "15/16830/10768", "_count": 1, "low.value": 1500.0, "both.max": 1500.0},
        ),
    ]
    ((kind, (ring,), meta),) = layers["meta"]["features"]
    assert (kind, set(ring)) == (3, {(0, 0), (4096, 0), (4096, 4096), (0, 4096)})
    assert meta.pop("took") >= 0
    assert {name: value for name, value in meta.items() if "both" not in name} == {
        "timed_out": False,
        "_shards.total": meta["_shards.total"],
        "_shards.successful": meta["_shards.total"],
        "_shards.skipped": 0,
        "_shards.failed": 0,
        "hits.total.value": 4,
        "hits.total.relation": "eq",
        "aggregations._count.count": 2,
        "aggregations._count.min": 1.0,
        "aggregations._count.max": 3.0,
        "aggregations._count.avg": 2.0,
        "aggregations._count.sum": 4.0,
        "aggregations.low.count": 2,
        "aggregations.low.min": 0.0,
        "aggregations.low.max": 1500.0,
        "aggregations.low.avg": 750.0,
        "aggregations.low.sum": 1500.0,
    }
    assert meta["aggregations.both.sum.max"] == 3400.0


@pytest.mark.usefixtures("museums")
def test_without_some_layers(http: httpx.Client) -> None:
    assert list(tile(http, size=0, grid_precision=0)) == ["meta"]
    assert list(tile(http, f"{PATH}?size=0", size=5)) == ["aggs", "meta"]
    assert list(tile(http, "/i/_mvt/location/13/0/0")) == ["meta"]
    ((_, _, meta),) = tile(http, track_total_hits=False)["meta"]["features"]
    assert "hits.total.value" not in meta


@pytest.mark.usefixtures("museums")
def test_a_query_and_the_types_of_the_grid(http: httpx.Client) -> None:
    found = tile(http, query={"term": {"name": MUSEUMS[1]["name"]}}, grid_precision=0)
    assert [one["_id"] for *_, one in found["hits"]["features"]] == ["2"]
    points = tile(http, size=0, grid_precision=1, grid_type="point")["aggs"]
    assert features(points, "_count") == [(1, [[(3072, 1024)]], {"_count": 4})]
    centroids = tile(http, size=0, grid_precision=2, grid_type="centroid", query={"ids": {"values": ["2"]}})
    assert features(centroids["aggs"]) == [
        (1, [[(2208, 974)]], {"_key": "15/16830/10768", "_count": 1}),
    ]
    labels = tile(http, size=1, grid_precision=1, with_labels=True, sort=["price"])
    assert features(labels["hits"], "_id", "_mvt_label_position")[1][2] == {
        "_id": "4",
        "_mvt_label_position": True,
    }
    assert [kind for kind, *_ in labels["aggs"]["features"]] == [3, 1]


@pytest.mark.usefixtures("museums")
def test_exact_bounds_extent_and_buffer(http: httpx.Client) -> None:
    layers = tile(http, exact_bounds=True, extent=256, grid_precision=0)
    ((_, (ring,), _),) = layers["meta"]["features"]
    assert set(ring) == {(138, 14), (214, 14), (214, 61), (138, 61)}
    assert layers["hits"]["extent"] == 256
    everything = tile(http, "/i/_mvt/location/0/0/0", buffer=0)
    assert len(everything["hits"]["features"]) == 5


def test_shapes(http: httpx.Client) -> None:
    square = "POLYGON ((-90 -40, 90 -40, 90 40, -90 40, -90 -40))"
    line = {"type": "LineString", "coordinates": [[10, 10], [20, 20]]}
    made(http, {"properties": {"at": {"type": "geo_shape"}}}, {"at": line}, {"at": [square, "POINT (0 0)"]})
    layers = tile(http, "/i/_mvt/at/0/0/0", with_labels=True, exact_bounds=True)
    assert list(layers) == ["hits", "meta"]
    shown = features(layers["hits"], "_id", "_mvt_label_position")
    assert [(kind, one["_id"]) for kind, _, one in shown if len(one) == 1] == [(1, "2"), (3, "2"), (2, "1")]
    assert shown[2] == (1, [[(2048, 2048)]], {"_id": "2", "_mvt_label_position": True})
    assert set(layers["meta"]["features"][0][1][0]) == {
        (1024, 1551),
        (3072, 1551),
        (3072, 2545),
        (1024, 2545),
    }
    inside = tile(http, "/i/_mvt/at/2/2/1", buffer=0)
    assert [one["_id"] for *_, one in inside["hits"]["features"]] == ["2", "2", "1"]


@pytest.mark.usefixtures("museums")
@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        (PATH, {"grid_precision": 9}, "[gridPrecision] parameter cannot be bigger than 8, found [9]"),
        (PATH, {"grid_precision": -1}, "[gridPrecision] parameter cannot be negative, found [-1]"),
        (PATH, {"size": -1}, "[size] parameter cannot be negative, found [-1]"),
        (PATH, {"grid_type": "x"}, "Invalid grid type [x]"),
        (PATH, {"grid_agg": "geohex"}, "Invalid agg type [geohex]: cells are those of [geotile]"),
        (PATH, {"with_labels": "x"}, "Failed to parse value [x] of [with_labels]: it is [true] or [false]."),
        (PATH, {"nothing": 1}, "[vector-tile] unknown field [nothing]"),
        (
            PATH,
            {"aggs": {"a": {"terms": {"field": "name"}}}},
            "Unsupported aggregation of type [terms].Only metric aggregations are supported.",
        ),
        (
            PATH,
            {"aggs": {"_mvt_a": {"min": {"field": "price"}}}},
            "Invalid aggregation name [_mvt_a]. Aggregation names cannot start with prefix '_mvt_'",
        ),
        (
            "/i/_mvt/location/1/2/0",
            {},
            "[1/2/0] is no tile: zoom is from 0 to 29, x and y are from 0 to 2^zoom - 1",
        ),
        ("/i/_mvt/location/a/0/0", {}, "Failed to parse int parameter [zoom] with value [a]"),
    ],
)
def test_what_is_refused(http: httpx.Client, path: str, body: Any, reason: str) -> None:
    status, _, found = reason_of(http.post(path, json=body))
    assert (status, found) == (400, reason)


@pytest.mark.usefixtures("museums")
def test_the_official_client(url: str) -> None:
    with Elasticsearch(url, request_timeout=HANG_S) as client:
        found = client.search_mvt(index="i", field="location", zoom=13, x=4207, y=2692, grid_precision=0)
    assert len(read_tile(found.body)["hits"]["features"]) == 4
