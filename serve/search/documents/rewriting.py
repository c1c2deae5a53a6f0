"""Rewrites the documents of a query in batches: shared by `_delete_by_query`, `_update_by_query`,
`_reindex`.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import orjson

from graphdb.search.catalog.catalog_commands import DocumentWrite, WriteResult
from graphdb.search.catalog.index_names import Resolved
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.leaf_reader import Longs
from graphdb.search.mapping.readers import parse_number
from graphdb.search.multi import AllFailed, Failure, Searchers, prepare
from graphdb.search.multi.prepared import is_of_request
from graphdb.search.query import Searcher
from graphdb.search.scripts.stored import with_stored
from graphdb.search.segments.operations import Action, Operation, Outcome
from graphdb.search.segments.visible_segment import VisibleSegment
from graphdb.search.snapshots.document_frames import SnapshotDocument
from serve.search.documents.ingesting import write_documents
from serve.search.frame.answer import Answer, error_json, query_failed, search_error
from serve.search.frame.exchange import Exchange
from serve.search.frame.identity import Identity
from serve.search.frame.parameters import Parameters, java_integer
from serve.search.frame.tasks import Task
from serve.search.searching.search_names import ShardChoice, targets_of

__all__ = [
    "BATCH_DOCUMENTS",
    "REWRITE_PARAMETERS",
    "Found",
    "Pages",
    "Rewriting",
    "Rewritten",
    "Stored",
    "copied",
    "found_documents",
    "most_of",
    "performed",
    "rate_of",
    "refuse_reading",
]

REWRITE_PARAMETERS = "refresh requests_per_second scroll slices timeout wait_for_active_shards"
REWRITE_PARAMETERS += " wait_for_completion"
BATCH_DOCUMENTS = 1_000
_BATCH_DOCUMENTS_MAX = 10_000  # index.max_result_window
_FAILURES_MAX = 1_000
_SLICES_MAX, _AUTO_SLICES_MAX = 1_024, 20  # index.max_slices_per_scroll; as Elasticsearch bounds `auto`
_BATCH_BYTES = 32 * 1024 * 1024  # of documents, before and after: a batch ends earlier where they are long


@dataclass(frozen=True, slots=True)
class Stored:
    """A document as the search saw it."""

    index: str
    doc_id: str
    version: int
    seq_no: int
    source: bytes
    routing: str | None


# The action on a document; None: there is nothing to do.
Rewritten: TypeAlias = Callable[[Stored], DocumentWrite | None]


class Pages(Protocol):
    """Documents that come page by page. total: of all pages."""

    total: int
    retries: int

    @property
    def turn(self) -> AbstractAsyncContextManager[Any]:
        """A page is read and written within it."""

    async def next_page(self) -> list[Stored]:
        """Empty at the end. Raises SearchError."""


@dataclass(frozen=True, slots=True)
class Found:
    """All documents that match, as of one moment, one index after the other."""

    parts: tuple[tuple[str, Searcher, Longs], ...]  # index, its searcher, documents in it
    shards: int = 1  # of the index that has the fewest

    def __len__(self) -> int:
        return sum(len(docs) for _, _, docs in self.parts)

    def slice(self, number: int, count: int) -> "Found":
        """One of so many slices, which are together all of it."""
        parts = tuple((index, searcher, docs[number::count]) for index, searcher, docs in self.parts)
        return Found(parts, self.shards)

    def documents(self, most: int | None) -> Iterator[Stored]:
        """The first `most` of them."""
        left = len(self) if most is None else most
        for index, searcher, docs in self.parts:
            for doc in docs[:left]:
                yield _stored(index, searcher, int(doc))
            left -= len(docs[:left])


def _stored(index: str, searcher: Searcher, doc: int) -> Stored:
    leaf, local = searcher.locate(doc)
    segment = leaf.segment
    return Stored(
        index,
        segment.doc_id(local),
        int(segment.versions[local]),
        int(segment.seq_nos[local]),
        segment.whole_source(local) if isinstance(segment, VisibleSegment) else segment.source(local),
        segment.routing(local),
    )


def copied(document: Stored | SnapshotDocument, target: str) -> DocumentWrite:
    """The write of a document, with its version, into another index by an alias that this has."""
    operation = Operation(
        Action.INDEX,
        document.doc_id,
        document.source,
        document.routing,
        version=document.version,
        version_type="external",
    )
    return DocumentWrite(target, operation, require_alias=True)


async def found_documents(exchange: Exchange, indexes: Sequence[Resolved], body: Mapping[str, Any]) -> Found:
    """What the query (and slice) of a search body finds in each index. Raises SearchError, QueryTimeout."""
    targets = targets_of(exchange.node, indexes, choice=ShardChoice.of(exchange.parameters))
    body, _ = with_stored(body, exchange.node.catalog.scripts)
    node_id = Identity(exchange.node, exchange.settings).node_id

    def found() -> Found:
        parts = []
        for target in targets:
            try:
                docs = prepare(body, [target], Searchers()).find().docs
            except AllFailed as failed:
                raise query_failed(failed.failures, node_id) from failed
            except SearchError as error:
                if is_of_request(error):
                    raise
                raise query_failed([Failure(target.name, error, target.shards)], node_id) from error
            parts.append((target.name, target.searcher, docs))
        fewest = min((len(one.index.shards) for one in indexes), default=1)
        return Found(tuple(parts), fewest)

    return await exchange.work.run(found)


def rate_of(parameters: Parameters) -> float:
    """`requests_per_second`: documents a second, math.inf: no limit. Errors: illegal_argument_exception."""
    given = parameters.text("requests_per_second")
    if given in (None, "-1"):
        return math.inf
    rate = parse_number(given)
    if rate is None or not rate > 0:
        reason = "must be a float greater than 0. Use -1 to disable throttling."
        raise illegal_argument(f"[requests_per_second] {reason}")
    return float(rate)


def _slices(parameters: Parameters) -> int:
    """1 for `auto`, 0 for anything but a number."""
    given = parameters.text("slices")
    return 1 if given in (None, "auto") else java_integer(given) or 0


def refuse_reading(body: Mapping[str, Any]) -> None:
    """Members of a search that would change which part of the documents is read."""
    for name in ("from", "stored_fields"):
        if name in body:
            reason = f"Validation Failed: 1: {name} is not supported in this context;"
            raise SearchError("action_request_validation_exception", reason)


def most_of(exchange: Exchange, *given: Any) -> int | None:
    """`max_docs`: of the query string, or what members of the body say. Who says it twice says the same."""
    most = exchange.parameters.integer("max_docs", None)
    for value in given:
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise illegal_argument(
                f"Failed to parse int parameter [max_docs] with value [{str(value)[:100]}]"
            )
        if most not in (None, value):
            low, high = sorted((most, value))
            raise illegal_argument(f"[max_docs] set to two different values [{low}] and [{high}]")
        most = value
    if most is not None and most < 0:
        raise illegal_argument(f"[max_docs] parameter cannot be negative, found [{most}]")
    if most is not None and most < _slices(exchange.parameters):
        raise illegal_argument("[max_docs] should be >= [slices]")
    return most


@dataclass(slots=True)
class _Progress:
    """What has become of the documents of one slice. throttled_s: what it has waited for its rate."""

    total: int = 0
    batches: int = 0
    conflicts: int = 0
    throttled_s: float = 0.0
    outcomes: Counter[Outcome] = field(default_factory=Counter)

    def __add__(self, other: "_Progress") -> "_Progress":
        return _Progress(
            self.total + other.total,
            self.batches + other.batches,
            self.conflicts + other.conflicts,
            self.throttled_s + other.throttled_s,
            self.outcomes + other.outcomes,
        )

    def counts(self, rate: float, left_s: float) -> dict[str, Any]:
        """rate: documents a second; left_s: how long it still waits."""
        return {
            "total": self.total,
            "updated": self.outcomes[Outcome.UPDATED],
            "created": self.outcomes[Outcome.CREATED],
            "deleted": self.outcomes[Outcome.DELETED],
            "batches": self.batches,
            "version_conflicts": self.conflicts,
            "noops": self.outcomes[Outcome.NOOP],
            "retries": {"bulk": 0, "search": 0},
            "throttled_millis": int(self.throttled_s * 1000),
            "requests_per_second": -1.0 if math.isinf(rate) else rate,
            "throttled_until_millis": int(left_s * 1000),
        }


@dataclass(slots=True)
class Rewriting:
    """The progress of one request: the outcomes of its documents."""

    exchange: Exchange
    task: Task
    proceed: bool  # past documents that have changed since
    batch_documents: int = BATCH_DOCUMENTS
    pipeline: str | None = None  # that the documents go through, None: their index's
    hidden: tuple[str, ...] = ()  # counts that an operation does not have
    slices: int | None = 1  # None: as many as the indexes have shards
    failures: list[dict[str, Any]] = field(default_factory=list)
    written_to: set[str] = field(default_factory=set)  # names of indexes
    _parts: list[_Progress] = field(default_factory=lambda: [_Progress()])
    _pages: Pages | None = None
    _began: float = field(default_factory=time.monotonic)

    @classmethod
    def of(
        cls, exchange: Exchange, task: Task, conflicts: Any, batch_documents: int = BATCH_DOCUMENTS
    ) -> "Rewriting":
        """conflicts, batch_documents: of the body, or None. Raises SearchError."""
        parameters = exchange.parameters
        slices = _slices(parameters)
        if slices < 1:
            raise illegal_argument('[slices] must be a positive integer or the string "auto"')
        if slices > _SLICES_MAX:
            raise illegal_argument(
                f"The number of slices [{slices}] is too large. It must be less than [{_SLICES_MAX}]."
            )
        task.rate = rate_of(parameters)
        given = parameters.text("conflicts") or conflicts or "abort"
        if given not in ("abort", "proceed"):
            raise illegal_argument(f'conflicts may only be "proceed" or "abort" but was [{str(given)[:100]}]')
        size = parameters.integer("scroll_size", batch_documents)
        if not 0 < size <= _BATCH_DOCUMENTS_MAX:
            raise illegal_argument(
                f"[scroll_size] must be between 1 and {_BATCH_DOCUMENTS_MAX} but was [{size}]"
            )
        rewriting = cls(exchange, task, given == "proceed", size)
        rewriting.slices = None if parameters.text("slices") == "auto" else slices
        task.status = rewriting.counts
        return rewriting

    async def run(
        self, found: Found, most: int | None, rewritten: Rewritten, runs_scripts: bool = False
    ) -> Answer:
        """Write the documents; the first batch that has a failure is the last, or the one after which the
        task is to end. runs_scripts: rewriting may take long, so that each batch has the time of a search.
        Raises what rewriting raises.

        Slices are written one after the other: what they would share among nodes, one log takes in turn.
        """
        count = min(found.shards, _AUTO_SLICES_MAX) if self.slices is None else self.slices
        self._parts = [_Progress() for _ in range(count)]
        for number, part in enumerate(self._parts):
            own = found.slice(number, count)
            share = len(own) if most is None else most // count + (number < most % count)
            part.total = min(len(own), share)
            if not self.failures and self.task.cancelled is None:
                batches = self._batches(own.documents(part.total), rewritten, runs_scripts)
                await self._run(part, batches, nullcontext())
        return self._answer()

    async def run_pages(
        self, pages: Pages, most: int | None, rewritten: Rewritten, runs_scripts: bool = False
    ) -> Answer:
        """The same for documents that come page by page, each of which is a batch."""
        (part,) = self._parts
        self._pages = pages
        taken = 0

        async def next_batch() -> list[DocumentWrite | None]:
            nonlocal taken
            documents = await pages.next_page()
            part.total = pages.total if most is None else min(most, pages.total)
            documents = documents[: None if most is None else most - taken]
            taken += len(documents)
            return await self._on_thread(lambda: [rewritten(one) for one in documents], runs_scripts)

        await self._run(part, next_batch, pages.turn)
        return self._answer()

    def _answer(self) -> Answer:
        status = max((failure["status"] for failure in self.failures), default=200)
        took = {"took": int((time.monotonic() - self._began) * 1000), "timed_out": False}
        return Answer({**took, **self.counts(), "failures": self.failures}, status)

    def _batches(
        self, documents: Iterator[Stored], rewritten: Rewritten, runs_scripts: bool
    ) -> Callable[[], Awaitable[list[DocumentWrite | None]]]:
        """What gives the writes of the next batch, none at the end."""

        def next_writes() -> list[DocumentWrite | None]:
            writes: list[DocumentWrite | None] = []
            size_bytes = 0
            for document in documents:
                write = rewritten(document)
                writes.append(write)
                size_bytes += len(document.source) + (0 if write is None else len(write.operation.body))
                if len(writes) == self.batch_documents or size_bytes >= _BATCH_BYTES:
                    break
            return writes

        return lambda: self._on_thread(next_writes, runs_scripts)

    async def _run(
        self,
        part: _Progress,
        next_batch: Callable[[], Awaitable[list[DocumentWrite | None]]],
        turn: AbstractAsyncContextManager[Any],
    ) -> None:
        """One slice. turn: entered while a batch is read and written."""
        done, began = 0, time.monotonic()
        while self.task.cancelled is None:
            async with turn:
                writes = await next_batch()
                found_writes = [write for write in writes if write is not None]
                part.outcomes[Outcome.NOOP] += len(writes) - len(found_writes)
                if found_writes:
                    self._count(part, await self._written(found_writes))
            if not writes:
                break
            part.batches += 1
            done += len(writes)
            if self.failures or done >= part.total:
                break
            waited_s = self.task.throttled_s
            await self.task.pause(len(writes), began)
            part.throttled_s += self.task.throttled_s - waited_s
            began = time.monotonic()

    async def _written(self, writes: list[DocumentWrite]) -> list[WriteResult]:
        pipelines = [self.pipeline] * len(writes)
        return await write_documents(self.exchange.node, self.exchange.work, writes, pipelines, "false")

    async def _on_thread(
        self, work: Callable[[], list[DocumentWrite | None]], is_limited: bool
    ) -> list[DocumentWrite | None]:
        return await (self.exchange.work.run(work) if is_limited else asyncio.to_thread(work))

    def _count(self, part: _Progress, results: Sequence[WriteResult]) -> None:
        for result in results:
            done = result.result
            if done.error is None:
                part.outcomes[done.outcome or Outcome.NOOP] += 1
                self.written_to.add(result.index)
                continue
            conflict = done.error.kind == "version_conflict_engine_exception"
            part.conflicts += conflict
            if not (conflict and self.proceed) and len(self.failures) < _FAILURES_MAX:
                self.failures.append(_failure(result, done.error))

    def counts(self) -> dict[str, Any]:
        """What is done so far; of several slices each by itself, too."""
        task, until = self.task, self.task.throttled_until
        left_s = 0.0 if until is None else max(0.0, until - time.monotonic())
        counted = sum(self._parts, _Progress()).counts(task.rate, left_s)
        if self._pages is not None:
            counted["retries"]["search"] = self._pages.retries
        if task.cancelled is not None:
            counted["canceled"] = task.cancelled
        counted = self._shown(counted)
        if len(self._parts) > 1:
            counted["slices"] = [
                {"slice_id": number, **self._shown(part.counts(task.rate / len(self._parts), 0.0))}
                for number, part in enumerate(self._parts)
            ]
        return counted

    def _shown(self, counted: dict[str, Any]) -> dict[str, Any]:
        return {name: count for name, count in counted.items() if name not in self.hidden}


async def performed(exchange: Exchange, task: Task, perform: Callable[[], Awaitable[Answer]]) -> Answer:
    """The answer of a request that is checked, or the id of its task where the client does not wait."""
    if exchange.parameters.boolean("wait_for_completion", True):
        if not math.isinf(task.rate):
            exchange.tasks.check_place()
        with exchange.tasks.shown(task):
            return await perform()
    node_id = Identity(exchange.node, exchange.settings).node_id

    async def work() -> tuple[str, bytes]:
        try:
            return "response", orjson.dumps((await perform()).value)
        except Exception as error:  # noqa: BLE001 - the client reads it where it looks for the result
            return "error", orjson.dumps(error_json(search_error(error)))

    exchange.tasks.start(task, node_id, work)
    return Answer({"task": f"{node_id}:{task.number}"})


def _failure(result: WriteResult, error: SearchError) -> dict[str, Any]:
    cause = error_json(error)
    return {"index": result.index, "id": result.result.doc_id, "cause": cause, "status": error.status}
