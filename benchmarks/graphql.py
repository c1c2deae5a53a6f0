"""A GraphQL query of three levels over HTTP, against the SPARQL query that it becomes, asked by itself."""

import json
from pathlib import Path

import httpx
from pyoxigraph import RdfFormat, parse

from benchmarks.generator import Request, generate
from benchmarks.report import Row, interleave
from benchmarks.service import BenchmarkError, RunningService, flight_triples, running_service, work_dir
from graphdb.graphql.failures import Limits
from graphdb.graphql.modelling import combined, model_of
from graphdb.graphql.planning import plan, read_operation
from graphdb.graphql.schema import schema_of
from graphdb.graphql.schema_sources import read_ontology, read_shapes
from graphdb.shacl.shapes_graph import ShapesGraph

__all__ = ["run"]

TRIPLES = 600_000
SECONDS = 3.0
ONTOLOGY = Path(__file__).parent / "shapes" / "flights.ttl"
PARENTS = 100
QUERY = """query ($first: Int) {
  airports(first: $first, orderBy: {field: "iata"}, filter: {departures: {stops: {eq: 0}}}) {
    edges { node { iata name city departures { stops to { iata name } airline { name iata } } } }
  }
}"""
ROWS = "text/tab-separated-values"


def run(rounds: int, scale: float) -> list[Row]:
    """Milliseconds of one client's requests, medians. scale shortens the time; the data are always whole."""
    with work_dir() as directory:
        data = flight_triples(directory, TRIPLES)
        no_cache = {"GRAPHDB_READERS__RESULT_CACHE_MB": "0"}
        with running_service(directory, load=data, environment=no_cache) as service:
            _put_ontology(service)
            sparql = Request("/sparql", "application/sparql-query", ROWS, _sparql())
            body = json.dumps({"query": QUERY, "variables": {"first": PARENTS}})
            graphql = Request("/graphql", "application/json", "application/json", body)
            _check(service, graphql)
            seconds = max(0.5, SECONDS * scale)
            floor, ours = interleave(
                rounds,
                lambda: _latency_ms(service, sparql, seconds),
                lambda: _latency_ms(service, graphql, seconds),
            )
    work = f"three levels over {PARENTS} airports, against their SPARQL"
    return [Row(work, "ms", floor, ours, "at most", 2)]


def _latency_ms(service: RunningService, request: Request, seconds: float) -> float:
    return generate(service.host, service.port, [request], connections=1, seconds=seconds).latency_s * 1000


def _put_ontology(service: RunningService) -> None:
    answer = httpx.post(
        f"{service.url}/data",
        params={"graph": "http://openflights.example/ontology"},
        content=ONTOLOGY.read_bytes(),
        headers={"Content-Type": "text/turtle"},
        trust_env=False,
        timeout=60,
    )
    if not answer.is_success:
        raise BenchmarkError(f"the ontology was not taken: {answer.text[:500]}")


def _sparql() -> str:
    """The query that the service makes of QUERY."""
    graph = ShapesGraph(quad.triple for quad in parse(ONTOLOGY.read_bytes(), format=RdfFormat.TURTLE))
    schema = schema_of(model_of(combined(read_ontology(graph), read_shapes(graph))))
    query = plan(read_operation(schema, QUERY, {"first": PARENTS}, None, Limits())).query
    assert query is not None
    return query


def _check(service: RunningService, request: Request) -> None:
    headers = {"Content-Type": request.content_type, "Accept": request.accept}
    answer = httpx.post(
        service.url + request.path, content=request.body, headers=headers, trust_env=False, timeout=60
    )
    found = answer.json()
    if "errors" in found:
        raise BenchmarkError(f"the query failed: {answer.text[:500]}")
    if not found["data"]["airports"]["edges"]:
        raise BenchmarkError("no airport was found that is flown from")
