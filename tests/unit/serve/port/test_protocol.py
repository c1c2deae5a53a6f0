"""What is not a whole HTTP request, or too large: refused in the shape of every error, nothing is stored."""

import contextlib
import re
import socket
from collections.abc import Iterator
from http.client import HTTPResponse

import httpx
import orjson
import pytest

from tests.support.timing import HANG_S

GET = b"GET /health HTTP/1.1\r\nHost: x\r\n"
ASK = b"POST /sparql HTTP/1.1\r\nHost: x\r\nContent-Type: application/sparql-query\r\n"
CHUNKS = ASK + b"Transfer-Encoding: chunked\r\n\r\n"
UPGRADE = (
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
WS = b"GET /ws HTTP/1.1\r\nHost: x\r\n" + UPGRADE
GRAPHQL_WS = (
    b"GET /graphql/ws HTTP/1.1\r\nHost: x\r\nSec-WebSocket-Protocol: graphql-transport-ws\r\n" + UPGRADE
)
PUT = b"PUT /data HTTP/1.1\r\nHost: x\r\nContent-Type: application/n-triples\r\n"
LINE = b"<urn:a> <urn:p> <urn:o> .\n"


BODY = b"query=ASK%7B%7D"
FORM = (
    b"Host: x\r\nContent-Type: application/x-www-form-urlencoded\r\nConnection: Upgrade, HTTP2-Settings\r\n"
)


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
@pytest.mark.parametrize(
    "framed",
    [
        b"Content-Length: 15\r\n\r\n" + BODY,
        b"Transfer-Encoding: chunked\r\n\r\nf\r\n" + BODY + b"\r\n0\r\n\r\n",
    ],
    ids=["length", "chunks"],
)
@pytest.mark.parametrize("pieces", [1, 2, 400], ids=["whole", "halves", "bytes"])
def test_upgrade_is_not_done_and_its_request_answered(
    client: httpx.Client, protocol: bytes, framed: bytes, pieces: int
) -> None:
    sent = b"POST /sparql HTTP/1.1\r\n" + FORM + b"Upgrade: " + protocol + b"\r\n" + framed
    size = -(-len(sent) // pieces)
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=HANG_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(sent), size):
            connection.sendall(sent[start : start + size])
        answer = HTTPResponse(connection)
        answer.begin()
        assert (answer.status, orjson.loads(answer.read())["boolean"]) == (200, True)
        assert answer.headers["Connection"] == "close"
        assert connection.recv(1) == b""


def test_upgrade_without_a_body(client: httpx.Client) -> None:
    answer = client.get("/sparql?query=ASK%7B%7D", headers={"Connection": "upgrade", "Upgrade": "h2c"})
    assert (answer.status_code, answer.json()["boolean"]) == (200, True)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        pytest.param(b"\x16\x03\x01\r\n\r\n", "Invalid HTTP", id="no HTTP"),
        pytest.param(PUT + b"Content-Length: many\r\n\r\n", "Invalid HTTP", id="a length that is no number"),
        pytest.param(
            PUT + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n", "Invalid HTTP", id="a chunk without size"
        ),
        pytest.param(PUT + b"Content-Length: 999\r\n\r\n" + LINE, "cut short", id="shorter than its length"),
        pytest.param(
            PUT + b"Transfer-Encoding: chunked\r\n\r\n1a\r\n" + LINE + b"\r\n",
            "cut short",
            id="no last chunk",
        ),
    ],
)
def test_refused_in_our_shape(client: httpx.Client, sent: bytes, said: str) -> None:
    where = (client.base_url.host, client.base_url.port)
    with socket.create_connection(where, timeout=HANG_S) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        answer = HTTPResponse(connection)
        answer.begin()
        body = orjson.loads(answer.read())
    assert (answer.status, answer.headers["Content-Type"]) == (400, "application/json")
    assert (body["status"], said in body["error"]) == (400, True)
    assert client.get("/data").text == ""


