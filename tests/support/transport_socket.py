"""`TransportClient`: a client of `/graphql/ws` that says exactly what a test wants it to."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import orjson
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

__all__ = ["TransportClient", "transport_client"]

_WAIT_S = 20.0


class TransportClient:
    """Messages of graphql-transport-ws."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    def send(self, kind: str, **members: Any) -> None:
        self.connection.send(orjson.dumps({"type": kind, **members}).decode())

    def receive(self) -> dict[str, Any]:
        """The next message that is not one of the pings, which come where a test takes long."""
        while (message := self.receive_any()) == {"type": "ping"}:
            pass
        return message

    def receive_any(self) -> dict[str, Any]:
        """The next message."""
        message: dict[str, Any] = orjson.loads(self.connection.recv(timeout=_WAIT_S))
        return message

    def initialise(self, **payload: Any) -> dict[str, Any]:
        self.send("connection_init", **({"payload": payload} if payload else {}))
        ack = self.receive()
        assert ack["type"] == "connection_ack", ack
        return ack

    def subscribe(self, operation_id: str, query: str, **members: Any) -> None:
        self.send("subscribe", id=operation_id, payload={"query": query, **members})

    def events(self, count: int, operation_id: str | None = None) -> list[dict[str, Any]]:
        """The data of the next results, so many; all are of one operation, if it is named."""
        found = []
        for _ in range(count):
            message = self.receive()
            assert message["type"] == "next", message
            assert operation_id is None or message["id"] == operation_id
            assert "errors" not in message["payload"], message
            found.append(message["payload"]["data"])
        return found

    def nothing_is_told(self) -> bool:
        """Whether all that was sent up to now has been taken."""
        self.send("ping", payload={"now": True})
        return self.receive() == {"type": "pong", "payload": {"now": True}}

    def closed(self) -> tuple[int, str]:
        """The code and the reason with which the service ends the connection."""
        with suppress(ConnectionClosed):
            while True:
                self.connection.recv(timeout=_WAIT_S)
        assert self.connection.close_code is not None
        return self.connection.close_code, self.connection.close_reason or ""


@contextmanager
def transport_client(base_url: str, query: str = "", **options: Any) -> Iterator[TransportClient]:
    url = f"{base_url.replace('http', 'ws', 1)}/graphql/ws{query}"
    given: dict[str, Any] = {"subprotocols": ["graphql-transport-ws"], "proxy": None, **options}
    with connect(url, **given) as connection:
        yield TransportClient(connection)
