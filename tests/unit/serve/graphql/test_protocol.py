"""GraphQL over HTTP, by its draft: media types, status codes, GET and POST, what is malformed."""

from typing import Any

import httpx
import pytest

from tests.unit.serve.graphql.conftest import Port

GRAPHQL, JSON = "application/graphql-response+json", "application/json"
TITLES = "{ books { edges { node { title } } } }"
BOTH = {"books": {"edges": [{"node": {"title": "Emma"}}, {"node": {"title": "Sula"}}]}}


def send(library: Port, body: Any, accept: str = GRAPHQL, **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else None
    given = {"Content-Type": JSON, "Accept": accept, **headers}
    if content is not None:
        return library.http.post("/graphql", content=content, headers=given)
    return library.http.post("/graphql", json=body, headers=given)


@pytest.mark.parametrize(
    ("accept", "answered"),
    [
        (GRAPHQL, GRAPHQL),
        (JSON, JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        (f"{GRAPHQL}, {JSON};q=0.9", GRAPHQL),
        (f"{JSON}, {GRAPHQL};q=0.9", JSON),
        ("text/html, */*;q=0.1", JSON),
        ("application/graphql-response+json; charset=utf-8", GRAPHQL),
    ],
)
def test_the_media_type_is_the_one_that_is_asked_for(library: Port, accept: str, answered: str) -> None:
    answer = send(library, {"query": TITLES}, accept)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == f"{answered}; charset=utf-8"
    assert answer.json() == {"data": BOTH}
    assert answer.headers["vary"] == "Accept"


def test_without_accept_it_is_json(library: Port) -> None:
    request = library.http.build_request("POST", "/graphql", json={"query": TITLES})
    del request.headers["accept"]
    assert library.http.send(request).headers["content-type"] == f"{JSON}; charset=utf-8"


def test_another_media_type_is_406(library: Port) -> None:
    assert send(library, {"query": TITLES}, "text/turtle").status_code == 406


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("{", "VALIDATION_FAILED"),
        ("", "VALIDATION_FAILED"),
        ("{ books { edges { node { pages } } } }", "VALIDATION_FAILED"),
        ("query ($first: Int!) { books(first: $first) { totalCount } }", "VALIDATION_FAILED"),
        ("{ cats { totalCount } }", "UNKNOWN_TYPE"),
        ("{ node(id: 7) { ... on Cat { id } } }", "UNKNOWN_TYPE"),
        ("subscription { bookChanged { mutationType } }", "VALIDATION_FAILED"),
    ],
)
def test_what_cannot_be_carried_out_is_400_or_in_old_json_200(library: Port, query: str, code: str) -> None:
    answer = send(library, {"query": query})
    assert answer.status_code == 400
    assert set(answer.json()) == {"errors"}
    assert {one["extensions"]["code"] for one in answer.json()["errors"]} == {code}
    old = send(library, {"query": query}, JSON)
    assert old.status_code == 200
    assert old.json() == {"data": None, **answer.json()}


def test_errors_tell_where(library: Port) -> None:
    (error,) = send(library, {"query": "{\n  books { edges { node { pages } } }\n}"}).json()["errors"]
    assert error["locations"] == [{"line": 2, "column": 26}]
    assert "pages" in error["message"]


@pytest.mark.parametrize("accept", [GRAPHQL, JSON])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b'"{ books { totalCount } }"',
        b"{}",
        b'{"query": null}',
        b'{"query": 1}',
        b'{"query": ["{ books { totalCount } }"]}',
        b'{"qeury": "{ books { totalCount } }"}',
        b'{"query": "{ books { totalCount } }", "variables": "{}"}',
        b'{"query": "{ books { totalCount } }", "variables": []}',
        b'{"query": "{ books { totalCount } }", "operationName": 7}',
        b'{"query": "{ books { totalCount } }", "extensions": 7}',
        b'{"query": "\xff"}',
        b"[" * 5000,
        b'[{"query": "{ books { totalCount } }"}]',
    ],
)
def test_what_is_no_graphql_request_is_400_for_everybody(library: Port, body: bytes, accept: str) -> None:
    answer = send(library, body, accept)
    assert answer.status_code == 400
    assert set(answer.json()) == {"errors"}
    assert answer.headers["content-type"] == f"{accept}; charset=utf-8"


