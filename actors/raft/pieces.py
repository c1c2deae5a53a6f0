"""Messages in pieces: so that nobody, least of all a stranger, can make a node hold more than one piece at
once that it has not agreed to hold.
"""

from collections.abc import Iterator

from actors.raft.proofs import PieceMarker, Refused
from actors.raft.raft_pb2 import Frame, Piece

__all__ = ["FRAME_BYTES_MAX", "PieceReader", "frames_of"]

_PIECE_BYTES = 1 << 20
FRAME_BYTES_MAX = _PIECE_BYTES + 1024


def frames_of(message: bytes, marker: PieceMarker) -> Iterator[Frame]:
    """The frames that carry a message, at least one."""
    if len(message) <= _PIECE_BYTES:  # nearly every message: no copy
        yield Frame(piece=Piece(data=message, last=True, mac=marker.mark(message, True)))
        return
    for start in range(0, len(message), _PIECE_BYTES):
        data = message[start : start + _PIECE_BYTES]
        last = start + _PIECE_BYTES >= len(message)
        yield Frame(piece=Piece(data=data, last=last, mac=marker.mark(data, last)))


class PieceReader:
    """Puts messages together again."""

    def __init__(self, marker: PieceMarker, message_bytes_max: int) -> None:
        self._marker = marker
        self._message_bytes_max = message_bytes_max
        self._parts: list[bytes] = []
        self.held_bytes = 0  # of the message that is not complete yet

    def add(self, frame: Frame) -> bytes | None:
        """Take a frame; the message, where it is complete now. Raises Refused."""
        if frame.WhichOneof("kind") != "piece":
            raise Refused("a frame that is not a piece of a message")
        piece = frame.piece
        self._marker.check(piece.data, piece.last, piece.mac)
        self.held_bytes += len(piece.data)
        if self.held_bytes > self._message_bytes_max:
            raise Refused(f"a message of more than {self._message_bytes_max} bytes")
        if piece.last and not self._parts:
            self.held_bytes = 0
            return bytes(piece.data)
        self._parts.append(piece.data)
        if not piece.last:
            if not piece.data:
                raise Refused("an empty piece")  # any number of them would fit the size
            return None
        message = b"".join(self._parts)
        self._parts, self.held_bytes = [], 0
        return message
