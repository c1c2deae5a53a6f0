"""Many live queries on a few WebSockets, read in a thread: how many notifications came, and when."""

import asyncio
import json
import re
import threading
from collections import defaultdict
from time import perf_counter

from benchmarks.service import RunningService

__all__ = ["LiveListeners"]

_HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: benchmark\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
_INDEX = re.compile(rb'"index":(\d+)\}')
_READ_BYTES = 1 << 20


class LiveListeners:
    """`arrived`: by log index the time of its last notification, by `perf_counter`."""

    def __init__(self, service: RunningService, statements: list[str], sockets: int) -> None:
        """Each socket asks all statements. Returns when all are subscribed."""
        self._service, self._statements, self._sockets = service, statements, sockets
        self.arrived: defaultdict[int, float] = defaultdict(float)
        self._ready, self._ending = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._thread.start()
        assert self._ready.wait(120), "the live queries were not all taken"

    def close(self) -> None:
        """Leave."""
        self._ending.set()
        self._thread.join(30)

    async def _run(self) -> None:
        waiting = asyncio.Semaphore(0)
        readers = [asyncio.create_task(self._listen(waiting)) for _ in range(self._sockets)]
        for _ in readers:
            await waiting.acquire()
        self._ready.set()
        await asyncio.to_thread(self._ending.wait)
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)

    async def _listen(self, subscribed: asyncio.Semaphore) -> None:
        reader, writer = await asyncio.open_connection(self._service.host, self._service.port)
        try:
            writer.write(_HANDSHAKE)
            await reader.readuntil(b"\r\n\r\n")
            for number, statement in enumerate(self._statements):
                writer.write(_frame({"id": number, "method": "query", "params": [statement]}))
            answered = 0
            while answered < len(self._statements):
                answered += (await reader.read(_READ_BYTES)).count(b'"result":"')
            subscribed.release()
            while chunk := await reader.read(_READ_BYTES):
                now = perf_counter()
                for index in set(_INDEX.findall(chunk)):
                    self.arrived[int(index)] = now
        finally:
            writer.close()


def _frame(message: object) -> bytes:
    payload = json.dumps(message).encode()
    assert len(payload) < 126, "a longer frame begins otherwise"
    return bytes((0x81, 0x80 | len(payload), 0, 0, 0, 0)) + payload
