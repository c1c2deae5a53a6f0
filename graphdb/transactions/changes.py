"""What a transaction wants to be true, and its commit: `Wanted`, `TransactionCommit`, `RecordingOverlay`."""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import orjson
from pyoxigraph import DefaultGraph, NamedNode, Quad, RdfFormat, serialize

from graphdb.errors import LimitExceeded, TransactionConflict
from graphdb.model import ChangeSet, GraphName, NamedGraph, node_of_text
from graphdb.rdf.quad_lines import line_blocks, parse_lines
from graphdb.store.overlay import Overlay
from graphdb.store.stored_form import stored_form
from graphdb.store.view import StoreView
from graphdb.transactions.read_pattern import ReadPattern
from graphdb.transactions.read_set import ReadSet
from graphdb.updates.graph_operations import change_of

__all__ = ["RecordingOverlay", "TransactionCommit", "Wanted", "conflict"]


class Wanted:
    """Which quads are to be there after a transaction, and which not; the last word counts.

    Quads that are there already count too: another transaction may remove them before this one ends. All are
    in the store's form.
    """

    def __init__(self, quads_max: int) -> None:
        self.quads: dict[Quad, bool] = {}
        self.graphs: dict[NamedGraph, bool] = {}
        self._quads_max = quads_max

    def __bool__(self) -> bool:
        return bool(self.quads or self.graphs)

    def take(self, quads: Iterable[Quad], *, present: bool) -> None:
        """Raises LimitExceeded."""
        for quad in stored_form(quads):
            self.quads[quad] = present
            self.check()
            if present:
                self._want_graph_of(quad)

    def _want_graph_of(self, quad: Quad) -> None:
        """It brings its graph into being, which stays though the quad may go."""
        if not isinstance(quad.graph_name, DefaultGraph):
            self.graphs[quad.graph_name] = True

    def check(self) -> None:
        """Raises LimitExceeded."""
        self.check_count(len(self.quads))

    def check_count(self, count: int) -> None:
        """Whether there may be so many. Raises LimitExceeded."""
        if count > self._quads_max:
            raise LimitExceeded(
                "the number of quads of a transaction (repository.max_transaction_quads)",
                count,
                self._quads_max,
            )

    def take_change(self, change: ChangeSet, looked_at: dict[Quad, bool]) -> None:
        """A planned update, and the quads that its planning looked at, with whether they were there.

        Raises LimitExceeded.
        """
        after = dict(looked_at)
        after.update(dict.fromkeys(change.removed, False))
        after.update(dict.fromkeys(change.added, True))
        self.quads |= after
        for quad, present in after.items():
            if present:
                self._want_graph_of(quad)
        self.graphs.update(dict.fromkeys(change.dropped_graphs, False))
        self.graphs.update(dict.fromkeys(change.created_graphs, True))
        self.check()

    def change_in(self, view: StoreView) -> ChangeSet:
        """What has to change in a state for all this to be true."""
        return _change(view, self.quads, self.graphs)


def _change(view: StoreView, quads: dict[Quad, bool], graphs: dict[NamedGraph, bool]) -> ChangeSet:
    change = change_of(
        view,
        [quad for quad, present in quads.items() if not present],
        [quad for quad, present in quads.items() if present],
    )
    created = dict.fromkeys(change.created_graphs)
    created |= dict.fromkeys(
        graph for graph, present in graphs.items() if present and not view.graph_exists(graph)
    )
    used = {quad.graph_name for quad in change.added}
    dropped = [
        graph
        for graph, present in graphs.items()
        if not present and graph not in used and view.graph_exists(graph)
    ]
    return ChangeSet(change.removed, change.added, tuple(dropped), tuple(created))


class RecordingOverlay(Overlay):
    """A state that remembers which quads it was asked for, and whether they were there."""

    def __init__(self, base: Any) -> None:
        super().__init__(base)
        self.looked_at: dict[Quad, bool] = {}

    def contains(self, quad: Quad) -> bool:
        """See `Overlay.contains`."""
        found = super().contains(quad)
        self.looked_at.setdefault(quad, found)
        return found


