"""`RecentRequests`: which requests the log has had lately, so that one that is sent again takes effect once.

In bytes, for the data directory (integers little-endian and unsigned):

    offset  bytes  field
         0      4  mark, "GLRR"
         4      4  CRC-32 (zlib) of everything from offset 8 on
         8      1  version, 1
         9      7  zero
        16      8  through: entries up to this log index are accounted for
        24     12  of the requests with random ids: complete_since (8), how many there are (4)
        36     12  of those with keyed ids
        48      n  the random ones, then the keyed ones, 32 each, the oldest first:
                   request_id (16), log_index (8), affected_triples (8)
"""

import struct
import zlib
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from threading import Lock

from graphdb.errors import CorruptionError
from graphdb.log.request_ids import is_keyed, key_part

__all__ = ["RecentRequests", "Remembered"]

_KEPT = 100_000  # of each kind
_RECORD = struct.Struct("<16sQQ")
_HEADER = struct.Struct("<4sIB7xQQIQI")
_MARK, _VERSION, _CRC_START = b"GLRR", 1, 8


@dataclass(frozen=True, slots=True)
class Remembered:
    """A request that has changed something."""

    request_id: bytes
    log_index: int  # of its only entry, or of the one that closed it
    affected_triples: int


class RecentRequests:
    """Fed by a `Replayer` with every entry, in order. One thread may feed it while others read.

    The last 100,000 requests with random ids are remembered, and as many with keyed ones: clients may come
    back to their keys when much else has been written. Entries up to `through` count once, however often they
    are replayed.
    """

    def __init__(self, through: int = 0, *, kept: int = _KEPT) -> None:
        """Nothing is known of the entries up to through."""
        self.through = through
        self._random, self._keyed = _LastRequests(kept, through + 1), _LastRequests(kept, through + 1)
        self._lock = Lock()

    def remember(self, request_id: bytes, log_index: int, affected_triples: int) -> None:
        """The entry at log_index has made this request's change visible."""
        self.remember_all(((request_id, log_index, affected_triples),))

    def remember_all(self, requests: Iterable[tuple[bytes, int, int]]) -> None:
        """Entries have made these requests' changes visible: ids, log indices in their order, and affected
        triples.
        """
        with self._lock:
            for request_id, index, affected_triples in requests:
                if index > self.through:
                    self.through = index
                    if is_keyed(request_id):
                        self._keyed.add(request_id, key_part(request_id), index, affected_triples)
                    else:
                        self._random.add(request_id, request_id, index, affected_triples)

    def pass_over(self, log_index: int) -> None:
        """The entry at log_index has changed nothing by itself."""
        with self._lock:
            self.through = max(self.through, log_index)

    def find(self, request_id: bytes) -> Remembered | None:
        """The request with this id, or, of a keyed id, with this key: then its request_id says if it is the
        same.
        """
        with self._lock:
            return self._of(request_id).find(request_id)

    def complete_since(self, request_id: bytes) -> int:
        """Every request with an id of this kind is remembered whose entry is at this log index or after."""
        return self._of(request_id).complete_since

    def _of(self, request_id: bytes) -> "_LastRequests":
        return self._keyed if is_keyed(request_id) else self._random

    def to_bytes(self) -> bytes:
        """All of it, as of one moment."""
        with self._lock:
            random, keyed = self._random.records(), self._keyed.records()
            header = _HEADER.pack(
                _MARK,
                0,
                _VERSION,
                self.through,
                self._random.complete_since,
                len(random) // _RECORD.size,
                self._keyed.complete_since,
                len(keyed) // _RECORD.size,
            )
        data = bytearray().join((header, random, keyed))
        data[4:_CRC_START] = zlib.crc32(memoryview(data)[_CRC_START:]).to_bytes(4, "little")
        return bytes(data)

    @classmethod
    def from_bytes(cls, data: bytes, *, kept: int = _KEPT) -> "RecentRequests":
        """What to_bytes has written. Raises CorruptionError."""
        if len(data) < _HEADER.size:
            raise CorruptionError("the list of recent requests is cut short", "recent requests")
        mark, crc, version, through, *kinds = _HEADER.unpack_from(data)
        counts = kinds[1::2]
        if (
            (mark, version) != (_MARK, _VERSION)
            or zlib.crc32(memoryview(data)[_CRC_START:]) != crc
            or len(data) != _HEADER.size + sum(counts) * _RECORD.size
        ):
            raise CorruptionError("the list of recent requests is damaged", "recent requests")
        made = cls(through, kept=kept)
        records = _RECORD.iter_unpack(memoryview(data)[_HEADER.size :])
        made._random.fill(records, *kinds[:2])
        made._keyed.fill(records, *kinds[2:])
        return made


class _LastRequests:
    """The last so many requests of one kind, in flat memory: 40 bytes each, and 8 to 16 for the buckets.

    A hash table whose chains lead from the newest to the oldest, as those of zlib's window do: what is
    overwritten stands at their ends, and a search stops where numbers are too old. So nothing is unlinked.
    """

    def __init__(self, kept: int, complete_since: int) -> None:
        self.complete_since = complete_since
        self._kept = kept
        self._count = 0  # ever added; the n-th has the number n, and the place (n - 1) % kept
        self._records = bytearray()
        self._older = array("Q")  # by place: the number of the next older one in the same bucket, 0 for none
        self._mask = (1 << kept.bit_length()) - 1
        self._buckets = array("Q", bytes(8 * (self._mask + 1)))  # the number of the newest

    def add(self, request_id: bytes, key: bytes, log_index: int, affected_triples: int) -> None:
        """key: the `key_part` of the id."""
        record = _RECORD.pack(request_id, log_index, affected_triples)
        place = self._count % self._kept
        if self._count < self._kept:
            self._records += record
            self._older.append(0)
        else:
            start = place * _RECORD.size
            self.complete_since = _RECORD.unpack_from(self._records, start)[1] + 1
            self._records[start : start + _RECORD.size] = record
        bucket = hash(key) & self._mask
        self._older[place] = self._buckets[bucket]
        self._count += 1
        self._buckets[bucket] = self._count

    def find(self, request_id: bytes) -> Remembered | None:
        key = key_part(request_id)
        number = self._buckets[hash(key) & self._mask]
        while number > max(0, self._count - self._kept):
            place = (number - 1) % self._kept
            found = _RECORD.unpack_from(self._records, place * _RECORD.size)
            if key_part(found[0]) == key:
                return Remembered(*found)
            number = self._older[place]
        return None

    def records(self) -> bytes:
        """The oldest first."""
        start = self._count % self._kept * _RECORD.size if self._count > self._kept else 0
        return bytes(self._records[start:] + self._records[:start])

    def fill(self, records: Iterator[tuple[bytes, int, int]], complete_since: int, count: int) -> None:
        self.complete_since = complete_since
        for request_id, log_index, affected_triples in islice(records, count):
            self.add(request_id, key_part(request_id), log_index, affected_triples)
