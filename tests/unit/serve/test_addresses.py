"""The IRI that a request was sent to."""

from typing import Any

import pytest
from pyoxigraph import NamedNode
from starlette.requests import Request

from graphdb.errors import InvalidParameter
from serve.addresses import request_iri


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
