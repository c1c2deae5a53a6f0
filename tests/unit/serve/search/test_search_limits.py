"""What a search is refused for: the limits that an index sets, and what no index could answer."""

from typing import Any

import httpx
import orjson
import pytest

from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.memory_search import MemorySearch
from tests.support.timing import HANG_S
from tests.unit.serve.search.conftest import SETTINGS, one_shard, reason_of

pytestmark = one_shard

VALUE = {"script": {"source": "1"}}


@pytest.mark.parametrize(
    ("setting", "most", "body", "reason"),
    [
        ("max_docvalue_fields_search", 1, {"docvalue_fields": ["a", "b"]}, "too many docvalue_fields"),
        ("max_script_fields", 1, {"script_fields": {"a": VALUE, "b": VALUE}}, "too many script_fields"),
        ("max_regex_length", 2, {"query": {"regexp": {"k": "a.*"}}}, "The length of regex [3]"),
        ("max_regex_length", 2, {"query": {"query_string": {"query": "/a.*/"}}}, "The length of regex [3]"),
        (
            "max_rescore_window",
            1,
            {"rescore": {"window_size": 2, "query": {"rescore_query": {"match_all": {}}}}},
            "Rescore window [2] is too large",
        ),
        (
            "max_inner_result_window",
            1,
            {"collapse": {"field": "k", "inner_hits": {"name": "i", "size": 2}}},
            "Inner result window is too large",
        ),
    ],
)
def test_an_index_sets_its_limits(
    http: httpx.Client, setting: str, most: int, body: dict[str, Any], reason: str
) -> None:
    http.put("/i/_doc/1?refresh=true", json={"k": 1}).raise_for_status()
    http.put("/j", json={"mappings": {"properties": {"k": {"type": "keyword"}}}}).raise_for_status()
    assert http.post("/j/_search", json=body).status_code == 200
    http.put("/j/_settings", json={setting: most}).raise_for_status()
    error = http.post("/j/_search", json=body).json()["error"]
    assert reason in error["root_cause"][0]["reason"]
    # of several indexes only those fail that set such a limit
    both = http.post("/i,j/_search", json=body).json()
    assert "error" in both or [one["index"] for one in both["_shards"]["failures"]] == ["j"]


def test_slices_are_counted_by_the_index(http: httpx.Client) -> None:
    http.put("/i", json={"settings": {"max_slices_per_scroll": 2}}).raise_for_status()
    for count, status in ((2, 200), (3, 400)):
        body = {"slice": {"id": 0, "max": count}}
        assert http.post("/i/_search?scroll=1m", json=body).status_code == status


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"nonsense": 1}, "Unknown key for a VALUE_NUMBER in [nonsense]."),
        ({"query": {"mach": {}}}, "unknown query [mach] did you mean [match]?"),
        (
            {"aggs": {"x": {"significant_terms": {"field": "k", "jlp": {}}}}},
            "[significant_terms] unknown field [jlp] did you mean [jlh]?",
        ),
        (
            {"aggs": {"x": {"bucket_sort": {"size": 1}}}},
            "Validation Failed: 1: bucket_sort aggregation [x] must be declared inside of another "
            "aggregation;",
        ),
        (
            {
                "aggs": {
                    "x": {"terms": {"field": "k"}, "aggs": {"d": {"derivative": {"buckets_path": "_count"}}}}
                }
            },
            "Validation Failed: 1: derivative aggregation [d] must have a histogram, date_histogram or "
            "auto_date_histogram as parent;",
        ),
        (
            {
                "aggs": {
                    "x": {
                        "histogram": {"field": "k", "interval": 1, "min_doc_count": 1},
                        "aggs": {"d": {"cumulative_sum": {"buckets_path": "_count"}}},
                    }
                }
            },
            "Validation Failed: 1: parent histogram of cumulative_sum aggregation [d] must have "
            "min_doc_count of 0;",
        ),
        (
            {
                "aggs": {
                    "x": {
                        "terms": {"field": "k"},
                        "aggs": {"c": {"composite": {"sources": [{"k": {"terms": {"field": "k"}}}]}}},
                    }
                }
            },
            "[composite] aggregation cannot be used with a parent aggregation of type: "
            "[TermsAggregatorFactory]",
        ),
    ],
)
def test_what_no_index_could_answer_is_refused_without_one(
    http: httpx.Client, body: dict[str, Any], reason: str
) -> None:
    assert reason_of(http.post("/_search", json=body))[2] == reason
    http.put("/i").raise_for_status()
    assert reason_of(http.post("/i/_search", json=body))[2] == reason


