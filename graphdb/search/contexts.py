"""`SearchContexts`: scrolls and points in time: what a client searches further while the index goes on."""

import base64
import binascii
import struct
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from graphdb.search.errors import SearchError, illegal_request

__all__ = [
    "KEEP_ALIVE_MS_MAX",
    "RANDOM_BYTES",
    "SearchContext",
    "SearchContexts",
    "check_keep_alive",
    "make_context_id",
    "node_of_context",
]

_OPEN_MAX = 500  # search.max_open_scroll_context
KEEP_ALIVE_MS_MAX = 24 * 3_600_000  # the default of search.max_keep_alive, and the most that it may be
RANDOM_BYTES = 47  # of an id; with the node's number a multiple of 3, so that base64 ends without padding
_NUMBER = struct.Struct("<I")
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000))


def make_context_id(node_id: int, random: bytes) -> str:
    """RANDOM_BYTES that cannot be guessed, and the node that has the context; fit for an URL."""
    return base64.urlsafe_b64encode(_NUMBER.pack(node_id) + random).decode()


def node_of_context(context_id: str) -> int | None:
    """The node that has it, if that is where it says it is from; None for what is no such id."""
    try:
        decoded = base64.b64decode(context_id, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(decoded) != _NUMBER.size + RANDOM_BYTES:
        return None
    number: int = _NUMBER.unpack_from(decoded)[0]
    return number


@dataclass(slots=True)
class SearchContext:
    """state is whatever the search that opened it needs to go on; owner, who has opened it; indexes, the
    names of those that it searches.
    """

    id: str
    state: Any
    expires_ms: int
    owner: str | None = None
    indexes: frozenset[str] = frozenset()


class SearchContexts:
    """For any thread. Ids are not to be guessed; what has expired is as if it had never been."""

    def __init__(self, clock_ms: Callable[[], int], random_id: Callable[[], str]) -> None:
        """random_id: a text that cannot be guessed, fit for an URL, another one each time."""
        self._clock_ms, self._random_id = clock_ms, random_id
        self._open: dict[str, SearchContext] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """How many are open, of which some may have expired since the last `sweep`."""
        return len(self._open)

    def open(
        self, state: Any, keep_alive_ms: int, owner: str | None = None, indexes: Iterable[str] = ()
    ) -> str:
        """The id to go on with. Errors: too_many_scroll_contexts_exception, illegal_argument_exception."""
        check_keep_alive(keep_alive_ms)
        now = self._clock_ms()
        with self._lock:
            self._drop_expired(now)
            if len(self._open) >= _OPEN_MAX:
                raise _too_many()
            context = SearchContext(self._random_id(), state, now + keep_alive_ms, owner, frozenset(indexes))
            self._open[context.id] = context
        return context.id

    def get(
        self, context_id: str, keep_alive_ms: int | None = None, owner: str | None = None
    ) -> SearchContext:
        """The context, kept for keep_alive_ms from now, None: for as long as before. owner: who asks; what
        others have opened is not there for them. None: a principal that may go on with all.

        Errors: search_context_missing_exception, illegal_argument_exception.
        """
        if keep_alive_ms is not None:
            check_keep_alive(keep_alive_ms)
        now = self._clock_ms()
        with self._lock:
            context = self._open.get(context_id)
            if context is None or context.expires_ms <= now or not _is_of(context, owner):
                if context is not None and context.expires_ms <= now:
                    del self._open[context_id]
                reason = f"No search context found for id [{context_id[:100]}]"
                raise SearchError("search_context_missing_exception", reason, 404)
            if keep_alive_ms is not None:
                context.expires_ms = max(context.expires_ms, now + keep_alive_ms)
        return context

    def count_on(self, indexes: Iterable[str], owner: str | None = None) -> int:
        """How many search any of these indexes, an index counted by itself; owner as for `get`."""
        names, now = frozenset(indexes), self._clock_ms()
        with self._lock:
            return sum(
                len(names & one.indexes)
                for one in self._open.values()
                if one.expires_ms > now and _is_of(one, owner)
            )

    def close(self, ids: Iterable[str], owner: str | None = None) -> int:
        """How many of them were open; owner as for `get`."""
        now = self._clock_ms()
        with self._lock:
            self._drop_expired(now)
            meant = {one for one in ids if one in self._open and _is_of(self._open[one], owner)}
            for context_id in meant:
                del self._open[context_id]
            return len(meant)

    def close_all(self) -> int:
        """How many were open."""
        with self._lock:
            count = len(self._open)
            self._open.clear()
        return count

    def sweep(self) -> int:
        """Let go of what has expired, and of the segments that it holds; how many there were."""
        with self._lock:
            return self._drop_expired(self._clock_ms())

    def _drop_expired(self, now: int) -> int:
        expired = [context.id for context in self._open.values() if context.expires_ms <= now]
        for context_id in expired:
            del self._open[context_id]
        return len(expired)


def _is_of(context: SearchContext, owner: str | None) -> bool:
    return owner is None or context.owner == owner


def check_keep_alive(keep_alive_ms: int, most_ms: int = KEEP_ALIVE_MS_MAX) -> None:
    """Errors: illegal_argument_exception for longer than `search.max_keep_alive`."""
    if keep_alive_ms > most_ms:
        raise illegal_request(
            f"Keep alive for request ({_shown(keep_alive_ms)}) is too large. It must be less than "
            f"({_shown(most_ms)}). This limit can be set by changing the [search.max_keep_alive] "
            "cluster level setting."
        )


def _shown(duration_ms: int) -> str:
    """In the largest unit that fits, with one digit after the point where it is not zero."""
    for unit, length_ms in _UNITS:
        if duration_ms >= length_ms:
            tenths = duration_ms * 10 // length_ms
            return f"{tenths // 10}{f'.{tenths % 10}' if tenths % 10 else ''}{unit}"
    return f"{duration_ms}ms"


def _too_many() -> SearchError:
    return SearchError(
        "too_many_scroll_contexts_exception",
        f"Trying to create too many scroll contexts. Must be less than or equal to: [{_OPEN_MAX}]. This "
        "limit can be set by changing the [search.max_open_scroll_context] setting.",
        429,
    )
