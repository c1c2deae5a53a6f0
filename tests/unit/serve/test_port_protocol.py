"""What is no whole HTTP request: refused in the shape of every error, and nothing of it stored."""

import socket
from http.client import HTTPResponse

import httpx
import orjson
import pytest

PUT = b"PUT /data HTTP/1.1\r\nHost: x\r\nContent-Type: application/n-triples\r\n"
LINE = b"<urn:a> <urn:p> <urn:o> .\n"


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
