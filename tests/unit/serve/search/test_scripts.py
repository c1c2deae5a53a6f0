"""Scripts over HTTP: updates, by query, stored ones."""

from typing import Any

import httpx
import orjson
import pytest

from graphdb.search.catalog.catalog_commands import DocumentWrite
from graphdb.search.segments.operations import Action, Operation
from serve.search.documents import scripted
from tests.support.memory_search import MemorySearch
from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard

COUNT = {"source": "ctx._source.n += params.by", "params": {"by": 2}}


@pytest.fixture(autouse=True)
def _documents(http: httpx.Client) -> None:
    for number in range(4):
        http.put(f"/books/_doc/{number}?routing=r", json={"n": number, "tags": ["a", "b"]})
    http.post("/books/_refresh")


def source(http: httpx.Client, doc_id: str, index: str = "books") -> Any:
    answer = http.get(f"/{index}/_doc/{doc_id}?routing=r").json()
    return answer.get("_source")


def update(http: httpx.Client, doc_id: str, body: Any, more: str = "") -> httpx.Response:
    return http.post(f"/books/_update/{doc_id}?routing=r{more}", json=body)


def test_an_update(http: httpx.Client) -> None:
    answer = update(http, "1", {"script": COUNT}, "&_source=true").json()
    assert (answer["result"], answer["_version"]) == ("updated", 2)
    assert answer["get"]["_source"] == {"n": 3, "tags": ["a", "b"]}
    assert update(http, "1", {"script": "ctx._source.tags.removeIf(t -> t == 'a')"}).status_code == 200
    assert source(http, "1") == {"n": 3, "tags": ["b"]}
    noop = update(http, "1", {"script": "if (ctx._source.tags.contains('b')) { ctx.op = 'none' }"}).json()
    assert (noop["result"], noop["_version"]) == ("noop", 3)
    gone = update(http, "1", {"script": {"source": "ctx.op = 'delete'"}}).json()
    assert gone["result"] == "deleted"
    assert source(http, "1") is None


def test_what_a_script_knows(http: httpx.Client, node: MemorySearch) -> None:
    text = "ctx._source.seen = [ctx._index, ctx._id, ctx._version, ctx._routing, ctx._now, ctx.op]"
    update(http, "1", {"script": text})
    assert source(http, "1")["seen"] == ["books", "1", 1, "r", node.clock_ms, "index"]


def test_upserts(http: httpx.Client) -> None:
    body = {"script": COUNT, "upsert": {"n": 10}}
    created = update(http, "new", body)
    assert (created.status_code, created.json()["result"]) == (201, "created")
    assert source(http, "new") == {"n": 10}
    assert update(http, "new", body).json()["result"] == "updated"
    assert source(http, "new") == {"n": 12}
    scripted = {"scripted_upsert": True, "upsert": {"n": 0}, "script": "ctx._source.op = ctx.op"}
    assert update(http, "other", scripted).status_code == 201
    assert source(http, "other") == {"n": 0, "op": "create"}
    none = update(http, "none", {**scripted, "script": "ctx.op = 'none'"})
    assert none.json()["result"] == "noop"
    assert source(http, "none") is None
    defaults = {"script": "ctx._source.n = 5", "doc_as_upsert": False, "detect_noop": True}
    assert update(http, "new", defaults).json()["result"] == "updated"
    assert source(http, "new") == {"n": 5}
    assert reason_of(update(http, "missing", {"script": COUNT}))[:2] == (404, "document_missing_exception")
    elsewhere = http.post("/fresh/_update/1", json=body)
    assert elsewhere.status_code == 201


