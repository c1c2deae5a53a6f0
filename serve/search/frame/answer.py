"""Answers, the `filter_path` that selects parts of them, and errors in the envelope of Elasticsearch."""

import asyncio
import logging
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from secrets import token_hex
from typing import Any, TypeAlias

import orjson
from starlette.responses import Response

from graphdb.errors import (
    BodyTooLarge,
    Forbidden,
    GraphDBError,
    LimitExceeded,
    LockedOut,
    NotAuthenticated,
    NotLeader,
    OutcomeUnknown,
    Overloaded,
    ProviderUnavailable,
    QueryMemoryExceeded,
    QueryTimeout,
    RequestError,
    StorageFull,
    UnavailableError,
    UnsupportedMediaType,
)
from graphdb.public_text import public_text
from graphdb.search.errors import SearchError, illegal_argument
from graphdb.search.mapping.wildcards import wildcard_match
from graphdb.search.multi import Failure
from serve.errors import challenges
from serve.search.frame.exchange import Exchange
from serve.search.frame.yaml_text import yaml_text

__all__ = [
    "COMPRESSED_FROM",
    "ENCODE",
    "PRODUCT",
    "THREADED_FROM",
    "Answer",
    "PathFilter",
    "envelope",
    "error_json",
    "failure",
    "filter_of",
    "gzipped",
    "internal",
    "query_failed",
    "rendered",
    "search_error",
]

# `filter_path`: the parts of an answer that a client wants (`hits.hits._id`), or does not (`-took`).

PATTERNS_MAX = 1_000
DEPTH_MAX = 200
STEPS_MAX = 1_000_000  # about a second
# What is left of a pattern below some place: `*` stands for a name, or a part of one, `**` for any number.
_Pattern: TypeAlias = tuple[str, ...]
_NOTHING = object()

log = logging.getLogger(__name__)
CAUSES_MAX = 20
_SHARD_FAILURES = "failed_shards"
# Type and status in Elasticsearch, by error class; the nearest ancestor counts.
_KINDS: dict[type[GraphDBError], tuple[str, int]] = {
    RequestError: ("illegal_argument_exception", 400),
    BodyTooLarge: ("content_too_long_exception", 413),
    LimitExceeded: ("illegal_argument_exception", 400),
    NotAuthenticated: ("security_exception", 401),
    Forbidden: ("security_exception", 403),
    LockedOut: ("security_exception", 429),
    UnsupportedMediaType: ("illegal_argument_exception", 415),
    UnavailableError: ("unavailable_shards_exception", 503),
    NotLeader: ("master_not_discovered_exception", 503),
    OutcomeUnknown: ("process_cluster_event_timeout_exception", 503),
    ProviderUnavailable: ("security_exception", 503),
    Overloaded: ("es_rejected_execution_exception", 429),
    QueryMemoryExceeded: ("circuit_breaking_exception", 429),
    QueryTimeout: ("timeout_exception", 503),
    StorageFull: ("cluster_block_exception", 429),
}
# Errors that are Java's, not Elasticsearch's: a failed search shows them again as its cause.
_JAVA = {"illegal_argument_exception", "illegal_state_exception", "number_format_exception"}
# None of these is a root cause below another error. The rest of them are Java's or of its libraries, too.
_NO_ROOTS = _JAVA | {
    "arithmetic_exception",
    "array_index_out_of_bounds_exception",
    "class_cast_exception",
    "date_time_exception",
    "date_time_parse_exception",
    "dissect_exception",
    "index_out_of_bounds_exception",
    "json_parse_exception",
    "named_object_not_found_exception",
    "null_pointer_exception",
    "string_index_out_of_bounds_exception",
    "too_complex_to_determinize_exception",
    "unsupported_operation_exception",
    "x_content_parse_exception",
}


@dataclass(frozen=True, slots=True)
class PathFilter:
    """Patterns ignore arrays. Empty results are left out."""

    includes: tuple[_Pattern, ...]
    excludes: tuple[_Pattern, ...]

    def applied(self, value: Any) -> Any:
        """value without the excluded parts; an empty object if nothing is left."""
        includes = _Patterns(self.includes).all() if self.includes else None
        left = _filtered(value, includes, _Patterns(self.excludes).all(), DEPTH_MAX)
        return {} if left is _NOTHING else left


def filter_of(patterns: Sequence[str]) -> PathFilter | None:
    """None without patterns."""
    if len(patterns) > PATTERNS_MAX:
        raise illegal_argument(f"[filter_path] takes at most [{PATTERNS_MAX}] patterns")
    excludes = tuple(_split(pattern[1:]) for pattern in patterns if pattern.startswith("-"))
    includes = tuple(_split(pattern) for pattern in patterns if not pattern.startswith("-"))
    return PathFilter(includes, excludes) if includes or excludes else None


