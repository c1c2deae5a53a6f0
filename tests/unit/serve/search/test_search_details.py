"""What clients notice of a search beside its hits: limits, formats, fields, highlights, hits below hits."""

from typing import Any

import httpx
import pytest

from tests.unit.serve.search.conftest import reason_of


@pytest.fixture
def ask(http: httpx.Client) -> Any:
    """ask(body, index, **parameters): the answer of a search, whatever its status."""

    def search(body: Any, index: str = "i", **parameters: Any) -> httpx.Response:
        return http.post(f"/{index}/_search", json=body, params=parameters)

    return search


def made(http: httpx.Client, properties: Any, *documents: Any, index: str = "i", **members: Any) -> None:
    """An index with documents, whose ids are their places, from 1."""
    settings = members.pop("settings", {})
    body = {"mappings": {"properties": properties, **members}, "settings": settings}
    http.put(f"/{index}", json=body).raise_for_status()
    for number, document in enumerate(documents, 1):
        path = f"/{index}/_doc/{number}"
        http.put(path, json=document, params={"refresh": "true"}).raise_for_status()


def ids(answer: httpx.Response) -> list[str]:
    return [hit["_id"] for hit in answer.raise_for_status().json()["hits"]["hits"]]


def first(answer: httpx.Response) -> Any:
    return answer.raise_for_status().json()["hits"]["hits"][0]


def test_a_total_may_be_counted_up_to_one(http: httpx.Client, ask: Any) -> None:
    made(http, {}, {"n": 1}, {"n": 2})
    total = ask({"track_total_hits": 1}).json()["hits"]["total"]
    assert total == {"value": 1, "relation": "gte"}


def test_a_mapping_without_source_shows_none_and_has_no_fields(http: httpx.Client, ask: Any) -> None:
    made(http, {"k": {"type": "keyword"}}, {"k": "a"}, _source={"enabled": False})
    assert "_source" not in first(ask({}))
    assert first(ask({"docvalue_fields": ["k"]}))["fields"] == {"k": ["a"]}
    assert reason_of(ask({"fields": ["k"]}))[0] == 400
    cause = ask({"fields": ["k"]}).json()["error"]["root_cause"][0]
    assert cause["reason"].endswith("since _source is disabled in the mappings for index [i]")


def test_fields_may_be_unmapped_malformed_or_stored(http: httpx.Client, ask: Any) -> None:
    properties = {
        "n": {"type": "long", "ignore_malformed": True, "store": True},
        "off": {"type": "object", "enabled": False},
        "rows": {"type": "nested", "properties": {"free": {"type": "object", "enabled": False}}},
    }
    document = {"n": [1, "x"], "off": {"a": [1, {"b": 2}]}, "rows": [{"free": {"c": 3}}], "more": None}
    made(http, properties, document)
    every = first(ask({"fields": [{"field": "*", "include_unmapped": True}], "_source": False}))
    assert every["fields"] == {"n": [1], "off.a": [1], "off.a.b": [2], "rows": [{"free.c": [3]}]}
    assert every["ignored_field_values"] == {"n": ["x"]}
    assert first(ask({"fields": ["*"], "_source": False}))["fields"] == {"n": [1]}
    assert first(ask({"stored_fields": ["n"]}))["fields"] == {"n": [1]}
    assert ids(ask({"query": {"term": {"_ignored": "n"}}})) == ["1"]


def test_only_some_types_have_formats(http: httpx.Client, ask: Any) -> None:
    made(http, {"k": {"type": "keyword"}, "n": {"type": "long"}}, {"k": "a", "n": 1})
    for key, name in (("fields", "k"), ("fields", "n"), ("docvalue_fields", "k")):
        assert ask({key: [{"field": name, "format": "0.0"}]}).status_code == 400
    assert first(ask({"docvalue_fields": [{"field": "n", "format": "#.0"}]}))["fields"] == {"n": ["1.0"]}