@contextlib.contextmanager
def connected(client: httpx.Client) -> Iterator[socket.socket]:
    where = (client.base_url.host, client.base_url.port)
    with socket.create_connection(where, timeout=HANG_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection


def answered(connection: socket.socket) -> HTTPResponse:
    answer = HTTPResponse(connection)
    answer.begin()
    return answer


def statuses(connection: socket.socket) -> list[int]:
    """Of all answers until the server closes."""
    received = b""
    while more := connection.recv(65_536):
        received += more
    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d{3}) ", received)]


def refusal(connection: socket.socket) -> tuple[int, str]:
    """The one answer, behind which the connection is closed."""
    answer = answered(connection)
    body = orjson.loads(answer.read())
    assert (answer.headers["Content-Type"], answer.headers["Connection"]) == ("application/json", "close")
    assert body["status"] == answer.status
    assert connection.recv(1) == b""
    return answer.status, body["error"]


# What is sent has no end: it is refused before one could have come.
@pytest.mark.parametrize(
    ("endless", "status", "said"),
    [
        pytest.param(GET + b"A: " + b"x" * 40_000, 431, "server.max_header_bytes", id="a header"),
        pytest.param(GET + b"A" * 40_000, 431, "server.max_header_bytes", id="the name of a header"),
        pytest.param(GET + b"A: x\r\n" * 110, 431, "server.max_headers", id="headers"),
        pytest.param(GET + b"A:\r\n" * 8_000, 431, "server.max_headers", id="short headers"),
        pytest.param(
            GET + b"".join(b"A: %b\r\n" % (b"x" * 5_000) for _ in range(9)),
            431,
            "server.max_header_bytes",
            id="all headers together",
        ),
        pytest.param(b"GET /sparql?query=" + b"x" * 70_000, 414, "server.max_uri_bytes", id="the address"),
        pytest.param(b"GET " + b" " * 70_000, 431, "server.max_header_bytes", id="spaces"),
        pytest.param(b"\r\n" * 40_000, 431, "server.max_header_bytes", id="empty lines"),
        pytest.param(WS + b"Cookie: " + b"x" * 40_000, 431, "server.max_header_bytes", id="a WebSocket"),
        pytest.param(GRAPHQL_WS + b"A: " + b"x" * 40_000, 431, "server.max_header_bytes", id="GraphQL's"),
        pytest.param(WS + b"A: x\r\n" * 110, 431, "server.max_headers", id="a WebSocket's headers"),
        pytest.param(CHUNKS + b"0\r\nA: " + b"x" * 600_000, 400, "behind them", id="a trailer"),
        pytest.param(CHUNKS + b"0\r\n" + b"A: x\r\n" * 20_000, 431, "max_header_bytes", id="trailers"),
        pytest.param(CHUNKS + b"6;a=" + b"x" * 600_000, 400, "between its chunks", id="a chunk's extension"),
        pytest.param(
            CHUNKS + (b"1;a=" + b"x" * 1_000 + b"\r\nA\r\n") * 200,
            400,
            "between its chunks",
            id="many chunks' extensions",
        ),
        pytest.param(CHUNKS + b"0" * 600_000, 400, "between its chunks", id="zeros of a chunk's size"),
    ],
)
@pytest.mark.parametrize("piece", [1 << 20, 1_400], ids=["at once", "packets"])
def test_what_does_not_end_is_refused_before_its_end(
    client: httpx.Client, endless: bytes, status: int, said: str, piece: int
) -> None:
    with connected(client) as connection:
        with contextlib.suppress(ConnectionError):  # refused on the way
            for start in range(0, len(endless), piece):
                connection.sendall(endless[start : start + piece])
        found, message = refusal(connection)
        assert (found, said in message) == (status, True)


