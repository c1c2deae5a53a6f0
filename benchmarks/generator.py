"""A load generator: keep-alive HTTP/1.1 connections, lean enough not to be what is measured.

It runs as a process of its own, so that it shares no interpreter with what it measures:
`python -m benchmarks.generator` reads its plan as JSON from standard input and prints its result as JSON.
An exchange of one of 64 connections costs it 12 to 17 µs of processor time, most of it in the kernel;
`Load.processor_s` has the sum.
"""

import asyncio
import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path
from statistics import median
from time import perf_counter

import httptools
import uvloop

__all__ = ["Load", "Request", "generate"]


@dataclass(frozen=True, slots=True)
class Request:
    """One POST; its body may hold `%d`, which every request replaces by a number of its own."""

    path: str
    content_type: str
    accept: str
    body: str


@dataclass(frozen=True, slots=True)
class Load:
    """What came of it. latency_s is the median; body_bytes the length of the last answer's body; processor_s
    what the generator itself used of a processor meanwhile.
    """

    requests: int
    seconds: float
    latency_s: float
    latency_p99_s: float
    body_bytes: int
    processor_s: float

    @property
    def requests_per_second(self) -> float:
        return self.requests / self.seconds


def generate(
    host: str,
    port: int,
    requests: Sequence[Request],
    *,
    connections: int,
    seconds: float,
    first_number: int = 0,
    pause_s: float = 0,
) -> Load:
    """Send requests in turn over so many connections for so long. Raises RuntimeError unless all succeed.

    A connection pauses after each of its answers.
    """
    plan = {
        "host": host,
        "port": port,
        "requests": [asdict(request) for request in requests],
        "connections": connections,
        "seconds": seconds,
        "first_number": first_number,
        "pause_s": pause_s,
    }
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.generator"],
        input=json.dumps(plan),
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).resolve().parent.parent,
    )
    if done.returncode:
        raise RuntimeError(f"load generator: {done.stderr.strip().splitlines()[-1]}")
    return Load(**json.loads(done.stdout))


class _Run:
    """The state that all connections share."""

    def __init__(
        self, host: str, requests: Sequence[Request], seconds: float, first_number: int, pause_s: float
    ) -> None:
        self._messages = cycle([self._message(host, request) for request in requests])
        self._number = first_number
        self.pause_s = pause_s
        self.started = perf_counter()
        self.deadline = self.started + seconds
        self.latencies: list[float] = []
        self.body_bytes = 0

    @staticmethod
    def _message(host: str, request: Request) -> tuple[bytes, bytes]:
        head = (
            f"POST {request.path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {request.content_type}\r\n"
            f"Accept: {request.accept}\r\nContent-Length: "
        )
        return head.encode(), request.body.encode()

    def next_message(self) -> bytes:
        head, body = next(self._messages)
        if b"%d" in body:
            body = body.replace(b"%d", b"%d" % self._number)
            self._number += 1
        return b"%s%d\r\n\r\n%s" % (head, len(body), body)


class _Connection(asyncio.Protocol):
    """One connection, which sends its next request when the answer to the last one is complete."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._parser = httptools.HttpResponseParser(self)
        self._sent, self._bytes = 0.0, 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._send()

    def data_received(self, data: bytes) -> None:
        """A piece of an answer."""
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        """A piece of its body."""
        self._bytes += len(body)

    def on_message_complete(self) -> None:
        """The end of an answer."""
        run = self._run
        run.latencies.append(perf_counter() - self._sent)
        run.body_bytes, self._bytes = self._bytes, 0
        status = self._parser.get_status_code()
        if not 200 <= status < 300:
            self._end(RuntimeError(f"answered {status}"))
        elif perf_counter() >= run.deadline:
            self._end(None)
        elif run.pause_s:
            asyncio.get_running_loop().call_later(run.pause_s, self._send)
        else:
            self._send()

    def connection_lost(self, error: Exception | None) -> None:
        """The server has closed it, or we have."""
        self._end(error or RuntimeError("the server closed the connection"))

    def _send(self) -> None:
        self._sent = perf_counter()
        self._transport.write(self._run.next_message())

    def _end(self, error: Exception | None) -> None:
        if self.ended.done():
            return
        if error is None:
            self.ended.set_result(None)
        else:
            self.ended.set_exception(error)
        self._transport.close()


async def _run(plan: dict[str, object]) -> Load:
    host, port, connections = str(plan["host"]), int(str(plan["port"])), int(str(plan["connections"]))
    requests = [Request(**request) for request in plan["requests"]]  # type: ignore[attr-defined] # as asdict wrote them
    seconds, pause_s = float(str(plan["seconds"])), float(str(plan["pause_s"]))
    run = _Run(host, requests, seconds, int(str(plan["first_number"])), pause_s)
    loop, before = asyncio.get_running_loop(), _processor_s()
    made = [await loop.create_connection(lambda: _Connection(run), host, port) for _ in range(connections)]
    await asyncio.gather(*(connection.ended for _, connection in made))
    taken = sorted(run.latencies)
    return Load(
        requests=len(taken),
        seconds=perf_counter() - run.started,
        latency_s=median(taken),
        latency_p99_s=taken[int(0.99 * len(taken))],
        body_bytes=run.body_bytes,
        processor_s=_processor_s() - before,
    )


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    print(json.dumps(asdict(uvloop.run(_run(json.load(sys.stdin))))))
