"""`/.well-known/void`: what the data are about, in the Vocabulary of Interlinked Datasets.

Counts are those of one state. They are kept while nothing changes, and counted again at most once in a while,
so a request never waits for a count that was just made. Without named graphs, predicates are counted from the
statistics of the column view, which follow the log.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, Quad
from starlette.requests import Request
from starlette.responses import Response

from graphdb.errors import EvaluationFailed, LimitExceeded, UnavailableError
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.prefixes import WELL_KNOWN
from graphdb.rdf.writing import write_quads
from serve.access.request_scope import visibility_of
from serve.backend import Progress
from serve.graph.graphql.graphql_endpoint import RowReader
from serve.graph.query_parameters import read_query_parameters
from serve.negotiation import MediaType, Offer, choose
from serve.parameters import request_iri

__all__ = ["VoidEndpoint"]

VOID, SD = WELL_KNOWN["void"], "http://www.w3.org/ns/sparql-service-description#"
_TYPE = NamedNode(WELL_KNOWN["rdf"] + "type")
_PREFIXES = {"void": VOID, "sd": SD}
_OFFERS = tuple(
    Offer(MediaType(syntax.media_type), syntax)
    for syntax in (RdfSyntax.TURTLE, RdfSyntax.N_TRIPLES, RdfSyntax.RDF_XML, RdfSyntax.JSON_LD)
)
_RECOUNT_S = 30.0  # a count is as good for so long, and for so many times the time that it took
_RECOUNT_TIMES = 20
_KEPT = 32  # counts, one for each visibility
_ROWS_MAX = 10_000

_GRAPHS = f"SELECT ?g (COUNT(*) AS ?n) {{ GRAPH ?g {{ ?s ?p ?o }} }} GROUP BY ?g LIMIT {_ROWS_MAX}"
_PREDICATES, _CLASSES, _PAIRS = ("?p", "?s ?p ?o"), ("?c", "?s a ?c"), ("?c ?p", "?s a ?c ; ?p ?o")


def _counting(keys: str, pattern: str, *, has_graphs: bool) -> str:
    """Counts by keys. Without named graphs the default graph is asked alone, as the statistics can be."""
    anywhere = f"{{ {pattern} }} UNION {{ GRAPH ?g {{ {pattern} }} }}" if has_graphs else pattern
    return (
        f"SELECT {keys} (COUNT(*) AS ?n) {{ {anywhere} }} GROUP BY {keys} ORDER BY DESC(?n) LIMIT {_ROWS_MAX}"
    )


Row: TypeAlias = tuple[str, ...]  # terms in N-Triples; a count is decimal


@dataclass(frozen=True, slots=True)
class _Counts:
    """The counts at a log index; pairs is None if they take too long to count."""

    index: int
    counted_at: float  # of the monotonic clock
    took_s: float
    predicates: list[Row]
    classes: list[Row]
    pairs: list[Row] | None
    graphs: list[Row]

    def is_fresh(self, index: int) -> bool:
        """Whether they still serve at a later index."""
        age_s = time.monotonic() - self.counted_at
        return index == self.index or age_s < max(_RECOUNT_S, _RECOUNT_TIMES * self.took_s)


class VoidEndpoint:
    """GET and HEAD of /.well-known/void. Owned by the application, on its event loop."""

    def __init__(self, progress: Progress, rows: RowReader) -> None:
        self._progress, self._rows = progress, rows
        self._kept: dict[object, _Counts] = {}  # by visibility, the last used one last
        self._counting = asyncio.Lock()

    async def get(self, request: Request) -> Response:
        """The description of what the principal sees. X-Snapshot-Index says of which state."""
        accept = ", ".join(request.headers.getlist("accept"))
        syntax = choose(accept, _OFFERS).value
        counts = await self._counts(request)
        prefixes = {} if syntax is RdfSyntax.N_TRIPLES else _PREFIXES
        quads = _description(request_iri(request), counts)
        body = await asyncio.to_thread(lambda: b"".join(write_quads(quads, syntax, prefixes=prefixes)))
        headers = {
            "Content-Type": syntax.media_type,
            "Vary": "Accept",
            "Cache-Control": "no-cache",
            "X-Snapshot-Index": str(counts.index),
        }
        return Response(body, headers=headers)

    async def _counts(self, request: Request) -> _Counts:
        key = visibility_of(request.scope)
        if "no-cache" in request.headers.get("cache-control", ""):
            self._kept.pop(key, None)
        known = self._kept.get(key)
        if known is not None and (known.is_fresh(self._progress.snapshot_index()) or self._counting.locked()):
            return known
        async with self._counting:
            known = self._kept.pop(key, None)
            if known is None or not known.is_fresh(self._progress.snapshot_index()):
                known = await self._count(request)
            self._kept[key] = known
            while len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
            return known

    async def _count(self, request: Request) -> _Counts:
        began = time.monotonic()
        graphs, index = await self._ask(request, _GRAPHS)
        has_graphs = bool(graphs)
        predicates, _ = await self._ask(request, _counting(*_PREDICATES, has_graphs=has_graphs))
        classes, _ = await self._ask(request, _counting(*_CLASSES, has_graphs=has_graphs))
        pairs: list[Row] | None
        try:
            pairs, _ = await self._ask(request, _counting(*_PAIRS, has_graphs=has_graphs))
        except (LimitExceeded, EvaluationFailed, UnavailableError):
            pairs = None
        ended = time.monotonic()
        return _Counts(index, ended, ended - began, predicates, classes, pairs, graphs)

    async def _ask(self, request: Request, query: str) -> tuple[list[Row], int]:
        text, index = await self._rows.rows(request, read_query_parameters(b"format=tsv"), query)
        return [tuple(line.split("\t")) for line in text.decode().splitlines()[1:]], index


def _description(address: str, counts: _Counts) -> list[Quad]:
    """The triples of the document at this address."""
    dataset = NamedNode(f"{address}#dataset")
    service = NamedNode(f"{address.removesuffix('/.well-known/void')}/sparql")
    by_class: dict[str, list[Row]] = {}
    for row in counts.pairs or ():
        by_class.setdefault(row[0], []).append(row[1:])
    found = [
        Quad(dataset, _TYPE, _void("Dataset")),
        Quad(dataset, _void("sparqlEndpoint"), service),
        Quad(dataset, _void("triples"), Literal(sum(int(row[-1]) for row in counts.predicates))),
        Quad(dataset, _void("properties"), Literal(len(counts.predicates))),
        Quad(dataset, _void("classes"), Literal(len(counts.classes))),
    ]
    for predicate, count in counts.predicates:
        found += _partition(dataset, "property", predicate, "triples", count)
    for kind, count in counts.classes:
        if not kind.startswith("<"):
            continue
        part = _partition(dataset, "class", kind, "entities", count)
        found += part
        for predicate, of_class in by_class.get(kind, ()):
            found += _partition(_object(part[0]), "property", predicate, "triples", of_class)
    for graph, count in counts.graphs:
        if graph.startswith("<"):
            subset = BlankNode()
            found += [
                Quad(dataset, _void("subset"), subset),
                Quad(subset, _TYPE, _void("Dataset")),
                Quad(subset, NamedNode(SD + "name"), NamedNode(graph[1:-1])),
                Quad(subset, _void("triples"), Literal(int(count))),
            ]
    return found


def _partition(whole: NamedNode | BlankNode, kind: str, term: str, unit: str, count: str) -> list[Quad]:
    part = BlankNode()
    return [
        Quad(whole, _void(f"{kind}Partition"), part),
        Quad(part, _void(kind), NamedNode(term[1:-1])),
        Quad(part, _void(unit), Literal(int(count))),
    ]


def _object(quad: Quad) -> BlankNode:
    assert isinstance(quad.object, BlankNode)
    return quad.object


def _void(name: str) -> NamedNode:
    return NamedNode(VOID + name)
