"""What can go wrong, split first by whose move is next.

GraphDBError
  RequestError              the caller's move: mend the request
    QuerySyntaxError          SPARQL text that does not parse
    RdfSyntaxError            an RDF body that does not parse
    InvalidParameter          a parameter, header or body that cannot mean anything
    MalformedShapes           SHACL shapes that mean nothing, or more than is offered
    ShapesViolated            a write that the shapes which are enforced do not allow
    EditRefused               edits of resources, of which one at least cannot be
    UnknownGraph              a graph that does not exist
    NotFound                  something else that does not exist, such as a holon or an alert
    TransactionConflict       a commit whose transaction has read what has changed since
    MembershipLoop            a holon that would be a part of itself
    AlreadyExists             a graph, holon, portal or alert that is there already
    NotAcceptable             no offered format fits the Accept header
    UnsupportedMediaType      a body of a type, or compressed in a way, that we do not read
    BodyTooLarge              a body over the limit, counted after decompression
    LimitExceeded             a request past a named limit
      TextTooLarge              one whose body was not even read to its end
    NotAuthenticated          credentials that are missing or wrong
    Forbidden                 what the roles of whoever asks do not allow
    LockedOut                 an address from which wrong credentials have come too often
    HostNotAllowed            SERVICE, LOAD, WEBHOOK, REINDEX or RERANK to a host that is not allowed
    KeyReused                 an Idempotency-Key that stands for another request already
    NotClustered              a change of the cluster, asked of a node that stands alone
    MembershipRefused         a change of the cluster that its members do not allow
    ChangesForgotten          changes that the log does not have any more
    HistoryForgotten          a past state that cannot be made any more
    EvaluationFailed          the engine refused a request that parses
    UnknownFunction           a function that GeoSPARQL does not have
    BadGeometry               a geometry that cannot be read, or that an operation is not defined for
  UnavailableError          try again later
    Overloaded                too much is waiting
    ProviderUnavailable       whoever is to say whose credentials these are cannot be asked
    QueryTimeout              a query past its time limit
    QueryTooLong              a query that would be far past its time limit, and was not begun
    QueryMemoryExceeded       a query past the memory that a reader may have
    QueryCancelled            a query that somebody has ended
    IndexNotReached           a node that is behind the index that is asked for
    StorageFull               no room on the disk; nothing was stored
    LogUnavailable            the update log cannot be reached
    NotLeader                 another node leads the cluster, or none does; nothing was stored
    LogCompacted              the log begins later: a snapshot stands for what is asked for
    OutcomeUnknown            the write was sent, but its fate cannot be told
  ConfigError               the operator's: mend the configuration; raised before anything is served
  CorruptionError           ours: stop and do not guess

Errors carry fields and know nothing of HTTP. Every class hands its arguments positionally to
`Exception.__init__`, so that it survives pickling and reaches the caller of an actor as itself.
"""

from collections.abc import Mapping
from typing import Any

__all__ = [
    "AlreadyExists",
    "BadGeometry",
    "BodyTooLarge",
    "ChangesForgotten",
    "ConfigError",
    "CorruptionError",
    "EditRefused",
    "EvaluationFailed",
    "Forbidden",
    "GraphDBError",
    "HistoryForgotten",
    "HostNotAllowed",
    "IndexNotReached",
    "InvalidParameter",
    "KeyReused",
    "LimitExceeded",
    "LockedOut",
    "LogCompacted",
    "LogUnavailable",
    "MalformedShapes",
    "MembershipLoop",
    "MembershipRefused",
    "NotAcceptable",
    "NotAuthenticated",
    "NotClustered",
    "NotFound",
    "NotLeader",
    "OutcomeUnknown",
    "Overloaded",
    "ProviderUnavailable",
    "QueryCancelled",
    "QueryMemoryExceeded",
    "QuerySyntaxError",
    "QueryTimeout",
    "QueryTooLong",
    "RdfSyntaxError",
    "RequestError",
    "ShapesViolated",
    "StorageFull",
    "TextTooLarge",
    "TransactionConflict",
    "UnavailableError",
    "UnknownFunction",
    "UnknownGraph",
    "UnsupportedMediaType",
]


