"""What is done to the documents of an index, one at a time, and what comes of it."""

from enum import Enum
from typing import Any, NamedTuple

from graphdb.search.errors import SearchError, illegal_argument

__all__ = ["PRIMARY_TERM", "Action", "Operation", "OperationResult", "Outcome", "validate"]

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

    value is what orjson makes of it, from a caller that has read it already. It never changes, and is not
    logged.
    sids: of the writer, who may only change what they let them see; None: everything.
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
    source: bytes | None = None  # of an update: the document as it is now
    error: SearchError | None = None

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


def validate(operation: Operation) -> None:
    """Refuse what no state of the index could make right."""
    if 0 < len(operation.doc_id) <= _ID_BYTES_MAX // 4 and not operation.is_conditional:
        return
    if not operation.doc_id:
        raise illegal_argument("if _id is specified it must not be empty")
    problems = [*_id_problems(operation), *_version_problems(operation)]
    if problems:
        text = "".join(f"{number}: {problem};" for number, problem in enumerate(problems, 1))
        raise SearchError("action_request_validation_exception", f"Validation Failed: {text}")


def _id_problems(operation: Operation) -> list[str]:
    length = len(operation.doc_id.encode("utf-8", "surrogatepass"))
    if length > _ID_BYTES_MAX:
        limit = f"must be no longer than {_ID_BYTES_MAX} bytes but was: {length}"
        return [f"id [{operation.doc_id}] is too long, {limit}"]
    return []


def _version_problems(operation: Operation) -> list[str]:
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
