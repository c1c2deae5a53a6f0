"""`/queries`: what is running, and an end to it."""

from dataclasses import asdict

import orjson
from starlette.requests import Request
from starlette.responses import Response

from serve.backend import RunningQueries
from serve.errors import error_response

__all__ = ["QueriesEndpoint"]

_NOT_STORED = {"Cache-Control": "no-store"}


class QueriesEndpoint:
    """GET /queries, GET and DELETE /queries/{id}."""

    def __init__(self, running: RunningQueries) -> None:
        self._running = running

    async def get(self, _request: Request) -> Response:
        """The queries and updates that are under way, the oldest first."""
        running = [asdict(query) for query in self._running.running_queries()]
        return Response(
            orjson.dumps({"queries": running}), headers=_NOT_STORED, media_type="application/json"
        )

    async def get_one(self, request: Request) -> Response:
        """One of them."""
        query_id: str = request.path_params["id"]
        for query in self._running.running_queries():
            if query.id == query_id:
                return Response(
                    orjson.dumps(asdict(query)), headers=_NOT_STORED, media_type="application/json"
                )
        return _unknown(query_id)

    async def delete(self, request: Request) -> Response:
        """End one: whoever waits for its answer gets 503."""
        query_id: str = request.path_params["id"]
        if not self._running.cancel_query(query_id):
            return _unknown(query_id)
        return Response(orjson.dumps({"success": True}), headers=_NOT_STORED, media_type="application/json")


def _unknown(query_id: str) -> Response:
    return error_response(404, f"no query with the id {query_id!r} is running", _NOT_STORED)
