"""The nouns that every room shares: the change that a write makes and the log entry that orders it."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol, TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad

__all__ = [
    "APPLIED_BEFORE",
    "UNKNOWN_AUTHOR",
    "Author",
    "ChangeSet",
    "Confirmation",
    "EntryKind",
    "ForeseeingOutcome",
    "GraphName",
    "Interface",
    "LogEntry",
    "NamedGraph",
    "Outcome",
    "node_of_text",
]

NamedGraph: TypeAlias = NamedNode | BlankNode
GraphName: TypeAlias = NamedNode | BlankNode | DefaultGraph


def node_of_text(text: str) -> NamedNode | BlankNode:
    """What str() of it gives: its form in N-Triples, which is not checked."""
    return BlankNode(text[2:]) if text.startswith("_:") else NamedNode(text[1:-1])


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """The effect of one write: what was there and is not any more, and what is there now and was not.

    Only real changes are in it: every quad of `removed` was in the dataset before, none of `added` was, and
    so with the graphs. Blank nodes carry their final labels. Applying a ChangeSet twice is applying it once.
    A quad added to a named graph brings the graph into being; `created_graphs` names every graph that is new,
    with or without quads, and `dropped_graphs` every graph that is gone (its quads stand in `removed`).
    """

    removed: tuple[Quad, ...] = ()
    added: tuple[Quad, ...] = ()
    dropped_graphs: tuple[NamedGraph, ...] = ()
    created_graphs: tuple[NamedGraph, ...] = ()

    @property
    def affected_triples(self) -> int:
        """Quads removed plus quads added, as the update confirmation counts them."""
        return len(self.removed) + len(self.added)

    @property
    def adds(self) -> bool:
        """Whether anything is there afterwards that was not before."""
        return bool(self.added or self.created_graphs)

    def concerns(self, graphs: Collection[GraphName]) -> bool:
        """Whether it changes any of these graphs, or whether one of them exists."""
        if any(graph in graphs for graph in (*self.created_graphs, *self.dropped_graphs)):
            return True
        return any(quad.graph_name in graphs for part in (self.added, self.removed) for quad in part)

    def part(self, takes: Callable[[Quad], bool], takes_graph: Callable[[NamedGraph], bool]) -> "ChangeSet":
        """The quads and the graphs that are taken."""
        return ChangeSet(
            tuple(filter(takes, self.removed)),
            tuple(filter(takes, self.added)),
            tuple(filter(takes_graph, self.dropped_graphs)),
            tuple(filter(takes_graph, self.created_graphs)),
        )

    @property
    def inverse(self) -> "ChangeSet":
        """What leads back to the state before."""
        return ChangeSet(self.added, self.removed, self.created_graphs, self.dropped_graphs)

    def __bool__(self) -> bool:
        return bool(self.removed or self.added or self.dropped_graphs or self.created_graphs)


class EntryKind(IntEnum):
    """What the payload of a log entry holds. The numbers are on disk: they never change meaning."""

    CHANGES = 1  # one encoded ChangeSet, complete
    PART = 2  # a piece of a ChangeSet too large for one entry; takes effect only with its CLOSE
    CLOSE = 3  # makes the PART entries of the same request visible, all at once
    NOTHING = 4  # no effect on any view: a Raft leader's first entry of its term
    MEMBERS = 5  # who is in the cluster from here on (`graphdb.raft.membership`); no effect on any view
    SEARCH = 6  # a command to the catalogue of search indexes (`graphdb.search.catalog`); none on the quads
    ALERTS = 7  # a command to the book of alerts (`graphdb.alerts`), by the same writer as those on quads
    SAVED_QUERIES = 8  # a command to the book of saved queries (`graphdb.saved_queries`), by that writer too
    NAMESPACES = 9  # a command to the book of namespaces (`graphdb.namespaces`), by that writer too
    CLOSE_CLEARED = 10  # as CLOSE; and what the parts remove is all that some graphs have
    NAMED_STATES = 11  # a command to the book of `graphdb.history.named_states`, by that writer too
    PURGES = 12  # a command to the book of `graphdb.history.purges`, by that writer too

    @property
    def concerns_quads(self) -> bool:
        """Whether what is planned upon the quads before such an entry may not hold behind it any more."""
        return self is not EntryKind.SEARCH

    @property
    def closes_parts(self) -> bool:
        """Whether it makes PART entries visible."""
        return self in (EntryKind.CLOSE, EntryKind.CLOSE_CLEARED)

    @property
    def is_of_a_book(self) -> bool:
        """Whether it changes a state of its own that is kept beside the quads."""
        return self in _OF_BOOKS


_OF_BOOKS = frozenset(
    {
        EntryKind.ALERTS,
        EntryKind.SAVED_QUERIES,
        EntryKind.NAMESPACES,
        EntryKind.NAMED_STATES,
        EntryKind.PURGES,
    }
)


class Interface(IntEnum):
    """By which interface a write came. The numbers are on disk: they never change meaning."""

    UNKNOWN = 0  # written before entries said so, or by a part of the node that has no interface
    SPARQL_UPDATE = 1
    GRAPH_STORE = 2
    GRAPHQL = 3
    RDF4J = 4
    HOLONIC = 5
    MCP = 6
    REVERT = 7
    NOTEBOOK = 8  # `graphdb.connect()`
    PURGE = 9

    @property
    def word(self) -> str:
        """As clients read it: `sparql-update`."""
        return self.name.lower().replace("_", "-")


class Author(NamedTuple):
    """Who wrote an entry. name is `Principal.qualified_name`, empty where nobody has signed in."""

    name: str = ""
    interface: Interface = Interface.UNKNOWN


UNKNOWN_AUTHOR = Author()


class LogEntry(NamedTuple):
    """One place in the update log.

    log_index counts from 1 without gaps. raft_term is 0 on a standalone node. request_id (16 bytes) is chosen
    by the writer, the same for all entries of one request, so that it can tell after a lost answer whether
    its entry is there. timestamp_ms is the writer's clock, Unix epoch; nothing is ordered by it.

    A named tuple, for it takes a quarter of the time of a data class to make, and an update makes a dozen.
    """

    log_index: int
    raft_term: int
    kind: EntryKind
    request_id: bytes
    timestamp_ms: int
    payload: bytes
    author: Author = UNKNOWN_AUTHOR

    def __repr__(self) -> str:
        """Without the payload."""
        place = f"log_index={self.log_index}, raft_term={self.raft_term}, kind={self.kind!r}"
        return f"LogEntry({place}, request_id={self.request_id!r}, timestamp_ms={self.timestamp_ms})"

    def at(self, log_index: int, raft_term: int = 0) -> "LogEntry":
        """The same entry at another place of a log."""
        _, _, kind, request_id, timestamp_ms, payload, author = self
        return LogEntry(log_index, raft_term, kind, request_id, timestamp_ms, payload, author)


APPLIED_BEFORE = "applied before"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The answer to a write: the log index at which it is visible, and how many quads it really changed."""

    snapshot_index: int
    affected_triples: int
    message: str = "update applied"

    @property
    def is_repeated(self) -> bool:
        """Whether the same request had been applied before, and this one had no effect."""
        return self.message == APPLIED_BEFORE


class Outcome(Protocol):
    """Receives how a write ends, once, on the event loop. An `asyncio.Future` is one."""

    def done(self) -> bool:
        """Whether it has it already, or nobody waits any more."""

    def set_result(self, result: Confirmation, /) -> None:
        """The write is stored and visible."""

    def set_exception(self, exception: Exception, /) -> None:
        """Why it failed, or why it is unknown how it ended."""


class ForeseeingOutcome:
    """Base of an `Outcome` that can prepare for its result while the write is on its way to the disk.

    What it is told is sent within that call: so it is told when the write is on the disk, and the write is
    applied in the same step of the event loop.
    """

    __slots__ = ()

    def foresee(self, result: Confirmation, /) -> None:
        """What `set_result` will probably be called with: then with this very object.

        Nothing is stored yet, so nobody may be told. The write may still fail or get another index.
        """
        raise NotImplementedError
