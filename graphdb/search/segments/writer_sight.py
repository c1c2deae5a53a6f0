"""What a writer sees of the document that a write finds, and may do to it."""

import orjson

from graphdb.search.protection import allowed_sids, document_protected
from graphdb.search.segments.operations import Action, Operation
from graphdb.search.segments.versioning import Current

__all__ = ["sees_current"]


def sees_current(operation: Operation, current: Current) -> bool:
    """Whether the write finds the document; where its writer does not see it, and would not replace it, it is
    as one that is missing.

    Errors: security_exception for what would replace a protected document: the new one would be for all, and
    only admins say for whom one is. An update keeps what the document says of that.
    """
    if operation.sids is None or not current.found:
        return True
    allowed = allowed_sids(current.source)
    if allowed is None:
        return True
    is_seen = not allowed.isdisjoint(operation.sids)
    if operation.action is Action.DELETE or operation.action is Action.UPDATE:
        if is_seen:
            return True
        if operation.action is Action.DELETE or not _inserts(operation):
            return False
    raise document_protected(operation.doc_id)


def _inserts(operation: Operation) -> bool:
    """Whether an update makes a document where there is none."""
    request = orjson.loads(operation.body)
    return isinstance(request, dict) and ("upsert" in request or "doc_as_upsert" in request)
