"""Single documents: written, read, updated, deleted; exact answers."""

import time
from typing import Any

import httpx
import orjson
import pytest

from graphdb.errors import NotLeader, OutcomeUnknown, Overloaded, StorageFull
from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.memory_search import MemorySearch
from tests.support.timing import HANG_S
from tests.unit.serve.search.conftest import SETTINGS, reason_of

JSON = {"Content-Type": "application/json"}


def test_a_new_document_is_created(http: httpx.Client) -> None:
    answer = http.put("/books/_doc/1", json={"title": "Emma"})
    assert answer.status_code == 201
    assert answer.headers["location"] == "/books/_doc/1"
    assert answer.json() == {
        "_index": "books",
        "_id": "1",
        "_version": 1,
        "result": "created",
        "_shards": {"total": 2, "successful": 1, "failed": 0},
        "_seq_no": 0,
        "_primary_term": 1,
    }


def test_a_document_is_replaced_and_refreshed(http: httpx.Client) -> None:
    http.put("/books/_doc/1", json={"title": "Emma"})
    answer = http.post("/books/_doc/1?refresh", json={"title": "Persuasion"})
    assert (answer.status_code, answer.json()["result"], answer.json()["_version"]) == (200, "updated", 2)
    assert answer.json()["forced_refresh"] is True
    assert "location" not in answer.headers


def test_generated_ids_are_twenty_characters_that_need_no_escape(http: httpx.Client) -> None:
    ids = {http.post("/books/_doc", json={}).json()["_id"] for _ in range(20)}
    assert len(ids) == 20
    for doc_id in ids:
        assert len(doc_id) == 20
        assert http.get(f"/books/_doc/{doc_id}").status_code == 200


def test_the_source_is_kept_as_it_was_sent(http: httpx.Client) -> None:
    sent = b'{ "b" : 1.50,\n "a": [1e2, 2], "c": "\\u00e9" }'
    http.put("/books/_doc/1", content=sent, headers=JSON)
    assert http.get("/books/_source/1").content == sent
    assert sent in http.get("/books/_doc/1").content


def test_an_id_may_hold_any_character(http: httpx.Client) -> None:
    answer = http.put("/books/_doc/a%2Fb%20c+d%C3%A9%3F", json={}, params={"routing": "r/1"})
    assert answer.json()["_id"] == "a/b c+dé?"
    assert answer.headers["location"] == "/books/_doc/a%2Fb%20c%2Bd%C3%A9%3F?routing=r%2F1"
    assert http.get(answer.headers["location"]).json()["_routing"] == "r/1"


def test_reading(http: httpx.Client) -> None:
    http.put("/books/_doc/1", json={"title": "Emma", "author": {"name": "Jane", "born": 1775}})
    found: dict[str, Any] = {"_index": "books", "_id": "1", "_version": 1, "_seq_no": 0, "_primary_term": 1}
    assert http.get("/books/_doc/1").json() == {
        **found,
        "found": True,
        "_source": {"title": "Emma", "author": {"name": "Jane", "born": 1775}},
    }
    assert http.get("/books/_doc/1?_source=false").json() == {**found, "found": True}
    only = http.get("/books/_doc/1?_source_includes=author.*&_source_excludes=*.born")
    assert only.json()["_source"] == {"author": {"name": "Jane"}}
    assert http.get("/books/_source/1?_source=title").json() == {"title": "Emma"}


def test_what_is_not_there(http: httpx.Client) -> None:
    http.put("/books/_doc/1", json={})
    missing = http.get("/books/_doc/2")
    assert missing.status_code == 404
    assert missing.json() == {"_index": "books", "_id": "2", "found": False}
    assert reason_of(http.get("/books/_source/2")) == (
        404,
        "resource_not_found_exception",
        "Document not found [books]/[2]",
    )
    assert reason_of(http.get("/nope/_doc/1")) == (404, "index_not_found_exception", "no such index [nope]")


@pytest.mark.parametrize(("path", "status"), [("_doc/1", 200), ("_doc/2", 404), ("_source/1", 200)])
def test_head_is_get_without_a_body(http: httpx.Client, path: str, status: int) -> None:
    http.put("/books/_doc/1", json={"a": 1})
    answer = http.head(f"/books/{path}")
    assert (answer.status_code, answer.content) == (status, b"")
    assert answer.headers["x-elastic-product"] == "Elasticsearch"


