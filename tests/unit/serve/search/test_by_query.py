"""`_delete_by_query`, `_update_by_query` and `_reindex`."""

from typing import Any

import httpx
import pytest

from serve.search.documents import rewriting
from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard

BELOW_30 = {"query": {"range": {"n": {"lt": 30}}}}


@pytest.fixture(autouse=True)
def _documents(http: httpx.Client) -> None:
    for number in range(50):
        http.put(f"/books/_doc/{number}?routing=r{number % 2}", json={"n": number, "m": 1})
    http.post("/books/_refresh")


def counted(answer: httpx.Response) -> dict[str, Any]:
    """The counts that are not what they are in an answer about nothing."""
    usual = {"timed_out": False, "noops": 0, "version_conflicts": 0, "failures": []}
    usual |= {"retries": {"bulk": 0, "search": 0}, "requests_per_second": -1.0}
    usual |= {"throttled_millis": 0, "throttled_until_millis": 0}
    body = answer.json()
    assert isinstance(body.pop("took"), int)
    return {name: value for name, value in body.items() if usual.get(name, ...) != value}


def left(http: httpx.Client, index: str = "books") -> list[int]:
    return [n for n in range(50) if http.get(f"/{index}/_doc/{n}").status_code == 200]


def test_deletion(http: httpx.Client) -> None:
    answer = http.post("/books/_delete_by_query?scroll_size=20&refresh=true", json=BELOW_30)
    assert counted(answer) == {"total": 30, "deleted": 30, "batches": 2}
    assert left(http) == list(range(30, 50))
    again = http.post("/books/_delete_by_query?q=n:<30")
    assert counted(again) == {"total": 0, "deleted": 0, "batches": 0}


def test_at_most_so_many(http: httpx.Client) -> None:
    answer = http.post("/books/_delete_by_query", json={**BELOW_30, "max_docs": 7})
    assert counted(answer) == {"total": 7, "deleted": 7, "batches": 1}
    assert len(left(http)) == 43


def test_indexing_anew(http: httpx.Client) -> None:
    answer = http.post("/books/_update_by_query?refresh", json=BELOW_30)
    assert counted(answer) == {"total": 30, "updated": 30, "deleted": 0, "batches": 1}
    one = http.get("/books/_doc/3").json()
    assert (one["_version"], one["_source"], one["_routing"]) == (2, {"n": 3, "m": 1}, "r1")


def test_what_has_changed_since_is_a_conflict(http: httpx.Client) -> None:
    http.put("/books/_doc/5?routing=r1", json={"n": 5, "m": 2})
    aborted = http.post("/books/_update_by_query?scroll_size=10", json=BELOW_30)
    assert aborted.status_code == 409
    body = counted(aborted)
    assert (body["version_conflicts"], body["batches"], body["updated"]) == (1, 1, 9)
    assert (body["failures"][0]["id"], body["failures"][0]["status"]) == ("5", 409)
    http.post("/books/_refresh")
    http.put("/books/_doc/5?routing=r1", json={"n": 5, "m": 3})
    answer = http.post("/books/_delete_by_query?conflicts=proceed", json=BELOW_30)
    assert counted(answer) == {"total": 30, "deleted": 29, "batches": 1, "version_conflicts": 1}
    assert http.get("/books/_doc/5").json()["_source"] == {"n": 5, "m": 3}


def test_copying(http: httpx.Client) -> None:
    body = {"source": {"index": "books", "_source": ["n"], **BELOW_30}, "dest": {"index": "copies"}}
    answer = http.post("/_reindex?refresh=true", json=body)
    assert counted(answer) == {"total": 30, "created": 30, "updated": 0, "deleted": 0, "batches": 1}
    copy = http.get("/copies/_doc/3").json()
    assert (copy["_source"], copy["_routing"]) == ({"n": 3}, "r1")
    again = http.post("/_reindex", json={**body, "dest": {"index": "copies", "op_type": "create"}})
    assert again.status_code == 409
    assert again.json()["version_conflicts"] == 30


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        ("/books/_delete_by_query", {}, "action_request_validation_exception"),
        ("/books/_delete_by_query", {"query": {"nope": {}}}, "parsing_exception"),
        ("/books/_delete_by_query", {"query": {"match_all": {}}, "size": 3}, "parsing_exception"),
        ("/books/_update_by_query", {"script": {}}, "illegal_argument_exception"),
        ("/books/_update_by_query?conflicts=cat", {}, "illegal_argument_exception"),
        ("/books/_update_by_query?max_docs=-1", {}, "illegal_argument_exception"),
        ("/books/_update_by_query?scroll_size=0", {}, "illegal_argument_exception"),
        ("/books/_update_by_query?slices=0", {}, "illegal_argument_exception"),
        ("/books/_update_by_query?wait_for_completion=cat", {}, "illegal_argument_exception"),
        ("/_reindex", {"source": {"index": "books"}}, "action_request_validation_exception"),
        ("/_reindex", {"source": {"index": "books"}, "dest": {}}, "action_request_validation_exception"),
        ("/_reindex", {"source": {}, "dest": {"index": "b"}}, "action_request_validation_exception"),
        (
            "/_reindex",
            {"source": {"index": "books"}, "dest": {"index": "books"}},
            "action_request_validation_exception",
        ),
        ("/_reindex", {"sauce": {}}, "x_content_parse_exception"),
    ],
)
def test_requests_that_cannot_be(http: httpx.Client, path: str, body: Any, kind: str) -> None:
    assert reason_of(http.post(path, json=body))[:2] == (400, kind)
    assert len(left(http)) == 50


