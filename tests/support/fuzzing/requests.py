"""Random HTTP requests: every endpoint; parameters, headers and bodies right, wrong and in between."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from urllib.parse import quote_from_bytes

from backports import zstd

from tests.support.fuzzing.geospatial_requests import random_geospatial
from tests.support.fuzzing.holonic_requests import random_holonic
from tests.support.fuzzing.live_messages import random_changes
from tests.support.fuzzing.mutations import mutated
from tests.support.fuzzing.seeds import BODIES, body_seeds
from tests.support.fuzzing.shacl_requests import random_shacl
from tests.support.fuzzing.texts import random_text

__all__ = ["Request", "random_request"]

FORM, QUERY, UPDATE = (
    b"application/x-www-form-urlencoded",
    b"application/sparql-query",
    b"application/sparql-update",
)
GRAPHS = (
    b"http://e/g",
    b"http://e/h",
    b"urn:x",
    b"rel",
    b"",
    b"http://e/%zz",
    b"http://[",
    b"\xff",
    b"http://e/" + b"g" * 3000,
)
FORMATS = (
    *(b"json", b"xml", b"csv", b"tsv", b"ndjson", b"turtle"),
    *(b"ntriples", b"ntriples-c14n", b"rdfxml", b"jsonld"),
    *(b"trig", b"nquads", b"nope", b"text/turtle;q=0", b"*/*", b"application/n-triples;profile=x", b""),
)  # fmt: skip
NUMBERS = (b"0", b"1", b"-1", b"0.001", b"1e9", b"nan", b"inf", b"9" * 30, b"", b"x", b"true")
PATHS = (
    *(b"/sparql", b"/update", b"/data", b"/data/x", b"/data/%2e%2e/x"),
    *(b"/queries", b"/queries/x", b"/queries/%ff", b"/shacl/validate", b"/shacl"),
    *(b"/geospatial/evaluate", b"/geospatial", b"/ws", b"/ws?since=x"),
    *(b"/snapshots", b"/snapshots/a", b"/snapshots/a?at=1", b"/snapshots/%ff?at=x"),
    *(b"/cluster", b"/cluster/members", b"/cluster/members/2", b"/cluster/leader"),
    *(b"/protocol", b"/repositories", b"/repositories/graphdb", b"/repositories/x", b"/rest/repositories"),
    *(b"/repositories/graphdb/statements", b"/repositories/graphdb/statements?subj=%3Curn:a%3E&context=null"),
    b"/repositories/graphdb/statements?obj=%22%5Cu12%22",
    b"/repositories/graphdb/statements?preserveNodeId=true",
    *(b"/repositories/graphdb/rdf-graphs/%ff", b"/repositories/graphdb/rdf-graphs/service?default"),
    *(b"/repositories/graphdb/namespaces/a", b"/repositories/graphdb/size?context=x"),
    *(b"/repositories/graphdb/transactions", b"/repositories/graphdb/transactions/x?action=COMMIT"),
    *(b"/health", b"/metrics", b"/", b"//", b"/sparql/", b"/nope"),
    *(b"/%00", b"*", b"http://other/sparql", b"/../etc"),
)  # fmt: skip
METHODS = (b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"TRACE", b"BREW", b"CONNECT")
HEADERS: dict[bytes, tuple[bytes, ...]] = {
    b"Accept": (
        *(b"*/*", b"application/json", b"text/csv", b"text/turtle"),
        b"application/sparql-results+xml;q=0.5, */*;q=0.1",
        *(b"text/html", b"", b"?", b",", b";q=1", b"text/turtle;q=2"),
        *(b"a/b;" * 500, b"application/ld+json;version=1.1"),
        *(b"application/x-binary-rdf", b"application/x-binary-rdf-results-table"),
    ),
    b"If-None-Match": (b"*", b'"x"', b'W/"1"', b"x", b'"' * 100, b""),
    b"If-Match": (b"*", b'"x"', b""),
    b"If-Modified-Since": (b"Thu, 01 Jan 1970 00:00:00 GMT", b"yesterday"),
    b"Range": (b"bytes=0-1", b"bytes=-9999999999", b"rows=1"),
    b"Cache-Control": (b"no-cache", b"max-age=0", b"only-if-cached", b"=,=;"),
    b"Content-Encoding": (b"gzip", b"zstd", b"identity", b"br", b"gzip, gzip", b""),
    b"Content-Type": (
        *(QUERY, UPDATE, FORM, *map(str.encode, BODIES), b"", b"text", b"multipart/form-data"),
        b"application/x-binary-rdf",
    ),
    b"Host": (b"localhost", b"e.example:80", b"[::1]:7001", b"a b", b"", b"\xff"),
    b"Expect": (b"100-continue", b"tea"),
    b"Upgrade": (b"websocket", b"h2c"),
    b"Connection": (b"close", b"keep-alive", b"upgrade", b""),
    b"Origin": (b"http://app.example", b"null"),
    b"Access-Control-Request-Method": (b"PUT", b""),
    b"Idempotency-Key": (b"k", b"k" * 5000),
    b"X-Consistency": (b"local", b"leader", b"nope"),
    b"Accept-Encoding": (b"gzip", b"*;q=0"),
    b"Authorization": (b"Basic Og==", b"Bearer x", b"Basic \xff"),
    b"X-Junk": (b"\x80\xff", b"v" * 20_000, b""),
}  # fmt: skip
CONTENT_TYPE_ENDINGS = (*[b""] * 20, b"; charset=utf-8", b"; charset=utf-16", b"; charset=", b";;", b"; q")


@dataclass(frozen=True, slots=True)
class Request:
    """The bytes of one request. A framed one is whole: an answer to it is due without another byte sent."""

    wire: bytes
    method: str
    is_framed: bool


def random_request(random: Random) -> Request:
    """One request."""
    method, target, media_type, body = random.choice(KINDS)(random)
    headers: list[tuple[bytes, bytes]] = []
    if random.random() < 0.1:
        body, coding = random.choice(CODINGS)(body)
        headers.append((b"Content-Encoding", coding))
    if media_type:
        headers.append((b"Content-Type", media_type + random.choice(CONTENT_TYPE_ENDINGS)))
    for name in random.sample(sorted(HEADERS), random.choice((0, 0, 0, 1, 1, 2, 4))):
        headers.append((name, random.choice(HEADERS[name])))
    if not any(name == b"Host" for name, _ in headers):
        headers.append((b"Host", b"127.0.0.1"))
    return _written(random, method, target, headers, body)


def _written(
    random: Random, method: bytes, target: bytes, headers: list[tuple[bytes, bytes]], body: bytes
) -> Request:
    if random.random() < 0.1:
        headers.append((b"Transfer-Encoding", b"chunked"))
        body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in _pieces(body)) + b"0\r\n\r\n"
    elif body or method in (b"POST", b"PUT"):
        headers.append((b"Content-Length", b"%d" % len(body)))
    head = b"%s %s HTTP/1.1\r\n" % (method, target)
    wire = head + b"".join(b"%s: %s\r\n" % header for header in headers) + b"\r\n" + body
    is_framed = random.random() < 0.9
    if not is_framed:
        wire = mutated(random, wire, (wire,))
    return Request(wire, method.decode(), is_framed)


def _pieces(body: bytes) -> list[bytes]:
    return [body[start : start + 1000] for start in range(0, len(body), 1000)]


def _parameters(random: Random, *given: tuple[bytes, bytes]) -> bytes:
    """The given parameters, and at times others beside them, at times with the escapes broken."""
    pairs = list(given)
    for _ in range(random.choice((0, 0, 0, 0, 0, 0, 1, 2))):
        name, values = random.choice(PARAMETERS)
        pairs.append((name, random.choice(values)))
    random.shuffle(pairs)
    written = b"&".join(b"%s=%s" % (name, quote_from_bytes(value).encode()) for name, value in pairs)
    if random.random() < 0.05:
        written = mutated(random, written, (b"%", b"%f", b"%zz", b"&&==", b"+%00+", b"%ed%a0%80", b";"))
        written = bytes(byte for byte in written if 0x20 < byte < 0x7F)
    return written


PARAMETERS: tuple[tuple[bytes, tuple[bytes, ...]], ...] = (
    (b"default-graph-uri", GRAPHS),
    (b"named-graph-uri", GRAPHS),
    (b"using-graph-uri", GRAPHS),
    (b"using-named-graph-uri", GRAPHS),
    (b"format", FORMATS),
    (b"timeout", NUMBERS),
    (b"min_index", NUMBERS),
    (b"explain", (b"true", b"false", b"maybe")),
    (b"consistency", (b"local", b"linearizable", b"nope")),
    (b"query", (b"ASK {}", b"")),
    (b"update", (b"DROP ALL",)),
    (b"graph", GRAPHS),
    (b"default", (b"",)),
    (b"dataset", (b"all", b"none")),
)

Kind = tuple[bytes, bytes, bytes, bytes]  # method, target, media type, body


def _query_in_address(random: Random) -> Kind:
    query = random_text(random, "query_unit")[:30_000]
    method = random.choice((b"GET", b"GET", b"GET", b"HEAD"))
    return method, b"/sparql?" + _parameters(random, (b"query", query)), b"", b""


def _query_in_form(random: Random) -> Kind:
    return b"POST", b"/sparql", FORM, _parameters(random, (b"query", random_text(random, "query_unit")))


def _query_as_body(random: Random) -> Kind:
    return b"POST", b"/sparql?" + _parameters(random), QUERY, random_text(random, "query_unit")


def _update_in_form(random: Random) -> Kind:
    return b"POST", b"/update", FORM, _parameters(random, (b"update", random_text(random, "update_unit")))


def _update_as_body(random: Random) -> Kind:
    return b"POST", b"/update?" + _parameters(random), UPDATE, random_text(random, "update_unit")


def _graph(random: Random) -> Kind:
    where = ((b"graph", random.choice(GRAPHS)), (b"default", b""), (b"dataset", b"all"))
    target = b"/data?" + _parameters(random, random.choice(where))
    method = random.choice((b"GET", b"HEAD", b"PUT", b"POST", b"POST", b"DELETE"))
    if method not in (b"PUT", b"POST"):
        return method, target, b"", b""
    media_type = random.choice(sorted(BODIES))
    document = random.choice(body_seeds(media_type))
    if random.random() < 0.8:
        document = mutated(random, document, body_seeds(random.choice(sorted(BODIES))))
    return method, target, media_type.encode(), document


def _anything(random: Random) -> Kind:
    target = random.choice(PATHS) + random.choice((b"", b"?" + _parameters(random)))
    body = random.choice((b"", b"", b"query=ASK%7B%7D", random_text(random)))
    return random.choice(METHODS), target, random.choice((b"", FORM, QUERY)), body


KINDS: tuple[Callable[[Random], Kind], ...] = (
    *(_query_in_address, _query_in_form, _query_as_body),
    *(_update_in_form, _update_as_body, _graph, _graph, random_holonic, random_shacl),
    *(random_geospatial, random_changes, _anything),
)
CODINGS: tuple[Callable[[bytes], tuple[bytes, bytes]], ...] = (
    lambda body: (gzip.compress(body), b"gzip"),
    lambda body: (zstd.compress(body), b"zstd"),
    lambda body: (gzip.compress(body)[:-5], b"gzip"),
    lambda body: (body, b"gzip"),
    lambda body: (zstd.compress(b"\0" * 3_000_000), b"zstd"),
)