@lru_cache(maxsize=512)
def _split(pattern: str) -> _Pattern:
    """Split at dots that are not escaped by a backslash."""
    return tuple(part.replace("\0", ".") for part in pattern.replace("\\.", "\0").split("."))


class _Patterns:
    """Patterns, and what has been found out about them for one answer: its names come again and again."""

    def __init__(self, patterns: tuple[_Pattern, ...]) -> None:
        self._patterns = patterns
        self._known: dict[frozenset[tuple[int, int]], _Below] = {}
        self._steps = 0

    def all(self) -> "_Below":
        return self._at(frozenset((number, 0) for number in range(len(self._patterns))))

    def _at(self, places: frozenset[tuple[int, int]]) -> "_Below":
        if places not in self._known:
            self._known[places] = _Below(self, places)
        return self._known[places]

    def below(self, places: frozenset[tuple[int, int]], name: str) -> "_Below | None":
        """None where a pattern ends at this name. Errors: illegal_argument_exception."""
        left: set[tuple[int, int]] = set()
        seen, pending = set(places), list(places)
        while pending:
            number, place = pending.pop()
            self._steps += 1
            if self._steps > STEPS_MAX:
                raise illegal_argument("[filter_path] has too many patterns for the names of this answer")
            parts = self._patterns[number]
            part, following = parts[place], (number, place + 1)
            is_any = part == "**"
            if not is_any and not wildcard_match(part, name):
                continue
            if place + 1 == len(parts):
                return None
            left.add((number, place) if is_any else following)
            if is_any and following not in seen:
                seen.add(following)
                pending.append(following)
        return self._at(frozenset(left))


class _Below:
    """What is left of patterns below some place: (pattern, place in it) each."""

    __slots__ = ("_known", "_of", "_places")

    def __init__(self, of: _Patterns, places: frozenset[tuple[int, int]]) -> None:
        self._of, self._places = of, places
        self._known: dict[str, _Below | None] = {}

    def __bool__(self) -> bool:
        return bool(self._places)

    def below(self, name: str) -> "_Below | None":
        """See `_Patterns.below`."""
        if name not in self._known:
            self._known[name] = self._of.below(self._places, name)
        return self._known[name]


def _filtered(value: Any, includes: _Below | None, excludes: _Below, depth: int) -> Any:
    """includes None: everything that excludes leaves."""
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


def _member(name: str, value: Any, includes: _Below | None, excludes: _Below, depth: int) -> Any:
    without = excludes.below(name)
    if without is None:
        return _NOTHING
    if includes is not None:
        includes = includes.below(name)
        if includes is not None and not includes:
            return _NOTHING
    return _filtered(value, includes, without, depth - 1)


# `Answer`: what an operation says, as JSON or text; filtered, indented and compressed on its way.

# Official clients refuse to talk to a server that does not say so.
PRODUCT = {"X-elastic-product": "Elasticsearch"}

_OPAQUE_ID_MAX = 1_024  # characters

COMPRESSED_FROM = 1_024  # bytes; less does not pay

THREADED_FROM = 65_536

_PRETTY_BYTES_MAX = 16 << 20  # larger answers are not indented, and stay JSON

_GZIP_LEVEL = 3  # Elasticsearch's

ENCODE = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


@dataclass(frozen=True, slots=True)
class Answer:
    """value is JSON, with `orjson.Fragment` where text is sent as it is; or a str, sent as plain text; or
    bytes, whose type the headers say.

    is_whole: `filter_path` takes nothing away, as of an error.
    """

    value: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    is_whole: bool = False


async def rendered(exchange: Exchange, answer: Answer) -> Response:
    """The answer as the request wants it. Raises SearchError for a filter_path that cannot be."""
    is_text = isinstance(answer.value, str | bytes)
    body = await _body(exchange, answer)
    headers = {**PRODUCT, "content-type": exchange.answer_type(is_text), **answer.headers}
    if not is_text and exchange.wants_yaml and len(body) <= _PRETTY_BYTES_MAX:
        body = (await asyncio.to_thread(lambda text: yaml_text(orjson.loads(text)), body)).encode()
        headers["content-type"] = "application/yaml"
    opaque_id = exchange.request.headers.get("x-opaque-id")
    if opaque_id is not None:  # by which the client knows its requests again; clients refuse long headers
        headers["x-opaque-id"] = opaque_id[:_OPAQUE_ID_MAX]
    if len(body) >= COMPRESSED_FROM and exchange.takes_gzip:
        body = await asyncio.to_thread(gzipped, body)
        headers |= {"content-encoding": "gzip", "vary": "accept-encoding"}
    headers["content-length"] = str(len(body))
    return Response(b"" if exchange.method == "HEAD" else body, answer.status, headers)


