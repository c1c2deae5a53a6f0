"""Ingest pipelines: kept, shown, deleted, tried out."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphdb.config import Settings
from graphdb.errors import QueryTimeout
from graphdb.search.catalog.catalog_commands import (
    DeletePipelines,
    PutComponentTemplate,
    PutIndexTemplate,
    PutPipeline,
)
from graphdb.search.catalog.index_templates import component_template, index_template
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.wildcards import wildcard_match
from serve.search.backend import SearchBackend
from serve.search.documents.ingesting import Trial, definitions_of, timestamp
from serve.search.frame.answer import Answer, error_json, search_error
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint
from serve.search.frame.parameters import java_integer

if TYPE_CHECKING:  # most nodes have no pipelines
    from graphdb.search.ingest.document import IngestDocument
    from graphdb.search.ingest.pipeline import Pipeline, Traced

__all__ = ["routes"]

_DOCUMENTS_MAX = 1_000  # of one simulation
_MADE_MAX = 20_000_000  # characters and entries that a simulation makes and shows


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    one, trial = "/_ingest/pipeline/{id}", "/_ingest/pipeline/{id}/_simulate"
    whole = ["/_ingest/_simulate", "/_ingest/{index}/_simulate"]
    return [
        *endpoint("GET", ["/_ingest/pipeline", one], _get, "master_timeout summary"),
        *endpoint("PUT", one, _put, "if_version master_timeout timeout", Body.JSON),
        *endpoint("DELETE", one, _delete, "master_timeout timeout"),
        *endpoint("GET POST", ["/_ingest/pipeline/_simulate", trial], _simulate, "verbose", Body.JSON),
        *endpoint("GET POST", whole, _simulate_whole, "pipeline merge_type", Body.JSON),
        *endpoint("GET", "/_ingest/processor/grok", _grok, "ecs_compatibility s"),
    ]


async def _get(exchange: Exchange) -> Answer:
    """By ids and patterns between commas; 404 where none fits. `summary`: only that they are there."""
    named, shown = exchange.get("id"), {}
    for pattern in (named or "*").split(","):
        for name, body in sorted(exchange.node.catalog.pipelines.items()):
            if wildcard_match(pattern, name):
                shown[name] = body
    if exchange.parameters.boolean("summary", False):
        shown = {name: {} for name in shown}
    return Answer(shown, 200 if shown or named is None else 404)


async def _put(exchange: Exchange) -> dict[str, Any]:
    from graphdb.search.ingest.pipeline import checked_pipeline

    body = await exchange.json()
    if body is None:
        raise no_body()
    scripts = exchange.node.catalog.scripts
    checked = await exchange.work.run(lambda: checked_pipeline(exchange["id"], body, scripts))
    await exchange.node.perform(PutPipeline(exchange["id"], checked, _wanted_version(exchange)))
    return {"acknowledged": True}


def _wanted_version(exchange: Exchange) -> int | None:
    text = exchange.parameters.text("if_version")
    version = None if text is None else java_integer(text)
    if text is not None and version is None:
        raise illegal_argument(
            f"invalid value [{text[:100]}] specified for [if_version]. must be an integer value"
        )
    return version


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
    body = await exchange.json()
    if body is None:
        raise no_body()
    documents, given = _documents(body), body.get("pipeline")
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


def no_body() -> SearchError:
    return SearchError("parse_exception", "request body or source parameter is required")


def _documents(body: dict[str, Any]) -> list[Any]:
    documents = body.get("docs")
    if not isinstance(documents, list):
        reason = "[docs] required property is missing"
        raise SearchError("parse_exception", reason, 400, {"property_name": "docs"})
    if not documents:
        raise illegal_argument("must specify at least one document in [docs]")
    if len(documents) > _DOCUMENTS_MAX:
        raise illegal_argument(f"[docs] may have at most [{_DOCUMENTS_MAX}] documents")
    return documents


def _document(given: Any, now: str, room: list[int]) -> "IngestDocument":
    """Errors: parse_exception."""
    from graphdb.search.ingest.document import METADATA, IngestDocument

    if not isinstance(given, dict) or not isinstance(given.get("_source"), dict):
        reason = "[_source] required property is missing"
        raise SearchError("parse_exception", reason, 400, {"property_name": "_source"})
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


# `_ingest/_simulate`: what all pipelines of their indexes make of documents, and whether they would fit.

_SUBSTITUTIONS = (
    "pipeline_substitutions",
    "component_template_substitutions",
    "index_template_substitutions",
)


async def _simulate_whole(exchange: Exchange) -> dict[str, Any]:
    body = await exchange.json()
    if body is None:
        raise no_body()
    unknown = sorted(body.keys() - {"docs", *_SUBSTITUTIONS})
    if unknown:
        raise SearchError(
            "x_content_parse_exception", f"[{unknown[0][:100]}] is not supported in a simulation"
        )
    pipelines, components, templates = (_named_objects(body, name) for name in _SUBSTITUTIONS)
    asked = [_placed(one, exchange.get("index")) for one in _documents(body)]
    pipeline = exchange.parameters.text("pipeline")
    node = exchange.node

    def simulated() -> list[dict[str, Any]]:
        state = node.catalog.state
        for name, component in components.items():
            state = component_template(state, PutComponentTemplate(name, component))
        for name, template in templates.items():
            state = index_template(state, PutIndexTemplate(name, template))
        state = replace(state, pipelines={**state.pipelines, **pipelines})
        trial = Trial(state, node.now_ms(), _MADE_MAX)
        return [{"doc": trial.of(index, doc_id, source, pipeline)} for index, doc_id, source in asked]

    return {"docs": await exchange.work.run(simulated)}


def _named_objects(body: dict[str, Any], name: str) -> dict[str, Any]:
    given = body.get(name) or {}
    if not isinstance(given, dict) or not all(isinstance(one, dict) for one in given.values()):
        raise SearchError("x_content_parse_exception", f"[{name}] must be an object of objects by name")
    return given


def _placed(given: Any, default: str | None) -> tuple[str, str, dict[str, Any]]:
    """(index, id, source) of a document. Errors: parse_exception."""
    index = given.get("_index", default) if isinstance(given, dict) else None
    if index is None or not isinstance(given.get("_source"), dict):
        missing = "_source" if index is not None else "_index"
        reason = f"[{missing}] required property is missing"
        raise SearchError("parse_exception", reason, 400, {"property_name": missing})
    return str(index), str(given.get("_id", "<n/a>")), given["_source"]


def _shown(document: "IngestDocument") -> dict[str, Any]:
    meta = {name: str(value) for name, value in document.meta.items() if value is not None}
    return {**meta, "_source": document.source, "_ingest": document.ingest}
