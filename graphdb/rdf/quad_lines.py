"""Many quads as canonical N-Quads in a file, a quad a line, as the log writes them.

Quads in this form cost no object each: they are counted, compared, logged and loaded as bytes.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import IO

from pyoxigraph import NamedNode, Quad, RdfFormat, parse

from graphdb.model import ChangeSet, GraphName, NamedGraph

__all__ = [
    "MANY_QUADS",
    "AddedLines",
    "ClearedLines",
    "LineChange",
    "line_blocks",
    "parse_lines",
    "triples_of",
]

MANY_QUADS = 50_000  # so many are worth files of their own

_BLOCK_BYTES = 256 << 10
_END = b" .\n"  # of each line
_SPACES_BEFORE_GRAPH = 2  # at least: what an object has of them comes on top
_QUADS_BYTES = 64 << 10  # parsed at once: about a millisecond


def line_blocks(file: IO[bytes], block_bytes: int = _BLOCK_BYTES) -> Iterator[bytes]:
    """What is left of a file, in blocks of whole lines of about that size; a longer line is a block."""
    rest = b""
    while block := file.read(block_bytes):
        end = block.rfind(b"\n") + 1
        if end:
            yield rest + block[:end]
            rest = block[end:]
        else:
            rest += block
    if rest:
        yield rest


def parse_lines(lines: bytes) -> Iterator[Quad]:
    """The quads of canonical N-Quads; blank nodes keep their labels. Raises SyntaxError."""
    # lenient: whatever the engine stores it must read back, also what a strict parser finds fault with
    return parse(lines, format=RdfFormat.N_QUADS, lenient=True) if lines else iter(())


def triples_of(lines: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Quads without blank nodes as canonical N-Triples, with the graph they are in as these write it, or
    nothing for the default graph.
    """
    for graph, run in groupby(lines.splitlines(keepends=True), _graph_of):
        triples = [*run]
        if graph:
            end = -len(graph) - len(_END)
            triples = [line[:end] + _END for line in triples]
        yield b"".join(triples), graph


@dataclass(frozen=True)
class _QuadLines:
    """One change of `count` quads, none twice, in the engine's form. The file is its maker's.

    It is also its parts as ChangeSets, for whoever needs the quads.
    """

    path: Path
    count: int

    @cached_property
    def may_have_blank_nodes(self) -> bool:
        """False where no quad has one."""
        return any(b"_:" in block for block in self._blocks())

    def triples(self) -> Iterator[tuple[bytes, bytes]]:
        """See `triples_of`."""
        for block in self._blocks():
            yield from triples_of(block)

    def quads(self, pause: Callable[[], None] = lambda: None) -> Iterator[Quad]:
        """All quads; pause is called between some and the next."""
        for block in self._blocks(_QUADS_BYTES):
            yield from parse_lines(block)
            pause()

    def with_predicates(self, predicates: Collection[NamedNode]) -> Iterator[Quad]:
        """The quads with one of these predicates; only lines that name one are parsed."""
        named = [b" %s " % str(predicate).encode() for predicate in predicates]
        for block in self._blocks() if named else ():
            for line in {line for name in named for line in _lines_with(block, name)}:
                yield from (quad for quad in parse_lines(line) if quad.predicate in predicates)

    def _blocks(self, block_bytes: int = _BLOCK_BYTES) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            yield from line_blocks(file, block_bytes)


@dataclass(frozen=True)
class AddedLines(_QuadLines):
    """One change that only adds, quads of which none is there."""

    created_graphs: tuple[NamedGraph, ...] = ()

    def __iter__(self) -> Iterator[ChangeSet]:
        created = self.created_graphs
        for block in self._blocks():
            yield ChangeSet(added=tuple(parse_lines(block)), created_graphs=created)
            created = ()


@dataclass(frozen=True)
class ClearedLines(_QuadLines):
    """One change that removes all quads that some graphs have, and names of graphs, and then adds others.

    Replayed to a store that has more quads in these graphs, it takes them too: they were added later, and
    come again.
    """

    cleared_graphs: tuple[GraphName, ...]
    dropped_graphs: tuple[NamedGraph, ...] = ()
    added: AddedLines | None = None

    def __iter__(self) -> Iterator[ChangeSet]:
        created = () if self.added is None else self.added.created_graphs
        yield ChangeSet(dropped_graphs=self.dropped_graphs, created_graphs=created)
        for block in self._blocks():
            yield ChangeSet(removed=tuple(parse_lines(block)))
        yield from self.added or ()


def _graph_of(line: bytes) -> bytes:
    """The IRI, with the space before it; nothing in the default graph. No term is a blank node."""
    rest, _, last = line[: -len(_END)].rpartition(b" ")
    is_graph = last.startswith(b"<") and b'"' not in last and rest.count(b" ") >= _SPACES_BEFORE_GRAPH
    return b" " + last if is_graph else b""


def _lines_with(block: bytes, part: bytes) -> Iterator[bytes]:
    end = 0
    while (found := block.find(part, end)) >= 0:
        start = block.rfind(b"\n", 0, found) + 1
        end = block.find(b"\n", found) + 1 or len(block)
        yield block[start:end]


@dataclass(frozen=True, slots=True)
class LineChange:
    """One large change as files of such lines: what is removed and what is added (None: nothing). It is a
    real change, as a ChangeSet is. cleared_graphs are some whose quads are all among the removed ones. The
    files are their maker's.
    """

    added: Path | None
    removed: Path | None = None
    created_graphs: tuple[NamedGraph, ...] = ()
    dropped_graphs: tuple[NamedGraph, ...] = ()
    cleared_graphs: tuple[GraphName, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        sizes = [path.stat().st_size for path in (self.added, self.removed) if path is not None]
        return not (any(sizes) or self.created_graphs or self.dropped_graphs)

    def pieces(self, piece_bytes: int) -> Iterator[tuple[bytes, bytes]]:
        """Lines that are removed, then lines that are added, about so many bytes at a time."""
        if self.removed is not None:
            with self.removed.open("rb") as file:
                for lines in line_blocks(file, piece_bytes):
                    yield lines, b""
        if self.added is not None:
            with self.added.open("rb") as file:
                for lines in line_blocks(file, piece_bytes):
                    yield b"", lines
