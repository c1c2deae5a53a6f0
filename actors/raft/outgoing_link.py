"""A link to a peer, and the queue of what is to be sent."""

import asyncio
import contextlib
import logging
import random
from collections import deque
from dataclasses import dataclass
from threading import Lock

import grpc.aio
from google.protobuf.message import DecodeError

from actors.loop_thread import set_event
from actors.raft.credentials import ClusterCredentials
from actors.raft.peer_protocol import (
    NONCE_BYTES,
    PROTOCOL_VERSION,
    Handshake,
    PieceReader,
    Refused,
    frames_of,
    fresh_nonce,
    is_equal,
)
from actors.raft.raft_pb2 import Answer, Frame, Greeting, Opening, Proof, Request
from actors.raft.raft_service import FrameCall, make_channel, open_call
from actors.raft.rate_limited_log import RateLimitedLog
from graphdb.errors import LogUnavailable, OutcomeUnknown, UnavailableError
from graphdb.raft.messages import MESSAGE_BYTES_MAX

__all__ = ["HANDSHAKE_TIMEOUT_S", "MailQueue", "OutgoingLink"]

# `MailQueue`: from any thread to one coroutine, bounded; when it is full the oldest message goes.


class MailQueue:
    """Putting never blocks and never fails. One coroutine on the loop takes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, messages_max: int, bytes_max: int) -> None:
        """bytes_max may be exceeded by a single message."""
        self._loop = loop
        self._messages_max, self._bytes_max = messages_max, bytes_max
        self._lock = Lock()
        self._messages: deque[bytes] = deque()
        self._bytes = 0
        self._filled = asyncio.Event()
        self.dropped_count = 0

    def put(self, messages: list[bytes]) -> None:
        """Add messages behind those that wait."""
        with self._lock:
            was_empty = not self._messages
            for message in messages:
                self._messages.append(message)
                self._bytes += len(message)
            while len(self._messages) > 1 and self._is_over():
                self._bytes -= len(self._messages.popleft())
                self.dropped_count += 1
        if was_empty:
            set_event(self._loop, self._filled)

    async def take(self) -> bytes:
        """The oldest message; waits for one."""
        while True:
            with self._lock:
                if self._messages:
                    message = self._messages.popleft()
                    self._bytes -= len(message)
                    return message
                self._filled.clear()
            await self._filled.wait()

    def clear(self) -> None:
        """Forget what waits."""
        with self._lock:
            self._messages.clear()
            self._bytes = 0

    def _is_over(self) -> bool:
        return len(self._messages) > self._messages_max or self._bytes > self._bytes_max


# `OutgoingLink`: one peer as this node calls it. It connects, proves itself, and sends what is in the
# queue.
#
# Everything but `send` happens on the loop's thread.

logger = logging.getLogger(__name__)

HANDSHAKE_TIMEOUT_S = 5.0
_CONNECT_TIMEOUT_S = 5.0
_QUEUE_MESSAGES_MAX = 4096
_QUEUE_BYTES_MAX = 64 << 20
_PAUSE_MIN_S, _PAUSE_MAX_S = 0.05, 5.0
_STEADY_S = 5.0  # a session that lasted so long was a good one: the next pause is short again


@dataclass(slots=True)
class _Session:
    """What a greeting has agreed on."""

    handshake: Handshake
    numbers: int = 0  # given to requests so far


class OutgoingLink:
    """Owned by a `PeerTransport`. It lives from `start` to `close`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        node_id: int,
        peer_id: int,
        address: str,
        own_address: str,
        credentials: ClusterCredentials,
        log: RateLimitedLog,
    ) -> None:
        """address is where to call the peer, own_address where it may call back."""
        self.address = address
        self._own_address = own_address
        self._node_id, self._peer_id = node_id, peer_id
        self._credentials = credentials
        self._log = log
        self._loop = loop
        self._queue = MailQueue(loop, _QUEUE_MESSAGES_MAX, _QUEUE_BYTES_MAX)
        self._session: _Session | None = None

    @property
    def is_open(self) -> bool:
        """Whether the peer has proved itself and messages go to it."""
        return self._session is not None

    @property
    def dropped_count(self) -> int:
        """Messages that were dropped because the peer did not take them fast enough."""
        return self._queue.dropped_count

    def send(self, messages: list[bytes]) -> None:
        """Send messages in order; none where the link is not open, for Raft sends again what matters. Any
        thread.
        """
        if self._session is not None:
            self._queue.put(messages)

    def start(self) -> None:
        """Begin to connect."""
        self._channel = make_channel(self.address, self._credentials)
        self._task = self._loop.create_task(self._run())

    async def close(self, grace_s: float | None = None) -> None:
        """End the connection. Requests under way have grace_s to be answered, then they fail."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        await self._channel.close(grace_s)

    async def _run(self) -> None:
        pause_s = _PAUSE_MIN_S
        while True:
            # after that time the call below fails at once, and says why there is no connection
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                    await self._channel.channel_ready()
            began_at = self._loop.time()
            await self._exchange()
            steady = self._loop.time() > began_at + _STEADY_S
            pause_s = _PAUSE_MIN_S if steady else min(2 * pause_s, _PAUSE_MAX_S)
            await asyncio.sleep(pause_s * random.uniform(0.5, 1))

    async def _exchange(self) -> None:
        """One connection from its beginning to its end; returns when it is over, whyever."""
        call = open_call(self._channel, "Exchange")
        try:
            async with asyncio.timeout(HANDSHAKE_TIMEOUT_S):
                handshake = await self._greet(call)
            self._queue.clear()
            self._session = _Session(handshake)
            await self._pump(call, handshake)
        except Refused as error:
            self._warn(str(error))
        except TimeoutError:
            self._warn("no answer to the greeting")
        except DecodeError:
            self._warn("a frame that is none")
        except grpc.aio.AioRpcError as error:
            self._warn(f"{error.code().name}: {(error.details() or '')[:200]}")
        except asyncio.InvalidStateError:  # what gRPC says of a call that ends under a write
            self._warn("it has ended the connection")
        except Exception:
            logger.exception("node %d at %s cannot be called", self._peer_id, self.address)
        finally:
            self._session = None
            call.cancel()

    async def _greet(self, call: FrameCall) -> Handshake:
        nonce = fresh_nonce()
        greeting = Greeting(
            protocol_version=PROTOCOL_VERSION,
            source=self._node_id,
            target=self._peer_id,
            nonce=nonce,
            address=self._own_address,
        )
        await call.write(Frame(greeting=greeting))
        answer = await call.read()
        if not isinstance(answer, Frame):
            raise Refused(f"it refuses: {((await call.details()) or '')[:200]}")
        if answer.WhichOneof("kind") != "challenge" or len(answer.challenge.nonce) != NONCE_BYTES:
            raise Refused("an answer to the greeting that is none")
        key = self._credentials.key
        handshake = Handshake(key, self._node_id, self._peer_id, nonce, answer.challenge.nonce)
        if not is_equal(answer.challenge.proof, handshake.called_proof()):
            raise Refused("it has another secret")
        await call.write(Frame(proof=Proof(proof=handshake.caller_proof())))
        return handshake

    async def _pump(self, call: FrameCall, handshake: Handshake) -> None:
        """Send until the connection ends."""
        sending = self._loop.create_task(self._send_all(call, handshake))
        ended = self._loop.create_task(call.read())  # nothing comes but the end
        try:
            await asyncio.wait((sending, ended), return_when=asyncio.FIRST_COMPLETED)
            for task in (ended, sending):
                if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                    raise error
            raise Refused(f"it has ended the connection: {((await call.details()) or '')[:200]}")
        finally:
            sending.cancel()
            ended.cancel()
            await asyncio.gather(sending, ended, return_exceptions=True)

    async def _send_all(self, call: FrameCall, handshake: Handshake) -> None:
        marker = handshake.message_marker()
        while True:
            for frame in frames_of(await self._queue.take(), marker):
                await call.write(frame)

    async def forward(self, request: Request, timeout_s: float) -> Answer:
        """Have the peer perform a request, at most once.

        Raises LogUnavailable where it surely has not been given to the peer, OutcomeUnknown where it may be.
        """
        session = self._session
        if session is None:
            raise LogUnavailable(f"node {self._peer_id} cannot be reached")
        session.numbers += 1
        call = open_call(self._channel, "Forward")
        requesting = _Requesting(call, session.handshake, session.numbers)
        try:
            async with asyncio.timeout(timeout_s):
                return await requesting.perform(request)
        except (TimeoutError, grpc.aio.AioRpcError, Refused, DecodeError, asyncio.InvalidStateError) as error:
            raise self._unanswered(requesting) from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise self._unanswered(requesting) from error  # so gRPC ends calls where close() ends the channel
        finally:
            call.cancel()

    def _unanswered(self, requesting: "_Requesting") -> UnavailableError:
        if requesting.is_sent:
            return OutcomeUnknown(f"node {self._peer_id} has not answered")
        return LogUnavailable(f"node {self._peer_id} did not take the request")

    def _warn(self, reason: str) -> None:
        self._log.warn("outgoing", "node %d at %s: %s", self._peer_id, self.address, reason)


class _Requesting:
    """One request under way."""

    def __init__(self, call: FrameCall, handshake: Handshake, number: int) -> None:
        self._call, self._handshake, self._number = call, handshake, number
        self.is_sent = False  # whether the last piece may have gone out: before it nothing is performed

    async def perform(self, request: Request) -> Answer:
        """Send the request and wait for the answer."""
        call = self._call
        session = self._handshake.called_nonce
        await call.write(Frame(opening=Opening(session=session, number=self._number)))
        for frame in frames_of(request.SerializeToString(), self._handshake.request_marker(self._number)):
            self.is_sent = frame.piece.last
            await call.write(frame)
        reader = PieceReader(self._handshake.answer_marker(self._number), MESSAGE_BYTES_MAX)
        while True:
            piece = await call.read()
            if not isinstance(piece, Frame):
                raise Refused("the answer ends early")
            answer = reader.add(piece)
            if answer is not None:
                return _parse_answer(answer)


def _parse_answer(data: bytes) -> Answer:
    try:
        return Answer.FromString(data)
    except DecodeError as error:
        raise Refused("an answer that cannot be understood") from error
