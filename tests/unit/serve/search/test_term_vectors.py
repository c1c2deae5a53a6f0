"""`_termvectors` and `_mtermvectors`."""

import math
from typing import Any

import httpx
import pytest

from tests.unit.serve.search.conftest import reason_of

TEXTS = {"a": "The fox is brown, brown 🦊 fox", "b": "brown bread", "c": "a sea"}


@pytest.fixture(autouse=True)
def _documents(http: httpx.Client) -> None:
    fields = {"text": {"type": "text", "fields": {"raw": {"type": "keyword"}}}, "kind": {"type": "keyword"}}
    http.put("/books", json={"mappings": {"properties": fields}})
    for doc_id, text in TEXTS.items():
        http.put(f"/books/_doc/{doc_id}", json={"text": text, "kind": "x"})
    http.post("/books/_refresh")


def vectors(http: httpx.Client, body: dict[str, Any] | None = None, path: str = "a") -> dict[str, Any]:
    answer: dict[str, Any] = (
        http.post(f"/books/_termvectors/{path}", json=body or {}).raise_for_status().json()
    )
    assert answer["found"] is True
    found: dict[str, Any] = answer["term_vectors"]
    return found


def test_places_and_statistics(http: httpx.Client) -> None:
    found = vectors(http, {"term_statistics": True})
    assert found.keys() == {"text"}
    assert found["text"]["field_statistics"] == {"sum_doc_freq": 9, "doc_count": 3, "sum_ttf": 11}
    assert found["text"]["terms"]["brown"] == {
        "doc_freq": 2,
        "ttf": 3,
        "term_freq": 2,
        "tokens": [
            {"position": 3, "start_offset": 11, "end_offset": 16},
            {"position": 4, "start_offset": 18, "end_offset": 23},
        ],
    }
    last = found["text"]["terms"]["fox"]["tokens"][1]
    assert (last["start_offset"], last["end_offset"]) == (27, 30)  # after a character of two UTF-16 units


def test_what_is_shown_can_be_chosen(http: httpx.Client) -> None:
    path = "a?offsets=false&field_statistics=false&fields=text,kind,text.raw"
    found = vectors(http, path=path)
    assert found["kind"] == {"terms": {"x": {"term_freq": 1, "tokens": [{"position": 0}]}}}
    assert list(found["text.raw"]["terms"]) == [TEXTS["a"]]
    assert "field_statistics" not in found["text"]
    bare = vectors(http, {"offsets": False, "positions": False})
    assert bare["text"]["terms"]["fox"] == {"term_freq": 2}


def test_the_terms_that_stand_out(http: httpx.Client) -> None:
    found = vectors(http, {"filter": {"max_num_terms": 1, "min_doc_freq": 1}})
    [(term, told)] = found["text"]["terms"].items()
    assert (term, told["score"]) == ("fox", pytest.approx(2 * (math.log(4 / 2) + 1)))


def test_a_document_that_is_given(http: httpx.Client) -> None:
    body = {"doc": {"text": ["Brown sea", "x"]}, "term_statistics": True}
    answer = http.post("/books/_termvectors", json=body).json()
    assert "_id" not in answer
    terms = answer["term_vectors"]["text"]["terms"]
    assert (terms["sea"]["doc_freq"], terms["brown"]["ttf"]) == (1, 3)
    assert terms["x"]["tokens"] == [{"position": 102, "start_offset": 10, "end_offset": 11}]
    other = {**body, "per_field_analyzer": {"text": "whitespace"}}
    assert "Brown" in http.post("/books/_termvectors", json=other).json()["term_vectors"]["text"]["terms"]


def test_many_at_once(http: httpx.Client) -> None:
    docs = [{"_index": "books", "_id": "a"}, {"_index": "none", "_id": "a"}, {"_index": "books", "_id": "z"}]
    one, missing, absent = http.post("/_mtermvectors", json={"docs": docs}).json()["docs"]
    assert one["found"] is True
    assert missing["error"]["type"] == "index_not_found_exception"
    assert absent["found"] is False
    by_id = http.post("/books/_mtermvectors?ids=a,b").json()["docs"]
    assert [doc["_id"] for doc in by_id] == ["a", "b"]


@pytest.mark.parametrize(
    "body",
    [
        {"nope": 1},
        {"fields": 1},
        {"doc": {}},
        {"offsets": "yes"},
        {"filter": {"max_num_terms": -1}},
        {"filter": {"nope": 1}},
        {"per_field_analyzer": {"text": "nope"}},
        {"per_field_analyzer": []},
    ],
)
def test_what_is_refused(http: httpx.Client, body: Any) -> None:
    assert reason_of(http.post("/books/_termvectors/a", json=body))[0] == 400


def test_a_document_that_is_too_long(http: httpx.Client) -> None:
    answer = http.post("/books/_termvectors", json={"doc": {"text": "x" * 1_000_001}})
    assert reason_of(answer)[0] == 400
