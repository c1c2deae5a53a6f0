"""`_clone`, `_split`, `_shrink`, `_recovery`, `_shard_stores`, and what the blocks of indexes keep out."""

import asyncio
from typing import Any

import httpx
import pytest

from graphdb.search.catalog.filling import left_unfilled
from tests.support.memory_search import MemorySearch
from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard


@pytest.fixture
def books(http: httpx.Client) -> httpx.Client:
    """Two shards, thirty documents, one of which has a version and a routing of its own; no more writes."""
    http.put(
        "/books",
        json={
            "settings": {"number_of_shards": 2, "number_of_replicas": 0},
            "mappings": {"properties": {"n": {"type": "keyword"}}},
            "aliases": {"all": {}},
        },
    )
    http.put("/_ingest/pipeline/mark", json={"processors": [{"set": {"field": "marked", "value": 1}}]})
    for number in range(30):
        http.put(f"/books/_doc/{number}", json={"n": number})
    http.put("/books/_doc/again?routing=r&version=12&version_type=external", json={"n": "again"})
    http.put("/books/_settings", json={"index.blocks.write": True, "index.final_pipeline": "mark"})
    return http


def count(http: httpx.Client, index: str) -> Any:
    http.post(f"/{index}/_refresh")
    return http.get(f"/{index}/_count").json()["count"]


@pytest.mark.parametrize(("kind", "many"), [("_clone", 2), ("_split", 4), ("_shrink", 1)])
def test_an_index_in_other_shards(books: httpx.Client, kind: str, many: int) -> None:
    books.put("/_template/t", json={"index_patterns": ["more*"], "aliases": {"not-this": {}}})
    body = {"settings": {"number_of_shards": many, "refresh_interval": "5s"}, "aliases": {"new": {}}}
    answer = books.put(f"/books/{kind}/more", json=body).json()
    assert answer == {"acknowledged": True, "shards_acknowledged": True, "index": "more"}
    shown = books.get("/more").json()["more"]
    settings = shown["settings"]["index"]
    assert shown["aliases"] == {"new": {}}  # neither the source's nor a template's
    assert shown["mappings"] == books.get("/books").json()["books"]["mappings"]
    assert (settings["number_of_shards"], settings["refresh_interval"]) == (str(many), "5s")
    assert settings["blocks"] == {"write": "true"}
    assert settings["final_pipeline"] == "mark"
    assert "resize" not in settings
    assert count(books, "more") == count(books, "books") == 31
    moved = books.get("/more/_doc/again?routing=r").json()
    assert (moved["_version"], moved["_source"]) == (12, {"n": "again"})
    # copied as it was: the final pipeline is for new documents
    assert books.get("/more/_doc/8").json()["_source"] == books.get("/books/_doc/8").json()["_source"]
    assert books.put("/more/_doc/x", json={}).status_code == 403
    books.put("/more/_settings", json={"index.blocks.write": None})
    assert books.put("/more/_doc/x", json={}).status_code == 201


@pytest.mark.parametrize(
    ("path", "settings", "kind"),
    [
        ("/books/_clone/more", {"number_of_shards": 4}, "illegal_argument_exception"),
        ("/books/_clone/books", {}, "resource_already_exists_exception"),
        ("/none/_clone/more", {}, "index_not_found_exception"),
        ("/books/_split/more", {}, "action_request_validation_exception"),
        ("/books/_split/more", {"number_of_shards": 3}, "illegal_state_exception"),
        ("/books/_split/more", {"number_of_shards": 1}, "illegal_argument_exception"),
        ("/books/_split/more", {"number_of_routing_shards": 8}, "illegal_argument_exception"),
        ("/books/_shrink/more", {"number_of_shards": 4}, "illegal_argument_exception"),
        ("/books/_clone/more", {"blocks.read_only": True}, "action_request_validation_exception"),
        ("/books/_clone/more", {"nonsense": 1}, "illegal_argument_exception"),
        ("/books/_clone/More", {}, "invalid_index_name_exception"),
    ],
)
def test_what_cannot_be(books: httpx.Client, path: str, settings: dict[str, Any], kind: str) -> None:
    assert reason_of(books.put(path, json={"settings": settings}))[1] == kind
    assert books.head("/more").status_code == 404


def test_only_what_nobody_writes_to_is_copied(books: httpx.Client) -> None:
    books.put("/books/_settings", json={"index.blocks.write": None})
    refused = reason_of(books.put("/books/_clone/more"))
    assert refused[1] == "illegal_state_exception"
    assert "must be read-only" in refused[2]


def test_a_size_decides_how_many_shards_are_left(books: httpx.Client) -> None:
    for size, shards in (("1b", "2"), ("1gb", "1")):
        books.put("/books/_shrink/more", json={"max_primary_shard_size": size})
        settings = books.get("/more/_settings").json()["more"]["settings"]["index"]
        assert settings["number_of_shards"] == shards
        books.delete("/more")


