"""Sorting by `_script`: over several indexes, and over the shards of each."""

from typing import Any

import httpx
import pytest

NUMBERS = {"number": {"type": "long"}, "name": {"type": "keyword"}}


@pytest.fixture(autouse=True)
def _documents(http: httpx.Client) -> None:
    for index in ("one", "two"):
        http.put(f"/{index}", json={"mappings": {"properties": NUMBERS}})
    for number in range(12):
        index = "one" if number % 3 else "two"
        http.put(f"/{index}/_doc/{number}", json={"number": number, "name": f"n{number % 4}"})
    http.post("/_refresh")


def hits(http: httpx.Client, sort: list[Any], **more: Any) -> list[Any]:
    answer = http.post("/one,two/_search", json={"sort": sort, "size": 12} | more).json()
    found: list[Any] = answer["hits"]["hits"]
    return found


def by(source: str, kind: str, order: str = "asc") -> dict[str, Any]:
    return {"_script": {"type": kind, "order": order, "script": {"source": source}}}


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_numbers(http: httpx.Client, order: str) -> None:
    found = hits(http, [by("-doc['number'].value * 2", "number", order)])
    wanted = [str(number) for number in range(12)]
    assert [hit["_id"] for hit in found] == (wanted if order == "desc" else wanted[::-1])
    assert {hit["_id"]: hit["sort"] for hit in found}["3"] == [-6.0]


def test_texts_then_a_field(http: httpx.Client) -> None:
    found = hits(http, [by("doc['name'].value + 'x'", "string"), {"number": "desc"}])
    wanted = sorted(range(12), key=lambda number: (number % 4, -number))
    assert [hit["_id"] for hit in found] == [str(number) for number in wanted]
    assert found[0]["sort"] == ["n0x", 8]


def test_pages_go_on_behind_what_a_script_has_made(http: httpx.Client) -> None:
    sort = [by("doc['number'].value % 5", "number"), {"number": "asc"}]
    listed: list[str] = []
    more: dict[str, Any] = {}
    while found := hits(http, sort, **{**more, "size": 5}):
        listed += [hit["_id"] for hit in found]
        more = {"search_after": found[-1]["sort"]}
    assert listed == [str(number) for number in sorted(range(12), key=lambda number: (number % 5, number))]


def test_a_fault_is_told(http: httpx.Client) -> None:
    answer = http.post("/one,two/_search", json={"sort": [by("doc['name'].value.nothing()", "number")]})
    assert answer.status_code == 400
    assert '"script_exception"' in answer.text
    assert '"position"' in answer.text
