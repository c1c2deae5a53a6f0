"""Links from peers, and how many of them may be opened."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import grpc
from google.protobuf.message import DecodeError

from actors.raft.credentials import ClusterCredentials
from actors.raft.outgoing_link import HANDSHAKE_TIMEOUT_S
from actors.raft.peer_protocol import (
    NONCE_BYTES,
    PROTOCOL_VERSION,
    Handshake,
    PieceReader,
    Refused,
    encode_failure,
    frames_of,
    fresh_nonce,
    is_equal,
)
from actors.raft.raft_pb2 import Answer, Challenge, Frame, Request
from actors.raft.raft_service import FrameContext
from actors.raft.rate_limited_log import RateLimitedLog
from graphdb.errors import GraphDBError, OutcomeUnknown, Overloaded
from graphdb.raft.membership import PeerId
from graphdb.raft.messages import MESSAGE_BYTES_MAX, Envelope, Hello, decode_envelope
from graphdb.raft.wire import Malformed

__all__ = ["Forwarded", "IncomingLinks", "Serve", "TokenBucket"]

# `TokenBucket`: how many events a second are let through, with a burst.


class TokenBucket:
    """Holds burst tokens when full and gains per_second of them."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second, self._burst = per_second, burst
        self._tokens = burst
        self._filled_at = time.monotonic()

    def take(self, tokens: float = 1) -> float:
        """Take tokens; how many seconds to wait before the event they stand for may happen."""
        now = time.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._per_second)
        self._filled_at = now
        self._tokens -= tokens
        return max(0.0, -self._tokens / self._per_second)

    def try_take(self) -> bool:
        """Take one token if there is one."""
        if self.take(0) > 0 or self._tokens < 1:
            return False
        self._tokens -= 1
        return True


# `IncomingLinks`: the called side of port 7002. It greets callers, takes their messages, serves requests.
#
# Whatever a caller sends, it is refused at the latest where it stops making sense: its stream is ended, a
# line is logged once in a while, and nothing else happens. Everything happens on the loop's thread.

logger = logging.getLogger(__name__)