@pytest.mark.parametrize("head", [GET, WS, b"GET /health HTTP/1.1\r\n"], ids=["HTTP", "WebSocket", "no Host"])
def test_a_refusal_reaches_a_client_that_sends_on(client: httpx.Client, head: bytes) -> None:
    """It is not lost to a reset, though a hundred megabytes more come after it."""
    with connected(client) as connection:
        for number in range(100):
            connection.sendall((head if not number else b"") + b"A%d: " % number + b"x" * 1_000_000 + b"\r\n")
        connection.sendall(b"\r\n")
        assert answered(connection).status == 431


def test_a_body_that_is_too_large_is_refused_though_it_is_sent_on(client: httpx.Client) -> None:
    with connected(client) as connection:
        connection.sendall(PUT + b"Content-Length: 50000000\r\n\r\n" + b"#" * 50_000_000)
        assert answered(connection).status == 413


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(GET + b"A: x\r\n" * 99 + b"\r\n", id="a hundred headers"),
        pytest.param(GET + b"A: " + b"x" * 32_000 + b"\r\n\r\n", id="one long header"),
        pytest.param(GET.replace(b"health", b"health?a=" + b"x" * 65_000) + b"\r\n", id="a long address"),
        pytest.param(
            CHUNKS + b"".join(b"1\r\n%c\r\n" % one for one in b"ASK {" + b" " * 40_000 + b"}") + b"0\r\n\r\n",
            id="a byte in each chunk",
        ),
        pytest.param(CHUNKS + b'6;a="b";c\r\nASK {}\r\n0\r\n\r\n', id="an extension"),
        pytest.param(b"\r\n" + GET + b"\r\n", id="an empty line before"),
        pytest.param(b"GET /health HTTP/1.0\r\n\r\n", id="HTTP/1.0 without Host"),
        pytest.param(GET.replace(b"x", b"[::1]:7001") + b"\r\n", id="an address of IPv6"),
        pytest.param(GET.replace(b" /", b" http://graph.example:80/") + b"\r\n", id="an absolute address"),
    ],
)
@pytest.mark.parametrize("piece", [1 << 20, 1_400], ids=["at once", "packets"])
def test_what_is_within_the_limits_is_answered(client: httpx.Client, sent: bytes, piece: int) -> None:
    with connected(client) as connection:
        for start in range(0, len(sent), piece):
            connection.sendall(sent[start : start + piece])
        assert answered(connection).status == 200


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(b"GET /health HTTP/1.1\r\n\r\n", 400, id="no Host"),
        pytest.param(GET + b"Host: x\r\n\r\n", 400, id="two Hosts"),
        pytest.param(b"GET /health HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400, id="two Hosts of 1.0"),
        pytest.param(b"GET /health HTTP/1.1\r\nHost:\r\n\r\n", 400, id="an empty Host"),
        pytest.param(b"GET /health HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, id="a path as Host"),
        pytest.param(b"GET /health HTTP/1.1\r\nHost: a, b\r\n\r\n", 400, id="a list as Host"),
        pytest.param(b"GET /health HTTP/1.1\r\nHost: u@x\r\n\r\n", 400, id="a user in Host"),
        pytest.param(b"GET /health HTTP/1.1\r\nHost: x:port\r\n\r\n", 400, id="no port in Host"),
        pytest.param(WS.replace(b"Host: x\r\n", b"") + b"\r\n", 400, id="a WebSocket without Host"),
        pytest.param(GET.replace(b"1.1", b"2.0") + b"\r\n", 505, id="HTTP/2.0"),
        pytest.param(GET.replace(b"1.1", b"0.9") + b"\r\n", 505, id="HTTP/0.9"),
        pytest.param(GET.replace(b"1.1", b"3.0") + b"\r\n", 505, id="HTTP/3.0"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, id="the preface of HTTP/2"),
        pytest.param(GET + b"A : b\r\n\r\n", 400, id="a space before the colon"),
        pytest.param(GET + b"A: b\r\n c\r\n\r\n", 400, id="a folded header"),
        pytest.param(GET.replace(b"\r\n", b"\n") + b"\n", 400, id="bare LF"),
        pytest.param(GET + b"A: b\rB: c\r\n\r\n", 400, id="a bare CR"),
        pytest.param(ASK + b"Content-Length: 6\r\nContent-Length: 6\r\n\r\nASK {}", 400, id="two lengths"),
        pytest.param(
            ASK + b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
            id="a length, and chunks",
        ),
        pytest.param(
            ASK + b"Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n",
            400,
            id="chunks, and a length",
        ),
        pytest.param(ASK + b"Content-Length: 6, 6\r\n\r\nASK {}", 400, id="a list of lengths"),
        pytest.param(ASK + b"Content-Length: +6\r\n\r\nASK {}", 400, id="a length with a sign"),
        pytest.param(ASK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, id="gzip, chunked"),
        pytest.param(ASK + b"Transfer-Encoding: identity\r\n\r\nASK {}", 501, id="identity"),
        pytest.param(ASK + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501, id="xchunked"),
        pytest.param(CHUNKS.replace(b"1.1", b"1.0") + b"0\r\n\r\n", 400, id="chunks of HTTP/1.0"),
        pytest.param(CHUNKS + b"6\nASK {}\n0\n\n", 400, id="bare LF between chunks"),
        pytest.param(CHUNKS + b"0x6\r\nASK {}\r\n0\r\n\r\n", 400, id="0x before a chunk's size"),
        pytest.param(CHUNKS + b"6\r\nASK {}XX0\r\n\r\n", 400, id="a chunk that goes on"),
        pytest.param(GET.replace(b"health", b"health#a") + b"\r\n", 400, id="a fragment"),
        pytest.param(GET.replace(b"/health", b"*") + b"\r\n", 400, id="GET *"),
        pytest.param(GET.replace(b" /", b" ftp://x/") + b"\r\n", 400, id="an address of ftp"),
        pytest.param(GET.replace(b" /", b" http://u@x/") + b"\r\n", 400, id="an address with a user"),
        pytest.param(GET.replace(b" /", b" http:///") + b"\r\n", 400, id="an address without a host"),
        pytest.param(b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", 400, id="CONNECT"),
        pytest.param(
            WS + b"Sec-WebSocket-Protocol: " + b"x" * 9_000 + b"\r\n\r\n", 431, id="a long handshake"
        ),
    ],
)
def test_what_could_be_understood_in_two_ways_is_refused(
    client: httpx.Client, sent: bytes, status: int
) -> None:
    with connected(client) as connection:
        connection.sendall(sent)
        assert refusal(connection)[0] == status


def test_an_absolute_address_counts_and_not_the_host_beside(client: httpx.Client) -> None:
    select = b"SELECT%20(IRI(%22%22)%20AS%20%3Fx)%7B%7D"
    asked = (
        b"GET http://graph.example:80/sparql?query=" + select + b" HTTP/1.1\r\nHost: other.example\r\n\r\n"
    )
    with connected(client) as connection:
        connection.sendall(asked)
        found = orjson.loads(answered(connection).read())["results"]["bindings"]
    assert found[0]["x"]["value"] == "http://graph.example:80/sparql"


def test_what_stands_behind_a_body_is_no_header_of_its_request(client: httpx.Client) -> None:
    with connected(client) as connection:
        connection.sendall(CHUNKS + b"6\r\nASK {}\r\n0\r\nAccept: image/png\r\nHost: y\r\n\r\n")
        assert answered(connection).status == 200
        connection.sendall(GET + b"\r\n")
        assert answered(connection).status == 200


@pytest.mark.parametrize(
    ("second", "status"),
    [
        pytest.param(GET + b"A: " + b"x" * 40_000 + b"\r\n\r\n", 431, id="too large"),
        pytest.param(b"GET /health HTTP/1.1\r\n\r\n", 400, id="without Host"),
        pytest.param(b"\x16\x03\r\n\r\n", 400, id="no HTTP"),
        pytest.param(CHUNKS + b"ZZ\r\n", 400, id="with a body that is none"),
    ],
)
def test_a_refusal_comes_behind_the_answers_that_are_due(
    client: httpx.Client, second: bytes, status: int
) -> None:
    with connected(client) as connection:
        connection.sendall(GET + b"\r\n" + GET + b"\r\n" + second)
        assert statuses(connection) == [200, 200, status]


def test_a_websocket_is_not_begun_while_an_answer_is_due(client: httpx.Client) -> None:
    with connected(client) as connection:
        connection.sendall(GET + b"\r\n" + WS + b"\r\n")
        assert statuses(connection) == [200, 426]


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(WS + b"Content-Length: 3\r\n\r\nabc", id="with a body"),
        pytest.param(WS.replace(b"1.1", b"1.0") + b"\r\n", id="by HTTP/1.0"),
    ],
)
def test_what_cannot_begin_a_websocket(client: httpx.Client, sent: bytes) -> None:
    with connected(client) as connection:
        connection.sendall(sent)
        assert statuses(connection) == [426]


