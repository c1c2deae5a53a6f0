"""Documents as they are given: text that has to be one JSON object, kept as it is."""

import asyncio
from typing import Any

from graphdb.search.errors import SearchError
from serve.search.frame.json_text import LONG_BYTES, parse_json

__all__ = ["check_document", "read_document"]


async def check_document(text: bytes) -> None:
    """Raise what is wrong with it."""
    if not text:
        raise SearchError("parse_exception", "request body is required")
    if len(text) >= LONG_BYTES:
        await asyncio.to_thread(read_document, text)
    else:
        read_document(text)


def read_document(text: bytes) -> dict[str, Any]:
    """Its value. Raises document_parsing_exception where it cannot be stored, as far as its text tells."""
    try:
        value = parse_json(text)
    except SearchError as error:
        where = error.reason.partition("]")[0] + "]" if error.reason.startswith("[") else "[1:1]"
        raise _unparsable(f"{where} failed to parse: {error.reason}", error) from None
    if isinstance(value, dict):
        return value
    reason = "malformed content, must start with an object"
    raise _unparsable(f"[1:1] failed to parse: {reason}", SearchError("not_x_content_exception", reason))


def _unparsable(reason: str, cause: SearchError) -> SearchError:
    return SearchError("document_parsing_exception", reason, 400, None, cause)
