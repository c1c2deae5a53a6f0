"""`_rank_eval`: how good searches are, by ratings of documents; `_knn_search`: the old address of `knn`."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphdb.search.errors import SearchError, illegal_argument, parsing
from graphdb.search.results.rank_metrics import RATING_MAX, RankMetric, parse_metric
from serve.search.frame.answer import error_json, search_error
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint
from serve.search.searching.search_names import NAME_PARAMETERS, ShardChoice, names_found
from serve.search.searching.search_runner import Asked, SearchRunner

__all__ = ["endpoints"]

_REQUESTS_MAX = 10_000
_AT_ONCE_MAX = 64
_MEMBERS = {"requests", "metric", "max_concurrent_searches"}
_REQUEST_MEMBERS = {"id", "request", "ratings", "summary_fields"}
_NOT_RATED = {
    "aggs": "aggregations",
    "aggregations": "aggregations",
    "suggest": "suggest section",
    "highlight": "highlighter section",
    "explain": "explain",
    "profile": "profile",
}
_KNN_MEMBERS = {"knn", "filter", "_source", "fields", "docvalue_fields", "stored_fields"}


def endpoints(shared: SearchRunner) -> list[Endpoint]:
    async def evaluate(exchange: Exchange) -> Any:
        runner, parameters = shared.visible_to(exchange), exchange.parameters
        if parameters.text("search_type") not in (None, "query_then_fetch", "dfs_query_then_fetch"):
            raise illegal_argument(f"No search type for [{str(parameters.text('search_type'))[:100]}]")
        body = await exchange.json()
        if body is None:
            raise SearchError("parse_exception", "request body is required")
        metric = parse_metric(body.get("metric"))
        requests = _requests(body, metric)
        at_once = asyncio.Semaphore(_at_once(body))
        names = exchange.get("index") or parameters.text("index")
        shares = parameters.text("search_type") == "dfs_query_then_fetch"

        async def answered(one: "_RatedRequest") -> dict[str, Any] | SearchError:
            async with at_once:
                try:
                    runner.work.check_time()
                    found = names_found(runner.node, names, parameters)
                    asked = Asked(one.body, shared_statistics=shares, principal=exchange.principal)
                    answer = await runner.search(found, asked)
                except Exception as error:  # noqa: BLE001 - each search fails by itself
                    return search_error(error)
                return one.evaluated(metric, answer["hits"]["hits"])

        with runner.work.several():
            answers = await asyncio.gather(*map(answered, requests))
        together = list(zip(requests, answers, strict=True))
        details = {one.id: answer for one, answer in together if not isinstance(answer, SearchError)}
        failures = {
            one.id: {"error": error_json(answer)}
            for one, answer in together
            if isinstance(answer, SearchError)
        }
        scores = [detail["metric_score"] for detail in details.values()]
        score = math.fsum(scores) / len(scores) if scores else None
        return {"metric_score": score, "details": details, "failures": failures}

    async def nearest(exchange: Exchange) -> Any:
        runner = shared.visible_to(exchange)
        found = names_found(runner.node, exchange["index"], exchange.parameters)
        asked = Asked(
            _as_search(await exchange.json()),
            principal=exchange.principal,
            choice=ShardChoice.of(exchange.parameters),
            raw=True,
        )
        return await runner.search(found, asked)

    paths = ["/_rank_eval", "/{index}/_rank_eval"]
    return [
        *endpoint("GET POST", paths, evaluate, f"{NAME_PARAMETERS} index search_type", Body.JSON),
        *endpoint("GET POST", "/{index}/_knn_search", nearest, f"{NAME_PARAMETERS} routing", Body.JSON),
    ]


@dataclass(frozen=True, slots=True)
class _RatedRequest:
    """body: of its search. ratings: by index and id."""

    id: str
    body: Mapping[str, Any]
    ratings: Mapping[tuple[str, str], int]

    def evaluated(self, metric: RankMetric, hits: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        places = [(hit["_index"], hit["_id"]) for hit in hits]
        rated = metric.rated([self.ratings.get(one) for one in places], list(self.ratings.values()))
        unrated = [{"_index": one[0], "_id": one[1]} for one in places if one not in self.ratings]
        shown = [{"hit": hit, "rating": self.ratings.get(one)} for hit, one in zip(hits, places, strict=True)]
        return {
            "metric_score": rated.score,
            "unrated_docs": unrated,
            "hits": shown,
            "metric_details": rated.details,
        }


def _requests(body: Mapping[str, Any], metric: RankMetric) -> list[_RatedRequest]:
    """Errors: illegal_argument_exception, parsing_exception, x_content_parse_exception."""
    if "templates" in body:
        raise illegal_argument("[templates] are not supported: give each request its [request]")
    for name in body:
        if name not in _MEMBERS:
            raise SearchError("x_content_parse_exception", f"[rank_eval] unknown field [{name[:100]}]")
    given = body.get("requests")
    if not isinstance(given, list) or not given:
        raise illegal_argument("Required [requests]: a list that is not empty")
    if len(given) > _REQUESTS_MAX:
        raise illegal_argument(f"more than [{_REQUESTS_MAX}] rated requests")
    requests = [_request(one, metric) for one in given]
    if len({one.id for one in requests}) < len(requests):
        raise illegal_argument("[requests] must have different [id]s")
    return requests


def _request(given: Any, metric: RankMetric) -> _RatedRequest:
    if not isinstance(given, Mapping):
        raise parsing("[requests] must be objects", line=1, col=1)
    for name in given:
        if name not in _REQUEST_MEMBERS:
            raise SearchError("x_content_parse_exception", f"[request] unknown field [{name[:100]}]")
    request_id, search, ratings = given.get("id"), given.get("request"), given.get("ratings")
    if not isinstance(request_id, str) or not isinstance(search, Mapping) or not isinstance(ratings, list):
        raise illegal_argument("Required [id, request, ratings]")
    for name, shown in _NOT_RATED.items():
        if name in search:
            raise illegal_argument(f"Query in rated requests should not contain {shown}.")
    fields = given.get("summary_fields") or False
    whole = {**search, "size": metric.k, "_source": fields}
    return _RatedRequest(request_id, whole, dict(_rating(one) for one in ratings))


def _rating(given: Any) -> tuple[tuple[str, str], int]:
    if not isinstance(given, Mapping) or given.keys() != {"_index", "_id", "rating"}:
        raise illegal_argument("each of [ratings] has [_index], [_id] and [rating]")
    index, doc_id, rating = given["_index"], given["_id"], given["rating"]
    if not isinstance(index, str) or not isinstance(doc_id, str):
        raise illegal_argument("[_index] and [_id] must be strings")
    if type(rating) is not int or not 0 <= rating <= RATING_MAX:
        raise illegal_argument(f"[rating] must be a number from 0 to {RATING_MAX}")
    return (index, doc_id), rating


def _at_once(body: Mapping[str, Any]) -> int:
    wanted = body.get("max_concurrent_searches", 10)
    if type(wanted) is not int or wanted < 1:
        raise illegal_argument("[max_concurrent_searches] must be positive")
    return min(wanted, _AT_ONCE_MAX)


def _as_search(body: Mapping[str, Any] | None) -> dict[str, Any]:
    """The search that a body of `_knn_search` stands for. Raises SearchError."""
    given = dict(body or {})
    for name in given:
        if name not in _KNN_MEMBERS:
            raise parsing(f"Unknown key for a VALUE in [{name[:100]}].", line=1, col=1)
    knn = given.pop("knn", None)
    if not isinstance(knn, Mapping):
        raise illegal_argument("missing required [knn] section in search body")
    only = given.pop("filter", None)
    search = {"knn": dict(knn) if only is None else {**knn, "filter": only}, **given}
    if type(knn.get("k")) is int:  # what is no number is refused with the rest
        search["size"] = knn["k"]
    return search
