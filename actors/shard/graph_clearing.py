"""`GraphClearing`: large graphs on their way out, as lines on the disk until the log has them."""

import tempfile
from contextlib import suppress
from pathlib import Path

from actors.disk_room import DiskRoom
from graphdb.errors import StorageFull
from graphdb.rdf.quad_lines import LineChange
from graphdb.store.clearing import Emptied, clear_lines, is_worth_lines
from graphdb.store.overlay import GraphsInRemoval, Overlay

__all__ = ["GraphClearing"]

_TIMES_AS_LARGE = 4  # what the lines become on the disk, about: in the log, and twice on their way to it


class GraphClearing:
    """Of one request, whose change nobody looks into before it is logged. Closing it deletes the lines."""

    def __init__(self, scratch: Path, room: DiskRoom) -> None:
        """scratch is on the store's file system, and room that of its disk."""
        self._scratch, self._room = scratch, room
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    @property
    def has_files(self) -> bool:
        """Whether there is anything to delete."""
        return self._directory is not None

    def close(self) -> None:
        """Delete the lines."""
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    def change(self, state: Overlay, emptied: Emptied) -> LineChange | None:
        """Empty graphs in this state. None where that is to be planned a quad at a time: few quads, or a
        full disk. Raises BaseNotApplied, GraphsInRemoval.
        """
        if not is_worth_lines(state, emptied):
            return None
        store = state.applied_store()
        if store.is_removing:
            raise GraphsInRemoval
        self.close()  # it may be planned more than once
        with suppress(OSError, StorageFull):
            self._directory = tempfile.TemporaryDirectory(dir=self._scratch)
            lines = Path(self._directory.name) / "lines"
            change = clear_lines(store, emptied, lines)
            if self._room.admits(lines.stat().st_size * _TIMES_AS_LARGE):
                return change
        self.close()
        return None
