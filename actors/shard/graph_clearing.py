"""`GraphClearing`: large graphs on their way out, as lines on the disk until the log has them."""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from actors.disk_room import DiskRoom
from actors.worker_thread import on_thread
from graphdb.errors import StorageFull
from graphdb.rdf.quad_lines import LineChange
from graphdb.store.clearing import Emptied, clear_lines, is_worth_lines
from graphdb.store.graph_watch import GraphWatch
from graphdb.store.overlay import GraphsInRemoval, Overlay
from graphdb.store.quad_store import QuadStore

__all__ = ["GraphClearing"]

_TIMES_AS_LARGE = 4  # what the lines become on the disk, about: in the log, and twice on their way to it

_PREPARING = Lock()  # the disk is to hold the lines of one graph beside those of the writer


@dataclass(frozen=True, slots=True)
class _Prepared:
    emptied: Emptied
    change: LineChange
    watch: GraphWatch


class GraphClearing:
    """Of one request, whose change nobody looks into before it is logged. Closing it deletes the lines."""

    def __init__(self, quads: QuadStore, scratch: Path, room: DiskRoom) -> None:
        """scratch is on the file system of the store, quads, and room that of its disk."""
        self._quads, self._scratch, self._room = quads, scratch, room
        self._opened = ExitStack()
        self._prepared: _Prepared | None = None
        self.has_files = False  # whether there is anything to delete

    def close(self) -> None:
        """Delete the lines."""
        self._prepared = None
        self._opened.close()
        self.has_files = False

    async def prepared(self, emptied_by: Callable[[QuadStore], Emptied | None]) -> None:
        """Write the lines before the writer's turn, which is the shorter for it where the graphs stay as they
        are until then. emptied_by tells which ones.
        """
        if _PREPARING.acquire(blocking=False):  # else the thread would wait, and there are few
            try:
                await on_thread(self._prepare, emptied_by)
            finally:
                _PREPARING.release()

    def _prepare(self, emptied_by: Callable[[QuadStore], Emptied | None]) -> None:
        emptied = emptied_by(self._quads)
        if emptied is None or not is_worth_lines(self._quads, emptied):
            return
        watch = self._opened.enter_context(self._quads.watching(emptied.graphs))
        change = self._change(self._quads, emptied)
        if change is not None:
            self._prepared = _Prepared(emptied, change, watch)

    def change(self, state: Overlay, emptied: Emptied) -> LineChange | None:
        """Empty graphs in this state. None where that is to be planned a quad at a time: few quads, or a
        full disk. Raises BaseNotApplied, GraphsInRemoval.
        """
        if not is_worth_lines(state, emptied):
            return None
        store = state.applied_store()
        if store.is_removing:
            raise GraphsInRemoval
        prepared = self._prepared
        if prepared is not None and prepared.emptied == emptied and not prepared.watch.is_touched:
            return prepared.change
        self.close()  # it may be planned more than once
        return self._change(store, emptied)

    def _change(self, store: QuadStore, emptied: Emptied) -> LineChange | None:
        with suppress(OSError, StorageFull):
            directory = self._opened.enter_context(tempfile.TemporaryDirectory(dir=self._scratch))
            self.has_files = True
            lines = Path(directory) / "lines"
            change = clear_lines(store, emptied, lines)
            if self._room.admits(lines.stat().st_size * _TIMES_AS_LARGE):
                return change
        self.close()
        return None
