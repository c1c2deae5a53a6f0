"""`_bulk`: many writes in one request, read and proposed piece by piece."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from graphdb.config import Settings
from graphdb.search.catalog.commands import DocumentWrite, WriteResult
from graphdb.search.errors import SearchError
from graphdb.search.results.source_filter import SourceFilter, parse_source_filter
from graphdb.search.segments.operations import Action
from serve.search.backend import SearchBackend
from serve.search.documents.bulk_lines import BulkLines, Line, Lines
from serve.search.documents.given_documents import document_problem
from serve.search.documents.identifiers import generated_id
from serve.search.documents.sources import SOURCE_PARAMETERS, asked_source
from serve.search.documents.write_answers import written
from serve.search.documents.write_options import WRITE_PARAMETERS, Conditions, no_pipeline, refresh_of
from serve.search.frame.endpoint import Body, Endpoint, endpoint
from serve.search.frame.errors import error_json
from serve.search.frame.exchange import JSON_BYTES_MAX, Exchange
from serve.search.frame.filter_path import PathFilter, filter_of
from serve.search.frame.json_text import LONG_BYTES
from serve.search.frame.parameters import Parameters

__all__ = ["routes"]

_PARAMETERS = f"{WRITE_PARAMETERS} {SOURCE_PARAMETERS} pipeline require_alias require_data_stream"
_PARAMETERS += " list_executed_pipelines include_source_on_error"
# A request with less than this is refused as a whole where a line is malformed; of a longer one, what came
# before is stored by then.
PIECE_BYTES = 8 * 1024 * 1024
_LINE_COST = 200  # bytes in memory beside the document


def routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    return endpoint("POST PUT", ["/_bulk", "/{index}/_bulk"], _bulk, _PARAMETERS, Body.LINES)


async def _bulk(exchange: Exchange) -> Any:
    began = time.monotonic()
    # What the client does not want of the items is left out before there are many of them.
    wanted = filter_of(exchange.parameters.strings("filter_path"))
    bulk = _Bulk(exchange.node, _Defaults.of(exchange.get("index"), exchange.parameters), wanted)
    async for lines in _pieces(exchange):
        await bulk.write(lines)
    if not bulk.count:
        reason = "Validation Failed: 1: no requests added;"
        raise SearchError("action_request_validation_exception", reason)
    took = int((time.monotonic() - began) * 1000)
    return {"errors": bulk.has_errors, "took": took, "items": orjson.Fragment(bulk.items())}


async def _pieces(exchange: Exchange) -> AsyncIterator[list[Line]]:
    """The operations of the request, so many at once as may be in memory. Raises SearchError."""
    lines, operations = Lines(JSON_BYTES_MAX), BulkLines()
    piece: list[Line] = []
    size = seen = 0
    async for chunk in exchange.body_chunks():
        seen += len(chunk)
        for text in lines.feed(chunk):
            operation = operations.feed(text)
            if operation is not None:
                piece.append(operation)
                size += len(operation.document) + _LINE_COST
            if size >= PIECE_BYTES:
                yield piece
                piece, size = [], 0
    if not seen:
        raise SearchError("parse_exception", "request body is required")
    lines.check_complete()
    operations.check_complete()
    yield piece


@dataclass(frozen=True, slots=True)
class _Defaults:
    """What the address says for all lines that do not say it themselves."""

    index: str | None
    refresh: str
    routing: str | None
    pipeline: str | None
    require_alias: bool
    source: SourceFilter | None

    @classmethod
    def of(cls, index: str | None, parameters: Parameters) -> "_Defaults":
        return cls(
            index,
            refresh_of(parameters),
            parameters.text("routing"),
            parameters.text("pipeline"),
            parameters.boolean("require_alias", False),
            asked_source(parameters, None),
        )


@dataclass(slots=True)
class _Item:
    """One operation on its way: to be written, or refused already."""

    line: Line
    index: str
    doc_id: str
    source: SourceFilter | None = None
    write: DocumentWrite | None = None
    refused: SearchError | None = None


@dataclass(slots=True)
class _Bulk:
    """A request under way. Of what is done only the answer's text is kept."""

    node: SearchBackend
    defaults: _Defaults
    wanted: PathFilter | None = None
    count: int = 0
    has_errors: bool = False
    _answered: list[bytes] = field(default_factory=list)

    async def write(self, lines: list[Line]) -> None:
        """Do them, in order. Raises SearchError for what spoils the whole request, UnavailableError."""
        items = await _in_thread(sum(len(line.document) for line in lines), self._items, lines)
        writes = [item.write for item in items if item.write is not None]
        results = await self.node.write(writes, self.defaults.refresh) if writes else []
        self._answered += await _in_thread(len(items) * 500, self._answers, items, results)
        self.count += len(items)

    def items(self) -> bytes:
        return b"[" + b",".join(self._answered) + b"]"

    def _items(self, lines: list[Line]) -> list[_Item]:
        problems = [problem for line in lines for problem in self._problems(line)]
        if problems:
            text = "".join(f"{number}: {problem};" for number, problem in enumerate(problems[:100], 1))
            raise SearchError("action_request_validation_exception", f"Validation Failed: {text}")
        return [self._item(line) for line in lines]

    def _problems(self, line: Line) -> list[str]:
        missing = ["index is missing"] if line.index is None and self.defaults.index is None else []
        if line.doc_id is None and line.action in (Action.UPDATE, Action.DELETE):
            missing.append("id is missing")
        return missing

    def _item(self, line: Line) -> _Item:
        index = line.index if line.index is not None else self.defaults.index or ""
        item = _Item(line, index, generated_id() if line.doc_id is None else line.doc_id)
        try:
            item.write = self._write(item)
        except SearchError as error:
            item.refused = error
        return item

    def _write(self, item: _Item) -> DocumentWrite:
        """Raises what is wrong with this one."""
        line, metadata, defaults = item.line, item.line.metadata, self.defaults
        pipeline = no_pipeline(metadata.get("pipeline", defaults.pipeline))
        if pipeline is not None:
            raise pipeline
        item.source = defaults.source
        if metadata.get("_source") is not None:
            item.source = parse_source_filter(metadata["_source"])
        conditions = Conditions.of_line({"routing": defaults.routing, **metadata})
        if line.action is not Action.DELETE:
            problem = document_problem(line.document)
            if problem is not None:
                raise problem
        if line.action is Action.UPDATE and b'"_source"' in line.document:
            item.source = parse_source_filter(orjson.loads(line.document).get("_source", False))
        operation = conditions.operation(line.action, item.doc_id, line.document)
        aliased = metadata.get("require_alias", defaults.require_alias) in (True, "true")
        return DocumentWrite(item.index, operation, aliased)

    def _answers(self, items: list[_Item], results: list[WriteResult]) -> list[bytes]:
        done = iter(results)
        answers = [self._answer(item, next(done) if item.write else None) for item in items]
        if self.wanted is not None:
            answers = self._shown(answers, self.wanted)
        return [orjson.dumps(answer) for answer in answers]

    def _shown(self, answers: list[dict[str, Any]], wanted: PathFilter) -> list[dict[str, Any]]:
        # a source that goes out as text is no object yet
        whole = wanted.applied(orjson.loads(orjson.dumps({"items": answers})))
        shown: list[dict[str, Any]] = whole.get("items", [])
        return shown

    def _answer(self, item: _Item, result: WriteResult | None) -> dict[str, Any]:
        error = item.refused if result is None else result.result.error
        action = item.line.action.value
        if error is not None:
            self.has_errors = True
            index = item.index if result is None or not result.index else result.index
            failed = {"_index": index, "_id": item.doc_id, "status": error.status, "error": error_json(error)}
            return {action: failed}
        assert result is not None
        shown = written(self.node.catalog, result, self.defaults.refresh, item.source)
        return {action: {**shown, "status": result.result.status}}


async def _in_thread(size_bytes: int, work: Any, *arguments: Any) -> Any:
    """Here where it is little, else where it does not keep the event loop."""
    if size_bytes < LONG_BYTES:
        return work(*arguments)
    return await asyncio.to_thread(work, *arguments)
