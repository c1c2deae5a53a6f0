"""`ClusterClients`: what many clients at all nodes of a cluster ask and are answered, as a history to check.

They read, write, compare and set, and append, by SPARQL updates that look at what is there. A write whose
outcome is lost is sent again under its `Idempotency-Key`, or left open in the history.
"""

import itertools
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx

from tests.support.client_threads import ClientThreads
from tests.support.linearizability import (
    UNKNOWN,
    Append,
    CompareAndSet,
    Operation,
    Read,
    Write,
    find_violation,
    list_step,
    register_step,
)

__all__ = ["ClusterClients"]

OPERATIONS_PER_KEY = 40
TIMEOUT_S = 15.0
RETRY_S = 20.0
PAUSE_S = 0.03  # after what has failed
_OUTCOME_UNKNOWN = "the outcome is unknown"
_LIST = "list"


@dataclass(frozen=True, slots=True)
class _Answered:
    """A request's end: confirmed, refused (nothing has happened), or lost (it may have)."""

    kind: str
    body: Any = None


_REFUSED, _LOST = _Answered("refused"), _Answered("lost")


class ClusterClients(ClientThreads):
    """Run them with `with`; then check() what they saw."""

    def __init__(self, urls: Mapping[int, str], seed: int = 0, count: int = 5) -> None:
        """urls of the nodes' ports; nodes may come and go meanwhile."""
        super().__init__(partial(self._run, random.Random(f"{seed} {client}")) for client in range(count))
        self._urls = dict(urls)
        self._mark = f"{seed}-{time.monotonic_ns()}"  # several runs may use one cluster
        self._numbers = itertools.count(1)
        self._turns = itertools.count()
        self.history: list[Operation] = []
        self.confirmed_at: list[float] = []  # when writes were confirmed
        self.refused = 0
        self.unexpected: list[str] = []  # answers that nobody should get

    def check(self) -> None:
        """Read every key at every node once more; every answer has to be explained by one order per key."""
        assert not self.unexpected, self.unexpected
        assert self.confirmed_at, "nothing was ever confirmed"
        with _client() as client:
            for key in sorted({operation.key for operation in self.history}):
                for url in self._urls.values():
                    self._read(client, url, key)
        models = {_LIST: list_step}
        violation = find_violation(self.history, lambda key: models.get(key.partition("-")[0], register_step))
        assert violation is None, violation

    def silence_between_s(self, first: float, last: float) -> float:
        """The longest time between two confirmations of writes, of which one is between these moments."""
        pairs = itertools.pairwise(sorted(self.confirmed_at))
        return max(
            (later - sooner for sooner, later in pairs if later > first and sooner < last), default=0.0
        )

    def longest_silence_s(self) -> float:
        """The same over the whole time."""
        return self.silence_between_s(min(self.confirmed_at), max(self.confirmed_at))

    def _run(self, rng: random.Random) -> None:
        seen: dict[str, Any] = {}
        with _client() as client:
            while not self._ended.is_set():
                kind = rng.choice(["register", "register", _LIST])
                key = f"{kind}-{self._mark}-{next(self._turns) // (3 * OPERATIONS_PER_KEY)}"
                try:
                    self._act(client, rng, key, seen)
                except Exception as error:  # noqa: BLE001 told by check()
                    self.unexpected.append(repr(error))
                    return

    def _act(self, client: httpx.Client, rng: random.Random, key: str, seen: dict[str, Any]) -> None:
        number = next(self._numbers)
        if rng.random() < 0.4:
            seen[key] = self._read(client, self._any_url(rng), key)
        elif key.startswith(_LIST):
            self._write(client, rng, key, Append(number), _append_text(key, number))
        elif rng.random() < 0.7 and seen.get(key) is not UNKNOWN:
            action = CompareAndSet(seen.get(key), number)
            if self._write(client, rng, key, action, _compare_text(key, seen.get(key), number)):
                seen[key] = number
        else:
            self._write(client, rng, key, Write(number), _write_text(key, number))

    def _any_url(self, rng: random.Random) -> str:
        return rng.choice(list(self._urls.values()))

    def _read(self, client: httpx.Client, url: str, key: str) -> Any:
        called = time.monotonic()
        query = f"SELECT ?p ?o {{ <urn:{key}> ?p ?o }}"
        answered = self._send(client, f"{url}/sparql?consistency=linearizable", {"query": query}, {})
        if answered.kind != "confirmed":
            time.sleep(PAUSE_S)
            return UNKNOWN
        value = _value(key, answered.body["results"]["bindings"])
        self.history.append(Operation(key, Read(), called, time.monotonic(), value))
        return value

    def _write(
        self,
        client: httpx.Client,
        rng: random.Random,
        key: str,
        action: Write | CompareAndSet | Append,
        text: str,
    ) -> bool:
        """Whether it is known to have had an effect. Half of the writes are sent until they are answered."""
        headers = {"Idempotency-Key": f'"{self._mark}-{action}"'} if rng.random() < 0.5 else {}
        called = time.monotonic()
        may_have_happened = False
        while True:
            answered = self._send(client, f"{self._any_url(rng)}/update", {"update": text}, headers)
            if answered.kind == "confirmed":
                break
            may_have_happened |= answered is _LOST
            time.sleep(PAUSE_S)
            if not headers or time.monotonic() > called + RETRY_S:
                if may_have_happened:
                    self.history.append(Operation(key, action, called))
                return False
        returned = time.monotonic()
        self.confirmed_at.append(returned)
        effective = bool(answered.body["affected_triples"] > 0)
        answer = effective if isinstance(action, CompareAndSet) else None
        self.history.append(Operation(key, action, called, returned, answer))
        return effective

    def _send(
        self, client: httpx.Client, url: str, form: dict[str, str], headers: dict[str, str]
    ) -> _Answered:
        try:
            response = client.post(url, data=form, headers=headers)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            return _REFUSED
        except httpx.TransportError:
            return _LOST
        if response.status_code == 200:
            return _Answered("confirmed", response.json())
        if response.status_code != 503:
            self.unexpected.append(f"{response.status_code}: {response.text}")
        self.refused += 1
        return _LOST if _OUTCOME_UNKNOWN in response.text else _REFUSED


