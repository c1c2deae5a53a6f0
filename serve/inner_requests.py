"""Requests that are put to the application from within the process, with the rights of a principal."""

import asyncio
import contextlib
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Scope

from serve.answers import AnswerBroken

__all__ = ["InnerAnswer", "ask_within"]


@dataclass(frozen=True, slots=True)
class InnerAnswer:
    """body is cut at the limit of the request, and then not complete. Names of headers are in lower case."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    is_complete: bool


async def ask_within(application: ASGIApp, scope: Scope, body: bytes, bytes_max: int) -> InnerAnswer:
    """The answer to a request of a scope. When it is longer than bytes_max, the client goes away."""
    exchange = _Exchange(body, bytes_max)
    with contextlib.suppress(AnswerBroken, ClientDisconnect):
        await application(scope, exchange.receive, exchange.send)
    return exchange.answer()


class _Exchange:
    """One request within the application, and what it was answered."""

    def __init__(self, body: bytes, bytes_max: int) -> None:
        self._request: Message | None = {"type": "http.request", "body": body, "more_body": False}
        self._bytes_max = bytes_max
        self._status = 500
        self._headers: Iterable[tuple[bytes, bytes]] = ()
        self._body = bytearray()
        self._enough = asyncio.Event()

    async def receive(self) -> Message:
        """The body once; then that the client has gone, when it has."""
        message, self._request = self._request, None
        if message is not None:
            return message
        await self._enough.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Keep the answer."""
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], message["headers"]
        elif message["type"] == "http.response.body" and not self._enough.is_set():
            self._body += message.get("body", b"")
            if len(self._body) > self._bytes_max:
                self._enough.set()

    def answer(self) -> InnerAnswer:
        """What there is of it."""
        headers = [(name.lower(), value) for name, value in self._headers]
        return InnerAnswer(
            self._status, headers, bytes(self._body[: self._bytes_max]), not self._enough.is_set()
        )
