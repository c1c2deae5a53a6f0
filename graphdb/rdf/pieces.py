"""Small native writes gathered into chunks: the file-like objects that pyoxigraph's serialisers write to."""

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["CHUNK_BYTES", "PieceWriter", "Sink", "UnwritableCharacter", "XmlPieceWriter", "mended_xml"]

Sink: TypeAlias = Callable[[bytes], object]

CHUNK_BYTES = 65_536  # pyoxigraph writes pieces of at most 8 kB

# Outside Char of XML 1.0: it can be written in no way, not even as a character reference.
_CONTROLS = bytes(set(range(0x20)) - set(b"\t\n\r"))
_NONCHARACTERS = ("\ufffe".encode(), "\uffff".encode())


class UnwritableCharacter(ValueError):
    """A literal holds a character that XML 1.0 has no way to write."""


class PieceWriter:
    """Hands what is written to sink in chunks of chunk_bytes or a little more; close() hands over the rest.

    sink is called at least once, and never after it has failed; sink_failed tells its error from others.
    """

    def __init__(self, sink: Sink, chunk_bytes: int = CHUNK_BYTES) -> None:
        self._sink = sink
        self._pieces: list[bytes] = []
        self._room = self._chunk_bytes = chunk_bytes
        self._started = False
        self.sink_failed = False

    def write(self, piece: bytes) -> int:
        """Take a piece; pyoxigraph wants to hear its length."""
        self._pieces.append(piece)
        self._room -= len(piece)
        if self._room <= 0:
            self._hand_over()
        return len(piece)

    def flush(self) -> None:
        """Nothing: pyoxigraph calls it at the end, and close() does the work."""

    def close(self) -> None:
        if self._pieces or not self._started:
            self._hand_over()

    def _hand_over(self) -> None:
        chunk = b"".join(self._pieces)
        self._pieces = []
        self._room = self._chunk_bytes
        self._started = True
        try:
            self._sink(chunk)
        except BaseException:
            self.sink_failed = True
            raise


class XmlPieceWriter(PieceWriter):
    """A PieceWriter for what pyoxigraph writes as XML. Raises UnwritableCharacter."""

    def write(self, piece: bytes) -> int:
        super().write(mended_xml(piece))
        return len(piece)


def mended_xml(piece: bytes) -> bytes:
    """The XML with carriage returns as references, lest readers take them for line feeds.

    The piece must not be cut inside a character. Raises UnwritableCharacter.
    """
    if len(piece.translate(None, _CONTROLS)) < len(piece) or any(end in piece for end in _NONCHARACTERS):
        raise UnwritableCharacter("a literal holds a control character, which XML cannot express")
    return piece.replace(b"\r", b"&#13;")
