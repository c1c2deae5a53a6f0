"""What clients notice of a search beside its hits: limits, formats, fields, highlights, hits below hits."""

from typing import Any

import httpx
import pytest

from tests.unit.serve.search.conftest import one_shard, reason_of


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


@one_shard
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


def tokens(answer: httpx.Response) -> dict[str, int]:
    buckets = answer.raise_for_status().json()["aggregations"]["a"]["buckets"]
    return {bucket["key"]: bucket["doc_count"] for bucket in buckets}


TERMS = {"size": 0, "aggs": {"a": {"terms": {"field": "t"}}}}


def test_fielddata_gives_the_tokens_of_a_text(http: httpx.Client, ask: Any) -> None:
    properties = {"t": {"type": "text", "fielddata": True}}
    made(http, properties, {"t": "The Red red fox"}, {"t": ["zebra", "a red"]}, {"n": 1}, {"t": "..."})
    assert tokens(ask(TERMS)) == {"red": 2, "a": 1, "fox": 1, "the": 1, "zebra": 1}
    metrics = {kind: {kind: {"field": "t"}} for kind in ("cardinality", "value_count", "missing")}
    found = ask({"size": 0, "aggs": metrics}).json()["aggregations"]
    assert (found["cardinality"]["value"], found["value_count"]["value"]) == (5, 6)
    assert found["missing"]["doc_count"] == 2
    assert ids(ask({"sort": ["t", "_doc"]})) == ["2", "1", "3", "4"]
    assert first(ask({"sort": [{"t": "desc"}]}))["sort"] == ["zebra"]
    assert ids(ask({"sort": [{"t": "desc"}, "_doc"], "search_after": ["the", 9]})) == ["3", "4"]
    shown = first(ask({"query": {"ids": {"values": ["1"]}}, "docvalue_fields": ["t"]}))["fields"]
    assert shown == {"t": ["fox", "red", "the"]}
    caps = http.get("/i/_field_caps?fields=t").json()["fields"]["t"]["text"]
    assert caps["aggregatable"] is True
    assert reason_of(ask({"collapse": {"field": "t"}}))[0] == 400
    buckets = {"sources": [{"x": {"terms": {"field": "t"}}}], "size": 2}
    pages = ask({"size": 0, "aggs": {"a": {"composite": buckets}}}).json()["aggregations"]["a"]["buckets"]
    assert [page["key"]["x"] for page in pages] == ["a", "fox"]


def test_fielddata_may_be_switched_on_later(http: httpx.Client, ask: Any) -> None:
    properties = {"t": {"type": "text"}, "rows": {"type": "nested", "properties": {"t": {"type": "text"}}}}
    made(http, properties, {"t": "one two", "rows": [{"t": "x y"}, {"t": "y"}]})
    refused = ask(TERMS)
    assert refused.status_code == 400
    cause = refused.json()["error"]["root_cause"][0]
    assert cause["reason"].startswith("Fielddata is disabled on [t] in [i].")
    made(http, {"t": {"type": "text", "fielddata": True}}, {"t": "two"}, index="j")
    on = {"type": "text", "fielddata": True}
    changed = {"properties": {"t": on, "rows": {"type": "nested", "properties": {"t": on}}}}
    http.put("/i/_mapping", json=changed).raise_for_status()
    assert tokens(ask(TERMS)) == {"one": 1, "two": 1}
    assert tokens(ask(TERMS, "i,j")) == {"two": 2, "one": 1}
    inner = {"nested": {"path": "rows"}, "aggs": {"a": {"terms": {"field": "rows.t"}}}}
    found = ask({"size": 0, "aggs": {"r": inner}}).json()["aggregations"]["r"]["a"]["buckets"]
    assert [(bucket["key"], bucket["doc_count"]) for bucket in found] == [("y", 2), ("x", 1)]
    http.put("/i/_mapping", json={"properties": {"t": {**on, "fielddata": False}}}).raise_for_status()
    assert reason_of(ask(TERMS))[0] == 400


@one_shard
def test_fielddata_leaves_out_tokens_by_their_frequency(http: httpx.Client, ask: Any) -> None:
    field = {"type": "text", "fielddata": True, "fielddata_frequency_filter": {"min": 2, "max": 0.7}}
    made(http, {"t": field})
    lines = "".join(
        f'{{"index":{{}}}}\n{{"t":"{text}"}}\n' for text in ("all some", "all some", "all", "all one")
    )
    headers = {"Content-Type": "application/x-ndjson"}
    http.post("/i/_bulk?refresh=true", content=lines, headers=headers).raise_for_status()
    assert tokens(ask(TERMS)) == {"some": 2}
    for wrong in ({"most": 1}, {"min": "x"}, {"min": -1}, 3):
        body = {"properties": {"u": {**field, "fielddata_frequency_filter": wrong}}}
        assert reason_of(http.put("/i/_mapping", json=body))[0] == 400


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