_SESSIONS_PER_NODE_MAX = 4  # a peer that was restarted may leave some behind, for as long as keepalive takes
_GREETINGS_PER_S, _GREETINGS_BURST = 50, 100  # a host
_HOSTS_MAX = 1024
_MESSAGES_PER_S, _MESSAGES_BURST = 20_000, 20_000  # a session
_REQUESTS_MAX = 256
_REQUESTS_BYTES_MAX = 512 << 20
_REQUEST_TIMEOUT_S = 60.0  # to arrive in; how long it is performed is its caller's to say


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A request that another node has taken from a client."""

    source: int  # node id
    operation: str
    idempotency_key: str  # empty: none
    body: bytes = field(repr=False)


Serve = Callable[[Forwarded], Awaitable[bytes]]


@dataclass(slots=True)
class _Session:
    handshake: Handshake
    address: str  # where the caller says that it listens
    newest_number: int = 0
    late_numbers: set[int] = field(default_factory=set)  # skipped so far: requests overtake each other

    def use_number(self, number: int) -> None:
        """Raises Refused where the number was used: a request that somebody repeats."""
        if number > self.newest_number:
            if number > self.newest_number + 10 * _REQUESTS_MAX:
                raise Refused("a request whose number is too far ahead")
            self.late_numbers.update(range(self.newest_number + 1, number))
            self.newest_number = number
        elif number in self.late_numbers:
            self.late_numbers.remove(number)
        else:
            raise Refused("a request whose number was used")
        if len(self.late_numbers) > 20 * _REQUESTS_MAX:
            self.late_numbers = set(sorted(self.late_numbers)[10 * _REQUESTS_MAX :])


class IncomingLinks:
    """Owned by a `PeerTransport`."""

    def __init__(
        self,
        node_id: int,
        credentials: ClusterCredentials,
        receive: Callable[[Envelope], None],
        meet: Callable[[PeerId, str], None],
        serve: Serve,
        committed: Callable[[], tuple[int, int]],
        log: RateLimitedLog,
    ) -> None:
        """receive must not block. meet is told before it who speaks and where that one says that it listens.
        serve raises errors of ours for the caller; it is cancelled when the caller has gone. The answers
        carry what committed says (`RaftDriver.committed`).
        """
        self.cluster_id = 0  # 0: this node belongs to none yet
        self._node_id = node_id
        self._credentials = credentials
        self._receive = receive
        self._meet = meet
        self._serve = serve
        self._committed = committed
        self._log = log
        self._sessions: dict[bytes, _Session] = {}
        self._greetings: dict[str, TokenBucket] = {}
        self._tasks: set[asyncio.Task[object]] = set()
        self._requests = 0
        self._request_bytes = 0

    async def close(self) -> None:
        """End what is under way."""
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Note the task for `close`, as long as it runs."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            yield
        finally:
            self._tasks.remove(task)

    async def exchange(self, _: AsyncIterator[Frame], context: FrameContext) -> None:
        """The method Exchange."""
        with self._noted():
            await self._exchange(context)

    async def forward(self, _: AsyncIterator[Frame], context: FrameContext) -> None:
        """The method Forward."""
        with self._noted():
            await self._forward(context)

    async def _exchange(self, context: FrameContext) -> None:
        try:
            async with asyncio.timeout(HANDSHAKE_TIMEOUT_S):
                session = await self._greet(context)
            await self._take_messages(context, session)
        except (Refused, Malformed) as error:
            await self._refuse(context, str(error))
        except DecodeError:
            await self._refuse(context, "a frame that is none")
        except TimeoutError:
            await self._refuse(context, "no greeting in time")

    async def _forward(self, context: FrameContext) -> None:
        try:
            session, number = await self._open(context)
            answer = await self._answer(context, session, number)
        except Refused as error:
            await self._refuse(context, str(error))
            return
        except DecodeError:
            await self._refuse(context, "a frame that is none")
            return
        except TimeoutError:
            await self._refuse(context, "a request that does not arrive in time")
            return
        for frame in frames_of(answer.SerializeToString(), session.handshake.answer_marker(number)):
            await context.write(frame)

    async def _refuse(self, context: FrameContext, reason: str) -> None:
        self._log.warn("incoming", "refused %s: %s", context.peer(), reason)
        await context.abort(grpc.StatusCode.FAILED_PRECONDITION, reason)

    # messages

    async def _greet(self, context: FrameContext) -> _Session:
        self._check_rate(context.peer())
        frame = await _read(context)
        greeting = frame.greeting
        if frame.WhichOneof("kind") != "greeting" or len(greeting.nonce) != NONCE_BYTES:
            raise Refused("no greeting")
        if greeting.protocol_version != PROTOCOL_VERSION:
            raise Refused(f"protocol version {greeting.protocol_version}, this is {PROTOCOL_VERSION}")
        if greeting.target != self._node_id or greeting.source in (0, self._node_id):
            raise Refused(f"from {greeting.source} to {greeting.target}, this is node {self._node_id}")
        nonce = fresh_nonce()
        key = self._credentials.key
        handshake = Handshake(key, greeting.source, greeting.target, greeting.nonce, nonce)
        await context.write(Frame(challenge=Challenge(nonce=nonce, proof=handshake.called_proof())))
        answer = await _read(context)
        if answer.WhichOneof("kind") != "proof" or not is_equal(answer.proof.proof, handshake.caller_proof()):
            raise Refused("another secret")
        return _Session(handshake, greeting.address)

    def _check_rate(self, caller: str) -> None:
        """caller is gRPC's name for it: scheme, host, port."""
        host = caller.rpartition(":")[0]
        if host not in self._greetings and len(self._greetings) >= _HOSTS_MAX:
            self._greetings.clear()
        bucket = self._greetings.setdefault(host, TokenBucket(_GREETINGS_PER_S, _GREETINGS_BURST))
        if not bucket.try_take():
            raise Refused("too many greetings")

    async def _take_messages(self, context: FrameContext, session: _Session) -> None:
        handshake = session.handshake
        sources = Counter(each.handshake.source for each in self._sessions.values())
        if sources[handshake.source] >= _SESSIONS_PER_NODE_MAX:
            raise Refused("too many connections of that node")
        self._sessions[handshake.called_nonce] = session
        try:
            reader = PieceReader(handshake.message_marker(), MESSAGE_BYTES_MAX)
            bucket = TokenBucket(_MESSAGES_PER_S, _MESSAGES_BURST)
            while True:
                frame = await context.read()
                if not isinstance(frame, Frame):
                    return
                message = reader.add(frame)
                if message is not None:
                    self._take_message(message, session)
                if (delay_s := bucket.take()) > 0:
                    await asyncio.sleep(delay_s)
        finally:
            del self._sessions[handshake.called_nonce]

    def _take_message(self, message: bytes, session: _Session) -> None:
        envelope = decode_envelope(message)
        address = session.address
        if isinstance(envelope.body, Hello):
            address = envelope.body.address  # others hand on a newcomer's hello
        elif envelope.source.node_id != session.handshake.source:
            raise Refused("a message of another node")
        if envelope.target.node_id != self._node_id:
            raise Refused("a message for another node")
        if self.cluster_id and envelope.cluster_id not in (0, self.cluster_id):
            raise Refused("a message of another cluster")
        if address:
            self._meet(envelope.source, address)
        self._receive(envelope)

    # requests

    async def _open(self, context: FrameContext) -> tuple[_Session, int]:
        async with asyncio.timeout(HANDSHAKE_TIMEOUT_S):
            frame = await _read(context)
        if frame.WhichOneof("kind") != "opening" or frame.opening.session not in self._sessions:
            raise Refused("a request without a session")
        session = self._sessions[frame.opening.session]
        session.use_number(frame.opening.number)
        return session, frame.opening.number

    async def _answer(self, context: FrameContext, session: _Session, number: int) -> Answer:
        if self._requests >= _REQUESTS_MAX:
            return Answer(failure=encode_failure(Overloaded("too many requests of other nodes")))
        self._requests += 1
        reader = PieceReader(session.handshake.request_marker(number), MESSAGE_BYTES_MAX)
        held = 0
        try:
            async with asyncio.timeout(_REQUEST_TIMEOUT_S):
                data = None
                while data is None:
                    frame = await _read(context)
                    size = len(frame.piece.data)
                    held += size
                    self._request_bytes += size
                    if self._request_bytes > _REQUESTS_BYTES_MAX:
                        return Answer(failure=encode_failure(Overloaded("too many bytes of requests")))
                    data = reader.add(frame)
            return await self._perform(data, session.handshake.source)
        finally:
            self._request_bytes -= held
            self._requests -= 1

    async def _perform(self, data: bytes, source: int) -> Answer:
        try:
            request = Request.FromString(data)
        except DecodeError as error:
            raise Refused("a request that cannot be understood") from error
        forwarded = Forwarded(source, request.operation, request.idempotency_key, request.body)
        try:
            body = await self._serve(forwarded)
            term, committed_index = self._committed()
            return Answer(body=body, term=term, committed_index=committed_index)
        except GraphDBError as error:
            return Answer(failure=encode_failure(error))
        except Exception:
            logger.exception("a forwarded request failed")
            return Answer(failure=encode_failure(OutcomeUnknown("the node that was asked has failed")))


async def _read(context: FrameContext) -> Frame:
    frame = await context.read()
    if not isinstance(frame, Frame):
        raise Refused("the stream ends early")
    return frame
