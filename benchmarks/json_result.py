"""100,000 rows as results JSON over HTTP, against serialising them in process."""

from time import perf_counter

from pyoxigraph import QueryResultsFormat, QuerySolutions, RdfFormat, Store

from benchmarks.generator import Request, generate
from benchmarks.report import Row, interleave
from benchmarks.service import flight_triples, running_service, work_dir

__all__ = ["run"]

ROWS = 100_000
TRIPLES = 648_564


def run(rounds: int, scale: float) -> list[Row]:
    """Rows per second. scale shortens data and result."""
    rows = max(100, int(ROWS * scale))
    query = f"SELECT ?s ?p ?o WHERE {{ ?s ?p ?o }} LIMIT {rows}"
    request = Request("/sparql", "application/sparql-query", "application/sparql-results+json", query)
    with work_dir() as directory:
        triples = flight_triples(directory, max(1000, int(TRIPLES * scale)))
        store = Store(directory / "floor")
        store.bulk_load(path=triples, format=RdfFormat.N_TRIPLES)
        with running_service(directory, load=triples) as service:

            def ours() -> float:
                # One request at a time, until the time is up; the median counts.
                load = generate(service.host, service.port, [request], connections=1, seconds=2 * scale)
                return rows / load.latency_s

            ours()  # warm
            floor_speed, our_speed = interleave(rounds, lambda: rows / _serialize(store, query), ours)
    return [Row(f"{rows:,} rows as JSON over HTTP", "rows/s", floor_speed, our_speed, "at least", 0.7)]


def _serialize(store: Store, query: str) -> float:
    """Seconds for the whole answer."""
    started = perf_counter()
    solutions = store.query(query)
    assert isinstance(solutions, QuerySolutions)
    solutions.serialize(format=QueryResultsFormat.JSON)
    return perf_counter() - started
