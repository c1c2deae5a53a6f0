"""`AskedQuery`: a query with all that follows from its text and its request."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import TypeAlias

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from graphdb.access.principal import EVERYONE
from graphdb.access.visibility import Visibility
from graphdb.bounded_cache import BoundedCache
from graphdb.config.limits import GateLimits
from graphdb.errors import InvalidParameter, QuerySyntaxError
from graphdb.geo.entailment import Entailment, asked_text
from graphdb.geo.function_calls import calls_functions, load
from graphdb.history.moments import Moment, moment_of_query
from graphdb.node import Consistency, Evaluated, OwnNames, QueryRequest
from graphdb.planning import gate
from graphdb.planning.gate import SHORT_TEXT_CHARACTERS, read_query
from graphdb.planning.text_shapes import NumberedText, numbered_text
from graphdb.sparql.dataset import Dataset
from graphdb.sparql.results import ResultFormat
from graphdb.sparql.syntax import Query
from graphdb.sparql.translation import columns_of, searches_of
from graphdb.store.join_walk import OverBudget
from graphdb.store.query_plans import PlansByShape, QueryPlan, plan_of
from graphdb.store.small_joins import SearchedStar, SmallJoin
from graphdb.store.word_searches import WORDS_MAX, star_of_any
from serve.access.audit import note_of
from serve.access.request_scope import principal_of, visibility_of
from serve.backend import GraphReads
from serve.graph.caching import CacheKey
from serve.graph.query_accounts import Account
from serve.graph.query_parameters import QueryParameters, choose_format, consistency_of, read_query_parameters
from serve.parameters import request_iri

__all__ = ["AskedQuery", "Mend", "QueryReader", "Understood"]


class Understood:
    """A plan, and the state of the store in which it turned out not to be for the event loop."""

    __slots__ = ("_first", "_keep", "_like", "_not_here_at", "own", "plan")

    def __init__(self, plan: QueryPlan, keep: Callable[["Understood"], None] | None = None) -> None:
        """keep is called once there is something to be remembered; None for one that is kept already."""
        self.plan, self._keep = plan, keep
        self.own: OwnNames | None = None  # of the variables, where `plan.like` has others
        self._first: Understood | None = None  # which this differs from in names alone
        self._like: Callable[[GraphReads], QueryPlan | None] | None = None
        self._not_here_at: tuple[str | None, int] | None = None  # who sees it, and the log index

    def with_names(
        self,
        text: str,
        own: OwnNames,
        plan: Callable[[str, str | None], QueryPlan],
        keep: Callable[["Understood"], None],
    ) -> "Understood":
        """Another text, which differs in the names of variables alone: as long as this one is not for the
        event loop. Once it is, plan makes the plan of the text in full, and keep is called.
        """
        mine = self.plan

        def full_plan(reads: GraphReads) -> QueryPlan | None:
            return plan(text, mine.base_iri) if self._may_be_here(reads) else None

        other = Understood(
            QueryPlan(text, mine.base_iri, mine.like, False, None, mine.is_repeatable, None, mine.limits),
            keep,
        )
        other._first, other.own, other._like = self, own, full_plan
        return other

    def is_cheap(self, reads: GraphReads) -> bool:
        """Whether it is cheap, or its join is small in what there is now. That it is not is found once for
        each state.
        """
        return self._may_be_here(reads) and (self.plan.is_cheap or self._is_small(reads))

    def evaluated(self, reads: GraphReads) -> Evaluated | None:
        """The answer, whose rows are computed as they are read; None if it is not cheap."""
        if not self._may_be_here(reads):  # which may make the plan
            return None
        plan = self.plan
        if plan.join is not None and plan.join.searches:
            return self._searched(reads, plan.join)
        if plan.join is not None and plan.join.columns:
            state = reads.view_key, reads.snapshot_index()
            try:
                found = reads.look_up(plan.join)
            except OverBudget:
                found = None
                if not plan.is_cheap:
                    self._note(state)
                    return None
            if found is not None:
                return found
        if not (plan.is_cheap or self._is_small(reads)):
            return None
        if plan.engine_text is not None:
            return reads.query_text(plan.engine_text, plan.base_iri)
        return reads.query(plan.query, _WHOLE)

    def _searched(self, reads: GraphReads, join: SmallJoin) -> Evaluated | None:
        state = reads.view_key, reads.snapshot_index()
        try:
            return reads.search(join, lambda: self.plan.query)
        except OverBudget:
            self._note(state)
            return None

    def _may_be_here(self, reads: GraphReads) -> bool:
        if self._like is not None and (plan := self._like(reads)) is not None:
            self.plan, self.own, self._like = plan, None, None
            self._be_kept()
        if self.plan.join is None and not self.plan.is_cheap:
            return False
        return self._not_here_at is None or self._not_here_at != (reads.view_key, reads.snapshot_index())

    def _is_small(self, reads: GraphReads) -> bool:
        join = self.plan.join
        assert join is not None
        if join.searches:  # what they find is looked for with the answer
            return False
        state = reads.view_key, reads.snapshot_index()
        if reads.is_small_join(join):
            return True
        if join.looks_at_triples_only:
            self._note(state)
        return False

    def note_long(self, reads: GraphReads, index: int) -> None:
        """Its answer at this log index or later was too long for the event loop."""
        self._note((reads.view_key, index))

    def _note(self, state: tuple[str | None, int]) -> None:
        self._not_here_at = state
        if self._first is not None:  # for the next ones
            self._first._not_here_at = state
        self._be_kept()

    def _be_kept(self) -> None:
        if self._keep is not None:
            self._keep(self)
            self._keep = None


_WHOLE = Dataset()


@dataclass(slots=True)
class AskedQuery:
    """One request for the answer to a query. Times are of perf_counter()."""

    request: Request
    understood: Understood
    base_iri: str
    dataset: Dataset
    format: ResultFormat
    timeout_s: float  # from the arrival of the request to the last byte of the answer
    min_index: int  # the answer has to be at this log index or later; 0: any
    consistency: Consistency
    explain: bool  # see `explanation`
    query_id: str | None
    account: Account
    as_of: Moment | None = None  # the state of the past that it is asked of; None: the present

    @property
    def plan(self) -> QueryPlan:
        return self.understood.plan

    @property
    def query(self) -> Query:
        """The tree of its text. A cheap query may never need it."""
        return self.understood.plan.query

    @property
    def visibility(self) -> Visibility:
        """What of the graph the answer may use."""
        return visibility_of(self.request.scope)

    @property
    def is_repeatable(self) -> bool:
        return self.understood.plan.is_repeatable

    def is_cheap(self, reads: GraphReads) -> bool:
        """Whether its answer may be made on the event loop; what is read may tell."""
        return self._may_be_here and self.understood.is_cheap(reads)

    def evaluated(self, reads: GraphReads) -> Evaluated | None:
        """The answer to a cheap query, on this thread; None for others."""
        return self.understood.evaluated(reads) if self._may_be_here else None

    @property
    def _may_be_here(self) -> bool:
        return not self.dataset and self.format is not ResultFormat.CANONICAL_N_TRIPLES

    def for_reader(self) -> QueryRequest:
        """The request to a reader, with what is left of the time limit."""
        principal = self.account.principal
        own = None if self.explain else self.understood.own
        return QueryRequest(
            self.query if own is None else self.plan.like,
            self.dataset,
            self.format,
            self.left_s,
            principal,
            self.explain,
            self.query_id,
            caller=principal_of(self.request.scope),
            own=own,
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
        is_past = self.as_of is not None
        return CacheKey(self.plan.text, self.base_iri, self.dataset, self.format, view_key, is_past)


Mend: TypeAlias = Callable[[Request, QuerySyntaxError], Awaitable[QuerySyntaxError]]
"""See `Hints.worded`."""


class QueryReader:
    """Parses requests. Whatever follows from a text or a header alone is cached."""

    def __init__(self, limits: GateLimits, timeout_s: float, mend: Mend, *, by_names: bool = True) -> None:
        """timeout_s: the time limit, unless the client sets a lower one. mend words the faults of texts.
        by_names: whether what was found of a query holds for those that differ in names of variables and in
        constants alone (`columns.plans_kept`).
        """
        self._limits, self._timeout_s, self._mend = limits, timeout_s, mend
        # One at a time: more parsing threads would delay the event loop and not be faster.
        self._long_text, self._geometries = asyncio.Semaphore(), asyncio.Semaphore()
        self._short: BoundedCache[Understood] = BoundedCache(entries_max=1024, chars_max=1_000_000)
        self._shapes = PlansByShape(self._plan)
        # by texts with numbers in place of the variables: which literals are constants; and together with the
        # others, which query was the first
        self._places: BoundedCache[tuple[int, ...]] = BoundedCache(entries_max=1024, chars_max=1_000_000)
        self._numbered: BoundedCache[tuple[Understood, NumberedText]] | None = (
            BoundedCache(entries_max=1024, chars_max=1_000_000) if by_names else None
        )
        self._last: tuple[str, str, Understood] | None = None  # that was found so
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
        understood = self.known(text, base_iri, parameters.entailment)
        if understood is None:
            try:
                understood = await self._understand(text, base_iri, parameters.entailment)
            except QuerySyntaxError as error:
                raise await self._mend(request, error) from None
        account = Account(text, understood.plan.like.form, began, principal=_name_of(request))
        return self.asked(request, parameters, understood, account)

    def asked(
        self, request: Request, parameters: QueryParameters, understood: Understood, account: Account
    ) -> AskedQuery:
        """A query that is understood, in its request. Raises InvalidParameter, NotAcceptable."""
        plan = understood.plan
        note = note_of(request.scope)
        note.syntax = plan.like  # names the same graphs
        note.add_graphs(graph.value for graph in parameters.dataset.graphs)
        as_of = _one_moment(parameters.as_of, moment_of_query(plan.like))
        timeout_s = self._timeout_s
        if parameters.timeout_s is not None and parameters.timeout_s < timeout_s:
            timeout_s = parameters.timeout_s
        return AskedQuery(
            request,
            understood,
            plan.base_iri or "",
            parameters.dataset,
            choose_format(request, parameters.formats, plan.like.form),
            timeout_s,
            parameters.min_index,
            consistency_of(request, parameters.consistency),
            parameters.explain,
            parameters.query_id,
            account,
            as_of,
        )

    def known(self, text: str, base_iri: str, entailment: Entailment) -> Understood | None:
        """A short text that was understood before, or another of its shape."""
        if entailment is not Entailment.GEOSPARQL or len(text) > SHORT_TEXT_CHARACTERS:
            return None
        understood = self._short.get(text, base_iri)
        if understood is None and 4 * len(text) <= self._limits.max_query_bytes:
            plan = self._shapes.get(text, base_iri)
            if plan is not None:
                return Understood(plan, self._keep)
            return self._renamed(text, base_iri)
        return understood

    def search_of_any(self, read: Callable[[str], str | None], base_iri: str) -> SearchedStar | None:
        """The search that texts are whatever their words; None if they are none, or are to be read in full.
        read gives the text with other words.
        """

        def plan(words: str) -> QueryPlan | None:
            text = read(words)
            characters = WORDS_MAX + len(text or "")
            if text is None or characters > min(SHORT_TEXT_CHARACTERS, self._limits.max_query_bytes // 4):
                return None
            return self._plan(text, base_iri)

        return star_of_any(plan)

    def _renamed(self, text: str, base_iri: str) -> Understood | None:
        """The same but for names of variables and constants as one that was understood before."""
        if self._numbered is None:
            return None
        if self._last is not None and self._last[:2] == (text, base_iri):  # a request asks more than once
            return self._last[2]
        numbered = numbered_text(text)
        places = None if numbered is None else self._places.get(numbered.form, base_iri)
        if numbered is None or places is None:
            return None
        known = self._numbered.get(numbered.with_fixed(places), base_iri)
        if known is None:
            return None
        first, of_first = known
        own_names = dict(zip(of_first.names, numbered.names, strict=True))
        columns = tuple(own_names.get(name, name) for name in columns_of(first.plan.like))
        literals = tuple((*of_first.literals[place][0], numbered.literals[place][1]) for place in places)
        own = OwnNames(text, columns, literals, lambda: read_query(text, base_iri, self._limits))
        understood = first.with_names(text, own, self._plan_and_note, self._keep)
        self._last = text, base_iri, understood
        return understood

    def _note_names(self, understood: Understood) -> None:
        """For the queries that differ from this one in names of variables and constants alone, while it is
        not for the event loop. Whether a join is small depends on the constants in its triples, and whether
        the answer to a cheap query is short on all of them.
        """
        plan = understood.plan
        query = plan.like
        is_other = query.form == "DESCRIBE" or query.service_hosts or calls_functions(query)
        if self._numbered is None or is_other or searches_of(query):
            return
        numbered = numbered_text(plan.text)
        if numbered is not None:
            places = self._free_places(plan, numbered)
            self._places.put(numbered.form, plan.base_iri, places)
            if self._places.get(numbered.form, plan.base_iri) == places:
                self._numbered.put(numbered.with_fixed(places), plan.base_iri, (understood, numbered))

    @staticmethod
    def _free_places(plan: QueryPlan, numbered: NumberedText) -> tuple[int, ...]:
        """Those of the literals whose values decide nothing here."""
        if plan.is_cheap or (plan.join is not None and not plan.join.looks_at_triples_only):
            return ()
        return numbered.places(plan.like, in_triples=plan.join is None)

    def _keep(self, understood: Understood) -> None:
        plan = understood.plan
        self._short.put(plan.text, plan.base_iri, understood)

    def _worded(self, text: str, base_iri: str, entailment: Entailment) -> str:
        """The text, or one that means the same without anything being said of entailment."""
        if entailment is Entailment.GEOSPARQL:
            return text
        query = read_query(text, base_iri, self._limits)
        gate.check(query, self._limits)
        if moment_of_query(query) is not None:
            raise InvalidParameter("entailment", "asks for a state by the parameter as_of, not by FROM")
        return asked_text(query, entailment)

    async def _understand(self, text: str, base_iri: str, entailment: Entailment) -> Understood:
        if len(text) > SHORT_TEXT_CHARACTERS:
            async with self._long_text:
                worded = await run_in_threadpool(self._worded, text, base_iri, entailment)
                return Understood(await run_in_threadpool(self._plan, worded, base_iri))
        if not calls_functions(read_query(text, base_iri, self._limits)):
            return self._understand_and_keep(text, base_iri, entailment)
        # Constant geometries are read for the gate, which takes a short text of curves a tenth of a second.
        async with self._geometries:
            await run_in_threadpool(load)
            return await run_in_threadpool(self._understand_and_keep, text, base_iri, entailment)

    def _understand_and_keep(self, text: str, base_iri: str, entailment: Entailment) -> Understood:
        text = self._worded(text, base_iri, entailment)
        understood = self._short.get(text, base_iri)
        if understood is None:
            understood = Understood(self._plan_and_note(text, base_iri))
            self._short.put(text, base_iri, understood)
            self._note_names(understood)
        return understood

    def _plan_and_note(self, text: str, base_iri: str | None) -> QueryPlan:
        plan = self._plan(text, base_iri)
        self._shapes.note(plan)
        return plan

    def _plan(self, text: str, base_iri: str | None) -> QueryPlan:
        query = read_query(text, base_iri, self._limits)
        gate.check(query, self._limits)  # here too: a 304 never comes to the backend
        return plan_of(query, self._limits, is_long=len(text) > SHORT_TEXT_CHARACTERS)


def _one_moment(parameter: Moment | None, clause: Moment | None) -> Moment | None:
    """Raises InvalidParameter."""
    if parameter is not None and clause is not None and parameter != clause:
        raise InvalidParameter("as_of", f"is {parameter}, and FROM in the query says {clause}")
    return clause if parameter is None else parameter


def _name_of(request: Request) -> str | None:
    """Who asks; None if authentication is off."""
    principal = principal_of(request.scope)
    return None if principal is EVERYONE else principal.qualified_name


def _directives(request: Request) -> list[str]:
    header = ",".join(request.headers.getlist("cache-control"))
    return [directive.strip().lower() for directive in header.split(",")]
