"""Indexes that are closed and opened again, and templates of the old kind, over HTTP."""

import httpx
import pytest

from tests.unit.serve.search.conftest import one_shard, reason_of

pytestmark = one_shard


@pytest.fixture
def closed(http: httpx.Client) -> httpx.Client:
    """`shut` with a document and an alias, closed; `books`, open."""
    http.put("/shut/_doc/1?refresh=true", json={"title": "a Walk"})
    http.put("/books/_doc/2?refresh=true", json={"title": "a walk"})
    http.put("/_all/_alias/library")
    answer = http.post("/shut/_close").json()
    assert answer == {
        "acknowledged": True,
        "shards_acknowledged": True,
        "indices": {"shut": {"closed": True}},
    }
    return http


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/shut/_search", {}),
        ("POST", "/shut,books/_search", {}),
        ("POST", "/library/_search", {}),
        ("POST", "/*/_search?expand_wildcards=all", {}),
        ("GET", "/shut/_count", None),
        ("GET", "/shut/_doc/1", None),
        ("GET", "/shut/_source/1", None),
        ("PUT", "/shut/_doc/1", {"title": "b"}),
        ("POST", "/shut/_update/1", {"doc": {"title": "b"}}),
        ("DELETE", "/shut/_doc/1", None),
        ("POST", "/shut/_delete_by_query", {"query": {"match_all": {}}}),
        ("POST", "/shut/_refresh", None),
        ("POST", "/shut/_forcemerge", None),
        ("GET", "/shut/_stats", None),
        ("POST", "/shut/_pit?keep_alive=1m", None),
        ("GET", "/_cat/segments/shut", None),
    ],
)
def test_what_a_closed_index_refuses(
    closed: httpx.Client, method: str, path: str, body: dict[str, object] | None
) -> None:
    assert reason_of(closed.request(method, path, json=body)) == (400, "index_closed_exception", "closed")


def test_what_a_closed_index_allows(closed: httpx.Client) -> None:
    def ids(path: str) -> list[str]:
        return [hit["_id"] for hit in closed.post(path).json()["hits"]["hits"]]

    assert ids("/_search") == ids("/*/_search") == ids("/shut,books/_search?ignore_unavailable=true") == ["2"]
    bulk = '{"index":{"_index":"shut","_id":"3"}}\n{}\n{"index":{"_index":"books","_id":"3"}}\n{}\n'
    headers = {"Content-Type": "application/x-ndjson"}
    items = closed.post("/_bulk", content=bulk, headers=headers).json()["items"]
    assert [item["index"]["status"] for item in items] == [400, 201]
    assert items[0]["index"]["error"]["type"] == "index_closed_exception"
    assert closed.get("/shut").json().keys() == {"shut"}
    assert closed.get("/*/_mapping").json().keys() == {"books"}
    assert closed.get("/*/_mapping?expand_wildcards=closed").json().keys() == {"shut"}
    resolved = closed.get("/_resolve/index/*?expand_wildcards=all").json()["indices"]
    assert [(one["name"], one["attributes"]) for one in resolved] == [
        ("books", ["open"]),
        ("shut", ["closed"]),
    ]
    rows = closed.get("/_cat/indices?format=json&h=index,status,docs.count").json()
    assert [(row["index"], row["status"], row["docs.count"]) for row in rows] == [
        ("books", "open", "1"),
        ("shut", "close", None),
    ]
    assert closed.get("/_cluster/state").json()["metadata"]["indices"]["shut"]["state"] == "close"


def test_it_is_as_it_was_when_it_is_opened(closed: httpx.Client) -> None:
    assert closed.post("/*/_open").json() == {"acknowledged": True, "shards_acknowledged": True}
    assert closed.get("/shut/_doc/1").json()["_source"] == {"title": "a Walk"}
    assert closed.post("/library/_search").json()["hits"]["total"]["value"] == 2
    assert closed.post("/shut/_open").status_code == 200
    assert closed.post("/shut/_close").status_code == closed.post("/shut/_close").status_code == 200
    assert closed.delete("/shut").status_code == 200
    assert reason_of(closed.post("/shut/_open"))[1] == "index_not_found_exception"