ALL: dict[str, Any] = {"query": {"match_all": {}}}


def reindexing(source: dict[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    """A request that could be, but for what is given."""
    return {"source": {"index": "books", **(source or {})}, "dest": {"index": "copy"}, **members}


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        ("/_reindex", reindexing({"junk": {}}), "Unknown key for a START_OBJECT in [junk]."),
        ("/_reindex", reindexing({"from": 1}), "from is not supported in this context"),
        ("/_reindex", reindexing({"stored_fields": ["n"]}), "stored_fields is not supported in this context"),
        ("/_reindex", reindexing({"_source": False}), "_source:false is not supported in this context"),
        ("/_reindex", reindexing({"size": "many"}), 'For input string: "many"'),
        ("/_reindex", reindexing({"size": 10_001}), "[scroll_size] must be between 1 and 10000"),
        ("/_reindex", {"dest": {"version": 10}}, "[dest] unknown field [version]"),
        ("/_reindex", {"dest": {}}, "index must be specified"),
        ("/_reindex", {"dest": []}, "[dest] must be an object"),
        ("/_reindex", {"source": [], "dest": {"index": "copy"}}, "[source] must be an object"),
        ("/_reindex", {"conflicts": "cat"}, 'conflicts may only be "proceed" or "abort" but was [cat]'),
        ("/_reindex", reindexing(size=4, max_docs=5), "[max_docs] set to two different values [4] and [5]"),
        (
            "/_reindex?max_docs=5",
            reindexing(max_docs=4),
            "[max_docs] set to two different values [4] and [5]",
        ),
        ("/_reindex?max_docs=1&slices=2", reindexing(), "[max_docs] should be >= [slices]"),
        ("/_reindex?slices=junk", reindexing(), '[slices] must be a positive integer or the string "auto"'),
        ("/_reindex?slices=0", reindexing(), '[slices] must be a positive integer or the string "auto"'),
        (
            "/_reindex?requests_per_second=",
            reindexing(),
            "[requests_per_second] must be a float greater than 0",
        ),
        ("/_reindex?requests_per_second=-12", reindexing(), "[requests_per_second] must be a float greater"),
        ("/books/_delete_by_query?max_docs=1&slices=2", ALL, "[max_docs] should be >= [slices]"),
        (
            "/books/_delete_by_query",
            {**ALL, "stored_fields": ["n"]},
            "stored_fields is not supported in this context",
        ),
    ],
)
def test_what_is_said_of_requests_that_cannot_be(
    http: httpx.Client, path: str, body: Any, reason: str
) -> None:
    status, _, said = reason_of(http.post(path, json=body))
    assert (status, reason in said) == (400, True), said
    assert http.head("/copy").status_code == 404


def test_batches_of_long_documents_are_small(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "_BATCH_BYTES", 100)
    answer = http.post("/books/_update_by_query?refresh", json=BELOW_30)
    assert counted(answer) == {"total": 30, "updated": 30, "deleted": 0, "batches": 8}
    answer = http.post("/books/_delete_by_query", json={**BELOW_30, "max_docs": 12})
    assert counted(answer) == {"total": 12, "deleted": 12, "batches": 2}


def test_copying_in_batches(http: httpx.Client) -> None:
    answer = http.post("/_reindex", json=reindexing({"size": "20"}, max_docs=50, size=50))
    assert counted(answer) == {"total": 50, "created": 50, "updated": 0, "deleted": 0, "batches": 3}


