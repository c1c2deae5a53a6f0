"""`CursorWriter`: documents into an index that follows the graph, as long as nobody else does that."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from actors.search.document_writer import split_writes
from graphdb.search.catalog.catalog_commands import (
    Command,
    CursorMove,
    DocumentWrite,
    WriteDocuments,
    WriteResult,
)
from graphdb.search.catalog.state import Index
from graphdb.search.errors import SearchError, index_not_found
from graphdb.search.segments.operations import Action, Operation

__all__ = ["CursorWriter", "Displaced", "Failures", "IndexedCatalog", "fresh_mark"]

_MARK_BITS = 52


class Displaced(Exception):
    """Somebody else has written to the index meanwhile."""


class IndexedCatalog(Protocol):
    """What is needed of a `SearchNode`."""

    async def perform(self, command: Command) -> Any: ...
    async def prepared(self, writes: Sequence[DocumentWrite]) -> Sequence[DocumentWrite]: ...


def fresh_mark() -> int:
    """A cursor that nobody else has ever set: documents are being written. Never a log index."""
    return -1 - secrets.randbits(_MARK_BITS)


@dataclass(slots=True)
class Failures:
    """Documents that the index has refused, and why it did the last one."""

    count: int = 0
    last: str | None = None

    def note(self, doc_id: str, error: SearchError) -> None:
        self.count += 1
        self.last = f"[{doc_id}]: {error.kind}: {error.reason}"


class CursorWriter:
    """Each entry sets the cursor anew, to a mark until the last one: what two write never mixes.

    A cursor that stays at a mark tells that the documents are of no certain place in the log.
    """

    def __init__(
        self, node: IndexedCatalog, index: Callable[[], Index | None], cursor: int, failures: Failures
    ) -> None:
        """index: as it is now, None where it is gone; cursor: where it stands unless somebody else writes."""
        self._node, self._index, self._failures = node, index, failures
        self.cursor = cursor

    async def claim(self) -> None:
        """Let nobody else who has begun before write any more. Raises as `write`."""
        await self._put([], fresh_mark())

    async def write(self, operations: Sequence[Operation], after: int | None = None) -> None:
        """Write these, then set the cursor to `after`; None: more follow.

        Raises Displaced, SearchError (the index is gone), UnavailableError.
        """
        parts = [list(part) for part, _ in split_writes(self._writes(operations))]
        for number, part in enumerate(parts):
            is_last = number == len(parts) - 1 and after is not None
            await self._put(part, after if is_last and after is not None else fresh_mark())
        if not parts and after is not None:
            await self._put([], after)

    def _writes(self, operations: Sequence[Operation]) -> list[DocumentWrite]:
        name = self._here().name
        return [DocumentWrite(name, operation) for operation in operations]

    async def _put(self, writes: Sequence[DocumentWrite], after: int) -> None:
        while True:
            results = await self._perform(await self._node.prepared(writes), after)
            again = [write for write, result in zip(writes, results, strict=True) if result.again]
            again += self._replaced(writes, results)
            if self.cursor == after:
                return
            writes = again

    async def _perform(self, writes: Sequence[DocumentWrite], after: int) -> list[WriteResult]:
        """Afterwards the cursor is at `after` only where nothing is left to be done about these."""
        move = CursorMove(self._here().uuid, self.cursor, after, fresh_mark())
        results: list[WriteResult] = await self._node.perform(WriteDocuments(tuple(writes), False, move))
        cursor = self._here().cursor
        if cursor not in (after, move.unfinished) or len(results) != len(writes):
            raise Displaced
        self.cursor = cursor
        return results

    def _replaced(
        self, writes: Sequence[DocumentWrite], results: Sequence[WriteResult]
    ) -> list[DocumentWrite]:
        """Deletions of what stays in the index in an older form, for the newer one was refused."""
        stale = []
        for write, result in zip(writes, results, strict=True):
            error, doc_id = result.result.error, write.operation.doc_id
            if error is None or result.again:
                continue
            self._failures.note(doc_id, error)
            if write.operation.action is Action.INDEX and self._here().shard.get(doc_id) is not None:
                stale.append(DocumentWrite(write.index, Operation(Action.DELETE, doc_id)))
        return stale

    def _here(self) -> Index:
        index = self._index()
        if index is None:
            raise index_not_found("_na_")
        return index
