"""The messages between `ReaderClient`, `StoreReader` and its evaluators. It knows nothing of sockets.

They are frames (`actors.frames`) whose code is a `Message`; their number is 0. A client's connection is for
one thing: for a query,

    client                          StoreReader
    LEASE (a LeaseRequest)
                                    GRANTED (where), once an evaluator is free
    EVALUATE (a ReaderTask),
    VALIDATE (a ValidationTask) or
    CALL (a FunctionTask)
                                    DATA, any number of times, then END; or ERROR at any time, as the last

or for RELEASE (the path of a checkpoint), answered by END, or for STATUS, answered by STATUS (a
ReaderStatus). A client that goes away cancels its query. An evaluator says READY when it has started, answers
EVALUATE, VALIDATE and CALL with BEGUN, DATA and END or ERROR, and RELEASE with END. DATA is bytes of the
answer, for "explain" one object in JSON; RELEASE and GRANTED are UTF-8, VALIDATE is a line of JSON and a
document, the other bodies are JSON.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from typing import Any, ClassVar, TypeAlias

__all__ = [
    "EvaluatorStatus",
    "FunctionTask",
    "LeaseRequest",
    "Message",
    "ReaderStatus",
    "ReaderTask",
    "Task",
    "ValidationTask",
]


class Message(IntEnum):
    """What a frame says: its code."""

    LEASE = 1
    EVALUATE = 2
    RELEASE = 3
    STATUS = 4
    READY = 5
    GRANTED = 6
    DATA = 7
    END = 8
    ERROR = 9
    BEGUN = 10
    VALIDATE = 11
    CALL = 12


class _Json:
    """A dataclass of JSON values on the wire."""

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()  # type: ignore[call-overload]


@dataclass(frozen=True, slots=True)
class LeaseRequest(_Json):
    """Who wants an evaluator, and how long waiting and evaluating may take together."""

    query_id: str
    timeout_s: float
    spent_s: float = 0.0  # of it, already

    @classmethod
    def decode(cls, body: bytes) -> "LeaseRequest":
        return cls(**json.loads(body))


@dataclass(frozen=True, slots=True)
class ReaderTask(_Json):
    """A query for an evaluator, on which checkpoint. See `graphdb.store.engine_query` for the dataset."""

    message: ClassVar[Message] = Message.EVALUATE

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

    @classmethod
    def decode(cls, body: bytes) -> "ReaderTask":
        return cls(**json.loads(body))


@dataclass(frozen=True, slots=True)
class ValidationTask:
    """A SHACL validation for an evaluator, on which checkpoint. See `graphdb.shacl.answering`."""

    message: ClassVar[Message] = Message.VALIDATE

    checkpoint: str  # a directory
    data_graph: str | Sequence[str]  # an IRI, "default" or "union"; or IRIs of graphs that are merged
    shapes_graph: str | Sequence[str] | None = None  # likewise; None: the shapes are the document
    shapes: bytes = field(default=b"", repr=False)  # a document
    shapes_type: str = ""  # its media type, as an RdfSyntax has it
    report_type: str | None = None  # of an RdfSyntax; None: the report of the interface, in JSON
    is_write_check: bool = False  # see `graphdb.shacl.write_check`
    focus: Sequence[str] | None = None  # then, as N-Triples terms: only these nodes; None: all targets
    limits: Mapping[str, int] = field(default_factory=dict)  # of `GateLimits`, for SPARQL in the shapes

    def encode(self) -> bytes:
        head = {name: getattr(self, name) for name in self.__slots__ if name != "shapes"}
        return json.dumps(head).encode() + b"\n" + self.shapes

    @classmethod
    def decode(cls, body: bytes) -> "ValidationTask":
        head, _, shapes = body.partition(b"\n")
        return cls(**json.loads(head), shapes=shapes)


@dataclass(frozen=True, slots=True)
class FunctionTask(_Json):
    """A call of a function of GeoSPARQL. See `graphdb.geo.evaluate`."""

    message: ClassVar[Message] = Message.CALL
    checkpoint: ClassVar[str] = ""  # none: what an evaluator has open stays so

    function: str
    args: Sequence[str] = field(repr=False)

    @classmethod
    def decode(cls, body: bytes) -> "FunctionTask":
        return cls(**json.loads(body))


Task: TypeAlias = ReaderTask | ValidationTask | FunctionTask


@dataclass(frozen=True, slots=True)
class EvaluatorStatus:
    """One evaluator: its process, and what that does."""

    number: int
    pid: int
    state: str  # idle, busy
    query_id: str | None


@dataclass(frozen=True, slots=True)
class ReaderStatus(_Json):
    """What a StoreReader is about. Evaluators that are being replaced are not among them."""

    running: int
    queued: int
    evaluators: tuple[EvaluatorStatus, ...]

    @classmethod
    def decode(cls, body: bytes) -> "ReaderStatus":
        fields = json.loads(body)
        evaluators = tuple(EvaluatorStatus(**each) for each in fields["evaluators"])
        return cls(fields["running"], fields["queued"], evaluators)