def test_realtime_or_not(http: httpx.Client) -> None:
    http.put("/books/_doc/1", json={})
    assert http.get("/books/_doc/1").status_code == 200
    assert http.get("/books/_doc/1?realtime=false").status_code == 404
    assert http.get("/books/_doc/1?realtime=false&refresh=true").status_code == 200


def test_deletion(http: httpx.Client) -> None:
    http.put("/books/_doc/1", json={})
    gone = http.delete("/books/_doc/1")
    assert (gone.status_code, gone.json()["result"], gone.json()["_version"]) == (200, "deleted", 2)
    again = http.delete("/books/_doc/1")
    assert (again.status_code, again.json()["result"], again.json()["_version"]) == (404, "not_found", 3)


def test_a_deletion_makes_no_index(http: httpx.Client, node: MemorySearch) -> None:
    assert reason_of(http.delete("/nope/_doc/1"))[:2] == (404, "index_not_found_exception")
    assert node.catalog.indexes() == []


def test_creating_what_is_there(http: httpx.Client) -> None:
    assert http.put("/books/_create/1", json={}).status_code == 201
    conflict = "[1]: version conflict, document already exists (current version [1])"
    for path in ("/books/_create/1", "/books/_doc/1?op_type=create"):
        assert reason_of(http.put(path, json={})) == (409, "version_conflict_engine_exception", conflict)


def test_optimistic_concurrency(http: httpx.Client) -> None:
    http.put("/books/_doc/1", json={})
    assert http.put("/books/_doc/1?if_seq_no=0&if_primary_term=1", json={}).status_code == 200
    status, kind, reason = reason_of(http.put("/books/_doc/1?if_seq_no=0&if_primary_term=1", json={}))
    assert (status, kind) == (409, "version_conflict_engine_exception")
    assert reason.endswith("current document has seqNo [1] and primary term [1]")
    assert http.put("/books/_doc/2?version=7&version_type=external", json={}).json()["_version"] == 7
    assert http.put("/books/_doc/2?version=7&version_type=external", json={}).status_code == 409
    assert http.get("/books/_doc/2?version=6").status_code == 409
    assert http.get("/books/_doc/2?version=7").status_code == 200


def test_updates(http: httpx.Client) -> None:
    http.put("/books/_doc/1", json={"a": {"b": 1}})
    answer = http.post("/books/_update/1?_source=a", json={"doc": {"a": {"c": 2}}})
    assert answer.json() == {
        "_index": "books",
        "_id": "1",
        "_version": 2,
        "result": "updated",
        "_shards": {"total": 2, "successful": 1, "failed": 0},
        "_seq_no": 1,
        "_primary_term": 1,
        "get": {"_seq_no": 1, "_primary_term": 1, "found": True, "_source": {"a": {"b": 1, "c": 2}}},
    }
    noop = http.post("/books/_update/1", json={"doc": {"a": {"c": 2}}}).json()
    assert (noop["result"], noop["_version"], noop["_shards"]["total"]) == ("noop", 2, 0)
    made = http.post("/books/_update/2", json={"doc": {"n": 1}, "doc_as_upsert": True})
    assert (made.status_code, made.json()["result"]) == (201, "created")


