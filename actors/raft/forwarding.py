"""What nodes of a cluster have each other do: `ForwardQueue`, requests that wait for this node's port;
`ForwardedAppends`, entries that any node may append and the leader takes.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

from actors.futures import answer
from actors.log.protocol import decode_entries, encode_entries
from actors.raft.incoming_links import Forwarded
from actors.raft.log_requests import ClusterView, ForwardedRequest
from actors.raft.peer_transport import PeerTransport
from actors.wire.messages import decode_error
from graphdb.errors import GraphDBError, LogUnavailable, NotLeader, OutcomeUnknown
from graphdb.model import LogEntry

__all__ = ["OPERATION", "ForwardQueue", "ForwardedAppends"]

_TAKEN_REQUESTS_MAX, _TAKEN_BYTES_MAX = 64, 16 << 20  # in one answer
_PATIENCE_S = 5.0  # of a request that no port takes: it is dead, or hangs
_LEFT = "the node that was asked is stopping"


class ForwardQueue:
    """Used on the loop of a `PeerTransport`."""

    def __init__(self) -> None:
        self._waiting: deque[ForwardedRequest] = deque()
        self._outcomes: dict[int, asyncio.Future[bytes]] = {}
        self._taken_by: dict[int, int] = {}  # number of the request -> the port that took it
        self._port: int | None = None
        self._port_left = False
        self._taking: Future[list[ForwardedRequest]] | None = None
        self._number = 0

    async def serve(self, forwarded: Forwarded) -> bytes:
        """Have the port perform a request. Raises what the port raises, OutcomeUnknown where it has died,
        NotLeader where it takes none any more, LogUnavailable where it has taken none for a while.

        A caller that has gone takes a request with it that no port has taken yet.
        """
        if self._port_left:
            raise NotLeader(_LEFT)
        self._number += 1
        number = self._number
        request = ForwardedRequest(number, forwarded.operation, forwarded.idempotency_key, forwarded.body)
        outcome: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._outcomes[number] = outcome
        self._waiting.append(request)
        self._hand_out()
        giving_up = asyncio.get_running_loop().call_later(_PATIENCE_S, self._give_up, request)
        try:
            return await outcome
        finally:
            giving_up.cancel()
            del self._outcomes[number]
            self._taken_by.pop(number, None)
            if request in self._waiting:
                self._waiting.remove(request)

    def take(self, port: int) -> "Future[list[ForwardedRequest]]":
        """What waits, once anything does; nothing for a port that has left. One port takes: another one means
        that the former has died.
        """
        if port != self._port:
            self._port, self._port_left = port, False
            self._forget_taken()
        taking: Future[list[ForwardedRequest]] = Future()
        if self._port_left:
            answer(taking, [])
            return taking
        self._taking = taking
        self._hand_out()
        return taking

    def leave(self, port: int) -> None:
        """The port takes no more; what waits, and what still comes before another port, is refused."""
        if self._port not in (None, port):
            return
        self._port, self._port_left = port, True
        taking, self._taking = self._taking, None
        if taking is not None:
            answer(taking, [])
        for request in tuple(self._waiting):
            self._refuse(request, NotLeader(_LEFT))

    def _give_up(self, request: ForwardedRequest) -> None:
        """The port is dead, or hangs."""
        if request in self._waiting:
            self._refuse(request, LogUnavailable("the node that was asked performs nothing now"))

    def _refuse(self, request: ForwardedRequest, error: GraphDBError) -> None:
        self._waiting.remove(request)
        future = self._outcomes[request.number]
        if not future.done():
            future.set_exception(error)

    def finish(self, number: int, succeeded: bool, outcome: bytes) -> None:
        """The port's answer to a request that it took."""
        future = self._outcomes.get(number)
        if future is None or future.done():
            return  # nobody waits any more
        if succeeded:
            future.set_result(outcome)
        else:
            future.set_exception(decode_error(outcome))

    def _hand_out(self) -> None:
        if self._taking is None or self._taking.done() or not self._waiting:
            return
        taken: list[ForwardedRequest] = []
        size = 0
        while self._waiting and len(taken) < _TAKEN_REQUESTS_MAX and size < _TAKEN_BYTES_MAX:
            request = self._waiting.popleft()
            taken.append(request)
            size += len(request.body)
            assert self._port is not None
            self._taken_by[request.number] = self._port
        taking, self._taking = self._taking, None
        answer(taking, taken)

    def _forget_taken(self) -> None:
        for number, port in self._taken_by.items():
            future = self._outcomes[number]
            if port != self._port and not future.done():
                future.set_exception(OutcomeUnknown("the node that leads was restarted meanwhile"))


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
