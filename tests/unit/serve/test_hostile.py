"""What no request may get away with: a clear 4xx in the one shape, and nothing stored."""

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx
import pytest
from backports import zstd

from tests.unit.serve.conftest import SETTINGS, dump, error_of, update

FORM = "application/x-www-form-urlencoded"
UPDATE = "application/sparql-update"
QUERY = "application/sparql-query"
NT = "application/n-triples"
OLD = '<http://x/s> <http://x/p> "old" .'
INSERT = "INSERT DATA { <http://x/new> <http://x/p> 1 }"
NEW = b"<http://x/new> <http://x/p> <http://x/o> .\n"
LIMIT = SETTINGS.server.max_body_bytes


@dataclass(frozen=True)
class Attack:
    name: str
    status: int
    method: str
    address: str
    body: bytes = b""
    media_type: str = ""
    headers: dict[str, str] = field(default_factory=dict)


ATTACKS = [
    # The query string
    Attack("no query", 400, "GET", "/sparql"),
    Attack("no query, RDF refused", 400, "GET", "/sparql", headers={"Accept": "text/turtle;q=0, */*"}),
    Attack("an empty query", 400, "GET", "/sparql?query="),
    Attack("two queries", 400, "GET", "/sparql?query=ASK%7B%7D&query=ASK%7B%7D"),
    Attack("an update as a query", 400, "GET", "/sparql?update=DROP%20ALL"),
    Attack("a query as an update", 400, "POST", "/update", b"query=ASK%7B%7D", FORM),
    Attack("broken percent-encoding", 400, "GET", "/sparql?query=ASK%7"),
    Attack("percent-encoding of no character", 400, "GET", "/sparql?query=ASK%7B%7D%GG"),
    Attack("not UTF-8", 400, "GET", "/sparql?query=ASK%7B%7D%FF"),
    Attack("overlong UTF-8", 400, "GET", "/sparql?query=ASK%C0%AF"),
    Attack("a surrogate", 400, "GET", "/sparql?query=ASK%ED%A0%80"),
    Attack("a NUL", 400, "GET", "/sparql?query=ASK%00%7B%7D"),
    Attack("a relative graph", 400, "GET", "/sparql?query=ASK%7B%7D&default-graph-uri=g"),
    Attack("an invalid graph", 400, "GET", "/sparql?query=ASK%7B%7D&named-graph-uri=http://%3C/"),
    Attack("a format unheard of", 400, "GET", "/sparql?query=ASK%7B%7D&format=docx"),
    Attack("a format that does not apply", 406, "GET", "/sparql?query=ASK%7B%7D&format=turtle"),
    Attack("two formats unheard of", 400, "GET", "/sparql?query=ASK%7B%7D&format=docx&format=odt"),
    Attack("a Host that is none", 400, "GET", "/sparql?query=ASK%7B%7D", headers={"Host": "a b<c>"}),
    # Accept
    Attack("Accept of a query", 406, "GET", "/sparql?query=ASK%7B%7D", headers={"Accept": "image/png"}),
    Attack("Accept for another form", 406, "GET", "/sparql?query=ASK%7B%7D", headers={"Accept": "text/csv"}),
    Attack("Accept of no meaning", 400, "GET", "/sparql?query=ASK%7B%7D", headers={"Accept": "?"}),
    Attack("Accept of a graph", 406, "GET", "/data", headers={"Accept": "image/png"}),
    # Bodies of queries and updates
    Attack("a query without Content-Type", 415, "POST", "/sparql", b"ASK {}"),
    Attack("a query as plain text", 415, "POST", "/sparql", b"ASK {}", "text/plain"),
    Attack("a query in UTF-16", 415, "POST", "/sparql", b"ASK {}", f"{QUERY}; charset=utf-16"),
    Attack("an update twice to /sparql", 400, "POST", "/sparql?update=x", INSERT.encode(), UPDATE),
    Attack("a query to /update", 415, "POST", "/update", b"ASK {}", QUERY),
    Attack("a query twice", 400, "POST", "/sparql?query=ASK%7B%7D", b"ASK {}", QUERY),
    Attack("an update twice", 400, "POST", "/update?update=x", INSERT.encode(), UPDATE),
    Attack("two updates", 400, "POST", "/update", b"update=DROP+ALL&update=DROP+ALL", FORM),
    Attack("an update as plain text", 415, "POST", "/update", INSERT.encode(), "text/plain"),
    Attack("an update that is no Content-Type", 415, "POST", "/update", INSERT.encode(), "update"),
    Attack("an update not in UTF-8", 400, "POST", "/update", b"INSERT DATA { <a:\xff> <b:> <c:> }", UPDATE),
    Attack("an update that does not parse", 400, "POST", "/update", INSERT[:-1].encode(), UPDATE),
    Attack("a form not in UTF-8", 400, "POST", "/update", b"update=%FF", FORM),
    Attack("a form with broken escapes", 400, "POST", "/update", b"update=DROP%2", FORM),
    Attack("an invalid IRI in an update", 400, "POST", "/update", b"INSERT DATA { <a:b c> <p:> 1 }", UPDATE),
    Attack(
        "USING beside using-graph-uri",
        400,
        "POST",
        "/update?using-graph-uri=http://g/1",
        b"INSERT { ?s ?p 1 } USING <http://g/2> WHERE { ?s ?p ?o }",
        UPDATE,
    ),
    # Bodies of graphs
    Attack("a graph without Content-Type", 415, "PUT", "/data", NEW),
    Attack("a graph of another type", 415, "PUT", "/data", NEW, "text/html"),
    Attack("a graph in UTF-16", 415, "PUT", "/data", NEW, "text/turtle; charset=utf-16"),
    Attack("a graph not in UTF-8", 400, "PUT", "/data", NEW + b'<http://x/s> <http://x/p> "\xff" .', NT),
    Attack("a graph that does not parse", 400, "POST", "/data", NEW + b"<http://x/s>", NT),
    Attack("an invalid IRI in a graph", 400, "PUT", "/data", NEW + b"<http://x/a b> <http://x/p> 1 .", NT),
    Attack(
        "truncated RDF/XML",
        400,
        "PUT",
        "/data",
        b'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#">',
        "application/rdf+xml",
    ),
    Attack(
        "RDF/XML with a DOCTYPE",
        400,
        "PUT",
        "/data",
        b'<!DOCTYPE r [<!ENTITY a "b">]><r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>',
        "application/rdf+xml",
    ),
    Attack("truncated JSON-LD", 400, "PUT", "/data", b'{"@id": "http://x/s"', "application/ld+json"),
    Attack(
        "JSON-LD nested 10,000 deep",
        400,
        "PUT",
        "/data",
        b'{"a:b":' * 10_000 + b"1" + b"}" * 10_000,
        "application/ld+json",
    ),
    Attack("truncated gzip", 400, "PUT", "/data", gzip.compress(NEW)[:-4], NT, {"Content-Encoding": "gzip"}),
    Attack("gzip that is none", 400, "PUT", "/data", NEW, NT, {"Content-Encoding": "gzip"}),
    Attack("truncated zstd", 400, "PUT", "/data", zstd.compress(NEW)[:-2], NT, {"Content-Encoding": "zstd"}),
    Attack("another Content-Encoding", 415, "PUT", "/data", NEW, NT, {"Content-Encoding": "br"}),
    Attack("compressed twice", 415, "PUT", "/data", NEW, NT, {"Content-Encoding": "gzip, gzip"}),
    # Too much
    Attack("a graph too large", 413, "PUT", "/data", NEW + b"#" * LIMIT, NT),
    Attack(
        "a graph that expands too far",
        413,
        "PUT",
        "/data",
        gzip.compress(NEW + b"#" * LIMIT),
        NT,
        {"Content-Encoding": "gzip"},
    ),
    Attack("a query too large", 413, "POST", "/sparql", b"ASK {}" + b" " * LIMIT, QUERY),
    Attack("an update too large", 413, "POST", "/update", INSERT.encode() + b" " * LIMIT, UPDATE),
    Attack("a form too large", 413, "POST", "/update", b"update=" + b"+" * LIMIT, FORM),
    Attack(
        "braces nested 10,000 deep", 400, "POST", "/sparql", b"ASK " + b"{" * 10_000 + b"}" * 10_000, QUERY
    ),
    Attack(
        "a chain of 20,000 &&", 400, "POST", "/sparql", b"ASK { FILTER(1" + b" && 1" * 20_000 + b") }", QUERY
    ),
    Attack("180 patterns", 400, "POST", "/sparql", b"ASK {" + b"?s ?p ?o ." * 180 + b"}", QUERY),
    Attack("300 OPTIONALs", 400, "POST", "/sparql", b"ASK {" + b"OPTIONAL{?s ?p ?o}" * 300 + b"}", QUERY),
    Attack("300 UNIONs", 400, "POST", "/sparql", b"ASK {{}" + b"UNION{}" * 300 + b"}", QUERY),
    Attack("a long query", 400, "POST", "/sparql", b"ASK {}" + b" " * 300_000, QUERY),
    Attack("a long update", 400, "POST", "/update", b"INSERT{}WHERE{}" + b" " * 300_000, UPDATE),
    Attack(
        "180 patterns in an update",
        400,
        "POST",
        "/update",
        b"DELETE WHERE {" + b"?s ?p ?o." * 180 + b"}",
        UPDATE,
    ),
    # Paths and methods
    Attack("an unknown path", 404, "GET", "/sparql/"),
    Attack("another unknown path", 404, "POST", "/nothing/here", NEW, NT),
    Attack("GET of /update", 405, "GET", "/update"),
    Attack("PUT of /sparql", 405, "PUT", "/sparql", b"ASK {}", QUERY),
    Attack("PATCH of /data", 405, "PATCH", "/data", NEW, NT),
    Attack("POST of /health", 405, "POST", "/health"),
    Attack("a method of WebDAV", 405, "PROPFIND", "/data"),
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_attack(client: httpx.Client, attack: Attack) -> None:
    update(client, f"INSERT DATA {{ {OLD} }}")
    headers = {**attack.headers, **({"Content-Type": attack.media_type} if attack.media_type else {})}
    answer = client.request(attack.method, attack.address, content=attack.body, headers=headers)
    assert answer.status_code == attack.status, answer.text
    error_of(answer)
    assert ("allow" in answer.headers) == (attack.status == 405)
    assert dump(client) == [OLD]


@pytest.mark.parametrize(
    ("address", "media_type", "status"),
    [("/data", NT, 413), ("/update", UPDATE, 413), ("/sparql", QUERY, 400)],
)
def test_an_oversized_body_without_a_length(
    client: httpx.Client, address: str, media_type: str, status: int
) -> None:
    """Chunked, so that only counting can tell; for a query the limit of its text comes first."""

    def pieces() -> Iterator[bytes]:
        yield NEW
        for _ in range(LIMIT // 50_000 + 1):
            yield b"#" * 50_000

    answer = client.post(address, content=pieces(), headers={"Content-Type": media_type})
    assert answer.status_code == status
    error_of(answer)
    assert dump(client) == []
