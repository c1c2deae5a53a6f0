"""Answers, and the `filter_path` that narrows them."""

import asyncio
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import orjson
from starlette.responses import Response

from graphdb.search.errors import illegal_argument
from graphdb.search.mapping.wildcards import wildcard_match
from serve.search.frame.exchange import Exchange

__all__ = ["PRODUCT", "Answer", "PathFilter", "filter_of", "rendered"]

# `filter_path`: the parts of an answer that a client wants (`hits.hits._id`), or does not (`-took`).

PATTERNS_MAX = 1_000
DEPTH_MAX = 200

# What is left of a pattern below some place: `*` stands for a name, or a part of one, `**` for any number.
_Pattern: TypeAlias = tuple[str, ...]
_NOTHING = object()


@dataclass(frozen=True, slots=True)
class PathFilter:
    """Arrays have no names: a pattern goes through them. What is left empty is left out."""

    includes: tuple[_Pattern, ...]
    excludes: tuple[_Pattern, ...]

    def applied(self, value: Any) -> Any:
        """value without what is not wanted; an empty object where that is all."""
        left = _filtered(value, self.includes or None, self.excludes, DEPTH_MAX)
        return {} if left is _NOTHING else left


def filter_of(patterns: Sequence[str]) -> PathFilter | None:
    """None where there are no patterns."""
    if len(patterns) > PATTERNS_MAX:
        raise illegal_argument(f"[filter_path] takes at most [{PATTERNS_MAX}] patterns")
    excludes = tuple(_split(pattern[1:]) for pattern in patterns if pattern.startswith("-"))
    includes = tuple(_split(pattern) for pattern in patterns if not pattern.startswith("-"))
    return PathFilter(includes, excludes) if includes or excludes else None


@lru_cache(maxsize=512)
def _split(pattern: str) -> _Pattern:
    """At dots, but those that a backslash stands before."""
    return tuple(part.replace("\0", ".") for part in pattern.replace("\\.", "\0").split("."))


def _filtered(
    value: Any, includes: tuple[_Pattern, ...] | None, excludes: tuple[_Pattern, ...], depth: int
) -> Any:
    """includes is None where all is wanted that excludes leaves."""
    if includes is None and not excludes:
        return value
    if depth == 0:
        raise illegal_argument(f"[filter_path] cannot be applied below [{DEPTH_MAX}] levels")
    if isinstance(value, dict):
        members = ((name, _member(name, item, includes, excludes, depth)) for name, item in value.items())
        kept = {name: item for name, item in members if item is not _NOTHING}
        return kept or _NOTHING
    if isinstance(value, list):
        items = [_filtered(item, includes, excludes, depth - 1) for item in value]
        return [item for item in items if item is not _NOTHING] or _NOTHING
    return value if includes is None else _NOTHING


def _member(
    name: str, value: Any, includes: tuple[_Pattern, ...] | None, excludes: tuple[_Pattern, ...], depth: int
) -> Any:
    without, excludes = _advance(excludes, name)
    if without:
        return _NOTHING
    if includes is not None:
        whole, includes = _advance(includes, name)
        includes = None if whole else includes
        if includes == ():
            return _NOTHING
    return _filtered(value, includes, excludes, depth - 1)


def _advance(patterns: tuple[_Pattern, ...], name: str) -> tuple[bool, tuple[_Pattern, ...]]:
    """Whether one of the patterns ends at this name, and what is left of those that go on below it."""
    left: dict[_Pattern, None] = {}  # a set that keeps the order
    pending = list(patterns)
    while pending:
        head, *rest = pending.pop()
        if head == "**":
            if not rest:
                return True, ()
            left[(head, *rest)] = None
            pending.append(tuple(rest))
        elif wildcard_match(head, name):
            if not rest:
                return True, ()
            left[tuple(rest)] = None
    return False, tuple(left)


# `Answer`: what an operation says, as JSON or text; filtered, indented and compressed on its way.

# Official clients refuse to talk to a server that does not say so.
PRODUCT = {"X-elastic-product": "Elasticsearch"}
_OPAQUE_ID_MAX = 1_024  # characters
_COMPRESSED_FROM = 1_024  # bytes; less does not pay
_THREADED_FROM = 65_536
_PRETTY_BYTES_MAX = 16 << 20  # of more nobody reads the indentation
_GZIP_LEVEL = 3  # Elasticsearch's
_ENCODE = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


@dataclass(frozen=True, slots=True)
class Answer:
    """value is JSON, with `orjson.Fragment` where text is sent as it is; or a str, sent as plain text."""

    value: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


async def rendered(exchange: Exchange, answer: Answer) -> Response:
    """The answer as the request wants it. Raises SearchError for a filter_path that cannot be."""
    is_text = isinstance(answer.value, str)
    body = answer.value.encode() if is_text else await _json(exchange, answer.value)
    headers = {**PRODUCT, "content-type": exchange.answer_type(is_text), **answer.headers}
    opaque_id = exchange.request.headers.get("x-opaque-id")
    if opaque_id is not None:  # by which the client knows its requests again; clients refuse long headers
        headers["x-opaque-id"] = opaque_id[:_OPAQUE_ID_MAX]
    if len(body) >= _COMPRESSED_FROM and exchange.takes_gzip:
        body = await asyncio.to_thread(_gzip, body)
        headers |= {"content-encoding": "gzip", "vary": "accept-encoding"}
    headers["content-length"] = str(len(body))
    return Response(b"" if exchange.method == "HEAD" else body, answer.status, headers)


async def _json(exchange: Exchange, value: Any) -> bytes:
    body = orjson.dumps(value, option=_ENCODE)
    chosen = filter_of(exchange.parameters.strings("filter_path"))
    pretty = exchange.parameters.boolean("pretty", False) and len(body) <= _PRETTY_BYTES_MAX
    if chosen is None and not pretty:
        return body

    def reshaped() -> bytes:
        # What was sent as text has to be taken apart too.
        tree = orjson.loads(body)
        left = tree if chosen is None else chosen.applied(tree)
        return _indented(left) if pretty else orjson.dumps(left)

    return reshaped() if len(body) < _THREADED_FROM else await asyncio.to_thread(reshaped)


def _indented(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _gzip(body: bytes) -> bytes:
    compressor = zlib.compressobj(_GZIP_LEVEL, wbits=31)
    return compressor.compress(body) + compressor.flush()
