"""`/health`, `/queries`, `/cluster`, `/whoami` and `/api_keys`: the state of the node, and who may use it."""

import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from typing import Annotated

import orjson
from pydantic import AfterValidator, Field
from starlette.requests import Request
from starlette.responses import Response

from graphdb.access.permissions import Permission
from graphdb.access.visibility import FULL_VISIBILITY
from graphdb.config.access import ApiKey
from graphdb.config.service import split_address
from graphdb.errors import InvalidParameter
from graphdb.node import ClusterReport, NodeStatus, PeerReport, RunningQuery, worse_status
from serve.access.request_scope import principal_of
from serve.backend import Admin, Changes, Purges, RunningQueries
from serve.bodies import JSON_TYPE, JsonBody, read_json
from serve.errors import error_response
from serve.routing import Handler

__all__ = [
    "ClusterEndpoint",
    "HealthEndpoint",
    "NewLeader",
    "NewMember",
    "QueriesEndpoint",
    "list_of_keys",
    "node_health",
    "report_of",
    "tell_principal",
]

_NOT_STORED = {"Cache-Control": "no-store"}

_BODY_BYTES_MAX = 4_096
# gRPC also accepts other schemes, such as unix:, so only a host name or an address is allowed.
_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]", re.ASCII)
_NUMBER = re.compile(r"[1-9][0-9]{0,9}", re.ASCII)
_NODE_ID_MAX = 0xFFFF_FFFF


class HealthEndpoint:
    """GET /health: 200 while requests are served, otherwise 503 with the same record."""

    def __init__(
        self, changes: Changes, admin: Admin, purges: Purges, search_word: Callable[[], str] | None
    ) -> None:
        """search_word: the state of the search port: healthy, degraded or starting. None without one."""
        self._changes, self._admin, self._purges = changes, admin, purges
        self._search_word = search_word

    async def get(self, _request: Request) -> Response:
        status = node_health(self._admin.status(), self._search_word)
        record = {
            **asdict(status),
            "embedded_store": asdict(self._changes.embedded_store()),
            "views": {view.name: view.state for view in self._admin.view_statuses()},
        }
        if status.reason is None:
            del record["reason"]
        if (purge_error := self._purges.error()) is not None:
            record["purge_error"] = purge_error
        code = 200 if status.status in ("healthy", "degraded") else 503
        headers = {"Cache-Control": "no-store"} | ({"Retry-After": "1"} if code == 503 else {})
        return Response(orjson.dumps(record), code, headers, media_type="application/json")


def node_health(graph: NodeStatus, search_word: Callable[[], str] | None) -> NodeStatus:
    """The status of the whole node, all of whose ports are to take requests."""
    if search_word is None:
        return graph
    return replace(graph, status=worse_status(graph.status, search_word()))


async def tell_principal(request: Request) -> Response:
    """GET /whoami: the principal of the request."""
    principal = principal_of(request.scope)
    record = {
        "name": principal.name,
        "provider": principal.provider,
        "roles": sorted(principal.roles),
        "permission": principal.permission.word.lower(),
        "sees_everything": principal.visibility == FULL_VISIBILITY,
        "expires_at": principal.expires_at,
    }
    return Response(orjson.dumps(record), headers=_NOT_STORED, media_type=JSON_TYPE)


def list_of_keys(keys: Iterable[ApiKey]) -> Handler:
    """GET /api_keys: the keys of the configuration by name, without their digests."""
    found = [
        {
            "name": key.name,
            "roles": sorted(key.roles),
            "sids": list(key.sids),
            "expires_at": None if key.expires_at is None else key.expires_at.isoformat(),
        }
        for key in keys
    ]
    body = orjson.dumps({"api_keys": found})

    async def get(_request: Request) -> Response:
        return Response(body, headers=_NOT_STORED, media_type=JSON_TYPE)

    return get


