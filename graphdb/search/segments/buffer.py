"""What has been written since the last refresh, and the versions of what was deleted lately."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import count
from typing import TypeAlias

from graphdb.search.fields import Column, ParsedDocument
from graphdb.search.segments.builder import SegmentBuilder
from graphdb.search.segments.operations import MISSING, Current
from graphdb.search.segments.sections import Hashes

__all__ = ["Buffer", "TombstoneRow", "Tombstones"]


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

    def add(
        self,
        doc_id: str,
        source: bytes,
        seq_no: int,
        parsed: ParsedDocument,
        routing: str | None,
        id_hash: int,
    ) -> None:
        """`put` of a document with an id that is not known here, nor was ever one's, in its first version."""
        builder = self.builder
        builder.add(doc_id, source, seq_no, 1, parsed, routing, id_hash)
        self._numbers[doc_id] = len(builder.roots) - 1

    def add_together(
        self,
        doc_ids: Sequence[str],
        ids: Sequence[bytes],
        hashes: Hashes,
        sources: Sequence[bytes],
        seq_no: int,
        columns: Iterable[Column],
    ) -> None:
        """`add` of several that have different ids, see `SegmentBuilder.add_together`."""
        first = len(self.builder.roots)
        self.builder.add_together(ids, hashes, sources, seq_no, columns)
        self._numbers.update(zip(doc_ids, count(first), strict=False))

    def has_any(self, doc_ids: Iterable[str]) -> bool:
        """Whether anything was done to one of these."""
        return not self._numbers.keys().isdisjoint(doc_ids)

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


TombstoneRow: TypeAlias = tuple[str, int, int] | tuple[str, int, int, bool]
_Versions: TypeAlias = OrderedDict[str, tuple[int, int]]


class Tombstones:
    """The last versions of documents that were deleted, the latest 10,000, and as many that were protected.

    A document that comes back goes on from there. Elasticsearch forgets by the clock (`index.gc_deletes`);
    that would not be the same on every node. What is left of protected documents only those find who see
    everything: others do not learn that it existed.
    """

    COUNT_MAX = 10_000

    def __init__(self, rows: Iterable[TombstoneRow] = ()) -> None:
        self._open: _Versions = OrderedDict()
        self._protected: _Versions = OrderedDict()
        for doc_id, version, seq_no, *is_protected in rows:
            (self._protected if any(is_protected) else self._open)[doc_id] = (version, seq_no)

    def rows(self) -> list[TombstoneRow]:
        """`_id`, version, sequence number, and True for what was protected; the oldest first."""
        protected = [(doc_id, *last, True) for doc_id, last in self._protected.items()]
        return [*((doc_id, *last) for doc_id, last in self._open.items()), *protected]

    def is_unknown(self, doc_id: str) -> bool:
        """Whether nothing is kept of a document with this id."""
        return doc_id not in self._open and doc_id not in self._protected

    def has_any(self, doc_ids: Iterable[str]) -> bool:
        """Whether something is kept of a document with one of these ids."""
        return not (self._open.keys().isdisjoint(doc_ids) and self._protected.keys().isdisjoint(doc_ids))

    def find(self, doc_id: str, sees_all: bool) -> Current:
        found = self._open.get(doc_id)
        if sees_all and doc_id in self._protected:
            found = max(found or (0, -1), self._protected[doc_id])
        return MISSING if found is None else Current(False, *found)

    def add(self, doc_id: str, version: int, seq_no: int, sees_all: bool, is_protected: bool = False) -> None:
        """sees_all: a client that deleted it does, and so went on from the version of a protected one."""
        goes_on = sees_all and doc_id in self._protected
        versions = self._protected if is_protected or goes_on else self._open
        versions.pop(doc_id, None)
        versions[doc_id] = (version, seq_no)
        if len(versions) > self.COUNT_MAX:
            versions.popitem(last=False)

    def remove(self, doc_id: str, is_protected: bool) -> None:
        """A document exists again: a client that does not see it goes on from what it knows."""
        self._protected.pop(doc_id, None)
        if not is_protected:
            self._open.pop(doc_id, None)