class GraphDBError(Exception):
    """Any failure that this project names. `str()` of it is a sentence for the person who meets it."""


class RequestError(GraphDBError):
    """The request cannot succeed as it is; nothing was changed."""


class QuerySyntaxError(RequestError):
    """SPARQL text that does not parse. line and column count from 1.

    undeclared is the prefixed name whose prefix is not declared, if this is the fault.
    """

    def __init__(self, reason: str, line: int, column: int, undeclared: str | None = None) -> None:
        super().__init__(reason, line, column, undeclared)
        self.reason, self.line, self.column, self.undeclared = reason, line, column, undeclared

    def __str__(self) -> str:
        return f"syntax error at line {self.line}, column {self.column}: {self.reason}"


class RdfSyntaxError(RequestError):
    """An RDF document that does not parse. line and column count from 1, None where they are not known."""

    def __init__(self, reason: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(reason, line, column)
        self.reason, self.line, self.column = reason, line, column

    def __str__(self) -> str:
        where = f" at line {self.line}, column {self.column}" if self.line is not None else ""
        return f"malformed RDF{where}: {self.reason}"


class InvalidParameter(RequestError):
    """A parameter, header or body that cannot mean anything; name says which."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name, self.reason = name, reason

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


class MalformedShapes(RequestError):
    """SHACL shapes that mean nothing, or more than is offered.

    shape says which one, in words that lead to it where it has no name; property is the one that is wrong
    there ("sh:minCount"), or "" where it is the shape as a whole.
    """

    def __init__(self, shape: str, property: str, reason: str) -> None:
        super().__init__(shape, property, reason)
        self.shape, self.property, self.reason = shape, property, reason

    def __str__(self) -> str:
        place = f"{self.property} of {self.shape}" if self.property else self.shape
        return f"malformed shapes: {place}: {self.reason}"


class ShapesViolated(RequestError):
    """A write that the shapes which are enforced do not allow. report is the validation report of the
    interface, for JSON; None where the shapes themselves cannot be read.
    """

    def __init__(self, reason: str, report: Mapping[str, Any] | None = None) -> None:
        super().__init__(reason, report)
        self.reason, self.report = reason, report

    def __str__(self) -> str:
        return self.reason


class EditRefused(RequestError):
    """Edits of resources, of which one at least cannot be.

    refusals, for JSON: edit (its number, from 0 on; None: no one's alone), code (one of the interface's for
    GraphQL), message and, where there are any, details.
    """

    def __init__(self, refusals: tuple[Mapping[str, Any], ...]) -> None:
        super().__init__(refusals)
        self.refusals = refusals

    def __str__(self) -> str:
        return "; ".join(one["message"] for one in self.refusals)


class UnknownGraph(RequestError):
    """A named graph that does not exist."""

    def __init__(self, graph: str) -> None:
        super().__init__(graph)
        self.graph = graph

    def __str__(self) -> str:
        return f"there is no graph <{self.graph}>"


class NotFound(RequestError):
    """There is nothing of this kind ("holon") under this name."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(kind, name)
        self.kind, self.name = kind, name

    def __str__(self) -> str:
        return f"there is no {self.kind} {self.name}"


class TransactionConflict(RequestError):
    """A commit whose transaction has read what has changed since; nothing was stored, and it is ended."""


class MembershipLoop(RequestError):
    """A holon that would be a member of itself, at once or by way of others."""

    def __init__(self, holon: str, parent: str) -> None:
        super().__init__(holon, parent)
        self.holon, self.parent = holon, parent

    def __str__(self) -> str:
        return f"<{self.holon}> cannot be a member of <{self.parent}>: it would be a member of itself"


class AlreadyExists(RequestError):
    """Something of this kind ("graph") has this name already."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(kind, name)
        self.kind, self.name = kind, name

    def __str__(self) -> str:
        return f"the {self.kind} <{self.name}> exists already"


class NotAcceptable(RequestError):
    """No offered media type fits the Accept header."""

    def __init__(self, accept: str, offered: tuple[str, ...]) -> None:
        super().__init__(accept, offered)
        self.accept, self.offered = accept, offered

    def __str__(self) -> str:
        return f"nothing here fits Accept: {self.accept}; offered: {', '.join(self.offered)}"


class UnsupportedMediaType(RequestError):
    """A body whose Content-Type or Content-Encoding we do not read."""

    def __init__(self, media_type: str, accepted: tuple[str, ...]) -> None:
        super().__init__(media_type, accepted)
        self.media_type, self.accepted = media_type, accepted

    def __str__(self) -> str:
        what = self.media_type or "a body without Content-Type"
        return f"cannot read {what}; send one of {', '.join(self.accepted)}"


class BodyTooLarge(RequestError):
    """A body over the limit in bytes, counted after decompression."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(limit_bytes)
        self.limit_bytes = limit_bytes

    def __str__(self) -> str:
        return f"the body is larger than {self.limit_bytes} bytes"


class LimitExceeded(RequestError):
    """A request past a named limit, found before evaluation."""

    def __init__(self, limit: str, value: int, allowed: int) -> None:
        super().__init__(limit, value, allowed)
        self.limit, self.value, self.allowed = limit, value, allowed

    def __str__(self) -> str:
        return f"{self.limit} is {self.value}, at most {self.allowed} is allowed"


class TextTooLarge(LimitExceeded):
    """The same, found before the body of the request was read to its end; value counts what was read or
    announced.
    """


class NotAuthenticated(RequestError):
    """Credentials that are missing or wrong; is_attempt says whether they could have been a guess."""

    def __init__(self, reason: str, is_attempt: bool = False) -> None:
        super().__init__(reason, is_attempt)
        self.reason, self.is_attempt = reason, is_attempt

    def __str__(self) -> str:
        return self.reason


class Forbidden(RequestError):
    """What the roles of whoever asks do not allow; reason, where it is another than a missing permission."""

    def __init__(self, who: str, permission: str, reason: str | None = None) -> None:
        super().__init__(who, permission, reason)
        self.who, self.permission, self.reason = who, permission, reason

    def __str__(self) -> str:
        return self.reason or f"{self.who} does not have the permission {self.permission}, which this needs"


class LockedOut(RequestError):
    """An address from which wrong credentials have come too often."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(retry_after_s)
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return f"too many failed attempts to authenticate; try again in {self.retry_after_s} s"


class HostNotAllowed(RequestError):
    """SERVICE, LOAD, WEBHOOK, REINDEX or RERANK (operation) to a host that is not allowed; reason says more,
    where there is more.
    """

    def __init__(self, operation: str, host: str, reason: str | None = None) -> None:
        super().__init__(operation, host, reason)
        self.operation, self.host, self.reason = operation, host, reason

    def __str__(self) -> str:
        rules = f"{self.operation.lower()}_allow"
        refusal = f"{self.operation} to {self.host} is not allowed by [security] {rules}"
        return f"{refusal}: {self.reason}" if self.reason else refusal


class EvaluationFailed(RequestError):
    """The engine refused or could not finish a request that parses, for a reason in the request."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class UnknownFunction(RequestError):
    """A function that GeoSPARQL does not have, or that is not offered; hint says more, where there is any."""

    def __init__(self, function: str, hint: str | None = None) -> None:
        super().__init__(function, hint)
        self.function, self.hint = function, hint

    def __str__(self) -> str:
        return f"there is no function {self.function}" + (f": {self.hint}" if self.hint else "")


class BadGeometry(RequestError):
    """A geometry that cannot be read, or that an operation is not defined for."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class KeyReused(RequestError):
    """An `Idempotency-Key` that stands for another request already."""

    def __str__(self) -> str:
        return "Idempotency-Key: this key was used for another request; a new request needs a new key"


class NotClustered(RequestError):
    """A change of the cluster, asked of a node that stands alone."""

    def __str__(self) -> str:
        return "this node stands alone: [cluster] enabled is false"


class MembershipRefused(RequestError):
    """A change of the cluster that its members do not allow, however often it is asked for."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class ChangesForgotten(RequestError):
    """Changes behind a log index of which the log does not have all any more; it begins at first_index."""

    def __init__(self, since: int, first_index: int) -> None:
        super().__init__(since, first_index)
        self.since, self.first_index = since, first_index

    def __str__(self) -> str:
        return (
            f"what has changed since {self.since} cannot be told (any more): read everything anew, and go on "
            f"from {self.first_index - 1} or later"
        )


class HistoryForgotten(RequestError):
    """A state of the past that the changes which are kept do not lead back to; the oldest is oldest_index."""

    def __init__(self, asked: str, oldest_index: int) -> None:
        super().__init__(asked, oldest_index)
        self.asked, self.oldest_index = asked, oldest_index

    def __str__(self) -> str:
        return (
            f"the state as of {self.asked} is no longer kept: the oldest is that of log index "
            f"{self.oldest_index}"
        )


class UnavailableError(GraphDBError):
    """Try again after retry_after_s seconds; nothing was changed, unless the class says otherwise."""

    def __init__(self, reason: str, retry_after_s: int = 1) -> None:
        super().__init__(reason, retry_after_s)
        self.reason, self.retry_after_s = reason, retry_after_s

    def __str__(self) -> str:
        return self.reason


class Overloaded(UnavailableError):
    """Too much is waiting already."""


class ProviderUnavailable(UnavailableError):
    """Whoever is to say whose credentials these are cannot be asked; they may be right or wrong."""


class QueryTimeout(UnavailableError):
    """The query ran past its time limit and was ended."""


class QueryTooLong(UnavailableError):
    """The query would run far past its time limit, and was not begun: the caller has to change it."""


class QueryMemoryExceeded(UnavailableError):
    """The query took more memory than a reader may have, and was ended."""


class QueryCancelled(UnavailableError):
    """Somebody who may do so has ended the query."""


class IndexNotReached(UnavailableError):
    """The node did not get as far as the reader asked for within the time limit."""


class StorageFull(UnavailableError):
    """The disk has no room; the write was not stored."""

    @classmethod
    def for_inserts(cls) -> "StorageFull":
        """For a write that adds, while only deletions are taken."""
        return cls(
            "the disk of the data directory is full, so nothing can be added and nothing of this request was "
            "stored: delete data, or make room on the disk; writing goes on by itself when there is room",
            5,
        )

    @classmethod
    def for_deletions(cls) -> "StorageFull":
        """For a deletion that is too large for what the reserve has left."""
        return cls(
            "the disk of the data directory is full, and this deletion needs more room than is left; nothing "
            "of it was stored: delete less at a time, or make room on the disk",
            5,
        )


class LogUnavailable(UnavailableError):
    """The update log cannot be reached; the write was not sent."""


class NotLeader(UnavailableError):
    """This node does not lead the cluster; leader_hint is the node_id of the one that does, where known."""

    def __init__(self, reason: str, retry_after_s: int = 1, leader_hint: int | None = None) -> None:
        Exception.__init__(self, reason, retry_after_s, leader_hint)
        self.reason, self.retry_after_s, self.leader_hint = reason, retry_after_s, leader_hint


class LogCompacted(UnavailableError):
    """Entries that are asked for are gone from a peer's log; a snapshot stands for them."""


class OutcomeUnknown(UnavailableError):
    """The write was sent, but whether it was stored cannot be told; it may be."""

    def __str__(self) -> str:
        return f"{self.reason}: the outcome is unknown"


class ConfigError(GraphDBError):
    """Settings that cannot be used; problems are one line each, naming the key and where it was given."""

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(self.problems)


class CorruptionError(GraphDBError):
    """Stored bytes are not what was written. The node stops serving what depends on them, never guessing."""

    def __init__(self, what: str, where: str) -> None:
        super().__init__(what, where)
        self.what, self.where = what, where

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"
