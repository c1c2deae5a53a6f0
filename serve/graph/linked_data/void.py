"""`/.well-known/void`: what the data are about, in the Vocabulary of Interlinked Datasets.

Counts are those of one state. They are counted once for each visibility, and then follow the changes. After a
change that is too large to be followed they are counted again, at most once in a while. Without named graphs,
predicates are counted from the statistics of the column view, which follow the log.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, Quad
from starlette.requests import Request
from starlette.responses import Response

from graphdb.access.visibility import Visibility
from graphdb.errors import (
    ChangesForgotten,
    EvaluationFailed,
    GraphDBError,
    LimitExceeded,
    UnavailableError,
)
from graphdb.model import ChangeSet, GraphName
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.prefixes import WELL_KNOWN
from graphdb.rdf.writing import write_quads
from graphdb.store.dataset_counts import QUADS_MAX, DatasetCounts
from graphdb.store.view import Subject
from serve.access.request_scope import visibility_of
from serve.answers import AnswerBroken
from serve.backend import Changes, ChangeStream, GraphReads, Progress, Queries
from serve.graph.graphql.graphql_endpoint import RowReader
from serve.graph.query_parameters import read_query_parameters, refuse_as_of
from serve.negotiation import MediaType, Offer, choose
from serve.parameters import Parameters, request_iri

__all__ = ["VoidEndpoint"]

VOID, SD = WELL_KNOWN["void"], "http://www.w3.org/ns/sparql-service-description#"
_TYPE = NamedNode(WELL_KNOWN["rdf"] + "type")
_PREFIXES = {"void": VOID, "sd": SD}
_OFFERS = tuple(
    Offer(MediaType(syntax.media_type), syntax)
    for syntax in (RdfSyntax.TURTLE, RdfSyntax.N_TRIPLES, RdfSyntax.RDF_XML, RdfSyntax.JSON_LD)
)
_PATH = "/.well-known/void"
_RECOUNT_S = 30.0  # a count is as good for so long, and for so many times the time that it took
_RECOUNT_TIMES = 20
_FOLLOW_S = 2.0  # for the changes of a state that is there
_ATTEMPTS = 5  # to meet a state that stays for as long as it is read
_SOON_S, _SLOW_S = 2.0, 600.0  # a service description waits so long, and then does not wait for so long
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
    """The counts at a log index. All was counted at a time of the monotonic clock; changes followed.

    is_whole: nothing was left out, so that changes can be followed.
    """

    index: int
    counted_at: float
    took_s: float
    counts: DatasetCounts
    is_whole: bool

    def is_fresh(self, index: int) -> bool:
        """Whether they still serve at a later index."""
        age_s = time.monotonic() - self.counted_at
        return index == self.index or age_s < max(_RECOUNT_S, _RECOUNT_TIMES * self.took_s)


class VoidEndpoint:
    """GET and HEAD of /.well-known/void. Owned by the application, on its event loop."""

    def __init__(
        self,
        queries: Queries,
        changes: Changes,
        progress: Progress,
        rows: RowReader,
        *,
        union_default_graph: bool,
    ) -> None:
        """union_default_graph: what queries count is not what changes say."""
        self._queries, self._changes, self._progress, self._rows = queries, changes, progress, rows
        self._unites = union_default_graph
        self._kept: dict[Visibility, _Counts] = {}  # by visibility, the last used one last
        self._counting = asyncio.Lock()
        self._slow_until = 0.0  # of the monotonic clock

    async def get(self, request: Request) -> Response:
        """The description of what the principal sees. X-Snapshot-Index says of which state."""
        refuse_as_of(Parameters(request.scope["query_string"]), "the counts are of the present state")
        accept = ", ".join(request.headers.getlist("accept"))
        syntax = choose(accept, _OFFERS).value
        counts = await self._counts(request)
        prefixes = {} if syntax is RdfSyntax.N_TRIPLES else _PREFIXES
        quads = _description(request_iri(request), counts.counts)
        body = await asyncio.to_thread(lambda: b"".join(write_quads(quads, syntax, prefixes=prefixes)))
        headers = {
            "Content-Type": syntax.media_type,
            "Vary": "Accept",
            "Cache-Control": "no-cache",
            "X-Snapshot-Index": str(counts.index),
        }
        return Response(body, headers=headers)

    async def within_service_description(self, request: Request) -> list[Quad]:
        """The same, for clients that ask the endpoint of queries; nothing where it cannot be counted soon.
        Many ask before each query: what took too long is not begun again for a while.
        """
        origin = request_iri(request).removesuffix(request.scope["path"])
        if visibility_of(request.scope) not in self._kept and time.monotonic() < self._slow_until:
            return []
        try:
            async with asyncio.timeout(_SOON_S):
                counts = await self._counts(request)
        except TimeoutError:
            self._slow_until = time.monotonic() + _SLOW_S
            return []
        except (GraphDBError, AnswerBroken):
            return []
        return _description(f"{origin}{_PATH}", counts.counts)

    async def _counts(self, request: Request) -> _Counts:
        key = visibility_of(request.scope)
        if "no-cache" in request.headers.get("cache-control", ""):
            self._kept.pop(key, None)
        known = self._kept.get(key)
        if known is not None and (known.index == self._progress.snapshot_index() or self._counting.locked()):
            return known
        async with self._counting:
            known = self._kept.get(key)
            followed = None if known is None else await self._followed(key, known)
            if followed is not None:
                known = followed
            elif known is None or not known.is_fresh(self._progress.snapshot_index()):
                known = await self._count(request)
            self._kept.pop(key, None)
            self._kept[key] = known
            while len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
            return known

    async def _followed(self, visibility: Visibility, known: _Counts) -> _Counts | None:
        """The counts after what has changed since; None where that cannot be followed. To follow what a
        restricted principal sees, a view would have to be kept for it.
        """
        if self._unites or not (known.is_whole and visibility.is_whole):
            return None
        try:
            stream = await self._changes.live(visibility).follow_changes(known.index, _FOLLOW_S)
        except (ChangesForgotten, UnavailableError):
            return None
        try:
            return await self._following(visibility, known, stream)
        except (ChangesForgotten, LimitExceeded, UnavailableError):
            return None
        finally:
            stream.close()

    async def _following(
        self, visibility: Visibility, known: _Counts, stream: ChangeStream
    ) -> _Counts | None:
        changes: list[ChangeSet] = []
        for _ in range(_ATTEMPTS):
            while (through := stream.through) < self._progress.snapshot_index():
                found = await stream.read(_FOLLOW_S)
                if not found and stream.through == through:
                    return None
                changes += [logged.change for logged in found or ()]
                if sum(change.affected_triples for change in changes) > QUADS_MAX:
                    return None
            reads = await self._queries.reads(visibility)
            index = reads.exact_index()
            if index != stream.through:
                continue

            def quads_of(subject: Subject, graph: GraphName, reads: GraphReads = reads) -> Iterator[Quad]:
                return reads.quads_matching(subject, None, None, graph)

            counts = await asyncio.to_thread(known.counts.after, changes, quads_of)
            if reads.exact_index() == index:  # nothing came between two of its look-ups
                return replace(known, index=index, counts=counts)
        return None

    async def _count(self, request: Request) -> _Counts:
        began = time.monotonic()
        graphs, index = await self._ask(request, _GRAPHS)
        has_graphs = bool(graphs)
        predicates, first = await self._ask(request, _counting(*_PREDICATES, has_graphs=has_graphs))
        classes, second = await self._ask(request, _counting(*_CLASSES, has_graphs=has_graphs))
        pairs: list[Row] | None
        third = index
        try:
            pairs, third = await self._ask(request, _counting(*_PAIRS, has_graphs=has_graphs))
        except (LimitExceeded, EvaluationFailed, UnavailableError):
            pairs = None
        ended = time.monotonic()
        counts = DatasetCounts(
            _by_term(predicates),
            _by_term(row for row in classes if _is_class(row[0])),
            None if pairs is None else _by_class(pairs),
            _by_term(graphs),
        )
        rows_max = max(map(len, (predicates, classes, pairs or (), graphs)))
        is_whole = index == first == second == third and rows_max < _ROWS_MAX
        return _Counts(index, ended, ended - began, counts, is_whole)

    async def _ask(self, request: Request, query: str) -> tuple[list[Row], int]:
        text, index = await self._rows.rows(request, read_query_parameters(b"format=tsv"), query)
        return [tuple(line.split("\t")) for line in text.decode().splitlines()[1:]], index


def _by_term(rows: Iterable[Row]) -> Counter[str]:
    return Counter({term: int(count) for term, count in rows})


def _by_class(rows: Iterable[Row]) -> Counter[tuple[str, str]]:
    return Counter({(kind, term): int(count) for kind, term, count in rows if _is_class(kind)})


def _is_class(term: str) -> bool:
    """Whether it is an IRI or a blank node."""
    return term.startswith(("<", "_")) and not term.startswith("<<")


def _description(address: str, counts: DatasetCounts) -> list[Quad]:
    """The triples of the document at this address."""
    dataset = NamedNode(f"{address}#dataset")
    service = NamedNode(f"{address.removesuffix(_PATH)}/sparql")
    by_class: dict[str, list[tuple[str, int]]] = {}
    for (kind, predicate), count in (counts.pairs or Counter()).most_common():
        by_class.setdefault(kind, []).append((predicate, count))
    found = [
        Quad(dataset, _TYPE, _void("Dataset")),
        Quad(dataset, _void("sparqlEndpoint"), service),
        Quad(dataset, _void("triples"), Literal(counts.predicates.total())),
        Quad(dataset, _void("properties"), Literal(len(counts.predicates))),
        Quad(dataset, _void("classes"), Literal(len(counts.classes))),
    ]
    for predicate, count in counts.predicates.most_common():
        found += _partition(dataset, "property", predicate, "triples", count)
    for kind, count in counts.classes.most_common():
        if not kind.startswith("<"):
            continue
        part = _partition(dataset, "class", kind, "entities", count)
        found += part
        for predicate, of_class in by_class.get(kind, ()):
            found += _partition(_object(part[0]), "property", predicate, "triples", of_class)
    for graph, count in counts.graphs.most_common():
        if graph.startswith("<"):
            subset = BlankNode()
            found += [
                Quad(dataset, _void("subset"), subset),
                Quad(subset, _TYPE, _void("Dataset")),
                Quad(subset, NamedNode(SD + "name"), NamedNode(graph[1:-1])),
                Quad(subset, _void("triples"), Literal(count)),
            ]
    return found


def _partition(whole: NamedNode | BlankNode, kind: str, term: str, unit: str, count: int) -> list[Quad]:
    part = BlankNode()
    return [
        Quad(whole, _void(f"{kind}Partition"), part),
        Quad(part, _void(kind), NamedNode(term[1:-1])),
        Quad(part, _void(unit), Literal(count)),
    ]


def _object(quad: Quad) -> BlankNode:
    assert isinstance(quad.object, BlankNode)
    return quad.object


def _void(name: str) -> NamedNode:
    return NamedNode(VOID + name)
