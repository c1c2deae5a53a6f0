"""Large bodies on their way to the writer: kept on disk, made lines of in a process, compared with the store.

A body that is out of the ordinary is read a quad at a time instead (`graphdb.store.staging`), which also says
what is wrong with it.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import BoundedSemaphore

from pyoxigraph import DefaultGraph, NamedNode, Quad

from actors.disk_room import DiskRoom
from actors.shard.checkpointer import Checkpointer
from actors.shard.lines_process import compare, convert
from graphdb.errors import StorageFull
from graphdb.log.file_system import storage_error
from graphdb.model import ChangeSet, NamedGraph
from graphdb.rdf.formats import RdfSyntax
from graphdb.rdf.quad_lines import AddedLines, LineChange
from graphdb.rdf.reading import ByteSource, read_quads
from graphdb.store.document_lines import DocumentLines
from graphdb.store.line_rewriting import is_of_lines
from graphdb.store.overlay import GraphsInRemoval, Overlay
from graphdb.store.staging import StagedBody

__all__ = ["GrowingDocument", "LargeBodies", "StagedDocument", "is_dense"]

# A process takes a tenth of a second to start. A quad that is read here takes 20 us from all other threads.
_LINES_FROM_BYTES = 2 << 20
_LINES_FROM_MARKS = 40_000
_MARKS = (b" ", b"\n", b"\t", b",", b";", b"(", b"[")  # `(1 1 1` is two quads for two bytes
_PIECE_BYTES = 256 << 10
_LOOK_BYTES = 8 << 20  # between two looks at the disk
_TIMES_AS_LARGE = 4  # what a document becomes on the disk, about, until it is planned


class GrowingDocument:
    """The room for a document that is being written to the disk."""

    def __init__(self, room: DiskRoom) -> None:
        self._room = room
        self._seen_bytes = 0

    def check(self, size_bytes: int) -> None:
        """Call this as it grows. Raises StorageFull where it will not fit."""
        if size_bytes >= self._seen_bytes:
            self._seen_bytes = size_bytes + _LOOK_BYTES
            if not self._room.admits(size_bytes * _TIMES_AS_LARGE):
                raise StorageFull.for_inserts()


@dataclass(frozen=True, slots=True)
class StagedDocument:
    """One large document, read to its end. Closing it deletes what it keeps on disk."""

    targets: tuple[NamedGraph | None, ...]
    change: Callable[[Overlay], Iterable[ChangeSet] | LineChange]
    close: Callable[[], None]


class LargeBodies:
    """Any threads."""

    def __init__(self, at_once_max: int) -> None:
        """at_once_max: documents that are made lines of at the same time."""
        self._free = BoundedSemaphore(at_once_max)

    def stage(
        self,
        body: ByteSource,
        syntax: RdfSyntax,
        *,
        graph: NamedNode | None,
        whole_dataset: bool,
        base_iri: str | None,
        replace: bool,
        clear: bool = False,
        keep_blank_nodes: bool = False,
        scratch: Path,
        checkpointer: Checkpointer,
        as_lines: bool,
    ) -> StagedDocument:
        """See `StagedBody`. scratch is on the store's file system, whose checkpointer knows whether it has
        room. as_lines: whether the change may be one of lines, into which nobody looks before it is logged.

        Raises RdfSyntaxError, InvalidParameter, StorageFull, and what the body raises; then nothing is left.
        """
        with ExitStack() as opened:
            directory = Path(opened.enter_context(tempfile.TemporaryDirectory(dir=scratch)))
            document, lines = directory / "document", directory / "lines"
            size, marks = _keep(body, document, checkpointer.room)
            is_long = size >= _LINES_FROM_BYTES or marks >= _LINES_FROM_MARKS
            as_lines = as_lines and not clear and (is_of_lines(syntax) or not keep_blank_nodes)
            if as_lines and is_long and syntax.carries_graphs is whole_dataset:
                with self._free:
                    found = convert(
                        document,
                        syntax,
                        lines,
                        base_iri=base_iri,
                        graph=graph,
                        keep_blank_nodes=keep_blank_nodes,
                    )
                if found is not None:
                    document.unlink()
                    targets = found.graphs if whole_dataset else (graph,)
                    change = _Lines(directory, found, targets, replace, graph, whole_dataset).change
                    return StagedDocument(targets, change, opened.pop_all().close)
            with document.open("rb") as source:
                read = read_quads(source, syntax, base_iri=base_iri, fresh_blank_nodes=not keep_blank_nodes)
                quads = checkpointer.staged(read)
                body_quads = opened.enter_context(
                    StagedBody(quads, graph=graph, whole_dataset=whole_dataset, directory=directory)
                )
            document.unlink()
            return StagedDocument(
                body_quads.targets,
                lambda state: body_quads.parts(state, replace=replace, clear=clear),
                opened.pop_all().close,
            )


def is_dense(text: bytes) -> bool:
    """Whether a short document may have so many quads that it is to be taken for a large one."""
    return _marks(text) >= _LINES_FROM_MARKS


def _marks(text: bytes) -> int:
    return sum(map(text.count, _MARKS))


def _keep(body: ByteSource, document: Path, room: DiskRoom) -> tuple[int, int]:
    """Its size in bytes, and how many marks it has between its terms, or more."""
    size, marks, growing = 0, 0, GrowingDocument(room)
    try:
        with document.open("wb") as file:
            while piece := body.read(_PIECE_BYTES):
                size += file.write(piece)
                marks += _marks(piece)
                growing.check(size)
    except OSError as error:
        raise storage_error(error, "keeping a document") from error
    return size, marks


@dataclass(frozen=True, slots=True)
class _Lines:
    """A document as lines, in a directory of its own."""

    directory: Path
    found: DocumentLines
    targets: tuple[NamedGraph | None, ...]
    replace: bool
    graph: NamedNode | None
    is_dataset: bool

    def change(self, state: Overlay) -> Iterable[ChangeSet] | LineChange:
        """What putting it into this state changes. Raises BaseNotApplied, GraphsInRemoval, StorageFull."""
        store = state.applied_store()
        if store.is_removing:
            raise GraphsInRemoval
        lines = self.directory / "lines"
        created = tuple(g for g in self.targets if g is not None and not store.graph_exists(g))
        filled = [g for g in self.targets if g not in created and next(store.graph_quads(g), None)]
        if not filled:
            return LineChange(lines, created_graphs=created)
        added, removed = self.directory / "added", self.directory / "removed" if self.replace else None
        with tempfile.TemporaryDirectory(dir=self.directory) as place:
            copy = Path(place) / "store"
            store.checkpoint(copy)
            clears = compare(lines, copy, filled, added, removed)
        if clears is None:
            return self._parts(state)
        cleared = tuple(graph or DefaultGraph() for graph in filled) if clears else ()
        return LineChange(added, removed, created, cleared_graphs=cleared)

    def _parts(self, state: Overlay) -> Iterator[ChangeSet]:
        """The same a quad at a time."""
        quads = AddedLines(self.directory / "lines", self.found.count).quads()
        if self.graph is not None:
            quads = (Quad(*quad.triple) for quad in quads)
        with StagedBody(
            quads, graph=self.graph, whole_dataset=self.is_dataset, directory=self.directory
        ) as body:
            yield from body.parts(state, replace=self.replace)
