"""Writes on their way from the node that was asked to the one that leads: the bytes. `ForwardBatches`: many
quick ones in one call.

A write is an operation's name (its class's `operation`) and a body: a head, as JSON with its length (4 bytes)
before it, and the text or document. The answer is a Confirmation as JSON.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, Protocol, Self, TypeAlias, TypeVar, get_args

import orjson
from pyoxigraph import NamedNode

from actors.gathering import Gathering
from actors.raft.log_requests import ForwardedRequest, encode_requests
from actors.raft.peer_protocol import error_of_peer
from actors.raft.raft_log_client import RaftLogClient
from graphdb.access.visibility import Visibility
from graphdb.alerts.commands import Command, decode_command, encode_command
from graphdb.errors import CorruptionError, GraphDBError, OutcomeUnknown
from graphdb.graphql.edits import Edits
from graphdb.history.named_states import (
    NamedStateCommand,
    decode_named_state_command,
    encode_named_state_command,
)
from graphdb.history.purges import PurgeCommand, decode_purge_command, encode_purge_command
from graphdb.model import UNKNOWN_AUTHOR, Author, Confirmation, Interface
from graphdb.namespaces import NamespaceCommand, decode_namespace_command, encode_namespace_command
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.patch import QuadPatch, decode_patch
from graphdb.saved_queries import QueryCommand, decode_query_command, encode_query_command
from graphdb.sparql.dataset import Dataset
from graphdb.transactions.changes import TransactionCommit

__all__ = [
    "BATCH",
    "AlertChange",
    "ForwardBatches",
    "ForwardedWrite",
    "GraphDeletion",
    "GraphWrite",
    "NamedStateChange",
    "NamespaceChange",
    "PurgeChange",
    "QuadPatchWrite",
    "ResourceEdits",
    "SavedQueryChange",
    "SparqlUpdate",
    "TransactionWrite",
    "WrittenBy",
    "decode_confirmation",
    "decode_write",
    "encode_confirmation",
    "encode_outcomes",
]

C = TypeVar("C")
_LENGTH = struct.Struct("<I")
_VISIBILITY = "sight"  # as nodes of earlier versions call it
_AUTHOR = "author", "interface"  # of a write; nodes of earlier versions do not say


@dataclass(frozen=True, slots=True)
class WrittenBy:
    """Who writes: what of the graph they see, and what the log says of them."""

    visibility: Visibility
    author: Author = UNKNOWN_AUTHOR


@dataclass(frozen=True, slots=True)
class SparqlUpdate:
    """`GraphWrites.update`."""

    operation: ClassVar[str] = "update"

    text: str = field(repr=False)
    base_iri: str | None
    using: Dataset
    since: int  # the write may be in the log behind this index already
    writer: WrittenBy

    def encode(self) -> bytes:
        graphs = [
            [graph.value for graph in part] for part in (self.using.default_graphs, self.using.named_graphs)
        ]
        head = {"base_iri": self.base_iri, "using": graphs} | _terms(self.since, self.writer)
        return _join(head, self.text.encode())

    @classmethod
    def decode(cls, body: bytes) -> "SparqlUpdate":
        head, text = _split(body)
        default_graphs, named_graphs = (tuple(map(NamedNode, part)) for part in head["using"])
        using = Dataset(default_graphs, named_graphs)
        return cls(text.decode(), head["base_iri"], using, head["since"], _writer(head))


@dataclass(frozen=True, slots=True)
class GraphWrite:
    """`GraphWrites.write_graph`."""

    operation: ClassVar[str] = "write_graph"

    document: bytes = field(repr=False)
    syntax: RdfSyntax
    graph: NamedNode | None
    whole_dataset: bool
    replace: bool
    base_iri: str | None
    since: int
    writer: WrittenBy
    clear: bool = False
    keep_blank_nodes: bool = False

    def encode(self) -> bytes:
        head = {
            "syntax": self.syntax.value,
            "graph": _iri_of(self.graph),
            "whole_dataset": self.whole_dataset,
            "replace": self.replace,
            "base_iri": self.base_iri,
            "clear": self.clear,
            "keep_blank_nodes": self.keep_blank_nodes,
        }
        return _join(head | _terms(self.since, self.writer), self.document)

    @classmethod
    def decode(cls, body: bytes) -> "GraphWrite":
        head, document = _split(body)
        syntax = next(syntax for syntax in RdfSyntax if syntax.value == head["syntax"])
        graph = _named(head["graph"])
        writer = _writer(head)
        for name in (_VISIBILITY, *_AUTHOR):
            head.pop(name, None)
        return cls(document, **head | {"syntax": syntax, "graph": graph, "writer": writer})


@dataclass(frozen=True, slots=True)
class GraphDeletion:
    """`GraphWrites.delete_graph`."""

    operation: ClassVar[str] = "delete_graph"

    graph: NamedNode | None
    since: int
    writer: WrittenBy

    def encode(self) -> bytes:
        return _join({"graph": _iri_of(self.graph)} | _terms(self.since, self.writer), b"")

    @classmethod
    def decode(cls, body: bytes) -> "GraphDeletion":
        head, _ = _split(body)
        return cls(_named(head["graph"]), head["since"], _writer(head))


@dataclass(frozen=True, slots=True)
class QuadPatchWrite:
    """`GraphWrites.patch`."""

    operation: ClassVar[str] = "patch"

    patch: QuadPatch = field(repr=False)
    since: int
    writer: WrittenBy

    def encode(self) -> bytes:
        head = {"replaces_all": self.patch.replaces_all} | _terms(self.since, self.writer)
        return _join(head, self.patch.encode())

    @classmethod
    def decode(cls, body: bytes) -> "QuadPatchWrite":
        head, rows = _split(body)
        return cls(decode_patch(rows, head["replaces_all"]), head["since"], _writer(head))


@dataclass(frozen=True, slots=True)
class ResourceEdits:
    """`GraphWrites.edit`."""

    operation: ClassVar[str] = "edit"

    edits: Edits = field(repr=False)
    since: int
    writer: WrittenBy

    def encode(self) -> bytes:
        return _join(_terms(self.since, self.writer), self.edits.encode())

    @classmethod
    def decode(cls, body: bytes) -> "ResourceEdits":
        head, edits = _split(body)
        return cls(Edits.decode(edits), head["since"], _writer(head))


@dataclass(frozen=True, slots=True)
class TransactionWrite:
    """`GraphWrites.commit`."""

    operation: ClassVar[str] = "commit"

    commit: TransactionCommit = field(repr=False)
    since: int
    writer: WrittenBy

    def encode(self) -> bytes:
        return _join(_terms(self.since, self.writer), self.commit.encode())

    @classmethod
    def decode(cls, body: bytes) -> "TransactionWrite":
        head, commit = _split(body)
        return cls(TransactionCommit.decode(commit), head["since"], _writer(head))


@dataclass(frozen=True, slots=True)
class _BookChange(Generic[C]):
    """A command to one of the books beside the quads."""

    _encode: ClassVar["staticmethod[[Any], bytes]"]
    _decode: ClassVar["staticmethod[[bytes], Any]"]

    command: C
    since: int

    def encode(self) -> bytes:
        return _join({"since": self.since}, self._encode(self.command))

    @classmethod
    def decode(cls, body: bytes) -> Self:
        head, command = _split(body)
        try:
            return cls(cls._decode(command), head["since"])
        except CorruptionError as error:
            raise ValueError(str(error)) from error


class AlertChange(_BookChange[Command]):
    """`AlertLog.change_alerts`."""

    __slots__ = ()
    operation: ClassVar[str] = "change_alerts"
    _encode, _decode = staticmethod(encode_command), staticmethod(decode_command)


class SavedQueryChange(_BookChange[QueryCommand]):
    """`OwnBook.change` of the saved queries."""

    __slots__ = ()
    operation: ClassVar[str] = "change_saved_queries"
    _encode, _decode = staticmethod(encode_query_command), staticmethod(decode_query_command)


class NamespaceChange(_BookChange[NamespaceCommand]):
    """`OwnBook.change` of the namespaces."""

    __slots__ = ()
    operation: ClassVar[str] = "change_namespaces"
    _encode, _decode = staticmethod(encode_namespace_command), staticmethod(decode_namespace_command)


class NamedStateChange(_BookChange[NamedStateCommand]):
    """`OwnBook.change` of the named states."""

    __slots__ = ()
    operation: ClassVar[str] = "change_named_states"
    _encode, _decode = staticmethod(encode_named_state_command), staticmethod(decode_named_state_command)


class PurgeChange(_BookChange[PurgeCommand]):
    """`OwnPurges.change`."""

    __slots__ = ()
    operation: ClassVar[str] = "change_purges"
    _encode, _decode = staticmethod(encode_purge_command), staticmethod(decode_purge_command)


ForwardedWrite: TypeAlias = (
    SparqlUpdate
    | GraphWrite
    | GraphDeletion
    | QuadPatchWrite
    | ResourceEdits
    | AlertChange
    | SavedQueryChange
    | NamespaceChange
    | NamedStateChange
    | PurgeChange
    | TransactionWrite
)
_KINDS: dict[str, type[ForwardedWrite]] = {kind.operation: kind for kind in get_args(ForwardedWrite)}


def decode_write(operation: str, body: bytes) -> ForwardedWrite:
    """The write. Raises KeyError, ValueError, TypeError, StopIteration where it is none."""
    return _KINDS[operation].decode(body)


def encode_confirmation(confirmation: Confirmation) -> bytes:
    return orjson.dumps(confirmation)


def decode_confirmation(body: bytes) -> Confirmation:
    return Confirmation(**orjson.loads(body))


def _join(head: dict[str, Any], rest: bytes) -> bytes:
    encoded = orjson.dumps(head)
    return b"".join((_LENGTH.pack(len(encoded)), encoded, rest))


def _split(body: bytes) -> tuple[dict[str, Any], bytes]:
    end = _LENGTH.size + _LENGTH.unpack_from(body)[0]
    return orjson.loads(body[_LENGTH.size : end]), body[end:]


def _terms(since: int, writer: WrittenBy) -> dict[str, Any]:
    visibility, author = writer.visibility.to_json(), zip(_AUTHOR, writer.author, strict=True)
    return {"since": since, _VISIBILITY: visibility, **dict(author)}


def _writer(head: dict[str, Any]) -> WrittenBy:
    name, interface = map(head.get, _AUTHOR)
    author = UNKNOWN_AUTHOR if interface is None else Author(name or "", Interface(interface))
    return WrittenBy(Visibility.from_json(head[_VISIBILITY]), author)


def _iri_of(graph: NamedNode | None) -> str | None:
    return graph.value if graph is not None else None


def _named(iri: str | None) -> NamedNode | None:
    return NamedNode(iri) if iri is not None else None


BATCH = "batch"  # the operation: `encode_requests`, answered by their outcomes in the same order
_OUTCOME = struct.Struct("<?I")
_REQUESTS_MAX, _BYTES_MAX = 256, 4 << 20  # in one call


class Answer(Protocol):
    """Receives the answer to a forwarded request, once, on the event loop. An `asyncio.Future` is one."""

    def done(self) -> bool:
        """Whether it has it already, or nobody waits any more."""

    def set_result(self, result: bytes, /) -> None:
        """What the other node has answered."""

    def set_exception(self, exception: GraphDBError, /) -> None:
        """What it has raised, or why it is unknown how the request has ended."""


@dataclass(slots=True)
class _Waiting:
    request: ForwardedRequest
    answer: Answer


class ForwardBatches:
    """To one leader, on one event loop. One call is under way while the next one fills."""

    def __init__(self, log: RaftLogClient, leader_id: int, timeout_s: float) -> None:
        """timeout_s: for each call."""
        self._log = log
        self._leader_id = leader_id
        self._timeout_s = timeout_s
        self._queue: deque[_Waiting] = deque()
        self._gathering = Gathering()
        self._calling: asyncio.Task[None] | None = None

    async def forward(self, request: ForwardedRequest) -> bytes:
        """As `RaftLogClient.forward`."""
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.begin(request, answer)
        return await answer

    def begin(self, request: ForwardedRequest, answer: Answer) -> None:
        """`forward`, whose outcome goes to answer, after this call."""
        self._queue.append(_Waiting(request, answer))
        self._gathering.note_request()
        if self._calling is None:
            self._calling = asyncio.get_running_loop().create_task(self._call_all())

    async def _call_all(self) -> None:
        """Until nobody waits any more."""
        clock = asyncio.get_running_loop().time
        try:
            while self._queue:
                await self._gathering.wait(len(self._queue), _REQUESTS_MAX)
                began, batch = clock(), self._take()
                if batch:
                    await self._call(batch)
                    self._gathering.note(clock() - began, len(batch), len(self._queue))
        finally:
            self._calling = None

    async def _call(self, batch: list[_Waiting]) -> None:
        body = encode_requests(replace(each.request, number=i) for i, each in enumerate(batch))
        request = ForwardedRequest(0, BATCH, "", body)
        try:
            outcomes = _decode_outcomes(await self._log.forward(self._leader_id, request, self._timeout_s))
            if len(outcomes) != len(batch):
                raise OutcomeUnknown(f"{len(outcomes)} answers to {len(batch)} requests")
        except GraphDBError as error:
            outcomes = [type(error)(*error.args) for _ in batch]
        for waiting, outcome in zip(batch, outcomes, strict=True):
            _settle(waiting.answer, outcome)

    def _take(self) -> list[_Waiting]:
        taken: list[_Waiting] = []
        size = 0
        while self._queue and len(taken) < _REQUESTS_MAX and size < _BYTES_MAX:
            waiting = self._queue.popleft()
            if not waiting.answer.done():
                taken.append(waiting)
                size += len(waiting.request.body)
        return taken


def _settle(answer: Answer, outcome: bytes | GraphDBError) -> None:
    if answer.done():
        return
    if isinstance(outcome, bytes):
        answer.set_result(outcome)
    else:
        answer.set_exception(outcome)


def encode_outcomes(outcomes: Iterable[tuple[bool, bytes]]) -> bytes:
    """Of each request: whether it succeeded, and its answer or error (`actors.wire.messages`)."""
    return b"".join(_OUTCOME.pack(succeeded, len(data)) + data for succeeded, data in outcomes)


def _decode_outcomes(body: bytes) -> list[bytes | GraphDBError]:
    """Raises OutcomeUnknown where the body ends within an outcome."""
    outcomes: list[bytes | GraphDBError] = []
    offset = 0
    while offset + _OUTCOME.size <= len(body):
        succeeded, length = _OUTCOME.unpack_from(body, offset)
        offset += _OUTCOME.size
        data = body[offset : offset + length]
        outcomes.append(data if succeeded else error_of_peer(data))
        offset += length
    if offset != len(body):
        raise OutcomeUnknown("an answer that is cut short")
    return outcomes
