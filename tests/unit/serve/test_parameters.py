"""Query strings and forms: decoded exactly, or refused; and the IRI that a request was sent to."""

from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode
from starlette.requests import Request

from graphdb.errors import InvalidParameter, LimitExceeded
from graphdb.sparql.dataset import Dataset
from serve.parameters import FIELDS_MAX, Parameters, read_dataset, request_iri


@pytest.mark.parametrize(
    ("encoded", "name", "values"),
    [
        (b"", "a", []),
        (b"a=1", "a", ["1"]),
        (b"a", "a", [""]),
        (b"a=", "a", [""]),
        (b"a=1&b=2&a=3", "a", ["1", "3"]),
        (b"&&a=1&&", "a", ["1"]),
        (b"a=x+y%20z%2B", "a", ["x y z+"]),
        (b"a=%C3%A9", "a", ["é"]),
        ("a=é".encode(), "a", ["é"]),
        (b"%61=1", "a", ["1"]),
        (b"a=b=c", "a", ["b=c"]),
        (b"a=%2531", "a", ["%31"]),
    ],
)
def test_many(encoded: bytes, name: str, values: list[str]) -> None:
    assert Parameters(encoded).many(name) == values


@given(st.lists(st.tuples(st.text(min_size=1), st.text())))
@settings(max_examples=50)
def test_reads_what_the_standard_library_writes(fields: list[tuple[str, str]]) -> None:
    parameters = Parameters(urlencode(fields).encode())
    for name, _ in fields:
        assert parameters.many(name) == [value for other, value in fields if other == name]


@pytest.mark.parametrize(
    "encoded", [b"a=%", b"a=%4", b"a=%zz", b"%=1", b"a=%FF", b"%C3=1", b"a=\xff", b"a=%ED%A0%80"]
)
def test_damaged_encoding_is_refused(encoded: bytes) -> None:
    with pytest.raises(InvalidParameter):
        Parameters(encoded)


def test_too_many_fields() -> None:
    with pytest.raises(LimitExceeded):
        Parameters(b"a&" * (FIELDS_MAX + 1))


def test_one() -> None:
    parameters = Parameters(b"a=1&b=2", b"b=3")
    assert parameters.one("a") == "1"
    assert parameters.one("c") is None
    with pytest.raises(InvalidParameter, match="b: given 2 times"):
        parameters.one("b")


def test_dataset() -> None:
    parameters = Parameters(b"d=http://x/1&n=http://x/2&d=http://x/3")
    expected = Dataset((NamedNode("http://x/1"), NamedNode("http://x/3")), (NamedNode("http://x/2"),))
    assert read_dataset(parameters, "d", "n") == expected
    assert not read_dataset(Parameters(b""), "d", "n")


@pytest.mark.parametrize("iri", ["", "relative", "http://a b/", "http://x/<", "//host/path", "%20"])
def test_graphs_are_named_by_absolute_iris(iri: str) -> None:
    with pytest.raises(InvalidParameter, match="not an absolute IRI"):
        read_dataset(Parameters(urlencode({"d": iri}).encode()), "d", "n")


def request(host: str | None, server: tuple[str, int | None] | None) -> Request:
    scope: dict[str, Any] = {
        "type": "http",
        "scheme": "https",
        "path": "/data/a b",
        "raw_path": b"/data/a%20b",
        "query_string": b"default",
        "headers": [] if host is None else [(b"host", host.encode("latin-1"))],
        "server": server,
    }
    return Request(scope)


@pytest.mark.parametrize(
    ("host", "server", "authority"),
    [
        ("graph.example", ("10.0.0.1", 7001), "graph.example"),
        ("[2001:db8::1]:7001", ("10.0.0.1", 7001), "[2001:db8::1]:7001"),
        (None, ("10.0.0.1", 7001), "10.0.0.1:7001"),
        (None, ("::1", 7001), "[::1]:7001"),
        (None, ("fe80::1%eth0", 7001), "[fe80::1]:7001"),
        (None, ("10.0.0.1", None), "10.0.0.1"),
        (None, None, "localhost"),
        ("", ("::1", 7001), "[::1]:7001"),
    ],
)
def test_the_host_that_was_named_else_the_own(
    host: str | None, server: tuple[str, int | None] | None, authority: str
) -> None:
    iri = request_iri(request(host, server))
    assert iri == f"https://{authority}/data/a%20b"
    assert NamedNode(iri).value == iri


@pytest.mark.parametrize("host", ["a b", "::1", "[::1", "user@host", "a/b", "a:b", "<>", "\u00e9"])
def test_what_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(InvalidParameter, match="Host"):
        request_iri(request(host, ("10.0.0.1", 7001)))
