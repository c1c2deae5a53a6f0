"""`_termvectors` and `_mtermvectors`: the terms of documents, stored ones and given ones."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import orjson

from graphdb.config import Settings
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.results.term_vectors import TermChoice, VectorsAsked, term_vectors
from serve.search.backend import SearchBackend
from serve.search.documents.reading import one_document
from serve.search.frame.answer import error_json, search_error
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint
from serve.search.searching.search_names import search_context

__all__ = ["routes"]

_FLAGS = ("offsets", "positions", "payloads", "field_statistics", "term_statistics")
_PARAMETERS = f"{' '.join(_FLAGS)} fields preference realtime routing version version_type"
_DOCUMENT = {"_index", "_id", "doc", "fields", "filter", "per_field_analyzer", "routing", "_routing"}
_DOCUMENT |= {"realtime", "version", "version_type", *_FLAGS}
_DOCUMENTS_MAX = 1_000
_CHOICES = tuple(one.name for one in fields(TermChoice))


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    one, many = (
        ["/{index}/_termvectors", "/{index}/_termvectors/{id}"],
        ["/_mtermvectors", "/{index}/_mtermvectors"],
    )
    return [
        *endpoint("GET POST", one, _one, _PARAMETERS, Body.JSON),
        *endpoint("GET POST", many, _many, f"{_PARAMETERS} ids", Body.JSON),
    ]


async def _one(exchange: Exchange) -> dict[str, Any]:
    body = dict(await exchange.json() or {})
    own = {"_index": exchange["index"]} | ({} if exchange.get("id") is None else {"_id": exchange["id"]})
    whole = {**_of_parameters(exchange), **body, **own}
    return await exchange.work.run(lambda: _vectors(exchange, whole))


async def _many(exchange: Exchange) -> dict[str, Any]:
    body = await exchange.json() or {}
    for name in body:
        if name not in ("docs", "ids", "parameters"):
            raise SearchError("x_content_parse_exception", f"unexpected field [{name[:100]}]")
    shared = body.get("parameters", {})
    docs, ids = body.get("docs", []), body.get("ids", exchange.parameters.strings("ids"))
    if not isinstance(shared, Mapping) or not isinstance(docs, list) or not isinstance(ids, list):
        raise illegal_argument("[docs] and [ids] must be lists, [parameters] an object")
    wanted = [*docs, *({"_id": one} for one in ids)]
    if not wanted:
        raise SearchError(
            "action_request_validation_exception",
            "Validation Failed: 1: multi term vectors: no documents requested;",
        )
    if len(wanted) > _DOCUMENTS_MAX:
        raise illegal_argument(f"more than [{_DOCUMENTS_MAX}] documents")
    index = exchange.get("index")
    around = {**_of_parameters(exchange), **shared, **({} if index is None else {"_index": index})}

    for one in (shared, *wanted):
        if not isinstance(one, Mapping):
            raise illegal_argument("each of [docs] must be an object")
        _check_members(one)

    def item(given: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return _vectors(exchange, {**around, **given})
        except SearchError as error:
            found = {"_index": given.get("_index", index), "_id": given.get("_id")}
            return {**found, "error": error_json(search_error(error))}

    return {"docs": await exchange.work.run(lambda: [item(one) for one in wanted])}


def _of_parameters(exchange: Exchange) -> dict[str, Any]:
    parameters = exchange.parameters
    found: dict[str, Any] = {name: parameters.boolean(name, True) for name in _FLAGS if name in parameters}
    if "fields" in parameters:
        found["fields"] = parameters.strings("fields")
    if "realtime" in parameters:
        found["realtime"] = parameters.boolean("realtime", True)
    if "routing" in parameters:
        found["routing"] = parameters.text("routing")
    return found


def _vectors(exchange: Exchange, given: Mapping[str, Any]) -> dict[str, Any]:
    """Of one document. Raises SearchError."""
    _check_members(given)
    name, doc_id, document = given.get("_index"), given.get("_id"), given.get("doc")
    if not isinstance(name, str) or not name:
        raise illegal_argument("index is missing")
    if (doc_id is None) == (document is None):
        raise illegal_argument("either [_id] or [doc] is needed, and not both")
    asked = _asked(given)
    routing = given.get("routing", given.get("_routing"))
    index, its_routing = one_document(exchange.node.catalog, name, None if routing is None else str(routing))
    head: dict[str, Any] = {"_index": index.name}
    if document is None:
        found = index.shards.get(str(doc_id), its_routing, given.get("realtime") is not False)
        head["_id"] = str(doc_id)
        if found is None:
            return {**head, "_version": 0, "found": False, "took": 0}
        source, head["_version"] = orjson.loads(found.source), found.version
    else:
        if not isinstance(document, Mapping):
            raise illegal_argument("[doc] must be an object")
        source, head["_version"] = document, 0
    context = search_context(exchange.node, index)
    for analyzer in asked.analyzers.values():
        if context.analyzers.find(analyzer) is None:
            raise illegal_argument(f"failed to find analyzer [{analyzer[:100]}]")
    vectors = term_vectors(source, context, index.searcher(), asked)
    return {**head, "found": True, "took": 0, "term_vectors": vectors}


def _check_members(given: Mapping[str, Any]) -> None:
    """Errors: parse_exception."""
    for member in given:
        if member not in _DOCUMENT:
            raise SearchError(
                "parse_exception", f"failed to parse term vectors request. unknown field [{member[:100]}]"
            )


def _asked(given: Mapping[str, Any]) -> VectorsAsked:
    names = given.get("fields")
    names = [names] if isinstance(names, str) else names
    if names is not None and not (isinstance(names, list) and all(isinstance(one, str) for one in names)):
        raise illegal_argument("[fields] must be a list of names")
    flags: dict[str, Any] = {}
    for flag in _FLAGS:
        value = given.get(flag)
        if value is None or flag == "payloads":  # there are none
            continue
        if not isinstance(value, bool):
            raise illegal_argument(f"[{flag}] must be a boolean")
        flags[flag] = value
    analyzers = given.get("per_field_analyzer", {})
    if not isinstance(analyzers, Mapping) or not all(isinstance(one, str) for one in analyzers.values()):
        raise illegal_argument("[per_field_analyzer] must have names of analyzers by field")
    return VectorsAsked(
        fields=tuple(names) if names else None,
        analyzers=analyzers,
        choice=_choice(given.get("filter")),
        **flags,
    )


def _choice(given: Any) -> TermChoice | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise illegal_argument("[filter] must be an object")
    for name, value in given.items():
        if name not in _CHOICES:
            raise SearchError("parse_exception", f"unknown filter [{name[:100]}], one of {sorted(_CHOICES)}")
        if type(value) is not int or value < 0:
            raise illegal_argument(f"[{name}] must be a number that is not negative")
    return TermChoice(**given)
