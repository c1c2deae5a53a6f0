"""`RollingClients`: clients behind a plain load balancer, for whom a rolling restart must not be an event.

Each goes round the nodes, keeps its connections, and leaves a node out for as long as a connection to it is
refused or its /health is not 200. Nothing is sent twice: whatever else goes wrong is a failure.
"""

import itertools
import time
from functools import partial

import httpx

from tests.support.client_threads import ClientThreads

__all__ = ["RollingClients"]

_PROBE_EVERY_S = 0.25
_PACE_S = 0.02


class RollingClients(ClientThreads):
    """Run them with `with`; written, reads, slowest_s and failures tell what they met."""

    def __init__(self, urls: list[str], count: int = 4) -> None:
        super().__init__([*(partial(self._run, client) for client in range(count)), self._probe])
        self._urls = urls
        self._up = set(urls)
        self._numbers = itertools.count()
        self.written: set[str] = set()
        self.reads = 0
        self.slowest_s = 0.0
        self.failures: list[str] = []

    def _probe(self) -> None:
        with httpx.Client(timeout=2, trust_env=False) as client:
            while not self._ended.wait(_PROBE_EVERY_S):
                for url in self._urls:
                    if _is_up(client, url):
                        self._up.add(url)
                    else:
                        self._up.discard(url)

    def _run(self, number: int) -> None:
        turns = itertools.cycle(
            self._urls[number % len(self._urls) :] + self._urls[: number % len(self._urls)]
        )
        # connections are kept for as long as the server lets them
        with httpx.Client(timeout=30, trust_env=False, limits=httpx.Limits(keepalive_expiry=None)) as client:
            while not self._ended.is_set():
                url = next(turns)
                if url in self._up:
                    self._ask(client, url, is_write=number % 2 == 0)
                    time.sleep(_PACE_S)

    def _ask(self, client: httpx.Client, url: str, is_write: bool) -> None:
        value = str(next(self._numbers))
        began = time.monotonic()
        try:
            if is_write:
                text = f"INSERT DATA {{ GRAPH <urn:rolling> {{ <urn:s> <urn:p> {value} }} }}"
                answer = client.post(f"{url}/update", data={"update": text})
            else:
                query = {"query": "ASK { <urn:s> ?p ?o }", "consistency": "linearizable"}
                answer = client.get(f"{url}/sparql", params=query)
        except httpx.ConnectError:
            self._up.discard(url)
            return
        except httpx.TransportError as error:
            self.failures.append(f"{_now()} {url}: {error!r}")
            self._up.discard(url)
            return
        took_s = time.monotonic() - began
        self.slowest_s = max(self.slowest_s, took_s)
        if answer.status_code != 200:
            self.failures.append(f"{_now()} {url}: {answer.status_code} {answer.text} after {took_s:.1f} s")
        elif is_write:
            self.written.add(value)
        else:
            self.reads += 1


def _is_up(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(f"{url}/health").status_code == 200
    except httpx.TransportError:
        return False


def _now() -> str:
    return f"{time.monotonic():.2f}"
