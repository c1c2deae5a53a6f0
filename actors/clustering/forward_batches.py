"""`ForwardBatches`: quick writes on their way to the leader, many in one call. A call between nodes costs a
millisecond of processor time on both sides, far more than what a quick write takes there.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from actors.raft.log_requests import ForwardedRequest, encode_requests
from actors.raft.peer_protocol import error_of_peer
from actors.raft.raft_log_client import RaftLogClient
from graphdb.errors import GraphDBError, OutcomeUnknown

__all__ = ["BATCH", "ForwardBatches", "encode_outcomes"]

BATCH = "batch"  # the operation: `encode_requests`, answered by their outcomes in the same order
_OUTCOME = struct.Struct("<?I")
_CALLS_MAX = 2  # one is under way while the next one fills
_REQUESTS_MAX, _BYTES_MAX = 256, 4 << 20  # in one call


@dataclass(slots=True)
class _Waiting:
    request: ForwardedRequest
    answer: "asyncio.Future[bytes]"


class ForwardBatches:
    """To one leader, on one event loop."""

    def __init__(self, log: RaftLogClient, leader_id: int, timeout_s: float) -> None:
        """timeout_s: for each call."""
        self._log = log
        self._leader_id = leader_id
        self._timeout_s = timeout_s
        self._queue: deque[_Waiting] = deque()
        self._calls: set[asyncio.Task[None]] = set()

    async def forward(self, request: ForwardedRequest) -> bytes:
        """As `RaftLogClient.forward`."""
        waiting = _Waiting(request, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        self._begin_call()
        return await waiting.answer

    def _begin_call(self) -> None:
        if len(self._calls) < _CALLS_MAX and self._queue:
            call = asyncio.get_running_loop().create_task(self._call())
            self._calls.add(call)
            call.add_done_callback(self._end_call)

    def _end_call(self, call: "asyncio.Task[None]") -> None:
        self._calls.discard(call)
        self._begin_call()

    async def _call(self) -> None:
        batch = self._take()
        if not batch:  # another call has them, or nobody waits any more
            return
        body = encode_requests(replace(each.request, number=i) for i, each in enumerate(batch))
        request = ForwardedRequest(0, BATCH, "", body)
        try:
            outcomes = _decode_outcomes(await self._log.forward(self._leader_id, request, self._timeout_s))
            if len(outcomes) != len(batch):
                raise OutcomeUnknown(f"{len(outcomes)} answers to {len(batch)} requests")
        except GraphDBError as error:
            outcomes = [type(error)(*error.args) for _ in batch]
        for waiting, outcome in zip(batch, outcomes, strict=True):
            _settle(waiting.answer, outcome)

    def _take(self) -> list[_Waiting]:
        taken: list[_Waiting] = []
        size = 0
        while self._queue and len(taken) < _REQUESTS_MAX and size < _BYTES_MAX:
            waiting = self._queue.popleft()
            if not waiting.answer.done():
                taken.append(waiting)
                size += len(waiting.request.body)
        return taken


def _settle(answer: "asyncio.Future[bytes]", outcome: bytes | GraphDBError) -> None:
    if answer.done():
        return
    if isinstance(outcome, bytes):
        answer.set_result(outcome)
    else:
        answer.set_exception(outcome)


def encode_outcomes(outcomes: Iterable[tuple[bool, bytes]]) -> bytes:
    """Of each request: whether it succeeded, and its answer or error (`actors.wire.error_codec`)."""
    return b"".join(_OUTCOME.pack(succeeded, len(data)) + data for succeeded, data in outcomes)


def _decode_outcomes(body: bytes) -> list[bytes | GraphDBError]:
    """Raises OutcomeUnknown where the body ends within an outcome."""
    outcomes: list[bytes | GraphDBError] = []
    offset = 0
    while offset + _OUTCOME.size <= len(body):
        succeeded, length = _OUTCOME.unpack_from(body, offset)
        offset += _OUTCOME.size
        data = body[offset : offset + length]
        outcomes.append(data if succeeded else error_of_peer(data))
        offset += length
    if offset != len(body):
        raise OutcomeUnknown("an answer that is cut short")
    return outcomes
