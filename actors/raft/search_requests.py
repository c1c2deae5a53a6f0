"""What nodes ask of each other about their search indexes: the bytes, and as of which log index others need
the indexes on disk. It knows no sockets.

    operation      body                               answer
    search_request whatever the search port makes of it (`serve.search.frame.peer_requests`)
    search_state   log index (8) that is needed       a SearchState, as JSON
    search_copy    id of a copy (16), offset (8)      id (16), log index (8), 1 where it ends (1), bytes

A copy with id 0 is one to be made. Its bytes are a stream of `actors.raft.snapshot_transfer`; all of its
files are in `search`. Integers are little-endian.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from graphdb.errors import LogUnavailable
from graphdb.search.catalog.late_start import SearchState

__all__ = [
    "NO_COPY",
    "SEARCH_COPY",
    "SEARCH_REQUEST",
    "SEARCH_STATE",
    "CopyPart",
    "SearchFlushRequests",
    "decode_copy_request",
    "decode_needed",
    "decode_part",
    "decode_state",
    "encode_copy_request",
    "encode_needed",
    "encode_part",
    "encode_state",
]

# operations of forwarded requests
SEARCH_STATE, SEARCH_COPY, SEARCH_REQUEST = "search_state", "search_copy", "search_request"
NO_COPY = bytes(16)

_INDEX = struct.Struct("<Q")
_COPY = struct.Struct("<16sQ")
_PART = struct.Struct("<16sQ?")


@dataclass(frozen=True, slots=True)
class CopyPart:
    """Bytes of a copy from an offset on; log_index is what the indexes in it are of."""

    copy_id: bytes
    log_index: int
    is_last: bool
    data: bytes = field(repr=False)


def encode_needed(log_index: int) -> bytes:
    return _INDEX.pack(log_index)


def decode_needed(body: bytes) -> int:
    """0 for what nobody of ours sends."""
    needed: int = _INDEX.unpack(body)[0] if len(body) == _INDEX.size else 0
    return needed


def encode_state(state: SearchState) -> bytes:
    return orjson.dumps(state)


def decode_state(body: bytes) -> SearchState:
    """Raises LogUnavailable for what is none, as another version may answer."""
    try:
        return SearchState(**orjson.loads(body))
    except (orjson.JSONDecodeError, TypeError) as error:
        raise LogUnavailable(f"no state of search indexes: {body[:100]!r}") from error


def encode_copy_request(copy_id: bytes, offset: int) -> bytes:
    return _COPY.pack(copy_id, offset)


def decode_copy_request(body: bytes) -> tuple[bytes, int]:
    """(id of a copy, offset). Raises LogUnavailable for what is none."""
    try:
        copy_id, offset = _COPY.unpack(body)
    except struct.error as error:
        raise LogUnavailable("no request for a copy of search indexes") from error
    return copy_id, offset


def encode_part(part: CopyPart) -> bytes:
    return _PART.pack(part.copy_id, part.log_index, part.is_last) + part.data


def decode_part(body: bytes) -> CopyPart:
    """Raises LogUnavailable for what is none."""
    try:
        copy_id, log_index, is_last = _PART.unpack_from(body)
    except struct.error as error:
        raise LogUnavailable("no part of a copy of search indexes") from error
    return CopyPart(copy_id, log_index, is_last, body[_PART.size :])


_WANTED_S = 5.0  # who needs them asks again and again


class SearchFlushRequests:
    """For one thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """clock gives seconds that never go back."""
        self._clock = clock
        self._index, self._asked_at = 0, float("-inf")

    def note(self, log_index: int) -> None:
        """Some node needs them as of there."""
        self._index, self._asked_at = max(self.index(), log_index), self._clock()

    def index(self) -> int:
        """0 where nobody has asked lately."""
        return self._index if self._clock() < self._asked_at + _WANTED_S else 0