def test_totals_of_several_searches_as_numbers_are_exact(http: httpx.Client) -> None:
    made(http, {}, {"n": 1})
    headers = {"content-type": "application/x-ndjson"}
    for tracked, status in ((True, 200), (10, 400)):
        lines = f'{{}}\n{{"track_total_hits":{str(tracked).lower()}}}\n{{}}\n{{}}\n'
        answer = http.post("/_msearch?rest_total_hits_as_int=true", content=lines, headers=headers)
        assert answer.status_code == status


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
    for refused in (0, -1):
        answer = shown("t", max_analyzed_offset=refused)
        assert answer.json()["error"]["type"] == "x_content_parse_exception"
    cut, whole = "the <em>fox</em> and later another fox", "the <em>fox</em> and later another <em>fox</em>"
    assert first(shown("t", max_analyzed_offset=10))["highlight"] == {"t": [cut]}
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


INSTANTS = [
    "2018-10-29T12:12:12.123456788Z",
    "2018-10-29T12:12:12.123456789Z",
    "2018-10-29T12:12:12.123456790Z",
    "2018-10-29T12:12:13Z",
]
SECOND = 1_540_815_132_000_000_000  # nanoseconds at 12:12:12


@pytest.fixture
def instants(http: httpx.Client) -> None:
    made(http, {"at": {"type": "date_nanos"}, "n": {"type": "long"}}, *({"at": one} for one in INSTANTS))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"term": {"at": INSTANTS[1]}}, "2"),
        ({"terms": {"at": [INSTANTS[0], INSTANTS[2]]}}, "13"),
        ({"match": {"at": INSTANTS[2]}}, "3"),
        ({"term": {"at": "2018-10-29T12:12:12"}}, "123"),
        ({"term": {"at": "2018-10-29T12:12:12.123"}}, ""),
        ({"term": {"at": 1540815132123}}, "123"),
        ({"term": {"at": "1540815132123.456789"}}, "2"),
        ({"range": {"at": {"gt": INSTANTS[1]}}}, "34"),
        ({"range": {"at": {"gte": INSTANTS[1], "lt": INSTANTS[2]}}}, "2"),
        ({"range": {"at": {"lte": INSTANTS[1]}}}, "12"),
        ({"range": {"at": {"lt": "2018-10-29T12:12:12.123"}}}, ""),
        ({"range": {"at": {"lte": "2018-10-29T12:12:12"}}}, "123"),
        ({"range": {"at": {"gt": "2018-10-29T12:12:12"}}}, "4"),
        ({"range": {"at": {"lte": f"{INSTANTS[1]}||/s"}}}, "123"),
        ({"range": {"at": {"gte": f"{INSTANTS[1]}||+1d-1d"}}}, "234"),
        ({"range": {"at": {"lte": "now"}}}, "1234"),
        ({"query_string": {"query": f'at:["{INSTANTS[1]}" TO "{INSTANTS[2]}"]'}}, "23"),
        ({"range": {"at": {"gte": "29/10/2018 12:12:12", "format": "dd/MM/yyyy HH:mm:ss"}}}, "1234"),
    ],
)
def test_queries_tell_nanoseconds_apart(instants: None, ask: Any, query: Any, expected: str) -> None:
    assert "".join(sorted(ids(ask({"query": query})))) == expected


