"""The stage of a search that asks the graph: filters, boosts, synonyms, PageRank."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Container, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import Any, Protocol

import numpy as np

from graphdb.access.permissions import Permission
from graphdb.access.principal import NODE, Principal
from graphdb.access.visibility import Visibility
from graphdb.config import Settings
from graphdb.errors import GraphDBError, LimitExceeded, UnavailableError
from graphdb.search.extension.boosting import LINKS_MAX, LinkCollector, PageRanks, boosted
from graphdb.search.extension.extension_request import ExtensionRequest, parse_extension
from graphdb.search.extension.request_rewriting import (
    SynonymColumns,
    candidates_body,
    expanded,
    filtered,
    ids_of,
    is_ranked,
    terms_sought,
)
from graphdb.search.extension.template import Template
from graphdb.search.multi import Prepared, Searchers, Target, prepare
from graphdb.search.results.matching import Found
from graphdb.search.sharded.narrowing import Asked, Narrowing, all_texts, check_found
from serve.search.backend import SearchBackend
from serve.search.frame.exchange import SearchWork
from serve.search.graph.graph_asker import GraphAsker
from serve.search.searching.search_runner import SearchStage, StageOf

__all__ = ["LINKS_QUERY", "ExtensionStage", "LinkSource", "PageRankView", "extension_stages"]

# `PageRankView`: the PageRank of the graph's resources, computed at the first request, then refreshed.

log = logging.getLogger(__name__)

LINKS_QUERY = (
    "SELECT ?s ?o WHERE { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } FILTER(isIRI(?o) || isBlank(?o)) }"
)
_AGE_S_MIN = 60.0  # between two computations at least
_SHARE = 10  # and so many times as long as one takes
_PIECE_BYTES = 1 << 20  # read on a thread at a time


class LinkSource(Protocol):
    """A graph that gives the rows of a SELECT as they come."""

    def rows(self, query: str) -> AsyncIterator[bytes]:
        """SPARQL 1.1 results as TSV, in pieces of any length. Raises SearchError, UnavailableError."""


class PageRankView:
    """For one event loop. What it gives may be behind the graph by some minutes: a change of the graph makes
    the ranks stale, but they are computed again only when somebody asks, beside requests, and not too often.
    """

    def __init__(
        self,
        graph: LinkSource,
        index: Callable[[], int],
        first_wait_s: float,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """index: the applied log index, so that an unchanged graph is not computed again."""
        self._graph, self._index = graph, index
        self._first_wait_s, self._clock_s = first_wait_s, clock_s
        self._ranks: PageRanks | None = None
        self._of_index = -1
        self._next_s = 0.0
        self._task: asyncio.Task[None] | None = None

    async def ranks(self) -> PageRanks:
        """Of the graph as it is, or was a while ago.

        Raises UnavailableError as long as they are computed for the first time, SearchError with the reason
        of the graph, LimitExceeded for a graph with too many links.
        """
        if self._ranks is not None:
            if self._index() != self._of_index and self._clock_s() >= self._next_s:
                self._begin()
            return self._ranks
        task = self._begin()
        done, _ = await asyncio.wait([task], timeout=self._first_wait_s)
        if not done:
            raise UnavailableError("PageRank of the graph is being computed for the first time: try again", 5)
        task.result()
        assert self._ranks is not None
        return self._ranks

    def _begin(self) -> asyncio.Task[None]:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._compute())
            self._task.add_done_callback(_note_failure)
        return self._task

    async def _compute(self) -> None:
        start, index = self._clock_s(), self._index()
        collector, held = LinkCollector(), bytearray()
        try:
            async for piece in self._graph.rows(LINKS_QUERY):
                held += piece
                if len(held) >= _PIECE_BYTES:
                    await asyncio.to_thread(collector.feed, bytes(held))
                    held.clear()
            await asyncio.to_thread(collector.feed, bytes(held))
            self._ranks = await asyncio.to_thread(collector.ranks)
            self._of_index = index
        except OverflowError:
            raise LimitExceeded("links of the graph, for PageRank", collector.count, LINKS_MAX) from None
        finally:
            took_s = self._clock_s() - start
            self._next_s = self._clock_s() + max(_AGE_S_MIN, _SHARE * took_s)
        log.info("PageRank of %d links took %.1f s", collector.count, took_s)


def _note_failure(task: asyncio.Task[None]) -> None:
    """Whoever waits meets it too; behind an older result nobody does."""
    if task.cancelled():
        return
    error = task.exception()
    if isinstance(error, GraphDBError):
        log.warning("PageRank could not be computed: %s", error)
    elif error is not None:
        log.error("PageRank could not be computed", exc_info=error)


# `ExtensionStage`: the `_ext` of one search: synonyms, a filter, a boost, what the graph says of hits.

_FIRST_WAIT_S = 20.0
_VISIBILITIES_MAX = 16


def extension_stages(node: SearchBackend, settings: Settings, work: SearchWork) -> StageOf:
    """What `SearchRunner` asks of each request."""
    wait_s = min(_FIRST_WAIT_S, settings.server.query_timeout_seconds)
    ranks = _RanksByVisibility(node, wait_s)

    def stage_of(body: Mapping[str, Any], principal: Principal) -> SearchStage | None:
        if body.get("_ext") is None:
            return None
        request = parse_extension(body["_ext"])
        if request == ExtensionRequest():
            return None
        asker = GraphAsker(node.graph.acting_for(principal), settings)
        return ExtensionStage(request, asker, partial(ranks.of, principal), work)

    return stage_of


class _RanksByVisibility:
    """PageRank of what each visibility shows of the graph: a hidden link moves nobody's ranks who does not
    see it. Those of the visibilities that were asked for lately are kept.
    """

    def __init__(self, node: SearchBackend, wait_s: float) -> None:
        self._node, self._wait_s = node, wait_s
        self._views: OrderedDict[Visibility, PageRankView] = OrderedDict()

    def of(self, principal: Principal) -> PageRankView:
        visibility = principal.visibility
        view = self._views.get(visibility)
        if view is None:
            graph = self._node.graph.acting_for(
                replace(NODE, permission=Permission.READ, visibility=visibility)
            )
            view = PageRankView(graph, lambda: self._node.status().snapshot_index, self._wait_s)
            self._views[visibility] = view
        self._views.move_to_end(visibility)
        if len(self._views) > _VISIBILITIES_MAX:
            self._views.popitem(last=False)
        return view


class ExtensionStage:
    """The extensions of one request. The methods are called in the order of their definition."""

    def __init__(
        self,
        request: ExtensionRequest,
        asker: GraphAsker,
        ranks: Callable[[], PageRankView],
        work: SearchWork,
    ) -> None:
        self._request, self._asker, self._ranks, self._work = request, asker, ranks, work
        self._enrich: Template | None = None
        self._filter: Template | None = None

    async def expand(self, body: Mapping[str, Any], targets: Sequence[Target]) -> Mapping[str, Any]:
        """The request with synonyms; one that ranks vectors also with its filter."""
        await self._read()
        if self._request.expand is not None:
            body = await self._expanded(body)
        if self._filter is not None and is_ranked(body):
            ids = await self._work.run(partial(_candidates, candidates_body(body), targets))
            accepted = await self._asker.accepted(self._filter, ids)
            body = filtered(body, [one for one in ids if one in accepted])
            self._filter = None
        return body

    async def narrow(self, prepared: Prepared, found: Found) -> Found:
        """The candidates that the filter lets pass, with their scores boosted."""
        if self._filter is not None and len(found.docs):
            ids = await self._work.run(partial(_ids, prepared, found))
            different = await self._work.run(lambda: list(dict.fromkeys(ids)))
            accepted = await self._asker.accepted(self._filter, different)
            found = await self._work.run(partial(_kept, found, ids, accepted))
        boost = self._request.boost
        if boost is not None:
            ranks = await self._ranks().ranks()
            enough = ranks.enough(boost.least)
            found = await self._work.run(partial(boosted, boost, enough, prepared.scope, found))
        return found

    @property
    def narrowing(self) -> Narrowing:
        """See `SearchStage`; known after `expand`."""
        return Narrowing(self._filter is not None, self._request.boost)

    async def advice(self, asked: Sequence[Asked]) -> frozenset[str]:
        """See `SearchStage`."""
        texts = await self._work.run(partial(all_texts, asked))
        if not texts:
            return frozenset()
        if asked[0].is_of_filter:
            assert self._filter is not None
            return frozenset(await self._asker.accepted(self._filter, texts)).intersection(texts)
        assert self._request.boost is not None
        ranks, least = await self._ranks().ranks(), self._request.boost.least
        return await self._work.run(lambda: frozenset(compress(texts, ranks.enough(least)(texts).tolist())))

    async def enrich(self, answer: dict[str, Any]) -> None:
        """Add what the graph says of the hits; a hit that does not show its `_id` gets nothing."""
        hits = [hit for hit in answer["hits"]["hits"] if "_id" in hit]
        ids = list(dict.fromkeys(hit["_id"] for hit in hits))
        if self._enrich is not None:
            found = await self._asker.bindings(self._enrich, ids)
            for hit in hits:
                hit["_ext"] = {"sparql_enrich": found[hit["_id"]]}
        output = self._request.format
        if output is not None:
            data = await self._asker.document(ids, output.syntax)
            answer["_ext"] = {"format": output.name, "data": data}

    async def _read(self) -> None:
        """Parse all queries of the request before one is evaluated."""
        if self._request.enrich is not None:
            self._enrich = await self._asker.template(self._request.enrich, "SELECT")
        if self._request.filter is not None:
            self._filter = await self._asker.template(self._request.filter, "ASK")

    async def _expanded(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        assert self._request.expand is not None
        field = self._request.expand.field
        template = await self._asker.template(self._request.expand.query, "SELECT", required=False)
        columns = SynonymColumns.of(template)
        terms = terms_sought(body, field)
        if not terms:
            return body
        return expanded(body, field, await self._asker.synonyms(template, columns, terms))


def _candidates(body: Mapping[str, Any], targets: Sequence[Target]) -> list[str]:
    prepared = prepare(body, targets, Searchers())
    return list(dict.fromkeys(_ids(prepared, prepared.find())))


def _ids(prepared: Prepared, found: Found) -> list[str]:
    check_found(len(found.docs))
    return ids_of(prepared.scope, found.docs)


def _kept(found: Found, ids: Sequence[str], accepted: Container[str]) -> Found:
    """ids: of the candidates, in their order."""
    return found.kept(np.fromiter((one in accepted for one in ids), np.bool_, len(ids)))