@pytest.mark.parametrize(
    ("request_body", "status", "kind", "reason"),
    [
        ({"doc": {}}, 404, "document_missing_exception", "[9]: document missing"),
        (
            {"script": "x"},
            400,
            "illegal_argument_exception",
            "failed to execute script",
        ),
        (
            {"dok": {}},
            400,
            "x_content_parse_exception",
            "[UpdateRequest] unknown field [dok] did you mean [doc]?",
        ),
        (
            {},
            400,
            "action_request_validation_exception",
            "Validation Failed: 1: script or doc is missing;",
        ),
    ],
)
def test_updates_that_cannot_be(
    http: httpx.Client, request_body: Any, status: int, kind: str, reason: str
) -> None:
    assert reason_of(http.post("/books/_update/9", json=request_body)) == (status, kind, reason)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("refresh=maybe", "Unknown value for refresh: [maybe]."),
        ("op_type=update", "opType must be 'create' or 'index', found: [update]"),
        ("if_seq_no=x", "Failed to parse long parameter [if_seq_no] with value [x]"),
        ("if_seq_no=-1&if_primary_term=1", "sequence numbers must be non negative. got [-1]."),
        ("version_type=odd", "No version type match [odd]"),
        ("pipeline=p", "pipeline with id [p] does not exist"),
        (
            "timeout=3",
            "failed to parse setting [timeout] with value [3] as a time value: "
            "unit is missing or unrecognized",
        ),
        ("wait_for_active_shards=x", "cannot parse ActiveShardCount[x]"),
        (
            "refrsh=true",
            "request [/books/_doc/1] contains unrecognized parameter: [refrsh] -> did you mean [refresh]?",
        ),
    ],
)
def test_parameters_that_cannot_be(http: httpx.Client, node: MemorySearch, query: str, reason: str) -> None:
    answer = http.put(f"/books/_doc/1?{query}", json={})
    assert reason_of(answer) == (400, "illegal_argument_exception", reason)
    assert node.catalog.indexes() == []


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "parse_exception"),
        (b"  ", "parse_exception"),
        (b"[1]", "document_parsing_exception"),
        (b'{"a":1,"a":2}', "document_parsing_exception"),
        (b'{"a":1', "document_parsing_exception"),
        (b'{"a":"\xff"}', "document_parsing_exception"),
        (b'{"a":' + b"[" * 500 + b"]" * 500 + b"}", "document_parsing_exception"),
    ],
)
def test_bodies_that_are_no_documents(http: httpx.Client, node: MemorySearch, body: bytes, kind: str) -> None:
    status, found, _ = reason_of(http.put("/books/_doc/1", content=body, headers=JSON))
    assert (status, found) == (400, kind)
    assert node.writes == []


def test_a_document_that_does_not_fit_its_mapping(http: httpx.Client) -> None:
    http.put("/books/_doc/1", json={"year": 1815})
    answer = http.put("/books/_doc/2", json={"year": "long ago"})
    assert reason_of(answer)[:2] == (400, "document_parsing_exception")
    assert answer.json()["error"]["caused_by"]["type"] == "illegal_argument_exception"


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (Overloaded("full", 3), 429, "es_rejected_execution_exception"),
        (StorageFull("no room"), 429, "cluster_block_exception"),
        (NotLeader("no leader"), 503, "master_not_discovered_exception"),
        (OutcomeUnknown("gone"), 503, "process_cluster_event_timeout_exception"),
        (ValueError("a secret"), 500, "exception"),
    ],
)
def test_what_the_node_says(
    http: httpx.Client, node: MemorySearch, error: Exception, status: int, kind: str
) -> None:
    node.failing = error
    answer = http.put("/books/_doc/1", json={})
    assert reason_of(answer)[:2] == (status, kind)
    assert "secret" not in answer.text
    assert answer.headers.get("retry-after") == (
        None if status == 500 else str(getattr(error, "retry_after_s", 1))
    )


