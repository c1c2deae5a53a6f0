"""How much of documents one answer may show. All of it stands in memory until it is sent.

The room travels as the deadline does (a context variable), for documents are shown deep inside of searches
that know nothing of requests: `one_answer` begins it, `take_room` counts. Elasticsearch has circuit breakers
for what would fill its memory; the error is theirs. What may be made again counts when it is made:
`answer_attempt`, `short_answer`.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import orjson

from graphdb.search.errors import SearchError

__all__ = [
    "ANSWER_BYTES_MAX",
    "AnswerRoom",
    "LongAnswer",
    "answer_attempt",
    "one_answer",
    "room_of_answer",
    "short_answer",
    "take_room",
    "take_room_of_part",
    "whole_document",
]

ANSWER_BYTES_MAX = 256 * 1024 * 1024
_SHORT_BYTES = 16 * 1024
_SHORT_ANSWER_BYTES_MAX = 2 << 20  # so much is made and sent while others wait


class LongAnswer(Exception):
    """A `short_answer` would not be short."""


class AnswerRoom:
    """Of one answer. Several threads may take: what they take at the same moment may be counted as less."""

    __slots__ = ("taken_bytes",)

    def __init__(self, taken_bytes: int = 0) -> None:
        self.taken_bytes = taken_bytes

    def take(self, size_bytes: int) -> None:
        """Raises circuit_breaking_exception (429) where the answer has become too long."""
        self.taken_bytes += size_bytes
        if self.taken_bytes > ANSWER_BYTES_MAX:
            raise SearchError(
                "circuit_breaking_exception",
                f"Data too large: the documents of one answer would be more than [{ANSWER_BYTES_MAX}] bytes: "
                "ask for fewer of them, for parts of them (_source, fields), or page by page (search_after)",
                429,
                {
                    "bytes_wanted": self.taken_bytes,
                    "bytes_limit": ANSWER_BYTES_MAX,
                    "durability": "TRANSIENT",
                },
            )


class _ShortRoom(AnswerRoom):
    """Of an answer that is to be short."""

    __slots__ = ("_end",)

    def __init__(self, taken_bytes: int) -> None:
        super().__init__(taken_bytes)
        self._end = taken_bytes + _SHORT_ANSWER_BYTES_MAX

    def take(self, size_bytes: int) -> None:
        if self.taken_bytes + size_bytes > self._end:
            raise LongAnswer
        super().take(size_bytes)


_ROOM: ContextVar[AnswerRoom | None] = ContextVar("search_answer_room", default=None)


def room_of_answer() -> AnswerRoom | None:
    """Of the answer that is being made here; for a thread that makes a part of it."""
    return _ROOM.get()


@contextmanager
def one_answer(room: AnswerRoom | None = None) -> Iterator[None]:
    """What runs inside makes one answer, or a part of the one that is being made.

    room: that of the answer, where another thread makes it.
    """
    token = _ROOM.set(room or _ROOM.get() or AnswerRoom())
    try:
        yield
    finally:
        _ROOM.reset(token)


def answer_attempt() -> AbstractContextManager[None]:
    """What runs inside makes an answer, or a part of one. It takes room if it does not fail: it may be made
    again.
    """
    around = _ROOM.get()
    return nullcontext() if around is None else _TakenAtLast(around, AnswerRoom(around.taken_bytes))


def short_answer() -> AbstractContextManager[None]:
    """As `answer_attempt`, of an answer that others wait for. Raises LongAnswer where it shows so much of
    documents that it is to be made beside them.
    """
    around = _ROOM.get() or AnswerRoom()
    return _TakenAtLast(around, _ShortRoom(around.taken_bytes))


class _TakenAtLast:
    """A room while it is used; then another takes what it has taken, if nothing was raised."""

    __slots__ = ("_around", "_before", "_room", "_token")

    def __init__(self, around: AnswerRoom, room: AnswerRoom) -> None:
        self._around, self._room, self._before = around, room, room.taken_bytes

    def __enter__(self) -> None:
        self._token = _ROOM.set(self._room)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        _ROOM.reset(self._token)
        if kind is None:
            self._around.take(self._room.taken_bytes - self._before)


def whole_document(source: bytes) -> orjson.Fragment:
    """A whole document as an answer shows it, which is the stored text. Raises as `AnswerRoom.take`."""
    take_room(len(source))
    return orjson.Fragment(source)


def take_room_of_part(shown: Any, source: bytes) -> None:
    """A part of a document is shown; that of a short one is not counted. Raises as `AnswerRoom.take`."""
    if len(source) > _SHORT_BYTES and _ROOM.get() is not None:
        take_room(len(orjson.dumps(shown, option=orjson.OPT_NON_STR_KEYS)))


def take_room(size_bytes: int) -> None:
    """So much of a document is shown. Raises as `AnswerRoom.take`."""
    room = _ROOM.get()
    if room is not None:
        room.take(size_bytes)
