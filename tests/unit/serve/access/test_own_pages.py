"""Which pages may call the search port."""

import asyncio

import pytest
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from serve.access.own_pages import OwnPages


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    names = [name for name, _ in scope["headers"]]
    await Response("called" if b"origin" not in names else "with origin")(scope, receive, send)


def ask(
    origin: str, host: str, method: str = "POST", scheme: str = "http"
) -> tuple[int, dict[str, str], str]:
    """Status, headers and body."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"host", host.encode()), (b"origin", origin.encode())]
    if method == "OPTIONS":
        headers += [(b"access-control-request-method", b"POST")]
        headers += [(b"access-control-request-headers", b"authorization,content-type")]
    scope = {"type": "http", "method": method, "scheme": scheme, "path": "/", "headers": headers}
    asyncio.run(OwnPages(app, 7001, ("https://app.example",))(scope, receive, send))
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, sent[1]["body"].decode()


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://localhost:7001", "localhost:9200"),
        ("http://127.0.0.1:7001", "127.0.0.1:9200"),
        ("http://[::1]:7001", "[::1]:9200"),
        ("https://app.example", "localhost:9200"),
    ],
)
def test_own_pages_may(origin: str, host: str) -> None:
    status, headers, body = ask(origin, host)
    assert (status, body) == (200, "called")
    assert headers["access-control-allow-origin"] == origin
    status, headers, _ = ask(origin, host, "OPTIONS")
    assert status == 204
    assert headers["access-control-allow-headers"] == "authorization,content-type"
    assert "access-control-allow-credentials" not in headers


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:7002",
        "https://localhost:7001",
        "http://elsewhere:7001",
        "http://localhost:7001.elsewhere",
        "http://localhost",
        "null",
        "http://localhost:x",
        "",
    ],
)
def test_others_may_not(origin: str) -> None:
    for method in ("POST", "OPTIONS"):
        _, headers, body = ask(origin, "localhost:9200", method)
        assert body == "with origin"  # what follows refuses it
        assert "access-control-allow-origin" not in headers
