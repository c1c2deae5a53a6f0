"""`ExtensionStage`: the `_ext` of one search: synonyms, a filter, a boost, what the graph says of hits."""

from collections import OrderedDict
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from graphdb.access.permissions import Permission
from graphdb.access.principal import NODE, Principal
from graphdb.access.sight import Sight
from graphdb.config import Settings
from graphdb.search.errors import illegal_argument
from graphdb.search.extension.boosting import boosted
from graphdb.search.extension.narrowing import candidates_body, filtered, ids_of, is_ranked
from graphdb.search.extension.request import ExtensionRequest, parse_extension
from graphdb.search.extension.synonyms import SynonymColumns, expanded, terms_sought
from graphdb.search.extension.template import Template
from graphdb.search.multi import Prepared, Searchers, Target, prepare
from graphdb.search.results.selection import Found
from serve.search.backend import SearchBackend
from serve.search.frame.search_work import SearchWork
from serve.search.graph.graph_asker import GraphAsker
from serve.search.graph.page_rank_view import PageRankView
from serve.search.searching.search_stage import SearchStage, StageOf

__all__ = ["ExtensionStage", "extension_stages"]

_FIRST_WAIT_S = 20.0
_SIGHTS_MAX = 16
_FOUND_MAX = 1_000_000  # candidates whose ids are looked up


def extension_stages(node: SearchBackend, settings: Settings, work: SearchWork) -> StageOf:
    """What `SearchRunner` asks of each request."""
    wait_s = min(_FIRST_WAIT_S, settings.server.query_timeout_seconds)
    ranks = _RanksBySight(node, wait_s)

    def stage_of(body: Mapping[str, Any], principal: Principal) -> SearchStage | None:
        if body.get("_ext") is None:
            return None
        request = parse_extension(body["_ext"])
        if request == ExtensionRequest():
            return None
        asker = GraphAsker(node.graph.acting_for(principal), settings)
        return ExtensionStage(request, asker, partial(ranks.of, principal), work)

    return stage_of


class _RanksBySight:
    """PageRank of what each sight sees of the graph: a hidden link moves nobody's ranks who does not see it.
    Those of the sights that were asked for lately are kept.
    """

    def __init__(self, node: SearchBackend, wait_s: float) -> None:
        self._node, self._wait_s = node, wait_s
        self._views: OrderedDict[Sight, PageRankView] = OrderedDict()

    def of(self, principal: Principal) -> PageRankView:
        sight = principal.sight
        view = self._views.get(sight)
        if view is None:
            graph = self._node.graph.acting_for(replace(NODE, permission=Permission.READ, sight=sight))
            view = PageRankView(graph, lambda: self._node.status().snapshot_index, self._wait_s)
            self._views[sight] = view
        self._views.move_to_end(sight)
        if len(self._views) > _SIGHTS_MAX:
            self._views.popitem(last=False)
        return view


class ExtensionStage:
    """One request's. Its methods are called in the order in which they stand here."""

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
            found = await self._work.run(partial(boosted, boost, ranks, prepared.scope, found))
        return found

    async def enrich(self, prepared: Prepared, answer: dict[str, Any]) -> None:
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
        """All queries of the request, before anything is asked."""
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
    if len(found.docs) > _FOUND_MAX:
        raise illegal_argument(
            f"[sparql_filter] the query matches [{len(found.docs)}] documents, at most [{_FOUND_MAX}] can be "
            "filtered"
        )
    return ids_of(prepared.scope, found.docs)


def _kept(found: Found, ids: Sequence[str], accepted: Container[str]) -> Found:
    """ids: of the candidates, in their order."""
    return found.kept(np.fromiter((one in accepted for one in ids), np.bool_, len(ids)))
