"""`MemberChanges`: what operators ask of the cluster, at any node; the leader does it."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial

from actors.raft.incoming_links import Forwarded
from actors.raft.log_requests import ClusterView, MemberChange, decode_change, encode_change
from actors.raft.peer_transport import PeerTransport
from actors.raft.raft_driver import RaftDriver
from graphdb.errors import LogUnavailable, MembershipRefused, NotLeader, OutcomeUnknown, UnavailableError
from graphdb.raft.raft_node import RaftNode

__all__ = ["OPERATION", "MemberChanges"]

OPERATION = "members"  # of forwarded requests that are meant for these
_TIMEOUT_S = 10.0
_AGAIN_S = 0.1


class MemberChanges:
    """Used on the loop of a `RaftDriver`."""

    def __init__(
        self, node_id: int, driver: RaftDriver, transport: PeerTransport, view: Callable[[], ClusterView]
    ) -> None:
        self._node_id = node_id
        self._driver = driver
        self._transport = transport
        self._view = view

    async def perform(self, change: MemberChange) -> None:
        """Have a change made, by whichever node leads; return when it is committed.

        A hand over is this node's own: where it does not lead, there is nothing to do.
        Raises MembershipRefused where it never can be, UnavailableError: NotLeader where none leads,
        OutcomeUnknown where it may still be made.
        """
        if change.kind == "hand over":
            await self._hand_over()
        else:
            await self._retried(lambda: self._perform_here_or_there(change))

    async def serve(self, request: Forwarded) -> bytes:
        """Another node's operator asks."""
        await self._retried(lambda: self._perform_here(decode_change(request.body)))
        return b""

    async def _hand_over(self) -> None:
        """If this node leads, let the member with the longest log lead, and wait until it does.

        Raises UnavailableError: no other can now.
        """
        async with asyncio.timeout(_TIMEOUT_S):
            while (view := self._view()).role == "leader":
                successors = [
                    (member.matched_index or 0, member.node_id)
                    for member in view.members
                    if member.node_id != self._node_id and member.voting and member.reachable
                ]
                if not successors:
                    raise UnavailableError("no other member can lead now")
                transfer = partial(RaftNode.transfer_leadership, node_id=max(successors)[1])
                with contextlib.suppress(MembershipRefused):  # the view was old
                    await asyncio.wrap_future(self._driver.call(transfer))
                await self._wait_for(lambda: self._view().role != "leader", 2.0)
        await self._wait_for(lambda: self._view().leader_id not in (None, self._node_id), 2.0)

    async def _retried(self, perform: Callable[[], Awaitable[None]]) -> None:
        """Try again what others stand in the way of; a change is the same when it is made twice."""
        refusal: UnavailableError = OutcomeUnknown("the change was not made in time")
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                while True:
                    try:
                        return await perform()
                    except UnavailableError as error:
                        refusal = error
                        await asyncio.sleep(_AGAIN_S)
        except TimeoutError:
            raise refusal from None

    async def _perform_here_or_there(self, change: MemberChange) -> None:
        view = self._view()
        if view.role == "leader":
            await self._perform_here(change)
        elif view.leader_id is None:
            raise NotLeader("no node leads the cluster")
        else:
            forwarding = self._transport.forward(
                view.leader_id, OPERATION, encode_change(change), timeout_s=_TIMEOUT_S
            )
            await asyncio.wrap_future(forwarding)

    async def _perform_here(self, change: MemberChange) -> None:
        index = await asyncio.wrap_future(self._driver.call(lambda node: _apply(node, change)))
        if change.kind == "lead":
            if not await self._wait_for(lambda: self._view().leader_id == change.node_id, 2.0):
                raise LogUnavailable(f"node {change.node_id} has not taken over")
        elif not await self._wait_for(lambda: self._view().committed_index >= index, _TIMEOUT_S):
            raise OutcomeUnknown("no majority of the cluster has answered in time")

    async def _wait_for(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        deadline = asyncio.get_running_loop().time() + timeout_s
        while not condition():
            if asyncio.get_running_loop().time() > deadline:
                return False
            await asyncio.sleep(0.01)
        return True


def _apply(node: RaftNode, change: MemberChange) -> int:
    """Make the change; the index of the log with which it is committed."""
    match change.kind:
        case "add":
            node.add_member(change.node_id, change.address)
        case "remove":
            node.remove_member(change.node_id)
        case "lead":
            node.transfer_leadership(change.node_id)
        case other:
            raise MembershipRefused(f"no change of the members: {other}")
    return node.status().last_index
