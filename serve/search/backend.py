"""What the edges of the search port need of a node.

`serve/search/` knows only these protocols and the pure core; `serve/deployments/` wires them to the actors,
and tests to memory.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from socket import socket
from typing import TYPE_CHECKING, Any, Protocol

from graphdb.access.principal import Principal
from graphdb.node import NodeStatus
from graphdb.search.catalog.catalog import Catalog
from graphdb.search.catalog.catalog_commands import Command, DocumentWrite, WriteResult
from graphdb.search.catalog.state import Index, KnownNode
from graphdb.search.contexts import SearchContexts
from graphdb.search.hybrid.reranker import Rerankers
from graphdb.search.pool_use import PoolUse
from graphdb.search.remote_cluster import RemoteAnswer, RemoteCall

if TYPE_CHECKING:
    from graphdb.search.sharded import Advise, SearchTask, SeveralTask, ShardFailures
    from graphdb.search.sharded.rerouting import NotAllowed, Reroute

__all__ = [
    "Borrower",
    "GraphAccess",
    "HeldIndex",
    "PlacedShard",
    "RemoteCaller",
    "SearchBackend",
    "SearchHelpers",
    "ShardPlace",
    "ShardSearch",
    "ToldWrite",
]


class GraphAccess(Protocol):
    """The graph of the same node, queried with the checks and limits of its port."""

    def acting_for(self, principal: Principal) -> "GraphAccess":
        """The same graph with a principal's visibility; without this the node itself is the principal."""

    async def select(self, query: str, min_index: int | None = None) -> dict[str, Any]:
        """SPARQL 1.1 results JSON of a SELECT or ASK. Raises GraphDBError as the graph port does."""

    async def construct(self, query: str, media_type: str) -> str:
        """The triples of a CONSTRUCT or DESCRIBE in a syntax."""

    def rows(self, query: str) -> AsyncIterator[bytes]:
        """The rows of a SELECT as they come: SPARQL 1.1 results TSV, in pieces of any length."""


class ShardPlace(Protocol):
    """A machine that has copies of shards: id and name as clients know it, host: its address."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def host(self) -> str: ...


class PlacedShard(Protocol):
    """A copy of a shard: number of the shard, state: STARTED, INITIALIZING, UNASSIGNED, and why it is so."""

    @property
    def number(self) -> int: ...
    @property
    def is_primary(self) -> bool: ...
    @property
    def state(self) -> str: ...
    @property
    def node(self) -> ShardPlace | None: ...
    @property
    def reason(self) -> str | None: ...


class HeldIndex(Protocol):
    """An index as of one moment."""

    def is_of(self, index: Index) -> bool:
        """Whether it is the same index still."""


class ShardSearch(Protocol):
    """The shards of a node's indexes that processes elsewhere search. For any thread."""

    def search(
        self,
        index: Index,
        task: "SearchTask",
        partial: bool,
        held: Any = None,
        advise: "Advise | None" = None,
    ) -> "tuple[dict[str, Any], ShardFailures]":
        """See `search_shards`: of the index as it is now, or as it was held. Raises SearchError, NoShard;
        UnavailableError where they cannot be asked yet.
        """

    def search_several(
        self,
        indexes: Sequence[Index],
        task: "SeveralTask",
        partial: bool,
        held: Sequence[Any] = (),
        advise: "Advise | None" = None,
    ) -> "tuple[dict[str, Any], ShardFailures]":
        """The same over all shards of several indexes, which failures number index by index. task: its parts
        are in the order of the indexes, without their shapes. held: of each, where they are not of now.
        """

    def hold(self, index: Index) -> "HeldIndex":
        """The index as it is now, for searches that come later, as long as what it gives is referred to."""

    def copies(self, index: Index) -> Sequence[PlacedShard]:
        """Shard by shard, the primary first, as many as the settings of the index ask for."""

    def nodes(self) -> Sequence[ShardPlace]:
        """Those that may have copies."""

    def look(self, within_s: float) -> None:
        """Notice which copies are lost now; `copies` may be a second behind. Not on the event loop."""

    def reroute(
        self, commands: "Sequence[Reroute]", *, is_trial: bool, goes_on: bool
    ) -> "list[NotAllowed | None]":
        """What came of each command, one after the other: None where it is carried out. is_trial: nothing is.
        Without goes_on all are carried out or none.
        """