def test_a_closed_index_takes_other_analyzers(closed: httpx.Client) -> None:
    analysis = {"analysis": {"analyzer": {"default": {"tokenizer": "keyword"}}}}
    refused = reason_of(closed.put("/books/_settings", json=analysis))
    assert refused[2].startswith("Can't update non dynamic settings [[index.analysis]] for open indices")
    assert closed.put("/shut/_settings", json=analysis).status_code == 200
    final = reason_of(closed.put("/shut/_settings", json={"number_of_shards": 2}))
    assert final == (
        400,
        "illegal_argument_exception",
        "final shut setting [index.number_of_shards], not updateable",
    )
    closed.post("/shut/_open")
    closed.put("/shut/_doc/2?refresh=true", json={"title": "a Walk"})
    found = closed.post("/shut/_search", json={"query": {"match": {"title": "a Walk"}}}).json()
    assert [hit["_id"] for hit in found["hits"]["hits"]] == ["2"], "what was there stays as it was analysed"
    tokens = closed.post("/shut/_analyze", json={"text": "a Walk"}).json()["tokens"]
    assert [token["token"] for token in tokens] == ["a Walk"]
    more = {"index.analysis.analyzer.mine.tokenizer": "whitespace"}
    closed.post("/shut/_close")
    closed.put("/shut/_settings", json=more)
    shown = closed.get("/shut/_settings").json()["shut"]["settings"]["index"]["analysis"]["analyzer"]
    assert shown == {"default": {"tokenizer": "keyword"}, "mine": {"tokenizer": "whitespace"}}


def test_a_closed_index_takes_another_similarity(closed: httpx.Client) -> None:
    def score() -> float:
        found = closed.post("/shut/_search", json={"query": {"match": {"title": "walk"}}}).json()
        return float(found["hits"]["max_score"])

    closed.post("/shut/_open")
    closed.put("/shut/_doc/2?refresh=true", json={"title": "a walk and a walk again"})
    before = score()
    closed.post("/shut/_close")
    flat = {"similarity": {"default": {"type": "BM25", "k1": 0.1, "b": 0}}}
    assert closed.put("/shut/_settings", json=flat).status_code == 200
    closed.post("/shut/_open")
    assert score() < before


def test_other_similarities_score_by_the_statistics_of_all_shards(http: httpx.Client) -> None:
    """In one shard and in three, alone and together: the scores are the same."""
    own = {"type": "DFR", "basic_model": "g", "after_effect": "b"}
    own |= {"normalization": "h2", "normalization.h2.c": "3.0"}
    mappings = {"properties": {"t": {"type": "text", "similarity": "own"}}}
    for name, shards in (("one", 1), ("three", 3)):
        settings = {"number_of_shards": shards, "index.similarity.own": own}
        made = http.put(f"/{name}", json={"settings": settings, "mappings": mappings})
        assert made.status_code == 200, made.text
        for number in range(9):
            text = "red dog " * (number % 3 + 1) + "cat " * number
            http.put(f"/{name}/_doc/{number}?refresh=true", json={"t": text})
    shown = http.get("/one/_settings?flat_settings=true").json()["one"]["settings"]
    assert shown["index.similarity.own.normalization.h2.c"] == "3.0"
    found = {}
    for name in ("one", "three"):
        body = {"query": {"match": {"t": "red cat"}}, "size": 20}
        answer = http.post(f"/{name}/_search?search_type=dfs_query_then_fetch", json=body).json()
        found[name] = [(hit["_id"], round(hit["_score"], 4)) for hit in answer["hits"]["hits"]]
    assert len(found["one"]) == 9
    assert sorted(found["one"]) == sorted(found["three"])


# Templates of the old kind.


