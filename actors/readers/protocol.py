"""What `ReaderClient`, `StoreReader` and its evaluators say to each other (`actors.wire`).

A client has a connection for each call. For a query,

    client                          StoreReader
    LeaseRequest
                                    Granted, once an evaluator is free
    a Task
                                    Pieces, then Done; or an error at any time, as the last

or a ReleaseCheckpoint, answered by Done, or an AskStatus, answered by a ReaderStatus. A client that goes away
cancels its query. An evaluator says Ready when it has started, answers a Task with Begun, Pieces and Done or
an error, and a ReleaseCheckpoint with Done. Pieces are bytes of the answer, for "explain" one object in JSON
each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from actors.wire.messages import Messages

__all__ = [
    "EVALUATOR_MESSAGES",
    "READER_MESSAGES",
    "AskStatus",
    "Begun",
    "EvaluatorStatus",
    "FunctionTask",
    "Granted",
    "LeaseRequest",
    "ReaderStatus",
    "ReaderTask",
    "Ready",
    "ReleaseCheckpoint",
    "Task",
    "ValidationTask",
]


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """Who wants an evaluator, and how long waiting and evaluating may take together."""

    query_id: str
    timeout_s: float
    spent_s: float = 0.0  # of it, already


@dataclass(frozen=True, slots=True)
class ReaderTask:
    """A query for an evaluator, on which checkpoint. See `graphdb.store.engine_query` for the dataset."""

    operation: str  # query, explain
    text: str  # for the engine: already rewritten
    base_iri: str | None
    default_graphs: list[str] | None  # IRIs; None: the store's own default graph
    named_graphs: list[str] | None  # IRIs; None: all
    union_default_graph: bool
    format: str  # the value of a ResultFormat
    checkpoint: str  # a directory
    services: Mapping[str, str] = field(default_factory=dict)  # IRI in the text -> URL that SERVICE calls
    calls_geometry: bool = False  # the text needs the functions of GeoSPARQL
    attempts: Sequence[str] = ()  # texts to be tried first: one with attempt_rows rows is the answer
    attempt_rows: int = 0
    lookups: Sequence[Mapping[str, Any]] = ()  # for explain: what a spatial index did for the text
    count_queries: Sequence[str] = ()  # for explain: texts for the engine, each with one row, ?n
    hidden_graphs: Sequence[str] = ()  # IRIs of graphs that are not there, though the checkpoint has them


@dataclass(frozen=True, slots=True)
class ValidationTask:
    """A SHACL validation for an evaluator, on which checkpoint. See `graphdb.shacl.validation`."""

    checkpoint: str  # a directory
    data_graph: str | Sequence[str]  # an IRI, "default" or "union"; or IRIs of graphs that are merged
    shapes_graph: str | Sequence[str] | None = None  # likewise; None: the shapes are the document
    shapes: bytes = field(default=b"", repr=False)  # a document
    shapes_type: str = ""  # its media type, as an RdfSyntax has it
    report_type: str | None = None  # of an RdfSyntax; None: the report of the interface, in JSON
    is_write_check: bool = False  # see `graphdb.shacl.change_check`
    focus: Sequence[str] | None = None  # then, as N-Triples terms: only these nodes; None: all targets
    limits: Mapping[str, int] = field(default_factory=dict)  # of `GateLimits`, for SPARQL in the shapes


@dataclass(frozen=True, slots=True)
class FunctionTask:
    """A call of a function of GeoSPARQL. See `graphdb.geometry.evaluate`."""

    checkpoint: ClassVar[str] = ""  # none: what an evaluator has open stays so

    function: str
    args: Sequence[str] = field(repr=False)


Task: TypeAlias = ReaderTask | ValidationTask | FunctionTask


@dataclass(frozen=True, slots=True)
class EvaluatorStatus:
    """One evaluator: its process, and what that does."""

    number: int
    pid: int
    state: str  # idle, busy
    query_id: str | None


@dataclass(frozen=True, slots=True)
class ReaderStatus:
    """What a StoreReader is about. Evaluators that are being replaced are not among them."""

    running: int
    queued: int
    evaluators: tuple[EvaluatorStatus, ...]


@dataclass(frozen=True, slots=True)
class Granted:
    """An evaluator is free, and waits for the task."""

    where: str  # "reader 2 (process 1234)"


@dataclass(frozen=True, slots=True)
class ReleaseCheckpoint:
    """Nobody may have this checkpoint open any more who is idle."""

    path: str


@dataclass(frozen=True, slots=True)
class AskStatus:
    """See `ReaderClient.status`."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The evaluator has started."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The evaluator has read the task."""


READER_MESSAGES = Messages(
    LeaseRequest,
    Granted,
    ReaderTask,
    ValidationTask,
    FunctionTask,
    ReleaseCheckpoint,
    AskStatus,
    ReaderStatus,
)
EVALUATOR_MESSAGES = Messages(Ready, Begun, ReaderTask, ValidationTask, FunctionTask, ReleaseCheckpoint)