class TestMany:
    """`_mget`."""

    @pytest.fixture(autouse=True)
    def _documents(self, http: httpx.Client) -> None:
        for number in range(3):
            http.put(f"/books/_doc/{number}", json={"n": number, "m": 0})

    def test_by_ids(self, http: httpx.Client) -> None:
        docs = http.post("/books/_mget?_source=n", json={"ids": ["2", "9", "0"]}).json()["docs"]
        assert [doc.get("_source") for doc in docs] == [{"n": 2}, None, {"n": 0}]
        assert docs[1] == {"_index": "books", "_id": "9", "found": False}

    def test_each_in_its_own_way(self, http: httpx.Client) -> None:
        asked = [
            {"_index": "books", "_id": "1", "_source": {"excludes": ["m"]}},
            {"_index": "books", "_id": "1", "_source": False},
            {"_index": "nope", "_id": "1"},
        ]
        docs = http.request("GET", "/_mget", json={"docs": asked}).json()["docs"]
        assert docs[0]["_source"] == {"n": 1}
        assert "_source" not in docs[1]
        assert docs[2]["error"]["type"] == "index_not_found_exception"

    @pytest.mark.parametrize(
        ("path", "body", "kind"),
        [
            ("/_mget", {}, "action_request_validation_exception"),
            ("/_mget", {"ids": ["1"]}, "action_request_validation_exception"),
            ("/books/_mget", {"docs": [{}]}, "action_request_validation_exception"),
            ("/books/_mget", {"docs": [1]}, "illegal_argument_exception"),
            ("/books/_mget", {"ids": [[]]}, "illegal_argument_exception"),
            ("/books/_mget", {"ids": "1"}, "parsing_exception"),
            ("/books/_mget", {"is": ["1"]}, "parsing_exception"),
            ("/books/_mget", {"docs": [{"_id": "1", "_type": "t"}]}, "parse_exception"),
        ],
    )
    def test_requests_that_cannot_be(self, http: httpx.Client, path: str, body: Any, kind: str) -> None:
        assert reason_of(http.post(path, json=body))[:2] == (400, kind)

    @pytest.mark.anyio
    async def test_very_many_keep_nobody_waiting(self, node: MemorySearch) -> None:
        """Other clients of the port are answered by the thread of the event loop."""
        asked = orjson.dumps({"docs": [{"_id": str(number), "routing": "a"} for number in range(50_000)]})
        transport = httpx.ASGITransport(build_search_app(node, SETTINGS))
        headers = {"content-type": "application/json"}
        async with httpx.AsyncClient(transport=transport, base_url="http://node") as client:
            began, all_began = time.thread_time(), time.process_time()
            answer = await client.post("/books/_mget", content=asked, headers=headers)
            loop_s, all_s = time.thread_time() - began, time.process_time() - all_began
        assert len(answer.json()["docs"]) == 50_000
        assert loop_s < all_s / 4

    def test_no_more_than_there_is_time_for(self, node: MemorySearch) -> None:
        hasty = SETTINGS.model_copy(
            update={"server": SETTINGS.server.model_copy(update={"query_timeout_seconds": 0.01})}
        )
        asked = {"ids": [str(number) for number in range(100_000)]}
        with serving(build_search_app(node, hasty)) as url:
            answer = httpx.post(f"{url}/books/_mget", json=asked, timeout=HANG_S, trust_env=False)
        assert reason_of(answer)[:2] == (503, "timeout_exception")


def test_what_the_mapping_says_of_reading(http: httpx.Client) -> None:
    """Routing that is required, sources that are not kept, fields that are stored."""
    mappings = {"_routing": {"required": True}, "properties": {"a": {"type": "keyword", "store": True}}}
    http.put("/routed", json={"mappings": mappings})
    missing = (400, "routing_missing_exception", "routing is required for [routed]/[1]")
    assert reason_of(http.put("/routed/_doc/1", json={"a": "x"})) == missing
    http.put("/routed/_doc/1?routing=r", json={"a": "x", "b": "y"})
    assert reason_of(http.get("/routed/_doc/1")) == missing
    found = http.get("/routed/_doc/1?routing=r&stored_fields=a,b").json()
    assert (found["fields"], "_source" in found) == ({"a": ["x"]}, False)
    http.put("/unkept", json={"mappings": {"_source": {"enabled": False}}})
    http.put("/unkept/_doc/1", json={"a": 1})
    assert "_source" not in http.get("/unkept/_doc/1").json()
    assert reason_of(http.get("/unkept/_source/1"))[2] == "Source not found [unkept]/[1]"


def test_aliases_stand_for_their_index(http: httpx.Client) -> None:
    http.put("/first", json={"aliases": {"both": {}, "one": {}}})
    http.put("/second", json={"aliases": {"both": {"is_write_index": True}}})
    assert http.put("/one/_doc/1?require_alias=true", json={}).json()["_index"] == "first"
    assert http.get("/one/_doc/1").json()["_index"] == "first"
    assert http.put("/both/_doc/1", json={}).json()["_index"] == "second"
    several = "alias [both] has more than one index associated with it [first, second], "
    several += "can't execute a single index op"
    assert reason_of(http.get("/both/_doc/1")) == (400, "illegal_argument_exception", several)
