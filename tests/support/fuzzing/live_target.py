"""`LiveTarget`: random messages on a WebSocket to `/ws`, which has to live through all of them."""

import contextlib
import itertools
import tempfile
from collections.abc import Iterator
from random import Random
from typing import Any

import httpx
import orjson
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from graphdb.config import Settings
from serve.graph_app import build_app
from tests.support.fuzzing.findings import BrokenPromise
from tests.support.fuzzing.live_messages import random_message
from tests.support.http_server import serving
from tests.support.memory_backend import MemoryBackend

__all__ = ["LiveTarget", "live_target"]

_ANSWER_S = 10.0
_CODES = frozenset({"syntax", "invalid", "limit", "not_found", "resnapshot", "unavailable"})
_PING = "the fuzzer's ping"


class LiveTarget:
    """Each message is answered, by a result or an error that a client may meet, and then so is a ping."""

    name = "live"
    batch = 100

    def __init__(self, url: str) -> None:
        self._url = url
        self._numbers = itertools.count()
        self._held = contextlib.ExitStack()
        self._socket = self._connect()

    def _connect(self) -> ClientConnection:
        """Anew, for what goes on."""
        self._held.close()
        return self._held.enter_context(self._connected())

    def _connected(self) -> contextlib.AbstractContextManager[ClientConnection]:
        return connect(f"{self._url.replace('http', 'ws', 1)}/ws", proxy=None, max_size=None)

    def case(self, random: Random) -> str | bytes:
        return random_message(random)

    def check(self, case: str | bytes) -> str:
        try:
            self._socket.send(case)
            outcome = self._answer()
            ping = f"{_PING} {next(self._numbers)}"
            self._socket.send(orjson.dumps({"id": ping, "method": "ping"}).decode())
            while (message := self._receive()).get("id") != ping:
                if "error" in message and message["error"]["code"] not in _CODES:
                    raise BrokenPromise(f"error: {message}")
        except (ConnectionClosed, TimeoutError) as error:
            self._socket = self._connect()
            raise BrokenPromise(f"socket: {error!r}") from error
        return outcome

    def _answer(self) -> str:
        """The first that is no notification."""
        while "action" in (message := self._receive()):
            continue
        if "error" not in message:
            result = message["result"]
            is_subscription = isinstance(result, str) and result != "pong"
            if is_subscription and next(self._numbers) % 5:  # some stay open
                kill = {"id": "kill", "method": "kill", "params": [result]}
                self._socket.send(orjson.dumps(kill).decode())
            return "subscribed" if is_subscription else "result"
        code = message["error"]["code"]
        if code not in _CODES:
            raise BrokenPromise(f"error: {message}")
        return str(code)

    def _receive(self) -> dict[str, Any]:
        message: dict[str, Any] = orjson.loads(self._socket.recv(timeout=_ANSWER_S))
        return message

    def check_alive(self) -> None:
        """A change is told on a new socket."""
        number = next(self._numbers)
        with self._connected() as socket:
            statement = "LIVE SELECT ?o WHERE { <urn:fuzz:point> <urn:fuzz:p> ?o }"
            socket.send(orjson.dumps({"id": 1, "method": "query", "params": [statement]}).decode())
            opened = orjson.loads(socket.recv(timeout=_ANSWER_S))
            if "result" not in opened:
                raise BrokenPromise(f"wrong: {opened}")
            quads = (
                f"<urn:fuzz:point> <urn:fuzz:p> {number} . <http://e/{number % 7}> a <http://e/C> ; "
                f"<http://e/p> {number}, <http://e/{number % 5}>"
            )
            update = f"DELETE WHERE {{ <urn:fuzz:point> ?p ?o }} ; INSERT DATA {{ {quads} }}"
            headers = {"Content-Type": "application/sparql-update"}
            httpx.post(f"{self._url}/update", content=update, headers=headers).raise_for_status()
            while True:
                told = orjson.loads(socket.recv(timeout=_ANSWER_S))
                if told["action"] == "CREATE":
                    break
            if told["result"]["o"] != number:
                raise BrokenPromise(f"wrong: {told} is told and not {number}")
        self._socket = self._connect()

    def wire(self, case: str | bytes) -> bytes:
        return case.encode(errors="replace") if isinstance(case, str) else case

    def with_wire(self, case: str | bytes, wire: bytes) -> str | bytes:
        return wire.decode(errors="replace") if isinstance(case, str) else wire

    def close(self) -> None:
        self._held.close()


@contextlib.contextmanager
def live_target() -> Iterator[LiveTarget]:
    """The application over memory, served by a thread of this process."""
    with tempfile.TemporaryDirectory() as directory:
        settings = Settings.model_validate({"server": {"data_dir": directory}})
        with serving(build_app(MemoryBackend(), settings)) as url:
            target = LiveTarget(url)
            try:
                target.check_alive()
                yield target
            finally:
                target.close()
