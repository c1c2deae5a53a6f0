"""The official client searches, counts, scrolls, explains, unchanged."""

from collections.abc import Iterator

import pytest
from elasticsearch import BadRequestError, Elasticsearch, NotFoundError, helpers

from tests.support.memory_search import MemorySearch
from tests.support.timing import HANG_S
from tests.unit.serve.search.conftest import one_shard

JSON = {"content-type": "application/json", "accept": "application/json"}
FIELDS = {"t": {"type": "text"}, "k": {"type": "keyword"}, "n": {"type": "integer"}}


@pytest.fixture
def es(url: str) -> Iterator[Elasticsearch]:
    """Two indexes of ten documents: n from 0 to 9, k is `even` or `odd`, t has `common`, of 7 also `rare`."""
    with Elasticsearch(url, request_timeout=HANG_S) as client:
        for name in ("a", "b"):
            client.indices.create(
                index=name, mappings={"properties": FIELDS}, settings={"number_of_replicas": 0}
            )
        rows = [
            {
                "_index": name,
                "_id": str(n),
                "n": n,
                "k": "odd" if n % 2 else "even",
                "t": "common" + (" rare" if n == 7 else ""),
            }
            for name in ("a", "b")
            for n in range(10)
        ]
        helpers.bulk(client, rows, refresh=True)
        yield client


