"""The search port beside Elasticsearch 8 in one run: 50,000 documents written, searched and put one by one.

Both run at once, and each measurement is taken of one and then of the other, so that a slow minute meets
both. Each request is asked once, so that no kept answer counts. Without a JDK and Maven only ours is
measured.
"""

import http.client
import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import count
from math import inf
from pathlib import Path
from statistics import geometric_mean, median
from threading import Lock
from time import perf_counter, sleep
from typing import Any

import httpx
import orjson
import psutil  # type: ignore[import-untyped]

from benchmarks.elasticsearch_node import VERSION, missing, running_elasticsearch
from benchmarks.generator import Request, generate
from benchmarks.packages import MAPPING, SEARCHES, VECTOR_SEARCHES, Packages
from benchmarks.process_usage import processor_seconds, spent
from benchmarks.report import Line
from benchmarks.service import BenchmarkError, running_service, work_dir

__all__ = ["run"]

CONNECTIONS = (1, 2, 8)
BATCH, WARMING_BATCHES = 500, 10
SECONDS = 0.8
WARMING_S, WARMING_JAVA_S = 0.5, 4.0  # of each search: Java compiles what it has run often
TIMEOUT_S = 600
DELETED_S = 15.0  # without a smaller size, until it is taken that no old files are left
A_SECOND = 25_000  # more requests than either answers
WARMING_MAX = 20_000  # requests of a warming, which may come again
COMPARED, RECALLED = 3, 100  # searches whose totals, and whose hits by vector, are looked at
ASKED, ASKED_BULK = 1.5, 3.0  # times Elasticsearch
INDEX, PUTS, PUT = "packages", "puts", "put of one document"
_JSON = "application/json"
# Of ours, and of Elasticsearch beside where it is. Processor time is of all processes of a service.
_HEADINGS = ("work", "connections", "1/s", "times", "p50, ms", "p99, ms", "processor, ms", "recall@10", "")


@dataclass(frozen=True, slots=True)
class Sample:
    """Of one measurement: latencies and the processor time of a request are in ms; a bulk's requests are
    documents.
    """

    rate: float
    p50: float
    p99: float
    processor: float


@dataclass(frozen=True, slots=True)
class PeerRow:
    """Medians over the rounds of ours, and of Elasticsearch's if it is there."""

    work: str
    connections: int
    ours: Sample
    peer: Sample | None
    asked: float
    recall: tuple[float, ...] = ()

    @property
    def ratio(self) -> float | None:
        return None if self.peer is None else self.ours.rate / self.peer.rate

    @property
    def passes(self) -> bool:
        return self.ratio is None or self.peer is None or not self._missed()

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio, "passes": self.passes}

    def cells(self) -> Mapping[str, str]:
        def pair(value: Callable[[Sample], float]) -> str:
            both = (self.ours,) if self.peer is None else (self.ours, self.peer)
            return " / ".join(_number(value(each)) for each in both)

        values = (
            self.work,
            str(self.connections),
            pair(lambda each: each.rate),
            "-" if self.ratio is None else f"{self.ratio:.2f}",
            pair(lambda each: each.p50),
            pair(lambda each: each.p99),
            pair(lambda each: each.processor),
            " / ".join(f"{each:.3f}" for each in self.recall),
            "" if self.ratio is None else self._missed() or "met",
        )
        return dict(zip(_HEADINGS, values, strict=True))

    def notes(self) -> Sequence[str]:
        return ()

    def _missed(self) -> str:
        assert self.ratio is not None
        assert self.peer is not None
        if self.ratio < self.asked:
            return f"MISSED: {self.asked:g}"
        return "MISSED: p99" if self.ours.p99 > self.peer.p99 else ""


@dataclass(frozen=True, slots=True)
class Whole:
    """The index on the disk, in MB, merged into one segment; and what is to be said of all rows."""

    ours_mb: float
    peer_mb: float | None
    mean: float | None
    remarks: Sequence[str]
    passes: bool = field(default=True, init=False)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def cells(self) -> Mapping[str, str]:
        mean = "-" if self.mean is None else f"{self.mean:.2f}"
        return {heading: "" for heading in _HEADINGS} | {"work": "geometric mean", "times": mean}

    def notes(self) -> Sequence[str]:
        peer = "" if self.peer_mb is None else f", Elasticsearch {self.peer_mb:,.1f} MB"
        return (f"Index on disk, one segment: ours {self.ours_mb:,.1f} MB{peer}.", *self.remarks)


