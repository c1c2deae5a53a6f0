"""What is no whole HTTP request: refused in the shape of every error, and nothing of it stored."""

import socket
from http.client import HTTPResponse

import httpx
import orjson
import pytest

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
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=10) as connection:
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
    with socket.create_connection(where, timeout=10) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        answer = HTTPResponse(connection)
        answer.begin()
        body = orjson.loads(answer.read())
    assert (answer.status, answer.headers["Content-Type"]) == (400, "application/json")
    assert (body["status"], said in body["error"]) == (400, True)
    assert client.get("/data").text == ""