@pytest.mark.parametrize(
    ("body", "kind", "reason"),
    [
        ({"script": "ctx._source.n ="}, "illegal_argument_exception", "failed to execute script"),
        ({"script": "ctx._source.x.y = 1"}, "illegal_argument_exception", "failed to execute script"),
        ({"script": "while (true) {}"}, "illegal_argument_exception", "failed to execute script"),
        ({"script": "ctx._source = 1"}, "illegal_argument_exception", "failed to execute script"),
        ({"script": "ctx._source.a = ctx._source"}, "illegal_argument_exception", "failed to execute script"),
        ({"script": COUNT, "doc": {}}, "action_request_validation_exception", "Validation Failed: 1: can't"),
        (
            {"script": COUNT, "doc_as_upsert": True},
            "action_request_validation_exception",
            "Validation Failed: 1: doc must be specified if doc_as_upsert is enabled",
        ),
        ({"script": COUNT, "x": 1}, "x_content_parse_exception", "[UpdateRequest] unknown field [x]"),
        ({"script": {"id": "none"}}, "resource_not_found_exception", "unable to find script [none]"),
        ({"script": {"source": "1", "lang": "groovy"}}, "illegal_argument_exception", "script_lang not supp"),
        ({"scripted_upsert": True, "doc": {}}, "illegal_argument_exception", "[scripted_upsert] needs a"),
    ],
)
def test_what_fails_changes_nothing(http: httpx.Client, body: Any, kind: str, reason: str) -> None:
    _, found, text = reason_of(update(http, "1", body))
    assert found == kind
    assert text.startswith(reason)
    assert source(http, "1") == {"n": 1, "tags": ["a", "b"]}


def test_the_error_shows_the_place(http: httpx.Client) -> None:
    error = update(http, "1", {"script": "ctx._source.x.y = 1"}).json()["error"]["caused_by"]
    assert (error["type"], error["lang"], error["script"]) == (
        "script_exception",
        "painless",
        "ctx._source.x.y = 1",
    )
    assert error["script_stack"] == ["ctx._source.x.y = 1", "                ^---- HERE"]
    assert error["caused_by"]["type"] == "null_pointer_exception"


