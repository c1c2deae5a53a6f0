"""Whether a write may be done: versions, sequence numbers, and what its writer sees."""

from typing import NamedTuple

import orjson

from graphdb.search.errors import version_conflict
from graphdb.search.protection import allowed_sids, document_protected
from graphdb.search.segments.operations import PRIMARY_TERM, Action, Operation

__all__ = ["MISSING", "Current", "next_version", "sees_current"]

# Whether a write may be done, given the document that is there, and which version it makes.


class Current(NamedTuple):
    """The state that a write finds. found is False for a document that was never there, or was deleted:
    a deleted one has its last version.
    """

    found: bool
    version: int
    seq_no: int
    source: bytes = b""
    routing: str | None = None


MISSING = Current(False, 0, -1)


def next_version(index: str, operation: Operation, current: Current) -> int:
    """The version that the write makes. Raises a version conflict where it may not be done."""
    if operation.action is not Action.CREATE and not operation.is_conditional:
        return current.version + 1
    conflict = (
        _created_already(operation, current)
        or _sequence_conflict(operation, current)
        or _external_conflict(operation, current)
    )
    if conflict:
        raise version_conflict(index, operation.doc_id, f"version conflict, {conflict}")
    if operation.version_type != "internal" and operation.version is not None:
        return operation.version
    return current.version + 1


def _created_already(operation: Operation, current: Current) -> str | None:
    if operation.action is Action.CREATE and current.found:
        return f"document already exists (current version [{current.version}])"
    return None


def _sequence_conflict(operation: Operation, current: Current) -> str | None:
    if operation.if_seq_no is None:
        return None
    wanted = (operation.if_seq_no, operation.if_primary_term)
    if current.found and wanted == (current.seq_no, PRIMARY_TERM):
        return None
    required = f"required seqNo [{wanted[0]}], primary term [{wanted[1]}]."
    if not current.found:
        return f"{required} but no document was found"
    return f"{required} current document has seqNo [{current.seq_no}] and primary term [{PRIMARY_TERM}]"


def _external_conflict(operation: Operation, current: Current) -> str | None:
    """A deleted document's version counts too: an old write that comes late does not bring it back."""
    if operation.version is None or current is MISSING:
        return None
    provided = f"the one provided [{operation.version}]"
    if operation.version_type == "external" and current.version >= operation.version:
        return f"current version [{current.version}] is higher or equal to {provided}"
    if operation.version_type == "external_gte" and current.version > operation.version:
        return f"current version [{current.version}] is higher than {provided}"
    return None


# What a writer sees of the document that a write finds, and may do to it.


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
    is_visible = not allowed.isdisjoint(operation.sids)
    if operation.action is Action.DELETE or operation.action is Action.UPDATE:
        if is_visible:
            return True
        if operation.action is Action.DELETE or not _inserts(operation):
            return False
    raise document_protected(operation.doc_id)


def _inserts(operation: Operation) -> bool:
    """Whether an update makes a document where there is none."""
    request = orjson.loads(operation.body)
    return isinstance(request, dict) and ("upsert" in request or "doc_as_upsert" in request)
