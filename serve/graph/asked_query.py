"""`AskedQuery`: a query with all that follows from its text and its request."""

import asyncio
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from graphdb.access.principal import EVERYONE
from graphdb.access.visibility import Visibility
from graphdb.bounded_cache import BoundedCache
from graphdb.geo.entailment import Entailment, asked_text
from graphdb.geo.function_calls import calls_functions, load
from graphdb.node import Consistency, QueryRequest
from graphdb.planning import gate
from graphdb.planning.decisions import is_cheap, is_repeatable
from graphdb.planning.gate import SHORT_TEXT_CHARACTERS, GateLimits, read_query
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.results import ResultFormat
from graphdb.sparql.syntax import Query
from graphdb.store.small_joins import SmallJoin, small_join
from serve.access.audit import note_of
from serve.access.request_scope import principal_of, visibility_of
from serve.backend import GraphReads
from serve.graph.caching import CacheKey
from serve.graph.query_accounts import Account
from serve.graph.query_parameters import QueryParameters, choose_format, consistency_of, read_query_parameters
from serve.parameters import request_iri

__all__ = ["AskedQuery", "QueryReader"]


@dataclass(slots=True)
class _Understood:
    """A query text and what follows from it alone; and in which state of the store its join was too large."""

    query: Query
    is_cheap: bool
    small_join: SmallJoin | None  # of one that is not cheap by its text, but may be by what the store holds
    is_repeatable: bool
    large_at: tuple[str | None, int] | None = None  # who sees it, and the log index

    def has_small_join(self, reads: GraphReads) -> bool:
        """Whether its join is small in what there is now. That it is not is found once for each state."""
        join = self.small_join
        if join is None:
            return False
        state = reads.view_key, reads.snapshot_index()
        if state == self.large_at:
            return False
        if reads.is_small_join(join):
            return True
        if join.looks_at_triples_only:
            self.large_at = state
        return False


@dataclass(slots=True)
class AskedQuery:
    """One request for the answer to a query. Times are of perf_counter()."""

    request: Request
    understood: _Understood
    base_iri: str
    dataset: Dataset
    format: ResultFormat
    timeout_s: float  # from the arrival of the request to the last byte of the answer
    min_index: int  # the answer has to be at this log index or later; 0: any
    consistency: Consistency
    explain: bool  # see `explanation`
    query_id: str | None
    account: Account

    @property
    def query(self) -> Query:
        return self.understood.query

    @property
    def visibility(self) -> Visibility:
        """What of the graph the answer may use."""
        return visibility_of(self.request.scope)

    @property
    def is_repeatable(self) -> bool:
        return self.understood.is_repeatable

    def is_cheap(self, reads: GraphReads) -> bool:
        """Whether its answer may be made on the event loop; what is read may tell."""
        if self.dataset or self.format is ResultFormat.CANONICAL_N_TRIPLES:
            return False
        return self.understood.is_cheap or self.understood.has_small_join(reads)

    def for_reader(self) -> QueryRequest:
        """The request to a reader, with what is left of the time limit."""
        principal = self.account.principal
        return QueryRequest(
            self.query, self.dataset, self.format, self.left_s, principal, self.explain, self.query_id
        )

    @property
    def left_s(self) -> float:
        """The rest of the time limit, in seconds."""
        return max(0.0, self.account.began + self.timeout_s - perf_counter())

    @property
    def wants_fresh(self) -> bool:
        """Whether the client bypasses the result cache (RFC 9111, 5.2.1.4 and 5.4)."""
        headers = self.request.headers
        return self.is_secret or "no-cache" in (*_directives(self.request), headers.get("pragma", "").lower())

    @property
    def is_secret(self) -> bool:
        """Whether the answer must not be cached (RFC 9111, 5.2.1.5)."""
        return "no-store" in _directives(self.request)

    def key(self, view_key: str | None) -> CacheKey:
        """The key of the answer in the result cache."""
        return CacheKey(self.query.text, self.base_iri, self.dataset, self.format, view_key)