def _client() -> httpx.Client:
    return httpx.Client(timeout=httpx.Timeout(TIMEOUT_S, connect=2), trust_env=False)


def _write_text(key: str, number: int) -> str:
    return f"DELETE WHERE {{ <urn:{key}> <urn:v> ?o }} ; INSERT DATA {{ <urn:{key}> <urn:v> {number} }}"


def _compare_text(key: str, expected: int | None, number: int) -> str:
    if expected is None:
        return (
            f"INSERT {{ <urn:{key}> <urn:v> {number} }} WHERE {{ FILTER NOT EXISTS {{ <urn:{key}> ?p ?o }} }}"
        )
    old, new = f"<urn:{key}> <urn:v> {expected}", f"<urn:{key}> <urn:v> {number}"
    return f"DELETE {{ {old} }} INSERT {{ {new} }} WHERE {{ {old} }}"


def _append_text(key: str, number: int) -> str:
    place = 'SELECT (IRI(CONCAT("urn:at:", STR(COUNT(?o)))) AS ?at)'
    return f"INSERT {{ <urn:{key}> ?at {number} }} WHERE {{ {place} {{ <urn:{key}> ?p ?o }} }}"


def _value(key: str, bindings: list[dict[str, dict[str, str]]]) -> Any:
    """What a register or a list holds, by its triples; a register with two values holds nothing allowed."""
    values = [(row["p"]["value"].rpartition(":")[2], int(row["o"]["value"])) for row in bindings]
    if key.startswith(_LIST):
        return tuple(item for _, item in sorted(values, key=lambda pair: int(pair[0])))
    if len(values) > 1:
        return tuple(sorted(item for _, item in values))
    return values[0][1] if values else None