def test_what_comes_behind_an_upgrade_that_is_not_done_is_not_read(client: httpx.Client) -> None:
    sent = b"POST /sparql HTTP/1.1\r\n" + FORM + b"Upgrade: h2c\r\nContent-Length: 15\r\n\r\n" + BODY
    with connected(client) as connection:
        connection.sendall(sent + b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n}}")
        assert statuses(connection) == [200]


@pytest.mark.parametrize(
    "where", [b"Cookie: " + b"x" * 30_000, b"Cookie: " + b"x" * 9_000], ids=["30k", "9k"]
)
def test_a_websocket_may_have_long_headers(client: httpx.Client, where: bytes) -> None:
    with connected(client) as connection:
        connection.sendall(WS + where + b"\r\n\r\n")
        assert answered(connection).status == 101


def test_a_websocket_may_have_a_long_address(client: httpx.Client) -> None:
    with connected(client) as connection:
        connection.sendall(WS.replace(b"/ws", b"/ws?token=" + b"x" * 20_000) + b"\r\n")
        assert answered(connection).status == 101


def test_of_many_requests_at_once_the_first_hundred_are_answered(client: httpx.Client) -> None:
    """The last of them says that it is, so its client knows that those behind it were not read."""
    received = b""
    with connected(client) as connection:
        connection.sendall((GET + b"\r\n") * 5_000)
        while more := connection.recv(65_536):
            received += more
    last = received[received.rindex(b"HTTP/1.1 200") :].lower()
    assert received.count(b"HTTP/1.1 200") == 101  # one was begun, so many may wait
    assert received.lower().count(b"connection: close") == last.count(b"connection: close") == 1


