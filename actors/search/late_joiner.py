"""`LateJoiner`: search indexes for a node of a cluster whose log no longer has what they lack."""

import asyncio
import contextlib
import logging
import shutil
from pathlib import Path

from actors.raft.log_requests import ForwardedRequest
from actors.raft.raft_log_client import RaftLogClient
from actors.raft.search_requests import (
    NO_COPY,
    SEARCH_COPY,
    SEARCH_STATE,
    CopyPart,
    decode_part,
    decode_state,
    encode_copy_request,
    encode_needed,
)
from actors.raft.snapshot_transfer import TREE, IncomingSnapshot, free_bytes
from graphdb.errors import LogUnavailable, RequestError, UnavailableError
from graphdb.log.file_system import RealFileSystem, storage_error
from graphdb.raft.membership import Members
from graphdb.raft.messages import SnapshotMark
from graphdb.raft.wire import Malformed
from graphdb.search.catalog.late_start import LateStart, SearchState, Wait, late_start

__all__ = ["LateJoiner"]

logger = logging.getLogger(__name__)

_STATE_S = 8.0  # a node may be starting
_PART_S = 30.0


class LateJoiner:
    """For one event loop."""

    def __init__(self, node_id: int, log: RaftLogClient, directory: Path) -> None:
        """directory: for what is being received."""
        self._node_id, self._log, self._directory = node_id, log, directory

    async def step(self, saved_index: int, first_index: int) -> LateStart:
        """What to do about indexes of saved_index under a log that begins at first_index, behind them."""
        members = (await self._log.watch(0, 0)).members
        others = [member.node_id for member in members if member.node_id != self._node_id]
        if len(others) == len(members):
            return Wait("this node is in no cluster yet")
        states = await asyncio.gather(*(self._state_of(node_id, first_index - 1) for node_id in others))
        own = SearchState(self._node_id, True, saved_index, first_index, saved_index)
        return late_start(own, dict(zip(others, states, strict=True)))

    async def _state_of(self, node_id: int, needed_index: int) -> SearchState | None:
        try:
            return decode_state(await self._ask(node_id, SEARCH_STATE, encode_needed(needed_index), _STATE_S))
        except UnavailableError as error:
            logger.info("node %d does not say what search indexes it has: %s", node_id, error)
            return None

    async def fetch(self, node_id: int) -> Path:
        """A catalogue's directory as that node has it, complete and durable. Raises UnavailableError."""
        first = await self._part(node_id, NO_COPY, 0)
        logger.info("receiving search indexes as of %d from node %d", first.log_index, node_id)
        try:
            return await self._receive(node_id, first)
        except Malformed as error:
            raise LogUnavailable(f"node {node_id} has sent no search indexes: {error}") from error
        except OSError as error:
            raise storage_error(error, "receiving search indexes") from error

    async def _receive(self, node_id: int, part: CopyPart) -> Path:
        incoming = await asyncio.to_thread(self._begin, part)
        offset = 0
        while True:
            await asyncio.to_thread(incoming.write, offset, part.data)
            offset += len(part.data)
            if part.is_last:
                break
            part = await self._part(node_id, part.copy_id, offset)
        await asyncio.to_thread(incoming.finish)
        return self._directory / TREE / "search"

    def _begin(self, part: CopyPart) -> IncomingSnapshot:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._directory)
        self._directory.mkdir()
        mark = SnapshotMark(part.log_index, 0, Members(()))
        return IncomingSnapshot(RealFileSystem(), self._directory, mark, free_bytes)

    async def _part(self, node_id: int, copy_id: bytes, offset: int) -> CopyPart:
        body = encode_copy_request(copy_id, offset)
        return decode_part(await self._ask(node_id, SEARCH_COPY, body, _PART_S))

    async def _ask(self, node_id: int, operation: str, body: bytes, timeout_s: float) -> bytes:
        try:
            return await self._log.forward(node_id, ForwardedRequest(0, operation, "", body), timeout_s)
        except RequestError as error:  # of another version
            raise LogUnavailable(f"node {node_id} does not understand: {error}") from error