class QueriesEndpoint:
    """GET /queries, GET and DELETE /queries/{id}: for admins those of all, for others their own."""

    def __init__(self, running: RunningQueries) -> None:
        self._running = running

    async def get(self, request: Request) -> Response:
        """The running queries and updates, the oldest first."""
        running = [asdict(query) for query in self._of(request)]
        return Response(
            orjson.dumps({"queries": running}), headers=_NOT_STORED, media_type="application/json"
        )

    async def get_one(self, request: Request) -> Response:
        """One running query."""
        query_id: str = request.path_params["id"]
        for query in self._of(request):
            if query.id == query_id:
                return Response(
                    orjson.dumps(asdict(query)), headers=_NOT_STORED, media_type="application/json"
                )
        return _unknown_query(query_id)

    async def delete(self, request: Request) -> Response:
        """Cancel a query: its client gets 503."""
        query_id: str = request.path_params["id"]
        is_known = any(query.id == query_id for query in self._of(request))
        if not (is_known and self._running.cancel_query(query_id)):
            return _unknown_query(query_id)
        return Response(orjson.dumps({"success": True}), headers=_NOT_STORED, media_type="application/json")

    def _of(self, request: Request) -> list[RunningQuery]:
        principal = principal_of(request.scope)
        found = self._running.running_queries()
        if principal.permission >= Permission.ADMIN:
            return found
        return [query for query in found if query.principal == principal.qualified_name]


def _unknown_query(query_id: str) -> Response:
    return error_response(404, f"no query with the id {query_id!r} is running", _NOT_STORED)


def report_of(admin: Admin) -> ClusterReport:
    """The node's report. That of a standalone node is of a cluster with one member."""
    report = admin.cluster()
    if report is not None:
        return report
    status = admin.status()
    index = status.snapshot_index
    return ClusterReport(
        node_id=status.node_id,
        role=status.role,
        term=status.current_term,
        leader_id=status.node_id,
        commit_index=index,
        last_index=index,
        applied_index=index,
        elections=0,
        messages_dropped=0,
        members=tuple(
            PeerReport(member.node_id, member.address, member.role, member.reachable, index)
            for member in status.cluster_members
        ),
    )


def _host_and_port(text: str) -> str:
    host, _ = split_address(text)
    if not _HOST.fullmatch(host):
        raise ValueError(f"{host!r} is neither a host's name nor its address")
    return text


NodeId = Annotated[int, Field(ge=1, le=_NODE_ID_MAX)]


class NewMember(JsonBody):
    """A new member; address is host:port of its port 7002."""

    node_id: NodeId
    address: Annotated[str, AfterValidator(_host_and_port)]


class NewLeader(JsonBody):
    """The member to transfer leadership to."""

    node_id: NodeId


class ClusterEndpoint:
    """GET /cluster, POST /cluster/members, DELETE /cluster/members/{node_id}, POST /cluster/leader.

    Each answers with this node's report. On a follower it may not show a change yet.
    """

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    async def get(self, _request: Request) -> Response:
        return self._report()

    async def add(self, request: Request) -> Response:
        """Add a new node, or a known one at another address."""
        member = await read_json(request, NewMember, _BODY_BYTES_MAX)
        await self._admin.add_member(member.node_id, member.address)
        return self._report()

    async def remove(self, request: Request) -> Response:
        """Remove a node."""
        await self._admin.remove_member(_read_node_id(request.path_params["node_id"]))
        return self._report()

    async def lead(self, request: Request) -> Response:
        """Transfer leadership."""
        await self._admin.hand_over((await read_json(request, NewLeader, _BODY_BYTES_MAX)).node_id)
        return self._report()

    def _report(self) -> Response:
        body = orjson.dumps(asdict(report_of(self._admin)))
        return Response(body, headers={"Cache-Control": "no-store"}, media_type=JSON_TYPE)


def _read_node_id(text: str) -> int:
    """The number in the path. Raises InvalidParameter."""
    if not _NUMBER.fullmatch(text) or int(text) > _NODE_ID_MAX:
        raise InvalidParameter("node_id", f"{text!r} is not a node's number: 1, 2, 3 and so on")
    return int(text)
