"""Sets of synonyms over HTTP, and the searches that follow them at once."""

from typing import Any

import httpx
import pytest

from tests.unit.serve.search.conftest import reason_of

RULES = [{"id": "a", "synonyms": "ny, new york"}, {"id": "b", "synonyms": "tv => television"}]


def put(http: httpx.Client, rules: Any, name: str = "words") -> httpx.Response:
    return http.put(f"/_synonyms/{name}", json={"synonyms_set": rules})


@pytest.fixture
def books(http: httpx.Client) -> httpx.Client:
    """An index whose search analyzer names a set."""
    assert put(http, RULES).status_code == 201
    analysis = {
        "filter": {"follow": {"type": "synonym_graph", "synonyms_set": "words", "updateable": True}},
        "analyzer": {"seek": {"tokenizer": "standard", "filter": ["lowercase", "follow"]}},
    }
    text = {"type": "text", "analyzer": "standard", "search_analyzer": "seek"}
    body = {"settings": {"analysis": analysis}, "mappings": {"properties": {"t": text}}}
    assert http.put("/books", json=body).status_code == 200
    for number, title in enumerate(("a hotel in new york", "york in a new hotel", "television", "big apple")):
        http.put(f"/books/_doc/{number}?refresh=true", json={"t": title})
    return http


def found(http: httpx.Client, text: str) -> set[str]:
    answer = http.post("/books/_search", json={"query": {"match": {"t": text}}}).json()
    return {hit["_id"] for hit in answer["hits"]["hits"]}


def test_searches_follow_a_set(books: httpx.Client) -> None:
    assert (found(books, "ny"), found(books, "tv")) == ({"0"}, {"2"})
    changed = put(books, [{"id": "a", "synonyms": "ny, big apple"}])
    assert changed.status_code == 200
    answer = changed.json()
    assert answer["result"] == "updated"
    (details,) = answer["reload_analyzers_details"]["reload_details"]
    assert (details["index"], details["reloaded_analyzers"]) == ("books", ["seek"])
    assert answer["reload_analyzers_details"]["_shards"]["failed"] == 0
    assert (found(books, "ny"), found(books, "tv")) == ({"3"}, set())
    tokens = books.post("/books/_analyze", json={"analyzer": "seek", "text": "ny"}).json()["tokens"]
    assert [token["token"] for token in tokens] == ["big", "ny", "apple"]


def test_single_rules(books: httpx.Client) -> None:
    assert books.put("/_synonyms/words/c", json={"synonyms": "ny => apple"}).json()["result"] == "created"
    assert found(books, "ny") == {"0", "3"}
    assert books.get("/_synonyms/words/c").json() == {"id": "c", "synonyms": "ny => apple"}
    assert books.delete("/_synonyms/words/a").json()["result"] == "deleted"
    assert found(books, "ny") == {"3"}
    shown = books.get("/_synonyms/words?from=1&size=5").json()
    assert shown == {"count": 2, "synonyms_set": [{"id": "c", "synonyms": "ny => apple"}]}


def test_settings_show_the_name_alone(books: httpx.Client) -> None:
    settings = books.get("/books/_settings").json()["books"]["settings"]["index"]
    assert settings["analysis"]["filter"]["follow"] == {
        "type": "synonym_graph",
        "synonyms_set": "words",
        "updateable": "true",
    }
    reloaded = books.post("/books/_reload_search_analyzers").json()
    assert [one["reloaded_analyzers"] for one in reloaded["reload_details"]] == [["seek"]]


def test_a_set_in_use_stays(books: httpx.Client) -> None:
    status, kind, reason = reason_of(books.delete("/_synonyms/words"))
    assert (status, kind) == (400, "illegal_argument_exception")
    assert reason == "synonyms set [words] cannot be deleted as it is used in the following indices: books"
    books.delete("/books")
    assert books.delete("/_synonyms/words").json() == {"acknowledged": True}
    assert books.get("/_synonyms").json() == {"count": 0, "results": []}


def test_sets_are_listed(http: httpx.Client) -> None:
    put(http, RULES, "b")
    put(http, {"synonyms": "x, y"}, "a")
    assert http.get("/_synonyms").json() == {
        "count": 2,
        "results": [{"synonyms_set": "a", "count": 1}, {"synonyms_set": "b", "count": 2}],
    }
    (rule,) = http.get("/_synonyms/a").json()["synonyms_set"]
    assert rule["synonyms"] == "x, y"
    assert rule["id"]


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ([{"synonyms": "a => b => c"}], "More than one explicit mapping"),
        ([{"synonyms": ""}], "can't be empty"),
        ([{"synonyms": "=> b"}], "Incorrect syntax"),
        ([{"synonyms": 1}], "can't be empty"),
        ([{"id": 1, "synonyms": "a, b"}], "must be a string"),
        (["a, b"], "expects objects"),
    ],
)
def test_rules_that_cannot_be(http: httpx.Client, rules: Any, reason: str) -> None:
    status, _, found = reason_of(put(http, rules))
    assert status == 400
    assert reason in found


def test_what_is_missing(http: httpx.Client) -> None:
    for method, path in (("GET", "x"), ("DELETE", "x"), ("GET", "x/y"), ("DELETE", "x/y")):
        answer = reason_of(http.request(method, f"/_synonyms/{path}"))
        assert answer == (404, "resource_not_found_exception", "synonyms set [x] not found")
    assert reason_of(http.put("/_synonyms/x/y", json={"synonyms": "a, b"}))[0] == 404
    put(http, RULES)
    assert (
        reason_of(http.get("/_synonyms/words/y"))[2] == "synonym rule [y] not found on synonyms set [words]"
    )
    assert reason_of(http.delete("/_synonyms/words/y"))[0] == 404
    assert reason_of(http.put("/_synonyms/words", json={"set": []}))[0] == 400
    filters = {"s": {"type": "synonym", "synonyms_set": "nowhere"}}
    status, _, reason = reason_of(http.put("/i", json={"settings": {"analysis": {"filter": filters}}}))
    assert (status, reason) == (400, "synonyms set [nowhere] not found")


@pytest.mark.parametrize(
    ("analysis", "status"), [({"filter": "0x10"}, 200), ({"filter": -1}, 200), ("now", 400), ([1], 400)]
)
def test_settings_that_hold_no_filters(http: httpx.Client, analysis: Any, status: int) -> None:
    """What a group of settings is given in its place is ignored, as in Elasticsearch."""
    answer = http.put("/odd", json={"settings": {"analysis": analysis}})
    assert answer.status_code == status