@dataclass(frozen=True, slots=True)
class _Server:
    """What is measured: where it listens, and the processor seconds that it has used."""

    port: int
    used: Callable[[], Mapping[int, float]]
    warming_s: float

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send one request, and read its answer. Raises BenchmarkError unless it succeeds."""
        answer = httpx.request(
            method, f"http://127.0.0.1:{self.port}{path}", json=body, timeout=TIMEOUT_S, trust_env=False
        )
        if not answer.is_success:
            raise BenchmarkError(f"{method} {path} answers {answer.status_code}: {answer.text[:300]}")
        return answer.json()

    def processor_s(self, before: Mapping[int, float]) -> float:
        """What it has used since."""
        return spent(before, self.used())


def run(rounds: int, scale: float, docs: int, only: str, peer: str) -> Sequence[Line]:
    """Rates, latencies, processor times, recall and bytes. scale shortens the documents and each measurement;
    only: the searches whose name has this in it.
    """
    packages = Packages(max(BATCH, int(docs * scale)))
    absent = "it was not asked for" if peer == "no" else missing()
    with work_dir() as directory, ExitStack() as stack:
        servers = [_ours(stack, directory)]
        if absent is None:
            servers.append(_elasticsearch(stack, directory))
        rows = list(_written(servers, packages))
        sizes = [_merge(server, scale) for server in servers]
        names = [name for name in (*SEARCHES, PUT) if only in name]
        remarks = [_difference(servers, packages, name) for name in names if name != PUT]
        rows += _measured(servers, packages, names, rounds, scale)
    remarks.append(
        f"Elasticsearch was not measured: {absent}."
        if absent
        else f"Elasticsearch {VERSION} on Java, without SIMD of vectors, X-Pack and its own module of HTTP."
    )
    ratios = [row.ratio for row in rows if row.ratio is not None]
    mean = geometric_mean(ratios) if ratios else None
    peer_mb = sizes[1] if len(sizes) > 1 else None
    return [*rows, Whole(sizes[0], peer_mb, mean, [remark for remark in remarks if remark])]


def _ours(stack: ExitStack, directory: Path) -> _Server:
    service = stack.enter_context(running_service(directory, searches=True))
    return _Server(service.search_port, lambda: processor_seconds(service.data_dir), WARMING_S)


def _elasticsearch(stack: ExitStack, directory: Path) -> _Server:
    running = stack.enter_context(running_elasticsearch(directory))
    process = psutil.Process(running.pid)

    def used() -> Mapping[int, float]:
        times = process.cpu_times()
        return {running.pid: times.user + times.system}

    return _Server(running.port, used, WARMING_JAVA_S)


def _written(servers: Sequence[_Server], packages: Packages) -> Iterator[PeerRow]:
    """All documents at each number of connections; the last index stays."""
    bodies = list(packages.bulk_bodies(BATCH))
    for server in servers:
        _write(server, "warming", bodies[:WARMING_BATCHES], 2)
        server.ask("DELETE", "/warming")
    for connections in CONNECTIONS:
        samples = [_write(server, INDEX, bodies, connections) for server in servers]
        yield _row(f"bulk of {BATCH}, documents", connections, [[sample] for sample in samples], ASKED_BULK)
        if connections != CONNECTIONS[-1]:
            for server in servers:
                server.ask("DELETE", f"/{INDEX}")


def _write(server: _Server, index: str, bodies: Sequence[bytes], connections: int) -> Sample:
    """Until all can be found."""
    _create(server, index)
    latencies: list[float] = []
    left = iter(bodies)  # the connections take the next one each; empty once the benchmark is ended
    before, began = server.used(), perf_counter()
    with ThreadPoolExecutor(connections) as pool:
        lock = Lock()
        sent = [pool.submit(_send, server, index, left, lock) for _ in range(connections)]
        try:
            for one in sent:
                latencies.extend(one.result())
        except BaseException:
            with lock:
                deque(left, maxlen=0)
            raise
    server.ask("POST", f"/{index}/_refresh")
    seconds, used = perf_counter() - began, server.processor_s(before)
    documents = server.ask("GET", f"/{index}/_count")["count"]
    if documents != sum(body.count(b'{"index"') for body in bodies):
        raise BenchmarkError(f"only {documents} documents are found")
    latencies.sort()
    p99 = latencies[int(0.99 * len(latencies))]
    return Sample(documents / seconds, 1e3 * median(latencies), 1e3 * p99, 1e3 * used / documents)


def _create(server: _Server, index: str) -> None:
    settings = {"number_of_shards": 1, "number_of_replicas": 0}
    server.ask("PUT", f"/{index}", {"settings": settings, "mappings": MAPPING})


def _send(server: _Server, index: str, left: Iterator[bytes], lock: Lock) -> list[float]:
    """Seconds of each."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT_S)
    taken = []
    try:
        while True:
            with lock:
                body = next(left, None)
            if body is None:
                break
            began = perf_counter()
            connection.request("POST", f"/{index}/_bulk", body, {"Content-Type": "application/x-ndjson"})
            answer = connection.getresponse()
            text = answer.read()
            taken.append(perf_counter() - began)
            if answer.status != 200 or orjson.loads(text)["errors"]:
                raise BenchmarkError(f"_bulk answered {answer.status}: {text[:300]!r}")
    finally:
        connection.close()
    return taken


