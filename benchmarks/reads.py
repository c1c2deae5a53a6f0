"""Short queries whose texts never repeat, and a long answer; and Fuseki, where it is."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from statistics import median
from typing import Literal
from urllib.parse import urlsplit

import httpx
import psutil  # type: ignore[import-untyped]

from benchmarks import fuseki
from benchmarks.generator import Load, Request, generate
from benchmarks.report import Figure
from benchmarks.service import flight_triples, running_service, work_dir

__all__ = ["Measured", "ReadFigure", "Target", "processor_ms", "run"]

TRIPLES = 648_564  # the flight data
SECONDS = 3.0
ROWS = 100_000
_ROUTES = 67_663
_TEXTS = {
    "point query": "SELECT ?p ?o WHERE { <http://openflights.example/route/%d> ?p ?o }",
    "three joins": """PREFIX ont: <http://openflights.example/ont#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
SELECT ?name ?city ?country WHERE {
  <http://openflights.example/route/%d> ont:from ?airport .
  ?airport rdfs:label ?name ; ont:city ?city ; ont:country ?where .
  ?where rdfs:label ?country
}""",
}
# each work, its connections, and the requests a second that it shall have at least
_ASKED = (
    ("point query", 1, 1_500),
    ("point query", 8, 4_000),
    ("three joins", 1, 800),
    ("three joins", 8, 2_000),
)
_ROWS_ASKED_S = 0.2
_JSON, _TSV = "application/sparql-results+json", "text/tab-separated-values"


@dataclass(frozen=True, slots=True)
class ReadFigure(Figure):
    """The processor times are a request's, of the service's processes together and of the load generator
    beside.
    """

    service_ms: float
    generator_ms: float

    def further_cells(self) -> Mapping[str, str]:
        return {"service, ms of CPU": f"{self.service_ms:.3f}", "generator": f"{self.generator_ms:.3f}"}


@dataclass(frozen=True, slots=True)
class Target:
    """What is asked: its query endpoint, and the process whose children it is made of too."""

    url: str
    process: psutil.Process

    def load(
        self, requests: Sequence[Request], connections: int, seconds: float, first: int = 0
    ) -> "Measured":
        """Send requests in turn, the first with this number; each its own. Their paths are the endpoint's."""
        address = urlsplit(self.url)
        assert address.hostname is not None
        assert address.port is not None
        before = _processor_s(self.process)
        load = generate(
            address.hostname,
            address.port,
            [replace(request, path=address.path) for request in requests],
            connections=connections,
            seconds=seconds,
            first_number=first,
        )
        return Measured(load, _processor_s(self.process) - before)


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of a load, and the processor time of the service meanwhile."""

    load: Load
    service_s: float


def run(rounds: int, scale: float, peer: str) -> list[ReadFigure]:
    """Medians over the rounds. scale shortens data, rows and each measurement; peer "yes": Fuseki beside,
    where there is Java. Ours and Fuseki run one after the other, so that each has the machine to itself.
    """
    rows = max(100, int(ROWS * scale))
    with work_dir() as directory:
        triples = flight_triples(directory, max(1_000, int(TRIPLES * scale)))
        with _service(directory, triples) as ours:
            found = _measure(ours, rounds, scale, rows)
        beside: dict[str, list[Measured]] = {}
        if peer == "yes" and fuseki.is_installed():
            with _fuseki(directory, triples) as other:
                beside = _measure(other, rounds, scale, rows)
    return [
        *(
            _figure(_name(work, connections), "requests/s", asked, found, beside)
            for work, connections, asked in _ASKED
        ),
        _figure(_TSV, "s", _ROWS_ASKED_S, found, beside, f"{rows:,} rows as TSV"),
    ]


def _name(work: str, connections: int) -> str:
    return f"{work}, {connections} connection{'s' if connections > 1 else ''}"


def _figure(
    key: str,
    unit: str,
    asked: float,
    found: Mapping[str, Sequence[Measured]],
    beside: Mapping[str, Sequence[Measured]],
    work: str | None = None,
) -> ReadFigure:
    is_rate = unit != "s"

    def value(measured: Sequence[Measured]) -> float:
        return median(each.load.requests_per_second if is_rate else each.load.latency_s for each in measured)

    ours = found[key]
    peer = value(beside[key]) if key in beside else None
    bound: Literal["at least", "at most"] = "at least" if is_rate else "at most"
    return ReadFigure(work or key, unit, value(ours), bound, asked, peer, *processor_ms(ours))


def processor_ms(measured: Sequence[Measured]) -> tuple[float, float]:
    """Of a request: the service's, and the load generator's."""
    return (
        median(1e3 * each.service_s / each.load.requests for each in measured),
        median(1e3 * each.load.processor_s / each.load.requests for each in measured),
    )


def _measure(target: Target, rounds: int, scale: float, rows: int) -> dict[str, list[Measured]]:
    """By the name of each work. The first round only warms."""
    found: dict[str, list[Measured]] = {}
    seconds = max(0.3, SECONDS * scale)
    numbers = count(0, _ROUTES // 16)  # far enough apart that what is kept of texts is gone
    for number in range(rounds + 1):
        for work, connections, _ in _ASKED:
            request = Request("", "application/sparql-query", _JSON, _TEXTS[work])
            taken = target.load([request], connections, seconds, next(numbers) % _ROUTES)
            found.setdefault(_name(work, connections), []).extend([taken] if number else [])
        query = f"SELECT ?s ?p ?o WHERE {{ ?s ?p ?o }} LIMIT {rows + number}"
        taken = target.load([Request("", "application/sparql-query", _TSV, query)], 1, seconds)
        found.setdefault(_TSV, []).extend([taken] if number else [])
    return found


@contextmanager
def _service(directory: Path, triples: Path) -> Iterator[Target]:
    with ExitStack() as stack:
        service = stack.enter_context(running_service(directory, load=triples))
        yield Target(f"{service.url}/sparql", psutil.Process())


@contextmanager
def _fuseki(directory: Path, triples: Path) -> Iterator[Target]:
    with fuseki.running_fuseki(directory) as running:
        with triples.open("rb") as content:
            headers = {"Content-Type": "application/n-triples"}
            httpx.post(
                f"{running.url}/data?default", content=content, headers=headers, timeout=600, trust_env=False
            ).raise_for_status()
        yield Target(f"{running.url}/query", psutil.Process(running.pid))


def _processor_s(process: psutil.Process) -> float:
    """Of all processes below ours but the ones that have ended; of another one, its own."""
    members = process.children(recursive=True) if process.pid == psutil.Process().pid else [process]
    total = 0.0
    for each in members:
        try:
            times = each.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system
    return total