class Borrower(Protocol):
    """A process that may serve connections of the port: see `serve.port.lending`."""

    @property
    def channel(self) -> socket: ...

    @property
    def ledger(self) -> memoryview:
        """The memory of a `Ledger`, shared with it."""

    def note_lent(self, count: int) -> None:
        """So many connections are lent to it now."""


class SearchHelpers(Protocol):
    """Processes on this machine that search whole indexes, as long as this one alone is too slow. For the
    event loop.
    """

    def borrower(self, index: Index) -> Borrower | None:
        """The process with the fewest connections, if it has the index of now and may answer for it. Asked
        while the port is busy with the searches of several connections.
        """

    def present(self) -> AbstractContextManager[None]:
        """A search has come; until it is answered, by whomever."""

    async def search(
        self, index: Index, task: "SearchTask", timeout_ms: int | None
    ) -> tuple[Mapping[str, bytes] | None, bool]:
        """(the members of the answer, each as JSON, whether the client's time has passed); neither: this
        process is to search itself. Within `present`.

        Raises QueryMemoryExceeded, QueryTimeout.
        """


class RemoteCaller(Protocol):
    """Calls other clusters, to copy their documents."""

    @property
    def turn(self) -> AbstractAsyncContextManager[Any]:
        """A page of documents is read and written within it."""

    def check(self, url: str) -> None:
        """Raises HostNotAllowed for a host that is not allowed, as far as the URL tells by itself."""

    async def call(self, call: RemoteCall) -> RemoteAnswer:
        """Raises HostNotAllowed; SearchError where no whole answer comes."""


class ToldWrite(Protocol):
    """Who is told what comes of one document. Its methods do not raise."""

    def done(self) -> bool:
        """Whether it is told, or does not wait any more."""

    def set_result(self, result: WriteResult, /) -> None: ...
    def set_exception(self, exception: Exception, /) -> None: ...


class SearchBackend(Protocol):
    """One node's search indexes. The catalogue and its indexes may be read on any thread."""

    contexts: SearchContexts
    graph: GraphAccess
    own: KnownNode  # what this node says of itself, whether or not the catalogue has it by now
    filling: set[str]  # uuids of indexes that it fills now; others that are marked as its own it deletes

    @property
    def shards(self) -> ShardSearch | None:
        """None: this node searches its shards itself."""

    @property
    def remotes(self) -> RemoteCaller:
        """Calls other clusters, as far as the settings allow."""

    @property
    def rerankers(self) -> Rerankers:
        """The models that the settings name."""

    @property
    def helpers(self) -> SearchHelpers | None:
        """None: this process searches alone."""

    @property
    def catalog(self) -> Catalog:
        """Raises UnavailableError while it is being opened, SearchError (503) if it cannot be opened."""

    async def perform(self, command: Command) -> Any:
        """Check a command, log it, apply it here: its outcome's value.

        Raises SearchError, UnavailableError (OutcomeUnknown: it may take effect still).
        """

    async def write(self, writes: Sequence[DocumentWrite], refresh: str = "false") -> list[WriteResult]:
        """`WriteDocuments` for any number of documents, in several log entries where they are many: each is
        stored wholly or not at all. refresh: false, true, wait_for. An index that is not there is made.

        Raises UnavailableError.
        """

    def begin_write(self, write: DocumentWrite, told: ToldWrite) -> bool:
        """Begin to write one document, as `write` without a refresh, and tell what comes of it after the
        call, on this event loop. False: that is for `write`, and nothing has begun.

        Raises SearchError, UnavailableError: nothing has begun.
        """

    async def refresh(self, indexes: Sequence[Index]) -> None:
        """Make written documents visible to searches, on every node."""

    async def flush(self, indexes: Sequence[Index]) -> None:
        """Here: all that was applied is on disk."""

    async def force_merge(
        self, indexes: Sequence[Index], segments_max: int | None, *, only_deletions: bool = False
    ) -> None:
        """Here: merge until no shard has more segments; without a number, what is worth it. only_deletions:
        only write those again that have many deleted documents.
        """

    async def ask_other(self, node_id: int, request: bytes, timeout_s: float) -> bytes:
        """What the search port of another node of the cluster answers to what this one has made.

        Raises UnavailableError.
        """

    def writing(self) -> PoolUse:
        """How busy is what takes changes into the log."""

    def following(self, index: Index) -> Mapping[str, Any] | None:
        """How an index follows the graph, as its statistics show it; None for one that does not."""

    def status(self) -> NodeStatus:
        """How the node is; never blocks, never raises."""

    def now_ms(self) -> int:
        """The clock, Unix epoch."""