def _merge(server: _Server, scale: float) -> float:
    """The MB of the index, in one segment. What is merged has its graph of vectors.

    The files that were merged are deleted some time later, and count until then: the least counts.
    """
    server.ask("POST", f"/{INDEX}/_forcemerge?max_num_segments=1")
    server.ask("POST", f"/{INDEX}/_refresh")
    least, since = inf, perf_counter()
    while least == inf or perf_counter() - since < DELETED_S * scale:
        stats = server.ask("GET", f"/{INDEX}/_stats/store")
        size = float(stats["_all"]["total"]["store"]["size_in_bytes"]) / 1e6
        if size < least:
            least, since = size, perf_counter()
        sleep(0.25)
    return least


def _difference(servers: Sequence[_Server], packages: Packages, name: str) -> str:
    """What is to be said of a search that both answer in other ways."""
    chance = random.Random(name)
    for _ in range(COMPARED):
        search = SEARCHES[name](packages, chance)
        answers = [server.ask("POST", f"/{INDEX}/_search", search) for server in servers]
        totals = [answer["hits"]["total"] for answer in answers]
        buckets = [
            {bucket["key"]: bucket["doc_count"] for bucket in found["buckets"]}
            for answer in answers
            for found in answer.get("aggregations", {}).values()
        ]
        if name not in VECTOR_SEARCHES and (totals[0] != totals[-1] or buckets[:1] != buckets[-1:]):
            return f"{name}: the answers differ, {totals}."
    return ""


def _measured(
    servers: Sequence[_Server], packages: Packages, names: Sequence[str], rounds: int, scale: float
) -> list[PeerRow]:
    numbers = count()
    for server in servers:
        _create(server, PUTS)
        for name in names:
            seconds = max(0.2, server.warming_s * scale)
            many = min(int(A_SECOND * seconds), WARMING_MAX)
            _sample(server, _requests(packages, name, next(numbers), many), CONNECTIONS[-1], seconds)
    taken: dict[tuple[str, int], list[list[Sample]]] = {}
    seconds = max(0.2, SECONDS * scale)
    for _ in range(rounds):
        for name in names:
            for connections in CONNECTIONS:
                requests = _requests(packages, name, next(numbers), int(A_SECOND * seconds))
                samples = [_sample(server, requests, connections, seconds) for server in servers]
                taken.setdefault((name, connections), []).append(samples)
    recalls = {name: _recall(servers, packages, name) for name in names if name in VECTOR_SEARCHES}
    return [
        _row(
            name,
            connections,
            list(zip(*taken[name, connections], strict=True)),
            ASKED,
            recalls.get(name, ()),
        )
        for name in names
        for connections in CONNECTIONS
    ]


def _requests(packages: Packages, name: str, seed: int, many: int) -> list[Request]:
    """All different, and others for each seed."""
    if name == PUT:
        return [
            Request(f"/{PUTS}/_doc/{seed}-{number}", _JSON, _JSON, packages.document(number).decode())
            for number in range(min(many, packages.count))
        ]
    chance = random.Random(seed)
    bodies = (orjson.dumps(SEARCHES[name](packages, chance)).decode() for _ in range(many))
    return [Request(f"/{INDEX}/_search", _JSON, _JSON, body) for body in bodies]


def _sample(server: _Server, requests: Sequence[Request], connections: int, seconds: float) -> Sample:
    before = server.used()
    load = generate("127.0.0.1", server.port, requests, connections=connections, seconds=seconds)
    used = server.processor_s(before)
    return Sample(
        load.requests_per_second, 1e3 * load.latency_s, 1e3 * load.latency_p99_s, 1e3 * used / load.requests
    )


def _recall(servers: Sequence[_Server], packages: Packages, name: str) -> tuple[float, ...]:
    """The part of the ten nearest that is found, of each."""
    chance = random.Random(name)
    hits, wanted = [0] * len(servers), 0
    for _ in range(RECALLED):
        search = SEARCHES[name](packages, chance)
        nearest = packages.nearest(search)
        wanted += len(nearest)
        for place, server in enumerate(servers):
            found = server.ask("POST", f"/{INDEX}/_search", search)["hits"]["hits"]
            hits[place] += len(nearest & {hit["_id"] for hit in found})
    return tuple(hit / wanted for hit in hits)


def _row(
    work: str,
    connections: int,
    taken: Sequence[Sequence[Sample]],
    asked: float,
    recall: tuple[float, ...] = (),
) -> PeerRow:
    """taken: of each server, its samples."""
    middles = [
        Sample(*(median(getattr(sample, name) for sample in samples) for name in Sample.__slots__))
        for samples in taken
    ]
    return PeerRow(work, connections, middles[0], middles[1] if len(middles) > 1 else None, asked, recall)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