async def _body(exchange: Exchange, answer: Answer) -> bytes:
    if isinstance(answer.value, bytes):
        return answer.value
    return answer.value.encode() if isinstance(answer.value, str) else await _json(exchange, answer)


async def _json(exchange: Exchange, answer: Answer) -> bytes:
    body = orjson.dumps(answer.value, option=ENCODE)
    chosen = None if answer.is_whole else filter_of(exchange.parameters.strings("filter_path"))
    pretty = exchange.parameters.boolean("pretty", False) and len(body) <= _PRETTY_BYTES_MAX
    if chosen is None and not pretty:
        return body

    def reshaped() -> bytes:
        # A fragment that is text already has to be parsed, too.
        tree = orjson.loads(body)
        left = tree if chosen is None else chosen.applied(tree)
        return _indented(left) if pretty else orjson.dumps(left)

    return reshaped() if len(body) < THREADED_FROM else await asyncio.to_thread(reshaped)


def _indented(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def gzipped(body: bytes) -> bytes:
    """As an answer of the media type gzip."""
    compressor = zlib.compressobj(_GZIP_LEVEL, wbits=31)
    return compressor.compress(body) + compressor.flush()


def search_error(error: Exception) -> SearchError:
    """The same as clients know it. A mistake of ours is logged, and answered with the log's id."""
    if isinstance(error, SearchError):
        return error
    found = next((_KINDS[kind] for kind in type(error).__mro__ if kind in _KINDS), None)
    return internal(error) if found is None else SearchError(found[0], public_text(error), found[1])


def internal(error: Exception) -> SearchError:
    """An unexpected error: the log has it under an id, and the client gets only the id."""
    error_id = token_hex(8)
    log.error("a search request failed [%s]", error_id, exc_info=error)
    return SearchError("exception", f"internal server error [{error_id}]", 500)


def failure(error: GraphDBError) -> Answer:
    """The answer to a request that met this error."""
    known = search_error(error)
    headers = {}
    if isinstance(error, NotAuthenticated):
        headers["WWW-Authenticate"] = challenges(str(error))
    if isinstance(error, UnavailableError | LockedOut):
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, BodyTooLarge):
        # The rest of the body is not read, so the connection cannot carry another request.
        headers["Connection"] = "close"
    return Answer(envelope(known), known.status, headers, is_whole=True)


def envelope(error: SearchError) -> dict[str, Any]:
    """The body of a failed request."""
    return {"error": {"root_cause": _root_causes(error), **error_json(error)}, "status": error.status}


def error_json(error: SearchError) -> dict[str, Any]:
    """The error without its envelope, as in the items of `_bulk` and `_msearch`."""
    top: dict[str, Any] = {}
    into, current = top, error
    for _ in range(CAUSES_MAX):
        into |= _alone(current)
        if current.cause is None:
            break
        into["caused_by"] = {}
        into, current = into["caused_by"], current.cause
    return top


def _alone(error: SearchError) -> dict[str, Any]:
    return {"type": error.kind, "reason": error.reason, **error.metadata}


def _root_causes(error: SearchError) -> list[dict[str, Any]]:
    failures = error.metadata.get(_SHARD_FAILURES)
    if not failures:
        return [_alone(_root(error))]
    causes = []
    for one in failures:
        reason = {name: value for name, value in one["reason"].items() if name != "caused_by"}
        if reason not in causes:
            causes.append(reason)
    return causes


def _root(error: SearchError) -> SearchError:
    """What it comes from, as far as Elasticsearch tells it: the causes that are errors of its own."""
    unwraps = error.kind not in _NO_ROOTS or error.kind == "x_content_parse_exception"
    if not unwraps or error.cause is None:
        return error
    is_parsing = error.kind == error.cause.kind == "x_content_parse_exception"
    return _root(error.cause) if is_parsing or error.cause.kind not in _NO_ROOTS else error


def query_failed(failures: Sequence[Failure], node: str, phase: str = "query") -> SearchError:
    """All shards of a search failed. node: the id of this one.

    Errors of the request itself (what does not parse) are raised as they are, not through this.
    """
    shards = [
        {
            "shard": one.shards[0],
            "index": one.index,
            "node": one.node_id(node),
            "reason": error_json(one.error),
        }
        for one in failures
    ]
    first = failures[0].error
    cause = None
    if first.kind in _JAVA:
        cause = SearchError(first.kind, first.reason, first.status, None, first)
    metadata = {"phase": phase, "grouped": True, _SHARD_FAILURES: shards}
    status = max(one.error.status for one in failures)
    return SearchError("search_phase_execution_exception", "all shards failed", status, metadata, cause)
