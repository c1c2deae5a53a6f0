"""Ingest pipelines: kept, shown, deleted, tried out."""

from typing import TYPE_CHECKING, Any

from graphdb.config import Settings
from graphdb.errors import QueryTimeout
from graphdb.search.catalog.catalog_commands import DeletePipelines, PutPipeline
from graphdb.search.errors import SearchError, parsing
from graphdb.search.mapping.wildcards import wildcard_match
from serve.search.backend import SearchBackend
from serve.search.documents.ingesting import definitions_of, timestamp
from serve.search.frame.answer import Answer, error_json, search_error
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint

if TYPE_CHECKING:  # most nodes have no pipelines
    from graphdb.search.ingest.document import IngestDocument
    from graphdb.search.ingest.pipeline import Pipeline, Traced

__all__ = ["routes"]

_DOCUMENTS_MAX = 1_000  # of one simulation
_MADE_MAX = 20_000_000  # characters and entries that a simulation makes and shows


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    one, trial = "/_ingest/pipeline/{id}", "/_ingest/pipeline/{id}/_simulate"
    return [
        *endpoint("GET", ["/_ingest/pipeline", one], _get, "master_timeout summary"),
        *endpoint("PUT", one, _put, "if_version master_timeout timeout", Body.JSON),
        *endpoint("DELETE", one, _delete, "master_timeout timeout"),
        *endpoint("GET POST", ["/_ingest/pipeline/_simulate", trial], _simulate, "verbose", Body.JSON),
        *endpoint("GET", "/_ingest/processor/grok", _grok, "ecs_compatibility s"),
    ]


async def _get(exchange: Exchange) -> Answer:
    """By ids and patterns between commas; 404 where an id is unknown."""
    named, shown = exchange.get("id"), {}
    for pattern in (named or "*").split(","):
        for name, body in sorted(exchange.node.catalog.pipelines.items()):
            if wildcard_match(pattern, name):
                shown[name] = body
    is_missing = not shown and named is not None and "*" not in named
    return Answer(shown, 404 if is_missing else 200)


async def _put(exchange: Exchange) -> dict[str, Any]:
    from graphdb.search.ingest.pipeline import checked_pipeline

    body = await exchange.json()
    if body is None:
        raise SearchError("parse_exception", "request body is required")
    scripts = exchange.node.catalog.scripts
    checked = await exchange.work.run(lambda: checked_pipeline(exchange["id"], body, scripts))
    await exchange.node.perform(PutPipeline(exchange["id"], checked))
    return {"acknowledged": True}


async def _delete(exchange: Exchange) -> dict[str, Any]:
    pattern, there = exchange["id"], exchange.node.catalog.pipelines
    names = [name for name in sorted(there) if wildcard_match(pattern, name)] if "*" in pattern else [pattern]
    if not names and pattern != "*":
        raise SearchError("resource_not_found_exception", f"pipeline [{pattern[:200]}] is missing", 404)
    await exchange.node.perform(DeletePipelines(tuple(names)))
    return {"acknowledged": True}


async def _grok(exchange: Exchange) -> dict[str, Any]:
    from graphdb.search.ingest.grok import PATTERNS

    names = sorted(PATTERNS) if exchange.parameters.boolean("s", False) else PATTERNS
    return {"patterns": {name: PATTERNS[name] for name in names}}


# `_simulate`: what a pipeline makes of some documents, without anything being written.


async def _simulate(exchange: Exchange) -> dict[str, Any]:
    """By the pipeline of the path, or the body's."""
    body = await exchange.json() or {}
    documents, given = body.get("docs"), body.get("pipeline")
    if not isinstance(documents, list) or not documents or len(documents) > _DOCUMENTS_MAX:
        raise SearchError("parse_exception", "[docs] required property is missing or empty")
    definitions, name = definitions_of(exchange.node), exchange.get("id")
    verbose, now = exchange.parameters.boolean("verbose", False), timestamp(exchange.node.now_ms())

    def simulated() -> list[dict[str, Any] | None]:
        if name is not None:
            pipeline = definitions.pipeline(name)
        elif given is not None:
            pipeline = definitions.read("_simulate_pipeline", given)
        else:
            reason = "[pipeline] required property is missing"
            raise SearchError("parse_exception", reason, 400, {"property_name": "pipeline"})
        room = [_MADE_MAX]
        read = [_document(one, now, room) for one in documents]
        return [_traced(pipeline, one) if verbose else _result(pipeline, one) for one in read]

    return {"docs": await exchange.work.run(simulated)}


def _document(given: Any, now: str, room: list[int]) -> "IngestDocument":
    """Errors: parsing_exception."""
    from graphdb.search.ingest.document import METADATA, IngestDocument

    if not isinstance(given, dict) or not isinstance(given.get("_source"), dict):
        raise parsing("[_source] required property is missing in a document")
    meta = {"_index": "_index", "_id": "_id", "_version": -3}
    meta |= {name: given[name] for name in METADATA if given.get(name) is not None}
    return IngestDocument(given["_source"], meta, {"timestamp": now}, room=room)


def _result(pipeline: "Pipeline", document: "IngestDocument") -> dict[str, Any] | None:
    from graphdb.search.ingest.document import Dropped

    try:
        pipeline.run(document)
    except Dropped:
        return None
    except QueryTimeout as error:
        return {"error": error_json(search_error(error))}
    except SearchError as error:
        return {"error": error_json(error)}
    return {"doc": _shown(document)}


def _traced(pipeline: "Pipeline", document: "IngestDocument") -> dict[str, Any]:
    """With what each processor has made of it."""
    from graphdb.search.ingest.document import Dropped

    steps: list[dict[str, Any]] = []

    def trace(step: "Traced") -> None:
        about = {"tag": step.processor.tag, "description": step.processor.description}
        shown: dict[str, Any] = {"processor_type": step.processor.kind, "status": step.status}
        shown |= {name: value for name, value in about.items() if value is not None}
        if step.condition is not None:
            shown["if"] = {"condition": step.condition, "result": step.status != "skipped"}
        if step.error is not None:
            ignored = step.status == "error_ignored"
            error = error_json(step.error)
            shown |= {"ignored_error": {"error": error}} if ignored else {"error": error}
        if step.document is not None:
            shown["doc"] = _shown(step.document)
        steps.append(shown)

    try:
        pipeline.run(document, trace)
    except Dropped:
        pass
    except SearchError as error:
        if not steps or "error" not in steps[-1]:
            steps.append({"status": "error", "error": error_json(error)})
    return {"processor_results": steps}


def _shown(document: "IngestDocument") -> dict[str, Any]:
    meta = {name: str(value) for name, value in document.meta.items() if value is not None}
    return {**meta, "_source": document.source, "_ingest": document.ingest}
