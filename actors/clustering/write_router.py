"""`WriteRouter`: takes each write to the node that leads, and to the next where leaders change meanwhile."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable

from actors.clustering.cluster_follower import ClusterFollower
from actors.clustering.forward_batches import ForwardBatches
from actors.clustering.forwarded_writes import ForwardedWrite, decode_confirmation
from actors.raft.log_requests import ForwardedRequest
from actors.raft.raft_log_client import RaftLogClient
from graphdb.errors import BodyTooLarge, LogUnavailable, NotLeader, OutcomeUnknown, UnavailableError
from graphdb.log import request_ids
from graphdb.model import Confirmation

__all__ = ["WriteRouter"]

_RETRY_S = 10.0  # after that, what has failed is not tried again
_PAUSE_S = 0.05
_SEEN_HERE_S = 2.0


class WriteRouter:
    """Owned by a clustered node, on its event loop.

    A write has one request id, however often it is tried: the log takes it once.
    """

    def __init__(
        self,
        node_id: int,
        log: RaftLogClient,
        cluster: ClusterFollower,
        committed_index: Callable[[], int],
        wait_for_index: Callable[[int, float], Awaitable[None]],
        write_timeout_s: float,
    ) -> None:
        """committed_index: up to where the log is committed, as this node knows.

        write_timeout_s: how long a write that is performed elsewhere may take.
        """
        self._node_id = node_id
        self._log = log
        self._cluster = cluster
        self._committed_index = committed_index
        self._wait_for_index = wait_for_index
        self._write_timeout_s = write_timeout_s
        self._batches: dict[int, ForwardBatches] = {}

    async def route(
        self,
        request_id: bytes | None,
        perform: Callable[[bytes, int], Awaitable[Confirmation]],
        describe: Callable[[int], ForwardedWrite],
        *,
        quick: bool = False,
    ) -> Confirmation:
        """Have a write performed by the leader: here with perform(request_id, since), elsewhere as described.

        The write may be in the log behind `since` already. A quick one may share its way with others. Raises
        what performing raises, NotLeader where there is no leader, OutcomeUnknown.
        """
        request_id = request_id or request_ids.fresh(os.urandom(16))
        since = self._committed_index()
        give_up_at = asyncio.get_running_loop().time() + _RETRY_S
        failure: UnavailableError
        unknown: OutcomeUnknown | None = None
        while True:
            leader_id = await self._leader(unknown)
            try:
                if leader_id == self._node_id:
                    return await perform(request_id, since)
                return await self._forward(leader_id, request_id, describe(since), quick)
            except OutcomeUnknown as error:
                failure = unknown = error
            except (NotLeader, LogUnavailable) as error:
                failure = unknown or error  # an earlier try may have been taken
            except (UnavailableError, BodyTooLarge) as error:  # neither says what an earlier try has come to
                raise unknown or error from None
            if asyncio.get_running_loop().time() > give_up_at:
                raise failure
            await self._cluster.change(_PAUSE_S)

    async def _leader(self, unknown: OutcomeUnknown | None) -> int:
        try:
            return await self._cluster.leader()
        except NotLeader as error:
            raise unknown or error from None

    async def _forward(
        self, leader_id: int, request_id: bytes, write: ForwardedWrite, quick: bool
    ) -> Confirmation:
        request = ForwardedRequest(0, write.operation, request_id.hex(), write.encode())
        if quick:
            answer = await self._batches_to(leader_id).forward(request)
        else:
            answer = await self._log.forward(leader_id, request, self._write_timeout_s)
        confirmation = decode_confirmation(answer)
        with contextlib.suppress(UnavailableError):  # who writes here can read it here, if it is soon
            await self._wait_for_index(confirmation.snapshot_index, _SEEN_HERE_S)
        return confirmation

    def _batches_to(self, leader_id: int) -> ForwardBatches:
        batches = self._batches.get(leader_id)
        if batches is None:
            batches = self._batches[leader_id] = ForwardBatches(self._log, leader_id, self._write_timeout_s)
        return batches
