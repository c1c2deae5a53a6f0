"""`BulkReader`: bytes of a bulk request become items to be written. It may be much: a thread does it."""

from collections import deque
from collections.abc import Iterator

from serve.search.documents.bulk_items import BulkDefaults, BulkItem, bulk_items
from serve.search.documents.bulk_lines import BulkLines, Line, Lines
from serve.search.frame.exchange import JSON_BYTES_MAX

__all__ = ["BulkReader"]

_LINE_COST = 200  # bytes in memory beside the document


class BulkReader:
    """For one thread at a time. A request with less than a piece is refused as a whole where a line is
    malformed; of a longer one, what came before is stored by then.
    """

    def __init__(self, defaults: BulkDefaults, piece_bytes: int) -> None:
        self.chunks: deque[bytes] = deque()  # what has come and is not read yet
        self.is_at_end = False
        self._defaults, self._piece_bytes = defaults, piece_bytes
        self._lines, self._operations = Lines(JSON_BYTES_MAX), BulkLines()
        self._reading: Iterator[Line] | None = None

        self._piece: list[Line] = []
        self._size = 0

    def next_piece(self, is_last: bool, keeps_values: bool) -> list[BulkItem] | None:
        """None where more has to come first. is_last: nothing more comes; keeps_values: see `bulk_items`.

        Raises SearchError, BodyTooLarge, for what spoils the rest of the request.
        """
        if self._reading is None:
            self._reading = self._operations.feed(self._texts())
        for line in self._reading:
            self._piece.append(line)
            self._size += len(line.document) + _LINE_COST
            if self._size >= self._piece_bytes:
                return self._take_piece(keeps_values)
        self._reading = None
        if not is_last:
            return None
        self._lines.check_complete()
        self._operations.check_complete()
        self.is_at_end = True
        return self._take_piece(keeps_values)

    def _texts(self) -> Iterator[bytes]:
        while self.chunks:
            yield from self._lines.feed(self.chunks.popleft())

    def _take_piece(self, keeps_values: bool) -> list[BulkItem]:
        lines, self._piece, self._size = self._piece, [], 0
        return bulk_items(lines, self._defaults, keeps_values)
