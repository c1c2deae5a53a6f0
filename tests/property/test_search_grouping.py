"""`composite`, `auto_date_histogram` and the geo aggregations against plain Python."""

import math
from collections import Counter
from datetime import UTC, datetime
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.search.results.index import Index

FIELDS = {
    "k": {"type": "keyword"},
    "n": {"type": "integer"},
    "d": {"type": "date"},
    "p": {"type": "geo_point"},
}
DAY = 86_400_000
letters = st.sampled_from("abc")
points = st.fixed_dictionaries({"lat": st.integers(-89, 89), "lon": st.integers(-179, 179)})
documents = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "k": st.lists(letters, max_size=2),
            "n": st.integers(0, 9),
            "d": st.integers(0, 400).map(lambda day: day * DAY),
            "p": points,
        },
    ),
    max_size=10,
)


def order(descending: bool, nulls: bool) -> dict[str, Any]:
    return {"order": "desc" if descending else "asc", "missing_bucket": nulls}


@settings(max_examples=60, deadline=None)
@given(documents, st.booleans(), st.booleans(), st.booleans(), st.integers(1, 4))
def test_composite_pages_are_all_combinations_in_order(
    docs: list[dict[str, Any]], down_k: bool, down_n: bool, nulls: bool, size: int
) -> None:
    sources = [
        {"k": {"terms": {"field": "k", **order(down_k, nulls)}}},
        {"n": {"histogram": {"field": "n", "interval": 3, **order(down_n, nulls)}}},
    ]
    expected: Counter[tuple[Any, Any]] = Counter()
    for doc in docs:
        ks = sorted(set(doc.get("k", []))) or ([None] if nulls else [])
        ns = [doc["n"] // 3 * 3.0] if "n" in doc else [None] if nulls else []
        expected.update(product(ks, ns))

    def place(value: Any, down: bool) -> Any:
        number = -1 if value is None else ord(value) if isinstance(value, str) else value
        return -number if down else number

    wanted = sorted(expected, key=lambda key: (place(key[0], down_k), place(key[1], down_n)))
    index, after, found = Index(FIELDS, docs), None, []
    for _ in range(len(wanted) + 2):
        body = {"sources": sources, "size": size, **({"after": after} if after else {})}
        answer = index.aggregations({"c": {"composite": body}})["c"]
        found += [((one["key"]["k"], one["key"]["n"]), one["doc_count"]) for one in answer["buckets"]]
        if not answer["buckets"]:
            assert "after_key" not in answer
            break
        assert len(answer["buckets"]) <= size
        after = answer["after_key"]
    assert found == [(key, expected[key]) for key in wanted]


@settings(max_examples=60, deadline=None)
@given(documents, st.integers(1, 20))
def test_automatic_intervals_are_few_enough_and_count_everything(
    docs: list[dict[str, Any]], buckets: int
) -> None:
    answer = Index(FIELDS, docs).aggregations(
        {"a": {"auto_date_histogram": {"field": "d", "buckets": buckets}}}
    )
    found = answer["a"]["buckets"]
    instants = [doc["d"] for doc in docs if "d" in doc]
    assert len(found) <= buckets
    assert sum(one["doc_count"] for one in found) == len(instants)
    if instants:
        assert found[0]["key"] <= min(instants)
        assert found[0]["doc_count"] > 0
        assert answer["a"]["interval"][-1] in "smhdMy"


def test_automatic_intervals_are_those_of_the_calendar() -> None:
    days = [datetime(2024, month, 3, tzinfo=UTC) for month in (1, 2, 3, 12)]
    docs = [{"d": day.isoformat()} for day in days]
    answer = Index(FIELDS, docs).aggregations({"a": {"auto_date_histogram": {"field": "d", "buckets": 12}}})[
        "a"
    ]
    assert answer["interval"] == "1M"
    assert [one["doc_count"] for one in answer["buckets"]] == [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    answer = Index(FIELDS, docs).aggregations({"a": {"auto_date_histogram": {"field": "d", "buckets": 4}}})[
        "a"
    ]
    assert answer["interval"] == "3M"
    assert [one["doc_count"] for one in answer["buckets"]] == [3, 0, 0, 1]


def geohash(lat: float, lon: float, length: int) -> str:
    """Bit by bit, as the definition says."""
    lows, highs, text, bits, code = [-180.0, -90.0], [180.0, 90.0], "", 0, 0
    while len(text) < length:
        axis, value = bits % 2, (lon, lat)[bits % 2]
        middle = (lows[axis] + highs[axis]) / 2
        code = code * 2 + (value >= middle)
        (lows if value >= middle else highs)[axis] = middle
        bits += 1
        if bits % 5 == 0:
            text, code = text + "0123456789bcdefghjkmnpqrstuvwxyz"[code], 0
    return text


def tile(lat: float, lon: float, zoom: int) -> str:
    x = int((lon + 180) / 360 * 2**zoom)
    lat = max(-85.0511287798066, min(85.0511287798066, lat))
    y = int((1 - math.asinh(math.tan(math.radians(lat))) / math.pi) / 2 * 2**zoom)
    return f"{zoom}/{min(x, 2**zoom - 1)}/{min(max(y, 0), 2**zoom - 1)}"


@settings(max_examples=60, deadline=None)
@given(documents, st.integers(1, 6), st.integers(0, 8))
def test_geo_aggregations(docs: list[dict[str, Any]], length: int, zoom: int) -> None:
    places = [(doc["p"]["lat"], doc["p"]["lon"]) for doc in docs if "p" in doc]
    found = Index(FIELDS, docs).aggregations(
        {
            "hash": {"geohash_grid": {"field": "p", "precision": length}},
            "tile": {"geotile_grid": {"field": "p", "precision": zoom}},
            "box": {"geo_bounds": {"field": "p", "wrap_longitude": False}},
            "middle": {"geo_centroid": {"field": "p"}},
        }
    )
    hashes = {one["key"]: one["doc_count"] for one in found["hash"]["buckets"]}
    assert hashes == Counter(geohash(lat, lon, length) for lat, lon in places)
    tiles = {one["key"]: one["doc_count"] for one in found["tile"]["buckets"]}
    assert tiles == Counter(tile(lat, lon, zoom) for lat, lon in places)
    assert found["middle"]["count"] == len(places)
    if places:
        box = found["box"]["bounds"]
        assert math.isclose(box["top_left"]["lat"], max(lat for lat, _ in places), abs_tol=1e-6)
        assert math.isclose(box["bottom_right"]["lon"], max(lon for _, lon in places), abs_tol=1e-6)
        mean = sum(lon for _, lon in places) / len(places)
        assert math.isclose(found["middle"]["location"]["lon"], mean, abs_tol=1e-6)
    else:
        assert found["box"] == {}


def test_a_box_may_cross_the_date_line() -> None:
    docs = [{"p": {"lat": 0, "lon": 170}}, {"p": {"lat": 1, "lon": -170}}]
    box = Index(FIELDS, docs).aggregations({"b": {"geo_bounds": {"field": "p"}}})["b"]["bounds"]
    assert round(box["top_left"]["lon"]) == 170
    assert round(box["bottom_right"]["lon"]) == -170
