"""Runs searches: on shards, with a cache, within time limits."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import orjson

from graphdb.access.principal import NOBODY, Principal
from graphdb.config import Settings
from graphdb.search.aggregations.aggregation import MAX_BUCKETS
from graphdb.search.answer_room import LongAnswer, short_answer, take_room
from graphdb.search.catalog.cluster_settings import max_buckets, max_keep_alive_ms
from graphdb.search.catalog.index_names import Resolved
from graphdb.search.contexts import check_keep_alive
from graphdb.search.deadline import checkpoint
from graphdb.search.errors import SearchError
from graphdb.search.hybrid import scorer_of
from graphdb.search.multi import (
    AllFailed,
    Failure,
    Prepared,
    Scroll,
    Searchers,
    Target,
    prepare,
)
from graphdb.search.multi.prepared import check_request, is_of_request, is_short
from graphdb.search.multi.scrolling import check_batch, check_scroll
from graphdb.search.results import SearchOptions
from graphdb.search.results.matching import Found
from graphdb.search.scripts.stored import with_stored
from graphdb.search.segments.index_counters import IndexCounters
from serve.search.backend import HeldIndex, SearchBackend, SearchHelpers
from serve.search.frame.answer import query_failed
from serve.search.frame.exchange import Exchange, SearchWork, TimedOut
from serve.search.frame.identity import Identity
from serve.search.frame.parameters import Parameters
from serve.search.searching.at_once import AtOnce, Limits, RequestCache, is_large, is_long_to_parse
from serve.search.searching.lookup_fields import LookupFields
from serve.search.searching.reranking import asks_for_model, with_relevance
from serve.search.searching.search_body import (
    NOTHING,
    enveloped,
    profiled,
    shard_count,
    shards_json,
    timeout_ms,
    totals_as_int,
)
from serve.search.searching.search_names import (
    EVERY_SHARD,
    ShardChoice,
    context_of_none,
    held_of,
    is_limited,
    names_found,
    targets_of,
    task_of,
    whole_index,
)

if TYPE_CHECKING:
    from graphdb.search.sharded import Asked as CandidatesAsked
    from graphdb.search.sharded import Narrowing
    from serve.search.searching.shard_scroll import ShardScroll

__all__ = ["Asked", "SearchRunner", "SearchStage", "StageOf"]

# Extensions between the steps of a search, for members of a request that Elasticsearch does not have.


class SearchStage(Protocol):
    """For one request; called in this order, on the event loop. Raises SearchError."""

    async def expand(self, body: Mapping[str, Any], targets: Sequence[Target]) -> Mapping[str, Any]:
        """The request to parse instead of this one."""

    async def narrow(self, prepared: Prepared, found: Found) -> Found:
        """The candidates without those that do not count, or with other scores."""

    @property
    def narrowing(self) -> "Narrowing":
        """What `narrow` does, for shards elsewhere, which ask for `advice`."""

    async def advice(self, asked: "Sequence[CandidatesAsked]") -> frozenset[str]:
        """See `graphdb.search.sharded.narrowing`."""

    async def enrich(self, answer: dict[str, Any]) -> None:
        """Add to the answer, whose hits are objects."""


StageOf: TypeAlias = Callable[[Mapping[str, Any], Principal], SearchStage | None]
"""The stage that the body of a request asks for, None for most."""


# `SearchRunner`: a search from its request to its answer; what `_search`, `_msearch` and `_count` share.
#
#     names ─► targets ─► [expand] ─► prepare ─► find ─► [narrow] ─► finish ─► [enrich] ─► the envelope
#
# Searches that are known to be short run on the event loop, others on the threads of `SearchWork`.

T = TypeVar("T")
Answer = dict[str, Any]

_LOOK_S = 0.05  # between two looks whether a search is over that waits for the graph
_PEER_S = 5.0  # beyond the time limit of a search
_FEW = 8  # indexes that are parsed for on the event loop


@dataclass(frozen=True, slots=True)
class Asked:
    """A search as it came: its body with the parameters put in, and what only the parameters say."""

    body: Mapping[str, Any]
    typed_keys: bool = False
    total_as_int: bool = False
    shared_statistics: bool = False
    cached: bool | None = None
    named_scores: bool = False
    partial: bool = True  # an answer may hold without the indexes that failed
    principal: Principal = NOBODY  # with whose visibility the graph is queried
    choice: ShardChoice = EVERY_SHARD
    has_scripts: bool = False  # compiling them takes a while
    reads_hits: bool = False  # hits are to be objects, not JSON
    looks_up: bool = True  # runtime fields of the type `lookup` are shown
    raw: bool = False  # the members of the answer may be JSON already, as orjson.Fragment
    held: tuple[
        HeldIndex, ...
    ] = ()  # by target, where they are of an earlier moment, and shards are elsewhere


class SearchRunner:
    """Owned by the application, one for all operations that search; requests ask it through `visible_to`."""

    def __init__(self, node: SearchBackend, settings: Settings, work: SearchWork, stage_of: StageOf) -> None:
        self.node, self.work, self._stage_of = node, work, stage_of
        self.searchers = Searchers()
        self.identity = Identity(node, settings)
        self.peer_limit_s = settings.server.query_timeout_seconds + _PEER_S  # for another node's answer
        self._cache = RequestCache()
        self._stages: WeakKeyDictionary[Scroll, SearchStage] = WeakKeyDictionary()
        self._scorer = scorer_of(settings.search.hybrid_scorer, settings.search.linear_weights)
        self.at_once = AtOnce(self._cache, self.searchers)

    def visible_to(self, exchange: Exchange) -> "SearchRunner":
        """The same runner for the principal's view of the node; caches are shared."""
        runner = copy(self)
        runner.node = exchange.node
        return runner

    @property
    def node_id(self) -> str:
        """As answers name it."""
        return self.identity.node_id

    async def search(self, found: Sequence[Resolved], asked: Asked) -> dict[str, Any]:
        """The whole answer. Raises SearchError."""
        return await self.search_targets(self._targets(found, asked), asked)

    def _with_scripts(self, asked: Asked) -> Asked:
        """With stored scripts in the place of their ids. Raises SearchError."""
        body, has_scripts = with_stored(asked.body, self.node.catalog.scripts)
        return replace(asked, body=body, has_scripts=has_scripts) if has_scripts else asked

    def _targets(self, found: Sequence[Resolved], asked: Asked) -> list[Target]:
        return targets_of(self.node, found, asked.body.get("indices_boost"), asked.choice)

    async def search_targets(self, targets: Sequence[Target], asked: Asked) -> dict[str, Any]:
        """The same for indexes as of some moment (a point in time)."""
        with self.work.one_search():
            return await self._searched(targets, asked)

    async def _searched(self, targets: Sequence[Target], asked: Asked) -> dict[str, Any]:
        asked = self._with_scripts(asked)
        lookups = LookupFields.of(asked.body, targets) if asked.looks_up else None
        if lookups is not None:
            asked = replace(asked, body=lookups.body, raw=False, reads_hits=True)
        start = time.perf_counter()
        failures: Sequence[Failure] = ()
        answer: dict[str, Any] = NOTHING
        if targets:
            try:
                asked = await self._with_relevance(targets, asked)
                failures, answer = await self._answer(targets, asked)
                if lookups is not None:
                    answer = await lookups.answered(answer, self._look_up)
            except TimedOut:
                answer = {**NOTHING, "timed_out": True}
            except (AllFailed, SearchError) as failed:
                raise self.as_failure(failed, targets) from failed
        else:
            check_request(asked.body, context_of_none(self.node), self._scorer)
        if failures and not asked.partial:
            raise self._failed(failures, "Partial shards failure")
        taken_ms = (time.perf_counter() - start) * 1000
        for counters in self._counters(targets):
            counters.note_search(taken_ms, _groups(asked.body))
        shards = shards_json(shard_count(targets), failures, self.node_id)
        if asked.body.get("explain") and isinstance(answer["hits"], dict):
            answer = {**answer, "hits": self._with_places(answer["hits"])}
        whole = enveloped(answer, int(taken_ms), shards)
        return totals_as_int(whole) if asked.total_as_int else whole

    async def _look_up(self, names: str, body: Mapping[str, Any]) -> dict[str, Any]:
        found = names_found(self.node, names, Parameters({}))
        return await self.search(found, Asked(body, looks_up=False))

    def _with_places(self, hits: dict[str, Any]) -> dict[str, Any]:
        """With `_shard` and `_node` in each hit that is explained, where its index is still there."""
        placed = []
        for hit in hits["hits"]:
            index = self.node.catalog.find(hit["_index"])
            if "_id" in hit and "_explanation" in hit and index is not None:
                number = index.shards.routing.shard_of(hit["_id"], hit.get("_routing"))
                hit = {"_shard": f"[{hit['_index']}][{number}]", "_node": self.node_id, **hit}
            placed.append(hit)
        return {**hits, "hits": placed}

    def limits_at_once(self) -> Limits:
        """Those of now, for `at_once`."""
        return Limits(self._options(Asked({}, raw=True)), self._limits)

    def note_searches(self, name: str, searches: int, taken_ms: float, hits: int, misses: int) -> None:
        """Short searches of an index that were answered at once, or by another process; of them such as are
        kept.
        """
        self.work.note_short(searches)
        index = self.node.catalog.find(name)
        if index is not None:
            counters = index.shards.counters
            counters.note_searches(searches, taken_ms)
            counters.cache_hits += hits
            counters.cache_misses += misses

    def _counters(self, targets: Sequence[Target]) -> Iterator[IndexCounters]:
        """Of the indexes that are there still."""
        for target in targets:
            index = self.node.catalog.find(target.name)
            if index is not None:
                yield index.shards.counters

    def check_keep_alive(self, keep_alive_ms: int | None) -> None:
        """Errors: illegal_argument_exception for longer than the cluster's settings let a context live."""
        check_keep_alive(keep_alive_ms or 0, max_keep_alive_ms(self.node.catalog.cluster_settings))

    async def open_scroll(
        self, found: Sequence[Resolved], asked: Asked, keep_alive_ms: int
    ) -> dict[str, Any]:
        """The first page, with the id of the context that has the others."""
        start = time.perf_counter()
        self.check_keep_alive(keep_alive_ms)
        asked = self._with_scripts(asked)
        targets = self._targets(found, asked)
        if not targets:
            scroll_id = self.node.contexts.open(None, keep_alive_ms)
            return {"_scroll_id": scroll_id, **enveloped(NOTHING, 0, shards_json(0, (), ""))}
        failures: Sequence[Failure] = ()
        scroll: Any
        try:
            check_batch(asked.body.get("size"), min(target.window for target in targets))
            scroll = await self._apart(targets, found, asked)
            # Without `timeout`: a scroll is all hits or none.
            if scroll is not None:
                answer = await scroll.page()
            else:
                scroll, answer = await self._opened(targets, asked)
                failures = scroll.prepared.failures
        except (AllFailed, SearchError) as failed:
            raise self.as_failure(failed, targets) from failed
        names = {target.name for target in targets}
        scroll_id = self.node.contexts.open(scroll, keep_alive_ms, indexes=names)
        for counters in self._counters(targets):
            counters.scrolls += 1
        took_ms = int((time.perf_counter() - start) * 1000)
        shards = shards_json(shard_count(targets), failures, self.node_id)
        whole = {"_scroll_id": scroll_id, **enveloped(answer, took_ms, shards)}
        return totals_as_int(whole) if asked.total_as_int else whole

    async def _apart(
        self, targets: Sequence[Target], found: Sequence[Resolved], asked: Asked
    ) -> "ShardScroll | None":
        """A scroll whose pages are searched by the shards elsewhere, where there are such and they can.

        Raises SearchError, AllFailed.
        """
        held = held_of(self.node, targets, found)
        if not held or self._stage_of(asked.body, asked.principal) is not None:
            return None
        from serve.search.searching.shard_scroll import ShardScroll, may_scroll_apart  # most have no shards

        if not may_scroll_apart(asked.body):
            return None
        prepared = await self.work.run(partial(self._prepared, asked.body, targets, asked))
        check_scroll(prepared, bool(asked.cached))
        if prepared.failures:
            return None
        body = {name: value for name, value in asked.body.items() if name not in ("timeout", "profile")}
        asked = replace(asked, held=held, partial=False)
        return ShardScroll(targets, body, lambda page: self._read(targets, replace(asked, body=page)))

    async def _with_relevance(self, targets: Sequence[Target], asked: Asked) -> Asked:
        """With what models say of the hits of its `text_similarity_reranker`. Raises SearchError."""
        if not asks_for_model(asked.body):
            return asked

        async def find(body: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
            failures, answer = await self._read(targets, replace(asked, body=body, raw=False))
            if failures:
                raise self._failed(failures)
            hits: Sequence[Mapping[str, Any]] = answer["hits"]["hits"]
            return hits

        return replace(asked, body=await with_relevance(asked.body, self.node.rerankers, find))

    async def _read(
        self, targets: Sequence[Target], asked: Asked
    ) -> tuple[Sequence[Failure], dict[str, Any]]:
        """A search whose answer is read here: hits are objects."""
        found, _ = await self._by_shards(targets, asked, reads_hits=True)
        if found is not None:
            return found
        prepared = await self._within(asked, partial(self._prepared, asked.body, targets, asked))
        return (), await self._within(asked, lambda: prepared.finish(prepared.find()))

    async def _opened(self, targets: Sequence[Target], asked: Asked) -> tuple[Scroll, dict[str, Any]]:
        stage = self._stage_of(asked.body, asked.principal)
        if stage is None:
            return await self.work.run(lambda: self._first_page(*self._to_scroll(asked.body, targets, asked)))
        body = await stage.expand(asked.body, targets)
        prepared, found = await self.work.run(partial(self._to_scroll, body, targets, asked))
        found = await stage.narrow(prepared, found)
        scroll, answer = await self.work.run(partial(self._first_page, prepared, found))
        self._stages[scroll] = stage
        await stage.enrich(answer)
        return scroll, answer

    async def enrich_page(self, scroll: Scroll, answer: dict[str, Any]) -> None:
        """For a further page: what the request that opened the scroll asked for beside the hits."""
        stage = self._stages.get(scroll)
        if stage is not None:
            await stage.enrich(answer)

    def _to_scroll(
        self, body: Mapping[str, Any], targets: Sequence[Target], asked: Asked
    ) -> tuple[Prepared, Found]:
        prepared = self._prepared(body, targets, asked)
        check_scroll(prepared, bool(asked.cached))
        return prepared, prepared.find()

    @staticmethod
    def _first_page(prepared: Prepared, found: Found) -> tuple[Scroll, dict[str, Any]]:
        scroll = Scroll(prepared, found)
        answer: dict[str, Any] = {"timed_out": False, "hits": scroll.page()}
        if prepared.request.aggregations is not None:
            answer["aggregations"] = prepared.finish(found)["aggregations"]
        return scroll, answer

    async def _answer(
        self, targets: Sequence[Target], asked: Asked
    ) -> tuple[Sequence[Failure], dict[str, Any]]:
        """(indexes that failed, answer without its envelope)."""
        shown = asked.typed_keys, asked.shared_statistics, asked.named_scores
        key = self._cache.key(targets, asked.body, (*shown, self._limits), asked.cached)
        known = None if key is None else self._cached(key, targets)
        if known is not None:
            return (), known
        stage = self._stage_of(asked.body, asked.principal)
        if stage is not None:
            return await self._staged(stage, targets, asked)
        failures, answer = await self._found(targets, asked)
        if key is not None and not failures:
            self._cache.put(key, [target.searcher for target in targets], answer)
        return failures, answer

    @property
    def _limits(self) -> str:
        """What answers depend on beside requests and indexes."""
        return str(self.node.catalog.cluster_settings)

    def _cached(self, key: Hashable, targets: Sequence[Target]) -> Answer | None:
        known = self._cache.get(key, [target.searcher for target in targets])
        self._note_kept(targets, known is not None)
        return known

    def _note_kept(self, targets: Sequence[Target], was_kept: bool) -> None:
        for counters in self._counters(targets):
            counters.cache_hits += was_kept
            counters.cache_misses += not was_kept

    async def _found(
        self, targets: Sequence[Target], asked: Asked
    ) -> tuple[Sequence[Failure], dict[str, Any]]:
        """By the shards elsewhere, if there are and they can; else by this node."""
        if self.node.helpers is not None and asked.raw and not asked.has_scripts:
            with self.node.helpers.present():
                return await self._by_helpers(self.node.helpers, targets, asked)
        found, reason = await self._by_shards(targets, asked, reads_hits=asked.reads_hits)
        if found is not None:
            return found
        return await self._here(targets, asked, reason)

    async def _by_helpers(
        self, helpers: SearchHelpers, targets: Sequence[Target], asked: Asked
    ) -> tuple[Sequence[Failure], dict[str, Any]]:
        """By another process on this machine, if there is one and it can and is less busy; else here."""
        index = whole_index(self.node, targets[0])[0] if len(targets) == 1 else None
        is_whole = index is not None and not is_limited(index, targets[0])
        options = self._options(asked)
        has_defaults = targets[0].context.allow_expensive and options.max_buckets == MAX_BUCKETS
        if index is not None and is_whole and has_defaults and not _is_of_this_process(asked.body):
            task = task_of(index, targets[0], asked.body, options)
            members, is_late = await helpers.search(index, task, timeout_ms(asked.body))
            if is_late:
                raise TimedOut
            if members is not None:
                take_room(sum(map(len, members.values())))
                return (), {name: orjson.Fragment(member) for name, member in members.items()}
            self.work.check_time()  # it may have ended there for that
        return await self._here(targets, asked, "")

    async def _here(
        self, targets: Sequence[Target], asked: Asked, reason: str
    ) -> tuple[Sequence[Failure], dict[str, Any]]:
        """reason: why it is not done elsewhere, where that has to be said."""
        prepared, answer = await self._run(targets, asked)
        if reason and "profile" in answer:
            answer["profile"]["searched_by"] = {"node": self.node_id, "reason": reason}
        return prepared.failures, answer

    async def _by_shards(
        self,
        targets: Sequence[Target],
        asked: Asked,
        *,
        reads_hits: bool = False,
        stage: SearchStage | None = None,
    ) -> tuple[tuple[Sequence[Failure], dict[str, Any]] | None, str]:
        """(failures and answer, ""), or None and why this node is to search itself. reads_hits: hits are to
        be objects, not JSON. stage: what narrows the candidates.
        """
        if self.node.shards is None:
            return None, ""
        from serve.search.searching.shard_search import search_apart  # most have no shards

        indexes = []
        for target, held in zip(targets, asked.held or [None] * len(targets), strict=True):
            index, reason = whole_index(self.node, target, held, knows_sids=True)
            if index is None:
                return None, reason
            if not target.shards or (len(targets) > 1 and is_limited(index, target)):
                return None, "some of several indexes are limited to some shards"
            indexes.append(index)
        search = partial(
            search_apart,
            self.node.shards,
            indexes,
            targets,
            asked.body,
            replace(self._options(asked), raw_source=not reads_hits),
            asked.partial,
            asked.shared_statistics,
            asked.held,
            None if stage is None or not stage.narrowing else stage.narrowing,
            None if stage is None else partial(_on_loop, asyncio.get_running_loop(), stage.advice),
        )
        return await self._within(asked, search)

    async def _run(self, targets: Sequence[Target], asked: Asked) -> tuple[Prepared, dict[str, Any]]:
        if len(targets) > _FEW or asked.has_scripts or is_large(asked.body) or is_long_to_parse(asked.body):
            return await self._within(asked, partial(self._whole, targets, asked))
        prepared = self._prepared(asked.body, targets, asked)
        if is_short(prepared) and timeout_ms(asked.body) != 0:
            with suppress(LongAnswer), short_answer():
                answer = self._shown(prepared)
                self.work.note_short()
                return prepared, answer
            prepared = self._prepared(asked.body, targets, asked)
        return prepared, await self._within(asked, partial(self._shown, prepared))

    async def _staged(
        self, stage: SearchStage, targets: Sequence[Target], asked: Asked
    ) -> tuple[Sequence[Failure], dict[str, Any]]:
        body = await stage.expand(asked.body, targets)
        if self.node.shards is not None:
            apart, _ = await self._by_shards(targets, replace(asked, body=body), reads_hits=True, stage=stage)
            if apart is not None:
                await stage.enrich(apart[1])
                return apart
        prepared = await self._within(asked, partial(self._prepared, body, targets, asked))
        found: Found = await self._within(asked, prepared.find)
        found = await stage.narrow(prepared, found)
        answer = await self._within(asked, partial(prepared.finish, found))
        await stage.enrich(answer)
        return prepared.failures, answer

    async def _within(self, asked: Asked, work: Callable[[], T]) -> T:
        """work() on a thread, within the time that the request has."""
        return await self.work.run(work, timeout_ms(asked.body))

    def _whole(self, targets: Sequence[Target], asked: Asked) -> tuple[Prepared, dict[str, Any]]:
        prepared = self._prepared(asked.body, targets, asked)
        return prepared, self._shown(prepared)

    def _prepared(self, body: Mapping[str, Any], targets: Sequence[Target], asked: Asked) -> Prepared:
        options = self._options(asked)
        return prepare(body, targets, self.searchers, options, asked.shared_statistics)

    def _options(self, asked: Asked) -> SearchOptions:
        """How an answer is shown, with sources as they are stored."""
        return SearchOptions(
            typed_keys=asked.typed_keys,
            raw_source=True,
            named_scores=asked.named_scores,
            hybrid=self._scorer,
            max_buckets=max_buckets(self.node.catalog.cluster_settings),
            clock_ns=time.perf_counter_ns if asked.body.get("profile") else None,
        )

    def _shown(self, prepared: Prepared) -> dict[str, Any]:
        start = time.perf_counter_ns()
        answer = prepared.run()
        if prepared.request.profile:
            answer["profile"] = profiled(prepared, time.perf_counter_ns() - start, self.node_id)
        return answer

    def as_failure(self, error: AllFailed | SearchError, targets: Sequence[Target]) -> SearchError:
        """An error within a search, as an error of Elasticsearch."""
        if isinstance(error, AllFailed):
            return self._failed(error.failures)
        if is_of_request(error):
            return error
        return self._failed([Failure(target.name, error, target.shards) for target in targets])

    def _failed(self, failures: Sequence[Failure], reason: str = "all shards failed") -> SearchError:
        error = query_failed(failures, self.node_id)
        return SearchError(error.kind, reason, error.status, error.metadata, error.cause)


def _on_loop(
    loop: asyncio.AbstractEventLoop,
    advice: "Callable[[Sequence[CandidatesAsked]], Coroutine[Any, Any, frozenset[str]]]",
    asked: "Sequence[CandidatesAsked]",
) -> frozenset[str]:
    """advice() of a thread's search, as long as that may take. Raises what it does."""
    future = asyncio.run_coroutine_threadsafe(advice(asked), loop)
    try:
        while True:
            done, _ = wait([future], _LOOK_S)
            if done:
                return future.result()
            checkpoint()
    finally:
        future.cancel()


def _is_of_this_process(body: Mapping[str, Any]) -> bool:
    """Whether only this process knows what the search asks: who has searched, and where hits are."""
    return bool(body.get("profile") or body.get("explain"))


def _groups(body: Mapping[str, Any]) -> list[str]:
    """Those that a search says it is counted among, by `stats`."""
    groups = body.get("stats")
    return [group for group in groups if isinstance(group, str)] if isinstance(groups, list) else []