class QueryReader:
    """Parses requests. Whatever follows from a text or a header alone is cached."""

    def __init__(self, limits: GateLimits, timeout_s: float) -> None:
        """timeout_s: the time limit, unless the client sets a lower one."""
        self._limits, self._timeout_s = limits, timeout_s
        # One at a time: more parsing threads would delay the event loop and not be faster.
        self._long_text, self._geometries = asyncio.Semaphore(), asyncio.Semaphore()
        self._short: BoundedCache[_Understood] = BoundedCache(entries_max=1024, chars_max=1_000_000)
        self._read_short = lru_cache(maxsize=1024)(read_query_parameters)

    def parameters(self, *encoded: bytes) -> QueryParameters:
        """The parameters of a query string, or of a query string and a form. Raises InvalidParameter."""
        if sum(map(len, encoded)) <= SHORT_TEXT_CHARACTERS:
            return self._read_short(*encoded)
        return read_query_parameters(*encoded)

    async def ask(self, request: Request, parameters: QueryParameters, text: str) -> AskedQuery:
        """The query in its request, whose arrival is now.

        Raises QuerySyntaxError, LimitExceeded, InvalidParameter, NotAcceptable.
        """
        began = perf_counter()
        base_iri = request_iri(request)
        entailment = parameters.entailment
        if len(text) <= SHORT_TEXT_CHARACTERS:
            understood = await self._understand_short(text, base_iri, entailment)
        else:
            async with self._long_text:
                worded = await run_in_threadpool(self._worded, text, base_iri, entailment)
                understood = await run_in_threadpool(self._understand, worded, base_iri)
        query = understood.query
        note = note_of(request.scope)
        note.syntax = query
        note.add_graphs(graph.value for graph in parameters.dataset.graphs)
        timeout_s = self._timeout_s
        if parameters.timeout_s is not None and parameters.timeout_s < timeout_s:
            timeout_s = parameters.timeout_s
        return AskedQuery(
            request,
            understood,
            base_iri,
            parameters.dataset,
            choose_format(request, parameters.formats, query.form),
            timeout_s,
            parameters.min_index,
            consistency_of(request, parameters.consistency),
            parameters.explain,
            parameters.query_id,
            Account(text, query.form, began, principal=_name_of(request)),
        )

    def _worded(self, text: str, base_iri: str, entailment: Entailment) -> str:
        """The text, or one that means the same without anything being said of entailment."""
        if entailment is Entailment.GEOSPARQL:
            return text
        query = read_query(text, base_iri, self._limits)
        gate.check(query, self._limits)
        return asked_text(query, entailment)

    async def _understand_short(self, text: str, base_iri: str, entailment: Entailment) -> _Understood:
        if entailment is Entailment.GEOSPARQL:
            understood = self._short.get(text, base_iri)
            if understood is not None:
                return understood
        if not calls_functions(read_query(text, base_iri, self._limits)):
            return self._understand_and_keep(text, base_iri, entailment)
        # Constant geometries are read for the gate, which takes a short text of curves a tenth of a second.
        async with self._geometries:
            await run_in_threadpool(load)
            return await run_in_threadpool(self._understand_and_keep, text, base_iri, entailment)

    def _understand_and_keep(self, text: str, base_iri: str, entailment: Entailment) -> _Understood:
        text = self._worded(text, base_iri, entailment)
        understood = self._short.get(text, base_iri)
        if understood is None:
            understood = self._understand(text, base_iri)
            self._short.put(text, base_iri, understood)
        return understood

    def _understand(self, text: str, base_iri: str) -> _Understood:
        query = read_query(text, base_iri, self._limits)
        gate.check(query, self._limits)  # here too: a 304 never comes to the backend
        if len(text) > SHORT_TEXT_CHARACTERS:
            return _Understood(query, False, None, is_repeatable(query))
        cheap = is_cheap(query)
        return _Understood(query, cheap, None if cheap else small_join(query), is_repeatable(query))


def _name_of(request: Request) -> str | None:
    """Who asks; None if authentication is off."""
    principal = principal_of(request.scope)
    return None if principal is EVERYONE else principal.name


def _directives(request: Request) -> list[str]:
    header = ",".join(request.headers.getlist("cache-control"))
    return [directive.strip().lower() for directive in header.split(",")]