def test_sorting_tells_nanoseconds_apart(instants: None, ask: Any) -> None:
    for order, expected in (("asc", "1234"), ("desc", "4321")):
        hits = ask({"sort": [{"at": order}]}).json()["hits"]["hits"]
        assert "".join(hit["_id"] for hit in hits) == expected
        for after in (hits[1]["sort"], [INSTANTS[int(hits[1]["_id"]) - 1]]):
            page = ask({"sort": [{"at": order}], "search_after": after})
            assert "".join(ids(page)) == expected[2:]
    hits = ask({"sort": ["at"]}).json()["hits"]["hits"]
    assert hits[1]["sort"] == [SECOND + 123_456_789]
    shaped = {"at": {"format": "strict_date_optional_time_nanos"}}
    hits = ask({"sort": [shaped]}).json()["hits"]["hits"]
    assert [hit["sort"][0] for hit in hits[1:]] == [
        INSTANTS[1],
        "2018-10-29T12:12:12.12345679Z",
        "2018-10-29T12:12:13.000Z",
    ]
    assert ids(ask({"sort": [shaped], "search_after": hits[1]["sort"]})) == ["3", "4"]
    seconds = {"at": {"format": "epoch_second"}}
    hits = ask({"sort": [seconds]}).json()["hits"]["hits"]
    assert [hits[0]["sort"], hits[3]["sort"]] == [["1540815132.123456788"], ["1540815133"]]
    assert ids(ask({"sort": [seconds], "search_after": ["1540815132"]})) == ["1", "2", "3", "4"]
    modes = {mode: ask({"sort": [{"at": {"mode": mode}}]}) for mode in ("min", "max", "avg", "median", "sum")}
    assert {mode: "".join(ids(answer)) for mode, answer in modes.items()} == dict.fromkeys(modes, "1234")
    assert first(ask({"sort": [{"at": {"numeric_type": "date"}}]}))["sort"] == [SECOND // 10**6 + 123]
    missing = {"n": {"order": "asc", "missing": 5}}
    assert first(ask({"sort": [missing]}))["sort"] == [5]
    assert ask({"sort": [{"at": {"numeric_type": "no"}}]}).status_code == 400


def test_hits_show_nanoseconds(instants: None, ask: Any) -> None:
    shown = first(ask({"docvalue_fields": ["at"], "fields": ["at"], "query": {"ids": {"values": ["2"]}}}))
    assert shown["fields"] == {"at": [INSTANTS[1]]}
    for key in ("docvalue_fields", "fields"):
        for shape, expected in (
            ("strict_date_optional_time", "2018-10-29T12:12:12.123Z"),
            ("strict_date_optional_time_nanos", INSTANTS[1]),
            ("epoch_millis", "1540815132123.456789"),
            ("epoch_second", "1540815132.123456789"),
            ("HH:mm:ss.SSSSSSSSS", "12:12:12.123456789"),
        ):
            body = {key: [{"field": "at", "format": shape}], "query": {"ids": {"values": ["2"]}}}
            assert first(ask(body))["fields"] == {"at": [expected]}, (key, shape)
    collapsed = ask({"collapse": {"field": "at"}, "sort": ["at"]}).json()["hits"]["hits"]
    assert [hit["fields"]["at"] for hit in collapsed[:2]] == [[INSTANTS[0]], [INSTANTS[1]]]
    top = {"top_hits": {"sort": [{"at": "desc"}], "size": 3, "_source": False}}
    hits = ask({"size": 0, "aggs": {"t": top}}).json()["aggregations"]["t"]["hits"]["hits"]
    assert [hit["_id"] for hit in hits] == ["4", "3", "2"]


def test_aggregations_know_dates_to_the_millisecond(instants: None, ask: Any) -> None:
    body = {
        "size": 0,
        "aggs": {
            "t": {"terms": {"field": "at"}},
            "h": {"date_histogram": {"field": "at", "fixed_interval": "1s"}},
            "m": {"max": {"field": "at"}},
            "c": {"composite": {"sources": [{"at": {"terms": {"field": "at"}}}]}},
            "r": {"date_range": {"field": "at", "ranges": [{"from": "2018-10-29T12:12:13Z"}]}},
        },
    }
    found = ask(body).raise_for_status().json()["aggregations"]
    ms = SECOND // 10**6
    assert [(one["key"], one["doc_count"]) for one in found["t"]["buckets"]] == [
        (ms + 123, 3),
        (ms + 1000, 1),
    ]
    assert found["t"]["buckets"][0]["key_as_string"] == "2018-10-29T12:12:12.123Z"
    assert [(one["key"], one["doc_count"]) for one in found["h"]["buckets"]] == [(ms, 3), (ms + 1000, 1)]
    assert found["m"] == {"value": ms + 1000.0, "value_as_string": "2018-10-29T12:12:13.000Z"}
    assert [one["key"]["at"] for one in found["c"]["buckets"]] == [ms + 123, ms + 1000]
    assert found["r"]["buckets"][0]["doc_count"] == 1
    absent = {"terms": {"field": "at", "missing": "2020-01-01"}, "aggs": {}}
    assert ask({"size": 0, "aggs": {"t": absent}}).status_code == 200


def test_nanoseconds_end_in_2262(http: httpx.Client, ask: Any) -> None:
    made(http, {"at": {"type": "date_nanos"}, "loose": {"type": "date_nanos", "ignore_malformed": True}})
    last = "2262-04-11T23:47:16.854775807Z"
    http.put("/i/_doc/1?refresh=true", json={"at": ["1970-01-01T00:00:00Z", last]}).raise_for_status()
    for value, words in (
        (
            "1969-12-31T23:59:59.999999999Z",
            "date[1969-12-31T23:59:59.999999999Z] is before the epoch in 1970",
        ),
        (-1, "is before the epoch in 1970 and cannot be stored in nanosecond resolution"),
        ("2262-04-11T23:47:16.854775808Z", "is after 2262-04-11T23:47:16.854775807 and cannot be stored"),
        ("9999-12-31", "is after 2262-04-11T23:47:16.854775807"),
    ):
        refused = http.put("/i/_doc/2", json={"at": value}).json()["error"]
        assert refused["type"] == "document_parsing_exception"
        assert words in refused["caused_by"]["reason"]
        answer = ask({"query": {"range": {"at": {"gte": value}}}})
        assert answer.status_code == 400
        assert words in answer.json()["error"]["root_cause"][0]["reason"]
        assert http.put("/i/_doc/3?refresh=true", json={"loose": value}).status_code in (200, 201)
    assert ids(ask({"query": {"term": {"_ignored": "loose"}}})) == ["3"]
    assert ids(ask({"query": {"range": {"at": {"gte": last}}}})) == ["1"]
    assert ids(ask({"query": {"range": {"at": {"gt": last}}}})) == []
    assert first(ask({"sort": [{"at": "desc"}]}))["sort"] == [2**63 - 1]


def test_dates_of_both_precisions_are_searched_together(http: httpx.Client, ask: Any) -> None:
    made(http, {"at": {"type": "date_nanos"}}, *({"at": one} for one in INSTANTS[:3]), index="a")
    made(http, {"at": {"type": "date"}}, {"at": "2018-10-29T12:12:12.124Z"}, {"at": "1960-01-01"}, index="b")

    def found(body: Any) -> list[tuple[str, str]]:
        hits = ask(body, "a,b").raise_for_status().json()["hits"]["hits"]
        return [(hit["_index"], hit["_id"]) for hit in hits]

    order = [("b", "2"), ("a", "1"), ("a", "2"), ("a", "3"), ("b", "1")]
    assert found({"sort": ["at"]}) == order
    assert found({"sort": [{"at": "desc"}], "search_after": [INSTANTS[2]]}) == order[2::-1]
    hits = ask({"sort": ["at"]}, "a,b").json()["hits"]["hits"]
    assert [hit["sort"] for hit in hits[3:]] == [[SECOND + 123_456_790], [SECOND + 124_000_000]]
    assert sorted(found({"query": {"range": {"at": {"gt": INSTANTS[1]}}}})) == [("a", "3"), ("b", "1")]
    terms = {"size": 0, "aggs": {"t": {"terms": {"field": "at", "order": {"_key": "asc"}}}}}
    counts = [one["doc_count"] for one in ask(terms, "a,b").json()["aggregations"]["t"]["buckets"]]
    assert counts == [1, 3, 1]
    http.put("/b/_doc/3?refresh=true", json={"at": "9999-12-31"}).raise_for_status()
    assert ask({"sort": ["at"]}, "a,b").status_code == 400
    assert found({"sort": [{"at": {"order": "desc", "numeric_type": "date"}}], "size": 2}) == [
        ("b", "3"),
        ("b", "1"),
    ]
    missing = {"at": {"unmapped_type": "date_nanos", "missing": INSTANTS[0]}}
    made(http, {}, {}, index="c")
    assert first(ask({"sort": [missing]}, "c"))["sort"] == [SECOND + 123_456_788]
    assert ask({"sort": [missing], "search_after": [INSTANTS[1]]}, "c").json()["hits"]["hits"] == []


UNSIGNED = [0, 5, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]


@pytest.fixture
def unsigned(http: httpx.Client) -> None:
    made(
        http,
        {"u": {"type": "unsigned_long"}, "g": {"type": "long"}},
        *({"u": one, "g": 1} for one in UNSIGNED),
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"term": {"u": 2**64 - 1}}, "7"),
        ({"term": {"u": str(2**64 - 2)}}, "6"),
        ({"term": {"u": 2**64}}, ""),
        ({"term": {"u": -1}}, ""),
        ({"term": {"u": 5.5}}, ""),
        ({"terms": {"u": [2**63, 5, -1, 2**64]}}, "25"),
        ({"range": {"u": {"gt": 2**63 - 1}}}, "567"),
        ({"range": {"u": {"gte": -10, "lt": 2**63}}}, "1234"),
        ({"range": {"u": {"lte": -1}}}, ""),
        ({"range": {"u": {"lt": 0}}}, ""),
        ({"range": {"u": {"gt": 2**64 - 1}}}, ""),
        ({"range": {"u": {"gte": "18446744073709551614"}}}, "67"),
        ({"range": {"u": {"lte": 1e30}}}, "1234567"),
        ({"range": {"u": {"gte": 4.5, "lte": 5.5}}}, "2"),
        ({"query_string": {"query": f"u:>={2**64 - 2}"}}, "67"),
        ({"exists": {"field": "u"}}, "1234567"),
    ],
)
def test_queries_of_unsigned_numbers(unsigned: None, ask: Any, query: Any, expected: str) -> None:
    assert "".join(sorted(ids(ask({"query": query})))) == expected


