"""`Answer`: what an operation says, as JSON or text; filtered, indented and compressed on its way."""

import asyncio
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from starlette.responses import Response

from serve.search.frame.exchange import Exchange
from serve.search.frame.filter_path import filter_of

__all__ = ["PRODUCT", "Answer", "rendered"]

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
