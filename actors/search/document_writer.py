"""`DocumentWriter`: the documents of one request. `CursorWriter`: the documents of an index that follows the
graph.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from actors.search.command_writer import (
    ENTRY_BYTES_MAX,
    ENTRY_WRITES_MAX,
    CommandWriter,
    Submitted,
    write_bytes,
)
from graphdb.errors import UnavailableError
from graphdb.public_text import public_text
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.catalog_commands import (
    Command,
    CursorMove,
    DocumentWrite,
    Outcome,
    ShownSources,
    WriteDocuments,
    WriteResult,
)
from graphdb.search.catalog.state import Index
from graphdb.search.errors import SearchError, index_not_found
from graphdb.search.segments.operations import Action, Operation, OperationResult

__all__ = [
    "CursorWriter",
    "Displaced",
    "DocumentWriter",
    "Failures",
    "IndexedCatalog",
    "ToldWrite",
    "fits_one_entry",
    "fresh_mark",
    "split_writes",
]

_TRIES_MAX = 5  # of a document that is to be tried before it is logged, while its index changes
_MADE_BYTES = 16 << 20  # of documents that the updates of one entry make, about, and of those that are shown
_MORE = 4  # times as many updates in the next entry, at most
Writes: TypeAlias = Sequence[DocumentWrite]


class DocumentWriter:
    """For one event loop."""

    def __init__(
        self, catalog: Catalog, commits: CommandWriter, relieved: Callable[[], Awaitable[None]]
    ) -> None:
        """relieved: returns when there is room in memory for what updates make."""
        self._catalog, self._commits, self._relieved = catalog, commits, relieved

    async def write(self, writes: Writes, refresh: bool) -> list[WriteResult]:
        """What became of each. refresh: what one entry holds is found as soon as it has taken effect.

        Where the first of several entries was logged, errors are those of the documents that they concern.
        Raises SearchError, UnavailableError.
        """
        results = await self._write(writes, refresh)
        for _ in range(_TRIES_MAX - 1):
            again = [place for place, result in enumerate(results) if result.again]
            if not again:
                break
            for place, result in zip(
                again, await self._write([writes[place] for place in again], refresh), strict=True
            ):
                results[place] = result
        return results

    def begin(self, write: DocumentWrite, told: "ToldWrite") -> bool:
        """Write one document without waiting, and tell what comes of it after the call; False where `write`
        has more to do about it. Raises SearchError, UnavailableError: nothing is written.
        """
        if write.operation.action is Action.UPDATE or self._catalog.has_patterns:
            return False
        self._commits.begin(WriteDocuments((write,), False), write_bytes(write), _OneOutcome(told))
        return True

    async def _write(self, writes: Writes, refresh: bool) -> list[WriteResult]:
        if self._catalog.has_patterns:
            writes = await asyncio.to_thread(self._catalog.prepare, writes)
        if _has_updates(writes):
            return await self._update(writes, refresh)
        results: list[WriteResult] = []
        for part, logged in await self._log_parts(writes, refresh):
            if isinstance(logged, SearchError):
                results += _failed(part, logged)
            else:
                results += (await logged.outcome).get()
        return results

    async def _update(self, writes: Writes, refresh: bool) -> list[WriteResult]:
        """One entry takes effect before the next is logged. What an update makes may be a thousand times what
        it says, so they begin with one and become more as long as their documents are small.
        """
        results: list[WriteResult] = []
        most, shown, failure = 1, ShownSources(_MADE_BYTES), None
        while len(results) < len(writes):
            part, size_bytes = next(split_writes(writes[len(results) :], most))
            if failure is not None:
                results += _failed(part, failure)
                continue
            await self._relieved()
            try:
                job = self._commits.submit(WriteDocuments(tuple(part), refresh), size_bytes)
                done: list[WriteResult] = (await job.outcome).get()
            except (SearchError, UnavailableError) as error:
                if not results:
                    raise
                failure = _of_one_document(error)
                continue
            made_bytes = sum(one.result.made_bytes for one in done)
            most = max(1, min(_MORE * most, _MADE_BYTES * len(part) // max(made_bytes, 1)))
            results += map(shown.bounded, done)
        return results

    async def _log_parts(self, writes: Writes, refresh: bool) -> list[tuple[Writes, Submitted | SearchError]]:
        """Log one part behind the other, so that two writes to one document take effect in their order."""
        logged: list[tuple[Writes, Submitted | SearchError]] = []
        failure: SearchError | None = None
        for part, size_bytes in split_writes(writes):
            if failure is None:
                try:
                    job = self._commits.submit(WriteDocuments(tuple(part), refresh), size_bytes)
                    await job.logged
                    logged.append((part, job))
                    continue
                except (SearchError, UnavailableError) as error:
                    if not logged:
                        raise
                    failure = _of_one_document(error)
            logged.append((part, failure))
        return logged


class ToldWrite(Protocol):
    """Who is told what comes of one document, such as a future; its methods do not raise."""

    def done(self) -> bool: ...
    def set_result(self, result: WriteResult, /) -> None: ...
    def set_exception(self, exception: Exception, /) -> None: ...


class _OneOutcome:
    """`Told` of a command that writes one document."""

    __slots__ = ("_told",)

    def __init__(self, told: ToldWrite) -> None:
        self._told = told

    def done(self) -> bool:
        return self._told.done()

    def set_result(self, result: Outcome, /) -> None:
        if result.error is not None:
            self._told.set_exception(result.error)
        else:
            (one,) = result.value
            self._told.set_result(one)

    def set_exception(self, exception: Exception, /) -> None:
        self._told.set_exception(exception)


def split_writes(writes: Writes, most: int = ENTRY_WRITES_MAX) -> Iterator[tuple[Writes, int]]:
    """Parts that fit an entry each, in order, with their sizes in bytes; a very long document is alone.
    most: writes in one.
    """
    most = min(most, ENTRY_WRITES_MAX)
    start = size = 0
    for place, added in enumerate(map(write_bytes, writes)):
        if place > start and (size + added > ENTRY_BYTES_MAX or place - start >= most):
            yield writes[start:place], size
            start, size = place, 0
        size += added
    if start < len(writes):
        yield writes[start:], size


def fits_one_entry(writes: Writes) -> bool:
    """Unless they are long: several with an update among them are entries of their own."""
    return len(writes) <= (1 if _has_updates(writes) else ENTRY_WRITES_MAX)


def _has_updates(writes: Writes) -> bool:
    return any(write.operation.action is Action.UPDATE for write in writes)


def _failed(writes: Writes, error: SearchError) -> list[WriteResult]:
    operations = [(write.index, write.operation) for write in writes]
    return [
        WriteResult(index, OperationResult(operation.action, operation.doc_id).failed(error))
        for index, operation in operations
    ]


def _of_one_document(error: SearchError | UnavailableError) -> SearchError:
    """The error as an item of a `_bulk` shows it."""
    if isinstance(error, SearchError):
        return error
    return SearchError("unavailable_shards_exception", public_text(error), 503)


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
            if write.operation.action is Action.INDEX and self._here().shards.get(doc_id) is not None:
                stale.append(DocumentWrite(write.index, Operation(Action.DELETE, doc_id)))
        return stale

    def _here(self) -> Index:
        index = self._index()
        if index is None:
            raise index_not_found("_na_")
        return index
