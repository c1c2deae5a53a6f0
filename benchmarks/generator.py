"""A load generator: keep-alive HTTP/1.1 connections over asyncio, lean enough not to be what is measured.

It runs as a process of its own, so that it shares no interpreter with what it measures:
`python -m benchmarks.generator` reads its plan as JSON from standard input and prints its result as JSON.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path
from statistics import median
from time import perf_counter

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
    """What came of it. latency_s is the median; body_bytes the length of the last answer's body."""

    requests: int
    seconds: float
    latency_s: float
    latency_p99_s: float
    body_bytes: int

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


async def _connection(run: _Run, host: str, port: int) -> None:
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 20)
    while perf_counter() < run.deadline:
        sent = perf_counter()
        writer.write(run.next_message())
        run.body_bytes = await _read_answer(reader)
        run.latencies.append(perf_counter() - sent)
        if run.pause_s:
            await asyncio.sleep(run.pause_s)
    writer.close()


async def _read_answer(reader: asyncio.StreamReader) -> int:
    """Read one answer to its end; the length of its body in bytes."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if not head.startswith(b"http/1.1 2"):
        raise RuntimeError(f"answered {head.splitlines()[0].decode()}")
    if b"transfer-encoding: chunked" in head:
        return await _read_chunks(reader)
    length = int(head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
    await reader.readexactly(length)
    return length


async def _read_chunks(reader: asyncio.StreamReader) -> int:
    total = 0
    while True:
        size = int(await reader.readuntil(b"\r\n"), 16)
        await reader.readexactly(size + 2)
        if not size:
            return total
        total += size


async def _run(plan: dict[str, object]) -> Load:
    host, port, connections = str(plan["host"]), int(str(plan["port"])), int(str(plan["connections"]))
    requests = [Request(**request) for request in plan["requests"]]  # type: ignore[attr-defined] # as asdict wrote them
    seconds, pause_s = float(str(plan["seconds"])), float(str(plan["pause_s"]))
    run = _Run(host, requests, seconds, int(str(plan["first_number"])), pause_s)
    await asyncio.gather(*(_connection(run, host, port) for _ in range(connections)))
    taken = sorted(run.latencies)
    return Load(
        requests=len(taken),
        seconds=perf_counter() - run.started,
        latency_s=median(taken),
        latency_p99_s=taken[int(0.99 * len(taken))],
        body_bytes=run.body_bytes,
    )


if __name__ == "__main__":
    print(json.dumps(asdict(uvloop.run(_run(json.load(sys.stdin))))))
