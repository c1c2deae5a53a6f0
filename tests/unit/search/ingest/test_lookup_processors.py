"""Circles as polygons, registered domains, and who a browser is."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st
from ua_parser import parse

from graphdb.search.errors import SearchError
from graphdb.search.query.geo import EARTH_RADIUS_M, distances_m
from tests.unit.search.ingest.test_processors import pipeline, refused, run

# Of Elasticsearch's documentation of the processor.
CIRCLE = "CIRCLE (30 10 40)"
PENTAGON = [
    (30.000365257263184, 10.0),
    (30.000111397193788, 10.00034284530941),
    (29.999706043744222, 10.000213571721195),
    (29.999706043744222, 9.999786428278805),
    (30.000111397193788, 9.99965715469059),
    (30.000365257263184, 10.0),
]


def circle(value: Any, error: float = 28.0, kind: str = "geo_shape", **options: Any) -> Any:
    settings = {"field": "c", "error_distance": error, "shape_type": kind, **options}
    return run({"c": value}, {"circle": settings}).source.get(options.get("target_field", "c"))


def test_the_circle_of_the_documentation() -> None:
    made = shapely.from_wkt(circle(CIRCLE))
    assert np.allclose(made.exterior.coords, PENTAGON, rtol=0, atol=1e-6)  # 0.1 m, as exact as it is there
    value = {"type": "Circle", "radius": "40m", "coordinates": [30, 10]}
    as_object = circle(value, target_field="p.q")
    assert as_object is None
    made = run({"c": value}, {"circle": {"field": "c", "error_distance": "28.0", "shape_type": "geo_shape"}})
    (ring,) = made.source["c"]["coordinates"]
    assert made.source["c"]["type"] == "Polygon"
    assert np.allclose(ring, PENTAGON, rtol=0, atol=1e-6)


@given(
    st.floats(-180, 180),
    st.floats(-85, 85),
    st.floats(1, 2_000_000),
    st.floats(0.0005, 2),
)
def test_vertices_are_on_the_circle(x: float, y: float, radius: float, share: float) -> None:
    assume(radius < 0.99 * EARTH_RADIUS_M * math.radians(90 - abs(y)))
    value = {"type": "circle", "radius": radius, "coordinates": [x, y]}
    (ring,) = circle(value, radius * share)["coordinates"]
    assert (ring[0], len(ring)) == (ring[-1], max(5, min(1001, len(ring))))
    xs, ys = np.array(ring).T
    assert np.allclose(distances_m(ys, xs, y, x), radius, rtol=1e-6, atol=1e-3)


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0.1, 1e5), st.floats(0.01, 0.9))
def test_a_circle_of_a_plane(x: float, y: float, radius: float, share: float) -> None:
    """Nowhere is a side further than the error from the circle."""
    made = shapely.from_wkt(circle(f"CIRCLE ({x!r} {y!r} {radius!r})", radius * share, "shape"))
    centre = shapely.Point(x, y)
    corners = list(made.exterior.coords)
    assert all(math.isclose(math.dist(one, (x, y)), radius, rel_tol=1e-4) for one in corners)
    for side in pairwise(corners):
        assert centre.distance(shapely.LineString(side)) >= radius * (1 - share) * (1 - 1e-3)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "field [c] is null, cannot process it."),
        ("POINT (1 2)", "invalid circle definition"),
        ("CIRCLE (a b c)", "invalid circle definition"),
        (7, "invalid circle definition: [7]"),
        ({"type": "point", "coordinates": [1, 2]}, "found [point] instead of circle"),
        ({"type": "circle", "coordinates": [1, 2]}, "invalid circle definition"),
        ({"type": "circle", "coordinates": [1], "radius": 1}, "invalid circle definition"),
        ({"type": "circle", "coordinates": [1, 2], "radius": "1 parsec"}, "distance"),
        ({"type": "circle", "coordinates": [1, 2], "radius": 0}, "its radius positive"),
        ({"type": "circle", "coordinates": [1, 92], "radius": 1}, "there is no longitude 1 or latitude 92"),
        ({"type": "circle", "coordinates": [1, 89], "radius": "200km"}, "has a pole in it"),
    ],
)
def test_circles_that_cannot_be(value: Any, reason: str) -> None:
    said = refused({"c": value}, {"circle": {"field": "c", "error_distance": 1, "shape_type": "geo_shape"}})
    assert reason in said


def domain(name: Any, **options: Any) -> Any:
    settings = {"field": "d", "target_field": "t", **options}
    return run({"d": name}, {"registered_domain": settings}).source.get("t")


@pytest.mark.parametrize(
    ("name", "registered", "suffix", "sub"),
    [
        ("www.google.com", "google.com", "com", "www"),
        ("example.com", "example.com", "com", None),
        ("com", None, "com", None),
        ("www.books.amazon.co.uk", "amazon.co.uk", "co.uk", "www.books"),
        ("1984.xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn", "xn--55qx5d.cn", "1984"),
        ("content-autofill.googleapis.com", "content-autofill.googleapis.com", "googleapis.com", None),
        ("WWW.Example.COM", "example.com", "com", "WWW"),
    ],
)
def test_domains(name: str, registered: str | None, suffix: str, sub: str | None) -> None:
    expected = {"domain": name, "registered_domain": registered, "top_level_domain": suffix, "subdomain": sub}
    assert domain(name) == {member: text for member, text in expected.items() if text is not None}


def test_names_without_a_domain() -> None:
    for name in ("foo.bar.baz", "123", "", "a..com", "x." * 200 + "com"):
        assert domain(name) is None
        settings = {"registered_domain": {"field": "d", "ignore_missing": False}}
        assert refused({"d": name}, settings) == "unable to set domain information for document"
    at_root = run({"d": "a.b.org"}, {"registered_domain": {"field": "d"}}).source
    assert (at_root["registered_domain"], at_root["subdomain"]) == ("b.org", "a")
    missing = {"registered_domain": {"field": "d", "ignore_missing": False}}
    assert refused({}, missing) == "field [d] not present as part of path [d]"
    assert run({}, {"registered_domain": {"field": "d"}}).source == {}


CHROME = (
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_9_2) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/33.0.1750.149 Safari/537.36"
)


def test_who_a_browser_is() -> None:
    made = run({"a": CHROME}, {"user_agent": {"field": "a"}}).source
    assert made == {
        "a": CHROME,
        "user_agent": {
            "name": "Chrome",
            "original": CHROME,
            "version": "33.0.1750.149",
            "os": {"name": "Mac OS X", "version": "10.9.2", "full": "Mac OS X 10.9.2"},
            "device": {"name": "Mac"},
        },
    }
    options = {"field": "a", "target_field": "b", "properties": ["OS"]}
    assert run({"a": CHROME}, {"user_agent": options}).source["b"].keys() == {"os"}


def test_a_browser_that_nobody_knows() -> None:
    made = run({"a": "Something I made up v42.0.1"}, {"user_agent": {"field": "a"}}).source["user_agent"]
    assert made == {
        "name": "Other",
        "device": {"name": "Other"},
        "original": "Something I made up v42.0.1",
    }
    long = CHROME + " " * 100_000
    assert run({"a": long}, {"user_agent": {"field": "a"}}).source["user_agent"]["original"] == long
    assert parse(long[:1_000]).user_agent is not None
    assert refused({}, {"user_agent": {"field": "a"}}) == "field [a] not present as part of path [a]"
    assert (
        refused({"a": None}, {"user_agent": {"field": "a"}}) == "field [a] is null, cannot parse user-agent."
    )
    assert run({}, {"user_agent": {"field": "a", "ignore_missing": True}}).source == {}


@pytest.mark.parametrize(
    ("processor", "reason"),
    [
        ({"circle": {"field": "c", "shape_type": "shape"}}, "[error_distance] required property is missing"),
        ({"circle": {"field": "c", "error_distance": 1}}, "[shape_type] required property is missing"),
        ({"circle": {"field": "c", "error_distance": "x", "shape_type": "shape"}}, "converted to a double"),
        ({"circle": {"field": "c", "error_distance": 0, "shape_type": "shape"}}, "must be greater than 0"),
        ({"circle": {"field": "c", "error_distance": 1, "shape_type": "s"}}, "valid values are"),
        ({"user_agent": {"field": "a", "properties": ["invalid"]}}, "illegal property value [invalid]"),
        ({"user_agent": {"field": "a", "regex_file": "x.yml"}}, "rules are those of ua-parser"),
    ],
)
def test_processors_that_cannot_be(processor: Any, reason: str) -> None:
    with pytest.raises(SearchError) as caught:
        pipeline(processor)
    assert caught.value.kind == "parse_exception"
    assert reason in caught.value.reason
