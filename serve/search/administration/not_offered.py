"""What clients call and the node does not have, where the plain refusal would mislead.

Without a route `POST /_query` would be a wrong method of an index called `_query`, and a model that is not
found a wrong path, which clients take for one that is there.
"""

from graphdb.config import Settings
from graphdb.search.errors import SearchError, illegal_argument
from serve.search.backend import SearchBackend
from serve.search.frame.exchange import Body, Endpoint, Exchange, endpoint

__all__ = ["routes"]

_INSTEAD = "search with the Query DSL at [/{index}/_search], or ask the graph in SPARQL"


def routes(_node: SearchBackend, _settings: Settings) -> list[Endpoint]:
    formats = "format delimiter drop_null_columns allow_partial_results"
    model = "/_ml/trained_models/{id}"
    return [
        *endpoint("POST", ["/_query", "/_query/async"], _esql, formats, Body.JSON),
        *endpoint("GET POST", ["/_sql", "/_sql/translate"], _sql, formats, Body.JSON),
        *endpoint("POST", "/_sql/close", _sql, body=Body.JSON),
        *endpoint("POST", [f"{model}/_infer", f"{model}/deployment/_infer"], _no_model, "timeout", Body.JSON),
    ]


async def _esql(_exchange: Exchange) -> None:
    raise illegal_argument(f"ES|QL is not supported: {_INSTEAD}")


async def _sql(_exchange: Exchange) -> None:
    raise illegal_argument(f"SQL is not supported: {_INSTEAD}")


async def _no_model(exchange: Exchange) -> None:
    model = exchange.values["id"][:200]
    raise SearchError(
        "resource_not_found_exception",
        f"No known trained model with model_id [{model}]: models do not run here, make vectors before "
        "documents and queries are sent",
        404,
    )
