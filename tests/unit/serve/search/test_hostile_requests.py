"""Whatever is sent to the document operations is answered, and never with a 500."""

from collections.abc import Iterator
from urllib.parse import quote

import httpx
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serve.search_app import build_search_app
from tests.support.http_server import serving
from tests.support.memory_search import MemorySearch
from tests.support.timing import HANG_S
from tests.unit.serve.search.conftest import SETTINGS

METHODS = st.sampled_from(["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH"])
WORDS = st.sampled_from(
    [
        "_doc",
        "_create",
        "_update",
        "_source",
        "_mget",
        "_bulk",
        "_delete_by_query",
        "_update_by_query",
        "a",
        "b",
        "*",
        "-a",
        "_all",
        "a,b",
        "1",
        "..",
        "<a-{now}>",
    ]
) | st.text(max_size=8)
PATHS = (
    st.lists(WORDS, max_size=4)
    .map(lambda words: "/" + "/".join(quote(word, safe="") for word in words))
    .filter(lambda path: not path.startswith("//"))  # which the client takes for the name of a host
)
NAMES = st.sampled_from(
    [
        "refresh",
        "routing",
        "timeout",
        "version",
        "version_type",
        "if_seq_no",
        "if_primary_term",
        "op_type",
        "_source",
        "filter_path",
        "pretty",
        "_source_includes",
        "realtime",
        "stored_fields",
        "q",
        "max_docs",
        "conflicts",
        "scroll_size",
        "slices",
        "wait_for_active_shards",
    ]
)
TEXTS = st.sampled_from(["", "true", "1", "-1", "**.*", "external", "1s", "wait_for"]) | st.text(max_size=5)
KEYS = st.sampled_from(
    [
        "index",
        "create",
        "update",
        "delete",
        "_index",
        "_id",
        "doc",
        "docs",
        "ids",
        "upsert",
        "query",
        "match_all",
        "term",
        "script",
        "_source",
        "source",
        "dest",
        "doc_as_upsert",
        "detect_noop",
        "if_seq_no",
        "version",
        "routing",
        "max_docs",
        "slice",
        "id",
        "max",
        "field",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5) | KEYS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


def encoded(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:  # integers beyond 64 bits, half characters
        return repr(value).encode("utf-8", "replace")


BODIES = (
    JSON.map(encoded)
    | st.lists(JSON.map(encoded), max_size=4).map(lambda rows: b"\n".join(rows) + b"\n")
    | st.binary(max_size=30)
)
TYPES = st.sampled_from(["application/json", "application/x-ndjson", "text/plain", "", "application/"])


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with (
        serving(build_search_app(MemorySearch(), SETTINGS)) as url,
        httpx.Client(base_url=url, trust_env=False, timeout=HANG_S) as http,
    ):
        http.put("/a/_doc/1", json={"n": 1, "o": {"p": "q"}})
        yield http


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(METHODS, PATHS, st.dictionaries(NAMES, TEXTS, max_size=2), TYPES, BODIES)
def test_any_request(
    client: httpx.Client, method: str, path: str, query: dict[str, str], media_type: str, body: bytes
) -> None:
    answer = client.request(method, path, params=query, content=body, headers={"Content-Type": media_type})
    assert answer.status_code < 500, answer.text
    assert answer.headers["x-elastic-product"] == "Elasticsearch"
    if method != "HEAD" and answer.headers["content-type"].startswith("application/json"):
        assert answer.json() is not None


BULK_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["index", "create", "update", "delete", "upsert"]),
        st.dictionaries(KEYS, JSON, max_size=3),
    ).map(lambda pair: encoded({pair[0]: {"_index": "a", "_id": "1"} | pair[1]}))
    | JSON.map(encoded),
    max_size=8,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(BULK_ROWS)
def test_any_bulk_request(client: httpx.Client, rows: list[bytes]) -> None:
    body = b"".join(row + b"\n" for row in rows)
    answer = client.post("/_bulk", content=body, headers={"Content-Type": "application/x-ndjson"})
    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 200:
        statuses = [item["status"] for row in answer.json()["items"] for item in row.values()]
        assert all(status < 500 for status in statuses), answer.text
        assert answer.json()["errors"] == any(
            "error" in item for row in answer.json()["items"] for item in row.values()
        )