def test_templates_of_the_old_kind_are_laid_over_one_another(http: httpx.Client) -> None:
    low = {
        "index_patterns": ["logs-*"],
        "settings": {"number_of_replicas": 0, "index.refresh_interval": "5s"},
        "mappings": {"properties": {"a": {"type": "keyword"}}},
        "aliases": {"all-logs": {}},
    }
    high = {
        "index_patterns": "logs-2*",
        "order": 1,
        "version": 7,
        "settings": {"index": {"refresh_interval": "9s"}},
        "mappings": {"properties": {"b": {"type": "long"}}},
    }
    for name, body in (("high", high), ("low", low)):
        assert http.put(f"/_template/{name}", json=body).json() == {"acknowledged": True}
    http.put("/logs-1")
    http.put("/logs-2/_doc/1", json={"b": "3"})
    one, two = http.get("/logs-1").json()["logs-1"], http.get("/logs-2").json()["logs-2"]
    assert one["settings"]["index"]["refresh_interval"] == "5s"
    assert two["settings"]["index"]["refresh_interval"] == "9s"
    assert two["settings"]["index"]["number_of_replicas"] == "0"
    assert one["mappings"]["properties"].keys() == {"a"}
    assert two["mappings"]["properties"] == {"a": {"type": "keyword"}, "b": {"type": "long"}}
    assert one["aliases"] == two["aliases"] == {"all-logs": {}}
    http.put("/_index_template/new", json={"index_patterns": ["logs-3"]})
    http.put("/logs-3")
    assert http.get("/logs-3").json()["logs-3"]["mappings"] == {}, "a composable one counts alone"
    lines = http.get("/_cat/templates?h=name,index_patterns,order,version").text
    assert lines.split() == ["high", "[logs-2*]", "1", "7", "low", "[logs-*]", "0", "new", "[logs-3]", "0"]


def test_templates_of_the_old_kind_are_shown_and_deleted(http: httpx.Client) -> None:
    body = {"index_patterns": ["logs-*"], "settings": {"number_of_replicas": 0}}
    http.put("/_template/one", json=body)
    http.put("/_template/two?order=3", json=body)
    assert http.get("/_template/one?flat_settings=true").json() == {
        "one": {
            "order": 0,
            "index_patterns": ["logs-*"],
            "settings": {"index.number_of_replicas": "0"},
            "mappings": {},
            "aliases": {},
        }
    }
    assert http.get("/_template").json()["two"]["order"] == 3
    assert http.get("/_template/t*").json().keys() == {"two"}
    assert (http.get("/_template/none").status_code, http.get("/_template/n*").status_code) == (404, 404)
    assert http.head("/_template/one").status_code == 200
    assert reason_of(http.put("/_template/one?create=true", json=body))[2] == (
        "index_template [one] already exists"
    )
    for name in ("none", "n*"):
        assert reason_of(http.delete(f"/_template/{name}"))[:2] == (404, "index_template_missing_exception")
    assert http.delete("/_template/o*").json() == {"acknowledged": True}
    assert http.get("/_template").json().keys() == {"two"}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({}, "action_request_validation_exception"),
        ({"index_patterns": []}, "action_request_validation_exception"),
        ({"index_patterns": ["_a"]}, "invalid_index_template_exception"),
        ({"index_patterns": "a*", "colour": 1}, "parse_exception"),
        ({"index_patterns": "a*", "order": "x"}, "illegal_argument_exception"),
        ({"index_patterns": "a*", "settings": {"colour": 1}}, "illegal_argument_exception"),
        (
            {"index_patterns": "a*", "mappings": {"properties": {"a": {"type": "x"}}}},
            "illegal_argument_exception",
        ),
    ],
)
def test_templates_of_the_old_kind_that_cannot_be(
    http: httpx.Client, body: dict[str, object], kind: str
) -> None:
    assert reason_of(http.put("/_template/bad", json=body))[:2] == (400, kind)
    assert http.get("/_template").json() == {}


def test_the_state_of_the_cluster_has_the_blocks_of_indexes(http: httpx.Client) -> None:
    for name in ("free", "kept", "shut"):
        http.put(f"/{name}").raise_for_status()
    assert http.get("/_cluster/state/blocks").json()["blocks"] == {}
    http.put("/kept/_settings", json={"index.blocks.read_only": True}).raise_for_status()
    http.post("/shut/_close").raise_for_status()
    state = http.get("/_cluster/state/blocks,version").json()
    shown = {name: list(blocks) for name, blocks in state["blocks"]["indices"].items()}
    assert shown == {"kept": ["5"], "shut": ["4"]}
    assert state["blocks"]["indices"]["kept"]["5"]["levels"] == ["write", "metadata_write"]
    again = http.get("/_cluster/state/version").json()
    assert again["state_uuid"] == state["state_uuid"]
    http.put("/kept/_settings", json={"index.blocks.read_only": False}).raise_for_status()
    assert http.get("/_cluster/state/version").json()["state_uuid"] != state["state_uuid"]