@pytest.mark.parametrize("at_once", [1, 20, 1 << 24])
def test_bulk_in_order(http: httpx.Client, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """However many of the documents that scripts have made are in memory at a time."""
    monkeypatch.setattr(scripted, "_MADE_BYTES", at_once)
    lines: list[Any] = []
    for _ in range(3):
        lines += [{"update": {"_id": "1", "routing": "r"}}, {"script": COUNT}]
    lines += [{"index": {"_id": "2", "routing": "r"}}, {"n": 50}]
    lines += [{"update": {"_id": "2", "routing": "r"}}, {"script": COUNT}]
    lines += [{"update": {"_id": "3", "routing": "r"}}, {"doc": {"script": "x"}}]
    lines += [{"update": {"_id": "0", "routing": "r"}}, {"script": "ctx.op = 'delete'"}]
    lines += [{"update": {"_id": "9", "routing": "r"}}, {"script": COUNT}]
    content = b"".join(orjson.dumps(line) + b"\n" for line in lines)
    answer = http.post(
        "/books/_bulk", content=content, headers={"Content-Type": "application/x-ndjson"}
    ).json()
    statuses = [(next(iter(item)), next(iter(item.values()))["status"]) for item in answer["items"]]
    assert statuses == [
        ("update", 200), ("update", 200), ("update", 200), ("index", 200), ("update", 200), ("update", 200),
        ("update", 200), ("update", 404),
    ]  # fmt: skip
    found = [source(http, str(number)) for number in range(4)]
    assert [one and one["n"] for one in found] == [None, 7, 52, 3]
    assert found[3]["script"] == "x"
    shown = http.post("/books/_update/3?routing=r&_source=n", json={"script": COUNT}).json()
    assert shown.get("get", {}).get("_source") == ({"n": 5} if at_once > 100 else None)  # too long to show


def test_an_update_meets_another_write(http: httpx.Client, node: MemorySearch) -> None:
    written = node.write
    others = 3

    async def write(writes: Any, refresh: str = "false") -> Any:
        nonlocal others
        if others and any(one.operation.if_seq_no is not None for one in writes):
            others -= 1
            await written([DocumentWrite("books", Operation(Action.INDEX, "1", b'{"n": 100}', "r"))])
        return await written(writes, refresh)

    node.write = write  # type: ignore[method-assign]
    assert update(http, "1", {"script": COUNT}).json()["result"] == "updated"
    assert source(http, "1") == {"n": 102}
    others = 1
    seq_no = http.get("/books/_doc/1?routing=r").json()["_seq_no"]
    conditional = update(http, "1", {"script": COUNT}, f"&if_seq_no={seq_no}&if_primary_term=1")
    assert reason_of(conditional)[:2] == (409, "version_conflict_engine_exception")
    stale = update(http, "1", {"script": COUNT}, f"&if_seq_no={seq_no}&if_primary_term=1")
    assert reason_of(stale)[:2] == (409, "version_conflict_engine_exception")


def test_by_query(http: httpx.Client) -> None:
    script = "if (ctx._source.n == 0) ctx.op = 'delete'; else if (ctx._source.n == 1) ctx.op = 'noop'"
    body = {"query": {"match_all": {}}, "script": f"{script}; else ctx._source.n *= 10"}
    answer = http.post("/books/_update_by_query?refresh", json=body).json()
    assert {name: answer[name] for name in ("total", "updated", "deleted", "noops")} == {
        "total": 4, "updated": 2, "deleted": 1, "noops": 1,
    }  # fmt: skip
    assert [one and one["n"] for one in map(lambda n: source(http, str(n)), range(4))] == [None, 1, 20, 30]
    for script, kind in (
        ("ctx._id = 'x'", "illegal_argument_exception"),
        ("ctx.op = 'junk'", "illegal_argument_exception"),
        ("ctx._source.x.y", "script_exception"),
        ("x", "script_exception"),
    ):
        refused = http.post("/books/_update_by_query", json={"script": script})
        assert reason_of(refused)[:2] == (400, kind)
    assert http.post("/books/_delete_by_query", json={**body}).status_code == 400


def test_reindexing(http: httpx.Client) -> None:
    script = """
        ctx._id = 'd' + ctx._id; ctx._source.n++; ctx._routing = null;
        if (ctx._source.n == 2) { ctx.op = 'noop' } else if (ctx._source.n == 3) { ctx._index = 'more' }
    """
    body = {"source": {"index": "books"}, "dest": {"index": "copies"}, "script": {"source": script}}
    answer = http.post("/_reindex?refresh", json=body).json()
    assert (answer["created"], answer["noops"]) == (3, 1)
    assert http.get("/copies/_doc/d0").json()["_source"]["n"] == 1
    assert http.get("/copies/_doc/d3").json()["_source"]["n"] == 4
    assert http.get("/more/_doc/d2").json()["_source"]["n"] == 3
    assert http.get("/copies/_doc/d1").status_code == 404


def test_stored_scripts(http: httpx.Client) -> None:
    stored = {"script": {"lang": "painless", "source": "doc['n'].value > params.least"}}
    assert http.get("/_scripts/more").json() == {"_id": "more", "found": False}
    assert http.put("/_scripts/more", json=stored).json() == {"acknowledged": True}
    assert http.get("/_scripts/more").json()["script"] == stored["script"]
    query = {"script": {"script": {"id": "more", "params": {"least": 1}}}}
    assert http.post("/books/_count", json={"query": query}).json()["count"] == 2
    found = http.post("/books/_search", json={"query": {"bool": {"filter": [query]}}, "sort": "n"}).json()
    assert [hit["_id"] for hit in found["hits"]["hits"]] == ["2", "3"]
    assert http.post("/books/_validate/query", json={"query": query}).json()["valid"]
    explained = http.post("/books/_explain/3?routing=r", json={"query": query}).json()
    assert explained["matched"]
    http.put("/_scripts/add", json={"script": {"lang": "painless", "source": COUNT["source"]}})
    update(http, "1", {"script": {"id": "add", "params": {"by": 5}}})
    assert source(http, "1")["n"] == 6
    assert http.delete("/_scripts/more").json() == {"acknowledged": True}
    assert reason_of(http.delete("/_scripts/more"))[:2] == (404, "resource_not_found_exception")
    missing = http.post("/books/_search", json={"query": query})
    assert missing.status_code == 404
    for body, kind in (
        ({"script": {"lang": "painless", "source": "1 +"}}, "script_exception"),
        ({"script": {"lang": "python", "source": "1"}}, "illegal_argument_exception"),
        ({"script": {"source": "1"}}, "illegal_argument_exception"),
        ({}, "illegal_argument_exception"),
    ):
        assert reason_of(http.put("/_scripts/bad", json=body))[:2] == (400, kind)


def test_a_search_fails_with_the_script(http: httpx.Client) -> None:
    query = {"script": {"script": "doc['n'].value / 0 > 1"}}
    error = http.post("/books/_search", json={"query": query}).json()["error"]
    assert error["type"] == "search_phase_execution_exception"
    reason = error["failed_shards"][0]["reason"]
    assert (reason["type"], reason["reason"]) == ("script_exception", "runtime error")
    assert reason["caused_by"] == {"type": "arithmetic_exception", "reason": "/ by zero"}
    compiling = http.post("/books/_search", json={"query": {"script": {"script": "1 +"}}})
    assert compiling.json()["error"]["root_cause"][0]["type"] == "script_exception"
    assert compiling.status_code == 400


def scores(http: httpx.Client, query: Any) -> dict[str, float]:
    """Of all documents, by id."""
    answer = http.post("/d/_search?size=20", json={"query": query}).raise_for_status()
    return {hit["_id"]: hit["_score"] for hit in answer.json()["hits"]["hits"]}


def scripted_scores(http: httpx.Client, source: str, params: Any = None) -> dict[str, float]:
    script = {"source": source, "params": params or {}}
    return scores(http, {"script_score": {"query": {"match_all": {}}, "script": script}})


@pytest.mark.parametrize("kind", ["Linear", "Exp", "Gauss"])
def test_decay_in_scripts_is_that_of_function_score(http: httpx.Client, kind: str) -> None:
    fields = {"n": {"type": "integer"}, "at": {"type": "date"}, "place": {"type": "geo_point"}}
    http.put("/d", json={"mappings": {"properties": fields}})
    for number in range(20):
        document = {
            "n": 7 * number,
            "at": f"2020-01-{number + 1:02}T12:00:00Z",
            "place": [number, 3 * number],
        }
        http.put(f"/d/_doc/{number}", json=document)
    http.post("/d/_refresh")
    for name, field, origin, scale, offset in (
        ("Numeric", "n", 50, 20, 5),
        ("Date", "at", "2020-01-08T00:00:00Z", "3d", "12h"),
        ("Geo", "place", "20,5", "900km", "50km"),
    ):
        about = {"origin": origin, "scale": scale, "offset": offset, "decay": 0.4}
        arguments = ", ".join(f"params.{member}" for member in about)
        found = scripted_scores(http, f"decay{name}{kind}({arguments}, doc['{field}'].value)", about)
        wanted = scores(http, {"function_score": {kind.lower(): {field: about}}})
        assert found == pytest.approx(wanted, rel=1e-5), name


def test_random_scores_of_scripts_are_those_of_function_score(http: httpx.Client) -> None:
    for number in range(20):
        http.put(f"/d/_doc/{number}", json={"k": number % 5})
    http.post("/d/_refresh")
    found = scripted_scores(http, "randomScore(100)")
    seeded = {"random_score": {"seed": 100, "field": "_seq_no"}}
    assert found == pytest.approx(scores(http, {"function_score": seeded}))
    assert found == scripted_scores(http, "randomScore(100, '_seq_no')")
    assert len(set(found.values())) == 20
    assert found != scripted_scores(http, "randomScore(101)")
    assert len(set(scripted_scores(http, "randomScore(7, 'k')").values())) == 5


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("decayNumericExp(1, 0, 0, 0.5, 3)", "a decay is between 0 and 1"),
        ("decayDateExp('2020', '1x', '0', 0.5, doc['at'].value)", "failed to parse [1x]"),
        ("decayGeoExp('1,1', '1km', '0', 0.5, 3)", "a point is expected"),
    ],
)
def test_decay_that_means_nothing_is_refused(http: httpx.Client, source: str, reason: str) -> None:
    http.put("/d/_doc/1?refresh", json={"at": "2020-01-01"})
    query = {"script_score": {"query": {"match_all": {}}, "script": source}}
    answer = http.post("/d/_search", json={"query": query})
    assert answer.status_code == 400
    assert reason in answer.text
