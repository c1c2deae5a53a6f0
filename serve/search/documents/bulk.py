"""`_bulk`: requests read line by line, and answered item by item."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from graphdb.config import Settings
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.catalog_commands import WriteResult
from graphdb.search.errors import SearchError
from graphdb.search.results.fetching import SourceFilter
from graphdb.search.segments.operations import Action, Outcome
from serve.search.backend import SearchBackend
from serve.search.documents.bulk_items import BulkDefaults, BulkItem, BulkLines, Line, Lines, bulk_items
from serve.search.documents.documents import written
from serve.search.documents.ingesting import IngestReport, write_documents
from serve.search.documents.shown_fields import SOURCE_PARAMETERS
from serve.search.documents.write_options import WRITE_PARAMETERS
from serve.search.frame.answer import PathFilter, error_json, filter_of
from serve.search.frame.exchange import (
    JSON_BYTES_MAX,
    LONG_BYTES,
    Body,
    Endpoint,
    Exchange,
    SearchWork,
    endpoint,
)

__all__ = ["BulkReader", "ItemTexts", "KeptValues", "routes", "succeeded"]

# `BulkReader`: bytes of a bulk request become items to be written. It may be much: a thread does it.

_LINE_COST = 200  # bytes in memory beside the document


class BulkReader:
    """For one thread at a time. A request with less than a piece is refused as a whole where a line is
    malformed; of a longer one, what came before is stored by then.
    """

    def __init__(self, defaults: BulkDefaults, piece_bytes: int) -> None:
        self.chunks: deque[bytes] = deque()  # received, not parsed yet
        self.is_at_end = False
        self._defaults, self._piece_bytes = defaults, piece_bytes
        self._lines, self._operations = Lines(JSON_BYTES_MAX), BulkLines()
        self._reading: Iterator[Line] | None = None

        self._piece: list[Line] = []
        self._size = 0

    def next_piece(self, is_last: bool, keeps_values: bool) -> list[BulkItem] | None:
        """None where more has to come first. is_last: nothing more comes; keeps_values: see `bulk_items`.

        Raises SearchError, BodyTooLarge, for what spoils the rest of the request.
        """
        if self._reading is None:
            self._reading = self._operations.feed(self._texts())
        for line in self._reading:
            self._piece.append(line)
            self._size += len(line.document) + _LINE_COST
            if self._size >= self._piece_bytes:
                return self._take_piece(keeps_values)
        self._reading = None
        if not is_last:
            return None
        self._lines.check_complete()
        self._operations.check_complete()
        self.is_at_end = True
        return self._take_piece(keeps_values)

    def _texts(self) -> Iterator[bytes]:
        while self.chunks:
            yield from self._lines.feed(self.chunks.popleft())

    def _take_piece(self, keeps_values: bool) -> list[BulkItem]:
        lines, self._piece, self._size = self._piece, [], 0
        return bulk_items(lines, self._defaults, keeps_values)


# `KeptValues`: how much of what was read of documents is kept, beside their texts, until they are stored.


class KeptValues:
    """For one event loop. A value may take ten times the memory of its text."""

    def __init__(self, bytes_max: int) -> None:
        """bytes_max: of texts, of all requests at once."""
        self._free_bytes = bytes_max

    @contextmanager
    def room(self, size_bytes: int) -> Iterator[bool]:
        """Whether there is room for the values of so much text; it is free again afterwards."""
        has_room = size_bytes <= self._free_bytes
        taken_bytes = size_bytes if has_room else 0
        self._free_bytes -= taken_bytes
        try:
            yield has_room
        finally:
            self._free_bytes += taken_bytes


# The texts of a bulk answer's items that succeeded, most of which differ by three values only.


def succeeded(
    catalog: Catalog, result: WriteResult, refresh: str, source: SourceFilter | None = None
) -> dict[str, Any]:
    """An item, of an operation that did not fail."""
    shown = written(catalog, result, refresh, source)
    return {result.result.action.value: {**shown, "status": result.result.status}}


class ItemTexts:
    """For the results of one piece of a request: of each kind one item is made, the others are like it."""

    def __init__(self, catalog: Catalog, refresh: str) -> None:
        self._catalog, self._refresh = catalog, refresh
        self._kinds: dict[tuple[str, Action, Outcome | None], bytes] = {}

    def text(self, result: WriteResult) -> bytes:
        """`succeeded` as JSON, without a document."""
        done = result.result
        kind = (result.index, done.action, done.outcome)
        template = self._kinds.get(kind)
        if template is None:
            template = self._kinds[kind] = self._template(result)
        return template % (orjson.dumps(done.doc_id), done.version, done.seq_no)

    def _template(self, result: WriteResult) -> bytes:
        """An item with gaps for the id, the version and the sequence number, in this order. What it holds
        besides is the name of an index, in which there are no quotes.
        """
        empty = result.result._replace(doc_id="", version=0, seq_no=0)
        item = succeeded(self._catalog, WriteResult(result.index, empty), self._refresh)
        text = orjson.dumps(item).replace(b"%", b"%%")
        for name, gap in ((b'"_id":', b"%b"), (b'"_version":', b"%d"), (b'"_seq_no":', b"%d")):
            before, found, after = text.partition(name)
            text = before + found + gap + after[2 if gap == b"%b" else 1 :]
        return text


# `_bulk`: many writes in one request, read and proposed piece by piece.

_PARAMETERS = f"{WRITE_PARAMETERS} {SOURCE_PARAMETERS} pipeline require_alias require_data_stream"
_PARAMETERS += " list_executed_pipelines include_source_on_error"
PIECE_BYTES = 8 * 1024 * 1024  # the part of a request in memory at a time, see `BulkReader`
KEPT_BYTES_MAX = 32 * 1024 * 1024


def routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    handler = partial(_bulk, KeptValues(KEPT_BYTES_MAX))
    return endpoint("POST PUT", ["/_bulk", "/{index}/_bulk"], handler, _PARAMETERS, Body.LINES)


async def _bulk(kept: KeptValues, exchange: Exchange) -> Any:
    began = time.monotonic()
    # What the client does not want of the items is left out before there are many of them.
    wanted = filter_of(exchange.parameters.strings("filter_path"))
    defaults = BulkDefaults.of(exchange.get("index"), exchange.parameters)
    bulk, reader = (
        _Bulk(exchange.node, exchange.work, defaults.refresh, wanted),
        BulkReader(defaults, PIECE_BYTES),
    )
    async for size_bytes, is_last in _gathered(exchange, reader):
        with kept.room(size_bytes) as keeps_values:
            while not reader.is_at_end:
                items = await _in_thread(size_bytes, reader.next_piece, is_last, keeps_values)
                if items is None:
                    break
                await bulk.write(items)
    if not bulk.count:
        reason = "Validation Failed: 1: no requests added;"
        raise SearchError("action_request_validation_exception", reason)
    took = int((time.monotonic() - began) * 1000)
    ingest = {} if bulk.ingest_s is None else {"ingest_took": int(bulk.ingest_s * 1000)}
    return {"errors": bulk.has_errors, "took": took, **ingest, "items": orjson.Fragment(bulk.items())}


async def _gathered(exchange: Exchange, reader: BulkReader) -> AsyncIterator[tuple[int, bool]]:
    """Give the body to the reader; each time that there is a piece of it, its size, and whether it was the
    last. Raises parse_exception where there is no body.
    """
    size = earlier = 0
    async for chunk in exchange.body_chunks():
        reader.chunks.append(chunk)
        size += len(chunk)
        if size >= PIECE_BYTES:
            yield size, False
            earlier, size = earlier + size, 0
    if not earlier + size:
        raise SearchError("parse_exception", "request body is required")
    yield size, True


@dataclass(slots=True)
class _Bulk:
    """One request. Of finished items only the text of the answer is kept."""

    node: SearchBackend
    work: SearchWork
    refresh: str
    wanted: PathFilter | None = None
    count: int = 0
    has_errors: bool = False
    ingest_s: float | None = None  # in pipelines; None where no document went through one
    _answered: list[bytes] = field(default_factory=list)

    async def write(self, items: list[BulkItem]) -> None:
        """Do them, in order, and let go of them. Raises SearchError, UnavailableError."""
        self.count += len(items)
        writes = [item.write for item in items if item.write is not None]
        pipelines = [item.pipeline for item in items if item.write is not None]
        results, report = list[WriteResult](), IngestReport()
        if writes:
            results = await write_documents(
                self.node, self.work, writes, pipelines, self.refresh, report=report
            )
        if report.took_s is not None:
            self.ingest_s = (self.ingest_s or 0) + report.took_s
        del writes  # `_answers` is to be the last who knows them
        self._answered += await _in_thread(len(items) * 500, self._answers, items, results, report)

    def items(self) -> bytes:
        return b"[" + b",".join(self._answered) + b"]"

    def _answers(
        self, items: list[BulkItem], results: list[WriteResult], report: IngestReport
    ) -> list[bytes]:
        done, executed = iter(enumerate(results)), dict[int, list[str]]()
        answered: list[tuple[BulkItem, WriteResult | None]] = []
        for item in items:
            place, result = (-1, None) if item.write is None else next(done)
            answered.append((item, result))
            if item.lists_pipelines:
                executed[id(item)] = report.executed.get(place, [])
        items.clear()  # many objects, which are gone at the end of this and not on the event loop
        results.clear()
        if self.wanted is not None:
            shown = self._shown(
                [self._answer(item, result, executed) for item, result in answered], self.wanted
            )
            return [orjson.dumps(answer) for answer in shown]
        texts = ItemTexts(self.node.catalog, self.refresh)
        return [
            texts.text(result)
            if result is not None
            and result.result.error is None
            and item.source is None
            and not item.lists_pipelines
            else orjson.dumps(self._answer(item, result, executed))
            for item, result in answered
        ]

    def _shown(self, answers: list[dict[str, Any]], wanted: PathFilter) -> list[dict[str, Any]]:
        # a source that is sent as text is not parsed
        whole = wanted.applied(orjson.loads(orjson.dumps({"items": answers})))
        shown: list[dict[str, Any]] = whole.get("items", [])
        return shown

    def _answer(
        self, item: BulkItem, result: WriteResult | None, executed: dict[int, list[str]]
    ) -> dict[str, Any]:
        error = item.refused if result is None else result.result.error
        if error is not None:
            self.has_errors = True
            index = item.index if result is None or not result.index else result.index
            failed = {"_index": index, "_id": item.doc_id, "status": error.status, "error": error_json(error)}
            return {item.action.value: failed}
        assert result is not None
        shown = succeeded(self.node.catalog, result, self.refresh, item.source)
        if item.lists_pipelines and item.action in (Action.INDEX, Action.CREATE):
            shown[item.action.value]["executed_pipelines"] = executed[id(item)]
        return shown


async def _in_thread(size_bytes: int, work: Any, *arguments: Any) -> Any:
    """On the event loop if it is short, otherwise on a thread."""
    if size_bytes < LONG_BYTES:
        return work(*arguments)
    return await asyncio.to_thread(work, *arguments)
