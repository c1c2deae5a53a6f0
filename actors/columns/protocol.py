"""The messages between `ColumnClient` and `ColumnView`. It knows nothing of sockets.

They are frames (`actors.frames`) whose code is a `Message`; their number is 0. A client's connection is for
one thing:

    client                          ColumnView
    QUERY (a ColumnTask)
                                    TAKEN (a Taken), then DATA, any number of times, then END; or ERROR at
                                    any time, as the last; or NOT_TAKEN (why): a reader has to answer; or
                                    UNSUITED (why): and has to as long as the view is as it is
    EXPLAIN (a ColumnTask)
                                    DATA (JSON), END
    FEED
                                    WANTED, as soon as the view has to be made anew of the store
    LOAD (a Load)
                                    END, once what is at the path is not needed any more; or ERROR
    STATUS
                                    STATUS (a ColumnStatus)

DATA of a query is bytes of the answer, NOT_TAKEN and UNSUITED are UTF-8; FEED, WANTED and END are empty, the
others JSON. A client that goes away cancels its query.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Self

__all__ = ["ColumnStatus", "ColumnTask", "JsonMessage", "Load", "Message", "Taken"]


class Message(IntEnum):
    """What a frame says: its code."""

    QUERY = 1
    EXPLAIN = 2
    FEED = 3
    LOAD = 4
    STATUS = 5
    TAKEN = 6
    DATA = 7
    END = 8
    ERROR = 9
    NOT_TAKEN = 10
    WANTED = 11
    UNSUITED = 12


class JsonMessage:
    """A dataclass of JSON values on the wire."""

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()  # type: ignore[call-overload]

    @classmethod
    def decode(cls, body: bytes) -> Self:
        return cls(**json.loads(body))


@dataclass(frozen=True, slots=True)
class ColumnTask(JsonMessage):
    """A query, and what it is to see."""

    text: str
    base_iri: str | None
    default_graphs: Sequence[str]  # of the protocol's dataset, IRIs; both empty: as the query says
    named_graphs: Sequence[str]
    format: str  # the value of a ResultFormat
    min_index: int  # the view has to have this entry of the log
    timeout_s: float  # from now to the last byte


@dataclass(frozen=True, slots=True)
class Taken(JsonMessage):
    """The first of the answer is there."""

    log_index: int  # of exactly whose state the answer is
    where: str


@dataclass(frozen=True, slots=True)
class Load(JsonMessage):
    """A copy of the store, as it is after this entry of the log."""

    path: str
    log_index: int


@dataclass(frozen=True, slots=True)
class ColumnStatus(JsonMessage):
    """How a view is: starting, loading, following or collecting; and how far it has come."""

    state: str
    log_index: int
    running: int
    pid: int
