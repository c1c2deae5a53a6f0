"""`_bulk`: many writes in one request, read and proposed piece by piece."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from graphdb.config import Settings
from graphdb.search.catalog.commands import WriteResult
from graphdb.search.errors import SearchError
from serve.search.backend import SearchBackend
from serve.search.documents.bulk_items import BulkDefaults, BulkItem
from serve.search.documents.bulk_reader import BulkReader
from serve.search.documents.item_texts import ItemTexts, succeeded
from serve.search.documents.kept_values import KeptValues
from serve.search.documents.sources import SOURCE_PARAMETERS
from serve.search.documents.write_options import WRITE_PARAMETERS
from serve.search.frame.endpoint import Body, Endpoint, endpoint
from serve.search.frame.errors import error_json
from serve.search.frame.exchange import Exchange
from serve.search.frame.filter_path import PathFilter, filter_of
from serve.search.frame.json_text import LONG_BYTES

__all__ = ["routes"]

_PARAMETERS = f"{WRITE_PARAMETERS} {SOURCE_PARAMETERS} pipeline require_alias require_data_stream"
_PARAMETERS += " list_executed_pipelines include_source_on_error"
PIECE_BYTES = 8 * 1024 * 1024  # what is in memory of a request at a time, see `BulkReader`
KEPT_BYTES_MAX = 32 * 1024 * 1024


def routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    handler = partial(_bulk, KeptValues(KEPT_BYTES_MAX))
    return endpoint("POST PUT", ["/_bulk", "/{index}/_bulk"], handler, _PARAMETERS, Body.LINES)


async def _bulk(kept: KeptValues, exchange: Exchange) -> Any:
    began = time.monotonic()
    # What the client does not want of the items is left out before there are many of them.
    wanted = filter_of(exchange.parameters.strings("filter_path"))
    defaults = BulkDefaults.of(exchange.get("index"), exchange.parameters)
    bulk, reader = _Bulk(exchange.node, defaults.refresh, wanted), BulkReader(defaults, PIECE_BYTES)
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
    return {"errors": bulk.has_errors, "took": took, "items": orjson.Fragment(bulk.items())}


async def _gathered(exchange: Exchange, reader: BulkReader) -> AsyncIterator[tuple[int, bool]]:
    """Give the body to the reader; each time that there is a piece of it, its size, and whether it was the
    last. Raises parse_exception where there is no body.
    """
    size = seen = 0
    async for chunk in exchange.body_chunks():
        reader.chunks.append(chunk)
        size += len(chunk)
        if size >= PIECE_BYTES:
            yield size, False
            seen, size = seen + size, 0
    if not seen + size:
        raise SearchError("parse_exception", "request body is required")
    yield size, True


@dataclass(slots=True)
class _Bulk:
    """A request under way. Of what is done only the answer's text is kept."""

    node: SearchBackend
    refresh: str
    wanted: PathFilter | None = None
    count: int = 0
    has_errors: bool = False
    _answered: list[bytes] = field(default_factory=list)

    async def write(self, items: list[BulkItem]) -> None:
        """Do them, in order, and let go of them. Raises SearchError, UnavailableError."""
        self.count += len(items)
        writes = [item.write for item in items if item.write is not None]
        results = await self.node.write(writes, self.refresh) if writes else []
        del writes  # `_answers` is to be the last who knows them
        self._answered += await _in_thread(len(items) * 500, self._answers, items, results)

    def items(self) -> bytes:
        return b"[" + b",".join(self._answered) + b"]"

    def _answers(self, items: list[BulkItem], results: list[WriteResult]) -> list[bytes]:
        done = iter(results)
        answered = [(item, None if item.write is None else next(done)) for item in items]
        items.clear()  # many objects, which are gone at the end of this and not on the event loop
        results.clear()
        if self.wanted is not None:
            shown = self._shown([self._answer(item, result) for item, result in answered], self.wanted)
            return [orjson.dumps(answer) for answer in shown]
        texts = ItemTexts(self.node.catalog, self.refresh)
        return [
            texts.text(result)
            if result is not None and result.result.error is None and item.source is None
            else orjson.dumps(self._answer(item, result))
            for item, result in answered
        ]

    def _shown(self, answers: list[dict[str, Any]], wanted: PathFilter) -> list[dict[str, Any]]:
        # a source that goes out as text is no object yet
        whole = wanted.applied(orjson.loads(orjson.dumps({"items": answers})))
        shown: list[dict[str, Any]] = whole.get("items", [])
        return shown

    def _answer(self, item: BulkItem, result: WriteResult | None) -> dict[str, Any]:
        error = item.refused if result is None else result.result.error
        if error is not None:
            self.has_errors = True
            index = item.index if result is None or not result.index else result.index
            failed = {"_index": index, "_id": item.doc_id, "status": error.status, "error": error_json(error)}
            return {item.action.value: failed}
        assert result is not None
        return succeeded(self.node.catalog, result, self.refresh, item.source)


async def _in_thread(size_bytes: int, work: Any, *arguments: Any) -> Any:
    """Here where it is little, else where it does not keep the event loop."""
    if size_bytes < LONG_BYTES:
        return work(*arguments)
    return await asyncio.to_thread(work, *arguments)
