"""`LiveClient`: a client of `/ws` for tests, over a real socket."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
from websockets.sync.client import ClientConnection, connect

__all__ = ["LiveClient", "live_client"]

_WAIT_S = 20.0


class LiveClient:
    """Requests get numbers; what comes that is not asked for is a notification."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.notifications: list[dict[str, Any]] = []
        self._number = 0

    def receive(self, timeout_s: float = _WAIT_S) -> dict[str, Any]:
        message: dict[str, Any] = orjson.loads(self.connection.recv(timeout=timeout_s))
        return message

    def ask(self, method: str, *params: Any) -> dict[str, Any]:
        """The answer; what came before it is kept in notifications."""
        self._number += 1
        self.connection.send(
            orjson.dumps({"id": self._number, "method": method, "params": list(params)}).decode()
        )
        while (message := self.receive()).get("id") != self._number:
            self.notifications.append(message)
        return message

    def live(self, statement: str, since: int | None = None) -> str:
        """Subscribe; the id of the subscription."""
        options = [] if since is None else [{"since": since}]
        answer = self.ask("query", statement, *options)
        assert "result" in answer, answer
        return str(answer["result"])

    def told(self, count: int) -> list[dict[str, Any]]:
        """The next notifications, so many."""
        while len(self.notifications) < count:
            self.notifications.append(self.receive())
        found, self.notifications = self.notifications[:count], self.notifications[count:]
        return found

    def nothing_is_told(self) -> bool:
        """Whether all that was sent up to now has been taken."""
        assert self.ask("ping")["result"] == "pong"
        return not self.notifications


@contextmanager
def live_client(base_url: str, query: str = "", **options: Any) -> Iterator[LiveClient]:
    url = base_url.replace("http", "ws", 1)
    with connect(f"{url}/ws{query}", proxy=None, **options) as connection:
        yield LiveClient(connection)