def test_batches_are_refused_in_words(library: Port) -> None:
    answer = send(library, [{"query": TITLES}, {"query": TITLES}])
    assert answer.status_code == 400
    assert "several operations" in answer.json()["errors"][0]["message"]


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "application/graphql", "json", ""]
)
def test_only_json_is_read(library: Port, content_type: str) -> None:
    answer = send(library, {"query": TITLES}, **{"Content-Type": content_type})
    assert answer.status_code == 415
    assert set(answer.json()) == {"error", "status"}


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8"])
def test_json_is_utf_8(library: Port, content_type: str) -> None:
    assert send(library, {"query": TITLES}, **{"Content-Type": content_type}).json() == {"data": BOTH}


def test_another_charset_is_415(library: Port) -> None:
    other = {"Content-Type": "application/json; charset=latin-1"}
    assert send(library, {"query": TITLES}, **other).status_code == 415


def test_bodies_are_bounded(library: Port) -> None:
    answer = send(library, {"query": TITLES, "variables": {"x": "x" * 1_000_000}})
    assert answer.status_code == 413


def test_documents_are_bounded(library: Port) -> None:
    answer = send(library, {"query": TITLES + " " * 300_000})
    assert answer.status_code == 400
    assert "max_query_bytes" in answer.json()["errors"][0]["message"]


def test_variables_and_operation_name(library: Port) -> None:
    text = """
    query One($title: String) { book(filter: {title: {eq: $title}}) { id } }
    query Two { persons { totalCount } }
    """
    found = library.data(text, operationName="One", variables={"title": "Sula"})
    assert found == {"book": [{"id": "http://e/sula"}]}
    assert library.data(text, operationName="Two", variables=None) == {"persons": {"totalCount": 2}}
    assert library.codes(text) == ["VALIDATION_FAILED"]
    assert library.codes(text, operationName="Three") == ["VALIDATION_FAILED"]
    assert library.data(TITLES, operationName="") == BOTH
    assert library.data(TITLES, extensions={"any": 1}, other=True) == BOTH


def get(library: Port, **parameters: str) -> httpx.Response:
    return library.http.get("/graphql", params=parameters, headers={"Accept": GRAPHQL})


def test_get_answers_queries(library: Port) -> None:
    answer = get(
        library,
        query="query Q($t: String) { book(filter: {title: {eq: $t}}) { id } } query R { __typename }",
        variables='{"t": "Emma"}',
        operationName="Q",
    )
    assert answer.json() == {"data": {"book": [{"id": "http://e/emma"}]}}
    assert answer.headers["content-type"] == f"{GRAPHQL}; charset=utf-8"


@pytest.mark.parametrize(
    "parameters",
    [{}, {"query": TITLES, "variables": "{"}, {"query": TITLES, "variables": "[]"}, {"operationName": "Q"}],
)
def test_malformed_gets_are_400(library: Port, parameters: dict[str, str]) -> None:
    answer = get(library, **parameters)
    assert answer.status_code == 400
    assert set(answer.json()) == {"errors"}


def test_get_is_safe(library: Port) -> None:
    answer = get(library, query="mutation { __typename }")
    assert answer.status_code in (400, 405)
    answer = get(library, query="subscription { __typename }")
    assert answer.status_code in (400, 405)


def test_other_methods_are_405(library: Port) -> None:
    answer = library.http.put("/graphql", json={"query": TITLES})
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, POST, HEAD, OPTIONS"


def test_head_has_no_body(library: Port) -> None:
    answer = library.http.head("/graphql", params={"query": TITLES}, headers={"Accept": GRAPHQL})
    assert (answer.status_code, answer.content) == (200, b"")


def test_a_kept_answer_is_never_claimed(library: Port) -> None:
    headers = {"Accept": JSON, "If-None-Match": "*"}
    answer = library.http.get("/graphql", params={"query": TITLES}, headers=headers)
    assert answer.json() == {"data": BOTH}