@one_shard
def test_a_search_over_names_patterns_and_aliases(es: Elasticsearch) -> None:
    es.indices.put_alias(index="a", name="evens", filter={"term": {"k": "even"}})
    found = es.search(index="a", query={"match": {"t": "rare"}})
    assert [(hit["_index"], hit["_id"]) for hit in found["hits"]["hits"]] == [("a", "7")]
    assert found["_shards"] == {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
    assert found["timed_out"] is False
    assert es.search(index="*", query={"match": {"t": "rare"}})["hits"]["total"]["value"] == 2
    assert es.search(index="evens")["hits"]["total"]["value"] == 5
    assert es.search(index="evens,a")["hits"]["total"]["value"] == 10
    assert es.search()["hits"]["total"] == {"value": 20, "relation": "eq"}
    nothing = es.search(index="nothing*")
    assert nothing["hits"]["hits"] == []
    assert nothing["_shards"]["total"] == 0
    with pytest.raises(NotFoundError) as missing:
        es.search(index="zz")
    assert missing.value.error == "index_not_found_exception"
    assert es.search(index="zz,a", ignore_unavailable=True)["hits"]["total"]["value"] == 10


def test_parameters_stand_for_members_of_the_body(es: Elasticsearch) -> None:
    found = es.search(
        index="a",
        q="k:odd",
        sort="n:desc",
        from_=1,
        size=2,
        source_includes=["n"],
        track_total_hits=False,
        version=True,
    )
    assert "total" not in found["hits"]
    assert [(hit["_source"], hit["sort"], hit["_version"]) for hit in found["hits"]["hits"]] == [
        ({"n": 7}, [7], 1),
        ({"n": 5}, [5], 1),
    ]
    typed = es.search(index="a", size=0, aggs={"k": {"terms": {"field": "k"}}}, typed_keys=True)
    assert list(typed["aggregations"]) == ["sterms#k"]
    assert es.search(index="a", size=0, rest_total_hits_as_int=True)["hits"]["total"] == 10
    assert es.search(index="a", track_total_hits=3)["hits"]["total"] == {"value": 3, "relation": "gte"}


def test_boosts_of_indexes_and_terms_of_another(es: Elasticsearch) -> None:
    found = es.search(index="a,b", indices_boost=[{"b": 2.0}], query={"match": {"t": "rare"}})
    assert [hit["_index"] for hit in found["hits"]["hits"]] == ["b", "a"]
    scores = [hit["_score"] for hit in found["hits"]["hits"]]
    assert scores[0] == pytest.approx(2 * scores[1], rel=1e-6)
    es.index(index="lists", id="1", document={"wanted": [3, 4]}, refresh=True)
    lookup = {"terms": {"n": {"index": "lists", "id": "1", "path": "wanted"}}}
    assert es.count(index="a", query=lookup)["count"] == 2


def test_count_and_msearch(es: Elasticsearch) -> None:
    assert es.count(index="a", query={"term": {"k": "odd"}})["count"] == 5
    assert es.count(q="k:odd")["count"] == 10
    with pytest.raises(BadRequestError) as unknown:
        es.perform_request("POST", "/a/_count", headers=JSON, body={"size": 1})
    assert "does not support [size]" in str(unknown.value)
    several = es.msearch(
        searches=[
            {"index": "a"},
            {"query": {"term": {"k": "odd"}}},
            {},
            {"query": {"match": {"n": "no number"}}},
            {"index": "zz"},
            {},
        ]
    )
    found, unfit, missing = several["responses"]
    assert (found["status"], found["hits"]["total"]["value"]) == (200, 5)
    assert (unfit["status"], unfit["error"]["type"]) == (400, "search_phase_execution_exception")
    assert (missing["status"], missing["error"]["type"]) == (404, "index_not_found_exception")
    with pytest.raises(BadRequestError, match="parsing_exception"):  # no search at all, as in Elasticsearch
        es.msearch(searches=[{"index": "a"}, {}, {"index": "a"}, {"query": {"nonsense": {}}}])


def test_a_scroll_reads_everything_once_as_of_its_beginning(es: Elasticsearch, node: MemorySearch) -> None:
    page = es.search(index="a,b", scroll="1m", size=7, sort="_doc")
    es.delete_by_query(index="a", query={"match_all": {}}, refresh=True)
    found = []
    while page["hits"]["hits"]:
        assert page["hits"]["total"]["value"] == 20
        found += [(hit["_index"], hit["_id"]) for hit in page["hits"]["hits"]]
        page = es.scroll(scroll_id=page["_scroll_id"], scroll="1m")
    assert sorted(found) == sorted((name, str(n)) for name in "ab" for n in range(10))
    assert es.clear_scroll(scroll_id=page["_scroll_id"]).body == {"succeeded": True, "num_freed": 1}
    with pytest.raises(NotFoundError) as gone:
        es.scroll(scroll_id=page["_scroll_id"], scroll="1m")
    causes = gone.value.body["error"]["root_cause"]
    assert [cause["type"] for cause in causes] == ["search_context_missing_exception"]
    page = es.search(index="b", scroll="1m", size=2)
    node.clock_ms += 61_000
    with pytest.raises(NotFoundError):
        es.scroll(scroll_id=page["_scroll_id"])


@one_shard
def test_the_helper_that_scans(es: Elasticsearch) -> None:
    query = {"query": {"term": {"k": "odd"}}}
    found = [(hit["_index"], hit["_id"]) for hit in helpers.scan(es, index="a,b", query=query, size=3)]
    assert found == [(name, str(n)) for name in "ab" for n in range(1, 10, 2)]
    best = helpers.scan(es, index="a", query={"query": {"match": {"t": "rare"}}}, preserve_order=True)
    assert [hit["_id"] for hit in best] == ["7"]


def test_slices_of_a_scroll_are_disjoint(es: Elasticsearch) -> None:
    found = []
    for number in range(3):
        page = es.search(index="a", scroll="1m", size=20, slice={"id": number, "max": 3})
        found += [hit["_id"] for hit in page["hits"]["hits"]]
    assert sorted(found) == [str(n) for n in range(10)]
    with pytest.raises(BadRequestError, match="slice"):
        es.search(index="a", slice={"id": 0, "max": 3})


def test_a_point_in_time_stays_as_it_was(es: Elasticsearch) -> None:
    pit = es.open_point_in_time(index="a,b", keep_alive="1m")["id"]
    es.index(index="a", document={"n": 100}, refresh=True)
    found, after = [], None
    while True:
        page = es.search(pit={"id": pit, "keep_alive": "1m"}, sort=[{"k": "asc"}], size=6, search_after=after)
        assert page["pit_id"] == pit
        if not page["hits"]["hits"]:
            break
        found += [(hit["_index"], hit["_id"]) for hit in page["hits"]["hits"]]
        after = page["hits"]["hits"][-1]["sort"]
    assert len(found) == len(set(found)) == 20
    with pytest.raises(BadRequestError, match="cannot be used with point in time"):
        es.search(index="a", pit={"id": pit})
    assert es.close_point_in_time(id=pit)["num_freed"] == 1
    with pytest.raises(NotFoundError):
        es.search(pit={"id": pit})


def test_explain_and_validate(es: Elasticsearch) -> None:
    body = {"match": {"t": "rare"}}
    score = es.search(index="a", query=body)["hits"]["hits"][0]["_score"]
    explained = es.explain(index="a", id="7", query=body)
    assert explained["matched"] is True
    assert explained["explanation"]["value"] == pytest.approx(score, rel=1e-6)
    assert es.explain(index="a", id="1", query=body)["matched"] is False
    with pytest.raises(NotFoundError):
        es.explain(index="a", id="99", query=body)
    valid = es.indices.validate_query(index="a", query=body, explain=True)
    assert valid["explanations"] == [{"index": "a", "valid": True, "explanation": "t:rare"}]
    broken = es.indices.validate_query(index="a", query={"range": {"n": {"gte": "x"}}})
    assert broken["valid"] is False
    assert es.indices.validate_query(index="a", query={"nonsense": {}})["valid"] is False


@one_shard
def test_fields_terms_and_shards(es: Elasticsearch) -> None:
    es.indices.create(index="c", mappings={"properties": {"n": {"type": "keyword"}}})
    fields = es.field_caps(index="a,c", fields=["n", "t"])["fields"]
    assert fields["n"]["keyword"]["indices"] == ["c"]
    assert fields["n"]["integer"] == {
        "type": "integer",
        "metadata_field": False,
        "searchable": True,
        "aggregatable": True,
        "indices": ["a"],
    }
    assert fields["t"] == {
        "text": {"type": "text", "metadata_field": False, "searchable": True, "aggregatable": False}
    }
    assert es.terms_enum(index="a,b", field="k", string="e")["terms"] == ["even"]
    assert es.terms_enum(index="a", field="k", string="O", case_insensitive=True)["terms"] == ["odd"]
    shards = es.search_shards(index="a")["shards"]
    assert [shard["index"] for (shard,) in shards] == ["a"]


@one_shard
def test_a_profile_can_be_read(es: Elasticsearch) -> None:
    found = es.search(index="a", query={"match": {"t": "rare"}}, profile=True)
    (shard,) = found["profile"]["shards"]
    assert shard["searches"][0]["query"][0]["time_in_nanos"] > 0
