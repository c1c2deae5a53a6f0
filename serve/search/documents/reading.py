"""Documents read: `_doc`, `_source` and `_mget`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from graphdb.config import Settings
from graphdb.search.catalog.aliases import document_routing
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.index_blocks import check_reads
from graphdb.search.catalog.state import Index
from graphdb.search.deadline import checkpoint
from graphdb.search.errors import SearchError, illegal_argument, index_closed, index_not_found, parsing
from graphdb.search.results.fetching import parse_source_filter
from serve.search.backend import SearchBackend
from serve.search.documents.shown_fields import (
    READ_PARAMETERS,
    Wanted,
    document_json,
    find_document,
    keeps_source,
    refresh_first,
    shown_source,
)
from serve.search.documents.write_options import Conditions
from serve.search.frame.answer import Answer, envelope
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint, token_name

__all__ = ["one_document", "one_index", "routes"]

# The one index that a request for a document names, itself or by an alias.


def one_index(catalog: Catalog, name: str) -> Index:
    """To read from. Errors: index_not_found_exception; index_closed_exception; cluster_block_exception;
    illegal_argument_exception for an alias of several.
    """
    index = catalog.find(name)
    if index is None:
        index = _aliased(catalog, name)
    if index.is_closed:
        raise index_closed(index.name, index.uuid)
    check_reads(index)
    return index


def _aliased(catalog: Catalog, name: str) -> Index:
    meant = [one for one in catalog.indexes() if name in one.aliases]
    if not meant:
        raise index_not_found(name)
    if len(meant) > 1:
        listed = ", ".join(one.name for one in meant)
        raise illegal_argument(
            f"alias [{name}] has more than one index associated with it [{listed}], "
            "can't execute a single index op"
        )
    return meant[0]


def one_document(catalog: Catalog, name: str, routing: str | None) -> tuple[Index, str | None]:
    """The index that is named, and the routing of a document in it: the alias's, where the request says none.

    Errors: as of `one_index`, illegal_argument_exception where both differ.
    """
    index = one_index(catalog, name)
    return index, document_routing(name, index.aliases.get(name, {}), routing)


# Single documents read: `_doc` and `_source`.

_PARAMETERS = f"{READ_PARAMETERS} version version_type"


def _single_routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    return [
        *endpoint("GET HEAD", "/{index}/_doc/{id}", _get, _PARAMETERS),
        *endpoint("GET HEAD", "/{index}/_source/{id}", _get_source, _PARAMETERS),
    ]


async def _get(exchange: Exchange) -> Answer:
    index, wanted = _wanted(exchange)
    await refresh_first(exchange, [index])
    answer = document_json(index, exchange["id"], wanted)
    return Answer(answer, 200 if answer["found"] else 404)


def _wanted(exchange: Exchange) -> tuple[Index, Wanted]:
    """The index, and the options with the routing that counts."""
    wanted = Wanted.of(exchange.parameters)
    index, routing = one_document(exchange.node.catalog, exchange["index"], wanted.routing)
    return index, replace(wanted, routing=routing)


async def _get_source(exchange: Exchange) -> Answer:
    (index, wanted), doc_id = _wanted(exchange), exchange["id"]
    await refresh_first(exchange, [index])
    document = find_document(index, doc_id, wanted)
    if document is None or not keeps_source(index):
        what = "Document" if document is None else "Source"
        reason = f"{what} not found [{index.name}]/[{doc_id}]"
        raise SearchError("resource_not_found_exception", reason, 404)
    if not wanted.shown.enabled:
        raise _fetched_nothing()
    return Answer(shown_source(document.source, wanted.shown, index.mapping))


def _fetched_nothing() -> SearchError:
    reason = "Validation Failed: 1: fetching source can not be disabled;"
    return SearchError("action_request_validation_exception", reason)


# `_mget`: many documents in one request.


def _multi_get_routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    return endpoint("GET POST", ["/_mget", "/{index}/_mget"], _get_many, READ_PARAMETERS, Body.JSON)


async def _get_many(exchange: Exchange) -> Any:
    body = await exchange.json()
    if body is None:
        raise SearchError("parse_exception", "request body is required")
    default = Wanted.of(exchange.parameters)

    def asked() -> list[_Asked]:
        return _asked(body, exchange.get("index"), default)

    def documents(of: Callable[[], list[_Asked]]) -> list[dict[str, Any]]:
        return [_item(exchange.node.catalog, one) for one in of()]

    if not exchange.parameters.boolean("refresh", False):
        return {"docs": await exchange.work.run(partial(documents, asked))}
    found = await exchange.work.run(asked)
    names = dict.fromkeys(one.index for one in found)
    catalog = exchange.node.catalog
    await refresh_first(exchange, [index for name in names if (index := catalog.find(name)) is not None])
    return {"docs": await exchange.work.run(partial(documents, lambda: found))}


@dataclass(frozen=True, slots=True)
class _Asked:
    """One document of many."""

    index: str
    doc_id: str
    wanted: Wanted


def _asked(body: Mapping[str, Any], index: str | None, default: Wanted) -> list[_Asked]:
    """Raises for an invalid request."""
    asked: list[_Asked] = []
    problems = []
    for key, value in body.items():
        if key not in ("docs", "ids"):
            raise parsing(
                f"unknown key [{key[:100]}] for a {token_name(value)}, expected [docs] or [ids]",
                line=1,
                col=1,
            )
        if not isinstance(value, list):
            raise parsing(f"unexpected value for [{key}], expected START_ARRAY", line=1, col=1)
        for item in value:
            checkpoint()
            given = _given(item, key, default)
            if given.get("_index", index) is None:
                problems.append(f"index is missing for doc {len(asked)}")
            if given.get("_id") is None:
                problems.append(f"id is missing for doc {len(asked)}")
            asked.append(_Asked(str(given.get("_index", index)), str(given.get("_id")), given["wanted"]))
    if not asked:
        problems = ["no documents to get"]
    if problems:
        text = "".join(f"{number}: {problem};" for number, problem in enumerate(problems, 1))
        raise SearchError("action_request_validation_exception", f"Validation Failed: {text}")
    return asked


def _given(item: Any, key: str, default: Wanted) -> dict[str, Any]:
    """An entry of docs or ids as an object with `wanted`."""
    if key == "ids":
        if not isinstance(item, str | int | float):
            raise illegal_argument("ids array element should only contain ids")
        return {"_id": str(item), "wanted": default}
    if not isinstance(item, dict):
        raise illegal_argument("docs array element should include an object")
    for name in item:
        if name not in _MEMBERS:
            raise SearchError(
                "parse_exception", f"failed to parse multi get request. unknown field [{name[:100]}]"
            )
    return {**item, "wanted": _wanted_of(item, default)}


_PLACE = {"_index", "_id"}
_MEMBERS = ("_index", "_id", "routing", "stored_fields", "version", "version_type", "_source")


def _wanted_of(item: Mapping[str, Any], default: Wanted) -> Wanted:
    if item.keys() <= _PLACE:
        return default
    wanted = default
    if item.get("_source") is not None:
        wanted = replace(wanted, source=parse_source_filter(item["_source"]))
    if item.get("stored_fields") is not None:
        fields = item["stored_fields"]
        fields = fields if isinstance(fields, list) else [fields]
        wanted = replace(wanted, fields=tuple(str(name) for name in fields))
    conditions = Conditions.of_line(item)
    return replace(
        wanted,
        version=conditions.version,
        version_type=conditions.version_type,
        routing=conditions.routing or wanted.routing,
    )


def _item(catalog: Catalog, asked: _Asked) -> dict[str, Any]:
    checkpoint()
    wanted = asked.wanted
    try:
        index, routing = one_document(catalog, asked.index, wanted.routing)
        if routing != wanted.routing:
            wanted = replace(wanted, routing=routing)
        return document_json(index, asked.doc_id, wanted)
    except SearchError as error:
        return {"_index": asked.index, "_id": asked.doc_id, "error": envelope(error)["error"]}


def routes(node: SearchBackend, settings: Settings) -> list[Endpoint]:
    return [*_single_routes(node, settings), *_multi_get_routes(node, settings)]
