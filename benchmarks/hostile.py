"""Hostile queries against a service, and what point queries, its memory and its processor notice of them."""

import contextlib
import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from benchmarks.generator import Load, Request, generate
from benchmarks.hostile_queries import ATTACKS, POINT_QUERY, Attack, hostile_data
from benchmarks.process_usage import Usage, usage, wait_until_back
from benchmarks.service import BenchmarkError, RunningService, running_service, work_dir

__all__ = ["MANNERS", "HostileLine", "attack_once", "run"]

TIMEOUT_S = 2.0  # the service's limit for a query
GRACE_S = 1.0  # within which it has answered after that
BACK_S = 5.0
LATENCY_RATIO_MAX = 2.0
CROWD = 64
PATIENCE_S = 60.0  # of the attacker
LEAVES_AFTER_S = 0.3
PAUSE_S = 0.005  # between point queries: what is measured is their latency, not how many there can be
SETTINGS = {
    "GRAPHDB_SERVER__QUERY_TIMEOUT_SECONDS": str(TIMEOUT_S),
    "GRAPHDB_READERS__MEMORY_LIMIT_MB": "512",
}
PROBE = Request("/sparql", "application/sparql-query", "application/sparql-results+json", POINT_QUERY)

Answered: TypeAlias = tuple[Counter[int], float]  # how often which status, and seconds to the last byte
Manner: TypeAlias = Callable[[str, int, Attack], Answered]


@dataclass(frozen=True, slots=True)
class HostileLine:
    """One attack. Latencies are of point queries; memory and processor are of all the service's processes."""

    name: str
    statuses: dict[int, int]
    is_expected: bool
    seconds: float
    median_before_ms: float
    median_ms: float
    p99_before_ms: float
    p99_ms: float
    memory_before_mb: float
    memory_most_mb: float  # meanwhile, as far as one looks
    memory_after_mb: float
    cores_before: float
    cores_after: float
    back_s: float | None  # None: not within BACK_S

    @property
    def ratio(self) -> float:
        return self.median_ms / self.median_before_ms

    @property
    def passes(self) -> bool:
        in_time = self.seconds <= TIMEOUT_S + GRACE_S
        return self.is_expected and in_time and self.back_s is not None and self.ratio <= LATENCY_RATIO_MAX

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio, "passes": self.passes}

    def cells(self) -> dict[str, str]:
        return {
            "query": self.name,
            "status": ", ".join(_status(*each) for each in self.statuses.items()),
            "seconds": f"{self.seconds:.2f}",
            "p50 ms": f"{self.median_before_ms:.1f} to {self.median_ms:.1f}",
            "ratio": f"{self.ratio:.2f}",
            "p99 ms": f"{self.p99_before_ms:.1f} to {self.p99_ms:.1f}",
            "p99 ratio": f"{self.p99_ms / self.p99_before_ms:.2f}",
            "MB": f"{self.memory_before_mb:.0f} to {self.memory_after_mb:.0f}",
            "MB, most": f"{self.memory_most_mb:.0f}",
            "cores": f"{self.cores_before:.1f} to {self.cores_after:.1f}",
            "back after s": "never" if self.back_s is None else f"{self.back_s:.1f}",
            "": "met" if self.passes else "MISSED",
        }

    def notes(self) -> Sequence[str]:
        return ()


def _status(status: int, count: int) -> str:
    shown = str(status or "-")
    return shown if count == 1 else f"{count} x {shown}"


def run(scale: float, only: str) -> list[HostileLine]:
    """Attack after attack on one service. scale shortens the data."""
    chosen = [attack for attack in ATTACKS if only in attack.name]
    if not chosen:
        raise BenchmarkError(f"no hostile query has {only!r} in its name")
    with (
        work_dir() as directory,
        running_service(directory, load=hostile_data(directory, scale), environment=SETTINGS) as service,
    ):
        _measure_latency(service, 2.0)  # warm
        return [_line(service, attack) for attack in chosen]


def _line(service: RunningService, attack: Attack) -> HostileLine:
    """Quiet, the attack with point queries beside it, and the time until it is quiet again."""
    before, used = _measure_latency(service, 1.0), usage(service.data_dir, window_s=0.5)
    with ThreadPoolExecutor(2) as pool:
        attacking = pool.submit(attack_once, service.host, service.port, attack)
        looking = pool.submit(_most_memory_mb, service, attacking)
        meanwhile = _measure_latency(service, TIMEOUT_S)
        statuses, seconds = attacking.result()
    back_s, after = wait_until_back(service.data_dir, used, BACK_S)
    return _told(attack, statuses, seconds, before, meanwhile, (used, after), looking.result(), back_s)