def test_sorting_and_showing_unsigned_numbers(unsigned: None, ask: Any) -> None:
    hits = ask({"sort": ["u"], "docvalue_fields": ["u"], "fields": ["u"]}).json()["hits"]["hits"]
    assert [hit["sort"] for hit in hits] == [[one] for one in UNSIGNED]
    assert [hit["fields"]["u"] for hit in hits] == [[one] for one in UNSIGNED]
    down = ask({"sort": [{"u": "desc"}], "search_after": [2**63]}).json()["hits"]["hits"]
    assert [hit["sort"] for hit in down] == [[one] for one in UNSIGNED[3::-1]]
    collapsed = ask({"collapse": {"field": "u"}, "sort": [{"u": "desc"}]}).json()["hits"]["hits"]
    assert [hit["fields"]["u"] for hit in collapsed] == [[one] for one in UNSIGNED[::-1]]


def test_aggregations_of_unsigned_numbers(unsigned: None, ask: Any, http: httpx.Client) -> None:
    http.put("/i/_doc/8?refresh=true", json={"g": 1}).raise_for_status()
    of = {"field": "u"}
    sources = [{"u": {"terms": of}}]
    body = {
        "size": 0,
        "aggs": {
            "t": {"terms": {**of, "order": {"_key": "asc"}}},
            "m": {"terms": {**of, "missing": 2**64 - 1}},
            "c": {"composite": {"sources": sources, "size": 4}},
            "least": {"min": of},
            "most": {"max": of},
            "n": {"cardinality": of},
            "v": {"value_count": of},
            "r": {"range": {**of, "ranges": [{"from": 2**63}]}},
            "none": {"missing": of},
        },
    }
    found = ask(body).raise_for_status().json()["aggregations"]
    assert [one["key"] for one in found["t"]["buckets"]] == UNSIGNED
    assert (found["m"]["buckets"][0]["key"], found["m"]["buckets"][0]["doc_count"]) == (2**64 - 1, 2)
    assert [one["key"]["u"] for one in found["c"]["buckets"]] == UNSIGNED[:4]
    after = {"composite": {"sources": sources, "after": found["c"]["after_key"]}}
    rest = ask({"size": 0, "aggs": {"c": after}}).json()["aggregations"]["c"]["buckets"]
    assert [one["key"]["u"] for one in rest] == UNSIGNED[4:]
    assert (found["least"]["value"], found["most"]["value"]) == (0.0, 2.0**64)
    assert (found["n"]["value"], found["v"]["value"], found["none"]["doc_count"]) == (7, 7, 1)
    assert found["r"]["buckets"][0]["doc_count"] == 4  # as doubles, of which 2^63 - 1 is one with 2^63


