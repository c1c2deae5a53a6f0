"""Live queries: what 10,000 subscriptions over 100 queries leave of the updates; how soon they are told."""

import time
from itertools import count
from time import perf_counter

import httpx

from benchmarks.generator import Request, generate
from benchmarks.live_listeners import LiveListeners
from benchmarks.report import Row, interleave
from benchmarks.service import RunningService, running_service, work_dir

__all__ = ["run"]

QUERIES, SUBSCRIPTIONS, SOCKETS = 100, 10_000, 20
CLIENTS, SECONDS = 16, 4.0
PACED_A_SECOND, PACED_SECONDS = 100, 10.0
LATENCY_MS_MAX = 100.0

UPDATE = (
    "INSERT DATA {{ <urn:{name}%d> a <urn:Reading> ; "
    "<urn:p/sensor> {sensor} ; <urn:p/value> 1 ; <urn:p/unit> 'K' }}"
)
STATEMENTS = [f"LIVE SELECT value FROM Reading WHERE sensor = {number}" for number in range(QUERIES)]
REQUESTS = [
    Request(
        "/update", "application/sparql-update", "application/json", UPDATE.format(name="r", sensor=number)
    )
    for number in range(QUERIES)
]
_numbers = count(0, 1_000_000)


def run(rounds: int, scale: float) -> list[Row]:
    """Updates a second against those with no subscription; p99 from acknowledgement to the last socket."""
    copies = max(1, round(SUBSCRIPTIONS * scale) // (QUERIES * SOCKETS))
    with work_dir() as directory, running_service(directory) as service:
        _updates(service, scale)  # warm

        def listened() -> float:
            listeners = LiveListeners(service, STATEMENTS * copies, SOCKETS)
            try:
                return _updates(service, scale)
            finally:
                listeners.close()
                time.sleep(0.5)  # the service has let go of them

        floor, ours = interleave(rounds, lambda: _updates(service, scale), listened)
        latency_ms = _latency_ms(service, copies, scale)
    told = QUERIES * copies * SOCKETS
    work = f"updates, {CLIENTS} clients, {told:,} live queries of {QUERIES} kinds against none"
    return [
        Row(work, "updates/s", floor, ours, "at least", 0.5),
        Row(
            f"the last of {copies * SOCKETS} notifications after acknowledgement, p99 at "
            f"{PACED_A_SECOND} updates/s",
            "ms",
            LATENCY_MS_MAX,
            latency_ms,
            "at most",
            1,
        ),
    ]


def _updates(service: RunningService, scale: float) -> float:
    load = generate(
        service.host,
        service.port,
        REQUESTS,
        connections=CLIENTS,
        seconds=max(0.3, SECONDS * scale),
        first_number=next(_numbers),
    )
    return load.requests_per_second


def _latency_ms(service: RunningService, copies: int, scale: float) -> float:
    """One update after the other, evenly; the 99th of 100 latencies."""
    listeners = LiveListeners(service, STATEMENTS * copies, SOCKETS)
    acknowledged: dict[int, float] = {}
    try:
        with httpx.Client(base_url=service.url, trust_env=False) as client:
            begin = perf_counter()
            for step in range(max(20, int(PACED_A_SECOND * PACED_SECONDS * scale))):
                time.sleep(max(0.0, begin + step / PACED_A_SECOND - perf_counter()))
                text = UPDATE.format(name="paced", sensor=step % QUERIES) % step
                answer = client.post(
                    "/update", content=text, headers={"Content-Type": REQUESTS[0].content_type}
                )
                acknowledged[int(answer.raise_for_status().json()["snapshot_index"])] = perf_counter()
        time.sleep(2)
    finally:
        listeners.close()
    # a notification may come before the acknowledgement
    latencies = sorted(
        max(0.0, listeners.arrived[index] - at) if listeners.arrived[index] else float("inf")
        for index, at in acknowledged.items()
    )
    return latencies[int(0.99 * (len(latencies) - 1))] * 1000