def _most_memory_mb(service: RunningService, attacking: "Future[Answered]") -> float:
    """The most that the service has while somebody attacks it, looked at from time to time."""
    most_mb = 0.0
    while not attacking.done():
        most_mb = max(most_mb, usage(service.data_dir).memory_mb)
    return most_mb


def _told(
    attack: Attack,
    statuses: Counter[int],
    seconds: float,
    before: Load,
    meanwhile: Load,
    used: tuple[Usage, Usage],
    most_mb: float,
    back_s: float | None,
) -> HostileLine:
    quiet, after = used
    return HostileLine(
        name=attack.name,
        statuses=dict(statuses),
        is_expected=set(statuses) <= attack.statuses,
        seconds=seconds,
        median_before_ms=before.latency_s * 1000,
        median_ms=meanwhile.latency_s * 1000,
        p99_before_ms=before.latency_p99_s * 1000,
        p99_ms=meanwhile.latency_p99_s * 1000,
        memory_before_mb=quiet.memory_mb,
        memory_most_mb=most_mb,
        memory_after_mb=after.memory_mb,
        cores_before=quiet.cores,
        cores_after=after.cores,
        back_s=back_s,
    )


def _measure_latency(service: RunningService, seconds: float) -> Load:
    return generate(service.host, service.port, [PROBE], connections=1, seconds=seconds, pause_s=PAUSE_S)


def attack_once(host: str, port: int, attack: Attack) -> Answered:
    """Send it in its manner; the statuses that came, and the seconds until the end of the last answer."""
    return MANNERS[attack.manner](host, port, attack)


def _read(host: str, port: int, attack: Attack) -> Answered:
    """As a well-behaved client; a body that ends early counts by the status above it."""
    began = time.monotonic()
    connection = _sent(host, port, attack)
    try:
        answer = connection.getresponse()
        _looks_whole(answer)
    finally:
        connection.close()
    return Counter([answer.status]), time.monotonic() - began


def _unread(host: str, port: int, attack: Attack) -> Answered:
    """Read the head alone. It ends when the service runs the query no more, and must not look whole."""
    began = time.monotonic()
    connection = _sent(host, port, attack)
    try:
        answer = connection.getresponse()
        _wait_until_ended(host, port)
        seconds = time.monotonic() - began
        looks_whole = _looks_whole(answer)
    finally:
        connection.close()
    if looks_whole and answer.status == 200:
        raise BenchmarkError(f"{attack.name}: the answer looks whole")
    return Counter([answer.status]), seconds


def _looks_whole(answer: http.client.HTTPResponse) -> bool:
    """Read to the end; whether that is where the answer says it is."""
    try:
        while answer.read(1 << 20):
            pass
    except (http.client.IncompleteRead, ConnectionError):
        return False
    return True


def _leave(host: str, port: int, attack: Attack) -> Answered:
    """Go away soon. It ends when the service runs the query no more."""
    connection = _sent(host, port, attack)
    time.sleep(LEAVES_AFTER_S)
    connection.close()
    began = time.monotonic()
    _wait_until_ended(host, port)
    return Counter([0]), time.monotonic() - began


def _crowd(host: str, port: int, attack: Attack) -> Answered:
    """Many clients at once."""
    start = threading.Barrier(CROWD)

    def one(_number: int) -> Answered:
        start.wait()
        return _read(host, port, attack)

    with ThreadPoolExecutor(CROWD) as pool:
        answered = list(pool.map(one, range(CROWD)))
    return sum((statuses for statuses, _ in answered), Counter[int]()), max(each for _, each in answered)


def _sent(host: str, port: int, attack: Attack) -> http.client.HTTPConnection:
    headers = {"Content-Type": attack.media_type, "Connection": "close"}
    if attack.coding:
        headers["Content-Encoding"] = attack.coding
    connection = http.client.HTTPConnection(host, port, timeout=PATIENCE_S)
    # A refusal may come before the body is sent, and the connection be closed then.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.request("POST", attack.path, body=attack.body, headers=headers)
    return connection


def _wait_until_ended(host: str, port: int) -> None:
    """Return when no query runs any more."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        connection = http.client.HTTPConnection(host, port, timeout=PATIENCE_S)
        try:
            connection.request("GET", "/queries")
            if not json.load(connection.getresponse())["queries"]:
                return
        finally:
            connection.close()
        time.sleep(0.02)
    raise BenchmarkError(f"a query still runs after {PATIENCE_S} s")


MANNERS: dict[str, Manner] = {"read": _read, "unread": _unread, "leave": _leave, "crowd": _crowd}