def test_columns_show_vectors_and_sequence_numbers(http: httpx.Client, ask: Any) -> None:
    properties = {"v": {"type": "dense_vector"}, "b": {"type": "dense_vector", "element_type": "byte"}}
    made(http, properties, {"v": [0.1, 0.5], "b": "80ff01"}, {"v": [1, 1]})
    shown = ask({"docvalue_fields": ["v", "b", "_seq_no"], "sort": "_doc"}).json()["hits"]["hits"]
    assert shown[0]["fields"] == {"v": [[0.1, 0.5]], "b": [[-128, -1, 1]], "_seq_no": [0]}
    assert shown[1]["fields"] == {"v": [[1.0, 1.0]], "_seq_no": [1]}


def test_a_vector_of_bytes_may_be_hexadecimal(http: httpx.Client, ask: Any) -> None:
    vector = {"type": "dense_vector", "element_type": "byte", "similarity": "l2_norm"}
    made(http, {"b": vector}, {"b": "000100"}, {"b": "40f6e2"})
    assert http.get("/i/_mapping").json()["i"]["mappings"]["properties"]["b"]["dims"] == 3
    for given in ("400ae2", [64, 10, -30]):
        assert ids(ask({"knn": {"field": "b", "query_vector": given, "k": 2}})) == ["2", "1"]
    assert ask({"knn": {"field": "b", "query_vector": "400ae"}}).status_code == 400
    assert http.post("/i/_doc", json={"b": "zz"}).status_code == 400


def test_dates_of_both_kinds_are_sorted_together(http: httpx.Client, ask: Any) -> None:
    made(http, {"at": {"type": "date"}}, {"at": "2021-02-11T08:30:04.828Z"}, index="a")
    made(http, {"at": {"type": "date_nanos"}}, {"at": "2021-04-15T06:30:04.821Z"}, index="b")
    key = {"at": {"order": "asc", "format": "strict_date_optional_time_nanos"}}
    shown = ask({"sort": [key]}, "a,b").raise_for_status().json()["hits"]["hits"]
    assert [hit["sort"] for hit in shown] == [["2021-02-11T08:30:04.828Z"], ["2021-04-15T06:30:04.821Z"]]
    after = ask({"sort": [{"at": "asc"}], "search_after": ["2021-02-11T08:30:04.828Z"]}, "a,b")
    assert [hit["_index"] for hit in after.raise_for_status().json()["hits"]["hits"]] == ["b"]


