"""`_validate/query`: whether a query can be run, and what it becomes."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from graphdb.search.errors import SearchError
from graphdb.search.multi import Target
from graphdb.search.query import parse_query, rewritten_text
from serve.search.frame.endpoint import Body, Endpoint, endpoint
from serve.search.frame.exchange import Exchange
from serve.search.searching.search_body import QUERY_TEXT, query_of
from serve.search.searching.search_envelope import shards_json
from serve.search.searching.search_names import NAME_PARAMETERS, names_found, targets_of
from serve.search.searching.search_runner import SearchRunner

__all__ = ["endpoints"]

_PARAMETERS = f"{NAME_PARAMETERS} {QUERY_TEXT} explain rewrite all_shards"
_ALL: dict[str, Any] = {"match_all": {}}


def endpoints(shared: SearchRunner) -> list[Endpoint]:
    async def validate(exchange: Exchange) -> Any:
        runner = shared.seen_by(exchange)
        parameters = exchange.parameters
        explains = parameters.boolean("explain", False) or parameters.boolean("rewrite", False)
        targets = targets_of(runner.node, names_found(runner.node, exchange.get("index"), parameters))
        try:
            body = await exchange.json() or {}
            _check(body)
        except SearchError as error:
            return _refused(error, explains)
        query = query_of(parameters) or body.get("query") or _ALL
        work = partial(_explanations, targets, query)
        try:
            return _answer(await runner.work.run(work), runner, explains)
        except SearchError as error:
            return _refused(error, explains)

    return endpoint(
        "GET POST", ["/_validate/query", "/{index}/_validate/query"], validate, _PARAMETERS, Body.JSON
    )


def _check(body: Mapping[str, Any]) -> None:
    for name in body:
        if name != "query":
            raise SearchError("parsing_exception", f"request does not support [{name[:100]}]")


def _refused(error: SearchError, explains: bool) -> dict[str, Any]:
    answer: dict[str, Any] = {"valid": False}
    return {**answer, "error": _detailed(error)} if explains else answer


def _explanations(targets: list[Target], query: Any) -> list[dict[str, Any]]:
    """For each index what the query is there, or why it is none. Raises for what is no query anywhere."""
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
    """As Elasticsearch shows what it could not read."""
    own = f"org.elasticsearch.common.{_class_name(error)}: {error.reason}"
    return own if error.cause is None else f"{own}; {_detailed(error.cause)}"


def _class_name(error: SearchError) -> str:
    words = error.kind.removesuffix("_exception").split("_")
    return "".join(word.capitalize() for word in words) + "Exception"
