"""`_explain`: why one document has the score that it has."""

from functools import partial
from typing import Any

import orjson

from graphdb.search.catalog.resolution import Resolved
from graphdb.search.errors import SearchError, illegal_argument, parsing
from graphdb.search.multi import AllFailed, Searchers, Target, prepare
from graphdb.search.query import explain
from graphdb.search.results.source_filter import SourceFilter, parse_source_filter
from graphdb.search.segment import Leaf
from serve.search.frame.answer import Answer
from serve.search.frame.endpoint import Body, Endpoint, endpoint
from serve.search.frame.exchange import Exchange
from serve.search.searching.search_body import QUERY_TEXT, body_with
from serve.search.searching.search_names import names_found, targets_of
from serve.search.searching.search_runner import SearchRunner

__all__ = ["endpoints"]

_PARAMETERS = f"{QUERY_TEXT} stored_fields preference routing _source _source_includes _source_excludes"


def endpoints(shared: SearchRunner) -> list[Endpoint]:
    async def explain_one(exchange: Exchange) -> Any:
        runner = shared.seen_by(exchange)
        body = await exchange.json() or {}
        for name in body:
            if name != "query":
                raise parsing(f"Unknown key for a VALUE in [{name[:100]}].", line=1, col=1)
        whole = body_with(exchange.parameters, body)
        if "query" not in whole:
            raise SearchError(
                "action_request_validation_exception", "Validation Failed: 1: query is missing;"
            )
        (target,) = targets_of(
            runner.node, [_one(names_found(runner.node, exchange["index"], exchange.parameters))]
        )
        shown = None if whole.get("_source") is None else parse_source_filter(whole["_source"])
        work = partial(_explained, target, whole["query"], exchange["id"], shown)
        try:
            return await runner.work.run(work)
        except (AllFailed, SearchError) as error:
            raise runner.as_failure(error, [target]) from error

    return endpoint("GET POST", "/{index}/_explain/{id}", explain_one, _PARAMETERS, Body.JSON)


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
