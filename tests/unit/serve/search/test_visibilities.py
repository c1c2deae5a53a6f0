"""What principals see of the search port: indexes by `[acl]`, documents by `_allow_sids`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from graphdb.access.principal import NODE, Principal
from graphdb.search.following.graph_settings import check_graph
from tests.unit.serve.search.asking import Asking, principal_of
from tests.unit.serve.search.conftest import one_shard

ONE, TWO = "S-1-5-21-1", "S-1-5-21-2"
SEEN, HIDDEN = "logs-seen", "secret-hidden"


DOCUMENTS: Mapping[str, dict[str, Any]] = {
    "open": {"title": "alpha common", "tag": "open", "size": 1, "parts": [{"name": "bolt"}]},
    "one": {"title": "beta common", "tag": "mine", "size": 2, "_allow_sids": ONE, "parts": [{"name": "nut"}]},
    "two": {
        "title": "gamma common",
        "tag": "theirs",
        "size": 4,
        "_allow_sids": [TWO],
        "parts": [{"name": "x"}],
    },
    "both": {"title": "delta common", "tag": "ours", "size": 8, "_allow_sids": [ONE, TWO]},
    "none": {"title": "epsilon common", "tag": "nobody", "size": 16, "_allow_sids": []},
}
MAPPINGS = {
    "properties": {
        "title": {"type": "text"},
        "tag": {"type": "keyword"},
        "size": {"type": "integer"},
        "parts": {"type": "nested", "properties": {"name": {"type": "keyword"}}},
    }
}
READER = principal_of("ada", ONE)
SEEN_IDS = {"open", "one", "both"}


@pytest.fixture
def ask(tmp_path: Path, shards: int) -> Asking:
    asking = Asking(tmp_path)
    body = {"mappings": MAPPINGS, "settings": {"number_of_shards": shards}}
    for index in (SEEN, HIDDEN):
        assert asking(NODE, "PUT", f"/{index}", body).status_code == 200
        for doc_id, document in DOCUMENTS.items():
            assert asking(NODE, "PUT", f"/{index}/_doc/{doc_id}", document).status_code == 201
    aliases = [{"add": {"index": index, "alias": "everything"}} for index in (SEEN, HIDDEN)]
    aliases.append({"add": {"index": HIDDEN, "alias": "behind"}})
    assert asking(NODE, "POST", "/_aliases", {"actions": aliases}).status_code == 200
    assert asking(NODE, "POST", "/_refresh").status_code == 200
    return asking


def ids_of(answer: httpx.Response) -> set[str]:
    return {hit["_id"] for hit in answer.json()["hits"]["hits"]}


def test_an_index_that_is_not_seen_is_not_there(ask: Asking) -> None:
    for path in (
        f"/{HIDDEN}",
        f"/{HIDDEN}/_search",
        f"/{HIDDEN}/_count",
        f"/{HIDDEN}/_mapping",
        f"/{HIDDEN}/_settings",
        f"/{HIDDEN}/_stats",
        f"/{HIDDEN}/_segments",
        f"/{HIDDEN}/_doc/open",
        f"/{HIDDEN}/_source/open",
        f"/{HIDDEN}/_field_caps?fields=*",
        f"/{HIDDEN}/_terms_enum",
        f"/{HIDDEN}/_search_shards",
        f"/_cluster/allocation/explain?index={HIDDEN}&shard=0&primary=true",
        f"/{HIDDEN}/_validate/query",
        f"/_cat/indices/{HIDDEN}",
        "/behind/_search",
        "/behind/_alias",
        "/behind/_doc/open",
    ):
        body = {"field": "tag"} if path.endswith("_terms_enum") else None
        never = path.replace(HIDDEN, "secret-nowhere").replace("behind", "secret-nowhere")
        found, missing = ask(READER, "GET", path, body), ask(READER, "GET", never, body)
        assert found.status_code == missing.status_code == 404, path
        shown = found.text.replace(HIDDEN, "secret-nowhere").replace("behind", "secret-nowhere")
        if "_field_caps" not in path:
            assert shown == missing.text, path


def test_no_list_or_wildcard_shows_what_is_not_seen(ask: Asking, shards: int) -> None:
    for path in (
        "/_cat/indices?format=json",
        "/_cat/aliases?format=json",
        "/_cat/shards?format=json",
        "/_cat/segments?format=json",
        "/_alias",
        "/_mapping",
        "/_settings",
        "/_stats",
        "/_segments",
        "/_all",
        "/*",
        "/_resolve/index/*",
        "/_search?size=100",
        "/secret*,logs*/_search?size=100",
        "/everything/_search?size=100",
        "/_field_caps?fields=*",
        "/_search_shards",
        "/_cluster/state",
        "/_cluster/health?level=indices",
    ):
        answer = ask(READER, "GET", path)
        assert answer.status_code in (200, 404), (path, answer.text)
        assert "secret" not in answer.text, path
        assert "behind" not in answer.text, path
        assert "secret" in ask(NODE, "GET", path).text, path
    assert ask(READER, "GET", "/_cluster/health").json()["active_primary_shards"] == shards
    assert ask(NODE, "GET", "/_cluster/health").json()["active_primary_shards"] == 2 * shards
    assert ask(READER, "GET", "/_cluster/stats").json()["indices"]["count"] == 1
    assert ask(READER, "GET", "/_cat/count?format=json").json()[0]["count"] == str(len(SEEN_IDS))
    docs = ask(READER, "GET", "/_cat/indices?format=json").json()[0]["docs.count"]
    assert docs == str(len(SEEN_IDS))


def test_tokens_of_hidden_documents_are_in_no_answer(ask: Asking) -> None:
    changed = {"properties": {"title": {"type": "text", "fielddata": True}}}
    assert ask(NODE, "PUT", f"/{SEEN}/_mapping", changed).status_code == 200
    terms = {"terms": {"field": "title", "min_doc_count": 0}}
    body = {"size": 0, "aggs": {"a": terms, "n": {"value_count": {"field": "title"}}}}
    found = ask(READER, "POST", f"/{SEEN}/_search", body).json()["aggregations"]
    counts = {bucket["key"]: bucket["doc_count"] for bucket in found["a"]["buckets"]}
    assert counts == {"common": 3, "alpha": 1, "beta": 1, "delta": 1}
    assert found["n"]["value"] == 6
    everything = ask(NODE, "POST", f"/{SEEN}/_search", body).json()["aggregations"]
    assert everything["n"]["value"] == 10


def test_hidden_documents_are_in_no_answer(ask: Asking) -> None:
    def search(body: dict[str, Any]) -> dict[str, Any]:
        answer = ask(READER, "POST", f"/{SEEN}/_search", body)
        assert answer.status_code == 200, answer.text
        for word in ("gamma", "epsilon", "theirs", "nobody", "_allow_sids", "S-1-5"):
            assert word not in answer.text, body
        found: dict[str, Any] = answer.json()
        return found

    queries: list[dict[str, Any]] = [
        {"match_all": {}},
        {"match": {"title": "common"}},
        {"bool": {"must_not": {"term": {"tag": "none of them"}}}},
        {"exists": {"field": "tag"}},
        {"range": {"size": {"gte": 1}}},
        {"wildcard": {"tag": "*"}},
        {"constant_score": {"filter": {"match_all": {}}}},
        {"ids": {"values": list(DOCUMENTS)}},
        {"function_score": {"query": {"match_all": {}}, "random_score": {"seed": 1, "field": "_seq_no"}}},
    ]
    for query in queries:
        found = search({"query": query, "highlight": {"fields": {"title": {}}}, "fields": ["*"]})
        assert found["hits"]["total"]["value"] == len(SEEN_IDS), query
        assert {hit["_id"] for hit in found["hits"]["hits"]} == SEEN_IDS
        assert ask(READER, "POST", f"/{SEEN}/_count", {"query": query}).json()["count"] == len(SEEN_IDS)
    assert search({"query": {"match": {"title": "gamma"}}})["hits"]["total"]["value"] == 0
    nested = {"nested": {"path": "parts", "query": {"exists": {"field": "parts.name"}}}}
    assert {hit["_id"] for hit in search({"query": nested})["hits"]["hits"]} == {"open", "one"}
    found = search(
        {
            "size": 0,
            "aggs": {
                "tags": {"terms": {"field": "tag", "min_doc_count": 0}},
                "sum": {"sum": {"field": "size"}},
                "kinds": {"cardinality": {"field": "tag"}},
                "all": {"global": {}, "aggs": {"top": {"top_hits": {"size": 10}}}},
                "parts": {"nested": {"path": "parts"}, "aggs": {"n": {"terms": {"field": "parts.name"}}}},
                "missing": {"missing": {"field": "parts.name"}},
            },
        }
    )["aggregations"]
    assert {one["key"]: one["doc_count"] for one in found["tags"]["buckets"]} == {
        "open": 1,
        "mine": 1,
        "ours": 1,
    }
    assert (found["sum"]["value"], found["kinds"]["value"], found["all"]["doc_count"]) == (11, 3, 3)
    assert {one["key"] for one in found["parts"]["n"]["buckets"]} == {"bolt", "nut"}
    terms = ask(READER, "POST", f"/{SEEN}/_terms_enum", {"field": "tag"}).json()["terms"]
    assert terms == ["mine", "open", "ours"]


def test_joins_lead_to_no_hidden_document(ask: Asking) -> None:
    """Nor from one index into another, though ids are the same there."""
    fields = {"j": {"type": "join", "relations": {"film": "review"}}, "n": {"type": "integer"}}
    review = {"j": {"name": "review", "parent": "f"}}
    for index, n in (("logs-films", 1), ("logs-more", 10)):
        assert ask(NODE, "PUT", f"/{index}", {"mappings": {"properties": fields}}).status_code == 200
        film = {"j": "film", "n": n}
        for doc_id, document in (
            ("f", film),
            ("r", {**review, "n": n}),
            ("s", {**review, "n": 2 * n, "_allow_sids": [TWO]}),
            ("g", {**film, "_allow_sids": [TWO]}),
            ("t", {"j": {"name": "review", "parent": "g"}, "n": 3 * n}),
        ):
            path = f"/{index}/_doc/{doc_id}?routing=f&refresh=true"
            assert ask(NODE, "PUT", path, document).status_code == 201
    total = {"total": {"sum": {"field": "n"}}}
    for way, query, expected in (
        ("children", {"terms": {"_index": ["logs-films"]}}, (1, 1)),
        ("children", {"match_all": {}}, (2, 11)),
        ("parent", {"match_all": {}}, (2, 11)),
        ("parent", {"term": {"n": 3}}, (0, 0)),
    ):
        aggs = {"r": {way: {"type": "review"}, "aggs": total}}
        body: dict[str, Any] = {"size": 0, "query": query, "aggs": aggs}
        found = ask(READER, "POST", "/logs-films,logs-more/_search", body).json()["aggregations"]["r"]
        assert (found["doc_count"], found["total"]["value"]) == expected
    for name, clause, shown in (
        ("has_child", {"type": "review"}, {"f": ["r"]}),
        ("has_parent", {"parent_type": "film"}, {"r": ["f"]}),
    ):
        body = {"query": {name: {**clause, "query": {"match_all": {}}, "inner_hits": {"name": "x"}}}}
        for index in ("logs-films", "logs-more"):
            hits = ask(READER, "POST", f"/{index}/_search", body).json()["hits"]["hits"]
            below = [one["inner_hits"]["x"]["hits"]["hits"] for one in hits]
            found = {hit["_id"]: [it["_id"] for it in its] for hit, its in zip(hits, below, strict=True)}
            assert found == shown
    assert ask(NODE, "DELETE", "/logs-films/_doc/r?routing=f&refresh=true").status_code == 200
    body = {"query": {"has_child": {"type": "review", "query": {"match_all": {}}}}}
    assert ids_of(ask(READER, "POST", "/logs-films/_search", body)) == set()


def test_documents_are_got_by_those_who_see_them(ask: Asking) -> None:
    for doc_id in DOCUMENTS:
        status = 200 if doc_id in SEEN_IDS else 404
        for path in (
            f"/{SEEN}/_doc/{doc_id}",
            f"/{SEEN}/_source/{doc_id}",
            f"/{SEEN}/_doc/{doc_id}?realtime=false",
        ):
            answer = ask(READER, "GET", path)
            assert answer.status_code == status, path
            assert "_allow_sids" not in answer.text
        explained = ask(READER, "POST", f"/{SEEN}/_explain/{doc_id}", {"query": {"match_all": {}}})
        assert explained.status_code == status
    assert ask(NODE, "GET", f"/{SEEN}/_source/one").json()["_allow_sids"] == ONE
    many = {
        "docs": [{"_index": index, "_id": "two"} for index in (SEEN, HIDDEN)]
        + [{"_index": SEEN, "_id": "one"}]
    }
    hidden, nowhere, seen = ask(READER, "POST", "/_mget", many).json()["docs"]
    assert hidden == {"_index": SEEN, "_id": "two", "found": False}
    assert nowhere["error"]["type"] == "index_not_found_exception"
    assert seen["_source"] == {
        name: value for name, value in DOCUMENTS["one"].items() if name != "_allow_sids"
    }
    lookup = {"terms": {"tag": {"index": SEEN, "id": "two", "path": "tag"}}}
    assert not ids_of(ask(NODE, "POST", f"/{SEEN}/_search", {"query": lookup})) - {"two"}
    assert ids_of(ask(READER, "POST", f"/{SEEN}/_search", {"query": lookup})) == set()
    lines = [{"index": HIDDEN}, {}, {"index": SEEN}, {"size": 100}]
    refused, found = ask(READER, "POST", "/_msearch", lines=lines).json()["responses"]
    assert refused["status"] == 404
    assert found["hits"]["total"]["value"] == len(SEEN_IDS)


def test_what_was_not_refreshed_is_protected_too(ask: Asking) -> None:
    ask(NODE, "PUT", f"/{SEEN}/_doc/late", {"tag": "late", "\u005fallow_sids": TWO})
    assert ask(READER, "GET", f"/{SEEN}/_doc/late").status_code == 404
    assert ask(principal_of("bob", TWO), "GET", f"/{SEEN}/_doc/late").status_code == 200
    ask(NODE, "POST", f"/{SEEN}/_forcemerge?max_num_segments=1")
    ask(NODE, "POST", "/_refresh")
    assert ids_of(ask(READER, "GET", f"/{SEEN}/_search")) == SEEN_IDS
    ask(NODE, "POST", f"/{SEEN}/_update/late", {"doc": {"_allow_sids": [ONE]}})
    ask(NODE, "POST", "/_refresh")
    assert ids_of(ask(READER, "GET", f"/{SEEN}/_search")) == {*SEEN_IDS, "late"}


def test_contexts_are_their_openers(ask: Asking) -> None:
    scroll = ask(READER, "POST", f"/{SEEN}/_search?scroll=1m&size=2", {}).json()
    assert scroll["hits"]["total"]["value"] == len(SEEN_IDS)
    pit = ask(READER, "POST", f"/{SEEN}/_pit?keep_alive=1m").json()["id"]
    other = principal_of("bob", ONE)
    demoted = principal_of("ada")
    for who in (other, demoted):
        assert ask(who, "POST", "/_search/scroll", {"scroll_id": scroll["_scroll_id"]}).status_code == 404
        assert ask(who, "POST", "/_search", {"pit": {"id": pit}}).status_code == 404
        assert ask(who, "DELETE", "/_search/scroll", {"scroll_id": scroll["_scroll_id"]}).status_code == 404
        assert ask(who, "DELETE", "/_pit", {"id": pit}).status_code == 404
    rest = ask(READER, "POST", "/_search/scroll", {"scroll_id": scroll["_scroll_id"]})
    assert ids_of(rest) | {hit["_id"] for hit in scroll["hits"]["hits"]} == SEEN_IDS
    assert ids_of(ask(READER, "POST", "/_search", {"pit": {"id": pit}})) == SEEN_IDS
    assert ask(READER, "DELETE", "/_pit", {"id": pit}).json()["num_freed"] == 1


def test_nothing_that_is_not_seen_is_written(ask: Asking) -> None:
    def status(method: str, path: str, body: Any = None) -> tuple[int, str]:
        answer = ask(READER, method, path, body)
        error = answer.json().get("error")
        return answer.status_code, error["type"] if error else answer.json()["result"]

    forbidden = (403, "security_exception")
    assert status("PUT", f"/{HIDDEN}/_doc/new", {}) == forbidden
    assert status("PUT", "/behind/_doc/new", {}) == forbidden
    assert status("PUT", "/elsewhere/_doc/new", {}) == forbidden
    assert status("DELETE", f"/{HIDDEN}/_doc/open") == forbidden
    assert status("PUT", f"/{SEEN}/_doc/two", {"tag": "mine now"}) == forbidden
    assert status("PUT", f"/{SEEN}/_create/two", {"tag": "mine now"}) == forbidden
    assert status("PUT", f"/{SEEN}/_doc/one", {"tag": "bare"}) == forbidden
    assert status("POST", f"/{SEEN}/_update/two", {"doc": {"tag": "x"}}) == (
        404,
        "document_missing_exception",
    )
    assert status("POST", f"/{SEEN}/_update/two", {"doc": {}, "doc_as_upsert": True}) == forbidden
    assert status("DELETE", f"/{SEEN}/_doc/two") == (404, "not_found")
    assert status("DELETE", f"/{SEEN}/_doc/never") == (404, "not_found")
    bodies: list[dict[str, Any]] = [{"_allow_sids": ONE}, {"_allow_sids": []}, {"_allow_sids.x": 1}]
    for body in bodies:
        assert status("PUT", f"/{SEEN}/_doc/new", body) == forbidden
        assert status("POST", f"/{SEEN}/_update/open", {"doc": body}) == forbidden
        assert status("POST", f"/{SEEN}/_update/new", {"doc": {}, "upsert": body}) == forbidden
    assert ask(NODE, "GET", f"/{SEEN}/_doc/two").json()["_version"] == 1
    assert ask(NODE, "GET", f"/{SEEN}/_source/two").json() == DOCUMENTS["two"]
    # what is seen may be changed, and stays protected
    changed = ask(READER, "POST", f"/{SEEN}/_update/one?_source=true", {"doc": {"size": 3}})
    assert changed.json()["result"] == "updated"
    assert "_allow_sids" not in changed.text
    assert ask(NODE, "GET", f"/{SEEN}/_source/one").json()["_allow_sids"] == ONE
    assert status("DELETE", f"/{SEEN}/_doc/one") == (200, "deleted")
    lines = [
        {"index": {"_index": HIDDEN, "_id": "b"}},
        {"tag": "b"},
        {"index": {"_index": SEEN, "_id": "b"}},
        {"tag": "b"},
        {"index": {"_index": SEEN, "_id": "c"}},
        {"_allow_sids": ONE},
        {"delete": {"_index": SEEN, "_id": "two"}},
    ]
    items = ask(READER, "POST", "/_bulk", lines=lines).json()["items"]
    assert [next(iter(item.values()))["status"] for item in items] == [403, 201, 403, 404]


def test_by_query_touches_what_is_seen(ask: Asking) -> None:
    everything: dict[str, Any] = {"query": {"match_all": {}}}
    # a copy would be for all: only what is not protected is copied
    for path, body in (
        ("/_reindex", {"source": {"index": SEEN}, "dest": {"index": "logs-copy"}}),
        (f"/{SEEN}/_update_by_query?refresh=true", everything),
    ):
        answer = ask(READER, "POST", path, body)
        assert answer.status_code == 403, answer.text
        assert {one["id"] for one in answer.json()["failures"]} == {"one", "both"}
        assert answer.json().get("created", 0) + answer.json()["updated"] == 1
    for chosen in (["title"], {"excludes": ["_allow*", "size"]}, "tag"):
        source = {"index": SEEN, "query": {"ids": {"values": ["one"]}}, "_source": chosen}
        body = {"source": source, "dest": {"index": "logs-part"}}
        answer = ask(READER, "POST", "/_reindex", body)
        assert [one["id"] for one in answer.json()["failures"]] == ["one"], chosen
        assert ask(NODE, "GET", "/logs-part/_doc/one").status_code == 404
    # a copy that is made of parts by who sees everything is protected as the whole was
    assert ask(NODE, "POST", "/_reindex", body).json()["created"] == 1
    assert ask(NODE, "GET", "/logs-part/_source/one").json() == {"tag": "mine", "_allow_sids": ONE}
    assert ask(principal_of("bob", TWO), "GET", "/logs-part/_doc/one").status_code == 404
    assert ask(NODE, "POST", f"/{SEEN}/_update_by_query?refresh=true", everything).json()["updated"] == 5
    assert ask(NODE, "GET", f"/{SEEN}/_source/two").json() == DOCUMENTS["two"]
    deleted = ask(READER, "POST", f"/{SEEN}/_delete_by_query?refresh=true", everything).json()
    assert (deleted["total"], deleted["deleted"]) == (3, 3)
    assert ids_of(ask(NODE, "GET", f"/{SEEN}/_search")) == {"two", "none"}


def test_the_list_of_sids_is_no_field(ask: Asking) -> None:
    mapped = ask(NODE, "PUT", f"/{SEEN}/_mapping", {"properties": {"_allow_sids": {"type": "keyword"}}})
    assert mapped.status_code == 400
    wrong = ask(NODE, "PUT", f"/{SEEN}/_doc/wrong", {"_allow_sids": {"a": 1}})
    assert (wrong.status_code, wrong.json()["error"]["type"]) == (400, "document_parsing_exception")
    assert "_allow_sids" not in ask(NODE, "GET", f"/{SEEN}/_mapping").text
    query = {"query": {"term": {"_allow_sids": ONE}}}
    assert ask(NODE, "POST", f"/{SEEN}/_search", query).json()["hits"]["total"]["value"] == 0


def test_words_of_hidden_documents_take_no_place_of_others(ask: Asking) -> None:
    documents = {"seen": {"title": "zebra"}, "hidden": {"title": "zeal zebre", "_allow_sids": [TWO]}}
    for doc_id, document in documents.items():
        ask(NODE, "PUT", f"/{SEEN}/_doc/{doc_id}?refresh=true", document)
    ask(NODE, "POST", f"/{SEEN}/_forcemerge?max_num_segments=1")
    queries: list[dict[str, Any]] = [
        {"match_phrase_prefix": {"title": {"query": "ze", "max_expansions": 1}}},
        {"multi_match": {"query": "ze", "fields": "title", "type": "phrase_prefix", "max_expansions": 1}},
        {"fuzzy": {"title": {"value": "zebre", "max_expansions": 1}}},
        {"match": {"title": {"query": "zebre", "fuzziness": 1, "max_expansions": 1}}},
        {"query_string": {"query": "title:zebre~1", "fuzzy_max_expansions": 1}},
    ]
    for query in queries:
        assert ids_of(ask(READER, "POST", f"/{SEEN}/_search", {"query": query})) == {"seen"}, query
        assert ids_of(ask(NODE, "POST", f"/{SEEN}/_search", {"query": query})) == {"hidden"}, query


def test_words_of_what_a_document_was_before_it_was_protected_are_hidden(ask: Asking) -> None:
    for doc_id, title in (("late", "zeal"), ("seen", "zebra")):
        ask(NODE, "PUT", f"/{SEEN}/_doc/{doc_id}?refresh=true", {"title": title})
    query = {"query": {"match_phrase_prefix": {"title": {"query": "ze", "max_expansions": 1}}}}
    assert ids_of(ask(READER, "POST", f"/{SEEN}/_search", query)) == {"late"}
    ask(NODE, "POST", f"/{SEEN}/_update/late?refresh=true", {"doc": {"_allow_sids": []}})
    assert ids_of(ask(READER, "POST", f"/{SEEN}/_search", query)) == {"seen"}


@one_shard
def test_hidden_documents_count_in_no_statistics(ask: Asking) -> None:
    def like(**limits: int) -> set[str]:
        clause = {"fields": ["title"], "like": "common", "min_term_freq": 1, **limits}
        return ids_of(ask(READER, "POST", f"/{SEEN}/_search", {"query": {"more_like_this": clause}}))

    assert like(min_doc_freq=len(SEEN_IDS)) == SEEN_IDS
    assert like(min_doc_freq=len(SEEN_IDS) + 1) == set()
    assert like(min_doc_freq=1, max_doc_freq=len(SEEN_IDS)) == SEEN_IDS
    explained = ask(
        READER, "POST", f"/{SEEN}/_explain/both", {"query": {"match": {"title": "common"}}}
    ).json()
    text = str(explained["explanation"])
    assert "'value': 3, 'description': 'N, total number of documents with field'" in text
    assert "'value': 3, 'description': 'n, number of documents containing term'" in text
    assert "title:common in 4)" in text  # of open, bolt and one, nut before it
    sort = ask(READER, "POST", f"/{SEEN}/_search", {"sort": ["_doc"]}).json()["hits"]["hits"]
    assert [hit["sort"] for hit in sort] == [[1], [3], [4]]
    after = ask(READER, "POST", f"/{SEEN}/_search", {"sort": ["_doc"], "search_after": [3]})
    assert ids_of(after) == {"both"}


@one_shard
def test_figures_are_of_what_is_seen(ask: Asking) -> None:
    def figures(who: Principal) -> tuple[Any, ...]:
        (segment,) = ask(who, "GET", f"/_cat/segments/{SEEN}?format=json&bytes=b").json()
        (row,) = ask(who, "GET", f"/_cat/indices/{SEEN}?format=json&bytes=b").json()
        shard, *_ = ask(who, "GET", f"/_cat/shards/{SEEN}?format=json&bytes=b").json()
        stats = ask(who, "GET", f"/{SEEN}/_stats").json()["indices"][SEEN]["primaries"]
        (one,) = ask(who, "GET", f"/{SEEN}/_segments").json()["indices"][SEEN]["shards"]["0"]
        (shown,) = one["segments"].values()
        sizes = {segment["size"], row["store.size"], shard["store"], str(shown["size_in_bytes"])}
        assert sizes == {str(stats["store"]["size_in_bytes"])}
        return (
            *(segment[name] for name in ("segment", "generation", "docs.count", "docs.deleted", "size")),
            *(row[name] for name in ("docs.count", "docs.deleted")),
            shard["docs"],
            (stats["docs"]["count"], stats["docs"]["deleted"], stats["segments"]["count"]),
            (shown["num_docs"], shown["deleted_docs"]),
        )

    before = figures(READER)
    assert before[2:4] == ("5", "0")
    assert before[5:] == ("3", "0", "3", (3, 0, 1), (5, 0))
    ask(NODE, "PUT", f"/{SEEN}/_doc/two?refresh=true", {"title": "a longer text", "_allow_sids": [TWO]})
    ask(NODE, "DELETE", f"/{SEEN}/_doc/none?refresh=true")
    ask(NODE, "PUT", f"/{SEEN}/_doc/more?refresh=true", {"title": "another one", "_allow_sids": []})
    assert figures(READER) == before


def test_deleting_tells_nothing_of_what_is_hidden(ask: Asking) -> None:
    def told(doc_id: str, query: str = "") -> tuple[int, Any]:
        answer = ask(READER, "DELETE", f"/{SEEN}/_doc/{doc_id}{query}")
        found = answer.json()
        error = found.get("error", {"reason": ""})["reason"].replace(doc_id, "")
        return answer.status_code, (found.get("_version"), found.get("result"), error)

    ask(NODE, "PUT", f"/{SEEN}/_doc/gone", {"_allow_sids": [TWO]})
    ask(NODE, "PUT", f"/{SEEN}/_doc/gone", {"size": 1, "_allow_sids": [TWO]})
    ask(NODE, "DELETE", f"/{SEEN}/_doc/gone")
    assert ask(NODE, "DELETE", f"/{SEEN}/_doc/gone").json()["_version"] == 4
    for query in ("", "", "?if_seq_no=0&if_primary_term=1", "?version=7&version_type=external", ""):
        first = told("two", query)
        assert first == told("never", query) == told("gone", query), query
        ask(NODE, "POST", f"/{SEEN}/_update/two?refresh=true", {"doc": {"size": len(str(first))}})
    assert ask(NODE, "GET", f"/{SEEN}/_doc/two").json()["found"]
    # also when it has gone meanwhile
    ask(NODE, "DELETE", f"/{SEEN}/_doc/two")
    assert told("two") == told("never")
    created = [ask(READER, "PUT", f"/{SEEN}/_doc/{doc_id}", {}).json() for doc_id in ("two", "never")]
    assert created[0]["_version"] == created[1]["_version"]


@pytest.mark.parametrize(("patterns", "is_seen"), [(("*",), False), (("of-*", "*"), True), (("**",), True)])
def test_an_index_of_the_graph_is_seen_by_whoever_it_is_named_to(
    ask: Asking, patterns: tuple[str, ...], is_seen: bool
) -> None:
    ask.node.catalog.check_graph = check_graph
    settings = {"settings": {"graph": {"shape": "https://example.org/Thing"}}, "aliases": {"things": {}}}
    assert ask(NODE, "PUT", "/of-graph", settings).status_code == 200
    reader = principal_of("eve", patterns=patterns)
    expected = 200 if is_seen else 404
    for path in (
        "/of-graph",
        "/of-graph/_search",
        "/of-graph/_stats",
        "/things/_search",
        "/_cat/indices/of-graph",
    ):
        assert ask(reader, "GET", path).status_code == expected, path
    assert ("of-graph" in ask(reader, "GET", "/_cat/indices").text) is is_seen
    assert ask(reader, "GET", f"/{SEEN}/_search").status_code == 200
    written = ask(reader, "PUT", "/of-graph/_doc/1", {"title": "x"})
    assert written.status_code == (400 if is_seen else 403), written.text


def test_a_data_stream_is_seen_by_its_own_name(ask: Asking) -> None:
    template = {"index_patterns": ["logs-s*", "secret-s*"], "data_stream": {}}
    ask(NODE, "PUT", "/_index_template/t", template)
    for name in ("logs-stream", "secret-stream"):
        made = ask(NODE, "POST", f"/{name}/_doc?refresh=true", {"@timestamp": 1, "_allow_sids": ONE})
        assert made.status_code == 201
    assert ask(READER, "GET", "/logs-stream/_count").json()["count"] == 1
    assert ask(READER, "GET", "/secret-stream/_count").status_code == 404
    assert ask(READER, "GET", "/secret-*,.ds-secret-*/_count").json()["count"] == 0
    shown = ask(READER, "GET", "/_data_stream").json()["data_streams"]
    assert [one["name"] for one in shown] == ["logs-stream"]
    assert ask(READER, "GET", "/_data_stream/secret-stream").status_code == 404
    assert len(ask(NODE, "GET", "/_data_stream").json()["data_streams"]) == 2
