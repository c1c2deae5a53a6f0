"""`DocumentWriter`: the documents of one request into the log, in entries of bounded size."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from actors.search.command_writer import CommandWriter
from actors.search.search_job import ENTRY_BYTES_MAX, ENTRY_WRITES_MAX, SearchJob, write_bytes
from graphdb.errors import UnavailableError
from graphdb.public_text import public_text
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.catalog_commands import DocumentWrite, WriteDocuments, WriteResult
from graphdb.search.errors import SearchError
from graphdb.search.segments.operations import OperationResult

__all__ = ["DocumentWriter", "split_writes"]

_TRIES_MAX = 5  # of a document that is to be tried before it is logged, while its index changes
Writes: TypeAlias = Sequence[DocumentWrite]


class DocumentWriter:
    """For one event loop."""

    def __init__(self, catalog: Catalog, commits: CommandWriter) -> None:
        self._catalog, self._commits = catalog, commits

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

    async def _write(self, writes: Writes, refresh: bool) -> list[WriteResult]:
        if any(index.has_patterns for index in self._catalog.indexes()):
            writes = await asyncio.to_thread(self._catalog.prepare, writes)
        results: list[WriteResult] = []
        for part, logged in await self._log_parts(writes, refresh):
            if isinstance(logged, SearchError):
                results += _failed(part, logged)
            else:
                results += (await logged.outcome).get()
        return results

    async def _log_parts(self, writes: Writes, refresh: bool) -> list[tuple[Writes, SearchJob | SearchError]]:
        """Log one part behind the other, so that two writes to one document take effect in their order."""
        logged: list[tuple[Writes, SearchJob | SearchError]] = []
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


def split_writes(writes: Writes) -> Iterator[tuple[Writes, int]]:
    """Parts that fit an entry each, in order, with their sizes in bytes; a very long document is alone."""
    start = size = 0
    for place, added in enumerate(map(write_bytes, writes)):
        if place > start and (size + added > ENTRY_BYTES_MAX or place - start >= ENTRY_WRITES_MAX):
            yield writes[start:place], size
            start, size = place, 0
        size += added
    if start < len(writes):
        yield writes[start:], size


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
