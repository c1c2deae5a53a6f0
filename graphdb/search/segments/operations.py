"""What is done to the documents of an index, one at a time: whether it may be done, and what comes of it."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import orjson

from graphdb.search.document_texts import LongNumbers
from graphdb.search.errors import SearchError, illegal_argument, version_conflict
from graphdb.search.protection import allowed_sids, document_protected

__all__ = [
    "MISSING",
    "PRIMARY_TERM",
    "Action",
    "Current",
    "Operation",
    "OperationResult",
    "Outcome",
    "are_plain_additions",
    "is_plain",
    "next_version",
    "sees_current",
    "validate",
    "version_problems",
]

PRIMARY_TERM = 1  # there is one log and no primary that could change
_ID_BYTES_MAX = 512
_UNCONDITIONAL = (None, None, None, "internal")


class Action(Enum):
    """As `_bulk` names them."""

    INDEX = "index"
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


class Outcome(Enum):
    """`result` of the answer."""

    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"
    NOOP = "noop"
    NOT_FOUND = "not_found"


class Operation(NamedTuple):
    """body is the JSON of the document; of an update that of its request (`doc`, `upsert` and so on).

    value is what orjson makes of it, from a caller that has read it already, without `numbers`, which are a
    member of it, too. They never change, and are not logged.
    sids: of the writer, who may only change what they let them see; None: everything.
    wants_source: of an update: its result is to have the document. It is not logged.
    dynamic_templates: the names of those that new fields of the document are to get, by their paths.
    """

    action: Action
    doc_id: str
    body: bytes = b""
    routing: str | None = None
    if_seq_no: int | None = None
    if_primary_term: int | None = None
    version: int | None = None
    version_type: str = "internal"  # or external, external_gte
    value: dict[str, Any] | None = None
    sids: frozenset[str] | None = None
    wants_source: bool = False
    numbers: LongNumbers | None = None
    dynamic_templates: Mapping[str, str] | None = None

    @property
    def is_conditional(self) -> bool:
        """Whether it says anything of versions."""
        return self[4:8] != _UNCONDITIONAL


class OperationResult(NamedTuple):
    """What became of one operation. With an error nothing was changed, and outcome is None."""

    action: Action
    doc_id: str
    outcome: Outcome | None = None
    version: int = 0
    seq_no: int = -1
    source: bytes | None = None  # of an update, where that was wanted: the document as it is now
    error: SearchError | None = None
    made_bytes: int = 0  # of an update: the length of the document that it has written

    @property
    def status(self) -> int:
        """HTTP's, as the items of a `_bulk` have it."""
        if self.error is not None:
            return self.error.status
        if self.outcome is Outcome.CREATED:
            return 201
        return 404 if self.outcome is Outcome.NOT_FOUND else 200

    def failed(self, error: SearchError) -> "OperationResult":
        return self._replace(error=error)


def is_plain(operation: Operation) -> bool:
    """Whether it certainly passes `validate`, and says nothing of versions."""
    return 0 < len(operation.doc_id) <= _ID_BYTES_MAX // 4 and operation[4:8] == _UNCONDITIONAL


def are_plain_additions(operations: Sequence[Operation]) -> bool:
    """Whether all are to be stored, not changed or deleted, `is_plain` is true of them, and none has a
    routing.
    """
    total = len(operations)
    actions, ids, _, routings, seq_nos, terms, versions, kinds, *_ = zip(*operations, strict=True)
    lengths = list(map(len, ids))
    return (
        actions.count(Action.INDEX) + actions.count(Action.CREATE) == total
        and all(ones.count(None) == total for ones in (routings, seq_nos, terms, versions))
        and kinds.count("internal") == total
        and min(lengths) > 0
        and max(lengths) <= _ID_BYTES_MAX // 4
    )


def validate(operation: Operation) -> None:
    """Refuse what no state of the index could make right."""
    if is_plain(operation):
        return
    if not operation.doc_id:
        raise illegal_argument("if _id is specified it must not be empty")
    problems = [*_id_problems(operation), *version_problems(operation)]
    if problems:
        text = "".join(f"{number}: {problem};" for number, problem in enumerate(problems, 1))
        raise SearchError("action_request_validation_exception", f"Validation Failed: {text}")


def _id_problems(operation: Operation) -> list[str]:
    length = len(operation.doc_id.encode("utf-8", "surrogatepass"))
    if length > _ID_BYTES_MAX:
        limit = f"must be no longer than {_ID_BYTES_MAX} bytes but was: {length}"
        return [f"id [{operation.doc_id}] is too long, {limit}"]
    return []


def version_problems(operation: Operation) -> list[str]:
    """What it says of versions and no state of the index could make right."""
    problems: list[str] = []
    compares = operation.if_seq_no is not None or operation.if_primary_term is not None
    external = operation.version_type != "internal"
    if not compares and not external and operation.version is None:
        return problems
    if operation.version_type not in ("internal", "external", "external_gte"):
        problems.append(f"No version type match [{operation.version_type}]")
    if operation.action is Action.CREATE and external:
        problems.append("create operations only support internal versioning. use index instead")
    if operation.action is Action.CREATE and compares:
        problems.append("create operations do not support compare and set. use index instead")
    if operation.action is Action.UPDATE and external:
        problems.append(
            "internal versioning can not be used for optimistic concurrency control. "
            "Please use `if_seq_no` and `if_primary_term` instead"
        )
    return problems + _value_problems(operation, compares, external)


def _value_problems(operation: Operation, compares: bool, external: bool) -> list[str]:
    problems = []
    if external and compares:
        problems.append("compare and write operations can not use versioning")
    if external and (operation.version is None or not 0 <= operation.version < 1 << 63):
        problems.append(
            f"illegal version value [{operation.version}] for version type [{operation.version_type.upper()}]"
        )
    if not external and operation.version is not None:
        problems.append(
            "internal versioning can not be used for optimistic concurrency control. "
            "Please use `if_seq_no` and `if_primary_term` instead"
        )
    if operation.if_seq_no is not None and not operation.if_primary_term:
        problems.append("ifSeqNo is set, but primary term is [0]")
    if operation.if_primary_term and operation.if_seq_no is None:
        problems.append(f"ifSeqNo is unassigned, but primary term is [{operation.if_primary_term}]")
    return problems


# Whether a write may be done: versions, sequence numbers, and what is visible to its writer.

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


def next_version(index: str, shard: int, operation: Operation, current: Current) -> int:
    """The version that the write makes. Raises a version conflict where it may not be done. index, shard:
    where that is.
    """
    if operation.action is not Action.CREATE and not operation.is_conditional:
        return current.version + 1
    conflict = (
        _created_already(operation, current)
        or _sequence_conflict(operation, current)
        or _external_conflict(operation, current)
    )
    if conflict:
        raise version_conflict(index, shard, operation.doc_id, f"version conflict, {conflict}")
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