def test_an_index_that_cannot_be_filled_is_taken_back(books: httpx.Client, node: MemorySearch) -> None:
    write = node.write

    async def failing(*_: Any) -> Any:
        raise RuntimeError("the disk is full")

    node.write = failing  # type: ignore[assignment, method-assign]
    assert books.put("/books/_clone/more").status_code == 500
    node.write = write  # type: ignore[method-assign]
    assert books.head("/more").status_code == 404
    assert books.put("/books/_clone/more").status_code == 200


def test_until_it_is_filled_an_index_says_who_fills_it(books: httpx.Client, node: MemorySearch) -> None:
    write, seen = node.write, list[Any]()

    async def watched(*given: Any) -> Any:
        (new,) = node.filling
        seen.append((left_unfilled(node.catalog.state, 1, set())[0].uuid == new, node.filling == {new}))
        copying = await asyncio.to_thread(books.post, "/more/_clone/third")
        seen.append("is being filled" in reason_of(copying)[2])
        return await write(*given)

    node.write = watched  # type: ignore[assignment, method-assign]
    assert books.put("/books/_clone/more").status_code == 200
    assert seen[:2] == [(True, True), True]
    assert left_unfilled(node.catalog.state, 1, node.filling) == []
    assert node.filling == set()


def test_an_index_that_is_deleted_while_it_is_filled_stays_away(
    books: httpx.Client, node: MemorySearch
) -> None:
    write = node.write

    async def late(*given: Any) -> Any:
        assert (await asyncio.to_thread(books.delete, "/more")).status_code == 200
        return await write(*given)

    node.write = late  # type: ignore[assignment, method-assign]
    assert reason_of(books.put("/books/_clone/more"))[:2] == (404, "index_not_found_exception")
    node.write = write  # type: ignore[method-assign]
    assert books.head("/more").status_code == 404
    assert books.put("/books/_clone/more").status_code == 200
    assert books.get("/more").json()["more"]["aliases"] == {}


def test_nobody_else_says_who_fills_an_index(books: httpx.Client) -> None:
    settings = {"index.resize.filled_by": "1"}
    assert reason_of(books.put("/books/_settings", json=settings))[:2] == (400, "illegal_argument_exception")
    for path in ("/new", "/books/_clone/new"):
        assert books.put(path, json={"settings": settings}).status_code == 400
        assert books.head("/new").status_code == 404


def test_recoveries_and_stores(books: httpx.Client) -> None:
    shards = books.get("/books/_recovery?detailed&human").json()["books"]["shards"]
    assert [(one["id"], one["stage"], one["type"]) for one in shards] == [
        (0, "DONE", "EMPTY_STORE"),
        (1, "DONE", "EMPTY_STORE"),
    ]
    assert shards[0]["index"]["files"]["details"] == []
    rows = books.get("/_cat/recovery/books?format=json").json()
    assert books.get("/_cat/recovery?index=bo*,none&format=json").json() == rows
    assert books.get("/_cat/recovery?index=none&format=json").json() == []
    assert [(row["shard"], row["stage"]) for row in rows] == [("0", "done"), ("1", "done")]
    assert books.get("/books/_shard_stores").json() == {"indices": {}}  # none lacks a copy
    stores = books.get("/books/_shard_stores?status=green").json()["indices"]["books"]["shards"]
    assert [one["stores"][0]["allocation"] for one in stores.values()] == ["primary", "primary"]
    assert books.get("/books/_shard_stores?status=blue").status_code == 400


BLOCKED = (403, "cluster_block_exception")


def test_blocks(books: httpx.Client) -> None:
    def put(**blocks: Any) -> None:
        settings = {f"index.blocks.{name}": value for name, value in blocks.items()}
        assert books.put("/books/_settings", json=settings).status_code == 200

    put(write=None, read=True)
    for path in ("/books/_search", "/books/_count", "/books/_doc/1"):
        assert reason_of(books.get(path))[:2] == BLOCKED, path
    assert books.put("/books/_doc/new", json={}).status_code == 201
    for block in ("read_only", "metadata"):
        put(read=None, read_only=None, metadata=None)
        put(**{block: True})
        assert books.get("/books/_count").status_code == 200
        assert reason_of(books.put("/books/_mapping", json={"properties": {}}))[:2] == BLOCKED
        assert reason_of(books.put("/books/_alias/other"))[:2] == BLOCKED
        assert reason_of(books.delete("/books"))[:2] == BLOCKED
        assert reason_of(books.put("/books/_settings", json={"refresh_interval": "1s"}))[:2] == BLOCKED
    put(metadata=None, read_only_allow_delete=True)
    assert reason_of(books.put("/books/_doc/more", json={}))[:2] == (429, "cluster_block_exception")
    assert books.delete("/books").status_code == 200