def test_a_failure_says_where_it_was(http: httpx.Client) -> None:
    http.put("/copy/_doc/7", json={})
    body = reindexing(source={"query": {"term": {"n": 7}}})
    body["dest"]["op_type"] = "create"
    answer = http.post("/_reindex", json=body)
    (failure,) = answer.json()["failures"]
    assert (answer.status_code, failure["status"], failure["index"], failure["id"]) == (409, 409, "copy", "7")
    assert (failure["cause"]["shard"], failure["cause"]["index"]) == ("0", "copy")


def test_slices_are_counted_each_by_itself(http: httpx.Client) -> None:
    answer = http.post("/books/_delete_by_query?slices=4&refresh=true", json=BELOW_30).json()
    assert [one["slice_id"] for one in answer["slices"]] == [0, 1, 2, 3]
    assert [one["deleted"] for one in answer["slices"]] == [8, 8, 7, 7]
    assert (answer["total"], answer["deleted"], answer["batches"]) == (30, 30, 4)
    assert left(http) == list(range(30, 50))


def test_slices_share_the_most_documents(http: httpx.Client) -> None:
    answer = http.post("/books/_update_by_query?slices=3&max_docs=7", json=BELOW_30).json()
    assert [one["total"] for one in answer["slices"]] == [3, 2, 2]
    assert answer["updated"] == 7
    status, _, reason = reason_of(http.post("/books/_delete_by_query?slices=1025", json=BELOW_30))
    assert (status, "number of slices [1025] is too large" in reason) == (400, True)


def test_as_many_slices_as_there_are_shards(http: httpx.Client) -> None:
    http.put("/wide", json={"settings": {"number_of_shards": 3}})
    for number in range(10):
        http.put(f"/wide/_doc/{number}", json={"n": number})
    http.post("/wide/_refresh")
    answer = http.post("/_reindex?slices=auto", json={"source": {"index": "wide"}, "dest": {"index": "copy"}})
    assert [one["created"] for one in answer.json()["slices"]] == [4, 3, 3]
    alone = http.post("/books/_update_by_query?slices=auto", json=BELOW_30).json()
    assert "slices" not in alone


def test_the_first_slice_that_fails_is_the_last(http: httpx.Client) -> None:
    http.put("/books/_doc/0?routing=r0", json={"n": 0, "m": 2})  # changed since the search sees it
    answer = http.post("/books/_update_by_query?slices=5", json=BELOW_30).json()
    assert (answer["version_conflicts"], answer["updated"]) == (1, 5)
    assert [one["batches"] for one in answer["slices"]] == [1, 0, 0, 0, 0]


def test_a_script_may_add_nothing_to_the_context(http: httpx.Client) -> None:
    body = {**BELOW_30, "script": "ctx.junk = 1"}
    _, kind, reason = reason_of(http.post("/books/_update_by_query", json=body))
    assert kind == "illegal_argument_exception"
    assert reason == "Invalid fields added to context [junk]"


def test_every_index_that_a_script_sends_copies_to_is_refreshed(http: httpx.Client) -> None:
    script = "if (ctx._source.n < 10) { ctx._index = 'low' }"
    body = {"source": {"index": "books", **BELOW_30}, "dest": {"index": "high"}, "script": script}
    http.post("/_reindex?refresh=true", json=body)
    assert [http.get(f"/{name}/_count").json()["count"] for name in ("low", "high")] == [10, 20]


def test_copies_make_no_index_that_documents_may_not(http: httpx.Client) -> None:
    http.put("/_cluster/settings", json={"persistent": {"action.auto_create_index": "books"}})
    body = {"source": {"index": "books", "query": {"match_none": {}}}, "dest": {"index": "copies"}}
    status, _, reason = reason_of(http.post("/_reindex", json=body))
    assert status == 404
    assert reason == "no such index [copies] and [action.auto_create_index] ([books]) doesn't match"


def test_a_search_that_fails_says_on_which_shard(http: httpx.Client) -> None:
    query = {"query": {"script": {"script": "Integer.parseInt('x') == 1"}}}
    answer = http.post("/books/_update_by_query", json=query)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["type"], error["phase"]) == ("search_phase_execution_exception", "query")
    (shard,) = error["failed_shards"]
    assert (shard["index"], shard["shard"], shard["reason"]["type"]) == ("books", 0, "script_exception")
    assert shard["node"]
    unknown = reason_of(http.post("/books/_update_by_query", json={"query": {"nope": {}}}))
    assert unknown[1] == "parsing_exception"
