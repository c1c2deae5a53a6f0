"""Endpoints that write one document."""

import re
from typing import Any
from urllib.parse import quote

from graphdb.config import Settings
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.catalog_commands import DocumentWrite, WriteResult
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.results.fetching import SourceFilter, parse_source_filter
from graphdb.search.segments.operations import PRIMARY_TERM, Action, Operation, OperationResult, Outcome
from serve.search.backend import SearchBackend
from serve.search.documents.ingesting import write_documents
from serve.search.documents.shown_fields import SOURCE_PARAMETERS, asked_source, shown_source
from serve.search.documents.write_options import (
    WRITE_PARAMETERS,
    Conditions,
    check_document,
    generated_id,
    refresh_of,
)
from serve.search.frame.answer import Answer
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint

__all__ = ["location", "routes", "written"]

# The answer for a written document.

_UNRESERVED = re.compile(r"[A-Za-z0-9_.~-]*", re.ASCII)  # which quoting leaves as it is, as mostly


def written(
    catalog: Catalog, result: WriteResult, refresh: str = "false", source: SourceFilter | None = None
) -> dict[str, Any]:
    """One that did not fail. source: show the document that an update made."""
    done = result.result
    answer: dict[str, Any] = {"_index": result.index, "_id": done.doc_id, "_version": done.version}
    answer["result"] = _word(done)
    if refresh == "true":
        answer["forced_refresh"] = True
    answer["_shards"] = _shards(catalog, result)
    answer |= {"_seq_no": done.seq_no, "_primary_term": PRIMARY_TERM}
    if source is not None and source.enabled and done.source is not None:
        answer["get"] = {
            "_seq_no": done.seq_no,
            "_primary_term": PRIMARY_TERM,
            "found": True,
            "_source": shown_source(done.source, source),
        }
    return answer


def location(result: WriteResult, routing: str | None) -> str:
    """Where a document that was created is."""
    path = f"/{_quoted(result.index)}/_doc/{_quoted(result.result.doc_id)}"
    return path if routing is None else f"{path}?routing={quote(routing, safe='')}"


def _quoted(text: str) -> str:
    return text if _UNRESERVED.fullmatch(text) else quote(text, safe="")


def _word(done: OperationResult) -> str:
    return (done.outcome or Outcome.NOOP).value


def _shards(catalog: Catalog, result: WriteResult) -> dict[str, int]:
    """`_shards`: the configured copies as total; 1 as successful, which is the log's."""
    if result.result.outcome is Outcome.NOOP:
        return {"total": 0, "successful": 0, "failed": 0}
    index = catalog.find(result.index)
    replicas = 1 if index is None else int(index.settings.get("number_of_replicas", 1))
    return {"total": 1 + replicas, "successful": 1, "failed": 0}


# Single documents written: `_doc`, `_create`, `_update`, and deleted.

_CONDITIONS = "if_seq_no if_primary_term version version_type"
_INDEX = f"{WRITE_PARAMETERS} {_CONDITIONS} op_type pipeline require_alias require_data_stream"
_INDEX += " include_source_on_error"
_UPDATE = f"{WRITE_PARAMETERS} {SOURCE_PARAMETERS} if_seq_no if_primary_term lang retry_on_conflict"
_UPDATE += " require_alias include_source_on_error"
_DELETE = f"{WRITE_PARAMETERS} {_CONDITIONS}"


def routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    return [
        *endpoint("PUT POST", "/{index}/_doc/{id}", _index, _INDEX, Body.JSON),
        *endpoint("POST", "/{index}/_doc", _index_new, _INDEX, Body.JSON),
        *endpoint("PUT POST", "/{index}/_create/{id}", _create, _INDEX, Body.JSON),
        *endpoint("POST", "/{index}/_update/{id}", _update, _UPDATE, Body.JSON),
        *endpoint("DELETE", "/{index}/_doc/{id}", _delete, _DELETE),
    ]


async def _index(exchange: Exchange) -> Answer:
    return await _stored(exchange, exchange["id"], _action(exchange, "index"))


async def _index_new(exchange: Exchange) -> Answer:
    return await _stored(exchange, generated_id(), _action(exchange, "create"))


async def _create(exchange: Exchange) -> Answer:
    if (exchange.parameters.text("op_type") or "create").lower() != "create":
        raise illegal_argument(f"opType must be 'create', found: [{exchange.parameters.text('op_type')}]")
    return await _stored(exchange, exchange["id"], Action.CREATE)


def _action(exchange: Exchange, default: str) -> Action:
    given = exchange.parameters.text("op_type") or default
    if given.lower() not in ("index", "create"):
        raise illegal_argument(f"opType must be 'create' or 'index', found: [{given}]")
    return Action(given.lower())


async def _stored(exchange: Exchange, doc_id: str, action: Action) -> Answer:
    conditions = Conditions.of(exchange.parameters)
    body = (await exchange.body()).strip()
    await check_document(body)
    pipeline = exchange.parameters.text("pipeline")
    return await _done(exchange, conditions.operation(action, doc_id, body), pipeline=pipeline)


async def _update(exchange: Exchange) -> Answer:
    # Nothing comes between the reading and the writing of one without a script: there is nothing to retry.
    retries = exchange.parameters.integer("retry_on_conflict", None)
    request = await exchange.json()
    if request is None:
        reason = "Validation Failed: 1: script or doc is missing;"
        raise SearchError("action_request_validation_exception", reason)
    source = asked_source(exchange.parameters, None)
    if source is None and request.get("_source") is not None:
        source = parse_source_filter(request["_source"])
    operation = Conditions.of(exchange.parameters).operation(
        Action.UPDATE, exchange["id"], (await exchange.body()).strip()
    )
    operation = operation._replace(wants_source=source is not None and source.enabled)
    return await _done(exchange, operation, source, retries)


async def _delete(exchange: Exchange) -> Answer:
    operation = Conditions.of(exchange.parameters).operation(Action.DELETE, exchange["id"])
    return await _done(exchange, operation)


async def _done(
    exchange: Exchange,
    operation: Operation,
    source: SourceFilter | None = None,
    retries: int | None = None,
    pipeline: str | None = None,
) -> Answer:
    """One write, as all others. Raises its error."""
    refresh = refresh_of(exchange.parameters)
    aliased = exchange.parameters.boolean("require_alias", False)
    streams = exchange.parameters.boolean("require_data_stream", False)
    write = DocumentWrite(exchange["index"], operation, aliased, require_data_stream=streams)
    (result,) = await write_documents(exchange.node, exchange.work, [write], [pipeline], refresh, retries)
    if result.result.error is not None:
        raise result.result.error
    headers = {}
    if result.result.status == 201:
        headers["Location"] = location(result, operation.routing)
    value: dict[str, Any] = written(exchange.node.catalog, result, refresh, source)
    return Answer(value, result.result.status, headers)
