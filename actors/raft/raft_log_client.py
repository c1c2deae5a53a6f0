"""`RaftLogClient`: a node's `RaftLog` from its port's side."""

import secrets
from collections.abc import Awaitable, Callable, Sequence

from actors.log.client import LogClient
from actors.log.protocol import decode_index, encode_entries, encode_index
from actors.raft.log_requests import (
    ClusterView,
    Desk,
    ForwardedRequest,
    MemberChange,
    RaftLogRequest,
    decode_requests,
    decode_view,
    encode_change,
    encode_confirm,
    encode_finish,
    encode_forward,
    encode_offer,
    encode_timeout,
    encode_watch,
)
from graphdb.model import LogEntry

__all__ = ["RaftLogClient"]

_CONFIRM_S = 3.0
_SLACK_S = 2.0  # beyond the time that the log itself takes care of
_ANYWHERE_S = 20.0  # the log tries for 5 s, and waits for a leader's answer for 12 s
_CHANGE_S = 20.0  # the log gives a change up after 10 s, and so does the leader's


class RaftLogClient(LogClient):
    """A `LogAccess` whose appends succeed on the leader only, and what else a port asks of its cluster.

    Everything raises LogUnavailable where the log does not answer.
    """

    settles_at_once = False

    def __init__(self, endpoint: Callable[[], Awaitable[str]]) -> None:
        """See `LogClient`."""
        super().__init__(endpoint)
        self._port = secrets.randbits(63)  # so that the log can tell this port from one before it

    async def confirm(self, index: int) -> bool:
        """Whether nothing that concerns quads had been stored behind index at the call. Raises NotLeader."""
        body = encode_confirm(index, _CONFIRM_S)
        newest = await self._ask(RaftLogRequest.CONFIRM, body, timeout_s=_CONFIRM_S + _SLACK_S)
        return decode_index(newest) == index

    async def append_anywhere(self, entries: Sequence[LogEntry]) -> int:
        """See `LogClient.append_anywhere`, `AppendsAnywhere.append`."""
        body = encode_entries(entries)
        return decode_index(await self._request(RaftLogRequest.ANYWHERE, body, timeout_s=_ANYWHERE_S))

    async def watch(self, version: int, committed_index: int) -> ClusterView:
        """The view of the cluster as soon as it is another one, or more is committed; else after a while."""
        body = encode_watch(version, committed_index)
        return decode_view(await self._ask(RaftLogRequest.WATCH, body, timeout_s=None))

    async def last_effect_index(self) -> int:
        """The last entry of this node's log that changes anything, committed or not."""
        return decode_index(await self._ask(RaftLogRequest.LAST_EFFECT, b""))

    async def read_index(self, timeout_s: float) -> int:
        """An index that a linearizable read has to see; the log can be read so far. Raises NotLeader."""
        body = encode_timeout(timeout_s)
        return decode_index(await self._ask(RaftLogRequest.READ_INDEX, body, timeout_s=timeout_s + _SLACK_S))

    async def forward(self, node_id: int, request: ForwardedRequest, timeout_s: float) -> bytes:
        """Have another node perform a request, at most once: its answer.

        Raises what that node raises, LogUnavailable (it was not given to that node), OutcomeUnknown.
        """
        body = encode_forward(node_id, request, timeout_s)
        return await self._request(RaftLogRequest.FORWARD, body, timeout_s=timeout_s + _SLACK_S)

    async def take(self, desk: Desk = Desk.GRAPH) -> list[ForwardedRequest]:
        """Requests of other nodes' clients, once there are any; none after `leave`. Each must be finished."""
        return decode_requests(await self._ask(desk.take, encode_index(self._port), timeout_s=None))

    async def leave(self, desk: Desk = Desk.GRAPH) -> None:
        """Take no more requests: one that waits is answered, with nothing; those of others are refused."""
        await self._ask(desk.leave, encode_index(self._port))

    async def finish(self, number: int, succeeded: bool, outcome: bytes, desk: Desk = Desk.GRAPH) -> None:
        """Answer a request that was taken."""
        await self._ask(desk.finish, encode_finish(number, succeeded, outcome))

    async def change(self, change: MemberChange) -> None:
        """Have the cluster changed. Raises MembershipRefused, UnavailableError."""
        await self._request(RaftLogRequest.CHANGE, encode_change(change), timeout_s=_CHANGE_S)

    async def offer(self, index: int, tree: str) -> None:
        """Give a snapshot of the state at index for peers that need one; the tree is the log's from then on.

        Raises LogCompacted.
        """
        await self._ask(RaftLogRequest.OFFER, encode_offer(index, tree))

    async def adopted(self, index: int) -> None:
        """The store has become the received snapshot at index."""
        await self._ask(RaftLogRequest.ADOPTED, encode_index(index))