def test_query_strings_of_an_index_may_be_lenient(http: httpx.Client) -> None:
    http.put("/i", json={"mappings": {"properties": {"n": {"type": "long"}}}}).raise_for_status()
    queries = [{kind: {"query": "five", "fields": ["n"]}} for kind in ("query_string", "simple_query_string")]
    strict = [http.post("/i/_search", json={"query": query}).status_code for query in queries]
    setting = {"index.query_string.lenient": True}
    assert reason_of(http.put("/i/_settings", json=setting))[0] == 400  # not while it is open
    http.post("/i/_close").raise_for_status()
    http.put("/i/_settings", json=setting).raise_for_status()
    http.post("/i/_open").raise_for_status()
    lenient = [http.post("/i/_search", json={"query": query}).status_code for query in queries]
    assert (strict, lenient) == ([400, 400], [200, 200])
    refused = {"query_string": {"query": "five", "fields": ["n"], "lenient": False}}
    assert reason_of(http.post("/i/_search", json={"query": refused}))[0] == 400


def test_indexes_are_deleted_by_patterns_only_where_a_setting_permits_it(http: httpx.Client) -> None:
    for name in ("a1", "a2", "b1"):
        http.put(f"/{name}")
    http.post("/a2/_close")
    assert reason_of(http.delete("/a*"))[1] == "illegal_argument_exception"
    settings = {"persistent": {"action.destructive_requires_name": False}}
    assert http.put("/_cluster/settings", json=settings).status_code == 200
    assert http.delete("/n*").json() == {"acknowledged": True}
    assert reason_of(http.delete("/n*?allow_no_indices=false"))[0] == 404
    assert http.delete("/a*").json() == {"acknowledged": True}
    assert http.get("/_all?expand_wildcards=all").json().keys() == {"b1"}


def test_closing_says_what_it_has_closed(http: httpx.Client) -> None:
    http.put("/a")
    assert http.post("/a/_close").json()["indices"] == {"a": {"closed": True}}
    nothing = {"acknowledged": True, "shards_acknowledged": False, "indices": {}}
    assert http.post("/a/_close").json() == http.post("/n*/_close").json() == nothing
    for path in ("/_close", "/_open"):
        assert reason_of(http.post(path))[1:] == (
            "action_request_validation_exception", "Validation Failed: 1: index is missing;"
        )  # fmt: skip


def test_new_fields_that_there_is_no_room_for_are_left_out(http: httpx.Client) -> None:
    limit = {"limit": 3, "ignore_dynamic_beyond_limit": True}
    fields = {"properties": {"k": {"type": "keyword"}}}
    http.put("/a", json={"settings": {"index.mapping.total_fields": limit}, "mappings": fields})
    source = {"k": "x", "o": {"n": 1, "text": "two words"}, "more": 2}
    assert http.put("/a/_doc/1?refresh=true", json=source).status_code == 201
    made = http.get("/a/_mapping").json()["a"]["mappings"]["properties"]
    assert made == {"k": {"type": "keyword"}, "o": {"properties": {"n": {"type": "long"}}}}
    (hit,) = http.get("/a/_search").json()["hits"]["hits"]
    assert (hit["_ignored"], hit["_source"]) == (["more", "o.text"], source)
    assert http.put(
        "/a/_settings", json={"index.mapping.total_fields.ignore_dynamic_beyond_limit": False}
    ).is_success
    assert reason_of(http.put("/a/_doc/2", json={"more": 1}))[1] == "document_parsing_exception"


def test_an_index_may_take_no_texts_for_numbers(http: httpx.Client) -> None:
    fields = {"n": {"type": "integer"}, "free": {"type": "integer", "coerce": True}}
    http.put("/a", json={"settings": {"index.mapping.coerce": False}, "mappings": {"properties": fields}})
    assert http.put("/a/_doc/1", json={"n": 1, "free": "1"}).status_code == 201
    assert reason_of(http.put("/a/_doc/2", json={"n": "1"}))[0] == 400
    assert http.get("/a/_mapping").json()["a"]["mappings"]["properties"]["free"] == fields["free"]
