"""What has been written since the last refresh, and the versions of what was deleted lately."""

from collections import OrderedDict
from collections.abc import Iterable

from graphdb.search.fields import ParsedDocument
from graphdb.search.segments.builder import SegmentBuilder
from graphdb.search.segments.versioning import MISSING, Current

__all__ = ["Buffer", "Tombstones"]


class Buffer:
    """Documents on their way into a segment. One thread writes; any thread may call `find`."""

    def __init__(self) -> None:
        self.builder = SegmentBuilder()
        self.dead: list[int] = []  # roots in the builder that were replaced or deleted since
        self.replaced: list[str] = []  # what was there before, and is not to be found any more
        self._numbers: dict[str, int] = {}  # in the builder, of those not nested; below 0: deleted
        self._deleted: list[Current] = []

    def __len__(self) -> int:
        """Documents written or deleted."""
        return len(self._numbers)

    def ids(self) -> list[str]:
        return list(self._numbers)

    def find(self, doc_id: str) -> Current | None:
        """None: nothing was done to it, ask the segments."""
        number = self._numbers.get(doc_id)
        if number is None:
            return None
        return self.builder.stored(number) if number >= 0 else self._deleted[~number]

    def put(self, doc_id: str, new: Current, parsed: ParsedDocument, was_there: bool, id_hash: int) -> None:
        """was_there: a document with that id was found, here or elsewhere."""
        self._bury(doc_id, was_there)
        builder = self.builder
        builder.add(doc_id, new.source, new.seq_no, new.version, parsed, new.routing, id_hash)
        self._numbers[doc_id] = len(builder.roots) - 1

    def delete(self, doc_id: str, current: Current, was_there: bool) -> None:
        self._bury(doc_id, was_there)
        self._deleted.append(current)
        self._numbers[doc_id] = -len(self._deleted)

    def _bury(self, doc_id: str, was_there: bool) -> None:
        before = self._numbers.get(doc_id)
        if before is None:
            if was_there:
                self.replaced.append(doc_id)
        elif before >= 0:
            self.dead.append(self.builder.roots[before])


class Tombstones:
    """The last versions of documents that were deleted, the latest 10,000.

    A document that comes back goes on from there. Elasticsearch forgets by the clock (`index.gc_deletes`);
    that would not be the same on every node.
    """

    COUNT_MAX = 10_000

    def __init__(self, rows: Iterable[tuple[str, int, int]] = ()) -> None:
        self._versions = OrderedDict((doc_id, (version, seq_no)) for doc_id, version, seq_no in rows)

    def rows(self) -> list[tuple[str, int, int]]:
        """`_id`, version, sequence number; the oldest first."""
        return [(doc_id, version, seq_no) for doc_id, (version, seq_no) in self._versions.items()]

    def find(self, doc_id: str) -> Current:
        found = self._versions.get(doc_id)
        return MISSING if found is None else Current(False, *found)

    def add(self, doc_id: str, version: int, seq_no: int) -> None:
        self._versions.pop(doc_id, None)
        self._versions[doc_id] = (version, seq_no)
        if len(self._versions) > self.COUNT_MAX:
            self._versions.popitem(last=False)

    def remove(self, doc_id: str) -> None:
        self._versions.pop(doc_id, None)
