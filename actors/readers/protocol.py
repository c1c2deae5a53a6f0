"""The messages between `ReaderClient`, `StoreReader` and its evaluators. It knows nothing of sockets.

They are frames (`actors.frames`) whose code is a `Message`; their number is 0. A client's connection is for
one thing: for a query,

    client                          StoreReader
    LEASE (a LeaseRequest)
                                    GRANTED (where), once an evaluator is free
    EVALUATE (a ReaderTask)
                                    DATA, any number of times, then END; or ERROR at any time, as the last

or for RELEASE (the path of a checkpoint), answered by END, or for STATUS, answered by STATUS (a
ReaderStatus). A client that goes away cancels its query. An evaluator says READY when it has started, answers
EVALUATE with BEGUN, DATA and END or ERROR, and RELEASE with END. DATA is bytes of the answer, for "explain"
one object in JSON; RELEASE and GRANTED are UTF-8, the other bodies JSON.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import IntEnum

__all__ = [
    "EvaluatorStatus",
    "LeaseRequest",
    "Message",
    "ReaderStatus",
    "ReaderTask",
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
    """What an evaluator shall do, on which checkpoint. See `graphdb.store.engine_query` for the dataset."""

    operation: str  # query, explain
    text: str  # for the engine: already rewritten
    base_iri: str | None
    default_graphs: list[str] | None  # IRIs; None: the store's own default graph
    named_graphs: list[str] | None  # IRIs; None: all
    union_default_graph: bool
    format: str  # the value of a ResultFormat
    checkpoint: str  # a directory
    services: Mapping[str, str] = field(default_factory=dict)  # IRI in the text -> URL that SERVICE calls
    count_queries: Sequence[str] = ()  # for explain: texts for the engine, each with one row, ?n

    @classmethod
    def decode(cls, body: bytes) -> "ReaderTask":
        return cls(**json.loads(body))


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
