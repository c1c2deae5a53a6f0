"""`_bulk`: every action, errors of items and of the whole, pieces, compression."""

import gzip
import json
from collections.abc import Sequence
from itertools import product
from typing import Any

import httpx
import orjson
import pytest

from graphdb.search.catalog.catalog_commands import DocumentWrite, WriteResult
from graphdb.search.segments.operations import Action, OperationResult, Outcome
from serve.search.documents import bulk
from serve.search.documents.bulk import ItemTexts, succeeded
from serve.search.documents.bulk_items import Lines
from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.memory_search import MemorySearch
from tests.unit.search.catalog.catalogs import Commands
from tests.unit.serve.search.conftest import SETTINGS, one_shard, reason_of

pytestmark = one_shard

NDJSON = {"Content-Type": "application/x-ndjson"}
SHARDS = {"total": 2, "successful": 1, "failed": 0}


def lines(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def send(http: httpx.Client, body: bytes, path: str = "/_bulk") -> httpx.Response:
    return http.post(path, content=body, headers=NDJSON)


def test_a_byte_order_mark_is_passed_over(http: httpx.Client) -> None:
    body = lines({"index": {"_id": "1"}}, {"n": 1})
    answer = send(http, b"\xef\xbb\xbf" + body, "/books/_bulk").json()
    assert [item["index"]["result"] for item in answer["items"]] == ["created"]
    answer = send(http, lines({"index": {"_id": "2"}}) + b"\xef\xbb\xbf" + lines({"n": 1}), "/books/_bulk")
    assert answer.json()["errors"] is True  # within the body it is no mark


def test_every_action_in_order(http: httpx.Client) -> None:
    answer = send(
        http,
        lines(
            {"index": {"_id": "1"}},
            {"n": 1},
            {"create": {"_id": "1"}},
            {"n": 2},
            {"update": {"_id": "1"}},
            {"doc": {"m": 3}, "_source": True},
            {"delete": {"_id": "1", "_index": "books"}},
            {"delete": {"_id": "1"}},
        ),
        "/books/_bulk?refresh=wait_for",
    )
    assert answer.status_code == 200
    body = answer.json()
    assert body["errors"] is True
    assert isinstance(body["took"], int)
    where = {"_index": "books", "_id": "1"}
    assert body["items"] == [
        {
            "index": {**where, "_version": 1, "result": "created", "_shards": SHARDS, "_seq_no": 0}
            | {"_primary_term": 1, "status": 201}
        },
        {
            "create": {
                **where,
                "status": 409,
                "error": {
                    "type": "version_conflict_engine_exception",
                    "reason": "[1]: version conflict, document already exists (current version [1])",
                    "shard": "0",
                    "index": "books",
                },
            }
        },
        {
            "update": {**where, "_version": 2, "result": "updated", "_shards": SHARDS, "_seq_no": 1}
            | {"_primary_term": 1, "status": 200}
            | {"get": {"_seq_no": 1, "_primary_term": 1, "found": True, "_source": {"n": 1, "m": 3}}}
        },
        {
            "delete": {**where, "_version": 3, "result": "deleted", "_shards": SHARDS, "_seq_no": 2}
            | {"_primary_term": 1, "status": 200}
        },
        {
            "delete": {**where, "_version": 4, "result": "not_found", "_shards": SHARDS, "_seq_no": 3}
            | {"_primary_term": 1, "status": 404}
        },
    ]


def test_no_errors(http: httpx.Client) -> None:
    answer = send(http, lines({"index": {"_index": "books"}}, {}, {"index": {"_index": "b", "_id": 7}}, {}))
    body = answer.json()
    assert body["errors"] is False
    assert len(body["items"][0]["index"]["_id"]) == 20
    assert body["items"][1]["index"]["_id"] == "7"


def test_one_bad_item_spoils_no_other(http: httpx.Client) -> None:
    body = lines({"index": {"_id": "1"}}, {"n": 1}, {"index": {"_id": "2"}}, {"n": "many"})
    body += lines({"index": {"_id": "3"}}) + b'{"n":1,"n":2}\n' + lines({"index": {"_id": "4"}}) + b"{\n"
    body += lines({"index": {"_id": "5", "pipeline": "p"}}, {}, {"index": {"_id": ""}}, {})
    body += lines({"index": {"_id": "6", "if_seq_no": "x"}}, {}, {"index": {"_id": "7"}}, {"n": 7})
    items = send(http, body, "/books/_bulk").json()["items"]
    assert [item["index"]["status"] for item in items] == [201, 400, 400, 400, 400, 400, 400, 201]
    assert [item["index"]["error"]["type"] for item in items[1:-1]] == [
        *["document_parsing_exception"] * 3,
        *["illegal_argument_exception"] * 3,
    ]
    assert [http.get(f"/books/_doc/{number}").status_code for number in (1, 3, 4, 7)] == [200, 404, 404, 200]


def test_what_the_address_says_holds_for_all(http: httpx.Client) -> None:
    body = lines({"index": {"_id": "1"}}, {}, {"index": {"_id": "2", "routing": "own"}}, {})
    send(http, body, "/books/_bulk?routing=shared&refresh=true")
    assert [http.get(f"/books/_doc/{number}").json()["_routing"] for number in (1, 2)] == ["shared", "own"]
    aliased = send(http, lines({"index": {}}, {}), "/books/_bulk?require_alias=true").json()
    assert aliased["items"][0]["index"]["error"]["type"] == "index_not_found_exception"


def test_a_deletion_in_an_index_that_is_made_before(http: httpx.Client, node: MemorySearch) -> None:
    body = lines({"delete": {"_index": "gone", "_id": "1"}}, {"index": {"_index": "here", "_id": "1"}}, {})
    items = send(http, body + lines({"delete": {"_index": "here", "_id": "1"}})).json()["items"]
    assert [next(iter(item.values()))["status"] for item in items] == [404, 201, 200]
    assert [index.name for index in node.catalog.indexes()] == ["here"]


MALFORMED = "Malformed action/metadata line [1]"


@pytest.mark.parametrize(
    ("body", "kind", "reason"),
    [
        (b"", "parse_exception", "request body is required"),
        (b"\n", "action_request_validation_exception", "Validation Failed: 1: no requests added;"),
        (
            b'{"index":{}}\n{}',
            "illegal_argument_exception",
            "The bulk request must be terminated by a newline [\\n]",
        ),
        (
            b'{"index":{}}\n{}\n',
            "action_request_validation_exception",
            "Validation Failed: 1: index is missing;",
        ),
        (
            b'{"delete":{"_index":"a"}}\n',
            "action_request_validation_exception",
            "Validation Failed: 1: id is missing;",
        ),
        (
            b"[]\n",
            "illegal_argument_exception",
            f"{MALFORMED}, expected START_OBJECT but found [START_ARRAY]",
        ),
        (b"{}\n", "illegal_argument_exception", f"{MALFORMED}, expected FIELD_NAME but found [END_OBJECT]"),
        (
            b'{"index":1}\n',
            "illegal_argument_exception",
            f"{MALFORMED}, expected START_OBJECT or END_OBJECT but found [VALUE_NUMBER]",
        ),
        (
            b'{"index":{},"create":{}}\n',
            "illegal_argument_exception",
            f"{MALFORMED}, expected END_OBJECT but found [FIELD_NAME]",
        ),
        (
            b'{"upsert":{}}\n',
            "illegal_argument_exception",
            f"{MALFORMED}, expected field [create], [delete], [index] or [update] but found [upsert]",
        ),
        (
            b'{"index":{"_type":"t"}}\n',
            "illegal_argument_exception",
            "Action/metadata line [1] contains an unknown parameter [_type]",
        ),
        (
            b'{"index":{"_id":[1]}}\n',
            "illegal_argument_exception",
            f"{MALFORMED}, expected a simple value for field [_id] but found [START_ARRAY]",
        ),
        (b'{"index"\n', "illegal_argument_exception", MALFORMED),
        (
            b'{"index":{"_index":"a"}}\n',
            "illegal_argument_exception",
            f"{MALFORMED}, expected a document line after [index] but found the end",
        ),
    ],
)
def test_what_is_no_bulk_request(
    http: httpx.Client, node: MemorySearch, body: bytes, kind: str, reason: str
) -> None:
    assert reason_of(send(http, body)) == (400, kind, reason)
    assert node.writes == []


def test_a_short_request_is_refused_as_a_whole(http: httpx.Client, node: MemorySearch) -> None:
    body = lines({"index": {"_index": "a"}}, {}) + b"what?\n"
    assert reason_of(send(http, body))[1] == "illegal_argument_exception"
    assert node.catalog.indexes() == []


def test_a_long_request_is_written_in_pieces(
    http: httpx.Client, node: MemorySearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "PIECE_BYTES", 100_000)
    body = b"".join(lines({"index": {"_id": str(n)}}, {"n": n, "text": "x" * 900}) for n in range(1_000))
    answer = send(http, body, "/books/_bulk").json()
    assert answer["errors"] is False
    assert [item["index"]["_id"] for item in answer["items"]] == [str(n) for n in range(1_000)]
    assert sum(node.writes) == 1_000
    assert len(node.writes) >= 10
    assert max(node.writes) <= 100


def test_only_what_is_wanted_of_the_items(http: httpx.Client) -> None:
    body = lines(
        {"index": {"_id": "1"}}, {"n": 1}, {"update": {"_id": "1", "_source": True}}, {"doc": {"m": 2}}
    )
    body += lines({"index": {"_id": "2"}}, {"n": "many"})
    failed = send(http, body, "/books/_bulk?filter_path=errors,items.*.error.type").json()
    assert failed == {"errors": True, "items": [{"index": {"error": {"type": "document_parsing_exception"}}}]}
    sources = send(http, body, "/books/_bulk?filter_path=**._source.n,-items.index").json()
    assert sources == {"items": [{"update": {"get": {"_source": {"n": 1}}}}]}
    assert send(http, body, "/books/_bulk?filter_path=nothing").json() == {}


def test_compressed_requests(http: httpx.Client) -> None:
    body = gzip.compress(lines({"index": {"_index": "a", "_id": "1"}}, {}))
    answer = http.post("/_bulk", content=body, headers={**NDJSON, "Content-Encoding": "gzip"})
    assert answer.json()["errors"] is False
    damaged = http.post("/_bulk", content=body[:-5], headers={**NDJSON, "Content-Encoding": "gzip"})
    assert reason_of(damaged)[:2] == (400, "illegal_argument_exception")
    strange = http.post("/_bulk", content=body, headers={**NDJSON, "Content-Encoding": "br"})
    assert strange.status_code == 415


def test_a_request_over_the_limit(http: httpx.Client, node: MemorySearch) -> None:
    body = lines({"index": {"_index": "a"}}) + b" " * 32_000_000 + b"\n"
    assert reason_of(send(http, body))[:2] == (413, "content_too_long_exception")
    assert node.writes == []


@pytest.mark.parametrize("kept_bytes", [0, 1 << 30])
def test_items_are_alike_whether_values_are_kept_or_not(
    node: MemorySearch, monkeypatch: pytest.MonkeyPatch, kept_bytes: int
) -> None:
    given: list[bool] = []
    write = node.write

    async def noted(writes: Sequence[DocumentWrite], refresh: str = "false") -> list[WriteResult]:
        given.extend(one.operation.value is not None for one in writes)
        return await write(writes, refresh)

    monkeypatch.setattr(bulk, "KEPT_BYTES_MAX", kept_bytes)
    monkeypatch.setattr(node, "write", noted)
    body = lines({"index": {"_id": "1"}}, {"n": 1, "t": "a b"}, {"create": {"_id": "1"}}, {})
    body += lines({"update": {"_id": "1"}}, {"doc": {"t": "c"}}, {"delete": {"_id": "1"}})
    with serving(build_search_app(node, SETTINGS)) as url, httpx.Client(base_url=url) as http:
        first = send(http, body, "/books/_bulk").json()
        assert given == [kept_bytes > 0, kept_bytes > 0, False, False]
        assert [one["status"] for item in first["items"] for one in item.values()] == [201, 409, 200, 200]
        again = send(http, body, "/books/_bulk").json()  # the room is free again
    assert given[4:] == given[:4]
    assert [one["_seq_no"] for item in again["items"] for one in item.values() if "_seq_no" in one] == [
        3,
        4,
        5,
    ]


@pytest.mark.parametrize("refresh", ["false", "true"])
def test_the_text_of_an_item_is_that_of_its_object(refresh: str) -> None:
    commands = Commands("plain", "50%d-of_%b")
    texts = ItemTexts(commands.catalog, refresh)
    for index in ("plain", "50%d-of_%b", "gone"):
        for action, outcome in product(Action, Outcome):
            for doc_id, version, seq_no in [("1", 1, 0), ('"_id":""%s\\é', 2**53, 7)]:
                done = OperationResult(action, doc_id, outcome, version, seq_no)
                item = succeeded(commands.catalog, WriteResult(index, done), refresh)
                assert texts.text(WriteResult(index, done)) == orjson.dumps(item)


def test_lines_are_cut_wherever_the_pieces_end() -> None:
    text = b"a\n\nbcd\ne f\n"
    for size in range(1, len(text) + 1):
        cutter = Lines(100)
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        assert [line for piece in pieces for line in cutter.feed(piece)] == [b"a", b"", b"bcd", b"e f"]
        cutter.check_complete()


def test_documents_together_are_what_each_is_alone(http: httpx.Client) -> None:
    """With arrays of numbers: vectors, others, wrong ones, and of documents that are there."""
    vector = [round(number / 7 - 1, 4) for number in range(16)]
    documents: list[dict[str, Any]] = [{"v": [one + n for one in vector], "n": n} for n in range(20)]
    documents[3]["t"], documents[4]["t"], documents[5]["new"] = "grey owl", "GREY é", vector
    documents[6]["v"], documents[7]["v"], documents[8]["v"] = vector[1:], [0.0] * 16, [*vector[:-1], 1e39]
    documents[9]["n"], documents[10]["v"], documents[11] = vector, None, {"new": vector}
    documents[12]["_allow_sids"] = vector
    ids = [str(number) for number in range(20)]
    ids[14], ids[15] = ids[2], ids[13]
    properties = {"v": {"type": "dense_vector", "dims": 16}, "t": {"type": "text"}}
    body = [
        lines({"index": {"_id": doc_id}}, document) for doc_id, document in zip(ids, documents, strict=True)
    ]
    found = []
    for index, bodies in (("together", [b"".join(body)]), ("alone", body)):
        http.put(f"/{index}", json={"mappings": {"properties": properties}}).raise_for_status()
        items = [item for one in bodies for item in send(http, one, f"/{index}/_bulk").json()["items"]]
        http.post(f"/{index}/_refresh").raise_for_status()
        asked = {"query": {"match_all": {}}, "size": 50, "seq_no_primary_term": True, "sort": ["_doc"]}
        hits = http.post(f"/{index}/_search", json=asked).json()["hits"]
        near = {"knn": {"field": "v", "query_vector": vector, "k": 10, "num_candidates": 20}}
        nearest = http.post(f"/{index}/_search", json=near).json()["hits"]
        mapping = http.get(f"/{index}/_mapping").json()[index]
        found.append(json.dumps([items, hits, nearest, mapping]).replace(index, "i"))
    assert found[0] == found[1]
    statuses = [item["index"]["status"] for item in json.loads(found[0])[0]]
    assert [place for place, status in enumerate(statuses) if status == 400] == [6, 7, 8, 12]
    assert statuses[14] == statuses[15] == 200