def test_a_search_of_nothing_may_name_fields_that_an_index_may_have(http: httpx.Client) -> None:
    body = {"sort": "n", "query": {"range": {"n": {"gte": 1}}}, "aggs": {"x": {"terms": {"field": "k"}}}}
    assert http.post("/_search", json=body).json()["hits"]["hits"] == []


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ("batched_reduce_size=1", "batchedReduceSize must be >= 2"),
        ("pre_filter_shard_size=0", "preFilterShardSize must be >= 1"),
        ("max_concurrent_shard_requests=0", "maxConcurrentShardRequests must be >= 1"),
        (
            "scroll=1m&request_cache=true&size=0",
            "Validation Failed: 1: [size] cannot be [0] in a scroll context; 2: [request_cache] cannot be "
            "used in a scroll context;",
        ),
    ],
)
def test_parameters_have_limits(http: httpx.Client, parameters: str, reason: str) -> None:
    http.put("/i").raise_for_status()
    assert reason_of(http.get(f"/i/_search?{parameters}"))[2] == reason


def test_a_path_to_buckets_must_lead_to_a_number(http: httpx.Client) -> None:
    http.put("/i/_doc/1?refresh=true", json={"n": 1}).raise_for_status()
    terms = {"terms": {"field": "n"}}
    below = {"t": {**terms, "aggs": {"m": {"max": {"field": "n"}}}}, "p": {"percentiles": {"field": "n"}}}
    for path, found in (
        ("a>t>m", "got: [Object[]] at aggregation [t]"),
        ("a>p", "but [p] contains multiple values. Please specify which to use."),
    ):
        aggs = {"a": {**terms, "aggs": below}, "x": {"max_bucket": {"buckets_path": path}}}
        error = http.post("/i/_search", json={"aggs": aggs}).json()["error"]
        assert error["root_cause"][0]["reason"].endswith(found)


def test_the_searches_of_an_msearch_end_after_a_time(node: MemorySearch, http: httpx.Client) -> None:
    lines = b"".join(b'{"index":{}}\n{"n":%d}\n' % number for number in range(2_000))
    ndjson = {"content-type": "application/x-ndjson"}
    assert not http.post("/a/_bulk?refresh=true", content=lines, headers=ndjson).json()["errors"]
    script = {"source": "int s = 0; for (int i = 0; i < 100; i++) { s += i } return s"}
    costly = orjson.dumps({"query": {"script_score": {"query": {"match_all": {}}, "script": script}}})
    hasty = SETTINGS.model_copy(
        update={"server": SETTINGS.server.model_copy(update={"query_timeout_seconds": 0.05})}
    )
    with serving(build_search_app(node, hasty)) as url:
        answer = httpx.post(
            f"{url}/a/_msearch",
            content=(b"{}\n" + costly + b"\n") * 300,
            headers=ndjson,
            timeout=HANG_S,
            trust_env=False,
        )
    responses = answer.json()["responses"]
    assert (answer.status_code, len(responses)) == (200, 300)
    kinds = {(one["status"], one.get("error", {}).get("type")) for one in responses}
    assert kinds <= {(200, None), (503, "timeout_exception")}
    last = responses[-1]["error"]["reason"]
    assert last.startswith("the searches of the request ran longer than [0.5s] together")
