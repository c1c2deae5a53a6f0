"""The official Python client writes, reads and deletes documents, unchanged."""

from collections.abc import Iterator
from typing import Any

import pytest
from elasticsearch import BadRequestError, ConflictError, Elasticsearch, NotFoundError, helpers

from tests.support.timing import HANG_S


@pytest.fixture(params=[False, True], ids=["plain", "compressed"])
def es(url: str, request: pytest.FixtureRequest) -> Iterator[Elasticsearch]:
    with Elasticsearch(url, http_compress=request.param, request_timeout=HANG_S) as client:
        yield client


def test_the_life_of_a_document(es: Elasticsearch) -> None:
    made = es.index(index="books", id="1", document={"title": "Emma", "year": 1815}, refresh=True)
    assert (made.meta.status, made["result"], made["_version"]) == (201, "created", 1)
    assert es.exists(index="books", id="1")
    assert not es.exists(index="books", id="2")
    assert es.get(index="books", id="1", source_includes=["year"])["_source"] == {"year": 1815}
    assert es.get_source(index="books", id="1") == {"title": "Emma", "year": 1815}
    assert es.exists_source(index="books", id="1")
    changed = es.update(index="books", id="1", doc={"year": 1816}, source=True)
    assert changed["get"]["_source"] == {"title": "Emma", "year": 1816}
    assert es.update(index="books", id="2", doc={}, upsert={"title": "?"})["result"] == "created"
    docs = es.mget(index="books", ids=["1", "2", "3"])["docs"]
    assert [doc["found"] for doc in docs] == [True, True, False]
    assert es.delete(index="books", id="1", refresh="wait_for")["result"] == "deleted"
    with pytest.raises(NotFoundError) as missing:
        es.get(index="books", id="1")
    assert missing.value.body == {"_index": "books", "_id": "1", "found": False}


def test_errors_are_the_clients_own(es: Elasticsearch) -> None:
    es.create(index="books", id="1", document={"year": 1815})
    with pytest.raises(ConflictError) as conflict:
        es.create(index="books", id="1", document={})
    assert conflict.value.error == "version_conflict_engine_exception"
    with pytest.raises(ConflictError):
        es.index(index="books", id="1", document={}, if_seq_no=9, if_primary_term=1)
    with pytest.raises(BadRequestError) as unfit:
        es.index(index="books", document={"year": "long ago"})
    assert unfit.value.error == "document_parsing_exception"
    with pytest.raises(NotFoundError) as missing:
        es.get(index="nope", id="1")
    assert missing.value.error == "index_not_found_exception"


def test_the_helpers(es: Elasticsearch) -> None:
    rows = (
        {"_index": "books", "_id": str(number), "n": number, "text": "x" * 100} for number in range(2_500)
    )
    assert helpers.bulk(es, rows, chunk_size=1_000, refresh=True) == (2_500, [])
    mixed: list[dict[str, Any]] = [
        {"_op_type": "create", "_index": "books", "_id": "1", "n": 0},
        {"_op_type": "update", "_index": "books", "_id": "2", "doc": {"n": -2}},
        {"_op_type": "delete", "_index": "books", "_id": "3"},
    ]
    done, errors = helpers.bulk(es, mixed, raise_on_error=False)
    assert done == 2
    assert isinstance(errors, list)
    assert [next(iter(error.values()))["status"] for error in errors] == [409]
    assert es.get_source(index="books", id="2")["n"] == -2
    assert [
        ok
        for ok, _ in helpers.parallel_bulk(es, ({"_index": "b", "n": n} for n in range(300)), chunk_size=50)
    ] == [True] * 300


def test_many_at_once(es: Elasticsearch) -> None:
    helpers.bulk(es, ({"_index": "books", "_id": str(n), "n": n} for n in range(100)), refresh=True)
    below = {"range": {"n": {"lt": 60}}}
    updated = es.update_by_query(index="books", query=below, refresh=True)
    assert (updated["total"], updated["updated"]) == (60, 60)
    copied = es.reindex(source={"index": "books", "query": below}, dest={"index": "copies"}, refresh=True)
    assert copied["created"] == 60
    deleted = es.delete_by_query(index="books", query=below, max_docs=10, conflicts="proceed")
    assert deleted["deleted"] == 10
