"""`_allow_sids`, the member of a document that makes it visible to principals with one of its SIDs only."""

from collections.abc import Mapping
from typing import Any

import orjson

from graphdb.search.errors import SearchError

__all__ = [
    "ALLOW_SIDS",
    "allowed_sids",
    "document_protected",
    "has_protection",
    "listed_sids",
    "may_have_protection",
    "protection_forbidden",
    "sets_protection",
    "without_protection",
]

ALLOW_SIDS = "_allow_sids"
"""Also the path of the internal field that segments keep the SIDs in. No mapping has it, so no query asks."""

_NOBODY = ""  # stands in the field for an empty list: no SID is empty


def listed_sids(value: Any) -> list[str]:
    """The SIDs that a document's member lists, one or an array; as the internal field has them, never empty.

    Errors: document_parsing_exception.
    """
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(one, str) and one for one in listed):
        reason = f"failed to parse field [{ALLOW_SIDS}]: it must be a SID, or an array of SIDs"
        raise SearchError("document_parsing_exception", reason)
    return listed or [_NOBODY]


def allowed_sids(source: bytes) -> frozenset[str] | None:
    """The SIDs to which a stored document is visible; None: to all."""
    if not may_have_protection(source):
        return None
    document = orjson.loads(source)
    return frozenset(listed_sids(document[ALLOW_SIDS])) if ALLOW_SIDS in document else None


def without_protection(source: bytes) -> bytes:
    """The document as those see it who may not know for whom it is."""
    if not may_have_protection(source):
        return source
    document: dict[str, Any] = orjson.loads(source)
    if document.pop(ALLOW_SIDS, None) is None:
        return source
    return orjson.dumps(document)


def has_protection(document: Mapping[str, Any]) -> bool:
    """Whether it says who sees it, or tries to by names with dots."""
    return any(name == ALLOW_SIDS or name.startswith(f"{ALLOW_SIDS}.") for name in document)


def sets_protection(body: bytes, is_update: bool) -> bool:
    """Whether a document, or the request of an update, says who is to see a document; no JSON does not."""
    if not may_have_protection(body):
        return False
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    if not isinstance(given, dict):
        return False
    parts = (given.get("doc"), given.get("upsert")) if is_update else (given,)
    return any(isinstance(part, dict) and has_protection(part) for part in parts)


def protection_forbidden() -> SearchError:
    """For a client that sets the visibility of a document and is not an admin."""
    return SearchError("security_exception", f"only admins may set or change [{ALLOW_SIDS}]", 403)


def document_protected(doc_id: str) -> SearchError:
    """For a client that would replace a document that is protected, or not visible to it."""
    reason = f"document [{doc_id[:512]}] is protected by [{ALLOW_SIDS}]: only admins may replace it"
    return SearchError("security_exception", reason, 403)


def may_have_protection(text: bytes) -> bool:
    """Cheap, and never wrong where it says no: JSON may write any letter as an escape."""
    return b"_allow_sids" in text or b"\\u" in text
