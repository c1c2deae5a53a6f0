"""What a search port and its search processes say to each other: see `search_processes.py`."""

from dataclasses import dataclass, field

from actors.wire.messages import Messages

__all__ = [
    "PROCESS_MESSAGES",
    "SHARED_BYTES",
    "SLOTS",
    "AdoptIndex",
    "Adopted",
    "ForgetIndex",
    "Found",
    "LongSearch",
    "NotFound",
    "Ready",
    "SearchIndex",
    "SharedGraph",
    "SharedLeaf",
]

SLOTS = 512  # indexes that processes may have
SHARED_BYTES = 32_768 + 8  # with each: see `lending_memory`; 1,024 connections


@dataclass(frozen=True, slots=True)
class SharedGraph:
    """The graph of a field's vectors. file, inode: as of a segment."""

    path: str
    file: str
    inode: int


@dataclass(frozen=True, slots=True)
class SharedLeaf:
    """file, inode: path of the segment, and which file that is. live: which of its documents are, as bits;
    None: all of them. graphs: all that the port has.
    """

    segment: str
    file: str
    inode: int
    live: bytes | None = field(repr=False)
    graphs: tuple[SharedGraph, ...]


@dataclass(frozen=True, slots=True)
class AdoptIndex:
    """What a search sees of an index as of one moment; number grows from state to state, of all indexes.

    settings, mapping and aliases are JSON. parts: the leaves of each shard. slot: where the shared memory has
    the number of the state that is that of now, as long as one is.
    """

    uuid: str
    number: int
    name: str
    settings: bytes = field(repr=False)
    mapping: bytes = field(repr=False)
    aliases: bytes = field(repr=False)
    parts: tuple[tuple[SharedLeaf, ...], ...] = field(repr=False)
    slot: int


@dataclass(frozen=True, slots=True)
class ForgetIndex:
    """It is searched no more."""

    uuid: str


@dataclass(frozen=True, slots=True)
class SearchIndex:
    """One search. body and filter are JSON; the others are as in `Target` and `SearchOptions`.

    deadline_s: when it ends at the latest, timeout_s: when the client wants an answer, both by the clock of
    the machine (CLOCK_MONOTONIC).
    """

    search: int
    uuid: str
    state: int
    body: bytes = field(repr=False)
    now_ms: int
    typed_keys: bool
    named_scores: bool
    filter: bytes | None = field(repr=False)
    boost: float
    window: int
    deadline_s: float
    timeout_s: float | None


@dataclass(frozen=True, slots=True)
class Ready:
    """The process has started."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """Searches may name this state. Without, the files are not there any more."""

    uuid: str
    number: int
    is_there: bool


@dataclass(frozen=True, slots=True)
class LongSearch:
    """The search is not known to be short, and goes on beside others."""

    search: int


@dataclass(frozen=True, slots=True)
class Found:
    """The members of an answer, each as JSON."""

    search: int
    members: dict[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True)
class NotFound:
    """There is no answer: timed_out: the client's time has passed; full: memory ran out; else the port is to
    search itself, and to say what is wrong.
    """

    search: int
    timed_out: bool = False
    full: bool = False


PROCESS_MESSAGES = Messages(AdoptIndex, ForgetIndex, SearchIndex, Ready, Adopted, LongSearch, Found, NotFound)
