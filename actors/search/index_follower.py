"""`IndexFollower`: keeps the documents of one index as the graph says. `run_plan`: carries out a plan with
queries.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from actors.log.client import LogAccess
from actors.search.document_writer import CursorWriter, Displaced, Failures, IndexedCatalog
from actors.search.log_reading import ChangeReader, Changes, ChangesUnknown, RecentEntries
from graphdb.access.annotations import ALLOWED_SID, REIFIES
from graphdb.errors import GraphDBError
from graphdb.public_text import public_text
from graphdb.search.catalog.state import Index
from graphdb.search.following.shape import Documents, Plan, Row, Shape, batches, differences
from graphdb.search.segments.operations import Operation

__all__ = ["FollowerContext", "IndexFollower", "QueriedGraph", "run_plan"]

T = TypeVar("T")


class QueriedGraph(Protocol):
    """What is needed of `serve.search.backend.GraphAccess`."""

    async def select(self, query: str, min_index: int | None = None) -> dict[str, Any]: ...


async def run_plan(plan: Plan[T], graph: QueriedGraph, min_index: int | None = None) -> T:
    """What a plan returns, of states of the graph that have seen the log up to min_index."""
    query, result = await asyncio.to_thread(_advance, plan, None)
    while query is not None:
        answer = await graph.select(query, min_index)
        query, result = await asyncio.to_thread(_advance, plan, answer["results"]["bindings"])
    assert result is not None
    return result[0]


def _advance(plan: Plan[T], rows: Sequence[Row] | None) -> tuple[str | None, tuple[T] | None]:
    """The next query, or in a tuple what the plan returns."""
    try:
        return (next(plan) if rows is None else plan.send(rows)), None
    except StopIteration as end:
        return None, (end.value,)


logger = logging.getLogger(__name__)

_ANY_ANNOTATION = (
    f"SELECT ?r {{ {{ ?r {ALLOWED_SID} ?sid }} UNION {{ GRAPH ?g {{ ?r {ALLOWED_SID} ?sid }} }} }} LIMIT 1"
)
_READ_AT_ONCE = 500  # documents
_CHANGED_MAX = 20_000  # documents that are read one by one; for more, all are
_GATHER_S = 0.05  # changes that come one after the other are read together
_REST_SHARE = 1.0  # how long to rest after following changes, in times of what it took
_REST_S_MAX = 5.0
_REST_SHARE_OF_ALL = 2.0  # and before another comparison with the whole graph
_REST_S_MAX_OF_ALL = 60.0
_AGAIN_S, _AGAIN_S_MAX = 0.5, 30.0  # after a failure, doubled each time
_SAVE_S = 10.0  # how long a cursor may be behind what was followed without anything to write
_SAVE_ENTRIES = 1_000


@dataclass(frozen=True, slots=True)
class FollowerContext:
    """What all followers of a node share. graph: as indexes see it, without what is annotated."""

    node: IndexedCatalog
    graph: QueriedGraph
    whole_graph: QueriedGraph
    log: LogAccess
    recent: RecentEntries


class IndexFollower:
    """For one event loop: run `run`. Its attributes tell how it fares.

    Documents may be newer than what `position` says, never older.
    """

    def __init__(self, index: Callable[[], Index | None], shape: Shape, context: FollowerContext) -> None:
        """index: as it is now, None where it is gone."""
        self.state = "starting"  # building, following, failing
        self.position = 0  # the log index that has been followed to
        self.error: str | None = None  # why the last round failed
        self.failures = Failures()
        self._index, self._shape, self._context = index, shape, context
        self._clock = asyncio.get_running_loop().time
        self._saved_at = self._next_rebuild_at = self._clock()
        self._has_followed = False  # changes that the cursor does not tell of
        self._reader: ChangeReader | None = None
        self._writer: CursorWriter | None = None

    async def run(self) -> None:
        """Until the index is gone."""
        failures = 0
        try:
            while (index := self._index()) is not None:
                try:
                    took_s = await self._round(index)
                except Displaced:
                    self._forget()
                    await asyncio.sleep(_AGAIN_S)
                except Exception as error:  # noqa: BLE001 also a mistake of ours is tried again, and shown
                    failures = self._note_failure(error, failures)
                    await asyncio.sleep(min(_AGAIN_S_MAX, _AGAIN_S * 2**failures))
                else:
                    failures, self.error = 0, None
                    await asyncio.sleep(min(_REST_S_MAX, _REST_SHARE * took_s))
        finally:
            self._forget()

    def _note_failure(self, error: Exception, failures: int) -> int:
        self._forget()
        self.state, self.error = "failing", public_text(error)[:1000]
        index = self._index()
        if not isinstance(error, GraphDBError):
            logger.error("following the graph failed", exc_info=error)
        elif index is not None:
            logger.warning("the index [%s] cannot follow the graph: %s", index.name, error)
        return min(failures + 1, 10)

    def _forget(self) -> None:
        """Begin anew at what the index's cursor says."""
        if self._reader is not None:
            self._reader.close()
        self._reader = self._writer = None

    async def _round(self, index: Index) -> float:
        """Bring the index up to date once, as soon as something has changed; the seconds it took then."""
        if self._reader is None or self._writer is None:
            self._begin(index)
        if self._reader is not None:
            await self._wait(self._reader)
        began = self._clock()
        try:
            if self._reader is None:
                raise ChangesUnknown("its documents are of no certain place in the log")
            await self._follow(await self._reader.read())
        except ChangesUnknown as reason:
            logger.info("the index [%s] is compared with the whole graph: %s", index.name, reason)
            await self._rebuild()
            return 0
        return self._clock() - began

    def _begin(self, index: Index) -> None:
        self._writer = CursorWriter(self._context.node, self._index, index.cursor, self.failures)
        if index.cursor > 0:
            self.state, self.position = "following", index.cursor
            self._reader = ChangeReader(self._context.log, self._context.recent, index.cursor)

    async def _wait(self, reader: ChangeReader) -> None:
        """For changes, or until the cursor is to be saved."""
        if self._has_followed:
            try:
                async with asyncio.timeout(_SAVE_S):  # wait_for of Python 3.11 may swallow a cancellation
                    await reader.wait()
            except TimeoutError:
                return
        else:
            await reader.wait()
        await asyncio.sleep(_GATHER_S)

    # following changes

    async def _follow(self, changes: Changes) -> None:
        assert self._writer is not None
        operations: list[Operation] = []
        if changes.quads:
            self._has_followed = True
            await self._check_annotations(changes)
            owners = await self._ask(self._shape.owners(changes.quads), changes.through)
            if owners is None:
                raise ChangesUnknown("any document may have changed")
            if len(owners) > _CHANGED_MAX:
                raise ChangesUnknown(f"{len(owners)} documents may have changed")
            for ids in batches(sorted(owners), _READ_AT_ONCE):
                documents = await self._ask(self._shape.documents(ids), changes.through)
                operations += await asyncio.to_thread(self._differences, ids, documents)
        if operations or self._is_save_due(changes.through):
            await self._writer.write(operations, changes.through)
            self._note_saved()
        self.position = changes.through

    async def _check_annotations(self, changes: Changes) -> None:
        """Raises ChangesUnknown where others than the changed triples may be hidden or shown now."""
        predicates = {quad.predicate for quad in changes.quads}
        if ALLOWED_SID in predicates:
            raise ChangesUnknown("annotations have changed")
        if REIFIES in predicates:
            answer = await self._context.whole_graph.select(_ANY_ANNOTATION, changes.through)
            if answer["results"]["bindings"]:
                raise ChangesUnknown("what is annotated has changed")

    def _is_save_due(self, through: int) -> bool:
        assert self._writer is not None
        behind = through - self._writer.cursor
        if not self._has_followed and behind < _SAVE_ENTRIES:
            return False
        return behind > 0 and self._clock() - self._saved_at >= _SAVE_S

    def _note_saved(self) -> None:
        self._saved_at, self._has_followed = self._clock(), False

    # comparing with the whole graph

    async def _rebuild(self) -> None:
        assert self._writer is not None
        self._close_reader()
        await asyncio.sleep(self._next_rebuild_at - self._clock())
        began, self.state = self._clock(), "building"
        await self._writer.claim()
        through = self._context.recent.last_index
        selection = await self._ask(self._shape.everything(), through)
        for ids in batches(selection.ids, _READ_AT_ONCE):
            documents = selection.documents
            if documents is None:
                documents = await self._ask(self._shape.documents(ids), through)
            await self._writer.write(await asyncio.to_thread(self._differences, ids, documents))
        gone = await asyncio.to_thread(self._stored_beside, set(selection.ids))
        await self._writer.write([*await asyncio.to_thread(self._differences, gone, {})], through)
        self._note_saved()
        self.state, self.position = "following", through
        self._reader = ChangeReader(self._context.log, self._context.recent, through)
        took_s = self._clock() - began
        self._next_rebuild_at = self._clock() + min(_REST_S_MAX_OF_ALL, _REST_SHARE_OF_ALL * took_s)

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _stored_beside(self, ids: set[str]) -> list[str]:
        index = self._index()
        return [] if index is None else [one for one in index.shards.ids() if one not in ids]

    def _differences(self, ids: Sequence[str], documents: Documents) -> list[Operation]:
        index = self._index()
        return [] if index is None else list(differences(ids, documents, _stored_in(index)))

    async def _ask(self, plan: Plan[T], min_index: int) -> T:
        """Carry out a plan in a graph that has seen the log up to there."""
        return await run_plan(plan, self._context.graph, min_index)


def _stored_in(index: Index) -> Callable[[str], bytes | None]:
    def stored(doc_id: str) -> bytes | None:
        document = index.shards.get(doc_id)
        return None if document is None else document.source

    return stored
