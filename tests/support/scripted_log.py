"""`ScriptedLog`: a cluster's log as a port meets it, over its real socket, which does as a test tells it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from actors.clustering.cluster_follower import ClusterFollower
from actors.futures import answer, fail
from actors.log.server import at_once, done_after, in_time, log_server, unchanged
from actors.raft.forwarding import ForwardQueue
from actors.raft.log_requests import (
    RAFT_LOG_MESSAGES,
    ClusterView,
    Finish,
    Forward,
    ForwardedRequest,
    Leave,
    Requests,
    Take,
    ViewedMember,
    Watch,
)
from actors.raft.raft_log_client import RaftLogClient
from actors.wire.messages import Piece
from tests.support.readers import answering

__all__ = ["NO_LEADER", "Forwarding", "ScriptedLog", "following", "scripted_log"]

_ANSWER_AT_LEAST_S = 0.5  # as a real log promises
NO_LEADER = ClusterView(
    version=1,
    term=1,
    members=tuple(ViewedMember(number, f"host{number}:7002", True, True, None) for number in (1, 2, 3)),
)


@dataclass(frozen=True)
class Forwarding:
    """A request that the port wants performed by another node."""

    node_id: int
    request: ForwardedRequest
    timeout_s: float
    outcome: "Future[bytes]"

    def succeed(self, body: bytes) -> None:
        answer(self.outcome, body)

    def fail(self, error: Exception) -> None:
        fail(self.outcome, error)


class ScriptedLog:
    """On the loop of the test. The queue is a real one: what it is given to serve, the port may take."""

    def __init__(self, directory: Path) -> None:
        self.view = NO_LEADER
        self.queue = ForwardQueue()
        self.forwardings: asyncio.Queue[Forwarding] = asyncio.Queue()
        self.is_silent = False  # to those who watch
        self._watching: list[Future[ClusterView]] = []
        self.server = log_server(
            {
                Watch: in_time(lambda asked: (self._watch(asked.version, asked.committed_index), unchanged)),
                Forward: in_time(
                    lambda asked: (self._forward(asked.node_id, asked.request, asked.timeout_s), Piece)
                ),
                Take: in_time(lambda asked: (self.queue.take(asked.port), Requests)),
                Leave: at_once(done_after(lambda asked: self.queue.leave(asked.port))),
                Finish: at_once(
                    done_after(lambda asked: self.queue.finish(asked.number, asked.succeeded, asked.outcome))
                ),
            },
            str(directory),
            str(directory),
            RAFT_LOG_MESSAGES,
        )

    def client(self) -> RaftLogClient:
        return RaftLogClient(answering(self.server.path))

    def show(self, **changes: Any) -> None:
        """Have the cluster change."""
        self.view = replace(self.view, version=self.view.version + 1, **changes)
        watching, self._watching = self._watching, []
        for future in watching:
            answer(future, self.view)

    def let_lead(self, node_id: int | None, own_id: int = 1) -> None:
        """Have this node lead, as own_id sees it."""
        role = "leader" if node_id == own_id else "follower"
        self.show(leader_id=node_id, role=role, term=self.view.term + 1)

    def _watch(self, version: int, committed_index: int) -> "Future[ClusterView]":
        future: Future[ClusterView] = Future()
        if self.is_silent:
            return future
        if version == self.view.version and committed_index >= self.view.committed_index:
            self._watching.append(future)
            asyncio.get_running_loop().call_later(_ANSWER_AT_LEAST_S, answer, future, self.view)
        else:
            answer(future, self.view)
        return future

    def _forward(self, node_id: int, request: ForwardedRequest, timeout_s: float) -> "Future[bytes]":
        forwarding = Forwarding(node_id, request, timeout_s, Future())
        self.forwardings.put_nowait(forwarding)
        return forwarding.outcome


@asynccontextmanager
async def scripted_log(directory: Path) -> AsyncIterator[ScriptedLog]:
    """One that listens."""
    log = ScriptedLog(directory)
    await log.server.start()
    try:
        yield log
    finally:
        await log.server.close()


@asynccontextmanager
async def following(
    log: ScriptedLog, on_view: Callable[[ClusterView], None] = lambda view: None
) -> AsyncIterator[tuple[RaftLogClient, ClusterFollower]]:
    """Node 1's client, and its follower at work."""
    client = log.client()
    follower = ClusterFollower(1, client, on_view)
    follower.start()
    try:
        yield client, follower
    finally:
        await follower.close()
        await client.close()
