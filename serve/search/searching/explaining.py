"""`_explain`: the score of a document; `_validate/query`: whether a query is valid; its rewritten form."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import orjson

from graphdb.search.catalog.aliases import document_routing
from graphdb.search.catalog.index_names import Resolved
from graphdb.search.catalog.state import Index
from graphdb.search.errors import SearchError, illegal_argument, parsing
from graphdb.search.leaf_reader import Leaf
from graphdb.search.multi import AllFailed, Searchers, Target, prepare
from graphdb.search.query import explain, parse_query, rewritten_text
from graphdb.search.results.fetching import SourceFilter, parse_source_filter
from graphdb.search.scripts.stored import with_stored
from serve.search.documents.shown_fields import check_routing
from serve.search.frame.answer import Answer
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint
from serve.search.searching.search_body import QUERY_TEXT, body_with, query_of, shards_json
from serve.search.searching.search_names import NAME_PARAMETERS, ShardChoice, names_found, targets_of
from serve.search.searching.search_runner import SearchRunner

__all__ = ["endpoints"]

# `_explain`: why one document has the score that it has.

_EXPLAIN_PARAMETERS = (
    f"{QUERY_TEXT} stored_fields preference routing _source _source_includes _source_excludes"
)


def _explain_endpoints(shared: SearchRunner) -> list[Endpoint]:
    async def explain_one(exchange: Exchange) -> Any:
        runner = shared.visible_to(exchange)
        body = await exchange.json() or {}
        for name in body:
            if name != "query":
                raise parsing(f"Unknown key for a VALUE in [{name[:100]}].", line=1, col=1)
        whole = body_with(exchange.parameters, body)
        if "query" not in whole:
            raise SearchError(
                "action_request_validation_exception", "Validation Failed: 1: query is missing;"
            )
        one = _one(names_found(runner.node, exchange["index"], exchange.parameters))
        (target,) = targets_of(runner.node, [one], choice=_place_of(one.index, exchange))
        shown = None if whole.get("_source") is None else parse_source_filter(whole["_source"])
        query, _ = with_stored(whole["query"], runner.node.catalog.scripts)
        work = partial(_explained, target, query, exchange["id"], shown)
        try:
            return await runner.work.run(work)
        except (AllFailed, SearchError) as error:
            raise runner.as_failure(error, [target]) from error

    return endpoint("GET POST", "/{index}/_explain/{id}", explain_one, _EXPLAIN_PARAMETERS, Body.JSON)


def _place_of(index: Index, exchange: Exchange) -> ShardChoice:
    """The shard that the document is in. Errors: routing_missing_exception, illegal_argument_exception."""
    name, given = exchange["index"], exchange.parameters.text("routing") or None
    routing = document_routing(name, index.aliases.get(name, {}), given)
    check_routing(index, exchange["id"], routing)
    return ShardChoice(numbers=frozenset([index.shards.routing.shard_of(exchange["id"], routing)]))


def _one(found: list[Resolved]) -> Resolved:
    if len(found) != 1:
        listed = ", ".join(one.index.name for one in found)
        raise illegal_argument(f"unable to explain over more than one index [{listed}], name a single one")
    return found[0]


def _explained(target: Target, query: Any, doc_id: str, shown: SourceFilter | None) -> Answer:
    prepared = prepare({"query": query}, [target], Searchers())
    head: dict[str, Any] = {"_index": target.name, "_id": doc_id}
    place = _place(target, doc_id)
    if place is None:
        return Answer({**head, "matched": False}, 404)
    leaf, doc = place
    matched, explanation = explain(prepared.request.query, leaf, doc, target.searcher)
    answer = {**head, "matched": matched, "explanation": explanation}
    if shown is not None:
        answer["get"] = _got(leaf, doc, shown)
    return Answer(answer)


def _place(target: Target, doc_id: str) -> tuple[Leaf, int] | None:
    for leaf in target.searcher.leaves:
        doc = leaf.segment.find(doc_id)
        if doc >= 0 and leaf.live[doc]:
            return leaf, doc
    return None


def _got(leaf: Leaf, doc: int, shown: SourceFilter) -> dict[str, Any]:
    got: dict[str, Any] = {"_seq_no": int(leaf.segment.seq_nos[doc]), "_primary_term": 1, "found": True}
    if shown.enabled:
        got["_source"] = shown.applied(orjson.loads(leaf.segment.source(doc)))
    return got


# `_validate/query`: whether a query is valid, and its rewritten form.

_VALIDATE_PARAMETERS = f"{NAME_PARAMETERS} {QUERY_TEXT} explain rewrite all_shards"
_ALL: dict[str, Any] = {"match_all": {}}


def _validate_endpoints(shared: SearchRunner) -> list[Endpoint]:
    async def validate(exchange: Exchange) -> Any:
        runner = shared.visible_to(exchange)
        parameters = exchange.parameters
        explains = parameters.boolean("explain", False) or parameters.boolean("rewrite", False)
        targets = targets_of(runner.node, names_found(runner.node, exchange.get("index"), parameters))
        try:
            body = await exchange.json() or {}
            _check(body)
        except SearchError as error:
            return _refused(error, explains)
        query = query_of(parameters) or body.get("query") or _ALL
        try:
            query, _ = with_stored(query, runner.node.catalog.scripts)
            work = partial(_explanations, targets, query)
            return _answer(await runner.work.run(work), runner, explains)
        except SearchError as error:
            return _refused(error, explains)

    return endpoint(
        "GET POST",
        ["/_validate/query", "/{index}/_validate/query"],
        validate,
        _VALIDATE_PARAMETERS,
        Body.JSON,
    )


def _check(body: Mapping[str, Any]) -> None:
    for name in body:
        if name != "query":
            raise SearchError("parsing_exception", f"request does not support [{name[:100]}]")


def _refused(error: SearchError, explains: bool) -> dict[str, Any]:
    answer: dict[str, Any] = {"valid": False}
    return {**answer, "error": _detailed(error)} if explains else answer


def _explanations(targets: list[Target], query: Any) -> list[dict[str, Any]]:
    """For each index the rewritten query, or its error. Raises if the query is invalid for every index."""
    found: list[dict[str, Any]] = []
    for target in targets:
        try:
            text = rewritten_text(parse_query(query, target.context))
            found.append({"index": target.name, "valid": True, "explanation": text})
        except SearchError as error:
            if error.kind == "parsing_exception":
                raise
            found.append({"index": target.name, "valid": False, "error": _text(error)})
    return found


def _answer(found: list[dict[str, Any]], runner: SearchRunner, explains: bool) -> dict[str, Any]:
    valid = all(one["valid"] for one in found)
    shards = shards_json(len(found), (), runner.node_id)
    answer: dict[str, Any] = {
        "_shards": {name: shards[name] for name in ("total", "successful", "failed")},
        "valid": valid,
    }
    return {**answer, "explanations": found} if explains else answer


def _text(error: SearchError) -> str:
    """As Java shows an exception."""
    own = f"{_class_name(error)}[{error.reason}]"
    return own if error.cause is None else f"{own}; nested: {_text(error.cause)}"


def _detailed(error: SearchError) -> str:
    """The error as Elasticsearch writes it."""
    own = f"org.elasticsearch.common.{_class_name(error)}: {error.reason}"
    return own if error.cause is None else f"{own}; {_detailed(error.cause)}"


def _class_name(error: SearchError) -> str:
    words = error.kind.removesuffix("_exception").split("_")
    return "".join(word.capitalize() for word in words) + "Exception"


def endpoints(shared: SearchRunner) -> list[Endpoint]:
    return [*_explain_endpoints(shared), *_validate_endpoints(shared)]