@pytest.mark.parametrize(("field", "least", "most"), [("u", 0, 2**64 - 1), ("g", -(2**63), 2**63 - 1)])
def test_what_stands_for_missing_whole_numbers_is_one(
    unsigned: None, ask: Any, http: httpx.Client, field: str, least: int, most: int
) -> None:
    http.put("/i/_doc/8?refresh=true", json={}).raise_for_status()
    eighth = {"ids": {"values": ["8"]}}
    for given, expected in ((1e30, most), (-1e30, least), (2**70, most), (7, 7), (1.5, 1)):
        body = {"query": eighth, "sort": [{field: {"missing": given}}]}
        assert first(ask(body))["sort"] == [expected]
    for given in (2**70, 1e40, -1e40):
        answer = ask({"size": 0, "aggs": {"t": {"terms": {"field": field, "missing": given}}}})
        assert answer.status_code == 400
        assert "is out of range" in answer.json()["error"]["root_cause"][0]["reason"]
    for odd in ("Infinity", "-Infinity", "NaN", 1e40, -(2**70)):
        for kind in ("terms", "avg", "max", "cardinality", "percentiles", "histogram", "value_count"):
            options = {"field": field, "missing": odd, **({"interval": 5} if kind == "histogram" else {})}
            answer = ask({"size": 0, "query": eighth, "aggs": {"a": {kind: options}}})
            assert answer.status_code in (200, 400), answer.text


def test_unsigned_numbers_with_others(unsigned: None, ask: Any, http: httpx.Client) -> None:
    made(http, {"u": {"type": "long"}}, {"u": -7}, index="j")
    hits = ask({"sort": ["u"]}, "i,j").raise_for_status().json()["hits"]["hits"]
    assert [hit["sort"][0] for hit in hits] == [-7.0, *map(float, UNSIGNED)]


