"""`/cluster`: what the node knows of its cluster, its members, and who leads."""

import re
from dataclasses import asdict
from typing import Annotated

import orjson
from pydantic import AfterValidator, Field
from starlette.requests import Request
from starlette.responses import Response

from graphdb.config.service import split_address
from graphdb.errors import InvalidParameter
from graphdb.node import ClusterReport, PeerReport
from serve.backend import Admin
from serve.json_bodies import JSON_TYPE, JsonBody, read_json

__all__ = ["ClusterEndpoint", "NewLeader", "NewMember", "report_of"]

_BODY_BYTES_MAX = 4_096
# What gRPC is given to call: a name or an address, not one of its other schemes such as unix:.
_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]", re.ASCII)
_NUMBER = re.compile(r"[1-9][0-9]{0,9}", re.ASCII)
_NODE_ID_MAX = 0xFFFF_FFFF


def report_of(admin: Admin) -> ClusterReport:
    """The node's report; of one that stands alone, that of a cluster which it leads by itself."""
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
    """A node to expect; address is host:port of its port 7002."""

    node_id: NodeId
    address: Annotated[str, AfterValidator(_host_and_port)]


class NewLeader(JsonBody):
    """The member that is to lead."""

    node_id: NodeId


class ClusterEndpoint:
    """GET /cluster, POST /cluster/members, DELETE /cluster/members/{node_id}, POST /cluster/leader.

    Each answers with the report. One that follows a change may not show it yet: it is what this node knows.
    """

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    async def get(self, _request: Request) -> Response:
        return self._report()

    async def add(self, request: Request) -> Response:
        """Expect a new node, or one that is known at another address."""
        member = await read_json(request, NewMember, _BODY_BYTES_MAX)
        await self._admin.add_member(member.node_id, member.address)
        return self._report()

    async def remove(self, request: Request) -> Response:
        """Take a node out."""
        await self._admin.remove_member(_read_node_id(request.path_params["node_id"]))
        return self._report()

    async def lead(self, request: Request) -> Response:
        """Have a member lead."""
        await self._admin.hand_over((await read_json(request, NewLeader, _BODY_BYTES_MAX)).node_id)
        return self._report()

    def _report(self) -> Response:
        body = orjson.dumps(asdict(report_of(self._admin)))
        return Response(body, headers={"Cache-Control": "no-store"}, media_type=JSON_TYPE)


def _read_node_id(text: str) -> int:
    """By the path. Raises InvalidParameter."""
    if not _NUMBER.fullmatch(text) or int(text) > _NODE_ID_MAX:
        raise InvalidParameter("node_id", f"{text!r} is not a node's number: 1, 2, 3 and so on")
    return int(text)