def test_a_client_may_send_many_requests_without_waiting(client: httpx.Client) -> None:
    with connected(client) as connection:
        for _ in range(20):
            connection.sendall((GET + b"\r\n") * 50)
            received = b""
            while received.count(b"HTTP/1.1 200 OK") < 50:
                received += connection.recv(65_536)


def test_pings_of_a_client_that_takes_no_answer_are_not_answered(client: httpx.Client) -> None:
    """What waits for it would have no limit."""
    pings, size = 300_000, 125
    ping = b"\x89" + bytes([0x80 | size]) + b"\0" * (4 + size)
    with connected(client) as connection:
        connection.settimeout(HANG_S)
        connection.sendall(WS + b"\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 101 ")
        for _ in range(pings // 1_000):
            connection.sendall(ping * 1_000)
        connection.sendall(b"\x88\x80" + b"\0" * 4)  # the end
        received = 0
        while more := connection.recv(1 << 20):
            received += len(more)
    assert received < pings * size // 2


def test_nothing_is_sent_before_a_websocket_is_accepted(client: httpx.Client) -> None:
    with connected(client) as connection:
        connection.sendall(WS + b"\r\n" + b"\x89\x80" + b"\0" * 4)  # a ping with the handshake
        assert connection.recv(65_536).startswith(b"HTTP/1.1 101 ")