def test_unsigned_numbers_and_aliases_in_scores(unsigned: None, ask: Any, http: httpx.Client) -> None:
    alias: Any = {"v": {"type": "alias", "path": "u"}, "t": {"type": "date_nanos"}}
    http.put("/i/_mapping", json={"properties": alias}).raise_for_status()
    http.put("/i/_doc/8?refresh=true", json={"t": "2020-01-01T00:00:00.000000001Z"}).raise_for_status()
    for name in ("u", "v"):
        factor = {"field_value_factor": {"field": name, "missing": 0, "factor": 2}}
        scored = ask({"query": {"function_score": factor}}).raise_for_status().json()["hits"]["hits"]
        assert (scored[0]["_score"], scored[-1]["_score"]) == (pytest.approx(2.0**65), 0.0)
        near: Any = {"linear": {name: {"origin": 2**64 - 1, "scale": 10}}}
        query = {"function_score": {"query": {"exists": {"field": name}}, **near}}
        scored = ask({"query": query}).raise_for_status().json()["hits"]["hits"]
        assert [hit["_score"] for hit in scored] == [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        assert len(ids(ask({"query": {"query_string": {"query": f"_exists_:{name}"}}}))) == 7
    near = {"linear": {"t": {"origin": "2020-01-01", "scale": "1s"}}}
    query = {"function_score": {"query": {"exists": {"field": "t"}}, **near}}
    assert first(ask({"query": query}))["_score"] == 1.0


@pytest.mark.parametrize("value", [-1, 2**64, 1.9e19, "x", "-0.5e1"])
def test_what_is_no_unsigned_number_is_refused(unsigned: None, http: httpx.Client, value: Any) -> None:
    assert http.put("/i/_doc/9", json={"u": value}).status_code == 400


@one_shard
def test_binary_values_exist(http: httpx.Client, ask: Any) -> None:
    binary = {"type": "binary"}
    properties = {"d": {**binary, "doc_values": True}, "s": {**binary, "store": True}, "b": binary}
    made(http, properties, {"d": "aGk="}, {"s": "aGk="}, {"b": "aGk="}, {"d": ["aGk=", "eW8="], "s": "aGk="})
    found = {
        name: ids(ask({"query": {"exists": {"field": name}}, "sort": "_doc"}))
        for name in ("d", "s", "b", "*")
    }
    assert found == {"d": ["1", "4"], "s": ["2", "4"], "b": [], "*": ["1", "2", "4"]}
    http.post("/i/_forcemerge?max_num_segments=1").raise_for_status()
    assert ids(ask({"query": {"query_string": {"query": "_exists_:d"}}, "sort": "_doc"})) == ["1", "4"]
    assert http.put("/i/_doc/5", json={"d": "no base64!"}).status_code == 400
    assert ask({"sort": "d"}).status_code == 400


@one_shard
def test_inner_hits_of_nested_in_nested_are_in_the_hit_around(http: httpx.Client, ask: Any) -> None:
    leaf = {"type": "nested", "properties": {"n": {"type": "integer"}, "deep": {"type": "nested"}}}
    rows = {"type": "nested", "properties": {"k": {"type": "keyword"}, "cells": leaf}}
    documents = [
        {"rows": [{"k": "a", "cells": [{"n": 1}, {"n": 2}]}, {"k": "b", "cells": [{"n": 3}]}]},
        {
            "rows": [
                {"k": "a", "cells": [{"n": 2, "deep": [{"x": 1}, {"x": 2}]}]},
                {"k": "a", "cells": [{"n": 9}]},
            ]
        },
        {"rows": {"k": "a"}},
    ]
    for index in ("i", "j"):
        made(http, {"rows": rows}, *documents, index=index)
    deep = {
        "nested": {"path": "rows.cells.deep", "query": {"term": {"rows.cells.deep.x": 2}}, "inner_hits": {}}
    }
    few = {"range": {"rows.cells.n": {"gte": 2, "lt": 9}}}
    either = {"bool": {"must": few, "should": deep}}
    cells = {
        "nested": {"path": "rows.cells", "query": either, "inner_hits": {"name": "c", "sort": "rows.cells.n"}}
    }
    inner = {"bool": {"must": [{"term": {"rows.k": "a"}}], "filter": cells}}
    query = {"nested": {"path": "rows", "query": inner, "inner_hits": {"size": 5}}}
    for names in ("i", "i,j"):
        hits = (
            ask({"query": query, "sort": ["_index", "_doc"]}, names).raise_for_status().json()["hits"]["hits"]
        )
        assert len(hits) == 2 * len(names.split(","))
        one, two = hits[:2]
        assert list(one["inner_hits"]) == ["rows"]
        [row] = one["inner_hits"]["rows"]["hits"]["hits"]
        assert row["_nested"] == {"field": "rows", "offset": 0}
        assert row["inner_hits"]["c"]["hits"]["total"]["value"] == 1
        [cell] = row["inner_hits"]["c"]["hits"]["hits"]
        assert cell["_nested"] == {"field": "rows", "offset": 0, "_nested": {"field": "cells", "offset": 1}}
        assert cell["_source"] == {"n": 2}
        assert cell["inner_hits"]["rows.cells.deep"]["hits"]["hits"] == []
        [row] = two["inner_hits"]["rows"]["hits"]["hits"]
        [cell] = row["inner_hits"]["c"]["hits"]["hits"]
        [below] = cell["inner_hits"]["rows.cells.deep"]["hits"]["hits"]
        assert below["_source"] == {"x": 2}
    # a clause within one that shows nothing is shown with the document
    query["nested"].pop("inner_hits")
    hits = ask({"query": query, "sort": "_doc"}).json()["hits"]["hits"]
    assert [list(hit["inner_hits"]) for hit in hits] == [["c"], ["c"]]
    # the same name may be used on different levels, but not twice on one
    named = {"name": "same"}
    cells["nested"]["inner_hits"] = query["nested"]["inner_hits"] = named
    assert list(first(ask({"query": query}))["inner_hits"]) == ["same"]
    assert ask({"query": {"bool": {"should": [query, query]}}}).status_code == 400


def test_aliases_of_fields_are_one_with_fields_of_their_name(http: httpx.Client, ask: Any) -> None:
    """Of one index `n` is a field, of others an alias of one, of other widths as well."""
    made(http, {"n": {"type": "integer"}}, {"n": 3}, {"n": 1}, index="a")
    made(http, {"m": {"type": "integer"}, "n": {"type": "alias", "path": "m"}}, {"m": 2}, index="b")
    made(http, {"o": {"type": "long"}, "n": {"type": "alias", "path": "o"}}, {"o": 2**40}, {}, index="c")
    made(http, {"k": {"type": "keyword"}, "n": {"type": "alias", "path": "k"}}, {"k": "x"}, index="d")
    hits = (
        ask({"sort": ["n"], "docvalue_fields": ["n"], "fields": ["n"]}, "a,b,c")
        .raise_for_status()
        .json()["hits"]["hits"]
    )
    assert [hit["sort"][0] for hit in hits] == [1, 2, 3, 2**40, 2**63 - 1]
    assert [hit["_index"] for hit in hits] == ["a", "b", "a", "c", "c"]
    body = {
        "size": 0,
        "aggs": {
            "t": {"terms": {"field": "n", "order": {"_key": "asc"}}},
            "s": {"sum": {"field": "n"}},
            "none": {"missing": {"field": "n"}},
            "of": {"terms": {"field": "o"}},
        },
    }
    found = ask(body, "a,b,c").raise_for_status().json()["aggregations"]
    assert [one["key"] for one in found["t"]["buckets"]] == [1, 2, 3, 2**40]
    assert (found["s"]["value"], found["none"]["doc_count"]) == (2.0**40 + 6, 1)
    assert [one["key"] for one in found["of"]["buckets"]] == [2**40]
    assert len(ids(ask({"collapse": {"field": "n"}}, "a,b"))) == 3
    words = reason_of(ask({"sort": ["n"]}, "a,d"))
    assert words[0] == 400
    both = ask({"sort": ["n"]}, "a,d").json()["error"]["root_cause"][0]["reason"]
    assert "[integer] in [a] and [keyword] in [d]" in both


def test_hits_beyond_the_window_of_a_rescore_are_weighed(http: httpx.Client, ask: Any) -> None:
    made(http, {}, {"n": 1}, {"n": 2}, {"n": 3})
    rescore = {"rescore_query": {"match_all": {}}, "query_weight": 5, "rescore_query_weight": 10}
    body = {"explain": True, "rescore": {"window_size": 2, "query": rescore}}
    hits = ask(body).json()["hits"]["hits"]
    assert [hit["_score"] for hit in hits] == [15, 15, 5]
    assert [hit["_explanation"]["value"] for hit in hits] == [15, 15, 5]


def test_a_regular_expression_in_a_query_string_is_normalized(http: httpx.Client, ask: Any) -> None:
    made(http, {"k": {"type": "keyword"}, "t": {"type": "text"}}, {"k": "Ab", "t": "UPPER case"})
    for query, found in (("t:/UPP.*/", ["1"]), ("k:/A./", ["1"]), ("k:/a./", [])):
        assert ids(ask({"query": {"query_string": {"query": query}}})) == found, query


def test_a_search_of_no_index_is_read_all_the_same(ask: Any) -> None:
    assert ask({"query": {"match": {"a": "b"}}}, index="none*").json()["hits"]["total"]["value"] == 0
    refused: list[Any] = [{"query": {"nothing": {}}}, {"colour": 1}, {"aggs": {"a": {"colour": {}}}}]
    for body in refused:
        assert ask(body, index="none*").status_code == 400


def test_a_count_of_tokens_is_shown_as_a_number(http: httpx.Client, ask: Any) -> None:
    count = {"type": "token_count", "analyzer": "standard"}
    made(
        http,
        {"t": {"type": "text", "fields": {"count": count}}, "n": count},
        {"t": "some text", "n": "a b c"},
    )
    shown = first(ask({"fields": ["t.count", "n"], "docvalue_fields": ["n"]}))["fields"]
    assert shown == {"t.count": [2], "n": [3]}


def test_top_hits_have_the_inner_hits_of_the_query(http: httpx.Client, ask: Any) -> None:
    rows = {"type": "nested", "properties": {"t": {"type": "text"}}}
    made(
        http,
        {"k": {"type": "keyword"}, "rows": rows},
        {"k": "a", "rows": [{"t": "x"}, {"t": "y"}]},
        {"k": "b"},
    )
    query = {"nested": {"path": "rows", "query": {"match": {"rows.t": "y"}}, "inner_hits": {}}}
    aggs = {"k": {"terms": {"field": "k"}, "aggs": {"best": {"top_hits": {}}}}}
    (bucket,) = ask({"query": query, "aggs": aggs, "size": 0}).json()["aggregations"]["k"]["buckets"]
    (hit,) = bucket["best"]["hits"]["hits"]
    (inner,) = hit["inner_hits"]["rows"]["hits"]["hits"]
    assert (inner["_nested"]["offset"], inner["_source"]) == (1, {"t": "y"})


def test_notes_on_fields_are_merged(http: httpx.Client) -> None:
    for index, unit in (("i", "ms"), ("j", "ns")):
        made(http, {"took": {"type": "long", "meta": {"unit": unit, "kind": "gauge"}}}, index=index)
    made(http, {"took": {"type": "long"}, "other": {"type": "long"}}, index="plain")
    fields = http.get("/_field_caps?fields=*").json()["fields"]
    assert fields["took"]["long"]["meta"] == {"kind": ["gauge"], "unit": ["ms", "ns"]}
    assert "meta" not in fields["other"]["long"]


def test_an_index_says_how_many_tokens_are_shown(http: httpx.Client) -> None:
    made(http, {}, settings={"index.analyze.max_token_count": 3})
    for explain in (False, True):
        body = {"text": "one two three", "explain": explain}
        assert http.post("/i/_analyze", json=body).status_code == 200
        refused = reason_of(http.post("/i/_analyze", json={**body, "text": "one two three four"}))
        assert "exceeded the allowed maximum of [3]" in refused[2]


@pytest.mark.parametrize("version_type", ["external", "external_gte"])
def test_a_document_is_read_in_the_version_that_is_asked_for(http: httpx.Client, version_type: str) -> None:
    made(http, {}, {"n": 1})
    for version, status in ((1, 200), (2, 409)):
        path = f"/i/_doc/1?version={version}&version_type={version_type}"
        assert http.get(path).status_code == status


def test_digits_of_percentiles_are_a_number(http: httpx.Client, ask: Any) -> None:
    made(http, {"n": {"type": "long"}})
    hdr = {"number_of_significant_value_digits": None}
    assert ask({"aggs": {"p": {"percentiles": {"field": "n", "hdr": hdr}}}}).status_code == 400


def test_an_index_may_ignore_what_is_malformed(http: httpx.Client, ask: Any) -> None:
    fields = {"n": {"type": "long"}, "at": {"type": "date", "ignore_malformed": False}}
    made(http, fields, settings={"index.mapping.ignore_malformed": True})
    http.put("/i/_doc/1?refresh", json={"n": "many", "at": "2020-01-01"}).raise_for_status()
    assert first(ask({"query": {"exists": {"field": "_ignored"}}}))["_ignored"] == ["n"]
    assert reason_of(http.put("/i/_doc/2", json={"n": 1, "at": "soon"}))[1] == "document_parsing_exception"
    shown = http.get("/i/_mapping").json()["i"]["mappings"]["properties"]
    assert shown == fields  # what the index says is not written into its fields
    http.put("/i/_doc/3?refresh", json={"new": 1}).raise_for_status()
    http.put("/i/_doc/4?refresh", json={"new": "x"}).raise_for_status()
    assert ids(ask({"query": {"term": {"_ignored": "new"}}})) == ["4"]
    assert reason_of(http.put("/i/_settings", json={"mapping.ignore_malformed": False}))[0] == 400


def test_a_wildcard_field_may_have_a_normalizer_and_no_columns(http: httpx.Client, ask: Any) -> None:
    lower = {"type": "wildcard", "normalizer": "lowercase"}
    bare = {"type": "wildcard", "doc_values": False}
    made(http, {"w": {"type": "wildcard", "fields": {"lower": lower, "bare": bare}}}, {"w": "AbC"})
    assert ids(ask({"query": {"wildcard": {"w.lower": "aB*"}}})) == ["1"]
    assert ids(ask({"query": {"wildcard": {"w": "aB*"}}})) == []
    assert ids(ask({"query": {"term": {"w.bare": "AbC"}}})) == ["1"]
    assert reason_of(ask({"sort": ["w.bare"]}))[0] == 400
    assert ids(ask({"sort": ["w.lower"]})) == ["1"]


def test_a_bucket_is_named_by_its_key(http: httpx.Client, ask: Any) -> None:
    made(http, {"k": {"type": "keyword"}}, {"k": "a", "n": 1}, {"k": "b", "n": 5}, {"k": "b", "n": 7})
    terms = {"terms": {"field": "k"}, "aggs": {"mean": {"avg": {"field": "n"}}}}

    def value(path: str) -> Any:
        script = {"bucket_script": {"buckets_path": {"v": path}, "script": "params.v"}}
        aggs = {"all": {"filters": {"filters": [{"match_all": {}}]}, "aggs": {"t": terms, "s": script}}}
        (bucket,) = ask({"size": 0, "aggs": aggs}).json()["aggregations"]["all"]["buckets"]
        return bucket.get("s", {}).get("value")

    assert value("t['b']>mean.value") == 6.0
    assert value("t['a']>_count") == 1.0
    assert value("t['c']>mean.value") is None


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("size", [1, 3])
def test_pages_of_a_composite_go_on_among_numbers_that_are_one_as_doubles(
    http: httpx.Client, order: str, size: int
) -> None:
    http.put("/u", json={"mappings": {"properties": {"n": {"type": "unsigned_long"}}}}).raise_for_status()
    values = [5, 2**53, 2**53 + 1, *range(2**63 - 2, 2**63 + 3), 2**64 - 2, 2**64 - 1]
    for value in values:
        http.put(f"/u/_doc/{value}?refresh=true", json={"n": value}).raise_for_status()
    source = {"n": {"terms": {"field": "n", "order": order}}}
    seen: list[int] = []
    after: dict[str, Any] = {}
    while len(seen) < len(values):
        body = {"size": 0, "aggs": {"a": {"composite": {"size": size, "sources": [source], **after}}}}
        page = http.post("/u/_search", json=body).json()["aggregations"]["a"]
        assert page["buckets"]
        seen += [bucket["key"]["n"] for bucket in page["buckets"]]
        after = {"after": page["after_key"]}
    assert seen == sorted(values, reverse=order == "desc")