_LENGTHS = struct.Struct("<III")
_BLOCK_BYTES = 64 << 10  # parsed at once: about a millisecond


@dataclass(frozen=True, slots=True)
class TransactionCommit:
    """A transaction that is to become true: what it read, at which log index or later, and what it wants.

    read_at: everything that was read is as of this index.
    """

    read_at: int
    reads: tuple[ReadPattern, ...]
    quads: dict[Quad, bool] = field(repr=False)
    graphs: dict[NamedGraph, bool]

    @property
    def read_set(self) -> ReadSet:
        return ReadSet(self.reads)

    @property
    def graph_names(self) -> Iterator[GraphName]:
        """The graphs that it may change, each once."""
        names: dict[GraphName, None] = dict.fromkeys(quad.graph_name for quad in self.quads)
        yield from names | dict.fromkeys(self.graphs)

    def plan(self, state: StoreView) -> ChangeSet:
        """What it changes in a state, in which nothing that it has read is another."""
        return _change(state, self.quads, self.graphs)

    def encode(self) -> bytes:
        """For the node that leads; `decode` reads it."""
        head = orjson.dumps(
            {
                "read_at": self.read_at,
                "reads": [_encode_pattern(pattern) for pattern in self.reads],
                "graphs": [[_name(graph), present] for graph, present in self.graphs.items()],
            }
        )
        absent = _lines(quad for quad, present in self.quads.items() if not present)
        present = _lines(quad for quad, present in self.quads.items() if present)
        return b"".join((_LENGTHS.pack(len(head), len(absent), len(present)), head, absent, present))

    @classmethod
    def decode(cls, data: bytes) -> "TransactionCommit":
        """Raises ValueError for what `encode` has not written."""
        try:
            lengths = _LENGTHS.unpack_from(data)
            parts, start = [], _LENGTHS.size
            for length in lengths:
                parts.append(data[start : start + length])
                start += length
            head = orjson.loads(parts[0])
            quads: dict[Quad, bool] = {}
            for lines, present in ((parts[1], False), (parts[2], True)):
                # a block at a time, so that other threads have their turns
                for block in line_blocks(BytesIO(lines), _BLOCK_BYTES):
                    quads |= dict.fromkeys(parse_lines(block), present)
            reads = tuple(_decode_pattern(one) for one in head["reads"])
            graphs = {node_of_text(name): bool(present) for name, present in head["graphs"]}
            return cls(int(head["read_at"]), reads, quads, graphs)
        except (struct.error, SyntaxError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no commit of a transaction: {error}") from None


def conflict() -> TransactionConflict:
    """What a transaction is refused with that has read what is not true any more."""
    return TransactionConflict("what the transaction has read has changed since: begin it again")


def _lines(quads: Iterable[Quad]) -> bytes:
    return serialize(quads, format=RdfFormat.N_QUADS) or b""


_ANY = Quad(NamedNode("urn:any"), NamedNode("urn:any"), NamedNode("urn:any"))


def _encode_pattern(pattern: ReadPattern) -> list[Any]:
    """The pattern as a quad in which any term stands for None, and which terms those are; `within`, if it has
    that.
    """
    graph = _ANY.graph_name if pattern.graph is None else pattern.graph
    quad = Quad(
        pattern.subject or _ANY.subject,
        pattern.predicate or _ANY.predicate,
        pattern.object or _ANY.object,
        graph,
    )
    given = (pattern.subject, pattern.predicate, pattern.object, pattern.graph)
    encoded = [_lines([quad]).decode(), [term is not None for term in given]]
    return encoded if pattern.within is None else [*encoded, str(pattern.within)]


def _decode_pattern(encoded: Any) -> ReadPattern:
    line, given, *within = encoded
    [quad] = parse_lines(line.encode())
    has_subject, has_predicate, has_object, has_graph = given
    return ReadPattern(
        quad.subject if has_subject else None,
        quad.predicate if has_predicate else None,
        quad.object if has_object else None,
        quad.graph_name if has_graph else None,
        node_of_text(within[0]) if within else None,
    )


def _name(graph: NamedGraph) -> str:
    return str(graph)
