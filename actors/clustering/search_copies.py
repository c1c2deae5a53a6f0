"""`SearchCopies`: what this node's disk has of search indexes, for nodes that lack them."""

import asyncio
import secrets
import shutil
import time
from pathlib import Path

from actors.log.client import LogAccess
from actors.raft.search_requests import (
    NO_COPY,
    SEARCH_COPY,
    SEARCH_STATE,
    CopyPart,
    decode_copy_request,
    encode_part,
    encode_state,
)
from actors.raft.snapshot_transfer import Manifest, OutgoingSnapshot, list_files
from actors.shard.search_state import STARTING, copy_search, saved_search_index
from graphdb.config import Settings
from graphdb.errors import CorruptionError, LogUnavailable
from graphdb.model import EntryKind
from graphdb.public_text import fault_text
from graphdb.raft.membership import Members
from graphdb.raft.messages import SnapshotMark
from graphdb.search.catalog.late_start import SearchState

__all__ = ["SearchCopies"]

_PART_BYTES = 4 << 20
_IDLE_S = 60.0  # a copy that nobody reads further for so long goes
_COPIES_MAX = 2


class SearchCopies:
    """For one event loop. Copies are links to files that stay as they are, so a copy takes no room by itself
    until the indexes have changed.
    """

    def __init__(self, settings: Settings, log: LogAccess) -> None:
        self._node_id, self._enabled = settings.cluster.node_id, settings.search.enabled
        self._data_dir, self._log = settings.server.data_dir, log
        self._copies: dict[bytes, OutgoingSnapshot] = {}  # by id, the one that was made last at the end
        self._making, self._looking = asyncio.Lock(), asyncio.Lock()
        self._looked = 0, 0, False  # from where in the log, to where, and what was found
        self._expiry: asyncio.TimerHandle | None = None

    @staticmethod
    def is_asked(operation: str) -> bool:
        """Whether a forwarded request is for these."""
        return operation in (SEARCH_STATE, SEARCH_COPY)

    async def answer(self, operation: str, body: bytes) -> bytes:
        """Raises UnavailableError; then the one who asks begins anew."""
        if operation == SEARCH_STATE:
            return encode_state(await self._state())
        copy_id, offset = decode_copy_request(body)
        if copy_id == NO_COPY:
            copy_id = await self._make()
        return encode_part(await self._read(copy_id, offset))

    def close(self) -> None:
        """Let go of all copies."""
        if self._expiry is not None:
            self._expiry.cancel()
        for copy_id in list(self._copies):
            self._drop(copy_id)

    async def _state(self) -> SearchState:
        first_index, saved_index = (await self._log.status()).first_index, await self._saved_index()
        if self._enabled:
            is_starting = (self._data_dir / STARTING).exists()
            return SearchState(
                self._node_id, True, saved_index, first_index, saved_index, is_starting=is_starting
            )
        async with self._looking:
            known_index, is_changed = await self._look(max(first_index, saved_index + 1))
        known_index = saved_index if is_changed else max(known_index, saved_index)
        return SearchState(
            self._node_id, False, saved_index, first_index, known_index, is_off_with_changes=is_changed
        )

    async def _look(self, from_index: int) -> tuple[int, bool]:
        """How far the log was read from there on, and whether it changes search indexes; it goes on where it
        was when it was asked before.
        """
        begun, through, is_changed = self._looked
        if from_index != begun:
            through, is_changed = from_index - 1, False
        while not is_changed and (entries := await self._log.read(through + 1)):
            is_changed = any(entry.kind is EntryKind.SEARCH for entry in entries)
            through = entries[-1].log_index
            self._looked = from_index, through, is_changed
        return through, is_changed

    async def _saved_index(self) -> int:
        """0 also where what there is cannot be used."""
        try:
            return await asyncio.to_thread(saved_search_index, self._data_dir) or 0
        except CorruptionError:
            return 0

    async def _make(self) -> bytes:
        """The newest copy, a new one if it is not of what is on disk now."""
        async with self._making:
            saved_index = await self._saved_index()
            for copy_id, copy in self._copies.items():
                if copy.mark.log_index == saved_index:
                    return copy_id
            copy_id = secrets.token_bytes(len(NO_COPY))
            self._copies[copy_id] = await asyncio.to_thread(self._copied, copy_id)
            for old in [*self._copies][:-_COPIES_MAX]:
                self._drop(old)
            self._expire_later()
            return copy_id

    def _copied(self, copy_id: bytes) -> OutgoingSnapshot:
        tree = self._data_dir / "scratch" / f"search-copy-{copy_id.hex()}"
        try:
            tree.mkdir(parents=True)
            log_index = copy_search(self._data_dir, tree)
            if log_index is None:
                raise LogUnavailable("there are no search indexes here")
            manifest = Manifest(copy_id, list_files(tree))
        except (OSError, ValueError, CorruptionError, LogUnavailable) as error:
            _remove(tree)
            raise LogUnavailable(f"the search indexes cannot be copied: {fault_text(error)}") from error
        return OutgoingSnapshot(tree, SnapshotMark(log_index, 0, Members(())), manifest, time.monotonic())

    async def _read(self, copy_id: bytes, offset: int) -> CopyPart:
        copy = self._copies.get(copy_id)
        if copy is None:
            raise LogUnavailable("that copy of the search indexes is gone")
        try:
            data, is_last = await asyncio.to_thread(copy.read, offset, _PART_BYTES, time.monotonic())
        except OSError as error:  # a store that was opened anew has cleared its scratch directory
            self._drop(copy_id)
            raise LogUnavailable(f"that copy of the search indexes is gone: {fault_text(error)}") from error
        return CopyPart(copy_id, copy.mark.log_index, is_last, data)

    def _drop(self, copy_id: bytes) -> None:
        copy = self._copies.pop(copy_id, None)
        if copy is not None:
            _remove(copy.tree)

    def _expire_later(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
        self._expiry = asyncio.get_running_loop().call_later(_IDLE_S, self._expire)

    def _expire(self) -> None:
        for copy_id, copy in [*self._copies.items()]:
            if time.monotonic() >= copy.used_at + _IDLE_S:
                self._drop(copy_id)
        if self._copies:
            self._expire_later()


def _remove(tree: Path) -> None:
    shutil.rmtree(tree, ignore_errors=True)
