"""JSON of a request, read strictly: no name twice in an object, no depth that would hurt what walks it."""

import json
from typing import Any

import orjson

from graphdb.search.errors import SearchError

__all__ = ["DEPTH_MAX", "LONG_BYTES", "parse_json", "token_name"]

DEPTH_MAX = 200
_ROOM = 54  # levels that answers may have around it: orjson writes 254
LONG_BYTES = 131_072  # from here on reading takes longer than the event loop should


class _Repeated(Exception):
    """A name that an object has twice."""


def parse_json(text: bytes) -> Any:
    """The value. Raises x_content_parse_exception, which says where."""
    try:
        value = orjson.loads(text)
        again = orjson.dumps(_deeper(value) if _may_be_deep(text) else value)
    except orjson.JSONDecodeError as error:
        raise _malformed(_reason(error), error.lineno, error.colno) from None
    except orjson.JSONEncodeError:
        reason = f"Document nesting depth exceeds the maximum allowed ({DEPTH_MAX})"
        raise SearchError("x_content_parse_exception", reason) from None
    # Each member has a colon; where a name came twice, the reader has dropped one. Those within strings stay,
    # but for those that are written as an escape.
    if again != text and (text.count(b":") != again.count(b":") or b"\\u003" in text):
        _check_names(text)
    return value


def _may_be_deep(text: bytes) -> bool:
    """Most have one object and no array, which is quickly seen."""
    if text.find(b"{", 1) < 0 and b"[" not in text:
        return False
    return text.count(b"{") + text.count(b"[") > DEPTH_MAX


def _deeper(value: Any) -> Any:
    """With as much around it as leaves it DEPTH_MAX levels of what can be written."""
    for _ in range(_ROOM):
        value = [value]
    return value


def _reason(error: orjson.JSONDecodeError) -> str:
    """In the words of the parser that clients know, where they are known."""
    if error.msg.startswith("unexpected end of data"):
        return "Unexpected end-of-input"
    if error.msg.startswith("unexpected character"):
        shown = error.doc[error.pos : error.pos + 1]
        return f"Unexpected character ('{shown}' (code {ord(shown) if shown else 0}))"
    return error.msg.partition(":")[0]


def _malformed(reason: str, line: int, column: int) -> SearchError:
    where = f"{reason}\n at [Source: REDACTED; line: {line}, column: {column}]"
    cause = SearchError("json_parse_exception", where)
    return SearchError("x_content_parse_exception", f"[{line}:{column}] {where}", 400, None, cause)


def _check_names(text: bytes) -> None:
    """Raise where an object has a name twice."""

    def checked(members: list[tuple[str, Any]]) -> None:
        seen = set()
        for name, _ in members:
            if name in seen:
                raise _Repeated(name)
            seen.add(name)

    try:
        json.loads(text, object_pairs_hook=checked)
    except _Repeated as error:
        name = str(error)
        position = _second(text, name)
        line = text.count(b"\n", 0, position) + 1
        column = position - (text.rfind(b"\n", 0, position) + 1) + 1
        raise _malformed(f"Duplicate field '{name[:200]}'", line, column) from None


def _second(text: bytes, name: str) -> int:
    """Where the name stands for the second time, as well as a glance can tell."""
    quoted = orjson.dumps(name)
    return max(text.find(quoted, text.find(quoted) + 1), 0)


def token_name(value: Any) -> str:
    """What a value begins with, in the words of error messages."""
    if isinstance(value, dict | list):
        return "START_OBJECT" if isinstance(value, dict) else "START_ARRAY"
    if value is None or isinstance(value, bool):
        return "VALUE_NULL" if value is None else "VALUE_BOOLEAN"
    return "VALUE_STRING" if isinstance(value, str) else "VALUE_NUMBER"
