"""`LoggedGraph`: a graph in memory whose changes stand in a `MemoryLog`, as a store's do."""

import asyncio
import os
from collections.abc import Sequence
from typing import Any

import orjson
from pyoxigraph import Quad, QueryResultsFormat, RdfFormat, Store, parse

from graphdb.access.annotations import VisibleQuads, has_annotations
from graphdb.access.principal import Principal
from graphdb.access.visibility import FULL_VISIBILITY, Visibility
from graphdb.errors import GraphDBError
from graphdb.log.payloads import encode_change_parts, encode_changes, encode_close
from graphdb.model import ChangeSet, EntryKind, LogEntry
from graphdb.store.quad_store import QuadStore
from tests.support.memory_log import MemoryLog

__all__ = ["LoggedGraph"]

_PREFIXES = b"@prefix : <http://example.org/> .\n"


class LoggedGraph:
    """failing: what whoever asks meets, where a test says so. asked: the queries so far."""

    def __init__(self, log: MemoryLog) -> None:
        self.log, self.store = log, Store()
        self.failing: GraphDBError | None = None
        self.asked: list[str] = []

    def acting_for(self, principal: Principal) -> "_SeenGraph":
        """The same graph as the visibility of somebody shows it."""
        return _SeenGraph(self, principal.visibility)

    def insert(self, turtle: str, part_bytes: int = 0) -> None:
        """Labels of blank nodes stay as they are written; part_bytes: in entries of about so many."""
        self._change(ChangeSet(added=_quads(turtle)), part_bytes)

    def delete(self, turtle: str) -> None:
        self._change(ChangeSet(removed=_quads(turtle)))

    async def select(
        self, query: str, min_index: int | None = None, visibility: Visibility = FULL_VISIBILITY
    ) -> dict[str, Any]:
        assert (min_index or 0) <= self.log.last_index, "the log has never been there"
        self.asked.append(query)
        await asyncio.sleep(0)
        if self.failing is not None:
            raise self.failing
        answer = self._seen(visibility).query(query).serialize(format=QueryResultsFormat.JSON)  # type: ignore[arg-type]
        results: dict[str, Any] = orjson.loads(bytes(answer or b""))
        return results

    def _seen(self, visibility: Visibility) -> Store:
        whole = QuadStore(self.store)
        if visibility.is_whole or (visibility.has_all_graphs and not has_annotations(whole)):
            return self.store
        visible_quads, seen = VisibleQuads(visibility, whole), Store()
        seen.extend(quad for quad in self.store if visible_quads.sees(quad))
        return seen

    def _change(self, change: ChangeSet, part_bytes: int = 0) -> None:
        for quad in change.removed:
            self.store.remove(quad)
        self.store.extend(change.added)
        if not part_bytes:
            self._log([(EntryKind.CHANGES, encode_changes(change))])
            return
        parts = encode_change_parts(change, part_bytes)
        self._log([*((EntryKind.PART, part) for part in parts), (EntryKind.CLOSE, encode_close(len(parts)))])

    def _log(self, payloads: Sequence[tuple[EntryKind, bytes]]) -> None:
        request_id = os.urandom(16)
        self.log.store([LogEntry(0, 0, kind, request_id, 0, payload) for kind, payload in payloads])


class _SeenGraph:
    """A `LoggedGraph` as one visibility shows it."""

    def __init__(self, graph: LoggedGraph, visibility: Visibility) -> None:
        self._graph, self._visibility = graph, visibility

    async def select(self, query: str, min_index: int | None = None) -> dict[str, Any]:
        return await self._graph.select(query, min_index, self._visibility)


def _quads(turtle: str) -> tuple[Quad, ...]:
    return tuple(parse(_PREFIXES + turtle.encode(), RdfFormat.TURTLE))
