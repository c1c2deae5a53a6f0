"""`HistoryFetch`: a node that has begun with a snapshot gets the history before it from the other nodes. So
does one that has deleted what a named state needs: while the state gets its name, only the node that is asked
holds it.

File after file, the newest first: so what is kept has no gap at any moment, and the files that are there tell
where to go on. A crash loses at most the file that was on its way.

What a purge takes must not come back with a file. A file counts only if its sender had purged its history of
every purge that this node knows of; a purge that comes later takes it out of this node's files as out of all.
"""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import IO, Protocol

from actors.clustering.history_files import HISTORY_FILE, NO_FILE, FilePart, decode_part, encode_request
from actors.history.history_keeper import Adoption, HistoryKeeper
from actors.raft.log_requests import ForwardedRequest
from actors.worker_thread import on_thread
from graphdb.errors import CorruptionError, GraphDBError, LogUnavailable, UnavailableError
from graphdb.history.archive import COMPRESSED, ArchiveName, verify
from graphdb.history.past_log import PastLog
from graphdb.timestamps import until_whole

__all__ = ["FetchMeans", "HistoryFetch"]

logger = logging.getLogger(__name__)
_EVERY_S = 60.0  # between two looks for what named states need
_PART_S = 30.0  # that a part may take: a segment of 64 MB is compressed before the first one
_PAUSE_S = 0.05  # after each megabyte: 20 MB a second at most
_AGAIN_S, _AGAIN_S_MAX = 5.0, 60.0
_BYTES_MAX = 1 << 30  # of one file, which has 64 MB of log, or one entry that is larger


class Ask(Protocol):
    """See `RaftLogClient.forward`."""

    async def __call__(self, node_id: int, request: ForwardedRequest, timeout_s: float) -> bytes: ...


@dataclass(frozen=True, slots=True)
class FetchMeans:
    """What the history is fetched with."""

    data_dir: Path
    wanted: Path  # a file that is there until all is fetched
    keeper: HistoryKeeper
    ask: Ask
    others: Callable[[], Sequence[int]]  # nodes, that which leads first
    last_index: Callable[[], int]  # of the entries that this node has applied; raises LogUnavailable
    last_purge: Callable[[], int]  # of its book, 0 for none; raises LogUnavailable
    reach_end: Callable[[], Awaitable[None]]  # have all entries applied that the log has now
    needed_from: Callable[[], int | None]  # see `NamedStateBook.needed_from`; raises LogUnavailable


class HistoryFetch:
    """Owned by a node, on its event loop: have `run` run."""

    def __init__(self, means: FetchMeans) -> None:
        self._means = means
        self._looked_for: int | None = None  # what named states needed when their history was looked for

    async def run(self, adopted: asyncio.Event) -> None:
        """Until cancelled. adopted is set when the node has adopted a snapshot, also while this runs."""
        while True:
            adopted.clear()
            await self._want_named()
            await self.fetch()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(until_whole(_EVERY_S, time.monotonic())):
                    await adopted.wait()

    async def _want_named(self) -> None:
        """Where a named state needs older history than there is here, have it fetched. What no other node has
        either is not looked for again before another state is named.
        """
        try:
            needed_from = self._means.needed_from()
            if needed_from == self._looked_for or not self._means.keeper.is_on:
                return
            if needed_from is not None and needed_from < await on_thread(self._begins):
                await on_thread(self._means.wanted.touch)
            self._looked_for = needed_from
        except (GraphDBError, OSError) as error:
            logger.info("what named states need is not looked for now: %s", error)

    async def fetch(self) -> None:
        """Return when all is there that the other nodes have and this node would keep."""
        pause_s, has_begun = _AGAIN_S, False
        while await on_thread(self._means.wanted.exists):
            try:
                if not has_begun:
                    await self._begin()
                    has_begun = True
                if await self._step():
                    await on_thread(self._end)
                    return
                pause_s = _AGAIN_S
            except (GraphDBError, OSError) as error:
                logger.info("the history of other nodes is not fetched now: %s", error)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _AGAIN_S_MAX)

    async def _begin(self) -> None:
        """This node has its vote. Purges of before that did not wait for it: have it know them all."""
        await self._means.reach_end()
        await on_thread(self._means.keeper.drop_unjoined, self._means.last_index())

    def _end(self) -> None:
        self._means.wanted.unlink(missing_ok=True)
        logger.info("the history is here that other nodes have")

    async def _step(self) -> bool:
        """Fetch the file before the oldest one; whether there is nothing left to fetch."""
        last_index = await on_thread(self._begins) - 1
        if last_index == 0 or not self._means.keeper.is_on:
            return True
        if not self._means.keeper.has_room():
            raise LogUnavailable("the disk has no room for it")
        fault: UnavailableError | None = None
        others = self._means.others()
        for node_id in others:
            try:
                part = await self._part(node_id, last_index, NO_FILE, 0)
            except UnavailableError as error:
                fault = error
                continue
            if part.file_id != NO_FILE:
                return await self._fetch(node_id, last_index, part)
        if fault is not None or not others:
            raise fault or LogUnavailable("no other node is known")
        return True

    def _begins(self) -> int:
        """The first entry of the oldest file."""
        last_index = self._means.last_index()
        with closing(PastLog(self._means.data_dir)) as past:
            spans = past.spans(last_index)
        return spans[0].first_index if spans else last_index + 1

    async def _fetch(self, node_id: int, last_index: int, part: FilePart) -> bool:
        """Have one file; whether it is not wanted, and nothing before it either."""
        name = ArchiveName(part.first_index, part.last_index, COMPRESSED)
        if name.last_index != last_index or not 0 < name.first_index <= last_index:
            raise LogUnavailable(f"node {node_id} has sent another file of its history than was asked for")
        if part.size > _BYTES_MAX:
            raise LogUnavailable(f"a file of the history of node {node_id} is too large: {part.size} bytes")
        scratch = self._means.data_dir / "scratch"
        await on_thread(partial(scratch.mkdir, exist_ok=True))
        path = scratch / f"history-fetched-{token_hex(8)}"
        try:
            await self._receive(node_id, part, path)
            await on_thread(verify, path, name)
            found = await on_thread(
                self._means.keeper.adopt, path, name, part.purged_index, self._means.last_purge
            )
        finally:
            await on_thread(partial(path.unlink, missing_ok=True))
        if found is Adoption.UNPURGED:
            raise LogUnavailable(f"the history of node {node_id} has what was purged still")
        return found is Adoption.EXPIRED

    async def _receive(self, node_id: int, part: FilePart, path: Path) -> None:
        """Raises UnavailableError, OSError, CorruptionError."""
        file_id, size = part.file_id, part.size
        with path.open("xb") as file:
            offset = 0
            while True:
                if part.file_id != file_id or not part.data or offset + len(part.data) > size:
                    raise CorruptionError("parts that do not belong together", f"history of node {node_id}")
                await on_thread(file.write, part.data)
                offset += len(part.data)
                if offset == size:
                    break
                await asyncio.sleep(_PAUSE_S)
                part = await self._part(node_id, part.last_index, file_id, offset)
            await on_thread(_sync, file)

    async def _part(self, node_id: int, last_index: int, file_id: bytes, offset: int) -> FilePart:
        request = ForwardedRequest(0, HISTORY_FILE, "", encode_request(last_index, file_id, offset))
        return decode_part(await self._means.ask(node_id, request, _PART_S))


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())
