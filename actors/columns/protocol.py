"""What the column view, its clients and its engine say to each other (`actors.wire`).

The engine asks its `ColumnView`, over a socket pair:

    engine                          ColumnView
    AskSetup, first                 EngineSetup
    Alive, each ALIVE_S from when   Done
    it listens on
    FindLog                         LogAt

Whoever finds the socket closed ends: the engine in order, the view's side by starting another.

A client has a connection for each call:

    client                          ColumnView
    ColumnTask                      Answered, or Taken, then Pieces, then Done; or NotTaken; or an error at
                                    any time, as the last
    Explain                         Explanation
    Feed                            Wanted, as soon as the view has to be made anew of the store
    Load                            Done, once what is at the path is not needed any more
    AskStatus                       ColumnStatus

A client that goes away cancels its query.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from actors.wire.messages import Messages
from graphdb.planning.costs import Factors, Work

if TYPE_CHECKING:  # see ViewSettings
    from graphdb.config.service import Columns

__all__ = [
    "ALIVE_S",
    "COLUMN_MESSAGES",
    "ENGINE_MESSAGES",
    "Alive",
    "Answered",
    "AskSetup",
    "AskStatus",
    "ColumnStatus",
    "ColumnTask",
    "EngineSetup",
    "Explain",
    "Explanation",
    "Feed",
    "FindLog",
    "Load",
    "LogAt",
    "NotTaken",
    "RayAt",
    "Taken",
    "ViewSettings",
    "Wanted",
]

ALIVE_S = 2.0


@dataclass(frozen=True, slots=True)
class ViewSettings:
    """What an engine needs of `Columns`, whose library, pydantic, would take 8 MB there."""

    tables_memory_mb: int
    arrays_mb: int
    query_memory_mb: int
    spill_dir: str | None
    spill_limit_mb: int
    queries_max: int
    wait_seconds: float
    counts_without_rows: bool
    plans_kept: bool
    strings_in_order: bool
    dates_compared: bool
    past: bool
    shards: int  # 0: one on each Ray node that has the resource
    shard_memory_mb: int
    shards_min_quads: int

    @property
    def shard_query_memory_mb(self) -> int:
        """What one query may have on a shard before it spills; following has a share as well."""
        return self.shard_memory_mb // (self.queries_max + 1)

    @classmethod
    def of(cls, columns: "Columns") -> "ViewSettings":
        """Those of a node."""
        return cls(
            columns.tables_memory_mb,
            columns.arrays_mb,
            columns.query_memory_mb,
            None if columns.spill_dir is None else str(columns.spill_dir),
            columns.spill_limit_mb,
            columns.queries_max,
            columns.wait_seconds,
            columns.counts_without_rows,
            columns.plans_kept,
            columns.strings_in_order,
            columns.dates_compared,
            columns.past,
            0 if columns.shards == "auto" else columns.shards,
            columns.shard_memory_mb,
            columns.shards_min_quads,
        )


@dataclass(frozen=True, slots=True)
class RayAt:
    """How to connect to the Ray node of this service: Ray's address, the service's namespace, and the
    directory of the node's files, where several nodes are on this machine.
    """

    address: str
    namespace: str
    temp_dir: str | None


@dataclass(frozen=True, slots=True)
class EngineSetup:
    """What an engine opens, and where it listens."""

    directory: str  # of the view, in that of the data
    disk_reserve_mb: int
    socket_path: str
    columns: ViewSettings
    ray_at: RayAt | None  # for shards


@dataclass(frozen=True, slots=True)
class AskSetup:
    """What is there to do?"""


@dataclass(frozen=True, slots=True)
class Alive:
    """The engine has its turn of the processor."""


@dataclass(frozen=True, slots=True)
class FindLog:
    """Where does the log listen?"""


@dataclass(frozen=True, slots=True)
class LogAt:
    """There."""

    path: str


ENGINE_MESSAGES = Messages(AskSetup, EngineSetup, Alive, FindLog, LogAt)


@dataclass(frozen=True, slots=True)
class ColumnTask:
    """A query, and what it is to see."""

    query: bytes  # `graphdb.sparql.packing`
    columns: Sequence[str] | None  # the names of a SELECT's columns, where they are not those of the query
    literals: Sequence[tuple[int, int, str]]  # values in the place of the query's own; see `OwnNames`
    default_graphs: Sequence[str]  # of the protocol's dataset, IRIs; both empty: as the query says
    named_graphs: Sequence[str]
    format: str  # the value of a ResultFormat
    min_index: int  # the view has to have this entry of the log
    timeout_s: float  # from now to the last byte
    factors: Factors | None  # what was learnt of costs; None: costs do not decide
    unites_graphs: bool = False  # the default graph is the union of all, unless the query names others
    as_of: int | None = None  # the log index of the state that is asked; None: the present


@dataclass(frozen=True, slots=True)
class Taken:
    """The first of the answer is there."""

    log_index: int  # of exactly whose state the answer is
    where: str
    work: Work | None  # as estimated; None of what is answered without an estimate
    seconds: float  # that it took, from when it had a place in the state that it waited for


@dataclass(frozen=True, slots=True)
class Answered:
    """All of a short answer that needed no estimate."""

    log_index: int  # as in Taken
    where: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Load:
    """A copy of the store, as it is after this entry of the log."""

    path: str
    log_index: int


@dataclass(frozen=True, slots=True)
class ColumnStatus:
    """How a view is: starting, loading, following or collecting; and how far it has come."""

    state: str
    log_index: int
    running: int
    pid: int


@dataclass(frozen=True, slots=True)
class NotTaken:
    """A reader has to answer."""

    reason: str
    is_unsuited: bool  # and has to as long as the view is as it is
    work: Work | None  # as estimated, with what is certain of it


@dataclass(frozen=True, slots=True)
class Explain:
    """Which way would this query take?"""

    task: ColumnTask


@dataclass(frozen=True, slots=True)
class Explanation:
    """This way; see `ColumnQuery.explained`."""

    document: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Feed:
    """See `ColumnClient.wait_wanted`."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The view has to be made anew of the store."""


@dataclass(frozen=True, slots=True)
class AskStatus:
    """See `ColumnClient.status`."""


COLUMN_MESSAGES = Messages(
    ColumnTask, Answered, Taken, NotTaken, Explain, Explanation, Feed, Wanted, Load, AskStatus, ColumnStatus
)
