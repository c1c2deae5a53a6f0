"""`/{dataset}` and the paths below it: queries, updates and graphs at the addresses that Fuseki has.

Unlike `/data`, a request that names no graph is for the whole dataset.
"""

from starlette.requests import Request
from starlette.responses import Response

from graphdb.access.permissions import Permission
from serve.access.authorization import require
from serve.bodies import media_type_name
from serve.graph.graph_store import GraphStoreEndpoint
from serve.graph.sparql import FORM_TYPE, QUERY_TYPE, UPDATE_TYPE, SparqlEndpoint
from serve.parameters import Parameters

__all__ = ["DatasetEndpoint"]

_SPARQL_TYPES = (QUERY_TYPE, FORM_TYPE, UPDATE_TYPE)


class DatasetEndpoint:
    """GET, HEAD, PUT, POST and DELETE of /{dataset} and /{dataset}/data."""

    def __init__(self, sparql: SparqlEndpoint, graphs: GraphStoreEndpoint) -> None:
        self._sparql, self._graphs = sparql, graphs

    async def get(self, request: Request) -> Response:
        """A query, else a graph, else the dataset."""
        if "query" in Parameters(request.scope["query_string"]):
            return await self._sparql.get(request)
        return await self.get_data(request)

    async def post(self, request: Request) -> Response:
        """A query or an update; else RDF or a patch, which needs the permission Write."""
        if media_type_name(request) in _SPARQL_TYPES:
            return await self._sparql.post(request)
        require(request.scope, Permission.WRITE)
        return await self._graphs.post(request)

    async def get_data(self, request: Request) -> Response:
        """A graph, else the dataset."""
        return await (self._graphs.get if _names_graph(request) else self._graphs.get_dataset)(request)

    async def put(self, request: Request) -> Response:
        """Replace a graph, else the dataset."""
        return await (self._graphs.put if _names_graph(request) else self._graphs.put_dataset)(request)

    async def delete(self, request: Request) -> Response:
        """Delete a graph, else everything."""
        return await (self._graphs.delete if _names_graph(request) else self._graphs.delete_dataset)(request)


def _names_graph(request: Request) -> bool:
    parameters = Parameters(request.scope["query_string"])
    return any(name in parameters for name in ("graph", "default", "dataset"))
