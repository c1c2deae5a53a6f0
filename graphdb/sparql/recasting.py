"""Result formats that the engine lacks, made from native output without parsing it: cut at the right bytes.

Both classes are file-like objects for pyoxigraph to write to, and pass what they make on to a PieceWriter.
"""

import re
from collections.abc import Iterator

import orjson

from graphdb.rdf.pieces import CHUNK_BYTES, PieceWriter

__all__ = ["BindingLines", "StringArray"]

_BEFORE_A_ROW = re.compile(rb'\},\{(?="[^"\\]*":\{)')
_BINDINGS_OPEN, _BINDINGS_CLOSE = b'"bindings":[', b"]}}"
# JSON may hold these as they are, but some readers of lines, such as str.splitlines, end a line at them.
_LINE_ENDS = tuple((end.encode(), f"\\u{ord(end):04x}".encode()) for end in "\x85\u2028\u2029")


class _Recast:
    """Gathers native pieces until there is a chunk of them, then has `_recast` turn it over."""

    def __init__(self, pieces: PieceWriter) -> None:
        self._pieces = pieces
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0

    def write(self, piece: bytes) -> int:
        """Take a piece; pyoxigraph wants to hear its length."""
        self._waiting.append(piece)
        self._waiting_bytes += len(piece)
        if self._waiting_bytes >= CHUNK_BYTES:
            self._take_over()
        return len(piece)

    def flush(self) -> None:
        """Nothing: pyoxigraph calls it at the end, and close() does the work."""

    def _take_over(self) -> None:
        text = b"".join(self._waiting)
        self._waiting = [rest] if (rest := self._recast(text)) else []
        self._waiting_bytes = 0

    def _recast(self, text: bytes) -> bytes:
        """Write what is whole of text; return the rest, which comes again with more behind it."""
        raise NotImplementedError


class BindingLines(_Recast):
    """Turns results JSON into NDJSON: one binding object a line, no head."""

    def __init__(self, pieces: PieceWriter) -> None:
        super().__init__(pieces)
        self._past_head = False

    def close(self) -> None:
        """Write the rest."""
        self._take_over()
        if last := b"".join(self._waiting).removesuffix(_BINDINGS_CLOSE):
            self._pieces.write(_without_line_ends(last) + b"\n")

    def _recast(self, text: bytes) -> bytes:
        if not self._past_head:
            if _BINDINGS_OPEN not in text:
                return text
            _, _, text = text.partition(_BINDINGS_OPEN)
            self._past_head = True
        lines, newline, rest = _row_lines(text).rpartition(b"\n")
        if newline:
            self._pieces.write(_without_line_ends(lines) + newline)
        return rest


class StringArray(_Recast):
    """Turns N-Triples into a JSON array of strings, a triple each, ending in ` .`."""

    def __init__(self, pieces: PieceWriter) -> None:
        super().__init__(pieces)
        self._opening = b"["

    def close(self) -> None:
        """Write the rest."""
        self._take_over()
        self._pieces.write(b"[]" if self._opening == b"[" else b"]")

    def _recast(self, text: bytes) -> bytes:
        lines, _, rest = text.rpartition(b"\n")
        if lines:
            array = orjson.dumps(lines.decode().split("\n"))
            self._pieces.write(self._opening + array[1:-1])
            self._opening = b","
        return rest


def _without_line_ends(lines: bytes) -> bytes:
    """The same JSON, with escapes for the characters that would cut a line in two."""
    if lines.isascii():
        return lines
    for character, escape in _LINE_ENDS:
        lines = lines.replace(character, escape)
    return lines


def _row_lines(text: bytes) -> bytes:
    """The members of a JSON array of bindings, with line feeds for the commas between them."""
    if b"},{}" in text:
        return b"\n".join(_split_rows(text))
    # No empty row, so each begins with a name and the brace of a term. A string that holds `},{` cannot go on
    # like that: a quote in it is escaped, and what follows the quote that ends it is no name with a brace.
    return _BEFORE_A_ROW.sub(b"}\n{", text)


def _split_rows(text: bytes) -> Iterator[bytes]:
    """Cut the members of a JSON array of objects at the commas between them; the last may be incomplete.

    Between members stands `},{`, which occurs elsewhere in results JSON only in strings. A stretch that holds
    an even number of unescaped quotes begins and ends outside of strings, so it is made of whole members.
    """
    begun: list[bytes] = []
    stretches = text.split(b"},{")
    last = len(stretches) - 1
    for place, stretch in enumerate(stretches):
        row = (b"{" if place else b"") + stretch + (b"}" if place < last else b"")
        begun.append(row)
        if place == last:
            break
        whole = begun[0] if len(begun) == 1 else b",".join(begun)
        if _quotes(whole) % 2 == 0:
            yield whole
            begun = []
    yield b",".join(begun)


def _quotes(text: bytes) -> int:
    """The number of quotes that are not escaped."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return text.count(b'"')
