"""Documents as they are given: text that has to be one JSON object, kept as it is."""

import asyncio

from graphdb.search.errors import SearchError
from serve.search.frame.json_text import LONG_BYTES, parse_json

__all__ = ["check_document", "document_problem"]


async def check_document(text: bytes) -> None:
    """Raise what is wrong with it."""
    if not text:
        raise SearchError("parse_exception", "request body is required")
    long = len(text) >= LONG_BYTES
    problem = await asyncio.to_thread(document_problem, text) if long else document_problem(text)
    if problem is not None:
        raise problem


def document_problem(text: bytes) -> SearchError | None:
    """Why it cannot be stored, None where it can, as far as its text tells."""
    try:
        value = parse_json(text)
    except SearchError as error:
        where = error.reason.partition("]")[0] + "]" if error.reason.startswith("[") else "[1:1]"
        return _unparsable(f"{where} failed to parse: {error.reason}", error)
    if isinstance(value, dict):
        return None
    reason = "malformed content, must start with an object"
    return _unparsable(f"[1:1] failed to parse: {reason}", SearchError("not_x_content_exception", reason))


def _unparsable(reason: str, cause: SearchError) -> SearchError:
    return SearchError("document_parsing_exception", reason, 400, None, cause)
