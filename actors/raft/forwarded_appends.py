"""`ForwardedAppends`: entries that any node of a cluster may append; whichever leads takes them."""

import asyncio
import struct
from collections.abc import Callable
from concurrent.futures import Future

from actors.log.protocol import decode_entries, encode_entries
from actors.raft.incoming_links import Forwarded
from actors.raft.log_requests import ClusterView
from actors.raft.peer_transport import PeerTransport
from graphdb.errors import LogUnavailable, NotLeader
from graphdb.model import LogEntry

__all__ = ["OPERATION", "ForwardedAppends"]

OPERATION = "append"  # of forwarded requests that are meant for these
_RETRY_S = 5.0  # an election may take so long; after that, what has failed is not tried again
_AGAIN_S = 0.05
_INDEX = struct.Struct("<Q")  # the answer of the node that leads
_FORWARD_S = 12.0  # a little longer than the leader's own log tries


class ForwardedAppends:
    """Used on the loop of a `RaftDriver`. The node that leads needs no port of its own for them."""

    def __init__(
        self,
        append: Callable[[list[LogEntry]], "Future[int]"],
        transport: PeerTransport,
        view: Callable[[], ClusterView],
    ) -> None:
        """append: to this node's log, where it leads; see `RaftDriver.propose`."""
        self._append = append
        self._transport = transport
        self._view = view

    async def append(self, entries: list[LogEntry]) -> int:
        """Have entries appended; the index of the first, once they are committed.

        Tried again only where nothing can have been stored. Raises NotLeader (none leads), Overloaded,
        BodyTooLarge, LogUnavailable (nothing was stored), OutcomeUnknown.
        """
        give_up_at = asyncio.get_running_loop().time() + _RETRY_S
        while True:
            try:
                return await self._try(entries)
            except (NotLeader, LogUnavailable):
                if asyncio.get_running_loop().time() >= give_up_at:
                    raise
            await asyncio.sleep(_AGAIN_S)

    async def serve(self, request: Forwarded) -> bytes:
        """Another node appends, for which this one leads."""
        return _INDEX.pack(await asyncio.wrap_future(self._append(decode_entries(request.body))))

    async def _try(self, entries: list[LogEntry]) -> int:
        view = self._view()
        if view.role == "leader":
            return await asyncio.wrap_future(self._append(entries))
        if view.leader_id is None:
            raise NotLeader("the cluster has no leader: no majority of its nodes is in reach")
        forwarding = self._transport.forward(
            view.leader_id, OPERATION, encode_entries(entries), timeout_s=_FORWARD_S
        )
        body = await asyncio.wrap_future(forwarding)
        index: int = _INDEX.unpack(body)[0]
        return index
