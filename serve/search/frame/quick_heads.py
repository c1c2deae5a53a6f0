"""Heads of requests that are answered without the application, and those of their answers."""

from dataclasses import dataclass
from functools import lru_cache

from graphdb.search.errors import SearchError
from serve.port.application import PLAIN_HEADERS, WholeAnswer
from serve.search.frame.answer import COMPRESSED_FROM, PRODUCT, gzipped
from serve.search.frame.exchange import accepted, content_type

__all__ = ["QuickHead", "read_head", "whole_answer"]

# With any other header the request goes the usual way.
_KNOWN_HEADERS = PLAIN_HEADERS | {b"x-elastic-client-meta"}
_JSON = "application/json"
_GZIP = ((b"content-encoding", b"gzip"), (b"vary", b"accept-encoding"))

_Headers = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class QuickHead:
    """What follows from the headers of a request. shown: those of its answer, without Content-Length."""

    shown: _Headers
    takes_gzip: bool


def read_head(headers: list[tuple[bytes, bytes]]) -> QuickHead | None:
    """None for a request that may need more than is done without the application."""
    return _read_head(tuple([header for header in headers if header[0] != b"content-length"]))


@lru_cache(maxsize=256)
def _read_head(headers: _Headers) -> QuickHead | None:
    given = dict(headers)
    if len(given) < len(headers) or not _KNOWN_HEADERS.issuperset(given):
        return None
    try:
        sent = content_type(given.get(b"content-type", b"").decode("latin-1"))
        wanted = accepted(given.get(b"accept", b"").decode("latin-1"))
    except SearchError:
        return None
    if sent.name != _JSON or (wanted is not None and wanted.name != sent.name):
        return None
    product = tuple((name.lower().encode(), value.encode()) for name, value in PRODUCT.items())
    media_type = _JSON if wanted is None else wanted.of_answer()
    shown = (*product, (b"content-type", media_type.encode("latin-1")))
    return QuickHead(shown, b"gzip" in given.get(b"accept-encoding", b""))


def whole_answer(head: QuickHead, text: bytes, status: int = 200, more: _Headers = ()) -> WholeAnswer:
    """The answer of such a request. text: its JSON; more: headers."""
    if not head.takes_gzip or len(text) < COMPRESSED_FROM:
        return WholeAnswer([*head.shown, *more], text, status)
    return WholeAnswer([*head.shown, *more, *_GZIP], gzipped(text), status)