@pytest.mark.parametrize(
    ("body", "parameters", "said"),
    [
        ({"sort": ["_shard_doc"]}, {}, "[_shard_doc] sort field cannot be used without [point in time]"),
        ({"indices_boost": [{"zz": 2.0}]}, {}, "no such index [zz]"),
        ({"size": 10_001}, {"scroll": "1m"}, "Batch size is too large"),
        ({"knn": {"field": "v", "query_vector": [1]}}, {"search_type": "query_then_fetch"}, "[search_type]"),
        ({"query": {"exists": {"field": "_source"}}}, {}, "The _source field is not searchable"),
        ({"track_total_hits": -2}, {"rest_total_hits_as_int": "true"}, "must be positive or equals to -1"),
        (
            {"query": {"multi_match": {"query": "x", "type": "bool_prefix", "fields": ["t"], "slop": 1}}},
            {},
            "[slop] not allowed for type [bool_prefix]",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(
    http: httpx.Client, ask: Any, body: Any, parameters: Any, said: str
) -> None:
    made(http, {"t": {"type": "text"}}, {"t": "x"})
    answer = ask(body, **parameters)
    assert answer.status_code in (400, 404)
    assert said in answer.text


def test_missing_names_in_indices_boost_may_be_ignored(http: httpx.Client, ask: Any) -> None:
    made(http, {}, {"n": 1})
    assert ids(ask({"indices_boost": [{"zz": 2.0}, {"i*": 3.0}]}, ignore_unavailable="true")) == ["1"]


def test_named_queries_tell_their_scores(http: httpx.Client, ask: Any) -> None:
    made(http, {}, {"n": [1, 2]})
    clauses = [{"term": {"n": {"value": n, "_name": f"of{n}", "boost": n * 10}}} for n in (1, 2)]
    body = {"query": {"bool": {"should": clauses}}}
    assert first(ask(body))["matched_queries"] == ["of1", "of2"]
    shown = first(ask(body, include_named_queries_score="true"))
    assert shown["matched_queries"] == {"of1": 10.0, "of2": 20.0}


def test_hits_of_a_group_may_be_collapsed_again(http: httpx.Client, ask: Any) -> None:
    rows = [{"a": 1, "b": 1, "n": 1}, {"a": 1, "b": 1, "n": 2}, {"a": 1, "b": 2, "n": 3}]
    made(http, {}, *rows)
    inner: Any = {"name": "x", "collapse": {"field": "b"}, "sort": [{"n": "desc"}]}
    group = first(ask({"collapse": {"field": "a", "inner_hits": inner}}))["inner_hits"]["x"]["hits"]
    assert [(hit["_id"], hit["fields"]) for hit in group["hits"]] == [("3", {"b": [2]}), ("2", {"b": [1]})]
    inner["collapse"]["inner_hits"] = {}
    assert ask({"collapse": {"field": "a", "inner_hits": inner}}).status_code == 400


def test_fields_of_a_nested_hit_stand_below_its_path(http: httpx.Client, ask: Any) -> None:
    made(http, {"rows": {"type": "nested", "properties": {"n": {"type": "long"}}}}, {"rows": [{"n": 7}]})
    nested = {"path": "rows", "query": {"match_all": {}}, "inner_hits": {"fields": ["rows.n"]}}
    hit = first(ask({"query": {"nested": nested}}))["inner_hits"]["rows"]["hits"]["hits"][0]
    assert hit["fields"] == {"rows": [{"n": [7]}]}


def test_highlighting_reads_as_far_as_the_index_says(http: httpx.Client, ask: Any) -> None:
    text = "the fox and later another fox"
    properties = {"t": {"type": "text"}, "o": {"type": "text", "index_options": "offsets"}}
    made(http, properties, {"t": text, "o": text}, settings={"highlight.max_analyzed_offset": 20})

    def shown(name: str, **members: Any) -> httpx.Response:
        highlight = {"fields": {name: {"number_of_fragments": 0}}, **members}
        answer: httpx.Response = ask({"query": {"match": {name: "fox"}}, "highlight": highlight})
        return answer

    assert shown("t").status_code == shown("o", type="plain").status_code == 400
    assert shown("t", max_analyzed_offset=0).json()["error"]["type"] == "x_content_parse_exception"
    cut, whole = "the <em>fox</em> and later another fox", "the <em>fox</em> and later another <em>fox</em>"
    for given in (-1, 10):
        assert first(shown("t", max_analyzed_offset=given))["highlight"] == {"t": [cut]}
    assert first(shown("o"))["highlight"] == {"o": [whole]}


def test_highlights_leave_out_ignored_values_and_look_as_other_fields_do(
    http: httpx.Client, ask: Any
) -> None:
    english = {"english": {"type": "text", "analyzer": "english"}}
    properties = {"k": {"type": "keyword", "ignore_above": 3}, "t": {"type": "text", "fields": english}}
    made(http, properties, {"k": "long", "t": "dancing stars"})
    by_prefix: Any = {"query": {"match_all": {}}, "highlight": {"fields": {"k": {}}}}
    by_prefix["highlight"] |= {"require_field_match": False, "highlight_query": {"prefix": {"k": "l"}}}
    assert "highlight" not in first(ask(by_prefix))
    query = {"query": {"match": {"t.english": "dance star"}}}
    highlight = {"fields": {"t": {"matched_fields": ["t.english"]}}}
    found = first(ask({**query, "highlight": highlight}))["highlight"]
    assert found == {"t": ["<em>dancing</em> <em>stars</em>"]}
    assert ask({**query, "highlight": {**highlight, "require_field_match": False}}).status_code == 400


def test_corners_may_be_geohashes(http: httpx.Client, ask: Any) -> None:
    made(http, {"p": {"type": "geo_point"}}, {"p": [1, 1]}, {"p": [-1, 1]})
    box = {"p": {"top_left": "s", "bottom_right": "s"}}
    assert ids(ask({"query": {"geo_bounding_box": box}})) == ["1"]


def test_a_column_makes_a_field_searchable(http: httpx.Client) -> None:
    made(http, {"n": {"type": "long", "index": False}})
    shown = http.get("/i/_field_caps", params={"fields": "n"}).json()["fields"]["n"]["long"]
    assert shown["searchable"] is True
    assert reason_of(http.get("/i/_count", params={"terminate_after": -1}))[2] == "terminateAfter must be > 0"
