"""`_delete_by_query` and `_update_by_query`: every document that a query finds, deleted or indexed anew."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from graphdb.config import Settings
from graphdb.search.catalog.catalog_commands import DocumentWrite
from graphdb.search.errors import SearchError, illegal_argument, parsing
from graphdb.search.segments.operations import PRIMARY_TERM, Action, Operation
from serve.search.backend import SearchBackend
from serve.search.documents.rewriting import (
    REWRITE_PARAMETERS,
    Rewriting,
    Stored,
    found_documents,
    most_of,
    refuse_reading,
)
from serve.search.documents.write_options import no_pipeline
from serve.search.frame.answer import Answer
from serve.search.frame.endpoint import Body, Endpoint, endpoint
from serve.search.frame.exchange import Exchange
from serve.search.searching.search_body import QUERY_TEXT, query_of
from serve.search.searching.search_names import NAME_PARAMETERS, names_found

__all__ = ["routes"]

_PARAMETERS = (
    f"{REWRITE_PARAMETERS} {QUERY_TEXT} {NAME_PARAMETERS} conflicts from max_docs pipeline preference"
)
_PARAMETERS += (
    " request_cache routing scroll_size search_timeout search_type sort stats terminate_after version"
)
_MEMBERS = ("query", "slice", "sort", "max_docs", "conflicts")


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    return [
        *endpoint("POST", "/{index}/_delete_by_query", _delete_by_query, _PARAMETERS, Body.JSON),
        *endpoint("POST", "/{index}/_update_by_query", _update_by_query, _PARAMETERS, Body.JSON),
    ]


async def _delete_by_query(exchange: Exchange) -> Answer:
    body = await _body(exchange)
    if body.get("query") is None:
        raise SearchError("action_request_validation_exception", "Validation Failed: 1: query is missing;")
    answer = await _rewritten(exchange, body, Action.DELETE)
    del answer.value["updated"], answer.value["created"]
    return answer


async def _update_by_query(exchange: Exchange) -> Answer:
    pipeline = no_pipeline(exchange.parameters.text("pipeline"))
    if pipeline is not None:
        raise pipeline
    answer = await _rewritten(exchange, await _body(exchange), Action.INDEX)
    del answer.value["created"]
    return answer


async def _body(exchange: Exchange) -> dict[str, Any]:
    """What the request asks for, the parameters put in. Raises for what cannot be done."""
    body = dict(await exchange.json() or {})
    if "script" in body:
        raise illegal_argument("cannot execute scripts: scripting is not supported")
    refuse_reading(body)
    for name in body:
        if name not in _MEMBERS:
            raise parsing(f"Unknown key for a VALUE in [{name[:100]}].", line=1, col=1)
    query = query_of(exchange.parameters)
    return body if query is None else {**body, "query": query}


async def _rewritten(exchange: Exchange, body: Mapping[str, Any], action: Action) -> Answer:
    rewriting = Rewriting.of(exchange, body.get("conflicts"))
    most = most_of(exchange, body.get("max_docs"))
    refreshed = exchange.parameters.boolean("refresh", False)
    indexes = names_found(exchange.node, exchange["index"], exchange.parameters)
    asked = {name: body[name] for name in ("query", "slice") if body.get(name) is not None}
    found = await found_documents(exchange, indexes, asked)
    answer = await rewriting.run(found, most, partial(_again, action))
    if refreshed:
        await exchange.node.refresh([one.index for one in indexes])
    return answer


def _again(action: Action, document: Stored) -> DocumentWrite:
    """As it was seen, or not at all: one that has changed since is a conflict."""
    source = b"" if action is Action.DELETE else document.source
    operation = Operation(action, document.doc_id, source, document.routing, document.seq_no, PRIMARY_TERM)
    return DocumentWrite(document.index, operation)
