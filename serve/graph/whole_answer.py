"""Answers to queries that are sent in one piece, and the heads of all answers to queries."""

from typing import TypeAlias

from starlette.responses import Response

from graphdb.sparql.results import ResultFormat

__all__ = ["Head", "WholeAnswer", "answer_head", "not_modified_head"]

Head: TypeAlias = list[tuple[bytes, bytes]]  # names in small letters, and values

# Whoever keeps an answer has to ask, before showing it again, whether it still holds.
_SAME_FOR_ALL: Head = [(b"vary", b"Accept"), (b"cache-control", b"no-cache")]
_HEADS: dict[ResultFormat, Head] = {
    fmt: [(b"content-type", fmt.content_type.encode()), *_SAME_FOR_ALL] for fmt in ResultFormat
}


def answer_head(fmt: ResultFormat, snapshot_index: int, tag: str | None = None) -> Head:
    """The headers that say what an answer is, with the entity tag where it has one."""
    head = [*_HEADS[fmt], (b"x-snapshot-index", b"%d" % snapshot_index)]
    if tag is not None:
        head.append((b"etag", tag.encode()))
    return head


def not_modified_head(snapshot_index: int, tag: str) -> Head:
    """The headers that say that what the client holds is what the answer would be."""
    return [*_SAME_FOR_ALL, (b"x-snapshot-index", b"%d" % snapshot_index), (b"etag", tag.encode())]


class WholeAnswer(Response):
    """An answer without anything to be looked up or encoded: a few microseconds less than its base class."""

    def __init__(self, head: Head, body: bytes | None, status_code: int = 200) -> None:
        """body None is none, as for HEAD; head is not to be used again."""
        self.status_code = status_code
        self.background = None
        self.body = body or b""
        self.raw_headers = head
        if body is not None:
            head.append((b"content-length", b"%d" % len(body)))
