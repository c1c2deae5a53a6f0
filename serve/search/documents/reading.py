"""Single documents read: `_doc` and `_source`."""

from graphdb.config import Settings
from graphdb.search.errors import SearchError
from serve.search.backend import SearchBackend
from serve.search.documents.named_index import one_index
from serve.search.documents.sources import shown_source
from serve.search.documents.wanted import (
    READ_PARAMETERS,
    Wanted,
    document_json,
    find_document,
    keeps_source,
    refresh_first,
)
from serve.search.frame.answer import Answer
from serve.search.frame.endpoint import Endpoint, endpoint
from serve.search.frame.exchange import Exchange

__all__ = ["routes"]

_PARAMETERS = f"{READ_PARAMETERS} version version_type"


def routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    return [
        *endpoint("GET HEAD", "/{index}/_doc/{id}", _get, _PARAMETERS),
        *endpoint("GET HEAD", "/{index}/_source/{id}", _get_source, _PARAMETERS),
    ]


async def _get(exchange: Exchange) -> Answer:
    index = one_index(exchange.node.catalog, exchange["index"])
    wanted = Wanted.of(exchange.parameters)
    await refresh_first(exchange, [index])
    answer = document_json(index, exchange["id"], wanted)
    return Answer(answer, 200 if answer["found"] else 404)


async def _get_source(exchange: Exchange) -> Answer:
    index = one_index(exchange.node.catalog, exchange["index"])
    wanted, doc_id = Wanted.of(exchange.parameters), exchange["id"]
    await refresh_first(exchange, [index])
    document = find_document(index, doc_id, wanted)
    if document is None or not keeps_source(index):
        what = "Document" if document is None else "Source"
        reason = f"{what} not found [{index.name}]/[{doc_id}]"
        raise SearchError("resource_not_found_exception", reason, 404)
    if not wanted.shown.enabled:
        raise _fetched_nothing()
    return Answer(shown_source(document.source, wanted.shown))


def _fetched_nothing() -> SearchError:
    reason = "Validation Failed: 1: fetching source can not be disabled;"
    return SearchError("action_request_validation_exception", reason)
